"""The claims and the commands of the page about clusters are run, the scheduler's and the workers' in the background.

Its port is replaced by a free one: other clusters may run on this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.docs.test_pages import assert_shown, blocks, commands, dpaudit

pytest.importorskip("distributed")

PAGE = "cluster.md"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def ended(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(name="background")
def _background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        yield stack


def test_the_commands_of_the_page_run_on_a_cluster(background: ExitStack, tmp_path: Path) -> None:
    page = [block for block in blocks(PAGE) if block.run]
    (claims,) = [block.text for block in page if block.language == "python"]
    name = re.match(r"# ([\w/]+\.py)\n", claims)
    assert name
    (tmp_path / name[1]).write_text(claims, encoding="utf-8")
    (console,) = [block for block in page if block.language == "console"]
    port, started = str(free_port()), 0
    for command, shown in commands(console):
        program, *words = shlex.split(command.replace("8786", port))
        if program == "dask":
            assert words.pop() == "&"
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            background.callback(ended, process)
            started += 1
            if "scheduler" in words:
                wait_for(int(port))
            continue
        assert program == "dpaudit"
        code, out, err = dpaudit(words)
        assert code == 0, out + err
        assert_shown(shown, out + err)
    assert started == 2
    assert (tmp_path / "one" / "results.json").read_bytes() == (tmp_path / "out" / "results.json").read_bytes()


def wait_for(port: int) -> None:
    """A minute at most; it takes two seconds."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError("the scheduler did not start")


def test_what_the_page_says_of_times_and_trials_is_so() -> None:
    from auditor.runs import claim_process, dask_cluster

    text = " ".join((Path(__file__).resolve().parents[2] / "docs" / PAGE).read_text(encoding="utf-8").split())
    assert f"exit code 2 within {dask_cluster.ANSWER:g} s" in text
    assert f"No workers are left for {dask_cluster.PATIENCE:g} s" in text
    assert f"after {dask_cluster.PATIENCE:g} s, exit code 2" in text
    assert dask_cluster.RETRIES + 1 == 3
    assert "the claim is tried three times" in text
    assert claim_process.IDLE == 60
    assert "the processes end a minute after" in text
