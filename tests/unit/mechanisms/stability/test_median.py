"""The median's sensitivities by brute force, their properties, and noise for the local one.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw, TwoSidedGeometricLaw, curve
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.stability.local_sensitivity import MUTANTS, LocalSensitivityLaplace
from mechanisms.stability.median import (
    ClippedMedian,
    DistanceFromPublicNumber,
    MeanOfMiddlePoints,
    MedianOfObservedRange,
    MedianOfShortWindow,
    enumerated,
    rank,
    replacements,
)

MEDIAN = ClippedMedian()
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)

points = st.lists(st.floats(0.0, 1.0, allow_nan=False), min_size=1, max_size=12)


def median_of(x: tuple[float, ...]) -> float:
    return sorted(x)[(len(x) + 1) // 2 - 1]


def local_by_definition(x: tuple[float, ...], grid: tuple[float, ...]) -> float:
    moved = ((*x[:i], value, *x[i + 1 :]) for i in range(len(x)) for value in grid)
    return max(abs(median_of(y) - median_of(x)) for y in moved)


def most_sensitive(x: tuple[float, ...] | NDArray[np.float64], k: int) -> float:
    return float(MEDIAN.most_sensitive(np.sort(np.array(x)), k))


# ---------------------------------------------------------------------------------- the formula


@pytest.mark.parametrize(("rows", "cases"), [(3, 140), (5, 756)])
def test_the_formula_is_the_brute_force_of_the_catalogue(rows: int, cases: int) -> None:
    found = enumerated(MEDIAN.of, GRID, rows)
    values = [(most_sensitive(x, k), least) for x, row in found.items() for k, least in enumerate(row)]
    assert len(values) == cases  # 756 of 756 for five points
    assert all(a == b for a, b in values)


@pytest.mark.parametrize("rows", [2, 4, 6])
def test_the_formula_holds_for_the_lower_median_of_an_even_number(rows: int) -> None:
    for x, row in enumerated(MEDIAN.of, GRID, rows).items():
        assert [most_sensitive(x, k) for k in range(rows + 1)] == row.tolist()


def test_the_brute_force_is_the_definition() -> None:
    # Ordered datasets and Hamming balls, without the recursion.
    grid = (0.0, 0.25, 1.0)
    found = enumerated(MEDIAN.of, grid, 3)
    local = {x: local_by_definition(x, grid) for x in itertools.product(grid, repeat=3)}
    for x in local:
        for k in range(4):
            within = [y for y in local if sum(a != b for a, b in zip(x, y, strict=True)) <= k]
            assert found[tuple(sorted(x))][k] == max(local[y] for y in within)


def test_enumeration_is_bounded() -> None:
    with pytest.raises(ValueError, match=r"at most 10000 sorted datasets, got 293930"):
        enumerated(MEDIAN.of, tuple(np.linspace(0, 1, 13)), 9)


@given(points, st.floats(0.0, 1.0), st.data())
@settings(max_examples=200, deadline=None)
def test_neighbours(x: list[float], value: float, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(x) - 1))
    y = [*x[:place], value, *x[place + 1 :]]
    for k in range(len(x) + 1):
        assert most_sensitive(tuple(x), k) <= most_sensitive(tuple(y), k + 1)
    # So the smooth sensitivity is smooth, the distance moves by at most one, and the median by at most A_0.
    assert abs(median_of(tuple(x)) - median_of(tuple(y))) <= most_sensitive(tuple(x), 0)
    for rate in (0.01, 0.25, 2.0):
        ratio = MEDIAN.smooth(np.array(x), rate) / MEDIAN.smooth(np.array(y), rate)
        assert -rate - 1e-12 <= math.log(ratio) <= rate + 1e-12
    for bound in (0.0, 0.1, 0.7):
        assert abs(MEDIAN.distance(np.array(x), bound) - MEDIAN.distance(np.array(y), bound)) <= 1


def test_sensitivities_grow_with_the_distance_up_to_one() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(9))
    values = [most_sensitive(x, k) for k in range(12)]
    assert values == sorted(values)
    assert values[9:] == [1.0, 1.0, 1.0]


def test_the_local_sensitivity_itself_is_not_smooth() -> None:
    zeros = np.zeros(5)
    near = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    nearer = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    assert [MEDIAN.local(x) for x in (zeros, nearer, near)] == [0.0, 0.0, 1.0]
    assert float(MEDIAN(near)) == 0.0
    assert float(MEDIAN(np.array([0.0, 0.0, 1.0, 1.0, 1.0]))) == 1.0 == MEDIAN.sensitivity


def test_the_smooth_sensitivity_is_its_definition() -> None:
    rate = 0.3
    ordered = list(itertools.product(GRID, repeat=3))
    local = {x: local_by_definition(x, GRID) for x in ordered}
    for x in ordered:
        largest = max(local[y] * math.exp(-rate * sum(a != b for a, b in zip(x, y, strict=True))) for y in ordered)
        assert MEDIAN.smooth(np.array(x), rate) == pytest.approx(largest, rel=1e-14)


def test_the_distance_is_its_definition() -> None:
    rng = np.random.default_rng(1)
    for rows in (1, 2, 5, 30):
        x = rng.random(rows)
        for bound in (0.0, 0.05, 0.3, 0.99):
            found = next(k for k in range(rows + 1) if most_sensitive(x, k) > bound)
            assert MEDIAN.distance(x, bound) == found
        assert MEDIAN.distance(x, 1.0) == math.inf


def test_many_datasets_at_once() -> None:
    rng = np.random.default_rng(2)
    ordered = np.sort(rng.random((4, 3, 15)), axis=-1)
    smooth, third = MEDIAN.smoothed(ordered, 0.2), MEDIAN.most_sensitive(ordered, 3)
    for i, j in itertools.product(range(4), range(3)):
        assert smooth[i, j] == MEDIAN.smooth(ordered[i, j], 0.2)
        assert third[i, j] == most_sensitive(ordered[i, j], 3)
    np.testing.assert_array_equal(MEDIAN.of(ordered), np.median(ordered, axis=-1))


def test_columns_are_clipped_and_scaled() -> None:
    frame = pd.DataFrame({"x": [-5.0, 12.0, 99.0, math.nan, 14.0]})
    query = ClippedMedian("x", 10.0, 20.0)
    assert query.ordered(frame).tolist() == [0.0, 0.0, 0.2, 0.4, 1.0]
    assert float(query(frame)) == pytest.approx(0.2)
    assert [rank(n) for n in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]


def test_mistakes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"low < high, got \(1\.0, 1\.0\)"):
        ClippedMedian(low=1.0, high=1.0)
    with pytest.raises(ValueError, match="at least one row, got 0"):
        MEDIAN(np.zeros(0))
    with pytest.raises(ValueError, match="a distance k >= 0, got -1"):
        MEDIAN.most_sensitive(np.zeros(3), -1)
    with pytest.raises(ValueError, match=r"a finite rate > 0, got 0\.0"):
        MEDIAN.smooth(np.zeros(3), 0.0)


# ----------------------------------------------------------------------------------------- mutants


def test_a_window_of_k_gaps_is_one_distance_behind() -> None:
    short = MedianOfShortWindow()
    for x, row in enumerated(MEDIAN.of, GRID, 5).items():
        values = [float(short.most_sensitive(np.array(x), k)) for k in range(6)]
        assert values[0] == 0.0
        assert values[1:] == row[:-1].tolist()


def test_the_observed_range_bounds_nothing() -> None:
    observed = MedianOfObservedRange()
    equal, other = np.full(5, 0.5), np.array([0.5, 0.5, 0.5, 0.5, 1.0])
    assert [float(observed.most_sensitive(equal, k)) for k in range(6)] == [0.0] * 6
    assert observed.distance(equal, 0.1) == math.inf
    assert (observed.distance(other, 0.1), MEDIAN.distance(equal, 0.1), MEDIAN.distance(other, 0.1)) == (1, 2, 1)


def test_sensitivities_of_the_lower_median_do_not_bound_the_mean_of_both() -> None:
    query = MeanOfMiddlePoints()
    assert float(query(np.array([0.0, 0.0, 0.5, 1.0]))) == 0.25
    assert float(query(np.array([0.0, 0.5, 1.0]))) == 0.5
    found = enumerated(query.of, GRID, 4)
    # Three zeros and a one: the lower median cannot move, the mean moves by 1/2 if a zero becomes a one.
    assert found[0.0, 0.0, 0.0, 1.0][0] == 0.5
    assert float(query.most_sensitive(np.array([0.0, 0.0, 0.0, 1.0]), 0)) == 0.0


def test_replacements_of_one_row() -> None:
    assert replacements((0.0, 0.25), (0.0, 0.25)) == {(0.0, 0.0), (0.0, 0.25), (0.25, 0.25)}


# ------------------------------------------------------------------- noise for the local sensitivity

STEP = 2.0**-6
BROKEN = LocalSensitivityLaplace(MEDIAN, 1.0, STEP)
ATOM = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
BESIDE = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
SMALL, LARGE = np.array([0.4, 0.5, 0.6]), np.array([0.4, 0.5, 0.7])


def test_the_catalogues_event_has_all_probability_or_hardly_any() -> None:
    pair = curve(BROKEN.law(ATOM), BROKEN.law(BESIDE))
    assert pair.epsilon(0.0) == math.inf
    a = math.exp(STEP)
    assert pair.delta(0.0) == pytest.approx(1 - (a - 1) / (a + 1), rel=1e-9)
    # As the lattice is refined delta goes to 1.
    fine = LocalSensitivityLaplace(MEDIAN, 8.0, 2.0**-10)
    assert curve(fine.law(ATOM), fine.law(BESIDE)).delta(0.0) > 0.996


def test_where_both_are_positive_the_loss_grows_in_the_tails() -> None:
    laws = BROKEN.law(SMALL), BROKEN.law(LARGE)
    loss = {t: math.log(tail(laws[1], t) / tail(laws[0], t)) for t in (1.0, 2.0, 4.0)}
    # Probabilities e^-10t against e^-5t, but for the rounding of both sensitivities to 7 and 13 steps of 1/64.
    for t, found in loss.items():
        assert found == pytest.approx(t * 64 * (1 / 7 - 1 / 13), rel=0.1)
    assert curve(*laws).epsilon(0.0) == math.inf


def tail(law: FiniteLaw, t: float) -> float:
    values = np.array(law.outcomes, dtype=float)
    return float(law.probabilities[np.abs(values - 0.5) > t].sum())


def test_its_law_is_geometric_and_is_what_is_drawn() -> None:
    law = BROKEN.law(LARGE)
    geometric = TwoSidedGeometricLaw(32, math.exp(1 / 13), STEP)
    values = np.array(law.outcomes, dtype=float)
    np.testing.assert_allclose(np.cumsum(law.probabilities), geometric.cdf(values), rtol=0, atol=1e-12)
    n = 100_000
    draws = BROKEN(LARGE, n, np.random.default_rng(3))
    # Dvoretzky, Kiefer and Wolfowitz, with Massart's constant: probability at most 1e-6.
    gap = np.abs(np.searchsorted(np.sort(draws), values, side="right") / n - geometric.cdf(values)).max()
    assert gap <= math.sqrt(math.log(2 / 1e-6) / (2 * n))
    assert set(BROKEN(ATOM, 100, np.random.default_rng(4)).tolist()) == {0.0}


def test_a_bin_that_is_as_wide_as_the_noise_hides_the_atom() -> None:
    # What the auditor must not do: merge the atom at 0 with its surroundings. 20 scales: a loss of e^-20.
    laws = [dict(zip(x.outcomes, x.probabilities, strict=True)) for x in (BROKEN.law(ATOM), BROKEN.law(BESIDE))]
    merged = [math.fsum(p for v, p in law.items() if isinstance(v, float) and abs(v) <= 20.0) for law in laws]
    assert merged[0] == 1.0
    assert abs(math.log(merged[0] / merged[1])) < 1e-8


def test_local_sensitivity_mistakes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"a power of two as step, got 0\.1"):
        LocalSensitivityLaplace(MEDIAN, 1.0, 0.1)
    with pytest.raises(ValueError, match=r"a finite epsilon > 0, got -1\.0"):
        LocalSensitivityLaplace(MEDIAN, -1.0)
    with pytest.raises(ValueError, match="a ClippedMedian"):
        LocalSensitivityLaplace(3, 1.0)  # type: ignore[arg-type]
    built = MUTANTS["as_described"].build(LatticeLaplace(MEDIAN, 1.0, STEP))
    assert built == BROKEN


def test_a_distance_from_the_middle_keeps_the_likelihood_ratio() -> None:
    data = (0.4, 0.5, 0.7)
    mechanism = LocalSensitivityLaplace(ClippedMedian(), 1.0)
    drawn = DistanceFromPublicNumber(mechanism, 0.5)(data, 1_000, np.random.default_rng(3))
    assert np.array_equal(drawn, np.abs(mechanism(data, 1_000, np.random.default_rng(3)) - 0.5))
    law = mechanism.law(data)
    masses = {float(str(x)): p for x, p in zip(law.outcomes, law.probabilities, strict=True)}
    assert all(masses[2 * 0.5 - x] == pytest.approx(p, rel=1e-12) for x, p in masses.items())
    with pytest.raises(ValueError, match="nan"):
        DistanceFromPublicNumber(mechanism, math.nan)
