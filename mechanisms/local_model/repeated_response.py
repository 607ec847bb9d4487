"""Composition: several answers about one bit, with budgets that may be chosen on the way, and its mutants.

Mechanisms of levels e_1, .., e_k on the same data cost their sum, and what is made of the answers costs nothing more,
as long as it is made of the answers alone. Where each level is chosen in view of past answers, the sum is bounded along
every path by a privacy filter, which refuses what would exceed the budget (`FilteredResponses`).

Source: document 002, section 2, Claim 2.2, which is stated for levels fixed in advance and used for chosen ones in
Definition 5.3; catalogue 002, sequential_composition. `composition.composition.Accountant` divides a budget evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special, stats

from auditor.privacy.exact import FiniteLaw, ProductLaw
from auditor.targets.interactive import Analyst, BoolArray, History, Queries
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, lattice_law, two_sided_geometric
from mechanisms.base.queries import Count
from mechanisms.composition.composition import RowBit
from mechanisms.local_model.local_model import REFUSED, LocalAlgorithm, LocalOracle
from mechanisms.local_model.local_randomizers import constant, response

# ------------------------------------------------------------------------------ levels in advance


@dataclass(frozen=True)
class NumberOfOnes:
    """Asks k times for one bit, each time with level `part`, and publishes how often the answer was 1.

    Parameters
    ----------
    bit : RowBit
        What is asked.
    part : float
        Level of each response.
    k : int
        Number of responses.

    Notes
    -----
    The number is a sufficient statistic of the k answers, so its level is theirs: ``k * part``, attained where all
    answers are equal.
    """

    bit: RowBit
    part: float
    k: int

    def __post_init__(self) -> None:
        require_positive("level of a response", self.part)
        require(self.k >= 1, "k >= 1", self.k)

    @property
    def epsilon(self) -> float:
        """``k * part``."""
        return self.k * self.part

    def probabilities(self, bit: int) -> FloatArray:
        """Probabilities of 0, .., k ones, shape (k + 1,)."""
        return np.asarray(stats.binom.pmf(np.arange(self.k + 1), self.k, special.expit((2 * bit - 1) * self.part)))

    def published(self, ones: IntArray, bit: int) -> IntArray:
        """What is made of the number of ones, shape (n,)."""
        del bit  # post-processing does not see the data
        return ones

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers; int64 of shape (n,)."""
        require_draws(n)
        bit = self.bit(data)
        answers = rng.random((n, self.k)) < special.expit((2 * bit - 1) * self.part)
        return self.published(answers.sum(axis=1, dtype=np.int64), bit)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`."""
        bit = self.bit(data)
        outcomes = self.published(np.arange(self.k + 1, dtype=np.int64), bit)
        return FiniteLaw(tuple(outcomes.tolist()), self.probabilities(bit))


@dataclass(frozen=True)
class TwoAnswers:
    """Two counts, the second one times two, each with integer noise of one scale.

    Parameters
    ----------
    first, second : Count
        Under replace_one.
    epsilon : float
        Claimed level: a third of it is spent on the first answer, whose sensitivity is 1, and the rest on the second.
    """

    first: Count
    second: Count
    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)

    @property
    def base(self) -> float:
        """Base of the noise: the answers move by 3 in all."""
        return base_for(self.epsilon, 3)

    def centre(self, data: Dataset) -> IntArray:
        """Answers without noise, shape (2,)."""
        return np.array([int(self.first(data)), 2 * int(self.second(data))], dtype=np.int64)

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw the noise, shape (n, 2)."""
        return two_sided_geometric(self.base, (n, 2), rng)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` pairs of answers; int64 of shape (n, 2)."""
        require_draws(n)
        return self.centre(data) + self.noise(n, rng)


@dataclass(frozen=True)
class IndependentAnswers(TwoAnswers):
    """`TwoAnswers` with noise of its own for each answer."""

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`."""
        law = lattice_law(self.centre(data), self.base)
        if not isinstance(law, ProductLaw):
            raise TypeError(f"expected a product of two distributions, got {law!r}")
        return law


# ------------------------------------------------------------------------------ levels on the way


@dataclass(frozen=True)
class RaiseStakes:
    """Asks for more after an answer that it likes, and tries again with less where it is refused.

    Parameters
    ----------
    rounds : int
        Queries that it asks.
    levels : int
        It begins with query 0 and goes on to the next after each answer 1, up to query ``levels - 1``; an answer 0
        leaves it where it is, and a refusal sends it back to query 0.
    """

    rounds: int
    levels: int
    adaptive: ClassVar[bool] = True
    coins: ClassVar[int] = 0

    def __call__(self, history: History) -> Queries:
        """Return the next query of each trial, shape (n,)."""
        query = np.zeros(history.n, dtype=np.int64)
        for answers in np.asarray(history.answers).T:
            query = np.where(answers == 1, np.minimum(query + 1, self.levels - 1), query)
            query = np.where(answers == REFUSED, 0, query)
        return query


@dataclass(frozen=True)
class FilteredResponses:
    """Randomised responses to one bit, asked for by an analyst who picks their levels, within a budget.

    Parameters
    ----------
    bit : RowBit
        What is asked.
    levels : sequence of float
        Query j is answered by a response of level ``levels[j]``; one more query says that the analyst stops for now,
        and is answered 0.
    epsilon : float
        The budget, which is the claim.
    analyst : Analyst
        Who asks, without coins.
    """

    bit: RowBit
    levels: Sequence[float]
    epsilon: float
    analyst: Analyst

    #: How the budget is kept; mutants have another.
    ledger: ClassVar[type[LocalOracle]] = LocalOracle

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        require(len(self.levels) > 0, "at least one level", self.levels)
        _ = self.algorithm

    @property
    def oracle(self) -> LocalOracle:
        """Who answers: a ledger for a single person."""
        return self.ledger([*map(response, self.levels), constant()], 1, self.epsilon)

    @property
    def algorithm(self) -> LocalAlgorithm:
        """The oracle and the analyst."""
        return LocalAlgorithm(self.oracle, self.analyst)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` transcripts; see `mechanisms.local_model.local_model.LocalAlgorithm`."""
        return self.algorithm([self.bit(data)], n, rng)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the transcripts."""
        return self.algorithm.law([self.bit(data)])


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SharedSeed(TwoAnswers):
    """Both answers begin with the same seed: one draw of noise for queries that move by 1 and by 2."""

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw once for both answers, shape (n, 2)."""
        return np.repeat(two_sided_geometric(self.base, (n, 1), rng), 2, axis=1)


@dataclass(frozen=True)
class PlausibleNumber(NumberOfOnes):
    """Post-processing that sees the data: where no answer was right it says so, with -1."""

    def published(self, ones: IntArray, bit: int) -> IntArray:
        """Replace a number that is as far from the truth as can be."""
        return np.where(ones == (0 if bit else self.k), -1, ones)


@dataclass(frozen=True)
class _MaximumForSum(LocalOracle):
    """The largest of the levels is charged."""

    def grants(self, spent: IntArray, cost: IntArray) -> BoolArray:
        """Whether the largest level so far is within the budget."""
        return np.maximum(spent, cost) <= self.budget

    def charged(self, spent: IntArray, cost: IntArray) -> IntArray:
        """Return the largest level so far."""
        return np.maximum(spent, cost)


@dataclass(frozen=True)
class _CheckedAtTheEnd(LocalOracle):
    """The levels are summed and compared with the budget when all answers have been given."""

    def grants(self, spent: IntArray, cost: IntArray) -> BoolArray:
        """Always."""
        del cost
        return np.ones(spent.shape, dtype=np.bool_)


@dataclass(frozen=True)
class _StopRefunds(LocalOracle):
    """A run of queries that is stopped early gets its budget back, though it has had answers."""

    def settled(self, spent: IntArray, query: IntArray, answer: IntArray) -> IntArray:
        """Empty the account where the analyst stops, which is the last query of the pool."""
        del answer
        return np.where(query == self.pool - 1, 0, spent)


@dataclass(frozen=True)
class MaximumForSum(FilteredResponses):
    """Only the largest level is charged."""

    ledger: ClassVar[type[LocalOracle]] = _MaximumForSum


@dataclass(frozen=True)
class CheckedAtTheEnd(FilteredResponses):
    """The budget is checked when all answers have been given."""

    ledger: ClassVar[type[LocalOracle]] = _CheckedAtTheEnd


@dataclass(frozen=True)
class StopRefunds(FilteredResponses):
    """Stopping gives the budget back."""

    ledger: ClassVar[type[LocalOracle]] = _StopRefunds


def _sum(base: FilteredResponses) -> float:
    return math.fsum(base.levels)


#: Mutants of answers with noise, of post-processing, and of the filter.
NOISE_MUTANTS: dict[str, Mutant[IndependentAnswers]] = tabulate_mutants(
    Mutant(
        "shared_seed",
        Twin(SharedSeed),
        unbounded,
        "violation",
        "one draw of noise for two answers that move by 1 and by 2: their difference is published exactly",
    ),
)
NUMBER_MUTANTS: dict[str, Mutant[NumberOfOnes]] = tabulate_mutants(
    Mutant(
        "raw_data_to_post_processing",
        Twin(PlausibleNumber),
        unbounded,
        "violation",
        "what publishes the number of ones sees the bit, and marks the number that is farthest from it",
    ),
)
FILTER_MUTANTS: dict[str, Mutant[FilteredResponses]] = tabulate_mutants(
    Mutant(
        "maximum_for_sum",
        Twin(MaximumForSum),
        _sum,
        "violation",
        "only the largest level is charged: the sum of the levels, for an analyst who asks for each once",
    ),
    Mutant(
        "budget_checked_at_the_end",
        Twin(CheckedAtTheEnd),
        None,
        "violation",
        "everything is answered: the largest sum of levels along a path of the analyst",
    ),
    Mutant(
        "early_stop_refunds",
        Twin(StopRefunds),
        None,
        "violation",
        "stopping empties the account: the budget, as many times as the analyst stops and once more",
    ),
)
