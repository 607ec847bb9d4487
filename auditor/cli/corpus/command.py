"""`dpaudit corpus`: real defects of released libraries, confirmed by counting, and what auditors find in them."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import click

from auditor.cli.commands import GivenPath, print_notices

_FOLDER = click.argument("folder", type=GivenPath(), default=Path("corpus"))
_ONLY = click.option("-k", "text", default="", metavar="TEXT", help="Cases whose name contains this.")


@click.group(short_help="List, confirm and audit real defects of libraries.")
def corpus() -> None:
    """Real defects of released libraries: list them, confirm them by counting, and let auditors find them.

    FOLDER holds a file for each case (see CONTRIBUTING.md); the default is the folder "corpus" of a checkout. Each
    library is installed into an environment of its own, once, and kept.
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
        level = "control" if case.is_control else "unbounded" if math.isinf(case.level) else f"level {case.level:.4g}"
        click.echo(f"{case.name:<{width}}  {case.family:<29}  {case.guarantee}  {level:<12}  {case.requires}")
    controls = sum(case.is_control for case in cases)
    click.echo(f"{len(cases) - controls} cases, {controls} controls")


@corpus.command("confirm")
@_FOLDER
@_ONLY
def confirm(folder: Path, text: str) -> None:
    """Confirm by counting, or by the case's exact computation, that each defect is there and mended where it says so.

    The event is written in the case's file. The limits are those of Clopper and Pearson, at confidence 1 - 1e-6.

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
        click.echo(f"{case.name}: {case.guarantee}; {found}: {'confirmed' if found.refuted else 'NOT CONFIRMED'}")
        if case.fixed:
            mended = confirm_case(case, fixed=True, tell=lambda line: print_notices([line]))
            good = good and not mended.refuted
            words = "NOT MENDED" if mended.refuted else "not refuted"
            click.echo(f"{case.name}, {case.fixed}: {mended}: {words}")
    sys.exit(0 if good else 1)
