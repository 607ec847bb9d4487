"""Sets of discrete fields that differ jointly between two sides of draws, by the cumulants of their joint tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.events.discrete_fields import DiscreteField, OutputPlace, list_shown_codes
from auditor.events.screening import compare_counts

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Columns of the indicators of all fields up to which pairs are compared, and triples; arbitrary, costs grow with the
#: square and the cube.
_PAIR_COLUMNS, _TRIPLE_COLUMNS = 160, 64
#: Sets of fields that are offered, and of them from the same places; arbitrary, each costs a look at every draw.
_OFFERED, _ALIKE = 4, 2
#: Least score beyond what the best of as many sets without any difference has, and least score at all; arbitrary.
_BEYOND, _LEAST_SCORE = 0.3, 2.5


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
    found = [one for one in found if one[1] >= find_least_score(len(found))]
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


def _keep_columns(fields: Sequence[DiscreteField], most: int) -> int:
    """How many of the first fields have so many indicators in all."""
    total = np.cumsum([len(list_shown_codes(one)) for one in fields])
    return int(np.sum(total <= most))


class _Indicators:
    """Columns of 0 and 1 for the codes of fields, on both sides, and which fields have no place in common."""

    def __init__(self, fields: Sequence[DiscreteField], x: Sequence[Codes], y: Sequence[Codes]) -> None:
        shown = [list_shown_codes(one) for one in fields]
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
    pairs = np.argwhere(wanted & (score >= find_least_score(int(wanted.sum()))))
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
    least = find_least_score(tried)
    return [
        ((i, i + 1 + int(j), i + 1 + int(k)), float(score[j, k]))
        for i, score in enumerate(scores)
        for j, k in np.argwhere(score >= least)
    ]


def find_least_score(tried: int) -> float:
    """Find the score that sets without any difference hardly reach."""
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
