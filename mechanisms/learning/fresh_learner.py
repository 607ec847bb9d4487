"""The generic learner on fresh examples, and distributions on which it is about as bad as it can be.

Nothing is drawn but numbers of mistakes: they are all that the learner sees of its sample.

Source: document 002, Theorem 3.4 and the remark after it, Corollary 3.6; catalogue 002, exp_mech_generic_agnostic,
exp_mech_realizable, vc_finite_domain_learner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import special, stats

from mechanisms.base.mechanism import FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import gauss_legendre
from mechanisms.learning.agnostic_learner import gumbel_choice
from mechanisms.learning.hypotheses import HypothesisClass, PointFunctions, counts_of

#: Errors are this part further from the best one than the alpha that they are named by: "just above alpha".
_ABOVE = 1e-9
#: Standard deviations of a binomial variable that sums are taken over: e^-40.5 of the mass is beyond either end.
_REACH = 9.0
#: Numbers of mistakes of independent hypotheses that are drawn at once: 32 MB. Arbitrary.
_BLOCK = 1 << 22
#: The Gumbel density falls as e^-t above and as exp(-e^-t) below: outside of -4 .. 40 of the modes 1e-17 is left.
_GUMBEL = (-4.0, 40.0)


class ExampleDistribution(Protocol):
    """A distribution of labelled examples, as far as a class of hypotheses sees it.

    Hypotheses that agree wherever there are examples are one group.
    """

    @property
    def multiplicities(self) -> FloatArray:
        """Hypotheses in each group, shape (groups,)."""
        ...

    @property
    def errors(self) -> FloatArray:
        """Misclassification error of each group, shape (groups,)."""
        ...

    def mistakes(self, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Mistakes of each group on n samples of so many examples; shape (n, groups)."""
        ...


@dataclass(frozen=True)
class FreshLearner:
    """Draw a sample, and choose a hypothesis as `AgnosticLearner` does.

    Parameters
    ----------
    epsilon : float
        Claimed pure level of the learner.
    size : int
        Examples a sample.

    Notes
    -----
    The data are `ExampleDistribution`; the output is the number of the group that the chosen hypothesis is in.
    """

    epsilon: float
    size: int

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a sample size >= 1", self.size)

    @property
    def rate(self) -> float:
        """What a mistake takes off a hypothesis's exponent."""
        return 0.5 * self.epsilon

    def __call__(self, examples: ExampleDistribution, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` groups, each on a sample of its own; int64 of shape (n,)."""
        require_draws(n)
        sizes = np.log(examples.multiplicities)
        chosen = np.empty(n, dtype=np.int64)
        step = max(1, _BLOCK // sizes.size)
        for start in range(0, n, step):
            runs = min(step, n - start)
            wrong = examples.mistakes(self.size, runs, rng)
            chosen[start : start + runs] = gumbel_choice(sizes - self.rate * wrong, runs, rng)
        return chosen


@dataclass(frozen=True)
class FreshEpsHalved(FreshLearner):
    """Half of the level is left unused."""

    @property
    def rate(self) -> float:
        """Half the rate."""
        return 0.25 * self.epsilon


@dataclass(frozen=True)
class FreshScoreOverN(FreshLearner):
    """Error rates are weighted as if they were numbers of mistakes."""

    @property
    def rate(self) -> float:
        """The rate over the sample size."""
        return 0.5 * self.epsilon / self.size


@dataclass(frozen=True)
class FreshSignFlipped(FreshLearner):
    """Mistakes are sought."""

    @property
    def rate(self) -> float:
        """The negated rate."""
        return -0.5 * self.epsilon


@dataclass(frozen=True, eq=False)
class FiniteExampleDistribution:
    """Examples from finitely many labelled points.

    Parameters
    ----------
    hypotheses : HypothesisClass
        What the learner chooses from.
    records : ndarray of int64, shape (records, 2)
        Points and labels; the same point may have both labels.
    weights : ndarray of shape (records,)
        Their probabilities.
    """

    hypotheses: HypothesisClass
    records: IntArray
    weights: FloatArray

    def __post_init__(self) -> None:
        counts_of(self.records, self.hypotheses.domain)
        good = self.weights.shape == (len(self.records),) and bool(np.all(self.weights > 0))
        require(good and abs(float(self.weights.sum()) - 1.0) < 1e-12, "probabilities > 0, one a record", self.weights)

    @cached_property
    def _groups(self) -> tuple[FloatArray, FloatArray]:
        """Whether each group gets each record wrong, shape (records, groups), and the sizes of the groups."""
        wrong = self.hypotheses.labels(self.records[:, 0]) != (self.records[:, 1] == 1)[:, None]
        kinds, sizes = np.unique(wrong, axis=1, return_counts=True)
        return kinds.astype(np.float64), sizes.astype(np.float64)

    @property
    def multiplicities(self) -> FloatArray:
        """Hypotheses in each group, shape (groups,)."""
        return self._groups[1]

    @property
    def errors(self) -> FloatArray:
        """Misclassification error of each group, shape (groups,)."""
        return np.asarray(self.weights @ self._groups[0], dtype=np.float64)

    def mistakes(self, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Mistakes of each group on n samples of so many examples; shape (n, groups)."""
        drawn = rng.multinomial(size, self.weights, size=n).astype(np.float64)
        return (drawn @ self._groups[0]).astype(np.int64)

    def failure(self, learner: FreshLearner, excess: float) -> float:
        """Exact probability that the learner's error is `excess` or more above the least one; two records only.

        A sum over the binomial number of the first record, from which all numbers of mistakes follow.
        """
        require(len(self.records) == 2, "a distribution on two records", self.records)
        first, pmf = _binomial(learner.size, float(self.weights[0]))
        counts = np.stack([first, learner.size - first], axis=1)
        exponents = np.log(self.multiplicities) - learner.rate * (counts @ self._groups[0])
        failing = self.errors >= self.errors.min() + excess
        return float(pmf @ special.softmax(exponents, axis=1)[:, failing].sum(axis=1))


def identical_realizable(hypotheses: int, alpha: float) -> FiniteExampleDistribution:
    """All hypotheses but one are wrong on the same part alpha of the examples, and that one never is.

    Points, of which the first has label 1 and probability alpha; the rest is a point outside of all hypotheses, with
    label 0. Source: catalogue 002, exp_mech_generic_agnostic, the hard instance.
    """
    require(hypotheses >= 2, "two hypotheses", hypotheses)
    error = _check_probability(alpha * (1.0 + _ABOVE))
    records = np.array([[0, 1], [hypotheses, 0]], dtype=np.int64)
    return FiniteExampleDistribution(PointFunctions(hypotheses, 1), records, np.array([error, 1.0 - error]))


def identical_agnostic(hypotheses: int, alpha: float) -> FiniteExampleDistribution:
    """All hypotheses but one have error ``(1 + alpha) / 2`` on the same examples, and that one ``(1 - alpha) / 2``.

    Points, and examples at the first one only, with label 1 in a part ``(1 + alpha) / 2`` of them.
    """
    require(hypotheses >= 2, "two hypotheses", hypotheses)
    error = _check_probability(0.5 * (1.0 + alpha * (1.0 + _ABOVE)))
    records = np.array([[0, 1], [0, 0]], dtype=np.int64)
    return FiniteExampleDistribution(PointFunctions(hypotheses), records, np.array([error, 1.0 - error]))


@dataclass(frozen=True)
class IndependentBits:
    """Points of independent bits with label 0, and the hypothesis ``h_j(x) = x_j`` for each bit.

    Parameters
    ----------
    hypotheses : int
        Bits.
    alpha : float
        The first bit is 1 with probability ``(1 - alpha) / 2``, the others with ``(1 + alpha) / 2``: their mistakes are
        independent, where those of `identical_agnostic` are the same.
    """

    hypotheses: int
    alpha: float

    def __post_init__(self) -> None:
        require(self.hypotheses >= 2, "two hypotheses", self.hypotheses)
        _check_probability(self.alpha)

    @property
    def multiplicities(self) -> FloatArray:
        """Each hypothesis is a group of its own; shape (hypotheses,)."""
        return np.ones(self.hypotheses)

    @property
    def errors(self) -> FloatArray:
        """Misclassification errors, shape (hypotheses,)."""
        worse = 0.5 * (1.0 + self.alpha * (1.0 + _ABOVE))
        return np.where(np.arange(self.hypotheses) == 0, 1.0 - worse, worse)

    def mistakes(self, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Mistakes of each hypothesis on n samples of so many examples; shape (n, hypotheses)."""
        return rng.binomial(size, self.errors, size=(n, self.hypotheses)).astype(np.int64)

    def failure(self, learner: FreshLearner, excess: float) -> float:
        """Exact probability that another hypothesis than the first one is chosen; 0 for a larger excess than alpha.

        Exponents with Gumbel noise are independent, so the first one is the largest with probability
        ``integral of f_0(t) F(t)^(K - 1)``, F the distribution function of the others, by Gauss-Legendre quadrature.
        """
        if self.errors[-1] - self.errors[0] < excess:
            return 0.0
        best, worse = (_binomial(learner.size, float(self.errors[j])) for j in (0, -1))
        ends = sorted(-learner.rate * float(best[0][i]) for i in (0, -1))
        t, w = gauss_legendre(np.array([ends[0] + _GUMBEL[0], ends[1] + _GUMBEL[1]]), 2.0)
        centred = t[:, None] + learner.rate * best[0]
        with np.errstate(over="ignore"):  # exp(-exp(large)) is 0, as it should be
            density = np.exp(-centred - np.exp(-centred)) @ best[1]
            below = np.exp(-np.exp(-t[:, None] - learner.rate * worse[0])) @ worse[1]
        # 1 - F^(K - 1) without cancellation would need 1 - F; 1e-13 is enough for failures of a few percent.
        return float(w @ (density * -np.expm1((self.hypotheses - 1) * np.log(np.maximum(below, 1e-300)))))


@dataclass(frozen=True, eq=False)
class ExcessError:
    """By how much the error of what was chosen exceeds the least one of the class.

    Parameters
    ----------
    examples : ExampleDistribution
        What the learner was run on.
    best : float, optional
        The error to compare with, if not the least one of the class.
    """

    examples: ExampleDistribution
    best: float | None = None

    def __call__(self, outputs: IntArray) -> FloatArray:
        """Excess of n groups, shape (n,)."""
        errors = self.examples.errors
        best = float(errors.min()) if self.best is None else self.best
        return np.asarray(errors[np.asarray(outputs, dtype=np.int64)] - best, dtype=np.float64)


# -------------------------------------------------------------------------------- sample sizes


def agnostic_bound(logarithm: float, epsilon: float, alpha: float, beta: float) -> float:
    """``(ln(|H| - 1) + ln(1 / beta)) max{4 / (eps alpha), 2 / alpha^2}``, which suffices for any distribution.

    Parameters
    ----------
    logarithm : float
        ``ln(|H| - 1)``, or an upper bound on it.
    epsilon, alpha, beta : float
        The learner's level, the excess error, and the probability of more.

    Notes
    -----
    A hypothesis whose error is alpha above the best one's is chosen with probability at most ``E e^(-s D)`` for any s
    in [0, eps / 2], with D its mistakes less those of the best one, a sum of n terms in [-1, 1] of mean alpha or more.
    By Hoeffding's lemma that is at most ``exp(-n (s alpha - s^2 / 2))``; s = min(eps / 2, alpha) gives
    ``exp(-n alpha^2 / 2)`` or, for eps < 2 alpha, ``exp(-n eps alpha / 4)`` at most. See `agnostic_failure`.
    """
    return (logarithm - math.log(beta)) * max(4.0 / (epsilon * alpha), 2.0 / alpha**2)


def agnostic_failure(hypotheses: int, epsilon: float, alpha: float, size: float) -> float:
    """Bound on the probability of failure that `agnostic_bound` rests on."""
    exponent = 0.5 * alpha**2 if epsilon >= 2.0 * alpha else 0.25 * epsilon * alpha
    return (hypotheses - 1) * math.exp(-size * exponent)


def printed_size(hypotheses: int, epsilon: float, alpha: float, beta: float, constant: float = 6.0) -> float:
    """Sample size of the proof of Theorem 3.4: ``6 (ln|H| + ln(1 / beta)) max{1 / (eps alpha), 1 / alpha^2}``."""
    return constant * math.log(hypotheses / beta) * max(1.0 / (epsilon * alpha), 1.0 / alpha**2)


def printed_failure(hypotheses: int, epsilon: float, alpha: float, size: float) -> float:
    """Bound on the probability of failure in that proof: ``|H| (2 e^(-2 n alpha^2 / 9) + e^(-eps n alpha / 6))``."""
    return hypotheses * (2.0 * math.exp(-2.0 * size * alpha**2 / 9.0) + math.exp(-epsilon * size * alpha / 6.0))


def realizable_bound(logarithm: float, epsilon: float, alpha: float, beta: float) -> float:
    """``(ln(|H| - 1) + ln(1 / beta)) / (alpha (1 - e^(-eps / 2)))``, which suffices where a hypothesis has no error.

    Parameters as in `agnostic_bound`. A hypothesis of error alpha or more is chosen with probability at most
    ``E e^(-(eps / 2) B) = (1 - alpha (1 - e^(-eps / 2)))^n``, with B binomial.
    """
    return (logarithm - math.log(beta)) / (alpha * -math.expm1(-0.5 * epsilon))


def realizable_failure(hypotheses: int, epsilon: float, alpha: float, size: float) -> float:
    """Bound on the probability of failure that `realizable_bound` rests on."""
    return (hypotheses - 1) * math.exp(size * math.log1p(alpha * math.expm1(-0.5 * epsilon)))


def least_size(failure: Callable[[int], float], beta: float, high: int) -> int:
    """Least sample size, up to `high`, whose probability of failure is at most `beta`; it must fall with the size.

    Raises
    ------
    ValueError
        If `high` does not suffice.
    """
    require(failure(high) <= beta, f"a sample size that fails with probability {beta} at most", high)
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if failure(middle) <= beta else (middle, high)
    return high


def _binomial(size: int, p: float) -> tuple[FloatArray, FloatArray]:
    """Values of a binomial variable within `_REACH` standard deviations, and a little more, and their probabilities."""
    # A Poisson tail is longer than a normal one: 20 more on either side, where the variance is small.
    away = _REACH * math.sqrt(size * p * (1.0 - p)) + 20.0
    k = np.arange(max(0, math.floor(size * p - away)), min(size, math.ceil(size * p + away)) + 1, dtype=np.float64)
    return k, np.asarray(stats.binom.pmf(k, size, p), dtype=np.float64)


def _check_probability(probability: float) -> float:
    require(0 < probability < 1, "a probability in (0, 1)", probability)
    return probability
