"""One call of a target whose randomness is under control, and what paths of such calls draw from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from auditor.targets.callables import Mechanism, OneDraw
from auditor.targets.helper import list_yielded
from auditor.targets.process_settings import call_target
from auditor.targets.randomness.generators import PathGenerator, legacy_functions, python_functions
from auditor.targets.randomness.holders import CallHolder, StandInState
from auditor.targets.randomness.patching import WatchedGenerators, replace_sources
from auditor.targets.randomness.paths import RandomPath


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
        self._watched: WatchedGenerators | None = None
        self.rng = PathGenerator(self.current)

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Replace the sources of this process, see `replace_sources`."""
        legacy, python = legacy_functions(self.rng), python_functions(self.current)
        self._watched = WatchedGenerators()
        try:
            state = StandInState(legacy)
            with replace_sources(self.rng, legacy, python, self.units, state=state, note_seed=self._note_seed):
                yield
        finally:
            self._watched.close()

    def _note_seed(self, seed: str) -> None:
        if self._current is not None:
            self._current.seeds.append(seed)

    def read_states(self) -> list[str]:
        """States of generators that are not replaced; empty where no sources are."""
        return [] if self._watched is None else self._watched.read_states()

    def find_more(self) -> None:
        """Watch generators too that calls have made and kept."""
        if self._watched is not None:
            self._watched.find_more()


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
        return [call_target(lambda: list_yielded(target.function(given, rng)))]
    return call_target(target, given, 1, rng)
