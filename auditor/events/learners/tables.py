"""Events on outputs that are tables, such as synthetic data: counts of marginals, ends of columns, scores of rows.

A table is a data frame of pandas, a list of dicts, or a list of rows of one length. A person's data may show in the
number of rows, in how many rows have a value or two values together, in the end or the middle of a column, or a little
in each row. Which places rows have in the output, and what single cells hold, is for other learners.

Nothing here bears on validity: features are chosen on half of the past draws and judged on the other half, and bets are
made on later draws only.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.screening import screen_coordinates
from auditor.targets.outputs import Batch, float_of, is_number
from auditor.targets.values import Typed, strip_type

Array = NDArray[np.float64]
#: Values of a table's columns, by the columns' names.
TableColumns: TypeAlias = Mapping[Hashable, Sequence[Any]]
#: Columns that are read together.
Codes: TypeAlias = "tuple[ColumnCode, ...]"

#: Rows of each table with each joint code, of each side.
Counted: TypeAlias = dict[Codes, tuple[Array, Array]]

#: Rows that a list of plain lists must have to be taken for a table: shorter ones are rather a few vectors.
_LEAST_ROWS = 3
#: Outputs a side that are looked at, and cells of theirs in all; arbitrary, they bound the time of a look to 0.2 s.
_OUTPUTS, _CELLS = 600, 200_000
#: Columns of which all pairs are looked at, by how clearly they differ; values of a column that are told apart, and
#: parts into which numbers are cut. Arbitrary.
_COLUMNS, _VALUES, _PARTS = 12, 8, 4
#: Features of each kind that are offered; arbitrary, each costs a look at every draw.
_OFFERED = 2
#: Scores of columns that are constant and differ are reduced to this many standard errors.
_HIGHEST = 1e6
_EXTREMES = ("smallest", "median", "largest")


def find_columns(output: object, wanted: Collection[Hashable] | None = None) -> TableColumns | None:
    """Find the columns of an output, None if it is no table.

    Parameters
    ----------
    output : object
        One output as plain data, see `auditor.targets.values.make_visible`.
    wanted : collection, optional
        Names of the columns that are read; by default all. In a list of dicts a key that is missing is None.
    """
    named: dict[Hashable, Sequence[Any]]
    if isinstance(output, Typed) and output.kind == "pandas.DataFrame" and isinstance(output.value, dict):
        values = output.value.get("values", ())  # a list where names repeat, or are no texts
        named = values if isinstance(values, dict) else dict(zip(output.value.get("columns", ()), values, strict=False))
    else:
        rows = _find_rows(output)
        if rows is None:
            return None
        if all(isinstance(row, dict) for row in rows):
            names = dict.fromkeys(key for row in rows for key in row) if wanted is None else wanted
            return {name: [row.get(name) for row in rows] for name in names}
        named = dict(enumerate(zip(*rows, strict=True)))
    return named if wanted is None else {name: named.get(name, ()) for name in wanted}


def _find_rows(output: object) -> Sequence[Any] | None:
    """Rows of an output that is a list of dicts or of rows of one length, None for others."""
    rows = strip_type(output)
    if not isinstance(rows, list | tuple):
        return None
    if all(isinstance(row, dict) for row in rows):
        return rows
    width = len(rows[0]) if isinstance(rows[0], list | tuple) else 0
    alike = width > 0 and all(isinstance(row, list | tuple) and len(row) == width for row in rows)
    return rows if alike and len(rows) >= _LEAST_ROWS else None


class Tables:
    """Columns of the tables of a batch, one after the other.

    Parameters
    ----------
    batch : ndarray or list
        Outputs.
    wanted : collection, optional
        Names of the columns that are read; by default all.

    Attributes
    ----------
    found : ndarray of shape (n,), bool
        Which outputs are tables.
    """

    def __init__(self, batch: Batch, wanted: Collection[Hashable] | None = None) -> None:
        none: list[TableColumns | None] = [None] * len(batch)
        self._columns = none if isinstance(batch, np.ndarray) else [find_columns(value, wanted) for value in batch]
        self.found = np.array([columns is not None for columns in self._columns], dtype=bool)

    @property
    def names(self) -> list[Any]:
        """Names of all columns that are texts or places, in order."""
        seen = dict.fromkeys(name for columns in self._columns for name in columns or ())
        return [name for name in seen if isinstance(name, str | int) and not isinstance(name, bool)]

    def values(self, name: Hashable) -> tuple[list[Any], NDArray[np.int64]]:
        """All values of a column, and the output that each belongs to."""
        parts = [() if columns is None else columns.get(name, ()) for columns in self._columns]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        return [strip_type(v) for part in parts for v in part], np.repeat(np.arange(len(parts)), lengths)

    def encode(self, codes: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Joint code of each row, and the output that it belongs to.

        Both are empty where the columns differ in length.
        """
        joined, owner = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        for k, code in enumerate(codes):
            values, here = self.values(code.column)
            if k and not np.array_equal(here, owner):
                return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
            joined, owner = (joined * code.size if k else 0) + code.encode(values), here
        return joined, owner

    def count(self, codes: Codes) -> Array:
        """Rows of each output with each joint code, shape (n, codes)."""
        size, n = math.prod(code.size for code in codes), len(self.found)
        joined, owner = self.encode(codes)
        return np.bincount(owner * size + joined, minlength=n * size).reshape(n, size).astype(np.float64)

    def sum(self, codes: Codes, weights: NDArray[Any]) -> Array:
        """Sum of the weights of the rows' joint codes, by output.

        NaN for what is no table.
        """
        joined, owner = self.encode(codes)
        total = np.bincount(owner, weights=weights[joined], minlength=len(self.found))
        return np.where(self.found, total, np.nan)


@dataclass(frozen=True)
class ColumnCode:
    """A column whose values have small numbers as codes.

    Parameters
    ----------
    column : str or int
        Its name, or its place.
    edges : tuple of float
        Numbers are cut there; empty for values that are told apart.
    values : tuple
        Other values that are told apart; the code of any further one is their number.
    """

    column: Any
    edges: tuple[float, ...] = ()
    values: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.edges) + 1 if self.edges else len(self.values) + 1

    def encode(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """Codes of a column's values, shape (rows,)."""
        if self.edges:
            return np.searchsorted(self.edges, _read_numbers(values, -math.inf)).astype(np.int64)
        known, other = {_key(value): k for k, value in enumerate(self.values)}, len(self.values)
        return np.array([known.get(_key(value), other) for value in values], dtype=np.int64)

    def describe(self, code: int) -> str:
        """A code in words."""
        if not self.edges:
            shown = repr(self.values[code]) if code < len(self.values) else "another value"
            return f"{self.column} = {shown}"
        if code == 0:
            return f"{self.column} <= {self.edges[0]:.6g}"
        low = f"{self.column} > {self.edges[code - 1]:.6g}"
        return low if code == len(self.edges) else f"{low} and <= {self.edges[code]:.6g}"


@dataclass(frozen=True)
class TableRows:
    """Number of rows of a table."""

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return np.array([_count_rows(output) for output in batch], dtype=np.float64)

    def below(self, cut: float) -> str:
        """In words."""
        return f"rows of the table <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"rows of the table > {cut:.6g}"


@dataclass(frozen=True)
class RowsWhere:
    """Number of rows in which one or two columns have certain values.

    Parameters
    ----------
    codes : tuple of ColumnCode
        The columns.
    wanted : tuple of int
        The code of each.
    """

    codes: Codes
    wanted: tuple[int, ...]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        marked = np.zeros(tuple(code.size for code in self.codes))
        marked[self.wanted] = 1.0
        return Tables(batch, [code.column for code in self.codes]).sum(self.codes, marked.reshape(-1))

    def _describe(self) -> str:
        return "rows with " + " and ".join(c.describe(k) for c, k in zip(self.codes, self.wanted, strict=True))

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe()} > {cut:.6g}"


@dataclass(frozen=True)
class ColumnEnd:
    """The smallest, middle or largest number of a column.

    Parameters
    ----------
    column : str or int
        Its name, or its place.
    which : {"smallest", "median", "largest"}
    """

    column: Any
    which: str

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return self.read(Tables(batch, [self.column]))

    def read(self, tables: Tables) -> Array:
        """The number of each table, NaN where it has none."""
        values, owner = tables.values(self.column)
        numbers = _read_numbers(values, math.nan)
        kept = ~np.isnan(numbers)
        numbers, owner = numbers[kept], owner[kept]
        ordered = numbers[np.lexsort((numbers, owner))]
        count = np.bincount(owner, minlength=len(tables.found))
        start = np.cumsum(count) - count
        place = start + {"smallest": 0 * count, "median": count // 2, "largest": count - 1}[self.which]
        return np.where(count > 0, np.append(ordered, np.nan)[np.where(count > 0, place, -1)], np.nan)

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.which} of column {self.column} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.which} of column {self.column} > {cut:.6g}"


@dataclass(frozen=True)
class RowScore:
    """Log-likelihood ratio of one or two columns, summed over rows.

    Parameters
    ----------
    codes : tuple of ColumnCode
        The columns.
    weights : tuple of float
        By the code, of two columns that of the first times the size of the second plus that of the second.
    """

    codes: Codes
    weights: tuple[float, ...]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return self.read(Tables(batch, [code.column for code in self.codes]))

    def read(self, tables: Tables) -> Array:
        """The score of each table."""
        return tables.sum(self.codes, np.array(self.weights))

    def _describe(self) -> str:
        return f"learned score of the rows by {' and '.join(str(code.column) for code in self.codes)}"

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe()} > {cut:.6g}"


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Features of tables that differ most, and the number of rows.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or not (len(x) and len(y)):
        return
    if any(not find_columns(side[0]) for side in (x, y)):
        return
    size = max(sum(map(len, (find_columns(output) or {}).values())) for side in (x, y) for output in side[:8])
    kept = min(max(_CELLS // max(size, 1), 8), _OUTPUTS)
    first, second = Tables(x[:kept]), Tables(y[:kept])
    if not (first.found.all() and second.found.all()):
        return
    yield TableRows(), math.inf
    columns = list(dict.fromkeys([*first.names, *second.names]))
    # As the features read them: with a place for every column, whether or not a table has it.
    first, second = Tables(x[:kept], columns), Tables(y[:kept], columns)
    ends = [ColumnEnd(column, which) for column in columns for which in _EXTREMES]
    yield from _best([(end, _rate(end.read(first), end.read(second))) for end in ends])
    learned = (_learn_code(name, [*first.values(name)[0], *second.values(name)[0]]) for name in columns)
    codes = [code for code in learned if code is not None]
    single: Counted = {(code,): (first.count((code,)), second.count((code,))) for code in codes}
    yield from _best(_rate_counts(single))
    clearest = sorted(single, key=lambda code: -float(_screen(*single[code]).max()))[:_COLUMNS]
    pairs: Counted = {
        (a, b): (first.count((a, b)), second.count((a, b))) for (a,), (b,) in itertools.combinations(clearest, 2)
    }
    yield from _best(_rate_counts(pairs))
    scores = _learn_scores({**single, **pairs})
    yield from _best([(score, _rate(score.read(first), score.read(second))) for score in scores])


def _best(found: Sequence[tuple[Feature, float]]) -> list[tuple[Feature, float]]:
    return sorted(found, key=lambda item: -item[1])[:_OFFERED]


def _count_rows(output: object) -> float:
    rows = _find_rows(output)
    if rows is not None:  # dicts without a key have no column
        return float(len(rows) if any(rows) else 0)
    columns = find_columns(output)
    return math.nan if columns is None else float(max(map(len, columns.values()), default=0))


def _read_numbers(values: Sequence[Any], other: float) -> Array:
    """Values as floats; ``other`` where there is no number."""
    numbers = np.array([float_of(v) if is_number(v) else math.nan for v in values], dtype=np.float64)
    numbers[np.isnan(numbers)] = other
    return numbers


def _key(value: object) -> tuple[type, Any]:
    return type(value), value if isinstance(value, Hashable) else repr(value)


def _learn_code(column: Any, values: Sequence[Any]) -> ColumnCode | None:
    """Codes for a column's most frequent values, or for parts of its range."""
    numbers = _read_numbers(values, math.nan)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) > len(values) / 2 and len(set(numbers.tolist())) > _VALUES:
        edges = np.unique(np.quantile(numbers, np.arange(1, _PARTS) / _PARTS))
        return ColumnCode(column, tuple(edges.tolist()))
    plain = [v for v in values if v is None or isinstance(v, str | bool | int | float)]
    often = [value for (_, value), _ in Counter(_key(v) for v in plain if v == v).most_common(_VALUES)]
    return ColumnCode(column, (), tuple(often)) if len(often) > 1 else None


def _rate(a: Array, b: Array) -> float:
    """How clearly a number differs between the sides, in standard errors."""
    return float(_screen(a[:, None], b[:, None])[0])


def _screen(a: Array, b: Array) -> Array:
    return np.minimum(screen_coordinates(a, b), _HIGHEST)


def _rate_counts(counted: Counted) -> list[tuple[Feature, float]]:
    """The combinations of codes whose numbers of rows differ most."""
    found: list[tuple[Feature, float]] = []
    for codes, (a, b) in counted.items():
        scores = _screen(a, b)
        for place in np.argsort(-scores)[:_OFFERED].tolist():
            wanted = np.unravel_index(place, tuple(code.size for code in codes))
            found.append((RowsWhere(codes, tuple(int(k) for k in wanted)), float(scores[place])))
    return found


def _learn_scores(counted: Counted) -> list[RowScore]:
    """Scores of the combinations whose pooled frequencies differ most, from smoothed counts."""
    rated = []
    for codes, (a, b) in counted.items():
        p, q = a.sum(axis=0) + 0.5, b.sum(axis=0) + 0.5
        p, q = p / p.sum(), q / q.sum()
        rated.append((float(np.sum((p - q) * np.log(p / q))), codes, np.log(p / q)))
    best = sorted(rated, key=lambda item: -item[0])[: 2 * _OFFERED]
    return [RowScore(codes, tuple(np.round(weights, 6).tolist())) for _, codes, weights in best]


CAUSES = {
    TableRows: ("length of the output", 1),
    RowsWhere: ("threshold on the number of rows of a table with certain values", 2),
    ColumnEnd: ("threshold on an end or the middle of a table's column", 2),
    RowScore: ("learned score of the rows of a table", 4),
}
#: Nats by which an event has to beat simpler ones, as for other learned scores.
PENALTIES = {RowScore: 3.0}
