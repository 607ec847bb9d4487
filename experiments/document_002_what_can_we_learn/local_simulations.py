"""Document 002, section 5.1.1: a statistical-query algorithm run by local users.

The algorithms are the harness's: conjunctions of bits of a person, whose queries are fixed in advance, and thresholds
by binary search, whose queries depend on answers. Privacy is about what one user sends, and about all messages;
accuracy about users from a distribution. Theorem 5.7 inherits the missing range of epsilon from Lemma 5.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.accuracy import Largest, Setting
from auditor.audits.accuracy.figure import Figure
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    accuracy,
    as_corrected,
    as_printed,
    conformity,
    entry,
    inequality,
    mutant,
    privacy,
    reference,
    smallest,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, person, rand, replaced
from experiments.document_000_sq_learning.learner import WrongPredictions, WrongThreshold
from experiments.document_002_what_can_we_learn._local import (
    BETA,
    E9,
    EPSILON,
    exponent_of,
    large_epsilon,
    setting,
    within,
)
from mechanisms.local_model.fresh_users import FreshDredging, FreshUsers, ReusedUsers, users_needed
from mechanisms.local_model.local_query import CountOfHigh
from mechanisms.local_model.local_simulation import (
    MUTANTS,
    BlocksWithReplacement,
    BudgetSplitOverQueries,
    FixedTranscript,
    KeptBits,
    LocalTranscript,
    MessagesOfOneUser,
    SameUsersFullBudget,
    ShuffledKeptBits,
    simulation_size,
)
from mechanisms.statistical_queries.query_algorithms import (
    AllBitsSet,
    ColumnBit,
    ConjunctionAlgorithm,
    ThresholdAlgorithm,
)
from mechanisms.statistical_queries.sq_oracles import LearnerFromOracle
from mechanisms.statistical_queries.statistical_queries import expectations

FloatArray = NDArray[np.float64]

_CLAIM = PureDP(EPSILON)

#: Three bits of a person, a person who lacks all of them, and the label: whether there was a visit to a doctor.
_BITS = (ColumnBit("idp", 1), ColumnBit("fmde", 1), ColumnBit("disea", 10))
_NOTHING = {"idp": 0, "fmde": 0, "disea": 0}
_VISITED = ColumnBit("mdvis", 1)
_THREE, _TWO = ConjunctionAlgorithm(_BITS, _VISITED, error=0.3), ConjunctionAlgorithm(_BITS[:2], _VISITED, error=0.3)
#: 20,190 persons in three blocks, and in two.
_THIRD, _HALF = 6730, 10_095

#: A position among the first, arbitrary.
_USER = 3
#: Lattice step of a message: coarse enough that messages to three queries are composed in no time.
_STEP = 2.0**-6
#: Of whole transcripts: a few values a message, among which an event is soon chosen.
_COARSE = 2.0**-2

_E1 = Erratum(
    "E1",
    "false",
    "Section 2.1 says that all algorithms of the paper are symmetric: they do not depend on the "
    "order of the elements of the database.",
    fails="a protocol that asks each query to a block of users of its own depends on who is in which block; so does "
    "the amplified parity learner",
    correction="if the order is drawn at random first, the output has the same distribution for every order of the "
    "database; "
    "replace-one privacy holds with and without",
)


def _counted_person_pair(index: int, name: str) -> Pair:
    """A person whom every query counts in one dataset and none in the other."""
    return replaced(name, person(**_NOTHING, mdvis=0), person(**_NOTHING, mdvis=1), index)


def _messages_of_users() -> list[Row]:
    """How often each person is asked."""
    protocol = FixedTranscript(_THREE, EPSILON, _THIRD, _STEP)
    times = np.bincount(np.concatenate([protocol.block(i) for i in range(3)]), minlength=len(rand()))
    return [("fewest messages of a user", float(times.min()), 1.0), ("most", float(times.max()), 1.0)]


@cache
def _four_persons() -> tuple[FloatArray, FloatArray]:
    """Four persons, two of whom visited a doctor and lack both bits, in one order and in the opposite one."""
    data = rand()
    lack = (data["idp"] == 0) & (data["fmde"] < 1)
    counted, others = data[lack & (data["mdvis"] > 0)], data[~lack & (data["mdvis"] == 0)]
    columns = ["idp", "fmde", "mdvis"]
    rows = np.concatenate([counted[columns].to_numpy(float)[:2], others[columns].to_numpy(float)[:2]])
    return rows, rows[::-1].copy()


#: Two queries, two users each, on a lattice so coarse that the distribution is soon listed.
_FEW = FixedTranscript(
    ConjunctionAlgorithm((ColumnBit(0, 1), ColumnBit(1, 1)), ColumnBit(2, 1), error=0.9), EPSILON, 2, 2.0**-4
)


def _orders() -> list[Row]:
    """Probability of each hypothesis on four persons in all their orders, against that in the first."""
    rows, hypotheses = _four_persons()[0], KeptBits(_FEW)
    first = hypotheses.law(rows).probabilities
    compared: list[Row] = []
    for order in permutations(range(4)):
        found = hypotheses.law(rows[list(order)]).probabilities
        compared += [(f"bits kept {code:02b}, order {order}", found[code], first[code]) for code in range(4)]
    return compared


@entry(
    "002/local_sq_simulation",
    title="A statistical-query algorithm run by local users",
    source=Source("002", "section 5.1.1, Theorem 5.7"),
    errata=[_E1, E9],
)
def simulation() -> Iterator[Draft]:
    """Three queries, a third of the persons each; the pair changes what one person's message is about, by all of 2b."""
    protocol = FixedTranscript(_THREE, EPSILON, _THIRD, _STEP)
    for case, index in (("last_of_a_block", 2 * _THIRD - 1), ("first_of_a_block", 2 * _THIRD)):
        sent = MessagesOfOneUser(protocol, index)
        pair = _counted_person_pair(index, f"person {index}, whom no query counts or all do")
        yield from reference(sent, _CLAIM, pair, case=case, relation=REPLACE)
    yield inequality(
        _messages_of_users,
        statement="every user sends one message",
        relation="==",
        case="one_message_a_user",
    )
    # All messages of the first six persons, who are enough for three queries, or of four for two.
    whole = FixedTranscript(_THREE, EPSILON, 2, _COARSE)
    at_border = _counted_person_pair(2, "person 2, whom no query counts or all do")
    fewer = {"smoke": 100_000, "standard": 2_000_000}
    yield from reference(whole, _CLAIM, at_border, case="transcript", relation=REPLACE, draws=fewer)
    # Whatever threshold is asked for, the person is below it, so the pair moves the message by all of 2b.
    search = ThresholdAlgorithm("fmde", _VISITED, rounds=2, low=0.0, width=1.0, tolerance=0.3)
    yield privacy(
        LocalTranscript(search, EPSILON, 2, _COARSE),
        _CLAIM,
        at_border,
        case="adaptive_transcript",
        relation=REPLACE,
        exact_level=EPSILON,
    )
    yield from _simulation_mutants()
    yield from _symmetry()
    yield from _simulation_accuracy()
    yield from large_epsilon(0.1, 10)
    yield from _simulation_exponents()


def _simulation_mutants() -> Iterator[Draft]:
    first = _counted_person_pair(_USER, "a person in the first block, whom no query counts or all do")
    # Of several messages of a person only what tells: how many are at least 1/2, the highest that a value sends.
    same = CountOfHigh(MessagesOfOneUser(SameUsersFullBudget(_THREE, EPSILON, _THIRD, _STEP), _USER), 0.5)
    name = "same_users_full_budget"
    yield mutant(name, same, _CLAIM, first, relation=REPLACE, note=MUTANTS[name].note)
    name, split = (
        "budget_split",
        CountOfHigh(MessagesOfOneUser(BudgetSplitOverQueries(_THREE, EPSILON, _THIRD, _STEP), _USER), 0.5),
    )
    yield mutant(name, split, _CLAIM, first, expected="consistent", relation=REPLACE, note=MUTANTS[name].note)
    chosen = BlocksWithReplacement(_TWO, EPSILON, _HALF, _STEP)
    twice = int(np.intersect1d(chosen.block(0), chosen.block(1))[0])
    in_both = _counted_person_pair(twice, "a person in both blocks, whom no query counts or both do")
    name, counts = "blocks_with_replacement", CountOfHigh(MessagesOfOneUser(chosen, twice), 0.5)
    yield mutant(name, counts, _CLAIM, in_both, relation=REPLACE, note=MUTANTS[name].note)


def _symmetry() -> Iterator[Draft]:
    yield as_printed(
        "E1",
        inequality(
            _orders,
            statement="what is learned from four users has the same distribution in whatever order they come",
            relation="==",
            case="in_the_order_of_the_data",
            expected="deviation",
        ),
    )
    shuffled, (rows, reverse) = ShuffledKeptBits(_FEW), _four_persons()
    # Four outputs are soon told apart, and are slow to draw.
    few = {"smoke": 40_000, "standard": 400_000}
    yield as_corrected("E1", conformity(shuffled, rows, reverse, case="in_random_order", draws=few))
    changed = rows.copy()
    changed[0, 2] = 0.0
    pair = Pair(rows, changed, "one of four persons, whom both queries count or none does")
    yield from reference(shuffled, _CLAIM, pair, case="in_random_order", relation=REPLACE, draws=few, follows=False)


#: Bits of the users whose answers are dredged: odd, and so many that the last query finds more than tau in the sample.
_DREDGED = 1501


def _simulation_accuracy() -> Iterator[Draft]:
    queries, tolerance = 10, 0.1
    each = users_needed(EPSILON, tolerance, BETA / queries)
    yield within("ten_answers", EPSILON, tolerance, each, queries=queries)
    yield smallest(
        lambda users: setting(users // queries, EPSILON, tolerance, queries=queries),
        parameter="users",
        claimed=queries * each,
        beta=BETA,
        low=queries * each / 32,
        case="smallest_sample",
        draws={"smoke": 20_000, "standard": 100_000},
        derived=True,
    )
    concept = ConjunctionAlgorithm(_BITS, AllBitsSet((_BITS[0], _BITS[2])), error=0.3)
    size = simulation_size(concept.queries, EPSILON, concept.tolerance, BETA) // concept.queries
    yield accuracy(
        LearnerFromOracle(concept, FreshUsers(EPSILON, size, 0.0, 1.0)),
        expectations(concept, rand()),
        WrongPredictions(concept),
        at_most=concept.error,
        beta=BETA,
        case="learned_conjunction",
        derived=True,
        parameters={"t": concept.queries, "tau": concept.tolerance, "users": size * concept.queries},
    )
    search = ThresholdAlgorithm("fmde", ColumnBit("fmde", 6.0), rounds=10, low=0.0, width=2.0**-7, tolerance=0.05)
    size = simulation_size(search.queries, EPSILON, search.tolerance, BETA) // search.queries
    yield accuracy(
        LearnerFromOracle(search, FreshUsers(EPSILON, size, 0.0, 1.0)),
        expectations(search, rand()),
        WrongThreshold(search),
        at_most=2 * search.tolerance,
        beta=BETA,
        case="learned_threshold",
        derived=True,
        parameters={"t": search.queries, "tau": search.tolerance, "users": size * search.queries},
        note="binary search: the simulation is interactive",
    )
    yield from _dredging()


def _dredging() -> Iterator[Draft]:
    """Queries that depend on answers, with users of their own and with the same users for all."""
    # At epsilon = 2.8 noise and sample matter alike; a smaller one would take longer to dredge.
    epsilon, tolerance = 2.8, 0.5
    size = users_needed(epsilon, tolerance, BETA / (_DREDGED + 1))
    truth = np.zeros(_DREDGED + 1)
    for case, made, expected, draws in (
        ("fresh_users_for_each_query", FreshDredging, "consistent", {"smoke": 1_000, "standard": 2_000}),
        # A draw is 449 users with 1501 bits each.
        ("adaptive_on_reused_data", ReusedUsers, "deviation", {"smoke": 100, "standard": 200}),
    ):
        yield accuracy(
            made(epsilon, size),
            truth[:-1],
            Largest(truth),
            at_most=tolerance,
            beta=BETA,
            case=case,
            expected=expected,
            is_mutant=expected == "deviation",
            derived=True,
            draws=draws,
            independence=False,
            parameters={"t": _DREDGED + 1, "epsilon": epsilon, "tau": tolerance, "users a query": size},
            note="1501 queries about single bits, and one that puts together what the answers found",
        )


def _users(curve: str) -> Figure:
    return Figure("Local users for t statistical queries", curve, "queries t", "smallest number of users")


def _simulation_exponents() -> Iterator[Draft]:
    tolerance = 0.1
    few = {"smoke": 30_000, "standard": 120_000}

    def in_blocks(queries: int, epsilon: float, tau: float) -> Callable[[int], Setting]:
        return lambda users: setting(max(1, users // queries), epsilon, tau, queries=queries)

    def total(queries: float, epsilon: float, tau: float) -> float:
        return simulation_size(round(queries), epsilon, tau, BETA, 1.0)

    yield exponent_of(
        "users_by_queries",
        "t",
        (4.0, 16.0, 64.0),
        1.0,
        (),
        lambda t: in_blocks(round(t), EPSILON, tolerance),
        lambda t: total(t, EPSILON, tolerance),
        log_factor=lambda t: math.log(4 * t / BETA),
        criterion=False,
        draws=few,
        figure=_users("a block of users for each query"),
    )
    yield exponent_of(
        "users_by_epsilon",
        "epsilon",
        (0.1, 0.2, 0.4),
        -2.0,
        (),
        lambda epsilon: in_blocks(4, epsilon, tolerance),
        lambda epsilon: total(4, epsilon, tolerance),
        criterion=False,
        draws=few,
    )
    yield exponent_of(
        "users_by_tolerance",
        "tau",
        (0.05, 0.1, 0.2),
        -2.0,
        (),
        lambda tau: in_blocks(4, EPSILON, tau),
        lambda tau: total(4, EPSILON, tau),
        criterion=False,
        draws=few,
    )
    # Queries about independent bits: over the same users their values are as independent as over others.
    yield exponent_of(
        "budget_split_users_by_queries",
        "t",
        (4.0, 16.0, 64.0),
        2.0,
        (1.0, 1.5),
        lambda t: lambda users: setting(users, EPSILON, tolerance, queries=round(t), share=t),
        lambda t: users_needed(EPSILON / t, tolerance, BETA / t),
        log_factor=lambda t: float(stats.norm.isf(BETA / (2 * t))) ** 2,
        draws={"smoke": 45_000, "standard": 180_000},
        figure=_users("all users for every query, epsilon / t each"),
        note="divided by z^2, z the two-sided normal quantile of beta / t, which is what ln(t/beta) stands for",
    )
