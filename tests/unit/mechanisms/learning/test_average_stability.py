"""On-average stability: closed forms against training and enumeration, the estimator's distribution and mistakes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mechanisms.learning.average_stability import (
    DESCENT_MUTANTS,
    MUTANTS,
    RootMeanSquareMove,
    SquaredMove,
    enumerated,
    expected_outputs,
)
from mechanisms.learning.stable_learners import (
    FiniteRecordDistribution,
    LabelMean,
    LogisticLoss,
    QuadraticLoss,
    RidgePrediction,
    StepSizes,
    StochasticGradientDescent,
    alpha_of,
    alpha_of_mean,
    bernoulli,
    coefficients,
    constant_step_bound,
    first_moment_of,
)

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6
Q = 0.3
LABELS = bernoulli(Q)
CONSTANT = StochasticGradientDescent(QuadraticLoss(), StepSizes(0.1))
PAIRS = FiniteRecordDistribution(((1.0, 0.0), (1.0, 1.0), (-2.0, 1.0)), (0.2, 0.5, 0.3))


def hoeffding(most: float, n: int) -> float:
    """How far the mean of n numbers in [0, most] may be from its expectation."""
    return most * math.sqrt(math.log(2 / ALARM) / (2 * n))


# ------------------------------------------------------------------------------------ closed forms


def test_expected_weights_for_given_orders() -> None:
    coins = np.array([[0, 1, 2], [2, 0, 1], [1, 1, 1]])
    used = coefficients(CONSTANT, 3)  # records are drawn alike, so that only how often each step is made counts
    assert expected_outputs(CONSTANT, LABELS, 3, coins) == pytest.approx([Q * used.sum()] * 3, rel=1e-12)
    descent = StochasticGradientDescent(LogisticLoss(0.1), StepSizes(0.5))
    plain, turned, again = expected_outputs(descent, PAIRS, 3, coins)
    assert plain == pytest.approx(turned, rel=1e-12)
    assert abs(again - plain) > 1e-6


@pytest.mark.parametrize("size", [100, 1000, 10_000])
def test_golden_values_of_gradient_descent(size: int) -> None:
    used = coefficients(CONSTANT, size)
    assert alpha_of(used, LABELS) * math.sqrt(size) == pytest.approx(0.148678, abs=5e-7)
    assert size * first_moment_of(used, LABELS) == pytest.approx(0.42, abs=1.2e-5)
    root = alpha_of(
        coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(1.0, root=0.5)), size), LABELS
    ) * math.sqrt(size)
    assert root == pytest.approx({100: 0.149, 1000: 0.082, 10_000: 0.046}[size], abs=5e-4)
    harmonic = alpha_of(
        coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(1.0, power=1.0)), size), LABELS
    )
    assert size * harmonic == pytest.approx(0.6481, abs=5e-5)
    assert size * alpha_of_mean(Q, size) == pytest.approx(math.sqrt(0.42), rel=1e-12)


@pytest.mark.parametrize(
    "steps", [StepSizes(0.1), StepSizes(1.0, root=0.5), StepSizes(1.0, power=1.0), StepSizes(0.7, power=0.5)]
)
@pytest.mark.parametrize(("passes", "average"), [(1, False), (1, True), (3, False), (2, True)])
def test_coefficients_are_the_outputs_on_one_label_of_one(steps: StepSizes, passes: int, average: bool) -> None:
    learner = StochasticGradientDescent(QuadraticLoss(), steps, passes=passes, average=average)
    units = np.eye(6)[:, :, None]
    coins = learner.coins(6, 6, np.random.default_rng(0))
    assert learner(units, coins) == pytest.approx(coefficients(learner, 6), rel=1e-12, abs=1e-15)


def test_steps_of_one_over_t_give_the_mean() -> None:
    assert coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(1.0, power=1.0)), 50) == pytest.approx(
        np.full(50, 1 / 50)
    )


@pytest.mark.parametrize("average", [False, True])
def test_enumeration_agrees_with_the_closed_form(average: bool) -> None:
    learner = StochasticGradientDescent(QuadraticLoss(), StepSizes(0.3), average=average)
    used, found = coefficients(learner, 5), enumerated(learner, LABELS, 5)
    assert found.stored == pytest.approx(alpha_of(used, LABELS) ** 2, rel=1e-12)
    assert found.by_position == pytest.approx(2 * Q * (1 - Q) * used**2, rel=1e-10)
    assert found.variance == pytest.approx(Q * (1 - Q) * float((used**2).sum()), rel=1e-12)
    assert found.variance == pytest.approx(2.5 * found.stored, rel=1e-12)  # Efron-Stein, an equality


def test_the_reduction_by_plain_loops() -> None:
    """Both sides once more, one training at a time."""

    def train(records: list[tuple[float, float]]) -> float:
        weight = 0.0
        for feature, label in records:
            weight -= 0.5 * ((1 / (1 + math.exp(-weight * feature)) - label) * feature + 0.1 * weight)
        return weight

    values = [(float(x), float(y)) for x, y in PAIRS.values]
    stored = permuted = 0.0
    orders = list(itertools.permutations(range(3)))
    for drawn in itertools.product(range(3), repeat=4):
        mass = math.prod(PAIRS.probabilities[i] for i in drawn)
        data, fresh = [values[i] for i in drawn[:3]], values[drawn[3]]
        for j in range(3):
            other = [*data[:j], fresh, *data[j + 1 :]]
            stored += mass / 3 * (train(data) - train(other)) ** 2
        other = [fresh, *data[1:]]
        for order in orders:
            permuted += mass / 6 * (train([data[i] for i in order]) - train([other[i] for i in order])) ** 2
    found = enumerated(StochasticGradientDescent(LogisticLoss(0.1), StepSizes(0.5)), PAIRS, 3)
    assert (found.stored, found.permuted) == pytest.approx((stored, permuted), rel=1e-12)
    assert stored == pytest.approx(permuted, rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_reduction_is_an_equality_and_uniform_stability_is_more(size: int) -> None:
    found = enumerated(StochasticGradientDescent(LogisticLoss(0.1), StepSizes(0.5)), PAIRS, size)
    assert found.stored == pytest.approx(found.permuted, rel=1e-12)
    assert found.stored < found.uniform
    assert found.variance < 0.5 * size * found.stored  # Efron-Stein, strict where it is not linear
    assert list(found.by_position) == sorted(found.by_position)  # late records weigh more


def test_the_bound_for_a_constant_step() -> None:
    """Attained up to the gradients: at L = 1/2 and the variance 1/4 of a fair label alpha^2 is half of it."""
    for step in (0.01, 0.1, 0.9):
        alpha = alpha_of(
            coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(step)), 10_000), bernoulli(0.5)
        )
        assert alpha**2 == pytest.approx(0.5 * constant_step_bound(step, 10_000, lipschitz=0.5), rel=1e-9)


def test_atoms() -> None:
    assert LABELS.variance == pytest.approx(0.21)
    assert LABELS.distance == pytest.approx(0.42)
    drawn = PAIRS.draw((20_000,), np.random.default_rng(1))
    counts = [int((drawn == np.array(value)).all(axis=1).sum()) for value in PAIRS.values]
    assert stats.chisquare(counts, 20_000 * np.array(PAIRS.probabilities)).pvalue > ALARM


# --------------------------------------------------------------------------------------- estimator


def test_the_law_of_the_estimator_for_the_mean() -> None:
    n, size = 50_000, 7
    drawn = SquaredMove(LabelMean(), size)(LABELS, n, np.random.default_rng(2)) * size**2
    assert np.all(np.isclose(drawn, 0, atol=1e-12) | np.isclose(drawn, 1))
    assert stats.binomtest(int((drawn > 0.5).sum()), n, 2 * Q * (1 - Q)).pvalue > ALARM


@pytest.mark.parametrize("order", ["stored", "permuted"])
def test_the_law_of_the_estimator_for_a_linear_learner(order: str) -> None:
    n, size = 50_000, 4
    learner = StochasticGradientDescent(QuadraticLoss(), StepSizes(0.4), order)  # type: ignore[arg-type]
    drawn = SquaredMove(learner, size)(LABELS, n, np.random.default_rng(3))
    squares = coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(0.4)), size) ** 2
    near = np.isclose(drawn[:, None], np.array([0.0, *squares]), atol=1e-12)
    assert np.all(near.sum(axis=1) == 1)
    moved = 2 * Q * (1 - Q)
    assert stats.chisquare(near.sum(axis=0), n * np.array([1 - moved, *[moved / size] * size])).pvalue > ALARM


def test_a_ridge_regression_in_closed_form() -> None:
    """On features that are all 1 it is the mean over ``1 + penalty``."""
    source = FiniteRecordDistribution(((1.0, 0.0), (1.0, 1.0)), (1 - Q, Q))
    drawn = SquaredMove(RidgePrediction(1.0, 0.25), 5)(source, 1000, np.random.default_rng(4))
    moved = (1 / (5 * 1.25)) ** 2
    assert np.all(np.isclose(drawn, 0, atol=1e-12) | np.isclose(drawn, moved))


def test_estimates_of_alpha() -> None:
    found = RootMeanSquareMove(SquaredMove(LabelMean(), 10), 4_000)(LABELS, 3, np.random.default_rng(5))
    assert found**2 == pytest.approx(np.full(3, alpha_of_mean(Q, 10) ** 2), abs=hoeffding(0.01, 4_000))


# ----------------------------------------------------------------------------------------- mutants


SIZE = 8
WRONG = {
    # E |y - y'| / n; (1 - q) / n^2; any of n labels may have moved; q (1 - q) / (n (n - 1)), by the mean of the others.
    "first_moment": (LabelMean(), 2 * Q * (1 - Q) / SIZE, 1 / SIZE),
    "adversarial_replacement": (LabelMean(), (1 - Q) / SIZE**2, SIZE**-2.0),
    "maximum_over_entries": (LabelMean(), (1 - Q * Q**SIZE - (1 - Q) * (1 - Q) ** SIZE) / SIZE**2, SIZE**-2.0),
    "add_remove_for_replace": (LabelMean(), Q * (1 - Q) / (SIZE * (SIZE - 1)), SIZE**-2.0),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_mutant_estimates(name: str) -> None:
    learner, value, most = WRONG[name]
    drawn = MUTANTS[name].build(SquaredMove(learner, SIZE))(LABELS, 40_000, np.random.default_rng(6))
    mean = float(np.mean(np.asarray(drawn)))
    assert mean == pytest.approx(value, abs=hoeffding(most, 40_000))
    assert abs(value - alpha_of_mean(Q, SIZE) ** 2) > hoeffding(most, 40_000)


@pytest.mark.parametrize(("step", "size"), [(0.5, 30), (0.1, 10)])
def test_independent_coins_count_the_variance_of_the_coins(step: float, size: int) -> None:
    """Outputs of independent orders share ``mean(c)^2`` of each label that is not replaced, for every n."""
    used = coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(step)), size)
    value = 2 * Q * (1 - Q) * (float((used**2).sum()) - (size - 1) * float(used.mean()) ** 2)
    built = MUTANTS["independent_coins"].build(
        SquaredMove(StochasticGradientDescent(QuadraticLoss(), StepSizes(step), "permuted"), size)
    )
    drawn = np.asarray(built(LABELS, 40_000, np.random.default_rng(7)))
    spread = 6 * float(drawn.std()) / math.sqrt(40_000)  # six standard errors: 2e-9 for a mean of so many
    assert float(drawn.mean()) == pytest.approx(value, abs=spread)
    assert value > 1.4 * alpha_of(used, LABELS) ** 2


def test_what_wrong_descents_estimate() -> None:
    size, base = 10, SquaredMove(CONSTANT, 10)
    used = coefficients(CONSTANT, size)
    # A record is used at step t with probability 1/n, independently: the mean square of its sum.
    both = float((used**2).sum()) / size + (float(used.sum()) ** 2 - float((used**2).sum())) / size**2
    twice = coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(0.1), passes=2), size)
    values = {
        "sampling_with_replacement": 2 * Q * (1 - Q) * both,
        "several_epochs": alpha_of(twice, LABELS) ** 2,
    }
    for name, value in values.items():
        drawn = np.asarray(DESCENT_MUTANTS[name].build(base)(LABELS, 40_000, np.random.default_rng(8)))
        spread = 6 * float(drawn.std()) / math.sqrt(40_000)  # six standard errors: 2e-9 for a mean of so many
        assert float(drawn.mean()) == pytest.approx(value, abs=spread)
        assert value > 1.5 * alpha_of(used, LABELS) ** 2
    average = StochasticGradientDescent(QuadraticLoss(), StepSizes(0.1), average=True)
    last = DESCENT_MUTANTS["last_iterate_for_average"].build(SquaredMove(average, size))
    assert last == base
    uncoupled = DESCENT_MUTANTS["uncoupled_permutations"].build(base)
    assert uncoupled == MUTANTS["independent_coins"].build(
        SquaredMove(StochasticGradientDescent(QuadraticLoss(), StepSizes(0.1), "permuted"), size)
    )


# ------------------------------------------------------------------------------------------ errors


def test_errors_show_what_was_given() -> None:
    with pytest.raises(ValueError, match=r"1\.5"):
        bernoulli(1.5)
    with pytest.raises(ValueError, match="records of one length"):
        FiniteRecordDistribution(((1.0,), (1.0, 2.0)), (0.5, 0.5))
    with pytest.raises(ValueError, match=r"\(0\.5, 0\.6\)"):
        FiniteRecordDistribution(((1.0,), (2.0,)), (0.5, 0.6))
    with pytest.raises(ValueError, match="-1"):
        FiniteRecordDistribution(((1.0,), (2.0,)), (-1.0, 2.0))
    with pytest.raises(ValueError, match="0"):
        FiniteRecordDistribution(((1.0,), (2.0,)), (1.0,))
    with pytest.raises(ValueError, match="sideways"):
        StochasticGradientDescent(QuadraticLoss(), StepSizes(0.1), "sideways")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 0"):
        StochasticGradientDescent(QuadraticLoss(), StepSizes(0.1), passes=0)
    with pytest.raises(ValueError, match="size > 0"):
        StepSizes(0.0)
    with pytest.raises(ValueError, match="penalty > 0"):
        RidgePrediction(1.0, -1.0)
    with pytest.raises(ValueError, match="got 1"):
        SquaredMove(LabelMean(), 1)
    with pytest.raises(ValueError, match="permuted"):
        coefficients(StochasticGradientDescent(QuadraticLoss(), StepSizes(0.1), "permuted"), 5)
    with pytest.raises(ValueError, match="LogisticLoss"):
        coefficients(StochasticGradientDescent(LogisticLoss(0.1), StepSizes(0.1)), 5)
    with pytest.raises(ValueError, match="LabelMean"):
        DESCENT_MUTANTS["several_epochs"].build(SquaredMove(LabelMean(), 5))
    with pytest.raises(ValueError, match="n >= 1"):
        SquaredMove(LabelMean(), 5)(LABELS, 0, np.random.default_rng(0))
