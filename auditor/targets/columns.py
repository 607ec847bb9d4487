"""Structured outputs that are all built alike, read place by place instead of one by one.

Most targets that return dicts, tuples or lists return the same places each time. Such a batch is a table: a column of
plain values for each place. What is read off a column is what is read off each output by itself, in less time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.targets.values import DEEPEST

#: Steps from outside to an element: keys and positions.
Path: TypeAlias = tuple[Any, ...]

#: Types that are told apart by themselves; a subclass may show something else, and is no element of a column.
ELEMENTS = frozenset({int, float, bool, str, bytes, type(None)})
NUMBERS = frozenset({int, float})


class ElementColumn:
    """What all outputs hold at one place.

    Parameters
    ----------
    path : tuple
        Steps that lead there.
    values : sequence
        One plain value for each output.
    kinds : frozenset of type
        Their types.
    keyed : bool
        The last step is a key of a dict.
    """

    def __init__(self, path: Path, values: Sequence[Any], kinds: frozenset[type], keyed: bool) -> None:
        self.path, self.values, self.kinds, self.keyed = path, values, kinds, keyed

    @property
    def numeric(self) -> bool | None:
        """Whether all are numbers, or none; None if some are."""
        return True if self.kinds <= NUMBERS else False if self.kinds.isdisjoint(NUMBERS) else None

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Values as numbers, shape (n,).

        NaN for what is none, and for integers larger than any float.
        """
        return read_numbers(self.values)


def read_numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Plain values as numbers.

    Parameters
    ----------
    values : sequence
        Numbers of Python; any values that are not of `int` or `float` are none.

    Returns
    -------
    ndarray of shape (n,)
        NaN for what is no number, and for integers larger than any float.
    """
    if not NUMBERS.issuperset(map(type, values)):
        values = [value if type(value) in NUMBERS else math.nan for value in values]
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        return np.array([_as_float(value) for value in values], dtype=np.float64)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.nan


class Columns:
    """Places of outputs that are built alike, in canonical order.

    Attributes
    ----------
    n : int
        Number of outputs.
    length : int
        What ``len`` gives for each output.
    keys : tuple or None
        Keys of each output in the order of insertion, if they are dicts.
    columns : list of ElementColumn
        Elements of dicts in the order of their keys' texts.
    """

    def __init__(self, batch: Sequence[Any], columns: list[ElementColumn]) -> None:
        self.n, self.columns = len(batch), columns
        self.length = len(batch[0])
        self.keys = tuple(batch[0]) if isinstance(batch[0], dict) else None

    @property
    def flat(self) -> bool:
        """Whether no output holds a container."""
        return all(len(column.path) == 1 for column in self.columns)

    @property
    def numeric(self) -> bool:
        """Whether all elements are numbers."""
        return all(column.numeric for column in self.columns)

    @cached_property
    def _columns_by_path(self) -> dict[Path, ElementColumn]:
        return {column.path: column for column in self.columns}

    def at(self, path: Path) -> ElementColumn | None:
        """The column of a place.

        None where there is none: outputs may hold a container there, or nothing.
        """
        plain = all(type(step) is str or type(step) is int for step in path)  # True and 1.0 equal 1
        return self._columns_by_path.get(path) if plain else None

    def elements(self) -> list[Any]:
        """All elements, output by output."""
        return list(itertools.chain.from_iterable(zip(*(column.values for column in self.columns), strict=True)))


class OutputList(list[Any]):
    """A list of outputs whose columns are read once."""

    @cached_property
    def columns(self) -> Columns | None:
        """Its columns, if all outputs are built alike."""
        return read_columns(self)


def columns_of(batch: Sequence[Any]) -> Columns | None:
    """Columns of a list of outputs, read once for `OutputList`."""
    return batch.columns if isinstance(batch, OutputList) else read_columns(batch)


def read_columns(batch: Sequence[Any]) -> Columns | None:
    """Columns of outputs that are all built alike.

    Parameters
    ----------
    batch : sequence
        Outputs.

    Returns
    -------
    Columns or None
        None unless all outputs are dicts with the same texts or the same integers as keys, in one order, or sequences
        of one length; so on inside of them, down to `DEEPEST`; and all elements are plain values.
    """
    found: list[ElementColumn] = []
    if not len(batch) or not isinstance(batch[0], dict | list | tuple) or not _split(batch, (), False, found):
        return None
    return Columns(batch, found)


def _split(values: Sequence[Any], path: Path, keyed: bool, found: list[ElementColumn]) -> bool:
    """Append the columns at and below a place; False if outputs differ there in more than their elements."""
    kinds = frozenset(map(type, values))
    if kinds <= ELEMENTS:
        found.append(ElementColumn(path, values, kinds, keyed))
        return True
    if len(path) >= DEEPEST:
        return False
    if kinds == {dict}:
        return _split_dicts(values, path, found)
    if kinds <= {list, tuple} and len(set(map(len, values))) == 1:
        width = len(values[0])
        return width > 0 and all(_split(_take(values, k), (*path, k), False, found) for k in range(width))
    return False


def _split_dicts(values: Sequence[dict[Any, Any]], path: Path, found: list[ElementColumn]) -> bool:
    kinds = set(map(type, itertools.chain.from_iterable(values)))
    # Keys of one type: 1, 1.0 and True are equal.
    if kinds not in ({str}, {int}) or len(set(map(tuple, values))) > 1:
        return False
    keys = sorted(values[0], key=repr)
    return bool(keys) and all(_split(_take(values, key), (*path, key), True, found) for key in keys)


def _take(values: Sequence[Any], step: Any) -> list[Any]:
    """What all hold at a step, with no container for each: so many would call the garbage collector."""
    return list(map(itemgetter(step), values))
