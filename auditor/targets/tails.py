"""Targets that go silent, or never vary: one and the same output after some draws, as of a spent budget, or in all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.targets.outputs import Batch, hash_outputs, show_output

#: First draws on a dataset that are held against the last ones; arbitrary.
FIRST = 64
#: Datasets that are looked at; arbitrary, so that none is held for long.
MOST = 400
#: Probability that one dataset of independent draws looks so; over all datasets at most 4e-5.
UNLIKELY = 1e-7


@dataclass
class _Draws:
    """Draws on one dataset.

    Attributes
    ----------
    data : object
        The dataset, held so that no other one gets its id.
    first : list of int
        Keys of the first draws.
    n : int
        All draws.
    run : int
        How many of the last ones are equal.
    key : int or None
        Key of the last one.
    last : object
        The last one.
    """

    data: Any
    first: list[int] = field(default_factory=list)
    n: int = 0
    run: int = 0
    key: int | None = None
    last: Any = None

    def add(self, batch: Batch) -> None:
        """Add the outputs of a call."""
        if len(self.first) < FIRST:
            self.first += hash_outputs(batch[: FIRST - len(self.first)]).tolist()
        key = int(hash_outputs(batch[-1:])[0])
        run = _count_last(batch, key)
        self.run = self.run + run if run == len(batch) and key == self.key else run
        self.n, self.key, self.last = self.n + len(batch), key, batch[-1]

    @property
    def silent(self) -> bool:
        """Whether the target went silent.

        Others are first ones alone then: each of ``a`` outputs that are another one lies before the run with
        probability ``(n - run) / n`` at most.
        """
        others = sum(key != self.key for key in self.first[: self.n - self.run])
        return others > 0 and others * math.log((self.n - self.run) / self.n) < math.log(UNLIKELY)


def _count_last(batch: Batch, key: int) -> int:
    """Count the equal outputs at the end of a batch, the last of which has this key."""
    if len(batch) > 1 and hash_outputs(batch[-2:-1])[0] != key:
        return 1
    other = np.flatnonzero(hash_outputs(batch) != key)
    return len(batch) - (int(other[-1]) + 1 if len(other) else 0)


class Tails:
    """What a target gave first and last on each dataset.

    Notes
    -----
    Nothing here bears on alarms: a target that went silent has no verdict, where it would have had a pass.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Draws] = {}

    def add(self, data: Any, batch: Batch) -> None:
        """Add the outputs of a call on a dataset."""
        if id(data) not in self._seen:
            if len(self._seen) >= MOST:
                return
            self._seen[id(data)] = _Draws(data)
        if len(batch):
            self._seen[id(data)].add(batch)

    def describe(self, private: bool) -> str:
        """Say how the target went silent; empty if it did not.

        Parameters
        ----------
        private : bool
            The output is not shown.
        """
        for draws in self._seen.values():
            if draws.silent:
                before, output = draws.n - draws.run, "the same" if private else show_output(draws.last)
                return (
                    f"the target changed: on one dataset all outputs after the first {before:,} draws were {output}, "
                    f"{draws.run:,} in number, which says nothing of the first ones; if it spends a budget, or keeps "
                    "what it drew, let each draw begin anew"
                )
        return ""

    def describe_constant(self, private: bool) -> str:
        """Say that no output differed from another; empty if one did.

        Parameters
        ----------
        private : bool
            The output is not shown.
        """
        seen = [draws for draws in self._seen.values() if draws.n]
        if len(seen) == MOST or len({draws.key for draws in seen}) != 1 or any(draws.run < draws.n for draws in seen):
            return ""
        n, output = sum(draws.n for draws in seen), "one and the same output" if private else show_output(seen[0].last)
        return (
            f"all {n:,} draws gave {output}, on every dataset; so does a target that keeps its first answer, which may "
            "give the data away"
        )
