"""Discrete fields of an output: what is read at its places, and what is derived from that."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.structure import PartAt
from auditor.targets.columns import columns_of
from auditor.targets.outputs import Batch, float_of, hash_outputs, show_output
from auditor.targets.values import strip_type

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Places that are looked at, those of them that have many values, and fields with all that is derived; arbitrary,
#: bounds a look to some ms.
_PLACES, _LONG, _FIELDS = 40, 10, 40
#: Values of a field that are told apart; those of a number with more than the second have parity and bounds too, and
#: with more than the third are put into quarters. Arbitrary.
_VALUES, _SEVERAL, MANY = 32, 4, 8
#: Least part of the draws in which a bound is reached, or two places are equal, and the rest of them; arbitrary.
_OFTEN = 0.01
#: Values that hardly repeat are those of which so many draws have this part of different ones; arbitrary.
_LOOK, _DIFFERENT = 256, 0.9
#: Draws a side that values are told apart by; arbitrary.
ROWS = 2_000
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
class PlaceValues:
    """Values of both sides at a place, and the different ones.

    Those of the first draws.
    """

    place: OutputPlace
    keys: tuple[Codes, Codes]
    numbers: tuple[Array, Array]
    distinct: Codes
    example: Mapping[int, Any]

    @property
    def is_few(self) -> bool:
        """Whether there are few values, more than one."""
        return 1 < len(self.distinct) <= _VALUES


def read_table(sides: tuple[Batch, ...], places: Sequence[OutputPlace]) -> list[PlaceValues]:
    """Read the values of places that repeat, on both sides."""
    found: list[PlaceValues] = []
    for place in places:
        numbers = tuple(place.numbers(side) for side in sides)
        first = np.concatenate(
            [place.keys(side[:_LOOK], one[:_LOOK]) for side, one in zip(sides, numbers, strict=True)]
        )
        repeats = len(np.unique(first)) <= _DIFFERENT * len(first)
        if not repeats and not all(map(_has_grain, numbers)):
            continue
        keys = tuple(place.keys(side, one) for side, one in zip(sides, numbers, strict=True))
        looked = np.concatenate([side[:ROWS] for side in keys])
        distinct, at = np.unique(looked, return_index=True)
        example = {}
        if len(distinct) > _VALUES:
            if sum(len(one.distinct) > _VALUES for one in found) >= _LONG:
                continue
        else:
            for key, k in zip(distinct.tolist(), at.tolist(), strict=True):
                side, row = (0, k) if k < len(keys[0][:ROWS]) else (1, k - len(keys[0][:ROWS]))
                example[key] = PartAt(place.path)(sides[side][row : row + 1])[0]
        found.append(PlaceValues(place, (keys[0], keys[1]), (numbers[0], numbers[1]), distinct, example))
    return found


def _has_grain(numbers: Array) -> bool:
    """Whether all are integers, or a bound is reached often."""
    if not np.isfinite(numbers).all():
        return False
    if bool((numbers == np.rint(numbers)).all()):
        return True
    least = _OFTEN * len(numbers)
    return bool((numbers == numbers.min()).sum() >= least or (numbers == numbers.max()).sum() >= least)


def find_fields(table: Sequence[PlaceValues]) -> list[tuple[DiscreteField, tuple[Codes, Codes]]]:
    """Find fields, with their codes on both sides.

    Those with the fewest values come first.
    """
    made: list[tuple[DiscreteField, PlaceValues]] = []
    for one in table:
        if one.is_few:
            labels = tuple(show_output(one.example[key]) for key in one.distinct.tolist())
            made.append((DiscreteField(one.place, "value", tuple(one.distinct.tolist()), labels), one))
        if len(one.distinct) > _SEVERAL:
            made += [(derived, one) for derived in _derive_fields(one)]
    found = []
    for made_field, one in sorted(made, key=lambda entry: len(list_shown_codes(entry[0]))):
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


def _derive_fields(one: PlaceValues) -> Iterator[DiscreteField]:
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
    if len(one.distinct) > MANY:
        looked = np.sort(np.concatenate([side[:ROWS] for side in one.numbers]))
        edges = np.unique(looked[[len(looked) // 4, len(looked) // 2, 3 * len(looked) // 4]])
        edges = edges[edges < high]
        if len(edges):
            yield DiscreteField(one.place, "quarter", tuple(edges.tolist()))
    if _OFTEN < float((pooled < 0).mean()) < 1 - _OFTEN:
        yield DiscreteField(one.place, "sign")


def list_shown_codes(one: DiscreteField) -> list[int]:
    """List the codes that have an indicator.

    One of two, and not that of values which the first draws did not have.
    """
    codes = list(range(len(one.table) if one.kind == "value" else one.size))
    return codes[1:] if len(codes) == 2 else codes
