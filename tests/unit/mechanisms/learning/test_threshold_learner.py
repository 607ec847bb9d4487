"""The threshold learner: its distribution against all thresholds listed, level, mutants, and sample sizes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from auditor.privacy.exact import FiniteLaw, curve
from mechanisms.learning.agnostic_learner import level_of_flip
from mechanisms.learning.fresh_learner import least_size
from mechanisms.learning.threshold_learner import MUTANTS, ReleasedThresholdPiece, ThresholdLearner
from mechanisms.learning.threshold_samples import (
    FreshThresholds,
    ThresholdError,
    TwoPoints,
    UniformNumbers,
    balanced_failure,
    fresh_failure,
    sufficient_rows,
)

#: Probability with which a statistical test here fails for a right implementation, whatever the seed.
FALSE_ALARM = 1e-6


def rows(*records: tuple[int, int]) -> np.ndarray[Any, Any]:
    return np.array(records, dtype=np.int64)


def listed(d: int, rate: float, data: Any) -> np.ndarray[Any, Any]:
    """Probabilities of all thresholds by the definition."""
    mistakes = [sum((x >= t) != y for x, y in data) for t in range(2**d + 1)]
    return np.asarray(special.softmax(-rate * np.array(mistakes, dtype=float)))


def same(counts: np.ndarray[Any, Any], p: np.ndarray[Any, Any]) -> None:
    """Multinomial counts: each cell by its exact binomial tails, the false alarm split over cells and tails."""
    n, each = counts.sum(), FALSE_ALARM / (2 * len(counts))
    assert np.all(stats.binom.cdf(counts, n, p) >= each)
    assert np.all(stats.binom.sf(counts - 1, n, p) >= each)


# -------------------------------------------------------------------------------------------- distribution


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_law_is_that_of_all_thresholds_listed(d: int) -> None:
    rng = np.random.default_rng(d)
    for size in (1, 2, 7):
        data = np.stack([rng.integers(0, 2**d, size), rng.integers(0, 2, size)], axis=1)
        law = ThresholdLearner(d, 0.7).law(data)
        assert law.outcomes == tuple(range(2**d + 1))
        np.testing.assert_allclose(law.probabilities, listed(d, 0.7, data), rtol=1e-12)


@pytest.mark.parametrize("d", [4, 62])
def test_draws_follow_the_law(d: int) -> None:
    points = (1, 5, 11)
    data, n = rows((5, 1), (5, 0), (11, 0), (1, 1), (11, 0), (5, 1)), 200_000
    piece = ReleasedThresholdPiece(ThresholdLearner(d, 0.5), points)
    same(np.bincount(piece(data, n, np.random.default_rng(1)), minlength=4), piece.law(data).probabilities)


def test_all_thresholds_of_a_piece_are_drawn_alike() -> None:
    learner, data, n = ThresholdLearner(3, 0.5), rows((2, 1), (6, 0)), 200_000
    drawn = np.bincount(learner(data, n, np.random.default_rng(2)), minlength=9)
    same(drawn, listed(3, 0.5, data))


def test_where_the_threshold_lies_loses_nothing_of_the_level() -> None:
    learner = ThresholdLearner(5, 0.6)
    x, y = rows((3, 1), (9, 0), (30, 1)), rows((3, 1), (20, 1), (30, 1))
    piece = ReleasedThresholdPiece(learner, (3, 9, 20, 30))
    whole, part = curve(learner.law(x), learner.law(y)), curve(piece.law(x), piece.law(y))
    for delta in (0.0, 0.01, 0.1):
        assert part.epsilon(delta) == pytest.approx(whole.epsilon(delta), rel=1e-12)


def test_no_pair_of_small_datasets_exceeds_the_level_and_d_bits_approach_it() -> None:
    for rate in (0.1, 0.5, 2.0):
        records = list(itertools.product(range(4), (0, 1)))
        laws = {data: np.log(listed(2, rate, data)) for data in itertools.combinations_with_replacement(records, 2)}
        learner = ThresholdLearner(2, rate)
        for (a, p), (b, q) in itertools.combinations(laws.items(), 2):
            if set(a) & set(b):
                assert np.abs(p - q).max() <= learner.level * (1 + 1e-12)
        np.testing.assert_allclose(np.log(learner.law(rows((3, 1), (0, 0))).probabilities), laws[(0, 0), (3, 1)])
        levels = [
            curve(*(ReleasedThresholdPiece(ThresholdLearner(d, rate), (0,)).law(rows((0, y))) for y in (0, 1))).epsilon(
                0.0
            )
            for d in (4, 16, 62)
        ]
        alone = [math.exp(-rate) / (2.0**d + math.exp(-rate)) for d in (4, 16, 62)]
        assert levels == pytest.approx([level_of_flip(p, 2 * rate) for p in alone], rel=1e-9)
        assert levels[-1] == pytest.approx(2 * rate, rel=1e-9)


# ---------------------------------------------------------------------------------------- mutants


def test_mutants_have_the_laws_that_they_are_described_by() -> None:
    base, data = ThresholdLearner(4, 0.5), rows((5, 1), (5, 0), (11, 0), (1, 1))
    for name, rate in (("scale_halved", 0.25), ("scale_doubled", 1.0), ("normalised_error", 0.125)):
        law: FiniteLaw = MUTANTS[name].build(base).law(data)  # type: ignore[attr-defined]
        np.testing.assert_allclose(law.probabilities, listed(4, rate, data), rtol=1e-12)
    best = MUTANTS["argmin_with_ties"].build(base)
    # Mistakes by threshold: 0 to 1 make 2, 2 to 5 make 3, 6 to 11 make 3, 12 to 16 make 2.
    assert best.law(data).outcomes == (0,)  # type: ignore[attr-defined]
    assert set(best(data, 50, np.random.default_rng(0)).tolist()) == {0}
    sampled = MUTANTS["sample_realised_hypotheses"].build(base)
    law = sampled.law(data)  # type: ignore[attr-defined]
    assert law.outcomes == (1, 5, 11, 16)
    np.testing.assert_allclose(law.probabilities, special.softmax([-1.0, -1.5, -1.5, -1.0]), rtol=1e-12)
    drawn = sampled(data, 100_000, np.random.default_rng(3))
    same(np.array([(drawn == t).sum() for t in law.outcomes]), law.probabilities)
    assert np.isin(drawn, law.outcomes).all()


def test_the_doubled_scale_reaches_four_epsilon() -> None:
    base = ThresholdLearner(62, 0.5)
    doubled = ReleasedThresholdPiece(MUTANTS["scale_doubled"].build(base), (0,))  # type: ignore[arg-type]
    assert curve(doubled.law(rows((0, 0))), doubled.law(rows((0, 1)))).epsilon(0.0) == pytest.approx(2.0, rel=1e-9)


# ------------------------------------------------------------------------------------ sample sizes


def test_exact_failures_are_those_of_the_law() -> None:
    d, epsilon, size = 5, 0.8, 9
    middle, learner = 2 ** (d - 1), ThresholdLearner(d, epsilon)
    fails = [
        1.0 - learner.law(rows(*[(middle - 1, 0)] * k, *[(middle, 1)] * (size - k))).probabilities[middle]
        for k in range(size + 1)
    ]
    assert balanced_failure(d, epsilon, size) == pytest.approx(fails[size // 2], rel=1e-12)
    for mass in (0.5, 0.8):
        known = stats.binom.pmf(np.arange(size + 1), size, mass) @ fails
        assert fresh_failure(d, epsilon, size, mass) == pytest.approx(known, rel=1e-12)


def test_fresh_samples_fail_as_often_as_computed() -> None:
    n, examples = 100_000, TwoPoints(2**15)
    drawn = FreshThresholds(ThresholdLearner(16, 0.5), 40)(examples, n, np.random.default_rng(4))
    fails = np.array([(drawn != 2**15).sum(), (drawn == 2**15).sum()])
    p = fresh_failure(16, 0.5, 40)
    same(fails, np.array([p, 1 - p]))


def test_fresh_uniform_samples_are_learned_as_by_the_law_of_each() -> None:
    # Mean mass of the true threshold, over all samples of 2 numbers of 3 bits.
    d, t, n = 3, 3, 200_000
    p = np.mean(
        [listed(d, 1.5, [(x, int(x >= t)) for x in sample])[t] for sample in itertools.product(range(2**d), repeat=2)]
    )
    drawn = FreshThresholds(ThresholdLearner(d, 1.5), 2)(UniformNumbers(d, t), n, np.random.default_rng(5))
    hits = int((drawn == t).sum())
    same(np.array([hits, n - hits]), np.array([p, 1 - p]))


def test_the_catalogues_table() -> None:
    found = [
        [least_size(lambda n, d=d, f=f: f(d, 0.5, n), 0.01, 999) for d in (4, 8, 16, 32)]  # type: ignore[misc]
        for f in (balanced_failure, fresh_failure)
    ]
    assert found == [[30, 41, 63, 108], [34, 47, 72, 121]]
    # Least sizes are by bisection: failures fall with the size.
    for d in (4, 32):
        for failure in (balanced_failure, fresh_failure):
            assert np.all(np.diff([failure(d, 0.5, n) for n in range(1, 200)]) <= 0)


def test_errors_of_thresholds() -> None:
    two = ThresholdError(TwoPoints(8, mass=0.3))(np.array([0, 7, 8, 9, 16]))
    assert two.tolist() == [0.3, 0.3, 0.0, 0.7, 0.7]
    at = np.arange(9)
    by_definition = [np.mean((np.arange(8) >= t) != (np.arange(8) >= 3)) for t in at]
    assert ThresholdError(UniformNumbers(3, 3))(at).tolist() == by_definition


def test_the_sufficient_size_suffices() -> None:
    for d, epsilon, alpha, beta in itertools.product((4, 16, 62), (0.05, 0.5, 2.0), (0.05, 0.2), (0.01, 0.2)):
        size = sufficient_rows(2.0**d + 1, epsilon, alpha, beta)
        assert fresh_failure(d, epsilon, size, 1 - 2 * alpha * (1 + 1e-9)) <= beta


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: ThresholdLearner(63, 0.5), "1 to 62, got 63"),
        (lambda: ThresholdLearner(4, 0.0), "epsilon > 0, got 0.0"),
        (lambda: ThresholdLearner(4, 0.5).law(rows((16, 0))), "numbers of 4 bits"),
        (lambda: ThresholdLearner(4, 0.5).law(rows((1, 2))), "labels 0 and 1"),
        (lambda: ThresholdLearner(4, 0.5).law(np.zeros((2, 3), int)), r"shape \(rows, 2\)"),
        (lambda: ThresholdLearner(17, 0.5).law(rows((1, 0))), "at most 16 bits, for a distribution, got 17"),
        (lambda: ThresholdLearner(4, 20.0).law(rows(*[(1, 0)] * 40)), "log weights within 700"),
        (lambda: ReleasedThresholdPiece(ThresholdLearner(4, 0.5), (3, 3)), "increasing points"),
        (lambda: ReleasedThresholdPiece(ThresholdLearner(4, 0.5), (3,)).law(rows((2, 0))), r"numbers among \(3,\)"),
        (lambda: TwoPoints(0), "threshold >= 1, got 0"),
        (lambda: FreshThresholds(ThresholdLearner(4, 0.5), 0), "sample size >= 1, got 0"),
    ],
)
def test_bad_input_is_shown(make: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        make()
