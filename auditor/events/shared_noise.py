"""Noise that is shared or repeated within an output: coordinates that are equal, or tied to one another.

Where two coordinates carry the same noise their difference has none, and shows the difference of the answers. The same
holds for every combination of coordinates in which noise cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature, columns_of
from auditor.targets.outputs import Batch

Array = NDArray[np.float64]

#: Coordinates whose combinations are looked at; arbitrary, the cost is that of a 64 by 64 matrix.
MOST = 64
#: Variance of a combination without noise, relative to that of its parts: what rounding of doubles leaves of
#: eigenvalues, times the number of coordinates.
_NOTHING = 1e-12
#: The gap between the datasets is at least so many times what is left of the noise; arbitrary, far above rounding.
_CLEAR = 100.0
#: Draws beyond the number of coordinates, on both sides together: with fewer, noise cancels in some combination by
#: chance. Arbitrary.
_SPARE = 6
#: Part of a coordinate's draws that are different, where its values are not on a lattice; arbitrary.
_DISTINCT = 0.9
#: Terms that are written out; arbitrary, a line's length.
_TERMS = 8
#: Rows that are looked at for equal coordinates; arbitrary, equal floats are never chance.
_LOOK = 200


@dataclass(frozen=True)
class Equal:
    """Whether two coordinates are equal.

    It is 1 or 0, and NaN where one of them is no number.
    """

    i: int
    j: int
    width: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        values = columns_of(batch, (self.i, self.j), self.width)
        return np.where(np.isnan(values).any(axis=1), np.nan, values[:, 0] == values[:, 1])

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output[{self.i}] and output[{self.j}] differ"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output[{self.i}] equals output[{self.j}]"


@dataclass(frozen=True)
class Cancelled:
    """A combination of coordinates in which noise cancels.

    Parameters
    ----------
    weights : tuple of float
        Weight of each of ``columns``.
    columns : tuple of int
        Coordinates.
    width : int
        Number of coordinates of an output.
    """

    weights: tuple[float, ...]
    columns: tuple[int, ...]
    width: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        with np.errstate(over="ignore", invalid="ignore"):
            # One term after the other: a product of matrices may round differently for other batches.
            total = np.zeros(len(batch))
            for k, weight in enumerate(self.weights):
                total = total + weight * columns_of(batch, (self.columns[k],), self.width)[:, 0]
        return total

    def _describe_terms(self) -> str:
        terms = [
            f"{'-' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):.6g} '}output[{j}]"
            for w, j in zip(self.weights[:_TERMS], self.columns[:_TERMS], strict=True)
        ]
        return " ".join(terms).removeprefix("+ ") + (" + ..." if len(self.weights) > _TERMS else "")

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self._describe_terms()} > {cut:.6g}"


@dataclass(frozen=True)
class Repeats:
    """How many coordinates of a numeric output equal an earlier one."""

    width: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        values = np.sort(columns_of(batch, range(self.width), self.width), axis=1)
        equal = (values[:, 1:] == values[:, :-1]).sum(axis=1, dtype=np.float64)
        return np.where(np.isnan(values).all(axis=1), np.nan, equal)

    def below(self, cut: float) -> str:
        """In words."""
        return f"number of equal coordinates <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"number of equal coordinates > {cut:.6g}"


def equal_coordinates(x: Array, y: Array) -> list[Feature]:
    """Features of coordinates that are equal on either side.

    Rows have shape (n, d); other rows have none.

    It is for floats of full precision, which are not equal by chance.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Draws of each side, of which the first `_LOOK` are compared.

    Returns
    -------
    list of Feature
        Empty, or `Repeats` and one or two `Equal`.
    """
    d = x.shape[1]
    found: dict[tuple[int, int], int] = {}
    for row in np.concatenate([x[:_LOOK], y[:_LOOK]]):
        order = np.argsort(row, kind="stable")
        ordered = row[order]
        for k in np.flatnonzero(ordered[1:] == ordered[:-1])[:MOST].tolist():
            pair = int(order[k]), int(order[k + 1])
            found[pair] = found.get(pair, 0) + 1
    top = sorted(found, key=lambda pair: -found[pair])[:2]
    # Multiples of a decimal fraction have all bits, and are equal by chance: but then to other draws' as well.
    if not top or any(len(np.unique(side[:, j])) < _DISTINCT * len(side) for side in (x, y) for j in top[0]):
        return []
    return [Repeats(d), *(Equal(i, j, d) for i, j in top)]


def without_noise(x: Array, y: Array, columns: tuple[int, ...], width: int) -> Cancelled | None:
    """A combination in which noise cancels and that differs.

    Parameters
    ----------
    x, y : ndarray of shape (n, k)
        Some coordinates of draws of each side, all finite.
    columns : tuple of int
        Which they are.
    width : int
        Number of coordinates of an output.

    Returns
    -------
    Cancelled or None
        The difference of two coordinates where that is such a combination. None if there is none, or not yet enough
        draws to tell.
    """
    n, k = x.shape
    if 2 * n - 2 < k + _SPARE or k < 2:
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # of huge numbers; they have no combinations then
        return _without_noise(x, y, columns, width)


def _without_noise(x: Array, y: Array, columns: tuple[int, ...], width: int) -> Cancelled | None:
    k = x.shape[1]
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    gap = mean_x - mean_y
    within = np.concatenate([x - mean_x, y - mean_y])
    scale = np.sqrt((within**2).mean(axis=0))
    if not np.isfinite(scale).all() or not (scale > 0).any() or not gap.any():
        return None
    size = np.where(scale > 0, scale, 1.0)
    i = int(np.argmax(np.abs(gap / size)))
    others = [j for j in range(k) if j != i and scale[j] > 0 and scale[i] > 0]
    for j in others:
        if _is_clear(x[:, i] - x[:, j], y[:, i] - y[:, j], float(scale[i])):
            return Cancelled((1.0, -1.0), (columns[max(i, j)], columns[min(i, j)]), width)
    values, vectors = np.linalg.eigh((within / size).T @ (within / size) / len(within))
    null = vectors[:, values < _NOTHING * k]
    weights = (null @ (null.T @ (gap / size))) / size
    top = float(np.abs(weights).max(initial=0.0))
    if top == 0 or not np.isfinite(top):
        return None
    weights = np.where(np.abs(weights) > 1e-9 * top, weights / top, 0.0)
    if not _is_clear(x @ weights, y @ weights, float((np.abs(weights) * scale).max())):
        return None
    used = np.flatnonzero(weights)
    return Cancelled(
        tuple(float(f"{w:.15g}") for w in weights[used].tolist()), tuple(columns[j] for j in used.tolist()), width
    )


def is_shown(x: Array, y: Array) -> bool:
    """Whether a noiseless combination differs between the sides.

    Differences of neighbouring coordinates and of halves are tried, and the sum.

    Those are looked at anyway, see `fixed_features`.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Draws of each side, all finite.
    """
    signs = np.where(np.arange(x.shape[1]) < x.shape[1] // 2, 1.0, -1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        made = [np.column_stack([np.diff(side, axis=1), side @ signs, side.sum(axis=1)]) for side in (x, y)]
        scale = float(np.abs(x - x.mean(axis=0)).max(initial=0.0))
        return any(_is_clear(a, b, scale) for a, b in zip(made[0].T, made[1].T, strict=True))


def _is_clear(a: Array, b: Array, scale: float) -> bool:
    """Whether numbers have no spread but for rounding, and differ."""
    left = max(float(a.std()), float(b.std()))
    gap = abs(float(a.mean() - b.mean()))
    return scale > 0 and left < 1e-6 * scale and gap > _CLEAR * left and gap > 1e-9 * scale
