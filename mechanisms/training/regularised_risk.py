"""Regularised risk of a linear classifier: examples from a table, the Huber hinge loss, and its minimum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.base.kept import compute_once
from mechanisms.base.mechanism import Dataset, FloatArray, require, require_positive

#: Newton's method ends where the gradient is this small; its last step is one of a quadratic, so that it is exact.
_TOLERANCE, _MOST_STEPS = 1e-13, 200


@dataclass(frozen=True)
class ScaledExamples:
    """Features times label of each person of a table, in the unit ball.

    Parameters
    ----------
    columns : tuple of str
        Features.
    bounds : tuple of float
        Largest value of each, public; values are clipped to it.
    label : str
        Column of the label.
    at_least : float
        The label is 1 from this value on, and -1 below.
    above : float, default 0
        What is subtracted of each feature first; features below it are 0.
    """

    columns: tuple[str, ...]
    bounds: tuple[float, ...]
    label: str
    at_least: float
    above: float = 0.0

    def __post_init__(self) -> None:
        require(len(self.columns) == len(self.bounds) > 0, "a bound for each column", self.bounds)
        for bound in self.bounds:
            require_positive("bound", bound)

    def read(self, data: Dataset) -> tuple[FloatArray, FloatArray]:
        """Distinct examples, of shape (m, d), and how often each occurs, of shape (m,).

        Features are in [0, 1], over the root of their number, and have the label's sign.
        """
        distinct, counts = compute_once(_count_examples, self.read_columns(data), self)
        return distinct, counts

    def read_columns(self, data: Dataset) -> FloatArray:
        """All that is read of a dataset, shape (d + 1, rows); the label comes last."""
        return np.array([np.asarray(data[name], dtype=np.float64) for name in (*self.columns, self.label)])


def _count_examples(table: FloatArray, examples: ScaledExamples) -> tuple[FloatArray, FloatArray]:
    *columns, label = table
    x = (np.column_stack(columns) - examples.above) / examples.bounds
    y = np.where(label >= examples.at_least, 1.0, -1.0)
    signed = np.clip(x, 0.0, 1.0) / math.sqrt(len(columns)) * y[:, None]
    distinct, counts = np.unique(signed, axis=0, return_counts=True)
    return distinct, counts.astype(np.float64)


@dataclass(frozen=True)
class HuberHinge:
    """The hinge loss with a quadratic piece where the margin is within ``width`` of 1.

    Source: Chaudhuri, Monteleoni and Sarwate (2011), section 3.4.2.
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        require(0 < self.width < 1, "a width in (0, 1)", self.width)

    @property
    def curvature(self) -> float:
        """Largest second derivative."""
        return 1.0 / (2.0 * self.width)

    def slope(self, margin: FloatArray) -> FloatArray:
        """Derivative, in [-1, 0]."""
        return np.asarray(np.clip((margin - 1.0 - self.width) / (2.0 * self.width), -1.0, 0.0))

    def bend(self, margin: FloatArray) -> FloatArray:
        """Second derivative, but at the two ends of the quadratic piece."""
        return np.where(np.abs(margin - 1.0) < self.width, self.curvature, 0.0)

    def value(self, margin: FloatArray) -> FloatArray:
        """The loss."""
        inner = (1.0 + self.width - margin) ** 2 / (4.0 * self.width)
        return np.asarray(
            np.where(margin > 1 + self.width, 0.0, np.where(margin < 1 - self.width, 1.0 - margin, inner))
        )


#: The loss with a width of a half.
HUBER_HINGE = HuberHinge()


def minimum_of(examples: ScaledExamples, loss: HuberHinge, ridge: float, data: Dataset) -> FloatArray:
    """Weights that minimise the risk on a dataset, shape (d,), kept between calls; see `minimise_risk`.

    Parameters
    ----------
    examples : ScaledExamples
        Reads the dataset.
    loss, ridge
        See `minimise_risk`.
    data : Dataset
        A table with the columns of the examples.
    """
    return compute_once(_minimum_on, examples.read_columns(data), examples, loss, ridge)


def _minimum_on(table: FloatArray, examples: ScaledExamples, loss: HuberHinge, ridge: float) -> FloatArray:
    return minimise_risk(loss, *_count_examples(table, examples), ridge)


def minimise_risk(loss: HuberHinge, examples: FloatArray, counts: FloatArray, ridge: float) -> FloatArray:
    """Weights that minimise the sum of losses plus ``ridge / 2`` times their square, shape (d,).

    Parameters
    ----------
    loss : HuberHinge
        The loss.
    examples, counts : ndarray
        See `ScaledExamples.read`.
    ridge : float
        Regularisation of the sum, > 0.

    Raises
    ------
    RuntimeError
        If Newton's method does not end.
    """

    def risk(w: FloatArray) -> float:
        return float(counts @ loss.value(examples @ w) + 0.5 * ridge * w @ w)

    weights = np.zeros(examples.shape[1])
    for _ in range(_MOST_STEPS):
        margin = examples @ weights
        gradient = examples.T @ (counts * loss.slope(margin)) + ridge * weights
        if np.linalg.norm(gradient) <= _TOLERANCE * max(1.0, float(counts.sum())):
            return weights
        bent = examples.T @ (examples * (counts * loss.bend(margin))[:, None])
        step = np.linalg.solve(bent + ridge * np.eye(len(weights)), gradient)
        size, here = 1.0, risk(weights)
        while size > 1e-9 and risk(weights - size * step) > here - 1e-4 * size * float(gradient @ step):
            size *= 0.5
        weights = weights - size * step
    raise RuntimeError(f"expected a minimum after {_MOST_STEPS} steps, got a gradient of {np.linalg.norm(gradient):g}")
