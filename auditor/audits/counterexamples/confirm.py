"""Confirmation of a counterexample: one event on one pair, fixed beforehand, judged on fresh draws."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from auditor.audits.loop import ChunkLoop, Clock
from auditor.audits.privacy_loop import CHUNKS
from auditor.datasets import Pair
from auditor.events.event_learner import Chain, Proposal
from auditor.evidence.two_sample_bet import Stake, Wealth, worst_counts
from auditor.privacy.guarantees import Guarantee
from auditor.targets.outputs import hash_outputs
from auditor.targets.sampler import Sampler


@dataclass(frozen=True)
class EventCounts:
    """Counts of an event in ``n`` draws on two datasets."""

    x: int
    y: int
    n: int


@dataclass(frozen=True)
class Confirmation:
    """Fresh draws on a fixed event, and their verdict.

    Parameters
    ----------
    counts : EventCounts
        Draws up to the end, and how many were in the event. Where a call for several draws raised, the worst possible
        counts stand for it, see `worst_counts`.
    log_wealth : float
        Largest natural logarithm of the wealth at the claimed level; infinite where the claim forbids what was drawn.
    reached : bool
        The wealth reached 1/alpha.
    digest : str
        Hash of all outputs: draws that come again give the same one.
    """

    counts: EventCounts
    log_wealth: float
    reached: bool
    digest: str


def confirm_event(
    sampler: Sampler,
    guarantee: Guarantee,
    pair: Pair,
    chain: Chain,
    before: EventCounts,
    *,
    alpha: float,
    most: int,
    key: str = "confirm",
    to_the_end: bool = False,
    clock: Clock | None = None,
) -> Confirmation:
    """Draw and bet on one event until the wealth reaches 1/alpha.

    Parameters
    ----------
    sampler : Sampler
        Keyed so that nothing was chosen on its draws of ``key``.
    guarantee : Guarantee
        The claim.
    pair : Pair
    chain : Chain
        One event.
    before : EventCounts
        Earlier draws, from which the probabilities are estimated that the first bets rest on.
    alpha : float
        Level of the test, in (0, 1).
    most : int
        Draws a side at most.
    key : str
        Keys the draws.
    to_the_end : bool
        Draw all of ``most``: how recorded draws are drawn again.
    clock : Clock, optional
        Ends the drawing at a chunk's end.

    Raises
    ------
    TargetError
        If the target does not answer.

    Notes
    -----
    Valid because: pair, event and estimates are fixed before the first of these draws, later estimates rest on past
    draws only, and the draws are independent of all others given the dataset. So the wealth is a test supermartingale
    by itself, see `Wealth`, and reaches 1/alpha with probability at most alpha if the claim holds on the pair, whatever
    the pair and the event were chosen by. How many draws a chunk has depends on their number so far only.
    """
    event = Proposal(chain, 0, np.array([float(before.x)]), np.array([float(before.y)]), before.n)
    wealth = Wealth(guarantee, np.array([guarantee.level]))
    digest = hashlib.sha256()
    x = y = 0
    loop = ChunkLoop(CHUNKS, most)
    for chunk in loop:
        if clock is not None and not clock.left():
            break
        n = loop.take()
        batches = (sampler.draw_either_way(data, n, key, side, chunk) for data, side in ((pair.x, "x"), (pair.y, "y")))
        (batch_x, whole_x), (batch_y, whole_y) = batches
        digest.update(hash_outputs(batch_x).tobytes() + hash_outputs(batch_y).tobytes())
        stake = Stake(0, 0, *event.estimates(), chain.cells(batch_x), chain.cells(batch_y))
        stake = worst_counts(stake, n, not whole_x, not whole_y)
        wealth.bet(stake)
        event.add(stake.x, stake.y, n)
        x, y = x + stake.x[1], y + stake.y[1]
        if not to_the_end and wealth.best[0] >= math.log(1 / alpha):
            break
    best = float(wealth.best[0])
    # 64 bits, arbitrary: enough to tell other draws, and short in a record.
    return Confirmation(EventCounts(x, y, loop.used), best, best >= math.log(1 / alpha), digest.hexdigest()[:16])
