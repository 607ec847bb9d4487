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
from auditor.privacy.guarantees.base import TINY, Array, Guarantee, Tangent, cap_of, number, number_in, ratio_slope

Indices: TypeAlias = NDArray[np.intp]

#: Halvings along the boundary for the projection; errors along it cost growth to second order only, and 14 leave less
#: than 1e-5 of it.
_STEPS = 14
#: Newton steps for the point of the boundary with a given ratio, from the point of a smaller one, and at the end. They
#: converge quadratically and from the valid side, so that stopping early costs growth and not validity.
_NEWTON, _LAST_NEWTON = 3, 7
#: Orders that are tried anew at the projected point; the order that binds there is not always the one at the estimate.
_ROUNDS = 3
#: Halvings for the kink; they leave an error of 1e-13.
_HALVINGS = 42
#: Orders at which a zCDP claim is tested. The claim holds at all orders above 1, so fewer of them only make the cap
#: larger; with neighbours 25 % apart in a - 1 the largest D_a / a is missed by less than 1.5 %.
_ORDERS = 1.0 + np.geomspace(0.02, 500.0, 46)
#: Orders at which D_a / a of an exact curve is maximised, and the part of it that their spacing may miss.
_FINE_ORDERS = 1.0 + np.geomspace(1e-3, 1e4, 400)


class _Renyi(Guarantee):
    """Bounds on Renyi divergences: order a is bounded by level times ``slopes``."""

    caveat: ClassVar[str] = (
        "The claim bounds the whole law; what is tested is the cap that it puts on one event. A single event shows "
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

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p within the divergence bounds of all orders.

        D_a(p || q) and D_a(q || p) are within them; rounded up.
        """
        return cap_of(self.level_of, q, level)

    def level_of(self, p: Array, q: Array) -> Array:
        """Largest ratio of a divergence to its bound.

        Bounds are those at level 1; 0 where p <= q.
        """
        p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
        return np.where(p > q, np.maximum(self._ratios(p, q).max(axis=0), 0.0), 0.0)

    def beyond(self, p: Array, q: Array, level: Array | float) -> NDArray[np.bool_]:
        """Whether (p, q) is above the cap of a level."""
        return np.asarray(self.level_of(p, q) > level)

    def _ratios(self, p: Array, q: Array) -> Array:
        """D_a / slope of every order, first of (p, q), then of (q, p); shape (2 n_orders, ...)."""
        shape = (-1, *(1,) * p.ndim)
        orders, slopes = self.orders.reshape(shape), self.slopes.reshape(shape)
        return np.concatenate([_divergence(orders, p, q) / slopes, _divergence(orders, q, p) / slopes])

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection on the binding order's boundary, with the gradient.

        Valid because: F(p, q) = p^a q^(1-a) + (1-p)^a (1-q)^(1-a) is jointly convex (each term is the perspective of a
        convex power), and the claim says F <= C with C = exp((a - 1) r(a)). So the gradient at any point (p0, q0) with
        F(p0, q0) >= C bounds a half-plane that holds all allowed points: a line that is nowhere below the cap, of
        slope -(dF/dq)/(dF/dp). This holds for each order and each order of the pair alone, so which one is taken, and
        at which point, is a matter of growth and not of validity; `_tail_ratio` gives points on the outer side. Where
        the bounds of the two orders of the pair meet, at p0 = 1 - q0, two such lines of slopes E and 1/E go through
        one point, and every line between them is above the smaller of the two: there the slope that makes the bet a
        likelihood ratio is taken, if it is one of these.
        """
        # At level 0 the gradient is 0/0; the cap of a slightly higher level is above it.
        level = np.maximum(np.asarray(level, float), TINY)
        p, q, level = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float), level)
        estimate = np.clip(p, TINY, 1 - TINY), np.clip(q, TINY, 1 - TINY)
        above = estimate[0] > estimate[1]
        p1, q1 = np.where(above, estimate[0], 0.5 + TINY), np.where(above, estimate[1], 0.5 - TINY)
        found: tuple[Array, ...] = self._project(p1, q1, level, self._ratios(p1, q1).argmax(axis=0))
        # The nearest point of a larger region is at most as far: of several orders the farthest projection is best.
        for _ in range(_ROUNDS - 1):
            again = self._project(p1, q1, level, self._ratios(found[0], found[1]).argmax(axis=0))
            farther = _distance(p1, q1, again) > _distance(p1, q1, found)
            found = tuple(np.where(farther, new, old) for new, old in zip(again, found, strict=True))
        kink, steep = self._kink(level)
        slope = ratio_slope(p1, q1, kink, 1.0 - kink)
        at_kink = (slope <= steep) & (slope >= 1.0 / steep)
        found = tuple(np.where(at_kink, new, old) for new, old in zip((kink, 1.0 - kink, slope), found, strict=True))
        # Where nothing is above the diagonal there is nothing to bet on: the corner (1, 1) gives no weight.
        return Tangent(*(np.where(above, value, 1.0) for value in found))

    def _kink(self, level: Array) -> tuple[Array, Array]:
        """The p0 at which (p0, 1 - p0) is on or just beyond the cap of each level, and the steeper slope there."""
        distinct, inverse = np.unique(level, return_inverse=True)
        p0, slope = _kinks(self, tuple(distinct.tolist()))
        return p0[inverse].reshape(level.shape), slope[inverse].reshape(level.shape)

    def _project(self, p: Array, q: Array, level: Array, binding: Indices) -> tuple[Array, Array, Array]:
        """Projection on the boundary of one order for each point."""
        swapped = binding >= len(self.orders)
        order = self.orders[binding % len(self.orders)]
        bound = level * self.slopes[binding % len(self.orders)]
        # D_a(q || p) is the divergence of the mirrored point (1 - q, 1 - p).
        x, y = np.where(swapped, 1.0 - q, p), np.where(swapped, 1.0 - p, q)
        low = bound + TINY
        high = np.maximum(np.log(x / y), low)
        v = np.zeros_like(x)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            u = np.exp(middle)
            at = _tail_ratio(u, middle, order, bound, v, _NEWTON)
            x0, y0, slope = _point(u, at, order)
            # d/dy of KL(x || x0) + KL(y || y0) along the boundary; y0 falls where the ratio x0 / y0 grows.
            pull = slope * (x0 - x) / (x0 * (1 - x0) + TINY) + (y0 - y) / (y0 * (1 - y0) + TINY)
            up = pull > 0
            low, high, v = np.where(up, middle, low), np.where(up, high, middle), np.where(up, at, v)
        middle = 0.5 * (low + high)
        u = np.exp(middle)
        x0, y0, slope = _point(u, _tail_ratio(u, middle, order, bound, v, _LAST_NEWTON), order)
        return (
            np.where(swapped, 1.0 - y0, x0),
            np.where(swapped, 1.0 - x0, y0),
            np.where(swapped, 1.0 / slope, slope),
        )


def _distance(p: Array, q: Array, at: tuple[Array, ...]) -> Array:
    """KL(p || p0) + KL(q || q0)."""
    pairs = ((p, at[0]), (1 - p, 1 - at[0]), (q, at[1]), (1 - q, 1 - at[1]))
    return np.asarray(sum(special.rel_entr(a, b) for a, b in pairs))


def _divergence(order: Array, p: Array, q: Array) -> Array:
    """Renyi divergence of two coins; infinite where q rules out what p allows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, order * np.log(p) - (order - 1) * np.log(q), -np.inf)
        tails = np.where(p < 1, order * np.log1p(-p) - (order - 1) * np.log1p(-q), -np.inf)
        return np.asarray(np.logaddexp(heads, tails) / (order - 1))


def _tail_ratio(u: Array, log_u: Array, a: Array, bound: Array, v: Array, steps: int) -> Array:
    """Ratio v = (1 - p0) / (1 - q0) at which the point with u = p0 / q0 > 1 is on the boundary, or just beyond it.

    With q0 = (1 - v) / (u - v), F(p0, q0) >= C says phi(v) = (1 - v) u^a + (u - 1) v^a - C (u - v) >= 0. phi is convex,
    phi(0) >= 0 if ln u is at least the bound, and phi(1) < 0. So Newton's method from the left of the root rises to it
    and stays where phi >= 0, on the outer side, whenever it is stopped. The root grows with u, because v is the slope
    of the chord from the point to the corner (1, 1) and the boundary is concave: the ``v`` of a smaller u is a start.
    From the right of the root, where phi falls, one step of Newton's leads to its left: so the first step is made from
    a guess, D_a = a / 2 (u - 1)(1 - v) for small divergences. All is divided by u^a.
    """
    c = np.exp((a - 1) * bound - a * log_u)
    rise = (u - 1.0) / u
    guess = np.maximum(1.0 - 2.0 * bound / (a * (u - 1.0)), v)
    power = rise * (guess / u) ** (a - 1)
    fall = 1.0 - a * power - c
    phi = 1.0 - guess + power * guess - c * (u - guess)
    v = np.where(fall > 0, np.maximum(guess + phi / np.maximum(fall, TINY), v), v)
    for _ in range(steps):
        power = rise * (v / u) ** (a - 1)
        phi = 1.0 - v + power * v - c * (u - v)
        v = v + np.maximum(phi, 0.0) / np.maximum(1.0 - a * power - c, TINY)
    return np.asarray(np.minimum(v, 1.0 - TINY) * (1.0 - TINY))  # rounding must not carry it over the root


def _point(u: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """The point with ratios u and v, and -(dF/dq)/(dF/dp) there."""
    power = (v / u) ** (a - 1)
    q0 = (1.0 - v) / (u - v)
    return u * q0, q0, (a - 1) / a * u * (1.0 - power * v / u) / (1.0 - power)


@lru_cache(maxsize=64)
def _kinks(notion: _Renyi, levels: tuple[float, ...]) -> tuple[Array, Array]:
    """See `_Renyi._kink`; bets are made at the same levels again and again."""
    level = np.array(levels)
    low, high = np.full(len(level), 0.5), np.full(len(level), 1 - TINY)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        inside = notion.level_of(middle, 1.0 - middle) <= level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    order = notion.orders[notion._ratios(high, 1.0 - high).argmax(axis=0) % len(notion.orders)]
    ratio = high / (1.0 - high)
    power = ratio ** (-2.0 * (order - 1))
    return high, np.maximum((order - 1) / order * (ratio - power / ratio) / (1.0 - power), 1.0)


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
        object.__setattr__(self, "rho", number("rho", self.rho))

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

        It misses the supremum by less than 1e-4 of it.
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
        checked = {number("an order", a, 1.0): number("a bound", r) for a, r in sorted(self.bounds.items())}
        if min(checked) <= 1 or min(checked.values()) <= 0:
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
