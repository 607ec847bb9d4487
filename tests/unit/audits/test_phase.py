"""Phase diagrams: what a theorem states of cells, and evidence that a cell breaks it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from auditor.audits.accuracy import Line, PhaseDiagram, Setting
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.claims import phases
from auditor.errors import SpecificationError
from auditor.report.html import render_html
from auditor.report.markdown import render_markdown
from auditor.report.phases import tabulate_cells
from auditor.results import Verdict, make_document


def coin(success: float) -> Any:
    def draw(data: Any, n: int, rng: np.random.Generator) -> Any:
        return (rng.random(n) >= success).astype(float)

    return draw


def build(x: float, y: float) -> Setting:
    """Succeeds always where y is at most x, with probability 0.5 at twice x, and never above."""
    chance = 1.0 if y <= x else 0.5 if y <= 2 * x else 0.0
    return Setting(coin(chance), None, lambda outputs: np.asarray(outputs), at_most=0.5)


def diagram(factor: float = 1.0, above: float = 2.0) -> PhaseDiagram:
    return PhaseDiagram(
        "n",
        "noise",
        (1.0, 2.0, 4.0),
        (1.0, 2.0, 4.0, 16.0),
        promised=lambda x, y: 0.95 if y <= factor * x else None,
        excluded=lambda x, y: 0.05 if y > above * x else None,
        lines=(Line("noise = n", lambda x: x),),
        success="half of the bits",
    )


def audited(one: PhaseDiagram, draws: int = 600, alpha: float = 1e-6) -> Any:
    return one.audit(build, Settings(draws=draws, alpha=alpha), Question("document/entry/L4/phase_diagram/x"))


def test_a_diagram_that_holds() -> None:
    found = audited(diagram())
    assert found.verdict == Verdict.CONSISTENT
    cells = found.accuracy["cells"]
    assert [(cell["x"], cell["y"]) for cell in cells] == [(x, y) for x in (1, 2, 4) for y in (1, 2, 4, 16)]
    assert [cell["successes"] for cell in cells if cell["stated"] == "promised"] == [50] * 6
    assert [cell["successes"] for cell in cells if cell["stated"] == "excluded"] == [0] * 4
    assert found.draws == 600
    assert found.accuracy["lines"] == [{"title": "noise = n", "points": [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]}]
    json.dumps(found.to_json())


def test_a_promise_that_is_broken() -> None:
    found = audited(diagram(factor=2.0))
    assert found.verdict == Verdict.DEVIATION
    assert "2 of 12 cells break what is stated of them" in found.message
    assert found.accuracy["broken"] == 2


def test_a_success_that_is_excluded() -> None:
    found = audited(diagram(above=1.0))
    assert found.verdict == Verdict.DEVIATION
    assert "excluded is 0.05" in found.message


def test_too_few_draws_decide_nothing() -> None:
    found = audited(diagram(), draws=36)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert "too few" in found.message


def test_a_true_diagram_is_refuted_rarely() -> None:
    """Every cell exactly at its bound; with alpha = 0.1 more than 26 of 100 has probability below 1e-6."""
    edge = PhaseDiagram(
        "a", "b", (1.0, 2.0), (1.0, 2.0), lambda x, y: 0.7 if x > 1 else None, lambda x, y: 0.3 if x == 1 else None
    )
    alarms = 0
    for seed in range(100):
        found = edge.audit(
            lambda x, y: Setting(coin(0.7 if x > 1 else 0.3), None, np.asarray, at_most=0.5),
            Settings(draws=400, alpha=0.1, seed=seed),
            Question(),
        )
        alarms += found.verdict == Verdict.DEVIATION
    assert alarms <= 26


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"xs": (1.0,)}, r"xs must be at least two increasing positive numbers, got \(1.0,\)"),
        ({"ys": (2.0, 1.0)}, "ys must be at least two"),
        ({"promised": lambda x, y: None, "excluded": lambda x, y: None}, "needs a cell"),
        ({"promised": lambda x, y: 1.0}, r"in \(0, 1\), got 1.0"),
        ({"excluded": lambda x, y: 0.05}, "promised and excluded at 1, 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(change: dict[str, Any], said: str) -> None:
    given = {
        "across": "n",
        "up": "noise",
        "xs": (1.0, 2.0),
        "ys": (1.0, 2.0),
        "promised": lambda x, y: 0.9,
        "excluded": lambda x, y: None,
    }
    with pytest.raises(SpecificationError, match=said):
        PhaseDiagram(**{**given, **change})


def test_the_report_shows_cells_lines_and_numbers() -> None:
    found = audited(diagram())
    page = render_html(make_document({}, [found], []))
    assert page.count('<rect class="framed promised"') == 6 + 1, "cells, and the key"
    assert page.count('<rect class="framed excluded"') == 4 + 1
    assert "noise = n" in page
    assert "n = 1, noise = 1: 50 of 50 succeed; promised: 0.95" in page
    assert "For 6 cells the claim is that the probability of success (half of the bits) is" in page
    head, listed = tabulate_cells(found.accuracy)
    assert head == ["noise \\ n", "1", "2", "4"]
    assert [row[0] for row in listed] == ["16", "4", "2", "1"]
    assert listed[-1][1:] == ["50 of 50"] * 3
    assert "10 of 10 cells hold" in render_markdown(make_document({}, [found], []))


def test_it_is_declared_like_the_others() -> None:
    draft = phases(build, diagram(), case="line", draws={"smoke": 120})
    assert (draft.level, draft.guarantee.notion, draft.budgets["smoke"][0]) == ("L4", "phase diagram", 120)
