"""Audits whose outcome is known beforehand: of an auditor that learns its event, and of one that is told."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from auditor.audits.privacy import audit
from auditor.audits.privacy_loop import CHUNKS, Settings
from auditor.calibration.families import Event, Family
from auditor.errors import DpauditError
from auditor.evidence.lower_bound import level_grid, lower_bound
from auditor.evidence.two_sample_bet import Chunk, Stake, Wealth
from auditor.results import FLAGGED, Verdict
from auditor.targets.sampler import Sampler


class AuditOutcome(NamedTuple):
    """AuditOutcome of one audit.

    Parameters
    ----------
    finding : bool
        A violation or a deviation.
    bound : float
        Lower bound on the level.
    draws : int
        Outputs, both sides together.
    """

    finding: bool
    bound: float
    draws: int


#: ``(family, settings, key) -> AuditOutcome``; ``key`` names the audit and keys its draws.
Auditor = Callable[[Family, Settings, str], AuditOutcome]


def audit_learned(family: Family, settings: Settings, key: str) -> AuditOutcome:
    """Audit as users do, with `auditor.audit`.

    It learns its events, and tests independence.

    Parameters
    ----------
    family : Family
        What is audited.
    settings : Settings
        Level, budget, seed and stopping rule.
    key : str
        Name of the audit, which keys its draws.

    Raises
    ------
    DpauditError
        If the audit ends in an error: such a calibration says nothing.
    """
    result = audit(
        family.mechanism,
        family.guarantee,
        family.pairs,
        id=key,
        alpha=settings.alpha,
        draws=settings.draws,
        seed=settings.seed,
        stop=settings.stop,
    )
    if result.verdict == Verdict.ERROR:
        raise DpauditError(f"{key}: the audit ended in an error: {result.message}")
    return AuditOutcome(result.verdict in FLAGGED, float(result.lower_bound or 0.0), result.draws)


def audit_stated(family: Family, settings: Settings, key: str) -> AuditOutcome:
    """Audit with the event given.

    It bets as the engine does, and learns the probabilities.

    Parameters
    ----------
    family : Family
        What is audited, with its event; on its first pair.
    settings : Settings
        Level, budget, seed, stopping rule, and limit of a call.
    key : str
        Name of the audit, which keys its draws.

    Raises
    ------
    ValueError
        If the family states no event.

    Notes
    -----
    Valid because: the event is fixed, the estimates in each stake are of earlier draws, and every draw enters the
    wealth once, so that `log_factors` and Ville's inequality apply; the bound is that of `lower_bound`.
    """
    if family.event is None:
        raise ValueError(f"{family.name!r} states no event")
    claim, pair = family.guarantee, family.pairs[0]
    sampler = Sampler(family.mechanism, settings.seed, key, settings.limit)
    wealth, chunks = Wealth(claim, np.array([claim.level])), list[Chunk]()
    threshold, side = math.log(1 / settings.alpha), settings.draws // 2
    n = x = y = 0
    while n < side and not (settings.stop == "verdict" and wealth.best[0] >= threshold):
        size = CHUNKS.size(n, side - n)
        a, b = (_count(sampler, family.event, data, size, name, n) for data, name in ((pair.x, "x"), (pair.y, "y")))
        # Laplace's rule: never 0 or 1, where a single draw could lose everything.
        stake = Stake(0, 0, ((x + 1) / (n + 2),), ((y + 1) / (n + 2),), (size - a, a), (size - b, b))
        chunks.append(Chunk(0, size, stake))
        wealth.bet(stake)
        n, x, y = n + size, x + a, y + b
    grid = level_grid(claim.level, claim.highest, claim.unit)
    return AuditOutcome(bool(wealth.best[0] >= threshold), lower_bound(chunks, claim, grid, settings.alpha), 2 * n)


def _count(sampler: Sampler, event: Event, data: object, size: int, side: str, drawn: int) -> int:
    return int(event(np.asarray(sampler.draw(data, size, side, drawn))).sum())
