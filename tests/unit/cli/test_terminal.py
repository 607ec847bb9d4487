"""What a terminal gets and sends: no control characters of a target, no endless messages; signals that end commands."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from auditor import Pair, PureDP, TargetError, assert_private, audit, explain
from auditor.cli.main import main
from auditor.cli.process_end import hear_signals
from auditor.cli.terminal import print_text
from auditor.results import write_whole
from auditor.targets.raises import describe_error

PAIR = Pair(np.array([0]), np.array([1]), "one bit")
CONTROLS = "\x1b[31mred\x07\x9b0m\u202etfel\x00"


def fail(data: Any, n: int, rng: np.random.Generator) -> Any:
    raise ValueError(CONTROLS)


def leak(data: Any, n: int, rng: np.random.Generator) -> Any:
    return np.full(n, data[0])


leak.__qualname__ = f"leak{CONTROLS}"


def is_harmless(text: str) -> bool:
    return all(part.isprintable() for part in text.split("\n"))


def test_what_is_printed_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(f"one {CONTROLS}\ntwo", err=True)
    assert capsys.readouterr().err == "one \\x1b[31mred\\x07\\x9b0m\\u202etfel\\x00\ntwo\n"


def test_an_explanation_has_none() -> None:
    said = explain(audit(leak, PureDP(1.0), PAIR, draws=400))
    assert "leak\\x1b[31mred" in said
    assert is_harmless(said)


def test_what_an_assertion_says_has_none() -> None:
    with pytest.raises(TargetError, match="ValueError") as found:
        assert_private(fail, PureDP(1.0), PAIR, draws=400)
    assert is_harmless(str(found.value))


def test_a_long_exception_is_cut() -> None:
    assert describe_error(ValueError("short")) == "short"
    said = describe_error(ValueError("a" * 1_000_000))
    assert said.endswith("a... (1,000,000 characters)")
    assert len(said) < 2_100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_command_is_an_interrupt_once(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        again = threading.Timer(0.02, os.kill, (os.getpid(), number))  # as `timeout` does
        again.start()
        with pytest.raises(KeyboardInterrupt), hear_signals():
            os.kill(os.getpid(), number)
        again.join()
        assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as nohup has it
        with hear_signals():
            os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)


def test_a_full_disk_leaves_the_earlier_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "first\n")

    def fill(partial: Path, content: bytes) -> int:
        partial.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "second\n")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "first\n"


def test_what_the_system_refuses_is_one_line_and_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(click, "echo", refuse)
    monkeypatch.setattr("auditor.cli.main.print_text", lambda text, **_: print(text))
    monkeypatch.delenv("DPAUDIT_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["helper"])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("dpaudit: the system refused: [Errno 28] No space left on device")


def test_what_cannot_be_told_is_no_finding(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **_options: object) -> None:
        raise ValueError("I/O operation on closed file.")

    monkeypatch.setattr("auditor.cli.main.print_text", refuse)
    monkeypatch.setattr(click, "echo", refuse)
    monkeypatch.delenv("DPAUDIT_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["helper"])
    assert ended.value.code == 2
    assert capfd.readouterr().err.startswith("dpaudit failed, and cannot say why: ValueError")
