"""The loop that ties sampling, events and evidence together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from auditor.errors import PrivacyViolation, SpecificationError, TargetError
from auditor.events.features import Feature
from auditor.events.learner import Chain, EventLearner
from auditor.events.outputs import Batch
from auditor.evidence.bound import level_grid, lower_bound
from auditor.evidence.independence import Independence, check_independence
from auditor.evidence.power import ceiling, detectable_level
from auditor.evidence.wealth import Chunk, Stake, Wealth
from auditor.exact import PrivacyCurve
from auditor.guarantees import Guarantee
from auditor.neighbors import Pair, Relation, check_pairs
from auditor.results import AuditResult, Counterexample, Verdict
from auditor.sampling import Sampler
from auditor.search import next_pair
from auditor.targets import Mechanism, source_hash

#: Draws a side before the first bet, of each pair. Enough to place a first threshold; an infinite epsilon is found
#: with some tens of draws, so not more.
FIRST = 20
#: Each chunk is this part of what has been drawn of its pair: events and estimates are never much out of date, and the
#: number of chunks grows with the logarithm of the budget.
GROWTH = 0.15
#: Largest chunk a side, so that memory does not grow with the budget.
LARGEST = 1 << 17
#: Default budget in outputs, both sides together: a lower bound within about 3 % of epsilon = 1.
DRAWS = 400_000
#: Fraction of the smaller of exact level and ceiling that a tight audit is to certify; below it the sandwich is
#: reported as loose.
TIGHT = 0.9

Stopper = Callable[[float], bool]


@dataclass(frozen=True)
class Settings:
    """How a claim is audited.

    Parameters
    ----------
    alpha : float
        Probability of a false alarm, in (0, 1).
    draws : int
        Budget in mechanism outputs, both sides together.
    seconds : float or None
        Budget in seconds; the audit stops at the first chunk boundary after it.
    stop : str
        "verdict": stop as soon as the claim is refuted. "budget": run on for the tightest lower bound.
    seed : int
        Seed of the run.
    detect : float or None
        Level that is to be detectable; default twice the claimed level.
    limit : float or None
        Seconds that one call of the target may take.
    chunks : int or None
        Stop after so many chunks: how a run that time had truncated is reproduced.
    learners : callable or None
        Features that cost more to learn, see `EventLearner`.
    independence : bool
        Test first that draws are independent.
    """

    alpha: float = 0.01
    draws: int = DRAWS
    seconds: float | None = None
    stop: str = "verdict"
    seed: int = 0
    detect: float | None = None
    limit: float | None = 60.0
    chunks: int | None = None
    learners: Callable[[Batch, Batch], list[Feature]] | None = None
    independence: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, int | float) or not 0 < self.alpha < 1:
            raise SpecificationError(f"alpha must be in (0, 1), got {self.alpha!r}")
        if isinstance(self.draws, bool) or not isinstance(self.draws, int | np.integer) or self.draws < 4 * FIRST:
            raise SpecificationError(f"draws must be an integer of at least {4 * FIRST}, got {self.draws!r}")
        if self.seconds is not None and not self.seconds > 0:
            raise SpecificationError(f"seconds must be positive, got {self.seconds!r}")
        if self.stop not in ("verdict", "budget"):
            raise SpecificationError(f'stop must be "verdict" or "budget", got {self.stop!r}')
        if self.detect is not None and not self.detect > 0:
            raise SpecificationError(f"detect must be positive, got {self.detect!r}")
        if self.chunks is not None and self.chunks < 1:
            raise SpecificationError(f"chunks must be at least 1, got {self.chunks!r}")


@dataclass
class Evidence:
    """All that was drawn and bet: enough to compute the verdict and the lower bound again.

    Attributes
    ----------
    chunks : list of Chunk
        In order.
    chains : list of Chain
        Events that the stakes refer to.
    wealth : Wealth
        Wealth at the claimed level.
    path : list of tuple of (int, float)
        Draws a side so far and the logarithm of the wealth at the claimed level, after each chunk.
    """

    wealth: Wealth
    chunks: list[Chunk] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    path: list[tuple[int, float]] = field(default_factory=list)
    learners: list[EventLearner] = field(default_factory=list)
    truncated_by: str | None = None

    @property
    def n(self) -> int:
        """Draws a side."""
        return sum(chunk.n for chunk in self.chunks)


def collect(sampler: Sampler, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings) -> Evidence:
    """Draw, learn and bet until the verdict or the end of the budget."""
    threshold = math.log(1 / settings.alpha)
    evidence = Evidence(Wealth(guarantee, np.array([guarantee.level])))
    evidence.learners = [EventLearner(guarantee, settings.alpha, settings.learners) for _ in pairs]
    numbers: dict[Chain, int] = {}
    side, used, begun = settings.draws // 2, 0, time.monotonic()
    while used < side:
        if settings.chunks is not None and len(evidence.chunks) >= settings.chunks:
            break
        if settings.seconds is not None and evidence.chunks and time.monotonic() - begun > settings.seconds:
            evidence.truncated_by = "time"
            break
        k = next_pair(evidence.learners, FIRST)
        learner = evidence.learners[k]
        n = min(max(FIRST, math.ceil(GROWTH * learner.n)), LARGEST, side - used)
        x = sampler.draw(pairs[k].x, n, k, "x", len(evidence.chunks))
        y = sampler.draw(pairs[k].y, n, k, "y", len(evidence.chunks))
        used += n
        stakes, counts = [], []
        for proposal in learner.proposals:
            a, b = proposal.chain.cells(x), proposal.chain.cells(y)
            p, q = proposal.estimates()
            stakes.append(Stake(numbers.setdefault(proposal.chain, len(numbers)), p, q, a, b))
            counts.append((a, b))
        evidence.chunks.append(Chunk(k, n, tuple(stakes)))
        evidence.wealth.bet(stakes)
        evidence.path.append((used, float(evidence.wealth.current[0])))
        rejected = bool(evidence.wealth.best[0] >= threshold)
        learner.add(x, y, counts)
        if rejected and settings.stop == "verdict":
            break
        learner.learn(rejected)
    evidence.chains = list(numbers)
    return evidence


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
        independence = Independence(True, "", {}, 0)
        if settings.independence:
            independence = check_independence(sampler, pairs[0].x)
        if not independence.passed:
            sampler = Sampler(target, settings.seed, question.id, settings.limit, one_a_call=True)
        evidence = collect(sampler, guarantee, pairs, settings)
    except TargetError as error:
        return AuditResult(**base, verdict=Verdict.ERROR, message=str(error))
    found = _found(evidence, guarantee, pairs, settings, question)
    sandwich = _sandwich(found, exact, guarantee.level, settings)
    verdict, message = _verdict(evidence, found, settings, independence)
    return AuditResult(
        **base,
        verdict=verdict,
        message=message,
        independence=asdict(independence),
        sandwich=sandwich,
        counterexample=_counterexample(found, pairs, question) if verdict == Verdict.VIOLATION else None,
        **{name: value for name, value in found.items() if not name.startswith("_")},
        tradeoff=_tradeoff(evidence, guarantee, question.curves),
    )


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
        "detect": settings.detect if settings.detect is not None else 2 * guarantee.level,
        "mechanism": describe(target),
        "source_hash": source_hash(target),
        "stop": settings.stop,
        **question.labels,
    }


def describe(target: object) -> str:
    """A target's name for people."""
    function = getattr(target, "function", target)
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _found(
    evidence: Evidence, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, question: Question
) -> dict[str, Any]:
    """Bounds, power and the best event; names that begin with an underscore are for the functions below only."""
    n = evidence.n
    k = max(range(len(pairs)), key=lambda i: (_gained(evidence, i), evidence.learners[i].reach, -i))
    learner = evidence.learners[k]
    best = learner.proposals[0] if learner.proposals else None
    log10 = 1 / math.log(10)
    found: dict[str, Any] = {
        "draws": 2 * n,
        "lower_bound": lower_bound(evidence.chunks, guarantee, level_grid(guarantee.level), settings.alpha),
        "ceiling": ceiling(n, guarantee, settings.alpha),
        "detectable_level": math.inf,
        "log10_e_value": float(evidence.wealth.current[0]) * log10,
        "log10_max_e_value": float(evidence.wealth.best[0]) * log10,
        "pair": pairs[k].name,
        "truncated_by": evidence.truncated_by,
        "wealth": {
            "draws": [2 * drawn for drawn, _ in evidence.path],
            "log10_e_value": [log * log10 for _, log in evidence.path],
        },
        "record": _record(evidence, pairs),
        "_pair": k,
        "_best": best,
    }
    if best is not None:
        (p, *_), (q, *_) = best.estimates()
        found["event"] = best.chain.words()[0]
        found["detectable_level"] = detectable_level(p, q, learner.n, guarantee, settings.alpha)
    return found


def _gained(evidence: Evidence, pair: int) -> float:
    """What the wealth at the claimed level gained, in whole nats, on the chunks of one pair."""
    logs = [0.0, *(log for _, log in evidence.path)]
    gain = sum(b - a for a, b, chunk in zip(logs, logs[1:], evidence.chunks, strict=False) if chunk.pair == pair)
    return max(0.0, float(math.floor(gain))) if math.isfinite(gain) else 0.0


def _record(evidence: Evidence, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Every chunk's bets and counts, from which wealth, verdict and bound can be computed again."""
    return {
        "pairs": [pair.name for pair in pairs],
        "events": [list(chain.words()) for chain in evidence.chains],
        "chunks": [
            [chunk.pair, chunk.n, [[s.chain, list(s.p), list(s.q), list(s.x), list(s.y)] for s in chunk.stakes]]
            for chunk in evidence.chunks
        ],
    }


def _verdict(
    evidence: Evidence, found: Mapping[str, Any], settings: Settings, independence: Independence
) -> tuple[Verdict, str]:
    detect = settings.detect if settings.detect is not None else 2 * float(evidence.wealth.guarantee.level)
    note = "" if independence.passed else f"draws are not independent: {independence.finding}"
    if evidence.wealth.best[0] >= math.log(1 / settings.alpha):
        return Verdict.VIOLATION, f"{note}; judged on one draw a call" if note else ""
    if note:
        return Verdict.DEVIATION, note
    if found["detectable_level"] > max(detect, settings.detect or 0.0):
        return (
            Verdict.INCONCLUSIVE,
            f"a level below {found['detectable_level']:.4g} might have been missed, {detect:.4g} was to be detectable",
        )
    return Verdict.CONSISTENT, ""


def _sandwich(found: Mapping[str, Any], exact: float | None, claimed: float, settings: Settings) -> str:
    """Lower bound <= exact, and at least 0.9 of the smaller of exact and ceiling where the audit ran its budget."""
    if exact is None:
        return ""
    bound = found["lower_bound"]
    # Relative slack for levels rounded to 9 digits and exact levels computed in floating point.
    if bound > exact * (1 + 1e-8) + 1e-9:
        return f"failed: lower bound {bound:.6g} is above the exact level {exact:.6g}"
    stopped_early = settings.stop == "verdict" and exact > claimed
    reachable = min(exact, found["ceiling"])
    if stopped_early or bound >= TIGHT * reachable:
        return "holds"
    return f"loose: lower bound {bound:.4g} is below {TIGHT} of {reachable:.4g}"


def _counterexample(found: Mapping[str, Any], pairs: Sequence[Pair], question: Question) -> Counterexample | None:
    best = found["_best"]
    if best is None:
        return None
    pair = pairs[found["_pair"]]
    return Counterexample(
        pair=pair.name,
        x="(not shown)" if question.private else show_data(pair.x),
        y="(not shown)" if question.private else show_data(pair.y),
        event=best.chain.words()[0],
        x_count=int(best.x[0]),
        y_count=int(best.y[0]),
        n=int(best.n),
        e_value_log10=found["log10_max_e_value"],
        lower_bound=found["lower_bound"],
        replay=question.replay or f"auditor.audit(..., id={question.id!r})",
    )


def show_data(data: Any) -> str:
    """A dataset in at most about 100 characters."""
    if isinstance(data, pd.DataFrame):
        return f"DataFrame of {len(data):,} rows, columns {', '.join(map(str, data.columns[:6]))}"
    values = data.tolist() if isinstance(data, np.ndarray) else data
    text = repr(values)
    return text if len(text) <= 100 else f"{text[:80]}... ({len(values):,} rows)"


def _tradeoff(evidence: Evidence, guarantee: Guarantee, curves: Sequence[PrivacyCurve]) -> dict[str, Any]:
    """What the trade-off plot shows: the claimed cap, the exact curve, the events found."""
    # Steps of 0.02, and smaller ones near 0, where caps are steep.
    q = np.unique(np.concatenate([np.linspace(0, 1, 51), np.geomspace(1e-4, 0.02, 12)]))
    points = sorted({
        (round(y / best.n, 8), round(x / best.n, 8))
        for learner in evidence.learners
        for best in learner.proposals
        for x, y in zip(best.x.tolist(), best.y.tolist(), strict=True)
    })
    exact = np.max([curve.tradeoff(q) for curve in curves], axis=0) if curves else None
    return {
        "q": q,
        "claimed": guarantee.cap(q, guarantee.level),
        "exact": exact,
        "points": [list(point) for point in points],
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
    listed = [pairs] if isinstance(pairs, Pair) else list(pairs)
    if not callable(mechanism):
        raise SpecificationError(f"mechanism must be callable as (data, n, rng), got {mechanism!r}")
    if not hasattr(guarantee, "cap"):
        raise SpecificationError(f"guarantee must be one such as PureDP(1.0), got {guarantee!r}")
    check_pairs(listed, relation)
    settings = Settings(
        alpha=alpha, draws=draws, seconds=seconds, stop=stop, seed=seed, detect=detect, limit=limit, learners=learners
    )
    replay = f"auditor.audit({describe(mechanism)}, {guarantee!r}, pairs, draws={draws}, seed={seed}, id={id!r})"
    return run_audit(mechanism, guarantee, listed, settings, Question(id=id, exact=exact, replay=replay))


def assert_private(mechanism: Mechanism, guarantee: Guarantee, pairs: Pair | Sequence[Pair], **options: Any) -> AuditResult:
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


def explain(result: AuditResult) -> str:
    """The counterexample of a violation, as text that fits on a screen."""
    found = result.counterexample
    if found is None:
        return str(result)
    lines = [
        f"{result.mechanism} violates its claim {result.claimed} ({result.notion})",
        f"  pair         {found.pair}",
        f"    x          {found.x}",
        f"    x'         {found.y}",
        f"  event        {found.event}",
        f"    on x       {found.x_count:,} of {found.n:,} draws",
        f"    on x'      {found.y_count:,} of {found.n:,} draws",
        f"  e-value      10^{found.e_value_log10:.1f} against the claim (a false alarm needs 10^{-math.log10(result.alpha):.1f})",
        f"  lower bound  {found.lower_bound:.4g} at confidence {1 - result.alpha:g}",
        f"  replay       {found.replay}",
    ]
    return "\n".join(lines)
