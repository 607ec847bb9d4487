"""Replay of random draws on the neighbouring dataset: what differs between two runs with the same variates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from auditor.audits.certificates import prove
from auditor.audits.context import Question, watch_datasets
from auditor.audits.counterexamples.replay_call import ReplayCall
from auditor.audits.counterexamples.snippet import show_pair
from auditor.audits.finish import fields_of_claim
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.audits.replay_findings import drop_repeats, find_differences, find_score
from auditor.audits.summary import describe_target
from auditor.datasets import Pair, Relation, check_pairs
from auditor.errors import SpecificationError, TargetError, check_id
from auditor.events.features import Feature
from auditor.privacy.guarantees import Guarantee
from auditor.results import REPLAY, AuditResult, Verdict
from auditor.targets import Mechanism, source_hash
from auditor.targets.outputs import Batch
from auditor.targets.process import ProcessTarget
from auditor.targets.process_settings import keep_apart
from auditor.targets.randomness.signals import Uncontrolled
from auditor.targets.replays import opened_runs

#: Replays, each with other variates, as code may branch on them; up to so many, once the first have been made, as long
#: as no more than these seconds have passed. A clamp that one value of two passes is missed once in a thousand times.
_REPLAYS, _MORE, _QUICK = 3, 10, 0.2
#: Kinds of causes that certify no finding: the last bits of floats refute right noise too, whatever a replay finds.
_BESIDE = ("floating-point",)
#: Draws that bets begin with: in less time nothing is certified.
_FEWEST = 60
#: Least seconds that a walk of the code may take, and those where something was found, unless all is to take fewer.
_WALK, _WALK_OF_FOUND = 0.5, 5.0


@keep_apart()
def trace(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pair: Pair,
    *,
    relation: Relation | None = None,
    seed: int = 0,
    draws: int = 20_000,
    seconds: float | None = None,
    private: bool = False,
    id: str = "trace/L1/claim/given",  # noqa: A002 - the name that results use
) -> AuditResult:
    """Run a target on two datasets with the same variates.

    Parameters
    ----------
    mechanism : callable
        The target, ``(data, n, rng)``; one output is asked for at a time.
    guarantee : Guarantee
        The claim.
    pair : Pair
        Neighbouring datasets.
    relation : Relation, optional
        When two datasets are neighbours; None leaves that unchecked.
    seed : int
        Seed of the variates.
    draws : int
        Draws, both sides together, of the audit that certifies what was found.
    seconds : float, optional
        Seconds that it may take; for slow targets.
    private : bool
        The datasets are not to be shown.
    id : str
        The result's id.

    Returns
    -------
    AuditResult
        "violation" only with a certificate, by enumeration or by bets on fresh draws; "deviation" if something was
        found that neither of them certifies; "holds" if enumeration shows that the claim holds on this pair; else
        "consistent", or "inconclusive" if the target could not be replayed. ``checks`` has each finding.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be.
    TargetError
        If the target raises on both datasets, whatever the variates, or changes them.

    Notes
    -----
    Valid because: findings never decide. A violation is that of `prove`, which is exact, or that of `audit` on draws
    that are made after the findings, and keyed apart from the variates, so that a claim that holds is called violated
    with probability 0.01 at most. Among the events of that audit are those of the score that the findings give
    (`find_score`), which is fixed before its draws; the last bits of floats, which are beside what is found, are not
    bet on. A deviation says what was seen, not that the claim is violated.
    """
    if not isinstance(guarantee, Guarantee):
        raise SpecificationError(f"claim must be a guarantee such as PureDP(1.0), got {guarantee!r}")
    check_id(id)
    check_pairs([pair], relation)
    if draws < 200:
        raise SpecificationError(f"draws must be at least 200, got {draws!r}")
    if seconds is not None and not seconds > 0:
        raise SpecificationError(f"seconds must be above 0, got {seconds!r}")
    begun = time.monotonic()
    labels = _labels(mechanism, guarantee, pair, private, id)
    name = _name_of(mechanism)
    try:
        with watch_datasets([pair.x, pair.y]), opened_runs(mechanism) as runs:
            runs.prepare(pair.x)
            found = [find_differences(runs, guarantee, pair, seed, name)]
            first = time.monotonic()  # the sources are replaced now, which is done once
            while len(found) < _REPLAYS or (len(found) < _MORE and time.monotonic() - first < _QUICK):
                found.append(find_differences(runs, guarantee, pair, seed + len(found), name))
            findings = drop_repeats([finding for differences in found for finding in differences.findings])
            unjudged = next(filter(None, (differences.unjudged for differences in found)), "")
            slow = runs.seconds
            quick = seconds is None or slow * _FEWEST <= seconds
            score = find_score(runs, pair, seed) if findings and quick else None
    except Uncontrolled as signal:
        return AuditResult(verdict=Verdict.INCONCLUSIVE, message=f"it cannot be replayed: {signal.reason}", **labels)
    except TargetError as error:
        raise TargetError(error.public) from None if private else error
    # Leads stand behind findings, unless there is nothing else that bets may certify.
    named = [f for f in findings if not f.lead] or findings
    checks = [{"name": f.kind, "passed": False, "finding": f.describe(private)} for f in named]
    said = "; ".join(f"{check['name']}, {check['finding']}" for check in checks)
    if not isinstance(mechanism, ProcessTarget):
        # What was found may be within the claim, which a walk can tell; a busy machine must not make it an accusation.
        least = min(_WALK_OF_FOUND, seconds or _WALK_OF_FOUND) if findings else 0.0
        walk = max(_WALK, least, 0.5 * (time.monotonic() - begun))
        walked = prove(mechanism, guarantee, pairs=pair, seconds=walk, id=id)
        if walked.verdict in (Verdict.VIOLATION, Verdict.HOLDS):
            shown = None if private else walked.event
            if walked.verdict == Verdict.HOLDS:
                checks, said = [], ""  # what differs is within the claim
            message = "; ".join(filter(None, [walked.message, said]))
            own = {"event": shown, "message": message, "checks": checks, "alpha": 0.0}
            return replace(walked, **{**labels, **own, "method": walked.method, "expected": walked.expected})
    if not findings:
        return AuditResult(verdict=Verdict.CONSISTENT, message=_explain_nothing(unjudged), **labels)
    lead = all(f.lead for f in findings)  # right programs have leads: a noisy maximum shows none of its draws
    if seconds is not None and not quick:
        why = f"a draw takes {slow:.2g} s, so that {seconds:g} s are too few to certify it"
        verdict = Verdict.CONSISTENT if lead else Verdict.DEVIATION
        return AuditResult(verdict=verdict, message=f"{said}; {why}", checks=[] if lead else checks, **labels)
    learners = None if score is None else _ready(score)
    settings = Settings(draws=draws, seconds=seconds, seed=seed, ignore=_BESIDE, learners=learners)
    given = {"seed": seed, "draws": draws, "id": id}
    again = "" if private else ReplayCall().write_audit("trace", mechanism, guarantee, [pair], given)
    judged = run_audit(mechanism, guarantee, [pair], settings, Question(id, replay=again, private=private))
    if judged.verdict == Verdict.VIOLATION:
        return replace(judged, message=said, checks=checks, title=labels["title"])
    why = f"{judged.draws:,} draws did not certify it ({judged.verdict!s}, lower bound {judged.lower_bound or 0:.4g})"
    if lead:
        return AuditResult(verdict=Verdict.CONSISTENT, message=f"{said}; {why}", **labels)
    return AuditResult(verdict=Verdict.DEVIATION, message=f"{said}; {why}", checks=checks, **labels)


def with_replay(result: AuditResult, line: str) -> AuditResult:
    """A result with the line that makes it again.

    Parameters
    ----------
    result : AuditResult
        The result.
    line : str
        A command, or a line of Python.
    """
    seen = result.counterexample
    return replace(result, replay=line, counterexample=seen and replace(seen, replay=line))


def _ready(score: Feature) -> Callable[[Batch, Batch], list[Feature]]:
    """A learner that has nothing to learn."""
    return lambda _x, _y: [score]


_NO_EVIDENCE = "that is no evidence that it holds"


def _explain_nothing(unjudged: str) -> str:
    """What it means that nothing was found."""
    if unjudged:
        return f"outputs with the same variates differ, and are not held against the claim: {unjudged}; {_NO_EVIDENCE}"
    return f"two runs with the same variates differ by no more than the claim allows; {_NO_EVIDENCE}"


def _name_of(mechanism: Mechanism) -> str:
    """Name of a target, for findings that no line is to blame for."""
    if isinstance(mechanism, ProcessTarget):
        served = (Path(word).name for word in mechanism.command[1:] if ":" in word)
        return next(served, describe_target(mechanism))
    return describe_target(mechanism)


def _labels(mechanism: Mechanism, guarantee: Guarantee, pair: Pair, private: bool, id_: str) -> dict[str, Any]:
    return {
        **fields_of_claim(id_, id_.partition("/")[0], guarantee, "L1"),
        "alpha": 0.01,
        "expected": Verdict.CONSISTENT,
        "mechanism": describe_target(mechanism),
        "source_hash": source_hash(mechanism),
        "title": "Replay of random draws",
        "pair": pair.name if private else " against ".join(show_pair(pair.x, pair.y)),
        "stop": "budget",
        "method": REPLAY,
    }
