"""Tasks on the workers of a dask cluster.

Each thread of a worker audits one claim at a time, in a process of its own beside the worker.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from auditor.runs.claim_process import ClaimProcess, ProcessDied, ProcessEnded


class RefusedError(Exception):
    """A worker would audit something else."""


@dataclass(frozen=True)
class Job:
    """What workers need to know of a run.

    Parameters
    ----------
    token : str
        Names the run among others of the same cluster.
    folder : str
        Where the run was started.
    expected : tuple of mappings
        Versions, and hashes of what is declared.
    run : bytes
        The pickled `Run`, which is read only where the versions are the same.
    """

    token: str
    folder: str
    expected: tuple[Mapping[str, str], Mapping[str, str]]
    run: bytes


_lock = threading.Lock()
#: Processes of each run in this worker: those that wait, and all.
_waiting: dict[str, list[ClaimProcess]] = {}
_running: dict[str, list[ClaimProcess]] = {}


def _take_process(job: Job) -> ClaimProcess:
    """A process that waits for a claim, or a new one."""
    with _lock:
        waiting = _waiting.get(job.token, [])
        while waiting:
            process = waiting.pop()
            if process.alive:
                return process
    process = ClaimProcess(job.folder, job.expected, job.run)
    if process.refused:
        process.end()
        raise RefusedError(process.refused)
    with _lock:
        _running.setdefault(job.token, []).append(process)
    return process


def _given_back(job: Job, process: ClaimProcess) -> None:
    with _lock:
        if process in _running.get(job.token, []):  # the run has not ended
            _waiting.setdefault(job.token, []).append(process)


def check_import() -> None:
    """Nothing, where this package can be imported; else the question fails."""


def run_audit_task(job: Job, id_: str, alpha: float) -> bytes | str:
    """Audit one claim: the task of a worker's thread.

    Parameters
    ----------
    job : Job
        The run, as workers know it.
    id_ : str
        The claim's id.
    alpha : float
        The claim's share of alpha, in (0, 1).

    Returns
    -------
    bytes or str
        The pickled result and seconds; or, if the claim has ended its process, how.

    Raises
    ------
    ProcessEnded
        If others have, so that dask tries again.

    Notes
    -----
    Valid because: a claim is tried again only if it was stopped from outside, its process, its worker or its machine.
    From a seeded target the same draws come again, and nothing was chosen. For others it is assumed that who stops a
    process does not look at the draws, as for a run that is interrupted by Ctrl-C. What the target does to its own
    process may depend on the draws, and would make up to as many chances of a false alarm as there are trials: it is
    not tried again.
    """
    process = _take_process(job)
    try:
        content = process.audit(id_, alpha)
    except ProcessEnded:
        raise
    except ProcessDied as error:
        return str(error)
    _given_back(job, process)
    return content


async def check_worker(job: Job) -> str:
    """Why this worker cannot audit the run, empty if it can; the process that was started waits for a claim."""

    def start() -> str:
        try:
            _given_back(job, _take_process(job))
        except (RefusedError, OSError) as error:
            return str(error)
        return ""

    return await asyncio.to_thread(start)


async def end_processes(token: str) -> None:
    """End a run's processes on this worker, also in the middle of a claim."""
    with _lock:
        _waiting.pop(token, None)
        processes = _running.pop(token, [])
    await asyncio.gather(*(asyncio.to_thread(process.end) for process in processes))
