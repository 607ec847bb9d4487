"""Registry of claims: entries found in Python files and folders."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from auditor.audits.accuracy.figure import check_figures
from auditor.audits.accuracy.scaling import PowerLaw
from auditor.claims import Claim, Entry
from auditor.errors import SpecificationError, suggest_extra
from auditor.targets.callables import load_file
from auditor.targets.process_settings import load_target
from auditor.targets.python_files import find_files


def load_entries(paths: Sequence[str]) -> list[Entry]:
    """Entries declared in files and folders, in order.

    Paths come in their order, then file names, then lines.

    Raises
    ------
    SpecificationError
        If a path does not exist, a module cannot be imported, or two entries have one id.
    """
    return [entry for entry, _ in _load(tuple(paths))]


def locate_entries(paths: Sequence[str]) -> list[tuple[Entry, str]]:
    """Entries as `load_entries` has them, each with its file.

    A file is named as `find_files` has it.
    """
    return list(_load(tuple(paths)))


@lru_cache(maxsize=8)
def _load(paths: tuple[str, ...]) -> tuple[tuple[Entry, str], ...]:
    found: dict[str, tuple[Entry, str]] = {}
    for file in find_files(paths):
        module = _import(Path(file))
        for value in vars(module).values():
            if not isinstance(value, Entry) or value.function.__module__ != module.__name__:
                continue
            if value.id in found:
                files = " and ".join(dict.fromkeys((repr(found[value.id][1]), repr(file))))
                raise SpecificationError(f"two entries have the id {value.id!r}, in {files}")
            found[value.id] = value, file
    return tuple(found.values())


def _import(path: Path) -> ModuleType:
    """Import a file; as part of its package if it stands in one, so that its relative names work."""
    package: list[str] = []
    folder = path.resolve().parent
    while (folder / "__init__.py").is_file():
        package.insert(0, folder.name)
        folder = folder.parent
    try:
        if package:
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            name = ".".join([*package, path.stem])
            with load_target(name):
                return importlib.import_module(name)
        module: ModuleType = load_file(path)
        return module
    except (SpecificationError, KeyboardInterrupt):
        raise
    except BaseException as error:
        said = f"{type(error).__name__}: {error}{suggest_extra(error)}"
        raise SpecificationError(f"{str(path)!r} cannot be loaded: {said}") from error


@lru_cache(maxsize=8)
def _claims(paths: tuple[str, ...]) -> tuple[Claim, ...]:
    found: list[Claim] = []
    for entry in load_entries(paths):
        try:
            found.extend(entry.claims())
        except (SpecificationError, KeyboardInterrupt):
            raise
        except BaseException as error:
            said = f"{type(error).__name__}: {error}{suggest_extra(error)}"
            raise SpecificationError(f"entry {entry.id}: {said}") from error
    if not found:
        raise SpecificationError(f"no claims are declared in {', '.join(map(repr, paths))}")
    laws = ((claim.id, claim.draft.guarantee) for claim in found)
    check_figures([(id_, law.figure) for id_, law in laws if isinstance(law, PowerLaw) and law.figure is not None])
    return tuple(found)


def load_claims(paths: Sequence[str]) -> list[Claim]:
    """All claims of all entries; loaded once in a process."""
    return list(_claims(tuple(paths)))
