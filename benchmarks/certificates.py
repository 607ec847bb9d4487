"""Certificates of programs with a known verdict: `python -m benchmarks.certificates --out reports/certificates.md`."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from auditor import one_draw, prove
from auditor.results import AuditResult
from benchmarks.certified_programs import Program, list_programs

#: Levels with a formula have to be met to within this.
WITHIN = 1e-6
#: A level without a bound shows as one above this, where tails were cut.
UNBOUNDED = 15.0
#: Seconds that a program may take.
SECONDS = 70.0


def certify(program: Program, seconds: float = SECONDS) -> AuditResult:
    """Certify a program on its domain.

    Parameters
    ----------
    program : Program
        The program.
    seconds : float
        Time.
    """
    return prove(
        one_draw(program.function),
        program.claim,
        relation=program.relation,
        domain=list(program.domain.values),
        rows=program.domain.rows,
        min_rows=program.domain.least,
        seconds=seconds,
        units=program.units,
        id=f"prove/L0/{program.claim.notion.replace(' ', '_')}/{program.name.replace(' ', '_')}",
    )


def is_as_known(program: Program, result: AuditResult) -> bool:
    """Whether verdict and level are the known ones.

    Parameters
    ----------
    program : Program
        Says what is known.
    result : AuditResult
        What was found.
    """
    if result.verdict != program.expected or result.exact is None:
        return False
    if program.level is None:
        return True
    if math.isinf(program.level):
        return result.exact > UNBOUNDED
    return abs(result.exact - program.level) <= WITHIN


def write_document(rows: Sequence[tuple[Program, AuditResult, float]]) -> str:
    """Write the report.

    Parameters
    ----------
    rows : sequence
        Programs with results and seconds.
    """
    wrong = [program.name for program, result, _ in rows if not is_as_known(program, result)]
    slowest = max(seconds for *_, seconds in rows)
    lines = [
        "# Certificates",
        "",
        f"{len(rows)} programs whose verdict is known, by theorem or published counterexample, on all neighbouring "
        f"datasets of a small domain (`dpaudit prove`). {len(rows) - len(wrong)} are judged as known"
        + (f"; wrong: {', '.join(wrong)}" if wrong else "")
        + f". The slowest took {slowest:.1f} s. Programs that begin with CheckDP are those of Wang, Ding, Kifer and "
        "Zhang (2020) with geometric noise.",
        "",
        "Level: what the walk found; for a violation a lower bound, else an upper one, to within 1e-9 where tails are "
        "cut. Known: by a formula, to be met to within 1e-6; inf has to show as more than 15.",
        "",
        "| program | claim | verdict | level | known | datasets | pairs | paths | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for program, result, seconds in rows:
        known = "-" if program.level is None else f"{program.level:.6g}"
        mark = "" if is_as_known(program, result) else " (wrong)"
        lines.append(
            f"| {program.name} | {result.claimed} | {result.verdict}{mark} | {result.exact:.6g} | {known} "
            f"| {result.record['datasets']:,} | {result.record['neighbours']:,} | {result.record['paths']:,} "
            f"| {seconds:.2f} |"
        )
    return "\n".join([*lines, ""])


def main() -> int:
    """Certify all programs, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--only", default="", help="programs whose name holds this text")
    parser.add_argument("--out", type=Path, default=Path("reports/certificates.md"), help="Markdown file to write")
    options = parser.parse_args()
    programs = [program for program in list_programs() if options.only in program.name]
    if not programs:
        parser.error(f"no program has {options.only!r} in its name")
    rows = []
    for program in programs:
        begun = time.perf_counter()
        result = certify(program)
        rows.append((program, result, time.perf_counter() - begun))
        print(f"{program.name}: {result.verdict}, {rows[-1][2]:.2f} s", flush=True)
    options.out.write_text(write_document(rows), encoding="utf-8")
    return 0 if all(is_as_known(program, result) for program, result, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
