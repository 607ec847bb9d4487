"""Blocks of rows: their distributions, what one row costs wherever it stands, and the mutants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from auditor.privacy.exact import TwoSidedGeometricLaw
from mechanisms.base.queries import Count
from mechanisms.composition.disjoint_blocks import (
    MUTANTS,
    AdaptiveBlocks,
    BlocksDrawnWithReplacement,
    DisjointBlocks,
    deduplicated_by,
    filtered_by,
)
from tests.statistics import level_of

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

#: Rows of ones and zeros by turns, three blocks of four, and two rows beyond.
DATA = np.array([1.0, 0.0] * 7)
BLOCKS = DisjointBlocks(Count(low=1.0), (4, 8, 12), (0.5, 1.0, 0.75))


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def flipped(index: int, data: FloatArray = DATA) -> FloatArray:
    other = data.copy()
    other[index] = 1.0 - other[index]
    return other


def noise_pmf(a: float, k: np.ndarray[Any, Any]) -> FloatArray:
    return np.asarray(a ** -np.abs(k).astype(float) * (a - 1) / (a + 1))


def test_a_row_costs_the_level_of_its_block() -> None:
    for index in range(14):
        wanted = 0.0 if index >= 12 else BLOCKS.levels[index // 4]
        assert level_of(BLOCKS, DATA, flipped(index)) == pytest.approx(wanted, rel=1e-9)
    assert BLOCKS.epsilon == 1.0
    assert BLOCKS.blocks == ((0, 4), (4, 8), (8, 12))


@pytest.mark.parametrize("name", ["reference", *MUTANTS, "data_dependent_blocks"])
def test_draws_follow_the_law(name: str) -> None:
    n, data = 20_000, DATA
    mechanism: Any = BLOCKS
    if name in MUTANTS:
        mechanism = MUTANTS[name].build(BLOCKS)
    elif name != "reference":
        mechanism, data = filtered_by(Count(high=1.0)).build(BLOCKS), np.where(np.arange(14) == 5, 9.0, DATA)
    outputs, law = mechanism(data, n, rng(1)), mechanism.law(data)
    assert outputs.shape == (n, 3)
    k = np.arange(-4, 5)
    for column, part in zip(outputs.T, law.parts, strict=True):
        assert isinstance(part, TwoSidedGeometricLaw)
        mass = noise_pmf(part.a, k)
        mass[[0, -1]] += (1 - mass.sum()) / 2
        observed = np.bincount(np.clip(column - part.loc, -4, 4) + 4, minlength=9)
        assert mass.min() * n >= 50
        assert stats.chisquare(observed, n * mass).pvalue > ALARM / 4
    # Independent noises: in how many of the blocks it is at most 0, each with probability a / (a + 1).
    low = (outputs <= [part.loc for part in law.parts]) @ np.array([1, 2, 4])
    q = [part.a / (part.a + 1) for part in law.parts]
    wanted = [n * math.prod(q[i] if j >> i & 1 else 1 - q[i] for i in range(3)) for j in range(8)]
    assert stats.chisquare(np.bincount(low, minlength=8), wanted).pvalue > ALARM / 4


def test_a_table_and_an_array_are_the_same() -> None:
    table = pd.DataFrame({"v": DATA})
    named = DisjointBlocks(Count("v", low=1.0), BLOCKS.ends, BLOCKS.levels)
    assert named.law(table) == BLOCKS.law(DATA)
    for name in MUTANTS:
        ours: Any = MUTANTS[name].build(named)
        theirs: Any = MUTANTS[name].build(BLOCKS)
        assert ours.law(table) == theirs.law(DATA)


def test_an_adaptive_transcript_costs_the_largest_level_by_enumeration() -> None:
    # Two blocks on integers: log ratios of every pair of answers, with the noise of a second computation.
    low, high = Count(low=1.0), Count(low=0.0)
    mechanism = AdaptiveBlocks(low, high, (4, 8), (0.5, 1.0), 2)
    k = np.arange(-25, 35)

    def table(rows: FloatArray) -> FloatArray:
        first = noise_pmf(math.exp(0.5), k - (rows[:4] >= 1).sum())
        counts = np.where(k > 2, (rows[4:8] >= 0).sum(), (rows[4:8] >= 1).sum())
        second = noise_pmf(math.e, k[None, :] - counts[:, None])
        return np.asarray(first[:, None] * second)

    for index in (0, 3, 4, 7):
        other = DATA.copy()
        # A row that both counts count, against one that neither does.
        other[index] = -1.0
        base = DATA.copy()
        base[index] = 1.0
        ratio = np.abs(np.log(table(base) / table(other))).max()
        assert ratio == pytest.approx((0.5, 1.0)[index // 4], rel=1e-9)
    # And the draws: by cells of both answers.
    n = 40_000
    outputs = mechanism(DATA, n, rng(2))
    cells = np.clip(outputs, -1, 5) + 1
    observed = np.bincount(cells @ np.array([7, 1]), minlength=49)
    where = np.clip(k, -1, 5) + 1
    expected = np.bincount((7 * where[:, None] + where[None, :]).ravel(), (n * table(DATA)).ravel(), minlength=49)
    large = expected >= 50
    assert large.sum() > 20
    wanted = expected[large] * observed[large].sum() / expected[large].sum()
    assert stats.chisquare(observed[large], wanted).pvalue > ALARM


# ------------------------------------------------------------------------------------- mutants


def test_overlapping_blocks_share_their_border() -> None:
    mutant: Any = MUTANTS["overlapping_blocks"].build(BLOCKS)
    costs = [level_of(mutant, DATA, flipped(index)) for index in range(14)]
    assert costs == pytest.approx([0.5] * 4 + [1.5] + [1.0] * 3 + [1.75] + [0.75] * 3 + [0.0] * 2, rel=1e-9)
    stated = MUTANTS["overlapping_blocks"].true_level
    assert stated is not None
    assert stated(BLOCKS) == 1.75 == pytest.approx(max(costs), rel=1e-9)


def test_filtering_first_shifts_every_cut() -> None:
    # Rows 0, 4, 8, 12 are what the blocks lose and win: 0, 1, 0, 1. The first row is valid, or not.
    data = DATA.copy()
    data[[0, 4, 8, 12]] = [0.0, 1.0, 0.0, 1.0]
    other = data.copy()
    other[0] = 9.0
    mutant = filtered_by(Count(high=1.0))
    built: Any = mutant.build(BLOCKS)
    assert (built.centres(other) - built.centres(data)).tolist() == [1, -1, 1]
    assert mutant.true_level is not None
    assert level_of(built, data, other) == pytest.approx(2.25, rel=1e-9) == mutant.true_level(BLOCKS)
    # By position the same pair costs the first block's level.
    assert level_of(BLOCKS, data, other) <= 0.5 * (1 + 1e-9)
    # All rows valid: nothing is lost.
    assert built.law(data) == BLOCKS.law(data)


def test_deduplication_changes_the_number_of_blocks() -> None:
    values = np.arange(14.0)
    table = pd.DataFrame({"v": values, "w": values})
    repeated = table.assign(v=[*values[:13], 3.0])
    mutant = deduplicated_by("v")
    built = mutant.build(DisjointBlocks(Count("w", low=1.0), (4, 8, 14), (0.5, 1.0, 0.75)))
    full, short = np.asarray(built(table, 100, rng(3))), np.asarray(built(repeated, 100, rng(3)))
    assert not np.isnan(full).any()
    assert np.isnan(short[:, 2]).all()
    assert not np.isnan(short[:, :2]).any()
    assert mutant.true_level is not None
    assert mutant.true_level(BLOCKS) == math.inf
    # No row left for any block.
    assert np.isnan(np.asarray(built(table.assign(v=0.0), 5, rng(0)))).all()


def test_rows_drawn_again_and_again_cost_each_time() -> None:
    mutant: Any = MUTANTS["blocks_with_replacement"].build(BLOCKS)
    assert isinstance(mutant, BlocksDrawnWithReplacement)
    costs = mutant.costs()
    # Counted one by one.
    for index in range(12):
        times = [int((mutant.positions(i) == index).sum()) for i in range(3)]
        assert costs[index] == pytest.approx(sum(k * e for k, e in zip(times, BLOCKS.levels, strict=True)))
        assert level_of(mutant, DATA, flipped(index)) == pytest.approx(costs[index], rel=1e-9)
    assert costs.sum() == pytest.approx(4 * sum(BLOCKS.levels))
    stated = MUTANTS["blocks_with_replacement"].true_level
    assert stated is not None
    assert stated(BLOCKS) == costs.max() > BLOCKS.epsilon


def test_errors_show_the_value() -> None:
    count = Count(low=1.0)
    with pytest.raises(ValueError, match=r"expected at least 12 rows, got 11"):
        BLOCKS(DATA[:11], 1, rng(0))
    with pytest.raises(ValueError, match=r"expected increasing ends of blocks, above 0, got \(4, 4\)"):
        DisjointBlocks(count, (4, 4), (1.0, 1.0))
    with pytest.raises(ValueError, match=r"expected increasing ends of blocks, above 0, got \(0, 4\)"):
        DisjointBlocks(count, (0, 4), (1.0, 1.0))
    with pytest.raises(ValueError, match=r"expected at least one block, got \(\)"):
        DisjointBlocks(count, (), ())
    with pytest.raises(ValueError, match=r"expected 2 levels, got \(1\.0,\)"):
        DisjointBlocks(count, (4, 8), (1.0,))
    with pytest.raises(ValueError, match=r"expected a finite level of a block > 0, got -1\.0"):
        DisjointBlocks(count, (4,), (-1.0,))
    with pytest.raises(ValueError, match=r"expected a count under replace_one, got 'add_remove_one'"):
        DisjointBlocks(Count(low=1.0, relation="add_remove_one"), (4,), (1.0,))
    with pytest.raises(ValueError, match=r"expected 2 levels, got \(1\.0,\)"):
        AdaptiveBlocks(count, count, (4, 8), (1.0,), 0)
