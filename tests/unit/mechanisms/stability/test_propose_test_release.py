"""Propose, test, release: its distribution against samples and the catalogue's formula, its claim on small datasets.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from auditor.datasets import Pair
from auditor.privacy.exact import FiniteLaw, PrivacyCurve, curve
from experiments._points import around, index, whole_range, zeros
from experiments.document_003_bellairs_lectures.propose_test_release import (
    _both_move,
    _distances,
    _far_apart,
    _needed_rows,
    _sufficient_distance,
)
from mechanisms.stability.median import ClippedMedian, replacements
from mechanisms.stability.propose_test_release import MUTANTS, ProposeTestRelease

MEDIAN = ClippedMedian()
TEST = ProposeTestRelease(MEDIAN, 1 / 64, 0.5, 0.05)
FALSE_ALARM = 1e-6


def pair_curve(mechanism: Any, pair: Pair) -> PrivacyCurve:
    return curve(mechanism.law(pair.x), mechanism.law(pair.y))


def laplace_delta(epsilon: float, shift: float) -> float:
    """Hockey-stick divergence of Laplace distributions of scale 1 at any real level (catalogue, A1)."""
    if epsilon >= shift:
        return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0
    if epsilon <= -shift:
        return -math.expm1(epsilon)
    return -math.expm1((epsilon - shift) / 2)


def catalogue_delta(epsilon: float, p: float, q: float, shift: float) -> float:
    """``max(0, (1-p) - e^E (1-q)) + p HS_lap(E + ln(q/p))``, the larger of both orders."""
    return max(
        max(0.0, (1 - a) - math.exp(epsilon) * (1 - b)) + a * laplace_delta(epsilon + math.log(b / a), shift)
        for a, b in ((p, q), (q, p))
    )


# --------------------------------------------------------------------------------- the exact curve


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_delta_is_half_of_the_claim_where_answers_are_far_apart(epsilon: float) -> None:
    # The catalogue's 0.005 for delta = 0.01: up to the grid of the noisy distance, and e^(-31 eps) for the distance.
    mechanism = replace(TEST, epsilon=epsilon, delta=0.01)
    found = pair_curve(mechanism, _far_apart()).delta(2 * epsilon)
    assert found <= 0.005
    assert found == pytest.approx(0.005, rel=2 * epsilon * mechanism.grid + math.exp(-30 * epsilon))


@pytest.mark.parametrize("pair", [_far_apart(), _both_move(4), _both_move(0), _distances(0), _distances(7)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_curve_is_that_of_the_catalogue(pair: Pair, epsilon: float) -> None:
    mechanism = replace(TEST, epsilon=epsilon, step=2.0**-12)
    distances = [mechanism.distance(x) for x in (pair.x, pair.y)]
    # Of the continuous Laplace distribution, with the document's threshold.
    p, q = (
        (lambda t: 0.5 * math.exp(-t) if t >= 0 else 1 - 0.5 * math.exp(t))(-math.log(0.05) - epsilon * d)
        for d in distances
    )
    shift = abs(float(MEDIAN(pair.x)) - float(MEDIAN(pair.y))) * epsilon * 64
    found = pair_curve(mechanism, pair)
    for level in (-0.5, 0.0, 0.4 * epsilon, epsilon, 1.5 * epsilon, 1.99 * epsilon, 2 * epsilon):
        # 64 lattice steps to the bound, 1024 grid steps to a row.
        assert found.delta(level) == pytest.approx(catalogue_delta(level, p, q, shift), abs=epsilon / 100)


def test_the_second_pairs_largest_loss_is_two_epsilon() -> None:
    for distance in (0, 4):
        found = pair_curve(TEST, _both_move(distance))
        assert found.epsilon(0.0) == pytest.approx(2 * TEST.epsilon, rel=1e-9)
        # The event: released, on the far side.
        laws = [TEST.law(x) for x in (_both_move(distance).x, _both_move(distance).y)]
        assert math.log(laws[0].probabilities[0] / laws[1].probabilities[0]) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, math.log(2), 1.0, 3.0])
def test_half_of_delta_holds_on_all_small_datasets(epsilon: float) -> None:
    # delta/2 at 2 eps for every pair of neighbours on a grid, at distances on all sides of the threshold.
    for bound, delta in ((0.25, 0.2), (0.5, 0.01)):
        mechanism = ProposeTestRelease(MEDIAN, bound, epsilon, delta, step=2.0**-4)
        for rows, size in ((3, 9), (5, 5)):
            grid = tuple(np.linspace(0, 1, size).tolist())
            laws = {x: mechanism.law(np.array(x)) for x in itertools.combinations_with_replacement(grid, rows)}
            worst = max(curve(laws[x], laws[y]).delta(2 * epsilon) for x in laws for y in replacements(x, grid))
            assert worst <= 0.5 * delta * (1 + 1e-12)


def test_case_one_of_the_proof_fails_beyond_ln_two() -> None:
    near = _distances(0)
    for epsilon, fails in ((0.5, False), (0.68, False), (0.71, True), (2.0, True)):
        mechanism = replace(TEST, epsilon=epsilon)
        assert MEDIAN.local(near.y) > mechanism.bound
        released = 1 - mechanism.law(near.x).probabilities[-1]
        assert released == pytest.approx(math.exp(epsilon) * mechanism.delta / 2, rel=2 * epsilon * mechanism.grid)
        assert (released > mechanism.delta) == fails
        assert pair_curve(mechanism, near).delta(2 * epsilon) <= mechanism.delta / 2
        # Why it is harmless: the answers are within the bound.
        assert float(MEDIAN(near.x)) == float(MEDIAN(near.y))


def test_pairs_are_what_they_are_called() -> None:
    for distance in (0, 4, 26):
        both = _both_move(distance)
        assert [TEST.distance(x) for x in (both.x, both.y)] == [distance + 1, distance]
        assert [float(MEDIAN(x)) for x in (both.x, both.y)] == [0.0, 1 / 64]
        same = _distances(distance)
        assert [TEST.distance(x) for x in (same.x, same.y)] == [distance + 1, distance]
    far = _far_apart()
    assert [(TEST.distance(x), float(MEDIAN(x))) for x in (far.x, far.y)] == [(0, 0.0), (0, 1.0)]


# ----------------------------------------------------------------------------------------- samples

WIDE = replace(TEST, step=2.0**-6, bound=1 / 16)


@pytest.mark.parametrize(
    "mechanism",
    [
        WIDE,
        *(MUTANTS[name].build(WIDE) for name in MUTANTS if name != "nearest_observed_distance"),
        replace(WIDE, epsilon=2.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
@pytest.mark.parametrize("data", [around(*zeros(69)), _both_move(4).y], ids=["distance 5", "distance 4"])
def test_draws_follow_the_law(mechanism: Any, data: Any) -> None:
    n = 100_000
    draws = mechanism(data, n, np.random.default_rng(11))
    law = mechanism.law(data)
    values = np.array(law.outcomes, dtype=float)
    assert np.isnan(values[-1])
    assert set(draws[~np.isnan(draws)].tolist()) <= set(values[:-1].tolist())
    place = np.where(np.isnan(draws), len(values) - 1, np.nan_to_num(draws) / mechanism.step).astype(int)
    assert_counts(np.bincount(place, minlength=len(values)), law)


def assert_counts(counts: np.ndarray[Any, Any], law: FiniteLaw) -> None:
    """Chi-square over cells of at least 20 expected draws, with all others together, and nothing impossible."""
    n, p = counts.sum(), law.probabilities
    assert not counts[p == 0].any()
    often = n * p >= 20
    cells = np.append(counts[often], counts[~often].sum())
    expected = n * np.append(p[often], p[~often].sum())
    rest = expected >= 20
    # What is too rare for a cell occurs at most so often: Poisson's tail.
    assert cells[~rest].sum() <= stats.poisson.isf(FALSE_ALARM / 2, max(expected[~rest].sum(), 1e-9)) + 1
    if rest.sum() > 1:
        statistic = float(((cells[rest] - expected[rest]) ** 2 / expected[rest]).sum())
        # The chi-square distribution is a limit: its tail is asked for at a thousandth of the false alarms.
        assert statistic <= special.chdtri(rest.sum() - 1, FALSE_ALARM / 2000)


def test_probabilities_of_release() -> None:
    # 0.5 exp(ln(1/delta) - eps d) is withheld beyond the threshold; delta/2 released at distance 0.
    for distance in (6, 12, 40):
        withheld = 1 - TEST.release_probability(distance)
        assert withheld == pytest.approx(0.5 * math.exp(-math.log(0.05) - 0.5 * distance), rel=1e-3)
        assert withheld <= 0.5 * math.exp(-math.log(0.05) - 0.5 * (distance - 2 * TEST.grid))
    assert 0.0249 < TEST.release_probability(0) <= 0.025
    assert TEST.release_probability(math.inf) == 1.0
    for epsilon, eta in itertools.product((0.01, 0.5, 2.0), (0.3, 0.01)):
        mechanism = replace(TEST, epsilon=epsilon)
        need = _needed_rows(mechanism, eta)
        assert mechanism.release_probability(need) >= 1 - eta > mechanism.release_probability(need - 1)
        assert need - 1 <= _sufficient_distance(mechanism, eta) <= need + 2 * mechanism.grid + 1e-9 + 1


def test_the_index_is_far_from_sensitive() -> None:
    assert TEST.distance(index()) > 1000
    assert TEST.law(index()).probabilities[-1] < 1e-100


# ----------------------------------------------------------------------------------------- mutants


@pytest.mark.parametrize(
    ("name", "pair", "true"),
    [
        ("no_noise_on_distance", _distances(5), math.inf),
        ("threshold_zero", _far_apart(), 31.7914),
        ("log_base_10", _far_apart(), 31.0874),
        ("yes_no_distance", _distances(0), math.inf),
        ("draw_reused", _distances(4), math.inf),
    ],
)
def test_levels_of_mutants(name: str, pair: Pair, true: float) -> None:
    found = pair_curve(MUTANTS[name].build(TEST), pair).epsilon(TEST.delta)
    assert found == pytest.approx(true, abs=5e-5)
    assert pair_curve(TEST, pair).delta(2 * TEST.epsilon) <= TEST.delta / 2


def test_deltas_of_thresholds_that_are_too_low() -> None:
    # 1/2, delta^0.434 / 2 and delta^1.443 / 2, up to the distance of the answers: e^-15.
    zero, ten = (
        pair_curve(MUTANTS[name].build(TEST), _far_apart()).delta(1.0) for name in ("threshold_zero", "log_base_10")
    )
    assert zero == pytest.approx(0.5, rel=1e-3)
    assert ten == pytest.approx(0.05 ** (1 / math.log(10)) / 2, rel=1e-3)
    two = pair_curve(MUTANTS["log_base_2"].build(TEST), _far_apart()).delta(1.0)
    assert two == pytest.approx(0.05 ** (1 / math.log(2)) / 2, rel=1e-3)


def test_two_values_by_hand() -> None:
    # Two lattices of the release, -ln of what is left of it beyond delta: shift 32, e^(-(32 - E)/2) of p is missing.
    for name in ("threshold_zero", "log_base_10"):
        mutant = MUTANTS[name].build(TEST)
        assert isinstance(mutant, ProposeTestRelease)
        p = mutant.release_probability(0)
        by_hand = 32 + 2 * math.log1p(-TEST.delta / p)
        assert pair_curve(mutant, _far_apart()).epsilon(TEST.delta) == pytest.approx(by_hand, abs=0.02)


def test_the_reference_violates_epsilon() -> None:
    strict = replace(TEST, epsilon=1.0, delta=1e-12)
    assert pair_curve(strict, _both_move(26)).epsilon(strict.delta) == pytest.approx(2.0, rel=1e-9)
    assert MUTANTS["eps_claimed"].build(strict) is strict


def test_a_release_at_the_local_sensitivity() -> None:
    edge = around(*((0.0,) * 64 + (1 / 128,) * 40 + (1.0,) * 23))
    within = around(*((0.0,) * 65 + (1 / 128,) * 39 + (1.0,) * 23))
    assert [MEDIAN.local(x) for x in (edge, within)] == [1 / 128, 0.0]
    assert [TEST.distance(x) for x in (edge, within)] == [40, 40]
    local = MUTANTS["release_at_local_sensitivity"].build(TEST)
    assert pair_curve(local, Pair(edge, within)).epsilon(TEST.delta) == math.inf
    # No noise at all: the answer, or nothing.
    assert set(local(within, 1000, np.random.default_rng(12)).tolist()) == {0.0}


def test_the_observed_distance_is_too_large() -> None:
    pair, wide = whole_range(), ProposeTestRelease(MEDIAN, 0.625, 0.001, 1e-6)
    observed = MUTANTS["nearest_observed_distance"].build(wide)
    assert isinstance(observed, ProposeTestRelease)
    assert observed.distance(pair.x) == math.inf
    assert wide.distance(pair.x) < wide.threshold < math.inf
    assert observed.distance(pair.y) < wide.threshold
    assert pair_curve(observed, pair).epsilon(wide.delta) == math.inf
    assert pair_curve(wide, pair).delta(2 * wide.epsilon) <= wide.delta / 2


# ---------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": 0.0}, r"a finite epsilon > 0, got 0\.0"),
        ({"bound": 1.0}, r"bound in \(0, 1\), got 1\.0"),
        ({"delta": 0.0}, r"delta in \(0, 1\), got 0\.0"),
        ({"step": 0.3}, r"a power of two from 1\.52588e-05 to 1 as step, got 0\.3"),
        ({"grid": 2.0}, r"a power of two from 1\.52588e-05 to 1 as grid, got 2\.0"),
    ],
)
def test_mistakes_are_shown(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TEST, **wrong)  # type: ignore[arg-type]


def test_what_would_underflow_is_refused() -> None:
    with pytest.raises(ValueError, match=r"epsilon / bound at most 690, got 1280\.0"):
        replace(TEST, epsilon=20.0).law(np.zeros(3))
    with pytest.raises(ValueError, match=r"a finite distance .*, got inf"):
        MUTANTS["draw_reused"].build(replace(TEST, query=_Constant())).law(np.zeros(3))  # type: ignore[attr-defined]


class _Constant(ClippedMedian):
    def distance(self, data: Any, bound: float) -> float:
        return math.inf
