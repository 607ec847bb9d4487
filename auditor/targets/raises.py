"""What a target's exception says, and where it was raised."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from auditor.errors import StrategyError, TargetError
from auditor.targets.sources import ENGINE, is_installed

T = TypeVar("T")

#: Characters of an exception that are told; arbitrary: an array in a message may have millions.
_TOLD = 2000


def find_raise(error: BaseException) -> str:
    """Find the line that raised.

    A text such as " (mine.py, line 12)". It is the innermost line in a file of the user's, else the innermost one at
    all. The text is empty if only the auditor's own code was on the way, as for a call that a function does not take.
    """
    lines: list[tuple[str, int]] = []
    at = error.__traceback__
    while at is not None:
        lines.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    lines = [line for line in lines if not line[0].startswith(str(ENGINE))]
    if not lines:
        return ""
    file, number = ([line for line in lines if not _is_library(line[0])] or lines)[-1]
    return f" ({Path(file).name}, line {number})"


def describe_error(error: BaseException) -> str:
    """Describe an exception by its text, on one line, with surrogates escaped.

    Of a long text it is the beginning.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text of an error of somebody else's
        return ""
    more = f"... ({len(text):,} characters)" if len(text) > _TOLD else ""
    text = text[:_TOLD].encode(errors="backslashreplace").decode()
    return (" ".join(text.split()) if "\n" in text else text) + more


def is_declared(name: str) -> bool:
    """Whether a loaded module declares a class of this name.

    The name of any other class, such as one that was made in a call, may hold data.

    Parameters
    ----------
    name : str
        Name of a class, with its module unless it is one of Python's own.
    """
    module, _, own = name.rpartition(".")
    held = sys.modules.get(module) if module else builtins
    return isinstance(getattr(held, "__dict__", {}).get(own), type)


@lru_cache(maxsize=1024)
def show_error(name: str) -> str:
    """Name of an exception's class, where datasets are private.

    Words in its place where no loaded module declares such a class, as the name may then hold data.

    Parameters
    ----------
    name : str
        Name of the class, without its module.
    """
    if is_declared(name):
        return name
    waiting: list[type] = [BaseException]
    while waiting:
        kind = waiting.pop()
        if kind.__name__ == name and is_declared(f"{kind.__module__}.{kind.__qualname__}"):
            return name
        waiting += type.__subclasses__(kind)
    return "an exception"


def list_interrupts(*others: type[BaseException]) -> tuple[type[BaseException], ...]:
    """List the exceptions that are no outcome of a target.

    They are orders to the process: the user's interrupt and, within a test of pytest, what ends the test. A time
    limit of the test may raise it in the middle of a call.

    Parameters
    ----------
    *others : type
        Further ones.
    """
    pytest = sys.modules.get("pytest") if "PYTEST_CURRENT_TEST" in os.environ else None
    ends = () if pytest is None else (pytest.fail.Exception, pytest.skip.Exception)
    return (KeyboardInterrupt, *ends, *others)


@contextmanager
def catch_exits(private: bool = False) -> Iterator[None]:
    """Turn what would end the interpreter within a block into `TargetError`.

    A target that calls ``sys.exit(0)`` would be a pass else, and one that calls ``sys.exit(1)`` a finding.

    Parameters
    ----------
    private : bool
        What it says is left out.
    """
    try:
        yield
    except list_interrupts(Exception):
        raise
    except BaseException as error:
        name, said = type(error).__name__, describe_error(error)
        public = f"the target raised {show_error(name)}"
        told = public if private else f"the target raised {name}" + (f": {said}" if said else "")
        raise TargetError(told, public=public) from error


def ask_strategy(who: str, function: Callable[[], T]) -> T:
    """Call an analyst or an adversary; what its code raises names it.

    Parameters
    ----------
    who : str
        What is called, for the message.
    function : callable
        Calls it. What the target raises in there stays what it is.

    Raises
    ------
    StrategyError
        If its own code raises.
    """
    try:
        return function()
    except list_interrupts(StrategyError, TargetError):
        raise
    except Exception as error:
        name, said, place = type(error).__name__, describe_error(error), find_raise(error)
        told = f"{who} raised {name}: {said}{place}" if said else f"{who} raised {name}{place}"
        raise StrategyError(told, f"{who} raised {show_error(name)}{place}", name) from error


@lru_cache(maxsize=1024)
def _is_library(file: str) -> bool:
    return file.startswith("<") or is_installed(Path(file))
