"""Sizes on which a target changes what it does: found by bisection, with bounded work, on draws of the search's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from auditor.audits.size_thresholds import (
    DRAWS,
    MOST_SIZES,
    find_thresholds,
    ladder_of,
    sizes_of_interest,
    summarise_behaviour,
)
from auditor.errors import SpecificationError, TargetError, TargetRaised
from auditor.targets.outputs import Raised, Typed
from auditor.targets.sampler import Sampler, make_generator


class Counting:
    """A target that counts its calls and notes the rows of each and the first number of its generator."""

    def __init__(self, mechanism: Callable[[Any, np.random.Generator], Any]) -> None:
        self.mechanism, self.rows, self.first = mechanism, list[int](), list[int]()

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> list[Any]:
        assert n == 1
        self.rows.append(len(data))
        self.first.append(int(rng.integers(2**62)))
        return [self.mechanism(data, rng)]


def interesting(mechanism: Callable[[Any, np.random.Generator], Any], rows: int, **options: Any) -> tuple[int, ...]:
    return sizes_of_interest(Sampler(Counting(mechanism), 0, "test"), [0, 1], rows, **options)


def noisy(data: Any, rng: np.random.Generator) -> float:
    return float(np.sum(data) + rng.laplace())


def raises_below(size: int, data: Any, rng: np.random.Generator) -> float:
    if len(data) < size:
        raise ValueError("too few")
    return noisy(data, rng)


# ------------------------------------------------------------------------------- thresholds

CHANGES: dict[str, Callable[[int, Any, np.random.Generator], Any]] = {
    "raises": raises_below,
    "None": lambda size, data, rng: None if len(data) < size else noisy(data, rng),
    "NaN": lambda size, data, rng: float("nan") if len(data) < size else noisy(data, rng),
    "always zero": lambda size, data, rng: 0.0 if len(data) < size else noisy(data, rng),
    "a text": lambda size, data, rng: "suppressed" if len(data) < size else "a" if rng.random() < 0.5 else "b",
    "whole numbers": lambda size, data, rng: float(round(noisy(data, rng))) if len(data) < size else noisy(data, rng),
    "length": lambda size, data, rng: [noisy(data, rng)] * (3 + (len(data) >= size)),
    "a key": lambda size, data, rng: {"n": 1.0} | ({"sd": rng.random()} if len(data) >= size else {}),
    "type": lambda size, data, rng: int(rng.integers(9)) if len(data) < size else str(rng.integers(9)),
    "inside": lambda size, data, rng: (rng.random(), None if len(data) < size else rng.random()),
    "constant": lambda size, data, rng: 0.25 if len(data) < size else noisy(data, rng),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("size", [1, 2, 23, 64, 100])
def test_one_change_is_found_exactly(change: str, size: int) -> None:
    # That 24 draws of a fair coin on one size agree, and those on another disagree with them, has probability 2^-47.
    assert interesting(lambda data, rng: CHANGES[change](size, data, rng), 100, draws=24) == (size,)


def test_several_changes_are_found() -> None:
    def target(data: Any, rng: np.random.Generator) -> Any:
        return raises_below(3, data, rng) if len(data) < 50 else [noisy(data, rng)]

    assert interesting(target, 200) == (3, 50)


def test_an_ordinary_target_and_one_whose_length_is_that_of_the_data_have_none() -> None:
    assert interesting(noisy, 1_000) == ()
    assert interesting(lambda data, rng: [noisy(data, rng) for _ in data], 100) == (1,)  # none has no elements


def test_what_is_random_on_all_sizes_is_no_change() -> None:
    def target(data: Any, rng: np.random.Generator) -> Any:
        kind = rng.integers(5)
        if kind == 0:
            raise KeyError("at random")
        return [None, float("nan"), [0.0] * int(rng.integers(4)), int(rng.random() < 0.9)][kind - 1]

    # No property here that some outputs have and some have not has a probability above 1/5, or below 4/5, that all 24
    # draws on a size agree on it and those on another on the contrary one below 1e-16.
    assert interesting(target, 500, draws=24) == ()


def test_sizes_below_the_least_are_not_asked_for() -> None:
    target = Counting(lambda data, rng: raises_below(9, data, rng))
    assert sizes_of_interest(Sampler(target, 0, "test"), [0, 1], 30, least=5) == (9,)
    assert min(target.rows) == 5
    assert max(target.rows) == 30


# ---------------------------------------------------------------------------------- budgets


def test_the_work_is_bounded_whatever_the_target_does() -> None:
    target = Counting(lambda data, rng: f"{len(data)} rows")  # another behaviour on every size
    found = sizes_of_interest(Sampler(target, 0, "test"), [0, 1], 100_000)
    assert len(target.rows) <= DRAWS * MOST_SIZES
    assert found
    usual = Counting(noisy)
    sizes_of_interest(Sampler(usual, 0, "test"), [0, 1], 10)
    assert len(usual.rows) == DRAWS * len([0, 1, 2, 4, 8, 10])


def test_the_draws_are_one_a_call_and_no_evidence() -> None:
    target = Counting(noisy)
    sizes_of_interest(Sampler(target, 3, "claim"), [0, 1], 20)
    assert len(set(target.first)) == len(target.first)
    # Evidence is keyed by (pair, side, chunk); an equal first number has probability 2^-62.
    evidence = {
        int(make_generator(3, "claim", k, s, c).integers(2**62)) for k in range(9) for s in "xy" for c in range(9)
    }
    assert not evidence & set(target.first)
    again = Counting(noisy)
    sizes_of_interest(Sampler(again, 3, "claim"), [0, 1], 20)
    assert again.first == target.first


# ----------------------------------------------------------------------------------- errors


def test_an_exception_is_an_outcome_however_the_sampler_says_it_and_a_crash_is_none() -> None:
    class Says:
        """A sampler that gives exceptions as outputs, raises them, or finds the target dead."""

        def __init__(self, how: str) -> None:
            self.how = how

        def draw(self, data: Any, n: int, *key: Any) -> Any:
            if len(data) >= 6:
                return np.zeros(n)
            if self.how == "output":
                return [Raised("ValueError")]
            raise TargetRaised("ValueError", "raised") if self.how == "raises" else TargetError("died")

    says: Callable[[str], Any] = Says
    assert sizes_of_interest(says("output"), [0, 1], 10) == sizes_of_interest(says("raises"), [0, 1], 10) == (6,)
    with pytest.raises(TargetError, match="died"):
        sizes_of_interest(says("dies"), [0, 1], 10)


@pytest.mark.parametrize("change", [{"rows": 0}, {"rows": 2.5}, {"least": -1}, {"draws": 1}, {"values": [1]}], ids=repr)
def test_a_bad_argument_is_refused_with_its_value(change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"values": [0, 1], "rows": 10} | change
    with pytest.raises(SpecificationError) as caught:
        sizes_of_interest(Sampler(Counting(noisy), 0, "test"), **options)
    assert str(next(iter(change.values()))) in str(caught.value)


# ------------------------------------------------------------------------------- signatures


def test_signatures_are_hashable_and_equal_for_equal_outputs() -> None:
    outputs = [1.5, float("nan"), None, {"a": [1, 2]}, b"xy", Raised("KeyError"), Typed("numpy.float32", 1.0), {3}]
    assert hash(summarise_behaviour(outputs, 2)) == hash(summarise_behaviour(list(outputs), 2))
    assert summarise_behaviour(outputs, 2) == summarise_behaviour(list(outputs), 2)
    assert not summarise_behaviour([], 2).differs(summarise_behaviour([], 3))


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ([1.5] * 4, [2.5] * 4, False),
        ([1.5, 2.5, 3.5], [0.5] * 3, True),
        ([1.5, 2.5, 2.5], [0.5] * 3, False),  # constant by chance
        ([1.5, float("nan")], [float("nan"), 2.5], False),
        ([1.5, 2.5], [float("inf"), float("-inf")], True),
        ([Raised("KeyError")] * 2, [Raised("ValueError")] * 2, True),
        ([Typed("numpy.float32", 1.5), Typed("numpy.float32", 2.5)], [1.5, 2.5], True),
        ([[0.5, 1.5], [1.5, 0.5]], [[0.5, 1.5, 0.5], [1.5, 0.5, 0.5]], False),  # as long as the dataset
        ([[0.5], [1.5]], [[0.5, 1.5], [1.5, 0.5]], True),
        ([[0.5, 1.5], [1.5, 0.5]], [[0.5, 1.5, 0.5, 2.5], [1.5, 0.5, 0.5, 2.5]], True),
        ([[0.5, 1.5], [1.5, 0.5]], [[0.5, 2.5], [1.5, 3.5]], False),
        ([{"a": 1}, {"a": 2}], [{"b": 1}, {"b": 2}], True),
    ],
    ids=repr,
)
def test_what_counts_as_another_behaviour(a: list[Any], b: list[Any], differ: bool) -> None:
    assert summarise_behaviour(a, 2).differs(summarise_behaviour(b, 3)) is differ
    assert summarise_behaviour(b, 3).differs(summarise_behaviour(a, 2)) is differ


def test_thresholds_between_sizes_of_ones_own() -> None:
    assert find_thresholds(lambda size: [size > 17] * 3, [0, 100]) == [18]
    assert find_thresholds(lambda size: [0] * 3, [5]) == []
    assert find_thresholds(lambda size: [0] * 3, []) == []


def test_the_ladder() -> None:
    assert ladder_of(10) == [0, 1, 2, 4, 8, 10]
    assert ladder_of(16, 3) == [3, 4, 8, 16]
    assert ladder_of(1) == [0, 1]
    assert ladder_of(2, 3) == []
