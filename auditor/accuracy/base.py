"""What statements that are checked in a way of their own have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from auditor.accuracy.errors import Setting
from auditor.audit import Question
from auditor.collect import Settings
from auditor.evidence.independence import Independence, check_independence
from auditor.results import AuditResult
from auditor.sampling import Sampler


class Theorem(ABC):
    """A statement that is no privacy guarantee, and knows how it is checked."""

    notion: ClassVar[str]
    symbol: ClassVar[str]

    @property
    @abstractmethod
    def level(self) -> float:
        """The claimed number."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Parameters by name."""

    @property
    def drawn(self) -> bool:
        """Whether draws judge it; otherwise it is computed."""
        return True

    def place(self, subject: Any) -> Setting | None:
        """A setting that is about as costly as any that is drawn at; None if nothing is drawn."""
        return subject if isinstance(subject, Setting) else None

    @abstractmethod
    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Check the statement about ``subject``; never raises for what a target does."""


def independence_of(sampler: Sampler, setting: Setting, settings: Settings) -> Independence:
    """Tests that draws at a setting are independent; passed without a draw where they are not asked for."""
    if not settings.independence:
        return Independence(True, "", {}, 0)
    return check_independence(sampler, setting.data, "accuracy")
