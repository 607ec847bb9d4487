"""Features of an output's type: an exception, one certain value, a bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.targets.columns import columns_of
from auditor.targets.outputs import Batch, hash_outputs, kind_of_rows, shorten_text
from auditor.targets.values import kind_of, strip_type, text_of

Array = NDArray[np.float64]

#: Types of which all values are of one kind.
_SIMPLE = frozenset({dict, list, tuple, str, bytes, int, float, bool, type(None), set, frozenset})


def kinds_of(batch: Batch) -> list[str]:
    """Kinds of a batch's outputs.

    There is one for each output of a list, and one for all of an array.
    """
    if not isinstance(batch, np.ndarray):
        kinds = list(map(type, batch))
        if not _SIMPLE.issuperset(kinds):
            return [kind_of(value) for value in batch]
        first = dict(zip(reversed(kinds), reversed(batch), strict=True))
        name_of = {kind: kind_of(value) for kind, value in first.items()}
        return [name_of[kind] for kind in kinds]
    return [kind_of_rows(batch)]


@dataclass(frozen=True)
class KindIs:
    """Whether an output is of a kind: 1 or 0.

    Parameters
    ----------
    kind : str
        Name of a type, or "raised ValueError"; see `kind_of`. The type of an array that a target returned is that of
        each of its outputs.
    """

    kind: str

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        found = [float(kind == self.kind) for kind in kinds_of(batch)]
        return np.full(len(batch), found[0]) if isinstance(batch, np.ndarray) else np.array(found, dtype=np.float64)

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        if self.kind.startswith("raised "):
            return f"did not raise {self.kind.removeprefix('raised ')}"
        return f"type of the output is not {self.kind}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return self.kind if self.kind.startswith("raised ") else f"type of the output is {self.kind}"


@dataclass(frozen=True)
class KeyOrder:
    """Order in which a dict's keys were inserted, as a symbol."""

    @property
    def name(self) -> str:
        """In words."""
        return "order of the output's keys"

    def __call__(self, batch: Batch) -> Batch:
        """See `Part`; None for what is no dict."""
        columns = columns_of(batch) if isinstance(batch, list) else None
        if columns is not None:
            return [None if columns.keys is None else text_of(list(columns.keys))] * len(batch)
        values = [strip_type(value) for value in batch] if isinstance(batch, list) else [None] * len(batch)
        return [text_of(list(value)) if isinstance(value, dict) else None for value in values]

    def label(self, symbol: object) -> str:
        """A symbol in words."""
        return "none" if symbol is None else shorten_text(str(symbol))


@dataclass(frozen=True)
class IsValue:
    """Whether an output is one certain value: 1 or 0.

    Parameters
    ----------
    key : int
        The value's key, see `hash_outputs`.
    label : str
        The value in words.
    """

    key: int
    label: str

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return np.asarray(hash_outputs(batch) == self.key, dtype=np.float64)

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output is not {self.label}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output is {self.label}"


@dataclass(frozen=True)
class Flag:
    """A coordinate that is 0 or 1; other numbers have no value.

    Parameters
    ----------
    i : int
        Coordinate; a bit, counted from the first byte's highest one, for bytes.
    width : int
        Number of coordinates, or of bits.
    """

    i: int
    width: int

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if isinstance(batch, np.ndarray):
            if batch.shape[1:] != (self.width,):
                return np.full(len(batch), np.nan)
            values = batch[:, self.i].astype(np.float64)
            return np.where((values == 0) | (values == 1), values, np.nan)
        found = np.full(len(batch), np.nan)
        for k, value in enumerate(map(strip_type, batch)):
            if isinstance(value, bytes):
                if 8 * len(value) == self.width:
                    found[k] = value[self.i // 8] >> (7 - self.i % 8) & 1
            elif isinstance(value, list | tuple) and len(value) == self.width:
                bit = strip_type(value[self.i])
                if isinstance(bit, bool | int | float | np.number | np.bool_) and bit in (0, 1):
                    found[k] = float(bit)
        return found

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output[{self.i}] is 0"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"output[{self.i}] is 1"
