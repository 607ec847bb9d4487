"""Parities learned from labelled bits: by Gaussian elimination, and privately from a random subset of the rows.

The parity c_r maps x to ``<r, x> mod 2``, for bits r_1..r_d. A database is an array of zeros and ones of shape (rows,
d + 1): the bits of x, then the label, which need not be consistent with any parity. Neighbours replace one row.

Source: document 002, section 4, Lemmas 4.1 and 4.2, Claim 4.3; catalogue 002, nonprivate_parity and parity_base_A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.kept import compute_once
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import draw_index
from mechanisms.learning.gf2 import (
    BoolArray,
    EchelonSystems,
    Words,
    eliminate,
    inner,
    pack,
    random_words,
    rank,
    unpack,
    words,
)
from mechanisms.learning.gf2_subsets import PreparedSystem, prepare, random_solutions

#: The output that is no hypothesis.
NULL = -1
#: A hypothesis of more bits than this is no int64 code.
MOST_BITS = 62
#: Runs of equal rows whose subsets are all solved beforehand, 256 systems; more are solved run by run. Arbitrary.
_FEW = 8
#: Runs whose subsets are listed: 65,536 of them.
_MOST_RUNS = 16
#: The distribution is listed where there are no more than 2^24 pairs of a subset and a hypothesis: half a second.
_MOST_CELLS = 24
#: Databases whose equations are kept sorted, so that many small batches from a large one cost no more than few large.
_KEPT = 4


class MergedEquations(NamedTuple):
    """Rows of a database, runs of equal ones merged.

    Attributes
    ----------
    x : ndarray of shape (words, runs), uint64
        Bits of x.
    y : ndarray of shape (runs,), bool
        Labels.
    times : ndarray of shape (runs,), int64
        Length of each run.
    """

    x: Words
    y: BoolArray
    times: IntArray


def labelled(data: Dataset, d: int) -> NDArray[np.uint8]:
    """Return a database as uint8 of shape (rows, d + 1); ValueError if it is none."""
    found = np.asarray(data)
    require(found.ndim == 2 and found.shape[1] == d + 1, f"rows of {d} bits and a label", found.shape)
    wrong = found[(found != 0) & (found != 1)]
    require(wrong.size == 0, "bits 0 and 1", wrong[:1].tolist())
    return found.astype(np.uint8)


def equations(data: NDArray[np.uint8], merged: bool = True) -> MergedEquations:
    """Merge runs of equal rows, unless told not to; the order of the rows is kept."""
    starts = np.ones(len(data), dtype=np.bool_)
    if merged:
        starts[1:] = (data[1:] != data[:-1]).any(axis=1)
    begin = np.flatnonzero(starts)
    times = np.diff(np.append(begin, len(data))).astype(np.int64)
    return MergedEquations(pack(data[begin, :-1].T), data[begin, -1].astype(np.bool_), times)


def subsets(runs: int) -> BoolArray:
    """All subsets, shape (2^runs, runs); subset s has run i if bit i of s is set. ValueError for more than 16 runs."""
    require(runs <= _MOST_RUNS, f"at most {_MOST_RUNS} runs of equal rows", runs)
    return (np.arange(2**runs)[:, None] >> np.arange(runs) & 1).astype(np.bool_)


def hypotheses(d: int) -> Words:
    """All of them in order of their codes; shape (1, 2^d)."""
    return np.arange(2**d, dtype=np.uint64)[None]


@dataclass(frozen=True)
class SubsetLearner:
    """What the private learner shares with its mutants, and with the learner that is not private.

    With probability `stop` the output is `NULL`. Otherwise a subset of the rows is drawn, and a uniform parity that
    agrees with it; `NULL` if there is none.

    Parameters
    ----------
    epsilon : float
        Claimed pure level.
    d : int
        Number of bits.
    """

    epsilon: float
    d: int

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        words(self.d)

    #: Whether runs of equal rows are merged: not where the subset is not one of independent rows.
    merged: ClassVar[bool] = True

    @property
    def p(self) -> float:
        """Probability that a row is in the subset."""
        return self.epsilon / 4.0

    @property
    def stop(self) -> float:
        """Probability of step 1."""
        return 0.5

    def read(self, data: Dataset) -> MergedEquations:
        """Check a database and merge equal rows."""
        rows = labelled(data, self.d)
        require(len(rows) >= 1, "at least one row", rows.shape)
        return equations(rows, self.merged)

    def drawn_subsets(self, read: MergedEquations) -> tuple[BoolArray, FloatArray]:
        """Subsets of the runs that can be drawn, shape (subsets, runs), and their probabilities."""
        every = subsets(len(read.y))
        left_out = np.exp(read.times * math.log1p(-self.p)) if self.p < 1 else np.zeros(len(read.y))
        return every, np.asarray(np.where(every, 1.0 - left_out, left_out).prod(axis=1), dtype=np.float64)

    def systems(self, read: MergedEquations, drawn: BoolArray) -> EchelonSystems:
        """The equations of each subset, eliminated."""
        rows = read.x[:, :, None] * drawn.T.astype(np.uint64)
        return eliminate(rows, read.y[:, None] & drawn.T)

    def agreeing(self, read: MergedEquations, drawn: BoolArray) -> BoolArray:
        """Which hypotheses agree with each subset, shape (subsets, 2^d): by their definition, without elimination."""
        wrong = inner(read.x[:, :, None], hypotheses(self.d)[:, None]) != read.y[:, None]
        found = np.ones((len(drawn), 2**self.d), dtype=np.bool_)
        for run in range(len(read.y)):
            found &= ~(drawn[:, run, None] & wrong[run])
        return found

    def free_bits(self, n: int, rng: np.random.Generator) -> Words:
        """Values for variables that the equations leave open, shape (words, n)."""
        return random_words(self.d, (n,), rng)

    def given(self, read: MergedEquations, drawn: BoolArray) -> FloatArray:
        """Distribution of step 4's output given each subset, shape (subsets, 1 + 2^d): `NULL`, then the hypotheses."""
        found = self.agreeing(read, drawn)
        count = found.sum(axis=1, keepdims=True)
        return np.concatenate([count == 0, found / np.maximum(count, 1)], axis=1)

    def subset_law(self, data: Dataset) -> tuple[FloatArray, FloatArray]:
        """Probabilities of the subsets, and `given` each of them.

        By enumeration of the subsets of runs of equal rows and of the hypotheses.

        Raises
        ------
        ValueError
            If there are more than 2^24 pairs of a subset and a hypothesis.
        """
        read = self.read(data)
        bits = len(read.y) + self.d
        require(bits <= _MOST_CELLS, f"runs of equal rows plus bits of at most {_MOST_CELLS}", bits)
        drawn, mass = self.drawn_subsets(read)
        return mass, self.given(read, drawn)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution: `NULL` and the codes 0 .. 2^d - 1; see `subset_law`."""
        mass, given = self.subset_law(data)
        law = (1.0 - self.stop) * (mass @ given)
        law[0] += self.stop
        return FiniteLaw((NULL, *range(2**self.d)), law)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.signedinteger]:
        """Draw `n` hypotheses.

        Returns
        -------
        ndarray
            For d of at most 62, int64 of shape (n,): bit j of a code is r_j, and `NULL` is -1. For more bits int8 of
            shape (n, d): a row of zeros and ones, or of -1.
        """
        found, null = self.draw(data, n, rng)
        if self.d <= MOST_BITS:
            return np.where(null, np.int64(NULL), found[0].astype(np.int64))
        return np.where(null[:, None], np.int8(NULL), unpack(found, self.d).T.astype(np.int8))

    def draw(self, data: Dataset, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Draw `n` hypotheses as words.

        Returns
        -------
        found : ndarray of shape (words(d), n), uint64
            Bits of r; arbitrary where there is no hypothesis.
        null : ndarray of shape (n,), bool
            Where there is none.
        """
        require_draws(n)
        read = MergedEquations(*compute_once(self.read, data))
        null = rng.random(n) < self.stop
        found = np.zeros((read.x.shape[0], n), dtype=np.uint64)
        runs = np.flatnonzero(~null)
        found[:, runs], null[runs] = self.solve(read, len(runs), rng)
        return found, null

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Steps 2 to 4 for `n` runs; as `draw`."""
        mass, *parts = compute_once(self._solve_subsets, read.x, read.y.tobytes(), read.times.tobytes())
        systems, which = EchelonSystems(*parts), draw_index(mass, n, rng)
        return systems.solutions(self.free_bits(n, rng), which), ~systems.consistent[which]

    def _solve_subsets(self, x: Words, y: bytes, times: bytes) -> tuple[NDArray[Any], ...]:
        """Probabilities of the subsets, and the fields of their systems; of equations whose labels are bytes."""
        read = MergedEquations(x, np.frombuffer(y, dtype=np.bool_), np.frombuffer(times, dtype=np.int64))
        drawn, mass = self.drawn_subsets(read)
        systems = self.systems(read, drawn)
        return mass, systems.rows, systems.labels, systems.consistent, systems.rank


@dataclass(frozen=True)
class PrivateParityLearner(SubsetLearner):
    """The private parity learner A.

    With probability 1/2 it stops without a hypothesis. Otherwise each row is taken with probability p = epsilon/4, and
    a uniform parity that agrees with the rows taken is published, or nothing if there is none.

    Parameters
    ----------
    epsilon : float
        Claimed pure level, in (0, 4]: p is a probability. The exact level is `exact_epsilon`, so the claim holds up to
        3.8300.
    d : int
        Number of bits.

    Notes
    -----
    Databases of more than 8 runs of equal rows are not enumerated, see `gf2_subsets`: at d = 256 that takes
    little more than the elimination of 264 rows a hypothesis.
    """

    #: Largest epsilon of which a quarter is a probability.
    highest: ClassVar[float] = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon <= self.highest, f"epsilon <= {self.highest}", self.epsilon)

    @property
    def exact_epsilon(self) -> float:
        """``ln((1 + p) / (1 - p))``, attained with one row."""
        return math.inf if self.p >= 1 else 2.0 * math.atanh(self.p)

    def atom(self, data: Dataset, code: int) -> float:
        """Probability of one hypothesis, in closed form.

        ``(1/2) 2^-d (1 - p)^(n - |C|)`` times the product over the distinct nonzero x in C, of multiplicities m_x, of
        ``2 - (1 - p)^m_x``; C are the rows that the hypothesis agrees with.

        Raises
        ------
        ValueError
            If those x are linearly dependent: then the factor is a mean over subsets that has no such form.
        """
        rows = labelled(data, self.d)
        bits = code >> np.arange(self.d) & 1
        agrees = rows[:, :-1] @ bits % 2 == rows[:, -1]
        x, times = np.unique(rows[agrees, :-1], axis=0, return_counts=True)
        x, times = x[x.any(axis=1)], times[x.any(axis=1)]
        require(len(x) == 0 or rank(x) == len(x), "linearly independent x", x.tolist())
        left_out = (1.0 - self.p) ** times
        return 0.5 * 2.0**-self.d * (1.0 - self.p) ** int((~agrees).sum()) * float(np.prod(2.0 - left_out))

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Steps 2 to 4 for `n` runs."""
        if len(read.y) <= _FEW:
            return super().solve(read, n, rng)
        system = _prepare_rows(read.x.tobytes(), read.y.tobytes(), read.times.tobytes(), self.d)
        return random_solutions(system, self.p, self.free_bits(n, rng), rng)


@lru_cache(maxsize=_KEPT)
def _prepare_rows(x: bytes, y: bytes, times: bytes, d: int) -> PreparedSystem:
    rows = np.frombuffer(x, dtype=np.uint64).reshape(words(d), -1)
    return prepare(rows, np.frombuffer(y, dtype=np.bool_), np.frombuffer(times, dtype=np.int64), d)


@dataclass(frozen=True)
class GaussianElimination(SubsetLearner):
    """The learner that is not private: a uniform parity that agrees with all rows, `NULL` if there is none.

    Parameters
    ----------
    epsilon : float
        A level that is claimed for it, which no level is: rows (x, 0) and (x, 1) have outputs that are disjoint.
    d : int
        Number of bits.
    """

    @property
    def p(self) -> float:
        """Every row is used."""
        return 1.0

    @property
    def stop(self) -> float:
        """It never stops early."""
        return 0.0

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Solve the one system of all rows."""
        system = self.systems(read, np.ones((1, len(read.y)), dtype=np.bool_))
        free = self.free_bits(n, rng)
        return system.solutions(free, np.zeros(n, dtype=np.int64)), np.full(n, not system.consistent[0])
