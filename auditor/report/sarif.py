"""SARIF 2.1.0: unexpected results as findings, for code scanning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from auditor.report import words
from auditor.report.view import ClaimView, RunView

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(results: Mapping[str, Any]) -> str:
    """Render unexpected results as SARIF, the format that code hosts show beside the code.

    Parameters
    ----------
    results : mapping
        Parsed content of results.json.

    Returns
    -------
    str
        One run. A rule is an entry of the catalogue; a result is an unexpected claim, located at its line of
        results.json. "deviation" and "inconclusive" are warnings, all else is an error. Findings that a baseline holds
        are suppressed results, with the baseline's reason.
    """
    view = RunView.of(results)
    unexpected = [*view.unexpected, *view.known]
    entries = list(dict.fromkeys(claim.entry for claim in unexpected))
    titles = {claim.entry: claim.text("title") or claim.entry for claim in reversed(unexpected)}
    driver: dict[str, Any] = {"name": "dpaudit"}
    if view.manifest.get("dpaudit"):
        driver["version"] = str(view.manifest["dpaudit"])
    driver["rules"] = [{"id": entry, "shortDescription": {"text": titles[entry]}} for entry in entries]
    run = {
        "tool": {"driver": driver},
        "artifacts": [{"location": {"uri": "results.json"}}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(claim, entries.index(claim.entry)) for claim in unexpected],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _result(claim: ClaimView, rule: int) -> dict[str, Any]:
    warning = claim.verdict != claim.expected and claim.verdict in ("deviation", "inconclusive")
    suppressed = [{"kind": "external", "justification": claim.known}] if claim.known else []
    return {
        **({"suppressions": suppressed} if suppressed else {}),
        "ruleId": claim.entry,
        "ruleIndex": rule,
        "level": "warning" if warning else "error",
        "message": {"text": message(claim)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "results.json", "index": 0},
                    "region": {"startLine": claim.line},
                },
                "logicalLocations": [{"fullyQualifiedName": claim.id, "kind": "object"}],
            }
        ],
        # The id alone, so that a finding keeps its identity when the evidence changes.
        "partialFingerprints": {"claimId/v1": claim.id},
        "properties": {
            "verdict": claim.verdict,
            "expected": claim.expected,
            "claimed": claim.text("claimed"),
            "checked": claim.checked,
        },
    }


def message(claim: ClaimView) -> str:
    """What was found on a claim, with its counterexample, in words."""
    parts = [f"{claim.id}: {claim.surprise or claim.verdict}.", *claim.explanation]
    found = claim.counterexample
    if found is not None:
        parts += [f"Cause: {found['cause']}."] if found.get("cause") else []
        parts.append(f"Pair: {found['pair']}; x = {found['x']}; x′ = {found['y']}.")
    return words.one_line(" ".join([*parts, f"Replay: {claim.replay}"]))
