"""Datasets of any kind from files, and dicts of equally long arrays as datasets with rows."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor import AddRemoveOne, AnswersWithin, Pair, PerUser, ReplaceLabel, ReplaceOne
from auditor.audits.counterexamples.shrink_data import explain_kept, pair_at, places_of, smaller_pair
from auditor.audits.counterexamples.snippet import python_of, show_data
from auditor.datasets import Group, Relation
from auditor.datasets.files import read_data, read_pair
from auditor.datasets.json_codec import data_from_json, data_to_json, same_data
from auditor.datasets.rows import count_rows, has_rows, rows_of, select_rows, slice_rows
from auditor.errors import SpecificationError


def array(*rows: Any) -> Any:
    return np.array(rows)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("3", 3),
        ("2.5", 2.5),
        ("true", True),
        ("null", None),
        ('"abc"', "abc"),
        ("[1, 2]", array(1, 2)),
        ("[]", []),
        ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ('[{"id": 1}]', [{"id": 1}]),
        ('["a", 1]', ["a", 1]),
        ('{"a": 3}', {"a": 3}),
        ('{"X": [[1, 2], [3, 4]], "y": [0, 1]}', {"X": array([1, 2], [3, 4]), "y": array(0, 1)}),
        ('{"X": [[1, 2], [3]], "y": ["a", "b"]}', {"X": [[1, 2], [3]], "y": ["a", "b"]}),
        ('{"flags": [true, false], "in": {"v": [0.5]}}', {"flags": [True, False], "in": {"v": array(0.5)}}),
        ('{"X": []}', {"X": np.zeros(0)}),
        (f'{{"large": [{2**70}]}}', {"large": [2**70]}),
    ],
)
def test_json_of_any_form_is_a_dataset(tmp_path: Path, text: str, data: Any) -> None:
    (tmp_path / "data.JSON").write_text(text, encoding="utf-8")
    found = read_data(tmp_path / "data.JSON")
    assert same_data(found, data)
    assert same_data(data_from_json(data_to_json(found)), found)
    assert same_data(eval(python_of(found), {"np": np}), found)
    assert show_data(found)


@pytest.mark.parametrize(
    ("data", "expected"), [(np.array(3.0), 3.0), (np.array([1, 2]), array(1, 2)), (np.eye(2), np.eye(2))]
)
def test_numpy_files_hold_arrays_or_a_number(tmp_path: Path, data: Any, expected: Any) -> None:
    np.save(tmp_path / "data.npy", data)
    assert same_data(read_data(tmp_path / "data.npy"), expected)


def test_parquet_is_read_by_pandas_where_pyarrow_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, frame = tmp_path / "data.parquet", pd.DataFrame({"age": [1, 2]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    with pytest.raises(SpecificationError, match=r"data.parquet.*pyarrow.*pip install 'dpaudit\[data\]'"):
        read_data(file)
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
    monkeypatch.setattr(pd, "read_parquet", lambda path: frame if path == file else None)
    assert read_data(file) is frame


def test_parquet_of_types_that_pandas_does_not_make_again_is_named(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    lists = pd.Series([[1], [1, 2]], dtype=pd.ArrowDtype(arrow.list_(arrow.int64())))
    pd.DataFrame({"a": lists}).to_parquet(tmp_path / "data.parquet")
    with pytest.raises(SpecificationError, match=r"data.parquet' cannot be read: .*list<item: int64>"):
        read_data(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data.json", b"[1, ", "cannot be read"),
        ("data.json", b"\xff", "cannot be read"),
        ("data.json", b"[" * 100_000, "nested too deep"),
        ("data.npy", b"", "cannot be read"),
        ("data.csv", b"", "cannot be read"),
        ("data.csv", b"loss\n\n1,5\n2,5\n", "more cells than the heading"),
        ("data.csv", b"loss\n1\n2,5\n", "Expected 1 fields in line 3, saw 2"),
        ("data.csv", b"age,sex\n30,1,7\n40,0,7\n", "more cells than the heading"),
        ("data.xlsx", b"", "expected .csv, .json, .npy, .parquet"),
        ("data", b"", "expected .csv"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SpecificationError, match=said) as caught:
        read_data(tmp_path / name)
    assert name in str(caught.value)


def test_commas_at_the_ends_of_rows_shift_no_cell(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("age,sex\n30,1,\n40,0,\n", encoding="utf-8")
    assert same_data(read_data(tmp_path / "data.csv"), pd.DataFrame({"age": [30, 40], "sex": [1, 0]}))


def test_an_archive_by_another_name_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", a=np.zeros(1))
    (tmp_path / "data.npz").rename(tmp_path / "data.npy")
    with pytest.raises(SpecificationError, match=r"data.npy.*expected one array"):
        read_data(tmp_path / "data.npy")


@pytest.mark.parametrize(
    ("kind", "first", "second", "x", "y"),
    [
        ("csv", "a,b\n1,2\n3,4\n", "a,b\n1,2\n3,\n",
         {"a": [1, 3], "b": [2.0, 4.0]}, {"a": [1, 3], "b": [2.0, np.nan]}),
        ("csv", "a\n1\n2\n", "a\n1\n2.5\n", {"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}),
        ("csv", "a\n1\n02\n", "a\n1\nu\n", {"a": ["1", "02"]}, {"a": ["1", "u"]}),
        ("csv", "a\nu\n", "a\nNaN\n", {"a": ["u"]}, {"a": pd.Series([None], dtype=pd.Series(["u"]).dtype)}),
        ("csv", "a\n1\n", "a\n", {"a": [1]}, {"a": np.zeros(0, dtype=np.int64)}),
        ("csv", "a,b\nTrue,1\nFalse,2\n", "a,b\nTrue,1\n,2\n",
         {"a": pd.Series([True, False], dtype=object), "b": [1, 2]},
         {"a": pd.Series([True, np.nan], dtype=object), "b": [1, 2]}),
        ("json", "[1, 2]", "[1, 2.5]", array(1.0, 2.0), array(1, 2.5)),
        ("json", "[1, 2]", "[1, null]", [1, 2], [1, None]),
        ("json", "[[1], [2]]", "[]", [[1], [2]], []),
        ("json", "[1]", "[]", array(1), np.zeros(0, dtype=np.int64)),
        ("json", "[9007199254740993, 1]", "[0.5, 1]", array(2**53 + 1, 1), array(0.5, 1.0)),
        ("json", '{"a": [1], "n": 1}', '{"a": [0.5], "n": 1}', {"a": array(1.0), "n": 1}, {"a": array(0.5), "n": 1}),
        ("json", "3", "4", 3, 4),
    ],
)  # fmt: skip
def test_two_files_of_text_have_the_same_types(
    tmp_path: Path, kind: str, first: str, second: str, x: Any, y: Any
) -> None:
    one, other = tmp_path / f"x.{kind}", tmp_path / f"y.{kind}"
    one.write_text(first, encoding="utf-8")
    other.write_text(second, encoding="utf-8")
    expected = (pd.DataFrame(x), pd.DataFrame(y)) if kind == "csv" else (x, y)
    assert same_data(read_pair(one, other), expected)
    assert same_data(read_pair(other, one), expected[::-1])


# ------------------------------------------------------------------------------- dicts of arrays

X, Y = array([1, 2], [3, 4], [5, 6]), array(0, 1, 0)
TABLE = {"X": X, "y": Y, "bound": 1}


def table(x: Any, y: Any, bound: int = 1) -> dict[str, Any]:
    return {"X": x, "y": y, "bound": bound}


def test_a_dict_of_equally_long_arrays_has_rows() -> None:
    assert has_rows(TABLE)
    assert count_rows(TABLE) == 3
    assert rows_of(TABLE) == [([1, 2], 0), ([3, 4], 1), ([5, 6], 0)]
    assert same_data(slice_rows(TABLE, 1, 3), table(X[1:], Y[1:]))
    assert same_data(select_rows(TABLE, array(True, False, True)), table(X[[0, 2]], Y[[0, 2]]))
    for data in (5, None, True, "abc", b"ab", np.array(1.0), {}, {"a": 1}, {"a": [1], "b": [1, 2]}):
        assert not has_rows(data)
        with pytest.raises(SpecificationError, match="must have rows"):
            count_rows(data)


OTHER = table(X, array(0, 1, 1))
NEIGHBOURS: list[tuple[Relation, Any, Any]] = [
    (ReplaceOne(), TABLE, OTHER),
    (ReplaceOne(), TABLE, {"y": OTHER["y"], "bound": 1, "X": X}),
    (ReplaceLabel(), {"X": X, "y": Y}, {"X": X, "y": array(0, 1, 1)}),
    (ReplaceLabel("y"), TABLE, OTHER),
    (Group(2), TABLE, table(X, array(1, 0, 0))),
    (AddRemoveOne(), TABLE, table(X[[0, 2]], Y[[0, 2]])),
    (PerUser(), {"id": [1, 2, 2], "v": [1, 2, 3]}, {"id": [1, 2], "v": [1, 7]}),
    (PerUser("id"), {"v": X, "id": array(1, 2, 2)}, {"v": X[:2], "id": array(1, 2)}),
    (AnswersWithin(), 5, 6),
    (AnswersWithin(), {"a": 1, "b": [2, 3]}, {"b": [2, 4], "a": 1}),
]
STRANGERS: list[tuple[Relation, Any, Any, str]] = [
    (ReplaceOne(), TABLE, table(X, array(1, 0, 0)), "2 rows differ"),
    (ReplaceOne(), TABLE, table(X, array(0, 1, 1), bound=2), "differ in 'bound'"),
    (ReplaceOne(), TABLE, {"X": X, "z": Y, "bound": 1}, "different members"),
    (ReplaceOne(), TABLE, X, "3 rows differ"),
    (AddRemoveOne(), TABLE, table(X[:2], array(1, 1)), "not those of the longer"),
    (ReplaceLabel("y"), TABLE, table(X[[1, 1, 2]], Y), "differs in X"),
    (ReplaceLabel("z"), TABLE, OTHER, "no column 'z'"),
    (PerUser(), TABLE, [1, 2, 3], "different kinds"),
    (PerUser(), TABLE, OTHER, "must be hashable"),
    (PerUser("y"), TABLE, table(X[:2], array(1, 1)), "2 rows differ|rows against"),
    (AnswersWithin(), {"a": 1}, {"b": 1}, r"\['a'\] and \['b'\]"),
    (AnswersWithin(), {"a": 1}, [1.5], "only one of the datasets is a dict"),
    (AnswersWithin(), {"a": [1, 2], "b": [3]}, {"a": [1], "b": [2, 3.5]}, r"\(2,\) answers against \(1,\) of 'a'"),
    (AnswersWithin(), {"a": 1}, {"a": 3}, "moves by 2"),
]


@pytest.mark.parametrize(("relation", "x", "y"), NEIGHBOURS)
def test_relations_hold_for_dicts_and_numbers(relation: Relation, x: Any, y: Any) -> None:
    relation.check(Pair(x, y))
    relation.check(Pair(y, x))


@pytest.mark.parametrize(("relation", "x", "y", "said"), STRANGERS)
def test_others_are_refused(relation: Relation, x: Any, y: Any, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        relation.check(Pair(x, y))


#: Arrays of more entries than `repr` writes.
LONG, OTHER_LONG = np.zeros(1_500), (np.arange(1_500) == 700).astype(float)


def named(*names: str) -> pd.DataFrame:
    return pd.DataFrame({"pay": 0}, index=pd.Index(names, name="who"))


SMALLER: dict[str, tuple[Any, Any, Relation | None, Any, Any]] = {
    "rows leave all arrays": (
        TABLE, OTHER, ReplaceOne(), table(X[:1], Y[:1]), table(X[1:2], Y[1:2]),
    ),
    "a row is removed": (TABLE, table(X[:2], Y[:2]), AddRemoveOne(), table(X[:1], Y[:1]), table(X[:0], Y[:0])),
    "without a relation the difference stays": (TABLE, OTHER, None, table(X[2:], Y[2:]), table(X[2:], array(1))),
    "lists": (
        {"a": ["u", "v"], "b": (1, 2)}, {"a": ["u", "w"], "b": (1, 2)}, None, {"a": ["v"], "b": (2,)},
        {"a": ["w"], "b": (2,)},
    ),
    "arrays that differ in their middle": ([LONG, LONG], [LONG, OTHER_LONG], ReplaceOne(), [LONG], [OTHER_LONG]),
    "arrays that differ in their last digit": (
        [array(0.1), array(0.1)], [array(0.1), array(0.1 + 1e-15)], None, [array(0.1)], [array(0.1 + 1e-15)],
    ),
    "equal rows of other names": (
        named("a", "b"), named("a", "c"), ReplaceOne(), named("a"), named("b"),
    ),
    "numbers move to 0": (5.5, 6.0, AnswersWithin(), 0.0, 0.5),
    "and below it": (-7, -8, AnswersWithin(), 1, 0),
    "numbers by name": ({"a": 3, "b": 5}, {"b": 6, "a": 3}, AnswersWithin(), {"a": 0, "b": 0}, {"b": 1, "a": 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALLER)
def test_a_pair_is_made_smaller(name: str) -> None:
    x, y, relation, small_x, small_y = SMALLER[name]
    found = smaller_pair(Pair(x, y), relation, lambda _: True)
    assert same_data(found.x, small_x), found
    assert same_data(found.y, small_y), found
    assert explain_kept(Pair(x, y), relation) == ""
    places = places_of(found, Pair(x, y))
    if has_rows(x):  # what is left is told from the original by the places of its rows
        assert places is not None
        again = pair_at(*places, Pair(x, y))
        assert same_data((again.x, again.y), (found.x, found.y))
    else:
        assert places is None


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (5, 6, "a number has no rows"),
        ("abc", "abd", "a text has no rows"),
        (None, 1, "null has no rows"),
        (True, False, "a truth value has no rows"),
        ({"a": 1}, {"a": 2}, "a dict without arrays has no rows"),
        ({"a": [1], "b": [1, 2]}, {"a": [1], "b": [1, 3]}, "a dict of arrays of 1 and 2 entries has no rows"),
        (TABLE, table(X, Y, bound=2), "rows are of different types"),
    ],
)
def test_what_cannot_be_made_smaller_is_said(x: Any, y: Any, said: str) -> None:
    pair = Pair(x, y)
    assert smaller_pair(pair, None, lambda _: True) is pair
    assert said in explain_kept(pair, None)
