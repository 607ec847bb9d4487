"""Conventions of a mechanism: what keeps them passes, and each that is broken is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import dpaudit
from auditor.errors import SpecificationError
from mechanisms.additive_noise.geometric import MUTANTS, TwoSidedGeometric
from mechanisms.base.queries import Count

ROWS = np.array([0.0, 1.0, 1.0])
REFERENCE = TwoSidedGeometric(Count(), 2.0)


def noise(data: Any, n: int, rng: np.random.Generator) -> Any:
    return rng.geometric(0.5, n) + len(data)


@dataclass
class Growing:
    """Keeps state from call to call."""

    calls: list[int] = field(default_factory=list)

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        self.calls.append(n)
        return rng.normal(len(self.calls), 1, n)


@dataclass
class Unpickled:
    """Loses what it draws from on the way to a worker."""

    scale: float = 1.0

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return rng.normal(0, self.scale, n)

    def __reduce__(self) -> Any:
        return Unpickled, (2.0,)


@dataclass
class Unsendable:
    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return rng.normal(0, 1, n)

    def __reduce__(self) -> Any:
        raise TypeError("holds a socket")


def with_global(data: Any, n: int, rng: np.random.Generator) -> Any:
    return rng.normal(0, 1, n) + 0 * np.random.rand()  # noqa: NPY002 - what is looked for


def with_random(data: Any, n: int, rng: np.random.Generator) -> Any:
    return [random.random() for _ in range(n)]


def in_place(data: Any, n: int, rng: np.random.Generator) -> Any:
    data += 1
    return rng.normal(0, 1, n)


def fixed(data: Any, n: int, rng: np.random.Generator) -> Any:
    return np.random.default_rng(0).integers(0, 2, n)


def raising(data: Any, n: int, rng: np.random.Generator) -> Any:
    raise KeyError("epsilon")


BROKEN: list[tuple[Callable[..., Any], str]] = [
    (lambda data, n, rng: rng.normal(0, 1, n + 1), "65"),
    (lambda data, n, rng: rng.normal(0, 1, n).astype(np.float32 if n == 1 else float), "float32 of shape ()"),
    (lambda data, n, rng: rng.normal(0, 1, (n, 2) if n > 1 else n), "float64 of shape (2,)"),
    (in_place, "it changes the dataset"),
    (with_global, "uses or sets a global generator"),
    (with_random, "uses or sets a global generator"),
    (Growing(), "other outputs in a later call"),
    (Unpickled(), "a copy, as a worker process gets it"),
    (Unsendable(), "cannot be sent to a worker process: TypeError: holds a socket"),
    (fixed, "other generators give the same outputs"),
    (raising, "it raises KeyError: 'epsilon'"),
]


@pytest.mark.parametrize(
    "target",
    [
        REFERENCE,
        noise,
        lambda data, n, rng: np.zeros(n),
        lambda data, n, rng: [[0.5] * k for k in rng.integers(1, 4, n)],
        dpaudit.one_draw(lambda data, rng: {"answer": rng.normal()}),
    ],
)
def test_targets_that_keep_the_conventions_pass(target: Any) -> None:
    dpaudit.check_mechanism(target, ROWS, ROWS[:2])


@pytest.mark.parametrize(("target", "said"), BROKEN)
def test_a_convention_that_is_broken_is_named(target: Any, said: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        dpaudit.check_mechanism(target, ROWS.copy())
    assert said in str(caught.value)
    assert "\non " in str(caught.value)


def test_draws_are_held_against_the_stated_law() -> None:
    @dataclass(frozen=True)
    class Misstated:
        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
            return MUTANTS["one_sided"].build(REFERENCE)(data, n, rng)

        def law(self, data: Any) -> Any:
            return REFERENCE.law(data)

    with pytest.raises(SpecificationError, match="its draws against its stated distribution"):
        dpaudit.check_mechanism(Misstated(), ROWS)
    dpaudit.check_mechanism(Misstated(), ROWS, draws=0)


def test_a_target_with_randomness_of_its_own_is_not_asked_for_equal_draws() -> None:
    with pytest.raises(SpecificationError, match="seeded=False"):
        dpaudit.check_mechanism(lambda data, n, rng: np.random.default_rng().normal(0, 1, n), ROWS)
    dpaudit.check_mechanism(lambda data, n, rng: np.random.default_rng().normal(0, 1, n), ROWS, seeded=False)


def test_bad_arguments_are_shown() -> None:
    with pytest.raises(SpecificationError, match="at least one dataset"):
        dpaudit.check_mechanism(noise)
    with pytest.raises(SpecificationError, match="got 3"):
        dpaudit.check_mechanism(3, ROWS)  # type: ignore[arg-type]
