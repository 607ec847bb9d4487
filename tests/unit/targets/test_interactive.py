"""Dialogues: transcripts, their exact distributions, analysts against scalar twins, and what is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor import Pair, PureDP, SpecificationError, TargetError, Verdict, audit
from auditor.audits.summary import describe_target
from auditor.errors import TargetRaised
from auditor.privacy.exact import curve
from auditor.targets import source_hash
from auditor.targets.analysts import (
    Adaptive,
    FixedList,
    Mixture,
    Phases,
    RandomQueries,
    Repeat,
    ThresholdSeeker,
)
from auditor.targets.interactive import SKIP, Analyst, History, match_symbol, pool_indices
from auditor.targets.outputs import Raised
from auditor.targets.sampler import Sampler
from auditor.targets.transcripts import Dialogue, ExactDialogue, transcript_law, transcripts


@dataclass(frozen=True)
class NoisyBits:
    """Randomised response on any bit of the data, any number of times; halts after `most` answers."""

    epsilon: float
    most: int

    @property
    def truth(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon))

    def start(self, data: Any, n: int, rng: np.random.Generator) -> BitsSession:
        return BitsSession(self, np.asarray(data), n, rng)

    def branches(self, data: Any, rounds: int) -> BitsBranches:
        return BitsBranches(self, np.asarray(data))


class BitsSession:
    silence = -1

    def __init__(self, mechanism: NoisyBits, bits: NDArray[Any], n: int, rng: np.random.Generator) -> None:
        self.mechanism, self.bits, self.n, self.rng = mechanism, bits, n, rng
        self.left = np.full(n, mechanism.most)
        self.closed = False

    def ask(self, queries: int | NDArray[np.int64]) -> NDArray[Any]:
        indices = pool_indices(queries, self.n, self.bits.size)
        asked = (indices != SKIP) & (self.left > 0)
        self.left -= asked
        truthful = self.rng.random(self.n) < self.mechanism.truth
        return np.where(asked, np.where(truthful, self.bits[indices], 1 - self.bits[indices]), -1)

    def close(self) -> None:
        self.closed = True


class BitsBranches:
    silence = -1

    def __init__(self, mechanism: NoisyBits, bits: NDArray[Any]) -> None:
        self.mechanism, self.bits = mechanism, bits
        self.left, self.masses = np.array([mechanism.most]), np.ones(1)

    def ask(self, queries: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        asks = (queries != SKIP) & (self.left > 0)
        quiet, asking = np.flatnonzero(~asks), np.flatnonzero(asks)
        parents = np.concatenate([quiet, asking, asking])
        answers = np.repeat([-1, 0, 1], [quiet.size, asking.size, asking.size])
        truthful = self.bits[queries[parents]] == answers
        factor = np.where(truthful, self.mechanism.truth, 1 - self.mechanism.truth)
        self.masses = self.masses[parents] * np.where(answers < 0, 1.0, factor)
        self.left = self.left[parents] - (answers >= 0)
        return parents, answers

    def mass(self) -> NDArray[np.float64]:
        return self.masses


BITS = np.array([0, 1, 0, 1, 1])
MECHANISM = NoisyBits(1.0, 4)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def parity(history: History) -> NDArray[np.int64]:
    """Asks bit 0 first, then bit 1 or 2 after a 0 or a 1, and nothing after two ones."""
    ones = (history.answers == 1).sum(axis=1)
    if not history.rounds:
        return np.zeros(history.n, dtype=np.int64)
    return np.where(ones >= 2, SKIP, 1 + (history.answers[:, -1] == 1))


DETERMINISTIC: list[Analyst] = [
    FixedList([0, 1, 1, 4, 0, 2]),
    Repeat(1, 6),
    Repeat(1, 6, until=1),
    Phases(0, 1, 2, 1, 2),
    Phases(0, 1, 2, 2, 2, ends=None),
    Phases(3, 2, 1, 1, 3, ends=0),
    ThresholdSeeker([4, 2, 0, 1, 3]),
    ThresholdSeeker([0, 1, 2], symbol=0),
    Adaptive(parity, 4),
]
RANDOMISED: list[Analyst] = [
    RandomQueries([0, 3, 3], 6),
    Mixture([FixedList([0, 1]), Repeat(2, 5, until=1), RandomQueries([4], 3)]),
]


def label(value: object) -> str:
    """Its representation without addresses, which differ between the workers of one run."""
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", repr(value))


named = pytest.mark.parametrize("analyst", [*DETERMINISTIC, *RANDOMISED], ids=label)


# ------------------------------------------------------------------------------- transcripts


@named
def test_a_transcript_is_answers_and_then_the_queries_of_an_adaptive_analyst(analyst: Analyst) -> None:
    outputs = Dialogue(MECHANISM, analyst)(BITS, 500, rng())
    width = analyst.rounds
    assert outputs.shape == (500, 2 * width if analyst.adaptive else width)
    assert outputs.dtype == np.int64
    answers = outputs[:, :width]
    assert set(np.unique(answers)) <= {-1, 0, 1}
    if analyst.adaptive:
        # An answer wherever something was asked, until the mechanism halts after 4.
        asked = outputs[:, width:] != SKIP
        before = np.cumsum(asked, axis=1) - asked
        np.testing.assert_array_equal(answers >= 0, asked & (before < 4))


@named
def test_the_same_seed_gives_the_same_transcripts(analyst: Analyst) -> None:
    target = Dialogue(MECHANISM, analyst)
    np.testing.assert_array_equal(target(BITS, 50, rng(3)), target(BITS, 50, rng(3)))


def test_coins_move_no_draw_of_the_mechanism() -> None:
    plain = Dialogue(MECHANISM, Repeat(1, 4))(BITS, 300, rng(7))
    mixed = Dialogue(MECHANISM, Mixture([Repeat(1, 4), Repeat(1, 4)]))(BITS, 300, rng(7))
    np.testing.assert_array_equal(plain, mixed)


def test_one_trial_and_many() -> None:
    for analyst in [*DETERMINISTIC, *RANDOMISED]:
        assert len(Dialogue(MECHANISM, analyst)(BITS, 1, rng())) == 1


class Recorder:
    """A session that answers what it is told to and remembers what it was asked."""

    def __init__(self, answer: Callable[[int, int], Any], n: int, silence: Any = -1) -> None:
        self.answer, self.n, self.silence, self.asked = answer, n, silence, []  # type: ignore[var-annotated]
        self.closed = False

    def ask(self, queries: int | NDArray[np.int64]) -> Any:
        self.asked.append(queries)
        return self.answer(len(self.asked), self.n)

    def close(self) -> None:
        self.closed = True


def ask(answer: Callable[[int, int], Any], analyst: Analyst, silence: Any = -1, n: int = 3) -> NDArray[Any]:
    return transcripts(Recorder(answer, n, silence), analyst, n, rng())


def test_one_query_for_all_trials_goes_to_the_session_as_one() -> None:
    session = Recorder(lambda t, n: np.zeros(n, dtype=np.int64), 3)
    transcripts(session, FixedList([5, 6]), 3, rng())
    assert session.asked == [5, 6]


def test_nothing_is_asked_when_no_trial_asks() -> None:
    session = Recorder(lambda t, n: np.ones(n, dtype=np.int64), 3)
    outputs = transcripts(session, Repeat(5, 4, until=1), 3, rng())
    assert len(session.asked) == 1
    np.testing.assert_array_equal(outputs, [[1, -1, -1, -1, 5, SKIP, SKIP, SKIP]] * 3)


def test_answers_of_several_numbers_lie_side_by_side() -> None:
    outputs = ask(lambda t, n: np.arange(2 * n).reshape(n, 2) + 10.0 * t, Repeat(5, 2), math.nan)
    np.testing.assert_array_equal(outputs[1], [12, 13, 22, 23, 5, 5])
    assert outputs.dtype == np.float64


def test_answers_that_are_texts_or_large_stay_what_they_are() -> None:
    words = ask(lambda t, n: np.array(["a" * t] * n), Repeat(5, 2, until="aaa"), "halt")
    assert words.tolist() == [["a", "aa", 5, 5]] * 3
    large = ask(lambda t, n: np.full(n, 2**63 + 1, dtype=np.uint64), Repeat(5, 1), 0)
    assert large.tolist() == [[2**63 + 1, 5]] * 3


def test_a_late_first_query_leaves_silence_before_it() -> None:
    analyst = Adaptive(lambda history: SKIP if history.rounds == 0 else 2, 2)
    outputs = ask(lambda t, n: np.full(n, 0.5), analyst, math.nan)
    np.testing.assert_array_equal(outputs, [[math.nan, 0.5, SKIP, 2]] * 3)


def test_symbols() -> None:
    np.testing.assert_array_equal(match_symbol(np.array([[1.0, math.nan]]), math.nan), [[False, True]])
    np.testing.assert_array_equal(match_symbol(np.array([[1, -1]]), -1), [[False, True]])
    np.testing.assert_array_equal(match_symbol(np.array([[[0, 1], [1, 1]]]), 1), [[False, True]])
    history = History(np.array([[0, SKIP], [0, 0]]), np.array([[1, -1], [1, -1]]), -1, np.empty((2, 0)))
    np.testing.assert_array_equal(history.halted(), [False, True])


def test_an_analyst_cannot_rewrite_the_past() -> None:
    def forge(history: History) -> int:
        history.answers[:] = 1
        return 0

    with pytest.raises(ValueError, match="read-only"):
        Dialogue(MECHANISM, Adaptive(forge, 2))(BITS, 3, rng())


# --------------------------------------------------------------------- sessions that are refused


@pytest.mark.parametrize(
    ("answer", "silence", "message"),
    [
        (lambda t, n: np.zeros(n + 1), math.nan, r"3 trials, expected answers of shape \(3,\) or .* shape \(4,\)"),
        (lambda t, n: np.zeros(()), math.nan, r"got an array of shape \(\)"),
        (lambda t, n: np.zeros((n, 2, 2)), math.nan, r"got an array of shape \(3, 2, 2\)"),
        (lambda t, n: [0] * n, -1, "got a list"),
        (lambda t, n: None, -1, "got a NoneType"),
        (lambda t, n: np.zeros((n, t)), math.nan, r"in round 2 they are float64 of shape \(3, 2\)"),
        (lambda t, n: np.zeros(n, dtype=[np.int8, np.int16][t - 1]), -1, "answers were int8 .* they are int16"),
        (lambda t, n: np.zeros(n, dtype=np.int8), math.nan, "type int8 cannot hold the symbol for silence, nan"),
        (lambda t, n: np.zeros(n, dtype=np.uint8), -1, "type uint8 cannot hold"),
        (lambda t, n: np.zeros(n, dtype=np.bool_), 0, "type bool cannot hold"),
    ],
)
def test_answers_that_cannot_be_read_are_the_targets_fault(
    answer: Callable[[int, int], Any], silence: Any, message: str
) -> None:
    with pytest.raises(TargetError, match=message):
        ask(answer, FixedList([0, 1]), silence)


def test_an_answer_to_a_trial_that_asked_nothing_is_the_targets_fault() -> None:
    analyst = Adaptive(lambda history: np.where(history.coins[:, 0] < 0.5, 0, SKIP), 1, 1)  # one coin of the three
    with pytest.raises(TargetError, match="2 of 3 trials asked nothing and were answered"):
        ask(lambda t, n: np.zeros(n, dtype=np.int64), analyst)


@dataclass(frozen=True)
class Broken:
    """Answers a trial too many, and keeps its sessions."""

    sessions: list[Recorder]

    def start(self, data: Any, n: int, rng: np.random.Generator) -> Recorder:
        self.sessions.append(Recorder(lambda t, n: np.zeros(n + data), n, math.nan))
        return self.sessions[-1]


@pytest.mark.parametrize(
    ("second", "found"), [(KeyError, "ValueError"), (TargetRaised, "ValueError"), (TargetError, "TargetError")]
)
def test_what_close_raises_hides_nothing(second: type[Exception], found: str) -> None:
    class Session:
        silence = -1

        def ask(self, queries: object) -> NDArray[Any]:
            raise ValueError("the answer")

        def close(self) -> None:
            raise TargetRaised("KeyError", "closed") if second is TargetRaised else second("closed")

    class Mechanism:
        def start(self, data: Any, n: int, rng: np.random.Generator) -> Session:
            return Session()

    with pytest.raises((ValueError, KeyError, TargetError)) as raised:
        Dialogue(Mechanism(), FixedList([0]))([0], 1, np.random.default_rng(0))
    assert raised.type.__name__ == found


def test_a_session_is_closed_however_it_ends() -> None:
    target = Dialogue(Broken([]), FixedList([0]))
    target(0, 2, rng())
    with pytest.raises(TargetError):
        target(1, 2, rng())
    assert [session.closed for session in target.mechanism.sessions] == [True, True]  # type: ignore[attr-defined]


def test_an_audit_of_a_broken_session_is_an_error_that_says_so() -> None:
    result = audit(Dialogue(Broken([]), FixedList([0])), PureDP(1.0), Pair(1, 2, "x"))
    assert result.verdict == Verdict.ERROR
    assert "expected answers of shape (" in result.message


# --------------------------------------------------------------------- analysts that are refused


@pytest.mark.parametrize(
    "queries", [0.0, np.zeros(2, dtype=np.int64), np.zeros(3), None, -2, np.array([0, 0, -2]), [[0, 0, 0]], "0"]
)
def test_queries_that_are_none_are_refused(queries: Any) -> None:
    @dataclass(frozen=True)
    class Odd:
        rounds: int = 1
        adaptive: bool = False
        coins: int = 0

        def __call__(self, history: History) -> Any:
            return queries

    with pytest.raises(
        SpecificationError, match=r"expected one query or 3 of them, integers of at least -1, got .*Odd"
    ):
        ask(lambda t, n: np.zeros(n), Odd(), math.nan)


def test_a_silent_analyst_is_refused() -> None:
    with pytest.raises(SpecificationError, match="asked nothing in 3 trials"):
        ask(lambda t, n: np.zeros(n), Adaptive(lambda history: SKIP, 2), math.nan)


def test_a_strategy_that_looks_at_other_trials_is_refused() -> None:
    analyst = Adaptive(lambda history: int(history.answers.sum() > 50), 4)
    with pytest.raises(SpecificationError, match="must depend on that trial alone: the first of 100 trials asks"):
        Dialogue(NoisyBits(8.0, 9), analyst)(np.ones(2, dtype=np.int64), 100, rng())


def test_a_strategy_that_goes_by_the_first_trial_is_refused() -> None:
    # The first trial asks the same by itself, and so all of them: only the last one gives it away.
    analyst = Adaptive(lambda history: int(history.answers[0].sum() > 1) if history.rounds else 0, 9)
    with pytest.raises(SpecificationError, match="the last of 100 trials asks"):
        Dialogue(NoisyBits(0.1, 9), analyst)(np.ones(2, dtype=np.int64), 100, rng())


def raises_at_once(history: History) -> int:
    raise KeyError("no such strategy")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raises_at_once, "the analyst raises_at_once raised KeyError: 'no such strategy' (test_interactive.py, line "),
        (lambda history: 99, "an analyst asks what is not in the pool: expected queries from 0 to 0, or -1, got 99"),
        (lambda history: history.n - 1, "a trial's query must depend on that trial alone: the first of 12 trials asks"),
        (lambda history: None, "expected one query or 12 of them, integers of at least -1, got None"),
        (lambda history: SKIP, "the analyst asked nothing in 12 trials"),
    ],
)
def test_what_an_analyst_does_wrong_is_not_the_targets_fault(function: Callable[[History], Any], message: str) -> None:
    result = audit(Dialogue(MECHANISM, Adaptive(function, 1)), PureDP(1.0), Pair([0], [1], "x"), draws=200)
    assert result.verdict == Verdict.ERROR
    assert result.message.startswith(message)


def test_what_an_analyst_raises_is_an_outcome_like_others() -> None:
    # It may depend on answers, and then it is a function of the transcript.
    sampler = Sampler(Dialogue(MECHANISM, Adaptive(raises_at_once, 1)), 0, "raises", catching=True)
    assert sampler.draw([0], 1, "draw") == [Raised("KeyError")]


def test_dialogues_and_analysts_are_checked_at_load() -> None:
    with pytest.raises(SpecificationError, match=r"has start\(data, n, rng\), got 3"):
        Dialogue(3, FixedList([0]))  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="rounds must be an integer of at least 1, got None"):
        Dialogue(MECHANISM, "ask")  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="queries must hold at least one"):
        FixedList([])
    with pytest.raises(SpecificationError, match="integer of at least 0, got -1"):
        FixedList([0, -1])
    with pytest.raises(SpecificationError, match="integer of at least 0, got True"):
        Repeat(True, 3)
    with pytest.raises(SpecificationError, match="most must be an integer of at least 1, got 0"):
        Repeat(0, 0)
    with pytest.raises(SpecificationError, match=r"length must be an integer of at least 1, got 1\.5"):
        Phases(0, 1, 1.5)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="distinct queries"):
        ThresholdSeeker([0, 1, 0])
    with pytest.raises(SpecificationError, match="at least one analyst"):
        Mixture([])
    with pytest.raises(SpecificationError, match="function of a history"):
        Adaptive(3, 3)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="needs must be an integer of at least 0, got -1"):
        Adaptive(parity, 3, -1)


def test_pool_indices() -> None:
    np.testing.assert_array_equal(pool_indices(2, 3, 4), [2, 2, 2])
    np.testing.assert_array_equal(pool_indices(np.array([0, SKIP, 3]), 3, 4), [0, SKIP, 3])
    with pytest.raises(ValueError, match="expected queries from 0 to 3, or -1, got 4"):
        pool_indices(np.array([0, 4, 5]), 3, 4)
    with pytest.raises(ValueError, match="got -2"):
        pool_indices(-2, 3, 4)
    with pytest.raises(ValueError, match="expected one query or 3 of them"):
        pool_indices(np.array([0, 1]), 3, 4)


# ---------------------------------------------------------------- analysts against scalar twins


def twin_repeat(analyst: Repeat, answers: list[int]) -> list[int]:
    asked = []
    for answer in answers:
        asked.append(analyst.query)
        if answer in (-1, analyst.until):
            break
    return asked


def twin_phases(analyst: Phases, answers: list[int]) -> list[int]:
    asked: list[int] = []
    place = over = 0
    for answer in answers:
        asked.append(analyst.cheap if place < analyst.length else analyst.costly)
        place += 1
        if analyst.ends is not None and answer == analyst.ends:
            place, over = 0, over + 1
        if place == analyst.length + analyst.patience:
            place = 0
        if answer == -1 or over == analyst.epochs:
            break
    return asked


def twin_seeker(analyst: ThresholdSeeker, answers: list[int]) -> list[int]:
    asked = []
    low, high = 0, len(analyst.order)
    for answer in answers:
        if low == high:
            break
        middle = (low + high) // 2
        asked.append(analyst.order[middle])
        if answer == -1:
            break
        low, high = (low, middle) if answer == analyst.symbol else (middle + 1, high)
    return asked


@pytest.mark.parametrize(
    ("analyst", "twin"),
    [
        (Repeat(1, 7), twin_repeat),
        (Repeat(1, 7, until=0), twin_repeat),
        (Phases(0, 1, 1, 1, 3), twin_phases),
        (Phases(0, 1, 3, 2, 2), twin_phases),
        (Phases(0, 1, 3, 1, 2, ends=None), twin_phases),
        (Phases(0, 1, 2, 2, 3, ends=0), twin_phases),
        (ThresholdSeeker([0]), twin_seeker),
        (ThresholdSeeker([4, 1]), twin_seeker),
        (ThresholdSeeker([4, 2, 0, 1, 3]), twin_seeker),
        (ThresholdSeeker(range(5), symbol=0), twin_seeker),
    ],
    ids=label,
)
@pytest.mark.parametrize("most", [3, 99])
def test_an_analyst_asks_what_its_scalar_twin_asks(
    analyst: Analyst, twin: Callable[[Any, list[int]], list[int]], most: int
) -> None:
    outputs = Dialogue(NoisyBits(0.3, most), analyst)(BITS, 400, rng(11))
    width = analyst.rounds
    for answers, asked in zip(outputs[:, :width].tolist(), outputs[:, width:].tolist(), strict=True):
        expected = twin(analyst, answers)
        assert asked == expected + [SKIP] * (width - len(expected))


def test_the_seeker_finds_the_place_in_noiseless_answers() -> None:
    exact = NoisyBits(700.0, 99)
    for ones in range(8):
        bits = np.array([0] * (7 - ones) + [1] * ones)
        outputs = Dialogue(exact, ThresholdSeeker(range(7)))(bits, 5, rng())
        answers, asked = outputs[0, :3], outputs[0, 3:]
        place = min(asked[answers == 1], default=7)
        assert place == 7 - ones


def test_random_queries_are_as_likely_as_the_pool_says() -> None:
    outputs = Dialogue(NoisyBits(1.0, 99), RandomQueries([0, 3, 3], 4))(BITS, 20_000, rng(5))
    asked = outputs[:, 4:]
    for t in range(4):
        law = stats.binom(20_000, 1 / 3)
        count = int((asked[:, t] == 0).sum())
        assert law.ppf(1e-8) <= count <= law.isf(1e-8)  # 4 comparisons of two tails: below 1e-7
    assert set(np.unique(asked)) == {0, 3}
    # Rounds are independent: both of two rounds ask 0 in one trial of nine.
    law = stats.binom(20_000, 1 / 9)
    count = int(((asked[:, 0] == 0) & (asked[:, 1] == 0)).sum())
    assert law.ppf(1e-8) <= count <= law.isf(1e-8)


def test_a_mixture_gives_each_trial_to_one_analyst() -> None:
    mixture = Mixture([FixedList([0, 1]), Repeat(2, 3)])
    asked = Dialogue(MECHANISM, mixture)(BITS, 20_000, rng(2))[:, 3:]
    rows, counts = np.unique(asked, axis=0, return_counts=True)
    assert rows.tolist() == [[0, 1, SKIP], [2, 2, 2]]
    law = stats.binom(20_000, 0.5)
    assert law.ppf(1e-8) <= counts[0] <= law.isf(1e-8)


# ------------------------------------------------------------------------------------ exact distributions


def by_hand(mechanism: NoisyBits, analyst: Analyst, bits: NDArray[Any]) -> dict[tuple[int, ...], float]:
    """Distribution of the transcripts by plain recursion, one history at a time."""
    found: dict[tuple[int, ...], float] = {}

    def go(asked: list[int], answers: list[int], mass: float, left: int) -> None:
        if len(asked) == analyst.rounds:
            found[tuple(answers + asked if analyst.adaptive else answers)] = mass
            return
        history = History(np.array([asked], dtype=np.int64), np.array([answers]), -1, np.empty((1, 0)))
        query = int(np.ravel(analyst(history))[0])
        if query == SKIP or not left:
            go([*asked, query], [*answers, -1], mass, left)
            return
        for answer in (0, 1):
            p = mechanism.truth if answer == bits[query] else 1 - mechanism.truth
            go([*asked, query], [*answers, answer], mass * p, left - 1)

    go([], [], 1.0, mechanism.most)
    return found


@pytest.mark.parametrize("analyst", DETERMINISTIC, ids=label)
@pytest.mark.parametrize("most", [2, 99])
def test_the_law_of_transcripts(analyst: Analyst, most: int) -> None:
    mechanism = NoisyBits(0.7, most)
    law = ExactDialogue(mechanism, analyst).law(BITS)
    expected = by_hand(mechanism, analyst, BITS)
    assert set(law.outcomes) == set(expected)
    for outcome, mass in zip(law.outcomes, law.probabilities, strict=True):
        assert isinstance(outcome, tuple)
        assert mass == pytest.approx(expected[outcome], rel=1e-12)


@pytest.mark.parametrize("analyst", DETERMINISTIC, ids=label)
def test_draws_follow_the_law(analyst: Analyst) -> None:
    target, n = ExactDialogue(MECHANISM, analyst), 20_000
    law = target.law(BITS)
    drawn = [tuple(row) for row in target(BITS, n, rng(8)).tolist()]
    assert set(drawn) <= set(law.outcomes)
    tail = 1e-7 / (2 * len(law.outcomes) * len(DETERMINISTIC))  # 1e-7 for all analysts together
    for outcome, mass in zip(law.outcomes, law.probabilities, strict=True):
        binomial = stats.binom(n, mass)
        assert isinstance(outcome, tuple)
        assert binomial.ppf(tail) <= drawn.count(outcome) <= binomial.isf(tail)


def test_the_level_of_a_repeated_query_adds_up() -> None:
    target = ExactDialogue(NoisyBits(0.4, 3), Repeat(0, 5))
    assert curve(target.law([0]), target.law([1])).epsilon(0.0) == pytest.approx(3 * 0.4, rel=1e-12)


@pytest.mark.parametrize("analyst", RANDOMISED, ids=label)
def test_an_exact_law_needs_a_deterministic_analyst(analyst: Analyst) -> None:
    with pytest.raises(SpecificationError, match="analyst without coins"):
        ExactDialogue(MECHANISM, analyst)
    with pytest.raises(SpecificationError, match="analyst without coins"):
        transcript_law(MECHANISM.branches(BITS, analyst.rounds), analyst)


def test_an_exact_law_needs_branches() -> None:
    with pytest.raises(SpecificationError, match=r"mechanism with branches, got Broken\(sessions=\[\]\)"):
        ExactDialogue(Broken([]), FixedList([0]))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------- audits


def test_false_alarms_with_coins_at_zero_margin() -> None:
    # Two answers on one bit, 0.5 each: exactly 1. More than 8 alarms in 20 audits have probability 2e-7 (binomial), if
    # every audit errs with probability 0.05.
    analyst = Mixture([Repeat(0, 2), FixedList([0, 0]), RandomQueries([0], 3), Phases(0, 0, 1, 1, 2)])
    target = Dialogue(NoisyBits(0.5, 2), analyst)
    assert stats.binom(20, 0.05).sf(8) < 1e-6
    results = [audit(target, PureDP(1.0), Pair([0], [1], "bit"), alpha=0.05, draws=2000, seed=s) for s in range(20)]
    assert sum(result.verdict == Verdict.VIOLATION for result in results) <= 8
    assert not any(result.verdict in (Verdict.ERROR, Verdict.DEVIATION) for result in results)


def test_an_adaptive_analyst_is_what_finds_a_leak_behind_an_answer() -> None:
    # Bit 1 is read out noiselessly, but only after an answer 1 about bit 0: a fixed list with bit 0 once sees little.
    class Gate:
        silence = -1

        def __init__(self, bits: NDArray[Any], n: int, rng: np.random.Generator) -> None:
            self.inner = BitsSession(NoisyBits(0.1, 99), bits, n, rng)
            self.open = np.zeros(n, dtype=np.bool_)

        def ask(self, queries: int | NDArray[np.int64]) -> NDArray[Any]:
            indices = np.broadcast_to(queries, self.open.shape)
            answers = np.where(self.open & (indices == 1), self.inner.bits[1], self.inner.ask(queries))
            self.open = (answers == 1) & (indices == 0)
            return answers

    @dataclass(frozen=True)
    class Gated:
        def start(self, data: Any, n: int, rng: np.random.Generator) -> Gate:
            return Gate(np.asarray(data), n, rng)

    def follow(history: History) -> NDArray[np.int64]:
        if not history.rounds:
            return np.zeros(history.n, dtype=np.int64)
        return np.where(history.answers[:, -1] == 1, 1, 0)

    pair = Pair(np.array([0, 0]), np.array([0, 1]), "bit 1")
    fixed = audit(Dialogue(Gated(), FixedList([1, 0, 0])), PureDP(1.0), pair, draws=20_000)
    adaptive = audit(Dialogue(Gated(), Adaptive(follow, 3)), PureDP(1.0), pair, draws=20_000)
    assert (fixed.verdict, adaptive.verdict) == (Verdict.CONSISTENT, Verdict.VIOLATION)


def test_a_dialogue_is_named_and_hashed_by_its_parts() -> None:
    target = Dialogue(MECHANISM, Repeat(0, 2))
    assert describe_target(target) == "NoisyBits asked by Repeat"
    assert describe_target(Dialogue(MECHANISM, Adaptive(parity, 2))) == "NoisyBits asked by parity"
    assert source_hash(target) != source_hash(Dialogue(MECHANISM, FixedList([0])))
    assert source_hash(target) != source_hash(Dialogue(Broken([]), Repeat(0, 2)))
