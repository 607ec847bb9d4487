"""Algorithm 5 for thresholds on [0, 1], at the sizes of its theorems, without a single example being drawn.

Features are uniform, and the best threshold is 1/2. The distribution of a teacher's threshold on n' examples is known,
so of the votes at the public points only the counts are drawn. Points at which nearly all teachers agree are answered
with certainty (but for 1e-12 a run); the others, near 1/2, go through `vote_aggregation.refusals`. The student is the
empirical risk minimiser over thresholds.

Source: document 004, Corollary 4.1, Theorems 4.3, 4.4, 4.6 and 4.7; catalogue 004, bin_clas and pri_learn.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.teacher_ensembles.online_leaks import release_scale, release_threshold
from mechanisms.teacher_ensembles.vote_aggregation import printed_chunks, refusals
from mechanisms.teacher_ensembles.vote_distance import Distance, gap_distance

BoolArray: TypeAlias = NDArray[np.bool_]

#: Probability, a run, of what is left out where points are taken to be answered.
_LEFT_OUT = 1e-12
#: A walk's minimum is followed so deep and so long: beyond is a part of 1e-20 at the largest label noise, 0.1.
_DEPTH, _STEPS = 40, 400
#: Numbers of a batch of runs: 32 MB an array.
_BATCH = 2**22

# ---------------------------------------------------------------------------------- teachers


class ChunkThreshold(ABC):
    """Distribution of the threshold 1/2 + E that one chunk gives."""

    @abstractmethod
    def cdf(self, t: FloatArray, size: int) -> FloatArray:
        """P[E <= t] for t in (-1/2, 1/2), any shape, and a chunk of so many examples."""


@dataclass(frozen=True)
class SmallestPositiveThreshold(ChunkThreshold):
    """The smallest positive example: of all thresholds without an error on the chunk the one furthest to the right.

    All errors are on one side of 1/2, the worst case for votes: no teacher's error balances another's.
    """

    def cdf(self, t: FloatArray, size: int) -> FloatArray:
        """Some example between: ``1 - (1 - t)^n'`` for t >= 0."""
        return np.asarray(1.0 - (1.0 - np.maximum(t, 0.0)) ** size)

    def draw(self, size: int, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw E of as many chunks; above 1/2, where the chunk has no positive example, all its labels are 0."""
        return np.asarray(-np.expm1(-rng.exponential(1.0, shape) / size))


@dataclass(frozen=True)
class MidpointThreshold(ChunkThreshold):
    """The middle between the largest negative and the smallest positive example."""

    def cdf(self, t: FloatArray, size: int) -> FloatArray:
        """``1 - (1 - 2t)^n' / 2`` for t >= 0, and symmetric.

        With gaps L and R to the two examples, P[R > r, L > l] is ``(1 - r - l)^n'``, and E > t where ``R > L + 2t``.
        Chunks without an example on one side of 1/2, of probability ``2 (1/2)^n'``, are neglected.
        """
        tail = (1.0 - 2.0 * np.abs(t)) ** size / 2.0
        return np.asarray(np.where(np.asarray(t) >= 0, 1.0 - tail, tail))


@dataclass(frozen=True)
class NoisyLabels(ChunkThreshold):
    """The empirical risk minimiser where each label is wrong with probability eta.

    Parameters
    ----------
    noise : float
        eta, in (0, 0.1].

    Notes
    -----
    Passing an example, away from 1/2, costs 1 if its label is right and saves 1 if it is wrong: a random walk on either
    side. The threshold is just beyond the K-th example, at which both walks together are lowest; of equal places that
    on the right, and of these the nearest, is taken. So E > t where fewer than K examples are between.
    """

    noise: float

    def __post_init__(self) -> None:
        require(0 < self.noise <= 0.1, "label noise in (0, 0.1]", self.noise)

    @cached_property
    def examples(self) -> tuple[FloatArray, FloatArray]:
        """P[the threshold is j examples away] for j >= 0, to the right and to the left; j = 0 is in neither."""
        q = self.noise / (1.0 - self.noise)
        r, j = np.arange(1, _DEPTH + 1)[:, None], np.arange(1, _STEPS)
        down = (j + r) / 2.0
        # Hitting times: a walk first reaches -r at step j with probability (r/j) P[S_j = -r]; it never goes further
        # with probability 1 - q, and the other walk has its lowest value above -s with probability 1 - q^s.
        reached = np.where(down == np.floor(down), r / j * stats.binom.pmf(np.floor(down), j, self.noise), 0.0)
        lowest = reached * (1.0 - q)
        right = (lowest * (1.0 - q ** (r + 1.0))).sum(axis=0)
        left = (lowest * (1.0 - q**r)).sum(axis=0)
        return np.concatenate([[0.0], right]), np.concatenate([[0.0], left])

    def cdf(self, t: FloatArray, size: int) -> FloatArray:
        """Not fewer than K examples between 1/2 and 1/2 + t, for t >= 0; fewer than K of the left side for t < 0."""
        right, left = (_mix_binomial_tails(examples, np.abs(t), size) for examples in self.examples)
        return np.asarray(np.where(np.asarray(t) >= 0, 1.0 - right, left))


def _mix_binomial_tails(examples: FloatArray, t: FloatArray, size: int) -> FloatArray:
    places = np.asarray(t, dtype=np.float64)
    j = np.flatnonzero(examples > 1e-25)  # below what is left out
    fewer = stats.binom.cdf(j[:, None] - 1, size, places.ravel()[None, :])
    return np.asarray((examples[j] @ fewer).reshape(places.shape))


# --------------------------------------------------------------------------------------- sizes


@dataclass(frozen=True)
class ThresholdStudentSizes:
    """Numbers of the theorems: public points m, cutoff T, chunks k, examples a chunk n'."""

    points: int
    cutoff: int
    chunks: int
    chunk: int

    @property
    def rows(self) -> int:
        """Private examples, n."""
        return self.chunks * self.chunk


def printed_cutoff(points: int, error: float, beta: float) -> int:
    """T of Corollary 4.1: ``3 (error m + sqrt(m ln(m/beta) / 2))``, rounded down; error is gamma + alpha."""
    return math.floor(3.0 * (error * points + math.sqrt(points * math.log(points / beta) / 2.0)))


def uniform_examples(error: float, beta: float, dimension: float = 1.0) -> int:
    """``8 (V - 1 + ln(4/beta)) / error^2``: with so many examples risks of all thresholds (V = 1) are within error/2.

    By the Dvoretzky-Kiefer-Wolfowitz inequality for the examples of either label; for V > 1 the form of the document's
    O(V + ln(1/beta)), with the same constant.
    """
    return math.ceil(8.0 * (dimension - 1.0 + math.log(4.0 / beta)) / error**2)


def public_points(alpha: float, beta: float, dimension: float = 1.0) -> int:
    """Public points, m, that suffice for the labeller (Claim 4.5) and the student (Theorems 4.6 and 4.7)."""
    return max(math.ceil(4.0 * math.log(1.0 / (alpha * beta)) / alpha**2), uniform_examples(alpha, beta, dimension))


def sizes(
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    gamma: float = 0.0,
    points: int | None = None,
    dimension: float = 1.0,
) -> ThresholdStudentSizes:
    """Numbers of Theorems 4.6 (gamma = 0) and 4.7, with the constants of thresholds.

    Parameters
    ----------
    alpha, beta : float
        Excess error of a learner, and how likely it fails; 0 < beta < 1, 0 < alpha < 1.
    epsilon, delta : float
        The claimed level.
    gamma : float
        Error of the best hypothesis.
    points : int, optional
        m; default `public_points`.
    dimension : float
        V. Thresholds have 1; for others ``V ln(1/alpha)`` is added to the examples of a chunk, or as in
        `uniform_examples`: the document's O(.) with the constants of thresholds.

    Notes
    -----
    n' is ``(ln(k/beta) + (V - 1) ln(1/alpha)) / alpha`` if gamma = 0, so that no example of a chunk is within alpha of
    1/2 with probability beta/k at most, and `uniform_examples` for beta/k if not.
    """
    require(0 < alpha < 1, "an alpha in (0, 1)", alpha)
    require(0 < beta < 1, "a beta in (0, 1)", beta)
    require(0 <= gamma < 1, "a gamma in [0, 1)", gamma)
    m = public_points(alpha, beta, dimension) if points is None else points
    cutoff = printed_cutoff(m, gamma + alpha, beta)
    chunks = printed_chunks(m, cutoff, epsilon, delta, beta)
    needed = math.log(chunks / beta) + (dimension - 1.0) * math.log(1.0 / alpha)
    chunk = uniform_examples(alpha, beta / chunks, dimension) if gamma else math.ceil(needed / alpha)
    return ThresholdStudentSizes(m, cutoff, chunks, chunk)


# ------------------------------------------------------------------------------------ students


@dataclass(frozen=True)
class ThresholdStudents:
    """Thresholds learned by students, each from a private sample, public points and noise of its own.

    Parameters
    ----------
    teachers : ChunkThreshold
        Distribution of the teachers' thresholds.
    sizes : ThresholdStudentSizes
        How many of everything.
    epsilon, delta : float
        The claimed level.
    distance : Distance, default `gap_distance`
        As the document prints it.

    Notes
    -----
    There is no dataset: samples are fresh. Outputs are float64 of shape (n,).

    Raises
    ------
    ValueError
        If so many points may be refused that a run might halt, or unanimous votes are not far above the threshold.
    """

    teachers: ChunkThreshold
    sizes: ThresholdStudentSizes
    epsilon: float
    delta: float
    distance: Distance = gap_distance

    def __post_init__(self) -> None:
        left, right = self.zone
        near = int(stats.binom.isf(_LEFT_OUT, self.sizes.points, max(right - left, 0.0)))
        require(near <= self.sizes.cutoff, f"at most T = {self.sizes.cutoff} points near the threshold", near)

    @property
    def noise(self) -> float:
        """Scale of the threshold noise, lambda."""
        return release_scale(self.epsilon, self.delta, self.sizes.cutoff)

    @property
    def bar(self) -> float:
        """Threshold of distances, w."""
        return self.noise * release_threshold(self.delta, self.sizes.points)

    @cached_property
    def minority(self) -> float:
        """If a teacher disagrees with probability at most this, a point is answered, but for a part of 1e-12 a run."""
        # A query at distance d is refused with probability below e^(-(d - w)/(2 lambda)).
        allowed = _LEFT_OUT / self.sizes.points
        needed = self.bar + 2.0 * self.noise * math.log(1.0 / allowed)
        minority = np.arange(self.sizes.chunks // 2 + 1)
        distances = self.distance(np.stack([self.sizes.chunks - minority, minority], axis=-1))
        most = int((distances >= needed).sum()) - 1
        require(most >= 0, f"unanimous votes at a distance of at least {needed:.6g}", float(distances[0]))
        # P[more than `most` of k disagree] is the incomplete beta function, in the probability of each.
        return float(stats.beta.ppf(allowed, most + 1, self.sizes.chunks - most))

    @cached_property
    def zone(self) -> tuple[float, float]:
        """Between which offsets from 1/2 a point might be refused."""
        least = self._offset(self.minority)
        return least, max(least, self._offset(1.0 - self.minority))

    def _offset(self, share: float) -> float:
        """Least offset up to which a teacher's threshold is with such a probability, by bisection."""
        low, high = -0.5, 0.5
        for _ in range(60):
            middle = (low + high) / 2.0
            if float(self.teachers.cdf(np.array(middle), self.sizes.chunk)) >= share:
                high = middle
            else:
                low = middle
        return high

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` learned thresholds, shape (n,); the data are not looked at."""
        del data
        require_draws(n)
        most = max(1, int(self.sizes.points * (self.zone[1] - self.zone[0])))
        batch = max(1, _BATCH // most)
        return np.concatenate([self._students(min(batch, n - i), rng) for i in range(0, n, batch)])

    def _students(self, n: int, rng: np.random.Generator) -> FloatArray:
        left, right = self.zone
        near = rng.binomial(self.sizes.points, right - left, n)
        exists = np.arange(max(1, int(near.max()))) < near[:, None]
        # Places that do not exist come last.
        x = np.sort(np.where(exists, rng.uniform(left, right, exists.shape), np.inf), axis=1)
        ones = np.where(exists, self._counts(np.where(exists, x, right), rng), 0)
        votes = np.stack([self.sizes.chunks - ones, ones], axis=-1)
        distance = np.where(exists, self.distance(votes), np.inf)
        order = rng.permuted(np.tile(np.arange(x.shape[1]), (n, 1)), axis=1)
        asked = np.take_along_axis(distance, order, axis=1)
        refused = np.zeros_like(exists)
        found = refusals(asked, self.noise, self.bar, self.sizes.cutoff + 1, rng) != 0
        np.put_along_axis(refused, order, found, axis=1)
        label = np.where(refused, rng.integers(0, 2, x.shape) == 1, ones > self.sizes.chunks - ones)
        return 0.5 + self._minimiser(x, exists & label, exists & ~label, rng)

    def _counts(self, x: FloatArray, rng: np.random.Generator) -> IntArray:
        """How many teachers' thresholds are at most x, sorted, shape (n, c): teachers fall between places by chance."""
        below = self.teachers.cdf(x, self.sizes.chunk)
        counts, before = np.zeros(x.shape, dtype=np.int64), np.zeros(len(x))
        have = np.zeros(len(x), dtype=np.int64)
        for i in range(x.shape[1]):
            share = np.clip((below[:, i] - before) / np.maximum(1.0 - before, 1e-300), 0.0, 1.0)
            have = have + rng.binomial(self.sizes.chunks - have, share)
            counts[:, i], before = have, np.maximum(below[:, i], before)
        return counts

    def _minimiser(self, x: FloatArray, ones: BoolArray, zeros: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Least x from which on labels are 1, of the places with the fewest errors; points beyond the zone agree."""
        nothing = np.zeros((len(x), 1), dtype=np.int64)
        ones_before = np.concatenate([nothing, ones.cumsum(axis=1)], axis=1)
        zeros_before = np.concatenate([nothing, zeros.cumsum(axis=1)], axis=1)
        cut = (ones_before + zeros_before[:, -1:] - zeros_before).argmin(axis=1)
        # The first point beyond the zone: of m points that are uniform, the spacing.
        beyond = self.zone[1] + rng.exponential(1.0 / self.sizes.points, len(x))
        place = np.concatenate([x, np.full((len(x), 1), np.inf)], axis=1)[np.arange(len(x)), cut]
        return np.where(np.isfinite(place), place, beyond)


@dataclass(frozen=True)
class LabelPrivateStudents(ThresholdStudents):
    """Section 4.2: thresholds learned from one sample of n + m rows each, of which the last m lose their labels.

    Every teacher is drawn, and every one of the last m rows is asked about, in their order; `ThresholdStudents` draws
    the counts of votes at those points only that might be refused. Takes what that takes; teachers are
    `SmallestPositiveThreshold`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.teachers, SmallestPositiveThreshold), "teachers that are one-sided", self.teachers)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` learned thresholds, shape (n,); the data are not looked at."""
        del data
        require_draws(n)
        batch = max(1, _BATCH // max(self.sizes.points, self.sizes.chunks))
        return np.concatenate([self._students(min(batch, n - i), rng) for i in range(0, n, batch)])

    def _students(self, n: int, rng: np.random.Generator) -> FloatArray:
        assert isinstance(self.teachers, SmallestPositiveThreshold)
        points, chunks = self.sizes.points, self.sizes.chunks
        learned = np.sort(self.teachers.draw(self.sizes.chunk, (n, chunks), rng), axis=1)
        x = rng.uniform(-0.5, 0.5, (n, points))
        # Rows one after the other, each 2 further, are one sorted list.
        further = 2.0 * np.arange(n)[:, None]
        ones = np.searchsorted((learned + further).ravel(), (x + further).ravel(), side="right").reshape(x.shape)
        ones -= chunks * np.arange(n)[:, None]
        distance = self.distance(np.stack([chunks - ones, ones], axis=-1))
        # A point so far above the threshold is refused in a part of 1e-12 of the runs; the others come first, in order.
        sure = distance >= self.bar + 2.0 * self.noise * math.log(points / _LEFT_OUT)
        order = np.argsort(sure, axis=1, kind="stable")[:, : max(1, int((~sure).sum(axis=1).max()))]
        asked = np.where(np.take_along_axis(sure, order, axis=1), np.inf, np.take_along_axis(distance, order, axis=1))
        refused = np.zeros_like(sure)
        found = refusals(asked, self.noise, self.bar, self.sizes.cutoff + 1, rng) != 0
        np.put_along_axis(refused, order, found, axis=1)
        label = np.where(refused, rng.integers(0, 2, x.shape) == 1, ones > chunks - ones)
        placed = np.argsort(x, axis=1)
        x, label = np.take_along_axis(x, placed, axis=1), np.take_along_axis(label, placed, axis=1)
        return 0.5 + self._minimiser(x, label, ~label, rng)
