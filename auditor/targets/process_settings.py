"""Settings that targets share with the engine, because both run in one process.

How numpy handles floating-point errors, the filters of warnings and the working folder are the process's. A target may
set them for itself, as by ``np.seterr(all="raise")`` or ``os.chdir``. They hold in its own calls then, and neither the
engine nor another claim gets them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import Context, ContextVar, copy_context
from typing import Any, ParamSpec, TextIO, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")

#: What a target finds, with what it has set; only within `keep_apart`, and not in the target itself.
_THEIRS: ContextVar[Context] = ContextVar("settings of the target")
#: The folders that modules of targets changed to when they were loaded.
_FOLDERS: dict[str, str] = {}
#: The module of targets that was loaded last.
_LAST: ContextVar[str] = ContextVar("module of the target", default="")


@contextmanager
def keep_apart(module: str | None = None) -> Iterator[None]:
    """Keep the engine's settings apart from the target's, in a block.

    What `call_target` calls finds the settings of before the block, and what it sets itself, until the end of the
    block. Then all is as it was before. A block within another one does nothing.

    Parameters
    ----------
    module : str, optional
        Name of the module that declares the target, whose folder is the one of its calls; default the one that
        `load_target` loaded last.
    """
    if _THEIRS.get(None) is not None:
        yield
        return
    theirs = copy_context()
    # Those of numpy by default: in numerics, numbers that vanish are no error.
    ours = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
    with _keep_folder(), warnings.catch_warnings(), ours:
        folder = _FOLDERS.get(_LAST.get() if module is None else module)
        if folder is not None:
            os.chdir(folder)
        token = _THEIRS.set(theirs)
        try:
            yield
        finally:
            _THEIRS.reset(token)


def call_target(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what is audited, with its settings.

    Parameters
    ----------
    function : callable
        What is called.
    *args, **kwargs
        What it is called with.
    """
    theirs = _THEIRS.get(None)
    return function(*args, **kwargs) if theirs is None else theirs.run(function, *args, **kwargs)


@contextmanager
def load_target(module: str) -> Iterator[None]:
    """Load a module of targets, in a block.

    The folder that it changes to is the one of its calls, in `keep_apart`. If it was loaded before, that one stays.

    Parameters
    ----------
    module : str
        Name of the module.
    """
    with _keep_folder() as before:
        yield
        if _here() != before:
            _FOLDERS[module] = _here()
        _LAST.set(module)


#: Characters that are shown of what a target prints.
_SHOWN = 5_000


class _Beginning:
    """A stream of which the first characters are shown.

    Parameters
    ----------
    stream : text stream
        Where they are shown. Other attributes are its own.
    """

    def __init__(self, stream: Any) -> None:
        self._stream, self._left = stream, _SHOWN

    def write(self, text: str) -> int:
        """Write what may be shown, and then a notice."""
        if self._left >= 0:
            self._stream.write(text[: self._left])
            if len(text) > self._left:
                self._stream.write(
                    f"\n... (the target prints more than {_SHOWN:,} characters: the rest is not shown)\n"
                )
            self._left -= len(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, as `write` does."""
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Close nothing: the stream is this process's own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def limit_prints(stream: TextIO) -> Iterator[None]:
    """Show the beginning of what is printed in a block.

    A target may print in each draw.

    Parameters
    ----------
    stream : text stream
        Where it is shown, instead of standard output and standard error.
    """
    beginning: Any = _Beginning(stream)
    with redirect_stdout(beginning), redirect_stderr(beginning):
        yield


@contextmanager
def _keep_folder() -> Iterator[str]:
    """Come back to the working folder at the end of a block."""
    before = _here()
    try:
        yield before
    finally:
        if _here() != before:
            os.chdir(before)


def _here() -> str:
    """The working folder; empty if it has been removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
