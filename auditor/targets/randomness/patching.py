"""Sources of randomness of this process, replaced while a target is called."""

from __future__ import annotations

import _thread
import builtins
import gc
import io
import multiprocessing.process
import operator
import os
import random
import secrets
import subprocess
import sys
import threading
import types
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .signals import Uncontrolled

#: An attribute that is replaced: its owner, its name, and its substitute.
Substitute = tuple[Any, str, Any]
#: Takes a seed in words.
NoteSeed = Callable[[str], None]
#: Classes of ``numpy.random`` that take a seed.
_SEEDED = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")
#: Files that give random bytes of the system.
_DEVICES = ("/dev/urandom", "/dev/random", "/dev/hwrng", "/proc/sys/kernel/random/uuid")
_UNSEEDED = "it makes a generator of numpy without a seed, which is not followed"
#: In the place of what was there: an inherited attribute, which is deleted afterwards.
_INHERITED = object()


def _forget(_: str) -> None:
    """Note no seed."""


def refuse_call(what: str) -> Callable[..., Any]:
    """Make a function that refuses to be called.

    Parameters
    ----------
    what : str
        What the target does by calling it, as in "starts a thread".
    """

    def refuse(*_: Any, **__: Any) -> Any:
        raise Uncontrolled(f"it {what}")

    return refuse


@contextmanager
def replace_sources(
    rng: np.random.Generator,
    legacy: Mapping[str, Callable[..., Any]],
    python: Mapping[str, Callable[..., Any]],
    units: Sequence[tuple[Callable[..., Any], Callable[..., Any]]] = (),
    *,
    state: np.random.RandomState,
    more: Iterable[Substitute] = (),
    note_seed: NoteSeed = _forget,
) -> Iterator[None]:
    """Replace the sources of randomness of this process for a while.

    Functions that a module has imported by name are replaced there too, and so are generators that are variables of a
    module. What an object holds is not found, but for generators of the system (``random.SystemRandom``). A generator
    that is made without a seed is refused, but for those of ``numpy.random.default_rng`` and of ``RandomState``, and so
    are threads, processes and files of random bytes.

    Parameters
    ----------
    rng : numpy.random.Generator
        For generators of numpy.
    legacy : mapping of str to callable
        For functions of ``numpy.random`` and methods of its RandomState; others are refused.
    python : mapping of str to callable
        For functions of the modules ``random`` and ``secrets`` and methods of generators of Python.
    units : sequence of tuple of callable
        Further functions with their substitutes.
    state : RandomState
        For generators of numpy's older kind, also that of ``numpy.random`` itself.
    more : iterable of Substitute
        Further attributes.
    note_seed : callable
        Takes each seed, in words, that is given to a generator.
    """
    changes = list(_changes(rng, legacy, python, units, state, more, note_seed))
    for owner, name, new, _ in changes:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, _, old in reversed(changes):
            if old is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


def _substitutes(
    rng: np.random.Generator,
    legacy: Mapping[str, Callable[..., Any]],
    python: Mapping[str, Callable[..., Any]],
    state: np.random.RandomState,
    note: NoteSeed,
) -> Iterator[Substitute]:
    """What is replaced: owner, name and substitute."""
    for name in dir(np.random):
        old = getattr(np.random, name)
        if name.startswith("_") or isinstance(old, types.ModuleType) or not callable(old):
            continue
        if isinstance(old, type) and name not in _SEEDED:
            continue
        if name == "default_rng":
            yield np.random, name, _seeded_by(old, note, rng)
        elif isinstance(old, type):
            yield np.random, name, _make_noting(old, note)
        else:
            yield np.random, name, legacy.get(name) or refuse_call(f"calls numpy.random.{name}, which is not followed")
    yield np.random.mtrand, "_rand", state
    yield from _seedings(state, note)
    for name in dir(random):
        old = getattr(random, name)
        if not name.startswith("_") and isinstance(getattr(old, "__self__", None), random.Random):
            yield random, name, python.get(name) or refuse_call(f"calls random.{name}, which is not followed")
    for name in ("choice", "randbelow", "randbits", "token_bytes"):
        yield secrets, name, python[name]
    for module, name in ((secrets, "token_hex"), (secrets, "token_urlsafe"), (uuid, "uuid4"), (uuid, "uuid1")):
        said = f"calls {module.__name__}.{name}, which is not followed"
        yield module, name, python.get(name) or refuse_call(said)
    yield os, "urandom", python["randbytes"]
    if hasattr(os, "getrandom"):
        yield os, "getrandom", refuse_call("calls os.getrandom, which is not followed")
    for module, name in ((builtins, "open"), (io, "open"), (os, "open")):
        yield module, name, _open_others(getattr(module, name))
    yield from _system_methods(python)
    yield threading.Thread, "start", refuse_call("starts a thread")
    yield subprocess.Popen, "__init__", refuse_call("starts a process")
    yield multiprocessing.process.BaseProcess, "start", refuse_call("starts a process")
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "spawnv", "spawnve", "system"):
        if hasattr(os, name):
            yield os, name, refuse_call("starts a process")
    yield _thread, "start_new_thread", refuse_call("starts a thread")


def _seeded_by(default_rng: Callable[..., Any], note: NoteSeed, rng: np.random.Generator) -> Callable[..., Any]:
    """Make a `default_rng` that tells its seed, and gives a stand-in where there is none."""

    def make(seed: Any = None) -> Any:
        if seed is None:
            return rng
        note(_in_words(seed))
        return default_rng(seed)

    return make


def _make_noting(replaced: Any, note: NoteSeed) -> Any:
    """A class of seeds or bit generators that tells what they are made from."""

    def make(real: Any, *values: Any, **named: Any) -> Any:
        if all(value is None for value in (*values, *named.values())):
            raise Uncontrolled(_UNSEEDED)
        note(" ".join([*map(_in_words, values), *(f"{name} {_in_words(value)}" for name, value in named.items())]))
        return real(*values, **named)

    return _make_class(replaced, make)


def _make_class(replaced: Any, make: Callable[..., Any]) -> Any:
    """Make a stand-in for a class; calls go to ``make``.

    The real class is the first argument; its instances are those of the stand-in.
    """
    real = next(kind for kind in replaced.__mro__ if type(kind) is type)  # where it is replaced already

    class StandIn(type):
        def __call__(cls, *values: Any, **named: Any) -> Any:
            return make(real, *values, **named)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    return StandIn(real.__name__, (real,), {})


def _in_words(seed: Any) -> str:
    """A seed in words; of generators the class alone."""
    try:
        return str(operator.index(seed))
    except TypeError:
        pass
    if isinstance(seed, np.ndarray):
        return repr(seed.tolist())
    if isinstance(seed, str | bytes | float | list | tuple | np.random.bit_generator.SeedSequence):
        return repr(seed)
    return type(seed).__name__


def _seedings(state: np.random.RandomState, note: NoteSeed) -> Iterator[Substitute]:
    """Refuse generators that take their seed from the system."""
    seed_python = random.Random.seed
    given: list[bool] = []  # a RandomState asks the system for a seed before it takes the one that it is given

    def make_state(real: Any, seed: Any = None) -> Any:
        if seed is None:
            return state
        note(_in_words(seed))
        given.append(True)
        try:
            return real(seed)
        finally:
            given.pop()

    stand_in = _make_class(np.random.RandomState, make_state)
    for owner in (np.random, np.random.mtrand):
        yield owner, "RandomState", stand_in
    module: Any = np.random.bit_generator
    own = __name__.rpartition(".")[0] + "."  # streams with a key, which asks the system for a seed too
    bits = module.randbits  # what all of numpy's seeds without a number come from

    def give_entropy(count: int) -> int:
        if not given and not _name_of_caller(2).startswith(own):
            raise Uncontrolled(_UNSEEDED)
        return int(bits(count))

    yield module, "randbits", give_entropy

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        # Names of temporary files are no noise.
        if a is None and "tempfile" not in (_name_of_caller(2), _name_of_caller(3)):
            raise Uncontrolled("it makes or seeds a random.Random without a number, which is not followed")
        if a is not None:
            note(_in_words(a))
        seed_python(self, a, version)

    yield random.Random, "seed", seed


def _name_of_caller(depth: int) -> str:
    """Name of the module whose code has called, some calls above."""
    try:
        return str(sys._getframe(depth).f_globals.get("__name__", ""))
    except ValueError:
        return ""


def _open_others(opens: Callable[..., Any]) -> Callable[..., Any]:
    """Make an `open` that refuses files of random bytes."""

    def open_other(file: Any, *values: Any, **named: Any) -> Any:
        path = os.fspath(file) if isinstance(file, os.PathLike) else file
        if isinstance(path, str | bytes) and os.fsdecode(path) in _DEVICES:
            raise Uncontrolled(f"it reads {os.fsdecode(path)}, which is not followed")
        return opens(file, *values, **named)

    return open_other


def _system_methods(python: Mapping[str, Callable[..., Any]]) -> Iterator[Substitute]:
    """Methods of generators of the system, which have no state: `secrets` hands them out."""
    for name in dir(random.SystemRandom):
        if name.startswith("_") or name in ("seed", "getstate", "setstate", "VERSION"):
            continue
        new = python.get(name) or refuse_call(f"calls random.SystemRandom.{name}, which is not followed")
        yield random.SystemRandom, name, lambda _self, *values, new=new, **named: new(*values, **named)


def _changes(
    rng: np.random.Generator,
    legacy: Mapping[str, Callable[..., Any]],
    python: Mapping[str, Callable[..., Any]],
    units: Sequence[tuple[Callable[..., Any], Callable[..., Any]]],
    state: np.random.RandomState,
    more: Iterable[Substitute],
    note: NoteSeed,
) -> Iterator[tuple[Any, str, Any, Any]]:
    """All changes: owner, name, substitute, and what was there."""
    by_identity: dict[int, Any] = {id(unit): new for unit, new in units}
    kept = []  # identities hold as long as the objects do
    for owner, name, new in [*_substitutes(rng, legacy, python, state, note), *more]:
        old = vars(owner).get(name, _INHERITED) if isinstance(owner, type) else getattr(owner, name)
        if old is not _INHERITED:
            kept.append(old)
            by_identity[id(old)] = new
        yield owner, name, new, old
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or _is_library(module):
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, np.random.Generator) and value is not rng:
                yield module, name, rng, value
            elif isinstance(value, np.random.RandomState) and value is not state:
                yield module, name, state, value
            elif isinstance(value, random.Random) and type(value) is not random.SystemRandom:
                yield module, name, types.SimpleNamespace(**python), value
            elif id(value) in by_identity and callable(value):
                yield module, name, by_identity[id(value)], value


def _is_library(module: types.ModuleType) -> bool:
    """Whether a module is part of Python, numpy or this package, which keep their own sources."""
    top = module.__name__.partition(".")[0]
    own = __name__.partition(".")[0]
    return module.__name__ != "__main__" and (top in sys.stdlib_module_names or top in ("numpy", own))


class WatchedGenerators:
    """Generators of this process, by their states.

    The states tell whether one was drawn from. Objects may hold generators that no
    substitute reaches: an attribute, a closure, a method that was kept.

    The first look goes through all objects, and sets them aside until `close` (`gc.freeze`), so that later ones go
    through new objects only. Where someone else has set objects aside, as Python 3.12 itself has, all looks are alike:
    nothing is put back that others have set aside.
    """

    def __init__(self) -> None:
        rand: Any = np.random.mtrand._rand  # a stand-in later
        self._found: list[Any] = [rand._bit_generator]
        self._seen: dict[int, Any] = {}
        self.find_more()
        self._freezes = gc.get_freeze_count() == 0
        if self._freezes:
            gc.freeze()

    def find_more(self) -> None:
        """Watch generators too that were made since."""
        kinds = (np.random.BitGenerator, random.Random)
        names: Any = getattr(sys.modules.get("tempfile"), "_name_sequence", None)  # of temporary files, no noise
        for one in gc.get_objects():
            if issubclass(type(one), kinds) and not isinstance(one, random.SystemRandom):
                self._seen[id(one)] = one
        left_out = {id(getattr(names, "_rng", None)), *map(id, self._found)}
        self._found += [one for key, one in self._seen.items() if key not in left_out]

    def close(self) -> None:
        """Put back what was set aside."""
        if self._freezes:
            gc.unfreeze()

    def read_states(self) -> list[str]:
        """States of all of them; one that was drawn from has another."""
        return [repr(_state_of(one)) for one in self._found]


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return super(random.Random, generator).getstate(), getattr(generator, "gauss_next", None)
    return {key: _plain_state(part) for key, part in generator.state.items()}


def _plain_state(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _plain_state(inner) for key, inner in part.items()}
    return part.tobytes() if isinstance(part, np.ndarray) else part
