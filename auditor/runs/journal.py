"""The journal of a run: each finished claim is kept as it ends, so that an interrupted run can go on.

A journal is a file of JSON lines in the folder of the run's results. The first line says what was asked for; each
further line holds one finished claim. It goes away when the run is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from auditor.claims import Claim
from auditor.datasets.json_codec import parse_json_object, write_json_line
from auditor.errors import SpecificationError
from auditor.report.misfits import find_misfit
from auditor.results import AuditResult, Verdict, result_from
from auditor.runs.diff import manifest_differences, read_results
from auditor.runs.manifest import fingerprint_run
from auditor.runs.run import Run
from auditor.targets.sources import hash_bytes

SCHEMA = "dpaudit-journal/1"
NAME = "journal.jsonl"

#: Members of a manifest that say what was asked for.
OPTIONS = (
    "paths",
    "selection",
    "level",
    "seed",
    "alpha",
    "draws",
    "seconds",
    "detect",
    "method",
    "ignore",
    "also",
    "ledger",
    "ledger_key",
)

#: Results by claim id, with the seconds that each took.
Finished = dict[str, tuple[AuditResult, float]]


@dataclass(frozen=True)
class Kept:
    """What a journal holds.

    Parameters
    ----------
    about : mapping
        What the interrupted run was asked for, see `fingerprint_run`.
    finished : dict
        Results by claim id, with the seconds that each took.
    unreadable : int
        Lines that cannot be read, for example because the power failed while they were written.
    """

    about: Mapping[str, Any]
    finished: Finished
    unreadable: int


class Journal:
    """A journal that is being written.

    Each claim is one line, appended by a single write and then forced to the disk, so that a run that is killed at any
    moment loses at most the claims that were not finished.

    Parameters
    ----------
    path : Path
        The file. It is replaced, whole or not at all.
    about : mapping
        What the run was asked for, see `fingerprint_run`.
    finished : mapping
        Claims that are finished already.

    Raises
    ------
    SpecificationError
        If the file cannot be written, here and in the methods.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], finished: Mapping[str, tuple[AuditResult, float]]):
        self.path, self._run = path, hash_bytes(json.dumps(about, sort_keys=True).encode())
        head = {"schema": SCHEMA, "run": self._run, "about": about}
        partial = path.with_name(path.name + ".part")
        try:
            partial.write_bytes(b"".join([write_json_line(head), *(self._entry(*kept) for kept in finished.values())]))
            self._file = os.open(partial, os.O_WRONLY | os.O_APPEND)
            os.fsync(self._file)
            partial.replace(path)
            _force(path.parent)
        except OSError as error:
            raise self._failure(error) from error

    def append(self, result: AuditResult, seconds: float) -> None:
        """Keep a finished claim.

        Parameters
        ----------
        result : AuditResult
            Its result.
        seconds : float
            Seconds that it took.
        """
        rest = self._entry(result, seconds)
        try:
            while rest:  # one write, unless the disk is full
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            raise self._failure(error) from error

    def remove(self, results: Path) -> None:
        """Delete the journal of a complete run.

        Its results are forced to the disk first.
        """
        try:
            _force(results)
            _force(results.parent)
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._failure(error) from error

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)

    def _entry(self, result: AuditResult, seconds: float) -> bytes:
        return write_json_line({"run": self._run, "seconds": seconds, "claim": result.to_json()})

    def _failure(self, error: OSError) -> SpecificationError:
        return SpecificationError(f"cannot write to {str(self.path)!r}: {error}")


def begin_journal(out: Path, run: Run, selected: Sequence[Claim], resume: bool) -> tuple[Journal, Finished, list[str]]:
    """Start a run's journal, or resume an interrupted one.

    Parameters
    ----------
    out : Path
        Folder of the run's results.
    run : Run
        The run.
    selected : sequence of Claim
        Claims of the run.
    resume : bool
        Take finished claims from a journal in the folder; else it is kept aside.

    Returns
    -------
    Journal
        To be closed by the caller.
    dict
        Finished claims, which need not run again. Claims that ended in an error are not among them: what failed may
        have been the machine.
    list of str
        Notices for the user.

    Raises
    ------
    SpecificationError
        If ``resume`` is asked for and the journal is of another run; nothing is changed then.
    """
    path, about = out / NAME, fingerprint_run(run, selected)
    if resume:
        finished, notices = find_resumable(path, about)
        return Journal(path, about, finished), finished, notices
    notices = []
    if path.exists():
        aside = _free_path(path)
        path.replace(aside)
        notices.append(f"the journal of an interrupted run was in {out}: it is kept as {aside} (see --resume)")
    return Journal(path, about, {}), {}, notices


def find_resumable(path: Path, about: Mapping[str, Any]) -> tuple[Finished, list[str]]:
    """Finished claims of a journal, and notices.

    It raises as `begin_journal` does, and changes nothing.

    Parameters
    ----------
    path : Path
        The journal; there may be none.
    about : mapping
        What the run is asked for, see `fingerprint_run`.
    """
    if not path.exists():
        _check_results(path.with_name("results.json"), about)
        return {}, [f"nothing to resume in {path.parent}: the run starts anew"]
    kept = read_journal(path)
    check_journal(path, kept, about)
    finished = {id_: found for id_, found in kept.finished.items() if found[0].verdict != Verdict.ERROR}
    notices = [f"resumed: {len(finished)} of {about['claims_selected']} claims are taken from {path}"]
    failed = len(kept.finished) - len(finished)
    if failed:
        notices.append(f"{failed} that ended in an error run again")
    if kept.unreadable:
        notices.append(f"{kept.unreadable} lines of the journal cannot be read: what they held runs again")
    return finished, notices


def _check_results(path: Path, about: Mapping[str, Any]) -> None:
    """Raise `SpecificationError` if a folder holds the results of other options, which would be overwritten."""
    if not path.exists():
        return
    before = read_results(path)["manifest"]
    differences = manifest_differences(
        {name: before.get(name) for name in OPTIONS}, {name: about.get(name) for name in OPTIONS}
    )
    if differences:
        raise SpecificationError(
            f"--resume: {str(path)!r} holds the results of other options ({'; '.join(differences)}); "
            "give another --out, or replace them without --resume"
        )


def read_journal(path: Path) -> Kept:
    """Read a journal.

    Raises
    ------
    SpecificationError
        If it cannot be read, or its first line is not that of a journal.
    """
    try:
        first, *lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SpecificationError(f"cannot read {str(path)!r}: {error}") from error
    head = parse_json_object(first)
    if head is None or head.get("schema") != SCHEMA or not isinstance(head.get("about"), dict):
        raise SpecificationError(
            f"{str(path)!r} is not a journal: its first line does not have the schema {SCHEMA!r}; "
            "without --resume it is kept aside"
        )
    finished: Finished = {}
    unreadable = 0
    for line in filter(None, lines):
        entry = parse_json_object(line)
        try:
            if entry is None or entry["run"] != head["run"] or find_misfit({"claims": [entry["claim"]]}):
                raise ValueError
            result = result_from(entry["claim"])
            finished[result.id] = result, float(entry["seconds"])
        except (KeyError, TypeError, ValueError):
            unreadable += 1
    return Kept(head["about"], finished, unreadable)


def check_journal(path: Path, kept: Kept, about: Mapping[str, Any]) -> None:
    """Raise `SpecificationError` if a journal is of another run.

    The message names the differences.

    Parameters
    ----------
    path : Path
        The journal, as the message names it.
    kept : Kept
        What it holds.
    about : mapping
        What the run is asked for, see `fingerprint_run`.
    """
    differences = manifest_differences(kept.about, about)
    if differences:
        raise SpecificationError(
            f"cannot resume from {str(path)!r}: {'; '.join(differences)}. "
            "Without --resume the run starts anew, and that journal is kept aside"
        )


def _free_path(path: Path) -> Path:
    """First free name of journal.1.jsonl, journal.2.jsonl and so on."""
    k = 1
    while (aside := path.with_name(f"{path.stem}.{k}{path.suffix}")).exists():
        k += 1
    return aside


def _force(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk; only POSIX systems can do it by path."""
    if os.name == "posix":
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
