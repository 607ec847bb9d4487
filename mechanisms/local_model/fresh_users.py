"""Answers of local protocols whose users are drawn from a distribution, and how many users they take.

`FreshUsers` is what a statistical-query algorithm meets where each of its queries is asked to users of its own: an
oracle that keeps to its tolerance with a probability that is known. Nothing is drawn but the sums. A sum of n two-sided
geometric variables is the difference of two negative binomial ones, so an answer costs the same whatever n is.

Source: document 002, section 5.1.1, Lemma 5.6; catalogue 002, local_sq_query. The lemma's constant is not stated: the
sample sizes here are the catalogue's, with the Laplace tail as it should be. The lemma has no range of epsilon, and is
false for large ones; `printed_users` is what it asks for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from mechanisms.base.mechanism import FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import base_for

# Characteristic functions are followed to where they are below this: far below the last digit of a probability.
_SMALL = 1e-18
# Mass that a period may fold back is beyond this many deviations and noise scales: below e^-45 = 3e-20.
_REACH = 45.0
# Terms of an inversion; more would take seconds.
_MOST_TERMS = 1 << 22
# Records of `ReusedUsers` that are in memory at once, in bytes: what a cache may hold. Arbitrary.
_MOST_BYTES = 1 << 22


def noise_sums(a: float, terms: int, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
    """Draw sums of `terms` independent two-sided geometric variables of base `a`; int64 of shape `size`.

    A geometric variable counts failures before a success of probability ``1 - 1/a``, a sum of n of them the failures
    before the n-th success, and a two-sided one is the difference of two (`mechanisms.base.noise.two_sided_geometric`).
    """
    require(1 < a < math.inf, "a finite base a > 1", a)
    require(isinstance(terms, (int, np.integer)) and terms >= 1, "a number of terms >= 1", terms)
    success = -math.expm1(-math.log1p(a - 1.0))
    plus, minus = (rng.negative_binomial(terms, success, size) for _ in range(2))
    return np.asarray(plus - minus, dtype=np.int64)


@dataclass(frozen=True)
class FreshUsers:
    """The answers where each query is asked to fresh users, drawn from a distribution: an oracle of `sq_oracles`.

    Parameters
    ----------
    epsilon : float
        Level of each message.
    users : int
        Users a query, n.
    low, high : float, default -1 and 1
        The two values of a query; b is half their distance, and a multiple of the step. Messages are of the value less
        the middle of the two, which is added to the mean again: for values 0 and 1 the noise has scale ``1 / epsilon``.
    step : float, default 2**-10
        Lattice step, a power of two.

    Notes
    -----
    The sum of n values is binomial, and the sum of their noise the difference of two negative binomials; answers are
    independent of one another. Of all queries with values in [low, high] and a given expectation, those with two values
    have the largest variance.
    """

    epsilon: float
    users: int
    low: float = -1.0
    high: float = 1.0
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require(-math.inf < self.low < self.high < math.inf, "finite values, low < high", (self.low, self.high))
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.users, (int, np.integer)) and self.users >= 1, "a number of users >= 1", self.users)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5, "a power of two as step", self.step)
        require(
            self.bound / self.step == self._bound_in_steps,
            f"a multiple of the step {self.step} as (high - low) / 2",
            self.bound,
        )

    @property
    def bound(self) -> float:
        """Half the distance of the two values, b."""
        return (self.high - self.low) / 2.0

    @property
    def _bound_in_steps(self) -> int:
        """The bound in lattice steps."""
        return round(self.bound / self.step)

    @property
    def base(self) -> float:
        """Base of the integer noise of one message."""
        return base_for(self.epsilon, 2 * self._bound_in_steps)

    @property
    def _middle_value(self) -> float:
        return (self.low + self.high) / 2.0

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw an answer for each expectation; the tolerance is not looked at. ValueError if one is out of range."""
        del tolerance
        part = self._part(truth)
        values = (2 * rng.binomial(self.users, part) - self.users) * self._bound_in_steps
        sums = values + noise_sums(self.base, self.users, np.shape(part), rng)
        return np.asarray(self._middle_value + sums * (self.step / self.users), dtype=np.float64)

    def _part(self, truth: ArrayLike) -> FloatArray:
        """Probability of the higher value."""
        part = (np.asarray(truth, dtype=np.float64) - self.low) / (self.high - self.low)
        require(bool(np.all((part >= 0) & (part <= 1))), f"expectations in [{self.low}, {self.high}]", truth)
        return part

    def miss(self, truth: float, tolerance: float) -> float:
        """Probability that the answer to a query of this expectation is off by more than `tolerance`.

        Notes
        -----
        Exact within 1e-13: the characteristic function of the sum, which is known, is inverted on a period so long that
        less than 1e-18 is folded back, with all terms above 1e-18. ValueError for so few users that those are too many.
        """
        require_positive("tolerance", tolerance)
        part, n, half, a = float(self._part(truth)), self.users, self._bound_in_steps, self.base
        unit, scale = self.step / n, math.log1p(a - 1.0)
        low = math.ceil((truth - self._middle_value - tolerance) / unit)
        high = math.floor((truth - self._middle_value + tolerance) / unit)
        deviation = math.sqrt(n * (4.0 * part * (1.0 - part) * half**2 + 2.0 * a / (a - 1.0) ** 2))
        mean = n * half * (2.0 * part - 1.0)
        # Odd, so that frequencies other than 0 come in pairs.
        reach = math.ceil(max(abs(low - mean), abs(high - mean)) + _REACH * (deviation + 1.0 / scale))
        period = 2 * reach + 1
        # The noise alone: |phi| = 1 / (1 + (2 sin(t/2) / (2 sinh(scale/2)))^2) for one message.
        spread = math.sinh(scale / 2.0)
        sine = min(1.0, spread * math.sqrt(math.expm1(-math.log(_SMALL) / n)))
        terms = min(reach, math.ceil(math.asin(sine) * period / math.pi))
        require(terms <= _MOST_TERMS, "more users: too many terms for the characteristic function", n)
        t = np.arange(1, terms + 1) * (2.0 * math.pi / period)
        one = part * np.exp(1j * t * half) + (1.0 - part) * np.exp(-1j * t * half)
        log = np.log(one) - np.log1p((np.sin(t / 2.0) / spread) ** 2)
        # Sum over low <= s <= high of exp(-i t s).
        kernel = np.sin(t * (high - low + 1) / 2.0) / np.sin(t / 2.0)
        inside = (np.exp(n * log - 0.5j * t * (low + high)).real * kernel).sum()
        return float(min(1.0, max(0.0, 1.0 - (high - low + 1 + 2.0 * inside) / period)))


# ------------------------------------------------------------------------------ sample sizes


def users_needed(epsilon: float, tolerance: float, beta: float, bound: float = 1.0) -> int:
    """Users at which the answer is within the tolerance with probability at least ``1 - beta``, at any epsilon.

    ``ln(4 / beta) max((64 b^2 / (epsilon^2 tau^2)) (1 + epsilon tau / (8 b)), 8 b^2 / tau^2)``, rounded up: half of the
    tolerance is for the sample, by Hoeffding's inequality, half for the noise, by Bernstein's.

    Source: document 002, Lemma 5.6, with the constants and the range of catalogue 002, local_sq_query.
    """
    return math.ceil(_noisy_part(epsilon, tolerance, beta, bound, sampled=True))


def noise_constant(epsilon: float, tolerance: float, beta: float, bound: float = 1.0) -> float:
    """The lemma's c in ``c log2(1 / beta) b^2 / (epsilon^2 tau^2)`` that `users_needed` has where noise dominates."""
    users = _noisy_part(epsilon, tolerance, beta, bound, sampled=False)
    return users * (epsilon * tolerance / bound) ** 2 / math.log2(1.0 / beta)


def printed_users(constant: float, epsilon: float, tolerance: float, beta: float, bound: float = 1.0) -> int:
    """Users that Lemma 5.6 asks for as it is printed: ``c log2(1 / beta) b^2 / (epsilon^2 tau^2)``, rounded up.

    No constant is large enough for every epsilon: with values of both b and -b a mean of n of them has a standard
    deviation of ``b / sqrt(n)``, which is ``epsilon tau / sqrt(c log2(1 / beta))``.
    """
    require_positive("constant", constant)
    _require_sizes(epsilon, tolerance, beta, bound)
    return math.ceil(constant * math.log2(1.0 / beta) * (bound / (epsilon * tolerance)) ** 2)


def corrected_users(constant: float, epsilon: float, tolerance: float, beta: float, bound: float = 1.0) -> int:
    """Users that Lemma 5.6 should ask for: ``c log2(1 / beta) (b^2 / tau^2) max(1, 1 / epsilon^2)``, rounded up."""
    return printed_users(constant, min(epsilon, 1.0), tolerance, beta, bound)


def typical_users(
    epsilon: float, tolerance: float, beta: float, bound: float = 1.0, variance: float | None = None
) -> float:
    """Users that are enough if the answer were normal: ``z^2 (Var g + 8 b^2 / epsilon^2) / tau^2``.

    z is the two-sided normal quantile of beta. The variance of g is by default b^2, the largest there is.
    """
    _require_sizes(epsilon, tolerance, beta, bound)
    spread = (bound**2 if variance is None else variance) + 8.0 * (bound / epsilon) ** 2
    return float(stats.norm.isf(beta / 2.0)) ** 2 * spread / tolerance**2


def _noisy_part(epsilon: float, tolerance: float, beta: float, bound: float, *, sampled: bool) -> float:
    _require_sizes(epsilon, tolerance, beta, bound)
    noise = 64.0 * (bound / (epsilon * tolerance)) ** 2 * (1.0 + epsilon * tolerance / (8.0 * bound))
    sample = 8.0 * (bound / tolerance) ** 2 if sampled else 0.0
    return math.log(4.0 / beta) * max(noise, sample)


def _require_sizes(epsilon: float, tolerance: float, beta: float, bound: float) -> None:
    require_positive("epsilon", epsilon)
    require_positive("tolerance", tolerance)
    require(0 < beta < 1, "beta in (0, 1)", beta)
    require_positive("bound", bound)


# ---------------------------------------------------------------------- queries that depend on answers


@dataclass(frozen=True)
class FreshDredging:
    """Answers to d queries about single bits, and to one about the bits together that depends on those answers.

    Users have d bits, -1 or 1, independent and fair. The last query is the sign of ``sum_j s_j x_j`` with s_j the sign
    of answer j. All expectations are 0 whatever the signs are, if d is odd. Every query is asked to users of its own.

    The data are the expectations of the single bits, zeros of shape (d,).

    Parameters
    ----------
    epsilon : float
        Level of a message.
    users : int
        Users a query.
    """

    epsilon: float
    users: int

    def _oracle(self, data: ArrayLike) -> tuple[FreshUsers, int]:
        means = np.asarray(data, dtype=np.float64)
        require(means.ndim == 1 and means.size % 2 == 1, "an odd number of bits, shape (d,)", means.shape)
        require(not means.any(), "expectations of 0", data)
        return FreshUsers(self.epsilon, self.users), means.size

    def __call__(self, data: ArrayLike, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times the answers; float64 of shape (n, d + 1)."""
        require_draws(n)
        oracle, bits = self._oracle(data)
        # Given the signs, the last query is a fair sign of a fresh user, like all others.
        return oracle(np.zeros((n, bits + 1)), 0.0, rng)


@dataclass(frozen=True)
class ReusedUsers(FreshDredging):
    """`FreshDredging` with one block of users for all queries: the last one is about what the others found in it."""

    def __call__(self, data: ArrayLike, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times the answers; float64 of shape (n, d + 1)."""
        require_draws(n)
        oracle, bits = self._oracle(data)
        answers, unit = np.empty((n, bits + 1)), oracle.step / self.users
        noise = noise_sums(oracle.base, self.users, (n, bits + 1), rng) * unit
        # The records of some runs at a time, as numbers of four bytes. Sums below 2^24 are exact in them.
        at_once = max(1, _MOST_BYTES // (4 * self.users * bits))
        ones = np.ones((1, self.users), dtype=np.float32)
        for start in range(0, n, at_once):
            runs = slice(start, min(start + at_once, n))
            shape = (runs.stop - start, self.users, bits)
            fair = np.unpackbits(np.frombuffer(rng.bytes(-(-math.prod(shape) // 8)), dtype=np.uint8))
            x = fair[: math.prod(shape)].reshape(shape).astype(np.float32)
            x *= 2.0
            x -= 1.0
            answers[runs, :bits] = (ones @ x)[:, 0].astype(np.float64) / self.users + noise[runs, :bits]
            signs = np.where(answers[runs, :bits] >= 0, 1.0, -1.0).astype(np.float32)
            last = np.sign(x @ signs[:, :, None])[:, :, 0]
            answers[runs, bits] = last.sum(axis=1, dtype=np.float64) / self.users + noise[runs, bits]
        return answers
