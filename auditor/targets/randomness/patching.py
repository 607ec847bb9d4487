"""Sources of randomness of this process, replaced while a target is called."""

from __future__ import annotations

import multiprocessing.process
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
#: In the place of what was there: an inherited attribute, which is deleted afterwards.
_INHERITED = object()


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
    state: Any = None,
    more: Iterable[Substitute] = (),
) -> Iterator[None]:
    """Replace the sources of randomness of this process for a while.

    Functions that a module has imported by name are replaced there too, and so are generators that are variables of a
    module. What an object holds is not found, but for generators of the system (``random.SystemRandom``). Threads and
    processes are refused.

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
    state : object, optional
        For generators of numpy's older kind, also that of ``numpy.random`` itself; by default an object with the
        functions of ``legacy``, and numpy's own is left.
    more : iterable of Substitute
        Further attributes.
    """
    changes = list(_changes(rng, legacy, python, units, state, more))
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
    state: Any,
) -> Iterator[Substitute]:
    """What is replaced: owner, name and substitute."""
    for name in dir(np.random):
        old = getattr(np.random, name)
        if name.startswith("_") or isinstance(old, type | types.ModuleType) or not callable(old):
            continue
        if name == "default_rng":
            yield np.random, name, lambda seed=None, old=old: rng if seed is None else old(seed)
        else:
            yield np.random, name, legacy.get(name) or refuse_call(f"calls numpy.random.{name}, which is not followed")
    if state is not None:
        yield np.random.mtrand, "_rand", state
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
    yield from _system_methods(python)
    yield threading.Thread, "start", refuse_call("starts a thread")
    yield subprocess.Popen, "__init__", refuse_call("starts a process")
    yield multiprocessing.process.BaseProcess, "start", refuse_call("starts a process")
    if hasattr(os, "fork"):
        yield os, "fork", refuse_call("starts a process")


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
    state: Any,
    more: Iterable[Substitute],
) -> Iterator[tuple[Any, str, Any, Any]]:
    """All changes: owner, name, substitute, and what was there."""
    by_identity: dict[int, Any] = {id(unit): new for unit, new in units}
    kept = []  # identities hold as long as the objects do
    for owner, name, new in [*_substitutes(rng, legacy, python, state), *more]:
        old = vars(owner).get(name, _INHERITED) if isinstance(owner, type) else getattr(owner, name)
        if old is not _INHERITED:
            kept.append(old)
            by_identity[id(old)] = new
        yield owner, name, new, old
    older = types.SimpleNamespace(**legacy) if state is None else state
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or _is_library(module):
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, np.random.Generator) and value is not rng:
                yield module, name, rng, value
            elif isinstance(value, np.random.RandomState) and value is not state:
                yield module, name, older, value
            elif isinstance(value, random.Random) and type(value) is not random.SystemRandom:
                yield module, name, types.SimpleNamespace(**python), value
            elif id(value) in by_identity and callable(value):
                yield module, name, by_identity[id(value)], value


def _is_library(module: types.ModuleType) -> bool:
    """Whether a module is part of Python, numpy or this package, which keep their own sources."""
    top = module.__name__.partition(".")[0]
    own = __name__.partition(".")[0]
    return module.__name__ != "__main__" and (top in sys.stdlib_module_names or top in ("numpy", own))
