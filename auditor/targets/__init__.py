"""Targets: the mechanisms that are audited.

Names are imported when they are asked for: what reads sources only need not load numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.targets.callables import Mechanism, function_from, one_draw, source_hash, target_from

__all__ = ["Mechanism", "function_from", "one_draw", "source_hash", "target_from"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("auditor.targets.callables"), name)
