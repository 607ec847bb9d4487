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
#: Levels at which the lower bound is sought, over the claimed one; in steps of 2 % and less near it.
GRID: Array = np.concatenate(
    [np.geomspace(0.05, 0.8, 10, endpoint=False), np.linspace(0.8, 1.2, 21), np.geomspace(1.25, 20, 13)]
)


class MeanWealth:
    """Wealth against "the expectation is at most m", at each level m of a grid around the claimed one.

    Parameters
    ----------
    claimed : float
        Claimed upper bound of the expectation, positive.

    Attributes
    ----------
    levels : ndarray of shape (n_levels,)
        Claimed level first, then the grid.
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

    def __init__(self, claimed: float) -> None:
        self.levels: Array = np.concatenate([[1.0], GRID]) * claimed
        self._log = np.zeros((len(STAKES), len(self.levels)))
        self.current: Array = np.zeros(len(self.levels))
        self.best: Array = np.zeros(len(self.levels))

    def bet(self, x: Array) -> None:
        """Play a chunk of draws, all at least 0."""
        for k, level in enumerate(self.levels):
            over = x / level - 1.0
            for i, stake in enumerate(STAKES):
                self._log[i, k] += float(np.log1p(stake * over).sum())
        self.current = special.logsumexp(self._log, axis=0) - math.log(len(STAKES))
        self.best = np.maximum(self.best, self.current)

    def lower_bound(self, alpha: float) -> float:
        """Largest level of the grid that is rejected together with all smaller ones; 0 if the first is not."""
        rejected = self.best[1:] >= -math.log(alpha)
        count = len(rejected) if rejected.all() else int(np.argmin(rejected))
        return float(self.levels[count]) if count else 0.0
