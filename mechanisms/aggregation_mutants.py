"""What breaks the aggregation of votes: wrong distances, chunks that share rows or look at them, and values shown.

All are built from ``OnlineRelease(Votes(...), ...)``.

Source: catalogue 004, subsamp_agg, bin_clas and rates_pac.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auditor.exact import FiniteLaw
from mechanisms.common import Dataset, FloatArray, IntArray, Mutant, require, require_draws, table, unbounded
from mechanisms.free_tops import With
from mechanisms.online_release import OnlineRelease
from mechanisms.vote_aggregation import Chunking, Contiguous, Learner, Votes, tally
from mechanisms.vote_distance import Distance, checked, gap, uncapped_distance


def votes_of(base: OnlineRelease) -> Votes:
    """The votes that are released; ValueError for another stream."""
    require(isinstance(base.stream, Votes), "a release of Votes", base.stream)
    assert isinstance(base.stream, Votes)
    return base.stream


def _rows(base: OnlineRelease) -> int:
    chunking = votes_of(base).chunking
    require(isinstance(chunking, Contiguous), "contiguous chunks", chunking)
    assert isinstance(chunking, Contiguous)
    return chunking.rows


# -------------------------------------------------------------------------------------- distances


def second_distinct_distance(counts: ArrayLike) -> IntArray:
    """Largest count less the largest that is smaller, less 1: far from 0 in a tie; from shape (..., R) to (...)."""
    array = checked(counts)
    top = array.max(axis=-1, keepdims=True)
    # Where all are equal there is no smaller one.
    return np.asarray(np.maximum(top[..., 0] - np.where(array < top, array, 0).max(axis=-1) - 1, 0), dtype=np.int64)


@dataclass(frozen=True)
class PositiveInTies:
    """A distance, but 1 in a tie.

    Parameters
    ----------
    distance : callable
        The distance elsewhere.
    """

    distance: Distance

    def __call__(self, counts: ArrayLike) -> IntArray:
        """Return the distances, from shape (..., R) to (...)."""
        return np.asarray(np.where(gap(counts) == 0, 1, self.distance(counts)), dtype=np.int64)


# ----------------------------------------------------------------------------------------- chunks


@dataclass(frozen=True)
class Sorted:
    """Rows sorted by their first entry, and then split.

    Parameters
    ----------
    chunks : int
        k.
    """

    chunks: int

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the chunks."""
        rows = np.asarray(data)
        return Contiguous(self.chunks, len(rows))(rows[np.argsort(rows[:, 0], kind="stable")])


@dataclass(frozen=True)
class Overlapping:
    """Chunk j begins at row j and has a given size; behind the last row comes the first one.

    Parameters
    ----------
    chunks : int
        k.
    size : int
        Rows in each. A row is in so many chunks.
    """

    chunks: int
    size: int

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the chunks."""
        rows = np.asarray(data)
        return [rows[np.arange(j, j + self.size) % len(rows)] for j in range(self.chunks)]


@dataclass(frozen=True)
class Reused:
    """A few groups of rows, each of which serves as one chunk after the other.

    Parameters
    ----------
    chunks : int
        k.
    groups : int
        So many are different.
    """

    chunks: int
    groups: int

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the chunks."""
        parts = Contiguous(self.groups, len(data))(data)
        return [parts[j % self.groups] for j in range(self.chunks)]


@dataclass(frozen=True)
class Everything:
    """All data in every chunk.

    Parameters
    ----------
    chunks : int
        k.
    """

    chunks: int

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the data k times."""
        return [data] * self.chunks


@dataclass(frozen=True)
class Tuned:
    """Of several numbers of chunks the one for which the votes agree most; of those the last.

    Parameters
    ----------
    candidates : tuple of int
        The numbers.
    learner : Learner
        What votes, for the labels 0 and 1.
    """

    candidates: tuple[int, ...]
    learner: Learner

    @property
    def chunks(self) -> int:
        """The largest candidate."""
        return max(self.candidates)

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the chunks."""
        most, best = -1, []
        for k in self.candidates:
            parts = Contiguous(k, len(data))(data)
            agreement = int(gap(tally(np.stack([self.learner(part) for part in parts]), 2)).sum())
            if agreement >= most:
                most, best = agreement, parts
        return best


# --------------------------------------------------------------------------------------- learners


@dataclass(frozen=True)
class Coin:
    """The most frequent label of the first entries of a chunk, 0 or 1; a tie is broken by the lowest bit of the seed.

    Parameters
    ----------
    seed : int
        Public; one for all chunks.
    """

    seed: int = 0

    @property
    def queries(self) -> int:
        """One."""
        return 1

    def __call__(self, chunk: Any) -> IntArray:
        """Return the label, shape (1,)."""
        labels = np.asarray(chunk, dtype=np.int64)[:, 0]
        balance = int((2 * labels - 1).sum())
        return np.array([self.seed % 2 if balance == 0 else int(balance > 0)])


@dataclass(frozen=True)
class Present:
    """Whether label 1 is the first entry of any row of a chunk."""

    @property
    def queries(self) -> int:
        """One."""
        return 1

    def __call__(self, chunk: Any) -> IntArray:
        """Return the label, shape (1,)."""
        return np.array([int((np.asarray(chunk)[:, 0] == 1).any())])


def seed_of(data: Dataset) -> int:
    """A checksum of all data."""
    return zlib.crc32(np.ascontiguousarray(data, dtype=np.int64).tobytes())


@dataclass(frozen=True)
class SeedFromData:
    """Votes of learners whose seed is a checksum of the data.

    Parameters
    ----------
    votes : Votes
        The votes; their learner has a seed.
    """

    votes: Votes

    def __post_init__(self) -> None:
        require(hasattr(self.votes.learner, "seed"), "a learner with a seed", self.votes.learner)

    @property
    def queries(self) -> int:
        """Those of the votes."""
        return self.votes.queries

    def __call__(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """Return labels and distances, shape (m,)."""
        learner: Any = self.votes.learner
        return replace(self.votes, learner=replace(learner, seed=seed_of(data)))(data)


# ---------------------------------------------------------------------------------- what is shown


@dataclass(frozen=True)
class CountsShown:
    """The number of votes for the last label in the place of the label.

    Parameters
    ----------
    votes : Votes
        The votes.
    """

    votes: Votes

    @property
    def queries(self) -> int:
        """Those of the votes."""
        return self.votes.queries

    def __call__(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """Return counts and distances, shape (m,)."""
        counts = self.votes.counts(data)
        return counts[:, -1], np.asarray(self.votes.distance(counts), dtype=np.float64)


@dataclass(frozen=True)
class Majorities:
    """The most frequent labels whatever the test says.

    Parameters
    ----------
    votes : Votes
        The votes.
    """

    votes: Votes

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Return the labels `n` times, shape (n, m)."""
        del rng
        require_draws(n)
        labels = self.votes(data)[0]
        return np.broadcast_to(labels, (n, labels.size)).copy()

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output law on `data`: a point."""
        return FiniteLaw((tuple(self.votes(data)[0].tolist()),), np.ones(1))


@dataclass(frozen=True)
class RandomTies:
    """Of several most frequent labels one is drawn, at the distance from the next count.

    Parameters
    ----------
    base : OnlineRelease
        The release, with its distance; one query.
    """

    base: OnlineRelease

    def __post_init__(self) -> None:
        require(self.base.stream.queries == 1, "one query", self.base.stream.queries)

    def _tied(self, data: Dataset) -> IntArray:
        counts = votes_of(self.base).counts(data)[0]
        return np.flatnonzero(counts == counts.max()).astype(np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs, shape (n, 1)."""
        out = self.base(data, n, rng)
        return np.where(out >= 0, rng.choice(self._tied(data), (n, 1)), out)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output law on `data`, over tuples."""
        law, tied = self.base.law(data), self._tied(data)
        mass: dict[tuple[int, ...], float] = {}
        for outcome, p in zip(law.outcomes, law.probabilities, strict=True):
            assert isinstance(outcome, tuple)
            label = int(outcome[0])
            for drawn in tied.tolist() if label >= 0 else [label]:
                mass[(drawn,)] = mass.get((drawn,), 0.0) + float(p) / (tied.size if label >= 0 else 1)
        return FiniteLaw(tuple(mass), np.array(list(mass.values())))


# ------------------------------------------------------------------------------------ mutants


def _voting(change: Callable[[Votes], Any]) -> Callable[[OnlineRelease], OnlineRelease]:
    return lambda base: replace(base, stream=change(votes_of(base)))


def _chunked(chunking: Callable[[OnlineRelease], Chunking]) -> Callable[[OnlineRelease], OnlineRelease]:
    return lambda base: replace(base, stream=replace(votes_of(base), chunking=chunking(base)))


def _k(base: OnlineRelease) -> int:
    return votes_of(base).chunking.chunks


def _random_ties(base: OnlineRelease) -> RandomTies:
    return RandomTies(_voting(lambda votes: replace(votes, distance=second_distinct_distance))(base))


def _tuned(base: OnlineRelease) -> OnlineRelease:
    return _chunked(lambda b: Tuned((_k(b), _rows(b)), votes_of(b).learner))(base)


MUTANTS: dict[str, Mutant[OnlineRelease]] = table(
    Mutant(
        "second_distinct_count",
        _voting(lambda votes: replace(votes, distance=second_distinct_distance)),
        unbounded,
        "violation",
        "a tie is at distance k/2 - 1 from the second distinct count, and one vote changes its label",
    ),
    Mutant(
        "random_tie_break",
        _random_ties,
        unbounded,
        "violation",
        "a tie is broken by a coin, at distance k/2 - 1: one vote decides whether a label is possible",
    ),
    Mutant(
        "data_dependent_chunks",
        _chunked(lambda base: Sorted(_k(base))),
        unbounded,
        "violation",
        "rows are sorted before they are split: one new row moves all others, and may change all votes",
    ),
    Mutant(
        "overlapping_chunks",
        _chunked(lambda base: Overlapping(_k(base), 3 * _k(base) // 4)),
        unbounded,
        "violation",
        "every row is in three quarters of the chunks, and may change their votes",
    ),
    Mutant(
        "data_dependent_seeds",
        _voting(SeedFromData),
        unbounded,
        "violation",
        "learners are seeded with a checksum of the data: any row may change all votes that the seed decides",
    ),
    Mutant("counts_released", _voting(CountsShown), unbounded, "violation", "the votes are counted in public"),
    Mutant(
        "majority_on_bot",
        lambda base: Majorities(votes_of(base)),
        unbounded,
        "violation",
        "the label is shown although the test failed",
    ),
    Mutant(
        "chunk_number_tuned",
        _tuned,
        unbounded,
        "violation",
        "the number of chunks is that on which they agree most: one row decides, and may change all votes",
    ),
    Mutant(
        "minus_one_missing",
        _voting(lambda votes: replace(votes, distance=gap)),
        unbounded,
        "violation",
        "the gap itself: 1 where one vote changes the label, so that a leak is e^(1/(2 lambda)) times as large",
    ),
    Mutant(
        "no_maximum_with_zero",
        _voting(lambda votes: replace(votes, distance=uncapped_distance)),
        lambda base: base.epsilon,
        "benign",
        "gap - 1, which is -1 in a tie, where both sides of a change of the label are refused all the more",
    ),
    Mutant(
        "tie_with_positive_distance",
        _voting(lambda votes: replace(votes, distance=PositiveInTies(votes.distance))),
        unbounded,
        "violation",
        "a tie gets distance 1, and one vote changes its label",
    ),
    Mutant(
        "chunks_reused",
        _chunked(lambda base: Reused(_k(base), 2)),
        unbounded,
        "violation",
        "two chunks, each used k/2 times: one row changes half of the votes",
    ),
    Mutant(
        "answers_after_halt",
        lambda base: replace(base, row=With("stops", False)(base.row)),
        lambda base: base.stream.queries / (2.0 * base.noise),
        "violation",
        "refusals do not end the run: m/(2 lambda), for a distance that moves by 1",
    ),
    Mutant(
        "all_data_in_every_chunk",
        _chunked(lambda base: Everything(_k(base))),
        unbounded,
        "violation",
        "n' = n: every vote is the same function of all data",
    ),
    Mutant(
        "fresh_threshold_every_query",
        lambda base: replace(base, row=With("redraws", "always")(base.row)),
        lambda base: base.stream.queries / (2.0 * base.noise),
        "violation",
        "every answer costs 1/(2 lambda), the free ones too, for a distance that moves by 1",
    ),
)
