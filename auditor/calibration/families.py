"""Mechanisms whose exact level is known: at the claimed level every alarm is false, above it every one is due."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from auditor.calibration.oracles import Masses, from_cdfs
from auditor.datasets import Pair
from auditor.privacy.exact import GaussianCurve
from auditor.privacy.guarantees import ZCDP, ApproxDP, DeltaDP, GaussianDP, Guarantee, PureDP, RenyiDP, TradeoffCurve

Array = NDArray[np.float64]
Mechanism = Callable[[Any, int, np.random.Generator], NDArray[Any]]
Event = Callable[[NDArray[Any]], NDArray[np.bool_]]

#: Pairs of the search: ten records, each pair in both orders.
_RECORDS = 10
#: Gaussian outputs are rounded to multiples of this.
_LATTICE = 2.0**-20
#: Bits of an output of several coordinates; arbitrary, few enough for the event that shows the level not to be rare.
_BITS = 4
#: Probability of the rare event on the second dataset; arbitrary, 50 times in 10,000 draws.
_RARE = 0.005
#: Lattice points to a unit; arbitrary, many enough for events to be learned among many thresholds.
_STEPS = 10
#: How far tables of distributions reach, in units of the noise's scale, and cells of a table of Gaussian noise. The
#: mass beyond is below 1e-15 for both distributions, and a thousand cells to a standard deviation lose nothing that a
#: table would show.
_REACH, _CELLS = 36, 8_000


@dataclass(frozen=True)
class Family:
    """A mechanism at zero margin.

    Its exact level on ``pairs`` is the claimed one.

    Parameters
    ----------
    name : str
        For tables and test ids; it also keys the draws.
    mechanism : callable
        ``(data, n, rng) -> ndarray of shape (n,)`` or ``(n, d)``.
    guarantee : Guarantee
        The claim; its level is the exact level.
    pairs : tuple of Pair
        What is searched.
    share : float
        Part of the usual number of audits that is made: less to save time, more where audits are fast and the rate is
        highest.
    event : callable, optional
        An event on which the first pair attains the claim, ``outputs -> ndarray of bool, shape (n,)``: for an auditor
        that is told, see `auditor.calibration.audits.audit_stated`.
    """

    name: str
    mechanism: Mechanism
    guarantee: Guarantee
    pairs: tuple[Pair, ...]
    share: float = 1.0
    event: Event | None = None


@dataclass(frozen=True)
class Response:
    """Randomised response on each bit.

    ``bits`` of them differ between neighbours, and all together attain epsilon.
    """

    epsilon: float
    bits: int = 1

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` outputs; each bit is kept with probability e^(eps/k) / (1 + e^(eps/k)) for k bits."""
        truthful = 1 / (1 + math.exp(-self.epsilon / self.bits))
        if self.bits == 1:
            return np.asarray(np.where(rng.random(n) < truthful, data[0], 1 - data[0]))
        bits = np.asarray(data)
        return np.where(rng.random((n, self.bits)) < truthful, bits, 1 - bits)


@dataclass(frozen=True)
class Geometric:
    """Two-sided geometric noise on a lattice.

    It has ``steps`` points to a unit; epsilon is exact for a shift of one unit.

    With many steps it is Laplace noise; with one, every output's likelihood ratio is e^epsilon or e^-epsilon.
    """

    epsilon: float
    steps: int = 1

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` noisy values of the first entry, in steps: P[noise = k] is proportional to e^(-epsilon |k| / steps)."""
        success = -math.expm1(-self.epsilon / self.steps)
        return self.steps * int(data[0]) + rng.geometric(success, n) - rng.geometric(success, n)


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise on the first entry, rounded.

    Its standard deviation is 1; the entry is moved by ``mu``.

    Without the rounding the claim would be false: double-precision outputs on 0 and on 1 lie on different lattices
    (design, section 4), and the auditor finds that. Rounding to multiples of 2^-20 is a function of the output alone,
    post-processing, so it can only lower mu; cells a millionth wide lower it by less than 10^-12, so the margin stays
    zero for any number of draws that is made here.
    """

    mu: float = 1.0

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Array:
        """``n`` noisy values."""
        noisy: Array = self.mu * float(data[0]) + rng.standard_normal(n)
        return np.round(noisy / _LATTICE) * _LATTICE


@dataclass(frozen=True)
class Coin:
    """Heads with probability ``p`` or ``q``, by the data.

    One event is the whole distribution: ``p`` is of data 1 and ``q`` of data 0.
    """

    p: float
    q: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` coins."""
        return (rng.random(n) < (self.p if data[0] else self.q)).astype(np.int64)


def at_the_cap(claim: Guarantee, q: float, level: float | None = None) -> Coin:
    """Make a coin whose heads are on a level's cap.

    Parameters
    ----------
    claim : Guarantee
        Its cap is that of the coin.
    q : float
        Probability of heads on data 0, in [0, 1].
    level : float, optional
        The level; the claimed one, for tests at zero margin, if it is not given.
    """
    return Coin(float(claim.cap(np.array(q), claim.level if level is None else level)), q)


@dataclass(frozen=True)
class Above:
    """The event {output > cut}."""

    cut: float

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Which outputs are in it."""
        return outputs > self.cut


def all_ones(outputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Compute the event that every coordinate is 1."""
    return np.asarray((outputs == 1).all(axis=1))


_ONE, _ZERO = np.array([1]), np.array([0])
PAIR = (Pair(_ONE, _ZERO, "1 against 0"),)
_SEVERAL = (Pair(np.ones(_BITS, np.int64), np.zeros(_BITS, np.int64), f"{'1' * _BITS} against {'0' * _BITS}"),)
_SEARCH = tuple(
    pair
    for k in range(_RECORDS)
    for pair in (Pair(_ONE, _ZERO, f"record {k}"), Pair(_ZERO, _ONE, f"record {k}, other order"))
)

#: The claim of most families.
_PURE = PureDP(1.0)
#: delta at which a shift of one standard deviation has epsilon exactly 1.
_APPROXIMATE = ApproxDP(1.0, GaussianCurve(1.0).delta(1.0))
_RHO, _RENYI = ZCDP(0.5), RenyiDP({2.0: 0.3, 8.0: 1.1})
#: The point of the antidiagonal that is on the cap.
_KINK = float(optimize.brentq(lambda p: float(_RHO.level_of(np.array(p), np.array(1 - p))) - _RHO.rho, 0.5, 0.99))
_PIECES = TradeoffCurve((0.0, 0.2, 1.0), (0.7, 0.4, 0.0), "of two pieces")


def make_response(level: float) -> Family:
    """Make a family of randomised response on one bit."""
    return Family("randomised response", Response(level), _PURE, PAIR, event=Above(0.5))


def make_discrete_laplace(level: float) -> Family:
    """Make a family of a count with two-sided geometric noise.

    The likelihood ratio of every output above 0 is e^level.
    """
    return Family("discrete Laplace", Geometric(level), _PURE, PAIR)


def make_lattice_laplace(level: float) -> Family:
    """Make a family of Laplace noise on a lattice.

    Outputs beyond the larger value have the likelihood ratio e^level.
    """
    return Family("Laplace on a lattice", Geometric(level, _STEPS), _PURE, PAIR, event=Above(_STEPS - 0.5))


def make_gaussian(level: float) -> Family:
    """Make a family of Gaussian noise, with a claimed mu.

    Every threshold attains it.
    """
    return Family("Gaussian, claimed mu", Gaussian(level), GaussianDP(1.0), PAIR, event=Above(0.5 * level))


def make_gaussian_delta(level: float) -> Family:
    """Make a family of Gaussian noise, with a claimed epsilon and delta.

    Epsilon at the claimed delta is ``level``.
    """
    return Family("Gaussian, claimed epsilon and delta", Gaussian(_mu(level)), _APPROXIMATE, PAIR)


def make_rare(level: float) -> Family:
    """Make a family with a rare event, on the cap of ``level``."""
    return Family("rare event", at_the_cap(_PURE, _RARE, level), _PURE, PAIR, event=Above(0.5))


def make_several(level: float) -> Family:
    """Make a family of several randomised bits, with ``level`` for all."""
    return Family(f"{_BITS} bits at once", Response(level, _BITS), _PURE, _SEVERAL, event=all_ones)


def _mu(level: float) -> float:
    """Shift, in standard deviations, whose epsilon at the claimed delta is ``level``."""
    if level == _APPROXIMATE.epsilon:
        return 1.0
    return float(optimize.brentq(lambda mu: GaussianCurve(mu).delta(level) - _APPROXIMATE.delta, 0.1, 10.0))


@dataclass(frozen=True)
class Graded:
    """A mechanism at any level, all claimed to have the level 1.

    Parameters
    ----------
    at : callable
        ``level -> Family``, with the claim of level 1 whatever the level.
    masses : callable
        ``level -> Masses``: the distributions of the outputs on the family's pair, for the oracle.
    """

    at: Callable[[float], Family]
    masses: Callable[[float], Masses]


def _response_masses(level: float) -> Masses:
    p = 1 / (1 + math.exp(-level))
    return Masses(np.array([p, 1 - p]), np.array([1 - p, p]))


def _laplace_masses(level: float) -> Masses:
    reach = math.ceil(_REACH * _STEPS / level)
    k = np.arange(-reach, reach + _STEPS + 1)
    p, q = (np.exp(-level / _STEPS * np.abs(k - shift)) for shift in (_STEPS, 0))
    return Masses(p / p.sum(), q / q.sum())


def _gaussian_masses(mu: float) -> Masses:
    from scipy import stats  # takes longer to import than numpy

    edges = np.linspace(-8.0, 8.0 + mu, _CELLS)
    return from_cdfs(stats.norm(mu).cdf, stats.norm(0.0).cdf, edges)


def _delta_masses(level: float) -> Masses:
    return _gaussian_masses(_mu(level))


def _rare_masses(level: float) -> Masses:
    coin = at_the_cap(_PURE, _RARE, level)
    return Masses(np.array([coin.p, 1 - coin.p]), np.array([coin.q, 1 - coin.q]))


def _several_masses(level: float) -> Masses:
    from scipy import stats  # takes longer to import than numpy

    # The likelihood ratio depends on the number of ones alone.
    p = stats.binom.pmf(np.arange(_BITS + 1), _BITS, 1 / (1 + math.exp(-level / _BITS)))
    return Masses(p, p[::-1])


#: What power is measured on.
GRADED = (
    Graded(make_response, _response_masses),
    Graded(make_lattice_laplace, _laplace_masses),
    Graded(make_gaussian, _gaussian_masses),
    Graded(make_gaussian_delta, _delta_masses),
    Graded(make_rare, _rare_masses),
    Graded(make_several, _several_masses),
)

SEARCH = Family("search over 20 pairs", Response(1.0), _PURE, _SEARCH)
#: Symmetric, where the bounds of both orders of the pair meet, and far from it.
KINK = Family("coin at the kink of a zCDP cap", Coin(_KINK, 1 - _KINK), _RHO, PAIR)
RHO = Family("coin, claimed rho", at_the_cap(_RHO, 0.02), _RHO, PAIR)
RENYI = Family("coin, claimed Renyi bounds", at_the_cap(_RENYI, 0.1), _RENYI, PAIR)
DELTA = Family("coin, claimed delta at an epsilon", at_the_cap(DeltaDP(0.05, 1.0), 0.1), DeltaDP(0.05, 1.0), PAIR)
PIECES = Family("coin, claimed trade-off curve", at_the_cap(_PIECES, 0.2), _PIECES, PAIR)

#: What false alarms are counted on: what power is measured on, at the claimed level, and the rest, which have fewer
#: audits to save time.
NULLS = (
    *(graded.at(1.0) for graded in GRADED),
    DELTA,
    *(replace(family, share=0.2) for family in (SEARCH, KINK, RHO, RENYI, PIECES)),
)
