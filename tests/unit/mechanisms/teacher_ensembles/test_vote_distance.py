"""Distances to instability of mode and plurality: against their definition, and what privacy asks of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from auditor.privacy.exact import optimal_composition
from experiments.common import rand
from experiments.document_004_model_agnostic import _questions
from experiments.document_004_model_agnostic.vote_distance import _CERTIFIED, _CUTOFFS, _leak_rows, _patterns
from mechanisms.base.queries import Count
from mechanisms.teacher_ensembles.online_leaks import release_scale
from mechanisms.teacher_ensembles.vote_distance import (
    MostFrequentGroup,
    all_counts,
    all_votes,
    gap,
    gap_distance,
    largest_at_flips,
    largest_move,
    leading,
    mode_distance,
    one_added,
    one_replaced,
    plurality_distance,
    safe_distance,
    searched_distances,
    uncapped_distance,
)


def winner(counts: tuple[int, ...]) -> int:
    return max(range(len(counts)), key=lambda r: (counts[r], -r))


def by_definition(start: tuple[int, ...], others: dict[tuple[int, ...], int]) -> int:
    """Largest k such that everything at most k steps away has the same winner."""
    return min(steps for counts, steps in others.items() if winner(counts) != winner(start)) - 1


@pytest.mark.parametrize(("values", "votes"), [(2, 7), (2, 8), (3, 7), (3, 8), (4, 6)])
def test_the_plurality_by_its_definition(values: int, votes: int) -> None:
    # Votes that differ in the least number of places have counts that differ by half the sum of the differences.
    everything = [tuple(row) for row in all_votes(votes, values).tolist()]
    assert len(everything) == len(set(everything)) == math.comb(votes + values - 1, values - 1)
    for start in everything:
        steps = {other: sum(abs(a - b) for a, b in zip(start, other, strict=True)) // 2 for other in everything}
        expected = by_definition(start, steps)
        assert plurality_distance(start) == expected, start
        assert safe_distance(start) <= expected
        assert leading(start) == winner(start)


@pytest.mark.parametrize("values", [2, 3])
def test_the_mode_by_its_definition(values: int) -> None:
    everything = [tuple(row) for row in all_counts(6, values).tolist()]
    assert len(everything) == 7**values
    for start in (counts for counts in everything if max(counts) <= 4):
        steps = {other: sum(abs(a - b) for a, b in zip(start, other, strict=True)) for other in everything}
        assert mode_distance(start) == by_definition(start, steps), start


@pytest.mark.parametrize(("values", "votes"), [(2, 4), (2, 7), (3, 5), (3, 8), (4, 6)])
def test_what_privacy_asks_of_a_distance(values: int, votes: int) -> None:
    # Over ordered lists of votes, one of which is replaced: by hand and not by counts.
    moves: dict[Any, int] = {}
    flips: dict[Any, int] = {}
    distances = (plurality_distance, safe_distance, gap_distance)
    for start in itertools.combinations_with_replacement(range(values), votes):
        counts = np.bincount(start, minlength=values)
        for place, vote in itertools.product(range(votes), range(values)):
            other = np.bincount([*start[:place], vote, *start[place + 1 :]], minlength=values)
            for distance in distances:
                a, b = int(distance(counts)), int(distance(other))
                moves[distance] = max(moves.get(distance, 0), abs(a - b))
                if winner(tuple(counts)) != winner(tuple(other)):
                    flips[distance] = max(flips.get(distance, 0), a, b)
    before, after = one_replaced(all_votes(votes, values))
    for distance in distances:
        assert largest_move(distance, before, after) == moves[distance]
        assert largest_at_flips(distance, before, after) == flips[distance]
    assert (moves[plurality_distance], flips[plurality_distance]) == (1, 0)
    assert (moves[safe_distance], flips[safe_distance]) == (1, 0)
    # ERR-2: sensitivity 2, and a flip at (1, 0) for any even number of votes, or three values and more.
    assert moves[gap_distance] == 2
    assert flips[gap_distance] == (0 if values == 2 and votes % 2 else 1)


def test_the_flip_of_the_gap_distance() -> None:
    # Catalogue 004, W: two values, four votes.
    tie, majority = np.array([2, 2]), np.array([1, 3])
    assert [int(leading(counts)) for counts in (tie, majority)] == [0, 1]
    assert [int(gap_distance(counts)) for counts in (tie, majority)] == [0, 1]
    assert [int(safe_distance(counts)) for counts in (tie, majority)] == [0, 0]


def test_the_gap_is_as_good_as_the_mode_under_add_and_remove() -> None:
    before, after = one_added(all_counts(5, 3))
    for distance in (mode_distance, gap_distance, uncapped_distance):
        assert largest_move(distance, before, after) == 1
        assert largest_at_flips(distance, before, after) == 0
        assert bool((distance(before) <= mode_distance(before)).all())
    assert int(uncapped_distance(np.array([3, 3, 1]))) == -1


def test_search_agrees_with_the_formulas_far_out() -> None:
    counts, found = searched_distances(*one_replaced(all_votes(40, 2)))
    assert np.array_equal(found, plurality_distance(counts))
    counts, found = searched_distances(*one_added(all_counts(10, 3)))
    inside = (counts <= 9).all(axis=1)
    assert np.array_equal(found[inside], mode_distance(counts)[inside])


def test_arrays_of_counts() -> None:
    counts = np.random.default_rng(0).integers(0, 9, size=(5, 7, 3))
    for function in (leading, gap, mode_distance, plurality_distance, safe_distance, gap_distance, uncapped_distance):
        found = function(counts)
        assert found.shape == (5, 7)
        assert found.dtype == np.int64
        assert all(found[i, j] == function(counts[i, j]) for i in range(5) for j in range(7))


def test_the_certified_range_of_the_printed_distance() -> None:
    # Catalogue 004, entry 8: 4/lambda an epoch, T + 1 epochs, optimal composition within delta/2.
    assert all(found <= most for _, found, most in (*_patterns(), *_leak_rows()))
    assert len(_patterns()) == len(_CERTIFIED) * len(_CUTOFFS)
    # Beyond it is not certified; which refutes nothing, as composition bounds from above.
    for epsilon, delta in ((5.0, 0.2), (7.0, 2e-2), (7.0, 2e-3), (9.0, 2e-6)):
        worst = max(
            optimal_composition(4.0 / release_scale(epsilon, delta, t), t + 1).delta(epsilon)
            for t in (*_CUTOFFS, 100_000)
        )
        assert worst > delta / 2, (epsilon, delta)


# ------------------------------------------------------------------------------------- questions


def test_a_question_about_rows() -> None:
    question = MostFrequentGroup(tuple(Count(equals=v, relation="add_remove_one") for v in (0.0, 1.0, 2.0)))
    for rows, expected in (([], (0, 0)), ([1.0], (1, 0)), ([0.0, 1.0], (0, 0)), ([2.0] * 5 + [7.0], (2, 4))):
        assert question(np.array(rows)) == expected
    # Exhaustive: small databases, and all with one row added.
    for four in itertools.product((0.0, 1.0, 2.0, 7.0), repeat=4):
        value, distance = question(np.array(four))
        for row in (0.0, 1.0, 2.0, 7.0):
            other, moved = question(np.array([*four, row]))
            assert abs(distance - moved) <= 1
            assert value == other or distance == moved == 0


def test_groups_that_overlap_move_the_distance_by_at_most_one() -> None:
    ranges = ((0.0, 2.0), (1.0, 3.0), (3.0, 4.0))
    groups = tuple(Count(low=low, high=high, relation="add_remove_one") for low, high in ranges)
    question = MostFrequentGroup(groups)
    for rows in itertools.product(range(5), repeat=4):
        value, distance = question(np.array(rows))
        for row in range(5):
            other, moved = question(np.array([*rows, row]))
            assert abs(distance - moved) <= 1
            assert value == other or distance == moved == 0


def test_questions_of_the_experiments_are_what_they_are_called() -> None:
    q = _questions
    for question, pair, expected in (
        (q.flip(), q.flip_pair(), [(1, 0), (0, 0)]),
        (q.lead(), q.lead_pair(), [(0, 4), (0, 3)]),
        (q.far_lead(), q.far_lead_pair(), [(0, 37), (0, 36)]),
        (q.nobody(), q.nobody_pair(), [(1, 0), (0, 0)]),
        (q.lead(), q.tied_pair(q.lead(), 26), [(1, 0), (0, 0)]),
        (q.far_lead(), q.tied_pair(q.far_lead(), 28), [(1, 0), (0, 0)]),
        (q.moving()[0], q.tied_pair(q.moving()[0], 33), [(1, 0), (0, 0)]),
        (q.moving()[0], q.asked_pair(), [(0, 9), (0, 8)]),
        (q.moving()[1], q.asked_pair(), [(0, 7), (0, 8)]),
    ):
        assert [question(x) for x in (pair.x, pair.y)] == expected
    visits = rand()["mdvis"]
    sizes = {20: 26, 21: 22, 22: 19, 23: 19, 24: 13, 26: 10, 28: 12, 33: 5, 36: 0, 42: 0}
    assert {v: int((visits == v).sum()) for v in sizes} == sizes
    assert int(((visits >= 29) & (visits <= 34)).sum()) == 40


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: leading([3]), r"at least two values, shape \(\.\.\., R\), got \(1,\)"),
        (lambda: gap([0.5, 1.0]), "integer counts, got dtype"),
        (lambda: mode_distance([3, -1]), "counts >= 0"),
        (lambda: all_votes(0, 2), "at least one vote, got 0"),
        (lambda: all_votes(3, 1), "at least two values, got 1"),
        (lambda: all_counts(-1, 2), "a largest count >= 0, got -1"),
        (lambda: all_counts(1, 1), "at least two values, got 1"),
        (lambda: largest_at_flips(mode_distance, np.array([[5, 0]]), np.array([[6, 0]])), "different leaders, got 1"),
        (lambda: MostFrequentGroup((Count(relation="add_remove_one"),)), "at least two groups"),
        (lambda: MostFrequentGroup((Count(), Count())), "counts under add_remove_one"),
    ],
)
def test_mistakes_are_shown(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
