"""Histograms over the two partitions: bins by the definition, how far distances move, and wrong partitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from experiments.document_004_model_agnostic._soft_votes import moves
from experiments.document_004_model_agnostic.soft_histogram import _edges
from mechanisms.teacher_ensembles.soft_histogram import (
    BinsCentredOnTheMean,
    DataDependentRange,
    EndHalfBinsKept,
    MeanOfScoresReleased,
    RoundedToNearest,
    ScoreHistograms,
    is_stable,
    one_vote_changed,
)
from mechanisms.teacher_ensembles.vote_distance import gap_distance, safe_distance


def bin_of(score: Fraction, bins: int, shifted: bool) -> int:
    """Definition 5.1, numbered from 1; 0 for none."""
    gamma = Fraction(1, bins)
    if shifted:
        found = [j for j in range(1, bins) if (j - Fraction(1, 2)) * gamma <= score < (j + Fraction(1, 2)) * gamma]
        return found[0] if found else 0
    last = bins if score == 1 else 0
    return last or next(j for j in range(1, bins + 1) if (j - 1) * gamma <= score < j * gamma)


def of_one(partitions: ScoreHistograms, score: float, shifted: bool) -> int:
    counts = (partitions.shifted if shifted else partitions.plain)(np.array([[score]]))[0]
    return int(counts.argmax()) + 1 if counts.any() else 0


@pytest.mark.parametrize("shifted", [False, True])
def test_bins_are_those_of_the_definition(shifted: bool) -> None:
    rng = np.random.default_rng(0)
    for bins in (2, 3, 4, 7, 10):
        partitions = ScoreHistograms(bins)
        for score in rng.random(50):  # an end of a bin with probability below 1e-14
            assert of_one(partitions, score, shifted) == bin_of(Fraction(score), bins, shifted)
        # Ends, and midpoints between them, as the decimals or fractions that they are written as.
        for numerator in range(4 * bins + 1):
            expected = bin_of(Fraction(numerator, 4 * bins), bins, shifted)
            assert of_one(partitions, numerator / (4 * bins), shifted) == expected
    for hundredth in range(101):
        for bins in (4, 5, 10, 20):
            expected = bin_of(Fraction(hundredth, 100), bins, shifted)
            assert (
                of_one(ScoreHistograms(bins), float(f"0.{hundredth:02d}") if hundredth < 100 else 1.0, shifted)
                == expected
            )


def test_the_edges_that_the_experiment_lists() -> None:
    rows = _edges()
    assert [found for _, found, _ in rows] == [stated for _, _, stated in rows]
    assert math.floor(0.3 / 0.1) == 2  # the trap: 0.3 is the third end


def test_readings_of_two_queries() -> None:
    # gamma = 1/4. First query: plain counts 1, 4, 0, 2, shifted [1/8, 3/8) has 4, [3/8, 5/8) 1. Second one: all at 0.
    scores = np.array([[0.3, 0.3, 0.26, 0.4, 0.2, 0.9, 0.95], [0.0] * 7])
    partitions = ScoreHistograms(4)
    assert partitions.plain(scores).tolist() == [[1, 4, 0, 2], [7, 0, 0, 0]]
    assert partitions.shifted(scores).tolist() == [[4, 1, 0], [0, 0, 0]]
    values, distances = partitions(scores)
    assert values.tolist() == [[3, 1], [2, 2]]
    assert distances.tolist() == [[1, 6], [2, 0]]
    assert ScoreHistograms(4, safe_distance)(scores).distances.tolist() == [[0, 3], [1, 0]]
    # gamma = 1/2: one shifted bin, whose second is taken as empty.
    assert ScoreHistograms(2)(scores[:1]).distances.tolist() == [[2], [3]]


def test_one_vote_moves_distances_by_two_and_by_one() -> None:
    # Against all scores of three votes by themselves, in another order.
    middles = [0.125, 0.375, 0.625, 0.875]
    largest = {}
    for distance in (gap_distance, safe_distance):
        of = {s: ScoreHistograms(2, distance)(np.array([s])) for s in itertools.product(middles, repeat=3)}
        largest[distance] = max(
            float(np.abs(of[s].distances - of[t].distances).max())
            for s, t in itertools.product(of, of)
            if sum(a != b for a, b in zip(s, t, strict=True)) == 1
        )
        before, after = one_vote_changed(2, 3)
        found = np.abs(
            ScoreHistograms(2, distance)(before).distances - ScoreHistograms(2, distance)(after).distances
        ).max()
        assert found == largest[distance]
    assert [(gap, safe) for _, gap, safe in moves()] == [(2, 1)] * 4
    before, after = one_vote_changed(2, 3)
    assert len(before) == 4 * 3 * math.comb(2 + 3, 3)  # a vote of each of four kinds, two others, three to go to


def test_where_the_bin_changes_the_safe_distance_is_zero() -> None:
    # The gap distance is 1 on one side where a tie can be, at even numbers of votes or with three bins.
    for bins, votes, gap in ((2, 4, 1), (2, 5, 0), (3, 4, 1), (4, 3, 1)):
        before, after = one_vote_changed(bins, votes)
        for distance, most in ((safe_distance, 0), (gap_distance, gap)):
            (v, d), (u, e) = ScoreHistograms(bins, distance)(before), ScoreHistograms(bins, distance)(after)
            assert np.maximum(d, e)[v != u].max() == most, (bins, votes)


# ---------------------------------------------------------------------------------------- mutants


def test_partitions_that_depend_on_the_scores() -> None:
    scores = np.array([[0.6] * 11 + [0.1], [0.6] * 11 + [0.2]])
    values, distances = DataDependentRange(4)(scores)
    # The last of four bins between 0.1 and 0.6 is [0.475, 0.6], between 0.2 and 0.6 it is [0.5, 0.6].
    assert values[0] / 8 == pytest.approx([0.5375, 0.55])
    assert distances[0].tolist() == [9, 9]
    values, _ = BinsCentredOnTheMean(4)(scores)
    assert values[0] / 8 == pytest.approx(scores.mean(axis=1))
    values, distances = MeanOfScoresReleased(4)(scores)
    assert values[1] / 8 == pytest.approx(scores.mean(axis=1))
    assert (distances == ScoreHistograms(4)(scores).distances).all()
    # A score may be in the bin at the end of what is covered.
    assert (BinsCentredOnTheMean(4)(np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])).distances == 1).all()


def test_public_partitions_that_are_others() -> None:
    scores = np.array([[0.6, 0.6, 0.05, 0.02, 1.0]])
    assert RoundedToNearest(4).plain(scores).tolist() == [[2, 2, 0, 1]]
    kept = EndHalfBinsKept(4)(scores)
    assert EndHalfBinsKept(4).shifted(scores).tolist() == [[2, 0, 2, 0, 1]]
    assert kept.values.tolist() == [[1], [0]]
    assert kept.distances.tolist() == [[0], [0]]


def test_stable_histograms_by_hand() -> None:
    counts = np.array([[5, 2, 0], [3, 3, 0], [4, 4, 5], [0, 0, 9]])
    assert is_stable(counts, 0).all()
    assert is_stable(counts, 0.5).all()  # the 1 of the definition's maximum
    assert is_stable(counts, 1).tolist() == [True, False, False, True]
    assert is_stable(counts, 3).tolist() == [False, False, False, True]
    assert is_stable(np.array([[4]]), 3).all()
    assert not is_stable(np.array([[4]]), 4).any()
    with pytest.raises(ValueError, match="a d >= 0, got -1"):
        is_stable(counts, -1)


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("bins", [1, 0, 2.5, True])
def test_gamma_is_one_over_a_whole_number(bins: Any) -> None:
    with pytest.raises(ValueError, match=f"bins >= 2, gamma = 1/bins, got {bins}"):
        ScoreHistograms(bins)


@pytest.mark.parametrize("scores", [[[0.5, 1.25]], [[-0.125]], [[math.nan]]])
def test_scores_lie_in_the_unit_interval(scores: Any) -> None:
    with pytest.raises(ValueError, match=r"scores in \[0, 1\], got .*(1.25|-0.125|nan)"):
        ScoreHistograms(4)(scores)


@pytest.mark.parametrize("scores", [[0.5], [[]]])
def test_scores_have_rows_of_queries(scores: Any) -> None:
    with pytest.raises(ValueError, match=r"shape \(m, k\), got \("):
        ScoreHistograms(4)(scores)
