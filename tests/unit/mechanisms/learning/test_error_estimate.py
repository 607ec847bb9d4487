"""The error of one hypothesis: its distribution, its level, its tails, and its mutants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import TwoSidedGeometricLaw
from mechanisms.learning.error_estimate import MUTANTS, NO_LABEL, ErrorEstimate
from tests.statistics import level_of

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

HYPOTHESIS = (0, 1, 1)
#: Mistakes: rows 1, 3 and 4.
DATA = np.array([[0, 0], [0, 1], [1, 1], [2, 0], [2, NO_LABEL], [1, 1], [0, 0], [2, 1]])


def flipped(data: NDArray[np.int64], index: int) -> NDArray[np.int64]:
    other = data.copy()
    other[index, 1] = 1 - other[index, 1]
    return other


def test_the_answer_is_the_part_of_the_records_that_are_mistakes() -> None:
    mechanism = ErrorEstimate(HYPOTHESIS, 8, 0.5, step=0.25)
    law = mechanism.law(DATA)
    assert law.loc * law.step == 3 / 8
    assert mechanism.centre(flipped(DATA, 0)) - mechanism.centre(DATA) == 4
    assert mechanism.centre(flipped(DATA, 1)) - mechanism.centre(DATA) == -4


@pytest.mark.parametrize("step", [1.0, 0.25, 2.0**-10])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_one_flip_costs_epsilon(step: float, epsilon: float) -> None:
    mechanism = ErrorEstimate(HYPOTHESIS, 8, epsilon, step)
    exact = level_of(mechanism, DATA, flipped(DATA, 2))
    assert exact == pytest.approx(epsilon, rel=1e-9)
    assert exact <= epsilon * (1 + 1e-12)


def test_draws_follow_the_law() -> None:
    mechanism, n = ErrorEstimate(HYPOTHESIS, 8, 0.5, step=0.5), 40_000
    outputs = mechanism(DATA, n, np.random.default_rng(1))
    k = np.rint(outputs / mechanism.unit).astype(np.int64)
    assert np.all(k * mechanism.unit == outputs)
    # e^(-|k - 6| / 4) up to its sum, k in half records; cells are expected 50 times and more.
    a, cells = math.exp(0.25), np.arange(-18, 19)
    pmf = a ** -np.abs(cells).astype(float) * (a - 1) / (a + 1)
    pmf[[0, -1]] += (1 - pmf.sum()) / 2
    observed = np.bincount(np.clip(k - 6, -18, 18) + 18, minlength=37)
    assert (n * pmf).min() > 50
    assert stats.chisquare(observed, n * pmf / pmf.sum()).pvalue > ALARM


@pytest.mark.parametrize("steps", [0, 1, 7, 40])
def test_tails_and_mean_are_sums_over_the_lattice(steps: int) -> None:
    mechanism = ErrorEstimate(HYPOTHESIS, 8, 2.0, step=0.25)
    k = np.arange(-2000, 2001)
    pmf = mechanism.base ** -np.abs(k).astype(float) * (mechanism.base - 1) / (mechanism.base + 1)
    assert mechanism.beyond(steps) == pytest.approx(float(pmf[np.abs(k) > steps].sum()), rel=1e-12)
    # The statement of the document, with t n in records: below it, and by less than the lattice is coarse.
    claimed = math.exp(-steps * 0.25 * 2.0)
    assert mechanism.beyond(steps) <= claimed <= mechanism.beyond(steps) * (1 + mechanism.base) / 2 * (1 + 1e-9)
    mean = 1.0 / math.sinh(math.log(mechanism.base))
    assert mean == pytest.approx(float((np.abs(k) * pmf).sum()), rel=1e-12)
    assert mean * 0.25 <= 1.0 / 2.0


def test_levels_of_the_mutants() -> None:
    base = ErrorEstimate(HYPOTHESIS, 8, 0.5)
    trained, wide = MUTANTS["train_size_for_test_size"], MUTANTS["scale_1_over_eps"]
    for mutant, exact in ((trained, 1.0), (wide, 0.5 / 8)):
        built = mutant.build(base)
        assert isinstance(built, ErrorEstimate)
        assert mutant.true_level is not None
        assert mutant.true_level(base) == pytest.approx(exact)
        assert level_of(built, DATA, flipped(DATA, 0)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("valid", [1, 2, 4, 8])
def test_few_valid_records_weigh_more(valid: int) -> None:
    mutant, base = MUTANTS["divided_by_valid_records"], ErrorEstimate(HYPOTHESIS, 8, 0.5)
    built = mutant.build(base)
    assert isinstance(built, ErrorEstimate)
    data = np.array([[0, 0]] * valid + [[0, NO_LABEL]] * (8 - valid))
    other = data.copy()
    other[0, 1] = 1
    assert level_of(built, data, other) == pytest.approx(0.5 * 8 / valid, rel=1e-9)
    law = built.law(other)
    assert isinstance(law, TwoSidedGeometricLaw)
    assert law.loc * law.step == 1 / valid
    assert mutant.true_level is not None
    assert level_of(built, data, other) <= mutant.true_level(base) * (1 + 1e-9)


def test_without_a_valid_record_there_is_no_mistake() -> None:
    built = MUTANTS["divided_by_valid_records"].build(ErrorEstimate(HYPOTHESIS, 2, 0.5))
    assert isinstance(built, ErrorEstimate)
    assert built.centre(np.array([[0, NO_LABEL], [1, NO_LABEL]])) == 0


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (((), 8, 0.5), r"\(\)"),
        (((0, 2), 8, 0.5), r"\(0, 2\)"),
        ((HYPOTHESIS, 0, 0.5), "got 0"),
        ((HYPOTHESIS, 8, -1.0), "got -1.0"),
        ((HYPOTHESIS, 8, 0.5, 0.3), "got 0.3"),
        ((HYPOTHESIS, 8, 0.5, 2.0), "got 2.0"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        ErrorEstimate(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "shown"),
    [(DATA[:7], r"\(7, 2\)"), (np.where(DATA == 2, 3, DATA), "3"), (np.where(DATA == NO_LABEL, 7, DATA), "7")],
)
def test_data_that_are_refused(data: NDArray[np.int64], shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        ErrorEstimate(HYPOTHESIS, 8, 0.5).law(data)
