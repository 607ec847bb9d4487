"""Queries with declared sensitivity, on tables, arrays and plain vectors of answers.

Every query is a frozen dataclass, callable on a dataset, whose answer is a float64 array of shape
``()`` or ``(d,)``. It declares

* ``relation``: which datasets are neighbours, ``"replace_one"`` (same size, one row changed) or
  ``"add_remove_one"`` (one row more or less);
* ``sensitivity``: the most the answer moves between neighbours, in the l1 norm;
* ``linf_sensitivity``: the most one coordinate moves;
* ``granularity``: a number of which all answers are exact multiples, 0.0 where there is none.

The declared numbers hold for the float64 answers that are returned, not only for the real-valued
query: counts are exact, and sums add integers after rounding each row to a lattice.

Source: catalogue 000_001_003, neighbour_convention and laplace_structured_queries (c).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.datasets.pandas_types import is_frame
from mechanisms.base.mechanism import Dataset, FloatArray, require, require_positive

Relation: TypeAlias = Literal["replace_one", "add_remove_one"]

# Integers up to here are exact in float64.
_EXACT = 2**53
# Rows are at most this many lattice steps from zero, so that 2^21 rows sum exactly.
_MAX_ROW_STEPS = 2**32


class Query(Protocol):
    """What a mechanism needs to know about a query; see the module's docstring."""

    @property
    def relation(self) -> Relation:
        """Which datasets are neighbours."""
        ...

    @property
    def sensitivity(self) -> float:
        """Most the answer moves between neighbours, l1 norm."""
        ...

    @property
    def linf_sensitivity(self) -> float:
        """Most one coordinate of the answer moves between neighbours."""
        ...

    @property
    def granularity(self) -> float:
        """All answers are exact multiples of this; 0.0 if of nothing."""
        ...

    def __call__(self, data: Dataset, /) -> FloatArray:
        """Return the answer, float64, shape () or (d,)."""
        ...


def column_values(data: Dataset, column: Hashable | None = None) -> NDArray[Any]:
    """Return one column of a dataset as an array of shape (rows,).

    Parameters
    ----------
    data : DataFrame, or array-like of one or two dimensions
        Rows are people.
    column : hashable, optional
        A DataFrame's label or a two-dimensional array's index; None for one-dimensional data.

    Raises
    ------
    ValueError
        If the column does not exist, or is given for one-dimensional data.
    """
    if is_frame(data):
        if column not in data.columns:  # asked for every draw: the message is only made where it is needed
            raise ValueError(f"expected a column among {list(data.columns)}, got {column!r}")
        return np.asarray(data[column].to_numpy())
    array = np.asarray(data)
    if array.ndim == 1:
        require(column is None, "no column for one-dimensional data", column)
        return array
    require(array.ndim == 2, "data of one or two dimensions", array.shape)
    width = array.shape[1]
    if not isinstance(column, int) or not 0 <= column < width:
        raise ValueError(f"expected a column index from 0 to {width - 1}, got {column!r}")
    return np.asarray(array[:, column])


def _require_relation(relation: str) -> None:
    require(relation in get_args(Relation), f"a relation among {get_args(Relation)}", relation)


class CountingQuery:
    """What all counts of rows declare."""

    @property
    def sensitivity(self) -> float:
        """One row counts or does not: 1."""
        return 1.0

    @property
    def linf_sensitivity(self) -> float:
        """One row counts or does not: 1."""
        return 1.0

    @property
    def granularity(self) -> float:
        """Counts are integers: 1."""
        return 1.0


@dataclass(frozen=True)
class Count(CountingQuery):
    """Number of rows with ``low <= value <= high``, or with ``value == equals``.

    Parameters
    ----------
    column : hashable, optional
        See `column_values`.
    low, high : float
        Closed range; a NaN value is never inside.
    equals : hashable, optional
        Count this value instead of a range.
    relation : Relation, default "replace_one"
        The sensitivity is 1 under both relations.
    """

    column: Hashable | None = None
    low: float = -math.inf
    high: float = math.inf
    equals: Hashable | None = None
    relation: Relation = "replace_one"

    def __post_init__(self) -> None:
        _require_relation(self.relation)
        require(self.low <= self.high, "low <= high", (self.low, self.high))
        whole = self.low == -math.inf and self.high == math.inf
        require(self.equals is None or whole, "either equals or a range", (self.equals, self.low, self.high))

    def matches(self, data: Dataset) -> NDArray[np.bool_]:
        """Return which rows count, bool of shape (rows,)."""
        values = column_values(data, self.column)
        if self.equals is not None:
            return np.asarray(values == self.equals)
        return np.asarray((values >= self.low) & (values <= self.high))

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the count, shape ()."""
        return np.array(np.count_nonzero(self.matches(data)), dtype=np.float64)


@dataclass(frozen=True)
class SeveralCounts(CountingQuery):
    """A vector of counts over the same rows, which may overlap.

    One row can move every count by 1, so the l1 sensitivity declared is the number of counts (an
    upper bound if their ranges cannot all be entered at once) and the linf sensitivity is 1.
    """

    counts: tuple[Count, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(self.counts))
        require(len(self.counts) > 0, "at least one count", self.counts)
        relations = {count.relation for count in self.counts}
        require(len(relations) == 1, "counts with one relation", relations)

    @property
    def relation(self) -> Relation:
        """The relation all counts share."""
        return self.counts[0].relation

    @property
    def sensitivity(self) -> float:
        """Number of counts."""
        return float(len(self.counts))

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the counts, shape (len(counts),)."""
        return np.array([count(data) for count in self.counts], dtype=np.float64)


@dataclass(frozen=True)
class Histogram:
    """Counts of disjoint cells.

    Parameters
    ----------
    column : hashable, optional
        See `column_values`.
    edges : tuple of float
        Increasing; cell i is ``[edges[i], edges[i + 1])``, the last one closed. Rows outside are
        not counted. Fixed in advance: edges taken from the data would not be private.
    categories : tuple of hashables
        Distinct; cell i counts ``value == categories[i]``. Exactly one of the two is given.
    relation : Relation, default "replace_one"
        The sensitivity is 1 under add_remove_one and 2 under replace_one (a row leaves one cell
        and enters another), 1 with a single cell.
    """

    column: Hashable | None = None
    edges: tuple[float, ...] = ()
    categories: tuple[Hashable, ...] = ()
    relation: Relation = "replace_one"

    def __post_init__(self) -> None:
        _require_relation(self.relation)
        object.__setattr__(self, "edges", tuple(self.edges))
        object.__setattr__(self, "categories", tuple(self.categories))
        given = (self.edges, self.categories)
        require(bool(self.edges) != bool(self.categories), "either edges or categories", given)
        if self.edges:
            rising = len(self.edges) > 1 and all(np.diff(np.array(self.edges, dtype=np.float64)) > 0)
            require(rising, "at least two increasing edges", self.edges)
        require(len(set(self.categories)) == len(self.categories), "distinct categories", self.categories)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.categories) if self.categories else len(self.edges) - 1

    @property
    def sensitivity(self) -> float:
        """1 under add_remove_one, 2 under replace_one (1 with a single cell)."""
        return 1.0 if self.relation == "add_remove_one" else float(min(2, self.cells))

    @property
    def linf_sensitivity(self) -> float:
        """Each cell moves by at most 1."""
        return 1.0

    @property
    def granularity(self) -> float:
        """Counts are integers: 1."""
        return 1.0

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the cells' counts, shape (cells,)."""
        values = column_values(data, self.column)
        if self.categories:
            return np.array([np.count_nonzero(values == c) for c in self.categories], dtype=np.float64)
        edges = np.array(self.edges, dtype=np.float64)
        numbers = values.astype(np.float64)
        inside = numbers[(numbers >= edges[0]) & (numbers <= edges[-1])]
        return np.histogram(inside, edges)[0].astype(np.float64)


@dataclass(frozen=True)
class ClippedSum:
    """Sum of one column, each row clipped to [low, high] and rounded to a multiple of `resolution`.

    Parameters
    ----------
    column : hashable, optional
        See `column_values`. A NaN counts as `low`.
    low, high : float
        Clipping bounds, multiples of `resolution`.
    resolution : float, default 2**-20
        A power of two. Rows are added as integers, so the answer is exact and the declared
        sensitivity holds to the last bit. A millionth of a unit: far below any noise used here.
    relation : Relation, default "replace_one"
        The sensitivity is ``high - low`` under replace_one, ``max(|low|, |high|)`` under
        add_remove_one.
    """

    column: Hashable | None = None
    low: float = 0.0
    high: float = 1.0
    resolution: float = 2.0**-20
    relation: Relation = "replace_one"

    def __post_init__(self) -> None:
        _require_relation(self.relation)
        _require_power_of_two("resolution", self.resolution)
        for bound in (self.low, self.high):
            steps = bound / self.resolution
            fits = math.isfinite(steps) and abs(steps) <= _MAX_ROW_STEPS and steps == math.floor(steps)
            require(fits, f"bounds that are at most 2^32 multiples of {self.resolution}", bound)
        require(self.low < self.high, "low < high", (self.low, self.high))

    @property
    def sensitivity(self) -> float:
        """``high - low`` under replace_one, ``max(|low|, |high|)`` under add_remove_one."""
        if self.relation == "replace_one":
            return self.high - self.low
        return max(abs(self.low), abs(self.high))

    @property
    def linf_sensitivity(self) -> float:
        """The same: the answer is one number."""
        return self.sensitivity

    @property
    def granularity(self) -> float:
        """The resolution."""
        return self.resolution

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the sum, shape (); ValueError if it is too large to be exact."""
        rows = column_values(data, self.column).astype(np.float64)
        clipped = np.clip(np.where(np.isnan(rows), self.low, rows), self.low, self.high)
        total = int(np.floor(clipped / self.resolution + 0.5).astype(np.int64).sum())
        require(abs(total) <= _EXACT, "a sum of at most 2^53 resolution steps", total)
        return np.array(total * self.resolution, dtype=np.float64)


@dataclass(frozen=True)
class ClippedMean:
    """Mean of one column clipped to [low, high], for a public number of rows.

    Parameters
    ----------
    size : int
        The public number of rows; replace_one neighbours share it.
    column, low, high, resolution
        See `ClippedSum`.

    Notes
    -----
    The sensitivity is ``(high - low) / size``, to which a rounding of the division is added unless
    `size` is a power of two (then the division is exact and all answers are multiples of
    ``resolution / size``).
    """

    size: int
    column: Hashable | None = None
    low: float = 0.0
    high: float = 1.0
    resolution: float = 2.0**-20

    def __post_init__(self) -> None:
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a public size >= 1", self.size)
        self.total()

    def total(self) -> ClippedSum:
        """Return the sum this is the mean of."""
        return ClippedSum(self.column, self.low, self.high, self.resolution)

    @property
    def relation(self) -> Relation:
        """Always replace_one: the size is public."""
        return "replace_one"

    @property
    def sensitivity(self) -> float:
        """``(high - low) / size``, plus the rounding of two divisions where they round."""
        exact = (self.high - self.low) / self.size
        if self.granularity:
            return exact
        # Each quotient is off by at most 2^-53 of its size; twice that covers this sum's rounding.
        return exact + 4 * 2.0**-53 * max(abs(self.low), abs(self.high))

    @property
    def linf_sensitivity(self) -> float:
        """The same: the answer is one number."""
        return self.sensitivity

    @property
    def granularity(self) -> float:
        """``resolution / size`` if `size` is a power of two, else 0."""
        return self.resolution / self.size if self.size & (self.size - 1) == 0 else 0.0

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the mean, shape (); ValueError if the data do not have `size` rows."""
        rows = len(column_values(data, self.column))
        require(rows == self.size, f"{self.size} rows", rows)
        return np.array(self.total()(data) / self.size, dtype=np.float64)


@dataclass(frozen=True)
class IdentityQuery:
    """The identity: the dataset already is the number or vector of query answers.

    Parameters
    ----------
    sensitivity : float, default 1.0
        Most the vector moves between neighbours, l1 norm.
    linf_sensitivity : float, default 1.0
        Most one answer moves.
    granularity : float, default 0.0
        Set it where all answers are multiples of it; then they are checked.
    relation : Relation, default "replace_one"
        Only a label: what a neighbour is, is said by the two sensitivities.
    """

    sensitivity: float = 1.0
    linf_sensitivity: float = 1.0
    granularity: float = 0.0
    relation: Relation = "replace_one"

    def __post_init__(self) -> None:
        _require_relation(self.relation)
        require_positive("sensitivity", self.sensitivity)
        require_positive("linf_sensitivity", self.linf_sensitivity)
        both = (self.linf_sensitivity, self.sensitivity)
        require(self.linf_sensitivity <= self.sensitivity, "linf_sensitivity <= sensitivity", both)
        require(0 <= self.granularity < math.inf, "a finite granularity >= 0", self.granularity)

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the answers as float64, shape () or (d,)."""
        answers = np.array(data, dtype=np.float64)
        require(answers.ndim <= 1 and bool(np.all(np.isfinite(answers))), "finite answers, shape () or (d,)", data)
        if self.granularity:
            exact = bool(np.all(np.fmod(answers, self.granularity) == 0))
            require(exact, f"answers that are multiples of {self.granularity}", data)
        return answers


def _require_power_of_two(name: str, value: float) -> None:
    require_positive(name, value)
    require(math.frexp(value)[0] == 0.5, f"a power of two as {name}", value)
