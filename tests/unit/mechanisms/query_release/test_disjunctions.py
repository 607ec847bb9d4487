"""The noisy polynomial: exact rationals against Chebyshev's formula, sensitivities by enumeration, answers, mutants.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from auditor.privacy.exact import curve
from experiments.common import rand
from experiments.document_003_bellairs_lectures.disjunctions import (
    _FOUR,
    _TEN,
    _TWENTY,
    _one_for_another,
    _visits_and_coinsurance,
)
from experiments.document_003_bellairs_lectures.marginals import complementary
from mechanisms.query_release.disjunction_mutants import MUTANTS, UnivariateNoise, surjections
from mechanisms.query_release.disjunctions import (
    DisjunctionSummary,
    degree_of,
    l1_sensitivity,
    l2_sensitivity,
    polynomial,
    terms,
    value_at,
)
from mechanisms.query_release.marginals import BinaryAttributes

FALSE_ALARM = 1e-6
TENTH = Fraction(1, 10)


def plain(d: int, t: int, size: int = 30, epsilon: float = 1.0) -> DisjunctionSummary:
    """A summary of the columns of an array of bits."""
    return DisjunctionSummary(BinaryAttributes(tuple((j, 1.0) for j in range(d))), t, TENTH, size, epsilon)


def pair_level(mechanism: Any, pair: Any) -> float:
    return curve(mechanism.law(pair.x), mechanism.law(pair.y)).epsilon(0.0)


# ------------------------------------------------------------------------------------- polynomial


@pytest.mark.parametrize("alpha", [Fraction(1, 2), TENTH, Fraction(1, 1000)])
@pytest.mark.parametrize("t", [2, 4, 9, 16, 25])
def test_the_polynomial_is_chebyshevs(t: int, alpha: Fraction) -> None:
    g, r = polynomial(t, alpha), degree_of(t, alpha)
    assert len(g) == r + 1
    assert g[0] == 0
    assert all(abs(value_at(g, i) - 1) <= alpha for i in range(1, t + 1))
    if r < t:
        # Beyond r, where the coefficients are not read off g, it is the same polynomial.
        for m in range(t + 4):
            x, scale = (t + 1 - 2 * m) / (t - 1), special.eval_chebyt(r, (t + 1) / (t - 1))
            assert float(value_at(g, m)) == pytest.approx(1 - special.eval_chebyt(r, x) / scale, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("alpha", [Fraction(1, 2), TENTH, Fraction(1, 1000)])
def test_the_degree_is_that_of_the_formula(alpha: Fraction) -> None:
    for t in (2, 3, 4, 9, 25, 100, 1000):
        formula = math.acosh(1 / alpha) / math.acosh((t + 1) / (t - 1))
        assert degree_of(t, alpha) == min(t, math.ceil(formula))
    assert degree_of(1, alpha) == 1


def test_figures_of_the_catalogue() -> None:
    assert [degree_of(t, TENTH) for t in (4, 9, 16, 25)] == [3, 5, 6, 8]
    largest = {
        alpha: max(float(max(map(abs, polynomial(t, alpha)))) for t in range(1, 31))
        for alpha in (Fraction(3, 100), Fraction(1, 100), Fraction(1, 1000))
    }
    assert list(largest.values()) == pytest.approx([1.0, 1.12, 2.7], abs=0.02)
    # t = 4: T_3(5/3) = 365/27.
    assert polynomial(4, TENTH)[1:] == (Fraction(338, 365), Fraction(-288, 365), Fraction(192, 365))


# --------------------------------------------------------------------------------------- the summary


@pytest.mark.parametrize(("d", "t"), [(1, 1), (3, 2), (6, 4), (8, 4), (8, 7)])
def test_sensitivities_are_those_of_all_rows_against_none(d: int, t: int) -> None:
    mechanism = plain(d, t, 1)
    rows = np.array(list(itertools.product((False, True), repeat=d)))
    each = np.array([mechanism.of_patterns(row[None], np.array([1])) for row in rows])
    moved = max(int(np.abs(each - one).sum(axis=1).max()) for one in each)
    whole = l1_sensitivity(mechanism.coefficients, d)
    assert moved == mechanism.moved() == int(np.abs(each[-1] - each[0]).sum()) == whole * mechanism.grain
    squared = max(float(((each - one) ** 2).sum(axis=1).max()) for one in each)
    assert l2_sensitivity(mechanism.coefficients, d) == pytest.approx(math.sqrt(squared) / mechanism.grain, rel=1e-9)
    assert mechanism.width == each.shape[1]


@pytest.mark.parametrize(("d", "t"), [(4, 2), (6, 4), (7, 7)])
def test_answers_without_noise_are_means_of_g(d: int, t: int) -> None:
    data = np.random.default_rng(d).integers(0, 2, (30, d))
    mechanism = plain(d, t)
    for length in range(1, t + 1):
        for query in itertools.combinations(range(d), length):
            hits = data[:, list(query)].sum(axis=1)
            wanted = np.mean([float(value_at(mechanism.coefficients, int(m))) for m in hits])
            assert mechanism.noiseless(data, query) == pytest.approx(wanted, abs=1e-12)
            assert mechanism.truth(data, query) == pytest.approx((hits > 0).mean(), abs=1e-12)
            assert abs(wanted - (hits > 0).mean()) <= TENTH
            assert len(mechanism.places(query)) == terms(mechanism.degree, length)


def test_coefficients_of_the_data() -> None:
    bits = _TEN.attributes(rand())
    steps, place = _TEN.steps(rand()), 0
    for s in (1, 2, 3):
        for chosen in itertools.combinations(range(10), s):
            count = int(bits[:, list(chosen)].all(axis=1).sum())
            assert steps[place] == count * polynomial(4, TENTH)[s] * _TEN.grain
            place += 1
    assert place == _TEN.width == 175
    assert _TWENTY.width == 1350


def test_the_level_is_exact() -> None:
    assert pair_level(_TEN, complementary()) == pytest.approx(1.0, rel=1e-9)
    assert pair_level(_FOUR, complementary()) == pytest.approx(1.0, rel=1e-9)
    # Two coefficients of one attribute and one of two.
    c = polynomial(4, TENTH)
    part = (2 * abs(c[1]) + abs(c[2])) / l1_sensitivity(c, 10)
    assert pair_level(_TEN, _visits_and_coinsurance()) == pytest.approx(float(part), rel=1e-9)
    one = _one_for_another()
    assert pair_level(_TEN, one) == pytest.approx(float(2 * c[1] / l1_sensitivity(c, 10)), rel=1e-9)


def test_the_event_of_signs_has_the_largest_loss() -> None:
    # All coefficients beyond the answers of the row 1^d, each in the direction of its sign.
    pair = complementary()
    losses = 0.0
    for first, second in zip(_FOUR.law(pair.x).parts, _FOUR.law(pair.y).parts, strict=True):
        cut = second.loc * second.step  # type: ignore[union-attr]
        up = second.loc > first.loc  # type: ignore[union-attr]
        below = [float(law.cdf(cut)) for law in (second, first)]  # type: ignore[union-attr]
        p, q = (1 - x if up else x for x in below)
        losses += math.log(p / q)
    assert losses == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("query", [(0,), (1, 3), (0, 1, 2, 3)])
def test_draws_have_the_stated_variance_and_bound(query: tuple[int, ...]) -> None:
    n, length = 20_000, len(query)
    outputs = _FOUR(rand(), n, np.random.default_rng(1))
    noise = _FOUR.answer(outputs, query) - _FOUR.noiseless(rand(), query)
    # The square of a sum of Laplace noise deviates by at most sqrt(5) of its mean; six standard errors.
    assert (noise**2).mean() == pytest.approx(_FOUR.answer_variance(length), rel=6 * math.sqrt(5 / n))
    assert _FOUR.answer_variance(length) <= 2 * _FOUR.scale**2 * terms(3, length)
    for beta in (0.3, 0.01):
        missed = int((np.abs(noise) > _FOUR.answer_bound(length, beta) - float(TENTH)).sum())
        assert missed <= stats.binom.isf(FALSE_ALARM, n, beta)


def test_draws_follow_the_law() -> None:
    n, law = 20_000, _FOUR.law(rand())
    draws = _FOUR(rand(), n, np.random.default_rng(2))
    assert draws.shape == (n, 14)
    for i, part in enumerate(law.parts):
        for steps in (-5000.5, 0.5, 2000.5):
            cut = (part.loc + steps) * _FOUR.unit  # type: ignore[union-attr]
            below = int((draws[:, i] <= cut).sum())
            assert stats.binomtest(below, n, float(part.cdf(cut))).pvalue > FALSE_ALARM / 42  # type: ignore[union-attr]


# ----------------------------------------------------------------------------------------- mutants


def test_levels_of_mutants() -> None:
    c = polynomial(4, TENTH)
    for base in (_TEN, _FOUR):
        d = len(base.attributes)
        wanted = {
            "noise_of_one_coefficient": float(l1_sensitivity(c, d) / max(map(abs, c))),
            "wrong_d_in_binomial": float(l1_sensitivity(c, d) / l1_sensitivity(c, d // 2)),
            "long_queries_answered": 1.0,
            "constant_term_noised": 1.0,
        }
        for name, level in wanted.items():
            found = MUTANTS[name]
            assert found.true_level is not None
            assert found.true_level(base) == pytest.approx(level, rel=1e-12)
            assert pair_level(found.build(base), complementary()) == pytest.approx(level, rel=1e-9)


@pytest.mark.parametrize("t", [3, 4, 9])
def test_powers_are_the_same_polynomial(t: int) -> None:
    mechanism = UnivariateNoise(BinaryAttributes(tuple((j, 1.0) for j in range(t))), t, TENTH, 30, 1.0)
    g, a = mechanism.coefficients, mechanism.powers
    for m in range(t + 2):
        assert sum(x * m**k for k, x in enumerate(a, 1)) == value_at(g, m)
    # What one power gives to a set, by counting maps onto it.
    for s in range(1, len(g)):
        assert g[s] == sum(x * surjections(k, s) for k, x in enumerate(a, 1))
    onto = [f for f in itertools.product(range(2), repeat=4) if len(set(f)) == 2]
    assert surjections(4, 2) == len(onto)


def test_noise_of_powers_protects_a_row_of_all_attributes_and_no_exchange() -> None:
    mechanism: Any = MUTANTS["power_basis_noise"].build(_TEN)
    far, near = complementary(), _one_for_another()
    # The row of all attributes moves the sets of s attributes by c_s: as if power k's noise moved by a_k.
    moved = mechanism.steps(far.y) - mechanism.steps(far.x)
    powers = [int(a * mechanism.grain) for a in mechanism.powers]
    spread = [sum(a * surjections(k, s) for k, a in enumerate(powers, 1)) for s in (1, 2, 3)]
    assert moved.tolist() == [s for s, count in zip(spread, (10, 45, 120), strict=True) for _ in range(count)]
    assert sum(map(abs, powers)) == mechanism.moved()
    # Coefficients of one size have one noise: their differences are the data's.
    found = {}
    for name, data in (("x", near.x), ("y", near.y)):
        drawn = np.rint(mechanism(data, 200, np.random.default_rng(3)) / mechanism.unit).astype(np.int64)
        gaps = drawn[:, 1:10] - drawn[:, :9]
        assert (gaps == gaps[0]).all()
        assert len(np.unique(drawn[:, 0])) > 100
        found[name] = gaps[0].tolist()
    assert found["x"] != found["y"]


def test_long_queries_are_far_off() -> None:
    every = tuple(range(10))
    long: Any = MUTANTS["long_queries_answered"].build(_TEN)
    with pytest.raises(ValueError, match=r"1 to 4 attributes, got \(0, 1, 2, 3, 4, 5, 6, 7, 8, 9\)"):
        _TEN.noiseless(rand(), every)
    hits = _TEN.attributes(rand()).sum(axis=1)
    wanted = np.mean([float(value_at(_TEN.coefficients, int(m))) for m in hits])
    assert long.noiseless(rand(), every) == pytest.approx(wanted, abs=1e-9)
    # No count beyond t is answered within alpha.
    assert all(abs(value_at(_TEN.coefficients, m) - 1) > TENTH for m in range(5, 11))
    assert abs(wanted - _TEN.truth(rand(), every)) > TENTH


def test_a_noisy_constant_is_in_every_answer() -> None:
    noisy: Any = MUTANTS["constant_term_noised"].build(_FOUR)
    assert noisy.width == _FOUR.width + 1
    assert noisy.base == _FOUR.base
    assert noisy.steps(rand())[0] == 0
    assert noisy.places((2,)).tolist() == [0, 3]
    assert noisy.noiseless(rand(), (2,)) == _FOUR.noiseless(rand(), (2,))


# ---------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"t": 0}, r"t >= 1, got 0"),
        ({"t": 11}, r"t of at most 10, got 11"),
        ({"alpha": Fraction(1)}, r"alpha in \(0, 1\), got Fraction\(1, 1\)"),
        ({"size": 0}, r"a public size >= 1, got 0"),
        ({"epsilon": math.inf}, r"a finite epsilon > 0, got inf"),
        ({"fine": 0}, r"an integer fine >= 1, got 0"),
    ],
)
def test_mistakes_are_shown(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(_TEN, **wrong)


def test_other_mistakes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"a common denominator of at most 1048576, got 122336033"):
        replace(_TWENTY, t=16)
    with pytest.raises(ValueError, match=r"t of at most 30, got 31"):
        polynomial(31, TENTH)
    with pytest.raises(ValueError, match=r"1 to 4 attributes, got \(\)"):
        _TEN.places(())
    with pytest.raises(ValueError, match=r"attributes from 0 to 9, got \(10,\)"):
        _TEN.places((10,))
    with pytest.raises(ValueError, match=r"20190 rows, got 3"):
        _TEN.steps(rand().head(3))
