"""The command line as tests use it: in this process, in one of its own, and interrupted."""

from __future__ import annotations

import ast
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ("results.json", "run.json", "report.html", "report.md", "junit.xml", "results.sarif")


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


Command = Callable[..., Said]


def start(*arguments: object) -> subprocess.Popen[str]:
    """The command line as a process, in a group of its own, so that it alone gets our signals."""
    environment = {key: value for key, value in os.environ.items() if key != "DPAUDIT_TRACEBACK"}
    return subprocess.Popen(
        [sys.executable, "-m", "auditor", *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts what runs in the background with SIGINT ignored, which children inherit.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def process(*arguments: object) -> Said:
    with start(*arguments) as running:
        out, err = running.communicate(timeout=120)
    return Said(running.returncode, out, err)


def run_line(line: str, **names: object) -> Any:
    """What the last expression of a line of Python gives, in a namespace with nothing but the names."""
    *setup, last = ast.parse(line).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(setup, []), "<line>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<line>", "eval"), names)


def complaints(said: Said) -> list[str]:
    """Lines of standard error that are neither progress nor click's usage."""
    return [
        line
        for line in said.err.splitlines()
        if line.strip() and not line.startswith(("Usage:", "Try '", "auditing ", "[", "reports are in "))
    ]


def refused(said: Said, *shown: object) -> None:
    """Exit code 2, and one line that shows the offending values; nothing was audited."""
    assert said.code == 2, said
    assert "Traceback" not in said.err, said
    assert said.out == "", said
    lines = complaints(said)
    assert len(lines) == 1, said
    assert "dpaudit failed" not in lines[0], said
    for value in shown:
        assert str(value) in lines[0], said
    assert "auditing" not in said.err, said


HEADER = '''
import math
import sys
import time
import numpy as np
from auditor import Pair, PureDP
from auditor.claims import Source, entry, exact, mutant
from auditor.claims import privacy
from auditor.privacy.exact import FiniteLaw


class Response:
    """Randomised response on the first bit."""

    def __init__(self, epsilon):
        self.keep = 1 / (1 + math.exp(-epsilon))

    def __call__(self, data, n, rng):
        return np.where(rng.random(n) < self.keep, data[0], 1 - data[0])

    def law(self, data):
        return FiniteLaw((int(data[0]), 1 - int(data[0])), np.array([self.keep, 1 - self.keep]))


def lawless(data, n, rng):
    return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])


def crashing(data, n, rng):
    raise RuntimeError("no entropy left")


PAIR = Pair(np.array([0]), np.array([1]), "one bit")


@entry("900/response", title="Randomised response", source=Source("900", "section 1"))
def response():
'''
FINE = """
    yield exact(Response(1.0), PureDP(1.0), PAIR)
    yield privacy(Response(1.0), PureDP(1.0), PAIR)
    yield mutant("strong", Response(3.0), PureDP(1.0), PAIR)
"""
HELD = "    yield privacy(Response(1.0), PureDP(1.0), PAIR)\n"


def declare(folder: Path, body: str = FINE, name: str = "claims.py") -> Path:
    file = folder / name
    file.write_text(HEADER + body, encoding="utf-8")
    return file


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def until(running: subprocess.Popen[str], beginning: str) -> str:
    """Read standard error up to a line, which is waited for a minute at most."""
    assert running.stderr is not None
    deadline = threading.Timer(60, running.kill)
    deadline.start()
    read_so_far = ""
    try:
        for line in running.stderr:
            read_so_far += line
            if line.startswith(beginning):
                return read_so_far
    finally:
        deadline.cancel()
    raise AssertionError(f"{beginning!r} never came:\n{read_so_far}")


def interrupt(running: subprocess.Popen[str], said: str, alone: bool = False) -> Said:
    """Press Ctrl-C: a terminal sends the signal to the whole group; or interrupt the process alone."""
    try:
        if alone:
            running.send_signal(signal.SIGINT)
        else:
            os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=30)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    return Said(running.returncode, out, said + err)


#: Enough for a resolution below 2, and a tenth of a second a claim.
QUICK = ("--jobs", 1, "--draws", 26_000, "--alpha", 1e-6)
