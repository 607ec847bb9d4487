"""Phase diagrams: over two parameters, the cells where something succeeds and those where it does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from auditor.audits.accuracy.base import CHUNKS, Theorem, measured_again
from auditor.audits.accuracy.errors import ErrorSampler, Setting, check_setting, find_failures
from auditor.audits.context import Question
from auditor.audits.finish import Conclusion, finish_audit, labels_of
from auditor.audits.independence import Independence
from auditor.audits.loop import ChunkLoop
from auditor.audits.privacy_loop import Settings
from auditor.audits.summary import describe_target
from auditor.audits.verdict import decide_verdict
from auditor.errors import SpecificationError, check_number
from auditor.evidence.bernoulli import find_detectable, log_evidence, lower_limit, upper_limit
from auditor.results import AuditResult, Verdict
from auditor.targets import source_hash

Place = Callable[[float, float], Setting]
"""From values of the two parameters to a setting, with the largest error that is a success."""


@dataclass(frozen=True)
class Line:
    """A theorem's line in the diagram.

    ``at(x)`` is its place on the vertical axis.
    """

    title: str
    at: Callable[[float], float]


@dataclass(frozen=True)
class PhaseDiagram(Theorem):
    """Success over a grid of two parameters.

    A theorem promises it of some cells, and it holds in each of them.

    Parameters
    ----------
    across, up : str
        What the two parameters are.
    xs, ys : tuple of float
        Their values, increasing.
    promised : callable
        From (x, y) to the promised probability of success, between 0 and 1; None where nothing is promised.
    excluded : callable
        From (x, y) to the largest probability of success that a theorem allows; None where it says nothing.
    lines : tuple of Line
        Lines to draw.
    success : str
        What a success is, in words.
    """

    across: str
    up: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    promised: Callable[[float, float], float | None]
    excluded: Callable[[float, float], float | None]
    lines: tuple[Line, ...] = ()
    success: str = "success"

    notion: ClassVar[str] = "phase diagram"
    symbol: ClassVar[str] = "cells that break a promise"

    def __post_init__(self) -> None:
        for name, values in (("xs", self.xs), ("ys", self.ys)):
            for value in values:
                check_number(name, value)
            if len(values) < 2 or list(values) != sorted(set(values)) or values[0] <= 0:
                raise SpecificationError(f"{name} must be at least two increasing positive numbers, got {values!r}")
        if not self.bounds():
            raise SpecificationError("a phase diagram needs a cell of which something is promised or excluded")

    @property
    def level(self) -> float:
        """No cell may break its promise."""
        return 0.0

    def place(self, subject: Any) -> Setting:
        """The last cell, the largest one."""
        build: Place = subject
        return check_setting(build(self.xs[-1], self.ys[-1]))

    def _build_middle_cell(self, build: Place) -> Setting:
        return check_setting(build(self.xs[len(self.xs) // 2], self.ys[len(self.ys) // 2]))

    @property
    def places(self) -> int:
        """The number of cells."""
        return len(self.xs) * len(self.ys)

    def parameters(self) -> dict[str, Any]:
        """The size of the grid."""
        return {"cells": len(self.xs) * len(self.ys), "cells with a statement": len(self.bounds())}

    def __str__(self) -> str:
        return f"{self.success} where it is promised, and not where it is excluded"

    def bounds(self) -> dict[tuple[float, float], tuple[str, float]]:
        """Cells with a statement, and its probability of success.

        It is "promised" or "excluded".
        """
        found: dict[tuple[float, float], tuple[str, float]] = {}
        for x in self.xs:
            for y in self.ys:
                least, most = self.promised(x, y), self.excluded(x, y)
                for value in (least, most):
                    if value is not None and not 0 < check_number("a probability of success", value) < 1:
                        raise SpecificationError(f"a probability of success must be in (0, 1), got {value!r}")
                if least is not None and most is not None:
                    raise SpecificationError(f"success is promised and excluded at {x:g}, {y:g}")
                if least is not None:
                    found[x, y] = ("promised", least)
                elif most is not None:
                    found[x, y] = ("excluded", most)
        return found

    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Draw in every cell, and bet in those with a statement.

        See `Theorem.audit`; ``subject`` builds a setting from both parameters.

        Notes
        -----
        Valid because: in a cell of which a theorem promises a success with probability at least r, failures have a
        probability of at most 1 - r, and the evidence of `log_evidence` for more of them reaches 1/a with probability
        at most a at all times together; likewise for successes in a cell where at most r is allowed. Each of the m
        cells with a statement has a = alpha / m, so that "deviation" is returned for a diagram that holds with
        probability at most alpha; and only if a cell breaks its statement again where the draws of any cell looked
        dependent, see `confirm_refutation`. Draws of the middle cell that are not independent are a deviation too, see
        `measured_again`.
        """
        build: Place = subject
        stated = self.bounds()
        alpha = settings.alpha / len(stated)
        labels = labels_of(
            subject, self, "L4", settings, question, mechanism=describe_target(self.place(build).mechanism)
        )
        labels |= {"source_hash": source_hash(self.place(build).mechanism)}
        places = [(x, y) for x in self.xs for y in self.ys]
        draws, threshold = max(settings.draws // len(places), 1), -math.log10(alpha)

        def measure(draw: ErrorSampler) -> list[dict[str, Any]]:
            return [
                _cell(place, check_setting(build(*place)), stated.get(place), draw, draws, alpha) for place in places
            ]

        def breaking(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [cell for cell in cells if cell["stated"] and cell["log10_e_value"] >= threshold]

        def collect() -> tuple[list[dict[str, Any]], ErrorSampler, Independence]:
            draw = ErrorSampler(settings.seed, question.id, settings.limit)
            return measured_again(
                measure,
                lambda found: bool(breaking(found)),
                draw,
                settings,
                place=lambda: self._build_middle_cell(build),
            )

        def conclude(made: tuple[list[dict[str, Any]], ErrorSampler, Independence]) -> Conclusion:
            cells, draw, independence = made
            told = [cell for cell in cells if cell["stated"]]
            broken = breaking(cells)
            largest = max((cell["log10_e_value"] for cell in told), default=0.0)
            missed = max((cell["detectable"] for cell in told), default=1.0)
            worst = max(broken or told, key=lambda cell: cell["log10_e_value"])
            few = "the draws were too few to find a cell that breaks its promise in every draw"
            decided = decide_verdict(
                Verdict.DEVIATION,
                bool(broken),
                f"{len(broken)} of {len(told)} cells break what is stated of them, first at {self.across} = "
                f"{worst['x']:g}, {self.up} = {worst['y']:g}: {worst['successes']} of {worst['draws']} succeed, "
                f"{worst['stated']} is {worst['bound']:.4g}",
                lambda: few if missed >= 1 else "",
                independence,
            )
            fields = {
                "draws": draw.draws,
                "resolves": missed,
                "log10_e_value": largest,
                "log10_max_e_value": largest,
                "record": {"cells": [[cell["x"], cell["y"], cell["successes"], cell["draws"]] for cell in cells]},
                "accuracy": {
                    "kind": self.notion,
                    "across": self.across,
                    "up": self.up,
                    "success": self.success,
                    "cells": cells,
                    "broken": len(broken),
                    "lines": [
                        {"title": line.title, "points": [[x, line.at(x)] for x in self.xs]} for line in self.lines
                    ],
                },
            }
            return Conclusion(decided, fields, independence)

        return finish_audit(labels, question.private, collect, conclude)


def _cell(
    place: tuple[float, float],
    setting: Setting,
    stated: tuple[str, float] | None,
    draw: ErrorSampler,
    draws: int,
    alpha: float,
) -> dict[str, Any]:
    """Draw in one cell: all of the draws where nothing is stated, else until the statement is refuted."""
    kind, bound = stated or ("", 0.0)
    loop, successes = ChunkLoop(CHUNKS, draws), 0
    best, beta = 0.0, 1 - bound if kind == "promised" else bound
    for part in loop:
        errors = draw(setting, loop.take(), *(f"{value:g}" for value in place), part)
        successes += int((~find_failures(errors, setting.at_most)).sum())
        if kind:
            best = max(best, log_evidence(loop.used - successes if kind == "promised" else successes, loop.used, beta))
        if best >= -math.log(alpha):
            break
    n = loop.used
    return {
        "x": place[0],
        "y": place[1],
        "successes": successes,
        "draws": n,
        "lower": lower_limit(successes, n, alpha / 2),
        "upper": upper_limit(successes, n, alpha / 2),
        "stated": kind,
        "bound": bound if kind else None,
        "log10_e_value": best / math.log(10),
        "detectable": find_detectable(n, beta, alpha) if kind else None,
    }
