"""Gradients by example against finite differences, and clipping."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.training.models import (
    HiddenLayerNetwork,
    LogisticRegression,
    Model,
    clip_factors,
    gradients_by_example,
    join_norms,
    read_rows,
    sum_clipped,
)

MODELS: list[Model] = [LogisticRegression(5), HiddenLayerNetwork(5, 3)]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def make_rows(rows: int = 4, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 5))
    return np.column_stack([x, np.where(rng.random(rows) < 0.5, -1.0, 1.0)])


@each_model
def test_gradients_are_those_of_the_losses(model: Model) -> None:
    rng, data, h = np.random.default_rng(2), make_rows(), 1e-6
    weights = rng.normal(size=(3, sum(model.sizes)))
    found = gradients_by_example(model, weights, data)
    assert found.shape == (3, 4, sum(model.sizes))
    for k in range(weights.shape[1]):
        moved = np.zeros_like(weights)
        moved[:, k] = h
        numeric = (model.losses(weights + moved, data) - model.losses(weights - moved, data)) / (2 * h)
        # Central differences err by h^2 and by rounding over h, about 1e-10.
        np.testing.assert_allclose(found[:, :, k], numeric, atol=1e-8)


@each_model
def test_sums_and_norms_are_those_of_the_gradients(model: Model) -> None:
    rng, data = np.random.default_rng(3), make_rows()
    weights, factors = rng.normal(size=(2, sum(model.sizes))), rng.random((2, 4))
    layers, each = model.gradients(weights, data), gradients_by_example(model, weights, data)
    np.testing.assert_allclose(join_norms(layers), np.linalg.norm(each, axis=2), rtol=1e-12)
    np.testing.assert_allclose(sum_clipped(layers, factors), np.einsum("nm,nmp->np", factors, each), atol=1e-12)
    parts = np.split(each, np.cumsum(model.sizes)[:-1], axis=2)
    for layer, part in zip(layers, parts, strict=True):
        np.testing.assert_allclose(layer.norms, np.linalg.norm(part, axis=2), rtol=1e-12)


@each_model
def test_an_empty_dataset_has_no_gradient(model: Model) -> None:
    weights = model.initial()[None, :]
    assert not sum_clipped(model.gradients(weights, np.zeros((0, 6))), np.zeros((1, 0))).any()


@each_model
def test_the_least_gradient_is_a_lower_bound(model: Model) -> None:
    rng, rows = np.random.default_rng(4), make_rows(20)
    for moved in (0.0, 0.3, 2.0):
        step = rng.normal(size=(200, sum(model.sizes)))
        weights = model.initial() + moved * step / np.linalg.norm(step, axis=1, keepdims=True)
        norms = join_norms(model.gradients(weights, rows)).min(axis=0)
        least = [model.least_gradient(row, moved) for row in rows]
        assert (norms >= np.array(least) * (1 - 1e-12)).all()


def test_factors_clip() -> None:
    norms = np.array([[0.0, 0.5, 4.0]])
    np.testing.assert_allclose(clip_factors(norms, 1.0) * norms, [[0.0, 0.5, 1.0]])


@pytest.mark.parametrize("data", [np.zeros(3), np.zeros((2, 3))])
def test_rows_without_labels_are_refused(data: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_rows(data)
