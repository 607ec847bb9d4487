"""Known findings: a file, kept under version control, of findings that no longer make a run fail.

As a linter's baseline: it lets an audit go into continuous integration before all that it finds is mended. A finding
is known if its claim's id and its verdict stand in the file, its cause is of a kind that stands there, and its level is
not above the one up to which the file forgives. Errors and failed checks of the auditor's own are never known, because
nothing was found out then.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.events.cause_kinds import kind_of
from auditor.results import FLAGGED, AuditResult, Verdict, write_whole

SCHEMA = "dpaudit-baseline/2"
#: The form before: it has no causes, so its findings are known by id and verdict only.
OLD = "dpaudit-baseline/1"
#: Verdicts that can be known findings.
FINDINGS = (Verdict.VIOLATION, Verdict.DEVIATION, Verdict.CONSISTENT, Verdict.INCONCLUSIVE)
#: What a result says of a known finding for which the file has no reason.
NO_REASON = "no reason given"

#: Head-room of a level over the certified one, by when the audit stops; see `find_leeway`.
HEADROOM: Mapping[str, float] = {"verdict": 2.0, "budget": 1.25}
#: Keys of a finding, in the order in which they are written.
KEYS = ("id", "verdict", "claimed", "cause", "lower_bound", "up_to", "reason")

_HEAD = f"""\
# Known findings of dpaudit. With --baseline, a run fails on every finding that is not listed here by id and verdict,
# that has another kind of cause, or whose certified level is above "up_to". "reason" is for people to fill in, and
# "up_to" is theirs to change (inf forgives any level). "claimed" and "lower_bound" are as they were found.
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
    causes : tuple of str or None
        Causes that are forgiven, see `cause_of_result`; None in an entry of the old form, which forgives any.
    lower_bound : float or None
        Certified level, when it was found.
    up_to : float or None
        Largest certified level that is forgiven; None where none was certified, and in an entry of the old form, which
        forgives any.
    reason : str
        Why it is known; may be empty.
    """

    id: str
    verdict: Verdict
    claimed: str = ""
    causes: tuple[str, ...] | None = None
    lower_bound: float | None = None
    up_to: float | None = None
    reason: str = ""

    def exceeded(self, result: AuditResult) -> str:
        """Why this does not cover a result; empty if it does.

        The result has its id and verdict.
        """
        said = []
        cause, level, exact = cause_of_result(result), level_of_result(result), _exact_level(result)
        if self.causes is not None and kind_of(cause) not in map(kind_of, self.causes):
            known = " or ".join(one or "none" for one in self.causes)
            said.append(f"another cause: the baseline has {known}, found was {cause or 'none'}")
        if self.up_to is not None and level is not None and level > self.up_to:
            symbol = result.symbol or "level"
            said.append(
                f"a higher level: the baseline goes up to {symbol} = {self.up_to:.4g}, certified is {level:.4g}"
            )
        elif self.up_to is not None and exact is not None and exact > self.up_to:  # an audit may stop far below it
            symbol = result.symbol or "level"
            said.append(f"a higher level: the baseline goes up to {symbol} = {self.up_to:.4g}, exact is {exact:.4g}")
        return "; ".join(said)


@dataclass(frozen=True)
class Baseline:
    """The known findings of a file, by claim id."""

    path: Path
    findings: Mapping[str, Finding]


def cause_of_result(result: AuditResult) -> str:
    """Cause of a finding, in a standard phrase without values.

    It has no values of data or outputs; empty if the claim's id names the cause.

    Of a violation it is the cause of the counterexample. Draws that are not independent, and what the target states of
    itself, are findings of any claim, so they are a cause of their own.
    """
    if result.counterexample is not None:
        return result.counterexample.cause
    if result.verdict == Verdict.DEVIATION:
        if not result.independence.get("passed", True):
            return "draws are not independent"
        return ", ".join(f"check of {check['name']}" for check in result.checks if check["passed"] is False)
    if result.verdict == Verdict.INCONCLUSIVE and result.independence.get("asked"):
        return "draws may not be independent"
    return ""


def level_of_result(result: AuditResult) -> float | None:
    """Certified level of a violation or deviation, else None.

    To the 8 digits of its record.

    A claim that is computed, at L0, has its exact level. Of every kind of claim a higher level is a worse finding.
    """
    if result.verdict not in FLAGGED:
        return None
    level = result.lower_bound if result.level != "L0" else result.exact
    return None if level is None or math.isnan(level) else float(f"{level:.8g}")


def _exact_level(result: AuditResult) -> float | None:
    """Exact level of a violation or deviation, where it is known.

    It is slightly rounded down, as a baseline has levels of 8 digits.
    """
    if result.verdict not in FLAGGED or result.exact is None or math.isnan(result.exact):
        return None
    return result.exact * (1 - 1e-8)


def find_leeway(result: AuditResult) -> float | None:
    """Level up to which a finding is forgiven.

    It is written down rounded up to 3 digits.

    Where the exact level is known it is that one: the certified level of a mechanism that has not changed exceeds it
    with probability at most alpha, whatever the seed, the budget and the event.

    Elsewhere nobody knows the level of the defect, and the certified one moves with the seed, also while the code
    stands still. Measured were six defects (floating point, no noise, and noise of 4/5, 1/2, 1/4 and 1/100 of its
    scale), 12 seeds each, 50,000 draws. Audits that stop at the verdict certify whatever the last draws
    happened to show: the highest bound was up to 1.8 times the lowest, so they get twice the bound. Audits that run to
    the end of their budget differed by 1.05 at most; a quarter more is for a budget that is somewhat larger. No verdict
    rests on these factors: too small a one makes a finding new that says what it is compared with, and too large a one
    hides a change for the worse by less than the factor, of the same kind of cause.

    An audit that stops at the verdict certifies little more than the claim, however large the leak is: of randomised
    response against ε = 1 it certifies 1.0 where the level is 1.1, and 1.2 where the answer is always true. So it
    reveals another kind of cause, but rarely that a leak is larger; `list_notices` warns of that.

    An event that is impossible on one side, such as bits of a float, certifies more with every draw. So a baseline goes
    with the budget at which it was made; ``up_to = inf`` forgives a kind of cause at any level.
    """
    level = level_of_result(result)
    if level is None:
        return None
    if result.exact is not None and result.exact >= level:
        return _rounded_up(result.exact)
    return _rounded_up(level * HEADROOM[result.stop])


def _rounded_up(level: float) -> float:
    """Smallest number of 3 significant digits that is at least ``level``, as people write it."""
    if level == 0 or math.isinf(level):
        return level
    exact = Decimal(repr(level))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding=ROUND_CEILING))


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
    if content.get("schema") not in (SCHEMA, OLD):
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
        if key not in KEYS:
            raise _FindingError(key, f"unknown key {key!r}, expected {', '.join(KEYS[:-1])} or {KEYS[-1]}")
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
    for key in ("lower_bound", "up_to"):
        level = table.get(key)
        if level is not None and (isinstance(level, bool) or not isinstance(level, int | float) or not level >= 0):
            raise _FindingError(key, f"{key} must be a number of at least 0, got {level!r}")
    causes = _causes(table["cause"]) if "cause" in table else None
    bound = table.get("lower_bound")
    up_to = table.get("up_to", None if causes is None else bound)
    claimed, reason = table.get("claimed", ""), table.get("reason", "")
    return Finding(table["id"], Verdict(table["verdict"]), claimed, causes, bound, up_to, reason.strip())


def _causes(given: Any) -> tuple[str, ...]:
    """The causes of a finding: a text, or a list where several are forgiven."""
    causes = given if isinstance(given, list) else [given]
    if not causes or not all(isinstance(cause, str) for cause in causes):
        raise _FindingError("cause", f"cause must be a text or a list of texts, got {given!r}")
    return tuple(causes)


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
    """Write a baseline atomically, findings by id.

    Parameters
    ----------
    path : Path
        The file; it is replaced, whole or not at all.
    findings : iterable of Finding
        In any order.

    Raises
    ------
    SpecificationError
        If it cannot be written.
    """
    text = "\n".join([_HEAD, *(_block(finding) for finding in sorted(findings, key=lambda f: f.id))])
    try:
        text.encode()
    except UnicodeEncodeError as error:  # of names of files that are no UTF-8
        odd = text.splitlines()[text.count("\n", 0, error.start)]
        why = f"TOML has no form for half a surrogate pair: {odd}"
        raise SpecificationError(f"cannot write to {str(path)!r}: {why}") from error
    try:
        write_whole(path, text)
    except OSError as error:
        raise SpecificationError(f"cannot write to {str(path)!r}: {error}") from error


def _block(finding: Finding) -> str:
    """A finding as a table of TOML."""
    causes = finding.causes or ()
    values = {
        "id": _text(finding.id),
        "verdict": _text(finding.verdict),
        "claimed": _text(finding.claimed),
        "cause": _text(causes[0]) if len(causes) == 1 else f"[{', '.join(map(_text, causes))}]" if causes else "",
        "lower_bound": _level(finding.lower_bound),
        "up_to": _level(finding.up_to),
        "reason": _text(finding.reason),
    }
    return "\n".join(["[[finding]]", *(f"{key} = {values[key]}" for key in KEYS if values[key]), ""])


def _level(value: float | None) -> str:
    """A level in TOML, where an infinite one is "inf", too; empty for none."""
    return "" if value is None or math.isnan(value) else repr(value)


def _text(value: str) -> str:
    """A basic string of TOML: a string of JSON, but for the character DEL, which JSON need not escape."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def is_finding(verdict: str, expected: str, sandwich: str) -> bool:
    """Whether an unexpected verdict may be in a baseline.

    No error may, and no failed check of the auditor itself.

    Parameters
    ----------
    verdict, expected : str
        Verdict of a result, and the one that its claim expects.
    sandwich : str
        What the check of the auditor itself found; begins with "failed" if it failed.
    """
    return verdict in FINDINGS and verdict != expected and not sandwich.startswith("failed")


def findings_of(
    results: Sequence[AuditResult], before: Baseline | None = None
) -> tuple[list[Finding], list[Finding], int]:
    """Findings among the results of a run, for a new baseline.

    Parameters
    ----------
    results : sequence of AuditResult
        Results of the run.
    before : Baseline, optional
        The baseline that is replaced.

    Returns
    -------
    list of Finding
        The findings among the results. What ``before`` covers keeps its causes, its level and its reason, which people
        may have written; anything else has none of these, as they were said of another finding.
    list of Finding
        Findings of ``before`` whose claims were not audited this time.
    int
        Unexpected results that are no findings: errors and failed checks.
    """
    known = before.findings if before is not None else {}
    found, others = [], 0
    for result in results:
        if not is_finding(result.verdict, result.expected, result.sandwich):
            others += not result.ok
            continue
        level = level_of_result(result)
        new = Finding(result.id, result.verdict, result.claimed, (cause_of_result(result),), level, find_leeway(result))
        old = known.get(result.id)
        if old is not None and old.verdict == result.verdict and not old.exceeded(result):
            new = replace(new, reason=old.reason)
            if old.causes is not None:
                new = replace(new, causes=old.causes, up_to=old.up_to)
        found.append(new)
    audited = {result.id for result in results}
    return found, [finding for finding in known.values() if finding.id not in audited], others


def apply_baseline(baseline: Baseline, results: Sequence[AuditResult]) -> list[AuditResult]:
    """Mark the results that the baseline covers as ``known``.

    ``known`` is the finding's reason.

    Where it has a finding of the same claim and verdict that does not cover this one, ``new`` says why.

    Parameters
    ----------
    baseline : Baseline
        Findings that are known.
    results : sequence of AuditResult
        Results of a run.

    Returns
    -------
    list of AuditResult
        The same results in their order, with ``known`` and ``new`` set.
    """
    marked = []
    for result in results:
        finding, known, new = baseline.findings.get(result.id), "", ""
        held = finding is not None and finding.verdict == result.verdict
        if finding is not None and held and is_finding(result.verdict, result.expected, result.sandwich):
            new = finding.exceeded(result)
            known = "" if new else finding.reason or NO_REASON
        marked.append(replace(result, known=known, new=new))
    return marked


def list_notices(baseline: Baseline, results: Sequence[AuditResult]) -> list[str]:
    """Notices on a baseline after a run.

    They name new, stale and changed findings, and claims not audited.

    An entry whose claim ended in an error is not stale: nothing is known of it.

    Parameters
    ----------
    baseline : Baseline
        Findings that are known.
    results : sequence of AuditResult
        Results as `apply_baseline` marks them.
    """
    by_id = {result.id: result for result in results}
    lines, absent = [], 0
    old = sum(finding.causes is None for finding in baseline.findings.values())
    if old:
        lines.append(
            f"{old} of {len(baseline.findings)} entries have no cause, as in files of the form {OLD}: they are known "
            f"by id and verdict only; `dpaudit baseline RESULTS -o {shlex.quote(str(baseline.path))}` renews them"
        )
    for finding in baseline.findings.values():
        result = by_id.get(finding.id)
        if result is None:
            absent += 1
        elif result.new:
            lines.append(f"{finding.id}: new: {result.new}")
        elif result.known and finding.claimed not in ("", result.claimed):
            lines.append(f"{finding.id}: known with the claim {finding.claimed}, which now is {result.claimed}")
        elif result.verdict == Verdict.ERROR or result.sandwich.startswith("failed"):
            lines.append(f"{finding.id}: known as {finding.verdict}, could not be audited now")
        elif not result.known:
            expected = " as expected" if result.ok else ""
            lines.append(f"{finding.id}: stale: known as {finding.verdict}, now {result.verdict}{expected}")
    stopped = sum(_stopped_below(baseline.findings[result.id], result) for result in results if result.known)
    if stopped:
        lines.append(
            f"{stopped} known finding{'s' * (stopped != 1)} stopped at the verdict, so that a larger leak of the same "
            "kind of cause would hardly show; --level standard certifies how large it is"
        )
    if absent:
        lines.append(f"{absent} of {len(baseline.findings)} entries are of claims that were not audited here")
    return [f"baseline: {line}" for line in lines]


def _stopped_below(finding: Finding, result: AuditResult) -> bool:
    """Whether an audit ended at the verdict, so that it says little of how large a known leak is."""
    limited = finding.up_to is not None and math.isfinite(finding.up_to)
    return limited and result.stop == "verdict" and result.exact is None and level_of_result(result) is not None
