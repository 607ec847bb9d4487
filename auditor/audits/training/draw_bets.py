"""Bets on draws of one run that each had a fair coin: canaries that do not interact, or steps given those before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.loop import ChunkRule
from auditor.audits.verdict import decide_verdict, describe_missed
from auditor.events.descriptions import say_event
from auditor.events.event_learner import RESERVOIR, EventLearner
from auditor.evidence.deadline_bet import SHARE, DeadlineWealth, EventDraws
from auditor.evidence.lower_bound import find_largest_rejected, level_grid, lower_bound
from auditor.evidence.power import PROBABILITIES, RESOLVED, draws_that_count, find_ceiling, find_resolution
from auditor.evidence.two_sample_bet import Chunk, Wealth
from auditor.privacy.guarantees import Guarantee
from auditor.results import AuditResult, Verdict, usual_level, wealth_fields

Array = NDArray[np.float64]

#: Chunks of draws between which events are learned anew.
_CHUNKS = ChunkRule(16, growth=0.2, smallest=8)
#: What may have been missed, of bets on learned events.
_MISSED = "an event of probability 0.01 that shows less than {}"


@dataclass(frozen=True)
class DrawBets:
    """Bets on draws that each had a fair coin.

    Parameters
    ----------
    chunks : list of Chunk
        Events, estimates and counts.
    wealth : Wealth
        At the claimed level, after all draws.
    draws, width : int
        Number of draws, and of the numbers of each.
    path : list of (int, float)
        Draws so far and logarithm of the wealth, after each chunk.
    event : str or None
        The event that was last bet on, in words.
    in_order : list of EventDraws or None, optional
        The draws of each chunk, where their number was known before them; else none are kept.
    """

    chunks: list[Chunk]
    wealth: Wealth | DeadlineWealth
    draws: int
    width: int
    path: list[tuple[int, float]]
    event: str | None
    in_order: list[EventDraws | None] | None = None

    def bound_level(self, claim: Guarantee, alpha: float) -> float:
        """Largest level that is rejected with all smaller ones.

        Parameters
        ----------
        claim : Guarantee
            The claim.
        alpha : float
            Probability of a false alarm.
        """
        grid, in_order = level_grid(claim.level, claim.highest, claim.unit), self.in_order
        if in_order is None:
            return lower_bound(self.chunks, claim, grid, alpha)

        def best_wealth(levels: Array) -> Array:
            wealth = DeadlineWealth(claim, levels, self.draws, alpha)
            for chunk, draws in zip(self.chunks, in_order, strict=True):
                wealth.bet(chunk.stake, draws, chunk.n)
                if wealth.best.min() >= -math.log(alpha):
                    break
            return wealth.best

        return find_largest_rejected(best_wealth, grid, alpha)


def bet_on_draws(
    values: Array,
    included: NDArray[np.bool_],
    claim: Guarantee,
    alpha: float,
    rule: ChunkRule = _CHUNKS,
    deadline: bool = False,
) -> DrawBets:
    """Bet on events of single draws, in the given order.

    Valid because: given the draws before, let an event have the probability p_i where coin i is heads and q_i where it
    is not; these may differ between draws. The coin is fair, so that the factor 1 + s (g - p0) if it is heads and
    1 - s E (g - q0) if it is not has the expectation 1 + s ((p_i - p0) - E (q_i - q0)) / 2 <= 1 under the claim,
    (p0, q0) on the cap and E the slope of a line above it there. Event, point and stake are functions of the draws
    before; so the product is a test supermartingale. (To pair the k-th draw of heads with the k-th of tails, as draws
    of two samples are, would be wrong: of two canaries of which one always is in the event and one never is, a pair's
    factor has the expectation 1 + s^2 / 4 at epsilon = 0.)

    Parameters
    ----------
    values : ndarray of shape (n, ...)
        Draws: numbers, or vectors.
    included : ndarray of bool of shape (n,)
        Coins.
    claim : Guarantee
        What is claimed of each draw.
    alpha : float
        Probability of a false alarm, to which the events are fitted.
    rule : ChunkRule
        Draws between which events are learned anew.
    deadline : bool
        The number of draws was fixed before any of them: most of the wealth bets for it, see `DeadlineWealth`.
    """
    learner = EventLearner(claim, alpha)
    level = np.array([claim.level])
    wealth = DeadlineWealth(claim, level, len(values), alpha) if deadline else Wealth(claim, level)
    in_order: list[EventDraws | None] = []
    chunks: list[Chunk] = []
    path: list[tuple[int, float]] = []
    waiting: tuple[Array, Array] = (values[:0], values[:0])
    done = 0
    while done < len(values):
        n = rule.size(done, len(values) - done)
        part, coins = values[done : done + n], included[done : done + n]
        x, y = part[coins], part[~coins]
        stake = draws = None
        if (proposal := learner.proposal) is not None:
            chain, best = proposal.chain, proposal.best
            depth = chain.depth(chain.feature(part))
            counts = [tuple(np.bincount(depth[of], minlength=len(chain.cuts) + 1).tolist()) for of in (coins, ~coins)]
            stake = replace(proposal.stake_on(len(chunks), claim), x=counts[0], y=counts[1])
            draws = EventDraws(coins, depth > best, stake.p[best], stake.q[best])
        chunks.append(Chunk(0, n, stake))
        in_order.append(draws)
        if isinstance(wealth, DeadlineWealth):
            wealth.bet(stake, draws, n)
        else:
            wealth.bet(stake)
        done += n
        path.append((done, float(wealth.current[0])))
        waiting = (np.concatenate([waiting[0], x]), np.concatenate([waiting[1], y]))
        pairs = min(map(len, waiting))
        if pairs:  # events are learned from as many scores of each kind
            x, y = waiting[0][:pairs], waiting[1][:pairs]
            learner.add(x, y, learner.count(x, y))
            learner.learn(False)
            waiting = waiting[0][pairs:], waiting[1][pairs:]
    last = learner.proposal
    event = None if last is None else say_event(last.chain, last.best, False)
    width = int(np.prod(values.shape[1:]))
    return DrawBets(chunks, wealth, done, width, path, event, in_order if deadline else None)


def describe_bets(
    bets: DrawBets, claim: Guarantee, alpha: float, detect: float | None
) -> tuple[bool, float, dict[str, Any]]:
    """Read verdict, bound and fields of a result from bets.

    Parameters
    ----------
    bets : DrawBets
        The bets.
    claim : Guarantee
        The claim.
    alpha : float
        Probability of a false alarm.
    detect : float or None
        Level that is to be found; by default twice the claim.
    """
    bound, highest = bets.bound_level(claim, alpha), float(bets.wealth.best[0])
    refuted = bound >= claim.level if claim.level > 0 else highest >= -math.log(alpha)
    half = bets.draws // 2
    # What the other part of the wealth adds is not counted.
    steady = alpha if bets.in_order is None else alpha * (1 - SHARE)
    resolution = {}
    if not refuted:
        known = draws_that_count(half, bets.width, RESERVOIR)
        resolution = {b: find_resolution(b, known, claim, steady) for b in PROBABILITIES}
    fields = {
        "ceiling": find_ceiling(half, claim, steady),
        "event": bets.event,
        "resolution": {f"{b:g}": level for b, level in resolution.items()},
        "resolves": resolution.get(RESOLVED),
        "detect": usual_level(claim.level) if detect is None else detect,
        **wealth_fields(bets.path, highest),
    }
    return refuted, bound, fields


def conclude_result(labels: Mapping[str, Any], refuted: bool, bound: float, **fields: Any) -> AuditResult:
    """Result of an audit, with its verdict.

    Parameters
    ----------
    labels : mapping
        Fields that say what was audited.
    refuted : bool
        What was seen refutes the claim.
    bound : float
        The certified level.
    **fields
        Further fields; "resolves" and "detect" decide whether something might have been missed. Without these, "missed"
        says what was, if anything.
    """
    resolves, detect = fields.get("resolves"), fields.get("detect")
    what = fields.pop("missed", "" if resolves is None else _MISSED)
    verdict, message = decide_verdict(
        Verdict.VIOLATION,
        refuted,
        "",
        lambda: what if resolves is None or detect is None else describe_missed(what, resolves, detect),
    )
    return AuditResult(**labels, **fields, lower_bound=bound, verdict=verdict, message=message)
