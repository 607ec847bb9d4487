"""The report as Markdown, for a comment on a change or a page of a repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.report import theorems, words
from auditor.report.columns import MARKDOWN, Column, columns_on
from auditor.report.errata import ErratumView, list_errata
from auditor.report.explain import explain_verdict
from auditor.report.view import ClaimView, RunView

#: Characters that Markdown or HTML might take for markup.
_SPECIAL = re.compile(r"([\\`*_\[\]#|~<>&])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def render_markdown(results: Mapping[str, Any] | RunView) -> str:
    """Render results as GitHub-flavoured Markdown.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.

    Returns
    -------
    str
        Summary, unexpected results, counterexamples, all claims and errata.
    """
    run = RunView.of(results)
    lines = ["# Audit of differential-privacy claims", "", f"**{escape_markdown(run.sentence)}**", ""]
    if run.interrupted:
        lines += [f"**{escape_markdown(run.interrupted)}**", ""]
    if run.claims:
        columns = 4 if run.known else 3
        header = ["verdict", "as expected", "unexpected", "known"][:columns]
        lines += _table(header, [list(map(str, row[:columns])) for row in run.counts], numbers={1, 2, 3})
    lines += [
        "A pass means “not refuted”; a pass never means private. The report shows what each could have caught.",
        "",
    ]
    titles = run.results.get("documents") or {}
    if titles:
        lines += [*(f"- {escape_markdown(name)}: {escape_markdown(str(title))}" for name, title in titles.items()), ""]
    if run.unexpected:
        lines += ["## Unexpected", ""]
        lines += [line for claim in run.unexpected for line in _finding(claim)]
    if run.known:
        lines += ["## Known findings", "", "A baseline lists these, with a reason. They do not make the run fail.", ""]
        lines += [line for claim in run.known for line in _finding(claim)]
    for _, title, claims in run.caught:
        lines += [f"## {title}", ""]
        lines += [line for claim in claims for line in _finding(claim)]
    if run.claims:
        lines += ["## All claims", "", *_claims(run)]
    if theorems.tabulate_theorems(run):
        lines += ["## Theorems", "", *theorems_table(run)]
    wrong = errata_table(run)
    if wrong:
        about = "These statements are wrong in the copies of the documents that we have; claims in this report show it."
        lines += ["## Errata", "", about, "", *wrong]
    lines += ["## Manifest", "", *_manifest(run)]
    return "\n".join(lines).rstrip() + "\n"


def escape_markdown(text: str) -> str:
    """Escape text for one line of Markdown."""
    return _SPECIAL.sub(lambda found: _ENTITIES.get(found[1], "\\" + found[1]), words.one_line(text))


def format_code(text: str) -> str:
    """Format text as code.

    It is fenced by more backticks than it has in a row; not for tables, whose cells end at a pipe.
    """
    line = words.one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def format_block(language: str, lines: Iterable[str]) -> list[str]:
    """Format lines as a block of code.

    None of them can end it.
    """
    inside = list(lines)
    fence = "`" * max(3, 1 + max((len(run) for line in inside for run in re.findall("`+", line)), default=0))
    return [f"{fence}{language}", *inside, fence]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> list[str]:
    right = set(numbers)
    rule = ["---:" if i in right else "---" for i in range(len(header))]
    return ["| " + " | ".join(row) + " |" for row in (header, rule, *rows)] + [""]


def _finding(claim: ClaimView) -> list[str]:
    about = ", ".join(text for text in (claim.source, claim.text("mechanism"), claim.text("claimed")) if text)
    lines = [f"### {escape_markdown(claim.id)}", "", escape_markdown(about), ""]
    if claim.known:
        lines += [f"**Known: {escape_markdown(claim.known)}** ({escape_markdown(claim.surprise)})", ""]
    elif claim.surprise:
        lines += [f"**Unexpected: {escape_markdown(claim.surprise)}.**", ""]
    lines += [line for part in explain_verdict(claim) for line in (escape_markdown(part), "")]
    found = claim.counterexample
    if found is not None:
        lines += [f"- cause: {escape_markdown(found['cause'])}"] if found.get("cause") else []
        lines += [
            f"- pair: {escape_markdown(found['pair'])}",
            f"- x: {format_code(found['x'])}",
            f"- x′: {format_code(found['y'])}",
        ]
        lines += [f"- shrunk: {escape_markdown(found['shrunk'])}"] if found.get("shrunk") else []
    elif claim.level == "L0" and claim.text("pair"):
        lines.append(f"- pair: {escape_markdown(claim.text('pair'))}")
    return [*lines, f"- replay: {format_code(claim.replay)}", ""]


def _claims(run: RunView) -> list[str]:
    columns = columns_on(MARKDOWN)
    rows = [[_cell(column, claim) for column in columns] for claim in run.claims]
    numbers = [i for i, column in enumerate(columns) if column.number]
    return _table([column.name for column in columns], rows, numbers)


def _cell(column: Column, claim: ClaimView) -> str:
    if column.name != "verdict":
        return escape_markdown(column.text(claim))
    verdict = f"**{claim.verdict}, unexpected**" if claim.unexpected else claim.said
    verdict = f"{verdict}, known" if claim.known else verdict
    return f"{verdict} ({escape_markdown(claim.ignored)})" if claim.ignored else verdict


def theorems_table(run: RunView) -> list[str]:
    """Build the lines of the table of accuracy claims.

    They have the claim, the finding, and what would have refuted it.
    """
    header = ["claim", "source", *theorems.HEADS]
    rows = [
        [escape_markdown(claim.id), escape_markdown(claim.source) or "–", *map(escape_markdown, row)]
        for claim, row in theorems.tabulate_theorems(run)
    ]
    return _table(header, rows)


def errata_table(run: RunView) -> list[str]:
    """Build the table of errata; empty if the claims show none."""
    shown = list_errata(run.results.get("errata") or [], run.claims)
    header = ["id", "place", "stated", "class", "what fails", "by how much", "shown by", "correction"]
    return _table(header, [_erratum(erratum) for erratum in shown]) if shown else []


def _erratum(erratum: ErratumView) -> list[str]:
    evidence = ", ".join(escape_markdown(claim.id) for claim in erratum.wrong)
    right = escape_markdown(erratum.text("correction"))
    if erratum.right:
        checked = "not refuted" if erratum.held else "not confirmed here"
        right += f" ({checked}: {', '.join(escape_markdown(claim.id) for claim in erratum.right)})"
    texts = (erratum.label, erratum.place, erratum.text("summary"), erratum.kind, erratum.text("fails"))
    return [*(escape_markdown(text) for text in texts), escape_markdown("; ".join(erratum.how_much)), evidence, right]


def _manifest(run: RunView) -> list[str]:
    return [f"- {escape_markdown(label)}: {format_code(value)}" for label, value in words.flatten_value(run.manifest)]
