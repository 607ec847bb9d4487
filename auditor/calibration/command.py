"""The command `dpaudit calibrate`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from auditor.calibration.measure import Plan, count_rows, run_calibration
from auditor.calibration.rendering import format_lines, write_report
from auditor.errors import SpecificationError
from auditor.runs.progress import Progress
from auditor.runs.run import choose_jobs

#: Audits of each mechanism by each stopping rule, and draws of each: some five minutes of one core, and with --quick
#: some 25 seconds.
AUDITS, DRAWS = 60, 20_000
FEW, SHORT = 4, 4_000


class Rows(Progress):
    """Progress in rows of audits instead of claims."""

    def __enter__(self) -> Rows:
        """Begin."""
        if self.bar:
            self.bar.start()
        else:
            click.echo(f"calibrating: {self.total} rows of audits", err=True)
        self.begun = time.monotonic()
        return self

    def row(self, name: str, audits: int) -> None:
        """Count a row that is finished.

        Parameters
        ----------
        name : str
            Name of the row.
        audits : int
            How many audits it has.
        """
        self.done += 1
        if self.bar and self.task is not None:
            self.bar.update(self.task, completed=self.done, description=name)
        else:
            took = time.monotonic() - self.begun
            click.echo(f"[{self.done}/{self.total}] {audits} audits {took:6.1f} s  {name}", err=True)


def make_plan(audits: int | None, draws: int | None, quick: bool, alpha: float, seed: int, jobs: int | None) -> Plan:
    """Make the plan of the options.

    Parameters
    ----------
    audits : int or None
        Audits of each mechanism by each stopping rule; None is `AUDITS`, with ``quick`` `FEW`.
    draws : int or None
        Outputs an audit, both sides together; None is `DRAWS`, with ``quick`` `SHORT`.
    quick : bool
        Whether the defaults are those of a short calibration.
    alpha : float
        Level of each audit.
    seed : int
        Of all draws.
    jobs : int or None
        Worker processes; None is as many as there are cores.

    Raises
    ------
    SpecificationError
        If one of the numbers is out of range.
    """
    return Plan(
        audits=audits if audits is not None else FEW if quick else AUDITS,
        draws=draws if draws is not None else SHORT if quick else DRAWS,
        alpha=alpha,
        seed=seed,
        jobs=choose_jobs(jobs),
    )


def report_calibration(plan: Plan, out: Path | None) -> bool:
    """Measure, print and write; whether the auditor is sound.

    Parameters
    ----------
    plan : Plan
        What is measured.
    out : Path or None
        Folder for the report; None writes none.

    Raises
    ------
    SpecificationError
        If the report cannot be written.
    """
    with Rows(count_rows(plan)) as rows:
        content = run_calibration(plan, rows.row)
    for line in format_lines(content):
        click.echo(line)
    if out is not None:
        try:
            *_, page = write_report(content, out)
        except OSError as error:
            raise SpecificationError(f"cannot write to {str(out)!r}: {error}") from error
        click.echo(f"the report is in {out}: open {page}", err=True)
    return bool(content["sound"])
