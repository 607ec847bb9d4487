"""dpaudit: tries to break differential-privacy claims, honestly."""

from auditor.audit import assert_private, audit
from auditor.errors import DpauditError, PrivacyViolation, SpecificationError, TargetError
from auditor.events.classifier import classifier
from auditor.findings import explain
from auditor.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.neighbors import AddRemoveOne, AnswersWithin, Pair, ReplaceOne
from auditor.results import AuditResult, Verdict
from auditor.targets import one_draw

__version__ = "0.1.0"

__all__ = [
    "AddRemoveOne",
    "AnswersWithin",
    "ApproxDP",
    "AuditResult",
    "DpauditError",
    "GaussianDP",
    "Pair",
    "PrivacyViolation",
    "PureDP",
    "ReplaceOne",
    "SpecificationError",
    "TargetError",
    "Verdict",
    "assert_private",
    "audit",
    "classifier",
    "explain",
    "one_draw",
]
