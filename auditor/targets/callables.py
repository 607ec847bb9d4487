"""Python callables as targets: the batch protocol, a wrapper for one-draw functions, look-up by name."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from auditor.errors import SpecificationError
from auditor.targets.helper import ASYNC, is_async, list_yielded
from auditor.targets.outputs import Raised
from auditor.targets.process_settings import load_target
from auditor.targets.raises import describe_error, find_raise
from auditor.targets.sources import hash_bytes, source_text
from auditor.targets.transcripts import Dialogue
from auditor.targets.values import PLAIN, keep_value


class Mechanism(Protocol):
    """A target: ``n`` independent outputs on ``data``, trial axis first.

    The outputs are an array of shape (n,) or (n, d), or a sequence of n Python values. All randomness must come from
    ``rng``, or from entropy of the target's own.
    """

    def __call__(self, data: Any, n: int, rng: np.random.Generator, /) -> Any:
        """Draw ``n`` outputs."""


class CallAdapter:
    """Base of wrappers that call a function or class with further values.

    Attributes
    ----------
    function : callable
        What is called.
    """

    function: Callable[..., Any]

    def spell_values(self) -> str:
        """Text of the values, which is part of the target's source."""
        raise NotImplementedError


@dataclass(frozen=True)
class OneDraw:
    """A batch mechanism made from a function of one draw; see `one_draw`."""

    function: Callable[[Any, np.random.Generator], Any]

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> list[Any]:
        """Call the function n times; what it raises is an output, the first one with its message."""
        function, outputs, told = self.function, list[Any](), False
        for _ in range(n):
            try:
                output = list_yielded(function(data, rng))
            except Exception as error:  # noqa: BLE001 - what a draw raises is an output: it can tell datasets apart
                name, place = type(error).__name__, "" if told else find_raise(error)
                output = Raised(name) if told else Raised(name, f"{describe_error(error)}{place}", place)
                told = True
            outputs.append(output if type(output) in PLAIN else keep_value(output))
        return outputs


def one_draw(function: Callable[[Any, np.random.Generator], Any]) -> OneDraw:
    """Make a mechanism from a one-draw function ``(data, rng) -> output``.

    An exception in a draw is an output, the symbol "raised ClassName": whether a mechanism fails may depend on the
    data, and then the failure is what gives them away. What a draw yields one by one, as a generator does, is an output
    as a list.
    """
    if not callable(function):
        raise SpecificationError(f"one_draw takes a function (data, rng), got {function!r}")
    if is_async(function):
        raise SpecificationError(f"{function!r} {ASYNC}")
    return OneDraw(function)


def target_from(text: str) -> Mechanism:
    """Mechanism named by `function_from`'s text."""
    found: Mechanism = function_from(text)
    return found


def function_from(text: str) -> Any:
    """Import ``package.module:callable`` or ``path/to/file.py:callable``.

    Raises
    ------
    SpecificationError
        If the text is of another form, the module cannot be imported, or the attribute is not a callable.
    """
    found, member = find_callable(text)
    if member:
        found = getattr(found, member, None)
        if not callable(found):
            raise SpecificationError(f"target {text!r} is not callable: {found!r}")
    return found


def find_callable(text: str) -> tuple[Any, str]:
    """Import a callable, or a class with the name of its member.

    Parameters
    ----------
    text : str
        Its name, as `function_from` has it. The member of a class with a method ``fit`` may be an attribute that only
        fitted objects have.

    Returns
    -------
    callable, str
        The callable and "", or a class and the name of its member.

    Raises
    ------
    SpecificationError
        If the text is of another form, the module cannot be imported, or the attribute is not a callable.
    """
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise SpecificationError(f"target {text!r}: expected package.module:callable or path/to/file.py:callable")
    try:
        if where.endswith(".py"):
            module = load_file(Path(where))
        else:
            if "" not in sys.path:
                sys.path.insert(0, "")  # the folder one stands in, as `python -m` has it
            with load_target(where):
                module = importlib.import_module(where)
    except (SpecificationError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a file may end the interpreter, which would be a green run, or a finding
        said = f"{type(error).__name__}: {describe_error(error)}"
        hint = _suggest_module(where, name) if "relative import" in said else ""
        raise SpecificationError(f"target {text!r} cannot be imported: {said}{hint}") from error
    found, kind = module, None
    for part in name.split("."):
        if not hasattr(found, part):
            fitted = isinstance(found, type) and part.endswith("_") and hasattr(found, "fit")
            if fitted and name.endswith(f".{part}"):
                return found, part
            raise SpecificationError(f"target {text!r}: {where} has no attribute {name!r}{suggest_name(part, found)}")
        kind, found = found, getattr(found, part)
    if isinstance(kind, type):
        return kind, name.rpartition(".")[2]
    if not callable(found):
        raise SpecificationError(f"target {text!r} is not callable: {found!r}")
    return found, ""


def _suggest_module(where: str, name: str) -> str:
    """Text to be put after an error: the name of a file of a package, as that of a module."""
    parts = Path(where).with_suffix("").parts
    named = ".".join(parts) if all(part.isidentifier() for part in parts) else "package.module"
    return f"; name a file that imports from its package as a module: {named}:{name}"


def suggest_name(name: str, thing: Any) -> str:
    """Suggest attributes whose names are close to a wrong one.

    Parameters
    ----------
    name : str
        The wrong name.
    thing : object
        What has no such attribute.

    Returns
    -------
    str
        Text to be put after an error; empty if no name is close.
    """
    names = [known for known in dir(thing) if not known.startswith("__")]
    close = difflib.get_close_matches(name, names, 3)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def load_file(path: Path) -> Any:
    """Import a Python file by its path, once."""
    if not path.is_file():
        raise SpecificationError(f"no such file: {str(path)!r}")
    name = f"dpaudit_file_{hash_bytes(os.fsencode(path.resolve()))}"
    if name in sys.modules:
        with load_target(name):
            return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecificationError(f"not a Python file: {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with load_target(name):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def source_hash(target: object) -> str:
    """Hash of the source text of a target.

    Where there is none, of its representation.
    """
    if isinstance(target, Dialogue):
        return hash_bytes("".join(source_hash(part) for part in target.parts).encode())
    function: Any = target.function if isinstance(target, OneDraw) else target
    if isinstance(function, CallAdapter):
        return hash_bytes(f"{source_hash(function.function)} {function.spell_values()}".encode())
    subject: Any = function if inspect.isroutine(function) or inspect.isclass(function) else type(function)
    return _source_hash(subject)


@lru_cache(maxsize=4096)
def _source_hash(subject: Any) -> str:
    try:
        text, _ = source_text(subject)
    except (OSError, TypeError):
        text = getattr(subject, "__qualname__", repr(type(subject)))
    return hash_bytes(text.encode())
