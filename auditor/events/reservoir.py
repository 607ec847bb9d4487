"""Past draws of one pair, a bounded number of them, and what has been read off them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.events.elements import read_once
from auditor.events.features import Feature, Part
from auditor.targets.outputs import Batch, concatenate_batches, hash_outputs

Array = NDArray[np.float64]
Keys = NDArray[np.int64]


#: Numbers a side that are kept, 160 MB: 20,000 draws of 1,000 numbers, 200 of 100,000.
NUMBERS = 20_000_000

#: Draws that are kept however long they are; arbitrary, fewer tell nothing.
_LEAST = 64


def _width(batch: Batch) -> int:
    if isinstance(batch, np.ndarray):
        return int(batch.shape[1]) if batch.ndim == 2 else 1
    return max((len(value) for value in batch[:_LEAST] if isinstance(value, list | tuple | dict)), default=1)


class Reservoir:
    """The first draws of a pair, up to ``size`` a side.

    It is deterministic, and its memory is bounded.

    Parameters
    ----------
    size : int
        Draws a side that are kept; later ones are not looked at. Of long outputs it is fewer, so that no more than
        `NUMBERS` numbers are kept, by the length of the first array.

    Notes
    -----
    A feature reads each output by itself, so that what it read off earlier draws stays as it was when draws are added;
    values and keys are remembered and read off new draws only.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        self._x: list[Batch] = []
        self._y: list[Batch] = []
        self._values: dict[Feature, tuple[Array, Array]] = {}
        self._keys: dict[Part | None, tuple[Keys, Keys]] = {}
        self._tails: dict[int, tuple[Batch, Batch]] = {}

    @property
    def room(self) -> int:
        """Draws a side that may still be added."""
        return max(0, self.size - self.held)

    def add(self, x: Batch, y: Batch) -> None:
        """Take in a chunk's draws, as far as there is room.

        Parameters
        ----------
        x, y : ndarray of shape (n,) or (n, d), or list
            As many draws of each side.
        """
        if not self._x and isinstance(x, np.ndarray) and x.ndim == 2:
            self.size = min(self.size, max(NUMBERS // max(x.shape[1], 1), _LEAST))
        room = self.room
        if room > 0:
            self._x.append(x[:room].copy())  # a view would keep the whole chunk
            self._y.append(y[:room].copy())
            self.held += min(len(x), room)
            self._tails.clear()

    def draws(self) -> tuple[Batch, Batch]:
        """All draws of each side."""
        if len(self._x) > 1:
            self._x, self._y = [concatenate_batches(self._x)], [concatenate_batches(self._y)]
        return self._x[0], self._y[0]

    @property
    def width(self) -> int:
        """Width of an output: columns, or the largest length.

        Lists are measured on their first elements; at least 1.
        """
        if not self._x:
            return 1
        return max(_width(side[0]) for side in (self._x, self._y))

    def values(self, feature: Feature) -> tuple[Array, Array]:
        """Values of a feature on each side's draws, shape (held,)."""
        a, b = self._values.get(feature, (np.empty(0), np.empty(0)))
        if len(a) < self.held:
            x, y = self._draws_from(len(a))
            a, b = np.append(a, feature(x)), np.append(b, feature(y))
            self._values[feature] = a, b
        return a, b

    def keys(self, part: Part | None = None) -> tuple[Keys, Keys]:
        """Keys of each side's draws, or of some, shape (held,)."""
        a, b = self._keys.get(part, (np.empty(0, np.int64), np.empty(0, np.int64)))
        if len(a) < self.held:
            x, y = self._draws_from(len(a))
            if part is not None:
                x, y = part(x), part(y)
            a, b = np.append(a, hash_outputs(x)), np.append(b, hash_outputs(y))
            self._keys[part] = a, b
        return a, b

    def _draws_from(self, start: int) -> tuple[Batch, Batch]:
        """Draws of each side from one on; the same objects each time, so that elements are read once."""
        if start not in self._tails:
            x, y = self.draws()
            self._tails[start] = read_once(x[start:]), read_once(y[start:])
        return self._tails[start]

    def forget(self, feature: Feature) -> None:
        """Drop the values of a feature that is no longer looked at."""
        self._values.pop(feature, None)
