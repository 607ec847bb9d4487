"""dpaudit: tries to break differential-privacy claims, honestly."""

from auditor.accuracy import check_accuracy
from auditor.audit import assert_private, audit
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
