"""Relations recognise neighbours, refuse the rest with a reason, and their patterns are neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor import AddRemoveOne, AnswersWithin, Pair, ReplaceOne, SpecificationError
from auditor.neighbors import RELATIONS, Relation, check_pairs

NAN = math.nan


def frame(*rows: tuple[Any, ...]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["age", "name"])


# --------------------------------------------------------------------------------- replace one


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.array([1, 2, 3]), np.array([1, 2, 4])),
        (np.array([1.0, NAN]), np.array([2.0, NAN])),
        (np.array([1.0, NAN]), np.array([1.0, 2.0])),
        (np.array([[1, 2], [3, 4]]), np.array([[1, 2], [5, 6]])),
        (np.array([[1.0, NAN], [3, 4]]), np.array([[1.0, NAN], [3, 5]])),
        (np.array(["a", "b"]), np.array(["a", "c"])),
        ([1], [2]),
        ((1, 2), (1, 3)),
        ([1, "a"], [1, "b"]),
        ([(1, 2), (3, 4)], [(1, 2), (3, 5)]),
        ([NAN, 1.0], [NAN, 2.0]),
        ([{1, 2}, {3}], [{1, 2}, {4}]),
        ([[1], [1, 2]], [[1], [1, 3]]),
        ([None, 1], [None, 2]),
        (frame((30, "a"), (40, "b")), frame((30, "a"), (41, "b"))),
        (frame((30, "a"), (NAN, None)), frame((31, "b"), (NAN, None))),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_one_row_replaced_is_a_neighbour(x: Any, y: Any) -> None:
    ReplaceOne().check(Pair(x, y))
    ReplaceOne().check(Pair(y, x))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.array([1, 2]), np.array([1, 2]), "0 rows differ"),
        (np.array([NAN, NAN]), np.array([NAN, NAN]), "0 rows differ"),
        (np.array([1, 2, 3]), np.array([3, 2, 1]), "2 rows differ"),
        (np.array([1, 2]), np.array([1]), "2 rows against 1"),
        (np.zeros((3, 2)), np.ones((3, 2)), "3 rows differ"),
        ([], [], "0 rows differ"),
        (np.array([]), np.array([]), "0 rows differ"),
        ([], [1], "0 rows against 1"),
        ([NAN], [NAN], "0 rows differ"),
        ([(NAN, 1)], [(NAN, 1)], "0 rows differ"),
        ([1, 2], [2, 1], "2 rows differ"),
        (frame((30, "a"), (40, "b")), frame((30, "a"), (40, "b")), "0 rows differ"),
        (frame((NAN, None)), frame((NAN, None)), "0 rows differ"),
        (frame((1, "a"), (2, "b")), frame((2, "a"), (1, "b")), "2 rows differ"),
        (3, [1], "3"),
        ([1], None, "None"),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_other_pairs_are_refused_with_what_is_wrong(x: Any, y: Any, reason: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        ReplaceOne().check(Pair(x, y, "odd pair"))
    assert reason in str(caught.value)


def test_frames_with_different_columns_are_refused_with_both_lists() -> None:
    with pytest.raises(SpecificationError, match=r"\['a'\] and \['b'\]"):
        ReplaceOne().check(Pair(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [2]})))


def test_the_index_of_a_frame_does_not_matter() -> None:
    one, other = frame((1, "a"), (2, "b")), frame((1, "a"), (3, "b"))
    other.index = pd.Index([7, 9])
    ReplaceOne().check(Pair(one, other))


# -------------------------------------------------------------------------- add or remove one


@pytest.mark.parametrize(
    ("long", "short"),
    [
        (np.array([1, 2, 3]), np.array([2, 3])),
        (np.array([1, 2, 3]), np.array([1, 3])),
        (np.array([1, 2, 3]), np.array([1, 2])),
        (np.array([5, 5, 5]), np.array([5, 5])),
        (np.array([1.0, NAN, 2.0]), np.array([NAN, 2.0])),
        (np.array([1.0, NAN, 2.0]), np.array([1.0, 2.0])),
        (np.array([1]), np.array([], dtype=int)),
        (np.array([[1, 2], [3, 4]]), np.array([[3, 4]])),
        (np.array([[1.0, NAN], [3, 4]]), np.array([[1.0, NAN]])),
        ([1], []),
        ((1, 2), (2,)),
        (["a", None, "b"], ["a", "b"]),
        ([{1}, {2}], [{2}]),
        (frame((30, "a"), (40, "b")), frame((40, "b"))),
        (frame((30, "a"), (NAN, None)), frame((NAN, None))),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_one_row_removed_is_a_neighbour_in_both_orders(long: Any, short: Any) -> None:
    AddRemoveOne().check(Pair(long, short))
    AddRemoveOne().check(Pair(short, long))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.array([1, 2]), np.array([1, 2]), "2 rows against 2"),
        (np.array([1, 2, 3]), np.array([1]), "3 rows against 1"),
        (np.array([1, 2, 3]), np.array([3, 2]), "rows 0 and later"),
        (np.array([1, 2, 3]), np.array([1, 4]), "rows 1 and later"),
        ([], [], "0 rows against 0"),
        (frame((30, "a"), (40, "b")), frame((50, "b")), "rows 0 and later"),
        (1.5, [1], "1.5"),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_other_pairs_are_refused_by_add_or_remove_one(x: Any, y: Any, reason: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        AddRemoveOne().check(Pair(x, y, "odd pair"))
    assert reason in str(caught.value)


def test_frames_with_different_columns_are_no_neighbours_of_one_another() -> None:
    one, other = pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"b": [1]})
    with pytest.raises(SpecificationError, match="columns"):
        AddRemoveOne().check(Pair(one, other))


# ------------------------------------------------------------------------------ answers within


@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", [np.array, list, tuple])
def test_answers_may_move_by_the_sensitivity_each(sensitivity: float, kind: Any) -> None:
    relation = AnswersWithin(sensitivity)
    base = [0.1, 0.7, 100.3]
    relation.check(Pair(kind(base), kind([v + sensitivity for v in base])))
    relation.check(Pair(kind(base), kind([0.1 - sensitivity, 0.7, 100.3])))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([0.0, 0.0], [0.0, 1.1], "moves by 1.1"),
        ([0.0, 0.0], [0.0, 0.0], "moves by 0"),
        ([], [], "moves by 0"),
        ([0.0], [0.0, 0.0], "(1,) answers against (2,)"),
        ([NAN], [0.0], "nan"),
        ([math.inf], [0.0], "inf"),
        (["a"], [1.0], "'a'"),
    ],
    ids=repr,
)
def test_answers_that_move_otherwise_are_refused(x: Any, y: Any, reason: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        AnswersWithin(1.0).check(Pair(x, y))
    assert reason in str(caught.value)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, NAN])
def test_a_sensitivity_that_is_not_positive_is_refused_and_shown(sensitivity: float) -> None:
    with pytest.raises(SpecificationError) as caught:
        AnswersWithin(sensitivity)
    assert repr(sensitivity) in str(caught.value)


# ------------------------------------------------------------------------------------ patterns

DOMAINS: list[Any] = [[0, 1], [0.0, 0.5, 1.0], np.array([0, 1, 2]), ["a", "b"], [(0, 1), (1, 0)], [-5.5, 7.25]]


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemoveOne(), AnswersWithin(0.5)], ids=lambda r: r.name)
@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_every_pattern_is_a_pair_of_neighbours(relation: Relation, size: int, domain: Any) -> None:
    if isinstance(relation, AnswersWithin) and not isinstance(domain[0], int | float | np.integer):
        domain = [0, 1]
    pairs = list(relation.patterns(domain, size))
    assert pairs
    check_pairs(pairs, relation)
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert size - 1 <= max(len(pair.x), len(pair.y)) <= size + 1 or max(len(pair.x), len(pair.y)) == 1


def test_patterns_reach_the_ends_the_middle_and_the_smallest_datasets() -> None:
    replaced = list(ReplaceOne().patterns([0, 1], 5))
    indices = {int(np.flatnonzero(pair.x != pair.y)[0]) for pair in replaced if len(pair.x) == 5}
    assert indices == {0, 2, 4}
    assert min(len(pair.x) for pair in replaced) == 1
    assert min(len(pair.y) for pair in AddRemoveOne().patterns([0, 1], 5)) == 0
    moves = {tuple((pair.x - pair.y).tolist()) for pair in AnswersWithin(2.0).patterns([0], 4)}
    assert {(2, 2, 2, 2), (2, 0, 0, 0), (-2, -2, -2, 2), (2, 2, -2, -2)} == moves


def test_patterns_of_numbers_are_arrays_and_of_symbols_lists() -> None:
    numbers = next(iter(ReplaceOne().patterns([0.0, 1.0], 3)))
    symbols = next(iter(ReplaceOne().patterns(["a", "b"], 3)))
    assert isinstance(numbers.x, np.ndarray)
    assert numbers.x.dtype == np.float64
    assert symbols.x == ["a", "a", "a"]
    empty = list(AddRemoveOne().patterns([0, 1], 3))[-1]
    assert empty.y.dtype == empty.x.dtype


@pytest.mark.parametrize("relation", [ReplaceOne(), AddRemoveOne()], ids=lambda r: r.name)
@pytest.mark.parametrize("domain", [[], [1]], ids=repr)
def test_a_domain_of_fewer_than_two_values_is_refused_and_shown(relation: Relation, domain: list[int]) -> None:
    with pytest.raises(SpecificationError, match="at least two values") as caught:
        list(relation.patterns(domain, 3))
    assert repr(domain) in str(caught.value)


# ---------------------------------------------------------------------------------- check_pairs


def test_every_pair_is_checked() -> None:
    good, bad = Pair([1], [2]), Pair([1, 2], [3, 4], "the bad one")
    check_pairs([good, bad], None)
    with pytest.raises(SpecificationError, match="the bad one"):
        check_pairs([good, bad], ReplaceOne())


def test_no_pair_and_what_is_no_pair_are_refused() -> None:
    with pytest.raises(SpecificationError, match="no pair"):
        check_pairs([], None)
    with pytest.raises(SpecificationError, match=r"\(\[1\], \[2\]\)"):
        check_pairs([([1], [2])], None)  # type: ignore[list-item]


def test_relations_are_found_by_the_names_of_the_command_line() -> None:
    assert {name: relation.name for name, relation in RELATIONS.items()} == {
        "replace-one": "replace one",
        "add-remove-one": "add or remove one",
        "answers-within": "every answer within the sensitivity",
    }
