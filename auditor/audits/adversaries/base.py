"""The protocol of an adversary: it makes up the data, asks the target once, and scores its guess."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.guarantees import Guarantee

FloatArray: TypeAlias = NDArray[np.float64]
Stack: TypeAlias = NDArray[np.int8]
"""Datasets of zeros and ones, shape (trials, rows, columns): rows are people, columns attributes."""
Ask: TypeAlias = Callable[[Stack], FloatArray]
"""From a stack of datasets to one released vector of column counts for each, shape (trials, columns)."""


class Adversary(ABC):
    """An attack on releases of a table's column counts.

    The table has zeros and ones.

    Counting queries are columns: for secret bits x and queries Q of shape (k, n) the row of person j is
    ``x[j] * Q[:, j]``, so the column counts are Q x, and another bit is another row.

    Attributes
    ----------
    name : str
        Its name on the command line.
    bits : int
        Where a score is the part of so many secret, independent, uniform bits that was guessed right, how many; else 0.
    """

    name: ClassVar[str]

    @property
    def bits(self) -> int:
        """Number of secret bits that a score is about.

        0 where a score is no part of right bits.
        """
        return 0

    @abstractmethod
    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> FloatArray:
        """Scores of n games in [0, 1], shape (n,).

        Each game makes up a dataset and asks once.

        Parameters
        ----------
        ask : callable
            From tables to releases: from shape (trials, rows, columns), integers 0 and 1, to (trials, columns). It
            answers about n tables, in one call or in several.
        n : int
            Number of games.
        rng : numpy.random.Generator
            Of the adversary.
        """

    @abstractmethod
    def most(self, guarantee: Guarantee, level: float) -> float:
        """Largest expected score that a level of the guarantee allows.

        It increases with the level.

        Parameters
        ----------
        guarantee : Guarantee
            The notion of privacy.
        level : float
            Its level, at least 0.

        Returns
        -------
        float
            In [0, 1].
        """

    @abstractmethod
    def __str__(self) -> str:
        """What it does and with which data, in a few words."""

    def parameters(self) -> dict[str, Any]:
        """Its parameters, for the report."""
        named = [field.name for field in fields(self)] if is_dataclass(self) else list(vars(self))
        values = {name: getattr(self, name) for name in named}
        return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}
