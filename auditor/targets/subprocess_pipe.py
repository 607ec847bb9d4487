"""One process that speaks lines of JSON: its pipes, its time, its end and what it said last."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

from auditor.errors import TargetError
from auditor.targets.protocol import LINE, Hello, is_hello, quote_bytes, read_hello
from auditor.targets.supervisor import kill_marked

#: Beginning of the last line of `auditor.targets.helper` where it cannot serve a function, and of the error then.
_HELPER, CANNOT_SERVE = b"helper.py: ", "the function cannot be served:"
#: Bytes of standard error that are kept, of which an error shows the end: about a screen.
LAST_WORDS = 2000
#: Seconds that a process has to end by itself: when its input is closed, or to say how it ended when its output is.
#: Arbitrary, enough for an interpreter to shut down.
GRACE = 0.5
#: Seconds after which a supervisor that has not killed everything is killed itself; it takes a hundredth of one.
_PATIENCE = 5.0
#: Seconds after which it is looked whether the supervisor still runs, if there is nothing to read; arbitrary.
_LOOK = 0.2
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
#: Bytes that are read and written at a time: what a pipe holds.
_PIPE = 2**16
#: Seconds between two looks at whether a process has ended; arbitrary, short.
_NAP = 0.005


class Running:
    """One process under its supervisor, and the pipes to it.

    Parameters
    ----------
    command : tuple of str
        What is run.
    cwd, env
        Where, and in which environment.
    """

    def __init__(self, command: tuple[str, ...], cwd: str | Path | None, env: Mapping[str, str] | None) -> None:
        self.hello: Hello | None = None
        self.answered = False
        self._first = True
        self._mark = secrets.token_hex(16)
        self._buffer, self._searched = bytearray(), 0
        self._errors, self._err_open = bytearray(), True
        held, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(held), self._mark, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env=env,
                pass_fds=(held,),
                start_new_session=True,  # an interruption from the terminal is for the auditor alone, who ends it
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(held)
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._err = (pipe.fileno() for pipe in pipes if pipe is not None)
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)

    def exchange(self, line: bytes, seconds: float) -> bytes:
        """Send a line and return the answer, within a time limit.

        Parameters
        ----------
        line : bytes
            The request, with its end of line.
        seconds : float
            Time limit.

        Raises
        ------
        TargetError
            If none comes, or something that nobody asked for.
        """
        deadline = time.monotonic() + seconds
        if self.answered:
            self._refuse_unasked()
        pending = memoryview(line)
        while True:
            said = self._next_line()
            if said is None:
                pending = self._wait(pending, deadline, seconds)
            elif self._first and is_hello(said):
                self.hello = read_hello(said)
                self._first = False
            elif pending:
                raise self._error("the target wrote before it had read its request", said)
            else:
                self._first, self.answered = False, True
                return said

    def _refuse_unasked(self) -> None:
        """Raise if the target has ended, or has said more than it was asked, since it answered."""
        if not self._read():
            raise self._ended_error("after an answer, before it was asked again")
        if self._buffer:
            raise self._error("the target said more than it was asked", bytes(self._buffer))

    def _next_line(self) -> bytes | None:
        """Take a whole line that the target has written, without its end; None if there is none yet."""
        end = self._buffer.find(b"\n", self._searched)
        if max(end, len(self._buffer) if end < 0 else 0) > LINE:
            raise self._error(f"the target wrote a line of more than {LINE} bytes", bytes(self._buffer))
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def _wait(self, pending: memoryview, deadline: float, seconds: float) -> memoryview:
        """Write, and read, what can be; returns what is still to be written."""
        left = deadline - time.monotonic()
        if left <= 0:
            doing = "reading its request" if pending else "answering"
            what = f"the target was not done {doing} within {seconds:g} s"
            what += ", and has not ended its line" if self._buffer else ""
            raise self._error(what, bytes(self._buffer))
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if self._err_open:
            poll.register(self._err, select.POLLIN)
        if pending:
            poll.register(self._in, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(math.ceil(1000 * min(left, _LOOK)))}
        if not ready and self._process.poll() is not None:  # its supervisor was killed, others hold its output
            raise self._ended_error("before it had answered")
        if self._err in ready:
            self._read_errors()
        if self._out in ready and not self._read():
            raise self._ended_error("before it had answered")
        if self._in in ready:
            try:
                pending = pending[os.write(self._in, pending[:_PIPE]) :]
            except BlockingIOError:
                pass
            except BrokenPipeError:
                raise self._ended_error("before it had read its request") from None
        return pending

    def _read(self) -> bool:
        """Read what the target has written; False if it can write no more."""
        try:
            part = os.read(self._out, _PIPE)
        except BlockingIOError:
            return True
        self._buffer += part
        return bool(part)

    def _read_errors(self) -> None:
        """Read what the target has written to standard error, and keep the end of it."""
        try:
            part = os.read(self._err, _PIPE)
        except BlockingIOError:
            return
        self._err_open = bool(part)
        self._errors += part
        del self._errors[:-LAST_WORDS]

    def _ended_error(self, when: str) -> TargetError:
        """Error of a process that has closed its output; usually because it has ended."""
        until = time.monotonic() + GRACE
        while self._process.poll() is None and time.monotonic() < until:
            self._read_errors()
            time.sleep(_NAP)
        code = self._process.returncode
        if code is None:
            return self._error(f"the target closed its input or output {when}", bytes(self._buffer))
        how = f"with exit code {code}" if code >= 0 else f"by signal {_signal_name(-code)}"
        return self._error(f"the target ended {how} {when}", bytes(self._buffer))

    def _error(self, what: str, said: bytes) -> TargetError:
        """Error that quotes what was said, and the end of standard error."""
        for _ in range(2):  # a pipe's content, and no flood
            self._read_errors()
        _, helper, last = bytes(self._errors).rstrip().rpartition(b"\n")[2].partition(_HELPER)
        if helper and not said:  # it says all there is, after what an import prints, which may not end its line
            return TargetError(f"{CANNOT_SERVE} {quote_bytes(last, LAST_WORDS)[1:-1]}", public=what)
        message = what
        if said:
            message += f"; it wrote {quote_bytes(said)}"
        if self._errors:
            message += f"; its standard error ends {quote_bytes(bytes(self._errors), LAST_WORDS, end=True)}"
        return TargetError(message, public=what)

    def end(self, grace: float) -> None:
        """End the process and all that it started.

        It may end by itself within a grace; this may be called again.
        """
        if self._lifeline < 0:
            return
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        lifeline, self._lifeline = self._lifeline, -1
        if streams[0] is not None:
            streams[0].close()
        if grace:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        os.close(lifeline)
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)  # the target may have stopped it
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in streams:
            if stream is not None:
                stream.close()
        # So ended the command, or the command killed its supervisor.
        if self._process.returncode < 0 and not kill_marked(self._mark, _PATIENCE):
            warnings.warn("the target killed its supervisor, and left processes that run", RuntimeWarning, stacklevel=2)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
