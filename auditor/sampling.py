"""Seeded chunks of draws."""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from auditor.errors import SpecificationError, TargetError, TargetRaised, positive
from auditor.events.outputs import Batch, Raised, as_batch, concatenate
from auditor.targets import Mechanism

if TYPE_CHECKING:
    from auditor.partners import Ahead

T = TypeVar("T")


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """Generator of one piece of work: a child of the run's seed, keyed by what the piece is.

    Two pieces with different keys draw independently, and adding a piece changes the draws of no other.
    """
    digest = hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
    words = np.frombuffer(digest[:16], dtype=np.uint32)
    # Words in an array are read four times as fast as integers, of which a seed beyond 32 bits is more than one word.
    few = np.append(np.uint32(seed), words) if seed < 2**32 else [seed, *words.tolist()]
    return np.random.default_rng(np.random.SeedSequence(few))


class Call(NamedTuple):
    """So many draws, from the generator of a key: on a dataset, it has one outcome for a target that is seeded."""

    n: int
    key: tuple[str | int, ...]


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
    except Exception as error:
        name = type(error).__name__
        what = f"{who} raised {name}"
        raise TargetRaised(name, f"{what}: {error}", public=what) from error
    except SystemExit as error:
        what = f"{who} raised SystemExit"
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
        Ask for one draw a call, each with a generator of its own: for targets that share noise within a call, or raise.
    catching : bool
        What the target's code raises when it is asked for one draw is an output, see `Raised`: whether a mechanism
        raises may depend on the data, and then that is what gives them away. Otherwise it raises `TargetRaised`.
    ahead : Ahead, optional
        Makes calls before they are asked for.

    Attributes
    ----------
    refused : TargetRaised or None
        What was raised first, as long as the target never did anything else.
    broken : TargetRaised or None
        What a call for several draws raised, as long as no call for one draw did.
    """

    def __init__(
        self,
        target: Mechanism,
        seed: int,
        key: str,
        limit: float | None = None,
        one_a_call: bool = False,
        catching: bool = False,
        ahead: Ahead | None = None,
    ):
        check_seed(seed)
        if limit is not None:
            positive("limit", limit)
        self.target, self.seed, self.key, self.limit = target, int(seed), key, limit
        self.one_a_call, self.catching, self.ahead = one_a_call, catching, ahead
        self.refused: TargetRaised | None = None
        self.broken: TargetRaised | None = None
        self._answered = self._raised = False

    def alone(self) -> Sampler:
        """The same draws for one draw a call."""
        return Sampler(self.target, self.seed, self.key, self.limit, True, self.catching, self.ahead)

    def expect(self, *calls: tuple[Any, Call]) -> None:
        """Say which calls come next, in order: datasets, with the draws and keys of `draw`. Nothing depends on it."""
        if self.ahead is None:
            return
        if self.one_a_call:
            calls = tuple((data, Call(1, (*call.key, "draw", k))) for data, call in calls for k in range(call.n))
        self.ahead.expect(self, calls)

    def draw(self, data: Any, n: int, *key: str | int) -> Batch:
        """``n`` outputs on ``data``, from the generator of ``key``.

        Raises
        ------
        TargetError
            If the target is past its limit, or returns what is not n outputs.
        TargetRaised
            If its code raises, unless that is an output.
        """
        if self.one_a_call and n > 1:
            return concatenate([self._call(data, 1, *key, "draw", k) for k in range(n)])
        return self._call(data, n, *key)

    def draw_either_way(self, data: Any, n: int, *key: str | int) -> tuple[Batch, bool]:
        """``n`` outputs, and whether they were asked for together.

        False if a call for all of them raised: which draws of a batch did so cannot be seen, so they, and all later
        ones, are drawn one a call. Such outputs may be learned from, but are not to be counted: given that the call for
        all of them did not raise, draws have another law. See `Evidence`.
        """
        try:
            return self.draw(data, n, *key), True
        except TargetRaised:
            if not self.catching or self.one_a_call:
                raise
            self.one_a_call = True
            return self.draw(data, n, *key, "alone"), False

    def settled(self, work: Callable[[], T]) -> T:
        """Do some work that draws; again, one draw a call, if a call for several raised."""
        try:
            return work()
        except TargetRaised:
            if not self.catching or self.one_a_call:
                raise
            self.one_a_call = True
            return work()

    def reviewed(self, work: Callable[[Sampler], T], alarming: Callable[[T], bool]) -> T:
        """Do some work that draws from this; again, without a partner, if it is an alarm that does not stand review."""
        found = work(self)
        if self.ahead is None or not alarming(found) or self.ahead.reviewed(self):
            return found
        return work(Sampler(self.target, self.seed, self.key, self.limit, catching=self.catching))

    def ask(self, data: Any, call: Call) -> Batch:
        """What comes of a call, whatever came of others.

        Raises
        ------
        TargetError
            As `draw`.
        """
        rng = generator(self.seed, self.key, *call.key)
        with guarded("the target", f"{call.n} draws", self.limit):
            outputs = self.target(data, call.n, rng)
        return as_batch(outputs, call.n)

    def _call(self, data: Any, n: int, *key: str | int) -> Batch:
        call = Call(n, key)
        try:
            batch = self.ask(data, call) if self.ahead is None else self.ahead.answer(self, data, call)
        except TargetRaised as error:
            if not self._answered and self.refused is None:
                self.refused = error
            if self.catching and n == 1:
                self._raised, self.broken = True, None
                return [Raised(error.error)]
            if not self._raised:
                self.broken = error
            raise
        if not self._answered:
            self._look(batch)
        return batch

    def _look(self, batch: Batch) -> None:
        """Note whether the target has answered with anything but an exception."""
        raised = [value for value in batch if isinstance(value, Raised)] if isinstance(batch, list) else []
        if len(raised) < len(batch):
            self._answered, self.refused = True, None
        elif self.refused is None and raised:
            self.refused = TargetRaised(raised[0].error, f"the target raised {raised[0].error}")
