"""Epochs of sparse vector by optimal composition: their delta, against the claimed one."""

from __future__ import annotations

from collections.abc import Callable

from auditor.exact import optimal_composition
from auditor.inequality import Row

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
