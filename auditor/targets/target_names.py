"""Targets by the names that the command line takes."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeGuard

from auditor.errors import SpecificationError
from auditor.targets import callables
from auditor.targets.callables import Mechanism
from auditor.targets.classes import bind_class
from auditor.targets.environments import pip_target
from auditor.targets.http import HttpTarget
from auditor.targets.process import ProcessTarget
from auditor.targets.redacted import without_secrets
from auditor.targets.signatures import bind_function
from auditor.targets.sources import hash_bytes

#: Forms of a target's name, see `target_named`.
KINDS = (
    "package.module:callable",
    "path/to/file.py:callable",
    "exec:COMMAND",
    "http://HOST/PATH",
    "https://HOST/PATH",
    "'pip:REQUIREMENT[ REQUIREMENT...]#WHERE:NAME'",
)
#: Names of Python with dots between them.
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def target_named(
    text: str, *, limit: float = 60.0, one_draw: bool = False, given: Mapping[str, Any] | None = None
) -> Mechanism:
    """Return the target of a name; `closing_target` ends what it holds.

    ==============================================  ==================================================================
    name                                            target
    ==============================================  ==================================================================
    ``package.module:callable``                     a callable, in this process; a class, or ``Class.member``, see
                                                    `auditor.targets.classes`
    ``path/to/file.py:callable``                    the same, from a file
    ``exec:COMMAND``                                a process that speaks the protocol, see `ProcessTarget`; the
                                                    command is split as a shell does, and no shell runs it
    ``http://...``, ``https://...``                 a service, see `HttpTarget`; the variable DPAUDIT_AUTHORIZATION,
                                                    if set, is sent as its header Authorization
    ``pip:REQUIREMENT[ REQUIREMENT...]#WHERE:NAME`` a Python function in a virtual environment of its own, see
                                                    `pip_target`; a requirement with spaces in it is quoted, and none
                                                    leaves the standard library
    ==============================================  ==================================================================

    Parameters
    ----------
    text : str
        The name.
    limit : float
        Seconds that one request to a process or service may take.
    one_draw : bool
        The Python function draws once, see `auditor.targets.signatures`.
    given : mapping, optional
        Values of its further parameters, by name.

    Raises
    ------
    SpecificationError
        If the name has none of these forms, or what it names cannot be found or installed.
    """
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if scheme in ("exec", "pip", "http", "https") and colon:
        if scheme == "pip":
            return _environment_target(text, rest, limit, one_draw, given or {})
        if one_draw or given:
            option = "--one-draw" if one_draw else "--arg"
            what = "a command takes its arguments itself" if scheme == "exec" else "a service has no parameters"
            why = "each request says how many draws it wants" if one_draw else what
            raise SpecificationError(
                f"target {show_target(text)!r}: {option} is for Python functions: leave it out, {why}"
            )
        if scheme == "exec":
            return ProcessTarget(_command(text, rest), limit=limit)
        secret = os.environ.get("DPAUDIT_AUTHORIZATION")
        return HttpTarget(text, limit=limit, headers={"Authorization": secret} if secret else None)
    where, _, name = text.rpartition(":")
    if not (where.endswith(".py") or _DOTTED.fullmatch(where)) or not _DOTTED.fullmatch(name):
        raise SpecificationError(f"target {show_target(text)!r}: expected one of {', '.join(KINDS)}")
    found, member = callables.find_callable(text)
    if member or inspect.isclass(found):
        return bind_class(found, member, text, one_draw, given or {})
    return bind_function(found, text, one_draw, given or {})


def is_remote(target: object) -> TypeGuard[ProcessTarget | HttpTarget]:
    """Whether a target is a process or a service.

    It must be closed, and each request has a limit.
    """
    return isinstance(target, ProcessTarget | HttpTarget)


@contextmanager
def closing_target(target: Mechanism) -> Iterator[Mechanism]:
    """Give the target to a block, and close it after."""
    try:
        yield target
    finally:
        if is_remote(target):
            target.close()


def show_target(text: str) -> str:
    """A target's name for reports, without secrets of URLs.

    User names, passwords and queries are left out.
    """
    return without_secrets(text)


def source_of(text: str, arguments: Sequence[str] = ()) -> str:
    """Hash of a target's name and of files it names.

    They are read as far as they can be.

    Parameters
    ----------
    text : str
        The name.
    arguments : sequence of str
        Values of further parameters, as the command line has them.
    """
    scheme, _, rest = text.partition(":")
    words = [text]
    if scheme.lower() == "exec":
        words += _split_words(text, rest)
    elif scheme.lower() == "pip":
        words.append(rest.rpartition("#")[2].rpartition(":")[0])
    content = "\0".join(arguments).encode(errors="surrogateescape")
    for word in words:
        content += word.encode(errors="surrogateescape") + b"\0"
        with contextlib.suppress(OSError, ValueError):
            content += Path(word).read_bytes()
    return hash_bytes(content)


def requirements_of(text: str) -> tuple[str, ...]:
    """Requirements in a name of the form ``pip:...``, else none."""
    scheme, _, rest = text.partition(":")
    return tuple(_split_words(text, rest.rpartition("#")[0])) if scheme.lower() == "pip" else ()


def _environment_target(text: str, rest: str, limit: float, one_draw: bool, given: Mapping[str, Any]) -> ProcessTarget:
    _, mark, where = rest.rpartition("#")
    if not mark:
        raise SpecificationError(f"target {show_target(text)!r}: expected {KINDS[-1]}")
    return pip_target(requirements_of(text), where, limit=limit, one_draw=one_draw, given=given)


def _command(text: str, rest: str) -> list[str]:
    words = _split_words(text, rest)
    if not words:
        raise SpecificationError(f"target {show_target(text)!r}: expected a command after 'exec:'")
    return words


def _split_words(text: str, rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise SpecificationError(f"target {show_target(text)!r}: {error}") from None
