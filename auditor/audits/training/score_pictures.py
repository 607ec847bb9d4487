"""What plots of scores show: both distributions, and events beside the claimed cap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.guarantees import Guarantee

Array = NDArray[np.float64]

#: Bins between the ends that are shown, and the part of the scores beyond each end, which falls into the outer bins.
BINS, TAIL = 24, 0.005
#: Largest edge of a bin, and smallest distance of the outer ones over their size: in 8 digits these differ.
_WIDEST, _LEAST = 1e300, 1e-7
#: Thresholds of the events that are shown: quantiles of all scores.
THRESHOLDS: Array = np.linspace(0.025, 0.975, 39)
#: Places at which the claimed cap is given: steps of 0.02, and smaller ones near 0, where caps are steep.
GRID: Array = np.unique(np.concatenate([np.linspace(0, 1, 51), np.geomspace(1e-4, 0.02, 12)]))


def count_scores(inside: Array, outside: Array) -> dict[str, Any]:
    """Count the scores of both sides in the same bins.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_inside,), (n_outside,)
        Scores.

    Returns
    -------
    dict
        ``edges`` of the bins, and counts of each side; scores beyond an end are counted in the outer bin.
    """
    low, high = np.quantile(np.concatenate([inside, outside]).clip(-_WIDEST, _WIDEST), [TAIL, 1 - TAIL])
    least = _LEAST * max(abs(low), abs(high))
    if not high - low > least:
        low, high = low - max(0.5, least), high + max(0.5, least)
    edges = np.linspace(low, high, BINS + 1)
    counts = [np.histogram(np.clip(side, low, high), edges)[0].tolist() for side in (inside, outside)]
    return {"edges": edges.tolist(), "inside": counts[0], "outside": counts[1]}


def trace_tradeoff(inside: Array, outside: Array, claim: Guarantee) -> dict[str, Any]:
    """Rates of scores beyond thresholds, beside the claimed cap.

    They are those of the scores that are audited: what they show by themselves is no evidence.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_inside,), (n_outside,)
        Scores.
    claim : Guarantee
        The claim.

    Returns
    -------
    dict
        As `AuditResult.tradeoff` has it; empty without scores of one side.
    """
    if not len(inside) or not len(outside):
        return {}
    everything = np.concatenate([inside, outside])
    thresholds = np.unique(np.quantile(everything, THRESHOLDS, method="inverted_cdf"))
    p, q = (np.array([(side >= t).mean() for t in thresholds]) for side in (inside, outside))
    if (p - q).sum() < 0:  # low scores speak for inclusion
        p, q = 1.0 - p, 1.0 - q
    points = sorted({(round(float(b), 8), round(float(a), 8)) for a, b in zip(p, q, strict=True)})
    return {
        "q": GRID.tolist(),
        "claimed": np.minimum(claim.cap(GRID, claim.level), 1.0).tolist(),
        "exact": None,
        "points": [list(point) for point in points],
        "draws": [],
    }
