"""Group privacy: its bound, the chain that attains it, and where the printed bound is false."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from auditor.privacy.exact import curve
from mechanisms.base.queries import Count, IdentityQuery, SeveralCounts
from mechanisms.composition.chain import TightGroupPrivacyChain, group_delta, printed_group_delta

#: Each test on draws is allowed so many false alarms; what is drawn is fixed by its seed, and any seed would do.
FALSE_ALARM = 1e-6

ONES = Count(equals=1)


def rows(ones: int, size: int = 20) -> list[int]:
    return [1] * ones + [0] * (size - ones)


def a2(mu: float, epsilon: float) -> float:
    """Catalogue A2, as printed."""
    return float(special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu))


# -------------------------------------------------------------------------------------- the bound


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1, math.log(2), 3.0])
@pytest.mark.parametrize("distance", [1, 2, 7])
def test_the_bound_is_what_the_proof_adds_up(epsilon: float, distance: int) -> None:
    total = 0.0
    for _ in range(distance):
        total = math.exp(epsilon) * total + 0.01
    assert group_delta(epsilon, 0.01, distance) == pytest.approx(total, rel=1e-12)


def test_numbers_of_the_catalogue() -> None:
    assert group_delta(0.1, 1.0, 10) == pytest.approx(16.3, abs=0.05)
    assert printed_group_delta(0.1, 1.0, 10) == pytest.approx(2.72, abs=0.005)
    for mu, epsilon, k, attained, printed, correct in [
        (0.3, 0.1, 5, 5.41, 1.65, 6.17),
        (0.05, 0.01, 20, 20.9, 1.22, 22.0),
    ]:
        delta = a2(mu, epsilon)
        assert a2(k * mu, k * epsilon) / delta == pytest.approx(attained, rel=3e-3)
        assert printed_group_delta(epsilon, 1.0, k) == pytest.approx(printed, rel=3e-3)
        assert group_delta(epsilon, 1.0, k) == pytest.approx(correct, rel=3e-3)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_printed_bound_is_too_small_below_the_threshold_and_only_there(k: int) -> None:
    threshold = optimize.brentq(lambda e: e - math.log(2 - math.exp(-k * e)), 0.1, 0.7)
    assert group_delta(threshold, 1.0, k) == pytest.approx(printed_group_delta(threshold, 1.0, k), rel=1e-9)
    below, above = threshold * 0.99, threshold * 1.01
    assert group_delta(below, 1.0, k) > printed_group_delta(below, 1.0, k)
    assert group_delta(above, 1.0, k) < printed_group_delta(above, 1.0, k)
    if k == 2:
        assert threshold == pytest.approx(math.log((1 + math.sqrt(5)) / 2), rel=1e-9)  # the catalogue's 0.481
    assert threshold < math.log(2)


# -------------------------------------------------------------------------------------- the chain


@pytest.mark.parametrize(("epsilon", "delta", "length"), [(0.1, 0.01, 10), (0.5, 1e-6, 8), (math.log(2), 0.01, 4)])
def test_the_chain_attains_the_bound_and_is_private_between_neighbours(
    epsilon: float, delta: float, length: int
) -> None:
    chain = TightGroupPrivacyChain(ONES, epsilon, delta, length)
    for i in range(length + 3):  # beyond the chain nothing changes any more
        pair = curve(chain.law(rows(i)), chain.law(rows(i + 1)))
        assert pair.delta(epsilon) <= delta * (1 + 1e-9)
        if i < length:
            assert pair.delta(epsilon) == pytest.approx(delta, rel=1e-9)
    for i in range(length):
        for j in range(i + 1, length + 1):
            apart = curve(chain.law(rows(i)), chain.law(rows(j)))
            assert apart.delta((j - i) * epsilon) <= group_delta(epsilon, delta, j - i) * (1 + 1e-9)
    ends = curve(chain.law(rows(0)), chain.law(rows(length)))
    assert ends.delta(length * epsilon) == pytest.approx(group_delta(epsilon, delta, length), rel=1e-9)


def test_the_condition_on_the_parameters_is_the_exact_one() -> None:
    """With a probability at place 1 that is a little too large, the complement breaks the claim."""
    epsilon, length = 0.3, 5
    grown = math.expm1((length - 1) * epsilon) / math.expm1(epsilon)
    limit = 1 / (1 + grown * (1 + math.exp(epsilon)))
    TightGroupPrivacyChain(ONES, epsilon, limit * (1 - 1e-9), length)
    with pytest.raises(ValueError, match="a probability at place 1 of at most"):
        TightGroupPrivacyChain(ONES, epsilon, limit * (1 + 1e-9), length)
    delta = limit * 1.01
    first, second = group_delta(epsilon, delta, length), group_delta(epsilon, delta, length - 1)
    assert 1 - second > math.exp(epsilon) * (1 - first) + delta


def test_draws_follow_the_law() -> None:
    chain = TightGroupPrivacyChain(ONES, 0.1, 0.01, 10)
    n, rng = 200_000, np.random.default_rng(1)
    places = [0, 5, 9, 10, 15]
    for ones in places:
        outputs = chain(rows(ones), n, rng)
        assert outputs.dtype == np.uint8
        assert outputs.shape == (n,)
        expected = float(chain.law(rows(ones)).probabilities[1])
        test = stats.binomtest(int(outputs.sum()), n, expected) if expected else None
        assert test.pvalue > FALSE_ALARM / len(places) if test else outputs.sum() == 0


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="a finite epsilon > 0, got -1"):
        TightGroupPrivacyChain(ONES, -1.0, 0.01, 3)
    with pytest.raises(ValueError, match=r"delta in \(0, 1\), got 0"):
        TightGroupPrivacyChain(ONES, 0.1, 0.0, 3)
    with pytest.raises(ValueError, match=r"a length >= 1, got 2.5"):
        TightGroupPrivacyChain(ONES, 0.1, 0.01, 2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a count of sensitivity 1 .* got \(2.0, 1.0\)"):
        TightGroupPrivacyChain(SeveralCounts((ONES, ONES)), 0.1, 0.01, 3)
    with pytest.raises(ValueError, match="one answer >= 0, got"):
        TightGroupPrivacyChain(IdentityQuery(granularity=1.0), 0.1, 0.01, 3).law(-1.0)
    with pytest.raises(ValueError, match="a distance >= 1, got 0"):
        group_delta(0.1, 0.01, 0)
    with pytest.raises(ValueError, match="a place from 0 to 3, got 4"):
        TightGroupPrivacyChain(ONES, 0.1, 0.01, 3).probability(4)
