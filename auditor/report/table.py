"""What the command line prints at the end of a run: a table of claims, or a summary by entry."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.report import words
from auditor.report.columns import TERMINAL, Column, columns_on
from auditor.report.view import ClaimView, RunView
from auditor.results import Verdict

#: Characters a line may take, if the ids can be shortened so far.
WIDTH = 160
#: Claims of a run up to which each has a line; arbitrary, a screen.
FEW = 40
#: Narrowest id: enough to tell the entry and the case.
NARROWEST = 44


def summarize_run(results: Mapping[str, Any] | RunView, whole: bool = False) -> str:
    """Render what the terminal shows of a run.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.
    whole : bool
        List every claim, see `summary_table`. Otherwise a run of more than `FEW` has a line for each entry, and then
        one for each claim that is unexpected or that a baseline holds.
    """
    run = RunView.of(results)
    if whole or len(run.claims) <= FEW:
        return summary_table(run)
    lines = _count_by_entry(run)
    listed = [claim for claim in run.claims if claim.unexpected or claim.known]
    return "\n".join([*lines, "", *_rows(listed), *_notes(run), f"{_totals(run)}; --table lists each", ""])


def _count_by_entry(run: RunView) -> list[str]:
    """A line for each entry: how many claims came to which verdict, and how many are unexpected."""
    counted: dict[str, Counter[str]] = {}
    for claim in run.claims:
        own = counted.setdefault(claim.entry, Counter())
        own.update(["claims", claim.verdict, *(["unexpected"] if claim.unexpected else [])])
    there = set().union(*counted.values())
    heads = ["claims", *(verdict for verdict in Verdict if verdict in there), "unexpected"]
    width = max(len("entry"), *map(len, counted))
    lines = [f"  {'entry':<{width}}  {'  '.join(heads)}"]
    for entry, own in counted.items():
        cells = "  ".join(f"{own[head] or '-':>{len(head)}}" for head in heads)
        lines.append(f"{'!' if own['unexpected'] else ' '} {words.one_line(entry):<{width}}  {cells}")
    return lines


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
    return "\n".join([*_rows(run.claims), *_notes(run), _totals(run), ""])


def _rows(claims: Sequence[ClaimView]) -> list[str]:
    """A table of claims with its heads, and an empty line; nothing where there are none."""
    columns = columns_on(TERMINAL)
    heads = [column.name for column in columns]
    rows = [[column.text(claim, "-") for column in columns] for claim in claims]
    if not rows:
        return []
    widths = _widths(columns, [heads, *rows])
    lines = [_line("", heads, columns, widths), "  ".join("-" * width for width in (1, *widths))]
    lines += [_line(_mark(claim), row, columns, widths) for claim, row in zip(claims, rows, strict=True)]
    return [*lines, ""]


def _notes(run: RunView) -> list[str]:
    """What the lines of unexpected claims have no room for, and an empty line."""
    notes = [
        f"! {words.one_line(claim.id)}: {_note(claim)}" for claim in run.unexpected if claim.new or claim.undecided
    ]
    notes += _left_out(run.claims)
    return [*notes, ""] if notes else []


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
