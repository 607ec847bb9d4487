"""Document 004, section 3.1: release by the distance to instability (Algorithm 2), and a test for each query."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.audits.accuracy import Exactly, Figure
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    conformity,
    entry,
    exact,
    inequality,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.exact import LaplaceCurve
from auditor.privacy.guarantees import ApproxDP, DeltaDP, PureDP
from experiments.common import ADD_REMOVE
from experiments.document_004_model_agnostic._questions import (
    far_lead,
    far_lead_pair,
    flip,
    flip_pair,
    lead,
    lead_pair,
    nobody,
    nobody_pair,
    tied_pair,
)
from mechanisms.base.mechanism import FloatArray
from mechanisms.base.queries import Count
from mechanisms.teacher_ensembles.distance_test import (
    INDEPENDENT,
    MUTANTS,
    DistanceTest,
    IndependentTests,
    required_distance,
    sufficient_distance,
)
from mechanisms.teacher_ensembles.online_leaks import needed_distance, release_scale
from mechanisms.teacher_ensembles.online_release import GivenDistances, QuestionList
from mechanisms.teacher_ensembles.vote_distance import MostFrequentGroup

#: m, T, delta and beta where distances of online release and of independent tests are compared.
_CUTOFF, _DELTA, _BETA = 10, 1e-6, 0.1
#: The plot of both.
_DISTANCES = "Distance that m queries need to be answered"


@dataclass(frozen=True)
class NonzeroOutputs:
    """How many outputs of a run are not the value 0.

    The queries of the accuracy claims have the value 0.
    """

    def __call__(self, outputs: Any) -> FloatArray:
        """Numbers for n outputs, of shape (n,) or (n, m)."""
        array = np.asarray(outputs)
        return np.asarray((array.reshape(len(array), -1) != 0).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class ZeroAtDistance:
    """A question whose value is 0 and whose distance is the dataset."""

    def __call__(self, data: Any) -> tuple[int, float]:
        """Return 0 and the distance."""
        return 0, float(data)


@entry(
    "004/a_stab",
    title="Release by distance to instability",
    source=Source("004", "Algorithm 2, Definition 3.1, Theorems 3.2 and 3.5, Lemmas 3.3 and 3.4"),
)
def distance_test() -> Iterator[Draft]:
    """The claim, (eps, delta), and what is true, (eps, delta/2); eps alone where neighbours have one value.

    First pair: the same value at distances 4 and 3, at most ln(1/delta)/eps, so that {value} has a loss of exactly eps.
    Second pair: the value changes, both distances are 0.
    """
    near, flips = lead_pair(), tied_pair(lead(), 26)
    test = DistanceTest(lead(), 1.0, 0.01)
    yield from reference(test, ApproxDP(1.0, 0.01), [near, flips], relation=ADD_REMOVE, follows=False)
    # Lemma 3.3.
    yield from reference(test, PureDP(1.0), near, case="same_value", relation=ADD_REMOVE)
    # A delta that draws can see.
    wide = DistanceTest(lead(), 1.0, 0.1)
    yield from reference(
        wide, ApproxDP(1.0, 0.1), [near, flips], case="large_delta", relation=ADD_REMOVE, follows=False
    )
    yield exact(wide, DeltaDP(0.05, 1.0), [near, flips], case="half_of_delta", relation=ADD_REMOVE)
    yield conformity(wide, flips, case="flip", relation=ADD_REMOVE)
    yield from _mutants()
    yield from _accuracy()


def _empty_pair() -> Pair:
    """No row at all, where the first value leads by a tie, and one row with the second."""
    return Pair(np.array([1.0]), np.array([]), "the only row has the second value, against none")


def _mutants() -> Iterator[Draft]:
    near, flips = lead_pair(), flip_pair()

    def claimed(name: str, base: DistanceTest, pairs: Pair | list[Pair], **options: Any) -> Draft:
        guarantee = ApproxDP(base.epsilon, base.delta)
        return broken(MUTANTS[name], base, pairs, guarantee=guarantee, relation=ADD_REMOVE, **options)

    # Twice 3 and 4, at thresholds of 6.9 and 9.2.
    yield claimed("distance_of_sensitivity_two", DistanceTest(lead(), 0.5, 0.01), near)
    yield claimed("distance_off_by_one", DistanceTest(flip(), 2.0, 0.05), flips)
    yield claimed("threshold_without_eps", DistanceTest(flip(), 0.25, 0.05), flips)
    # The threshold is 4.6, one scale of the noise above the distances.
    yield claimed("noise_inverted", DistanceTest(lead(), 0.5, 0.1), near)
    shown = DistanceTest(lead(), 1.0, 0.01)
    yield claimed("noisy_distance_released", shown, near, exact_level=LaplaceCurve(1.0).epsilon(0.01))
    tie = DistanceTest(flip(), 1.0, 0.05)
    yield claimed("value_on_the_bot_branch", tie, flips)
    either = MostFrequentGroup(tuple(Count(equals=v, relation="add_remove_one") for v in (0.0, 1.0)))
    yield claimed("data_dependent_threshold", DistanceTest(either, 1.0, 0.05), _empty_pair())
    uncapped = DistanceTest(lead(), 1.0, 0.1)
    yield claimed("distance_not_capped_at_zero", uncapped, [near, tied_pair(lead(), 26)])
    yield claimed("removals_only", DistanceTest(nobody(), 1.0, 0.05), nobody_pair())
    # The threshold is 3.5, between both distances.
    yield claimed("smooth_sensitivity_mix_up", DistanceTest(lead(), 1.0, math.exp(-3.5)), near)


def _accuracy() -> Iterator[Draft]:
    delta, beta = 0.01, 0.1
    for epsilon in (0.5, 2.0):
        test = DistanceTest(ZeroAtDistance(), epsilon, delta)
        distance = sufficient_distance(epsilon, delta, beta)
        yield accuracy(
            test,
            distance,
            NonzeroOutputs(),
            at_most=0,
            beta=beta,
            exact=1.0 - test.release_probability(distance),
            case=f"eps_{epsilon:g}".replace(".", "_"),
            note="exactly beta/2",
        )
    # Half of beta suffices to be sure of beta: at a distance shorter by ln 2/eps beta itself is attained.
    test = DistanceTest(ZeroAtDistance(), 1.0, delta)
    shorter = sufficient_distance(1.0, delta, 2 * beta)
    yield accuracy(
        test,
        shorter,
        NonzeroOutputs(),
        at_most=0,
        beta=beta,
        exact=1.0 - test.release_probability(shorter),
        case="at_the_distance_for_twice_beta",
        derived=True,
    )
    yield scaling(
        # Less what it is at beta = 1/2, ln(1/delta)/eps.
        lambda log: (
            required_distance(DistanceTest(ZeroAtDistance(), 0.5, delta), 0.5 * math.exp(-log)) + math.log(delta) / 0.5
        ),
        parameter="ln(1/(2 beta))",
        at=(1.0, 2.0, 4.0, 8.0, 16.0),
        exponent=1.0,
        others=(0.5, 2.0),
        both=True,
        measure=Exactly("distance that is required, beyond the threshold"),
        curve=lambda log: (log + math.log(2.0)) / 0.5,
        case="failure",
        note="its slope is 1/eps",
    )
    yield scaling(
        lambda epsilon: required_distance(DistanceTest(ZeroAtDistance(), epsilon, delta), beta),
        parameter="eps",
        at=(0.1, 0.3, 1.0, 3.0, 10.0),
        exponent=-1.0,
        others=(-0.5, -2.0),
        both=True,
        measure=Exactly("distance that is required"),
        curve=lambda epsilon: sufficient_distance(epsilon, delta, beta),
        case="epsilon",
    )


# ------------------------------------------------------------------------- one test for each query


@entry(
    "004/adv_comp_baseline",
    title="An independent stability test for each query",
    source=Source("004", "section 3.2, remark on advanced composition"),
)
def independent_tests() -> Iterator[Draft]:
    """What online release is compared with: m tests at eps/sqrt(8 m ln(2/delta)) and delta/(2m) each.

    Its distances grow as sqrt(m), those of online release as sqrt(T) ln m: less where T < m/16. Basic composition,
    eps/m, is more noise than is due from m = 8 ln(2/delta) on; for fewer queries it is less noise, and private too.
    """
    # Each test is at level 0.15, its threshold at 36.5.
    epsilon, delta, queries = 2.0, 0.05, 6
    tests = IndependentTests(QuestionList((far_lead(),), (0,) * queries), epsilon, delta)
    near, flips = far_lead_pair(), tied_pair(far_lead(), 28)
    yield from reference(tests, ApproxDP(epsilon, delta), [near, flips], relation=ADD_REMOVE, follows=False)
    # Each flip leaks delta/(4m).
    yield exact(tests, DeltaDP(delta / 4.0, epsilon), flips, case="quarter_of_delta", relation=ADD_REMOVE)
    yield conformity(tests, near, flips, relation=ADD_REMOVE)
    many = IndependentTests(QuestionList((flip(),), (0,) * 10), 1.0, 0.2)
    yield broken(INDEPENDENT["delta_not_divided"], many, flip_pair(), guarantee=ApproxDP(1.0, 0.2), relation=ADD_REMOVE)
    yield from _distances()


def _baseline(queries: float, epsilon: float = 1.0) -> IndependentTests:
    return IndependentTests(GivenDistances(round(queries)), epsilon, _DELTA)


def _online_distance(queries: float, cutoff: int) -> float:
    """Distance that online release needs at eps = 1."""
    return release_scale(1.0, _DELTA, cutoff) * needed_distance(round(queries), _DELTA, _BETA)


def _distances() -> Iterator[Draft]:
    # From m = 8 ln(2/delta) on eps/m is the smaller level: 42 at delta = 0.01.
    queries = 100
    tests = IndependentTests(GivenDistances(queries), 1.0, 0.01)
    data = np.column_stack([np.zeros(queries), np.full(queries, tests.sufficient(_BETA))])
    yield accuracy(
        tests,
        data,
        NonzeroOutputs(),
        at_most=0,
        beta=_BETA,
        exact=tests.failure(tests.sufficient(_BETA)),
        case="hundred_queries",
        derived=True,
    )
    found = INDEPENDENT["eps_over_m"]
    yield accuracy(
        found.build(tests),
        data,
        NonzeroOutputs(),
        at_most=0,
        beta=_BETA,
        case=found.name,
        expected="deviation",
        is_mutant=True,
        note="eps/m for each test: the distance that suffices at eps/sqrt(8 m ln(2/delta)) does not",
    )

    def logs(m: float) -> float:
        return math.log(2.0 * m / _DELTA) + math.log(m / (2.0 * _BETA))

    at = (10.0, 100.0, 1_000.0, 10_000.0, 100_000.0)
    yield scaling(
        lambda m: _baseline(m).needed(_BETA),
        parameter="m",
        at=at,
        exponent=0.5,
        others=(0.0, 1.0),
        both=True,
        log_factor=logs,
        measure=Exactly("distance that is needed"),
        curve=lambda m: _baseline(m).sufficient(_BETA),
        case="queries",
        figure=Figure(_DISTANCES, "a test for each query", "queries m", "distance"),
        derived=True,
    )
    yield scaling(
        lambda m: _online_distance(m, _CUTOFF),
        parameter="m",
        at=at,
        exponent=0.0,
        others=(0.5,),
        both=True,
        log_factor=logs,
        measure=Exactly("distance that is needed"),
        case="queries_online",
        figure=Figure(_DISTANCES, f"online release, T = {_CUTOFF}", "queries m", "distance"),
        note="the online release beside it",
        derived=True,
    )

    def below() -> list[Row]:
        """Online release at nine tenths of T = m/16, against the baseline."""
        return [(f"m = {m}", _online_distance(m, round(0.9 * m / 16)), _baseline(m).needed(_BETA)) for m in _CROSSINGS]

    def above() -> list[Row]:
        """The baseline, against online release at eleven tenths of T = m/16."""
        return [(f"m = {m}", _baseline(m).needed(_BETA), _online_distance(m, round(1.1 * m / 16))) for m in _CROSSINGS]

    for case, rows, statement in (
        ("below_the_crossing", below, "at T = 0.9 m/16 online release needs less distance"),
        ("above_the_crossing", above, "at T = 1.1 m/16 a test for each query needs less distance"),
    ):
        yield inequality(rows, statement=statement, relation="<", level="L4", case=case, derived=True)


#: Numbers of queries; 0.9/16 and 1.1/16 of them are whole.
_CROSSINGS = (160, 1_600, 16_000, 160_000)
