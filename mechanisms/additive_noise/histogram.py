"""Private histograms under both relations, and a sum with the number of rows, which is not public under add/remove.

Source: D003 footnote 1, section 1.2.2 and Lectures 4 and 7; catalogue 000_001_003, neighbour_convention.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw, Law, ProductLaw, TwoSidedGeometricLaw
from mechanisms.additive_noise.gaussian import CalibratedGaussian, Rule
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.base.queries import ClippedSum, Histogram


def laplace_histogram(cells: Histogram, epsilon: float) -> LatticeLaplace:
    """Cell counts plus two-sided geometric noise, one draw a cell.

    Parameters
    ----------
    cells : Histogram
        Its relation decides the noise: base ``e^eps`` under add_remove_one (one count moves by 1), ``e^(eps / 2)``
        under replace_one (two counts do).
    epsilon : float
        Claimed pure level; attained under either relation.
    """
    return LatticeLaplace(cells, epsilon, step=1.0)


def gaussian_histogram(cells: Histogram, epsilon: float, delta: float, rule: Rule = "analytic") -> CalibratedGaussian:
    """Cell counts plus discrete Gaussian noise, one draw a cell.

    Parameters
    ----------
    cells : Histogram
        Its relation decides the noise: the counts move by 1 in the l2 norm under add_remove_one, by ``sqrt 2`` under
        replace_one.
    epsilon, delta : float
        The claim.
    rule : Rule
        The calibration; see `mechanisms.additive_noise.gaussian`.
    """
    return CalibratedGaussian(cells, epsilon, delta, rule, step=1.0)


@dataclass(frozen=True)
class _SumAndSize:
    """What the mechanism shares with its mutant."""

    total: ClippedSum
    epsilon: float
    step: float = 1.0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(self.total.relation == "add_remove_one", "a sum under add_remove_one", self.total.relation)
        self.noisy_total()

    def noisy_total(self) -> LatticeLaplace:
        """Return the mechanism of the first number."""
        return LatticeLaplace(self.total, self.epsilon / 2.0, self.step)


@dataclass(frozen=True)
class SumAndSize(_SumAndSize):
    """A noisy sum and a noisy number of rows, for a mean of a dataset of unknown size.

    Parameters
    ----------
    total : ClippedSum
        Under add_remove_one.
    epsilon : float
        Claimed pure level; each of the two numbers gets half of it.
    step : float, default 1.0
        Lattice step of the sum, a power of two.

    Notes
    -----
    A row that is added or removed moves the sum by its sensitivity at most and the number of rows by 1, so the level is
    exactly epsilon. Their quotient is an estimate of the mean, and post-processing.
    """

    @property
    def base(self) -> float:
        """Base of the noise of the number of rows."""
        return base_for(self.epsilon / 2.0, 1)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n, 2): noisy sum, noisy number of rows."""
        total = self.noisy_total()(data, n, rng)
        return np.stack([total, (len(data) + two_sided_geometric(self.base, n, rng)).astype(np.float64)], axis=1)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`."""
        return ProductLaw((self.noisy_total().law(data), TwoSidedGeometricLaw(len(data), self.base)))


@dataclass(frozen=True)
class PublicSizeUnderAddRemove(_SumAndSize):
    """The number of rows as it is, and all of epsilon for the sum: right under replace_one only."""

    def noisy_total(self) -> LatticeLaplace:
        """Return the mechanism of the first number."""
        return LatticeLaplace(self.total, self.epsilon, self.step)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n, 2): noisy sum, number of rows."""
        total = self.noisy_total()(data, n, rng)
        return np.stack([total, np.full(n, float(len(data)))], axis=1)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`: the second number is a point."""
        return ProductLaw((self.noisy_total().law(data), FiniteLaw((float(len(data)),), np.ones(1))))


MUTANTS: dict[str, Mutant[SumAndSize]] = tabulate_mutants(
    Mutant(
        "public_n_under_add_remove",
        Twin(PublicSizeUnderAddRemove),
        unbounded,
        "violation",
        "the number of rows taken for public and released: it differs between add/remove neighbours",
    ),
)
