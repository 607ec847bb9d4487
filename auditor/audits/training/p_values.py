"""p-values of statistics whose distribution is known."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


class Distribution(Protocol):
    """A continuous distribution, as scipy freezes it."""

    def cdf(self, x: Any) -> Any:
        """Distribution function."""
        ...

    def sf(self, x: Any) -> Any:
        """One minus the distribution function."""
        ...


def two_sided(distribution: Distribution, value: float) -> float:
    """Two-sided p-value of a value of a continuous distribution.

    Parameters
    ----------
    distribution : Distribution
        The distribution.
    value : float
        What was seen.
    """
    low, high = float(distribution.cdf(value)), float(distribution.sf(value))
    return min(1.0, 2.0 * min(low, high))


def to_normal(distribution: Distribution, values: Array) -> Array:
    """Normal scores of values of a continuous distribution.

    Parameters
    ----------
    distribution : Distribution
        The distribution.
    values : ndarray
        What was seen.
    """
    low, high = distribution.cdf(values), distribution.sf(values)
    tails = np.maximum(np.minimum(low, high), 1e-300)
    score: Array = np.where(low < high, 1.0, -1.0) * special.ndtri(tails)
    return score


def normal_p(z: float) -> float:
    """Two-sided p-value of a standard normal variate."""
    return float(2.0 * special.ndtr(-abs(z)))


def to_p_value(log_wealth: float) -> float:
    """Bound by Ville's inequality: one over the wealth."""
    return math.exp(-max(log_wealth, 0.0)) if log_wealth < math.inf else 0.0
