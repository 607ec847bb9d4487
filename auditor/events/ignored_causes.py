"""Features that are left out of the bets, because their causes are of kinds that an audit ignores."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.events.cause_kinds import IGNORABLE, kind_of
from auditor.events.event_learner import FindKept
from auditor.events.features import Feature, Lattice, Numeric, Shape
from auditor.events.float_bits import precision_of
from auditor.events.learners.bit_strings import BitsSet
from auditor.events.learners.texts import CharacterInText, find_texts
from auditor.events.output_types import Flag
from auditor.events.root_causes import cause_of_feature
from auditor.targets.outputs import Batch, hash_outputs, read_column
from auditor.targets.values import strip_type

#: Outputs a side that are looked at for floats that are written as texts or bytes, as in `Survey`.
_LOOK = 256
#: A decimal number of so many digits that a float of double precision may be meant.
_LONG = re.compile(rb"\d\.?(?:\d\.?){13}")
#: So many letters and digits that they may stand for the bytes of a float, or such bytes.
_ENCODED = re.compile(r"[0-9A-Za-z.+/=_-]{11}|[\x00-\x08\x0e-\x1f\x7f-\xff]")
#: Layouts of floats in bytes; part of the outputs that must hold floats of usual size, and that size, as in `Written`.
_LAYOUTS, _MOST, _SMALLEST, _LARGEST = ("<f8", ">f8", "<f4", ">f4"), 0.9, 1e-30, 1e30


@dataclass(frozen=True)
class IgnoredCauses:
    """Kinds of causes that are left out.

    Parameters
    ----------
    kinds : tuple of str
        Names in `IGNORABLE`.

    Notes
    -----
    Valid because: events may be chosen by any rule that looks at past draws only, and here some are not offered. What
    is bet on among the others is a bet of the same supermartingale as without this. The cause of a feature is that of
    the report, from the same function, so that no report names a cause of a kind that was ignored.

    Where floating point is ignored, so are features that see the bits of floats by another name: the length and the
    characters of a text and the bits of bytes that write floats of full precision, and the lattice of such numbers.
    What is left reads the size of such a number, or whether it is equal to another. A threshold cuts between two
    neighbouring floats: which of two lattices an output lies on moves the probability of an event no further than
    rounding moves an output.
    """

    kinds: tuple[str, ...] = ()

    def find_kept(self, x: Batch, y: Batch) -> Callable[[Feature], bool]:
        """Find which features stay, from past draws of a pair.

        Parameters
        ----------
        x, y : ndarray of shape (n,) or (n, d), or list
            As many draws of each side.
        """
        ignored = {IGNORABLE[name] for name in self.kinds}
        writing = _find_writing(x, y) if IGNORABLE["floating-point"] in ignored else ()
        shared = IGNORABLE["shared-noise"] in ignored and _varies(x, y)

        def keeps(feature: Feature) -> bool:
            if kind_of(cause_of_feature(feature)) in ignored:
                return False
            if isinstance(feature, writing) and getattr(feature, "kind", "length") == "length":
                return False
            return not (shared and _cancels(feature, x, y))

        return keeps


def _find_writing(x: Batch, y: Batch) -> tuple[type, ...]:
    """Classes of features that read how floats of full precision are written, of which `Shape` is the length."""
    sides = [side[:_LOOK] for side in (x, y)]
    found: list[type] = []
    if precision_of(*map(read_column, sides)) or any(getattr(side, "dtype", None) == np.float16 for side in sides):
        found.append(Lattice)
    values = [strip_type(value) for side in sides if isinstance(side, list) for value in side]
    texts = [value.encode() if isinstance(value, str) else value for value in values if isinstance(value, str | bytes)]
    if any(map(_LONG.search, texts)):
        found.append(Shape)
    inside = (text for value in values for _, text in find_texts(value))
    if any(_ENCODED.search(text) for text in inside):
        found.append(CharacterInText)
    if _hold_floats([value for value in values if isinstance(value, bytes)]):
        found += [BitsSet, Flag]
    return tuple(found)


def _hold_floats(values: Sequence[bytes]) -> bool:
    """Whether nearly all of some bytes are floats of usual size, one after the other."""
    for layout in _LAYOUTS if values else ():
        width = np.dtype(layout).itemsize
        whole = [value for value in values if value and len(value) % width == 0]
        if len(whole) < _MOST * len(values):
            continue
        with np.errstate(invalid="ignore"):
            sizes = [np.abs(np.frombuffer(value, layout).astype(np.float64)) for value in whole]
            usual = [bool(((size == 0) | ((size > _SMALLEST) & (size < _LARGEST))).all()) for size in sizes]
        if sum(usual) >= _MOST * len(values) and any(size.any() for size in sizes):
            return True
    return False


def _varies(x: Batch, y: Batch) -> bool:
    """Whether outputs of a side differ: otherwise noise cannot cancel, there is none."""
    return any(len(np.unique(hash_outputs(side))) > 1 for side in (x, y))


def _cancels(feature: Feature, x: Batch, y: Batch) -> bool:
    """Whether noise cancels in a difference of coordinates, as in `EventLearner.cancels`, after however few draws."""
    if not (isinstance(feature, Numeric) and feature.kind in ("difference", "half")):
        return False
    return all(len(np.unique(feature(side))) == 1 for side in (x, y))


def find_kept_without(kinds: Sequence[str]) -> FindKept | None:
    """Rule that leaves out some kinds; None if there is none."""
    return IgnoredCauses(tuple(kinds)).find_kept if kinds else None
