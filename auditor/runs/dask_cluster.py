"""Claims handed out to a dask cluster: one of this machine, or that of a scheduler elsewhere.

`auditor.runs.dask_tasks` is what runs on its workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import pickle
import queue
import socket
import time
import uuid
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from auditor.errors import SpecificationError, require_library
from auditor.results import AuditResult
from auditor.runs.audit_claim import make_failure
from auditor.runs.claim_process import ProcessEnded, hash_declarations, read_versions
from auditor.runs.dask_tasks import Job, RefusedError, check_import, check_worker, end_processes, run_audit_task
from auditor.runs.run import Done, HandOut, Run, Say, WorkersLost

T = TypeVar("T")

#: Seconds within which a scheduler has to answer; arbitrary, more than a network ever takes.
ANSWER = 10.0
#: Seconds for the connection, of those: what it fails from can then still be said.
_CONNECT = 8.0
#: Seconds without any worker, or without any answer of the scheduler, after which a run is given up; arbitrary, enough
#: for workers to be started again. Cluster managers may take longer for the first: start the run after them.
PATIENCE = 60.0
#: Seconds for a worker to load the claims; arbitrary, ten times what the two thousand of this package take.
LOADING = 120.0
#: Seconds between two looks at the cluster while nothing is finished; arbitrary.
_LOOK = 1.0
#: How often a claim is tried again whose process was ended by others; arbitrary.
RETRIES = 2


@contextmanager
def connect_cluster(run: Run, say: Say) -> Iterator[HandOut]:
    """Workers of a dask cluster, see `auditor.runs.workers.start_workers`.

    Parameters
    ----------
    run : Run
        With the back end "dask", and the address of a scheduler or None for this machine.
    say : callable
        Called with lines of progress while workers are waited for.

    Raises
    ------
    SpecificationError
        If dask is not installed, there is no scheduler or worker, or one would audit something else.
    """
    require_library("distributed", "--backend dask")
    import distributed

    with ExitStack() as stack:
        stack.enter_context(_without_connection_logs())
        if run.scheduler is not None:
            _look_for_scheduler(run.scheduler)
        job = Job(uuid.uuid4().hex, os.getcwd(), (read_versions(), hash_declarations(run)), pickle.dumps(run))
        if run.scheduler is None:
            # Its workers are threads here, each with a process beside it that audits. Its pages, which cannot be
            # switched off, are for this machine alone, at any free port.
            local = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=1,
                threads_per_worker=run.jobs,
                processes=False,
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                memory_limit=0,
            )
            address, asked = stack.enter_context(local), "this machine"
        else:
            address = asked = run.scheduler
        client = _connect_client(address, asked)
        stack.callback(client.close, timeout=_CONNECT)
        if run.scheduler is not None:
            _check_scheduler(client, asked)
        handed = _Cluster(client, run, job, asked)
        stack.callback(handed.end)
        try:
            _wait_for_workers(client, asked, say)
            _check_workers(client, job, asked)
        except (OSError, TimeoutError) as error:
            raise SpecificationError(f"the scheduler {asked!r} no longer answers: {_one_line(error)}") from error
        yield handed.hand_out


@contextmanager
def _without_connection_logs() -> Iterator[None]:
    """No logs of what is said in one line, here, of a connection that fails."""
    names = [
        name for name in logging.root.manager.loggerDict if name.split(".")[0] in ("asyncio", "distributed", "tornado")
    ]
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        gc.collect()  # tasks of asyncio that failed say so when they are deleted
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _look_for_scheduler(address: str) -> None:
    """Raise `SpecificationError` unless a scheduler answers; a client would wait without end for some that do not."""
    from distributed.comm.addressing import get_address_host_port
    from distributed.core import rpc
    from distributed.security import Security

    wanted = 'expected the address of a dask scheduler, such as "tcp://10.0.0.1:8786"'
    try:
        host, port = get_address_host_port(address)
        if not 0 < port < 2**16:
            raise ValueError(f"no such port: {port}")
    except (TypeError, ValueError) as error:
        raise SpecificationError(f"{wanted}, got {address!r}: {error}") from error

    try:
        # Its reasons are plainer than those of a connection that speaks the protocol.
        socket.create_connection((host, port), timeout=_CONNECT).close()
    except OSError as error:
        raise SpecificationError(f"cannot reach the scheduler {address!r}: {error}") from error

    async def identity() -> Mapping[str, Any]:
        keys = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
        async with rpc(address, timeout=_CONNECT, connection_args=keys) as server:  # type: ignore[no-untyped-call]
            answer: Mapping[str, Any] = await server.identity()
            return answer

    async def within() -> Mapping[str, Any]:
        return await asyncio.wait_for(identity(), ANSWER)

    try:
        found = asyncio.run(within())
    except TimeoutError as error:
        raise SpecificationError(f"the scheduler {address!r} did not answer within {ANSWER:g} s") from error
    except Exception as error:
        # Whatever listens there is asked in a protocol that it may not speak: anything can come back.
        raise SpecificationError(
            f"what answers at {address!r} is no dask scheduler that can be used: {type(error).__name__}: "
            f"{_one_line(error)}"
        ) from error
    if found.get("type") != "Scheduler":
        raise SpecificationError(f"{wanted}, got {address!r}, which is a {found.get('type')}")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _ask_scheduler(client: Any, call: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Ask the scheduler something, for so long at most; dask's own calls wait without end."""

    async def within() -> T:
        return await asyncio.wait_for(call(), seconds)

    # A second more, so that the inner limit is the one that is reached.
    answer: T = client.sync(within, callback_timeout=seconds + 1)
    return answer


def _connect_client(address: Any, name: str) -> Any:
    import distributed

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions: those that numbers depend on are checked
            return distributed.Client(address, timeout=_CONNECT, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise SpecificationError(f"cannot reach the scheduler {name!r}: {_one_line(error)}") from error


def _check_scheduler(client: Any, name: str) -> None:
    """The scheduler reads what is handed out, so it has to know this package."""
    try:
        _ask_scheduler(client, lambda: client.run_on_scheduler(check_import), ANSWER)
    except Exception as error:
        raise SpecificationError(
            f"the scheduler {name!r} cannot use dpaudit: {type(error).__name__}: {_one_line(error)}"
        ) from error


def _threads(client: Any) -> dict[str, int]:
    """Threads of each worker, by its address."""
    found: dict[str, int] = _ask_scheduler(client, client.nthreads, ANSWER)
    return found


def _wait_for_workers(client: Any, name: str, say: Say) -> None:
    deadline = time.monotonic() + PATIENCE
    said = False
    while not (threads := _threads(client)):
        if time.monotonic() > deadline:
            raise SpecificationError(f"the scheduler {name!r} has had no workers for {PATIENCE:g} s")
        if not said:
            say(f"the scheduler {name} has no workers: waiting for them, {PATIENCE:g} s at most")
            said = True
        time.sleep(_LOOK)
    total = sum(threads.values())
    say(f"{total} claim{'s' * (total != 1)} at a time on {len(threads)} worker{'s' * (len(threads) != 1)} of {name}")


def _check_workers(client: Any, job: Job, name: str) -> None:
    """Raise `SpecificationError` unless all workers would audit the same claims with the same code."""
    addresses = list(_threads(client))

    async def ask(address: str) -> str:
        try:
            answers: dict[str, str] = await asyncio.wait_for(client.run(check_worker, job, workers=[address]), LOADING)
            return answers.get(address, "")  # a worker that has gone meanwhile is none
        except TimeoutError:
            return f"it has not loaded the claims within {LOADING:g} s"
        except Exception as error:  # noqa: BLE001 - of the worker, such as a package that it does not have
            return f"it cannot use dpaudit: {type(error).__name__}: {_one_line(error)}"

    async def ask_all() -> list[str]:
        return await asyncio.gather(*map(ask, addresses))

    answers = dict(zip(addresses, _ask_scheduler(client, ask_all, LOADING + _CONNECT), strict=True))
    refusals = [f"worker {address}: {text}" for address, text in answers.items() if text]
    if refusals:
        more = f" (and {len(refusals) - 1} more workers)" if len(refusals) > 1 else ""
        raise SpecificationError(f"{name} would not audit the same: {refusals[0]}{more}")


class _Cluster:
    """Workers that were checked, and what they were handed.

    Parameters
    ----------
    client : distributed.Client
        Connected to their scheduler.
    run : Run
        The run.
    job : Job
        The same for the workers.
    name : str
        What the scheduler is called.
    """

    def __init__(self, client: Any, run: Run, job: Job, name: str) -> None:
        self.client, self.run, self.job, self.name = client, run, job, name
        self._futures: dict[str, tuple[str, Any]] = {}
        self._answered = self._staffed = time.monotonic()

    def hand_out(self, ids: Sequence[str], alpha: Mapping[str, float]) -> Iterator[Done]:
        """Yield each result as it comes.

        The scheduler runs the claims of a worker that is lost again elsewhere. It blames all of them, and gives up
        those that have lost too many; they are tried once more at the end, one by one, so that only a claim that kills
        its workers is an error.
        """
        suspects: list[str] = []
        yield from self._batch(ids, alpha, suspects)
        for id_ in suspects:
            yield from self._batch([id_], alpha, None)

    def end(self) -> None:
        """Take back what is not finished, and end the processes."""
        futures = [future for _, future in self._futures.values()]
        # Where it fails there is nobody left to ask; idle processes end by themselves.
        with contextlib.suppress(Exception):
            if futures:
                _ask_scheduler(self.client, lambda: self.client.cancel(futures), ANSWER)
            _ask_scheduler(
                self.client, lambda: self.client.run(end_processes, self.job.token, on_error="ignore"), ANSWER
            )

    def _batch(self, ids: Sequence[str], alpha: Mapping[str, float], suspects: list[str] | None) -> Iterator[Done]:
        from distributed.scheduler import KilledWorker

        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        begun = self._answered = self._staffed = time.monotonic()
        for id_ in ids:
            # A key of its own: dask would take the result of an earlier task with the same.
            key = f"{id_}-{uuid.uuid4().hex}"
            future = self.client.submit(
                run_audit_task, self.job, id_, alpha[id_], key=key, pure=False, retries=RETRIES, fifo_timeout="0 s"
            )
            self._futures[key] = id_, future
            future.add_done_callback(arrived.put)
        while self._futures:
            try:
                future = arrived.get(timeout=_LOOK)
            except queue.Empty:
                self._check_staffing()
                continue
            id_, _ = self._futures[future.key]
            try:
                answer = self._answer(future)
            except TimeoutError:  # its worker was lost with the result: the scheduler has the claim run again
                self._check_staffing()
                future.add_done_callback(arrived.put)
                continue
            del self._futures[future.key]
            future.release()
            if isinstance(answer, KilledWorker) and suspects is not None:
                suspects.append(id_)
            elif isinstance(answer, str | BaseException):
                yield self._failure(id_, alpha[id_], answer), time.monotonic() - begun
            else:
                yield answer

    def _answer(self, future: Any) -> Any:
        """What a claim's future has come to: the result with its seconds, or how it failed."""
        try:
            if future.status == "finished":
                content = future.result(timeout=ANSWER)
                return content if isinstance(content, str) else pickle.loads(content)
            if future.status == "error":
                return future.exception(timeout=ANSWER)
        except CancelledError:
            pass
        else:
            if future.status == "pending":
                raise TimeoutError
        raise WorkersLost(f"the scheduler {self.name} was lost, or dropped the claims")

    def _failure(self, id_: str, alpha: float, error: str | BaseException) -> AuditResult:
        """The "error" of a claim, or `WorkersLost` where the others would end the same."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, RefusedError):
            raise WorkersLost(f"{self.name}: a process that came later would not audit the same: {error}") from error
        if isinstance(error, str):
            message = error
        elif isinstance(error, KilledWorker):
            message = f"it ended its worker, {error.allowed_failures + 1} times"
        elif isinstance(error, ProcessEnded):
            message = f"{error}, {RETRIES + 1} times"
        else:
            message = f"dpaudit failed: {type(error).__name__}: {_one_line(error)}"
        return make_failure(self.run, id_, alpha, message)

    def _check_staffing(self) -> None:
        """Raise `WorkersLost` if there has been nobody for too long."""
        try:
            threads = _threads(self.client)
        except Exception:  # noqa: BLE001 - whatever the reason, a network comes back or does not
            if time.monotonic() - self._answered > PATIENCE:
                raise WorkersLost(f"the scheduler {self.name} has not answered for {PATIENCE:g} s") from None
            return
        self._answered = time.monotonic()
        if threads:
            self._staffed = self._answered
        elif self._answered - self._staffed > PATIENCE:
            raise WorkersLost(f"the scheduler {self.name} has had no workers for {PATIENCE:g} s")
