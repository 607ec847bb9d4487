"""The choice among the candidates of A* by the generic learner: its distribution by two routes, its mutants' levels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.privacy.exact import FiniteLaw
from experiments.document_002_what_can_we_learn._amplified_choices import fixed, parity_rows, whole
from mechanisms.learning.agnostic_learner import AgnosticLearner
from mechanisms.learning.agnostic_mutants import MUTANTS as OF_THE_LEARNER
from mechanisms.learning.amplified_choices import (
    MUTANTS,
    BoostedByLearner,
    CandidateHypotheses,
    ExponentsOf,
    records_of,
)
from mechanisms.learning.amplified_parity import ParityErrors, astar
from mechanisms.learning.amplified_selection import ExponentialSelection
from mechanisms.learning.boosting import NULL, BoostedLearner, TrainTestSplit
from mechanisms.learning.boosting_parts import ChosenHypothesis, errors_of
from tests.claims.declared import claim_of, stated_on_pair
from tests.statistics import level_of, p_value_of_outputs
from tests.unit.mechanisms.learning.test_boosting import ALARM

ENTRY = "002/parity_amplified_expmech"
ROWS = np.array([(0, 1, 1), (1, 1, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1)], dtype=np.uint8)


def same(learner: AgnosticLearner) -> AgnosticLearner:
    """What makes no mutant."""
    return learner


def test_a_candidate_is_wrong_as_often_as_the_parity() -> None:
    codes = (NULL, 0, 1, 2, 3, 3)
    learner = AgnosticLearner(CandidateHypotheses(codes, 2), 1.0)
    found = learner.mistakes(records_of(ROWS, 2))
    assert found.tolist() == errors_of(codes, ParityErrors(2), ROWS).tolist()
    # By hand: (0, 1) is the code 2, (1, 1) is 3, (1, 0) is 1 and (0, 0) is 0.
    right = learner.hypotheses.labels(records_of(ROWS, 2)[:, 0])
    assert right[:, 3].tolist() == [True, False, True, False, False]
    assert not right[:, 0].any()
    assert learner.hypotheses.parameters().tolist() == [1, 1, 1, 1, 2, 2]


def test_the_generic_learner_is_the_exponential_selection() -> None:
    """A sum over all lists of candidates, against the integral of `ExponentialSelection.winners`."""
    split = TrainTestSplit(3, 2, 5)
    base = replace(astar(1.5, 2, split), selection=ExponentialSelection(1.5))
    data = np.concatenate([ROWS, ROWS[::-1], ROWS])[:11]
    by_lists = BoostedByLearner(base.learner, ParityErrors(2), split, ExponentialSelection(1.5), same)
    assert by_lists.law(data).outcomes == base.law(data).outcomes
    assert by_lists.law(data).probabilities == pytest.approx(base.law(data).probabilities, abs=1e-13)
    half = OF_THE_LEARNER["half_missing"].build
    by_weights = replace(base, selection=ExponentsOf(1.5, split.tests, half))
    assert replace(by_lists, build=half).law(data).probabilities == pytest.approx(
        by_weights.law(data).probabilities, abs=1e-13
    )


def test_other_exponents_are_those_of_the_mutants() -> None:
    errors = np.array([[0, 3, 5], [2, 2, 1]])
    for name, exponents in (
        ("half_missing", -0.8 * errors),
        ("score_over_n", -0.4 * errors / 5),
        ("sign_flipped", 0.4 * errors),
    ):
        weights = ExponentsOf(0.8, 5, OF_THE_LEARNER[name].build).weights(errors)
        wanted = np.exp(exponents)
        assert weights == pytest.approx(wanted / wanted.max(axis=1, keepdims=True), rel=1e-12), name


@pytest.mark.parametrize("name", sorted(set(MUTANTS) - {"exp_underflow"}))
def test_draws_follow_the_law(name: str) -> None:
    base, pair = whole(4, 4)
    built: Any = MUTANTS[name].build(base)
    for data in (pair.x, pair.y):
        drawn = built(data, 20_000, np.random.default_rng(3)).tolist()
        assert p_value_of_outputs(drawn, built.law(data)) > ALARM


def test_draws_among_fixed_candidates_follow_the_law() -> None:
    built: Any = MUTANTS["noisy_min_lap_1_over_eps"].build(fixed((1, 0, 0)))
    drawn = built(parity_rows(2), 20_000, np.random.default_rng(4)).tolist()
    assert p_value_of_outputs(drawn, built.law(parity_rows(2))) > ALARM


# ------------------------------------------------------------------------------------ levels


def test_the_noisy_minimum_of_twelve() -> None:
    """One error against eleven candidates without any, and then the other way: by quadrature of the density."""

    def first(own: int, others: int) -> float:
        def density(x: float) -> float:
            return float(stats.laplace.pdf(x, own) * stats.laplace.sf(x, others) ** 11)

        pieces = (-40, 0, 1, 41)
        return sum(integrate.quad(density, a, b, epsabs=1e-15)[0] for a, b in itertools.pairwise(pieces))

    before, after = first(1, 0), first(0, 1)
    loss = max(math.log(after / before), math.log((1 - before) / (1 - after)))
    assert loss == pytest.approx(stated_on_pair(claim_of(f"{ENTRY}/noisy_min_lap_1_over_eps")), abs=5e-6)


#: What a run on a block of one row (1, 0) finds: nothing with probability 1/2; otherwise it takes its row with
#: probability 1/4 and finds parity 0, or takes none and finds either.
OF_RUN = {NULL: 0.5, 0: 0.5 * (0.25 + 0.75 / 2), 1: 0.5 * 0.75 / 2}


def of_six(label: int, rule: Any) -> FiniteLaw:
    """Distribution of the whole learner on six blocks of a row (1, 0), and one test row, by its steps."""
    law = dict.fromkeys(OF_RUN, 0.0)
    for some in itertools.product(OF_RUN, repeat=6):
        right = [code == label for code in some]
        for code, share in zip(some, rule(right), strict=True):
            law[code] += math.prod(OF_RUN[c] for c in some) * share
    return FiniteLaw(tuple(law), np.array(list(law.values())))


def test_weights_without_the_half_by_numbers_of_runs() -> None:
    """Of twelve runs: how many find nothing or either parity; four test rows (1, 0), or three and one (1, 1)."""
    laws = []
    for wrong in (0, 1):
        weights = {NULL: math.exp(-4.0), 0: math.exp(-wrong), 1: math.exp(wrong - 4.0)}
        law = dict.fromkeys(OF_RUN, 0.0)
        for some in itertools.combinations_with_replacement(OF_RUN, 12):
            times = {code: some.count(code) for code in OF_RUN}
            lists = math.factorial(12) // math.prod(math.factorial(k) for k in times.values())
            share = lists * math.prod(OF_RUN[code] for code in some) / sum(weights[code] for code in some)
            for code in OF_RUN:
                law[code] += share * times[code] * weights[code]
        assert sum(law.values()) == pytest.approx(1.0, rel=1e-12)
        laws.append(law)
    loss = max(abs(math.log(laws[0][code] / laws[1][code])) for code in OF_RUN)
    assert loss == pytest.approx(stated_on_pair(claim_of(f"{ENTRY}/half_missing")), abs=5e-6)


def first_of_ties(right: list[bool]) -> list[float]:
    """All for the first of those with the largest weight, unless there is only one: then by weight."""
    if sum(right) == 1:
        weights = [1.0 if one else math.exp(-0.5) for one in right]
        return [weight / sum(weights) for weight in weights]
    best = right.index(max(right))
    return [float(i == best) for i in range(6)]


def right_ones(right: list[bool]) -> list[float]:
    """Equal parts for those that are right, or for all if none is."""
    return [one / sum(right) if any(right) else 1 / 6 for one in right]


def by_labeling(right: list[bool]) -> list[float]:
    """One weight for those that are right and one for the others."""
    weights = {True: 1.0, False: math.exp(-0.5)}
    kinds = set(right)
    return [weights[one] / sum(weights[kind] for kind in kinds) / right.count(one) for one in right]


@pytest.mark.parametrize(
    ("name", "rule", "case"),
    [
        ("argmax_on_ties", first_of_ties, "argmax_on_ties__whole_learner"),
        ("sample_dependent_class", right_ones, "sample_dependent_class__whole_learner"),
        ("deduplicated_on_sample", by_labeling, "deduplicated_on_sample"),
    ],
)
def test_a_mutant_of_the_whole_learner_step_by_step(name: str, rule: Any, case: str) -> None:
    base, pair = whole(6, 1)
    built: Any = MUTANTS[name].build(base)
    by_hand = [of_six(label, rule) for label in (0, 1)]
    for law, data in zip(by_hand, (pair.x, pair.y), strict=True):
        found = built.law(data)
        assert found.outcomes == law.outcomes
        assert found.probabilities == pytest.approx(law.probabilities, abs=1e-13)
    loss = max(np.abs(np.log(by_hand[0].probabilities / by_hand[1].probabilities)))
    assert loss == pytest.approx(stated_on_pair(claim_of(f"{ENTRY}/{case}")), abs=5e-6)


def test_what_is_impossible_among_fixed_candidates() -> None:
    twelve, one, two = fixed((1, *(0,) * 11)), parity_rows(1), parity_rows(2)
    for name, x, y, outcome in (
        ("sample_dependent_class", one, parity_rows(0, 1), 0),
        ("sample_dependent_class__consistent", two, parity_rows(1, 1), 0),
        ("argmax_on_ties", two, parity_rows(1, 1), 0),
    ):
        built: Any = MUTANTS[name].build(twelve)
        assert built.law(x).probabilities[outcome] == 0
        assert built.law(y).probabilities[outcome] > 0
        assert level_of(built, x, y) == math.inf


def test_weights_that_are_lost() -> None:
    """The smallest double is e^-744.4: e^-745 rounds to it, e^-746 to 0. In float32 at 11 steps are of 2^-20."""
    assert (math.exp(-745.0) > 0, math.exp(-746.0)) == (True, 0.0)
    naive: Any = MUTANTS["exp_underflow"].build(fixed((1, 0), 2.0))
    assert naive.law(parity_rows(746, 745)).probabilities.tolist() == [0.0, 1.0]
    single: Any = MUTANTS["float32_cumulative_sum"].build(fixed((*(0,) * 11, 1)))
    assert math.exp(-15.0) < 2.0**-21 < math.exp(-14.0)
    assert single.law(parity_rows(30)).probabilities[-1] == 0.0
    assert single.law(parity_rows(29, 1)).probabilities[-1] == pytest.approx(2.0**-20 / 11, rel=1e-6)


def test_the_whole_learner_keeps_what_is_benign() -> None:
    base, pair = whole(12, 4)
    for name in ("score_over_n", "sign_flipped"):
        built: Any = MUTANTS[name].build(base)
        assert isinstance(built, BoostedLearner)
        assert level_of(built, pair.x, pair.y) <= 1.0
    rates: Any = MUTANTS["score_over_n"].build(base)
    assert level_of(rates, pair.x, pair.y) <= 0.25


def test_what_is_asked_for_is_checked() -> None:
    base, pair = whole(12, 4)
    built: Any = MUTANTS["argmax_on_ties"].build(base)
    with pytest.raises(ValueError, match="at most 5000 lists of candidates, got 531441"):
        built.law(pair.x)
    wrong = ExponentsOf(1.0, 4, OF_THE_LEARNER["exp_underflow"].build)
    with pytest.raises(ValueError, match="a learner with other exponents"):
        wrong.weights(np.array([[0, 1]]))
    assert isinstance(fixed((0, 1)), ChosenHypothesis)
