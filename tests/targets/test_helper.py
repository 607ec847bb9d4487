"""The file that serves Python functions: every convention, every kind of output, and what it says when it cannot."""

from __future__ import annotations

import ast
import collections
import datetime
import decimal
import fractions
import io
import json
import math
import re
import shutil
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pytest

from auditor.errors import TargetError, TargetRaised
from auditor.targets import helper
from auditor.targets.outputs import Raised, Typed, as_batch, hash_outputs
from auditor.targets.process import ProcessTarget
from auditor.targets.values import find_unreadable, make_visible
from auditor.targets.wire_format import decode_json, is_name

HELPER = Path(helper.__file__)


class Serving:
    """Serves functions of one module of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[ProcessTarget] = []

    def target(self, code: str, name: str, where: str = "served.py") -> ProcessTarget:
        (self.folder / "served.py").write_text(textwrap.dedent(code))
        command = [sys.executable, str(HELPER), f"{where}:{name}"]
        self.made.append(ProcessTarget(command, cwd=self.folder, limit=20.0))
        return self.made[-1]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    made = Serving(tmp_path)
    yield made
    for target in made.made:
        target.close()


def draw(target: ProcessTarget, n: int = 6, data: object = (1, 2), seed: int | None = 0) -> Any:
    return target(data, n, None if seed is None else np.random.default_rng(seed))


FUNCTIONS = """
import random, os
STATES = {"noise": {"scale": 2.0}}

def one(data): return random.random()
def one_rng(data, rng): return sum(data) + rng.random()
def one_seed(data, seed): return (sum(data), seed)
def many(data, n): return [os.getpid()] * n
def many_rng(data, n, rng): return [rng.random() for _ in range(n)]
def many_seed(data, *, n, seed): return [seed] * n
def with_defaults(data, epsilon=1.0, *more, **others): return epsilon
class Mechanism:
    states = {"accountant": {"epsilon": 1}}
    def __call__(self, data, rng): return rng.random()
    def method(self, data, n): return ["x"] * n
mechanism = Mechanism()
"""


def test_functions_of_one_draw(serving: Serving) -> None:
    outputs = draw(serving.target(FUNCTIONS, "one"))
    assert len(set(outputs)) == 6
    outputs = draw(serving.target(FUNCTIONS, "one_seed"))
    assert [total for total, _ in outputs] == [3] * 6
    assert len({seed for _, seed in outputs}) == 6
    assert draw(serving.target(FUNCTIONS, "one_seed"), 2, seed=None) == [[3, None]] * 2
    assert draw(serving.target(FUNCTIONS, "with_defaults")) == [1.0] * 6


def test_what_a_draw_yields_is_a_list(serving: Serving) -> None:
    code = "def name(data):\n    yield from data\nasync def later(data): return 1"
    assert draw(serving.target(code, "name"), 2) == [[1, 2]] * 2
    with pytest.raises(TargetError, match="later is an async function"):
        draw(serving.target(code, "later"))


def test_outputs_are_written_before_the_next_draw(serving: Serving) -> None:
    code = """
        import numpy
        row, table = [0], {"a": [0], "__type__": "x"}
        def name(data):
            row[0] += 1
            return row
        def deep(data):
            table["a"][0] += 1
            return table
        def number(data): return numpy.float64(0.5)
    """
    assert draw(serving.target(code, "name"), 3) == [[1], [2], [3]]
    assert [output["a"] for output in draw(serving.target(code, "deep"), 3)] == [[1], [2], [3]]
    assert draw(serving.target(code, "number"), 2) == [0.5, 0.5]


def test_iterators_within_an_output_are_refused(serving: Serving) -> None:
    code = "def name(data):\n    return {'a': map(float, data)}"
    with pytest.raises(TargetError, match="an output holds a map object"):
        draw(serving.target(code, "name"))
    for output in ({"a": map(float, [1])}, [(value for value in [1])], [[iter([1])]]):
        with pytest.raises(TargetError, match=r"an output holds a .* object, whose values are not in it yet"):
            as_batch([output], 1)


def test_functions_of_many_draws(serving: Serving) -> None:
    assert len(set(draw(serving.target(FUNCTIONS, "many")))) == 1
    assert len(set(draw(serving.target(FUNCTIONS, "many_seed"), 40))) == 2  # one seed a request
    assert draw(serving.target(FUNCTIONS, "mechanism.method")) == ["x"] * 6


@pytest.mark.parametrize("name", ["one_rng", "one_seed", "many_rng", "many_seed", "mechanism"])
def test_what_takes_a_generator_or_a_seed_is_seeded(serving: Serving, name: str) -> None:
    target = serving.target(FUNCTIONS, name)
    first = draw(target)
    assert target.hello is not None
    assert target.hello.seeded
    assert target.hello.inferred
    assert draw(target) == first
    assert draw(target, seed=1) != first
    if name.endswith("rng"):
        assert draw(target, seed=None) != draw(target, seed=None)


def test_what_does_not_is_not(serving: Serving) -> None:
    target = serving.target(FUNCTIONS, "one")
    assert draw(target) != draw(target)
    assert target.hello is not None
    assert not target.seeded
    assert not target.hello.inferred
    assert target.hello.states == {"noise": {"scale": 2.0}}


def test_a_function_states_of_itself_what_its_module_does_not(serving: Serving) -> None:
    target = serving.target(FUNCTIONS, "mechanism")
    draw(target)
    assert target.hello is not None
    assert target.hello.states == {"accountant": {"epsilon": 1}}


def test_modules_are_found_in_the_present_folder(serving: Serving) -> None:
    assert draw(serving.target(FUNCTIONS, "with_defaults", where="served")) == [1.0] * 6


def test_a_generator_without_numpy_is_of_the_standard_library(serving: Serving) -> None:
    code = "import sys\nsys.modules['numpy'] = None\ndef name(data, rng): return type(rng).__name__"
    assert draw(serving.target(code, "name")) == ["Random"] * 6


def test_files_beside_a_served_file_hide_no_library(serving: Serving) -> None:
    (serving.folder / "json.py").write_text("raise RuntimeError('this is no library')")
    (serving.folder / "beside.py").write_text("value = 5")
    code = "import http.client, json, beside\ndef value(data): return [beside.value, http.client.HTTP_PORT]"
    assert draw(serving.target(code, "value"), 1) == [[5, 80]]


def test_what_is_printed_does_not_break_the_protocol(serving: Serving) -> None:
    code = """
    import os, subprocess, sys
    print("import")
    def f(data):
        print("draw"); os.write(1, b"from below\\n"); subprocess.run(["echo", "from a child"])
        sys.__stdout__.write("x"); sys.__stdout__.flush()
        return [sys.stdin.read(), input() if False else ""]
    """
    assert draw(serving.target(code, "f")) == [["", ""]] * 6


def test_what_a_draw_raises_is_an_output(serving: Serving) -> None:
    code = """
    class Private(Exception): pass
    count = 0
    def f(data):
        global count
        count += 1
        if count % 3 == 0: raise ValueError("secret")
        if count % 3 == 1: raise Private("secret")
        return 0
    """
    expected = [Raised("Private"), 0, Raised("ValueError")] * 2
    assert draw(serving.target(code, "f")) == expected


def test_what_a_batch_raises_is_an_error_and_the_process_goes_on(serving: Serving) -> None:
    code = """
    import os, sys
    class Bad(Exception):
        def __str__(self): raise RuntimeError
    def f(data, n):
        if data == [0]: raise ValueError("out of range")
        if data == [1]: sys.exit(3)
        if data == [2]: raise Bad
        if data == [3]: return 5.0
        if data == [4]: return "a text"
        return [os.getpid()] * n
    """
    target = serving.target(code, "f")
    pid = draw(target)
    for value, error in enumerate(
        ["ValueError: 'out of range .served.py, line 6.'", "SystemExit: '3 ", "Bad: '", "TypeError", "TypeError"]
    ):
        with pytest.raises(TargetRaised, match=f"the target raised {error}") as caught:
            draw(target, data=[value])
        assert caught.value.error == error.partition(":")[0]
    assert draw(target) == pid


def test_a_wrong_number_of_outputs_is_an_error(serving: Serving) -> None:
    with pytest.raises(TargetError, match="3 outputs were asked for, the target answered with 2"):
        draw(serving.target("def f(data, n): return [0] * (n - 1)", "f"), 3)


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("", "absent", r"served.py has no attribute 'absent'"),
        ("f = 5", "f", r"served.py:f is not callable: 5"),
        ("print('loaded', end='')", "absent", r"served.py has no attribute 'absent'"),
        ("import sys; sys.stdout.close(); sys.exit(0)", "f", r"cannot import served.py: SystemExit: 0"),
        ("import absent_library", "f", r"cannot import served.py: ModuleNotFoundError: No module named 'absent_lib"),
        ("def f(data", "f", r"cannot import served.py: SyntaxError"),
        ("def f(): pass", "f", r"takes the dataset, and n, rng or seed by name; this one takes \(\)"),
        ("def f(data, epsilon): pass", "f", r"this one takes \(data, epsilon\)"),
        ("STATES = [1]\ndef f(data): pass", "f", r"STATES must be a dict, got \[1\]"),
        ("def f(data, n, /): pass", "f", r"this one takes \(data, n\)"),
    ],
)
def test_what_cannot_be_served_is_said_on_standard_error(serving: Serving, code: str, name: str, said: str) -> None:
    with pytest.raises(TargetError, match=f"^the function cannot be served: .*{said}"):
        draw(serving.target(code, name))


@pytest.mark.parametrize("words", [[], ["a", "b"], ["no_colon"], ["absent.py:f"], [":f"], ["absent_module:f"]])
def test_wrong_arguments_are_said_on_standard_error(words: list[str]) -> None:
    done = subprocess.run([sys.executable, str(HELPER), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "helper.py: " in done.stderr


KINDS = """
import collections, dataclasses, datetime, decimal, enum, fractions
import numpy as np
import pandas as pd

Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass
class Result:
    value: float
    parts: object
class Color(enum.Enum):
    RED = 1
class Plain:
    def __init__(self): self.value, self._hidden = 3, 4
class Slots:
    __slots__ = ("value", "_hidden")
    def __init__(self): self.value, self._hidden = 3, 4
class Empty: pass
class Money(float): pass
class Loop:
    def __init__(self): self.me = self

OUTPUTS = [
    np.float64(0.5), np.int64(3), np.bool_(True), np.str_("x"), np.float32(0.5), np.uint8(3),
    np.array([0.5, 1]), np.array([[1, 2], [3, 4]]), np.array(["a"]), np.array([0.5], dtype="float32"),
    np.array([1, None], dtype=object), np.array(0.25), np.array([np.nan, np.inf]), np.longdouble(0.5),
    np.array(["2026-01-31"], dtype="datetime64[D]"), np.ma.array([1, 2], mask=[False, True]),
    pd.Series([1, 2], name="c"), pd.DataFrame({"a": [1], "b": [0.5]}, index=["r"]), pd.Timestamp("2026-01-31"),
    Point(1, 2), Result(0.5, {"a": (1, None)}), Color.RED, Plain(), Slots(), Empty(), Money(0.5),
    1j, range(3), Plain, ValueError("x", 1), decimal.Decimal("0.10"), fractions.Fraction(1, 3), 10**5000,
    bytearray(b"ab"), collections.OrderedDict(a=1), frozenset({1}), {"a": {1: 2}}, {"__type__": 1}, "\\ud800", -0.0,
    datetime.datetime(1970, 1, 2, fold=1), datetime.time(0, 1, fold=1),
]
def f(data, n): return OUTPUTS[:n]
def loop(data): return Loop()
def count(data): return len(OUTPUTS)
"""
EXPECTED = [
    0.5, 3, True, "x", Typed("float32", 0.5), Typed("uint8", 3),
    [0.5, 1.0], [[1, 2], [3, 4]], ["a"], Typed("float32", [0.5]),
    [1, None], 0.25, [float("nan"), float("inf")], Typed(np.dtype(np.longdouble).name, "0.5"),
    Typed("datetime64[D]", [20484]),
    Typed("numpy.ma.MaskedArray", {"data": [1, 2], "mask": [False, True]}),
    Typed("pandas.Series", {"dtype": "int64", "values": [1, 2], "index": [0, 1], "name": "c"}),
    Typed("pandas.DataFrame",
          {"columns": ["a", "b"], "dtypes": ["int64", "float64"], "values": {"a": [1], "b": [0.5]}, "index": ["r"]}),
    Typed("pandas.Timestamp", {"seconds": 1769817600.0, "text": "2026-01-31T00:00:00"}),
    Typed("dpaudit_target.Point", {"x": 1, "y": 2}),
    Typed("dpaudit_target.Result", {"value": 0.5, "parts": {"a": [1, None]}}),
    Typed("dpaudit_target.Color", "RED"), Typed("dpaudit_target.Plain", {"value": 3}),
    Typed("dpaudit_target.Slots", {"value": 3}),
    Typed("dpaudit_target.Empty", {"repr()": "<dpaudit_target.Empty object>"}),
    Typed("dpaudit_target.Money", 0.5),
    Typed("complex", {"real": 0.0, "imag": 1.0}), Typed("range", {"start": 0, "stop": 3, "step": 1}),
    Typed("type", "dpaudit_target.Plain"), Typed("ValueError", ["x", 1]),
    Typed("decimal.Decimal", {"value": 0.1, "text": "Decimal('0.10')"}),
    Typed("fractions.Fraction", {"value": 1 / 3, "numerator": 1, "denominator": 3}), Typed("int", hex(10**5000)),
    b"ab", Typed("collections.OrderedDict", {"a": 1}), frozenset({1}), {"a": {1: 2}}, {"__type__": 1}, "\ud800", -0.0,
    Typed("datetime.datetime", {"seconds": 86400.0, "text": "1970-01-02T00:00:00", "fold": 1}),
    Typed("datetime.time", {"seconds": 60.0, "text": "00:01:00", "fold": 1}),
]  # fmt: skip


def test_outputs_are_written_with_all_that_can_be_seen(serving: Serving) -> None:
    target = serving.target(KINDS, "f")
    (count,) = draw(serving.target(KINDS, "count"), 1)
    assert count == len(EXPECTED)
    (serving.folder / "served.py").write_text(KINDS.replace("OUTPUTS[:n]", "[OUTPUTS[data[0]]]"))
    for k, expected in enumerate(EXPECTED):
        outputs = draw(target, 1, data=[k])
        read = Typed(outputs.dtype.name, outputs.tolist()[0]) if isinstance(outputs, np.ndarray) else outputs[0]
        assert (type(read), repr(read)) == (type(expected), repr(expected))


TABLES = (
    pd.DataFrame({"a": [1, 2], "b": [0.5, 1.0]}, index=pd.Index(["r", "s"], name="row")),
    pd.Series([1, 2], name="c"),
    pd.Series(["x"], dtype=pd.CategoricalDtype(["x", "y"])),
    pd.Index([1, 2], name="n"),
    pd.MultiIndex.from_tuples([(1, 2), (3, 4)], names=["i", "j"]),
    pd.array([1, 2], dtype="Int64"),
    pd.Categorical(["a"], ["a", "b"], ordered=True),
)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table).__name__)
def test_a_table_of_another_process_looks_like_one_of_this_process(table: Any) -> None:
    sent = json.dumps(helper.encode_output(table, 0)).encode()
    assert repr(decode_json(sent)) == repr(make_visible(table)).replace("(1, 2), (3, 4)", "[1, 2], [3, 4]")


class Metered:
    """A value behind a property; another property raises, and one is of the same class."""

    def __init__(self, value: float) -> None:
        self._value = value

    @property
    def value(self) -> float:
        return self._value

    @property
    def parent(self) -> Metered:
        return Metered(0.0)

    @property
    def broken(self) -> float:
        raise ValueError("unknown")


class Tensor:
    """As arrays of other libraries are; one of no elements that can be read."""

    __slots__ = ("_elements",)

    def __init__(self, elements: Any) -> None:
        self._elements = elements

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self._elements is None:
            raise RuntimeError("on another device")
        return np.asarray(self._elements)

    def __repr__(self) -> str:
        return "Tensor"


class Exact:
    """A number of a library of its own."""

    __slots__ = ()

    def __float__(self) -> float:
        return 0.5

    def __repr__(self) -> str:
        return f"1/2 at {hex(id(self))}"


class Table:
    """Columns behind properties, and values that it gives when it is asked."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    @property
    def columns(self) -> list[str]:
        return list(self._values)

    def __iter__(self) -> Any:
        return iter(self._values.values())


class Convertible(Table):
    def to_dict(self) -> dict[str, Any]:
        return self._values


class Bare:
    __slots__ = ()

    def __len__(self) -> int:
        return 2

    def __getitem__(self, k: int) -> float:
        return [0.5, 1.0][k]


class Rows(list[Any]):
    n_rows: Any


class Named(dict[str, Any]):
    n_rows: Any


class Count(int):
    n_rows: Any


class Grid(np.ndarray[Any, Any]):
    n_rows: Any


def with_rows(value: Any, n_rows: Any = 1) -> Any:
    """The same value with an attribute."""
    value.n_rows = n_rows
    return value


class Frame(Tensor):
    """An array with an attribute besides."""

    def __init__(self, elements: Any, columns: Any) -> None:
        super().__init__(elements)
        self.columns = columns


MOMENT = datetime.datetime(1970, 1, 2, 0, 0, 0, 500_000)
EAST = datetime.timezone(datetime.timedelta(hours=2))
#: Values that are neither plain nor a container of Python's own, and what is read of them.
PARTS: list[tuple[Any, Any]] = [
    (1 - 2j, {"real": 1.0, "imag": -2.0}),
    (np.complex64(1j), {"real": 0.0, "imag": 1.0}),
    (np.array([1j, 2.0]), [{"real": 0.0, "imag": 1.0}, {"real": 2.0, "imag": 0.0}]),
    (decimal.Decimal("1.50"), {"value": 1.5, "text": "Decimal('1.50')"}),
    (decimal.Decimal("sNaN"), {"value": math.nan, "text": "Decimal('sNaN')"}),
    (fractions.Fraction(3, -4), {"value": -0.75, "numerator": -3, "denominator": 4}),
    (fractions.Fraction(10**400), {"value": math.nan, "numerator": 10**400, "denominator": 1}),
    (MOMENT, {"seconds": 86_400.5, "text": "1970-01-02T00:00:00.500000"}),
    (MOMENT.replace(tzinfo=EAST), {"seconds": 79_200.5, "text": "1970-01-02T00:00:00.500000+02:00"}),
    (MOMENT.date(), {"days": MOMENT.toordinal()}),
    (datetime.time(1, 2, 3), {"seconds": 3723.0, "text": "01:02:03"}),
    (datetime.timedelta(days=-1, seconds=1), {"seconds": -86_399.0}),
    (np.datetime64("1970-01-03"), 2),
    (np.datetime64("NaT", "s"), None),
    (np.timedelta64(90, "s"), 90),
    (np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"), [1, None]),
    (pd.Timestamp("1970-01-02"), {"seconds": 86_400.0, "text": "1970-01-02T00:00:00"}),
    (pd.NaT, {"seconds": math.nan, "text": "NaT"}),
    (pd.Period("1972", "Y"), {"ordinal": 2, "freqstr": pd.Period("1972", "Y").freqstr}),
    (pd.Interval(0.5, 2.0), {"left": 0.5, "right": 2.0, "closed": "right"}),
    (collections.deque([1, 2]), [1, 2]),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    ({"a": 1}.keys(), frozenset({"a"})),
    (range(3), {"start": 0, "stop": 3, "step": 1}),
    (PurePosixPath("/a/b"), "/a/b"),
    (Metered(0.5), {"value": 0.5}),
    (Tensor([0.5, 1.0]), [0.5, 1.0]),
    (Tensor(np.float32(0.5)), 0.5),
    (Exact(), {"value": 0.5, "text": "1/2"}),
    (ValueError("x", 1), ["x", 1]),
    ({"a": [1.5]}.values(), [[1.5]]),
    (io.StringIO("512 people"), "512 people"),
    (io.BytesIO(b"x"), b"x"),
    (np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])[0], {"a": 1, "b": 2.5}),
    (re.compile("a+"), {"pattern": "a+", "flags": 32, "groups": 0, "groupindex": {}}),
    (Table({"a": [0.5]}), {"content()": [[0.5]], "columns": ["a"]}),
    (Convertible({"a": [0.5]}), {"content()": {"a": [0.5]}, "columns": ["a"]}),
    (Bare(), [0.5, 1.0]),
    (with_rows(Rows([0.5, 1.0])), {"content()": [0.5, 1.0], "n_rows": 1}),
    (with_rows(Named(a=0.5), "x"), {"content()": {"a": 0.5}, "n_rows": "x"}),
    (with_rows(Count(3)), {"content()": 3, "n_rows": 1}),
    (with_rows(np.zeros(2).view(Grid)), {"content()": [0.0, 0.0], "dtype()": "float64", "n_rows": 1}),
    (Frame([0.5], ["x", "y"]), {"content()": [0.5], "dtype()": "float64", "columns": ["x", "y"]}),
    (Tensor(None), {helper.TEXT: "Tensor"}),
    (lambda: 0.5, {helper.TEXT: "<function <lambda>>"}),
]


@pytest.mark.parametrize(("value", "parts"), PARTS, ids=[f"{k}-{type(v).__name__}" for k, (v, _) in enumerate(PARTS)])
def test_the_same_is_read_in_this_process_and_in_another(value: Any, parts: Any) -> None:
    here = make_visible(value)
    there = decode_json(json.dumps(helper.encode_output(value)).encode())
    assert repr(here) == repr(there) == repr(Typed(here.kind, parts))  # NaN is not equal to itself


@pytest.mark.parametrize(
    "make", [lambda: Rows([0.5]), lambda: Named(a=1), lambda: Count(3), lambda: np.zeros(2).view(Grid)]
)
def test_attributes_of_rows_and_numbers_tell_outputs_apart(make: Any) -> None:
    several, other = as_batch([with_rows(make(), k) for k in (0, 1)], 2), as_batch([with_rows(make())], 1)
    assert isinstance(several, list)
    assert hash_outputs(several)[0] != hash_outputs(several)[1] == hash_outputs(other)[0]


@pytest.mark.parametrize("whole", [True, False])
def test_names_of_fields_are_read(whole: bool) -> None:
    def rows(name: str) -> Any:
        found = np.array([(0.5, 1), (1.5, 2)], dtype=[(name, "<f8"), ("n", "<i4")])
        return as_batch(found, 2) if whole else as_batch([found[:1], found[1:]], 2)

    first, other = rows("a"), rows("b")
    assert first[0].kind == "void96 [('a', '<f8'), ('n', '<i4')]" != other[0].kind
    np.testing.assert_array_equal(hash_outputs(first), [hash_outputs([one])[0] for one in first])
    found = np.array([(0.5, 1)], dtype=[("a", "<f8"), ("n", "<i4")])
    assert decode_json(json.dumps(helper.encode_output(found)).encode()).kind == first[0].kind
    assert json.loads(helper.write_outputs(found))["__type__"] == first[0].kind
    assert make_visible(found).value == [{"a": 0.5, "n": 1}]
    for name in ("a" * 300, "\n"):
        assert is_name(helper.name_numbers(np.dtype([(name, "<f8")])))


@pytest.mark.parametrize("names", [["a", "a"], ["a", 1]])
def test_columns_without_names_of_their_own_are_a_list(names: list[Any]) -> None:
    found = helper.find_table(pd.DataFrame([[1, 0.5]], columns=names))
    assert found is not None
    assert found["values"] == [[1], [0.5]]


@pytest.mark.parametrize("name", ["name", "attrs", "nlevels", "columns", "dtype", "tolist", "shape"])
def test_columns_and_labels_may_have_names_of_attributes(name: str) -> None:
    table, row = pd.DataFrame({name: [1, 2], "b": [0.5, 1.5]}), pd.Series({name: 2, "b": 0.5})
    assert (helper.find_table(table) or {})["values"] == {name: [1, 2], "b": [0.5, 1.5]}
    assert helper.find_table(row) == {"dtype": "float64", "values": [2, 0.5], "index": [name, "b"]}


def test_what_cannot_be_read_is_said() -> None:
    opaque = Tensor(None)
    nested: Any = [[[[[[0.5]]]]]]
    readable = [0.5, "x", None, [1, {"a": (True, b"")}], {1, 2}, make_visible(Metered(1.0)), Raised("ValueError"), int]
    here = make_visible([opaque, {"a": [opaque]}])
    there = decode_json(json.dumps(helper.encode_output([opaque, {"a": [opaque]}])).encode())
    assert find_unreadable(readable) == []
    assert find_unreadable([*readable, *here, nested]) == [
        "containers inside of 4 or more others",
        "objects of class Tensor",
    ]
    assert find_unreadable(there) == ["objects of class Tensor"]
    inside: Any = [[[[0.5]]]]
    assert find_unreadable([inside, make_visible(np.zeros((1, 1, 1, 2)))]) == []
    for deep in ([inside], {"a": inside}, make_visible(np.zeros((1, 1, 1, 1, 2)))):
        assert find_unreadable([deep]) == ["containers inside of 4 or more others"]


def test_objects_that_hold_themselves_end(serving: Serving) -> None:
    (read,) = draw(serving.target(KINDS, "loop"), 1)
    assert repr(read).count("Loop") == helper.DEEPEST // 2 + 1


@pytest.mark.parametrize("kind", ["float64", "int64", "bool", "float32", "uint8", "object", "str"])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)])
def test_arrays_are_written_row_by_row(kind: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape).astype(kind)
    read = decode_json(helper.write_outputs(array).encode())
    if kind in ("float32", "uint8"):
        assert read.kind == kind
        read = read.value
    assert read == array.tolist()
    assert json.dumps(read) == json.dumps(array.tolist())


def test_arrays_with_nan_and_objects_are_written_element_by_element() -> None:
    assert repr(decode_json(helper.write_outputs(np.array([1.0, np.nan, -np.inf])).encode())) == "[1.0, nan, -inf]"
    assert decode_json(helper.write_outputs(np.array([{1: 2}, None, b"x"], dtype=object)).encode()) == [
        {1: 2},
        None,
        b"x",
    ]
    assert decode_json(helper.write_outputs(pd.Series([1.5, 2.5])).encode()) == [1.5, 2.5]
    assert decode_json(helper.write_outputs([np.float64(1.5), 2, None]).encode()) == [1.5, 2, None]


def test_floats_keep_their_bits() -> None:
    values = np.random.default_rng(0).standard_normal(2000)
    values = np.concatenate([values, values * 1e-310, values * 1e300, [0.0, 5e-324]])
    assert decode_json(helper.write_outputs(values).encode()) == values.tolist()
    narrow = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    assert (
        np.array(decode_json(helper.write_outputs(narrow).encode()).value, dtype=np.float32).tolist() == narrow.tolist()
    )


def test_it_is_of_python_3_8_and_of_the_standard_library() -> None:
    tree = ast.parse(HELPER.read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} - {"numpy"} <= sys.stdlib_module_names


def test_other_pythons_run_it(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text("def f(data, seed): return [sum(data), seed is None]")
    named = [shutil.which(f"python3.{minor}") for minor in range(8, 20)]
    there = [p for p in named if p and not subprocess.run([p, "-c", ""], capture_output=True, check=False).returncode]
    if not there:
        pytest.skip("there is no other Python")
    for python in there:
        with ProcessTarget([python, str(HELPER), "served.py:f"], cwd=tmp_path) as target:
            assert draw(target, 2) == [[3, False]] * 2


def test_draws_have_seeds_of_their_own() -> None:
    target = helper.Target(lambda data, seed: seed, None)
    seeds = json.loads(target.draw([], 100, 7))
    assert len(set(seeds)) == 100
    assert json.loads(target.draw([], 50, 7)) == seeds[:50]
    assert json.loads(target.draw([], 50, 8)) != seeds[:50]
