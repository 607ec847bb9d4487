"""Prior estimates from normal distributions that are fitted to past draws of each dataset.

A few dozen draws tell the centre and the scale of a number better than the probability of any event. So events of
plain numbers are first rated by normal distributions with the draws' means and deviations, and the counts take over as
draws come in. Nothing here bears on validity: estimates are functions of past draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.events.candidates import Candidates, Prior
from auditor.events.features import Distance, Numeric
from auditor.targets.outputs import Batch

Array = NDArray[np.float64]

#: Draws that the fit stands for. Chosen by simulation on seeds below 1,000, as is the next one.
_WEIGHT = 24.0
#: Nats by which an event of another feature has to be better than those that are rated by the fit.
_PENALTY = 3.0
#: Draws a side from which on counts tell as much; arbitrary, the fit would change an estimate by half a per cent.
_MOST = 5_000
#: Least part of the draws, both sides together, that are different numbers; arbitrary, numbers that repeat are symbols.
_DIFFERENT = 0.5
#: Least and, from 1, largest probability that a fit gives: tails of other distributions are heavier.
_LEAST = 1e-4


def add_priors(x: Batch, y: Batch, groups: Sequence[Candidates]) -> list[Candidates]:
    """Give events of plain numbers a prior by normal fits.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side, as many.
    groups : sequence of Candidates
        Events, with counts.

    Returns
    -------
    list of Candidates
        The same where outputs are no plain numbers, or numbers repeat.
    """
    fits = _fit_normals(x, y)
    if fits is None:
        return list(groups)
    found = []
    for group in groups:
        if isinstance(group.feature, Distance) or group.feature == _VALUE:
            p, q = (_probability(group, mean, deviation) for mean, deviation in fits)
            found.append(replace(group, prior=Prior(p, q, _WEIGHT)))
        else:
            found.append(replace(group, penalty=group.penalty + (_PENALTY if group.penalty >= 0 else 0.0)))
    return found


_VALUE = Numeric("value")


def _fit_normals(x: Batch, y: Batch) -> list[tuple[float, float]] | None:
    """Mean and deviation of each side; None where a normal distribution says nothing."""
    sides = (x, y)
    if not all(isinstance(side, np.ndarray) and side.ndim == 1 and side.dtype.kind in "iuf" for side in sides):
        return None
    if not 1 < len(x) <= _MOST:
        return None
    a, b = (np.asarray(side, dtype=np.float64) for side in sides)
    pooled = np.concatenate([a, b])
    if not np.isfinite(pooled).all() or len(np.unique(pooled)) < _DIFFERENT * len(pooled):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        fits = [(float(side.mean()), float(side.std(ddof=1))) for side in (a, b)]
    return fits if all(np.isfinite(mean) and 0 < deviation < np.inf for mean, deviation in fits) else None


def _probability(group: Candidates, mean: float, deviation: float) -> Array:
    """Probability of each event under a normal distribution."""
    if isinstance(group.feature, Distance):
        centre = group.feature.centre - mean
        below = special.ndtr((centre + group.cuts) / deviation) - special.ndtr((centre - group.cuts) / deviation)
    else:
        below = special.ndtr((group.cuts - mean) / deviation)
    inside = below if group.side == "below" else 1.0 - below
    return np.asarray(np.clip(inside, _LEAST, 1.0 - _LEAST))
