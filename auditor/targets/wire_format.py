"""Values as JSON between the auditor and a target: datasets out, outputs in. Nothing is evaluated or unpickled.

What JSON does not have is written as an object of one reserved member, in datasets and in outputs alike:

==================================================  ==================================================================
form                                                value
==================================================  ==================================================================
``{"__float__": "nan"}``, "inf", "-inf"             a float that is no number of JSON
``{"__bytes__": base64}``                           bytes
``{"__set__": [...]}``                              a set; its members in any order
``{"__pairs__": [[key, value], ...]}``              a dict with a key that is no text, or is one of these names
``{"__error__": "ValueError"}``                     an output: the draw raised; it may have a "message" for people
``{"__type__": "float32", "value": ...}``           an output: a value of a type that JSON does not have
==================================================  ==================================================================

Lists that are keys or members of sets are read as tuples. In a dataset arrays and tuples are lists, and a DataFrame is
a list of objects, one a row. Numbers with a fraction or an exponent are read as floats, and -0 too, as C and JavaScript
write the float; others as integers of any size. A number that no float holds is read as `_read_number` says. A target
that audits are to see the bits of writes floats so that they read back the same.

This is not the encoding of files, `auditor.datasets.json_codec`, on purpose. A file holds a value with its types.
A target may be hostile and is written in any language: it gets plain numbers and lists wherever JSON has them, and its
answers are read strictly, with errors that hold nothing of them. `auditor.targets.helper` writes the same forms once
more, as it is one file that runs without this package.
"""

from __future__ import annotations

import base64
import codecs
import itertools
import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Any, TypeVar

import numpy as np

from auditor.datasets.pandas_types import is_frame, is_index, is_na, is_series
from auditor.errors import SpecificationError
from auditor.targets.outputs import Batch, Raised, Typed

#: Deepest nesting of an output: more than any structured output has, and far less than what exhausts Python's stack
#: when it is written or compared; arbitrary between.
NESTING = 50
#: Characters of a type's name; arbitrary, names of generic classes with their parameters are long.
_NAME = 200
#: Characters of what an exception says; arbitrary, about two lines.
_MESSAGE = 200
#: Characters of a number below which a float holds all of its digits, 15 at most.
_SHORT = 17
#: Digits of all finite floats, the smallest of which has 767 and as many zeros before them as 324; and exponents, of
#: numbers that are compared with them.
_EXACT, _RANGE = 2000, 10**6
#: What an output that was raised may hold beside its name, for people.
_TOLD = frozenset({"message"})

Collection = TypeVar("Collection", frozenset[Any], dict[Any, Any])

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
#: Types of numpy which a column of outputs is read as, if all outputs say so.
_DTYPES = frozenset({"float16", "float32", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"})


def data_text(data: Any) -> str:
    """Write a dataset as JSON.

    Parameters
    ----------
    data : array, DataFrame, Series, number, str, bytes, None, or list, tuple, dict or set of such
        The dataset.

    Returns
    -------
    str
        JSON without line breaks, ASCII only.

    Raises
    ------
    SpecificationError
        If it holds what the protocol has no form for.
    """
    return json.dumps(encode_data(data), allow_nan=False, separators=(",", ":"))


def encode_data(data: Any) -> Any:
    """Bring a dataset to what JSON has; see `data_text`."""
    if is_frame(data):
        names = [str(name) for name in data.columns]
        if len(set(names)) != len(names):
            raise SpecificationError(f"columns of a table that is sent to a target must have different names: {names}")
        columns = [_column(data.iloc[:, k]) for k in range(len(names))]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    if is_series(data) or is_index(data):
        return _column(data)
    if isinstance(data, np.ndarray):
        if data.dtype.kind in "mM":
            return data.astype(str).tolist()
        plain = data.dtype.kind in "biu" or (data.dtype.kind == "f" and bool(np.isfinite(data).all()))
        return data.tolist() if plain else encode_data(data.astype(object).tolist())
    return _encode_value(data)


def _column(values: Any) -> list[Any]:
    return [encode_data(value) for value in values.tolist()]


def _encode_value(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if is_na(value):
        return None
    if isinstance(value, float):
        if value != value or value in (_FLOATS["inf"], _FLOATS["-inf"]):
            return {"__float__": float.__repr__(value)}
        return value
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return {"__bytes__": base64.b64encode(value).decode("ascii")}
    if isinstance(value, list | tuple):
        return [encode_data(element) for element in value]
    if isinstance(value, set | frozenset):
        members = [encode_data(element) for element in value]
        return {"__set__": sorted(members, key=lambda member: json.dumps(member, sort_keys=True))}
    if isinstance(value, dict):
        if all(isinstance(key, str) and key not in _READERS for key in value):
            return {key: encode_data(element) for key, element in value.items()}
        return {"__pairs__": [[encode_data(key), encode_data(element)] for key, element in value.items()]}
    if callable(getattr(value, "isoformat", None)):  # dates and times
        return value.isoformat()
    raise SpecificationError(
        f"a dataset holds a {type(value).__name__}, which cannot be sent to a target: expected numbers, texts, bytes, "
        "None, dates, arrays, tables, lists, tuples, dicts or sets"
    )


def decode_json(raw: bytes) -> Any:
    """Read one value of JSON from a target.

    Raises
    ------
    ValueError
        If it is none, or of a wrong form, with a reason that holds nothing of what was read.
    """
    if raw.startswith(codecs.BOM_UTF8):
        raise ValueError("a byte order mark is before it, which JSON has not")
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"no UTF-8 at byte {error.start}") from None
    except _FormError:
        raise
    except ValueError:
        raise ValueError("a number of too many digits") from None


class _FormError(ValueError):
    """An object of one of the forms of this protocol, with a content that is not."""


def _object(pairs: list[tuple[str, Any]]) -> Any:
    """Read an object of JSON; those with a reserved member are other values."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _FormError("an object has a member twice")
    return found if _READERS.keys().isdisjoint(found) else _read_special(found)


def _read_special(found: dict[str, Any]) -> Any:
    name = next(name for name in _READERS if name in found)
    allowed = {name, "value"} if name == "__type__" else {name}
    if found.keys() - (_TOLD if name == "__error__" else frozenset()) != allowed:
        raise _FormError(f"an object with {name} has other members")
    try:
        return _READERS[name](found)
    except (TypeError, ValueError, KeyError, RecursionError):
        raise _FormError(f"a wrong content of {name}") from None


def _read_float(found: dict[str, Any]) -> float:
    return _FLOATS[found["__float__"]]


def _read_bytes(found: dict[str, Any]) -> bytes:
    return base64.b64decode(found["__bytes__"], validate=True)


def _read_error(found: dict[str, Any]) -> Raised:
    message = found.get("message", "")
    if not isinstance(message, str):
        raise ValueError("a message that is no text")
    return Raised(_name(found["__error__"]), _printable(message[:_MESSAGE]))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _read_type(found: dict[str, Any]) -> Typed:
    return Typed(_name(found["__type__"]), found["value"])


def _read_set(found: dict[str, Any]) -> frozenset[Any]:
    members = found["__set__"]
    read = frozenset(map(_tuples_for_lists, members))
    return _check_complete(read, members)


def _read_pairs(found: dict[str, Any]) -> dict[Any, Any]:
    pairs = found["__pairs__"]
    if not all(isinstance(pair, list) for pair in pairs):
        raise ValueError("a pair that is no list")
    read = {_tuples_for_lists(key): value for key, value in pairs}
    return _check_complete(read, pairs)


def _check_complete(read: Collection, written: Any) -> Collection:
    if not isinstance(written, list) or len(read) != len(written):
        raise ValueError("a key or a member twice")
    return read


def _tuples_for_lists(value: Any) -> Any:
    """A list as a tuple, throughout: keys and members of sets are often tuples, which JSON has not."""
    if isinstance(value, list):
        return tuple(map(_tuples_for_lists, value))
    hash(value)
    return value


def is_name(text: Any) -> bool:
    """Whether a text may name a type or an exception."""
    return isinstance(text, str) and 0 < len(text) <= _NAME and text.isprintable()


def _name(text: Any) -> str:
    if not is_name(text):
        raise ValueError("not a name")
    return str(text)


def _no_constant(_: str) -> Any:
    raise _FormError('NaN and infinities are written as objects, {"__float__": "nan"}')


def _read_integer(text: str) -> int | float:
    """Read a number without fraction and exponent: an integer, but -0, which is the float with its sign."""
    return -0.0 if text == "-0" else int(text)


def _read_number(text: str) -> float | Typed:
    """Read a number with a fraction or an exponent.

    Returns
    -------
    float or Typed
        The float next to it. If the digits are not those that the float is rounded to (9007199254740993.0, 1e400, or 25
        digits of a decimal number), what the helper makes of decimal numbers: the float, and the text that was written.

    Notes
    -----
    Valid because: an output is read as a function of itself alone, so that no mechanism that keeps its claim shows more
    than before; and two different numbers that are written with their last digits are no longer one output.
    """
    value = float(text)
    if len(text) < _SHORT and "e" not in text and "E" not in text:
        return value
    if repr(value) == text or _is_rounded(value, text):
        return value
    return Typed("decimal.Decimal", {"value": value, "text": text})


def _is_rounded(value: float, text: str) -> bool:
    """Whether a text has a float to some number of digits, zeros at its end left out."""
    with localcontext(prec=_EXACT, Emin=-_RANGE, Emax=_RANGE):
        try:
            written = Decimal(text)
            if not written or not math.isfinite(value):
                return not written
            _, digits, exponent = written.as_tuple()
            last = int(exponent) + next(k for k, digit in enumerate(reversed(digits)) if digit)
            return abs(written - Decimal(value)) * 2 <= Decimal((0, (1,), last))
        except ArithmeticError:  # exponents beyond all measure
            return False


_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "__float__": _read_float,
    "__bytes__": _read_bytes,
    "__error__": _read_error,
    "__set__": _read_set,
    "__pairs__": _read_pairs,
    "__type__": _read_type,
}
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_read_number, parse_int=_read_integer
)
_SCALARS = frozenset({float, int, str, bool, type(None)})


def is_deeper(values: Iterable[Any], most: int) -> bool:
    """Whether containers are nested deeper than a limit.

    Parameters
    ----------
    values : iterable
        Values as `decode_json` reads them.
    most : int
        Deepest nesting that is allowed.
    """
    layer = list(values)
    for _ in range(most):
        if set(map(type, layer)) <= _SCALARS:
            return False
        layer = list(itertools.chain.from_iterable(map(_parts, layer)))
    return bool(layer)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple | frozenset):
        return value
    if isinstance(value, dict):
        return itertools.chain(value.keys(), value.values())
    return (value.value,) if isinstance(value, Typed) else ()


def as_array(outputs: list[Any]) -> Batch:
    """Outputs of one of numpy's types, as an array."""
    if set(map(type, outputs)) != {Typed}:
        return outputs
    kinds = {output.kind for output in outputs}
    if len(kinds) != 1 or not kinds <= _DTYPES:
        return outputs
    values = [output.value for output in outputs]
    try:
        plain = np.array(values)
    except (ValueError, OverflowError):  # ragged rows, large integers
        return outputs
    if plain.dtype.kind not in "iuf":
        return outputs
    with np.errstate(over="ignore", invalid="ignore"):
        array = plain.astype(kinds.pop())
    return array if np.array_equal(array, plain, equal_nan=True) else outputs
