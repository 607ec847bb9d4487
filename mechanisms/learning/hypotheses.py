"""Hypothesis classes over a finite domain: points, thresholds, intervals, rectangles, parities.

Labelled data are int arrays of shape (rows, 2): the index of x in its domain, and the label, 0 or 1. A record may
contradict every hypothesis, and two records each other.

Source: document 002, sections 3.1, 3.2 and 4; catalogue 002, exp_mech_generic_agnostic and vc_finite_domain_learner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.kept import compute_once
from mechanisms.base.mechanism import Dataset, IntArray, require

BoolArray: TypeAlias = NDArray[np.bool_]

#: Largest domain of a class of parities: 2^22 scores are 32 MB, and a transform of them a second.
_MOST_BITS = 22


class HypothesisClass(Protocol):
    """Distinct labelings of a domain 0, .. domain - 1, numbered 0, .. size - 1."""

    @property
    def size(self) -> int:
        """Number of hypotheses, |H|."""
        ...

    @property
    def domain(self) -> int:
        """Number of points, |X|."""
        ...

    @property
    def dimension(self) -> int:
        """Vapnik-Chervonenkis dimension."""
        ...

    def labels(self, x: IntArray) -> BoolArray:
        """Labels that all hypotheses give to the points; shape (len(x), size)."""
        ...

    def mistakes(self, counts: IntArray) -> IntArray:
        """Records that each hypothesis gets wrong, shape (size,), from `counts_of` the data."""
        ...

    def parameters(self) -> IntArray:
        """Values of the parameters that describe each hypothesis, how many; shape (size,)."""
        ...


def counts_of(data: Dataset, domain: int) -> IntArray:
    """Count the records of labelled data.

    Parameters
    ----------
    data : array_like of int, shape (rows, 2)
        Points and labels; at least one row.
    domain : int
        Number of points.

    Returns
    -------
    ndarray of int64, shape (domain, 2)
        Records with each point and label.

    Raises
    ------
    ValueError
        If a point is not in the domain, or a label is neither 0 nor 1.
    """
    return compute_once(_count_records, data, domain)


def _count_records(data: Dataset, domain: int) -> IntArray:
    records = np.asarray(data)
    shaped = records.ndim == 2 and records.shape[1] == 2 and len(records) > 0
    require(shaped and np.issubdtype(records.dtype, np.integer), "integers of shape (rows, 2)", records)
    x, y = records[:, 0].astype(np.int64), records[:, 1]
    require(bool(np.all((x >= 0) & (x < domain))), f"points from 0 to {domain - 1}", np.unique(x))
    require(bool(np.all((y == 0) | (y == 1))), "labels 0 and 1", np.unique(y))
    return np.bincount(2 * x + y, minlength=2 * domain).reshape(domain, 2).astype(np.int64)


class _ListedClass:
    """What a class needs no code of its own for: mistakes from a table of all labels, one parameter a hypothesis."""

    domain: int
    size: int

    def labels(self, x: IntArray) -> BoolArray:
        """Labels that all hypotheses give to the points; shape (len(x), size)."""
        raise NotImplementedError

    def mistakes(self, counts: IntArray) -> IntArray:
        """Records that each hypothesis gets wrong, shape (size,), in time O(domain * size)."""
        # In float64, whose products are fast, and whose integers are exact.
        table = self.labels(np.arange(self.domain, dtype=np.int64)).astype(np.float64)
        wrong = counts[:, 0] @ table + counts[:, 1] @ (1.0 - table)
        return np.asarray(wrong, dtype=np.float64).astype(np.int64)

    def parameters(self) -> IntArray:
        """One for each hypothesis."""
        return np.ones(self.size, dtype=np.int64)


@dataclass(frozen=True)
class PointFunctions(_ListedClass):
    """``h_j(x) = 1`` for x = j only, j = 0, .. size - 1.

    Parameters
    ----------
    size : int
        Hypotheses, at least 1.
    spare : int, default 0
        Further points of the domain, beyond the last hypothesis, that none of them contains.
    """

    size: int
    spare: int = 0

    def __post_init__(self) -> None:
        require(self.size >= 1, "at least one point", self.size)
        require(self.spare >= 0, "a number of spare points >= 0", self.spare)

    @property
    def domain(self) -> int:  # type: ignore[override]
        """Points of the hypotheses, and the others."""
        return self.size + self.spare

    @property
    def dimension(self) -> int:
        """1, as no hypothesis contains two points; 0 for a single hypothesis."""
        return 1 if self.size > 1 else 0

    def labels(self, x: IntArray) -> BoolArray:
        """Labels that all hypotheses give to the points; shape (len(x), size)."""
        return np.asarray(np.asarray(x)[:, None] == np.arange(self.size), dtype=np.bool_)

    def mistakes(self, counts: IntArray) -> IntArray:
        """Records that each hypothesis gets wrong, shape (size,), in time O(domain)."""
        own = counts[: self.size]
        return np.asarray(counts[:, 1].sum() + own[:, 0] - own[:, 1], dtype=np.int64)


@dataclass(frozen=True)
class ThresholdFunctions(_ListedClass):
    """``h_t(x) = 1`` for x >= t, with t = 0, .. domain."""

    domain: int

    def __post_init__(self) -> None:
        require(self.domain >= 1, "at least one point", self.domain)

    @property
    def size(self) -> int:  # type: ignore[override]
        """One more than there are points."""
        return self.domain + 1

    @property
    def dimension(self) -> int:
        """1."""
        return 1

    def labels(self, x: IntArray) -> BoolArray:
        """Labels that all hypotheses give to the points; shape (len(x), size)."""
        return np.asarray(np.asarray(x)[:, None] >= np.arange(self.size), dtype=np.bool_)

    def mistakes(self, counts: IntArray) -> IntArray:
        """Records that each hypothesis gets wrong, shape (size,), in time O(domain)."""
        missed = np.concatenate([[0], np.cumsum(counts[:, 1])])
        added = counts[:, 0].sum() - np.concatenate([[0], np.cumsum(counts[:, 0])])
        return np.asarray(missed + added, dtype=np.int64)


@dataclass(frozen=True)
class IntervalFunctions(_ListedClass):
    """Hypothesis 0 is empty, the others are ``1`` for a <= x < b, in order of a and then of b."""

    domain: int

    def __post_init__(self) -> None:
        require(self.domain >= 1, "at least one point", self.domain)

    @property
    def size(self) -> int:  # type: ignore[override]
        """``1 + m (m + 1) / 2``."""
        return 1 + self.domain * (self.domain + 1) // 2

    @property
    def dimension(self) -> int:
        """2, of two points and more."""
        return min(2, self.domain)

    def ends(self) -> tuple[IntArray, IntArray]:
        """First point, and point after the last one, of hypotheses 1, 2, ..; shape (size - 1,) each."""
        first, last = np.triu_indices(self.domain + 1, 1)
        return first.astype(np.int64), last.astype(np.int64)

    def labels(self, x: IntArray) -> BoolArray:
        """Labels that all hypotheses give to the points; shape (len(x), size)."""
        first, last = self.ends()
        at = np.asarray(x)[:, None]
        return np.concatenate([np.zeros((len(at), 1), dtype=np.bool_), (first <= at) & (at < last)], axis=1)

    def mistakes(self, counts: IntArray) -> IntArray:
        """Records that each hypothesis gets wrong, shape (size,), in time O(domain + size)."""
        gained = np.concatenate([[0], np.cumsum(counts[:, 1] - counts[:, 0])])
        first, last = self.ends()
        return np.asarray(counts[:, 1].sum() - np.concatenate([[0], gained[last] - gained[first]]), dtype=np.int64)

    def parameters(self) -> IntArray:
        """Pairs (a, b) from 0 to m that describe each labeling; shape (size,): the empty one has all with b <= a."""
        described = np.ones(self.size, dtype=np.int64)
        described[0] = (self.domain + 1) * (self.domain + 2) // 2
        return described


@dataclass(frozen=True)
class RectangleFunctions(_ListedClass):
    """Hypothesis 0 is empty, the others are axis-parallel rectangles of a grid; point ``x = width * row + column``."""

    width: int
    height: int

    def __post_init__(self) -> None:
        require(min(self.width, self.height) >= 1, "at least one row and column", (self.width, self.height))

    @property
    def domain(self) -> int:  # type: ignore[override]
        """Points of the grid."""
        return self.width * self.height

    @property
    def size(self) -> int:  # type: ignore[override]
        """One more than the product of the numbers of intervals in both directions."""
        return 1 + (IntervalFunctions(self.width).size - 1) * (IntervalFunctions(self.height).size - 1)

    @property
    def dimension(self) -> int:
        """4, from three rows and columns on: four points, each the extreme one of a direction."""
        require(min(self.width, self.height) >= 3, "three rows and columns", (self.width, self.height))
        return 4

    def labels(self, x: IntArray) -> BoolArray:
        """Labels that all hypotheses give to the points; shape (len(x), size)."""
        row, column = np.divmod(np.asarray(x), self.width)
        across = IntervalFunctions(self.width).labels(column)[:, 1:]
        along = IntervalFunctions(self.height).labels(row)[:, 1:]
        inside = (along[:, :, None] & across[:, None, :]).reshape(len(row), -1)
        return np.concatenate([np.zeros((len(row), 1), dtype=np.bool_), inside], axis=1)


@dataclass(frozen=True)
class ParityFunctions(_ListedClass):
    """``h_r(x)`` is the parity of the bits that r and x have in common, r and x from 0 to 2^bits - 1."""

    bits: int

    def __post_init__(self) -> None:
        require(1 <= self.bits <= _MOST_BITS, f"1 to {_MOST_BITS} bits", self.bits)

    @property
    def domain(self) -> int:  # type: ignore[override]
        """2^bits."""
        return 1 << self.bits

    @property
    def size(self) -> int:  # type: ignore[override]
        """2^bits."""
        return 1 << self.bits

    @property
    def dimension(self) -> int:
        """As many as there are bits: the unit vectors are shattered."""
        return self.bits

    def labels(self, x: IntArray) -> BoolArray:
        """Labels that all hypotheses give to the points; shape (len(x), size)."""
        common = np.asarray(x)[:, None] & np.arange(self.size)
        return np.asarray(np.bitwise_count(common) % 2 == 1, dtype=np.bool_)

    def mistakes(self, counts: IntArray) -> IntArray:
        """Records that each hypothesis gets wrong, shape (size,), in time O(bits 2^bits).

        The Walsh-Hadamard transform of the records with label 0 less those with label 1 is the number of records that
        r gets right less the number that it gets wrong.
        """
        balance = (counts[:, 0] - counts[:, 1]).astype(np.int64)
        for bit in range(self.bits):
            halves = balance.reshape(-1, 2, 1 << bit)
            balance = np.stack([halves[:, 0] + halves[:, 1], halves[:, 0] - halves[:, 1]], axis=1).ravel()
        return np.asarray((counts.sum() - balance) // 2, dtype=np.int64)


def sauer(points: int, dimension: int) -> int:
    """Most labelings of so many points by a class of that dimension, ``sum over i <= v of C(|X|, i)``."""
    return sum(math.comb(points, i) for i in range(dimension + 1))
