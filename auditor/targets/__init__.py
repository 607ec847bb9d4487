"""Targets: the mechanisms that are audited."""

from auditor.targets.callables import Mechanism, function_from, one_draw, source_hash, target_from

__all__ = ["Mechanism", "function_from", "one_draw", "source_hash", "target_from"]
