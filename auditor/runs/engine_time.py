"""The engine's own time on a target's outputs, from a small audit of one dataset against itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.audits.privacy_loop import ChunkPlan, Settings, collect_evidence
from auditor.datasets import Pair
from auditor.events.event_learner import FINALISTS, RESERVOIR
from auditor.evidence.two_sample_bet import Chunk
from auditor.privacy.guarantees import Guarantee
from auditor.targets import Mechanism
from auditor.targets.sampler import Drawn, Sampler

#: Draws of the small audit, both sides: most pairs of an attack have fewer, and what one takes shows by then. With half
#: of them an audit of 200,000 draws of ragged lists took 1.4 times as long as estimated, with these 1.2 times.
DRAWS = 32_000
#: Draws a side that show what a further one takes once events are no longer learned from it.
_LATE = 2_000


@dataclass(frozen=True)
class EngineTime:
    """Seconds of the engine on one pair of datasets, by its draws.

    Parameters
    ----------
    sizes : tuple of int
        Draws a side, increasing.
    seconds : tuple of float
        What so many took, without drawing them.
    late : float
        Seconds of a further draw a side when the reservoir is full.
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    late: float

    def of_pair(self, n: int) -> float:
        """Seconds of n draws a side.

        Beyond those measured along the last slope, beyond the reservoir by what a late draw takes.
        """
        last = self.sizes[-1]
        if n <= last:
            return float(np.interp(n, (0, *self.sizes), (0.0, *self.seconds)))
        # From a quarter on: events are learned anew so seldom that a shorter part has one time more or less by chance.
        early = max(last // 4, self.sizes[0])
        slope = (self.seconds[-1] - float(np.interp(early, self.sizes, self.seconds))) / max(last - early, 1)
        learned = max(min(n, RESERVOIR), last)
        return self.seconds[-1] + (learned - last) * slope + (n - learned) * self.late

    def of_pairs(self, side: int, pairs: int) -> float:
        """Seconds of ``side`` draws a side, spread evenly.

        Parameters
        ----------
        side : int
            Draws of each dataset, over all pairs.
        pairs : int
            Pairs of datasets, at least 1.
        """
        few, more = divmod(side, pairs)
        return more * self.of_pair(few + 1) + (pairs - more) * self.of_pair(few)


@dataclass
class _Stopwatch:
    """Notes the time at which each chunk begins, without what was drawn until then."""

    clock: Callable[[], float]
    drawing: float = 0.0
    begun: float = 0.0
    drawn: int = 0
    noted: list[tuple[int, float]] = field(default_factory=list)

    def plan(self, number: int, plan: ChunkPlan, sampler: Sampler) -> None:
        """See `Recorder`."""
        del number, sampler
        if self.drawn:
            self.noted.append((self.drawn, self.clock() - self.begun - self.drawing))
        self.drawn += plan.n

    def count(self, number: int, chunk: Chunk, log: float, sampler: Sampler) -> None:
        """See `Recorder`."""


class _TimedSampler(Sampler):
    """A sampler that tells a stopwatch what drawing takes."""

    watch: _Stopwatch

    def draw_sides(self, x: Any, y: Any, n: int, pair: int, chunk: str | int) -> tuple[Drawn, Drawn]:
        """See `Sampler`."""
        begun = self.watch.clock()
        drawn = super().draw_sides(x, y, n, pair, chunk)
        self.watch.drawing += self.watch.clock() - begun
        return drawn


def measure_engine(
    target: Mechanism,
    data: Any,
    guarantee: Guarantee,
    draws: int = DRAWS,
    limit: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> EngineTime:
    """Audit a dataset against itself, and time all but the draws.

    Parameters
    ----------
    target : Mechanism
        What is audited.
    data : object
        The dataset, on both sides.
    guarantee : Guarantee
        Claim that the audit is of.
    draws : int
        Draws of the audit, both sides together, at least 32.
    limit : float or None
        Seconds that one call may take.
    clock : callable
        Gives seconds; default the time of the machine.

    Returns
    -------
    EngineTime

    Raises
    ------
    TargetError
        If the target fails.
    """
    watch = _Stopwatch(clock)
    sampler = _TimedSampler(target, 0, "pilot/engine", limit, catching=True)
    sampler.watch = watch
    settings = Settings(draws=draws, stop="budget", independence=False)
    watch.begun = clock()
    evidence = collect_evidence(sampler, guarantee, [Pair(data, data)], settings, recorder=watch)
    watch.noted.append((watch.drawn, clock() - watch.begun - watch.drawing))
    n = min(_LATE, draws // 2)
    x, y = (drawn.batch for drawn in sampler.draw_sides(data, data, n, 0, "late"))
    learner = evidence.learners[0]
    learner.finalists = learner.finalists[: FINALISTS // 2]  # about as many as are left by then
    begun = clock()
    learner.count(x, y)
    late = (clock() - begun) / n
    sizes, seconds = zip(*watch.noted, strict=True)
    return EngineTime(sizes, tuple(np.maximum.accumulate(seconds).tolist()), late)
