"""Progress of a run, as a terminal shows it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from auditor.errors import has_library
from auditor.report.words import escape_controls
from auditor.results import AuditResult

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

#: Runs of up to so many claims write a line for each of them where there is no terminal; arbitrary, a screen.
FEW = 40
#: Seconds between two lines of a longer run; arbitrary, 120 lines in ten minutes.
APART = 5.0


class Progress:
    """Progress on standard error.

    A bar on a terminal. Elsewhere a line a claim in a short run, and in a longer one a line every few seconds and one
    for each surprise.

    Parameters
    ----------
    total : int
        Claims of the run.
    done : int
        Those that an earlier run has finished.
    """

    def __init__(self, total: int, done: int = 0) -> None:
        self.total, self.done, self.surprises = total, done, 0
        self.bar: Bar | None = _make_bar()
        self.task = self.bar.add_task("", total=total, completed=done) if self.bar else None
        self.told = time.monotonic()

    def __enter__(self) -> Progress:
        if self.bar:
            self.bar.start()
        else:
            left = self.total - self.done
            click.echo(f"auditing {left} claim{'s' * (left != 1)}", err=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def advance(self, result: AuditResult, took: float) -> None:
        """Count a claim that is finished.

        Parameters
        ----------
        result : AuditResult
            Its result.
        took : float
            Seconds that it took.
        """
        self.done += 1
        self.surprises += not (result.ok or result.known)
        if self.bar and self.task is not None:
            unexpected = f", {self.surprises} unexpected" if self.surprises else ""
            # Ids may hold what rich takes for markup.
            from rich.markup import escape

            description = escape(escape_controls(f"{result.verdict}: {result.id}{unexpected}"))
            self.bar.update(self.task, completed=self.done, description=description)
        else:
            mark = "" if result.ok else "  known" if result.known else "  UNEXPECTED"
            mark += f", new to the baseline: {result.new}" if result.new else ""
            due = self.total <= FEW or self.done == self.total or time.monotonic() - self.told >= APART
            if not due and (result.ok or result.known):
                return
            self.told = time.monotonic()
            line = f"[{self.done}/{self.total}] {result.verdict:<12} {took:6.1f} s  {result.id}{mark}"
            click.echo(escape_controls(line), err=True)


def _make_bar() -> Bar | None:
    """A bar of progress; None where there is no terminal, or no library to draw it."""
    if not sys.stderr.isatty() or not has_library("rich"):
        return None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Bar(*columns, console=console, transient=True) if console.is_terminal else None
