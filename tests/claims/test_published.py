"""The published run: it is whole, made with the pinned libraries, and a fixed part of it comes out the same again."""

from __future__ import annotations

import json
import platform
import re
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from auditor.claims.claim import ACCURACY_BUDGETS, BUDGETS
from auditor.runs.diff import read_results
from auditor.runs.reproduce import Recorded, lines_of, reproduce_results, take_sample
from benchmarks.publish import summary
from tests.docs.test_pages import dpaudit

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "reports" / "full"
#: How many claims of each level are run again: of those that draw nothing, and of those that draw as many outputs as
#: the budget has, which only fast mechanisms do. They take about ten seconds together.
DRAWLESS, DRAWN = 5, 1


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    file = FOLDER / "results.json.xz"
    assert file.is_file(), "there is no published run: `make publish` makes it"
    return read_results(file)


def part(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims that are run again: by their hashes, so that nobody chooses them."""
    budgets = {budget[content["manifest"]["level"]][0] for budget in (BUDGETS, ACCURACY_BUDGETS)}
    chosen: list[Recorded] = []
    for level in sorted({claim["level"] for claim in content["claims"]}):
        of = [Recorded(claim["id"], claim) for claim in content["claims"] if claim["level"] == level]
        chosen += take_sample([claim for claim in of if claim.record["draws"] == 0], DRAWLESS)
        chosen += take_sample([claim for claim in of if claim.record["draws"] in budgets], DRAWN)
    return [dict(claim.record) for claim in chosen]


def test_the_libraries_are_those_of_the_published_run(published: dict[str, Any]) -> None:
    pinned = dict(
        re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    )
    about = published["manifest"]
    for name, version in about["libraries"].items():
        made = f"the published run was made with {name} {version}: after a change of the pins, make publish"
        assert pinned[name] == version, made
        assert metadata.version(name) == version, made
    assert about["python"].split(".")[:2] == platform.python_version().split(".")[:2]


def test_the_published_run_is_whole_and_its_summary_is_its_own(published: dict[str, Any]) -> None:
    about = published["manifest"]
    assert about["paths"] == ["experiments"]
    assert about["selection"] is None
    assert about["level"] == "standard"
    assert len(published["claims"]) == about["claims_selected"]
    assert not [claim["id"] for claim in published["claims"] if claim["truncated_by"]]
    assert (FOLDER / "summary.md").read_text(encoding="utf-8") == summary(published)


def test_a_part_of_it_comes_out_the_same_to_the_byte(
    published: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No chance is in it: the draws are those of the published run."""
    monkeypatch.chdir(ROOT)
    chosen = part(published)
    assert {claim["level"] for claim in chosen} == {"L0", "L1", "L2", "L3", "L4"}
    file = tmp_path / "results.json"
    file.write_text(json.dumps({**published, "claims": chosen}), encoding="utf-8")
    (tmp_path / "run.json").write_bytes((FOLDER / "run.json").read_bytes())
    found = reproduce_results(file, jobs=1)
    assert (found.same, found.code) == (len(chosen), 0), "\n".join([*found.notices, *lines_of(found)])


@pytest.mark.usefixtures("published")
def test_the_commands_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of docs/reproducing.md that read the published run, in the folder of the checkout."""
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\$ dpaudit (.*reports/full/.*)$", page, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["reproduce", "report"]
    for line in lines:
        code, out, err = dpaudit(shlex.split(line))
        assert (code, bool(out)) == (0, True), err
