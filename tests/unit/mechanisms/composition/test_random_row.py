"""A random row, published half of the time: its distribution, its delta, its statistical distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.privacy.exact import curve
from mechanisms.composition.random_row import MUTANTS, NOTHING, RandomRow

ROWS = np.array([3.0, 1.0, 3.0, 0.0, 3.0])
#: False-alarm probability of the statistical test, for any seed.
FALSE_ALARM = 1e-7


@pytest.mark.parametrize("name", MUTANTS)
def test_draws_follow_the_law(name: str) -> None:
    mechanism: Any = MUTANTS[name].build(RandomRow())
    law, n = mechanism.law(ROWS), 40_000
    outputs = mechanism(ROWS, n, np.random.default_rng(7))
    assert outputs.shape == (n,)
    counts = [int((outputs == outcome).sum()) for outcome in law.outcomes]
    assert sum(counts) == n
    # Chi-square with expectations of 4,000 at least.
    assert stats.chisquare(counts, n * law.probabilities).pvalue > FALSE_ALARM


@pytest.mark.parametrize("rows", [2, 10, 1000])
def test_delta_is_one_over_2n_at_every_epsilon(rows: int) -> None:
    first, second = np.arange(rows, dtype=float), np.arange(rows, dtype=float)
    second[0] = -1.0
    for name, delta in (("as_described", 0.5 / rows), ("without_the_half", 1.0 / rows)):
        mechanism: Any = MUTANTS[name].build(RandomRow())
        assert mechanism.delta(first) == delta
        found = curve(mechanism.law(first), mechanism.law(second))
        for epsilon in (0.0, 0.1, 1.0, 10.0, 100.0):
            assert found.delta(epsilon) == pytest.approx(delta, rel=1e-12)
        assert found.epsilon(0.99 * delta) == math.inf
        assert found.epsilon(delta * (1 + 1e-9)) == 0.0


def test_a_value_that_others_share_has_a_finite_level() -> None:
    mechanism = RandomRow()
    found = curve(mechanism.law([1.0, 1.0, 0.0]), mechanism.law([1.0, 0.0, 0.0]))
    assert found.epsilon(0.0) == pytest.approx(math.log(2.0), rel=1e-12)
    assert found.delta(0.0) == pytest.approx(1 / 6, rel=1e-12)


def test_statistical_distances_add_up_along_a_path() -> None:
    mechanism, rows = RandomRow(), 8
    start = np.arange(rows, dtype=float)
    for moved in range(1, rows + 1):
        end = np.where(np.arange(rows) < moved, start + 100.0, start)
        assert curve(mechanism.law(start), mechanism.law(end)).delta(0.0) == pytest.approx(moved / (2 * rows))


def test_nothing_is_no_row() -> None:
    assert not np.isfinite(NOTHING)
    for wrong in ([], [1.0, NOTHING], [math.nan]):
        with pytest.raises(ValueError, match=r"expected at least one row, finite values, got array"):
            RandomRow().law(wrong)
    with pytest.raises(ValueError, match=r"expected a number of draws n >= 1, got 0"):
        RandomRow()(ROWS, 0, np.random.default_rng(0))
