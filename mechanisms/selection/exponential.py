"""The exponential mechanism over a finite range, and its mutants.

Source: D001 section 12.3, Theorem 12.4; D003 section 3.1; catalogue 000_001_003,
exponential_mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import draw_index, gauss_legendre
from mechanisms.base.queries import Query

# exp(-700) is still a normal double; below that a possible outcome would be stored as impossible.
_MAX_LOG_GAP = 700.0


@dataclass(frozen=True)
class _Choice:
    """What the mechanism shares with its mutants: everything but the probabilities."""

    query: Query
    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)

    @property
    def sensitivity(self) -> float:
        """Most one outcome's score moves between neighbours."""
        return self.query.linf_sensitivity

    def scores(self, data: Dataset) -> FloatArray:
        """Return the scores, shape (outcomes,); ValueError for a single number."""
        scores = self.query(data)
        require(scores.ndim == 1 and scores.size > 0, "a vector of scores", scores)
        return scores

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return the outcomes' probabilities, shape (outcomes,)."""
        return softmax(self.epsilon * scores / (2.0 * self.sensitivity))

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: outcomes 0, 1, ... are the indices."""
        mass = self.probabilities(self.scores(data))
        return FiniteLaw(tuple(range(mass.size)), mass)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` indices; int64 of shape (n,)."""
        require_draws(n)
        return draw_index(self.probabilities(self.scores(data)), n, rng)


@dataclass(frozen=True)
class ExponentialMechanism(_Choice):
    """Choose an index with probability proportional to ``exp(eps score / (2 sensitivity))``.

    Parameters
    ----------
    query : Query
        Scores, shape (outcomes,), large = good; its linf sensitivity is the score's sensitivity.
    epsilon : float
        Claimed pure level: D001's form with ``sigma = 2 sensitivity / eps``.

    Raises
    ------
    ValueError
        If scores are further apart than 700 scales: probabilities would underflow to impossible.

    Notes
    -----
    Sampled by inverting the cumulative probabilities. The level is a supremum: with L outcomes,
    all scores 0 against one up and the rest down gives
    ``eps/2 + ln(L / (e^(eps/2) + (L - 1) e^(-eps/2)))``, which tends to eps.
    """


def softmax(exponents: FloatArray) -> FloatArray:
    """Return ``exp(x) / sum exp(x)``; ValueError if a probability would underflow."""
    gap = float(np.ptp(exponents))
    require(gap <= _MAX_LOG_GAP, f"log weights within {_MAX_LOG_GAP} of one another", gap)
    return np.asarray(special.softmax(exponents), dtype=np.float64)


@dataclass(frozen=True)
class FactorTwoMissing(_Choice):
    """Scale ``sensitivity / eps``: the move of the normaliser is forgotten."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Weights ``exp(eps score / sensitivity)``."""
        return softmax(self.epsilon * scores / self.sensitivity)


@dataclass(frozen=True)
class UtilitySignFlipped(_Choice):
    """Low scores preferred: as private as the reference, and useless."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Weights ``exp(-eps score / (2 sensitivity))``."""
        return super().probabilities(-scores)


@dataclass(frozen=True)
class GreedyArgmax(_Choice):
    """The best index, without noise (the first of equals)."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """All mass on the best."""
        return np.asarray(np.arange(scores.size) == np.argmax(scores), dtype=np.float64)


@dataclass(frozen=True)
class SumForMeanSensitivity(_Choice):
    """Scores are sums over `rows` rows, the sensitivity is that of their mean."""

    rows: int = 10

    @property
    def sensitivity(self) -> float:
        """The sensitivity of the mean."""
        return self.query.linf_sensitivity / self.rows


@dataclass(frozen=True)
class OccurringOutcomesOnly(_Choice):
    """Only outcomes with a positive score are offered: the range depends on the data."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Renormalise over the outcomes that occur; over all if none does."""
        occurs = scores > 0
        if not occurs.any():
            return super().probabilities(scores)
        mass = np.zeros(scores.size)
        mass[occurs] = super().probabilities(scores[occurs])
        return mass


@dataclass(frozen=True)
class UniformNoiseForGumbel(_Choice):
    """Best noisy score with uniform noise of the standard deviation of the Gumbel noise."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Probabilities that each score plus uniform noise is the largest.

        The integrand is a polynomial of degree ``outcomes - 1`` between the ends of the ranges, so
        the quadrature is exact, and an index that cannot win has probability exactly 0.
        """
        width = math.pi * math.sqrt(2.0)  # variance width^2 / 12 = pi^2 / 6
        low = self.epsilon * scores / (2.0 * self.sensitivity)
        low = low - low.max()
        breaks = np.concatenate([low, low + width])
        x, w = gauss_legendre(breaks, math.inf, math.ceil(scores.size / 2))
        below = np.clip((x[:, None] - low) / width, 0.0, 1.0)
        inside = (below > 0.0) & (below < 1.0)
        mass = np.empty(scores.size)
        for i in range(scores.size):  # over outcomes: a division would fail where a factor is 0
            mass[i] = w @ (inside[:, i] / width * np.delete(below, i, axis=1).prod(axis=1))
        return mass

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` indices; int64 of shape (n,)."""
        require_draws(n)
        scaled = self.epsilon * self.scores(data) / (2.0 * self.sensitivity)
        noise = math.pi * math.sqrt(2.0) * rng.random((n, scaled.size))
        return np.asarray(np.argmax(scaled + noise, axis=1), dtype=np.int64)


MUTANTS: dict[str, Mutant[ExponentialMechanism]] = tabulate_mutants(
    Mutant(
        "factor_two_missing",
        Twin(FactorTwoMissing),
        TimesEpsilon(2.0),
        "violation",
        "scale Du/eps: up to 2 eps, approached on (K, 0) against (K - Du, Du) as K grows",
    ),
    Mutant(
        "sign_flipped", Twin(UtilitySignFlipped), TimesEpsilon(1.0), "benign", "utility reversed, privacy unchanged"
    ),
    Mutant("greedy_argmax", Twin(GreedyArgmax), unbounded, "violation", "no noise: any pair with different winners"),
    Mutant(
        "sum_for_mean_sensitivity",
        Twin(SumForMeanSensitivity),
        TimesEpsilon(10.0),
        "violation",
        "sensitivity of a mean over 10 rows for a sum: up to 10 eps",
    ),
    Mutant(
        "data_dependent_range",
        Twin(OccurringOutcomesOnly),
        unbounded,
        "violation",
        "range restricted to positive scores: a score that moves from 0 to 1",
    ),
    Mutant(
        "uniform_noise_for_gumbel",
        Twin(UniformNoiseForGumbel),
        unbounded,
        "violation",
        "bounded noise: a trailing outcome that can win on one side only, about 4.44 scales behind",
    ),
)
