"""Fixtures of the tests of the command line."""

from __future__ import annotations

import pytest

from auditor.cli import main
from tests.unit.commandline import Command, Said


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
