"""Numbers that are written in an output: texts of numbers, and bytes of floats."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.targets.outputs import Batch
from auditor.targets.values import strip_type

Array = NDArray[np.float64]

#: Decimal numbers, which Python's float() is more generous than: in a text, and as all of a text.
IN_TEXT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NUMBER = re.compile(rf"\s*{IN_TEXT.pattern}\s*")
#: Layouts of floats in bytes, by the names that `struct` gives them, in words.
_LAYOUTS = {"<d": "double", ">d": "double of big-endian bytes", "<f": "single", ">f": "single of big-endian bytes"}
#: Part of the outputs that are to hold a number in one form; arbitrary.
_MOST = 0.9
#: Bytes are a float's if it is of a size that outputs have, neither 0; arbitrary, other bytes make floats of any size.
_SMALLEST, _LARGEST = 1e-30, 1e30


@dataclass(frozen=True)
class Written:
    """The number that an output writes: NaN for what writes none.

    Parameters
    ----------
    form : str
        "text", or the layout of a float in bytes: "<d", ">d", "<f" or ">f".
    """

    form: str

    @property
    def name(self) -> str:
        """In words."""
        return "number that the output writes" if self.form == "text" else f"output read as a {_LAYOUTS[self.form]}"

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if isinstance(batch, np.ndarray):
            return np.full(len(batch), math.nan)
        return np.array([self._read(strip_type(value)) for value in batch], dtype=np.float64)

    def _read(self, value: Any) -> float:
        if self.form == "text":
            return float(value) if isinstance(value, str) and NUMBER.fullmatch(value) else math.nan
        if isinstance(value, bytes) and len(value) == struct.calcsize(self.form):
            return float(struct.unpack(self.form, value)[0])
        return math.nan

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} > {cut:.6g}"


def written_in(outputs: Sequence[Any]) -> list[Written]:
    """Forms in which nearly all of some outputs write a number."""
    if not any(isinstance(strip_type(value), str | bytes) for value in outputs):
        return []
    found = []
    for form in ("text", *_LAYOUTS):
        values = Written(form)(list(outputs))
        size = np.abs(values)
        usual = np.isfinite(values) if form == "text" else (values == 0) | ((size > _SMALLEST) & (size < _LARGEST))
        if usual.mean() >= _MOST:
            found.append(Written(form))
    return found
