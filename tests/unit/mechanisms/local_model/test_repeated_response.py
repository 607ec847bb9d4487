"""Composition of responses to one bit: distributions, the filter, analysts, and the levels of the mutants."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from auditor.privacy.exact import TwoSidedGeometricLaw, curve
from auditor.targets.analysts import FixedList
from auditor.targets.interactive import History
from mechanisms.base.queries import Count
from mechanisms.composition.composition import RowBit
from mechanisms.local_model.local_model import REFUSED, SILENT
from mechanisms.local_model.repeated_response import (
    FILTER_MUTANTS,
    NOISE_MUTANTS,
    NUMBER_MUTANTS,
    FilteredResponses,
    IndependentAnswers,
    NumberOfOnes,
    RaiseStakes,
    TwoAnswers,
)
from tests.statistics import p_value, p_value_of_outputs

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

#: The bit is whether the first row is 1 or more; the second count is of rows of 2 and more.
BIT = RowBit(Count(low=1.0))
ZERO, ONE, BOTH = np.array([0.0, 3.0, 0.0]), np.array([1.0, 3.0, 0.0]), np.array([2.0, 3.0, 0.0])


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def level(mechanism: Any, x: Any = ONE, y: Any = ZERO) -> float:
    return curve(mechanism.law(x), mechanism.law(y)).epsilon(0.0)


# ------------------------------------------------------------------------------ levels in advance


@pytest.mark.parametrize(("part", "k"), [(0.5, 1), (0.3, 4), (2.0, 6)])
def test_the_number_of_ones_by_all_answers(part: float, k: int) -> None:
    mechanism = NumberOfOnes(BIT, part, k)
    keep = math.exp(part) / (1 + math.exp(part))
    for data, bit in ((ONE, 1), (ZERO, 0)):
        mass = [0.0] * (k + 1)
        for answers in itertools.product((0, 1), repeat=k):
            mass[sum(answers)] += math.prod(keep if answer == bit else 1 - keep for answer in answers)
        law = mechanism.law(data)
        assert law.outcomes == tuple(range(k + 1))
        assert law.probabilities == pytest.approx(mass, rel=1e-9)
    assert level(mechanism) == pytest.approx(k * part, rel=1e-9)
    assert mechanism.epsilon == k * part


def test_draws_of_the_number_of_ones() -> None:
    mechanisms: list[Any] = [NumberOfOnes(BIT, 0.5, 3)]
    mechanisms.append(NUMBER_MUTANTS["raw_data_to_post_processing"].build(BASE_NUMBER))
    for mechanism in mechanisms:
        for data in (ONE, ZERO):
            law = mechanism.law(data)
            outputs = mechanism(data, 30_000, rng(1))
            assert set(np.unique(outputs).tolist()) == set(law.outcomes)
            observed = [int((outputs == o).sum()) for o in law.outcomes]
            assert p_value(observed, law.probabilities) > ALARM / 4


BASE_NUMBER = NumberOfOnes(BIT, 1.0, 2)


def test_post_processing_that_sees_the_data() -> None:
    mutant: Any = NUMBER_MUTANTS["raw_data_to_post_processing"].build(BASE_NUMBER)
    assert level(BASE_NUMBER) == pytest.approx(2.0, rel=1e-9)
    assert level(mutant) == math.inf
    keep = math.e / (1 + math.e)
    assert dict(zip(mutant.law(ONE).outcomes, mutant.law(ONE).probabilities, strict=True)) == pytest.approx(
        {-1: (1 - keep) ** 2, 1: 2 * keep * (1 - keep), 2: keep**2}
    )
    assert mutant.law(ZERO).outcomes == (0, 1, -1)
    assert BASE_NUMBER.published(np.array([0, 1, 2]), 1).tolist() == [0, 1, 2]


TWO = IndependentAnswers(Count(low=1.0), Count(low=2.0), 1.5)


def test_two_answers_cost_their_sum() -> None:
    # From no count to both: the answers move by 1 and by 2.
    assert TWO.centre(ZERO).tolist() == [1, 2]
    assert TWO.centre(BOTH).tolist() == [2, 4]
    assert level(TWO, BOTH, ZERO) == pytest.approx(1.5, rel=1e-9)
    assert level(TWO, ONE, ZERO) == pytest.approx(0.5, rel=1e-9)
    outputs = TWO(BOTH, 30_000, rng(2))
    for column, part in zip(outputs.T, TWO.law(BOTH).parts, strict=True):
        assert isinstance(part, TwoSidedGeometricLaw)
        k = np.arange(-5, 6)
        mass = part.a ** -np.abs(k).astype(float) * (part.a - 1) / (part.a + 1)
        mass[[0, -1]] += (1 - mass.sum()) / 2
        observed = np.bincount(np.clip(column - part.loc, -5, 5) + 5, minlength=11)
        assert p_value(observed, mass) > ALARM / 4
    # Independent: signs of the two noises.
    noise = outputs - TWO.centre(BOTH)
    low = (noise <= 0) @ np.array([1, 2])
    q = 1 - 1 / (1 + TWO.base)
    assert p_value(np.bincount(low, minlength=4), [(1 - q) ** 2, q * (1 - q), q * (1 - q), q * q]) > ALARM / 4


def test_a_shared_seed_publishes_the_difference() -> None:
    mutant = NOISE_MUTANTS["shared_seed"].build(TWO)
    for data, difference in ((ZERO, 1), (BOTH, 2)):
        outputs = np.asarray(mutant(data, 500, rng(3)))
        assert set((outputs[:, 1] - outputs[:, 0]).tolist()) == {difference}
        assert np.unique(outputs[:, 0]).size > 3
    assert NOISE_MUTANTS["shared_seed"].true_level is not None
    assert NOISE_MUTANTS["shared_seed"].true_level(TWO) == math.inf


# ------------------------------------------------------------------------------ levels on the way

CHOSEN = FilteredResponses(BIT, (0.25, 0.5, 0.75), 1.0, RaiseStakes(4, 3))


def recursion(mechanism: FilteredResponses, bit: int) -> dict[tuple[int, ...], float]:
    """Transcripts of `RaiseStakes` under a filter that is written down once more."""
    analyst: Any = mechanism.analyst
    found: dict[tuple[int, ...], float] = {}

    def go(answers: tuple[int, ...], asked: tuple[int, ...], spent: float, p: float) -> None:
        if len(answers) == analyst.rounds:
            found[answers + asked] = p
            return
        query = 0
        for answer in answers:
            query = 0 if answer == REFUSED else min(query + 1, analyst.levels - 1) if answer == 1 else query
        epsilon = mechanism.levels[query]
        if spent + epsilon > mechanism.epsilon:  # exact: the levels are multiples of a quarter
            go((*answers, REFUSED), (*asked, query), spent, p)
            return
        keep = math.exp(epsilon) / (1 + math.exp(epsilon))
        for answer in (0, 1):
            go((*answers, answer), (*asked, query), spent + epsilon, p * (keep if answer == bit else 1 - keep))

    go((), (), 0.0, 1.0)
    return found


def test_chosen_levels_by_recursion() -> None:
    for data, bit in ((ONE, 1), (ZERO, 0)):
        law = CHOSEN.law(data)
        assert dict(zip(law.outcomes, law.probabilities, strict=True)) == pytest.approx(
            recursion(CHOSEN, bit), rel=1e-9
        )
    assert level(CHOSEN) == pytest.approx(1.0, rel=1e-9)
    # All answers 1: 0.25, 0.5, then 0.75 is refused, then 0.25.
    p, q = (recursion(CHOSEN, bit)[1, 1, REFUSED, 1, 0, 1, 2, 0] for bit in (1, 0))
    assert math.log(p / q) == pytest.approx(1.0, rel=1e-12)
    assert p > 0.19


def test_draws_of_chosen_levels() -> None:
    assert p_value_of_outputs(CHOSEN(ONE, 40_000, rng(4)), CHOSEN.law(ONE)) > ALARM


def test_no_path_costs_more_than_the_budget() -> None:
    # Eight rounds, levels that are no binary fractions: the filter rounds against the analyst.
    for levels, budget in (((0.1, 0.3, 0.7), 1.0), ((1 / 3, 2 / 3), 1.0), ((0.9,), 0.5)):
        mechanism = FilteredResponses(BIT, levels, budget, RaiseStakes(8, len(levels)))
        assert level(mechanism) <= budget * (1 + 1e-12)
    # A refusal is no news: nothing of 0.9 is ever granted.
    assert level(FilteredResponses(BIT, (0.9,), 0.5, RaiseStakes(3, 1))) == 0.0


def test_what_raises_the_stakes() -> None:
    answers = np.array([[1, 1, 1], [0, 1, 0], [1, REFUSED, 1], [SILENT, 0, REFUSED]])
    asked = np.zeros((4, 3), dtype=np.int64)
    history = History(asked, answers, SILENT, np.empty((4, 0)))
    assert np.asarray(RaiseStakes(4, 3)(history)).tolist() == [2, 1, 1, 0]
    first = History(asked[:, :0], answers[:, :0], SILENT, np.empty((4, 0)))
    assert np.asarray(RaiseStakes(4, 3)(first)).tolist() == [0, 0, 0, 0]


# ------------------------------------------------------------------------------------- mutants


def test_levels_of_the_mutants() -> None:
    base = FilteredResponses(BIT, (0.5, 1.0, 1.0), 1.0, FixedList((0, 1, 2)))
    mutant: Any = FILTER_MUTANTS["maximum_for_sum"].build(base)
    stated = FILTER_MUTANTS["maximum_for_sum"].true_level
    assert stated is not None
    assert level(base) == pytest.approx(0.5, rel=1e-9)
    assert level(mutant) == pytest.approx(2.5, rel=1e-9) == stated(base)
    # A level above the budget is refused by this one too.
    above: Any = FILTER_MUTANTS["maximum_for_sum"].build(FilteredResponses(BIT, (0.5, 1.5), 1.0, FixedList((0, 1, 0))))
    assert level(above) == pytest.approx(1.0, rel=1e-9)

    raises = FilteredResponses(BIT, (1.0, 1.5), 1.0, RaiseStakes(2, 2))
    at_end: Any = FILTER_MUTANTS["budget_checked_at_the_end"].build(raises)
    assert level(raises) == pytest.approx(1.0, rel=1e-9)
    assert level(at_end) == pytest.approx(2.5, rel=1e-9)

    stops = FilteredResponses(BIT, (1.0,), 1.0, FixedList((0, 1, 0)))
    refunds: Any = FILTER_MUTANTS["early_stop_refunds"].build(stops)
    assert level(stops) == pytest.approx(1.0, rel=1e-9)
    assert level(refunds) == pytest.approx(2.0, rel=1e-9)
    again = FilteredResponses(BIT, (0.5,), 1.0, FixedList((0, 0, 1, 0, 0, 0, 1, 0)))
    # Two of 0.5, a stop, two more and one that is refused, a stop, one more.
    assert level(FILTER_MUTANTS["early_stop_refunds"].build(again)) == pytest.approx(2.5, rel=1e-9)
    assert all(FILTER_MUTANTS[n].true_level is None for n in ("budget_checked_at_the_end", "early_stop_refunds"))


def test_errors_show_the_value() -> None:
    with pytest.raises(ValueError, match=r"expected a finite level of a response > 0, got 0"):
        NumberOfOnes(BIT, 0.0, 2)
    with pytest.raises(ValueError, match=r"expected k >= 1, got 0"):
        NumberOfOnes(BIT, 1.0, 0)
    with pytest.raises(ValueError, match=r"expected a finite epsilon > 0, got -1"):
        TwoAnswers(Count(low=1.0), Count(low=2.0), -1.0)
    with pytest.raises(ValueError, match=r"expected at least one level, got \(\)"):
        FilteredResponses(BIT, (), 1.0, FixedList((0,)))
    with pytest.raises(ValueError, match=r"expected a finite epsilon > 0, got -0\.5"):
        FilteredResponses(BIT, (-0.5,), 1.0, FixedList((0,)))
