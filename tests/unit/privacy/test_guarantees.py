"""Caps, their tangents and their inverses, against definitions and brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

import auditor
from auditor import ZCDP, ApproxDP, DeltaDP, GaussianDP, PureDP, RenyiDP
from auditor.errors import SpecificationError
from auditor.evidence.power import find_ceiling
from auditor.privacy.exact import GaussianLaw, LaplaceLaw, curve
from auditor.privacy.guarantees import Guarantee, parse_claim

Array = NDArray[np.float64]

LEVELS = st.one_of(st.just(0.0), st.floats(1e-200, 6.0))
POSITIVE_LEVELS = st.floats(0.01, 6.0)
DELTAS = st.one_of(st.just(0.0), st.floats(1e-6, 0.5))
PROBABILITIES = st.floats(1e-4, 1 - 1e-4)


@st.composite
def guarantees(draw: st.DrawFn) -> Guarantee:
    kind = draw(st.sampled_from(["pure", "approximate", "gaussian"]))
    if kind == "pure":
        return PureDP(draw(LEVELS))
    if kind == "approximate":
        return ApproxDP(draw(LEVELS), draw(DELTAS))
    return GaussianDP(draw(LEVELS))


def one(value: Array) -> float:
    return float(np.asarray(value))


def cap(guarantee: Guarantee, q: float, level: float | None = None) -> float:
    return one(guarantee.cap(np.array(q), guarantee.level if level is None else level))


# ---------------------------------------------------------------------------------------- caps


@settings(deadline=None)
@given(guarantees())
def test_caps_are_increasing_concave_probabilities_above_the_diagonal(guarantee: Guarantee) -> None:
    q = np.linspace(0, 1, 2001)
    p = guarantee.cap(q, guarantee.level)
    assert np.all((p >= q - 1e-12) & (p <= 1))
    assert np.all(np.diff(p) >= -1e-12)
    assert np.all(np.diff(p, 2) <= 1e-12)


@settings(deadline=None)
@given(guarantees(), st.floats(0, 1))
def test_caps_are_symmetric_under_exchange_and_complement(guarantee: Guarantee, q: float) -> None:
    p = cap(guarantee, q)
    # Where p is within rounding of 1 the reflected point is on the vertical end of the cap, which is no graph.
    assume(p < 1 - 1e-9)
    # An error of 1e-16 in p moves the reflected q by at most the slope there, below e^6 for epsilon, and for mu by the
    # slope at q = 1e-9, below 1e10.
    assert cap(guarantee, 1 - p) == pytest.approx(1 - q, abs=1e-6)


@settings(deadline=None)
@given(guarantees(), PROBABILITIES, POSITIVE_LEVELS)
def test_caps_grow_with_the_level(guarantee: Guarantee, q: float, more: float) -> None:
    assert cap(guarantee, q, guarantee.level + more) >= cap(guarantee, q)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.2])
def test_the_cap_of_epsilon_and_delta_is_the_largest_power_among_laws_that_attain_both(
    epsilon: float, delta: float
) -> None:
    # The pair of distributions that attains (epsilon, delta): mass delta where the other distribution has none, the
    # rest by randomised response (Kairouz, Oh and Viswanath 2015, theorem 8). The largest power at level q is Neyman
    # and Pearson's.
    e = math.exp(epsilon)
    p = np.array([delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0])
    corners_q, corners_p = np.cumsum(p[::-1]), np.cumsum(p)
    q = np.linspace(0, 1, 501)
    power = np.interp(q, [0.0, *corners_q], [0.0, *corners_p])
    power[0] = delta  # the distribution Q has no mass there at all: power at level 0
    np.testing.assert_allclose(ApproxDP(epsilon, delta).cap(q, epsilon), power, atol=1e-12)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_cap_of_mu_is_the_power_of_thresholds_between_two_gaussians(mu: float) -> None:
    cut = np.linspace(-4, 4, 101)
    q, p = stats.norm.sf(cut), stats.norm.sf(cut - mu)
    np.testing.assert_allclose(GaussianDP(mu).cap(q, mu), p, rtol=1e-9)


# ------------------------------------------------------------------------------------ tangents


def tangent(guarantee: Guarantee, p: float, q: float) -> tuple[float, float, float]:
    found = guarantee.tangent(np.array([[p]]), np.array([[q]]), np.array([guarantee.level]))
    return float(found.p0[0, 0]), float(found.q0[0, 0]), float(found.slope[0, 0])


def divergence(p: Array | float, q: Array | float, p0: Array, q0: Array) -> Array:
    total = special.rel_entr(p, p0) + special.rel_entr(1 - p, 1 - p0)
    total = total + special.rel_entr(q, q0) + special.rel_entr(1 - q, 1 - q0)
    return np.asarray(total)


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(guarantees(), PROBABILITIES, PROBABILITIES)
def test_tangents_touch_the_cap_and_lie_above_it(guarantee: Guarantee, p: float, q: float) -> None:
    assume(p > cap(guarantee, q))
    p0, q0, slope = tangent(guarantee, p, q)
    assert p0 == pytest.approx(cap(guarantee, q0), abs=1e-12)
    grid = np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-9, 1, 200), q0 + np.linspace(-1e-3, 1e-3, 201)])
    grid = grid[(grid >= 0) & (grid <= 1)]
    line = p0 + slope * (grid - q0)
    # The slope of a Gaussian cap reaches e^30 here, and rounding q0 moves the line by slope times 1e-16.
    assert np.all(line >= guarantee.cap(grid, guarantee.level) - 1e-12 - 1e-14 * slope)


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(guarantees(), PROBABILITIES, PROBABILITIES)
@example(PureDP(1.0), 0.9, 0.1)
@example(PureDP(0.0), 0.9, 0.1)
@example(ApproxDP(1.0, 0.1), 0.3, 0.01)
def test_the_projection_minimises_the_divergence_to_the_cap(guarantee: Guarantee, p: float, q: float) -> None:
    assume(p > cap(guarantee, q))
    p0, q0, _ = tangent(guarantee, p, q)
    found = float(divergence(p, q, np.array(p0), np.array(q0)))
    # Brute force: logits on a dense grid, then three times again around the best point.
    low, high = -40.0, 40.0
    for _ in range(4):
        logits = np.linspace(low, high, 801)
        points = special.expit(logits)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = divergence(p, q, guarantee.cap(points, guarantee.level), points)
        k = int(np.nanargmin(values))
        step = logits[1] - logits[0]
        low, high = logits[k] - 2 * step, logits[k] + 2 * step
    brute = float(np.nanmin(values))
    assert found <= brute * (1 + 1e-6) + 1e-9
    assert brute <= found + 1e-6  # else the brute force is no check


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_points_above_the_kink_are_projected_on_it_with_the_likelihood_ratio_slope(
    epsilon: float, delta: float
) -> None:
    e = math.exp(epsilon)
    kink_q, kink_p = (1 - delta) / (1 + e), (e + delta) / (1 + e)
    # Far above the kink on its diagonal, moved a little off it so that the ratio is not 1.
    p, q = kink_p + 0.9 * (1 - kink_p), 0.11 * kink_q
    p0, q0, slope = tangent(ApproxDP(epsilon, delta), p, q)
    assert p0 == pytest.approx(kink_p)
    assert q0 == pytest.approx(kink_q)
    ratio = ((q0 - q) / (q0 * (1 - q0))) / ((p - p0) / (p0 * (1 - p0)))
    assert slope == pytest.approx(min(max(ratio, 1 / e), e))
    assert 1 / e <= slope <= e


def test_points_beside_the_kink_are_projected_on_their_own_line() -> None:
    claim = PureDP(1.0)
    _, steep_q, steep = tangent(claim, 0.2, 0.02)
    _, flat_q, flat = tangent(claim, 0.98, 0.8)
    assert steep == pytest.approx(math.e)
    assert flat == pytest.approx(1 / math.e)
    assert steep_q < 1 / (1 + math.e) < flat_q


@settings(deadline=None)
@given(guarantees(), PROBABILITIES, PROBABILITIES)
def test_tangents_at_several_levels_at_once_are_those_at_each_level(guarantee: Guarantee, p: float, q: float) -> None:
    levels = np.array([0.3, 1.0, 2.5])
    together = guarantee.tangent(np.array([[p]]), np.array([[q]]), levels)
    for k, level in enumerate(levels):
        alone = guarantee.tangent(np.array([[p]]), np.array([[q]]), np.array([level]))
        for a, b in zip(together, alone, strict=True):
            assert a[0, k] == pytest.approx(b[0, 0], rel=1e-12)


# -------------------------------------------------------------------------------------- levels


@settings(deadline=None)
@given(guarantees(), POSITIVE_LEVELS, st.floats(1e-3, 1 - 1e-3))
def test_level_of_is_the_inverse_of_the_cap(guarantee: Guarantee, level: float, q: float) -> None:
    p = cap(guarantee, q, level)
    assume(p < 1 - 1e-9)  # beyond, rounding of p decides
    assert one(guarantee.level_of(np.array(p), np.array(q))) == pytest.approx(level, abs=1e-5)


@settings(deadline=None)
@given(guarantees(), PROBABILITIES, PROBABILITIES, LEVELS)
def test_level_of_is_at_most_a_level_exactly_where_the_cap_allows_the_point(
    guarantee: Guarantee, p: float, q: float, level: float
) -> None:
    found = one(guarantee.level_of(np.array(p), np.array(q)))
    assume(abs(found - level) > 1e-6)
    assert (found <= level) == (p <= cap(guarantee, q, level))


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 0.1), GaussianDP(1.0)], ids=str)
def test_impossible_against_possible_has_an_infinite_level_and_no_difference_has_level_0(guarantee: Guarantee) -> None:
    p = np.array([0.5, 1.0, 0.3, 0.0, 1.0])
    q = np.array([0.0, 0.5, 0.3, 0.0, 1.0])
    np.testing.assert_array_equal(guarantee.level_of(p, q), [np.inf, np.inf, 0.0, 0.0, 0.0])


def test_an_impossible_event_of_probability_delta_is_allowed_at_every_level() -> None:
    assert one(ApproxDP(1.0, 0.1).level_of(np.array(0.1), np.array(0.0))) == 0.0
    assert one(ApproxDP(1.0, 0.1).level_of(np.array(0.11), np.array(0.0))) == math.inf


def smallest_divergence(guarantee: Guarantee, level: float) -> float:
    """Minimum of -ln p0 - ln(1 - q0) over the cap, on a grid refined twice."""
    low, high = 0.0, 1.0
    for _ in range(4):
        q = np.linspace(low, high, 2001)
        with np.errstate(divide="ignore"):
            values = -np.log(guarantee.cap(q, level)) - np.log1p(-q)
        k = int(np.argmin(values))
        step = q[1] - q[0]
        low, high = max(0.0, q[k] - 2 * step), min(1.0, q[k] + 2 * step)
    return float(values.min())


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(1.0, 1e-3), ApproxDP(1.0, 0.2), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("wanted", [0.003, 0.02, 0.1, 0.5])
def test_the_ceiling_is_the_largest_level_that_keeps_the_divergence(guarantee: Guarantee, wanted: float) -> None:
    level = find_ceiling(1, guarantee, math.exp(-wanted))
    if smallest_divergence(guarantee, 0.0) < wanted:
        assert level == 0
    elif math.isfinite(level):
        assert smallest_divergence(guarantee, level * (1 - 1e-6)) >= wanted * (1 - 1e-9)
        assert smallest_divergence(guarantee, level * (1 + 1e-6)) <= wanted * (1 + 1e-9)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), GaussianDP(1.0), ApproxDP(1.0, 0.2)], ids=str)
def test_the_ceiling_is_0_where_even_level_0_is_not_that_far(guarantee: Guarantee) -> None:
    # At level 0 and delta 0 the minimum over p0 = q0 is 2 ln 2.
    assert find_ceiling(1, guarantee, math.exp(-2 * math.log(2) - 0.01)) == 0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_exact_level_of_laplace_noise_is_its_epsilon_in_every_notion(epsilon: float) -> None:
    pair = curve(LaplaceLaw(0.0, 1 / epsilon), LaplaceLaw(1.0, 1 / epsilon))
    assert PureDP(1.0).exact_level(pair) == pytest.approx(epsilon)
    assert ApproxDP(1.0, 0.01).exact_level(pair) == pytest.approx(epsilon + 2 * math.log1p(-0.01))
    # The smallest mu whose cap is above the pair's trade-off curve.
    q = np.linspace(1e-3, 1 - 1e-3, 999)
    assert GaussianDP(1.0).exact_level(pair) == pytest.approx(
        float(GaussianDP(1.0).level_of(np.asarray(pair.tradeoff(q)), q).max()), abs=1e-4
    )


def test_the_exact_level_of_gaussian_noise_is_its_mu() -> None:
    pair = curve(GaussianLaw(0.0, 2.0), GaussianLaw(1.0, 2.0))
    assert GaussianDP(1.0).exact_level(pair) == pytest.approx(0.5)
    assert PureDP(1.0).exact_level(pair) == math.inf


# ---------------------------------------------------------------------------------- parameters

BAD_NUMBERS: list[Any] = [-1, -1e-9, math.nan, math.inf, True, np.True_, "1", None, [1.0], 1j]


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
def test_a_bad_level_is_refused_and_shown(value: Any) -> None:
    for make, name in ((PureDP, "epsilon"), (ApproxDP, "epsilon"), (GaussianDP, "mu")):
        with pytest.raises(ValueError, match=name) as caught:
            make(value)
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1, 1.0, 2.5], ids=repr)
def test_a_bad_delta_is_refused_and_shown(value: Any) -> None:
    with pytest.raises(ValueError, match="delta") as caught:
        ApproxDP(1.0, value)
    assert repr(value) in str(caught.value) or repr(float(value)) in str(caught.value)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float64(0.5), np.int64(2), np.float32(0.5)], ids=repr)
def test_every_number_of_at_least_0_is_a_level(value: Any) -> None:
    for claim in (PureDP(value), ApproxDP(value, 1e-6), GaussianDP(value)):
        assert claim.level == float(value)
        assert type(claim.level) is float


@pytest.mark.parametrize("claim", [PureDP(1.5), ApproxDP(1.5, 1e-6), ApproxDP(0.5), GaussianDP(0.7)], ids=repr)
def test_the_representation_of_a_claim_makes_it_again(claim: Guarantee) -> None:
    assert eval(repr(claim), {name: getattr(auditor, name) for name in auditor.__all__}) == claim


def test_claims_say_what_they_claim() -> None:
    assert (str(PureDP(1.0)), PureDP(1.0).notion, PureDP(1.0).parameters()) == ("ε = 1", "pure DP", {"epsilon": 1.0})
    assert str(ApproxDP(1.0, 1e-6)) == "ε = 1, δ = 1e-06"
    assert ApproxDP(1.0, 1e-6).parameters() == {"epsilon": 1.0, "delta": 1e-6}
    assert (str(GaussianDP(0.5)), GaussianDP(0.5).parameters()) == ("μ = 0.5", {"mu": 0.5})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("claim", ["epsilon=355", "epsilon=720, delta=1e-6", "epsilon=1e100", "mu=1000", "rho=1e4"])
def test_levels_beyond_floats_are_audited_without_warnings(claim: str) -> None:
    def shows(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.full(n, data[0])

    pair = auditor.Pair(np.array([0]), np.array([1]), "one bit")
    found = auditor.audit(shows, parse_claim(claim), pair, draws=2_000)
    assert (found.verdict, found.lower_bound) == ("inconclusive", 0.0)  # the ceiling is about 6


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "guarantee", [PureDP(1e50), ApproxDP(720, 0.01), DeltaDP(0.01, 1e308), ZCDP(1e9), RenyiDP({2: 1e10})]
)
def test_lines_of_levels_beyond_floats_are_at_1(guarantee: Guarantee) -> None:
    line = guarantee.tangent(np.array([1.0, 0.5]), np.array([0.0, 0.1]), guarantee.level)
    # At q = 0, where the line is lowest, it must be at least the cap.
    assert np.all(line.p0 - line.slope * line.q0 >= 1.0)
    assert guarantee.cap(np.array([1e-100]), guarantee.level) == 1.0


def test_large_levels_have_their_own_lines_beside_vacuous_ones() -> None:
    levels = np.array([1.0, 400.0, 5.0])
    line = PureDP(1.0).tangent(np.array([0.9] * 3), np.array([0.001] * 3), levels)
    alone = PureDP(1.0).tangent(np.array([0.9]), np.array([0.001]), 5.0)
    assert [float(part[2]) for part in line] == [float(part[0]) for part in alone]
    assert [float(part[1]) for part in line] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "claim", ["epsilon=5e-324", "rho=1e-308", "mu=1e308", "delta=1e-300, at_epsilon=1", "renyi=2:1e11"]
)
def test_levels_that_no_grid_holds_are_refused_with_their_value(claim: str) -> None:
    with pytest.raises(SpecificationError, match=r"must be 0 or between 1e-200 and .*, got"):
        parse_claim(claim)
