"""Distances to instability of the most frequent value: how many rows or votes must change until it does, less one.

Everything is a function of counts, shape (..., R): how often each of R values occurs. The most frequent one is named;
of several the first. Rows are added and removed (`mode_distance`), or votes, of a fixed number, are replaced (the
others).

Source: document 004, Definition 3.1 and Algorithm 4; catalogue 004, dist_oracles and gap_dist.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.base.mechanism import Dataset, IntArray, require
from mechanisms.base.queries import Count

Distance: TypeAlias = Callable[[ArrayLike], IntArray]
"""From counts of shape (..., R) to distances of shape (...)."""


def checked(counts: ArrayLike) -> IntArray:
    """Return counts as int64; ValueError unless they are whole numbers >= 0 of at least two values."""
    array = np.asarray(counts)
    require(array.ndim >= 1 and array.shape[-1] >= 2, "counts of at least two values, shape (..., R)", array.shape)
    require(array.dtype.kind in "iu", "integer counts", array.dtype)
    require(bool(np.all(array >= 0)), "counts >= 0", array)
    return array.astype(np.int64)


def leading(counts: ArrayLike) -> IntArray:
    """Index of the most frequent value, of several the first; from shape (..., R) to (...)."""
    return np.asarray(checked(counts).argmax(axis=-1), dtype=np.int64)


def gap(counts: ArrayLike) -> IntArray:
    """Largest count less the second largest (equal to it in a tie); from shape (..., R) to (...)."""
    ranked = np.sort(checked(counts), axis=-1)
    return np.asarray(ranked[..., -1] - ranked[..., -2], dtype=np.int64)


def _distances_behind(counts: ArrayLike) -> tuple[IntArray, IntArray, IntArray]:
    """How far each value is behind the leading one, and the indices of the values and of the leading one."""
    array = checked(counts)
    leader = array.argmax(axis=-1)[..., None]
    return np.take_along_axis(array, leader, axis=-1) - array, np.arange(array.shape[-1]), leader


def mode_distance(counts: ArrayLike) -> IntArray:
    """Distance to instability of the most frequent value, where rows are added and removed.

    Parameters
    ----------
    counts : array_like of shape (..., R), integers >= 0
        How often each value occurs.

    Returns
    -------
    ndarray of shape (...), int64

    Notes
    -----
    Another value r leads after ``g`` changes if it wins ties against the leader, and after ``g + 1`` if not, where it
    is g behind. Moves by at most 1 when a row is added, and is 0 on both sides when that changes the leader.
    """
    behind, values, leader = _distances_behind(counts)
    needed = behind + (values > leader)
    return np.asarray(np.where(values == leader, np.iinfo(np.int64).max, needed).min(axis=-1) - 1)


def plurality_distance(counts: ArrayLike) -> IntArray:
    """Distance to instability of the plurality of k votes, one of which is replaced at a time; shape (...).

    A vote that goes from the leader to r closes the gap g by 2: r leads after ``ceil(g/2)`` of them (at least one) if
    it wins ties against the leader, and after ``floor(g/2) + 1`` if not.
    """
    behind, values, leader = _distances_behind(counts)
    needed = np.where(values < leader, np.maximum((behind + 1) // 2, 1), behind // 2 + 1)
    return np.asarray(np.where(values == leader, np.iinfo(np.int64).max, needed).min(axis=-1) - 1)


def safe_distance(counts: ArrayLike) -> IntArray:
    """``max(0, ceil(gap/2) - 1)``: at most `plurality_distance`, and as good a one for privacy; shape (...)."""
    return np.maximum((gap(counts) + 1) // 2 - 1, 0)


def gap_distance(counts: ArrayLike) -> IntArray:
    """``max(0, gap - 1)``, as Algorithm 4 prints it; shape (...).

    Moves by 2 when a vote is replaced, and is 1 on one side of some changes of the leader.
    """
    return np.maximum(gap(counts) - 1, 0)


def uncapped_distance(counts: ArrayLike) -> IntArray:
    """``gap - 1``, which is -1 in a tie; shape (...)."""
    return gap(counts) - 1


# ----------------------------------------------------------------------------------- all datasets


def all_votes(votes: int, values: int) -> IntArray:
    """All counts of so many votes for so many values, shape (N, values)."""
    require(votes >= 1, "at least one vote", votes)
    require(values >= 2, "at least two values", values)
    # Places of the bars among votes and bars.
    bars = itertools.combinations(range(votes + values - 1), values - 1)
    ends = np.array([(-1, *places, votes + values - 1) for places in bars], dtype=np.int64)
    return np.diff(ends, axis=1) - 1


def all_counts(most: int, values: int) -> IntArray:
    """All counts of up to so many rows of each of so many values, shape (N, values)."""
    require(most >= 0, "a largest count >= 0", most)
    require(values >= 2, "at least two values", values)
    return np.array(list(itertools.product(range(most + 1), repeat=values)), dtype=np.int64)


def one_replaced(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Counts before and after one vote is replaced by another, in all ways; two arrays of shape (M, R)."""
    before, after = [], []
    for source, target in itertools.permutations(range(counts.shape[1]), 2):
        kept = counts[counts[:, source] > 0]
        moved = kept.copy()
        moved[:, source] -= 1
        moved[:, target] += 1
        before.append(kept)
        after.append(moved)
    return np.concatenate(before), np.concatenate(after)


def one_added(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Counts before and after one row is added, in all ways; two arrays of shape (N R, R)."""
    values = counts.shape[1]
    return np.repeat(counts, values, axis=0), (counts[:, None, :] + np.eye(values, dtype=np.int64)).reshape(-1, values)


def largest_move(distance: Distance, before: IntArray, after: IntArray) -> int:
    """By how much a distance moves at most between neighbours: its sensitivity on them."""
    return int(np.abs(distance(after) - distance(before)).max())


def largest_at_flips(distance: Distance, before: IntArray, after: IntArray) -> int:
    """Largest distance on either side of a pair of neighbours with different leaders.

    Raises
    ------
    ValueError
        If the leader is the same in all pairs.
    """
    flips = leading(before) != leading(after)
    require(bool(flips.any()), "neighbours of which some have different leaders", len(flips))
    return int(np.maximum(distance(before[flips]), distance(after[flips])).max())


def searched_distances(before: IntArray, after: IntArray) -> tuple[IntArray, IntArray]:
    """Distances to instability by their definition: breadth-first search among listed neighbours.

    Parameters
    ----------
    before, after : ndarrays of shape (M, R)
        Neighbours, each pair in one order or in both.

    Returns
    -------
    counts, distances : ndarrays of shape (N, R) and (N,)
        The counts that occur, each once, and the least number of steps from each to different leaders, less one.
    """
    counts, index = np.unique(np.concatenate([before, after]), axis=0, return_inverse=True)
    u, v = index.reshape(2, -1)
    u, v = np.concatenate([u, v]), np.concatenate([v, u])
    leaders = leading(counts)
    far = len(counts)  # beyond any path
    distances = np.full(far, far, dtype=np.int64)
    distances[u[leaders[u] != leaders[v]]] = 0
    while True:
        nearer = distances.copy()
        np.minimum.at(nearer, u, distances[v] + 1)
        if np.array_equal(nearer, distances):
            return counts, distances
        distances = nearer


# -------------------------------------------------------------------------------------- questions


class DistanceQuestion(Protocol):
    """A function of the data with discrete values, and a distance to its instability."""

    def __call__(self, data: Dataset, /) -> tuple[int, float]:
        """Return the value, an integer >= 0, and the distance."""
        ...


@dataclass(frozen=True)
class MostFrequentGroup:
    """Which of several groups of rows is the largest, where rows are added and removed; of several the first.

    Parameters
    ----------
    groups : tuple of Count
        At least two, under add/remove. A row may be in several of them.
    distance : callable, default `mode_distance`
        From the sizes, shape (R,), to the distance.

    Notes
    -----
    If a row in several groups is added, no gap between two of them moves by more than 1. So for groups that overlap
    `mode_distance` still moves by at most 1, is 0 where the leader changes, and is the distance to instability where
    each group has rows of its own.
    """

    groups: tuple[Count, ...]
    distance: Distance = mode_distance

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(self.groups))
        require(len(self.groups) >= 2, "at least two groups", self.groups)
        relations = {group.relation for group in self.groups}
        require(relations == {"add_remove_one"}, "counts under add_remove_one", relations)

    def counts(self, data: Dataset) -> IntArray:
        """Return the sizes of the groups, shape (R,)."""
        return np.array([group.matches(data).sum() for group in self.groups], dtype=np.int64)

    def __call__(self, data: Dataset) -> tuple[int, float]:
        """Return the index of the largest group, and the distance."""
        counts = self.counts(data)
        return int(leading(counts)), float(self.distance(counts))
