"""Parity learners on fresh labelled examples: how often they succeed, drawn and computed, and at which sample size.

Two distributions of x, both with labels of a parity. Where x is uniform, a wrong parity has error exactly 1/2, so what
is learned does not depend on the error that is allowed. The other one is nearly always 0, and otherwise one of the unit
vectors, which say one bit of the parity each: there the sample size grows with 1/alpha.

Source: document 002, section 4, Lemma 4.1; catalogue 002, nonprivate_parity and parity_base_A (the two distributions
and the least sample sizes; the exact probabilities are derived here).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.learning.gf2 import EchelonSystems, Words, eliminate, inner, pack, random_words, unpack, words
from mechanisms.learning.parity import MOST_BITS, NULL, SubsetLearner

#: Runs that are drawn together, so that memory does not grow with their number; arbitrary.
_TOGETHER = 2048
#: Rows more than variables in a first attempt: uniform ones miss full rank with probability 2^-12 then.
_MARGIN = 12
#: Probability that is neglected where sizes of subsets are averaged over: below rounding.
_NEGLECTED = 1e-16
#: What is left out where a probability has come as close to 1: about the rounding of its sum.
_ROUNDING = 1e-13


def lemma_size(epsilon: float, alpha: float, d: int) -> int:
    """Sample size of Lemma 4.1: ``(8 / (epsilon alpha)) (d ln 2 + ln 4)``."""
    return math.ceil(8.0 / (epsilon * alpha) * (d * math.log(2.0) + math.log(4.0)))


def elimination_size(alpha: float, beta: float, d: int) -> int:
    """Sample size that suffices without privacy: ``(d ln 2 + ln(1/beta)) / alpha``."""
    return math.ceil((d * math.log(2.0) - math.log(beta)) / alpha)


class InputDistribution(Protocol):
    """A distribution of x."""

    def systems(
        self, d: int, rows: int, taken: float, concept: Words, n: int, rng: np.random.Generator
    ) -> EchelonSystems:
        """Subsets of `n` samples of so many rows, each row taken with a probability; labelled, and eliminated."""
        ...

    def errors(self, wrong: IntArray, d: int) -> FloatArray:
        """Errors of hypotheses with so many wrong bits, any shape."""
        ...

    def success(self, d: int, rows: int, taken: float, alpha: float) -> float:
        """Probability that a uniform solution of such a subset has an error of at most alpha."""
        ...


@dataclass(frozen=True)
class UniformInputs:
    """All x have the same probability."""

    def systems(
        self, d: int, rows: int, taken: float, concept: Words, n: int, rng: np.random.Generator
    ) -> EchelonSystems:
        """Draw the sizes of the subsets, then rows as far as they are needed."""
        left = rng.binomial(rows, taken, n)
        found = _labelled_system(d, left, d + _MARGIN, concept, rng)
        left = np.maximum(left - d - _MARGIN, 0)
        while np.any(short := (found.rank < d) & (left > 0)):
            # Rows of those that have full rank say nothing new: they are all labelled by one parity.
            left[~short] = 0
            more = _drawn_rows(d, left, _MARGIN, concept, rng)
            left = np.maximum(left - _MARGIN, 0)
            found = found.extended(*more)
        return found

    def errors(self, wrong: IntArray, d: int) -> FloatArray:
        """1/2 for each hypothesis that is not the concept."""
        del d
        return np.where(wrong > 0, 0.5, 0.0)

    def success(self, d: int, rows: int, taken: float, alpha: float) -> float:
        """``E[2^(rank - d)]`` of a matrix of Bin(rows, taken) uniform rows, for alpha < 1/2."""
        return 1.0 if alpha >= 0.5 else _mean_over_sizes(_uniform_hits(d), rows, taken)


@dataclass(frozen=True)
class SparseInputs:
    """x is a random unit vector with probability `mass`, and 0 otherwise."""

    mass: float

    def __post_init__(self) -> None:
        require(0 < self.mass <= 1, "mass in (0, 1]", self.mass)

    def systems(
        self, d: int, rows: int, taken: float, concept: Words, n: int, rng: np.random.Generator
    ) -> EchelonSystems:
        """Draw how many unit vectors are in the subsets, and which; rows of zeros say nothing."""
        hits = rng.binomial(rows, taken * self.mass, n)
        unit = rng.integers(0, d, (int(hits.max(initial=0)), n))
        seen = np.zeros((d + 1, n), dtype=np.bool_)
        there = np.arange(len(unit))[:, None] < hits
        seen[np.where(there, unit, d), np.arange(n)] = True
        equations = pack(np.eye(d, dtype=np.uint8))[:, :, None]
        return eliminate(equations * seen[:d], seen[:d] & inner(equations, concept[:, None, None]))

    def errors(self, wrong: IntArray, d: int) -> FloatArray:
        """Every wrong bit is seen in one of the unit vectors."""
        return self.mass * wrong / d

    def success(self, d: int, rows: int, taken: float, alpha: float) -> float:
        """Probability that at most ``alpha d / mass`` of the bits that no unit vector says are guessed wrong."""
        return _mean_over_sizes(_sparse_hits(d, math.floor(alpha * d / self.mass + 1e-9)), rows, taken * self.mass)


def _drawn_rows(
    d: int, left: IntArray, most: int, concept: Words, rng: np.random.Generator
) -> tuple[Words, NDArray[np.bool_]]:
    """Up to `most` uniform rows for each subset that has so many left, with their labels."""
    there = np.arange(most)[:, None] < left
    rows = random_words(d, there.shape, rng) * there
    return rows, inner(rows, concept[:, None, None])


def _labelled_system(d: int, left: IntArray, most: int, concept: Words, rng: np.random.Generator) -> EchelonSystems:
    return eliminate(*_drawn_rows(d, left, most, concept, rng))


# ------------------------------------------------------------------------------------ exact


def _mean_over_sizes(given: FloatArray, rows: int, taken: float) -> float:
    """Mean of ``given[m]`` over m ~ Bin(rows, taken); the last entry stands for all m that follow."""
    low, high = stats.binom.ppf(_NEGLECTED, rows, taken), stats.binom.isf(_NEGLECTED, rows, taken)
    sizes = np.arange(max(int(low) - 1, 0), min(int(high) + 1, rows) + 1)
    return float(stats.binom.pmf(sizes, rows, taken) @ given[np.minimum(sizes, len(given) - 1)])


@lru_cache(maxsize=64)
def _uniform_hits(d: int) -> FloatArray:
    """Probability that a uniform solution of m equations with uniform rows is the concept, for m = 0, 1, ...

    The rank grows from r to r + 1 with probability ``1 - 2^(r - d)``; a solution is one of ``2^(d - rank)``.
    """
    ranks = np.arange(d + 1)
    grows = 1.0 - 2.0 ** (ranks - d)
    law = np.zeros(d + 1)
    law[0] = 1.0
    found = []
    for _ in range(d + 64):  # 64 rows more than variables: rank d but for 2^-64
        found.append(law @ 2.0 ** (ranks - d))
        law = law * (1.0 - grows) + np.append(0.0, (law * grows)[:-1])
    return np.array([*found, 1.0])


@lru_cache(maxsize=64)
def _sparse_hits(d: int, most: int) -> FloatArray:
    """Probability of at most `most` wrong bits, given m unit vectors drawn, for m = 0, 1, ...

    The number of different ones grows from s to s + 1 with probability ``1 - s/d``; each bit not said is wrong with
    probability 1/2.
    """
    seen = np.arange(d + 1)
    good = stats.binom.cdf(most, d - seen, 0.5)
    law = np.zeros(d + 1)
    law[0] = 1.0
    found = []
    for _ in range(math.ceil(d * (math.log(d) + 30.0)) + 1):  # then all are seen but for e^-30
        found.append(float(law @ good))
        if found[-1] > 1.0 - _ROUNDING:
            break
        law = law * (seen / d) + np.append(0.0, (law * (1.0 - seen / d))[:-1])
    return np.array([*found, 1.0])


# ----------------------------------------------------------------------------------- learners


@dataclass(frozen=True)
class ParityOnFreshSamples:
    """A learner on a fresh sample each time.

    Parameters
    ----------
    learner : SubsetLearner
        Which takes each row independently.
    distribution : InputDistribution
        Of x.
    rows : int
        Sample size.
    """

    learner: SubsetLearner
    distribution: InputDistribution
    rows: int

    def __post_init__(self) -> None:
        require(isinstance(self.rows, (int, np.integer)) and self.rows >= 1, "a sample size >= 1", self.rows)

    def failure(self, alpha: float) -> float:
        """Exact probability that there is no hypothesis, or one whose error is above alpha."""
        learner = self.learner
        return 1.0 - (1.0 - learner.stop) * self.distribution.success(learner.d, self.rows, learner.p, alpha)

    def __call__(self, concept: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.signedinteger]:
        """Draw `n` hypotheses, as `SubsetLearner` does, from samples labelled by a parity of shape (d,)."""
        require_draws(n)
        d = self.learner.d
        target = pack(np.asarray(concept))
        require(np.shape(concept) == (d,), f"a parity of {d} bits", np.shape(concept))
        found = np.empty((words(d), n), dtype=np.uint64)
        null = rng.random(n) < self.learner.stop
        goes_on = np.flatnonzero(~null)
        for start in range(0, len(goes_on), _TOGETHER):
            some = goes_on[start : start + _TOGETHER]
            systems = self.distribution.systems(d, self.rows, self.learner.p, target, len(some), rng)
            found[:, some] = systems.solutions(random_words(d, (len(some),), rng))
        if d <= MOST_BITS:
            return np.where(null, np.int64(NULL), found[0].astype(np.int64))
        return np.where(null[:, None], np.int8(NULL), unpack(found, d).T.astype(np.int8))


@dataclass(frozen=True)
class ParityError:
    """Error of a hypothesis under a distribution of x; 1 where there is none.

    Parameters
    ----------
    concept : tuple of int
        Bits of the true parity.
    distribution : InputDistribution
        Of x.
    """

    concept: tuple[int, ...]
    distribution: InputDistribution

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n outputs of a learner, shape (n,)."""
        found, d = np.asarray(outputs), len(self.concept)
        if found.ndim == 1:
            null = found == NULL
            wrong = np.bitwise_count(found.astype(np.uint64) ^ pack(np.array(self.concept))[0]).astype(np.int64)
        else:
            null = found[:, 0] == NULL
            wrong = (found != np.array(self.concept)).sum(axis=1)
        return np.where(null, 1.0, self.distribution.errors(wrong, d))


def least_size(learner: SubsetLearner, distribution: InputDistribution, alpha: float, beta: float) -> int:
    """Least sample size at which the exact probability of failure is at most beta, by bisection.

    Raises
    ------
    ValueError
        If none is, as where step 1 alone fails more often.
    """
    require(learner.stop < beta, f"a failure probability above {learner.stop} of step 1", beta)

    def fails(rows: int) -> bool:
        return ParityOnFreshSamples(learner, distribution, rows).failure(alpha) > beta

    high = 1
    while fails(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high
