"""The loop that ties sampling, events and evidence together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.errors import SpecificationError, positive
from auditor.events.features import Feature
from auditor.events.learner import Chain, EventLearner
from auditor.events.outputs import Batch
from auditor.evidence.wealth import Chunk, Stake, Wealth
from auditor.guarantees import Guarantee
from auditor.neighbors import Pair
from auditor.sampling import Sampler
from auditor.search import next_pair

#: Draws a side before the first bet, of each pair. Enough to place a first threshold; an infinite epsilon is found
#: with some tens of draws, so not more.
FIRST = 20
#: Each chunk is this part of what has been drawn of its pair: events and estimates are never much out of date, and the
#: number of chunks grows with the logarithm of the budget. Later chunks are relatively larger: estimates have settled.
GROWTH, LATE_GROWTH = 0.15, 0.2
#: Draws a side at which a pair's draws count as late.
LATE = 2_000
#: Largest chunk a side, so that memory does not grow with the budget.
LARGEST = 1 << 17
#: Default budget in outputs, both sides together: a lower bound within about 3 % of epsilon = 1.
DRAWS = 400_000


@dataclass(frozen=True)
class Settings:
    """How a claim is audited.

    Parameters
    ----------
    alpha : float
        Probability of a false alarm, in (0, 1).
    draws : int
        Budget in mechanism outputs, both sides together.
    seconds : float or None
        Budget in seconds; the audit stops at the first chunk boundary after it.
    stop : str
        "verdict": stop as soon as the claim is refuted. "budget": run on for the tightest lower bound.
    seed : int
        Seed of the run.
    detect : float or None
        Level that is to be detectable; default twice the claimed level, 0.1 if that is 0.
    limit : float or None
        Seconds that one call of the target may take.
    chunks : int or None
        Stop after so many chunks: how a run that time had truncated is reproduced.
    learners : callable or None
        Features that cost more to learn, see `EventLearner`.
    independence : bool
        Test first that draws are independent.
    """

    alpha: float = 0.01
    draws: int = DRAWS
    seconds: float | None = None
    stop: str = "verdict"
    seed: int = 0
    detect: float | None = None
    limit: float | None = 60.0
    chunks: int | None = None
    learners: Callable[[Batch, Batch], list[Feature]] | None = None
    independence: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 < self.alpha < 1:
            raise SpecificationError(f"alpha must be a number in (0, 1), got {self.alpha!r}")
        if isinstance(self.draws, bool) or not isinstance(self.draws, int | np.integer) or self.draws < 4 * FIRST:
            raise SpecificationError(f"draws must be an integer of at least {4 * FIRST}, got {self.draws!r}")
        for name in ("seconds", "detect", "limit"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.stop not in ("verdict", "budget"):
            raise SpecificationError(f'stop must be "verdict" or "budget", got {self.stop!r}')
        if self.chunks is not None and self.chunks < 1:
            raise SpecificationError(f"chunks must be at least 1, got {self.chunks!r}")
        if self.learners is not None and not callable(self.learners):
            raise SpecificationError(f"learners must be a function of two batches, got {self.learners!r}")

    def detectable(self, claimed: float) -> float:
        """Level that is to be detectable."""
        if self.detect is not None:
            return self.detect
        return 2 * claimed if claimed > 0 else 0.1


@dataclass
class Evidence:
    """All that was drawn and bet: enough to compute the verdict and the lower bound again.

    Attributes
    ----------
    chunks : list of Chunk
        In order.
    chains : list of Chain
        Events that the stakes refer to.
    wealth : Wealth
        Wealth at the claimed level.
    path : list of tuple of (int, float)
        Draws a side so far and the logarithm of the wealth at the claimed level, after each chunk.
    """

    wealth: Wealth
    chunks: list[Chunk] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    path: list[tuple[int, float]] = field(default_factory=list)
    learners: list[EventLearner] = field(default_factory=list)
    truncated_by: str | None = None

    @property
    def n(self) -> int:
        """Draws a side."""
        return sum(chunk.n for chunk in self.chunks)


def collect(sampler: Sampler, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings) -> Evidence:
    """Draw, learn and bet until the verdict or the end of the budget."""
    threshold = math.log(1 / settings.alpha)
    evidence = Evidence(Wealth(guarantee, np.array([guarantee.level])))
    evidence.learners = [EventLearner(guarantee, settings.alpha, settings.learners) for _ in pairs]
    numbers: dict[Chain, int] = {}
    side, used, begun = settings.draws // 2, 0, time.monotonic()
    while used < side:
        if settings.chunks is not None and len(evidence.chunks) >= settings.chunks:
            break
        if settings.seconds is not None and evidence.chunks and time.monotonic() - begun > settings.seconds:
            evidence.truncated_by = "time"
            break
        k = next_pair(evidence.learners, FIRST)
        learner = evidence.learners[k]
        growth = GROWTH if learner.n < LATE else LATE_GROWTH
        n = min(max(FIRST, math.ceil(growth * learner.n)), LARGEST, side - used)
        x = sampler.draw(pairs[k].x, n, k, "x", len(evidence.chunks))
        y = sampler.draw(pairs[k].y, n, k, "y", len(evidence.chunks))
        used += n
        counts = learner.count(x, y)
        stake = None
        if learner.proposal is not None:
            number = numbers.setdefault(learner.proposal.chain, len(numbers))
            stake = Stake(number, learner.proposal.best, *learner.proposal.estimates(), *counts[0])
        evidence.chunks.append(Chunk(k, n, stake))
        evidence.wealth.bet(stake)
        evidence.path.append((used, float(evidence.wealth.current[0])))
        rejected = bool(evidence.wealth.best[0] >= threshold)
        learner.add(x, y, counts)
        if rejected and settings.stop == "verdict":
            break
        learner.learn(rejected)
    evidence.chains = list(numbers)
    return evidence
