"""Parts of an aggregation of votes that are wrong: distances, chunks that share rows or look at them, and learners.

Each takes the place of the right one in `mechanisms.teacher_ensembles.vote_aggregation.ChunkVotes`.

Source: catalogue 004, subsamp_agg, bin_clas and rates_pac.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.base.mechanism import Dataset, IntArray
from mechanisms.teacher_ensembles.vote_aggregation import ChunkLearner, ContiguousChunks, tally
from mechanisms.teacher_ensembles.vote_distance import Distance, checked, gap

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
class SortedChunks:
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
        return ContiguousChunks(self.chunks, len(rows))(rows[np.argsort(rows[:, 0], kind="stable")])


@dataclass(frozen=True)
class OverlappingTeacherChunks:
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
class ReusedChunks:
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
        parts = ContiguousChunks(self.groups, len(data))(data)
        return [parts[j % self.groups] for j in range(self.chunks)]


@dataclass(frozen=True)
class AllDataInEveryChunk:
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
class TunedChunkNumber:
    """Of several numbers of chunks the one for which the votes agree most; of those the last.

    Parameters
    ----------
    candidates : tuple of int
        The numbers.
    learner : ChunkLearner
        What votes, for the labels 0 and 1.
    """

    candidates: tuple[int, ...]
    learner: ChunkLearner

    @property
    def chunks(self) -> int:
        """The largest candidate."""
        return max(self.candidates)

    def __call__(self, data: Dataset) -> list[Any]:
        """Return the chunks."""
        most, best = -1, []
        for k in self.candidates:
            parts = ContiguousChunks(k, len(data))(data)
            agreement = int(gap(tally(np.stack([self.learner(part) for part in parts]), 2)).sum())
            if agreement >= most:
                most, best = agreement, parts
        return best


# --------------------------------------------------------------------------------------- learners


@dataclass(frozen=True)
class FirstEntryMajority:
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
class FirstEntryPresence:
    """Whether label 1 is the first entry of any row of a chunk."""

    @property
    def queries(self) -> int:
        """One."""
        return 1

    def __call__(self, chunk: Any) -> IntArray:
        """Return the label, shape (1,)."""
        return np.array([int((np.asarray(chunk)[:, 0] == 1).any())])
