"""Detection of features for kinds of output that few mechanisms have, from past draws of a pair.

Each look costs little, comes seldom, and offers nothing where it finds nothing. What is chosen among many is chosen on
the even draws of the past, so that it is to be judged on the odd ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import MAX_COORDINATES, Feature, LatticeExponent, Missing, Numeric, Part, Shape, is_coarse
from auditor.events.float_bits import BitPattern, NegativeZero, near_answers, precision_of
from auditor.events.learners import LEARNERS, MOST_DRAWS, Learner
from auditor.events.numbers_in_text import Written, written_in
from auditor.events.output_types import Flag, IsValue, KeyOrder, KindIs, kinds_of
from auditor.events.presence import ROWS, Presence, moved_items
from auditor.events.reservoir import Reservoir
from auditor.events.screening import best_columns, compare_counts, screen_coordinates, screen_tails
from auditor.events.shared_noise import MOST, equal_coordinates, is_shown, without_noise
from auditor.events.structure import Item
from auditor.targets.outputs import Batch, read_column, show_output
from auditor.targets.values import strip_type

Array = NDArray[np.float64]

#: Looked at anew when the draws have grown by this factor: all looks together cost three times the last one.
AGAIN = 1.5
#: Outputs of more coordinates are scored by the most different ones only; arbitrary, a linear score of so many takes a
#: second to learn from 20,000 draws.
WIDE = 512
#: Most different coordinates that scores of wide outputs use.
SCORED = 64
#: Coordinates that are offered, and the least score of one: of 100,000 equal ones, one reaches it once in six looks.
_OFFERED, _LEAST = 6, 4.5
#: Least difference of a coordinate, in standard deviations; arbitrary, linear scores find smaller ones.
_EFFECT = 0.25
#: Score of a difference that no choice among 100,000 makes look better than it is.
_BEYOND_DOUBT = 8.0
#: Places whose floats are looked at bit by bit; arbitrary, each makes a dozen features.
_FLOATS = 3
#: Calls of each side that must have given arrays of one type before types count. See `Survey`.
_CALLS = 11
#: Clear difference of one place among a few, in standard errors; arbitrary, what is offered costs little.
_CLEAR = 2.5
#: Draws a side from which bit patterns of plain numbers are looked at: events with fewer parameters come first, and
#: find textbook noise by then.
_PATTERNS = 150
#: Outputs a side that are looked at for values that repeat, and rows for the precision of their numbers; arbitrary.
_LOOK, _ROWS = 256, 50
#: Part of the numbers at a place that are different, for a look at their bits, and draws that tell; arbitrary.
_DISTINCT, _ENOUGH = 0.75, 32
#: Gaps between numbers below this part of the largest are rounding; the least gap is up to so many steps of a lattice;
#: and multiples of a step are so near to whole ones. All arbitrary.
_ROUNDING, _MULTIPLES, _NEAR = 1e-12, 12, 1e-3
#: Part of each side's outputs in a list that are numbers, for what is learned of numbers; arbitrary.
_MOSTLY = 0.25
#: A value is a symbol of its own if it is this part of a side's draws, arbitrary, and at least so many of them.
_SHARE, _OFTEN = 0.1, 4


class Survey:
    """Features of one pair that depend on what has been seen.

    Attributes
    ----------
    features : list of Feature
        To be judged on all draws: they were chosen among few, or are beyond doubt.
    chosen : list of Feature
        To be judged on the odd draws.
    parts : list of Part
        Symbols.
    columns : tuple of int
        Coordinates of wide outputs that differ most; empty for others.
    numbers : Feature or None
        Reads the numbers off lists that mostly hold numbers.

    Notes
    -----
    The type of an array belongs to a call, not to a draw. A target that chose it at random, call by call, would make
    the draws of a call fall into an event together, which bets take not to happen. So types of arrays count only where
    each side has had one type in all of its first 11 calls, and the sides different ones: at random, with a probability
    of 1/2 each, that happens in one pair of two million. Lists are read element by element.
    """

    def __init__(self) -> None:
        self.features: list[Feature] = []
        self.chosen: list[Feature] = []
        self.parts: list[Part] = []
        self.columns: tuple[int, ...] = ()
        self.numbers: Feature | None = None
        self._presence = Presence()
        self._written: tuple[Written, ...] = ()
        #: Draws a side that were compared place by place, and what was found.
        self._moved: tuple[int, list[Item]] = (0, [])
        #: Draws a side that learners of few draws have looked at, and what they found.
        self._learned: dict[Learner, tuple[int, list[tuple[Feature, float]]]] = {}
        self._looked_at = 0
        self._calls = 0
        self._types: tuple[set[str], set[str]] = (set(), set())

    def saw(self, x: Batch, y: Batch) -> None:
        """Take note of the types of one call's outputs.

        Parameters
        ----------
        x, y : ndarray of shape (n,) or (n, d), or list
            The outputs of each side.
        """
        self._calls += 1
        for seen, batch in zip(self._types, (x, y), strict=True):
            seen.update(kinds_of(batch) if isinstance(batch, np.ndarray) else ["list"])

    def look(self, past: Reservoir) -> None:
        """Look at the draws again, if there are enough new ones."""
        if past.held < AGAIN * self._looked_at:
            return
        x, y = past.draws()
        before = {*self.features, *self.chosen}
        self.features, self.chosen, self.parts = list(self._array_types()), [], []
        if isinstance(x, list) or isinstance(y, list):
            self._look_at_values(past, x, y)
        elif x.ndim == 2 and x.shape[1:] == y.shape[1:]:
            self._look_at_rows(x, y)
        for learn_features in LEARNERS:
            for feature, score in self._learn(learn_features, x[::2], y[::2]):
                self._offer(feature, score)
        self.features += _odd_numbers(x, y)
        self.features += _constants(x, y, *past.keys())
        self._add_floats(past, x, y)
        self._looked_at = past.held
        for feature in before - {*self.features, *self.chosen}:
            past.forget(feature)

    def _array_types(self) -> Iterator[Feature]:
        x, y = self._types
        if self._calls >= _CALLS and len(x) == len(y) == 1 and x != y and "list" not in x | y:
            yield from map(KindIs, (*x, *y))

    @property
    def _has_settled_types(self) -> bool:
        """No side has given nothing but arrays, of several types."""
        return all("list" in seen or len(seen) == 1 for seen in self._types)

    def _look_at_values(self, past: Reservoir, x: Batch, y: Batch) -> None:
        """Lists: kinds of outputs, keys and members, numbers at places, bits of bytes."""
        even_x, even_y = x[::2], y[::2]
        self._presence.add(*past.since(self._presence.n))
        if self._has_settled_types:
            self.features += map(KindIs, self._presence.different_kinds())
        self.features += self._presence.features()
        number = Shape("number")
        most = min(float(np.isfinite(number(side[:_LOOK])).mean()) for side in (x, y)) >= _MOSTLY
        self.numbers = number if most else None
        if isinstance(even_x, list) and isinstance(even_y, list):
            written = written_in([*even_x[:_LOOK], *even_y[:_LOOK]])
            self.features += written
            self._written = tuple(written)
            if any(isinstance(strip_type(value), dict) for value in (*even_x[:_LOOK], *even_y[:_LOOK])):
                self.parts.append(KeyOrder())
            rows = min(len(even_x), ROWS)
            if rows > self._moved[0]:
                self._moved = rows, moved_items(even_x, even_y)
            self.chosen += self._moved[1]

    def _learn(self, learn_features: Learner, x: Batch, y: Batch) -> Iterable[tuple[Feature, float]]:
        """Features of a learner: those of before where it has not enough new draws to look at."""
        most = MOST_DRAWS.get(learn_features)
        if most is None:
            return learn_features(x, y)
        seen, found = self._learned.get(learn_features, (0, []))
        rows = min(len(x), most)
        if rows >= 2 * seen or rows == most > seen:
            found = list(learn_features(x, y))
            self._learned[learn_features] = rows, found
        return found

    def _offer(self, feature: Feature, score: float) -> None:
        """Offer what was chosen among many by its score: to be judged on all draws only if it is beyond doubt."""
        (self.features if score >= _BEYOND_DOUBT else self.chosen).append(feature)

    def _look_at_rows(self, x: NDArray[np.generic], y: NDArray[np.generic]) -> None:
        """Rows of numbers: coordinates beyond the first ones, shared noise."""
        d = x.shape[1]
        even_x, even_y = x[::2], y[::2]
        columns = tuple(range(d))
        if d > MAX_COORDINATES:
            scores = screen_coordinates(even_x, even_y)
            self.columns = tuple(sorted(best_columns(scores, SCORED, 0.0))) if d > WIDE else ()
            for j in best_columns(scores, _OFFERED, max(_LEAST, _EFFECT * math.sqrt(len(even_x)))):
                pooled = np.concatenate([even_x[:, j], even_y[:, j]])
                bit = bool(np.isin(pooled, (0, 1)).all())
                if bit or j >= MAX_COORDINATES:
                    self._offer(Flag(j, d) if bit else Numeric("coordinate", j, width=d), scores[j])
            tails = screen_tails(even_x, even_y)
            for j in best_columns(tails, _OFFERED, _LEAST):
                if j >= MAX_COORDINATES:
                    self._offer(Numeric("coordinate", j, width=d), tails[j])
            columns = tuple(sorted(best_columns(scores, MOST, 0.0)))
        a, b = (side[:, list(columns)].astype(np.float64) for side in (even_x, even_y))
        if x.dtype.kind == y.dtype.kind == "f":
            self._add_missing(a, b, columns, d)
        if np.isfinite(a).all() and np.isfinite(b).all():
            shown = d <= MAX_COORDINATES and is_shown(a, b)
            tied = None if shown else without_noise(a, b, columns, d)
            self.features += [tied] if tied is not None else []
            if len(columns) == d and x.dtype.kind == "f" and precision_of(a.reshape(-1), b.reshape(-1)):
                self.chosen += equal_coordinates(a, b)

    def _add_missing(self, a: Array, b: Array, columns: tuple[int, ...], d: int) -> None:
        """Coordinates that are NaN or infinite, or -0.0, more often on one side."""
        for which in (_are_missing, _negative_zero):
            first, second = (which(side).sum(axis=0, dtype=np.float64) for side in (a, b))
            if first.any() or second.any():
                scores = compare_counts(first, second, len(a))
                if which is _are_missing:  # where both sides have some, their number says as much, see `Missing`
                    scores = np.where(np.minimum(first, second) == 0, scores, 0.0)
                for k in best_columns(scores, 2, _CLEAR):
                    base = Numeric("coordinate", columns[k], width=d)
                    self.chosen.append(Missing(base=base) if which is _are_missing else NegativeZero(base))

    def _add_floats(self, past: Reservoir, x: Batch, y: Batch) -> None:
        """Bits of floats at the places that differ most."""
        for base in self._precision_features(x, y):
            a, b = (read_column(x), read_column(y)) if base is None else past.values(base)
            # Decimal fractions have all bits, but repeat.
            repeat = base is not None and any(_repeat(v[:_LOOK]) for v in (a, b))
            if repeat or not precision_of(a, b):
                continue
            if base is not None or len(x) >= _PATTERNS:
                self.parts.append(BitPattern(base))
            if base is not None:
                self.features += [LatticeExponent(base=base), *near_answers(a, b, base)]
            elif is_coarse(a) and is_coarse(b):  # on a lattice by its scale, but not by its bits
                self.features += [LatticeExponent(), *near_answers(a, b)]

    def _precision_features(self, x: Batch, y: Batch) -> list[Feature | None]:
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            if x.shape[1:] != y.shape[1:] or x.dtype.kind != "f" or y.dtype.kind != "f":
                return []
            if x.ndim == 1:
                return [None]
            d, least = x.shape[1], _CLEAR if x.shape[1] <= MAX_COORDINATES else _LEAST
            if not precision_of(*(side[:_ROWS].reshape(-1).astype(np.float64) for side in (x, y))):
                return []
            best = best_columns(screen_coordinates(x[::2], y[::2]), _FLOATS, least)
            return [Numeric("coordinate", j, width=d) for j in best]
        found: list[Feature | None] = [] if self.numbers is None else [self.numbers]
        found += self._written
        found += [feature for feature in self.chosen if isinstance(feature, Item) and feature.kind == "number"]
        return found[:_FLOATS]


def _repeat(values: Array) -> bool:
    """Whether numbers repeat, lie on a lattice such as that of decimal fractions, or are too few to tell."""
    different = np.unique(values[np.isfinite(values)])
    if len(values) < _ENOUGH or len(different) < max(_DISTINCT * len(values), 2):
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.diff(different)
        gaps = gaps[gaps > _ROUNDING * np.abs(different).max()]
        # The least gap is a small multiple of the lattice's step; gaps of noise are no multiples of anything.
        parts = (np.outer(np.arange(1, _MULTIPLES + 1), gaps) / gaps.min()) if len(gaps) else np.zeros((1, 1))
        return bool((np.abs(parts - np.rint(parts)).max(axis=1) < _NEAR).any())


def telling_features(x: Batch, y: Batch) -> list[Feature]:
    """Features that `Survey` offers for draws of each side.

    The types of arrays are not among them: they take several calls.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        As many draws of each side.
    """
    past, survey = Reservoir(len(x)), Survey()
    past.add(x, y)
    survey.look(past)
    return list(dict.fromkeys((*survey.features, *survey.chosen)))


def _are_missing(values: Array) -> NDArray[np.bool_]:
    return ~np.isfinite(values)


def _negative_zero(values: Array) -> NDArray[np.bool_]:
    return np.asarray((values == 0) & np.signbit(values))


def _odd_numbers(x: Batch, y: Batch) -> Iterator[Feature]:
    """Plain numbers that are -0.0 somewhere."""
    if any(_negative_zero(read_column(side)).any() for side in (x, y)):
        yield NegativeZero()


def _constants(x: Batch, y: Batch, key_x: NDArray[np.int64], key_y: NDArray[np.int64]) -> Iterator[Feature]:
    """Values that make up much of one side's draws, where values hardly repeat otherwise."""
    if isinstance(x, np.ndarray) and x.ndim == 1 and isinstance(y, np.ndarray) and y.ndim == 1:
        return  # see `Marked`
    sides = [
        (side, key, *np.unique(key, return_index=True, return_counts=True))
        for side, key in ((x, key_x[:_LOOK]), (y, key_y[:_LOOK]))
    ]
    if sum(len(values) for _, _, values, _, _ in sides) <= 0.5 * len(
        sides[0][1]
    ):  # symbols say all that there is to say
        return
    for side, key, values, first, counts in sides:
        top = int(np.argmax(counts))
        # Rows of few numbers repeat without being symbols; only those that never vary are one.
        least = len(key) if isinstance(side, np.ndarray) else max(_OFTEN, _SHARE * len(key))
        if counts[top] >= least:
            yield IsValue(int(values[top]), show_output(side[int(first[top])]))
