"""Events on the bits of floats: noise in floating point leaves each dataset's outputs on lattices of their own.

A sum of an answer and noise has no bits below those of the larger of the two, so that outputs near zero are coarse by
as much as the answer is large (Mironov 2012; design section 4). All here is free of scale: what counts is the span from
the largest output's first bit to the last bit of any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature, LatticeExponent, subject_of
from auditor.targets.outputs import Batch, read_column

Array = NDArray[np.float64]

#: Significant bits of floats of double and of single precision.
DOUBLE, SINGLE = 53, 24
#: Draws a side that are looked at for the precision of outputs; arbitrary, a dozen show it.
_LOOK = 300
#: Noise so small, by its median size, that whole numbers are far apart, and so large that they say nothing; arbitrary.
_SMALL, _LARGE = 0.1, 1e5
#: Least power of ten that is a float.
_SMALLEST = -323
#: Offsets that are tried beside the nearest to a median, on either side. Medians of few draws are off by about a noise
#: scale, and the unit is at most that.
_BESIDE = 2


def _split(values: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Binary exponents of each number's first and last bit, and which numbers have bits: not 0, NaN and infinities."""
    bits = np.isfinite(values) & (values != 0)
    last = LatticeExponent()(np.where(bits, values, 1.0)).astype(np.int64)
    first = np.frexp(np.where(bits, values, 1.0))[1].astype(np.int64) - 1
    return first, last, bits


def precision_of(x: Array, y: Array) -> int:
    """Significant bits of the floats in two arrays.

    They are 53, 24, or 0 if all floats lie on one coarse lattice.

    Numbers on a lattice have their bits between the first one of the largest and the last one of the lattice; the span
    is no longer than the numbers are. Floating-point numbers of different sizes span more.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Numbers, of which the first `_LOOK` of each array are looked at.
    """
    first, last, bits = _split(np.concatenate([x[:_LOOK], y[:_LOOK]]))
    if bits.sum() < 2:
        return 0
    first, last = first[bits], last[bits]
    widths, span = first - last + 1, int(first.max() - last.min()) + 1
    whole = SINGLE if widths.max() <= SINGLE else DOUBLE
    # Points of a lattice have few bits, but for outliers; three random bits are all 0 once in eight times.
    return whole if span > whole and np.median(widths) >= whole - 3 else 0


@dataclass(frozen=True)
class Unreachable:
    """Whether no float plus ``offset`` rounds to an output.

    It is 1 or 0.

    Answer plus noise leaves out the floats that are finer than the noise: a small output of 1 + noise has no more bits
    than a noise near -1 (Mironov 2012). Where the answer is ``offset`` the value is 0.

    Parameters
    ----------
    offset : float
        Answer to which noise may have been added.
    single : bool
        The sum was made in single precision.
    base : Feature or None
        Where the number is read; None: the output is the number.
    """

    offset: float
    single: bool = False
    base: Feature | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        read = read_column(batch) if self.base is None else self.base(batch)
        with np.errstate(over="ignore", invalid="ignore"):
            values: NDArray[Any] = read.astype(np.float32 if self.single else np.float64)
            # A Python number takes the precision of the array.
            back = (values - self.offset) + self.offset
        return np.where(np.isfinite(values), back != values, np.nan)

    def _sum(self) -> str:
        return f"{self.offset:g} plus a float" + (" of single precision" if self.single else "")

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{subject_of(self.base)} is {self._sum()}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{subject_of(self.base)} is not {self._sum()}"


@dataclass(frozen=True)
class BitPattern:
    """Sign and the first and last bit of a number.

    One symbol, written "-2^-3..2^-55".
    """

    base: Feature | None = None

    @property
    def name(self) -> str:
        """In words."""
        return f"sign, first and last bit of {subject_of(self.base)}"

    def __call__(self, batch: Batch) -> Batch:
        """See `Part`; what has no bits is 0."""
        values = read_column(batch) if self.base is None else self.base(batch)
        first, last, bits = _split(values)
        code = ((first + _ZERO) << 20) | ((last + _ZERO) << 4) | (values < 0)
        return np.asarray(np.where(bits, code, 0))

    def label(self, symbol: object) -> str:
        """A symbol in words."""
        code = int(symbol)  # type: ignore[call-overload]
        if not code:
            return "no bits"
        return f"{'-' if code & 1 else '+'}2^{(code >> 20) - _ZERO}..2^{(code >> 4 & 0xFFFF) - _ZERO}"


#: Makes exponents of doubles, from -1074 on, positive.
_ZERO = 2048


@dataclass(frozen=True)
class NegativeZero:
    """Whether a number is -0.0 rather than 0.0.

    It is 1 or 0, and NaN for all other numbers.
    """

    base: Feature | None = None

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        values = read_column(batch) if self.base is None else self.base(batch)
        return np.where(values == 0, np.signbit(values), np.nan)

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{subject_of(self.base)} is 0.0, not -0.0"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"{subject_of(self.base)} is -0.0"


def near_answers(x: Array, y: Array, base: Feature | None = None) -> list[Unreachable]:
    """Round numbers near the medians, to which noise may be added.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Numbers that ``base`` read off draws of each side.
    base : Feature or None
        None: outputs are the numbers.

    Notes
    -----
    Medians of few draws are off by about a noise scale: the whole numbers beside them are candidates as well. Where
    noise is small, so are decimal fractions of about its size, and where it is huge round numbers.
    """
    finite = [v[np.isfinite(v)] for v in (x, y)]
    if not all(len(v) for v in finite):
        return []
    with np.errstate(over="ignore"):
        single = all((v.astype(np.float32) == v).all() for v in finite)
        medians = [float(np.median(v)) for v in finite]
        spread = max(float(np.median(np.abs(v - m))) for v, m in zip(finite, medians, strict=True))
    found = {c + k for c in map(_rint, medians) for k in (-1.0, 0.0, 1.0)}
    if 0 < spread < _SMALL or _LARGE < spread < math.inf:
        unit = 10.0 ** max(math.floor(math.log10(spread)), _SMALLEST)
        found |= {_rint(m / unit) * unit + k * unit for m in medians for k in range(-_BESIDE, _BESIDE + 1)}
        found = {float(f"{c:.12g}") for c in found}  # the float next to the decimal number, as a program would have it
    return [Unreachable(c, single, base) for c in sorted(filter(math.isfinite, found - {0.0}))]


def _rint(value: float) -> float:
    return float(np.rint(value))
