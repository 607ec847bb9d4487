"""A private learner driven by statistical queries: one chunk of the sample a query, Laplace noise on a lattice.

An algorithm that learns from statistical queries asks M of them, adaptively, and needs each answered to within a
tolerance tau. Here query i is answered from chunk i of the sample, its rows i s to (i + 1) s - 1, by the mean plus
Laplace noise of scale ``1 / (epsilon s)``. A row lies in one chunk, so it can change one answer only, and the whole
transcript is epsilon-DP (parallel composition), whatever is asked. What the algorithm makes of the transcript is
post-processing.

Source: document 000, section 1, Theorem 1; catalogue 000_001_003, sq_to_dp_learner. The noise in its proof is M times
as wide as this (`PrintedNoise`). The document names no algorithm; conjunctions and thresholds are this harness's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.datasets.pandas_types import is_frame
from auditor.privacy.exact import FiniteLaw, ProductLaw, TwoSidedGeometricLaw
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
)
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.base.queries import column_values
from mechanisms.statistical_queries.query_algorithms import ConjunctionAlgorithm, StatisticalQueryAlgorithm

BoolArray: TypeAlias = NDArray[np.bool_]

# ------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class _NoisyAnswers:
    """What answers from a given sample and answers from fresh examples share: the noise, and the dialogue."""

    algorithm: StatisticalQueryAlgorithm
    epsilon: float
    size: int
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a chunk size >= 1", self.size)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5 and self.step <= 1, "a power of two, at most 1, as step", self.step)

    @property
    def calibrated(self) -> float:
        """The level to which the noise of one answer is calibrated."""
        return self.epsilon

    @property
    def base(self) -> float:
        """Base of the integer noise: a row moves the sum of a chunk by at most ``1 / step`` lattice steps."""
        return base_for(self.calibrated, round(1.0 / self.step))

    @property
    def unit(self) -> float:
        """What a lattice step is worth in an answer."""
        return self.step / self.size

    def sums(self, data: Dataset, index: int, asked: IntArray, rng: np.random.Generator) -> IntArray:
        """Sums of the asked queries over chunk `index`, one for each run, in lattice steps; shape (n,)."""
        raise NotImplementedError

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` transcripts; float64 of shape (n, M), multiples of the unit."""
        require_draws(n)
        answers = np.empty((n, self.algorithm.queries), dtype=np.float64)
        noise = two_sided_geometric(self.base, answers.shape, rng)  # at once: no draw depends on what is asked
        for i in range(self.algorithm.queries):
            exact = self.sums(data, i, self.algorithm.ask(answers[:, :i]), rng)
            answers[:, i] = (exact + noise[:, i]) * self.unit
        return answers


@dataclass(frozen=True)
class ChunkedAnswers(_NoisyAnswers):
    """The transcript: query i is answered by the noisy mean over rows i s to (i + 1) s - 1.

    Parameters
    ----------
    algorithm : StatisticalQueryAlgorithm
        Who asks.
    epsilon : float
        Claimed pure level, under replace-one.
    size : int
        Rows a chunk, s; public. The data must have M s rows or more; rows beyond are not read.
    step : float, default 2**-10
        Lattice step in rows: a power of two, at most 1. Each value is rounded to a multiple of it, so the sum of a
        chunk moves by at most ``1 / step`` steps; noise has base ``a = exp(epsilon step)`` on the lattice. A thousandth
        of a row, so that to the eye it is the Laplace distribution.

    Raises
    ------
    ValueError
        If a parameter is out of range, the data are short, or a query's values are not in [0, 1].

    Notes
    -----
    Rows are chunked by position. A cut that depends on values (`ChunksOfSortedRows`) can be moved by one row in every
    chunk. The transcript is epsilon-DP for any algorithm: given the past answers, the distribution of the answer from
    chunk i depends on that chunk only.
    """

    def rows_of(self, data: Dataset, index: int) -> IntArray:
        """Positions of the rows of chunk `index`, shape (s,)."""
        del data  # chunks are cut by position, not by value
        return np.arange(index * self.size, (index + 1) * self.size, dtype=np.int64)

    def needed(self) -> int:
        """Rows that the data must have."""
        return self.algorithm.queries * self.size

    def sums(self, data: Dataset, index: int, asked: IntArray, rng: np.random.Generator) -> IntArray:
        """Sums of the asked queries over a chunk, in lattice steps; shape (n,)."""
        del rng
        require(len(data) >= self.needed(), f"at least {self.needed()} rows", len(data))
        rows = _records_at(data, self.rows_of(data, index))
        queries, of_run = np.unique(asked, return_inverse=True)
        found = [self._sum(self.algorithm.values(int(query), rows)) for query in queries]
        return np.array(found, dtype=np.int64)[of_run.ravel()]

    def _sum(self, values: FloatArray) -> int:
        require(bool(np.all((values >= 0) & (values <= 1))), "values in [0, 1]", values)
        return int(np.floor(values / self.step + 0.5).astype(np.int64).sum())


@dataclass(frozen=True)
class FixedAnswers(ChunkedAnswers):
    """`ChunkedAnswers` of an algorithm whose queries are fixed in advance, so that answers are independent."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not self.algorithm.adaptive, "an algorithm whose queries are fixed in advance", self.algorithm)

    def law(self, data: Dataset) -> ProductLaw:
        """Exact distribution of the transcript: two-sided geometric answers, in units of ``step / size``."""
        unused, a = np.random.default_rng(0), self.base
        parts: list[TwoSidedGeometricLaw] = []
        for i in range(self.algorithm.queries):
            asked = self.algorithm.ask(np.zeros((1, i)))
            parts.append(TwoSidedGeometricLaw(int(self.sums(data, i, asked, unused)[0]), a, self.unit))
        return ProductLaw(tuple(parts))


@dataclass(frozen=True)
class StatisticalQueryLearner:
    """Releases only what the algorithm learned; `answers` is a `ChunkedAnswers` or a `FreshAnswers`."""

    answers: _NoisyAnswers

    @property
    def epsilon(self) -> float:
        """The claimed level of the transcript, which post-processing keeps."""
        return self.answers.epsilon

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` hypotheses; float64 of shape (n,) or (n, d)."""
        return self.answers.algorithm.hypothesis(self.answers(data, n, rng))


@dataclass(frozen=True)
class ConjunctionLearner(StatisticalQueryLearner):
    """`StatisticalQueryLearner` of a conjunction from a given sample."""

    answers: FixedAnswers

    def __post_init__(self) -> None:
        require(
            isinstance(self.answers.algorithm, ConjunctionAlgorithm), "ConjunctionAlgorithm", self.answers.algorithm
        )

    def law(self, data: Dataset) -> ProductLaw:
        """Exact distribution of the hypothesis: bit j is kept if answer j is at most tau; bits are independent."""
        answers, tau = self.answers, self.answers.algorithm.tolerance
        highest = _last_at_most(tau, answers.unit)
        return ProductLaw(
            tuple(
                FiniteLaw((0.0, 1.0), np.array(_above_and_at_most(part.a, highest - part.loc)))
                for part in answers.law(data).parts
                if isinstance(part, TwoSidedGeometricLaw)
            )
        )


@dataclass(frozen=True)
class FreshAnswers(_NoisyAnswers):
    """The transcript on a fresh sample of M s examples from a distribution.

    Parameters as in `ChunkedAnswers`; the data are the distribution, as far as the queries see it: their expectations,
    shape (pool,), in [0, 1] (see `expectations`). Values of queries are 0 or 1.

    Notes
    -----
    Nothing is drawn but the sums. Chunk i is independent of all that came before it, so given the query, which may
    depend on past answers, the sum of its s values is binomial.
    """

    def sums(self, data: Dataset, index: int, asked: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the sum of s values of each run's query, in lattice steps; shape (n,)."""
        del index
        means = np.asarray(data, dtype=np.float64)
        require(means.shape == (self.algorithm.pool,), f"{self.algorithm.pool} expectations", means.shape)
        return rng.binomial(self.size, means[asked]).astype(np.int64) * round(1.0 / self.step)

    def miss(self, mean: float, tolerance: float) -> float:
        """Probability that the answer to a query of this expectation is off by more than `tolerance`.

        Exact: the binomial distribution of the sum, and the tails of the noise for each of its values. Time O(s).
        """
        rows = np.arange(self.size + 1, dtype=np.float64)
        noise, exact = TwoSidedGeometricLaw(0, self.base), rows / self.step
        # P[Z > t] = P[Z < -t], and P[Z < t] = P[Z <= ceil(t) - 1].
        above = noise.cdf(np.ceil(exact - (mean + tolerance) / self.unit) - 1.0)
        below = noise.cdf(np.ceil((mean - tolerance) / self.unit - exact) - 1.0)
        return min(1.0, float(stats.binom.pmf(rows, self.size, mean) @ (above + below)))

    def miss_any(self, means: FloatArray, tolerance: float) -> float:
        """Probability that one of several answers is off by more than `tolerance`, for queries fixed in advance."""
        single = {mean: self.miss(mean, tolerance) for mean in set(means.tolist())}
        return -math.expm1(sum(math.log1p(-single[mean]) if single[mean] < 1 else -math.inf for mean in means.tolist()))


def expectations(algorithm: StatisticalQueryAlgorithm, rows: Dataset) -> FloatArray:
    """Expectations of all queries of a pool under the uniform distribution on the rows; shape (pool,).

    Raises
    ------
    ValueError
        If a query has values other than 0 and 1, for which `FreshAnswers` would not be right.
    """
    means = np.empty(algorithm.pool)
    for query in range(algorithm.pool):
        values = algorithm.values(query, rows)
        require(bool(np.all((values == 0) | (values == 1))), "values 0 and 1", np.unique(values))
        means[query] = values.mean()
    return means


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SharedChunk(FixedAnswers):
    """The first chunk answers every query."""

    def rows_of(self, data: Dataset, index: int) -> IntArray:
        """Rows of the first chunk."""
        del index
        return super().rows_of(data, 0)


@dataclass(frozen=True)
class OverlappingChunks(FixedAnswers):
    """A chunk begins half a chunk after the one before it: most rows are in two."""

    def rows_of(self, data: Dataset, index: int) -> IntArray:
        """Rows of a window of the size of a chunk."""
        del data
        start = index * ((self.size + 1) // 2)
        return np.arange(start, start + self.size, dtype=np.int64)


@dataclass(frozen=True)
class MiscalibratedAnswers(FixedAnswers):
    """Noise of the scale that gives level `level`, where `epsilon` is claimed."""

    level: float = field(default=1.0)

    @property
    def calibrated(self) -> float:
        """The level that the noise gives."""
        return self.level


@dataclass(frozen=True)
class PrintedNoise(FixedAnswers):
    """Noise of scale ``M / (epsilon s)``, as the proof prints it: the level is ``epsilon / M``."""

    @property
    def calibrated(self) -> float:
        """The claimed level, divided among the queries."""
        return self.epsilon / self.algorithm.queries


@dataclass(frozen=True)
class FreshPrintedNoise(FreshAnswers):
    """`PrintedNoise` on fresh examples."""

    @property
    def calibrated(self) -> float:
        """The claimed level, divided among the queries."""
        return self.epsilon / self.algorithm.queries


@dataclass(frozen=True)
class ChunksOfSortedRows(FixedAnswers):
    """Rows are sorted by a column before they are cut into chunks: one row shifts all the cuts that it passes."""

    by: Hashable | None = None

    def rows_of(self, data: Dataset, index: int) -> IntArray:
        """Positions of the rows of a chunk in order of value; ties in order of position."""
        order = np.argsort(column_values(data, self.by), kind="stable")
        return np.asarray(order[super().rows_of(data, index)], dtype=np.int64)


@dataclass(frozen=True)
class _WithLevel:
    level: Callable[[ChunkedAnswers], float]

    def __call__(self, base: FixedAnswers) -> MiscalibratedAnswers:
        """Return the mutant of `base`."""
        return MiscalibratedAnswers(base.algorithm, base.epsilon, base.size, base.step, self.level(base))


def _inverse_epsilon(base: Any) -> float:
    return 1.0 / float(base.epsilon)


def _level_one(base: object) -> float:  # noqa: ARG001 -- the signature of Mutant.true_level
    return 1.0


def _all_queries(base: FixedAnswers) -> float:
    return base.epsilon * base.algorithm.queries


def _a_share(base: FixedAnswers) -> float:
    return base.epsilon / base.algorithm.queries


def sorted_by(column: Hashable) -> Mutant[FixedAnswers]:
    """Mutant whose chunks are cut after sorting by a column."""

    def build(base: FixedAnswers) -> ChunksOfSortedRows:
        return ChunksOfSortedRows(base.algorithm, base.epsilon, base.size, base.step, column)

    return Mutant(
        "chunking_after_sorting",
        build,
        _all_queries,
        "violation",
        "chunks cut after sorting by value: M epsilon where all cuts shift, and every answer with them",
    )


MUTANTS: dict[str, Mutant[FixedAnswers]] = tabulate_mutants(
    Mutant(
        "shared_chunk",
        Twin(SharedChunk),
        _all_queries,
        "violation",
        "one chunk answers every query at the scale of one: a row that all queries count against one that none does",
    ),
    Mutant(
        "overlapping_chunks",
        Twin(OverlappingChunks),
        TimesEpsilon(2.0),
        "violation",
        "chunks overlap by half: a row that lies in two and moves both answers",
    ),
    Mutant(
        "noise_scale_alpha_over_s",
        _WithLevel(_inverse_epsilon),
        _inverse_epsilon,
        "violation",
        "scale epsilon / s for 1 / (epsilon s): 1 / epsilon, a violation for epsilon < 1",
    ),
    Mutant(
        "noise_scale_1_over_s",
        _WithLevel(_level_one),
        _level_one,
        "violation",
        "scale 1 / s: 1, a violation for epsilon < 1",
    ),
    Mutant(
        "printed_noise_scale",
        Twin(PrintedNoise),
        _a_share,
        "benign",
        "scale M / (epsilon s), as printed: M times as private as claimed, and M times as far off",
    ),
)


# ----------------------------------------------------------------------------------- helpers


def _records_at(data: Dataset, positions: IntArray) -> Dataset:
    if np.all(np.diff(positions) == 1):
        # A slice is a view: chunks by position are most of the work otherwise.
        chunk = slice(int(positions[0]), int(positions[-1]) + 1)
        return data.iloc[chunk] if is_frame(data) else np.asarray(data)[chunk]
    return data.iloc[positions] if is_frame(data) else np.asarray(data)[positions]


def _last_at_most(value: float, unit: float) -> int:
    """Largest integer m with ``m * unit <= value`` in float64, which is how outputs are compared."""
    m = math.floor(value / unit)
    while (m + 1) * unit <= value:
        m += 1
    while m * unit > value:
        m -= 1
    return m


def _above_and_at_most(a: float, k: int) -> tuple[float, float]:
    """``P[Z > k]`` and ``P[Z <= k]`` of a two-sided geometric Z of base a, the smaller without cancellation."""
    law = TwoSidedGeometricLaw(0, a)
    return float(law.cdf(-k - 1)), float(law.cdf(k))
