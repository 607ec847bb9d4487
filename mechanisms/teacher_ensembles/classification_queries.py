"""Public unlabelled points classified by votes of teachers, each trained on a chunk of private examples.

Examples are points of [0, 1], uniformly distributed, with the label "above 1/2", which is flipped with some
probability. A teacher is a threshold; how far it is from 1/2 is its shift, and its error as far as it can be avoided.

Source: document 004, section 4.1, Corollary 4.1, Lemma 4.2 and Claim 4.5; catalogue 004, bin_clas, mistake_count,
rates_pac and hpriv_err.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.selection.free_tops import tails
from mechanisms.teacher_ensembles.online_leaks import release_scale, release_threshold
from mechanisms.teacher_ensembles.vote_aggregation import printed_chunks, refusals

#: Queries whose distance is so many scales above the threshold are refused with probability below e^-40.
_CERTAIN = 80.0


# ----------------------------------------------------------------------------------- parameters


def fewest_queries(alpha: float, beta: float) -> int:
    """Number of queries from which the theorems hold, m: ``4 ln(1/(alpha beta)) / alpha^2``, rounded up."""
    require(0 < alpha < 1, "an alpha in (0, 1)", alpha)
    require(0 < beta < 1, "a beta in (0, 1)", beta)
    return math.ceil(4.0 * math.log(1.0 / (alpha * beta)) / alpha**2)


def error_budget(queries: int, error: float, beta: float) -> int:
    """Refusals that Corollary 4.1 allows, T: ``3 ((gamma + alpha) m + sqrt(m ln(m/beta) / 2))``, rounded down.

    Parameters
    ----------
    queries : int
        m.
    error : float
        gamma + alpha, what each teacher's error is at most with high probability.
    beta : float
        Allowed probability of failure.
    """
    return math.floor(3.0 * (error * queries + math.sqrt(queries * math.log(queries / beta) / 2.0)))


def sharper_budget(queries: int, error: float, beta: float) -> int:
    """``3 ((gamma + alpha) m + sqrt(m ln(1/beta) / 2))``, which suffices, rounded down.

    By Hoeffding's inequality for the mean over all teachers: where more than k/3 of them err, that mean is above 1/3.
    """
    return math.floor(3.0 * (error * queries + math.sqrt(queries * math.log(1.0 / beta) / 2.0)))


@dataclass(frozen=True)
class ClassificationSizes:
    """All numbers of a run, by the formulas of the document.

    Parameters
    ----------
    queries : int
        m.
    alpha, gamma : float
        Excess error of the teachers, and the error of the best hypothesis.
    epsilon, delta, beta : float
        Claimed level, allowed probability of failure.
    budget : callable, default `error_budget`
        From m, gamma + alpha and beta to T.
    """

    queries: int
    alpha: float
    gamma: float = 0.0
    epsilon: float = 8.0
    delta: float = 0.01
    beta: float = 0.1
    budget: Callable[[int, float, float], int] = error_budget

    def __post_init__(self) -> None:
        require(isinstance(self.queries, (int, np.integer)) and self.queries >= 1, "queries >= 1", self.queries)
        require(0 < self.alpha < 1, "an alpha in (0, 1)", self.alpha)
        require(0 <= self.gamma < 0.5, "a gamma in [0, 1/2)", self.gamma)
        require(0 < self.beta < 1, "a beta in (0, 1)", self.beta)
        require(self.cutoff >= 1, "a budget T >= 1", self.cutoff)
        release_scale(self.epsilon, self.delta, self.cutoff)  # refuses levels out of range

    @property
    def cutoff(self) -> int:
        """The budget of errors and refusals, T."""
        return self.budget(self.queries, self.gamma + self.alpha, self.beta)

    @property
    def chunks(self) -> int:
        """Number of teachers, k."""
        return printed_chunks(self.queries, self.cutoff, self.epsilon, self.delta, self.beta)

    @property
    def noise(self) -> float:
        """Scale of the threshold noise, lambda."""
        return release_scale(self.epsilon, self.delta, self.cutoff)

    @property
    def bar(self) -> float:
        """What a distance is compared with, w."""
        return self.noise * release_threshold(self.delta, self.queries)

    @property
    def examples(self) -> int:
        """Examples of a teacher, n': ``ln(k/beta) / alpha``, with which its error is at most alpha w.p. 1 - beta/k."""
        return self.examples_of(1)

    def examples_of(self, cells: int) -> int:
        """``V ln(V k/beta) / alpha``: for thresholds in V cells, each of which is within alpha/V, by a union bound."""
        return math.ceil(cells * math.log(cells * self.chunks / self.beta) / self.alpha)

    @property
    def rows(self) -> int:
        """Private examples in all, n = k n'."""
        return self.chunks * self.examples


# -------------------------------------------------------------------------------------- teachers


class ThresholdTeachers(Protocol):
    """Thresholds of teachers."""

    def shifts(self, chunks: int, rng: np.random.Generator) -> FloatArray:
        """Draw the thresholds less 1/2, in [-1/2, 1/2], shape (chunks,)."""
        ...


@dataclass(frozen=True)
class LargestThresholdTeachers:
    """The largest threshold that agrees with all examples: all teachers err on the same side.

    Parameters
    ----------
    examples : int
        n'. The shift is above t with probability ``(1 - t)^n'``.
    """

    examples: int

    def shifts(self, chunks: int, rng: np.random.Generator) -> FloatArray:
        """Draw distances to the nearest example above 1/2, by inversion; 1/2 where there is none."""
        return np.minimum(-np.expm1(-rng.exponential(1.0 / self.examples, chunks)), 0.5)


@dataclass(frozen=True)
class MidpointTeachers:
    """The threshold half-way between the nearest examples on either side of 1/2.

    Parameters
    ----------
    examples : int
        n'. The distances to both are above a and b with probability ``(1 - a - b)^n'``.
    """

    examples: int

    def shifts(self, chunks: int, rng: np.random.Generator) -> FloatArray:
        """Draw the sum of both distances, which is Beta distributed, and its parts, which are uniform."""
        both = rng.beta(2.0, self.examples - 1.0, chunks)
        above = both * rng.random(chunks)
        return (np.minimum(above, 0.5) - np.minimum(both - above, 0.5)) / 2.0


@dataclass(frozen=True)
class SplitTeachers:
    """Half of the teachers are as far below 1/2 as the others are above: no query between them has a majority.

    Parameters
    ----------
    shift : float
        How far, in (0, 1/2]. Teachers that no theorem's hypothesis excludes, if it is at most ``alpha/(1 - 2 gamma)``.
    """

    shift: float

    def __post_init__(self) -> None:
        require(0 < self.shift <= 0.5, "a shift in (0, 1/2]", self.shift)

    def shifts(self, chunks: int, rng: np.random.Generator) -> FloatArray:
        """Return the shifts, the same each time."""
        del rng
        return np.where(np.arange(chunks) < chunks // 2, -self.shift, self.shift)


@dataclass(frozen=True)
class NearestNeighbour:
    """A learner for `vote_aggregation.Votes`: the label of the nearest example, of several the first.

    Parameters
    ----------
    points : tuple of float
        The public points.

    Notes
    -----
    Examples are rows (point, label) of a float array. An empty chunk gives label 0.
    """

    points: tuple[float, ...]

    def __post_init__(self) -> None:
        require(len(self.points) >= 1, "at least one point", self.points)

    @property
    def queries(self) -> int:
        """Number of points."""
        return len(self.points)

    def __call__(self, chunk: Any) -> IntArray:
        """Return the labels, shape (m,)."""
        if not len(chunk):
            return np.zeros(len(self.points), dtype=np.int64)
        examples = np.asarray(chunk, dtype=np.float64)
        nearest = np.abs(examples[:, 0] - np.array(self.points)[:, None]).argmin(axis=1)
        return np.asarray(examples[nearest, 1], dtype=np.int64)


# ------------------------------------------------------------------------------------------ runs


def _votes(chunks: int, ones: IntArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Distances, gap - 1, and labels, from the number of teachers that vote for 1; a tie gives 0."""
    return np.maximum(np.abs(2.0 * ones - chunks) - 1.0, 0.0), 2 * ones > chunks


def count_missed(
    sizes: ClassificationSizes, distances: FloatArray, errs: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[int, int]:
    """Count the queries that one run leaves without a label, and those with a wrong one.

    Parameters
    ----------
    sizes : ClassificationSizes
        T, lambda and w.
    distances : ndarray of shape (m,)
        Of the votes.
    errs : ndarray of bool, shape (m,)
        Whether most teachers err.
    rng : numpy.random.Generator
        Source of all noise.

    Returns
    -------
    (int, int)
        Queries that are refused or not asked any more, and others that the teachers err on. Queries that are refused
        with probability below e^-40 are answered.
    """
    close = np.flatnonzero(distances < sizes.bar + _CERTAIN * sizes.noise)
    epochs = sizes.cutoff + 1
    found = refusals(distances[None, close], sizes.noise, sizes.bar, epochs, rng)[0]
    refused = close[found == 1]
    end = len(errs) if refused.size < epochs else int(refused[-1]) + 1
    wrong = errs[:end].copy()
    wrong[refused] = False
    return refused.size + len(errs) - end, int(wrong.sum())


@dataclass(frozen=True)
class MislabelledFreshPoints:
    """Fresh teachers and fresh points: how many of these do not get their own label.

    Parameters
    ----------
    sizes : ClassificationSizes
        m, T, k, lambda and w.
    teachers : ThresholdTeachers
        Where their thresholds are.
    stable_errors : bool, default True
        False: labels that are wrong are not counted, only refusals and what is not asked after the run has halted.

    Notes
    -----
    There is no dataset. Outputs are int64 of shape (n,). Queries that are refused with probability below e^-40 are
    answered.
    """

    sizes: ClassificationSizes
    teachers: ThresholdTeachers
    stable_errors: bool = True

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers; the data are not looked at."""
        del data
        require_draws(n)
        # One by one: k thresholds and m points are many already.
        return np.array([self._answer_stream(rng) for _ in range(n)], dtype=np.int64)

    def _answer_stream(self, rng: np.random.Generator) -> int:
        sizes = self.sizes
        shifts = np.sort(self.teachers.shifts(sizes.chunks, rng))
        points = rng.random(sizes.queries) - 0.5
        truth = (points > 0) ^ (rng.random(sizes.queries) < sizes.gamma)
        distances, labels = _votes(sizes.chunks, np.searchsorted(shifts, points))
        lost, wrong = count_missed(sizes, distances, labels != truth, rng)
        return lost + (wrong if self.stable_errors else 0)


def passes(distances: FloatArray, scale: float, threshold: float) -> FloatArray:
    """Probability that a query at a distance is answered, with a fresh threshold: `selection.free_tops.tails`.

    Parameters
    ----------
    distances : ndarray
        Any shape.
    scale, threshold : float
        lambda and w.
    """
    return tails(threshold - distances, scale)


def integrated_error(sizes: ClassificationSizes, shifts: FloatArray, refused: float = 1.0) -> float:
    """Probability that a fresh point does not get its own label from given teachers, with a fresh threshold.

    Parameters
    ----------
    sizes : ClassificationSizes
        lambda, w and gamma.
    shifts : ndarray of shape (k,)
        Of the teachers.
    refused : float, default 1.0
        What a refusal counts; 1/2 where a fair coin replaces it.

    Notes
    -----
    Exact: votes are constant between the thresholds.
    """
    edges = np.concatenate([[-0.5], np.sort(shifts), [0.5]])
    distances, labels = _votes(shifts.size, np.arange(shifts.size + 1))
    answered = passes(distances, sizes.noise, sizes.bar)
    lengths = np.diff(edges)
    above = np.diff(np.maximum(edges, 0.0))  # part of each interval where the label is 1, but for noise
    right = np.where(labels, above, lengths - above)
    kept = (1.0 - sizes.gamma) * right + sizes.gamma * (lengths - right)
    return float(answered @ (lengths - kept) + refused * ((1.0 - answered) @ lengths))


@dataclass(frozen=True)
class LabellerError:
    """Error of the private labeller of Claim 4.5 with fresh teachers: a fair coin in the place of a refusal.

    Parameters
    ----------
    sizes : ClassificationSizes
        m, T, k, lambda and w.
    teachers : ThresholdTeachers
        Where their thresholds are.

    Notes
    -----
    There is no dataset. Each output is a probability over the point and the noise of a fresh threshold, see
    `integrated_error`; only the teachers are drawn.
    """

    sizes: ClassificationSizes
    teachers: ThresholdTeachers

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` errors, shape (n,); the data are not looked at."""
        del data
        require_draws(n)
        drawn = (self.teachers.shifts(self.sizes.chunks, rng) for _ in range(n))
        return np.array([integrated_error(self.sizes, shifts, 0.5) for shifts in drawn])


def one_sided_rate(sizes: ClassificationSizes, examples: int, cells: int = 1) -> float:
    """Expected part of the points that get no or a wrong label from one-sided teachers, with fresh thresholds.

    Parameters
    ----------
    sizes : ClassificationSizes
        k, lambda and w; gamma is 0.
    examples : int
        n'.
    cells : int
        V: the class is of thresholds in V cells of width 1/V, each for itself.

    Notes
    -----
    At u above a threshold a teacher errs with probability ``(1 - u)^n'``. Integrated over u in [0, 1], c of k err with
    probability ``Gamma(c + 1/n') Gamma(k + 1) / (n' c! Gamma(k + 1 + 1/n'))``; beyond u = 1/(2 V), where a cell ends,
    one errs with probability below ``k e^(-n'/(2V))``.
    """
    k, z = sizes.chunks, 1.0 / examples
    wrong = np.arange(1, k + 1)
    log = special.gammaln(wrong + z) - special.gammaln(wrong + 1.0)
    mass = z * np.exp(log + special.gammaln(k + 1.0) - special.gammaln(k + 1.0 + z))
    distances, majority_errs = _votes(k, wrong)
    return float(cells * (mass @ np.where(majority_errs, 1.0, 1.0 - passes(distances, sizes.noise, sizes.bar))))


# ------------------------------------------------------------------------------ Lemma 4.2, counting


def often_wrong(errors: NDArray[np.bool_], xi: float) -> int:
    """How many points more than ``xi k`` of k classifiers err on.

    Parameters
    ----------
    errors : ndarray of bool, shape (k, m)
        Who errs where.
    xi : float
        In (0, 1/2].
    """
    require(0 < xi <= 0.5, "a xi in (0, 1/2]", xi)
    return int((errors.sum(axis=0) > xi * errors.shape[0]).sum())


def concentrated(classifiers: int, points: int, most: int, xi: float) -> NDArray[np.bool_]:
    """Errors, at most so many of each classifier, that make as many points as possible often wrong.

    Each such point takes ``floor(xi k) + 1`` errors, which are dealt out in turn; shape (k, m).
    """
    each = math.floor(xi * classifiers) + 1
    crowded = min(classifiers * most // each, points)
    dealt = np.arange(crowded * each)
    errors = np.zeros((classifiers, points), dtype=np.bool_)
    errors[dealt % classifiers, dealt // each] = True
    return errors
