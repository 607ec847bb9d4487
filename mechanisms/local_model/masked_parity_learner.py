"""The learner of MASKED-PARITY in two rounds, and its mutants.

Round 1 finds r from the half of the points with b = 1, bit by bit; round 2 finds the mask by one query that depends on
r. Values of queries are 0 and 1, as the document has them here (its definition of an oracle has +1 and -1, with which
tolerances would be twice as large).

Source: document 002, section 5.3.1 (Proposition 5.18, Theorem 5.16(1)); catalogue 002, masked_parity_adaptive_sq.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.base.mechanism import FloatArray, IntArray, Mutant, require, tabulate_mutants
from mechanisms.local_model.masked_parity import (
    BlockQueries,
    FaithfulAnswerer,
    MaskedParityGame,
    MaskedParityLearner,
    hypothesis,
)
from mechanisms.statistical_queries.lazy_oracles import MOST_BITS, DecomposedQueries, masked_queries, parity_signs
from mechanisms.statistical_queries.sq_oracles import valid_oracles


def first_round(d: int, position: Callable[[int], int] = lambda j: j) -> DecomposedQueries:
    """The queries g_j: whether i is j, b = 1 and y = -1; one list of d queries of expectation ``r_j / (2 d)``."""
    g = np.zeros((1, d, 2, d, 1, 2))
    for j in range(d):
        g[0, j, 1, position(j), 0, 1] = 1.0
    return masked_queries(g, d)


def second_round(parities: IntArray, d: int) -> DecomposedQueries:
    """The query g_{d+1} for each parity: whether b = 0 and y is not the parity's sign; shape (parities, 1).

    Its expectation is a / 2 if the parity is the target's, else 1/4.
    """
    return _mismatch(parity_signs(parities[:, None], np.arange(1 << d)), d)


def _mismatch(predicted: IntArray, d: int) -> DecomposedQueries:
    """Whether b = 0 and y differs from a prediction of shape (lists, 2^d)."""
    g = np.zeros((len(predicted), 1, 2, 1, 1 << d, 2))
    g[:, 0, 0, 0, :, 0], g[:, 0, 0, 0, :, 1] = predicted != 1, predicted != -1
    return masked_queries(g, d)


def tolerance_of(d: int) -> float:
    """Tolerance of the first round: 1/(4 d + 1), the least of the learner's."""
    return 1.0 / (4 * d + 1)


#: Tolerance of the second round, and what its answer is compared with.
SECOND_TOLERANCE, SECOND_THRESHOLD = 1 / 5, 1 / 4


def faithful(d: int) -> dict[str, FaithfulAnswerer]:
    """Every oracle that keeps to its tolerance, by name; the adversarial ones know what answers are compared with."""
    first, second = valid_oracles(1 / (4 * d)), valid_oracles(SECOND_THRESHOLD)
    return {name: FaithfulAnswerer((first[name], second[name])) for name in first}


@dataclass(frozen=True)
class TwoRoundParityLearner:
    """The document's adaptive learner A_MP: r from the half with b = 1, then a by one query that depends on r.

    Parameters
    ----------
    d : int
        Bits of r, at least 2.

    Notes
    -----
    Correct with certainty, whatever the oracle: an answer of round 1 is at least ``1/(2d) - 1/(4d+1) > 1/(4d)`` if
    r_j = 1 and at most ``1/(4d+1) < 1/(4d)`` if not; that of round 2 is at least .3 or at most .2, against 1/4.
    """

    d: int

    def __post_init__(self) -> None:
        require(2 <= self.d <= MOST_BITS, f"2 to {MOST_BITS} bits", self.d)

    @property
    def blocks(self) -> int:
        """Two."""
        return 2

    @property
    def tolerance(self) -> float:
        """Tolerance of the first round."""
        return tolerance_of(self.d)

    def position(self, j: int) -> int:
        """The index i that query j looks at."""
        return j

    def exceeds(self, answers: FloatArray, threshold: float) -> IntArray:
        """Bits: whether answers are above the threshold."""
        return (answers > threshold).astype(np.int64)

    def parity(self, answers: tuple[FloatArray, ...], runs: int) -> IntArray:
        """What round 1 says of r; 0 where there are no answers yet."""
        if not answers:
            return np.zeros(runs, dtype=np.int64)
        return np.asarray(self.exceeds(answers[0], 1 / (4 * self.d)) @ (1 << np.arange(self.d)), dtype=np.int64)

    def asked_in_round_two(self, answers: tuple[FloatArray, ...], runs: int) -> IntArray:
        """The parity that the second query is made of."""
        return self.parity(answers, runs)

    def second(self, parities: IntArray) -> DecomposedQueries:
        """The second query of each parity."""
        return second_round(parities, self.d)

    def ask(self, block: int, answers: tuple[FloatArray, ...], runs: int) -> BlockQueries:
        """The d queries of round 1, or the one of round 2."""
        if block == 0:
            nothing = np.zeros(runs, dtype=np.int64)
            return BlockQueries(first_round(self.d, self.position), nothing, np.full(self.d, self.tolerance))
        parities, which = np.unique(self.asked_in_round_two(answers, runs), return_inverse=True)
        return BlockQueries(self.second(parities), which, np.array([SECOND_TOLERANCE]))

    def learn(self, answers: tuple[FloatArray, ...]) -> IntArray:
        """The concept of the parity and the mask that were found, as a hypothesis."""
        r = self.parity(answers, 0)
        return hypothesis(r, r, self.exceeds(answers[1][:, 0], SECOND_THRESHOLD), self.d)


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class NonStrictComparison(TwoRoundParityLearner):
    """At least for above."""

    def exceeds(self, answers: FloatArray, threshold: float) -> IntArray:
        """Bits: whether answers are at least the threshold."""
        return (answers >= threshold).astype(np.int64)


@dataclass(frozen=True)
class WideParityTolerance(TwoRoundParityLearner):
    """Tolerance 1/(2 d) in round 1: as much as the two expectations are apart."""

    @property
    def tolerance(self) -> float:
        """Tolerance of the first round."""
        return 1.0 / (2 * self.d)


@dataclass(frozen=True)
class RotatedBitOrder(TwoRoundParityLearner):
    """Query j looks at index j + 1, so what is found is r rotated by one bit."""

    def position(self, j: int) -> int:
        """The index i that query j looks at."""
        return (j + 1) % self.d


@dataclass(frozen=True)
class IntegerInnerProduct(TwoRoundParityLearner):
    """The predicted label is ``1 - 2 (r.x)`` with r.x over the integers: no label at all where r.x > 1."""

    def second(self, parities: IntArray) -> DecomposedQueries:
        """The second query of each parity."""
        inner = np.bitwise_count(parities[:, None] & np.arange(1 << self.d)).astype(np.int64)
        return _mismatch(1 - 2 * inner, self.d)


@dataclass(frozen=True)
class SecondRoundPreparedEarly(TwoRoundParityLearner):
    """The second query is prepared before round 1 is answered, for r = 0."""

    def asked_in_round_two(self, answers: tuple[FloatArray, ...], runs: int) -> IntArray:
        """The parity that the second query is made of."""
        del answers
        return self.parity((), runs)


@dataclass(frozen=True)
class _BuildGame:
    """Builds the game of another learner of as many bits (for `Mutant.build`)."""

    learner: Callable[[int], MaskedParityLearner]

    def __call__(self, base: MaskedParityGame) -> MaskedParityGame:
        """Return the mutant of `base`."""
        return replace(base, learner=self.learner(base.learner.d))


#: Nothing private is claimed, so none of them can violate it.
MUTANTS: dict[str, Mutant[MaskedParityGame]] = tabulate_mutants(
    Mutant(
        "non_strict_comparison",
        _BuildGame(NonStrictComparison),
        None,
        "benign",
        ">= for >: the margins are strict, no effect",
    ),
    Mutant(
        "tolerance_1_over_2d",
        _BuildGame(WideParityTolerance),
        None,
        "benign",
        "tau = 1/(2d): an oracle may answer as if every bit were the other one",
    ),
    Mutant(
        "bit_order",
        _BuildGame(RotatedBitOrder),
        None,
        "benign",
        "bit j is read at index j + 1: right for r = 0 and 1..1 only",
    ),
    Mutant(
        "integer_inner_product",
        _BuildGame(IntegerInnerProduct),
        None,
        "benign",
        "r.x not mod 2: where r has four ones or more, a = 0 is taken for 1",
    ),
    Mutant(
        "second_round_prepared_early",
        _BuildGame(SecondRoundPreparedEarly),
        None,
        "benign",
        "the second query does not depend on the first answers: a is not learned",
    ),
)
