"""Logistic regression and a network of one hidden layer, with gradients by example, for many trials at once.

A dataset is a matrix of rows: the features, and a label of -1 or 1 in the last column. Weights have shape (trials, p).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from mechanisms.base.mechanism import Dataset, FloatArray, require


@dataclass(frozen=True)
class LayerGradients:
    """Gradients of one layer, by trial and example.

    Parameters
    ----------
    norms : ndarray of shape (trials, examples)
        Their l2 norms.
    combine : callable
        From factors of shape (trials, examples) to the sum of the gradients with these factors, shape (trials, p).
    expand : callable
        Returns the gradients themselves, shape (trials, examples, p).
    """

    norms: FloatArray
    combine: Callable[[FloatArray], FloatArray]
    expand: Callable[[], FloatArray]


class Model(Protocol):
    """A model with weights in layers, and a loss of each example."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of weights of each layer."""
        ...

    def initial(self) -> FloatArray:
        """First weights, shape (p,); public."""
        ...

    def gradients(self, weights: FloatArray, data: FloatArray) -> tuple[LayerGradients, ...]:
        """Gradients of the loss, a layer each."""
        ...

    def losses(self, weights: FloatArray, data: FloatArray) -> FloatArray:
        """Loss of each example, shape (trials, examples)."""
        ...

    def least_gradient(self, row: FloatArray, moved: float) -> float:
        """Lower bound on the norm of an example's gradient at weights within a distance of the first ones."""
        ...


def read_rows(data: Dataset) -> FloatArray:
    """Rows of a dataset as a matrix; ValueError if the last column is no label of -1 or 1."""
    rows = np.asarray(data, dtype=np.float64)
    require(rows.ndim == 2, "a matrix of rows", rows.shape)
    require(bool(np.all(np.abs(rows[:, -1]) == 1)), "labels of -1 or 1 in the last column", rows[:, -1])
    return rows


def _residual(margins: FloatArray, labels: FloatArray) -> FloatArray:
    """Derivative of ``ln(1 + exp(-y z))`` in z."""
    return -labels * special.expit(-labels * margins)


def _bias_gradients(residual: FloatArray) -> LayerGradients:
    """Gradients of the output's bias."""
    return LayerGradients(
        np.abs(residual),
        lambda factors: (factors * residual).sum(axis=1, keepdims=True),
        lambda: residual[:, :, None],
    )


@dataclass(frozen=True)
class LogisticRegression:
    """Logistic regression: a layer of weights, and one of a bias.

    Parameters
    ----------
    features : int
        Number of features.
    """

    features: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """See `Model`."""
        return self.features, 1

    def initial(self) -> FloatArray:
        """Return zeros."""
        return np.zeros(self.features + 1)

    def _margins(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        return weights[:, :-1] @ x.T + weights[:, -1:]

    def gradients(self, weights: FloatArray, data: FloatArray) -> tuple[LayerGradients, ...]:
        """See `Model`: the residual times the features, and the residual."""
        x = data[:, :-1]
        residual = _residual(self._margins(weights, x), data[:, -1])
        size = np.abs(residual)
        return (
            LayerGradients(
                size * np.linalg.norm(x, axis=1),
                lambda factors: (factors * residual) @ x,
                lambda: residual[:, :, None] * x,
            ),
            _bias_gradients(residual),
        )

    def losses(self, weights: FloatArray, data: FloatArray) -> FloatArray:
        """See `Model`."""
        return np.asarray(np.logaddexp(0.0, -data[:, -1] * self._margins(weights, data[:, :-1])))

    def least_gradient(self, row: FloatArray, moved: float) -> float:
        """See `Model`; the margin is at most the distance times the norm of the features and the constant."""
        norm = math.hypot(float(np.linalg.norm(row[:-1])), 1.0)
        return float(special.expit(-moved * norm)) * norm


@dataclass(frozen=True)
class HiddenLayerNetwork:
    """Units of tanh between features and one output, trained on the logistic loss: four layers.

    Parameters
    ----------
    features, units : int
        Their numbers.
    seed : int, default 0
        Of the first weights, which are public.
    """

    features: int
    units: int
    seed: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """See `Model`: input weights, biases of units, output weights, bias of the output."""
        return self.features * self.units, self.units, self.units, 1

    def initial(self) -> FloatArray:
        """Return normal weights of standard deviation ``1 / sqrt(inputs)``, and no biases."""
        rng = np.random.default_rng(self.seed)
        inner = rng.normal(scale=self.features**-0.5, size=self.features * self.units)
        outer = rng.normal(scale=self.units**-0.5, size=self.units)
        return np.concatenate([inner, np.zeros(self.units), outer, np.zeros(1)])

    def _forward(self, weights: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Output weights (n, h), activations (n, m, h), and outputs (n, m)."""
        inner, bias, outer, last = np.split(weights, np.cumsum(self.sizes)[:-1], axis=1)
        inner = inner.reshape(len(weights), self.units, self.features)
        active = np.tanh(np.einsum("mf,nhf->nmh", x, inner) + bias[:, None, :])
        return outer, active, np.einsum("nmh,nh->nm", active, outer) + last

    def gradients(self, weights: FloatArray, data: FloatArray) -> tuple[LayerGradients, ...]:
        """See `Model`: by backpropagation."""
        x = data[:, :-1]
        outer, active, output = self._forward(weights, x)
        residual = _residual(output, data[:, -1])
        back = residual[:, :, None] * outer[:, None, :] * (1.0 - active**2)  # by unit, (n, m, h)
        size, norm = np.abs(residual), np.linalg.norm(back, axis=2)

        def combine_inner(factors: FloatArray) -> FloatArray:
            found: FloatArray = np.einsum("nmh,mf->nhf", factors[:, :, None] * back, x).reshape(len(weights), -1)
            return found

        return (
            LayerGradients(
                norm * np.linalg.norm(x, axis=1),
                combine_inner,
                lambda: np.einsum("nmh,mf->nmhf", back, x).reshape(*size.shape, -1),
            ),
            LayerGradients(norm, lambda factors: np.einsum("nm,nmh->nh", factors, back), lambda: back),
            LayerGradients(
                size * np.linalg.norm(active, axis=2),
                lambda factors: np.einsum("nm,nmh->nh", factors * residual, active),
                lambda: residual[:, :, None] * active,
            ),
            _bias_gradients(residual),
        )

    def losses(self, weights: FloatArray, data: FloatArray) -> FloatArray:
        """See `Model`."""
        return np.asarray(np.logaddexp(0.0, -data[:, -1] * self._forward(weights, data[:, :-1])[2]))

    def least_gradient(self, row: FloatArray, moved: float) -> float:  # noqa: ARG002 -- whatever the example
        """See `Model`: that of the last bias; activations are in [-1, 1], so the output is at most an l1 norm."""
        first = np.abs(self.initial()[-self.units - 1 :]).sum()
        return float(special.expit(-first - moved * math.sqrt(self.units + 1)))


def gradients_by_example(model: Model, weights: FloatArray, data: FloatArray) -> FloatArray:
    """Gradient of each example, shape (trials, examples, p).

    Parameters
    ----------
    model : Model
        The model.
    weights : ndarray of shape (trials, p)
        Its weights.
    data : ndarray of shape (examples, features + 1)
        Rows with their labels.
    """
    return np.concatenate([layer.expand() for layer in model.gradients(weights, data)], axis=2)


def clip_factors(norms: FloatArray, clip: float) -> FloatArray:
    """Factors that leave no norm above ``clip``."""
    return np.asarray(np.minimum(1.0, clip / np.maximum(norms, 1e-300)))


def join_norms(layers: tuple[LayerGradients, ...]) -> FloatArray:
    """Norms of whole gradients, shape (trials, examples)."""
    return np.asarray(np.sqrt(sum(layer.norms**2 for layer in layers)))


def sum_clipped(layers: tuple[LayerGradients, ...], factors: FloatArray) -> FloatArray:
    """Sum of gradients with factors of shape (trials, examples), shape (trials, p)."""
    return np.concatenate([layer.combine(factors) for layer in layers], axis=1)
