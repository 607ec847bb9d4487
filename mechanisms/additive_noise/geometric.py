"""Two-sided geometric noise on integer queries, and its mutants.

Source: D000 section 2; catalogue 000_001_003, geometric_mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from auditor.privacy.exact import Law
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import draw_geometric, lattice_law, two_sided_geometric
from mechanisms.base.queries import Query


@dataclass(frozen=True)
class OnIntegers:
    """What the mechanism shares with its mutants: everything but the noise and its distribution."""

    query: Query
    a: float

    def __post_init__(self) -> None:
        require(1 < self.a < math.inf, "a finite base a > 1", self.a)
        s = self.query.sensitivity
        require(s == math.floor(s), "a query of integer sensitivity", s)
        grain = self.query.granularity
        require(grain == math.floor(grain), "a query with integer answers", grain)

    @property
    def log_a(self) -> float:
        """``ln a``, accurate also for `a` close to 1."""
        return math.log1p(self.a - 1.0)

    @property
    def epsilon(self) -> float:
        """Claimed level, ``sensitivity * ln a``."""
        return self.query.sensitivity * self.log_a

    def with_noise(self, factor: float) -> Self:
        """The mechanism at the level of ``factor`` times the noise."""
        return replace(self, a=math.exp(self.log_a / factor))

    def centre(self, data: Dataset) -> IntArray:
        """Return the integer answers, shape () or (d,); ValueError if they are not integers."""
        answers = self.query(data)
        whole = np.floor(answers)
        require(bool(np.all(whole == answers)), "integer answers", answers)
        return np.asarray(whole, dtype=np.int64)

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw the noise; int64 of shape `size`."""
        return two_sided_geometric(self.a, size, rng)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,) or (n, d)."""
        require_draws(n)
        centre = self.centre(data)
        return centre + self.noise((n, *centre.shape), rng)


@dataclass(frozen=True)
class TwoSidedGeometric(OnIntegers):
    """Integer query plus two-sided geometric noise of base `a`.

    Parameters
    ----------
    query : Query
        Integer answers of shape () or (d,), integer l1 sensitivity.
    a : float
        Base, > 1. The level is exactly ``sensitivity * ln a``; for a level eps take
        ``noise.base_for(eps, sensitivity)``.

    Raises
    ------
    ValueError
        If ``a <= 1`` (a base of 1/a or e^-eps by mistake has no distribution), or the query is not integer.
    """

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data` (A3)."""
        return lattice_law(self.centre(data), self.a)


@dataclass(frozen=True)
class OneSidedGeometric(OnIntegers):
    """Mutant i: noise of one sign only."""

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw G >= 0."""
        return draw_geometric(self.a, size, rng)


@dataclass(frozen=True)
class SensitivityIgnored(TwoSidedGeometric):
    """Mutant ii: a = e^eps whatever the sensitivity, where e^(eps / sensitivity) is right."""

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw two-sided geometric noise of base e^eps."""
        return two_sided_geometric(math.exp(self.epsilon), size, rng)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`."""
        return lattice_law(self.centre(data), math.exp(self.epsilon))


@dataclass(frozen=True)
class RoundedLaplace(OnIntegers):
    """Mutant iv, benign: continuous Laplace noise of scale 1 / ln a, rounded after adding."""

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw rounded Laplace noise: adding an integer commutes with the rounding."""
        return np.rint(rng.laplace(0.0, 1.0 / self.log_a, size)).astype(np.int64)

    def cell_probability(self, k: IntArray) -> FloatArray:
        """Probability of noise k (any shape): a^-|k| sinh(ln(a) / 2), and 1 - a^-1/2 at 0."""
        root = math.sqrt(self.a)
        away = self.a ** -np.abs(k).astype(np.float64) * 0.5 * (root - 1.0 / root)
        return np.asarray(np.where(k == 0, 1.0 - 1.0 / root, away), dtype=np.float64)


@dataclass(frozen=True)
class SignTimesGeometric(OnIntegers):
    """Mutant v: a fair sign times G >= 0, so that zero is drawn from both signs."""

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw sign times G."""
        return rng.choice(np.array([-1, 1]), size) * draw_geometric(self.a, size, rng)

    def cell_probability(self, k: IntArray) -> FloatArray:
        """Probability of noise k (any shape): (1 - 1/a) a^-|k| / 2, and twice that at 0."""
        away = 0.5 * (1.0 - 1.0 / self.a) * self.a ** -np.abs(k).astype(np.float64)
        return np.asarray(np.where(k == 0, 2.0 * away, away), dtype=np.float64)


def _unit_sensitivity_epsilon(base: TwoSidedGeometric) -> float:
    return base.query.sensitivity * base.epsilon


def _double_zero_epsilon(base: TwoSidedGeometric) -> float:
    return base.epsilon + math.log(2.0)


MUTANTS: dict[str, Mutant[TwoSidedGeometric]] = tabulate_mutants(
    Mutant(
        "one_sided",
        Twin(OneSidedGeometric),
        unbounded,
        "violation",
        "support mismatch: outputs below the larger answer occur on one side only",
    ),
    Mutant(
        "sensitivity_ignored",
        Twin(SensitivityIgnored),
        _unit_sensitivity_epsilon,
        "violation",
        "sensitivity taken for 1: true sensitivity * eps (no mutant at sensitivity 1)",
    ),
    Mutant(
        "rounded_laplace",
        Twin(RoundedLaplace),
        TimesEpsilon(1.0),
        "benign",
        "rounded continuous Laplace: same eps, different probabilities (a deviation)",
    ),
    Mutant(
        "sign_times_geometric",
        Twin(SignTimesGeometric),
        _double_zero_epsilon,
        "violation",
        "zero counted twice: eps + ln 2 at the event {output = answer}",
    ),
)
