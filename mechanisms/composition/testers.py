"""Differential privacy as a predicate: exact and sampled testers, and mistakes that are made in writing them.

The exact testers work on listed probabilities, independently of `auditor.privacy.exact`, or state the tail of the
privacy loss of a known pair in closed form. A sampled tester is a random thing itself: here it is a mechanism whose
input is a pair of distributions, and whose output is the lower bound that one audit of that pair reports. Its claim is
that the bound is above the true level in at most 5 % of audits.

Source: D001 definitions 12.1 and 12.2, proposition 12.3; D003 definition 1.1.1 and section 1.2; catalogue 000_001_003,
A1 to A5, A12, dp_definition_checks and privacy_loss_tail_condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from auditor.evidence.binomial import clopper_pearson
from auditor.privacy.laws import CauchyLaw, FiniteLaw, GaussianLaw, LaplaceLaw, Law, TwoSidedGeometricLaw
from mechanisms.base.mechanism import FloatArray, IntArray, require, require_draws
from mechanisms.base.noise import draw_index, two_sided_geometric

#: Outputs drawn at once, so that memory does not grow with the number of audits: some 50 MB.
_AT_ONCE = 2**21


# ------------------------------------------------------------------------------------- exact


def largest_loss(p: ArrayLike, q: ArrayLike) -> float:
    """Largest privacy loss in either order of two listed distributions: ``max |ln p/q|``.

    Parameters
    ----------
    p, q : array_like of shape (outcomes,)
        Probabilities of the same outcomes.

    Returns
    -------
    float
        `inf` if an outcome is possible under one distribution only; outcomes impossible under both are skipped.
    """
    first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    possible = (first > 0) | (second > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(first[possible]) - np.log(second[possible])).max())


def hockey_stick(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    """Smallest delta at ``epsilon`` for two listed distributions, in this order: the sum of ``max(0, p - e^eps q)``."""
    first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    return float(np.maximum(0.0, first - math.exp(epsilon) * second).sum())


def loss_event(law_p: Law, law_q: Law, epsilon: float) -> tuple[float, float]:
    """Probabilities under both distributions of the event that the privacy loss ``ln(p/q)`` is at least eps.

    Parameters
    ----------
    law_p, law_q : Law
        Two finite distributions, two Laplace, Gaussian or two-sided geometric distributions of equal scale, or two
        Cauchy distributions of one centre of which the first has the smaller scale.
    epsilon : float
        At least 0.

    Returns
    -------
    p, q : float
        p is the tail of the privacy loss, and ``p - e^eps q`` the smallest delta at eps, in this order of the
        distributions.

    Raises
    ------
    ValueError
        If no formula is known for the pair.

    Notes
    -----
    With centres 0 and s, in units of the scale, the loss of x is ``|x - s| - |x|`` for Laplace distributions and
    ``s^2/2 - s x`` for Gaussian ones, and that of k is ``ln a (|k - s| - |k|)`` for geometric ones: the event is a half
    line. For Cauchy distributions of scales ``s < t`` the ratio is ``cosh d + sinh d cos v`` with ``d = ln(t/s)`` and
    ``v = 2 arctan(x/s)``, which is uniform under the first distribution: the event is an interval around the centre.
    """
    match law_p, law_q:
        case FiniteLaw(), FiniteLaw():
            second = dict(zip(law_q.outcomes, law_q.probabilities.tolist(), strict=True))
            q = np.array([second.get(outcome, 0.0) for outcome in law_p.outcomes])
            # A tie is in the event; products of equal probabilities may differ in their last digits.
            inside = law_p.probabilities >= math.exp(epsilon) * q * (1 - 1e-12)
            return float(law_p.probabilities[inside].sum()), float(q[inside].sum())
        case LaplaceLaw(), LaplaceLaw() if law_p.scale == law_q.scale:
            shift = abs(law_p.loc - law_q.loc) / law_p.scale
            if epsilon > shift:
                return 0.0, 0.0
            unit, last = LaplaceLaw(0.0, 1.0), (shift - epsilon) / 2
            return float(unit.cdf(last)), float(unit.cdf(last - shift))
        case GaussianLaw(), GaussianLaw() if law_p.sigma == law_q.sigma:
            shift = abs(law_p.loc - law_q.loc) / law_p.sigma
            normal, end = GaussianLaw(0.0, 1.0), shift / 2 - epsilon / shift
            return float(normal.cdf(end)), float(normal.cdf(end - shift))
        case TwoSidedGeometricLaw(), TwoSidedGeometricLaw() if law_p.a == law_q.a:
            steps = abs(law_p.loc - law_q.loc)
            # The losses are ln a times steps, steps - 2, ...; the small number lets ties in.
            highest = math.floor((steps - epsilon / law_p.log_a) / 2 + 1e-12)
            unit_law = TwoSidedGeometricLaw(0, law_p.a)
            return (0.0, 0.0) if highest < 0 else (float(unit_law.cdf(highest)), float(unit_law.cdf(highest - steps)))
        case CauchyLaw(), CauchyLaw() if law_p.loc == law_q.loc and law_p.scale < law_q.scale:
            distance = math.log(law_q.scale / law_p.scale)
            cosine = (math.exp(epsilon) - math.cosh(distance)) / math.sinh(distance)
            angle = math.acos(min(1.0, max(-1.0, cosine)))
            return angle / math.pi, 2 / math.pi * math.atan(math.exp(-distance) * math.tan(angle / 2))
    raise ValueError(f"expected two distributions of one family whose loss is known, got {law_p!r} and {law_q!r}")


# ----------------------------------------------------------------------------------- sampled


def draw(law: Law, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw `n` numbers from a distribution; float64 of shape (n,).

    Raises
    ------
    ValueError
        If the distribution is none of those of one number.
    """
    match law:
        case LaplaceLaw():
            return rng.laplace(law.loc, law.scale, n)
        case GaussianLaw():
            return rng.normal(law.loc, law.sigma, n)
        case CauchyLaw():
            return np.asarray(law.loc + law.scale * rng.standard_cauchy(n), dtype=np.float64)
        case TwoSidedGeometricLaw():
            return law.step * (law.loc + two_sided_geometric(law.a, n, rng)).astype(np.float64)
        case FiniteLaw():
            return np.array(law.outcomes, dtype=np.float64)[draw_index(law.probabilities, n, rng)]
    raise ValueError(f"expected a distribution of one number, got {law!r}")


@lru_cache(maxsize=8)
def _limits(runs: int, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits for every count among so many runs, each at confidence 1 - alpha."""
    counts = np.arange(runs + 1)
    return clopper_pearson(counts, runs, alpha, "lower"), clopper_pearson(counts, runs, alpha, "upper")


@dataclass(frozen=True)
class SampledTester:
    """One audit of a pair of distributions from draws: a lower bound for the level, at a confidence.

    Called with a pair of distributions as its data. Each audit draws ``runs`` training and ``runs`` scoring outputs
    from either distribution. On the training outputs it chooses an order of the pair and an event; on the scoring
    outputs it counts that event and reports ``ln((P_lo - delta) / Q_hi)``, or 0 if that is negative, with exact
    one-sided limits at half the error each.

    Parameters
    ----------
    edges : tuple of float
        Ends of the cells that events are made of, increasing; public. Events are the cells in the order of the
        estimated likelihood ratio, up to one of them.
    delta : float, default 0.0
        The level is that of (eps, delta)-DP.
    runs : int, default 200
        Outputs in each of the four samples.
    error : float, default 0.05
        Probability, at most, that the bound exceeds the level.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    Valid because: given the training outputs the event and the order are fixed, so the two counts are binomial, each
    limit is wrong with probability at most ``error / 2``, and where both hold the bound is at most
    ``ln((p - delta) / q)``, which is at most the level for every event in either order.
    """

    edges: tuple[float, ...]
    delta: float = 0.0
    runs: int = 200
    error: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(self.edges))
        rising = len(self.edges) > 0 and all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False))
        require(rising, "at least one edge, increasing", self.edges)
        require(0 <= self.delta < 1, "delta in [0, 1)", self.delta)
        require(isinstance(self.runs, int) and self.runs >= 1, "a number of runs >= 1", self.runs)
        require(0 < self.error < 1, "an error in (0, 1)", self.error)

    def __call__(self, data: tuple[Law, Law], n: int, rng: np.random.Generator) -> FloatArray:
        """Make `n` audits of the pair of distributions `data`; their bounds, float64 of shape (n,), each at least 0."""
        require_draws(n)
        size = max(1, _AT_ONCE // self.runs)
        return np.concatenate([self._audits(data, min(size, n - k), rng) for k in range(0, n, size)])

    def samples(self, data: tuple[Law, Law], n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Training and scoring counts, int64 of shape (n, 2, cells): audits, distributions, cells."""
        training, scoring = (
            np.stack([self._counts(draw(law, n * self.runs, rng), n) for law in data], axis=1) for _ in range(2)
        )
        return training, scoring

    def orders(self) -> tuple[tuple[int, int], ...]:
        """Orders of the pair that are tried."""
        return ((0, 1), (1, 0))

    def bound(self, p: IntArray, q: IntArray) -> FloatArray:
        """Lower bound from the counts of an event under both distributions."""
        lower, upper = _limits(self.runs, self.error / 2)
        return np.asarray(np.log(np.maximum(lower[p] - self.delta, 1e-300) / upper[q]), dtype=np.float64)

    def _audits(self, data: tuple[Law, Law], n: int, rng: np.random.Generator) -> FloatArray:
        training, scoring = self.samples(data, n, rng)
        best, found = np.full(n, -np.inf), np.full(n, -np.inf)
        for first, second in self.orders():
            # Half a count more in every cell: cells that nothing fell into are neither first nor last.
            rank = np.argsort(-(training[:, first] + 0.5) / (training[:, second] + 0.5), axis=1, kind="stable")
            trained, scored = (
                [np.take_along_axis(counts[:, law], rank, axis=1).cumsum(axis=1) for law in (first, second)]
                for counts in (training, scoring)
            )
            promise = self.bound(*trained)
            last = np.argmax(promise, axis=1)[:, None]
            value = np.take_along_axis(promise, last, axis=1)[:, 0]
            judged = self.bound(*(np.take_along_axis(counts, last, axis=1)[:, 0] for counts in scored))
            found = np.where(value > best, judged, found)
            best = np.maximum(best, value)
        return np.asarray(np.maximum(found, 0.0), dtype=np.float64)

    def _counts(self, outputs: FloatArray, n: int) -> IntArray:
        """Outputs of n audits in each cell, shape (n, cells); cells are half open, the first and last unbounded."""
        cells = len(self.edges) + 1
        cell = np.searchsorted(np.array(self.edges), outputs, side="right")
        audit = np.repeat(np.arange(n), self.runs)
        return np.bincount(audit * cells + cell, minlength=n * cells).reshape(n, cells)


@dataclass(frozen=True)
class ScoredOnTrainingTester(SampledTester):
    """The event is chosen on the very outputs on which it is counted."""

    def samples(self, data: tuple[Law, Law], n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """The same counts twice."""
        training, _ = super().samples(data, n, rng)
        return training, training


@dataclass(frozen=True)
class OneOrderTester(SampledTester):
    """Only the order (x, x') is tried."""

    def orders(self) -> tuple[tuple[int, int], ...]:
        """The one order."""
        return ((0, 1),)


@dataclass(frozen=True)
class DeltaOnBothSidesTester(SampledTester):
    """Delta is taken from both probabilities: ``ln((P_lo - delta) / (Q_hi - delta))``."""

    def bound(self, p: IntArray, q: IntArray) -> FloatArray:
        """Lower bound, were it one."""
        lower, upper = _limits(self.runs, self.error / 2)
        return np.log(np.maximum(lower[p] - self.delta, 1e-300) / np.maximum(upper[q] - self.delta, 1e-300))


@dataclass(frozen=True)
class DeltaTwiceTester(SampledTester):
    """Delta is taken from the first probability twice: valid, and blind to what is between delta and twice that."""

    def bound(self, p: IntArray, q: IntArray) -> FloatArray:
        """Lower bound for the level at twice the delta."""
        lower, upper = _limits(self.runs, self.error / 2)
        return np.log(np.maximum(lower[p] - 2 * self.delta, 1e-300) / upper[q])


@dataclass(frozen=True)
class PointMassRatio:
    """The largest ratio of the frequencies of single outputs, as if the definition by points were for numbers.

    Parameters
    ----------
    runs : int, default 200
        Outputs drawn from either distribution in each audit.
    """

    runs: int = 200

    def __call__(self, data: tuple[Law, Law], n: int, rng: np.random.Generator) -> FloatArray:
        """Make `n` audits; float64 of shape (n,), `inf` where the second distribution lacks an output of the first."""
        require_draws(n)
        size = max(1, _AT_ONCE // self.runs)
        return np.concatenate([self._audits(data, min(size, n - k), rng) for k in range(0, n, size)])

    def _audits(self, data: tuple[Law, Law], n: int, rng: np.random.Generator) -> FloatArray:
        values = np.concatenate([draw(law, n * self.runs, rng) for law in data])
        audit = np.tile(np.repeat(np.arange(n), self.runs), 2)
        order = np.lexsort((values, audit))
        values, audit = values[order], audit[order]
        fresh = np.append(True, (values[1:] != values[:-1]) | (audit[1:] != audit[:-1]))
        distinct = np.cumsum(fresh) - 1  # distinct outputs of all audits, numbered
        from_second = order >= n * self.runs
        counts = [np.bincount(distinct[side], minlength=distinct[-1] + 1) for side in (~from_second, from_second)]
        with np.errstate(divide="ignore"):
            losses = np.log(counts[0]) - np.log(counts[1])
        first_of_audit = np.flatnonzero(np.append(True, np.diff(audit[fresh]) > 0))
        return np.asarray(np.maximum(np.maximum.reduceat(losses, first_of_audit), 0.0), dtype=np.float64)


@dataclass(frozen=True)
class LevelOverstatement:
    """By how much bounds exceed the true level."""

    level: float

    def __call__(self, bounds: FloatArray) -> FloatArray:
        """``max(0, bound - level)``, float64 of shape (n,)."""
        return np.maximum(np.asarray(bounds, dtype=np.float64) - self.level, 0.0)


@dataclass(frozen=True)
class LevelShortfall:
    """By how much bounds fall short of a level that an audit should certify."""

    level: float

    def __call__(self, bounds: FloatArray) -> FloatArray:
        """``max(0, level - bound)``, float64 of shape (n,)."""
        return np.maximum(self.level - np.asarray(bounds, dtype=np.float64), 0.0)
