"""Workers that audit claims: this process, several on this machine, or a dask cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import Any

from auditor.errors import require_library
from auditor.results import AuditResult
from auditor.runs.audit_claim import audit_by_id, declared_claim, drawn_from
from auditor.runs.run import Done, HandOut, Run, Say, WorkersLost
from auditor.targets.prefetch import POSSIBLE, Meeting
from auditor.targets.prefetch_worker import hire_partner
from auditor.targets.process_settings import load_target
from auditor.targets.threads import one_thread

#: Seconds after which a worker looks whether the process that started it is still there; arbitrary.
_LOOK = 1.0


@contextmanager
def start_workers(run: Run, say: Say | None = None, alone: bool = False) -> Iterator[HandOut]:
    """Workers of a run, which are ended with the block.

    One claim is audited in this process, which has loaded it; a partner is started if its draws take long.

    Parameters
    ----------
    run : Run
        How: ``backend``, ``scheduler`` and ``jobs`` decide where; results do not depend on it.
    say : callable, optional
        Called with lines of progress while workers are waited for.
    alone : bool
        The run is of one claim.

    Raises
    ------
    SpecificationError
        If there can be no workers, or they would audit something else. Nothing was audited then.
    WorkersLost
        By what is yielded, if all are lost before the end.
    """
    if run.backend == "dask":
        from auditor.runs.dask_cluster import connect_cluster

        with connect_cluster(run, say or (lambda _: None)) as hand_out:
            yield hand_out
    elif run.jobs == 1:
        with one_thread():  # as workers have it
            yield lambda ids, alpha: (audit_by_id(run, id_, alpha[id_]) for id_ in ids)
    elif alone:
        # As workers have it: one thread for numeric libraries, and a partner where draws take long.
        with one_thread(), hire_partner(partial(_target, run)) if POSSIBLE else nullcontext() as take:
            yield lambda ids, alpha: (audit_by_id(run, id_, alpha[id_], take) for id_ in ids)
    else:
        require_library("joblib", "several workers (--jobs 1 needs none)")
        yield lambda ids, alpha: _processes(run, ids, alpha)


def _processes(run: Run, ids: Sequence[str], alpha: Mapping[str, float]) -> Iterator[Done]:
    """Several processes of this machine; those with no claim left are partners of the others."""
    import joblib  # takes longer to import than most audits of one claim

    with (
        tempfile.TemporaryDirectory(prefix="dpaudit-") as folder,
        joblib.parallel_config(backend="loky", n_jobs=run.jobs, inner_max_num_threads=1),
        warnings.catch_warnings(),
    ):
        # A worker whose memory has grown ends after a claim, and another one takes its place: nothing is lost.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
        # What an interrupt leaves is said by the command.
        warnings.filterwarnings("ignore", message=r"\d+ tasks (which|have)")
        meeting = Meeting(folder)
        # No more than loky's queue holds: where tasks wait before it, its thread fails when an interrupt ends it.
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2 * n_jobs", batch_size=1)
        tasks = [joblib.delayed(_in_worker)(run, id_, alpha[id_], meeting) for id_ in ids]
        # Tasks are begun in order: these when no claim is left to begin.
        tasks += [joblib.delayed(_help)(run, meeting)] * (run.jobs - 1 if POSSIBLE else 0)
        with _deaf_children():
            results = parallel(tasks)
        with contextlib.closing(results):  # where warnings are still filtered
            left = len(ids)
            try:
                while left:
                    done = next(results)
                    if done is not None:
                        left -= 1
                        yield done
            except BrokenProcessPool as error:
                raise WorkersLost(
                    "a worker process ended in the middle of a claim, for example because the memory was used up "
                    "(--jobs 1 shows which; --backend dask runs it again and goes on with the others)"
                ) from error
            meeting.dismiss()
            with contextlib.suppress(BrokenProcessPool):  # nobody needs the partners any more
                for _ in results:
                    pass


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started here ignore Ctrl-C: this process hears it, keeps what is finished and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@cache
def _end_with(meeting: Meeting) -> None:
    """End this process, in the middle of a claim, when the one that started it has ended, as if by kill -9."""

    def watch() -> None:
        while os.getppid() == meeting.parent:
            time.sleep(_LOOK)
        shutil.rmtree(meeting.folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_worker(run: Run, id_: str, alpha: float, meeting: Meeting) -> tuple[AuditResult, float]:
    _end_with(meeting)
    return audit_by_id(run, id_, alpha, meeting.take)


def _target(run: Run, id_: str) -> Any:
    claim = declared_claim(run, id_)
    with load_target(claim.module):
        return drawn_from(claim)


def _help(run: Run, meeting: Meeting) -> None:
    """Draw for claims that are audited by other workers."""
    _end_with(meeting)
    with contextlib.suppress(Exception):  # those do without it
        meeting.help(partial(_target, run))
