"""Sources: text of functions and classes, hashes of files, what files import, and versions of libraries."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import linecache
import platform
import re
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

#: This engine's folder.
ENGINE = Path(__file__).resolve().parents[1]

# ------------------------------------------------------------------------------------------ hashes


def hash_bytes(content: bytes) -> str:
    """Hash of bytes, 16 digits long.

    64 bits, arbitrary: enough to tell versions of a file apart, and short in a record.
    """
    return hashlib.sha256(content).hexdigest()[:16]


def hash_parts(*parts: bytes) -> str:
    """Hash of parts in their order, with the places where they end."""
    return hash_bytes(b"".join(hashlib.sha256(part).digest() for part in parts))


def hash_files(files: Iterable[Path]) -> str:
    """Hash of the contents of files.

    Sorted by content: on other machines folders lie elsewhere, and the order of paths is another.
    """
    return hash_bytes(b"".join(sorted(hashlib.sha256(file.read_bytes()).digest() for file in files)))


# ------------------------------------------------------------------------------------------ text


def source_text(subject: Any) -> tuple[str, int]:
    """Source of a function or class, and its first line.

    Decorators are part of it, as for `inspect`.

    Raises
    ------
    OSError, TypeError
        If there is none, or its file has changed and can no longer be parsed.
    """
    # To find a class `inspect` parses its whole file, each time; many classes of one file are asked for.
    file = inspect.getsourcefile(subject) if inspect.isclass(subject) else None
    place = _classes(file).get(subject.__qualname__) if file else None
    if file is None or place is None:
        try:
            lines, first = inspect.getsourcelines(subject)
        except (SyntaxError, tokenize.TokenError) as error:  # which of them depends on the version of Python
            raise OSError(f"no source of {subject!r}: its file can no longer be parsed ({error})") from error
        return "".join(lines), first
    first, last = place
    return "".join(linecache.getlines(file)[first - 1 : last]), first


@lru_cache(maxsize=1024)
def _classes(file: str) -> Mapping[str, tuple[int, int]]:
    """First and last line of each class of a file, by qualified name; the first one of a name."""
    linecache.checkcache(file)
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # the file has changed
        return {}
    found: dict[str, tuple[int, int]] = {}
    for name, node in _classes_within(tree, ""):
        first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
        found.setdefault(name, (first, node.end_lineno or first))
    return found


def _classes_within(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Classes inside of a node, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            inner = f"{prefix}{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{node.name}.<locals>."
        yield from _classes_within(node, inner)


# ------------------------------------------------------------------------------------------ files


def project_files(names: Iterable[str | None]) -> Iterator[Path]:
    """Python files among names that belong to no installed package."""
    for name in names:
        if name is not None and name.endswith(".py"):
            path = Path(name).resolve()
            if path.is_file() and not is_installed(path):
                yield path


def is_installed(path: Path) -> bool:
    """Whether a file is of the standard library or an installed package."""
    return any(path.is_relative_to(place) for place in _library_folders()) or "site-packages" in path.parts


@cache
def _library_folders() -> tuple[Path, ...]:
    names = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(Path(name).resolve() for name in names if name)


def find_package(file: Path) -> tuple[Path, list[str]]:
    """Folder that a file's package is imported from, and its names."""
    folder = file.parent
    names: list[str] = []
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, names


@cache
def imported_files(files: frozenset[Path]) -> tuple[frozenset[Path], frozenset[str]]:
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
        if file.suffix == ".py" and (file in files or not file.is_relative_to(ENGINE)):
            inside, outside = _imports_of_file(file)
            waiting += inside
            others |= outside
    return frozenset(found), frozenset(others)


@cache
def _imports_of_file(file: Path) -> tuple[frozenset[Path], frozenset[str]]:
    """Files of the project that one file imports, and names of what is not its."""
    files: set[Path] = set()
    others: set[str] = set()
    for name in _imports(file):
        inside = [path for path in _modules(name, file) if not is_installed(path)]
        files.update(inside)
        if not inside:
            others.add(name.partition(".")[0])
    return frozenset(files), frozenset(others)


@cache
def _imports(file: Path) -> tuple[str, ...]:
    """Full names that a file imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    package = find_package(file)[1]
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
                names += _exporting_modules(base, alias.name)
    return tuple(dict.fromkeys(filter(None, names)))


def _exporting_modules(module: str, name: str) -> list[str]:
    """Module that defines a name which a facade of this engine hands out, whether or not the facade is loaded."""
    if module.partition(".")[0] != "auditor":
        return []
    try:
        facade = importlib.import_module(module)
    except ImportError:
        return []
    return list(filter(None, [str(getattr(getattr(facade, name, None), "__module__", ""))]))


def _modules(name: str, file: Path) -> list[Path]:
    """Files of a module, with the packages that it lies in; of the longest part of the name that is one."""
    parts = name.split(".")
    for root in dict.fromkeys(
        [find_package(file)[0], file.parent, Path.cwd(), *(Path(place or ".") for place in sys.path)]
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


def find_versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of distributions by name, "not installed" where there is none."""
    found = dict[str, str]()
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def list_versions(names: frozenset[str]) -> list[str]:
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
