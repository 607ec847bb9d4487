"""The table that the command line prints at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.report import words
from auditor.report.view import ClaimView, RunView

#: Characters a line may take, if the ids can be shortened so far.
WIDTH = 160
#: Narrowest id: enough to tell the entry and the case.
NARROWEST = 44
#: Widest source and claim: more belongs into the report.
CAPS = {"source": 20, "claimed": 18}

#: The lower bound has a short name here, for the sake of the ids.
HEADER = (
    "",
    "id",
    "source",
    "claimed",
    "exact",
    "lower",
    "reached",
    "resolves",
    "ceiling",
    "draws",
    "verdict",
    "expected",
)
#: Columns of numbers, which are aligned on the right.
RIGHT = range(4, 10)


def summary_table(results: Mapping[str, Any] | RunView) -> str:
    """Plain-text table, one line a claim, with a line of totals.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.

    Returns
    -------
    str
        Lines, each with a line break. Unexpected claims begin with "!", findings that a baseline holds with "k"; a
        dash stands for what does not apply. Below stands, of unexpected claims, what a baseline's finding does not
        cover, and why nothing is decided and what to do about it.
    """
    run = RunView.of(results)
    rows = [_row(claim) for claim in run.claims]
    widths = [max(1, *(len(row[i]) for row in [list(HEADER), *rows])) for i in range(len(HEADER))]
    for name, cap in CAPS.items():
        widths[HEADER.index(name)] = min(widths[HEADER.index(name)], cap)
    others = sum(widths) - widths[1] + 2 * (len(widths) - 1)
    widths[1] = min(widths[1], max(NARROWEST, WIDTH - others))
    lines = [_line(list(HEADER), widths), "  ".join("-" * width for width in widths)] if rows else []
    lines += [_line(row, widths) for row in rows]
    notes = [
        f"! {words.one_line(claim.id)}: {_note(claim)}" for claim in run.unexpected if claim.new or claim.undecided
    ]
    return "\n".join([*lines, *([""] if rows else []), *notes, *([""] if notes else []), _totals(run), ""])


def _row(claim: ClaimView) -> list[str]:
    exact, lower, resolves, ceiling = (
        words.level(claim.number(key), "-") for key in ("exact", "lower_bound", "resolves", "ceiling")
    )
    levels = [exact, lower, words.share(claim.reached, "-"), resolves, ceiling]
    expected = claim.expected
    if not claim.ok and claim.verdict == claim.expected:
        expected += " (check failed)"
    # The id says that this is a claim of conformity; the law's name needs the room.
    claimed = claim.text("claimed").removeprefix("the law of " if claim.conformity else "")
    texts = [claim.id, claim.source or "-", claimed or "-"]
    return [
        "k" if claim.known else "!" if claim.unexpected else "",
        *(words.one_line(text) for text in texts),
        *levels,
        f"{claim.draws:,}" if claim.draws else "-",
        claim.verdict,
        expected,
    ]


def _note(claim: ClaimView) -> str:
    """What a line of the table has no room for."""
    return ". ".join(filter(None, (claim.surprise if claim.new else "", claim.undecided)))


def _line(cells: list[str], widths: list[int]) -> str:
    texts = [words.shorten(cell, width) for cell, width in zip(cells, widths, strict=True)]
    padded = [t.rjust(w) if i in RIGHT else t.ljust(w) for i, (t, w) in enumerate(zip(texts, widths, strict=True))]
    return "  ".join(padded).rstrip()


def _totals(run: RunView) -> str:
    total, unexpected = len(run.claims), len(run.unexpected)
    if not total:
        return "no claims"
    known = len(run.known)
    text = f"{words.number_of(total, 'claim')}: {total - unexpected - known:,} as expected, {unexpected:,} unexpected"
    return text + (" (marked !)" if unexpected else "") + (f", {known:,} known (marked k)" if known else "")
