"""JUnit XML: one test case a claim, for continuous integration."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from auditor.report import words
from auditor.report.explain import explain_verdict
from auditor.report.view import ClaimView, RunView


def render_junit(results: Mapping[str, Any] | RunView, run: Mapping[str, Any] | None = None) -> str:
    """Render results as JUnit XML.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.
    run : mapping, optional
        Content of run.json: ``started`` (ISO 8601), ``seconds`` of the run, and ``claim_seconds`` by claim id become
        attributes of the suites and cases. Without it there are no times.

    Returns
    -------
    str
        One suite for each entry. Cases have the file and line at which the claim's entry is declared, else those of the
        mechanism, where they are known. An unexpected verdict is a failure; an unexpected "error" and a failed check
        of the auditor's own is an error; a finding that a baseline holds is skipped, with its reason. A run that was
        interrupted has one more case, an error: what was not audited must not look as if it had passed.
    """
    view = RunView.of(results)
    run = words.clean_values(run or {})
    seconds = run.get("claim_seconds") or {}
    root = ET.Element("testsuites", {"name": "dpaudit", **_numbers(view.claims, bool(view.interrupted))})
    entries = dict.fromkeys(claim.entry for claim in view.claims)
    for entry in entries:
        claims = [claim for claim in view.claims if claim.entry == entry]
        suite = ET.SubElement(root, "testsuite", {"name": entry, **_numbers(claims)})
        if run.get("started"):
            # The schema that most readers use knows no time zone; what is written is UTC.
            suite.set("timestamp", str(run["started"]).removesuffix("Z"))
        for claim in claims:
            _case(suite, claim, seconds.get(claim.id))
    if view.interrupted:
        _add_interruption(root, view.interrupted)
    if isinstance(run.get("seconds"), int | float):
        root.set("time", f"{run['seconds']:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _is_error(claim: ClaimView) -> bool:
    return claim.unexpected and (claim.verdict == "error" or claim.check_failed)


def _numbers(claims: tuple[ClaimView, ...] | list[ClaimView], interrupted: bool = False) -> dict[str, str]:
    """Counts of cases; an interruption is one more, an error."""
    errors = sum(map(_is_error, claims))
    failures = sum(claim.unexpected for claim in claims) - errors
    known = sum(bool(claim.known) for claim in claims)
    tests, errors = len(claims) + interrupted, errors + interrupted
    return {"tests": str(tests), "failures": str(failures), "errors": str(errors), "skipped": str(known)}


def _add_interruption(root: ET.Element, text: str) -> None:
    """Add a case that says that claims were not audited."""
    suite = ET.SubElement(root, "testsuite", {"name": "dpaudit", **_numbers([], interrupted=True)})
    case = ET.SubElement(suite, "testcase", classname="dpaudit", name="interrupted")
    ET.SubElement(case, "error", type="interrupted", message=text)


def _case(suite: ET.Element, claim: ClaimView, seconds: Any) -> None:
    case = ET.SubElement(suite, "testcase", classname=claim.entry.replace("/", "."), name=claim.id)
    places = claim.raw.get("places") or {}
    # As pytest has it, a test stands where it is declared; an attack has the mechanism alone.
    if place := places.get("claim") or places.get("mechanism"):
        case.set("file", str(place["file"]))
        case.set("line", str(place["line"]))
    if isinstance(seconds, int | float):
        case.set("time", f"{seconds:.3f}")
    text = "\n".join([*explain_verdict(claim), f"Replay: {claim.replay}"])
    if claim.ok:
        ET.SubElement(case, "system-out").text = text
        return
    if claim.known:
        ET.SubElement(case, "skipped", message=f"known: {claim.known}").text = text
        return
    said = (claim.surprise, claim.undecided)
    kind = "error" if _is_error(claim) else "failure"
    ET.SubElement(case, kind, type=claim.verdict, message=". ".join(filter(None, said))).text = text
