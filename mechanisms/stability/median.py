"""The median of points in [0, 1], and how sensitive it is: locally, at a distance, smoothed.

The most sensitive dataset within k replaced rows of x has local sensitivity

    A_k(x) = max over 0 <= t <= k + 1 of x_(m+t) - x_(m+t-k-1),

for the sorted points, m the median's rank, and x_i = 0 below the first and 1 above the last point: k rows are moved out
of a window of k + 1 gaps, so that one more replaced row takes the median across it. The derivation uses nothing of m,
so it holds for every fixed rank, and an even number of points needs a rule and nothing more: here the lower median.

Source: document 003, sections 2.2 and 2.2.1; Nissim, Raskhodnikova and Smith (2007), section 3.1; catalogue
000_001_003, median_sensitivities.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mechanisms.base.kept import compute_once
from mechanisms.base.mechanism import Dataset, FloatArray, require, require_positive
from mechanisms.base.queries import Relation, column_values

# No smooth sensitivity is below this: e^(-b n) would underflow for many rows. The maximum with a constant is as smooth.
_LEAST = 1e-300
# Sorted datasets that are enumerated, at most: arbitrary, some seconds.
_MOST_DATASETS = 10_000


@dataclass(frozen=True)
class ClippedMedian:
    """Lower median of one column, each row clipped to [low, high] and brought to [0, 1].

    Parameters
    ----------
    column : hashable, optional
        See `column_values`. A NaN counts as `low`.
    low, high : float
        Public range; ``low`` becomes 0 and ``high`` 1.

    Raises
    ------
    ValueError
        If the range is empty or infinite.
    """

    column: Hashable | None = None
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        width = self.high - self.low
        require(0 < width < math.inf, "finite bounds with low < high", (self.low, self.high))

    @property
    def relation(self) -> Relation:
        """Always replace_one: the number of rows is public."""
        return "replace_one"

    @property
    def sensitivity(self) -> float:
        """Global sensitivity: one row takes the median from 0 to 1."""
        return 1.0

    @property
    def linf_sensitivity(self) -> float:
        """The same: the answer is one number."""
        return 1.0

    @property
    def granularity(self) -> float:
        """Answers are multiples of nothing."""
        return 0.0

    def ordered(self, data: Dataset) -> FloatArray:
        """Return the points in [0, 1] in increasing order, shape (rows,); ValueError if there are none."""
        return compute_once(self._order, column_values(data, self.column))

    def _order(self, column: Dataset) -> FloatArray:
        values = np.asarray(column).astype(np.float64)
        require(values.size > 0, "at least one row", values.size)
        clipped = np.clip(np.where(np.isnan(values), self.low, values), self.low, self.high)
        return np.sort((clipped - self.low) / (self.high - self.low))

    def of(self, ordered: FloatArray) -> FloatArray:
        """Return the median of points in increasing order along the last axis; shape without that axis."""
        return np.asarray(ordered[..., rank(ordered.shape[-1]) - 1], dtype=np.float64)

    def ends(self, ordered: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what stands for the points beyond the first and the last: 0 and 1."""
        shape = ordered.shape[:-1]
        return np.zeros(shape), np.ones(shape)

    def window(self, distance: int) -> int:
        """Number of gaps that are crossed at the distance k: k + 1."""
        return distance + 1

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the median, shape ()."""
        return self.of(self.ordered(data))

    def most_sensitive(self, ordered: FloatArray, distance: int) -> FloatArray:
        """Return A_k: the largest local sensitivity within `distance` = k replaced rows.

        Parameters
        ----------
        ordered : ndarray of shape (..., rows)
            Points in [0, 1], increasing along the last axis.
        distance : int
            At least 0; 0 is the local sensitivity.

        Returns
        -------
        ndarray of shape (...)
            Exact up to the rounding of one difference, which is monotone: ``A_k(x) <= A_(k+1)(x')`` for neighbours
            holds for the float64 numbers too.
        """
        require(isinstance(distance, (int, np.integer)) and distance >= 0, "a distance k >= 0", distance)
        gaps, rows = self.window(distance), ordered.shape[-1]
        first, last = rank(rows) - gaps, rank(rows) + gaps
        below, above = (
            np.broadcast_to(np.asarray(end)[..., None], (*ordered.shape[:-1], max(missing, 0)))
            for end, missing in zip(self.ends(ordered), (1 - first, last - rows), strict=True)
        )
        reached = np.concatenate([below, ordered[..., max(first, 1) - 1 : min(last, rows)], above], axis=-1)
        return np.asarray((reached[..., gaps:] - reached[..., : gaps + 1]).max(axis=-1), dtype=np.float64)

    def smoothed(self, ordered: FloatArray, rate: float) -> FloatArray:
        """Return the smooth sensitivity ``max over k of e^(-rate k) A_k``.

        Parameters
        ----------
        ordered : ndarray of shape (..., rows)
            Points in [0, 1], increasing along the last axis.
        rate : float
            Smoothing parameter b > 0.

        Returns
        -------
        ndarray of shape (...)
            At least 1e-300. Differs between neighbours by at most a factor e^b.
        """
        require_positive("rate", rate)
        best = np.full(ordered.shape[:-1], _LEAST)
        for k in range(ordered.shape[-1] + 1):
            weight = math.exp(-rate * k)
            # No A_k is above 1, so nothing further away matters.
            if np.all(weight <= best):
                break
            best = np.maximum(best, weight * self.most_sensitive(ordered, k))
        return best

    def local(self, data: Dataset) -> float:
        """Return the local sensitivity A_0."""
        return float(self.most_sensitive(self.ordered(data), 0))

    def smooth(self, data: Dataset, rate: float) -> float:
        """Return the smooth sensitivity of one dataset, see `smoothed`."""
        return float(self.smoothed(self.ordered(data), rate))

    def distance(self, data: Dataset, bound: float) -> float:
        """Return how many rows must be replaced until the local sensitivity is above `bound`; `inf` if it never is.

        The smallest k with ``A_k > bound``, by bisection: A_k never falls.
        """
        return _distance(self, bound, self.ordered(data).tobytes())


@lru_cache(maxsize=16)
def _distance(query: ClippedMedian, bound: float, points: bytes) -> float:
    """`ClippedMedian.distance` of points in increasing order, float64; the same data are asked about in every call."""
    ordered = np.frombuffer(points, dtype=np.float64)
    low, high = 0, len(ordered)
    if not query.most_sensitive(ordered, high) > bound:
        return math.inf
    while low < high:
        middle = (low + high) // 2
        if query.most_sensitive(ordered, middle) > bound:
            high = middle
        else:
            low = middle + 1
    return float(low)


def rank(rows: int) -> int:
    """Rank of the lower median among so many rows, from 1."""
    return (rows + 1) // 2


@dataclass(frozen=True)
class DistanceFromPublicNumber:
    """How far a mechanism's outputs are from a public number: post-processing.

    Where the output distributions of two datasets are both symmetric about that number, it loses nothing: outputs at
    the same distance have the same likelihood ratio, and so the privacy curve is that of the mechanism.

    Parameters
    ----------
    mechanism : callable
        Takes (data, n, rng) and returns n numbers.
    point : float
        The public number.

    Raises
    ------
    ValueError
        If the point is not finite.
    """

    mechanism: Callable[[Dataset, int, np.random.Generator], FloatArray]
    point: float

    def __post_init__(self) -> None:
        require(math.isfinite(self.point), "a finite point", self.point)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,), at least 0."""
        return np.abs(self.mechanism(data, n, rng) - self.point)


# ----------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class MedianOfShortWindow(ClippedMedian):
    """Windows of k gaps for k + 1: the row that takes the median across is forgotten, so every A_k is A_(k-1)."""

    def window(self, distance: int) -> int:
        """Number of gaps: k."""
        return distance


@dataclass(frozen=True)
class MedianOfObservedRange(ClippedMedian):
    """The data's own smallest and largest point for 0 and 1: what rows may become is read off what they are."""

    def ends(self, ordered: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and the last point."""
        return ordered[..., 0], ordered[..., -1]


@dataclass(frozen=True)
class MeanOfMiddlePoints(ClippedMedian):
    """Mean of both middle points for an even number of rows, with the sensitivities of the lower median."""

    def of(self, ordered: FloatArray) -> FloatArray:
        """Return the mean of the points of rank n/2 and n/2 + 1; the median if n is odd."""
        rows = ordered.shape[-1]
        middle = ordered[..., (rows - 1) // 2], ordered[..., rows // 2]
        return np.asarray(0.5 * (middle[0] + middle[1]), dtype=np.float64)


# ---------------------------------------------------------------------------------- by brute force


def enumerated(
    query: Callable[[FloatArray], FloatArray], grid: Sequence[float], rows: int
) -> dict[tuple[float, ...], FloatArray]:
    """Largest local sensitivities at every distance, for all datasets on a grid, by definition.

    Parameters
    ----------
    query : callable
        From points in increasing order, shape (rows,), to a number; one that has its largest sensitivities on the grid,
        as the median has if the grid holds 0 and 1 and the dataset.
    grid : sequence of float
        Increasing.
    rows : int
        Size of the datasets.

    Returns
    -------
    dict
        From each sorted dataset to ``A_0 .. A_rows``, shape (rows + 1,): first the largest move of the query over all
        neighbours, then for each k the largest ``A_(k-1)`` of the dataset and its neighbours.

    Raises
    ------
    ValueError
        If there are more than 10,000 datasets.
    """
    count = math.comb(len(grid) + rows - 1, rows)
    require(count <= _MOST_DATASETS, f"at most {_MOST_DATASETS} sorted datasets", count)
    datasets = list(itertools.combinations_with_replacement(grid, rows))
    place = {points: i for i, points in enumerate(datasets)}
    near = [sorted({place[y] for y in replacements(points, grid)}) for points in datasets]
    answers = np.array([float(query(np.array(points))) for points in datasets])
    reached = [np.array([np.abs(answers[ys] - answers[i]).max() for i, ys in enumerate(near)])]
    for _ in range(rows):
        reached.append(np.array([reached[-1][ys].max() for ys in near]))
    table = np.stack(reached, axis=1)
    return {points: table[i] for points, i in place.items()}


def replacements(points: tuple[float, ...], grid: Sequence[float]) -> set[tuple[float, ...]]:
    """Sorted datasets on the grid that differ from `points` in at most one row."""
    return {tuple(sorted((*points[:i], value, *points[i + 1 :]))) for i in range(len(points)) for value in grid}
