"""One probability against a bound: evidence, limits and power from a count, valid at every stopping time."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

#: Parameters of the prior over the alternatives, Beta(1/2, 1/2): half a success and half a failure beforehand, so that
#: the evidence for a probability near 0 or 1 costs no more than for one in the middle.
PRIOR = 0.5
_LOG_BETA = float(special.betaln(PRIOR, PRIOR))
#: Probability with which a rate that is called detectable would have been flagged.
POWER = 0.9
#: Logarithm of the smallest bound that is tried: next to it doubles lose their digits.
_LEAST = -700.0


def log_evidence(count: int, n: int, bound: float) -> float:
    """Natural logarithm of the evidence that a probability is above ``bound``.

    Parameters
    ----------
    count, n : int
        Successes among n draws, 0 <= count <= n.
    bound : float
        The null hypothesis is that the probability is at most this, in [0, 1].

    Returns
    -------
    float
        At least the logarithm of the prior mass of the null; infinite if a success was impossible.

    Notes
    -----
    Valid because: for p > bound, the factor p / bound for a success and (1 - p) / (1 - bound) for a failure has
    expectation 1 + (r - bound)(p - bound) / (bound (1 - bound)) <= 1 under any r <= bound, given the past. So its
    product over the draws is an e-process for the null, and so is the average over a prior of p: the mass that the
    prior has at and below the bound bets nothing, and keeps its 1.

    The value decreases in ``bound`` as long as it is above 1, so the bounds that it rejects are an interval from 0 on:
    its derivative is the integral over p > bound of the product's, whose logarithm has the derivative
    -count / bound + (n - count) / (1 - bound), negative for bound < count / n; at p = bound mass moves from one side to
    the other at the value 1. For bound >= count / n every factor is at most 1 on the average, and so is the value.
    """
    if bound >= 1:
        return 0.0
    idle = float(special.betainc(PRIOR, PRIOR, bound))
    if bound <= 0:
        return math.inf if count else float(special.betaln(PRIOR, n + PRIOR) - _LOG_BETA)
    a, b = count + PRIOR, n - count + PRIOR
    above = float(special.betaincc(a, b, bound))
    if above <= 0:
        return math.log(idle)
    betting = math.log(above) + special.betaln(a, b) - _LOG_BETA
    betting -= special.xlogy(count, bound) + special.xlog1py(n - count, -bound)
    return float(np.logaddexp(betting, math.log(idle)))


@lru_cache(maxsize=1 << 12)  # several claims, and several settings of one, have the same count
def lower_limit(count: int, n: int, alpha: float) -> float:
    """Largest bound rejected together with all smaller ones.

    The level is ``alpha``; 0 if none is rejected.

    Parameters
    ----------
    count, n : int
        Successes among n draws, 0 <= count <= n.
    alpha : float
        Probability, at most, that the limit is ever above the true probability; in (0, 1).

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Valid because: it exceeds the true probability r only if `log_evidence` at r reached ln(1/alpha), which has
    probability at most alpha at all times together (Ville's inequality). So has a running maximum of it.
    """
    from scipy import optimize  # takes longer to import than numpy

    if count == 0:
        return 0.0
    threshold, top = -math.log(alpha), math.log(count / n)

    def excess(log_bound: float) -> float:
        return min(log_evidence(count, n, math.exp(log_bound)), 1e300) - threshold

    # At the observed share nothing is rejected; towards 0 the evidence grows without bound.
    step = 1.0
    while excess(top - step) < 0:
        step *= 2
        if top - step < _LEAST:
            return 0.0
    root = optimize.brentq(excess, top - step, top, xtol=1e-12, rtol=1e-12)
    return float(math.exp(root) * (1 - 1e-10))  # below what the root may be off


def upper_limit(count: int, n: int, alpha: float) -> float:
    """Smallest bound rejected together with all larger ones.

    It is `lower_limit` of the complement.

    Parameters
    ----------
    count, n : int
        Successes among n draws, 0 <= count <= n.
    alpha : float
        Probability, at most, that the limit is ever below the true probability; in (0, 1).

    Returns
    -------
    float
        In [0, 1].
    """
    return 1.0 - lower_limit(n - count, n, alpha)


def find_detectable(n: int, bound: float, alpha: float) -> float:
    """Smallest probability above ``bound`` that n draws flag.

    They do with probability `POWER`; 1 if none is.

    Parameters
    ----------
    n : int
        Number of draws.
    bound : float
        The null hypothesis is that the probability is at most this, in [0, 1].
    alpha : float
        Level of the test, in (0, 1).
    """
    high = _rejecting_count(n, bound, alpha)
    if high > n:
        return 1.0
    # P[Binomial(n, r) >= high] = POWER.
    return float(min(1.0, special.betaincinv(high, n - high + 1, POWER)))


def order_limits(n: int, q: float, alpha: float) -> tuple[int, int]:
    """Ranks that enclose the q-quantile of n sorted draws.

    Ranks count from 0; they enclose it with probability at least 1 - alpha.

    Of n that is fixed before the draws; `anytime_order_limits` is for one that depends on them.

    Parameters
    ----------
    n : int
        Number of draws, fixed beforehand.
    q : float
        Which quantile, in (0, 1).
    alpha : float
        Probability, at most, that the ranks do not enclose it; in (0, 1).

    Returns
    -------
    tuple of (int, int)
        -1 and n stand for no limit.

    Notes
    -----
    Valid because: let Q be the smallest value with F(Q) >= q. The number of draws at most Q is Binomial(n, F(Q)),
    so the draw of rank r (from 0) exceeds Q, which needs at most r draws at or below Q, with probability at most
    P[Binomial(n, q) <= r]; the number of draws below Q is Binomial(n, r) with r <= q, so the draw of rank s is below Q
    with probability at most P[Binomial(n, q) >= s + 1]. Each is made at most alpha / 2; ties only help.
    """
    from scipy import stats  # takes longer to import than numpy

    side = alpha / 2
    low = int(stats.binom.ppf(side, n, q))
    while low >= 0 and stats.binom.cdf(low, n, q) > side:
        low -= 1
    high = int(stats.binom.isf(side, n, q))
    while high < n and stats.binom.sf(high, n, q) > side:
        high += 1
    return low, high


def anytime_order_limits(n: int, q: float, alpha: float) -> tuple[int, int]:
    """Ranks that enclose the q-quantile at any stopping time.

    With probability at least 1 - alpha they do at all numbers of draws together.

    Parameters
    ----------
    n : int
        Number of draws so far.
    q : float
        Which quantile, in (0, 1).
    alpha : float
        Probability, at most, that the ranks of any n do not enclose it; in (0, 1).

    Returns
    -------
    tuple of (int, int)
        As of `order_limits`: -1 and n stand for no limit.

    Notes
    -----
    Valid because: let Q be the smallest value with F(Q) >= q, and fix it. A draw is below Q with probability at most q,
    and above Q with probability at most 1 - q, whatever the distribution. So the evidence of `log_evidence` that draws
    below Q come with probability above q reaches ln(2/alpha) with probability at most alpha / 2 at all times together
    (Ville's inequality), and so does the evidence that draws above Q come with probability above 1 - q. Where neither
    has done so after n draws, fewer than h draws are below Q and fewer than m above, for the smallest counts h and m
    whose evidence suffices; evidence grows with the count, as each of the alternatives that are averaged is a larger
    probability. Then the draw of rank h - 1 (from 0) is at least Q, because otherwise h draws were below, and the draw
    of rank n - m is at most Q, because otherwise m draws were above. Looking after some of the draws only, such as at
    the ends of chunks, or stopping by anything that was seen, makes neither more probable.
    """
    return n - _rejecting_count(n, 1.0 - q, alpha / 2), _rejecting_count(n, q, alpha / 2) - 1


@lru_cache(maxsize=1 << 12)
def _rejecting_count(n: int, bound: float, alpha: float) -> int:
    """Smallest count among n draws whose `log_evidence` against ``bound`` reaches ln(1/alpha); n + 1 if none does."""
    threshold = -math.log(alpha)
    low, high = -1, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if log_evidence(middle, n, bound) >= threshold else (middle, high)
    return high
