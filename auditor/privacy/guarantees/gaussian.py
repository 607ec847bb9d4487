"""Gaussian differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees.base import Array, Guarantee, number
from auditor.privacy.guarantees.supporting_lines import TINY, Tangent

#: Steps for the projection, whose stationarity condition is nearly linear in z = Phi^-1(q0) but for rare events: 18
#: leave a relative error of the divergence below 1e-6.
_FALSE_POSITIONS = 18


@dataclass(frozen=True)
class GaussianDP(Guarantee):
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
    claim_keys: ClassVar[tuple[str, ...]] = ("mu",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", number("mu", self.mu))

    @property
    def level(self) -> float:
        """Claimed mu."""
        return self.mu

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p allowed at q.

        See `Guarantee.cap`.
        """
        capped: Array = special.ndtr(special.ndtri(q) + level)
        return capped

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection by the Illinois method in z = Phi^-1(q0).

        The slope is phi(z + mu) / phi(z) = exp(-z mu - mu^2 / 2).

        See `Guarantee.tangent`.
        """
        p, q, level = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float), np.asarray(level, float))
        low = special.ndtri(np.clip(q, TINY, 1 - TINY))
        high = np.maximum(special.ndtri(np.clip(p, TINY, 1 - TINY)) - level, low)
        at_low, at_high = (
            _divergence_slope(low + level, p),
            _divergence_slope(high, q),
        )  # the other term is 0 at each end
        for step in range(_FALSE_POSITIONS):
            z = np.asarray(0.5 * (low + high))  # a number is no array that can be written to
            if step % 2:  # every other step halves the interval, where false positions crawl
                rise = at_high - at_low
                z = np.divide(low * at_high - high * at_low, rise, out=z, where=rise > 0)
            value = _divergence_slope(z + level, p) + _divergence_slope(z, q)
            up = value > 0
            # Illinois: the value at the end that stays is halved, so that both ends move.
            at_low, at_high = np.where(up, 0.5 * at_low, value), np.where(up, value, 0.5 * at_high)
            low, high = np.where(up, low, z), np.where(up, z, high)
        z = np.clip(z, low, high)
        return Tangent(special.ndtr(z + level), special.ndtr(z), np.exp(-z * level - 0.5 * level * level))

    def level_of(self, p: Array, q: Array) -> Array:
        """Phi^-1(p) - Phi^-1(q), at least 0.

        See `Guarantee.level_of`.
        """
        with np.errstate(invalid="ignore"):  # inf - inf: both impossible or both certain, no difference
            larger: Array = np.fmax(special.ndtri(p) - special.ndtri(q), 0.0)
        return larger

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Smallest mu."""
        return curve.mu()


def _divergence_slope(z: Array, p: Array) -> Array:
    """d/dz KL(p || Phi(z)) = phi(z) (Phi(z) - p) / (Phi(z) Phi(-z))."""
    above, below = special.ndtr(z), special.ndtr(-z)
    slope: Array = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * (above - p) / (above * below)
    return slope
