"""Events on the types of numbers inside of outputs: 1 and 1.0 are equal, and do not look alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.presence import PresenceCounts
from auditor.events.structure import format_path, values_at, walk_elements
from auditor.targets.columns import columns_of
from auditor.targets.outputs import Batch, is_number
from auditor.targets.values import kind_of, strip_type

Array = NDArray[np.float64]

#: Outputs a side that are looked at; arbitrary, their elements are read one by one.
_ROWS = 256
_NUMBERS = frozenset({int, float, bool})


@dataclass(frozen=True)
class KindAt:
    """Whether a part of an output is of a type.

    NaN for numbers and for rows of numbers, whose types are those of arrays where all outputs of a call are such.

    Parameters
    ----------
    kind : str
        Name of the type, see `kind_of`.
    path : tuple
        Keys and positions that lead there.
    """

    kind: str
    path: tuple[Any, ...]

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        if isinstance(batch, np.ndarray):
            return np.full(len(batch), np.nan)
        parts = zip(batch, values_at(batch, self.path), strict=True)
        found = [float(kind_of(part) == self.kind) if _has_types(output) else np.nan for output, part in parts]
        return np.array(found, dtype=np.float64)

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"type of {format_path(self.path)} is not {self.kind}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"type of {format_path(self.path)} is {self.kind}"


def _has_types(output: Any) -> bool:
    """Whether the types of an output's parts are its own: they are not those of a row of numbers."""
    output = strip_type(output)
    if isinstance(output, list | tuple):
        return not all(map(is_number, output))
    return isinstance(output, dict)


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Types of numbers that differ most, at places where there are several.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    rows = min(len(x), len(y), _ROWS)
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or rows < 2:
        return
    looked = [*x[:rows], *y[:rows]]
    columns = columns_of(looked)
    if columns is not None and not any(len(column.kinds & _NUMBERS) > 1 for column in columns.columns):
        return
    held = [
        [(kind_of(part), path) for path, part in walk_elements(output) if is_number(part) or type(part) is bool]
        if _has_types(output)
        else []
        for output in looked
    ]
    kinds: defaultdict[tuple[Any, ...], set[str]] = defaultdict(set)
    for kind, path in (one for of in held for one in of):
        kinds[path].add(kind)
    counts = PresenceCounts()
    several = [[one for one in of if len(kinds[one[1]]) > 1] for of in held]
    counts.add(several[:rows], several[rows:])
    for one, score in counts.score_different(rows):
        yield KindAt(*one), score


CAUSES = {KindAt: ("type of the output", 0)}
PENALTIES = {KindAt: 0.0}
