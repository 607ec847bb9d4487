"""What online release of stable queries leaks, and how stable a query has to be.

Unstable queries are at distance 0. Everything is in units of lambda, the scale of the threshold noise, and the same for
all of them.

Source: document 004, Theorem 3.6, Lemma 3.8 and Corollary 3.9; catalogue 004, sections 0.2 to 0.4 and oqr.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanisms.base.mechanism import require
from mechanisms.base.noise import gauss_legendre
from mechanisms.selection.free_tops import noise_scale, required_margin
from mechanisms.selection.sparse_vector_distribution import REACH, laplace_cdf


def release_scale(epsilon: float, delta: float, cutoff: int) -> float:
    """Scale of the threshold noise of Algorithm 3, lambda: ``sqrt(32 T ln(2/delta)) / epsilon``."""
    require(0 < delta < 1, "a delta in (0, 1)", delta)
    return noise_scale(epsilon, delta / 2.0, cutoff)


def release_threshold(delta: float, queries: int) -> float:
    """Threshold of Algorithm 3 in units of lambda, w: ``2 ln(2 m / delta)``."""
    return 2.0 * math.log(2.0 * queries / delta)


def fresh_leak(tail: float) -> float:
    """Probability that an unstable query passes a fresh threshold: ``(4 p - p^2) / 6`` at ``w = 2 lambda ln(1/p)``.

    Catalogue 004, section 0.2. With the document's w, p is ``delta / (2 m)``.
    """
    require(0 < tail <= 1, "a p in (0, 1]", tail)
    return (4.0 * tail - tail * tail) / 6.0


def total_leak(unstable: Sequence[bool], delta: float, cutoff: int) -> float:
    """Probability that some unstable query is answered, by recursion over the queries.

    Parameters
    ----------
    unstable : sequence of bool, length m
        Queries at distance 0; all others are at distance w.
    delta : float
        Of the claim; fixes w in units of lambda.
    cutoff : int
        T.

    Returns
    -------
    float
        The same for all lambda.
    """
    law = _ThresholdNoise(len(unstable), delta)
    # Weight of the threshold noise for each number of refusals so far, in runs without a leak.
    density = np.zeros((min(cutoff + 1, len(unstable)), law.fresh.size))
    density[0] = law.fresh
    leaked = 0.0
    for low in unstable:
        passed = density * (law.passes_low if low else law.passes)
        refused = (density - passed).sum(axis=1)
        leaked += float(passed.sum()) if low else 0.0
        density = np.zeros_like(density) if low else passed
        density[1:] += refused[:-1, None] * law.fresh
    return leaked


def surviving_leak(before: int, queries: int, delta: float) -> float:
    """Probability that an unstable query is answered, after so many at distance w, where the run never halts.

    Parameters
    ----------
    before : int
        Queries at distance w that come first.
    queries : int
        m; with delta it fixes w in units of lambda.
    delta : float
        Of the claim.
    """
    law = _ThresholdNoise(queries, delta)
    density = law.fresh
    for _ in range(before):
        passed = density * law.passes
        density = passed + (density - passed).sum() * law.fresh
    return float((density * law.passes_low).sum())


class _ThresholdNoise:
    """Nodes of the threshold noise in units of lambda: weights, and how likely a query at w, or at 0, passes."""

    def __init__(self, queries: int, delta: float) -> None:
        bar = release_threshold(delta, queries)
        # Kinks at 0 and at -w. After t survivals the weight falls as e^(-t x/2), but only where nothing is left of it.
        x, weights = gauss_legendre(np.array([-bar - REACH, -bar, 0.0, REACH]), 0.5)
        self.fresh = weights * 0.5 * np.exp(-np.abs(x))
        self.passes, self.passes_low = laplace_cdf(-x / 2.0), laplace_cdf(-(bar + x) / 2.0)


def printed_distance(queries: int, cutoff: int, delta: float, beta: float) -> float:
    """Distance of Corollary 3.9 in units of lambda, alpha: ``8 ln(4 m T / min(delta, beta))``."""
    return 8.0 * math.log(4.0 * queries * cutoff / min(delta, beta))


def sharper_distance(queries: int, delta: float, beta: float) -> float:
    """``2 (ln(2 m / delta) + ln(2 m / (3 beta)))`` in units of lambda, which suffices (catalogue 004, oqr)."""
    return release_threshold(delta, queries) + 2.0 * math.log(2.0 * queries / (3.0 * beta))


def needed_distance(queries: int, delta: float, beta: float) -> float:
    """Least distance, in units of lambda, at which m queries of one epoch are all answered w.p. 1 - beta, exactly."""
    return release_threshold(delta, queries) + required_margin(queries, beta)
