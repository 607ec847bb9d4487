"""Cauchy noise for the smooth sensitivity: levels by other means, distributions against samples, catalogued figures.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed: Kolmogorov's
distance against the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from auditor.privacy.exact import CauchyLaw, curve
from experiments._points import around, index, zeros
from experiments.document_003_bellairs_lectures.sensitivity import _PRINTED, _WORST, OnUniformPoints
from mechanisms.base.mechanism import unbounded
from mechanisms.stability.median import ClippedMedian, rank, replacements
from mechanisms.stability.smooth_sensitivity import (
    MUTANTS,
    GrowingSmoothWeight,
    LocalForSmoothSensitivity,
    MaximumOverFewDistances,
    SmoothCauchy,
    SmoothLaplaceNoise,
    literature,
    printed,
    sharp,
    sharp_factor,
    worst_level,
)

MEDIAN = ClippedMedian()
FALSE_ALARM = 1e-6


def critical(n: int) -> float:
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))


def level(mechanism: SmoothCauchy, x: Any, y: Any) -> float:
    return curve(mechanism.law(np.array(x)), mechanism.law(np.array(y))).epsilon(0.0)


def largest_log_ratio(first: CauchyLaw, second: CauchyLaw) -> float:
    """Largest loss over the outputs, both ways, by search; the angle makes the line an interval."""

    def loss(angle: float, sign: float) -> float:
        z = math.tan(angle)
        densities = [law.scale / (law.scale**2 + (z - law.loc) ** 2) for law in (first, second)]
        return -sign * math.log(densities[0] / densities[1])

    grid = np.linspace(-math.pi / 2, math.pi / 2, 4001)[1:-1]
    best = 0.0
    for sign in (1.0, -1.0):
        start = grid[np.argmin([loss(float(a), sign) for a in grid])]
        found = optimize.minimize_scalar(
            loss, bounds=(start - 1e-3, start + 1e-3), args=(sign,), method="bounded", options={"xatol": 1e-12}
        )
        best = max(best, -float(found.fun))
    return best


# --------------------------------------------------------------------------- figures of the catalogue


@pytest.mark.parametrize(("c", "true"), [(2, 0.62510), (5, 0.52224), (20, 0.50142)])
def test_the_printed_parameters_lose_more_than_epsilon(c: float, true: float) -> None:
    x, y = _PRINTED
    assert level(SmoothCauchy(MEDIAN, 0.5, 0.5, c), x, y) == pytest.approx(true, abs=5e-6)
    assert level(SmoothCauchy(MEDIAN, 0.5, 0.5, 1000.0), x, y) == pytest.approx(0.5000006, abs=5e-8)


def test_the_printed_pair() -> None:
    mechanism = printed(MEDIAN, 0.5)
    laws = [mechanism.law(np.array(x)) for x in _PRINTED]
    assert (laws[0].loc, laws[1].loc) == (0.05, 0.5)
    assert [law.scale for law in laws] == pytest.approx([1.5, 0.910], abs=5e-4)
    assert laws[1].scale / laws[0].scale == pytest.approx(math.exp(-0.5), rel=1e-12)
    assert largest_log_ratio(*laws) == pytest.approx(0.62510, abs=5e-6)


def test_the_points_around_the_median_stand_for_the_small_dataset() -> None:
    mechanism = printed(MEDIAN, 0.5)
    for points in (*_PRINTED, *_WORST[0.5], *_WORST[1.0], (0.1, 0.3, 0.3, 0.35, 0.9)):
        assert mechanism.law(around(*points)) == mechanism.law(np.array(points))
    assert MEDIAN.distance(around(*zeros(70)), 0.5) == 6
    assert np.count_nonzero((around(*zeros(70)) > 0) & (around(*zeros(70)) < 1)) == 0
    assert index().size == around(0.5).size == 20_190


def test_factors_of_the_catalogue() -> None:
    assert sharp(MEDIAN, 0.5).factor == pytest.approx(2.012, abs=5e-4)
    assert sharp(MEDIAN, 1.0).factor == pytest.approx(0.960, abs=5e-4)
    for epsilon in (0.1, 0.5, 1.0):
        # "True eps only about 0.23 eps".
        assert worst_level(epsilon / 6, 6 / epsilon) / epsilon == pytest.approx(0.23, abs=0.005)


@pytest.mark.parametrize(("epsilon", "largest"), [(0.5, 0.4995), (1.0, 1.0)])
def test_largest_level_over_all_pairs_of_a_grid(epsilon: float, largest: float) -> None:
    mechanism, found = sharp(MEDIAN, epsilon), 0.0
    for rows, size in ((3, 11), (5, 5), (7, 5)):
        grid = tuple(np.linspace(0.0, 1.0, size).tolist())
        datasets = list(itertools.combinations_with_replacement(grid, rows))
        laws = {x: mechanism.law(np.array(x)) for x in datasets}
        found = max(found, *(curve(laws[x], laws[y]).epsilon(0.0) for x in datasets for y in replacements(x, grid)))
    assert found == pytest.approx(largest, abs=5e-5)
    assert found <= epsilon * (1 + 1e-12)
    assert level(mechanism, *_WORST[epsilon]) == pytest.approx(found, rel=1e-12)


def test_the_smooth_sensitivity_of_uniform_points() -> None:
    # "(0.45 to 2.4) / (n b) plus e^(-b n / 2)": medians of 1000 datasets, whose own errors are some percent.
    rng = np.random.default_rng(5)
    for rows, rate in itertools.product((101, 401, 1601), (0.05, 0.2, 1.0)):
        found = OnUniformPoints(SmoothCauchy(MEDIAN, 1.0, rate, 1.0), rows).smooth(1000, rng)
        low, high = np.quantile(found, [0.3, 0.7])  # hold the median with probability 1 - 1e-35
        assert low <= 2.4 / (rows * rate) + math.exp(-rate * rows / 2)
        assert high >= 0.45 / (rows * rate)


# --------------------------------------------------------------------------------------- the level


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_the_sharp_factor_is_the_smallest(epsilon: float, part: float) -> None:
    b = part * epsilon
    c = sharp_factor(epsilon, b)
    assert worst_level(b, c) == pytest.approx(epsilon, rel=1e-12)
    assert worst_level(b, 0.999 * c) > epsilon
    # The catalogue's form of the formula.
    form = max(1 / (2 * math.sinh(epsilon / 2)), math.sqrt(math.exp(-b) / (2 * (math.cosh(epsilon) - math.cosh(b)))))
    assert c == pytest.approx(form, rel=1e-10)


@pytest.mark.parametrize(("b", "c"), [(0.5, 2.0), (0.25, 2.012), (0.05, 0.3), (2.0, 10.0)])
def test_the_worst_level_is_the_supremum(b: float, c: float) -> None:
    form = max(2 * math.asinh(1 / (2 * c)), math.acosh(math.cosh(b) + math.exp(-b) / (2 * c * c)))
    assert worst_level(b, c) == pytest.approx(form, rel=1e-10)
    # Any scales within e^b, any answers within the smaller sensitivity; the corners attain it.
    levels = [
        curve(CauchyLaw(0.0, c), CauchyLaw(a, c * math.exp(r))).epsilon(0.0)
        for r in np.linspace(0.0, b, 21)
        for a in np.linspace(0.0, 1.0, 21)
    ]
    assert max(levels) == pytest.approx(worst_level(b, c), rel=1e-10)


def test_the_level_of_a_pair_is_its_largest_log_ratio() -> None:
    rng = np.random.default_rng(6)
    for _ in range(5):
        x = rng.random(5)
        y = x.copy()
        y[0] = rng.random()
        mechanism = sharp(MEDIAN, 1.0)
        laws = mechanism.law(x), mechanism.law(y)
        assert curve(*laws).epsilon(0.0) == pytest.approx(largest_log_ratio(*laws), rel=1e-6, abs=1e-9)


def test_no_factor_repairs_a_smoothing_parameter_of_epsilon() -> None:
    with pytest.raises(ValueError, match=r"epsilon above the smoothing parameter 0\.5, got 0\.5"):
        sharp_factor(0.5, 0.5)
    assert worst_level(0.5, 1e6) > 0.5


# ----------------------------------------------------------------------------------------- samples


@pytest.mark.parametrize("data", [np.array([0.1, 0.3, 0.9]), index()], ids=["three points", "the index"])
def test_draws_follow_the_law(data: NDArray[np.float64]) -> None:
    n, mechanism = 200_000, sharp(MEDIAN, 0.5, 2.0**-30)
    draws = np.sort(mechanism(data, n, np.random.default_rng(7)))
    assert np.all(draws / mechanism.step == np.rint(draws / mechanism.step))
    law = mechanism.law(data)
    assert law.scale == mechanism.factor * MEDIAN.smooth(data, 0.25)
    below = law.cdf(draws)
    gap = max(np.abs(below - np.arange(n) / n).max(), np.abs(below - np.arange(1, n + 1) / n).max())
    # Rounding moves a probability by at most half a step times the density.
    assert gap <= critical(n) + 0.5 * mechanism.step / (math.pi * law.scale)
    for t in (1.0, 4.0, 20.0):
        beyond = np.mean(np.abs(draws - law.loc) > t * law.scale)
        assert beyond == pytest.approx(1 - 2 / math.pi * math.atan(t), abs=2 * critical(n))


@pytest.mark.parametrize("name", ["laplace_noise", "gaussian_noise"])
def test_wrong_noise_of_the_same_scale(name: str) -> None:
    n, data = 100_000, np.array([0.1, 0.3, 0.9])
    base = sharp(MEDIAN, 0.5)
    draws = MUTANTS[name].build(base)(data, n, np.random.default_rng(8))
    family = {"laplace_noise": stats.laplace, "gaussian_noise": stats.norm}[name]
    assert stats.ks_1samp(draws, family(0.3, base.scale(data)).cdf).statistic <= critical(n) + base.step
    assert not hasattr(MUTANTS[name].build(base), "law")
    assert MUTANTS[name].true_level is unbounded


def test_laplace_noise_has_no_pure_level() -> None:
    mechanism = SmoothLaplaceNoise(MEDIAN, 0.5, 0.25, 2.012)
    laws = [stats.laplace(float(MEDIAN(np.array(x))), mechanism.scale(np.array(x))) for x in _PRINTED]
    losses = [abs(laws[0].logpdf(z) - laws[1].logpdf(z)) for z in (10.0, 100.0, 1000.0)]
    assert losses[2] > 9 * losses[1] > 81 * losses[0] > 1.0


def test_uniform_points_around_the_median_are_those_of_sorted_samples() -> None:
    n, rows, rate = 20_000, 201, 0.25
    rng = np.random.default_rng(9)
    short = OnUniformPoints(SmoothCauchy(MEDIAN, 1.0, rate, 1.0), rows)
    assert short.half < (rows - 1) // 2
    whole = MEDIAN.smoothed(np.sort(rng.random((n, rows)), axis=1), rate)
    gap = stats.ks_2samp(short.smooth(n, rng), whole).statistic
    # Two samples, each within its own critical distance of the distribution with half the false alarms.
    assert gap <= 2 * math.sqrt(math.log(4 / FALSE_ALARM) / (2 * n))
    assert rank(rows) == 101


def test_errors_on_uniform_points_are_cauchy_times_the_scale() -> None:
    n, mechanism = 50_000, sharp(MEDIAN, 0.5)
    rng = np.random.default_rng(10)
    target = OnUniformPoints(mechanism, 101)
    errors = target((), n, rng)
    noise = np.abs(rng.standard_cauchy(n)) * mechanism.factor
    gap = stats.ks_2samp(errors, noise * target.smooth(n, rng)).statistic
    assert gap <= 2 * math.sqrt(math.log(4 / FALSE_ALARM) / (2 * n))


# ----------------------------------------------------------------------------------------- mutants


def test_levels_of_mutants() -> None:
    base = sharp(MEDIAN, 0.5)
    local = MUTANTS["local_for_smooth"].build(base)
    assert isinstance(local, LocalForSmoothSensitivity)
    assert level(local, (0.4, 0.5, 0.6), (0.0, 0.5, 0.6)) == pytest.approx(math.log(5), rel=1e-12)
    few = MUTANTS["maximum_over_few_k"].build(base)
    assert isinstance(few, MaximumOverFewDistances)
    near, far = (0.49, 0.495, 0.5, 0.505, 0.51), (0.49, 0.495, 0.5, 0.505, 1.0)
    # e^-b times 0.01, against e^-b times 0.5.
    assert level(few, near, far) == pytest.approx(math.log(50), rel=1e-9)
    assert level(base, near, far) <= 0.5


def test_growing_weights_hide_everything() -> None:
    base = sharp(MEDIAN, 0.5)
    growing = MUTANTS["growing_weight"].build(base)
    assert isinstance(growing, GrowingSmoothWeight)
    x, y = (0.1, 0.2, 0.4, 0.6, 0.7), (0.9, 0.2, 0.4, 0.6, 0.7)
    for points in (x, y):
        weights = [math.exp(0.25 * k) * float(MEDIAN.most_sensitive(np.sort(points), k)) for k in range(6)]
        assert growing.sensitivity(np.array(points)) == pytest.approx(max(weights), rel=1e-12)
    assert level(growing, x, y) == pytest.approx(2 * math.asinh(0.2 / (2 * base.factor * math.exp(1.25))), rel=1e-9)
    with pytest.raises(ValueError, match=r"b n below 700 .*, got 5047\.5"):
        growing.scale(index())


def test_mistakes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"a finite epsilon > 0, got 0\.0"):
        SmoothCauchy(MEDIAN, 0.0, 0.1, 1.0)
    with pytest.raises(ValueError, match=r"a finite smoothing > 0, got -1\.0"):
        SmoothCauchy(MEDIAN, 1.0, -1.0, 1.0)
    with pytest.raises(ValueError, match="a finite factor > 0, got inf"):
        SmoothCauchy(MEDIAN, 1.0, 0.1, math.inf)
    with pytest.raises(ValueError, match=r"a power of two as step, got 0\.3"):
        SmoothCauchy(MEDIAN, 1.0, 0.1, 1.0, 0.3)
    with pytest.raises(ValueError, match="an odd number of rows, got 100"):
        OnUniformPoints(sharp(MEDIAN, 1.0), 100)
    assert literature(MEDIAN, 0.6).smoothing == pytest.approx(0.1)
