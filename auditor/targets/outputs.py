"""Outputs as a target gives them, checked and brought to one of three shapes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from auditor.errors import TargetError
from auditor.targets.columns import NUMBERS, Columns, ElementColumn, Path, columns_of, read_numbers
from auditor.targets.helper import find_content
from auditor.targets.values import DEEPEST, PLAIN, USUAL, Raised, Typed, make_visible, strip_type, text_of

__all__ = [
    "Batch",
    "Raised",
    "ShapedRows",
    "Typed",
    "as_batch",
    "concatenate_batches",
    "float_of",
    "hash_outputs",
    "is_number",
    "kind_of_rows",
    "list_outputs",
    "pool_outputs",
    "read_column",
    "read_matrix",
    "shorten_text",
    "show_output",
]

#: A batch of outputs, trial axis first: numbers of shape (n,) or (n, d), or a list of any Python values.
Batch: TypeAlias = NDArray[Any] | list[Any]

#: Types of a list's elements that are read as numbers. Booleans are symbols in a list of mixed types, but numbers in an
#: array of booleans.
_NUMBER = (int, float, np.integer, np.floating)
#: Types of which the numbers alone are `NUMBERS`.
_READ = NUMBERS | {dict, list, tuple, str, bytes, set, frozenset, type(None), Raised}
#: Types of rows that have no attributes.
_ROWS = {list, tuple, np.ndarray}
#: Types whose equal values have one text.
_TEXTS = {str, bytes, type(None)}
#: Types of numbers within which equal values have one key.
_SCALARS = {int, float, bool}
#: Key of a NaN.
_NAN = int(np.array(np.nan).view(np.int64))
#: Integers up to here are floats exactly.
EXACT = 2**53
#: Sets the keys of booleans apart from those of numbers; arbitrary.
_BOOLEAN = 0x5D588B656C078965
#: Outputs of a list from which on their keys are computed together; arbitrary, of a few it would take longer.
_MANY = 8


class ShapedRows(np.ndarray[Any, np.dtype[Any]]):
    """Rows of the numbers of arrays of more dimensions.

    Attributes
    ----------
    inner : tuple of int
        Shape of the array that each row holds.
    """

    inner: tuple[int, ...] = ()

    def __array_finalize__(self, source: object) -> None:
        """Keep the shape in views and copies."""
        self.inner = getattr(source, "inner", ())

    def __reduce__(self) -> Any:
        """Keep the shape on the way to another process."""
        return shape_rows, (np.asarray(self), self.inner)


def shape_rows(rows: NDArray[Any], inner: tuple[int, ...]) -> NDArray[Any]:
    """Rows with the shape of the arrays that they hold."""
    shaped = rows.view(ShapedRows)
    shaped.inner = inner
    return shaped


def inner_shape(batch: Batch) -> tuple[int, ...]:
    """Shape of each row's array; empty if there is none."""
    return batch.inner if isinstance(batch, ShapedRows) else ()


def kind_of_rows(batch: NDArray[Any]) -> str:
    """Kind of the outputs of an array, as `kind_of` names it."""
    name, inner = batch.dtype.name, inner_shape(batch)
    if batch.ndim == 2 and inner:
        return f"{'' if name in ('float64', 'bool') else name + ' '}array of shape {inner}"
    if batch.ndim == 2:
        return "sequence" if name in ("float64", "bool") else name
    return USUAL.get(name, name)


def as_batch(outputs: object, n: int) -> Batch:
    """Check what a target returned for ``n`` draws and normalise it.

    Parameters
    ----------
    outputs : object
        A numpy array with trial axis first, or a sequence of n Python values.
    n : int
        Number of draws asked for.

    Returns
    -------
    ndarray of shape (n,) or (n, d), or list of length n
        An array of more dimensions is `ShapedRows`. A list is turned into an array if all its elements are numbers of
        one type, or sequences of numbers of one length. Otherwise each element is brought to plain data by itself, see
        `make_visible`.

    Raises
    ------
    TargetError
        If there are not n outputs, or they are not an array or a sequence.
    """
    if isinstance(outputs, np.ndarray):
        if outputs.ndim == 0 or outputs.shape[0] != n:
            raise TargetError(f"{n} outputs were asked for, the target returned an array of shape {outputs.shape}")
        if isinstance(outputs, np.ma.MaskedArray):
            return [make_visible(outputs[k : k + 1]) for k in range(n)]
        outputs = np.asarray(outputs)
        if outputs.dtype.kind in "biuf":
            return outputs if outputs.ndim <= 2 else shape_rows(outputs.reshape(n, -1), outputs.shape[1:])
        return [make_visible(value) for value in (outputs if outputs.dtype.kind in "cmMV" else outputs.tolist())]
    asked = f"{n} outputs were asked for, the target returned"
    if isinstance(outputs, str | bytes) or not isinstance(outputs, Sequence):
        if hasattr(outputs, "__array__"):
            return as_batch(np.asarray(outputs), n)
        expected = "expected an array or a sequence, trial axis first"
        raise TargetError(
            f"{asked} {_shorten_output(outputs)}: {expected}", public=f"{asked} a {type(outputs).__name__}: {expected}"
        )
    if len(outputs) != n:
        raise TargetError(f"{asked} {len(outputs)}: {_shorten_output(outputs)}", public=f"{asked} {len(outputs)}")
    return _from_list(list(outputs))


def _from_list(values: list[Any]) -> Batch:
    kinds = set(map(type, values))
    if kinds <= {float, np.float64}:
        return np.fromiter(values, np.float64, len(values))  # twice as fast as np.array
    if kinds == {int}:
        try:
            return np.fromiter(values, np.int64, len(values))
        except OverflowError:
            return values
    if len(kinds) == 1 and issubclass(next(iter(kinds)), np.integer | np.floating):
        return np.array(values)
    own = {kind for kind in kinds if kind not in _ROWS and issubclass(kind, list | tuple | np.ndarray)}
    if own and any(type(v) in own and find_content(v) is not None for v in values):
        return [make_visible(v if type(v) in own and find_content(v) is not None else _row(v)) for v in values]
    if all(issubclass(kind, np.ndarray) for kind in kinds):
        return _from_arrays(values)
    if all(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
        return _from_rows([_row(v) for v in values] if not kinds <= {list, tuple} else values)
    if kinds <= PLAIN | {set, frozenset} or (
        kinds == {dict} and PLAIN.issuperset(map(type, itertools.chain.from_iterable(map(dict.values, values))))
    ):
        return values
    return [make_visible(_row(v)) for v in values]


def _from_rows(rows: list[Any]) -> Batch:
    """Outputs that are lists, tuples or arrays: an array if they are rows of numbers of one length."""
    if all(isinstance(row, list | tuple) for row in rows):
        elements = list(itertools.chain.from_iterable(rows))
        kinds = set(map(type, elements))
        if elements and all(map(_is_number_type, kinds)) and len(set(map(len, rows))) == 1:
            if not _are_exact_floats(elements, kinds):
                return rows
            return np.fromiter(elements, np.float64, len(elements)).reshape(len(rows), -1)
        if kinds <= PLAIN and {list, tuple}.issuperset(map(type, rows)):
            return rows
    return [make_visible(row) for row in rows]


def _from_arrays(values: list[NDArray[Any]]) -> Batch:
    """Outputs that are arrays: one array if they are rows of numbers of one type and length."""
    first = values[0]
    alike = all(type(v) is np.ndarray and v.shape == first.shape and v.dtype == first.dtype for v in values)
    if alike and first.ndim == 1 and first.size and first.dtype.kind in "iuf":
        return np.stack(values)
    rows = [_row(v) for v in values]
    return [make_visible(row) for row in rows]


def _row(value: Any) -> Any:
    """One output, an array as its elements; with the type of numbers that are not of the usual one."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray) or value.ndim == 0:
        return value
    if value.dtype.names:
        return value
    named = value.dtype.kind in "iuf" and value.dtype.name != "float64"
    return Typed(value.dtype.name, value.tolist()) if named else value.tolist()


def _is_number_type(kind: type) -> bool:
    return issubclass(kind, _NUMBER) and not issubclass(kind, bool)


def _are_exact_floats(numbers: list[Any], kinds: set[type]) -> bool:
    """Whether floats hold every number exactly; if not, outputs stay a list and large integers symbols."""
    if all(issubclass(kind, float | np.floating) for kind in kinds):
        return True
    return all(not isinstance(v, int | np.integer) or abs(int(v)) <= EXACT for v in numbers)


def is_number(value: object) -> bool:
    """Whether a Python value is a number; booleans are symbols."""
    value = strip_type(value)
    return isinstance(value, _NUMBER) and not isinstance(value, bool | np.bool_)


def concatenate_batches(parts: Sequence[Batch]) -> Batch:
    """Join batches of one target.

    A target that changes its shape or type between calls gives a list.
    """
    kinds = {(p.shape[1:], p.dtype, inner_shape(p)) if isinstance(p, np.ndarray) else None for p in parts}
    if len(kinds) == 1 and None not in kinds:
        joined = np.concatenate([np.asarray(p) for p in parts])
        # Coordinate by coordinate: features of rows are read two to five times as fast, and sums of integers do not
        # depend on the order.
        joined = np.asfortranarray(joined) if joined.ndim == 2 and joined.dtype.kind in "biu" else joined
        inner = inner_shape(parts[0])
        return shape_rows(joined, inner) if inner else joined
    return [value for part in parts for value in list_outputs(part)]


def pool_outputs(x: Batch, y: Batch) -> Batch:
    """Pool the outputs of both sides.

    It shows what they have in common; types of numbers do not count.

    Parameters
    ----------
    x, y : Batch
        Outputs on the two datasets.

    Returns
    -------
    Batch
        Those of ``x``, then those of ``y``.
    """
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape[1:] == y.shape[1:]:
        return np.concatenate([x, y])
    return concatenate_batches([x, y])


def list_outputs(batch: Batch) -> list[Any]:
    """Outputs as a list of Python values, with number types."""
    if not isinstance(batch, np.ndarray):
        return batch
    name = batch.dtype.name
    if inner_shape(batch):
        return [Typed(kind_of_rows(batch), value) for value in batch.tolist()]
    if name in USUAL and not (batch.ndim == 2 and name == "int64"):
        return list(batch.tolist())
    return [Typed(name, value) for value in batch.tolist()]


def read_column(batch: Batch) -> NDArray[np.float64]:
    """Outputs as numbers, shape (n,); NaN for what is no number.

    Like `read_matrix` and `hash_outputs` it reads each output by itself: what else is in the batch, and whether the
    batch is an array or a list, changes nothing. Otherwise the draws of a chunk would fall into an event together or
    not at all.
    """
    if isinstance(batch, np.ndarray):
        return np.asarray(batch, dtype=np.float64) if batch.ndim == 1 else np.full(len(batch), np.nan)
    if set(map(type, batch)) <= _READ:
        return read_numbers(batch)
    return np.array([float_of(v) for v in batch], dtype=np.float64)


def read_matrix(batch: Batch, width: int) -> NDArray[np.float64]:
    """Outputs as rows of numbers, shape (n, width).

    A row is NaN for an output that has another form.

    Parameters
    ----------
    batch : Batch
        Outputs, n of them.
    width : int
        Numbers of a row.
    """
    if isinstance(batch, np.ndarray):
        if batch.ndim == 2 and batch.shape[1] == width:
            return np.asarray(batch, dtype=np.float64)
        return np.full((len(batch), width), np.nan)
    rows = np.full((len(batch), width), np.nan)
    for k, value in enumerate(map(strip_type, batch)):
        if isinstance(value, list | tuple) and len(value) == width and all(map(is_number, value)):
            rows[k] = [float_of(e) for e in value]
    return rows


def float_of(value: object) -> float:
    """A number as a float, else NaN.

    NaN, too, for integers larger than any float.
    """
    value = strip_type(value)
    if not isinstance(value, int | float | np.number | np.bool_) or isinstance(value, np.complexfloating):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a larger integer than any float
        return math.nan


def hash_outputs(batch: Batch) -> NDArray[np.int64]:
    """Identify each output by 64 bits: equal outputs have equal keys.

    Two different outputs share a key with probability about 2^-64. A shared key makes an event somewhat different from
    its words, and no event invalid.

    Returns
    -------
    ndarray of shape (n,), int64
    """
    if isinstance(batch, list):
        if len(batch) >= _MANY:
            found = _many_keys(batch)
            if found is not None:
                return found
        return np.array([_key_of(v) for v in batch], dtype=np.int64)
    elements = _number_keys(batch)
    return elements if elements.ndim == 1 else _row_keys(elements)


def _number_keys(values: NDArray[Any]) -> NDArray[np.int64]:
    """Keys of numbers: the bits of the float, and of the text for integers that no float equals."""
    if values.dtype.kind == "b":
        return values.astype(np.int64) ^ _BOOLEAN
    floats = values.astype(np.float64)
    if values.dtype.kind == "f":
        return (np.where(np.isnan(floats), np.nan, floats) + 0.0).view(np.int64)  # one NaN, one zero
    bits = floats.view(np.int64)
    if values.dtype.itemsize == 8 and values.size and (values.max() > EXACT or values.min() < -EXACT):
        # The integers themselves are compared: 2^53 + 1 as a float is 2^53.
        large = (values > EXACT) | (values < -EXACT)
        bits[large] = [_key_of(v) for v in values[large].tolist()]
    return bits


def _row_keys(elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys of rows, from those of their elements, and the width: a zero adds nothing else."""
    words, width = elements.view(np.uint64), elements.shape[1]
    mixed = (words ^ (words >> np.uint64(29))) * _factors(width)
    total: NDArray[np.int64] = (mixed.sum(axis=1, dtype=np.uint64) + np.uint64(width)).view(np.int64)
    return total


@lru_cache(maxsize=64)
def _factors(width: int) -> NDArray[np.uint64]:
    """Odd multipliers of a linear congruential sequence: fixed, so that keys are the same in every process."""
    factor = np.empty(width, dtype=np.uint64)
    state = 0x9E3779B97F4A7C15
    for j in range(width):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        factor[j] = state | 1
    return factor


def _many_keys(batch: list[Any]) -> NDArray[np.int64] | None:
    """Keys of scalars, or of outputs that are all built alike, as `_key_of` gives them; None for all others."""
    kinds = set(map(type, batch))
    if len(kinds - _TEXTS) <= 1 and kinds - _TEXTS <= _SCALARS:  # with two, a value may equal one of another key
        return _distinct_keys(batch)
    if kinds <= {set, frozenset}:
        kinds = set(map(type, itertools.chain.from_iterable(batch))) - _TEXTS
        return _distinct_keys(list(map(frozenset, batch))) if kinds in (set(), {int}, {bool}) else None
    columns = columns_of(batch)
    if columns is None:
        return _ragged_keys(batch)
    if columns.keys is None and columns.flat:
        if all(column.kinds <= _SCALARS for column in columns.columns):
            return _row_keys(np.column_stack([_element_keys(column.values) for column in columns.columns]))
        if not any(column.kinds.isdisjoint(_SCALARS) for column in columns.columns):
            return None  # some may be rows of numbers and others not
    template = _template(batch[0], (), columns)
    if template is None:
        return None
    text, places = template
    texts = [text % row for row in zip(*(_texts(column) for column in places), strict=True)]
    digest = {one: _digest(one) for one in dict.fromkeys(texts)}
    return np.frombuffer(b"".join([digest[one] for one in texts]), dtype="<i8").astype(np.int64)


def _distinct_keys(batch: list[Any]) -> NDArray[np.int64]:
    """Keys of outputs that have one key if they are equal, each computed once."""
    key = {value: _key_of(value) for value in dict.fromkeys(batch)}
    return np.array([key[value] for value in batch], dtype=np.int64)


def _ragged_keys(batch: list[Any]) -> NDArray[np.int64] | None:
    """Keys of rows of numbers of several lengths; None for all other outputs."""
    if not set(map(type, batch)) <= {list, tuple}:
        return None
    flat = list(itertools.chain.from_iterable(batch))
    if not set(map(type, flat)) <= _SCALARS:
        return None
    elements, found = _element_keys(flat), np.full(len(batch), _key_of([]))
    width = np.fromiter(map(len, batch), np.int64, len(batch))
    start = np.cumsum(width) - width
    for one in np.unique(width[width > 0]).tolist():
        rows = np.flatnonzero(width == one)
        found[rows] = _row_keys(elements[start[rows, None] + np.arange(one)])
    return found


def _element_keys(values: Sequence[Any]) -> NDArray[np.int64]:
    """Keys of numbers of Python and booleans."""
    kinds = set(map(type, values))
    if kinds <= {float}:
        return _number_keys(np.fromiter(values, np.float64, len(values)))
    if kinds == {bool}:
        return _number_keys(np.fromiter(values, bool, len(values)))
    if kinds == {int}:
        with contextlib.suppress(OverflowError):
            return _number_keys(np.fromiter(values, np.int64, len(values)))
    return np.array([_key_of(value) for value in values], dtype=np.int64)


def _template(value: Any, path: Path, columns: Columns) -> tuple[str, list[ElementColumn]] | None:
    """`_canonical_text` of outputs that are built like one, with a "%s" for each element, and the elements' columns.

    None where the order of a dict's items depends on its values.
    """
    column = columns.at(path)
    if column is not None:
        kind = next(iter(column.kinds)).__name__ if len(column.kinds) == 1 else ""
        return (f"{kind}:%s" if kind else "%s"), [column]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    names = {step: f"{_canonical_text(step)}:" if isinstance(value, dict) else "" for step, _ in items}
    order = sorted(names, key=lambda step: names[step]) if isinstance(value, dict) else list(names)
    if isinstance(value, dict) and any(names[b].startswith(names[a]) for a, b in itertools.pairwise(order)):
        return None
    text, places = [], []
    for step in order:
        inside = _template(value[step], (*path, step), columns)
        if inside is None:
            return None
        text.append(names[step].replace("%", "%%") + inside[0])
        places += inside[1]
    joined = ",".join(text)
    return (f"{{{joined}}}" if isinstance(value, dict) else f"[{joined}]"), places


def _texts(column: ElementColumn) -> Iterable[str]:
    """What stands for the elements of a column in a `_template`."""
    if len(column.kinds) > 1:
        return map(_canonical_text, column.values)
    if column.kinds.isdisjoint({str, bytes}):
        with contextlib.suppress(ValueError):  # an integer of more digits than Python writes
            return list(map(repr, column.values))
    return map(text_of, column.values)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=8).digest()


def _key_of(value: object) -> int:
    if type(value) is Typed and (is_number(value.value) or isinstance(value.value, list | tuple)):
        value = value.value  # equal numbers are one output, whatever their type
    if isinstance(value, bool | np.bool_):
        return int(value) ^ _BOOLEAN
    if isinstance(value, np.integer):
        value = int(value)
    if type(value) is float:
        return _NAN if value != value else int.from_bytes(struct.pack("<d", value + 0.0), "little", signed=True)
    if isinstance(value, float | np.floating) or (isinstance(value, int) and abs(value) <= EXACT):
        return int(_number_keys(np.array([value], dtype=np.float64))[0])
    if isinstance(value, list | tuple) and value and all(is_number(e) or isinstance(e, bool) for e in value):
        return int(_row_keys(np.array([[_key_of(e) for e in value]], dtype=np.int64))[0])
    try:
        text = _canonical_text(value)
    except RecursionError:
        what = "an output contains itself, or is nested too deeply to be read"
        raise TargetError(f"{what}: {show_output(value)}", public=what) from None
    return int.from_bytes(_digest(text), "little", signed=True)


def _canonical_text(value: object) -> str:
    """A text that equal values share, in every process."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{_canonical_text(k)}:{_canonical_text(v)}" for k, v in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "set{" + ",".join(sorted(map(_canonical_text, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_canonical_text, value)) + "]"
    if isinstance(value, Typed):
        return f"{value.kind}({_canonical_text(value.value)})"
    return f"{type(value).__name__}:{text_of(value)}"


def show_output(value: object) -> str:
    """Write one output in at most 60 characters."""
    if isinstance(value, np.ndarray):
        return _shorten_output(value.tolist())
    if isinstance(value, np.generic):
        return _shorten_output(value.item())
    return _shorten_output(value)


def _shorten_output(value: object) -> str:
    return shorten_text(f"{value:.6g}" if isinstance(value, float) else _write(value))


_NESTED = {dict, list, tuple, set, frozenset}


def _write(value: object, depth: int = 0) -> str:
    """The text of `repr`, but for the elements of sets, which stand in an order that all processes share."""
    if type(value) is Typed:
        return f"{value.kind}({_write(value.value, depth)})"
    if depth > DEEPEST or type(value) not in _NESTED or not value:
        return _write_whole(value)
    if type(value) is dict:
        return "{" + ", ".join(f"{_write(k, depth + 1)}: {_write(v, depth + 1)}" for k, v in value.items()) + "}"
    if type(value) is list:
        return f"[{', '.join(_write(part, depth + 1) for part in value)}]"
    if type(value) is tuple:
        return f"({', '.join(_write(part, depth + 1) for part in value)}{',' * (len(value) == 1)})"
    inside = f"{{{', '.join(sorted(_write(part, depth + 1) for part in cast(Iterable[object], value)))}}}"
    return inside if type(value) is set else f"frozenset({inside})"


def _write_whole(value: object) -> str:
    """The text of `repr` without memory addresses, also where Python writes none."""
    if isinstance(value, str | bytes):
        return repr(value)
    text = text_of(value)
    if isinstance(value, int) and text.lstrip("-").startswith("0x"):
        return f"{text[:20]}... ({value.bit_length():,} bits)"
    return text


def shorten_text(text: str) -> str:
    """At most 60 characters of a text."""
    return text if len(text) <= 60 else text[:57] + "..."
