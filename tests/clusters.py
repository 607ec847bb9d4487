"""Dask clusters of separate processes, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.commandline import ROOT

#: Seconds for a process to start; it takes two.
STARTING = 60.0


class Cluster:
    """A scheduler and its workers, one thread each, each with its nanny in a session of its own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._file, self._stack = folder / "scheduler.json", stack
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        wait(lambda: self._read_address() is not None)
        self.address: str = str(self._read_address())

    def _read_address(self) -> str | None:
        """Address in the scheduler's file; None until the scheduler has written all of it."""
        try:
            address: str = json.loads(self._file.read_text(encoding="utf-8"))["address"]
        except (FileNotFoundError, ValueError):
            return None
        return address

    def add(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until the scheduler knows it."""
        before = len(self.workers())
        process = self._start("worker", "--nthreads", "1", *options, **environment)
        wait(lambda: len(self.workers()) > before)
        return process

    def workers(self) -> dict[str, int]:
        """Process id of each worker, by its address."""
        found: dict[str, int] = self.ask("run", os.getpid)
        return found

    def ask(self, method: str, *arguments: Any) -> Any:
        """Ask the workers ("run") or the scheduler ("run_on_scheduler")."""
        import distributed

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions that a test makes up
            with distributed.Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
                return getattr(client, method)(*arguments)

    def _start(self, what: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", f"distributed.cli.dask_{what}"]
        process = subprocess.Popen(
            [*program, "--scheduler-file", str(self._file), "--no-dashboard", *options],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._stack.callback(_ended, process)
        return process


def _ended(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait(for_: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STARTING
    while not for_():
        assert time.monotonic() < deadline, "a process of the cluster did not start"
        time.sleep(0.1)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(folder, stack)
