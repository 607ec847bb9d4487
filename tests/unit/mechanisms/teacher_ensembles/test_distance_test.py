"""Release by distance to instability: golden values, exact distributions against samples and by hand, and mutants.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.datasets import Pair
from auditor.privacy.exact import LaplaceCurve, PrivacyCurve, curve
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
from experiments.document_004_model_agnostic.distance_test import (
    NonzeroOutputs,
    ZeroAtDistance,
    _baseline,
    _empty_pair,
    _online_distance,
)
from mechanisms.base.queries import Count
from mechanisms.teacher_ensembles.distance_test import (
    INDEPENDENT,
    MUTANTS,
    DistanceTest,
    IndependentTests,
    laplace_tails,
    removal_distance,
    required_distance,
    sufficient_distance,
)
from mechanisms.teacher_ensembles.online_release import BOTTOM, GivenDistances, QuestionList
from mechanisms.teacher_ensembles.vote_distance import MostFrequentGroup, leading
from tests.statistics import p_value_of_outputs

#: Of one check.
ALARM = 1e-8


def pair_curve(mechanism: Any, pair: Pair) -> PrivacyCurve:
    return curve(mechanism.law(pair.x), mechanism.law(pair.y))


def tail(t: float) -> float:
    return 0.5 * math.exp(-t) if t >= 0 else 1 - 0.5 * math.exp(t)


# ---------------------------------------------------------------------------------- golden values


def test_the_pure_pair() -> None:
    # Catalogue 004, W: eps = 1, delta = 0.01, distances 3 and 4.
    test = DistanceTest(lead(), 1.0, 0.01)
    assert test.bar(()) == pytest.approx(4.60517, abs=1e-5)
    found = [test.release_probability(d) for d in (3.0, 4.0)]
    assert found == pytest.approx([0.1004277, 0.2729908], abs=5e-8)
    assert found[1] / found[0] == pytest.approx(math.e, rel=1e-12)
    assert pair_curve(test, lead_pair()).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)


def test_a_flip_leaks_half_of_delta() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        test = DistanceTest(flip(), epsilon, 0.1)
        found = pair_curve(test, flip_pair())
        for level in (0.0, epsilon, 50.0):
            assert found.delta(level) == pytest.approx(0.05, rel=1e-12)
        assert test.law(flip_pair().x).outcomes == (1, BOTTOM)
        assert test.law(flip_pair().y).outcomes == (0, BOTTOM)


@pytest.mark.parametrize(("epsilon", "delta", "exact"), [(1, 1e-3, 0.9978), (0.5, 1e-6, 0.499998), (2, 0.01, 1.9627)])
def test_the_exact_level_at_the_claimed_delta(epsilon: float, delta: float, exact: float) -> None:
    # Over all distances of one value; flips cost nothing at delta > delta/2.
    test = DistanceTest(ZeroAtDistance(), epsilon, delta)
    laws = [test.law(float(d)) for d in range(math.ceil(3 * test.bar(())) + 2)]
    found = max(curve(a, b).epsilon(delta) for a, b in itertools.pairwise(laws))
    assert found == pytest.approx(exact, abs=5e-5 if epsilon > 0.5 else 5e-7)


def test_the_curve_is_that_of_the_catalogue() -> None:
    # max{delta/2, HS(Bern(p_d), Bern(p_d+1))} at every level, both orders.
    for epsilon, delta in ((1.0, 0.1), (0.5, 0.01), (3.0, 0.2)):
        test = DistanceTest(ZeroAtDistance(), epsilon, delta)
        for d in range(12):
            p, q = (tail(-math.log(delta) - epsilon * x) for x in (d, d + 1))
            found = curve(test.law(float(d)), test.law(float(d + 1)))
            for level in (0.0, 0.3 * epsilon, 0.9 * epsilon, epsilon):
                sides = [a - math.exp(level) * b for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))]
                assert found.delta(level) == pytest.approx(max(0.0, *sides), abs=1e-12)
            assert found.delta(epsilon * (1 + 1e-12)) <= 1e-12


def test_the_failure_of_theorem_3_5_is_half_of_beta() -> None:
    for epsilon, delta, beta in ((0.5, 0.01, 0.1), (2.0, 1e-6, 0.01)):
        test = DistanceTest(ZeroAtDistance(), epsilon, delta)
        assert 1 - test.release_probability(sufficient_distance(epsilon, delta, beta)) == pytest.approx(beta / 2)
        expected = (math.log(1 / delta) + math.log(1 / (2 * beta))) / epsilon
        assert required_distance(test, beta) == pytest.approx(expected, rel=1e-9)


def test_tails_keep_their_digits() -> None:
    for t in (-60.0, -3.0, 0.0, 2.0, 60.0):
        above, below = laplace_tails(t, 1.5)
        assert above == pytest.approx(stats.laplace.sf(t / 1.5), rel=1e-12)
        assert below == pytest.approx(stats.laplace.cdf(t / 1.5), rel=1e-12)


# ----------------------------------------------------------------------------------------- samples


@pytest.mark.parametrize("name", ["reference", *(name for name in MUTANTS if name != "noisy_distance_released")])
def test_laws_against_samples(name: str) -> None:
    reference = DistanceTest(lead(), 0.5, 0.1)
    mechanism: Any = reference if name == "reference" else MUTANTS[name].build(reference)
    n, rng = 40_000, np.random.default_rng(3)
    data = lead_pair()
    # Two checks of each of 10: in all less than 1e-6.
    assert all(p_value_of_outputs(mechanism(x, n, rng), mechanism.law(x)) > ALARM for x in (data.x, data.y))


def test_the_noisy_distance_shown() -> None:
    mechanism = MUTANTS["noisy_distance_released"].build(DistanceTest(lead(), 0.5, 0.1))
    outputs = mechanism(lead_pair().y, 40_000, np.random.default_rng(4))
    assert outputs.shape == (40_000, 2)
    assert stats.kstest(outputs[:, 1], stats.laplace(3.0, 2.0).cdf).pvalue > ALARM
    passed = outputs[:, 1] > math.log(10.0) / 0.5
    assert np.array_equal(outputs[:, 0], np.where(passed, 0.0, -1.0))
    # Multiples of 2^-20: nothing of the doubles that depend on the distance is left.
    assert (np.fmod(outputs[:, 1], 2.0**-20) == 0).all()


def test_a_test_for_each_query_against_samples() -> None:
    tests = IndependentTests(QuestionList((lead(), flip()), (0, 1, 0)), 30.0, 0.2)
    n, rng = 100_000, np.random.default_rng(5)
    built: list[Any] = [tests, INDEPENDENT["eps_over_m"].build(tests), INDEPENDENT["delta_not_divided"].build(tests)]
    for mechanism in built:
        for data in (lead_pair().x, flip_pair().x):
            law = mechanism.law(data)
            assert len(law.outcomes) == 8
            assert p_value_of_outputs(mechanism(data, n, rng), law) > ALARM


# ----------------------------------------------------------------------------------------- mutants


def test_a_sensitivity_of_two_doubles_the_level() -> None:
    base = DistanceTest(lead(), 0.5, 0.01)
    mutant = MUTANTS["distance_of_sensitivity_two"]
    assert pair_curve(mutant.build(base), lead_pair()).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    assert mutant.true_level is not None
    assert mutant.true_level(base) == 1.0


@pytest.mark.parametrize(("epsilon", "violates"), [(0.5, False), (0.69, False), (0.7, True), (2.0, True)])
def test_the_distance_to_change_leaks_e_to_the_epsilon(epsilon: float, violates: bool) -> None:
    base = DistanceTest(flip(), epsilon, 0.05)
    found = pair_curve(MUTANTS["distance_off_by_one"].build(base), flip_pair())
    assert found.delta(epsilon) == pytest.approx(math.exp(epsilon) * 0.025, rel=1e-12)
    assert (found.delta(epsilon) > 0.05) == violates


def test_a_threshold_without_epsilon() -> None:
    delta = 0.05
    border = 1 - math.log(2) / math.log(1 / delta)
    for epsilon in (0.25, 0.99 * border, 1.01 * border):
        base = DistanceTest(flip(), epsilon, delta)
        found = pair_curve(MUTANTS["threshold_without_eps"].build(base), flip_pair())
        assert found.delta(epsilon) == pytest.approx(delta**epsilon / 2, rel=1e-12)
        assert (found.delta(epsilon) > delta) == (epsilon < border)


def test_inverted_noise() -> None:
    base = DistanceTest(lead(), 0.5, 0.1)
    mutant = MUTANTS["noise_inverted"]
    assert mutant.true_level is not None
    assert pair_curve(mutant.build(base), lead_pair()).epsilon(0.0) == pytest.approx(mutant.true_level(base))


def test_harmless_mutants_keep_the_claim() -> None:
    uncapped: Any = MUTANTS["distance_not_capped_at_zero"].build(DistanceTest(flip(), 1.0, 0.1))
    assert [uncapped.found(x)[1] for x in (flip_pair().x, flip_pair().y)] == [0.0, -1.0]
    # Every pair of small databases of two values, one row added: (eps, delta/2).
    either = MostFrequentGroup(tuple(Count(equals=v, relation="add_remove_one") for v in (0.0, 1.0)))
    uncapped = MUTANTS["distance_not_capped_at_zero"].build(DistanceTest(either, 1.0, 0.1))
    for a, b, row in itertools.product(range(6), range(6), (0.0, 1.0)):
        rows = [0.0] * a + [1.0] * b
        found = curve(uncapped.law(np.array(rows)), uncapped.law(np.array([*rows, row])))
        assert found.delta(1.0) <= 0.05 * (1 + 1e-12)
    # The noisy distance of the test that shows it: Laplace of scale 1/eps, one apart.
    assert LaplaceCurve(1.0).epsilon(0.01) <= 1.0


def test_a_threshold_that_grows_with_the_data() -> None:
    either = MostFrequentGroup(tuple(Count(equals=v, relation="add_remove_one") for v in (0.0, 1.0)))
    mutant: Any = MUTANTS["data_dependent_threshold"].build(DistanceTest(either, 0.7, 0.05))
    for rows in ([0.0, 1.0], [0.0, 1.0, 0.0, 1.0]):
        found = curve(mutant.law(np.array(rows)), mutant.law(np.array([*rows, 1.0])))
        assert found.delta(50.0) == pytest.approx(0.5 / len(rows), rel=1e-12)
    assert pair_curve(mutant, _empty_pair()).delta(50.0) == pytest.approx(0.5, rel=1e-12)


def test_removals_alone_do_not_find_what_an_addition_does() -> None:
    # By hand: the fewest rows to remove until the leader changes, if it can.
    for counts in itertools.product(range(5), repeat=3):
        leader = int(leading(counts))
        removed = [
            sum(np.subtract(counts, other))
            for other in itertools.product(*(range(c + 1) for c in counts))
            if int(leading(other)) != leader
        ]
        expected = min(removed) - 1 if removed else np.iinfo(np.int64).max - 1
        assert int(removal_distance(counts)) == expected, counts
    mutant: Any = MUTANTS["removals_only"].build(DistanceTest(nobody(), 1.0, 0.05))
    first, second = (mutant.law(x) for x in (nobody_pair().x, nobody_pair().y))
    assert dict(zip(first.outcomes, first.probabilities, strict=True)) == pytest.approx({1: 0.025, BOTTOM: 0.975})
    assert dict(zip(second.outcomes, second.probabilities, strict=True)) == {0: 1.0, BOTTOM: 0.0}
    assert curve(first, second).delta(20.0) == pytest.approx(1.0)


def test_the_value_on_the_other_branch_and_noise_of_smooth_sensitivity() -> None:
    assert (
        pair_curve(MUTANTS["value_on_the_bot_branch"].build(DistanceTest(flip(), 1, 0.05)), flip_pair()).delta(9) == 1
    )
    smooth = MUTANTS["smooth_sensitivity_mix_up"].build(DistanceTest(lead(), 1.0, math.exp(-3.5)))
    # Scales e^-3 and e^-4: half a row from the threshold is 10 and 27 of them.
    loss = math.log((1 - 0.5 * math.exp(-0.5 * math.e**4)) / (0.5 * math.exp(-0.5 * math.e**3)))
    other = math.log((1 - 0.5 * math.exp(-0.5 * math.e**3)) / (0.5 * math.exp(-0.5 * math.e**4)))
    assert pair_curve(smooth, lead_pair()).epsilon(0.0) == pytest.approx(max(loss, other), rel=1e-9)


# ------------------------------------------------------------------------- one test for each query


def test_independent_tests_by_their_formulas() -> None:
    tests = IndependentTests(QuestionList((flip(),), (0,) * 6), 2.0, 0.05)
    assert tests.epsilon_each == pytest.approx(2.0 / math.sqrt(48 * math.log(40)))
    assert tests.delta_each == 0.05 / 12
    assert pair_curve(tests, flip_pair()).delta(2.0) == pytest.approx(1 - (1 - 0.05 / 24) ** 6, rel=1e-9)
    undivided = INDEPENDENT["delta_not_divided"].build(tests)
    assert pair_curve(undivided, flip_pair()).delta(2.0) == pytest.approx(1 - (1 - 0.025) ** 6, rel=1e-9)
    # What each costs adds up: the loss of all in one direction.
    far = IndependentTests(QuestionList((far_lead(),), (0,) * 6), 2.0, 0.05)
    one = pair_curve(DistanceTest(far_lead(), far.epsilon_each, far.delta_each), far_lead_pair()).epsilon(0.0)
    assert pair_curve(far, far_lead_pair()).epsilon(0.0) == pytest.approx(6 * one, rel=1e-9)
    assert pair_curve(far, tied_pair(far_lead(), 28)).delta(2.0) <= 0.05 / 4


def test_the_distance_independent_tests_need() -> None:
    for m in (1, 10, 1000):
        tests = IndependentTests(GivenDistances(m), 1.0, 1e-6)
        needed = tests.needed(0.1)
        assert tests.failure(needed) == pytest.approx(0.1, rel=1e-6)
        assert tests.failure(tests.sufficient(0.1)) <= 0.1 * (1 + 1e-12)
        assert needed <= tests.sufficient(0.1) <= 1.05 * needed
        expected = (math.log(2e6 * m) + math.log(m / 0.2)) * math.sqrt(8 * m * math.log(2e6))
        assert tests.sufficient(0.1) == pytest.approx(expected, rel=1e-12)
    # The failure of three against all that can happen.
    tests = IndependentTests(GivenDistances(3), 40.0, 0.1)
    law = tests.law(np.column_stack([np.zeros(3), np.full(3, 2.0)]))
    assert 1 - law.probabilities[law.outcomes.index((0, 0, 0))] == pytest.approx(tests.failure(2.0), rel=1e-9)


def test_online_release_needs_less_from_m_over_16_on() -> None:
    for m in (160, 16_000):
        low, high = 1, m
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _online_distance(m, middle) < _baseline(m).needed(0.1) else (low, middle)
        assert low == pytest.approx(m / 16, rel=0.1)


def test_missed_answers_are_counted() -> None:
    assert NonzeroOutputs()(np.array([0, BOTTOM, 0])).tolist() == [0, 1, 0]
    assert NonzeroOutputs()(np.array([[0, BOTTOM], [0, 0]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DistanceTest(lead(), 0.0, 0.1), r"a finite epsilon > 0, got 0\.0"),
        (lambda: DistanceTest(lead(), 1.0, 1.0), r"a delta in \(0, 1\), got 1\.0"),
        (lambda: DistanceTest(lambda _: (-1, 0.0), 1.0, 0.1).law(()), "a value >= 0, got -1"),
        (
            lambda: DistanceTest(lead(), 1.0, 0.1)(lead_pair().x, 0, np.random.default_rng(0)),
            "a number of draws n >= 1",
        ),
        (lambda: required_distance(DistanceTest(ZeroAtDistance(), 1.0, 0.1), 0.6), r"a beta in \(0, 1/2\), got 0\.6"),
        (lambda: IndependentTests(GivenDistances(3), -1.0, 0.1), r"a finite epsilon > 0, got -1\.0"),
        (lambda: IndependentTests(GivenDistances(3), 1.0, 0.0), r"a delta in \(0, 1\), got 0\.0"),
        (lambda: IndependentTests(GivenDistances(17), 1.0, 0.1).law(np.zeros((17, 2))), "at most 16 queries, got 17"),
        (lambda: IndependentTests(GivenDistances(3), 1.0, 0.1).needed(0.5), r"a beta in \(0, 1/2\), got 0\.5"),
        (
            lambda: MUTANTS["removals_only"].build(DistanceTest(ZeroAtDistance(), 1.0, 0.1)),
            "a question that is a MostFrequentGroup",
        ),
    ],
)
def test_mistakes_are_shown(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_a_mutant_keeps_the_parameters() -> None:
    base = DistanceTest(lead(), 0.5, 0.01)
    for name in ("distance_off_by_one", "removals_only", "noise_inverted"):
        built: Any = MUTANTS[name].build(base)
        assert (built.epsilon, built.delta) == (0.5, 0.01)
    assert replace(base, epsilon=1.0).bar(()) == pytest.approx(math.log(100))
