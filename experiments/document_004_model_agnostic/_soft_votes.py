"""Scores of a few classifiers for a few queries: what one vote can move, and what is stable over which partition."""

from __future__ import annotations

import numpy as np

from auditor.datasets import Pair
from mechanisms.base.mechanism import FloatArray
from mechanisms.teacher_ensembles.soft_histogram import ScoreHistograms, one_vote_changed
from mechanisms.teacher_ensembles.vote_distance import safe_distance

#: gamma = 1/4, as in the catalogue.
QUARTERS, SAFE = ScoreHistograms(4), ScoreHistograms(4, safe_distance)
#: gamma = 1/2: the shifted partition has one bin. A score is low or high in the plain partition, and in the
#: shifted bin or in none, so that both histograms can be moved apart from each other.
HALVES = ScoreHistograms(2, safe_distance)
LOW, LOW_IN, HIGH, HIGH_IN = 0.1, 0.3, 0.9, 0.6


def moves() -> list[tuple[str, float, float]]:
    """How far the gap distance and the safe one move, for all datasets of a few votes and all their neighbours."""
    found = []
    for bins, votes in ((2, 4), (2, 7), (3, 4), (4, 3)):
        before, after = one_vote_changed(bins, votes)
        moves = []
        for partitions in (ScoreHistograms(bins), ScoreHistograms(bins, safe_distance)):
            moved = np.abs(partitions(before).distances - partitions(after).distances)
            moves.append(float(moved.max()))
        found.append((f"gamma = 1/{bins}, {votes} votes", moves[0], moves[1]))
    return found


def votes_change(name: str, before: list[float], after: list[float]) -> Pair:
    """Scores of one query."""
    return Pair(one_query_of(before), one_query_of(after), name)


def one_query_of(votes: list[float]) -> FloatArray:
    return np.array(votes, dtype=np.float64)[:, None]


def scores_change(name: str, before: list[list[float]], after: list[list[float]]) -> Pair:
    """Scores of several queries, a row for each classifier."""
    return Pair(np.array(before, dtype=np.float64), np.array(after, dtype=np.float64), name)


def epoch_pair(passes: int) -> Pair:
    """First queries with plain distances 4 and 3, then one with 3 and 4, and shifted distances 2 and 3; ten votes."""
    others = np.full((9, passes + 1), LOW)
    others[:6, -1] = LOW_IN
    first, second = [LOW] * passes + [HIGH], [HIGH] * passes + [LOW_IN]
    return Pair(np.vstack([first, others]), np.vstack([second, others]), f"a vote moves {passes} distances against one")


def canary_pair(passes: int) -> Pair:
    """First queries with votes 11 to 2 and 10 to 3, then one with 10 to 3 and 11 to 2; thirteen votes."""
    others = np.repeat([[LOW]] * 10 + [[HIGH]] * 2, passes + 1, axis=1)
    first, second = [LOW] * passes + [HIGH], [HIGH] * passes + [LOW]
    return Pair(np.vstack([first, others]), np.vstack([second, others]), f"a vote moves {passes} gaps against one")


def stable(votes: int, gap: int) -> FloatArray:
    """Scores of which the plain bin [1/4, 1/2) has `gap` more than any other."""
    return np.where(np.arange(votes) < (votes + gap) // 2, 0.3, 0.8)


def shifted_only(votes: int) -> FloatArray:
    """Scores of which two plain bins have half each, and one shifted bin all."""
    return np.where(np.arange(votes) < votes // 2, 0.24, 0.26)


def unstable(votes: int) -> FloatArray:
    """Scores of which two bins of both partitions have half each."""
    return stable(votes, 0)
