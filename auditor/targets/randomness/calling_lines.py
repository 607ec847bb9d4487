"""The line of a target's code that asks for random numbers."""

from __future__ import annotations

import os
import sys
from types import CodeType

_HERE = __name__.rpartition(".")[0] + "."
#: Where lines are no part of the target: random numbers are made there.
_SOURCES = ("numpy", "random", "secrets", "uuid", "torch", "opendp", "pydp", "diffprivlib.mechanisms", "contextlib")
#: By code, whether it is of such a module, and its file's name; kept, as they are asked for at each draw.
_FRAMES: dict[CodeType, str] = {}
_PLACES: dict[tuple[CodeType, int], str] = {}


def find_place() -> str:
    """File and line that asks for random numbers.

    That is the innermost frame outside of what makes them.

    Where that is in an installed library, the line that called the library comes after it.
    """
    frame = sys._getframe(2)
    while frame.f_back is not None and not _file_of(frame.f_code, frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    code, line = frame.f_code, frame.f_lineno
    place = _PLACES.get((code, line))
    if place is None:
        place = _PLACES[code, line] = f"{os.path.basename(code.co_filename)}:{line}"
    if not _is_installed(code):
        return place
    while frame.f_back is not None:
        frame = frame.f_back
        if _file_of(frame.f_code, frame.f_globals.get("__name__", "")) and not _is_installed(frame.f_code):
            return f"{place}, called in {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return place


def _file_of(code: CodeType, module: str) -> str:
    """A code's file; empty if it makes random numbers."""
    found = _FRAMES.get(code)
    if found is None:
        inner = module.startswith(_HERE) or any(module == name or module.startswith(f"{name}.") for name in _SOURCES)
        found = _FRAMES[code] = "" if inner else code.co_filename
    return found


def _is_installed(code: CodeType) -> bool:
    return "site-packages" in code.co_filename
