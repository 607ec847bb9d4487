"""Outputs that are built alike, read column by column: what is read is what each output shows by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor.targets.columns import OutputList, columns_of, read_columns
from auditor.targets.outputs import hash_outputs, read_column

NAN = float("nan")
#: Batches of one structure each, of values that are easily confused.
ALIKE: dict[str, list[Any]] = {
    "dicts": [{"b": k % 3, "a": -k} for k in range(20)],
    "floats": [{"a": value, "b": 0.5} for value in (0.0, -0.0, NAN, float("inf"), 1.0, 1e300, -2.5, 3.0)],
    "types": [{"a": value} for value in (1, True, 1.0, "1", None, b"1", 0, False, 2**53 + 1, 10**400)],
    "integers as keys": [{10: k, 9: k % 2} for k in range(10)],
    "texts": [{"a at 0x1": f"x at 0x{k}", 'b"%s': "%d"} for k in range(10)],
    "tuples": [(k, k / 3, k % 2 == 0) for k in range(10)],
    "large integers": [(2**60 + k, -k) for k in range(10)],
    "texts in tuples": [("ab"[k % 2], k) for k in range(10)],
    "lists and tuples": [[k, 1] if k % 2 else (k, 1) for k in range(10)],
    "nested": [{"c": [k, {"x": "y%"}], "a": (None, 0.1 * k), "b": {"z": True, "y": k}} for k in range(10)],
}
#: Batches that are no table.
UNLIKE: dict[str, list[Any]] = {
    "keys": [{"a": 1}, {"b": 1}],
    "orders of keys": [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "types of keys": [{1: 0}, {True: 0}],
    "tuples as keys": [{(1, 2): 0}] * 2,
    "lengths": [(1, 2), (1,)],
    "empty": [()] * 2,
    "empty dicts": [{}] * 2,
    "kinds": [{"a": 1}, (1,)],
    "a container in one": [(1, [2]), (1, 2)],
    "sets": [({1}, 2)] * 2,
    "other types": [(np.float64(1), 2)] * 2,
    "too deep": [[[[[[1]]]]]] * 2,
    "numbers": [1, 2],
    "nothing": [],
}


@pytest.mark.parametrize("batch", ALIKE.values(), ids=ALIKE)
def test_columns_hold_all_elements(batch: list[Any]) -> None:
    columns = read_columns(batch)
    assert columns is not None
    for column in columns.columns:
        for output, value in zip(batch, column.values, strict=True):
            found = output
            for step in column.path:
                found = found[step]
            assert found is value
    assert len(columns.elements()) == len(batch) * len(columns.columns)


@pytest.mark.parametrize("batch", UNLIKE.values(), ids=UNLIKE)
def test_other_batches_have_no_columns(batch: list[Any]) -> None:
    assert read_columns(batch) is None


@pytest.mark.parametrize("batch", ALIKE.values(), ids=ALIKE)
def test_keys_are_those_of_each_output_alone(batch: list[Any]) -> None:
    alone = [int(hash_outputs([value])[0]) for value in batch]
    assert hash_outputs(batch).tolist() == alone
    assert hash_outputs([*batch, {"odd": [1, {2}]}]).tolist()[:-1] == alone
    assert hash_outputs(OutputList(batch)).tolist() == alone


#: Scalars, among them equal ones of different types, of which some have different keys.
SCALARS: dict[str, list[Any]] = {
    "texts": ["a", b"a", None, "None", "a", "é\ud800"],
    "integers": ["1", 1, None, 2**53 + 1, 10**400, -1],
    "floats": ["0.0", 0.0, -0.0, NAN, float("nan"), -NAN, float("inf"), None, 2.0**60, 1.5],
    "booleans": ["True", True, False, None],
    "sets of integers": [{1, 2}, frozenset({2, 1}), {10, 9, 8}, set(), {2}, {2**60}],
    "sets": [{1}, {1.0}, {True}, {0.0}, {-0.0}, {"1", None}, {(1,)}, frozenset({1})],
    "sets of texts": [{"a", "b"}, {"b", b"a"}, {None}, set()],
    "mixed": [2**60, 2.0**60, 1, 1.0, True, 0, False, -0.0, "1", None],
}


@pytest.mark.parametrize("batch", SCALARS.values(), ids=SCALARS)
def test_keys_and_numbers_of_scalars_are_those_of_each_output_alone(batch: list[Any]) -> None:
    for order in (batch * 3, batch[::-1] * 3):
        assert hash_outputs(order).tolist() == [int(hash_outputs([value])[0]) for value in order]
        np.testing.assert_array_equal(read_column(order), [read_column([value])[0] for value in order])


def test_a_place_is_looked_up_by_type_too() -> None:
    columns = columns_of([{1: 5}, {1: 6}])
    assert columns is not None
    assert columns.at((1,)) is not None
    assert columns.at((True,)) is None
    assert columns.at((1.0,)) is None
