"""Signals that leave a call whose randomness is under control.

They are no `Exception`, so that code that catches those does not catch them.
"""

from __future__ import annotations

from collections.abc import Iterable


class Signal(BaseException):
    """Base of the signals."""


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
