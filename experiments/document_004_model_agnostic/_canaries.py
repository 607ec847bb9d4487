"""Pairs for the aggregation of votes: records whose chunks vote as they say, and nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.datasets import Pair
from mechanisms.base.mechanism import IntArray
from mechanisms.teacher_ensembles.aggregation_mutants import seed_of
from mechanisms.teacher_ensembles.aggregation_parts import FirstEntryMajority
from mechanisms.teacher_ensembles.vote_aggregation import ChunksByIdentity

# ------------------------------------------------------------------------------------------ echoes


def canary(others: Sequence[Sequence[int]], first: Sequence[int], second: Sequence[int], name: str) -> Pair:
    """Rows that are chunks by themselves, of which the first one changes."""
    x, y = (np.array([row, *others], dtype=np.int64) for row in (first, second))
    return Pair(x, y, name)


def two_labels() -> Pair:
    """11 votes against 2 eight times, and once: then 10 against 3, and 12 against 1."""
    others = [[0] * 9] * 10 + [[1] * 9, [1] * 8 + [0]]
    return canary(
        others, [0] * 8 + [1], [1] * 8 + [0], "one of 13 chunks: distances 8 and 6 eight times, then 8 and 10"
    )


def three_labels() -> Pair:
    """11, 1 and 1 votes eight times, and 11, 2 and 0 once: then 10, 2 and 1, and 12, 1 and 0."""
    others = [[0] * 9] * 10 + [[1] * 9, [2] * 8 + [0]]
    return canary(
        others, [0] * 8 + [1], [1] * 8 + [0], "one of 13 chunks: distances 9 and 7 eight times, then 8 and 10"
    )


def flip() -> Pair:
    """Seven votes against six: the canary decides, and all distances are 0."""
    return canary([[0]] * 6 + [[1]] * 6, [0], [1], "one of 13 chunks decides: distances 0 and 0")


def tie() -> Pair:
    """Six votes against six, which is label 0, and then five against seven."""
    return canary([[0]] * 5 + [[1]] * 6, [0], [1], "one of 12 chunks, a tie: distances 0 and 1")


def near(chunks: int) -> Pair:
    """A gap of 41 or 40, which one vote makes 39 or 38."""
    ones = chunks // 2 - 20
    return canary([[0]] * (chunks - ones - 1) + [[1]] * ones, [0], [1], "one chunk, of a label that is ahead")


def deciding(chunks: int) -> Pair:
    """A tie, or one vote ahead; the canary's vote changes the label."""
    others = chunks - 1
    zeros = others // 2
    return canary([[0]] * zeros + [[1]] * (others - zeros), [0], [1], "one chunk, which decides")


def by_identity(payloads: list[list[int]], name: str) -> Pair:
    """One record for each chunk, and the same without the first of them, whose chunk then votes 0."""
    hashed = ChunksByIdentity(len(payloads))
    identities = [next(i for i in range(10_000) if hashed.of([i])[0] == j) for j in range(len(payloads))]
    data = np.array([[i, *labels] for i, labels in zip(identities, payloads, strict=True)], dtype=np.int64)
    return Pair(data, data[1:], f"the only record of a chunk is removed: {name}")


def turns(pattern: str) -> Pair:
    """Distances 9 ("+") or 7 ("-") by half the gap, against 8 each; 21 chunks."""
    ahead = [0] * 19 + [1]  # with the canary's 0: 20 against 1, with its 1: 19 against 2
    behind = [0] * 18 + [1] * 2  # with the canary's 1: 18 against 3, with its 0: 19 against 2
    others = np.array([ahead if sign == "+" else behind for sign in pattern]).T.tolist()
    first = [0 if sign == "+" else 1 for sign in pattern]
    return canary(others, first, [1 - label for label in first], "one of 21 chunks: distances 9 or 7, and 8")


def turns_of_the_gap(pattern: str, chunks: int) -> Pair:
    """Distances 27 ("+") or 25 ("-") by the gap, and then 25 or 27; an even number of chunks."""
    leading = chunks // 2 + 13  # and the canary, or not
    others = [[0] * len(pattern)] * leading + [[1] * len(pattern)] * (chunks - 1 - leading)
    first = [0 if sign == "+" else 1 for sign in pattern]
    name = f"one of {chunks} chunks: distances 27 or 25, and then the other one"
    return canary(others, first, [1 - label for label in first], name)


# -------------------------------------------------------------------- for one mutant or the other


def sorted_pair(rows: int) -> Pair:
    """Labels 0 and 1 in turn, by their key; the last record is replaced by one that sorts first."""
    x = np.array([[key, key % 2] for key in range(rows)], dtype=np.int64)
    y = x.copy()
    y[-1] = -1, 1
    return Pair(x, y, "the last record goes to the front")


def seeded_pair(rows: int) -> Pair:
    """Chunks that are all tied; one record gets another second entry, with which the coin falls the other way."""
    x = np.array([[row % 2, 0] for row in range(rows)], dtype=np.int64)

    def other(value: int) -> IntArray:
        y = x.copy()
        y[0, 1] = value
        return y

    def coin(data: IntArray) -> int:
        return int(FirstEntryMajority(seed_of(data))(np.array([[0], [1]]))[0])

    second = next(y for y in map(other, range(1, 1000)) if coin(y) != coin(x))
    return Pair(x, second, "the second entry of one record")


def tuned_pair(rows: int) -> Pair:
    """Of 160 records every other one gives 60 votes to 20 for label 0, all 100 to 60 for label 1, and then 99 to 61."""
    x = np.array([[int(row % 2 == 1 or 4 * row >= 3 * rows)] for row in range(rows)], dtype=np.int64)
    y = x.copy()
    y[1] = 0
    return Pair(x, y, "one record")


# ------------------------------------------------------------------------------ nearest neighbours

#: Eleven points close to 0, and one close to 1.
POINTS = (*(0.01 * i for i in range(1, 12)), 0.9)


def _constant(label: float) -> list[tuple[float, float]]:
    return [(0.0, label), (1.0, label)]


def _moved_example_pair(others: list[tuple[float, float]]) -> Pair:
    """Two examples a chunk: in the first one (1/2, 1), and (0.2, 0) or (0.8, 0).

    Nearest neighbours are then 0 on the left only, or on the right only.
    """
    x, y = (np.array([(point, 0.0), (0.5, 1.0), *others]) for point in (0.2, 0.8))
    return Pair(x, y, "one of two examples of a chunk moves")


def neighbours() -> Pair:
    """For `POINTS`: 12 votes against 1 for eleven of them, 11 against 2 for the last; then the other way round."""
    return _moved_example_pair([row for _ in range(11) for row in _constant(0.0)] + _constant(1.0))


def halves() -> Pair:
    """80 chunks: a tie left of the middle, and then 39 against 41."""
    return _moved_example_pair(
        [row for _ in range(39) for row in _constant(0.0)] + [row for _ in range(40) for row in _constant(1.0)]
    )


def used_again() -> Pair:
    """160 examples in two chunks; one label decides the vote of the first of them at 0.25, and all others are 1."""
    y = np.ones((160, 2))
    y[:, 0] = np.arange(160) / 159.0
    x = y.copy()
    x[np.abs(y[:80, 0] - 0.25).argmin(), 1] = 0.0
    return Pair(x, y, "the label of the example that is nearest")


def one_label(zeros: int) -> Pair:
    """81 chunks of one example, whose label is the vote for all points; one label 0 becomes 1."""
    x = np.array([(i / 81.0, 0.0 if i < zeros else 1.0) for i in range(81)])
    y = x.copy()
    y[0, 1] = 1.0
    return Pair(x, y, f"one of {zeros} labels 0 becomes 1")
