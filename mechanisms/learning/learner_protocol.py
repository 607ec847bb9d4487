"""Private learners and one-way protocols with shared coins, both ways.

From a learner to a protocol: both parties run the learner on a dataset that is nobody's, many times, with shared coins;
Alice sends the index of a hypothesis that is good for her concept. From a protocol to a learner: for each outcome of
the shared coins the messages are a class of few hypotheses, one of which the exponential mechanism chooses.

The examples are thresholds ("greater than") and points ("equal to"), where a message can be short.

Source: document 003, section 9.2, closing sketches; catalogue 000_001_003, learner_to_protocol (the constants).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import draw_index
from mechanisms.learning.agnostic_learner import gumbel_choice
from mechanisms.learning.gf2 import BoolArray, Words, eliminate, inner, random_words
from mechanisms.learning.threshold_learner import MOST_BITS, ThresholdLearner, labelled
from mechanisms.learning.threshold_samples import ThresholdExamples
from mechanisms.selection.exponential import softmax

#: Hypotheses or rows that are drawn at once: 8 MB for an array of them. Arbitrary.
_BLOCK = 1 << 20
#: The index that Alice sends where no hypothesis is good, and the hypothesis that Bob then has.
NONE = -1


def zero_rows(rows: int) -> IntArray:
    """The dataset that is nobody's: so many rows (0, 0)."""
    return np.zeros((rows, 2), dtype=np.int64)


def list_length(level: float, rows: int, success: float, beta: float) -> int:
    """Hypotheses with which the list has no good one with probability beta at most.

    ``ceil(e^(level rows) ln(1/beta) / success)``

    Parameters
    ----------
    level : float
        Pure level of the learner, for one row: twice the epsilon of an exponential mechanism.
    rows : int
        Of its sample.
    success : float
        Probability that it learns from a sample of examples of the concept.
    beta : float
        Allowed probability of failure.

    Notes
    -----
    Any dataset is `rows` replacements away from the rows of zeros, so a hypothesis of the list is good with probability
    ``e^(-level rows) success`` at least, and all are bad with probability ``(1 - that)^length <= beta``.
    """
    return math.ceil(math.exp(level * rows) * math.log(1.0 / beta) / success)


def message_bits(level: float, rows: int, success: float, beta: float) -> float:
    """``level rows log2(e) + log2(ln(1/beta) / success)``: bits of an index, before rounding up."""
    return (level * rows + math.log(math.log(1.0 / beta) / success)) / math.log(2.0)


@dataclass(frozen=True)
class CoverProtocol:
    """Alice and Bob list what the learner says of rows of zeros, with shared coins; Alice sends an index.

    Parameters
    ----------
    learner : ThresholdLearner
        Of thresholds.
    rows : int
        Of its sample.
    length : int
        Hypotheses in the list, see `list_length`.
    alpha : float
        A hypothesis is good if its error is at most alpha.

    Notes
    -----
    The data are `ThresholdExamples`: Bob's numbers given Alice's concept, which she knows. Outputs have two columns:
    the index of the first good hypothesis, or -1, and the threshold that Bob uses, or -1.
    """

    learner: ThresholdLearner
    rows: int
    length: int
    alpha: float

    def __post_init__(self) -> None:
        for name in ("rows", "length"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, f"{name} >= 1", value)
        require(0 <= self.alpha < 1, "alpha in [0, 1)", self.alpha)

    def bobs(self, lists: IntArray, rng: np.random.Generator) -> IntArray:
        """Return Bob's lists, given those of Alice, shape (runs, length): the same, as the coins are shared."""
        del rng  # only a mutant uses it
        return lists

    def __call__(self, examples: ThresholdExamples, n: int, rng: np.random.Generator) -> IntArray:
        """Run the protocol `n` times; int64 of shape (n, 2)."""
        require_draws(n)
        data = zero_rows(self.rows)
        outputs = np.empty((n, 2), dtype=np.int64)
        step = max(1, _BLOCK // self.length)
        for start in range(0, n, step):
            runs = min(step, n - start)
            lists = self.learner(data, runs * self.length, rng).reshape(runs, self.length)
            good: BoolArray = np.asarray(examples.errors(lists) <= self.alpha)
            index = np.argmax(good, axis=1)
            used = self.bobs(lists, rng)[np.arange(runs), index]
            sent = np.stack([index, used], axis=1)
            outputs[start : start + runs] = np.where(good.any(axis=1, keepdims=True), sent, NONE)
        return outputs


@dataclass(frozen=True)
class PrivateCoins(CoverProtocol):
    """Bob's list is from coins of his own: an index of Alice's list says nothing of his."""

    def bobs(self, lists: IntArray, rng: np.random.Generator) -> IntArray:
        """Lists of his own."""
        return self.learner(zero_rows(self.rows), lists.size, rng).reshape(lists.shape)


@dataclass(frozen=True)
class BobsError:
    """Error of the hypothesis that Bob uses; infinite where Alice found no good one."""

    examples: ThresholdExamples

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n outputs of shape (n, 2)."""
        index, used = np.asarray(outputs, dtype=np.int64).T
        return np.where(index == NONE, np.inf, self.examples.errors(used))


def corner_success(d: int, epsilon: float, rows: int) -> float:
    """Probability that the learner finds the threshold 0 from rows (0, 1): every other one is always wrong."""
    return float(special.expit(epsilon * rows - d * math.log(2.0)))


def corner_in_list(d: int, epsilon: float, rows: int) -> float:
    """Probability that the learner says 0 of rows (0, 0), on which every other threshold is always right."""
    return float(special.expit(-epsilon * rows - d * math.log(2.0)))


@dataclass(frozen=True)
class OnlyZero:
    """Bob's number is always 0 and Alice's threshold 0: the concept that rows of zeros say the least about."""

    def sample(self, rows: int, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Rows (0, 1)."""
        del rng
        return np.zeros((1, 1), dtype=np.int64), np.zeros((n, 1), dtype=np.int64), np.full((n, 1), rows)

    def errors(self, thresholds: IntArray) -> FloatArray:
        """1 for all thresholds but 0."""
        return np.asarray(np.asarray(thresholds) != 0, dtype=np.float64)


# ----------------------------------------------------------------------- from a protocol to a learner


def equality_bits(epsilon: float, alpha: float, beta: float) -> int:
    """Bits of a message with which the best one has error `best_error` at most but for probability ``beta / 2``."""
    return math.ceil(math.log2(2.0 / (beta * best_error(epsilon, alpha))))


def best_error(epsilon: float, alpha: float) -> float:
    """``alpha / (2 (1 + e^eps))``: small enough for `protocol_rows`."""
    return alpha / (2.0 * (1.0 + math.exp(epsilon)))


def protocol_rows(bits: int, epsilon: float, alpha: float, beta: float) -> int:
    """Rows with which a message of error above alpha is chosen with probability ``beta / 2`` at most.

    ``2 (bits ln 2 + ln(2/beta)) / (alpha (1 - e^-eps))``, which is O(bits / (eps alpha)) for eps <= 1.

    Notes
    -----
    Let a be the error of the best message, at most `best_error`. One of error above alpha is chosen with probability at
    most ``E e^(-eps D)``, D its mistakes less the best one's: of n independent terms, 1 with probability alpha - a at
    least, and -1 with probability a at most. So it is at most ``(1 - (alpha - a)(1 - e^-eps) + a (e^eps - 1))^n <=
    exp(-n alpha (1 - e^-eps) / 2)``, and there are ``2^bits`` messages.
    """
    return math.ceil(2.0 * (bits * math.log(2.0) + math.log(2.0 / beta)) / (alpha * -math.expm1(-epsilon)))


@dataclass(frozen=True)
class EqualityLearner:
    """Learn ``[x = c]`` from the protocol in which Alice sends a random linear hash of c.

    The shared coins are `bits` uniform vectors of d bits; the hypotheses are ``[hash(x) = m]``, one for each message m.
    Message m is chosen with probability proportional to ``exp(-epsilon mistakes)``: level `level`, whatever the coins,
    which do not depend on the data.

    Parameters
    ----------
    d : int
        Bits of a number, from 1 to 62.
    epsilon : float
        What a mistake takes off the logarithm of a weight.
    bits : int
        Bits of a message, from 1 to 16; 16 is arbitrary.
    coins : tuple of int, optional
        The shared vectors, one for each bit; without them they are drawn anew for each run.

    Notes
    -----
    Data are labelled numbers, as for `ThresholdLearner`. Outputs have ``bits + 1`` columns: the vectors, the message.
    """

    d: int
    epsilon: float
    bits: int
    coins: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require(1 <= self.d <= MOST_BITS, f"a number of bits from 1 to {MOST_BITS}", self.d)
        require_positive("epsilon", self.epsilon)
        require(1 <= self.bits <= 16, "a message of 1 to 16 bits", self.bits)
        right = len(self.coins) in (0, self.bits) and all(0 <= c < 2**self.d for c in self.coins)
        require(right, f"{self.bits} vectors of {self.d} bits, or none", self.coins)

    @property
    def level(self) -> float:
        """The claimed pure level, ``2 epsilon``."""
        return 2.0 * self.epsilon

    def vectors(self, n: int, rng: np.random.Generator) -> Words:
        """Shared coins of `n` runs, shape (bits, n)."""
        if self.coins:
            return np.repeat(np.array(self.coins, dtype=np.uint64)[:, None], n, axis=1)
        drawn: Words = random_words(self.d, (self.bits, n), rng)[0]
        return drawn

    def mistakes(self, vectors: Words, x: IntArray, y: IntArray) -> IntArray:
        """Rows that each message gets wrong, shape (n, 2^bits), for numbers and labels of shape (n or 1, rows)."""
        n = vectors.shape[1]
        at = hashes(vectors, x) + (np.arange(n) << self.bits)[:, None]
        weight = np.broadcast_to(1 - 2 * y, at.shape).ravel()
        # Of the rows with its hash it gets those of label 0 wrong, of the others those of label 1.
        own = np.bincount(at.ravel(), weight, minlength=n << self.bits).reshape(n, -1)
        ones = np.broadcast_to(y, at.shape).sum(axis=1)[:, None]
        return np.asarray(np.rint(own) + ones, dtype=np.int64)

    def choose(self, vectors: Words, x: IntArray, y: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a message for each run; int64 of shape (n, bits + 1)."""
        n = vectors.shape[1]
        exponents: FloatArray = -self.epsilon * self.mistakes(vectors, x, y).astype(np.float64)
        message = gumbel_choice(exponents, n, rng)
        return np.concatenate([vectors.T.astype(np.int64), message[:, None]], axis=1)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the message for given coins, over tuples of the vectors and the message.

        Raises
        ------
        ValueError
            If the coins are not given.
        """
        require(len(self.coins) > 0, "given coins, for a distribution", self.coins)
        x, y = labelled(data, self.d)
        vectors = np.array(self.coins, dtype=np.uint64)[:, None]
        mass = softmax(-self.epsilon * self.mistakes(vectors, x[None], y[None])[0])
        return FiniteLaw(tuple((*self.coins, m) for m in range(mass.size)), mass)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n, bits + 1)."""
        require_draws(n)
        x, y = labelled(data, self.d)
        if self.coins:
            mass = self.law(data).probabilities
            message = draw_index(mass, n, rng)
            return np.concatenate([self.vectors(n, rng).T.astype(np.int64), message[:, None]], axis=1)
        return _in_parts(self, n, len(x), lambda vectors: self.choose(vectors, x[None], y[None], rng), rng)


def _in_parts(learner: EqualityLearner, n: int, rows: int, run: Any, rng: np.random.Generator) -> IntArray:
    """Outputs of `n` runs, few enough at once."""
    outputs = np.empty((n, learner.bits + 1), dtype=np.int64)
    step = max(1, _BLOCK // max(rows, 2**learner.bits))
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        outputs[part] = run(learner.vectors(part.stop - start, rng))
    return outputs


def hashes(vectors: Words, x: IntArray) -> IntArray:
    """Hashes of numbers, shape (n or 1, rows), by vectors of shape (bits, n); int64 of shape (n, rows)."""
    given, found = x.astype(np.uint64), np.zeros((vectors.shape[1], x.shape[1]), dtype=np.int64)
    for bit, vector in enumerate(vectors):
        found |= inner(vector[None, :, None], given[None]).astype(np.int64) << bit
    return found


@dataclass(frozen=True)
class HalfOnPoint:
    """Examples of ``[x = c]``: with probability 1/2 the number is c, otherwise it is uniform."""

    d: int
    point: int

    def __post_init__(self) -> None:
        require(0 <= self.point < 2**self.d, f"a point of {self.d} bits", self.point)

    def sample(self, rows: int, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Numbers and labels of `n` samples, shape (n, rows) each."""
        x = rng.integers(0, 2**self.d, (n, rows))
        x[rng.random((n, rows)) < 0.5] = self.point
        return x, (x == self.point).astype(np.int64)


@dataclass(frozen=True)
class FreshEquality:
    """The learner with fresh coins on a fresh sample each time; the data are `HalfOnPoint`."""

    learner: EqualityLearner
    rows: int

    def __call__(self, examples: HalfOnPoint, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n, bits + 1)."""
        require_draws(n)

        def run(vectors: Words) -> IntArray:
            return self.learner.choose(vectors, *examples.sample(self.rows, vectors.shape[1], rng), rng)

        return _in_parts(self.learner, n, self.rows, run, rng)


@dataclass(frozen=True)
class EqualityError:
    """Exact error of a hypothesis ``[hash(x) = m]`` under `HalfOnPoint`."""

    examples: HalfOnPoint

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n outputs of shape (n, bits + 1)."""
        rows = np.asarray(outputs, dtype=np.int64)
        vectors, message = rows[:, :-1].T.astype(np.uint64), rows[:, -1]
        point = hashes(vectors, np.array([[self.examples.point]]))[:, 0] == message
        label = (message >> np.arange(len(vectors))[:, None] & 1).astype(np.bool_)
        solved = eliminate(vectors[None].copy(), label)
        # The numbers with this hash are an affine subspace, or none.
        part = np.where(solved.consistent, 2.0**-solved.rank, 0.0)
        alone = 2.0**-self.examples.d
        missed = np.where(point, -alone, 1.0 + alone)
        return np.asarray(0.5 * (part + missed), dtype=np.float64)
