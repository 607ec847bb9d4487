"""What a mechanism computes of a dataset alone, kept from call to call.

An audit asks a mechanism for outputs on the same few datasets thousands of times, and what is not drawn is the same
each time. A value that was kept is equal to a new one, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.mechanism import Dataset

Found = TypeVar("Found", NDArray[Any], tuple[NDArray[Any], ...])

#: Bytes that are kept in all, about; the oldest goes first. Arbitrary.
_ROOM = 1 << 25
#: What a key takes beside the content of its dataset, about.
_KEY = 2_000

_kept: dict[tuple[object, ...], tuple[Any, int]] = {}
_taken = 0


def compute_once(function: Callable[..., Found], data: Dataset, *further: Hashable) -> Found:
    """Value of a function of a dataset, kept from an earlier call.

    Parameters
    ----------
    function : callable
        Draws nothing. A method is told from another one by its object itself, which must be frozen.
    data : Dataset
        Told from another one by its content, where that is an array of numbers; otherwise the function is called.
    *further
        Further arguments.

    Returns
    -------
    ndarray or tuple of ndarray
        Read-only where it is kept.
    """
    array = np.asarray(data)
    if array.dtype.kind not in "biuf":
        return function(data, *further)
    key = (function, further, array.shape, array.dtype.str, array.tobytes())
    known = _kept.get(key)
    if known is not None:
        return known[0]  # type: ignore[no-any-return]
    found = function(data, *further)
    parts = found if isinstance(found, tuple) else (found,)
    for part in parts:
        part.setflags(write=False)
    _keep(key, found, _KEY + array.nbytes + sum(part.nbytes for part in parts))
    return found


def _keep(key: tuple[object, ...], found: Any, size: int) -> None:
    """Keep what was found, and let go of the oldest until there is room."""
    global _taken
    if size > _ROOM:
        return
    while _taken + size > _ROOM:
        _taken -= _kept.pop(next(iter(_kept)))[1]
    _kept[key] = found, size
    _taken += size
