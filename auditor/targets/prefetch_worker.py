"""A process that is started to be the partner of one claim: reads a pickled meeting and a function from its input.

It is a plain subprocess and no process of loky: that one would be in the session of its parent, so that Ctrl-C reaches
both, and what the target prints when it is imported would be shown once more. It is no quicker either: this one is
ready after 0.7 s, one of loky after 0.9 s (joblib 1.6).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from auditor.targets.prefetch import Meeting
from auditor.targets.threads import one_thread

#: Seconds for the process to end by itself; arbitrary, it may be in the middle of a call.
_GRACE = 0.5


@contextmanager
def hire_partner(find: Callable[[Any], Any]) -> Iterator[Callable[[], Connection | None]]:
    """A partner of one's own, for `Ahead`.

    The process is started when it is first looked for, and ended with the block.

    Parameters
    ----------
    find : callable
        Gives the target of a word; it can be pickled.
    """
    started: list[tuple[subprocess.Popen[bytes], Meeting]] = []
    with contextlib.ExitStack() as stack:

        def take() -> Connection | None:
            if not started:  # no folder before: if this process is killed, it is the partner that removes it
                meeting = Meeting(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpaudit-")))
                started.append((_start(meeting, find), meeting))
            return started[0][1].take()

        try:
            yield take
        finally:
            for process, meeting in started:
                meeting.dismiss()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE)
                process.kill()
                process.wait()


def _start(meeting: Meeting, find: Callable[[Any], Any]) -> subprocess.Popen[bytes]:
    # What can be imported here can be imported there. A session of its own: Ctrl-C is for this process, which ends it.
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "auditor.targets.prefetch_worker"],
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin:
        process.stdin.write(pickle.dumps((meeting, find)))
    return process


def main() -> None:
    """Be the partner."""
    meeting, find = pickle.load(sys.stdin.buffer)
    with one_thread():
        meeting.help(find)


if __name__ == "__main__":
    main()
