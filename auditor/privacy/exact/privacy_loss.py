"""Pairs of distributions with finitely many privacy losses, and their products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from auditor.privacy.exact.privacy_curve import checked_delta, checked_epsilon, checked_level, checked_order
from auditor.privacy.laws import FloatArray

# Losses closer than this (relative to max(1, |loss|)) are one loss, computed along two paths. The
# merged group keeps the exact sums of both masses, so merging moves delta by less than this.
_MERGE_TOLERANCE = 1e-12
# 4 million groups are 100 MB of work arrays; what has more of them is composed on a lattice of losses.
MAX_GROUPS = 2**22


@dataclass(frozen=True, eq=False)
class LossCurve:
    """A pair of distributions reduced to finitely many privacy losses.

    Parameters
    ----------
    log_p, log_q : ndarray of shape (n_groups,)
        Log masses of the groups under P and Q, in order of strictly decreasing loss
        ``log_p - log_q``. Kept as logarithms so that products of many distributions do not underflow.
    p_only, q_only : float
        Mass of P where Q has none, and of Q where P has none (infinite loss).
    """

    log_p: FloatArray
    log_q: FloatArray
    p_only: float = 0.0
    q_only: float = 0.0

    @cached_property
    def loss(self) -> FloatArray:
        """Privacy losses, decreasing; shape (n_groups,)."""
        return self.log_p - self.log_q

    def delta(self, epsilon: float) -> float:
        """See `PrivacyCurve.delta`."""
        e = checked_epsilon(epsilon)
        forward = self.p_only + excess(self.loss, self.log_p, e)
        backward = self.q_only + excess(-self.loss, self.log_q, e)
        return min(1.0, max(forward, backward))

    def epsilon(self, delta: float) -> float:
        """See `PrivacyCurve.epsilon`; exact, segment by segment."""
        d = checked_delta(delta)
        forward = solve(self.loss, self.log_p, d - self.p_only)
        backward = solve(-self.loss[::-1], self.log_q[::-1], d - self.q_only)
        return max(0.0, forward, backward)

    @cached_property
    def _cap(self) -> tuple[FloatArray, FloatArray]:
        forward = vertices(self.log_p, self.log_q, self.p_only)
        backward = vertices(self.log_q[::-1], self.log_p[::-1], self.q_only)
        if forward[0].shape == backward[0].shape and all(
            np.allclose(u, v, rtol=1e-13, atol=1e-15) for u, v in zip(forward, backward, strict=True)
        ):
            return forward
        x = np.concatenate([forward[0], backward[0]])
        y = np.concatenate([forward[1], backward[1]])
        return concave_hull(x, y)

    @property
    def corners(self) -> FloatArray:
        """Probabilities q at which the cap may bend, from 0 to 1."""
        return self._cap[0]

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """See `PrivacyCurve.tradeoff`; piecewise linear."""
        return np.asarray(np.minimum(1.0, np.interp(checked_level(q), *self._cap)), dtype=np.float64)

    def mu(self) -> float:
        """See `PrivacyCurve.mu`.

        The cap of mu-GDP is concave, so a piecewise linear cap lies below it as soon as its
        corners do: the supremum over all tests is a maximum over likelihood-ratio thresholds.
        Both orders give the same corners, reflected, and the same mu.
        """
        if self.p_only > 0.0 or self.q_only > 0.0:
            return math.inf
        gaps = normal_scores(self.log_p, self.log_p) - normal_scores(self.log_q, self.log_q)
        return max(0.0, float(np.max(gaps, initial=0.0)))

    def renyi(self, order: float) -> float:
        """Renyi divergence, infinite where a distribution lacks mass.

        One of the distributions has mass where the other has none; see `PrivacyCurve.renyi`.
        """
        return max(self.renyi_by_order(order))

    def renyi_by_order(self, order: float) -> tuple[float, float]:
        """Renyi divergences of (P, Q) and of (Q, P).

        These compose, not their maximum.
        """
        a = checked_order(order)
        forward = math.inf if self.p_only > 0.0 else _renyi(self.loss, self.log_p, a)
        backward = math.inf if self.q_only > 0.0 else _renyi(-self.loss, self.log_q, a)
        return forward, backward

    @cached_property
    def symmetric(self) -> bool:
        """Whether swapping the distributions changes nothing, up to rounding.

        Losses and their masses are compared.
        """
        return (
            self.p_only == self.q_only
            and np.allclose(self.log_p, self.log_q[::-1], rtol=_MERGE_TOLERANCE, atol=_MERGE_TOLERANCE)
            and np.allclose(self.log_q, self.log_p[::-1], rtol=_MERGE_TOLERANCE, atol=_MERGE_TOLERANCE)
        )


def excess(loss: FloatArray, log_mass: FloatArray, epsilon: float) -> float:
    """Sum of ``mass (1 - e^(eps - loss))`` over losses above eps.

    Nothing cancels.

    Parameters
    ----------
    loss, log_mass : ndarray of shape (n_groups,)
        Losses and log masses of the groups.
    epsilon : float
        The epsilon.

    Returns
    -------
    float
    """
    above = loss > epsilon
    with np.errstate(over="ignore"):  # upper bounds of masses far out may be beyond all floats
        return float(-np.sum(np.exp(log_mass[above]) * np.expm1(epsilon - loss[above])))


def solve(loss: FloatArray, log_mass: FloatArray, room: float) -> float:
    """Smallest eps with ``excess(loss, log_mass, eps) <= room``, for decreasing losses.

    Parameters
    ----------
    loss, log_mass : ndarray of shape (n_groups,)
        Decreasing losses, and log masses of the groups.
    room : float
        Largest excess.

    Returns
    -------
    float
        Infinite if the room is negative.
    """
    if room < 0.0:
        return math.inf
    if loss.size == 0:
        return 0.0
    if room == 0.0:
        return float(loss[0])  # whatever its mass, which may be below the smallest double
    low, high = 0, loss.size  # the excess at loss[low] fits into the room, at loss[high] not
    while high - low > 1:
        middle = (low + high) // 2
        if excess(loss[:middle], log_mass[:middle], float(loss[middle])) <= room:
            low = middle
        else:
            high = middle
    corner = float(loss[low])
    # From the corner downwards the excess is A - e^eps B with A, B sums over groups 0..low.
    with np.errstate(over="ignore"):
        slope = float(np.sum(np.exp(log_mass[: low + 1] + (corner - loss[: low + 1]))))
    gain = room - excess(loss, log_mass, corner)
    return corner + math.log1p(-gain / slope) if gain < slope else -math.inf


def concave_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of the least concave function above the points (monotone chain).

    Parameters
    ----------
    x, y : ndarray of shape (n_points,)
        Coordinates, in any order.

    Returns
    -------
    tuple of ndarray of shape (n_corners,)
        Coordinates of the corners by increasing x.
    """
    hull: list[tuple[float, float]] = []
    for point in sorted(zip(x.tolist(), y.tolist(), strict=True)):
        while hull and hull[-1][0] == point[0]:
            hull.pop()
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2], hull[-1]
            if (y1 - y0) * (point[0] - x0) > (point[1] - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append(point)
    corners = np.array(hull, dtype=np.float64)
    return corners[:, 0], corners[:, 1]


def grouped(log_p: FloatArray, log_q: FloatArray, p_only: float, q_only: float) -> LossCurve:
    """Sort outcomes by decreasing loss and merge those of equal loss.

    Parameters
    ----------
    log_p, log_q : ndarray of shape (n_outcomes,)
        Log masses of the outcomes that both distributions have.
    p_only, q_only : float
        Masses of what only one distribution has.

    Returns
    -------
    LossCurve
    """
    if log_p.size == 0:
        return LossCurve(log_p, log_q, p_only, q_only)
    order = np.argsort(log_q - log_p, kind="stable")
    log_p, log_q = log_p[order], log_q[order]
    loss = log_p - log_q
    gap = np.abs(np.diff(loss)) > _MERGE_TOLERANCE * np.maximum(1.0, np.abs(loss[1:]))
    starts = np.concatenate([[0], np.flatnonzero(gap) + 1])
    return LossCurve(np.logaddexp.reduceat(log_p, starts), np.logaddexp.reduceat(log_q, starts), p_only, q_only)


def product(parts: list[tuple[LossCurve, int]]) -> LossCurve | None:
    """Loss curve of independent copies.

    Each curve of `parts`, all oriented alike, as often as its count says.

    Returns
    -------
    LossCurve or None
        None if there would be more than `MAX_GROUPS` groups on the way.
    """
    powers = [_power(curve, count) for curve, count in parts]
    return reduce(_combine_curves, powers)


def _power(curve: LossCurve, count: int) -> LossCurve | None:
    """`count` independent copies: binomial for two losses, otherwise by repeated squaring."""
    if curve.loss.size == 2:
        return binomial(curve, count)
    result: LossCurve | None = None
    square: LossCurve | None = curve
    while count:
        if count & 1:
            result = square if result is None else _combine_curves(result, square)
            if result is None:
                return None
        count >>= 1
        square = _combine_curves(square, square) if count else square
    return result


def binomial(curve: LossCurve, count: int) -> LossCurve:
    """`count` independent copies of a curve with two losses.

    Parameters
    ----------
    curve : LossCurve
        A curve of two losses.
    count : int
        Number of copies, at least 1.

    Returns
    -------
    LossCurve
    """
    lower = np.arange(count + 1, dtype=np.float64)  # copies that show the smaller loss
    upper = count - lower
    ways = special.gammaln(count + 1.0) - (special.gammaln(lower + 1.0) + special.gammaln(upper + 1.0))
    log_p, log_q = (ways + (upper * float(m[0]) + lower * float(m[1])) for m in (curve.log_p, curve.log_q))
    return LossCurve(log_p, log_q, _any_of(curve.p_only, count), _any_of(curve.q_only, count))


def _any_of(probability: float, count: int) -> float:
    """Probability that at least one of `count` independent events happens."""
    return -math.expm1(count * math.log1p(-probability)) if probability < 1.0 else 1.0


def _combine_curves(one: LossCurve | None, two: LossCurve | None) -> LossCurve | None:
    if one is None or two is None or one.log_p.size * two.log_p.size > MAX_GROUPS:
        return None
    return grouped(
        np.add.outer(one.log_p, two.log_p).ravel(),
        np.add.outer(one.log_q, two.log_q).ravel(),
        one.p_only + (1.0 - one.p_only) * two.p_only,
        one.q_only + (1.0 - one.q_only) * two.q_only,
    )


def _renyi(loss: FloatArray, log_mass: FloatArray, order: float) -> float:
    if loss.size == 0:
        return 0.0
    if math.isinf(order):
        return max(0.0, float(loss.max()))
    return max(0.0, float(special.logsumexp(log_mass + (order - 1.0) * loss)) / (order - 1.0))


def vertices(log_p: FloatArray, log_q: FloatArray, p_only: float) -> tuple[FloatArray, FloatArray]:
    """Corners (q, p) of the best tests.

    Groups are cumulated in order of decreasing loss.

    The last p is at least 1, and may exceed it by rounding: what is read off the corners is to be cut at 1.

    Parameters
    ----------
    log_p, log_q : ndarray of shape (n_groups,)
        Log masses of the groups, by decreasing loss.
    p_only : float
        Mass of what only the first distribution has.

    Returns
    -------
    tuple of ndarray of shape (n_groups + 1,)
        q and p of the corners.
    """
    with np.errstate(over="ignore"):  # see `excess`
        x = np.concatenate([[0.0], np.cumsum(np.exp(log_q))])
        y = np.concatenate([[p_only], p_only + np.cumsum(np.exp(log_p))])
    y[-1] = max(1.0, float(y[-1]))  # every outcome with mass under P is in: rounding must not leave a gap
    return x, y


def normal_scores(log_mass: FloatArray, log_rest: FloatArray) -> FloatArray:
    """``Phi^-1`` of the proper cumulative sums, from whichever end is the smaller.

    Parameters
    ----------
    log_mass, log_rest : ndarray of shape (n_groups,)
        Log masses as they count for the sums from the first group on, and for the sums of the groups that are left.
        The same array, unless the masses are known within bounds: large ones in the first and small ones in the second
        place make every score too large, or right.

    Returns
    -------
    ndarray of shape (n_groups - 1,)
        One score for each sum but the last, which is 1.
    """
    below = np.logaddexp.accumulate(log_mass)[:-1]
    above = np.logaddexp.accumulate(log_rest[::-1])[::-1][1:]
    scores = np.where(
        below <= above,
        special.ndtri_exp(np.minimum(below, 0.0)),
        -special.ndtri_exp(np.minimum(above, 0.0)),
    )
    return np.asarray(scores, dtype=np.float64)
