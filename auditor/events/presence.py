"""Features of keys, members and numbers that structured outputs hold or lack."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from auditor.events.elements import Elements, Token, is_row, list_elements, make_token
from auditor.events.features import Feature
from auditor.events.output_types import kinds_of
from auditor.events.screening import best_columns, compare_counts, screen_coordinates
from auditor.events.structure import Item, walk_elements
from auditor.targets.columns import Columns, columns_of
from auditor.targets.outputs import Batch, float_of, is_number
from auditor.targets.values import PLAIN, strip_type

#: Kinds, keys and members that are counted; arbitrary, bounds memory. Keys beyond are those that came last.
MOST = 5_000
#: Features of one sort that are offered at a time, and the least score, in standard errors, of what is: arbitrary, each
#: feature costs a look at every draw.
_OFFERED, _LEAST = 4, 1.7
#: Draws a side, and places, whose numbers are compared; arbitrary, the numbers are read one by one.
ROWS, _PLACES = 256, 1_024


@dataclass
class PresenceCounts:
    """Number of outputs of each side that hold an element."""

    x: Counter[Any] = field(default_factory=Counter)
    y: Counter[Any] = field(default_factory=Counter)

    def add(self, x: Sequence[Sequence[Any]], y: Sequence[Sequence[Any]]) -> None:
        """Count the elements of more outputs.

        For each output they are distinct, in an order that all processes share.

        Parameters
        ----------
        x, y : sequence of sequence
            The elements of each output of either side.
        """
        for counter, held in ((self.x, x), (self.y, y)):
            elements = list(itertools.chain.from_iterable(held))
            if len(counter) + len(set(elements)) < MOST:
                counter.update(elements)
                continue
            for one in held:
                counter.update(one if len(counter) < MOST else [what for what in one if what in counter])

    def add_alike(self, held: Sequence[Any], x: int, y: int) -> None:
        """Count outputs that all hold the same elements.

        Parameters
        ----------
        held : sequence
            The elements.
        x, y : int
            Outputs of each side.
        """
        for counter, n in ((self.x, x), (self.y, y)):
            if n:
                counter.update(dict.fromkeys(held if len(counter) < MOST else filter(counter.__contains__, held), n))

    def different(self, n: int) -> list[Any]:
        """Elements whose frequencies differ most between the sides.

        The clearest come first; each side has n outputs.
        """
        return [what for what, _ in self.score_different(n)]

    def score_different(self, n: int) -> list[tuple[Any, float]]:
        """The same elements, each with its score.

        Scores are differences of frequencies in standard errors.
        """
        held = list(dict.fromkeys((*self.x, *self.y)))
        if not held:
            return []
        first, second = (np.array([float(side[what]) for what in held]) for side in (self.x, self.y))
        scores = compare_counts(first, second, n)
        return [(held[k], float(scores[k])) for k in best_columns(scores, _OFFERED, _LEAST)]


@dataclass
class Presence:
    """Kinds, keys and members that outputs hold, counted as draws come in.

    Attributes
    ----------
    n : int
        Outputs a side that were counted.
    """

    n: int = 0
    kinds: PresenceCounts = field(default_factory=PresenceCounts)
    keys: PresenceCounts = field(default_factory=PresenceCounts)
    members: PresenceCounts = field(default_factory=PresenceCounts)

    def add(self, x: Batch, y: Batch) -> None:
        """Count as many further outputs of each side.

        Parameters
        ----------
        x, y : ndarray of shape (n,) or (n, d), or list
            Outputs.
        """
        self.n += len(x)
        kinds = [kinds_of(side) * (len(side) if isinstance(side, np.ndarray) else 1) for side in (x, y)]
        if len({*kinds[0], *kinds[1]}) == 1:
            self.kinds.add_alike(kinds[0][:1], len(kinds[0]), len(kinds[1]))
        else:
            self.kinds.add(*([[kind] for kind in side] for side in kinds))
        listed = [_list_containers(side) for side in (x, y)]
        for counts, read, read_columns in ((self.keys, _keys, _keys_alike), (self.members, _members, _members_alike)):
            held = [read_columns(columns_of(side)) for side in listed]
            if held[0] is not None and held[0] == held[1]:
                counts.add_alike(held[0], len(x), len(y))
            else:
                counts.add(*(list(map(read, side)) for side in listed))

    def different_kinds(self) -> list[str]:
        """Kinds that differ most between the sides, exceptions first."""
        if len(self.kinds.x | self.kinds.y) < 2:
            return []
        return sorted(self.kinds.different(self.n), key=lambda kind: not kind.startswith("raised "))

    def features(self) -> list[Feature]:
        """Features on the keys and members that differ most."""
        found: list[Feature] = [Item(path, "present") for path in self.keys.different(self.n)]
        return found + [Elements("count", member) for member in self.members.different(self.n)]


def _list_containers(batch: Batch) -> list[Any]:
    """Outputs of a list; none if all are scalars."""
    return [] if isinstance(batch, np.ndarray) or PLAIN.issuperset(map(type, batch)) else batch


def _keys(value: Any) -> list[tuple[Any, ...]]:
    """Places of an output that end in a key of a dict."""
    if is_row(value):
        return []
    return [path for path, _ in walk_elements(value) if not isinstance(path[-1], int) or _in_dict(value, path)]


def _keys_alike(columns: Columns | None) -> list[tuple[Any, ...]] | None:
    """`_keys` of outputs that are all built alike."""
    return None if columns is None else [column.path for column in columns.columns if column.keyed]


def _members_alike(columns: Columns | None) -> list[Token] | None:
    """`_members` of outputs that are all built alike, where none has any."""
    return [] if columns is not None and columns.keys is not None else None


def _in_dict(value: Any, path: tuple[Any, ...]) -> bool:
    """Whether the last step of a place is a key, not an index."""
    for step in path[:-1]:
        value = strip_type(value)[step]
    return isinstance(strip_type(value), dict)


def _members(value: Any) -> list[Token]:
    """Plain values that a container holds; numbers with a fraction hardly ever repeat and are left out."""
    if not isinstance(strip_type(value), list | tuple | set | frozenset):
        return []
    found: dict[Token, None] = {}
    for element in list_elements(value):
        token = _repeated_token(element) if type(element) in _REPEATED else make_token(element)
        if token is not None and not (type(token[1]) is float and not token[1].is_integer()):
            found[token] = None
    return list(found)


#: Types whose values are alike if they are equal, as 0.0 and -0.0 are not.
_REPEATED = frozenset({int, bool, str, bytes, type(None)})
_repeated_token = lru_cache(maxsize=1_024, typed=True)(make_token)


def moved_items(x: Sequence[Any], y: Sequence[Any]) -> list[Item]:
    """Places of structured outputs whose numbers differ most.

    They are found from some draws of each side.

    Parameters
    ----------
    x, y : sequence
        Outputs of each side, of which the first `ROWS` are read.

    Returns
    -------
    list of Item
        At most `_OFFERED`; empty if none differs.
    """
    rows = min(len(x), len(y), ROWS)
    columns = columns_of([*x[:rows], *y[:rows]])
    if columns is not None and rows >= 2 and all(column.numeric is not None for column in columns.columns):
        numeric = [column for column in columns.columns if column.numeric][:_PLACES]
        return _moved_values([column.path for column in numeric], [column.numbers for column in numeric], rows)
    seen: Counter[tuple[Any, ...]] = Counter()
    held: list[dict[tuple[Any, ...], float]] = []
    for value in (*x[:rows], *y[:rows]):
        numbers = {path: float_of(part) for path, part in walk_elements(value) if is_number(part)}
        held.append(numbers)
        if len(seen) < _PLACES:
            seen.update(numbers.keys())
    places = [path for path, count in seen.items() if count >= 2][:_PLACES]
    if not places or rows < 2:
        return []
    return _moved_values(places, [[numbers.get(path, np.nan) for numbers in held] for path in places], rows)


def _moved_values(places: Sequence[tuple[Any, ...]], numbers: Sequence[Any], rows: int) -> list[Item]:
    """Places whose numbers differ most, from those of each place: the first ``rows`` are of the first side."""
    if not places:
        return []
    table = np.ascontiguousarray(np.column_stack(numbers))
    scores = screen_coordinates(table[:rows], table[rows:])
    return [Item(places[k]) for k in best_columns(scores, _OFFERED, _LEAST)]
