"""Serves a Python function to dpaudit: ``python helper.py WHERE:NAME [NAME=JSON ...]``.

One file, standard library only, Python >= 3.8.

WHERE is a module or the path of a .py file. NAME takes the dataset first and says by the names of its parameters what
else it wants and what it returns:

=======================  ===========================================================================================
function                 returns
=======================  ===========================================================================================
``name(data)``           one draw; what it raises is an output, the name of the exception's class; what it yields
                         one by one is a list
``name(data, n)``        n independent draws, trial axis first: an array or a list
=======================  ===========================================================================================

and either with ``rng`` (a numpy Generator where numpy can be imported, else a random.Random) or ``seed`` (an integer),
from which all randomness then comes: the target is "seeded". Other parameters have a default, or a value from the
command line, such as ``epsilon=1``; with ``--one-draw``, ``n`` is one of them. The dataset is what JSON makes of it,
lists and dicts; the function converts it itself. It must not change it.

A mechanism that answers queries is a class, or an object, with ``start(data)`` that returns a session, an object with
``ask(query)`` that returns an answer and, if it can halt, a symbol ``silence``; ``start`` takes ``n``, ``rng`` and
``seed`` as functions do. With ``n`` a session is n runs, and ``ask`` takes an array (or list) of n queries, of which -1
is none.

A class with a method ``fit`` is a model: each draw makes it, with arguments from the command line and its own
``random_state`` or ``seed``, fits it, and returns its attributes whose names end in "_"; ``Class.name`` returns one of
them, or what a method returns. A dict is fitted by its members' names; a table's last column is y where y is needed.

What the function prints goes to standard error. A dict `STATES` in the module, or `states` on the function, is what the
target says of itself, e.g. ``{"noise": {"distribution": "laplace", "scale": 2.0, "sensitivity": 1}}``.

Outputs are written with all that can be seen of them: numbers, texts, None, lists and tuples (as lists), dicts, sets,
bytes, NaN, infinities; scalars and arrays of numpy (one of float64, int64 or bool is plain numbers, any other says its
type) and of other libraries; complex numbers, fractions, decimal numbers and times by their parts; dataclasses,
namedtuples, tables and other objects with their type and public attributes, or else what they contain or their public
properties, and if there is none of these their text. Lists, numbers, arrays and the like of classes of their own have
their attributes too.
"""

# ruff: noqa: E402 - see below why the path is changed before anything is imported

from __future__ import annotations

import os
import sys

# Python puts the folder of this file first, whose modules have names of others ("http"); none of them is wanted here.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [_path for _path in sys.path if os.path.realpath(_path or os.curdir) != _HERE]

import ast
import base64
import collections
import contextlib
import dataclasses
import datetime
import decimal
import difflib
import enum
import fractions
import functools
import hashlib
import importlib
import importlib.util
import inspect
import io
import itertools
import json
import numbers
import random
import re
import traceback
import types
from collections.abc import ItemsView, Iterator, Mapping, Sequence, Set, ValuesView
from typing import Any, Callable  # noqa: UP035 - Python 3.8

#: Objects nested deeper are written as texts; arbitrary, ends the writing of objects that hold themselves.
DEEPEST = 20
#: Elements of a sequence of another class than Python's own that are read; arbitrary, ends the reading of lazy ones.
LONGEST = 100_000
#: Characters that the name of a type may have.
LONGEST_NAME = 200
#: What numpy has in the place of a time that is none.
NO_TIME = -(2**63)
#: From when the seconds of a time count.
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)  # noqa: UP017 - Python 3.8
#: What scalars of pandas show that are no time, by the names of their classes.
OF_PANDAS = {"Period": ("ordinal", "freqstr"), "Interval": ("left", "right", "closed")}
#: Integers of more bits are written in base 16: Python refuses decimal ones of more than 4300 digits.
BITS = 8192
#: Seeds of draws are below this, as those of requests are.
SEEDS = 2**53
#: In the place of a query: this run asks nothing.
SKIP = -1
#: Names of objects that stand for values which JSON does not have.
RESERVED = frozenset({"__float__", "__bytes__", "__error__", "__set__", "__pairs__", "__type__"})
#: Name of the text of an object of which nothing else can be read. No attribute has it.
TEXT = "repr()"
#: Name of what an object contains that has attributes besides, and of the type of an array's numbers.
CONTENT, TYPE = "content()", "dtype()"
#: Types whose content is read where a class is made from one of them.
BASES = (int, float, str, bytes, list, tuple, dict, set, frozenset)
#: Libraries whose values are read without the attributes of their objects, which hold nothing of their own.
KNOWN = frozenset({"builtins", "collections", "numpy", "pandas", "torch", "tensorflow", "jax", "jaxlib", "cupy"})
#: Kinds of members of a class that are read as properties.
PROPERTIES = (property, types.GetSetDescriptorType, types.MemberDescriptorType, functools.cached_property)
#: Objects of the interpreter, whose attributes say how they run and not what they hold.
OF_PYTHON = (
    *(types.FunctionType, types.MethodType, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType),
    *(types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType),
)
#: Types that JSON has, apart from numbers that it has not.
PLAIN = frozenset({float, int, str, bool, type(None)})
#: Types of numpy that are written as plain numbers.
USUAL = frozenset({"float64", "int64", "bool"})
#: Their scalars' classes.
USUAL_SCALARS = frozenset({"float64", "int64", "bool", "bool_"})


#: Error message for an async function, after its name.
ASYNC = "is an async function: name one that returns the output itself, for example by asyncio.run"
#: Modules of Python's own iterators, such as generators, ``map`` and ``itertools.chain``.
OF_ITERATORS = frozenset({"builtins", "itertools"})
#: What gives its values later.
LATER = (Iterator, types.CoroutineType, types.AsyncGeneratorType)
#: A draw yields at most as many values.
YIELDED = 1_000_000


class Wrong(Exception):  # noqa: N818 - a message to the user
    """A request that cannot be served, with the user's message."""


def list_yielded(output: Any) -> Any:
    """Make a list of what a draw yields one by one.

    Parameters
    ----------
    output : object
        What a function of one draw returned; other objects than generators and Python's own iterators stay as they are.

    Raises
    ------
    ValueError
        If it yields more than `YIELDED` values.
    """
    if not isinstance(output, Iterator) or type(output).__module__ not in OF_ITERATORS:
        return output
    values = list(itertools.islice(output, YIELDED + 1))
    if len(values) > YIELDED:
        raise ValueError(f"the draw yields more than {YIELDED:,} values")
    return values


def is_async(function: Any) -> bool:
    """Whether a call gives a coroutine or an asynchronous generator."""
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(called) for kind in kinds for called in (function, getattr(function, "__call__", None)))  # noqa: B004


# Writing outputs.


def encode_output(value: Any, depth: int = 0) -> Any:
    """Bring one output to what JSON has.

    Parameters
    ----------
    value : object
        The output, of any class.
    depth : int
        Containers around it; beyond `DEEPEST` there is only a text.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is float:
        return value if value - value == 0 else {"__float__": repr(value)}
    if kind is int:
        return value if value.bit_length() <= BITS else {"__type__": "int", "value": hex(value)}
    if depth > DEEPEST:
        return {"__type__": _name(kind), "value": "..."}
    if kind is list or kind is tuple:
        return [encode_output(element, depth + 1) for element in value]
    if kind is dict:
        return _dict(value, depth)
    if kind is set or kind is frozenset:
        members = [encode_output(element, depth + 1) for element in value]
        return {"__set__": sorted(members, key=lambda member: json.dumps(member, sort_keys=True))}
    if kind is bytes or kind is bytearray or kind is memoryview:
        return {"__bytes__": base64.b64encode(bytes(value)).decode("ascii")}
    return _object(value, depth)


def _dict(value: Any, depth: int) -> Any:
    if all(type(key) is str and key not in RESERVED for key in value):
        return {key: encode_output(element, depth + 1) for key, element in value.items()}
    return {
        "__pairs__": [
            [encode_output(key, depth + 1), encode_output(element, depth + 1)] for key, element in value.items()
        ]
    }


def _object(value: Any, depth: int) -> Any:
    """An object: its type, and what can be seen of it."""
    kind = type(value)
    module = (kind.__module__ or "").partition(".")[0]
    if isinstance(value, RaisedDraw):
        return {"__error__": value.name, "message": value.message} if value.message else {"__error__": value.name}
    content = find_content(value)
    if content is not None:
        return {"__type__": _name(kind), "value": encode_output(content, depth + 1)}
    if module == "numpy":
        return _of_numpy(value, depth)
    table = find_table(value) if module == "pandas" else None
    if table is not None:
        return {"__type__": "pandas." + kind.__name__, "value": encode_output(table, depth + 1)}
    if isinstance(value, enum.Enum):
        seen: Any = value.name
    elif isinstance(value, type) or inspect.isbuiltin(value):
        seen = _name(value)
    elif dataclasses.is_dataclass(value):
        seen = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        seen = dict(zip(value._fields, value))  # noqa: B905 - strict= is of Python 3.10
    elif isinstance(value, (int, float, str)):
        plain = next(base for base in (int, float, str) if isinstance(value, base))
        seen = plain(value)
    elif isinstance(value, (list, tuple, set, frozenset)):
        seen = list(value) if isinstance(value, (list, tuple)) else set(value)
    elif isinstance(value, dict):
        seen = dict(value)
    else:
        elements = find_elements(value)
        if elements is not None:
            return {"__type__": elements[0], "value": encode_output(elements[1], depth + 1)}
        seen = find_parts_or_text(value)
    return {"__type__": _name(kind), "value": encode_output(seen, depth + 1)}


def find_content(value: Any) -> dict[str, Any] | None:
    """Find content and public attributes of what has both.

    Parameters
    ----------
    value : object
        Such as a list, a number or an array of a user's subclass.

    Returns
    -------
    dict or None
        The content under the name `CONTENT`, with the attributes; None for what has no attributes, or is neither a
        number, text or container nor an array.
    """
    kind = type(value)
    if (kind.__module__ or "").partition(".")[0] in KNOWN or isinstance(value, (enum.Enum, type)):
        return None
    base: Any = next((base for base in BASES if isinstance(value, base)), None)
    if base is None and not hasattr(kind, "__array__"):
        return None
    try:
        attributes = _attributes(value)
        if not attributes:
            return None
        if base is not None:
            return {CONTENT: list(value) if base is tuple else base(value), **attributes}
    except Exception:  # noqa: BLE001 - code of the target
        return None
    elements = find_elements(value)
    return None if elements is None else {CONTENT: elements[1], TYPE: elements[0], **attributes}


def find_elements(value: Any) -> tuple[str, Any] | None:
    """Find type and elements of an array of any library.

    Parameters
    ----------
    value : object

    Returns
    -------
    tuple of (str, object) or None
        None for what is no array, or cannot be read, such as a tensor on another device.
    """
    array = value
    try:
        if not (hasattr(value, "tolist") and hasattr(value, "dtype")) and hasattr(type(value), "__array__"):
            array = value.__array__()
        if callable(getattr(array, "tolist", None)) and hasattr(array, "dtype"):
            found = array.tolist()
            return None if found is value else (str(array.dtype), found)
    except Exception:  # noqa: BLE001 - whatever the library says
        return None
    return None


def find_parts(value: Any) -> Any:
    """Find what can be seen of an object.

    Parameters
    ----------
    value : object

    Returns
    -------
    object
        Numbers and times by parts that lose nothing; public attributes by name; otherwise what is contained, the number
        that it can be turned into, or public properties. None if there is none of these.
    """
    if isinstance(value, complex):
        return {"real": value.real, "imag": value.imag}
    if isinstance(value, fractions.Fraction):
        return {"value": _to_float(value), "numerator": value.numerator, "denominator": value.denominator}
    if isinstance(value, (decimal.Decimal, numbers.Real)):  # 1.0 and 1.00 are equal, and not alike
        return {"value": _to_float(value), "text": text_of(value)}
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return _time_parts(value)
    kind = type(value)
    if kind.__name__ in OF_PANDAS and (kind.__module__ or "").partition(".")[0] == "pandas":
        return {name: getattr(value, name) for name in OF_PANDAS[kind.__name__]}
    if isinstance(value, BaseException):
        return list(value.args)
    if isinstance(value, OF_PYTHON):
        return None
    try:
        return _attributes(value) or _contents(value)
    except Exception:  # noqa: BLE001 - code of the target
        return None


def _time_parts(value: Any) -> dict[str, Any]:
    if isinstance(value, datetime.timedelta):
        return {"seconds": value.total_seconds()}
    # Which of two equal times it is, where clocks are set back; the text does not say it.
    fold = {"fold": 1} if getattr(value, "fold", 0) else {}
    if isinstance(value, datetime.datetime):
        moment = value.replace(tzinfo=EPOCH.tzinfo) if value.tzinfo is None else value
        return {"seconds": (moment - EPOCH).total_seconds(), "text": value.isoformat(), **fold}
    if isinstance(value, datetime.date):
        return {"days": value.toordinal()}
    seconds = 3600 * value.hour + 60 * value.minute + value.second + value.microsecond / 1e6
    return {"seconds": seconds, "text": value.isoformat(), **fold}


def _contents(value: Any) -> Any:
    """What an object without public attributes contains; None if that is nothing."""
    if isinstance(value, (range, slice)):
        return {"start": value.start, "stop": value.stop, "step": value.step}
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (ItemsView, ValuesView)):
        return list(value)
    if isinstance(value, Set):
        return frozenset(value)
    if isinstance(value, (io.StringIO, io.BytesIO)) and not value.closed:
        return value.getvalue()
    if isinstance(value, (Sequence, collections.deque)):
        return list(itertools.islice(value, LONGEST))
    if callable(getattr(value, "as_py", None)):  # a scalar of Arrow
        return value.as_py()
    if hasattr(value, "__float__"):
        return {"value": _to_float(value), "text": text_of(value)}
    parts, inside = _properties(value), _convert_or_iterate(value)
    if inside is None:
        return parts or None
    return {CONTENT: inside, **parts} if parts else inside


def _convert_or_iterate(value: Any) -> Any:
    """What an object of no known kind turns into, or iterates over; None if that is nothing."""
    kind = type(value)
    if hasattr(kind, "__next__"):  # reading it would change it
        return None
    for name in ("to_dict", "to_numpy"):
        if callable(getattr(kind, name, None)):
            try:
                return getattr(value, name)()
            except Exception:  # noqa: BLE001 - code of the target, or it wants arguments
                continue
    if hasattr(kind, "__iter__") or (hasattr(kind, "__getitem__") and hasattr(kind, "__len__")):
        try:
            return list(itertools.islice(value, LONGEST))
        except Exception:  # noqa: BLE001 - code of the target
            return None
    return None


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except Exception:  # noqa: BLE001 - larger than any float, a NaN that signals, or code of the target
        return float("nan")


def text_of(value: Any) -> str:
    """Text of a value without memory addresses.

    Addresses do not depend on the data and differ between processes. An object that raises when it is asked for its
    text has the name of its class, and an integer of more digits than Python writes its hexadecimal ones.

    Parameters
    ----------
    value : object
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - code of the target, or it contains itself
        return hex(value) if isinstance(value, int) else f"<{type(value).__qualname__} object>"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text) if " at 0x" in text else text


def _attributes(value: Any) -> dict[str, Any]:
    """Public attributes of an object by name."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        names = list(getattr(value, "__dict__", ()))
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            names += [slots] if isinstance(slots, str) else list(slots)
    return {name: getattr(value, name) for name in names if name[:1] != "_" and hasattr(value, name)}


def _properties(value: Any) -> dict[str, Any]:
    """Public properties of an object, but for objects of its own class."""
    found = {}
    for name in dict.fromkeys(itertools.chain.from_iterable(map(vars, type(value).__mro__))):
        if name[:1] != "_" and isinstance(inspect.getattr_static(value, name), PROPERTIES):
            try:
                part = getattr(value, name)
            except Exception:  # noqa: BLE001 - a property may raise anything
                continue
            if not isinstance(part, type(value)):
                found[name] = part
    return found


def find_parts_or_text(value: Any) -> Any:
    """Find what can be seen of an object, or its text.

    The text stands under the name `TEXT`.

    Parameters
    ----------
    value : object

    Raises
    ------
    TypeError
        If it is an iterator or a coroutine, whose text says nothing of the values that it would give.
    """
    seen = find_parts(value)
    if seen is not None:
        return seen
    if isinstance(value, LATER) and not isinstance(value, io.IOBase):
        kind = type(value).__qualname__
        raise TypeError(f"an output holds a {kind} object, whose values are not in it yet: return them as a list")
    return {TEXT: text_of(value)}


def _of_numpy(value: Any, depth: int) -> Any:
    """A scalar or an array: plain if of a usual type, else with the name of its type."""
    if hasattr(value, "mask") and hasattr(value, "filled"):
        parts = {"data": value.data, "mask": value.mask.tolist()}
        return {"__type__": "numpy.ma.MaskedArray", "value": encode_output(parts, depth + 1)}
    if not hasattr(value, "dtype") or not hasattr(value, "tolist"):
        return {"__type__": _name(type(value)), "value": encode_output(find_parts_or_text(value), depth + 1)}
    return _encode_typed(name_numbers(value.dtype), list_plain_elements(value), depth)


def name_numbers(kind: Any) -> str:
    """Name of a type of numpy, with its fields.

    Parameters
    ----------
    kind : dtype
        Or that of another library.

    Returns
    -------
    str
        With a digest of the fields where their names are too long for a name, or cannot be printed.
    """
    name = str(getattr(kind, "name", kind))
    if not getattr(kind, "names", None):
        return name
    text = f"{name} {kind}"
    if len(text) <= LONGEST_NAME and text.isprintable():
        return text
    return f"{name} {hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()}"


def name_fields(names: Any, values: Any) -> Any:
    """Name the values of a row's fields or a table's columns.

    Events name them then.

    Parameters
    ----------
    names : iterable
        As many as values.
    values : sequence

    Returns
    -------
    dict or list
        By name; a list of the values where two names are the same, or one is no text.
    """
    named = {name: value for name, value in zip(names, values) if isinstance(name, str)}  # noqa: B905 - Python 3.10
    return named if len(named) == len(values) else list(values)


def list_plain_elements(array: Any) -> Any:
    """List elements of an array or a scalar of numpy, for JSON.

    Parameters
    ----------
    array : ndarray or numpy scalar

    Returns
    -------
    object
        Complex numbers by their parts, times and durations as integers in the unit that their type names, None for what
        is no time, floats wider than 64 bits as texts, rows of fields by their names; anything else as it is.
    """
    fields = getattr(array.dtype, "names", None)
    if fields:
        return _replace(array.tolist(), lambda row: name_fields(fields, row))
    kind = array.dtype.kind
    if kind in "mM":
        return _replace(array.astype("int64").tolist(), lambda count: None if count == NO_TIME else count)
    if kind == "c" and array.dtype.char != "G":
        return _replace(array.tolist(), find_parts)
    return array.astype(str).tolist() if array.dtype.char in "gG" else array.tolist()


def _replace(elements: Any, new: Callable[[Any], Any]) -> Any:
    return [_replace(part, new) for part in elements] if isinstance(elements, list) else new(elements)


def _encode_typed(name: str, plain: Any, depth: int) -> Any:
    if name in USUAL or name == "object" or name.startswith("str"):
        return encode_output(plain, depth)
    return {"__type__": name, "value": encode_output(plain, depth + 1)}


def find_table(value: Any) -> dict[str, Any] | None:
    """Find what a table or column of pandas holds.

    Indices and arrays of pandas count as such.

    Parameters
    ----------
    value : object
        Of a class of pandas.

    Returns
    -------
    dict or None
        Columns, types, values and the index, with labels and categories; a name and attributes, if it has any. None for
        what is no table, such as a time.
    """
    # Of the class: a column or a label is an attribute too, and may have any name.
    kind = type(value)
    if not hasattr(kind, "shape") or not hasattr(kind, "dtype" if hasattr(kind, "tolist") else "dtypes"):
        return None
    columns = _get_own(value, "columns")
    parts: dict[str, Any] = {}
    if columns is not None:
        parts["columns"] = list(columns)
        parts["dtypes"] = [str(one) for one in value.dtypes]
        parts["values"] = name_fields(columns, [value.iloc[:, k].tolist() for k in range(len(columns))])
    else:
        parts["dtype"] = str(value.dtype)
        parts["values"] = value.tolist()
    if hasattr(kind, "index") and not callable(value.index):
        parts["index"] = list(value.index)
    parts.update(_find_labels(value))
    for name in ("name", "attrs"):
        held = _get_own(value, name)
        if held:
            parts[name] = held
    return parts


def _get_own(value: Any, name: str) -> Any:
    """An attribute that a value's class has too; None without one."""
    return getattr(value, name, None) if hasattr(type(value), name) else None


def _find_labels(value: Any) -> dict[str, Any]:
    """Names of an index and of columns, and the categories of values that have some, whether they occur or not."""
    found: dict[str, Any] = {}
    for name in ("index", "columns"):
        names = list(getattr(_get_own(value, name), "names", ()))
        if any(one is not None for one in names):
            found[name + " names"] = names
    if (_get_own(value, "nlevels") or 1) > 1:
        found["names"] = list(value.names)
    columns = _get_own(value, "columns")
    types = [value.dtype] if columns is None else list(value.dtypes)
    if any(hasattr(kind, "categories") for kind in types):
        found["categories"] = [list(getattr(kind, "categories", ())) for kind in types]
        found["ordered"] = [bool(getattr(kind, "ordered", False)) for kind in types]
    return found


def _name(kind: Any) -> str:
    module, name = getattr(kind, "__module__", None), getattr(kind, "__qualname__", None) or repr(kind)
    return str(name) if module in (None, "builtins") else f"{module}.{name}"


def write_outputs(outputs: Any) -> str:
    """Write a batch of outputs, trial axis first."""
    if hasattr(outputs, "__array__") and not isinstance(outputs, (list, tuple)):
        if not hasattr(outputs, "dtype") or not hasattr(outputs, "tolist") or hasattr(outputs, "to_numpy"):
            outputs = outputs.__array__()
        name = name_numbers(outputs.dtype)
        rows = list_plain_elements(outputs) if hasattr(outputs.dtype, "kind") else outputs.tolist()
        if not isinstance(rows, list):
            raise TypeError("expected n outputs, trial axis first, got an array without axes")
        if name == "object":
            return json.dumps([encode_output(row) for row in rows])
        try:
            written = json.dumps(rows, allow_nan=False)
        except (TypeError, ValueError):  # what JSON has not: NaN, an infinity, bytes
            written = json.dumps([encode_output(row) for row in rows])
        plain = name in USUAL or name.startswith("str")
        return written if plain else f'{{"__type__": {json.dumps(name)}, "value": {written}}}'
    if isinstance(outputs, (str, bytes, dict)) or not hasattr(outputs, "__len__"):
        raise TypeError(f"expected n outputs, an array or a list, got a {type(outputs).__name__}")
    rows = list(outputs)
    kinds = set(map(type, rows))
    usual = {kind for kind in kinds if is_usual_scalar(kind)}
    if usual:
        rows = [row.item() if type(row) in usual else row for row in rows]
    if kinds - usual <= PLAIN:
        try:
            return json.dumps(rows, allow_nan=False)
        except ValueError:  # NaN, an infinity or a very large integer
            pass
    return json.dumps([row.value if isinstance(row, WrittenOutput) else encode_output(row) for row in rows])


def is_usual_scalar(kind: type) -> bool:
    """Whether a class of numpy is written as a plain number."""
    return kind.__module__ == "numpy" and kind.__name__ in USUAL_SCALARS


def is_plain(value: Any) -> bool:
    """Whether a value is a number, truth value, text or None."""
    return type(value) in PLAIN or is_usual_scalar(type(value))


class WrittenOutput:
    """In the place of an output: what `encode_output` makes of it.

    Parameters
    ----------
    output : object
        The output, which its target may change later.
    """

    def __init__(self, output: Any) -> None:
        self.value = encode_output(output)


class RaisedDraw:
    """In the place of an output: the draw raised.

    Parameters
    ----------
    error : BaseException
        What it raised.
    told : bool
        Leave out what the exception says, which is for people and no part of the output.
    """

    def __init__(self, error: BaseException, told: bool = False) -> None:
        self.name = type(error).__name__
        self.message = "" if told else _text(error) + _find_raise(error)


# Reading datasets.


def _read(found: dict[str, Any]) -> Any:
    if len(found) != 1:
        return found
    ((name, content),) = found.items()
    if name == "__float__":
        return float(content)
    if name == "__bytes__":
        return base64.b64decode(content)
    if name == "__set__":
        return {_freeze_value(member) for member in content}
    if name == "__pairs__":
        return {_freeze_value(key): value for key, value in content}
    return found


def _freeze_value(value: Any) -> Any:
    return tuple(map(_freeze_value, value)) if isinstance(value, list) else value


# Calling the function.


class Target:
    """A function, and how it is called.

    Parameters
    ----------
    function : callable
        What is served.
    module : module
        Where it is from.
    given : dict
        Values of further parameters.
    one_draw : bool
        It draws once, even if it has a parameter ``n``.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        module: Any,
        given: dict[str, Any] | None = None,  # Python 3.8: annotations are not evaluated
        one_draw: bool = False,
    ) -> None:
        self.given = given or {}
        self.sessions = Sessions() if callable(getattr(function, "start", None)) else None
        served: Any = function() if self.sessions is not None and inspect.isclass(function) else function
        served = served if self.sessions is None else served.start
        self.function = served
        try:
            parameters = list(inspect.signature(served).parameters.values())
        except (TypeError, ValueError):  # some compiled functions do not say; they get the dataset
            self.names: list[str] = []
            parameters = []
        else:
            self.names = _names_of(parameters, self.given, one_draw)
        # A seed that is None by default is left out in replays: what the function then draws from is recorded.
        self.own_seed = any(p.name == "seed" and p.default is None for p in parameters)
        self.many, self.seeded = "n" in self.names, bool({"rng", "seed"} & set(self.names))
        states = getattr(function, "states", None)
        states = states if isinstance(states, dict) else getattr(module, "STATES", {})
        if not isinstance(states, dict):
            raise Wrong(f"STATES must be a dict, got {states!r}")
        self.states = encode_output(states)
        self.replays: Any = None  # open from one replay to the next

    def hello(self) -> str:
        """First message of the target, about itself."""
        says = {"protocol": 1, "seeded": self.seeded, "interactive": self.sessions is not None, "states": self.states}
        if self.seeded:  # inferred from the names of its parameters, which it need not use
            says["inferred"] = True
        if self.sessions is None and can_replay():
            says["replays"] = True
        return json.dumps({"hello": says})

    def answer(self, line: bytes) -> str:
        """Answer one request."""
        request = json.loads(line, object_hook=_read)
        number = json.dumps(request["id"])
        try:
            if "replay" in request:
                return f'{{"id": {number}, "replay": {json.dumps(self.replay(**request["replay"]))}}}'
            if self.replays is not None:
                self.replays.close()
            return f'{{"id": {number}{self.said(request)}}}'
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is answered
            said = {"type": type(error).__name__, "message": _text(error) + _find_raise(error)}
            return f'{{"id": {number}, "error": {json.dumps(said)}}}'

    def said(self, request: dict[str, Any]) -> str:
        """Members of the answer to a request."""
        if self.sessions is None:
            return f', "outputs": {self.draw(request["data"], request["n"], request.get("seed"))}'
        if "open" in request:
            asked = request["open"]
            return self.sessions.open(self.started(asked["data"], asked["n"], asked.get("seed")), asked["n"], self.many)
        if "ask" in request:
            return self.sessions.ask(request["ask"]["session"], request["ask"]["queries"])
        return self.sessions.close(request["close"]["session"])

    def started(self, data: Any, n: int, seed: int | None) -> list[Any]:
        """Sessions of the mechanism: one of n runs, or n of one.

        Parameters
        ----------
        data : JSON value
            The dataset, as it came.
        n : int
            Number of runs, at least 1.
        seed : int or None
            Decides all randomness; None for entropy.
        """
        given: dict[str, Any] = dict(self.given)
        if "rng" in self.names:
            given["rng"] = make_generator(seed)
        seeds = random.Random(seed)
        started = []
        for _ in range(1 if self.many else n):
            if "seed" in self.names:
                given["seed"] = None if seed is None else seeds.randrange(SEEDS)
            started.append(self.function(data, n=n, **given) if self.many else self.function(data, **given))
        return started

    def draw(self, data: Any, n: int, seed: int | None) -> str:
        """Draw n outputs, and write them.

        Parameters
        ----------
        data : JSON value
            The dataset, as it came.
        n : int
            Number of outputs, at least 1.
        seed : int or None
            Decides all randomness; None for entropy.

        Returns
        -------
        str
            The outputs as JSON.
        """
        given: dict[str, Any] = dict(self.given)
        if "rng" in self.names:
            given["rng"] = make_generator(seed)
        if self.many:
            if "seed" in self.names:
                given["seed"] = seed
            return write_outputs(self.function(data, n=n, **given))
        outputs: list[Any] = []
        told, seeds = False, random.Random(seed)
        for _ in range(n):
            if "seed" in self.names:
                given["seed"] = None if seed is None else seeds.randrange(SEEDS)
            try:
                output = list_yielded(self.function(data, **given))
            except Exception as error:  # noqa: BLE001 - what a draw raises is an output
                output = RaisedDraw(error, told)
                told = True
            # Written at once: a function may fill one list for all draws, or return an object that it changes.
            outputs.append(output if is_plain(output) else WrittenOutput(output))
        return write_outputs(outputs)

    def replay(self, data: Any, seed: int, bumps: dict[str, Any], forced: dict[str, Any]) -> dict[str, Any]:
        """Run the function once with recorded draws; see `auditor.targets.replays`.

        Parameters
        ----------
        data : JSON value
            The dataset, as it came.
        seed : int
            Seed of the variates.
        bumps : dict
            By the number of a draw, places in its value with what is added there.
        forced : dict
            By the number of a draw, the numbers of its value.

        Returns
        -------
        dict
            The output and the draws, or why there are none.
        """
        kept = _import_recording()
        self.replays = self.replays or kept.Replays()

        def call(rng: Any) -> Any:
            given: dict[str, Any] = dict(self.given)
            if "rng" in self.names:
                given["rng"] = rng
            if "seed" in self.names and not self.own_seed:
                given["seed"] = int(rng.integers(SEEDS))
            try:
                if self.many:
                    return self.function(data, n=1, **given)[0]
                return list_yielded(self.function(data, **given))
            except Exception as error:  # noqa: BLE001 - what a draw raises is an output
                return RaisedDraw(error)

        steps = {int(draw): {int(place): step for place, step in moved} for draw, moved in bumps.items()}
        try:
            output, draws = self.replays.run(call, seed, steps, {int(draw): made for draw, made in forced.items()})
        except kept.Uncontrolled as signal:
            return {"refused": signal.reason}
        return {"output": encode_output(output), "draws": encode_output([kept.plain_draw(draw) for draw in draws])}


def can_replay() -> bool:
    """Whether runs can be recorded.

    The modules that do so lie beside this file, and need numpy.
    """
    found = os.path.isfile(os.path.join(_HERE, "randomness", "plain_draws.py"))
    return found and sys.version_info >= (3, 11) and importlib.util.find_spec("numpy") is not None


def _import_recording() -> Any:
    """The modules that record, as a package of their own: nothing else of dpaudit can be imported here."""
    name = "_dpaudit_randomness"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(_HERE, "randomness")]
        sys.modules[name] = package
    return importlib.import_module(f"{name}.plain_draws")


class Sessions:
    """Sessions that are open, by name."""

    def __init__(self) -> None:
        self.opened: dict[str, tuple[list[Any], int, bool]] = {}
        self.count = 0

    def open(self, runs: list[Any], n: int, many: bool) -> str:
        """Open a session of n runs.

        They are one object (many) or one each.

        Parameters
        ----------
        runs : list
            The sessions of the mechanism.
        n : int
            Number of runs.
        many : bool
            They are one session of n runs, not n sessions of one.

        Returns
        -------
        str
            Members of the answer: the name, and the symbol for silence.
        """
        self.count += 1
        name = f"s{self.count}"
        self.opened[name] = runs, n, many
        silence = encode_output(getattr(runs[0], "silence", float("nan")))
        return f', "session": {json.dumps(name)}, "silence": {json.dumps(silence)}'

    def ask(self, name: str, queries: Any) -> str:
        """Ask the runs of a session.

        Parameters
        ----------
        name : str
            Name of the session.
        queries : int or list of int
            One query for all runs, or one each; `SKIP` asks nothing.

        Returns
        -------
        str
            Member of the answer: n answers.
        """
        runs, n, many = self.opened[name]
        if isinstance(queries, int):
            queries = [queries] * n
        if many:
            numpy = sys.modules.get("numpy")
            answers = runs[0].ask(queries if numpy is None else numpy.array(queries, dtype="int64"))
        else:
            silence = getattr(runs[0], "silence", float("nan"))
            answers = [silence if query == SKIP else run.ask(query) for run, query in zip(runs, queries)]  # noqa: B905
        return f', "answers": {write_outputs(answers)}'

    def close(self, name: str) -> str:
        """Forget a session."""
        for run in self.opened.pop(name)[0]:
            if callable(getattr(run, "close", None)):
                run.close()
        return ""


def _names_of(parameters: list[Any], given: dict[str, Any], one_draw: bool) -> list[str]:
    """Names by which the function wants what else there is."""
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    got = ", ".join(map(str, parameters))
    if not any(p.kind == p.VAR_KEYWORD for p in parameters):
        for name in given:
            if name not in names:
                raise Wrong(f"no parameter {name!r} for {name}={json.dumps(given[name])}; the function takes ({got})")
    left = [p for p in parameters if p.name not in given]
    rest = [p for p in left[1:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    wanted = ("rng", "seed") if one_draw else ("n", "rng", "seed")
    found = [p.name for p in rest if p.name in wanted and p.kind != p.POSITIONAL_ONLY]
    lacking = [p.name for p in rest if p.name not in found and p.default is p.empty]
    if not left or lacking or (given and left[0] is not parameters[0]):
        mend = "".join(f" {name}=1" for name in lacking)
        raise Wrong(
            f"a function served takes the dataset, and n, rng or seed by name; this one takes ({got})"
            + (f": give the others, here{mend}, with pip: by --arg{mend}" if mend else "")
        )
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)[:1000]
    except Exception:  # noqa: BLE001 - the text of an error of somebody else's
        return ""


def _find_raise(error: BaseException) -> str:
    """The innermost line outside of this file, such as " (mine.py, line 12)"."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    return f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""


def make_generator(seed: int | None) -> Any:
    """Source of randomness: numpy's where there is one."""
    try:
        import numpy
    except ImportError:
        return random.Random(seed)
    return numpy.random.default_rng(seed)


def load_function(text: str, words: list[str] | None = None) -> Target:
    """Import what ``WHERE:NAME`` names.

    Parameters
    ----------
    text : str
        The name.
    words : list of str, optional
        Values of further parameters, NAME=JSON, and ``--one-draw``.
    """
    given: dict[str, Any] = {}
    for word in words or []:
        parameter, _, value = word.partition("=")
        if word != "--one-draw":
            try:
                given[parameter] = ast.literal_eval(value) if value.startswith("(") else json.loads(value)
            except (ValueError, SyntaxError) as error:
                raise Wrong(f"expected NAME=JSON, as in epsilon=1, got {word!r}") from error
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise Wrong(f"expected WHERE:NAME, a module or the path of a .py file, got {text!r}")
    try:
        module = _load_file(where) if where.endswith(".py") else _load_module(where)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise Wrong(f"cannot import {where}: {type(error).__name__}: {error}") from error
    found: Any = module
    for part in name.split("."):
        if inspect.isclass(found) and callable(getattr(found, "fit", None)) and not part.startswith("fit"):
            return _model_target(found, part, module, given)
        if not hasattr(found, part):
            close = difflib.get_close_matches(part, dir(found), 3)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise Wrong(f"{where} has no attribute {name!r}{hint}")
        found = getattr(found, part)
    if inspect.isclass(found) and callable(getattr(found, "fit", None)) and not hasattr(found, "start"):
        return _model_target(found, "", module, given)
    if not callable(found) and not callable(getattr(found, "start", None)):
        raise Wrong(f"{text} is not callable: {found!r}")
    if is_async(found):
        raise Wrong(f"{text} {ASYNC}")
    return Target(found, module, given, "--one-draw" in (words or []))


def _model_target(kind: Any, member: str, module: Any, given: dict[str, Any]) -> Target:
    """A model that is fitted in each draw; ``member`` is what it releases, empty for all that it has learned."""
    names = list(inspect.signature(kind).parameters)
    made = {name: value for name, value in given.items() if name in names}
    asked = {name: value for name, value in given.items() if name not in names}
    if member and not member.endswith("_") and not callable(getattr(kind, member, None)):
        close = difflib.get_close_matches(member, dir(kind), 3)
        raise Wrong(f"{kind.__name__} has no method {member!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    if asked and (not member or member.endswith("_")):
        raise Wrong(f"no parameter {min(asked)!r}; {kind.__name__} takes ({', '.join(names)})")

    def release(model: Any) -> Any:
        if not member:
            return {name: value for name, value in sorted(vars(model).items()) if name[-1] == "_" and name[0] != "_"}
        released = getattr(model, member)
        return released(**asked) if callable(released) else released

    own = next((name for name in ("random_state", "seed") if name in names and name not in made), "")
    if own:

        def draw_seeded(data: Any, seed: Any = None) -> Any:
            return release(_fit_model(kind(**made, **{own: None if seed is None else seed % 2**32}), data))

        return Target(draw_seeded, module)
    return Target(lambda data: release(_fit_model(kind(**made), data)), module)


def _fit_model(model: Any, data: Any) -> Any:
    parameters = list(inspect.signature(model.fit).parameters.values())
    names = [p.name for p in parameters]
    if isinstance(data, dict) and set(data) <= set(names):
        model.fit(**data)
    elif len(parameters) > 1 and names[1] in ("y", "Y") and parameters[1].default is parameters[1].empty:
        if not isinstance(data, list) or not all(isinstance(row, list) and len(row) > 1 for row in data):
            raise TypeError(f"expected a dict of {names[0]} and {names[1]}, or rows with the labels at their ends")
        model.fit([row[:-1] for row in data], [row[-1] for row in data])
    else:
        model.fit(data)
    return model


def _load_module(name: str) -> Any:
    sys.path.insert(0, os.getcwd())  # the folder one stands in, as `python -m` has it
    return importlib.import_module(name)


def _load_file(path: str) -> Any:
    """Import a file by its path. Modules beside it can be imported, if no installed one has their name."""
    if not os.path.isfile(path):
        raise Wrong(f"no such file: {path!r}")
    sys.path += [os.path.dirname(os.path.abspath(path)), os.getcwd()]
    name = "dpaudit_target"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Wrong(f"not a Python file: {path!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def take_streams() -> tuple[Any, Any]:
    """Take over standard input and output for the protocol.

    Other code reads nothing, and its output goes to standard error.
    """
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return questions, answers


def main(words: list[str]) -> int:
    """Serve the function that the command line names, until standard input ends."""
    questions, answers = take_streams()
    try:
        if not words:
            raise Wrong("expected WHERE:NAME, got no argument")
        target = load_function(words[0], words[1:])
    except Wrong as error:
        with contextlib.suppress(Exception):  # the module may have closed it
            sys.stdout.flush()  # what it has printed comes first: this is the last line
        print(f"helper.py: {error}", file=sys.stderr)
        return 2
    line = target.hello()
    while True:
        answers.write(line.encode("ascii") + b"\n")
        answers.flush()
        request = questions.readline()
        if not request:
            return 0
        line = target.answer(request)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
