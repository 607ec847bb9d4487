"""Bounds on guesses about canaries: published figures, and what independent computations say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from auditor.evidence.one_run import (
    STAKES,
    GuessWealth,
    bound_correct_guesses,
    exceeds_curve,
    find_largest_level,
    find_rejected_level,
)
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP

#: Steinke, Nasr and Jagielski (2023), pages 45, 46 and 28: right guesses, guesses, canaries, delta, alpha, epsilon.
PRINTED = [
    (75, 100, 100, 0.0, 0.05, 0.702),
    (75, 100, 100, 1e-4, 0.05, 0.699),
    (75, 100, 1_000, 1e-4, 0.05, 0.673),
    (1_439, 1_510, 100_000, 1e-5, 0.05, 2.675),
]


@pytest.mark.parametrize(("right", "made", "canaries", "delta", "alpha", "printed"), PRINTED)
def test_epsilon_is_the_printed_one(
    right: int, made: int, canaries: int, delta: float, alpha: float, printed: float
) -> None:
    found = find_rejected_level(
        lambda epsilon: bound_correct_guesses(right, made, canaries, epsilon, delta) <= alpha, 1.0
    )
    assert abs(found - printed) < 1e-3  # some are cut off, some rounded


def test_the_p_value_is_the_printed_one() -> None:
    assert bound_correct_guesses(75, 100, 100, math.log(3)) == pytest.approx(0.553, abs=5e-4)


#: Xiang et al. (2025), `compare/RESULTS.txt`, the column of Steinke's bound: wrong guesses, guesses, canaries, epsilon.
OTHERS = [
    (26, 100, 1_000, 0.6519),
    (309, 1_000, 1_000, 0.6902),
    (51, 10_000, 100_000, 4.8674),
    (7_545, 25_000, 100_000, 0.8149),
]


@pytest.mark.parametrize(("wrong", "made", "canaries", "printed"), OTHERS)
def test_epsilon_is_that_of_a_second_implementation(wrong: int, made: int, canaries: int, printed: float) -> None:
    """That one has P[v - i < X <= v] where the theorem has P[v - i <= X < v]: a larger bound, by 0.01 at most here."""
    right, delta = made - wrong, 1e-5

    def theirs(epsilon: float) -> float:
        tail, p = stats.binom.sf(right - 1, made, 1 / (1 + math.exp(-epsilon))), 1 / (1 + math.exp(-epsilon))
        i = np.arange(1, right + 1)
        gained = (stats.binom.cdf(right, made, p) - stats.binom.cdf(right - i, made, p)) / i
        return float(tail + 2 * canaries * delta * gained.max())

    assert find_rejected_level(lambda e: theirs(e) <= 0.05, 1.0) == pytest.approx(printed, abs=6e-5)
    found = find_rejected_level(lambda e: bound_correct_guesses(right, made, canaries, e, delta) <= 0.05, 1.0)
    assert printed - 0.01 <= found <= printed


@pytest.mark.parametrize(("canaries", "least"), [(1_000, 927), (10_000, 9_268)])
def test_the_recursion_rejects_from_where_a_second_implementation_does(canaries: int, least: int) -> None:
    def rejected(right: int) -> bool:
        return exceeds_curve(right, canaries, canaries, GaussianDP(1.0), 1.0, 0.05)

    assert rejected(least)
    assert not rejected(least - 1)


def test_the_recursion_is_no_sharper_than_the_exact_tail_of_randomised_response() -> None:
    # Every bit through randomised response of level 1 is 1-DP, and has exactly the binomial tail.
    for made in (20, 100, 500):
        right = made
        while exceeds_curve(right, made, made, PureDP(1.0), 1.0, 0.05):
            right -= 1
        tail = float(stats.binom.sf(right, made, math.e / (1 + math.e)))
        assert tail <= 0.05
        assert tail >= 0.05 / 10  # and not wasteful


def test_the_recursion_allows_more_right_guesses_at_a_higher_level() -> None:
    levels = []
    for right in (120, 150, 180, 200):

        def rejected(level: float, right: int = right) -> bool:
            return exceeds_curve(right, 200, 400, ApproxDP(1.0, 1e-5), level, 0.05)

        levels.append(find_rejected_level(rejected, 1.0))
    assert levels == sorted(levels)
    assert levels[0] < levels[-1] < 10


def test_the_wealth_is_a_martingale_at_the_level_and_no_more_below() -> None:
    # Exactly, over all outcomes of six guesses with bets that depend on those before.
    p = math.e / (1 + math.e)
    mean = np.zeros(6)
    for outcome in range(64):
        right = np.array([(outcome >> k) & 1 for k in range(6)], float)
        sure = np.array([0.2 + 0.1 * right[:k].sum() for k in range(6)])
        chance = np.prod(np.where(right == 1, p, 1 - p))
        mean += chance * np.exp(GuessWealth(right, sure).path(1.0))
    assert mean == pytest.approx(np.ones(6), abs=1e-12)


def test_no_stake_is_ruined() -> None:
    assert ((STAKES >= 0) & (STAKES < 1)).all()
    assert np.isfinite(GuessWealth(np.zeros(50), np.ones(50)).path(1.0)).all()
    assert not GuessWealth(np.zeros(0), np.zeros(0)).rejects(0.1, 0.5)


@pytest.mark.parametrize("claimed", [0.0, 0.3, 0.9, 50.0])
def test_the_largest_of_several_levels_is_that_of_separate_searches(claimed: float) -> None:
    highest, calls = 40.0, []

    def rejects(case: float, level: float) -> bool:
        calls.append(level)
        return level <= case

    for listed in ([0.2, 0.7123, 0.31, 0.7123, 0.7, 39.99], [39.99, 0.7, 0.0, 0.31], [0.2, 0.2], [0.3, 0.1], [0.0]):
        levels = [find_rejected_level(lambda level, case=case: rejects(case, level), claimed) for case in listed]  # type: ignore[misc]
        assert find_largest_level(listed, rejects, claimed, highest) == (listed[int(np.argmax(levels))], max(levels))
    calls.clear()
    find_largest_level([0.7, 0.5, 0.2, 0.7], rejects, claimed)
    assert len(calls) < 50  # one search, and a look at each of the others
