"""Labels with Gaussian noise whose deviation is a fixed part of the margin: an example of weak quality.

Features are at least c away from 0, and the label is the sign of the feature plus noise of variance ``c^2/8``: at every
feature the more likely label has probability ``Phi(sqrt 8)`` or more.

Source: document 004, after Definition 5.11; catalogue 004, weak_quality_example.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from mechanisms.base.mechanism import IntArray, Mutant, Twin, require, require_draws, require_positive, tabulate_mutants


@dataclass(frozen=True)
class GaussianLabels:
    """Labels at one feature.

    Parameters
    ----------
    margin : float
        c.

    Notes
    -----
    The data are the feature, a number with ``|x| >= c``; an output is 1 for the label +1 and 0 for -1.
    """

    margin: float

    def __post_init__(self) -> None:
        require_positive("margin", self.margin)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise: ``c / (2 sqrt 2)``."""
        return self.margin / math.sqrt(8.0)

    def __call__(self, data: float, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` labels; int64 of shape (n,)."""
        require_draws(n)
        require(abs(data) >= self.margin, f"a feature at least {self.margin:g} away from 0", data)
        return (data + rng.normal(scale=self.deviation, size=n) > 0).astype(np.int64)

    def unlikely(self, x: float) -> float:
        """Exact probability of the less likely label at x: ``Phi(-|x| / sigma)``."""
        return float(special.ndtr(-abs(x) / self.deviation))

    def printed(self, x: float) -> float:
        """The document's bound on it: ``exp(-4 x^2 / c^2)``."""
        return math.exp(-4.0 * (x / self.margin) ** 2)


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class LinearVariance(GaussianLabels):
    """Noise of variance c/8."""

    @property
    def deviation(self) -> float:
        """``sqrt(c/8)``, too wide for c < 1."""
        return math.sqrt(self.margin / 8.0)


@dataclass(frozen=True)
class SquaredDeviation(GaussianLabels):
    """Noise of standard deviation c^2/8."""

    @property
    def deviation(self) -> float:
        """``c^2/8``, too wide for c > 2 sqrt 2."""
        return self.margin**2 / 8.0


MUTANTS: dict[str, Mutant[GaussianLabels]] = tabulate_mutants(
    Mutant("variance_c_over_8", Twin(LinearVariance), None, "benign", "variance c/8 for c^2/8: too wide for c < 1"),
    Mutant("std_for_variance", Twin(SquaredDeviation), None, "benign", "c^2/8 as deviation: too wide for c > 2 sqrt 2"),
)
