"""k counting queries: calibration, distributions, levels, errors and capacities, against other computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from auditor.privacy.exact import TwoSidedGeometricLaw, advanced_composition, curve, optimal_composition
from mechanisms.base.queries import Count, IdentityQuery, SeveralCounts
from mechanisms.query_release.counting_queries import (
    MUTANTS,
    BudgetOverSquareRootOnly,
    CountingQueries,
    LargestSensitivity,
    SameNoiseForAllCounts,
    ThresholdCounts,
    advanced_epsilon,
    any_of,
    beyond,
    capacity,
    spread_cuts,
    stated_capacity,
)

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

DATA = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 5.0, 9.0, 9.0])
MOVED = np.array([9.0, 0.0, 1.0, 2.0, 2.0, 5.0, 9.0, 9.0])


def same(k: int) -> ThresholdCounts:
    return ThresholdCounts(None, (1.0,) * k)


def harmonic(k: int) -> float:
    return math.fsum(1 / i for i in range(1, k + 1))


# ----------------------------------------------------------------------------------- queries


def test_threshold_counts_are_those_of_a_loop() -> None:
    cuts = (0.0, 0.5, 2.0, 9.0, 9.5, 2.0)
    found = ThresholdCounts(None, cuts)(DATA)
    assert found.tolist() == [sum(value >= cut for value in DATA) for cut in cuts]
    assert found.tolist() == SeveralCounts(tuple(Count(None, low=cut) for cut in cuts))(DATA).tolist()


def test_a_row_from_below_all_cuts_to_above_moves_every_count() -> None:
    query = spread_cuts(None, 0.0, 9.0, 7)
    assert len(set(query.cuts)) == 7
    assert query.cuts[-1] == 9.0
    assert (query(MOVED) - query(DATA)).tolist() == [1.0] * 7
    assert query.sensitivity == 7


# ------------------------------------------------------------------------------- calibration


@pytest.mark.parametrize("k", [1, 10, 100, 10_000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_advanced_calibration_solves_a11(k: int, epsilon: float) -> None:
    delta = 1e-5
    found = advanced_epsilon(epsilon, k, delta)

    def a11(e: float) -> float:
        return e * math.sqrt(2 * k * math.log(1 / delta)) + k * e * math.tanh(e / 2)

    assert found == pytest.approx(optimize.brentq(lambda e: a11(e) - epsilon, 0, epsilon, xtol=1e-15), rel=1e-9)
    assert advanced_composition(found, k, delta)[0] <= epsilon
    mechanism = CountingQueries(same(k), 8, epsilon, delta)
    # On the integers k answers that all move are k-fold randomised response, which A11 never falls short of.
    exact = mechanism.exact_epsilon(delta)
    assert exact <= epsilon
    assert exact == pytest.approx(optimal_composition(math.log1p(mechanism.base - 1), k).epsilon(delta), rel=1e-9)


def test_pure_calibration_is_basic_composition() -> None:
    mechanism = CountingQueries(same(5), 8, 1.0)
    assert mechanism.scale == pytest.approx(5 / 8, rel=1e-9)  # k / (eps n)
    assert curve(mechanism.law(DATA), mechanism.law(MOVED)).epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    assert mechanism.exact_epsilon(0.0) <= 1.0 + 1e-12


def test_the_worst_pair_of_the_law_is_the_exact_level() -> None:
    mechanism = CountingQueries(same(30), 8, 1.0, 1e-5)
    assert curve(mechanism.law(DATA), mechanism.law(MOVED)).epsilon(1e-5) == pytest.approx(
        mechanism.exact_epsilon(1e-5), rel=1e-9
    )


# --------------------------------------------------------------------------------------- distribution


def test_draws_follow_the_law() -> None:
    mechanism = CountingQueries(ThresholdCounts(None, (1.0, 2.0, 9.0)), 8, 1.5, step=0.5)
    n = 40_000
    outputs = mechanism(DATA, n, np.random.default_rng(1))
    p_values = []
    for i, (part, count) in enumerate(zip(mechanism.law(DATA).parts, (6, 5, 2), strict=True)):
        assert isinstance(part, TwoSidedGeometricLaw)
        assert part.loc == 2 * count
        steps = np.rint(outputs[:, i] / part.step).astype(np.int64) - part.loc
        assert np.all((steps + part.loc) * part.step == outputs[:, i])
        k = np.arange(-14, 15)
        pmf = part.a ** -np.abs(k).astype(np.float64) * (part.a - 1) / (part.a + 1)
        pmf[[0, -1]] += (1 - pmf.sum()) / 2
        assert n * pmf.min() >= 50  # so that the chi-square distribution holds far into the tail
        observed = np.bincount(np.clip(steps, -14, 14) + 14, minlength=29)
        p_values.append(float(stats.chisquare(observed, n * pmf).pvalue))
    # Independent answers: each is below its centre or not.
    low = outputs <= mechanism.query(DATA) / 8
    joint = np.bincount(low.astype(int) @ np.array([1, 2, 4]), minlength=8)
    q = mechanism.base / (mechanism.base + 1)
    expected = [math.prod(q if j >> i & 1 else 1 - q for i in range(3)) for j in range(8)]
    p_values.append(float(stats.chisquare(joint, n * np.array(expected)).pvalue))
    assert min(p_values) > ALARM / len(p_values)


# ------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("t", [0.0, 0.4, 1.0, 1.5, 7.0])
def test_tails_of_the_noise(t: float) -> None:
    a = 1.3
    k = np.arange(-400, 401)
    mass = a ** -np.abs(k).astype(np.float64) * (a - 1) / (a + 1)
    assert beyond(a, t) == pytest.approx(float(mass[np.abs(k) > t].sum()), rel=1e-12)


def test_any_of_several() -> None:
    assert any_of(0.1, 3) == pytest.approx(1 - 0.9**3, rel=1e-12)
    assert any_of(1e-20, 10) == pytest.approx(1e-19, rel=1e-12)
    assert any_of(1.0, 2) == 1.0


@pytest.mark.parametrize("k", [1, 3, 100])
@pytest.mark.parametrize("step", [1.0, 2.0**-6])
def test_the_largest_error_is_b_times_the_harmonic_number(k: int, step: float) -> None:
    mechanism = CountingQueries(same(k), 10_000, 1.0, step=step)
    # By summation of the distribution of the largest of k on the lattice.
    t = np.arange(round(60 * k / step), dtype=np.float64)
    tail = 2 * mechanism.base**-t / (mechanism.base + 1)
    brute = math.fsum((1 - (1 - tail) ** k).tolist()) * step / 10_000
    assert mechanism.expected_largest() == pytest.approx(brute, rel=1e-9)
    # The lattice takes off a part of the order of (step / scale)^2.
    loss = 1 - mechanism.expected_largest() / (mechanism.scale * harmonic(k))
    assert 0 <= loss <= 0.2 * (step / k) ** 2


def test_the_catalogues_largest_of_a_hundred() -> None:
    mechanism = CountingQueries(same(100), 10_000, 1.0)
    # Printed as 5.18 with the third digit cut off: H_100 = 5.187.
    assert mechanism.expected_largest() / mechanism.scale == pytest.approx(5.18, abs=0.01)
    by_quadrature, _ = integrate.quad(lambda x: 1 - (1 - math.exp(-x)) ** 100, 0, 60, limit=200)
    assert by_quadrature == pytest.approx(harmonic(100), rel=1e-9)
    assert mechanism.expected_largest() / mechanism.scale == pytest.approx(by_quadrature, rel=1e-5)


@pytest.mark.parametrize("k", [1, 10, 500])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-4])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_error_bound_holds_exactly_and_is_nearly_tight(k: int, beta: float, delta: float) -> None:
    mechanism = CountingQueries(same(k), 20_190, 1.0, delta)
    assert mechanism.miss(mechanism.bound(beta)) <= beta
    assert mechanism.miss_any(mechanism.bound(beta, k)) <= beta
    fine = CountingQueries(same(k), 20_190, 1.0, delta, 2.0**-10)
    assert fine.miss(fine.bound(beta)) == pytest.approx(beta, rel=0.01)


# -------------------------------------------------------------------------------- capacities


def test_the_catalogues_capacity() -> None:
    assert stated_capacity(1.0, 10_000, 0.1, 0.05, together=True) == 127
    assert stated_capacity(1.0, 10_000, 0.1, 0.05, together=False) == math.floor(1000 / math.log(20)) == 333
    assert 127 * math.log(127 / 0.05) <= 1000 < 128 * math.log(128 / 0.05)


@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_stated_capacities_work_and_hardly_more_does(n: int) -> None:
    for together in (False, True):
        stated = stated_capacity(1.0, n, 0.1, 0.05, together=together)

        def missed(k: int, together: bool = together) -> float:
            mechanism = CountingQueries(same(k), n, 1.0)
            return mechanism.miss_any(0.1) if together else mechanism.miss(0.1)

        assert missed(stated) <= 0.05
        exact = capacity(lambda k: missed(k) <= 0.05)
        assert stated <= exact <= 1.05 * stated + 1


def test_capacity_is_the_last_that_works() -> None:
    for last in (0, 1, 2, 3, 5, 127, 128, 129):
        assert capacity(lambda k, last=last: k <= last) == last  # type: ignore[misc]
    assert stated_capacity(1.0, 10, 0.1, 0.05, together=True) == 0


# ----------------------------------------------------------------------------------- mutants


def test_levels_of_the_mutants() -> None:
    pure, approximate = CountingQueries(same(10), 8, 1.0), CountingQueries(same(50), 8, 1.0, 1e-5)
    largest = MUTANTS["largest_sensitivity_only"]
    assert largest.true_level is not None
    assert largest.true_level(pure) == pytest.approx(10.0, rel=1e-9)
    built = largest.build(pure)
    assert isinstance(built, LargestSensitivity)
    assert curve(built.law(DATA), built.law(MOVED)).epsilon(0.0) == pytest.approx(10.0, rel=1e-9)
    root = MUTANTS["sqrt_k_without_log"]
    assert root.true_level is not None
    # A4 as printed, at eps0 = 1 / sqrt 50: the smallest level at which the sum of max(0, p - e^eps q) is delta.
    e0 = 1 / math.sqrt(50)
    p = math.exp(e0) / (1 + math.exp(e0))
    j = np.arange(51)
    up, down = stats.binom.pmf(j, 50, p), stats.binom.pmf(j, 50, 1 - p)

    def excess(epsilon: float) -> float:
        return float(np.maximum(0, up - math.exp(epsilon) * down).sum()) - 1e-5

    assert root.true_level(approximate) == pytest.approx(optimize.brentq(excess, 0, 50 * e0), rel=1e-6)
    assert isinstance(root.build(approximate), BudgetOverSquareRootOnly)


@pytest.mark.parametrize("cuts", [(1.0, 1.0, 1.0), (1.0, 2.0, 1.0, 2.0), (1.0, 2.0, 5.0)])
def test_level_when_repetitions_are_not_counted(cuts: tuple[float, ...]) -> None:
    mutant = MUTANTS["k_after_dedup"]
    assert mutant.true_level is not None
    level = mutant.true_level(CountingQueries(ThresholdCounts(None, cuts), 8, 1.0))
    assert level == pytest.approx(len(cuts) / len(set(cuts)), rel=1e-9)


def test_reused_noise_gives_exact_differences() -> None:
    base = CountingQueries(ThresholdCounts(None, (1.0, 2.0, 9.0)), 8, 1.0)
    mutant = MUTANTS["noise_reused"]
    built = mutant.build(base)
    assert isinstance(built, SameNoiseForAllCounts)
    steps = np.rint(built(DATA, 200, np.random.default_rng(2)) * 8)
    assert np.all(np.diff(steps, axis=1) == np.diff(base.query(DATA)))
    assert mutant.true_level is not None
    assert mutant.true_level(base) == math.inf


# ------------------------------------------------------------------------------------ errors


def test_errors_show_the_value() -> None:
    with pytest.raises(ValueError, match=r"expected a finite epsilon > 0, got -1\.0"):
        CountingQueries(same(3), 8, -1.0)
    with pytest.raises(ValueError, match=r"expected delta in \[0, 1\), got 1\.0"):
        CountingQueries(same(3), 8, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"expected a public size >= 1, got 0"):
        CountingQueries(same(3), 0, 1.0)
    with pytest.raises(ValueError, match=r"expected 8 rows, got 7"):
        CountingQueries(same(3), 8, 1.0)(DATA[:7], 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"expected a power of two, at most 1, as step, got 2\.0"):
        CountingQueries(same(3), 8, 1.0, step=2.0)
    with pytest.raises(ValueError, match=r"expected a vector of counts under replace_one, got IdentityQuery"):
        CountingQueries(IdentityQuery(), 8, 1.0)
    with pytest.raises(ValueError, match=r"expected at least one cut, got \(\)"):
        ThresholdCounts(None, ())
    with pytest.raises(ValueError, match=r"expected finite low < high, got \(1\.0, 1\.0\)"):
        spread_cuts(None, 1.0, 1.0, 3)
    with pytest.raises(ValueError, match=r"expected an error in \(0, 1\), got 1\.0"):
        stated_capacity(1.0, 10, 1.0, 0.05, together=True)
