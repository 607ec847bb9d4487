"""The mechanism and every command of the page about the ledger are run, in the order in which they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from auditor.cli.main import cli, main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_commands_of_the_page_run_and_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    (tmp_path / "coin.py").write_text(code, encoding="utf-8")
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 4
    said = []
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "dpaudit"
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        # The draws are keyed by the ledger's identity: any night may be the one that finds it.
        assert stop.value.code in ((0, 1, 3) if arguments[0] == "attack" else (0,))
        said.append(capsys.readouterr().out)
    assert "number 1 of its ledger" in said[0]
    assert "number 2 of its ledger" in said[1]
    assert "attack/L1/pure_dp/coin.py:coin" in said[2]
    assert said[3] == "1 series: all are as recorded\n"


def test_every_option_of_the_page_exists() -> None:
    options = {
        text for name in ("run", "attack", "ledger") for option in cli.commands[name].params for text in option.opts
    }
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert named
    assert named <= options
