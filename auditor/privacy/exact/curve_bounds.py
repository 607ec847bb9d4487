"""Compositions without a closed form, bounded from above and from below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from auditor.privacy.exact import convolution
from auditor.privacy.exact.privacy_curve import (
    LaplaceCurve,
    PrivacyCurve,
    checked_delta,
    checked_epsilon,
    checked_level,
    trivial_delta,
)
from auditor.privacy.exact.privacy_loss import LossCurve, excess, normal_scores, solve, vertices
from auditor.privacy.laws import FloatArray, require

# Lattice points of a composed loss: at least 2^18, which for some hundred Laplace or Gaussian losses leaves a relative
# error in epsilon of 1e-6, and 64 for every copy, so that no single loss is described by a handful of points. The
# errors fall with the square, the time grows in proportion: half a second for 2^18.
_POINTS = 2**18
_POINTS_A_COPY = 64
_MOST_POINTS = 2**22
# A lattice of the losses' own is worth up to this many times as many points, for its exactness; arbitrary.
_FINER = 4
# Beyond this many copies not even 16 points a copy fit.
_MOST_COPIES = 2**18
# Two spacings are one, or a multiple of one another, if they are within this part of it.
_COMMENSURABLE = 1e-9
# Scores of tests with more power than this are left to the other order: 1 - power would be rounding.
_POWER = 1.0 - 1e-6

Part: TypeAlias = tuple[PrivacyCurve, int]


@dataclass(frozen=True)
class PessimisticCurve:
    """Upper bound on a composition's curve.

    Every method returns at least the true value.

    Parameters
    ----------
    parts : tuple of (PrivacyCurve, int)
        Independent curves and how often each occurs.

    Notes
    -----
    Valid because: the losses of every part are moved to a lattice by splitting groups, so that the lattice pair
    dominates the true one (`auditor.privacy.exact.convolution.shared_out`); a product of dominating pairs dominates the
    product; losses cut off count as infinite; and the error bound of the convolution is added to every mass. `renyi` is
    exact: Renyi divergences of one order add. Two bounds come from the parts alone: the loss never exceeds the sum of
    the largest losses, and mu is at most the root of the sum of the squares of the parts' mu (Dong, Roth, Su 2022,
    Corollary 3.3), which is what counts if a part has unbounded losses.
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        copies = sum(count for _, count in self.parts)
        require(copies <= _MOST_COPIES, f"at most {_MOST_COPIES} mechanisms whose losses are convolved", copies)

    @cached_property
    def optimistic(self) -> OptimisticCurve:
        """The same composition bounded from below."""
        return OptimisticCurve(self.parts)

    @cached_property
    def _bounds(self) -> tuple[LossCurve, FloatArray]:
        """Curve whose masses are all too large, or right, and log masses under P that are all too small, or right."""
        step = lattice_step(self.parts)
        listed = [(convolution.losses(curve, step), count) for curve, count in self.parts]
        shared = [(convolution.shared_out(losses, step), count) for losses, count in listed]
        masses, log_error = convolution.convolved(shared, step, both_tails=True)
        # Groups that are negligible under both distributions are left out.
        log_p = np.logaddexp(masses.log_mass, log_error)[::-1]
        loss = (masses.start + step * np.arange(log_p.size))[::-1]
        p_only = _probability_of_any([(losses.p_only + losses.p_cut, count) for losses, count in listed])
        q_only = _probability_of_any([(losses.q_only + losses.q_cut, count) for losses, count in listed])
        kept = np.maximum(log_p, log_p - loss) > convolution.LEAST_LOG
        gain = np.minimum(log_error - masses.log_mass, 0.0)[::-1]
        with np.errstate(divide="ignore"):
            least = masses.log_mass[::-1] + np.log1p(-np.exp(gain))
        return LossCurve(log_p[kept], (log_p - loss)[kept], p_only, q_only), least[kept]

    @property
    def _upper_curve(self) -> LossCurve:
        return self._bounds[0]

    @cached_property
    def _largest_level(self) -> float:
        return math.fsum(count * curve.epsilon(0.0) for curve, count in self.parts)

    def delta(self, epsilon: float) -> float:
        """Upper bound; see `PrivacyCurve.delta`."""
        e = checked_epsilon(epsilon)
        return trivial_delta(e) if e >= self._largest_level else self._upper_curve.delta(e)

    def epsilon(self, delta: float) -> float:
        """Upper bound; see `PrivacyCurve.epsilon`."""
        d = checked_delta(delta)
        return self._largest_level if d == 0.0 else min(self._largest_level, self._upper_curve.epsilon(d))

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """Upper bound on the cap; see `PrivacyCurve.tradeoff`."""
        if not _are_symmetric(self.parts):
            return self._upper_curve.tradeoff(q)
        corners = vertices(
            self._upper_curve.log_p, self._upper_curve.log_q, self._upper_curve.p_only
        )  # one order says it all
        return np.asarray(np.minimum(1.0, np.interp(checked_level(q), *corners)), dtype=np.float64)

    def mu(self) -> float:
        """Upper bound; see `PrivacyCurve.mu`."""
        from_parts = math.sqrt(math.fsum(count * curve.mu() ** 2 for curve, count in self.parts))
        upper, least = self._bounds
        if upper.p_only > 0.0 or upper.q_only > 0.0:
            return from_parts
        gaps = normal_scores(upper.log_p, least) - normal_scores(least - upper.loss, upper.log_q)
        # Where a mass is not known from below its ratio still is: no test beats the largest loss, in either order, and
        # at a given ratio the gap of scores grows with the probability, as -Phi^-1(e^u) is concave.
        power = np.logaddexp.accumulate(upper.log_p)[:-1]
        rest = np.logaddexp.accumulate(upper.log_q[::-1])[::-1][1:]
        for log_mass, largest in ((power, float(upper.loss[0])), (rest, -float(upper.loss[-1]))):
            small = np.minimum(log_mass, 0.0)
            gaps = np.fmin(gaps, special.ndtri_exp(small) - special.ndtri_exp(small - largest))
        return min(from_parts, max(0.0, float(np.max(gaps, initial=0.0))))

    def renyi(self, order: float) -> float:
        """Exact, as Renyi divergences add; see `PrivacyCurve.renyi`."""
        return _renyi(self.parts, order)


@dataclass(frozen=True)
class OptimisticCurve:
    """Lower bound on a composition's curve.

    Every method returns at most the true value.

    Parameters
    ----------
    parts : tuple of (PrivacyCurve, int)
        Independent curves and how often each occurs.

    Notes
    -----
    Valid because: for each order of the pair the losses of every part are merged within the cells of a lattice, which
    is post-processing, and lowered to lattice points (`auditor.privacy.exact.convolution.merged`); losses that are
    smaller for every outcome add up to smaller sums; what is cut off is dropped; and the error bound of the convolution
    is taken off every mass. `renyi` is exact.
    """

    parts: tuple[Part, ...]

    @cached_property
    def _sides(self) -> list[tuple[FloatArray, FloatArray, float]]:
        """For each order: decreasing losses, log masses, and the mass of infinite loss."""
        step = lattice_step(self.parts)
        listed = [(convolution.losses(curve, step), count) for curve, count in self.parts]
        orders = [listed]
        if not _are_symmetric(self.parts):
            orders.append([(losses.swapped(), count) for losses, count in listed])
        return [self._side(order, step) for order in orders]

    def _side(self, listed: list[tuple[convolution.Losses, int]], step: float) -> tuple[FloatArray, FloatArray, float]:
        merged = [(convolution.merged(losses, step), count) for losses, count in listed]
        masses, log_error = convolution.convolved(merged, step, both_tails=False)
        gain = log_error - masses.log_mass
        kept = (gain < 0.0) & (masses.log_mass > convolution.LEAST_LOG)
        log_mass = masses.log_mass[kept] + np.log1p(-np.exp(gain[kept]))
        loss = np.asarray(masses.start + step * np.arange(kept.size), dtype=np.float64)[kept]
        return loss[::-1], log_mass[::-1], _probability_of_any([(losses.p_only, count) for losses, count in listed])

    def delta(self, epsilon: float) -> float:
        """Lower bound; see `PrivacyCurve.delta`."""
        e = checked_epsilon(epsilon)
        return max(trivial_delta(e), *(infinite + excess(loss, mass, e) for loss, mass, infinite in self._sides))

    def epsilon(self, delta: float) -> float:
        """Lower bound; see `PrivacyCurve.epsilon`."""
        d = checked_delta(delta)
        return max(0.0, *(solve(loss, mass, d - infinite) for loss, mass, infinite in self._sides))

    @cached_property
    def _corners(self) -> list[tuple[FloatArray, FloatArray]]:
        """Log levels and log powers of likelihood-ratio tests, for each order; the levels are too high, or right."""
        corners = []
        for loss, mass, infinite in self._sides:
            log_power = np.logaddexp.accumulate(mass)
            if infinite > 0.0:
                log_power = np.logaddexp(log_power, math.log(infinite))
            corners.append((np.logaddexp.accumulate(mass - loss), log_power))
        return corners

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """Lower bound on the cap.

        The larger power of the two orders' tests; see `PrivacyCurve.tradeoff`.
        """
        levels = checked_level(q)
        best = levels  # what guessing reaches
        for (log_level, log_power), (_, _, infinite) in zip(self._corners, self._sides, strict=True):
            test = (log_level < 0.0) & (log_power < 0.0)
            x = np.concatenate([[0.0], np.exp(log_level[test]), [1.0]])
            y = np.concatenate([[infinite], np.exp(log_power[test]), [1.0]])
            best = np.maximum(best, np.interp(levels, x, y))
        return np.asarray(best, dtype=np.float64)

    def mu(self) -> float:
        """Lower bound on mu.

        The largest gap of normal scores over the corners of `tradeoff`; see `PrivacyCurve.mu`.
        """
        best = 0.0
        for (log_level, log_power), (_, _, infinite) in zip(self._corners, self._sides, strict=True):
            if infinite > 0.0:
                return math.inf
            test = (log_level < 0.0) & (log_power < math.log(_POWER))
            gaps = special.ndtri_exp(log_power[test]) - special.ndtri_exp(log_level[test])
            best = max(best, float(np.max(gaps, initial=0.0)))
        return best

    def renyi(self, order: float) -> float:
        """Exact, as Renyi divergences add; see `PrivacyCurve.renyi`."""
        return _renyi(self.parts, order)


def _are_symmetric(parts: Sequence[Part]) -> bool:
    return all(curve.symmetric for curve, _ in parts if isinstance(curve, LossCurve))


def _renyi(parts: Sequence[Part], order: float) -> float:
    forward = backward = 0.0
    for curve, count in parts:
        both = curve.renyi_by_order(order) if isinstance(curve, LossCurve) else (curve.renyi(order),) * 2
        forward, backward = forward + count * both[0], backward + count * both[1]
    return max(forward, backward)


def _probability_of_any(parts: list[tuple[float, int]]) -> float:
    """Probability that at least one of independent events happens: each probability as often as its count says."""
    if any(probability >= 1.0 for probability, _ in parts):
        return 1.0
    return -math.expm1(math.fsum(count * math.log1p(-probability) for probability, count in parts))


def lattice_step(parts: Sequence[Part]) -> float:
    """Lattice step for a composition.

    It is the spacing of all losses if they have one, so that nothing is rounded.
    """
    copies = sum(count for _, count in parts)
    length = math.fsum(count * (high - low) for (low, high), count in ((convolution.span(c), n) for c, n in parts))
    if length == 0.0:
        return 1.0  # every loss is 0: any lattice will do
    points = min(_MOST_POINTS, max(_POINTS, _POINTS_A_COPY * copies))
    wanted = length / points
    common, on_lattices = 0.0, True
    for curve, _ in parts:
        own = convolution.spacing(curve)
        if own > 0.0:
            common = _common_spacing(common, own)
            if common == 0.0:
                return wanted
        # Losses in between, of a density or irregular ones, need a lattice as fine as without the others.
        single = isinstance(curve, LossCurve) and curve.loss.size == 1
        on_lattices &= single or (own > 0.0 and not isinstance(curve, LaplaceCurve))
    if common == 0.0 or length / common > _FINER * points:
        return wanted
    return common if on_lattices else common / max(1, math.ceil(common / wanted))


def _common_spacing(one: float, two: float) -> float:
    """Largest spacing of which both are multiples, 0 if there is none at least a thousandth of the smaller."""
    if one == 0.0:
        return two
    small, large = sorted((one, two))
    least = 1e-3 * small
    while small > least:
        rest = large - small * round(large / small)
        if abs(rest) <= _COMMENSURABLE * large:
            return small
        small, large = abs(rest), small
    return 0.0
