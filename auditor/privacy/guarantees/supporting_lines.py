"""Tables of lines above a cap, and the nearest null hypothesis by them.

A bet needs a line that is nowhere below the cap of a notion. For each level some hundreds of them are tabulated once,
dense in the logit of q, and every later question is answered by the lines next to the answer. So what a notion costs
depends little on how its cap is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

#: Probabilities are kept this far from 0 and 1 where a quotient needs it. It only moves the point at which a line is
#: taken, and a line at any point of the cap is valid, so the value cannot cost validity.
TINY = 1e-12
#: A privacy loss above which levels have the line "p is at most 1" alone, which is valid for all: squares of e^ε
#: overflow from 354 on, and no number of draws tells e^-300 from 0.
VACUOUS = 300.0
#: The smallest odds q / (1 - q) at which lines are tabulated, 1e-9: no more draws than that will be paid for.
_RAREST = 9.0 * math.log(10.0)
#: How much wider than at the logit 0 the table's steps are at the logit -1, and so on: common events gain most.
_WIDER = 0.15
#: Lines of a level that touch the cap between q = 0 and its middle, a multiple of half a block. The steps are then 0.04
#: at the middle, which makes the cap as large as that of a level 0.05 % higher, and 0.09 at q = 1e-4, 0.3 %.
LINES = 256
#: Lines of one block of the search; the square root of the number of all lines, roughly, makes it fastest.
_BLOCK = 32
#: False positions on a line. The first may be off by as much as a point near the line is away from it, and the bet is
#: by this distance; the third costs no more than 1e-5 of the growth.
_INTERPOLATIONS = 3
#: Error of a cap's values that the lines allow for, 64 units in the last place of 1: more than that of a composition
#: of Phi and its inverse.
_ROUNDING = 64 * float(np.finfo(float).eps)


class Tangent(NamedTuple):
    """Points (p0, q0) on or above a cap, with supporting slopes.

    The line through each is nowhere below the cap.
    """

    p0: Array
    q0: Array
    slope: Array


class LineTable(NamedTuple):
    """Supporting lines of the caps of some levels.

    Attributes
    ----------
    lines : Tangent
        Lines by increasing q0, each of shape (n_levels * n_lines,), one level after the other.
    coarse, fine : ndarray of shape (3, n_levels, n_blocks) and (3, n_levels * n_blocks, lines in a block)
        Coefficients c, a, b of the derivative c - a p - b q of the divergence of (p, q) along the cap, at the first
        line of each block and at all lines.
    """

    lines: Tangent
    coarse: Array
    fine: Array


def logits(count: int, beyond: int = 0) -> Array:
    """Logits of the probabilities of a table, increasing to 0.

    Parameters
    ----------
    count : int
        Their number from the rarest, 1e-9, up to 0.
    beyond : int
        Further ones at each end.

    Returns
    -------
    ndarray of shape (count + 2 * beyond,)
    """
    step = math.log1p(_WIDER * _RAREST) / (count - 1)
    x = step * np.arange(count - 1 + beyond, -1 - beyond, -1)
    logit: Array = -np.sign(x) * np.expm1(np.abs(x)) / _WIDER
    return logit


_GRID = 1.0 / (1.0 + np.exp(-logits(LINES, 2)))


def lines_above(cap: Callable[[Array, Array], Array], levels: Array) -> Tangent:
    """Lines above the caps of levels, from values of the cap alone.

    Parameters
    ----------
    cap : callable
        Largest p allowed at q, of q and the level; concave and increasing in q.
    levels : ndarray of shape (n_levels,)
        Levels.

    Returns
    -------
    Tangent of arrays of shape (n_levels, `LINES`)

    Notes
    -----
    Valid because: let c be the cap, q_0 < q_1 < ... the points at which it is taken, and r_i the slope of its chord
    from q_i to q_{i+1}. As c is concave, between q_i and q_{i+1} it is below the chord before, extended to the right,
    and below the chord after, extended to the left. Let these meet at the point m_i (any point of the interval and the
    larger of the two will do). A line of a slope s with r_{i+1} <= s <= r_{i-1} that is above m_i is then above c on
    the interval: to the left of m_i it is above the first of the chords, which is steeper, to the right above the
    second. So the line at q_k is given a slope between r_k and r_{k-1} and passes through the higher one, along this
    slope, of m_{k-1} and m_k: it is above c on both intervals next to q_k. It is then above (q_k, c(q_k)), and beyond
    the two intervals c is below the two chords, extended, and the line above them.

    Rounding: let values of the cap be off by e. The slope is made no smaller than any r_j as computed, j >= k. Their
    sum, weighted by the lengths h_j, telescopes, so to the right c(q_j) is above the line by 2 e at most, and c between
    two of the points by 6 e. To the left the slope may be too large by the error of one r_j, 2 e / h_j <= 2 e / h_k,
    and c above the line by this times q_k, and by 6 e. Each line is raised by more.
    """
    q = _GRID
    p = np.minimum(cap(q[None, :], levels[:, None]), 1.0)
    rise = np.diff(p) / np.diff(q)
    steep, flat = rise[:, :-2], rise[:, 2:]
    gap = q[2:-1] - q[1:-2]
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.nan_to_num((p[:, 2:-1] - p[:, 1:-2] - flat * gap) / (steep - flat), nan=0.0)
        x = np.clip(x, 0.0, gap)
        y = np.maximum(p[:, 1:-2] + steep * x, p[:, 2:-1] - flat * (gap - x))
        x += q[1:-2]
        slope = np.nan_to_num(np.diff(y) / np.diff(x), nan=np.inf)
    slope = np.minimum(slope, np.minimum.accumulate(rise, axis=1)[:, 1:-2])
    slope = np.maximum(slope, np.maximum.accumulate(rise[:, ::-1], axis=1)[:, -3:0:-1])
    q = q[2:-2]
    highest = np.maximum(y[:, :-1] + slope * (q - x[:, :-1]), y[:, 1:] + slope * (q - x[:, 1:]))
    highest += _ROUNDING * (16.0 + 4.0 * q / np.diff(_GRID)[2:-1])
    return Tangent(highest, np.broadcast_to(q, highest.shape), slope)


def make_table(lines: Tangent) -> LineTable:
    """The table of lines and of their mirror images.

    Parameters
    ----------
    lines : Tangent of arrays of shape (n_levels, n_lines)
        Lines nowhere below the cap of each level, by increasing q0. Those beyond the antidiagonal p0 = 1 - q0 are
        replaced by the last one before it.

    Notes
    -----
    Valid because: with (p, q) the point (1 - q, 1 - p) is allowed, so of each line the mirror image, of the inverse
    slope, is above all that is allowed. Lines before the antidiagonal have a slope of 1 or more, so that the rounding
    of 1 - p0 moves the image by no more than itself; it is raised by more.
    """
    last = np.maximum((lines.q0 <= 1.0 - lines.p0).sum(axis=1, keepdims=True) - 1, 0)
    kept = np.minimum(np.arange(lines.p0.shape[1]), last)
    p, q, slope = (np.take_along_axis(value, kept, axis=1) for value in lines)
    slope = np.maximum(slope, TINY)
    p0 = np.concatenate([p, 1.0 - q[:, ::-1] + 4 * np.finfo(float).eps], axis=1)
    q0 = np.concatenate([q, 1.0 - p[:, ::-1]], axis=1)
    slope = np.concatenate([slope, 1.0 / slope[:, ::-1]], axis=1)
    a, b = slope / spread(p0), 1.0 / spread(q0)
    derivative = np.stack([a * p0 + b * q0, a, b])
    fine = derivative.reshape(3, -1, _BLOCK)
    return LineTable(Tangent(p0.ravel(), q0.ravel(), slope.ravel()), derivative[:, :, ::_BLOCK].copy(), fine)


def project(table: LineTable, p: Array, q: Array, row: Indices) -> Tangent:
    """Nearest points of the polygons that the lines of a table bound.

    The projection minimises KL(p || p0) + KL(q || q0), but for the interpolation between two lines of the table.

    Parameters
    ----------
    table : LineTable
        Lines by level.
    p, q : ndarray
        Points above the caps.
    row : ndarray of int
        Index of the level of each point; all three have the same shape.

    Returns
    -------
    Tangent of arrays of that shape

    Notes
    -----
    Valid because: what is returned is a line of the table, or goes through a point that is on or above two of them, i
    and j, and has a slope s between theirs, s_i >= s >= s_j. To the left of the point it is then above line i, to the
    right above line j, and both are above the cap. This does not depend on which lines the search has found.
    """
    here = table.coarse[:, row]
    wide = p[..., None], q[..., None]
    blocks = here.shape[-1]
    block = np.maximum((here[0] - here[1] * wide[0] < here[2] * wide[1]).sum(axis=-1), 1) - 1 + row * blocks
    here = table.fine[:, block]
    falling = (here[0] - here[1] * wide[0] < here[2] * wide[1]).sum(axis=-1)
    end = (row + 1) * (blocks * _BLOCK) - 2
    i = np.minimum(block * _BLOCK + np.maximum(falling, 1) - 1, end)
    (p_i, p_j), (q_i, q_j), (s_i, s_j) = ((value[i], value[i + 1]) for value in table.lines)
    # Where the two lines meet, or between where they touch the cap if they are the same.
    bend, gap = s_i - s_j, np.maximum(q_j - q_i, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(bend > 0, np.clip((p_j - p_i - s_j * gap) / bend, 0.0, gap), 0.5 * gap)
    p0, q0 = np.maximum(p_i + s_i * x, p_j - s_j * (gap - x)), q_i + x
    outer, inner = (p0 - p) / spread(p0), (q0 - q) / spread(q0)
    before, after = s_i * outer + inner, s_j * outer + inner
    # The divergence falls before the corner and rises after it; or its minimum is on the line before, or on that after.
    left, right = before > 0, after < 0
    on_line = left | right
    p_k, q_k, slope = np.where(left, p_i, p_j), np.where(left, q_i, q_j), np.where(left, s_i, s_j)
    corner = np.clip(ratio_slope(p, q, p0, q0), np.minimum(s_i, s_j), s_i)

    def pull(x: Array) -> Array:
        """The derivative times both variances, a polynomial without poles."""
        y = p_k + slope * (x - q_k)
        return np.asarray(slope * (y - p) * spread(x) + (x - q) * spread(y))

    new, old, at_new, at_old = q0, q_k, pull(q0), pull(q_k)
    for _ in range(_INTERPOLATIONS):
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.nan_to_num(at_new / (at_new - at_old), nan=0.0), 0.0, 1.0)
        x = new + share * (old - new)
        at_x = pull(x)
        same = (at_x > 0) == (at_new > 0)
        new, old, at_new, at_old = x, np.where(same, old, new), at_x, np.where(same, at_old, at_new)
    q0 = np.where(on_line, new, q0)
    p0 = np.where(on_line, p_k + slope * (q0 - q_k), p0)
    return Tangent(np.minimum(p0, 1.0), q0, np.where(on_line, slope, corner))


def bound_by_one(vacuous: NDArray[np.bool_], lines: Tangent) -> Tangent:
    """Lines, and "p is at most 1" where levels are vacuous.

    Parameters
    ----------
    vacuous : ndarray of bool
        Where.
    lines : Tangent
        The lines elsewhere, to which ``vacuous`` is broadcast.

    Returns
    -------
    Tangent

    Notes
    -----
    Valid because: a line of any slope above 0 through (p0, q0) = (1, 0) is at 1 or above.
    """
    return Tangent(*(np.where(vacuous, end, part) for end, part in zip((1.0, 0.0, 1.0), lines, strict=True)))


def find_root(
    slope: Callable[[Array], tuple[Array, Array]], start: Array, low: Array, high: Array, steps: int
) -> Array:
    """Root of an increasing function by Newton's method.

    A step that leaves the interval halves it instead.

    Parameters
    ----------
    slope : callable
        The function and its derivative at a point.
    start, low, high : ndarray
        First point, and the interval that holds the root.
    steps : int
        Number of steps.
    """
    x = start
    for _ in range(steps):
        value, bend = slope(x)
        up = value > 0
        low, high = np.where(up, low, x), np.where(up, x, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = x - value / bend
        x = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
    return x


def spread(p: Array) -> Array:
    """Variance p (1 - p), kept away from 0."""
    return np.maximum(p * (1.0 - p), TINY)


def ratio_slope(p: Array, q: Array, p0: Array, q0: Array) -> Array:
    """Slope at which the two-sided bet is a likelihood ratio.

    It is a bet between (p, q) and (p0, q0).

    Parameters
    ----------
    p, q : ndarray
        Probabilities under the alternative.
    p0, q0 : ndarray
        Those under the null.

    Returns
    -------
    ndarray
        Infinite where the bet on one side is nothing to that on the other.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = ((q0 - q) / spread(q0)) / ((p - p0) / spread(p0))
    return np.nan_to_num(slope, nan=1.0, posinf=np.inf)
