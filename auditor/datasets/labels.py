"""Datasets that differ in one entry of one row: its label, where the features are public, or any cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.datasets.pandas_types import is_frame
from auditor.datasets.records import ReplaceOne, find_changed_row
from auditor.datasets.relation import Pair
from auditor.datasets.rows import (
    are_records,
    find_column,
    find_differing_labels,
    find_ends,
    get_entry,
    join_entries,
    list_columns,
    make_bases,
    make_rows,
    one_kind,
    rows_of,
    same_row,
    slice_rows,
    with_entry,
)
from auditor.errors import SpecificationError


@dataclass(frozen=True)
class ReplaceLabel:
    """Datasets that differ in the label of one row.

    They have one length (catalogue 004, no. 15).

    Parameters
    ----------
    label : int or str
        Index of the label in a row, which may count from the end (default: the last), or the name of a DataFrame's
        column, or of a key where rows are mappings.
    """

    label: int | str = -1
    name: ClassVar[str] = "replace the label of one row"

    def __post_init__(self) -> None:
        if isinstance(self.label, bool) or not isinstance(self.label, int | str):
            raise SpecificationError(f"label must be a column's name or index, got {self.label!r}")

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        k = find_changed_row(pair, self.name, one_kind)
        others = self._other_places(pair, k)
        if others:
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: row {k} differs in {', '.join(map(str, others))}, "
                f"expected to differ in the label only, {self.label!r}"
            )

    def _other_places(self, pair: Pair, k: int) -> list[Any]:
        """Places beside the label in which row k differs."""
        data = pair.x
        if isinstance(data, dict) or (
            (isinstance(data, np.ndarray) or is_frame(data)) and not (data.ndim == 1 and data.dtype.kind in "OV")
        ):
            label: int | str = find_column(data, self.label)
            names = list_columns(data) or list(range(np.asarray(data).shape[1]))
        else:
            label, names = self.label, []
        a, b = rows_of(slice_rows(pair.x, k, k + 1))[0], rows_of(slice_rows(pair.y, k, k + 1))[0]
        get_entry(a, label)
        get_entry(b, label)
        own = label if isinstance(a, Mapping) else range(len(a))[int(label)] if len(a) == len(b) else None
        found = [place for place in _find_changed_entries(a, b) if place != own]
        found = [names[p] for p in found] if names and not isinstance(a, Mapping) and own is not None else found
        return found + _find_changed_index(pair)

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs whose label goes from the first value to the last.

        The row is the first, middle and last of several datasets.

        Values are labels, which then stand beside a feature (the row's number, or 0 everywhere), or whole rows, whose
        features are taken in turn.

        See `Relation.patterns`.
        """
        find_ends(values)
        records = are_records(values)
        labels = [get_entry(row, self.label) for row in values] if records else list(values)
        low, high = labels[0], next((v for v in reversed(labels) if not same_row(v, labels[0])), labels[0])
        if same_row(low, high):
            raise SpecificationError(f"a domain of rows needs at least two labels, got only {low!r}")

        def build(chosen: list[Any], distinct: bool) -> Any:
            if records:
                turn = [values[k % len(values) if distinct else 0] for k in range(len(chosen))]
                return make_rows(values, [with_entry(r, self.label, v) for r, v in zip(turn, chosen, strict=True)])
            features = [k if distinct else 0 for k in range(len(chosen))]
            return join_entries(chosen, features, self.label, "feature", (labels, [0]))

        for what, distinct in (("features differ", True), ("features agree", False)):
            for name, base in make_bases(low, high, size).items():
                for index in sorted({0, size // 2, size - 1}):
                    a, b = list(base), list(base)
                    a[index], b[index] = low, high
                    yield Pair(build(a, distinct), build(b, distinct), f"{name}, {what}, label {index} replaced")
        yield Pair(build([low], True), build([high], True), "one row, its label replaced")


@dataclass(frozen=True)
class ReplaceCell:
    """Datasets that differ in one entry of one row.

    They have one length. For claims in which a person is a cell of a table; where rows are single values it is
    `ReplaceOne`.
    """

    name: ClassVar[str] = "replace one cell"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        k = find_changed_row(pair, self.name, one_kind)
        a, b = rows_of(slice_rows(pair.x, k, k + 1))[0], rows_of(slice_rows(pair.y, k, k + 1))[0]
        if not are_records([a, b]):
            return
        changed = _find_changed_entries(a, b) + _find_changed_index(pair)
        if len(changed) != 1:
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: row {k} differs in {', '.join(map(str, changed))}, "
                "expected exactly 1 entry"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs in which one entry goes from first to last value.

        The row is the first, middle and last of several datasets. Entries that are the same in the whole domain stay.

        See `Relation.patterns`.
        """
        low, high = find_ends(values)
        if not are_records(values):
            yield from ReplaceOne().patterns(values, size)
            return
        places = list(low if isinstance(low, Mapping) else range(len(low)))
        for name, base in {**make_bases(low, high, size), "one row, lowest": [low], "one row, highest": [high]}.items():
            for place in places:
                ends = [get_entry(row, place) for row in (low, high)]
                if same_row(*ends):
                    continue
                for index in sorted({0, len(base) // 2, len(base) - 1}):
                    a, b = list(base), list(base)
                    a[index], b[index] = (with_entry(base[index], place, end) for end in ends)
                    what = f"{name}, entry {place} of row {index} replaced"
                    yield Pair(make_rows(values, a), make_rows(values, b), what)


def _find_changed_index(pair: Pair) -> list[Any]:
    """The index, if it is no number of a row and differs in some row."""
    tables = is_frame(pair.x) and is_frame(pair.y)
    return ["the index"] if tables and find_differing_labels(pair.x, pair.y).any() else []


def _find_changed_entries(a: Any, b: Any) -> list[Any]:
    """Places or keys in which two rows differ."""
    if isinstance(a, Mapping):
        return sorted((p for p in {*a, *b} if p not in a or p not in b or not same_row(a[p], b[p])), key=str)
    if len(a) != len(b):
        return ["the number of entries"]
    return [p for p in range(len(a)) if not same_row(a[p], b[p])]
