"""The report in a browser: nothing lies over anything else, and all details can be found, opened and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.report import render_html
from auditor.report.html import WHOLE
from auditor.runs.diff import read_results
from tests.unit.report.browser import MISPLACED, PROGRAM, Browser, started

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium to look at the page with")

PUBLISHED = Path(__file__).resolve().parents[3] / "reports" / "full" / "results.json.xz"
FIND = """{
const box = document.getElementById("find");
box.value = "failure_rate";
box.dispatchEvent(new Event("input", { bubbles: true }));
}"""
#: Waits until a script's condition holds.
UNTIL = "new Promise((done) => {{ const look = () => {} ? done(true) : setTimeout(look, 10); look(); }})"


def _kind(claim: dict[str, Any]) -> tuple[Any, ...]:
    found = claim["accuracy"]
    drawn = tuple(bool(claim[name]) for name in ("tradeoff", "wealth", "cells", "counterexample"))
    return (claim["level"], claim["notion"], claim["verdict"], found.get("kind"), bool(found.get("figure")), drawn)


@pytest.fixture(name="page", scope="module")
def _page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with claims of every kind of the published run, one of them unexpected."""
    content = read_results(PUBLISHED)
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for claim in content["claims"]:
        kinds.setdefault(_kind(claim), []).append(claim)
    # One of each, and as many more as make the page pack its details.
    claims = [listed[0] for listed in kinds.values()]
    claims += [claim for listed in kinds.values() for claim in listed[1:2]][: WHOLE + 1 - len(claims)]
    refuted = next(claim for claim in claims if claim["counterexample"])
    refuted |= {"ok": False, "expected": "consistent"}
    weak = next(claim for claim in claims if claim["verdict"] == "consistent" and claim["resolves"] is not None)
    weak |= {"verdict": "inconclusive", "expected": "inconclusive"}
    assert len(claims) > WHOLE, "the details are packed"
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html({**content, "claims": claims}), encoding="utf-8")
    return path


@pytest.fixture(name="browser", scope="module")
def _browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1024, True), (390, False)])
def test_nothing_lies_over_anything_else_or_beyond_its_box(
    page: Path, browser: Browser, width: int, dark: bool
) -> None:
    browser.resize(width, dark=dark)
    browser.open(page, "#print-all")
    browser.run(UNTIL.format("document.documentElement.classList.contains('whole')"))
    assert browser.run("document.querySelectorAll('article.claim svg text').length") > 100
    assert browser.run(MISPLACED) == []
    assert browser.complaints == []


def test_what_overlaps_is_reported(browser: Browser, tmp_path: Path) -> None:
    wide = '<p><b style="display:block;width:5000px">wide</b></p>'
    texts = '<svg viewBox="0 0 100 50"><text x="5" y="20">first</text><text x="8" y="22">second</text></svg>'
    path = tmp_path / "bad.html"
    path.write_text(f"<!DOCTYPE html><body>{wide}{texts}", encoding="utf-8")
    browser.open(path)
    found = browser.run(MISPLACED)
    assert any("beyond the window" in one for one in found)
    assert any("over each other: first | second" in one for one in found)


def test_a_claim_is_found_and_opened(page: Path, browser: Browser) -> None:
    browser.resize(1440)
    browser.open(page)
    assert browser.run("document.querySelectorAll('article.claim').length") == 0
    browser.run(FIND)
    browser.run(UNTIL.format("shown.textContent.includes('theorems')"))
    claims, theorems = (
        browser.run(f"Array.from(document.querySelectorAll('#found-{kind} tbody tr'), (row) => row.innerText)")
        for kind in ("claims", "theorems")
    )
    assert claims
    assert theorems
    assert all("failure_rate" in text for text in [*claims, *theorems])
    browser.run(FIND.replace("failure_rate", "no such word"))
    browser.run(UNTIL.format("document.querySelector('#found').innerText.includes('Nothing fits.')"))
    browser.run(FIND)
    browser.run(UNTIL.format("document.querySelector('#found-theorems tbody')"))
    browser.run("document.querySelector('#found-claims a').click()")
    browser.run(UNTIL.format("document.querySelector('#found-claims .detail article')"))
    assert "failure rate" in browser.run("document.querySelector('#found-claims .detail').innerText")
    anchor = browser.run("document.querySelector('#unexpected a').getAttribute('href')")
    browser.open(page, anchor)
    browser.run(UNTIL.format("document.querySelector('#claims .detail article')"))
    assert browser.run("document.querySelector('#claims .detail').previousElementSibling.id") == anchor[1:]
    assert "Counterexample" in browser.run("document.querySelector('#claims .detail').innerText")
    top = "document.querySelector('#claims .detail').getBoundingClientRect().top"
    assert browser.run(UNTIL.format(f"{top} > 0 && {top} < innerHeight")), "it is in sight"
    assert browser.complaints == []


def test_the_details_are_not_printed_unless_they_are_open(page: Path, browser: Browser) -> None:
    browser.resize(1024)
    browser.open(page)
    assert browser.print_pages() <= 20
