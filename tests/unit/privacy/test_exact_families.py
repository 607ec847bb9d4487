"""Cauchy, discrete Gaussian and unequal geometric pairs, and Renyi divergences, against independent computations."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from auditor.privacy.exact import (
    CauchyCurve,
    CauchyLaw,
    DiscreteGaussianCurve,
    DiscreteGaussianLaw,
    FiniteLaw,
    GaussianCurve,
    GaussianLaw,
    LaplaceCurve,
    LaplaceLaw,
    PrivacyCurve,
    TwoSidedGeometricLaw,
    curve,
)
from auditor.privacy.laws import FloatArray

EPSILONS = [-3.0, -0.7, -0.05, 0.0, 0.05, 0.3, 0.9, 1.7, 4.0]
CAUCHY_PAIRS = [
    (CauchyLaw(0.0, 1.0), CauchyLaw(1.0, 1.0)),
    (CauchyLaw(0.0, 1.0), CauchyLaw(0.0, 3.0)),
    (CauchyLaw(-2.0, 0.5), CauchyLaw(1.5, 2.0)),
    (CauchyLaw(0.05, 1.5), CauchyLaw(0.5, 0.91)),
    (CauchyLaw(0.0, 1.0), CauchyLaw(0.01, 1.0)),
]


def masses(size: int) -> st.SearchStrategy[FloatArray]:
    weights = st.lists(st.floats(1e-4, 1.0), min_size=size, max_size=size)
    return weights.map(lambda w: np.array(w) / np.sum(w))


pairs_of_masses = st.integers(2, 6).flatmap(lambda n: st.tuples(masses(n), masses(n)))


def finite(mass: FloatArray) -> FiniteLaw:
    return FiniteLaw(tuple(range(mass.size)), mass)


def brute_delta(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """The definition, in both orders."""
    e = math.exp(epsilon)
    return max(float(np.maximum(0.0, p - e * q).sum()), float(np.maximum(0.0, q - e * p).sum()))


# ------------------------------------------------------------------------------------- Cauchy


def density(law: CauchyLaw, x: float) -> float:
    return law.scale / (math.pi * (law.scale**2 + (x - law.loc) ** 2))


def ratio_roots(p: CauchyLaw, q: CauchyLaw, epsilon: float) -> list[float]:
    """Real roots of p(x) = e^eps q(x), a quadratic equation."""
    s, t, e, a = p.scale, q.scale, math.exp(epsilon), q.loc - p.loc
    coefficients = [s - e * t, -2.0 * a * s, s * (t * t + a * a) - e * t * s * s]
    return sorted(float(x.real) + p.loc for x in np.roots(coefficients) if abs(x.imag) < 1e-9)


@pytest.mark.parametrize("pair", CAUCHY_PAIRS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_cauchy_delta_by_the_roots_of_the_density_ratio(pair: tuple[CauchyLaw, CauchyLaw], epsilon: float) -> None:
    found = curve(*pair).delta(epsilon)
    both = []
    for p, q in (pair, pair[::-1]):
        cuts = [-math.inf, *ratio_roots(p, q, epsilon), math.inf]
        gains = [
            float(stats.cauchy.cdf(b, p.loc, p.scale) - stats.cauchy.cdf(a, p.loc, p.scale))
            - math.exp(epsilon) * float(stats.cauchy.cdf(b, q.loc, q.scale) - stats.cauchy.cdf(a, q.loc, q.scale))
            for a, b in itertools.pairwise(cuts)
        ]
        both.append(sum(max(0.0, gain) for gain in gains))
    assert found == pytest.approx(max(both), abs=1e-12)
    # A Cauchy pair is symmetric under swapping, whatever the scales.
    assert both[0] == pytest.approx(both[1], abs=1e-12)


@pytest.mark.parametrize("pair", CAUCHY_PAIRS)
def test_cauchy_largest_loss_is_a5(pair: tuple[CauchyLaw, CauchyLaw]) -> None:
    p, q = pair
    a = p.loc - q.loc
    expected = math.acosh((p.scale**2 + q.scale**2 + a * a) / (2 * p.scale * q.scale))
    # arccosh loses digits near 1: an error of 1e-16 there is one of 1e-16 / distance here.
    assert curve(p, q).epsilon(0.0) == pytest.approx(expected, abs=1e-13 / expected)
    x = np.tan(np.linspace(-1.5707, 1.5707, 400_001))
    loss = np.log(p.scale / (p.scale**2 + (x - p.loc) ** 2)) - np.log(q.scale / (q.scale**2 + (x - q.loc) ** 2))
    # The grid is 1e-5 wide in the angle, in which the loss has a second derivative below 100 here.
    assert float(np.max(np.abs(loss))) == pytest.approx(expected, abs=1e-7)


def test_cauchy_of_the_catalogue() -> None:
    # smooth_sensitivity_cauchy: scales 1.5 and 0.910, shift 0.45, true eps 0.625 (0.62510 at c = 2).
    pair = curve(CauchyLaw(0.05, 1.5), CauchyLaw(0.5, 1.5 * math.exp(-0.5)))
    assert pair.epsilon(0.0) == pytest.approx(0.62510, abs=5e-6)
    # Equal scales: 2 arcsinh(1 / (2 c)).
    assert curve(CauchyLaw(0.0, 2.0), CauchyLaw(1.0, 2.0)).epsilon(0.0) == pytest.approx(2 * math.asinh(0.25))


@pytest.mark.parametrize("distance", [1e-6, 0.01, 0.5, 3.0, 30.0, 900.0])
def test_cauchy_near_the_largest_loss_is_accurate_relatively(distance: float) -> None:
    pair = CauchyCurve(distance)
    for below in (1e-3, 0.05, 0.5, 0.97):
        epsilon = distance * (1.0 - below)

        def exceeds(u: float) -> float:
            # u = sqrt(distance - t): e^(t - distance) Q[L > t], with Q[L > t] = (2/pi) arctan(e^-d y).
            t = -u * u
            y2 = -math.expm1(t) / (math.exp(t) * -math.expm1(-(2 * distance + t)))
            scaled = math.atan(math.exp(-distance) * math.sqrt(y2)) * math.exp(min(distance, 300.0))
            return 2.0 / math.pi * 2.0 * u * math.exp(t) * scaled

        if distance > 300.0:
            continue  # e^distance is no double: only finite values are asked for below
        # delta(eps) is the integral of e^t Q[L > t] from eps to the largest loss.
        expected, _ = integrate.quad(exceeds, 0.0, math.sqrt(distance * below), epsabs=0.0, epsrel=1e-12)
        assert pair.delta(epsilon) == pytest.approx(expected, rel=1e-9)
        assert pair.epsilon(expected) == pytest.approx(epsilon, rel=1e-8, abs=1e-13)
    assert pair.delta(distance) == 0.0
    assert 0.0 < pair.delta(0.0) <= 1.0  # 1 - (4 / pi) e^(-distance / 2)
    assert pair.delta(-distance / 2) >= -math.expm1(-distance / 2)


@pytest.mark.parametrize("pair", CAUCHY_PAIRS)
def test_cauchy_tradeoff_is_the_best_interval(pair: tuple[CauchyLaw, CauchyLaw]) -> None:
    found = curve(*pair)
    q = np.array([1e-9, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-9])
    cap = found.tradeoff(q)
    # The dual: inf over eps of delta(eps) + e^eps q, attained between -epsilon(0) and epsilon(0).
    grid = np.linspace(-found.epsilon(0.0), found.epsilon(0.0), 4001)
    lines = np.array([found.delta(float(e)) for e in grid])[:, None] + np.exp(grid)[:, None] * q
    # The grid misses the best line by a second-order term: step^2 / 8 of a function whose second derivative is at most
    # a few units.
    np.testing.assert_allclose(cap, lines.min(axis=0), atol=5.0 * float(grid[1] - grid[0]) ** 2)
    assert np.all(cap <= lines.min(axis=0) + 1e-12)
    np.testing.assert_array_equal(found.tradeoff([0.0, 1.0]), [0.0, 1.0])
    np.testing.assert_allclose(found.tradeoff(1 - cap), 1 - q, atol=1e-12)


@pytest.mark.parametrize("distance", [1e-3, 0.1, 1.0, 5.0, 20.0])
def test_cauchy_mu_is_attained_in_the_middle(distance: float) -> None:
    found = CauchyCurve(distance)
    v = np.linspace(-40.0, 40.0, 160_001)

    def score(w: FloatArray) -> FloatArray:
        size = 2 / math.pi * np.arctan(np.exp(-np.abs(w)))
        return np.asarray(-np.sign(w) * special.ndtri(size), dtype=np.float64)

    gaps = score(v + distance) - score(v)
    # Scores come from the smaller tail: an error of 1e-16 of it moves the score by less than 1e-14.
    assert float(gaps.max()) <= found.mu() + 1e-11
    assert float(gaps.max()) == pytest.approx(found.mu(), rel=1e-6)


def test_the_normal_score_of_a_cauchy_tail_is_concave() -> None:
    # What `CauchyCurve.mu` rests on: v -> Phi^-1((2/pi) arctan(e^v)) is concave for v > 0.
    v = np.linspace(0.0, 100.0, 20_001)
    scores = -special.ndtri(2 / math.pi * np.arctan(np.exp(-v)))
    # The second derivative is about -(2 v)^(-3/2), so second differences are below -1e-4 * 2.5e-5 but next to 0, where
    # the function is odd; rounding of scores of up to 15 is 1e-14.
    assert np.all(np.diff(scores, 2) < 1e-14)
    assert np.all(np.diff(scores[::40], 2) < 0.0)


# --------------------------------------------------------------------------------- discrete Gaussian


def log_weights(sigma: float, centre: int, k: FloatArray) -> FloatArray:
    log_weight = -((k - centre) ** 2) / (2 * sigma**2)
    return np.asarray(log_weight - special.logsumexp(log_weight), dtype=np.float64)


@pytest.mark.parametrize(("shift", "sigma"), [(1, 0.4), (1, 1.0), (3, 2.0), (5, 17.3), (2, 300.0)])
def test_discrete_gaussian_against_plain_sums(shift: int, sigma: float) -> None:
    pair = curve(DiscreteGaussianLaw(7, sigma, 0.5), DiscreteGaussianLaw(7 - shift, sigma, 0.5))
    reach = math.ceil(30 * sigma) + 30
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    log_p, log_q = log_weights(sigma, 0, k), log_weights(sigma, shift, k)
    p, q = np.exp(log_p), np.exp(log_q)
    for epsilon in EPSILONS:
        assert pair.delta(epsilon) == pytest.approx(brute_delta(p, q, epsilon), abs=1e-12)
    for delta in (1e-3, 1e-9, 1e-15):
        assert pair.delta(pair.epsilon(delta)) == pytest.approx(delta, rel=1e-9)
    assert pair.epsilon(0.0) == math.inf
    # Scores from both tails, in logarithms, out to 25 standard deviations: further than the curve looks.
    below_p, below_q = np.logaddexp.accumulate(log_p), np.logaddexp.accumulate(log_q)
    # The gaps are symmetric about thresholds between the centres.
    inner = (k >= -25 * sigma - 5) & (k <= shift / 2)
    gaps = special.ndtri_exp(below_p[inner]) - special.ndtri_exp(below_q[inner])
    assert pair.mu() == pytest.approx(float(gaps.max()), rel=1e-9)
    for order in (1.1, 2.0, 3.5, 40.0):
        expected = float(special.logsumexp(order * log_p + (1 - order) * log_q)) / (order - 1)
        # The tilted sum is centred (order - 1) shift to the left, which the list reaches for the small orders only.
        if (order - 1) * shift + 10 * sigma < reach:
            assert pair.renyi(order) == pytest.approx(expected, rel=1e-11)
        assert pair.renyi(order) <= order * shift**2 / (2 * sigma**2) * (1 + 1e-15)
    assert pair.renyi(math.inf) == math.inf


def test_discrete_gaussian_on_a_fine_lattice_is_gaussian_and_quick() -> None:
    sigma = 100_000
    begun = time.process_time()
    pair = curve(DiscreteGaussianLaw(0, sigma), DiscreteGaussianLaw(sigma, sigma))
    gaussian = GaussianCurve(1.0)
    # The lattice step is 1e-5 standard deviations; a threshold moved by half of it moves delta by less than 1e-5.
    for epsilon in (0.0, 1.0, 3.0):
        assert pair.delta(epsilon) == pytest.approx(gaussian.delta(epsilon), abs=1e-9)
    assert pair.epsilon(1e-6) == pytest.approx(gaussian.epsilon(1e-6), abs=1e-8)
    assert pair.mu() == pytest.approx(1.0, abs=1e-5)
    assert pair.renyi(8.0) == 4.0
    assert time.process_time() - begun < 30.0  # 2 seconds; the bound is for a machine that is busy


@pytest.mark.parametrize(("shift", "sigma"), [(1, 1.0), (4, 6.0)])
def test_discrete_gaussian_between_dp_accountings_bounds(shift: int, sigma: float) -> None:
    pair = DiscreteGaussianCurve(shift, sigma)
    below, above = (
        pld.from_discrete_gaussian_mechanism(
            sigma, sensitivity=shift, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic
        )
        for pessimistic in (False, True)
    )
    for epsilon in (0.0, 0.5, 2.0):
        # 1e-12: their sums' rounding.
        assert below.get_delta_for_epsilon(epsilon) - 1e-12 <= pair.delta(epsilon)
        assert pair.delta(epsilon) <= above.get_delta_for_epsilon(epsilon) + 1e-12


def test_discrete_gaussian_law() -> None:
    for sigma in (0.001, 0.3, 1.0, 12.5):
        law = DiscreteGaussianLaw(3, sigma, 0.25)
        k = np.arange(-300, 301)
        expected = np.exp(log_weights(sigma, 3, k.astype(np.float64)))
        # Exponents of up to 100 carry rounding of 1e-14; what is beyond the table is less than 1e-40.
        np.testing.assert_allclose(law.pmf(0.25 * k), expected, rtol=1e-13, atol=1e-40)
        np.testing.assert_allclose(law.cdf(0.25 * k + 0.1), np.cumsum(expected), rtol=1e-11, atol=1e-13)
        # Relative accuracy in the lower tail.
        np.testing.assert_allclose(law.cdf(0.25 * k[:303]), np.cumsum(expected[:303]), rtol=1e-12, atol=1e-40)
    law = DiscreteGaussianLaw(3, 2.0, 0.25)
    np.testing.assert_array_equal(law.pmf([0.1, math.inf, -math.inf, 1e9]), 0.0)
    np.testing.assert_array_equal(law.cdf([-math.inf, -1e9, 1e9, math.inf]), [0.0, 0.0, 1.0, 1.0])
    assert law.cdf(0.7499) < law.cdf(0.75) == law.cdf(0.9)


def test_cauchy_law() -> None:
    x = np.array([-1e30, -2.5, 0.0, 0.4, 3.0, 1e5])
    np.testing.assert_allclose(CauchyLaw(0.4, 2.0).cdf(x), stats.cauchy.cdf(x, 0.4, 2.0), rtol=1e-14)
    np.testing.assert_array_equal(CauchyLaw(0.4, 2.0).cdf([-math.inf, math.inf]), [0.0, 1.0])


# ------------------------------------------------------------------------------- unequal geometric


@pytest.mark.parametrize(("a", "b", "shift"), [(1.5, 2.0, 0), (1.5, 2.0, 3), (math.e, 1.2, -2)])
def test_geometric_laws_of_different_bases_against_plain_sums(a: float, b: float, shift: int) -> None:
    pair = curve(TwoSidedGeometricLaw(4, a, 2.0), TwoSidedGeometricLaw(4 + shift, b, 2.0))
    k = np.arange(-400, 401, dtype=np.float64)
    p = a ** -np.abs(k) * (a - 1) / (a + 1)
    q = b ** -np.abs(k - shift) * (b - 1) / (b + 1)
    for epsilon in EPSILONS:
        assert pair.delta(epsilon) == pytest.approx(brute_delta(p, q, epsilon), abs=1e-12)
    assert pair.epsilon(0.0) == math.inf
    assert pair.mu() == math.inf
    assert pair.delta(pair.epsilon(1e-12)) == pytest.approx(1e-12, rel=1e-9)


# --------------------------------------------------------------------------------- Renyi divergence


@pytest.mark.parametrize("order", [1.0001, 1.5, 2.0, 7.0, 32.0])
@pytest.mark.parametrize("shift", [0.05, 1.0, 4.0])
def test_renyi_of_densities_is_the_integral_of_its_definition(order: float, shift: float) -> None:
    pairs: list[tuple[PrivacyCurve, Callable[[float], float], Callable[[float], float], list[float]]] = [
        (
            curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(shift, 1.0)),
            lambda x: float(stats.laplace.logpdf(x)),
            lambda x: float(stats.laplace.logpdf(x, shift)),
            [-60.0, 0.0, shift, 60.0 + shift],
        ),
        (
            curve(GaussianLaw(0.0, 1.0), GaussianLaw(shift, 1.0)),
            lambda x: float(stats.norm.logpdf(x)),
            lambda x: float(stats.norm.logpdf(x, shift)),
            # The tilted distribution is a normal one around -(order - 1) shift.
            [-(order - 1) * shift - 12.0, -(order - 1) * shift, -(order - 1) * shift + 12.0],
        ),
        (
            curve(CauchyLaw(0.0, 1.0), CauchyLaw(shift, 2.0)),
            # On the angle x = tan(t), where both densities are smooth and bounded.
            lambda t: -math.log(math.pi),
            lambda t: math.log(2 / math.pi) - math.log(4 * math.cos(t) ** 2 + (math.sin(t) - shift * math.cos(t)) ** 2),
            [-math.pi / 2, -0.5, 0.0, 0.5, math.pi / 2],
        ),
    ]
    for pair, log_p, log_q, cuts in pairs:
        scale = pair.renyi(order) * (order - 1)  # keeps the integrand within the doubles

        def integrand(x: float) -> float:
            return math.exp(order * log_p(x) + (1 - order) * log_q(x) - scale)  # noqa: B023

        total = sum(
            integrate.quad(integrand, a, b, epsabs=0.0, epsrel=1e-13, limit=400)[0] for a, b in itertools.pairwise(cuts)
        )
        # The integral is 1 if the curve is right; cuts leave e^-60, quadrature 1e-12.
        assert total == pytest.approx(1.0, abs=2e-11)


def test_renyi_of_a_cauchy_pair_is_a_legendre_polynomial_and_rounded_up() -> None:
    for distance in (0.1, 1.0, 6.0, 200.0):
        x = math.cosh(distance)
        pair = CauchyCurve(distance)
        for order, value in ((2.0, x), (3.0, (3 * x * x - 1) / 2), (4.0, (5 * x**3 - 3 * x) / 2)):
            expected = math.log(value) / (order - 1)
            assert expected * (1 - 4e-16) <= pair.renyi(order) <= expected + 1e-13 * (1 + distance)
        assert pair.renyi(math.inf) == pair.renyi(1e7) == distance


FAMILIES: list[PrivacyCurve] = [
    LaplaceCurve(1.3),
    GaussianCurve(1.3),
    CauchyCurve(1.3),
    DiscreteGaussianCurve(1, 0.7),
    curve(TwoSidedGeometricLaw(0, 1.5), TwoSidedGeometricLaw(3, 1.5)),
    curve(finite(np.array([0.7, 0.2, 0.1])), finite(np.array([0.2, 0.5, 0.3]))),
]


@pytest.mark.parametrize("pair", FAMILIES)
def test_renyi_grows_with_the_order_towards_the_largest_loss(pair: PrivacyCurve) -> None:
    orders = [1 + 1e-6, 1.01, 1.5, 2.0, 3.0, 8.0, 64.0, 1e3, 1e5]
    values = [pair.renyi(order) for order in orders]
    assert all(one <= two * (1 + 1e-9) for one, two in itertools.pairwise(values))
    largest = pair.epsilon(0.0)
    if math.isfinite(largest):
        assert pair.renyi(math.inf) == pytest.approx(largest, rel=1e-12)
        assert all(value <= largest * (1 + 1e-12) for value in values)
        # D_a >= l + ln P[L > l] / (a - 1) and P[L > l] >= delta(l), here with l a hundredth below the largest loss.
        below = 0.99 * largest
        assert values[-1] >= below + math.log(pair.delta(below)) / (orders[-1] - 1)
    # Markov's inequality turns an order into (eps, delta): delta(eps) <= exp((a - 1) (D_a - eps)).
    for order, value in zip(orders[3:6], values[3:6], strict=True):
        for epsilon in (0.5, 1.0, 2.0):
            assert pair.delta(epsilon) <= math.exp((order - 1) * (value - epsilon)) + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a6_and_the_expected_loss(epsilon: float) -> None:
    """Max total variation tanh(eps/2) and max KL eps tanh(eps/2) of eps-DP pairs, attained by randomised response."""
    p = 1 / (1 + math.exp(-epsilon))
    response = curve(finite(np.array([p, 1 - p])), finite(np.array([1 - p, p])))
    near_one = 1 + 1e-7  # D_a - KL is at most (a - 1) eps^2 / 2 (Bun and Steinke 2016): below 5e-7
    assert response.delta(0.0) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
    assert response.renyi(near_one) == pytest.approx(epsilon * math.tanh(epsilon / 2), abs=1e-6)
    laplace = LaplaceCurve(epsilon)
    assert laplace.renyi(near_one) == pytest.approx(epsilon - 1 + math.exp(-epsilon), abs=1e-6)
    for pair in (laplace, CauchyCurve(epsilon)):
        assert pair.delta(0.0) <= math.tanh(epsilon / 2)
        for order in (near_one, 2.0, 10.0):
            assert pair.renyi(order) <= response.renyi(order) + 1e-9


def test_golden_values_of_the_catalogue() -> None:
    # gaussian_counting_query: sigma 3.7306 for eps = 1, delta = 1e-5 (four decimals: delta moves by 2e-8).
    assert GaussianCurve(1 / 3.7306).delta(1.0) == pytest.approx(1e-5, rel=1e-3)
    # discrete_laplace_lattice, eps = 0.5 at E = 0: lattice 0.2449, continuous 0.2212.
    a = math.exp(0.5)
    lattice = curve(TwoSidedGeometricLaw(0, a), TwoSidedGeometricLaw(1, a))
    assert lattice.delta(0.0) == pytest.approx(0.2449, abs=5e-5)
    assert LaplaceCurve(0.5).delta(0.0) == pytest.approx(0.2212, abs=5e-5)


@settings(max_examples=100, deadline=None)
@given(pairs_of_masses, st.floats(1.01, 50.0))
def test_renyi_of_finite_pairs(pq: tuple[FloatArray, FloatArray], order: float) -> None:
    p, q = pq
    pair = curve(finite(p), finite(q))
    expected = max(math.log(float((x**order * y ** (1 - order)).sum())) / (order - 1) for x, y in ((p, q), (q, p)))
    # The logarithm of a number near 1 loses digits: 1e-16 / (order - 1), and sums of masses are 1 within 1e-15.
    assert pair.renyi(order) == pytest.approx(max(0.0, expected), rel=1e-9, abs=1e-12)
    assert pair.renyi(order) <= pair.renyi(2 * order) + 1e-12
    # Data processing: merging two outcomes never raises it.
    merged = [finite(np.concatenate([[m[0] + m[1]], m[2:]])) for m in (p, q)]
    assert curve(*merged).renyi(order) <= pair.renyi(order) + 1e-12


def test_renyi_is_infinite_where_one_law_has_no_mass() -> None:
    leak = curve(finite(np.array([0.02, 0.98])), finite(np.array([0.0, 1.0])))
    assert leak.renyi(2.0) == math.inf
    # The other order is finite: ln(1 / 0.98) for every order.
    assert min(leak.renyi_by_order(2.0)) == pytest.approx(-math.log(0.98))  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("pair", FAMILIES)
def test_curves_refuse(pair: PrivacyCurve) -> None:
    for ask in (
        lambda: pair.delta(math.nan),
        lambda: pair.epsilon(-0.1),
        lambda: pair.tradeoff([0.5, 1.1]),
        lambda: pair.renyi(1.0),
        lambda: pair.renyi(math.nan),
    ):
        with pytest.raises(ValueError, match=r"expected .* got"):
            ask()


def test_laws_refuse() -> None:
    bad: list[Callable[[], object]] = [
        lambda: CauchyLaw(math.inf, 1.0),
        lambda: CauchyLaw(0.0, 0.0),
        lambda: DiscreteGaussianLaw(0.5, 1.0),  # type: ignore[arg-type]
        lambda: DiscreteGaussianLaw(0, 0.0),
        lambda: DiscreteGaussianLaw(0, 1e6),
        lambda: DiscreteGaussianLaw(0, 1.0, -1.0),
        lambda: DiscreteGaussianCurve(0, 1.0),
        lambda: DiscreteGaussianCurve(2**22, 1.0).delta(1.0),
        lambda: curve(TwoSidedGeometricLaw(0, 1 + 1e-6), TwoSidedGeometricLaw(0, 2.0)),
    ]
    for build in bad:
        with pytest.raises(ValueError, match=r"expected .* got"):
            build()
