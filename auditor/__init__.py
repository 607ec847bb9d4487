"""dpaudit: tries to break differential-privacy claims, honestly.

Names are imported when they are asked for: a pytest plugin, or a command that only lists, need not load scipy.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.audits.accuracy import check_accuracy
    from auditor.audits.certificates import prove
    from auditor.audits.check_mechanism import check_mechanism
    from auditor.audits.conformity import check_conformity
    from auditor.audits.pair_search import search_pairs
    from auditor.audits.privacy import assert_private, audit
    from auditor.audits.replayed_draws import trace
    from auditor.audits.summary import explain
    from auditor.audits.training.scores import audit_scores
    from auditor.datasets import (
        AddRemoveAnyOrder,
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
    from auditor.datasets.strategies import pairs_of
    from auditor.errors import DpauditError, PrivacyViolation, SpecificationError, TargetError
    from auditor.events.classifier import classifier
    from auditor.privacy.guarantees import ZCDP, ApproxDP, DeltaDP, GaussianDP, PureDP, RenyiDP, TradeoffCurve
    from auditor.report.notebook import results_to_frame
    from auditor.results import AuditResult, Verdict
    from auditor.targets import one_draw

__version__ = "0.1.0"

#: Where each public name stands.
_HOMES = {
    "AddRemoveAnyOrder": "auditor.datasets",
    "AddRemoveOne": "auditor.datasets",
    "AnswersWithin": "auditor.datasets",
    "ApproxDP": "auditor.privacy.guarantees",
    "AuditResult": "auditor.results",
    "DeltaDP": "auditor.privacy.guarantees",
    "DpauditError": "auditor.errors",
    "EdgeNeighbors": "auditor.datasets",
    "GaussianDP": "auditor.privacy.guarantees",
    "Group": "auditor.datasets",
    "NodeNeighbors": "auditor.datasets",
    "Pair": "auditor.datasets",
    "PerUser": "auditor.datasets",
    "PrivacyViolation": "auditor.errors",
    "PureDP": "auditor.privacy.guarantees",
    "RenyiDP": "auditor.privacy.guarantees",
    "ReplaceLabel": "auditor.datasets",
    "ReplaceOne": "auditor.datasets",
    "SpecificationError": "auditor.errors",
    "TargetError": "auditor.errors",
    "TradeoffCurve": "auditor.privacy.guarantees",
    "Verdict": "auditor.results",
    "ZCDP": "auditor.privacy.guarantees",
    "assert_private": "auditor.audits.privacy",
    "audit": "auditor.audits.privacy",
    "audit_scores": "auditor.audits.training.scores",
    "check_accuracy": "auditor.audits.accuracy",
    "check_conformity": "auditor.audits.conformity",
    "check_mechanism": "auditor.audits.check_mechanism",
    "classifier": "auditor.events.classifier",
    "explain": "auditor.audits.summary",
    "one_draw": "auditor.targets",
    "pairs_of": "auditor.datasets.strategies",
    "prove": "auditor.audits.certificates",
    "results_to_frame": "auditor.report.notebook",
    "search_pairs": "auditor.audits.pair_search",
    "trace": "auditor.audits.replayed_draws",
}

__all__ = [
    "ZCDP",
    "AddRemoveAnyOrder",
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
    "audit_scores",
    "check_accuracy",
    "check_conformity",
    "check_mechanism",
    "classifier",
    "explain",
    "one_draw",
    "pairs_of",
    "prove",
    "results_to_frame",
    "search_pairs",
    "trace",
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
