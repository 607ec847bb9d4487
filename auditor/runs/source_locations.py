"""Source locations of audited code, so that a finding can be shown beside it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.results import AuditResult
from auditor.targets.sources import is_installed, source_text
from auditor.targets.transcripts import Dialogue

if TYPE_CHECKING:
    from auditor.claims import Claim, Entry


def add_places(results: Sequence[AuditResult], claims: Iterable[Claim], entries: Iterable[Entry]) -> list[AuditResult]:
    """Set ``places`` of results: where mechanisms and entries stand in files.

    The process that was asked for the run does this, not its workers: these may stand in other folders.

    Parameters
    ----------
    results : sequence of AuditResult
        Results of a run.
    claims : iterable of Claim
        Their claims.
    entries : iterable of Entry
        Entries that declare the claims.
    """
    drafts = {claim.id: claim.draft for claim in claims}
    declared = {entry.id: entry.function for entry in entries}
    found = []
    for result in results:
        draft = drafts.get(result.id)
        subject = None if draft is None else draft.subject if draft.mechanism is None else draft.mechanism
        found.append(replace(result, places=find_places(subject, declared.get(result.entry))))
    return found


def find_places(mechanism: object, declaration: object = None) -> dict[str, Any]:
    """Places of ``mechanism`` and ``claim``, where known.

    Each is as `place_of` has it.

    Parameters
    ----------
    mechanism : object
        What is audited.
    declaration : object
        Function that declares the claim; default none.
    """
    found = {"mechanism": place_of(_unwrap_target(mechanism)), "claim": place_of(declaration)}
    return {name: place for name, place in found.items() if place}


def place_of(thing: object) -> Mapping[str, Any]:
    """File and first line of a function, class or object.

    Returns
    -------
    mapping
        ``file``, relative to the working directory and with slashes, and ``line``, from 1. Empty if there is no source,
        or it stands elsewhere or in an installed package: such a path would differ between machines, and no code host
        could show it.
    """
    if thing is None:
        return {}
    subject: Any = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
    try:
        return _source_place(inspect.unwrap(subject), Path.cwd())
    except Exception:  # noqa: BLE001 - no oddity of a foreign class, and no file that has changed, may cost a run its results
        return {}


@functools.lru_cache(maxsize=4096)  # arbitrary; many claims share one
def _source_place(subject: Any, folder: Path) -> Mapping[str, Any]:
    path = Path(inspect.getsourcefile(subject) or "").resolve()
    if not path.is_file() or not path.is_relative_to(folder) or is_installed(path):
        return {}
    return {"file": path.relative_to(folder).as_posix(), "line": max(source_text(subject)[1], 1)}


def _unwrap_target(target: object) -> object:
    """What somebody wrote, out of what wraps it here; None for a target that is no code of this process."""
    while True:
        inner: object = None
        if isinstance(target, functools.partial):
            inner = target.func
        elif isinstance(target, Dialogue):
            inner = target.parts[0]
        elif type(target).__module__.partition(".")[0] == "auditor":
            inner = getattr(target, "function", None) or getattr(target, "mechanism", None)
            if inner is None:
                return None
        if inner is None:
            return target
        target = inner
