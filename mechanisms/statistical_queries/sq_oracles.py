"""Statistical-query oracles of every kind that the definition allows, and what an algorithm makes of their answers.

An oracle answers a query g with tolerance tau by any v with ``|v - E g| <= tau``. The definition asks for nothing else:
not that answers are random, nor that the same query has the same answer twice. So a claim about an algorithm that
learns from statistical queries has to hold under every one of the oracles here.

An oracle is called ``(truth, tolerance, rng) -> answers``: expectations and answers are arrays of one shape, for
instance (runs, queries); the tolerance is a number or an array that broadcasts to it. All of them keep to the tolerance
up to the rounding of one addition, except `SampleMeanOracle`, which does with the probability that `sample_size` says.

Source: document 002, Definitions 5.4, 5.5 and 5.12; catalogue 002, sq_oracle. Which oracles there are to be is the
catalogue's; the document has the definition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.base.mechanism import (
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.statistical_queries.query_algorithms import ConjunctionAlgorithm, StatisticalQueryAlgorithm


class StatisticalQueryOracle(Protocol):
    """Answers statistical queries; see the module for the arguments."""

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator, /) -> FloatArray:
        """Return the answers, float64 of the shape of `truth`."""
        ...


# ---------------------------------------------------------------------------------- oracles


@dataclass(frozen=True)
class ExactOracle:
    """Every answer is the expectation."""

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return the truth."""
        del tolerance, rng
        return np.array(truth, dtype=np.float64)


@dataclass(frozen=True)
class HighestAnswersOracle:
    """Every answer is too high by all of the tolerance."""

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return truth + tolerance."""
        del rng
        return np.asarray(truth + np.asarray(tolerance), dtype=np.float64)


@dataclass(frozen=True)
class LowestAnswersOracle:
    """Every answer is too low by all of the tolerance."""

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return truth - tolerance."""
        del rng
        return np.asarray(truth - np.asarray(tolerance), dtype=np.float64)


@dataclass(frozen=True)
class TowardThresholdOracle:
    """Every answer goes all of the tolerance towards a threshold, and past it where the tolerance is enough.

    The worst oracle for an algorithm that compares its answers with that threshold.

    Parameters
    ----------
    threshold : float
        What the algorithm compares with. An expectation of just the threshold is moved up.
    """

    threshold: float

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return the truth, moved down where it is above the threshold, and up elsewhere."""
        del rng
        moved = np.asarray(tolerance, dtype=np.float64)
        return np.asarray(np.where(truth > self.threshold, truth - moved, truth + moved), dtype=np.float64)


@dataclass(frozen=True)
class AwayFromThresholdOracle:
    """Every answer goes all of the tolerance away from a threshold: `TowardThresholdOracle` the other way round.

    Parameters
    ----------
    threshold : float
        What the algorithm compares with. An expectation of just the threshold is moved down.
    """

    threshold: float

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return the truth, moved up where it is above the threshold, and down elsewhere."""
        del rng
        moved = np.asarray(tolerance, dtype=np.float64)
        return np.asarray(np.where(truth > self.threshold, truth + moved, truth - moved), dtype=np.float64)


@dataclass(frozen=True)
class RandomErrorOracle:
    """Answers are uniform within the tolerance, independently of one another."""

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw truth + tolerance U with U uniform on [-1, 1)."""
        return np.asarray(truth + np.asarray(tolerance) * rng.uniform(-1.0, 1.0, np.shape(truth)), dtype=np.float64)


@dataclass(frozen=True)
class RoundingOracle:
    """Answers are multiples of a step.

    Parameters
    ----------
    step : float, optional
        Distance of two answers, at most twice the tolerance. By default just that, the coarsest grid there can be.

    Raises
    ------
    ValueError
        When called with a tolerance of less than half the step.
    """

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None:
            require_positive("step", self.step)

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return the nearest multiple of the step."""
        del rng
        within = np.asarray(tolerance, dtype=np.float64)
        step = 2.0 * within if self.step is None else np.asarray(self.step)
        require(bool(np.all(step <= 2.0 * within)), f"a tolerance of at least half the step {self.step}", tolerance)
        return np.asarray(step * np.floor(truth / step + 0.5), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TargetBlindOracle:
    """Answers what does not depend on the target, wherever that is within the tolerance, and the truth elsewhere.

    Parameters
    ----------
    blind : array_like
        What the answer would be for any target; broadcasts to the expectations.
    strict : bool, default True
        It has to be closer than the tolerance. False: as close as the tolerance is enough.

    Notes
    -----
    Answers of an algorithm that is never told the truth say nothing about the target, which is how lower bounds on
    statistical queries are shown. A blind answer is as valid as any other.
    """

    blind: ArrayLike
    strict: bool = True

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return the blind answers where they are valid, and the truth elsewhere."""
        del rng
        off = np.abs(truth - np.asarray(self.blind, dtype=np.float64))
        valid = off < tolerance if self.strict else off <= tolerance
        return np.asarray(np.where(valid, self.blind, truth), dtype=np.float64)


@dataclass(frozen=True)
class SampleMeanOracle:
    """Every answer is the mean over so many fresh examples of a query that has two values.

    Parameters
    ----------
    size : int
        Examples an answer.
    low, high : float, default 0 and 1
        The two values.

    Notes
    -----
    The tolerance is not looked at: an answer is off by more than tau with probability at most beta where there are
    `sample_size` examples, for ``b = (high - low) / 2``. Means of two values are the least concentrated that there are
    in [low, high] for a given expectation, as their variance is largest.
    """

    size: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a sample size >= 1", self.size)
        require(-math.inf < self.low < self.high < math.inf, "finite values, low < high", (self.low, self.high))

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw the means; ValueError if an expectation is not in [low, high]."""
        del tolerance
        part = (np.asarray(truth, dtype=np.float64) - self.low) / (self.high - self.low)
        require(bool(np.all((part >= 0) & (part <= 1))), f"expectations in [{self.low}, {self.high}]", truth)
        return np.asarray(self.low + (self.high - self.low) * (rng.binomial(self.size, part) / self.size))


def sample_size(bound: float, tolerance: float, beta: float) -> int:
    """Examples whose mean is within the tolerance with probability at least ``1 - beta``.

    ``ceil(2 b^2 ln(2 / beta) / tau^2)``, by Hoeffding's inequality for a query with values in [-b, b] (or in any
    interval of length 2 b).

    Source: document 002, Theorem A.2; catalogue 002, sq_oracle.
    """
    require_positive("bound", bound)
    require_positive("tolerance", tolerance)
    require(0 < beta < 1, "beta in (0, 1)", beta)
    return math.ceil(2.0 * bound**2 * math.log(2.0 / beta) / tolerance**2)


def valid_oracles(threshold: float = 0.0) -> dict[str, StatisticalQueryOracle]:
    """Return the oracles that keep to any tolerance, by name; two of them go by this threshold."""
    return {
        "exact": ExactOracle(),
        "above": HighestAnswersOracle(),
        "below": LowestAnswersOracle(),
        "toward_the_threshold": TowardThresholdOracle(threshold),
        "away_from_the_threshold": AwayFromThresholdOracle(threshold),
        "random": RandomErrorOracle(),
        "rounded": RoundingOracle(),
    }


# ------------------------------------------------------------------------- what is made of answers


@dataclass(frozen=True)
class OracleAnswers:
    """The answers themselves: the data are the expectations, of shape () or (queries,).

    Parameters
    ----------
    oracle : StatisticalQueryOracle
        Who answers.
    tolerance : float
        tau, for all queries.
    """

    oracle: StatisticalQueryOracle
    tolerance: float

    def __post_init__(self) -> None:
        require_positive("tolerance", self.tolerance)

    def __call__(self, data: ArrayLike, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw the answers `n` times; float64 of shape (n,) or (n, queries)."""
        require_draws(n)
        truth = np.asarray(data, dtype=np.float64)
        return self.oracle(np.broadcast_to(truth, (n, *truth.shape)), self.tolerance, rng)


@dataclass(frozen=True)
class LearnerFromOracle:
    """What an algorithm learns from an oracle's answers, each query within the algorithm's own tolerance.

    The data are the distribution, as far as the queries see it: the expectations of all queries of the algorithm's
    pool, shape (pool,); see `mechanisms.statistical_queries.statistical_queries.expectations`.

    Parameters
    ----------
    algorithm : StatisticalQueryAlgorithm
        Who asks.
    oracle : StatisticalQueryOracle
        Who answers.
    """

    algorithm: StatisticalQueryAlgorithm
    oracle: StatisticalQueryOracle

    def answers(self, data: ArrayLike, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` transcripts; float64 of shape (n, M)."""
        require_draws(n)
        means = np.asarray(data, dtype=np.float64)
        require(means.shape == (self.algorithm.pool,), f"{self.algorithm.pool} expectations", means.shape)
        answers = np.empty((n, self.algorithm.queries), dtype=np.float64)
        for i in range(self.algorithm.queries):
            truth = means[self.algorithm.ask(answers[:, :i])]
            answers[:, i] = self.oracle(truth, self.algorithm.tolerance, rng)
        return answers

    def __call__(self, data: ArrayLike, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` hypotheses; float64 of shape (n,) or (n, d)."""
        return self.algorithm.hypothesis(self.answers(data, n, rng))


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class NeedsTheExactOracle(ConjunctionAlgorithm):
    """Keeps the bits that no positive example lacks, which is right only if all answers are exact."""

    def hypothesis(self, answers: FloatArray) -> FloatArray:
        """Return which bits are kept, as 0 and 1, shape (n, d)."""
        return np.asarray(answers <= 0.0, dtype=np.float64)


def _needing_the_exact_oracle(base: LearnerFromOracle) -> LearnerFromOracle:
    return LearnerFromOracle(Twin(NeedsTheExactOracle)(base.algorithm), base.oracle)


#: It is not about privacy; what it breaks is what is learned.
MUTANTS: dict[str, Mutant[LearnerFromOracle]] = tabulate_mutants(
    Mutant(
        "learner_needs_the_exact_oracle",
        _needing_the_exact_oracle,
        None,
        "benign",
        "a bit is dropped for any answer above 0: right with exact answers, and with no others",
    ),
)
