"""Bets for a number of draws that is known before them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.evidence.two_sample_bet import Stake, Wealth
from auditor.privacy.guarantees import Guarantee

Array = NDArray[np.float64]

#: Part of the wealth that bets for the deadline; the rest bets as `Wealth` does. Chosen among 0.5, 0.7, 0.8 and 0.9 on
#: 10 samples of twelve kinds of scores (seeds from 9,100), any part is valid.
SHARE = 0.7
#: The amount is set anew after this part of the draws that are left, at least one; arbitrary, any is valid.
_PART = 1 / 50
#: What is aimed at, over the goal: towards the goal itself bets would become ever smaller, and not reach it. Arbitrary.
_OVER = 1.02
#: A bet stays below the largest admissible amount, so that no single draw can ruin it.
_MARGIN = 0.98
_LOG_OVER = math.log(_OVER)
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class EventDraws:
    """Draws with fair coins, in order, and whether an event happened.

    Parameters
    ----------
    coins, inside : ndarray of bool of shape (n,)
        Coins, and whether the event happened.
    p, q : float
        Estimates of its probability where the coin is heads and where it is not, from earlier draws.
    """

    coins: NDArray[np.bool_]
    inside: NDArray[np.bool_]
    p: float
    q: float


class DeadlineWealth:
    """Wealth of bets for a known number of draws.

    Parameters
    ----------
    guarantee : Guarantee
        The notion of privacy.
    levels : ndarray of shape (n_levels,)
        Levels, each of which is a null hypothesis of its own.
    draws : int
        Number of draws, fixed before any of them.
    alpha : float
        The wealth is to reach 1/alpha.

    Attributes
    ----------
    current, best : ndarray of shape (n_levels,)
        Natural logarithm of the wealth now, and of its running maximum.

    Notes
    -----
    A part of the wealth is `Wealth`. The other, V, bets on the best event alone. Its draws have a standard deviation s
    at the point of the cap that is bet against. With k draws left and the goal G, the amount is
    phi(z) / (Phi(z) s sqrt(k)), where Phi(z) = V / G, or a little less, and 0 once the goal is reached. That is how the
    wealth of the most powerful test of this many draws moves where sums of draws are Gaussian (Browne 1999, "Reaching
    goals by a deadline: digital options and continuous-time active portfolio management"). G is what V needs for the
    whole to reach 1/alpha.

    Valid because: one draw multiplies V by 1 + a (g - p0) if its coin is heads and 1 - a E (g - q0) if not, where g
    says whether the event happened, (p0, q0) is on the cap, and E is the slope of a line above it there. See
    `auditor.audits.training.draw_bets.bet_on_draws` for its expectation. The amount a is a function of earlier draws,
    at least 0, and so small that the factor is positive. So V is a supermartingale that starts at 1, and so is the
    mixture of both with fixed weights. The announced number of draws has a part in the amounts, so that it must be
    fixed before all draws; it need not be the number that comes.
    """

    def __init__(self, guarantee: Guarantee, levels: Array, draws: int, alpha: float) -> None:
        self.guarantee = guarantee
        self.levels = np.asarray(levels, float)
        self._steady = Wealth(guarantee, self.levels)
        self._log = np.zeros(len(self.levels))
        self._left = draws
        self._alpha = alpha
        self.current: Array = np.zeros(len(self.levels))
        self.best: Array = np.zeros(len(self.levels))

    def bet(self, stake: Stake | None, draws: EventDraws | None, n: int) -> None:
        """Play one chunk.

        Parameters
        ----------
        stake : Stake or None
            The chain, and what was counted; None where nothing is bet.
        draws : EventDraws or None
            The same draws in order, for its best event.
        n : int
            Number of draws.
        """
        self._steady.bet(stake)
        if draws is not None:
            self._play(draws)
        self._left -= n
        self.current = np.logaddexp(self._steady.current + math.log1p(-SHARE), self._log + math.log(SHARE))
        self.best = np.maximum(self.best, self.current)

    def _play(self, draws: EventDraws) -> None:
        p, q = (np.full(len(self.levels), value) for value in (draws.p, draws.q))
        p0, q0, slope = self.guarantee.tangent(p, q, self.levels)
        gains = np.stack([slope * q0, -slope * (1 - q0), -p0, 1 - p0])  # tails outside and inside, heads the same
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            deviation = np.sqrt(0.5 * (p0 * (1 - p0) + slope**2 * q0 * (1 - q0)))
            largest = _MARGIN / -gains.min(axis=0)
            use = self.guarantee.beyond(p, q, self.levels) & (deviation > 0) & np.isfinite(deviation) & (largest > 0)
            needed = np.maximum(1 / self._alpha - (1 - SHARE) * np.exp(self._steady.current), 1.0)
        if not use.any():
            return
        goal = np.log(needed / SHARE)
        cells = 2 * draws.coins + draws.inside
        done = 0
        while done < len(cells):
            left = max(self._left - done, 1)
            n = max(1, int(left * _PART))
            counts = np.bincount(cells[done : done + n], minlength=4)
            z = special.ndtri_exp(np.minimum(self._log - goal - _LOG_OVER, -1e-12))
            with np.errstate(divide="ignore", invalid="ignore"):
                amount = np.exp(-0.5 * z * z - _LOG_ROOT - special.log_ndtr(z)) / (deviation * math.sqrt(left))
                amount = np.where(use & (self._log < goal), np.minimum(amount, largest), 0.0)
            self._log = self._log + counts @ np.log1p(amount * np.where(use, gains, 0.0))
            done += n
