"""Document 002, section 5: statistical-query oracles, and real queries asked as boolean ones.

The definition allows any answer within the tolerance, so what an algorithm is said to learn it has to learn under every
oracle. Conjunctions are the harness's example (the document only mentions that they can be learned so). For them the
worst oracle is known: a bit that is wrongly kept is all that can go wrong, and an oracle that answers too low keeps all
that any valid oracle could. The rows of the claims go through the others as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.accuracy import Absolute
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, entry, inequality
from experiments.common import rand
from experiments.document_000_sq_learning.learner import WrongPredictions, WrongThreshold
from mechanisms.local_model.local_query import ScaledColumn
from mechanisms.statistical_queries.boolean_queries import MUTANTS as DIGITS
from mechanisms.statistical_queries.boolean_queries import BooleanQueries
from mechanisms.statistical_queries.query_algorithms import (
    AllBitsSet,
    ColumnBit,
    ConjunctionAlgorithm,
    ThresholdAlgorithm,
)
from mechanisms.statistical_queries.sq_oracles import (
    MUTANTS,
    ExactOracle,
    HighestAnswersOracle,
    LearnerFromOracle,
    LowestAnswersOracle,
    OracleAnswers,
    RandomErrorOracle,
    RoundingOracle,
    SampleMeanOracle,
    StatisticalQueryOracle,
    TargetBlindOracle,
    sample_size,
    valid_oracles,
)
from mechanisms.statistical_queries.statistical_queries import expectations

FloatArray = NDArray[np.float64]

# ------------------------------------------------------------------------------- conjunctions

#: Eight bits of a person. Where a column is a number, the cut is near its middle; arbitrary otherwise.
_CUTS = {"idp": 1, "lncoins": 1, "lpi": 1, "fmde": 1, "physlm": 0.5, "disea": 10, "hlthg": 1, "hlthf": 1}
_BITS = tuple(ColumnBit(column, cut) for column, cut in _CUTS.items())
_NOT = tuple(ColumnBit(column, high=float(np.nextafter(cut, -math.inf))) for column, cut in _CUTS.items())
_IDP, _COINS, _, _, _, _DISEA, _, _ = _BITS
_ALPHA, _BETA = 0.1, 0.05
#: Concepts, of which the learner knows the bits and their negations only.
_CONCEPTS = {
    "two literals": AllBitsSet((_DISEA, _NOT[7])),
    "three literals": AllBitsSet((_NOT[0], _COINS, _NOT[4])),
    "no literal": AllBitsSet(()),
}


@cache
def _learner(concept: str) -> ConjunctionAlgorithm:
    """Sixteen queries, one a literal, of tolerance alpha / (4 d) = alpha / 32."""
    return ConjunctionAlgorithm(_BITS + _NOT, _CONCEPTS[concept], error=_ALPHA)


@cache
def _means(concept: str) -> FloatArray:
    return expectations(_learner(concept), rand())


def _oracles(concept: str) -> dict[str, StatisticalQueryOracle]:
    """All of them; the lazy one says what would be so if no example were positive."""
    return {**valid_oracles(_learner(concept).tolerance), "lazy": TargetBlindOracle(0.0, strict=False)}


def _within_tolerance() -> list[Row]:
    """Largest error of any answer, under each oracle."""
    rows, rng = [], np.random.default_rng(0)
    for concept in _CONCEPTS:
        tau, truth = _learner(concept).tolerance, _means(concept)
        for name, oracle in _oracles(concept).items():
            found = np.abs(OracleAnswers(oracle, tau)(truth, 1_000, rng) - truth).max()
            rows.append((f"{name}, {concept}", float(found), tau))
    return rows


def _errors_of_conjunctions() -> list[Row]:
    """Error of what is learned under each oracle; of a random one, the largest of 200 runs."""
    rows, rng = [], np.random.default_rng(0)
    for concept in _CONCEPTS:
        algorithm = _learner(concept)
        for name, oracle in _oracles(concept).items():
            learned = LearnerFromOracle(algorithm, oracle)(_means(concept), 200, rng)
            rows.append((f"{name}, {concept}", float(WrongPredictions(algorithm)(learned).max()), _ALPHA))
    return rows


def _errors_of_thresholds() -> list[Row]:
    """The same for a binary search, whose queries depend on the answers before them."""
    rows, rng = [], np.random.default_rng(0)
    for target in (1.0, 6.0, 7.5):
        search = ThresholdAlgorithm(
            "fmde", ColumnBit("fmde", target), rounds=10, low=0.0, width=2.0**-7, tolerance=0.02
        )
        means = expectations(search, rand())
        for name, oracle in valid_oracles(search.tolerance).items():
            learned = LearnerFromOracle(search, oracle)(means, 50, rng)
            worst = float(WrongThreshold(search)(learned).max())
            rows.append((f"{name}, threshold {target:g}", worst, 2 * search.tolerance))
    return rows


@entry(
    "002/sq_oracle",
    title="Statistical-query oracles, valid ones of every kind",
    source=Source("002", "Definitions 5.4, 5.5 and 5.12"),
)
def oracles() -> Iterator[Draft]:
    """Persons are drawn uniformly from the data; concepts are conjunctions of bits of theirs and of negations."""
    yield inequality(
        _within_tolerance,
        statement="every answer of every oracle is within the tolerance",
        level="L4",
        case="answers_within_the_tolerance",
    )
    yield inequality(
        _errors_of_conjunctions,
        statement="conjunctions: under every oracle, 2d queries of tolerance alpha/(4d) give an error of at most alpha",
        level="L4",
        case="conjunctions_under_every_oracle",
        derived=True,
    )
    yield inequality(
        _errors_of_thresholds,
        statement="thresholds, by binary search: under every oracle, an error of at most 2 tau",
        level="L4",
        case="thresholds_under_every_oracle",
        derived=True,
    )
    name = "three literals"
    algorithm, means = _learner(name), _means(name)
    yield accuracy(
        LearnerFromOracle(algorithm, RandomErrorOracle()),
        means,
        WrongPredictions(algorithm),
        at_most=_ALPHA,
        beta=0.0,
        case="conjunction_under_a_random_oracle",
        derived=True,
        parameters={"d": len(_BITS), "alpha": _ALPHA, "tau": algorithm.tolerance},
    )
    # A query of expectation 0.46 is nearly as far from its expectation as one of 1/2 can be.
    ill, tau = float(np.mean(rand()["disea"] >= 12)), 0.02
    size = sample_size(0.5, tau, _BETA)
    low, high = math.ceil((ill - tau) * size), math.floor((ill + tau) * size)
    yield accuracy(
        OracleAnswers(SampleMeanOracle(size), tau),
        ill,
        Absolute(ill),
        at_most=tau,
        beta=_BETA,
        exact=float(stats.binom.cdf(low - 1, size, ill) + stats.binom.sf(high, size, ill)),
        case="sample_based_oracle",
        derived=True,
        parameters={"b": 0.5, "tau": tau, "n": size},
        note="the mean over 2 b^2 ln(2/beta) / tau^2 fresh examples",
    )
    each = sample_size(0.5, algorithm.tolerance, _BETA / algorithm.queries)
    yield accuracy(
        LearnerFromOracle(algorithm, SampleMeanOracle(each)),
        means,
        WrongPredictions(algorithm),
        at_most=_ALPHA,
        beta=_BETA,
        case="conjunction_under_a_sample_based_oracle",
        derived=True,
        parameters={"d": len(_BITS), "alpha": _ALPHA, "tau": algorithm.tolerance, "n of a query": each},
    )
    broken = MUTANTS["learner_needs_the_exact_oracle"]
    tested: dict[str, StatisticalQueryOracle] = {"above": HighestAnswersOracle(), "random": RandomErrorOracle()}
    for case, oracle in tested.items():
        yield accuracy(
            broken.build(LearnerFromOracle(algorithm, oracle)),
            means,
            WrongPredictions(algorithm),
            at_most=_ALPHA,
            beta=0.0,
            case=f"{broken.name}__{case}",
            expected="deviation",
            is_mutant=True,
            note=broken.note,
        )


# ---------------------------------------------------------------------------- boolean queries

#: The catalogue's example.
_B, _TAU = 3.0, 0.05


@cache
def _values() -> dict[str, FloatArray]:
    """Values of real queries in [-b, b] under distributions on them: all at an end, persons' values, and between."""
    visits = ScaledColumn("mdvis", 0.0, 20.0, _B)(rand())
    chronic = ScaledColumn("disea", 0.0, 60.0, _B)(rand())
    return {
        "all at b": np.full(1, _B),
        "all at -b": np.full(1, -_B),
        "half at each end": np.array([-_B, _B]),
        "just below b": np.full(1, np.nextafter(_B, 0.0)),
        "visits of persons": visits,
        "chronic diseases of persons": chronic,
    }


def _errors_of_digits() -> list[Row]:
    rows, rng = [], np.random.default_rng(0)
    for name, oracle in {**valid_oracles(), "lazy": TargetBlindOracle(0.0)}.items():
        found = BooleanQueries(_B, _TAU, oracle)
        for kind, values in _values().items():
            worst = float(np.abs(found(values, 100, rng) - values.mean()).max())
            rows.append((f"{name}, {kind}", worst, _TAU))
    return rows


def _example() -> list[Row]:
    """What the catalogue says of b = 3, tau = 0.05: eight queries; 0.0483 is 0.025 (1 - 2^-8) + 6 / 2^8."""
    worst = BooleanQueries(_B, _TAU, LowestAnswersOracle())
    attained = _B - float(worst(np.full(1, _B), 1, np.random.default_rng(0))[0])
    return [
        ("number of queries", float(worst.queries), 8.0),
        ("error where all are at b and answers too low", attained, 0.025 * (1 - 2.0**-8) + 6 / 2.0**8),
        ("largest error that the derivation allows", worst.largest_error, attained),
    ]


def _number_of_queries() -> list[Row]:
    rows = []
    for bound in (0.5, 1.0, 3.0, 100.0):
        for tau in (0.3, 0.05, 1e-3, 1e-6):
            asked = BooleanQueries(bound, tau, ExactOracle()).queries
            rows.append((f"b = {bound:g}, tau = {tau:g}", float(asked), math.log2(bound / tau) + 3))
    return rows


@entry(
    "002/sq_real_to_boolean",
    title="A real-valued statistical query from boolean ones",
    source=Source("002", "remark after Definition 5.4"),
)
def boolean() -> Iterator[Draft]:
    """The number of visits to a doctor, and others, by their binary digits."""
    yield inequality(
        _errors_of_digits,
        statement="under every oracle for boolean queries the estimate is within tau",
        level="L4",
        case="digits_under_every_oracle",
        derived=True,
        parameters={"b": _B, "tau": _TAU},
    )
    yield inequality(
        _example,
        statement="b = 3, tau = 0.05: eight queries, and the largest error is attained",
        relation="==",
        level="L4",
        case="eight_queries",
        derived=True,
    )
    yield inequality(
        _number_of_queries,
        statement="ceil(log2(4b/tau)) < log2(b/tau) + 3 boolean queries are asked",
        relation="<",
        level="L4",
        case="number_of_queries",
        derived=True,
    )
    visits = _values()["visits of persons"]
    digits = BooleanQueries(_B, _TAU, ExactOracle())
    size = sample_size(1.0, digits.each, _BETA / digits.queries)
    # Each of the eight answers is within its tolerance but for beta / 8, and the estimate then within tau.
    yield accuracy(
        BooleanQueries(_B, _TAU, SampleMeanOracle(size, -1.0, 1.0)),
        visits,
        Absolute(float(visits.mean())),
        at_most=_TAU,
        beta=_BETA,
        case="sample_based_oracle",
        derived=True,
        parameters={"b": _B, "tau": _TAU, "n of a query": size},
    )
    yield accuracy(
        BooleanQueries(_B, _TAU, RandomErrorOracle()),
        visits,
        Absolute(float(visits.mean())),
        at_most=_TAU,
        beta=0.0,
        case="random_oracle",
        derived=True,
        parameters={"b": _B, "tau": _TAU},
    )
    worst = BooleanQueries(_B, _TAU, LowestAnswersOracle())
    for name, found in DIGITS.items():
        yield accuracy(
            found.build(worst),
            np.full(1, _B),
            Absolute(_B),
            at_most=_TAU,
            beta=0.0,
            case=name,
            expected="deviation",
            is_mutant=True,
            note=f"{found.note}; g = b for everybody, answers too low by the tolerance",
        )
    yield accuracy(
        DIGITS["tolerance_tau_per_bit"].build(BooleanQueries(_B, _TAU, RoundingOracle())),
        visits,
        Absolute(float(visits.mean())),
        at_most=_TAU,
        beta=0.0,
        case="tolerance_tau_per_bit__visits",
        expected="deviation",
        is_mutant=True,
        note=f"{DIGITS['tolerance_tau_per_bit'].note}; the visits of persons, answers on the coarsest grid",
    )
