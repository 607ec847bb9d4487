"""Output laws that are known in closed form; `auditor.exact` compares two of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FloatArray: TypeAlias = NDArray[np.float64]

# Probabilities that come from quadrature sum to one within about 1e-14; anything beyond this is a
# mistake of the caller and not rounding.
_SUM_TOLERANCE = 1e-9


def require(condition: bool, expected: str, value: object) -> None:
    """Raise a ValueError that says what was expected and shows the value, unless the condition holds."""
    if not condition:
        raise ValueError(f"expected {expected}, got {value!r}")


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """A law on finitely many outcomes.

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
    """The continuous Laplace law with density ``exp(-|x - loc| / scale) / (2 scale)``."""

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
    """The normal law with mean `loc` and standard deviation `sigma`."""

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
    """Law of ``step * (loc + Z)`` with ``P[Z = k] = a^-|k| (a - 1) / (a + 1)``.

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
        try:
            object.__setattr__(self, "loc", operator.index(self.loc))
        except TypeError:
            raise ValueError(f"expected an integer loc, got {self.loc!r}") from None
        require(1 < self.a < math.inf, "a finite base a > 1", self.a)
        require(0 < self.step < math.inf, "a finite step > 0", self.step)

    @property
    def log_a(self) -> float:
        """``ln a``, accurate also for `a` close to 1."""
        return math.log1p(self.a - 1.0)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of an output at most `x` (any shape, in the units of the output)."""
        k = np.floor(np.asarray(x, dtype=np.float64) / self.step) - self.loc
        # P[Z <= -t] = a^(1-t) / (a+1) for t >= 1, and P[Z <= k] = 1 - P[Z <= -k-1].
        tail = np.exp(-self.log_a * np.where(k < 0, -k - 1, k)) / (self.a + 1.0)
        return np.asarray(np.where(k < 0, tail, 1.0 - tail), dtype=np.float64)


@dataclass(frozen=True)
class ProductLaw:
    """Independent coordinates, each with its own law."""

    parts: tuple[Law, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        require(len(self.parts) > 0, "at least one coordinate", self.parts)


Law: TypeAlias = FiniteLaw | LaplaceLaw | GaussianLaw | TwoSidedGeometricLaw | ProductLaw
