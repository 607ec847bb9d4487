"""Features with few parameters: clamped outputs, shifts of several coordinates, sums with an answer."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from auditor import PureDP
from auditor.events.event_learner import EventLearner
from auditor.events.float_bits import Unreachable, near_answers
from auditor.events.parametric_features import Clipped, Marked, learn_clipped, learn_marked


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("answer", [-3.0, 1.0, 2.0, 1000.0])
def test_an_answer_plus_a_float_is_never_unreachable(kind: type, answer: float) -> None:
    # Noise from far below the answer to far above it, the sum rounded to the same precision.
    rng = np.random.default_rng(1)
    noise: Any = (rng.laplace(size=20_000) * 10.0 ** rng.uniform(-12, 5, 20_000)).astype(kind)
    outputs = (kind(answer) + noise).astype(np.float64)
    assert not Unreachable(answer, kind is np.float32)(outputs).any()


def test_textbook_noise_is_often_unreachable_from_the_other_answer() -> None:
    # Where |y| < 1/2 the sum y = 1 + n has n in (-3/2, -1/2): a multiple of 2^-53, of 2^-52 if y < 0. For y in
    # (2^-(k + 1), 2^-k) that leaves out 1 - 2^-k of the floats, and 1 - 2^-(k + 1) for y < 0; half of those below -1/2
    # down to -1, of those from -2 to -1, from -4 to -3 and so on, where n has one bit less than y.
    rng = np.random.default_rng(2)
    laplace, n = rng.laplace(size=200_000), 200_000

    def between(low: float, high: float) -> float:
        return 0.5 * (math.exp(-low) - math.exp(-high))

    exact = sum(between(2.0 ** -(k + 1), 2.0**-k) * (2 - 2.0**-k - 2.0 ** -(k + 1)) for k in range(1, 60))
    exact += 0.5 * (between(0.5, 1.0) + between(1.0, 2.0) + between(3.0, 4.0) + between(7.0, 8.0) + between(15.0, 16.0))
    found = Unreachable(1.0)(laplace).mean()
    assert abs(found - exact) < 5 * math.sqrt(exact * (1 - exact) / n)
    assert not Unreachable(1.0)(1 + rng.laplace(size=n)).any()


def test_answers_are_looked_for_near_the_medians_in_the_precision_of_the_outputs() -> None:
    x = np.array([3.25, 2.75, 3.5, np.nan])
    assert near_answers(x, x + 2) == [Unreachable(c, True) for c in (2.0, 3.0, 4.0, 5.0, 6.0)]
    assert near_answers(x + 0.1, x) == [Unreachable(c) for c in (2.0, 3.0, 4.0)]
    assert near_answers(x[:3] - 3, x) == [Unreachable(c, True) for c in (-1.0, 1.0, 2.0, 3.0, 4.0)]
    assert near_answers(np.full(3, np.nan), x) == []


def test_what_is_no_finite_number_is_neither_reachable_nor_not() -> None:
    values = Unreachable(1.0, True)(np.array([np.nan, np.inf, 1e300, 0.25]))
    assert np.isnan(values[:3]).all()
    assert values[3] == 0
    assert Unreachable(2.0).above(0.5) == "output is not 2 plus a float"
    assert Unreachable(2.0, True).below(0.5) == "output is 2 plus a float of single precision"


def test_values_that_repeat_go_to_the_side_of_the_dataset_that_has_them() -> None:
    rng = np.random.default_rng(3)
    x, y = np.clip(rng.laplace(size=(2, 300)), -2, 2)
    y += 1
    marked = learn_marked(x, y)
    assert marked == Marked((-2.0, 2.0), (-1.0, 3.0))
    assert marked(np.array([-2.0, 2.0, -1.0, 3.0, 0.5, np.nan])).tolist()[:5] == [-np.inf, -np.inf, np.inf, np.inf, 0.5]
    assert learn_marked(y, x) == marked
    assert learn_marked(rng.normal(size=300), rng.normal(size=300)) is None
    assert learn_marked(np.full(300, np.nan), x) is None


def test_marked_values_in_words() -> None:
    marked = Marked((-2.0, 2.0), (3.0,))
    assert marked.below(-math.inf) == "output = -2 or = 2"
    assert marked.below(0.5) == "output = -2 or = 2 or <= 0.5, but not 3"
    assert marked.above(0.5) == "output = 3 or > 0.5, but not -2 or 2"
    assert Marked((), (3.0,)).below(0.5) == "output <= 0.5, but not 3"


def test_the_clipped_sum_is_the_likelihood_ratio_of_laplace_noise() -> None:
    rng = np.random.default_rng(4)
    first, second = np.array([0.0, 2.0, 1.0, 5.0]), np.array([1.0, 0.0, 1.0, 5.5])
    outputs = first + rng.laplace(size=(100, 4))
    ratio = (np.abs(outputs - second) - np.abs(outputs - first)).sum(axis=1)
    clipped = Clipped(tuple(first.tolist()), tuple(second.tolist()))
    np.testing.assert_allclose(2 * clipped(outputs), ratio, atol=1e-12)
    outputs[:, 1] = np.nan
    assert np.isfinite(clipped(outputs)).all()
    assert "- output[0] clipped to [0, 1] + output[1] clipped to [0, 2]" in clipped.above(0.5)


def test_only_coordinates_that_differ_clearly_are_clipped() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.laplace(size=(2, 400, 5))
    y[:, 1] += 1
    assert learn_clipped(x, y) is None  # one coordinate has events of its own
    y[:, 3] -= 1
    clipped = learn_clipped(x, y)
    assert clipped is not None
    assert [j for j, (a, b) in enumerate(zip(clipped.first, clipped.second, strict=True)) if a != b] == [1, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[0, 1] = np.inf
        x[:, 0] = np.nan
        assert learn_clipped(x, y) is None


def test_shifts_of_several_coordinates_are_found_by_the_clipped_sum() -> None:
    rng = np.random.default_rng(6)
    x, y = np.rint(rng.laplace(size=(2, 300, 3)) * 2.0**10) / 2.0**10
    learner = EventLearner(PureDP(1.0), 0.01)
    learner.add(x, y + 1, [])
    learner.learn(False)
    assert learner.proposal is not None
    assert isinstance(learner.proposal.chain.feature, Clipped)
