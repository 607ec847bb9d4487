"""Messages and values: what is written reads back the same, and what is wrong is refused with a quotation."""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import SpecificationError, TargetError, TargetRaised
from auditor.targets import helper
from auditor.targets.outputs import Raised, Typed, hash_outputs
from auditor.targets.protocol import (
    FIRST_REQUEST,
    HELLO,
    LINE,
    REQUEST,
    SEEDS,
    Hello,
    draw_outputs,
    is_hello,
    quote_bytes,
    read_answer,
    read_hello,
    request_line,
)
from auditor.targets.wire_format import NESTING, as_array, data_text, decode_json, encode_data

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.dictionaries(KEYS, inner) | st.sets(KEYS),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Whether two values are of the same types throughout, and the same to the bit."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, set | frozenset):
        return isinstance(b, set | frozenset) and repr(sorted(a, key=repr)) == repr(sorted(b, key=repr))
    if isinstance(a, dict):
        return type(b) is dict and len(a) == len(b) and all(map(same, a, b)) and all(map(same, a.values(), b.values()))
    return type(a) is type(b) and bool(a == b)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_outputs_that_the_helper_writes_read_back_the_same(value: Any) -> None:
    written = helper.write_outputs([value])
    assert "\n" not in written
    assert same(decode_json(written.encode()), [value])


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_data_reads_back_the_same_in_the_helper(value: Any) -> None:
    written = data_text(value)
    assert "\n" not in written
    assert same(json.loads(written, object_hook=helper._read), value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0", -0.0),
        ("0.1", 0.1),
        ("0.10000000000000001", 0.1),
        ("0.1000000000000000055511151231257827", 0.1),
        ("0.5000000000000000000000000", 0.5),
        ("9007199254740993", 2**53 + 1),
        ("9007199254740992.0", 2.0**53),
        ("5e-324", 5e-324),
        ("0e-400", 0.0),
        ("0.100000001490116119384765625", float(np.float32(0.1))),
    ],
)
def test_a_number_that_a_float_is_rounded_to_is_read_as_that_float(text: str, value: float) -> None:
    assert same(decode_json(text.encode()), value)


@given(st.floats(-1e308, 1e308), st.integers(15, 40))
@settings(max_examples=200, deadline=None)
def test_a_float_of_any_number_of_digits_is_no_decimal_number(value: float, digits: int) -> None:
    for text in (repr(value), f"{value:.{digits}e}", f"{value:.{digits}g}e0" if 1 < abs(value) < 1e6 else "0.5"):
        assert type(decode_json(text.encode())) is float


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("9007199254740993.0", "9007199254740992.0"),
        ("0.50000000000000000000000001", "0.50000000000000000000000002"),
        ("1e400", "1e401"),
        ("-1e400", "-1e401"),
        ("1e-400", "1e-401"),
        ("1e-400", "0.0"),
        ("1e99999999999999999999", "1e400"),
    ],
)
def test_numbers_that_no_float_holds_are_different_outputs(one: str, other: str) -> None:
    read = read_answer(f'{{"id": 1, "outputs": [{one}, {other}, {one}]}}'.encode(), 1, 3)
    assert read[0] == Typed("decimal.Decimal", {"value": float(one), "text": one})
    first, second, third = hash_outputs(read).tolist()
    assert first == third != second


def test_data_is_written_as_lists_and_objects() -> None:
    table = pd.DataFrame({"age": [30, 40], "name": ["a", "b"], "x": [0.5, np.nan]})
    rows = [{"age": 30, "name": "a", "x": 0.5}, {"age": 40, "name": "b", "x": {"__float__": "nan"}}]
    assert encode_data(table) == rows
    assert encode_data(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert encode_data(np.array([1.5, np.inf])) == [1.5, {"__float__": "inf"}]
    assert encode_data(np.array([True, False])) == [True, False]
    assert encode_data(np.array(["2026-01-31"], dtype="datetime64[ns]")) == ["2026-01-31T00:00:00.000000000"]
    assert encode_data(pd.Series([1, 2])) == [1, 2]
    assert encode_data([np.float32(0.5), np.int8(3), np.str_("x"), np.array([1])]) == [0.5, 3, "x", [1]]
    assert encode_data((1, (2, 3))) == [1, [2, 3]]
    assert encode_data([pd.NA, pd.NaT, datetime.date(2026, 1, 31)]) == [None, None, "2026-01-31"]
    assert encode_data({"__type__": 1}) == {"__pairs__": [["__type__", 1]]}


@pytest.mark.parametrize("data", [object(), [1, 1j], {"a": lambda: 0}])
def test_data_without_a_form_is_refused(data: Any) -> None:
    with pytest.raises(SpecificationError, match=r"holds a (object|complex|function), which cannot be sent"):
        data_text(data)


def test_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SpecificationError, match="different names"):
        data_text(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_request_is_one_line() -> None:
    assert json.loads(request_line(3, data_text([1, "é\n"]), 10, 7)) == {
        "id": 3,
        "data": [1, "é\n"],
        "n": 10,
        "seed": 7,
    }
    assert json.loads(request_line(4, "[]", 1, None))["seed"] is None


def answer_of(outputs: str, n: int = 1) -> list[Any]:
    return read_answer(f'{{"id": 1, "outputs": {outputs}}}'.encode(), 1, n)


@pytest.mark.parametrize(
    ("written", "output"),
    [
        ("5", 5),
        ("5.0", 5.0),
        ("-0.0", -0.0),
        ("1e999", Typed("decimal.Decimal", {"value": math.inf, "text": "1e999"})),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ('{"__error__": "ValueError"}', Raised("ValueError")),
        ('{"__type__": "numpy.float32", "value": 0.5}', Typed("numpy.float32", 0.5)),
        ('{"value": [1, {"__float__": "nan"}], "__type__": "a.B"}', Typed("a.B", [1, math.nan])),
        ('{"__set__": [[1, 2]]}', frozenset({(1, 2)})),
        ('{"__pairs__": [[[1, "a"], [1]], [null, 2]]}', {(1, "a"): [1], None: 2}),
        ('{"__bytes__": "AP8="}', b"\x00\xff"),
        ('{"value": 1}', {"value": 1}),
        ('{"__other__": 1}', {"__other__": 1}),
    ],
)
def test_an_output_is_read(written: str, output: Any) -> None:
    (read,) = answer_of(f"[{written}]")
    assert repr(read) == repr(output)
    assert type(read) is type(output)


@pytest.mark.parametrize(
    "written",
    [
        '{"__float__": 1.5}',
        '{"__float__": "1e5"}',
        '{"__float__": ["nan"]}',
        '{"__bytes__": "no base64!"}',
        '{"__bytes__": 7}',
        '{"__error__": ""}',
        '{"__error__": "a\\u001b[31m"}',
        '{"__error__": {"type": "ValueError"}}',
        '{"__type__": "float32"}',
        '{"__type__": 3, "value": 1}',
        '{"__type__": "float32", "value": 1, "more": 2}',
        '{"__float__": "nan", "more": 2}',
        '{"__set__": {"a": 1}}',
        '{"__set__": "ab"}',
        '{"__set__": [1, 1]}',
        '{"__set__": [{"a": 1}]}',
        '{"__pairs__": [[1]]}',
        '{"__pairs__": [[1, 2], [1, 3]]}',
        '{"__pairs__": [[{"a": 1}, 2]]}',
        '{"__pairs__": ["ab"]}',
        '{"a": 1, "a": 2}',
        "Infinity",
        "01",
        "'a'",
    ],
)
def test_a_wrong_output_is_refused_and_quoted(written: str) -> None:
    with pytest.raises(TargetError, match="cannot be read") as caught:
        answer_of(f"[{written}]")
    assert written.replace("\\", "\\")[:10] in str(caught.value)
    assert written[:10] not in caught.value.public


def test_nesting_is_bounded() -> None:
    assert answer_of("[" + "[" * NESTING + "]" * NESTING + "]")
    for opened, closed in [("[", "]"), ('{"a": ', "}"), ('{"__set__": [', "]}"), ('{"__type__": "a", "value": ', "}")]:
        deep = opened * (NESTING + 1) + "1" + closed * (NESTING + 1)
        with pytest.raises(TargetError, match=f"more than {NESTING} deep"):
            answer_of(f"[{deep}]")


def test_what_raised_is_told_from_what_cannot_be_read() -> None:
    raw = b'{"id": 1, "error": {"type": "ValueError", "message": "row 7: Smith\\u001b"}}'
    with pytest.raises(TargetRaised, match=r"raised ValueError: 'row 7: Smith\\x1b'") as caught:
        read_answer(raw, 1, 1)
    assert caught.value.error == "ValueError"
    assert caught.value.public == "the target raised ValueError"
    for wrong in (b'"Smith"', b"{}", b'{"type": 3}', b'{"type": ""}', b'{"type": "a"}, "outputs": [1]'):
        with pytest.raises(TargetError) as refused:
            read_answer(b'{"id": 1, "error": %s}' % wrong, 1, 1)
        assert not isinstance(refused.value, TargetRaised)
    assert read_answer(b'{"id": 1, "error": null, "outputs": [3]}', 1, 1) == [3]


def test_a_hello_is_read() -> None:
    raw = b' { "hello" : {"protocol": 1, "seeded": true, "states": {"noise": {"scale": 2.0}}, "new": 1}}'
    assert is_hello(raw)
    assert not is_hello(b'{"id": 1, "outputs": ["hello"]}')
    assert read_hello(raw) == Hello(1, True, False, {"noise": {"scale": 2.0}})
    assert read_hello(b'{"hello": {}}') == Hello()
    for wrong in (
        "[]",
        '{"protocol": 2}',
        '{"protocol": true}',
        '{"seeded": 1}',
        '{"states": []}',
        '{"interactive": null}',
    ):
        with pytest.raises(TargetError, match=r"hello|version"):
            read_hello(f'{{"hello": {wrong}}}'.encode())
    with pytest.raises(TargetError, match="longer"):
        read_hello(b'{"hello": {"states": {"a": "%s"}}}' % (b"x" * HELLO))


def test_a_quotation_is_short_and_harmless() -> None:
    assert quote_bytes(b"abc\r\n") == "'abc'"
    assert quote_bytes(b"\x1b[2J\x00\xff\n\ttail") == r"'\x1b[2J\x00\xff\n\ttail'"
    assert quote_bytes("é\u202e".encode()) == "'é\\u202e'"
    assert quote_bytes(b"x" * 1000) == f"'{'x' * 200}...' (1000 bytes)"
    assert quote_bytes(b"x" * 999 + b"end", 5, end=True) == "the last of 1002 bytes '...xxend'"
    assert len(quote_bytes(b"\x00" * LINE)) < 1000


def echo(output: Callable[[int], Any], asked: list[dict[str, Any]]) -> Callable[[bytes], bytes]:
    """A target: its outputs on a request."""

    def exchange(line: bytes) -> bytes:
        request = json.loads(line)
        asked.append(request)
        return json.dumps({"id": request["id"], "outputs": output(request["n"])}).encode()

    return exchange


def test_a_call_is_split_into_requests_with_seeds_of_their_own() -> None:
    asked: list[dict[str, Any]] = []
    outputs = draw_outputs(echo(lambda n: [1.5] * n, asked), itertools.count(7), [0], 2500, np.random.default_rng(0))
    assert outputs == [1.5] * 2500
    assert [request["n"] for request in asked] == [FIRST_REQUEST, REQUEST, REQUEST, 500 - FIRST_REQUEST]
    assert [request["id"] for request in asked] == [7, 8, 9, 10]
    assert len({request["seed"] for request in asked}) == 4
    assert all(0 <= request["seed"] < SEEDS for request in asked)


def test_without_a_generator_no_seed_is_sent() -> None:
    asked: list[dict[str, Any]] = []
    draw_outputs(echo(lambda n: [1.5] * n, asked), itertools.count(1), [0], 20, None)
    assert [request["seed"] for request in asked] == [None, None]


def test_long_outputs_are_asked_for_a_few_at_a_time() -> None:
    asked: list[dict[str, Any]] = []
    long = "x" * (LINE // 100)
    draw_outputs(echo(lambda n: [long] * n, asked), itertools.count(1), [0], 60, np.random.default_rng(0))
    sizes = [request["n"] for request in asked]
    assert sizes[0] == FIRST_REQUEST
    assert set(sizes[1:-1]) == {24}  # a quarter of the longest line
    assert sum(sizes) == 60


def test_outputs_of_one_type_of_numpy_are_an_array() -> None:
    for kind in ("float32", "int8", "uint64"):
        for shape in ((3,), (3, 2), (3, 2, 2)):
            array = np.arange(np.prod(shape)).reshape(shape).astype(kind)
            read = draw_outputs(echo_array(array), itertools.count(1), [0], 3, None)
            assert isinstance(read, np.ndarray)
            assert read.dtype == kind
            np.testing.assert_array_equal(read, array)


def echo_array(array: Any) -> Callable[[bytes], bytes]:
    return lambda line: b'{"id": %d, "outputs": %s}' % (json.loads(line)["id"], helper.write_outputs(array).encode())


def test_outputs_that_do_not_fit_their_type_stay_as_they_are() -> None:
    for kind, value in [
        ("float32", 0.1),
        ("int8", 200),
        ("float16", 1e9),
        ("uint8", -1),
        ("int32", 1.5),
        ("float32", "a"),
    ]:
        assert as_array([Typed(kind, value)]) == [Typed(kind, value)]
    mixed = [Typed("float32", 1.0), Typed("float16", 1.0)]
    assert as_array(mixed) == mixed
    ragged = [Typed("float32", [1.0]), Typed("float32", [1.0, 2.0])]
    assert as_array(ragged) == ragged
    assert as_array([Typed("float64x", 1.0)]) == [Typed("float64x", 1.0)]
    assert as_array([Typed("float32", 1.0), 1.0]) == [Typed("float32", 1.0), 1.0]
    infinite = as_array([Typed("float32", math.inf), Typed("float32", math.nan)])
    assert isinstance(infinite, np.ndarray)
