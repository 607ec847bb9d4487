"""Python values as plain data, with the names of types that are not plain."""

from __future__ import annotations

import copy
import enum
import inspect
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.errors import TargetError
from auditor.targets.helper import (
    TEXT,
    find_content,
    find_elements,
    find_parts_or_text,
    find_table,
    list_plain_elements,
    name_numbers,
)
from auditor.targets.helper import text_of as text_of

#: Containers nested deeper than this are one symbol; arbitrary, ends the reading of objects that hold themselves.
DEEPEST = 4
#: Types that are plain as they are, and the containers of plain values.
PLAIN = frozenset({float, int, str, bool, bytes, type(None), np.float64, np.int64, np.bool_})
_CONTAINERS = (list, tuple, dict)
#: Names of types of numpy that plain Python numbers have too.
USUAL = {"float64": "float", "int64": "int", "bool": "bool"}


@dataclass(frozen=True)
class Raised:
    """Output of a draw that raised: the exception's class.

    An observer is taken to see nothing else.

    Parameters
    ----------
    error : str
        Name of the class.
    message : str
        What the exception said and where it was raised, for people; it is no part of the output.
    place : str
        Where it was raised alone, which holds no data.
    """

    error: str
    message: str = field(default="", compare=False, repr=False)
    place: str = field(default="", compare=False, repr=False)

    def __repr__(self) -> str:
        return f"raised {self.error}"


@dataclass(frozen=True)
class Typed:
    """A value with the name of its type.

    It is used where the type is more than the value shows.

    Parameters
    ----------
    kind : str
        Name of the type, such as "float32" or "package.Class".
    value : object
        The value as plain Python data.
    """

    kind: str
    value: Any

    def __repr__(self) -> str:
        return f"{self.kind}({self.value!r})"


#: Types that have no more than what is read of them.
_READ = (int, float, str, bytes, type(None), np.generic, np.ndarray, set, frozenset, type, Raised)


def strip_type(value: Any) -> Any:
    """The value of a `Typed`, any other value itself."""
    return value.value if type(value) is Typed else value


def kind_of(value: object) -> str:
    """Name of a value's type, as events tell them apart.

    Lists, tuples and rows of an array are all sequences, and a float or integer of numpy with 64 bits is one of
    Python's, because a batch may hold either.
    """
    kind = type(value)
    if kind is Raised:
        return repr(value)
    if kind is Typed:
        return value.kind  # type: ignore[attr-defined,no-any-return]
    if value is None:
        return "None"
    if isinstance(value, np.generic):
        return USUAL.get(value.dtype.name, value.dtype.name)
    if isinstance(value, np.ndarray):
        return "sequence" if value.dtype.name == "float64" else value.dtype.name
    if isinstance(value, list | tuple):
        return "sequence"
    if isinstance(value, set | frozenset):
        return "set"
    return kind.__qualname__


def make_visible(value: Any, depth: int = 0) -> Any:
    """One output as plain data.

    Objects have the names of their types and their public attributes.

    Parameters
    ----------
    value : object
        What a target returned for one draw.
    depth : int
        Containers around it.

    Returns
    -------
    object
        The value itself where it is plain: numbers, texts, bytes, None, and lists, tuples, dicts and sets of them.
        `Typed` for numbers and arrays of other types of numpy, other numbers, times, tables, dataclasses and other
        objects: the name of the type with a plain value, or with parts by name, such as the numerator of a fraction or
        the attributes of an object, with its content if it has both. What has none of these has its text. Containers
        below `DEEPEST` are not looked into.

    Raises
    ------
    TargetError
        If it holds an iterator or a coroutine.
    """
    kind = type(value)
    if kind in PLAIN or depth > DEEPEST:
        return value
    if kind in _CONTAINERS:
        return _visible_container(value, depth)
    content = find_content(value)
    if content is not None:
        return Typed(_name(kind), make_visible(content, depth + 1))
    if isinstance(value, np.ndarray | np.generic):
        return _of_numpy(value, depth)
    if isinstance(value, (Raised | Typed | set | frozenset, type)) or inspect.isbuiltin(value):
        return value
    if isinstance(value, enum.Enum):
        return Typed(kind.__qualname__, value.name)
    if isinstance(value, list | tuple | dict):  # a class made from one of these
        plain = dict(value) if isinstance(value, dict) else list(value)
        seen = _visible_container(plain, depth)
        return value if seen is plain else Typed(kind.__qualname__, seen)
    if isinstance(value, str | bytes | int | float):
        return value
    if (kind.__module__ or "").partition(".")[0] == "pandas":
        seen = find_table(value)
        if seen is not None:
            return Typed(f"pandas.{kind.__qualname__}", make_visible(seen, depth + 1))
    elements = find_elements(value)
    if elements is not None:
        return Typed(elements[0], strip_type(make_visible(elements[1], depth)))
    try:
        parts = find_parts_or_text(value)
    except TypeError as error:
        raise TargetError(str(error)) from error
    return Typed(_name(kind), make_visible(parts, depth + 1))


def keep_value(value: Any) -> Any:
    """Copy what a target may change of an output.

    A function may fill one list for all draws, or return an object that it changes.

    Parameters
    ----------
    value : object
        What a target returned for one draw.

    Returns
    -------
    object
        The same as plain data where it is an object of another kind than numbers, texts, containers and arrays, see
        `make_visible`; otherwise a copy, or the value itself if nothing can change it.

    Raises
    ------
    TargetError
        As `make_visible`.
    """
    return _copy_unless_endless(value, False)


def _copy_unless_endless(value: Any, is_visible: bool) -> Any:
    try:
        return _copy_parts(value, is_visible)
    except RecursionError:  # a container that holds itself is refused where it is read
        return value


def _copy_parts(value: Any, is_visible: bool) -> Any:
    """Copy a value and its parts; objects in one that is visible are what cannot be read."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is dict:
        plain = PLAIN.issuperset(map(type, value.values()))
        return value.copy() if plain else {key: _copy_parts(part, is_visible) for key, part in value.items()}
    if kind is list:
        return value.copy() if PLAIN.issuperset(map(type, value)) else [_copy_parts(part, is_visible) for part in value]
    if kind is tuple:
        return value if PLAIN.issuperset(map(type, value)) else tuple([_copy_parts(part, is_visible) for part in value])
    if kind is Typed:
        return Typed(value.kind, _copy_parts(value.value, is_visible))
    if isinstance(value, np.generic) and not isinstance(value, np.void):  # nothing can change these
        return value
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        try:
            return copy.deepcopy(value)
        except Exception:  # noqa: BLE001 - a class of the target's own that cannot be copied is what it is
            return value
    seen = value if is_visible else make_visible(value)
    return value if seen is value else _copy_parts(seen, is_visible)


def keep_values(values: list[Any]) -> list[Any]:
    """Copy what a target may change of outputs.

    Parameters
    ----------
    values : list
        Outputs that `make_visible` has brought to plain data.
    """
    kinds = set(map(type, values))
    if kinds <= PLAIN:
        return values
    # Four times as fast.
    if kinds == {dict} and PLAIN.issuperset(map(type, itertools.chain.from_iterable(map(dict.values, values)))):
        return list(map(dict.copy, values))
    return [value if type(value) in PLAIN else _copy_unless_endless(value, True) for value in values]


def find_unreadable(outputs: Iterable[Any]) -> list[str]:
    """Find what is told apart by its text alone.

    Parameters
    ----------
    outputs : iterable
        Outputs that `make_visible` has brought to plain data.

    Returns
    -------
    list of str
        Classes of objects without anything that can be read, and containers too deep inside of others; sorted.
    """
    found: set[str] = set()
    for output in outputs:
        _collect_unreadable(output, 0, found)
    return sorted(found)


def _collect_unreadable(value: Any, depth: int, found: set[str]) -> None:
    if type(value) is Typed and type(value.value) is dict and value.value.keys() == {TEXT}:
        found.add(f"objects of class {value.kind.rpartition('.')[2]}")
        return
    value = strip_type(value)
    if isinstance(value, list | tuple | dict):
        if depth >= DEEPEST:
            found.add(f"containers inside of {DEEPEST} or more others")
            return
        for part in value.values() if isinstance(value, dict) else value:
            if type(part) not in PLAIN:
                _collect_unreadable(part, depth + 1, found)
    elif not isinstance(value, _READ) and not inspect.isbuiltin(value):
        found.add(f"objects of class {type(value).__qualname__}")


def numbers_in(output: Any) -> NDArray[np.float64]:
    """All numbers of an output in order, as a vector.

    Texts and truth values are left out.

    Parameters
    ----------
    output : object
        What a target returned for one draw.
    """
    found: list[Any] = []
    _collect_numbers(make_visible(output), found)
    return np.concatenate(found) if found else np.zeros(0)


def _collect_numbers(value: Any, found: list[Any]) -> None:
    value = strip_type(value)
    if isinstance(value, bool | str | bytes) or value is None:
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple) and not all(type(element) in (int, float) for element in value):
        for element in value:
            _collect_numbers(element, found)
        return
    if not isinstance(value, list | tuple | int | float | np.number | np.ndarray):
        return
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return
    if array.dtype.kind in "iuf":
        found.append(array.astype(np.float64).ravel())


def _visible_container(value: Any, depth: int) -> Any:
    """A container of visible values; the same object where nothing in it changes."""
    parts = list(value.values()) if isinstance(value, dict) else value
    if PLAIN.issuperset(map(type, parts)):
        return value
    changed = [make_visible(part, depth + 1) for part in parts]
    if all(new is old for new, old in zip(changed, parts, strict=True)):
        return value
    return dict(zip(value, changed, strict=True)) if isinstance(value, dict) else type(value)(changed)


def _of_numpy(value: Any, depth: int) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        return Typed("numpy.ma.MaskedArray", {"data": value.data.tolist(), "mask": np.ma.getmaskarray(value).tolist()})
    name = name_numbers(value.dtype)
    if isinstance(value, np.generic):
        if isinstance(value, np.void):  # a row of fields, or bytes
            return Typed(name, list_plain_elements(value))
        if name in USUAL or value.dtype.kind not in "biufcmM":
            return value
        return Typed(name, value.item() if value.dtype.kind in "biuf" else list_plain_elements(value))
    if value.ndim == 0:
        return make_visible(value[()], depth)
    listed = value.tolist() if value.dtype.kind in "biuf" else list_plain_elements(value)
    if value.dtype.kind in "biufcmM":
        return listed if name in USUAL else Typed(name, listed)
    seen = make_visible(listed, depth)
    return Typed(name, seen) if value.dtype.names else seen


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
