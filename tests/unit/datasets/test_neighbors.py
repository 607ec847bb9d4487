"""Relations recognise neighbours, refuse the rest with a reason, and their patterns are neighbours."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor import (
    AddRemoveAnyOrder,
    AddRemoveOne,
    AnswersWithin,
    EdgeNeighbors,
    Group,
    NodeNeighbors,
    Pair,
    PerUser,
    ReplaceLabel,
    ReplaceOne,
    SpecificationError,
)
from auditor.datasets import RELATIONS, Relation, ReplaceCell, check_pairs, relation_named
from auditor.datasets.crafted_pairs import hard_pairs
from auditor.datasets.files import parse_domain
from auditor.datasets.rows import find_differing_rows

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


@pytest.mark.parametrize(
    ("entries", "other"),
    [
        ([np.array([1, 2]), np.array([3])], np.array([4])),
        ([np.array([1, 2]), 3], np.array([3])),
        ([[[1], [2, 3]], 5], [[5]]),
        (pd.array(["a", None], dtype="string"), "b"),
        (pd.array([True, None], dtype="boolean"), False),
        ([{"a": np.array([1, 2])}, {"a": 3}], {"a": 4}),
        ([pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})], pd.DataFrame({"a": [3]})),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_entries_of_any_kind_are_compared(entries: Any, other: Any) -> None:
    x, y = pd.DataFrame({"a": entries}), pd.DataFrame({"a": [entries[0], other]}, dtype=pd.Series(entries).dtype)
    assert find_differing_rows(x, y).tolist() == find_differing_rows(list(entries), [entries[0], other]).tolist()
    assert find_differing_rows(x, y).tolist() == [False, True]
    assert not find_differing_rows(x, x.copy()).any()


def test_large_integers_beside_fractions_are_compared_exactly() -> None:
    x = pd.DataFrame({"a": [2**60, 1], "b": [0.5, 1.0]})
    assert find_differing_rows(x, x.assign(a=[2**60 + 1, 1])).tolist() == [True, False]
    whole = pd.DataFrame({"a": [2**60 + 1, 1], "b": [2, 3]})
    for a, b in ((whole, whole.astype(float)), (whole.to_numpy(), whole.to_numpy(float))):
        assert find_differing_rows(a, b).tolist() == find_differing_rows(b, a).tolist() == [True, False]


def test_frames_of_one_type_are_compared_as_a_table() -> None:
    x = pd.DataFrame(np.zeros((3, 4)))
    y = x.copy()
    x.iloc[1, 2] = y.iloc[1, 2] = np.nan
    y.iloc[2, 3] = 1.0
    assert find_differing_rows(x, y).tolist() == find_differing_rows(x.to_numpy(), y.to_numpy()).tolist()
    assert find_differing_rows(x, y).tolist() == find_differing_rows(x.astype("Float64"), y.astype("Float64")).tolist()
    assert find_differing_rows(x, y).tolist() == [False, False, True]


def test_masked_entries_are_missing_ones() -> None:
    x = np.ma.array([1, 2, 3], mask=[False, True, False])
    shown, covered = np.ma.array([1, 2, 3], mask=False), np.ma.array([1, 9, 3], mask=[False, True, False])
    assert find_differing_rows(x, shown).tolist() == [False, True, False]
    assert not find_differing_rows(x, covered).any()


def test_rows_that_are_compared_with_nothing_are_refused() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(SpecificationError, match="a Odd cannot be compared: ambiguous"):
        ReplaceOne().check(Pair([Odd()], [Odd()]))
    with pytest.raises(SpecificationError, match="a Odd cannot be counted"):
        AddRemoveAnyOrder().check(Pair([Odd()], []))
    for relation in (ReplaceOne(), AddRemoveOne()):
        with pytest.raises(SpecificationError, match="rows of a set have no order"):
            relation.check(Pair({1, 2, 3}, {1, 2} if relation == AddRemoveOne() else {1, 2, 4}))
    AddRemoveAnyOrder().check(Pair({1, 2, 3}, {1, 3}))
    AddRemoveAnyOrder().check(Pair([{1}, {2}], [{2}]))


def test_the_index_of_a_frame_does_not_matter() -> None:
    one, other = frame((1, "a"), (2, "b")), frame((1, "a"), (3, "b"))
    other.index = pd.Index([7, 9])
    ReplaceOne().check(Pair(one, other))


@pytest.mark.parametrize(
    "index", [["u", "v"], pd.Index([7, 9], name="user"), [0.5, 1.0], [("u", 1), ("v", 2)]], ids=repr
)
@pytest.mark.parametrize(
    "relation", [ReplaceOne(), ReplaceLabel(), ReplaceCell(), AddRemoveOne(), AddRemoveAnyOrder(), Group(1)], ids=repr
)
def test_but_names_of_rows_are_data(index: Any, relation: Relation) -> None:
    gone = isinstance(relation, AddRemoveOne)
    one, other = frame((1, "a"), (2, "b")), frame((1, "a"), (2, "c"))
    one.index = other.index = index
    relation.check(Pair(one, other.iloc[:1] if gone else other))
    if not isinstance(index, pd.Index):
        index = pd.Index(index)
    one.index, other.index = index[::-1], index
    with pytest.raises(SpecificationError, match=r"not neighbours|group of 1 apart"):
        relation.check(Pair(one, other.iloc[:1] if gone else other))
    other.index = index.set_names(["person"] * index.nlevels)
    with pytest.raises(SpecificationError, match=r"different names of the index: .* and \['person'"):
        relation.check(Pair(one, other.iloc[:1] if gone else other))


def test_a_label_or_cell_and_the_name_of_its_row_are_two() -> None:
    one, other = frame((1, "a"), (2, "b")), frame((1, "a"), (2, "c"))
    one.index, other.index = pd.Index(["u", "v"]), pd.Index(["u", "w"])
    ReplaceOne().check(Pair(one, other))
    for relation in (ReplaceLabel(), ReplaceCell()):
        with pytest.raises(SpecificationError, match=r"row 1 differs in .*the index"):
            relation.check(Pair(one, other))


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
        (["1"], ["2"], "must be numbers"),
        ([1 + 2j], [1 + 9j], "must be numbers"),
        (np.ma.array([1.0, 5.0], mask=[False, True]), np.ma.array([2.0, 5.0], mask=[False, False]), "must be numbers"),
        (pd.Series({"a": 1.0, "b": 2.0}), pd.Series({"b": 1.5, "a": 2.0}), "['a', 'b'] and ['b', 'a']"),
        (pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [1], "a": [2]}), "['a', 'b'] and ['b', 'a']"),
    ],
    ids=repr,
)
def test_answers_that_move_otherwise_are_refused(x: Any, y: Any, reason: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        AnswersWithin(1.0).check(Pair(x, y))
    assert reason in str(caught.value)


def test_a_relations_name_may_say_which_column() -> None:
    assert relation_named("per-user:city") == PerUser("city")
    assert relation_named("label:-2") == ReplaceLabel(-2)
    for wrong in ("per-user:", "replace-one:age", "rows", ""):
        with pytest.raises(SpecificationError, match=repr(wrong)):
            relation_named(wrong)


def test_a_cell_is_one_entry_of_one_row() -> None:
    low, high = {"age": 10, "city": "p"}, {"age": 90, "city": "q"}
    pairs = list(ReplaceCell().patterns([low, high], 4))
    assert {len(pair.x) for pair in pairs} == {1, 4}
    for pair in pairs:
        ReplaceCell().check(pair)
        assert sum(a[key] != b[key] for a, b in zip(pair.x, pair.y, strict=True) for key in a) == 1
    with pytest.raises(SpecificationError, match="row 0 differs in age, city, expected exactly 1 entry"):
        ReplaceCell().check(Pair([low], [high]))
    with pytest.raises(SpecificationError, match="2 rows differ"):
        ReplaceCell().check(Pair([low, low], [high, high]))


def test_a_domain_of_records_is_an_array_or_a_file(tmp_path: Path) -> None:
    records = [{"age": 10, "city": "p"}, {"age": 90, "city": "q"}]
    assert parse_domain(json.dumps(records)) == records
    (tmp_path / "people.csv").write_text("age,city\n10,p\n90,q\n", encoding="utf-8")
    assert parse_domain(f"@{tmp_path / 'people.csv'}") == records
    for wrong in ('[{"age": 1}]', "[1, 2", f"@{tmp_path / 'none.csv'}"):
        with pytest.raises(SpecificationError, match=r"domain|data file"):
            parse_domain(wrong)


@pytest.mark.parametrize("text", ["0:1e308", "0:1.5", "5:1", "3:3", ":"])
def test_ends_of_a_domain_are_increasing_whole_numbers(text: str) -> None:
    with pytest.raises(SpecificationError, match=f"domain '{text}': the ends must be increasing whole numbers"):
        parse_domain(text)


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


# ------------------------------------------------------------------------------------- labels


def labelled(*rows: tuple[Any, ...]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["age", "label", "name"])


@pytest.mark.parametrize(
    ("relation", "x", "y"),
    [
        (ReplaceLabel(), np.array([[1, 0], [2, 0]]), np.array([[1, 0], [2, 1]])),
        (ReplaceLabel(0), np.array([[1.0, NAN], [2, 0]]), np.array([[NAN, NAN], [2, 0]])),
        (ReplaceLabel(-2), np.array([[1, 0], [2, 0]]), np.array([[1, 0], [3, 0]])),
        (ReplaceLabel(), [("a", 0), ("b", 0)], [("a", 1), ("b", 0)]),
        (ReplaceLabel(), [["a", 0], ["b", 0]], [["a", None], ["b", 0]]),
        (ReplaceLabel(), ((NAN, 0),), ((NAN, 1),)),
        (ReplaceLabel("y"), [{"x": 1, "y": 0}], [{"x": 1, "y": 1}]),
        (ReplaceLabel("label"), labelled((30, 0, "a"), (40, 1, None)), labelled((30, 0, "a"), (40, 0, None))),
        (ReplaceLabel(), labelled((30, 0, "a")), labelled((30, 0, "b"))),
        (ReplaceLabel(1), labelled((NAN, 0, "a")), labelled((NAN, 1, "a"))),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_one_label_replaced_is_a_neighbour(relation: ReplaceLabel, x: Any, y: Any) -> None:
    relation.check(Pair(x, y))
    relation.check(Pair(y, x))
    ReplaceOne().check(Pair(x, y))


@pytest.mark.parametrize(
    ("relation", "x", "y", "reason"),
    [
        (ReplaceLabel(), np.array([[1, 0], [2, 0]]), np.array([[1, 0], [3, 0]]), "row 1 differs in 0"),
        (ReplaceLabel(), np.array([[1, 0], [2, 0]]), np.array([[1, 1], [2, 1]]), "2 rows differ"),
        (ReplaceLabel(), np.array([[1, 0]]), np.array([[1, 0]]), "0 rows differ"),
        (ReplaceLabel(), np.array([[1, 0]]), np.array([[1, 0], [1, 0]]), "1 rows against 2"),
        (ReplaceLabel("label"), labelled((30, 0, "a")), labelled((31, 1, "b")), "row 0 differs in age, name"),
        (ReplaceLabel(), [("a", 0), ("b", 0)], [("a", 0), ("c", 1)], "row 1 differs in 0"),
        (ReplaceLabel(), [("a", 0)], [("a", 0, 0)], "the number of entries"),
        (ReplaceLabel("y"), [{"x": 1, "y": 0}], [{"x": 2, "y": 1, "z": 0}], "row 0 differs in x, z"),
        (ReplaceLabel(5), np.array([[1, 0]]), np.array([[1, 1]]), "no column 5"),
        (ReplaceLabel("y"), np.array([[1, 0]]), np.array([[1, 1]]), "no column 'y'"),
        (ReplaceLabel("y"), labelled((30, 0, "a")), labelled((30, 1, "a")), "no column 'y'"),
        (ReplaceLabel(), np.array([1, 0]), np.array([1, 1]), "no column -1"),
        (ReplaceLabel(), [1, 0], [1, 1], "no entry -1"),
        (ReplaceLabel(), ["ab"], ["ac"], "no entry -1"),
        (ReplaceLabel("y"), [{"x": 1}], [{"x": 2}], "no entry 'y'"),
        (ReplaceLabel(), labelled((30, 0, "a")), [(30, 0, "b")], "different kinds"),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_other_pairs_are_refused_by_replace_label(relation: ReplaceLabel, x: Any, y: Any, reason: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        relation.check(Pair(x, y, "odd pair"))
    assert reason in str(caught.value)


# -------------------------------------------------------------------------------------- users


def brute_force_per_user(x: list[tuple[int, int]], y: list[tuple[int, int]], change: str, most: int | None) -> bool:
    """The definition: some user without whose rows the two are the same."""
    users = {user for user, _ in x + y}
    count = {(name, u): sum(user == u for user, _ in data) for name, data in (("x", x), ("y", y)) for u in users}
    if x == y or (most is not None and max(count.values(), default=0) > most):
        return False
    for u in users:
        if [row for row in x if row[0] != u] == [row for row in y if row[0] != u]:
            both = count["x", u] > 0 and count["y", u] > 0
            if both == (change == "replace"):
                return True
    return False


@pytest.mark.parametrize("most", [None, 1, 2])
@pytest.mark.parametrize("change", ["replace", "add-remove"])
def test_per_user_is_its_definition_on_all_small_datasets(change: str, most: int | None) -> None:
    rows = list(itertools.product([1, 2], [0, 1]))
    datasets = [list(data) for size in range(4) for data in itertools.product(rows, repeat=size)]
    rng = np.random.default_rng(0)
    relation, accepted = PerUser(0, change, most), 0
    for k, m in rng.integers(len(datasets), size=(1_500, 2)).tolist():
        x, y = datasets[k], datasets[m]
        expected = brute_force_per_user(x, y, change, most)
        accepted += expected
        assert accepts(relation, x, y) == expected, (x, y)
    assert accepted  # the comparison has seen both


USERS = pd.DataFrame({"value": [1.0, NAN, 3.0], "user": ["a", "b", "a"]})


@pytest.mark.parametrize(
    ("relation", "x", "y"),
    [
        (PerUser("user"), USERS, USERS.assign(value=[5.0, NAN, 3.0])),
        (PerUser("user"), USERS, USERS.assign(value=[5.0, NAN, 6.0])),
        (PerUser("user"), USERS, USERS.iloc[1:]),
        (PerUser("user"), USERS, USERS.iloc[[0, 2, 1]]),  # the user's rows may stand elsewhere
        (PerUser(-1, "add-remove"), USERS, USERS.iloc[[1]]),
        (PerUser("user", "add-remove", most=2), USERS, USERS.iloc[[0, 2]]),
        (PerUser("user", "add-remove"), USERS.iloc[[0]], USERS.iloc[:0]),
        (PerUser(), np.array([[1, 0], [2, 0], [1, 0]]), np.array([[2, 0], [1, 7]])),
        (PerUser(), np.array([[NAN, 0.0], [1.0, 1.0]]), np.array([[NAN, 2.0], [1.0, 1.0]])),
        (PerUser(0, "add-remove"), [("a", 1), (None, 2)], [("a", 1)]),
        (PerUser("u"), [{"u": 1, "v": 2}], [{"u": 1, "v": 3}]),
        (PerUser(0, "add-remove"), [((1, 2), 0)], []),  # users of any hashable kind
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_all_rows_of_one_user_make_neighbours(relation: PerUser, x: Any, y: Any) -> None:
    relation.check(Pair(x, y))
    relation.check(Pair(y, x))


@pytest.mark.parametrize(
    ("relation", "x", "y", "reason"),
    [
        (PerUser(), [(1, 0), (2, 0)], [(1, 1), (2, 1)], "1 rows differ, the first at 0"),
        (PerUser(), [(1, 0), (2, 0)], [(2, 0)], "1 rows against 0, expected some in both"),
        (PerUser(), [(1, 0)], [(2, 0)], "0 rows against 1"),
        (PerUser(0, "add-remove"), [(1, 0)], [(1, 1)], "1 rows against 1, expected none in one of the two"),
        (PerUser(), [(1, 0)], [(1, 0)], "0 rows differ"),
        (PerUser(), [], [], "0 rows differ"),
        (PerUser(most=1), [(1, 0), (1, 1)], [(1, 0)], "a user has 2 rows, expected at most 1"),
        (PerUser("u"), USERS, USERS.iloc[1:], "no column 'u'"),
        (PerUser(2), np.zeros((2, 2)), np.ones((2, 2)), "no column 2"),
        (PerUser(), [1, 2], [1, 3], "no entry 0"),
        (PerUser(), USERS, [(1.0, "a")], "different kinds"),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_other_pairs_are_refused_by_per_user(relation: PerUser, x: Any, y: Any, reason: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        relation.check(Pair(x, y, "odd pair"))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: PerUser(change="rename"), "'rename'"),
        (lambda: PerUser(most=0), "0"),
        (lambda: PerUser(most=True), "True"),
        (lambda: PerUser(key=1.5), "1.5"),  # type: ignore[arg-type]
        (lambda: ReplaceLabel(label=None), "None"),  # type: ignore[arg-type]
        (lambda: NodeNeighbors("rename"), "'rename'"),
    ],
)
def test_a_parameter_that_is_none_is_refused_and_shown(make: Any, shown: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        make()
    assert shown in str(caught.value)


# ------------------------------------------------------------------------------------- graphs


def graph(n: int, *edges: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = np.zeros((n, n), dtype=np.int64)
    for i, j in edges:
        found[i, j] = found[j, i] = 1
    return found


def small_graphs(n: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    upper = list(itertools.combinations(range(n), 2))
    return [
        graph(n, *(e for e, kept in zip(upper, chosen, strict=True) if kept))
        for chosen in itertools.product([0, 1], repeat=len(upper))
    ]


def without(g: np.ndarray[Any, Any], v: int) -> np.ndarray[Any, Any]:
    return np.delete(np.delete(g, v, axis=0), v, axis=1)


def accepts(relation: Relation, x: Any, y: Any) -> bool:
    try:
        relation.check(Pair(x, y))
    except SpecificationError:
        return False
    return True


def test_edge_and_node_neighbours_are_their_definitions_on_all_graphs_of_four_nodes() -> None:
    graphs = small_graphs(4)
    seen = [0, 0]
    for x, y in itertools.product(graphs, repeat=2):
        edge = int((x != y).sum()) == 2
        node = bool((x != y).any()) and any(np.array_equal(without(x, v), without(y, v)) for v in range(4))
        assert accepts(EdgeNeighbors(), x, y) == edge
        assert accepts(NodeNeighbors(), x, y) == node
        seen = [seen[0] + edge, seen[1] + node]
    assert seen[0] == 64 * 6  # each graph has one neighbour for each pair of nodes
    assert seen[1] > seen[0]


def test_a_removed_node_is_found_in_all_graphs_of_four_nodes() -> None:
    seen = 0
    for x, y in itertools.product(small_graphs(4), small_graphs(3)):
        expected = any(np.array_equal(without(x, v), y) for v in range(4))
        assert accepts(NodeNeighbors("add-remove"), x, y) == expected
        assert accepts(NodeNeighbors("add-remove"), y, x) == expected
        seen += expected
    assert 64 <= seen < 64 * 8


def test_graphs_may_be_of_any_numbers_and_lists() -> None:
    for kind in (bool, np.int8, float):
        EdgeNeighbors().check(Pair(graph(3).astype(kind), graph(3, (0, 2)).astype(kind)))
    EdgeNeighbors().check(Pair(graph(3).tolist(), graph(3, (0, 2)).tolist()))
    NodeNeighbors("add-remove").check(Pair([], [[0]]))


ODD = graph(3, (0, 1))


@pytest.mark.parametrize("relation", [EdgeNeighbors(), NodeNeighbors(), NodeNeighbors("add-remove")], ids=repr)
@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (np.where(graph(3, (1, 2)) == 1, 2, 0), "entry (1, 2) is 2: expected 0 or 1"),
        (np.array([[0, 0.5], [0.5, 0]]), "entry (0, 1) is 0.5: expected 0 or 1"),
        (np.array([[0.0, NAN], [NAN, 0.0]]), "entry (0, 1) is nan: expected 0 or 1"),
        (np.triu(graph(3, (0, 2))), "entry (0, 2) is 1: the array is not symmetric there"),
        (np.eye(2, dtype=int), "entry (0, 0) is 1: a node has no edge to itself"),
        (np.zeros((2, 3)), "(2, 3)"),
        (np.zeros(3), "(3,)"),
        ([[0, 1], [1]], "differ in length"),
        (np.array([["0"]]), "entries of type <U1"),
        (7, "()"),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_what_is_no_graph_is_refused_with_the_entry(relation: Relation, odd: Any, reason: str) -> None:
    for pair in (Pair(odd, ODD, "odd pair"), Pair(ODD, odd, "odd pair")):
        with pytest.raises(SpecificationError) as caught:
            relation.check(pair)
        assert "odd pair" in str(caught.value)
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("relation", "x", "y", "reason"),
    [
        (EdgeNeighbors(), graph(3), graph(3), "0 edges differ"),
        (EdgeNeighbors(), graph(3), graph(3, (0, 1), (1, 2)), "2 edges differ, among them (0, 1), (1, 2)"),
        (EdgeNeighbors(), graph(3), graph(4), "3 nodes against 4"),
        (NodeNeighbors(), graph(3), graph(3), "0 edges differ"),
        (NodeNeighbors(), graph(4), graph(4, (0, 1), (0, 2), (2, 3)), "beside those of node 0 there is (2, 3)"),
        (NodeNeighbors(), graph(4), graph(3), "4 nodes against 3"),
        (NodeNeighbors("add-remove"), graph(3), graph(3), "3 nodes against 3"),
        (NodeNeighbors("add-remove"), graph(2), graph(4), "2 nodes against 4"),
        (NodeNeighbors("add-remove"), graph(3, (0, 1), (1, 2), (0, 2)), graph(2), "1 edges differ"),
    ],
    ids=lambda value: " ".join(repr(value).split())[:40],
)
def test_graphs_that_differ_otherwise_are_refused_with_the_edges(
    relation: Relation, x: Any, y: Any, reason: str
) -> None:
    with pytest.raises(SpecificationError) as caught:
        relation.check(Pair(x, y, "odd pair"))
    assert reason in str(caught.value)


# -------------------------------------------------------------------- patterns of these relations

FURTHER: list[Relation] = [
    ReplaceLabel(),
    ReplaceLabel(0),
    ReplaceLabel("label"),
    PerUser(),
    PerUser(1, "add-remove"),
    PerUser("user", "replace", 2),
    PerUser("user", "add-remove", 1),
    EdgeNeighbors(),
    NodeNeighbors(),
    NodeNeighbors("add-remove"),
]


@pytest.mark.parametrize("relation", FURTHER, ids=repr)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("domain", [[0, 1], ["a", "b"], [0.5, 0.0, -1.5], [(0, 1), (1, 0)]], ids=repr)
def test_every_further_pattern_is_a_pair_of_neighbours(relation: Relation, size: int, domain: list[Any]) -> None:
    if isinstance(relation, EdgeNeighbors | NodeNeighbors):
        domain = [0, 1]
    named = "label" if relation == ReplaceLabel("label") else "user" if relation in FURTHER[5:7] else ""
    if named and isinstance(domain[0], tuple):
        domain = [{"x": 1, named: 0}, {"x": 2, named: 1}]
    pairs = list(relation.patterns(domain, size))
    assert pairs
    check_pairs(pairs, relation)
    check_pairs([Pair(pair.y, pair.x) for pair in pairs], relation)
    assert len({pair.name for pair in pairs}) == len(pairs)
    assert max(max(len(pair.x), len(pair.y)) for pair in pairs) in (size, max(size, 2))


def test_patterns_of_labels_reach_the_ends_and_equal_features() -> None:
    pairs = [pair for pair in ReplaceLabel().patterns([0, 1], 5) if len(pair.x) == 5]
    assert {int(np.flatnonzero((pair.x != pair.y).any(axis=1))[0]) for pair in pairs} == {0, 2, 4}
    assert {len(np.unique(pair.x[:, 0])) for pair in pairs} == {1, 5}
    assert {int(pair.x[:, 1].sum()) for pair in pairs} >= {0, 4}  # all labels low, all but one high


def test_a_key_may_stand_in_the_place_of_a_sequence() -> None:
    pairs = hard_pairs(PerUser(), [[[1, 2], [3, 4]], [[0, 0], [1, 1]]], 3)
    assert pairs
    assert pairs[0].x == [[0, [3, 4]], [1, [3, 4]], [2, [3, 4]]]


def test_patterns_of_users_have_light_heavy_scattered_and_lone_users() -> None:
    pairs = list(PerUser(change="add-remove").patterns([0, 1], 6))
    own = [int((pair.x[:, 0] == 0).sum()) for pair in pairs]
    assert set(own) == {1, 3, 6}
    assert any(len(pair.y) == 0 for pair in pairs)
    places = {tuple(np.flatnonzero(pair.x[:, 0] == 0).tolist()) for pair in pairs}
    assert {(0,), (5,), (0, 1, 2), (3, 4, 5), (0, 2, 4)} <= places


def triangles(g: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    return int(np.trace(g @ g @ g)) // 6


def common(g: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """Most common neighbours of two nodes: the local sensitivity of the number of triangles."""
    return int(np.where(np.eye(len(g), dtype=bool), 0, g @ g).max())


def test_patterns_of_edges_have_the_pairs_that_the_catalogue_names() -> None:
    pairs = list(EdgeNeighbors().patterns([0, 1], 7))
    found = {(triangles(p.x), triangles(p.y), common(p.x), common(p.y)) for p in pairs}
    assert (0, 5, 5, 5) in found  # K_{2,5}: the edge between the hubs makes 5 triangles, the sensitivity stays
    assert any(a == b and s + 1 == t for a, b, s, t in found)  # a spoke raises the sensitivity alone
    assert (0, 0, 0, 0) in found  # two nodes, or an edge in the empty graph


def test_patterns_of_nodes_have_the_star_and_the_complete_graph() -> None:
    degrees = {(int(p.x.sum()) // 2, int(p.y.sum()) // 2) for p in NodeNeighbors().patterns([0, 1], 6)}
    assert {(0, 5), (10, 15)} <= degrees  # nothing against a star, a clique and a node against a larger clique
    sizes = {(len(p.x), len(p.y)) for p in NodeNeighbors("add-remove").patterns([0, 1], 6)}
    assert sizes == {(6, 5), (1, 0)}


@pytest.mark.parametrize("relation", [EdgeNeighbors(), NodeNeighbors()], ids=repr)
def test_a_graphs_domain_is_that_of_an_edge(relation: Relation) -> None:
    with pytest.raises(SpecificationError, match="got 2"):
        list(relation.patterns([0, 1, 2], 4))


@pytest.mark.parametrize(
    ("relation", "domain", "reason"),
    [
        (ReplaceLabel(), [1], "at least two values"),
        (ReplaceLabel(), [(1, 0), (2, 0)], "two labels, got only 0"),
        (ReplaceLabel(2), [0, 1], "none at 2"),
        (ReplaceLabel("y"), [(1, 0), (2, 1)], "no entry 'y'"),
        (PerUser(), [], "at least two values"),
        (PerUser(3), ["a", "b"], "none at 3"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_domain_that_does_not_fit_is_refused(relation: Relation, domain: list[Any], reason: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        list(relation.patterns(domain, 4))
    assert reason in str(caught.value)


# ---------------------------------------------------------------------------------- check_pairs


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2, 3], [3, 1]),
        ([2], []),
        (np.array([1.0, np.nan, 1.0]), np.array([np.nan, 1.0])),
        ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [{"a": 2, "b": "y"}]),
        ([[1, 2], [1, 2]], [[1, 2]]),
    ],
)
def test_the_order_of_rows_may_not_count(x: Any, y: Any) -> None:
    AddRemoveAnyOrder().check(Pair(x, y))
    AddRemoveAnyOrder().check(Pair(y, x))


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([1, 2, 3], [3, 4], "3 rows are in one dataset only"),
        ([1, 1], [2], "3 rows are in one dataset only"),
        ([1, 2], [2, 1], "2 rows against 2"),
        ([1, 2, 3], [1], "3 rows against 1"),
    ],
)
def test_but_every_row_has_to_be_there(x: Any, y: Any, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        AddRemoveAnyOrder().check(Pair(x, y))


def test_pairs_in_another_order_are_made() -> None:
    pairs = hard_pairs(AddRemoveAnyOrder(), [-5, 0, 5], 4)
    moved = [pair for pair in pairs if "reversed" in pair.name]
    assert moved
    for pair in pairs:
        AddRemoveAnyOrder().check(pair)

    # A sum that stops at 7 depends on the order of two rows of 5 and two of -5.
    def total(rows: Any) -> int:
        found = 0
        for row in rows:
            found = max(-7, min(7, found + int(row)))
        return found

    assert (
        max(abs(total(pair.x) - total(pair.y)) for pair in pairs)
        > 5
        >= max(abs(total(pair.x) - total(pair.y)) for pair in hard_pairs(AddRemoveOne(), [-5, 0, 5], 4))
    )


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
        "add-remove-any-order": "add or remove one, in any order",
        "answers-within": "every answer within the sensitivity",
        "label": "replace the label of one row",
        "cell": "replace one cell",
        "per-user": "all rows of one user",
        "edge": "add or remove one edge",
        "node": "change one node",
    }
    for relation in RELATIONS.values():
        assert list(relation().patterns([0, 1], 4))
