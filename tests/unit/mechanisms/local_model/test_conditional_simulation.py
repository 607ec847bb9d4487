"""Repeated calls on one entry simulated by statistical queries: distributions, distances, queries and mutants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mechanisms.local_model.conditional_mutants import MUTANTS, IndependentMarginals, OthersHistory, StepLevelInScaling
from mechanisms.local_model.conditional_simulation import (
    ConditionalSimulation,
    EntryCalls,
    code,
    in_turn,
    largest_odds,
    paths,
    step_under_all_signs,
)
from mechanisms.local_model.local_randomizers import LocalRandomizer, noisy_value
from mechanisms.local_model.rejection_simulation import (
    SignedErrorOracle,
    distance_bound,
    random_randomizer,
    response_to,
    total_variation,
)
from mechanisms.statistical_queries.sq_oracles import (
    ExactOracle,
    HighestAnswersOracle,
    LowestAnswersOracle,
    RandomErrorOracle,
)
from tests.statistics import p_value

FloatArray = NDArray[np.float64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

ENTRY = np.array([0.5, 0.3, 0.2])
ANY, OFTEN = (0, 1, 1), (0, 0, 1)
UP, DOWN = SignedErrorOracle((1.0, -1.0)), SignedErrorOracle((-1.0, 1.0))
#: The second call depends on the first answer.
ADAPTIVE = EntryCalls(response_to(0.4, ANY), (EntryCalls(response_to(0.6, ANY)), EntryCalls(response_to(0.6, OFTEN))))
BASE = ConditionalSimulation(ADAPTIVE, 0.6, UP, DOWN)


def by_hand(
    randomizers: list[LocalRandomizer], past: tuple[int, ...], beta: float, first: tuple[int, ...], second: float
) -> tuple[list[float], float]:
    """Distribution and expected rounds of a call by the printed formulas, on reference input 0, in exact fractions."""
    rows = [[[Fraction(x) for x in row] for row in one.matrix] for one in randomizers]
    mass, e = [Fraction(float(x)) for x in ENTRY], Fraction(math.exp(sum(one.epsilon for one in randomizers)))
    relative = Fraction(beta) / (3 * len(rows))
    tau = relative / e**2
    r2 = [math.prod((rows[j][u][a] for j, a in enumerate(past)), start=Fraction(1)) for u in range(3)]

    def estimate(r: list[Fraction], sign: Fraction) -> Fraction:
        g = [(x - r[0]) / (r[0] * (e - 1 / e)) for x in r]
        assert max(map(abs, g)) <= 1
        v = sum((m * x for m, x in zip(mass, g, strict=True)), start=tau * sign)
        return v * r[0] * (e - 1 / e) + r[0]

    accepted = []
    for w, sign in enumerate(first):
        r1 = [rows[len(past)][u][w] * r2[u] for u in range(3)]
        p = estimate(r1, Fraction(sign)) / estimate(r2, Fraction(second))
        q = rows[len(past)][0][w]
        accepted.append(q * (p / (q * (1 + 3 * relative) * e)))
    return [float(x / sum(accepted)) for x in accepted], float(1 / sum(accepted))


# -------------------------------------------------------------------------------------- distributions


def test_codes_are_digits() -> None:
    assert [code(path, 3) for path in paths(3, 2)] == list(range(9))
    assert list(paths(2, 2)) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert list(paths(2, 0)) == [()]


def test_the_target_is_the_law_of_calls_on_one_entry() -> None:
    rng, n = np.random.default_rng(1), 60_000
    entries = rng.choice(3, n, p=ENTRY)
    answers = np.zeros((n, 2), dtype=np.int64)
    answers[:, 0] = ADAPTIVE.randomizer.draw(entries, rng)
    for a in (0, 1):
        some = answers[:, 0] == a
        answers[some, 1] = ADAPTIVE.after[a].randomizer.draw(entries[some], rng)
    assert p_value(np.bincount(answers @ [1, 2], minlength=4), ADAPTIVE.target(ENTRY)) > ALARM
    assert ADAPTIVE.epsilon == pytest.approx(1.0)
    assert ADAPTIVE.depth == 2
    # The distribution of the next answer given the past ones is that of the pairs.
    joint = ADAPTIVE.target(ENTRY)
    for a in (0, 1):
        np.testing.assert_allclose(BASE.step_target((a,), ENTRY), joint[[a, a + 2]] / joint[[a, a + 2]].sum())


@pytest.mark.parametrize("past", [(), (0,), (1,), (0, 1), (1, 1)])
@pytest.mark.parametrize("second", [-1.0, 0.0, 1.0])
def test_a_call_follows_the_printed_formulas(past: tuple[int, ...], second: float) -> None:
    randomizers = [response_to(0.5, ANY), response_to(0.3, OFTEN), response_to(0.4, ANY)]
    for first in itertools.product((-1, 1), repeat=2):
        signs = SignedErrorOracle(tuple(map(float, first)))
        one = ConditionalSimulation(in_turn(*randomizers), 0.6, signs, SignedErrorOracle((second, second)))
        law, rounds = by_hand(randomizers, past, 0.6, first, second)
        np.testing.assert_allclose(one.step_law(past, ENTRY), law, rtol=1e-12)
        assert one.expected_rounds(past, ENTRY) == pytest.approx(rounds, rel=1e-12)


def test_with_exact_oracles_answers_are_those_of_the_local_algorithm() -> None:
    exact = replace(BASE, numerator=ExactOracle(), denominator=ExactOracle())
    np.testing.assert_allclose(exact.output_law(ENTRY), ADAPTIVE.target(ENTRY), rtol=1e-12)
    two = replace(exact, entries=2)
    one = ADAPTIVE.target(ENTRY)
    np.testing.assert_allclose(two.output_law(ENTRY), [one[c % 4] * one[c // 4] for c in range(16)], rtol=1e-12)
    np.testing.assert_allclose(two.output_law(ENTRY), two.target(ENTRY), rtol=1e-12)


NOISY = in_turn(noisy_value(0.7, 3), noisy_value(0.5, 3))
SAME = in_turn(response_to(1.0, ANY), response_to(1.0, ANY))
TWO = ConditionalSimulation(SAME, 0.5, UP, DOWN, entries=2)
MECHANISMS: dict[str, ConditionalSimulation] = {
    "adaptive": BASE,
    "cached": replace(BASE, cached=True),
    "another_reference": replace(BASE, reference=2),
    "three_outputs": ConditionalSimulation(NOISY, 0.9, SignedErrorOracle((1.0, -1.0, 1.0)), LowestAnswersOracle()),
    "two_entries": TWO,
    **{name: mutant.build(TWO) for name, mutant in MUTANTS.items()},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_the_law(name: str) -> None:
    simulation, n = MECHANISMS[name], 30_000
    outputs = simulation(ENTRY, n, np.random.default_rng(2))
    assert outputs.shape == (n,)
    law = simulation.law(ENTRY)
    assert p_value(np.bincount(outputs, minlength=len(law.outcomes)), law.probabilities) > ALARM


@pytest.mark.parametrize("cached", [False, True])
def test_queries_are_counted(cached: bool) -> None:
    n, asked = 20_000, {"first": 0, "second": 0}

    class Counted:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, truth: FloatArray, tolerance: object, rng: object) -> FloatArray:
            asked[self.name] += len(truth)
            assert tolerance == BASE.tolerance
            return np.array(truth)

    one = replace(BASE, numerator=Counted("first"), denominator=Counted("second"), cached=cached)
    answers, queries = one.step((), ENTRY, n, np.random.default_rng(3))
    assert answers.shape == queries.shape == (n,)
    rounds = queries - 1 if cached else queries // 2
    # Rounds are drawn in blocks, of which not all are taken.
    assert rounds.sum() <= asked["first"]
    expected = replace(BASE, numerator=ExactOracle(), denominator=ExactOracle()).expected_rounds((), ENTRY)
    p, most = 1 / expected, 8
    geometric = np.asarray(p * (1 - p) ** np.arange(most), dtype=np.float64)
    geometric[-1] = (1 - p) ** (most - 1)
    assert p_value(np.bincount(np.minimum(rounds, most) - 1, minlength=most), geometric) > ALARM
    _, total = one.run(ENTRY, 500, np.random.default_rng(4))
    assert total.min() == 4  # two calls, of one round at least


def test_errors_that_are_right_on_average_need_not_cancel() -> None:
    # A ratio of estimates is not linear in the denominator's error: with a random one there is no simple distribution.
    with pytest.raises(ValueError, match="draws nothing, got RandomErrorOracle"):
        replace(BASE, denominator=RandomErrorOracle()).law(ENTRY)
    # In the numerator it is.
    outputs = replace(BASE, numerator=RandomErrorOracle(), denominator=ExactOracle())(
        ENTRY, 30_000, np.random.default_rng(5)
    )
    assert p_value(np.bincount(outputs, minlength=4), ADAPTIVE.target(ENTRY)) > ALARM


# ----------------------------------------------------------------------- distances and queries


def test_random_chains_under_all_patterns_of_errors() -> None:
    rng, odds = np.random.default_rng(6), 0.0
    for _ in range(150):
        inputs, outputs, depth = int(rng.integers(2, 5)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
        levels = rng.dirichlet(np.ones(depth)) * rng.uniform(0.1, 3.0) + 1e-3
        calls = in_turn(*(random_randomizer(level, inputs, outputs, rng) for level in levels.tolist()))
        one = ConditionalSimulation(calls, float(rng.uniform(0.05, 0.99)), ExactOracle(), ExactOracle())
        entry, relative, growth = rng.dirichlet(np.full(inputs, 0.3)), one.relative, math.exp(one.epsilon)
        for k in range(depth):
            for past in paths(outputs, k):
                found, cached = (step_under_all_signs(each, past, entry) for each in (one, replace(one, cached=True)))
                assert len(found.rounds) == 4**outputs
                assert found.distances.max() <= relative <= one.beta / depth
                assert cached.distances.max() <= distance_bound(relative) * (1 + 1e-12)
                assert 2 * found.rounds.max() <= 2 * growth * (1 + 3 * relative) / (1 - 2 * relative)
                for queries in one.queries(past):
                    assert np.abs(queries).max() <= 1
                # Either factor is safe, by the derived bound.
                largest = found.odds.max() * (1 + 3 * relative) / (1 + relative)
                bound = largest_odds(float(levels[:k].sum()), one.epsilon, relative)
                assert found.odds.max() <= largest <= bound * (1 + 1e-12)
                assert bound < 1
                odds = max(odds, largest / bound)
    assert odds > 0.95


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("beta", [1e-6, 0.3])
def test_the_distance_of_a_call_comes_as_close_to_its_bound_as_can_be(epsilon: float, beta: float) -> None:
    # Nearly all of the level is spent on an answer that the entry hardly gives, and the last call is nearly a fair
    # coin: both estimates are off by u = tau' (1 - e^(-2 epsilon)), in opposite directions for the two outputs.
    calls, there = in_turn(response_to(epsilon, ANY), response_to(1e-6, ANY)), np.array([0.0, 1.0, 0.0])
    one = ConditionalSimulation(calls, beta, ExactOracle(), ExactOracle())
    furthest = step_under_all_signs(one, (0,), there).distances.max()
    u = one.relative * -math.expm1(-2 * epsilon)
    assert furthest == pytest.approx(u / (1 + u * u), rel=1e-5)
    cached = step_under_all_signs(replace(one, cached=True), (0,), there).distances.max()
    assert cached == pytest.approx(furthest / 2, rel=0.02)


def test_the_odds_with_claim_5_9s_factor_are_below_one_on_a_grid() -> None:
    for epsilon in np.linspace(0.01, 8, 60):
        for spent in np.linspace(0, epsilon, 40):
            for relative in (1e-6, 0.01, 0.1, 0.2, 1 / 3):
                assert largest_odds(float(spent), float(epsilon), relative) < 1


def test_the_table_of_patterns_is_that_of_the_laws() -> None:
    found = step_under_all_signs(BASE, (1,), ENTRY)
    patterns = list(itertools.product((-1.0, 1.0), repeat=2))
    for i, (first, second) in enumerate(itertools.product(patterns, patterns)):
        one = replace(BASE, numerator=SignedErrorOracle(first), denominator=SignedErrorOracle(second))
        distance = total_variation(one.step_law((1,), ENTRY), one.step_target((1,), ENTRY))
        assert found.distances[i] == pytest.approx(distance, rel=1e-12)
        assert found.rounds[i] == pytest.approx(one.expected_rounds((1,), ENTRY), rel=1e-12)
    cached = step_under_all_signs(replace(BASE, cached=True), (1,), ENTRY)
    for i, (first, sign) in enumerate(itertools.product(patterns, (-1.0, 1.0))):
        one = replace(
            BASE, numerator=SignedErrorOracle(first), denominator=SignedErrorOracle((sign, sign)), cached=True
        )
        distance = total_variation(one.step_law((1,), ENTRY), one.step_target((1,), ENTRY))
        assert cached.distances[i] == pytest.approx(distance, rel=1e-12)


def test_the_catalogues_parameters() -> None:
    # epsilon = 0.4 + 0.6, t = 2, beta = 0.6: distance at most tau' = 0.1 <= beta/t = 0.3, at most 2 e rounds.
    assert BASE.relative == pytest.approx(0.1)
    for reference, past in itertools.product(range(3), ((), (0,), (1,))):
        found = step_under_all_signs(replace(BASE, reference=reference), past, ENTRY)
        assert found.distances.max() <= 0.1
        assert found.rounds.max() <= 5.44


# ------------------------------------------------------------------------------------ mutants


def correlation(law: FloatArray) -> float:
    """Of the first entry's two answers, bits 0 and 1 of the code."""
    first, second = np.arange(law.size) & 1, np.arange(law.size) >> 1 & 1
    return float(law @ (first * second) - (law @ first) * (law @ second))


def test_answers_about_one_entry_are_correlated_and_without_the_history_not() -> None:
    exact = replace(TWO, numerator=ExactOracle(), denominator=ExactOracle())
    share = 0.5
    wanted = share * (1 - share) * math.tanh(0.5) ** 2  # variance of the bit, times the responses' contrasts
    assert correlation(exact.target(ENTRY)) == pytest.approx(wanted, rel=1e-12)
    assert correlation(exact.output_law(ENTRY)) == pytest.approx(wanted, rel=1e-12)
    # The other entry's history tells nothing about this one.
    for cls in (IndependentMarginals, OthersHistory):
        mutant = cls(SAME, 0.5, ExactOracle(), ExactOracle(), entries=2)
        assert correlation(mutant.output_law(ENTRY)) == pytest.approx(0.0, abs=1e-12)


def test_the_scale_of_one_call_takes_queries_out_of_range() -> None:
    mutant = StepLevelInScaling(
        in_turn(response_to(1.6, ANY), response_to(0.4, ANY)), 0.5, ExactOracle(), ExactOracle()
    )
    (first, _), (_, _) = mutant.queries((1,)), mutant.queries((0,))
    # After an answer 1, which is rare on the reference: (e^2 - 1) / (e^0.4 - e^-0.4).
    assert first.max() == pytest.approx((math.exp(2.0) - 1) / (2 * math.sinh(0.4)), rel=1e-12)
    assert mutant.distance(ENTRY) > 0.08


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda: replace(BASE, beta=1.0), "1.0"),
        (lambda: replace(BASE, entries=0), "got 0"),
        (lambda: replace(BASE, reference=-1), "got -1"),
        (lambda: EntryCalls(LocalRandomizer(((0.5, 0.5),), 0.0)), "got 0.0"),
        (lambda: EntryCalls(LocalRandomizer(((1.0, 0.0),), 1.0)), "0.0"),
        (lambda: EntryCalls(response_to(1.0, ANY), (EntryCalls(response_to(1.0, ANY)),)), "got 1"),
        (lambda: EntryCalls(response_to(1.0, ANY), (ADAPTIVE, EntryCalls(response_to(1.0, ANY)))), "one depth"),
        (lambda: in_turn(response_to(1.0, ANY), response_to(1.0, (0, 1))), "one shape"),
        (lambda: BASE.law([0.5, 0.5]), "3 probabilities"),
        (lambda: BASE(ENTRY, 0, np.random.default_rng(0)), "got 0"),
        (lambda: replace(BASE, numerator=HighestAnswersOracle())(ENTRY, -1, np.random.default_rng(0)), "got -1"),
    ],
)
def test_bad_input_is_shown(build: object, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        build()  # type: ignore[operator]
