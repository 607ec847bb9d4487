"""Numbers as users give them: errors, scores, outputs of runs, gradients."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.errors import SpecificationError


def read_numbers(what: str, given: Any) -> NDArray[np.float64]:
    """Read an array of real numbers.

    Parameters
    ----------
    what : str
        What is read and must be, for the error: "scores must be numbers".
    given : array_like
        Truth values, integers, floats, fractions or decimals. Complex numbers, times, texts, records and None are no
        numbers, though numpy makes floats of them; nor are masked entries, which have a number under the mask.

    Raises
    ------
    SpecificationError
        If it holds anything else.
    """
    if np.ma.is_masked(given):
        raise SpecificationError(f"{what}: entry {np.flatnonzero(np.ma.getmaskarray(given))[0] + 1} is masked")
    try:
        found = np.asarray(given)
        if found.dtype.kind == "O":  # integers beyond 64 bits, or no numbers
            wrong = [value for value in found.flat if not isinstance(value, Real | Decimal)]
        else:
            wrong = [] if found.dtype.kind in "biuf" else found.flat[:1].tolist()
        with np.errstate(over="ignore"):  # a longdouble beyond all floats is infinite
            values = None if wrong else found.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # the last: a tensor that needs its gradient
        raise SpecificationError(f"{what}: {error}") from None
    if values is None:
        raise SpecificationError(f"{what}: got {wrong[0]!r}")
    return values
