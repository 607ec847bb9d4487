"""A private learner without a fixed sample size: rounds of twice the sample and longer descriptions; its mutants.

The document only says that such a learner exists. This is the catalogue's form of it, for one class of concepts. Round
j requests ``first * 2^j`` fresh examples. From the first half it chooses, by the exponential mechanism, a hypothesis
with a description of ``lengths[j]`` bits; on the second half it counts the hypothesis's errors, with integer noise, and
stops if they are at most 3 alpha / 4 of that half. Every example enters one mechanism of level epsilon, and how many
examples are requested depends on what was released, so what is published costs epsilon (parallel composition). The
round in which it stops is part of what is published.

The concepts are the sets of points 0, 1, 2, ...; a description of L bits says which of the first L points are in the
set. So the hypotheses of a round are 2^L sets, and the exponential mechanism over them decides about each point on its
own: the point is in the set with probability ``1 / (1 + e^(-epsilon votes / 2))``, where votes are its examples with
label 1 less those with label 0.

Source: document 002, section 3.1, "The compression version of Occam's razor"; catalogue 002,
occam_compression_doubling, whose constants are derived there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from auditor.privacy.exact import FiniteLaw, TwoSidedGeometricLaw
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
    unbounded,
)
from mechanisms.base.noise import base_for, two_sided_geometric

#: Round, and code of the hypothesis, where no round has stopped.
NEVER = -1
#: Bits of a hypothesis that fit into the int64 that publishes it.
_BITS = 62
#: Longest description whose hypotheses are listed for an exact distribution: a million of them.
_LISTED = 20


# ------------------------------------------------------------------------------- sample sizes


class OccamSchedule(NamedTuple):
    """Examples of the first round, and description lengths of all rounds."""

    first: int
    lengths: tuple[int, ...]


def share(beta: float, index: int) -> float:
    """Probability of failure of round `index`: ``beta / 2^(index + 2)``."""
    return beta / 2.0 ** (index + 2)


def schedule(alpha: float, beta: float, epsilon: float, rounds: int) -> OccamSchedule:
    """Sample sizes and lengths for which the derived theorem holds.

    Parameters
    ----------
    alpha, beta : float
        Error and probability of failure, in (0, 1/2).
    epsilon : float
        Level, > 0.
    rounds : int
        Number of rounds.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    With m examples in each half of a round and its share b of the probability of failure: the test needs
    ``m >= ln(4/b) max{57 / alpha, 16 / (alpha epsilon)}`` (round 0 decides), and descriptions of l bits need
    ``(l + 1) ln 2 + ln(1/b) <= m (alpha / 2) (1 - e^(-epsilon/2))``.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        require(0.0 < value < 0.5, f"{name} in (0, 1/2)", value)
    require_positive("epsilon", epsilon)
    require(rounds >= 1, "1 round or more", rounds)
    half = math.ceil(math.log(4.0 / share(beta, 0)) * max(57.0 / alpha, 16.0 / (alpha * epsilon)))
    lengths = []
    for j in range(rounds):
        room = (half << j) * alpha / 2.0 * -math.expm1(-epsilon / 2.0) - math.log(1.0 / share(beta, j))
        lengths.append(math.floor(room / math.log(2.0) - 1.0))
    require(lengths[0] >= 1, "a first round with descriptions of 1 bit or more", lengths)
    return OccamSchedule(2 * half, tuple(lengths))


# ------------------------------------------------------------------------------------ learners


@dataclass(frozen=True)
class _Rounds:
    """What runs on given examples and on fresh ones: the parameters, and the test."""

    first: int
    lengths: Sequence[int]
    alpha: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(self.lengths))
        require(self.first >= 2 and self.first % 2 == 0, "an even number of examples, 2 or more", self.first)
        require(len(self.lengths) > 0 and min(self.lengths) >= 0, "lengths >= 0 of one round or more", self.lengths)
        require(0.0 < self.alpha < 0.5, "alpha in (0, 1/2)", self.alpha)
        require_positive("epsilon", self.epsilon)

    @property
    def base(self) -> float:
        """Base of the noise of an error count."""
        return base_for(self.epsilon, 1)

    def allowed(self, tested: int) -> int:
        """Largest noisy number of errors among `tested` examples at which a round stops."""
        return math.floor(0.75 * self.alpha * tested)

    def requested(self, rounds: IntArray) -> IntArray:
        """Examples requested by runs that stopped in these rounds, of any shape; all of them where none stopped."""
        last = np.where(rounds == NEVER, len(self.lengths) - 1, rounds).astype(np.int64)
        return np.asarray(self.first * (2 ** (last + 1) - 1), dtype=np.int64)


class _Test(NamedTuple):
    """Errors of a hypothesis h on the tested examples: ``constant + sum over points of h(x) difference[x]``."""

    constant: int
    difference: IntArray
    size: int


@dataclass(frozen=True)
class DoublingLearner(_Rounds):
    """The learner on a given sequence of examples; publishes the round in which it stopped, and the hypothesis.

    Parameters
    ----------
    first : int
        Examples requested by round 0, even.
    lengths : sequence of int
        Bits of the descriptions in each round, at most 62.
    alpha : float
        Error that is aimed at, in (0, 1/2).
    epsilon : float
        Claimed pure level under replace-one.

    Raises
    ------
    ValueError
        If a parameter is out of range, or there are fewer than ``first (2^rounds - 1)`` examples.

    Notes
    -----
    The data are an int array of shape (examples, 2): a point >= 0 and a label 0 or 1, consistent with a concept or not.
    Outputs are int64 of shape (n, 2): the round, and the sum of 2^x over the points x of the hypothesis; -1 and -1
    where no round stopped. For privacy any lengths will do; see `schedule` for accuracy.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require(max(self.lengths) <= _BITS, f"descriptions of at most {_BITS} bits", self.lengths)

    def examples(self, data: Dataset) -> IntArray:
        """Return the examples of all rounds, shape (examples, 2)."""
        rows = np.asarray(data, dtype=np.int64)
        needed = self.first * (2 ** len(self.lengths) - 1)
        require(rows.ndim == 2 and rows.shape[1] == 2, "examples of a point and a label", rows.shape)
        require(len(rows) >= needed, f"at least {needed} examples", len(rows))
        require(bool((rows[:, 0] >= 0).all()), "points >= 0", rows[:, 0])
        require(bool(np.isin(rows[:, 1], (0, 1)).all()), "labels 0 and 1", rows[:, 1])
        return rows

    def halves(self, rows: IntArray, index: int) -> tuple[IntArray, IntArray]:
        """Return the examples that a round learns from, and those that it tests on."""
        start, half = self.first * (2**index - 1), self.first * 2**index // 2
        return rows[start : start + half], rows[start + half : start + 2 * half]

    def chances(self, train: IntArray, length: int) -> FloatArray:
        """Probability of each point to be in the hypothesis, shape (length,)."""
        return np.asarray(special.expit(self.epsilon / 2.0 * _votes(train, length)), dtype=np.float64)

    def passes(self, slack: IntArray) -> FloatArray:
        """Probability that noise is at most `slack`, shape of `slack`."""
        return TwoSidedGeometricLaw(0, self.base).cdf(slack)

    def fails(self, slack: IntArray) -> FloatArray:
        """Probability that noise is above `slack`."""
        # P[Z > t] = P[Z <= -t - 1]: without the cancellation of 1 - P.
        return TwoSidedGeometricLaw(0, self.base).cdf(-slack - 1)

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw the noise of error counts, shape (n,)."""
        return two_sided_geometric(self.base, n, rng)

    def tests(self, test: IntArray, length: int) -> _Test:
        """Return how the errors on a test half depend on the hypothesis."""
        return _Test(int((test[:, 1] == 1).sum()), -_votes(test, length), len(test))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n, 2)."""
        require_draws(n)
        rows = self.examples(data)
        out = np.full((n, 2), NEVER, dtype=np.int64)
        running = np.arange(n)
        for j, length in enumerate(self.lengths):
            train, test = self.halves(rows, j)
            bits = rng.random((running.size, length)) < self.chances(train, length)
            errors = self.tests(test, length)
            noisy = errors.constant + bits @ errors.difference + self.noise(running.size, rng)
            stops = noisy <= self.allowed(errors.size)
            out[running[stops], 0] = j
            out[running[stops], 1] = bits[stops] @ (1 << np.arange(length, dtype=np.int64))
            running = running[~stops]
        return out

    def outcomes(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`, for descriptions of at most 20 bits."""
        require(max(self.lengths) <= _LISTED, f"descriptions of at most {_LISTED} bits", self.lengths)
        rows, reached = self.examples(data), 1.0
        found: dict[tuple[int, int], float] = {}
        for j, length in enumerate(self.lengths):
            train, test = self.halves(rows, j)
            codes = np.arange(1 << length)
            bits = codes[:, None] >> np.arange(length) & 1
            chances, errors = self.chances(train, length), self.tests(test, length)
            mass = np.where(bits == 1, chances, 1.0 - chances).prod(axis=1)
            slack = self.allowed(errors.size) - errors.constant - bits @ errors.difference
            for code, p in zip(codes.tolist(), (reached * mass * self.passes(slack)).tolist(), strict=True):
                found[j, code] = p
            reached *= float(mass @ self.fails(slack))
        found[NEVER, NEVER] = reached
        return FiniteLaw(tuple(found), np.array(list(found.values())))


def _votes(rows: IntArray, length: int) -> IntArray:
    """Examples with label 1 less those with label 0 of the first `length` points, shape (length,)."""
    inside = rows[rows[:, 0] < length]
    return np.bincount(inside[:, 0], 2 * inside[:, 1] - 1, minlength=length).astype(np.int64)


@dataclass(frozen=True)
class FreshExamples(_Rounds):
    """The learner on fresh examples of a distribution; publishes the round, and the true error of the hypothesis.

    Parameters as in `DoublingLearner`, with descriptions of any length. The data are the distribution: an array of
    shape (points, 2) with each point's probability and its label under the concept.

    Notes
    -----
    Examples of a round are fresh, so their numbers at each point are multinomial, and given the hypothesis the errors
    on the test half are binomial. Outputs are float64 of shape (n, 2); (-1, 1) where no round stopped: nothing was
    learned.
    """

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n, 2)."""
        require_draws(n)
        weights, labels = (np.asarray(column, dtype=np.float64) for column in np.asarray(data).T)
        require(abs(float(weights.sum()) - 1.0) < 1e-9, "probabilities that sum to 1", float(weights.sum()))
        out = np.tile([float(NEVER), 1.0], (n, 1))
        running = np.arange(n)
        for j, length in enumerate(self.lengths):
            if not running.size:
                break
            half = self.first * 2**j // 2
            votes = rng.multinomial(half, weights, running.size) * np.where(labels == 1, 1, -1)
            chances = special.expit(self.epsilon / 2.0 * votes) * (np.arange(weights.size) < length)
            bits = rng.random(chances.shape) < chances
            # Sums of probabilities may exceed 1 by a rounding.
            error = np.minimum((bits != (labels == 1)) @ weights, 1.0)
            noisy = rng.binomial(half, error) + two_sided_geometric(self.base, running.size, rng)
            stops = noisy <= self.allowed(half)
            out[running[stops]] = np.column_stack([np.full(int(stops.sum()), float(j)), error[stops]])
            running = running[~stops]
        return out

    def wrong_decision(self, error: float, index: int) -> tuple[float, float]:
        """Probabilities that round `index` stops, and that it does not, with a hypothesis of this error; exact."""
        half = self.first * 2**index // 2
        counts = np.arange(half + 1)
        mass, slack = stats.binom.pmf(counts, half, error), self.allowed(half) - counts
        noise = TwoSidedGeometricLaw(0, self.base)
        return float(mass @ noise.cdf(slack)), float(mass @ noise.cdf(-slack - 1))


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class EarlierRoundsReused(DoublingLearner):
    """A round learns from, and tests on, the examples of earlier rounds too."""

    def halves(self, rows: IntArray, index: int) -> tuple[IntArray, IntArray]:
        """Return the halves of all rounds so far."""
        parts = [super(EarlierRoundsReused, self).halves(rows, j) for j in range(index + 1)]
        return np.concatenate([train for train, _ in parts]), np.concatenate([test for _, test in parts])


@dataclass(frozen=True)
class UnnoisedStoppingTest(DoublingLearner):
    """The errors are counted without noise."""

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Return zeros."""
        del rng
        return np.zeros(n, dtype=np.int64)

    def passes(self, slack: IntArray) -> FloatArray:
        """1 or 0."""
        return np.asarray(slack >= 0, dtype=np.float64)

    def fails(self, slack: IntArray) -> FloatArray:
        """0 or 1."""
        return np.asarray(slack < 0, dtype=np.float64)


@dataclass(frozen=True)
class ClassFromData(DoublingLearner):
    """Descriptions name points among the examples: a point that does not occur is in no hypothesis."""

    def chances(self, train: IntArray, length: int) -> FloatArray:
        """0 for a point that does not occur."""
        occurs = np.isin(np.arange(length), train[:, 0])
        return np.asarray(np.where(occurs, super().chances(train, length), 0.0), dtype=np.float64)


def _all_rounds(base: DoublingLearner) -> float:
    return len(base.lengths) * base.epsilon


MUTANTS: dict[str, Mutant[DoublingLearner]] = tabulate_mutants(
    Mutant(
        "earlier_rounds_reused",
        Twin(EarlierRoundsReused),
        _all_rounds,
        "violation",
        "a tested example is tested again in every later round: rounds times epsilon, where no round stops",
    ),
    Mutant(
        "unnoised_stopping_test",
        Twin(UnnoisedStoppingTest),
        unbounded,
        "violation",
        "one error more than allowed, or just as many: the round stops, or does not",
    ),
    Mutant(
        "class_built_from_data",
        Twin(ClassFromData),
        unbounded,
        "violation",
        "only points among the examples are described: a point that occurs once, or not at all",
    ),
)
