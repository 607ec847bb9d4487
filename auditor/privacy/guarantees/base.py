"""The base of a notion of privacy: one cap, and what follows from it."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import PrivacyCurve

Array: TypeAlias = NDArray[np.float64]

#: Probabilities are kept this far from 0 and 1 where a quotient needs it. It only moves the point at which a tangent is
#: taken, and a tangent at any point of the cap is valid, so the value cannot cost validity.
TINY = 1e-12

#: Bisection steps for the projection on a smooth cap. 30 halvings of an interval of length at most 1 put the point
#: within 1e-9 of the best one; errors along the cap cost growth to second order only.
BISECTIONS = 30
#: Halvings of an interval of levels: 36 leave a relative error of 1e-11.
_HALVINGS = 36
#: Halvings of an interval of probabilities: 60 leave nothing that a float could tell.
_FINE_HALVINGS = 60
#: Halvings for the projection on a cap that is known by its values only; 20 put the point within 1e-6 of the best one.
_COARSE = 20
#: Step of the differences that give a slope, relative to q0 (1 - q0). Rounding errors of the cap, 2^-52 relative, are
#: divided by it: the slope is right to about 1e-10 of itself.
_STEP = 1e-6
#: Probabilities at which `exact_level_of` compares an exact curve with a cap: down to events of probability 1e-12.
_RARE = np.geomspace(1e-12, 0.5, 1_200)


class Tangent(NamedTuple):
    """A point (p0, q0) of a cap and a supporting slope.

    The point is on the cap, or just above it; the line through it is nowhere below the cap.
    """

    p0: Array
    q0: Array
    slope: Array


#: Every notion that has been declared, by the names of its parameters in the text of a claim.
NOTIONS: dict[frozenset[str], type[Guarantee]] = {}


class Guarantee(ABC):
    """A notion of privacy at a claimed level.

    For neighbouring datasets with output laws P and Q, and any test g with values in [0, 1], a guarantee at level t
    says that p = E_P[g] and q = E_Q[g] satisfy ``p <= cap(q, t)``. The cap is concave and increasing in q and grows
    with t; it is one minus the trade-off function of the guarantee. Because relations between datasets are symmetric,
    a cap covers both orders of a pair, so it is symmetric: the point (p, q) is allowed if and only if (1 - q, 1 - p)
    is.

    A subclass is a frozen dataclass. It needs ``notion``, ``symbol``, ``claim_keys``, `level` and `cap`; everything
    else has a default that is computed from the cap, and may be replaced by a closed form.

    Attributes
    ----------
    notion, symbol : str
        Name of the notion, and what its level is called.
    claim_keys : tuple of str
        Names of the parameters in the text of a claim, such as ("epsilon", "delta").
    highest, unit : float
        No level above the first is looked at; the second is the size of levels where 0 is claimed.
    caveat : str
        What a reader has to know about levels found through events, if the notion says more than its cap.
    """

    notion: ClassVar[str]
    symbol: ClassVar[str]
    claim_keys: ClassVar[tuple[str, ...]] = ()
    highest: ClassVar[float] = math.inf
    unit: ClassVar[float] = 1.0
    caveat: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "claim_keys" in cls.__dict__:
            NOTIONS[frozenset(cls.claim_keys)] = cls

    @property
    @abstractmethod
    def level(self) -> float:
        """The claimed level t."""

    @abstractmethod
    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p that level ``level`` allows at ``q``; the two are broadcast."""

    @classmethod
    def from_claim(cls, values: Mapping[str, str]) -> Self:
        """Read the parameters of a claim's text.

        By default each is a number.
        """
        return cls(**{name: number_in(name, text) for name, text in values.items()})

    def parameters(self) -> dict[str, Any]:
        """The claim's parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.symbol} = {self.level:g}"

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection of points above the cap on it, with a supporting slope.

        The projection minimises KL(p || p0) + KL(q || q0) over the cap: the nearest null hypothesis.
        """
        return tangent_of(self.cap, p, q, level)

    def beyond(self, p: Array, q: Array, level: Array | float) -> NDArray[np.bool_]:
        """Whether (p, q) is above the cap of a level."""
        return np.asarray(p > self.cap(q, level))

    def level_of(self, p: Array, q: Array) -> Array:
        """Smallest level whose cap allows (p, q), 0 where p <= q."""
        return level_of(self.cap, p, q, self.highest)

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Smallest level that a pair of laws with this exact curve satisfies."""
        return self.event_level(curve)

    def event_level(self, curve: PrivacyCurve) -> float:
        """Largest level that a single event of the curve shows.

        The curve is exact; events have probability 1e-12 or more.

        For a notion that is no more than its cap it is the exact level.
        """
        q = np.concatenate([_RARE, 1.0 - _RARE[::-1]])
        return float(np.max(self.level_of(np.minimum(curve.tradeoff(q), 1.0), q)))


def tangent_of(cap: Callable[[Array, Array], Array], p: Array, q: Array, level: Array | float) -> Tangent:
    """Tangent at the projection on a cap without closed form.

    The cap is known by its values only.

    Valid because: let l and r be the slopes of the chords of the cap c from q0 - h to q0 and from q0 to q0 + h. As c is
    concave, l >= r, every chord from q0 to a point q >= q0 + h has a slope of at most r, and every one from a point
    q <= q0 - h a slope of at least l. So for any slope s between r and l the line c(q0) + s (q - q0) is above c
    outside of (q0 - h, q0 + h), and inside c exceeds it by at most (l - r) h. The point is raised by that much, and by
    what rounding can do to the slopes.
    """
    p, q, level = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float), np.asarray(level, float))
    low = np.clip(q, TINY, 1 - TINY)
    high = np.clip(1.0 - cap(1.0 - p, level), low, 1 - TINY)  # where the cap is at p, by its symmetry
    for _ in range(_COARSE):
        q0 = 0.5 * (low + high)
        p0, _, left, right = _chords(cap, q0, level)
        pull = (p0 - p) / np.maximum(p0 * (1.0 - p0), TINY)
        uphill = 0.5 * (left + right) * pull + (q0 - q) / (q0 * (1.0 - q0)) > 0
        low, high = np.where(uphill, low, q0), np.where(uphill, q0, high)
    q0 = 0.5 * (low + high)
    p0, step, left, right = _chords(cap, q0, level)
    slope = np.clip(ratio_slope(p, q, p0, q0), right, left)
    rounding = 4 * np.finfo(float).eps * p0 / step
    return Tangent(np.minimum(p0 + (left - right) * step + rounding, 1.0), q0, slope)


def _chords(cap: Callable[[Array, Array], Array], q0: Array, level: Array) -> tuple[Array, Array, Array, Array]:
    """The cap at q0, the step, and the slopes of the chords to the left and to the right."""
    step = _STEP * q0 * (1.0 - q0)
    below, p0, above = cap(q0 - step, level), cap(q0, level), cap(q0 + step, level)
    right = np.maximum((above - p0) / step, 0.0)
    return p0, step, np.maximum((p0 - below) / step, right), right


def level_of(cap: Callable[[Array, Array], Array], p: Array, q: Array, highest: float) -> Array:
    """Smallest level whose cap allows (p, q), by bisection.

    Infinite if none up to ``highest`` (at most 2^60) does.
    """
    p, q = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float))
    top = np.full(p.shape, min(highest, 2.0**60))
    allowed = p <= cap(q, top)
    low, high = np.zeros(p.shape), np.where(p <= q, 0.0, np.minimum(top, 1.0))
    while True:  # double the upper end until it allows the point
        short = (p > cap(q, high)) & (high < top)
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, np.minimum(2 * high, top), high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        inside = p <= cap(q, middle)
        low, high = np.where(inside, low, middle), np.where(inside, middle, high)
    return np.where(p <= q, 0.0, np.where(allowed, high, np.inf))


def cap_of(level_at: Callable[[Array, Array], Array], q: Array, level: Array | float) -> Array:
    """Largest p with ``level_at(p, q) <= level``, by bisection.

    A cap that is known by its inverse; rounded up.
    """
    q, level = np.broadcast_arrays(np.asarray(q, float), np.asarray(level, float))
    low, high = q.copy(), np.ones(q.shape)
    for _ in range(_FINE_HALVINGS):
        middle = 0.5 * (low + high)
        inside = level_at(middle, q) <= level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def spread(p: Array) -> Array:
    """Variance p (1 - p), kept away from 0."""
    return np.maximum(p * (1.0 - p), TINY)


def ratio_slope(p: Array, q: Array, p0: Array, q0: Array) -> Array:
    """Slope at which the two-sided bet is a likelihood ratio.

    It is a bet between (p, q) and (p0, q0).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = ((q0 - q) / spread(q0)) / ((p - p0) / spread(p0))
    return np.nan_to_num(slope, nan=1.0, posinf=np.inf)


def number(name: str, value: object, least: float = 0.0) -> float:
    """A parameter that must be a finite number of at least ``least``.

    Raises
    ------
    ValueError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value) or value < least:
        raise ValueError(f"{name} must be finite and at least {least:g}, got {value!r}")
    return float(value)


def number_in(name: str, text: str) -> float:
    """A number in the text of a claim.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text.strip()!r}") from None


def parse_claim(text: str) -> Guarantee:
    """Read the text of a claim.

    Parameters
    ----------
    text : str
        Parameters by name, such as "epsilon=1", "epsilon=1, delta=1e-6", "mu=0.5", "rho=0.1", "renyi=2:0.3,8:1.1",
        "delta=1e-6, at_epsilon=1", "tradeoff=curve.csv". A part without a name belongs to the parameter before it.

    Raises
    ------
    SpecificationError
        If it cannot be read, or a value is out of range.
    """
    from auditor.errors import SpecificationError

    expected = ", ".join(f'"{", ".join(f"{key}=..." for key in notion.claim_keys)}"' for notion in NOTIONS.values())
    values: dict[str, str] = {}
    name = ""
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals and re.fullmatch(r"\w+", key.strip()) and key.strip() not in values:
            name = key.strip()
            values[name] = value.strip()
        elif not equals and name and part.strip():
            values[name] += f",{part.strip()}"
        else:
            raise SpecificationError(f"claim {text!r}: cannot read {part.strip()!r}, expected one of {expected}")
    notion = NOTIONS.get(frozenset(values))
    if notion is None:
        raise SpecificationError(f"claim {text!r}: expected one of {expected}, got {', '.join(values) or 'nothing'}")
    try:
        return notion.from_claim(values)
    except ValueError as error:
        raise SpecificationError(f"claim {text!r}: {error}") from error
