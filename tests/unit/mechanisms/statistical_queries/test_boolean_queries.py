"""A real query asked as boolean ones: its digits, its largest error, and its mutants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from mechanisms.statistical_queries.boolean_queries import MUTANTS, BooleanQueries
from mechanisms.statistical_queries.sq_oracles import (
    ExactOracle,
    HighestAnswersOracle,
    LowestAnswersOracle,
    valid_oracles,
)

#: The catalogue's example.
B, TAU = 3.0, 0.05
UNUSED = np.random.default_rng(0)


def plain_digits(u: Fraction, count: int) -> list[int]:
    """Binary digits of u in [0, 1], one doubling at a time; of 1 they are ones."""
    digits = []
    for _ in range(count):
        u *= 2
        digits.append(int(u >= 1))
        u -= digits[-1]
    return digits if u < 1 else [1] * count


def test_the_example_of_the_catalogue() -> None:
    worst = BooleanQueries(B, TAU, LowestAnswersOracle())
    assert worst.queries == 8
    assert worst.each == pytest.approx(TAU / 6)
    attained = B - worst(np.array([B]), 1, UNUSED)[0]
    assert attained == pytest.approx(worst.largest_error, rel=1e-12)
    assert attained == pytest.approx(0.0483, abs=5e-5)


@pytest.mark.parametrize("bound", [1.0, 3.0])
def test_digits_are_those_of_long_division(bound: float) -> None:
    queries = BooleanQueries(bound, 0.05, ExactOracle())
    for g in np.linspace(-bound, bound, 97).tolist():
        u = Fraction((g + bound) / (2 * bound))
        expected = 2.0 * np.array(plain_digits(u, queries.queries)) - 1
        assert queries.expectations([g]).tolist() == expected.tolist()
    assert queries.expectations([bound]).tolist() == [1.0] * queries.queries


def test_an_expectation_is_the_mean_over_the_values() -> None:
    values = np.random.default_rng(1).uniform(-B, B, 50)
    queries = BooleanQueries(B, TAU, ExactOracle())
    single = np.array([queries.expectations([g]) for g in values])
    assert queries.expectations(values) == pytest.approx(single.mean(axis=0))


class Pattern:
    """Answers off by given parts of the tolerance."""

    def __init__(self, parts: ArrayLike) -> None:
        self.parts = np.asarray(parts, dtype=np.float64)

    def __call__(
        self, truth: NDArray[np.float64], tolerance: ArrayLike, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        del rng
        answers: NDArray[np.float64] = truth + self.parts * np.asarray(tolerance)
        return answers


@pytest.mark.parametrize(("bound", "tau"), [(B, 0.4), (1.0, 0.3), (0.5, 0.07)])
def test_no_answers_are_worse_than_stated(bound: float, tau: float) -> None:
    """The error is linear in the answers, so its largest value is at a corner of what they may be."""
    stated = BooleanQueries(bound, tau, ExactOracle()).largest_error
    count = BooleanQueries(bound, tau, ExactOracle()).queries
    values, worst = np.linspace(-bound, bound, 61), 0.0
    for corner in itertools.product([-1, 1], repeat=count):
        queries = BooleanQueries(bound, tau, Pattern(corner))
        for g in values:
            worst = max(worst, abs(float(queries([g], 1, UNUSED)[0]) - g))
    assert worst <= stated * (1 + 1e-12)
    assert worst == pytest.approx(stated, rel=1e-9)
    assert stated <= tau


@pytest.mark.parametrize("bound", [0.5, 1.0, 3.0, 1000.0])
@pytest.mark.parametrize("tau", [0.9, 0.5, 0.1, 1e-3, 1e-6])
def test_the_stated_error_is_within_the_tolerance(bound: float, tau: float) -> None:
    queries = BooleanQueries(bound, tau, ExactOracle())
    assert queries.largest_error <= tau
    assert queries.queries < math.log2(bound / tau) + 3


def test_real_values_under_every_oracle() -> None:
    rng = np.random.default_rng(2)
    values = rng.uniform(-B, B, 200)
    for oracle in valid_oracles().values():
        found = BooleanQueries(B, TAU, oracle)(values, 20, rng)
        assert found.shape == (20,)
        assert np.all(np.abs(found - values.mean()) <= TAU)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("tolerance_tau_per_bit", B * TAU * (1 - 2**-8) + 6 / 2**8),
        ("one_bit_too_few", TAU / 2 * (1 - 2**-7) + 6 / 2**7),
        ("floor_at_one", 6 + TAU / 2 * (1 - 2**-8)),
    ],
)
def test_errors_of_the_mutants(name: str, error: float) -> None:
    found = MUTANTS[name].build(BooleanQueries(B, TAU, LowestAnswersOracle()))(np.array([B]), 1, UNUSED)[0]
    assert B - found == pytest.approx(error, rel=1e-9)
    assert error > TAU


def test_the_floor_of_one_is_wrong_at_one_only() -> None:
    values = np.array([-B, 0.0, 1.2345, 2.999])
    right, wrong = (
        BooleanQueries(B, TAU, HighestAnswersOracle()),
        MUTANTS["floor_at_one"].build(BooleanQueries(B, TAU, HighestAnswersOracle())),
    )
    assert wrong(values, 1, UNUSED) == right(values, 1, UNUSED)


def test_errors_show_the_value() -> None:
    with pytest.raises(ValueError, match=r"expected a finite bound > 0, got 0"):
        BooleanQueries(0.0, 0.1, ExactOracle())
    with pytest.raises(ValueError, match=r"expected a tolerance in \(0, 2\.0\), got 2\.0"):
        BooleanQueries(1.0, 2.0, ExactOracle())
    with pytest.raises(ValueError, match=r"expected a tolerance that takes at most 52 queries, got 1e-16"):
        BooleanQueries(1.0, 1e-16, ExactOracle())
    with pytest.raises(ValueError, match=r"expected values in \[-1\.0, 1\.0\], got .*1\.5"):
        BooleanQueries(1.0, 0.1, ExactOracle())(np.array([1.5]), 1, UNUSED)
    with pytest.raises(ValueError, match=r"expected at least one value, shape \(values,\), got \(0,\)"):
        BooleanQueries(1.0, 0.1, ExactOracle())(np.zeros(0), 1, UNUSED)
