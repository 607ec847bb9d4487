"""Events on whole numbers that hardly repeat: their remainders, such as whether they are even."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.screening import compare_counts
from auditor.targets.outputs import Batch, read_column

Array = NDArray[np.float64]

#: Divisors that are tried; arbitrary, those that people and machines count by.
_DIVISORS = (2, 3, 5, 8, 10, 16)
#: Least score of a remainder, in standard errors. So much is beyond doubt whatever was tried.
_LEAST = 8.0
#: Numbers that are looked at first, and the part of these that are different; of numbers that repeat symbols say all
#: that there is to say. Arbitrary.
_LOOK, _DISTINCT = 64, 0.5
#: Whole numbers up to here are floats exactly.
_EXACT = 2.0**53


@dataclass(frozen=True)
class Remainder:
    """Whether a number leaves one remainder: 1 or 0.

    NaN for what is no whole number.

    Parameters
    ----------
    divisor, remainder : int
    """

    divisor: int
    remainder: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if isinstance(batch, np.ndarray) and batch.ndim == 1 and batch.dtype.kind in "iu":
            return np.asarray(batch % self.divisor == self.remainder, dtype=np.float64)
        values = read_column(batch)
        with np.errstate(invalid="ignore"):
            left = np.mod(values, self.divisor)
        return np.where(_are_whole(values), (left == self.remainder).astype(np.float64), np.nan)

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output does not leave the remainder {self.remainder} when divided by {self.divisor}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output leaves the remainder {self.remainder} when divided by {self.divisor}"


def _are_whole(values: Array) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(values) <= _EXACT) & (values == np.rint(values)))


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """The remainder that differs most, if it does beyond doubt.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    n = min(len(x), len(y))
    if n < _LEAST**2 or any(isinstance(side, np.ndarray) and side.dtype.kind not in "iuf" for side in (x, y)):
        return
    a, b = read_column(x[:n]), read_column(y[:n])
    if len(np.unique(a[:_LOOK])) < _DISTINCT * _LOOK or not (_are_whole(a).all() and _are_whole(b).all()):
        return
    best: tuple[Feature, float] | None = None
    for divisor in _DIVISORS:
        first, second = (np.bincount(np.mod(v, divisor).astype(np.int64), minlength=divisor) for v in (a, b))
        scores = compare_counts(first.astype(np.float64), second.astype(np.float64), n)
        k = int(np.argmax(scores))
        if scores[k] >= _LEAST and (best is None or scores[k] > best[1]):
            best = Remainder(divisor, k), float(scores[k])
    if best is not None:
        yield best


CAUSES = {Remainder: ("value of the output: its remainder", 2)}
#: Chosen among forty; thresholds and symbols are simpler.
PENALTIES = {Remainder: 1.5}
