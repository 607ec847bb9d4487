"""The loop of a privacy audit: choose a pair, draw a chunk, bet, learn."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.audits.defaults import DRAWS, METHODS
from auditor.audits.dependence import Trace, looked_at
from auditor.audits.independence import COMPARISONS
from auditor.audits.loop import ChunkLoop, ChunkRule
from auditor.audits.pair_search import AT_ONCE, FIRST_OF_MANY, ExclusiveOutputs, LastDraws, next_pair
from auditor.datasets import Pair
from auditor.errors import SpecificationError, check_alpha, check_positive
from auditor.events.cause_kinds import read_kinds
from auditor.events.classifier import Learners, fitters_of
from auditor.events.elements import read_once
from auditor.events.event_learner import RESERVOIR, Chain, EventLearner
from auditor.events.ignored_causes import find_kept_without
from auditor.events.learner_state import restore_state
from auditor.events.log_likelihood_ratio import own_ratio
from auditor.evidence.lower_bound import rejects_below
from auditor.evidence.power import (
    PROBABILITIES,
    RESOLVED,
    draws_that_count,
    draws_to_resolve,
    find_resolution,
    flag_probability,
)
from auditor.evidence.two_sample_bet import Chunk, Stake, Wealth, worst_counts
from auditor.privacy.guarantees import Guarantee
from auditor.results import FIXED_SIZE, usual_level
from auditor.targets.outputs import Batch
from auditor.targets.sampler import Sampler

#: Draws a side before the first bet, of each pair, and the fewest in a later chunk. Outputs that have nothing in common
#: are found with 18 to 23 draws, two and a half times what is needed by whoever knows both distributions; chosen by
#: simulation.
FIRST, SMALLEST = 8, 5
#: Largest chunk a side, so that memory does not grow with the budget.
LARGEST = 1 << 17
#: Draws a side of each pair. A chunk is a part of what has been drawn of its pair: events and estimates are never much
#: out of date, and the number of chunks grows with the logarithm of the budget. Later chunks are relatively larger:
#: estimates have settled.
CHUNKS = ChunkRule(FIRST, growth=0.15, smallest=SMALLEST, largest=LARGEST, late=(2_000, 0.2))
#: The same where there are many pairs in no order of promise.
CHUNKS_OF_MANY = replace(CHUNKS, first=FIRST_OF_MANY)
#: Chunks while the wealth is less than `NEAR` nats below 1/alpha. Verdicts are read at the end of a chunk. The log
#: wealth of a false claim fluctuates by a few nats, so that smaller chunks see it cross the threshold earlier, and
#: their bets use newer estimates. Chosen by simulation on seeds from 50,000 and 70,000 of the cases of
#: `benchmarks.head_to_head` and `benchmarks.power`: the geometric means of their draws to a verdict became 0.76 to 0.96
#: times what they were. Draws that are taken one a call after a doubt keep `CHUNKS`. An audit that stops at a peak of
#: its wealth ends with draws that are extreme together, which the tests of those draws take for dependence: of 1,093
#: such refutations in small chunks 3 were dismissed, of 1,056 in `CHUNKS` none.
NEAR, CHUNKS_NEAR = 2.5, ChunkRule(FIRST, growth=0.03, smallest=2, largest=LARGEST)
#: Most numbers in a chunk a side, for outputs of many coordinates: 256 MB of doubles.
NUMBERS = 1 << 25


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
        Level that an event of probability 0.01 is to be found at; default twice the claimed level, 0.1 if that is 0.
    limit : float or None
        Seconds that one call of the target may take.
    chunks : int or None
        Stop after so many chunks: how a run that time had truncated is reproduced.
    learners : str, callable or None
        Features that cost more to learn: "logistic", "boosted trees", "classifiers" or a function, see `EventLearner`.
    independence : bool
        Test first that draws are independent.
    comparisons : int
        Comparisons of each of those tests, at least 22, which is how many must go the same way: fewer than usual for
        targets so slow that the tests would take most of the time.
    even : bool
        Choose among up to `auditor.audits.pair_search.AT_ONCE` pairs as among more, whose draws are spread more evenly:
        for pairs that were not chosen because each shows something, in the order of their promise.
    method : str
        "e-process", or "clopper-pearson" for the fixed-size method of the literature, see `auditor.audits.fixed_size`;
        that one is judged once, so that it always runs to its budget.
    ignore : str or sequence of str
        Kinds of causes that nothing is bet on, names of `auditor.events.cause_kinds.IGNORABLE`.
    also : bool
        After a violation of such a kind go on without it, see `auditor.audits.further_causes`.
    """

    alpha: float = 0.01
    draws: int = DRAWS
    seconds: float | None = None
    stop: str = "verdict"
    seed: int = 0
    detect: float | None = None
    limit: float | None = 60.0
    chunks: int | None = None
    learners: Learners | None = None
    independence: bool = True
    comparisons: int = COMPARISONS
    even: bool = False
    method: str = METHODS[0]
    # Not in the text of settings, which the hash of a specification is made of: claims without them keep theirs.
    ignore: str | Sequence[str] = field(default=(), repr=False)
    also: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if isinstance(self.draws, bool) or not isinstance(self.draws, int | np.integer) or self.draws < 4 * FIRST:
            raise SpecificationError(f"draws must be an integer of at least {4 * FIRST}, got {self.draws!r}")
        for name in ("seconds", "detect", "limit"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))  # an infinite detect would let every audit pass
        if self.stop not in ("verdict", "budget"):
            raise SpecificationError(f'stop must be "verdict" or "budget", got {self.stop!r}')
        if self.chunks is not None and self.chunks < 1:
            raise SpecificationError(f"chunks must be at least 1, got {self.chunks!r}")
        fitters_of(self.learners)
        if self.method not in METHODS:
            raise SpecificationError(f"method must be one of {', '.join(map(repr, METHODS))}, got {self.method!r}")
        if self.method == FIXED_SIZE:
            object.__setattr__(self, "stop", "budget")
        object.__setattr__(self, "ignore", read_kinds(self.ignore))
        if not isinstance(self.also, bool):
            raise SpecificationError(f"also must be True or False, got {self.also!r}")

    @property
    def of_second_opinion(self) -> Settings:
        """Settings for reaching a refutation again.

        It goes no further than that, as a call for each draw takes long.
        """
        return replace(self, stop="verdict")

    def wanted(self, claimed: float) -> float:
        """Level that is to be resolved."""
        if self.detect is not None:
            return self.detect
        return usual_level(claimed)

    def promising(self, claimed: float) -> float:
        """Level halfway between the claimed and the wanted one."""
        return (claimed + self.wanted(claimed)) / 2


@dataclass(frozen=True)
class ChunkPlan:
    """A chunk before it is drawn.

    Parameters
    ----------
    pair : int
        Index of the pair.
    n : int
        Draws a side.
    bet : Stake or None
        What is bet on it, without counts.
    chain : Chain or None
        The events that are bet on.
    """

    pair: int
    n: int
    bet: Stake | None
    chain: Chain | None


class Recorder(Protocol):
    """Who writes down what is drawn while it is, see `auditor.runs.ledger.session.Night`."""

    def plan(self, number: int, plan: ChunkPlan, sampler: Sampler) -> None:
        """A chunk is going to be drawn; nothing of it has been.

        Parameters
        ----------
        number : int
            Number of the chunk.
        plan : ChunkPlan
            The chunk, without counts.
        sampler : Sampler
            Will make the draws.
        """

    def count(self, number: int, chunk: Chunk, log: float, sampler: Sampler) -> None:
        """Record a chunk that was counted.

        ``log`` is the logarithm of the wealth after it.

        Parameters
        ----------
        number : int
            Number of the chunk.
        chunk : Chunk
            The chunk, with counts.
        log : float
            Natural logarithm of the wealth at the claimed level.
        sampler : Sampler
            Made the draws.
        """


@dataclass(frozen=True)
class Past:
    """What earlier runs counted, see `auditor.runs.ledger`.

    Parameters
    ----------
    chunks : tuple of Chunk
        In order.
    words : tuple of tuple of str
        Events of each chain that the stakes refer to.
    chains : mapping of Chain to int
        Those chains that can be bet on again.
    path : tuple of (int, float)
        See `Evidence`.
    memory : mapping of int to bytes
        What the learners of the pairs knew, see `auditor.events.learner_state`.
    pending : ChunkPlan or None
        A chunk that an earlier run drew and did not count, and whose draws will come again: it is the next one.
    """

    chunks: tuple[Chunk, ...] = ()
    words: tuple[tuple[str, ...], ...] = ()
    chains: Mapping[Chain, int] = field(default_factory=dict)
    path: tuple[tuple[int, float], ...] = ()
    memory: Mapping[int, bytes] = field(default_factory=dict)
    pending: ChunkPlan | None = None


@dataclass
class Evidence:
    """All draws and bets of a privacy audit.

    They are enough to compute the verdict and the lower bound again.

    Attributes
    ----------
    chunks : list of Chunk
        In order.
    chains : list of Chain
        Events that the stakes refer to, numbered after those of ``past``.
    wealth : Wealth
        Wealth at the claimed level.
    path : list of tuple of (int, float)
        Draws a side so far and the logarithm of the wealth at the claimed level, after each chunk.
    past : Past
        What the first of the chunks are; nothing without a ledger.
    trace : Trace
        The latest draws that were bet on, in the order in which they were made.
    """

    wealth: Wealth
    chunks: list[Chunk] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    path: list[tuple[int, float]] = field(default_factory=list)
    learners: list[EventLearner] = field(default_factory=list)
    truncated_by: str | None = None
    past: Past = field(default_factory=Past)
    trace: Trace = field(default_factory=Trace)
    _refuted: float | None = field(default=None, init=False)

    def take_up(self, past: Past) -> None:
        """Resume from the bets and learners of earlier runs."""
        self.past = past
        for chunk in past.chunks:
            self.chunks.append(chunk)
            self.wealth.bet(chunk.stake)
            self.path.append((self.n_of_path + chunk.n, float(self.wealth.current[0])))
        for k, content in past.memory.items():
            restore_state(self.learners[k], content)

    @property
    def n_of_path(self) -> int:
        """Draws a side up to the last chunk of the path."""
        return self.path[-1][0] if self.path else 0

    @property
    def n(self) -> int:
        """Draws a side."""
        return sum(chunk.n for chunk in self.chunks)

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""
        return self.wealth.guarantee

    def most_drawn(self) -> tuple[int, int]:
        """The pair with most draws, and its draws a side."""
        drawn = Counter[int]()
        for chunk in self.chunks:
            drawn[chunk.pair] += chunk.n
        return drawn.most_common(1)[0] if drawn else (0, 0)

    #: Probability that draws flag an event, a function of its probabilities and the claim.
    flag = staticmethod(flag_probability)

    def gains(self) -> dict[int, float]:
        """Gain of the log wealth on each pair drawn from.

        At the claimed level.

        Up to its largest value, where a refuted claim was refuted.
        """
        logs = [0.0, *(log for _, log in self.path)]
        peak = max(range(len(logs)), key=lambda k: (logs[k], -k))
        gained = dict.fromkeys((chunk.pair for chunk in self.chunks), 0.0)
        for before, after, chunk in zip(logs, logs[1 : peak + 1], self.chunks, strict=False):
            if before < after or before > after:  # neither is so where both are infinite
                gained[chunk.pair] += after - before
        return gained

    def carriers(self, alpha: float) -> set[int]:
        """Pairs that the refutation rests on.

        The fewest whose gains alone make the wealth reach 1/alpha.
        """
        kept: set[int] = set()
        total = 0.0
        for pair, gain in sorted(self.gains().items(), key=lambda item: -item[1]):
            if total >= math.log(1 / alpha):
                break
            kept.add(pair)
            total += gain
        return kept

    def calls(self) -> list[list[tuple[int, int]]]:
        """Draws of each call, and those in the event.

        For each event that was bet on, and each dataset.
        """
        groups: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        for chunk in self.chunks:
            if chunk.stake is not None and chunk.whole:
                inside = chunk.stake.best + 1
                for side, cells in (("x", chunk.stake.x), ("y", chunk.stake.y)):
                    key = (chunk.pair, chunk.stake.chain, chunk.stake.best, side)
                    groups.setdefault(key, []).append((chunk.n, sum(cells[inside:])))
        return list(groups.values())

    def nearly_refuted(self, alpha: float) -> bool:
        """Whether the wealth is less than `NEAR` nats below 1/alpha."""
        return 0.0 < math.log(1 / alpha) - float(self.wealth.current[0]) < NEAR

    def refuted(self, alpha: float) -> bool:
        """Whether the claimed level was ever rejected.

        With all smaller ones, see `rejects_below`.
        """
        if self.wealth.best[0] < math.log(1 / alpha):
            return False
        if self._refuted != alpha and rejects_below(self.chunks, self.guarantee, alpha):
            self._refuted = alpha  # for good: wealth is judged by its maximum
        return self._refuted == alpha


class Collected(Protocol):
    """What was drawn for a claim, by either method."""

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""

    @property
    def learners(self) -> Sequence[EventLearner]:
        """One for each pair."""

    @property
    def n(self) -> int:
        """Draws a side."""

    def flag(self, p: float, q: float, n: int, guarantee: Guarantee, alpha: float) -> float:
        """Probability that n draws a side flag an event.

        Its probabilities are p and q.

        Parameters
        ----------
        p, q : float
            In [0, 1].
        n : int
            Draws a side that count, see `draws_that_count`.
        guarantee : Guarantee
            The claim.
        alpha : float
            Level of the test, in (0, 1).
        """

    def most_drawn(self) -> tuple[int, int]:
        """The pair with most draws, and its draws a side."""

    def refuted(self, alpha: float) -> bool:
        """Whether the claim is refuted."""


def count_effective_draws(drawn: Collected, n: float) -> int:
    """Effective draws of ``n``, the learning of events paid for.

    On the pair that was drawn from most.

    Parameters
    ----------
    drawn : Collected
        What was drawn.
    n : float
        Draws a side.
    """
    past = drawn.learners[drawn.most_drawn()[0]].reservoir
    return draws_that_count(n, past.width, past.size)


def find_resolutions(drawn: Collected, alpha: float) -> dict[str, Any]:
    """Fields of a result on its resolution.

    On the pair that was drawn from most; none where nothing was drawn.

    Valid because: they are functions of the claim, the draws of that pair and how many numbers an output has, not of
    what the outputs are; a pair on which more is to be found is drawn from more. How far learning divides the draws is
    measured, see `auditor.evidence.power.draws_that_count`.

    Parameters
    ----------
    drawn : Collected
        What was drawn.
    alpha : float
        Level of the test, in (0, 1).

    Returns
    -------
    dict
        ``resolution``, a level for each of `PROBABILITIES`, and ``resolves``, the one at `RESOLVED`; empty if the claim
        was refuted.
    """
    if drawn.refuted(alpha):
        return {}
    n = count_effective_draws(drawn, drawn.most_drawn()[1])
    found = {p: find_resolution(p, n, drawn.guarantee, alpha, drawn.flag) for p in PROBABILITIES}
    return {"resolution": {f"{p:g}": level for p, level in found.items()}, "resolves": found[RESOLVED]}


def learners_of(
    sampler: Sampler, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings
) -> list[EventLearner]:
    """A learner of events for each pair.

    Parameters
    ----------
    sampler : Sampler
        Has the target.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        The pairs to be audited.
    settings : Settings
        Level, the learners that were asked for, and the kinds of causes that are ignored.
    """
    find_kept = find_kept_without(settings.ignore)
    return [
        EventLearner(
            guarantee,
            settings.alpha,
            settings.learners,
            own_ratio(sampler, pair.x, pair.y),
            find_kept,
            alone=len(pairs) == 1,
        )
        for pair in pairs
    ]


def training_record(learners: Sequence[EventLearner]) -> dict[str, Any]:
    """Cost of fitting, for the record.

    Empty where nothing was to be fitted.
    """
    trainings = [learner.training for learner in learners if learner.training.fitters]
    if not trainings:
        return {}
    return {"training": {"fits": sum(t.fits for t in trainings), "rows": sum(t.rows for t in trainings)}}


def collect_evidence(
    sampler: Sampler,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    settings: Settings,
    past: Past | None = None,
    recorder: Recorder | None = None,
) -> Evidence:
    """Draw, learn and bet until the verdict or budget.

    It goes on from where earlier runs stopped.

    A claim that earlier runs have refuted is not drawn for again, unless what they learned was not kept.

    Parameters
    ----------
    sampler : Sampler
        Makes the draws.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        Pairs to draw from.
    settings : Settings
        Budget, level, learners and when to stop.
    past : Past or None
        What earlier runs drew and learned.
    recorder : Recorder or None
        Writes down each chunk.
    """
    evidence = Evidence(Wealth(guarantee, np.array([guarantee.level])))
    evidence.learners = learners_of(sampler, guarantee, pairs, settings)
    if past is not None:
        evidence.take_up(past)
    numbers, exclusive = dict(evidence.past.chains), ExclusiveOutputs()
    known, before = len(evidence.past.words), evidence.n
    loop = ChunkLoop(CHUNKS, settings.draws // 2, settings.seconds, settings.chunks, number=len(evidence.chunks))
    rejected, widest = evidence.refuted(settings.alpha), 1
    often = settings.stop == "verdict" and not sampler.scattered
    usual = CHUNKS_OF_MANY if len(pairs) > AT_ONCE and not settings.even else CHUNKS
    promising = settings.promising(guarantee.level)
    last = make_last_draws(guarantee, settings) if len(pairs) > 1 else None
    refuted_before, pending = rejected, evidence.past.pending
    if refuted_before and settings.stop == "verdict" and evidence.past.memory and pending is None:
        return evidence
    for chunk in loop:
        if pending is None:
            k = next_pair(evidence.learners, usual.first, settings.even, exclusive, promising)
            if last is not None:
                k = last.next_pair(evidence.learners, loop.left, k)
        else:
            k = pending.pair
        learner = evidence.learners[k]
        # What is fitted counts only if the next chunk is drawn: a run that time cut short can then be replayed.
        if loop.begun and not learner.fit(rejected, loop.clock.left):
            loop.truncated_by = "time"
            break
        plan, pending = pending, None
        if plan is None:
            rule = CHUNKS_NEAR if often and evidence.nearly_refuted(settings.alpha) else usual
            n = min(rule.size(learner.n, loop.left), max(NUMBERS // widest, SMALLEST))
            chain = bet = None
            if learner.proposal is not None:
                chain = learner.proposal.chain
                if chain not in numbers:
                    numbers[chain] = known + len(evidence.chains)
                    evidence.chains.append(chain)
                bet = learner.stake_on(numbers[chain])
            plan = ChunkPlan(k, n, bet, chain)
        if recorder is not None:
            recorder.plan(chunk, plan, sampler)
        n = loop.take(plan.n)
        (x, whole_x, place_x), (y, whole_y, place_y) = sampler.draw_sides(pairs[k].x, pairs[k].y, n, k, chunk)
        widest = max(
            widest, *(batch.shape[1] for batch in (x, y) if isinstance(batch, np.ndarray) and batch.ndim == 2), 1
        )
        if sampler.refused is not None and chunk - loop.first + 1 >= len(pairs):
            raise sampler.refused  # nothing but exceptions on all pairs: not a mechanism that can be audited
        counts = learner.count(x, y)
        stake = None
        if plan.bet is not None and plan.chain is not None:
            cells, depths = _cells(learner, plan.chain, x, y, counts)
            stake = worst_counts(replace(plan.bet, x=cells[0], y=cells[1]), n, not whole_x, not whole_y)
            for which, (place, depth) in enumerate(zip((place_x, place_y), depths, strict=True)):
                evidence.trace.add((k, plan.chain), which, place, depth)
        evidence.chunks.append(Chunk(k, n, stake, whole_x and whole_y))
        evidence.wealth.bet(stake)
        evidence.path.append((before + loop.used, float(evidence.wealth.current[0])))
        if recorder is not None:
            recorder.count(chunk, evidence.chunks[-1], evidence.path[-1][1], sampler)
        rejected = rejected or evidence.refuted(settings.alpha)
        learner.add(x, y, counts)
        if rejected and settings.stop == "verdict" and not refuted_before:
            break
        learner.learn(rejected)
    evidence.truncated_by = loop.truncated_by
    return evidence


def make_last_draws(guarantee: Guarantee, settings: Settings) -> LastDraws:
    """Make the rule for the last draws of a budget.

    Parameters
    ----------
    guarantee : Guarantee
        The claim.
    settings : Settings
        Budget, level, and the level that a pass is to resolve.
    """

    @cache
    def needed(width: int) -> float:
        count = partial(draws_that_count, width=width, learned_from=RESERVOIR)
        return draws_to_resolve(settings.wanted(guarantee.level), guarantee, settings.alpha, count)

    return LastDraws(settings.draws // 2, needed)


def _cells(
    learner: EventLearner, chain: Chain, x: Batch, y: Batch, counts: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """How a chunk falls into the cells of a chain, and how deep each of its draws."""
    if learner.proposal is not None and learner.proposal.chain is chain:
        return counts[0], learner.depths
    a, b = (chain.feature(read_once(batch)) for batch in (x, y))
    return (chain.cells_of(a), chain.cells_of(b)), (chain.depth(a), chain.depth(b))


#: Seconds that each of what follows a refutation may take, whatever the refutation took; arbitrary, fast targets need
#: far less.
FOLLOW_UP = 2.0


def follow_up_seconds(settings: Settings, begun: float) -> float | None:
    """Seconds for what follows a refutation: as many as passed before it.

    At least `FOLLOW_UP`, and at most a quarter of the budget; None without one.

    Parameters
    ----------
    settings : Settings
        With the budget.
    begun : float
        When the audit began, by `time.monotonic`.
    """
    if settings.seconds is None:
        return None
    return min(settings.seconds / 4, max(time.monotonic() - begun, FOLLOW_UP))


def look_on(
    evidence: Evidence, sampler: Sampler, pairs: Sequence[Pair], settings: Settings, seconds: float | None = None
) -> None:
    """Extend a refutation's trace by draws without bets.

    Parameters
    ----------
    evidence : Evidence
        Evidence that refutes the claim.
    sampler : Sampler
        Made its draws.
    pairs : sequence of Pair
        The pairs that were audited.
    settings : Settings
        Its ``comparisons`` say how many draws are looked at.
    seconds : float, optional
        No further draws are made after these.
    """
    gains = evidence.gains()
    k = max(gains, key=lambda pair: (gains[pair], -pair), default=0)
    best = evidence.learners[k].proposal
    if best is None:
        return
    for i, n in enumerate(evidence.trace.missing(looked_at(settings.comparisons), seconds)):
        for side, drawn in enumerate(sampler.draw_sides(pairs[k].x, pairs[k].y, n, k, f"look {i}")):
            evidence.trace.add((k, best.chain), side, drawn.place, best.chain.depth(best.chain.feature(drawn.batch)))
