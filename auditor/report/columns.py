"""Columns of the tables of claims, in the terminal, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from auditor.report import words
from auditor.report.view import ClaimView

TERMINAL, MARKDOWN, HTML = "terminal", "markdown", "html"
PAGES = (MARKDOWN, HTML)


@dataclass(frozen=True)
class Column:
    """A column of the tables of claims.

    Parameters
    ----------
    name : str
        Its head.
    value : callable
        From a `ClaimView` to what the column shows; None or "" where it does not apply.
    format : callable
        From such a value to its text.
    number : bool
        Whether the texts are numbers: aligned on the right, and sorted by size in HTML.
    on : tuple of str
        Outputs that have the column: ``TERMINAL``, ``MARKDOWN``, ``HTML``.
    sort : callable, optional
        From a `ClaimView` to the number by which the column is sorted in HTML, where its texts are none.
    widest : int, optional
        Most characters in the terminal.
    """

    name: str
    value: Callable[[ClaimView], Any]
    format: Callable[[Any], str] = str
    number: bool = False
    on: tuple[str, ...] = (TERMINAL, *PAGES)
    sort: Callable[[ClaimView], float | None] | None = None
    widest: int | None = None

    @property
    def numeric(self) -> bool:
        """Whether HTML sorts the column by size."""
        return self.number or self.sort is not None

    def text(self, claim: ClaimView, missing: str = "–") -> str:
        """Format a claim's cell, in one line.

        Parameters
        ----------
        claim : ClaimView
        missing : str
            What is shown where the column does not apply.
        """
        value = self.value(claim)
        return missing if value in (None, "") else words.one_line(self.format(value))


def _claimed_text(claim: ClaimView) -> str:
    # The id tells a claim of conformity; the name of the distribution needs the room.
    return claim.text("claimed").removeprefix("the distribution of " if claim.conformity else "")


def _expected_text(claim: ClaimView) -> str:
    failed = not claim.ok and claim.verdict == claim.expected
    return f"{claim.expected} (check failed)" if failed else claim.expected


def _claimed_level(claim: ClaimView) -> float | None:
    return None if claim.conformity else claim.number("claimed_level")


#: All columns, from left to right. Those of one name and several lines differ between outputs. Markdown and HTML mark
#: up the cells of "claim", "claimed" and "verdict".
COLUMNS = (
    Column("id", lambda claim: claim.id, on=(TERMINAL,)),
    Column("claim", lambda claim: claim.id, on=PAGES),
    Column("source", lambda claim: claim.source, on=(TERMINAL, MARKDOWN), widest=20),
    Column("claimed", _claimed_text, on=(TERMINAL,), widest=18),
    Column("claimed", lambda claim: claim.text("claimed"), on=PAGES, sort=_claimed_level),
    Column("exact", lambda claim: claim.number("exact"), words.format_level, number=True),
    Column("lower", lambda claim: claim.number("lower_bound"), words.format_level, number=True, on=(TERMINAL,)),
    Column("lower bound", lambda claim: claim.number("lower_bound"), words.format_level, number=True, on=PAGES),
    Column("reached", lambda claim: claim.reached, words.format_share, number=True),
    Column("resolves", lambda claim: claim.resolves, words.format_level, number=True),
    Column("ceiling", lambda claim: claim.ceiling, words.format_level, number=True),
    Column("draws", lambda claim: claim.draws or None, "{:,}".format, number=True),
    Column("verdict", lambda claim: claim.verdict),
    Column("expected", _expected_text, on=(TERMINAL,)),
    Column("expected", lambda claim: claim.expected, on=PAGES),
)


def columns_on(output: str) -> list[Column]:
    """List the columns of one output, from left to right."""
    return [column for column in COLUMNS if output in column.on]
