"""The two-sided bet, its experts, and the wealth they make.

One process serves every question. It is a test supermartingale for "level t holds on all neighbours"; run at the
claimed level it decides a verdict, run on a grid of levels it gives the lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.guarantees import Guarantee

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stake:
    """What one slot bets on in one chunk, and what came.

    A stake is a chain of nested events A_1 > A_2 > ... > A_k, each more probable under P than under Q by past draws.
    It splits the outputs into k + 1 cells: cell j holds the outputs that lie in exactly the first j events.

    Parameters
    ----------
    chain : int
        Index of the chain of events in the record.
    p, q : tuple of float
        Estimates of P(A_j) and Q(A_j) from past draws, none of them of this chunk.
    x, y : tuple of int
        Draws of this chunk in each of the k + 1 cells, of P and of Q.
    """

    chain: int
    p: tuple[float, ...]
    q: tuple[float, ...]
    x: tuple[int, ...]
    y: tuple[int, ...]


@dataclass(frozen=True)
class Chunk:
    """One chunk of draws: ``n`` of P and ``n`` of Q of one pair, and the stakes on it, one for each slot."""

    pair: int
    n: int
    stakes: tuple[Stake, ...]


#: Slots: a single event, and a chain of two. For Laplace noise a chain grows 1.45 times as fast as the best single
#: event (benchmarks/power.py), so it gets most of the mass; where no chain is found both slots hold the single event.
SLOTS = (0.25, 0.75)

#: Experts: (kind, value, prior mass). A "plug" expert bets ``value`` times the likelihood-ratio-optimal amount of the
#: estimates, a "limit" expert ``value`` times the largest admissible amount. The plug-in experts grow at the best rate
#: when the estimates are good; the large limit experts find impossible events, the small ones win slowly where the truth
#: is close to the level and estimates are noise. The masses
#: were chosen by simulation (benchmarks/power.py); any masses are valid.
EXPERTS = (
    ("plug", 1.0, 0.20),
    ("plug", 0.5, 0.20),
    ("plug", 0.25, 0.10),
    ("limit", 1.0, 0.12),
    ("limit", 0.5, 0.06),
    ("limit", 0.25, 0.06),
    ("limit", 0.12, 0.07),
    ("limit", 0.06, 0.06),
    ("limit", 0.03, 0.05),
    ("limit", 0.015, 0.05),
    ("limit", 0.007, 0.03),
)

#: A chain's plug-in bet adds the optimal amounts of its events, which overlap; 0.7 of the sum is the best constant for
#: two-event chains on Laplace and Gaussian pairs (between 0.68 and 0.76).
CHAIN_SCALE = 0.7

#: Share of the wealth that is spread over all slots and experts again after every chunk ("fixed share" of Herbster and
#: Warmuth 1998), so that an expert that lost everything on an early, badly chosen event comes back. Costs at most
#: -ln(1 - 0.01) = 0.01 nats a chunk.
SHARE = 0.01

#: Plug-in experts stay below the largest admissible amount, so that no single draw can ruin them.
_MARGIN = 0.98

_PLUG = np.array([kind == "plug" for kind, _, _ in EXPERTS])
_VALUE = np.array([value for _, value, _ in EXPERTS])
_MASS = np.array([mass for _, _, mass in EXPERTS])
LOG_PRIOR: Array = np.log(np.outer(SLOTS, _MASS / _MASS.sum()))


def log_factors(stake: Stake, guarantee: Guarantee, levels: Array) -> Array:
    """Logarithm of what each expert's wealth is multiplied by.

    Parameters
    ----------
    stake : Stake
        The events, the estimates made before the chunk and the chunk's counts.
    guarantee : Guarantee
        The notion of privacy.
    levels : ndarray of shape (n_levels,)
        Levels at which to bet.

    Returns
    -------
    ndarray of shape (n_experts, n_levels)

    Notes
    -----
    Valid because: for each event j of the chain let (p0_j, q0_j) be a point of the cap and E_j the slope of a line
    that touches the cap there from above, and put x_j = p_j - p0_j, y_j = E_j (q_j - q0_j) with the true p_j, q_j.
    Under "level t holds", concavity of the cap gives x_j <= y_j. For weights w_j >= 0 and one draw X of P and
    one draw Y of Q, independent, the factor

        (1 + sum_j w_j (1[X in A_j] - p0_j)) (1 - sum_j w_j E_j (1[Y in A_j] - q0_j))

    has, with u = sum_j w_j x_j <= v = sum_j w_j y_j, the expectation (1 + u)(1 - v) <= (1 + v)(1 - v) <= 1, provided
    that both brackets are never negative (then 1 - v >= 0); the weights are cut so that they are not. The events,
    points, slopes and weights are functions of earlier draws only. For one event this is the bet of design section 3;
    a chain is the same bet on a test with steps, with a slope for each step.
    """
    p, q = np.array(stake.p)[:, None], np.array(stake.q)[:, None]
    outside = p > guarantee.cap(q, levels)
    p0, q0, slope = guarantee.tangent(p, q, levels)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(outside, (p - p0) / (p0 * (1.0 - p0)), 0.0)
    weight = np.where(np.isfinite(weight) & np.isfinite(slope) & (weight > 0), weight, 0.0)
    slope = np.where(weight > 0, slope, 0.0)
    p0, q0 = np.where(weight > 0, p0, 0.5), np.where(weight > 0, q0, 0.5)

    cells = len(stake.p) + 1
    member = np.arange(cells)[:, None] > np.arange(cells - 1)[None, :]  # cell j lies in the first j events
    on_x = (weight * (member[:, :, None] - p0)).sum(axis=1)  # (cells, levels)
    on_y = (-weight * slope * (member[:, :, None] - q0)).sum(axis=1)
    worst = -np.minimum(on_x.min(axis=0), on_y.min(axis=0))
    with np.errstate(divide="ignore"):
        limit = np.where(worst > 0, 1.0 / worst, 0.0)  # nothing to bet where every estimate is inside the null
    scale = 1.0 if cells == 2 else CHAIN_SCALE
    amount = np.where(_PLUG[:, None], np.minimum(_VALUE[:, None] * scale, _MARGIN * limit), _VALUE[:, None] * limit)
    x, y = np.array(stake.x, float)[:, None], np.array(stake.y, float)[:, None]
    gain_x = special.xlog1py(x, np.maximum(amount[:, None, :] * on_x, -1.0))
    gain_y = special.xlog1py(y, np.maximum(amount[:, None, :] * on_y, -1.0))
    total: Array = (gain_x + gain_y).sum(axis=1)
    return total


class Wealth:
    """Wealth at a set of levels, chunk after chunk.

    Parameters
    ----------
    guarantee : Guarantee
        The notion of privacy.
    levels : ndarray of shape (n_levels,)
        Levels, each of which is a null hypothesis of its own.

    Attributes
    ----------
    current, best : ndarray of shape (n_levels,)
        Natural logarithm of the wealth now, and of its running maximum.

    Notes
    -----
    Valid because: each chunk multiplies the wealth by sum_i c_i F_i, where F_i is expert i's product of factors of
    `log_factors` over the chunk and the portfolio weights c_i >= 0, with sum 1, are functions of earlier draws (their
    prior, their past wealth and the share that is spread again). Given the past each F_i has expectation at most 1
    under the null, so the sum has, and the wealth is a non-negative supermartingale that starts at 1. By Ville's
    inequality it ever reaches 1/alpha with probability at most alpha.
    """

    def __init__(self, guarantee: Guarantee, levels: Array) -> None:
        self.guarantee = guarantee
        self.levels = np.asarray(levels, float)
        self._log = np.repeat(LOG_PRIOR[:, :, None], len(self.levels), axis=2)
        self.current: Array = np.zeros(len(self.levels))
        self.best: Array = np.zeros(len(self.levels))

    def bet(self, stakes: Sequence[Stake]) -> None:
        """Play one chunk; without stakes the chunk was only learned from."""
        if not stakes:
            return
        known: dict[Stake, Array] = {}
        for slot, stake in enumerate(stakes):
            if stake not in known:
                known[stake] = log_factors(stake, self.guarantee, self.levels)
            self._log[slot] += known[stake]
        self.current = np.logaddexp.reduce(self._log.reshape(-1, len(self.levels)), axis=0)
        self.best = np.maximum(self.best, self.current)
        spread = self.current + (LOG_PRIOR[:, :, None] + math.log(SHARE))
        self._log = np.logaddexp(self._log + math.log1p(-SHARE), spread)
