"""Private counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class NoisyCount:
    """How many rows are 1, with two-sided geometric noise: ``epsilon``-differentially private.

    One row changes the count by at most 1, and P(noise = k) is proportional to exp(-epsilon |k|).
    """

    epsilon: float

    def __call__(self, data: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw n outputs, independent of each other."""
        p = 1 - math.exp(-self.epsilon)
        return int(data.sum()) + rng.geometric(p, n) - rng.geometric(p, n)


@dataclass(frozen=True)
class FloatCount:
    """The same with Laplace noise in floating point, which some callers still use.

    Its low bits give the count away: see the known findings in ``dpaudit-baseline.toml``.
    """

    epsilon: float

    def __call__(self, data: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw n outputs, independent of each other."""
        return data.sum() + rng.laplace(scale=1 / self.epsilon, size=n)
