"""Smaller and simpler pairs: which one is found, and what is tried on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor import (
    AddRemoveOne,
    AnswersWithin,
    EdgeNeighbors,
    NodeNeighbors,
    Pair,
    PerUser,
    ReplaceLabel,
    ReplaceOne,
    pairs_of,
)
from auditor.audits.counterexamples.shrink_data import EnoughError, pair_at, places_of, smaller_pair
from auditor.datasets import Group, Relation
from auditor.datasets.json_codec import same_data
from auditor.errors import SpecificationError

#: A hundred alternating zeros and ones.
LONG = [0, 1] * 50


def always(_: Pair) -> bool:
    return True


def holds(value: int) -> Callable[[Pair], bool]:
    return lambda pair: value in np.asarray(pair.x)


def rows_at_least(n: int) -> Callable[[Pair], bool]:
    return lambda pair: max(len(pair.x), len(pair.y)) >= n


def array(*rows: Any) -> Any:
    return np.array(rows, dtype=np.int64)


FRAME = pd.DataFrame({"age": [30, 40, 50], "city": ["a", "b", "a"]})

SMALLER: dict[str, tuple[Pair, Relation | None, Callable[[Pair], bool], list[Any] | None, Any, Any]] = {
    "one row is enough": (Pair(array(*LONG, 1), array(*LONG)), AddRemoveOne(), always, [0, 1], array(0), array()),
    "one row is enough, without a domain": (
        Pair(array(5, 9, 7), array(5, 8, 7)), ReplaceOne(), always, None, array(5), array(7),
    ),
    "the ends of the domain are simple": (
        Pair(array(5, 4, 5), array(5, 3, 5)), ReplaceOne(), always, list(range(2, 11)), array(2), array(10),
    ),
    "a row that must stay": (
        Pair(array(3, 3, 7, 5, 2), array(3, 3, 4, 5, 2)), ReplaceOne(), holds(7), list(range(11)), array(7), array(0),
    ),
    "a common row that must stay": (
        Pair(array(3, 7, 4, 5, 2), array(3, 7, 4, 1, 2)), ReplaceOne(), holds(7), list(range(11)), array(7, 0),
        array(7, 10),
    ),
    "three rows": (
        Pair(array(*LONG, 1), array(*LONG)), AddRemoveOne(), rows_at_least(3), [0, 1], array(0, 0, 0), array(0, 0),
    ),
    "without a relation the difference stays": (
        Pair(array(3, 3, 7, 5, 2), array(3, 3, 4, 5, 2)), None, always, list(range(11)), array(7), array(4),
    ),
    "without a relation, three rows": (
        Pair(array(3, 3, 7, 5, 2), array(3, 3, 4, 5, 2)), None, rows_at_least(3), None, array(7, 5, 2), array(4, 5, 2),
    ),
    "a list": (Pair(["c", "b"], ["c", "a"]), ReplaceOne(), always, ["a", "b", "c"], ["c"], ["a"]),
    "a tuple": (Pair((1, 2), (1, 2, 3)), AddRemoveOne(), always, None, (), (1,)),
    "a frame": (Pair(FRAME, FRAME.iloc[:2]), AddRemoveOne(), always, None, FRAME.iloc[:1], FRAME.iloc[:0]),
    "records": (
        Pair([{"id": 1, "pay": 5}, {"id": 2, "pay": 7}], [{"id": 1, "pay": 5}]), AddRemoveOne(), always, None,
        [{"id": 1, "pay": 5}], [],
    ),
    "a group of two": (Pair(array(0, 0, 1), array(1, 1, 1)), Group(2), always, [0, 1], array(0), array(1)),
    "answers": (
        Pair(np.array([5.0, 5, 5]), np.array([6.0, 4, 5])), AnswersWithin(), rows_at_least(2), None,
        np.array([0.0, 1]), np.array([1.0, 0]),
    ),
    "one user": (
        Pair(array((0, 4), (0, 5), (1, 3)), array((0, 3), (1, 3))), PerUser(), always, None, array((0, 4)),
        array((0, 5)),
    ),
    "sizes that are needed": (
        Pair(array(*LONG, 1), array(*LONG)), AddRemoveOne(), lambda pair: len(pair.y) == 100 and pair.x[0] == 0,
        [0, 1], array(*[0] * 101), array(*[0] * 100),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALLER)
def test_the_smallest_pair_is_found(name: str) -> None:
    pair, relation, serves, values, x, y = SMALLER[name]
    asked: list[Pair] = []

    def ask(candidate: Pair) -> bool:
        asked.append(candidate)
        if relation is not None:
            relation.check(candidate)  # or it would have raised
        return serves(candidate)

    found = smaller_pair(pair, relation, ask, values)
    assert same_data(found.x, x), found
    assert same_data(found.y, y), found
    assert len(asked) <= 20 + 2 * len(pair.x)  # a few for each row that could not go at once


RELATIONS: list[tuple[Relation, Any]] = [
    (ReplaceOne(), st.integers(0, 4)),
    (AddRemoveOne(), st.sampled_from(["a", "b", "cc"])),
    (ReplaceLabel(), st.tuples(st.integers(0, 2), st.integers(0, 2))),
    (PerUser(), st.tuples(st.integers(0, 2), st.integers(0, 2))),
    (AnswersWithin(), None),
    (EdgeNeighbors(), None),
    (NodeNeighbors(), None),
]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(RELATIONS), st.integers(0, 5))
def test_what_is_found_is_a_pair_of_neighbours_that_served(data: Any, case: Any, salt: int) -> None:
    relation, rows = case
    pair = data.draw(pairs_of(relation, rows))

    def serves(candidate: Pair) -> bool:  # any rule, as long as it says the same of the same pair
        return sum(repr((candidate.x, candidate.y, salt)).encode()) % 3 > 0

    asked: list[Pair] = []

    def ask(candidate: Pair) -> bool:
        asked.append(candidate)
        relation.check(candidate)
        return serves(candidate)

    found = smaller_pair(pair, relation, ask)
    if found is not pair:
        assert any(found is candidate for candidate in asked)
        assert serves(found)
        assert len(found.x) + len(found.y) <= len(pair.x) + len(pair.y)
        assert type(found.x) is type(pair.x)


def triangles(graph: Any) -> int:
    return int(np.trace(np.linalg.matrix_power(graph, 3))) // 6


def test_graphs_lose_nodes_and_edges() -> None:
    relation = EdgeNeighbors()
    pair = next(p for p in relation.patterns([0, 1], 9) if p.name == "complete graph, edge (0, 8)")
    found = smaller_pair(pair, relation, lambda p: triangles(p.x) != triangles(p.y))
    relation.check(found)
    assert found.x.shape == (3, 3)
    assert {triangles(found.x), triangles(found.y)} == {0, 1}
    edges = smaller_pair(pair, relation, lambda p: len(p.x) == 9)
    assert edges.x.sum() + edges.y.sum() == 2


@pytest.mark.parametrize("change", ["rewire", "add-remove"])
def test_graphs_lose_nodes_that_both_have(change: str) -> None:
    relation = NodeNeighbors(change)
    for pair in relation.patterns([0, 1], 6):
        found = smaller_pair(pair, relation, always)
        relation.check(found)
        assert len(found.x) + len(found.y) == (4 if change == "rewire" else 1)


def test_nothing_is_tried_that_is_smaller_than_the_claim_allows() -> None:
    pair = Pair(array(*LONG, 1), array(*LONG))
    found = smaller_pair(pair, AddRemoveOne(), always, [0, 1], least=5)
    assert (len(found.x), len(found.y)) == (6, 5)


def test_rows_outside_the_domain_are_replaced_by_rows_of_the_pair_only() -> None:
    tried: list[int] = []

    def note(pair: Pair) -> bool:
        tried.extend([*pair.x, *pair.y])
        return False

    smaller_pair(Pair(array(50, 60, 70), array(50, 61, 70)), ReplaceOne(), note, [0, 1])
    assert set(tried) <= {50, 60, 61, 70}


def test_the_last_pair_that_served_is_kept_where_nothing_more_may_be_tried() -> None:
    asked = 0

    def three_times(pair: Pair) -> bool:
        nonlocal asked
        asked += 1
        if asked > 3:
            raise EnoughError
        return len(pair.x) > 20

    pair = Pair(np.zeros(100), np.zeros(101))
    found = smaller_pair(pair, AddRemoveOne(), three_times)
    assert asked == 4
    assert 20 < len(found.x) < 100


@pytest.mark.parametrize("pair", [Pair([1], (1, 2)), Pair(array(1), np.array([1.5, 2.0])), Pair({"a": 1}, {"a": 2})])
def test_datasets_of_several_kinds_stay_as_they_are(pair: Pair) -> None:
    assert smaller_pair(pair, None, always) is pair


def test_rows_of_a_pair_can_be_found_in_another() -> None:
    original = Pair(array(3, 3, 7, 5, 2), array(3, 3, 4, 5, 2))
    small = Pair(array(7, 0), array(4, 0))
    places = places_of(small, original)
    assert places == ([2, 10], [7, 10], [0])
    again = pair_at(*places, original)
    assert same_data(again.x, small.x)
    assert same_data(again.y, small.y)
    with pytest.raises(SpecificationError, match="5 and 1 rows"):
        pair_at([11], [7], [0], Pair(original.x, array(1)))
