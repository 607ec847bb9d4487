"""Exact privacy curves of pairs of output laws that are known in closed form.

A mechanism that states its output law on two neighbouring datasets needs no draws: everything the
definition of differential privacy asks about the pair is a property of the two laws. `curve`
turns a pair of laws into a `PrivacyCurve`, from which a guarantee reads the smallest level at which
it holds for that pair.

Conventions: natural logarithms; a pair is unordered, so every quantity is the worse of the two
orders (P, Q) and (Q, P); the privacy loss of an outcome is ``ln P - ln Q``.

Source: catalogue 000_001_003, Part A (A1 Laplace, A2 Gaussian, A3 geometric, A4 k-fold randomised
response); Dong, Roth, Su (2022) for trade-off curves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from auditor.laws import FiniteLaw, FloatArray, GaussianLaw, LaplaceLaw, Law, ProductLaw, TwoSidedGeometricLaw, require

__all__ = [
    "FiniteLaw",
    "GaussianCurve",
    "GaussianLaw",
    "LaplaceCurve",
    "LaplaceLaw",
    "Law",
    "LossCurve",
    "PrivacyCurve",
    "ProductLaw",
    "TwoSidedGeometricLaw",
    "curve",
]


# Losses closer than this (relative to max(1, |loss|)) are one loss, computed along two paths. The
# merged group keeps the exact sums of both masses, so merging moves delta by less than this.
_MERGE_TOLERANCE = 1e-12
# 4 million groups are 100 MB of work arrays; a product beyond that wants a coarser lattice.
_MAX_GROUPS = 2**22
_SQRT2 = math.sqrt(2.0)


# -------------------------------------------------------------------------------------- curves


class PrivacyCurve(Protocol):
    """Everything differential privacy asks about one unordered pair of laws."""

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence at any real `epsilon`: the larger of both orders."""
        ...

    def epsilon(self, delta: float) -> float:
        """Smallest ``eps >= 0`` with ``delta(eps) <= delta``; `inf` if there is none."""
        ...

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """Cap ``1 - f(q)``: the least concave bound on p over tests with E_Q = q.

        Equals ``inf over eps of delta(eps) + e^eps q``. For a pair that is symmetric under
        swapping it is the power of the best randomised test of level q. For other pairs the
        maximum over the two orders need not be concave; a trade-off claim always is, so the
        concave hull is what the smallest such claim says. Same shape as `q`, values in [0, 1].
        """
        ...

    def mu(self) -> float:
        """Smallest ``mu >= 0`` for which the pair is mu-GDP; `inf` if there is none."""
        ...


def _checked_epsilon(epsilon: float) -> float:
    require(not math.isnan(epsilon), "a number epsilon", epsilon)
    return float(epsilon)


def _checked_delta(delta: float) -> float:
    require(0.0 <= delta <= 1.0, "delta in [0, 1]", delta)
    return float(delta)


def _checked_level(q: ArrayLike) -> FloatArray:
    array = np.asarray(q, dtype=np.float64)
    require(bool(np.all((array >= 0) & (array <= 1))), "q in [0, 1]", q)
    return array


@dataclass(frozen=True)
class LaplaceCurve:
    """Two Laplace laws of equal scale, centres `shift` scales apart (A1)."""

    shift: float

    def delta(self, epsilon: float) -> float:
        """``1 - exp((eps - shift) / 2)`` for ``|eps| <= shift``; see `PrivacyCurve.delta`."""
        e = _checked_epsilon(epsilon)
        if e >= self.shift:
            return max(0.0, -math.expm1(e)) if e < 0 else 0.0
        if e <= -self.shift:
            return -math.expm1(e)
        return -math.expm1((e - self.shift) / 2.0)

    def epsilon(self, delta: float) -> float:
        """See `PrivacyCurve.epsilon`."""
        d = _checked_delta(delta)
        return max(0.0, self.shift + 2.0 * math.log1p(-d)) if d < 1 else 0.0

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """See `PrivacyCurve.tradeoff`."""
        q = _checked_level(q)
        shrink = math.exp(-self.shift)
        middle = 1.0 - shrink / (4.0 * np.maximum(q, 0.5 * shrink))
        with np.errstate(over="ignore"):
            left = np.exp(np.minimum(self.shift, 709.0)) * np.minimum(q, 0.5 * shrink)
        right = 1.0 - shrink * (1.0 - q)
        out = np.where(q <= 0.5 * shrink, left, np.where(q <= 0.5, middle, right))
        return np.asarray(out, dtype=np.float64)

    def mu(self) -> float:
        """``-2 Phi^-1(exp(-shift/2) / 2)``.

        With u = ln q and k(u) = -Phi^-1(e^u), which is concave because ln Phi is, the middle
        piece of the cap gives k(u) + k(c - u): concave and symmetric, so largest at its centre.
        The outer pieces give k(u) - k(u + shift), largest where they meet the middle piece.
        """
        return max(0.0, -2.0 * float(special.ndtri_exp(-self.shift / 2.0 - math.log(2.0))))


@dataclass(frozen=True)
class GaussianCurve:
    """Two Gaussian laws of equal spread, centres `shift` standard deviations apart (A2)."""

    shift: float

    def delta(self, epsilon: float) -> float:
        """``Phi(shift/2 - eps/shift) - e^eps Phi(-shift/2 - eps/shift)``."""
        e = _checked_epsilon(epsilon)
        if self.shift == 0.0 or math.isinf(e):
            return max(0.0, -math.expm1(e)) if e < 0 else 0.0
        x = e / self.shift - self.shift / 2.0
        y = e / self.shift + self.shift / 2.0
        # y^2 - x^2 = 2 eps, so e^eps exp(-y^2/2) = exp(-x^2/2): the scaled complementary error
        # function removes both the overflow of e^eps and the cancellation in the tail.
        if x > 0:
            gap = float(special.erfcx(x / _SQRT2) - special.erfcx(y / _SQRT2))
            return max(0.0, 0.5 * math.exp(-0.5 * x * x) * gap)
        if y >= 0:
            second = 0.5 * math.exp(-0.5 * x * x) * float(special.erfcx(y / _SQRT2))
        else:
            second = math.exp(e) * float(special.ndtr(-y))
        return max(0.0, float(special.ndtr(-x)) - second)

    def epsilon(self, delta: float) -> float:
        """See `PrivacyCurve.epsilon`; solved to 1e-14."""
        d = _checked_delta(delta)
        if self.delta(0.0) <= d:
            return 0.0
        if d == 0.0:
            return math.inf
        high = 1.0
        while self.delta(high) > d:
            high *= 2.0

        def excess(e: float) -> float:
            return self.delta(e) / d - 1.0

        return float(optimize.brentq(excess, 0.0, high, xtol=1e-14, rtol=1e-14, maxiter=500))

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """``Phi(Phi^-1(q) + shift)``."""
        q = _checked_level(q)
        return np.asarray(special.ndtr(special.ndtri(q) + self.shift), dtype=np.float64)

    def mu(self) -> float:
        """Return the shift itself."""
        return self.shift


@dataclass(frozen=True, eq=False)
class LossCurve:
    """A pair of laws reduced to finitely many privacy losses, which is all that matters.

    Parameters
    ----------
    log_p, log_q : ndarray of shape (n_groups,)
        Log masses of the groups under P and Q, in order of strictly decreasing loss
        ``log_p - log_q``. Kept as logarithms so that products of many laws do not underflow.
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
        e = _checked_epsilon(epsilon)
        forward = self.p_only + _excess(self.loss, self.log_p, e)
        backward = self.q_only + _excess(-self.loss, self.log_q, e)
        return min(1.0, max(forward, backward))

    def epsilon(self, delta: float) -> float:
        """See `PrivacyCurve.epsilon`; exact, segment by segment."""
        d = _checked_delta(delta)
        forward = _solve(self.loss, self.log_p, d - self.p_only)
        backward = _solve(-self.loss[::-1], self.log_q[::-1], d - self.q_only)
        return max(0.0, forward, backward)

    @cached_property
    def _cap(self) -> tuple[FloatArray, FloatArray]:
        forward = _vertices(self.log_p, self.log_q, self.p_only)
        backward = _vertices(self.log_q[::-1], self.log_p[::-1], self.q_only)
        if forward[0].shape == backward[0].shape and all(
            np.allclose(u, v, rtol=1e-13, atol=1e-15) for u, v in zip(forward, backward, strict=True)
        ):
            return forward
        x = np.concatenate([forward[0], backward[0]])
        y = np.concatenate([forward[1], backward[1]])
        return _concave_hull(x, y)

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """See `PrivacyCurve.tradeoff`; piecewise linear."""
        x, y = self._cap
        return np.asarray(np.interp(_checked_level(q), x, y), dtype=np.float64)

    def mu(self) -> float:
        """See `PrivacyCurve.mu`.

        The cap of mu-GDP is concave, so a piecewise linear cap lies below it as soon as its
        corners do: the supremum over all tests is a maximum over likelihood-ratio thresholds.
        Both orders give the same corners, reflected, and the same mu.
        """
        if self.p_only > 0.0 or self.q_only > 0.0:
            return math.inf
        gaps = _normal_scores(self.log_p) - _normal_scores(self.log_q)
        return max(0.0, float(np.max(gaps, initial=0.0)))


def _excess(loss: FloatArray, log_mass: FloatArray, epsilon: float) -> float:
    """Sum of ``mass (1 - e^(eps - loss))`` over losses above eps: no cancellation."""
    above = loss > epsilon
    return float(-np.sum(np.exp(log_mass[above]) * np.expm1(epsilon - loss[above])))


def _solve(loss: FloatArray, log_mass: FloatArray, room: float) -> float:
    """Smallest eps with ``_excess(loss, log_mass, eps) <= room``, for decreasing losses."""
    if room < 0.0:
        return math.inf
    if loss.size == 0:
        return 0.0
    low, high = 0, loss.size  # the excess at loss[low] fits into the room, at loss[high] not
    while high - low > 1:
        middle = (low + high) // 2
        if _excess(loss, log_mass, float(loss[middle])) <= room:
            low = middle
        else:
            high = middle
    corner = float(loss[low])
    # From the corner downwards the excess is A - e^eps B with A, B sums over groups 0..low.
    slope = float(np.sum(np.exp(log_mass[: low + 1] + (corner - loss[: low + 1]))))
    gain = room - _excess(loss, log_mass, corner)
    return corner + math.log1p(-gain / slope) if gain < slope else -math.inf


def _vertices(log_p: FloatArray, log_q: FloatArray, p_only: float) -> tuple[FloatArray, FloatArray]:
    """Corners (q, p) of the best tests, by cumulating groups in order of decreasing loss."""
    x = np.concatenate([[0.0], np.cumsum(np.exp(log_q)), [1.0]])
    y = np.concatenate([[p_only], p_only + np.cumsum(np.exp(log_p)), [1.0]])
    if log_p.size:
        y[-2] = 1.0  # every group with mass under P is in: rounding must not leave a gap
    return np.minimum(x, 1.0), np.minimum(y, 1.0)


def _concave_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of the least concave function above the points (monotone chain)."""
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


def _normal_scores(log_mass: FloatArray) -> FloatArray:
    """``Phi^-1`` of the proper cumulative sums, from whichever end is the smaller."""
    below = np.logaddexp.accumulate(log_mass)[:-1]
    above = np.logaddexp.accumulate(log_mass[::-1])[::-1][1:]
    scores = np.where(
        below <= above,
        special.ndtri_exp(np.minimum(below, 0.0)),
        -special.ndtri_exp(np.minimum(above, 0.0)),
    )
    return np.asarray(scores, dtype=np.float64)


# ------------------------------------------------------------------------------ pairs of laws


def curve(law_p: Law, law_q: Law) -> PrivacyCurve:
    """Exact privacy curve of an unordered pair of laws.

    Parameters
    ----------
    law_p, law_q : Law
        The mechanism's output laws on two neighbouring datasets.

    Returns
    -------
    PrivacyCurve
        `LossCurve` for finite and geometric pairs and their products, `LaplaceCurve` and
        `GaussianCurve` for those. In products, coordinates with equal laws are dropped.

    Raises
    ------
    ValueError
        If no exact curve is known for the pair (for instance two Laplace laws of different
        scale); the message names both laws.

    Notes
    -----
    Source: catalogue 000_001_003, A1 to A4.
    """
    if law_p is law_q or law_p == law_q:
        return LossCurve(np.zeros(1), np.zeros(1))
    match law_p, law_q:
        case FiniteLaw(), FiniteLaw():
            return _finite_pair(law_p, law_q)
        case LaplaceLaw(), LaplaceLaw() if law_p.scale == law_q.scale:
            return LaplaceCurve(abs(law_p.loc - law_q.loc) / law_p.scale)
        case GaussianLaw(), GaussianLaw() if law_p.sigma == law_q.sigma:
            return GaussianCurve(abs(law_p.loc - law_q.loc) / law_p.sigma)
        case TwoSidedGeometricLaw(), TwoSidedGeometricLaw() if (law_p.a, law_p.step) == (
            law_q.a,
            law_q.step,
        ):
            return _geometric_pair(law_p, abs(law_p.loc - law_q.loc))
        case ProductLaw(), ProductLaw() if len(law_p.parts) == len(law_q.parts):
            return _product_pair(law_p, law_q)
    raise _unsupported(law_p, law_q)


def _unsupported(law_p: Law, law_q: Law) -> ValueError:
    names = [repr(law) if len(repr(law)) <= 200 else repr(law)[:200] + "..." for law in (law_p, law_q)]
    return ValueError(
        "no exact privacy curve is known for this pair; expected two finite laws, Laplace or "
        "Gaussian laws of equal scale, geometric laws of equal base and step, or products of "
        f"these with the same number of coordinates, got {names[0]} and {names[1]}"
    )


def _grouped(log_p: FloatArray, log_q: FloatArray, p_only: float, q_only: float) -> LossCurve:
    """Sort by decreasing loss and merge groups of equal loss."""
    if log_p.size == 0:
        return LossCurve(log_p, log_q, p_only, q_only)
    order = np.argsort(log_q - log_p, kind="stable")
    log_p, log_q = log_p[order], log_q[order]
    loss = log_p - log_q
    gap = np.abs(np.diff(loss)) > _MERGE_TOLERANCE * np.maximum(1.0, np.abs(loss[1:]))
    starts = np.concatenate([[0], np.flatnonzero(gap) + 1])
    return LossCurve(np.logaddexp.reduceat(log_p, starts), np.logaddexp.reduceat(log_q, starts), p_only, q_only)


def _finite_pair(law_p: FiniteLaw, law_q: FiniteLaw) -> LossCurve:
    index = {outcome: i for i, outcome in enumerate(law_p.outcomes)}
    for outcome in law_q.outcomes:
        index.setdefault(outcome, len(index))
    p, q = np.zeros(len(index)), np.zeros(len(index))
    p[: len(law_p.outcomes)] = law_p.probabilities
    q[[index[outcome] for outcome in law_q.outcomes]] = law_q.probabilities
    both = (p > 0) & (q > 0)
    return _grouped(np.log(p[both]), np.log(q[both]), float(p[q == 0].sum()), float(q[p == 0].sum()))


def _geometric_pair(law: TwoSidedGeometricLaw, shift: int) -> LossCurve:
    """Centres 0 and `shift` > 0: outcomes 1..shift-1 have one loss each, the tails one each."""
    if shift > _MAX_GROUPS:
        raise ValueError(f"expected a shift of at most {_MAX_GROUPS} steps, got {shift}")
    k = np.arange(1, shift, dtype=np.float64)
    log_total = math.log(law.a + 1.0)
    head = law.log_a - log_total  # P[Z <= 0] = a / (a + 1)
    tail = (1 - shift) * law.log_a - log_total  # P[Z >= shift] = a^(1 - shift) / (a + 1)
    peak = math.log(law.a - 1.0) - log_total
    log_p = np.concatenate([[head], peak - k * law.log_a, [tail]])
    return LossCurve(log_p, log_p[::-1].copy())


def _combined(one: LossCurve, two: LossCurve) -> LossCurve:
    if one.log_p.size * two.log_p.size > _MAX_GROUPS:
        raise ValueError(
            f"expected a product of at most {_MAX_GROUPS} loss groups, got {one.log_p.size} x "
            f"{two.log_p.size}; use a coarser lattice"
        )
    return _grouped(
        np.add.outer(one.log_p, two.log_p).ravel(),
        np.add.outer(one.log_q, two.log_q).ravel(),
        one.p_only + (1.0 - one.p_only) * two.p_only,
        one.q_only + (1.0 - one.q_only) * two.q_only,
    )


def _product_pair(law_p: ProductLaw, law_q: ProductLaw) -> PrivacyCurve:
    pairs = zip(law_p.parts, law_q.parts, strict=True)
    curves = [curve(p, q) for p, q in pairs if p is not q and p != q]
    if len(curves) == 1:
        return curves[0]
    gaussian = [c for c in curves if isinstance(c, GaussianCurve)]
    if len(gaussian) == len(curves):
        return GaussianCurve(math.hypot(*(c.shift for c in gaussian)))
    finite = [c for c in curves if isinstance(c, LossCurve)]
    if len(finite) == len(curves):
        return reduce(_combined, finite)
    raise _unsupported(law_p, law_q)


# -------------------------------------------------------------------------------------- levels
