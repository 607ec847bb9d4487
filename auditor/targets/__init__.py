"""What is audited."""

from auditor.targets.callables import Mechanism, one_draw, source_hash, target_from

__all__ = ["Mechanism", "one_draw", "source_hash", "target_from"]
