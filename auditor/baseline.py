"""Known findings: a file, kept under version control, of findings that no longer make a run fail.

As a linter's baseline: it lets an audit go into continuous integration before all that it finds is mended. A finding is
known if its claim's id and its verdict stand in the file. Errors and failed checks of the auditor's own are never
known, because nothing was found out then.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.results import AuditResult, Verdict, number

SCHEMA = "dpaudit-baseline/1"
#: Verdicts that can be known findings.
FINDINGS = (Verdict.VIOLATION, Verdict.DEVIATION, Verdict.CONSISTENT, Verdict.INCONCLUSIVE)
#: What a result says of a known finding for which the file has no reason.
NO_REASON = "no reason given"

_HEAD = f"""\
# Known findings of dpaudit. With --baseline, a run fails only on findings that are not listed here by id and verdict.
# "reason" is for people to fill in. "claimed" and "lower_bound" are as they were found, for information.
schema = "{SCHEMA}"
"""
_TABLE = re.compile(r"\s*\[\[\s*finding\s*\]\]")


@dataclass(frozen=True)
class Finding:
    """A known finding.

    Parameters
    ----------
    id : str
        The claim's id.
    verdict : Verdict
        What was found where another verdict was expected; one of `FINDINGS`.
    claimed : str
        The claim in words, when it was found.
    lower_bound : float or None
        Certified level, when it was found.
    reason : str
        Why it is known; may be empty.
    """

    id: str
    verdict: Verdict
    claimed: str = ""
    lower_bound: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Baseline:
    """The known findings of a file, by claim id."""

    path: Path
    findings: Mapping[str, Finding]


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises
    ------
    SpecificationError
        If it cannot be read, or an entry is not what it must be; the message names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecificationError(f"baseline {str(path)!r} cannot be read: {error}") from error
    if content.get("schema") != SCHEMA:
        raise SpecificationError(
            f"{str(path)!r} is not a baseline: expected schema = {SCHEMA!r}, got {content.get('schema')!r}"
        )
    where = f"baseline {str(path)!r}"
    unknown = sorted(set(content) - {"schema", "finding"})
    if unknown:
        raise SpecificationError(f"{where}{_line(text, None, unknown[0])}: unknown key {unknown[0]!r}")
    tables = content.get("finding", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SpecificationError(f"{where}{_line(text, None, 'finding')}: findings must be tables [[finding]]")
    findings: dict[str, Finding] = {}
    for k, table in enumerate(tables):
        try:
            finding = _finding(table, findings)
        except _FindingError as bad:
            raise SpecificationError(f"{where}{_line(text, k, bad.key)}: {bad}") from None
        findings[finding.id] = finding
    return Baseline(path, findings)


class _FindingError(Exception):
    """A member of a finding is not what it must be."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def _finding(table: Mapping[str, Any], before: Mapping[str, Finding]) -> Finding:
    for key in table:
        if key not in ("id", "verdict", "claimed", "lower_bound", "reason"):
            raise _FindingError(key, f"unknown key {key!r}, expected id, verdict, claimed, lower_bound or reason")
    for key in ("id", "verdict"):
        if key not in table:
            raise _FindingError("", f"a finding has no {key!r}")
    for key in ("id", "verdict", "claimed", "reason"):
        if not isinstance(table.get(key, ""), str):
            raise _FindingError(key, f"{key} must be a text, got {table[key]!r}")
    if not table["id"]:
        raise _FindingError("id", "id must not be empty")
    if table["id"] in before:
        raise _FindingError("id", f"the claim {table['id']!r} is listed twice")
    if table["verdict"] not in FINDINGS:
        why = ", because nothing was audited" if table["verdict"] == Verdict.ERROR else ""
        raise _FindingError("verdict", f"verdict must be one of {', '.join(FINDINGS)}, got {table['verdict']!r}{why}")
    bound = table.get("lower_bound")
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float) or not bound >= 0):
        raise _FindingError("lower_bound", f"lower_bound must be a number of at least 0, got {bound!r}")
    claimed, reason = table.get("claimed", ""), table.get("reason", "")
    return Finding(table["id"], Verdict(table["verdict"]), claimed, bound, reason.strip())


def _line(text: str, table: int | None, key: str) -> str:
    """Where a key stands, as ", line 7", in the k-th finding or before the first; empty if that is unclear."""
    lines = text.splitlines()
    heads = [k for k, line in enumerate(lines) if _TABLE.match(line)]
    if table is None:
        first, last = 0, heads[0] if heads else len(lines)
    elif table < len(heads):
        first, last = heads[table], [*heads, len(lines)][table + 1]
    else:
        return f", finding {table + 1}"
    named = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    at = next((k for k in range(first, last) if key and named.match(lines[k])), None)
    if at is None:
        return "" if table is None else f", line {first + 1}"
    return f", line {at + 1}"


def write_baseline(path: Path, findings: Iterable[Finding]) -> None:
    """Write a baseline, whole or not at all, findings in the order of their ids."""
    blocks = [_HEAD]
    for finding in sorted(findings, key=lambda f: f.id):
        lines = ["[[finding]]", f"id = {_text(finding.id)}", f"verdict = {_text(finding.verdict)}"]
        lines.append(f"claimed = {_text(finding.claimed)}")
        if finding.lower_bound is not None and not math.isnan(finding.lower_bound):
            lines.append(f"lower_bound = {finding.lower_bound!r}")  # an infinite one is "inf" in TOML, too
        blocks.append("\n".join([*lines, f"reason = {_text(finding.reason)}", ""]))
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text("\n".join(blocks), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise SpecificationError(f"cannot write to {str(path)!r}: {error}") from error


def _text(value: str) -> str:
    """A basic string of TOML: a string of JSON, but for the character DEL, which JSON need not escape."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def is_finding(verdict: str, expected: str, sandwich: str) -> bool:
    """An unexpected verdict that a baseline may hold: no error, and no failed check of the auditor's own."""
    return verdict in FINDINGS and verdict != expected and not sandwich.startswith("failed")


def findings_of(
    claims: Sequence[Mapping[str, Any]], before: Baseline | None = None
) -> tuple[list[Finding], list[Finding], int]:
    """Findings of a results.json, for a new baseline.

    Parameters
    ----------
    claims : sequence of mapping
        Claims of a results.json.
    before : Baseline, optional
        The baseline that is replaced.

    Returns
    -------
    list of Finding
        The findings among the claims; reasons are those of ``before``.
    list of Finding
        Findings of ``before`` whose claims were not audited this time.
    int
        Unexpected results that are no findings: errors and failed checks.
    """
    known = before.findings if before is not None else {}
    found, others = [], 0
    for claim in claims:
        if not is_finding(claim["verdict"], claim["expected"], claim.get("sandwich", "")):
            others += not claim["ok"]
            continue
        old = known.get(claim["id"])
        reason = old.reason if old is not None and old.verdict == claim["verdict"] else ""
        bound = number(claim["lower_bound"])
        found.append(Finding(claim["id"], Verdict(claim["verdict"]), claim["claimed"], bound, reason))
    audited = {claim["id"] for claim in claims}
    return found, [finding for finding in known.values() if finding.id not in audited], others


def apply(baseline: Baseline, results: Sequence[AuditResult]) -> list[AuditResult]:
    """The results, with ``known`` set to its reason where the baseline holds the finding."""
    marked = []
    for result in results:
        finding = baseline.findings.get(result.id)
        known = finding is not None and finding.verdict == result.verdict
        known = known and is_finding(result.verdict, result.expected, result.sandwich)
        marked.append(replace(result, known=(finding.reason or NO_REASON) if finding is not None and known else ""))
    return marked


def notices(baseline: Baseline, results: Sequence[AuditResult]) -> list[str]:
    """What there is to say of a baseline after a run: stale entries, claims that have changed, claims not audited.

    ``results`` are those of `apply`. An entry whose claim ended in an error is not stale: nothing is known of it.
    """
    by_id = {result.id: result for result in results}
    lines, absent = [], 0
    for finding in baseline.findings.values():
        result = by_id.get(finding.id)
        if result is None:
            absent += 1
        elif result.known and finding.claimed not in ("", result.claimed):
            lines.append(f"{finding.id}: known with the claim {finding.claimed}, which now is {result.claimed}")
        elif result.verdict == Verdict.ERROR or result.sandwich.startswith("failed"):
            lines.append(f"{finding.id}: known as {finding.verdict}, could not be audited now")
        elif not result.known:
            expected = " as expected" if result.ok else ""
            lines.append(f"{finding.id}: stale: known as {finding.verdict}, now {result.verdict}{expected}")
    if absent:
        lines.append(f"{absent} of {len(baseline.findings)} entries are of claims that were not audited here")
    return [f"baseline: {line}" for line in lines]
