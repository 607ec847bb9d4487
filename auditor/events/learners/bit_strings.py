"""Events on outputs that are bytes of one length: single bits, and how many are set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.output_types import Flag
from auditor.events.screening import best_columns, screen_coordinates
from auditor.targets.outputs import Batch

Array = NDArray[np.float64]

#: Bits that are offered; arbitrary, each costs a look at every draw.
_OFFERED = 6


@dataclass(frozen=True)
class BitsSet:
    """How many bits of an output that is bytes are 1."""

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if isinstance(batch, np.ndarray):
            return np.full(len(batch), np.nan)
        return np.array(
            [int.from_bytes(v, "big").bit_count() if isinstance(v, bytes) else np.nan for v in batch], dtype=np.float64
        )

    def below(self, cut: float) -> str:
        """In words."""
        return f"bits of the output that are 1 <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"bits of the output that are 1 > {cut:.6g}"


def bits_of(batch: Batch) -> NDArray[np.uint8] | None:
    """Bytes of one length as bits, shape (n, bits).

    None for all other batches.
    """
    if isinstance(batch, np.ndarray) or not batch or not all(isinstance(value, bytes) for value in batch):
        return None
    size = len(batch[0])
    if not size or any(len(value) != size for value in batch):
        return None
    return np.unpackbits(np.frombuffer(b"".join(batch), dtype=np.uint8).reshape(len(batch), size), axis=1)


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Number of set bits, and the bits that differ most.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    a, b = bits_of(x), bits_of(y)
    if a is None or b is None or a.shape[1] != b.shape[1]:
        return
    yield BitsSet(), math.inf
    scores = screen_coordinates(a, b)
    for j in best_columns(scores, _OFFERED, 0.0):
        yield Flag(j, a.shape[1]), scores[j]


CAUSES = {BitsSet: ("number of bits that are set in the output", 2)}
