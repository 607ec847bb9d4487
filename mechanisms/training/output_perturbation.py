"""Output perturbation: weights that minimise a regularised risk, plus noise, and mutants.

Source: Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 1 and Corollary 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from auditor.privacy.laws import GaussianLaw, LaplaceLaw, ProductLaw
from mechanisms.additive_noise.laplace import default_step
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.training.regularised_risk import HUBER_HINGE, HuberHinge, ScaledExamples, minimum_of


@dataclass(frozen=True)
class RiskWithNoise:
    """The minimum of a regularised risk, and the lattice that outputs are rounded to.

    Parameters
    ----------
    examples : ScaledExamples
        Reads the dataset.
    rows : int
        Number of people n, public.
    ridge : float
        Regularisation lambda of the mean loss, > 0.
    level : float
        Claimed level: epsilon where noise has the density ``exp(-n lambda epsilon |b| / 2)``, mu where it is Gaussian.
    loss : HuberHinge
        The loss; its slope is in [-1, 0].

    Notes
    -----
    Replacing a person moves the minimum by at most ``2 / (n lambda)`` (Corollary 8), which is attained by a person
    whose example turns around where all margins are in the linear part. Outputs are rounded to a lattice of less than
    a thousandth of the noise, so that no last digit tells where the noise was added.
    """

    examples: ScaledExamples
    rows: int
    ridge: float
    level: float
    loss: HuberHinge = HUBER_HINGE

    def __post_init__(self) -> None:
        require_positive("ridge", self.ridge)
        require_positive("level", self.level)

    @property
    def sensitivity(self) -> float:
        """How far the minimum moves, in the l2 norm."""
        return 2.0 / (self.rows * self.ridge)

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return self.sensitivity / self.level

    @cached_property
    def grain(self) -> float:
        """Lattice of the outputs, a power of two."""
        return default_step(self.sensitivity / self.level)

    def with_noise(self, factor: float) -> Self:
        """Return the same with ``factor`` times the noise, for controls of accuracy."""
        return replace(self, level=self.level / factor)

    def minimum(self, data: Dataset) -> FloatArray:
        """Weights before the noise, of shape (d,)."""
        return minimum_of(self.examples, self.loss, self.rows * self.ridge, data)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n outputs; float64 of shape (n,) for one feature, else (n, d)."""
        require_draws(n)
        weights = self.minimum(data)
        noisy = np.rint((weights + self._draw_noise(n, len(weights), rng)) / self.grain) * self.grain
        return np.asarray(noisy[:, 0] if len(weights) == 1 else noisy)

    def _draw_noise(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        """Noise with density proportional to ``exp(-|b| / scale)``, of shape (n, d)."""
        direction = rng.standard_normal((n, d))
        length = rng.gamma(d, self.scale, size=(n, 1))
        return np.asarray(length * direction / np.linalg.norm(direction, axis=1, keepdims=True))


@dataclass(frozen=True)
class OutputPerturbation(RiskWithNoise):
    """Output perturbation with noise of density ``exp(-n lambda epsilon |b| / 2)``: epsilon-DP, for replacing a person.

    With several features there is no distribution in closed form, but the level on a pair: `pair_level`.
    """

    @property
    def epsilon(self) -> float:
        """Exact level, over all pairs."""
        return self.level

    def pair_level(self, x: Dataset, y: Dataset) -> float:
        """Exact level on a pair: the minimum's move over the scale, in the direction of which it is reached."""
        return float(np.linalg.norm(self.minimum(x) - self.minimum(y))) / self.scale


@dataclass(frozen=True)
class OneWeightPerturbation(OutputPerturbation):
    """Output perturbation of one weight, whose noise is Laplace noise."""

    def law(self, data: Dataset) -> LaplaceLaw:
        """Distribution before rounding."""
        return LaplaceLaw(float(self.minimum(data)[0]), self.scale)


@dataclass(frozen=True)
class GaussianOutputPerturbation(RiskWithNoise):
    """Output perturbation with Gaussian noise: mu-GDP, for replacing a person."""

    def mu(self) -> float:
        """Exact level as Gaussian DP, over all pairs."""
        return self.level

    def _draw_noise(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        return self.scale * rng.standard_normal((n, d))

    def law(self, data: Dataset) -> ProductLaw:
        """Distribution before rounding."""
        return ProductLaw(tuple(GaussianLaw(float(w), self.scale) for w in self.minimum(data)))


# -------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SensitivityOfAdding(OneWeightPerturbation):
    """The sensitivity of adding a person, ``1 / (n lambda)``, for replacing one."""

    @property
    def scale(self) -> float:
        """Half the scale."""
        return 0.5 * super().scale


@dataclass(frozen=True)
class SmootherSensitivity(OneWeightPerturbation):
    """The sensitivity of an unregularised mean, ``2 / n``, whatever lambda."""

    @property
    def scale(self) -> float:
        """The scale times lambda."""
        return self.ridge * super().scale


@dataclass(frozen=True)
class NoiseByCoordinate(OutputPerturbation):
    """Laplace noise of the scale of the norm on each weight: the l2 norm bounds the move, and the l1 norm counts."""

    def pair_level(self, x: Dataset, y: Dataset) -> float:
        """Exact level on a pair: the l1 norm of the move over the scale."""
        return float(np.abs(self.minimum(x) - self.minimum(y)).sum()) / self.scale

    def _draw_noise(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        return rng.laplace(scale=self.scale, size=(n, d))


@dataclass(frozen=True)
class TimesNoise:
    """A level that is a multiple of the reference's (for `Mutant.true_level`)."""

    factor: float

    def __call__(self, base: RiskWithNoise) -> float:
        """Return it."""
        return self.factor * base.level


def _over_ridge(base: RiskWithNoise) -> float:
    return base.level / base.ridge


def _root_of_features(base: RiskWithNoise) -> float:
    return math.sqrt(len(base.examples.columns)) * base.level


MUTANTS: dict[str, Mutant[OutputPerturbation]] = tabulate_mutants(
    Mutant(
        "sensitivity_of_adding",
        Twin(SensitivityOfAdding),
        TimesNoise(2.0),
        "violation",
        "half the noise that replacing a person needs",
    ),
    Mutant(
        "ridge_left_out",
        Twin(SmootherSensitivity),
        _over_ridge,
        "violation",
        "too little noise where lambda < 1: the sensitivity is 2 / (n lambda)",
    ),
    Mutant(
        "noise_by_coordinate",
        Twin(NoiseByCoordinate),
        _root_of_features,
        "violation",
        "a move along the diagonal is larger in the l1 norm, by the root of the number of features",
    ),
)
