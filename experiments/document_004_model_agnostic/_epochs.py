"""Epochs of sparse vector: their delta by optimal composition, and the rarest outcome of one by quadrature."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from scipy import integrate

from auditor.audits.inequality import Row
from auditor.privacy.exact import optimal_composition
from mechanisms.base.queries import IdentityQuery
from mechanisms.selection.free_tops import epoch

#: Levels at which epochs that cost 2/lambda are composed: epsilon, delta.
LEVELS = ((1.0, 1e-2), (1.0, 1e-6), (8.0, 1e-2), (20.0, 1e-6))
#: Levels up to which a cost of 4/lambda is low enough.
LEVELS_BY_THE_GAP = ((4.0, 0.2), (6.0, 0.02), (6.5, 2e-3), (8.0, 2e-6), (1.0, 1e-6))


def composed(
    scale: Callable[[float, float, int], float],
    levels: tuple[tuple[float, float], ...],
    *,
    cost: float = 2.0,
    share: float = 0.5,
) -> list[Row]:
    """Delta of T + 1 epochs, for T up to 1,000, against a share of the claimed one.

    Parameters
    ----------
    scale : callable
        From epsilon, delta and T to lambda.
    levels : tuple of (float, float)
        Claimed epsilons and deltas.
    cost : float
        Level of an epoch, in units of 1/lambda.
    share : float
        Part of delta that the epochs may use.
    """
    rows = []
    for epsilon, delta in levels:
        for t in (1, 10, 100, 1000):
            found = optimal_composition(cost / scale(epsilon, delta, t), t + 1).delta(epsilon)
            rows.append((f"T = {t}, eps = {epsilon:g}, delta = {delta:g}", found, delta * share))
    return rows


# ------------------------------------------------------------------------ one outcome of one epoch

#: Tops of the outcome, and the catalogue's probabilities of it: with answers half of lambda above the threshold and the
#: last one at it, and the other way round.
TOPS, PRINTED = 12, (0.006135, 0.002281)
_CASES = (("answers above the threshold, the last at it", 1.0, 0.0), ("the other way round", 0.0, 1.0))


def _tail(t: float) -> float:
    """P[Lap(2) > t]."""
    beyond = 0.5 * math.exp(-abs(t) / 2.0)
    return beyond if t >= 0 else 1.0 - beyond


def by_quadrature(top: float, bottom: float) -> float:
    """Probability of 12 tops and a bottom where the answers are so far above the threshold, in units of lambda.

    Given the threshold's noise r, of scale 1, the tests are independent, with noise of scale 2.
    """

    def given(r: float) -> float:
        return 0.5 * math.exp(-abs(r)) * _tail(r - top) ** TOPS * (1.0 - _tail(r - bottom))

    # Split at the kinks; beyond 60 there is less than e^-60.
    cuts = sorted({-60.0, 0.0, top, bottom, 60.0})
    return math.fsum(integrate.quad(given, a, b, epsabs=1e-15, epsrel=1e-12)[0] for a, b in itertools.pairwise(cuts))


def _by_exact_distribution(top: float, bottom: float) -> float:
    """The same from the exact distribution of the mechanism at lambda = 2, for answers as they are."""
    law = epoch(IdentityQuery(), 2.0).law(np.array([top] * TOPS + [bottom]))
    return float(law.probabilities[list(law.outcomes).index((0,) * TOPS + (1,))])


def twelve_tops() -> list[Row]:
    """The distribution, and the quadrature."""
    return [(name, _by_exact_distribution(t, b), by_quadrature(0.5 * t, 0.5 * b)) for name, t, b in _CASES]


def twelve_tops_printed() -> list[Row]:
    """The distribution, and the catalogue's four digits."""
    return [(name, _by_exact_distribution(t, b), stated) for (name, t, b), stated in zip(_CASES, PRINTED, strict=True)]
