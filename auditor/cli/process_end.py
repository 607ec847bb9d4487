"""How the process of a command ends: signals, a target's `os._exit`, and a closed output."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

#: Seconds in which signals are one: `timeout` sends its signal to the process and then to the group.
_TWICE = 0.1
#: Seconds that threads of a target may take to end, after all is written; arbitrary, longer than workers of ours take.
_GRACE = 5.0
#: The exit code that `settle_exit` has fixed; empty before.
_settled: list[int] = []


@contextmanager
def refuse_exit(code: int) -> Iterator[None]:
    """Give a target's `os._exit` an exit code of ours.

    The target's own might be that of a pass or a finding.

    Parameters
    ----------
    code : int
        Exit code of this process then, whatever the target's.
    """
    own, leave = os.getpid(), os._exit

    def end(status: int) -> NoReturn:
        if os.getpid() != own:  # a copy of the process
            leave(status)
        if _settled:  # a target that has imported it calls it later
            os._exit(status)
        os.write(2, f"dpaudit: the target ended this process by os._exit({status!r}): nothing is known\n".encode())
        leave(code)

    os._exit = end
    try:
        yield
    finally:
        os._exit = leave


def settle_exit(code: int) -> None:
    """Fix this process's exit code, whatever its exit handlers do.

    A target's may call `os._exit`, and its own code might hide a finding that has been printed.

    Parameters
    ----------
    code : int
        Exit code of this process from now on.
    """
    own, leave = os.getpid(), os._exit

    def end(status: int) -> NoReturn:
        if os.getpid() != own:  # a copy of the process
            leave(status)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        leave(code)

    _settled.append(code)
    os._exit = end


@contextmanager
def hear_signals() -> Iterator[None]:
    """Make TERM and HUP what Ctrl-C is.

    What is finished is written, and no temporary folder stays. A second one ends the process at once, also in the
    middle of compiled code.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    own, numbers = os.getpid(), [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores HUP
    ending: list[int] = []

    def restore() -> None:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)

    def end(number: int, _frame: object) -> None:
        if os.getpid() != own:  # a copy of the process, which a target made
            restore()
            os.kill(os.getpid(), number)
        if ending:
            return
        ending.append(number)
        time.sleep(_TWICE)
        restore()
        raise KeyboardInterrupt

    for number in heard:
        signal.signal(number, end)
    try:
        yield
    finally:
        restore()


def end_despite_threads(code: int) -> None:
    """Let the process end though a target's threads go on.

    Python waits for them, without end if need be, when all has been said and written.

    Parameters
    ----------
    code : int
        Exit code of this process then.
    """

    def find_threads() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one is not threading.main_thread() and not one.daemon]

    def end() -> None:
        time.sleep(_GRACE)
        left = find_threads()
        if left:
            names = ", ".join(one.name for one in left[:3]) + ", ..." * (len(left) > 3)
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            with suppress(OSError):
                os.write(2, f"dpaudit: ended, though the target has left threads running: {names}\n".encode())
            os._exit(code)

    if find_threads():
        threading.Thread(target=end, daemon=True).start()


def silence_output() -> None:
    """Send standard output nowhere.

    The flush at exit fails no more.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
