"""Claims of accuracy and computed statements in plain sentences, and the table of theorems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from auditor.report import phases, words
from auditor.report.view import PHASE_DIAGRAM, ClaimView, RunView
from auditor.results import ANSWER_ZERO, parse_number

Found = Mapping[str, Any]


class TheoremRow(NamedTuple):
    """A line of the table of theorems; its fields are the columns.

    Parameters
    ----------
    measured : str
        What the claim bounds.
    claimed : str
        The bound, or the power that is claimed.
    found : str
        What was found, with its limits.
    slack : str
        How many times larger the bound is than what was found.
    outcome : str
        The verdict in words, with the strength of a pass.
    basis : str
        How the numbers were found: "measured", "exact" or "computed".
    refuted_by : str
        What would have refuted the claim.
    """

    measured: str
    claimed: str
    found: str
    slack: str
    outcome: str
    basis: str = ""
    refuted_by: str = ""


#: Heads of the table of theorems, beside those that name the claim.
HEADS = tuple(name.replace("_", " ") for name in TheoremRow._fields)


def explain_theorem(claim: ClaimView) -> Iterator[str]:
    """Explain a claim of accuracy or computed statement, in paragraphs."""
    found, message = claim.found, claim.text("message").strip()
    if message and not message.endswith("."):
        message += "."
    message = message[:1].upper() + message[1:]
    match claim.verdict:
        case "deviation":
            yield f"Not as claimed: {claim.text('claimed')}. {message}"
        case "error" | "inconclusive":
            yield claim.undecided
        case _:
            yield f"Not refuted: {claim.text('claimed')}."
    if found:
        yield from _SENTENCES.get(str(found.get("kind")), _explain_nothing)(claim, found)
        yield from _control(found)
    if found.get("basis") == "computed":
        yield "The numbers are those of a formula, computed: nothing was measured."
    if "constant" in (claim.raw.get("parameters") or {}):
        yield "The constant is derived; the document states the claim with O(.) only."
    if claim.raw.get("truncated_by"):
        yield f"Cut short by {claim.text('truncated_by')}."


def tabulate_theorems(run: RunView) -> list[tuple[ClaimView, TheoremRow]]:
    """List claims of accuracy, each with its table row."""
    found = ((claim, build_row(claim)) for claim in run.claims)
    return [(claim, line) for claim, line in found if line is not None]


def build_row(claim: ClaimView) -> TheoremRow | None:
    """Build a row of the table of theorems, or None."""
    found = claim.found
    build = _ROWS.get(str(found.get("kind"))) if found else None
    if build is None or (found["kind"] == "inequality" and claim.level != "L4"):
        return None
    line = build(claim, found)
    return line._replace(
        outcome=", ".join(filter(None, (line.outcome, claim.strength))),
        basis=str(found.get("basis") or "–"),
        refuted_by=_control_in_short(found),
    )


def _control_in_short(found: Found) -> str:
    """What would have refuted the claim, for a line of the table."""
    if "control" not in found:
        return "–"
    control = found["control"]
    return "nothing that was tried" if control is None else str(control["what"])


def _control(found: Found) -> Iterator[str]:
    """What would have refuted a claim, where that was looked at."""
    if "control" not in found:
        return
    control = found["control"]
    if control is None:
        yield (
            "Nothing that was tried would have refuted the claim. Perhaps nothing can; then the claim states nothing. "
            "(More noise and less are tried where a parameter is known to scale it.)"
        )
    elif "by" in control:
        yield f"Would have been refuted by {control['what']}."
    else:
        also = control.get("zero") and control["what"] != ANSWER_ZERO
        zero = f" So was {ANSWER_ZERO}." if also else ""
        yield f"Tried with {control['what']}, it was refuted: {control['message']}.{zero}"


def describe_discrepancy(claim: ClaimView) -> str:
    """Describe in one line by how much a refuted claim fails."""
    found = claim.found
    if found.get("kind") == "inequality":
        worst = found["worst"]
        stated = f"{found['comparison']} {_as_text(worst, 'right')}"
        return f"{_as_text(worst, 'left')} where {stated} is stated ({worst['case']})"
    exact = claim.number("exact")
    if found.get("kind") == "failure rate":
        known = (
            f"exactly {words.format_level(exact)}" if exact is not None else f"{_as_text(found, 'rate')} in the draws"
        )
        rate, stated = _as_text(found, "lower"), _as_text(found, "claimed")
        return f"fails with probability ≥ {rate} ({known}) where ≤ {stated} is stated"
    if claim.theorem:
        return claim.text("message")
    claimed = f"where {claim.text('claimed')} is stated"
    bound = claim.number("lower_bound")
    if claim.level == "L0" and exact is not None:
        return f"{claim.symbol} = {words.format_level(exact)} {claimed}"
    if bound is not None and claim.verdict == "violation":
        known = f", exactly {words.format_level(exact)}," if exact is not None else ""
        return f"{claim.symbol} ≥ {words.format_level(bound)}{known} {claimed}"
    return claim.text("message")


def _as_text(found: Found, key: str) -> str:
    return words.format_level(parse_number(found.get(key)))


def _explain_nothing(claim: ClaimView, found: Found) -> Iterator[str]:
    del claim, found
    yield ""


def _slack(slack: float | None, of: str) -> str:
    """A factor between a bound and what was measured, in words."""
    if slack is None or math.isnan(slack):
        return ""
    if math.isinf(slack):
        return f"{of[:1].upper()}{of[1:]} was 0: any bound above 0 is loose."
    return f"The bound is {slack:.3g} times {of}."


def _failure(claim: ClaimView, found: Found) -> Iterator[str]:
    yield (
        f"The error was above {_as_text(found, 'error')} in {int(found['failures']):,} of {int(found['draws']):,} "
        f"draws ({_as_text(found, 'rate')}). The failure rate is at least {_as_text(found, 'lower')}, and at most "
        f"{_as_text(found, 'upper')}, each at confidence {claim.confidence}; {_as_text(found, 'claimed')} is claimed."
    )
    yield _describe_quantile(claim, found)
    if claim.verdict in ("consistent", "inconclusive"):
        rate = words.format_level(claim.number("resolves"))
        yield f"A failure rate of {rate} would have been flagged with probability 0.9."


def _describe_quantile(claim: ClaimView, found: Found) -> str:
    """The largest error but those of the allowed failure rate; empty where it says no more than the rate."""
    beta, quantile = parse_number(found["claimed"]) or 0.0, parse_number(found["quantile"])
    if quantile == math.inf:
        return f"More than {words.format_percent(beta)} of the errors were infinite."
    if quantile == 0 and parse_number(found["error"]) == 0:
        return ""
    return (
        f"{words.format_percent(1 - beta)} of the errors were at most {_as_text(found, 'quantile')} (this quantile is "
        f"between {_as_text(found, 'quantile_lower')} and {_as_text(found, 'quantile_upper')} at confidence "
        f"{claim.confidence}, whenever the audit stopped). {_slack(parse_number(found['slack']), 'this quantile')}"
    )


def _explain_expectation(claim: ClaimView, found: Found) -> Iterator[str]:
    yield (
        f"The mean error was {_as_text(found, 'mean')} in {int(found['draws']):,} draws (between "
        f"{_as_text(found, 'mean_lower')} and {_as_text(found, 'mean_upper')} at 95 %, if the mean is about normal). "
        + _slack(parse_number(found["slack"]), "the mean")
    )
    if (parse_number(found["lower"]) or 0.0) > 0:
        yield (
            f"The expectation is at least {_as_text(found, 'lower')} at confidence {claim.confidence}, "
            "whatever the distribution."
        )
    if claim.verdict in ("consistent", "inconclusive"):
        level = words.format_level(claim.number("resolves"))
        yield f"An expectation of about {level} would have been flagged with probability 0.9."


def _explain_smallest(claim: ClaimView, found: Found) -> Iterator[str]:
    name, which = found["parameter"], "largest" if found["largest"] else "smallest"
    yield (
        f"At the theorem's {name} = {_as_text(found, 'claimed')} there were {int(found['failures']):,} failures in "
        f"{int(found['draws']):,} draws: the rate is between {_as_text(found, 'rate_lower')} and "
        f"{_as_text(found, 'rate_upper')}, {_as_text(found, 'beta')} is allowed."
    )
    yield (
        f"The {which} value of {name} that works is about {_as_text(found, 'measured')}, between "
        f"{_as_text(found, 'lower')} and {_as_text(found, 'upper')} at confidence {claim.confidence}. The theorem's "
        f"value differs from it by a factor of {_as_text(found, 'slack')}."
    )


def _exponent(claim: ClaimView, found: Found) -> Iterator[str]:
    computed = not claim.draws
    interval = f"{_as_text(found, 'exponent_lower')} to {_as_text(found, 'exponent_upper')}"
    how = f"between neighbouring values it is {interval}" if computed else f"{interval} in 95 % of bootstrap samples"
    bound = "the claim is" if found["criterion"] else "the bound has, in the limit,"
    here = parse_number(found.get("curve_exponent"))
    if not found["criterion"] and here is not None:
        bound = f"the bound has {here:.3g} over these values and, in the limit,"
    text = (
        f"The {found['measured']} grows as {found['parameter']} to the power {_as_text(found, 'exponent')} ({how}"
        f"{', after the log factor is divided out' if found.get('factors') else ''}); "
        f"{bound} {_as_text(found, 'claimed')}."
    )
    candidates = [parse_number(value) for value in found.get("candidates") or []]
    low, high = parse_number(found["exponent_lower"]) or 0.0, parse_number(found["exponent_upper"]) or 0.0
    excluded = [words.format_level(value) for value in candidates if value is not None and not low <= value <= high]
    if excluded:
        text += f" The interval excludes {words.join_texts(excluded)}."
    if str(found.get("outcome", "")).startswith("looser"):
        text += " What is measured does better than the claimed power."
    yield text
    if not computed:
        yield _describe_growth(claim, found)
    slack = [value for value in map(parse_number, found.get("slack") or []) if value is not None]
    if slack:
        span = f"{min(slack):.3g}" if min(slack) == max(slack) else f"{min(slack):.3g} to {max(slack):.3g}"
        yield f"The theorem's curve is {span} times what was measured."


def _describe_growth(claim: ClaimView, found: Found) -> str:
    """What is certified of an exponent: of both limits those that are finite."""
    limits = [
        f"at {side} {_as_text(found, key)}"
        for side, key in (("least", "growth_lower"), ("most", "growth_upper"))
        if math.isfinite(parse_number(found[key]) or 0.0)
    ]
    if not limits:
        return f"No exponent could be certified at confidence {claim.confidence}."
    return (
        f"Certified at confidence {claim.confidence}, for all points together: between some two values the exponent is "
        f"{', and between some two '.join(limits)}."
    )


def _inequality(claim: ClaimView, found: Found) -> Iterator[str]:
    del claim
    worst, cases = found["worst"], int(found["cases"])
    compared = f"{_as_text(worst, 'left')} against {_as_text(worst, 'right')} ({worst['case']})"
    held = f"it holds in {cases - int(found['failed']):,} of {words.number_of(cases, 'case')}"
    which = "worst" if int(found["failed"]) else "closest"
    yield f"Both sides were computed: {held}; the {which} is {compared}."


_SENTENCES: dict[str, Callable[[ClaimView, Found], Iterator[str]]] = {
    "failure rate": _failure,
    "expected error": _explain_expectation,
    "smallest parameter": _explain_smallest,
    "exponent": _exponent,
    "inequality": _inequality,
    PHASE_DIAGRAM: phases.describe_diagram,
}


def _failure_row(claim: ClaimView, found: Found) -> TheoremRow:
    return TheoremRow(
        "failure rate",
        f"≤ {_as_text(found, 'claimed')} above {_as_text(found, 'error')}",
        f"{_as_text(found, 'rate')} [{_as_text(found, 'lower')}, {_as_text(found, 'upper')}]",
        _as_text(found, "slack"),
        claim.verdict,
    )


def _expected_row(claim: ClaimView, found: Found) -> TheoremRow:
    interval = f"[{_as_text(found, 'mean_lower')}, {_as_text(found, 'mean_upper')}]"
    return TheoremRow(
        "expected error",
        f"≤ {_as_text(found, 'claimed')}",
        f"{_as_text(found, 'mean')} {interval}",
        _as_text(found, "slack"),
        claim.verdict,
    )


def _smallest_row(claim: ClaimView, found: Found) -> TheoremRow:
    return TheoremRow(
        f"{'largest' if found['largest'] else 'smallest'} {found['parameter']}",
        _as_text(found, "claimed"),
        f"{_as_text(found, 'measured')} [{_as_text(found, 'lower')}, {_as_text(found, 'upper')}]",
        _as_text(found, "slack"),
        claim.verdict,
    )


def _exponent_row(claim: ClaimView, found: Found) -> TheoremRow:
    slack = [value for value in map(parse_number, found.get("slack") or []) if value is not None]
    span = "–" if not slack else f"{min(slack):.3g} to {max(slack):.3g}"
    return TheoremRow(
        f"{found['measured']}, exponent of {found['parameter']}",
        _as_text(found, "claimed") + ("" if found["criterion"] else " (of the bound)"),
        f"{_as_text(found, 'exponent')} [{_as_text(found, 'exponent_lower')}, {_as_text(found, 'exponent_upper')}]",
        span,
        str(found.get("outcome") or claim.verdict),
    )


def _phase_row(claim: ClaimView, found: Found) -> TheoremRow:
    return TheoremRow(*phases.statement_row(found), "–", claim.verdict)


def _inequality_row(claim: ClaimView, found: Found) -> TheoremRow:
    worst, cases = found["worst"], int(found["cases"])
    sides = f"{_as_text(worst, 'left')} {found['comparison']} {_as_text(worst, 'right')}"
    return TheoremRow(
        "both sides",
        claim.text("claimed"),
        f"{sides} ({worst['case']}), the closest of {words.number_of(cases, 'case')}" if cases > 1 else sides,
        "–",
        claim.verdict,
    )


_ROWS: dict[str, Callable[[ClaimView, Found], TheoremRow]] = {
    "failure rate": _failure_row,
    "expected error": _expected_row,
    "smallest parameter": _smallest_row,
    "exponent": _exponent_row,
    "inequality": _inequality_row,
    PHASE_DIAGRAM: _phase_row,
}
