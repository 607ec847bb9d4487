"""Seeded chunks of draws."""

from __future__ import annotations

import hashlib
import itertools
import operator
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.errors import SpecificationError, StrategyError, TargetError, TargetRaised, check_positive
from auditor.targets import Mechanism
from auditor.targets.callables import OneDraw
from auditor.targets.outputs import Batch, Raised, as_batch, concatenate_batches
from auditor.targets.process_settings import call_target
from auditor.targets.raises import describe_error, find_raise, list_interrupts, show_error
from auditor.targets.tails import Tails
from auditor.targets.values import keep_values

T = TypeVar("T")

#: Most calls whose outputs are thrown away before each call of `Sampler.alone`: with 0 to 3 of them a scheme that goes
#: by the number of calls, such as noise that every second call mirrors, meets a draw of either side at random.
DUMMIES = 3
#: Draws from which on they are taken in `PARTS` calls. Draws that share something within a call then go together in
#: smaller groups, and there are more groups by which it is seen. Calls of fewer draws cost more than they tell.
SPLIT, PARTS = 200, 4
#: Least seconds that a call may be given: in less the alarm rings before the call has begun.
LEAST_LIMIT = 1e-3


def make_generator(seed: int, *key: str | int) -> np.random.Generator:
    """Generator of one piece of work.

    It is a child of the run's seed, keyed by the piece.

    Two pieces with different keys draw independently, and adding a piece changes the draws of no other.
    """
    seed = operator.index(seed)  # numpy's integers have no bytes
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode(errors="surrogateescape")).digest()[:16]
    # Words in an array are read four times as fast as integers, of which a seed beyond 32 bits is more than one word.
    if seed < 2**32:
        words = np.frombuffer(seed.to_bytes(4, "little") + digest, dtype="<u4")
        return np.random.default_rng(np.random.SeedSequence(words))
    return np.random.default_rng(np.random.SeedSequence([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()]))


class Call(NamedTuple):
    """A call for ``n`` draws on a dataset, with its key.

    The key gives the generator, so that a seeded target has one outcome.
    """

    n: int
    key: tuple[str | int, ...]


class Place(NamedTuple):
    """Where draws stand in the order of all that a sampler made.

    Attributes
    ----------
    call : int
        Number of their first call.
    first, n : int
        Place of the first draw, and number of draws.
    sizes : tuple of int
        Draws of each call, where there are several, one after the other.
    scattered : ndarray of shape (n,), optional
        Place of each draw, where they are not one after the other.
    """

    call: int
    first: int
    n: int
    sizes: tuple[int, ...] = ()
    scattered: NDArray[np.int64] | None = None

    def at(self) -> NDArray[np.int64]:
        """Place of each draw."""
        return np.arange(self.first, self.first + self.n) if self.scattered is None else self.scattered


def parts_of(call: Call) -> list[Call]:
    """The calls in which the draws of one are made."""
    if call.n < SPLIT:
        return [call]
    ends = [call.n * k // PARTS for k in range(PARTS + 1)]
    return [Call(b - a, (*call.key, "part", k)) for k, (a, b) in enumerate(itertools.pairwise(ends))]


class Drawn(NamedTuple):
    """Outputs on one dataset, and their place among draws.

    It is known whether they came in one call.
    """

    batch: Batch
    whole: bool
    place: Place


class Prefetch(Protocol):
    """Protocol of `auditor.targets.prefetch.Ahead`, which makes calls beforehand.

    Results do not depend on it.
    """

    def expect(self, sampler: Sampler, calls: Sequence[tuple[Any, Call]]) -> None:
        """Say which calls come next, each with its dataset."""

    def answer(self, sampler: Sampler, data: Any, call: Call) -> Batch:
        """Outputs of one call, made beforehand or now."""

    def reviewed(self, sampler: Sampler) -> bool:
        """Whether a partner's outputs are those of the target."""

    def close(self) -> None:
        """Make no further calls."""


class _Hang(BaseException):
    """Raised in the main thread when a call is past its limit; a target's ``except Exception`` cannot catch it."""


@dataclass(eq=False, repr=False)  # the module `signal` compares and prints a handler, each time that it is set
class _Alarm:
    """Our handler of SIGALRM: whether it is in place, and whether it was called since the latest limit began."""

    set: bool = False
    late: bool = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        self.late = True
        raise _Hang


#: Hint for a function that does not take the arguments of a mechanism.
SIGNATURE = " (a mechanism takes (data, n, rng); auditor.one_draw makes one of a function (data, rng) of one draw)"
_ALARM = _Alarm()
_HAS_TIMER = hasattr(signal, "setitimer")


class _AlarmSet:
    """Put our handler of SIGALRM in place for a block, once for all its limits.

    Entering gives False where there can be no handler. Classes, not generators: a call for one draw enters three of
    them, which then takes a third of the time.
    """

    __slots__ = ("_before", "_owner")

    def __enter__(self) -> bool:
        self._owner = False
        if not _HAS_TIMER or threading.current_thread() is not threading.main_thread():
            return False
        if not (_ALARM.set and signal.getsignal(signal.SIGALRM) is _ALARM):  # a target may leave another one
            self._before = signal.signal(signal.SIGALRM, _ALARM)
            self._owner = _ALARM.set = True
        return True

    def __exit__(self, *_: object) -> None:
        if self._owner:
            _ALARM.set = False
            signal.signal(signal.SIGALRM, self._before)


class TimeLimit:
    """Interrupt the block after ``seconds``.

    It works in the main thread of a POSIX process; elsewhere there is no limit.

    A block that swallows the interruption is interrupted again at its end.

    Parameters
    ----------
    seconds : float or None
        No limit if None.
    """

    __slots__ = ("_handler", "_running", "_seconds")

    def __init__(self, seconds: float | None) -> None:
        self._seconds, self._running = seconds, False

    def __enter__(self) -> None:
        if self._seconds is None:
            return
        self._handler = _AlarmSet()
        if self._handler.__enter__():
            self._running, _ALARM.late = True, False
            try:
                signal.setitimer(signal.ITIMER_REAL, self._seconds)
            except BaseException:
                self._running = False
                self._handler.__exit__()
                raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._running:
            return
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            self._handler.__exit__()
        if _ALARM.late and kind is None:
            raise _Hang


class GuardedCall:
    """Turn exceptions and hangs of a target in a block into `TargetError`.

    Parameters
    ----------
    who : str
        What is called, for the message.
    asked : str
        What it is asked for.
    limit : float or None
        A call hangs if it takes more seconds.
    hint : str, optional
        What is added where a call has not the arguments that are taken.

    Raises
    ------
    TargetError
        If the block hangs, or ends the interpreter, or an analyst asks what cannot be an outcome.
    TargetRaised
        If it raises anything else. Of a `StrategyError` the message names who asks the target, not the target.
    """

    __slots__ = ("_asked", "_hint", "_limit", "_seconds", "_who")

    def __init__(self, who: str, asked: str, limit: float | None, hint: str = "") -> None:
        self._hint = hint
        self._who, self._asked, self._seconds, self._limit = who, asked, limit, TimeLimit(limit)

    def __enter__(self) -> None:
        try:
            self._limit.__enter__()
        except _Hang as late:  # before the block has begun
            self.__exit__(_Hang, late, None)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            self._limit.__exit__(kind)
        except _Hang as late:
            error = late
        if error is None or isinstance(error, TargetError):  # by a part of ours that the target is made of: a dialogue
            return
        if isinstance(error, _Hang):
            limit = f"{self._seconds:g}"
            raise TargetError(f"{self._who} did not answer within {limit} s when asked for {self._asked}") from None
        if isinstance(error, StrategyError):  # who asks the target did it
            if not error.error:
                raise TargetError(str(error), public=error.public) from error
            raise TargetRaised(error.error, str(error), public=error.public) from error
        name = type(error).__name__
        what, public = f"{self._who} raised {name}", f"{self._who} raised {show_error(name)}"
        if isinstance(error, SystemExit):
            said = describe_error(error)
            raise TargetError(f"{what}: {said}", public=public) from error
        if not isinstance(error, list_interrupts()):  # also what is no Exception, such as a task that was cancelled
            said, place = describe_error(error), find_raise(error)
            if isinstance(error, TypeError) and not place and "positional argument" in said:
                place = self._hint
            raise TargetRaised(name, f"{what}: {said}{place}", public=public + place) from error


def check_seed(seed: object) -> None:
    """Raise `SpecificationError` unless the seed is an integer of at least 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SpecificationError(f"seed must be an integer of at least 0, got {seed!r}")


def check_limit(limit: float | None) -> None:
    """Raise `SpecificationError` if seconds of a call are less than `LEAST_LIMIT`."""
    if limit is not None and check_positive("limit", limit) < LEAST_LIMIT:
        raise SpecificationError(f"limit must be at least {LEAST_LIMIT:g} s, got {limit!r}")


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
    ahead : Prefetch, optional
        Makes calls before they are asked for.
    scattered : bool
        With ``one_a_call``: the calls of a chunk come in an order that is drawn at random, each after 0 to `DUMMIES`
        others whose outputs are thrown away.

    Attributes
    ----------
    place : Place
        Where the latest draws stand in the order of all.
    refused : TargetRaised or None
        What was raised first, as long as the target never did anything else.
    broken : TargetRaised or None
        What a call for several draws raised, as long as no call for one draw did.
    tails : Tails
        First and last draws on each dataset, and of each call, of all samplers that were made from one.
    """

    def __init__(
        self,
        target: Mechanism,
        seed: int,
        key: str,
        limit: float | None = None,
        one_a_call: bool = False,
        catching: bool = False,
        ahead: Prefetch | None = None,
        scattered: bool = False,
    ):
        check_seed(seed)
        check_limit(limit)
        self.target, self.seed, self.key, self.limit = target, int(seed), key, limit
        self.one_a_call, self.catching, self.ahead, self.scattered = one_a_call, catching, ahead, scattered
        self.place = Place(0, 0, 0)
        self.refused: TargetRaised | None = None
        self.broken: TargetRaised | None = None
        self._answered = self._raised = False
        self._calls = self._drawn = 0
        self.tails = Tails()

    def alone(self) -> Sampler:
        """Draw again from the target, one draw a call.

        Calls are in random order, see ``scattered``.
        """
        return self._join(Sampler(self.target, self.seed, self.key, self.limit, True, self.catching, scattered=True))

    def afresh(self) -> Sampler:
        """Draw again from the target, in calls like those of this sampler."""
        key = f"{self.key}/afresh"
        return self._join(Sampler(self.target, self.seed, key, self.limit, self.one_a_call, self.catching))

    def _join(self, other: Sampler) -> Sampler:
        """Count another sampler's draws among those of this one."""
        other.tails = self.tails
        return other

    def expect(self, *calls: tuple[Any, Call]) -> None:
        """Announce the calls that come next, in order.

        They are datasets, with the draws and keys of `draw`. Nothing depends on it.
        """
        if self.ahead is None:
            return
        if self.one_a_call:
            calls = tuple((data, Call(1, (*call.key, "draw", k))) for data, call in calls for k in range(call.n))
        else:
            calls = tuple((data, part) for data, call in calls for part in parts_of(call))
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
        if self.scattered or (self.one_a_call and n > 1):
            return self._draw_single_calls([data], n, [key])[0].batch
        parts = parts_of(Call(n, key))
        if len(parts) == 1:
            return self._call(data, n, *key)
        place = Place(self._calls, self._drawn, n, tuple(part.n for part in parts))
        with self.limits():
            batch = concatenate_batches([self._call(data, part.n, *part.key) for part in parts])
        self.place = place
        return batch

    def draw_sides(self, x: Any, y: Any, n: int, pair: int, chunk: str | int) -> tuple[Drawn, Drawn]:
        """``n`` outputs on each of two datasets, see `draw_either_way`.

        Those of ``x`` come first, unless the order is drawn at random.
        """
        keys: list[tuple[str | int, ...]] = [(pair, "x", chunk), (pair, "y", chunk)]
        if self.scattered:
            of_x, of_y = self._draw_single_calls([x, y], n, keys)
            return of_x, of_y
        self.expect((x, Call(n, keys[0])), (y, Call(n, keys[1])))
        of_x, of_y = (
            Drawn(*self.draw_either_way(data, n, *key), self.place) for data, key in zip((x, y), keys, strict=True)
        )
        return of_x, of_y

    def limits(self) -> AbstractContextManager[object]:
        """Block in which limiting a call costs less; for many calls."""
        return nullcontext() if self.limit is None else _AlarmSet()

    def _draw_single_calls(self, datasets: Sequence[Any], n: int, keys: Sequence[tuple[str | int, ...]]) -> list[Drawn]:
        """``n`` outputs on each dataset, one a call."""
        turns = np.repeat(np.arange(len(datasets)), n)
        dummies = np.zeros(len(turns), dtype=np.int64)
        if self.scattered:
            order = make_generator(self.seed, self.key, "order", *keys[0])
            turns, dummies = order.permutation(turns), order.integers(DUMMIES + 1, size=len(turns))
        outputs: list[list[Batch]] = [[] for _ in datasets]
        places: list[list[Place]] = [[] for _ in datasets]
        with self.limits():
            for k, before in zip(turns.tolist(), dummies.tolist(), strict=True):
                if before:
                    self._throw_away([datasets[i] for i in order.integers(len(datasets), size=before)], order)
                outputs[k].append(self._call(datasets[k], 1, *keys[k], "draw", len(outputs[k])))
                places[k].append(self.place)
        found = []
        for batches, where in zip(outputs, places, strict=True):
            at = np.array([place.first for place in where], dtype=np.int64)
            found.append(Drawn(concatenate_batches(batches), True, Place(where[0].call, where[0].first, n, (), at)))
        self.place = found[-1].place
        return found

    def _throw_away(self, datasets: Sequence[Any], rng: np.random.Generator) -> None:
        """Calls for one draw each, whose outputs are thrown away, whatever they are."""
        limit = None if self.limit is None else self.limit * len(datasets)
        for _ in datasets:
            self._count(1)
        with GuardedCall("the target", f"{len(datasets)} times 1 draw", limit):
            for data in datasets:
                try:
                    call_target(self.target, data, 1, rng)
                except list_interrupts(_Hang, SystemExit):
                    raise
                except BaseException:  # noqa: BLE001 - whatever it raises is thrown away
                    continue

    def _count(self, n: int) -> None:
        """Note that another call is made."""
        self.place = Place(self._calls, self._drawn, n)
        self._calls, self._drawn = self._calls + 1, self._drawn + n

    def draw_either_way(self, data: Any, n: int, *key: str | int) -> tuple[Batch, bool]:
        """``n`` outputs, and whether they were asked for together.

        False if a call for all of them raised: which draws of a batch did so cannot be seen, so they, and all later
        ones, are drawn one a call. Such outputs may be learned from, but are not to be counted: given that the call for
        all of them did not raise, draws have another distribution. See `Evidence`.
        """
        try:
            return self.draw(data, n, *key), True
        except TargetRaised:
            if not self.catching or self.one_a_call:
                raise
            self.one_a_call = True
            return self.draw(data, n, *key, "alone"), False

    def settled(self, work: Callable[[], T]) -> T:
        """Do work that draws; repeat it where calls raised.

        It is repeated with one draw a call, if a call for several raised.
        """
        try:
            return work()
        except TargetRaised:
            if not self.catching or self.one_a_call:
                raise
            self.one_a_call = True
            return work()

    def reviewed(self, work: Callable[[Sampler], T], alarming: Callable[[T], bool]) -> T:
        """Do work that draws; repeat it where review fails.

        It is repeated without a partner, if it is an alarm that does not stand review.
        """
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
        rng = make_generator(self.seed, self.key, *call.key)
        with GuardedCall("the target", f"{call.n} draws", self.limit, SIGNATURE):
            outputs = call_target(self.target, data, call.n, rng)
        batch = as_batch(outputs, call.n)
        # The target may fill the same array, or the same lists, at its next call; `OneDraw` has copied its outputs.
        if isinstance(batch, np.ndarray):
            return batch.copy("K") if batch is outputs or not batch.flags.owndata else batch
        return batch if isinstance(self.target, OneDraw) else keep_values(batch)

    def _call(self, data: Any, n: int, *key: str | int) -> Batch:
        call = Call(n, key)
        self._count(n)
        try:
            batch = self.ask(data, call) if self.ahead is None else self.ahead.answer(self, data, call)
        except TargetRaised as error:
            if not self._answered and self.refused is None:
                self.refused = error
            if self.catching and n == 1:
                self._raised, self.broken = True, None
                raised: Batch = [Raised(error.error)]
                self.tails.add(data, raised, key)
                return raised
            if not self._raised:
                self.broken = error
            raise
        if not self._answered:
            self._note_answers(batch)
        self.tails.add(data, batch, key)
        return batch

    def _note_answers(self, batch: Batch) -> None:
        """Note whether the target has answered with anything but an exception."""
        raised = [value for value in batch if isinstance(value, Raised)] if isinstance(batch, list) else []
        if len(raised) < len(batch):
            self._answered, self.refused = True, None
        elif self.refused is None and raised:
            first, what = raised[0], f"the target raised {raised[0].error}"
            said = f"{what}: {first.message}" if first.message else what
            public = f"the target raised {show_error(first.error)}{first.place}"
            self.refused = TargetRaised(first.error, said, public=public)
