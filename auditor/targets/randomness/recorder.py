"""Draws of a call, recorded with their places, and drawn again with the same variates."""

from __future__ import annotations

import base64
import hashlib
import inspect
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .calling_lines import find_place
from .holders import CallHolder, StandInGenerator, StandInState
from .patching import refuse_call, replace_sources
from .signals import Uncontrolled

#: Draws of one call at most; more have no use for a comparison call by call.
MOST_DRAWS = 100_000


@dataclass(frozen=True)
class PrimitiveNoise:
    """What is known of a draw of a library's noise primitive.

    Parameters
    ----------
    given : object
        What noise was added to, or a whole dataset.
    family : {"laplace", "gaussian", ""}
        Kind of the noise that is added; empty if it is none of these, or not added.
    scale : float
        Its scale; for geometric noise of ratio ``exp(-1 / scale)``.
    whole : bool
        It is added to integers, and is one.
    """

    given: Any
    family: str = ""
    scale: float = 0.0
    whole: bool = False


class RecordedDraw(NamedTuple):
    """One draw of random numbers.

    Parameters
    ----------
    primitive : str
        What was called, such as "Generator.laplace".
    value : object
        What it returned.
    place : str
        File and line of the target's code that asked.
    call : tuple
        What was called, or None, with its arguments, by position and by name.
    noise : PrimitiveNoise, optional
        Of a library's primitive.
    fresh : bool
        Its variates could not be repeated, and are new ones.
    """

    primitive: str
    value: Any
    place: str
    call: tuple[Any, Sequence[Any], Mapping[str, Any]]
    noise: PrimitiveNoise | None = None
    fresh: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """Arguments by name, with defaults where the signature tells them."""
        return name_values(*self.call)


#: Noise of libraries' primitives by number and name: what it was added to, its facts, and what came out.
Kept = dict[tuple[int, str], tuple[PrimitiveNoise, Any]]


@dataclass
class Tape:
    """Draws of one call, in order.

    Each draw has a stream of its own: the seed is the key of Philox, and the number of the draw a part of its counter.
    So another call of the same primitive at the same number gets the same variates, also with other parameters. Draws
    that a library's primitive makes inside are not recorded by themselves.

    Parameters
    ----------
    seed : int
        Seed of all draws.
    bumps : mapping of int to mapping of int to float, optional
        By the number of a draw, and places in its value in C order, what is added to the value.
    forced : mapping of int to sequence of float, optional
        By the number of a draw, what its value is to be, in C order.
    kept : dict, optional
        Noise of primitives that draw outside Python, as earlier calls with this seed have drawn it.
    """

    seed: int
    bumps: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    forced: Mapping[int, Sequence[float]] = field(default_factory=dict)
    kept: Kept = field(default_factory=dict)
    draws: list[RecordedDraw] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._key = _key_of(self.seed)
        self._inside: np.random.Generator | None = None
        self._nested = 0
        self._altered = bool(self.bumps or self.forced)

    def record(
        self,
        primitive: str,
        call: Callable[[np.random.Generator], Any],
        function: Any = None,
        values: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        """Draw, and record it.

        Parameters
        ----------
        primitive : str
            What was called.
        call : callable
            Draws from a generator.
        function : callable, optional
            What was called, for the names of its parameters.
        values, named
            Its arguments.
        """
        if self._inside is not None:
            self._nested += 1
            return call(self._inside)
        draws = self.draws
        number = len(draws)
        if number >= MOST_DRAWS:
            self._count()
        _KEY[0], _KEY[1] = self._key
        _COUNTER[2] = number
        _BITS.state = _STATE
        value = call(_RNG)
        if self._altered:
            value = self._alter(number, value)
        draws.append(RecordedDraw(primitive, value, find_place(), (function, values, named or {})))
        return value

    def record_unit(
        self, primitive: str, call: Callable[[], Any], parameters: Mapping[str, Any], noise: PrimitiveNoise
    ) -> Any:
        """Record a draw from a primitive that draws in Python.

        What it draws inside is not recorded.

        Parameters
        ----------
        primitive : str
            What was called.
        call : callable
            Calls it.
        parameters : mapping
            Its parameters, by name.
        noise : PrimitiveNoise
            What is known of its noise.
        """
        if self._inside is not None:
            return call()
        number, before = self._count(), self._nested
        bits = np.random.Philox(counter=[0, 0, number, 0], key=self._key)
        self._inside = np.random.Generator(bits)
        try:
            value = call()
        finally:
            self._inside = None
        if self._nested == before:  # it draws from a generator of its own, which is not replaced, or not at all
            return value
        value = self._alter(number, value)
        self.draws.append(RecordedDraw(primitive, value, find_place(), (None, (), parameters), noise))
        return value

    def record_native(
        self, primitive: str, call: Callable[[], Any], parameters: Mapping[str, Any], noise: PrimitiveNoise
    ) -> Any:
        """Record a draw from a primitive that draws outside Python.

        Its noise is that of earlier calls with this seed: what came out, less what it was added to.

        Parameters
        ----------
        primitive, call, parameters, noise
            See `record_unit`.
        """
        if self._inside is not None:
            self._nested += 1
            return call()
        number, fresh = self._count(), False
        earlier = self.kept.get((number, primitive))
        value = None if earlier is None else _repeat_noise(*earlier, noise)
        if value is None:
            value, fresh = call(), earlier is not None and number not in self.forced
            if earlier is None:
                self.kept[number, primitive] = noise, value
        value = self._alter(number, value)
        self.draws.append(RecordedDraw(primitive, value, find_place(), (None, (), parameters), noise, fresh))
        return value

    def _count(self) -> int:
        number = len(self.draws)
        if number >= MOST_DRAWS:
            raise Uncontrolled(f"it draws random numbers more than {MOST_DRAWS:,} times")
        return number

    def _alter(self, number: int, value: Any) -> Any:
        if number in self.forced:
            value = replace_value(value, self.forced[number])
        return bump_value(value, self.bumps[number]) if number in self.bumps else value


#: The stream that all draws come from, whose state is set before each; seeding one a call takes longer than drawing.
_BITS: Any = np.random.Philox(0)
_RNG = np.random.Generator(_BITS)
_COUNTER, _KEY = np.zeros(4, dtype=np.uint64), np.zeros(2, dtype=np.uint64)
_STATE: dict[str, Any] = {**_BITS.state, "state": {"counter": _COUNTER, "key": _KEY}}


def _key_of(seed: int) -> tuple[int, int]:
    """Key of a seed's streams: other keys of Philox, and other counters, give other streams."""
    if seed < 1 << 64:
        return seed, 0
    first, second = np.random.SeedSequence(seed).generate_state(2, np.uint64).tolist()
    return first, second | 1


def _repeat_noise(before: PrimitiveNoise, value: Any, now: PrimitiveNoise) -> Any:
    """What comes out with the noise of an earlier call; None if that is not known."""
    if digest_of(before.given) == digest_of(now.given) and (before.family, before.scale) == (now.family, now.scale):
        return list(value) if isinstance(value, list) else value
    if not now.family or now.family != before.family or now.whole != before.whole:
        return None
    if now.whole and now.scale != before.scale:
        return None
    if np.shape(before.given) != np.shape(now.given):
        return None
    noise = np.asarray(value) - np.asarray(before.given)
    out = np.asarray(now.given) + (noise if now.whole else noise * (now.scale / before.scale))
    return out.tolist()


def digest_of(value: Any) -> str:
    """Hash of a value; equal values have equal ones."""
    content = value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else repr(value).encode()
    return hashlib.sha256(content).hexdigest()


def bump_value(value: Any, steps: Mapping[int, float]) -> Any:
    """Add to numbers of a value.

    An array or a tensor is changed itself, anything else is copied.

    Parameters
    ----------
    value : object
        Number, list of numbers, array or tensor; anything else stays as it is.
    steps : mapping of int to float
        What is added, by places in C order.
    """
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):  # a tensor of torch
        flat = value.detach().view(-1)
        for place, step in steps.items():
            flat[place] += step
        return value
    if isinstance(value, np.ndarray):
        for place, step in steps.items():
            value.flat[place] += step
        return value
    if isinstance(value, list):
        return [element + steps.get(place, 0) for place, element in enumerate(value)]
    return value + steps.get(0, 0) if isinstance(value, int | float | np.number) else value


def replace_value(value: Any, numbers: Sequence[float]) -> Any:
    """Another value of the same form.

    Parameters
    ----------
    value : object
        Number, list of numbers, array or tensor; anything else stays as it is, and so does one of another size.
    numbers : sequence of float
        The numbers of the other value, in C order.
    """
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):  # a tensor of torch
        flat = value.detach().view(-1)
        if len(flat) == len(numbers):
            for place, number in enumerate(numbers):
                flat[place] = number
        return value
    if isinstance(value, np.ndarray):
        if value.size == len(numbers):
            value.flat[:] = numbers
        return value
    if isinstance(value, list) and len(value) == len(numbers):
        return [type(old)(new) for old, new in zip(value, numbers, strict=True)]
    if isinstance(value, int | float | np.number) and len(numbers) == 1:
        kind: Any = type(value)
        return kind(numbers[0])
    return value


class RecordingGenerator(StandInGenerator):
    """A generator of numpy whose draws are recorded.

    Parameters
    ----------
    current : callable
        Gives the tape of the current call.
    """

    def __init__(self, current: Callable[[], Tape]) -> None:
        super().__init__(current)
        for name in dir(np.random.Generator):  # a method of the object is found sooner than one by a hook
            if not name.startswith("_") and callable(getattr(np.random.Generator, name)):
                setattr(self, name, _recorded_method(self, name))

    @property
    def bit_generator(self) -> Any:
        """Numpy's source of bits, which is not given out.

        Raises
        ------
        Uncontrolled
            Always.
        """
        raise Uncontrolled("numpy's Generator.bit_generator is not recorded")


def _recorded_method(rng: RecordingGenerator, name: str) -> Callable[..., Any]:
    """A method of numpy's generator that records."""
    if name == "spawn":
        return lambda n: [rng] * n
    method: Any = getattr(np.random.Generator, name)
    tape, primitive = rng._current, f"Generator.{name}"

    def draw(*values: Any, **named: Any) -> Any:
        return tape().record(primitive, lambda own: method(own, *values, **named), method, values, named)

    return draw


def name_values(function: Any, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, with defaults where the signature tells them.

    Parameters
    ----------
    function : callable or None
        What was called.
    values, named
        Its arguments.
    """
    parameters = _list_parameters(function)
    found = dict(parameters)
    if values:
        found.update(zip(parameters, values, strict=False))
        for k in range(len(parameters), len(values)):
            found[str(k)] = values[k]
    found.update(named)
    return found


@cache
def _list_parameters(function: Any) -> dict[str, Any]:
    """Defaults of a function's parameters, in order; None where there is none."""
    try:
        listed = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {p.name: None if p.default is p.empty else p.default for p in listed if p.kind in kinds and p.name != "self"}


class _Stream(random.Random):
    """Python's generator on top of one of numpy."""

    source: np.random.Generator
    gauss_next: float | None

    def random(self) -> float:
        return self.source.random()

    def getrandbits(self, k: int, /) -> int:
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        return int.from_bytes(self.source.bytes((k + 7) // 8)) >> (-k % 8)


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
        self._stream = _Stream(0)

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Replace the sources of this process, and libraries' primitives.

        See `replace_sources`.
        """
        from .units import find_units  # which imports this module

        legacy = {name: self._legacy(name) for name in dir(np.random.RandomState) if not name.startswith("_")}
        python = {name: self._python(name) for name in dir(random.Random) if not name.startswith("_")}
        python |= {"randbelow": self._python("randrange", "secrets.randbelow")}
        python |= {"randbits": self._python("getrandbits", "secrets.randbits")}
        python |= {"token_bytes": self._bytes("secrets.token_bytes", bytes)}
        python |= {"token_hex": self._bytes("secrets.token_hex", bytes.hex)}
        python |= {"token_urlsafe": self._bytes("secrets.token_urlsafe", _as_url)}
        python |= {"uuid4": self._bytes("uuid.uuid4", lambda drawn: uuid.UUID(bytes=drawn, version=4), 16)}
        state = StandInState(legacy)
        with replace_sources(self.rng, legacy, python, state=state, more=find_units(self.current)):
            yield

    def _legacy(self, name: str) -> Callable[..., Any]:
        method: Any = getattr(np.random.RandomState, name)
        if name in ("seed", "set_state", "get_state"):
            return refuse_call("seeds numpy.random itself")
        primitive = f"numpy.random.{name}"

        def draw(*values: Any, **named: Any) -> Any:
            def call(rng: np.random.Generator) -> Any:
                return method(np.random.RandomState(rng.bit_generator), *values, **named)

            return self.current().record(primitive, call, method, values, named)

        return draw

    def _python(self, name: str, said: str = "") -> Callable[..., Any]:
        method: Any = getattr(_Stream, name)
        if name in ("seed", "setstate", "getstate"):
            return refuse_call("seeds the module random itself")
        primitive, stream = said or f"random.{name}", self._stream

        def draw(*values: Any, **named: Any) -> Any:
            def call(rng: np.random.Generator) -> Any:
                stream.source, stream.gauss_next = rng, None
                return method(stream, *values, **named)

            return self.current().record(primitive, call, method, values, named)

        return draw

    def _bytes(self, primitive: str, form: Callable[[bytes], Any], length: int = 32) -> Callable[..., Any]:
        """A function that returns random bytes in some form, 32 of them where no number is asked for."""

        def draw(nbytes: int | None = None) -> Any:
            size = length if nbytes is None else nbytes
            return self.current().record(primitive, lambda rng: form(rng.bytes(size)), None, (size,))

        return draw


def _as_url(drawn: bytes) -> str:
    return base64.urlsafe_b64encode(drawn).rstrip(b"=").decode("ascii")
