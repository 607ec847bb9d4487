"""The Gaussian mechanism on a lattice: calibrations, levels and mutants, computed another way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, special, stats

from auditor.privacy.exact import GaussianCurve, curve
from auditor.privacy.guarantees import TradeoffCurve
from auditor.privacy.laws import DiscreteGaussianLaw, ProductLaw
from mechanisms.additive_noise import gaussian
from mechanisms.additive_noise.gaussian import (
    MUTANTS,
    CalibratedGaussian,
    LatticeGaussian,
    Rule,
    analytic_mu,
    classical_mu,
    l2_steps,
    sigma_for,
    tail_mu,
    unit_mu,
)
from mechanisms.base.noise import round_to_lattice
from mechanisms.base.queries import ClippedMean, ClippedSum, Count, Histogram, IdentityQuery, SeveralCounts

CLAIMS = [(1.0, 1e-5), (0.1, 1e-5), (0.5, 1e-2), (1.0, 0.3), (3.0, 1e-8), (20.0, 1e-5)]


def a2(mu: float, epsilon: float) -> float:
    """Catalogue A2, as printed."""
    return float(special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu))


def pmf(sigma: float, reach: float = 15.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integers within so many sigmas and their masses under the discrete Gaussian; 1e-49 is beyond 15."""
    k = np.arange(-math.ceil(reach * sigma) - 2, math.ceil(reach * sigma) + 3).astype(np.float64)
    weight = np.exp(-0.5 * (k / sigma) ** 2)
    return k, weight / math.fsum(weight.tolist())


def hockey_stick(sigma: float, shift: int, epsilon: float) -> float:
    """Sum of max(0, p - e^eps q) over the integers; the losses are ``(2 k shift + shift^2) / (2 sigma^2)``."""
    k, p = pmf(sigma)
    loss = (2.0 * k * shift + shift * shift) / (2.0 * sigma**2)
    above = loss > epsilon
    return math.fsum((-p[above] * np.expm1(epsilon - loss[above])).tolist())


# -------------------------------------------------------------------------------- calibrations


def test_calibrations_in_numbers_of_the_catalogue() -> None:
    # In units of the sensitivity, at eps = 1 and delta = 1e-5; printed with three decimals.
    assert 1 / analytic_mu(1.0, 1e-5) == pytest.approx(3.731, abs=5e-4)
    assert 1 / tail_mu(1.0, 1e-5) == pytest.approx(4.379, abs=5e-4)
    assert 1 / classical_mu(1.0, 1e-5) == pytest.approx(math.sqrt(2 * math.log(1.25e5)), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_the_analytic_calibration_is_the_smallest(epsilon: float, delta: float) -> None:
    mu = analytic_mu(epsilon, delta)
    # The hockey-stick divergence by quadrature, on the half line where p exceeds e^eps q; both ends are far in a tail.
    edge = epsilon / mu - mu / 2

    def excess(x: float) -> float:
        return float(stats.norm.pdf(x) - math.exp(epsilon) * stats.norm.pdf(x + mu))

    exact, _ = integrate.quad(excess, edge, edge + 1, epsabs=1e-16, epsrel=1e-12)
    exact += integrate.quad(excess, edge + 1, edge + 40, epsabs=1e-16, epsrel=1e-12, limit=200)[0]
    assert exact == pytest.approx(delta, rel=1e-7)
    assert a2(mu, epsilon) <= delta * (1 + 1e-9)
    assert a2(mu * (1 + 1e-6), epsilon) > delta


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_the_tail_rule_is_its_equation(epsilon: float, delta: float) -> None:
    mu = tail_mu(epsilon, delta)
    assert special.ndtr(mu / 2 - epsilon / mu) == pytest.approx(delta, rel=1e-9)
    assert mu < analytic_mu(epsilon, delta)


def test_the_classical_rule_is_safe_up_to_one_and_fails_beyond_eight() -> None:
    for delta in (0.3, 1e-2, 1e-5, 1e-10):
        for epsilon in (0.01, 0.5, 1.0):
            assert a2(classical_mu(epsilon, delta), epsilon) <= delta
    with pytest.raises(ValueError, match=r"expected epsilon <= 1 .*, got 1\.5"):
        classical_mu(1.5, 1e-5)

    def delta_of_formula(epsilon: float, delta: float) -> float:
        return a2(epsilon / math.sqrt(2 * math.log(1.25 / delta)), epsilon)

    # Where it begins to fail, as the table of mutants says.
    assert delta_of_formula(8.41, 1e-5) < 1e-5 < delta_of_formula(8.43, 1e-5)
    assert delta_of_formula(6.77, 1e-2) < 1e-2 < delta_of_formula(6.79, 1e-2)


@pytest.mark.parametrize("sigma", [0.25, 0.4, 0.7, 1.0, 2.0, 3.73, 5.0, 12.0, 30.0])
def test_the_widest_gap_of_normal_scores_is_at_the_centre(sigma: float) -> None:
    k, p = pmf(sigma, 40.0)
    inside = np.abs(k) <= 25 * sigma + 1  # beyond, the lower sums are too small for what follows
    below = np.cumsum(p)[inside]
    scores = special.ndtri(below[below < 0.5])  # the lower half; the distribution is symmetric
    # P[Z <= -1] = (1 - P[Z = 0]) / 2: twice its score is the gap at the centre.
    gaps = np.append(np.diff(scores), -2.0 * scores[-1])
    assert gaps.argmax() == gaps.size - 1
    assert unit_mu(sigma) == pytest.approx(float(gaps[-1]), rel=1e-12)
    assert unit_mu(sigma) > 1.0 / sigma  # a discrete Gaussian is not 1/sigma-GDP
    assert unit_mu(sigma) < (1.0 + 0.065 / sigma**2) / sigma


def test_the_gap_tends_to_that_of_the_gaussian() -> None:
    for sigma in (10.0, 1e3, 1e6):
        excess = unit_mu(sigma) * sigma - 1.0
        # 1/24 to leading order; rounding of the product leaves 2e-16.
        assert excess == pytest.approx(1 / (24 * sigma**2), rel=0.01, abs=4e-16)


RULES: list[tuple[Rule, float, float]] = [
    *((rule, *claim) for claim in CLAIMS for rule in ("analytic", "tail")),
    *(("classical", *claim) for claim in CLAIMS if claim[0] <= 1),
]


@pytest.mark.parametrize("steps", [1, 2, 7, 1024])
@pytest.mark.parametrize(("rule", "epsilon", "delta"), RULES)
def test_what_is_calibrated_keeps_its_claim_on_the_lattice(
    rule: Rule, steps: int, epsilon: float, delta: float
) -> None:
    sigma = sigma_for(rule, epsilon, delta, steps)
    assert hockey_stick(sigma, steps, epsilon) <= delta
    # With 1 % less noise the analytic calibration would fail where the lattice is fine.
    if rule == "analytic" and steps == 1024:
        assert hockey_stick(0.999 * sigma, steps, epsilon) > delta
    assert sigma * unit_mu(sigma) == pytest.approx(1.0, abs=0.065 / sigma**2 + 1e-12)


# -------------------------------------------------------------------------------------- levels


def test_moves_in_the_l2_norm() -> None:
    assert l2_steps(Count(), 2.0**-10, 1) == 1024
    assert l2_steps(IdentityQuery(0.3, 0.3), 0.25, 1) == 2  # off the lattice: rounding is counted
    assert l2_steps(SeveralCounts((Count(),) * 9), 1.0, 9) == 3
    assert l2_steps(Histogram(categories=(0, 1, 2)), 1.0, 3) == math.sqrt(2)
    assert l2_steps(Histogram(categories=(0, 1, 2), relation="add_remove_one"), 0.5, 3) == 2
    assert l2_steps(ClippedSum(low=-1.0, high=1.0), 2.0**-4, 1) == 32
    # The move is rounded up in every coordinate, and no coordinate moves by more than linf allows.
    assert l2_steps(IdentityQuery(2.0, 1.0), 1.0, 2) == math.sqrt(2)
    rng = np.random.default_rng(1)
    for l1, linf, step in ((1.0, 1.0, 0.25), (3.0, 1.0, 0.5), (1.0, 0.3, 0.125)):
        bound = l2_steps(IdentityQuery(l1, linf), step, 4)
        x = rng.uniform(-2, 2, (20_000, 4))
        move = np.clip(rng.laplace(size=x.shape), -linf, linf)
        move *= np.minimum(1.0, l1 / np.abs(move).sum(axis=1, keepdims=True))
        steps = round_to_lattice(x + move, step) - round_to_lattice(x, step)
        assert np.sqrt((steps**2).sum(axis=1)).max() <= bound


@pytest.mark.parametrize("sigma", [0.7, 2.0, 9.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_renyi_divergences_are_at_most_those_of_the_gaussian(sigma: float, shift: int) -> None:
    rho = LatticeGaussian(IdentityQuery(float(shift), float(shift), 1.0), sigma, 1.0).rho()
    assert rho == pytest.approx(shift**2 / (2 * sigma**2), rel=1e-15)
    k, _ = pmf(sigma, 40.0)
    log_p = -0.5 * (k / sigma) ** 2
    log_total = special.logsumexp(log_p)
    for order in (1.25, 1.5, 2.0, 3.0, 4.7):
        log_q = -0.5 * ((k - shift) / sigma) ** 2
        divergence = (special.logsumexp(order * log_p + (1 - order) * log_q) - log_total) / (order - 1)
        assert divergence <= order * rho * (1 + 1e-12)
        if order.is_integer():
            assert divergence == pytest.approx(order * rho, rel=1e-12)


def test_exact_curves_of_the_mechanism() -> None:
    # Levels by another route: the hockey-stick sum at the level that the curve reports.
    base = CalibratedGaussian(Count(low=1), 1.0, 1e-5, step=0.25)
    pair: Any = curve(base.law([0]), base.law([1]))
    level = pair.epsilon(1e-5)
    assert level <= 1.0
    assert level == pytest.approx(1.0, abs=1e-3)
    assert hockey_stick(base.sigma() / 0.25, 4, level) == pytest.approx(1e-5, rel=1e-9)
    assert pair.mu() <= base.plain().mu() * (1 + 1e-12)
    assert pair.mu() == pytest.approx(base.plain().mu(), rel=1e-4)


def test_the_claimed_trade_off_curve_is_not_above_that_of_the_noise() -> None:
    mu = LatticeGaussian(Count(), 3.7).mu()
    claim = TradeoffCurve.below(lambda x: special.ndtr(-special.ndtri(x) - mu))
    # 200 points leave a ten-thousandth; a curve that were above anywhere would have a level above 1.
    assert 1 - 1e-3 < claim.exact_level(GaussianCurve(mu)) <= 1


def test_the_law_of_several_answers_is_a_product() -> None:
    base = CalibratedGaussian(SeveralCounts((Count(low=1), Count(low=2))), 1.0, 1e-5, step=0.5)
    sigma = base.sigma(2) / 0.5
    assert base.law([1, 2]) == ProductLaw((DiscreteGaussianLaw(4, sigma, 0.5), DiscreteGaussianLaw(2, sigma, 0.5)))
    assert base.sigma(2) == pytest.approx(math.sqrt(2) * base.sigma(1), rel=0.01)
    assert base.plain(2).mu(2) == pytest.approx(analytic_mu(1.0, 1e-5), rel=1e-9)


# -------------------------------------------------------------------------------------- mutants


def level_of(mu: float, delta: float) -> float:
    return float(optimize.brentq(lambda e: a2(mu, e) - delta, 0.0, 60.0, xtol=1e-13))


def test_mutants_that_have_another_sigma_have_their_true_level() -> None:
    claim = CalibratedGaussian(Count(), 1.0, 1e-5)
    forgotten = MUTANTS["delta_missing_from_log"]
    assert forgotten.true_level is not None
    # s = sqrt(2 ln 1.25) = 0.668 in units of the sensitivity.
    assert forgotten.true_level(claim) == pytest.approx(level_of(1 / math.sqrt(2 * math.log(1.25)), 1e-5), rel=1e-6)
    assert forgotten.true_level(claim) == pytest.approx(7.034, abs=1e-3)

    large = MUTANTS["classical_formula_large_eps"]
    assert large.true_level is not None
    for epsilon, delta in ((20.0, 1e-5), (10.0, 1e-2)):
        base = CalibratedGaussian(Count(), epsilon, delta)
        expected = level_of(epsilon / math.sqrt(2 * math.log(1.25 / delta)), delta)
        assert large.true_level(base) == pytest.approx(expected, rel=1e-6)
        assert expected > epsilon * 1.1
    assert large.true_level(CalibratedGaussian(Count(), 5.0, 1e-5)) < 5.0

    variance = MUTANTS["variance_as_std"]
    assert variance.true_level is not None
    mean = CalibratedGaussian(ClippedMean(20, high=4.0, resolution=2.0**-10), 1.0, 1e-5, step=2.0**-12)
    assert mean.sigma() == pytest.approx(0.2 * 3.7306, rel=1e-3)
    # The rounding of the mean to the lattice costs up to one step of 820.
    assert variance.true_level(mean) == pytest.approx(level_of(0.2 / (0.2 * 3.7306) ** 2, 1e-5), rel=0.02)
    assert variance.true_level(mean) > 1.3
    # A count has a sigma above 1: its square is more noise, and no violation.
    assert variance.true_level(claim) < 1.0
    for mutant in MUTANTS.values():
        assert mutant.kind == "violation"


@pytest.mark.parametrize("name", ["variance_as_std", "delta_missing_from_log", "classical_formula_large_eps"])
def test_a_mutants_law_has_its_true_level(name: str) -> None:
    base = CalibratedGaussian(IdentityQuery(0.5, 0.5), 10.0, 1e-2, step=2.0**-8)
    built: Any = MUTANTS[name].build(base)
    level = MUTANTS[name].true_level
    assert level is not None
    exact = curve(built.law(0.0), built.law(0.5)).epsilon(1e-2)
    # The true level is that of the Gaussian curve whose mu is the discrete Gaussian's: an upper bound, which is off by
    # the discretisation, 1 / (24 sigma^2) relative.
    sigma = built.sigma() / 2.0**-8
    assert exact <= level(base) * (1 + 1e-12)
    assert exact == pytest.approx(level(base), rel=1 / sigma**2)


def test_single_precision_has_an_impossible_event() -> None:
    built: Any = MUTANTS["float32_noise"].build(CalibratedGaussian(IdentityQuery(), 1.0, 1e-5))
    n = 20_000
    fine = {f: np.fmod(built(f, n, np.random.default_rng(2)), 2.0**-24) != 0 for f in (0.0, 1.0)}
    assert not fine[1.0].any()
    # Half of the noise in [1/4, 1/2), three quarters in [1/8, 1/4), ...: two thirds of |noise| < 1/2, 0.071 at sigma
    # 3.73. Between 0.05 and 0.1 of 20,000 are 8 standard deviations either way.
    assert 0.05 * n < np.count_nonzero(fine[0.0]) < 0.1 * n
    assert built(np.zeros(3), 5, np.random.default_rng(2)).shape == (5, 3)


@pytest.mark.parametrize(
    "build",
    [
        lambda: LatticeGaussian(Count(), 0.0),
        lambda: LatticeGaussian(Count(), 1.0, 0.3),
        lambda: LatticeGaussian(Count(), 1e-9)([], 1, np.random.default_rng(0)),
        lambda: CalibratedGaussian(Count(), 0.0, 1e-5),
        lambda: CalibratedGaussian(Count(), 1.0, 0.0),
        lambda: CalibratedGaussian(Count(), 1.0, 1.0),
        lambda: CalibratedGaussian(Count(), 1.0, 1e-5, step=0.3),
        lambda: CalibratedGaussian(Count(), 2.0, 1e-5, "classical"),
        lambda: CalibratedGaussian(Count(), 1.0, 1e-5, "exact"),  # type: ignore[arg-type]
        lambda: gaussian.unit_mu(0.0),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        build()
