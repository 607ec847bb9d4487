"""Output distributions that are known in closed form; `auditor.privacy.exact` compares two of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FloatArray: TypeAlias = NDArray[np.float64]

# Probabilities that come from quadrature sum to one within about 1e-14; anything beyond this is a
# mistake of the caller and not rounding.
_SUM_TOLERANCE = 1e-9


# A discrete Gaussian is tabulated as far as the mass beyond is below 1e-40 (13.6 standard deviations): less than any
# delta that is asked for, and far enough for sums over the table to be accurate to the last digit.
_REACH = 13.6
# Tables reach at least this far, so that narrow distributions have enough of the lattice for their tails; arbitrary.
_LEAST_REACH = 40
# 2^22 lattice points are 100 MB of tables: standard deviations of up to 150,000 lattice steps.
_MOST_POINTS = 2**22


def require(condition: bool, expected: str, value: object) -> None:
    """Raise a ValueError that shows the value, unless true."""
    if not condition:
        raise ValueError(f"expected {expected}, got {value!r}")


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """A distribution on finitely many outcomes.

    Parameters
    ----------
    outcomes : tuple of hashables
        Distinct outcomes (numbers, strings, tuples of numbers).
    probabilities : ndarray of shape (len(outcomes),)
        Their probabilities, summing to one within 1e-9. A probability of exactly 0 says
        "impossible", as does leaving the outcome out.

    Raises
    ------
    ValueError
        If outcomes repeat, shapes differ, or the probabilities are no probabilities.
    """

    outcomes: tuple[Hashable, ...]
    probabilities: FloatArray

    def __post_init__(self) -> None:
        outcomes = tuple(self.outcomes)
        mass = np.array(self.probabilities, dtype=np.float64)
        require(mass.shape == (len(outcomes),), f"{len(outcomes)} probabilities", mass.shape)
        require(len(outcomes) > 0, "at least one outcome", outcomes)
        require(len(set(outcomes)) == len(outcomes), "distinct outcomes", outcomes)
        require(bool(np.all(np.isfinite(mass) & (mass >= 0))), "probabilities >= 0", mass)
        total = float(mass.sum())
        require(abs(total - 1.0) <= _SUM_TOLERANCE, "probabilities that sum to 1", total)
        mass.setflags(write=False)
        object.__setattr__(self, "outcomes", outcomes)
        object.__setattr__(self, "probabilities", mass)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteLaw):
            return NotImplemented
        return self.outcomes == other.outcomes and np.array_equal(self.probabilities, other.probabilities)

    def __hash__(self) -> int:
        return hash((self.outcomes, self.probabilities.tobytes()))


@dataclass(frozen=True)
class LaplaceLaw:
    """The continuous Laplace distribution with density ``exp(-|x - loc| / scale) / (2 scale)``."""

    loc: float
    scale: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.loc), "a finite loc", self.loc)
        require(0 < self.scale < math.inf, "a finite scale > 0", self.scale)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of a value at most `x` (any shape)."""
        z = (np.asarray(x, dtype=np.float64) - self.loc) / self.scale
        tail = 0.5 * np.exp(-np.abs(z))
        return np.asarray(np.where(z <= 0, tail, 1.0 - tail), dtype=np.float64)


@dataclass(frozen=True)
class GaussianLaw:
    """The normal distribution with mean `loc` and standard deviation `sigma`."""

    loc: float
    sigma: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.loc), "a finite loc", self.loc)
        require(0 < self.sigma < math.inf, "a finite sigma > 0", self.sigma)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of a value at most `x` (any shape)."""
        z = (np.asarray(x, dtype=np.float64) - self.loc) / self.sigma
        return np.asarray(special.ndtr(z), dtype=np.float64)


@dataclass(frozen=True)
class TwoSidedGeometricLaw:
    """Distribution of ``step * (loc + Z)`` with ``P[Z = k] = a^-|k| (a - 1) / (a + 1)``.

    Parameters
    ----------
    loc : int
        Centre, in lattice steps.
    a : float
        Base, > 1; one lattice step of shift costs ``ln a``.
    step : float, default 1.0
        What one lattice step is worth in the units of the output.
    """

    loc: int
    a: float
    step: float = 1.0

    def __post_init__(self) -> None:
        _set_integer_loc(self)
        require(1 < self.a < math.inf, "a finite base a > 1", self.a)
        require(0 < self.step < math.inf, "a finite step > 0", self.step)

    @property
    def log_a(self) -> float:
        """``ln a``, accurate also for `a` close to 1."""
        return math.log1p(self.a - 1.0)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of an output at most `x`, of any shape.

        `x` has the units of the output.
        """
        k = np.floor(np.asarray(x, dtype=np.float64) / self.step) - self.loc
        # P[Z <= -t] = a^(1-t) / (a+1) for t >= 1, and P[Z <= k] = 1 - P[Z <= -k-1].
        tail = np.exp(-self.log_a * np.where(k < 0, -k - 1, k)) / (self.a + 1.0)
        return np.asarray(np.where(k < 0, tail, 1.0 - tail), dtype=np.float64)


@dataclass(frozen=True)
class CauchyLaw:
    """The Cauchy distribution with density ``scale / (pi (scale^2 + (x - loc)^2))``."""

    loc: float
    scale: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.loc), "a finite loc", self.loc)
        require(0 < self.scale < math.inf, "a finite scale > 0", self.scale)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of a value at most `x`, of any shape.

        It has relative accuracy in the lower tail.
        """
        z = (np.asarray(x, dtype=np.float64) - self.loc) / self.scale
        # arctan2(1, -z) is the angle from the negative half-line: 1/2 + arctan(z)/pi without the difference.
        return np.asarray(np.arctan2(1.0, -z) / math.pi, dtype=np.float64)


class DiscreteGaussianTable(NamedTuple):
    """The centred discrete Gaussian on ``-reach .. reach``.

    Attributes
    ----------
    reach : int
        Last tabulated integer; the mass beyond it, on both sides, is `neglected`.
    log_pmf : ndarray of shape (2 reach + 1,)
        Log probabilities of -reach .. reach.
    lower : ndarray of shape (reach + 1,)
        ``P[Z <= k]`` for k = -reach .. 0.
    neglected : float
        Upper bound on the mass beyond the reach; never 0, as the support has no end.
    """

    reach: int
    log_pmf: FloatArray
    lower: FloatArray
    neglected: float


@lru_cache(maxsize=8)
def discrete_gaussian_table(sigma: float) -> DiscreteGaussianTable:
    """Tabulate ``P[Z = k] proportional to exp(-k^2 / (2 sigma^2))``.

    Parameters
    ----------
    sigma : float
        Scale in lattice steps; at most about 150,000.

    Raises
    ------
    ValueError
        If the table would have more than 2^22 points.
    """
    reach = max(math.ceil(_REACH * sigma), _LEAST_REACH)
    require(2 * reach < _MOST_POINTS, f"sigma of at most {_MOST_POINTS / 2 / _REACH:.0f} lattice steps", sigma)
    k = np.arange(-reach, 1, dtype=np.float64)
    log_weight = -0.5 * (k / sigma) ** 2
    weight = np.exp(log_weight)
    # The smallest terms are added first; zero is counted once.
    total = float(2.0 * weight[:-1].sum() + 1.0)
    log_half = log_weight - math.log(total)
    # Beyond the reach the weights fall faster than geometrically, with the ratio at the reach.
    ratio = math.exp(-(2 * reach + 1) / (2.0 * sigma * sigma))
    neglected = 2.0 * math.exp(-0.5 * ((reach + 1) / sigma) ** 2) / (1.0 - ratio) / total
    neglected = max(neglected, 1e-300)  # underflow
    lower = np.cumsum(weight) / total
    log_pmf = np.concatenate([log_half, log_half[-2::-1]])
    for table in (log_pmf, lower):
        table.setflags(write=False)
    return DiscreteGaussianTable(reach, log_pmf, lower, neglected)


@dataclass(frozen=True)
class DiscreteGaussianLaw:
    """Distribution of ``step * (loc + Z)`` with discrete Gaussian ``Z``.

    ``P[Z = k]`` is proportional to ``exp(-k^2 / (2 sigma^2))``.

    Parameters
    ----------
    loc : int
        Centre, in lattice steps.
    sigma : float
        Scale in lattice steps, at most 150,000; the standard deviation of Z is slightly smaller.
    step : float, default 1.0
        What one lattice step is worth in the units of the output.

    Notes
    -----
    Probabilities are read from a table that leaves out less than 1e-40. Source: Canonne, Kamath, Steinke (2020),
    Definition 1.
    """

    loc: int
    sigma: float
    step: float = 1.0

    def __post_init__(self) -> None:
        _set_integer_loc(self)
        # Below 1e-3 all the mass beside the centre is less than the smallest double.
        require(1e-3 <= self.sigma < math.inf, "a finite sigma of at least 1e-3", self.sigma)
        require(2 * _REACH * self.sigma < _MOST_POINTS, "sigma of at most 150,000 lattice steps", self.sigma)
        require(0 < self.step < math.inf, "a finite step > 0", self.step)

    def pmf(self, x: ArrayLike) -> FloatArray:
        """Probability of the output `x`, of any shape.

        `x` has the units of the output; 0 off the lattice.
        """
        k = np.asarray(x, dtype=np.float64) / self.step - self.loc
        table = discrete_gaussian_table(self.sigma)
        inside = (np.abs(k) <= table.reach) & (k == np.rint(k))
        index = np.where(inside, k, 0.0).astype(np.int64) + table.reach
        return np.asarray(np.where(inside, np.exp(table.log_pmf[index]), 0.0), dtype=np.float64)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of an output at most `x`, of any shape.

        `x` has the units of the output.
        """
        k = np.floor(np.asarray(x, dtype=np.float64) / self.step) - self.loc
        table = discrete_gaussian_table(self.sigma)
        # P[Z <= k] = 1 - P[Z <= -k-1].
        low = np.where(k < 0, k, -k - 1) + table.reach
        inside = low >= 0
        tail = np.where(inside, table.lower[np.where(inside, low, 0.0).astype(np.int64)], 0.0)
        return np.asarray(np.where(k < 0, tail, 1.0 - tail), dtype=np.float64)


def _set_integer_loc(law: TwoSidedGeometricLaw | DiscreteGaussianLaw) -> None:
    try:
        object.__setattr__(law, "loc", operator.index(law.loc))
    except TypeError:
        raise ValueError(f"expected an integer loc, got {law.loc!r}") from None


@dataclass(frozen=True)
class ProductLaw:
    """Independent coordinates, each with its own distribution."""

    parts: tuple[Law, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        require(len(self.parts) > 0, "at least one coordinate", self.parts)


Law: TypeAlias = (
    FiniteLaw | LaplaceLaw | GaussianLaw | CauchyLaw | TwoSidedGeometricLaw | DiscreteGaussianLaw | ProductLaw
)
