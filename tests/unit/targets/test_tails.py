"""Targets that go silent or repeat themselves have no pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor import Pair, PureDP, audit, one_draw
from auditor.targets.tails import Tails, _Draws


@pytest.mark.parametrize("then", ["raised RuntimeError", "None", "nan"])
def test_a_spent_budget_is_no_pass(then: str) -> None:
    asked = 0

    def spend(data: Any, rng: np.random.Generator) -> Any:
        nonlocal asked
        asked += 1
        if asked <= 50:
            return float(data[0])
        if then == "raised RuntimeError":
            raise RuntimeError
        return None if then == "None" else np.nan

    result = audit(one_draw(spend), PureDP(1.0), Pair(np.array([0]), np.array([1])), draws=4_000)
    assert result.verdict == "inconclusive"
    assert f"after the first 50 draws were {then}" in result.message


@pytest.mark.parametrize("rare", [0.5, 0.02, 0.0])
def test_independent_draws_are_not_silent(rare: float) -> None:
    rng, tails, data = np.random.default_rng(0), Tails(), [object() for _ in range(50)]
    for call, n in enumerate((1, 8, 60, 400)):
        for one in data:
            tails.add(one, (rng.random(n) < rare).astype(int), call)
            assert not tails.describe(False)


def test_the_output_of_private_data_is_not_shown() -> None:
    tails, data = Tails(), object()
    tails.add(data, np.arange(20), 0)
    tails.add(data, np.full(5_000, 77), 1)
    assert "5,000 in number" in tails.describe(True)
    assert "77" in tails.describe(False)
    assert "77" not in tails.describe(True)


def test_a_target_that_keeps_its_first_answer_passes_with_a_note() -> None:
    answers: list[float] = []

    def keep(data: Any, rng: np.random.Generator) -> float:
        if not answers:
            answers.append(float(data[0] + rng.laplace()))
        return answers[0]

    pair = Pair(np.array([0]), np.array([1]))
    result = audit(one_draw(keep), PureDP(1.0), pair, draws=4_000, detect=5.0)
    assert result.verdict == "consistent"
    assert "on every dataset; so does a target that keeps its first answer" in result.message


def test_outputs_of_which_one_differs_are_not_constant() -> None:
    tails, data = Tails(), [object(), object()]
    assert not tails.describe_constant(False)
    for one in data:
        tails.add(one, np.zeros(5), 0)
    assert "all 10 draws gave 0" in tails.describe_constant(False)
    assert "all 10 draws gave one and the same output" in tails.describe_constant(True)
    tails.add(data[1], np.array([0.0, 1.0, 0.0]), 1)
    assert not tails.describe_constant(False)


@pytest.mark.parametrize("coins", [0.5, 0.9])
def test_a_call_that_begins_as_another_one_is_no_pass(coins: float) -> None:
    """A service whose seeds are few: right answers, of which the later ones are those of before."""

    def serve(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.where(np.random.default_rng(rng.integers(8)).random(n) < coins, 1, 0)

    pair = Pair(np.array([0]), np.array([1]))
    result = audit(serve, PureDP(1.0), pair, draws=8_000, detect=5.0)
    assert result.verdict in ("inconclusive", "deviation")
    assert "not independent" in result.message
    right = audit(lambda d, n, rng: 1 * (rng.random(n) < coins), PureDP(1.0), pair, draws=8_000, detect=5.0)
    assert right.verdict == "consistent"


def test_the_order_of_exchangeable_draws_repeats_no_more_often_than_it_may() -> None:
    """At a level of 1e-2 rather than 1e-7: rare ones, whose order is likely, and those that hardly ever agree."""
    rng, repeats = np.random.default_rng(0), 0
    for trial in range(2_000):
        draws = _Draws(None)
        for call in range(6):
            draws.add((rng.random(16) < 0.12).astype(int), call)
        repeats += draws.repeated > 0 and draws.repeat + math.log(math.comb(draws.calls, 2)) < math.log(1e-2)
        assert not draws.repeats, trial
    assert repeats <= stats.binom.ppf(0.999, 2_000, 1e-2)


def test_the_same_call_again_is_no_repetition() -> None:
    draws = _Draws(None)
    for call in ("first", "second", "first"):
        draws.add(np.arange(40.0) + (call == "second"), call)
    assert not draws.repeats
    draws.add(np.arange(40.0), "third")
    assert draws.repeats
