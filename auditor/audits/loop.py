"""The loop that every audit by draws runs: chunk after chunk, until a verdict or the end of the budget."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ChunkRule:
    """Sizes of chunks, as a function of the draws before.

    Parameters
    ----------
    first : int
        Draws in the first chunk.
    growth : float
        Each later chunk is this part of what has been drawn.
    smallest : int or None
        Fewest draws in a later chunk, ``first`` if None.
    largest : int or None
        Most draws in a chunk, so that memory does not grow with the budget.
    late : (int, float) or None
        Draws from which growth is another, and that growth.
    """

    first: int
    growth: float
    smallest: int | None = None
    largest: int | None = None
    late: tuple[int, float] | None = None

    def size(self, drawn: int, left: int | None = None) -> int:
        """Draws in the next chunk after ``drawn``.

        No more than are left of a budget.

        Parameters
        ----------
        drawn : int
            Draws so far.
        left : int or None
            Rest of the budget; None for no limit.
        """
        growth = self.growth if self.late is None or drawn < self.late[0] else self.late[1]
        least = self.first if self.smallest is None else self.smallest
        n = max(least, math.ceil(growth * drawn)) if drawn >= self.first else self.first
        return min(bound for bound in (n, self.largest, left) if bound is not None)


@dataclass(frozen=True)
class Clock:
    """A budget in seconds from now on; None has no end."""

    seconds: float | None
    begun: float = field(default_factory=lambda: time.monotonic())

    def left(self) -> bool:
        """Whether time is left."""
        return self.seconds is None or time.monotonic() - self.begun <= self.seconds


@dataclass
class ChunkLoop:
    """The chunks of one audit.

    Iterate, `take` the draws of each, and ``break`` at the verdict.

    Parameters
    ----------
    rule : ChunkRule
        Sizes of chunks.
    draws : int
        Budget in draws, of each dataset.
    seconds : float or None
        Budget in seconds; the loop ends at the first boundary after it, and after one chunk at least.
    chunks : int or None
        Stop after so many chunks.
    number : int
        Of the first chunk: how many there were in earlier runs.

    Attributes
    ----------
    used : int
        Draws so far.
    truncated_by : str or None
        "time" if that cut the audit short.

    Notes
    -----
    Valid because: the size of a chunk depends on the number of draws before it, on the budget and on what the body
    knows from past draws; a verdict is read at chunk boundaries only, by evidence that holds at all of them together.
    """

    rule: ChunkRule
    draws: int
    seconds: float | None = None
    chunks: int | None = None
    number: int = 0
    used: int = field(default=0, init=False)
    truncated_by: str | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[int]:
        """Numbers of the chunks."""
        self.clock, self.first = Clock(self.seconds), self.number
        while self.used < self.draws and not (self.chunks is not None and self.number >= self.chunks):
            if self.begun and not self.clock.left():
                self.truncated_by = "time"
                return
            yield self.number
            self.number += 1

    @property
    def begun(self) -> bool:
        """Whether a chunk of this run was drawn."""
        return self.number > self.first

    def take(self, n: int | None = None) -> int:
        """Spend the draws of this chunk.

        They are ``n``, or as many as the rule gives.
        """
        n = self.rule.size(self.used, self.left) if n is None else n
        self.used += n
        return n

    @property
    def left(self) -> int:
        """Draws that are left of the budget."""
        return self.draws - self.used
