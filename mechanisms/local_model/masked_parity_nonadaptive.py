"""Learners of MASKED-PARITY whose queries are all fixed in advance: a weak one, and the best ones there are.

Against the lazy oracle of `statistical_queries.lazy_oracles` such a learner errs on a quarter of the points or more
with probability at least ``(1 - h) / 2`` over the target, where h is the probability that one of its queries hits r:
at most ``t / (4 tau^2 2^d)`` for t queries of tolerance tau. `BentQueries` attain it.

Source: document 002, section 5.3 (Theorem 5.16(2), section 5.3.2, "Weak vs. Strong Learning"); catalogue 002,
masked_parity_weak_nonadaptive and masked_parity_nonadaptive_oracle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from mechanisms.base.mechanism import FloatArray, IntArray, Mutant, require, tabulate_mutants
from mechanisms.local_model.masked_parity import BlockQueries, MaskedParityGame, hypothesis
from mechanisms.local_model.masked_parity_learner import TwoRoundParityLearner
from mechanisms.statistical_queries.lazy_oracles import (
    DecomposedQueries,
    bent_times_parity,
    joined,
    masked_queries,
    parity_signs,
)


@dataclass(frozen=True)
class NonadaptiveWeakLearner:
    """Nonadaptive weak learner: round 1 only, so r is known and a is not; its error is 1/4 for every concept.

    Where b = 0 it answers with a parity other than r, which is right on just half of the points whatever a is. The
    document has no construction, only that there is one.

    Parameters
    ----------
    d : int
        Bits of r.
    """

    d: int

    @property
    def blocks(self) -> int:
        """One."""
        return 1

    def ask(self, block: int, answers: tuple[FloatArray, ...], runs: int) -> BlockQueries:
        """The d queries of round 1."""
        return TwoRoundParityLearner(self.d).ask(block, answers, runs)

    def other(self, r: IntArray) -> IntArray:
        """A parity that is not r: its first bit is flipped."""
        return r ^ 1

    def learn(self, answers: tuple[FloatArray, ...]) -> IntArray:
        """The bits of r where b = 1, another parity where b = 0."""
        r = TwoRoundParityLearner(self.d).parity(answers, 0)
        return hypothesis(r, self.other(r), np.zeros_like(r), self.d)


class FixedQueryList(Protocol):
    """A list of queries that is fixed in advance."""

    @property
    def t(self) -> int:
        """How many."""
        ...

    def tables(self, d: int, /) -> FloatArray:
        """Values of shape (t, 2, d or 1, 2^d or 1, 2), see `masked_queries`."""
        ...


def _where_b_is_0(functions: IntArray) -> FloatArray:
    """The queries ``y f(x)`` where b = 0, and 0 where b = 1; functions of shape (t, 2^d)."""
    g = np.zeros((len(functions), 2, 1, functions.shape[1], 2))
    g[:, 0, 0, :, 0], g[:, 0, 0, :, 1] = functions, -functions
    return g


@dataclass(frozen=True)
class RandomParityQueries:
    """Correlations with t distinct random parities; each hits one r, at any tolerance up to 1/2.

    Parameters
    ----------
    t : int
        How many.
    seed : int, default 0
        Of the draw.
    """

    t: int
    seed: int = 0

    def tables(self, d: int) -> FloatArray:
        """Values, shape (t, 2, 1, 2^d, 2)."""
        require(0 <= self.t <= 1 << d, f"at most {1 << d} parities", self.t)
        chosen = np.random.default_rng(self.seed).permutation(1 << d)[: self.t]
        return _where_b_is_0(parity_signs(chosen[:, None], np.arange(1 << d)))


@dataclass(frozen=True)
class BentQueries:
    """Bent functions of m bits times the parities 0, ..., t - 1 of the others: each hits 2^m values of r.

    Their coefficients are ``+-2^(-m/2) / 2``, which is the tolerance that they have to be asked at. As many as
    ``2^(d-m)`` hit every r.

    Parameters
    ----------
    t : int
        How many.
    bits : int
        m, even.
    """

    t: int
    bits: int

    def tables(self, d: int) -> FloatArray:
        """Values, shape (t, 2, 1, 2^d, 2)."""
        require(0 <= self.t <= 1 << (d - self.bits), f"at most {1 << (d - self.bits)} queries", self.t)
        functions = [bent_times_parity(d, self.bits, rest) for rest in range(self.t)]
        return _where_b_is_0(np.array(functions, dtype=np.int64).reshape(self.t, 1 << d))


@dataclass(frozen=True)
class RandomFunctions:
    """Queries ``y f(x)`` where b = 0 with random values +1 and -1 of f: coefficients are about ``2^(-d/2) / 2``.

    Parameters
    ----------
    t : int
        How many.
    seed : int, default 0
        Of the draw.
    """

    t: int
    seed: int = 0

    def tables(self, d: int) -> FloatArray:
        """Values, shape (t, 2, 1, 2^d, 2)."""
        return _where_b_is_0(1 - 2 * np.random.default_rng(self.seed).integers(0, 2, (self.t, 1 << d)))


@dataclass(frozen=True)
class RandomSigns:
    """Queries of random values +1 and -1 at every (x, i, b, y): nothing about them is special.

    Parameters
    ----------
    t : int
        How many.
    seed : int, default 0
        Of the draw.
    """

    t: int
    seed: int = 0

    def tables(self, d: int) -> FloatArray:
        """Values, shape (t, 2, d, 2^d, 2)."""
        values = np.random.default_rng(self.seed).integers(0, 2, (self.t, 2, d, 1 << d, 2))
        return np.asarray(2 * values - 1, dtype=np.float64)


@dataclass(frozen=True)
class BestNonadaptiveLearner:
    """The best use of queries that are fixed in advance: r by the queries of round 1, a by what the others let slip.

    Parameters
    ----------
    d : int
        Bits of r.
    others : FixedQueryList
        t queries.
    tolerance : float
        Theirs.

    Notes
    -----
    The queries of round 1 do not see the half with b = 0, so they never hit and are not counted; the learner might as
    well be told r. It compares each answer with what a lazy oracle would say that knows r but not a: against that
    oracle, any difference tells a, and without one nothing does.
    """

    d: int
    others: FixedQueryList
    tolerance: float

    @property
    def blocks(self) -> int:
        """One."""
        return 1

    @cached_property
    def fixed(self) -> DecomposedQueries:
        """The t queries, taken apart; one list."""
        return masked_queries(self.others.tables(self.d)[None], self.d)

    def ask(self, block: int, answers: tuple[FloatArray, ...], runs: int) -> BlockQueries:
        """The d queries of round 1 and the t others."""
        first = TwoRoundParityLearner(self.d).ask(block, answers, runs)
        tolerances = np.concatenate([first.tolerances, np.full(self.others.t, self.tolerance)])
        return BlockQueries(joined(first.queries, self.fixed), first.which, tolerances)

    def learn(self, answers: tuple[FloatArray, ...]) -> IntArray:
        """The concept of r, and of the mask that fits the differences better; 0 where there is none."""
        r = TwoRoundParityLearner(self.d).parity((answers[0][:, : self.d],), 0)
        nothing, ones = np.zeros(len(r), dtype=np.int64), np.ones(len(r), dtype=np.int64)
        moved = answers[0][:, self.d :] - self.fixed.rest(nothing, r)
        agreement = (moved * self.fixed.secret(nothing, r, ones)).sum(axis=1)
        return hypothesis(r, r, (agreement < 0).astype(np.int64), self.d)


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class ConstantGuess(NonadaptiveWeakLearner):
    """The label +1 where b = 0, which is the parity 0: right on half of the points only if r is not 0."""

    def other(self, r: IntArray) -> IntArray:
        """The parity 0."""
        return np.zeros_like(r)


def _constant_guess(base: MaskedParityGame) -> MaskedParityGame:
    return replace(base, learner=ConstantGuess(base.learner.d))


#: Nothing private is claimed, so it cannot violate that.
MUTANTS: dict[str, Mutant[MaskedParityGame]] = tabulate_mutants(
    Mutant(
        "constant_guess",
        _constant_guess,
        None,
        "benign",
        "h = +1 where b = 0: for r = 0 the error is 0 (a = 0) or 1/2 (a = 1)",
    ),
)
