"""The threshold learner on fresh samples: distributions of numbers, how often it fails, and how many rows suffice.

Source: document 003, Theorem 8.2.2; catalogue 000_001_003, exp_mech_pac_learner (the two points and their exact sum).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import special, stats

from mechanisms.base.mechanism import FloatArray, IntArray, require, require_draws
from mechanisms.learning.agnostic_learner import gumbel_choice
from mechanisms.learning.threshold_learner import ThresholdLearner, pieces

#: Rows that are drawn at once: 8 MB for each array of them. Arbitrary.
_BLOCK = 1 << 20


class ThresholdExamples(Protocol):
    """A distribution of numbers, labelled by a threshold."""

    def sample(self, rows: int, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Points, shape (n or 1, k), increasing, and rows at each with labels 0 and 1, shape (n, k), of n samples."""
        ...

    def errors(self, thresholds: IntArray) -> FloatArray:
        """Errors of thresholds, any shape."""
        ...


@dataclass(frozen=True)
class TwoPoints:
    """The two numbers on either side of the threshold: every other threshold is wrong on one of them.

    Parameters
    ----------
    threshold : int
        The true one, t >= 1; the numbers are t - 1, with label 0, and t, with label 1.
    mass : float, default 1/2
        Probability of t - 1.
    """

    threshold: int
    mass: float = 0.5

    def __post_init__(self) -> None:
        require(self.threshold >= 1, "a threshold >= 1", self.threshold)
        require(0 < self.mass < 1, "a probability in (0, 1)", self.mass)

    def sample(self, rows: int, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Draw the rows at t - 1; the others are at t."""
        zeros, none = rng.binomial(rows, self.mass, n), np.zeros(n, dtype=np.int64)
        points = np.array([[self.threshold - 1, self.threshold]], dtype=np.int64)
        return points, np.stack([zeros, none], axis=1), np.stack([none, rows - zeros], axis=1)

    def errors(self, thresholds: IntArray) -> FloatArray:
        """The mass of t - 1 below the threshold, that of t above it."""
        at = np.asarray(thresholds)
        return np.where(at < self.threshold, self.mass, np.where(at > self.threshold, 1.0 - self.mass, 0.0))


@dataclass(frozen=True)
class UniformNumbers:
    """All numbers of d bits have the same probability."""

    d: int
    threshold: int

    def sample(self, rows: int, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Draw numbers and sort those of each sample."""
        points = np.sort(rng.integers(0, 2**self.d, (n, rows)), axis=1)
        ones = (points >= self.threshold).astype(np.int64)
        return points, 1 - ones, ones

    def errors(self, thresholds: IntArray) -> FloatArray:
        """Part of all numbers that lies between the two thresholds."""
        return np.abs(np.asarray(thresholds) - self.threshold) / 2.0**self.d


@dataclass(frozen=True)
class FreshThresholds:
    """The learner on a sample of its own each time; the data are `ThresholdExamples`."""

    learner: ThresholdLearner
    rows: int

    def __post_init__(self) -> None:
        require(isinstance(self.rows, (int, np.integer)) and self.rows >= 1, "a sample size >= 1", self.rows)

    def __call__(self, examples: ThresholdExamples, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` thresholds; int64 of shape (n,)."""
        require_draws(n)
        chosen = np.empty(n, dtype=np.int64)
        step = max(1, _BLOCK // self.rows)
        for start in range(0, n, step):
            runs = min(step, n - start)
            found = pieces(*examples.sample(self.rows, runs, rng), self.learner.d)
            exponents = self.learner.offered(found) - self.learner.rate(self.rows) * found.mistakes
            chosen[start : start + runs] = found.thresholds(gumbel_choice(exponents, runs, rng), rng)
        return chosen


@dataclass(frozen=True)
class ThresholdError:
    """Error of a threshold under a distribution of examples."""

    examples: ThresholdExamples

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n thresholds, shape (n,)."""
        return self.examples.errors(np.asarray(outputs, dtype=np.int64))


# ------------------------------------------------------------------------------------ exact


def two_point_failure(d: int, epsilon: float, zeros: Any, ones: Any) -> FloatArray:
    """Probability of a wrong threshold on a sample of two points, for the true threshold 2^(d - 1).

    Parameters
    ----------
    d : int
        Bits, any number.
    epsilon : float
        What a mistake takes off the logarithm of a weight.
    zeros, ones : array_like
        Rows at t - 1, which thresholds below t get wrong, and rows at t, which those above do; of one shape.

    Returns
    -------
    ndarray
        ``W / (1 + W)`` with ``W = 2^(d-1) (e^(-eps zeros) + e^(-eps ones))``, of that shape.
    """
    half = (d - 1) * math.log(2.0)
    both = np.logaddexp(half - epsilon * np.asarray(zeros), half - epsilon * np.asarray(ones))
    return np.asarray(special.expit(both), dtype=np.float64)


def balanced_failure(d: int, epsilon: float, rows: int) -> float:
    """Probability of a wrong threshold on a sample of which one half, or a row less, is at t - 1."""
    return float(two_point_failure(d, epsilon, rows // 2, rows - rows // 2))


def fresh_failure(d: int, epsilon: float, rows: int, mass: float = 0.5) -> float:
    """Probability of a wrong threshold on a fresh sample of `TwoPoints`: the sum over the rows at t - 1."""
    zeros = np.arange(rows + 1)
    law = stats.binom.pmf(zeros, rows, mass)
    return float(law @ two_point_failure(d, epsilon, zeros, rows - zeros))


def sufficient_rows(size: float, epsilon: float, alpha: float, beta: float) -> int:
    """Rows after which the error is above 2 alpha with probability at most beta, for a class of so many hypotheses.

    ``max{(ln|C| + ln(2/beta)) / (eps alpha), (ln(2|C|) + ln(2/beta)) / (2 alpha^2)}``

    Notes
    -----
    By Hoeffding's inequality all rates of mistakes are within alpha of the errors but for probability ``2|C| e^(-2 n
    alpha^2) <= beta/2``; then a hypothesis of error above 2 alpha has at least alpha n mistakes, where the true one has
    none, so one of them is chosen with probability at most ``|C| e^(-eps alpha n) <= beta/2``.
    """
    private = (math.log(size) + math.log(2.0 / beta)) / (epsilon * alpha)
    close = (math.log(2.0 * size) + math.log(2.0 / beta)) / (2.0 * alpha**2)
    return math.ceil(max(private, close))
