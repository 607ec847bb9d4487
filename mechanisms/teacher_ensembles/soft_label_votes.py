"""Private soft labels where the votes are random: Algorithms 6 to 8 on chunks of fresh examples, and their sizes.

The chunks' learner predicts ``offset + slope * (mean of n' Bernoulli(q) labels)`` at each query, with an offset and a
slope of the query's own. Votes count through histograms only, plain and shifted by half a bin, so it is enough to draw
how many of the k votes fall into each half-bin: one multinomial draw, exact, whatever k and n' are.

Source: document 004, Algorithms 6 to 8, Lemma 5.13, Theorem 5.14; catalogue 004, weak_to_strong and slq_main.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.laws import FiniteLaw
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
from mechanisms.selection.free_tops import tail
from mechanisms.teacher_ensembles.soft_labels import BOTTOM, HALTED, corrected_threshold, noise_scale

#: Votes that are as rare as the rounding of differences of the binomial distribution are not drawn.
_NEVER = 1e-15
#: Relative rounding of a width that is 1 over an integer.
_ROUNDING = 1e-12

# --------------------------------------------------------------------------------------- sizes


def lemma_chunks(scale: float, bar: float, beta: float) -> int:
    """Chunks k of Lemma 5.13, ``3 (sqrt(5) lambda ln(2/beta') + w)``, rounded up."""
    return math.ceil(3.0 * (math.sqrt(5.0) * scale * math.log(2.0 / beta) + bar))


def printed_chunks(epsilon: float, delta: float, beta: float, queries: int, cutoff: int, factor: float = 2.0) -> int:
    """Chunks k of Theorem 5.14, ``136 ln(8 m T / min(beta, delta)) sqrt(2 T ln(2/delta)) / epsilon``, rounded up.

    ``factor`` is the 2 under the root; a mutant has 1.
    """
    log = math.log(8.0 * queries * cutoff / min(beta, delta))
    return math.ceil(136.0 * log * math.sqrt(factor * cutoff * math.log(2.0 / delta)) / epsilon)


def stable_distance(epsilon: float, delta: float, beta: float, queries: int, cutoff: int) -> float:
    """Distance d of Theorem 5.6, ``8 lambda ln(8 m T / min(beta, delta))``, which the votes' distance must reach."""
    scale = noise_scale(epsilon, delta, cutoff)
    return 8.0 * scale * math.log(8.0 * queries * cutoff / min(beta, delta))


def bins_of(width: float) -> int:
    """1/gamma: gamma is raised to 1 over the next integer, at most 1/2.

    Raises
    ------
    ValueError
        If the width is above 1/2.
    """
    require(0 < width <= 0.5 * (1 + _ROUNDING), "a width in (0, 1/2]", width)
    return math.floor((1 + _ROUNDING) / width)


# --------------------------------------------------------------------------------------- votes


@dataclass(frozen=True)
class VotePopulation:
    """Chunks of n' Bernoulli(q) labels, and a learner's predictions at a stream of queries.

    Parameters
    ----------
    q : float
        Probability of the label 1.
    size : int
        n'.
    offsets, slopes : tuple of float
        Of each point x: a chunk predicts ``offset + slope * mean`` there. Slopes are positive.
    stream : tuple of int
        Which point each of the m queries is at; default each of them once.
    """

    q: float
    size: int
    offsets: tuple[float, ...] = (0.0,)
    slopes: tuple[float, ...] = (1.0,)
    stream: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require(0 < self.q < 1, "a probability q in (0, 1)", self.q)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a chunk of n' >= 1", self.size)
        require(len(self.offsets) == len(self.slopes) > 0, "as many slopes as offsets", self.slopes)
        require(min(self.slopes) > 0, "positive slopes", self.slopes)
        ends = [*self.offsets, *(a + b for a, b in zip(self.offsets, self.slopes, strict=True))]
        require(min(ends) >= 0 and max(ends) <= 1, "predictions in [0, 1]", ends)
        require(set(self.stream) <= set(range(len(self.offsets))), "queries at the points", self.stream)

    @property
    def queries(self) -> tuple[int, ...]:
        """The point of each query."""
        return self.stream or tuple(range(len(self.offsets)))

    @property
    def alpha(self) -> float:
        """On-average stability at this q, at the point where it is worst."""
        return max(self.slopes) * math.sqrt(2.0 * self.q * (1.0 - self.q)) / self.size

    @property
    def alpha_everywhere(self) -> float:
        """On-average stability for every q: that of q = 1/2."""
        return max(self.slopes) / (math.sqrt(2.0) * self.size)

    @property
    def expectations(self) -> FloatArray:
        """Expected prediction at each query, shape (m,)."""
        points = np.array([a + b * self.q for a, b in zip(self.offsets, self.slopes, strict=True)])
        return points[list(self.queries)]

    def cells(self, bins: int) -> tuple[FloatArray, IntArray]:
        """Probabilities of what a chunk can vote, and the half-bins of its votes; shapes (c,) and (c, points).

        Notes
        -----
        A half-bin changes where ``offset + slope i / n'`` reaches a multiple of gamma/2, at an integer i that is
        computed in rational arithmetic: edges belong to the bin above.
        """
        edges = [
            [math.ceil((Fraction(j, 2 * bins) - Fraction(a)) * self.size / Fraction(b)) for j in range(1, 2 * bins)]
            for a, b in zip(self.offsets, self.slopes, strict=True)
        ]
        starts = np.unique([0, *(e for point in edges for e in point if 0 < e <= self.size)])
        ends = np.append(starts[1:], self.size + 1)
        mass = stats.binom.cdf(ends - 1, self.size, self.q) - stats.binom.cdf(starts - 1, self.size, self.q)
        half = np.array([np.searchsorted(point, starts, side="right") for point in edges])
        held = mass > _NEVER
        return mass[held] / mass[held].sum(), half.T[held]

    def counts(self, bins: int, chunks: int, n: int, rng: np.random.Generator) -> list[IntArray]:
        """How many of k votes fall into each half-bin: for each point, int64 of shape (n, 2 * bins)."""
        mass, half = self.cells(bins)
        drawn = rng.multinomial(chunks, mass, size=n)
        return [drawn @ (half[:, [x]] == np.arange(2 * bins)).astype(np.int64) for x in range(half.shape[1])]


def histograms(half: IntArray) -> tuple[IntArray, IntArray]:
    """Plain and shifted histogram, from counts of half-bins of shape (..., 2B) to (..., B) and (..., B - 1)."""
    pairs = half.shape[:-1]
    plain = half.reshape(*pairs, -1, 2).sum(axis=-1)
    shifted = half[..., 1:-1].reshape(*pairs, -1, 2).sum(axis=-1)
    return plain, shifted


def leader(counts: IntArray) -> tuple[IntArray, IntArray]:
    """The fullest bin (from 0, of several the first) and ``max(0, gap - 1)``; from shape (..., B) to (...).

    The second largest count of a single bin is 0.
    """
    if counts.shape[-1] == 1:
        counts = np.concatenate([counts, np.zeros_like(counts)], axis=-1)
    ranked = np.partition(counts, -2, axis=-1)
    return counts.argmax(axis=-1), np.maximum(ranked[..., -1] - ranked[..., -2] - 1, 0)


# ---------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class FreshSoftLabels:
    """Algorithm 6 on fresh chunks.

    Parameters
    ----------
    bins : int
        1/gamma, at least 2.
    chunks : int
        k.
    scale, bar : float
        lambda and w.
    cutoff : int
        T: the run goes on while c <= T.

    Notes
    -----
    The data are a `VotePopulation`. Outputs are codes, int64 of shape (n, m): c for the label ``c gamma / 2``,
    `BOTTOM`, or `HALTED` where a query is not asked any more.
    """

    bins: int
    chunks: int
    scale: float
    bar: float
    cutoff: int = 1

    def __post_init__(self) -> None:
        require(isinstance(self.bins, (int, np.integer)) and self.bins >= 2, "at least two bins", self.bins)
        require(isinstance(self.chunks, (int, np.integer)) and self.chunks >= 1, "a number of chunks >= 1", self.chunks)
        require_positive("scale", self.scale)
        require(math.isfinite(self.bar), "a finite threshold", self.bar)
        require(isinstance(self.cutoff, (int, np.integer)) and self.cutoff >= 1, "a cutoff >= 1", self.cutoff)

    def __call__(self, data: VotePopulation, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` runs."""
        require_draws(n)
        tests = [[leader(one) for one in histograms(c)] for c in data.counts(self.bins, self.chunks, n, rng)]
        return self.answers([tests[x] for x in data.queries], n, rng)

    def answers(self, tests: list[list[tuple[IntArray, IntArray]]], n: int, rng: np.random.Generator) -> IntArray:
        """Codes of `n` runs, given bin and distance of both tests for each query."""
        spent, noise = np.zeros(n, dtype=np.int64), rng.laplace(scale=self.scale, size=n)
        codes = np.empty((n, len(tests)), dtype=np.int64)
        for i, ((plain, first), (shifted, second)) in enumerate(tests):
            asked = spent <= self.cutoff
            one = first + rng.laplace(scale=2.0 * self.scale, size=n) > self.bar + noise
            fresh = np.where(one | ~asked, noise, rng.laplace(scale=self.scale, size=n))
            two = second + rng.laplace(scale=2.0 * self.scale, size=n) > self.bar + fresh
            found = np.where(one, 2 * plain + 1, np.where(two, 2 * shifted + 2, BOTTOM))
            codes[:, i] = np.where(asked, found, HALTED)
            failed = asked & ~one & ~two
            noise = np.where(failed, rng.laplace(scale=self.scale, size=n), fresh)
            spent += np.where(asked & ~one, np.where(two, 1, 2), 0)
        return codes

    def passed(self, distances: IntArray) -> FloatArray:
        """Probabilities that distances pass a test against a fresh threshold, of any shape."""
        values, where = np.unique(distances, return_inverse=True)
        return np.array([tail(self.bar - value, self.scale) for value in values])[where].reshape(np.shape(distances))

    def first_law(self, half: IntArray) -> dict[int, FloatArray]:
        """Exact probabilities of the codes of the first query, given counts of half-bins of shape (..., 2B)."""
        (plain, first), (shifted, second) = (leader(one) for one in histograms(half))
        one, two = self.passed(first), self.passed(second)
        law = {code: np.zeros(np.shape(one)) for code in (BOTTOM, *range(1, 2 * self.bins))}
        law[BOTTOM] = (1.0 - one) * (1.0 - two)
        for code in range(1, 2 * self.bins):
            hit = plain == (code - 1) // 2 if code % 2 else shifted == code // 2 - 1
            law[code] = np.where(hit, one if code % 2 else (1.0 - one) * two, 0.0)
        return law

    def label(self, codes: NDArray[np.int64]) -> FloatArray:
        """Labels of codes; infinite for `BOTTOM` and `HALTED`."""
        return np.where(codes > 0, codes * 0.5 / self.bins, math.inf)


@dataclass(frozen=True)
class LargestLabelError:
    """Largest distance of a run's labels from the expected predictions; infinite where one is missing."""

    labels: FreshSoftLabels
    population: VotePopulation

    def __call__(self, codes: NDArray[np.int64]) -> FloatArray:
        """Errors of n runs, shape (n,)."""
        return np.asarray(np.abs(self.labels.label(codes) - self.population.expectations).max(axis=1))


def failure(labels: FreshSoftLabels, population: VotePopulation, at_most: float) -> float:
    """Exact probability that the only query's label is missing or off by more, where a chunk votes one way or two.

    Raises
    ------
    ValueError
        If it can vote in more ways, or there are more queries.
    """
    mass, half = population.cells(labels.bins)
    require(len(mass) <= 2 and population.queries == (0,), "one or two ways to vote at one query", half.shape)
    first = np.arange(labels.chunks + 1)
    counts = np.zeros((len(first), 2 * labels.bins), dtype=np.int64)
    counts[:, half[0, 0]] += first
    counts[:, half[-1, 0]] += labels.chunks - first
    weight = stats.binom.pmf(first, labels.chunks, mass[0])
    fails = LargestLabelError(labels, population)
    wrong = [code for code in (BOTTOM, *range(1, 2 * labels.bins)) if fails(np.array([[code]]))[0] > at_most]
    law = labels.first_law(counts)
    return float(sum(weight @ law[code] for code in wrong))


@dataclass(frozen=True)
class OneSoftLabel:
    """Algorithm 8 at one query, where every chunk is one record, its vote: what a learner that echoes it would give.

    Parameters
    ----------
    epsilon, delta : float
        The claimed level; T and m are 1.
    bins : int
        1/gamma.

    Notes
    -----
    The data are votes in [0, 1], shape (k,); the outputs codes as in `FreshSoftLabels`, shape (n,).
    """

    epsilon: float
    delta: float
    bins: int

    @cached_property
    def labels(self) -> FreshSoftLabels:
        """The algorithm, at the corrected threshold; the number of chunks is not used."""
        scale = noise_scale(self.epsilon, self.delta, 1)
        return FreshSoftLabels(self.bins, 1, scale, corrected_threshold(scale, self.delta, 1))

    def _count_half_bins(self, data: Dataset) -> IntArray:
        votes = np.asarray(data, dtype=np.float64)
        require(votes.ndim == 1 and bool(np.all((votes >= 0) & (votes <= 1))), "votes in [0, 1], shape (k,)", data)
        half = np.minimum(np.floor(votes * 2 * self.bins), 2 * self.bins - 1).astype(np.int64)
        return np.bincount(half, minlength=2 * self.bins)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.int64] | FloatArray:
        """Draw `n` outputs."""
        require_draws(n)
        tests = [leader(one) for one in histograms(self._count_half_bins(data))]
        return self.labels.answers([tests], n, rng)[:, 0]

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the output."""
        law = self.labels.first_law(self._count_half_bins(data))
        held = {code: float(p) for code, p in law.items() if p > 0}
        return FiniteLaw(tuple(held), np.array(list(held.values())))


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class MeanOfVotesReleased(OneSoftLabel):
    """Where a test is passed, the mean of the votes is given out in place of the midpoint."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs, float64."""
        codes = super().__call__(data, n, rng)
        return np.where(codes == BOTTOM, float(BOTTOM), float(np.mean(data)))

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the output."""
        bottom = float(self.labels.first_law(self._count_half_bins(data))[BOTTOM])
        return FiniteLaw((float(BOTTOM), float(np.mean(data))), np.array([bottom, 1.0 - bottom]))


@dataclass(frozen=True)
class ThresholdTestSkipped(OneSoftLabel):
    """The midpoint of the fullest bin is always given out."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw `n` outputs."""
        require_draws(n)
        del rng
        return np.full(n, self._code(data))

    def _code(self, data: Dataset) -> int:
        return 2 * int(leader(histograms(self._count_half_bins(data))[0])[0]) + 1

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the output: it is certain."""
        return FiniteLaw((self._code(data),), np.ones(1))


MUTANTS: dict[str, Mutant[OneSoftLabel]] = tabulate_mutants(
    Mutant(
        "sample_mean_output",
        Twin(MeanOfVotesReleased),
        unbounded,
        "violation",
        "the mean of the votes tells each of them",
    ),
    Mutant(
        "threshold_test_skipped",
        Twin(ThresholdTestSkipped),
        unbounded,
        "violation",
        "the label is always released: ties flip it",
    ),
)
