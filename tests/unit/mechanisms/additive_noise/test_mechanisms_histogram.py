"""Histograms under both relations, and a sum with its number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special

from auditor.privacy.exact import curve
from mechanisms.additive_noise.gaussian import analytic_mu
from mechanisms.additive_noise.histogram import MUTANTS, SumAndSize, gaussian_histogram, laplace_histogram
from mechanisms.base.queries import ClippedSum, Histogram

CELLS = Histogram(categories=(0, 1, 2))
UNDER_ADDING = replace(CELLS, relation="add_remove_one")
#: One row more, and one row in another cell.
ADDED = ([0, 0, 1], [0, 0, 1, 2])
REPLACED = ([0, 0, 1], [0, 0, 2])


def level(mechanism: Any, pair: tuple[list[int], list[int]], delta: float = 0.0) -> float:
    return curve(mechanism.law(pair[0]), mechanism.law(pair[1])).epsilon(delta)


def test_laplace_histograms_attain_their_level_under_their_own_relation() -> None:
    assert level(laplace_histogram(UNDER_ADDING, 0.8), ADDED) == pytest.approx(0.8, rel=1e-12)
    assert level(laplace_histogram(CELLS, 0.8), REPLACED) == pytest.approx(0.8, rel=1e-12)
    # Calibrated for one relation and used under the other: a factor of two, either way.
    assert level(laplace_histogram(UNDER_ADDING, 0.8), REPLACED) == pytest.approx(1.6, rel=1e-12)
    assert level(laplace_histogram(CELLS, 0.8), ADDED) == pytest.approx(0.4, rel=1e-12)


def test_gaussian_histograms_differ_by_the_root_of_two() -> None:
    adding, replacing = gaussian_histogram(UNDER_ADDING, 1.0, 1e-3), gaussian_histogram(CELLS, 1.0, 1e-3)
    mu = analytic_mu(1.0, 1e-3)
    # In lattice steps of 1; sigma is above 2, where the lattice costs less than 1 / (16 sigma^2).
    assert adding.sigma(3) == pytest.approx(1 / mu, rel=mu**2 / 16)
    assert replacing.sigma(3) == pytest.approx(math.sqrt(2) / mu, rel=mu**2 / 32)
    for mechanism, pair in ((adding, ADDED), (replacing, REPLACED)):
        assert level(mechanism, pair, 1e-3) <= 1.0
        # Losses are on a lattice: the level steps, and falls short of the continuous one by less than a tenth.
        assert level(mechanism, pair, 1e-3) > 0.9
    assert level(adding, REPLACED, 1e-3) > 1.3
    assert level(replacing, ADDED, 1e-3) < 0.8


def test_a_replaced_row_moves_a_gaussian_histogram_as_summation_says() -> None:
    # Independent of the library's curves: the loss is (s^2 + s (Y - X)) / sigma^2 with s = 1, for independent X and Y.
    mechanism = gaussian_histogram(CELLS, 1.0, 1e-3)
    sigma = mechanism.sigma(3)
    k = np.arange(-80, 81)
    p = np.exp(-0.5 * (k / sigma) ** 2)
    p /= p.sum()
    assert 15 * sigma < 80
    difference = np.convolve(p, p)  # of -160..160
    loss = (1.0 + np.arange(-160, 161)) / sigma**2
    above = loss > 1.0
    delta = float((difference[above] * -np.expm1(1.0 - loss[above])).sum())
    pair = curve(mechanism.law(REPLACED[0]), mechanism.law(REPLACED[1]))
    assert pair.delta(1.0) == pytest.approx(delta, rel=1e-9)
    assert delta <= 1e-3
    # And below the delta of the Gaussian with the same mu.
    mu = mechanism.plain(3).mu(3)
    assert delta <= special.ndtr(mu / 2 - 1 / mu) - math.e * special.ndtr(-mu / 2 - 1 / mu)


TOTAL = ClippedSum(low=0.0, high=4.0, relation="add_remove_one", resolution=1.0)


def test_sum_and_size_are_at_their_level_together() -> None:
    base = SumAndSize(TOTAL, 1.2)
    assert level(base, ([1], [1, 4])) == pytest.approx(1.2, rel=1e-12)  # both move fully
    assert level(base, ([1], [1, 0])) == pytest.approx(0.6, rel=1e-12)  # only the number of rows does
    outputs = base([1, 4], 2000, np.random.default_rng(3))
    assert outputs.shape == (2000, 2)
    # Standard deviations sqrt 2 times 4 / 0.6 and 1 / 0.6: the means are within 7 of their standard errors, 1e-11 each.
    errors = np.abs(outputs.mean(axis=0) - [5.0, 2.0]) / (np.sqrt(2.0 / 2000) * np.array([4.0, 1.0]) / 0.6)
    assert errors.max() < 7


def test_a_public_size_is_fine_under_replace_only() -> None:
    base = SumAndSize(TOTAL, 1.2)
    mutant: Any = MUTANTS["public_n_under_add_remove"].build(base)
    assert level(mutant, ([1], [1, 4])) == math.inf
    assert level(mutant, ([1, 0], [1, 4])) == pytest.approx(1.2, rel=1e-12)
    assert set(mutant([1, 4], 50, np.random.default_rng(4))[:, 1].tolist()) == {2.0}


@pytest.mark.parametrize(
    "build",
    [
        lambda: laplace_histogram(CELLS, 0.0),
        lambda: gaussian_histogram(CELLS, 1.0, 0.0),
        lambda: SumAndSize(TOTAL, 0.0),
        lambda: SumAndSize(replace(TOTAL, relation="replace_one"), 1.0),
        lambda: SumAndSize(TOTAL, 1.0, 0.3),
        lambda: SumAndSize(TOTAL, 1.0)([1], 0, np.random.default_rng(0)),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        build()
