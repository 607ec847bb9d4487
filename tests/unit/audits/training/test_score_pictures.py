"""What plots of scores show, in the report and by `result.plot()`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor import audit_scores
from auditor.audits.training.score_pictures import count_scores, trace_tradeoff
from auditor.privacy.guarantees import GaussianDP, PureDP
from auditor.report import plots
from auditor.report.notebook import view_result
from auditor.results import make_document
from auditor.training import audit_runs
from tests.commandline import Command

ROOT = Path(__file__).resolve().parents[4]


def scores(sign: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    coins = rng.random(500) < 0.5
    values = np.round(sign * (rng.normal(size=500) + 2 * coins), 3)
    return values[coins], values[~coins]


def test_every_score_is_counted_once_and_extreme_ones_in_the_outer_bins() -> None:
    inside, outside = scores()
    inside[0] = 1e9
    found = count_scores(inside, outside)
    assert sum(found["inside"]) == len(inside)
    assert sum(found["outside"]) == len(outside)
    assert found["edges"][-1] < 10
    assert len(found["edges"]) == len(found["inside"]) + 1
    assert sum(count_scores(np.ones(3), np.ones(4))["outside"]) == 4


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_points_are_rates_of_the_side_that_speaks_for_inclusion(sign: float) -> None:
    inside, outside = scores(sign)
    found = trace_tradeoff(inside, outside, GaussianDP(2.0))
    q, p = np.array(found["points"]).T
    assert ((p > q) | ((p == q) & ((p == 0) | (p == 1)))).mean() > 0.9
    threshold = np.median(np.concatenate([inside, outside]))
    rates = [(sign * side >= sign * threshold).mean() for side in (outside, inside)]
    assert np.abs(np.array(found["points"]) - rates).max(axis=1).min() < 0.02
    assert max(found["claimed"]) <= 1.0
    assert trace_tradeoff(inside, np.zeros(0), PureDP(1.0)) == {}


@pytest.mark.parametrize("assume", ["nothing", "independent-canaries"])
def test_a_result_of_scores_has_both_plots(assume: str) -> None:
    claim = view_result(audit_scores(*scores(), GaussianDP(1.0), assume=assume))
    drawn = str(plots.plot_scores(claim))
    assert drawn.count("<path") >= 2
    assert "Scores of both sides" in drawn
    assert "events found" in str(plots.plot_tradeoff(claim))
    assert not plots.plot_scores(view_result({**claim.raw, "record": {}}))


@pytest.mark.parametrize("ends", [(1.7e308, -1.7e308), (1e20, 1e20), (1e9, 1e9 + 3), (5e-324, 0.0)])
def test_scores_of_any_size_are_drawn(ends: tuple[float, float]) -> None:
    inside, outside = ([end] * 20 for end in ends)
    claim = view_result(audit_scores(inside, outside, PureDP(1.0)))
    assert "nan" not in str(plots.plot_scores(claim))
    edges, sides = plots.read_scores(claim) or ([], {})
    assert edges[0] < edges[-1]
    assert all(sum(shares) == pytest.approx(1.0) for shares in sides.values())


def test_runs_with_one_score_each_have_them_too() -> None:
    def train(data: Any, rng: np.random.Generator) -> Any:
        return np.round(rng.normal() + 2 * data[0], 3)

    result = audit_runs(train, [1], [0], None, GaussianDP(1.0), runs=60, progress=False)
    assert sum(map(sum, (result.record["canary_scores"][side] for side in ("inside", "outside")))) == 60
    assert result.tradeoff["points"]
    jsonschema = pytest.importorskip("jsonschema")
    content = make_document({"dpaudit": "0", "seed": 0, "alpha": 0.01}, [result], [])
    jsonschema.validate(content, json.loads((ROOT / "auditor/report/schema.json").read_text()))


def test_figures_have_a_panel_of_scores() -> None:
    pytest.importorskip("matplotlib")
    titles = [axes.get_title() for axes in audit_scores(*scores(), GaussianDP(1.0)).plot().axes]
    assert titles[:3] == ["levels", "scores", "trade-off"]


def test_the_report_of_the_command_shows_scores(dpaudit: Command, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    for name, side in zip(("in.csv", "out.csv"), scores(), strict=True):
        np.savetxt(tmp_path / name, side, header="loss", comments="")
    found = tmp_path / "found"
    said = dpaudit("scores", tmp_path / "in.csv", tmp_path / "out.csv", "--claim", "mu=1", "--out", found)
    assert said.code in (0, 1), said
    page = (found / "report.html").read_text(encoding="utf-8")
    assert "<strong>Scores</strong>" in page
    assert "in the training data" in page
