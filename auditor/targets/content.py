"""Content of an object as text that is the same in every process."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import os
import random
import re
import struct
import threading
import types
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from auditor.datasets.pandas_types import is_frame, is_index, is_series
from auditor.errors import SpecificationError
from auditor.targets.http import HttpTarget
from auditor.targets.process import ProcessTarget
from auditor.targets.sources import hash_parts

#: How deep the parts of a mechanism are looked into; arbitrary, no sensible one is deeper.
DEEPEST = 12


def spell_out(value: Any, name: str = "it", key: str = "") -> str:
    """Content of an object as the same text in every process.

    Parameters
    ----------
    value : object
        Of any class.
    name : str
        What it is called in an error.
    key : str
        What the user watches in its place; with one, what cannot be seen counts by its class.

    Raises
    ------
    SpecificationError
        If it holds an object whose content cannot be seen, and no key is given.

    Notes
    -----
    Objects count by all their attributes, private ones and slots of all their classes too, and those that are not made
    in Python by what they would be pickled as; functions by name, defaults, attributes and what they close over. Their
    code is in ``source``. Left out, by type alone, is what no draw depends on: values of cached properties, which are
    functions of the other attributes, what ``lru_cache`` remembers, locks, loggers (but for their names), and how a
    process is called (`_MACHINERY`). Random generators are asked a key for though their state can be seen: one that is
    not seeded is another one every night, and one that is seeded draws the same every night.
    """
    return _Spelling(key).of(value, name)


class _Spelling:
    """One text: what it has spelled out, and where it is."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._known: dict[int, tuple[Any, str]] = {}  # holds the objects, so that no other one gets their ids
        self._above: list[int] = []

    def of(self, value: Any, where: str) -> str:
        """Text of an object that is called ``where``."""
        plain = _plain_text(value)
        if plain is not None:
            return plain
        if id(value) in self._above:
            return f"<{len(self._above) - self._above.index(id(value))} up>"
        if id(value) not in self._known:
            self._above.append(id(value))
            self._known[id(value)] = value, self._describe_object(value, where)
            self._above.pop()
        return self._known[id(value)][1]

    def _describe_object(self, value: Any, where: str) -> str:
        name = _qualified_name(value if isinstance(value, type | types.FunctionType) else type(value))
        if len(self._above) > DEEPEST:
            return self._note_unseen(where, name, f"is {DEEPEST} levels down")
        if isinstance(value, set | frozenset) and type(value) in (set, frozenset):
            return f"{name}({', '.join(sorted(self.of(item, where) for item in value))})"
        if value is np.random.mtrand._rand or value is getattr(random, "_inst", None):
            return f"{name} of the process"  # which functions of numpy.random and random draw from
        if isinstance(value, _GENERATORS):
            return self._note_unseen(
                where, name, "draws random numbers of its own, the same ones every night if it is seeded"
            )
        try:
            inside = list(_members_of(value))
        except Exception as error:  # noqa: BLE001 - whatever its class does when it is asked for its state
            return self._note_unseen(where, name, f"does not show its state ({type(error).__name__})")
        return f"{name}({', '.join(f'{part}={self.of(item, _member_path(where, part))}' for part, item in inside)})"

    def _note_unseen(self, where: str, name: str, why: str) -> str:
        if not self._key:
            raise SpecificationError(
                f"evidence cannot be carried from run to run: {where}, of class {name}, {why}, so that a change of it "
                "would not be seen. Give a key (--ledger-key TEXT) that changes whenever it does"
            )
        return f"unseen {name}"


def _member_path(where: str, part: str) -> str:
    return f"{where}.{part}" if part.isidentifier() else f"{where}[{part}]"


#: Random generators: their state is another one every night, or the same every night.
_GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)
#: Attributes that hold no parameters, but how to call a process or service and what is known of the running one.
_MACHINERY: Mapping[type, frozenset[str]] = {
    ProcessTarget: frozenset(
        ["limit", "start_limit", "hello", "starts", "env", "_running", "_finalizer", "_numbers", "_fruitless"]
    ),
    HttpTarget: frozenset(["limit", "hello", "_headers", "_service", "_id"]),
}
#: Classes of locks: they are held or not, and nothing else.
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def _plain_text(value: Any) -> str | None:
    """Text of a value that holds no other ones."""
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return repr(value)
    if isinstance(value, np.generic) and not isinstance(value, np.void):
        return f"{value.dtype.str}:{value!r}"
    if kind is np.ndarray and not value.dtype.hasobject:
        layout = value.dtype.str if value.dtype.names is None else repr(value.dtype.descr)
        return f"array:{layout}{value.shape}:{hash_parts(np.ascontiguousarray(value).tobytes())}"
    if is_frame(value) or is_series(value) or is_index(value):
        import pandas as pd  # takes longer to import than all the rest together

        names = [value.name] if is_series(value) else value.columns if is_frame(value) else value.names
        return f"frame:{list(names)!r}:{hash_parts(pd.util.hash_pandas_object(value).to_numpy().tobytes())}"
    if kind in _LOCKS or isinstance(value, type | types.ModuleType):
        return _qualified_name(value if isinstance(value, type) else kind) + f"({getattr(value, '__name__', '')})"
    return f"logger:{value.name}" if isinstance(value, logging.Logger) else None


def _members_of(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object is made of, by name; raises what its class raises if it does not show that."""
    kind = type(value)
    if kind is dict or kind is types.MappingProxyType:
        for k, (name, item) in enumerate(value.items()):
            if isinstance(name, str):
                yield repr(name), item
            else:
                yield from ((f"key {k}", name), (f"value {k}", item))
    elif kind in (list, tuple, set, frozenset, np.ndarray):
        yield from ((str(k), item) for k, item in enumerate(value))
    elif isinstance(value, types.MethodType):
        yield from (("function", value.__func__), ("self", value.__self__))
    elif isinstance(value, functools.partial):
        yield from (("function", value.func), ("args", value.args), ("keywords", value.keywords))
        yield from sorted(vars(value).items())
    elif isinstance(value, types.FunctionType):
        yield from ((f"default {k}", item) for k, item in enumerate(value.__defaults__ or ()))
        yield from sorted((value.__kwdefaults__ or {}).items())
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                yield name, cell.cell_contents
            except ValueError:  # not filled yet
                continue
        yield from sorted(vars(value).items())
    elif isinstance(value, functools._lru_cache_wrapper):
        yield "function", value.__wrapped__
    elif inspect.isroutine(value):  # of a module, or bound to an object
        yield "name", getattr(value, "__name__", "")
        yield "self", getattr(value, "__self__", None)
    else:
        left_out = frozenset[str]().union(*(names for made, names in _MACHINERY.items() if isinstance(value, made)))
        yield from ((name, item) for name, item in _attributes(value) if name not in left_out)
        if isinstance(value, ProcessTarget):  # of the environment what is its own
            yield "env", dict(sorted(set((value.env or {}).items()) - set(os.environ.items())))
        if not _made_in_python(kind):
            yield from _reduced_members(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Attributes of an object, private ones and slots of all its classes too, but for values of cached properties."""
    kind = type(value)
    for name, item in sorted(getattr(value, "__dict__", {}).items()):
        if not isinstance(inspect.getattr_static(kind, name, None), cached_property):
            yield name, item
    for made in kind.__mro__:
        for name, slot in sorted(vars(made).items()):
            if isinstance(slot, types.MemberDescriptorType) and made.__flags__ & _HEAP:
                try:
                    yield f"{made.__name__}.{name}", slot.__get__(value)
                except AttributeError:  # not set
                    continue


#: Of classes that are made at run time, by statements of Python above all (Py_TPFLAGS_HEAPTYPE).
_HEAP = 1 << 9


def _made_in_python(kind: type) -> bool:
    """Whether objects of a class hold nothing but attributes and slots: all its classes are made in Python."""
    word = struct.calcsize("P")
    for made in kind.__mro__[:-1]:
        slots = sum(
            isinstance(slot, types.MemberDescriptorType) for base in made.__mro__ for slot in vars(base).values()
        )
        declared = made.__dictoffset__ != 0 or "__slots__" in vars(made)
        # Beside its slots an object has a dictionary and weak references at most.
        if not (
            made.__flags__ & _HEAP and declared and made.__basicsize__ <= object.__basicsize__ + (slots + 2) * word
        ):
            return False
    return kind is not object


def _reduced_members(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object would be made of again, for classes that are not made in Python."""
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        yield "name", reduced
        return
    maker, args, *rest = reduced
    state, items, entries = (*rest, None, None, None)[:3]
    yield from (("made by", _qualified_name(maker)), ("from", args), ("state", state))
    yield from (("items", list(items or ())), ("entries", list(entries or ())))


def _qualified_name(kind: Any) -> str:
    # A file that is imported by its path has a module name made of the path: a checkout elsewhere is the same source.
    module = re.sub(r"^dpaudit_file_[0-9a-f]+$", "(file)", str(getattr(kind, "__module__", "")))
    return f"{module}.{getattr(kind, '__qualname__', kind)}"


def walk_parts(value: Any, depth: int = 0, seen: dict[int, Any] | None = None) -> Iterator[Any]:
    """An object with all that it is made of.

    Parameters
    ----------
    value : object
        Of any class.
    depth : int
        How deep it lies; beyond `DEEPEST` nothing is looked into.
    seen : dict, optional
        Objects that were looked at, by id; default none.
    """
    seen = {} if seen is None else seen
    if depth > DEEPEST or id(value) in seen:
        return
    seen[id(value)] = value  # held, so that no other object gets its id
    if isinstance(value, type | types.ModuleType):
        yield value
    elif _plain_text(value) is None:
        yield value
        with contextlib.suppress(Exception):  # what does not show its state is told by `spell_out`
            for _, item in _members_of(value):
                yield from walk_parts(item, depth + 1, seen)
