"""A process that audits claims of a run, one after another.

A worker of a cluster runs its tasks in threads. Claims need a process of their own beside it: a target that hangs can
be interrupted in the main thread only (`auditor.targets.sampler.TimeLimit`), libraries read their number of threads
when they are loaded, and a target that kills its process must not take the worker with it.

It is a plain subprocess and no executor of loky, as joblib's workers are, for three reasons (joblib 1.6). A worker that
a nanny of dask started is daemonic, and loky refuses there ("daemonic processes are not allowed to have children"). A
process of loky stays when its parent is killed in the middle of a call. How a process died, by itself or by others,
decides whether a claim is tried again, and loky tells it in the text of an error only.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

from auditor.errors import DpauditError

#: Seconds without anything to do after which a process ends by itself, so that it does not stay when the process of the
#: run is killed; arbitrary.
IDLE = 60.0
#: Seconds for a process to end when it is told to; arbitrary, it has nothing left to do.
_GRACE = 5.0
#: Signals that others send: a fault of a program's own has others.
_FROM_OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
#: What numeric libraries read their number of threads from.
_THREADS = (
    "BLIS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


#: Hashes of a run's fingerprint that have to be the same, and what each is about.
_HASHES = {
    "the claims": "specification_hash",
    "the mechanisms": "source_hash",
    "the source files": "code_hash",
    "the datasets": "data_hash",
}


class ProcessDied(DpauditError):  # noqa: N818 - it is what happened
    """The claim ended its process."""


class ProcessEnded(ProcessDied):
    """Others ended the process, such as a manager of jobs."""


def read_versions() -> dict[str, str]:
    """Versions of all that bears on the numbers, in this process."""
    from auditor.runs.manifest import LIBRARIES
    from auditor.targets.sources import find_versions

    return {"Python": platform.python_version(), **find_versions(("dpaudit", *LIBRARIES))}


def hash_declarations(run: Any) -> dict[str, str]:
    """Hashes of what a run would audit, as this process loads it.

    Parameters
    ----------
    run : Run
        The run; its paths are relative to the working directory.

    Raises
    ------
    SpecificationError
        If it cannot be loaded.
    """
    from auditor.claims import registry
    from auditor.runs.manifest import fingerprint_run
    from auditor.runs.selection import select_claims

    about = fingerprint_run(run, select_claims(registry.load_claims(run.loaded), run.expression))
    return {what: about[name] for what, name in _HASHES.items()}


class ClaimProcess:
    """The process, as the worker sees it.

    Parameters
    ----------
    folder : str
        Its working directory, if there is such a folder; else it is the worker's.
    expected : mapping
        What `read_versions` and `hash_declarations` have to be.
    run : bytes
        The pickled `Run`.

    Attributes
    ----------
    refused : str
        Why it cannot audit this run; empty if it can.
    """

    def __init__(self, folder: str, expected: tuple[Mapping[str, str], Mapping[str, str]], run: bytes) -> None:
        # What can be imported here can be imported there, with what lies beside the claims first.
        paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
        # A session of its own: Ctrl-C in the worker's terminal is for the worker, which ends this process.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "auditor.runs.claim_process"],
            cwd=folder if os.path.isdir(folder) else None,
            env={**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self.refused: str = self._ask_process((expected, run))
        except ProcessDied as error:
            self.refused = f"it cannot load the claims: {error}"

    def audit(self, id_: str, alpha: float) -> bytes:
        """Audit one claim; return the pickled result and seconds.

        Parameters
        ----------
        id_ : str
            The claim's id.
        alpha : float
            The claim's share of alpha, in (0, 1).

        Raises
        ------
        ProcessDied
            If the process ends before, or `ProcessEnded`.
        """
        answer: bytes = self._ask_process((id_, alpha))
        return answer

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process, also in the middle of a claim."""
        with contextlib.suppress(OSError):
            self._question_stream.close()  # that ends what the claim has started as well, see `_listen`
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answer_stream.close()

    @property
    def _question_stream(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _answer_stream(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _ask_process(self, question: Any) -> Any:
        try:
            pickle.dump(question, self._question_stream)
            self._question_stream.flush()
            return pickle.load(self._answer_stream)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise self._death() from error

    def _death(self) -> ProcessDied:
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:  # it has closed its output, or written what is no answer
            self._process.kill()
            self._process.wait()
            return ProcessDied("its process answered what cannot be read")
        if code >= 0:
            return ProcessDied(f"its process ended with exit code {code}")
        if -code in _FROM_OUTSIDE:
            return ProcessEnded(f"its process was ended by {signal.Signals(-code).name}")
        return ProcessDied(f"its process crashed with signal {-code} ({signal.strsignal(-code)})")


def find_refusal(expected: tuple[Mapping[str, str], Mapping[str, str]], content: bytes) -> tuple[Any, str]:
    """Read a run and compare what it would audit here.

    Parameters
    ----------
    expected : tuple of mappings
        What `read_versions` and `hash_declarations` have to be.
    content : bytes
        The pickled `Run`, which may not be readable with other versions: they are compared first.

    Returns
    -------
    Run or None
        The run, if it could be read.
    str
        Why it cannot be audited here; empty if it can.
    """
    try:
        here = read_versions()
        others = [
            f"{name} {here[name]} instead of {wanted}" for name, wanted in expected[0].items() if here[name] != wanted
        ]
        if others:
            return None, f"it has {', '.join(others)}"
        run = pickle.loads(content)
        found = hash_declarations(run)
        others = [what for what, wanted in expected[1].items() if found[what] != wanted]
        return run, f"in {os.getcwd()!r} {' and '.join(others)} are not those of the run" if others else ""
    except Exception as error:  # noqa: BLE001 - whatever is wrong here is said there, with the worker's name
        return None, f"it cannot load the claims in {os.getcwd()!r}: {type(error).__name__}: {error}"


def _listen(asked: queue.SimpleQueue[Any]) -> None:
    """Read questions. The end of them is the end of the process, which may be in the middle of a claim."""
    try:
        while True:
            asked.put(pickle.load(sys.stdin.buffer))
    except (EOFError, OSError):
        os._exit(0)


def main() -> None:
    """Answer questions on standard output until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what targets print is not an answer
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()

    def answer(value: Any) -> None:
        pickle.dump(value, answers)
        answers.flush()

    run, refused = find_refusal(*asked.get())
    answer(refused)
    from auditor.runs.audit_claim import audit_by_id, make_failure

    while not refused:
        try:
            id_, alpha = asked.get(timeout=IDLE)
        except queue.Empty:
            # Not by its own doing: if a question is on its way, it is asked again elsewhere.
            os.kill(os.getpid(), signal.SIGTERM)
            return
        done = audit_by_id(run, id_, alpha)
        try:
            content = pickle.dumps(done)
        except Exception as error:  # noqa: BLE001 - an answer of ours that cannot be sent is a failure of ours
            message = f"dpaudit failed: its result cannot be sent: {type(error).__name__}: {error}"
            content = pickle.dumps((make_failure(run, id_, alpha, message), done[1]))
        answer(content)


if __name__ == "__main__":
    main()
