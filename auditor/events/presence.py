"""Features of keys, members and numbers that structured outputs hold or lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.events.elements import Elements, Token, list_elements, make_token
from auditor.events.features import Feature
from auditor.events.output_types import kinds_of
from auditor.events.screening import best_columns, compare_counts, screen_coordinates
from auditor.events.structure import Item, walk_elements
from auditor.targets.outputs import Batch, float_of, is_number
from auditor.targets.values import strip_type

#: Kinds, keys and members that are counted; arbitrary, bounds memory. Keys beyond are those that came last.
MOST = 5_000
#: Features of one sort that are offered at a time, and the least score, in standard errors, of what is: arbitrary, each
#: feature costs a look at every draw.
_OFFERED, _LEAST = 4, 1.7
#: Draws a side, and places, whose numbers are compared; arbitrary, the numbers are read one by one.
_ROWS, _PLACES = 256, 1_024


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
            for one in held:
                counter.update(one if len(counter) < MOST else [what for what in one if what in counter])

    def different(self, n: int) -> list[Any]:
        """Elements whose frequencies differ most between the sides.

        The clearest come first; each side has n outputs.
        """
        held = list(dict.fromkeys((*self.x, *self.y)))
        if not held:
            return []
        first, second = (np.array([float(side[what]) for what in held]) for side in (self.x, self.y))
        return [held[k] for k in best_columns(compare_counts(first, second, n), _OFFERED, _LEAST)]


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
        self.kinds.add(_kinds(x), _kinds(y))
        self.keys.add(*(list(map(_keys, _as_list(side))) for side in (x, y)))
        self.members.add(*(list(map(_members, _as_list(side))) for side in (x, y)))

    def different_kinds(self) -> list[str]:
        """Kinds that differ most between the sides, exceptions first."""
        if len(self.kinds.x | self.kinds.y) < 2:
            return []
        return sorted(self.kinds.different(self.n), key=lambda kind: not kind.startswith("raised "))

    def features(self) -> list[Feature]:
        """Features on the keys and members that differ most."""
        found: list[Feature] = [Item(path, "present") for path in self.keys.different(self.n)]
        return found + [Elements("count", member) for member in self.members.different(self.n)]


def _as_list(batch: Batch) -> list[Any]:
    return [] if isinstance(batch, np.ndarray) else batch


def _kinds(batch: Batch) -> list[list[str]]:
    return [[kind] for kind in kinds_of(batch)] * (len(batch) if isinstance(batch, np.ndarray) else 1)


def _keys(value: Any) -> list[tuple[Any, ...]]:
    """Places of an output that end in a key of a dict."""
    return [path for path, _ in walk_elements(value) if not isinstance(path[-1], int) or _in_dict(value, path)]


def _in_dict(value: Any, path: tuple[Any, ...]) -> bool:
    """Whether the last step of a place is a key, not an index."""
    for step in path[:-1]:
        value = strip_type(value)[step]
    return isinstance(strip_type(value), dict)


def _members(value: Any) -> list[Token]:
    """Plain values that a container holds; numbers with a fraction hardly ever repeat and are left out."""
    if not isinstance(strip_type(value), list | tuple | set | frozenset):
        return []
    found = dict.fromkeys(make_token(element) for element in list_elements(value))
    return [one for one in found if one is not None and not (type(one[1]) is float and not one[1].is_integer())]


def moved_items(x: Sequence[Any], y: Sequence[Any]) -> list[Item]:
    """Places of structured outputs whose numbers differ most.

    They are found from some draws of each side.

    Parameters
    ----------
    x, y : sequence
        Outputs of each side, of which the first `_ROWS` are read.

    Returns
    -------
    list of Item
        At most `_OFFERED`; empty if none differs.
    """
    rows = min(len(x), len(y), _ROWS)
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
    table = np.array([[numbers.get(path, np.nan) for path in places] for numbers in held])
    scores = screen_coordinates(table[:rows], table[rows:])
    return [Item(places[k]) for k in best_columns(scores, _OFFERED, _LEAST)]
