"""Pairs that real implementations fail on: of every kind that is named, all neighbours, all different."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from auditor import AddRemoveOne, EdgeNeighbors, Pair, ReplaceOne, SpecificationError
from auditor.datasets import AnswersWithin, Relation
from auditor.datasets.crafted_pairs import MOST_PAIRS, hard_pairs, hash_dataset
from auditor.datasets.rows import rows_of

RELATIONS: list[Relation] = [ReplaceOne(), AddRemoveOne()]
DOMAINS: list[Any] = [
    [0, 1],
    [-3, 0, 2, 9],
    [0.0, 0.5, 10.0],
    [False, True],
    ["a", "b", "c"],
    [(0, "x"), (1, "y")],
    [[0, 1], [3, 4]],
    [{"age": 1, "city": "p"}, {"age": 90, "city": "q"}],
    [np.array([0.0, 1.0]), np.array([2.0, 3.0])],
]


def lengths(pairs: Sequence[Pair]) -> set[tuple[int, int]]:
    return {(len(pair.x), len(pair.y)) for pair in pairs}


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@pytest.mark.parametrize("values", DOMAINS, ids=repr)
@pytest.mark.parametrize("rows", [1, 2, 10, 100])
@pytest.mark.parametrize("outside", [False, True])
def test_all_are_neighbours_and_different_and_few(relation: Any, values: Any, rows: int, outside: bool) -> None:
    pairs = hard_pairs(relation, values, rows, outside=outside, sizes=[7])
    for pair in pairs:
        relation.check(pair)
    assert len({frozenset((hash_dataset(p.x), hash_dataset(p.y))) for p in pairs}) == len(pairs)
    assert len({p.name for p in pairs}) == len(pairs)
    assert 3 <= len(pairs) <= MOST_PAIRS
    assert max(max(found) for found in lengths(pairs)) <= max(rows, 8) + 1
    known = {repr(row) for row in rows_of(np.array(values)) + list(values)}
    inside = all(repr(row) in known for pair in pairs for row in [*rows_of(pair.x), *rows_of(pair.y)])
    assert inside or outside


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_the_patterns_of_the_relation_are_among_them_and_early(relation: Any) -> None:
    pairs = hard_pairs(relation, [0, 1], 10)
    where = {frozenset((hash_dataset(p.x), hash_dataset(p.y))): k for k, p in enumerate(pairs)}
    places = [where[frozenset((hash_dataset(p.x), hash_dataset(p.y)))] for p in relation.patterns([0, 1], 10)]
    assert {0, 1} <= set(places)
    assert max(places) < 60


def test_every_kind_is_among_the_first_thirty() -> None:
    for relation in RELATIONS:
        pairs = hard_pairs(relation, list(range(10)), 20, sizes=[13], outside=True)[:30]
        found = lengths(pairs)
        gone = isinstance(relation, AddRemoveOne)
        assert (1, 1 - gone) in found  # one row
        assert (13, 13 - gone) in found  # given
        assert (19, 19 - gone) in found  # of the other parity
        assert (2, 2 - gone) in found  # a power of two
        assert any("middle" in p.name or "zero" in p.name for p in pairs)
        assert any("one of the others" in p.name for p in pairs)
        assert any("just above" in p.name for p in pairs)


def test_sizes_around_powers_of_two_and_given_ones_and_both_parities() -> None:
    found = {n for n, _ in lengths(hard_pairs(ReplaceOne(), [0, 1], 33, sizes=[21]))}
    assert {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 20, 21, 22} <= found
    longest = {max(pair) for pair in lengths(hard_pairs(AddRemoveOne(), [0, 1], 33, sizes=[21]))}
    assert {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 20, 21, 22} <= longest


def test_a_given_size_is_crossed_by_removing_a_row() -> None:
    pairs = hard_pairs(AddRemoveOne(), [0, 1], 40, sizes=iter([29]))
    assert (29, 28) in lengths(pairs[:10])


@pytest.mark.parametrize("least", [1, 2, 5])
def test_no_dataset_is_smaller_than_allowed(least: int) -> None:
    for relation in RELATIONS:
        sizes = [n for found in lengths(hard_pairs(relation, [0, 1], 10, least=least, sizes=[1, 5])) for n in found]
        assert min(sizes) == least
    assert (1, 0) in lengths(hard_pairs(AddRemoveOne(), [0, 1], 10))


def holds(pairs: Sequence[Pair], wanted: Callable[[list[Any]], bool]) -> bool:
    return any(wanted(rows_of(data)) for pair in pairs for data in (pair.x, pair.y))


def test_duplicated_equal_and_different_rows() -> None:
    pairs = hard_pairs(ReplaceOne(), list(range(12)), 10)
    assert holds(pairs, lambda rows: len(rows) == 10 and len(set(rows)) == 1)
    assert holds(pairs, lambda rows: sorted(map(rows.count, rows)) == [1] + [9] * 9)
    assert holds(pairs, lambda rows: len(rows) == 10 and len(set(rows)) == 10)
    assert holds(pairs, lambda rows: len(set(rows)) == 6 and max(map(rows.count, rows)) == 2)


def test_first_and_last_index_are_replaced_among_different_rows() -> None:
    moved = set()
    for pair in hard_pairs(ReplaceOne(), list(range(12)), 10):
        if len(pair.x) == 10 and len(set(pair.x.tolist())) > 5:
            moved |= set(np.flatnonzero(pair.x != pair.y).tolist())
    assert moved == {0, 9}


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 2, 5], {0, 6, 50, -50, 2**40, -(2**54)}),
        ([0.0, 2.0], {math.nextafter(2.0, 3.0), -math.nextafter(0.0, 1.0), 20.0, -20.0, 1e300, math.inf, -math.inf}),
        (["a", "b"], {"", "\0", "not in the domain", "a" * 1_000, "A", "a "}),
    ],
    ids=["integers", "floats", "texts"],
)
def test_rows_out_of_the_domain(values: list[Any], wanted: set[Any]) -> None:
    pairs = hard_pairs(ReplaceOne(), values, 6, outside=True)
    found = {row for pair in pairs for data in (pair.x, pair.y) for row in rows_of(data)}
    assert wanted <= found
    if isinstance(values[0], float):
        assert any(row != row for row in found)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
@pytest.mark.parametrize("values", [[0, 1], [-3, 0, 1_000_000], [0.0, 1.0], [-2.0, 0.5, 4.0]], ids=repr)
def test_numbers_at_which_arithmetic_goes_wrong_are_between_the_ends(relation: Any, values: Any) -> None:
    usual = {pair.name for pair in hard_pairs(relation, values, 10)}
    pairs = hard_pairs(relation, values, 10, arithmetic=True)
    assert len({pair.name for pair in pairs} - usual) >= 8
    for pair in pairs:
        relation.check(pair)
        for data in (pair.x, pair.y):
            assert all(min(values) <= row <= max(values) for row in data)
            assert type(rows_of(data)[0]) is type(values[0]) if len(data) else True


def test_sums_and_sizes_reach_limits_by_one_row() -> None:
    pairs = hard_pairs(AddRemoveOne(), [-3, 0, 1_000_000], 10, arithmetic=True)
    sums = {(int(np.sum(pair.y)), int(np.sum(pair.x))) for pair in pairs}
    for limit in (2**31, 2**32):
        assert any(y < limit <= x for y, x in sums)
    assert any(y > -(2**15) >= x for y, x in sums)
    assert {(2**bits, 2**bits - 1) for bits in (7, 8, 15, 16)} <= lengths(pairs)
    assert max(max(found) for found in lengths(pairs)) == 2**16


def test_sums_that_round_and_cancel() -> None:
    rows = [list(pair.x) for pair in hard_pairs(AddRemoveOne(), [-1.0, 1.0], 10, arithmetic=True)]
    assert any(0.0 in np.cumsum(row) and row[0] == 1.0 and row[-1] == -1.0 for row in rows if len(row) > 2)
    for bits in (11, 24, 53):
        assert any(1.0 in row and 2.0**-bits * 1.5 in row for row in rows)
    assert any(math.copysign(1.0, row[0]) < 0 and row[0] == 0 for row in rows)


def test_texts_have_no_arithmetic() -> None:
    for values in (["a", "b"], [0.0, math.inf]):
        names = [pair.name for pair in hard_pairs(ReplaceOne(), values, 4)]
        assert [pair.name for pair in hard_pairs(ReplaceOne(), values, 4, arithmetic=True)] == names


def test_entries_of_records_are_put_out_of_the_domain_one_by_one() -> None:
    values = [{"age": 1, "city": "p"}, {"age": 90, "city": "q"}]
    rows = [row for pair in hard_pairs(ReplaceOne(), values, 4, outside=True) for row in pair.y]
    assert any(row["age"] == 91 and row["city"] in ("p", "q") for row in rows)
    assert any(row["city"] == "" and row["age"] in (1, 90) for row in rows)


def test_other_relations_give_their_patterns() -> None:
    for relation, values in ((AnswersWithin(), [0]), (EdgeNeighbors(), [0, 1])):
        pairs = hard_pairs(relation, values, 4, sizes=[2])
        assert [p.name for p in pairs] == [p.name for p in relation.patterns(values, 4)]


def test_many_rows_do_not_fill_the_memory() -> None:
    pairs = hard_pairs(ReplaceOne(), [0, 1], 50_000)
    large = [pair for pair in pairs if len(pair.x) > 10_001]
    assert len(large) <= len(list(ReplaceOne().patterns([0, 1], 4)))
    assert sum(len(pair.x) for pair in pairs) < 3_000_000


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rows": 0}, "rows must be an integer of at least 1, got 0"),
        ({"rows": True}, "True"),
        ({"least": -1}, "got -1"),
        ({"sizes": [2.5]}, "got 2.5"),
        ({"least": 50}, "at least 50 rows"),
        ({"values": [1]}, "at least two values"),
        ({"values": [1, 1]}, "no pair of datasets with rows of [1, 1]"),
    ],
    ids=repr,
)
def test_a_bad_argument_is_refused_with_its_value(change: dict[str, Any], reason: str) -> None:
    options: dict[str, Any] = {"values": [0, 1], "rows": 10} | change
    with pytest.raises(SpecificationError) as caught:
        hard_pairs(ReplaceOne(), options.pop("values"), options.pop("rows"), **options)
    assert reason in str(caught.value)
