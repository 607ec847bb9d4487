"""Perturbed outputs and objectives: minima, sensitivities, and stated distributions."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from auditor.privacy.exact import curve
from mechanisms.training import objective_perturbation, output_perturbation
from mechanisms.training.objective_perturbation import ObjectivePerturbation
from mechanisms.training.output_perturbation import (
    GaussianOutputPerturbation,
    OneWeightPerturbation,
    OutputPerturbation,
    RiskWithNoise,
)
from mechanisms.training.regularised_risk import HuberHinge, ScaledExamples, minimise_risk
from tests.statistics import p_value_of_outputs
from tests.unit.mechanisms.training.test_dp_sgd import ALPHA, merge_rare

ONE = ScaledExamples(("a",), (2.0,), "y", 1.0)
TWO = ScaledExamples(("a", "b"), (2.0, 1.0), "y", 1.0)
LOSS = HuberHinge()


def make_table(rows: int = 12, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.random(rows) * 3, "b": rng.random(rows), "y": rng.integers(0, 3, rows)})


TABLE = make_table()


def test_examples_are_in_the_unit_ball_and_have_the_label() -> None:
    distinct, counts = TWO.read(pd.DataFrame({"a": [5.0, 5.0, 1.0], "b": [1.0, 1.0, 0.0], "y": [1, 1, 0]}))
    np.testing.assert_allclose(distinct, [[-0.5 / math.sqrt(2), 0.0], [math.sqrt(0.5), math.sqrt(0.5)]])
    assert counts.tolist() == [1.0, 2.0]
    above = ScaledExamples(("a",), (1.0,), "y", 1.0, above=4.0)
    assert above.read(pd.DataFrame({"a": [3.0, 4.5], "y": [1, 1]}))[0].tolist() == [[0.0], [0.5]]


def test_the_loss_has_its_derivatives() -> None:
    z, h = np.linspace(-1, 3, 401) + 1e-4, 1e-6
    np.testing.assert_allclose((LOSS.value(z + h) - LOSS.value(z - h)) / (2 * h), LOSS.slope(z), atol=1e-6)
    np.testing.assert_allclose((LOSS.slope(z + h) - LOSS.slope(z - h)) / (2 * h), LOSS.bend(z), atol=1e-6)
    assert LOSS.bend(z).max() == LOSS.curvature


@pytest.mark.parametrize("ridge", [0.05, 1.0, 20.0])
def test_minima_are_those_of_another_method(ridge: float) -> None:
    z, counts = TWO.read(make_table(40, seed=2))

    def risk(w: Any) -> float:
        return float(counts @ LOSS.value(z @ w) + 0.5 * ridge * w @ w)

    other = optimize.minimize(risk, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-14})
    np.testing.assert_allclose(minimise_risk(LOSS, z, counts, ridge), other.x, atol=1e-5)


def test_no_replaced_row_moves_the_minimum_further_than_stated() -> None:
    rng = np.random.default_rng(3)
    for ridge in (0.02, 0.3):
        mechanism = RiskWithNoise(TWO, len(TABLE), ridge, 1.0)
        for _ in range(30):
            other = TABLE.copy()
            other.iloc[0] = np.array([rng.random() * 3, rng.random(), rng.integers(0, 3)])
            moved = np.linalg.norm(mechanism.minimum(TABLE) - mechanism.minimum(other))
            assert moved <= mechanism.sensitivity * (1 + 1e-9)


def turned() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row at the end of the ball, whose label turns around."""
    x, y = TABLE.copy(), TABLE.copy()
    x.iloc[0], y.iloc[0] = [2.0, 1.0, 1], [2.0, 1.0, 0]
    return x, y


def test_the_bound_is_reached_where_all_margins_are_in_the_linear_part() -> None:
    x, y = turned()
    one = OneWeightPerturbation(ONE, len(TABLE), 2.0, 1.5)
    assert curve(one.law(x), one.law(y)).epsilon(0.0) == pytest.approx(1.5, rel=1e-9)
    two = OutputPerturbation(TWO, len(TABLE), 2.0, 1.5)
    assert two.pair_level(x, y) == pytest.approx(1.5, rel=1e-9)
    gaussian = GaussianOutputPerturbation(TWO, len(TABLE), 2.0, 1.5)
    assert curve(gaussian.law(x), gaussian.law(y)).mu() == pytest.approx(1.5, rel=1e-9)


def test_noise_has_the_stated_density() -> None:
    mechanism = OutputPerturbation(TWO, len(TABLE), 0.5, 1.0)
    noise = mechanism(TABLE, 10_000, np.random.default_rng(4)) - mechanism.minimum(TABLE)
    length, angle = np.linalg.norm(noise, axis=1), np.arctan2(noise[:, 1], noise[:, 0])
    # Density exp(-|b| / s) in two dimensions: the length is Gamma(2, s), the direction uniform.
    assert stats.kstest(length, stats.gamma(2, scale=mechanism.scale).cdf).pvalue > ALPHA
    assert stats.kstest(angle, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > ALPHA
    one = OneWeightPerturbation(ONE, len(TABLE), 0.5, 1.0)
    outputs = one(TABLE, 10_000, np.random.default_rng(5))
    law: Any = one.law(TABLE)
    assert outputs.shape == (10_000,)
    assert stats.kstest(outputs, law.cdf).pvalue > ALPHA
    assert np.array_equal(outputs / one.grain, np.rint(outputs / one.grain))


def test_levels_of_output_mutants() -> None:
    (x, y), one = turned(), OneWeightPerturbation(ONE, len(TABLE), 2.0, 1.5)
    two = OutputPerturbation(TWO, len(TABLE), 2.0, 1.5)
    for name, base in (("sensitivity_of_adding", one), ("ridge_left_out", one), ("noise_by_coordinate", two)):
        mutant = output_perturbation.MUTANTS[name]
        built: Any = mutant.build(base)
        assert mutant.true_level is not None
        assert built.pair_level(x, y) == pytest.approx(mutant.true_level(base), rel=1e-9)


OBJECTIVE = ObjectivePerturbation(ONE, len(TABLE), 0.3, 2.0)


def test_weights_minimise_the_perturbed_risk() -> None:
    tilt = np.array([-40.0, -3.0, -0.4, 0.0, 0.7, 2.0, 35.0])
    z, counts = ONE.read(TABLE)
    for b, w in zip(tilt, OBJECTIVE._solve(TABLE, tilt), strict=True):

        def risk(v: float, b: float = b) -> float:
            ridge = OBJECTIVE.rows * OBJECTIVE.ridge
            return float(counts @ LOSS.value(z[:, 0] * v) + 0.5 * ridge * v * v + b * v)

        found = optimize.minimize_scalar(risk, bounds=(-30, 30), method="bounded", options={"xatol": 1e-9})
        assert w == pytest.approx(found.x, abs=1e-5)


def test_cells_follow_the_stated_distribution() -> None:
    for name in (None, *objective_perturbation.MUTANTS):
        built: Any = OBJECTIVE if name is None else objective_perturbation.MUTANTS[name].build(OBJECTIVE)
        merged, outputs = merge_rare(built.law(TABLE), built(TABLE, 10_000, np.random.default_rng(6)))
        assert p_value_of_outputs(outputs, merged) > ALPHA


def test_no_pair_is_above_the_claimed_level() -> None:
    rng = np.random.default_rng(7)
    for ridge in (0.12, 1.0):
        mechanism = dataclasses.replace(OBJECTIVE, ridge=ridge)
        for _ in range(15):
            other = TABLE.copy()
            other.iloc[0] = np.array([rng.random() * 3, rng.random(), rng.integers(0, 3)])
            assert curve(mechanism.law(TABLE), mechanism.law(other)).epsilon(0.0) <= mechanism.epsilon
    x, y = turned()
    assert curve(mechanism.law(x), mechanism.law(y)).epsilon(0.0) > 0.9 * mechanism.epsilon


def test_curvature_alone_decides_where_no_other_example_bends() -> None:
    """One example of 1 or -1 among examples of 0: the density's ratio by hand, at the best weight of a grid."""
    table = pd.DataFrame({"a": [2.0, *[0.0] * 7], "y": [1] * 8})
    other = table.assign(y=[0, *[1] * 7])
    mechanism = ObjectivePerturbation(ONE, 8, 0.25, 2.0, cell=1 / 256, most=2048)
    forgotten: Any = objective_perturbation.MUTANTS["curvature_forgotten"].build(mechanism)
    w, ridge = np.linspace(-3, 3, 60_001), 2.0
    for built, level in ((mechanism, 2.0 - 2 * math.log(1.5)), (forgotten, 2.0)):
        logs = []
        for sign in (1.0, -1.0):
            b = ridge * w + sign * LOSS.slope(sign * w)
            logs.append(-level / 2 * np.abs(b) + np.log(ridge + LOSS.bend(sign * w)))
        by_hand = np.abs(logs[0] - logs[1]).max()
        # A cell is narrower than 0.004, in which the loss changes by less than 0.02.
        assert curve(built.law(table), built.law(other)).epsilon(0.0) == pytest.approx(by_hand, abs=0.02)
    assert by_hand > 2.0


@pytest.mark.parametrize("changed", [{"ridge": 0.0}, {"epsilon": 0.1}, {"examples": TWO}], ids=lambda c: next(iter(c)))
def test_parameters_out_of_range_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        dataclasses.replace(OBJECTIVE, **changed)
