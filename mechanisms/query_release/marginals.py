"""All t-way conjunctions of binary attributes, each answer with noise of its own, and mutants.

A conjunction is over t of d attributes, each as it is or negated: ``k = 2^t C(d, t)`` queries. Answers are shares of
the rows. Every row satisfies exactly one of the 2^t conjunctions over a set of t attributes.

Source: document 003, section 6.3; catalogue 000_001_003, tway_marginals_laplace.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.privacy.exact import DiscreteGaussianLaw, ProductLaw, TwoSidedGeometricLaw
from mechanisms.additive_noise.gaussian import sigma_for
from mechanisms.base.integer_noise import discrete_gaussian
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.base.queries import column_values
from mechanisms.query_release.counting_queries import advanced_epsilon

#: Most queries: the catalogue's bound.
_MOST = 10**6
#: Attributes whose rows are counted in a table of 2^d cells rather than sorted: 2^16 cells are as fast as 20,000 rows.
_TABULATED = 16
#: What is left of the sum of a tail when it is cut off is below e^-40 scales times the number of answers.
_LOGS = 40.0

# -------------------------------------------------------------------------------------- attributes


@dataclass(frozen=True)
class BinaryAttributes:
    """Binary attributes of a row: whether a column's value is at least a cut.

    Parameters
    ----------
    cuts : tuple of (hashable, float)
        Column (see `mechanisms.base.queries.column_values`) and cut of each attribute; at least one, at most 62.
    """

    cuts: tuple[tuple[Hashable, float], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", tuple((column, float(cut)) for column, cut in self.cuts))
        require(1 <= len(self.cuts) <= 62, "1 to 62 attributes", len(self.cuts))
        require(all(math.isfinite(cut) for _, cut in self.cuts), "finite cuts", self.cuts)

    def __len__(self) -> int:
        return len(self.cuts)

    def __call__(self, data: Dataset) -> NDArray[np.bool_]:
        """Return the attributes of all rows, bool of shape (rows, d)."""
        return np.stack([column_values(data, column) >= cut for column, cut in self.cuts], axis=1)

    def patterns(self, data: Dataset) -> tuple[NDArray[np.bool_], IntArray]:
        """Return the different rows of attributes, bool of shape (patterns, d), and how many rows have each."""
        codes = np.zeros(len(data), dtype=np.int64)
        for j, (column, cut) in enumerate(self.cuts):
            codes += (column_values(data, column) >= cut).astype(np.int64) << j
        if len(self) <= _TABULATED:
            counts = np.bincount(codes)
            kinds = np.flatnonzero(counts)
            multiplicity = counts[kinds]
        else:
            kinds, multiplicity = np.unique(codes, return_counts=True)
        patterns = (kinds[:, None] >> np.arange(len(self))) & 1
        return patterns.astype(np.bool_), np.asarray(multiplicity, dtype=np.int64)


def subsets(d: int, size: int) -> IntArray:
    """All sets of `size` of d attributes, int64 of shape (C(d, size), size), in lexicographic order."""
    listed = np.fromiter(itertools.chain.from_iterable(itertools.combinations(range(d), size)), dtype=np.int64)
    return listed.reshape(math.comb(d, size), size)


# -------------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class _Marginals:
    """What all calibrations share.

    Parameters
    ----------
    attributes : BinaryAttributes
        The d attributes.
    t : int
        Attributes in a conjunction, from 1 to d.
    size : int
        Number of rows n, which is public.
    epsilon : float
        Claimed level, under replace_one.

    Raises
    ------
    ValueError
        If a parameter is out of range, or there are more than a million queries.
    """

    attributes: BinaryAttributes
    t: int
    size: int
    epsilon: float

    def __post_init__(self) -> None:
        fits = isinstance(self.t, (int, np.integer)) and 1 <= self.t <= len(self.attributes)
        require(fits, f"t from 1 to {len(self.attributes)}", self.t)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a public size >= 1", self.size)
        require_positive("epsilon", self.epsilon)
        require(self.queries <= _MOST, f"at most {_MOST} queries", self.queries)

    @property
    def sets(self) -> int:
        """Number of sets of attributes, ``C(d, t)``."""
        return math.comb(len(self.attributes), self.t)

    @property
    def queries(self) -> int:
        """Number of queries, ``k = 2^t C(d, t)``."""
        return self.sets << self.t

    @property
    def unit(self) -> float:
        """What a row is worth in an answer."""
        return 1.0 / self.size

    def counts(self, data: Dataset) -> IntArray:
        """Rows that satisfy each conjunction, int64 of shape (k,): set by set (see `subsets`), 2^t of each set.

        Conjunction c of a set negates its attribute j if bit j of c is 0.

        Raises
        ------
        ValueError
            If the data do not have `size` rows.
        """
        require(len(data) == self.size, f"{self.size} rows", len(data))
        return contingency(*self.attributes.patterns(data), self.t)


def contingency(patterns: NDArray[np.bool_], multiplicity: IntArray, t: int) -> IntArray:
    """Counts of all conjunctions of t attributes, shape (2^t C(d, t),); see `_Marginals.counts`."""
    sets = subsets(patterns.shape[1], t)
    bits = patterns.astype(np.int64)
    codes = np.broadcast_to(np.arange(len(sets)) << t, (len(patterns), len(sets))).copy()
    for j in range(t):
        codes += bits[:, sets[:, j]] << j
    weights = np.repeat(multiplicity.astype(np.float64), len(sets))
    return np.bincount(codes.ravel(), weights, len(sets) << t).astype(np.int64)


@dataclass(frozen=True)
class _LaplaceMarginals(_Marginals):
    """With Laplace noise, on the integers."""

    def per_query(self) -> float:
        """Level that one answer has by itself."""
        # A row's replacement leaves one conjunction of every set and enters another.
        return self.epsilon / (2 * self.sets)

    @property
    def base(self) -> float:
        """Base of the noise on a count."""
        return base_for(self.per_query(), 1)

    @property
    def scale(self) -> float:
        """The Laplace scale of an answer, ``2 C(d, t) / (epsilon n)`` in the reference."""
        return self.unit / math.log1p(self.base - 1.0)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` vectors of answers; float64 of shape (n, k), multiples of 1/n."""
        require_draws(n)
        counts = self.counts(data)
        return np.asarray((counts + two_sided_geometric(self.base, (n, counts.size), rng)) * self.unit, np.float64)


@dataclass(frozen=True)
class PureMarginals(_LaplaceMarginals):
    """Laplace noise of scale ``2 C(d, t) / (epsilon n)``: pure epsilon-DP, with the l1 sensitivity as it is.

    See `_Marginals` for the parameters.
    """

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: two-sided geometric answers."""
        a = self.base
        return ProductLaw(tuple(TwoSidedGeometricLaw(int(c), a, self.unit) for c in self.counts(data)))

    def expected_largest(self) -> float:
        """Expectation of the largest of the k errors, exactly: the sum of its tail. At most ``scale H_k``."""
        log_a = math.log1p(self.base - 1.0)
        t = np.arange(math.ceil((_LOGS + math.log(self.queries)) / log_a), dtype=np.float64)
        single = 2.0 * np.exp(-log_a * t) / (self.base + 1.0)
        return float(-np.expm1(self.queries * np.log1p(-single)).sum()) * self.unit


@dataclass(frozen=True)
class ComposedMarginals(PureMarginals):
    """Laplace noise of scale ``1 / (eps0 n)``, with eps0 by advanced composition of k queries: as in the document.

    See `_Marginals` for the parameters.

    Parameters
    ----------
    delta : float
        In (0, 1).
    """

    delta: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.delta < 1, "delta in (0, 1)", self.delta)

    def per_query(self) -> float:
        """`mechanisms.query_release.counting_queries.advanced_epsilon` of all k queries."""
        return advanced_epsilon(self.epsilon, self.queries, self.delta)


@dataclass(frozen=True)
class GaussianMarginals(_Marginals):
    """Gaussian noise on the integers, for an l2 sensitivity of ``sqrt(2 C(d, t)) / n``: (epsilon, delta)-DP.

    See `_Marginals` for the parameters.

    Parameters
    ----------
    delta : float
        In (0, 1); the noise is that of the analytic calibration.
    """

    delta: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.delta < 1, "delta in (0, 1)", self.delta)

    @property
    def sigma(self) -> float:
        """Parameter of the noise on a count."""
        return sigma_for("analytic", self.epsilon, self.delta, math.sqrt(2.0 * self.sets))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` vectors of answers; float64 of shape (n, k), multiples of 1/n."""
        require_draws(n)
        counts = self.counts(data)
        return np.asarray((counts + discrete_gaussian(self.sigma, (n, counts.size), rng)) * self.unit, np.float64)

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: discrete Gaussian answers."""
        return ProductLaw(tuple(DiscreteGaussianLaw(int(c), self.sigma, self.unit) for c in self.counts(data)))


# --------------------------------------------------------------------------------------- sizes


def median_of_largest_laplace(k: int) -> float:
    """Median of the largest of k Laplace errors, in scales: ``-ln(1 - 2^(-1/k))``."""
    return -math.log(-math.expm1(-math.log(2.0) / k))


def median_of_largest_normal(k: int) -> float:
    """Median of the largest of k normal errors in absolute value, in standard deviations."""
    return -float(special.ndtri(-0.5 * math.expm1(-math.log(2.0) / k)))


def rows_needed(d: int, t: int, epsilon: float, error: float, *, delta: float = 0.0, composed: bool = False) -> float:
    """Rows with which the median of the largest error is `error`, by the continuous distributions.

    Parameters
    ----------
    d, t : int
        Attributes, and how many are in a conjunction.
    epsilon, delta : float
        Level. A positive delta: Gaussian noise.
    error : float
        Share of the rows.
    composed : bool
        With a positive delta: Laplace noise by advanced composition.

    Returns
    -------
    float
        n, not rounded.
    """
    sets = math.comb(d, t)
    k = sets << t
    if delta == 0.0:
        return 2.0 * sets / epsilon * median_of_largest_laplace(k) / error
    if composed:
        return median_of_largest_laplace(k) / (advanced_epsilon(epsilon, k, delta) * error)
    return sigma_for("analytic", epsilon, delta, math.sqrt(2.0 * sets)) * median_of_largest_normal(k) / error


# ----------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SensitivityOfAllMarginals(PureMarginals):
    """Noise as if one row moved all k answers, k/n: too much by 2^(t - 1)."""

    def per_query(self) -> float:
        """``epsilon / k``."""
        return self.epsilon / self.queries


@dataclass(frozen=True)
class OneSidedMarginalSensitivity(PureMarginals):
    """Noise for C(d, t)/n: the conjunctions that a row leaves are not counted."""

    def per_query(self) -> float:
        """``epsilon / C(d, t)``."""
        return self.epsilon / self.sets


@dataclass(frozen=True)
class MarginalsWithoutComposition(PureMarginals):
    """Noise for 1/n: every query has the whole budget."""

    def per_query(self) -> float:
        """``epsilon``."""
        return self.epsilon


@dataclass(frozen=True)
class NegativesByExactSubtraction(_LaplaceMarginals):
    """Only conjunctions without negations are noisy; the others subtract them from exact counts of fewer attributes.

    The count of ``x and not y`` is the exact count of x less the noisy one of ``x and y``, and so on by inclusion and
    exclusion: within a set of attributes, all 2^t answers have one noise, with signs.
    """

    def per_query(self) -> float:
        """``epsilon / C(d, t)``: a row enters one conjunction without negations of every set, or leaves it."""
        return self.epsilon / self.sets

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` vectors of answers; float64 of shape (n, k)."""
        require_draws(n)
        counts = self.counts(data)
        noise = two_sided_geometric(self.base, (n, self.sets, 1), rng)
        negated = self.t - np.array([c.bit_count() for c in range(1 << self.t)])
        steps = counts.reshape(self.sets, -1) + np.where(negated % 2, -noise, noise)
        return np.asarray(steps.reshape(n, -1) * self.unit, dtype=np.float64)


def _without_composition(base: PureMarginals) -> float:
    return 2.0 * base.sets * base.epsilon


def _over_noised(base: PureMarginals) -> float:
    return base.epsilon / 2.0 ** (base.t - 1)


MUTANTS: dict[str, Mutant[PureMarginals]] = tabulate_mutants(
    Mutant(
        "sensitivity_k_over_n",
        Twin(SensitivityOfAllMarginals),
        _over_noised,
        "benign",
        "noise for k moved answers; a row moves 2 C(d, t) of them",
    ),
    Mutant(
        "sensitivity_one_sided",
        Twin(OneSidedMarginalSensitivity),
        TimesEpsilon(2.0),
        "violation",
        "noise for C(d, t) moved answers: a row and its complement differ in twice as many",
    ),
    Mutant(
        "no_composition",
        Twin(MarginalsWithoutComposition),
        _without_composition,
        "violation",
        "noise for one query: a row and its complement differ in 2 C(d, t) answers",
    ),
    Mutant(
        "negatives_by_exact_subtraction",
        Twin(NegativesByExactSubtraction),
        unbounded,
        "violation",
        "answers that share an attribute add up to its exact count",
    ),
)
