"""Fingerprint of a claim: its specification, its sources and the versions of its dependencies."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib
import inspect
import json
import logging
import os
import platform
import random
import re
import shlex
import struct
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from auditor.datasets import Pair
from auditor.datasets.pandas_types import is_frame, is_index, is_series
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee
from auditor.targets import Mechanism
from auditor.targets.http import HttpTarget
from auditor.targets.process import ProcessTarget
from auditor.targets.target_names import is_remote, shown

#: This engine's folder.
_HERE = Path(__file__).resolve().parents[2]
#: How deep the parts of a mechanism are looked into; arbitrary, no sensible one is deeper.
DEEPEST = 12


def about(
    target: Mechanism, guarantee: Guarantee, pairs: Sequence[Pair], named: str | None, key: str, private: bool = False
) -> dict[str, str]:
    """All that must stay for evidence to add up.

    Each is a short text.

    Parameters
    ----------
    target : Mechanism
        What is audited.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        Datasets.
    named : str or None
        Name of the target on the command line: of ``exec:`` the files that it names are looked at.
    key : str
        Whatever else the user wants to be watched.
    private : bool
        The datasets are not to be shown, nor hashes by which a guess of them could be confirmed: only the names of the
        pairs count. (It bears on power only, as the claim is about all neighbours.)

    Returns
    -------
    dict of str to str
        ``claim``, ``mechanism`` (its class and parameters), ``data``, ``source``, ``versions``, ``engine``, and ``key``
        if one is given.

    Notes
    -----
    ``mechanism`` is the content of the target with all its attributes, see `spelled`. ``source`` covers the modules
    that hold the parts of the mechanism, wherever they are, and every module of the project that they import, directly
    or not, as far as import statements tell; installed packages count by their versions, with all that they require.
    What is read at run time (data files, models), imported by a computed name, set on a class or a module by other code
    than its own, or behind HTTP cannot be seen: that is what ``key`` is for.

    Raises
    ------
    SpecificationError
        If the target, the claim or the data hold an object whose content cannot be seen, and no key is given.
    """
    parts = list(_parts(target))
    files = {file for part in parts for file in _file_of(part)} | set(_named_files(named))
    sources, names = closure(frozenset(files))
    names |= {_module(kind).partition(".")[0] for part in parts for kind in _kinds(part)}
    found = {
        "claim": _hash(spelled(guarantee, "the claim", key).encode()),
        "mechanism": _hash(
            (_remote(named) if named and is_remote(target) else spelled(target, "the target", key)).encode()
        ),
        "data": _hash(*(text.encode() for pair in pairs for text in _data(pair, key, private))),
        "source": _hash(
            *(f"{file.name}:{_content(file, file.stat().st_mtime_ns)}".encode() for file in sorted(sources))
        ),
        "versions": _hash("\n".join(versions(frozenset(names)) + _environment(target)).encode()),
        "engine": _engine(),
    }
    return {**found, "key": key} if key else found


def _remote(named: str) -> str:
    """Name of a process or service, without who may use it."""
    return f"{shown(named)} {urlsplit(named).query}" if named.lower().startswith("http") else shown(named)


def _data(pair: Pair, key: str, private: bool) -> list[str]:
    if private:
        return [pair.name]
    return [
        spelled(data, f"dataset {side} of the pair {pair.name!r}", key) for side, data in (("x", pair.x), ("y", pair.y))
    ]


def fingerprint(parts: Mapping[str, str]) -> str:
    """One text for the content of `about`."""
    return _hash(json.dumps(dict(sorted(parts.items()))).encode())


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@cache
def _engine() -> str:
    """Hash of the code that turns bets and counts into wealth: evidence is not carried into other arithmetic."""
    files = [_HERE / "evidence" / "two_sample_bet.py", *sorted((_HERE / "privacy" / "guarantees").glob("*.py"))]
    return _hash(*(file.read_bytes() for file in files))


# ------------------------------------------------------------------------------------------ parameters


def spelled(value: Any, name: str = "it", key: str = "") -> str:
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
        plain = _plain(value)
        if plain is not None:
            return plain
        if id(value) in self._above:
            return f"<{len(self._above) - self._above.index(id(value))} up>"
        if id(value) not in self._known:
            self._above.append(id(value))
            self._known[id(value)] = value, self._composed(value, where)
            self._above.pop()
        return self._known[id(value)][1]

    def _composed(self, value: Any, where: str) -> str:
        name = _qualified(value if isinstance(value, type | types.FunctionType) else type(value))
        if len(self._above) > DEEPEST:
            return self._unseen(where, name, f"is {DEEPEST} levels down")
        if isinstance(value, set | frozenset) and type(value) in (set, frozenset):
            return f"{name}({', '.join(sorted(self.of(item, where) for item in value))})"
        if value is np.random.mtrand._rand or value is getattr(random, "_inst", None):
            return f"{name} of the process"  # which functions of numpy.random and random draw from
        if isinstance(value, _GENERATORS):
            return self._unseen(
                where, name, "draws random numbers of its own, the same ones every night if it is seeded"
            )
        try:
            inside = list(_inside(value))
        except Exception as error:  # noqa: BLE001 - whatever its class does when it is asked for its state
            return self._unseen(where, name, f"does not show its state ({type(error).__name__})")
        return f"{name}({', '.join(f'{part}={self.of(item, _called(where, part))}' for part, item in inside)})"

    def _unseen(self, where: str, name: str, why: str) -> str:
        if not self._key:
            raise SpecificationError(
                f"evidence cannot be carried from run to run: {where}, of class {name}, {why}, so that a change of it "
                "would not be seen. Give a key (--ledger-key TEXT) that changes whenever it does"
            )
        return f"unseen {name}"


def _called(where: str, part: str) -> str:
    return f"{where}.{part}" if part.isidentifier() else f"{where}[{part}]"


#: What draws random numbers by a state of its own.
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


def _plain(value: Any) -> str | None:
    """Text of a value that holds no other ones."""
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return repr(value)
    if isinstance(value, np.generic) and not isinstance(value, np.void):
        return f"{value.dtype.str}:{value!r}"
    if kind is np.ndarray and not value.dtype.hasobject:
        layout = value.dtype.str if value.dtype.names is None else repr(value.dtype.descr)
        return f"array:{layout}{value.shape}:{_hash(np.ascontiguousarray(value).tobytes())}"
    if is_frame(value) or is_series(value) or is_index(value):
        import pandas as pd  # takes longer to import than all the rest together

        names = [value.name] if is_series(value) else value.columns if is_frame(value) else value.names
        return f"frame:{list(names)!r}:{_hash(pd.util.hash_pandas_object(value).to_numpy().tobytes())}"
    if kind in _LOCKS or isinstance(value, type | types.ModuleType):
        return _qualified(value if isinstance(value, type) else kind) + f"({getattr(value, '__name__', '')})"
    return f"logger:{value.name}" if isinstance(value, logging.Logger) else None


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
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
            yield from _pickled(value)


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


def _pickled(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object would be made of again, for classes that are not made in Python."""
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        yield "name", reduced
        return
    maker, args, *rest = reduced
    state, items, entries = (*rest, None, None, None)[:3]
    yield from (("made by", _qualified(maker)), ("from", args), ("state", state))
    yield from (("items", list(items or ())), ("entries", list(entries or ())))


def _qualified(kind: Any) -> str:
    # A file that is imported by its path has a module name made of the path: a checkout elsewhere is the same source.
    module = re.sub(r"^dpaudit_file_[0-9a-f]+$", "(file)", str(getattr(kind, "__module__", "")))
    return f"{module}.{getattr(kind, '__qualname__', kind)}"


# ------------------------------------------------------------------------------------------ sources


def _parts(value: Any, depth: int = 0, seen: dict[int, Any] | None = None) -> Iterator[Any]:
    """An object with all that it is made of."""
    seen = {} if seen is None else seen
    if depth > DEEPEST or id(value) in seen:
        return
    seen[id(value)] = value  # held, so that no other object gets its id
    if isinstance(value, type | types.ModuleType):
        yield value
    elif _plain(value) is None:
        yield value
        with contextlib.suppress(Exception):  # what does not show its state is told by `spelled`
            for _, item in _inside(value):
                yield from _parts(item, depth + 1, seen)


def _kinds(part: Any) -> Sequence[Any]:
    """A function, a module, or a class with those that it inherits from: what has a source."""
    if inspect.isroutine(part) or isinstance(part, types.ModuleType):
        return [part]
    return (part if isinstance(part, type) else type(part)).__mro__


def _module(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, types.ModuleType) else str(getattr(kind, "__module__", ""))


def _file_of(part: Any) -> Iterator[Path]:
    """Source files of the project that define an object, or its class and the classes that this inherits from."""
    for kind in _kinds(part):
        yield from _own([getattr(sys.modules.get(_module(kind)), "__file__", None)])


def _own(names: Sequence[str | None]) -> Iterator[Path]:
    for name in names:
        if name is not None and name.endswith(".py"):
            path = Path(name).resolve()
            if path.is_file() and not _installed(path):
                yield path


@cache
def _places() -> tuple[Path, ...]:
    names = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(Path(name).resolve() for name in names if name)


def _installed(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _places()) or "site-packages" in path.parts


def _named_files(named: str | None) -> Iterator[Path]:
    """Python files, and others, that the name of a target names."""
    scheme, _, rest = (named or "").partition(":")
    if scheme.lower() not in ("exec", "pip"):
        return
    try:
        words = shlex.split(rest)
    except ValueError:
        return
    for word in words:
        path = Path(word.rpartition("#")[2].rpartition(":")[0] if scheme.lower() == "pip" else word)
        try:
            if path.is_file() and not _installed(path.resolve()):
                yield path.resolve()
        except OSError:  # a word too long for a name
            continue


@cache
def closure(files: frozenset[Path]) -> tuple[frozenset[Path], frozenset[str]]:
    """Project files that some files import, directly or not.

    They are among them; and names of modules outside of the project.

    Read from the import statements; modules are looked for from the root of the package of the file that imports them,
    in the present folder, and where Python looks, but for installed packages. Of this engine, where it is no installed
    package either, those modules are taken that others import, and not what they import in turn: otherwise every change
    of the engine would be one of every mechanism.
    """
    found: set[Path] = set()
    others: set[str] = set()
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        if file.suffix == ".py" and (file in files or not file.is_relative_to(_HERE)):
            inside, outside = _followed(file)
            waiting += inside
            others |= outside
    return frozenset(found), frozenset(others)


@cache
def _followed(file: Path) -> tuple[frozenset[Path], frozenset[str]]:
    """Files of the project that one file imports, and names of what is not its."""
    files: set[Path] = set()
    others: set[str] = set()
    for name in _imports(file):
        inside = [path for path in _modules(name, file) if not _installed(path)]
        files.update(inside)
        if not inside:
            others.add(name.partition(".")[0])
    return frozenset(files), frozenset(others)


@cache
def _content(file: Path, _changed: int) -> str:
    """Hash of a file, read once as long as it does not change."""
    return _hash(file.read_bytes())


@cache
def _imports(file: Path) -> tuple[str, ...]:
    """Full names that a file imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    package = _package(file)[1]
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package[: len(package) - (node.level - 1)]
                base = ".".join([*parents, *([base] if base else [])])
            for alias in node.names:
                names.append(f"{base}.{alias.name}" if base else alias.name)
                names += _exported(base, alias.name)
    return tuple(dict.fromkeys(filter(None, names)))


def _exported(module: str, name: str) -> list[str]:
    """Module that defines a name which a facade of this engine hands out, whether or not the facade is loaded."""
    if module.partition(".")[0] != "auditor":
        return []
    try:
        facade = importlib.import_module(module)
    except ImportError:
        return []
    return list(filter(None, [str(getattr(getattr(facade, name, None), "__module__", ""))]))


def _package(file: Path) -> tuple[Path, list[str]]:
    """Folder from which a file's package is imported, and the names of that package."""
    folder = file.parent
    names: list[str] = []
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, names


def _modules(name: str, file: Path) -> list[Path]:
    """Files of a module, with the packages that it lies in; of the longest part of the name that is one."""
    parts = name.split(".")
    for root in dict.fromkeys(
        [_package(file)[0], file.parent, Path.cwd(), *(Path(place or ".") for place in sys.path)]
    ):
        paths: list[Path] = []
        for depth in range(1, len(parts) + 1):
            place = root.joinpath(*parts[:depth])
            if (place / "__init__.py").is_file():
                paths.append((place / "__init__.py").resolve())
            elif place.with_suffix(".py").is_file():
                paths.append(place.with_suffix(".py").resolve())
            elif not place.is_dir():
                break
        if paths:
            return paths
    return []


# ------------------------------------------------------------------------------------------ versions


@cache
def versions(names: frozenset[str]) -> list[str]:
    """Versions of Python, the engine, and modules' distributions.

    With what those require.
    """
    where = _distributions()
    waiting = [d for name in names for d in where.get(name, [])] + ["dpaudit", "numpy", "scipy"]
    found: dict[str, str] = {}
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed
        found[name] = distribution.version
        for requirement in distribution.requires or []:
            if "extra ==" not in requirement:
                waiting.append(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])
    return [f"python {platform.python_version()}", *(f"{name} {found[name]}" for name in sorted(found))]


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _environment(target: Mechanism) -> list[str]:
    """Versions in the environment of a target that has one of its own."""
    from auditor.targets.environments import environment_of, installed

    folder = environment_of(target)
    return [] if folder is None else [json.dumps(installed(folder), sort_keys=True)]
