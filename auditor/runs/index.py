"""An index of declared claims, so that a list of them, or a run of one, need not load all.

It is kept in the user's cache folder, a file for each set of paths.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from auditor.runs.dependencies import Dependencies, Surroundings

#: Form of the file; another one is made again.
SCHEMA = "dpaudit-index/1"
#: Variable of the environment that does without an index, if set.
OFF = "DPAUDIT_NO_INDEX"
#: Files that are kept, the newest; arbitrary, each has some hundred kilobytes.
KEPT = 16


@dataclass(frozen=True)
class ListedClaim:
    """What is listed of a claim.

    Parameters
    ----------
    id, entry : str
        Its id, and that of its entry.
    guarantee : str
        What is claimed.
    expected : str
        Verdict that is expected.
    level : str
        "L0" to "L4".
    mechanism : str
        The target's name.
    is_mutant, is_exact, draws_any : bool
        Whether it is of a mutant, has an exact curve, and draws.
    """

    id: str
    entry: str
    guarantee: str
    expected: str
    level: str
    mechanism: str
    is_mutant: bool
    is_exact: bool
    draws_any: bool


@dataclass(frozen=True)
class ListedEntry:
    """What is listed of an entry.

    Parameters
    ----------
    id, title : str
        Of the entry.
    document, place : str
        Its source.
    file : str
        The file that declares it.
    """

    id: str
    title: str
    document: str
    place: str
    file: str


@dataclass(frozen=True)
class Index:
    """Entries and claims of some paths, in their order.

    Parameters
    ----------
    entries : tuple of ListedEntry
    claims : tuple of ListedClaim
    whole : bool
        Loading them changes the process for good, so that they are loaded together or not at all.
    """

    entries: tuple[ListedEntry, ...]
    claims: tuple[ListedClaim, ...]
    whole: bool = False

    def files_of(self, ids: Collection[str]) -> tuple[str, ...]:
        """Files that declare some claims, in order.

        These are all files if they are loaded together.
        """
        entries = {claim.entry for claim in self.claims if claim.id in ids}
        return tuple(dict.fromkeys(entry.file for entry in self.entries if self.whole or entry.id in entries))

    def part(self, files: Collection[str]) -> Index:
        """What some files declare."""
        entries = tuple(entry for entry in self.entries if entry.file in files)
        known = {entry.id for entry in entries}
        return Index(entries, tuple(claim for claim in self.claims if claim.entry in known), self.whole)


def read_index(folder: Path, paths: Sequence[str], around: Surroundings) -> Index | None:
    """The index of some paths, if there is one that is valid.

    Parameters
    ----------
    folder : Path
        Where indexes are kept.
    paths : sequence of str
        Files and folders that declare claims.
    around : Surroundings
        This process.

    Notes
    -----
    Valid because: what a Python program declares is a function of the code that it runs and of what it reads. The index
    is of these paths in this folder, with this search path, and these versions of Python, of the engine and of all
    installed distributions, or it has another name. It is taken only if every source that was loaded has the content
    that it had, and every data file that was opened, every folder that was listed or holds a source, and every variable
    of the environment that was asked for; if the paths stand for the same files; and if no other file has come where
    Python would find it first. What asks for anything else, such as a program or a service, has no index. Not seen are
    the clock, tests whether a file elsewhere exists, files that a compiled library opens by itself, and an installed
    package that is edited by hand. Therefore no result rests on an index: what a run audits, and its share of alpha,
    are those of the claims that it loads, and what these files declare is compared with the index first
    (`auditor.runs.declarations`). A wrong index could only leave out a claim, which the count in the report shows.
    """
    try:
        digest, _, content = (folder / _name(paths, around)).read_bytes().partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != digest:
            return None
        kept = json.loads(content)
        listed, depends = kept["index"], kept["dependencies"]
        if not _dependencies(depends).hold(paths, around.search):
            return None
        return Index(
            tuple(ListedEntry(*entry) for entry in listed["entries"]),
            tuple(ListedClaim(*claim) for claim in listed["claims"]),
            listed["whole"],
        )
    except (OSError, ValueError, KeyError, TypeError):  # damaged, or there is none
        return None


def keep_index(folder: Path, paths: Sequence[str], around: Surroundings, index: Index, read: Dependencies) -> None:
    """Keep an index, if the folder can be written to.

    It is written beside its place first, so that others see all of it or nothing. The newest ones are kept.

    Parameters
    ----------
    folder, paths, around
        As for `read_index`.
    index : Index
        What is declared.
    read : Dependencies
        What was read for that.
    """
    listed = {
        "entries": [list(asdict(entry).values()) for entry in index.entries],
        "claims": [list(asdict(claim).values()) for claim in index.claims],
        "whole": index.whole,
    }
    content = json.dumps({"index": listed, "dependencies": asdict(read)}).encode()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        file, partial = tempfile.mkstemp(suffix=".part", dir=folder)
        try:
            with os.fdopen(file, "wb") as part:
                part.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
            os.replace(partial, folder / _name(paths, around))
        finally:
            Path(partial).unlink(missing_ok=True)
        _remove_old(folder)


def drop_index(folder: Path, paths: Sequence[str], around: Surroundings) -> None:
    """Remove an index that is not what is declared.

    Parameters
    ----------
    folder, paths, around
        As for `read_index`.
    """
    with suppress(OSError):
        (folder / _name(paths, around)).unlink()


def _remove_old(folder: Path) -> None:
    """Remove all files but the newest."""
    found = []
    for file in folder.iterdir():
        with suppress(OSError):  # others remove files too
            if file.is_file():
                found.append((file.stat().st_mtime_ns, file))
    for _, file in sorted(found, reverse=True)[KEPT:]:
        with suppress(OSError):
            file.unlink()


def _name(paths: Sequence[str], around: Surroundings) -> str:
    about = [SCHEMA, list(paths), around.folder, list(around.search), around.versions]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32] + ".json"


def _dependencies(kept: dict[str, Any]) -> Dependencies:
    return Dependencies(**{**kept, "declaring": tuple(kept["declaring"]), "names": tuple(kept["names"])})
