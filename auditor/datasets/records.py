"""Datasets that differ in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.datasets.relation import Pair
from auditor.datasets.rows import (
    count_rows,
    find_differing_rows,
    find_ends,
    key_of_row,
    make_bases,
    make_rows,
    reverse_rows,
    rows_with_labels,
    same_columns,
    slice_rows,
)
from auditor.errors import SpecificationError


def find_changed_row(pair: Pair, name: str, check_columns: Callable[[Any, Any], None]) -> int:
    """Find the only row in which two datasets of one length differ.

    Parameters
    ----------
    pair : Pair
        The datasets.
    name : str
        Name of the relation, for the error.
    check_columns : callable
        Raises where rows of the datasets cannot be compared, see `same_columns` and `one_kind`.

    Raises
    ------
    SpecificationError
        If the datasets differ in length, or in another number of rows.
    """
    n, m = count_rows(pair.x), count_rows(pair.y)
    if n != m:
        raise SpecificationError(f"{pair.name}: not neighbours under {name}: {n} rows against {m}")
    check_columns(pair.x, pair.y)
    changed = np.flatnonzero(find_differing_rows(pair.x, pair.y))
    if len(changed) != 1:
        raise SpecificationError(
            f"{pair.name}: not neighbours under {name}: {len(changed)} rows differ, expected exactly 1"
        )
    return int(changed[0])


@dataclass(frozen=True)
class ReplaceOne:
    """Datasets of one length that differ in one row."""

    name: ClassVar[str] = "replace one"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        find_changed_row(pair, self.name, same_columns)

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs whose row goes from the first value to the last.

        The row is the first, middle and last of several datasets.

        See `Relation.patterns`.
        """
        low, high = find_ends(values)
        for name, base in make_bases(low, high, size).items():
            for index in sorted({0, size // 2, size - 1}):
                a, b = list(base), list(base)
                a[index], b[index] = low, high
                yield Pair(make_rows(values, a), make_rows(values, b), f"{name}, row {index} replaced")
        yield Pair(make_rows(values, [low]), make_rows(values, [high]), "one row, replaced")


@dataclass(frozen=True)
class Group:
    """Datasets of one length that differ in ``size`` rows.

    A chain of at most ``size`` replacements leads from x to x'.

    For statements about groups, whose level is that of the group and not of one person.
    """

    size: int
    name: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise SpecificationError(f"the size of a group must be an integer of at least 1, got {self.size!r}")

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        n, m = count_rows(pair.x), count_rows(pair.y)
        if n != m:
            raise SpecificationError(f"{pair.name}: no group of {self.size} apart: {n} rows against {m}")
        same_columns(pair.x, pair.y)
        changed = int(find_differing_rows(pair.x, pair.y).sum())
        if not 1 <= changed <= self.size:
            raise SpecificationError(
                f"{pair.name}: no group of {self.size} apart: {changed} rows differ, expected 1 to {self.size}"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs whose first rows go from first to last value.

        There are as many as the group has, in several datasets.

        See `Relation.patterns`.
        """
        low, high = find_ends(values)
        moved = min(self.size, size)
        for name, base in make_bases(low, high, size).items():
            kept = list(base[moved:])
            x, y = make_rows(values, [low] * moved + kept), make_rows(values, [high] * moved + kept)
            yield Pair(x, y, f"{name}, first {moved} rows replaced")


@dataclass(frozen=True)
class AddRemoveOne:
    """One dataset is the other with one row removed."""

    name: ClassVar[str] = "add or remove one"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        n, m = self._count_rows(pair)
        long, short, size = (pair.x, pair.y, m) if n > m else (pair.y, pair.x, n)
        moved = np.flatnonzero(find_differing_rows(slice_rows(long, 0, size), short))
        k = int(moved[0]) if len(moved) else size
        if find_differing_rows(slice_rows(long, k + 1, size + 1), slice_rows(short, k, size)).any():
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: rows {k} and later are not those of the longer "
                "dataset with one row removed"
            )

    def _count_rows(self, pair: Pair) -> tuple[int, int]:
        """Rows of both datasets, which have to be one apart and of the same columns."""
        n, m = count_rows(pair.x), count_rows(pair.y)
        if abs(n - m) != 1:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name}: {n} rows against {m}")
        same_columns(pair.x, pair.y)
        return n, m

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs without the first, middle or last row.

        They go down to the empty dataset.

        See `Relation.patterns`.
        """
        low, high = find_ends(values)
        for name, base in make_bases(low, high, size).items():
            if name == "alternating":  # adding a row to it is much like adding it to half and half
                continue
            for index in sorted({0, size // 2, size - 1}):
                for what, row in (("lowest", low), ("highest", high)):
                    long = [*base[:index], row, *base[index:]]
                    yield Pair(make_rows(values, long), make_rows(values, base), f"{name}, {what} row added at {index}")
        yield Pair(make_rows(values, [high]), make_rows(values, []), "one row against none")


@dataclass(frozen=True)
class AddRemoveAnyOrder(AddRemoveOne):
    """Datasets that differ by one row, in any order.

    For claims about multisets of rows: sums of floating-point numbers, and those that stop at the largest integer,
    depend on the order.
    """

    name: ClassVar[str] = "add or remove one, in any order"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        self._count_rows(pair)
        rows, others = (Counter(map(key_of_row, rows_with_labels(data))) for data in (pair.x, pair.y))
        extra = sum(((rows - others) + (others - rows)).values())
        if extra != 1:
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: {extra} rows are in one dataset only, expected "
                "exactly 1"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Those of `AddRemoveOne`, and each with the second dataset reversed.

        See `Relation.patterns`.
        """
        return reverse_pairs(super().patterns(values, size))


def reverse_pairs(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Pairs, each followed by one whose second dataset is reversed.

    Parameters
    ----------
    pairs : iterable of Pair
        Datasets of `auditor.datasets.rows.make_rows`.
    """
    for pair in pairs:
        yield pair
        if count_rows(pair.y) > 1:
            yield Pair(pair.x, reverse_rows(pair.y), f"{pair.name}, the second reversed")
