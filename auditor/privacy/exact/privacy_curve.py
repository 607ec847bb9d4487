"""The protocol of a privacy curve, and curves in closed form: Laplace, Gaussian, Cauchy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from auditor.privacy.laws import FloatArray, require

_SQRT2 = math.sqrt(2.0)

# Below this argument the arctangents of a Cauchy pair are expanded, above it they are subtracted: 16 terms of the
# series leave 0.3^33 < 1e-17, and from 0.3 on the difference has lost no more than two digits.
_SMALL_ANGLE = 0.3
_SERIES_TERMS = 16
# Below this arctan(x) = x to the last digit; the logarithm is then taken of x, where x itself may underflow.
_TINY_ANGLE = 1e-8
# Quadrature of the Cauchy pair's Renyi divergence (see `CauchyCurve.renyi`): step in units of 1 / sqrt(order), and the
# distance in log scale at which the integrand has fallen by e^-45 < 1e-19.
_RENYI_STEP = 0.15
_RENYI_TAIL = 45.0
# Rounding there, in units of the last place of the largest logarithm in play; 16 of them are more than it takes.
_ROUNDING = 16 * 2.0**-53
# Orders from here on need more than a million points, and the largest loss is then within 0.01 % of the answer.
_LARGE_ORDER = 1e6


class PrivacyCurve(Protocol):
    """Everything differential privacy asks about one unordered pair of distributions."""

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence at any real `epsilon`: the larger of both orders."""
        ...

    def epsilon(self, delta: float) -> float:
        """Smallest ``eps >= 0`` with ``delta(eps) <= delta``; `inf` if there is none."""
        ...

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """Cap ``1 - f(q)``, the least concave bound on p.

        It bounds p over tests with E_Q = q.

        Equals ``inf over eps of delta(eps) + e^eps q``. For a pair that is symmetric under
        swapping it is the power of the best randomised test of level q. For other pairs the
        maximum over the two orders need not be concave; a trade-off claim always is, so the
        concave hull is what the smallest such claim says. Same shape as `q`, values in [0, 1].
        """
        ...

    def mu(self) -> float:
        """Smallest ``mu >= 0`` for which the pair is mu-GDP, or `inf`."""
        ...

    def renyi(self, order: float) -> float:
        """Renyi divergence, the larger of the pair's two orders.

        ``ln(E_Q[(P/Q)^order]) / (order - 1)`` for finite `order` > 1, the largest privacy loss for the order `inf`;
        at least 0, may be `inf` (Mironov 2017, Definition 3).
        """
        ...


def checked_epsilon(epsilon: float) -> float:
    """Return `epsilon` as a float, or raise a ValueError."""
    require(not math.isnan(epsilon), "a number epsilon", epsilon)
    return float(epsilon)


def checked_delta(delta: float) -> float:
    """Return `delta`, in [0, 1], or raise a ValueError."""
    require(0.0 <= delta <= 1.0, "delta in [0, 1]", delta)
    return float(delta)


def checked_level(q: ArrayLike) -> FloatArray:
    """Return `q`, in [0, 1], or raise a ValueError."""
    array = np.asarray(q, dtype=np.float64)
    require(bool(np.all((array >= 0) & (array <= 1))), "q in [0, 1]", q)
    return array


def checked_order(order: float) -> float:
    """Return `order`, above 1, or raise a ValueError.

    It may be `inf`.
    """
    require(order > 1.0, "an order > 1", order)
    return float(order)


def checked_count(k: int) -> int:
    """Return `k`, at least 1, or raise a ValueError."""
    require(isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= 1, "an integer k >= 1", k)
    return int(k)


def trivial_delta(epsilon: float) -> float:
    """Hockey-stick divergence of a distribution with itself: ``max(0, 1 - e^eps)``.

    No pair goes below it.
    """
    return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0


def solved_epsilon(delta_of: Callable[[float], float], delta: float, low: float, high: float) -> float:
    """Root of ``delta_of(eps) = delta``, to 1e-14.

    It lies between `low` and `high`, for 0 < delta < 1.

    Parameters
    ----------
    delta_of : callable
        delta of an epsilon, decreasing.
    delta : float
        In (0, 1).
    low, high : float
        Interval of epsilons that holds the root.

    Returns
    -------
    float
        The epsilon.
    """

    from scipy import optimize  # takes longer to import than numpy

    def excess(e: float) -> float:
        return delta_of(e) / delta - 1.0

    return float(optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-14, maxiter=500))


@dataclass(frozen=True)
class LaplaceCurve:
    """Two Laplace distributions of equal scale, centres `shift` scales apart (A1)."""

    shift: float

    def delta(self, epsilon: float) -> float:
        """``1 - exp((eps - shift) / 2)`` for ``|eps| <= shift``; see `PrivacyCurve.delta`."""
        e = checked_epsilon(epsilon)
        if e >= self.shift:
            return trivial_delta(e)
        if e <= -self.shift:
            return -math.expm1(e)
        return -math.expm1((e - self.shift) / 2.0)

    def epsilon(self, delta: float) -> float:
        """See `PrivacyCurve.epsilon`."""
        d = checked_delta(delta)
        return max(0.0, self.shift + 2.0 * math.log1p(-d)) if d < 1 else 0.0

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """See `PrivacyCurve.tradeoff`."""
        q = checked_level(q)
        shrink = math.exp(-self.shift)
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = 1.0 - shrink / (4.0 * np.maximum(q, 0.5 * shrink))
            least = np.minimum(q, 0.5 * shrink)
            # e^shift is no double from 710 on.
            left = np.exp(self.shift) * least if self.shift < 709.0 else np.exp(self.shift + np.log(least))
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

    def renyi(self, order: float) -> float:
        """Renyi divergence of order a (Mironov 2017, Table II).

        It is ``ln(a/(2a-1) e^((a-1) shift) + (a-1)/(2a-1) e^(-a shift)) / (a-1)``.
        """
        a = checked_order(order)
        if math.isinf(a):
            return self.shift
        n, weight = a - 1.0, a / (2.0 * a - 1.0)
        rest = n / (2.0 * a - 1.0)
        if n * self.shift <= 1.0:  # the logarithm of a number near 1
            grown = weight * math.expm1(n * self.shift) + rest * math.expm1(-a * self.shift)
            value = math.log1p(grown) / n
        else:
            value = self.shift + math.log(weight + rest * math.exp(-(2.0 * a - 1.0) * self.shift)) / n
        return min(self.shift, max(0.0, value))


@dataclass(frozen=True)
class GaussianCurve:
    """Two Gaussian distributions of equal spread, centres `shift` standard deviations apart (A2)."""

    shift: float

    def delta(self, epsilon: float) -> float:
        """``Phi(shift/2 - eps/shift) - e^eps Phi(-shift/2 - eps/shift)``."""
        e = checked_epsilon(epsilon)
        if self.shift == 0.0 or math.isinf(e):
            return trivial_delta(e)
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
        d = checked_delta(delta)
        if self.delta(0.0) <= d:
            return 0.0
        if d == 0.0:
            return math.inf
        high = 1.0
        while self.delta(high) > d:
            high *= 2.0
        return solved_epsilon(self.delta, d, 0.0, high)

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """``Phi(Phi^-1(q) + shift)``."""
        q = checked_level(q)
        return np.asarray(special.ndtr(special.ndtri(q) + self.shift), dtype=np.float64)

    def mu(self) -> float:
        """Return the shift itself."""
        return self.shift

    def renyi(self, order: float) -> float:
        """``order shift^2 / 2``."""
        return checked_order(order) * self.shift**2 / 2.0 if self.shift > 0 else 0.0


@dataclass(frozen=True)
class CauchyCurve:
    """Two Cauchy distributions of any centres and scales (A5).

    They are `distance` apart in the hyperbolic plane.

    Parameters
    ----------
    distance : float
        ``arccosh((s^2 + t^2 + a^2) / (2 s t))`` for scales s, t and centres a apart; at least 0. It is the largest
        privacy loss.

    Notes
    -----
    One number says everything about the pair. The maps x -> (ax + b)/(cx + d) with ad - bc = 1 take Cauchy
    distributions to Cauchy distributions and act on (centre, scale) as the isometries of the upper half-plane, which
    take any two points to any two others at the same distance. They are one to one, so nothing that is computed from
    likelihood ratios changes. Hence every pair is as good as two centred distributions of scales ``e^(-d/2)`` and
    ``e^(d/2)``: likelihood-ratio tests are intervals around 0, and the pair is symmetric under swapping (x -> -1/x). On
    the angle 2 arctan(x) of the first distribution, which is uniform, the ratio of the densities is ``cosh d + sinh d
    cos(angle)``.

    Source: catalogue 000_001_003, A5; Nielsen and Okamura (2023), On f-divergences between Cauchy distributions.
    """

    distance: float

    def delta(self, epsilon: float) -> float:
        """``(2/pi) (arctan(y) - e^eps arctan(e^-d y))``.

        With y^2 = (1 - e^(eps-d)) / (e^(eps-d) - e^(-2d)).
        """
        e, d = checked_epsilon(epsilon), self.distance
        if e >= d:
            return trivial_delta(e)
        if e <= -d:
            return -math.expm1(e)
        log_y = 0.5 * (math.log(-math.expm1(e - d)) - (e - d) - math.log(-math.expm1(-(e + d))))
        y = math.exp(min(log_y, 300.0))  # arctan is pi/2 long before its argument reaches e^300
        if y < _SMALL_ANGLE:
            # Close to the largest loss both terms agree to first order in y; term by term they do not cancel.
            odd = [2 * n + 1 for n in range(_SERIES_TERMS)]
            terms = [(-1) ** n * -math.expm1(e - m * d) * y**m / m for n, m in enumerate(odd)]
            return max(0.0, 2.0 / math.pi * math.fsum(terms))
        small = math.exp(min(log_y - d, 300.0))
        # arctan(y) - arctan(e^-d y) as one arctangent, so that nearby distributions lose no digits.
        gap = math.atan(y * -math.expm1(-d) / (1.0 + small * y))
        log_angle = math.log(math.atan(small)) if small > _TINY_ANGLE else log_y - d
        grown = (-math.expm1(-e) if e > 0 else math.expm1(e)) * math.exp(max(e, 0.0) + log_angle)
        return max(0.0, 2.0 / math.pi * (gap - grown))

    def epsilon(self, delta: float) -> float:
        """See `PrivacyCurve.epsilon`; solved to 1e-14."""
        d = checked_delta(delta)
        if self.delta(0.0) <= d:
            return 0.0
        if d == 0.0:
            return self.distance
        return solved_epsilon(self.delta, d, 0.0, self.distance)

    def tradeoff(self, q: ArrayLike) -> FloatArray:
        """``(2/pi) arctan(e^d tan(pi q / 2))``."""
        q = checked_level(q)
        # The complement of a test is a test of the other distribution, at a distance -d: exact at both ends.
        end = np.minimum(q, 1.0 - q)
        growth = np.where(q <= 0.5, min(self.distance, 700.0), -self.distance)
        side = 2.0 / math.pi * np.arctan(np.exp(growth) * np.tan(0.5 * math.pi * end))
        return np.asarray(np.where(q <= 0.5, side, 1.0 - side), dtype=np.float64)

    def mu(self) -> float:
        """``-2 Phi^-1((2/pi) arctan(e^(-d/2)))``.

        With v = ln tan(pi q / 2) the cap is v -> v + d, and g(v) = Phi^-1((2/pi) arctan(e^v)) is odd and concave for
        v > 0 (checked on a grid, in the tests), so g(v + d) - g(v) is largest at v = -d/2.
        """
        tail = math.exp(-self.distance / 2.0)
        log_angle = math.log(math.atan(tail)) if tail > _TINY_ANGLE else -self.distance / 2.0
        return max(0.0, -2.0 * float(special.ndtri_exp(log_angle + math.log(2.0 / math.pi))))

    def renyi(self, order: float) -> float:
        """``ln(I) / (order - 1)`` with I a Legendre function.

        Its degree is order - 1, at cosh d.

        ``I = (1/pi) integral of cosh(w - d)^(a-1) / cosh(w)^a dw`` for order a, by the trapezoid rule, in logarithms.
        The integrand is analytic for |Im w| < pi/2; on |Im w| <= 1/sqrt(a) it grows by at most a factor 2, so a step
        of 0.15/sqrt(a) leaves a relative error of about exp(-2 pi / 0.15) < 1e-17. The ends are cut where it has
        fallen by e^-45. The logarithms are at most a (1 + d) where the integrand is not negligible, and ln I is
        rounded up by 16 roundings of that. An order above 10^6 gets the largest loss, which is above all of them.
        """
        a, d = checked_order(order), self.distance
        if a > _LARGE_ORDER or d == 0.0:
            return d
        step = _RENYI_STEP / math.sqrt(a)
        # Multiples of the step: a range that starts at -45 would round the step itself, by 1e-13 of it.
        index = np.arange(-math.ceil(_RENYI_TAIL / step), math.ceil((d + _RENYI_TAIL) / step) + 1, dtype=np.float64)
        w = step * index
        log_terms = (a - 1.0) * _log_cosh(w - d) - a * _log_cosh(w)
        log_integral = float(special.logsumexp(log_terms)) + math.log(step / math.pi)
        return min(d, (max(0.0, log_integral) + _ROUNDING * (1.0 + a * (1.0 + d))) / (a - 1.0))


def _log_cosh(w: FloatArray) -> FloatArray:
    size = np.abs(w)
    return np.asarray(size + np.log1p(np.exp(-2.0 * size)) - math.log(2.0), dtype=np.float64)
