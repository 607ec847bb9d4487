"""Tails of means: exact ones in 40 digits and by enumeration, the bounds, and the samplers."""

from __future__ import annotations

import decimal
import itertools
import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from auditor.audits.accuracy import Expectation, HighProbability
from auditor.claims import Entry
from auditor.privacy.exact import TwoSidedGeometricLaw
from experiments.document_002_what_can_we_learn.noise import ClippedError, SampledResponses, laplace
from experiments.document_002_what_can_we_learn.tails import ExcessOverTruth, chernoff_hoeffding, laplace_sum
from mechanisms.local_model.randomized_response import from_epsilon
from mechanisms.statistical_queries.tails import (
    LaplaceMean,
    SampleMean,
    bernstein_bound,
    chernoff_above,
    chernoff_below,
    hoeffding,
    laplace_rate,
    laplace_sum_tail,
    printed_laplace_bound,
    rate_bound,
    sub_gaussian_bound,
    sum_mass,
    tails,
    value_counts,
)

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

#: Terms, delta / lambda, the tail and the printed bound, in the digits of the catalogue.
CATALOGUE = [
    (1, "5", 0.00674, 0.00193),
    (2, "4", 0.00168, 0.000335),
    (3, "3", 0.00207, 0.00117),
    (10, "2", 7.4e-5, 4.5e-5),
    (30, "1.4", 5.2e-7, 4.1e-7),
    (100, "1", 1.56e-11, 1.39e-11),
    (300, "0.9", 3.8e-26, 4.1e-27),
]


def in_forty_digits(n: int, u: str) -> Decimal:
    """The tail by partial fractions of the moment generating function: no floating point, no mixture.

    ``(1 - t^2)^-n = 2^-n sum_k c_k ((1 - t)^-k + (1 + t)^-k)`` with ``c_k = C(2n - 1 - k, n - k) 2^(k - n)``, found by
    expanding ``(1 + t)^-n`` at t = 1: the coefficient of ``(1 - t)^(n - k)`` is ``C(2n - 1 - k, n - k) / 2^(2n - k)``.
    """
    with decimal.localcontext() as context:
        context.prec = 60
        x = n * Decimal(u)
        total, term, partial = Decimal(0), Decimal(1), Decimal(0)
        for k in range(1, n + 1):
            # P[Gamma(k) >= x] = e^-x sum_{i < k} x^i / i!
            partial += term
            term = term * x / k
            total += Decimal(math.comb(2 * n - 1 - k, n - k)) / Decimal(2) ** (2 * n - k) * partial
        return 2 * total * (-x).exp()


@pytest.mark.parametrize(("n", "u", "tail", "printed"), CATALOGUE)
def test_the_counterexamples_to_lemma_a3(n: int, u: str, tail: float, printed: float) -> None:
    exact = in_forty_digits(n, u)
    digits = 0.6 * 10 ** math.floor(math.log10(tail) - 1)
    assert abs(float(exact) - tail) < digits
    assert abs(printed_laplace_bound(n, float(u)) - printed) < 0.6 * 10 ** math.floor(math.log10(printed) - 1)
    with decimal.localcontext() as context:
        context.prec = 60
        assert exact > (-n * Decimal(u) ** 2 / 4).exp()
    assert laplace_sum_tail(n, n * float(u)) == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize(("u", "first"), [("0.9", 143), ("0.7", 396), ("0.5", 1611)])
def test_from_where_on_the_printed_bound_is_exceeded(u: str, first: int) -> None:
    def exceeded(n: int) -> bool:
        return in_forty_digits(n, u) > (-n * Decimal(u) ** 2 / 4).exp()

    assert not exceeded(first - 1)
    assert exceeded(first)


def test_the_printed_equality_fails_in_both_directions() -> None:
    assert laplace_sum_tail(1, 1.0) == pytest.approx(math.exp(-1.0), rel=1e-14)
    assert printed_laplace_bound(1, 1.0) == pytest.approx(0.7788, abs=5e-5)


@pytest.mark.parametrize("entry", [chernoff_hoeffding, laplace_sum])
def test_no_case_compares_nothing_with_nothing(entry: Entry) -> None:
    claims = [c for c in entry.claims() if "/inequality/" in c.id]
    assert claims
    for claim in claims:
        bounds = [right for _, _, right in claim.draft.subject()]
        assert len(bounds) >= 6
        assert min(bounds) >= sys.float_info.min


def test_the_step_of_the_printed_proof_goes_the_other_way() -> None:
    x = np.linspace(0.001, 0.499, 400)
    assert np.all(1.0 / (1.0 - x) > np.exp(x))


@pytest.mark.parametrize("x", [0.0, 0.3, 2.0, 9.0])
def test_a_tail_of_two_and_three_terms_by_quadrature(x: float) -> None:
    two, _ = integrate.quad(lambda s: 0.5 * (1 + s) * math.exp(-s), x, math.inf, epsabs=1e-13)
    assert laplace_sum_tail(2, x) == pytest.approx(two, abs=1e-12)

    def inner(s: float) -> float:
        # Density of three: two convolved with one, over the whole line, in pieces without kinks.
        pieces = [-60.0, 0.0, s, s + 60.0]
        return sum(
            integrate.quad(lambda r: 0.125 * (1 + abs(r)) * math.exp(-abs(r) - abs(s - r)), a, b, epsabs=1e-13)[0]
            for a, b in itertools.pairwise(pieces)
        )

    three, _ = integrate.quad(lambda s: 2 * inner(s), x, x + 60.0, epsabs=1e-10)
    assert laplace_sum_tail(3, x) == pytest.approx(three, abs=1e-8)


def test_a_sum_of_any_length_has_some_absolute_value() -> None:
    for n in (1, 2, 7, 300, 3000):
        assert laplace_sum_tail(n, 0.0) == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("u", [1e-4, 0.3, 1.0, 2.5, 40.0])
def test_the_rate_is_the_largest_over_all_t(u: float) -> None:
    found = optimize.minimize_scalar(lambda t: -(t * u + math.log1p(-t * t)), bounds=(0, 1), options={"xatol": 1e-12})
    assert laplace_rate(u) == pytest.approx(-found.fun, rel=1e-6, abs=1e-9)
    assert u * u / (4 + 2 * u) <= laplace_rate(u) < u * u / 4


@pytest.mark.parametrize("n", [1, 2, 5, 40, 900])
def test_the_bounds_that_hold(n: int) -> None:
    for u in np.geomspace(1e-3, 30.0, 40).tolist():
        tail = laplace_sum_tail(n, n * u)
        assert tail <= rate_bound(n, u) * (1 + 1e-12)
        assert rate_bound(n, u) <= bernstein_bound(n, u) * (1 + 1e-12)
        if u <= 2 * math.sqrt(2):
            assert rate_bound(n, u) <= sub_gaussian_bound(n, u) * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 3, 25])
def test_means_of_laplace_draws(n: int) -> None:
    scale = 3.0
    drawn = LaplaceMean(n, scale)(10.0, 40_000, np.random.default_rng(7)) - 10.0

    half = np.array([laplace_sum_tail(n, n * abs(x) / scale) for x in drawn]) / 2
    assert stats.kstest(np.where(drawn < 0, half, 1 - half), "uniform").pvalue > ALARM


# ------------------------------------------------------------------------------- values in a range


@pytest.mark.parametrize("mass", [(Fraction(1, 3), Fraction(2, 3)), (Fraction(1, 2), Fraction(0), Fraction(1, 2))])
@pytest.mark.parametrize("n", [1, 4, 7])
def test_tails_by_enumeration(mass: tuple[Fraction, ...], n: int) -> None:
    low, high = Fraction(1, 3), Fraction(6, 7)
    below = above = Fraction(0)
    for values in itertools.product(range(len(mass)), repeat=n):
        probability = math.prod((mass[v] for v in values), start=Fraction(1))
        mean = Fraction(sum(values), n)
        below, above = below + probability * (mean <= low), above + probability * (mean >= high)
    found = tails(mass, n, low, high)
    assert found[0] == pytest.approx(float(below), rel=1e-13)
    assert found[1] == pytest.approx(float(above), rel=1e-13)


@pytest.mark.parametrize(("n", "p"), [(1, 0.2), (20, 0.01), (500, 0.3), (2000, 0.99)])
def test_sums_of_bits_are_binomial(n: int, p: float) -> None:
    expected = stats.binom.pmf(np.arange(n + 1), n, p)
    seen = expected > 1e-290
    assert sum_mass([1 - p, p], n)[seen] == pytest.approx(expected[seen], rel=1e-10)


def test_bounds_in_numbers() -> None:
    assert chernoff_above(0.5, 1.0, 12) == pytest.approx(math.exp(-2))
    assert chernoff_below(0.5, 1.0, 12) == pytest.approx(math.exp(-3))
    assert hoeffding(3.0, 6.0, 10) == pytest.approx(2 * math.exp(-5))
    # The constants cannot be much better: what a fair coin does at phi = 1, n = 12.
    assert tails((Fraction(1, 2), Fraction(1, 2)), 12, Fraction(0), Fraction(1)) == (2.0**-12, 2.0**-12)


@pytest.mark.parametrize("n", [1, 3, 200])
def test_means_of_sampled_rows(n: int) -> None:
    data = np.array([0.0, 0.0, 1.0, 5.0, 5.0, 5.0, 5.0, 2.0])
    values, often = value_counts(data)
    assert values.tolist() == [0, 1, 2, 5]
    assert often.tolist() == [2, 1, 1, 4]
    drawn = np.rint(SampleMean(n)(data, 40_000, np.random.default_rng(5)) * n).astype(np.int64)
    law = sum_mass(np.array([2, 1, 1, 0, 0, 4]) / 8, n)
    observed, expected = [0], [0.0]
    for k, mass in enumerate(law.tolist()):
        # Neighbouring sums are taken together until 50 are expected, so that the chi-square distribution holds far out.
        if expected[-1] >= 50:
            observed.append(0)
            expected.append(0.0)
        observed[-1] += int(np.count_nonzero(drawn == k))
        expected[-1] += mass * len(drawn)
    if expected[-1] < 50:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    assert sum(observed) == len(drawn)
    assert stats.chisquare(observed, expected).pvalue > ALARM


def test_what_is_above_the_truth() -> None:
    assert ExcessOverTruth(0.5)([0.2, 0.5, 0.75]).tolist() == [0.0, 0.0, 0.25]


# -------------------------------------------------------------------------------------- errors


def test_bad_values_are_shown() -> None:
    with pytest.raises(ValueError, match="n >= 1, got 0"):
        LaplaceMean(0)
    with pytest.raises(ValueError, match=r"scale > 0, got -1\.0"):
        LaplaceMean(1, -1.0)
    with pytest.raises(ValueError, match="n >= 1, got 0"):
        SampleMean(0)
    with pytest.raises(ValueError, match="got -1"):
        laplace_sum_tail(2, -1)
    with pytest.raises(ValueError, match=r"2 sqrt 2\], got 3"):
        sub_gaussian_bound(2, 3.0)
    with pytest.raises(ValueError, match=r"phi in \(0, 1\], got 1\.5"):
        chernoff_above(0.5, 1.5, 10)
    with pytest.raises(ValueError, match="finite values"):
        value_counts(np.array([1.0, math.nan]))
    with pytest.raises(ValueError, match="probabilities >= 0"):
        sum_mass([1.5, -0.5], 2)


# --------------------------------------------------------- what entries 1 and 16 state about errors


def test_the_mean_error_of_lattice_noise() -> None:
    (claim,) = [c for c in laplace.claims() if c.id.endswith("expected_error/mean_error")]
    a = math.exp(2.0**-10)
    k = np.arange(1, 60_000, dtype=np.float64)
    # Two-sided geometric noise, document 000, section 2, term by term.
    mean = 2.0 * float(k @ (a**-k)) * (a - 1.0) / (a + 1.0) / 1024.0
    theorem = claim.draft.guarantee
    assert isinstance(theorem, Expectation)
    assert theorem.exact == pytest.approx(mean, rel=1e-9)
    assert mean < theorem.at_most == 1.0


def test_the_tail_of_lattice_noise() -> None:
    (claim,) = [c for c in laplace.claims() if c.id.endswith("failure_rate/tail")]
    theorem = claim.draft.guarantee
    assert isinstance(theorem, HighProbability)
    law = TwoSidedGeometricLaw(0, math.exp(2.0**-10))
    # Beyond 3,072 steps on either side.
    assert theorem.exact == pytest.approx(2.0 * float(law.cdf(-3073.0)), rel=1e-9)
    assert theorem.exact is not None
    assert theorem.exact <= theorem.beta == math.exp(-3.0)


def test_responses_of_sampled_persons() -> None:
    data = np.array([1, 0, 0, 1, 0])
    sampled = SampledResponses(from_epsilon(math.log(2.0)), 3)
    outputs = sampled(data, 30_000, np.random.default_rng(11))
    codes = outputs @ np.array([1, 2, 4])
    one = (1 + 0.4) / 3
    expected = [one**k * (1 - one) ** (3 - k) for k in (int(code).bit_count() for code in range(8))]
    observed = np.bincount(codes, minlength=8)
    assert stats.chisquare(observed, np.array(expected) * len(codes)).pvalue > ALARM


def test_an_error_is_clipped() -> None:
    assert ClippedError(ExcessOverTruth(0.0), 2.0)([1.0, 5.0]).tolist() == [1.0, 2.0]
