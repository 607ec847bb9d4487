"""Audits of privacy claims: `audit`, `assert_private`, and the audit that a run calls."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from auditor.audits.context import Question
from auditor.audits.counterexamples.build import build_counterexample
from auditor.audits.counterexamples.replay_call import ReplayCall
from auditor.audits.counterexamples.snippet import show_data
from auditor.audits.defaults import DRAWS, METHODS
from auditor.audits.dependence import Trace, confirm_refutation, look_again
from auditor.audits.finish import Conclusion, end_in_error, finish_audit, labels_of
from auditor.audits.fixed_size import FixedSize, collect_fixed, fixed_findings
from auditor.audits.fixed_size import look_on as look_on_fixed
from auditor.audits.further_causes import find_further_causes
from auditor.audits.independence import (
    BLOCK,
    BLOCKS,
    COMPARISONS,
    FEW,
    INFORMATIVE,
    LONGER,
    MOST,
    UNTESTED,
    Independence,
    check_independence,
    dependent_counts,
    worst_of,
)
from auditor.audits.interfaces import EvidenceSession
from auditor.audits.pair_search import LEAST, search_pairs
from auditor.audits.privacy_loop import (
    FOLLOW_UP,
    Evidence,
    Past,
    Settings,
    collect_evidence,
    follow_up_seconds,
    look_on,
)
from auditor.audits.summary import (
    check_sandwich,
    collect_tradeoff,
    describe_unreadable,
    describe_unresolved,
    explain,
    summarise_findings,
)
from auditor.audits.verdict import decide_verdict
from auditor.datasets import Pair, Relation, check_pairs
from auditor.datasets.strategies import is_strategy
from auditor.errors import PrivacyViolation, SpecificationError, TargetError, TargetRaised, UnrecordedError, check_id
from auditor.events.classifier import Learners
from auditor.privacy.guarantees import Guarantee
from auditor.results import FIXED_SIZE, SEPARATE, AuditResult, Verdict
from auditor.targets import Mechanism
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import Sampler
from auditor.targets.signatures import explain_guess

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def run_audit(
    target: Mechanism, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, question: Question
) -> AuditResult:
    """Audit one claim on given pairs.

    It never raises for what the target does.

    Parameters
    ----------
    target : Mechanism
        What is audited.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        Neighbouring datasets.
    settings : Settings
        Budget, level, seed and method.
    question : Question
        Labels of the result, and the ledger.

    Notes
    -----
    Valid because: "violation" is returned only if the wealth at the claimed level reached 1/alpha, which under the
    claim has probability at most alpha (see `Wealth`; for the fixed-size method `FixedSize.lower_bound`), on draws that
    passed the independence tests or were taken one a call in random order, and do not look dependent. What stands
    beside a violation is stated by itself, see `find_further_causes`.
    """
    if question.ledger is None:
        begun = time.monotonic()
        first = _audit_pairs(target, guarantee, pairs, settings, question, None)
        search = partial(_audit_pairs, target, guarantee, pairs, night=None)
        return replace(first, also=find_further_causes(first, settings, question, search, begun))
    try:
        with question.ledger.night(target, guarantee, pairs, settings, question.id, question.private) as night:
            return _audit_pairs(target, guarantee, pairs, settings, question, night)
    except UnrecordedError as error:
        return error_result(target, guarantee, settings, question, error)


def _audit_pairs(
    target: Mechanism,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    settings: Settings,
    question: Question,
    night: EvidenceSession | None,
) -> AuditResult:
    def work(sampler: Sampler) -> _Found:
        if night is not None and night.begun:  # it is done again
            night.close("what a second process had drawn was not what the first one draws")
        return _collect(sampler, guarantee, pairs, settings, night)

    def collect() -> _Found:
        refused = None
        try:
            with question.helped([data for pair in pairs for data in (pair.x, pair.y)]) as ahead:
                # The fixed-size method judges draws of one call, of which it cannot be seen which one raised.
                catching = settings.method == METHODS[0]
                key = question.id if night is None else night.key
                sampler = Sampler(target, settings.seed, key, settings.limit, catching=catching, ahead=ahead)
                try:
                    with sampler.limits():
                        found = sampler.reviewed(
                            work,
                            lambda found: found[0].refuted(_ledger_settings(settings, night).alpha) or found[1].alone,
                        )
                finally:
                    refused = sampler.refused
                if found[2].broken is not None and not found[0].refuted(_ledger_settings(settings, night).alpha):
                    raise found[2].broken  # it raises for several draws, never for one: that is no outcome of a draw
        except TargetError as error:
            if night is not None:
                night.fail()
            if error is refused:  # on all datasets
                raise name_dataset(refused, pairs[0], explain_guess(target)) from error
            raise
        return found

    labels = _labels(target, guarantee, settings, question)

    def conclude(made: _Found) -> Conclusion:
        evidence, independence, sampler = made
        own = _ledger_settings(settings, night)
        found = _findings(evidence, guarantee, pairs, own, question.private)
        decided = decide_verdict(
            Verdict.VIOLATION,
            evidence.refuted(own.alpha),
            missed=lambda: sampler.tails.describe(question.private) or describe_unresolved(evidence, found, own),
            independence=independence,
        )
        if decided[0] in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE):
            # What cannot be read looks constant too.
            unread = describe_unreadable(evidence, question.private)
            note = unread or sampler.tails.describe_constant(question.private)
            decided = decided[0], "; ".join(filter(None, (decided[1], note)))
        seen = None
        if decided[0] == Verdict.VIOLATION:
            seen = build_counterexample(sampler, evidence, found, guarantee, pairs, own, question)
        event_level = labels.get("event_level")
        fields = {
            **{name: value for name, value in found.items() if not name.startswith("_")},
            "alpha": own.alpha,
            "sandwich": check_sandwich(found, labels["exact"], event_level, question.curves, guarantee, own),
            "counterexample": seen,
            "tradeoff": collect_tradeoff(evidence, guarantee, question.curves),
        }
        keep = None
        if night is not None and isinstance(evidence, Evidence):
            keep = partial(night.end, evidence, independence.alone)
        return Conclusion(decided, fields, independence, keep)

    return finish_audit(labels, question.private, collect, conclude)


def name_dataset(error: TargetRaised, pair: Pair, hint: str = "") -> TargetRaised:
    """Add the dataset to an error, for people who may see it.

    Parameters
    ----------
    error : TargetRaised
        What the target raised.
    pair : Pair
        Its first dataset is what the target was asked for; only the pair's name is public.
    hint : str
        What may be wrong in the call, see `explain_guess`.
    """
    return TargetRaised(
        error.error,
        f"{error}{hint}, on the dataset {show_data(pair.x)}",
        f"{error.public}{hint}, on the first dataset of “{pair.name}” (--show-data shows what it said)",
    )


def _ledger_settings(settings: Settings, night: EvidenceSession | None) -> Settings:
    """The settings as a ledger has them: its series share alpha."""
    return settings if night is None else night.settings


def error_result(
    target: Mechanism,
    guarantee: Guarantee,
    settings: Settings,
    question: Question,
    error: TargetError | UnrecordedError,
) -> AuditResult:
    """Result of an audit that an error ended.

    The target failed, or a ledger cannot be written.

    Parameters
    ----------
    target : Mechanism
        What is audited.
    guarantee : Guarantee
        The claim.
    settings : Settings
        How it is audited.
    question : Question
        Labels of the result.
    error : TargetError or UnrecordedError
        What ended it.
    """
    return end_in_error(_labels(target, guarantee, settings, question), question.private, error)


def _labels(target: Mechanism, guarantee: Guarantee, settings: Settings, question: Question) -> dict[str, Any]:
    """Fields of the result of `run_audit` that are known before any draw."""
    own: dict[str, Any] = {}
    if guarantee.caveat and question.curves:
        own["event_level"] = max(guarantee.event_level(c) for c in question.curves)
    return labels_of(
        target,
        guarantee,
        "L1",
        settings,
        question,
        caveat=guarantee.caveat,
        exact=max((guarantee.exact_level(c) for c in question.curves), default=question.exact),
        detect=settings.wanted(guarantee.level),
        method=settings.method,
        ignore=settings.ignore,
        **own,
    )


#: The doubt that a ledger keeps of a refutation while its draws are looked at, in case the run ends meanwhile.
UNSEEN = "a run ended before the draws of its refutation were looked at"

_Made: TypeAlias = tuple[Evidence | FixedSize, Sampler]
_Found: TypeAlias = tuple[Evidence | FixedSize, Independence, Sampler]


def _collect(
    sampler: Sampler, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, night: EvidenceSession | None
) -> _Found:
    """Collect evidence from a target whose draws are independent, as far as the tests can tell; with what drew it.

    The first pair is tested beforehand. If the evidence then speaks against the claim, so is every other pair that it
    rests on, because a target may share noise on some data only; where a test had few comparisons that were not ties
    it is made again on more draws; and the counts that the evidence rests on are tested. Where a test fails, all is
    drawn anew, one draw a call. Where none fails, and yet the draws look dependent, the refutation has to be reached
    again, see `confirm_refutation`.

    With a ledger a refutation is looked at in this way once, and the outcome is kept, see `EvidenceSession`.
    """
    begun = time.monotonic()

    def test(k: int, side: str, *key: str, by: Sampler = sampler, **size: int) -> Independence:
        data = pairs[k].x if side == "x" else pairs[k].y
        size = {"comparisons": settings.comparisons, **size}
        return by.settled(lambda: check_independence(by, data, k, side, *key, **size))

    found = {(0, side): test(0, side) for side in "xy"} if settings.independence else {}
    pace = (time.monotonic() - begun) / max(sum(tested.draws for tested in found.values()), 1)
    independence = worst_of(list(found.values())) if found else UNTESTED
    if night is not None:
        night.seeded = bool(found) and independence.seeded

    def made(sampler: Sampler, again: bool = False) -> _Made:
        past = None if night is None else night.past(sampler)
        own = _ledger_settings(settings, night)
        own = own.of_second_opinion if again else own
        return _evidence(sampler, guarantee, pairs, _remaining_settings(own, begun), past, night), sampler

    def refuted(made: _Made) -> bool:
        return made[0].refuted(_ledger_settings(settings, night).alpha)

    until: float | None = None

    def left() -> float | None:
        """Seconds left for what follows a refutation, a few at least."""
        allowed = follow_up_seconds(settings, begun)
        if allowed is None or until is None:
            return allowed
        return max(until - time.monotonic(), min(allowed, FOLLOW_UP))

    def traces(made: _Made) -> list[Trace]:
        evidence, sampler = made
        if isinstance(evidence, FixedSize):
            look_on_fixed(evidence, sampler, pairs, settings, left())
        else:
            look_on(evidence, sampler, pairs, settings, left())
        return [evidence.trace]

    def look(second: _Made, independence: Independence) -> Independence:
        if night is None or not refuted(second):
            return look_again(second, independence, refuted, traces)
        kept = night.doubted(alone=True)
        if kept is not None:
            return replace(independence, still=kept)
        night.doubt(UNSEEN, alone=True)
        found = look_again(second, independence, refuted, traces)
        night.doubt(found.still, alone=True)
        return found

    def test_pairs(which: set[int], parts: int, by: Sampler = sampler) -> dict[tuple[int, str], Independence]:
        """Test both datasets of pairs, in a part of the time left."""
        places = [(k, side) for k in sorted(which) for side in "xy"]
        most = _affordable_comparisons(until, pace, parts * len(places), BLOCKS)
        return {place: test(*place, by=by, comparisons=min(settings.comparisons, most)) for place in places}

    def afresh() -> tuple[_Made, list[Independence]]:
        second = made(other := sampler.afresh(), again=True)
        if not refuted(second):
            return second, []
        carriers = second[0].carriers(settings.alpha)
        return second, list(test_pairs(carriers, 1, by=other).values())

    kept = None if night is None else night.doubted()
    if independence.passed and kept:  # only draws taken one a call can refute any more
        second = made(sampler.alone())
        return second[0], look(second, replace(independence, asked=kept)), second[1]
    if independence.passed:
        drawing = time.monotonic()
        first = made(sampler)
        evidence = first[0]
        if not (settings.independence and refuted(first)) or kept is not None:
            return evidence, independence, sampler
        # Datasets may differ in what a draw takes.
        pace = max(pace, (time.monotonic() - drawing) / max(2 * evidence.n, 1))
        allowed = follow_up_seconds(settings, begun)  # half of it for tests of calls of their own
        until = None if allowed is None else time.monotonic() + allowed
        if night is not None:
            night.doubt(UNSEEN)
        carriers = evidence.carriers(_ledger_settings(settings, night).alpha)
        found |= test_pairs(carriers - {0}, 2)
        vague = {
            place: tested
            for place, tested in found.items()
            if place[0] in carriers and tested.passed and tested.untied < min(INFORMATIVE, settings.comparisons)
        }
        most = _affordable_comparisons(until, pace, 2 * len(vague), LONGER)
        again = [
            test(*place, "again", comparisons=min(_further_comparisons(tested), most), blocks=LONGER)
            for place, tested in vague.items()
        ]
        tests = [*found.values(), *again]
        independence = dependent_counts(evidence.calls(), worst_of(tests))
        if independence.passed:
            (evidence, sampler), looked = confirm_refutation(
                first,
                tests,
                refuted,
                traces,
                lambda: made(sampler.alone(), again=True),
                # What a ledger keeps of a doubt is that draws are taken one a call from then on.
                afresh if night is None else None,
                look,
            )
            independence = replace(looked, p_values=independence.p_values)
        if night is not None:
            night.doubt(_explain_doubt(independence))
        if independence.passed:
            return evidence, independence, sampler
    second = made(sampler.alone())
    return second[0], look(second, independence), second[1]


def _explain_doubt(independence: Independence) -> str:
    """Why a refutation by draws of which this is known does not stand, for later runs; empty if it does."""
    if independence.passed and not independence.asked:
        return ""
    p = f"p = {independence.asked_p:.2g} " if independence.passed else ""
    return f"{independence.finding or independence.asked} ({p}in an earlier run)"


def _further_comparisons(tested: Independence) -> int:
    """Comparisons that leave enough without ties, as far as that is affordable."""
    return min(MOST, math.ceil(INFORMATIVE / max(tested.untied, 1))) * COMPARISONS


def _affordable_comparisons(until: float | None, pace: float, tests: int, blocks: int) -> int:
    """Comparisons a test for which the time suffices; `FEW` at least.

    Valid because: the number is fixed before the draws that are compared, by the seconds a draw took before them.
    """
    if until is None or pace <= 0.0:
        return MOST * COMPARISONS
    a_comparison = BLOCK * blocks / BLOCKS + 4  # of short calls and of the long one, see `check_independence`
    left = until - time.monotonic()
    return max(int(left / pace / max(tests, 1) / a_comparison) // 4 * 4, FEW)


def _remaining_settings(settings: Settings, begun: float) -> Settings:
    """The settings with the seconds that are left of the budget; a quarter of it at least, whatever the tests took."""
    if settings.seconds is None:
        return settings
    return replace(settings, seconds=max(settings.seconds - (time.monotonic() - begun), settings.seconds / 4))


def _evidence(
    sampler: Sampler,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    settings: Settings,
    past: Past | None,
    night: EvidenceSession | None,
) -> Evidence | FixedSize:
    if settings.method == FIXED_SIZE:
        return collect_fixed(sampler, guarantee, pairs, settings)
    return collect_evidence(sampler, guarantee, pairs, settings, past, night)


def _findings(
    evidence: Evidence | FixedSize, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, private: bool
) -> dict[str, Any]:
    if isinstance(evidence, FixedSize):
        return fixed_findings(evidence, guarantee, pairs, settings, private)
    return summarise_findings(evidence, guarantee, pairs, settings, private)


@keep_apart()
def audit(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pairs: Pair | Sequence[Pair] | SearchStrategy[Pair],
    *,
    relation: Relation | None = None,
    search_draws: int | None = None,
    id: str = "audit/L1/claim/given",  # noqa: A002 - it is the claim's id
    exact: float | None = None,
    alpha: float = 0.01,
    draws: int = DRAWS,
    seconds: float | None = None,
    stop: str = "verdict",
    seed: int = 0,
    detect: float | None = None,
    limit: float | None = 60.0,
    learners: Learners | None = None,
    method: str = METHODS[0],
    ignore: str | Sequence[str] = (),
    also: bool = False,
) -> AuditResult:
    """Try to break a privacy claim.

    Parameters
    ----------
    mechanism : callable
        ``(data, n, rng) -> outputs``: n independent outputs, trial axis first; see `one_draw` for functions that draw
        once. If it has a method ``log_likelihood_ratio(outputs, x, y) -> ndarray of shape (n,)``, events on that ratio
        are tried as well; it must read each output by itself.
    guarantee : Guarantee
        The claim, such as `PureDP(1.0)`; see `auditor.privacy.guarantees`.
    pairs : Pair, sequence of Pair, or hypothesis SearchStrategy of Pair
        Neighbouring datasets. With several, the draws are spent where the evidence is. A strategy, see
        `auditor.pairs_of`, is searched first for pairs that promise most, see `auditor.search_pairs`.
    relation : Relation, optional
        If given, every pair is checked against it.
    search_draws : int, optional
        Draws for the search of a strategy, part of ``draws``; default a quarter of them. Of ``seconds`` the search
        takes a quarter at most.
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
        Level that an event of probability 0.01 is to be found at, with probability 0.9; default twice the claimed one.
        Where the draws are too few for that, the verdict is "inconclusive".
    limit : float, optional
        Seconds that one call of the mechanism may take.
    learners : {"logistic", "boosted trees", "classifiers"} or callable, optional
        Further event learners, for mechanisms that are slow enough to pay for them. What fitting has cost stands in
        ``record["training"]``; with a budget in seconds it counts, and ends with it but for a fit already begun.
    method : {"e-process", "clopper-pearson"}
        The second is the fixed-size method of the literature: half of the draws choose the event, the other half judge
        it, once, so that ``stop`` is "budget" always.
    ignore : str or sequence of str
        Kinds of causes to leave out, such as "floating-point": nothing is bet on events of these kinds. The result
        has them as ``ignore``, and each pass names them. See `auditor.events.cause_kinds.IGNORABLE` for all.
    also : bool
        After a violation of a kind that can be ignored, search on without it, for as much of the budget as is left
        and a few times the draws of the first at most; the result has what was found as ``also``. Each such statement
        holds at level alpha by itself.

    Returns
    -------
    AuditResult

    Raises
    ------
    SpecificationError
        If an argument is not what it must be. What the mechanism does wrong never raises: it gives a verdict "error".
    """
    listed: list[Pair] = []
    if isinstance(pairs, Pair):
        listed = [pairs]
    elif isinstance(pairs, Sequence):
        listed = list(pairs)
    elif not is_strategy(pairs):
        raise SpecificationError(
            f"pairs must be a Pair, a sequence of them, or a hypothesis strategy of them, got {pairs!r}"
        )
    if not callable(mechanism):
        raise SpecificationError(f"mechanism must be callable as (data, n, rng), got {mechanism!r}")
    if isinstance(guarantee, type) or not hasattr(guarantee, "cap"):
        raise SpecificationError(f"guarantee must be one such as PureDP(1.0), got {guarantee!r}")
    check_id(id)
    if exact is not None and (isinstance(exact, bool) or not isinstance(exact, int | float) or not exact >= 0):
        raise SpecificationError(f"exact must be a number of at least 0, got {exact!r}")
    settings = Settings(
        alpha=alpha,
        draws=draws,
        seconds=seconds,
        stop=stop,
        seed=seed,
        detect=detect,
        limit=limit,
        learners=learners,
        method=method,
        ignore=ignore,
        also=also,
    )
    if is_strategy(pairs):
        spent = draws // 4 if search_draws is None else search_draws
        listed, settings = _search_for_pairs(mechanism, guarantee, pairs, relation, settings, spent, id)
    elif search_draws is not None:
        raise SpecificationError(f"search_draws is for a strategy of pairs, got {search_draws!r} with given pairs")
    check_pairs(listed, relation)
    replay = _replay_call(mechanism, guarantee, listed, settings, id, also)
    return run_audit(mechanism, guarantee, listed, settings, Question(id=id, exact=exact, replay=replay))


def _replay_call(
    mechanism: Mechanism, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, key: str, also: bool = False
) -> str:
    """A line of Python that makes the audit again, of the pairs that a search has found too."""
    given: dict[str, Any] = {name: getattr(settings, name) for name in ("alpha", "draws", "stop", "seed")}
    given["id"] = key
    given |= {"detect": settings.detect} if settings.detect is not None else {}
    given |= {"learners": settings.learners} if isinstance(settings.learners, str) else {}
    given |= {"method": settings.method} if settings.method != METHODS[0] else {}
    given |= {"ignore": ",".join(settings.ignore)} if settings.ignore else {}
    given |= {"also": True} if also else {}
    return ReplayCall().write_audit("audit", mechanism, guarantee, pairs, given)


def _search_for_pairs(
    mechanism: Mechanism,
    guarantee: Guarantee,
    strategy: SearchStrategy[Pair],
    relation: Relation | None,
    settings: Settings,
    spent: int,
    key: str,
) -> tuple[list[Pair], Settings]:
    """Pairs that a search found, and the settings with what it left of the budgets."""
    if isinstance(spent, bool) or not isinstance(spent, int) or not LEAST <= spent < settings.draws:
        raise SpecificationError(
            f"search_draws must be an integer of at least {LEAST} and below draws={settings.draws}, got {spent!r}"
        )
    rest = replace(settings, draws=settings.draws - spent)
    begun = time.monotonic()
    found = search_pairs(
        mechanism,
        guarantee,
        strategy,
        draws=spent,
        seed=settings.seed,
        seconds=None if settings.seconds is None else settings.seconds / 4,
        alpha=settings.alpha,
        relation=relation,
        limit=settings.limit,
        id=key,
        ignore=settings.ignore,
    )
    if settings.seconds is not None:
        # The audit draws one chunk even if a slow pair has taken all the time.
        rest = replace(rest, seconds=max(settings.seconds - (time.monotonic() - begun), settings.seconds / 4))
    return found, rest


def assert_private(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pairs: Pair | Sequence[Pair] | SearchStrategy[Pair],
    *,
    inconclusive: str = "fail",
    prove: bool = False,
    **options: Any,
) -> AuditResult:
    """Audit, and raise `PrivacyViolation` with the counterexample if the claim is refuted.

    Takes what `audit` takes. A return means "not refuted", never "private": look at the result's ``resolution``.
    In a test that pytest runs, the plugin fills in what ``options`` leave open and keeps the result for its summary,
    see `dpaudit.pytest_plugin`.

    Parameters
    ----------
    mechanism, guarantee, pairs
        As for `audit`.
    inconclusive : {"fail", "pass"}
        What an audit comes to that found nothing and was too weak to say much: it raises an AssertionError that says
        why, and what would decide it; or it returns the result, which is then false.
    prove : bool
        Walk all random decisions of the code on these pairs instead of drawing, see
        `auditor.audits.certificates.prove`, which says what ``options`` there are.
    **options
        As for `audit`.

    Raises
    ------
    PrivacyViolation
        If the claim is refuted; the message is the counterexample.
    AssertionError
        If draws are not independent, and if nothing is decided unless such an audit is to pass.
    TargetError
        If the mechanism crashed, hung or answered what cannot be read.
    SpecificationError
        If an argument is not what it must be.
    """
    __tracebackhide__ = True  # a failing test shows its own line, not this one
    if inconclusive not in ("pass", "fail"):
        raise SpecificationError(f'inconclusive must be "fail" or "pass", got {inconclusive!r}')
    plugin = sys.modules.get("dpaudit.pytest_plugin")
    session = None if plugin is None else plugin.session()
    if prove:
        if not isinstance(pairs, Pair | Sequence):
            raise SpecificationError(f"prove=True takes pairs, or a list of them, got {pairs!r}")
        from auditor.audits.certificates import prove as bracket_level  # of use where it is asked for only

        result = bracket_level(mechanism, guarantee, pairs=pairs, **options)
    else:
        result = audit(mechanism, guarantee, pairs, **(options if session is None else session.options(options)))
    if session is not None:
        result = session.record(result)
    from auditor.report.words import escape_controls  # no audit needs the reports

    if result.verdict == Verdict.ERROR:
        raise TargetError(escape_controls(result.undecided))
    if result.verdict == Verdict.INCONCLUSIVE and inconclusive == "fail":
        said = f"{result.id}: {result.undecided} To accept such an audit: inconclusive='pass'."
        raise AssertionError(escape_controls(said))
    if result.verdict == Verdict.DEVIATION:
        raise AssertionError(escape_controls(f"{result.id}: {result.message}. To do: {SEPARATE}."))
    if result.verdict == Verdict.VIOLATION:
        raise PrivacyViolation(explain(result))
    return result
