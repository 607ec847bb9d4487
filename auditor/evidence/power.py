"""What an audit that found nothing could have found: the ceiling and the detectable level."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.evidence.wealth import LOG_PRIOR, Stake, log_factors
from auditor.guarantees import Guarantee

Array = NDArray[np.float64]

#: Probability with which the detectable level is to be flagged.
POWER = 0.9
#: Quantiles of each binomial count in `flag_probability`; 32 x 32 equally likely cells give the probability to about
#: 0.01, and the level to far less than the step of the grid.
_QUANTILES = 32
#: Halvings of the search interval for the level: 12 of them leave an error of 0.0003 times the claimed level.
_HALVINGS = 12
#: Levels beyond this are reported as infinite.
_HIGHEST = 40.0


def ceiling(n: int, guarantee: Guarantee, alpha: float) -> float:
    """Largest level that ``n`` draws a side could have rejected, were the outputs fully distinguishable.

    It is the largest t at which n times the minimum over the cap of -ln p0 - ln(1 - q0), what a bet on an event with
    p = 1 and q = 0 can gain at most, reaches ln(1/alpha): about ln(2 n / ln(1/alpha)) for pure DP.
    """
    if n <= 0:
        return 0.0
    return max(0.0, guarantee.saturation_level(math.log(1 / alpha) / n))


def flag_probability(p: float, q: float, n: int, guarantee: Guarantee, alpha: float) -> float:
    """Probability that ``n`` draws a side of an event with probabilities p and q flag the claim, the event known.

    The bet is the one of `log_factors` with the estimates at (p, q), the real prior over experts and binomial counts.
    """
    grid = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    level = np.array([guarantee.level])
    one = {cell: _unit_gain(p, q, cell, guarantee, level) for cell in ("x0", "x1", "y0", "y1")}
    x = _binomial_quantiles(grid, n, p)[:, None, None]
    y = _binomial_quantiles(grid, n, q)[None, :, None]
    with np.errstate(invalid="ignore"):
        log = _times(x, one["x1"]) + _times(n - x, one["x0"]) + _times(y, one["y1"]) + _times(n - y, one["y0"])
    prior = np.logaddexp.reduce(LOG_PRIOR, axis=0)
    return float((np.logaddexp.reduce(log + prior, axis=2) >= math.log(1 / alpha)).mean())


def _binomial_quantiles(u: Array, n: int, p: float) -> Array:
    if p <= 0 or p >= 1:
        return np.full(len(u), n * float(p >= 1))
    quantiles: Array = np.clip(np.ceil(special.bdtrik(u, n, p)), 0, n)
    return quantiles


def _times(count: Array, gain: Array) -> Array:
    product: Array = np.where(count > 0, count * gain, 0.0)  # a count of 0 loses nothing, even at a gain of -inf
    return product


def _unit_gain(p: float, q: float, cell: str, guarantee: Guarantee, level: Array) -> Array:
    counts = {"x0": ((1, 0), (0, 0)), "x1": ((0, 1), (0, 0)), "y0": ((0, 0), (1, 0)), "y1": ((0, 0), (0, 1))}[cell]
    return log_factors(Stake(0, 0, (p,), (q,), *counts), guarantee, level)[0, :, 0]


def detectable_level(p: float, q: float, n: int, guarantee: Guarantee, alpha: float) -> float:
    """Smallest level that would have been flagged with probability 0.9, the best event found taken as known.

    Parameters
    ----------
    p, q : float
        Estimated probabilities of the best event under the two datasets, p > q.
    n : int
        Draws a side.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test.

    Returns
    -------
    float
        The worse of two alternatives: the event's probability under the second dataset stays at q and the one under
        the first rises to the cap of the level, or the first stays at p and the second falls. Infinite if no level
        up to 40 would do.
    """

    def flagged(level: float) -> bool:
        up = float(guarantee.cap(np.array(q), level))
        down = 1.0 - float(guarantee.cap(np.array(1.0 - p), level))  # caps are symmetric: the inverse by reflection
        return all(
            flag_probability(min(a, 1.0), max(b, 0.0), n, guarantee, alpha) >= POWER for a, b in ((up, q), (p, down))
        )

    if n <= 0:
        return math.inf
    low, high = guarantee.level, max(2 * guarantee.level, 0.1)
    while not flagged(high):
        low, high = high, 2 * high
        if high > _HIGHEST:
            return math.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if flagged(middle) else (middle, high)
    return high
