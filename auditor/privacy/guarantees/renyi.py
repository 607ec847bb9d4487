"""Renyi differential privacy and zero-concentrated differential privacy.

Both bound Renyi divergences: D_a(P || Q) <= r(a) for orders a > 1, in both orders of the pair. By the data-processing
inequality the same bounds hold for the outcome of any test, a coin with probability p under P and q under Q:

    D_a(p || q) = ln(p^a q^(1-a) + (1-p)^a (1-q)^(1-a)) / (a - 1) <= r(a).

That is the cap. It is implied by the claim and not equivalent to it: a single event shows only a part of the level.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees.base import Array, Guarantee, level_number, number, number_in
from auditor.privacy.guarantees.supporting_lines import TINY, VACUOUS, Tangent, logits

Indices: TypeAlias = NDArray[np.intp]

#: Points of the boundary of a level at which the gradient is taken: their lines touch the cap, so that half as many as
#: of lines from values of a cap are as near to it.
_LINES = 128
#: Bounds above it are refused: the least level that lines are computed for, `TINY`, would be beyond floats.
_MOST = 1e10
#: Means of logit p and logit q of these points; 0 is the kink, p = 1 - q.
_MEANS = logits(_LINES)
#: Differences of logit p and logit q at which levels are tabulated, for a first estimate of the boundary.
_GAPS = np.geomspace(1e-5, 1_200.0, 64)
#: Orders that are tried there: the orders that bind at neighbouring gaps are at most this many apart.
_TRIED = 4
#: Rounds of choosing the order, and Newton steps in each, which begin within 2 % and converge quadratically.
_ROUNDS, _NEWTON = 2, 2
#: Rounding that lines allow for, 64 units in the last place: what logarithms at q = 1e-9 are off by.
_ROUNDING = 64 * float(np.finfo(float).eps)
#: Orders at which a zCDP claim is tested. The claim holds at all orders above 1, so fewer of them only make the cap
#: larger; with neighbours 25 % apart in a - 1 the largest D_a / a is missed by less than 1.5 %.
_ORDERS = 1.0 + np.geomspace(0.02, 500.0, 46)
#: Orders at which D_a / a of an exact curve is maximised, and the part of it that their spacing may miss.
_FINE_ORDERS = 1.0 + np.geomspace(1e-3, 1e4, 400)


class _Renyi(Guarantee):
    """Bounds on Renyi divergences: order a is bounded by level times ``slopes``."""

    caveat: ClassVar[str] = (
        "The claim bounds the whole distribution; what is tested is the cap that it puts on one event. A single "
        "event shows "
        "about 70 % of the true level of Gaussian noise at moderate probabilities, 84 % at 0.001 and 90 % at 0.000001, "
        "so a pass says less here than for other notions."
    )

    @property
    @abstractmethod
    def orders(self) -> Array:
        """Orders a > 1, shape (n_orders,)."""

    @property
    @abstractmethod
    def slopes(self) -> Array:
        """Bound on D_a at level 1, shape (n_orders,)."""

    def level_of(self, p: Array, q: Array) -> Array:
        """Largest ratio of a divergence to its bound at level 1.

        It is 0 where p <= q. D_a(p || q) and D_a(q || p) are both bounded. The first is the larger one if p + q <= 1,
        and else the second, which is the first of the mirrored point (1 - q, 1 - p).

        Parameters
        ----------
        p, q : ndarray
            Probabilities under the two datasets, broadcast.

        Returns
        -------
        ndarray

        Notes
        -----
        Valid because: a divergence of a convex f is the integral over c >= 1 of f''(c) E_c(P || Q) and of
        c^-3 f''(1/c) E_c(Q || P), where E_c of two coins with p > q is max(0, p - c q) in one order and
        max(0, 1 - q - c (1 - p)) in the other (Sason and Verdu 2016). For p + q <= 1 the first is the larger at every
        c; and for f = x^a with a > 1/2 its weight is the larger, as c^(a - 2) >= c^(-a - 1).
        """
        p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
        mirrored = p + q > 1.0
        x, y = np.where(mirrored, 1.0 - q, p), np.where(mirrored, 1.0 - p, q)
        shape = (-1, *(1,) * p.ndim)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # p < q is no level at all
            u, v = np.log(x / y), np.log1p(-x) - np.log1p(-y)
            levels = _divergence(self.orders.reshape(shape), x, u, v) / self.slopes.reshape(shape)
            return np.where(p > q, np.maximum(levels.max(axis=0), 0.0), 0.0)

    def event_level(self, curve: PrivacyCurve) -> float:
        """Largest level that a single event shows, at most the exact one.

        See `Guarantee.event_level`.
        """
        return min(super().event_level(curve), self.exact_level(curve))

    @property
    def vacuous_above(self) -> float:
        """Level at which no order's bound is below a loss of 300."""
        return VACUOUS / float(np.min(self.slopes))

    def lines(self, levels: Array) -> Tangent:
        """Lines along the gradient of the binding order.

        Parameters
        ----------
        levels : ndarray of shape (n_levels,)
            Levels.

        Returns
        -------
        Tangent of arrays of shape (n_levels, `_LINES`)

        Notes
        -----
        Valid because: F(p, q) = p^a q^(1-a) + (1-p)^a (1-q)^(1-a) is jointly convex (each term is the perspective of a
        convex power), and the claim is F <= C with C = exp((a - 1) r(a)). So at any point (p0, q0), with the
        derivatives F_p > 0 and F_q there, all that is allowed has F(p0, q0) + F_p (p - p0) + F_q (q - q0) <= C: it is
        below the line of slope -F_q / F_p through (p0 - (F(p0, q0) - C) / F_p, q0). This holds for each order alone, so
        which one is taken and at which point is a matter of growth and not of validity. All is divided by
        (p0 / q0)^(a-1). Rounding moves the fraction by some units in the last place, and the slope by some over
        ln(p0 / q0).
        """
        level = np.maximum(levels, TINY)[:, None]
        known, binding = _map(tuple(self.orders.tolist()), tuple(self.slopes.tolist()))
        wanted, row = np.log(level), np.arange(_LINES)
        k = np.clip((known < wanted[:, :, None]).sum(axis=-1), 1, len(_GAPS) - 1)
        part = np.clip((wanted - known[row, k - 1]) / (known[row, k] - known[row, k - 1]), 0.0, 1.0)
        gap = np.exp((1.0 - part) * np.log(_GAPS[k - 1]) + part * np.log(_GAPS[k]))
        # The order that binds is between those of the two neighbours in the map.
        share = np.linspace(0.0, 1.0, _TRIED)[:, None, None]
        tried = np.rint((1.0 - share) * binding[row, k - 1] + share * binding[row, k]).astype(np.intp)
        for _ in range(_ROUNDS):
            p, _, u, v = _coins(gap)
            best = (_divergence(self.orders[tried], p, u, v) / self.slopes[tried]).argmax(axis=0)
            order = np.take_along_axis(tried, best[None], axis=0)[0]
            a, bound = self.orders[order], level * self.slopes[order]
            for _ in range(_NEWTON):
                p, q, u, v = _coins(gap)
                rest, slope = _gradient(a, u, v)
                rise = 0.5 * a / (a - 1.0) * rest * (p * (1.0 - p) + slope * q * (1.0 - q)) / (1.0 - (1.0 - p) * rest)
                gap = np.maximum(gap - (_divergence(a, p, u, v) - bound) / rise, 0.5 * gap)
        p, q, u, v = _coins(gap)
        rest, slope = _gradient(a, u, v)
        excess = -np.expm1((a - 1.0) * (bound - u)) - (1.0 - p) * rest
        rounding = _ROUNDING * (1.0 + 1.0 / np.minimum(u, 1.0))
        return Tangent(p - excess / (a * rest) + rounding, q, slope)


def _divergence(a: Array, p: Array, u: Array, v: Array) -> Array:
    """Renyi divergence of order a of two coins, u = ln(p / q) > 0 > v = ln((1 - p) / (1 - q)); infinite for q = 0."""
    return np.asarray(u + np.log1p((1.0 - p) * np.expm1((a - 1.0) * (v - u))) / (a - 1.0))


def _coins(gap: Array) -> tuple[Array, Array, Array, Array]:
    """p, q, ln(p / q) and ln((1 - p) / (1 - q)) of the logits `_MEANS` + gap / 2 and `_MEANS` - gap / 2."""
    high, low = _MEANS + 0.5 * gap, _MEANS - 0.5 * gap
    u, v = special.log_expit(high) - special.log_expit(low), special.log_expit(-high) - special.log_expit(-low)
    return special.expit(high), special.expit(low), u, v


def _gradient(a: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """F_p / (a e^((a-1) u)) and -F_q / F_p of the F of `_Renyi.lines`."""
    rest = -np.expm1((a - 1.0) * (v - u))
    return rest, (a - 1.0) / a * (np.exp(u) - np.exp(v) + np.exp(v) * rest) / rest


@lru_cache(maxsize=16)
def _map(orders: tuple[float, ...], slopes: tuple[float, ...]) -> tuple[Array, Indices]:
    """Logarithm of the level and index of the binding order, by `_MEANS` and `_GAPS`."""
    p, _, u, v = (value.T for value in _coins(_GAPS[:, None]))
    a, r = (np.array(values)[:, None, None] for values in (orders, slopes))
    levels = _divergence(a, p, u, v) / r
    return np.log(levels.max(axis=0)), levels.argmax(axis=0)


@dataclass(frozen=True)
class ZCDP(_Renyi):
    """rho-zero-concentrated differential privacy; the level is rho (Bun and Steinke 2016).

    Parameters
    ----------
    rho : float
        At least 0: D_a(P || Q) <= a rho for all orders a > 1, in both orders of the pair.
    """

    rho: float

    notion: ClassVar[str] = "zCDP"
    symbol: ClassVar[str] = "ρ"
    claim_keys: ClassVar[tuple[str, ...]] = ("rho",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", level_number("rho", self.rho))

    @property
    def level(self) -> float:
        """Claimed rho."""
        return self.rho

    @property
    def orders(self) -> Array:
        """Orders that are tested."""
        return _ORDERS

    @property
    def slopes(self) -> Array:
        """The bound on D_a is a rho."""
        return _ORDERS

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Largest D_a / a over a grid of orders.

        It misses the supremum by less than 1e-3 of it: the first order is 1.001, and D_a may be largest in the limit 1.
        """
        return max(curve.renyi(float(a)) / float(a) for a in _FINE_ORDERS)


@dataclass(frozen=True)
class RenyiDP(_Renyi):
    """Renyi differential privacy at several orders.

    The level is a factor on the claimed bounds, 1 is claimed.

    Parameters
    ----------
    bounds : mapping of float to float
        Bound on the Renyi divergence of each order; orders above 1, bounds above 0 (Mironov 2017).
    """

    bounds: Mapping[float, float]

    notion: ClassVar[str] = "Renyi DP"
    symbol: ClassVar[str] = "t"
    claim_keys: ClassVar[tuple[str, ...]] = ("renyi",)
    level: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.bounds, Mapping) or not self.bounds:
            raise ValueError(f"bounds must map orders to bounds, as in {{2: 0.3, 8: 1.1}}, got {self.bounds!r}")
        low = any(isinstance(value, int | float) and value <= 1 for value in self.bounds)
        bounds = {} if low else dict(sorted(self.bounds.items()))
        checked = {number("an order", a): level_number("a bound", r, _MOST) for a, r in bounds.items()}
        if low or min(checked.values()) <= 0:
            raise ValueError(f"orders must be above 1 and bounds above 0, got {self.bounds!r}")
        object.__setattr__(self, "bounds", checked)

    def __hash__(self) -> int:
        return hash(tuple(self.bounds.items()))

    @classmethod
    def from_claim(cls, values: Mapping[str, str]) -> RenyiDP:
        """Read "renyi=2:0.3,8:1.1"."""
        bounds: dict[float, float] = {}
        for part in values["renyi"].split(","):
            order, colon, bound = part.partition(":")
            if not colon or number_in("an order", order) in bounds:
                raise ValueError(f"expected distinct orders with their bounds, as in renyi=2:0.3,8:1.1, got {part!r}")
            bounds[number_in("an order", order)] = number_in("a bound", bound)
        return cls(bounds)

    def parameters(self) -> dict[str, float]:
        """Claimed bounds by order."""
        return {f"order {a:g}": r for a, r in self.bounds.items()}

    def __str__(self) -> str:
        return ", ".join(f"ε({a:g}) = {r:g}" for a, r in self.bounds.items())

    @property
    def orders(self) -> Array:
        """Claimed orders."""
        return np.array(list(self.bounds))

    @property
    def slopes(self) -> Array:
        """Claimed bounds."""
        return np.array(list(self.bounds.values()))

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Largest ratio of a Renyi divergence to its claimed bound."""
        return max(curve.renyi(a) / r for a, r in self.bounds.items())
