"""What is read off the draws that carried a refutation, and what follows from it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import Pair, PureDP, audit, check_conformity
from auditor.audits.accuracy import (
    Absolute,
    Expectation,
    HighProbability,
    PhaseDiagram,
    PowerLaw,
    Setting,
    SmallestParameter,
)
from auditor.audits.accuracy.measures import Quantile
from auditor.audits.accuracy.smallest import Search
from auditor.audits.adversaries.game import Game, run_game
from auditor.audits.adversaries.reconstruction import Reconstruction
from auditor.audits.context import Question
from auditor.audits.dependence import (
    APART,
    ASK,
    KEPT,
    LONG,
    MANY,
    UNCLEAR,
    Doubt,
    Trace,
    _Flags,
    _sum_aligned_products,
    asks_again,
    confirm_refutation,
    doubt_of,
    scores_of,
)
from auditor.audits.independence import UNTESTED, Independence
from auditor.audits.privacy_loop import Settings
from auditor.audits.verdict import decide_verdict
from auditor.errors import TargetError
from auditor.privacy.laws import FiniteLaw
from auditor.results import AuditResult, Verdict
from auditor.targets.sampler import DUMMIES, PARTS, SPLIT, Call, Place, Sampler, parts_of

Rng = np.random.Generator
Draw = Callable[[int, int, Rng], NDArray[Any]]

SIZES = (50, 50, 50, 50, 60, 60, 70, 80, 90, 100)


def trace_of(draw: Draw, seed: int, sizes: tuple[int, ...] = SIZES) -> Trace:
    """Calls on the two sides in turn; ``draw`` takes the number of the call, of draws, and a generator."""
    rng, trace, first = np.random.default_rng(seed), Trace(), 0
    for call in range(2 * len(sizes)):
        n = sizes[call // 2]
        trace.add("event", call % 2, Place(call, first, n), draw(call, n, rng))
        first += n
    return trace


def fresh(call: int, n: int, rng: Rng) -> NDArray[np.bool_]:
    return rng.random(n) < 0.3


def table(call: int, n: int, rng: Rng) -> NDArray[np.bool_]:
    return np.resize(rng.random(min(n, 16)) < 0.3, n)


def shared(call: int, n: int, rng: Rng) -> NDArray[np.bool_]:
    return np.where(rng.random(n) < 0.5, rng.random() < 0.3, rng.random(n) < 0.3)


class Between:
    """Calls at a distance have the same noise, or the opposite."""

    def __init__(self, distance: int, opposite: bool) -> None:
        self.distance, self.opposite, self.calls = distance, opposite, [np.zeros(0)] * 40

    def __call__(self, call: int, n: int, rng: Rng) -> NDArray[np.bool_]:
        noise = rng.random(n)
        if call // self.distance % 2:
            before = self.calls[call - self.distance][:n]
            noise[: len(before)] = 1 - before if self.opposite else before
        self.calls[call] = noise
        return noise < 0.3


def test_independent_draws_are_seldom_doubted() -> None:
    # Fails for any seed with probability below 1e-6, if a true violation is asked for again with probability 0.1.
    asked = sum(asks_again(doubt_of(trace_of(fresh, seed))) for seed in range(100))
    assert asked <= stats.binom.isf(1e-6, 100, 0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: table,
        lambda: shared,
        *(lambda d=d, o=o: Between(d, o) for d in (1, 2, 3, 8) for o in (False, True)),
    ],
)
def test_draws_that_go_together_are_doubted(make: Callable[[], Draw]) -> None:
    for seed in range(5):
        assert doubt_of(trace_of(make(), seed)).p_value < 1e-3


def test_noise_that_several_calls_share_is_doubted() -> None:
    class Shared:
        def __call__(self, call: int, n: int, rng: Rng) -> NDArray[np.bool_]:
            if call % 6 == 0:
                self.flag = rng.random() < 0.3
            return np.where(rng.random(n) < 0.2, self.flag, rng.random(n) < 0.3)

    # Of 12 values of the shared noise all are equal with a probability below 0.3 ** 12 + 0.7 ** 12 = 0.014 a seed.
    assert sum(doubt_of(trace_of(Shared(), seed, (200,) * 36)).p_value < 1e-3 for seed in range(10)) >= 8


def test_evidence_that_later_draws_do_not_bear_out_is_doubted() -> None:
    def lucky(call: int, n: int, rng: Rng) -> NDArray[np.bool_]:
        return rng.random(n) < (0.5 if call < 6 else 0.3)

    trace = trace_of(lucky, 5, (100,) * 6)
    trace.own = 6
    found = doubt_of(trace)
    assert found.p_value < 1e-3
    assert found.finding == "the draws that carried the refutation differ from those after it"


def test_a_trace_is_made_longer_by_long_calls_and_by_shorter_ones() -> None:
    trace = trace_of(fresh, 1, (40, 40))
    assert Counter(trace.missing(1)) == {40: LONG, 10: MANY}
    assert trace.own == 4
    assert Counter(trace_of(fresh, 1, (800,)).missing(1)) == {800 * PARTS: LONG // PARTS, 200 * PARTS: MANY // PARTS}
    most = KEPT // (2 * MANY)
    assert Counter(trace_of(fresh, 1, (1 << 16,)).missing(1))[most * PARTS] == MANY // PARTS
    assert list(trace_of(fresh, 1, (1,) * 9).missing(1)) == []  # draws taken one a call


@pytest.mark.parametrize("most", [1, 70, 700])
def test_products_of_aligned_draws_are_added_up_over_calls_of_any_sizes(most: int) -> None:
    rng = np.random.default_rng(most)
    sizes, calls = rng.integers(1, most + 1, 60), np.sort(rng.choice(150, 60, replace=False))
    layer = [
        _Flags(int(rng.integers(2)), int(call), np.arange(n), rng.normal(size=n), 1.0)
        for call, n in zip(calls, sizes, strict=True)
    ]
    sums, counts = np.zeros((2, APART)), np.zeros((2, APART))
    for one, other in itertools.combinations(layer, 2):
        if other.call - one.call <= APART:
            n = min(len(one.values), len(other.values))
            sums[int(one.side != other.side), other.call - one.call - 1] += one.values[:n] @ other.values[:n]
            counts[int(one.side != other.side), other.call - one.call - 1] += n
    found, number = _sum_aligned_products(layer)
    np.testing.assert_allclose(found, sums, atol=1e-9)
    np.testing.assert_array_equal(number, counts)


def test_what_never_varies_is_not_doubted() -> None:
    assert doubt_of(trace_of(lambda call, n, rng: np.ones(n), 1)) == Doubt()
    assert doubt_of(Trace()) == Doubt()


def test_the_words_name_the_period() -> None:
    def of_five(call: int, n: int, rng: Rng) -> NDArray[np.bool_]:
        return np.resize(rng.random(5) < 0.5, n)

    assert doubt_of(trace_of(of_five, 3)).finding == "draws of one call look alike with a period of 5"


def test_a_trace_holds_the_latest_draws() -> None:
    trace = Trace()
    for call in range(5):
        trace.add("event", call % 2, Place(call, call * KEPT, KEPT // 2 + 1), np.full(KEPT // 2 + 1, call))
    assert [record.call for record in trace.records] == [3, 4]


def test_records_are_of_one_call_each() -> None:
    trace = Trace()
    trace.add("event", 0, Place(3, 10, 6, (2, 4)), np.arange(6))
    assert [(r.call, r.at.tolist(), r.scores.tolist()) for r in trace.records] == [
        (3, [10, 11], [0, 1]),
        (4, [12, 13, 14, 15], [2, 3, 4, 5]),
    ]


def test_equal_outputs_have_equal_scores() -> None:
    batch = ["a", None, (1, 2), "a", None, (1, 2)]
    scores = scores_of(batch)
    assert scores[:3].tolist() == scores[3:].tolist()
    assert len(set(scores.tolist())) == 3
    assert scores_of(np.array([[1.0, np.nan], [2.0, 3.0]])).tolist() == [1.0, 5.0]
    # A rare symbol makes a list of its batch: the numbers beside it keep the scores that they have in an array.
    assert scores_of([None, 0.25, float("inf"), 7])[1:].tolist() == scores_of(np.array([0.25, np.inf, 7])).tolist()
    assert scores_of([None, (0.1, 0.2, 0.3)])[1] == scores_of(np.array([[0.1, 0.2, 0.3]]))[0]


# ---------------------------------------------------------------------------------- a second refutation


def gated(first: bool, second: bool, first_draws: Draw, second_draws: Draw) -> tuple[str, Independence]:
    refutes = {"first": first, "second": second}
    traces = {"first": trace_of(first_draws, 1), "second": trace_of(second_draws, 2)}
    return confirm_refutation("first", [], lambda t: refutes[t], lambda t: [traces[t]], lambda: "second", None)


def test_what_refutes_nothing_is_not_looked_at() -> None:
    assert gated(False, True, table, fresh) == ("first", UNTESTED)


def test_independent_draws_refute_at_once() -> None:
    found, independence = gated(True, False, fresh, fresh)
    assert (found, independence.alone) == ("first", False)
    assert decide_verdict(Verdict.VIOLATION, True, independence=independence) == (Verdict.VIOLATION, "")


def test_dependent_draws_have_to_refute_again() -> None:
    found, independence = gated(True, True, table, fresh)
    assert (found, independence.alone, independence.still) == ("second", True, "")
    verdict, message = decide_verdict(Verdict.VIOLATION, True, independence=independence)
    assert verdict == Verdict.VIOLATION
    assert "look alike at a distance of 16" in message
    assert "judged on one draw a call" in message


def test_a_refutation_that_is_not_reached_again_stays_open() -> None:
    found, independence = gated(True, False, table, fresh)
    assert found == "second"
    verdict, message = decide_verdict(Verdict.DEVIATION, False, independence=independence)
    assert verdict == Verdict.INCONCLUSIVE
    assert "new draws, taken one a call, do not refute it" in message


def test_a_second_refutation_by_dependent_draws_stays_open() -> None:
    _, independence = gated(True, True, table, shared)
    assert independence.still
    verdict, message = decide_verdict(Verdict.VIOLATION, True, independence=independence)
    assert verdict == Verdict.INCONCLUSIVE
    assert independence.still in message


def test_the_tests_beforehand_count_as_well() -> None:
    def asked(p: float) -> tuple[str, Independence]:
        before = Independence(True, "", {"within a call": p, "between calls": 0.5}, 100)
        traces = [trace_of(fresh, 1)]
        return confirm_refutation("first", [before, before], lambda _: True, lambda _: traces, lambda: "second", None)

    # Two tests of two datasets, and those of the draws of the refutation: 8 times the least, by Bonferroni.
    found, independence = asked(ASK / 10)
    assert found == "second"
    assert independence.asked_p == pytest.approx(ASK * 0.8)
    assert "draws of one call are closer" in independence.asked
    assert asked(ASK / 7)[0] == "first"


def slightly_doubted(p: float, refutes_again: bool, more: Draw, alone: Draw = fresh) -> tuple[str, Independence]:
    """A refutation whose tests beforehand have the p-value ``p`` together, and what comes of new draws."""
    before = [Independence(True, "", {"within a call": p}, 100)]
    refutes = {"first": True, "in calls": refutes_again, "alone": True}
    traces = {"first": trace_of(fresh, 1), "in calls": trace_of(more, 2), "alone": trace_of(alone, 3)}
    again = Independence(True, "", {"within a call": 1.0}, 50)
    return confirm_refutation(
        "first",
        before,
        lambda t: refutes[t],
        lambda t: [traces[t]],
        lambda: "alone",
        lambda: ("in calls", [again]),
    )


def test_a_slight_doubt_is_settled_by_new_calls() -> None:
    found, independence = slightly_doubted(UNCLEAR, True, fresh)
    assert (found, independence.alone, independence.draws) == ("first", False, 150)
    verdict, message = decide_verdict(Verdict.VIOLATION, True, "so", independence=independence)
    assert verdict == Verdict.VIOLATION
    assert message.startswith("so; draws may not be independent (p = 0.02): draws of one call are closer")
    assert message.endswith("reached again on new draws, which do not look so")


def test_a_slight_doubt_that_new_calls_do_not_settle() -> None:
    found, independence = slightly_doubted(UNCLEAR, False, fresh)
    assert (found, independence.alone) == ("in calls", False)
    verdict, message = decide_verdict(Verdict.VIOLATION, False, independence=independence)
    assert verdict == Verdict.INCONCLUSIVE
    assert message.endswith("new draws do not refute it")
    # Where they look dependent as well, draws taken one a call decide.
    found, independence = slightly_doubted(UNCLEAR, True, table)
    assert (found, independence.alone) == ("alone", True)
    assert "look alike at a distance of 16" in independence.asked


def test_a_grave_doubt_is_settled_by_single_draws_only() -> None:
    found, independence = slightly_doubted(UNCLEAR / 3, True, fresh)
    assert (found, independence.alone) == ("alone", True)


class TrueForFalse:
    """A bit that is never the other one, and an error that is always 1: whatever is claimed of it is refuted."""

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
        del rng
        return np.full(n, float(np.asarray(data if data is not None else 1).ravel()[0]))

    def each(self, stack: Any, rng: Rng) -> NDArray[np.float64]:
        return np.asarray(stack[:, 0], dtype=float) + 0.0 * rng.random()


class SaidToBeFair(TrueForFalse):
    """It never varies, and its distribution is said to be that of a fair coin."""

    def law(self, data: Any) -> FiniteLaw:
        del data
        return FiniteLaw((0, 1), np.array([0.5, 0.5]))


def failing(*parameters: float) -> Setting:
    """A setting at which every draw fails, whatever the parameters."""
    del parameters
    return Setting(TrueForFalse(), None, Absolute(0.0), 0.5)


def growing(parameter: float) -> Setting:
    """Errors that grow with the cube of the parameter."""
    return Setting(lambda _data, n, rng: rng.exponential(parameter**3, size=n), None, Absolute(0.0))


def settled(theorem: Any, subject: Any) -> AuditResult:
    found: AuditResult = theorem.audit(subject, Settings(draws=4_000), Question())
    return found


KINDS: dict[str, Callable[[], AuditResult]] = {
    "event": lambda: audit(TrueForFalse(), PureDP(1.0), Pair([0], [1])),
    "fixed size": lambda: audit(TrueForFalse(), PureDP(1.0), Pair([0], [1]), draws=4_000, method="clopper-pearson"),
    "game": lambda: run_game(Game(TrueForFalse(), Reconstruction(1, 8)), PureDP(0.1), Settings(draws=400), Question()),
    "distribution": lambda: check_conformity(SaidToBeFair(), np.array([1])),
    "failure rate": lambda: settled(HighProbability(0.5, 0.1), failing()),
    "expected error": lambda: settled(Expectation(0.1), failing()),
    "phase diagram": lambda: settled(
        PhaseDiagram("a", "b", (1.0, 2.0), (1.0, 2.0), lambda *_: 0.9, lambda *_: None), failing
    ),
    "exponent": lambda: settled(PowerLaw("n", (1.0, 2.0, 4.0), 1.0, Quantile()), growing),
    "smallest parameter": lambda: settled(SmallestParameter("n", 100.0, Search(0.1, 20.0, 500.0)), failing),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_audit_settles_a_slight_doubt_by_new_calls(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter((Doubt(2 * UNCLEAR, "they look alike"), Doubt()))
    monkeypatch.setattr("auditor.audits.dependence._doubt_tested", lambda *_: next(looks))
    found = KINDS[kind]()
    assert found.verdict in (Verdict.VIOLATION, Verdict.DEVIATION)
    assert found.message.endswith("reached again on new draws, which do not look so")
    assert found.independence["in_calls"]
    assert found.independence["asked_p"] == 2 * UNCLEAR
    assert next(looks, None) is None


def test_draws_that_failed_a_test_are_a_deviation_whatever_they_refute() -> None:
    failed = Independence(False, "they repeat", {}, 100, still="they still do")
    assert decide_verdict(Verdict.VIOLATION, True, independence=failed) == (
        Verdict.DEVIATION,
        "draws are not independent: they repeat",
    )


# ---------------------------------------------------------------------------------- one draw a call


class Listening:
    """Notes the dataset and the size of each call."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, data: str, n: int, rng: Rng) -> NDArray[np.float64]:
        self.asked.append((data, n))
        return rng.random(n)


def test_long_calls_are_made_in_parts() -> None:
    assert [part.n for part in parts_of(Call(SPLIT - 1, ("key",)))] == [SPLIT - 1]
    target = Listening()
    sampler = Sampler(target, 1, "claim")
    batch = sampler.draw("x", SPLIT + 3, "key")
    assert len(batch) == SPLIT + 3
    assert [n for _, n in target.asked] == [part.n for part in parts_of(Call(SPLIT + 3, ("key",)))]
    assert len(target.asked) == PARTS
    assert sampler.place == Place(0, 0, SPLIT + 3, tuple(n for _, n in target.asked))
    sampler.draw("x", 5, "more")
    assert sampler.place == Place(PARTS, SPLIT + 3, 5)


def test_draws_taken_alone_come_in_random_order_after_random_other_calls() -> None:
    target = Listening()
    sampler = Sampler(target, 1, "claim").alone()
    x, y = sampler.draw_sides("x", "y", 60, 0, 0)
    assert {n for _, n in target.asked} == {1}
    assert 120 < len(target.asked) < 120 * (1 + DUMMIES)
    assert set(np.diff(np.sort(np.concatenate([x.place.at(), y.place.at()])))) == set(range(1, DUMMIES + 2))
    # 60 draws a side in an order drawn at random: the other side follows in about half of the cases.
    order = np.argsort(np.concatenate([x.place.at(), y.place.at()])) < 60
    assert 30 < int((order[1:] != order[:-1]).sum()) < 90  # outside with a probability below 1e-6
    for side, drawn in (("x", x), ("y", y)):
        assert all(target.asked[at][0] == side for at in drawn.place.at())


def test_draws_taken_alone_depend_on_their_keys_alone() -> None:
    apart = Sampler(Listening(), 1, "claim").alone().draw_sides("x", "y", 9, 0, 0)[0].batch
    plain = Sampler(Listening(), 1, "claim", one_a_call=True).draw("x", 9, 0, "x", 0)
    assert np.array_equal(apart, plain)


def test_calls_that_are_thrown_away_may_raise_and_may_not_hang() -> None:
    def raising(data: str, n: int, rng: Rng) -> NDArray[np.float64]:
        if rng.random() < 0.5:
            raise ValueError("unlucky")
        return rng.random(n)

    drawn = Sampler(raising, 1, "claim", catching=True).alone().draw_sides("x", "y", 20, 0, 0)[0]
    assert len(drawn.batch) == 20

    def hanging(data: str, n: int, rng: Rng) -> NDArray[np.float64]:
        while True:
            pass

    with pytest.raises(TargetError, match="did not answer within"):
        Sampler(hanging, 1, "claim", limit=0.05).alone().draw("x", 2, "key")
