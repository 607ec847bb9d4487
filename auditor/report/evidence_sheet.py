"""An evidence sheet: what an audit tested of one claim, hazard by hazard, as one page and as an in-toto statement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.events.cause_kinds import VALUES, find_kind, kind_of
from auditor.report import words
from auditor.report.explain import describe_verdict
from auditor.report.markdown import escape_markdown
from auditor.report.page import create_environment, read_asset, without_indentation
from auditor.report.view import ClaimView, RunView
from auditor.results import ENUMERATION, FIXED_SIZE, ONLY_TEXTS, choose_id, parse_number

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:dpaudit:evidence-sheet:v1"
#: False-positive rates at which the sheet says what a claim allows: those that membership inference is quoted at.
RATES = (0.001, 0.01, 0.1)
#: Pairs of datasets that are named on the page; all are counted.
_NAMED = 3
#: An upper bound is rounded up to so many significant digits.
_DIGITS = 3
TESTED, FOUND, PASSED_OVER = "tested", "found", "not tested"


@dataclass(frozen=True)
class Hazard:
    """A way in which a mechanism fails, and its test.

    Parameters
    ----------
    name : str
        The hazard, in a word or two.
    status : str
        "tested", "found" or "not tested".
    how : str
        What was done; what would have to be done if nothing was.
    resolution : str
        What the test could have found; empty where nothing was tested.
    """

    name: str
    status: str
    how: str
    resolution: str = ""


def make_statement(
    results: Mapping[str, Any] | RunView, file: str, sha256: str, claim_id: str | None = None, unit: str = ""
) -> dict[str, Any]:
    """Make the in-toto statement on one claim of privacy.

    Parameters
    ----------
    results : mapping or RunView
        Parsed content of results.json.
    file, sha256 : str
        Name and hash of that file, which are a subject of the statement beside what was audited.
    claim_id : str or None
        The claim; None where the file has one claim of privacy only.
    unit : str
        What one row stands for ("one patient"), which the results cannot know; empty if it is not stated.

    Returns
    -------
    dict
        Plain JSON. The same results give the same statement: it holds no date and no name of a machine.

    Raises
    ------
    SpecificationError
        If there is no such claim, or several and none is named.
    """
    run = RunView.of(results)
    claim = _choose_claim(run, claim_id)
    subject = [{"name": file, "digest": {"sha256": sha256}}]
    if claim.text("source_hash"):
        subject.insert(0, {"name": _target(run, claim), "digest": {"dpauditSource": claim.text("source_hash")}})
    return {
        "_type": STATEMENT,
        "subject": subject,
        "predicateType": PREDICATE,
        "predicate": {
            "tool": {"name": "dpaudit", "version": str(run.manifest.get("dpaudit") or "")},
            "libraries": dict(run.manifest.get("libraries") or {}),
            "environment": list(run.manifest.get("environment") or []),
            "python": str(run.manifest.get("python") or ""),
            "claim": {
                "id": claim.id,
                "target": _target(run, claim),
                "mechanism": claim.text("mechanism"),
                "notion": claim.text("notion"),
                "text": claim.text("claimed"),
                "parameters": dict(claim.raw.get("parameters") or {}),
                "stated in": claim.source,
                "relation": str(run.manifest.get("relation") or ""),
                "unit": unit,
            },
            "verdict": claim.verdict,
            "summary": words.one_line(describe_verdict(claim)),
            "lower bound": claim.raw.get("lower_bound"),
            "reached": claim.raw.get("reached"),
            "confidence": claim.confidence if claim.draws else "",
            "draws": claim.draws,
            "seed": run.manifest.get("seed"),
            "pairs": list((claim.raw.get("record") or {}).get("pairs") or filter(None, [claim.text("pair")])),
            **({"walked": dict(walked)} if (walked := _find_walk(claim)) else {}),
            "hazards": [vars(hazard) for hazard in list_hazards(run, claim)],
            "not tested": list(_list_gaps(claim)),
            "meaning": find_meaning(claim),
            "replay": claim.replay,
        },
    }


def _choose_claim(run: RunView, claim_id: str | None) -> ClaimView:
    """The claim of privacy that is asked for."""
    able = {claim.id: claim for claim in run.claims if not claim.conformity and not claim.theorem}
    return able[choose_id(list(able), claim_id, "claims of privacy")]


def _target(run: RunView, claim: ClaimView) -> str:
    return str(run.manifest.get("target") or claim.text("mechanism") or claim.entry)


def _find_walk(claim: ClaimView) -> Mapping[str, Any]:
    """What was walked of a certificate that decides; empty for any other result."""
    decided = claim.text("method") == ENUMERATION and claim.verdict in ("holds", "violation")
    record: Mapping[str, Any] = claim.raw.get("record") or {} if decided else {}
    return record if "datasets" in record else {}


def _say_walked(walked: Mapping[str, Any]) -> str:
    neighbours, datasets = int(walked["neighbours"]), int(walked["datasets"])
    return f"{words.number_of(neighbours, 'pair')} of {words.number_of(datasets, 'dataset')}"


def _has_events(claim: ClaimView) -> bool:
    """Whether events on outputs were learned; an adversary's game looks at its score alone."""
    return claim.level in ("L1", "L2") and "pairs" in (claim.raw.get("record") or {})


_NO_EVENTS = "no events on outputs were learned in this audit"


def _say_resolution(claim: ClaimView) -> str:
    """What events of which probability would have shown; of a refuted claim nothing is said."""
    levels = {float(b): parse_number(level) for b, level in (claim.raw.get("resolution") or {}).items()}
    known = {b: level for b, level in sorted(levels.items(), reverse=True) if level is not None and level < math.inf}
    if not known:
        return ""
    shown, at = ", ".join(f"{level:.4g}" for level in known.values()), ", ".join(map(words.format_percent, known))
    return f"{claim.symbol} = {shown} at probability {at}, in 9 of 10 audits"


def list_hazards(run: RunView, claim: ClaimView) -> list[Hazard]:
    """List what was tested of a claim, hazard by hazard.

    Parameters
    ----------
    run : RunView
        The results; further claims on the same mechanism count where they test a hazard.
    claim : ClaimView
        The claim.
    """
    same = [c for c in run.claims if c.entry == claim.entry and c.text("mechanism") == claim.text("mechanism")]
    return [
        _of_events(claim, "values", "events on the values of outputs"),
        _of_events(claim, "bits", "events on bits, where outputs are floats", measured=False),
        _of_arithmetic(run, claim),
        _of_exceptions(claim),
        _of_events(claim, "shape", "events on type, length, keys and missing values"),
        _of_independence(claim),
        _of_composition(same),
        _of_sampling(same),
    ]


def _of_events(claim: ClaimView, name: str, how: str, measured: bool = True) -> Hazard:
    """A hazard that shows in events on outputs; the resolution was measured with planted events of most kinds."""
    ignored = [kind for kind in claim.raw.get("ignore") or () if _find_hazard(kind) == name]
    if "floating-point" in ignored or (ignored and set(ignored) == set(_KINDS.get(name, ()))):
        return Hazard(name, PASSED_OVER, f"left out of the audit: {', '.join(ignored)}")
    if walked := _find_walk(claim):
        if claim.verdict == "violation":
            return Hazard(
                name, PASSED_OVER, "an outcome that refutes the claim was found by walking the code, of any kind"
            )
        how = f"all random decisions of the code were walked on {_say_walked(walked)}"
        return Hazard(name, TESTED, how, "any difference beyond the claim on these")
    if not _has_events(claim):
        return Hazard(name, PASSED_OVER, _NO_EVENTS)
    how += f"; left out of the audit: {', '.join(ignored)}" if ignored else ""
    if claim.verdict != "violation":
        return Hazard(name, TESTED, how, _say_resolution(claim) if measured else "not measured for such events")
    further: Sequence[Mapping[str, Any]] = claim.raw.get("also") or ()
    causes = [(str((claim.counterexample or {}).get("cause") or ""), "")]
    causes += [(str(search.get("cause") or ""), f", by {search['draws']:,} further draws") for search in further]
    for cause, by in causes:
        if cause and _find_hazard(find_kind(kind_of(cause))) == name:
            return Hazard(name, FOUND, cause + by)
    if further and further[-1]["verdict"] in ("consistent", "inconclusive"):
        how += f", by {further[-1]['draws']:,} further draws without {', '.join(further[-1]['ignore'])}"
        return Hazard(name, TESTED, how, "not measured for further searches")
    return Hazard(name, PASSED_OVER, f"{how}; the audit ended with another finding first")


#: Kinds of causes of each hazard that shows in events, by the names with which they are ignored; all others are values.
_KINDS: Mapping[str, Sequence[str]] = {
    "bits": ("floating-point", "lattice"),
    "exceptions": ("exceptions",),
    "shape": ("types", "length", "keys", "key-order", "missing-values"),
}


def _find_hazard(kind: str | None) -> str:
    """The hazard of a kind of causes, which has a name if it can be ignored."""
    return next((name for name, kinds in _KINDS.items() if kind in kinds), VALUES)


def _of_exceptions(claim: ClaimView) -> Hazard:
    if claim.text("method") == FIXED_SIZE and claim.verdict != "error":
        return Hazard(
            "exceptions",
            PASSED_OVER,
            "no call raised; with the fixed-size method one that raises is an error, no output",
        )
    return _of_events(claim, "exceptions", "the class of what a call raises is part of the output")


def _of_arithmetic(run: RunView, claim: ClaimView) -> Hazard:
    if not (_has_events(claim) or _find_walk(claim)):
        return Hazard("arithmetic", PASSED_OVER, _NO_EVENTS)
    pairs = len((claim.raw.get("record") or {}).get("pairs") or ())
    hidden = "overflow, rounding and order of sums"
    on = f"on the {words.number_of(pairs, 'pair')} of datasets that were audited" if pairs else "in this audit"
    if run.manifest.get("outside"):
        how = f"{hidden} show as events on values, {on}; values outside the domain are among them"
        return Hazard("arithmetic", TESTED, how, _say_resolution(claim))
    how = f"{hidden} were looked for {on} only, without values outside the domain (--outside)"
    return Hazard("arithmetic", PASSED_OVER, how)


def _of_independence(claim: ClaimView) -> Hazard:
    tested = claim.raw.get("independence") or {}
    if _find_walk(claim):
        return Hazard("independence", PASSED_OVER, "one call was walked; what calls share was not looked at")
    if not tested.get("draws"):
        return Hazard("independence", PASSED_OVER, "that draws are independent is assumed")
    draws, p = int(tested["draws"]), [float(v) for v in (tested.get("p_values") or {}).values()]
    how = f"repeats and correlation within calls and between them, on {draws:,} further draws"
    if not tested.get("passed"):
        return Hazard("independence", FOUND, f"{how}: {tested.get('finding', '')}")
    least = f"least p-value {min(p):.2g} of {len(p)}" if p else ""
    return Hazard("independence", TESTED, how, least + ("; 1e-6 decides" if least else ""))


def _of_composition(same: Sequence[ClaimView]) -> Hazard:
    parts = [c for c in same if c.level == "L2"]
    if parts:
        worst = [c.id for c in parts if c.verdict == "violation"]
        how = f"{words.number_of(len(parts), 'component')} held against the bound of its own"
        return Hazard("composition", FOUND if worst else TESTED, how + (f": {', '.join(worst)}" if worst else ""))
    return Hazard(
        "composition",
        PASSED_OVER,
        "a draw is one release with fresh randomness; what several releases lose together was not audited",
    )


def _of_sampling(same: Sequence[ClaimView]) -> Hazard:
    held = [c for c in same if c.conformity]
    if not held:
        return Hazard("sampling", PASSED_OVER, "no distribution is stated that outputs could be held against")
    wrong = [c for c in held if c.verdict == "deviation"]
    how = f"outputs held against their stated distribution ({words.number_of(len(held), 'claim')})"
    if wrong:
        return Hazard("sampling", FOUND, f"{how}: {words.one_line(describe_verdict(wrong[0]))}")
    levels = [level for c in held if (level := c.number("resolves")) is not None]
    found = f"a divergence of {words.format_level(max(levels))} nats a draw, in 9 of 10 audits" if levels else ""
    return Hazard("sampling", TESTED, how, found)


def _list_gaps(claim: ClaimView) -> Iterator[str]:
    """What no part of the audit speaks of."""
    yield "neighbouring datasets other than those that were audited"
    if claim.verdict == "holds":
        lost = parse_number(_find_walk(claim).get("lost")) or 0.0
        yield from [f"events of probability up to {lost:.2g}, which the walk left out"] if lost else []
    elif claim.verdict != "violation":
        yield "events that are rarer than the resolution speaks of, or spread over many numbers"
    if ONLY_TEXTS in claim.text("message"):
        yield "what objects in the outputs hold beside their texts"
    yield "time, memory and other side channels; the secrecy and the seeding of the random generator"
    yield "whether the relation between datasets protects what has to be protected"
    if claim.raw.get("unseeded"):
        yield "repeating the draws: the target draws from randomness of its own"


def find_meaning(claim: ClaimView) -> dict[str, Any]:
    """Compute how well a claim lets an adversary tell datasets apart.

    Valid because the claimed cap is concave: between two points at which it is known it is below the lines through
    the two points before, and through the two points after. All numbers are rounded up.

    Parameters
    ----------
    claim : ClaimView
        A claim with a trade-off plot.

    Returns
    -------
    dict
        ``advantage``, the largest difference of true- and false-positive rate that the claim allows, and ``true
        positive rates`` by false-positive rate; empty where the claim has no cap.
    """
    tradeoff = claim.raw.get("tradeoff") or {}
    q, p = ([float(v) for v in tradeoff.get(key) or ()] for key in ("q", "claimed"))
    if len(q) < 2 or len(q) != len(p):
        return {}
    highest = 0.0
    for i in range(1, len(q)):
        places = [q[i - 1], q[i], *_crossings(q, p, i)]
        highest = max(highest, *(_bound_cap(q, p, i, place) - place for place in places))
    rates = {}
    for rate in RATES:
        for i in range(1, len(q)):
            if q[i - 1] <= rate <= q[i]:
                rates[f"{rate:g}"] = _round_up(_bound_cap(q, p, i, rate))
    return {"advantage": _round_up(highest), "true positive rates": rates}


def _line(q: Sequence[float], p: Sequence[float], a: int, b: int) -> tuple[float, float] | None:
    """Height at 0 and slope of the line through two points of the grid, if it has both."""
    if a < 0 or b >= len(q) or q[b] <= q[a]:
        return None
    slope = (p[b] - p[a]) / (q[b] - q[a])
    return p[a] - slope * q[a], slope


def _lines_beside(q: Sequence[float], p: Sequence[float], i: int) -> list[tuple[float, float]]:
    """Lines above a concave cap on the interval that ends at point i, and the largest probability."""
    beside = (_line(q, p, i - 2, i - 1), _line(q, p, i, i + 1), (1.0, 0.0))
    return [line for line in beside if line is not None]


def _bound_cap(q: Sequence[float], p: Sequence[float], i: int, place: float) -> float:
    if place in (q[i - 1], q[i]):
        return p[i - 1] if place == q[i - 1] else p[i]
    return min(height + slope * place for height, slope in _lines_beside(q, p, i))


def _crossings(q: Sequence[float], p: Sequence[float], i: int) -> Iterator[float]:
    """Places inside the interval that ends at point i where the lines above the cap cross."""
    lines = _lines_beside(q, p, i)
    for k, (height, slope) in enumerate(lines):
        for other, gradient in lines[k + 1 :]:
            if slope != gradient and q[i - 1] < (place := (other - height) / (slope - gradient)) < q[i]:
                yield place


def _round_up(value: float) -> float:
    """A probability in `_DIGITS` digits, from above; the grid holds 8 digits."""
    if not 0 < value < 1:
        return min(max(value, 0.0), 1.0)
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return min(1.0, float(f"{math.ceil(value / unit - 1e-4) * unit:.{_DIGITS}g}"))


def _facts(statement: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Labels and values at the head of the page."""
    about = statement["predicate"]
    claim, pairs = about["claim"], about["pairs"]
    named = "; ".join(pairs[:_NAMED]) + (f"; and {len(pairs) - _NAMED:,} more" if len(pairs) > _NAMED else "")
    bound = parse_number(about["lower bound"])
    reached = (
        ""
        if about["reached"] is None
        else f", {words.format_percent(parse_number(about['reached']) or 0.0)} of the claim"
    )
    certified = (
        ""
        if bound is None or not about["draws"]
        else (f"at least {words.format_level(bound)} at confidence {about['confidence']}{reached}")
    )
    said = f"{len(pairs):,}: {named}" if pairs else "none"
    if walked := about.get("walked"):
        low, high = (words.format_level(parse_number(walked[end])) for end in ("low", "high"))
        certified = f"from {low} to {high} on these datasets"
        said = f"{_say_walked(walked)}; the worst: {named}"
    versions = [f"dpaudit {about['tool']['version']}", f"Python {about['python']}" if about["python"] else ""]
    versions += [f"{name} {version}" for name, version in about["libraries"].items()]
    hashes = [f"{s['name']}: {kind} {value}" for s in statement["subject"] for kind, value in s["digest"].items()]
    return [
        ("target", claim["target"]),
        ("claim", f"{claim['text']} ({claim['notion']})"),
        ("unit of privacy", claim["unit"] or "not stated (--unit)"),
        ("relation", claim["relation"] or "not stated in the results; see the pairs"),
        ("pairs", said),
        ("verdict", about["verdict"]),
        ("certified level", certified or "none"),
        ("draws", f"{about['draws']:,}"),
        ("versions", ", ".join(filter(None, versions))),
        ("hashes", "; ".join(hashes)),
    ]


def _meaning_lines(statement: Mapping[str, Any]) -> list[str]:
    """What the claim allows an adversary, in sentences."""
    meaning = statement["predicate"]["meaning"]
    if not meaning:
        return ["What this claim allows an adversary to reach from an event was not computed.", _say_shown(statement)]
    rates = "; ".join(
        f"{words.format_percent(rate)} at a false-positive rate of {words.format_percent(float(at))}"
        for at, rate in meaning["true positive rates"].items()
    )
    return [
        "If the claim holds, nobody who sees one output and knows both datasets tells them apart with an advantage "
        f"(true- minus false-positive rate) above {words.format_percent(meaning['advantage'])}.",
        f"The true-positive rate is then at most {rates}.",
        _say_shown(statement),
    ]


def _say_shown(statement: Mapping[str, Any]) -> str:
    """What the audit shows of the claim, in a sentence."""
    match statement["predicate"]["verdict"]:
        case "violation":
            return "The audit shows that the claim does not hold."
        case "holds":
            return "The audit shows that the claim holds on the datasets that were walked, and on no others."
    return "The audit does not show that the claim holds."


def render_sheet_markdown(statement: Mapping[str, Any]) -> str:
    """Render a statement as Markdown, for a terminal or a comment.

    Parameters
    ----------
    statement : mapping
        What `make_statement` gives.
    """
    about = statement["predicate"]
    lines = [f"# Evidence: {escape_markdown(about['claim']['target'])}", "", escape_markdown(about["summary"]), ""]
    lines += ["| | |", "|---|---|"]
    lines += [f"| {key} | {_cell(value)} |" for key, value in _facts(statement)]
    lines += ["", "| hazard | | how | what would have been found |", "|---|---|---|---|"]
    lines += [" | ".join(("", *(_cell(hazard[key]) for key in _HEADS), "")).strip() for hazard in about["hazards"]]
    lines += ["", "Not tested:", "", *(f"- {escape_markdown(gap)}" for gap in about["not tested"]), ""]
    lines += [*_meaning_lines(statement), "", "Run it again:", "", f"    {words.one_line(about['replay'])}"]
    return "\n".join(lines) + "\n"


_HEADS = ("name", "status", "how", "resolution")


def _cell(text: str) -> str:
    return escape_markdown(words.one_line(text)).replace("|", "\\|") or "–"


def render_sheet_html(statement: Mapping[str, Any]) -> str:
    """Render a statement as one HTML page to print.

    It opens offline.

    Parameters
    ----------
    statement : mapping
        What `make_statement` gives.
    """
    from auditor.report.html import format_prose

    environment = create_environment()
    environment.filters["prose"] = format_prose
    page = environment.from_string(read_asset("evidence_sheet.html")).render(
        about=statement["predicate"],
        facts=_facts(statement),
        meaning=_meaning_lines(statement),
        good=statement["predicate"]["verdict"] in ("consistent", "holds"),
        replay=words.one_line(statement["predicate"]["replay"]),
    )
    return without_indentation(page)
