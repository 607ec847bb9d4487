"""Signals that leave a call whose randomness is under control.

They are no `Exception`, so that code that catches those does not catch them. Code that catches everything, as a bare
``except`` does, would go on without the number that it asked for: so each signal of a call is kept, and what the call
then returns is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

#: Signals of the calls that are being made, the innermost last.
_calls: list[list[Signal]] = []


class Signal(BaseException):
    """Base of the signals."""

    def __init__(self, *values: object) -> None:
        super().__init__(*values)
        if _calls:
            _calls[-1].append(self)


@contextmanager
def keep_signals() -> Iterator[list[Signal]]:
    """Keep the signals of a call, also of those that it catches.

    One that leaves the call is a signal of the call around it too.

    Yields
    ------
    list of Signal
        They are added in their order.
    """
    found: list[Signal] = []
    _calls.append(found)
    try:
        yield found
    except Signal as signal:
        if len(_calls) > 1:
            _calls[-2].append(signal)
        raise
    finally:
        _calls.pop()


@contextmanager
def raise_caught_signals() -> Iterator[None]:
    """Raise a call's first signal, even if the call has caught it."""
    with keep_signals() as found:
        yield
        if found:
            raise found[0]


class OutOfBudget(Signal):
    """The paths or the seconds are used up."""


class TooUnlikely(Signal):
    """The path has become too unlikely to be followed."""


class Uncontrolled(Signal):
    """The call does something that cannot be followed.

    Parameters
    ----------
    reason : str
        What, in words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NeedsNumbers(Signal):
    """Some random numbers have to be plain numbers from the start.

    Parameters
    ----------
    draws : iterable of int
        Their places among the draws of the call.
    """

    def __init__(self, draws: Iterable[int]) -> None:
        super().__init__()
        self.draws = frozenset(draws)


def as_library(error: Exception) -> Exception:
    """Mark an error as one that the replaced library raises too."""
    error.__dict__["of_library"] = True
    return error


def is_own_error(error: Exception) -> bool:
    """Whether an error comes from this package, not from a target.

    Parameters
    ----------
    error : Exception
        What a call raised.
    """
    if "of_library" in error.__dict__:
        return False
    trace, last = error.__traceback__, ""
    while trace is not None:
        last, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return last.startswith(__name__.rpartition(".")[0] + ".")
