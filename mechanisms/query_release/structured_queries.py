"""Structured queries of small global sensitivity: a maximum of counts, distances to a property, a bounded mean.

The mechanism is `additive_noise.laplace.LatticeLaplace` with one of these queries (the bounded mean is `queries.Mean`).
Counts are those of rows, where the document divides by n.

Source: D003, list after Proposition 1.1.4; catalogue 000_001_003, laplace_structured_queries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from auditor.privacy.exact import FiniteLaw, Law, ProductLaw
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.queries import ClippedMean, Count, Histogram, Relation, SeveralCounts

#: Datasets that are enumerated at most: a million calls of a query take about ten seconds.
_MOST_DATASETS = 10**6


@dataclass(frozen=True)
class _OfReplacedRows:
    """What the queries share: one replaced row moves an integer answer by at most 1."""

    @property
    def relation(self) -> Relation:
        """Always replace_one."""
        return "replace_one"

    @property
    def sensitivity(self) -> float:
        """At most 1."""
        return 1.0

    @property
    def linf_sensitivity(self) -> float:
        """The same: the answer is one number."""
        return self.sensitivity

    @property
    def granularity(self) -> float:
        """Answers are integers: 1."""
        return 1.0


@dataclass(frozen=True)
class LargestCount(_OfReplacedRows):
    """The largest of several counts; the sensitivity is that of one count, however many there are.

    Parameters
    ----------
    counts : tuple of Count
        At least one; their rows may overlap.
    """

    counts: tuple[Count, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(self.counts))
        self.several()

    def several(self) -> SeveralCounts:
        """Return the query for all counts."""
        return SeveralCounts(self.counts)

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the largest count, shape ()."""
        return np.array(self.several()(data).max())


@dataclass(frozen=True)
class DistanceToRange(_OfReplacedRows):
    """Hamming distance to the datasets in which between `low` and `high` rows are counted.

    Parameters
    ----------
    count : Count
        The rows in question. The universe has values that are counted and values that are not.
    low, high : int
        ``0 <= low <= high``; as many rows must be able to count, so `low` is at most the number of rows.

    Notes
    -----
    Replacing a row moves the count by at most 1, and can move it by 1 towards the range as long as it is outside: the
    distance is ``max(0, low - count, count - high)``. Examples: "at least a tenth of the persons are in poor health";
    with ``low = n``, "everybody has a positive income".
    """

    count: Count
    low: int
    high: float = math.inf

    def __post_init__(self) -> None:
        require(0 <= self.low <= self.high, "0 <= low <= high", (self.low, self.high))
        require(float(self.low).is_integer(), "an integer as low", self.low)
        require(self.high == math.inf or float(self.high).is_integer(), "an integer or inf as high", self.high)

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the distance, shape (); ValueError if no dataset of this size has the property."""
        require(self.low <= len(data), "at least as many rows as are to be counted", (len(data), self.low))
        count = float(self.count(data))
        return np.array(max(0.0, self.low - count, count - self.high))


@dataclass(frozen=True)
class DistanceToHistogram(_OfReplacedRows):
    """Hamming distance to the datasets with a given histogram.

    Parameters
    ----------
    cells : Histogram
        Disjoint cells; rows outside of all cells are one cell more.
    target : tuple of int
        Rows in each cell; the rest of the rows is outside.

    Notes
    -----
    Rows too many in one cell are replaced by rows that another lacks: the distance is ``sum max(0, target - count)``,
    over the cells and the outside, half of the l1 distance of the two histograms.
    """

    cells: Histogram
    target: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", tuple(self.target))
        require(len(self.target) == self.cells.cells, f"{self.cells.cells} numbers of rows", self.target)
        require(all(t == int(t) >= 0 for t in self.target), "numbers of rows >= 0", self.target)

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the distance, shape (); ValueError if the target has more rows than the data."""
        rows, wanted = len(data), sum(self.target)
        require(wanted <= rows, f"a target of at most {rows} rows", wanted)
        counts = self.cells(data)
        missing = np.maximum(0.0, np.array(self.target, dtype=np.float64) - counts).sum()
        return np.array(missing + max(0.0, (rows - wanted) - (rows - counts.sum())))


class DatasetProperty(Protocol):
    """A set of datasets."""

    def __call__(self, data: Sequence[Any], /) -> bool:
        """Whether a dataset is in it."""
        ...


def datasets(universe: Sequence[float], size: int) -> FloatArray:
    """All datasets of `size` rows, shape (len(universe)^size, size), the last row varying fastest.

    Raises
    ------
    ValueError
        If there are more than a million.
    """
    number = len(universe) ** size
    require(number <= _MOST_DATASETS, f"at most {_MOST_DATASETS} datasets", number)
    return np.array(list(itertools.product(universe, repeat=size)), dtype=np.float64).reshape(number, size)


def global_sensitivity(query: Callable[[Dataset], Any], universe: Sequence[float], size: int) -> float:
    """Largest move of a query between datasets that differ in one row, by enumeration of all datasets.

    Parameters
    ----------
    query : callable
        From a dataset, shape (size,), to a number.
    universe : sequence of float
        Values of a row.
    size : int
        Number of rows.

    Returns
    -------
    float
        ``max |q(x) - q(x')|`` over all pairs of neighbours.
    """
    answers = np.array([float(query(data)) for data in datasets(universe, size)])
    grid = answers.reshape((len(universe),) * size)
    # Datasets that differ in row i only lie on one line along axis i.
    return max(float(np.ptp(grid, axis=i).max()) for i in range(size))


def distance_by_enumeration(data: Sequence[float], member: DatasetProperty, universe: Sequence[float]) -> float:
    """Hamming distance of a dataset to the datasets of its size with a property, by enumeration; inf if there are none.

    Parameters
    ----------
    data : sequence of float
        A dataset.
    member : callable
        The property.
    universe : sequence of float
        Values of a row.
    """
    every = datasets(universe, len(data))
    inside = every[[member(one) for one in every]]
    return float((inside != np.asarray(data)).sum(axis=1).min(initial=len(data) + 1)) if len(inside) else math.inf


# -------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class ArgmaxReleased(LatticeLaplace):
    """The index of the largest count goes out beside the noisy value."""

    def _index(self, data: Dataset) -> int:
        query: Any = self.query
        return int(np.argmax(query.several()(data)))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n, 2): noisy largest count, index."""
        value = super().__call__(data, n, rng)
        return np.stack([value, np.full(n, float(self._index(data)))], axis=1)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`: the index is a point."""
        return ProductLaw((super().law(data), FiniteLaw((float(self._index(data)),), np.ones(1))))


@dataclass(frozen=True)
class SummedSensitivities(LatticeLaplace):
    """Noise for the sum of the counts' sensitivities: t times too much."""

    @property
    def calibration(self) -> float:
        """Number of counts."""
        query: Any = self.query
        return float(query.several().sensitivity)


@dataclass(frozen=True)
class ThresholdFromData(_OfReplacedRows):
    """Distance to "at least as many rows as another count finds", that other count taken from the data at hand.

    The property "count >= other" is a fixed set, at distance ``ceil((other - count) / 2)`` at least. What is computed
    here is the distance to a set that moves with the data, and moves by 2. The sensitivity that is declared is 1.
    """

    count: Count
    other: Count

    def __call__(self, data: Dataset) -> FloatArray:
        """Return ``max(0, other - count)``, shape ()."""
        return np.array(max(0.0, float(self.other(data)) - float(self.count(data))))


@dataclass(frozen=True)
class _DataDependent:
    """Builds the mechanism for `ThresholdFromData` (for `Mutant.build`)."""

    other: Count

    def __call__(self, base: LatticeLaplace) -> LatticeLaplace:
        """Return the mutant of a mechanism for `DistanceToRange`."""
        query: Any = base.query
        return LatticeLaplace(ThresholdFromData(query.count, self.other), base.epsilon, base.step)


@dataclass(frozen=True)
class SampledProperty:
    """Distance to the nearest of a few random members of the property, drawn anew in every call.

    Parameters
    ----------
    query : DistanceToRange
        The property, without an upper end. A row is taken for one bit, counted or not, and members are uniform among
        the strings of n bits with at least `low` ones.
    epsilon, step : float
        As for the reference.
    members : int, default 3
        Members drawn in a call; arbitrary.

    Notes
    -----
    For fixed members the distance moves by at most 1, so the level still holds: it is a mixture, over members that do
    not depend on the data, of mechanisms of that level. But the answer is no function of the data any more.
    """

    query: DistanceToRange
    epsilon: float
    step: float = 2.0**-10
    members: int = 3

    def __post_init__(self) -> None:
        require(self.query.high == math.inf, "a property without an upper end", self.query.high)
        require(self.members >= 1, "at least one member", self.members)

    def distances(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Distances of `n` calls, int64 of shape (n,).

        A member with k ones has them in random places: a hypergeometric number of them where the data have ones.
        """
        rows, ones = len(data), int(self.query.count(data))
        # Half of all strings of n bits have the property then, so that few members are drawn again.
        require(2 * self.query.low <= rows, "a property of at most half of the rows", (self.query.low, rows))
        member = rng.binomial(rows, 0.5, (n, self.members))
        while (few := member < self.query.low).any():
            member[few] = rng.binomial(rows, 0.5, int(few.sum()))
        shared = rng.hypergeometric(ones, rows - ones, member)
        found: IntArray = (ones + member - 2 * shared).min(axis=1).astype(np.int64)
        return found

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,)."""
        require_draws(n)
        base = LatticeLaplace(self.query, self.epsilon, self.step)
        noise = base(data, n, rng) - float(self.query(data))
        return np.asarray(self.distances(data, n, rng) + noise, dtype=np.float64)


def _sampled_property(base: LatticeLaplace) -> SampledProperty:
    query: Any = base.query
    return SampledProperty(query, base.epsilon, base.step)


@dataclass(frozen=True)
class UnclippedMean:
    """Mean of a column that is said to be in [0, 1], and is in [0, `high`]: the declared sensitivity is 1 / size.

    Parameters
    ----------
    size, column, high, resolution
        As for `queries.Mean`.
    """

    size: int
    column: Any
    high: float
    resolution: float = 2.0**-20

    @property
    def relation(self) -> Relation:
        """Always replace_one: the size is public."""
        return "replace_one"

    @property
    def sensitivity(self) -> float:
        """What holds for rows in [0, 1]."""
        return ClippedMean(self.size, self.column, 0.0, 1.0, self.resolution).sensitivity

    @property
    def linf_sensitivity(self) -> float:
        """The same: the answer is one number."""
        return self.sensitivity

    @property
    def granularity(self) -> float:
        """That of the mean."""
        return ClippedMean(self.size, self.column, 0.0, 1.0, self.resolution).granularity

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the mean, shape ()."""
        return ClippedMean(self.size, self.column, 0.0, self.high, self.resolution)(data)


@dataclass(frozen=True)
class _RangeNotClipped:
    """Builds the mechanism for `UnclippedMean` (for `Mutant.build`)."""

    high: float

    def __call__(self, base: LatticeLaplace) -> LatticeLaplace:
        """Return the mutant of a mechanism for a `queries.Mean` of [0, 1]."""
        query: Any = base.query
        return LatticeLaplace(
            UnclippedMean(query.size, query.column, self.high, query.resolution), base.epsilon, base.step
        )


def _over_noised(base: LatticeLaplace) -> float:
    query: Any = base.query
    return base.epsilon / float(query.several().sensitivity)


MUTANTS: dict[str, Mutant[LatticeLaplace]] = tabulate_mutants(
    Mutant(
        "argmax_released",
        Twin(ArgmaxReleased),
        unbounded,
        "violation",
        "LargestCount: the index goes out too, and changes where the top two tie",
    ),
    Mutant(
        "sum_of_sensitivities",
        Twin(SummedSensitivities),
        _over_noised,
        "benign",
        "LargestCount: noise for the sum of the sensitivities: true eps / t, errors t times too large",
    ),
    Mutant(
        "distance_to_sampled_property",
        _sampled_property,
        TimesEpsilon(1.0),
        "benign",
        "DistanceToRange: the distance to random members, no function of the data; a deviation",
    ),
)


def data_dependent_property(other: Count) -> Mutant[LatticeLaplace]:
    """Return the mutant of a mechanism for `DistanceToRange` whose property depends on the data.

    Parameters
    ----------
    other : Count
        The property is that as many rows count as this count finds in the data at hand.
    """
    note = "the property's threshold is a count of the same data: 2 eps where a row moves the two counts apart"
    return Mutant("data_dependent_property", _DataDependent(other), TimesEpsilon(2.0), "violation", note)


def range_not_clipped(high: float) -> Mutant[LatticeLaplace]:
    """Return the mutant of a mechanism for a `queries.Mean` of [0, 1] whose rows are in [0, high].

    Its level is high * eps up to the rounding of the mean to the lattice; the distribution has it exactly.
    """
    note = "rows in [0, high], noise for [0, 1]: high * eps"
    return Mutant("range_not_clipped", _RangeNotClipped(high), TimesEpsilon(high), "violation", note)
