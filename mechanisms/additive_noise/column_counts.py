"""Column counts of a table of zeros and ones, released with noise: one-way marginals.

Each mechanism takes a table of shape (rows, columns), and by ``each`` a stack of them, one release for each. Noise is
on the integers, so that it wastes nothing; one row that is replaced, or added, moves every count by at most 1.

Source: 003, section 4.3; catalogue 000_001_003, pure_dp_packing_bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mechanisms.additive_noise.gaussian import sigma_for
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.integer_noise import discrete_gaussian
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, draw_index, two_sided_geometric
from mechanisms.base.queries import Relation

#: Standard deviations after which the mass of a discrete Gaussian is below float64.
_FAR = 40.0
#: What is left out of the distribution of a radius, as a part: below float64.
_LOST = 1e-18


@dataclass(frozen=True)
class ColumnCounts:
    """The query: sums of the columns of a table of zeros and ones.

    Parameters
    ----------
    columns : int
        Number of columns.
    relation : Relation, default "replace_one"
        Only a label: replacing, adding and removing a row each move a count by at most 1.
    """

    columns: int
    relation: Relation = "replace_one"

    linf_sensitivity: ClassVar[float] = 1.0
    granularity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _require_columns(self.columns)

    @property
    def sensitivity(self) -> float:
        """Number of columns, l1 norm."""
        return float(self.columns)

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the counts, float64 of shape (columns,)."""
        return np.asarray(_counts(np.asarray(data)[None], self.columns)[0], dtype=np.float64)


def _require_columns(columns: int) -> None:
    require(isinstance(columns, (int, np.integer)) and columns >= 1, "at least one column", columns)


def _counts(stack: Dataset, columns: int) -> IntArray:
    """Column sums of several tables, shape (trials, columns)."""
    tables = np.asarray(stack)
    right = tables.ndim == 3 and tables.shape[2] == columns
    require(right, f"tables of {columns} columns, shape (trials, rows, columns)", tables.shape)
    return np.asarray(tables.sum(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class _NoisyRelease(ABC):
    """What releases share: integer noise that does not depend on the data."""

    columns: int

    def __post_init__(self) -> None:
        _require_columns(self.columns)

    @abstractmethod
    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw the noise of n releases, int64 of shape (n, columns)."""

    @abstractmethod
    def inside(self, radius: float) -> float:
        """Exact probability that every count is off by less than `radius`."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` releases of one table; float64 of shape (n, columns)."""
        require_draws(n)
        return (_counts(np.asarray(data)[None], self.columns) + self.noise(n, rng)).astype(np.float64)

    def each(self, stack: Dataset, rng: np.random.Generator) -> FloatArray:
        """Draw one release of each table of a stack of shape (trials, rows, columns)."""
        counts = _counts(stack, self.columns)
        return (counts + self.noise(len(counts), rng)).astype(np.float64)


@dataclass(frozen=True)
class LaplaceCounts(_NoisyRelease):
    """Two-sided geometric noise of base ``e^(epsilon / columns)``: epsilon-DP by the l1 sensitivity.

    Parameters
    ----------
    columns : int
        Number of columns.
    epsilon : float
        Claimed pure level, for replacing a row as for adding or removing one.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("epsilon", self.epsilon)

    @property
    def base(self) -> float:
        """Base of the noise."""
        return base_for(self.epsilon, self.columns)

    @property
    def plain(self) -> LatticeLaplace:
        """The same mechanism for one table, which states its distribution."""
        return LatticeLaplace(ColumnCounts(self.columns), self.epsilon, step=1.0)

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw the noise."""
        return two_sided_geometric(self.base, (n, self.columns), rng)

    def inside(self, radius: float) -> float:
        """``(1 - 2 a^(1 - t) / (a + 1))^columns`` for t = ceil(radius)."""
        require_positive("radius", radius)
        a = self.base
        outside = 2.0 * math.exp((1 - math.ceil(radius)) * math.log1p(a - 1.0)) / (a + 1.0)
        return math.exp(self.columns * math.log1p(-outside)) if outside < 1 else 0.0


@dataclass(frozen=True)
class GaussianCounts(_NoisyRelease):
    """Discrete Gaussian noise calibrated to (epsilon, delta)-DP by the l2 sensitivity, ``sqrt(columns)``.

    Parameters
    ----------
    columns : int
        Number of columns.
    epsilon, delta : float
        The level of approximate privacy.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.sigma > 0, "a positive sigma", self.sigma)

    @property
    def sigma(self) -> float:
        """Parameter of the noise: 1.086 sqrt(columns) at (1, 0.1)."""
        return sigma_for("analytic", self.epsilon, self.delta, math.sqrt(self.columns))

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw the noise."""
        return discrete_gaussian(self.sigma, (n, self.columns), rng)

    def inside(self, radius: float) -> float:
        """The mass of the integers between, to the power of the columns."""
        require_positive("radius", radius)
        k = np.arange(1, math.ceil(_FAR * self.sigma) + 1)
        mass = np.exp(-0.5 * (k / self.sigma) ** 2)
        outside = 2.0 * float(mass[k >= radius].sum()) / (1.0 + 2.0 * float(mass.sum()))
        return math.exp(self.columns * math.log1p(-outside)) if outside < 1 else 0.0


@dataclass(frozen=True)
class LargestNormCounts(_NoisyRelease):
    """Noise z of mass proportional to ``e^(-epsilon max |z_i|)``: epsilon-DP by the largest-norm sensitivity, 1.

    Parameters
    ----------
    columns : int
        Number of columns.
    epsilon : float
        Pure level.

    Notes
    -----
    Drawn exactly as a mixture of uniform cubes: with weights proportional to ``(2 R + 1)^k e^(-epsilon R)`` for the
    radius R, and z uniform in {-R, ..., R}^k, the mass of z is proportional to the sum of ``e^(-epsilon R)`` over
    R >= max |z_i|, which is ``e^(-epsilon max |z_i|)`` times a constant. Its error is about k / epsilon without a
    logarithm: the lower bound of 003, Lemma 4.3.1, is right up to a constant. Source: Hardt and Talwar (2010).
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("epsilon", self.epsilon)

    @cached_property
    def radii(self) -> FloatArray:
        """Probabilities of the radii 0, 1, 2, ..."""
        # The weight falls once epsilon > 2 k / (2 R + 1), by half of epsilon from twice that radius on.
        last = math.ceil((2 * self.columns - 2 * math.log(_LOST)) / self.epsilon)
        while True:
            r = np.arange(last + 1)
            log = self.columns * np.log(2.0 * r + 1.0) - self.epsilon * r
            if log[-1] < log.max() + math.log(_LOST):
                weights = np.exp(log - log.max())
                return np.asarray(weights / weights.sum(), dtype=np.float64)
            last *= 2

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw the noise."""
        radius = draw_index(self.radii, n, rng)[:, None]
        return rng.integers(-radius, radius + 1, (n, self.columns))

    def inside(self, radius: float) -> float:
        """Average over the cubes of the part that is inside."""
        require_positive("radius", radius)
        share = np.minimum(1.0, (2.0 * math.ceil(radius) - 1.0) / (2.0 * np.arange(self.radii.size) + 1.0))
        return float(self.radii @ share**self.columns)


@dataclass(frozen=True)
class ConstantCounts:
    """The same answer to every query, whatever the data: 0-DP.

    Parameters
    ----------
    columns : int
        Number of columns.
    value : float
        The answer.
    """

    columns: int
    value: float

    def __post_init__(self) -> None:
        _require_columns(self.columns)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the constant `n` times, shape (n, columns)."""
        del data, rng
        require_draws(n)
        return np.full((n, self.columns), self.value, dtype=np.float64)

    def each(self, stack: Dataset, rng: np.random.Generator) -> FloatArray:
        """Return the constant for each table."""
        return self(None, len(stack), rng)


def _gaussian(base: LaplaceCounts) -> GaussianCounts:
    return GaussianCounts(base.columns, 1.0, 0.1)


MUTANTS: dict[str, Mutant[LaplaceCounts]] = tabulate_mutants(
    Mutant(
        "gaussian_presented_as_pure",
        _gaussian,
        unbounded,
        "violation",
        "Gaussian noise for (1, 0.1), of a size of sqrt(k), sold as pure privacy, which needs one of k",
    )
)
