"""Parallel composition: mechanisms on disjoint blocks of rows, and its mutants.

Blocks are ranges of positions that are fixed and public. Neighbours replace one row, which lies in one block; given
past answers, the distributions of the answers from all other blocks are the same. So the transcript costs the largest
level of a block, also where what is asked of a block depends on the answers before it.

Source: document 002, Lemma 4.5 and Theorem 5.7, which use it without a statement; catalogue 002,
parallel_composition_disjoint.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.datasets.pandas_types import is_frame
from auditor.datasets.rows import slice_rows
from auditor.privacy.exact import ProductLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, lattice_law, two_sided_geometric
from mechanisms.base.queries import Count, column_values


@dataclass(frozen=True)
class _Blocks:
    """What blocks fixed in advance share with their mutants, which replace the rows of a block or its answer."""

    count: Count
    ends: Sequence[int]
    levels: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(self.ends))
        object.__setattr__(self, "levels", tuple(self.levels))
        require(self.count.relation == "replace_one", "a count under replace_one", self.count.relation)
        require(len(self.ends) > 0, "at least one block", self.ends)
        increasing = all(low < high for low, high in zip((0, *self.ends[:-1]), self.ends, strict=True))
        require(increasing, "increasing ends of blocks, above 0", self.ends)
        require(len(self.levels) == len(self.ends), f"{len(self.ends)} levels", self.levels)
        for level in self.levels:
            require_positive("level of a block", level)

    @property
    def epsilon(self) -> float:
        """The claim: the largest level of a block."""
        return max(self.levels)

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """First row of each block, and the row after its last."""
        return tuple(zip((0, *self.ends[:-1]), self.ends, strict=True))

    def rows(self, data: Dataset, index: int) -> Dataset:
        """Rows of a block; a row may be repeated."""
        return slice_rows(data, *self.blocks[index])

    def centres(self, data: Dataset) -> IntArray:
        """Count of each block, shape (blocks,)."""
        require(len(data) >= self.ends[-1], f"at least {self.ends[-1]} rows", len(data))
        return np.array([int(self.count(self.rows(data, i))) for i in range(len(self.ends))], dtype=np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> Any:
        """Draw `n` transcripts, shape (n, blocks)."""
        require_draws(n)
        noise = [two_sided_geometric(base_for(level, 1), n, rng) for level in self.levels]
        return self.centres(data) + np.stack(noise, axis=1)

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: two-sided geometric sums of blocks."""
        found = zip(self.centres(data), self.levels, strict=True)
        return ProductLaw(tuple(lattice_law(centre, base_for(level, 1)) for centre, level in found))


@dataclass(frozen=True)
class DisjointBlocks(_Blocks):
    """A noisy count of each of several blocks of rows, with a level of its own for each.

    Parameters
    ----------
    count : Count
        Under replace_one.
    ends : sequence of int
        Block i is the rows from the end of block i - 1 (0 for the first) to ``ends[i] - 1``; rows beyond are not read.
    levels : sequence of float
        Level of each block's count; integer noise of base ``e^level``.

    Raises
    ------
    ValueError
        If the ends do not increase, there is not one level for each, or the data are short.
    """


@dataclass(frozen=True)
class AdaptiveBlocks:
    """Each block is asked one of two counts, the second one where the last answer was above a threshold.

    Parameters
    ----------
    low, high : Count
        Under replace_one; `low` is asked of the first block.
    ends, levels : sequences
        See `DisjointBlocks`.
    threshold : int
        After an answer above it `high` is asked, `low` otherwise.
    """

    low: Count
    high: Count
    ends: Sequence[int]
    levels: Sequence[float]
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(self.ends))
        object.__setattr__(self, "levels", tuple(self.levels))
        self.parts()

    @property
    def epsilon(self) -> float:
        """The claim: the largest level of a block."""
        return max(self.levels)

    def parts(self) -> tuple[DisjointBlocks, DisjointBlocks]:
        """Return the blocks with each of the counts."""
        low, high = (DisjointBlocks(count, self.ends, self.levels) for count in (self.low, self.high))
        return low, high

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` transcripts; int64 of shape (n, blocks)."""
        require_draws(n)
        low, high = (one.centres(data) for one in self.parts())
        answers = np.empty((n, len(self.ends)), dtype=np.int64)
        asked = np.zeros(n, dtype=np.bool_)
        for i, level in enumerate(self.levels):
            answers[:, i] = np.where(asked, high[i], low[i]) + two_sided_geometric(base_for(level, 1), n, rng)
            asked = answers[:, i] > self.threshold
        return answers


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class OverlappingBlocks(_Blocks):
    """Both ends of a range are taken to be inside: the first row of a block is also the last of the one before."""

    def rows(self, data: Dataset, index: int) -> Dataset:
        """Rows of a block, and one more."""
        low, high = self.blocks[index]
        return slice_rows(data, low, high + (index < len(self.ends) - 1))


@dataclass(frozen=True)
class BlocksOfFilteredRows(_Blocks):
    """Rows that are not valid are dropped before the data are cut: one row shifts all the cuts after it.

    Parameters as in `DisjointBlocks`, and ``valid``, a Count that says which rows are.
    """

    valid: Count = field(default_factory=Count)

    def rows(self, data: Dataset, index: int) -> Dataset:
        """Rows of a block of the valid ones; short or empty where there are not so many."""
        kept = data.loc[self.valid.matches(data)] if is_frame(data) else data[self.valid.matches(data)]
        return slice_rows(kept, *self.blocks[index])


@dataclass(frozen=True)
class DeduplicatedBlocks:
    """Rows with the same value of a column are taken for one before the data are cut, as far as they go.

    Parameters
    ----------
    blocks : DisjointBlocks
        How what is left is cut.
    by : hashable, optional
        The column; see `queries.column_values`.
    """

    blocks: DisjointBlocks
    by: Hashable | None = None

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` transcripts; float64 of shape (n, blocks), NaN for a block that there are no rows for."""
        blocks = self.blocks
        first = np.sort(np.unique(column_values(data, self.by), return_index=True)[1])
        kept = data.iloc[first] if is_frame(data) else data[first]
        answers = np.full((n, len(blocks.ends)), math.nan)
        there = sum(end <= len(kept) for end in blocks.ends)
        if there:
            cut = DisjointBlocks(blocks.count, blocks.ends[:there], blocks.levels[:there])
            answers[:, :there] = cut(kept, n, rng)
        return answers


@dataclass(frozen=True)
class BlocksDrawnWithReplacement(_Blocks):
    """Positions of each block are drawn from all rows, with replacement; the seed is fixed and public.

    Parameters as in `DisjointBlocks`, and ``seed``.
    """

    seed: int = 0

    def positions(self, index: int) -> IntArray:
        """Positions of a block, as many as it has rows; a row may be there more than once."""
        low, high = self.blocks[index]
        own = np.random.default_rng([self.seed, index])
        return own.integers(0, self.ends[-1], high - low)

    def rows(self, data: Dataset, index: int) -> Dataset:
        """Rows at these positions."""
        positions = self.positions(index)
        return data.iloc[positions] if is_frame(data) else data[positions]

    def costs(self) -> FloatArray:
        """Level of each row: by how much it moves each block's answer, times the block's level; shape (rows,)."""
        times = [np.bincount(self.positions(i), minlength=self.ends[-1]) for i in range(len(self.ends))]
        return np.asarray(np.array(self.levels) @ np.array(times), dtype=np.float64)


@dataclass(frozen=True)
class _BuildBlocks:
    cls: Any
    more: tuple[Any, ...] = ()

    def __call__(self, base: DisjointBlocks) -> Any:
        """Return the mutant of `base`."""
        return self.cls(base.count, base.ends, base.levels, *self.more)


def _two_blocks(base: DisjointBlocks) -> float:
    return max(a + b for a, b in zip(base.levels[:-1], base.levels[1:], strict=True))


def _all_blocks(base: DisjointBlocks) -> float:
    return math.fsum(base.levels)


def _most_drawn(base: DisjointBlocks) -> float:
    return float(BlocksDrawnWithReplacement(base.count, base.ends, base.levels).costs().max())


def filtered_by(valid: Count) -> Mutant[DisjointBlocks]:
    """Mutant that drops rows that are not valid before it cuts."""
    return Mutant(
        "data_dependent_blocks",
        _BuildBlocks(BlocksOfFilteredRows, (valid,)),
        _all_blocks,
        "violation",
        "invalid rows are dropped before the data are cut: the sum of all levels, where every cut shifts over a row "
        "that counts",
    )


def deduplicated_by(column: Hashable) -> Mutant[DisjointBlocks]:
    """Mutant that takes rows with the same value for one before it cuts."""
    return Mutant(
        "data_dependent_blocks",
        lambda base: DeduplicatedBlocks(base, column),
        unbounded,
        "violation",
        "the number of blocks depends on how many different values there are",
    )


MUTANTS: dict[str, Mutant[DisjointBlocks]] = tabulate_mutants(
    Mutant(
        "overlapping_blocks",
        _BuildBlocks(OverlappingBlocks),
        _two_blocks,
        "violation",
        "off by one: the first row of a block is read by the block before it too, and costs both levels",
    ),
    Mutant(
        "blocks_with_replacement",
        _BuildBlocks(BlocksDrawnWithReplacement),
        _most_drawn,
        "violation",
        "positions drawn with replacement: the level is that of the row that was drawn most often",
    ),
)
