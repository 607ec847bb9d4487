"""Fingerprint of a claim: its specification, its sources and the versions of its dependencies."""

from __future__ import annotations

import inspect
import json
import shlex
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from auditor.datasets import Pair
from auditor.privacy.guarantees import Guarantee
from auditor.targets import Mechanism
from auditor.targets.content import spell_out, walk_parts
from auditor.targets.sources import (
    ENGINE,
    hash_files,
    hash_parts,
    imported_files,
    is_installed,
    list_versions,
    project_files,
)
from auditor.targets.target_names import is_remote, show_target


def collect_parts(
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
    ``mechanism`` is the content of the target with all its attributes, see `spell_out`. ``source`` covers the modules
    that hold the parts of the mechanism, wherever they are, and every module of the project that they import, directly
    or not, as far as import statements tell; installed packages count by their versions, with all that they require.
    What is read at run time (data files, models), imported by a computed name, set on a class or a module by other code
    than its own, or behind HTTP cannot be seen: that is what ``key`` is for.

    Raises
    ------
    SpecificationError
        If the target, the claim or the data hold an object whose content cannot be seen, and no key is given.
    """
    parts = list(walk_parts(target))
    files = {file for part in parts for file in _file_of(part)} | set(_named_files(named))
    files_read, names = imported_files(frozenset(files))
    names |= {_module(kind).partition(".")[0] for part in parts for kind in _kinds(part)}
    found = {
        "claim": _hash_texts(spell_out(guarantee, "the claim", key)),
        "mechanism": _hash_texts(
            _remote_name(named) if named and is_remote(target) else spell_out(target, "the target", key)
        ),
        "data": _hash_texts(*(text for pair in pairs for text in _data(pair, key, private))),
        "source": _hash_texts(
            *(f"{file.name}:{_content(file, file.stat().st_mtime_ns)}" for file in sorted(files_read))
        ),
        "versions": _hash_texts("\n".join(list_versions(frozenset(names)) + _environment(target))),
        "engine": _engine(),
    }
    return {**found, "key": key} if key else found


def _hash_texts(*texts: str) -> str:
    """Hash texts; names of files in another encoding hold halves of surrogate pairs."""
    return hash_parts(*(text.encode(errors="surrogatepass") for text in texts))


def _remote_name(named: str) -> str:
    """Name of a process or service, without who may use it."""
    return f"{show_target(named)} {urlsplit(named).query}" if named.lower().startswith("http") else show_target(named)


def _data(pair: Pair, key: str, private: bool) -> list[str]:
    if private:
        return [pair.name]
    return [
        spell_out(data, f"dataset {side} of the pair {pair.name!r}", key)
        for side, data in (("x", pair.x), ("y", pair.y))
    ]


def fingerprint_parts(parts: Mapping[str, str]) -> str:
    """One text for the content of `collect_parts`."""
    return hash_parts(json.dumps(parts, sort_keys=True).encode())


@cache
def _engine() -> str:
    """Hash of the code that turns bets and counts into wealth: evidence is not carried into other arithmetic."""
    files = [ENGINE / "evidence" / "two_sample_bet.py", *sorted((ENGINE / "privacy" / "guarantees").glob("*.py"))]
    return hash_parts(*(file.read_bytes() for file in files))


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
        yield from project_files([getattr(sys.modules.get(_module(kind)), "__file__", None)])


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
            if path.is_file() and not is_installed(path.resolve()):
                yield path.resolve()
        except OSError:  # a word too long for a name
            continue


@cache
def _content(file: Path, _changed: int) -> str:
    """Hash of a file, read once as long as it does not change."""
    return hash_files([file])


def _environment(target: Mechanism) -> list[str]:
    """Versions in the environment of a target that has one of its own."""
    from auditor.targets.environments import environment_of, list_installed

    folder = environment_of(target)
    return [] if folder is None else [json.dumps(list_installed(folder), sort_keys=True)]
