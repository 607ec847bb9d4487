"""Packings: bounds, exact probabilities, the mechanisms of the lemma, and false alarms at a margin near zero.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.adversaries.game import Game, run_game
from auditor.audits.adversaries.packing import Packing
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee, PureDP
from auditor.results import Verdict
from benchmarks.families import RowTellingTable
from mechanisms.additive_noise.column_counts import (
    MUTANTS,
    ColumnCounts,
    ConstantCounts,
    GaussianCounts,
    LaplaceCounts,
    LargestNormCounts,
)
from mechanisms.lower_bounds.noisy_counts import UniformCounts
from mechanisms.lower_bounds.packing import RowNames, RowNamesOfMany, certified

RNG = np.random.default_rng(20240602)
LN2 = math.log(2.0)


# -------------------------------------------------------------------------------- the adversary


def test_pure_privacy_wins_at_most_so_often() -> None:
    played = Packing(rows=100, columns=100)
    assert played.most(PureDP(0.5), 0.5) == pytest.approx(math.exp(50 - 100 * LN2))
    assert played.most(PureDP(0.5), 0.7) == 1.0
    assert Packing(1, 3).most(ApproxDP(1.0, 0.1), 1.0) == pytest.approx(math.e / 8 + 0.1)


def test_a_win_needs_every_count_within_less_than_half() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    released = np.array([[4.0, 0.0], [2.1, 1.9], [2.0, 0.0]])
    assert Packing(4, 2).won(released, rows).tolist() == [True, True, False]


def test_games() -> None:
    played = Packing(20, 8)
    assert Game(UniformCounts(9.0), played)(None, 50, RNG).tolist() == [1.0] * 50
    assert Game(ConstantCounts(8, 10.0), played)(None, 50, RNG).tolist() == [0.0] * 50


def test_counts_are_put_inside_before_a_win_is_judged() -> None:
    """Noise away from the middle does no harm: (1 - P[Z <= -10])^8 of Laplace noise."""
    target = LaplaceCounts(8, 2.0)
    below = target.base ** (1 - 10) / (target.base + 1)
    won = round(float(Game(target, Packing(20, 8))(None, 4000, RNG).sum()))
    assert stats.binomtest(won, 4000, (1 - below) ** 8).pvalue > 1e-6


@pytest.mark.parametrize(("rows", "columns", "said"), [(0, 3, "rows.*got 0"), (3, 2.5, "columns.*got 2.5")])
def test_bad_parameters_are_refused(rows: Any, columns: Any, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        Packing(rows, columns)


# -------------------------------------------------------------------------------- the mechanisms


MECHANISMS = [LaplaceCounts(3, 2.0), LaplaceCounts(6, 1.0), GaussianCounts(4, 1.0, 0.1), LargestNormCounts(4, 1.0)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("radius", [1.0, 2.5, 4.0])
def test_probabilities_of_errors_are_those_of_samples(mechanism: Any, radius: float) -> None:
    table = RNG.integers(0, 2, (7, mechanism.columns))
    off = np.abs(mechanism(table, 20_000, RNG) - table.sum(axis=0)).max(axis=1)
    assert stats.binomtest(int((off < radius).sum()), 20_000, mechanism.inside(radius)).pvalue > 1e-6


@pytest.mark.parametrize("mechanism", [*MECHANISMS, ConstantCounts(3, 2.0)], ids=repr)
def test_one_release_of_each_table(mechanism: Any) -> None:
    stack = RNG.integers(0, 2, (30, 5, mechanism.columns), dtype=np.int8)
    released = mechanism.each(stack, np.random.default_rng(4))
    again = mechanism.each(np.zeros_like(stack), np.random.default_rng(4))
    wanted = 0 if isinstance(mechanism, ConstantCounts) else stack.sum(axis=1)
    assert np.allclose(released - again, wanted)
    with pytest.raises(ValueError, match="at least one column"):
        type(mechanism)(
            **{**mechanism.__dict__, "columns": 0}
            if not hasattr(mechanism, "radii")
            else {"columns": 0, "epsilon": 1.0}
        )


def test_the_query_counts_columns() -> None:
    table = np.array([[1, 0, 1], [1, 0, 0]])
    assert ColumnCounts(3)(table).tolist() == [2.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="tables of 2 columns"):
        ColumnCounts(2)(table)


def test_the_law_of_the_plain_mechanism_is_that_of_the_release() -> None:
    mechanism = LaplaceCounts(2, 1.0)
    table = np.array([[1, 0], [1, 1]])
    assert mechanism.plain.base(2) == mechanism.base
    one = np.random.default_rng(5)
    other = np.random.default_rng(5)
    assert np.array_equal(mechanism.plain(table, 50, one), mechanism(table, 50, other))


@pytest.mark.parametrize(("columns", "epsilon"), [(1, 0.7), (2, 1.3), (3, 0.9)])
def test_noise_by_the_largest_norm_has_its_mass(columns: int, epsilon: float) -> None:
    """The mixture of cubes, summed up, is e^(-epsilon max |z|) over its sum."""
    mechanism = LargestNormCounts(columns, epsilon)
    r = np.arange(len(mechanism.radii))
    cubes = mechanism.radii / (2.0 * r + 1) ** columns
    mass = np.cumsum(cubes[::-1])[::-1]  # of one z with max |z| = r
    shells = (2.0 * r + 1) ** columns - np.maximum(2.0 * r - 1, 0) ** columns
    wanted = np.exp(-epsilon * r) / (shells * np.exp(-epsilon * r)).sum()
    # The table of radii ends where a part of 1e-18 is left.
    assert mass[:20] == pytest.approx(wanted[:20], rel=1e-9)
    z = mechanism.noise(20_000, RNG)
    corner = int((z == 1).all(axis=1).sum())
    assert stats.binomtest(corner, 20_000, float(wanted[1])).pvalue > 1e-6


def test_the_catalogues_figures() -> None:
    """Std 1.086 sqrt(k), p = 0.9996 and 0.85 (continuous noise; integers lose the last half of a step), levels."""
    one, quarter = GaussianCounts(100, 1.0, 0.1), GaussianCounts(200, 0.25, 0.1)
    assert one.sigma / 10 == pytest.approx(1.086, abs=5e-4)
    assert one.inside(50) == pytest.approx(0.9996, abs=2e-4)
    assert quarter.inside(100) == pytest.approx(0.85, abs=0.02)
    assert certified(math.log(one.inside(50)), 100 * LN2, 100) == pytest.approx(0.693, abs=5e-4)
    assert certified(math.log(quarter.inside(100)), 200 * LN2, 200) == pytest.approx(0.692, abs=5e-4)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        assert certified(math.log(LaplaceCounts(100, epsilon).inside(50)), 100 * LN2, 100) < 0.24


def test_the_mutant_is_noise_for_approximate_privacy() -> None:
    built = MUTANTS["gaussian_presented_as_pure"].build(LaplaceCounts(50, 0.5))
    assert built == GaussianCounts(50, 1.0, 0.1)


# ------------------------------------------------------------------------------ naming the rows


def histograms(rows: int, kinds: int) -> list[tuple[int, ...]]:
    return [c for c in itertools.product(range(rows + 1), repeat=kinds) if sum(c) == rows]


def largest_ratio(law: Any, sizes: range, kinds: int) -> float:
    """Largest log ratio of a probability between tables that differ by one more row."""
    found = 0.0
    for size in sizes:
        for table in histograms(size, kinds):
            for i in range(kinds):
                more = tuple(c + (j == i) for j, c in enumerate(table))
                found = max(found, float(np.abs(np.log(law(more) / law(table))).max()))
    return found


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_names_in_proportion_are_private_on_all_tables(epsilon: float) -> None:
    def law(table: tuple[int, ...]) -> Any:
        weights = np.exp(epsilon * np.array(table))
        return weights / weights.sum()

    assert 0.9 * epsilon < largest_ratio(law, range(9), 4) <= epsilon * (1 + 1e-12)
    for rows in (1, 5):
        assert law((rows, 0, 0, 0))[0] == pytest.approx(math.exp(RowNames(2, epsilon).log_right(rows)))


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_names_on_many_rows_are_private_on_those_tables(epsilon: float) -> None:
    mechanism = RowNamesOfMany(2, 3, epsilon)

    def law(table: tuple[int, ...]) -> Any:
        named = [mechanism.named(c, sum(table)) for c in table]
        return np.array([*named, 1 - sum(named)])

    assert largest_ratio(law, range(3, 10), 4) == pytest.approx(epsilon, rel=1e-9)
    with pytest.raises(ValueError, match="at least 3 rows, got 2"):
        mechanism.named(1, 2)


def test_the_distance_is_from_one_dataset_to_all() -> None:
    """Counting k for 2 k accuses names on many rows, and is right where the empty table is allowed."""
    for epsilon in (0.2, 0.4):
        many = RowNamesOfMany(60, 60, epsilon).log_right()
        assert certified(many, 60 * LN2, 60) > 1.5 * epsilon > epsilon >= certified(many, 60 * LN2, 120)
        assert certified(RowNames(60, epsilon).log_right(60), 60 * LN2, 60) <= epsilon * (1 + 1e-12)
    assert certified(-math.inf, 60 * LN2, 60) == 0.0


# --------------------------------------------------------------- false alarms, at hardly a margin


#: Bounds are attained up to a part of what they allow: 2 % for pure, 1e-4 for approximate privacy.
_LEVEL = math.log(0.02 * 2**16)
NULLS: list[tuple[Guarantee, float]] = [
    (PureDP(_LEVEL), math.exp(_LEVEL) / (math.exp(_LEVEL) + 2**16 - 1)),
    (ApproxDP(1.0, 0.1), 0.1),
]


@pytest.mark.parametrize(("guarantee", "probability"), NULLS, ids=["pure", "approximate"])
def test_names_at_the_bound_are_rarely_an_alarm(guarantee: Guarantee, probability: float) -> None:
    played = Packing(1, 16)
    assert 0.979 < probability / played.most(guarantee, guarantee.level) <= 1
    alpha, runs, alarms, above = 0.1, 100, 0, 0
    for seed in range(runs):
        settings = Settings(alpha=alpha, draws=400, stop="budget", seed=seed, independence=False)
        found = run_game(Game(RowTellingTable(probability), played), guarantee, settings, Question())
        alarms += found.verdict == Verdict.VIOLATION
        assert found.lower_bound is not None
        above += found.lower_bound > guarantee.level
    assert max(alarms, above) <= stats.binom.isf(1e-6, runs, alpha)


@pytest.mark.parametrize("columns", [1_074, 1_080, 2_000])
def test_a_packing_of_more_datasets_than_a_double_holds_has_a_bound_that_holds(columns: int) -> None:
    game = Packing(100, columns)
    # A hundred steps of mu = 1 make the mean of a Gaussian 100 standard deviations: everything is allowed.
    assert game.most(GaussianDP(1.0), 1.0) == 1.0
    # A bound below the smallest normal double is that double.
    exact = math.exp(max(100 * 1.0 - columns * math.log(2), math.log(sys.float_info.min)))
    assert 0 < exact <= game.most(PureDP(1.0), 1.0) * (1 + 1e-9)
