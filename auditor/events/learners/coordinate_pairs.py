"""Events on two coordinates of a row that go together on one dataset more than on the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature, columns_of
from auditor.targets.outputs import Batch

Array = NDArray[np.float64]

#: Widest rows whose pairs are compared, and draws a side of those; arbitrary, the work is quadratic in the first.
_WIDEST, _ROWS = 128, 1_024
#: Draws a side by which the centres are chosen, and values of which less are symbols: `joined_fields` reads these.
#: Arbitrary.
_LOOK, _FEW = 64, 32
#: Least score of a pair, in standard errors: of the 8,128 pairs of 128 coordinates none reaches it by chance.
_LEAST = 8.0
#: Pairs that are offered; arbitrary.
_OFFERED = 2


@dataclass(frozen=True)
class CoordinateProduct:
    """Product of the distances of two coordinates from a point each.

    It is large where both lie on the same side.

    Parameters
    ----------
    i, j : int
        Coordinates.
    centres : tuple of float
        The points.
    width : int
        Number of coordinates; an output of another shape has no value.
    """

    i: int
    j: int
    centres: tuple[float, float]
    width: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        values = columns_of(batch, (self.i, self.j), self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray((values[:, 0] - self.centres[0]) * (values[:, 1] - self.centres[1]))

    @property
    def name(self) -> str:
        """In words."""
        return " ".join(
            f"(output[{k}] {'-' if centre >= 0 else '+'} {abs(centre):.6g})"
            for k, centre in zip((self.i, self.j), self.centres, strict=True)
        )

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} > {cut:.6g}"


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Pairs of coordinates that go together on one dataset.

    They lie on the same side of their medians more often there.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.ndim == y.ndim == 2):
        return
    n, d = min(len(x), len(y), _ROWS), x.shape[1]
    if y.shape[1] != d or not 2 <= d <= _WIDEST or n < _LEAST**2 or x.dtype.kind == "b" or y.dtype.kind == "b":
        return
    a, b = x[:n].astype(np.float64), y[:n].astype(np.float64)
    first = np.concatenate([a[:_LOOK], b[:_LOOK]])
    if len(np.unique(first)) < _FEW or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return
    centres = np.sort(first, axis=0)[len(first) // 2]
    products = []
    for side in (a, b):
        signs = (side > centres).astype(np.float32) - (side < centres)
        products.append((signs.T @ signs).astype(np.float64) / n)
    spread = np.maximum(2.0 - products[0] ** 2 - products[1] ** 2, 1.0 / n)
    scores = np.triu(np.abs(products[0] - products[1]) / np.sqrt(spread / n), 1)
    for k in np.argsort(-scores, axis=None, kind="stable")[:_OFFERED].tolist():
        i, j = divmod(k, d)
        if scores[i, j] >= _LEAST:
            yield CoordinateProduct(i, j, (float(centres[i]), float(centres[j])), d), float(scores[i, j])


CAUSES = {CoordinateProduct: ("coordinates that go together on one dataset more than on the other", 2)}
#: Chosen among many, with two parameters, as a linear score of two coordinates is.
PENALTIES = {CoordinateProduct: 3.0}
