"""Learners of parity against the lazy oracle: how often they make it speak, and how often they learn.

As long as a lazy oracle has not been hit, its answers are the same for every target. So what a learner has asked by
then is fixed beforehand, adaptive or not, and t queries of tolerance tau hit a uniformly drawn target with probability
at most ``t / (tau^2 2^d)``; without a hit a learner can but guess one of 2^d targets.

Source: document 002, section 5.2 (Corollary 5.15, which quotes the lower bound); catalogue 002, sq_parity_lower_bound.
The quoted bound, no learner with at most 2^(d/3) queries of tolerance 2^(-d/3) or more, is where the bound above
reaches 1. The learners are this harness's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mechanisms.base.mechanism import FloatArray, IntArray, require
from mechanisms.statistical_queries.lazy_oracles import LazyOracle, bent_times_parity, parity_queries, parity_signs

# ------------------------------------------------------------------------------ learners of parity


class ParityQueryLearner(Protocol):
    """Asks queries ``y f(x)`` one after the other; everything is batched over runs."""

    @property
    def d(self) -> int:
        """Bits of x."""
        ...

    @property
    def queries(self) -> int:
        """How many queries it asks."""
        ...

    @property
    def tolerance(self) -> float:
        """Tolerance of all of them."""
        ...

    def ask(self, answers: FloatArray, /) -> IntArray:
        """Next query of each run, for answers so far of shape (runs, asked): ids of shape (runs,)."""
        ...

    def function(self, query: int, /) -> IntArray:
        """Values +1 and -1 of f for an id, shape (2^d,)."""
        ...

    def hypothesis(self, answers: FloatArray, /) -> IntArray:
        """What is learned of r from answers of shape (runs, queries); int64 of shape (runs,)."""
        ...


@dataclass(frozen=True)
class OneByOneSearch:
    """Asks for the correlation with one parity after the other: the parity itself is all that it can hit.

    Parameters
    ----------
    d : int
        Bits of x.
    queries : int
        t; the parities 1, ..., t are tried.
    tolerance : float
        tau.
    """

    d: int
    queries: int
    tolerance: float

    def ask(self, answers: FloatArray) -> IntArray:
        """The next parity, whatever the answers."""
        return np.full(len(answers), answers.shape[1] + 1, dtype=np.int64)

    def function(self, query: int) -> IntArray:
        """The parity itself."""
        return parity_signs(query, np.arange(1 << self.d))

    def hypothesis(self, answers: FloatArray) -> IntArray:
        """The parity that answered, else 0."""
        spoke = np.abs(answers) >= self.tolerance
        return np.where(spoke.any(axis=1), spoke.argmax(axis=1) + 1, 0).astype(np.int64)


@dataclass(frozen=True)
class BentSearch:
    """Searches one block of 2^m parities after the other with a bent query, then within the block that spoke.

    An adaptive learner that hits as often as any can: a query hits ``2^m = 1 / tau^2`` parities. Once one has spoken,
    all bent queries on its block do. The sign of the coefficient at ``r = (u, v)`` is ``(-1)^(u.v)`` times a known one;
    shifted by a coordinate e of u it is ``(-1)^((u + e).v)``, so that the product of the two signs is a bit of v, and
    in the same way one of u: m further queries tell r.

    Parameters
    ----------
    d : int
        Bits of x.
    bits : int
        m, even.
    queries : int
        t. A run has m queries left for the second part only if its block is among the first t - m.
    tolerance : float, optional
        tau, default ``2^(-m/2)``, the largest that a bent query of m bits hits at against the strict oracle.
    """

    d: int
    bits: int
    queries: int
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        require(self.bits % 2 == 0 and 2 <= self.bits <= self.d, f"an even number of bits, 2 to {self.d}", self.bits)
        require(self.queries >= 1, "at least one query", self.queries)
        if not self.tolerance:
            object.__setattr__(self, "tolerance", 2.0 ** (-self.bits / 2))

    @property
    def _blocks(self) -> int:
        return 1 << (self.d - self.bits)

    def _first_nonzero_answer(self, answers: FloatArray) -> IntArray:
        """First query whose answer is not 0, or how many there are; shape (runs,)."""
        return np.asarray(np.logical_and.accumulate(answers == 0.0, axis=1).sum(axis=1), dtype=np.int64)

    def ask(self, answers: FloatArray) -> IntArray:
        """``block + blocks * shift``, where shift 0 is the bent function itself and shift j moves coordinate j - 1."""
        asked, spoke = answers.shape[1], self._first_nonzero_answer(answers)
        block, shift = np.minimum(spoke, self._blocks - 1), np.minimum(asked - spoke, self.bits)
        return np.asarray(block + self._blocks * shift)

    def function(self, query: int) -> IntArray:
        """The bent query on a block; times a parity of one coordinate, which shifts its coefficients."""
        shift, block = divmod(query, self._blocks)
        values = bent_times_parity(self.d, self.bits, block)
        return values if shift == 0 else values * parity_signs(1 << (shift - 1), np.arange(1 << self.d))

    def hypothesis(self, answers: FloatArray) -> IntArray:
        """All of r where its m bits were told, else what was told of it with zeros."""
        spoke, half = self._first_nonzero_answer(answers), self.bits // 2
        block = np.minimum(spoke, self._blocks - 1)
        found = block << self.bits
        for shift in range(1, self.bits + 1):
            at = spoke + shift
            known = at < self.queries
            rows = np.flatnonzero(known)
            flipped = answers[rows, at[rows]] * answers[rows, spoke[rows]] < 0
            # Moving coordinate j of u tells bit j of v, and the other way round.
            told = (shift - 1 + half) % self.bits
            found[rows] |= flipped.astype(np.int64) << told
        return found


@dataclass(frozen=True)
class ParityGame:
    """A learner of PARITY against a lazy oracle, for random targets.

    Called with targets, ``(targets, n, rng)``: each run has one of them, drawn uniformly. Returns int64 of shape
    (n, 3): the target, the hypothesis, and whether the target was hit.

    Parameters
    ----------
    learner : ParityQueryLearner
        Who asks.
    oracle : LazyOracle
        Who answers.
    """

    learner: ParityQueryLearner
    oracle: LazyOracle

    def play(self, targets: IntArray) -> IntArray:
        """Play against each target; int64 of shape (runs, 3). Nothing is random."""
        runs, learner = len(targets), self.learner
        answers, hit = np.empty((runs, learner.queries)), np.zeros(runs, dtype=bool)
        sign, tolerance = np.ones(runs, dtype=np.int64), np.array([learner.tolerance])
        for j in range(learner.queries):
            ids, which = np.unique(learner.ask(answers[:, :j]), return_inverse=True)
            # Few distinct queries a round: runs that were not hit all ask the same.
            values = np.stack([learner.function(int(one)) for one in ids])[:, None, :]
            asked = parity_queries(np.stack([values, -values], axis=-1))
            secret = asked.secret(which, targets, sign)
            hit |= self.oracle.hits(secret, tolerance)[:, 0]
            answers[:, j] = self.oracle(asked, which, tolerance, targets, sign)[:, 0]
        return np.stack([targets, learner.hypothesis(answers), hit.astype(np.int64)], axis=1)

    def __call__(self, data: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` runs, with targets drawn uniformly from `data`."""
        targets = np.asarray(data, dtype=np.int64)[rng.integers(0, len(data), n)]
        distinct, of_run = np.unique(targets, return_inverse=True)
        return self.play(distinct)[of_run]
