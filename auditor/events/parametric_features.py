"""Features with few parameters, which are read off all past draws: clamped outputs, shifts, sums with an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.targets.outputs import Batch, read_column, read_matrix

Array = NDArray[np.float64]

#: A value repeats if it is drawn so often, both sides together, and is this part of a side's draws: three draws of one
#: value are hardly ever chance where values hardly ever repeat. The share is arbitrary, rarer values say little.
_OFTEN, _SHARE = 3, 0.01
#: Values that repeat are looked at up to this number; arbitrary, clamping makes two on each side.
_MARKS = 16
#: Medians of a coordinate differ clearly by so many standard errors.
_CLEAR = 2.0
#: Terms that are written out; arbitrary, a line's length.
_WORDS = 8


@dataclass(frozen=True)
class Marked:
    """The output as a number, with repeating values set apart.

    Some of them count as below all other outputs, some as above.

    Outputs that are clamped to an interval have such values at its ends, wherever the other dataset's outputs are.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        values = read_column(batch)
        return np.where(np.isin(values, self.low), -np.inf, np.where(np.isin(values, self.high), np.inf, values))

    def below(self, cut: float) -> str:
        """In words."""
        return _describe_values(self.low, self.high, None if cut == -math.inf else f"<= {cut:.6g}")

    def above(self, cut: float) -> str:
        """In words."""
        return _describe_values(self.high, self.low, None if cut == math.inf else f"> {cut:.6g}")


def _describe_values(inside: tuple[float, ...], outside: tuple[float, ...], rest: str | None) -> str:
    parts = [f"= {value:.6g}" for value in inside] + ([rest] if rest else [])
    but = ", but not " + " or ".join(f"{value:.6g}" for value in outside) if rest and outside else ""
    return "output " + " or ".join(parts) + but


def learn_marked(x: Batch, y: Batch) -> Marked | None:
    """Find repeating values, each on its more frequent side.

    Outputs have shape (n,).

    Parameters
    ----------
    x, y : ndarray of shape (n,), or list
        As many draws of each side.

    Returns
    -------
    Marked or None
        None if no finite value repeats often enough.
    """
    a, b = (v[~np.isnan(v)] for v in (read_column(x), read_column(y)))
    if not len(a) or not len(b):
        return None
    values, counts = np.unique(np.concatenate([a, b]), return_counts=True)
    often = values[np.isfinite(values) & (counts >= max(_OFTEN, _SHARE * len(a)))][:_MARKS]
    if not len(often):
        return None
    of_first = np.array([(a == value).sum() > (b == value).sum() for value in often])
    first, second = tuple(often[of_first].tolist()), tuple(often[~of_first].tolist())
    with np.errstate(over="ignore", invalid="ignore"):
        return Marked(first, second) if np.median(a) <= np.median(b) else Marked(second, first)


@dataclass(frozen=True)
class Clipped:
    """Sum of the coordinates, each clipped between its two centres.

    It measures how near an output is to the first dataset's centre.

    For shifts of Laplace noise of one scale this is the log-likelihood ratio, up to that scale.

    Parameters
    ----------
    first, second : tuple of float
        Centre of each coordinate on the two datasets; coordinates with two equal ones are left out.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`; a missing coordinate counts as the middle."""
        first, second = np.array(self.first), np.array(self.second)
        values, middle, half = read_matrix(batch, len(first)), 0.5 * (first + second), 0.5 * (first - second)
        away = np.where(np.isnan(values), 0.0, np.clip(values - middle, -np.abs(half), np.abs(half)))
        return np.asarray(away @ np.sign(half))

    def _describe_terms(self) -> str:
        ends = [(j, a, b) for j, (a, b) in enumerate(zip(self.first, self.second, strict=True)) if a != b]
        shown = " ".join(
            f"{'+' if a > b else '-'} output[{j}] clipped to [{min(a, b):.6g}, {max(a, b):.6g}]"
            for j, a, b in ends[:_WORDS]
        )
        return shown + (" + ..." if len(ends) > _WORDS else "") + " (from the middle)"

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} > {cut:.6g}"


def learn_clipped(x: Batch, y: Batch) -> Clipped | None:
    """Medians of coordinates that differ clearly between the sides.

    There are at least two of them; outputs have shape (n, d).

    Parameters
    ----------
    x, y : ndarray of shape (n, d), or list
        As many draws of each side.

    Returns
    -------
    Clipped or None
        None if fewer than two coordinates differ.
    """
    width = np.shape(x)[1]
    a, b = read_matrix(x, width), read_matrix(y, width)
    with np.errstate(invalid="ignore", over="ignore"):  # a coordinate that is missing somewhere is not clear
        first, second = np.median(a, axis=0), np.median(b, axis=0)
        spread = 0.5 * (np.abs(a - first).mean(axis=0) + np.abs(b - second).mean(axis=0))
        clear = np.abs(first - second) > _CLEAR * spread * math.sqrt(2 / len(a))
    if clear.sum() < 2:
        return None
    return Clipped(tuple(np.where(clear, first, 0.0).tolist()), tuple(np.where(clear, second, 0.0).tolist()))
