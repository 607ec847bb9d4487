"""One call of a target whose randomness is under control: what the call draws from, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from auditor.targets.callables import Mechanism, OneDraw
from auditor.targets.randomness.signals import Uncontrolled

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
        before, self._current = self._current, value
        try:
            yield
        finally:
            self._current = before


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


def ask_once(target: Mechanism, data: Any, rng: np.random.Generator) -> Any:
    """Ask a target for one output on a copy of the dataset.

    What it raises is not caught.

    Parameters
    ----------
    target : Mechanism
        The target.
    data : dataset
        The dataset.
    rng : numpy.random.Generator
        What it draws from.

    Returns
    -------
    sequence
        What it answers when it is asked for one output.
    """
    given = data.copy() if hasattr(data, "copy") else data
    if isinstance(target, OneDraw):  # which would catch what its function raises
        return [target.function(given, rng)]
    return target(given, 1, rng)
