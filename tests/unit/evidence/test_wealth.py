"""The bet is a bet: its expectation is at most 1, by exact enumeration; the lower bound is what the full grid gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from auditor import ZCDP, ApproxDP, GaussianDP, PureDP
from auditor.evidence.lower_bound import level_grid, lower_bound
from auditor.evidence.two_sample_bet import (
    EXPERTS,
    LOG_PRIOR,
    Chunk,
    Stake,
    StakesInOrder,
    Wealth,
    log_factors,
    suppose_violation,
)
from auditor.privacy.guarantees import Guarantee, Tangent

Array = NDArray[np.float64]

#: What rounding may add to an expectation that is 1: sums of at most 36 products of probabilities and factors.
ROUNDING = 1e-12
#: The expert that bets the largest admissible amount.
LARGEST = next(k for k, (kind, value, _) in enumerate(EXPERTS) if kind == "limit" and value == 1.0)


@st.composite
def guarantees(draw: st.DrawFn) -> Guarantee:
    level = draw(st.floats(0.05, 4.0))
    kind = draw(st.sampled_from(["pure", "approximate", "gaussian"]))
    if kind == "pure":
        return PureDP(level)
    return ApproxDP(level, draw(st.floats(1e-4, 0.4))) if kind == "approximate" else GaussianDP(level)


def kink(guarantee: Guarantee) -> float:
    """The q at which the cap of epsilon and delta has its kink (for mu, the point of symmetry of the cap)."""
    if isinstance(guarantee, GaussianDP):
        return 0.5 * math.erfc(guarantee.mu / 2 / math.sqrt(2))
    assert isinstance(guarantee, ApproxDP)
    return (1 - guarantee.delta) / (1 + math.exp(guarantee.level))


@st.composite
def nested(draw: st.DrawFn, k: int, values: st.SearchStrategy[float]) -> tuple[float, ...]:
    """Probabilities of k nested events, outermost first."""
    return tuple(sorted((draw(values) for _ in range(k)), reverse=True))


def on_cap(guarantee: Guarantee, q: Sequence[float], level: float) -> tuple[float, ...]:
    return tuple(float(guarantee.cap(np.array(value), level)) for value in q)


def compositions(n: int, cells: int) -> Iterator[tuple[int, ...]]:
    for counts in itertools.product(range(n + 1), repeat=cells):
        if sum(counts) == n:
            yield counts


def law(p: Sequence[float], n: int) -> dict[tuple[int, ...], float]:
    """Joint distribution of the cell counts of n draws, from the probabilities of the nested events."""
    masses = np.maximum(-np.diff([1.0, *p, 0.0]), 0.0)
    found = {}
    for counts in compositions(n, len(masses)):
        ways = math.factorial(n) / math.prod(math.factorial(c) for c in counts)
        found[counts] = ways * math.prod(float(m) ** c for m, c in zip(masses, counts, strict=True))
    return found


def expected_factors(
    guarantee: Guarantee,
    true_p: Sequence[float],
    true_q: Sequence[float],
    estimates: tuple[Sequence[float], Sequence[float]],
    n: int,
    levels: Array,
    spread: float = 0.0,
    draws: float = 0.0,
) -> Array:
    """Exact expectation of every slot's and expert's factor, the best event of the chain being each in turn."""
    found = []
    for best in range(len(true_p)):
        total = np.zeros((*LOG_PRIOR.shape, len(levels)))
        for (x, mass_x), (y, mass_y) in itertools.product(law(true_p, n).items(), law(true_q, n).items()):
            if mass_x * mass_y > 0:
                few = (best,) if spread else ()
                stake = Stake(0, best, tuple(estimates[0]), tuple(estimates[1]), x, y, few, spread, draws)
                total += mass_x * mass_y * np.exp(log_factors([stake], guarantee, levels)[0])
        found.append(total)
    return np.stack(found)


# ------------------------------------------------------------------------------------ validity


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    ("k", "spread", "draws"),
    [(1, 0.0, 0.0), (1, 0.0, 2.0), (1, 0.0, 1e4), (2, 0.0, 0.0), (2, 0.3, 0.0), (2, 0.3, 30.0), (3, 50.0, 0.0)],
)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_expert_gains_on_the_boundary_of_the_null(
    n: int, k: int, spread: float, draws: float, data: st.DataObject
) -> None:
    guarantee = data.draw(guarantees())
    ends = st.floats(1e-3, 1 - 1e-3)
    true_q = data.draw(nested(k, st.one_of(ends, st.just(kink(guarantee)))))
    true_p = on_cap(guarantee, true_q, guarantee.level)
    estimates = data.draw(nested(k, ends)), data.draw(nested(k, ends))
    # The claimed level and larger ones are true nulls.
    levels = guarantee.level * np.array([1.0, 1.001, 1.3])
    assert expected_factors(guarantee, true_p, true_q, estimates, n, levels, spread, draws).max() <= 1 + ROUNDING


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize(("p", "q", "draws"), [(0.6, 0.2, 40.0), (0.3, 0.3, 40.0), (0.02, 0.004, 900.0)])
def test_supposed_estimates_are_means_beyond_the_line(guarantee: Guarantee, p: float, q: float, draws: float) -> None:
    p0, q0, slope = (v.item() for v in guarantee.tangent(np.array(p), np.array(q), 1.0))
    of_p, of_q = math.sqrt(p * (1 - p) / draws), math.sqrt(q * (1 - q) / draws)
    a = (p + of_p * np.linspace(-12, 12, 4_001))[:, None]
    b = q + of_q * np.linspace(-12, 12, 4_001)
    mass = np.exp(-0.5 * ((a - p) / of_p) ** 2 - 0.5 * ((b - q) / of_q) ** 2) * (a - p0 > slope * (b - q0))
    wanted = [min(max(float((mass * v).sum() / mass.sum()), 0.5 / draws), 1 - 0.5 / draws) for v in (a, b)]
    found = suppose_violation(np.array(p), np.array(q), draws, guarantee, np.array(1.0))
    assert np.array(found) == pytest.approx(np.array(wanted), rel=3e-3)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("n", [1, 2])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_expert_gains_inside_the_null(guarantee: Guarantee, n: int, data: st.DataObject) -> None:
    ends = st.floats(1e-3, 1 - 1e-3)
    true_q = data.draw(nested(2, ends))
    top = on_cap(guarantee, true_q, guarantee.level)
    inner = data.draw(st.floats(0, 1)) * top[1]
    true_p = (inner + data.draw(st.floats(0, 1)) * (top[0] - inner), inner)
    estimates = data.draw(nested(2, ends)), data.draw(nested(2, ends))
    levels = np.array([guarantee.level])
    assert expected_factors(guarantee, true_p, true_q, estimates, n, levels).max() <= 1 + ROUNDING


class WrongSlope(PureDP):
    """Its lines cross the cap: a bet on them is no bet against the claim."""

    def tangent(self, p: Array, q: Array, level: Array | float) -> Tangent:
        p0, q0, slope = super().tangent(p, q, level)
        return Tangent(p0, q0, 0.9 * slope)


def test_the_enumeration_finds_a_line_that_crosses_the_cap() -> None:
    guarantee = WrongSlope(1.0)
    true_q = (0.2,)
    true_p = on_cap(guarantee, true_q, 1.0)
    assert expected_factors(guarantee, true_p, true_q, ((0.4,), (0.01,)), 1, np.array([1.0])).max() > 1.001


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
def test_experts_do_gain_outside_the_null(guarantee: Guarantee) -> None:
    p, q = (0.9, 0.6), (0.3, 0.1)
    gains = expected_factors(guarantee, p, q, (p, q), 1, np.array([guarantee.level]))
    assert gains.min() > 1


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_two_chunks_the_second_chosen_by_the_first_have_an_expected_wealth_of_at_most_1(data: st.DataObject) -> None:
    guarantee = data.draw(guarantees())
    q = data.draw(st.floats(0.01, 0.99))
    (p,) = on_cap(guarantee, (q,), guarantee.level)
    first = data.draw(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)))
    # What is bet on in the second chunk is an arbitrary function of the first: one pair of estimates for each outcome.
    second = {outcome: data.draw(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99))) for outcome in range(4)}
    cells = {(1, 0): 1 - p, (0, 1): p}, {(1, 0): 1 - q, (0, 1): q}
    expected = 0.0
    for (x1, a), (y1, b), (x2, c), (y2, d) in itertools.product(*(law_.items() for law_ in (*cells, *cells))):
        wealth = Wealth(guarantee, np.array([guarantee.level]))
        wealth.bet(Stake(0, 0, (first[0],), (first[1],), x1, y1))
        mine = second[2 * x1[1] + y1[1]]
        wealth.bet(Stake(0, 0, (mine[0],), (mine[1],), x2, y2))
        expected += a * b * c * d * math.exp(wealth.current[0])
    assert expected <= 1 + ROUNDING


# --------------------------------------------------------------------------------------- limits

EXTREMES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-300, 1e-12, 1 - 1e-12, 1 - 2**-53]))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_factors_are_numbers_whatever_the_estimates_and_counts(data: st.DataObject) -> None:
    guarantee = data.draw(guarantees())
    k = data.draw(st.integers(1, 3))
    counts = st.tuples(*([st.integers(0, 10**6)] * (k + 1)))
    p, q = data.draw(nested(k, EXTREMES)), data.draw(nested(k, EXTREMES))
    stake = Stake(0, data.draw(st.integers(0, k - 1)), p, q, data.draw(counts), data.draw(counts))
    logs = log_factors([stake], guarantee, np.array([0.01, guarantee.level, 20.0]))[0]
    assert logs.shape == (*LOG_PRIOR.shape, 3)
    assert not np.isnan(logs).any()
    assert np.all(logs < math.inf)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_wealth_is_never_lost_for_good(data: st.DataObject) -> None:
    guarantee = data.draw(guarantees())
    p, q = data.draw(st.floats(0.01, 0.99)), data.draw(st.floats(0.01, 0.99))
    wealth = Wealth(guarantee, np.array([guarantee.level]))
    for _ in range(3):
        wealth.bet(Stake(0, 0, (p,), (q,), (5, 0), (0, 5)))
        assert math.isfinite(wealth.current[0])


def test_nothing_is_bet_where_the_estimates_are_inside_the_null() -> None:
    stake = Stake(0, 0, (0.5, 0.3), (0.5, 0.3), (3, 4, 5), (5, 4, 3))
    assert np.all(log_factors([stake], PureDP(1.0), np.array([0.0, 1.0]))[0] == 0)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(1.0)], ids=str)
def test_the_largest_bet_gains_all_that_fully_distinguishable_outputs_allow(guarantee: Guarantee) -> None:
    # By symmetry the projection of (0.999, 0.001) is the point with p0 = 1 - q0, where the gain a draw is least.
    stake = Stake(0, 0, (0.999,), (0.001,), (0, 7), (7, 0))
    gain = log_factors([stake], guarantee, np.array([guarantee.level]))[0][0, LARGEST, 0]
    q0 = kink(guarantee)
    p0 = on_cap(guarantee, (q0,), guarantee.level)[0]
    assert gain == pytest.approx(7 * (-math.log(p0) - math.log(1 - q0)), rel=1e-6)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), GaussianDP(1.0)], ids=str)
def test_the_largest_bet_dies_of_one_impossible_draw_and_no_other_does(guarantee: Guarantee) -> None:
    stake = Stake(0, 0, (0.5,), (0.01,), (5, 5), (9, 1))
    logs = log_factors([stake], guarantee, np.array([guarantee.level]))[0][:, :, 0]
    assert np.all(np.isneginf(logs[:, LARGEST]))
    assert np.all(np.isfinite(np.delete(logs, LARGEST, axis=1)))


@pytest.mark.parametrize("n", [20, 200])
def test_an_event_impossible_under_one_dataset_is_refuted_at_every_level_within_reach(n: int) -> None:
    wealth = Wealth(PureDP(1.0), np.array([1.0]))
    wealth.bet(Stake(0, 0, (0.3,), (1 / (n + 2),), (0, 0), (0, 0)))
    before = wealth.current[0]
    inside = round(0.3 * n)
    wealth.bet(Stake(0, 0, (0.3,), (1 / (n + 2),), (n - inside, inside), (n, 0)))
    # A likelihood ratio of the estimates gains n KL(p || p0) + n KL(q || q0), here more than 0.1 n; the plug-in expert
    # of weight 0.2 has all but rounding and a cut at 0.98 of it.
    assert wealth.current[0] - before > 0.1 * n + math.log(0.2)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_sharing_wealth_among_the_experts_keeps_the_total(data: st.DataObject) -> None:
    guarantee = data.draw(guarantees())
    level = guarantee.level * np.array([0.5, 1.0])
    wealth = Wealth(guarantee, level)
    wealth.bet(Stake(0, 0, (0.8,), (0.1,), (3, 7), (8, 2)))
    before = wealth.current.copy()
    for _ in range(5):
        wealth.bet(Stake(0, 0, (0.5,), (0.5,), (3, 7), (8, 2)))  # inside every null: nothing is bet, only shared
    np.testing.assert_allclose(wealth.current, before, atol=1e-12)


def test_an_expert_that_lost_everything_comes_back() -> None:
    level = np.array([1.0])
    ruined, fresh = Wealth(PureDP(1.0), level), Wealth(PureDP(1.0), level)
    ruined.bet(Stake(0, 0, (0.999,), (0.001,), (1, 0), (0, 1)))  # the largest bet is lost
    before = ruined.current[0]
    win = Stake(0, 0, (0.999,), (0.001,), (0, 30), (30, 0))
    ruined.bet(win)
    fresh.bet(win)
    # One hundredth is shared again by the prior, so no more than ln 100 nats are lost for good.
    assert ruined.current[0] - before >= fresh.current[0] - math.log(100) - 1e-9


def test_thousands_of_chunks_cost_a_few_nats_beside_the_best_expert() -> None:
    # The pairs of a long list keep the claim, and each has an event that was lucky before.
    guarantee, level, rng = PureDP(1.0), np.array([1.0]), np.random.default_rng(0)
    chunks = 5_000
    stakes = [
        Stake(0, 0, (0.55,), (0.15,), (10 - int(inside), int(inside)), (8, 2))
        for inside in rng.binomial(10, 0.5, chunks)
    ]
    alone = log_factors(stakes, guarantee, level)[:, :, :, 0].sum(axis=0) + LOG_PRIOR
    wealth = Wealth(guarantee, level)
    for stake in stakes:
        wealth.bet(stake)
    shared = -sum(math.log1p(-min(0.01, 1 / k)) for k in range(1, chunks + 1))
    assert shared < 5.0  # 50 with a hundredth after each
    assert wealth.current[0] >= alone.max() - shared - 1e-6


def test_a_chunk_without_a_stake_changes_nothing() -> None:
    wealth = Wealth(PureDP(1.0), np.array([1.0]))
    wealth.bet(None)
    assert (wealth.current[0], wealth.best[0]) == (0.0, 0.0)


def test_the_running_maximum_stays() -> None:
    wealth = Wealth(PureDP(1.0), np.array([1.0]))
    wealth.bet(Stake(0, 0, (0.9,), (0.1,), (1, 9), (9, 1)))
    top = wealth.current[0]
    wealth.bet(Stake(0, 0, (0.9,), (0.1,), (9, 1), (1, 9)))
    assert wealth.best[0] == top > wealth.current[0]


# ----------------------------------------------------------------------------------- grid, bound


def history(seed: int, guarantee: Guarantee, p: Sequence[float], q: Sequence[float], chunks: int) -> list[Chunk]:
    """Chunks of a process with the given probabilities of nested events, estimated as it goes."""
    rng = np.random.default_rng(seed)
    found: list[Chunk] = []
    inside_p, inside_q, n = np.zeros(len(p)), np.zeros(len(q)), 0
    for k in range(chunks):
        size = 20 + 10 * k
        x = rng.multinomial(size, -np.diff([1.0, *p, 0.0]))
        y = rng.multinomial(size, -np.diff([1.0, *q, 0.0]))
        estimates = tuple(((inside_p + 1) / (n + 2)).tolist()), tuple(((inside_q + 1) / (n + 2)).tolist())
        best, counts = k % len(p), (tuple(x.tolist()), tuple(y.tolist()))
        few, spread = ((best,), 0.1 * k) if len(p) > 1 and k % 3 == 0 else ((), 0.0)
        stake = None if k == 0 else Stake(0, best, *estimates, *counts, few, spread, (k % 2) * (n + 2.0))
        found.append(Chunk(0, size, stake))
        inside_p += np.cumsum(x[::-1])[::-1][1:]
        inside_q += np.cumsum(y[::-1])[::-1][1:]
        n += size
    return found


HISTORIES: list[tuple[Guarantee, tuple[float, ...], tuple[float, ...]]] = [
    (PureDP(1.0), (0.73,), (0.27,)),
    (PureDP(1.0), (0.9, 0.5), (0.3, 0.05)),
    (PureDP(0.5), (0.5, 0.4), (0.5, 0.4)),
    (ApproxDP(1.0, 0.01), (0.9, 0.5), (0.3, 0.05)),
    (GaussianDP(1.0), (0.9, 0.5), (0.3, 0.05)),
    (PureDP(1.0), (0.99,), (0.0,)),
]


@pytest.mark.parametrize(("guarantee", "p", "q"), HISTORIES)
def test_wealth_on_a_grid_is_the_wealth_at_each_level(
    guarantee: Guarantee, p: tuple[float, ...], q: tuple[float, ...]
) -> None:
    grid = np.array([0.01, 0.3, 1.0, 2.0, 7.0])
    chunks = history(3, guarantee, p, q, 12)
    together = Wealth(guarantee, grid)
    alone = [Wealth(guarantee, np.array([level])) for level in grid]
    for chunk in chunks:
        together.bet(chunk.stake)
        for wealth in alone:
            wealth.bet(chunk.stake)
        # The last bits may differ: vectorised logarithms round otherwise than scalar ones.
        np.testing.assert_allclose(together.current, [w.current[0] for w in alone], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(together.best, [w.best[0] for w in alone], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(1.0), ZCDP(0.5)], ids=str)
def test_chunks_played_together_are_those_played_one_by_one(guarantee: Guarantee) -> None:
    one, two = (history(5, guarantee, p, q, 30) for p, q in (((0.9,), (0.3,)), ((0.9, 0.5), (0.3, 0.05))))
    stakes = [chunk.stake for pair in zip(one, two, strict=True) for chunk in pair]
    levels = guarantee.level * np.array([0.2, 0.4, 0.6])
    alone, together = Wealth(guarantee, levels), Wealth(guarantee, levels)
    enough, played, path = 350.0, 0, []
    while alone.best.min() < enough:
        alone.bet(stakes[played])
        path.append(alone.best)
        played += 1
    assert 20 < played < len(stakes)
    together.bet_all(StakesInOrder(stakes), enough)
    for k, best in enumerate(together.best.tolist()):  # a level that is decided may be played no further
        assert best >= enough
        assert best in [bests[k] for bests in path]
    for stake in stakes[played:]:
        alone.bet(stake)
    together = Wealth(guarantee, levels)
    together.bet_all(StakesInOrder(stakes))
    np.testing.assert_array_equal(together.current, alone.current)
    np.testing.assert_array_equal(together.best, alone.best)


def bound_on_the_full_grid(chunks: Sequence[Chunk], guarantee: Guarantee, grid: Array, alpha: float) -> float:
    wealth = Wealth(guarantee, grid)
    for chunk in chunks:
        wealth.bet(chunk.stake)
    bound = 0.0
    for level, best in zip(grid.tolist(), wealth.best.tolist(), strict=True):
        if best < math.log(1 / alpha):
            break
        bound = level
    return bound


@pytest.mark.parametrize(("guarantee", "p", "q"), HISTORIES)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("chunks", [1, 3, 12, 40])
def test_the_lazy_lower_bound_is_that_of_the_full_grid(
    guarantee: Guarantee, p: tuple[float, ...], q: tuple[float, ...], alpha: float, chunks: int
) -> None:
    past = history(chunks, guarantee, p, q, chunks)
    grid = level_grid(guarantee.level)
    assert lower_bound(past, guarantee, grid, alpha) == bound_on_the_full_grid(past, guarantee, grid, alpha)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(HISTORIES), st.integers(1, 130), st.floats(0.001, 0.9))
def test_the_lazy_lower_bound_is_that_of_the_full_grid_on_grids_of_any_size(
    seed: int, what: tuple[Guarantee, tuple[float, ...], tuple[float, ...]], size: int, alpha: float
) -> None:
    guarantee, p, q = what
    past = history(seed, guarantee, p, q, 8)
    grid = np.linspace(0.01, 2.0, size)
    assert lower_bound(past, guarantee, grid, alpha) == bound_on_the_full_grid(past, guarantee, grid, alpha)


def test_the_cases_above_have_bounds_at_zero_inside_and_at_the_end_of_the_grid() -> None:
    grid = np.linspace(0.01, 2.0, 100)
    bounds = [lower_bound(history(1, g, p, q, 20), g, grid, 0.05) for g, p, q in HISTORIES]
    assert min(bounds) == 0.0
    assert max(bounds) == 2.0
    assert any(0.01 < bound < 1.99 for bound in bounds)


def test_without_draws_the_bound_is_zero() -> None:
    assert lower_bound([], PureDP(1.0), level_grid(1.0), 0.05) == 0.0


@pytest.mark.parametrize("claimed", [0.0, 0.01, 0.1, 1.0, 1 / 3, 2.5, 8.0, 25.0])
def test_the_grid_holds_the_claim_and_is_fine_around_it(claimed: float) -> None:
    grid = level_grid(claimed)
    assert np.all(np.diff(grid) > 0)
    assert grid[0] > 0
    if claimed > 0:
        assert claimed in grid
        near = grid[(grid >= 0.9 * claimed) & (grid <= 1.1 * claimed)]
        edges = np.concatenate([[0.9 * claimed], near, [1.1 * claimed]])
        assert np.diff(edges).max() <= 0.005 + 1e-8  # the grid is rounded to 9 digits


@settings(deadline=None)
@given(st.floats(1e-3, 50.0))
def test_the_grid_is_increasing_positive_and_reaches_what_matters(claimed: float) -> None:
    grid = level_grid(claimed)
    assert np.all(np.diff(grid) > 0)
    assert 0 < grid[0] <= claimed / 10
    assert claimed in grid
    assert grid[-1] >= 4 * claimed
    np.testing.assert_array_equal(grid, level_grid(claimed))


@pytest.mark.parametrize("claimed", [1e3, 1e7, 1e12, 1e300])
def test_the_grid_of_a_level_of_any_size_fits_into_memory(claimed: float) -> None:
    grid = level_grid(claimed)
    assert len(grid) < 100_000
    assert claimed in grid
    near = grid[(grid > 0.9 * claimed) & (grid < 1.1 * claimed)]
    assert np.diff(near).max() < 1e-5 * claimed
