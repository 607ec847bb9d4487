"""The expectation of something that is never negative, against an upper bound."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

#: Parts of the wealth that are bet, one expert each: from what finds an expectation twice the bound at once, to what
#: finds an excess of half a per cent in 10^6 draws of the bound's size. Equal masses; arbitrary, any are valid.
STAKES: Array = np.array([0.9, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.008, 0.004])
#: Means at which the lower bound is sought, over the claimed one; in steps of 2 % and less near it.
GRID: Array = np.concatenate(
    [np.geomspace(0.05, 0.8, 10, endpoint=False), np.linspace(0.8, 1.2, 21), np.geomspace(1.25, 20, 13)]
)
#: Normal quantile for a power of 0.9.
_POWER = 1.2816
#: Numbers that are worked on at once: 8 MB.
_BLOCK = 1 << 20


class MeanWealth:
    """Wealth against "the expectation is at most m".

    There is one bet for each of several m.

    Parameters
    ----------
    means : ndarray of shape (n_levels,)
        Upper bounds of the expectation, positive: the claimed one first, then others in increasing order.
    stakes : ndarray of shape (n_stakes,)
        Parts of the wealth that are bet, in [0, 1), one expert each.

    Attributes
    ----------
    means : ndarray of shape (n_levels,)
        As given.
    current, best : ndarray of shape (n_levels,)
        Natural logarithm of the wealth, and its running maximum over chunks.

    Notes
    -----
    Valid because: for X >= 0 with expectation at most m, given the past, and a stake s in [0, 1), the factor
    1 + s (X / m - 1) is positive and has expectation at most 1. So the product over the draws is a test
    supermartingale, and so is the average over stakes; by Ville's inequality it ever reaches 1/alpha with probability
    at most alpha. No bound on X and no moment beyond the first are needed. The factor decreases in m, so the rejected
    levels are an interval from 0 on, and the largest rejected level exceeds the expectation with probability at most
    alpha. There is no upper limit: a rare, huge value may always be missing from the draws.
    """

    def __init__(self, means: Array, stakes: Array = STAKES) -> None:
        self.means, self._stakes = means, stakes
        self._log = np.zeros((len(stakes), len(means)))
        self.current: Array = np.zeros(len(means))
        self.best: Array = np.zeros(len(means))

    def bet(self, x: Array, times: Array | None = None) -> None:
        """Bet on a chunk of draws, all at least 0.

        Each counts ``times`` times.

        Parameters
        ----------
        x : ndarray of shape (n,)
            Draws.
        times : ndarray of shape (n,), optional
            Multiplicity of each draw; by default 1.
        """
        block = max(1, _BLOCK // max(len(x), 1))
        for start in range(0, len(self.means), block):
            with np.errstate(over="ignore"):  # a draw that is beyond all floats is infinite, as is what it wins
                over = x / self.means[start : start + block, None] - 1.0
            for i, stake in enumerate(self._stakes):
                gains = np.log1p(stake * over)
                self._log[i, start : start + block] += gains.sum(axis=1) if times is None else gains @ times
        self.current = special.logsumexp(self._log, axis=0) - math.log(len(self._stakes))
        self.best = np.maximum(self.best, self.current)

    def rejected(self, alpha: float) -> int:
        """Number of means rejected together with all smaller ones.

        The claimed one is not counted.
        """
        rejected = self.best[1:] >= -math.log(alpha)
        return len(rejected) if rejected.all() else int(np.argmin(rejected))

    def lower_bound(self, alpha: float) -> float:
        """Largest mean rejected together with all smaller ones.

        0 if the first is not rejected.
        """
        count = self.rejected(alpha)
        return float(self.means[count]) if count else 0.0


def detectable_mean(mean: float, draws: int, deviation: float, alpha: float, stakes: Array = STAKES) -> float:
    """Smallest expectation that draws flag with probability about 0.9.

    By a normal approximation.

    Against "at most m" an expectation of m + d gains about s d / m - s^2 (deviation / m)^2 / 2 a draw at a stake s; the
    best stake is taken, its share of the prior is paid, and the mean of the draws is taken to be lower by its 90 %
    quantile.

    Parameters
    ----------
    mean : float
        The claimed bound m, positive.
    draws : int
        At least 1.
    deviation : float
        Standard deviation of a draw; the result is infinite if it is.
    alpha : float
        Level of the test.
    stakes : ndarray of shape (n_stakes,)
        Those of the `MeanWealth`.
    """
    if not math.isfinite(deviation):
        return math.inf
    threshold, spread = math.log(len(stakes) / alpha), deviation / mean
    excess = ((threshold / draws + 0.5 * (stakes * spread) ** 2) / stakes).min()
    return float(mean * (1 + excess + _POWER * spread / math.sqrt(draws)))
