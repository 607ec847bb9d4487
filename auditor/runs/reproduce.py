"""Reproduction of a results.json, with the causes of each difference."""

from __future__ import annotations

import hashlib
import itertools
import platform
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.audits.defaults import METHODS
from auditor.claims import Claim, registry
from auditor.errors import SpecificationError, check_positive
from auditor.results import AuditResult, Verdict, make_plain
from auditor.runs import runner
from auditor.runs.diff import manifest_differences, read_results, read_run_record, record_differences
from auditor.runs.manifest import LIBRARIES, build_manifest, code_of
from auditor.runs.progress import Progress
from auditor.runs.run import Outcome, Run, choose_jobs
from auditor.runs.selection import select_claims

#: Claims a worker that are run between two looks at the clock; arbitrary, the workers wait for each other then.
_BATCH = 4
#: Members that are shown of a claim that differs; arbitrary, if many differ the first ones say enough.
_CHANGES = 6
#: Claims of which members and causes are shown; arbitrary. Of further ones there are the ids, for -k.
_DETAILED = 50
#: Files that are named where some differ; arbitrary, a line holds them.
_NAMED = 5
#: Members of a record that follow from the declaration of the claim alone.
_DECLARED = (
    *("entry", "source", "title", "level", "notion", "symbol", "claimed", "claimed_level", "parameters", "expected"),
    *("mechanism", "detect", "stop"),
)
#: Options of a replay line, and the members of the manifest that they repeat.
_OPTIONS = {
    "--seed": "seed",
    "--level": "level",
    "--draws": "draws",
    "--detect": "detect",
    "--method": "method",
    "--ignore": "ignore",
}


@dataclass(frozen=True)
class Recorded:
    """A claim's record in the file."""

    id: str
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Differing:
    """A claim whose record does not come out the same.

    Parameters
    ----------
    id : str
        The claim.
    changes : tuple of str
        Members that differ, each with what it was and is.
    causes : tuple of str
        What explains it, as far as it is about this claim.
    """

    id: str
    changes: tuple[str, ...]
    causes: tuple[str, ...]


@dataclass(frozen=True)
class Reproduction:
    """What running again showed.

    Parameters
    ----------
    recorded, chosen : int
        Claims of the file, and those that were to be run again.
    same : int
        Claims with the same record, to the byte.
    differing : tuple of Differing
        All others that were run.
    causes : tuple of str
        If some differ: what differs in the environment, or that nothing does.
    notices : tuple of str
        What differs between the two runs, whether or not it shows in a claim, and whether the code is that of the run.
    interrupted : bool
        Ctrl-C came before the end.
    lost : str
        Why there was nobody to run the rest; empty if there was.
    """

    recorded: int
    chosen: int
    same: int
    differing: tuple[Differing, ...]
    causes: tuple[str, ...]
    notices: tuple[str, ...]
    interrupted: bool
    lost: str

    @property
    def left(self) -> int:
        """Claims that were not reached."""
        return self.chosen - self.same - len(self.differing)

    @property
    def code(self) -> int:
        """The command's exit code."""
        return 2 if self.lost else 130 if self.interrupted else 1 if self.differing else 0


def reproduce_results(
    results: Path,
    expression: str | None = None,
    sample: int | None = None,
    jobs: int | None = None,
    seconds: float | None = None,
) -> Reproduction:
    """Run the claims of a results.json again, and compare.

    Each has the share of alpha that it had.

    Parameters
    ----------
    results : Path
        The file, which may be packed.
    expression : str, optional
        Claims to take, see `auditor.runs.selection.select_claims`; default all that the file has.
    sample : int, optional
        Take so many of them, see `take_sample`.
    jobs : int, optional
        Worker processes; default all cores. Results do not depend on it.
    seconds : float, optional
        Start no claims any more after so many seconds.

    Raises
    ------
    SpecificationError
        If the file cannot be read, is of no run that can be run again, or no claim of it is declared any more.
    """
    before = read_results(results)
    about = before["manifest"]
    asked = _run_of(before, results, jobs)
    if seconds is not None:
        check_positive("--max-seconds", seconds)
    if not before["claims"]:
        raise SpecificationError(f"{str(results)!r} has no claims to run again")
    recorded = [Recorded(claim["id"], claim) for claim in before["claims"]]
    chosen = take_sample(select_claims(recorded, expression), sample)
    declared = _load_declared(asked, results)
    try:
        selected = select_claims(declared, asked.expression)
    except SpecificationError:  # nothing of it is declared any more
        selected = []
    shares = _shares(chosen, declared, asked, results)
    then, code = read_run_record(results) or {}, code_of(asked, selected)
    fresh, outcome = _run(asked, declared, shares, seconds)
    differing = tuple(_differing_claims(chosen, fresh, shares, asked))
    lines = manifest_differences({**about, "seconds": None}, build_manifest(asked, selected))
    files = changed_files(then["sources"], code) if isinstance(then.get("sources"), dict) else None
    causes = _causes(lines, files)
    if any(not found.causes for found in differing):
        causes += _other_causes(lines, then.get("machine"))
        causes = causes or [_unexplained_difference(files, results)]
    notices = [f"differs: {line}" for line in lines]
    if before.get("errata", []) != make_plain(runner.collect_errata(selected)):
        notices.append("differs: errata, what the entries list is not what it was")
    if files is not None:
        notices.append(
            f"code: {len(files)} of its files are not those of the run: {list_names(files)}"
            if files
            else f"code: all {len(code)} files are those of the run"
        )
    return Reproduction(
        recorded=len(recorded),
        chosen=len(chosen),
        same=len(fresh) - sum(found.id in fresh for found in differing),
        differing=differing,
        causes=tuple(causes) if differing else (),
        notices=tuple(notices),
        interrupted=outcome.interrupted,
        lost=outcome.lost,
    )


def take_sample(recorded: Sequence[Recorded], sample: int | None) -> list[Recorded]:
    """A sample of the claims by SHA-256 of their ids.

    All of them in this order, without a size.

    The order has nothing to do with what the claims are about, and an added claim moves no other one in it.

    Parameters
    ----------
    recorded : sequence of Recorded
        Claims of the file.
    sample : int or None
        Size of the sample; None takes all.
    """

    def place(claim: Recorded) -> str:
        return hashlib.sha256(claim.id.encode(errors="surrogateescape")).hexdigest()

    return sorted(recorded, key=place)[:sample]


def _run_of(before: Mapping[str, Any], results: Path, jobs: int | None) -> Run:
    """The run that a file records."""
    about = before["manifest"]
    if "paths" not in about:
        raise SpecificationError(f"{str(results)!r} is of an attack, not of a run: see `dpaudit replay`")
    if about.get("ledger") is not None:
        raise SpecificationError(
            f"{str(results)!r} rests on earlier runs: `dpaudit ledger {about['ledger']} --verify` computes again what "
            "is recorded"
        )
    kinds: dict[str, tuple[type, ...]] = {
        "paths": (list,),
        "level": (str,),
        "alpha": (int, float),
        "seed": (int,),
        "selection": (str, type(None)),
    }
    for name, kind in kinds.items():
        if not isinstance(about.get(name), kind) or isinstance(about.get(name), bool):
            raise SpecificationError(f"{str(results)!r}: its manifest has the {name} {about.get(name)!r}")
    try:
        return Run(
            paths=tuple(map(str, about["paths"])),
            expression=about.get("selection") or None,  # an empty one selected all before
            level=about["level"],
            alpha=about["alpha"],
            seed=about["seed"],
            draws=about.get("draws"),
            detect=about.get("detect"),
            method=about.get("method", METHODS[0]),
            ignore=about.get("ignore", ()),
            also=about.get("also") is True,
            jobs=choose_jobs(jobs),
            chunks={
                claim["id"]: len(claim["record"]["chunks"])
                for claim in before["claims"]
                if claim.get("truncated_by") == "time" and claim.get("record", {}).get("chunks")
            },
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise SpecificationError(f"{str(results)!r}: its manifest cannot be run again: {error}") from error


def _load_declared(asked: Run, results: Path) -> list[Claim]:
    try:
        return registry.load_claims(asked.paths)
    except SpecificationError as error:
        raise SpecificationError(
            f"{error}; {str(results)!r} is of a run of {shlex.join(asked.paths)}, and is run again in the same folder"
        ) from error


def _shares(chosen: Sequence[Recorded], declared: Sequence[Claim], asked: Run, results: Path) -> dict[str, float]:
    """Shares of alpha of the chosen claims that are still declared: those that they had, not those of a run today.

    A record has its share to 8 digits. The share itself is the run's alpha over the number of claims that shared it,
    see `split_alpha`: a whole number, so that 8 digits give it exactly for fewer than ten million claims.
    """
    ids = {claim.id for claim in declared}
    found = {}
    for claim in chosen:
        share = claim.record.get("alpha")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise SpecificationError(f"{str(results)!r}: claim {claim.id!r} has the alpha {share!r}")
        if claim.id in ids:
            found[claim.id] = asked.alpha / max(round(asked.alpha / share), 1)
    if chosen and not found:
        raise SpecificationError(
            f"{str(results)!r}: no claim of it is declared in {shlex.join(asked.paths)} any more, for example "
            f"{chosen[0].id!r}"
        )
    return found


def _run(
    asked: Run, declared: Sequence[Claim], shares: Mapping[str, float], seconds: float | None
) -> tuple[dict[str, AuditResult], Outcome]:
    """Results of what was reached, by id, and how the last batch ended."""
    begun, ids = time.monotonic(), list(shares)
    size = len(ids) if seconds is None else _BATCH * asked.jobs
    fresh: dict[str, AuditResult] = {}
    outcome = Outcome([], {})
    with Progress(len(ids)) as progress:
        for start in range(0, len(ids), size):
            batch = {id_: shares[id_] for id_ in ids[start : start + size]}
            outcome = runner.execute_run(asked, declared, progress.advance, only=batch)
            fresh |= {result.id: result for result in outcome.results}
            if outcome.interrupted or (seconds is not None and time.monotonic() - begun >= seconds):
                break
    return fresh, outcome


def _differing_claims(
    chosen: Sequence[Recorded], fresh: Mapping[str, AuditResult], shares: Mapping[str, float], asked: Run
) -> Iterator[Differing]:
    for claim in sorted(chosen, key=lambda claim: claim.id):
        if claim.id not in shares:
            yield Differing(claim.id, (), (f"it is not declared in {shlex.join(asked.paths)} any more",))
        elif claim.id in fresh:
            record = fresh[claim.id].to_json()
            changes = record_differences(claim.record, record)
            if changes:
                yield Differing(claim.id, tuple(changes), tuple(_own_causes(claim.record, record, asked)))


def _own_causes(old: Mapping[str, Any], new: Mapping[str, Any], asked: Run) -> Iterator[str]:
    """What explains that a claim's record differs, as far as it is about this claim."""
    failed = [(when, r) for when, r in (("then", old), ("now", new)) if r["verdict"] == Verdict.ERROR]
    for when, record in failed:
        yield f"it ended in an error {when}: {record.get('message')}"
    if not failed:
        yield from _contradictions(old, asked)
        if old.get("source_hash") != new["source_hash"]:
            yield f"the source of {new['mechanism']} has changed"
        declared = [name for name in _DECLARED if name in old and old[name] != new[name]]
        if declared:
            yield f"it is declared otherwise: {', '.join(declared)}"
    if old.get("unseeded") or new["unseeded"]:
        yield "its target has its own source of randomness, which no run repeats: the record itself is the evidence"
    if old.get("truncated_by") == "time" and old["id"] not in asked.chunks:
        yield "time cut it short, and the file does not say after how many chunks"


def _contradictions(old: Mapping[str, Any], asked: Run) -> Iterator[str]:
    """What the replay line of a claim says otherwise than the manifest: one of them is not what the run wrote."""
    try:
        words = shlex.split(str(old.get("replay") or ""))
    except ValueError:
        words = []
    said = {word: value for word, value in itertools.pairwise(words) if word.startswith("--")}
    if not {"--seed", "--level"} <= said.keys():
        yield "its replay line is not what a run writes"
        return
    for option, name in _OPTIONS.items():
        here = getattr(asked, name) if name != "ignore" else ",".join(asked.ignore) or None
        default = METHODS[0] if name == "method" else None
        if said.get(option, str(default)) != str(here):
            there = said.get(option, "no")
            yield f"its replay line has the {name} {there}, the manifest {here}: the file was changed after the run"
    if said.get("--alpha") != f"{old['alpha']:.8g}":
        yield f"its replay line has the alpha {said.get('--alpha')}, the claim {old['alpha']:.8g}"


def _causes(lines: Sequence[str], files: Sequence[str] | None) -> list[str]:
    """Versions and code that differ, which bear on every claim."""
    causes = [line for line in lines if line.partition(":")[0] in ("dpaudit", "python", *LIBRARIES)]
    return causes + ([f"the code, {len(files)} file{'s' * (len(files) != 1)}: {list_names(files)}"] if files else [])


def _other_causes(lines: Sequence[str], machine: Any) -> list[str]:
    """What may explain claims of which no member does."""
    causes = []
    if any(line.startswith("specification_hash:") for line in lines):
        causes.append("the claims of the run, their pairs or their budgets are declared otherwise")
    if machine not in (None, platform.platform()):
        causes.append(f"the machine: {machine} then, {platform.platform()} now")
    return causes


def _unexplained_difference(files: Sequence[str] | None, results: Path) -> str:
    """What to say if nothing that is recorded explains a difference."""
    code = "code, " if files is not None else ""
    where = "" if files is not None else f" (a run.json beside {results.name} would say which code it was)"
    return (
        f"versions, {code}declarations and options are those of the run{where}: either the file was changed after the "
        "run, or this is a bug of dpaudit; please report it"
    )


def changed_files(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that changed, are new, or are gone.

    Parameters
    ----------
    then, now : mapping of str to str
        Hashes by name of file, see `code_of`.
    """
    return sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))


def list_names(files: Sequence[str]) -> str:
    """List some of the names, the engine's last.

    Most often the others tell more.
    """
    ordered = sorted(files, key=lambda name: (name.startswith("auditor/"), name))
    return ", ".join(ordered[:_NAMED]) + (f" and {len(files) - _NAMED} more" if len(files) > _NAMED else "")


def lines_of(found: Reproduction) -> Iterator[str]:
    """Lines for standard output: claims that differ, and why.

    With the number of those that came out the same.
    """
    for k, claim in enumerate(found.differing):
        yield f"differs: {claim.id}"
        if k >= _DETAILED:
            continue
        yield from (f"  {change}" for change in claim.changes[:_CHANGES])
        if len(claim.changes) > _CHANGES:
            yield f"  and {len(claim.changes) - _CHANGES:,} more members"
        yield from (f"  why: {cause}" for cause in claim.causes)
    if len(found.differing) > _DETAILED:
        yield f"what differs is shown of the first {_DETAILED}; -k ID shows it of another"
    yield from (f"why: {cause}" for cause in found.causes)
    rest = f", {found.left:,} not reached" if found.left else ""
    part = f" (the file has {found.recorded:,})" if found.chosen < found.recorded else ""
    yield f"{found.same:,} of {found.chosen:,} claims reproduced{rest}{part}"
