"""Queries answered centrally: the distribution, the level, the sample size, and the local answers beside them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import TwoSidedGeometricLaw, curve
from experiments.document_002_what_can_we_learn.central import LocalAnswers
from mechanisms.local_model.central_simulation import CentralQueries, FreshSample, rows_needed
from mechanisms.local_model.fresh_users import FreshUsers
from mechanisms.local_model.local_query import ScaledColumn

FloatArray = NDArray[np.float64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

#: Three persons with two columns; queries with bounds 1 and 1/2.
ROWS = np.array([[0.0, 10.0], [4.0, 0.0], [1.0, 5.0]])
TWO = (ScaledColumn(0, 0.0, 4.0), ScaledColumn(1, 0.0, 10.0, bound=0.5))


def replaced(index: int, row: list[float]) -> FloatArray:
    changed = ROWS.copy()
    changed[index] = row
    return changed


def test_sums_of_rows_in_steps() -> None:
    # g is -1, 1, -1/2 in the first query and 1/2, -1/2, 0 in the second.
    assert CentralQueries(TWO, 3, 1.0, step=0.25).sums(ROWS) == [-2, 0]


def test_bases_share_the_level() -> None:
    mechanism = CentralQueries(TWO, 3, 1.0, step=0.25)
    first, second = mechanism.bases()
    # Eight steps from -1 to 1, four from -1/2 to 1/2, each for a level of one half.
    assert first == pytest.approx(math.exp(0.5 / 8), rel=1e-15)
    assert second == pytest.approx(math.exp(0.5 / 4), rel=1e-15)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_level_is_attained_where_all_queries_move_by_2b(epsilon: float) -> None:
    mechanism = CentralQueries(TWO, 3, epsilon, step=0.25)
    lowest, highest = replaced(0, [0.0, 0.0]), replaced(0, [4.0, 10.0])
    level = curve(mechanism.law(lowest), mechanism.law(highest)).epsilon(0.0)
    assert level == pytest.approx(epsilon, rel=1e-12)
    assert level <= epsilon
    # From the centre to an end only half of it.
    half = curve(mechanism.law(replaced(0, [2.0, 5.0])), mechanism.law(highest)).epsilon(0.0)
    assert half == pytest.approx(epsilon / 2, rel=1e-12)


def test_no_replaced_row_costs_more() -> None:
    mechanism = CentralQueries(TWO, 3, 1.0, step=0.25)
    grid = [[a, b] for a in (-1.0, 0.0, 1.3, 4.0, 9.0) for b in (0.0, 3.3, 10.0, 50.0)]
    for first, second in itertools.product(grid, grid):
        laws = mechanism.law(replaced(1, first)), mechanism.law(replaced(1, second))
        assert curve(*laws).epsilon(0.0) <= 1.0 + 1e-12


def test_draws_have_the_stated_law() -> None:
    mechanism = CentralQueries(TWO, 3, 2.0, step=0.5)
    drawn = mechanism(ROWS, 60_000, np.random.default_rng(3))
    assert drawn.shape == (60_000, 2)
    for column, part in zip(drawn.T, mechanism.law(ROWS).parts, strict=True):
        assert isinstance(part, TwoSidedGeometricLaw)
        steps = np.rint(column / mechanism.unit).astype(np.int64) - part.loc
        cuts = np.arange(-8, 9)
        cdf = np.concatenate([[0.0], TwoSidedGeometricLaw(0, part.a).cdf(cuts), [1.0]])
        observed = np.diff(np.concatenate([[0], [np.count_nonzero(steps <= c) for c in cuts], [len(steps)]]))
        assert (np.diff(cdf) * len(steps)).min() >= 50
        assert stats.chisquare(observed, np.diff(cdf) * len(steps)).pvalue > ALARM / 2


def test_the_answers_are_independent() -> None:
    drawn = CentralQueries(TWO, 3, 2.0)(ROWS, 40_000, np.random.default_rng(4))
    signs = (drawn > np.median(drawn, axis=0)).astype(int)
    table = np.histogram2d(signs[:, 0], signs[:, 1], bins=2)[0]
    assert stats.chi2_contingency(table).pvalue > ALARM


@pytest.mark.parametrize("beta", [0.3, 0.01])
def test_the_reach_of_the_noise(beta: float) -> None:
    queries = (ScaledColumn(0, 0.0, 4.0), ScaledColumn(1, 0.0, 10.0))
    mechanism = CentralQueries(queries, 3, 1.0)
    (base, _), steps = mechanism.bases(), math.floor(mechanism.reach(beta) / mechanism.unit)
    single = 2.0 * float(TwoSidedGeometricLaw(0, base).cdf(-steps - 1.0))
    # A tail of beta / 2 for each of two.
    assert 1 - (1 - single) ** 2 <= beta
    assert single == pytest.approx(beta / 2, rel=2e-3)


# ----------------------------------------------------------------------------------- fresh samples


@pytest.mark.parametrize(("means", "size", "epsilon"), [((0.0,), 3, 1.0), ((0.5, -1.0), 4, 3.0), ((0.0,) * 5, 6, 8.0)])
def test_misses_by_enumeration(means: tuple[float, ...], size: int, epsilon: float) -> None:
    sample, tolerance = FreshSample(size, epsilon, step=0.5), 0.6
    a = math.exp(epsilon / len(means) / 4)
    k = np.arange(-2000, 2001)
    noise = a ** -np.abs(k).astype(float) * (a - 1) / (a + 1)
    held = 1.0
    for mean in means:
        inside = 0.0
        for values in itertools.product((-1, 1), repeat=size):
            weight = math.prod((1 + v * mean) / 2 for v in values)
            answers = (sum(values) + 0.5 * k) / size
            # A hair of slack: both sides are sums of a few binary fractions, divided once.
            inside += weight * float(noise[np.abs(answers - mean) <= tolerance + 1e-12].sum())
        held *= inside
    assert sample.miss(np.array(means), tolerance) == pytest.approx(1 - held, abs=1e-12)


@pytest.mark.parametrize(("means", "size", "epsilon"), [((0.0, 0.3), 40, 1.0), ((0.0,) * 20, 400, 5.0)])
def test_fresh_samples_miss_as_often_as_stated(means: tuple[float, ...], size: int, epsilon: float) -> None:
    sample, truth, n = FreshSample(size, epsilon), np.array(means), 20_000
    drawn = sample(truth, n, np.random.default_rng(8))
    assert drawn.shape == (n, len(means))
    missed = int((np.abs(drawn - truth).max(axis=1) > 0.2).sum())
    exact = sample.miss(truth, 0.2)
    assert 0.01 < exact < 0.99
    assert stats.binomtest(missed, n, exact).pvalue > ALARM


@pytest.mark.parametrize(
    ("queries", "epsilon", "tau", "beta"), [(1, 0.1, 0.1, 0.05), (16, 0.5, 0.2, 0.1), (8, 5, 0.3, 0.4)]
)
def test_the_sample_size_suffices(queries: int, epsilon: float, tau: float, beta: float) -> None:
    rows = rows_needed(queries, epsilon, tau, beta)
    noise = 4 * queries / (epsilon * tau) * math.log(2 * queries / beta)
    assert rows == math.ceil(max(noise, 8 / tau**2 * math.log(4 * queries / beta)))
    for mean in (0.0, 0.7, -1.0):
        assert FreshSample(rows, epsilon).miss(np.full(queries, mean), tau) <= beta


def test_the_bound_scales() -> None:
    assert rows_needed(4, 0.1, 0.2, 0.05, bound=2.0) == rows_needed(4, 0.1, 0.1, 0.05)


def test_local_answers_divide_the_users() -> None:
    truth, n = np.array([0.0, 0.5]), 20_000
    drawn = LocalAnswers(81, 1.0)(truth, n, np.random.default_rng(9))
    for column, mean in zip(drawn.T, truth.tolist(), strict=True):
        missed = int((np.abs(column - mean) > 0.6).sum())
        assert stats.binomtest(missed, n, FreshUsers(1.0, 40).miss(mean, 0.6)).pvalue > ALARM / 2


# -------------------------------------------------------------------------------------- errors


def test_bad_values_are_shown() -> None:
    one: Any = TWO[:1]
    with pytest.raises(ValueError, match=r"one query, got \(\)"):
        CentralQueries((), 3, 1.0)
    with pytest.raises(ValueError, match="rows >= 1, got 0"):
        CentralQueries(one, 0, 1.0)
    with pytest.raises(ValueError, match=r"epsilon > 0, got 0\.0"):
        CentralQueries(one, 3, 0.0)
    with pytest.raises(ValueError, match=r"as step, got 0\.3"):
        CentralQueries(one, 3, 1.0, step=0.3)
    with pytest.raises(ValueError, match="3 rows, got 2"):
        CentralQueries(one, 3, 1.0).sums(ROWS[:2])
    with pytest.raises(ValueError, match=r"beta in \(0, 1\), got 1\.0"):
        CentralQueries(one, 3, 1.0).reach(1.0)
    with pytest.raises(ValueError, match="as step, got 2"):
        FreshSample(3, 1.0, step=2)
    with pytest.raises(ValueError, match=r"expectations in \[-1, 1\]"):
        FreshSample(3, 1.0)(np.array([1.5]), 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="queries >= 1, got 0"):
        rows_needed(0, 1.0, 0.1, 0.1)
