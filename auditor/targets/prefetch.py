"""Two processes for one claim: calls are made ahead of time by a process that has nothing else to do.

The draws of a call are a function of dataset, number and key alone, so that it does not matter who makes it, nor when.
A claim says which calls come next (`Sampler.expect`); a partner makes some of them while the claim's own process makes
the others. A partner is a process that waits in a folder, where whoever wants one takes it; it serves one claim until
that ends, and waits again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from auditor.errors import TargetError
from auditor.targets.outputs import Batch, Raised, hash_outputs
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import Call, Sampler

#: Seconds that the calls of a claim have taken before a partner is looked for, and between two looks; arbitrary.
PATIENCE, LOOK = 0.3, 0.2
#: Seconds that expected calls must be going to take: below that, passing draws on costs more than it gives.
WORTHWHILE = 0.003
#: Calls that a partner has at a time: one that it makes, and the next.
DEPTH = 2
#: Seconds that a call takes at most that a partner has to repeat before it is believed, if there are such calls.
REPEATED = 0.5
#: A partner that takes so many times as long as the call should, and so many seconds more, is given up.
SLOWER, GRACE = 10.0, 5.0
#: Part of the time of all calls that repeating those of a partner may take before a claim is called violated.
REVIEWED = 0.1
#: Whether this system has what processes meet by.
POSSIBLE = hasattr(socket, "AF_UNIX")
_IDLE, _OVER = ".idle", "over"


class Request(NamedTuple):
    """A request to a partner.

    The dataset comes along when it is new to the partner.
    """

    number: int
    dataset: int
    data: Any
    call: Call
    about: tuple[int, str, float | None]  # seed, key and limit of the sampler


@dataclass(frozen=True)
class Meeting:
    """Where partners wait.

    Parameters
    ----------
    folder : str
        A folder of this run alone, which others may not enter.
    parent : int
        The process that starts the partners, by default this one: they end with it, also if it ends before they begin.
    """

    folder: str
    parent: int = field(default_factory=os.getpid)

    def help(self, find: Callable[[Any], Any]) -> None:
        """Serve claims with calls until `dismiss`.

        It ends with the process that started it, and then removes the folder.

        Parameters
        ----------
        find : callable
            Gives the target of a word, see `Ahead`.
        """
        place = Path(self.folder)
        while True:
            with socket.socket(socket.AF_UNIX) as listening:
                name = place / secrets.token_hex(8)
                listening.bind(str(name))
                listening.listen(1)
                listening.settimeout(LOOK)
                name.rename(name.with_suffix(_IDLE))
                if (place / _OVER).exists():  # it is asked after the name is shown: `dismiss` sees one or the other
                    return
                asking = None
                while asking is None:
                    with contextlib.suppress(TimeoutError):
                        asking, _ = listening.accept()
                    if os.getppid() != self.parent:
                        shutil.rmtree(place, ignore_errors=True)
                    if not place.exists():
                        return
            asking.setblocking(True)
            with Connection(asking.detach()) as connection, contextlib.suppress(EOFError, OSError):
                word = connection.recv()
                if word is None:
                    return
                _serve_calls(connection, find(word))

    def take(self) -> Connection | None:
        """Take a connection to a waiting partner, or None."""
        for waiting in sorted(Path(self.folder).glob(f"*{_IDLE}")):
            taken = waiting.with_suffix(".taken")
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
                waiting.rename(taken)  # by one only
                asking.connect(str(taken))
                taken.unlink()
                return Connection(asking.detach())
        return None

    def dismiss(self) -> None:
        """End all partners.

        Those that wait end now, the others as soon as they would wait again.
        """
        Path(self.folder, _OVER).touch()
        while (waiting := self.take()) is not None:
            with contextlib.suppress(OSError), waiting:
                waiting.send(None)


@keep_apart()
def _serve_calls(asking: Connection, target: Any) -> None:
    """Make calls until the connection is closed."""
    known: dict[int, Any] = {}
    asking.send(None)  # ready
    while True:
        request: Request = asking.recv()
        if request.data is not None:
            known[request.dataset] = request.data
        batch: Batch | None = None
        # Whatever goes wrong goes wrong again where it can be told: in the claim's own process.
        with contextlib.suppress(Exception):
            batch = Sampler(target, *request.about).ask(known.get(request.dataset), request.call)
        if isinstance(batch, list) and any(isinstance(output, Raised) for output in batch):
            batch = None
        try:
            asking.send((request.number, batch))
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - outputs that cannot be pickled
            asking.send((request.number, None))


@dataclass
class Made:
    """Answer of a call: a batch, or the error that it raised."""

    batch: Batch | None = None
    error: TargetError | None = None

    def settled(self) -> Batch:
        """The batch; raises if there is none."""
        if self.error is not None:
            raise self.error
        assert self.batch is not None
        return self.batch


@dataclass
class Ahead:
    """Calls of one claim, made before they are needed.

    A partner makes them, or this process.

    Parameters
    ----------
    meeting : callable
        Gives a connection to a partner that waits, or None.
    word : object
        Says the target to the partner.
    datasets : sequence
        The datasets of the calls that a partner may make.

    Notes
    -----
    Valid because: nothing here chooses what is drawn or what is bet, only where. For a target whose draws are a
    function of the generator, as all randomness from ``rng`` makes them, a call gives the same outputs anywhere. That
    is not taken on trust. On each dataset a partner first repeats a call that was made here; if one output differs, it
    is not used any more. What it cannot make without an exception is made here. Successive chunks give it the one side
    and the other in turn, so that a peculiarity of its process is on both. Before a claim is called violated some of
    the calls that it made are repeated here (`reviewed`), and if one differs all is drawn again without a partner.
    """

    meeting: Callable[[], Connection | None]
    word: Any
    datasets: Sequence[Any]
    seconds: float = 0.0
    draws: int = 0
    _partner: Connection | None = None
    _ready: bool = False
    _refused: bool = False
    _looked: float = -LOOK
    _turn: bool = False
    _numbers: int = 0
    _believed: set[int] = field(default_factory=set)
    _expected: OrderedDict[Call, Any] = field(default_factory=OrderedDict)
    _sent: dict[int, tuple[int, Any, Call]] = field(default_factory=dict)
    _made: dict[Call, Made] = field(default_factory=dict)
    _own: dict[int, tuple[Any, Call, bytes]] = field(default_factory=dict)
    _used: list[tuple[Any, Call, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index = {id(data): k for k, data in enumerate(self.datasets)}

    def close(self) -> None:
        """Let the partner go."""
        if self._partner is not None:
            self._partner.close()
        self._partner, self._ready = None, False
        self._expected.clear()
        self._sent.clear()
        self._made.clear()

    def expect(self, sampler: Sampler, calls: Sequence[tuple[Any, Call]]) -> None:
        """Announce the calls that come next, in order.

        Others that were expected are forgotten.

        Parameters
        ----------
        sampler : Sampler
            Makes the calls here.
        calls : sequence of (dataset, Call)
            The calls, each with its dataset.
        """
        wanted = {call for _, call in calls}
        self._made = {call: made for call, made in self._made.items() if call in wanted}
        self._expected.clear()
        if self._refused or self.seconds < PATIENCE:
            return
        if self._partner is None:
            self._look_for_partner()
        self._take_batches()
        if len(calls) > 1 and self._seconds_for(sum(call.n for _, call in calls)) >= WORTHWHILE:
            begun = {*self._made, *(call for _, _, call in self._sent.values())}
            self._expected.update((call, data) for data, call in calls if call not in begun)
            self._turn = not self._turn
        self._hand_on(sampler)

    def answer(self, sampler: Sampler, data: Any, call: Call) -> Batch:
        """Outputs of a call, whoever made it.

        It raises what the call raises.

        Parameters
        ----------
        sampler : Sampler
            Makes the call here, if it has to be.
        data : dataset
            What is drawn from.
        call : Call
            Number of draws and key.
        """
        while True:
            self._take_batches()
            self._hand_on(sampler)
            made = self._made.pop(call, None)
            if made is not None:
                return made.settled()
            sent = next((at for at in self._sent.values() if at[2] == call), None)
            if sent is None or self._partner is None:
                self._expected.pop(call, None)
                return self._make(sampler, data, call).settled()
            if self._expected:  # while the partner is at it, the next one
                following, other = self._expected.popitem(last=False)
                self._made[following] = self._make(sampler, other, following)
            elif not self._partner.poll(GRACE + SLOWER * self._seconds_for(sum(at[2].n for at in self._sent.values()))):
                self._give_up()

    def reviewed(self, sampler: Sampler) -> bool:
        """Repeat a partner's calls here, and compare the outputs.

        Those of most draws come first.

        Raises
        ------
        TargetError
            If such a call fails here.
        """
        end = time.monotonic() + REVIEWED * self.seconds
        for data, call, outputs in sorted(self._used, key=lambda used: -used[1].n):
            if _digest(sampler.ask(data, call)) != outputs:
                return False
            if time.monotonic() > end:
                break
        return True

    def _make(self, sampler: Sampler, data: Any, call: Call) -> Made:
        """Make a call here."""
        begun = time.monotonic()
        try:
            batch = sampler.ask(data, call)
        except TargetError as error:
            return Made(error=error)
        self.seconds += time.monotonic() - begun
        self.draws += call.n
        k = self._index.get(id(data))
        if not self._refused and k is not None and k not in self._believed and not self._sent:
            before = self._own.get(k)
            if before is None or before[1].n < call.n <= REPEATED / self._seconds_for(1):
                self._own[k] = data, call, _digest(batch)
        return Made(batch)

    def _seconds_for(self, draws: int) -> float:
        """Seconds that draws take here."""
        return self.seconds / max(self.draws, 1) * draws

    def _look_for_partner(self) -> None:
        """Look for a partner, from time to time."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        self._partner = self.meeting()
        if self._partner is not None:
            try:
                self._partner.send(self.word)
            except OSError:
                self._give_up()

    def _hand_on(self, sampler: Sampler) -> None:
        """Give the partner what it has room for; one call at least is left to be made here."""
        if not self._ready:
            return
        try:
            if not self._sent:  # it waits, and will read a dataset, however large, at once
                new = next((k for k in self._own if k not in self._believed), None)
                if new is not None:
                    data, call, _ = self._own[new]
                    self._send(sampler, new, data, call, new=True)
            while len(self._sent) < DEPTH and len(self._expected) > 1:
                call = next(reversed(self._expected) if self._turn else iter(self._expected))
                data = self._expected[call]
                k = self._index.get(id(data))
                if k not in self._believed:
                    return
                del self._expected[call]
                self._send(sampler, k, data, call)
        except Exception:  # noqa: BLE001 - it went away, or a dataset cannot be pickled: it is done without
            self._give_up()

    def _send(self, sampler: Sampler, k: int, data: Any, call: Call, new: bool = False) -> None:
        assert self._partner is not None
        self._numbers += 1
        about = (sampler.seed, sampler.key, sampler.limit)
        self._partner.send(Request(self._numbers, k, data if new else None, call, about))
        self._sent[self._numbers] = k, data, call

    def _take_batches(self) -> None:
        """Take what the partner has made."""
        try:
            while self._partner is not None and (self._sent or not self._ready) and self._partner.poll(0):
                said = self._partner.recv()
                if not self._ready:
                    self._ready = True
                    continue
                number, batch = said
                k, data, call = self._sent.pop(number)
                if k not in self._believed:
                    if batch is None or _digest(batch) != self._own[k][2]:
                        self._give_up()
                        return
                    self._believed.add(k)
                elif batch is not None:
                    self._made[call] = Made(batch)
                    self._used.append((data, call, _digest(batch)))
        except Exception:  # noqa: BLE001 - it went away, or what it sent cannot be read here
            self._give_up()

    def _give_up(self) -> None:
        """Go on without a partner, for good: results do not depend on it."""
        made = dict(self._made)
        self.close()
        self._made, self._refused = made, True


def _digest(batch: Batch) -> bytes:
    """Short form of outputs: those of equal form are equal, but with probability 2^-64 each."""
    shape = batch.shape if isinstance(batch, np.ndarray) else len(batch)
    return hashlib.blake2b(repr((type(batch).__name__, shape)).encode() + hash_outputs(batch).tobytes()).digest()
