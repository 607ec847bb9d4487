"""The lower bound: the levels that the recorded draws reject."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.evidence.two_sample_bet import Chunk, StakesInOrder, Wealth
from auditor.privacy.guarantees import Guarantee

Array = NDArray[np.float64]

#: Spacing of the grid from 0.9 to four times the claim, relative to the level, and within 10 % of the claim absolutely.
FINE = 0.0025
#: Spacing from half the claim to 0.9 of it, and far above the claim, where a violation is certain.
COARSE = 0.01
#: Spacing below half the claim: these levels are rejected early or the bound is of little use anyway.
COARSEST = 0.05
#: The grid begins at this part of the claim; a smaller bound is reported as 0.
LOWEST = 0.02
#: No number of draws that anybody will pay for rejects more than this (2 e^20 / ln(1/alpha) draws, about 10^9).
HIGHEST = 20.0
#: Levels above it have a grid that is as fine relatively, as it would not fit into memory otherwise.
LARGE = 1000.0
#: Levels below it are rounded relatively; arbitrary, between the usual sizes of epsilon and of delta.
_SMALL = 0.01
#: Levels evaluated at once by `lower_bound`; arbitrary, makes the evaluation lazy.
_BLOCK = 64


def level_grid(claimed: float, highest: float = math.inf, unit: float = 1.0) -> Array:
    """Grid of levels for a claimed level, fixed before any draw.

    Parameters
    ----------
    claimed : float
        Claimed level, at least 0.
    highest : float
        No level is above it.
    unit : float
        Centre of the grid where the claimed level is 0.

    Returns
    -------
    ndarray of shape (n_levels,)
        Increasing, positive; it holds ``claimed`` unless that is 0, and has steps of at most 0.005 between 0.9 and 1.1
        times the claimed level, or of 5e-6 of it above `LARGE`.
    """
    centre = claimed if claimed > 0 else unit
    step = FINE * max(1.0, centre / LARGE)
    near = np.arange(math.floor(-0.1 * centre / step), math.ceil(0.1 * centre / step) + 1) * step + centre
    top = max(HIGHEST, 10 * centre)
    grid = np.concatenate(
        [
            _steps(LOWEST * centre, 0.5 * centre, COARSEST),
            _steps(0.5 * centre, 0.9 * centre, COARSE),
            _steps(0.9 * centre, 4 * centre, FINE),
            near[near > 0],
            _steps(4 * centre, top, COARSE),
        ]
    )
    # Nine decimals for levels of the size of an epsilon, nine digits for smaller and larger ones.
    grid = grid.round(9) if _SMALL <= centre <= LARGE else (grid / centre).round(9) * centre
    merged: Array = np.unique(np.append(grid, centre))
    return merged[merged <= highest]


def _steps(low: float, high: float, spacing: float) -> Array:
    """Levels from low to high, each at most ``spacing`` above the one before, relatively."""
    levels: Array = np.geomspace(low, high, math.ceil(math.log(high / low) / spacing) + 1)
    return levels


def rejects_below(chunks: Sequence[Chunk], guarantee: Guarantee, alpha: float) -> bool:
    """Whether the claimed level and all smaller ones are rejected.

    Parameters
    ----------
    chunks : sequence of Chunk
        The recorded draws, in order.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test, in (0, 1).

    Notes
    -----
    Valid because: this is the event that the wealth at the claimed level reached 1/alpha, or less. To reject a claim is
    to reject all smaller levels, so a refutation waits for the smallest of them, which lag by a chunk now and then:
    the bound of `lower_bound` is then at least the claimed level, and it is still one statement about one level, the
    first at or above the truth. (To take the larger of that bound and the claimed level instead would be two
    statements, which err together with probability up to 2 alpha.)
    """
    grid = level_grid(guarantee.level, guarantee.highest, guarantee.unit)
    return lower_bound(chunks, guarantee, grid[grid <= guarantee.level], alpha) >= guarantee.level


def lower_bound(chunks: Sequence[Chunk], guarantee: Guarantee, grid: Array, alpha: float) -> float:
    """Largest level that `Wealth` rejects together with every smaller one.

    See `find_largest_rejected`.

    Parameters
    ----------
    chunks : sequence of Chunk
        The recorded draws, in order.
    guarantee : Guarantee
        The notion of privacy.
    grid : ndarray of shape (n_levels,)
        Levels in increasing order, fixed before any draw; see `level_grid`.
    alpha : float
        Probability, at most, that the bound ever exceeds the true level; in (0, 1).
    """
    threshold, stakes = math.log(1 / alpha), StakesInOrder(chunk.stake for chunk in chunks)

    def best_wealth(levels: Array) -> Array:
        wealth = Wealth(guarantee, levels)
        wealth.bet_all(stakes, threshold)
        return wealth.best

    return find_largest_rejected(best_wealth, grid, alpha)


def find_largest_rejected(best_wealth: Callable[[Array], Array], grid: Array, alpha: float) -> float:
    """Largest level rejected together with every smaller one.

    Levels are those of the grid; 0 if the first is not rejected.

    Valid because: it can exceed the true level only if the first grid level at or above the truth was rejected, and
    that one level is a true null whose wealth ever reaches 1/alpha with probability at most alpha. This holds at every
    stopping time. Blocks of levels are evaluated from below until one of them fails: no level above the first failure
    can matter, so the lazy evaluation gives what the full grid gives.

    Parameters
    ----------
    best_wealth : callable
        From levels to the natural logarithm of the largest wealth of a test supermartingale at each.
    grid : ndarray of shape (n_levels,)
        Levels in increasing order, fixed before any draw.
    alpha : float
        Probability, at most, that the bound ever exceeds the true level; in (0, 1).
    """
    threshold = math.log(1 / alpha)
    bound = 0.0
    for start in range(0, len(grid), _BLOCK):
        levels = grid[start : start + _BLOCK]
        rejected = best_wealth(levels) >= threshold
        if not rejected.all():
            first = int(np.argmin(rejected))
            return float(levels[first - 1]) if first else bound
        bound = float(levels[-1])
    return bound
