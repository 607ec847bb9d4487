"""A claim's result in plain sentences: the verdict, what is certified, what would have been caught."""

from __future__ import annotations

import math
from collections.abc import Iterator

from auditor.privacy.exact import GaussianLaw, curve
from auditor.report import theorems, words
from auditor.report.view import ClaimView
from auditor.results import ENUMERATION, REPLAY, describe_carried, parse_number, say_counts, say_resolution

#: Delta at which a bound on mu is also shown as an epsilon: the usual one for datasets of some thousand rows.
DELTA = 1e-5
#: A log-ratio up to which its exponential is also shown: beyond, the factor says no more than the logarithm.
FACTOR = 10.0


def explain_verdict(claim: ClaimView, *, beside: bool = False) -> list[str]:
    """Explain a verdict in plain words, a paragraph each.

    It ends with what the audit could have caught.

    Parameters
    ----------
    claim : ClaimView
    beside : bool
        Whether the counterexample stands beside the paragraphs, so that they need not tell it.
    """
    paragraphs = theorems.explain_theorem(claim) if claim.theorem else _paragraphs(claim, beside)
    return [words.one_line(paragraph) for paragraph in paragraphs if paragraph]


def summarize_finding(claim: ClaimView) -> str:
    """Summarize in one line what was found without a counterexample."""
    if claim.verdict == "deviation":
        return theorems.describe_discrepancy(claim) if claim.theorem else claim.text("event") or claim.text("message")
    return f"{claim.text('claimed')}; exact {words.format_level(claim.number('exact'))}"


def _paragraphs(claim: ClaimView, beside: bool) -> Iterator[str]:
    """Paragraphs on a claim of privacy or conformity, of which some may be empty."""
    yield describe_verdict(claim, beside=beside)
    yield from claim.also
    if claim.conformity:
        if claim.draws:
            yield _certified_ratio(claim)
        if claim.verdict in ("consistent", "inconclusive"):
            yield _reach_of_conformity(claim)
    elif claim.verdict != "error":
        yield _explain_lower_bound(claim)
        if claim.verdict != "violation":
            yield _explain_resolution(claim)
    yield from _notes(claim)


def describe_verdict(claim: ClaimView, *, beside: bool = False) -> str:
    """Describe the verdict, with the counterexample or the reason.

    Parameters
    ----------
    claim : ClaimView
    beside : bool
        Whether the counterexample stands beside it: then what the claim allows is said alone.
    """
    message = claim.text("message").strip()
    if message and not message.endswith((".", "!", "?")):
        message += "."
    sentence = message[:1].upper() + message[1:]
    claimed = claim.text("claimed")
    match claim.verdict:
        case "violation" if claim.counterexample is not None and beside:
            return f"Refuted: {claimed or 'the claim'} does not hold. {_say_allowed(claim)} {sentence}"
        case "violation" if claim.counterexample is not None:
            return f"Refuted. {describe_counterexample(claim)} {sentence}"
        case "violation" if claim.text("method") == ENUMERATION:
            return f"Refuted: {claimed} does not hold. {sentence} Pair: {claim.text('pair')}; {claim.text('event')}."
        case "holds":
            return f"Holds on the datasets of a small domain, by walking all random decisions of the code. {sentence}"
        case "violation":
            exact = claim.number("exact")
            if not message and exact is not None:
                sentence = f"The stated distribution has {claim.symbol} = {words.format_level(exact)}."
            return f"Refuted: {claimed} does not hold. {sentence}"
        case "deviation" if claim.text("method") == REPLAY:
            return f"Found by replay, and not certified, so that it may be right: {message}"
        case "deviation":
            found = f"{message or 'see below.'} {_explain_deviation(claim)}"
            return f"Wrong, but by itself no violation of the guarantee: {found}"
        case "error" | "inconclusive":
            return claim.undecided
    if claim.text("method") == REPLAY:
        return f"Not refuted by two runs with the same random variates. {sentence}"
    if not claim.draws:
        return f"Not refuted. The stated distribution was computed exactly and is within the claim. {sentence}"
    against = claimed or "the claim"
    without = f" ({claim.ignored})" if claim.ignored else ""
    return f"Not refuted: {claim.draws:,} draws gave no sufficient evidence against {against}{without}. {sentence}"


def describe_counterexample(claim: ClaimView) -> str:
    """Describe a counterexample: event, counts and evidence.

    One or two sentences; empty without a counterexample.
    """
    found = claim.counterexample
    if found is None:
        return ""
    x, y, n = (int(found[key]) for key in ("x_count", "y_count", "n"))
    if claim.is_game:
        won, allowed = say_counts(found)
        text = f"The adversary's {found['event']}: {won}; {claim.text('claimed')} allows {allowed}"
    else:
        text = f"The event “{found['event']}” occurred in {x:,} of {n:,} draws on x and in {y:,} of {n:,} on x′"
    cap = _cap(claim, y / n) if n else None
    if cap == 0:
        text += f"; if it is impossible on x′, {claim.text('claimed')} does not allow it on x"
    elif cap is not None and cap < 1:
        text += f"; at the latter rate, {claim.text('claimed')} allows about {words.format_percent(cap)} on x at most"
    if found["e_value_log10"] is None:
        return text + "."
    text += f". The evidence reached {words.format_e_value(parse_number(found['e_value_log10']))}"
    if claim.threshold is not None:
        text += f"; {words.format_e_value(claim.threshold)} decides"
    return text + "."


def _say_allowed(claim: ClaimView) -> str:
    """What the claim allows on x at the rate of the counterexample's event on x′."""
    found = claim.counterexample or {}
    cap = _cap(claim, int(found["y_count"]) / int(found["n"])) if found.get("n") else None
    if cap == 0:
        return "The event below did not occur on x′; if it is impossible there, it must not occur on x."
    if cap is None or cap >= 1:
        return ""
    share = words.format_percent(int(found["x_count"]) / int(found["n"]))
    return (
        f"At the rate on x′ of the event below it allows about {words.format_percent(cap)} on x at most; {share} of "
        "the draws on x were in it."
    )


def _cap(claim: ClaimView, q: float) -> float | None:
    """The claimed cap at ``q``, on the line between its neighbours: never above the cap, which is concave."""
    tradeoff = claim.raw.get("tradeoff") or {}
    grid, cap = tradeoff.get("q") or [], tradeoff.get("claimed") or []
    for i in range(1, min(len(grid), len(cap))):
        if grid[i - 1] <= q <= grid[i] and grid[i] > grid[i - 1]:
            share = (q - grid[i - 1]) / (grid[i] - grid[i - 1])
            return float(cap[i - 1] + share * (cap[i] - cap[i - 1]))
    return None


def _explain_deviation(claim: ClaimView) -> str:
    """Evidence for a deviation from a stated distribution; empty where something else showed the deviation."""
    highest, threshold = claim.log10_max, claim.threshold
    if not claim.conformity or highest is None or threshold is None:
        return ""
    if highest == math.inf:
        return "One such output refutes the stated distribution, which excludes it."
    return f"The evidence reached {words.format_e_value(highest)}; {words.format_e_value(threshold)} decides."


def _explain_lower_bound(claim: ClaimView) -> str:
    bound = claim.number("lower_bound")
    if bound is None:
        return ""
    if bound <= 0:
        part = "." if claim.reached is None else ": 0 % of the claim is reached."
        return f"No level above 0 could be certified at confidence {claim.confidence}{part}"
    text = f"Certified at confidence {claim.confidence}: {claim.symbol} ≥ {words.format_level(bound)} on these pairs"
    text += "." if claim.reached is None else f", {words.format_percent(claim.reached)} of the claim."
    if claim.symbol == "μ" and bound < math.inf:
        epsilon = curve(GaussianLaw(0.0, 1.0), GaussianLaw(bound, 1.0)).epsilon(DELTA)
        text += f" If the curve is Gaussian, that is ε = {words.format_level(epsilon)} at δ = {DELTA:g}."
    if claim.symbol == "t":
        text += " Here t is a factor on what is claimed: the claim itself is t = 1."
    return text


def _certified_ratio(claim: ClaimView) -> str:
    """The lower bound of a claim of conformity: a log-ratio, in nats, of a cell's probability to the stated one."""
    bound = claim.number("lower_bound")
    if bound is None:
        return ""
    start = f"Certified at confidence {claim.confidence}:"
    if bound == math.inf:
        return f"{start} outputs occur that the stated distribution excludes."
    if bound <= 0:
        return f"That any outcome is more probable than stated could not be certified at confidence {claim.confidence}."
    factor = f": it is at least {math.exp(bound):.6g} times as probable" if bound <= FACTOR else ""
    ratio = words.format_level(bound)
    return f"{start} some outcome exceeds its stated probability by a log-ratio of {ratio} nats{factor}."


def _explain_resolution(claim: ClaimView) -> str:
    ceiling, resolves = claim.number("ceiling"), claim.number("resolves")
    parts = []
    if resolves is not None and claim.raw.get("resolution"):
        said = say_resolution(claim.symbol, resolves, len((claim.raw.get("record") or {}).get("pairs") or [""]))
        parts.append(said[0].upper() + said[1:] + ".")
        if claim.strength == "out of reach":
            parts.append("Twice the claimed level is out of reach of so few draws.")
        parts.append("The audit may have missed a leak that lies in rarer events, or is spread over many numbers.")
    elif resolves is not None and math.isfinite(resolves):
        level = f"{claim.symbol} = {words.format_level(resolves)}"
        parts.append(f"A true {level}, through this adversary, would have been flagged with probability 0.9.")
    elif resolves is not None:
        parts.append("No level was sure to be flagged through this adversary.")
    if ceiling is not None:
        parts.append(
            f"Even outputs that give the dataset away could not have shown more than {claim.symbol} = "
            f"{words.format_level(ceiling)} with {claim.draws:,} draws."
        )
    if parts and claim.verdict == "consistent":
        parts.append("A pass never means private.")
    return " ".join(parts)


def _reach_of_conformity(claim: ClaimView) -> str:
    """What a claim of conformity would have been caught with.

    A distribution at total variation v from the stated one diverges from it by 2 v^2 nats at least (Pinsker's
    inequality), so whatever is further away than sqrt(d / 2) diverges by more than d.
    """
    divergence = claim.number("resolves")
    if divergence is None:
        return ""
    if math.isinf(divergence):
        return "No divergence was sure to be flagged."
    if divergence <= 0:
        return "There is one outcome only: any other would have been flagged."
    text = f"A divergence of {words.format_level(divergence)} nats a draw, over the finest cells that were looked at, "
    text += "would have been flagged with probability 0.9"
    distance = math.sqrt(divergence / 2)
    if distance < 1:
        text += "; a distribution whose total variation from the stated one over these cells exceeds "
        text += f"{words.format_percent(distance)} diverges by that much"
    return text + ". A pass never proves that the outputs follow the stated distribution."


def _notes(claim: ClaimView) -> Iterator[str]:
    if claim.verdict == "violation" and claim.level == "L2":
        yield "A part breaks its own, tight, bound; the theorem's looser claim may still hold."
    caveat = claim.text("caveat").removesuffix(".")
    if caveat:  # those of audits of training go on from the bound
        yield f"This bound {caveat}." if caveat[0].islower() else f"{caveat}."
    shown, exact = claim.number("event_level"), claim.number("exact")
    if shown is not None and exact:
        part = f", {words.format_percent(shown / exact)} of the exact level" if 0 < exact < math.inf else ""
        yield f"On these pairs one event can show {claim.symbol} = {words.format_level(shown)} at most{part}."
    sandwich, _, why = claim.text("sandwich").partition(": ")
    if sandwich == "failed":
        yield f"The auditor's own check against the exact level failed: {why}."
    elif sandwich == "loose":
        figures, also, further = why.partition("; ")
        smaller = "exact level" if shown is None else "largest level of one event"
        yield f"The audit is not tight: {figures}, the smaller of {smaller} and ceiling{also}{further}."
    if claim.raw.get("truncated_by"):
        chunks = len((claim.raw.get("record") or {}).get("chunks") or [])
        yield f"Cut short by {claim.text('truncated_by')}, after {words.number_of(chunks, 'chunk')} of draws."
    if claim.raw.get("ledger"):
        yield (
            "Evidence is carried from run to run: e-value, bounds, ceiling and resolution are about all draws"
            f"{describe_carried(claim.raw['ledger'])}. `dpaudit ledger` shows it."
        )
    if claim.raw.get("unseeded"):
        yield "The target takes its randomness from elsewhere: a replay recomputes the verdict from the record."
