"""Audits of the corpus: each case by each method, kept as they end, so that an interrupted run goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

from auditor.audits.defaults import DRAWS
from auditor.cli.attack import Attack, attack_on
from auditor.cli.attack.options import SECONDS
from auditor.cli.corpus.cases import LibraryCase
from auditor.datasets.json_codec import parse_json_object, write_json_line
from auditor.errors import SpecificationError, require_library
from auditor.results import FLAGGED, AuditResult, Verdict
from auditor.targets.environments import find_environment
from auditor.targets.sources import hash_files
from auditor.targets.target_names import closing_target, requirements_of, target_named

#: Name of the file that holds the finished audits.
NAME = "corpus.jsonl"
#: Budgets in seconds of the audits on the crafted pair: the next is taken where the one before found nothing.
BUDGETS = (10.0, 60.0, 600.0)


@dataclass(frozen=True)
class Method:
    """A way to audit a case.

    Parameters
    ----------
    name : str
        In reports and in the journal.
    fixed : bool
        The release without the defect is audited.
    crafted : bool
        On the crafted pair; else on pairs made from the domain.
    seconds : float
        Budget; by default that of `dpaudit attack`. The draws are in proportion.
    """

    name: str
    fixed: bool = False
    crafted: bool = False
    seconds: float = SECONDS

    def applies_to(self, case: LibraryCase) -> bool:
        """Whether a case has what is audited."""
        return (not self.fixed or bool(case.fixed)) and not (case.is_control and (self.crafted or self.fixed))


METHODS = (
    Method("blind"),
    *(Method(f"pair {seconds:g} s", crafted=True, seconds=seconds) for seconds in BUDGETS),
    Method("fixed", fixed=True),
)


def methods_within(seconds: float, names: Collection[str] = ()) -> list[Method]:
    """Methods whose budget on a crafted pair is not too large.

    Parameters
    ----------
    seconds : float
        Largest budget; the smallest one stays whatever this is.
    names : collection of str
        Only these, if any.

    Raises
    ------
    SpecificationError
        If a name is that of no method.
    """
    known = [method.name for method in METHODS]
    for name in names:
        if name not in known:
            raise SpecificationError(f"method {name!r}: expected one of {', '.join(known)}")
    most = max(seconds, BUDGETS[0])
    return [
        method
        for method in METHODS
        if (method.name in names or not names) and not (method.crafted and method.seconds > most)
    ]


@dataclass(frozen=True)
class CaseAudit:
    """What one method made of one case.

    Parameters
    ----------
    case, method : str
        Names.
    source : str
        Hash of the case's file and of the auditor's sources: another one is another audit.
    verdict : str
        Of the audit; "not installed" where the environment cannot be built.
    seconds : float
        From the start of the library's process until the result, without a search for further causes.
    draws : int
        Both sides together.
    lower_bound : float or None
        Certified level.
    said : str
        What a maintainer is told of the cause.
    pair : str
        The pair on which it was found, in words.
    """

    case: str
    method: str
    source: str
    verdict: str
    seconds: float
    draws: int = 0
    lower_bound: float | None = None
    said: str = ""
    pair: str = ""

    @property
    def flagged(self) -> bool:
        """Whether the mechanism was flagged."""
        return self.verdict in FLAGGED


def describe_finding(result: AuditResult) -> str:
    """Describe the cause as a maintainer is told it.

    That is the counterexample's cause and event, or the message of a deviation.
    """
    found = result.counterexample
    return result.message if found is None else "; ".join(part for part in (found.cause, found.event) if part)


def names_cause(words: Sequence[str], said: str) -> bool:
    """Whether a text has one of the words of a cause."""
    return any(word.lower() in said.lower() for word in words)


def audit_case(case: LibraryCase, method: Method, seed: int = 0) -> CaseAudit:
    """Audit a case by one method, with the options of `dpaudit attack`.

    Parameters
    ----------
    case : LibraryCase
    method : Method
        One that applies to it.
    seed : int
        Of the auditor; most libraries draw from entropy of their own.
    """
    target = case.target(method.fixed)
    asked = Attack(
        target=target,
        claim=case.claim,
        relation=case.relation,
        domain=case.domain,
        rows=case.rows,
        least=case.min_rows,
        outside=case.outside,
        arithmetic=case.arithmetic,
        seed=seed,
        seconds=method.seconds,
        draws=round(DRAWS * method.seconds / SECONDS),
        also=False,
    )
    made = CaseAudit(case.name, method.name, hash_case(case), "", 0.0)
    given = case.crafted if method.crafted else None
    try:
        find_environment(requirements_of(target))  # its seconds are not those of the audit
        begun = time.monotonic()
        with closing_target(target_named(target)) as mechanism:
            _, result, _ = attack_on(mechanism, asked, case.guarantee, case.kind, case.values, given)
    except SpecificationError as error:
        return replace(made, verdict="not installed", said=" ".join(str(error).split())[-300:])
    found = result.counterexample
    return replace(
        made,
        verdict=str(result.verdict),
        seconds=round(time.monotonic() - begun, 2),
        draws=result.draws,
        lower_bound=None if result.lower_bound is None or math.isinf(result.lower_bound) else result.lower_bound,
        said=describe_finding(result) if result.verdict in (*FLAGGED, Verdict.ERROR) else "",
        pair="" if found is None else f"{found.x} against {found.y}",
    )


def audit_cases(
    cases: Sequence[LibraryCase], methods: Sequence[Method], out: Path, jobs: int = 1
) -> Iterator[CaseAudit]:
    """Audit cases by methods.

    What the folder holds already is not done again.

    Parameters
    ----------
    cases : sequence of LibraryCase
    methods : sequence of Method
        Those on the crafted pair are in the order of their budgets: none is tried after one that found the defect.
    out : Path
        Folder of the journal.
    jobs : int
        Processes; each audits a case by all methods, one after the other.

    Yields
    ------
    CaseAudit
        As they end.
    """
    done = {(item.case, item.method, item.source): item for item in read_audits(out / NAME)}
    work = []
    for case in cases:
        source = hash_case(case)
        known = [item for method in methods if (item := done.get((case.name, method.name, source))) is not None]
        yield from known
        work.append(partial(_audit_by_all, case, methods, known))
    yield from run_pieces(work, out, jobs)


def run_pieces(work: Sequence[Callable[[], list[CaseAudit]]], out: Path, jobs: int) -> Iterator[CaseAudit]:
    """Run pieces of work, and append their audits to a journal.

    Parameters
    ----------
    work : sequence of callables
        Each makes some audits.
    out : Path
        Folder of the journal.
    jobs : int
        Processes.

    Yields
    ------
    CaseAudit
        As the pieces end.
    """
    require_library("joblib", "`dpaudit corpus run`")
    import joblib  # takes longer to import than a list of cases

    out.mkdir(parents=True, exist_ok=True)
    with (
        joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1),
        (out / NAME).open("ab") as journal,
    ):
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch=jobs)
        for audits in parallel(joblib.delayed(piece)() for piece in work):
            for item in audits:
                journal.write(write_json_line(asdict(item)))
                journal.flush()
                yield item


def _audit_by_all(case: LibraryCase, methods: Sequence[Method], known: Sequence[CaseAudit]) -> list[CaseAudit]:
    """Audit one case by the methods that are not known yet."""
    audits = {item.method: item for item in known}
    found = False
    for method in methods:
        if method.crafted and found:
            continue
        if method.name not in audits and method.applies_to(case):
            audits[method.name] = audit_case(case, method)
        if method.crafted:
            found = method.name in audits and audits[method.name].flagged
    return [item for item in audits.values() if item not in known]


def read_audits(path: Path) -> list[CaseAudit]:
    """Read the finished audits of a journal.

    A line that was cut is left out.

    Raises
    ------
    SpecificationError
        If a line holds something else.
    """
    if not path.exists():
        return []
    audits = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        record = parse_json_object(line)
        if record is None:
            continue  # cut when the run was killed
        try:
            audits.append(CaseAudit(**record))
        except TypeError as error:
            raise SpecificationError(f"{str(path)!r}, line {number}: no audit of a case: {error}") from error
    return audits


@cache
def hash_auditor() -> str:
    """Hash of the auditor's sources."""
    return hash_files(sorted(Path(__file__).parents[2].rglob("*.py")))


def hash_case(case: LibraryCase) -> str:
    """Hash of a case's file and of the auditor."""
    return f"{hash_files([case.path])[:16]}-{hash_auditor()[:16]}"
