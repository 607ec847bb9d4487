"""Bets for a known number of draws are bets, by exact enumeration, and reach what a test of this size does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditor import ApproxDP, GaussianDP, PureDP
from auditor.audits.training.draw_bets import bet_on_draws
from auditor.evidence.deadline_bet import DeadlineWealth, EventDraws
from auditor.evidence.two_sample_bet import Stake
from auditor.privacy.guarantees import Guarantee

#: What rounding may add to an expectation that is 1.
ROUNDING = 1e-12
ALPHA = 0.05


def play(
    guarantee: Guarantee, path: Sequence[Sequence[int]], p: float, q: float, draws: int, sizes: list[int]
) -> DeadlineWealth:
    """Wealth at the claim after draws (coin, inside), in chunks of these sizes."""
    wealth = DeadlineWealth(guarantee, np.array([guarantee.level]), draws, ALPHA)
    done = 0
    for n in sizes:
        coins, inside = (np.array([d[k] for d in path[done : done + n]], dtype=bool) for k in (0, 1))
        x, y = (tuple(int((inside[side] == k).sum()) for k in (0, 1)) for side in (coins, ~coins))
        wealth.bet(Stake(0, 0, (p,), (q,), x, y), EventDraws(coins, inside, p, q), n)
        done += n
    return wealth


@settings(max_examples=15, deadline=None)
@given(
    guarantee=st.one_of(
        st.floats(1e-9, 3.0).map(PureDP),
        st.floats(0.1, 3.0).map(GaussianDP),
        st.floats(1e-9, 3.0).map(lambda e: ApproxDP(e, 0.05)),
    ),
    true=st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4),
    estimates=st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999)),
    draws=st.integers(1, 40),
    sizes=st.sampled_from([[1, 1, 1, 1], [4], [1, 3]]),
)
def test_the_expectation_of_the_wealth_is_at_most_one(
    guarantee: Guarantee, true: list[float], estimates: tuple[float, float], draws: int, sizes: list[int]
) -> None:
    """Over all paths of four draws, each at its own point of the cap, whatever number of draws is announced."""
    expected = 0.0
    capped = [float(guarantee.cap(np.array(q), guarantee.level)) for q in true]
    for path in itertools.product(itertools.product((0, 1), repeat=2), repeat=len(true)):
        mass = 1.0
        for (coin, inside), q, p in zip(path, true, capped, strict=True):
            probability = p if coin else q
            mass *= 0.5 * (probability if inside else 1.0 - probability)
        if mass > 0:
            wealth = play(guarantee, path, *estimates, draws, sizes)
            expected += mass * math.exp(float(wealth.current[0]))
    assert expected <= 1.0 + ROUNDING


def test_an_event_that_is_known_refutes_as_often_as_a_test_of_this_size() -> None:
    """Against the binomial test of the number of right guesses at 0.7 of alpha, near the level where half refute."""
    n, mu = 400, 0.70
    p = float(stats.norm.cdf(0.5))
    right = stats.norm.cdf(mu / 2)  # at most, under mu
    enough = int(stats.binom.isf(0.7 * ALPHA, n, right)) + 1
    fixed = bets = 0
    for seed in range(200):
        rng = np.random.default_rng(61_000 + seed)
        coins = rng.random(n) < 0.5
        inside = np.where(coins, rng.random(n) < p, rng.random(n) < 1 - p)
        wealth = DeadlineWealth(GaussianDP(mu), np.array([mu]), n, ALPHA)
        wealth.bet(None, EventDraws(coins, inside, p, 1 - p), n)
        bets += bool(wealth.best[0] >= -math.log(ALPHA))
        fixed += int((coins == inside).sum()) >= enough
    assert fixed >= 60
    assert bets >= 0.85 * fixed


def test_learned_events_reach_higher_levels_with_a_deadline() -> None:
    claim = GaussianDP(1.0)
    bounds = []
    for seed in range(6):
        rng = np.random.default_rng(62_000 + seed)
        coins = rng.random(1_000) < 0.5
        values = rng.normal(size=1_000) + coins
        bounds.append(
            [
                bet_on_draws(values, coins, claim, ALPHA, deadline=told).bound_level(claim, ALPHA)
                for told in (True, False)
            ]
        )
    means = np.mean(bounds, axis=0)
    assert means[0] > means[1] + 0.02


def test_a_level_that_is_refuted_stays_so_and_bets_no_more() -> None:
    coins = np.arange(100) % 2 == 0
    wealth = DeadlineWealth(PureDP(0.5), np.array([0.5]), 200, ALPHA)
    wealth.bet(None, EventDraws(coins, coins, 0.9, 0.1), 100)
    reached = float(wealth.current[0])
    assert reached >= -math.log(ALPHA)
    wealth.bet(None, EventDraws(coins, ~coins, 0.9, 0.1), 100)
    assert float(wealth.current[0]) == pytest.approx(reached)


def test_very_much_wealth_is_no_overflow() -> None:
    coins = np.arange(40_000) % 2 == 0
    bets = bet_on_draws(coins + 0.0, coins, GaussianDP(1.0), ALPHA, deadline=True)
    assert bets.bound_level(GaussianDP(1.0), ALPHA) > 6
    assert float(bets.wealth.best[0]) > 1_000
