"""Events on outputs that are tables: how tables are read, and that defects in them are seen for what they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor import Pair, PureDP, Verdict, audit
from auditor.events.codec import chain_from_json, chain_to_json
from auditor.events.event_learner import Chain
from auditor.events.learners.tables import (
    ColumnCode,
    ColumnEnd,
    RowScore,
    RowsWhere,
    TableRows,
    find_columns,
    learn_features,
)
from auditor.targets.outputs import as_batch
from auditor.targets.values import make_visible

ROWS = [{"age": 31, "city": "p"}, {"age": 64, "city": "q"}, {"age": 8, "city": "q"}]
AGE, CITY = ColumnCode("age", (20.0, 50.0)), ColumnCode("city", (), ("p",))


@pytest.mark.parametrize(
    "output", [ROWS, pd.DataFrame(ROWS), [*ROWS[:2], {"age": 8, "city": "q"}]], ids=["dicts", "frame", "again"]
)
def test_the_same_table_in_other_forms_has_the_same_numbers(output: Any) -> None:
    batch = as_batch([output], 1)
    assert TableRows()(batch) == [3.0]
    assert RowsWhere((CITY,), (0,))(batch) == [1.0]
    assert RowsWhere((CITY,), (1,))(batch) == [2.0]
    assert RowsWhere((AGE, CITY), (2, 1))(batch) == [1.0]
    assert [ColumnEnd("age", which)(batch)[0] for which in ("smallest", "median", "largest")] == [8.0, 31.0, 64.0]
    score = RowScore((AGE, CITY), (1.0, 2.0, 4.0, 8.0, 16.0, 32.0))
    assert score(batch) == [4.0 + 32.0 + 2.0]


def test_what_is_a_table_and_what_is_none() -> None:
    assert find_columns([[1, "a"], [2, "b"], [3, "c"]]) == {0: (1, 2, 3), 1: ("a", "b", "c")}
    assert find_columns([{"a": 1}, {"b": 2}]) == {"a": [1, None], "b": [None, 2]}
    assert find_columns([]) == {}
    assert find_columns(make_visible(pd.DataFrame({"a": []}))) == {"a": []}
    for other in (3, "text", {"a": [1]}, [[1, 2], [3, 4]], [[1], [2, 3], [4]], [1, 2, 3], make_visible(pd.Series([1]))):
        assert find_columns(other) is None
    for feature in (TableRows(), RowsWhere((CITY,), (0,)), ColumnEnd("age", "median"), RowScore((CITY,), (0.0, 1.0))):
        assert np.isnan(feature(as_batch([3, "text"], 2))).all()
        assert np.isnan(feature(np.zeros((2, 3)))).all()
    assert not list(learn_features(np.zeros((4, 2)), np.zeros((4, 2))))
    assert not list(learn_features(["a"] * 4, ["b"] * 4))


def test_columns_that_are_absent_or_odd() -> None:
    batch = as_batch([[{"age": None}, {"age": "many"}], [{"city": ["p"]}], []], 3)
    assert TableRows()(batch).tolist() == [2.0, 1.0, 0.0]
    assert RowsWhere((CITY,), (0,))(batch).tolist() == [0.0, 0.0, 0.0]
    assert RowsWhere((CITY,), (1,))(batch).tolist() == [2.0, 1.0, 0.0]
    assert np.isnan(ColumnEnd("age", "largest")(batch)).all()
    assert RowScore((AGE,), (0.5, 1.0, 2.0))(batch).tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("feature", "below", "above"),
    [
        (TableRows(), "rows of the table <= 2", "rows of the table > 2"),
        (RowsWhere((CITY,), (0,)), "rows with city = 'p' <= 2", "rows with city = 'p' > 2"),
        (RowsWhere((AGE,), (1,)), "rows with age > 20 and <= 50 <= 2", "rows with age > 20 and <= 50 > 2"),
        (RowsWhere((AGE, CITY), (0, 1)), *[f"rows with age <= 20 and city = another value {c} 2" for c in ("<=", ">")]),
        (ColumnEnd("age", "largest"), "largest of column age <= 2", "largest of column age > 2"),
        (RowScore((AGE, CITY), (0.0,) * 6), *[f"learned score of the rows by age and city {c} 2" for c in ("<=", ">")]),
    ],
    ids=repr,
)
def test_events_have_words_and_are_kept_exactly(feature: Any, below: str, above: str) -> None:
    assert (feature.below(2.0), feature.above(2.0)) == (below, above)
    chain = Chain(feature, "above", (2.0,))
    record = chain_to_json(chain)
    assert record is not None
    assert chain_from_json(record) == chain


def _records(age: Any, city: Any) -> list[Any]:
    return [
        [{"age": int(a), "city": c} for a, c in zip(*rows, strict=True)]
        for rows in zip(age.tolist(), np.array(["p", "q"])[city].tolist(), strict=True)
    ]


def uneven_marginal(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Rows of one city are more frequent if a person lives there; each row says little."""
    return _records(rng.integers(0, 90, (n, 12)), (rng.random((n, 12)) < 0.35 + 0.3 * data[0]).astype(int))


def moved_together(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Both columns are as they were; together they are not."""
    age, same = rng.integers(0, 2, (n, 8)), rng.random((n, 8)) < (0.8 if data[0] else 0.2)
    return _records(age * 40 + 20, np.where(same, age, 1 - age))


def largest_of_the_data(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Ages up to the largest one in the data."""
    return _records(rng.integers(0, 60 + 4 * data[0], (n, 30)), rng.integers(0, 2, (n, 30)))


def one_row_more(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """As many rows as the data have, nearly always."""
    size = 10 + data[0] + (rng.random(n) < 0.05)
    return [_records(rng.integers(0, 90, (1, k)), rng.integers(0, 2, (1, k)))[0] for k in size.tolist()]


@pytest.mark.parametrize(
    ("mechanism", "causes"),
    [
        (uneven_marginal, ("rows of a table", "present or not, or its number")),
        (moved_together, ("number of rows of a table with certain values", "score of the rows")),
        (largest_of_the_data, ("a table's column", "max of the elements")),
        (one_row_more, ("length", "key that is present")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_defects_of_synthetic_tables_are_found_and_named(mechanism: Any, causes: tuple[str, ...]) -> None:
    result = audit(mechanism, PureDP(1.0), Pair(np.array([0]), np.array([1])), alpha=1e-3, draws=4_000, seed=3)
    assert result.verdict == "violation", result
    assert result.counterexample is not None
    assert any(cause in result.counterexample.cause for cause in causes), result.counterexample.cause


def test_features_are_offered_with_finite_scores_or_unchosen() -> None:
    rng = np.random.default_rng(1)
    x, y = (moved_together([bit], 300, rng) for bit in (0, 1))
    offered = list(learn_features(x, y))
    assert offered[0] == (TableRows(), math.inf)
    best = max(offered[1:], key=lambda item: item[1])
    assert isinstance(best[0], RowsWhere | RowScore)
    assert len(best[0].codes) == 2
    assert all(math.isfinite(score) for _, score in offered[1:])


def test_integers_beyond_any_float_are_no_numbers_of_a_column() -> None:
    def tables(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
        return [[{"a": 10**400 + k, "b": k}, {"a": k, "b": 1}] for k in rng.integers(0, 3, n).tolist()]

    found = audit(tables, PureDP(1.0), Pair([0], [1]), draws=1_000, alpha=1e-6)
    assert found.verdict not in (Verdict.VIOLATION, Verdict.ERROR)
