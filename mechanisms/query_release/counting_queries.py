"""k counting queries with Laplace noise, calibrated by basic or by advanced composition, and how many can be answered.

Answers are fractions of the rows, as in lectures 1 to 3 of document 003. Each gets Laplace noise of scale
``1 / (eps0 n)``, with ``eps0 = eps / k`` for eps-DP (basic composition) or, for (eps, delta)-DP, the eps0 at which the
advanced composition theorem gives eps.

Source: document 003, section 2.1.2 (end) and section 3.1; document 001, section 12.3 (opening); catalogue 000_001_003,
k_counting_queries_laplace, laplace_query_capacity and A11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy import optimize

from auditor.privacy.exact import ProductLaw, TwoSidedGeometricLaw, advanced_composition, composed, curve
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.base.queries import Query, Relation, column_values

# ---------------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class ThresholdCounts:
    """Counts of the rows whose value is at least a cut, for k cuts; equal cuts are queries of their own.

    Parameters
    ----------
    column : hashable or None
        See `mechanisms.base.queries.column_values`.
    cuts : tuple of float
        At least one. A row below all cuts replaced by one above all moves every count by 1.
    """

    column: Hashable | None
    cuts: tuple[float, ...]

    relation: ClassVar[Relation] = "replace_one"
    linf_sensitivity: ClassVar[float] = 1.0
    granularity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", tuple(float(cut) for cut in self.cuts))
        require(len(self.cuts) > 0, "at least one cut", self.cuts)
        require(all(math.isfinite(cut) for cut in self.cuts), "finite cuts", self.cuts)

    @property
    def sensitivity(self) -> float:
        """Number of cuts, l1 norm."""
        return float(len(self.cuts))

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the counts, float64 of shape (k,)."""
        values = np.sort(column_values(data, self.column).astype(np.float64))
        below = np.searchsorted(values, np.array(self.cuts), side="left")
        return (len(values) - below).astype(np.float64)


def spread_cuts(column: Hashable | None, low: float, high: float, k: int) -> ThresholdCounts:
    """Return k different cuts at equal distances, the first above `low` and the last `high`."""
    require(k >= 1, "at least one query", k)
    require(math.isfinite(low) and math.isfinite(high) and low < high, "finite low < high", (low, high))
    return ThresholdCounts(column, tuple((low + (high - low) * np.arange(1, k + 1) / k).tolist()))


# ------------------------------------------------------------------------------- calibration


@lru_cache(maxsize=4096)
def advanced_epsilon(epsilon: float, k: int, delta: float) -> float:
    """Largest eps0 for which k mechanisms that are eps0-DP are (epsilon, delta)-DP by advanced composition.

    A11 solved for eps0: ``epsilon = eps0 sqrt(2 k ln(1 / delta)) + k eps0 tanh(eps0 / 2)``, rounded down.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    require_positive("epsilon", epsilon)
    require(isinstance(k, (int, np.integer)) and k >= 1, "at least one query", k)
    require(0 < delta < 1, "delta in (0, 1)", delta)
    # The first term alone is at least epsilon here.
    highest = epsilon / math.sqrt(2.0 * k * -math.log(delta))
    found = float(optimize.brentq(lambda e: advanced_composition(e, k, delta)[0] - epsilon, 0.0, highest, xtol=1e-300))
    while advanced_composition(found, k, delta)[0] > epsilon:
        found = math.nextafter(found, 0.0)
    return found


# -------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class _CountingBase:
    """What the mechanism shares with its mutants: everything but a distribution."""

    query: Query
    size: int
    epsilon: float
    delta: float = 0.0
    step: float = 1.0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a public size >= 1", self.size)
        require(0 <= self.delta < 1, "delta in [0, 1)", self.delta)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5 and self.step <= 1, "a power of two, at most 1, as step", self.step)
        same = self.query.granularity == 1.0 and self.query.linf_sensitivity == 1.0
        require(same and self.query.relation == "replace_one", "a vector of counts under replace_one", self.query)

    @property
    def queries(self) -> int:
        """How many queries are answered: k, as every count can move by 1."""
        return round(self.query.sensitivity)

    def per_query(self) -> float:
        """Level eps0 to which one answer is calibrated."""
        if self.delta == 0.0:
            return self.epsilon / self.queries
        return advanced_epsilon(self.epsilon, self.queries, self.delta)

    @property
    def base(self) -> float:
        """Base of the integer noise; a count moves by ``1 / step`` lattice steps."""
        return base_for(self.per_query(), round(1.0 / self.step))

    @property
    def unit(self) -> float:
        """What a lattice step is worth in an answer."""
        return self.step / self.size

    @property
    def scale(self) -> float:
        """The Laplace scale b of an answer, ``1 / (eps0 n)``."""
        return self.unit / math.log1p(self.base - 1.0)

    def centre(self, data: Dataset) -> FloatArray:
        """Counts in lattice steps, shape (k,); ValueError if the data do not have `size` rows."""
        require(len(data) == self.size, f"{self.size} rows", len(data))
        return self.query(data) / self.step

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` vectors of answers; float64 of shape (n, k), multiples of the unit."""
        require_draws(n)
        centre = self.centre(data)
        return np.asarray((centre + two_sided_geometric(self.base, (n, centre.size), rng)) * self.unit, np.float64)


@dataclass(frozen=True)
class CountingQueries(_CountingBase):
    """Fractions of the rows that satisfy k predicates, each with Laplace noise on a lattice.

    Parameters
    ----------
    query : Query
        k counts under replace_one, each of which can move by 1: `ThresholdCounts` or `SeveralCounts`.
    size : int
        Number of rows n, which is public.
    epsilon : float
        Claimed level.
    delta : float, default 0
        0 for pure epsilon-DP by basic composition, noise of scale ``k / (epsilon n)``; otherwise the claimed delta,
        and noise of scale ``1 / (eps0 n)`` with `advanced_epsilon`.
    step : float, default 1
        Lattice step in rows, a power of two, at most 1. Counts are integers, so noise on the integers wastes nothing;
        k answers that all move are then exactly k-fold randomised response at eps0, the worst case of composition
        (A4).

    Raises
    ------
    ValueError
        If a parameter is out of range, or the query is none of counts.
    """

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: two-sided geometric answers, in units of ``step / n``."""
        a = self.base
        return ProductLaw(tuple(TwoSidedGeometricLaw(int(c), a, self.unit) for c in self.centre(data)))

    def exact_epsilon(self, delta: float) -> float:
        """Exact level at `delta` on a pair that moves every count by 1."""
        moved = round(1.0 / self.step)
        one = curve(TwoSidedGeometricLaw(0, self.base), TwoSidedGeometricLaw(moved, self.base))
        return composed(one, self.queries).epsilon(delta)

    def miss(self, error: float) -> float:
        """Probability that one answer is off by more than `error`."""
        return beyond(self.base, error / self.unit)

    def miss_any(self, error: float) -> float:
        """Probability that one of the k answers is off by more than `error`; they are independent."""
        return any_of(self.miss(error), self.queries)

    def bound(self, beta: float, k: int = 1) -> float:
        """Error that none of k answers exceeds with probability at least ``1 - beta``.

        ``b ln(k / beta)``, and half a unit, which is what the lattice costs over the Laplace distribution. Valid
        because: ``P[|Z| > t] = 2 a^-floor(t) / (a + 1) <= a^(-floor(t) - 1/2) < a^(1/2 - t)``, as ``2 sqrt a <= a +
        1``; and a union bound.
        """
        require(0 < beta < 1, "beta in (0, 1)", beta)
        require(k >= 1, "at least one answer", k)
        return self.scale * math.log(k / beta) + 0.5 * self.unit

    def expected_largest(self) -> float:
        """Expectation of the largest of the k errors, exactly: ``sum over t >= 0 of P[largest > t]``."""
        log_a = math.log1p(self.base - 1.0)
        # Beyond this the sum is below k e^-40 scales.
        t = np.arange(math.ceil((40.0 + math.log(self.queries)) / log_a), dtype=np.float64)
        single = 2.0 * np.exp(-log_a * t) / (self.base + 1.0)
        return float(-np.expm1(self.queries * np.log1p(-single)).sum()) * self.unit


def beyond(a: float, t: float) -> float:
    """``P[|Z| > t]`` of two-sided geometric noise of base a, for real t >= 0: ``2 a^-floor(t) / (a + 1)``."""
    require(t >= 0, "t >= 0", t)
    return min(1.0, 2.0 * math.exp(-math.log1p(a - 1.0) * math.floor(t)) / (a + 1.0))


def any_of(probability: float, k: int) -> float:
    """Probability that one of k independent events happens: ``1 - (1 - p)^k``."""
    return -math.expm1(k * math.log1p(-probability)) if probability < 1.0 else 1.0


# --------------------------------------------------------------------------------- capacity


def capacity(works: Callable[[int], bool]) -> int:
    """Largest k that works, for a property of k that holds up to some k and not beyond; 0 if not for k = 1."""
    if not works(1):
        return 0
    low, high = 1, 2
    while works(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def stated_capacity(epsilon: float, size: int, error: float, beta: float, *, together: bool) -> int:
    """How many queries basic composition can answer, by the formulas for the Laplace distribution.

    Parameters
    ----------
    epsilon : float
        Level of the whole.
    size : int
        Rows, n.
    error : float
        Accuracy alpha of an answer, a fraction.
    beta : float
        Allowed probability of a larger error.
    together : bool
        False: every answer for itself, ``k <= alpha eps n / ln(1 / beta)``. True: all of them at once, by a union
        bound, the largest k with ``k ln(k / beta) <= alpha eps n``.

    Returns
    -------
    int
        The capacity; 0 if not even one query can be answered.
    """
    require_positive("epsilon", epsilon)
    require(size >= 1, "at least one row", size)
    require(0 < error < 1, "an error in (0, 1)", error)
    require(0 < beta < 1, "beta in (0, 1)", beta)
    budget = error * epsilon * size
    if not together:
        return math.floor(budget / math.log(1.0 / beta))
    return capacity(lambda k: k * math.log(k / beta) <= budget)


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class BudgetOverSquareRootOnly(CountingQueries):
    """The budget divided by sqrt k, without the logarithm of 1 / delta."""

    def per_query(self) -> float:
        """``epsilon / sqrt k``."""
        return self.epsilon / math.sqrt(self.queries)


@dataclass(frozen=True)
class LargestSensitivity(CountingQueries):
    """Noise for the largest move of one answer, not for the sum of all."""

    def per_query(self) -> float:
        """The whole of epsilon."""
        return self.epsilon


@dataclass(frozen=True)
class DistinctQueriesCharged(CountingQueries):
    """k counted after equal queries were removed, though each of them is answered, with noise of its own."""

    @property
    def distinct(self) -> int:
        """Number of different cuts."""
        asked: Any = self.query
        return len(set(asked.cuts))

    def per_query(self) -> float:
        """The budget divided by the number of distinct queries."""
        if self.delta == 0.0:
            return self.epsilon / self.distinct
        return advanced_epsilon(self.epsilon, self.distinct, self.delta)


@dataclass(frozen=True)
class SameNoiseForAllCounts(_CountingBase):
    """One draw of noise for all answers: their differences are exact."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` vectors of answers; float64 of shape (n, k)."""
        require_draws(n)
        centre = self.centre(data)
        return np.asarray((centre + two_sided_geometric(self.base, (n, 1), rng)) * self.unit, np.float64)


@dataclass(frozen=True)
class _Level:
    """Exact level at the claimed delta of a mutant with another scale."""

    mutant: Callable[..., CountingQueries]

    def __call__(self, base: CountingQueries) -> float:
        """Return it for the parameters of `base`."""
        return self.mutant(base.query, base.size, base.epsilon, base.delta, base.step).exact_epsilon(base.delta)


MUTANTS: dict[str, Mutant[CountingQueries]] = tabulate_mutants(
    Mutant(
        "sqrt_k_without_log",
        Twin(BudgetOverSquareRootOnly),
        _Level(BudgetOverSquareRootOnly),
        "violation",
        "eps0 = eps / sqrt k: a row that moves all counts",
    ),
    Mutant(
        "largest_sensitivity_only",
        Twin(LargestSensitivity),
        _Level(LargestSensitivity),
        "violation",
        "scale 1 / (eps n) for each of k answers: k eps on a row that moves all counts",
    ),
    Mutant(
        "noise_reused",
        Twin(SameNoiseForAllCounts),
        unbounded,
        "violation",
        "one draw for all answers: a row that moves one count and not another",
    ),
    Mutant(
        "k_after_dedup",
        Twin(DistinctQueriesCharged),
        _Level(DistinctQueriesCharged),
        "violation",
        "k counted without repetitions: k / k' times eps; thresholds only",
    ),
)
