"""What breaks the aggregation of votes: its wrong parts, seeds taken from the data, and values that are shown.

All are built from ``OnlineRelease(ChunkVotes(...), ...)``.

Source: catalogue 004, subsamp_agg, bin_clas and rates_pac.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.selection.free_tops import ChangedSetting
from mechanisms.teacher_ensembles.aggregation_parts import (
    AllDataInEveryChunk,
    OverlappingTeacherChunks,
    PositiveInTies,
    ReusedChunks,
    SortedChunks,
    TunedChunkNumber,
    second_distinct_distance,
)
from mechanisms.teacher_ensembles.online_release import OnlineRelease
from mechanisms.teacher_ensembles.vote_aggregation import Chunking, ChunkVotes, ContiguousChunks
from mechanisms.teacher_ensembles.vote_distance import gap, uncapped_distance


def votes_of(base: OnlineRelease) -> ChunkVotes:
    """The votes that are released; ValueError for another stream."""
    require(isinstance(base.stream, ChunkVotes), "a release of ChunkVotes", base.stream)
    assert isinstance(base.stream, ChunkVotes)
    return base.stream


def _rows(base: OnlineRelease) -> int:
    chunking = votes_of(base).chunking
    require(isinstance(chunking, ContiguousChunks), "contiguous chunks", chunking)
    assert isinstance(chunking, ContiguousChunks)
    return chunking.rows


def seed_of(data: Dataset) -> int:
    """A checksum of all data."""
    return zlib.crc32(np.ascontiguousarray(data, dtype=np.int64).tobytes())


@dataclass(frozen=True)
class SeedFromData:
    """Votes of learners whose seed is a checksum of the data.

    Parameters
    ----------
    votes : ChunkVotes
        The votes; their learner has a seed.
    """

    votes: ChunkVotes

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
class VoteCountsReleased:
    """The number of votes for the last label in the place of the label.

    Parameters
    ----------
    votes : ChunkVotes
        The votes.
    """

    votes: ChunkVotes

    @property
    def queries(self) -> int:
        """Those of the votes."""
        return self.votes.queries

    def __call__(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """Return counts and distances, shape (m,)."""
        counts = self.votes.counts(data)
        return counts[:, -1], np.asarray(self.votes.distance(counts), dtype=np.float64)


@dataclass(frozen=True)
class MajorityForBottom:
    """The most frequent labels whatever the test says.

    Parameters
    ----------
    votes : ChunkVotes
        The votes.
    """

    votes: ChunkVotes

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Return the labels `n` times, shape (n, m)."""
        del rng
        require_draws(n)
        labels = self.votes(data)[0]
        return np.broadcast_to(labels, (n, labels.size)).copy()

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: a point."""
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

    def _tied_values(self, data: Dataset) -> IntArray:
        counts = votes_of(self.base).counts(data)[0]
        return np.flatnonzero(counts == counts.max()).astype(np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs, shape (n, 1)."""
        out = self.base(data, n, rng)
        return np.where(out >= 0, rng.choice(self._tied_values(data), (n, 1)), out)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`, over tuples."""
        law, tied = self.base.law(data), self._tied_values(data)
        mass: dict[tuple[int, ...], float] = {}
        for outcome, p in zip(law.outcomes, law.probabilities, strict=True):
            assert isinstance(outcome, tuple)
            label = int(outcome[0])
            for drawn in tied.tolist() if label >= 0 else [label]:
                mass[(drawn,)] = mass.get((drawn,), 0.0) + float(p) / (tied.size if label >= 0 else 1)
        return FiniteLaw(tuple(mass), np.array(list(mass.values())))


# ------------------------------------------------------------------------------------ mutants


def _with_votes(change: Callable[[ChunkVotes], Any]) -> Callable[[OnlineRelease], OnlineRelease]:
    return lambda base: replace(base, stream=change(votes_of(base)))


def _with_chunking(chunking: Callable[[OnlineRelease], Chunking]) -> Callable[[OnlineRelease], OnlineRelease]:
    return lambda base: replace(base, stream=replace(votes_of(base), chunking=chunking(base)))


def _chunk_count(base: OnlineRelease) -> int:
    return votes_of(base).chunking.chunks


def _random_ties(base: OnlineRelease) -> RandomTies:
    return RandomTies(_with_votes(lambda votes: replace(votes, distance=second_distinct_distance))(base))


def _tuned_release(base: OnlineRelease) -> OnlineRelease:
    return _with_chunking(lambda b: TunedChunkNumber((_chunk_count(b), _rows(b)), votes_of(b).learner))(base)


MUTANTS: dict[str, Mutant[OnlineRelease]] = tabulate_mutants(
    Mutant(
        "second_distinct_count",
        _with_votes(lambda votes: replace(votes, distance=second_distinct_distance)),
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
        _with_chunking(lambda base: SortedChunks(_chunk_count(base))),
        unbounded,
        "violation",
        "rows are sorted before they are split: one new row moves all others, and may change all votes",
    ),
    Mutant(
        "overlapping_chunks",
        _with_chunking(lambda base: OverlappingTeacherChunks(_chunk_count(base), 3 * _chunk_count(base) // 4)),
        unbounded,
        "violation",
        "every row is in three quarters of the chunks, and may change their votes",
    ),
    Mutant(
        "data_dependent_seeds",
        _with_votes(SeedFromData),
        unbounded,
        "violation",
        "learners are seeded with a checksum of the data: any row may change all votes that the seed decides",
    ),
    Mutant(
        "counts_released", _with_votes(VoteCountsReleased), unbounded, "violation", "the votes are counted in public"
    ),
    Mutant(
        "majority_on_bot",
        lambda base: MajorityForBottom(votes_of(base)),
        unbounded,
        "violation",
        "the label is shown although the test failed",
    ),
    Mutant(
        "chunk_number_tuned",
        _tuned_release,
        unbounded,
        "violation",
        "the number of chunks is that on which they agree most: one row decides, and may change all votes",
    ),
    Mutant(
        "minus_one_missing",
        _with_votes(lambda votes: replace(votes, distance=gap)),
        unbounded,
        "violation",
        "the gap itself: 1 where one vote changes the label, so that a leak is e^(1/(2 lambda)) times as large",
    ),
    Mutant(
        "no_maximum_with_zero",
        _with_votes(lambda votes: replace(votes, distance=uncapped_distance)),
        lambda base: base.epsilon,
        "benign",
        "gap - 1, which is -1 in a tie, where both sides of a change of the label are refused all the more",
    ),
    Mutant(
        "tie_with_positive_distance",
        _with_votes(lambda votes: replace(votes, distance=PositiveInTies(votes.distance))),
        unbounded,
        "violation",
        "a tie gets distance 1, and one vote changes its label",
    ),
    Mutant(
        "chunks_reused",
        _with_chunking(lambda base: ReusedChunks(_chunk_count(base), 2)),
        unbounded,
        "violation",
        "two chunks, each used k/2 times: one row changes half of the votes",
    ),
    Mutant(
        "answers_after_halt",
        lambda base: replace(base, row=ChangedSetting("stops", False)(base.row)),
        lambda base: base.stream.queries / (2.0 * base.noise),
        "violation",
        "refusals do not end the run: m/(2 lambda), for a distance that moves by 1",
    ),
    Mutant(
        "all_data_in_every_chunk",
        _with_chunking(lambda base: AllDataInEveryChunk(_chunk_count(base))),
        unbounded,
        "violation",
        "n' = n: every vote is the same function of all data",
    ),
    Mutant(
        "fresh_threshold_every_query",
        lambda base: replace(base, row=ChangedSetting("redraws", "always")(base.row)),
        lambda base: base.stream.queries / (2.0 * base.noise),
        "violation",
        "every answer costs 1/(2 lambda), the free ones too, for a distance that moves by 1",
    ),
)
