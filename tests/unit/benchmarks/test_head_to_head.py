"""The benchmark beside other sequential auditors: its mechanisms, claims and oracles are what they are stated to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.head_to_head import (
    EMPTY,
    LeakingMean,
    Noise,
    PrivateMean,
    describe_oracle,
    laplace_curve,
    leaking_case,
    report,
)


@pytest.mark.parametrize("noise", ["Gaussian", "Laplace"])
@pytest.mark.parametrize("data", [EMPTY.x, EMPTY.y])
def test_a_leaking_mean_has_its_distribution(noise: Noise, data: np.ndarray) -> None:
    mechanism = LeakingMean(noise, 0.1)
    draws = mechanism(data, 20_000, np.random.default_rng(1))
    assert stats.kstest(mechanism.cdf(data, draws), "uniform").pvalue > 1e-6


def test_a_private_mean_keeps_its_claim_where_numbers_are_exact() -> None:
    """The sum's and the number's Laplace noise move by at most one unit of scale 2 / epsilon each."""
    draws = [PrivateMean("Laplace", 1.0)(data, 200_000, np.random.default_rng(2)) for data in (EMPTY.x, EMPTY.y)]
    for cut in np.linspace(-5, 5, 21):
        for event in (np.less_equal, np.greater):
            low, high = sorted(int(event(side, cut).sum()) for side in draws)
            # Given the sum of both counts the larger one is binomial with at most e / (1 + e); 42 events in all.
            assert stats.binom.sf(high - 1, low + high, math.e / (1 + math.e)) > 1e-6 / 42


def test_oracles_are_those_of_the_review() -> None:
    """16 / 22 and 28 / 40 draws, computed there by other code from half lines of the absolute value."""
    assert describe_oracle(leaking_case("Gaussian", 0.01)) == "16 / 22"
    whole, best = describe_oracle(leaking_case("Laplace", 0.01)).split(" / ")
    assert (whole, abs(int(best) - 40) <= 1) == ("28", True)


def test_the_curve_of_laplace_noise_is_its_closed_form() -> None:
    """1 - e^s a for small a, by the density ratio e^s of the tails."""
    curve = laplace_curve(0.5)
    alpha, beta = np.array(curve.alpha), np.array(curve.beta)
    tail = alpha < 0.5 * np.exp(-0.5)
    assert (beta[tail] <= 1 - np.exp(0.5) * alpha[tail] + 1e-12).all()
    assert np.abs(beta[tail] - (1 - np.exp(0.5) * alpha[tail])).max() < 1e-3


def test_a_row_is_made() -> None:
    *_, row = report(2, 1, 1, "Gaussian, true mu 1, claimed 0.5")
    assert row.startswith("| Gaussian, true mu 1, claimed 0.5 | ")
    assert row.endswith(" | 188 | 160 | 330 |")
