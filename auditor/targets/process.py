"""A target in a process of its own, in any language: lines of JSON on its standard input and output.

The protocol is in `auditor.targets.protocol`. What goes wrong is a `TargetError` that quotes what the target said,
within the time limit and with bounded memory, and no process of the target's outlives it; see
`auditor.targets.supervisor`. This is no sandbox: a command may do what the user may who runs it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shlex
import shutil
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from auditor.errors import SpecificationError, TargetError, TargetRaised, check_positive, read_path
from auditor.targets.outputs import Batch
from auditor.targets.protocol import Hello, draw_outputs
from auditor.targets.subprocess_pipe import GRACE, Running

#: Seconds in which an interpreter and large libraries start; arbitrary.
START = 10.0
#: Starts in a row without one answer after which a target is not started again. Every claim of a run that a target
#: dies or hangs in starts it again, each of which may take its limit; three of them tell a mishap from a rule.
STARTS = 3


class ProcessTarget:
    """A command that speaks lines of JSON, as a target.

    It is a mechanism ``(data, n, rng) -> outputs``.

    The process is started by the first call and serves all later ones. A context manager; `close` ends the process,
    and a later call would start another. Not for several threads at once.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; no shell reads them.
    limit : float
        Seconds that a request of at most `auditor.targets.protocol.REQUEST` draws may take, writing and reading.
    cwd : path, optional
        Folder that the command runs in; default the present one.
    env : mapping, optional
        Environment of the command; default the present one.
    start_limit : float
        Seconds that the first request to a process may take if that is more than ``limit``, because it has to start.

    Attributes
    ----------
    hello : Hello or None
        What the target said of itself; None before the first answer, and if it said nothing.
    seeded : bool
        It said that the seeds it is sent decide its draws.
    starts : int
        Processes that were started so far.

    Raises
    ------
    SpecificationError
        If there is no such command or folder, a limit is not positive, or the system is not POSIX.

    Notes
    -----
    A process that dies, hangs past its limit or writes what cannot be read fails the call that it was asked in, always:
    the request is not made again. Valid because: whether it dies may depend on the draws and on the data, so draws made
    again are those of a mechanism under the condition that it does not die, which is another distribution. The next
    call starts a new process, which is for the next claim of a run: this one is an "error".
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        limit: float = 60.0,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        start_limit: float = START,
    ) -> None:
        if not hasattr(select, "poll"):
            raise SpecificationError(f"targets that are processes need a POSIX system, this is {sys.platform!r}")
        self.command = _checked_command(command, cwd, env)
        self.limit, self.start_limit = check_positive("limit", limit), check_positive("start_limit", start_limit)
        self.cwd, self.env = cwd, None if env is None else dict(env)
        self.hello: Hello | None = None
        self._begin()

    def _begin(self) -> None:
        self.starts = 0
        self._running: Running | None = None
        self._finalizer: weakref.finalize[..., ProcessTarget] | None = None
        self._numbers = itertools.count(1)
        self._fruitless = 0  # starts in a row without an answer

    def __repr__(self) -> str:
        return f"ProcessTarget({shlex.join(self.command)})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def seeded(self) -> bool:
        """Whether the target states that seeds decide its draws."""
        return self.hello is not None and self.hello.seeded

    @property
    def running(self) -> bool:
        """Whether there is a process, which may have ended by itself meanwhile."""
        return self._running is not None

    def __call__(self, data: Any, n: int, rng: np.random.Generator | None) -> Batch:
        """Draw ``n`` outputs on ``data``.

        Parameters
        ----------
        data : object
            The dataset, see `auditor.targets.wire_format.data_text`.
        n : int
            Number of draws.
        rng : numpy.random.Generator or None
            Source of the seeds that are sent; None sends none.

        Raises
        ------
        TargetRaised
            If the target says that its code raised.
        TargetError
            If it dies, is past its limit, or answers what cannot be read.
        """
        with self.connected() as (exchange, numbers):
            return draw_outputs(exchange, numbers, data, n, rng)

    @contextlib.contextmanager
    def connected(self) -> Iterator[tuple[Any, Iterator[int]]]:
        """Connect: the function to exchange lines, and message numbers.

        If the block raises, other than because the target's code or the dataset is at fault, the process is ended:
        nobody knows what it would say next.
        """
        if self._running is None:
            self._start()
        try:
            yield self._exchange, self._numbers
        except (TargetRaised, SpecificationError):
            raise
        except BaseException:  # also an interruption by the user, or by a limit of the caller's
            self._end(0.0)
            raise

    def _exchange(self, line: bytes) -> bytes:
        running = self._running
        if running is None:
            raise TargetError("the target's process has ended")
        answer = running.exchange(line, self.limit if running.answered else max(self.start_limit, self.limit))
        self._fruitless = 0
        self.hello = running.hello
        return answer

    def _start(self) -> None:
        if self._fruitless == STARTS:
            raise TargetError(f"the target was started {STARTS} times and never answered; it is not started again")
        self._fruitless += 1
        self.starts += 1
        self._running = Running(self.command, self.cwd, self.env)
        self._finalizer = weakref.finalize(self, self._running.end, GRACE)  # if nobody closes this target

    def close(self) -> None:
        """End the process.

        Its input is closed; after `GRACE` it is killed, with all that it started.
        """
        self._end(GRACE)

    def _end(self, grace: float) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.end(grace)
        if self._finalizer is not None:
            self._finalizer.detach()

    def __enter__(self) -> ProcessTarget:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _checked_command(command: Sequence[str], cwd: str | Path | None, env: Mapping[str, str] | None) -> tuple[str, ...]:
    words = not isinstance(command, str) and all(isinstance(word, str) for word in command)
    if not words or not command or not command[0]:
        raise SpecificationError(f"a command must be a sequence of texts, the program first, got {command!r}")
    if any("\0" in word for word in command):
        raise SpecificationError(f"a command cannot hold the character NUL, got {list(command)!r}")
    if cwd is not None and not read_path("cwd", cwd).is_dir():
        raise SpecificationError(f"no such folder: {str(cwd)!r}")
    program = command[0]
    if os.sep in program:
        path = Path(cwd or ".", program)
        found = path.is_file() and os.access(path, os.X_OK)
    else:
        found = shutil.which(program, path=(os.environ if env is None else env).get("PATH")) is not None
    if not found:
        raise SpecificationError(f"no such command: {program!r}, in {shlex.join(command)!r}")
    return tuple(command)
