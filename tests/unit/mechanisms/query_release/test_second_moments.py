"""Noisy second moments: the query and its norm, exact levels, the scale of the noise, and mutants."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from auditor.claims.privacy import curve_of_law
from auditor.datasets import Pair
from auditor.privacy.exact import GaussianCurve
from auditor.privacy.laws import DiscreteGaussianLaw, ProductLaw
from mechanisms.additive_noise.gaussian import LatticeGaussian
from mechanisms.query_release.second_moments import (
    MUTANTS,
    NoisyMoments,
    SecondMoments,
    SignedHistogram,
    UpperTriangle,
    printed_sigma,
    two_way_marginals,
)

#: Probability with which a statistical test here fails for what it describes, whatever the seed.
FALSE_ALARM = 1e-6


def signs(people: int, d: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), (people, d))


def mu_of(mechanism: Any, x: Any, y: Any) -> float:
    found = curve_of_law(mechanism)
    assert found is not None
    return float(found(Pair(x, y)).mu())


# --------------------------------------------------------------------------------------- the query


@pytest.mark.parametrize("d", [1, 2, 5])
def test_moments_by_loops(d: int) -> None:
    rows = signs(7, d)
    expected = [sum(v[i] * v[j] for v in rows) for i in range(d) for j in range(d)]
    assert SecondMoments(d)(rows).tolist() == expected
    upper = [sum(v[i] * v[j] for v in rows) for i in range(d) for j in range(i + 1, d)]
    assert UpperTriangle(d)(rows).tolist() == upper
    assert (SecondMoments(d).answers, UpperTriangle(d).answers) == (len(expected), len(upper))


def test_a_histogram_and_a_table_are_rows() -> None:
    rows = signs(3, 4)
    histogram = SignedHistogram(rows, np.array([2.0, 0.0, -1.0]))
    repeated = SecondMoments(4)(rows[[0, 0]]) - SecondMoments(4)(rows[[2]])
    assert SecondMoments(4)(histogram).tolist() == repeated.tolist()
    assert histogram.people == 3.0
    table = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [5.0, 4.0, 3.0]})
    query = SecondMoments(2, (("a", 1.0), ("b", 4.0)))
    assert query.signs(table).tolist() == [[-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("query", [SecondMoments, UpperTriangle])
def test_norms_by_all_rows(d: int, query: Any) -> None:
    if d == 1 and query is UpperTriangle:
        return  # no pair
    every = [query(d)(np.array([v])) for v in itertools.product((-1.0, 1.0), repeat=d)]
    np.testing.assert_allclose([np.linalg.norm(move) for move in every], query(d).norm)
    moved = max(float(np.linalg.norm(a - b)) for a, b in itertools.product(every, repeat=2))
    l1 = max(float(np.abs(a - b).sum()) for a, b in itertools.product(every, repeat=2))
    swapped = query(d, relation="replace_one")
    if d > 1:
        assert swapped.norm == pytest.approx(moved)
        assert swapped.sensitivity == l1
    if query is SecondMoments and d > 1:
        assert moved == pytest.approx(math.sqrt(2 * d * d - 2 * (d % 2)))


def test_marginals_from_sums() -> None:
    rows = np.concatenate([np.ones((20, 1)), signs(20, 3)], axis=1)
    counts = (rows > 0).T.astype(int) @ (rows > 0).astype(int)
    assert two_way_marginals(SecondMoments(4)(rows).reshape(4, 4), 20).tolist() == counts.tolist()


# ------------------------------------------------------------------------------------- the levels


@pytest.mark.parametrize(("d", "relation"), [(4, "add_remove_one"), (3, "add_remove_one"), (4, "replace_one")])
def test_the_level_is_the_norm_over_sigma(d: int, relation: Any) -> None:
    mechanism = NoisyMoments(SecondMoments(d, relation=relation), 1.0, 1e-5)
    rows = np.ones((2, d))
    other = rows.copy()
    other[0, : d // 2] = -1.0
    pair = (rows, rows[:1]) if relation == "add_remove_one" else (rows, other)
    assert mu_of(mechanism, *pair) == pytest.approx(mechanism.mu, rel=1e-9)
    # Fine noise on whole numbers: 1 + 1 / (24 sigma^2).
    assert mechanism.mu == pytest.approx(mechanism.query.norm / mechanism.scale, rel=1e-3)
    assert GaussianCurve(mechanism.mu).delta(1.0) == pytest.approx(1e-5, rel=1e-6)


def test_levels_of_mutants() -> None:
    rows, swapped = np.ones((1, 4)), np.array([[-1.0, -1.0, 1.0, 1.0]])
    base = NoisyMoments(SecondMoments(4), 1.0, 1e-5)
    one = MUTANTS["R_is_one"].build(base)
    # The lattice is coarser for less noise: 1 + 1 / (24 * 3.7^2).
    assert mu_of(one, np.concatenate([rows, rows]), rows) == pytest.approx(4 * base.mu, rel=1e-3)
    replaced = NoisyMoments(SecondMoments(4, relation="replace_one"), 1.0, 1e-5)
    kept = MUTANTS["replace_with_R_d"].build(replaced)
    assert mu_of(kept, rows, swapped) == pytest.approx(math.sqrt(2) * replaced.mu, rel=1e-3)
    upper = NoisyMoments(UpperTriangle(4), 1.0, 1e-5)
    over = MUTANTS["upper_triangle_with_R_d"].build(upper)
    assert isinstance(over, NoisyMoments)
    assert over.scale == pytest.approx(upper.scale * math.sqrt(2 * 4 / 3), rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "exact"),
    [(0.1, 1e-5, 2.8e-6), (0.5, 1e-5, 1.7e-5), (1.0, 1e-5, 4.3e-5), (1.0, 1e-9, 1.9e-7), (2.0, 1e-9, 6.3e-7)],
)
def test_the_printed_scale_has_no_constant(epsilon: float, delta: float, exact: float) -> None:
    # By A2, written out; the catalogue gives two digits.
    mu = 5.0 / printed_sigma(5.0, epsilon, delta)
    by_hand = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    assert by_hand == pytest.approx(exact, rel=0.03)


def test_the_printed_scale_at_level_one() -> None:
    query = SecondMoments(4)
    printed = LatticeGaussian(query, printed_sigma(query.norm, 1.0, 1e-9), 1.0)
    found = curve_of_law(printed)
    assert found is not None
    assert found(Pair(np.ones((2, 4)), np.ones((1, 4)))).epsilon(1e-9) == pytest.approx(1.218, abs=5e-4)


# -------------------------------------------------------------------------------------- the draws


def test_draws_have_the_stated_scale() -> None:
    mechanism, rows, n = NoisyMoments(SecondMoments(3), 1.0, 1e-5), signs(5, 3), 20_000
    noise = mechanism(rows, n, np.random.default_rng(1)) - mechanism.query(rows)
    assert np.array_equal(noise, np.rint(noise))
    # Nine sums of squares, each chi-square up to the lattice, whose effect at sigma = 11 is far below rounding.
    sums = (noise / mechanism.scale) ** 2
    low, high = stats.chi2.ppf(FALSE_ALARM / 40, n), stats.chi2.isf(FALSE_ALARM / 40, n)
    assert ((sums.sum(axis=0) > low) & (sums.sum(axis=0) < high)).all()
    means = noise.mean(axis=0) / mechanism.scale * math.sqrt(n)
    assert np.abs(means).max() < stats.norm.isf(FALSE_ALARM / 40)


def test_the_ratio_is_that_of_the_law() -> None:
    mechanism, rows = NoisyMoments(SecondMoments(3), 2.0, 1e-3), signs(4, 3)
    outputs = mechanism(rows, 50, np.random.default_rng(2))
    first, second = mechanism.law(rows), mechanism.law(rows[:-1])
    assert isinstance(first, ProductLaw)
    assert isinstance(second, ProductLaw)
    expected = np.zeros(50)
    for j, (p, q) in enumerate(zip(first.parts, second.parts, strict=True)):
        assert isinstance(p, DiscreteGaussianLaw)
        assert isinstance(q, DiscreteGaussianLaw)
        expected += np.log(p.pmf(outputs[:, j])) - np.log(q.pmf(outputs[:, j]))
    np.testing.assert_allclose(mechanism.log_likelihood_ratio(outputs, rows, rows[:-1]), expected, atol=1e-9)


# ---------------------------------------------------------------------------------------- mistakes


def test_mistakes_are_shown() -> None:
    with pytest.raises(ValueError, match="a dimension of at least 1, got 0"):
        SecondMoments(0)
    with pytest.raises(ValueError, match="none or 2 cuts"):
        SecondMoments(2, (("a", 1.0),))
    with pytest.raises(ValueError, match=r"rows of 3 signs, got \(2, 2\)"):
        SecondMoments(3)(np.ones((2, 2)))
    with pytest.raises(ValueError, match="signs, -1 or 1, got"):
        SecondMoments(2)(np.array([[1.0, 0.5]]))
    with pytest.raises(ValueError, match="cuts, by which"):
        SecondMoments(2)(pd.DataFrame({"a": [1.0], "b": [1.0]}))
    with pytest.raises(ValueError, match="a relation among"):
        SecondMoments(2, relation="replace")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="whole numbers as counts"):
        SignedHistogram(np.ones((1, 2)), np.array([0.5]))
    with pytest.raises(ValueError, match="2 counts"):
        SignedHistogram(np.ones((2, 2)), np.array([1.0]))
    with pytest.raises(ValueError, match=r"delta in \(0, 1\), got 1"):
        printed_sigma(1.0, 1.0, 1.0)
