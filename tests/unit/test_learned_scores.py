"""Scores that are learned: sums of coordinate scores, distances, classifiers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import Pair, PureDP, audit, classifier
from auditor.events.classifier import Score
from auditor.events.features import Additive, Distance
from auditor.events.fitting import learn_additive, learn_distance
from auditor.results import Verdict

PAIR = Pair(np.array([0]), np.array([1]))


def test_a_distance_is_an_interval_in_words() -> None:
    feature = Distance(2.0)
    np.testing.assert_array_equal(feature(np.array([2.0, 3.5, -1.0, np.nan])), [0.0, 1.5, 3.0, np.nan])
    assert feature.below(1.5) == "0.5 <= output <= 3.5"
    assert feature.above(1.5) == "output < 0.5 or output > 3.5"


def test_the_distance_is_from_the_pooled_median() -> None:
    assert learn_distance(np.array([1.0, 2.0]), np.array([3.0, np.inf])) == Distance(2.0)
    assert learn_distance(np.array([np.nan]), np.array([np.inf])) is None


def test_a_sum_of_scores_reads_each_coordinate_by_itself() -> None:
    feature = Additive(((0.0,), (1.0, 2.0)), ((1.0, -1.0, 0.0), (0.5, 0.0, -0.5, 3.0)), 2)
    rows = np.array([[-1.0, 0.0], [0.5, 1.5], [0.0, 9.0], [np.nan, np.nan], [np.inf, -np.inf]])
    np.testing.assert_array_equal(feature(rows), [1.5, -1.0, 0.5, 3.0, -0.5])
    assert feature.below(1.0) == "sum of log-likelihood ratios of output[0], output[1] <= 1"


def test_sums_of_scores_are_the_log_likelihood_ratio_of_independent_bits() -> None:
    # Two bits, kept with probability 3/4: the exact ratio of each is ln 3. With 40,000 draws a side a count of 10,000
    # has a standard error of 87, so each learned score is within 0.1 but for a probability below 1e-20.
    rng = np.random.default_rng(1)
    x = (rng.random((40_000, 2)) < 0.75).astype(float)
    y = (rng.random((40_000, 2)) < 0.25).astype(float)
    feature = learn_additive(x, y, 10)
    assert feature is not None
    found = feature(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(found, [2 * math.log(3), 0.0, -2 * math.log(3)], atol=0.2)


def test_coordinates_that_say_nothing_have_no_score() -> None:
    same = np.arange(200.0).reshape(100, 2)
    assert learn_additive(same, same, 10) is None


def product_of_signs(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Two numbers, each standard normal on both datasets; only the sign of their product depends on the data."""
    values = np.abs(rng.normal(size=(n, 2)))
    first = rng.choice([-1, 1], size=n)
    agree = np.where(rng.random(n) < (0.9 if data[0] else 0.1), 1, -1)
    noisy = np.column_stack([values[:, 0] * first, values[:, 1] * first * agree])
    return np.asarray(np.rint(noisy * 2.0**12) / 2.0**12)


def test_a_classifier_finds_what_no_coordinate_shows() -> None:
    # The sign of the product has a likelihood ratio of 9 at probability 0.9. A score that orders outputs by it gains
    # 0.6 nats a draw against epsilon = 1; 9 nats are needed at alpha = 1e-4, and there are 2,000 draws a side.
    found = audit(product_of_signs, PureDP(1.0), PAIR, alpha=1e-4, draws=4_000, learners=classifier)
    assert found.verdict == Verdict.VIOLATION
    assert found.event is not None
    assert "score" in found.event


def test_audits_with_a_classifier_can_be_repeated() -> None:
    options: dict[str, Any] = {"draws": 2_000, "learners": classifier, "stop": "budget"}
    one, two = (audit(product_of_signs, PureDP(1.0), PAIR, **options).to_json() for _ in range(2))
    assert one == two


def test_a_classifier_takes_numbers_and_missing_values_and_leaves_the_rest() -> None:
    assert classifier(["a", "b"], ["c", "d"]) == []
    rng = np.random.default_rng(2)
    x = np.where(rng.random((300, 2)) < 0.5, np.nan, rng.normal(size=(300, 2)))
    y = rng.normal(size=(300, 2))
    for feature in classifier(x, y):
        assert isinstance(feature, Score)
        assert np.isfinite(feature(x)).all()
        assert np.isfinite(feature(np.array([[np.inf, 0.0]]))).all()
        assert feature(x).mean() > feature(y).mean()


@pytest.mark.parametrize("shape", [(50,), (50, 20)])
def test_a_classifier_is_trained_on_any_width(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    (feature,) = classifier(rng.normal(size=shape) + 1, rng.normal(size=shape))
    assert feature(rng.normal(size=shape)).shape == (50,)
    assert feature.above(0.5) == "logistic score > 0.5"
