"""Targets that go silent, repeat themselves or never vary.

A spent budget, a cache or few seeds make them so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.targets.outputs import Batch, hash_outputs, show_output

#: First draws on a dataset that are held against the last ones, and of a call against those of others; arbitrary.
FIRST = 64
#: Datasets that are looked at; arbitrary, so that none is held for long.
MOST = 400
#: Probability that one dataset of independent draws looks so, of each of two looks; over all datasets at most 8e-5.
UNLIKELY = 1e-7
#: Fewest draws of a call whose first ones are held against those of other calls: of fewer no order is unlikely enough.
FEWEST = 16


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
    windows : dict of bytes to hashable
        First draws of calls, by their keys, and which call it was.
    repeat : float
        Logarithm of the probability that a call of independent draws begins as an earlier one did, of the least likely
        one that did so.
    repeated : int
        How many draws these are.
    calls : int
        Calls of `FEWEST` draws or more.
    """

    data: Any
    first: list[int] = field(default_factory=list)
    n: int = 0
    run: int = 0
    key: int | None = None
    last: Any = None
    windows: dict[bytes, Hashable] = field(default_factory=dict)
    repeat: float = 0.0
    repeated: int = 0
    calls: int = 0

    def add(self, batch: Batch, call: Hashable) -> None:
        """Add the outputs of a call."""
        if len(self.first) < FIRST or len(batch) >= FEWEST:
            begun = hash_outputs(batch[:FIRST])
            self.first += begun[: FIRST - len(self.first)].tolist()
            if len(begun) >= FEWEST:
                self._compare(begun, call)
        key = int(hash_outputs(batch[-1:])[0])
        run = _count_last(batch, key)
        self.run = self.run + run if run == len(batch) and key == self.key else run
        self.n, self.key, self.last = self.n + len(batch), key, batch[-1]

    def _compare(self, window: NDArray[np.int64], call: Hashable) -> None:
        """Compare the beginning of a call with those of others; the same call is asked again on purpose."""
        known = self.windows.setdefault(window.tobytes(), call)
        self.calls += 1
        if known == call:
            return
        likely = sum(math.lgamma(count + 1) for count in Counter(window.tolist()).values())
        if (log := likely - math.lgamma(len(window) + 1)) < self.repeat:
            self.repeat, self.repeated = log, len(window)

    @property
    def repeats(self) -> bool:
        """Whether a call began as an earlier one did.

        Independent draws are exchangeable: given which outputs there are at the beginning of the later call, all of
        their orders are equally likely, whatever the earlier ones were. The probability of the least likely repetition
        is multiplied by the number of pairs of calls (union bound).
        """
        return self.repeated > 0 and self.repeat + math.log(math.comb(self.calls, 2)) < math.log(UNLIKELY)

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
    """First and last outputs of a target, by dataset and call.

    Notes
    -----
    Nothing here bears on alarms: a target that went silent, or repeats itself, has no verdict where it would have had a
    pass.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Draws] = {}

    def add(self, data: Any, batch: Batch, call: Hashable) -> None:
        """Add the outputs of a call on a dataset.

        Parameters
        ----------
        data : object
            The dataset.
        batch : ndarray or list
            What the target gave.
        call : hashable
            Which call it was: what comes again for the same one is no repetition.
        """
        if id(data) not in self._seen:
            if len(self._seen) >= MOST:
                return
            self._seen[id(data)] = _Draws(data)
        if len(batch):
            self._seen[id(data)].add(batch, call)

    def describe(self, private: bool) -> str:
        """Say how the target went silent or repeats itself, if it does.

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
            if draws.repeats:
                return (
                    f"draws are not independent: on one dataset a call began with the {draws.repeated} outputs of "
                    "another one, in the same order, so that all draws count for fewer; if answers come from a cache, "
                    "or seeds are few, let each draw be a new one"
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
