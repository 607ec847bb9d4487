"""The counterexample of a violation, as a maintainer gets to see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditor.audits.context import Question
from auditor.audits.counterexamples.confirm import EventCounts
from auditor.audits.counterexamples.replay import to_replay, to_replay_unshrunk
from auditor.audits.counterexamples.shrink import Shrunk
from auditor.audits.counterexamples.snippet import show_pair
from auditor.audits.fixed_size import FixedSize
from auditor.audits.privacy_loop import Evidence, Settings
from auditor.datasets import Pair
from auditor.events.descriptions import say_event
from auditor.events.event_learner import Chain
from auditor.events.root_causes import cause_of
from auditor.privacy.guarantees import Guarantee
from auditor.results import NOT_SHOWN, Counterexample
from auditor.targets.sampler import Sampler


def build_counterexample(
    sampler: Sampler,
    evidence: Evidence | FixedSize,
    found: dict[str, Any],
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    settings: Settings,
    question: Question,
) -> Counterexample | None:
    """Build the counterexample of a violation.

    As small as it can be made, if that is asked for.

    Parameters
    ----------
    sampler : Sampler
        Made the draws of the evidence.
    evidence : Evidence or FixedSize
        What refuted the claim.
    found : dict
        Fields of the result, from `auditor.audits.summary.summarise_findings` or `fixed_findings`.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        The pairs that were audited.
    settings : Settings
        Of these, alpha counts.
    question : Question
        Says how to shrink it, and whether datasets may be shown.

    Returns
    -------
    Counterexample or None
        None if no event is at hand.
    """
    best = found["_best"]
    if best is None:
        return None
    pair = pairs[found["_pair"]]
    smaller = None
    if question.shrink is not None:
        smaller = question.shrink(sampler, _carriers(evidence, found, pairs, settings.alpha))
    if smaller is None:
        seen = first_seen(found, pair, guarantee, settings, question)
    else:
        seen = shrunk_to(smaller, found, question)
    learner = evidence.learners[found["_pair"]]
    if learner.never_varies:
        return replace(seen, cause=f"output never varies; {seen.cause}")
    if learner.cancels(best.chain.feature if smaller is None else smaller.chain.feature):
        return replace(seen, cause=f"shared noise: it cancels in a {seen.cause}")
    return seen


def _carriers(
    evidence: Evidence | FixedSize, found: dict[str, Any], pairs: Sequence[Pair], alpha: float
) -> list[tuple[Pair, list[Chain]]]:
    """Pairs that a violation rests on with their events, the most telling first."""
    first = found["_pair"]
    others = sorted(evidence.carriers(alpha) - {first}, key=lambda k: (-evidence.gains()[k], k))
    chains = {k: [finalist.chain for finalist in evidence.learners[k].finalists] for k in (first, *others)}
    best = found["_best"].chain
    chains[first] = [best, *(chain for chain in chains[first] if chain != best)]
    return [(pairs[k], events) for k, events in chains.items() if events]


def first_seen(
    found: Mapping[str, Any], pair: Pair, guarantee: Guarantee, settings: Settings, question: Question
) -> Counterexample:
    """The event that is the strongest evidence against the claim.

    For the e-process with the draws that it was learned from.

    Parameters
    ----------
    found : mapping
        Fields of the result; there is an event.
    pair : Pair
        The pair of the event.
    guarantee : Guarantee
        The claim.
    settings : Settings
        Of these, alpha counts.
    question : Question
        Says whether datasets may be shown.
    """
    best = found["_best"]
    counts = EventCounts(int(best.x[best.best]), int(best.y[best.best]), int(best.n))
    event = say_event(best.chain, best.best, question.private)
    return Counterexample(
        pair=pair.name,
        **_counterexample_content(pair, event, counts, question.private, question),
        e_value_log10=found["log10_max_e_value"],
        lower_bound=found["lower_bound"],
        cause=cause_of(best.chain),
        again=to_replay_unshrunk(pair, best.chain, best.best, counts, guarantee, settings.alpha, question.private),
    )


def shrunk_to(smaller: Shrunk, found: Mapping[str, Any], question: Question) -> Counterexample:
    """The smaller counterexample, with the fresh draws that confirmed it.

    Parameters
    ----------
    smaller : Shrunk
        The smaller counterexample.
    found : mapping
        Fields of the result; the lower bound is taken from them.
    question : Question
        Says whether datasets may be shown.
    """
    private = question.private and not smaller.synthetic
    counts = EventCounts(smaller.x_count, smaller.y_count, smaller.n)
    event = say_event(smaller.chain, 0, private)
    kept = f"{smaller.kept}; " if smaller.kept else ""
    return Counterexample(
        pair=smaller.pair.name,
        **_counterexample_content(smaller.pair, event, counts, private, question),
        e_value_log10=smaller.log10_e_value,
        lower_bound=found["lower_bound"],
        cause=smaller.cause,
        shrunk=f"from “{smaller.original.name}”; {kept}confirmed on {2 * smaller.n:,} fresh draws",
        again=to_replay(smaller, question.private),
    )


def _counterexample_content(
    pair: Pair, event: str, counts: EventCounts, private: bool, question: Question
) -> dict[str, Any]:
    """Datasets, event and counts of a counterexample, and the code that shows them."""
    code = "" if private or question.snippet is None else question.snippet(pair, event, counts)
    x, y = (NOT_SHOWN, NOT_SHOWN) if private else show_pair(pair.x, pair.y)
    return {
        "x": x,
        "y": y,
        "event": event,
        "x_count": counts.x,
        "y_count": counts.y,
        "n": counts.n,
        "replay": question.replay,
        "code": code,
    }
