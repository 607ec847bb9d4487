"""Events and datasets as JSON and back, and datasets as Python to paste."""

from __future__ import annotations

import datetime
import json
import math
import types
import typing
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from auditor import Pair
from auditor.audits.counterexamples.snippet import list_imports, python_of, python_of_pair
from auditor.datasets.json_codec import data_from_json, data_to_json, same_data
from auditor.errors import SpecificationError
from auditor.events.codec import OBJECTS, chain_from_json, chain_to_json, check_keys, list_event_classes
from auditor.events.discrete_fields import DiscreteField, OutputPlace
from auditor.events.elements import Elements
from auditor.events.event_learner import Chain, EventLearner
from auditor.events.features import Additive, Feature, LatticeExponent, Linear, Numeric, Part, Rank, Shape
from auditor.events.learners.tables import ColumnCode
from auditor.events.log_likelihood_ratio import OwnRatio
from auditor.events.output_types import IsValue
from auditor.events.structure import Item, PartAt
from auditor.privacy.guarantees import PureDP
from auditor.results import make_plain
from auditor.targets.values import Raised, Typed

# ---------------------------------------------------------------------------------- events


def through_json(value: Any) -> Any:
    """What a results file makes of a record: numbers rounded, strict JSON, UTF-8."""
    return json.loads(json.dumps(make_plain(value), ensure_ascii=False, allow_nan=False).encode().decode())


def sample(hint: Any) -> Any:
    """Some value of a field's type; floats that 8 digits do not hold."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return sample(arguments[0])
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return (sample(arguments[0]), sample(arguments[0]))
        return tuple(map(sample, arguments))
    known: dict[Any, Any] = {
        int: 2**60 + 1,
        float: 0.1 + 1e-16,
        str: 'a "text", \ud800 and é',
        bool: True,
        type(None): None,
        Any: ("key", 1, 2.5, None, b"\x00\xff", True, (1, "a")),
        Feature: LatticeExponent(3, 4),
        Part: PartAt(("a", 0)),
        ColumnCode: ColumnCode("a", (0.1 + 1e-16,), ("p", 1, True, None)),
        OutputPlace: OutputPlace(("a", 0)),
        DiscreteField: DiscreteField(OutputPlace((1,)), "value", (2**60 + 1,), ("a",), OutputPlace(("b",))),
    }
    assert hint in known, f"no sample of {hint}: add one here"
    return known[hint]


def is_event_class(kind: type) -> bool:
    return "__call__" in vars(kind) and any(hasattr(kind, word) for word in ("below", "name"))


def test_an_event_with_keys_of_another_version_is_not_drawn_again_and_any_other_is() -> None:
    symbol, number = Chain(IsValue(7, "[1, 0]"), "above", (0.5,)), Chain(LatticeExponent(3, 4), "above", (0.5,))
    record = chain_to_json(symbol)
    assert record is not None
    assert chain_from_json(record) == symbol
    for keys in ({}, {"keys": 1}, {"keys": None}):
        with pytest.raises(SpecificationError, match=r"keys of version (1|None), .* expected version 2; audit again"):
            check_keys({name: value for name, value in record.items() if name != "keys"} | keys)
    check_keys(record)
    plain = chain_to_json(number)
    assert plain is not None
    assert "keys" not in plain
    check_keys(plain)


def test_the_registry_has_features_parts_and_symbols() -> None:
    assert {Numeric, Additive, Linear, Rank, Elements, Item, PartAt, Raised, Chain} <= set(
        list_event_classes().values()
    )
    assert OwnRatio not in list_event_classes().values()
    assert {kind for kind in list_event_classes().values() if not kind.__module__.startswith("auditor.events.")} == {
        Raised,
        Typed,
    }


@pytest.mark.parametrize("kind", [kind for kind in list_event_classes().values() if is_event_class(kind)])
def test_every_class_of_features_and_parts_comes_back_as_it_was(kind: type) -> None:
    hints = typing.get_type_hints(kind)
    value = kind(**{name: sample(hint) for name, hint in hints.items() if name in kind.__dataclass_fields__})  # type: ignore[attr-defined]
    again = OBJECTS.decode(through_json(OBJECTS.encode(value)))
    assert type(again) is kind
    assert repr(again) == repr(value)
    assert again == value


def learned(x: Any, y: Any) -> list[Chain]:
    learner = EventLearner(PureDP(1.0), 0.01)
    learner.add(x, y, [])
    learner.learn(False)
    return [proposal.chain for proposal in learner.finalists]


RNG = np.random.default_rng(0)
BATCHES: dict[str, tuple[Any, Any]] = {
    "floats": (RNG.laplace(size=400), RNG.laplace(1, size=400)),
    "rows": (RNG.normal(size=(400, 3)), RNG.normal(0.7, size=(400, 3))),
    "symbols": (["a", None, Raised("ValueError")] * 40, ["b", ("a", 1), math.nan] * 40),
    "dicts": ([{"k": v, "é": 1} for v in RNG.normal(size=300)], [{"k": v} for v in RNG.normal(1, size=300)]),
}


@pytest.mark.parametrize("name", BATCHES)
def test_learned_events_come_back_and_read_outputs_as_before(name: str) -> None:
    x, y = BATCHES[name]
    chains = learned(x, y)
    assert chains
    for chain in chains:
        record = chain_to_json(chain)
        assert record is not None
        again = chain_from_json(through_json(record))
        assert again == chain
        assert again.words() == chain.words()
        assert again.cells(x) == chain.cells(x)
        assert again.cells(y) == chain.cells(y)


def test_an_event_that_holds_a_function_is_not_stored() -> None:
    assert chain_to_json(Chain(OwnRatio(lambda *_: 0.0, [0], [1]), "below", (0.5,))) is None


def test_an_event_on_a_key_that_is_no_plain_value_is_not_stored() -> None:
    assert chain_to_json(Chain(Item((object(),)), "below", (0.5,))) is None


GOOD = chain_to_json(Chain(Numeric("value"), "below", (0.5,)))


def damaged(**changes: Any) -> Any:
    assert GOOD is not None
    return {"class": "Chain", "fields": {**GOOD["fields"], **changes}}


NUMERIC = {"kind": "value", "i": 0, "j": 0, "width": 0}


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({"class": "os.system", "fields": {}}, "os.system"),
        ({"class": ["Chain"], "fields": {}}, "Chain"),
        ({"class": "Numeric", "fields": NUMERIC}, "Numeric"),
        ({"class": "Chain", "fields": {}}, "expected"),
        (damaged(side="left"), "left"),
        (damaged(cuts=[]), "cuts"),
        (damaged(cuts={"tuple": [1]}), "cuts"),
        (damaged(feature="a text"), "str"),
        (damaged(feature={"class": "PartAt", "fields": {"path": {"tuple": []}}}), "PartAt"),
        (damaged(feature={"class": "Numeric", "fields": {**NUMERIC, "kind": "no such kind"}}), "no such kind"),
        (damaged(feature={"class": "Numeric", "fields": {**NUMERIC, "more": 1}}), "more"),
        ([], "list"),
        (None, "NoneType"),
        ({"float": 1}, "float"),
        ({"unknown": 1}, "None"),
    ],
)
def test_a_damaged_record_is_refused_with_what_is_wrong(record: Any, shown: str) -> None:
    with pytest.raises(SpecificationError, match=shown):
        chain_from_json(record)


# --------------------------------------------------------------------------------- datasets

FRAME = pd.DataFrame(
    {
        "age": np.array([30, 41, 41], dtype=np.int16),
        "pay": [0.1, math.nan, -0.0],
        "city": ["a", None, "b"],
        "sex": pd.Categorical(["f", "m", None], categories=["m", "f", "x"]),
        "day": np.array(["2020-01-01", "NaT", "2021-05-06"], dtype="datetime64[ns]"),
        "any": pd.Series([1, "a", None], dtype=object),
        "yes": [True, False, True],
        "few": pd.array([1, None, 3], dtype="Int64"),
    }
)

DATASETS: dict[str, Any] = {
    "integers": np.array([0, 0, 1]),
    "zeros": np.zeros(64),
    "negative zeros": -np.zeros(3),
    "ones": np.ones((3, 2), dtype=np.int8),
    "a run": np.array([0] * 40 + [1, 2, 2]),
    "floats": np.array([0.1, np.nan, np.inf, -np.inf, 1e-320, 2.0]),
    "single": np.array([0.1, 3.0], dtype=np.float32),
    "no rows": np.array([], dtype=np.int64),
    "no rows of two": np.zeros((0, 2)),
    "rows": np.array([[0, 1], [0, 1], [2, 3]]),
    "range": np.arange(12),
    "texts": np.array(["a", "bc"]),
    "booleans": np.array([True, False]),
    "all true": np.array([True, True]),
    "equal floats": np.full(9, 0.25),
    "dates": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "big endian": np.array([1, 2], dtype=">i4"),
    "objects": np.array(["a", None, (1, 2)], dtype=object),
    "list": [1, 2.5, "a", None, True, b"\x00"],
    "long list": [(0, "a")] * 40 + [(1, "b")],
    "alternating": [0, 1] * 20,
    "tuple": (1, (2,), ()),
    "tuples in a row": ((0, 1),) * 9,
    "records": [{"id": 1, "pay": math.nan}, {"id": 2, "pay": 0.1}],
    "scalars": [np.float32(0.1), np.int8(3), np.bool_(True)],
    "surrogate": ["\ud800"],
    "large": [2**70],
    "frame": FRAME,
    "no rows of a frame": FRAME.iloc[:0],
    "labelled rows": pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="who")),
    "picked rows": pd.DataFrame({"a": [1, 2, 3]}).iloc[[0, 2]],
    "numbered columns": pd.DataFrame([[1, 2.5]]),
    "one frame of one kind": pd.DataFrame({"a": ["x"] * 30}),
    "large and missing": pd.DataFrame({"a": pd.array([2**60 + 1, None], dtype="Int64")}),
}
#: Datasets that Python can show and JSON does not hold.
SHOWN = {
    "zone": pd.DataFrame({"at": pd.to_datetime(["2024-10-27 02:30"]).as_unit("ns").tz_localize("UTC")}),
    "months": pd.DataFrame({"in": pd.period_range("2020-01", periods=2, freq="M")}),
    "intervals": pd.DataFrame({"age": pd.interval_range(0, 2)}),
    "amounts": pd.DataFrame({"pay": [Decimal("1.10"), None]}),
    "days": [datetime.date(2020, 1, 1), Fraction(1, 3), pd.Timestamp("2020-01-01"), pd.NaT, pd.NA],
}


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_come_back_as_they_were(name: str) -> None:
    data = DATASETS[name]
    record = data_to_json(data)
    assert record is not None
    assert same_data(data_from_json(through_json(record)), data)


@pytest.mark.parametrize("name", [*DATASETS, *SHOWN])
def test_python_of_a_dataset_evaluates_to_it(name: str) -> None:
    data = (DATASETS | SHOWN)[name]
    text = python_of(data)
    known: dict[str, Any] = {}
    exec("\n".join(list_imports(text)), known)
    again = eval(text, known)
    if isinstance(data, pd.DataFrame):
        pd.testing.assert_frame_equal(again, data)
    else:
        assert same_data(again, data) or repr(again) == repr(data), text


def test_columns_whose_types_have_no_name_are_neither_stored_nor_pasted() -> None:
    arrow = pytest.importorskip("pyarrow")
    columns: list[tuple[Any, list[Any]]] = [
        (arrow.decimal128(5, 2), [Decimal("1.10"), None]),
        (arrow.list_(arrow.int64()), [[1], [1, 2]]),
    ]
    for kind, values in columns:
        data = pd.DataFrame({"a": pd.Series(values, dtype=pd.ArrowDtype(kind))})
        assert data_to_json(data) is None
        assert python_of_pair(Pair(data, data)) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)
ARRAYS = st.sampled_from(["f8", "f4", "f2", "i8", "u1", "?", "U3", ">f8"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
)


@settings(max_examples=300, deadline=None)
@given(VALUES | ARRAYS)
def test_any_dataset_comes_back_and_evaluates(data: Any) -> None:
    assert same_data(data_from_json(through_json(data_to_json([data]))), [data])
    assert same_data(eval(python_of([data]), {"np": np, "pd": pd}), [data]), python_of([data])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("integers", "np.array([0, 0, 1])"),
        ("zeros", "np.zeros(64)"),
        ("a run", "np.array([0] * 40 + [1, 2, 2])"),
        ("range", "np.arange(12)"),
        ("no rows", "np.zeros(0, dtype=np.int64)"),
        ("equal floats", "np.full(9, 0.25)"),
        ("long list", "[(0, 'a')] * 40 + [(1, 'b')]"),
        ("alternating", "[0, 1] * 20"),
        ("single", "np.array([0.1, 3.0], dtype=np.float32)"),
        ("one frame of one kind", "pd.DataFrame({'a': ['x'] * 30})"),
    ],
)
def test_python_of_a_dataset_is_short(name: str, text: str) -> None:
    assert python_of(DATASETS[name]) == text


def test_datasets_that_are_too_large_are_not_stored() -> None:
    assert data_to_json(np.zeros(101), most=100) is None
    assert data_to_json([[0] * 10] * 10, most=100) is None
    assert data_to_json(pd.DataFrame({"a": range(60)}), most=100) is None
    assert data_to_json(np.zeros(100), most=100) is not None


@pytest.mark.parametrize("data", [[object()], {1, 2}, np.array([1j]), [pd.Timestamp("2020-01-01")], *SHOWN.values()])
def test_datasets_without_exact_json_are_not_stored(data: Any) -> None:
    assert data_to_json(data) is None


@pytest.mark.parametrize(
    "record",
    [
        {"array": "<f8", "shape": [3], "values": {"floats": ["1.0"]}},
        {"array": "O8, evil", "shape": [], "values": []},
        {"array": "<V8", "shape": [1], "values": [1]},
        {"frame": {"rows": 1}},
        {"floats": "12"},
        {"float": "one"},
        {"bytes": "?"},
        {"class": "Chain", "fields": {}},
        1.5,
    ],
)
def test_damaged_records_of_datasets_are_refused(record: Any) -> None:
    with pytest.raises(SpecificationError):
        data_from_json(record)


def test_negative_zero_and_nan_are_told_apart() -> None:
    assert same_data(np.array([np.nan]), np.array([np.nan]))
    assert not same_data(np.array([0.0]), np.array([-0.0]))
    assert not same_data([1], [1.0])
    assert not same_data([1], [True])
    assert not same_data(Shape("length"), Numeric("value"))
