"""Replay of draws on programs of which half are wrong: `python -m benchmarks.traced --out reports/traced.md`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from auditor import one_draw, trace
from auditor.results import AuditResult
from benchmarks.traced_programs import TracedProgram, list_traced


def is_judged_rightly(program: TracedProgram, result: AuditResult) -> bool:
    """Whether a right program is not accused, and a wrong one is for what is wrong with it, in the marked line.

    Parameters
    ----------
    program : TracedProgram
        The program.
    result : AuditResult
        What `trace` found.
    """
    accused = result.verdict in ("violation", "deviation")
    if not program.finding:
        return not accused and not result.checks
    places = [check["finding"] for check in result.checks if check["name"] == program.finding]
    named = program.line is None or any(f".py:{program.line}:" in place for place in places)
    return accused and bool(places) and named


def write_document(rows: Sequence[tuple[TracedProgram, AuditResult, float]]) -> str:
    """Write the report.

    Parameters
    ----------
    rows : sequence
        Programs with results and seconds.
    """
    wrong = sum(bool(program.finding) for program, *_ in rows)
    failed = [program.name for program, result, _ in rows if not is_judged_rightly(program, result)]
    lines = [
        "# Replay of draws",
        "",
        f"{len(rows)} programs, of which {wrong} are wrong, each on one pair of datasets (`dpaudit trace`). "
        f"{len(rows) - len(failed)} are judged rightly: no right one is accused, and a wrong one is for what is wrong "
        "with it, in the right line where one is to blame"
        + (f"; not so: {', '.join(failed)}" if failed else "")
        + f". The slowest took {max(seconds for *_, seconds in rows):.2f} s.",
        "",
        "A violation is certified, by enumeration or by bets on fresh draws; a deviation is not.",
        "",
        "| program | claim | wrong | verdict | findings | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for program, result, seconds in rows:
        found = "; ".join(f"{check['name']} ({check['finding'].partition(': ')[0]})" for check in result.checks)
        mark = "" if is_judged_rightly(program, result) else " (wrongly)"
        lines.append(
            f"| {program.name} | {result.claimed} | {program.finding or '-'} | {result.verdict}{mark} | {found or '-'} "
            f"| {seconds:.2f} |"
        )
    return "\n".join([*lines, ""])


def main() -> int:
    """Trace all programs, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traced", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("reports/traced.md"), help="Markdown file to write")
    options = parser.parse_args()
    rows = []
    for program in list_traced():
        begun = time.perf_counter()
        result = trace(one_draw(program.function), program.claim, program.pair)
        rows.append((program, result, time.perf_counter() - begun))
    options.out.write_text(write_document(rows), encoding="utf-8")
    return 0 if all(is_judged_rightly(program, result) for program, result, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
