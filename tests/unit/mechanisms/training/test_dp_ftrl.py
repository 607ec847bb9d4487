"""DP-FTRL: the matrix, the sensitivity, the noise and the stated distribution."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from auditor.privacy.exact import curve
from mechanisms.training.dp_ftrl import DPFTRL, MUTANTS
from mechanisms.training.dp_sgd import CanaryReader, FeatureReader
from mechanisms.training.models import LogisticRegression
from tests.statistics import p_value_of_outputs
from tests.unit.mechanisms.training.test_dp_sgd import ALPHA, CANARY, FEATURES, WITH, WITHOUT, merge_rare

THRICE = DPFTRL(LogisticRegression(FEATURES), FeatureReader(0), 0.1, 1.0, 6, batch=3.0, learning_rate=0.02, epochs=3)


def test_the_whole_matrix_is_the_root_of_prefix_sums() -> None:
    once = dataclasses.replace(THRICE, epochs=1)
    np.testing.assert_allclose(once.matrix @ once.matrix, np.tril(np.ones((6, 6))), atol=1e-12)


@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_the_sensitivity_is_the_largest_norm_of_a_row(name: str | None) -> None:
    built: Any = THRICE if name is None else MUTANTS[name].build(THRICE)
    norms = []
    for slot in range(2):
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            x = np.zeros(6)
            x[slot::2] = signs
            norms.append(np.linalg.norm(built.matrix @ x))
    if name is None:
        assert THRICE.sensitivity == pytest.approx(max(norms), rel=1e-12)
    else:
        level = MUTANTS[name].true_level
        assert level is not None
        assert built.sensitivity < max(norms) * (1 - 1e-3)
        assert level(THRICE) == pytest.approx(max(norms) / built.sensitivity, rel=1e-12)


def test_noise_is_independent_once_the_matrix_is_applied() -> None:
    noise = THRICE.draw_noise(np.ones((6, 20_000, 1), dtype=np.bool_), 1, np.random.default_rng(1))[:, :, 0]
    plain = THRICE.matrix @ noise / (THRICE.sensitivity * THRICE.noise * THRICE.clip)
    # 21 moments, each a mean of 20,000 with deviation at most sqrt(2 / 20,000) = 0.01: six of them is 4e-8 by chance.
    np.testing.assert_allclose(plain @ plain.T / 20_000, np.eye(6), atol=0.06)


@pytest.mark.parametrize("data", [WITH, WITHOUT], ids=["with", "without"])
@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_scores_follow_the_stated_distribution(name: str | None, data: np.ndarray) -> None:
    built: Any = THRICE if name is None else MUTANTS[name].build(THRICE)
    merged, outputs = merge_rare(built.law(data), built(data, 5_000, np.random.default_rng(2)))
    assert p_value_of_outputs(outputs, merged) > ALPHA


@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_levels_are_those_of_the_distribution(name: str | None) -> None:
    built: Any = THRICE if name is None else MUTANTS[name].build(THRICE)
    level = THRICE.mu() if name is None else MUTANTS[name].true_level(THRICE)  # type: ignore[misc]
    assert 0.99 * level <= curve(built.law(WITH), built.law(WITHOUT)).mu() <= level


def test_a_canary_in_another_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="a canary in batch 0"):
        THRICE.law(np.vstack([WITHOUT[:5], CANARY]))


@pytest.mark.parametrize(
    "changed",
    [{"epochs": 4}, {"slot": 2}, {"rate": 0.5}, {"release": "steps"}, {"reader": CanaryReader((1.0, 1.0))}],
    ids=lambda changed: next(iter(changed)),
)
def test_parameters_out_of_range_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        dataclasses.replace(THRICE, **changed)
