"""Events on whole numbers that hardly repeat: their remainders, such as whether they are even."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature, columns_of
from auditor.events.screening import compare_counts
from auditor.targets.outputs import Batch, read_column
from auditor.targets.values import strip_type

Array = NDArray[np.float64]

#: Divisors that are tried, those that people and machines count by, and draws a side that are looked at; arbitrary.
_DIVISORS, _ROWS = (2, 3, 5, 8, 10, 16), 4_096
#: Widest rows whose coordinates are looked at, for whether they are even, and draws a side of those; arbitrary.
_WIDEST, _OF_ROWS = 1_024, 1_024
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
    column : int or None
        A coordinate; None for outputs that are numbers.
    width : int
        Number of coordinates; an output of another shape has no value.
    """

    divisor: int
    remainder: int
    column: int | None = None
    width: int = 0

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        alone = self.column is None
        values = read_column(batch) if alone else columns_of(batch, [self.column or 0], self.width)[:, 0]
        with np.errstate(invalid="ignore"):
            left = np.mod(values, self.divisor)
        found = np.where(_are_whole(values), (left == self.remainder).astype(np.float64), np.nan)
        large = np.flatnonzero(np.abs(values) > _EXACT)  # integers that floats do not hold are divided as they are
        if isinstance(batch, np.ndarray):
            if batch.dtype.kind in "iu" and len(large):
                whole = batch[large] if alone else batch[large, self.column]
                found[large] = whole % self.divisor == self.remainder
            return found
        for k in large.tolist():
            output: Any = strip_type(batch[k])
            number = strip_type(output if alone else output[self.column])
            if isinstance(number, int | np.integer):
                found[k] = float(int(number) % self.divisor == self.remainder)
        return found

    @property
    def name(self) -> str:
        """In words."""
        return "output" if self.column is None else f"output[{self.column}]"

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{self.name} does not leave the remainder {self.remainder} when divided by {self.divisor}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{self.name} leaves the remainder {self.remainder} when divided by {self.divisor}"


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
    arrays = [side for side in (x, y) if isinstance(side, np.ndarray)]
    if min(len(x), len(y)) < _LEAST**2 or any(side.dtype.kind not in "iuf" for side in arrays):
        return
    if len(arrays) == 2 and arrays[0].ndim == arrays[1].ndim == 2:
        yield from _find_parity(*arrays)
        return
    n = min(len(x), len(y), _ROWS)
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


def _find_parity(x: NDArray[Any], y: NDArray[Any]) -> Iterator[tuple[Feature, float]]:
    """The coordinate of rows of integers that hardly repeat which is even more often on one side."""
    n, d = min(len(x), len(y), _OF_ROWS), x.shape[1]
    if y.shape[1] != d or not 0 < d <= _WIDEST or x.dtype.kind == "f" or y.dtype.kind == "f":
        return
    if len(np.unique(x[:_LOOK])) < _DISTINCT * _LOOK:
        return
    looked = np.sort(x[:_LOOK], axis=0)
    varied = (np.diff(looked, axis=0) != 0).sum(axis=0) >= _DISTINCT * _LOOK
    first, second = ((side[:n] % 2).sum(axis=0, dtype=np.float64) for side in (x, y))
    scores = np.where(varied, compare_counts(first, second, n), 0.0)
    k = int(np.argmax(scores))
    if scores[k] >= _LEAST:
        yield Remainder(2, 1, k, d), float(scores[k])


CAUSES = {Remainder: ("value of the output: its remainder", 2)}
#: Chosen among forty; thresholds and symbols are simpler.
PENALTIES = {Remainder: 1.5}
