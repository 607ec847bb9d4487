"""Document 003, section 4.1: reconstruction from the answers to all subset counts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from auditor.audits.accuracy import Absolute, Constant
from auditor.audits.adversaries.exhaustive import Bits, Exhaustive, enumerate_bits
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, adversary, entry, inequality
from auditor.privacy.guarantees import PureDP
from mechanisms.additive_noise.column_counts import LaplaceCounts
from mechanisms.lower_bounds.noisy_counts import UniformCounts
from mechanisms.lower_bounds.subset_answers import (
    ClosedMidpointAnswers,
    ConsistentReconstruction,
    ExactAnswers,
    FarthestConsistent,
    MidpointAnswers,
    NonStrictConsistency,
    StopsAtFirstFailure,
    SubsetAnswers,
    TrueQueries,
    UniformAnswers,
    partner,
    worst_distance,
)

#: How many wrong bits, as an error: outputs are numbers of them.
_ALL_WRONG = "a candidate that is wrong everywhere"
_WRONG = Absolute(0.0)
#: No reconstruction may fail (beta = 0), so that one failure refutes; so many draws show a rate of a tenth.
_FEW, _MORE = {"smoke": 32, "standard": 200}, {"smoke": 200, "standard": 5_000}


def _ones_first(people: int) -> Bits:
    """Half of the people, the first, have a 1: midpoint answers then have x' before x in lexicographic order."""
    return (np.arange(people) < people // 2).astype(np.int8)


@entry(
    "003/dinur_nissim_exhaustive",
    title="Reconstruction from all subset counts",
    source=Source("003", "Theorem 4.1.2, Claim 4.1.4, Corollary 4.1.3"),
)
def exhaustive_reconstruction() -> Iterator[Draft]:
    """Twelve and twenty people, all 4,096 or 1,048,576 subset counts, answers off by less than E.

    The bound 4 E is right up to 2 for half-integers E; for all E the exact worst distance is 2 (ceil(2 E) - 1), which
    answers half-way between two x attain. Every candidate is tried, by a search over prefixes that leaves out only what
    is inconsistent; with 20 people there are 2^20 candidates, and a reconstruction takes hundredths of a second.
    Corollary 4.1.3 speaks of n/100 wrong bits, so of none for n = 20.
    """
    yield from _distances()
    yield from _mutants()
    yield from _games()


def _distances() -> Iterator[Draft]:
    models: list[tuple[str, int, SubsetAnswers]] = [
        ("exact", 12, ExactAnswers(1.0)),
        ("uniform", 12, UniformAnswers(1.5)),
        ("uniform", 20, UniformAnswers(2.0)),
        ("midpoint", 12, MidpointAnswers(1.5)),
    ]
    for name, people, answers in models:
        yield accuracy(
            ConsistentReconstruction(answers),
            _ones_first(people),
            _WRONG,
            at_most=4 * answers.error,
            beta=0.0,
            strict=True,
            case=f"{name}_answers_of_{people}",
            draws=_FEW if people > 12 else _MORE,
            # Answers that are not random are the same in every draw; and a draw of 2^20 answers is slow.
            independence=name == "uniform" and people == 12,
            controls={_ALL_WRONG: Constant(people)},
            parameters={"people": people, "E": answers.error},
        )
    yield accuracy(
        ConsistentReconstruction(UniformAnswers(0.99 * 20 / 400)),
        _ones_first(20),
        _WRONG,
        at_most=20 / 100,
        beta=0.0,
        case="blatant_below_n_over_400",
        controls={_ALL_WRONG: Constant(20)},
        draws=_FEW,
        independence=False,
        note="E = 0.99 n / 400: at most n / 100 wrong bits, so none",
        parameters={"people": 20},
    )
    yield accuracy(
        FarthestConsistent(UniformAnswers(1.5)),
        _ones_first(12),
        _WRONG,
        at_most=6.0,
        beta=0.0,
        strict=True,
        case="every_consistent_candidate",
        controls={_ALL_WRONG: Constant(12)},
        draws=_MORE,
        note="the farthest of all candidates that are consistent",
        parameters={"people": 12, "E": 3.0},
    )
    yield inequality(
        _errors_below,
        statement="the number of wrong bits is below 4 E, on exact and on midpoint answers",
        relation="<",
        level="L4",
        case="answers_without_noise",
    )
    yield inequality(
        _attained_errors,
        statement="on midpoint answers 2 (ceil(2 E) - 1) bits are wrong, 4 E - 2 for half-integers",
        relation="==",
        level="L4",
        case="midpoint_attains",
        derived=True,
    )
    yield inequality(
        lambda: _differing_bits(ConsistentReconstruction),
        statement="from the same answers the same is reconstructed, whatever the data: wrong bits by which it differs",
        relation="==",
        level="L4",
        case="answers_alone",
    )


def _mutants() -> Iterator[Draft]:
    for error in (1.0, 1.5):
        yield accuracy(
            NonStrictConsistency(ClosedMidpointAnswers(error)),
            _ones_first(12),
            _WRONG,
            at_most=4 * error,
            beta=0.0,
            strict=True,
            case="non_strict_consistency" + ("" if error == 1.0 else "__three_halves"),
            expected="deviation",
            is_mutant=True,
            independence=False,
            draws=_MORE,
            note="answers and candidates off by at most E, not by less: a distance of 4 E is reached",
            parameters={"people": 12, "E": error},
        )
    yield accuracy(
        StopsAtFirstFailure(UniformAnswers(1.0)),
        np.ones(12, dtype=np.int8),
        _WRONG,
        at_most=4.0,
        beta=0.0,
        strict=True,
        case="stops_at_first_failing_query",
        expected="deviation",
        is_mutant=True,
        draws=_MORE,
        note="the search ends with the first query that some candidate fails",
        parameters={"people": 12, "E": 1.0},
    )
    yield inequality(
        lambda: _differing_bits(TrueQueries),
        statement="from the same answers the same is reconstructed, whatever the data: wrong bits by which it differs",
        relation="==",
        level="L4",
        case="queries_from_the_true_x",
        expected="deviation",
        is_mutant=True,
        note="it stays below 4 E, as the proof does, and is no attack: it looks at the data",
    )


def _games() -> Iterator[Draft]:
    """The attack as an adversary: who answers within E is not private; Laplace noise for 2^n queries is."""
    for people, error in ((10, 1.0), (16, 2.0)):
        yield adversary(
            UniformCounts(error),
            PureDP(1.0),
            Exhaustive(people),
            case=f"answers_within_E_of_{people}",
            expected="violation",
            exact_level=math.inf,
            draws={"smoke": 32, "standard": 64},
            independence=people == 10,
            note="sold as 1-DP",
        )
    yield adversary(
        LaplaceCounts(1 << 10, 1.0),
        PureDP(1.0),
        Exhaustive(10),
        case="laplace_noise_for_all_queries",
        exact_level=1.0,
        note="noise of a scale of 1,024 on counts of at most 10",
    )


def _errors_below() -> list[Row]:
    """Of the first consistent candidate; with 12 people of the farthest one too."""
    found: list[Row] = []
    for people, kinds, errors in (
        (12, (ConsistentReconstruction, FarthestConsistent), (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)),
        (20, (ConsistentReconstruction,), (1.0, 2.0, 4.0)),
    ):
        for kind in kinds:
            for error in errors:
                for name, answers in (("exact", ExactAnswers(error)), ("midpoint", MidpointAnswers(error))):
                    wrong = _count_wrong_bits(kind(answers), people)
                    found.append((f"{kind.__name__}, {people} people, {name} answers, E = {error:g}", wrong, 4 * error))
    return found


def _attained_errors() -> list[Row]:
    found: list[Row] = []
    for people, errors in ((12, (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)), (20, (1.0, 2.0, 4.0, 5.0))):
        for error in errors:
            wrong = _count_wrong_bits(ConsistentReconstruction(MidpointAnswers(error)), people)
            found.append((f"{people} people, E = {error:g}", wrong, float(worst_distance(error))))
    return found


def _count_wrong_bits(reconstruction: ConsistentReconstruction, people: int) -> float:
    """Wrong bits where answers are not random."""
    return float(reconstruction(_ones_first(people), 1, np.random.default_rng(0))[0])


def _differing_bits(attack: type[ConsistentReconstruction]) -> list[Row]:
    """By how many bits what is reconstructed of x differs from what is of its partner, whose answers are the same."""
    found: list[Row] = []
    for error in (1.0, 1.5, 2.0):
        built = attack(MidpointAnswers(error))
        flips = worst_distance(error) // 2
        for number in (0b000000111111, 0b101010101010, 0b011100011100):
            x = enumerate_bits(12)[number]
            other, rng = partner(x, flips), np.random.default_rng(0)
            answers = built.answers.draw(x, 1, rng)
            differ = (built.guessed(answers, x) != built.guessed(answers, other)).sum()
            found.append((f"x = {number:012b}, E = {error:g}", float(differ), 0.0))
    return found
