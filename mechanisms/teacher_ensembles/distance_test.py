"""A value is released if its noisy distance to instability is above a threshold; and one such test for each query.

Outputs are integers: the value, or `BOTTOM`. So the noise, continuous Laplace noise, is never seen: only whether it is
above a number.

Source: document 004, Algorithm 2, Theorems 3.2 and 3.5; the remark on advanced composition in section 3.2; catalogue
004, a_stab and adv_comp_baseline.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

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
from mechanisms.base.noise import without_low_bits
from mechanisms.teacher_ensembles.online_release import BOTTOM, DistanceStream
from mechanisms.teacher_ensembles.vote_distance import DistanceQuestion, MostFrequentGroup, checked, uncapped_distance

# Transcripts that a distribution lists, at most: 2^16 of them take some tenths of a second.
_MOST_QUERIES = 16


def laplace_tails(t: float, scale: float) -> tuple[float, float]:
    """Probabilities that Laplace noise is above t and not above it, each without loss of digits."""
    tail = 0.5 * math.exp(-abs(t) / scale)
    return (tail, 1.0 - tail) if t >= 0 else (1.0 - tail, tail)


@dataclass(frozen=True)
class DistanceTest:
    """Algorithm 2: the value, if its distance to instability plus Lap(1/eps) is above ``ln(1/delta) / eps``.

    Parameters
    ----------
    question : DistanceQuestion
        The value and its distance, which moves by at most 1 between neighbours and is 0 where the value changes.
    epsilon, delta : float
        The claimed level; delta in (0, 1).

    Notes
    -----
    Exactly (eps, delta/2)-DP: where neighbours have one value the loss is at most eps, and where not, each of them is
    released with probability delta/2.
    """

    question: DistanceQuestion
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 < self.delta < 1, "a delta in (0, 1)", self.delta)

    def bar(self, data: Dataset) -> float:
        """Return Gamma, what the noisy distance must exceed."""
        del data  # only a mutant looks at it
        return -math.log(self.delta) / self.epsilon

    def scale(self, distance: float) -> float:
        """Return the scale of the noise."""
        del distance  # only a mutant looks at it
        return 1.0 / self.epsilon

    def found(self, data: Dataset) -> tuple[int, float]:
        """Return the value and its distance; ValueError for a value below 0."""
        value, distance = self.question(data)
        require(value >= 0, "a value >= 0", value)
        return value, distance

    def release_probability(self, distance: float) -> float:
        """Return the exact probability that the value is released at a distance, for a threshold without data."""
        return laplace_tails(self.bar(()) - distance, self.scale(distance))[0]

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,)."""
        require_draws(n)
        value, distance = self.found(data)
        noisy = distance + rng.laplace(0.0, self.scale(distance), n)
        return np.where(noisy > self.bar(data), value, BOTTOM)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: the value and `BOTTOM`."""
        value, distance = self.found(data)
        return FiniteLaw((value, BOTTOM), np.array(laplace_tails(self.bar(data) - distance, self.scale(distance))))


def sufficient_distance(epsilon: float, delta: float, beta: float) -> float:
    """Distance of Theorem 3.5: ``(ln(1/delta) + ln(1/beta)) / eps``."""
    return (math.log(1.0 / delta) + math.log(1.0 / beta)) / epsilon


def required_distance(test: DistanceTest, beta: float) -> float:
    """Least distance, a real number, at which the value is released with probability 1 - beta, by bisection."""
    require(0 < beta < 0.5, "a beta in (0, 1/2)", beta)
    most = sufficient_distance(test.epsilon, test.delta, beta)
    return float(optimize.brentq(lambda d: 1.0 - test.release_probability(d) - beta, 0.0, most, xtol=1e-12 * most))


# ------------------------------------------------------------------------- one test for each query


@dataclass(frozen=True)
class IndependentTests:
    """A distance test for each of m queries, for (eps, delta) in all by advanced composition.

    Parameters
    ----------
    stream : DistanceStream
        The queries.
    epsilon, delta : float
        The claimed level of all of them; delta in (0, 1).

    Notes
    -----
    Each test is at ``eps / sqrt(8 m ln(2/delta))`` and ``delta / (2 m)``. Outputs are int64 of shape (n, m).
    """

    stream: DistanceStream
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 < self.delta < 1, "a delta in (0, 1)", self.delta)

    @property
    def epsilon_each(self) -> float:
        """Level of one test."""
        return self.epsilon / math.sqrt(8.0 * self.stream.queries * math.log(2.0 / self.delta))

    @property
    def delta_each(self) -> float:
        """Delta of one test."""
        return self.delta / (2.0 * self.stream.queries)

    @property
    def bar(self) -> float:
        """What a noisy distance must exceed."""
        return -math.log(self.delta_each) / self.epsilon_each

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n, m)."""
        require_draws(n)
        values, distances = self.stream(data)
        noisy = distances + rng.laplace(0.0, 1.0 / self.epsilon_each, (n, distances.size))
        return np.where(noisy > self.bar, values, BOTTOM)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`, over tuples; ValueError for more than 16 queries."""
        values, distances = self.stream(data)
        require(values.size <= _MOST_QUERIES, f"at most {_MOST_QUERIES} queries", values.size)
        mass, outcomes = np.ones(1), list(itertools.product(*((int(value), BOTTOM) for value in values)))
        for distance in distances:
            mass = np.multiply.outer(mass, laplace_tails(self.bar - distance, 1.0 / self.epsilon_each)).ravel()
        return FiniteLaw(tuple(outcomes), mass)

    def failure(self, distance: float) -> float:
        """Return the exact probability that some query at that distance is not answered, where all are there."""
        one = laplace_tails(self.bar - distance, 1.0 / self.epsilon_each)[1]
        return -math.expm1(self.stream.queries * math.log1p(-one))

    def sufficient(self, beta: float) -> float:
        """Return ``(ln(2m/delta) + ln(m/(2 beta))) / eps'``, at which all are answered w.p. 1 - beta."""
        return self.bar + math.log(self.stream.queries / (2.0 * beta)) / self.epsilon_each

    def needed(self, beta: float) -> float:
        """Return the least distance at which all queries are answered with probability 1 - beta, exactly."""
        require(0 < beta < 0.5, "a beta in (0, 1/2)", beta)
        most = self.sufficient(beta) + 1.0
        return float(optimize.brentq(lambda d: self.failure(d) - beta, self.bar, most, xtol=1e-12 * most))


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class DistanceOfSensitivityTwo(DistanceTest):
    """A distance of sensitivity 2, with the noise for 1."""

    def found(self, data: Dataset) -> tuple[int, float]:
        """Return twice the distance."""
        value, distance = super().found(data)
        return value, 2.0 * distance


@dataclass(frozen=True)
class DistanceOffByOne(DistanceTest):
    """The number of changes until the value changes: one more than the distance to instability."""

    def found(self, data: Dataset) -> tuple[int, float]:
        """Return the distance and 1."""
        value, distance = super().found(data)
        return value, distance + 1.0


@dataclass(frozen=True)
class ThresholdWithoutEpsilon(DistanceTest):
    """A threshold that is not divided by eps."""

    def bar(self, data: Dataset) -> float:
        """Return ``ln(1/delta)``."""
        return super().bar(data) * self.epsilon


@dataclass(frozen=True)
class InvertedNoise(DistanceTest):
    """Noise of scale eps."""

    def scale(self, distance: float) -> float:
        """Return eps."""
        del distance
        return self.epsilon


@dataclass(frozen=True)
class NoisyDistanceReleased:
    """The noisy distance is released too.

    Parameters
    ----------
    test : DistanceTest
        The test.
    """

    test: DistanceTest

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n, 2): the value or -1, and the noisy distance without its low bits."""
        require_draws(n)
        value, distance = self.test.found(data)
        noisy = distance + rng.laplace(0.0, self.test.scale(distance), n)
        released = np.where(noisy > self.test.bar(data), float(value), float(BOTTOM))
        return np.stack([released, without_low_bits(noisy)], axis=1)


@dataclass(frozen=True)
class ValueOnBottomBranch(DistanceTest):
    """The value where bottom is due, too."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Return the value, `n` times."""
        del rng
        require_draws(n)
        return np.full(n, self.found(data)[0], dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: a point."""
        return FiniteLaw((self.found(data)[0],), np.ones(1))


@dataclass(frozen=True)
class ThresholdOfDataSize(DistanceTest):
    """The threshold for ``delta = 1/n``, with the number of rows of the data at hand."""

    def bar(self, data: Dataset) -> float:
        """Return ``ln(n) / eps``; 0 without rows."""
        return math.log(max(len(data), 1)) / self.epsilon


@dataclass(frozen=True)
class SmoothSensitivityScale(DistanceTest):
    """Noise scaled to the smooth sensitivity of the value, ``e^(-eps distance)``, for the distance's, which is 1."""

    def scale(self, distance: float) -> float:
        """Return ``e^(-eps distance) / eps``."""
        return math.exp(-self.epsilon * distance) / self.epsilon


def removal_distance(counts: ArrayLike) -> IntArray:
    """Distance of the most frequent value to instability if rows can only be removed; shape (...).

    A value without rows never comes before the leader, unless it wins ties against it: then the distance is the largest
    integer there is.
    """
    array = checked(counts)
    leader = array.argmax(axis=-1)[..., None]
    behind, later = np.take_along_axis(array, leader, axis=-1) - array, np.arange(array.shape[-1]) > leader
    possible = (np.arange(array.shape[-1]) != leader) & ~(later & (array == 0))
    return np.asarray(np.where(possible, behind + later, np.iinfo(np.int64).max).min(axis=-1) - 1)


def _question(base: DistanceTest) -> MostFrequentGroup:
    if isinstance(base.question, MostFrequentGroup):
        return base.question
    raise ValueError(f"expected a question that is a MostFrequentGroup, got {base.question!r}")


def _uncap_distance(base: DistanceTest) -> DistanceTest:
    return replace(base, question=replace(_question(base), distance=uncapped_distance))


def _removals_only(base: DistanceTest) -> DistanceTest:
    return replace(base, question=replace(_question(base), distance=removal_distance))


def _inverse_epsilon(base: DistanceTest) -> float:
    return 1.0 / base.epsilon


MUTANTS: dict[str, Mutant[DistanceTest]] = tabulate_mutants(
    Mutant(
        "distance_of_sensitivity_two",
        Twin(DistanceOfSensitivityTwo),
        TimesEpsilon(2.0),
        "violation",
        "twice the distance with noise for 1: 2 eps where the value is one",
    ),
    Mutant(
        "distance_off_by_one",
        Twin(DistanceOffByOne),
        unbounded,
        "violation",
        "distance to change: 1 on both sides of a flip, which leaks e^eps delta/2; a violation for e^eps > 2",
    ),
    Mutant(
        "threshold_without_eps",
        Twin(ThresholdWithoutEpsilon),
        unbounded,
        "violation",
        "Gamma = ln(1/delta): a flip leaks delta^eps / 2, more than delta for eps < 1 - ln 2 / ln(1/delta)",
    ),
    Mutant(
        "noise_inverted",
        Twin(InvertedNoise),
        _inverse_epsilon,
        "violation",
        "Lap(eps): 1/eps where the value is one, a violation for eps < 1",
    ),
    Mutant(
        "noisy_distance_released",
        NoisyDistanceReleased,
        TimesEpsilon(1.0),
        "benign",
        "the noisy distance is as private as the test, which is a function of it",
    ),
    Mutant("value_on_the_bot_branch", Twin(ValueOnBottomBranch), unbounded, "violation", "the value is shown anyway"),
    Mutant(
        "data_dependent_threshold",
        Twin(ThresholdOfDataSize),
        unbounded,
        "violation",
        "delta = 1/n for the n at hand: a flip leaks 1/(2n), half of a single row",
    ),
    Mutant("distance_not_capped_at_zero", _uncap_distance, TimesEpsilon(1.0), "benign", "gap - 1, and -1 in a tie"),
    Mutant(
        "removals_only",
        _removals_only,
        unbounded,
        "violation",
        "the distance as if no row could be added: without limit where only an added row could lead",
    ),
    Mutant(
        "smooth_sensitivity_mix_up",
        Twin(SmoothSensitivityScale),
        None,
        "violation",
        "noise of scale e^(-eps distance)/eps: hardly any where the threshold is; the level depends on eps and delta",
    ),
)


@dataclass(frozen=True)
class EpsilonOverTests(IndependentTests):
    """Each test at eps/m, by basic composition."""

    @property
    def epsilon_each(self) -> float:
        """``eps / m``."""
        return self.epsilon / self.stream.queries


@dataclass(frozen=True)
class UndividedDelta(IndependentTests):
    """Each test at the whole delta."""

    @property
    def delta_each(self) -> float:
        """The delta that is claimed for all."""
        return self.delta


INDEPENDENT: dict[str, Mutant[IndependentTests]] = tabulate_mutants(
    Mutant(
        "eps_over_m", Twin(EpsilonOverTests), TimesEpsilon(1.0), "benign", "eps/m for each test: more noise than is due"
    ),
    Mutant(
        "delta_not_divided",
        Twin(UndividedDelta),
        unbounded,
        "violation",
        "m flips leak delta/2 each, more than delta from m = 3",
    ),
)
