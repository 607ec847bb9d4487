"""Objective perturbation of a classifier with one weight: the risk gets a random linear term, and mutants.

Source: Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2 and Theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw
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
from mechanisms.training.regularised_risk import HUBER_HINGE, HuberHinge, ScaledExamples


@dataclass(frozen=True)
class ObjectivePerturbation:
    """The weight that minimises a regularised risk with a random slope, in cells.

    Parameters
    ----------
    examples : ScaledExamples
        Reads the dataset; one feature.
    rows : int
        Number of people n, public.
    ridge : float
        Regularisation lambda of the mean loss, > 0.
    epsilon : float
        Claimed level, above ``2 ln(1 + c / (n lambda))`` for the loss's curvature c.
    loss : HuberHinge
        The loss.
    cell : float, default 1/32
        Width of the cells of the output; beyond `most` of them from 0 on either side all weights count as one.
    most : int, default 256
        Cells on a side.

    Notes
    -----
    The weight w solves ``n lambda w + sum of z l'(w z) + b = 0`` with b of density ``exp(-epsilon' |b| / 2)``. The
    left side without b rises in w, so that the distribution of w follows from that of b exactly. For the Huber hinge
    it is piecewise linear in w, and is inverted between its corners.
    """

    examples: ScaledExamples
    rows: int
    ridge: float
    epsilon: float
    loss: HuberHinge = HUBER_HINGE
    cell: float = 1.0 / 32
    most: int = 256

    def __post_init__(self) -> None:
        require(len(self.examples.columns) == 1, "one feature", self.examples.columns)
        for name in ("ridge", "epsilon", "cell"):
            require_positive(name, getattr(self, name))
        require(self.noise_level > 0, "an epsilon above 2 ln(1 + c / (n lambda))", self.epsilon)

    @property
    def noise_level(self) -> float:
        """Level epsilon' that is left for the noise: the other part pays for the change of curvature."""
        return self.epsilon - 2.0 * math.log1p(self.loss.curvature / (self.rows * self.ridge))

    def _slope(self, data: Dataset, weights: FloatArray) -> FloatArray:
        """Derivative of the regularised sum of losses at weights of shape (k,)."""
        distinct, counts = self.examples.read(data)
        z = distinct[:, 0]
        slopes = self.loss.slope(weights[:, None] * z) @ (counts * z)
        return np.asarray(self.rows * self.ridge * weights + slopes)

    def _corners(self, data: Dataset) -> FloatArray:
        """Weights between which the slope is linear, and one beyond on either side."""
        z = self.examples.read(data)[0][:, 0]
        z = z[z != 0]
        width = self.loss.width
        inner = np.unique(np.concatenate([(1 - width) / z, (1 + width) / z, [0.0]]))
        return np.concatenate([[inner[0] - 1.0], inner, [inner[-1] + 1.0]])

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw n outputs: int64 of shape (n,)."""
        require_draws(n)
        return self._round_weights(self._solve(data, rng.laplace(scale=2.0 / self.noise_level, size=n)))

    def _solve(self, data: Dataset, tilt: FloatArray) -> FloatArray:
        """Weights at which the slope is minus the tilt."""
        corners = self._corners(data)
        slopes = self._slope(data, corners)
        found = np.interp(-tilt, slopes, corners)
        ridge = self.rows * self.ridge  # beyond the last corners no loss bends
        found = np.where(-tilt > slopes[-1], corners[-1] + (-tilt - slopes[-1]) / ridge, found)
        return np.asarray(np.where(-tilt < slopes[0], corners[0] + (-tilt - slopes[0]) / ridge, found))

    def _round_weights(self, weights: FloatArray) -> IntArray:
        return np.clip(np.floor(weights / self.cell), -self.most, self.most - 1).astype(np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the cells."""
        cells = np.arange(-self.most, self.most)
        edges = self._slope(data, np.asarray(cells[1:] * self.cell, dtype=np.float64))
        below = np.concatenate([[-math.inf], edges, [math.inf]]) * self.noise_level / 2.0
        masses = _laplace_masses(below)
        return FiniteLaw(tuple(cells.tolist()), masses / masses.sum())


def _laplace_masses(edges: FloatArray) -> FloatArray:
    """Probabilities of a standard Laplace variable between rising edges, with relative accuracy in both tails."""
    low, high = edges[:-1], edges[1:]

    def tail(x: FloatArray) -> FloatArray:  # below a number that is at most 0
        return np.asarray(0.5 * np.exp(np.minimum(x, 0.0)))

    upper, lower = tail(-low) - tail(-high), tail(high) - tail(low)
    middle = 1.0 - tail(low) - tail(-high)
    return np.asarray(np.where(low >= 0, upper, np.where(high <= 0, lower, middle)))


@dataclass(frozen=True)
class CurvatureForgotten(ObjectivePerturbation):
    """All of epsilon goes to the noise, and nothing pays for the change of curvature."""

    @property
    def noise_level(self) -> float:
        """All of epsilon."""
        return self.epsilon


@dataclass(frozen=True)
class ScaleOfAdding(ObjectivePerturbation):
    """Noise of density ``exp(-epsilon' |b|)``, for slopes that change by one, where replacing changes two."""

    @property
    def noise_level(self) -> float:
        """Twice the level that is left for the noise."""
        return 2.0 * super().noise_level


MUTANTS: dict[str, Mutant[ObjectivePerturbation]] = tabulate_mutants(
    Mutant(
        "curvature_forgotten",
        Twin(CurvatureForgotten),
        None,
        "violation",
        "the density changes with the curvature too, by a part that depends on the other rows: a feature of one row",
    ),
    Mutant(
        "scale_of_adding",
        Twin(ScaleOfAdding),
        None,
        "violation",
        "half the noise that replacing a person needs; the level depends on the pair",
    ),
)
