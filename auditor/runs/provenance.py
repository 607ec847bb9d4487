"""Provenance of a result: hashes of the source files that a run could call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from auditor.claims import Claim
from auditor.runs.journal import code_files
from auditor.runs.run import Run

#: Files that are named where some differ; arbitrary, a line holds them.
_NAMED = 5


def code_of(run: Run, selected: Sequence[Claim]) -> dict[str, str]:
    """Hashes of source files: engine, claims and mechanisms.

    They are those on the disk now.

    Returns
    -------
    dict of str to str
        By names that are the same on every machine: from the package's folder on for what is in a package, else
        relative to the working directory, or the bare name of a file elsewhere. Two files of one name share a hash.
    """
    found: dict[str, list[bytes]] = {}
    for file in sorted(code_files(run, selected)):
        found.setdefault(_name(file.resolve()), []).append(hashlib.sha256(file.read_bytes()).digest())
    return {name: hashlib.sha256(b"".join(sorted(found[name]))).hexdigest()[:16] for name in sorted(found)}


def _name(file: Path) -> str:
    folder = file.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    if folder != file.parent:
        return file.relative_to(folder).as_posix()
    return file.relative_to(Path.cwd()).as_posix() if file.is_relative_to(Path.cwd()) else file.name


def changed_files(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that changed, are new, or are gone."""
    return sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))


def named(files: Sequence[str]) -> str:
    """List some of the names, the engine's last.

    Most often the others tell more.
    """
    ordered = sorted(files, key=lambda name: (name.startswith("auditor/"), name))
    return ", ".join(ordered[:_NAMED]) + (f" and {len(files) - _NAMED} more" if len(files) > _NAMED else "")
