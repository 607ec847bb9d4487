"""Algorithms that learn from statistical queries, and how many rows their answers take.

Source: document 000, section 1, Theorem 1; catalogue 000_001_003, sq_to_dp_learner. The document names no algorithm;
conjunctions and thresholds are this harness's.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_positive
from mechanisms.base.queries import column_values

BoolArray: TypeAlias = NDArray[np.bool_]

# ---------------------------------------------------------------------------- what is asked


class StatisticalQueryAlgorithm(Protocol):
    """Learns from answers to statistical queries. Everything is batched over n runs."""

    @property
    def queries(self) -> int:
        """How many queries it asks: M."""
        ...

    @property
    def pool(self) -> int:
        """How many queries it chooses from."""
        ...

    @property
    def tolerance(self) -> float:
        """How far an answer may be from the query's expectation: tau."""
        ...

    @property
    def adaptive(self) -> bool:
        """Whether a query depends on earlier answers."""
        ...

    def ask(self, answers: FloatArray, /) -> IntArray:
        """Return the next query of every run, an index into the pool, for past answers of shape (n, asked)."""
        ...

    def values(self, query: int, rows: Dataset, /) -> FloatArray:
        """Return the query's value in [0, 1] on every row, shape (rows,)."""
        ...

    def hypothesis(self, answers: FloatArray, /) -> FloatArray:
        """Return what was learned from answers of shape (n, M), shape (n,) or (n, d)."""
        ...


@dataclass(frozen=True)
class ColumnBit:
    """A bit of a row: whether a column's value is in [low, high]."""

    column: Hashable | None
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        require(self.low <= self.high, "low <= high", (self.low, self.high))

    def __call__(self, rows: Dataset) -> BoolArray:
        """Return the bit of every row, shape (rows,)."""
        values = column_values(rows, self.column)
        return np.asarray((values >= self.low) & (values <= self.high), dtype=bool)


@dataclass(frozen=True)
class AllBitsSet:
    """Whether a row has all of several bits: a monotone conjunction of them."""

    bits: tuple[ColumnBit, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", tuple(self.bits))

    def __call__(self, rows: Dataset) -> BoolArray:
        """Return the conjunction on every row, shape (rows,)."""
        held = np.ones(len(rows), dtype=bool)
        for bit in self.bits:
            held &= bit(rows)
        return held


@dataclass(frozen=True)
class ConjunctionAlgorithm:
    """Learns a conjunction of d bits: keeps those that hardly any positive example lacks.

    Parameters
    ----------
    bits : tuple of ColumnBit
        Bits x_1 .. x_d of a row. Query j is ``1[x_j = 0 and y = 1]``.
    label : ColumnBit or AllBitsSet
        The label y of a row.
    error : float
        In (0, 1): the error that the learner aims at, ``2 d tau``.

    Notes
    -----
    Bit j is kept if its answer is at most tau. If every answer is within tau, a bit of the target conjunction, for
    which the query's expectation is 0, is kept; and a bit that is kept is lacked by at most ``2 tau`` of the positive
    examples. So the hypothesis errs only on positive examples, with probability at most ``2 d tau = error``. The
    queries are fixed in advance.
    """

    bits: tuple[ColumnBit, ...]
    label: ColumnBit | AllBitsSet
    error: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", tuple(self.bits))
        require(len(self.bits) > 0, "at least one bit", self.bits)
        require(0 < self.error < 1, "an error in (0, 1)", self.error)

    @property
    def queries(self) -> int:
        """Number of bits."""
        return len(self.bits)

    @property
    def pool(self) -> int:
        """Number of bits."""
        return len(self.bits)

    @property
    def tolerance(self) -> float:
        """``error / (2 d)``."""
        return self.error / (2.0 * self.queries)

    @property
    def adaptive(self) -> bool:
        """Query j is asked in round j: False."""
        return False

    def ask(self, answers: FloatArray) -> IntArray:
        """Ask for the next bit."""
        return np.full(len(answers), answers.shape[1], dtype=np.int64)

    def values(self, query: int, rows: Dataset) -> FloatArray:
        """Return ``1[x_j = 0 and y = 1]``, shape (rows,)."""
        return np.asarray(~self.bits[query](rows) & self.label(rows), dtype=np.float64)

    def hypothesis(self, answers: FloatArray) -> FloatArray:
        """Return which bits are kept, as 0 and 1, shape (n, d)."""
        return np.asarray(answers <= self.tolerance, dtype=np.float64)

    def learned(self, kept: FloatArray) -> AllBitsSet:
        """Return the conjunction that a hypothesis of shape (d,) stands for."""
        return AllBitsSet(tuple(bit for bit, keep in zip(self.bits, kept, strict=True) if keep))


@dataclass(frozen=True)
class ThresholdAlgorithm:
    """Learns ``1[value >= t]`` by binary search over ``2^M`` thresholds: every query depends on the answers before it.

    Parameters
    ----------
    column : hashable or None
        Where the value stands.
    label : ColumnBit
        The label y of a row.
    rounds : int
        M, from 1 to 52. The thresholds are ``low + k width`` for k from 0 to ``2^M``.
    low, width : float
        Smallest threshold and the distance of two.
    tolerance : float
        tau, in (0, 1).

    Notes
    -----
    Query k is ``1[value < low + k width and y = 1]``. Its expectation rises with k, from 0 at the target's threshold
    on downwards. The search keeps a threshold k whose answer was at most tau, and one further up whose answer was
    above tau, and halves what is between. If every answer is within tau, the upper one is above the target's, so the
    lower one, next to it in the end, is not below; and the examples between are at most ``2 tau``, the error.
    """

    column: Hashable | None
    label: ColumnBit
    rounds: int
    low: float
    width: float
    tolerance: float

    def __post_init__(self) -> None:
        require(1 <= self.rounds <= 52, "1 to 52 rounds", self.rounds)
        require(math.isfinite(self.low), "a finite low", self.low)
        require_positive("width", self.width)
        require(0 < self.tolerance < 1, "a tolerance in (0, 1)", self.tolerance)

    @property
    def queries(self) -> int:
        """Number of rounds."""
        return self.rounds

    @property
    def pool(self) -> int:
        """Number of thresholds, the lowest included, which is never asked for."""
        return int(2**self.rounds)

    @property
    def adaptive(self) -> bool:
        """The next threshold depends on past answers: True."""
        return True

    def _kept_branch(self, answers: FloatArray) -> IntArray:
        # Going up in round i passes 2^(M - 1 - i) thresholds.
        passed = 2 ** np.arange(self.rounds - 1, self.rounds - 1 - answers.shape[1], -1, dtype=np.int64)
        return np.asarray((answers <= self.tolerance) @ passed, dtype=np.int64)

    def ask(self, answers: FloatArray) -> IntArray:
        """Ask for the threshold in the middle of what is left."""
        half: int = 2 ** (self.rounds - 1 - answers.shape[1])
        return self._kept_branch(answers) + half

    def values(self, query: int, rows: Dataset) -> FloatArray:
        """Return ``1[value < low + query width and y = 1]``, shape (rows,)."""
        below = column_values(rows, self.column) < self.low + query * self.width
        return np.asarray(below & self.label(rows), dtype=np.float64)

    def hypothesis(self, answers: FloatArray) -> FloatArray:
        """Return the threshold that was learned, shape (n,)."""
        return np.asarray(self.low + self._kept_branch(answers) * self.width, dtype=np.float64)


# ----------------------------------------------------------------------------- sample sizes


def chunk_size(queries: int, tolerance: float, epsilon: float, delta: float) -> int:
    """Rows a chunk at which all answers are within the tolerance with probability at least ``1 - delta``.

    ``ceil(max(2 ln(4 M / delta) / tau^2, 2 ln(2 M / delta) / (epsilon tau)))``: by Hoeffding's inequality the mean of a
    chunk is off by more than ``tau / 2`` with probability at most ``2 exp(-s tau^2 / 2) = delta / (2 M)``, and so is
    the noise, with ``exp(-epsilon s tau / 2)``. For noise of scale ``1 / (epsilon s)``.

    Source: document 000, Theorem 1, with the constants of catalogue 000_001_003, sq_to_dp_learner.
    """
    _require_sizes(queries, tolerance, epsilon, delta)
    for_means = 2.0 * math.log(4.0 * queries / delta) / tolerance**2
    for_noise = 2.0 * math.log(2.0 * queries / delta) / (epsilon * tolerance)
    return math.ceil(max(for_means, for_noise))


def printed_chunk_size(queries: int, tolerance: float, epsilon: float, delta: float) -> int:
    """Rows a chunk in the shape that is printed, ``2 (1 / (epsilon tau) + 1 / tau^2) ln(2 M / delta)``, rounded up.

    The document leaves the constant open; with 2 this is at least `chunk_size` where
    ``(tau / epsilon) ln(2 M / delta) >= ln 2``, and short of it by less than ``2 ln 2 / tau^2`` elsewhere.
    """
    _require_sizes(queries, tolerance, epsilon, delta)
    parts = 1.0 / (epsilon * tolerance) + 1.0 / tolerance**2
    return math.ceil(2.0 * parts * math.log(2.0 * queries / delta))


def _require_sizes(queries: int, tolerance: float, epsilon: float, delta: float) -> None:
    require(queries >= 1, "at least one query", queries)
    require(0 < tolerance < 1, "a tolerance in (0, 1)", tolerance)
    require_positive("epsilon", epsilon)
    require(0 < delta < 1, "delta in (0, 1)", delta)
