"""A recorded training is the training: the same weights, and noise that was drawn."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.training import StepRecorder
from mechanisms.training.dp_sgd import FeatureReader, TrainedWeights
from mechanisms.training.models import HiddenLayerNetwork
from mechanisms.training.recorded_steps import record_steps


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_a_canary_that_is_never_in_leaves_the_training_as_it_is(rate: float) -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=(30, 4)), np.sign(rng.normal(size=30))])
    training = TrainedWeights(HiddenLayerNetwork(4, 3), FeatureReader(0), 0.05, 2.0, 25, rate=rate, batch=30 * rate)
    recorder = StepRecorder(0.05, 2.0, rate, examples=30)
    weights = record_steps(training, rows, np.ones(5), recorder, 0.0, np.random.default_rng(2))
    (plain,) = training(rows, 1, np.random.default_rng(2))
    np.testing.assert_allclose(weights, plain, atol=1e-4)  # weights are released on a lattice
    table = recorder.table()
    assert table.steps == 25
    assert not table.included.any()
    assert table.layers.tolist() == [12, 3, 3, 1]
    np.testing.assert_allclose(table.surplus, 0.0, atol=1e-12)
    assert (table.largest <= 1 + 1e-9).all()
    assert 0.8 < float(np.sqrt(table.squares.sum() / (25 * 19))) < 1.2
