"""Datasets that differ in the label of one row: the features are public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.datasets.pandas_types import is_frame
from auditor.datasets.relation import Pair
from auditor.datasets.rows import (
    are_records,
    count_rows,
    find_column,
    find_differing_rows,
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
        n, m = count_rows(pair.x), count_rows(pair.y)
        if n != m:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name}: {n} rows against {m}")
        one_kind(pair.x, pair.y)
        changed = np.flatnonzero(find_differing_rows(pair.x, pair.y))
        if len(changed) != 1:
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: {len(changed)} rows differ, expected exactly 1"
            )
        k = int(changed[0])
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
            (isinstance(data, np.ndarray) or is_frame(data)) and not (data.ndim == 1 and data.dtype == object)
        ):
            label: int | str = find_column(data, self.label)
            names = list_columns(data) or list(range(np.asarray(data).shape[1]))
        else:
            label, names = self.label, []
        a, b = rows_of(slice_rows(pair.x, k, k + 1))[0], rows_of(slice_rows(pair.y, k, k + 1))[0]
        get_entry(a, label)
        get_entry(b, label)
        if isinstance(a, Mapping):
            places = {*a, *b} - {label}
            return sorted((p for p in places if p not in a or p not in b or not same_row(a[p], b[p])), key=str)
        if len(a) != len(b):
            return ["the number of entries"]
        own = range(len(a))[int(label)]
        found = [p for p in range(len(a)) if p != own and not same_row(a[p], b[p])]
        return [names[p] for p in found] if names else found

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
            return join_entries(chosen, [k if distinct else 0 for k in range(len(chosen))], self.label, "feature")

        for features, distinct in (("features differ", True), ("features agree", False)):
            for name, base in make_bases(low, high, size).items():
                for index in sorted({0, size // 2, size - 1}):
                    a, b = list(base), list(base)
                    a[index], b[index] = low, high
                    yield Pair(build(a, distinct), build(b, distinct), f"{name}, {features}, label {index} replaced")
        yield Pair(build([low], True), build([high], True), "one row, its label replaced")
