"""Summary of the evidence of one privacy audit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from auditor.audits.fixed_size import FixedSize
from auditor.audits.privacy_loop import Evidence, Settings, count_effective_draws, find_resolutions, training_record
from auditor.audits.verdict import describe_missed
from auditor.datasets import Pair
from auditor.errors import SpecificationError
from auditor.events.descriptions import say_event
from auditor.evidence.lower_bound import level_grid, lower_bound
from auditor.evidence.power import RESOLVED, draws_to_resolve, find_ceiling, reachable_level
from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees import Guarantee
from auditor.results import (
    ENUMERATION,
    ONLY_TEXTS,
    AuditResult,
    Counterexample,
    describe_carried,
    format_certainty,
    say_also,
    say_counts,
    wealth_fields,
)
from auditor.targets.transcripts import Dialogue
from auditor.targets.values import find_unreadable

#: Fraction of the smaller of exact level and ceiling that a tight audit is to certify; below it the sandwich is
#: reported as loose.
TIGHT = 0.9
#: Outputs of each pair and side that are looked at for types that cannot be read; arbitrary.
_LOOKED = 32


def describe_target(target: object) -> str:
    """A target's name for people."""
    if isinstance(target, Dialogue):
        return " asked by ".join(map(describe_target, target.parts))
    function: Any = target
    while not hasattr(function, "__qualname__") and hasattr(function, "function"):
        function = function.function
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def format_duration(seconds: float) -> str:
    """Format a duration, from nanoseconds to days.

    Examples
    --------
    >>> format_duration(4.23e-5), format_duration(61), format_duration(9000)
    ('42.3 us', '61 s', '2.5 hours')
    """
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{math.ceil(seconds / 1e-9)} ns" if seconds > 0 else "0 s"


def summarise_findings(
    evidence: Evidence, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, private: bool
) -> dict[str, Any]:
    """Bounds, power and the best event.

    Names that begin with an underscore are for the functions below only.

    Parameters
    ----------
    evidence : Evidence
        All that was drawn and bet.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        The pairs that were audited.
    settings : Settings
        Of these, alpha counts.
    private : bool
        Datasets are not shown.
    """
    n = evidence.n
    k = max(range(len(pairs)), key=lambda i: (_wealth_gain(evidence, i), evidence.learners[i].reach, -i))
    learner = evidence.learners[k]
    best = learner.proposal
    found: dict[str, Any] = {
        "draws": 2 * n,
        "lower_bound": lower_bound(
            evidence.chunks, guarantee, level_grid(guarantee.level, guarantee.highest, guarantee.unit), settings.alpha
        ),
        "ceiling": find_ceiling(n, guarantee, settings.alpha),
        **find_resolutions(evidence, settings.alpha),
        **wealth_fields(evidence.path, float(evidence.wealth.best[0]), sides=2),
        "pair": pairs[k].name,
        "truncated_by": evidence.truncated_by,
        "record": _record(evidence, pairs, private),
        "_pair": k,
        "_best": best,
    }
    if best is not None:
        found["event"] = say_event(best.chain, best.best, private)
    return found


def _wealth_gain(evidence: Evidence, pair: int) -> float:
    """What the wealth at the claimed level gained, in whole nats, on the chunks of one pair."""
    logs = [0.0, *(log for _, log in evidence.path)]
    gain = sum(b - a for a, b, chunk in zip(logs, logs[1:], evidence.chunks, strict=False) if chunk.pair == pair)
    return max(0.0, float(math.floor(gain))) if math.isfinite(gain) else 0.0


def _record(evidence: Evidence, pairs: Sequence[Pair], private: bool) -> dict[str, Any]:
    """Every chunk's bets and counts, as in `Stake`, from which wealth, verdict and bound can be computed again.

    Chunks that earlier runs counted are in their ledger.
    """
    return {
        "pairs": [pair.name for pair in pairs],
        "events": [
            *map(list, evidence.past.words),
            *([say_event(chain, k, private) for k in range(len(chain.cuts))] for chain in evidence.chains),
        ],
        "chunks": [
            [chunk.pair, chunk.n, None if chunk.stake is None else list(vars(chunk.stake).values())]
            for chunk in evidence.chunks[len(evidence.past.chunks) :]
        ],
        **training_record(evidence.learners),
    }


def describe_unresolved(evidence: Evidence | FixedSize, found: Mapping[str, Any], settings: Settings) -> str:
    """Describe what too few draws may have missed.

    With the draws it takes; empty if nothing that was to be found.

    Parameters
    ----------
    evidence : Evidence or FixedSize
        All that was drawn.
    found : mapping
        Fields of the result, from `summarise_findings`.
    settings : Settings
        Level of the test, and what was to be found.
    """
    guarantee, detect = evidence.guarantee, settings.wanted(evidence.guarantee.level)
    what = "any level" if math.isinf(found["resolves"]) else "a level below {}"
    text = describe_missed(what, found["resolves"], detect, f" on events of probability {RESOLVED:g}")
    if not text:
        return ""
    if detect <= guarantee.level:
        return f"{text}, which is no more than is claimed"
    needed = draws_to_resolve(
        detect, guarantee, settings.alpha, partial(count_effective_draws, evidence), evidence.flag
    )
    needed *= 2 * evidence.n / max(evidence.most_drawn()[1], 1)  # other pairs take their part
    if math.isinf(needed):
        return text
    step = 10 ** (math.floor(math.log10(needed)) - 1)
    return f"{text}: {math.ceil(needed / step) * step:,} draws would do"


def describe_unreadable(evidence: Evidence | FixedSize, private: bool) -> str:
    """Describe outputs of which only the text was read.

    Parameters
    ----------
    evidence : Evidence or FixedSize
        Its learners hold draws.
    private : bool
        Names of classes are left out.

    Returns
    -------
    str
        Empty if there were none.
    """
    held = [learner.reservoir for learner in evidence.learners if learner.reservoir.held]
    sides = [side[:_LOOKED] for past in held for side in past.draws() if isinstance(side, list)]
    names = find_unreadable(itertools.chain.from_iterable(sides))
    if not names:
        return ""
    what = "objects" if private else " and ".join(names)
    return f"{ONLY_TEXTS} {what} in the outputs could be read, so that nothing else of them was tested"


def check_sandwich(
    found: Mapping[str, Any],
    exact: float | None,
    event_level: float | None,
    curves: Sequence[PrivacyCurve],
    guarantee: Guarantee,
    settings: Settings,
) -> str:
    """Check that the lower bound is at most the exact level.

    Where the audit ran its budget it is at least 0.9 of the smaller of exact and ceiling.

    Where a single event cannot show the exact level, the largest level that one can stands in its place.

    "loose" is no failure: the events that carry the exact level may be too rare for the budget. Where the exact curve
    is known, the message says what the best single event known beforehand would have certified.

    Parameters
    ----------
    found : mapping
        Fields of the result, from `summarise_findings`.
    exact : float or None
        Exact level on the pairs; the message is empty without it.
    event_level : float or None
        Largest level that a single event can show, where that is less.
    curves : sequence of PrivacyCurve
        Exact curves of the pairs; empty where they are unknown.
    guarantee : Guarantee
        The claim.
    settings : Settings
        Level of the test, and when to stop.
    """
    if exact is None:
        return ""
    bound = found["lower_bound"]
    # Slack for levels rounded to 9 digits and exact levels computed in floating point, of the size of the levels.
    if bound > exact * (1 + 1e-8) + 1e-9 * min(guarantee.level or 1.0, 1.0):
        return f"failed: lower bound {bound:.6g} is above the exact level {exact:.6g}"
    stopped_early = settings.stop == "verdict" and exact > guarantee.level
    wanted = min(exact if event_level is None else event_level, found["ceiling"])
    if stopped_early or bound >= TIGHT * wanted:
        return "holds"
    text = f"loose: lower bound {bound:.4g} is below {TIGHT} of {wanted:.4g}"
    # With several pairs it depends on how the draws are spent; the figure is that of the e-process.
    if len(curves) == 1 and settings.method == "e-process":
        reachable = reachable_level(curves[0], found["draws"] // 2, guarantee, settings.alpha)
        text += f"; with the best event known beforehand {reachable:.4g} could be certified"
    return text


def collect_tradeoff(
    evidence: Evidence | FixedSize, guarantee: Guarantee, curves: Sequence[PrivacyCurve]
) -> dict[str, Any]:
    """Data of the trade-off plot.

    The claimed cap, the exact curve, the events found.

    Parameters
    ----------
    evidence : Evidence or FixedSize
        Has the learners, whose events are points.
    guarantee : Guarantee
        The claim.
    curves : sequence of PrivacyCurve
        Exact curves of the pairs; empty where they are unknown.

    Returns
    -------
    dict
        ``q`` and the curves ``claimed`` and ``exact`` (or None) there; ``points`` (q, p) and the ``draws`` of each.
    """
    # Steps of 0.02, and smaller ones near 0, where caps are steep.
    q = np.unique(np.concatenate([np.linspace(0, 1, 51), np.geomspace(1e-4, 0.02, 12)]))
    points = sorted(
        {
            (round(y / best.n, 8), round(x / best.n, 8), int(best.n))
            for learner in evidence.learners
            for best in ([learner.proposal] if learner.proposal else [])
            for x, y in zip(best.x.tolist(), best.y.tolist(), strict=True)
        }
    )
    exact = np.max([curve.tradeoff(q) for curve in curves], axis=0) if curves else None
    return {
        "q": q,
        "claimed": guarantee.cap(q, guarantee.level),
        "exact": exact,
        "points": [[q, p] for q, p, _ in points],
        "draws": [n for *_, n in points],
    }


def _evidence(result: AuditResult, found: Counterexample) -> str:
    """What the verdict rests on, in one line."""
    if found.e_value_log10 is not None:
        suffices = -math.log10(result.alpha)
        return f"e-value      10^{found.e_value_log10:.1f} against the claim; 10^{suffices:.1f} refutes it"
    judged = result.record["judged"]
    return (
        f"method       {result.method}: probability at least {judged['p_lower']:.4g} on x, "
        f"at most {judged['q_upper']:.4g} on x'; draws that chose the event are not counted"
    )


def explain(result: AuditResult) -> str:
    """The counterexample of a violation, as text that fits on a screen.

    Control characters, which names and messages of a target may have, are escaped.
    """
    if not isinstance(result, AuditResult):
        raise SpecificationError(f"explain takes the result of an audit, got {result!r}")
    from auditor.report.words import escape_controls  # no audit needs the reports

    return escape_controls(_explain(result))


def _explain(result: AuditResult) -> str:
    found = result.counterexample
    summed = f"{result.draws:,} draws{describe_carried(result.ledger)}" if result.ledger else ""
    if result.method == ENUMERATION:
        shown = [] if result.event is None else [f"  pair   {result.pair}", f"  event  {result.event}"]
        return "\n".join([str(result), *shown, f"{result.caveat}."])
    if found is None:
        note = f"\n  ledger       {summed}" if summed else ""
        note += f"\n  note         {result.message}" if result.message and not result.undecided else ""
        return f"{result}{note}"
    on_x, on_y = say_counts(vars(found))
    lines = [
        f"{result.mechanism} violates its claim {result.claimed} ({result.notion})",
        *([f"  cause        {found.cause}"] if found.cause else []),
        *(f"  also         {say_also(o, result.symbol, result.alpha).removeprefix('also ')}" for o in result.also),
        *([f"  ignored      {', '.join(result.ignore)}: not looked at"] if result.ignore else []),
        f"  pair         {found.pair}",
        f"    x          {found.x}",
        f"    x'         {found.y}",
        f"  event        {found.event}",
        f"    on x       {on_x}",
        f"    on x'      {on_y}",
        *([f"  shrunk       {found.shrunk}"] if found.shrunk else []),
        f"  {_evidence(result, found)}",
        f"  lower bound  {found.lower_bound:.4g} at confidence {format_certainty(result.alpha)}",
        *([f"  ledger       {summed}"] if summed else []),
        *([f"  note         {result.message}"] if result.message else []),
        f"  replay       {found.replay}",
        *(["", *found.code.splitlines()] if found.code else []),
    ]
    return "\n".join(lines)
