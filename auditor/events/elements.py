"""Elements of structured outputs, and statistics of them.

Elements are what a container holds that is no container itself, in order; those of a dict or set in the order of their
keys' texts, so that equal outputs have equal elements in every process.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from auditor.targets.columns import ELEMENTS, Columns, OutputList, columns_of, read_numbers
from auditor.targets.outputs import Batch, Raised, float_of, is_number, show_output
from auditor.targets.values import DEEPEST, Typed, strip_type, text_of

Array = NDArray[np.float64]

#: Values that are counted and looked for, the most frequent ones, and the share of all elements that each must have:
#: rarer ones are nearly always absent. Arbitrary.
_VALUES, _SHARE = 3, 0.03

CONTAINERS = (list, tuple, dict, set, frozenset, np.ndarray)

#: A plain value with its kind, so that True is not 1 while 1 is 1.0.
Token: TypeAlias = tuple[str, Any]
_NAN: Token = ("number", "nan")


def make_token(element: object) -> Token | None:
    """A plain value with its kind, or None.

    Values of other types are None; they are not counted.
    """
    if isinstance(element, bool | np.bool_):
        return "bool", bool(element)
    if is_number(element):
        value = float_of(element)
        if math.isnan(value):  # NaN, or an integer larger than any float
            return _NAN if strip_type(element) != strip_type(element) else None
        return "number", value
    if element is None or isinstance(element, str | bytes | Raised):
        return type(element).__name__, element
    if isinstance(element, Typed):
        inner = make_token(element.value)
        return None if inner is None else (element.kind, inner[1])
    return None


def is_row(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether a value is a list or tuple of plain values."""
    return (type(value) is list or type(value) is tuple) and ELEMENTS.issuperset(map(type, value))


def list_elements(value: object, depth: int = 0) -> list[Any]:
    """Elements of one output; that of no container is itself.

    Parameters
    ----------
    value : object
        The output, or a part of it.
    depth : int
        Containers around it; those at a depth of `DEEPEST` are not taken apart.
    """
    if is_row(value):
        return [value] if depth == DEEPEST else list(value)
    if (type(value) is set or type(value) is frozenset) and ELEMENTS.issuperset(map(type, value)) and depth < DEEPEST:
        try:
            return sorted(value, key=repr)
        except ValueError:  # an integer of more digits than Python writes
            return sorted(value, key=text_of)
    value = strip_type(value) if isinstance(strip_type(value), CONTAINERS) else value
    if not isinstance(value, CONTAINERS) or depth == DEEPEST:
        return [value]
    found: list[Any] = []
    for _, part in list_children(value):
        if isinstance(strip_type(part), CONTAINERS):
            found += list_elements(part, depth + 1)
        else:
            found.append(part)
    return found


def list_children(value: Any) -> Iterable[tuple[Any, Any]]:
    """Keys and parts of a container, in a canonical order.

    Equal containers share the order.
    """
    if isinstance(value, dict):
        return sorted(value.items(), key=lambda item: repr(item[0]))
    if isinstance(value, set | frozenset):
        return enumerate(sorted(value, key=repr))
    return enumerate(np.atleast_1d(value).tolist() if isinstance(value, np.ndarray) else value)


class Outputs(OutputList):
    """A list of outputs whose elements are read once for all features."""

    @cached_property
    def table(self) -> Table:
        """Elements of all outputs."""
        return Table(self)


class Table:
    """Elements of the outputs of a batch, concatenated.

    There are m in all, of n outputs.

    Attributes
    ----------
    inside : ndarray of shape (n,), bool
        The output is a container.
    length : ndarray of shape (n,), int64
        Number of elements, 0 for what is no container.
    numbers : ndarray of shape (m,)
        Elements as numbers, NaN for what is none.
    numeric : ndarray of shape (m,), bool
        The element is a number, which NaN is.
    """

    def __init__(self, batch: Batch) -> None:
        self._flat: list[Any] | None = None
        self._booleans: NDArray[np.bool_] | None = None
        #: Numbers of each output, shape (n, d), where all outputs have as many and nothing else.
        self.rows: Array | None = None
        columns = None if isinstance(batch, np.ndarray) else columns_of(batch)
        if columns is not None and all(column.numeric is not None for column in columns.columns):
            self._read_columns(columns)
        elif isinstance(batch, np.ndarray):
            n, d = len(batch), batch.shape[1] if batch.ndim == 2 else 0
            self.inside = np.full(n, batch.ndim == 2)
            self.length = np.full(n, d, dtype=np.int64)
            values = batch.reshape(-1)[: n * d]
            if batch.dtype.kind == "b":
                self._booleans = values
                values = np.full(n * d, np.nan)
            self.numbers = np.asarray(values, dtype=np.float64)
            self.numeric = np.full(n * d, self._booleans is None)
        else:
            rows = _flat_rows(batch)
            self.inside = np.array([isinstance(strip_type(value), CONTAINERS) for value in batch], dtype=bool)
            self.length = np.fromiter(map(len, rows), np.int64, len(rows))
            self._flat = flat = list(itertools.chain.from_iterable(rows))
            kinds = set(map(type, flat))
            if kinds <= {float}:
                self.numbers, self.numeric = np.array(flat, dtype=np.float64), np.full(len(flat), True)
            elif kinds <= ELEMENTS:
                self.numbers = read_numbers(flat)
                # An integer larger than any float is no number here, NaN is one.
                self.numeric = ~np.isnan(self.numbers) | np.array([type(e) is float for e in flat], dtype=bool)
            else:
                read = [
                    (float_of(e), strip_type(e) != strip_type(e)) if is_number(e) else (math.nan, False) for e in flat
                ]
                self.numbers = np.array([value for value, _ in read], dtype=np.float64)
                self.numeric = ~np.isnan(self.numbers) | np.array([nan for _, nan in read], dtype=bool)

    def _read_columns(self, columns: Columns) -> None:
        n, d = columns.n, len(columns.columns)
        self.inside, self.length = np.full(n, True), np.full(n, d, dtype=np.int64)
        numbers = np.column_stack([column.numbers for column in columns.columns])
        numeric = ~np.isnan(numbers)
        for j, column in enumerate(columns.columns):
            if float in column.kinds:  # a NaN may be an integer larger than any float
                numeric[:, j] |= [type(value) is float for value in column.values] if len(column.kinds) > 1 else True
        self.numbers, self.numeric = numbers.reshape(-1), numeric.reshape(-1)
        if numeric.all() and not np.isnan(numbers).any():
            self.rows = numbers
        else:
            self._flat = columns.elements()

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Output that each element belongs to, shape (m,)."""
        return np.repeat(np.arange(len(self.length)), self.length)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Place of each element in its output, shape (m,)."""
        start = np.cumsum(self.length) - self.length
        return np.asarray(np.arange(len(self.owner)) - start[self.owner])

    @cached_property
    def _codes(self) -> tuple[NDArray[np.int64], dict[Token, int]]:
        """A number for each plain value that is no number, shape (m,), and which; -1 for all other elements."""
        numbers: dict[Token, int] = {}
        if self._booleans is not None:
            return self._booleans.astype(np.int64), {("bool", False): 0, ("bool", True): 1}
        codes = np.full(len(self.owner), -1)
        if self._flat is not None:
            for k in np.flatnonzero(~self.numeric).tolist():
                found = make_token(self._flat[k])
                if found is not None:
                    codes[k] = numbers.setdefault(found, len(numbers))
        return codes, numbers

    def equal(self, wanted: Token) -> NDArray[np.bool_]:
        """Which elements are this value, shape (m,)."""
        if wanted == _NAN:
            return np.asarray(self.numeric & np.isnan(self.numbers))
        if wanted[0] == "number":
            return np.asarray(self.numbers == wanted[1])
        codes, numbers = self._codes
        return np.asarray(codes == numbers.get(wanted, -2))

    def missing(self) -> NDArray[np.bool_]:
        """Which elements are None, NaN or infinite, shape (m,)."""
        return np.asarray((self.numeric & ~np.isfinite(self.numbers)) | self.equal(("NoneType", None)))

    def distinct(self) -> Array:
        """How many different plain values each output has, shape (n,)."""
        if self.rows is not None:
            ordered = np.sort(self.rows, axis=1)
            return np.asarray(1.0 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1))
        values, of_number = np.unique(self.numbers, return_inverse=True)  # one NaN
        codes = np.where(self.numeric, of_number, len(values) + self._codes[0])
        plain = self.numeric | (self._codes[0] >= 0)
        width = int(codes.max(initial=0)) + 1
        pairs = np.unique((self.owner * width + codes)[plain])
        return np.bincount(pairs // width, minlength=len(self.length)).astype(np.float64)

    def count(self, chosen: NDArray[np.bool_]) -> Array:
        """How many of the chosen elements each output has, shape (n,)."""
        if self.rows is not None:
            return np.asarray(chosen.reshape(self.rows.shape).sum(axis=1, dtype=np.float64))
        return np.bincount(self.owner[chosen], minlength=len(self.length)).astype(np.float64)

    def most_frequent(self) -> list[Token]:
        """Plain values that repeat, the most frequent first."""
        codes, plain = self._codes
        counted: Counter[Token] = Counter()
        for wanted, code in plain.items():
            counted[wanted] = int((codes == code).sum())
        values, counts = np.unique(self.numbers[self.numeric], return_counts=True)  # one NaN
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            counted[_NAN if math.isnan(value) else ("number", value)] = count
        least = max(3, _SHARE * len(self.owner))
        return [wanted for wanted, count in counted.most_common(_VALUES) if count >= least]


def _flat_rows(batch: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """Elements of each output, none of what is no container."""
    if set(map(type, batch)) <= {list, tuple}:
        kinds = set(map(type, itertools.chain.from_iterable(batch)))
        if not any(issubclass(kind, (*CONTAINERS, Typed)) for kind in kinds):
            return batch
    return [list_elements(value) if isinstance(strip_type(value), CONTAINERS) else [] for value in batch]


def read_once(batch: Batch) -> Batch:
    """The same batch, whose elements are read once for all features."""
    return Outputs(batch) if isinstance(batch, list) else batch


def table_of(batch: Batch) -> Table:
    """Elements of a batch, read once for `Outputs`."""
    return batch.table if isinstance(batch, Outputs) else Table(batch)


_WORDS = {
    "count": "number of elements that are {}",
    "first": "place of the first element that is {} (the length if there is none)",
    "last": "place of the last element that is {} (-1 if there is none)",
    "sum": "sum of the finite elements",
    "max": "largest element",
    "min": "smallest element",
    "missing": "number of elements that are None, NaN or infinite",
    "distinct": "number of distinct elements",
    "descents": "number of elements smaller than the one before",
    "size": "number of elements",
}


@dataclass(frozen=True)
class Elements:
    """A statistic of an output's elements.

    Parameters
    ----------
    kind : str
        "sum", "max" and "min" of the numbers, "missing" (how many are None, NaN or infinite), "distinct" (how many
        different plain values), "descents" (numbers smaller than the one before; 0: sorted), "size"; or with ``value``
        "count", "first" and "last".
    value : Token or None
        What is counted or looked for.
    """

    kind: str
    value: Token | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`; what is no container has no value."""
        if isinstance(batch, np.ndarray) and batch.ndim == 2 and self.value is not None:
            return self._of_rows(batch, self.value)
        table = table_of(batch)
        return np.where(table.inside, self._values_in_table(table), np.nan)

    def _of_rows(self, batch: NDArray[Any], wanted: Token) -> Array:
        kind, value = wanted
        if (kind == "bool") != (batch.dtype.kind == "b") or kind not in ("bool", "number"):
            chosen = np.zeros(batch.shape, dtype=bool)
        else:
            with np.errstate(over="ignore"):  # a number that the batch's type does not have is not in it
                chosen = np.isnan(batch) if wanted == _NAN else batch == value
        if self.kind == "count":
            return np.asarray(chosen.sum(axis=1, dtype=np.min_scalar_type(batch.shape[1])), dtype=np.float64)
        return place_of(self.kind, chosen)

    def _values_in_table(self, table: Table) -> Array:
        n = len(table.length)
        if self.value is not None:
            chosen = table.equal(self.value)
            if self.kind == "count":
                return table.count(chosen)
            if table.rows is not None:
                return place_of(self.kind, chosen.reshape(table.rows.shape))
            owner, place = table.owner[chosen], table.place[chosen]
            found = table.length.astype(np.float64) if self.kind == "first" else np.full(n, -1.0)
            # Elements stand in order: the last assignment to an output stays.
            order = slice(None, None, -1) if self.kind == "first" else slice(None)
            found[owner[order]] = place[order]
            return found
        if self.kind == "size":
            return table.length.astype(np.float64)
        if self.kind == "missing":
            return table.count(table.missing())
        if self.kind == "distinct":
            return table.distinct()
        if table.rows is not None:
            found_in_rows = self._of_numbers(table.rows)
            if found_in_rows is not None:
                return found_in_rows
        if self.kind == "sum":
            finite = np.isfinite(table.numbers)
            return np.bincount(table.owner[finite], table.numbers[finite], minlength=n).astype(np.float64)
        if self.kind == "descents":
            numbers, owner = table.numbers, table.owner
            fall = (numbers[1:] < numbers[:-1]) & (owner[1:] == owner[:-1])
            return np.bincount(owner[1:][fall], minlength=n).astype(np.float64)
        extreme = np.full(n, np.nan)
        reach = np.fmax if self.kind == "max" else np.fmin
        reach.at(extreme, table.owner, table.numbers)
        return extreme

    def _of_numbers(self, rows: Array) -> Array | None:
        """The same of rows without NaN, element by element in the same order; None where zeros have signs."""
        if self.kind == "descents":
            return np.asarray((rows[:, 1:] < rows[:, :-1]).sum(axis=1, dtype=np.float64))
        if np.signbit(rows[rows == 0]).any():
            return None
        columns = list(rows.T)
        if self.kind == "sum":
            total = np.zeros(len(rows))
            for column in columns:
                total += np.where(np.isfinite(column), column, 0.0)
            return total
        return np.asarray(reduce(np.fmax if self.kind == "max" else np.fmin, columns))

    def _describe_subject(self) -> str:
        return _WORDS[self.kind].format("" if self.value is None else _show_token(self.value))

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_subject()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_subject()} > {cut:.6g}"


def place_of(kind: str, chosen: NDArray[np.bool_]) -> Array:
    """Place of the first or last chosen element of each row.

    It is the length or -1 where there is none.

    Parameters
    ----------
    kind : str
        "first" or "last".
    chosen : ndarray of shape (n, d), bool
        Which elements are chosen.
    """
    # The largest of short integers is found many at a time, unlike the first True of a row, above all in columns.
    d = chosen.shape[1]
    ranks = np.arange(1, d + 1, dtype=np.min_scalar_type(d))
    ranked = np.asfortranarray(chosen) * (ranks[::-1] if kind == "first" else ranks)
    best = ranked.max(axis=1, initial=0).astype(np.float64)
    return np.asarray(d - best if kind == "first" else best - 1.0)


def _show_token(value: Token) -> str:
    return "NaN" if value == _NAN else show_output(value[1])
