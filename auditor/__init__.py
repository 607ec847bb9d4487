"""dpaudit: tries to break differential-privacy claims, honestly.

Names are imported when they are asked for: a pytest plugin, or a command that only lists, need not load scipy.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.accuracy import check_accuracy
    from auditor.auditing import assert_private, audit
    from auditor.conformity import check_conformity
    from auditor.errors import DpauditError, PrivacyViolation, SpecificationError, TargetError
    from auditor.events.classifier import classifier
    from auditor.findings import explain
    from auditor.guarantees import ZCDP, ApproxDP, DeltaDP, GaussianDP, PureDP, RenyiDP, TradeoffCurve
    from auditor.neighbors import (
        AddRemoveOne,
        AnswersWithin,
        EdgeNeighbors,
        Group,
        NodeNeighbors,
        Pair,
        PerUser,
        ReplaceLabel,
        ReplaceOne,
    )
    from auditor.results import AuditResult, Verdict
    from auditor.search import search_pairs
    from auditor.strategies import pairs_of
    from auditor.targets import one_draw

__version__ = "0.1.0"

#: Where each public name stands.
_HOMES = {
    "AddRemoveOne": "auditor.neighbors",
    "AnswersWithin": "auditor.neighbors",
    "ApproxDP": "auditor.guarantees",
    "AuditResult": "auditor.results",
    "DeltaDP": "auditor.guarantees",
    "DpauditError": "auditor.errors",
    "EdgeNeighbors": "auditor.neighbors",
    "GaussianDP": "auditor.guarantees",
    "Group": "auditor.neighbors",
    "NodeNeighbors": "auditor.neighbors",
    "Pair": "auditor.neighbors",
    "PerUser": "auditor.neighbors",
    "PrivacyViolation": "auditor.errors",
    "PureDP": "auditor.guarantees",
    "RenyiDP": "auditor.guarantees",
    "ReplaceLabel": "auditor.neighbors",
    "ReplaceOne": "auditor.neighbors",
    "SpecificationError": "auditor.errors",
    "TargetError": "auditor.errors",
    "TradeoffCurve": "auditor.guarantees",
    "Verdict": "auditor.results",
    "ZCDP": "auditor.guarantees",
    "assert_private": "auditor.auditing",
    "audit": "auditor.auditing",
    "check_accuracy": "auditor.accuracy",
    "check_conformity": "auditor.conformity",
    "classifier": "auditor.events.classifier",
    "explain": "auditor.findings",
    "one_draw": "auditor.targets",
    "pairs_of": "auditor.strategies",
    "search_pairs": "auditor.search",
}

__all__ = [
    "ZCDP",
    "AddRemoveOne",
    "AnswersWithin",
    "ApproxDP",
    "AuditResult",
    "DeltaDP",
    "DpauditError",
    "EdgeNeighbors",
    "GaussianDP",
    "Group",
    "NodeNeighbors",
    "Pair",
    "PerUser",
    "PrivacyViolation",
    "PureDP",
    "RenyiDP",
    "ReplaceLabel",
    "ReplaceOne",
    "SpecificationError",
    "TargetError",
    "TradeoffCurve",
    "Verdict",
    "assert_private",
    "audit",
    "check_accuracy",
    "check_conformity",
    "classifier",
    "explain",
    "one_draw",
    "pairs_of",
    "search_pairs",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    module = f"{__name__}.{name}"
    if name.startswith("_") or importlib.util.find_spec(module) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(module)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
