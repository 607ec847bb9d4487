"""The corpus of defects: which are caught, how soon, with which cause; and what is said of the corrected versions.

Run as ``python -m benchmarks.defects [--only TEXT] [--libraries] [--out reports/defects.md]``. The mechanisms are those
of ``benchmarks/corpus/``, audited one after the other in this process; with ``--libraries`` also those of real
libraries, each in a virtual environment of its own, which is made if it is not there.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from auditor.cli.attack import Attack, attack_on
from auditor.cli.corpus.audits import describe_finding, names_cause
from auditor.cli.corpus.page import shorten_cell
from auditor.datasets import RELATIONS
from auditor.results import AuditResult, Verdict
from auditor.targets import Mechanism
from auditor.targets.target_names import closing_target, target_named
from benchmarks.corpus.table import DEFECTS, LIBRARIES, NOT_YET, CorpusDefect, LibraryMechanism

#: Probability of a false alarm of each audit: all of the corpus together has one of 1e-4.
ALPHA = 1e-6
#: What the requirement allows for one defect, in seconds.
WANTED = 60.0
#: Longest text in a cell.
_WIDE = 80
#: Verdicts that accuse nobody.
SILENT = (Verdict.CONSISTENT, Verdict.INCONCLUSIVE)


@dataclass(frozen=True)
class DefectAudit:
    """One audit.

    Parameters
    ----------
    result : AuditResult
    seconds : float
        What it took.
    """

    result: AuditResult
    seconds: float


def attack(
    target: Mechanism, entry: CorpusDefect | LibraryMechanism, *, seed: int = 0, seconds: float | None = None
) -> DefectAudit:
    """Attack one version of an entry with the entry's budget in draws, and a budget in seconds if there is one."""
    begun = time.perf_counter()
    (relation,) = [name for name, kind in RELATIONS.items() if isinstance(entry.relation, kind)]
    asked = Attack(
        target=f"defects/{entry.name}",
        claim=str(entry.guarantee),
        relation=relation,
        domain=",".join(map(str, entry.values)),
        rows=entry.rows,
        alpha=ALPHA,
        draws=entry.draws,
        seconds=seconds,
        seed=seed,
    )
    _, result, _ = attack_on(target, asked, entry.guarantee, entry.relation, entry.values)
    return DefectAudit(result, time.perf_counter() - begun)


def names_the_cause(entry: CorpusDefect | LibraryMechanism, result: AuditResult) -> bool:
    """Whether what is said has one of the words that it is to have."""
    return not entry.cause or names_cause(entry.cause, describe_finding(result))


def caught(entry: CorpusDefect, result: AuditResult) -> bool:
    """Whether the defect was found."""
    return result.verdict in entry.verdicts


def document(only: str, libraries: bool) -> tuple[str, bool]:
    """The report, and whether all is as wanted: caught within a minute with its cause named, corrected versions not."""
    rows, good = [], True
    for entry in DEFECTS:
        if only in entry.name:
            found, clean = (attack(target, entry, seconds=WANTED) for target in (entry.broken, entry.corrected))
            right = (
                caught(entry, found.result)
                and names_the_cause(entry, found.result)
                and found.seconds <= WANTED
                and clean.result.verdict in SILENT
            )
            good = good and (right or entry.name in NOT_YET)
            rows.append(row(entry, found, clean, right))
    text = [
        "# Defects",
        "",
        f"{len(rows)} defective mechanisms and their corrected versions, each audited with alpha {ALPHA:g} and the "
        f"same budget of draws, with nothing told about the defect. Wanted: caught within {WANTED:g} s, the cause "
        "named, and the corrected version not flagged. Seconds depend on the machine; all else does not.",
        "",
        "| defect | verdict | seconds | draws | cause | on | corrected | resolves | as wanted |",
        "|---|---|---:|---:|---|---|---|---:|---|",
        *rows,
        "",
    ]
    missing = [f"- {name}: {why}" for name, why in NOT_YET.items() if only in name]
    text += ["## Not caught yet", "", *missing, ""] if missing else []
    if libraries:
        lines = [library_row(entry) for entry in LIBRARIES if only in entry.name]
        good = good and all(right for _, right in lines)
        text += [
            "## Mechanisms of libraries",
            "",
            "| mechanism | verdict | seconds | draws | cause | on | resolves | as wanted |",
            "|---|---|---:|---:|---|---|---:|---|",
            *[line for line, _ in lines],
            "",
        ]
    return "\n".join([*text, "Made by `python -m benchmarks.defects`.", ""]), good


def row(entry: CorpusDefect, found: DefectAudit, clean: DefectAudit, right: bool) -> str:
    """One line of the table of the corpus."""
    return (
        f"| {entry.name}: {entry.about} {_format_outcome(found)}| {clean.result.verdict} | {_level(clean.result)} "
        f"| {'yes' if right else 'no'} |"
    )


def library_row(entry: LibraryMechanism) -> tuple[str, bool]:
    """One line of the table of libraries, and whether it is as wanted."""
    with closing_target(target_named(entry.target)) as target:
        found = attack(target, entry, seconds=WANTED)
    if entry.cause:
        right = found.result.verdict == Verdict.VIOLATION and names_the_cause(entry, found.result)
    else:
        right = found.result.verdict in SILENT
    return f"| {entry.name} {_format_outcome(found)}| {_level(found.result)} | {'yes' if right else 'no'} |", right


def _format_outcome(outcome: DefectAudit) -> str:
    result, found = outcome.result, outcome.result.counterexample
    cause = on = ""
    if result.verdict not in SILENT:
        cause = shorten_cell(describe_finding(result), _WIDE)
    if found is not None:
        on = f"{shorten_cell(found.x, _WIDE)} against {shorten_cell(found.y, _WIDE)}"
    return f"| {result.verdict} | {outcome.seconds:.1f} | {result.draws:,} | {cause} | {on} "


def _level(result: AuditResult) -> str:
    level = result.resolves
    return "" if level is None or result.verdict not in SILENT else "none" if math.isinf(level) else f"{level:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if something is not as wanted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defects", description=__doc__)
    parser.add_argument("--only", default="", help="entries whose name contains this")
    parser.add_argument("--libraries", action="store_true", help="mechanisms of libraries too; installs them")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    options = parser.parse_args(arguments)
    text, good = document(options.only, options.libraries)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
