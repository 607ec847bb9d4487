"""t-way marginals: answers, sensitivities and levels against enumeration, sizes against exact distributions, mutants.

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

from auditor.privacy.exact import curve
from experiments.common import rand
from experiments.document_003_bellairs_lectures.marginals import HEALTH, TEN, TWENTY, complementary, one_attribute
from mechanisms.query_release.counting_queries import any_of, beyond
from mechanisms.query_release.marginals import (
    MUTANTS,
    BinaryAttributes,
    ComposedMarginals,
    GaussianMarginals,
    PureMarginals,
    contingency,
    median_of_largest_laplace,
    median_of_largest_normal,
    rows_needed,
    subsets,
)

FALSE_ALARM = 1e-6
N = len(rand())
PURE = PureMarginals(HEALTH, 2, N, 1.0)


def plain(d: int) -> BinaryAttributes:
    """The columns of an array of bits."""
    return BinaryAttributes(tuple((j, 1.0) for j in range(d)))


def satisfied(row: tuple[int, ...], t: int) -> list[int]:
    """Which conjunctions a row satisfies, from the definition."""
    return [
        int(all(row[j] == (c >> place & 1) for place, j in enumerate(chosen)))
        for chosen in itertools.combinations(range(len(row)), t)
        for c in range(2**t)
    ]


def pair_level(mechanism: Any, pair: Any, delta: float = 0.0) -> float:
    return curve(mechanism.law(pair.x), mechanism.law(pair.y)).epsilon(delta)


# ----------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(("d", "t"), [(1, 1), (3, 1), (4, 2), (5, 3), (4, 4)])
def test_answers_are_counts_of_the_rows_that_satisfy_a_conjunction(d: int, t: int) -> None:
    data = np.random.default_rng(d).integers(0, 2, (40, d))
    mechanism = PureMarginals(plain(d), t, 40, 1.0)
    wanted = np.sum([satisfied(tuple(row), t) for row in data.tolist()], axis=0)
    assert mechanism.counts(data).tolist() == wanted.tolist()
    assert mechanism.queries == len(wanted) == 2**t * math.comb(d, t)


def test_sets_are_those_of_the_library() -> None:
    assert subsets(5, 3).tolist() == [list(s) for s in itertools.combinations(range(5), 3)]
    assert subsets(3, 0).shape == (1, 0)


def test_attributes_of_the_data() -> None:
    data = rand()
    bits = TWENTY(data)
    for j, (column, cut) in enumerate(TWENTY.cuts):
        assert (bits[:, j] == (data[column] >= cut)).all()
    # Rows are counted in a table for ten attributes, and sorted for twenty.
    for attributes in (TEN, TWENTY):
        patterns, multiplicity = attributes.patterns(data)
        assert len(np.unique(patterns, axis=0)) == len(patterns)
        assert multiplicity.min() >= 1
        assert (multiplicity @ patterns).tolist() == attributes(data).sum(axis=0).tolist()
        assert multiplicity.sum() == N


# -------------------------------------------------------------------------------------- sensitivity


@pytest.mark.parametrize(("d", "t"), [(1, 1), (2, 2), (4, 1), (4, 2), (5, 3)])
def test_sensitivities_are_those_of_complementary_rows(d: int, t: int) -> None:
    rows = np.array(list(itertools.product((0, 1), repeat=d)), dtype=bool)
    each = np.array([contingency(row[None], np.array([1]), t) for row in rows])
    moved = np.abs(each[:, None] - each[None]).sum(axis=2)
    assert moved.max() == 2 * math.comb(d, t)
    assert np.array_equal(moved, ((each[:, None] - each[None]) ** 2).sum(axis=2))
    complement = len(rows) - 1 - np.arange(len(rows))
    assert (moved[np.arange(len(rows)), complement] == moved.max()).all()


@pytest.mark.parametrize(("attributes", "t"), [(HEALTH, 1), (HEALTH, 2), (TEN, 2), (TEN, 3)])
def test_the_level_is_exact(attributes: BinaryAttributes, t: int) -> None:
    d, mechanism = len(attributes), PureMarginals(attributes, t, N, 1.3)
    assert pair_level(mechanism, complementary()) == pytest.approx(1.3, rel=1e-9)
    # One attribute is in C(d - 1, t - 1) of the sets.
    part = math.comb(d - 1, t - 1) / math.comb(d, t)
    assert pair_level(mechanism, one_attribute()) == pytest.approx(1.3 * part, rel=1e-9)


def test_the_approximate_calibrations_keep_their_claims() -> None:
    for t in (1, 2):
        gaussian = GaussianMarginals(HEALTH, t, N, 0.8, 1e-5)
        assert 0.99 * 0.8 < pair_level(gaussian, complementary(), 1e-5) <= 0.8
        composed = ComposedMarginals(HEALTH, t, N, 0.8, 1e-5)
        # Half of the queries move, and the theorem is not tight.
        assert pair_level(composed, complementary(), 1e-5) < 0.6


# -------------------------------------------------------------------------------- errors and sizes


def test_the_largest_error_of_laplace_noise() -> None:
    for mechanism in (PURE, PureMarginals(TEN, 2, N, 1.0), PureMarginals(TWENTY, 4, N, 1.0)):
        k = mechanism.queries
        harmonic = special.digamma(k + 1) + np.euler_gamma
        exact = mechanism.expected_largest() / mechanism.scale
        # Noise on the integers: less by the relative square of a row in scales, and never more.
        assert harmonic * (1 - (mechanism.unit / mechanism.scale) ** 2) <= exact <= harmonic


def test_the_expectation_is_that_of_draws() -> None:
    n, rng = 20_000, np.random.default_rng(1)
    errors = np.abs(PURE(rand(), n, rng) - PURE.counts(rand()) * PURE.unit).max(axis=1)
    # Six standard errors: 2e-9 for a normal mean, and room for the skewness.
    assert errors.mean() == pytest.approx(PURE.expected_largest(), abs=6 * errors.std() / math.sqrt(n))


@pytest.mark.parametrize(("d", "t"), [(10, 2), (20, 3)])
def test_rows_that_are_needed(d: int, t: int) -> None:
    attributes = BinaryAttributes(TWENTY.cuts[:d])
    for delta, composed in ((0.0, False), (1e-6, True), (1e-6, False)):
        n = math.ceil(rows_needed(d, t, 1.0, 0.1, delta=delta, composed=composed))
        if delta == 0.0 or composed:
            kind: Any = ComposedMarginals if composed else PureMarginals
            found = kind(attributes, t, n, 1.0)
            missed = any_of(beyond(found.base, 0.1 * n), found.queries)
        else:
            gaussian = GaussianMarginals(attributes, t, n, 1.0, delta)
            missed = any_of(2 * float(special.ndtr(-0.1 * n / gaussian.sigma)), gaussian.queries)
        # A row more or less is a few per mille of the noise's scale.
        assert missed == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("k", [1, 12, 1000])
def test_medians_of_the_largest(k: int) -> None:
    assert any_of(math.exp(-median_of_largest_laplace(k)), k) == pytest.approx(0.5, rel=1e-9)
    assert any_of(2 * float(stats.norm.sf(median_of_largest_normal(k))), k) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    "mechanism", [PURE, ComposedMarginals(HEALTH, 2, N, 1.0), GaussianMarginals(HEALTH, 2, N, 1.0)]
)
def test_draws_follow_the_law(mechanism: Any) -> None:
    n, law = 20_000, mechanism.law(rand())
    draws = mechanism(rand(), n, np.random.default_rng(2))
    assert draws.shape == (n, 12)
    for i, part in enumerate(law.parts):
        for steps in (-3.5, 0.5, 4.5):
            cut = (part.loc + steps) * mechanism.unit
            below = int((draws[:, i] <= cut).sum())
            assert stats.binomtest(below, n, float(part.cdf(cut))).pvalue > FALSE_ALARM / 36


# ----------------------------------------------------------------------------------------- mutants


def test_levels_of_mutants() -> None:
    for t in (1, 2, 3):
        base = PureMarginals(HEALTH, t, N, 0.5)
        sets = math.comb(3, t)
        wanted = {
            "sensitivity_k_over_n": 0.5 / 2 ** (t - 1),
            "sensitivity_one_sided": 1.0,
            "no_composition": 2 * sets * 0.5,
        }
        for name, level in wanted.items():
            found = MUTANTS[name]
            assert found.true_level is not None
            assert found.true_level(base) == pytest.approx(level, rel=1e-12)
            assert pair_level(found.build(base), complementary()) == pytest.approx(level, rel=1e-9)


@pytest.mark.parametrize("t", [2, 3])
def test_subtraction_gives_exact_counts_away(t: int) -> None:
    base, n = PureMarginals(HEALTH, t, N, 1.0), 500
    answers = MUTANTS["negatives_by_exact_subtraction"].build(base)(rand(), n, np.random.default_rng(3))
    by_set = np.rint(np.asarray(answers) * N).reshape(n, base.sets, -1).astype(int)
    counts = base.counts(rand()).reshape(base.sets, -1)
    # Of conjunctions that differ in one sign the sums are exact; they themselves are not.
    assert (by_set[:, :, 0::2] + by_set[:, :, 1::2] == counts[:, 0::2] + counts[:, 1::2]).all()
    assert (by_set.std(axis=0) > 1).all()


# ---------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"t": 0}, r"t from 1 to 3, got 0"),
        ({"t": 4}, r"t from 1 to 3, got 4"),
        ({"size": 0}, r"a public size >= 1, got 0"),
        ({"epsilon": 0.0}, r"a finite epsilon > 0, got 0\.0"),
        ({"attributes": TWENTY, "t": 8}, r"at most 1000000 queries, got 32248320"),
    ],
)
def test_mistakes_are_shown(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(PURE, **wrong)


def test_other_mistakes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"1 to 62 attributes, got 0"):
        BinaryAttributes(())
    with pytest.raises(ValueError, match=r"finite cuts, got \(\('mdvis', nan\),\)"):
        BinaryAttributes((("mdvis", math.nan),))
    with pytest.raises(ValueError, match=r"20190 rows, got 3"):
        PURE.counts(rand().head(3))
    for kind in (ComposedMarginals, GaussianMarginals):
        with pytest.raises(ValueError, match=r"delta in \(0, 1\), got 1\.0"):
            kind(HEALTH, 2, N, 1.0, 1.0)
