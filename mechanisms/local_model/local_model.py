"""The local model: an oracle through which algorithms call local randomizers, with a ledger for each person.

An algorithm sees the data only through an oracle: the call (i, R) returns a fresh draw of the randomizer R on person
i's record. It is epsilon-local if, whatever the answers, the levels of all calls on one person sum to at most epsilon.
`LocalOracle` enforces that: it keeps a ledger for each person and refuses a call *before* anything is drawn. The levels
may be chosen in view of past answers, so what holds the sum down is a privacy filter: along every path of answers the
likelihood ratio is at most the exponential of the sum of the levels that were granted.

Source: document 002, section 5, Definitions 5.2 and 5.3; catalogue 002, local_model_oracle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from auditor.privacy.exact import FiniteLaw
from auditor.targets.interactive import SKIP, Analyst, BoolArray, Branching, Queries, pool_indices
from auditor.targets.transcripts import ExactDialogue
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    require,
    require_draws,
    tabulate_mutants,
)
from mechanisms.local_model.local_randomizers import LocalRandomizer as LocalRandomizer

#: What the ledger counts in: charges are rounded up and budgets down to multiples of 2^-40, so that sums of integers
#: say what was spent. Levels that are multiples of it (halves, quarters, ...) lose nothing.
_UNIT = 2.0**-40
#: Largest budget of a ledger, so that sums of charges stay far inside int64; arbitrary beyond that.
_MOST = 2.0**20

#: Answers that are no outputs of a randomizer: nothing was asked; the ledger refuses; the call failed.
SILENT, REFUSED, FAILED = -1, -2, -3


# -------------------------------------------------------------------------------------- oracle


@dataclass(frozen=True)
class LocalOracle:
    """The oracle LR with a ledger for each person, which refuses a call before anything is drawn.

    Parameters
    ----------
    randomizers : sequence of LocalRandomizer
        What may be called, with levels that were verified when they were made.
    people : int
        Number of records.
    epsilon : float
        Budget of each person, at most 2^20.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    An interactive mechanism; query ``i * len(randomizers) + j`` calls randomizer j on person i. Answers are int64: the
    outputs 0, 1, ..., -1 where nothing was asked and -2 where the call is refused, after which others may be granted.
    Charges are rounded up, and the budget down, to multiples of 2^-40: sums of integers do not drift. Mutants replace
    one decision each.
    """

    randomizers: Sequence[LocalRandomizer]
    people: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "randomizers", tuple(self.randomizers))
        require(len(self.randomizers) > 0, "at least one randomizer", self.randomizers)
        require(self.people >= 1, "at least one person", self.people)
        require(0.0 < self.epsilon <= _MOST, f"a budget in (0, {_MOST:g}]", self.epsilon)

    @property
    def pool(self) -> int:
        """Number of queries: ``person * len(randomizers) + randomizer``."""
        return self.people * len(self.randomizers)

    @property
    def cells(self) -> int:
        """Accounts of the ledger."""
        return self.people

    @cached_property
    def budget(self) -> int:
        """The budget in units, rounded down."""
        return math.floor(self.epsilon / _UNIT)

    @cached_property
    def costs(self) -> IntArray:
        """Charge of each randomizer in units, rounded up; shape (randomizers,)."""
        # More than the budget is never granted, and stays inside int64.
        return np.array([math.ceil(min(one.epsilon, 2 * _MOST) / _UNIT) for one in self.randomizers], dtype=np.int64)

    def values(self, data: Dataset) -> IntArray:
        """Return what the randomizer of each person is run on, shape (people,)."""
        require(len(data) == self.people, f"records of {self.people} people", len(data))
        values = np.asarray(data)
        require(values.dtype.kind in "biu" and values.ndim == 1, "records that are integers", data)
        inputs = min(len(one.matrix) for one in self.randomizers)
        require(bool(np.all((values >= 0) & (values < inputs))), f"inputs from 0 to {inputs - 1}", values)
        return values.astype(np.int64)

    def cell(self, query: IntArray) -> IntArray:
        """Account that a query is charged to, shape (n,)."""
        return query // len(self.randomizers)

    def grants(self, spent: IntArray, cost: IntArray) -> BoolArray:
        """Whether a call is answered, given what its account has spent; both of shape (n,), in units."""
        return spent + cost <= self.budget

    def charged(self, spent: IntArray, cost: IntArray) -> IntArray:
        """Account after a call that was granted, shape (n,)."""
        return spent + cost

    def settled(self, spent: IntArray, query: IntArray, answer: IntArray) -> IntArray:
        """Account after the answer, shape (n,)."""
        del query, answer  # only mutants look at them
        return spent

    def seen(self, answer: IntArray) -> IntArray:
        """What the algorithm is told of a draw, shape (n,)."""
        return answer

    @property
    def remembers(self) -> bool:
        """Whether the answer to a repeated query is the first one, for free."""
        return False

    def start(self, data: Dataset, n: int, rng: np.random.Generator) -> OracleSession:
        """Begin `n` runs; see `auditor.targets.interactive.Interactive`."""
        require_draws(n)
        return OracleSession(self, self.values(data), n, rng)

    def branches(self, data: Dataset, rounds: int) -> OracleBranches:
        """Begin the tree of answers; see `auditor.targets.interactive.Branching`."""
        del rounds
        return OracleBranches(self, self.values(data))


class _Runs:
    """Ledgers of trials or branches side by side."""

    def __init__(self, oracle: LocalOracle, rows: int) -> None:
        self._oracle = oracle
        self._spent = np.zeros((rows, oracle.cells), dtype=np.int64)
        self._memory = np.full((rows, oracle.pool if oracle.remembers else 0), SILENT, dtype=np.int64)

    def granted(self, query: IntArray) -> tuple[BoolArray, IntArray]:
        """Which queries are to be drawn, and the answers to all others; charges for the former."""
        oracle, rows = self._oracle, np.arange(query.size)
        asked = query != SKIP
        one = np.where(asked, query, 0)
        cell, cost = oracle.cell(one), oracle.costs[one % len(oracle.randomizers)]
        answer = np.where(asked, REFUSED, SILENT)
        if oracle.remembers:
            known = asked & (self._memory[rows, one] != SILENT)
            answer = np.where(known, self._memory[rows, one], answer)
            asked = asked & ~known
        spent = self._spent[rows, cell]
        drawn = asked & oracle.grants(spent, cost)
        self._spent[rows, cell] = np.where(drawn, oracle.charged(spent, cost), spent)
        return drawn, answer

    def settle(self, query: IntArray, drawn: BoolArray, answer: IntArray) -> IntArray:
        """Answers as the algorithm sees them, after the ledger has taken note of the draws."""
        oracle, rows = self._oracle, np.flatnonzero(drawn)
        of, cell = query[drawn], oracle.cell(query[drawn])
        self._spent[rows, cell] = oracle.settled(self._spent[rows, cell], of, answer[drawn])
        if oracle.remembers:
            self._memory[rows, of] = answer[drawn]
        return np.where(drawn, oracle.seen(answer), answer)

    def follow(self, parents: IntArray) -> None:
        """Continue the given rows."""
        self._spent, self._memory = self._spent[parents], self._memory[parents]


class OracleSession(_Runs):
    """Runs of an oracle side by side; see `auditor.targets.interactive.Session`."""

    silence: ClassVar[int] = SILENT

    def __init__(self, oracle: LocalOracle, values: IntArray, n: int, rng: np.random.Generator) -> None:
        super().__init__(oracle, n)
        self._values, self._n, self._rng = values, n, rng

    def ask(self, queries: Queries) -> IntArray:
        """Return shape (n,); nothing is drawn where nothing is granted."""
        query = pool_indices(queries, self._n, self._oracle.pool)
        drawn, answer = self.granted(query)
        which, person = query % len(self._oracle.randomizers), query // len(self._oracle.randomizers)
        for r, randomizer in enumerate(self._oracle.randomizers):
            mine = drawn & (which == r)
            if mine.any():
                answer[mine] = randomizer.draw(self._values[person[mine]], self._rng)
        return self.settle(query, drawn, answer)


class OracleBranches(_Runs):
    """Tree of an oracle's answers; see `auditor.targets.interactive.Branches`."""

    silence: ClassVar[int] = SILENT

    def __init__(self, oracle: LocalOracle, values: IntArray) -> None:
        super().__init__(oracle, 1)
        self._values, self._mass = values, np.ones(1)

    def ask(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """One branch for each output of a randomizer that is granted, one for the others."""
        query = pool_indices(queries, self._mass.size, self._oracle.pool)
        drawn, answer = self.granted(query)
        outputs = np.array([one.rows.shape[1] for one in self._oracle.randomizers])
        parents = np.repeat(np.arange(query.size), np.where(drawn, outputs[query % outputs.size], 1))
        first = np.searchsorted(parents, np.arange(query.size))
        query, drawn = query[parents], drawn[parents]
        answer = np.where(drawn, np.arange(parents.size) - first[parents], answer[parents])
        self.follow(parents)
        mass = np.ones(parents.size)
        for k in np.flatnonzero(drawn):
            randomizer = self._oracle.randomizers[query[k] % outputs.size]
            mass[k] = randomizer.matrix[self._values[query[k] // outputs.size]][answer[k]]
        self._mass = self._mass[parents] * mass
        return parents, self.settle(query, drawn, answer)

    def mass(self) -> FloatArray:
        """Probability of each branch's answers, shape (branches,)."""
        return self._mass


# ---------------------------------------------------------------------------------- algorithms


class BudgetedMechanism(Branching, Protocol):
    """An interactive mechanism with known distributions that says what each person may lose."""

    @property
    def epsilon(self) -> float:
        """Budget of a person."""
        ...


@dataclass(frozen=True)
class LocalAlgorithm:
    """An algorithm that asks an oracle: the transcript of its calls and their answers, whose distribution is exact.

    Parameters
    ----------
    oracle : LocalOracle, or `mechanisms.local_model.noninteractive.NoninteractiveOracle`
        Who answers.
    analyst : Analyst
        Who asks, without coins; see `auditor.targets.interactive`.
    """

    oracle: BudgetedMechanism
    analyst: Analyst

    def __post_init__(self) -> None:
        ExactDialogue(self.oracle, self.analyst)

    @property
    def epsilon(self) -> float:
        """Budget of a person."""
        return self.oracle.epsilon

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` transcripts: int64 of shape (n, rounds), or (n, 2 rounds) for an adaptive analyst."""
        return np.asarray(ExactDialogue(self.oracle, self.analyst)(data, n, rng), dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the transcripts."""
        return ExactDialogue(self.oracle, self.analyst).law(data)


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class BudgetPerRandomizer(LocalOracle):
    """Every pair of a person and a randomizer has a budget of its own."""

    @property
    def cells(self) -> int:
        """One for each query."""
        return self.pool

    def cell(self, query: IntArray) -> IntArray:
        """Account of the query itself."""
        return query


@dataclass(frozen=True)
class CheckedAfterSampling(LocalOracle):
    """The draw is made and released, then charged; only a later call finds that too much has been spent."""

    def grants(self, spent: IntArray, cost: IntArray) -> BoolArray:
        """Whether the calls before this one were within the budget."""
        del cost
        return spent <= self.budget


@dataclass(frozen=True)
class RefundOnException(LocalOracle):
    """An answer other than 0 makes the caller's decoder raise; the call counts as failed and is not charged."""

    def settled(self, spent: IntArray, query: IntArray, answer: IntArray) -> IntArray:
        """Take the charge back where the decoder fails."""
        return spent - np.where(answer > 0, self.costs[query % len(self.randomizers)], 0)

    def seen(self, answer: IntArray) -> IntArray:
        """-3 in the place of an answer that could not be decoded."""
        return np.where(answer > 0, FAILED, answer)


@dataclass(frozen=True)
class RandomizerSeesMore(LocalOracle):
    """The randomizer of every person is run on the largest value of all."""

    def values(self, data: Dataset) -> IntArray:
        """Return the maximum for everyone, shape (people,)."""
        own = super().values(data)
        return np.full(own.shape, own.max())


@dataclass(frozen=True)
class AnswersCached(LocalOracle):
    """A call that was made before is answered as it was then, and not charged: what is known already costs nothing."""

    @property
    def remembers(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class _BuildWithOracle:
    """Puts another oracle in the place of an algorithm's."""

    oracle: type[LocalOracle]

    def __call__(self, base: LocalAlgorithm) -> LocalAlgorithm:
        """Return the algorithm with the mutant of its oracle."""
        found = _oracle(base)
        return LocalAlgorithm(self.oracle(found.randomizers, found.people, found.epsilon), base.analyst)


def _oracle(base: LocalAlgorithm) -> LocalOracle:
    if not isinstance(base.oracle, LocalOracle):
        raise TypeError(f"expected an algorithm with a LocalOracle, got {base.oracle!r}")
    return base.oracle


def _each_randomizer(base: LocalAlgorithm) -> float:
    oracle = _oracle(base)
    calls = oracle.budget // np.maximum(oracle.costs, 1)
    return float(sum(int(k) * one.epsilon for k, one in zip(calls, oracle.randomizers, strict=True)))


def _one_too_many(base: LocalAlgorithm) -> float:
    return float(base.epsilon + max(one.epsilon for one in _oracle(base).randomizers))


def _each_person(base: LocalAlgorithm) -> float:
    return _oracle(base).people * base.epsilon


MUTANTS: dict[str, Mutant[LocalAlgorithm]] = tabulate_mutants(
    Mutant(
        "budget_per_randomizer",
        _BuildWithOracle(BudgetPerRandomizer),
        _each_randomizer,
        "violation",
        "each randomizer may spend the budget on the same person: the sum over randomizers of what each can spend",
    ),
    Mutant(
        "checked_after_sampling",
        _BuildWithOracle(CheckedAfterSampling),
        _one_too_many,
        "violation",
        "one call too many: epsilon plus the largest level, if the calls before it can spend epsilon exactly",
    ),
    Mutant(
        "refund_on_exception",
        _BuildWithOracle(RefundOnException),
        None,
        "violation",
        "an answer that raises is not charged: as many times the level of a call as the algorithm has rounds",
    ),
    Mutant(
        "randomizer_sees_more",
        _BuildWithOracle(RandomizerSeesMore),
        _each_person,
        "violation",
        "all messages depend on one record, which is charged for one of them: people times epsilon",
    ),
    Mutant(
        "answers_cached",
        _BuildWithOracle(AnswersCached),
        TimesEpsilon(1.0),
        "benign",
        "the answer to a repeated call is the old one: nothing new is said, and nothing is charged",
    ),
)
