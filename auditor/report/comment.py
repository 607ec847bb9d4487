"""A summary that fits into a comment on a change, or into the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from auditor.report import words
from auditor.report.explain import summarize_finding
from auditor.report.markdown import escape_markdown, format_code
from auditor.report.view import ClaimView, RunView

#: First line of a comment, by which a job finds its own again to replace it.
MARK = "<!-- dpaudit -->"
#: GitHub refuses comments of more than 65,536 characters; counted here in bytes of UTF-8, which are never fewer.
LIMIT = 65_000
#: Bytes that are left for what follows the list of findings.
_TAIL = 1_000
#: Longest id, sentence and line of replay, in characters; arbitrary, all usual ones are shorter.
_ID, _GIST, _REPLAY = 300, 600, 1_000


def render_comment(results: Mapping[str, Any], limit: int = LIMIT) -> str:
    """Render results as a short comment in GitHub-flavoured Markdown.

    Parameters
    ----------
    results : mapping
        Parsed content of results.json.
    limit : int
        Most bytes, of UTF-8; at least 2,000. What does not fit is counted, not shown.

    Returns
    -------
    str
        The run in one sentence, how many claims have which verdict, and of each unexpected result what it is, where its
        mechanism stands, and how to see it again.
    """
    if limit < 2 * _TAIL:
        raise ValueError(f"limit must be at least {2 * _TAIL} bytes, got {limit}")
    run = RunView.of(results)
    lines = [MARK, f"### dpaudit: {_heading(run)}", "", escape_markdown(run.sentence), ""]
    if run.interrupted:
        lines += [f"**{escape_markdown(run.interrupted)}**", ""]
    if run.claims:
        lines += [*_counts(run), ""]
    room = limit - _TAIL - _size(lines)
    for shown, line in enumerate(map(_finding, run.unexpected)):
        room -= _size([line])
        if room < 0:
            hidden = len(run.unexpected) - shown
            lines.append(f"- … and {hidden:,} more, for which there is no room here: see report.md or report.html")
            break
        lines.append(line)
    lines += [""] if run.unexpected else []
    lines.append("A pass means “not refuted”, never “private”. The report shows what each pass could have caught.")
    about = ", ".join(_describe_run(run))
    lines += [f"<sub>{about}</sub>"] if about else []
    return "\n".join(lines) + "\n"


def _heading(run: RunView) -> str:
    if run.unexpected:
        return f"{len(run.unexpected):,} unexpected of {words.number_of(len(run.claims), 'claim')}"
    if run.interrupted:
        return "interrupted"
    return f"nothing unexpected in {words.number_of(len(run.claims), 'claim')}" if run.claims else "nothing was audited"


def _counts(run: RunView) -> list[str]:
    columns = 4 if run.known else 3
    rows = [["verdict", "as expected", "unexpected", "known"], ["---", "---:", "---:", "---:"]]
    rows += [list(map(str, row)) for row in run.counts]
    return ["| " + " | ".join(row[:columns]) + " |" for row in rows]


def _finding(claim: ClaimView) -> str:
    """One line: what it is, where, why, and how to see it again."""
    where = next((place for place in _source_places(claim) if place), None)
    replay = claim.replay if len(claim.replay) <= _REPLAY else "see the report: the line is too long for a comment"
    parts = [
        f"**{escape_markdown(claim.surprise or claim.verdict)}**: {format_code(words.shorten_text(claim.id, _ID))}",
        *([f"at {format_code(where)}"] if where else []),
        _without_markup(words.shorten_text(_summarise_finding(claim), _GIST)),
        f"replay: {format_code(replay)}",
    ]
    return "- " + "; ".join(part for part in parts if part)


def _source_places(claim: ClaimView) -> Iterator[str]:
    """File and line of the mechanism, then of the claim."""
    places: Mapping[str, Any] = claim.raw.get("places") or {}
    for name in ("mechanism", "claim"):
        if places.get(name):
            yield f"{places[name]['file']}:{places[name]['line']}"


def _summarise_finding(claim: ClaimView) -> str:
    """What was found, in a few words."""
    if claim.undecided:
        return claim.undecided
    found = claim.counterexample
    if found is None:
        return summarize_finding(claim) or claim.text("message")
    parts = [f"claimed {claim.text('claimed')}"]
    bound = claim.number("lower_bound")
    if bound is not None:
        parts.append(
            f"certified {claim.symbol} of at least {words.format_level(bound)} on {words.one_line(found['pair'])}"
        )
    return ", ".join([*parts, f"cause: {found['cause']}"] if found.get("cause") else parts)


def _describe_run(run: RunView) -> Iterator[str]:
    """What the run was, for the last line."""
    for label, key in (("dpaudit", "dpaudit"), ("level", "level"), ("seed", "seed"), ("alpha", "alpha")):
        if run.manifest.get(key) is not None:
            yield f"{label} {_without_markup(words.shorten_text(words.format_scalar(run.manifest[key]), 60))}"


def _without_markup(text: str) -> str:
    """Text without markup, and with a space of no width where it would call people: it may come from the target."""
    return escape_markdown(text).replace("@", "@\u200b")


def _size(lines: list[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
