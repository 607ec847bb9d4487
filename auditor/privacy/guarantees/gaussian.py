"""Gaussian differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees.base import Array, Guarantee, level_number
from auditor.privacy.guarantees.supporting_lines import TINY, Tangent, find_root

#: Steps of Newton's method for the projection, whose stationarity condition is nearly linear in z = Phi^-1(q0) but for
#: rare events: the divergence is then larger than the least one by 2e-5 of it in 999 of 1,000 cases, which is rounding.
#: Any point of the cap is valid.
_NEWTON = 6


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
        object.__setattr__(self, "mu", level_number("mu", self.mu))

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
        """Projection by Newton's method in z = Phi^-1(q0).

        The slope is phi(z + mu) / phi(z) = exp(-z mu - mu^2 / 2).

        See `Guarantee.tangent`.
        """
        p, q, level = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float), np.asarray(level, float))
        low = special.ndtri(np.clip(q, TINY, 1 - TINY))
        high = np.maximum(special.ndtri(np.clip(p, TINY, 1 - TINY)) - level, low)
        # The other term is 0 at each end.
        at_low, at_high = _divergence_slope(low + level, p)[0], _divergence_slope(high, q)[0]
        rise = at_high - at_low
        z = np.asarray(0.5 * (low + high))  # a number is no array that can be written to
        z = np.divide(low * at_high - high * at_low, rise, out=z, where=rise > 0)

        def slope(z: Array) -> tuple[Array, Array]:
            of_p, bend_p = _divergence_slope(z + level, p)
            of_q, bend_q = _divergence_slope(z, q)
            return of_p + of_q, bend_p + bend_q

        z = find_root(slope, z, low, high, _NEWTON)
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


def _divergence_slope(z: Array, p: Array) -> tuple[Array, Array]:
    """Derivatives of KL(p || Phi(z)): phi(z) (Phi(z) - p) / (Phi(z) Phi(-z)), and that of this."""
    above, below, density = special.ndtr(z), special.ndtr(-z), np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    with np.errstate(divide="ignore", invalid="ignore"):  # x / 0 far out, where `find_root` halves its interval
        ratio = density / (above * below)
    slope = ratio * (above - p)
    return slope, density * ratio - slope * (z + ratio * (below - above))
