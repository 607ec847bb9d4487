"""`dpaudit corpus`: real defects of released libraries, confirmed by counting, and what auditors find in them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.cli.commands import GivenPath, print_notices
from auditor.cli.terminal import print_text

if TYPE_CHECKING:
    from auditor.cli.corpus.cases import LibraryCase

_FOLDER = click.argument("folder", type=GivenPath(), default=Path("corpus"))
_ONLY = click.option("-k", "text", default="", metavar="TEXT", help="Cases whose name contains this.")
_OUT = click.option(
    "--out",
    type=GivenPath(file_okay=False),
    default=Path("out/corpus"),
    show_default=True,
    help="Folder of the results.",
)

#: What makes the matrix.
_MADE = "Made by `dpaudit corpus run`."


@click.group(short_help="List, confirm and audit real defects of libraries.")
def corpus() -> None:
    """Audit real defects of released libraries.

    FOLDER holds a file for each case (see CONTRIBUTING.md); the default is the folder "corpus" of a checkout. Each
    library is installed once, into an environment of its own that is reused.
    """


@corpus.command("list")
@_FOLDER
@_ONLY
def list_cases(folder: Path, text: str) -> None:
    """List the cases and controls.

    Exit codes: 0 listed; 2 a file cannot be read.
    """
    from auditor.cli.corpus.cases import find_cases

    cases = find_cases(folder, text)
    width = max(len(case.name) for case in cases)
    for case in cases:
        level = "control" if case.is_control else case.shown_level
        print_text(f"{case.name:<{width}}  {case.family:<29}  {case.guarantee}  {level:<9}  {case.requires}")
    controls = sum(case.is_control for case in cases)
    print_text(f"{len(cases) - controls} cases, {controls} controls")


@corpus.command("confirm")
@_FOLDER
@_ONLY
def confirm(folder: Path, text: str) -> None:
    """Confirm by counting that each defect is there.

    A fixed release must not show it. A case may have an exact computation instead of an event. The event is written in
    the case's file. The limits are those of Clopper and Pearson, at confidence 1 - 1e-6.

    Exit codes: 0 all are confirmed; 1 one is not; 2 a case or its library fails.
    """
    from auditor.cli.corpus.cases import find_cases
    from auditor.cli.corpus.confirm import confirm_case

    good = True
    for case in find_cases(folder, text):
        if case.is_control:
            continue
        found = confirm_case(case, tell=lambda line: print_notices([line]))
        good = good and found.refuted
        print_text(f"{case.name}: {case.guarantee}; {found}: {'confirmed' if found.refuted else 'NOT CONFIRMED'}")
        if case.fixed:
            mended = confirm_case(case, fixed=True, tell=lambda line: print_notices([line]))
            good = good and not mended.refuted
            words = "NOT MENDED" if mended.refuted else "not refuted"
            print_text(f"{case.name}, {case.fixed}: {mended}: {words}")
    sys.exit(0 if good else 1)


@corpus.command("run")
@_FOLDER
@_ONLY
@click.option("--only", "names", multiple=True, metavar="METHOD", help="Only this method; may be given several times.")
@click.option("--max-seconds", type=float, default=60.0, show_default=True, help="Largest budget on a crafted pair.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Cases at a time.")
@_OUT
def run(folder: Path, text: str, names: tuple[str, ...], max_seconds: float, jobs: int, out: Path) -> None:
    """Audit each case by each method, and write the matrix to corpus.md.

    The methods are: blind, pair 10 s, pair 60 s, pair 600 s, fixed. A run that was interrupted goes on where it was;
    an audit is made again when the case's file or dpaudit has changed.

    Exit codes: 0 all audits were made; 2 a case cannot be read.
    """
    from auditor.cli.corpus.audits import audit_cases, methods_within
    from auditor.cli.corpus.cases import find_cases

    methods = methods_within(max_seconds, names)
    cases = find_cases(folder, text)
    for number, audit in enumerate(audit_cases(cases, methods, out, jobs), 1):
        print_text(f"{number:>4}  {audit.case}, {audit.method}: {audit.verdict}, {audit.seconds:.1f} s", err=True)
    print_text(str(write_matrix(cases, out, out / "corpus.md")))


@corpus.command("report")
@_FOLDER
@_ONLY
@_OUT
def report(folder: Path, text: str, out: Path) -> None:
    """Write the matrix of what `dpaudit corpus run` has found so far.

    Exit codes: 0 written; 2 there are no results.
    """
    from auditor.cli.corpus.cases import find_cases

    print_text(str(write_matrix(find_cases(folder, text), out, out / "corpus.md")))


def write_matrix(cases: Sequence[LibraryCase], out: Path, page: Path, about: str = _MADE) -> Path:
    """Write the matrix of the finished audits.

    Parameters
    ----------
    cases : sequence of LibraryCase
        Its rows.
    out : Path
        Folder of the finished audits.
    page : Path
        Markdown file to write.
    about : str
        What made them.

    Raises
    ------
    SpecificationError
        If there are none.
    """
    import os
    import platform

    import numpy as np
    import scipy

    from auditor.cli.corpus.audits import NAME, hash_case, read_audits
    from auditor.cli.corpus.page import write_page
    from auditor.errors import SpecificationError

    now = {case.name: hash_case(case) for case in cases}
    audits = read_audits(out / NAME)
    if not audits:
        raise SpecificationError(f"no results in {str(out)!r}; `dpaudit corpus run` makes them")
    current = [audit for audit in audits if audit.case in now and audit.source.startswith(now[audit.case])]
    old = sum(audit.case in now for audit in audits) - len(current)
    if old:
        print_notices([f"{old} audits of other versions of the cases or of dpaudit are left out"])
    about = (
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, {os.cpu_count()} "
        f"cores. {about} Seconds depend on the machine, and draws where seconds end an audit."
    )
    page.write_text(write_page(cases, current, about), encoding="utf-8")
    return page
