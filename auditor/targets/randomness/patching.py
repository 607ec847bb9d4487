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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from auditor.targets.randomness.calls import CallHolder
from auditor.targets.randomness.generators import PathGenerator, legacy_functions, python_functions
from auditor.targets.randomness.paths import RandomPath
from auditor.targets.randomness.signals import Uncontrolled


class ControlledSource(CallHolder[RandomPath]):
    """Stand-in for all sources of randomness.

    Every number comes from the path of the current call.

    Attributes
    ----------
    rng : PathGenerator
        Stands in for a generator of numpy.
    units : list of tuple of callable
        Functions that are replaced too, with their substitutes.
    failures : list of Exception
        Errors of this package, not of the target, since they were last looked at.
    """

    def __init__(self) -> None:
        super().__init__()
        self.units: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
        self.failures: list[Exception] = []
        self.rng = PathGenerator(self.current)

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Replace the sources of this process, see `replace_sources`."""
        with replace_sources(self.rng, legacy_functions(self.rng), python_functions(self.current), self.units):
            yield


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
) -> Iterator[None]:
    """Replace the sources of randomness of this process for a while.

    Functions that a module has imported by name are replaced there too, and so are generators that are variables of a
    module. What an object holds is not found. Threads and processes are refused.

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
    """
    changes = list(_changes(rng, legacy, python, units))
    for owner, name, new, _ in changes:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, _, old in reversed(changes):
            setattr(owner, name, old)


def _substitutes(
    rng: np.random.Generator, legacy: Mapping[str, Callable[..., Any]], python: Mapping[str, Callable[..., Any]]
) -> Iterator[tuple[Any, str, Any]]:
    """What is replaced: owner, name and substitute."""
    for name in dir(np.random):
        old = getattr(np.random, name)
        if name.startswith("_") or isinstance(old, type | types.ModuleType) or not callable(old):
            continue
        if name == "default_rng":
            yield np.random, name, lambda seed=None, old=old: rng if seed is None else old(seed)
        else:
            yield np.random, name, legacy.get(name) or refuse_call(f"calls numpy.random.{name}, which is not followed")
    for name in dir(random):
        old = getattr(random, name)
        if not name.startswith("_") and isinstance(getattr(old, "__self__", None), random.Random):
            yield random, name, python.get(name) or refuse_call(f"calls random.{name}, which is not followed")
    for name in ("choice", "randbelow", "randbits", "token_bytes"):
        yield secrets, name, python[name]
    for module, name in ((secrets, "token_hex"), (secrets, "token_urlsafe"), (uuid, "uuid4"), (uuid, "uuid1")):
        yield module, name, refuse_call(f"calls {module.__name__}.{name}, which is not followed")
    yield os, "urandom", python["randbytes"]
    yield threading.Thread, "start", refuse_call("starts a thread")
    yield subprocess.Popen, "__init__", refuse_call("starts a process")
    yield multiprocessing.process.BaseProcess, "start", refuse_call("starts a process")
    if hasattr(os, "fork"):
        yield os, "fork", refuse_call("starts a process")


def _changes(
    rng: np.random.Generator,
    legacy: Mapping[str, Callable[..., Any]],
    python: Mapping[str, Callable[..., Any]],
    units: Sequence[tuple[Callable[..., Any], Callable[..., Any]]],
) -> Iterator[tuple[Any, str, Any, Any]]:
    """All changes: owner, name, substitute, and what was there."""
    by_identity: dict[int, Any] = {id(unit): new for unit, new in units}
    kept = []  # identities hold as long as the objects do
    for owner, name, new in list(_substitutes(rng, legacy, python)):
        old = vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
        kept.append(old)
        by_identity[id(old)] = new
        yield owner, name, new, old
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or _is_library(module):
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, np.random.Generator) and value is not rng:
                yield module, name, rng, value
            elif isinstance(value, np.random.RandomState):
                yield module, name, types.SimpleNamespace(**legacy), value
            elif isinstance(value, random.Random):
                yield module, name, types.SimpleNamespace(**python), value
            elif id(value) in by_identity and callable(value):
                yield module, name, by_identity[id(value)], value


def _is_library(module: types.ModuleType) -> bool:
    """Whether a module is part of Python or numpy, which keep their own sources."""
    top = module.__name__.partition(".")[0]
    return module.__name__ != "__main__" and (top in sys.stdlib_module_names or top in ("numpy", "auditor"))
