"""Adversaries: what a guarantee leaves to them, and games against targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.adversaries import Adversary, Ask, Game, run_game
from auditor.audits.adversaries.base import FloatArray
from auditor.audits.adversaries.bounds import bound_guessing, bound_packing, bound_reconstruction
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, DeltaDP, GaussianDP, Guarantee, PureDP
from auditor.results import AuditResult, Verdict


@dataclass(frozen=True)
class Reading(Adversary):
    """Each person has a column of their own; an answer above one half is a one."""

    rows: int = 20
    name: ClassVar[str] = "reading"

    @property
    def bits(self) -> int:
        return self.rows

    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> FloatArray:
        secret = rng.integers(0, 2, (n, self.rows), dtype=np.int8)
        answers = ask(secret[:, :, None] * np.eye(self.rows, dtype=np.int8))
        return np.asarray(((answers > 0.5) == secret).mean(axis=1))

    def most(self, guarantee: Guarantee, level: float) -> float:
        return bound_guessing(guarantee, level)

    def __str__(self) -> str:
        return f"reads {self.rows} bits"


@dataclass(frozen=True)
class AllOrNothing(Reading):
    """Wins if every bit is right."""

    @property
    def bits(self) -> int:
        return 0

    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(super().play(ask, n, rng) == 1.0, dtype=np.float64)

    def most(self, guarantee: Guarantee, level: float) -> float:
        return bound_reconstruction(guarantee, level, self.rows, 0)


@dataclass(frozen=True)
class Responses:
    """Randomised response to each person's own column: with probability e^epsilon / (1 + e^epsilon) the truth."""

    epsilon: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
        truth = np.diagonal(np.asarray(data))
        lies = rng.random((n, truth.size)) > 1 / (1 + math.exp(-self.epsilon))
        return np.asarray(np.abs(truth - lies), dtype=np.float64)


@dataclass(frozen=True)
class InBatches(Responses):
    """The same for several tables at once."""

    def each(self, stack: Any, rng: np.random.Generator) -> FloatArray:
        truth = np.diagonal(stack, axis1=1, axis2=2)
        lies = rng.random(truth.shape) > 1 / (1 + math.exp(-self.epsilon))
        return np.asarray(np.abs(truth - lies), dtype=np.float64)


def audited(target: Any, guarantee: Guarantee, adversary: Adversary, games: int = 60, **options: Any) -> AuditResult:
    game = Game(target, adversary, options.pop("unit", "counts"))
    return run_game(game, guarantee, Settings(draws=games, stop="budget", **options), Question())


# --------------------------------------------------------------------------------- what is allowed


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_a_guess_is_right_as_often_as_the_likelier_response(epsilon: float) -> None:
    assert bound_guessing(PureDP(1.0), epsilon) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)))


def test_the_guessing_bound_of_the_document() -> None:
    """(1, 0.1): 0.75795; a wrong part of at least 0.242 (003, Definition 4.1.1)."""
    assert bound_guessing(ApproxDP(1.0, 0.1), 1.0) == pytest.approx(0.75795, abs=5e-6)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_a_gaussian_guess_is_that_of_the_midpoint(mu: float) -> None:
    """One plus the total variation of two Gaussians, halved: Phi(mu / 2)."""
    assert bound_guessing(GaussianDP(1.0), mu) == pytest.approx(stats.norm.cdf(mu / 2), abs=1e-9)


def test_guesses_by_caps_agree_with_the_closed_form() -> None:
    """At a claimed epsilon the level is delta, and the maximum is searched for."""
    for delta in (0.0, 0.02, 0.3):
        assert bound_guessing(DeltaDP(0.1, 1.0), delta) == pytest.approx((math.e + delta) / (1 + math.e), abs=1e-9)


def test_reconstruction_within_a_distance() -> None:
    """p (1 - c) <= e^epsilon (c + 1/n) + delta."""
    assert bound_reconstruction(ApproxDP(1.0, 0.1), 1.0, 100, 10) == pytest.approx((math.e * 0.11 + 0.1) / 0.9)
    assert bound_reconstruction(PureDP(3.0), 3.0, 100, 10) == 1.0
    with pytest.raises(SpecificationError, match="from 0 to 99, got 100"):
        bound_reconstruction(PureDP(1.0), 1.0, 100, 100)


def test_packings_of_pure_and_of_other_claims() -> None:
    """e^(epsilon g) / l; for (epsilon, delta) the sum of group privacy on top."""
    assert bound_packing(PureDP(1.0), 0.1, math.log(1000), 3) == pytest.approx(math.exp(0.3) / 1000)
    e = math.exp(0.1)
    expected = e**3 / 1000 + 0.01 * (1 + e + e**2)
    assert bound_packing(ApproxDP(0.1, 0.01), 0.1, math.log(1000), 3) == pytest.approx(expected)


# ------------------------------------------------------------------------------------------ games


def test_truthful_answers_are_a_violation_with_a_certified_level() -> None:
    found = audited(InBatches(40.0), PureDP(1.0), Reading())
    assert found.verdict == Verdict.VIOLATION
    assert found.lower_bound is not None
    # 1,200 bits all right certify a probability of about alpha^(1/1200): the level is near ln(1200 / ln(1/alpha)).
    assert 4.0 < found.lower_bound < math.log(1200 / math.log(100))
    assert found.counterexample is not None
    assert (found.counterexample.x_count, found.counterexample.n) == (1200, 1200)


def test_means_are_counts_over_the_number_of_rows() -> None:
    class Means(Responses):
        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
            return super().__call__(data, n, rng) / len(data)

    assert audited(Means(40.0), PureDP(1.0), Reading(), unit="means").verdict == Verdict.VIOLATION
    with pytest.raises(SpecificationError, match="counts, means, got 'sums'"):
        Game(Means(1.0), Reading(), "sums")  # type: ignore[arg-type]


def test_randomised_response_resists_and_is_nearly_certified() -> None:
    """The bound is attained, so that the lower bound comes close; it exceeds the level with probability 1e-6."""
    found = audited(InBatches(1.0), PureDP(1.0), Reading(), games=400, alpha=1e-6)
    assert found.verdict == Verdict.CONSISTENT
    assert found.lower_bound is not None
    assert found.resolves is not None
    assert 0.7 < found.lower_bound <= 1.0 < found.resolves < 1.5
    assert found.ceiling is not None
    assert found.ceiling > 5


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
def test_other_notions_bet_on_the_score_of_each_game(guarantee: Guarantee) -> None:
    assert audited(InBatches(6.0), guarantee, Reading(), games=100).verdict == Verdict.VIOLATION
    assert audited(InBatches(0.5), guarantee, Reading(), games=200).verdict == Verdict.CONSISTENT


def test_a_game_that_is_won_or_lost() -> None:
    found = audited(InBatches(7.0), PureDP(1.0), AllOrNothing(), games=100)
    assert found.verdict == Verdict.VIOLATION
    assert found.lower_bound is not None
    assert found.lower_bound < math.log(20)  # what winning always would show


def test_with_and_without_batches_the_same_law() -> None:
    for target in (Responses(40.0), InBatches(40.0)):
        assert Game(target, Reading())(None, 30, np.random.default_rng(1)).tolist() == [1.0] * 30


def test_what_is_no_count_is_put_inside() -> None:
    class Wild(Responses):
        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
            found = super().__call__(data, n, rng)
            found[:, 0] = [np.nan] * n
            return np.where(found > 0.5, np.inf, found)

    assert Game(Wild(40.0), Reading())(None, 5, np.random.default_rng(1)).min() > 0.9


@pytest.mark.parametrize(
    "answer", ["many", [1.0, 2.0], {"count": 3}, np.full(20, 3.0j), ["3"] * 20, np.full(20, 3, "M8[s]"), [10**400] * 20]
)
def test_answers_of_another_shape_or_type_are_an_error_that_shows_them(answer: Any) -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
        return [answer] * n

    found = audited(target, PureDP(1.0), Reading(), independence=False)
    assert found.verdict == Verdict.ERROR
    assert "expected 20 numbers for each of" in found.message


class Strategy(Adversary):
    """A third party's: it plays as it was told, and no dataclass."""

    name = "strategy"
    bits = 1

    def __init__(
        self, play: Callable[[Ask, NDArray[np.int8]], Any], most: Callable[[float], float] = math.tanh
    ) -> None:
        self._play, self._most = play, most

    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> Any:
        return self._play(ask, rng.integers(0, 2, (n, 1, 1), dtype=np.int8))

    def most(self, guarantee: Guarantee, level: float) -> float:
        return self._most(level)

    def __str__(self) -> str:
        return "a strategy"


@pytest.mark.parametrize(
    ("play", "message"),
    [
        # Three releases of a secret tell more than one: exact randomised response was a violation.
        (
            lambda ask, secret: (ask(secret) + ask(secret) + ask(secret))[:, 0] > 1.5,
            "one question a game, got 8 tables",
        ),
        # Each was rounded to a right guess, and 0.55 in every game a violation.
        (lambda ask, secret: np.full(len(ask(secret)), 0.55), "parts of 1 bits as scores, got 0.55"),
        (lambda ask, secret: ask(5 * secret + 2)[:, 0] > 2, "zeros and ones, got entries from"),
        (lambda ask, secret: ask(1.0 * secret)[:, 0] > 0.5, "tables as integers"),
        (lambda ask, secret: np.zeros(len(secret)), "one question a game, got none"),
        (lambda ask, secret: ["a"] * len(ask(secret)), "scores must be numbers"),
        (lambda ask, secret: ask(secret)[:, 0] * math.nan, "scores in"),
    ],
)
def test_what_a_strategy_may_do_is_checked(play: Callable[..., Any], message: str) -> None:
    game, rng = Game(Responses(1.0), Strategy(play)), np.random.default_rng(1)
    with pytest.raises(SpecificationError, match=message):
        _ = game(None, 4, rng), game.table(rng)


def fails(ask: Ask, secret: NDArray[np.int8]) -> Any:
    ask(secret)
    raise KeyError("of the adversary")


@pytest.mark.parametrize(
    ("play", "message"),
    [
        (fails, "the adversary (a strategy) raised KeyError: 'of the adversary' (test_adversaries.py, line "),
        (lambda ask, secret: ask(2 * secret + 1)[:, 0] > 2, "a strategy: expected tables of zeros and ones"),
        (lambda ask, secret: ["a"] * len(ask(secret)), "a strategy: scores must be numbers"),
    ],
)
def test_what_an_adversary_does_wrong_is_not_the_targets_fault(play: Callable[..., Any], message: str) -> None:
    found = audited(Responses(1.0), PureDP(1.0), Strategy(play), independence=False)
    assert found.verdict == Verdict.ERROR
    assert found.message.startswith(message)


def test_an_adversary_that_fails_on_its_first_table_is_a_bad_specification() -> None:
    with pytest.raises(SpecificationError, match=r"the adversary \(a strategy\) raised KeyError"):
        audited(Responses(1.0), PureDP(1.0), Strategy(fails))


def test_a_target_that_raises_is_not_the_adversarys_fault() -> None:
    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise KeyError("of the target")

    found = audited(target, PureDP(1.0), Reading(), independence=False)
    assert found.message.startswith("the target raised KeyError: 'of the target'")


@pytest.mark.parametrize(
    ("most", "message"),
    [
        (lambda _: 0.0, "got 0 at"),
        (lambda _: None, "must be a number: got None"),
        (lambda _: math.nan, "got nan"),
        (lambda _: 1 // 0, r"the bound of the adversary \(a strategy\) raised ZeroDivisionError"),
        (lambda t: 1 / (1 + t), "grow with the level"),
    ],
)
def test_the_bound_of_a_strategy_is_checked(most: Callable[[float], float], message: str) -> None:
    game = Game(Responses(1.0), Strategy(lambda ask, secret: ask(secret)[:, 0] > 0.5, most))
    with pytest.raises(SpecificationError, match=message):
        run_game(game, PureDP(1.0), Settings(), Question())


def test_noise_that_is_shared_between_draws_is_a_finding() -> None:
    class Shared(Responses):
        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
            return np.repeat(super().__call__(data, 1, rng), n, axis=0)

    found = audited(Shared(0.5), PureDP(1.0), Reading())
    assert found.verdict == Verdict.DEVIATION
    assert "not independent" in found.message


def test_the_same_seed_gives_the_same_record() -> None:
    first, second = (audited(InBatches(1.0), PureDP(1.0), Reading(), seed=5).to_json() for _ in range(2))
    assert first == second
    assert first != audited(InBatches(1.0), PureDP(1.0), Reading(), seed=6).to_json()
