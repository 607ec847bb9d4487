"""Exact privacy curves against independent computations."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from auditor.privacy.exact import (
    DiscreteGaussianLaw,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    LossCurve,
    PrivacyCurve,
    ProductLaw,
    TwoSidedGeometricLaw,
    curve,
)
from auditor.privacy.laws import FloatArray

SHIFTS = [0.1, 0.5, 1.0, 2.0, 7.5]
EPSILONS = [-3.0, -0.7, 0.0, 0.05, 0.3, 0.9, 1.7, 4.0]


def finite(*masses: float) -> FiniteLaw:
    return FiniteLaw(tuple(range(len(masses))), np.array(masses))


def brute_delta(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """The definition, in both orders."""
    e = math.exp(epsilon)
    return max(float(np.maximum(0.0, p - e * q).sum()), float(np.maximum(0.0, q - e * p).sum()))


# ---------------------------------------------------------------------------------- A1 Laplace


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_delta_is_the_integral_of_its_definition(shift: float, epsilon: float) -> None:
    scale = 1.7
    pair = curve(LaplaceLaw(3.0, scale), LaplaceLaw(3.0 + shift * scale, scale))

    def excess(x: float) -> float:
        p = 0.5 * math.exp(-abs(x))
        return max(0.0, p - math.exp(epsilon) * 0.5 * math.exp(-abs(x - shift)))

    # The integrand has its kinks at 0, at the shift and where the loss crosses epsilon.
    kinks = sorted({-60.0, 0.0, shift, 60.0 + shift, min(max((shift - epsilon) / 2, -60.0), 60.0)})
    total = sum(integrate.quad(excess, a, b, epsabs=1e-14, epsrel=1e-13)[0] for a, b in itertools.pairwise(kinks))
    assert pair.delta(epsilon) == pytest.approx(total, abs=1e-12)


def test_laplace_levels() -> None:
    pair = curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(1.0, 1.0))
    assert pair.epsilon(0.0) == 1.0
    assert pair.epsilon(pair.delta(0.4)) == pytest.approx(0.4, abs=1e-14)
    assert pair.epsilon(1.0) == 0.0
    # design.md, section 3: "Laplace noise with eps = 1 has mu = 1.03".
    assert pair.mu() == pytest.approx(1.0300639976, abs=1e-9)
    q = np.linspace(1e-9, 1 - 1e-9, 200_001)
    scores = special.ndtri(pair.tradeoff(q)) - special.ndtri(q)
    assert pair.mu() == pytest.approx(float(scores.max()), abs=1e-7)


# --------------------------------------------------------------------------------- A2 Gaussian


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_delta_is_its_formula(shift: float, epsilon: float) -> None:
    pair = curve(GaussianLaw(-1.0, 2.0), GaussianLaw(-1.0 + 2.0 * shift, 2.0))
    a, b = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    formula = stats.norm.cdf(a) - math.exp(epsilon) * stats.norm.cdf(b)
    assert pair.delta(epsilon) == pytest.approx(formula, abs=1e-12)


def test_gaussian_far_tail_is_accurate_relatively() -> None:
    # delta(eps) = integral of (1 - e^(eps - loss)) over loss > eps, with loss ~ N(1/2, 1).
    pair = curve(GaussianLaw(0.0, 1.0), GaussianLaw(1.0, 1.0))
    for epsilon in (5.0, 12.0, 25.0):
        value, _ = integrate.quad(
            lambda z, e=epsilon: -math.expm1(-z) * math.exp(-0.5 * (z + e - 0.5) ** 2 + 0.5 * (e - 0.5) ** 2),
            0.0,
            20.0,
            epsabs=0.0,
            epsrel=1e-12,
        )
        expected = value * math.exp(-0.5 * (epsilon - 0.5) ** 2) / math.sqrt(2 * math.pi)
        assert pair.delta(epsilon) == pytest.approx(expected, rel=1e-10)
        assert pair.epsilon(expected) == pytest.approx(epsilon, rel=1e-11)
    assert pair.delta(1e4) == 0.0
    assert pair.delta(math.inf) == 0.0


def test_gaussian_levels() -> None:
    pair = curve(GaussianLaw(0.0, 2.0), GaussianLaw(3.0, 2.0))
    assert pair.mu() == 1.5
    assert pair.epsilon(0.0) == math.inf
    assert pair.epsilon(1.0) == 0.0
    q = np.array([0.0, 1e-4, 0.5, 1.0])
    expected = [0.0, stats.norm.cdf(stats.norm.ppf(1e-4) + 1.5), stats.norm.cdf(1.5), 1.0]
    np.testing.assert_allclose(pair.tradeoff(q), expected, atol=1e-13)


# -------------------------------------------------------------------------------- A3 geometric


@pytest.mark.parametrize("shift", [1, 2, 3, 10])
@pytest.mark.parametrize("a", [1.05, math.e, 40.0])
def test_geometric_delta_is_the_plain_sum(shift: int, a: float) -> None:
    pair = curve(TwoSidedGeometricLaw(5, a), TwoSidedGeometricLaw(5 - shift, a))
    reach = math.ceil(40 / math.log(a)) + shift  # leaves e^-40 of mass on either side
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    p = a ** -np.abs(k) * (a - 1) / (a + 1)
    q = a ** -np.abs(k - shift) * (a - 1) / (a + 1)
    for epsilon in EPSILONS:
        assert pair.delta(epsilon) == pytest.approx(brute_delta(p, q, epsilon), abs=1e-12)
    assert pair.epsilon(0.0) == pytest.approx(shift * math.log(a), rel=1e-14)


def test_geometric_shift_one_is_randomised_response() -> None:
    a = 3.0
    pair = curve(TwoSidedGeometricLaw(0, a), TwoSidedGeometricLaw(1, a))
    for epsilon in (0.0, 0.4, 1.0):
        assert pair.delta(epsilon) == pytest.approx((a - math.exp(epsilon)) / (1 + a), abs=1e-15)


def test_geometric_fine_lattice_approaches_laplace() -> None:
    steps = 4096
    law = TwoSidedGeometricLaw(0, math.exp(1 / steps), 1 / steps)
    pair = curve(law, TwoSidedGeometricLaw(steps, law.a, law.step))
    laplace = curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(1.0, 1.0))
    for epsilon in (0.0, 0.5, 0.9):
        assert pair.delta(epsilon) == pytest.approx(laplace.delta(epsilon), abs=1e-7)


# -------------------------------------------------------------------- A4 and products of distributions


@pytest.mark.parametrize("k", [1, 2, 7, 60])
def test_k_fold_randomised_response_is_the_binomial_sum(k: int) -> None:
    e = 0.3
    p = math.exp(e) / (1 + math.exp(e))
    one, other = finite(p, 1 - p), finite(1 - p, p)
    pair = curve(ProductLaw((one,) * k), ProductLaw((other,) * k))
    j = np.arange(k + 1)
    up, down = stats.binom.pmf(j, k, p), stats.binom.pmf(j, k, 1 - p)
    for epsilon in EPSILONS:
        assert pair.delta(epsilon) == pytest.approx(brute_delta(up, down, epsilon), abs=1e-12)
    assert pair.epsilon(0.0) == pytest.approx(k * e, rel=1e-12)
    assert isinstance(pair, LossCurve)
    assert pair.loss.size == k + 1


def test_products_drop_equal_coordinates_and_combine_gaussians() -> None:
    same, lap = finite(0.25, 0.75), (LaplaceLaw(0.0, 1.0), LaplaceLaw(0.5, 1.0))
    pair = curve(ProductLaw((same, lap[0], LaplaceLaw(0, 9))), ProductLaw((same, lap[1], LaplaceLaw(0, 9))))
    assert pair.epsilon(0.0) == 0.5
    three = ProductLaw(tuple(GaussianLaw(0.0, 2.0) for _ in range(3)))
    moved = ProductLaw((GaussianLaw(6.0, 2.0), GaussianLaw(0.0, 2.0), GaussianLaw(8.0, 2.0)))
    assert curve(three, moved).mu() == pytest.approx(5.0, rel=1e-15)
    assert curve(three, three).epsilon(0.0) == 0.0
    assert curve(three, pickle.loads(pickle.dumps(three))).epsilon(0.0) == 0.0


def test_product_with_infinite_losses() -> None:
    p, q = finite(0.5, 0.5), finite(0.25, 0.75)
    a, b = finite(0.1, 0.9, 0.0), finite(0.0, 0.8, 0.2)
    pair = curve(ProductLaw((p, a)), ProductLaw((q, b)))
    both_p = np.outer(p.probabilities, a.probabilities).ravel()
    both_q = np.outer(q.probabilities, b.probabilities).ravel()
    for epsilon in EPSILONS:
        assert pair.delta(epsilon) == pytest.approx(brute_delta(both_p, both_q, epsilon), abs=1e-14)
    assert pair.epsilon(0.1999) == math.inf
    assert pair.mu() == math.inf


# -------------------------------------------------------------------- dp-accounting as referee


@pytest.mark.parametrize("shift", [0.5, 1.0, 3.0])
def test_between_dp_accountings_bounds(shift: float) -> None:
    cases = [
        (pld.from_laplace_mechanism, curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(shift, 1.0))),
        (pld.from_gaussian_mechanism, curve(GaussianLaw(0.0, 1.0), GaussianLaw(shift, 1.0))),
    ]
    for build, pair in cases:
        below, above = (
            build(1.0, sensitivity=shift, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic)
            for pessimistic in (False, True)
        )
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            exact = pair.delta(epsilon)
            # 1e-10: tails their Gaussian drops (log mass -50) and their rounding.
            assert below.get_delta_for_epsilon(epsilon) - 1e-10 <= exact
            assert exact <= above.get_delta_for_epsilon(epsilon) + 1e-10


def test_two_laplace_coordinates_through_a_fine_lattice_against_dp_accounting() -> None:
    steps = 64
    law = TwoSidedGeometricLaw(0, math.exp(1 / steps))
    moved = TwoSidedGeometricLaw(steps, law.a)
    pair = curve(ProductLaw((law, law)), ProductLaw((moved, moved)))
    reference = pld.from_laplace_mechanism(1.0, value_discretization_interval=1e-4).self_compose(2)
    for epsilon in (0.0, 0.5, 1.5):
        assert pair.delta(epsilon) == pytest.approx(reference.get_delta_for_epsilon(epsilon), abs=2e-4)


# --------------------------------------------------------------------------- finite distributions, rules


def masses(size: int) -> st.SearchStrategy[FloatArray]:
    weight = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    return (
        st.lists(weight, min_size=size, max_size=size)
        .filter(lambda w: sum(w) > 0.1)
        .map(lambda w: np.array(w) / np.sum(w))
    )


pairs_of_masses = st.integers(1, 6).flatmap(lambda n: st.tuples(masses(n), masses(n)))


@settings(max_examples=150, deadline=None)
@given(pairs_of_masses, st.floats(-4.0, 6.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_finite_pairs_satisfy_every_definition(
    pq: tuple[FloatArray, FloatArray], epsilon: float, delta: float, q: float
) -> None:
    p_mass, q_mass = pq
    labels = tuple(f"outcome {i}" for i in range(p_mass.size))
    law_p, law_q = FiniteLaw(labels, p_mass), FiniteLaw(labels[::-1], q_mass[::-1])
    pair = curve(law_p, law_q)
    assert pair.delta(epsilon) == pytest.approx(brute_delta(p_mass, q_mass, epsilon), abs=1e-12)
    # epsilon is the generalised inverse of delta.
    level = pair.epsilon(delta)
    if math.isfinite(level):
        assert pair.delta(level) <= delta + 1e-12
        if level > 1e-6:
            assert pair.delta(level - 1e-6) >= delta - 1e-12
    else:
        assert pair.delta(60.0) > delta
    # No test, in either order, beats the cap, and the cap agrees with delta.
    cap = float(pair.tradeoff(np.array([q]))[0])
    assert cap - math.exp(epsilon) * q <= pair.delta(epsilon) + 1e-12
    subsets = np.array(list(itertools.product([0.0, 1.0], repeat=p_mass.size)))
    for power, size in ((subsets @ p_mass, subsets @ q_mass), (subsets @ q_mass, subsets @ p_mass)):
        assert np.all(power <= pair.tradeoff(np.clip(size, 0, 1)) + 1e-12)
    # Data processing: merging two outcomes never raises delta.
    if p_mass.size > 1:
        merged = [np.concatenate([[m[0] + m[1]], m[2:]]) for m in (p_mass, q_mass)]
        coarse = curve(finite(*merged[0]), finite(*merged[1]))
        assert coarse.delta(epsilon) <= pair.delta(epsilon) + 1e-12


@settings(max_examples=60, deadline=None)
@given(pairs_of_masses)
def test_tradeoff_is_a_concave_cap_and_mu_is_its_level(pq: tuple[FloatArray, FloatArray]) -> None:
    pair = curve(finite(*pq[0]), finite(*pq[1]))
    q = np.linspace(0.0, 1.0, 1001)
    cap = pair.tradeoff(q)
    assert np.all(np.diff(cap) >= -1e-14)
    assert np.all(np.diff(cap, 2) <= 1e-12)
    assert np.all(cap >= q - 1e-12)
    assert cap[-1] == 1.0
    mu = pair.mu()
    if math.isfinite(mu):
        assert np.all(cap <= special.ndtr(special.ndtri(q) + mu) + 1e-12)
        # Attained: it is the best over all deterministic tests, here by enumeration.
        subsets = np.array(list(itertools.product([0.0, 1.0], repeat=pq[0].size)))
        power, size = subsets @ pq[0], subsets @ pq[1]
        inner = (size > 1e-9) & (size < 1 - 1e-9)
        scores = special.ndtri(power[inner]) - special.ndtri(size[inner])
        assert mu == pytest.approx(float(np.max(scores, initial=0.0)), abs=1e-7)
    else:
        assert pair.delta(60.0) > 0.0


@pytest.mark.parametrize(
    "pair",
    [
        curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(1.3, 1.0)),
        curve(GaussianLaw(0.0, 1.0), GaussianLaw(1.3, 1.0)),
        curve(TwoSidedGeometricLaw(0, 1.5), TwoSidedGeometricLaw(3, 1.5)),
        curve(finite(0.7, 0.2, 0.1), finite(0.1, 0.2, 0.7)),
    ],
)
def test_symmetry_rule_and_duality(pair: PrivacyCurve) -> None:
    for epsilon in (0.1, 0.8, 2.0):
        mirrored = 1 - math.exp(epsilon) + math.exp(epsilon) * pair.delta(-epsilon)
        assert pair.delta(epsilon) == pytest.approx(mirrored, abs=1e-12)
    # delta is the best linear test against the cap, and the cap is its own reflection.
    q = np.linspace(0.0, 1.0, 200_001)
    for epsilon in (0.0, 0.5, 1.0):
        best = float(np.max(pair.tradeoff(q) - math.exp(epsilon) * q))
        assert best <= pair.delta(epsilon) + 1e-12
        # The best corner lies between two grid points; slopes there are at most 7 (finite pair).
        assert best >= pair.delta(epsilon) - 7 * q[1]
    p = pair.tradeoff(q)
    inner = (q > 1e-3) & (p < 1 - 1e-9)
    np.testing.assert_allclose(pair.tradeoff(1 - p[inner]), 1 - q[inner], atol=1e-9)


def test_asymmetric_pair_uses_the_concave_hull_of_both_orders() -> None:
    pair = curve(finite(0.5, 0.5), finite(0.1, 0.9))
    # Corners of the orders: (.1, .5) and (.5, .9); the hull joins them.
    np.testing.assert_allclose(pair.tradeoff([0.05, 0.1, 0.3, 0.5, 0.75]), [0.25, 0.5, 0.7, 0.9, 0.95], atol=1e-15)


def test_infinite_cases() -> None:
    disjoint = curve(FiniteLaw(("a",), np.ones(1)), FiniteLaw(("b",), np.ones(1)))
    assert disjoint.delta(5.0) == 1.0
    assert disjoint.delta(math.inf) == 1.0
    assert disjoint.epsilon(0.0) == math.inf
    assert disjoint.epsilon(1.0) == 0.0
    assert disjoint.mu() == math.inf
    np.testing.assert_array_equal(disjoint.tradeoff([0.0, 0.5, 1.0]), 1.0)
    leak = curve(finite(0.02, 0.49, 0.49), finite(0.0, 0.5, 0.5))
    assert leak.epsilon(0.01) == math.inf
    assert leak.epsilon(0.03) == 0.0
    assert leak.delta(math.inf) == pytest.approx(0.02)
    # Masses far below the smallest double in the product: the losses survive.
    tiny = finite(1e-300, 1 - 1e-300), finite(1e-299, 1 - 1e-299)
    deep = curve(ProductLaw((tiny[0],) * 4), ProductLaw((tiny[1],) * 4))
    assert deep.epsilon(0.0) <= 4 * math.log(10) * (1 + 1e-12)


def test_cdf_of_the_laws() -> None:
    x = np.array([-2.5, 0.0, 0.4, 3.0])
    np.testing.assert_allclose(LaplaceLaw(0.4, 2.0).cdf(x), stats.laplace.cdf(x, 0.4, 2.0), rtol=1e-14)
    np.testing.assert_allclose(GaussianLaw(0.4, 2.0).cdf(x), stats.norm.cdf(x, 0.4, 2.0), rtol=1e-14)
    law = TwoSidedGeometricLaw(1, 2.0, 0.5)
    np.testing.assert_allclose(law.cdf(x), stats.dlaplace.cdf(np.floor(x / 0.5) - 1, math.log(2)), rtol=1e-14)


# ------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("outcomes", "probabilities"),
    [
        ((0, 1), [0.5, 0.6]),
        ((0, 1), [1.5, -0.5]),
        ((0, 0), [0.5, 0.5]),
        ((0, 1), [1.0]),
        ((), []),
        ((0, 1), [math.nan, 1.0]),
    ],
)
def test_finite_law_refuses(outcomes: tuple[int, ...], probabilities: list[float]) -> None:
    with pytest.raises(ValueError, match=r"expected .* got"):
        FiniteLaw(outcomes, np.array(probabilities))


def test_other_laws_refuse() -> None:
    bad: list[Callable[[], object]] = [
        lambda: LaplaceLaw(0.0, 0.0),
        lambda: LaplaceLaw(math.nan, 1.0),
        lambda: GaussianLaw(0.0, -1.0),
        lambda: TwoSidedGeometricLaw(0, 1.0),
        lambda: TwoSidedGeometricLaw(0.5, 2.0),  # type: ignore[arg-type]
        lambda: TwoSidedGeometricLaw(0, 2.0, 0.0),
        lambda: ProductLaw(()),
    ]
    for build in bad:
        with pytest.raises(ValueError, match=r"expected .* got"):
            build()


def test_unsupported_pairs_name_both_laws() -> None:
    lap, geo = LaplaceLaw(0.0, 1.0), TwoSidedGeometricLaw(0, 2.0)
    unsupported: list[tuple[Law, Law]] = [
        (lap, LaplaceLaw(0.0, 2.0)),
        (lap, geo),
        (geo, TwoSidedGeometricLaw(0, 2.0, 0.5)),
        (DiscreteGaussianLaw(0, 1.0), DiscreteGaussianLaw(1, 2.0)),
        (GaussianLaw(0.0, 1.0), GaussianLaw(0.0, 2.0)),
        (ProductLaw((lap, lap)), ProductLaw((lap,))),
        (ProductLaw((lap, lap)), ProductLaw((LaplaceLaw(1.0, 1.0), LaplaceLaw(1.0, 2.0)))),
    ]
    for p, q in unsupported:
        with pytest.raises(ValueError, match=r"no exact privacy curve.*Law\("):
            curve(p, q)
    near, far = (TwoSidedGeometricLaw(loc, 1.001) for loc in (0, 2**23))
    with pytest.raises(ValueError, match="shift of at most"):
        curve(near, far)


@pytest.mark.parametrize(
    "pair",
    [
        curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(1.0, 1.0)),
        curve(GaussianLaw(0.0, 1.0), GaussianLaw(1.0, 1.0)),
        curve(finite(0.5, 0.5), finite(0.4, 0.6)),
    ],
)
def test_curves_refuse(pair: PrivacyCurve) -> None:
    for ask in (
        lambda: pair.delta(math.nan),
        lambda: pair.epsilon(-0.1),
        lambda: pair.epsilon(math.nan),
        lambda: pair.tradeoff([0.5, 1.1]),
    ):
        with pytest.raises(ValueError, match=r"expected .* got"):
            ask()


@pytest.mark.parametrize(("shift", "q", "p"), [(720.0, 1e-314, math.exp(720.0 + math.log(1e-314))), (1e4, 0.0, 0.0)])
def test_the_cap_of_laplace_noise_where_doubles_end(shift: float, q: float, p: float) -> None:
    """It was e^709 q, which is less than the truth, and a warning of a division of 0 by 0."""
    assert float(curve(LaplaceLaw(0.0, 1.0), LaplaceLaw(shift, 1.0)).tradeoff(q)) == pytest.approx(p, rel=1e-9)
