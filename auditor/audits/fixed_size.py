"""The fixed-size method: half of the draws choose pair and event, the other half judge them, once.

It is the audit of most of the literature, kept for comparison with it (catalogue 000_001_003, A12). It is not anytime:
the number of draws is fixed beforehand, and the verdict is read once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.dependence import Trace, looked_at
from auditor.audits.loop import ChunkLoop, ChunkRule
from auditor.audits.pair_search import next_pair
from auditor.audits.privacy_loop import CHUNKS, LARGEST, Settings, find_resolutions, learners_of, training_record
from auditor.datasets import Pair
from auditor.events.descriptions import say_event
from auditor.events.event_learner import Chain, EventLearner, Proposal
from auditor.evidence.binomial import clopper_pearson
from auditor.evidence.two_sample_bet import Chunk
from auditor.privacy.guarantees import Guarantee
from auditor.targets.sampler import Sampler

Array = NDArray[np.float64]

#: Calls in which the event is judged, at least: enough to see whether the draws of a call go together.
_CALLS = 20
#: Quantiles of each binomial count in `flag_probability`, as in `auditor.evidence.power`.
_QUANTILES = 32


def flag_probability(p: float, q: float, n: int, guarantee: Guarantee, alpha: float) -> float:
    """Probability that n judging draws refute the claim.

    Draws a side, of an event with probabilities p and q.

    Parameters
    ----------
    p, q : float
        Probabilities of the event under the first and the second dataset.
    n : int
        Judging draws a side.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test, in (0, 1).
    """
    from scipy import stats  # takes longer to import than numpy

    grid = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    lower = clopper_pearson(stats.binom.ppf(grid, n, p), n, alpha / 2, "lower")[:, None]
    upper = clopper_pearson(stats.binom.ppf(grid, n, q), n, alpha / 2, "upper")[None, :]
    flagged = (lower > upper) & (guarantee.level_of(lower, upper) > guarantee.level)
    return float(flagged.mean())


@dataclass
class FixedSize:
    """Draws, and counts of the one event that was judged.

    With the draws that it was learned from.

    Attributes
    ----------
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test.
    learners : list of EventLearner
        After the first half.
    chunks : list of Chunk
        Of the first half; none of them was bet on.
    pair : int
        Pair that was judged.
    judged : Proposal or None
        A chain of the one event, with its counts in the second half; None if no event was found.
    truncated_by : str or None
        "time" if the first half was cut short.
    judgements : list of (int, int, int)
        Draws a side of each judging call, and how many were in the event, on each dataset.
    trace : Trace
        The judging draws, in the order in which they were made.
    """

    guarantee: Guarantee
    alpha: float
    learners: list[EventLearner]
    chunks: list[Chunk] = field(default_factory=list)
    pair: int = 0
    judged: Proposal | None = None
    truncated_by: str | None = None
    judgements: list[tuple[int, int, int]] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)

    #: Probability that draws flag an event. Of the draws a third or less counts, while half of them judge.
    flag = staticmethod(flag_probability)

    def most_drawn(self) -> tuple[int, int]:
        """The pair that was judged, and its draws.

        Twice the judging draws: as many are spent on learning.
        """
        return self.pair, 2 * self.judged.n if self.judged is not None else 0

    @property
    def n(self) -> int:
        """Draws a side, of both halves."""
        return sum(chunk.n for chunk in self.chunks) + (self.judged.n if self.judged is not None else 0)

    def carriers(self, alpha: float) -> set[int]:  # noqa: ARG002 - as for `Evidence`
        """Pairs that a refutation rests on."""
        return {self.pair}

    def gains(self) -> dict[int, float]:
        """Pairs that were judged, with all possible gain on each."""
        return {self.pair: 0.0}

    def calls(self) -> list[list[tuple[int, int]]]:
        """Draws of each judging call, and those in the event.

        On each dataset.
        """
        sides = [[(n, x) for n, x, _ in self.judgements], [(n, y) for n, _, y in self.judgements]]
        return sides if self.judgements else []

    def limits(self) -> tuple[float, float]:
        """Limits of the event's probabilities under P and Q.

        Lower under P and upper under Q, each at alpha / 2.
        """
        if self.judged is None:
            return 0.0, 1.0
        n, half = self.judged.n, self.alpha / 2
        p = clopper_pearson(self.judged.x, n, half, "lower")
        q = clopper_pearson(self.judged.y, n, half, "upper")
        return float(p[0]), float(q[0])

    def lower_bound(self) -> float:
        """Certified level at confidence 1 - alpha.

        Valid because: pair and event are functions of the first half, and given the first half the counts in the second
        half, whose size was fixed before its first draw, are Binomial(n, p) and Binomial(n, q). Each limit is on the
        wrong side of p or q with probability at most alpha / 2, so with probability at least 1 - alpha the true p is at
        least the one limit and the true q at most the other. ``level_of`` grows with p and falls with q, so that then
        the bound is at most ``level_of(p, q)``, which no level that the mechanism satisfies is below. Both lines of a
        cap, the event's and that of its complement with the datasets exchanged, are read off the same two limits, so
        that the event counts as oriented by the first half and nothing is to be corrected for.
        """
        p, q = self.limits()
        return float(self.guarantee.level_of(np.array(p), np.array(q))) if p > q else 0.0

    def refuted(self, alpha: float) -> bool:
        """Whether the bound exceeds the claim."""
        del alpha  # that of the limits
        return self.lower_bound() > self.guarantee.level


def collect_fixed(sampler: Sampler, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings) -> FixedSize:
    """Learn from half of the budget, then judge the best event.

    It is counted in the other half.

    A budget in seconds cuts the first half short when half of it is over; the second half then has as many draws as the
    first had, which is settled before it begins.

    Parameters
    ----------
    sampler : Sampler
        Makes the draws.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        Pairs to draw from; one of them is judged.
    settings : Settings
        Budget, level and learners.
    """
    found = FixedSize(guarantee, settings.alpha, learners_of(sampler, guarantee, pairs, settings))
    side = settings.draws // 2
    seconds = None if settings.seconds is None else settings.seconds / 2
    loop = ChunkLoop(CHUNKS, side // 2, seconds, settings.chunks)
    for chunk in loop:
        k = next_pair(found.learners, CHUNKS.first, promising=settings.promising(guarantee.level))
        learner = found.learners[k]
        # As in `collect`: what is fitted counts only if another chunk is drawn.
        if loop.begun and not learner.fit(True, loop.clock.left):
            loop.truncated_by = "time"
            break
        n = loop.take(CHUNKS.size(learner.n, loop.left))
        x, y = (drawn.batch for drawn in sampler.draw_sides(pairs[k].x, pairs[k].y, n, k, chunk))
        found.chunks.append(Chunk(k, n, None))
        learner.add(x, y, learner.count(x, y))
        learner.learn(True)  # what is wanted is the largest level within reach, whatever is claimed
    found.truncated_by = loop.truncated_by
    found.pair, chain = _best_of_first_half(found, settings.alpha)
    if chain is not None:
        n = loop.used if loop.left else side - loop.used
        found.judged = _count_event(sampler, pairs[found.pair], found, chain, n)
    return found


def look_on(
    found: FixedSize, sampler: Sampler, pairs: Sequence[Pair], settings: Settings, seconds: float | None = None
) -> None:
    """Extend a refutation's trace by draws that are not judged.

    Parameters
    ----------
    found : FixedSize
        Evidence with an event that was judged.
    sampler : Sampler
        Made its draws.
    pairs : sequence of Pair
        The pairs that were audited.
    settings : Settings
        Its ``comparisons`` say how many draws are looked at.
    seconds : float, optional
        No further draws are made after these.
    """
    assert found.judged is not None
    chain, pair = found.judged.chain, pairs[found.pair]
    for i, n in enumerate(found.trace.missing(looked_at(settings.comparisons), seconds)):
        for side, drawn in enumerate(sampler.draw_sides(pair.x, pair.y, n, found.pair, f"look {i}")):
            found.trace.add("judged", side, drawn.place, chain.depth(chain.feature(drawn.batch)))


def _best_of_first_half(found: FixedSize, alpha: float) -> tuple[int, Chain | None]:
    """The pair and event on which the first half alone would have given the largest bound."""
    best: tuple[float, int, Chain | None] = (-math.inf, 0, None)
    for k, learner in enumerate(found.learners):
        for finalist in learner.finalists:
            p = clopper_pearson(finalist.x, finalist.n, alpha / 2, "lower")
            q = clopper_pearson(finalist.y, finalist.n, alpha / 2, "upper")
            levels = np.where(p > q, found.guarantee.level_of(p, q), 0.0)
            j = int(np.argmax(levels))
            if levels[j] > best[0]:
                chain = finalist.chain
                best = float(levels[j]), k, Chain(chain.feature, chain.side, (chain.cuts[j],))
    return best[1:]


def _count_event(sampler: Sampler, pair: Pair, found: FixedSize, chain: Chain, n: int) -> Proposal:
    """Count the event in n further draws a side."""
    loop = ChunkLoop(ChunkRule(min(LARGEST, math.ceil(n / _CALLS)), growth=0.0), n, number=len(found.chunks))
    for number in loop:
        drawn, counts = loop.take(), []
        for side, (batch, _, place) in enumerate(sampler.draw_sides(pair.x, pair.y, drawn, found.pair, number)):
            inside = chain.depth(chain.feature(batch))
            found.trace.add("judged", side, place, inside)
            counts.append(int(inside.sum()))
        found.judgements.append((drawn, counts[0], counts[1]))
    counts = np.array([[x, y] for _, x, y in found.judgements], dtype=float).sum(axis=0)
    return Proposal(chain, 0, counts[:1], counts[1:], n)


def fixed_findings(
    found: FixedSize, guarantee: Guarantee, pairs: Sequence[Pair], settings: Settings, private: bool
) -> dict[str, Any]:
    """Bound, power and the event, without an e-value.

    It is the counterpart of `auditor.audits.summary.summarise_findings`.

    Parameters
    ----------
    found : FixedSize
        The evidence.
    guarantee : Guarantee
        The claim.
    pairs : sequence of Pair
        The pairs that were audited.
    settings : Settings
        Level and method.
    private : bool
        Datasets are not shown.
    """
    judged = found.judged
    n = judged.n if judged is not None else 0
    p_lower, q_upper = found.limits()
    result: dict[str, Any] = {
        "draws": 2 * found.n,
        "lower_bound": found.lower_bound(),
        "ceiling": fixed_ceiling(n, guarantee, settings.alpha),
        **find_resolutions(found, settings.alpha),
        "pair": pairs[found.pair].name,
        "truncated_by": found.truncated_by,
        "record": {
            "method": settings.method,
            "pairs": [pair.name for pair in pairs],
            "events": [] if judged is None else [[say_event(judged.chain, 0, private)]],
            "chunks": [[chunk.pair, chunk.n, None] for chunk in found.chunks],
            **training_record(found.learners),
        },
        "log10_max_e_value": None,
        "_pair": found.pair,
        "_best": judged,
    }
    if judged is not None:
        x, y = int(judged.x[0]), int(judged.y[0])
        judgement = {"pair": found.pair, "n": n, "x": x, "y": y, "p_lower": p_lower, "q_upper": q_upper}
        result["record"]["judged"] = judgement
        result["event"] = say_event(judged.chain, 0, private)
    return result


def fixed_ceiling(n: int, guarantee: Guarantee, alpha: float) -> float:
    """Largest level that n judging draws a side can certify.

    Every draw of P and none of Q lies in the event.

    Parameters
    ----------
    n : int
        Judging draws a side.
    guarantee : Guarantee
        The notion of privacy.
    alpha : float
        Level of the test, in (0, 1).
    """
    if n <= 0:
        return 0.0
    p, q = clopper_pearson(n, n, alpha / 2, "lower"), clopper_pearson(0, n, alpha / 2, "upper")
    return float(guarantee.level_of(p, q)) if p > q else 0.0
