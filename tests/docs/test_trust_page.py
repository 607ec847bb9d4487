"""The page about what to believe is a session like those of `tests.docs.test_pages`: its blocks are run, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_pages import assert_shown, blocks, run_console, run_python


def test_the_page_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said, seen = "", []
    for block in blocks("trust.md"):
        seen.append(block.language)
        if block.language == "python":
            said = run_python(block, tmp_path)
        elif block.language == "console":
            # Each answer has a probability of at most 1e-6 of being another one for another seed.
            run_console(block, tmp_path)
        else:
            assert_shown(block.text.splitlines(), said, str.strip)
    assert seen == ["console", "python", "text", "python", "text"]
    assert sorted(path.name for path in (tmp_path / "calibration").iterdir()) == [
        "calibration.html",
        "calibration.json",
        "calibration.md",
    ]
