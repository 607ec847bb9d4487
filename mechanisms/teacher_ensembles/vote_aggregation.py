"""Votes of learners on disjoint chunks of the data, released as long as they are stable.

Each chunk answers every query with a label; the most frequent label is given out by `online_release`, for
the distance that the votes have from a change of it. So Algorithm 4 is ``OnlineRelease(ChunkVotes(...), ...)``.

Source: document 004, Algorithm 4, Corollary 3.10 and Theorem 3.11; catalogue 004, subsamp_agg.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mechanisms.base.kept import compute_once
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.base.noise import gauss_legendre
from mechanisms.selection.sparse_vector_distribution import REACH, laplace_cdf
from mechanisms.teacher_ensembles.online_leaks import release_scale, release_threshold
from mechanisms.teacher_ensembles.vote_distance import Distance, gap_distance, leading

#: The document's constant in the number of chunks.
CONSTANT = 136.0
#: Odd multiplier of a 64-bit integer hash (Steele, Lea and Flood 2014, SplitMix64), and its two others.
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


# ----------------------------------------------------------------------------------------- chunks


class Chunking(Protocol):
    """How a dataset is split; hashable."""

    def __hash__(self) -> int:
        """Return a hash of its parameters."""
        ...

    @property
    def chunks(self) -> int:
        """Number of chunks, k; public."""
        ...

    def __call__(self, data: Dataset, /) -> list[Any]:
        """Return the chunks, datasets of the same kind, of which some may be empty."""
        ...


def _require_count(name: str, value: int) -> None:
    require(isinstance(value, (int, np.integer)) and value >= 1, f"{name} >= 1", value)


@dataclass(frozen=True)
class ContiguousChunks:
    """Rows in their order, as many to each chunk as to any other, or one more.

    Parameters
    ----------
    chunks : int
        k.
    rows : int
        Number of rows, which is public: datasets are neighbours where one row is replaced.
    """

    chunks: int
    rows: int

    def __post_init__(self) -> None:
        _require_count("chunks", self.chunks)
        _require_count("rows", self.rows)

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the chunks; ValueError for another number of rows."""
        require(len(data) == self.rows, f"{self.rows} rows", len(data))
        ends = np.arange(self.chunks + 1) * self.rows // self.chunks
        return [data[a:b] for a, b in itertools.pairwise(ends)]


@dataclass(frozen=True)
class ChunksByIdentity:
    """The chunk of a row is a hash of its identity: adding or removing a row changes its own chunk only.

    Parameters
    ----------
    chunks : int
        k.

    Notes
    -----
    Datasets are integer arrays of shape (rows, columns) whose first column is the identity.
    """

    chunks: int

    def __post_init__(self) -> None:
        _require_count("chunks", self.chunks)

    def of(self, identities: ArrayLike) -> IntArray:
        """Return the chunks of some identities, shape (rows,)."""
        # Unsigned integers wrap around, which is what the hash is about.
        z = np.asarray(identities, dtype=np.int64).astype(np.uint64) + np.uint64(_GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        return np.asarray((z ^ (z >> np.uint64(31))) % np.uint64(self.chunks)).astype(np.int64)

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the chunks, each with its rows in their order."""
        rows = np.asarray(data)
        require(rows.ndim == 2 and rows.dtype.kind in "iu", "an integer array of shape (rows, columns)", rows.shape)
        chunk = self.of(rows[:, 0])
        return [rows[chunk == j] for j in range(self.chunks)]


# --------------------------------------------------------------------------------------- learners


class ChunkLearner(Protocol):
    """What is run on each chunk; hashable."""

    def __hash__(self) -> int:
        """Return a hash of its parameters."""
        ...

    @property
    def queries(self) -> int:
        """How many queries it answers, m; public."""
        ...

    def __call__(self, chunk: Any, /) -> IntArray:
        """Return the labels of all queries, shape (m,), by a function of the chunk."""
        ...


@dataclass(frozen=True)
class CanaryLearner:
    """The canary learner: it answers with the labels that stand in the first row of its chunk.

    Parameters
    ----------
    queries : int
        m, the length of a payload.
    column : int
        Where in a row the payload begins.

    Notes
    -----
    An empty chunk answers with label 0.
    """

    queries: int
    column: int = 0

    def __post_init__(self) -> None:
        _require_count("queries", self.queries)
        require(self.column >= 0, "a column >= 0", self.column)

    def __call__(self, chunk: Any) -> IntArray:
        """Return the payload; ValueError for a row that is too short."""
        if not len(chunk):
            return np.zeros(self.queries, dtype=np.int64)
        payload = np.asarray(chunk[0], dtype=np.int64)[self.column :]
        require(payload.size >= self.queries, f"{self.queries} labels in a row", payload)
        return payload[: self.queries]


# ------------------------------------------------------------------------------------------ votes


@dataclass(frozen=True)
class ChunkVotes:
    """The label that most chunks give to each query, and its distance from a change: steps 3 of Algorithm 4.

    Parameters
    ----------
    chunking : Chunking
        How the data are split, independently of what is in them.
    learner : ChunkLearner
        What gives the labels 0 to R - 1.
    labels : int, default 2
        R.
    distance : callable, default `gap_distance`
        From counts of votes to distances; the document's by default. It moves by 2 when a vote is replaced,
        `mechanisms.teacher_ensembles.vote_distance.safe_distance` by 1.

    Notes
    -----
    A `online_release.Stream`; datasets are arrays. Of several most frequent labels the first is taken.
    """

    chunking: Chunking
    learner: ChunkLearner
    labels: int = 2
    distance: Distance = gap_distance

    def __post_init__(self) -> None:
        require(isinstance(self.labels, (int, np.integer)) and self.labels >= 2, "at least 2 labels", self.labels)

    @property
    def queries(self) -> int:
        """The learner's."""
        return self.learner.queries

    def votes(self, data: Dataset) -> IntArray:
        """Return the labels that each chunk gives, shape (k, m); ValueError for what is no label."""
        found = compute_once(_train_votes, np.asarray(data), self.chunking, self.learner)
        require(bool(np.all((found >= 0) & (found < self.labels))), f"labels 0 to {self.labels - 1}", found)
        return found

    def counts(self, data: Dataset) -> IntArray:
        """Return how many chunks give each label to each query, shape (m, R)."""
        return tally(self.votes(data), self.labels)

    def __call__(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """Return labels and distances, shape (m,)."""
        counts = self.counts(data)
        return leading(counts), np.asarray(self.distance(counts), dtype=np.float64)


def _train_votes(data: NDArray[Any], chunking: Chunking, learner: ChunkLearner) -> IntArray:
    """Train the learner on each chunk, and return what it answers, shape (k, m)."""
    return np.stack([np.asarray(learner(chunk), dtype=np.int64) for chunk in chunking(data)])


def tally(votes: IntArray, labels: int) -> IntArray:
    """How often each label occurs in each column of votes of shape (k, m); shape (m, labels)."""
    return np.stack([(votes == label).sum(axis=0) for label in range(labels)], axis=1).astype(np.int64)


def printed_chunks(queries: int, cutoff: int, epsilon: float, delta: float, beta: float) -> int:
    """Number of chunks of Algorithm 4, k: ``136 ln(4 m T / min(delta, beta/2)) sqrt(T ln(2/delta)) / eps``, rounded up.

    Parameters
    ----------
    queries, cutoff : int
        m and T.
    epsilon, delta : float
        The claimed level.
    beta : float
        Allowed probability that a query on which the chunks agree is not answered.
    """
    _require_count("queries", queries)
    require(0 < beta < 1, "a beta in (0, 1)", beta)
    root = release_scale(epsilon, delta, cutoff) / math.sqrt(32.0)
    return math.ceil(CONSTANT * math.log(4.0 * queries * cutoff / min(delta, beta / 2.0)) * root)


# --------------------------------------------------------------------------------- many databases


def refusals(
    distances: FloatArray, scale: float, threshold: float, epochs: int, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Algorithm 3 on many streams at once, each with distances of its own.

    Parameters
    ----------
    distances : ndarray of shape (n, m)
        One stream a row.
    scale : float
        lambda.
    threshold : float
        w.
    epochs : int
        After so many refusals a run halts.
    rng : numpy.random.Generator
        Source of all noise.

    Returns
    -------
    ndarray of shape (n, m)
        0 answered, 1 refused, -1 not asked.
    """
    n, m = distances.shape
    noisy = distances + rng.laplace(0.0, 2.0 * scale, (n, m))
    bar = np.asarray(threshold + rng.laplace(0.0, scale, n), dtype=np.float64)
    refused = np.zeros(n, dtype=np.int64)
    out = np.zeros((n, m), dtype=np.int8)
    for i in range(m):  # one query after the other, all runs at once
        asked = refused < epochs
        low = asked & (noisy[:, i] <= bar)
        out[:, i] = np.where(asked, low, -1)
        refused += low
        bar[low] = threshold + rng.laplace(0.0, scale, int(low.sum()))
    return out


@dataclass(frozen=True)
class AgreeingChunks:
    """Queries that every chunk answers with label 0 with probability p, each chunk and query by itself.

    Parameters
    ----------
    chunks, queries, cutoff : int
        k, m and T.
    epsilon, delta : float
        The claimed level.
    probability : float, default 0.75
        p; Theorem 3.11 asks for 3/4 at least.

    Notes
    -----
    The votes of n fresh databases; there is no dataset. Up to T other queries may be refused before without any effect
    on these: after each the threshold is drawn anew. Outputs are the numbers of queries that are not answered with
    label 0, shape (n,).
    """

    chunks: int
    queries: int
    cutoff: int
    epsilon: float
    delta: float
    probability: float = 0.75

    def __post_init__(self) -> None:
        for name in ("chunks", "queries", "cutoff"):
            _require_count(name, getattr(self, name))
        require(0 < self.probability < 1, "a probability in (0, 1)", self.probability)
        release_scale(self.epsilon, self.delta, self.cutoff)  # refuses levels out of range

    @property
    def noise(self) -> float:
        """Scale of the threshold noise, lambda."""
        return release_scale(self.epsilon, self.delta, self.cutoff)

    @property
    def bar(self) -> float:
        """What a distance is compared with, w."""
        return self.noise * release_threshold(self.delta, self.queries)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers, shape (n,); the data are not looked at."""
        del data
        require_draws(n)
        zeros = rng.binomial(self.chunks, self.probability, (n, self.queries))
        counts = np.stack([zeros, self.chunks - zeros], axis=-1)
        found = refusals(np.asarray(gap_distance(counts), dtype=np.float64), self.noise, self.bar, 1, rng)
        return np.asarray(((found != 0) | (leading(counts) != 0)).sum(axis=1), dtype=np.int64)

    def failure(self) -> float:
        """Return the exact probability that not all of them are answered with label 0.

        Valid because: given the threshold noise, over which a Gauss-Legendre rule integrates, the queries are
        independent; the votes of each are summed over, but for a part of 2e-13.
        """
        law = stats.binom(self.chunks, self.probability)
        zeros = np.arange(int(law.ppf(1e-13)), int(law.isf(1e-13)) + 1)
        counts = np.stack([zeros, self.chunks - zeros], axis=-1)
        mass, distance = law.pmf(zeros) * (leading(counts) == 0), gap_distance(counts)
        centre = float((mass @ distance - self.bar) / self.noise)
        spread = float(distance.max() - distance.min()) / self.noise
        ends = np.array([min(-REACH, centre - spread), 0.0, max(REACH, centre + spread)])
        # Mixtures over the votes have a kink at each distance, and growth e^(queries x/2) at most: pieces of 1/2.
        x, weights = gauss_legendre(ends, 0.5)
        passes = np.zeros_like(x)
        for share, apart in zip(mass, (distance - self.bar) / self.noise, strict=True):
            passes += share * laplace_cdf((apart - x) / 2.0)
        return 1.0 - float(weights * 0.5 * np.exp(-np.abs(x)) @ np.minimum(passes, 1.0) ** self.queries)


def least_chunks(queries: int, cutoff: int, epsilon: float, delta: float, beta: float) -> int:
    """Least number of chunks with which `AgreeingChunks` fails with probability at most beta, but for ripples.

    The probability falls with k where two numbers of one parity are compared: of an even and an odd one, which differ
    in how ties and gaps fall, either may be the better one. A bisection between 1 and `printed_chunks`.
    """
    low, high = 0, printed_chunks(queries, cutoff, epsilon, delta, beta)
    while high - low > 1:
        middle = (low + high) // 2
        works = AgreeingChunks(middle, queries, cutoff, epsilon, delta).failure() <= beta
        low, high = (low, middle) if works else (middle, high)
    return high
