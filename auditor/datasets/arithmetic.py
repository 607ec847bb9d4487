"""Rows between the ends of a numeric domain at which arithmetic goes wrong: overflow, rounding, cancellation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

#: Powers of two that integers of 8, 16, 32 and 64 bits overflow at, signed or not, and beyond which floats of half,
#: single and double precision leave integers out.
LIMITS = tuple(2**bits for bits in (7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64))
#: Most rows of a dataset whose sum or size reaches such a limit: 16-bit counters, and a target is called within
#: milliseconds.
MOST_SUMMED = 2**16
#: Bits of the significands of half, single and double precision.
_SIGNIFICANDS = (11, 24, 53)


class Change(NamedTuple):
    """A row that is changed among others.

    Attributes
    ----------
    others : list
        The rows that both datasets share.
    place : int
        Place of the changed row.
    a, b : tuple of (str, number)
        Description and value of the row in the first and in the second dataset.
    what : str
        What the other rows are.
    """

    others: list[Any]
    place: int
    a: tuple[str, Any]
    b: tuple[str, Any]
    what: str


def craft_changes(values: Sequence[Any], rows: int) -> Iterator[Change]:
    """Changes of one row that overflow, round or cancel.

    Parameters
    ----------
    values : sequence of numbers
        The domain; all rows are between its least and its largest value. Integers stay integers.
    rows : int
        Rows of the datasets where their number does not matter.

    Yields
    ------
    Change
        The most promising first.
    """
    low, high = min(values), max(values)
    if all(isinstance(value, int | np.integer) for value in values):
        yield from _overflow(int(low), int(high))
        return
    low, high = float(low), float(high)
    ends = ("lowest", low), ("highest", high)
    least = {name: value for name, value in _special_numbers(low, high).items() if low <= value <= high}
    for name, value in least.items():
        yield Change([], 0, ends[0], (name, value), "")
        yield Change([value] * max(rows - 1, 1), 0, *ends, f", the others {name}")
    if low < 0.0 < high:
        n = max(rows - 1, 2) // 2
        size = min(-low, high)
        yield Change([size] + [size * 2.0**-53] * (2 * n) + [-size], 1, *ends, ", the others cancel")
        yield Change([size, -size] * n, 2 * n, *ends, ", the others cancel in twos")
    for bits in _SIGNIFICANDS:
        small = high * 2.0**-bits * 1.5  # added to the highest value, it rounds up to its next number
        if low <= small <= high:
            others = [small] * max(rows - 1, 2**12 if bits == _SIGNIFICANDS[0] else 1)
            for index in (0, len(others)):
                yield Change(others, index, ends[0], ends[1], f", the others round up at {bits} bits")
    if low < high and math.isfinite(high - low):  # steps of what overflows would be no numbers
        steps = [low + (high - low) * k / max(rows - 1, 1) for k in range(max(rows - 1, 1))]
        for what, others in ((", the others ascend", steps), (", the others descend", steps[::-1])):
            yield Change(others, len(others) // 2, *ends, what)


def _overflow(low: int, high: int) -> Iterator[Change]:
    """Sums and sizes that reach a limit by the changed row."""
    ends = ("lowest", low), ("highest", high)
    for limit in LIMITS:
        for end, sign in ((high, 1), (low, -1)):
            if end * sign <= 0:
                continue
            count, rest = divmod(limit - 1, end * sign)
            if count <= MOST_SUMMED:
                others = [end] * count + ([rest * sign] if low <= rest * sign <= high and rest else [])
                what = f", the others add up to {'-' * (sign < 0)}{limit} less one step"
                yield Change(others, len(others), *(ends if sign > 0 else ends[::-1]), what)
    for limit in LIMITS:
        if limit <= MOST_SUMMED:
            yield Change([low] * (limit - 1), limit - 1, *ends, f", one fewer than {limit}")


def _special_numbers(low: float, high: float) -> dict[str, float]:
    middle = (low + high) / 2.0
    return {
        "a third": low + (high - low) / 3.0,
        "next to the highest": math.nextafter(high, low),
        "next to the lowest": math.nextafter(low, high),
        "just below the middle": math.nextafter(middle, low),
        "smallest above zero": 5e-324,
        "smallest normal": 2.0**-1022,
        "negative zero": -0.0,
    }
