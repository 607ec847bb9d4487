"""Pure and approximate differential privacy, by epsilon and by delta."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees.base import Array, Guarantee, level_number, number, number_in
from auditor.privacy.guarantees.supporting_lines import VACUOUS, Tangent, bound_by_one, find_root, ratio_slope

#: Steps of Newton's method for the projection on a line: the divergence is then larger than the least one by 1e-5 of
#: it in 999 of 1,000 cases, and by 3e-4 at most, as after 30 halvings of the interval. Any point of the line is valid.
_NEWTON = 6
#: e^ε is a float up to here; a larger ε allows more only where q is below 1e-307.
_OVERFLOWS = 709.0


def _checked_delta(delta: object) -> float:
    value = number("delta", delta)
    if value >= 1:
        raise ValueError(f"delta must be in [0, 1), got {value!r}")
    return value


@dataclass(frozen=True)
class ApproxDP(Guarantee):
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
    claim_keys: ClassVar[tuple[str, ...]] = ("epsilon", "delta")

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", level_number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _checked_delta(self.delta))

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
        """Largest p allowed at q (see the class).

        See `Guarantee.cap`.
        """
        return _cap(q, level, self.delta)

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection on the lines of the cap, or its kink.

        At the kink every slope in [e^-eps, e^eps] supports the cap, and the one that makes the two-sided bet a
        likelihood ratio is taken.

        See `Guarantee.tangent`.
        """
        return _tangent(p, q, level, self.delta)

    def level_of(self, p: Array, q: Array) -> Array:
        """Smallest epsilon that allows (p, q), at least 0.

        At the claimed delta; may be infinite.

        See `Guarantee.level_of`.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = np.where(p > self.delta, np.log((p - self.delta) / q), -np.inf)
            flat = np.where(1.0 - q > self.delta, np.log((1.0 - q - self.delta) / (1.0 - p)), -np.inf)
        larger: Array = np.fmax(np.fmax(steep, flat), 0.0)
        return larger

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
    claim_keys: ClassVar[tuple[str, ...]] = ("epsilon",)

    def __init__(self, epsilon: float) -> None:
        super().__init__(epsilon, 0.0)

    def __repr__(self) -> str:
        return f"PureDP({self.epsilon!r})"


@dataclass(frozen=True)
class DeltaDP(Guarantee):
    """(epsilon, delta)-differential privacy whose level is delta, at a fixed epsilon.

    The same claim as `ApproxDP`, asked the other way round: which delta do the outputs show at the claimed epsilon?

    Parameters
    ----------
    delta : float
        In [0, 1).
    epsilon : float
        At least 0.
    """

    delta: float
    epsilon: float

    notion: ClassVar[str] = "approximate DP at epsilon"
    symbol: ClassVar[str] = "δ"
    claim_keys: ClassVar[tuple[str, ...]] = ("delta", "at_epsilon")
    highest: ClassVar[float] = 1.0
    unit: ClassVar[float] = 0.001

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", level_number("delta", _checked_delta(self.delta)))
        object.__setattr__(self, "epsilon", number("epsilon", self.epsilon))

    @classmethod
    def from_claim(cls, values: Mapping[str, str]) -> DeltaDP:
        """Read "delta=1e-6, at_epsilon=1"."""
        return cls(number_in("delta", values["delta"]), number_in("at_epsilon", values["at_epsilon"]))

    @property
    def level(self) -> float:
        """Claimed delta."""
        return self.delta

    def __str__(self) -> str:
        return f"δ = {self.delta:g} at ε = {self.epsilon:g}"

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p allowed at q.

        See `Guarantee.cap`.
        """
        return _cap(q, self.epsilon, level)

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection as for `ApproxDP`.

        See `Guarantee.tangent`.
        """
        return _tangent(p, q, self.epsilon, level)

    def level_of(self, p: Array, q: Array) -> Array:
        """The larger excess of both orders, at least 0.

        The larger of p - e^eps q and 1 - q - e^eps (1 - p).

        See `Guarantee.level_of`.
        """
        e = math.exp(min(self.epsilon, _OVERFLOWS))
        larger: Array = np.maximum(np.maximum(p - e * q, 1.0 - q - e * (1.0 - p)), 0.0)
        return larger

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Smallest delta at the fixed epsilon."""
        return curve.delta(self.epsilon)


def _cap(q: Array, epsilon: Array | float, delta: Array | float) -> Array:
    e = np.exp(np.minimum(epsilon, _OVERFLOWS))
    capped: Array = np.minimum(np.minimum(1.0, e * q + delta), 1.0 - (1.0 - delta - q) / e)
    return capped


def _tangent(p: Array, q: Array, epsilon: Array | float, delta: Array | float) -> Tangent:
    vacuous = np.greater(epsilon, VACUOUS)
    if vacuous.any():
        return bound_by_one(vacuous, _tangent(p, q, np.minimum(epsilon, VACUOUS), delta))
    e = np.exp(epsilon)
    kink = (1.0 - delta) / (1.0 + e)
    # The cap is symmetric under (p, q) -> (1 - q, 1 - p): the flat line is the steep one of the mirrored point.
    steep, mirrored = _on_line(np.array([p, 1.0 - q]), np.array([q, 1.0 - p]), e, delta)
    flat = 1.0 - (e * mirrored + delta)
    on_steep, on_flat = steep <= kink, flat >= kink
    q0 = np.where(on_steep, steep, np.where(on_flat, flat, kink))
    q0 = np.minimum(np.maximum(q0, 0.0), 1.0 - delta)  # a third of the time of `np.clip`
    p0 = _cap(q0, epsilon, delta)
    slope = np.where(on_steep, e, 1.0 / e)
    between = ~(on_steep | on_flat)
    if between.any():
        slope = np.where(between, np.clip(ratio_slope(p, q, p0, q0), 1.0 / e, e), slope)
    return Tangent(p0, q0, slope)


def _on_line(p: Array, q: Array, e: Array, delta: Array | float) -> Array:
    """q0 minimising KL(p || e q0 + delta) + KL(q || q0) on the line p0 = e q0 + delta.

    Stationarity is (p0 - p) e / (p0 (1 - p0)) + (q0 - q) / (q0 (1 - q0)) = 0: a quadratic for delta = 0, otherwise a
    cubic whose one root between the estimate and the end of the line is found by Newton's method from the quadratic's.
    """
    beyond = p - delta
    b = e + beyond + 1.0 + e * q
    # The smaller root, without the difference of two numbers that are nearly equal for large e.
    root: Array = 2.0 * (beyond + q) / (b + np.sqrt(np.maximum(b * b - 8.0 * e * (beyond + q), 0.0)))
    if np.ndim(delta) == 0 and delta == 0:
        return root
    low = np.minimum(q, (1.0 - delta) / e)
    high = np.clip(beyond / e, low, (1.0 - delta) / e)

    def pull(q0: Array) -> tuple[Array, Array]:
        """The condition times both variances, a polynomial without poles, and its derivative."""
        p0 = e * q0 + delta
        of_p, of_q, more_p, more_q = p0 * (1.0 - p0), q0 * (1.0 - q0), p0 - p, q0 - q
        bend = e * (e * of_q + more_p * (1.0 - 2.0 * q0) + more_q * (1.0 - 2.0 * p0)) + of_p
        return e * more_p * of_q + more_q * of_p, bend

    return find_root(pull, np.minimum(np.maximum(root, low), high), low, high, _NEWTON)
