"""Runs of a target with recorded draws, in this process or in that of the helper of the protocol."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from auditor.errors import SpecificationError, TargetError
from auditor.targets.callables import Mechanism
from auditor.targets.http import HttpTarget
from auditor.targets.process import ProcessTarget
from auditor.targets.protocol import quote_unreadable, read_message
from auditor.targets.raises import describe_error, list_interrupts
from auditor.targets.randomness.calls import ask_once
from auditor.targets.randomness.plain_draws import Replays, plain_draw
from auditor.targets.randomness.signals import Signal, Uncontrolled, raise_caught_signals
from auditor.targets.values import Raised
from auditor.targets.wire_format import data_text

#: By the number of a draw, and places in its value, what is added to the value.
Bumps = Mapping[int, Mapping[int, float]]
#: By the number of a draw, what its value is to be.
Forced = Mapping[int, Sequence[float]]


@dataclass(frozen=True)
class DrawFacts:
    """What is told of one draw.

    Parameters
    ----------
    primitive : str
        What was called, such as "Generator.laplace" or "diffprivlib.Laplace".
    place : str
        File and line of the target's code that asked.
    parameters : mapping of str to float
        Those of its arguments that are numbers.
    shape : sequence of int
        Shape of what it returned.
    values : sequence of float or None
        Numbers that it returned; None if it returned something else, or too many.
    single : bool
        They are floats of less than double precision.
    family : {"laplace", "gaussian", ""}
        Kind of the noise.
    scales : sequence of float
        Its scale, by number.
    given : sequence of float or None
        What the noise was added to; None if that is not known, or no numbers.
    digest : str
        Hash of what it was given; empty if nothing is known of it.
    whole : bool
        The noise is of integers.
    unit : bool
        It is a primitive of a library.
    fresh : bool
        Its variates could not be repeated.
    """

    primitive: str
    place: str
    parameters: Mapping[str, float]
    shape: Sequence[int]
    values: Sequence[float] | None
    single: bool
    family: str
    scales: Sequence[float]
    given: Sequence[float] | None
    digest: str
    whole: bool
    unit: bool
    fresh: bool

    @property
    def noise(self) -> str:
        """Family of the noise, and whether it is of integers."""
        return f"whole {self.family}" if self.whole else self.family


@dataclass
class ReplayRun:
    """Output and draws of one run.

    Parameters
    ----------
    output : object
        What the target returned.
    told : sequence of dict, or of RecordedDraw
        What was recorded: of some runs the output alone is looked at.
    """

    output: Any
    told: Sequence[Any]

    @cached_property
    def draws(self) -> Sequence[DrawFacts]:
        """What a comparison looks at of each draw."""
        return [DrawFacts(**(draw if isinstance(draw, dict) else plain_draw(draw))) for draw in self.told]


class LocalRuns:
    """Runs of a target of this process.

    Parameters
    ----------
    mechanism : Mechanism
        The target.

    Attributes
    ----------
    seconds : float
        What the last run took.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism, self._replays = mechanism, Replays()
        self.seconds = 0.0

    def prepare(self, data: Any) -> None:
        """Call the target once as it is, for what it imports."""
        try:
            ask_once(self._mechanism, data, np.random.default_rng(0))
        except list_interrupts():
            raise
        except BaseException:  # noqa: BLE001 - what it raises is looked at when it is replayed
            return

    def run(self, data: Any, seed: int, bumps: Bumps | None = None, forced: Forced | None = None) -> ReplayRun:
        """Run it on a dataset.

        Parameters
        ----------
        data : dataset
            The dataset.
        seed : int
            Seed of the variates.
        bumps : mapping, optional
            What is added to them.
        forced : mapping, optional
            What they are to be.

        Raises
        ------
        Uncontrolled
            If it cannot be replayed.
        """

        def call(rng: np.random.Generator) -> Any:
            with raise_caught_signals():
                try:
                    output = ask_once(self._mechanism, data, rng)[0]
                except list_interrupts(Signal, SystemExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever it raises is what it does
                    output = Raised(type(error).__name__, describe_error(error))
            return output

        begun = time.monotonic()
        output, draws = self._replays.run(call, seed, bumps, forced)
        self.seconds = time.monotonic() - begun
        return ReplayRun(output, draws)

    def close(self) -> None:
        """Put the sources of randomness back."""
        self._replays.close()


class RemoteRuns:
    """Runs of a target that the helper of the protocol serves.

    See `auditor.targets.helper`.

    Parameters
    ----------
    target : ProcessTarget
        The target.

    Attributes
    ----------
    seconds : float
        What the last run took.
    """

    def __init__(self, target: ProcessTarget) -> None:
        self._target = target
        self.seconds = 0.0

    def prepare(self, data: Any) -> None:
        """Draw once, which starts the process, and see whether it replays.

        Raises
        ------
        SpecificationError
            If it does not.
        """
        with contextlib.suppress(TargetError):  # what it raises is looked at when it is replayed
            self._target(data, 1, np.random.default_rng(0))
        hello = self._target.hello
        if hello is None or not hello.replays:
            raise SpecificationError(
                f"{shlex.join(self._target.command)!r} does not replay: a target must be a Python function of this "
                "process or of an environment (pip:...) that has numpy"
            )

    def run(self, data: Any, seed: int, bumps: Bumps | None = None, forced: Forced | None = None) -> ReplayRun:
        """Run it on a dataset; see `LocalRuns.run`.

        Raises
        ------
        Uncontrolled
            If it cannot be replayed.
        TargetError
            If the answer cannot be read.
        """
        steps = {str(number): list(map(list, places.items())) for number, places in (bumps or {}).items()}
        values = data_text({str(number): list(made) for number, made in (forced or {}).items()})
        with self._target.connected() as (exchange, numbers):
            number = next(numbers)
            asked = f'"data":{data_text(data)},"seed":{seed},"bumps":{json.dumps(steps)},"forced":{values}'
            begun = time.monotonic()
            raw = exchange(f'{{"id":{number},"replay":{{{asked}}}}}\n'.encode("ascii"))
            self.seconds = time.monotonic() - begun
            told = read_message(raw, number).get("replay")
            if not isinstance(told, dict):
                raise quote_unreadable("the target answered without a replay", raw)
            if "refused" not in told:
                return ReplayRun(told.get("output"), _read_draws(told.get("draws"), raw))
        raise Uncontrolled(str(told["refused"])[:500])

    def close(self) -> None:
        """Put nothing back: the helper does when asked for draws."""


def _read_draws(told: Any, raw: bytes) -> list[dict[str, Any]]:
    names = {f.name for f in fields(DrawFacts)}
    if not isinstance(told, list) or not all(isinstance(draw, dict) and set(draw) == names for draw in told):
        raise quote_unreadable("the target's recorded draws cannot be read", raw)
    return told


@contextmanager
def opened_runs(mechanism: Mechanism) -> Iterator[LocalRuns | RemoteRuns]:
    """Make runs of a target possible for a while.

    Parameters
    ----------
    mechanism : Mechanism
        The target.

    Raises
    ------
    SpecificationError
        If it is a service, whose randomness is out of reach.
    """
    if isinstance(mechanism, HttpTarget):
        raise SpecificationError("a service cannot be replayed: its random numbers are drawn out of reach")
    runs = RemoteRuns(mechanism) if isinstance(mechanism, ProcessTarget) else LocalRuns(mechanism)
    try:
        yield runs
    finally:
        runs.close()
