"""One finding as a page for the maintainer of what was audited."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from auditor.privacy.guarantees import NOTIONS
from auditor.report import words
from auditor.report.explain import describe_counterexample, describe_verdict
from auditor.report.markdown import escape_markdown, format_block, format_code
from auditor.report.view import ClaimView, RunView
from auditor.results import FLAGGED, NOT_SHOWN, choose_id

#: A place in a file, as replays name it.
_PLACE = re.compile(r"[^\s:]+\.py:\d+")


def choose_finding(results: Mapping[str, Any] | RunView, part: str) -> ClaimView:
    """Find the finding whose id is, or alone contains, a text.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.
    part : str
        An id, or a part of it.

    Raises
    ------
    SpecificationError
        If there is none, or several.
    """
    flagged = {claim.id: claim for claim in RunView.of(results).claims if claim.verdict in FLAGGED}
    return flagged[choose_id(list(flagged), part, "violations and deviations")]


def render_maintainer_page(results: Mapping[str, Any] | RunView, claim: ClaimView, file: str, program: str) -> str:
    """Render one finding for the maintainer of what was audited.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.
    claim : ClaimView
        The finding, see `choose_finding`.
    file : str
        Name of the results.json, for the commands.
    program : str
        Program that shows the finding; empty if there is none.

    Returns
    -------
    str
        Markdown. It asks whether the behaviour is meant, since an audit does not know.
    """
    run = RunView.of(results)
    target = str(run.manifest.get("target") or claim.text("mechanism") or claim.entry)
    title = f"{_name(target)}: is {claim.text('claimed') or 'its distribution'} meant to hold here?"
    lines = [
        f"# {escape_markdown(title)}",
        "",
        "An audit by dpaudit found what is below. It says nothing about other calls, and it does not know what is "
        "meant: a claim that was read wrongly, or data outside its domain, would explain it as well.",
        "",
        *_section("What was expected", _expect(run, claim)),
        *_section("What was seen", _see(claim)),
        *_section("Where it may be", _locate(claim, target)),
    ]
    if program:
        lines += ["## A program that shows it", "", *format_block("python", program.rstrip("\n").split("\n")), ""]
    lines += ["## How to see it again", "", *format_block("console", _replay(claim, file)), ""]
    installed = _list_installed(run)
    if installed:
        lines += ["The environment had", "", *format_block("text", installed), ""]
    return "\n".join(
        [
            *lines,
            "## Before this is published",
            "",
            "What reveals data of people goes to the maintainers first, by the private channel that the project names "
            "(SECURITY.md, or the advisory form of its host), with time to answer and to release. What is known "
            "already, or concerns a version that is no longer maintained, may go to the public tracker.",
            "",
            f"Made by dpaudit {escape_markdown(str(run.manifest.get('dpaudit') or ''))} from {escape_markdown(file)}.",
            "",
        ]
    )


def _list_installed(run: RunView) -> list[str]:
    """Pinned requirements of the target's environment; none if it ran in dpaudit's own."""
    installed = run.manifest.get("environment")
    if not isinstance(installed, Mapping):
        return []
    return [f"{name}=={version}" for name, version in sorted(installed.items()) if name not in ("pip", "setuptools")]


def _name(target: str) -> str:
    """The function, without the path to it."""
    return target.rpartition("/")[2] if target.startswith("pip:") or ".py:" in target else target


def _section(title: str, sentences: Iterator[str]) -> list[str]:
    return [f"## {title}", "", *[f"- {sentence}" for sentence in sentences if sentence], ""]


def _expect(run: RunView, claim: ClaimView) -> Iterator[str]:
    relation = str(run.manifest.get("relation") or "")
    yield f"Claim: {escape_markdown(claim.text('claimed') or claim.text('title'))}" + (
        f", for datasets that differ by {format_code(relation)}." if relation else "."
    )
    if claim.source and (claim.raw.get("source") or {}).get("document") != "command line":
        yield f"Stated in {escape_markdown(claim.source)}."
    if claim.conformity:
        yield "Outputs were to have the distribution that is stated."
    elif claim.is_game:
        yield (
            "An adversary makes up the data, a secret among them, and guesses the secret from the output. He may be "
            "right no more often than the claim allows."
        )
    else:
        yield (
            "On two neighbouring datasets x and x′, every event has to be about equally likely: its probability on x "
            "is at most what the claim allows at the one on x′."
        )


def _see(claim: ClaimView) -> Iterator[str]:
    found = claim.counterexample
    if found is None:
        yield escape_markdown(describe_verdict(claim))
        return
    if claim.is_game:
        yield f"The data are {escape_markdown(found['x'])} ({escape_markdown(found['pair'])})."
    elif found.get("x") and found["x"] != NOT_SHOWN:
        x, y = (format_code(str(found[key])) for key in ("x", "y"))
        yield f"x is {x}, x′ is {y} ({escape_markdown(found['pair'])})."
    else:
        yield "The datasets are private and are not shown."
    if found.get("cause"):
        yield f"Cause: {escape_markdown(str(found['cause']))}."
    yield escape_markdown(describe_counterexample(claim))
    bound = claim.number("lower_bound")
    if bound is not None and not claim.conformity:
        symbol, where = escape_markdown(claim.symbol), "" if claim.is_game else " on this pair"
        yield (
            f"So {symbol} is at least {words.format_level(bound)}{where}. A "
            f"right mechanism would be accused with probability {words.format_scalar(claim.raw.get('alpha'))} at most."
        )
    yield from map(escape_markdown, claim.also)


def _locate(claim: ClaimView, target: str) -> Iterator[str]:
    """Lines that a replay of the random draws named, then the mechanism's own place."""
    failed = [str(check["finding"]) for check in claim.raw.get("checks") or () if not check.get("passed")]
    named = [finding for finding in failed if _PLACE.search(finding)]
    yield from map(escape_markdown, named)
    place = (claim.raw.get("places") or {}).get("mechanism")
    if place:
        shown = f"{place['file']}:{place['line']}"
        yield f"The mechanism is in {format_code(shown)}."
    if not named and not claim.is_game:
        command = _write_trace(claim, target)
        how = f" For a Python function {format_code(command)}, with the two datasets in files, may name it."
        yield "No line is known." + (how if command else "")


def _write_trace(claim: ClaimView, target: str) -> str:
    """The command that traces the target, with the options of the attack that say how to call it.

    Empty for a claim of a run that is not about a function of a file, or about a notion that no option tells.
    """
    data = ["--data", "x.json", "--neighbor", "y.json"]
    if claim.replay.startswith("dpaudit run "):
        place, claimed = (claim.raw.get("places") or {}).get("mechanism"), _spell_claim(claim)
        if not (place and claimed and target.isidentifier()) or target[0].isupper():  # an object of a class
            return ""
        return shlex.join(["dpaudit", "trace", f"{place['file']}:{target}", "--claim", claimed, *data])
    try:
        given = shlex.split(claim.replay) if claim.replay.startswith("dpaudit attack ") else []
    except ValueError:  # no line that an attack wrote
        given = []
    options: list[str] = []
    for k, name in enumerate(given):
        if name in ("--claim", "--arg"):
            options += given[k : k + 2]
        elif name == "--one-draw":
            options.append(name)
    return shlex.join(["dpaudit", "trace", target, *options, *data])


def _spell_claim(claim: ClaimView) -> str:
    """The claim as an option tells it; empty where its record does not say, or has other parameters."""
    record = ((claim.counterexample or {}).get("again") or {}).get("claim") or {}
    given = record.get("parameters") or {}
    for notion in NOTIONS.values():
        values = {key: given[key].get("float") for key in notion.claim_keys if isinstance(given.get(key), Mapping)}
        if notion.__name__ == record.get("class") and len(values) == len(notion.claim_keys) and all(values.values()):
            return ", ".join(f"{key}={value}" for key, value in values.items())
    return ""


def _replay(claim: ClaimView, file: str) -> Iterator[str]:
    if claim.counterexample is not None and claim.counterexample.get("again"):
        private = " --data X --neighbor Y" if claim.counterexample.get("x") == NOT_SHOWN else ""
        yield f"$ dpaudit replay {shlex.quote(file)} {shlex.quote(words.one_line(claim.id))}{private}"
    if claim.replay.startswith("dpaudit "):
        yield f"$ {words.one_line(claim.replay)}"
    elif claim.replay and "dpaudit_file_" not in claim.replay:  # a file that was read under a name of dpaudit's
        yield f"$ python -c {shlex.quote(words.one_line(claim.replay))}"
