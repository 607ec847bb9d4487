"""`python -m benchmarks.publish`: what is committed of a run."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.publish import main, summary
from tests.commandline import FINE, QUICK, Command, declare, read


@pytest.fixture
def results(dpaudit: Command, tmp_path: Path) -> Path:
    """A run whose exit code is 0 but for a probability of 1e-6."""
    assert dpaudit("run", declare(tmp_path), *QUICK, "--out", tmp_path / "out").code == 0
    return tmp_path / "out" / "results.json"


def test_what_is_published_is_reproduced_and_the_same_each_time(
    dpaudit: Command, results: Path, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        assert main([str(results), "--out", str(folder)]) == 0
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1]
    assert set(files[0]) == {"results.json.xz", "summary.md", "run.json"}
    assert lzma.decompress(files[0]["results.json.xz"]) == results.read_bytes()
    # No times, but the code: `dpaudit reproduce` reads it.
    assert set(json.loads(files[0]["run.json"])) == {"schema", "machine", "sources"}
    said = dpaudit("reproduce", folders[0] / "results.json.xz", "--jobs", 1)
    assert (said.code, said.out) == (0, "3 of 3 claims reproduced\n"), said
    assert "code: " in said.err
    # What was published can be published again, as it is.
    assert main([str(folders[0] / "results.json.xz"), "--out", str(tmp_path / "c")]) == 0
    assert (tmp_path / "c" / "results.json.xz").read_bytes() == files[0]["results.json.xz"]


def test_the_summary_counts_claims_by_level_and_document_and_names_what_is_unexpected(results: Path) -> None:
    content = read(results)
    page = summary(content)
    assert "| L0: does the stated distribution itself break the guarantee? | 1 | 0 | 1 | 0 |" in page
    assert "| L1: do the outputs violate the stated guarantee? | 2 | 1 | 1 | 0 |" in page
    assert "| 900 | 3 | 1 | 2 | 0 |" in page
    assert page.count("| all | 3 | 1 | 2 | 0 |") == 2
    assert "## Unexpected" not in page
    content["claims"][1] |= {"verdict": "error", "ok": False}
    page = summary(content)
    assert "| L1: do the outputs violate the stated guarantee? | 2 | 1 | 0 | 1 | 1 |" in page
    assert page.count(content["claims"][1]["id"].replace("_", "\\_")) == 1


@pytest.mark.parametrize(
    ("edit", "shown"),
    [
        (lambda content: content["claims"].pop(), "has 2 of 3 claims"),
        (lambda content: content["manifest"].update(interrupted=True), "published whole"),
        (lambda content: content["manifest"].pop("paths"), "of an attack"),
        (lambda content: content["manifest"].update(ledger="nights.db"), "nights.db"),
        (lambda content: content.update(schema="x/1"), "x/1"),
    ],
)
def test_what_cannot_be_run_again_is_not_published(
    results: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    edit: Callable[[dict[str, Any]], Any],
    shown: str,
) -> None:
    content = read(results)
    edit(content)
    results.write_text(json.dumps(content), encoding="utf-8")
    assert main([str(results), "--out", str(tmp_path / "a")]) == 2
    assert shown in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_a_run_without_its_code_is_not_published(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results.parent / "run.json").unlink()
    assert main([str(results), "--out", str(tmp_path / "a")]) == 2
    assert "which code made it" in capsys.readouterr().err


def test_a_run_with_something_unexpected_says_so(dpaudit: Command, tmp_path: Path) -> None:
    body = FINE + "    yield privacy(Response(4.0), PureDP(1.0), PAIR, case='worse')\n"
    assert dpaudit("run", declare(tmp_path, body), *QUICK, "--out", tmp_path / "out").code == 1
    assert main([str(tmp_path / "out" / "results.json"), "--out", str(tmp_path / "a")]) == 1
    page = (tmp_path / "a" / "summary.md").read_text(encoding="utf-8")
    assert "## Unexpected" in page
    assert "900/response/L1/pure\\_dp/worse: violation where consistent was expected" in page
