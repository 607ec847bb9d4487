"""Pairs that real implementations fail on: of every kind that is named, all neighbours, all different."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor import AddRemoveOne, EdgeNeighbors, Pair, ReplaceOne, SpecificationError
from auditor.datasets import RELATIONS as RELATION_NAMES
from auditor.datasets import AnswersWithin, Relation, relation_named
from auditor.datasets.crafted_pairs import MOST_PAIRS, hard_pairs, hash_dataset
from auditor.datasets.rows import rows_of, same_row

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
    assert max(max(found) for found in lengths(pairs)) <= max(rows, 7)
    known = {repr(row) for row in rows_of(np.array(values)) + list(values)}
    inside = all(repr(row) in known for pair in pairs for row in [*rows_of(pair.x), *rows_of(pair.y)])
    assert inside or outside


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
def test_the_patterns_of_the_relation_are_among_them_and_early(relation: Any) -> None:
    pairs = hard_pairs(relation, [0, 1], 10)
    where = {frozenset((hash_dataset(p.x), hash_dataset(p.y))): k for k, p in enumerate(pairs)}
    usual = relation.patterns([0, 1], 10 - isinstance(relation, AddRemoveOne))
    places = [where[frozenset((hash_dataset(p.x), hash_dataset(p.y)))] for p in usual]
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


@pytest.mark.parametrize("name", RELATION_NAMES)
@pytest.mark.parametrize("rows", [1, 2, 3, 10])
def test_no_dataset_is_longer_than_allowed(name: str, rows: int) -> None:
    if name in ("edge", "node") and rows == 1:
        with pytest.raises(SpecificationError, match="at least 0 rows, at most 1, is neighbouring"):
            hard_pairs(relation_named(name), [0, 1], 1)
        return
    pairs = hard_pairs(relation_named(name), [0, 1], rows, sizes=[rows])
    assert max(max(found) for found in lengths(pairs)) == rows


@pytest.mark.parametrize("name", [*(name for name in RELATION_NAMES if name not in ("edge", "node", "answers-within"))])
@pytest.mark.parametrize("values", [[1, 2.5], [None, 1], [0, 10**30], [1, "a"], [0, 2**63 + 1], [True, 2]], ids=repr)
def test_neighbours_are_of_one_type_and_hold_the_very_values(name: str, values: list[Any]) -> None:
    for named in (name, f"{name}:value", f"{name}:feature") if name in ("label", "per-user") else (name,):
        for pair in hard_pairs(relation_named(named), values, 4):
            assert [kind(pair.x), kind(pair.y)] == [kind(pair.x)] * 2
            known = [*values, *range(5)]
            rows = [row if isinstance(row, list | tuple) else [row] for row in [*rows_of(pair.x), *rows_of(pair.y)]]
            assert all(any(same_row(entry, value) for value in known) for row in rows for entry in row)


def kind(data: Any) -> Any:
    """What a target may see of a dataset beside its rows."""
    if isinstance(data, pd.DataFrame):
        return list(data.columns), list(data.dtypes)
    return (data.dtype, data.shape[1:]) if isinstance(data, np.ndarray) else type(data)


@pytest.mark.parametrize("values", [[[1], [1, 2]], [[1, [2, 3]], [2, [4, 5]]], [0, [1]], [[], [1]]], ids=repr)
def test_records_of_several_lengths_are_lists(values: list[Any]) -> None:
    for relation in RELATIONS:
        pairs = hard_pairs(relation, values, 4, outside=True)
        assert all(isinstance(data, list) for pair in pairs for data in (pair.x, pair.y))
        assert holds(pairs, lambda rows: values[0] in rows and values[1] in rows)


@pytest.mark.parametrize(
    "values", [[2**63, 2**64 - 1], list(np.array([3, 200], dtype=np.uint8)), [np.int8(-3), np.int8(9)]], ids=repr
)
def test_rows_out_of_the_domain_are_numbers_that_its_type_holds(values: list[Any]) -> None:
    for relation in RELATIONS:
        pairs = hard_pairs(relation, values, 4, outside=True)
        assert all(pair.x.dtype == pair.y.dtype == np.asarray(values).dtype for pair in pairs)
    assert holds(pairs, lambda rows: any(not values[0] <= row <= values[1] for row in rows))


def test_a_domain_that_is_none_of_an_edge_is_shown() -> None:
    cases: list[tuple[list[Any], str]] = [
        ([np.zeros(2), np.ones(2)], "array([0., 0.])"),
        ([[0], [1]], "[0]"),
        (["0", "1"], "'0'"),
        ([0, 2], "2"),
    ]
    for values, shown in cases:
        with pytest.raises(SpecificationError) as caught:
            hard_pairs(EdgeNeighbors(), values, 4)
        assert str(caught.value).endswith(f"the domain of a graph is that of an edge, 0 and 1, got {shown}")


def test_a_row_of_the_only_value_may_go_away() -> None:
    assert (1, 0) in lengths(hard_pairs(AddRemoveOne(), [1, 1], 4))


def test_each_value_of_the_domain_and_each_place_has_its_pair() -> None:
    values = ["a", "", "b", None, "c", "d"]
    for relation in RELATIONS:
        pairs = hard_pairs(relation, values, 5)
        for value in values:
            assert any(rows_of(p.x).count(value) != rows_of(p.y).count(value) for p in pairs)
    places = {int(np.flatnonzero(p.x != p.y)[0]) for p in hard_pairs(ReplaceOne(), [0, 1], 9) if len(p.x) == 9}
    assert places == set(range(9))
    for name in ("label", "per-user"):
        found = {row[1] for p in hard_pairs(relation_named(name), [0, 1, 2, 3], 6) for row in p.y.tolist()}
        assert found == {0, 1, 2, 3}
    cells = [np.array(p.y)[p.x != p.y] for p in hard_pairs(relation_named("cell"), [[0, 0], [1, 1], [2, 2]], 6)]
    assert {1, 2} <= {int(cell[0]) for cell in cells}


def test_odd_values_of_a_long_domain_have_their_pairs() -> None:
    values = [f"name {k}" for k in range(5_000)]
    pairs = hard_pairs(AddRemoveOne(), [*values[:2_501], "", None, *values[2_501:]], 5)
    assert holds(pairs, lambda rows: "" in rows)
    assert holds(pairs, lambda rows: None in rows)
    assert len(pairs) < MOST_PAIRS


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
        (["a", "b"], {"", "\0", "not in the domain", "a" * 1_000, "A", "a ", "\u00e9\u4e2d"}),
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
@pytest.mark.parametrize(
    "values", [[0, 1], [-3, 0, 1_000_000], [0.0, 1.0], [-2.0, 0.5, 4.0], [1e308, -1e308]], ids=repr
)
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
