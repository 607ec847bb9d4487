"""Histograms of scores in [0, 1] over two public partitions, and how far each is from another most frequent bin.

The plain partition has B = 1/gamma bins of width gamma; the half-shifted one B - 1 of the same width, centred where two
plain bins meet: what lies within gamma/2 of 0 or 1 is in none of them. A bin is named by its midpoint in units of
gamma/2: 1, 3, ..., 2B - 1 for the plain bins, 2, 4, ..., 2B - 2 for the shifted ones.

Source: document 004, Definitions 5.1 to 5.3 and 5.5, Algorithm 8; catalogue 004, soft_hist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.base.mechanism import FloatArray, IntArray, require
from mechanisms.teacher_ensembles.vote_distance import Distance, all_votes, gap_distance, one_replaced


class HistogramReadings(NamedTuple):
    """What the two tests of each query see, and what they would answer; the plain partition first.

    Attributes
    ----------
    values : ndarray of shape (2, m)
        Midpoints in units of gamma/2.
    distances : ndarray of shape (2, m), float64
    """

    values: NDArray[Any]
    distances: FloatArray


def checked_scores(scores: ArrayLike) -> FloatArray:
    """Return scores as float64 of shape (m, k); ValueError unless they are numbers in [0, 1], at least one of each."""
    array = np.asarray(scores, dtype=np.float64)
    require(array.ndim == 2 and array.size > 0, "scores of m queries by k classifiers, shape (m, k)", array.shape)
    require(bool(np.all((array >= 0) & (array <= 1))), "scores in [0, 1]", array)
    return array


@dataclass(frozen=True)
class ScoreHistograms:
    """Both histograms of each query's scores.

    Parameters
    ----------
    bins : int
        B = 1/gamma, at least 2.
    distance : callable, default `gap_distance`
        From counts to a distance to instability.

    Notes
    -----
    Ends of bins are the doubles nearest to the fractions j/B and (2j - 1)/(2B), so a decimal that stands for such a
    fraction lies on it: 0.3 is in [3/10, 4/10), although 0.3 / 0.1 is below 3 in floating point. Of two bins with equal
    counts the first is named.
    """

    bins: int
    distance: Distance = gap_distance

    def __post_init__(self) -> None:
        whole = isinstance(self.bins, (int, np.integer)) and not isinstance(self.bins, bool)
        require(whole and self.bins >= 2, "a whole number of bins >= 2, gamma = 1/bins", self.bins)

    def plain(self, scores: FloatArray) -> IntArray:
        """Counts of the plain bins, shape (m, B)."""
        inner = np.arange(1, self.bins) / self.bins
        return tallied(np.searchsorted(inner, scores, side="right"), self.bins)

    def shifted(self, scores: FloatArray) -> IntArray:
        """Counts of the shifted bins, shape (m, B - 1); scores within gamma/2 of 0 or 1 are in none."""
        return self._with_half_bins(scores)[:, 1:-1]

    def _with_half_bins(self, scores: FloatArray) -> IntArray:
        ends = np.arange(1, 2 * self.bins, 2) / (2 * self.bins)
        return tallied(np.searchsorted(ends, scores, side="right"), self.bins + 1)

    def __call__(self, scores: ArrayLike) -> HistogramReadings:
        """Return the bins that are named and their distances, for scores of shape (m, k); ValueError if not in [0, 1].

        A histogram of one bin is taken to have a second, empty one.
        """
        checked = checked_scores(scores)
        plain, shifted = self.plain(checked), self.shifted(checked)
        values = np.stack([2 * plain.argmax(axis=1) + 1, 2 * shifted.argmax(axis=1) + 2])
        return HistogramReadings(values, self.distances(plain, shifted))

    def distances(self, plain: IntArray, shifted: IntArray) -> FloatArray:
        """Distances of both histograms, shape (2, m)."""
        return np.stack([self.distance(padded(counts)) for counts in (plain, shifted)]).astype(np.float64)


def tallied(index: IntArray, bins: int) -> IntArray:
    """How often each of `bins` indices occurs in each row, shape (m, bins)."""
    rows = np.arange(index.shape[0])[:, None]
    flat = np.bincount((rows * bins + index).ravel(), minlength=index.shape[0] * bins)
    return flat.reshape(-1, bins).astype(np.int64)


def padded(counts: IntArray) -> IntArray:
    """Counts with one more bin, which is empty: a single bin has no second, and no other distance changes."""
    return np.concatenate([counts, np.zeros((*counts.shape[:-1], 1), dtype=np.int64)], axis=-1)


def is_stable(counts: IntArray, d: float) -> NDArray[np.bool_]:
    """Whether histograms are d-stable, as Definition 5.5 has it.

    Parameters
    ----------
    counts : ndarray of shape (N, bins), int64
        Histograms of at least one vote.
    d : float
        At least 0; the definition has a natural number.

    Returns
    -------
    ndarray of bool, shape (N,)
        ``max{1, largest count less the second} > d``; of a single bin, whether its count is above d.
    """
    require(d >= 0, "a d >= 0", d)
    if counts.shape[-1] == 1:
        return np.asarray(counts[..., 0] > d)
    ranked = np.sort(counts, axis=-1)
    return np.asarray(np.maximum(1, ranked[..., -1] - ranked[..., -2]) > d)


def one_vote_changed(bins: int, votes: int) -> tuple[FloatArray, FloatArray]:
    """Scores of all datasets of so many votes, and of all their neighbours: two arrays of shape (N, votes).

    A score is known to both partitions by the interval of length gamma/2 that it lies in, so one score in the middle of
    each stands for all of them.
    """
    middles = (np.arange(2 * bins) + 0.5) / (2 * bins)
    before, after = one_replaced(all_votes(votes, 2 * bins))
    return tuple(np.stack([np.repeat(middles, row) for row in counts]) for counts in (before, after))  # type: ignore[return-value]


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class RoundedToNearest(ScoreHistograms):
    """Scores in the plain bin whose upper end is nearest, as rounding their quotient by gamma gives it."""

    def plain(self, scores: FloatArray) -> IntArray:
        """Counts, shape (m, B)."""
        nearest = np.clip(np.rint(scores * self.bins), 1, self.bins).astype(np.int64)
        return tallied(nearest - 1, self.bins)


@dataclass(frozen=True)
class EndHalfBinsKept(ScoreHistograms):
    """Bins of half the width at 0 and 1 in the shifted partition."""

    def shifted(self, scores: FloatArray) -> IntArray:
        """Counts, shape (m, B + 1)."""
        return self._with_half_bins(scores)

    def __call__(self, scores: ArrayLike) -> HistogramReadings:
        """The names of the shifted bins begin with 0."""
        tests = super().__call__(scores)
        return HistogramReadings(tests.values - np.array([[0], [2]]), tests.distances)


@dataclass(frozen=True)
class _OwnBins(ScoreHistograms):
    """Bins that depend on the scores."""

    def ends(self, scores: FloatArray) -> FloatArray:
        """Ends of the bins of one query."""
        raise NotImplementedError

    def __call__(self, scores: ArrayLike) -> HistogramReadings:
        """The same bins for both tests; midpoints are float64."""
        pairs = list(self._of_each(checked_scores(scores)))
        values, distances = np.array(pairs, dtype=np.float64).T
        return HistogramReadings(np.stack([values, values]), np.stack([distances, distances]))

    def _of_each(self, scores: FloatArray) -> Iterator[tuple[float, float]]:
        for row in scores:
            counts, ends = np.histogram(row, self.ends(row))
            top = int(counts.argmax())
            yield self.bins * (ends[top] + ends[top + 1]), float(self.distance(padded(counts.astype(np.int64))))


@dataclass(frozen=True)
class DataDependentRange(_OwnBins):
    """Bins between the least and the largest score, as library functions choose them if they are not told a range."""

    def ends(self, scores: FloatArray) -> FloatArray:
        """Ends of B equal bins."""
        return np.asarray(np.histogram_bin_edges(scores, self.bins), dtype=np.float64)


@dataclass(frozen=True)
class BinsCentredOnTheMean(_OwnBins):
    """Bins of width gamma, of which one is centred on the mean of the scores."""

    def ends(self, scores: FloatArray) -> FloatArray:
        """Ends of enough bins to cover [0, 1]."""
        return np.asarray(scores.mean() + (np.arange(-self.bins, self.bins + 2) - 0.5) / self.bins, dtype=np.float64)


@dataclass(frozen=True)
class MeanOfScoresReleased(ScoreHistograms):
    """The mean of the scores in place of the midpoint, wherever a test is passed."""

    def __call__(self, scores: ArrayLike) -> HistogramReadings:
        """Values are means in units of gamma/2, float64."""
        means = 2.0 * self.bins * checked_scores(scores).mean(axis=1)
        return HistogramReadings(np.stack([means, means]), super().__call__(scores).distances)
