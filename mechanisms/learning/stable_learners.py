"""Learners whose output moves little when one record is replaced: means, ridge regression, gradient descent.

A learner is a function of records and of its coins, trained on n samples at once. Records come from a distribution on
finitely many values (`FiniteRecordDistribution`). For descent on the quadratic loss, which is linear in the labels,
what one record is worth is known in closed form.

Source: document 004, section 5 and its section on gradient descent; catalogue 004, onavg_stability and sgd_onavg.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy import special

from mechanisms.base.mechanism import FloatArray, IntArray, require, require_positive

Order = Literal["stored", "permuted", "replacement"]

# ------------------------------------------------------------------------------------- records


@dataclass(frozen=True)
class FiniteRecordDistribution:
    """A distribution of records on finitely many values.

    Parameters
    ----------
    values : tuple of tuple of float
        The records, each of d numbers.
    probabilities : tuple of float
        Their probabilities; they sum to 1.

    Raises
    ------
    ValueError
        If the records are not of one length, or the probabilities are none.
    """

    values: tuple[tuple[float, ...], ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        require(len({len(value) for value in self.values}) == 1, "records of one length", self.values)
        require(len(self.values) == len(self.probabilities), "a probability for each record", self.probabilities)
        require(min(self.probabilities) >= 0, "probabilities >= 0", self.probabilities)
        require(abs(math.fsum(self.probabilities) - 1.0) < 1e-9, "probabilities that sum to 1", self.probabilities)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Records, float64 of shape (*shape, d)."""
        chosen = rng.choice(len(self.values), size=shape, p=np.asarray(self.probabilities))
        return np.asarray(np.asarray(self.values)[chosen], dtype=np.float64)

    @property
    def variance(self) -> float:
        """Variance of the last column, the label."""
        labels = np.array([value[-1] for value in self.values])
        mean = float(labels @ self.probabilities)
        return float((labels - mean) ** 2 @ np.asarray(self.probabilities))

    @property
    def distance(self) -> float:
        """``E |y - y'|`` of the labels of two independent records."""
        labels, weights = np.array([value[-1] for value in self.values]), np.asarray(self.probabilities)
        return float(weights @ np.abs(labels[:, None] - labels) @ weights)


def bernoulli(q: float) -> FiniteRecordDistribution:
    """Records that are a label only: 1 with probability q, else 0."""
    require(0 <= q <= 1, "a probability q", q)
    return FiniteRecordDistribution(((0.0,), (1.0,)), (1.0 - q, q))


# ------------------------------------------------------------------------------------ learners


class RandomizedLearner(Protocol):
    """A function of records and coins."""

    def coins(self, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Coins of `n` trainings on so many records; int64 of shape (n, ...)."""
        ...

    def __call__(self, records: FloatArray, coins: IntArray) -> FloatArray:
        """Train on records of shape (n, size, d); outputs of shape (n,)."""
        ...


class _DeterministicLearner:
    """A learner that tosses no coins."""

    def coins(self, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Coins without an entry, shape (n, 0)."""
        del size, rng
        return np.zeros((n, 0), dtype=np.int64)


@dataclass(frozen=True)
class LabelMean(_DeterministicLearner):
    """The mean of the labels, whatever the features."""

    def __call__(self, records: FloatArray, coins: IntArray) -> FloatArray:
        """Train on records of shape (n, size, d); outputs of shape (n,)."""
        del coins
        return np.asarray(records[..., -1].mean(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class RidgePrediction(_DeterministicLearner):
    """Least squares of the label on one feature, with a penalty, and its prediction at a point, clipped to [0, 1].

    Parameters
    ----------
    at : float
        The point.
    penalty : float
        Added to the mean square of the feature.
    """

    at: float
    penalty: float

    def __post_init__(self) -> None:
        require_positive("penalty", self.penalty)

    def __call__(self, records: FloatArray, coins: IntArray) -> FloatArray:
        """Train on records (feature, label), shape (n, size, 2); outputs of shape (n,)."""
        del coins
        feature, label = records[..., 0], records[..., 1]
        weight = (feature * label).mean(axis=1) / ((feature**2).mean(axis=1) + self.penalty)
        return np.asarray(np.clip(self.at * weight, 0.0, 1.0), dtype=np.float64)


class WeightLoss(Protocol):
    """A loss of one weight."""

    def gradient(self, weight: FloatArray, records: FloatArray) -> FloatArray:
        """Gradients at n weights, of one record each; shape (n,)."""
        ...


@dataclass(frozen=True)
class QuadraticLoss:
    """``(w - y)^2 / 2``: descent is linear in the labels."""

    def gradient(self, weight: FloatArray, records: FloatArray) -> FloatArray:
        """Gradients at n weights, of one record each; shape (n,)."""
        return np.asarray(weight - records[:, -1], dtype=np.float64)


@dataclass(frozen=True)
class LogisticLoss:
    """Logistic loss of one feature without intercept, and ``penalty w^2 / 2``."""

    penalty: float

    def gradient(self, weight: FloatArray, records: FloatArray) -> FloatArray:
        """Gradients at n weights, of one record (feature, label) each; shape (n,)."""
        feature, label = records[:, 0], records[:, 1]
        return np.asarray((special.expit(weight * feature) - label) * feature + self.penalty * weight)


@dataclass(frozen=True)
class StepSizes:
    """Sizes of the steps of descent: ``size * t^(-power) * n^(-root)`` at the step t = 1, 2, ... of n.

    Parameters
    ----------
    size : float
        Positive.
    power, root : float
        Exponents; 0 for a constant step, power 1 and size 1 for the running mean, root 1/2 for ``n^(-1/2)``.
    """

    size: float
    power: float = 0.0
    root: float = 0.0

    def __post_init__(self) -> None:
        require_positive("size", self.size)

    def __call__(self, records: int) -> FloatArray:
        """Sizes of the steps of one pass, shape (records,)."""
        t = np.arange(1, records + 1, dtype=np.float64)
        return np.asarray(self.size * t**-self.power * float(records) ** -self.root, dtype=np.float64)


@dataclass(frozen=True)
class StochasticGradientDescent:
    """Stochastic gradient descent from weight 0; the output is the weight.

    Parameters
    ----------
    loss : WeightLoss
        Of one weight.
    steps : StepSizes
        Their sizes; each pass begins with the first.
    order : {"stored", "permuted", "replacement"}
        In which order records are used: as they are stored, in a fresh random order each pass, or drawn with
        replacement. The order is the learner's coins.
    passes : int, default 1
        Passes over the records.
    average : bool
        The output is the mean of the weights after each step, not the last one.
    """

    loss: WeightLoss
    steps: StepSizes
    order: Order = "stored"
    passes: int = 1
    average: bool = False

    def __post_init__(self) -> None:
        require(self.order in ("stored", "permuted", "replacement"), "a known order", self.order)
        require(isinstance(self.passes, int) and self.passes >= 1, "at least one pass", self.passes)

    def coins(self, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Which record is used at each step; int64 of shape (n, passes * size)."""
        if self.order == "replacement":
            return rng.integers(0, size, (n, self.passes * size))
        stored = np.tile(np.arange(size, dtype=np.int64), (n, self.passes, 1))
        if self.order == "permuted":
            stored = rng.permuted(stored, axis=2)
        return stored.reshape(n, -1)

    def __call__(self, records: FloatArray, coins: IntArray) -> FloatArray:
        """Train on records of shape (n, size, d), in the order of the coins; weights of shape (n,)."""
        rows = np.arange(len(records))
        weight, total = np.zeros(len(records)), np.zeros(len(records))
        sizes = np.tile(self.steps(records.shape[1]), self.passes)
        for t, step in enumerate(sizes):
            weight = weight - step * self.loss.gradient(weight, records[rows, coins[:, t]])
            total += weight
        return total / len(sizes) if self.average else weight


# --------------------------------------------------------------------------------- closed forms


def coefficients(learner: StochasticGradientDescent, size: int) -> FloatArray:
    """The c_j of descent on the quadratic loss in stored order, whose output is ``sum_j c_j y_j``; shape (size,).

    Notes
    -----
    The weight after step t is ``(1 - eta_t) w + eta_t y_t``: what step t put in is multiplied by ``1 - eta_i`` at each
    later step i, and the mean of the weights collects it after each of them. Source: catalogue 004, sgd_onavg.
    """
    require(learner.order == "stored", "the stored order", learner.order)
    require(isinstance(learner.loss, QuadraticLoss), "the quadratic loss", learner.loss)
    sizes = np.tile(learner.steps(size), learner.passes)
    if learner.average:
        collected = np.empty(len(sizes))
        after = 0.0
        for i in range(len(sizes) - 1, -1, -1):
            after = 1.0 + (0.0 if i + 1 == len(sizes) else (1.0 - sizes[i + 1]) * after)
            collected[i] = after
        used = sizes * collected / len(sizes)
    else:
        later = np.ones(len(sizes))
        later[:-1] = np.cumprod((1.0 - sizes[1:])[::-1])[::-1]
        used = sizes * later
    return np.asarray(used.reshape(learner.passes, size).sum(axis=0), dtype=np.float64)


def alpha_of(used: FloatArray, source: FiniteRecordDistribution) -> float:
    """On-average stability of ``sum_j c_j y_j``: ``alpha^2 = 2 sigma^2 mean(c_j^2)``."""
    return math.sqrt(2.0 * source.variance * float((used**2).mean()))


def first_moment_of(used: FloatArray, source: FiniteRecordDistribution) -> float:
    """Mean over the positions of ``E |h_D - h_(D^j)|``, for ``sum_j c_j y_j``: ``E |y - y'| mean |c_j|``."""
    return source.distance * float(np.abs(used).mean())


def alpha_of_mean(q: float, size: int) -> float:
    """On-average stability of the mean of `size` Bernoulli(q) labels: ``sqrt(2 q (1 - q)) / size``."""
    return math.sqrt(2.0 * q * (1.0 - q)) / size


def constant_step_bound(step: float, size: int, convexity: float = 1.0, lipschitz: float = 1.0) -> float:
    """A bound on alpha^2 of one pass with a constant step: ``4 eta L^2 / (n mu (2 - eta mu))``.

    Notes
    -----
    Two gradients at one weight differ by at most 2L, and each later step, at most 1/smoothness, brings two weights
    together by the factor ``1 - eta mu``: position j moves the output by at most ``2 eta L (1 - eta mu)^(n - j)``. The
    bound sums the squares. Source: catalogue 004, sgd_onavg (derived there).
    """
    return 4.0 * step * lipschitz**2 / (size * convexity * (2.0 - step * convexity))
