"""Oracles: divergence rates of a pair of output distributions from those that satisfy a claim.

An audit of P and Q that keeps its false alarms below alpha cannot, for every pair of distributions (P0, Q0) that
satisfies the claim, gain more than KL(P || P0) + KL(Q || Q0) nats a draw of each side on average; the
*whole-distribution oracle* is ln(1/alpha) over the smallest such sum. The *single-event oracle* is the same with one
event {output in A} only; `simulate_passages` plays it: it knows the best event and both its probabilities, and bets
what grows fastest on every draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from auditor.evidence.power import divergence_rate
from auditor.privacy.guarantees import ApproxDP, DeltaDP, Guarantee

Array = NDArray[np.float64]
Cdf = Callable[[Array], Array]

#: Masses below this are rounding of sums over cells and say nothing about the pair; they are dropped.
_NOTHING = 1e-300
#: Relative accuracy asked of the dual for (epsilon, delta): far below what a table shows.
_GAP = 1e-7
#: Steps after which the ellipsoid method has failed: in four dimensions it shrinks the gap by a factor of e every
#: 2 (4 + 1) = 10 steps about the radius, so 1e-7 takes some 300.
_STEPS = 5_000
#: Draws of `simulate_passages` that are simulated at once; arbitrary, a few megabytes.
_BLOCK = 256


@dataclass(frozen=True)
class Masses:
    """A pair of distributions on finitely many outcomes.

    Outcomes may be grouped so that nothing about the pair is lost.

    Parameters
    ----------
    p, q : ndarray of shape (n_outcomes,)
        Probabilities under the first and the second dataset, at least 0, each summing to one within 1e-6.

    Raises
    ------
    ValueError
        If they are no probabilities.
    """

    p: Array
    q: Array

    def __post_init__(self) -> None:
        p, q = np.asarray(self.p, dtype=np.float64), np.asarray(self.q, dtype=np.float64)
        if p.shape != q.shape or p.ndim != 1:
            raise ValueError(f"expected two vectors of one length, got shapes {p.shape} and {q.shape}")
        for mass in (p, q):
            if not (mass >= 0).all() or abs(mass.sum() - 1.0) > 1e-6:
                raise ValueError(f"expected probabilities that sum to 1, got {mass!r} with sum {mass.sum()!r}")
        used = (p > _NOTHING) | (q > _NOTHING)
        object.__setattr__(self, "p", p[used] / p[used].sum())
        object.__setattr__(self, "q", q[used] / q[used].sum())


def from_cdfs(first: Cdf, second: Cdf, edges: Array) -> Masses:
    """Compute masses of the cells between and beyond edges.

    Parameters
    ----------
    first, second : callable
        Distribution functions of the outputs on the two datasets, from an ndarray of points to one of probabilities.
    edges : ndarray of shape (n_edges,)
        Increasing edges; there are n_edges + 1 cells.
    """
    p, q = (np.diff(np.concatenate([[0.0], cdf(edges), [1.0]])) for cdf in (first, second))
    return Masses(np.maximum(p, 0.0), np.maximum(q, 0.0))


def whole_distribution_rate(masses: Masses, epsilon: float, delta: float = 0.0) -> float:
    """Compute the smallest divergence of (P, Q) from allowed pairs.

    KL(P || P0) + KL(Q || Q0) over the (P0, Q0) that satisfy (epsilon, delta)-DP in both orders.

    Parameters
    ----------
    masses : Masses
        The pair (P, Q).
    epsilon, delta : float
        The claim.

    Returns
    -------
    float
        Nats a draw of each side; 0 if the pair satisfies the claim.

    Notes
    -----
    Valid because: the problem is convex, and with multipliers lam and mu for the two sums and v and w for the excesses
    sum (p0 - e^eps q0)+ <= delta and sum (q0 - e^eps p0)+ <= delta the smallest value of the Lagrangian is, outcome by
    outcome, one of: free, p0 = p / lam and q0 = q / mu; beyond, p0 = p / (lam + v) and q0 = q / (mu - e^eps v); on the
    edge between them, p0 = e^eps q0 and q0 = (p + q) / (lam e^eps + mu); and the last two with the distributions
    exchanged. Its value is a lower bound of the rate whatever the multipliers, and the largest is the rate (strong
    duality, the null has interior points). Multiplying all multipliers by c divides p0 and q0 by c, so at the maximum
    lam + mu + (v + w) delta = 2. For delta = 0 nothing may be beyond, v and w are at their ends mu e^-eps and lam
    e^-eps, and one unknown is left.
    """
    if delta == 0:
        return _pure_rate(masses, epsilon)
    return _approximate_rate(masses, epsilon, delta)


class _LagrangianMinimum(NamedTuple):
    """Minimiser of the Lagrangian: the distributions, and its value."""

    p0: Array
    q0: Array
    value: float


def _minimise_lagrangian(
    masses: Masses, e: float, delta: float, lam: float, mu: float, v: float, w: float
) -> _LagrangianMinimum:
    p, q = masses.p, masses.q
    p0, q0 = p / lam, q / mu
    p0, q0 = _limit_to_edge(p, q, p0, q0, e, lam, mu, v)
    q0, p0 = _limit_to_edge(q, p, q0, p0, e, mu, lam, w)
    kl = special.rel_entr(p, p0).sum() + special.rel_entr(q, q0).sum()
    excess = v * np.maximum(p0 - e * q0, 0.0).sum() + w * np.maximum(q0 - e * p0, 0.0).sum()
    return _LagrangianMinimum(p0, q0, float(kl + lam * (p0.sum() - 1) + mu * (q0.sum() - 1) + excess - (v + w) * delta))


def _limit_to_edge(
    p: Array, q: Array, p0: Array, q0: Array, e: float, lam: float, mu: float, v: float
) -> tuple[Array, Array]:
    """Replace (p0, q0) where p0 > e q0: by the masses beyond, if the price v leaves them there, or by the edge."""
    over = p0 > e * q0
    edge = (p + q) / (lam * e + mu)
    rest = mu - e * v
    beyond_p = p / (lam + v)
    beyond_q = q / rest if rest > 0 else np.where(q > 0, np.inf, 0.0 if rest == 0 else np.inf)
    beyond = over & (beyond_p > e * beyond_q)
    return (
        np.where(beyond, beyond_p, np.where(over, e * edge, p0)),
        np.where(beyond, beyond_q, np.where(over, edge, q0)),
    )


def _pure_rate(masses: Masses, epsilon: float) -> float:
    e = math.exp(epsilon)

    def solve(lam: float) -> _LagrangianMinimum:
        mu = 2.0 - lam
        return _minimise_lagrangian(
            masses, e, 0.0, lam, mu, 2 * mu / e, 2 * lam / e
        )  # beyond both ends: nothing pays there

    def slope(lam: float) -> float:
        found = solve(lam)
        return float(found.p0.sum() - found.q0.sum())

    if epsilon == 0:  # both distributions are one, and every lam has the same value
        return max(0.0, solve(1.0).value)
    low, high = 1e-9, 2.0 - 1e-9
    if slope(low) <= 0 or slope(high) >= 0:
        raise ValueError("the multipliers of a pair of probabilities lie inside (0, 2)")
    lam = float(optimize.brentq(slope, low, high, xtol=1e-13))
    return max(0.0, solve(lam).value)


def _approximate_rate(masses: Masses, epsilon: float, delta: float) -> float:
    """Maximise the dual over (lam, v, w) by the ellipsoid method, which needs no derivatives at kinks."""
    e = math.exp(epsilon)
    # mu = 2 - lam - (v + w) delta; v <= mu / e and w <= lam / e, beyond which nothing changes.
    centre = np.array([1.0, 0.5 / e, 0.5 / e])
    shape = np.diag([1.0, 2.0 / e, 2.0 / e]) ** 2 * 3.0  # an ellipsoid around the box of all admissible multipliers
    best, n = 0.0, 3
    for _ in range(_STEPS):
        lam, v, w = centre.tolist()
        mu = 2.0 - lam - (v + w) * delta
        broken = [
            (-lam, np.array([-1.0, 0.0, 0.0])),
            (-mu, np.array([1.0, delta, delta])),
            (-v, np.array([0.0, -1.0, 0.0])),
            (-w, np.array([0.0, 0.0, -1.0])),
            (e * v - mu, np.array([1.0, e + delta, delta])),
            (e * w - lam, np.array([-1.0, 0.0, e])),
        ]
        amount, down = max(broken, key=lambda item: item[0])
        if amount < 0:
            found = _minimise_lagrangian(masses, e, delta, lam, mu, v, w)
            best = max(best, found.value)
            sums = found.p0.sum() - 1, found.q0.sum() - 1
            over = np.maximum(found.p0 - e * found.q0, 0).sum(), np.maximum(found.q0 - e * found.p0, 0).sum()
            down = -np.array([sums[0] - sums[1], over[0] - delta - delta * sums[1], over[1] - delta - delta * sums[1]])
        length = math.sqrt(float(down @ shape @ down))
        if amount < 0 and length <= _GAP * max(best, 1e-12):
            return best
        step = shape @ down / length
        centre = centre - step / (n + 1)
        shape = n * n / (n * n - 1) * (shape - 2 / (n + 1) * np.outer(step, step))
    raise ValueError(f"the rate did not settle within {_STEPS} steps: {masses!r}, epsilon {epsilon}, delta {delta}")


class BestEvent(NamedTuple):
    """Event whose bet grows fastest.

    Parameters
    ----------
    p, q : float
        Its probabilities under P and Q, or under Q and P.
    rate : float
        Growth of the bet, in nats a draw of each side.
    """

    p: float
    q: float
    rate: float


def best_event(masses: Masses, claim: Guarantee) -> BestEvent:
    """Find the best single event, by the lemma of Neyman and Pearson.

    It is a set of outcomes in the order of their likelihood ratio.

    Parameters
    ----------
    masses : Masses
        The pair of distributions; it is tried in both orders.
    claim : Guarantee
        What is bet against.
    """
    found = []
    for a, b in ((masses.p, masses.q), (masses.q, masses.p)):
        with np.errstate(divide="ignore"):
            order = np.argsort(-(np.log(a) - np.log(b)), kind="stable")
        p, q = (np.minimum(np.cumsum(v[order]), 1.0) for v in (a, b))
        rates = divergence_rate(p, q, claim, claim.level)
        k = int(np.argmax(rates))
        found.append(BestEvent(float(p[k]), float(q[k]), float(rates[k])))
    return max(found, key=lambda event: event.rate)


def single_event_rate(masses: Masses, claim: Guarantee) -> float:
    """Compute the divergence rate of the best single event.

    Parameters
    ----------
    masses : Masses
        The pair of distributions.
    claim : Guarantee
        What is bet against.

    Returns
    -------
    float
        Nats a draw of each side; 0 where no event refutes the claim.
    """
    return best_event(masses, claim).rate


def simulate_passages(
    event: BestEvent, claim: Guarantee, alpha: float, n: int, paths: int, rng: np.random.Generator
) -> Array:
    """Simulate draws a side until the single-event oracle refutes a claim.

    Parameters
    ----------
    event : BestEvent
        What it bets on, with the true probabilities.
    claim : Guarantee
        The claim.
    alpha : float
        Level of the test.
    n : int
        Most draws a side.
    paths : int
        Audits that are simulated.
    rng : Generator

    Returns
    -------
    ndarray of shape (paths,)
        Infinite where the wealth does not reach 1/alpha within n draws.

    Notes
    -----
    Valid because: with (p0, q0) the projection of (p, q) on the cap and E the likelihood-ratio slope there, the
    two-sided bet of `auditor.evidence.two_sample_bet` with s = (p - p0) / (p0 (1 - p0)) multiplies the wealth by p/p0
    if X is in the event and (1 - p)/(1 - p0) if not, and by q/q0 or (1 - q)/(1 - q0) for Y. So the oracle keeps the
    same promise as the auditor: it ever refutes a claim that holds with probability at most alpha. It looks after every
    draw.
    """
    passed = np.full(paths, math.inf)
    if event.rate == 0:
        return passed
    p, q = event.p, event.q
    p0, q0, _ = claim.tangent(np.array(p), np.array(q), claim.level)
    with np.errstate(divide="ignore"):  # what has probability 0 does not come
        inside = np.log(p / p0), np.log(q / q0)
        outside = np.log((1 - p) / (1 - p0)), np.log((1 - q) / (1 - q0))
    left, log = np.arange(paths), np.zeros(paths)
    for start in range(0, n, _BLOCK):
        size = (len(left), min(_BLOCK, n - start))
        gains = np.where(rng.random(size) < p, inside[0], outside[0])
        gains += np.where(rng.random(size) < q, inside[1], outside[1])
        walk = log[:, None] + np.cumsum(gains, axis=1)
        there = walk >= math.log(1 / alpha)
        now = there.any(axis=1)
        passed[left[now]] = start + 1 + there[now].argmax(axis=1)
        left, log = left[~now], walk[~now, -1]
        if not len(left):
            break
    return passed


def compute_rate(masses: Masses, claim: Guarantee) -> tuple[float, str]:
    """Compute the oracle's rate, with its name.

    Parameters
    ----------
    masses : Masses
        The pair of distributions.
    claim : Guarantee
        What is to be refuted.

    Returns
    -------
    float, str
        Nats a draw of each side, and "whole distribution", or "single event" for notions without a dual here.
    """
    if isinstance(claim, ApproxDP | DeltaDP):
        return whole_distribution_rate(masses, claim.epsilon, claim.delta), "whole distribution"
    return single_event_rate(masses, claim), "single event"
