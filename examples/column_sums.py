"""Sums of the columns of a table of zeros and ones: for `dpaudit attack --adversary`."""

from typing import Any

import numpy as np


def with_little_noise(data: Any, n: int, rng: np.random.Generator) -> Any:
    """Add noise of scale 1 to each sum: enough for one column, and for hundreds of them nowhere near."""
    sums = np.asarray(data).sum(axis=0)
    return sums + rng.laplace(scale=1.0, size=(n, len(sums)))


def gaussian_sold_as_pure(data: Any, n: int, rng: np.random.Generator) -> Any:
    """Add Gaussian noise that is (1, 0.1)-DP: no epsilon is true without a delta."""
    sums = np.asarray(data).sum(axis=0)
    return sums + rng.normal(scale=1.086 * np.sqrt(len(sums)), size=(n, len(sums)))
