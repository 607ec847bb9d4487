"""The line of a target's code that asks for random numbers."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType

_HERE = __name__.rpartition(".")[0] + "."
_HELPER = os.path.join("auditor", "targets", "helper.py")
#: Where lines are no part of the target: random numbers are made there.
_SOURCES = (
    "numpy",
    "random",
    "secrets",
    "uuid",
    "torch",
    "opendp",
    "pydp",
    "diffprivlib.mechanisms",
    "contextlib",
    "auditor",
)
#: Most lines that are kept.
_MOST_LINES = 100_000
#: By code and line, its place, which is empty where random numbers are made, and whether it is in an installed library;
#: kept, as they are asked for at each draw.
_PLACES: dict[tuple[CodeType, int], tuple[str, bool]] = {}


def find_place() -> str:
    """File and line that asks for random numbers.

    That is the innermost frame outside of what makes them. Where it is in an installed library, the line that called
    the library comes after it.
    """
    frame: FrameType | None = sys._getframe(2)
    first = ""
    while frame is not None:
        place, installed = _PLACES.get((frame.f_code, frame.f_lineno)) or _place_of(frame)
        if place and not installed:
            return f"{first}, called in {place}" if first else place
        first = first or place
        frame = frame.f_back
    return first


def _place_of(frame: FrameType) -> tuple[str, bool]:
    code, line, module = frame.f_code, frame.f_lineno, frame.f_globals.get("__name__", "")
    inner = module.startswith(_HERE) or code.co_filename.endswith(_HELPER)
    inner = inner or any(module == name or module.startswith(f"{name}.") for name in _SOURCES)
    place = "" if inner else f"{os.path.basename(code.co_filename)}:{line}"
    if len(_PLACES) >= _MOST_LINES:
        _PLACES.clear()
    found = _PLACES[code, line] = place, "site-packages" in code.co_filename
    return found
