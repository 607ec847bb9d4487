"""The statistics that tests share: fair at the nominal level, and not blind."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from auditor.privacy.exact import FiniteLaw
from tests.statistics import (
    ALLOWED,
    FAILS_WRONGLY,
    FOUND,
    PASSES_WRONGLY,
    check_rates,
    p_value,
    p_value_of_outputs,
)

SKEWED = np.array([0.5, 0.3, 0.1999, 0.0001])


@pytest.mark.parametrize("mass", [SKEWED, np.array([0.9998, 0.0002])])
def test_p_values_are_seldom_small_under_the_null(mass: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    small = sum(p_value(rng.multinomial(20_000, mass), mass) <= 0.05 for _ in range(2_000))
    assert small <= 170  # expected at most 100; 170 lies 7 standard deviations above


def test_other_probabilities_are_noticed() -> None:
    counts = np.random.default_rng(4).multinomial(20_000, SKEWED)
    assert p_value(counts, [0.52, 0.28, 0.1999, 0.0001]) < 1e-6
    assert p_value([19_900, 100], [0.9998, 0.0002]) < 1e-6


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(AssertionError):
        p_value([99, 1], [1.0, 0.0])
    with pytest.raises(AssertionError):
        p_value_of_outputs([0, 0, 2], FiniteLaw((0, 1), np.array([0.5, 0.5])))
    with pytest.raises(AssertionError):
        p_value([3, 4], [0.5, 0.5])
    assert p_value_of_outputs(np.zeros((80, 2), dtype=int), FiniteLaw(((0, 0),), np.array([1.0]))) == 1.0


def fails(rate: float, allowed: float = ALLOWED, found: float = FOUND, trials: int = 3_000) -> tuple[float, float]:
    """Probability that `check_rates` fails at a rate, and the probability that it is not decided, after many trials."""
    event, none = math.log(found / allowed), math.log((1 - found) / (1 - allowed))
    mass, failed = np.array([1.0]), 0.0  # by the number of events so far
    for trial in range(1, trials + 1):
        mass = np.append(mass * (1 - rate), 0.0) + np.append(0.0, mass * rate)
        ratio = event * np.arange(trial + 1) + none * (trial - np.arange(trial + 1))
        failed += float(mass[ratio >= -math.log(FAILS_WRONGLY)].sum())
        mass[(ratio >= -math.log(FAILS_WRONGLY)) | (ratio <= math.log(PASSES_WRONGLY))] = 0.0
    return failed, float(mass.sum())


def test_rates_are_judged_with_the_errors_that_are_stated() -> None:
    assert fails(ALLOWED)[0] <= FAILS_WRONGLY
    assert fails(FOUND)[0] >= 1 - PASSES_WRONGLY
    assert fails(0.3, 0.3, 0.7)[0] <= FAILS_WRONGLY
    assert fails(0.7, 0.3, 0.7)[0] >= 1 - PASSES_WRONGLY
    # As 200 trials of which more fail than a rate of 5 % allows but for a probability of one in a million.
    limit = stats.binom.isf(FAILS_WRONGLY, 200, ALLOWED)
    for rate in (0.15, 0.18, 0.2, 0.25):
        failed, undecided = fails(rate)
        assert failed > stats.binom.sf(limit, 200, rate) - 0.01
        assert undecided < 1e-6


def test_rates_that_are_too_high_fail_and_others_pass() -> None:
    rng = np.random.default_rng(7)
    check_rates(lambda trial: (rng.random() < ALLOWED, False), "alarms", "errors")
    with pytest.raises(AssertionError, match=r"\d+ alarms in \d+ trials"):
        check_rates(lambda trial: (False, rng.random() < 0.4), "errors", "alarms")
    numbers = itertools.count()
    check_rates(lambda trial: [trial != next(numbers)], "trials out of order")
    assert next(numbers) == 30
