"""What the current call draws from, and generators that stand in for those of numpy.

This module and those it is imported by beside it (`patching`, `recorder`, `units`, `torch_draws`, `plain_draws`) need
numpy and the standard library only, and import one another by relative names: the helper of the protocol runs them in
environments where nothing else of this package can be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from .signals import Uncontrolled

T = TypeVar("T")
Own = TypeVar("Own", bound="StandInGenerator")


class CallHolder(Generic[T]):
    """Holder of the path or tape that the current call uses."""

    def __init__(self) -> None:
        self._current: T | None = None

    def current(self) -> T:
        """What the current call draws from.

        Raises
        ------
        Uncontrolled
            If there is no call.
        """
        if self._current is None:
            raise Uncontrolled("random numbers are drawn outside the call")
        return self._current

    @contextmanager
    def using(self, value: T) -> Iterator[None]:
        """Let the call draw from a path or a tape."""
        before = self.switch(value)
        try:
            yield
        finally:
            self.switch(before)

    def switch(self, value: T | None) -> T | None:
        """Let calls draw from another path or tape, or from none.

        Returns what they drew from.
        """
        before, self._current = self._current, value
        return before


class StandInGenerator(np.random.Generator):
    """Base of generators that stand in for those of numpy.

    Parameters
    ----------
    current : callable
        Gives what the current call draws from.
    """

    def __new__(cls: type[Own], current: Callable[[], Any]) -> Own:  # noqa: ARG004 - numpy's takes a bit generator
        """Make numpy's part of it."""
        made: Own = super().__new__(cls, np.random.PCG64(0))  # type: ignore[call-arg]
        return made

    def __init__(self, current: Callable[[], Any]) -> None:
        super().__init__(np.random.PCG64(0))
        self._current = current


class StandInState(np.random.RandomState):
    """A stand-in for generators of numpy's older kind.

    Parameters
    ----------
    functions : mapping of str to callable
        Its methods; others are refused.
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(np.random.PCG64(0))
        self._functions = functions

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") and name not in ("_bit_generator", "__reduce__", "__reduce_ex__", "__getstate__"):
            return super().__getattribute__(name)
        functions = super().__getattribute__("_functions")
        if name not in functions:
            raise Uncontrolled(f"numpy's RandomState.{name} is not followed")
        return functions[name]
