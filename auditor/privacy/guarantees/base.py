"""The base of a notion of privacy: one cap, and what follows from it."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.privacy.exact import LossCurve, PrivacyCurve
from auditor.privacy.guarantees.supporting_lines import (
    LineTable,
    Tangent,
    bound_by_one,
    lines_above,
    make_table,
    project,
)

Array: TypeAlias = NDArray[np.float64]

_EPSILON = float(np.finfo(float).eps)
#: Logits that floats cannot tell from the probabilities 1 and 0.
_CERTAIN, _IMPOSSIBLE = 40.0, 700.0
#: Steps of a search for a root: some 15 leave nothing that a float could tell, and no more than this are tried.
_SEARCHES = 100
#: Levels other than 0 that are audited: squares of the larger ones are floats, and so are the quotients of a grid's
#: ends by the smaller ones, to nine digits after the point. The rest is arbitrary.
_LEAST, _MOST = 1e-200, 1e100
#: Probabilities at which `exact_level_of` compares an exact curve with a cap: down to events of probability 1e-12.
RARE = np.geomspace(1e-12, 0.5, 1_200)
#: Complements of smaller probability are not compared: three digits of it are known.
_ROUGH = 1e-13


#: Every notion that has been declared, by the names of its parameters in the text of a claim.
NOTIONS: dict[frozenset[str], type[Guarantee]] = {}


class Guarantee(ABC):
    """A notion of privacy at a claimed level.

    For neighbouring datasets with output distributions P and Q, and any test g with values in [0, 1], a guarantee at
    level t says that p = E_P[g] and q = E_Q[g] satisfy ``p <= cap(q, t)``. The cap is concave and increasing in q and
    grows with t; it is one minus the trade-off function of the guarantee. Because relations between datasets are
    symmetric, a cap covers both orders of a pair, so it is symmetric: the point (p, q) is allowed if and only if (1 -
    q, 1 - p) is.

    A subclass is a frozen dataclass whose fields can be hashed. It needs ``notion``, ``symbol``, ``claim_keys``,
    `level`, and `cap` or its inverse in the level, `level_of`; everything else has a default that is computed from
    these, and may be replaced by a closed form.

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
        if cls.cap is Guarantee.cap and cls.level_of is Guarantee.level_of:
            raise TypeError(f"{cls.__name__} must define cap or level_of")
        if "claim_keys" in cls.__dict__:
            NOTIONS[frozenset(cls.claim_keys)] = cls

    @property
    @abstractmethod
    def level(self) -> float:
        """The claimed level t."""

    def cap(self, q: Array, level: Array | float) -> Array:
        """Largest p that a level allows at q.

        Found from `level_of` unless it is replaced.

        Parameters
        ----------
        q : ndarray
            Probability under one dataset.
        level : ndarray or float
            Level; the two are broadcast.

        Returns
        -------
        ndarray
            Probability under the other dataset.
        """
        return cap_of(self.level_of, q, level)

    @classmethod
    def from_claim(cls, values: Mapping[str, str]) -> Self:
        """Read the parameters of a claim's text.

        By default each is a number.
        """
        return cls(**{name: number_in(name, text) for name, text in values.items()})

    @property
    def vacuous_above(self) -> float:
        """Level above which no draws reject, and floats overflow."""
        return math.inf

    def parameters(self) -> dict[str, Any]:
        """The claim's parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"{self.symbol} = {self.level:g}"

    def lines(self, levels: Array) -> Tangent:
        """Lines that are nowhere below the caps of levels.

        They touch the caps, or nearly so. `tangent` projects on them, for which they are tabulated.

        Parameters
        ----------
        levels : ndarray of shape (n_levels,)
            Levels.

        Returns
        -------
        Tangent of arrays of shape (n_levels, n_lines)
            By increasing q0, up to the antidiagonal p0 = 1 - q0 or beyond; ``n_lines`` is a multiple of 16.
        """
        return lines_above(self.cap, levels)

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        """Projection of points above the cap on it, with a supporting slope.

        The projection minimises KL(p || p0) + KL(q || q0) over the cap: the nearest null hypothesis. By default it is
        found in a table of `lines` of each level.

        Parameters
        ----------
        p, q : ndarray
            Probabilities under the two datasets.
        level : ndarray or float
            Level; the three are broadcast.

        Returns
        -------
        Tangent
            Points and slopes, of the shape of the three.
        """
        level = np.asarray(level, float)
        vacuous = level > self.vacuous_above
        if vacuous.any():
            return bound_by_one(vacuous, self.tangent(p, q, np.minimum(level, self.vacuous_above)))
        if level.size == 1:
            row, table = np.zeros(level.shape, np.intp), _table(self, (level.item(),))
        else:
            distinct, row = np.unique(level, return_inverse=True)
            row, table = row.reshape(level.shape), _table(self, tuple(distinct.tolist()))
        p, q, row = np.broadcast_arrays(np.asarray(p, float), np.asarray(q, float), row)
        return project(table, p, q, row)

    def beyond(self, p: Array, q: Array, level: Array | float) -> NDArray[np.bool_]:
        """Whether (p, q) is above the cap of a level.

        By the inverse, if that is given and the projection is not: then the cap may be the slower of the two.

        Parameters
        ----------
        p, q : ndarray
            Probabilities under the two datasets.
        level : ndarray or float
            Level; the three are broadcast.

        Returns
        -------
        ndarray of bool
        """
        if type(self).tangent is Guarantee.tangent and type(self).level_of is not Guarantee.level_of:
            return np.asarray(self.level_of(p, q) > level)
        return np.asarray(p > self.cap(q, level))

    def level_of(self, p: Array, q: Array) -> Array:
        """Smallest level whose cap allows (p, q), 0 where p <= q.

        Found from `cap` unless it is replaced.

        Parameters
        ----------
        p, q : ndarray
            Probabilities under the two datasets, broadcast.

        Returns
        -------
        ndarray
            Levels; infinite where none allows the point.
        """
        return level_of(self.cap, p, q, self.highest)

    def exact_level(self, curve: PrivacyCurve) -> float:
        """Smallest level that a pair of distributions with this exact curve satisfies."""
        return self.event_level(curve)

    def event_level(self, curve: PrivacyCurve) -> float:
        """Largest level that a single event of the curve shows.

        The curve is exact; events have probability 1e-12 or more.

        For a notion that is no more than its cap it is the exact level. Events whose complements are so rare that 1 - p
        has hardly a digit are left out, unless there are no others: their mirror images show the same.
        """
        q = np.concatenate([RARE, 1.0 - RARE[::-1]])
        if isinstance(curve, LossCurve):  # a cap of straight pieces shows most where it bends
            q = np.concatenate([q, curve.corners[(curve.corners >= RARE[0]) & (curve.corners <= 1.0 - RARE[0])]])
        p = np.minimum(curve.tradeoff(q), 1.0)
        known = (p + q <= 1.0) | (1.0 - p >= _ROUGH)
        if known.any():
            p, q = p[known], q[known]
        return float(np.max(self.level_of(p, q)))


@lru_cache(maxsize=24)  # the levels of an audit's grid are evaluated in at most 16 blocks
def _table(notion: Guarantee, levels: tuple[float, ...]) -> LineTable:
    """Lines of a notion's levels; bets are made at the same levels again and again."""
    return make_table(notion.lines(np.array(levels)))


def level_of(cap: Callable[[Array, Array], Array], p: Array, q: Array, highest: float) -> Array:
    """Smallest level whose cap allows (p, q), by a search.

    Parameters
    ----------
    cap : callable
        Largest p allowed at q, of q and the level.
    p, q : ndarray
        Probabilities under the two datasets, broadcast.
    highest : float
        No level is above it.

    Returns
    -------
    ndarray
        Levels, infinite where none up to ``highest`` (at most 2^60) allows the point.
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
    found = _upper_root(lambda t: cap(q, t) - p, low, high, lambda t: 4.0 * _EPSILON * t)
    return np.where(p <= q, 0.0, np.where(allowed, found, np.inf))


def cap_of(level_at: Callable[[Array, Array], Array], q: Array, level: Array | float) -> Array:
    """Largest p with ``level_at(p, q) <= level``, rounded up.

    A cap that is known by its inverse.

    Parameters
    ----------
    level_at : callable
        Level of (p, q), growing with p from 0 at p = q.
    q : ndarray
        Probability under one dataset.
    level : ndarray or float
        Level; the two are broadcast.

    Returns
    -------
    ndarray
        Probability under the other dataset.
    """
    q, level = np.broadcast_arrays(np.asarray(q, float), np.asarray(level, float))

    def excess(logit: Array) -> Array:
        return np.asarray(level_at(special.expit(logit), q) - level)

    low, high = np.clip(special.logit(q), -_IMPOSSIBLE, _CERTAIN), np.full(q.shape, _CERTAIN)
    # The probability 1 - p also has a rounding error, which is relative to p.
    found = _upper_root(excess, low, high, lambda x: _EPSILON * (4.0 + np.abs(x) + np.exp(x)))
    return np.where(excess(high) <= 0, 1.0, special.expit(found))


def _upper_root(
    rising: Callable[[Array], Array], low: Array, high: Array, resolution: Callable[[Array], Array]
) -> Array:
    """Upper end of an interval around the root of a rising function, at which it is at least 0.

    By the method of Chandrupatla (1997, Advances in Engineering Software 28): it interpolates where that is safe and
    bisects elsewhere, until all intervals are as short as the resolution at their ends.
    """
    # The newest point a, the end b on the other side of the root, and the point c before.
    a, b = high, low
    at_a, at_b, part = rising(a), rising(b), np.asarray(0.5)
    with np.errstate(all="ignore"):  # infinite values end in a bisection
        for _ in range(_SEARCHES):
            x = a + part * (b - a)
            at_x = rising(x)
            same = (at_x >= 0) == (at_a >= 0)
            c, at_c = np.where(same, a, b), np.where(same, at_a, at_b)
            b, at_b = np.where(same, b, a), np.where(same, at_b, at_a)
            a, at_a = x, at_x
            least = resolution(x) / np.abs(b - a)
            if not np.any((least <= 0.5) & (at_x != 0)):
                break
            run, rise = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
            part = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            part += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
            part = np.where((rise * rise < run) & ((1.0 - rise) ** 2 < 1.0 - run), part, 0.5)
            least = np.minimum(least, 0.5)
            part = np.clip(part, least, 1.0 - least)
    return np.where(at_a >= 0, a, b)


def number(name: str, value: object, least: float = 0.0) -> float:
    """A parameter that must be a finite number of at least ``least``.

    Parameters
    ----------
    name : str
        What it is, for the message.
    value : object
        The number.
    least : float
        Smallest value that is accepted.

    Returns
    -------
    float

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


def level_number(name: str, value: object, most: float = _MOST) -> float:
    """A level: 0, or a number that grids of levels can hold.

    Parameters
    ----------
    name : str
        What it is, for the message.
    value : object
        The number.
    most : float
        Largest value that is accepted.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If it is not.
    """
    level = number(name, value)
    if level and not _LEAST <= level <= most:
        raise ValueError(f"{name} must be 0 or between {_LEAST:g} and {most:g}, got {value!r}")
    return level


def number_in(name: str, text: str) -> float:
    """A number in the text of a claim.

    Parameters
    ----------
    name : str
        What it is, for the message.
    text : str
        The text.

    Returns
    -------
    float

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
