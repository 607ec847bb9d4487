"""Power of an audit that found nothing: the ceiling and the resolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.evidence.two_sample_bet import LOG_PRIOR, known_event_gains
from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees import Guarantee

Array = NDArray[np.float64]

#: Probability with which a level that is resolved is flagged.
POWER = 0.9
#: Probabilities of the events at which the resolution is given, and the one that a claim's ``detect`` asks for.
PROBABILITIES, RESOLVED = (0.1, 0.01, 0.001, 0.0001), 0.01
#: Kinds of events that `LEARNING` is measured with.
LEARNED = "a threshold on one number or on the sum, a value or a set of values, something missing or present"
#: Numbers of an output that are all looked at each time events are learned, as in `auditor.events.features`; of wider
#: outputs those that look different.
NARROW = 24


class Learning(NamedTuple):
    """What learning an event costs, see `draws_that_count`.

    Attributes
    ----------
    widest : float
        Most numbers of an output that this holds for.
    divisor : float
        The draws are divided by it.
    full : float
        So many times the draws that events are learned from count in full.
    power : float
        Draws beyond those count by this power of their number.
    """

    widest: float
    divisor: float
    full: float
    power: float


#: Cost of learning, by the width of an output: the first row whose ``widest`` is at least the width.
LEARNING = (
    Learning(1.0, 3.0, 5.0, 0.8),
    Learning(4.0, 3.0, 3.0, 0.8),
    Learning(NARROW, 3.5, 3.0, 0.8),
    Learning(math.inf, 5.0, 1.0, 0.5),
)
#: Logarithm of the prior of each expert, where all slots bet on the same event.
_LOG_PRIOR = np.logaddexp.reduce(LOG_PRIOR, axis=0)
#: Quantiles of each binomial count in `flag_probability`; 32 x 32 equally likely cells give the probability to about
#: 0.01, and the level to far less than the step of the grid.
_QUANTILES = 32
#: Above this variance binomial quantiles are taken from the normal distribution, which is then right to about one
#: count, a thirtieth of a standard deviation.
_NORMAL = 1_000.0
#: Halvings of the search interval for the level: 10 of them leave an error of 0.001 times the claimed level.
_HALVINGS = 10
#: Largest number of draws a side that is ever recommended.
MOST = 10**9
#: Levels beyond this are reported as infinite.
_HIGHEST = 40.0


def find_ceiling(n: int, guarantee: Guarantee, alpha: float) -> float:
    """Largest level that ``n`` draws a side can reject.

    They do if the outputs are fully distinguishable.

    It is the largest t at which n times the minimum over the cap of -ln p0 - ln(1 - q0), what a bet on an event with
    p = 1 and q = 0 can gain at most, reaches ln(1/alpha): about ln(2 n / ln(1/alpha)) for pure DP.

    Parameters
    ----------
    n : int
        Draws a side that count, see `draws_that_count`.
    guarantee : Guarantee
        The notion of privacy.
    alpha : float
        Level of the test, in (0, 1).

    Returns
    -------
    float
        A level; 0 for no draws, or too few.
    """
    if n <= 0:
        return 0.0
    # Caps are symmetric and -ln is convex, so the minimum is where p0 = 1 - q0 = exp(-divergence / 2).
    p0 = math.exp(-0.5 * math.log(1 / alpha) / n)
    return float(guarantee.level_of(np.array(p0), np.array(1.0 - p0))) if p0 > 0.5 else 0.0


def reachable_level(curve: PrivacyCurve, n: int, guarantee: Guarantee, alpha: float) -> float:
    """Level that ``n`` draws a side reject on average.

    The best single event of the exact curve is known beforehand.

    It is the largest t at which n times the divergence rate of some event from the cap of t reaches ln(1/alpha): what
    an auditor that need not learn could certify. Events that carry the exact level may be too rare for n draws.

    Parameters
    ----------
    curve : PrivacyCurve
        Exact curve of the pair.
    n : int
        Draws a side.
    guarantee : Guarantee
        The notion of privacy.
    alpha : float
        Level of the test, in (0, 1).

    Returns
    -------
    float
        A level, at most 40.
    """
    q = np.concatenate([np.geomspace(1e-9, 0.5, 400), 1 - np.geomspace(0.5, 1e-9, 400)])
    p = np.minimum(curve.tradeoff(q), 1.0)
    low, high = 0.0, min(_HIGHEST, guarantee.highest)
    for _ in range(_HALVINGS + 10):
        middle = 0.5 * (low + high)
        enough = n * divergence_rate(p, q, guarantee, middle).max() >= math.log(1 / alpha)
        low, high = (middle, high) if enough else (low, middle)
    return low


def divergence_rate(p: Array, q: Array, guarantee: Guarantee, level: Array | float) -> Array:
    """Growth rate of the best bet on an event.

    In nats a draw against ``level``; 0 where (p, q) is inside the null.

    Parameters
    ----------
    p, q : ndarray
        Probabilities of the event under either dataset, of shapes that broadcast.
    guarantee : Guarantee
        The notion of privacy.
    level : float or ndarray
        Level of the null hypothesis.

    Returns
    -------
    ndarray
        Of the common shape, at least 0.
    """
    p0, q0, _ = guarantee.tangent(p, q, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = special.rel_entr(p, p0) + special.rel_entr(1 - p, 1 - p0)
        rate = rate + special.rel_entr(q, q0) + special.rel_entr(1 - q, 1 - q0)
    return np.where(guarantee.beyond(p, q, level) & np.isfinite(rate), rate, 0.0)


def flag_probability(p: float, q: float, n: int, guarantee: Guarantee, alpha: float) -> float:
    """Probability that ``n`` draws a side flag a known event.

    The event's probabilities are p and q.

    The bet is the one of `log_factors` with the estimates at (p, q), the real prior over experts and binomial counts.

    Parameters
    ----------
    p, q : float
        Probabilities of the event under either dataset, in [0, 1].
    n : int
        Draws a side.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test, in (0, 1).

    Returns
    -------
    float
        In [0, 1], to about 0.01.
    """
    outside_x, inside_x, outside_y, inside_y = known_event_gains(p, q, guarantee).T[:, None, :]
    x = _binomial_quantiles(n, p)[:, None]
    y = _binomial_quantiles(n, q)[:, None]
    of_x = _times(x, inside_x) + _times(n - x, outside_x)
    of_y = _times(y, inside_y) + _times(n - y, outside_y)
    log = of_x[:, None, :] + of_y[None, :, :] + _LOG_PRIOR
    # Beyond the threshold the largest term may overflow, and is evidence enough.
    with np.errstate(over="ignore"):
        wealth = np.exp(log - math.log(1 / alpha)).sum(axis=2)
    return float((wealth >= 1).mean())


@lru_cache(maxsize=256)  # of the rarer side they are the same for all levels that are tried
def _binomial_quantiles(n: int, p: float) -> Array:
    """`_QUANTILES` equally likely values of a binomial count."""
    u = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    if p <= 0 or p >= 1:
        return np.full(len(u), n * float(p >= 1))
    variance = n * p * (1 - p)
    if variance > _NORMAL:
        quantiles = np.rint(n * p + math.sqrt(variance) * special.ndtri(u))
    else:
        quantiles = np.ceil(special.bdtrik(u, n, p))
    return np.clip(quantiles, 0, n)


def _times(count: Array, gain: Array) -> Array:
    with np.errstate(invalid="ignore"):
        product: Array = np.where(count > 0, count * gain, 0.0)  # a count of 0 loses nothing, even at a gain of -inf
    return product


def draws_that_count(n: float, width: int, learned_from: int) -> int:
    """Draws needed if the event were known.

    The others are spent on learning it.

    Parameters
    ----------
    n : float
        Draws a side.
    width : int
        Numbers of an output.
    learned_from : int
        Draws a side that events are learned from at most.

    Returns
    -------
    int
        A third of the draws, or down to a fifth for wide outputs, and less of those far beyond ``learned_from``.
        Measured with planted violations, see ``benchmarks/planted.py``: at least 0.9 of them are flagged at the level
        that `find_resolution` gives for it, for each kind of `LEARNED`.
    """
    cost = next(cost for cost in LEARNING if width <= cost.widest)
    known = min(n, cost.full * learned_from)
    return int(known * (n / known) ** cost.power / cost.divisor) if n > 0 else 0


def find_resolution(
    probability: float,
    n: int,
    guarantee: Guarantee,
    alpha: float,
    flag: Callable[[float, float, int, Guarantee, float], float] = flag_probability,
) -> float:
    """Smallest level at which an event of given probability is flagged.

    Flagged with a probability of 0.9, that is.

    Parameters
    ----------
    probability : float
        That of the event under the dataset where it is rarer. Under the other one it is what the cap of the level
        allows there.
    n : int
        Draws a side that count, see `draws_that_count`.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test.
    flag : callable
        Probability that the claim is flagged, as a function of p, q, n, the claim and alpha.

    Returns
    -------
    float
        A level; infinite if none up to 40 would do. It depends on the arguments alone, never on what was found, and is
        computed once for each.
    """
    try:
        return _resolution_of(probability, n, guarantee, alpha, flag)
    except TypeError:  # a third party's guarantee may have no hash
        return _resolution_of.__wrapped__(probability, n, guarantee, alpha, flag)


@lru_cache(maxsize=4096)  # audits of one claim, by the seed or by the day, ask for the same ones
def _resolution_of(
    probability: float,
    n: int,
    guarantee: Guarantee,
    alpha: float,
    flag: Callable[[float, float, int, Guarantee, float], float],
) -> float:
    def flagged(level: float) -> bool:
        often = float(guarantee.cap(np.array(probability), level))
        return flag(min(often, 1.0), probability, n, guarantee, alpha) >= POWER

    if n <= 0:
        return math.inf
    low, high = guarantee.level, max(2 * guarantee.level, 0.1 * guarantee.unit)
    while not flagged(high):
        low, high = high, 2 * high
        if high > min(_HIGHEST, guarantee.highest):
            return math.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if flagged(middle) else (middle, high)
    return high


def draws_to_resolve(
    level: float,
    guarantee: Guarantee,
    alpha: float,
    count: Callable[[float], int] = int,
    flag: Callable[[float, float, int, Guarantee, float], float] = flag_probability,
) -> float:
    """Draws a side that resolve ``level`` at `RESOLVED`.

    See `draws_that_count`; infinite if `MOST` are too few.

    Parameters
    ----------
    level : float
        Level to be shown.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test, in (0, 1).
    count : callable
        From draws a side to those that count; by default all do.
    flag : callable
        Probability that the claim is flagged, as a function of p, q, n, the claim and alpha.

    Returns
    -------
    float
        Number of draws, to 0.01 in its decimal logarithm.
    """
    often = min(float(guarantee.cap(np.array(RESOLVED), level)), 1.0)

    def enough(log10: float) -> bool:
        return flag(often, RESOLVED, count(10**log10), guarantee, alpha) >= POWER

    low, high = 0.0, math.log10(MOST)
    if not enough(high):
        return math.inf
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(10**high)
