"""What evidence is about: the specification, the sources and the versions of dependencies, as one fingerprint."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import platform
import re
import shlex
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from auditor.frames import is_frame, is_series
from auditor.guarantees import Guarantee
from auditor.neighbors import Pair
from auditor.targets import Mechanism
from auditor.targets.named import is_remote, shown

#: This engine's folder.
_HERE = Path(__file__).resolve().parents[1]
#: How deep the parts of a mechanism are looked into; arbitrary, no sensible one is deeper.
DEEPEST = 12
#: Attributes of objects that hold no parameters, but how to call them.
_UNTOLD = ("limit", "start_limit", "hello", "starts", "env")


def about(
    target: Mechanism, guarantee: Guarantee, pairs: Sequence[Pair], named: str | None, key: str, private: bool = False
) -> dict[str, str]:
    """All that evidence depends on and that must stay for evidence to add up, each as a short text.

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
    ``source`` covers the modules that hold the parts of the mechanism and every module of the project that they import,
    directly or not, as far as import statements tell; installed packages count by their versions, with all that they
    require. What is read at run time (data files, models), imported by a computed name, or behind HTTP cannot be seen:
    that is what ``key`` is for.
    """
    files = {file for part in _parts(target) for file in _file_of(part)} | set(_named_files(named))
    sources, names = closure(frozenset(files))
    found = {
        "claim": _hash(spelled(guarantee).encode()),
        "mechanism": _hash((shown(named or "") if is_remote(target) else spelled(target)).encode()),
        "data": _hash(
            *(part.encode() for pair in pairs for part in ([pair.name] if private else map(spelled, (pair.x, pair.y))))
        ),
        "source": _hash(
            *(f"{file.name}:{_content(file, file.stat().st_mtime_ns)}".encode() for file in sorted(sources))
        ),
        "versions": _hash("\n".join(versions(frozenset(names)) + _environment(target)).encode()),
        "engine": _engine(),
    }
    return {**found, "key": key} if key else found


def fingerprint(parts: Mapping[str, str]) -> str:
    """One text for what `about` says."""
    return _hash(json.dumps(dict(sorted(parts.items()))).encode())


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@cache
def _engine() -> str:
    """Hash of the code that turns bets and counts into wealth: evidence is not carried into other arithmetic."""
    files = [_HERE / "evidence" / "wealth.py", *sorted((_HERE / "guarantees").glob("*.py"))]
    return _hash(*(file.read_bytes() for file in files))


# ------------------------------------------------------------------------------------------ parameters


def spelled(value: Any, depth: int = 0) -> str:
    """Content of an object as a text that is the same in every process.

    Dataclasses by their fields; other objects by their public attributes, but for cached properties; functions by name,
    defaults and what they close over. Their code is in ``source``.
    """
    if depth > DEEPEST:
        return "…"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, np.generic):
        return f"{value.dtype.str}:{value!r}"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"array:{value.dtype.str}{value.shape}:{_hash(np.ascontiguousarray(value).tobytes())}"
    if is_frame(value) or is_series(value):
        import pandas as pd  # takes longer to import than all the rest together

        columns = list(value.columns) if is_frame(value) else [value.name]
        return f"frame:{columns!r}:{_hash(pd.util.hash_pandas_object(value).to_numpy().tobytes())}"
    name = _qualified(value if isinstance(value, type | types.FunctionType) else type(value))
    return f"{name}({', '.join(_spelled_parts(value, depth + 1))})"


def _spelled_parts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, set | frozenset):
        yield from sorted(spelled(item, depth) for item in value)
    elif isinstance(value, Mapping):
        yield from (f"{spelled(k, depth)}: {spelled(v, depth)}" for k, v in value.items())
    elif isinstance(value, list | tuple | np.ndarray):
        yield from (spelled(item, depth) for item in value)
    elif not isinstance(value, type | types.ModuleType):
        inside = dict(_inside(value))
        if inside:
            yield from (f"{name}={spelled(item, depth)}" for name, item in inside.items())
        elif not inspect.isroutine(value):
            yield re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object is made of, by name."""
    if isinstance(value, types.MethodType):
        yield from (("function", value.__func__), ("self", value.__self__))
    elif isinstance(value, functools.partial):
        yield from (("function", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, types.FunctionType):
        yield from ((f"default {k}", item) for k, item in enumerate(value.__defaults__ or ()))
        yield from sorted((value.__kwdefaults__ or {}).items())
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                yield name, cell.cell_contents
            except ValueError:  # not filled yet
                continue
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f.name, getattr(value, f.name)) for f in fields(value) if hasattr(value, f.name))
    else:
        kind = type(value)
        for name, item in sorted(getattr(value, "__dict__", {}).items()):
            cached = isinstance(inspect.getattr_static(kind, name, None), cached_property)
            if not name.startswith("_") and not cached and name not in _UNTOLD:
                yield name, item


def _qualified(kind: Any) -> str:
    # A file that is imported by its path has a module name made of the path: a checkout elsewhere is the same source.
    module = re.sub(r"^dpaudit_file_[0-9a-f]+$", "(file)", str(getattr(kind, "__module__", "")))
    return f"{module}.{getattr(kind, '__qualname__', kind)}"


# ------------------------------------------------------------------------------------------ sources


def _parts(value: Any, depth: int = 0, seen: set[int] | None = None) -> Iterator[Any]:
    """An object with all that it is made of."""
    seen = set() if seen is None else seen
    plain = isinstance(value, None | bool | int | float | str | bytes | np.ndarray | np.generic)
    if plain or is_frame(value) or depth > DEEPEST or id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, Mapping):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = list(value)
    else:
        inside = [] if isinstance(value, type | types.ModuleType) else [item for _, item in _inside(value)]
    for item in inside:
        yield from _parts(item, depth + 1, seen)


def _file_of(part: Any) -> Iterator[Path]:
    """Source files of the project that define an object, or its class and the classes that this inherits from."""
    kinds = [part] if inspect.isroutine(part) else list((part if isinstance(part, type) else type(part)).__mro__)
    for kind in kinds:
        module = sys.modules.get(str(getattr(kind, "__module__", "")))
        yield from _own([getattr(module, "__file__", None)])


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
    """Files of the project that some files import, directly or not, themselves included; and names of what is not its.

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
    """Module that defines a name which a facade of this engine hands out."""
    if module.partition(".")[0] != "auditor":
        return []
    return list(filter(None, [str(getattr(getattr(sys.modules.get(module), name, None), "__module__", ""))]))


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
    """Versions of Python, of this engine, and of the distributions that hold some modules, with what those require."""
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
