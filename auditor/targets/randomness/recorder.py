"""Draws of a call, recorded with their places, and drawn again with the same variates."""

from __future__ import annotations

import inspect
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from auditor.targets.randomness.calls import CallHolder, StandInGenerator
from auditor.targets.randomness.patching import refuse_call, replace_sources
from auditor.targets.randomness.signals import Uncontrolled

#: Draws of one call at most; more have no use for a comparison call by call.
MOST_DRAWS = 100_000
_HERE = __name__.rpartition(".")[0] + "."


@dataclass(frozen=True)
class RecordedDraw:
    """One draw of random numbers.

    Parameters
    ----------
    primitive : str
        What was called, such as "Generator.laplace".
    parameters : mapping
        Its arguments by name, with defaults.
    value : object
        What it returned.
    place : str
        File and line of the target's code that asked.
    """

    primitive: str
    parameters: Mapping[str, Any]
    value: Any
    place: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return np.shape(self.value) if isinstance(self.value, np.ndarray | int | float | np.generic) else ()


@dataclass
class Tape:
    """Draws of one call, in order.

    Each draw has its generator, which is seeded by the number of the draw: another call of the same primitive at
    the same number gets the same variates, also with other parameters.

    Parameters
    ----------
    seed : int
        Seed of all draws.
    bumps : mapping of int to callable, optional
        By the number of a draw, what is done to its value.
    """

    seed: int
    bumps: Mapping[int, Callable[[Any], Any]] = field(default_factory=dict)
    draws: list[RecordedDraw] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(self.seed)))
        self._state = self._rng.bit_generator.state

    def _generator_of(self, number: int) -> np.random.Generator:
        """Generator of a draw: its number is part of the counter of Philox, so that streams do not meet."""
        bits = self._rng.bit_generator
        state = dict(self._state)
        state["state"] = {"counter": np.array([0, 0, number, 0], dtype=np.uint64), "key": self._state["state"]["key"]}
        bits.state = state
        return self._rng

    def record(self, primitive: str, call: Callable[[np.random.Generator], Any], parameters: Mapping[str, Any]) -> Any:
        """Draw, and record it.

        Parameters
        ----------
        primitive : str
            What was called.
        call : callable
            Draws from a generator.
        parameters : mapping
            Its arguments.
        """
        number = len(self.draws)
        if number >= MOST_DRAWS:
            raise Uncontrolled(f"it draws random numbers more than {MOST_DRAWS:,} times")
        value = call(self._generator_of(number))
        if number in self.bumps:
            value = self.bumps[number](value)
        self.draws.append(RecordedDraw(primitive, dict(parameters), value, _find_place()))
        return value


def _find_place() -> str:
    """File and line of the innermost frame outside this package and numpy."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith((_HERE, "numpy.")) and name not in ("random", "secrets", "numpy"):
            break
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


class RecordingGenerator(StandInGenerator):
    """A generator of numpy whose draws are recorded.

    Parameters
    ----------
    current : callable
        Gives the tape of the current call.
    """

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            return super().__getattribute__(name)
        if name == "spawn":
            return lambda n: [self] * n
        method = getattr(np.random.Generator, name)
        if not callable(method):
            raise Uncontrolled(f"numpy's Generator.{name} is not recorded")
        tape = self._current

        def draw(*values: Any, **named: Any) -> Any:
            return tape().record(
                f"Generator.{name}",
                lambda rng: getattr(rng, name)(*values, **named),
                _name_values(method, values, named),
            )

        return draw


def _name_values(function: Any, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, with defaults where the signature tells them."""
    parameters = _list_parameters(function)
    found = dict(parameters)
    names = list(parameters)
    found.update(zip(names, values, strict=False))
    found.update({str(k): value for k, value in enumerate(values[len(names) :])})
    return found | dict(named)


@cache
def _list_parameters(function: Any) -> dict[str, Any]:
    """Defaults of a function's parameters, in order; None where there is none."""
    try:
        listed = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {p.name: None if p.default is p.empty else p.default for p in listed if p.kind in kinds and p.name != "self"}


class DrawRecorder(CallHolder[Tape]):
    """Stand-in for all sources of randomness, which records.

    Attributes
    ----------
    rng : RecordingGenerator
        Stands in for a generator of numpy.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rng = RecordingGenerator(self.current)

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Replace the sources of this process, see `replace_sources`."""
        legacy = {name: self._legacy(name) for name in dir(np.random.RandomState) if not name.startswith("_")}
        python = {name: self._python(name) for name in dir(random.Random) if not name.startswith("_")}
        python |= {"randbelow": self._python("randrange", "secrets.randbelow")}
        python |= {"randbits": self._python("getrandbits", "secrets.randbits")}
        python |= {"token_bytes": self._python("randbytes", "secrets.token_bytes")}
        with replace_sources(self.rng, legacy, python):
            yield

    def _legacy(self, name: str) -> Callable[..., Any]:
        method = getattr(np.random.RandomState, name)
        if name in ("seed", "set_state", "get_state"):
            return refuse_call("seeds numpy.random itself")

        def draw(*values: Any, **named: Any) -> Any:
            def call(rng: np.random.Generator) -> Any:
                return getattr(np.random.RandomState(int(rng.integers(2**32))), name)(*values, **named)

            return self.current().record(f"numpy.random.{name}", call, _name_values(method, values, named))

        return draw

    def _python(self, name: str, said: str = "") -> Callable[..., Any]:
        method = getattr(random.Random, name)
        if name in ("seed", "setstate", "getstate"):
            return refuse_call("seeds the module random itself")

        def draw(*values: Any, **named: Any) -> Any:
            def call(rng: np.random.Generator) -> Any:
                return getattr(random.Random(int(rng.integers(2**63))), name)(*values, **named)

            return self.current().record(said or f"random.{name}", call, _name_values(method, values, named))

        return draw
