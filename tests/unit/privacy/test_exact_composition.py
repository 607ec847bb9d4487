"""Composition: exact where it is known, and bounded from both sides, never from the wrong one, elsewhere."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from fractions import Fraction

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
    FiniteLaw,
    GaussianCurve,
    GaussianLaw,
    LaplaceCurve,
    LaplaceLaw,
    LossCurve,
    OptimisticCurve,
    PessimisticCurve,
    PrivacyCurve,
    ProductLaw,
    TwoSidedGeometricLaw,
    advanced_composition,
    composed,
    convolution,
    curve,
    curve_bounds,
    optimal_composition,
)
from auditor.privacy.guarantees import ApproxDP, GaussianDP
from auditor.privacy.laws import FloatArray

EPSILONS = [-3.0, -0.7, 0.0, 0.05, 0.3, 0.9, 1.7, 4.0]
DELTAS = [1e-12, 1e-6, 1e-3, 0.1]
LEVELS = np.array([0.0, 1e-9, 1e-4, 0.03, 0.3, 0.5, 0.8, 0.999, 1.0])


def finite(*mass: float) -> FiniteLaw:
    return FiniteLaw(tuple(range(len(mass))), np.array(mass))


def two_sided(pair: PrivacyCurve) -> tuple[PessimisticCurve, OptimisticCurve]:
    assert isinstance(pair, PessimisticCurve)
    return pair, pair.optimistic


def brute_delta(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """The definition, in both orders."""
    e = math.exp(epsilon)
    return max(float(np.maximum(0.0, p - e * q).sum()), float(np.maximum(0.0, q - e * p).sum()))


# -------------------------------------------------------------------- closed forms


@pytest.mark.parametrize(("epsilon", "k"), [(0.3, 1), (0.3, 2), (0.1, 99), (1.0, 40), (0.01, 9999), (0.002, 10_000)])
def test_a4_against_binomial_sums(epsilon: float, k: int) -> None:
    pair = optimal_composition(epsilon, k)
    p = 1 / (1 + math.exp(-epsilon))
    j = np.arange(k + 1)
    up, down = stats.binom.logpmf(j, k, p), stats.binom.logpmf(j, k, 1 - p)
    for e in EPSILONS:
        assert pair.delta(e) == pytest.approx(brute_delta(np.exp(up), np.exp(down), e), rel=1e-9, abs=1e-12)
    assert pair.epsilon(0.0) == pytest.approx(k * epsilon, rel=1e-12)
    for delta in (1e-3, 1e-9):
        assert pair.delta(pair.epsilon(delta)) == pytest.approx(delta, rel=1e-9)
    for order in (1.5, 2.0, 20.0):
        once = math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)
        # Log masses of k = 10^4 copies carry rounding of 1e-11.
        assert pair.renyi(order) == pytest.approx(k * once, rel=1e-9, abs=1e-10)


def test_golden_values_of_the_catalogue() -> None:
    # advanced_composition, at d' = 1e-6: for e = 0.1 and k = 99 basic 9.9, A11 5.725, exact 4.747; for e = 0.01 and
    # k = 9999 A11 5.756, exact 4.885.
    for epsilon, k, advanced, exact in ((0.1, 99, 5.725, 4.747), (0.01, 9999, 5.756, 4.885)):
        bound, delta = advanced_composition(epsilon, k, 1e-6)
        assert bound == pytest.approx(advanced, abs=5e-4)
        assert delta == pytest.approx(1e-6, rel=1e-12)
        assert optimal_composition(epsilon, k).epsilon(1e-6) == pytest.approx(exact, abs=5e-4)
        assert optimal_composition(epsilon, k).epsilon(0.0) == pytest.approx(epsilon * k, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.001, 2.0),
    st.integers(1, 300),
    st.floats(1e-12, 0.5),
    st.one_of(st.just(0.0), st.floats(1e-9, 0.01)),
)
def test_advanced_composition_is_never_below_the_optimum(epsilon: float, k: int, slack: float, delta: float) -> None:
    bound, total = advanced_composition(epsilon, k, slack, delta)
    assert total == pytest.approx(1 - (1 - delta) ** k * (1 - slack), rel=1e-6, abs=1e-15)
    assert bound == pytest.approx(
        epsilon * math.sqrt(2 * k * math.log(1 / slack)) + k * epsilon * math.tanh(epsilon / 2), rel=1e-12
    )
    assert optimal_composition(epsilon, k, delta).epsilon(total) <= bound * (1 + 1e-9)


def test_optimal_composition_with_a_delta_of_each() -> None:
    epsilon, delta, k = 0.4, 0.01, 5
    p = (1 - delta) / (1 + math.exp(-epsilon))
    q = (1 - delta) / (1 + math.exp(epsilon))
    once_p, once_q = np.array([delta, p, q, 0.0]), np.array([0.0, q, p, delta])
    all_p, all_q = once_p, once_q
    for _ in range(k - 1):
        all_p, all_q = np.outer(all_p, once_p).ravel(), np.outer(all_q, once_q).ravel()
    for e in EPSILONS:
        assert optimal_composition(epsilon, k, delta).delta(e) == pytest.approx(brute_delta(all_p, all_q, e), abs=1e-12)
    assert optimal_composition(0.0, 3, 0.5).delta(2.0) == pytest.approx(1 - 0.5**3)
    assert optimal_composition(0.0, 3).delta(0.0) == 0.0
    assert optimal_composition(1.0, 3, 1.0).delta(2.0) == 1.0


def test_gaussian_and_trivial_parts() -> None:
    assert composed(GaussianCurve(0.3), 16).mu() == pytest.approx(1.2, rel=1e-15)
    assert composed([GaussianCurve(3.0), GaussianCurve(4.0)]) == GaussianCurve(5.0)
    assert composed([LaplaceCurve(1.0)]) == LaplaceCurve(1.0)
    same = curve(finite(0.5, 0.5), finite(0.5, 0.5))
    assert composed([same, LaplaceCurve(0.0), LaplaceCurve(1.0)]) == LaplaceCurve(1.0)
    assert composed(same, 7).delta(0.0) == 0.0
    disjoint = curve(FiniteLaw(("a",), np.ones(1)), FiniteLaw(("b",), np.ones(1)))
    assert composed([disjoint, LaplaceCurve(1.0)], 3).delta(9.0) == 1.0
    # Compositions are opened up, and equal parts counted together.
    nested = composed([composed(LaplaceCurve(1.0), 2), LaplaceCurve(1.0), GaussianCurve(1.0)], 2)
    assert isinstance(nested, PessimisticCurve)
    assert dict(nested.parts) == {LaplaceCurve(1.0): 6, GaussianCurve(math.sqrt(2)): 1}


@pytest.mark.parametrize("k", [2, 3, 6])
def test_finite_parts_are_composed_exactly(k: int) -> None:
    p, q = np.array([0.5, 0.3, 0.15, 0.05, 0.0]), np.array([0.4, 0.3, 0.1, 0.0, 0.2])
    all_p, all_q = p, q
    for _ in range(k - 1):
        all_p, all_q = np.outer(all_p, p).ravel(), np.outer(all_q, q).ravel()
    once = curve(finite(*p), finite(*q))
    pair = composed(once, k)
    assert isinstance(pair, LossCurve)
    for e in EPSILONS:
        assert pair.delta(e) == pytest.approx(brute_delta(all_p, all_q, e), abs=1e-12)
    laws = ProductLaw((finite(*p),) * k), ProductLaw((finite(*q),) * k)
    assert curve(*laws).epsilon(0.5) == pytest.approx(pair.epsilon(0.5), rel=1e-12)


# ------------------------------------------------------------------- bounds and directions


def weights(size: int) -> st.SearchStrategy[FloatArray]:
    weight = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    return (
        st.lists(weight, min_size=size, max_size=size)
        .filter(lambda w: sum(w) > 0.1)
        .map(lambda w: np.array(w) / np.sum(w))
    )


finite_curves = (
    st.integers(2, 5)
    .flatmap(lambda n: st.tuples(weights(n), weights(n)))
    .map(lambda pq: curve(finite(*pq[0]), finite(*pq[1])))
    .filter(lambda c: isinstance(c, LossCurve) and c.loss.size > 0 and c.epsilon(0.0) > 0.0)
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(finite_curves, st.integers(1, 3)), min_size=1, max_size=2),
    st.floats(-4.0, 6.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.sampled_from([2**6, 2**10, 2**13]),
)
def test_bounds_enclose_exact_products(
    parts: list[tuple[LossCurve, int]], epsilon: float, delta: float, q: float, points: int
) -> None:
    """Whatever the lattice, coarse ones above all, the two curves stay on their sides."""
    exact = composed([c for c, count in parts for _ in range(count)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curve_bounds, "_POINTS", points)
        patch.setattr(curve_bounds, "_POINTS_A_COPY", 2)
        above = PessimisticCurve(tuple(parts))
        below = above.optimistic
        # 1e-12: rounding of the exact product.
        assert below.delta(epsilon) <= exact.delta(epsilon) + 1e-12
        assert exact.delta(epsilon) <= above.delta(epsilon) + 1e-12
        # Epsilon may have a steep side: rounding is that of delta.
        assert below.epsilon(min(1.0, delta + 1e-12)) <= exact.epsilon(delta) * (1 + 1e-12)
        assert exact.epsilon(min(1.0, delta + 1e-12)) <= above.epsilon(delta) * (1 + 1e-12) + 1e-12
        assert below.tradeoff(q) <= exact.tradeoff(q) + 1e-12
        assert exact.tradeoff(q) <= above.tradeoff(q) + 1e-12
        assert below.mu() <= exact.mu() + 1e-7
        assert exact.mu() <= above.mu() + 1e-9
        assert above.renyi(3.0) == below.renyi(3.0) == pytest.approx(exact.renyi(3.0), rel=1e-9, abs=1e-12)


def laplace_after(pair: PrivacyCurve, shift: float) -> Callable[[float], float]:
    """delta of a Laplace pair with another pair: the expectation of the other's delta at eps minus the first loss."""

    def delta(epsilon: float) -> float:
        # The loss is the shift or its negative with probabilities 1/2 and e^-shift / 2, and has a density in between.
        atoms = 0.5 * pair.delta(epsilon - shift) + 0.5 * math.exp(-shift) * pair.delta(epsilon + shift)
        largest = pair.epsilon(0.0)
        kinks = [x for x in (epsilon - largest, epsilon + largest) if -shift < x < shift]
        cuts = sorted([-shift, shift, *kinks])
        inner = sum(
            integrate.quad(
                lambda loss: 0.25 * math.exp(-(shift - loss) / 2) * pair.delta(epsilon - loss),
                a,
                b,
                epsabs=1e-14,
                epsrel=1e-12,
            )[0]
            for a, b in itertools.pairwise(cuts)
        )
        return atoms + inner

    return delta


def cauchy_after(pair: PrivacyCurve, distance: float) -> Callable[[float], float]:
    """The same for a Cauchy pair; the expectation is over its output x = tan(t)."""
    law_p, law_q = CauchyLaw(0.0, 1.0), CauchyLaw(0.0, math.exp(distance))

    def delta(epsilon: float) -> float:
        def value(t: float) -> float:
            x2 = math.tan(t) ** 2
            loss = math.log(law_q.scale**2 + x2) - math.log(1.0 + x2) - math.log(law_q.scale / law_p.scale)
            return pair.delta(epsilon - loss) / math.pi

        return float(2.0 * integrate.quad(value, 0.0, math.pi / 2, epsabs=1e-13, epsrel=1e-11, limit=500)[0])

    return delta


def laplace_after_outcomes(p: FloatArray, q: FloatArray, shift: float) -> Callable[[float], float]:
    """The same for distributions on a list of outcomes: a plain sum. The pair is symmetric, so one order is enough."""
    listed = LaplaceCurve(shift)
    return lambda epsilon: math.fsum(x * listed.delta(epsilon - math.log(x / y)) for x, y in zip(p, q, strict=True))


def discrete_gaussian(sigma: float, centre: int) -> FloatArray:
    weight = np.exp(-((np.arange(-40, 41) - centre) ** 2) / (2 * sigma**2))
    return np.asarray(weight / weight.sum(), dtype=np.float64)


MIXED: list[tuple[list[PrivacyCurve], Callable[[float], float]]] = [
    ([LaplaceCurve(1.0), LaplaceCurve(1.0)], laplace_after(LaplaceCurve(1.0), 1.0)),
    ([LaplaceCurve(0.7), LaplaceCurve(0.2)], laplace_after(LaplaceCurve(0.2), 0.7)),
    ([LaplaceCurve(1.0), GaussianCurve(0.5)], laplace_after(GaussianCurve(0.5), 1.0)),
    ([CauchyCurve(0.8), CauchyCurve(0.8)], cauchy_after(CauchyCurve(0.8), 0.8)),
    ([CauchyCurve(1.5), GaussianCurve(1.0)], cauchy_after(GaussianCurve(1.0), 1.5)),
    (
        [LaplaceCurve(1.0), DiscreteGaussianCurve(2, 3.0)],
        laplace_after_outcomes(discrete_gaussian(3.0, -1), discrete_gaussian(3.0, 1), 1.0),
    ),
    (
        [LaplaceCurve(1.0), curve(finite(0.6, 0.3, 0.1), finite(0.1, 0.3, 0.6))],
        laplace_after_outcomes(np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6]), 1.0),
    ),
]


@pytest.mark.parametrize(("parts", "delta"), MIXED)
def test_two_different_losses_against_quadrature(parts: list[PrivacyCurve], delta: Callable[[float], float]) -> None:
    above, below = two_sided(composed(parts))
    for epsilon in (-0.5, 0.0, 0.4, 1.1, 1.9):
        expected = delta(epsilon)
        # 1e-10: the quadrature.
        assert below.delta(epsilon) <= expected + 1e-10
        assert expected <= above.delta(epsilon) + 1e-10
        # Both bounds are close: 2^18 points over losses of up to 20 units are 1e-4 apart, and delta has slope 1.
        assert above.delta(epsilon) - below.delta(epsilon) <= 1e-4


def test_laws_of_mixed_products_go_through_the_bounds() -> None:
    p = ProductLaw((LaplaceLaw(0.0, 2.0), GaussianLaw(0.0, 4.0), LaplaceLaw(5.0, 1.0), CauchyLaw(0.0, 1.0)))
    q = ProductLaw((LaplaceLaw(2.0, 2.0), GaussianLaw(2.0, 4.0), LaplaceLaw(5.0, 1.0), CauchyLaw(0.0, 2.0)))
    pair = curve(p, q)
    assert isinstance(pair, PessimisticCurve)
    assert set(pair.parts) == {(LaplaceCurve(1.0), 1), (GaussianCurve(0.5), 1), (CauchyCurve(math.log(2.0)), 1)}
    assert getattr(pair, "optimistic", pair) == OptimisticCurve(pair.parts)
    again = pickle.loads(pickle.dumps(pair))
    assert again.delta(0.3) == pair.delta(0.3)
    # A guarantee reads its level from either.
    assert ApproxDP(1.0, 1e-5).exact_level(pair) >= ApproxDP(1.0, 1e-5).exact_level(pair.optimistic) > 1.0
    assert GaussianDP(1.0).exact_level(pair) >= GaussianDP(1.0).exact_level(pair.optimistic) > 0.0


def test_losses_of_thousands_are_bounded_without_a_warning() -> None:
    """Upper bounds of masses far out are beyond all floats."""
    pair = composed([DiscreteGaussianCurve(50, 1.0)], 3)
    low = getattr(pair, "optimistic", pair)
    truth = GaussianCurve(50.0 * math.sqrt(3.0))  # nearly, as the lattice is as fine as the noise
    for delta in (1e-5, 0.5):
        assert low.epsilon(delta) * 0.99 < truth.epsilon(delta) < pair.epsilon(delta)
    assert low.delta(100.0) <= pair.delta(100.0) == 1.0
    assert low.tradeoff(1e-6) <= pair.tradeoff(1e-6)


SYMMETRIC: list[tuple[list[PrivacyCurve], int]] = [
    ([LaplaceCurve(0.1)], 99),
    ([LaplaceCurve(1.0)], 3),
    ([LaplaceCurve(0.3), GaussianCurve(0.2)], 10),
    ([DiscreteGaussianCurve(3, 20.0)], 50),
    ([CauchyCurve(0.5)], 8),
    ([DiscreteGaussianCurve(1, 2.0), curve(TwoSidedGeometricLaw(0, 1.3), TwoSidedGeometricLaw(2, 1.3))], 5),
]


@pytest.mark.parametrize(("parts", "k"), SYMMETRIC)
def test_both_curves_are_ordered_monotone_and_dual(parts: list[PrivacyCurve], k: int) -> None:
    above, below = two_sided(composed(parts, k))
    grid = np.linspace(-6.0, 12.0, 40)
    high, low = (np.array([c.delta(float(e)) for e in grid]) for c in (above, below))
    assert np.all(low <= high)
    # Ten losses of up to 7 units, on 2^18 points and on lattices of their own, may be lowered by 3e-4 each.
    assert np.all(high - low <= 1e-3)
    for values in (high, low):
        assert np.all(np.diff(values) <= 1e-12)
        assert np.all((values >= 0) & (values <= 1))
    for delta in DELTAS:
        assert below.epsilon(delta) <= above.epsilon(delta) <= below.epsilon(delta) + 5e-3
        if above.epsilon(delta) > 0:
            assert above.delta(above.epsilon(delta)) <= delta * (1 + 1e-9)
            assert below.delta(below.epsilon(delta)) == pytest.approx(delta, rel=1e-9)
    caps = above.tradeoff(LEVELS), below.tradeoff(LEVELS)
    assert np.all(caps[1] <= caps[0])
    for epsilon in (0.0, 0.5, 2.0):
        # No test beats delta: the cap is the infimum of these lines.
        assert np.all(caps[1] <= above.delta(epsilon) + math.exp(epsilon) * LEVELS + 1e-12)
        assert np.all(caps[0] <= above.delta(epsilon) + math.exp(epsilon) * LEVELS + 1e-9)
    assert below.mu() <= above.mu() <= 1.3 * below.mu()
    scores = special.ndtri(below.tradeoff([0.1, 0.3, 0.5])) - special.ndtri([0.1, 0.3, 0.5])
    assert np.all(scores <= above.mu() + 1e-9)
    for order in (1.5, 4.0):
        assert above.renyi(order) == pytest.approx(k * sum(c.renyi(order) for c in parts), rel=1e-12)
    largest = k * sum(c.epsilon(0.0) for c in parts)
    assert above.epsilon(0.0) == pytest.approx(largest, rel=1e-12)
    if math.isfinite(largest):
        assert above.delta(largest) == 0.0
        # Every composition of pure mechanisms is below k-fold randomised response (A4).
        worst = optimal_composition(max(c.epsilon(0.0) for c in parts), k * len(parts))
        assert all(below.delta(e) <= worst.delta(e) for e in (0.0, 0.5, 2.0))


def test_one_sided_losses_are_found_in_both_orders() -> None:
    # P has mass where Q has none, and the pair is far from symmetric: on the lattice as in the exact product.
    once = curve(finite(0.02, 0.38, 0.6), finite(0.0, 0.5, 0.5))
    assert isinstance(once, LossCurve)
    exact, above = composed(once, 4), PessimisticCurve(((once, 4),))
    assert above.epsilon(0.05) == above.optimistic.epsilon(0.05) == above.mu() == above.optimistic.mu() == math.inf
    for e in (0.0, 0.5, 5.0, 50.0):
        assert above.optimistic.delta(e) <= exact.delta(e) + 1e-12
        assert above.delta(e) == pytest.approx(exact.delta(e), abs=1e-5)
        assert above.optimistic.delta(e) == pytest.approx(exact.delta(e), abs=1e-5)
    assert above.optimistic.tradeoff(0.0) == pytest.approx(1 - 0.98**4, rel=1e-12)
    assert above.renyi(2.0) == math.inf


# ------------------------------------------------------------------------- the convolution itself


@pytest.mark.parametrize("k", [1, 2, 7, 60])
@pytest.mark.parametrize(
    ("integers", "digits"),
    [
        # One hump: every mass is near the mean of some tilt, those of 1e-200 too, and keeps seven digits.
        (([1, 60, 1500, 20000, 1500, 60, 1], [5, 300, 995]), 7),
        # Holes: what lies in one is never likely. The bound says so.
        (([1, 300, 40000, 7, 900000, 3, 59365], [5, 0, 995]), 0),
    ],
)
def test_convolution_errors_are_within_their_bound(integers: tuple[list[int], ...], digits: int, k: int) -> None:
    """Integer masses, convolved exactly."""
    exact = np.array([1], dtype=object)
    for mass, count in zip(integers, (k, 3), strict=True):
        for _ in range(count):
            exact = np.convolve(exact, np.array(mass, dtype=object))
    with np.errstate(divide="ignore"):
        parts = [
            (convolution.LatticeMasses(-1.0, np.log(np.array(mass) / sum(mass))), count)
            for mass, count in zip(integers, (k, 3), strict=True)
        ]
    masses, log_error = convolution.convolved(parts, 0.5, both_tails=True)
    assert masses.start == -1.0 * (k + 3)
    total = sum(exact.tolist())
    for value, log_mass, log_bound in zip(exact.tolist(), masses.log_mass, log_error, strict=True):
        wanted = Fraction(value, total)
        if wanted > Fraction(1, 10**300):
            found = Fraction(math.exp(log_mass))
            # 1e-12: the logarithms, up to 700, in which masses are returned.
            assert abs(found - wanted) <= Fraction(math.exp(log_bound)) + wanted / 10**12
            assert digits == 0 or math.exp(log_bound) <= float(wanted) * 10.0**-digits


@pytest.mark.parametrize(
    "pair",
    [
        LaplaceCurve(0.1),
        LaplaceCurve(30.0),
        GaussianCurve(0.05),
        GaussianCurve(4.0),
        CauchyCurve(0.01),
        CauchyCurve(2.0),
        CauchyCurve(60.0),
        CauchyCurve(400.0),
        DiscreteGaussianCurve(4, 3.0),
    ],
)
def test_listed_losses_are_those_of_the_curve(pair: PrivacyCurve) -> None:
    low, high = convolution.span(pair)
    step = (high - low) / 4096
    listed = convolution.losses(pair, step)
    assert np.all(np.diff(listed.loss) >= 0)
    # Both distributions have mass 1, and so does every cell: quadrature errors are those of rounding.
    assert np.exp(listed.log_p).sum() == pytest.approx(1.0, rel=1e-12)
    assert np.exp(listed.log_p - listed.loss).sum() == pytest.approx(1.0, rel=1e-11)
    for epsilon in np.linspace(0.0, high, 8)[:-1]:
        mass = np.exp(listed.log_p[listed.loss > epsilon])
        found = float(mass @ -np.expm1(epsilon - listed.loss[listed.loss > epsilon]))
        # The cell that holds epsilon is in error by its mass, less than 1e-3 here, times a loss of one step, at most.
        assert found == pytest.approx(pair.delta(float(epsilon)), abs=1e-3 * step, rel=1e-9)


def test_sharing_out_keeps_both_masses_and_merging_never_raises_a_loss() -> None:
    rng = np.random.default_rng(1)
    loss = np.sort(rng.normal(size=50))
    log_p = np.log(rng.dirichlet(np.ones(50)))
    listed = convolution.Losses(loss, log_p)
    for step in (0.01, 0.3, 5.0):
        shared = convolution.shared_out(listed, step)
        points = shared.start + step * np.arange(shared.log_mass.size)
        assert np.exp(shared.log_mass).sum() == pytest.approx(1.0, rel=1e-12)
        assert np.exp(shared.log_mass - points).sum() == pytest.approx(np.exp(log_p - loss).sum(), rel=1e-12)
        merged = convolution.merged(listed, step)
        below = merged.start + step * np.arange(merged.log_mass.size)
        assert np.exp(merged.log_mass).sum() == pytest.approx(1.0, rel=1e-12)
        for epsilon in np.linspace(-3.0, 3.0, 25):
            truth = float(np.sum(np.exp(log_p) * np.maximum(0.0, -np.expm1(epsilon - loss))))
            high = float(np.sum(np.exp(shared.log_mass) * np.maximum(0.0, -np.expm1(epsilon - points))))
            low = float(np.sum(np.exp(merged.log_mass) * np.maximum(0.0, -np.expm1(epsilon - below))))
            assert low <= truth + 1e-12
            assert truth <= high + 1e-12


@pytest.mark.parametrize("step", [40.0, 65.0, 300.0])
def test_wide_cells_keep_what_is_tiny_under_one_distribution(step: float) -> None:
    log_p, log_q = np.log([0.25, 0.75 - 1e-30, 1e-30]), np.log([1e-28, 0.5, 0.5])
    loss, log_p = np.sort(log_p - log_q), log_p[np.argsort(log_p - log_q)]
    listed = convolution.Losses(loss, log_p)
    shared = convolution.shared_out(listed, step)
    points = shared.start + step * np.arange(shared.log_mass.size)
    assert np.exp(shared.log_mass).sum() == pytest.approx(1.0, rel=1e-12)
    assert np.exp(shared.log_mass - points).sum() == pytest.approx(np.exp(log_p - loss).sum(), rel=1e-12)
    merged = convolution.merged(listed, step)
    used = np.isfinite(merged.log_mass)
    below = (merged.start + step * np.arange(used.size))[used]
    for epsilon in (-60.0, 0.0, 0.3, 40.0, 63.0):
        truth = float(np.sum(np.exp(log_p) * np.maximum(0.0, -np.expm1(epsilon - loss))))
        low = float(np.sum(np.exp(merged.log_mass[used]) * np.maximum(0.0, -np.expm1(epsilon - below))))
        assert low <= truth + 1e-12


@pytest.mark.parametrize(("sigma", "delta"), [(0.1, 1e-6), (0.12, 1e-6), (0.12, 1e-30), (0.15, 1e-6), (0.2, 1e-6)])
def test_steep_lattices_are_bounded_from_both_sides(sigma: float, delta: float) -> None:
    above, below = two_sided(composed(DiscreteGaussianCurve(1, sigma), 2))
    k = np.arange(-4, 6)
    p, q = (np.exp(-0.5 * ((k - centre) / sigma) ** 2) for centre in (0, 1))
    law_p, law_q = finite(*(p / p.sum())), finite(*(q / q.sum()))
    both = (law_p.probabilities > 0) & (law_q.probabilities > 0)
    one = LossCurve(np.log(law_p.probabilities[both]), np.log(law_q.probabilities[both]))
    exact = composed([one], 2).epsilon(delta)
    assert below.epsilon(delta) <= exact * (1 + 1e-12)
    assert exact <= above.epsilon(delta) * (1 + 1e-12)
    assert above.epsilon(delta) - below.epsilon(delta) <= 1e-3


def test_losses_close_to_a_lattice_are_not_moved_onto_it() -> None:
    # Two losses of 1, and one 9e-8 beside 0: 200 copies, whose upper bound was below the truth by 2.7e-6 of it.
    a, (first, middle, last) = 0.05, (1.0, -9e-8, -2.0)
    b, c = np.linalg.solve([[1.0, 1.0], [math.exp(-middle), math.exp(-last)]], [1.0 - a, 1.0 - a * math.exp(-first)])
    one = LossCurve(np.log([a, b, c]), np.log([a, b, c]) - [first, middle, last])
    above, below = two_sided(PessimisticCurve(((one, 200),)))
    i, j = (n.ravel() for n in np.meshgrid(np.arange(201), np.arange(201)))
    i, j = i[i + j <= 200], j[i + j <= 200]
    ways = special.gammaln(201) - special.gammaln(i + 1) - special.gammaln(j + 1) - special.gammaln(201 - i - j)
    counts = np.array([i, j, 200 - i - j])
    exact = LossCurve(*(ways + mass @ counts for mass in (one.log_p, one.log_q)))
    for delta in (1e-6, 0.01):
        truth = above.epsilon(delta)
        assert exact.delta(truth) <= delta * (1 + 1e-9)
        assert exact.delta(below.epsilon(delta)) >= delta * (1 - 1e-9)


def test_losses_on_a_lattice_are_composed_without_rounding() -> None:
    geometric = curve(TwoSidedGeometricLaw(0, 1.01), TwoSidedGeometricLaw(60, 1.01))
    assert isinstance(geometric, LossCurve)
    exact = composed(geometric, 2)
    assert isinstance(exact, LossCurve)
    above = PessimisticCurve(((geometric, 2),))
    assert curve_bounds.lattice_step(above.parts) == pytest.approx(2 * math.log(1.01), rel=1e-9)
    for e in EPSILONS:
        # The error bounds of the convolution are all that is left.
        assert above.delta(e) == pytest.approx(exact.delta(e), abs=1e-10)
        assert above.optimistic.delta(e) == pytest.approx(exact.delta(e), abs=1e-10)
    # Too many groups for the exact product, which used to be refused.
    near, far = (ProductLaw((TwoSidedGeometricLaw(loc, 1.001),) * 2) for loc in (0, 4096))
    fine, rough = two_sided(curve(near, far))
    assert fine.epsilon(0.0) == pytest.approx(2 * 4096 * math.log(1.001), rel=1e-12)
    assert fine.delta(1.0) - rough.delta(1.0) <= 1e-8


def test_common_spacings() -> None:
    geometric = curve(TwoSidedGeometricLaw(0, 1.5), TwoSidedGeometricLaw(3, 1.5))
    odd = curve(TwoSidedGeometricLaw(0, 1.5), TwoSidedGeometricLaw(1, 1.5))
    step = 2 * math.log(1.5)
    assert curve_bounds.lattice_step([(geometric, 3), (odd, 1)]) == pytest.approx(step, rel=1e-12)
    assert curve_bounds.lattice_step([(DiscreteGaussianCurve(3, 5.0), 2)]) == pytest.approx(3 / 25, rel=1e-12)
    # Losses beside every lattice need as fine a lattice alone as with others.
    irregular, response = curve(finite(0.2, 0.3, 0.5), finite(0.3, 0.15, 0.55)), optimal_composition(1.0, 1)
    assert curve_bounds.lattice_step([(irregular, 3), (response, 2)]) < 1e-3
    # With a density the lattice is fine, and still holds the atoms.
    mixed = curve_bounds.lattice_step([(geometric, 3), (LaplaceCurve(2 * step), 1)])
    assert mixed < 1e-3
    assert step / mixed == pytest.approx(round(step / mixed), abs=1e-6)


# ------------------------------------------------------------------------ dp-accounting as referee


@pytest.mark.parametrize(
    ("parts", "k", "build"),
    [
        ([LaplaceCurve(0.2)], 30, lambda **how: pld.from_laplace_mechanism(5.0, **how).self_compose(30, 0.0)),
        (
            [DiscreteGaussianCurve(2, 9.0)],
            20,
            lambda **how: pld.from_discrete_gaussian_mechanism(9.0, sensitivity=2, **how).self_compose(20, 0.0),
        ),
        (
            [LaplaceCurve(1.0), GaussianCurve(0.5)],
            2,
            lambda **how: (
                pld.from_laplace_mechanism(1.0, **how)
                .self_compose(2, 0.0)
                .compose(pld.from_gaussian_mechanism(2.0, **how).self_compose(2, 0.0), 0.0)
            ),
        ),
    ],
)
def test_overlaps_with_dp_accountings_bounds(
    parts: list[PrivacyCurve], k: int, build: Callable[..., pld.PrivacyLossDistribution]
) -> None:
    above, below = two_sided(composed(parts, k))
    low, high = (
        build(value_discretization_interval=1e-4, pessimistic_estimate=pessimistic) for pessimistic in (False, True)
    )
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        # Two enclosures of one number overlap; 1e-10 for the rounding of their transforms, which they do not bound.
        assert low.get_delta_for_epsilon(epsilon) <= above.delta(epsilon) + 1e-10
        assert below.delta(epsilon) <= high.get_delta_for_epsilon(epsilon) + 1e-10
        # Theirs rounds every loss up, by at most 1e-4: k of them by k 1e-4, and delta has a slope below 1.
        assert high.get_delta_for_epsilon(epsilon) - below.delta(epsilon) <= 1e-4 * k * len(parts) + 1e-4


# --------------------------------------------------------------------------------------- bad input


def test_compositions_refuse() -> None:
    pair = composed(LaplaceCurve(1.0), 2)
    bad: list[Callable[[], object]] = [
        lambda: composed([]),
        lambda: composed(LaplaceCurve(1.0), 0),
        lambda: composed(LaplaceCurve(1.0), 1.5),  # type: ignore[arg-type]
        lambda: composed(LaplaceCurve(1.0), True),
        lambda: composed(LaplaceCurve(1.0), 10**7),
        lambda: composed(CauchyCurve(800.0), 2).delta(1.0),
        lambda: optimal_composition(-1.0, 2),
        lambda: optimal_composition(math.inf, 2),
        lambda: optimal_composition(1.0, 0),
        lambda: optimal_composition(1.0, 2, 1.5),
        lambda: advanced_composition(1.0, 2, 0.0),
        lambda: advanced_composition(1.0, 0, 0.1),
        lambda: advanced_composition(1.0, 2, 0.1, 1.0),
        lambda: pair.delta(math.nan),
        lambda: pair.epsilon(2.0),
        lambda: pair.tradeoff([-0.1]),
        lambda: pair.renyi(0.5),
        lambda: getattr(pair, "optimistic").tradeoff([-0.1]),  # noqa: B009
    ]
    for build in bad:
        with pytest.raises(ValueError, match=r"expected .* got"):
            build()

    class Foreign(GaussianDP):
        """Something that answers for its epsilon and cannot list its losses."""

        def epsilon(self, delta: float) -> float:
            return 1.0 + delta

    with pytest.raises(TypeError, match="expected a curve"):
        composed([Foreign(1.0), LaplaceCurve(1.0)])  # type: ignore[list-item]
