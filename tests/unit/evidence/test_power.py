"""Ceiling and resolution against brute force and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import ApproxDP, GaussianDP, PureDP
from auditor.events.features import MAX_COORDINATES
from auditor.events.spread_shifts import LEAST_COORDINATES
from auditor.evidence.power import (
    NARROW,
    POWER,
    RESOLVED,
    draws_that_count,
    draws_to_resolve,
    find_ceiling,
    find_resolution,
    flag_probability,
)
from auditor.evidence.two_sample_bet import LOG_PRIOR, Stake, Wealth, log_factors
from auditor.privacy.guarantees import Guarantee

Array = NDArray[np.float64]

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0)]
#: What the 32 midpoint quantiles of each count may be off: every expert gains with each draw of P inside the event and
#: of Q outside, so the probability of a flag is the mean of a monotone function of two uniforms with values in [0, 1],
#: and the midpoint rule with 32 points is off by at most 1/64 for each of the two.
QUADRATURE = 2 / 64


# ------------------------------------------------------------------------------------- ceiling


@pytest.mark.parametrize("guarantee", CLAIMS, ids=str)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
@pytest.mark.parametrize("n", [30, 1_000, 50_000])
def test_the_ceiling_is_where_all_that_can_be_gained_is_just_enough(guarantee: Guarantee, alpha: float, n: int) -> None:
    def most(level: float) -> float:
        """Gain of n draws of an event with p = 1 and q = 0 at the level, at most: the least over the cap."""
        q = np.concatenate([np.geomspace(1e-9, 0.5, 400_001), np.linspace(0.5, 1 - 1e-9, 1001)])
        return n * float((-np.log(guarantee.cap(q, level)) - np.log1p(-q)).min())

    found = find_ceiling(n, guarantee, alpha)
    needed = math.log(1 / alpha)
    assert found > 0
    assert most(0.999 * found) > needed > most(1.001 * found)


@pytest.mark.parametrize("n", [1_000, 100_000])
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_the_ceiling_of_pure_privacy_is_about_the_logarithm_of_the_draws(n: int, alpha: float) -> None:
    # With L = ln(1/alpha) / n, the ceiling is ln(x / (1 - x)), x = e^(-L/2), which is ln(2 / L) - L/4 + O(L^2).
    length = math.log(1 / alpha) / n
    assert find_ceiling(n, PureDP(1.0), alpha) == pytest.approx(math.log(2 / length) - length / 4, abs=length**2)


@pytest.mark.parametrize("guarantee", CLAIMS, ids=str)
def test_too_few_draws_can_reject_no_level(guarantee: Guarantee) -> None:
    assert find_ceiling(0, guarantee, 0.05) == 0.0
    assert find_ceiling(1, guarantee, 0.05) == 0.0


@pytest.mark.parametrize("delta", [1e-3, 0.1])
def test_a_positive_delta_lowers_the_ceiling(delta: float) -> None:
    # An event of probability 1 against 0 has p - delta in the place of p.
    for n in (100, 10**7):
        assert find_ceiling(n, ApproxDP(1.0, delta), 0.05) < find_ceiling(n, PureDP(1.0), 0.05)


@pytest.mark.parametrize("guarantee", CLAIMS, ids=str)
@pytest.mark.parametrize("estimates", [((0.999,), (0.001,)), ((0.9,), (0.4,)), ((0.99, 0.9), (0.2, 0.001))])
def test_no_bet_of_the_engine_rejects_more_than_the_ceiling(
    guarantee: Guarantee, estimates: tuple[tuple[float, ...], tuple[float, ...]]
) -> None:
    n, alpha = 500, 0.05
    p, q = estimates
    wealth = Wealth(guarantee, np.array([find_ceiling(n, guarantee, alpha) * (1 + 1e-9)]))
    best_x, best_y = (0,) * len(p) + (n,), (n, *((0,) * len(p)))
    wealth.bet(Stake(0, 0, p, q, best_x, best_y))
    assert wealth.best[0] <= math.log(1 / alpha)


@pytest.mark.parametrize("guarantee", CLAIMS, ids=str)
def test_the_ceiling_grows_with_the_draws_and_with_alpha(guarantee: Guarantee) -> None:
    by_draws = [find_ceiling(n, guarantee, 0.01) for n in (100, 1_000, 10_000)]
    by_alpha = [find_ceiling(1_000, guarantee, alpha) for alpha in (1e-6, 1e-3, 0.1)]
    assert by_draws == sorted(set(by_draws))
    assert by_alpha == sorted(set(by_alpha))


# ----------------------------------------------------------------------------------- detection

CASES = [
    (PureDP(1.0), 0.82, 0.18, 200, 0.01),
    (PureDP(1.0), 0.4, 0.12, 1_000, 0.05),
    (PureDP(1.0), 0.3, 0.0, 60, 0.01),
    (ApproxDP(1.0, 0.01), 0.3, 0.08, 2_000, 0.01),
    (GaussianDP(1.0), 0.75, 0.25, 300, 0.01),
    (GaussianDP(1.0), 0.7, 0.2, 20_000, 0.01),
]


def gains_by_count(p: float, q: float, n: int, guarantee: Guarantee, side: str, counts: Array) -> Array:
    """Log factors of every expert, shape (n_counts, n_experts), for counts on one side and none on the other."""
    nothing = (0, 0)
    rows = []
    for c in counts.astype(int).tolist():
        mine = (n - c, c)
        stake = Stake(0, 0, (p,), (q,), *((mine, nothing) if side == "x" else (nothing, mine)))
        rows.append(log_factors([stake], guarantee, np.array([guarantee.level]))[0][0, :, 0])
    return np.array(rows)


@pytest.mark.parametrize(("guarantee", "p", "q", "n", "alpha"), CASES)
def test_the_flag_probability_is_that_of_simulated_bets(
    guarantee: Guarantee, p: float, q: float, n: int, alpha: float
) -> None:
    # Hoeffding: the mean of 40,000 draws of a 0/1 variable is off by more than the margin with probability at most
    # 2 exp(-2 * 40,000 * margin^2) = 1e-6; what the quadrature may be off is added.
    runs = 40_000
    margin = math.sqrt(math.log(2 / 1e-6) / (2 * runs))
    rng = np.random.default_rng(5)
    x, at_x = np.unique(rng.binomial(n, p, runs), return_inverse=True)
    y, at_y = np.unique(rng.binomial(n, q, runs), return_inverse=True)
    on_x = gains_by_count(p, q, n, guarantee, "x", x.astype(float))
    on_y = gains_by_count(p, q, n, guarantee, "y", y.astype(float))
    prior = np.logaddexp.reduce(LOG_PRIOR, axis=0)
    wealth = np.logaddexp.reduce(on_x[at_x] + on_y[at_y] + prior, axis=1)
    simulated = float((wealth >= math.log(1 / alpha)).mean())
    found = flag_probability(p, q, n, guarantee, alpha)
    assert abs(found - simulated) <= margin + QUADRATURE


def flag_exactly(p: float, q: float, n: int, guarantee: Guarantee, alpha: float) -> float:
    """Sum over all pairs of counts, but for those that are less probable than 1e-9 together."""

    def support(rate: float) -> Array:
        low, high = (float(stats.binom.ppf(u, n, rate)) for u in (1e-10, 1 - 1e-10))
        return np.arange(max(low, 0.0), high + 1)

    x, y = support(p), support(q)
    on_x, on_y = gains_by_count(p, q, n, guarantee, "x", x), gains_by_count(p, q, n, guarantee, "y", y)
    prior = np.logaddexp.reduce(LOG_PRIOR, axis=0)
    wealth = np.logaddexp.reduce(on_x[:, None, :] + on_y[None, :, :] + prior, axis=2)
    mass = stats.binom.pmf(x, n, p)[:, None] * stats.binom.pmf(y, n, q)
    return float(mass[wealth >= math.log(1 / alpha)].sum())


@pytest.mark.parametrize(("guarantee", "p", "q", "n", "alpha"), CASES[:5])
def test_the_flag_probability_is_the_exact_sum(guarantee: Guarantee, p: float, q: float, n: int, alpha: float) -> None:
    assert flag_probability(p, q, n, guarantee, alpha) == pytest.approx(
        flag_exactly(p, q, n, guarantee, alpha), abs=QUADRATURE
    )


def test_an_event_within_the_claim_is_never_flagged_and_a_certain_one_always() -> None:
    assert flag_probability(0.5, 0.5, 1_000, PureDP(1.0), 0.01) == 0.0
    assert flag_probability(1.0, 0.0, 1_000, PureDP(1.0), 0.01) == 1.0


RESOLVABLE = [
    (PureDP(1.0), 0.1, 2_000),
    (PureDP(1.0), 0.01, 5_000),
    (ApproxDP(1.0, 0.01), 0.1, 3_000),
    (GaussianDP(0.5), 0.1, 1_000),
    (PureDP(0.0), 0.5, 1_000),
]


def cap(guarantee: Guarantee, level: float, q: float) -> float:
    return float(guarantee.cap(np.array(q), level))


@pytest.mark.parametrize(("guarantee", "q", "n"), RESOLVABLE)
def test_what_is_resolved_is_flagged_with_probability_nine_tenths_and_nothing_below_it(
    guarantee: Guarantee, q: float, n: int
) -> None:
    level = find_resolution(q, n, guarantee, 0.01)
    assert guarantee.level < level < math.inf
    assert flag_probability(cap(guarantee, level, q), q, n, guarantee, 0.01) >= POWER
    # The search halves the interval until it is about 0.001 of the level long.
    below = level - 0.004 * max(level, 0.1)
    assert flag_probability(cap(guarantee, below, q), q, n, guarantee, 0.01) < POWER
    # And by the exact sum.
    assert flag_exactly(cap(guarantee, level, q), q, n, guarantee, 0.01) >= POWER - QUADRATURE
    assert flag_exactly(cap(guarantee, below, q), q, n, guarantee, 0.01) < POWER + QUADRATURE


@pytest.mark.parametrize(("guarantee", "q", "n"), RESOLVABLE)
def test_more_draws_resolve_more(guarantee: Guarantee, q: float, n: int) -> None:
    found = [find_resolution(q, k * n, guarantee, 0.01) for k in (1, 3, 10, 100)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4


def test_a_smaller_alpha_resolves_less() -> None:
    found = [find_resolution(0.2, 2_000, PureDP(1.0), alpha) for alpha in (0.1, 0.01, 1e-6)]
    assert found == sorted(set(found))


def test_what_no_level_can_flag_is_infinite() -> None:
    assert find_resolution(0.2, 0, PureDP(1.0), 0.01) == math.inf
    assert find_resolution(0.2, 3, PureDP(1.0), 0.01) == math.inf
    assert draws_to_resolve(1.00001, PureDP(1.0), 1e-12) == math.inf


@pytest.mark.parametrize("guarantee", CLAIMS, ids=str)
def test_so_many_draws_resolve_a_level_and_hardly_fewer_do_not(guarantee: Guarantee) -> None:
    n = draws_to_resolve(1.5, guarantee, 0.01)
    assert find_resolution(RESOLVED, math.ceil(1.01 * n), guarantee, 0.01) <= 1.502
    assert find_resolution(RESOLVED, math.floor(0.95 * n), guarantee, 0.01) > 1.5


def test_learning_takes_more_of_wide_outputs() -> None:
    assert NARROW == MAX_COORDINATES
    assert draws_that_count(3_000, LEAST_COORDINATES - 1, 20_000) == draws_that_count(3_000, 1, 20_000) == 1_000
    counted = [draws_that_count(3_000, width, 20_000) for width in (LEAST_COORDINATES - 1, NARROW, NARROW + 1)]
    assert counted == sorted(set(counted), reverse=True)
    assert draws_that_count(100_000, NARROW, 20_000) < draws_that_count(100_000, 1, 20_000)
    assert draws_that_count(0, 1, 20_000) == 0


@pytest.mark.parametrize("width", [1, NARROW, NARROW + 1])
def test_more_draws_count_for_more_also_beyond_those_that_are_learned_from(width: int) -> None:
    found = [draws_that_count(n, width, 20_000) for n in (10, 1_000, 20_000, 20_100, 200_000, 10**7)]
    assert found == sorted(set(found))
    assert found[-1] < found[2] * 10**7 / 20_000
