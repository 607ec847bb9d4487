"""Runs a command and leaves none of its processes behind: ``python supervisor.py LIFELINE MARK COMMAND...``.

The command's standard input and output are this process's own; nothing is copied. LIFELINE is a file descriptor, the
end of a pipe that nobody writes to. When its other end closes, because whoever holds it said so, crashed or was killed,
or when the command ends, every process that came from the command is killed, and this process ends as the command did:
with its exit code, or by its signal.

On Linux no descendant escapes by leaving its session or its parent: this process adopts those whose parents have
ended (PR_SET_CHILD_SUBREAPER, prctl(2)). Between it and the command stands a process that does the same, so that a
command that kills its parent kills the one between, and is seen to. Elsewhere the command's process group is killed,
which a process that makes a group of its own escapes.

MARK is put into the environment, so that `kill_marked` finds what is left if a command seeks out this process and kills
it.

Standard library only, so that ``python -I -S`` starts it fast.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

#: Name of the variable of the environment that marks a target's processes.
MARK = "DPAUDIT_TARGET"
#: Exit code if the command cannot be started, as shells have it.
NOT_STARTED = 127
#: Signals that a terminal sends, and that of a closed pipe: they do not end this process.
_FROM_TERMINALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
#: prctl(2).
_PR_SET_CHILD_SUBREAPER = 36
#: Seconds after which processes that are being killed are looked for again; arbitrary, short.
_PAUSE = 0.002
#: Looks at the own children between two looks at all processes; arbitrary, about a millisecond.
_QUICK_LOOKS = 50
#: Whether the system tells which process comes from which.
_TELLS = sys.platform == "linux" and os.path.exists("/proc/self/stat")


def main(words: list[str]) -> int:
    """Run the command until it ends or the lifeline does."""
    lifeline, mark, command = int(words[0]), words[1], words[2:]
    for ignored in _FROM_TERMINALS:
        signal.signal(ignored, signal.SIG_IGN)
    child = _start_between(command, mark, lifeline) if _TELLS else _start(command, mark, lifeline)
    status = _wait(child, lifeline, _wake_on_children())
    kill_descendants(child)
    return 0 if status is None else _as_status(status)  # with no lifeline nobody wants to know


def _adopt_orphans() -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _start_between(command: list[str], mark: str, lifeline: int) -> int:
    """Start a process that starts the command, adopts what comes from it, and ends when and as it does."""
    _adopt_orphans()
    between = os.fork()
    if between:
        _leave_streams()
        return between
    _adopt_orphans()
    child = _start(command, mark, lifeline)
    os.close(lifeline)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            os._exit(_as_status(status))


def _start(command: list[str], mark: str, lifeline: int) -> int:
    """Start the command in a session of its own; returns its process id."""
    child = os.fork()
    if child:
        _leave_streams()
        return child
    try:
        for ignored in _FROM_TERMINALS:
            signal.signal(ignored, signal.SIG_DFL)
        os.setsid()
        os.close(lifeline)
        os.execvpe(command[0], command, {**os.environ, MARK: mark})
    except OSError as error:
        os.write(2, f"{command[0]!r} cannot be started: {error.strerror}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(NOT_STARTED)


def _leave_streams() -> None:
    """Leave standard input and output to the command, whose end would not end them otherwise."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    os.close(nothing)


def _wake_on_children() -> int:
    """Descriptor that can be read when a child has ended."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
    return woken


def _wait(child: int, lifeline: int, woken: int) -> int | None:
    """Wait for the command, which gives its status, or for the end of the lifeline."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        status = _reap_children(child)
        if status is not None:
            return status
        ready = [descriptor for descriptor, _ in poll.poll()]
        if woken in ready:
            os.read(woken, 4096)
        if lifeline in ready:
            return None


def _reap_children(child: int) -> int | None:
    """Collect children that have ended; returns the command's status if it is one of them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def kill_descendants(child: int) -> None:
    """Kill all descendants of this process, until none is left.

    Parameters
    ----------
    child : int
        The command's process, whose group is killed where descendants cannot be told.
    """
    if not _TELLS:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(-child, signal.SIGKILL)
        return
    # Descendants whose parents have ended are this process's children: without children there are no descendants.
    while not _has_no_children():
        found = _descendants(os.getpid())
        if found and found <= _kill(found):
            return
        # One that forks and ends as fast as it can has another name whenever all processes have been looked through;
        # looking at the own children only is faster than a fork.
        for _ in range(_QUICK_LOOKS):
            _kill(_children())
            if _has_no_children():
                return
        time.sleep(_PAUSE)


def kill_marked(mark: str, seconds: float) -> bool:
    """Kill every process whose environment has the mark; on Linux only.

    For what is left of a command that killed those who watched it.

    Parameters
    ----------
    mark : str
        As this program was given.
    seconds : float
        Time after which it gives up: processes that fork and end all the time may be missed by every look.

    Returns
    -------
    bool
        Whether none was left at the last look.
    """
    until = time.monotonic() + seconds
    while _TELLS:
        found = _marked_processes(mark)
        if found <= _kill(found):
            return not found
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)
    return True


def _kill(pids: list[int] | set[int]) -> set[int]:
    """Kill processes and their groups, which no fork escapes; returns the processes of somebody else's."""
    refused = set()
    for pid in pids:
        try:
            group = os.getpgid(pid)
            if group > 1 and group != os.getpgrp():
                os.kill(-group, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended
            continue
        except PermissionError:
            refused.add(pid)
    return refused


def _has_no_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _children() -> list[int]:
    """Children of this process, if the system lists them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return list(map(int, file.read().split()))
    except OSError:
        return []


def _descendants(root: int) -> set[int]:
    """Processes that come from one; those that have ended and were not collected too."""
    children: dict[int, list[int]] = {}
    for pid in _processes():
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()  # the name before it may hold anything
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    front = [root]
    while front:
        front = [pid for parent in front for pid in children.get(parent, ()) if pid not in found]
        found.update(front)
    return found


def _marked_processes(mark: str) -> set[int]:
    """Processes whose environment has the mark; those that have ended have none."""
    sought = f"{MARK}={mark}".encode()
    found = set()
    for pid in _processes():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if sought in file.read().split(b"\0"):
                    found.add(pid)
        except OSError:  # it has ended, or is somebody else's
            continue
    return found


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _as_status(status: int) -> int:
    """Exit code that a process ended with; if it was ended by a signal, so is this one, without a core file."""
    if os.WIFSIGNALED(status):
        import resource

        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
