"""Features of structured outputs: tuples, lists, dicts, ragged lists, and rows of numbers that repeat."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.elements import CONTAINERS, Elements, Table, list_children
from auditor.events.features import MAX_COORDINATES, Feature
from auditor.targets.columns import ELEMENTS, Columns, OutputList, columns_of, read_numbers
from auditor.targets.outputs import EXACT, Batch, float_of, hash_outputs, is_number
from auditor.targets.values import DEEPEST, strip_type

Array = NDArray[np.float64]

#: Outputs a side that are looked at for places and values; arbitrary, enough to see what one output in a hundred has.
_LOOK = 300
#: Places that are read as symbols; arbitrary, each costs a sort when events are learned.
_PARTS = 8
#: Rows are transcripts, rather than measurements, if their most frequent values are so many of all elements, and the
#: rows themselves hardly repeat, if so many are different; both arbitrary.
_COVERED, _REPEATED = 0.5, 0.5


class _AbsentValue:
    """Stands for what an output does not hold."""

    def __repr__(self) -> str:
        return "absent"


_ABSENT = _AbsentValue()
#: Types of which the numbers alone are those of Python.
_READ = ELEMENTS | {_AbsentValue}


@dataclass(frozen=True)
class Item:
    """A coordinate of a structured output, by its place.

    Parameters
    ----------
    path : tuple
        Positions in sequences and keys of dicts, from the outside in.
    kind : str
        "number" (NaN where there is none), "present" (1 or 0), or "difference" from the number at ``other``.
    other : tuple
        A second place.
    """

    path: tuple[Any, ...]
    kind: str = "number"
    other: tuple[Any, ...] = ()

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        columns = None if isinstance(batch, np.ndarray) else columns_of(batch)
        if columns is not None:
            column, other = columns.at(self.path), columns.at(self.other)
            if column is not None and self.kind == "present":
                return np.ones(columns.n)
            if column is not None and self.kind == "number":
                return column.numbers
            if column is not None and other is not None:
                with np.errstate(invalid="ignore", over="ignore"):
                    return column.numbers - other.numbers
        if self.kind == "present":
            return np.array([part is not _ABSENT for part in values_at(batch, self.path)], dtype=np.float64)
        values = _numbers(values_at(batch, self.path))
        if self.kind == "number":
            return values
        with np.errstate(invalid="ignore", over="ignore"):
            return values - _numbers(values_at(batch, self.other))

    @property
    def name(self) -> str:
        """In words."""
        return format_path(self.path) + (f" - {format_path(self.other)}" if self.kind == "difference" else "")

    def below(self, cut: float) -> str:
        """In words."""
        return f"{format_path(self.path)} is absent" if self.kind == "present" else f"{self.name} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{format_path(self.path)} is present" if self.kind == "present" else f"{self.name} > {cut:.6g}"


@dataclass(frozen=True)
class PartAt:
    """What an output holds at a place, as a symbol."""

    path: tuple[Any, ...]

    @property
    def name(self) -> str:
        """In words."""
        return format_path(self.path)

    def __call__(self, batch: Batch) -> list[Any]:
        """See `Part`."""
        return values_at(batch, self.path)


def format_path(path: tuple[Any, ...]) -> str:
    """Write a place as it is written in Python."""
    return "output" + "".join(f"[{step!r}]" for step in path)


def values_at(batch: Batch, path: tuple[Any, ...]) -> list[Any]:
    """List what each output holds at a place.

    A mark stands for those that hold nothing there.

    Parameters
    ----------
    batch : Batch
        Outputs, n of them.
    path : tuple
        Keys and positions, from the outside in; none for the outputs themselves.

    Returns
    -------
    list of length n
    """
    if isinstance(batch, OutputList) and batch.columns is not None:
        column = batch.columns.at(path)
        if column is not None:
            return list(column.values)
    parts: list[Any] = batch.tolist() if isinstance(batch, np.ndarray) else batch
    for step in path:
        kinds = set(map(type, parts))
        if kinds <= {list, tuple} and type(step) is int and step >= 0:
            parts = [part[step] if len(part) > step else _ABSENT for part in parts]
        elif kinds == {dict}:
            parts = [part.get(step, _ABSENT) for part in parts]
        else:
            parts = [_step(part, step) for part in parts]
    return parts


def _step(part: Any, step: Any) -> Any:
    part = strip_type(part)
    if isinstance(part, np.ndarray):
        part = part.tolist()
    if isinstance(part, list | tuple):
        return part[step] if type(step) is int and 0 <= step < len(part) else _ABSENT
    return part.get(step, _ABSENT) if isinstance(part, dict) else _ABSENT


def _numbers(parts: list[Any]) -> Array:
    if set(map(type, parts)) <= _READ:
        return read_numbers(parts)
    return np.array([float_of(part) if is_number(part) else math.nan for part in parts], dtype=np.float64)


@dataclass(frozen=True)
class Structure:
    """What there is to be read off outputs of some structure.

    Parameters
    ----------
    features : tuple of Feature
        Numbers.
    parts : tuple of PartAt
        Symbols.
    """

    features: tuple[Feature, ...] = ()
    parts: tuple[PartAt, ...] = ()

    def joined(self, other: Structure) -> Structure:
        """Union of two tuples, the first one's elements first."""
        return Structure(
            tuple(dict.fromkeys((*self.features, *other.features))), tuple(dict.fromkeys((*self.parts, *other.parts)))
        )


def structure_of(x: Batch, y: Batch) -> Structure:
    """Features of the structure of outputs like these.

    Parameters
    ----------
    x, y : ndarray of shape (n, d), or list
        Draws of each side.

    Returns
    -------
    Structure
        For lists of containers: numbers and symbols at each place, statistics of all elements, and the values that
        repeat most. For rows of more than two numbers the values that repeat, for integers that differ and are one
        float the integers themselves; nothing for all other outputs.
    """
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        if x.ndim != 2 or x.shape[1:] != y.shape[1:]:
            return Structure()
        rows = np.concatenate([x[:_LOOK], y[:_LOOK]])
        parts = tuple(PartAt((j,)) for j in _close_columns(rows))
        return Structure(tuple(_of_rows(rows)) if x.shape[1] > 2 else (), parts)
    looked = OutputList(value for side in (x, y) for value in _as_list(side[:_LOOK]))
    table = Table(looked)
    if not table.inside.any():
        return Structure()
    numeric, symbolic, optional = _find_paths(looked)
    found: list[Feature] = [Item(path) for path in numeric]
    found += [Item(path, "present") for path in optional]
    near = itertools.combinations(numeric, 2) if len(numeric) <= 4 else itertools.pairwise(numeric)
    found += [Item(b, "difference", a) for a, b in near]
    kinds = ["size", "distinct"]
    kinds += ["sum", "max", "min", "descents"] if np.isfinite(table.numbers).any() else []
    kinds += ["missing"] if table.missing().any() else []
    found += [Elements(kind) for kind in kinds]
    found += [Elements(kind, value) for value in table.most_frequent() for kind in ("count", "first", "last")]
    # Of numbers below 2^53, which is the float of 2^53 + 1 too, none are close; NaN counts as large.
    large = [path for path in numeric if not (np.abs(Item(path)(looked)) < EXACT).all()]
    close = [path for path in large if _are_close(values_at(looked, path))]
    return Structure(tuple(found), tuple(PartAt(path) for path in (*symbolic[:_PARTS], *close[:_PARTS])))


def _are_close(values: Sequence[Any]) -> bool:
    """Whether integers differ that are one float, and repeat: they are symbols besides."""
    plain = [value for value in map(strip_type, values) if isinstance(value, int | np.integer) or _is_edge(value)]
    large = {int(value) for value in plain if abs(int(value)) >= EXACT}
    return len(large) <= _REPEATED * len(values) and len(set(map(float_of, large))) < len(large)


def _is_edge(value: object) -> bool:
    """Whether a float is 2^53 or its negative: rows of integers up to there are read as floats, others are not."""
    return isinstance(value, float | np.floating) and abs(value) == EXACT


def _close_columns(rows: NDArray[Any]) -> list[int]:
    """Columns of integers that differ and are one float."""
    if rows.dtype.kind not in "iu" or rows.dtype.itemsize < 8:
        return []
    places = np.flatnonzero((np.abs(rows.astype(np.float64)) >= EXACT).any(axis=0)).tolist()
    return [j for j in places if _are_close(rows[:, j].tolist())][:_PARTS]


def _as_list(batch: Batch) -> list[Any]:
    return list(batch.tolist()) if isinstance(batch, np.ndarray) else batch


def _of_rows(rows: NDArray[Any]) -> Iterator[Feature]:
    """Where the values that repeat stand, and how many there are, in rows that hold hardly any others.

    Rows that repeat as a whole, or are few, are ordered as symbols, which says all that there is to say.
    """
    table = Table(rows)
    frequent = table.most_frequent()
    covered = [int(table.equal(value).sum()) for value in frequent]
    if sum(covered) < _COVERED * len(table.owner) or len(np.unique(hash_outputs(rows))) <= _REPEATED * len(rows):
        return
    for value in frequent:
        if sum(covered[:2]) < len(table.owner):  # of two values the sum tells how many there are
            yield Elements("count", value)
        yield Elements("first", value)
        yield Elements("last", value)


def _find_paths(outputs: Sequence[Any]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Places at which there is a number, at which there is something else, and keys that some outputs lack."""
    columns = columns_of(outputs)
    if columns is not None and len(outputs) >= 2 and all(column.numeric is not None for column in columns.columns):
        return _places_of(columns)
    numbers: Counter[tuple[Any, ...]] = Counter()
    others: Counter[tuple[Any, ...]] = Counter()
    for output in outputs:
        for path, part in walk_elements(output):
            (numbers if is_number(part) else others)[path] += 1
    counted = numbers + others
    often = _leave_out_late([path for path in counted if counted[path] >= 2], others)
    optional = [path for path in often if counted[path] < len(outputs) and not isinstance(path[-1], int)]
    return [p for p in often if numbers[p] >= 2], [p for p in often if others[p] >= 2], optional


def _leave_out_late(paths: list[tuple[Any, ...]], others: Container[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The first places, and further ones of symbols if numbers left no room for these."""
    first, late = paths[:MAX_COORDINATES], paths[MAX_COORDINATES:]
    room = _PARTS - sum(path in others for path in first)
    return first + [path for path in late if path in others][: max(room, 0)] if late else first


def _places_of(
    columns: Columns,
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """`_places` of outputs that are all built alike."""
    numbers, others = ([c.path for c in columns.columns if c.numeric is which] for which in (True, False))
    return numbers[:MAX_COORDINATES], others[: max(MAX_COORDINATES - len(numbers), _PARTS)], []


def walk_elements(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Places of the elements of one output.

    Sets have none: the order of their elements means nothing. What lies too deep is one element as a whole.

    Parameters
    ----------
    value : object
        The output, or the part of it at ``path``.
    path : tuple
        Steps that lead there: keys and positions.

    Yields
    ------
    tuple of (tuple, object)
        Path and element; nothing for an output that is no container.
    """
    value = strip_type(value) if isinstance(strip_type(value), CONTAINERS) else value
    if isinstance(value, CONTAINERS) and len(path) == DEEPEST:
        yield path, value
        return
    if isinstance(value, set | frozenset):
        return
    if isinstance(value, CONTAINERS):
        for step, part in list_children(value):
            yield from walk_elements(part, (*path, step))
    elif path:
        yield path, value
