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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.screening import compare_counts
from auditor.events.structure import PartAt
from auditor.targets.columns import OutputList, columns_of
from auditor.targets.outputs import Batch, float_of, hash_outputs, show_output
from auditor.targets.threads import one_thread
from auditor.targets.values import strip_type

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Places that are looked at, those of them that have many values, and fields with all that is derived; arbitrary,
#: bounds a look to some ms.
_PLACES, _LONG, _FIELDS = 40, 10, 40
#: Columns of the indicators of all fields up to which pairs are compared, and triples; arbitrary, costs grow with the
#: square and the cube.
_PAIR_COLUMNS, _TRIPLE_COLUMNS = 160, 64
#: Values of a field that are told apart; those of a number with more than the second have parity and bounds too, and
#: with more than the third are put into quarters. Arbitrary.
_VALUES, _SEVERAL, _MANY = 32, 4, 8
#: Least draws a side, arbitrary: fewer tell nothing of pairs.
_LEAST_DRAWS = 100
#: Least part of the draws in which a bound is reached, or two places are equal, and the rest of them; arbitrary.
_OFTEN = 0.01
#: Values that hardly repeat are those of which so many draws have this part of different ones; arbitrary.
_LOOK, _DIFFERENT = 256, 0.9
#: Sets of fields that are offered, and of them from the same places; arbitrary, each costs a look at every draw.
_OFFERED, _ALIKE = 4, 2
#: Least score beyond what the best of as many sets without any difference has, and least score at all; arbitrary.
_BEYOND, _LEAST_SCORE = 0.3, 2.5
#: Places that are looked at for one that follows from others, draws a side, and least agreements; arbitrary.
_RELATED, _ROWS, _LEAST_PAIRS = 5, 2_000, 8
#: Entries of a table that is learned; arbitrary, a record holds them.
_ENTRIES = 1_024
#: Highest score: what was fitted on some draws is never judged on the same, see `auditor.events.feature_detection`.
_HIGHEST = 7.0
#: Difference of a joint value's counts, in standard errors, from which on it is in an event; arbitrary.
_CLEAR = 2.0
#: Joint values that are written out; arbitrary, a line's length.
_WORDS = 4
#: Odd multipliers by which keys are mixed; arbitrary, fixed so that keys are the same in every process.
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
#: Key of NaN in an array; arbitrary.
_NO_NUMBER = -1
_NUMBERS = frozenset({int, float, bool})


@dataclass(frozen=True)
class OutputPlace:
    """A place of an output, as a number or a key.

    Parameters
    ----------
    path : tuple
        Steps that lead there: positions, and keys of dicts.
    """

    path: tuple[Any, ...]

    @property
    def name(self) -> str:
        """In words."""
        return PartAt(self.path).name

    def numbers(self, batch: Batch) -> Array:
        """Numbers there, shape (n,); NaN where there is none."""
        if isinstance(batch, np.ndarray):
            inside = batch.ndim == 2 and len(self.path) == 1 and self.path[0] in range(batch.shape[1])
            return batch[:, self.path[0]].astype(np.float64) if inside else np.full(len(batch), np.nan)
        columns = columns_of(batch)
        column = None if columns is None else columns.at(self.path)
        if column is not None and column.kinds <= _NUMBERS:
            try:
                return np.array(column.values, dtype=np.float64)
            except OverflowError:
                pass
        return np.array([float_of(part) for part in PartAt(self.path)(batch)], dtype=np.float64)

    def keys(self, batch: Batch, numbers: Array | None = None) -> Codes:
        """Keys of what is there, shape (n,): equal values have equal keys.

        Parameters
        ----------
        batch : ndarray of shape (n,) or (n, d), or list
            Outputs.
        numbers : ndarray of shape (n,), optional
            What `numbers` gave for them.
        """
        numbers = self.numbers(batch) if numbers is None else numbers
        missing = np.isnan(numbers)
        keys: Codes = (numbers + 0.0).view(np.int64)  # one zero
        if not missing.any():
            return keys
        keys[missing] = _NO_NUMBER
        if isinstance(batch, np.ndarray):
            return keys
        others = np.flatnonzero(missing).tolist()
        known: dict[tuple[type, Any], int] = {}
        for k, part in zip(others, PartAt(self.path)([batch[k] for k in others]), strict=True):
            if isinstance(part, str | bytes):
                if (type(part), part) not in known:
                    known[type(part), part] = int(hash_outputs([part])[0])
                keys[k] = known[type(part), part]
            elif not isinstance(strip_type(part), float | np.floating):  # NaN has a key, as in arrays
                keys[k] = int(hash_outputs([part])[0])
        return keys


@dataclass(frozen=True)
class DiscreteField:
    """A place of an output with few values, or something derived.

    Parameters
    ----------
    place : OutputPlace
        Where it is read.
    kind : str
        "value" (one of a table), "quarter" (between edges), "bound" (at the least or the largest number that was seen,
        or not), "parity", "sign", or "equal" (to what is at another place).
    table : tuple of float or of int
        Sorted keys of values, edges, or the bound.
    labels : tuple of str
        Values in words.
    other : OutputPlace or None
        The other place.
    """

    place: OutputPlace
    kind: str
    table: tuple[float, ...] = ()
    labels: tuple[str, ...] = field(default=(), compare=False)
    other: OutputPlace | None = None

    @property
    def size(self) -> int:
        """Number of its values."""
        sizes = {"value": len(self.table) + 1, "quarter": len(self.table) + 1, "sign": 3}
        return sizes.get(self.kind, 2)

    def __call__(self, batch: Batch) -> Codes:
        """Code of each output's value, from 0, shape (n,); -1 where there is none."""
        if self.kind in ("value", "equal"):
            other = None if self.other is None else self.other.keys(batch)
            return self.encode(self.place.keys(batch), other)
        return self.encode(self.place.numbers(batch))

    def encode(self, read: NDArray[Any], other: Codes | None = None) -> Codes:
        """Codes of what was read at the place, and the other one."""
        if self.kind == "equal":
            return np.asarray(read == other, dtype=np.int64)
        if self.kind == "value":
            known = np.array(self.table, dtype=np.int64)
            at = np.minimum(known.searchsorted(read), len(known) - 1)
            return np.where(known[at] == read, at, len(known))
        with np.errstate(invalid="ignore"):
            if self.kind == "quarter":
                code = np.array(self.table).searchsorted(read, side="left").astype(np.float64)
            elif self.kind == "bound":
                code = (read == self.table[0]).astype(np.float64)
            else:
                code = np.sign(read) + 1.0 if self.kind == "sign" else np.fmod(np.abs(read), 2.0)
            valid = (code == np.floor(code)) & ~np.isnan(read)
        return np.where(valid, code, -1.0).astype(np.int64)

    def say(self, code: int) -> str:
        """The value of a code in words."""
        name = self.place.name
        if self.kind == "value":
            return f"{name} = {self.labels[code]}" if code < len(self.table) else f"{name} has another value"
        if self.kind == "equal":
            assert self.other is not None
            return f"{name} {'=' if code else '!='} {self.other.name}"
        if self.kind == "parity":
            return f"{name} is {'odd' if code else 'even'}"
        if self.kind == "sign":
            return f"{name} {('<', '=', '>')[code]} 0"
        edges = [f"{edge:.6g}" for edge in self.table]
        if self.kind == "bound":
            return f"{name} {'=' if code else '!='} {edges[0]}"
        low, high = code > 0, code < len(edges)
        return f"{f'{edges[code - 1]} < ' if low else ''}{name}{f' <= {edges[code]}' if high else ''}"


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


def join_codes(codes: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """Number of the cell in a table of several fields.

    Parameters
    ----------
    codes : sequence of ndarray of shape (n,)
        Codes of each field.
    sizes : sequence of int
        Number of values of each.

    Returns
    -------
    ndarray of shape (n,)
        -1 where a field has no value.
    """
    cell, valid = np.zeros(len(codes[0]), dtype=np.int64), np.ones(len(codes[0]), dtype=np.bool_)
    for code, size in zip(codes, sizes, strict=True):
        cell, valid = cell * size + code, valid & (code >= 0)
    return np.where(valid, cell, -1)


def mix_keys(keys: Sequence[Codes]) -> Codes:
    """One key for the keys of several places, shape (n,)."""
    total = np.zeros(len(keys[0]), dtype=np.uint64)
    for k, one in enumerate(keys):
        word = one.view(np.uint64)
        total = (total + (word ^ (word >> np.uint64(29)))) * np.uint64(_FACTORS[k % len(_FACTORS)])
    return total.view(np.int64)


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
    table = _read_table(sides, places)
    fields = _find_fields(table)
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


def find_places(x: Batch, y: Batch) -> list[OutputPlace]:
    """Places that all outputs have, the first `_PLACES` of them.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Draws of each side.

    Returns
    -------
    list of OutputPlace
        None for plain values, and for outputs that are not all built alike.
    """
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        if x.ndim != 2 or x.shape[1:] != y.shape[1:]:
            return []
        return [OutputPlace((j,)) for j in range(min(x.shape[1], _PLACES))]
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return []
    first, second = columns_of(x[:_LOOK]), columns_of(y[:_LOOK])
    if first is None or second is None:
        return []
    paths = [column.path for column in first.columns]
    return [OutputPlace(path) for path in paths[:_PLACES]] if paths == [c.path for c in second.columns] else []


@dataclass(frozen=True)
class _PlaceValues:
    """What both sides hold at a place, and the different values of the first draws."""

    place: OutputPlace
    keys: tuple[Codes, Codes]
    numbers: tuple[Array, Array]
    distinct: Codes
    example: Mapping[int, Any]

    @property
    def is_few(self) -> bool:
        """Whether there are few values, more than one."""
        return 1 < len(self.distinct) <= _VALUES


def _read_table(sides: tuple[Batch, ...], places: Sequence[OutputPlace]) -> list[_PlaceValues]:
    """Places whose values repeat, with what both sides hold there."""
    found: list[_PlaceValues] = []
    for place in places:
        numbers = tuple(place.numbers(side) for side in sides)
        first = np.concatenate(
            [place.keys(side[:_LOOK], one[:_LOOK]) for side, one in zip(sides, numbers, strict=True)]
        )
        repeats = len(np.unique(first)) <= _DIFFERENT * len(first)
        if not repeats and not all(map(_has_grain, numbers)):
            continue
        keys = tuple(place.keys(side, one) for side, one in zip(sides, numbers, strict=True))
        looked = np.concatenate([side[:_ROWS] for side in keys])
        distinct, at = np.unique(looked, return_index=True)
        example = {}
        if len(distinct) > _VALUES:
            if sum(len(one.distinct) > _VALUES for one in found) >= _LONG:
                continue
        else:
            for key, k in zip(distinct.tolist(), at.tolist(), strict=True):
                side, row = (0, k) if k < len(keys[0][:_ROWS]) else (1, k - len(keys[0][:_ROWS]))
                example[key] = PartAt(place.path)(sides[side][row : row + 1])[0]
        found.append(_PlaceValues(place, (keys[0], keys[1]), (numbers[0], numbers[1]), distinct, example))
    return found


def _has_grain(numbers: Array) -> bool:
    """Whether all are integers, or a bound is reached often."""
    if not np.isfinite(numbers).all():
        return False
    if bool((numbers == np.rint(numbers)).all()):
        return True
    least = _OFTEN * len(numbers)
    return bool((numbers == numbers.min()).sum() >= least or (numbers == numbers.max()).sum() >= least)


def _find_fields(table: Sequence[_PlaceValues]) -> list[tuple[DiscreteField, tuple[Codes, Codes]]]:
    """Fields with their codes on both sides, those with the fewest values first."""
    made: list[tuple[DiscreteField, _PlaceValues]] = []
    for one in table:
        if one.is_few:
            labels = tuple(show_output(one.example[key]) for key in one.distinct.tolist())
            made.append((DiscreteField(one.place, "value", tuple(one.distinct.tolist()), labels), one))
        if len(one.distinct) > _SEVERAL:
            made += [(derived, one) for derived in _derive_fields(one)]
    found = []
    for made_field, one in sorted(made, key=lambda entry: len(_shown_codes(entry[0]))):
        read = one.keys if made_field.kind == "value" else one.numbers
        found.append((made_field, (made_field.encode(read[0]), made_field.encode(read[1]))))
    several = [one for one in table if len(one.distinct) > 2]
    for a, b in itertools.islice(itertools.combinations(several, 2), 2 * _FIELDS):
        alike = sum(int(np.sum(a.keys[k][:_LOOK] == b.keys[k][:_LOOK])) for k in (0, 1))
        if alike < _OFTEN * _LOOK or (a.is_few and b.is_few):
            continue
        equal = DiscreteField(a.place, "equal", other=b.place)
        codes = equal.encode(a.keys[0], b.keys[0]), equal.encode(a.keys[1], b.keys[1])
        if _OFTEN < float(np.concatenate(codes).mean()) < 1 - _OFTEN:
            found.insert(0, (equal, codes))
    return found[:_FIELDS]


def _derive_fields(one: _PlaceValues) -> Iterator[DiscreteField]:
    """Parity, bounds, quarters and sign of a number with several values."""
    pooled = np.concatenate(one.numbers)
    if not np.isfinite(pooled).all():
        return
    if (pooled == np.rint(pooled)).all() and np.ptp(pooled % 2) > 0:
        yield DiscreteField(one.place, "parity")
    low, high = float(pooled.min()), float(pooled.max())
    for bound in (low, high):
        if _OFTEN <= float((pooled == bound).mean()) <= 1 - _OFTEN:
            yield DiscreteField(one.place, "bound", (bound,))
    if len(one.distinct) > _MANY:
        looked = np.sort(np.concatenate([side[:_ROWS] for side in one.numbers]))
        edges = np.unique(looked[[len(looked) // 4, len(looked) // 2, 3 * len(looked) // 4]])
        edges = edges[edges < high]
        if len(edges):
            yield DiscreteField(one.place, "quarter", tuple(edges.tolist()))
    if _OFTEN < float((pooled < 0).mean()) < 1 - _OFTEN:
        yield DiscreteField(one.place, "sign")


def screen_sets(
    fields: Sequence[DiscreteField], x: Sequence[Codes], y: Sequence[Codes]
) -> list[tuple[tuple[int, ...], float]]:
    """Sets of fields that differ jointly between the sides.

    Parameters
    ----------
    fields : sequence of DiscreteField
        Fields.
    x, y : sequence of ndarray of shape (n,)
        Codes of each field on each side.

    Returns
    -------
    list of tuple
        Indices of one to three fields with their score in standard errors, the highest first, at most `_OFFERED`. One
        alone is a field that no other learner reads: a parity, or whether two places are equal.
    """
    found: list[tuple[tuple[int, ...], float]] = [
        ((j,), float(compare_counts(np.sum(x[j] == 1), np.sum(y[j] == 1), len(x[j]))))
        for j in range(len(fields))
        if fields[j].kind in ("parity", "equal")
    ]
    found = [one for one in found if one[1] >= _least_score(len(found))]
    for screen, most, kinds in (
        (_screen_pairs, _PAIR_COLUMNS, ("value", "equal", "parity", "bound", "quarter", "sign")),
        (_screen_triples, _TRIPLE_COLUMNS, ("value", "equal", "parity", "bound")),
    ):
        some = [j for j in range(len(fields)) if fields[j].kind in kinds]
        some = some[: _keep_columns([fields[j] for j in some], most)]
        table = _Indicators([fields[j] for j in some], [x[j] for j in some], [y[j] for j in some]) if some else None
        for picked, score in [] if table is None else screen(table):
            found.append((tuple(some[k] for k in picked), score))
    chosen: list[tuple[tuple[int, ...], float]] = []
    seen: dict[frozenset[OutputPlace], int] = {}
    for one, score in sorted(found, key=lambda entry: (-entry[1], len(entry[0]), entry[0])):
        read = frozenset(fields[j].place for j in one)
        # What a pair shows already, three show as well.
        shown = any(set(other) < set(one) and score < 1.5 * better for other, better in chosen)
        if seen.get(read, 0) < _ALIKE and not shown and len(chosen) < _OFFERED:
            seen[read] = seen.get(read, 0) + 1
            chosen.append((one, score))
    return chosen


def _shown_codes(one: DiscreteField) -> list[int]:
    """Codes with an indicator: one of two, and not that of values which the first draws did not have."""
    codes = list(range(len(one.table) if one.kind == "value" else one.size))
    return codes[1:] if len(codes) == 2 else codes


def _keep_columns(fields: Sequence[DiscreteField], most: int) -> int:
    """How many of the first fields have so many indicators in all."""
    total = np.cumsum([len(_shown_codes(one)) for one in fields])
    return int(np.sum(total <= most))


class _Indicators:
    """Columns of 0 and 1 for the codes of fields, on both sides, and which fields have no place in common."""

    def __init__(self, fields: Sequence[DiscreteField], x: Sequence[Codes], y: Sequence[Codes]) -> None:
        shown = [_shown_codes(one) for one in fields]
        self.codes = (x, y)
        self.columns = [(j, code) for j, codes in enumerate(shown) for code in codes]
        self.starts = [0, *np.cumsum([len(codes) for codes in shown]).tolist()]
        places = [{one.place, one.other} - {None} for one in fields]
        self.apart = np.array([[a.isdisjoint(b) for b in places] for a in places])
        self.sides = [
            np.column_stack([side[j] == code for j, code in self.columns]).astype(np.float32) for side in self.codes
        ]
        self.moments = [_pair_moments(side) for side in self.sides]
        self.n = len(self.sides[0])


def _screen_pairs(table: _Indicators) -> list[tuple[tuple[int, ...], float]]:
    """Pairs of fields whose joint cumulants differ by more than chance."""
    first, second = (_pair_cumulants(*moments) for moments in table.moments)
    score = _score_blocks(first, second, table.n, table.starts)
    wanted = np.triu(table.apart, 1)
    pairs = np.argwhere(wanted & (score >= _least_score(int(wanted.sum()))))
    return [((int(i), int(j)), float(score[i, j])) for i, j in pairs]


def _screen_triples(table: _Indicators) -> list[tuple[tuple[int, ...], float]]:
    """Triples of fields whose third cumulants differ by more than chance."""
    starts, apart, scores, tried = table.starts, table.apart, [], 0
    for i in range(len(apart) - 2):
        own, rest, later = slice(starts[i], starts[i + 1]), slice(starts[i + 1], None), slice(i + 1, None)
        codes = [code for _, code in table.columns[own]]
        first, second = (
            _triple_cumulants(_triple_moments(field_codes[i], side[:, rest], codes), *moments, own, rest)
            for field_codes, side, moments in zip(table.codes, table.sides, table.moments, strict=True)
        )
        wanted = np.triu(apart[later, later] & apart[i, later] & apart[i, later, None], 1)
        tried += int(wanted.sum())
        inner = [start - starts[i + 1] for start in starts[i + 1 :]]
        scores.append(np.where(wanted, _score_blocks(first, second, table.n, inner), -np.inf))
    least = _least_score(tried)
    return [
        ((i, i + 1 + int(j), i + 1 + int(k)), float(score[j, k]))
        for i, score in enumerate(scores)
        for j, k in np.argwhere(score >= least)
    ]


def _least_score(tried: int) -> float:
    """Score that one of so many sets without any difference hardly reaches."""
    return max(_LEAST_SCORE, _BEYOND + math.sqrt(2 * math.log(max(tried, 1))))


def _pair_moments(side: NDArray[np.float32]) -> tuple[Array, Array]:
    """Means of the columns and of their products; the sums are exact, whatever the order of terms."""
    return side.mean(axis=0, dtype=np.float64), (side.T @ side).astype(np.float64) / len(side)


def _triple_moments(codes: Codes, later: NDArray[np.float32], wanted: Sequence[int]) -> Array:
    """Means of products of a field's indicators with pairs of later columns, shape (codes, columns, columns)."""
    order = np.argsort(codes.astype(np.int16), kind="stable")
    ends = codes[order].searchsorted([(code, code + 1) for code in wanted])
    rows = later[order[ends[0, 0] : ends[-1, 1]]]
    parts = [rows[a:b] for a, b in (ends - ends[0, 0]).tolist()]
    return np.stack([(part.T @ part).astype(np.float64) for part in parts]) / len(codes)


def _pair_cumulants(mean: Array, product: Array) -> tuple[Array, Array]:
    """Covariances of indicators, and the variances of one draw's part in them."""
    square, slope = mean**2, 1.0 - 2.0 * mean
    cumulant = product - np.outer(mean, mean)
    # (v - m)^2 = m^2 + (1 - 2m) v for v of 0 and 1.
    one = np.outer(square, slope * mean)
    second = np.outer(square, square) + one + one.T + np.outer(slope, slope) * product
    return cumulant, second - cumulant**2


def _triple_cumulants(triple: Array, mean: Array, product: Array, own: slice, rest: slice) -> tuple[Array, Array]:
    """Third cumulants of a field's indicators with two later ones, and the variances of one draw's part in them."""
    a, b = mean[own][:, None, None], mean[rest]
    both, cross = product[rest, rest], product[own, rest]
    left, right = cross[:, :, None], cross[:, None, :]
    c, d = b[:, None], b[None, :]
    cumulant = triple - a * both - c * right - d * left + 2 * a * c * d
    # Squares as for pairs, each of the three factors m^2 + (1 - 2m) v.
    s, t, u = a**2, c**2, d**2
    e, f, g = 1 - 2 * a, 1 - 2 * c, 1 - 2 * d
    second = s * t * u + e * a * t * u + s * f * c * u + s * t * g * d
    second = second + e * f * left * u + e * g * right * t + f * g * both * s + e * f * g * triple
    return cumulant, second - cumulant**2


def _score_blocks(first: tuple[Array, Array], second: tuple[Array, Array], n: int, starts: Sequence[int]) -> Array:
    """Score of each block of cells, roughly as a standard normal number where nothing differs.

    It is the larger of the sum of squares, as a chi-squared number, and the largest cell, less what the largest of as
    many is by chance.
    """
    spread = np.sqrt((np.maximum(first[1], 0.0) + np.maximum(second[1], 0.0)) / n + 1.0 / n**2)
    squares = ((first[0] - second[0]) / spread) ** 2
    depth = squares.shape[0] if squares.ndim == 3 else 1
    total, top = (squares.sum(axis=0), squares.max(axis=0)) if squares.ndim == 3 else (squares, squares)
    total = np.add.reduceat(np.add.reduceat(total, starts[:-1], axis=0), starts[:-1], axis=1)
    top = np.maximum.reduceat(np.maximum.reduceat(top, starts[:-1], axis=0), starts[:-1], axis=1)
    size = np.diff(starts)
    cells = np.outer(size, size) * float(depth)
    free = np.outer(np.maximum(size - 1, 1), np.maximum(size - 1, 1)) * float(max(depth - 1, 1))
    width = 2.0 / (9.0 * free)
    by_sum = (np.cbrt(total / cells) - (1.0 - width)) / np.sqrt(width)
    by_top = np.sqrt(np.maximum(top - 2.0 * np.log(cells), 0.0))
    return np.asarray(np.maximum(by_sum, by_top))


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


def _learn_predictions(table: Sequence[_PlaceValues]) -> Iterator[tuple[PredictedField, float]]:
    """The place that follows most clearly from one, two or all others on one side only."""
    many = sorted(table, key=lambda one: -len(one.distinct))[:_RELATED]
    if len(many) < 2 or len(many[0].distinct) <= _MANY:
        return  # tables of joint values say as much
    rows = [np.column_stack([one.keys[k] for one in many]) for k in (0, 1)]
    indices = range(len(many))
    sets = [*itertools.combinations(indices, 1), *itertools.combinations(indices, 2)]
    sets += [tuple(j for j in indices if j != k) for k in indices] if len(many) > 3 else []
    best: tuple[float, int, tuple[int, ...], int] | None = None
    for sources in sets:
        if len(sources) == len(many):
            continue
        first, second = (_count_agreements(side[:_ROWS], sources) for side in rows)
        if min(first[1], second[1]) < _LEAST_PAIRS:
            continue
        p, q = first[0] / first[1], second[0] / second[1]
        middle = (first[0] + second[0] + 1.0) / (first[1] + second[1] + 2.0)
        z = (p - q) / np.sqrt(middle * (1 - middle) * (1 / first[1] + 1 / second[1]))
        z[list(sources)] = 0.0
        target = int(np.argmax(np.abs(z)))
        if best is None or abs(z[target]) > best[0]:
            best = float(abs(z[target])), target, sources, int(z[target] < 0)
    if best is None or best[0] < _least_score(len(sets) * len(many)):
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
