"""What is claimed: notions of privacy, each as one cap.

For neighbouring datasets with output laws P and Q, and any test g with values in [0, 1], a guarantee at level t says
that p = E_P[g] and q = E_Q[g] satisfy ``p <= cap(q, t)``. The cap is concave and increasing in q and grows with t; it
is one minus the trade-off function of the guarantee. All the statistics of this package need of a notion is its cap,
the cap's tangents and its inverse in t, so a new notion is one class in this file.

Because relations between datasets are symmetric, a cap covers both orders of a pair: the event that is more probable
under P bounds (P, Q), its complement bounds (Q, P).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.exact import PrivacyCurve

Array = NDArray[np.float64]

#: Probabilities are kept this far from 0 and 1 where a quotient needs it. It only moves the point at which a tangent is
#: taken, and a tangent at any point of the cap is valid, so the value cannot cost validity.
_TINY = 1e-12

#: Bisection steps for the projection on a smooth cap. 30 halvings of an interval of length at most 1 put the point
#: within 1e-9 of the best one; errors along the cap cost growth to second order only.
_BISECTIONS = 30

#: Steps for the projection on the Gaussian cap, whose stationarity condition is nearly linear in z = Phi^-1(q0) but for
#: rare events: 18 leave a relative error of the divergence below 1e-6.
_FALSE_POSITIONS = 18


class Tangent(NamedTuple):
    """A point (p0, q0) on a cap and the slope of a line that touches the cap there from above."""

    p0: Array
    q0: Array
    slope: Array


class Guarantee(Protocol):
    """A notion of privacy at a claimed level."""

    notion: ClassVar[str]
    symbol: ClassVar[str]

    @property
    def level(self) -> float:
        """The claimed level t."""

    @property
    def delta(self) -> float:
        """The claimed delta, 0 where the notion has none."""

    def parameters(self) -> dict[str, float]:
        """The claim's parameters by name."""

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p that level ``level`` allows at ``q``."""

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection of points above the cap on it, with a supporting slope; see `project`."""

    def level_of(self, p: Array, q: Array) -> Array:
        """Smallest level whose cap allows (p, q)."""

    def saturation_level(self, divergence: float) -> float:
        """Largest level at which min over the cap of (-ln p0 - ln(1 - q0)) is at least ``divergence``."""

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Smallest level that a pair of laws with this exact curve satisfies."""


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class ApproxDP:
    """(epsilon, delta)-differential privacy; the level is epsilon.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    cap(q) = min(1, e^eps q + delta, 1 - e^-eps (1 - delta - q)) (003, section 1.2; the second line is the same
    inequality for the complement with the datasets exchanged).
    """

    epsilon: float
    delta: float = 0.0

    notion: ClassVar[str] = "approximate DP"
    symbol: ClassVar[str] = "ε"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("delta", self.delta))
        if self.delta >= 1:
            raise ValueError(f"delta must be in [0, 1), got {self.delta!r}")

    @property
    def level(self) -> float:
        """Claimed epsilon."""
        return self.epsilon

    def parameters(self) -> dict[str, float]:
        """Claimed epsilon and delta."""
        return {"epsilon": self.epsilon, "delta": self.delta} if self.delta else {"epsilon": self.epsilon}

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p allowed at q (see the class)."""
        e = np.exp(level)
        capped: Array = np.minimum(np.minimum(1.0, e * q + self.delta), 1.0 - (1.0 - self.delta - q) / e)
        return capped

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection on the two lines of the cap or on the kink between them.

        At the kink every slope in [e^-eps, e^eps] supports the cap, and the one that makes the two-sided bet a
        likelihood ratio is taken.
        """
        e = np.exp(level)
        kink = (1.0 - self.delta) / (1.0 + e)
        # The cap is symmetric under (p, q) -> (1 - q, 1 - p): the flat line is the steep one of the mirrored point.
        steep, mirrored = _on_line(np.stack([p, 1.0 - q]), np.stack([q, 1.0 - p]), e, self.delta)
        flat = 1.0 - (e * mirrored + self.delta)
        on_steep, on_flat = steep <= kink, flat >= kink
        q0 = np.where(on_steep, steep, np.where(on_flat, flat, kink))
        q0 = np.clip(q0, 0.0, 1.0 - self.delta)
        p0 = self.cap(q0, level)
        slope = np.where(on_steep, e, 1.0 / e)
        between = ~(on_steep | on_flat)
        if between.any():
            slope = np.where(between, np.clip(_ratio_slope(p, q, p0, q0), 1.0 / e, e), slope)
        return Tangent(p0, q0, slope)

    def level_of(self, p: Array, q: Array) -> Array:
        """Smallest epsilon at the claimed delta that allows (p, q); may be infinite, at least 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = np.where(p > self.delta, np.log((p - self.delta) / q), -np.inf)
            flat = np.where(1.0 - q > self.delta, np.log((1.0 - q - self.delta) / (1.0 - p)), -np.inf)
        larger: Array = np.fmax(np.fmax(steep, flat), 0.0)
        return larger

    def saturation_level(self, divergence: float) -> float:
        """Closed form: the minimum is at the kink, where p0 = 1 - q0 = (e^eps + delta) / (1 + e^eps)."""
        x = math.exp(-divergence / 2)  # p0 of the kink
        return -math.inf if 2 * x <= 1 + self.delta else math.log((x - self.delta) / (1 - x))

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Smallest epsilon at the claimed delta."""
        return curve.epsilon(self.delta)


class PureDP(ApproxDP):
    """epsilon-differential privacy: `ApproxDP` with delta = 0.

    Parameters
    ----------
    epsilon : float
        At least 0.
    """

    notion: ClassVar[str] = "pure DP"

    def __init__(self, epsilon: float) -> None:
        super().__init__(epsilon, 0.0)

    def __repr__(self) -> str:
        return f"PureDP({self.epsilon!r})"


@dataclass(frozen=True)
class GaussianDP:
    """mu-Gaussian differential privacy; the level is mu (Dong, Roth and Su 2022).

    Parameters
    ----------
    mu : float
        At least 0.

    Notes
    -----
    cap(q) = Phi(Phi^-1(q) + mu).
    """

    mu: float

    notion: ClassVar[str] = "Gaussian DP"
    symbol: ClassVar[str] = "μ"
    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _number("mu", self.mu))

    @property
    def level(self) -> float:
        """Claimed mu."""
        return self.mu

    def parameters(self) -> dict[str, float]:
        """Claimed mu."""
        return {"mu": self.mu}

    def __str__(self) -> str:
        return f"μ = {self.mu:g}"

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p allowed at q."""
        capped: Array = special.ndtr(special.ndtri(q) + level)
        return capped

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection by the Illinois method in z = Phi^-1(q0); slope phi(z + mu) / phi(z) = exp(-z mu - mu^2 / 2)."""
        p, q, level = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float), np.asarray(level, float))
        low = special.ndtri(np.clip(q, _TINY, 1 - _TINY))
        high = np.maximum(special.ndtri(np.clip(p, _TINY, 1 - _TINY)) - level, low)
        at_low, at_high = _pull(low + level, p), _pull(high, q)  # the other term is 0 at each end
        for step in range(_FALSE_POSITIONS):
            z = 0.5 * (low + high)
            if step % 2:  # every other step halves the interval, where false positions crawl
                rise = at_high - at_low
                z = np.divide(low * at_high - high * at_low, rise, out=z, where=rise > 0)
            value = _pull(z + level, p) + _pull(z, q)
            up = value > 0
            # Illinois: the value at the end that stays is halved, so that both ends move.
            at_low, at_high = np.where(up, 0.5 * at_low, value), np.where(up, value, 0.5 * at_high)
            low, high = np.where(up, low, z), np.where(up, z, high)
        z = np.clip(z, low, high)
        return Tangent(special.ndtr(z + level), special.ndtr(z), np.exp(-z * level - 0.5 * level * level))

    def level_of(self, p: Array, q: Array) -> Array:
        """Phi^-1(p) - Phi^-1(q), at least 0."""
        with np.errstate(invalid="ignore"):  # inf - inf: both impossible or both certain, no difference
            larger: Array = np.fmax(special.ndtri(p) - special.ndtri(q), 0.0)
        return larger

    def saturation_level(self, divergence: float) -> float:
        """Closed form: by symmetry the minimum is at p0 = 1 - q0 = Phi(mu / 2) (-ln Phi is convex)."""
        return float(2 * special.ndtri(math.exp(-divergence / 2)))

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Smallest mu."""
        return curve.mu()


def _pull(z: Array, p: Array) -> Array:
    """d/dz KL(p || Phi(z)) = phi(z) (Phi(z) - p) / (Phi(z) Phi(-z))."""
    above, below = special.ndtr(z), special.ndtr(-z)
    slope: Array = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * (above - p) / (above * below)
    return slope


def _spread(p: Array) -> Array:
    return np.maximum(p * (1.0 - p), _TINY)


def _ratio_slope(p: Array, q: Array, p0: Array, q0: Array) -> Array:
    """Slope at which the two-sided bet between (p, q) and (p0, q0) is a likelihood ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = ((q0 - q) / _spread(q0)) / ((p - p0) / _spread(p0))
    return np.nan_to_num(slope, nan=1.0, posinf=np.inf)


def _on_line(p: Array, q: Array, e: Array, delta: float) -> Array:
    """q0 minimising KL(p || e q0 + delta) + KL(q || q0) on the line p0 = e q0 + delta.

    Stationarity is (p0 - p) e / (p0 (1 - p0)) + (q0 - q) / (q0 (1 - q0)) = 0: a quadratic for delta = 0, otherwise a
    convex problem in one variable, solved by bisection from the estimate to the end of the line.
    """
    b = e + p + 1.0 + e * q
    # The smaller root, written without the difference of two numbers that are nearly equal for large e.
    root: Array = 2.0 * (p + q) / (b + np.sqrt(np.maximum(b * b - 8.0 * e * (p + q), 0.0)))
    if delta == 0:
        return root
    low = np.minimum(q, (1.0 - delta) / e)
    high = np.clip((p - delta) / e, low, (1.0 - delta) / e)
    for _ in range(_BISECTIONS):
        q0 = 0.5 * (low + high)
        p0 = e * q0 + delta
        uphill = e * (p0 - p) / _spread(p0) + (q0 - q) / _spread(q0) > 0
        low, high = np.where(uphill, low, q0), np.where(uphill, q0, high)
    middle: Array = 0.5 * (low + high)
    return middle
