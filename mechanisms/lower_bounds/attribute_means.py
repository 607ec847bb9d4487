"""Means of attributes that are 0 or 1, with noise, and the mutant that rounds them first.

Source: document 003, section 5.1; catalogue 000_001_003, fingerprinting_dp_attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.additive_noise.gaussian import analytic_mu
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.base.noise import without_low_bits


@dataclass(frozen=True)
class AttributeMeans:
    """The exact means of all columns.

    Data are arrays of zeros and ones, shape (rows, columns): rows are persons, columns attributes. Noise is that of a
    subclass, in persons. Noisy counts are rounded to multiples of 2^-20, which is post-processing, and divided by the
    number of rows.
    """

    def noise(self, size: tuple[int, ...], rows: int, rng: np.random.Generator) -> FloatArray:
        """Draw noise for counts of so many rows; the last axis of ``size`` is the columns."""
        del rows, rng
        return np.zeros(size)

    def counts(self, tables: NDArray[np.integer]) -> IntArray:
        """Ones in each column of tables (..., rows, columns), shape (..., columns)."""
        return np.asarray(tables.sum(axis=-2, dtype=np.int64))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n releases of one table; float64 of shape (n, columns)."""
        require_draws(n)
        table_ = np.asarray(data)
        require(table_.ndim == 2 and len(table_) > 0, "a table of shape (rows, columns)", table_.shape)
        counts = self.counts(table_)
        return self._release_means(counts + self.noise((n, counts.size), len(table_), rng), len(table_))

    def each(self, stack: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """Draw a release of each of several tables (trials, rows, columns); float64 of shape (trials, columns)."""
        counts = self.counts(stack)
        return self._release_means(counts + self.noise(counts.shape, stack.shape[1], rng), stack.shape[1])

    @staticmethod
    def _release_means(counts: FloatArray, rows: int) -> FloatArray:
        return without_low_bits(counts) / rows


@dataclass(frozen=True)
class GaussianMeans(AttributeMeans):
    """Means plus Gaussian noise.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise of a mean.
    """

    deviation: float

    def __post_init__(self) -> None:
        require_positive("deviation", self.deviation)

    def mu(self, rows: int, columns: int) -> float:
        """Level as Gaussian DP: a replaced row moves each of the means by 1/rows."""
        return float(columns**0.5 / (rows * self.deviation))

    def noise(self, size: tuple[int, ...], rows: int, rng: np.random.Generator) -> FloatArray:
        """Draw normal noise."""
        return rows * self.deviation * rng.standard_normal(size)


@dataclass(frozen=True)
class CalibratedMeans(AttributeMeans):
    """Means plus the Gaussian noise that a replaced row needs for (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    delta : float or None
        The claim, in (0, 1); default 1/(10 rows), as in Theorem 5.2.2.
    """

    epsilon: float
    delta: float | None = None

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(self.delta is None or 0 < self.delta < 1, "delta in (0, 1)", self.delta)

    def plain(self, rows: int, columns: int) -> GaussianMeans:
        """Return the same mechanism on tables of a shape."""
        mu = _mu(self.epsilon, 1 / (10 * rows) if self.delta is None else self.delta)
        return GaussianMeans(columns**0.5 / (rows * mu))

    def noise(self, size: tuple[int, ...], rows: int, rng: np.random.Generator) -> FloatArray:
        """Draw normal noise."""
        return self.plain(rows, size[-1]).noise(size, rows, rng)


@lru_cache(maxsize=256)
def _mu(epsilon: float, delta: float) -> float:
    return analytic_mu(epsilon, delta)


@dataclass(frozen=True)
class LaplaceMeans(AttributeMeans):
    """Means plus Laplace noise of scale ``columns / (epsilon rows)``.

    Parameters
    ----------
    epsilon : float
        The level, > 0: a replaced row moves each of the means by 1/rows.
    """

    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)

    def noise(self, size: tuple[int, ...], rows: int, rng: np.random.Generator) -> FloatArray:
        """Draw Laplace noise."""
        del rows  # in persons
        return rng.laplace(0.0, size[-1] / self.epsilon, size)


@dataclass(frozen=True)
class MeansRoundedFirst(LaplaceMeans):
    """Means are rounded to 0 or 1, and get the noise of means: a row in the middle moves one by 1, not by 1/rows."""

    def counts(self, tables: NDArray[np.integer]) -> IntArray:
        """All rows where more than half of them have a one, else none."""
        rows = tables.shape[-2]
        return np.asarray(rows * (2 * super().counts(tables) > rows), dtype=np.int64)


MUTANTS: dict[str, Mutant[LaplaceMeans]] = tabulate_mutants(
    Mutant(
        "rounding_before_noise",
        Twin(MeansRoundedFirst),
        None,
        "violation",
        "means rounded before the noise: rows times eps where one row turns every majority, and rows eps / columns "
        "where it turns one",
    ),
)
