"""Small databases of labelled bits, and neighbours of them, for A*; used by `amplified`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.datasets import Pair
from mechanisms.learning.boosting import TrainTestSplit

Rows = NDArray[np.uint8]


def rows_of(*rows: tuple[int, ...]) -> Rows:
    return np.array(rows, dtype=np.uint8)


def flipped(data: Rows, index: int, name: str) -> Pair:
    """The label of one row changes."""
    other = data.copy()
    other[index, -1] ^= 1
    return Pair(data, other, name)


def one_bit(split: TrainTestSplit) -> Rows:
    """Rows (1, 0) throughout: consistent, and every row tells the two parities of one bit apart."""
    return np.tile(rows_of((1, 0)), (split.needed, 1))


def one_block_counts(split: TrainTestSplit, at: int) -> Pair:
    """All blocks but the first say ``0 = 1``, and no test row tells parities apart; row `at` of the first block moves.

    The other runs have no hypothesis unless none of their rows is taken, and "no hypothesis" errs on every test row.
    """
    data = np.zeros((split.needed, 3), dtype=np.uint8)
    data[split.rows : split.rounds * split.rows, -1] = 1
    data[at, :-1] = 1
    return flipped(data, at, f"row {at} of the only block with hypotheses changes its label")


def boundaries_of(split: TrainTestSplit) -> list[Pair]:
    """Last row of a block, first of the next, first row of the test part: each changes its label."""
    data = one_bit(split)
    data[1, -1] = 1  # an inconsistent block
    return [
        flipped(data, split.rows - 1, "the last row of the first block"),
        flipped(data, split.rows, "the first row of the second block"),
        flipped(data, split.rounds * split.rows, "the first test row"),
        flipped(data, split.needed - 1, "the last test row"),
    ]
