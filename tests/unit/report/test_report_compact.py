"""Parts of the small plots: as few bytes as they take, and nothing lost that can be seen."""

from __future__ import annotations

import re

import numpy as np
import pytest

from auditor.report import compact, svg
from auditor.report.html import format_command, format_math, format_terms
from auditor.report.plots import draw_definitions


def walked(drawn: str) -> list[tuple[float, float]]:
    """Points of a path of relative steps."""
    (data,) = re.findall(r' d="([^"]*)"', drawn)
    x = y = 0.0
    found = []
    for letter, numbers in re.findall(r"([Mlhv])([^MlhvZz]*)", data):
        values = [float(v) for v in re.findall(r"-?\d*\.?\d+", numbers)]
        if letter == "h":
            pairs = [(v, 0.0) for v in values]
        elif letter == "v":
            pairs = [(0.0, v) for v in values]
        else:
            pairs = list(zip(values[::2], values[1::2], strict=True))
        for a, b in pairs:
            x, y = (a, b) if letter == "M" else (x + a, y + b)
            found.append((x, y))
    return found


def test_a_path_ends_where_it_should_however_long_it_is() -> None:
    points = np.random.default_rng(0).uniform(-300, 300, (2_000, 2))
    found = np.array(walked(compact.draw_path(points.tolist(), "current")))
    # Every point is rounded by itself, to a tenth of a pixel.
    assert np.abs(found - points).max() <= 0.05 + 1e-9


def test_a_path_says_no_more_than_it_must() -> None:
    points = [(52.0, 10.0), (60.0, 10.0), (60.0, 9.7), (60.0, 9.7), (61.5, 9.2), (62.0, 9.0)]
    assert compact.draw_path(points, "a") == '<path class="a" d="M52 10h8v-.3l1.5-.5 .5-.2"/>'
    assert compact.draw_path(points[:3], "a", closed=True).endswith('v-.3z"/>')


def test_a_turn_is_kept() -> None:
    turns = [(0.0, 0.0), (0.0, 10.0), (0.0, 5.0), (4.0, 5.0), (9.0, 5.0)]
    assert compact.thin_points(turns) == [*turns[:3], turns[-1]]
    assert compact.thin_points(turns[:1]) == turns[:1]
    assert compact.thin_points([]) == []


@pytest.mark.parametrize("tolerance", [0.05, 0.2])
def test_points_that_are_left_out_lie_on_the_line(tolerance: float) -> None:
    x = np.linspace(0, 300, 301)
    kept = compact.thin_points(zip(x.tolist(), (100 * np.sin(x / 60)).tolist(), strict=True), tolerance)
    there = np.interp(x, *np.array(kept).T)
    assert len(kept) < len(x) / 2
    # A slope of at most 5/3: upwards a point is further from the line than across it, by a factor of 1.95 at most.
    assert np.abs(there - 100 * np.sin(x / 60)).max() < 1.95 * tolerance


def test_what_is_drawn_once_has_a_name_of_its_own() -> None:
    names = re.findall(r'id="([^"]+)"', draw_definitions())
    assert len(set(names)) == len(names)
    assert {"square", "corner", "exact", "one_event", "claimed", "resolves", "ceiling", "off", "end"} == set(names)
    assert compact.use_part("exact", 12.34) == '<use href="#exact" x="12.3"/>'


def test_a_long_title_stays_beside_its_axis() -> None:
    said = re.findall(r'"beside">([^<]+)<', compact.draw_titles("n", "smallest gap at which all queries are answered"))
    assert said == ["smallest gap at whic…ueries are answered"]
    assert "translate(11 130.5)" in svg.draw_titles("n", "error" * 9)[1]
    assert "translate(11 121)" in svg.draw_titles("n", "error")[1]


def test_terms_and_options_do_not_break() -> None:
    assert (
        format_terms("ε = 1, δ = 1e-05")
        == "ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1, δ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1e-5"
    )
    assert "<wbr>" in format_terms("a claim/that is longer than a column is wide")
    assert format_command("dpaudit run --seed 0 <b>") == "dpaudit run <i>--seed</i> 0 &lt;b&gt;"


def test_formulas_have_symbols_and_words_stay() -> None:
    assert format_math("O(ln(2M/delta)/(alpha |S_i|)) <= tau/2") == "O(ln(2M/δ)/(α |S_i|)) ≤ τ/2"
    assert format_math("an alphabet, a delta') and e^eps") == "an alphabet, a δ') and e^ε"


def test_ticks_of_an_axis_do_not_touch() -> None:
    ticks = [(10.0, "0"), (20.0, "1,000"), (60.0, "2,000"), (70.0, "3"), (100.0, "4,096")]
    assert svg.space_ticks(ticks) == [(10.0, "0"), (60.0, "2,000"), (100.0, "4,096")]
    assert [svg.shorten_count(v) for v in (4096, 1500, 20_000, 65_536, 2.5e6, 7.58451e8, 0.0123, 3e13)] == [
        "4,096", "1.5k", "20k", "65,536", "2.5M", "758M", "0.0123", "3e13"
    ]  # fmt: skip
