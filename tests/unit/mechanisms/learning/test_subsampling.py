"""Private mechanisms on random subsets: distributions against enumerations and draws, and the bounds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import TwoSidedGeometricLaw, curve
from mechanisms.learning.parity import PrivateParityLearner
from mechanisms.learning.subsampling import (
    MUTANTS,
    FixedNumberOfRows,
    IndependentRows,
    NoisySum,
    added_level,
    between,
    replaced_level,
)

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def level(mechanism: Any, x: Any, y: Any) -> float:
    return curve(mechanism.law(np.array(x)), mechanism.law(np.array(y))).epsilon(0.0)


def clamped(inner: NoisySum, total: int) -> NDArray[np.float64]:
    """Distribution of a clamped noisy sum, from the noise's distribution function."""
    below = TwoSidedGeometricLaw(total, inner.base).cdf(np.arange(-inner.limit, inner.limit))
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_law_of_a_clamped_sum(epsilon: float) -> None:
    inner = NoisySum(epsilon)
    for total in range(-7, 8):
        mass = inner.probabilities(total)
        assert mass.sum() == pytest.approx(1.0, rel=1e-12)
        assert mass == pytest.approx(clamped(inner, total), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("data", [[], [1], [-1, 1], [1, 0, -1, 1, 1], [-1, -1, -1, 0]])
def test_the_law_of_independent_rows(data: list[int]) -> None:
    mechanism = IndependentRows(NoisySum(1.0), 0.3)
    wanted = np.zeros(9)
    for taken in itertools.product((0, 1), repeat=len(data)):
        mass = math.prod(0.3 if t else 0.7 for t in taken)
        wanted += mass * clamped(mechanism.inner, sum(v for v, t in zip(data, taken, strict=True) if t))
    assert mechanism.law(np.array(data)).probabilities == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("data", [[1, 0, 0, 0], [-1, 1, 1, 0], [-1, -1, 1, 1]])
def test_the_law_of_a_fixed_number_of_rows(data: list[int], size: int) -> None:
    mechanism = FixedNumberOfRows(NoisySum(1.0), size, 4)
    subsets = list(itertools.combinations(data, size))
    wanted = sum(clamped(mechanism.inner, sum(subset)) for subset in subsets) / len(subsets)
    assert mechanism.law(np.array(data)).probabilities == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        IndependentRows(NoisySum(1.0, limit=2), 0.25),
        IndependentRows(NoisySum(0.3, limit=2), 0.9),
        FixedNumberOfRows(NoisySum(1.0, limit=2), 2, 5),
        FixedNumberOfRows(NoisySum(1.0, 2, 2), 5, 5),
    ],
)
def test_draws_follow_the_law(mechanism: Any) -> None:
    n, data = 40_000, np.array([1, -1, 1, 0, 1])
    outputs = mechanism(data, n, np.random.default_rng(1))
    law = mechanism.law(data)
    assert set(outputs.tolist()) <= set(law.outcomes)
    observed = np.bincount(outputs + 2, minlength=5)
    assert (n * law.probabilities).min() >= 50
    assert stats.chisquare(observed, n * law.probabilities).pvalue > ALARM


# ------------------------------------------------------------------------------------- bounds


def test_bounds_in_numbers() -> None:
    assert between(0.25, 0.0, 2.0) == pytest.approx(math.log(1.25 / 0.75)) == pytest.approx(0.5108, abs=5e-5)
    assert between(0.125, 0.0, 2.0) == pytest.approx(PrivateParityLearner(0.5, 2).exact_epsilon)
    assert replaced_level(0.25, 1.0) == pytest.approx(math.log((0.75 + 0.25 * math.e) / (0.75 + 0.25 / math.e)))
    assert replaced_level(1e-3, 0.1) == pytest.approx(2 * 1e-3 * 0.1, rel=0.01)
    assert added_level(0.25, 1.0) == pytest.approx(math.log(1 + 0.25 * (math.e - 1)))
    # All are below the inner level's own bound for what was moved.
    assert added_level(0.9, 1.0) < 1.0
    assert replaced_level(0.9, 1.0) < 2.0


@pytest.mark.parametrize("p", [0.1, 0.6])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bounds_hold_on_all_neighbours_and_are_attained(p: float, epsilon: float) -> None:
    values, inner = (-1, 0, 1), NoisySum(epsilon)
    replaced, added = IndependentRows(inner, p), IndependentRows(inner, p, replace=False)
    worst = [0.0, 0.0]
    for rows in (1, 2, 3):
        for rest in itertools.combinations_with_replacement(values, rows - 1):
            for a, b in itertools.combinations(values, 2):
                worst[0] = max(worst[0], level(replaced, [*rest, a], [*rest, b]))
            for a in values:
                worst[1] = max(worst[1], level(added, [*rest, a], list(rest)))
    assert worst == pytest.approx([replaced.epsilon, added.epsilon], rel=1e-9)


@pytest.mark.parametrize("moves", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_bound_of_a_fixed_number_of_rows(size: int, moves: int) -> None:
    """With an inner level for replaced rows: sums of 0 and 1 move by one, of -1, 0 and 1 by two."""
    values = (0, 1) if moves == 1 else (-1, 0, 1)
    mechanism = FixedNumberOfRows(NoisySum(1.0, moves), size, 3)
    worst = 0.0
    for rest in itertools.combinations_with_replacement(values, 2):
        for a, b in itertools.combinations(values, 2):
            worst = max(worst, level(mechanism, [*rest, a], [*rest, b]))
    assert worst == pytest.approx(mechanism.epsilon, rel=1e-9)
    assert mechanism.p == size / 3


def test_bounds_are_not_exchanged() -> None:
    """What is right for rows added is exceeded by rows replaced, and by an inner level for rows added."""
    inner = NoisySum(1.0)
    assert level(IndependentRows(inner, 0.25), [1], [-1]) > added_level(0.25, 1.0) * 1.4
    assert level(FixedNumberOfRows(inner, 1, 2), [1, -1], [-1, -1]) > added_level(0.5, 1.0) * 1.4


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_negative_controls_have_no_level(name: str) -> None:
    mutant = MUTANTS[name].build(PrivateParityLearner(1.0, 1))
    assert level(mutant, [[1, 1], [0, 1]], [[1, 0], [0, 1]]) == math.inf
    data = np.array([[1, 1], [0, 1]])
    law = mutant.law(data)  # type: ignore[attr-defined]
    counts = np.bincount(mutant(data, 20_000, np.random.default_rng(1)) + 1, minlength=3)
    # Without step 1 nothing but the row (0, 1) leads to a null, which is outcome 0.
    one = MUTANTS[name].build(PrivateParityLearner(1.0, 1)).law(np.array([[1, 1]]))  # type: ignore[attr-defined]
    assert one.probabilities[0] == 0.0
    possible = law.probabilities > 0
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], 20_000 * law.probabilities[possible]).pvalue > ALARM


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: NoisySum(0.0), "epsilon > 0, got 0.0"),
        (lambda: NoisySum(1.0, 3), "a move of 1 or 2, got 3"),
        (lambda: NoisySum(1.0, 1, 0), "a limit >= 1, got 0"),
        (lambda: IndependentRows(NoisySum(1.0), 1.0), r"p in \(0, 1\), got 1.0"),
        (lambda: IndependentRows(NoisySum(1.0, 2), 0.5), "moves by 1, got 2"),
        (lambda: FixedNumberOfRows(NoisySum(1.0), 5, 4), "a size from 1 to 4, got 5"),
        (lambda: FixedNumberOfRows(NoisySum(1.0), 1, 4).law(np.array([1])), "4 rows, got 1"),
        (lambda: IndependentRows(NoisySum(1.0), 0.5).law(np.array([2, 1])), r"values -1, 0 and 1, got \[2\]"),
        (lambda: IndependentRows(NoisySum(1.0), 0.5).law(np.array([[1]])), r"one value a row, got \(1, 1\)"),
    ],
)
def test_errors_show_what_was_given(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
