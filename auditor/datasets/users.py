"""Datasets that differ in all rows of one user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.datasets.relation import Pair
from auditor.datasets.rows import (
    are_records,
    count_rows,
    find_differing_rows,
    find_ends,
    get_column,
    join_entries,
    make_rows,
    one_kind,
    select_rows,
    slice_rows,
    with_entry,
)
from auditor.errors import SpecificationError, require_library

CHANGES = ("replace", "add-remove")


@dataclass(frozen=True)
class PerUser:
    """Datasets without the rows of one user.

    The other rows are the same, in the same order.

    Parameters
    ----------
    key : int or str
        Where a row says whose it is: an index (default: the first entry), a DataFrame's column, or a mapping's key.
        Users must be hashable.
    change : {"replace", "add-remove"}
        "replace": the user has rows in both datasets; they may differ in number, place and content, not in the key.
        "add-remove": the user has rows in one of the two datasets only.
    most : int or None
        Rows that any user may have, as in claims about bounded contributions; None for any number.
    """

    key: int | str = 0
    change: str = "replace"
    most: int | None = None
    name: ClassVar[str] = "all rows of one user"

    def __post_init__(self) -> None:
        if isinstance(self.key, bool) or not isinstance(self.key, int | str):
            raise SpecificationError(f"key must be a column's name or index, got {self.key!r}")
        if self.change not in CHANGES:
            raise SpecificationError(f"change must be one of {', '.join(CHANGES)}, got {self.change!r}")
        if self.most is not None and (isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 1):
            raise SpecificationError(f"most must be an integer of at least 1, got {self.most!r}")

    def check(self, pair: Pair) -> None:
        """See `Relation`.

        Where the two datasets first differ, one of the two rows is the user's: the rows before are the same, so if
        neither were, both would be the next one of the other users' rows.
        """
        n, m = count_rows(pair.x), count_rows(pair.y)
        one_kind(pair.x, pair.y)
        try:
            x, y = _users(get_column(pair.x, self.key), get_column(pair.y, self.key))
        except TypeError as error:
            raise SpecificationError(
                f"{pair.name}: what tells users apart in rows, {self.key!r}, must be hashable: {error}"
            ) from error
        self._check_rows_per_user(pair.name, x)
        self._check_rows_per_user(pair.name, y)
        common = min(n, m)
        moved = np.flatnonzero(find_differing_rows(slice_rows(pair.x, 0, common), slice_rows(pair.y, 0, common)))
        first = int(moved[0]) if len(moved) else common
        reasons: list[tuple[bool, str]] = []
        for name, users in (("x", x), ("y", y)):
            if first < len(users):
                others, reason = self._reason(pair, x, y, int(users[first]), f"row {first} of {name}")
                if not reason:
                    return
                reasons.append((others, reason))
        # A user without whose rows the two are the same is the one that was meant.
        _, reason = max(reasons, key=lambda found: found[0], default=(False, "0 rows differ"))
        raise SpecificationError(f"{pair.name}: not neighbours under {self.name} ({self.change}): {reason}")

    def _reason(self, pair: Pair, x: NDArray[np.intp], y: NDArray[np.intp], user: int, row: str) -> tuple[bool, str]:
        """Whether the datasets are the same without this user's rows, and why they are no neighbours (or nothing)."""
        own_x, own_y = x == user, y == user
        a, b = select_rows(pair.x, ~own_x), select_rows(pair.y, ~own_y)
        who = f"the user of {row}, where they first differ"
        if count_rows(a) != count_rows(b):
            return False, f"without {who}, there are {count_rows(a)} rows against {count_rows(b)}"
        others = np.flatnonzero(find_differing_rows(a, b))
        if len(others):
            return False, f"without {who}, {len(others)} rows differ, the first at {int(others[0])}"
        rows = f"{who}, has {int(own_x.sum())} rows against {int(own_y.sum())}"
        if self.change == "replace" and not (own_x.any() and own_y.any()):
            return True, f"{rows}, expected some in both"
        if self.change == "add-remove" and own_x.any() and own_y.any():
            return True, f"{rows}, expected none in one of the two"
        return True, ""

    def _check_rows_per_user(self, name: str, users: NDArray[np.intp]) -> None:
        largest = int(np.bincount(users).max()) if len(users) else 0
        if self.most is not None and largest > self.most:
            raise SpecificationError(f"{name}: a user has {largest} rows, expected at most {self.most}")

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs in which one user's rows change or go away.

        The other users have one row each.

        The user has one row or as many as may be, at the beginning, in the middle, at the end, or scattered; or is the
        only user. Values stand beside the key, or are whole rows, whose key is overwritten.

        See `Relation.patterns`.
        """
        low, high = find_ends(values)
        heavy = max(1, min(size if self.most is None else self.most, size // 2))
        for name, rest in {"all lowest": low, "all highest": high}.items():
            for count in sorted({1, heavy}):
                others = [(k + 1, rest) for k in range(size - count)]
                blocks = {0, len(others) // 2, len(others)}
                places = {f"rows from {k}": [k] * count for k in sorted(blocks)}
                if count > 1:
                    places["scattered rows"] = [min(k, len(others)) for k in range(count)]
                for what, at in places.items():
                    yield self._pair(values, others, at, at, low, high, f"{name}, one user's {what}, {count} in number")
        only = size if self.most is None else min(size, self.most)
        yield self._pair(values, [], [0] * only, [0] * only, low, high, f"{only} rows of one user, no others")
        if self.change == "replace" and only > 1:
            yield self._pair(values, [], [0], [0] * only, low, high, f"one row against {only}, of one user, no others")

    def _pair(
        self,
        values: Sequence[Any],
        others: list[tuple[int, Any]],
        at_x: list[int],
        at_y: list[int],
        low: Any,
        high: Any,
        name: str,
    ) -> Pair:
        """User 0's rows put before the given rows of the others: lowest in x, and highest or none in y."""
        gone = self.change == "add-remove"
        x = _insert_row(others, at_x, (0, high if gone else low))
        y = others if gone else _insert_row(others, at_y, (0, high))
        return Pair(self._build(values, x), self._build(values, y), name)

    def _build(self, values: Sequence[Any], rows: list[tuple[int, Any]]) -> Any:
        if are_records(values):
            domain = [with_entry(row, self.key, 0) for row in values]  # a key may have been a sequence
            return make_rows(domain, [with_entry(row, self.key, user) for user, row in rows])
        users, entries = [user for user, _ in rows], [value for _, value in rows]
        return join_entries(users, entries, self.key, "value", ([0], values))


def _users(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the users of two datasets in common; missing keys are one user."""
    require_library("pandas", "datasets with several rows a user")
    import pandas as pd  # takes longer to import than all the rest together

    both = np.concatenate([x.astype(object), y.astype(object)]) if x.dtype != y.dtype else np.concatenate([x, y])
    codes, _ = pd.factorize(both, use_na_sentinel=False)
    return codes[: len(x)], codes[len(x) :]


def _insert_row(others: list[tuple[int, Any]], at: list[int], row: tuple[int, Any]) -> list[tuple[int, Any]]:
    found = list(others)
    for k in sorted(at, reverse=True):
        found.insert(k, row)
    return found
