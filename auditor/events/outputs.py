"""Outputs as a target gives them, checked and brought to one of three shapes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.errors import TargetError

#: A batch of outputs, trial axis first: numbers of shape (n,) or (n, d), or a list of any Python values.
Batch: TypeAlias = NDArray[Any] | list[Any]

#: Types of a list's elements that are read as numbers. Booleans are symbols in a list of mixed types, but numbers in an
#: array of booleans.
_NUMBER = (int, float, np.integer, np.floating)


@dataclass(frozen=True)
class Raised:
    """Output of a draw that raised: the class of the exception, which is all that an observer is taken to see."""

    error: str

    def __repr__(self) -> str:
        return f"raised {self.error}"


def as_batch(outputs: object, n: int) -> Batch:
    """Check what a target returned for ``n`` draws and normalise it.

    Parameters
    ----------
    outputs : object
        A numpy array with trial axis first, or a sequence of n Python values.
    n : int
        Number of draws asked for.

    Returns
    -------
    ndarray of shape (n,) or (n, d), or list of length n
        A list is turned into an array if all its elements are numbers, or sequences of numbers of one length.

    Raises
    ------
    TargetError
        If there are not n outputs, or they are not an array or a sequence.
    """
    if isinstance(outputs, np.ndarray):
        if outputs.ndim == 0 or outputs.shape[0] != n:
            raise TargetError(f"{n} outputs were asked for, the target returned an array of shape {outputs.shape}")
        if outputs.dtype.kind in "biuf":
            return outputs if outputs.ndim <= 2 else outputs.reshape(n, -1)
        return list(outputs.tolist())
    if isinstance(outputs, str | bytes) or not isinstance(outputs, Sequence):
        if hasattr(outputs, "__array__"):
            return as_batch(np.asarray(outputs), n)
        raise TargetError(
            f"{n} outputs were asked for, the target returned {_short(outputs)}: expected an array or a sequence, "
            "trial axis first"
        )
    if len(outputs) != n:
        raise TargetError(f"{n} outputs were asked for, the target returned {len(outputs)}: {_short(outputs)}")
    return _from_list(list(outputs))


def _from_list(values: list[Any]) -> Batch:
    if all(_is_number(v) for v in values):
        return (
            np.array(values, dtype=float) if any(isinstance(v, float | np.floating) for v in values) else _ints(values)
        )
    rows = [v.tolist() if isinstance(v, np.ndarray) else v for v in values]
    first = rows[0]
    if (
        isinstance(first, list | tuple)
        and first
        and all(type(r) is type(first) and len(r) == len(first) and all(_is_number(e) for e in r) for r in rows)
    ):
        return np.array(rows, dtype=float)
    return rows


def _ints(values: list[Any]) -> Batch:
    array = np.array(values)
    return array if array.dtype.kind in "iu" else list(values)  # integers beyond 64 bits stay symbols


def _is_number(value: object) -> bool:
    return isinstance(value, _NUMBER) and not isinstance(value, bool | np.bool_)


def concatenate(parts: Sequence[Batch]) -> Batch:
    """Join batches of one target; a target that changes its shape between calls gives a list."""
    shapes = {(p.shape[1:] if isinstance(p, np.ndarray) else None) for p in parts}
    if len(shapes) == 1 and None not in shapes:
        return np.concatenate([np.asarray(p) for p in parts])
    return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]


def keys(batch: Batch) -> NDArray[np.int64]:
    """Identify each output by 64 bits: equal outputs have equal keys.

    Two different outputs share a key with probability about 2^-64 (lists: 2^-32). A shared key makes an event somewhat
    different from its words, and no event invalid.

    Returns
    -------
    ndarray of shape (n,), int64
    """
    if isinstance(batch, list):
        return np.array([_key_of(v) for v in batch], dtype=np.int64)
    if batch.dtype.kind in "biu":
        rows = batch.astype(np.int64)
    else:
        values = batch.astype(np.float64)
        values = np.where(np.isnan(values), np.nan, values) + 0.0  # one NaN, one zero
        rows = values.view(np.int64)
    if rows.ndim == 1:
        return rows
    # Odd multipliers of a linear congruential sequence: fixed, so that keys are the same in every process.
    factor = np.empty(rows.shape[1], dtype=np.uint64)
    state = 0x9E3779B97F4A7C15
    for j in range(rows.shape[1]):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        factor[j] = state | 1
    mixed = (rows.view(np.uint64) ^ (rows.view(np.uint64) >> np.uint64(29))) * factor
    total: NDArray[np.int64] = mixed.sum(axis=1, dtype=np.uint64).view(np.int64)
    return total


def _key_of(value: object) -> int:
    text = f"{type(value).__name__}:{value!r}".encode()
    return (zlib.crc32(text) << 31) ^ zlib.adler32(text)


def show(value: object) -> str:
    """Write one output in at most 60 characters."""
    if isinstance(value, np.ndarray):
        return _short(value.tolist())
    if isinstance(value, np.generic):
        return _short(value.item())
    return _short(value)


def _short(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
