"""Values, datasets and objects of known classes as JSON and back, exactly.

Files of results, ledgers and replay use this one encoding. Floats are written as texts: results.json rounds numbers to
8 digits, and strict JSON has no NaN. What goes to targets and comes from them has a form that other languages read
easily, and is read with more suspicion: see `auditor.targets.wire_format`.
"""

from __future__ import annotations

import base64
import inspect
import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.datasets.pandas_types import find_pandas, is_frame, is_named_type
from auditor.errors import SpecificationError, require_library

if TYPE_CHECKING:
    import pandas as pd

#: Entries of a dataset that is stored, at most; arbitrary, some hundred kilobytes of JSON. A counterexample for people
#: is far smaller, and larger data are better kept in a file.
MOST_ENTRIES = 10_000
#: Types of arrays that are stored, as numpy writes them: booleans, numbers of up to 8 bytes, texts, bytes, dates.
_DTYPE = re.compile(r"\|b1|[<>|][iu][1248]|[<>]f[248]|[<>]U\d+|\|S\d+|[<>][Mm]8(\[\w+\])?|\|O")


class NotStorableError(ValueError):
    """A value for which there is no exact JSON here."""


# ------------------------------------------------------------------------------------------ values


def encode_value(value: Any, other: Callable[[Any], Any] | None = None) -> Any:
    """Encode a value as plain JSON, with its types.

    `decode_value` makes an equal value of the same types from it.

    Parameters
    ----------
    value : object
        None, booleans, numbers, texts, bytes, lists, tuples and dicts of these, numpy scalars, arrays, DataFrames.
    other : callable, optional
        JSON of values of other types: an object with a member that is none of those used here.

    Raises
    ------
    NotStorableError
        If there is no exact JSON.
    """
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return value
    if kind is float:
        return {"float": repr(value)}
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which no UTF-8 file holds
            return {"escaped": value.encode("unicode_escape").decode("ascii")}
        return value
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if kind is list:
        if value and all(type(v) is float for v in value):
            return {"floats": [repr(v) for v in value]}
        return [encode_value(v, other) for v in value]
    if kind is tuple:
        return {"tuple": encode_value(list(value), other)}
    if kind is dict:
        return {"dict": [[encode_value(k, other), encode_value(v, other)] for k, v in value.items()]}
    if isinstance(value, np.generic):
        return {"scalar": encode_value(np.asarray(value), other)}
    if kind is np.ndarray:
        return _encode_array(value, other)
    if kind is getattr(find_pandas(), "DataFrame", None):
        return _encode_frame(value, other)
    if other is not None:
        return other(value)
    raise NotStorableError(f"no JSON for a {kind.__name__}")


def decode_value(record: Any, other: Callable[[Mapping[str, Any]], Any] | None = None) -> Any:
    """Invert `encode_value`.

    Parameters
    ----------
    record : JSON value
        What `encode_value` wrote.
    other : callable, optional
        Reads what the callable of the same name wrote.

    Returns
    -------
    object
        Equal to the encoded value, with the same types.

    Raises
    ------
    SpecificationError
        If it is not what `encode_value` writes. Nothing in it is imported or evaluated.
    """
    try:
        return _decode(record, other)
    except SpecificationError:
        raise
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError) as error:
        raise SpecificationError(f"cannot read the recorded value {_shorten_repr(record)}: {error}") from error


def _decode(record: Any, other: Callable[[Mapping[str, Any]], Any] | None) -> Any:
    if record is None or isinstance(record, bool | int | str):
        return record
    if isinstance(record, list):
        return [_decode(v, other) for v in record]
    if not isinstance(record, Mapping):
        raise SpecificationError(
            f"cannot read the recorded value {_shorten_repr(record)}: expected JSON of this program"
        )
    readers: dict[str, Callable[[Any], Any]] = {
        "float": _float,
        "floats": _floats,
        "escaped": lambda v: v.encode("ascii").decode("unicode_escape"),
        "bytes": lambda v: base64.b64decode(v, validate=True),
        "null": lambda _: None,
        "tuple": lambda v: tuple(_decode(v, other)),
        "dict": lambda v: {_decode(k, other): _decode(w, other) for k, w in v},
        "scalar": lambda v: _decode(v, other)[()],
    }
    for name, read in readers.items():
        if len(record) == 1 and name in record:
            return read(record[name])
    if "array" in record:
        return _decode_array(record, other)
    if "frame" in record:
        return _decode_frame(record["frame"], other)
    if other is not None:
        return other(record)
    raise SpecificationError(f"cannot read the recorded value {_shorten_repr(record)}: expected JSON of this program")


def _float(text: Any) -> float:
    if not isinstance(text, str):
        raise TypeError(f"expected a float's text, got {text!r}")
    return float(text)


def _floats(texts: Any) -> list[float]:
    if not isinstance(texts, list):
        raise TypeError(f"expected a list of floats' texts, got {texts!r}")
    return [_float(text) for text in texts]


def _shorten_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _encode_array(array: NDArray[Any], other: Callable[[Any], Any] | None) -> dict[str, Any]:
    if not _DTYPE.fullmatch(array.dtype.str):
        raise NotStorableError(f"no JSON for an array of type {array.dtype}")
    flat = array.reshape(-1)
    if array.dtype.kind in "Mm":
        flat = flat.view(array.dtype.str[0] + "i8")
    values: list[Any] = flat.tolist()
    return {"array": array.dtype.str, "shape": list(array.shape), "values": encode_value(values, other)}


def _decode_array(record: Mapping[str, Any], other: Callable[[Mapping[str, Any]], Any] | None) -> NDArray[Any]:
    name, shape, values = record["array"], tuple(record["shape"]), _decode(record["values"], other)
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise SpecificationError(f"cannot read an array of type {name!r}")
    dtype = np.dtype(name)
    if len(values) != math.prod(shape):
        raise SpecificationError(f"an array of shape {shape} cannot have {len(values)} entries")
    if dtype.kind == "O":
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found.reshape(shape)
    if dtype.kind in "Mm":
        return np.array(values, dtype=name[0] + "i8").view(dtype).reshape(shape)
    return np.array(values, dtype=dtype).reshape(shape)


def _encode_frame(frame: pd.DataFrame, other: Callable[[Any], Any] | None) -> dict[str, Any]:
    import pandas as pd  # takes longer to import than all the rest together

    columns = []
    for j, label in enumerate(frame.columns):
        columns.append([encode_value(label, other), _encode_column(frame.iloc[:, j], other)])
    plain_index = frame.index.equals(pd.RangeIndex(len(frame))) and frame.index.name is None
    index = (
        None if plain_index else [encode_value(frame.index.to_numpy(), other), encode_value(frame.index.name, other)]
    )
    return {"frame": {"rows": len(frame), "columns": columns, "index": index}}


def _encode_column(column: pd.Series[Any], other: Callable[[Any], Any] | None) -> Any:
    import pandas as pd  # takes longer to import than all the rest together

    if isinstance(column.dtype, pd.CategoricalDtype):
        return {
            "categories": encode_value(column.dtype.categories.to_numpy(), other),
            "ordered": bool(column.dtype.ordered),
            "codes": column.cat.codes.tolist(),
        }
    if isinstance(column.dtype, np.dtype):
        return encode_value(column.to_numpy(), other)
    if not is_named_type(column.dtype):
        raise NotStorableError(f"a column of type {column.dtype}")
    values = [None if missing else v for v, missing in zip(column.tolist(), column.isna(), strict=True)]
    return {"extension": str(column.dtype), "values": encode_value(values, other)}


def _decode_frame(record: Mapping[str, Any], other: Callable[[Mapping[str, Any]], Any] | None) -> pd.DataFrame:
    require_library("pandas", "recorded DataFrames")
    import pandas as pd  # takes longer to import than all the rest together

    index = pd.RangeIndex(record["rows"])
    if record["index"] is not None:
        labels, name = record["index"]
        index = pd.Index(_decode(labels, other), name=_decode(name, other))
    columns = [_decode_column(values, index, other) for _, values in record["columns"]]
    frame = pd.DataFrame(dict(enumerate(columns)), index=index)
    frame.columns = pd.Index([_decode(label, other) for label, _ in record["columns"]])
    return frame


def _decode_column(record: Any, index: pd.Index[Any], other: Callable[[Mapping[str, Any]], Any] | None) -> Any:
    import pandas as pd  # takes longer to import than all the rest together

    if "codes" in record:
        categories = pd.Index(_decode(record["categories"], other))
        values: Any = pd.Categorical.from_codes(record["codes"], categories=categories, ordered=record["ordered"])
    elif "extension" in record:
        values = pd.array(_decode(record["values"], other), dtype=record["extension"])
    else:
        values = _decode(record, other)
        return pd.Series(values, index=index, dtype=values.dtype)
    return pd.Series(values, index=index)


# ----------------------------------------------------------------------------------------- objects


@dataclass(frozen=True)
class ObjectCodec:
    """Objects of known classes as JSON: the class and its parameters.

    Parameters
    ----------
    classes : callable
        Gives the classes by name. Nothing that a record names beside them is imported or evaluated.
    noun : str
        What an object is called in an error.
    member : str
        Member of a record that holds the parameters.
    """

    classes: Callable[[], Mapping[str, type]]
    noun: str
    member: str = "fields"

    def encode(self, value: Any) -> dict[str, Any]:
        """Encode an object with what it holds.

        Raises
        ------
        NotStorableError
            If it, or what it holds, is no data.
        """
        kind: type = type(value)
        if self.classes().get(kind.__name__) is not kind:
            raise NotStorableError(f"a {kind.__name__} is no data")
        values = {name: encode_value(getattr(value, name), self.encode) for name in _parameters(kind)}
        return {"class": kind.__name__, self.member: values}

    def decode(self, record: Mapping[str, Any]) -> Any:
        """Invert `encode_value`.

        Raises
        ------
        SpecificationError
            If the record is none, or its class does not take what it holds.
        """
        return decode_value(record, self._object)

    def _object(self, record: Mapping[str, Any]) -> Any:
        name, values = record.get("class"), record.get(self.member)
        kind = self.classes().get(name) if isinstance(name, str) else None
        if kind is None or not isinstance(values, Mapping):
            known = ", ".join(sorted(self.classes()))
            raise SpecificationError(f"a record of {self.noun} names the class {name!r}, expected one of {known}")
        parameters = _parameters(kind)
        # A record that is older than a parameter with a default lacks it.
        if not {n for n, needed in parameters.items() if needed} <= set(values) <= set(parameters):
            raise SpecificationError(f"the record of a {name} has {sorted(values)}, expected {sorted(parameters)}")
        return kind(**{key: decode_value(value, self._object) for key, value in values.items()})


@cache
def _parameters(kind: type) -> Mapping[str, bool]:
    """Parameters of a class in their order; whether each is needed."""
    return {name: part.default is part.empty for name, part in inspect.signature(kind).parameters.items()}


def encode_exactly(
    value: Any,
    write: Callable[[Any], Any],
    read: Callable[[Any], Any],
    same: Callable[[Any, Any], bool] = operator.eq,
) -> Any:
    """Encode a value if it comes back the same, else return None.

    Parameters
    ----------
    value : object
    write, read : callable
        An encoder, and its inverse.
    same : callable
        Whether two values are the same; default that they are equal.
    """
    try:
        record = write(value)
        return record if same(read(record), value) else None
    except (AttributeError, NotStorableError, RecursionError, SpecificationError):
        return None


# ---------------------------------------------------------------------------------------- datasets


def data_to_json(data: Any, most: int = MOST_ENTRIES) -> Any:
    """JSON of a dataset, from which `data_from_json` makes the same one.

    Parameters
    ----------
    data : ndarray, DataFrame, list, tuple, or what they hold
    most : int
        Entries that are stored, at most.

    Returns
    -------
    JSON value or None
        None if the dataset is larger, or has no exact JSON here; a dataset that is None has another form.
    """
    if data is None:
        return {"null": True}
    if _entries(data, most) > most:
        return None
    return encode_exactly(data, encode_value, decode_value, same_data)


def data_from_json(record: Any) -> Any:
    """Dataset that `data_to_json` wrote.

    Raises
    ------
    SpecificationError
        If the record is not what `data_to_json` writes.
    """
    return decode_value(record)


def _entries(data: Any, most: int) -> int:
    """Count the entries; counting ends beyond ``most``."""
    if isinstance(data, np.ndarray) or is_frame(data):
        return int(data.size) + (len(data) if is_frame(data) else 0)
    if not isinstance(data, list | tuple | dict):
        return 1 + (len(data) // 8 if isinstance(data, str | bytes) else 0)
    total = 1
    for part in data.values() if isinstance(data, dict) else data:
        total += _entries(part, most)
        if total > most:
            break
    return total


def same_data(a: Any, b: Any) -> bool:
    """Whether two datasets are equal in types and content.

    NaN is NaN, and 0.0 is not -0.0.

    Parameters
    ----------
    a, b : ndarray, DataFrame, list, tuple, dict or what they hold
        The two datasets.
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.kind == "f":
            return bool(np.array_equal(a, b, equal_nan=True) and (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all())
        if a.dtype.kind == "O":
            return same_data(a.reshape(-1).tolist(), b.reshape(-1).tolist())
        return bool(a.tobytes() == b.tobytes())
    if is_frame(a):
        return bool(
            list(a.dtypes) == list(b.dtypes)
            and a.columns.equals(b.columns)
            and a.columns.dtype == b.columns.dtype
            and a.columns.name == b.columns.name
            and a.index.equals(b.index)
            and a.index.dtype == b.index.dtype
            and a.index.name == b.index.name
            and all(_same_column(a.iloc[:, j], b.iloc[:, j]) for j in range(a.shape[1]))
        )
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_data, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same_data, a, b)) and all(same_data(a[k], b[k]) for k in a)
    if isinstance(a, float):
        return repr(a) == repr(b)
    return bool(a == b)


def _same_column(a: pd.Series[Any], b: pd.Series[Any]) -> bool:
    if isinstance(a.dtype, np.dtype):
        return same_data(a.to_numpy(), b.to_numpy())
    return bool(a.equals(b))


def write_json_line(value: Mapping[str, Any]) -> bytes:
    """Write an object as one line of strict JSON.

    Escaped, so that a line has no bytes beyond ASCII and none that ends it.

    Parameters
    ----------
    value : mapping
        The object.
    """
    return json.dumps(value, allow_nan=False).encode("ascii") + b"\n"


def parse_json_object(line: bytes) -> dict[str, Any] | None:
    """Parse an object of JSON; None for anything else.

    Parameters
    ----------
    line : bytes
        What was read.
    """
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
