"""The notebook of examples/: its cells are run one after the other, and what each shows is looked at."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from auditor import AuditResult, Verdict

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"


def run_cells(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Run cells of code in one namespace; what the last expression of each gives, by the cell's id."""
    names: dict[str, Any] = {"__name__": "notebook"}
    shown = {}
    for cell in cells:
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), cell["id"], "exec"), names)
        if isinstance(last, ast.Expr):
            shown[cell["id"]] = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
    return shown


def test_the_notebook_runs_and_shows_what_it_says() -> None:
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    shown = run_cells(cells)
    assert isinstance(shown["card"], AuditResult)
    assert shown["card"].verdict == Verdict.VIOLATION
    card = shown["card"]._repr_html_()
    assert card is not None
    assert "one person joins the group" in card
    assert isinstance(shown["figure"], Figure)
    assert [axes.get_title() for axes in shown["figure"].axes] == ["levels", "trade-off", "evidence against the claim"]
    assert isinstance(shown["table"], pd.DataFrame)
    assert list(shown["table"]["verdict"]) == ["violation", "consistent", "consistent"]
