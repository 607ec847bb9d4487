"""Score of outputs by the noise that a replay has seen behind them.

A replay on two datasets with the same variates tells what noise was added to on either, its scale, and what each
variate does to the output. Near that run the noise can so be read off the output, and with it the log-likelihood ratio.
It is exact where the output is linear in the noise and each variate can be told from the others; elsewhere it is an
estimate, which any event may be made of.

Source: linear functions are inverted by the pseudoinverse of Moore and Penrose, in units of the scales: of all noise
that gives the output it takes the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.targets.outputs import Batch
from auditor.targets.values import numbers_in

Array = NDArray[np.float64]
Row = tuple[float, ...]


@dataclass(frozen=True)
class NoiseScore:
    """Log-likelihood ratio of an output's noise, as replays tell it.

    Parameters
    ----------
    start : tuple of float
        Numbers of the output of a replay.
    values : tuple of float
        Values of its variates.
    inverse : tuple of tuple of float
        For each variate, its change by a change of each number of the output.
    on_x, on_y : tuple of float
        Centre of each variate on either dataset.
    scales : tuple of float
        Scale of each.
    gaussian : tuple of bool
        Whether each is Gaussian noise, rather than Laplace noise.
    """

    start: Row
    values: Row
    inverse: tuple[Row, ...]
    on_x: Row
    on_y: Row
    scales: Row
    gaussian: tuple[bool, ...]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        rows = _rows_of(batch, len(self.start))
        with np.errstate(invalid="ignore", over="ignore"):
            noise = np.array(self.values) + (rows - np.array(self.start)) @ np.array(self.inverse).T
            x, y = (np.abs(noise - np.array(centre)) / np.array(self.scales) for centre in (self.on_x, self.on_y))
            ratios = np.where(self.gaussian, (y**2 - x**2) / 2, y - x)
        # Laplace noise gives the same ratio to many outputs, which rounding is not to tell apart.
        return np.asarray(np.round(ratios.sum(axis=1), 9), dtype=np.float64)

    def below(self, cut: float) -> str:
        """In words."""
        return f"log-likelihood ratio of the noise, as replayed, <= {cut:.4g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"log-likelihood ratio of the noise, as replayed, > {cut:.4g}"


def _rows_of(batch: Batch, width: int) -> Array:
    """Numbers of each output; NaN where there are not as many."""
    if isinstance(batch, np.ndarray) and batch.dtype.kind in "iuf":
        rows = batch.reshape(len(batch), -1).astype(np.float64)
        return rows if rows.shape[1] == width else np.full((len(batch), width), np.nan)
    found = [numbers_in(output) for output in batch]
    return np.array([row if len(row) == width else np.full(width, np.nan) for row in found]).reshape(len(batch), width)


def make_noise_score(
    start: Array, values: Array, effects: Array, on_x: Array, on_y: Array, scales: Array, gaussian: Sequence[bool]
) -> NoiseScore:
    """Make the score of a linear function of noise.

    Parameters
    ----------
    start : ndarray of shape (outputs,)
        Numbers of the output of a replay.
    values, on_x, on_y, scales : ndarray of shape (variates,)
        See `NoiseScore`.
    effects : ndarray of shape (outputs, variates)
        Change of the output by change of the variate.
    gaussian : sequence of bool
        See `NoiseScore`.
    """
    inverse = np.linalg.pinv(effects * scales) * scales[:, None]

    def row(array: Array) -> Row:
        return tuple(array.tolist())

    return NoiseScore(
        row(start),
        row(values),
        tuple(map(row, inverse)),
        row(on_x),
        row(on_y),
        row(scales),
        tuple(map(bool, gaussian)),
    )
