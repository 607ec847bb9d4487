"""Seeded chunks of draws."""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from auditor.errors import SpecificationError, TargetError, positive
from auditor.events.outputs import Batch, as_batch, concatenate
from auditor.targets import Mechanism


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """Generator of one piece of work: a child of the run's seed, keyed by what the piece is.

    Two pieces with different keys draw independently, and adding a piece changes the draws of no other.
    """
    digest = hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
    words = np.frombuffer(digest[:16], dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence([seed, *words.tolist()]))


class _Hang(BaseException):
    """Raised in the main thread when a call is past its limit; a target's ``except Exception`` cannot catch it."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt the block after ``seconds``, in the main thread of a POSIX process; elsewhere there is no limit.

    A block that swallows the interruption is interrupted again at its end.
    """
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or not usable:
        yield
        return
    late = False

    def expired(_signal: int, _frame: FrameType | None) -> None:
        nonlocal late
        late = True
        raise _Hang

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if late:
        raise _Hang


@contextmanager
def guarded(who: str, asked: str, limit: float | None) -> Iterator[None]:
    """Turn what the target's code raises in the block, or a hang past ``limit`` seconds, into `TargetError`."""
    try:
        with time_limit(limit):
            yield
    except _Hang:
        raise TargetError(f"{who} did not answer within {limit:g} s when asked for {asked}") from None
    except TargetError:  # said by a part of ours that the target is made of, such as a dialogue
        raise
    except (Exception, SystemExit) as error:
        what = f"{who} raised {type(error).__name__}"
        raise TargetError(f"{what}: {error}", public=what) from error


def check_seed(seed: object) -> None:
    """Raise `SpecificationError` unless the seed is an integer of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SpecificationError(f"seed must be an integer of at least 0, got {seed!r}")


class Sampler:
    """Draws of one target, with errors and hangs turned into `TargetError`.

    Parameters
    ----------
    target : Mechanism
        What is audited.
    seed : int
        The run's seed.
    key : str
        The claim's id.
    limit : float or None
        Seconds that one call may take.
    one_a_call : bool
        Ask for one draw a call, each with a generator of its own: for targets that share noise within a call.
    """

    def __init__(self, target: Mechanism, seed: int, key: str, limit: float | None = None, one_a_call: bool = False):
        check_seed(seed)
        if limit is not None:
            positive("limit", limit)
        self.target, self.seed, self.key, self.limit, self.one_a_call = target, int(seed), key, limit, one_a_call

    def draw(self, data: Any, n: int, *key: str | int) -> Batch:
        """``n`` outputs on ``data``, from the generator of ``key``.

        Raises
        ------
        TargetError
            If the target raises, is past its limit, or returns what is not n outputs.
        """
        if self.one_a_call and n > 1:
            return concatenate([self._call(data, 1, *key, "draw", k) for k in range(n)])
        return self._call(data, n, *key)

    def _call(self, data: Any, n: int, *key: str | int) -> Batch:
        rng = generator(self.seed, self.key, *key)
        with guarded("the target", f"{n} draws", self.limit):
            outputs = self.target(data, n, rng)
        return as_batch(outputs, n)
