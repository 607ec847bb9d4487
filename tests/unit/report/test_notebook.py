"""What a notebook shows of results: the card, the figure, the table."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import auditor
from auditor import AuditResult, Pair, PureDP, SpecificationError, audit
from auditor.audits.conformity import check_conformity
from auditor.privacy.laws import FiniteLaw
from auditor.report.notebook import COLUMNS, plot_result, render_card
from auditor.results import ALLOWED

PAIR = Pair(np.array([0]), np.array([1]), "</style><script>alert(1)</script>")


def leak(data: Any, n: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(n) < 0.95, data[0], 1 - data[0])


@pytest.fixture(scope="module", name="refuted")
def _refuted() -> AuditResult:
    return audit(leak, PureDP(1.0), PAIR, draws=4_000)


@pytest.fixture(scope="module", name="results")
def _results(refuted: AuditResult) -> list[AuditResult]:
    """Results of several verdicts, the last without a draw."""

    def crash(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise OSError("no entropy left")

    held = audit(leak, PureDP(4.0), PAIR, draws=4_000, detect=4.5)
    return [refuted, held, audit(crash, PureDP(1.0), PAIR, draws=400)]


class Elements(HTMLParser):
    """Elements of a page, and whether each that is opened is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "wbr":  # it has no end
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_card_is_one_closed_section_that_loads_nothing(results: list[AuditResult]) -> None:
    for result in results:
        card = result._repr_html_()
        assert card is not None
        page = Elements()
        page.feed(card)
        assert page.open == []
        assert page.seen[0] == ("section", {"class": "dpaudit"})
        assert not {tag for tag, _ in page.seen} & {"script", "link", "img", "iframe", "use"}
        assert not [
            name for _, given in page.seen for name in given if name in ("src", "href") or name.startswith("on")
        ]
        assert result.verdict in card
        assert "url(http" not in card


def test_the_style_of_a_card_reaches_nothing_outside_it(refuted: AuditResult) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", render_card(refuted) or "", flags=re.DOTALL)
    assert style.startswith(".dpaudit {\n")
    assert style.count("{") == style.count("}")
    depth, outside = 0, []
    for line in style.splitlines():
        outside += [line] if depth == 0 and line.strip() else []
        depth += line.count("{") - line.count("}")
    assert [line for line in outside if not line.startswith((".dpaudit {", "}"))] == []
    assert not re.search(r"^\s*(:root|html|body)\b", style, flags=re.MULTILINE)
    assert "prefers-color-scheme: dark" in style


def test_a_card_has_names_of_its_own_for_what_it_refers_to(refuted: AuditResult) -> None:
    card = render_card(refuted) or ""
    names = set(re.findall(r' id="([^"]+)"', card))
    assert names == {"dpaudit-end"}
    assert set(re.findall(r"url\(#([^)]+)\)", card)) == names


def test_what_a_target_says_is_escaped_in_a_card(refuted: AuditResult) -> None:
    card = render_card(refuted) or ""
    assert "&lt;script&gt;alert(1)" in card
    assert "<script" not in card
    record = {**refuted.to_json(), "claimed": "\x1b[31m\ud800"}  # half of a pair, which no notebook can store
    assert "\\x1b[31m\\ud800" in (render_card(record) or "")


def test_a_card_of_a_record_is_that_of_the_result(refuted: AuditResult) -> None:
    record = refuted.to_json()
    assert render_card(record) == render_card(refuted)
    assert ">x′</th>" in (render_card(record) or "")
    record["counterexample"]["y"] = ALLOWED
    game = render_card(record) or ""
    assert ">game</th>" in game
    assert ">x′</th>" not in game, "a game has no other dataset"


def test_a_figure_has_a_panel_for_all_that_there_is(results: list[AuditResult], tmp_path: Path) -> None:
    refuted, held, failed = (result.plot() for result in results)
    for figure in (refuted, held):
        assert isinstance(figure, Figure)
        levels, tradeoff, evidence = figure.axes
        assert levels.get_xlabel() == "ε"
        assert [text.get_text() for text in levels.get_yticklabels()][-1] == "lower bound"
        assert tradeoff.get_xlim() == (0.0, 1.0)
        assert evidence.get_xlabel() == "draws"
    (bar,) = refuted.axes[0].patches
    assert isinstance(bar, Rectangle)
    assert bar.get_width() == pytest.approx(results[0].lower_bound)
    assert [line.get_label() for line in refuted.axes[1].lines][-1] == "counterexample"
    assert [line.get_label() for line in held.axes[1].lines][-1] == "events"
    assert [axes.get_title() for axes in failed.axes] == ["levels"]
    refuted.savefig(tmp_path / "claim.svg")
    assert "violation" in (refuted.get_suptitle())


def test_a_figure_of_conformity_has_no_levels_of_privacy() -> None:
    law = FiniteLaw((0, 1), np.array([0.5, 0.5]))

    class Coin:
        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
            return rng.integers(2, size=n)

        def law(self, data: Any) -> FiniteLaw:
            return law

    result = check_conformity(Coin(), np.array([0]), draws=2_000)
    assert [axes.get_title() for axes in plot_result(result).axes] == ["evidence against the claim"]
    assert "consistent" in (render_card(result) or "")


def test_a_frame_has_a_row_for_each_result(results: list[AuditResult]) -> None:
    frame = auditor.results_to_frame(results)
    assert tuple(frame.columns) == COLUMNS
    assert list(frame["verdict"]) == ["violation", "inconclusive", "error"]
    assert list(frame["draws"]) == [result.draws for result in results]
    assert frame["lower_bound"].dtype == float
    assert np.isnan(frame["lower_bound"][2])
    assert frame.equals(auditor.results_to_frame(result.to_json() for result in results))
    assert len(auditor.results_to_frame(results[0])) == 1
    empty = auditor.results_to_frame([])
    assert len(empty) == 0
    numbers = ["claimed_level", "lower_bound", "draws"]
    assert list(empty[numbers].dtypes) == list(frame[numbers].dtypes)


@pytest.mark.parametrize("bad", [None, 7, [3], ["out/results.json"], [{"id": "a"}]], ids=str)
def test_what_is_no_result_is_refused(bad: Any) -> None:
    with pytest.raises(SpecificationError, match="results must be results of audits, or their records"):
        auditor.results_to_frame(bad)
