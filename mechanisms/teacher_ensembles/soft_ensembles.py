"""Scores in [0, 1] by classifiers that are trained on disjoint chunks of the data (Algorithm 7 of document 004).

Source: document 004, Algorithm 7; catalogue 004, section 0.1 (which relation goes with which chunks) and slq.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require
from mechanisms.base.queries import Count
from mechanisms.teacher_ensembles.soft_histogram import checked_scores

# 2^64 over the golden ratio, odd: the usual multiplier of multiplicative hashing (Knuth, volume 3, section 6.4).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class SoftLabelEnsemble(Protocol):
    """Algorithm 7: splits the data into k chunks and trains a classifier on each.

    Under the relation that is claimed, one record is in one chunk and the other chunks do not change.
    """

    def __call__(self, data: Dataset, /) -> FloatArray:
        """Return the scores of m queries by k classifiers, shape (m, k)."""
        ...


@dataclass(frozen=True)
class EchoEnsemble:
    """Chunks of one record each, on which a classifier is trained that says what the record says (replace one).

    The data have shape (k, m): the record of chunk j holds the scores of its classifier. A learner may be anything, so
    this is one, and the one that lets a single record do all that a chunk can do.
    """

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the scores, shape (m, k)."""
        return checked_scores(np.asarray(data, dtype=np.float64).T)


@dataclass(frozen=True)
class LabelMeans:
    """Classifiers that give the mean label of those records of their chunk that are like the query.

    Parameters
    ----------
    label : Count
        Which records have label 1.
    queries : tuple of Count
        For each query the records that are like it.
    chunks : int
        k.
    by_record : bool, default False
        False: chunks are ranges of positions, for data of one size of which one record is replaced. True: a record's
        chunk is a hash of the record, for data to which one is added.

    Notes
    -----
    A classifier without a record that is like the query gives 1/2.
    """

    label: Count
    queries: tuple[Count, ...]
    chunks: int
    by_record: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        require(bool(self.queries), "at least one query", self.queries)
        require(isinstance(self.chunks, int) and self.chunks >= 1, "a number of chunks >= 1", self.chunks)

    def chunk_of(self, data: pd.DataFrame) -> IntArray:
        """Chunk of each record, shape (rows,)."""
        require(isinstance(data, pd.DataFrame), "a DataFrame", type(data))
        if self.by_record:
            return np.asarray(_hashes(data) % np.uint64(self.chunks), dtype=np.int64)
        require(len(data) >= self.chunks, f"at least {self.chunks} records", len(data))
        return np.arange(len(data)) * self.chunks // len(data)

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the scores, shape (m, k)."""
        chunk, label = self.chunk_of(data), self.label.matches(data)
        scores = np.full((len(self.queries), self.chunks), 0.5)
        for row, query in zip(scores, self.queries, strict=True):
            like = query.matches(data)
            size = np.bincount(chunk[like], minlength=self.chunks)
            ones = np.bincount(chunk[like & label], minlength=self.chunks)
            row[size > 0] = ones[size > 0] / size[size > 0]
        return scores


def _hashes(data: pd.DataFrame) -> NDArray[np.uint64]:
    """Hash of each record's numbers, shape (rows,): multiplications and shifts of their 64 bits, column by column."""
    # Adding zero makes one of the two zeros; integers hash as the floats that they are equal to.
    columns = np.ascontiguousarray((data.to_numpy(dtype=np.float64) + 0.0).T).view(np.uint64)
    hashes = np.zeros(len(data), dtype=np.uint64)
    for column in columns:
        hashes = (hashes ^ column) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    return hashes
