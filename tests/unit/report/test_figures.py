"""Figures: claims about growth that are drawn into one plot."""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from auditor.audits.accuracy import Exactly, Figure, PowerLaw
from auditor.audits.accuracy.figure import check_figures
from auditor.claims import registry
from auditor.errors import SpecificationError
from auditor.report.figures import COLOURS, build_figures, draw_legend
from auditor.report.html import render_html
from auditor.report.view import RunView
from auditor.runs.run import Run
from auditor.runs.runner import execute_run, results_document
from benchmarks.theorems import document, picture, pictures

DECLARED = """
import math
from itertools import pairwise
from auditor.audits.accuracy import Exactly, Figure
from auditor.claims import Source, entry, scaling

def figure(curve, at):
    return Figure("Samples for <parity>", curve, "d", "samples", at, logarithmic=False)

@entry("900/gap", title="A gap", source=Source("900", "nowhere"))
def gap():
    yield scaling(lambda x: 3 * x, parameter="2^d", at=[2.0**d for d in (1, 2, 3, 4)], exponent=1, others=(2,),
                  measure=Exactly(), curve=lambda x: 5 * x, case="local", figure=figure("local & brute", math.log2))
    yield scaling(lambda d: 7 * d, parameter="d", at=(1, 2, 3, 4), exponent=1, others=(2,), measure=Exactly(),
                  case="central", figure=figure("central", lambda d: d))
    yield scaling(lambda d: d, parameter="d", at=(1, 2, 3), exponent=1, others=(2,), measure=Exactly(), case="alone")
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("figures")
    (folder / "gap.py").write_text(DECLARED, encoding="utf-8")
    claims = registry.load_claims([str(folder)])
    run = Run((str(folder),), None, "smoke", 0.05, 1)
    return results_document(run, claims, execute_run(run, claims))


def test_claims_of_one_figure_share_a_plot(results: dict[str, Any]) -> None:
    (view,) = build_figures(RunView.of(results).claims)
    assert view.name == "Samples for <parity>"
    assert [curve.title for curve in view.curves] == ["local & brute", "central"]
    local, central = view.curves
    assert [point[:2] for point in local.points] == [(1, 6), (2, 12), (3, 24), (4, 48)]
    assert [point[:2] for point in central.points] == [(1, 7), (2, 14), (3, 21), (4, 28)]
    assert list(local.bound) == [(1, 10), (2, 20), (3, 40), (4, 80)]
    assert not central.bound
    assert view.bounded


def heights(points: str) -> list[float]:
    return [float(point.split(",")[1]) for point in points.split()]


def test_exponential_growth_is_a_straight_line_over_a_linear_axis(results: dict[str, Any]) -> None:
    (view,) = build_figures(RunView.of(results).claims)
    lines = str(view.picture).split('<polyline class="joined" points="')[1:]
    local, central = (heights(part.split('"')[0]) for part in lines)
    rises = [b - a for a, b in pairwise(local)]
    assert max(rises) - min(rises) < 0.3  # coordinates are rounded to a tenth of a pixel
    assert central[-1] - central[-2] > central[1] - central[0]  # upwards is negative


def test_the_report_shows_the_figure_and_escapes_its_titles(results: dict[str, Any]) -> None:
    page = render_html(results)
    assert '<section id="figures">' in page
    assert "<parity>" not in page
    assert "Samples for &lt;parity&gt;" in page
    assert "local &amp; brute" in page
    without = copy.deepcopy(results)
    for claim in without["claims"]:
        claim["accuracy"]["figure"] = None
    assert '<section id="figures">' not in render_html(without)


def test_a_figure_as_a_file_stands_alone(results: dict[str, Any]) -> None:
    page = document(results)
    assert "![Samples for <parity>](figures/samples-for-parity.svg)" in page
    assert "- central: `900/gap/L4/exponent/central`" in page
    (drawn,) = (picture(figure) for figure in pictures(results).values())
    root = ElementTree.fromstring(drawn)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"local & brute", "central", "d", "samples", "dashed: the theorem's curve"} <= set(texts)
    assert len([element for element in root.iter() if element.get("class") == "shape"]) == 8 + 2


def test_every_curve_of_a_plot_has_a_mark_of_its_own() -> None:
    assert len({str(draw_legend(i)) for i in range(COLOURS)}) == COLOURS


@pytest.mark.parametrize("key", ["name", "curve", "axis", "measured"])
def test_a_figure_needs_its_titles(key: str) -> None:
    titles = {"name": "a", "curve": "b", "axis": "c", "measured": "d", key: " "}
    with pytest.raises(SpecificationError, match=f"a figure needs {key}, got ' '"):
        Figure(titles["name"], titles["curve"], titles["axis"], titles["measured"])


def test_a_place_that_cannot_be_drawn_is_refused_where_the_claim_is_declared() -> None:
    with pytest.raises(SpecificationError, match=r"local cannot be drawn at 1 \(0\.0\)"):
        PowerLaw("2^d", (1.0, 2.0, 4.0), 1.0, Exactly(), figure=Figure("f", "local", "d", "n", math.log2))


def test_claims_that_disagree_about_a_figure_are_refused() -> None:
    one, other = Figure("f", "local", "d", "n"), Figure("f", "central", "d", "samples")
    check_figures([("a", one), ("b", Figure("f", "central", "d", "n")), ("c", Figure("g", "local", "k", "n"))])
    with pytest.raises(SpecificationError, match=r"figure 'f' has axes .* in a and .* in b"):
        check_figures([("a", one), ("b", other)])
    with pytest.raises(SpecificationError, match="has a curve 'local' in a and in b"):
        check_figures([("a", one), ("b", one)])
