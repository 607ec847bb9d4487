"""Queries answered exactly as long as they are stable: a sparse vector of distances to instability.

Each query names a value and a distance; the value is given out where the noisy distance is above a noisy threshold, and
nothing otherwise, up to T + 1 times. Exact distributions are those of `mechanisms.selection.sparse_vector`.

Source: document 004, Algorithm 3; catalogue 004, oqr.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw
from auditor.targets.analysts import FixedList
from auditor.targets.interactive import SKIP, Queries, pool_indices
from auditor.targets.transcripts import transcript_law, transcripts
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.queries import IdentityQuery
from mechanisms.selection.free_tops import ChangedSetting, NegatedAnswers, RescaledNoise, noise_scale
from mechanisms.selection.sparse_vector import SparseVector, SparseVectorSession, SparseVectorVariant
from mechanisms.selection.sparse_vector_distribution import SparseVectorBranches
from mechanisms.teacher_ensembles.online_leaks import release_scale, release_threshold
from mechanisms.teacher_ensembles.vote_distance import DistanceQuestion

#: In the place of a value: the query was not stable enough.
BOTTOM = -1
#: The run has halted, or the query was not asked.
HALTED = -2

# Scales are in units of epsilon' = 2 / lambda: threshold noise lambda, query noise 2 lambda.
_ROW = SparseVectorVariant(2.0, 4.0, redraws="after_above")


class DistanceStream(Protocol):
    """Queries with discrete values and distances to instability."""

    @property
    def queries(self) -> int:
        """How many there are, m; public."""
        ...

    def __call__(self, data: Dataset, /) -> tuple[IntArray, FloatArray]:
        """Return the values, integers >= 0, and the distances; both of shape (m,)."""
        ...


@dataclass(frozen=True)
class QuestionList:
    """A list of questions, some of them more than once.

    Parameters
    ----------
    questions : tuple of DistanceQuestion
        At least one.
    order : tuple of int, optional
        Which of them each query is; default each once.
    """

    questions: tuple[DistanceQuestion, ...]
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", tuple(self.questions))
        require(len(self.questions) >= 1, "at least one question", self.questions)
        object.__setattr__(self, "order", tuple(self.order) or tuple(range(len(self.questions))))
        known = all(0 <= i < len(self.questions) for i in self.order)
        require(known, f"indices of {len(self.questions)} questions", self.order)

    @property
    def queries(self) -> int:
        """Length of the list."""
        return len(self.order)

    def __call__(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """Return values and distances, shape (m,); each question is computed once."""
        found = [question(data) for question in self.questions]
        values = np.array([value for value, _ in found], dtype=np.int64)
        distances = np.array([distance for _, distance in found], dtype=np.float64)
        return values[list(self.order)], distances[list(self.order)]


@dataclass(frozen=True)
class GivenDistances:
    """The identity: the dataset is the array of values and distances, shape (m, 2).

    Parameters
    ----------
    queries : int
        m.
    """

    queries: int

    def __post_init__(self) -> None:
        whole = isinstance(self.queries, (int, np.integer)) and self.queries >= 1
        require(whole, "a number of queries >= 1", self.queries)

    def __call__(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """Return the columns; ValueError for another shape."""
        array = np.asarray(data, dtype=np.float64)
        require(array.shape == (self.queries, 2), f"an array of shape ({self.queries}, 2)", array.shape)
        return array[:, 0].astype(np.int64), array[:, 1]


@dataclass(frozen=True)
class OnlineRelease:
    """Algorithm 3: the value of each query whose noisy distance is above a noisy threshold.

    Parameters
    ----------
    stream : DistanceStream
        The queries. Privacy needs distances that move by at most 1 between neighbours, and are 0 for both where the
        value changes.
    epsilon, delta : float
        The claimed level; delta in (0, 1).
    cutoff : int, default 1
        T. Up to T + 1 queries are refused, then the run halts.
    scale : float, optional
        lambda, the scale of the threshold noise; that of the distances is twice as large. Default the document's,
        `release_scale`.
    threshold : float, optional
        w. Default the document's, `release_threshold` times lambda.
    epochs : int, optional
        After how many refusals the run halts; default T + 1.
    row : SparseVectorVariant, optional
        Noises and redraws, in units of lambda / 2; "above" is a refusal. Only mutants have another one.

    Notes
    -----
    Outputs are int64 of shape (n, m): the value, `BOTTOM` or `HALTED`. It is also an interactive mechanism whose pool
    is the queries of the stream, see `auditor.targets.interactive`.
    """

    stream: DistanceStream
    epsilon: float
    delta: float
    cutoff: int = 1
    scale: float | None = None
    threshold: float | None = None
    epochs: int | None = None
    row: SparseVectorVariant = _ROW

    def __post_init__(self) -> None:
        release_scale(self.epsilon, self.delta, self.cutoff)  # refuses parameters out of range
        if self.scale is not None:
            require_positive("scale", self.scale)
        if self.threshold is not None:
            require(math.isfinite(self.threshold), "a finite threshold", self.threshold)
        if self.epochs is not None:
            require(self.epochs >= 1, "at least one epoch", self.epochs)

    @property
    def noise(self) -> float:
        """lambda, the scale of the threshold noise of the reference; mutants may draw another noise."""
        return self.scale if self.scale is not None else release_scale(self.epsilon, self.delta, self.cutoff)

    @property
    def bar(self) -> float:
        """w, what a distance is compared with."""
        stated = self.threshold
        return stated if stated is not None else self.noise * release_threshold(self.delta, self.stream.queries)

    @property
    def most_refusals(self) -> int:
        """After so many refusals the run halts."""
        return self.epochs if self.epochs is not None else self.cutoff + 1

    @property
    def pure_level(self) -> float:
        """``2 / lambda`` for each epoch: what neighbours with the same values can lose, if distances move by 1."""
        return 2.0 * self.most_refusals / self.noise

    @property
    def tests(self) -> SparseVector:
        """The sparse vector of the distances: 1 refuses, 0 gives the value out."""
        return SparseVector(NegatedAnswers(IdentityQuery()), 2.0 / self.noise, -self.bar, self.most_refusals, self.row)

    def _stream_answers(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        values, distances = self.stream(data)
        shape = (self.stream.queries,)
        require(values.shape == distances.shape == shape, f"{shape[0]} values and distances", values.shape)
        require(bool(np.all(values >= 0)), "values >= 0", values)
        return values, distances

    def start(self, data: Dataset, n: int, rng: np.random.Generator) -> ReleaseSession:
        """Begin `n` runs on `data`; see `auditor.targets.interactive.Interactive`."""
        values, distances = self._stream_answers(data)
        return ReleaseSession(values, self.tests.start(distances, n, rng), n)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` transcripts of the whole stream in its order, shape (n, m)."""
        session = self.start(data, n, rng)
        return transcripts(session, FixedList(range(session.pool)), n, rng)

    def branches(self, data: Dataset, rounds: int) -> ReleaseBranches:
        """Begin the tree of answers on `data`, for exact distributions; see `auditor.targets.interactive.Branching`."""
        values, distances = self._stream_answers(data)
        return ReleaseBranches(values, self.tests.branches(distances, rounds))

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`, over tuples of values, -1 and -2; ValueError if there are too many."""
        fixed = FixedList(range(self.stream.queries))
        return transcript_law(self.branches(data, fixed.rounds), fixed)


def _insert_values(answers: NDArray[Any], values: IntArray) -> IntArray:
    """Answers of the sparse vector (1, 0, -1), with the values in the place of 0."""
    return np.where(answers == 0, values, np.where(answers == 1, BOTTOM, HALTED))


class ReleaseSession:
    """Runs of an online release side by side; see `auditor.targets.interactive.Session`.

    Parameters
    ----------
    values : ndarray of shape (m,), int64
        Values of the queries.
    tests : SparseVectorSession
        Who decides which of them are given out.
    n : int
        Number of runs.
    """

    silence = HALTED

    def __init__(self, values: IntArray, tests: SparseVectorSession, n: int) -> None:
        self._values, self._tests, self._n = values, tests, n

    @property
    def pool(self) -> int:
        """Number of queries in the pool."""
        return self._tests.pool

    def ask(self, queries: Queries) -> IntArray:
        """Return shape (n,): the value, `BOTTOM`, or `HALTED`."""
        answers = self._tests.ask(queries)
        return _insert_values(answers, self._values[pool_indices(queries, self._n, self.pool)])


class ReleaseBranches:
    """All transcripts that are possible; see `auditor.targets.interactive.Branches`.

    Parameters
    ----------
    values : ndarray of shape (m,), int64
        Values of the queries.
    tests : SparseVectorBranches
        Those of the sparse vector.
    """

    silence = HALTED

    def __init__(self, values: IntArray, tests: SparseVectorBranches) -> None:
        self._values, self._tests = values, tests

    def ask(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """See `Branches.ask`."""
        parents, answers = self._tests.ask(queries)
        asked = queries[parents]
        return parents, np.where(asked == SKIP, HALTED, _insert_values(answers, self._values[asked]))

    def mass(self) -> FloatArray:
        """See `Branches.mass`."""
        return self._tests.mass()


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class ValuesOfOldCopy:
    """The values of an older copy of the data, with the distances of the data at hand.

    Parameters
    ----------
    stream : DistanceStream
        The queries.
    rows : int
        The copy is the newest so many rows.
    """

    stream: DistanceStream
    rows: int

    def __post_init__(self) -> None:
        require(self.rows >= 1, "at least one row", self.rows)

    @property
    def queries(self) -> int:
        """The stream's."""
        return self.stream.queries

    def __call__(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """Return the values on the last rows, and the distances."""
        return self.stream(data[-self.rows :])[0], self.stream(data)[1]


def _refused_at(change: Callable[[OnlineRelease], float]) -> Callable[[OnlineRelease], OnlineRelease]:
    return lambda base: replace(base, threshold=base.noise * change(base))


def _row(change: Callable[[SparseVectorVariant], SparseVectorVariant]) -> Callable[[OnlineRelease], OnlineRelease]:
    return lambda base: replace(base, row=change(base.row))


def _smaller_scale(base: OnlineRelease) -> OnlineRelease:
    return replace(base, scale=noise_scale(base.epsilon, base.delta, base.cutoff))


def _log_ratio(base: OnlineRelease) -> float:
    return base.pure_level * math.sqrt(math.log(2.0 / base.delta) / math.log(1.0 / base.delta))


def elsewhere(rows: int) -> Mutant[OnlineRelease]:
    """Build the mutant whose values are those of the last rows, see `ValuesOfOldCopy`."""
    return Mutant(
        "value_from_another_database",
        lambda base: replace(base, stream=ValuesOfOldCopy(base.stream, rows)),
        unbounded,
        "violation",
        "values of a copy that holds the newest rows only: they flip where the distances are large",
    )


def _answers_after_halt(base: OnlineRelease) -> float:
    return base.stream.queries / (2.0 * base.noise)


MUTANTS: dict[str, Mutant[OnlineRelease]] = tabulate_mutants(
    Mutant(
        "threshold_lambda_log",
        _refused_at(lambda base: release_threshold(base.delta, base.stream.queries) / 2.0),
        unbounded,
        "violation",
        "w = lambda ln(2m/delta): a flip leaks (4 sqrt(p) - p)/6",
    ),
    Mutant(
        "threshold_without_m",
        _refused_at(lambda base: release_threshold(base.delta, 1)),
        unbounded,
        "violation",
        "w = 2 lambda ln(2/delta): T + 1 flips leak about (T + 1) delta/3 in all, more than delta from T = 3",
    ),
    Mutant(
        "threshold_log10",
        _refused_at(lambda base: release_threshold(base.delta, base.stream.queries) / math.log(10.0)),
        unbounded,
        "violation",
        "w = 2 lambda log10(2m/delta): a flip leaks about (2/3) p^0.434",
    ),
    Mutant(
        "noise_half_lambda",
        _row(RescaledNoise(1.0, 0.25)),
        lambda base: 2.5 * base.pure_level,
        "violation",
        "1/2 lambda read as lambda/2: 1/lambda and 2/(lambda/2), 5/lambda an epoch",
    ),
    Mutant(
        "log_1_over_delta_in_lambda",
        _smaller_scale,
        _log_ratio,
        "violation",
        "ln(1/delta) for ln(2/delta): 2/lambda an epoch for a lambda that is too small",
    ),
    Mutant(
        "threshold_not_refreshed",
        _row(ChangedSetting("redraws", "never")),
        lambda base: (base.most_refusals + 1.0) / base.noise,
        "benign",
        "one threshold for all epochs: (E + 1)/lambda in E of them, less than 2 E/lambda",
    ),
    Mutant(
        "answers_after_halt",
        _row(ChangedSetting("stops", False)),
        _answers_after_halt,
        "violation",
        "refusals do not end the run: m/(2 lambda)",
    ),
)
