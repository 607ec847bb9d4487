"""Inequalities: statements that are checked by computing both sides, without draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from auditor.audits.accuracy.base import Theorem
from auditor.audits.context import Question
from auditor.audits.finish import labels_of
from auditor.audits.given_numbers import read_numbers
from auditor.audits.privacy_loop import Settings
from auditor.audits.verdict import decide_verdict
from auditor.errors import SpecificationError, check_number
from auditor.results import AuditResult, Verdict

Comparison: TypeAlias = Literal["<=", "<", "=="]
Row: TypeAlias = tuple[str, float, float]
"""A case in words, and the left and right side there."""

#: Rows that a result shows: the worst one, and as many others as a person reads; arbitrary.
SHOWN = 24
#: Relative error of both sides: sums and special functions in floating point have about 1e-12.
TOLERANCE = 1e-9
_SYMBOLS = {"<=": "≤", "<": "<", "==": "="}


@dataclass(frozen=True)
class Inequality(Theorem):
    """A statement left <= right (or <, =) in every row.

    Parameters
    ----------
    statement : str
        In words.
    comparison : {"<=", "<", "=="}
        How the sides compare.
    tolerance : float
        Part of the larger side by which "<=" and "==" may be missed; "<" is taken as it stands.
    """

    statement: str
    comparison: Comparison = "<="
    tolerance: float = TOLERANCE

    notion: ClassVar[str] = "inequality"
    symbol: ClassVar[str] = "excess"

    def __post_init__(self) -> None:
        if self.comparison not in get_args(Comparison):
            raise SpecificationError(f"comparison must be one of {get_args(Comparison)}, got {self.comparison!r}")
        if not isinstance(self.statement, str):
            raise SpecificationError(f"a statement must be a text, got {self.statement!r}")
        if not 0 <= check_number("tolerance", self.tolerance) < 1:
            raise SpecificationError(f"tolerance must be in [0, 1), got {self.tolerance!r}")

    @property
    def level(self) -> float:
        """The allowed excess of the left side."""
        return 0.0

    @property
    def drawn(self) -> bool:
        """Nothing is drawn."""
        return False

    def parameters(self) -> dict[str, Any]:
        """How the sides compare."""
        return {"comparison": _SYMBOLS[self.comparison]}

    def __str__(self) -> str:
        return self.statement

    def margin(self, found: Mapping[str, Any]) -> dict[str, Any] | None:
        """Distance of the closest case from a refutation."""
        left, right = float(found["worst"]["left"]), float(found["worst"]["right"])
        if self.comparison == "==":
            return {"what": f"sides that differ by {self.tolerance:.1g} of the larger one", "by": self.tolerance}
        if not math.isfinite(right):
            return None
        by = right - left
        return {"what": f"a left side that is larger by {by:.4g}" if by else "any larger left side", "by": by}

    def excess(self, left: float, right: float) -> float:
        """Relative excess of a row beyond the tolerance.

        Relative to the larger side; not positive if the statement holds.

        Parameters
        ----------
        left, right : float
            Both sides; the excess is infinite if one is NaN.
        """
        if math.isnan(left) or math.isnan(right):
            return math.inf
        if self.comparison == "<":
            if left < right:
                return -_relative_difference(right, left)
            return max(_relative_difference(left, right), math.ulp(0.0))  # equality fails, by as little as can be said
        apart = abs(_relative_difference(left, right)) if self.comparison == "==" else _relative_difference(left, right)
        return apart - self.tolerance

    def _read_rows(self, given: Any) -> list[Any]:
        if not isinstance(given, Iterable):
            raise SpecificationError(f"{self.statement}: expected a list of rows, got {given!r}")
        return list(given)

    def _read_row(self, row: Any) -> Row:
        if not isinstance(row, tuple | list) or len(row) != 3:
            raise SpecificationError(f"{self.statement}: expected rows of (case, left, right), got {row!r}")
        left, right = (
            read_numbers(f"{self.statement}: {row[0]}: both sides must be numbers", side) for side in row[1:]
        )
        if left.size != 1 or right.size != 1:
            raise SpecificationError(f"{self.statement}: {row[0]}: expected a number on each side, got {row!r}")
        return str(row[0]), left.item(), right.item()

    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Compute the rows and compare; ``subject`` is a function that returns them.

        See `Theorem.audit`.

        Notes
        -----
        Valid because: both sides are computed by the experiment, with a relative error below the tolerance.
        """
        compute: Callable[[], Sequence[Row]] = subject
        rows = [self._read_row(row) for row in self._read_rows(compute())]
        if not rows:
            raise SpecificationError(f"{self.statement}: expected at least one row, got none")
        excesses = [self.excess(left, right) for _, left, right in rows]
        worst = max(range(len(rows)), key=lambda i: excesses[i])
        failed = sum(excess > 0 for excess in excesses)
        label, left, right = rows[worst]
        why = f"{label}: {left:.6g} where {_SYMBOLS[self.comparison]} {right:.6g} is stated"
        if len(rows) > 1:
            why += f"; {failed} of {len(rows)} cases fail"
        verdict, message = decide_verdict(Verdict.DEVIATION, failed > 0, why)
        order = sorted(range(len(rows)), key=lambda i: -excesses[i])[:SHOWN]
        base = labels_of(subject, self, "L0", settings, question, mechanism="computed")
        return AuditResult(
            **base,
            verdict=verdict,
            message=message,
            accuracy={
                "kind": self.notion,
                "comparison": _SYMBOLS[self.comparison],
                "cases": len(rows),
                "failed": failed,
                "worst": {"case": label, "left": left, "right": right},
                "rows": [{"case": rows[i][0], "left": rows[i][1], "right": rows[i][2]} for i in sorted(order)],
            },
        )


def _relative_difference(left: float, right: float) -> float:
    """Difference over the larger absolute value; 0 for equal numbers, infinite ones among them."""
    if left == right:
        return 0.0
    scale = max(abs(left), abs(right))
    return (left - right) / scale if math.isfinite(scale) else math.copysign(math.inf, left - right)
