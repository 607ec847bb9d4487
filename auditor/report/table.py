"""The table that the command line prints at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.report import words
from auditor.report.columns import TERMINAL, Column, columns_on
from auditor.report.view import ClaimView, RunView

#: Characters a line may take, if the ids can be shortened so far.
WIDTH = 160
#: Narrowest id: enough to tell the entry and the case.
NARROWEST = 44


def summary_table(results: Mapping[str, Any] | RunView) -> str:
    """Render a plain-text table, one line a claim, with totals.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.

    Returns
    -------
    str
        Lines, each with a line break. Unexpected claims begin with "!", findings that a baseline holds with "k"; a
        dash stands for what does not apply. Below stands, of unexpected claims, what a baseline's finding does not
        cover, and why nothing is decided and what to do about it; then what stands beside a violation, and which kinds
        of causes were left out.
    """
    run = RunView.of(results)
    columns = columns_on(TERMINAL)
    heads = [column.name for column in columns]
    rows = [[column.text(claim, "-") for column in columns] for claim in run.claims]
    widths = _widths(columns, [heads, *rows])
    lines = [_line("", heads, columns, widths), "  ".join("-" * width for width in (1, *widths))] if rows else []
    lines += [_line(_mark(claim), row, columns, widths) for claim, row in zip(run.claims, rows, strict=True)]
    notes = [
        f"! {words.one_line(claim.id)}: {_note(claim)}" for claim in run.unexpected if claim.new or claim.undecided
    ]
    notes += _left_out(run.claims)
    return "\n".join([*lines, *([""] if rows else []), *notes, *([""] if notes else []), _totals(run), ""])


def _mark(claim: ClaimView) -> str:
    return "k" if claim.known else "!" if claim.unexpected else ""


def _note(claim: ClaimView) -> str:
    """What a line of the table has no room for."""
    return ". ".join(filter(None, (claim.surprise if claim.new else "", claim.undecided)))


def _left_out(claims: Sequence[ClaimView]) -> list[str]:
    """Kinds of causes that were left out, with the number of claims, and what stands beside a violation."""
    counts = Counter(claim.ignored for claim in claims if claim.ignored)
    also = [f"{words.one_line(claim.id)}: {words.one_line(text)}" for claim in claims for text in claim.also]
    return [*also, *(f"{text} ({words.number_of(n, 'claim')})" for text, n in counts.items())]


def _widths(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[int]:
    """Widths of the columns; ids get what the others leave of a line."""
    longest = (max(map(len, cells)) for cells in zip(*rows, strict=True))
    widths = [min(width, column.widest or sys.maxsize) for width, column in zip(longest, columns, strict=True)]
    id_ = next(i for i, column in enumerate(columns) if column.name == "id")
    others = 1 + sum(widths) - widths[id_] + 2 * len(widths)  # with the mark, and two spaces before each column
    widths[id_] = min(widths[id_], max(NARROWEST, WIDTH - others))
    return widths


def _line(mark: str, cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    texts = [words.shorten_text(cell, width) for cell, width in zip(cells, widths, strict=True)]
    aligned = (
        text.rjust(width) if column.number else text.ljust(width)
        for text, column, width in zip(texts, columns, widths, strict=True)
    )
    return "  ".join([mark or " ", *aligned]).rstrip()


def _totals(run: RunView) -> str:
    total, unexpected = len(run.claims), len(run.unexpected)
    if not total:
        return "no claims"
    known = len(run.known)
    text = f"{words.number_of(total, 'claim')}: {total - unexpected - known:,} as expected, {unexpected:,} unexpected"
    return text + (" (marked !)" if unexpected else "") + (f", {known:,} known (marked k)" if known else "")
