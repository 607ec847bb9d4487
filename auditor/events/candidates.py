"""Events of one feature with their counts, and estimates from counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature

Array = NDArray[np.float64]

#: Draws that a prior estimate of 1/2 stands for.
_SHRINK = 2.0
#: Nats by which an event of the survey may be worse than others, and the part of its growth that this is at most: it
#: says what is the matter, while the others may only show its traces. Arbitrary, small.
_PREFERENCE, PREFERRED = 1.0, 0.1


@dataclass(frozen=True)
class Prior:
    """Prior estimates of events' probabilities, as if from a number of draws.

    Parameters
    ----------
    p, q : ndarray of shape (n_events,), or float
        Under the first and the second dataset, in (0, 1).
    weight : float
        Draws a side that the estimates stand for.
    """

    p: Array | float = 0.5
    q: Array | float = 0.5
    weight: float = _SHRINK

    def estimate(self, x: Array, y: Array, n: float) -> tuple[Array, Array]:
        """Estimates after ``n`` draws a side.

        Parameters
        ----------
        x, y : ndarray of shape (n_events,)
            How often each event happened on either side.
        n : float
            Draws a side.
        """
        total = n + self.weight
        return (x + self.weight * self.p) / total, (y + self.weight * self.q) / total

    def take(self, events: int | list[int]) -> Prior:
        """Prior of some of the events."""
        p, q = (v if isinstance(v, float) else v[events] for v in (self.p, self.q))
        return Prior(p, q, self.weight)


#: Nothing is known before the draws.
VAGUE = Prior()


@dataclass(frozen=True)
class Candidates:
    """Events of one feature and side, with their counts."""

    feature: Feature
    side: str
    cuts: Array
    x: Array
    y: Array
    n: int
    penalty: float = 0.0
    prior: Prior = VAGUE


def prefer_candidates(groups: Iterable[Candidates]) -> list[Candidates]:
    """Events of the survey, preferred to others that are hardly better."""
    return [replace(group, penalty=-_PREFERENCE) for group in groups]


def compute_wilson_interval(p: Array, n: Array | float, z: float) -> tuple[Array, Array]:
    """Wilson's interval for a probability: the points z standard errors away.

    Parameters
    ----------
    p : ndarray
        Shares of the draws, in [0, 1].
    n : float or ndarray
        Number of draws, at least 1.
    z : float
        Half the width in standard errors.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Lower and upper ends.
    """
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


@lru_cache(maxsize=256)
def _positions(m: int) -> NDArray[np.int64]:
    """Ranks among m sorted draws at which to cut: sixteenths, and a geometric ladder into both tails."""
    middle = (np.arange(1, 16) / 16 * m).astype(np.int64)
    tail = np.concatenate([[0], 2 ** np.arange(1, 12) - 1])
    tail = tail[tail < m // 8]
    return np.unique(np.concatenate([tail, middle, m - 1 - tail]))


def candidates_of(feature: Feature, x: Array, y: Array) -> list[Candidates]:
    """Events of a feature at given values, with counts a side.

    Parameters
    ----------
    feature : Feature
        The feature.
    x, y : ndarray of shape (n,)
        Its values for as many draws of each side; NaN lies in no event.

    Returns
    -------
    list of Candidates
        Events below and above cuts at quantiles; empty if all values are NaN.
    """
    a, b = np.sort(x), np.sort(y)  # NaN go last
    valid_a, valid_b = _count_numbers(a), _count_numbers(b)
    picks = [v[_positions(m)] for v, m in ((a, valid_a), (b, valid_b)) if m > 0]
    if not picks:
        return []
    cuts = _distinct_cuts(np.concatenate(picks))
    below_a = a[:valid_a].searchsorted(cuts, side="right").astype(np.float64)
    below_b = b[:valid_b].searchsorted(cuts, side="right").astype(np.float64)
    return [
        Candidates(feature, "below", cuts, below_a, below_b, len(a)),
        Candidates(feature, "above", cuts, valid_a - below_a, valid_b - below_b, len(a)),
    ]


def _distinct_cuts(cuts: Array) -> Array:
    """Distinct numbers in order, as `np.unique` gives them, in a third of the time if they are few."""
    ordered = np.sort(cuts)
    zero = int(ordered.searchsorted(0.0))
    if zero < len(ordered) and ordered[zero] == 0 and np.signbit(cuts[cuts == 0]).any():
        return np.unique(cuts)  # which of two zeros stays is its business
    new = np.empty(len(ordered), dtype=np.bool_)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def _count_numbers(ordered: Array) -> int:
    """How many sorted values are no NaN."""
    n = len(ordered)
    return n if n and ordered[-1] == ordered[-1] else n - int(np.isnan(ordered).sum())
