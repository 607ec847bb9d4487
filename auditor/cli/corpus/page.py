"""The matrix of cases by methods, as a page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from auditor.audits.summary import format_duration
from auditor.cli.corpus.audits import BUDGETS, METHODS, CaseAudit, names_cause
from auditor.cli.corpus.cases import FAMILIES, LibraryCase
from auditor.report.words import one_line

#: Longest text in a cell.
_WIDE = 90
#: Shares and seconds that are wanted of blind audits, and the share on crafted pairs.
BLIND_SHARE, BLIND_SECONDS, CAUSE_SHARE, PAIR_SHARE = 0.9, 10.0, 0.8, 0.95

Audits = Mapping[str, Mapping[str, CaseAudit]]


def write_page(cases: Sequence[LibraryCase], audits: Sequence[CaseAudit], about: str) -> str:
    """Write the matrix of what each method found.

    Parameters
    ----------
    cases : sequence of LibraryCase
        Cases and controls.
    audits : sequence of CaseAudit
        What there is of them; the last one of a method counts.
    about : str
        Versions, and how the audits were made.

    Returns
    -------
    str
        Markdown.
    """
    found: dict[str, dict[str, CaseAudit]] = {case.name: {} for case in cases}
    for audit in audits:
        if audit.case in found:
            found[audit.case][audit.method] = audit
    defects = [case for case in cases if not case.is_control]
    controls = [case for case in cases if case.is_control]
    extra = sorted({audit.method for audit in audits} - {method.name for method in METHODS})
    methods = "".join(f" {name} |" for name in extra)
    return "\n".join(
        [
            "# Real defects",
            "",
            f"{len(defects)} defects of released libraries, confirmed by counting or by an exact computation "
            f"(`dpaudit corpus confirm`), and {len(controls)} mechanisms that are believed to be right. {about}",
            "",
            "*Blind*: the claim and the domain are told, with the default budget of a minute. *Pair*: the crafted pair "
            "is given, with the least of the budgets of 10, 60 and 600 s in which the defect was found. *Cause*: what "
            "is said of it has a word that the case's file has. *Fixed*: the release without the defect, blind.",
            "",
            *_summarise(defects, controls, found),
            *[_share_found(name, [found[case.name] for case in defects]) for name in extra],
            "",
            "## Families",
            "",
            "| family | cases | found blind | controls |",
            "|---|---:|---:|---:|",
            *[row for family in FAMILIES if (row := _family_row(family, cases, found))],
            "",
            "## Cases",
            "",
            f"| case | claim | level | blind | s | draws | cause | pair |{methods} fixed |",
            f"|---|---|---:|---|---:|---:|---|---|{'---|' * len(extra)}---|",
            *[_row(case, found[case.name], extra) for case in defects],
            "",
            "## Causes",
            "",
            "| case | what is wrong | what a blind audit says | on |",
            "|---|---|---|---|",
            *[_cause_row(case, found[case.name]) for case in defects],
            "",
            "## Controls",
            "",
            "| mechanism | library | claim | verdict | s | draws |",
            "|---|---|---|---|---:|---:|",
            *[_control_row(case, found[case.name]) for case in controls],
            "",
        ]
    )


def _summarise(defects: Sequence[LibraryCase], controls: Sequence[LibraryCase], found: Audits) -> list[str]:
    blind = [(case, found[case.name]["blind"]) for case in defects if "blind" in found[case.name]]
    lines = ["| | of | | wanted |", "|---|---:|---:|---|"]
    caught = [(case, audit) for case, audit in blind if audit.flagged]
    lines.append(_share("blind audits that find the defect", len(caught), len(blind), BLIND_SHARE))
    if caught:
        seconds = statistics.median(audit.seconds for _, audit in caught)
        lines.append(f"| their median time | {len(caught)} | {format_duration(seconds)} | below {BLIND_SECONDS:g} s |")
        known = [(case, audit) for case, audit in caught if case.cause]
        named = sum(names_cause(case.cause, audit.said) for case, audit in known)
        lines.append(_share("of them, name the cause", named, len(known), CAUSE_SHARE))
    paired = [audits for audits in (_pair_audits(found[case.name]) for case in defects) if audits]
    hit = sum(any(audit.flagged for audit in audits) for audits in paired)
    lines.append(_share("audits on the crafted pair that find it", hit, len(paired), PAIR_SHARE))
    right = [found[case.name]["fixed"] for case in defects if "fixed" in found[case.name]]
    right += [found[case.name]["blind"] for case in controls if "blind" in found[case.name]]
    accused = sum(audit.flagged for audit in right)
    lines.append(f"| fixed releases and controls that are accused | {len(right)} | {accused} | 0 |")
    return lines


def _family_row(family: str, cases: Sequence[LibraryCase], found: Audits) -> str:
    """Counts of a family; empty if it has no case."""
    defects = [case for case in cases if case.family == family and not case.is_control]
    controls = sum(case.family == family and case.is_control for case in cases)
    hit = sum(audit.flagged for case in defects if (audit := found[case.name].get("blind")) is not None)
    return f"| {family} | {len(defects)} | {hit} | {controls} |" if defects or controls else ""


def _share_found(method: str, audits: Sequence[Mapping[str, CaseAudit]]) -> str:
    """How many defects a further method finds, of those that it was asked about."""
    asked = [audit for each in audits if (audit := each.get(method)) is not None]
    return f"| {method} | {len(asked)} | {sum(audit.flagged for audit in asked)} | |"


def _share(words: str, part: int, whole: int, wanted: float) -> str:
    shown = f"{part} ({part / whole:.0%})" if whole else "none"
    return f"| {words} | {whole} | {shown} | at least {wanted:.0%} |"


def _pair_audits(audits: Mapping[str, CaseAudit]) -> list[CaseAudit]:
    return [audits[f"pair {seconds:g} s"] for seconds in BUDGETS if f"pair {seconds:g} s" in audits]


def _row(case: LibraryCase, audits: Mapping[str, CaseAudit], extra: Sequence[str]) -> str:
    blind = audits.get("blind")
    named = "" if blind is None or not blind.flagged or not case.cause else _yes(names_cause(case.cause, blind.said))
    tried = _pair_audits(audits)
    pair = next((audit.method.removeprefix("pair ") for audit in tried if audit.flagged), "missed" if tried else "")
    cells = [case.name, str(case.guarantee), case.shown_level, *_outcome(blind), named, pair]
    cells += [_verdict(audits.get(name)) for name in (*extra, "fixed")]
    return f"| {' | '.join(cells)} |"


def _cause_row(case: LibraryCase, audits: Mapping[str, CaseAudit]) -> str:
    about = case.about if not case.source else f"[{case.about}]({case.source})"
    blind = audits.get("blind")
    said, on = ("", "") if blind is None else (blind.said, blind.pair)
    return f"| {case.name} | {about} | {shorten_cell(said, _WIDE)} | {shorten_cell(on, _WIDE)} |"


def _control_row(case: LibraryCase, audits: Mapping[str, CaseAudit]) -> str:
    return f"| {' | '.join([case.about, case.requires, str(case.guarantee), *_outcome(audits.get('blind'))])} |"


def _outcome(audit: CaseAudit | None) -> list[str]:
    return ["", "", ""] if audit is None else [audit.verdict, f"{audit.seconds:.1f}", f"{audit.draws:,}"]


def _verdict(audit: CaseAudit | None) -> str:
    return "" if audit is None else audit.verdict


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def shorten_cell(text: str, most: int) -> str:
    """Shorten a text for a cell of a table."""
    flat = one_line(text).replace("|", "\\|")
    return flat if len(flat) <= most else f"{flat[: most - 3]}..."
