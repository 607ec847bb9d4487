"""Findings of replays: what noise has chosen is not held against a program, and what it has not chosen is."""

from __future__ import annotations

import inspect
import math
import secrets
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from auditor import ApproxDP, AuditResult, GaussianDP, Pair, PureDP, audit, one_draw, trace
from auditor.audits.noise_effects import are_readable, compose_level, find_effects, find_reached, solve_shift
from auditor.audits.replay_findings import find_score
from auditor.errors import SpecificationError, TargetError
from auditor.events.features import Feature
from auditor.events.noise_score import NoiseScore
from auditor.targets.randomness.plain_draws import Replays, plain_draw
from auditor.targets.replays import Bumps, DrawFacts, opened_runs
from tests.statistics import check_rates

PAIR = Pair(np.array([3.0, 0.0, 7.0]), np.array([3.0, 10.0, 7.0]))
Program = Callable[[Any, Any], Any]


class Machine:
    """As diffprivlib's mechanisms are."""

    def __init__(self, epsilon: float, sensitivity: float) -> None:
        self.epsilon, self.sensitivity, self.delta = epsilon, sensitivity, 0.0
        self._rng: Any = secrets.SystemRandom()

    def randomise(self, value: Any) -> Any:
        tail = -np.log(1 - self._rng.random()) * (1 if self._rng.random() < 0.5 else -1)
        return value + (self.sensitivity / self.epsilon * tail if self.sensitivity else 0.0)


class Laplace(Machine):
    """Of the name by which its noise is known."""


class Folded(Machine):
    """Of noise that is not known."""

    def randomise(self, value: Any) -> Any:
        return abs(super().randomise(value))


@pytest.fixture(autouse=True)
def diffprivlib(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = types.ModuleType("diffprivlib.mechanisms.base")
    made.DPMachine = Machine
    monkeypatch.setitem(sys.modules, made.__name__, made)


def judge(function: Program, claim: Any = None, pair: Pair = PAIR, **options: Any) -> AuditResult:
    return trace(one_draw(function), claim or PureDP(1.0), pair, **{"draws": 1000, **options})


# ----------------------------------------------------------------------- what noise has chosen


def noisy_bound(data: Any, rng: Any) -> Any:
    """A scale that follows from a noisy number of rows; the exponential variate has nothing to do with it."""
    bound = 1.0 + abs(len(data) + rng.normal(scale=9.0))
    return rng.laplace(scale=bound * 20)


def noisy_unit_bound(data: Any, _rng: Any) -> Any:
    high = 10.0 + abs(Laplace(0.5, 10.0).randomise(data.max()))
    return [high, Laplace(0.5, high).randomise(np.clip(data, 0, 10).sum())]


def shown_if_large(data: Any, rng: Any) -> Any:
    noisy = data.sum() + rng.normal(scale=40.0)
    return noisy if noisy > 15 else "suppressed"


def noisy_number_of_noises(data: Any, rng: Any) -> Any:
    size = max(1, int(data.sum() + rng.normal(scale=40.0)))
    return float(np.mean(rng.normal(size=size)))


def noisy_maximum(data: Any, _rng: Any) -> Any:
    return int(np.argmax([Laplace(0.5, 10.0).randomise(value) for value in (data[1], data[1] / 2, data[0])]))


def noise_added_later(data: Any, _rng: Any) -> Any:
    noises = [Folded(1.0, 10.0).randomise(0.0), Laplace(1.0, 20.0).randomise(0.0)]
    return {"sum": data.sum() + 4 * (noises[0] - 10) + noises[1], "other": Laplace(0.1, 10.0).randomise(data.sum())}


def maximum_of_divided_budgets(data: Any, _rng: Any) -> Any:
    """A sensitivity of 10 is told by an epsilon that is divided by it."""
    return int(np.argmax([Laplace(0.05, 1.0).randomise(value) for value in (data[1], data[1] - 1, data[1] / 2)]))


@pytest.mark.parametrize(
    "program",
    [
        noisy_bound,
        noisy_unit_bound,
        shown_if_large,
        noisy_number_of_noises,
        noisy_maximum,
        noise_added_later,
        maximum_of_divided_budgets,
    ],
)
def test_what_noise_has_chosen_is_not_accused(program: Program) -> None:
    """Programs that are right: kinds, scales and numbers of draws follow from noisy values."""
    claim = ApproxDP(1.0, 1e-2) if "rng" in inspect.signature(program).parameters else PureDP(1.0)
    for seed in range(0, 40, 10):
        found = judge(program, claim, seed=seed)
        assert found.verdict in ("consistent", "holds"), (found.message, found.checks)
        assert not found.checks


def test_a_sample_of_the_rows_is_not_accused() -> None:
    """Each row has its variate, so that there are as many as rows, which the output does not tell."""

    def sampled(data: Any, rng: Any) -> float:
        return float(data[rng.random(size=len(data)) < 0.5].sum() + rng.normal(scale=40.0))

    found = judge(sampled, ApproxDP(1.0, 1e-2), Pair(np.arange(5.0), np.arange(6.0)))
    assert (found.verdict, found.checks) == ("consistent", ())
    assert "number of variates depends on the data" in found.message


# ------------------------------------------------------------------- what noise has not chosen


def test_a_sensitivity_that_is_exceeded() -> None:
    """Folded noise: the output says no more than that; the level is that of what primitives are told."""

    def folded(epsilon: float, sensitivity: float) -> Program:
        return lambda data, _rng: math.sqrt(Folded(epsilon, sensitivity).randomise(data.sum()))

    found = judge(folded(0.5, 4.0), draws=200)
    assert found.verdict in ("violation", "deviation")
    (check,) = found.checks
    assert check["name"] == "shift beyond the declared sensitivity"
    assert "2.5 times the sensitivity that diffprivlib.Folded is told; in all ε = 1.25, claimed 1" in check["finding"]
    assert judge(folded(0.4, 4.0)).verdict == "consistent"  # 2.5 times as much, of which there is enough
    assert judge(folded(1.0, 10.0)).verdict == "consistent"
    none = judge(folded(0.5, 0.0), draws=200)
    assert "noise for a sensitivity of 0" in none.message
    assert "no finite ε" in none.message


def test_a_slow_target_is_not_sampled_in_too_little_time() -> None:
    def slow(data: Any, rng: Any) -> Any:
        time.sleep(0.005)
        return data.sum() + rng.laplace(scale=5.0)

    found = judge(slow, seconds=0.1)
    assert (found.verdict, found.draws) == ("deviation", 0)
    assert "so that 0.1 s are too few to certify it" in found.message


def test_data_that_come_beside_the_noisy_values() -> None:
    found = judge(lambda data, _rng: {"sum": Folded(1.0, 10.0).randomise(data.sum()), "known": int(data[1] == 0)})
    assert found.checks[0]["name"] == "data reach the output without noise"
    assert "although all noisy values are the same" in found.checks[0]["finding"]
    later = judge(lambda data, _rng: [data.sum() + Folded(1.0, 10.0).randomise(0.0), float(data[1])])
    assert later.checks[0]["name"] == "data reach the output without noise"
    scaled = judge(lambda data, _rng: Folded(1.0, 1.0 + data.max()).randomise(data.sum()))
    assert scaled.checks[0]["name"] == "scale depends on the data"


def test_draws_that_can_be_read_off_the_output() -> None:
    """Mean and deviation tell both noisy values, a quotient does not."""

    def both(data: Any, _rng: Any) -> Any:
        one, two = (Folded(1.0, 10.0).randomise(data.sum() + 50 * k) for k in (0, 1))
        return [one, math.sqrt(one * one + two)]

    def one(data: Any, rng: Any) -> Any:
        first, second = both(data, rng)
        return first / second

    found = judge(both, draws=200)
    (check,) = found.checks
    assert check["name"] == "composition beyond the claim"
    assert "in all ε = 2, claimed 1" in check["finding"]
    assert "if all of them" not in check["finding"]
    lead = judge(one, draws=200)
    assert (lead.verdict, lead.checks) == ("consistent", ())
    assert "if all of them can be read off the output" in lead.message


# ----------------------------------------------------------------------------------- numbers


def draws_of(function: Program) -> tuple[list[DrawFacts], Callable[[Bumps], Any], Any]:
    """Draws of a function, what its output is with moved variates, and its output."""
    runs = Replays()

    def run(bumps: Bumps) -> Any:
        return np.atleast_1d(np.asarray(runs.run(lambda rng: function(np.zeros(3), rng), 0, bumps)[0], dtype=float))

    start, draws = runs.run(lambda rng: function(np.zeros(3), rng), 0)
    runs.close()
    return [DrawFacts(**plain_draw(draw)) for draw in draws], run, np.atleast_1d(np.asarray(start, dtype=float))


def test_effects_of_noise_are_found() -> None:
    mixed = np.array([[2.0, 1.0], [1.0, -3.0], [0.0, 0.5]])
    draws, run, start = draws_of(lambda data, rng: mixed @ rng.laplace(scale=[3.0, 0.1], size=2))
    effects = find_effects(run, draws, start)
    assert effects is not None
    assert effects.matrix == pytest.approx(mixed, abs=1e-9)
    assert list(effects.scales) == [3.0, 0.1]
    assert solve_shift(effects, mixed @ [1.0, -2.0]) == pytest.approx([1.0, -2.0])
    assert solve_shift(effects, np.array([1.0, 1.0, 1.0])) is None
    draws, run, start = draws_of(lambda data, rng: rng.laplace() ** 3)
    assert find_effects(run, draws, start) is None
    draws, run, start = draws_of(lambda data, rng: [max(0.0, rng.laplace() - 5), 7.0])
    effects = find_effects(run, draws, start)
    assert effects is not None
    assert not effects.matrix.any()
    assert find_reached(run, draws, start).tolist() == [True, False]


def test_whole_noise_is_moved_by_whole_numbers() -> None:
    draws, run, start = draws_of(lambda data, rng: rng.normal(size=2))
    assert are_readable(run, draws, start, [0])
    draws, run, start = draws_of(lambda data, rng: [rng.normal() + rng.normal(), rng.normal()])
    assert not are_readable(run, draws, start, [0])
    assert are_readable(run, draws, start, [2])
    draws, run, start = draws_of(lambda data, rng: rng.normal() + rng.integers(2))
    assert not are_readable(run, draws, start, [0])


def test_levels_compose() -> None:
    """Against closed forms; a mixture from below, and above each of its parts."""
    laplace, normal = ("laplace", 0.4), ("gaussian", 0.3)
    assert compose_level(PureDP(1.0), [laplace, ("whole laplace", 0.25), ("", 0.5)]) == pytest.approx(1.15)
    assert compose_level(PureDP(1.0), [laplace, normal]) == math.inf
    assert compose_level(GaussianDP(1.0), [normal, ("gaussian", 0.4)]) == pytest.approx(0.5)
    assert compose_level(PureDP(1.0), [("laplace", 0.0)]) is None
    assert compose_level(ApproxDP(1.0, 1e-5), [("laplace", 0.1)] * 41) is None
    claim = ApproxDP(1.0, 1e-5)
    mixed = compose_level(claim, [laplace, normal])
    assert mixed is not None
    alone = [compose_level(claim, [part]) or 0.0 for part in (laplace, normal)]
    assert max(alone) < mixed <= sum(alone)
    assert compose_level(claim, [("", 0.4)]) == pytest.approx(0.4, rel=1e-3)


# ---------------------------------------------------------------- what is held against the claim, and what is not


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda data, rng: f"{data.sum() + rng.laplace(scale=10.0):.2f}", "they are no numbers, or not as many"),
        (lambda data, rng: data.sum() + rng.uniform(), "they are not linear in Laplace, Gaussian or geometric noise"),
        (lambda data, rng: np.exp((data.sum() + rng.laplace(scale=10.0)) / 9), "they are not linear in Laplace"),
        (lambda data, rng: data.sum() + rng.laplace(scale=10.0, size=401), "or it has too many variates"),
        (lambda data, rng: data.sum() + rng.laplace() + rng.laplace(), "several shifts of the noise give"),
    ],
    ids=["text", "uniform", "exponential", "many", "sum"],
)
def test_outputs_that_cannot_be_judged_are_not_said_to_be_within_the_claim(function: Program, why: str) -> None:
    found = judge(function)
    assert found.verdict == "consistent"
    assert found.message.startswith("outputs with the same variates differ, and are not held against the claim: ")
    assert why in found.message
    assert "by no more than the claim allows" not in found.message


def test_quick_targets_may_draw_hundreds_of_variates() -> None:
    found = judge(lambda data, rng: data.sum() + rng.laplace(scale=100.0, size=300))
    assert found.verdict == "violation"
    assert "in all ε = 30, claimed 1" in found.message


def test_bits_of_floats_certify_no_finding() -> None:
    # Right, though its scale follows the data; the last bits of what it returns give the datasets away.
    def smooth(data: Any, rng: Any) -> Any:
        return data.sum() + rng.laplace(scale=30.0 + data[1] / 1e3)

    assert audit(one_draw(smooth), PureDP(1.0), PAIR, draws=20_000).verdict == "violation"
    found = judge(smooth, draws=20_000)
    assert found.verdict == "deviation"
    assert "scale depends on the data" in found.message
    assert "20,000 draws did not certify it" in found.message


# ------------------------------------------------------------------------------ score of the noise


def score_of(function: Program, pair: Pair = PAIR) -> NoiseScore | None:
    with opened_runs(one_draw(function)) as runs:
        return find_score(runs, pair, 0)


def test_the_score_of_linear_noise_is_its_log_likelihood_ratio() -> None:
    def mixed(data: Any, rng: Any) -> Any:
        total, first = data.sum() + rng.laplace(scale=20.0), data[1] + rng.normal(scale=4.0)
        return {"mean": (total + first) / 2, "difference": total - first}

    score = score_of(mixed)
    assert score is not None
    total, first = np.array([10.0, 15.0, 31.0]), np.array([0.0, 3.0, -9.0])
    outputs = [{"mean": (a + b) / 2, "difference": a - b} for a, b in zip(total, first, strict=True)]
    laplace = (np.abs(total - 20.0) - np.abs(total - 10.0)) / 20.0
    normal = ((first - 10.0) ** 2 - first**2) / (2 * 4.0**2)
    np.testing.assert_allclose(score(outputs), laplace + normal, atol=1e-6)
    assert np.isnan(score([{"mean": 1.0}])).all()
    assert score.above(0.5) == "log-likelihood ratio of the noise, as replayed, > 0.5"


def test_noise_of_primitives_is_scored_by_what_it_is_added_to() -> None:
    score = score_of(lambda data, _: Folded(1.0, 5.0).randomise(data.sum()) ** 2)  # not linear: near the run only
    assert score is not None
    assert (score.on_x, score.on_y, score.scales) == ((10.0,), (20.0,), (5.0,))
    # Greater outputs are of more noise, and of the second dataset more likely.
    assert np.all(np.diff(score(np.array([100.0, 200.0, 300.0]))) <= 0)


@pytest.mark.parametrize(
    "function",
    [
        lambda data, rng: rng.laplace(scale=10.0) + 0 * data.sum(),
        lambda data, rng: rng.laplace(size=len(data) if data[1] else 1).sum(),
        lambda data, rng: str(data.sum() + rng.laplace()),
        lambda data, _: data.sum(),
        lambda data, rng: 1.0 if rng.random() < 0.5 else data.sum(),
    ],
    ids=["the same on both", "another number of draws", "no numbers", "no noise", "another distribution"],
)
def test_there_is_no_score_where_noise_does_not_tell_one(function: Program) -> None:
    assert score_of(function) is None


def test_a_loss_that_is_spread_over_many_draws_is_certified_by_its_score() -> None:
    # Ten sums of level 0.3 each, which the output mixes. Without the score four audits of 4,000 draws had lower bounds
    # of 0.32 to 0.43.
    mixing = np.random.default_rng(0).normal(size=(10, 10))

    def spread(data: Any, rng: Any) -> Any:
        return mixing @ (data.sum() + rng.laplace(scale=100.0 / 3.0, size=10))

    found = judge(spread, PureDP(1.0), draws=8_000)
    assert found.verdict == "violation"
    assert str(found.event).startswith("log-likelihood ratio of the noise, as replayed")
    assert "shift larger than the noise allows" in found.message


def test_the_score_gives_no_false_alarms() -> None:
    # At the level that the noise has exactly. Rounded to halves, so that bits of floats say nothing.
    score = score_of(lambda data, rng: data.sum() + rng.laplace(scale=10.0))
    events = []

    def exact(data: Any, n: int, rng: Any) -> Any:
        return np.round(2 * (data.sum() + rng.laplace(scale=10.0, size=n))) / 2

    def learned(_x: Any, _y: Any) -> list[Feature]:
        assert score is not None
        return [score]

    def outcomes(seed: int) -> tuple[bool]:
        result = audit(exact, PureDP(1.0), PAIR, draws=2_000, alpha=0.05, seed=seed, learners=learned)
        events.append(str(result.event))
        return (result.verdict == "violation",)

    check_rates(outcomes, "false alarms")
    assert sum(event.startswith("log-likelihood ratio of the noise") for event in events) >= len(events) / 10


@pytest.mark.parametrize(
    "function",
    [
        lambda data, rng: {"a": rng.laplace(), ("b" if data[1] else "c"): rng.laplace()},
        lambda data, rng: ("yes" if data[1] else "no", rng.laplace()),
        lambda data, rng: (None if data[1] else True, rng.laplace()),
    ],
)
def test_what_is_no_number_beside_right_noise_is_compared(function: Program) -> None:
    result = judge(function)
    assert result.verdict == "violation"
    assert "data reach the output without noise" in result.message


def test_texts_that_noise_has_chosen_are_not_accused() -> None:
    result = judge(
        lambda data, rng: ("high" if data.sum() + 100 * rng.laplace() > 15 else "low", rng.laplace()), seed=3
    )
    assert result.verdict == "consistent"
    assert "without noise" not in result.message


def test_a_target_that_raises_now_and_then_is_looked_at() -> None:
    def raises(data: Any, rng: Any) -> Any:
        noisy = data.sum() + rng.laplace(scale=20)
        if noisy > 0:
            raise ValueError
        return noisy

    def judged(seed: int) -> Any:
        return judge(raises, seed=seed).verdict

    assert {judged(seed) for seed in range(3)} <= {"consistent", "deviation"}
    with pytest.raises(TargetError, match="on both datasets"):
        judge(lambda data, rng: 1 / (0 * rng.random()))


def test_seconds_that_are_no_number_are_refused() -> None:
    with pytest.raises(SpecificationError, match="seconds must be above 0, got nan"):
        judge(lambda data, rng: rng.laplace(), seconds=float("nan"))
