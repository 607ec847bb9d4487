"""Fixtures of the tests of the command line, and the number of workers of `-n auto`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.runs import index
from tests.commandline import QUICK, Command, Said, declare

#: Commands in processes of their own leave the user's cache alone; tests of the index turn it on.
os.environ.setdefault(index.OFF, "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for processes of their own, a quarter of the time on two cores."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture
def dpaudit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process."""
    monkeypatch.delenv("DPAUDIT_TRACEBACK", raising=False)

    def call(*arguments: object) -> Said:
        capsys.readouterr()
        try:
            main([str(argument) for argument in arguments])
            code = 0
        except SystemExit as stop:
            code = 0 if stop.code is None else int(stop.code)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return call


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    """A file of claims."""
    return declare(tmp_path)


@pytest.fixture
def results(dpaudit: Command, claims: Path, tmp_path: Path) -> Path:
    """The results.json of a finished run of them."""
    said = dpaudit("run", claims, *QUICK, "--out", tmp_path / "out")
    assert said.code == 0, said
    return tmp_path / "out" / "results.json"
