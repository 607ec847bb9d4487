"""Datasets that differ in one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.errors import SpecificationError
from auditor.neighbors.base import Pair
from auditor.neighbors.rows import bases, differing, ends, length, like, part, same_columns


@dataclass(frozen=True)
class ReplaceOne:
    """Datasets of one length that differ in one row."""

    name: ClassVar[str] = "replace one"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        n, m = length(pair.x), length(pair.y)
        if n != m:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name}: {n} rows against {m}")
        same_columns(pair.x, pair.y)
        changed = int(differing(pair.x, pair.y).sum())
        if changed != 1:
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: {changed} rows differ, expected exactly 1"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """One row goes from the first value to the last, at the first, middle and last index of several datasets."""
        low, high = ends(values)
        for name, base in bases(low, high, size).items():
            for index in sorted({0, size // 2, size - 1}):
                a, b = list(base), list(base)
                a[index], b[index] = low, high
                yield Pair(like(values, a), like(values, b), f"{name}, row {index} replaced")
        yield Pair(like(values, [low]), like(values, [high]), "one row, replaced")


@dataclass(frozen=True)
class AddRemoveOne:
    """One dataset is the other with one row removed."""

    name: ClassVar[str] = "add or remove one"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        n, m = length(pair.x), length(pair.y)
        if abs(n - m) != 1:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name}: {n} rows against {m}")
        same_columns(pair.x, pair.y)
        long, short, size = (pair.x, pair.y, m) if n > m else (pair.y, pair.x, n)
        moved = np.flatnonzero(differing(part(long, 0, size), short))
        k = int(moved[0]) if len(moved) else size
        if differing(part(long, k + 1, size + 1), part(short, k, size)).any():
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: rows {k} and later are not those of the longer "
                "dataset with one row removed"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """One row is removed at the first, middle and last index of several datasets; down to the empty dataset."""
        low, high = ends(values)
        for name, base in bases(low, high, size).items():
            if name == "alternating":  # adding a row to it is much like adding it to half and half
                continue
            for index in sorted({0, size // 2, size - 1}):
                for what, row in (("lowest", low), ("highest", high)):
                    long = [*base[:index], row, *base[index:]]
                    yield Pair(like(values, long), like(values, base), f"{name}, {what} row added at {index}")
        yield Pair(like(values, [high]), like(values, []), "one row against none")
