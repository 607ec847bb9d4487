"""Registry of claims: entries found in Python files and folders."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeVar

from auditor.audits.accuracy.figure import check_figures
from auditor.audits.accuracy.scaling import PowerLaw
from auditor.claims import Claim, Entry
from auditor.errors import SpecificationError
from auditor.targets.callables import load_file


class Identified(Protocol):
    """What has the id of a claim."""

    @property
    def id(self) -> str:
        """The id."""


T = TypeVar("T", bound=Identified)


def load_entries(paths: Sequence[str]) -> list[Entry]:
    """Entries declared in files and folders, in order.

    Paths come in their order, then file names, then lines.

    Raises
    ------
    SpecificationError
        If a path does not exist, a module cannot be imported, or two entries have one id.
    """
    return list(_load(tuple(paths)))


@lru_cache(maxsize=8)
def _load(paths: tuple[str, ...]) -> tuple[Entry, ...]:
    found: dict[str, Entry] = {}
    for path in paths:
        for module in _modules(Path(path)):
            for value in vars(module).values():
                if not isinstance(value, Entry) or value.function.__module__ != module.__name__:
                    continue
                if value.id in found:
                    raise SpecificationError(f"two entries have the id {value.id!r}")
                found[value.id] = value
    return tuple(found.values())


def _modules(path: Path) -> list[ModuleType]:
    if path.is_file():
        return [_import(path)]
    if not path.is_dir():
        raise SpecificationError(f"no such file or folder: {str(path)!r}")
    files = sorted(p for p in path.rglob("*.py") if not p.name.startswith("_"))
    if not files:
        raise SpecificationError(f"no Python files in {str(path)!r}")
    return [_import(p) for p in files]


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
            return importlib.import_module(".".join([*package, path.stem]))
        module: ModuleType = load_file(path)
        return module
    except SpecificationError:
        raise
    except (Exception, SystemExit) as error:
        raise SpecificationError(f"{str(path)!r} cannot be loaded: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=8)
def _claims(paths: tuple[str, ...]) -> tuple[Claim, ...]:
    found: list[Claim] = []
    for entry in _load(paths):
        try:
            found.extend(entry.claims())
        except SpecificationError:
            raise
        except (Exception, SystemExit) as error:
            raise SpecificationError(f"entry {entry.id}: {type(error).__name__}: {error}") from error
    if not found:
        raise SpecificationError(f"no claims are declared in {', '.join(map(repr, paths))}")
    laws = ((claim.id, claim.draft.guarantee) for claim in found)
    check_figures([(id_, law.figure) for id_, law in laws if isinstance(law, PowerLaw) and law.figure is not None])
    return tuple(found)


def load_claims(paths: Sequence[str]) -> list[Claim]:
    """All claims of all entries; loaded once in a process."""
    return list(_claims(tuple(paths)))


def select_claims(available: Sequence[T], expression: str | None) -> list[T]:
    """Claims whose id matches an expression.

    Parameters
    ----------
    available : sequence
        Claims, or anything else with an ``id``.
    expression : str, optional
        Substrings of ids, without case, with "and", "or", "not" and parentheses; or one whole id. None and blanks
        select all.

    Returns
    -------
    list
        In the order of ``available``.

    Raises
    ------
    SpecificationError
        If the expression cannot be read, or nothing matches.
    """
    if expression is None or not expression.strip():
        return list(available)
    exact = [claim for claim in available if claim.id == expression.strip()]
    if exact:
        return exact
    matches = [claim for claim in available if _Expression(expression).holds(claim.id)]
    if not matches:
        raise SpecificationError(f"no claim matches {expression!r} (there are {len(available)}; see `dpaudit list`)")
    return matches


class _Expression:
    """Recursive descent over ``or`` < ``and`` < ``not`` < word or parentheses; a word is a substring, without case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = re.findall(r"[()]|[^\s()]+", text)

    def holds(self, id_: str) -> bool:
        """Whether the expression matches an id."""
        self.at, self.id = 0, id_.lower()
        value = self._parse_or()
        if self.at < len(self.tokens):
            raise self._error()
        return value

    def _error(self) -> SpecificationError:
        near = self.tokens[self.at] if self.at < len(self.tokens) else "its end"
        return SpecificationError(f"cannot read the selection {self.text!r} near {near!r}")

    def _take_token(self, *expected: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] in expected:
            self.at += 1
            return True
        return False

    def _parse_or(self) -> bool:
        value = self._parse_and()
        while self._take_token("or"):
            value = self._parse_and() or value
        return value

    def _parse_and(self) -> bool:
        value = self._parse_not()
        while self._take_token("and"):
            value = self._parse_not() and value
        return value

    def _parse_not(self) -> bool:
        if self._take_token("not"):
            return not self._parse_not()
        if self._take_token("("):
            value = self._parse_or()
            if not self._take_token(")"):
                raise self._error()
            return value
        if self.at >= len(self.tokens) or self.tokens[self.at] in ("and", "or", ")"):
            raise self._error()
        self.at += 1
        return self.tokens[self.at - 1].lower() in self.id
