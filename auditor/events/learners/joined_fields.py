"""Events that join several places of an output: values that they have together, and one that follows from others.

A defect may leave each place as it was and show in two or three of them only: two bits of a vector that differ more
often than they should where one certain hash was drawn, a count that is odd for one category, a digest that fits the
rest of the output under one dataset alone. Joint tables of all pairs, and of all triples where they are few, are
compared between the datasets by their cumulants, which are 0 where one of the places is independent of the others; so
what the places show by themselves does not count. Of those that differ most, the cells are ordered by likelihood ratio.
Where places have many values, a table from some of them to another one is learned from past draws of one dataset, and
the event is that it is right.

Nothing here bears on validity: an event is chosen on past draws, and bets are made on later ones only. What is chosen
here is moreover judged on past draws that it was not chosen on, and has to beat simpler events by some nats.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.events.discrete_fields import (
    MANY,
    ROWS,
    DiscreteField,
    OutputPlace,
    PlaceValues,
    find_fields,
    find_places,
    join_codes,
    mix_keys,
    read_table,
)
from auditor.events.features import Feature
from auditor.events.joint_screening import find_least_score, screen_sets
from auditor.targets.columns import OutputList
from auditor.targets.outputs import Batch
from auditor.targets.threads import one_thread

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Least draws a side, arbitrary: fewer tell nothing of pairs.
_LEAST_DRAWS = 100
#: Places that are looked at for one that follows from others, and least agreements; arbitrary.
_RELATED, _LEAST_PAIRS = 5, 8
#: Entries of a table that is learned; arbitrary, a record holds them.
_ENTRIES = 1_024
#: Highest score: what was fitted on some draws is never judged on the same, see `auditor.events.feature_detection`.
_HIGHEST = 7.0
#: Difference of a joint value's counts, in standard errors, from which on it is in an event; arbitrary.
_CLEAR = 2.0
#: Joint values that are written out; arbitrary, a line's length.
_WORDS = 4


@dataclass(frozen=True)
class JoinedFields:
    """Rank of the values that fields have together.

    Joint values that are clearly more likely on the first dataset come first, from rank 0 on, and those that are less
    likely last. All others, seen or not, have one rank between.

    Parameters
    ----------
    fields : tuple of DiscreteField
        The fields.
    cells : tuple of int
        Clear joint values in order, each with the last field's code in the lowest place.
    likelier : int
        How many of them are more likely on the first dataset.
    """

    fields: tuple[DiscreteField, ...]
    cells: tuple[int, ...]
    likelier: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        ranks = np.full(math.prod(one.size for one in self.fields), float(self.likelier))
        for rank, cell in enumerate(self.cells):
            ranks[cell] = rank + (rank >= self.likelier)
        joint = join_codes([one(batch) for one in self.fields], [one.size for one in self.fields])
        return np.where(joint >= 0, ranks[np.maximum(joint, 0)], np.nan)

    def _describe_cells(self, cells: Sequence[int]) -> str:
        said = []
        for cell in cells[:_WORDS]:
            words, left = [], cell
            for one in reversed(self.fields):
                left, code = divmod(left, one.size)
                words.append(one.say(code))
            said.append(" and ".join(reversed(words)))
        return "; or ".join(said) + (f"; ... ({len(cells)} in all)" if len(cells) > _WORDS else "")

    def below(self, cut: float) -> str:
        """In words."""
        rank = math.floor(cut)
        if rank < self.likelier:
            return self._describe_cells(self.cells[: rank + 1])
        return f"not ({self._describe_cells(self.cells[rank:])})"

    def above(self, cut: float) -> str:
        """In words."""
        rank = math.floor(cut)
        if rank < self.likelier:
            return f"not ({self._describe_cells(self.cells[: rank + 1])})"
        return self._describe_cells(self.cells[rank:][::-1])


@dataclass(frozen=True)
class PredictedField:
    """Whether one place holds what a table predicts from others.

    It is 1 or 0, and NaN where the table says nothing. The table is of past draws of one dataset.

    Parameters
    ----------
    target : OutputPlace
        The place that is predicted.
    sources : tuple of OutputPlace
        The others.
    table : tuple of int
        Sorted keys of what the others hold.
    values : tuple of int
        Key of the prediction for each.
    """

    target: OutputPlace
    sources: tuple[OutputPlace, ...]
    table: tuple[int, ...]
    values: tuple[int, ...]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        table, values = np.array(self.table, dtype=np.int64), np.array(self.values, dtype=np.int64)
        keys = mix_keys([place.keys(batch) for place in self.sources])
        at = np.minimum(table.searchsorted(keys), len(table) - 1)
        return np.where(table[at] == keys, (values[at] == self.target.keys(batch)).astype(np.float64), np.nan)

    def _describe(self, does: str) -> str:
        names = ", ".join(place.name for place in self.sources)
        return f"{self.target.name} {does} from {names} as in past draws of one dataset"

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return self._describe("does not follow")

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return self._describe("follows")


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Joint values that differ, and a place that follows from others.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side, as many.
    """
    n = min(len(x), len(y))
    places = find_places(x, y) if n >= _LEAST_DRAWS else []
    if len(places) < 2:
        return
    sides = tuple(side if isinstance(side, np.ndarray) else OutputList(side) for side in (x[:n], y[:n]))
    table = read_table(sides, places)
    fields = find_fields(table)
    if fields:
        sizes = [one.size for one, _ in fields]
        with one_thread():
            sets = screen_sets([one for one, _ in fields], *([codes[k] for _, codes in fields] for k in (0, 1)))
        order = {one: k for k, one in enumerate(places)}
        for some, score in sets:
            chosen = sorted(some, key=lambda j: order[fields[j][0].place])
            cells = [join_codes([fields[j][1][k] for j in chosen], [sizes[j] for j in chosen]) for k in (0, 1)]
            found = _rank_cells(tuple(fields[j][0] for j in chosen), *cells)
            if found is not None:
                yield found, min(score, _HIGHEST)
    yield from _learn_predictions(table)


def _rank_cells(fields: tuple[DiscreteField, ...], x: Codes, y: Codes) -> JoinedFields | None:
    """Joint values that differ clearly, ordered by shrunken likelihood ratio."""
    size = math.prod(one.size for one in fields)
    a, b = (np.bincount(side[side >= 0], minlength=size).astype(np.float64) for side in (x, y))
    clear = np.flatnonzero((a - b) ** 2 >= _CLEAR**2 * (a + b + 1.0))
    if not len(clear):
        return None
    ratio = np.log(a[clear] + 1.0) - np.log(b[clear] + 1.0)
    order = np.argsort(-ratio, kind="stable")
    return JoinedFields(fields, tuple(clear[order].tolist()), int(np.sum(ratio > 0)))


def _learn_predictions(table: Sequence[PlaceValues]) -> Iterator[tuple[PredictedField, float]]:
    """The place that follows most clearly from one, two or all others on one side only."""
    many = sorted(table, key=lambda one: -len(one.distinct))[:_RELATED]
    if len(many) < 2 or len(many[0].distinct) <= MANY:
        return  # tables of joint values say as much
    rows = [np.column_stack([one.keys[k] for one in many]) for k in (0, 1)]
    indices = range(len(many))
    sets = [*itertools.combinations(indices, 1), *itertools.combinations(indices, 2)]
    sets += [tuple(j for j in indices if j != k) for k in indices] if len(many) > 3 else []
    best: tuple[float, int, tuple[int, ...], int] | None = None
    for sources in sets:
        if len(sources) == len(many):
            continue
        first, second = (_count_agreements(side[:ROWS], sources) for side in rows)
        if min(first[1], second[1]) < _LEAST_PAIRS:
            continue
        p, q = first[0] / first[1], second[0] / second[1]
        middle = (first[0] + second[0] + 1.0) / (first[1] + second[1] + 2.0)
        z = (p - q) / np.sqrt(middle * (1 - middle) * (1 / first[1] + 1 / second[1]))
        z[list(sources)] = 0.0
        target = int(np.argmax(np.abs(z)))
        if best is None or abs(z[target]) > best[0]:
            best = float(abs(z[target])), target, sources, int(z[target] < 0)
    if best is None or best[0] < find_least_score(len(sets) * len(many)):
        return
    score, target, sources, side = best
    keys = mix_keys([rows[side][:, j] for j in sources])
    found = _learn_table(keys, rows[side][:, target])
    places = tuple(many[j].place for j in sources)
    yield PredictedField(many[target].place, places, *found), min(score, _HIGHEST)


def _count_agreements(rows: Codes, sources: tuple[int, ...]) -> tuple[Array, int]:
    """Pairs of draws with equal sources: how often each place is equal too, and how many there are."""
    keys = mix_keys([rows[:, j] for j in sources])
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return (rows[order[same + 1]] == rows[order[same]]).sum(axis=0).astype(np.float64), len(same)


def _learn_table(keys: Codes, target: Codes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The most frequent target of each key, for the most frequent keys."""
    pairs, count = np.unique(np.column_stack([keys, target]), axis=0, return_counts=True)
    order = np.lexsort((-count, pairs[:, 0]))
    pairs = pairs[order]
    new = np.concatenate([[True], pairs[1:, 0] != pairs[:-1, 0]])
    often = np.add.reduceat(count[order], np.flatnonzero(new))
    pairs = pairs[new]
    kept = np.sort(np.argsort(-often, kind="stable")[:_ENTRIES])
    return tuple(pairs[kept, 0].tolist()), tuple(pairs[kept, 1].tolist())


CAUSES = {
    JoinedFields: ("set of values that several places of the output have together", 3),
    PredictedField: ("value at a place that follows from others on one dataset only", 4),
}
#: Nats by which an event has to beat simpler ones: tables are many and noisy. As for other learned features.
PENALTIES = {JoinedFields: 3.0, PredictedField: 3.0}
