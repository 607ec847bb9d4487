"""SARIF 2.1.0: unexpected results as findings, for code scanning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from auditor.report import words
from auditor.report.explain import explain_verdict
from auditor.report.view import ClaimView, RunView

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: What relative addresses are relative to; code hosts take it for the root of the repository.
_ROOT = "%SRCROOT%"
_HELP = (
    "An audit tries to break the claim by running the mechanism on neighbouring datasets. A violation is evidence "
    "against the claim at a stated confidence; a deviation is wrong without breaking privacy by itself. What follows "
    "“Replay” in the message finds it again."
)


def render_sarif(results: Mapping[str, Any] | RunView) -> str:
    """Render unexpected results as SARIF.

    Code hosts show that format beside the code.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.

    Returns
    -------
    str
        One run. A rule is an entry of the catalogue; a result is an unexpected claim, located at the source of its
        mechanism, else where the claim is declared, else at its line of results.json; the others are related
        locations. "deviation" and "inconclusive" are warnings, all else is an error. Findings that a baseline holds are
        suppressed results, with the baseline's reason.
    """
    view = RunView.of(results)
    unexpected = [*view.unexpected, *view.known]
    entries = list(dict.fromkeys(claim.entry for claim in unexpected))
    titles = {claim.entry: claim.text("title") or claim.entry for claim in reversed(unexpected)}
    driver: dict[str, Any] = {"name": "dpaudit"}
    if view.manifest.get("dpaudit"):
        driver["version"] = str(view.manifest["dpaudit"])
    driver["rules"] = [_rule(entry, titles[entry]) for entry in entries]
    files = dict.fromkeys(place["file"] for claim in unexpected for place, _ in _claim_places(claim))
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not view.interrupted}],
        "artifacts": [{"location": {"uri": "results.json"}}, *({"location": _artifact(file)} for file in files)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(claim, entries.index(claim.entry)) for claim in unexpected],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _rule(entry: str, title: str) -> dict[str, Any]:
    return {
        "id": entry,
        "shortDescription": {"text": title},
        "help": {"text": _HELP},
        "properties": {"tags": ["differential-privacy"]},
    }


def _result(claim: ClaimView, rule: int) -> dict[str, Any]:
    warning = not claim.check_failed and claim.verdict in ("deviation", "inconclusive")
    suppressed = [{"kind": "external", "justification": claim.known}] if claim.known else []
    record = {
        "physicalLocation": {
            "artifactLocation": {"uri": "results.json", "index": 0},
            "region": {"startLine": claim.line},
        },
        "message": {"text": "the record of this claim"},
    }
    first, *related = [*(_location(place, text) for place, text in _claim_places(claim)), record]
    first = {**first, "logicalLocations": [{"fullyQualifiedName": claim.id, "kind": "object"}]}
    return {
        **({"suppressions": suppressed} if suppressed else {}),
        "ruleId": claim.entry,
        "ruleIndex": rule,
        "level": "warning" if warning else "error",
        "message": {"text": describe_finding(claim)},
        "locations": [first],
        **({"relatedLocations": [{"id": k, **place} for k, place in enumerate(related, 1)]} if related else {}),
        # The id alone, so that a finding keeps its identity when the evidence changes. The second is what GitHub reads:
        # without it, it would hash the line, and take all claims on one mechanism for one finding.
        "partialFingerprints": {
            "claimId/v1": claim.id,
            "primaryLocationLineHash": _hash_id(claim.id) + ":1",
        },
        "properties": {
            "verdict": claim.verdict,
            "expected": claim.expected,
            "claimed": claim.text("claimed"),
            "checked": claim.checked,
        },
    }


def _claim_places(claim: ClaimView) -> list[tuple[Mapping[str, Any], str]]:
    """Where the mechanism and the claim stand, as far as is known, with what is there."""
    places: Mapping[str, Any] = claim.raw.get("places") or {}
    texts = {"mechanism": "the mechanism", "claim": "the entry that declares the claim"}
    return [(places[name], text) for name, text in texts.items() if places.get(name)]


def _location(place: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {
        "physicalLocation": {"artifactLocation": _artifact(place["file"]), "region": {"startLine": place["line"]}},
        "message": {"text": text},
    }


def _artifact(file: str) -> dict[str, str]:
    return {"uri": quote(file), "uriBaseId": _ROOT}


def describe_finding(claim: ClaimView) -> str:
    """Describe what was found on a claim, with its counterexample."""
    parts = [f"{claim.id}: {claim.surprise or claim.verdict}.", *explain_verdict(claim)]
    found = claim.counterexample
    if found is not None:
        parts += [f"Cause: {found['cause']}."] if found.get("cause") else []
        parts.append(f"Pair: {found['pair']}; x = {found['x']}; x′ = {found['y']}.")
    return words.one_line(" ".join([*parts, f"Replay: {claim.replay}"]))


def _hash_id(id_: str) -> str:
    return hashlib.sha256(id_.encode(errors="surrogateescape")).hexdigest()[:16]
