"""False alarms of white-box audits at zero margin, and of each of their tests."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.training.step_level import Steps, compose_level
from auditor.audits.training.step_tests import CERTAIN, check_steps
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee
from auditor.training import StepRecorder, audit_steps
from benchmarks.recorded_training import FULL, SAMPLED, train
from tests.statistics import ALLOWED as ALPHA
from tests.statistics import check_rates


def full(seed: int) -> tuple[StepRecorder, Guarantee]:
    """Full batches, whose level is exactly what is claimed."""
    return train(90_000 + seed, rate=1.0, noise=FULL, steps=100), GaussianDP(10 / FULL)


def loud(seed: int) -> tuple[StepRecorder, Guarantee]:
    """Few steps with little noise, where bets on coins come close to the level."""
    return train(91_000 + seed, rate=1.0, noise=0.8, steps=150), GaussianDP(math.sqrt(150) / 0.8)


def short(seed: int) -> tuple[StepRecorder, Guarantee]:
    """One coordinate, one direction, and no sum before noise."""
    rng = np.random.default_rng(92_000 + seed)
    recorder = StepRecorder(1.0, 1.5, coin=0.3)
    for _ in range(120):
        included = bool(rng.random() < 0.3)
        recorder.add(rng.normal(scale=1.5, size=1) + included, [1.0], included=included)
    return recorder, GaussianDP(math.sqrt(120) / 1.5)


@pytest.mark.parametrize("null", [full, loud, short], ids=lambda null: str(null.__name__))
def test_alarms_are_rare_and_bounds_hold(null: Any) -> None:
    def outcomes(seed: int) -> tuple[bool, bool]:
        record, claim = null(seed)
        result = audit_steps(record, claim, alpha=ALPHA, seed=seed)
        alarm = result.verdict not in ("consistent", "inconclusive")
        return alarm, (result.lower_bound or 0.0) > claim.level * (1 + 1e-9)

    check_rates(outcomes, "false alarms", "lower bounds above the exact level")


def test_sampled_steps_are_no_alarm() -> None:
    claim = ApproxDP(compose_level([Steps(100, SAMPLED, 0.1)], ApproxDP(1.0, 1e-5)) * (1 + 1e-6), 1e-5)
    results = [audit_steps(train(93_000 + seed, steps=100), claim, alpha=1e-6) for seed in range(5)]
    assert [str(result.verdict) for result in results] == ["consistent"] * 5


def test_each_test_has_the_level_that_its_p_value_says() -> None:
    """At 5 % and at 1 %: more failures have a probability of 1e-6 for all tests together."""
    found: Counter[tuple[str, float]] = Counter()
    audits, tests = 150, 20
    for seed in range(audits):
        for test in check_steps(train(94_000 + seed, steps=60).table()):
            for level in (0.05, 0.01):
                found[test.name, level] += test.p_value <= level
            assert test.kind != CERTAIN or test.p_value == 1.0
    assert len(found) == 2 * tests
    for (name, level), failures in found.items():
        assert failures <= stats.binom.isf(1e-6 / (2 * tests), audits, level), name
