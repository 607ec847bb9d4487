"""Auditing one claim: the public functions, and what the runner calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from auditor.collect import DRAWS, Evidence, Settings, collect
from auditor.errors import PrivacyViolation, SpecificationError, TargetError
from auditor.events.features import Feature
from auditor.events.outputs import Batch
from auditor.evidence.independence import Independence, check_independence
from auditor.exact import PrivacyCurve
from auditor.findings import counterexample, describe, explain, findings, judge, sandwich, tradeoff
from auditor.guarantees import Guarantee
from auditor.neighbors import Pair, Relation, check_pairs
from auditor.results import AuditResult, Verdict
from auditor.sampling import Sampler
from auditor.targets import Mechanism, source_hash


@dataclass(frozen=True)
class Question:
    """What is asked of one target, beside how (`Settings`): the labels of a result and what is known beforehand.

    Parameters
    ----------
    id : str
        The claim's id; it keys the draws.
    curves : sequence of PrivacyCurve
        Exact curves of the pairs, where they are known.
    exact : float or None
        Exact level on the pairs; computed from ``curves`` if those are given.
    labels : mapping
        Further fields of `AuditResult`.
    replay : str
        A line that finds a counterexample again.
    private : bool
        Datasets are not shown.
    """

    id: str = "audit/L1/claim/given"
    curves: Sequence[PrivacyCurve] = ()
    exact: float | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    replay: str = ""
    private: bool = False


def run_audit(
    target: Mechanism, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, question: Question
) -> AuditResult:
    """Audit one claim on given pairs; never raises for what the target does.

    Notes
    -----
    Valid because: "violation" is returned only if the wealth at the claimed level reached 1/alpha, which under the
    claim has probability at most alpha (see `Wealth`), on draws that passed the independence tests or were taken one a
    call.
    """
    exact = max((guarantee.exact_level(c) for c in question.curves), default=question.exact)
    base = _labels(target, guarantee, settings, question, exact)
    sampler = Sampler(target, settings.seed, question.id, settings.limit)
    try:
        evidence, independence = _collect(sampler, guarantee, pairs, settings)
    except TargetError as error:
        return AuditResult(**base, verdict=Verdict.ERROR, message=error.public if question.private else str(error))
    found = findings(evidence, guarantee, pairs, settings)
    verdict, message = judge(evidence, found, settings, independence)
    return AuditResult(
        **base,
        verdict=verdict,
        message=message,
        independence=asdict(independence),
        unseeded=not independence.seeded,
        sandwich=sandwich(found, exact, question.curves, guarantee, settings),
        counterexample=counterexample(found, pairs, question.replay, question.private)
        if verdict == Verdict.VIOLATION
        else None,
        **{name: value for name, value in found.items() if not name.startswith("_")},
        tradeoff=tradeoff(evidence, guarantee, question.curves),
    )


def _collect(
    sampler: Sampler, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings
) -> tuple[Evidence, Independence]:
    """Collect evidence from a target whose draws are independent, as far as the tests can tell.

    The first pair is tested beforehand. If the evidence then speaks against the claim, the datasets of every other pair
    that was drawn from are tested too, because a target may share noise on some data only. Where a test fails, all is
    drawn anew, one draw a call.
    """

    def tests(chosen: Iterable[int]) -> Independence:
        found = [
            check_independence(sampler, data, k, side)
            for k in chosen
            for side, data in (("x", pairs[k].x), ("y", pairs[k].y))
        ]
        worst = min(found, key=lambda test: (test.passed, min(test.p_values.values())))
        seeded = all(test.seeded for test in found)
        return replace(worst, draws=sum(test.draws for test in found), seeded=seeded)

    nothing = Independence(True, "", {}, 0)
    independence = tests([0]) if settings.independence else nothing
    if independence.passed:
        evidence = collect(sampler, guarantee, pairs, settings)
        others = sorted({chunk.pair for chunk in evidence.chunks} - {0})
        if not (settings.independence and others and evidence.wealth.best[0] >= -math.log(settings.alpha)):
            return evidence, independence
        independence = tests(others)
        if independence.passed:
            return evidence, independence
    alone = Sampler(sampler.target, sampler.seed, sampler.key, sampler.limit, one_a_call=True)
    return collect(alone, guarantee, pairs, settings), independence


def _labels(
    target: Mechanism, guarantee: Guarantee, settings: Settings, question: Question, exact: float | None
) -> dict[str, Any]:
    return {
        "id": question.id,
        "entry": "/".join(question.id.split("/")[:2]),
        "source": {"document": "", "place": ""},
        "level": "L1",
        "notion": guarantee.notion,
        "claimed": str(guarantee),
        "claimed_level": guarantee.level,
        "parameters": guarantee.parameters(),
        "alpha": settings.alpha,
        "expected": Verdict.CONSISTENT,
        "exact": exact,
        "detect": settings.detectable(guarantee.level),
        "mechanism": describe(target),
        "source_hash": source_hash(target),
        "stop": settings.stop,
        "replay": question.replay,
        **question.labels,
    }


def audit(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pairs: Pair | Sequence[Pair],
    *,
    relation: Relation | None = None,
    id: str = "audit/L1/claim/given",  # noqa: A002 - it is the claim's id
    exact: float | None = None,
    alpha: float = 0.01,
    draws: int = DRAWS,
    seconds: float | None = None,
    stop: str = "verdict",
    seed: int = 0,
    detect: float | None = None,
    limit: float | None = 60.0,
    learners: Callable[[Batch, Batch], list[Feature]] | None = None,
) -> AuditResult:
    """Try to break a privacy claim.

    Parameters
    ----------
    mechanism : callable
        ``(data, n, rng) -> outputs``: n independent outputs, trial axis first; see `one_draw` for functions that draw
        once.
    guarantee : Guarantee
        The claim: `PureDP`, `ApproxDP` or `GaussianDP`.
    pairs : Pair or sequence of Pair
        Neighbouring datasets. With several, the search spends the draws where the evidence is.
    relation : Relation, optional
        If given, every pair is checked against it.
    id : str
        Names the audit, and keys its draws.
    exact : float, optional
        The exact level on the pairs, if known; the lower bound is then checked against it.
    alpha : float
        Probability of a false alarm, in (0, 1).
    draws : int
        Budget in outputs, both sides together.
    seconds : float, optional
        Budget in seconds; results then depend on the machine's speed.
    stop : {"verdict", "budget"}
        Stop as soon as the claim is refuted, or run on for the tightest lower bound.
    seed : int
        Same seed, same draws.
    detect : float, optional
        Level that is to be detectable, default twice the claimed one; otherwise the verdict is "inconclusive".
    limit : float, optional
        Seconds that one call of the mechanism may take.
    learners : callable, optional
        Further event learners, for example `classifier`, for mechanisms that are slow enough to pay for them.

    Returns
    -------
    AuditResult

    Raises
    ------
    SpecificationError
        If an argument is not what it must be. What the mechanism does wrong never raises: it gives a verdict "error".
    """
    if not isinstance(pairs, Pair | Sequence):
        raise SpecificationError(f"pairs must be a Pair or a sequence of them, got {pairs!r}")
    listed = [pairs] if isinstance(pairs, Pair) else list(pairs)
    if not callable(mechanism):
        raise SpecificationError(f"mechanism must be callable as (data, n, rng), got {mechanism!r}")
    if isinstance(guarantee, type) or not hasattr(guarantee, "cap"):
        raise SpecificationError(f"guarantee must be one such as PureDP(1.0), got {guarantee!r}")
    if not isinstance(id, str) or not id:
        raise SpecificationError(f"id must be a text, got {id!r}")
    if exact is not None and (isinstance(exact, bool) or not isinstance(exact, int | float) or not exact >= 0):
        raise SpecificationError(f"exact must be a number of at least 0, got {exact!r}")
    check_pairs(listed, relation)
    settings = Settings(
        alpha=alpha, draws=draws, seconds=seconds, stop=stop, seed=seed, detect=detect, limit=limit, learners=learners
    )
    replay = (
        f"auditor.audit({describe(mechanism)}, {guarantee!r}, pairs, alpha={alpha!r}, draws={draws}, stop={stop!r}, "
        f"seed={seed}, id={id!r})"
    )
    return run_audit(mechanism, guarantee, listed, settings, Question(id=id, exact=exact, replay=replay))


def assert_private(
    mechanism: Mechanism, guarantee: Guarantee, pairs: Pair | Sequence[Pair], **options: Any
) -> AuditResult:
    """Audit, and raise `PrivacyViolation` with the counterexample if the claim is refuted.

    Takes what `audit` takes. It raises `TargetError` if the mechanism crashed, hung or answered what cannot be read,
    and an AssertionError if its draws are not independent. A return means "not refuted", never "private": look at the
    result's ``detectable_level``.
    """
    result = audit(mechanism, guarantee, pairs, **options)
    if result.verdict == Verdict.ERROR:
        raise TargetError(result.message)
    if result.verdict == Verdict.DEVIATION:
        raise AssertionError(result.message)
    if result.verdict == Verdict.VIOLATION:
        raise PrivacyViolation(explain(result))
    return result
