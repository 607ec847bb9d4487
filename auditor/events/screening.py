"""Screening of many coordinates for those that differ between two datasets, by cheap statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import LatticeExponent

Array = NDArray[np.float64]

#: Numbers that are looked at together; arbitrary, bounds memory to some dozens of MB.
_BLOCK = 1 << 20
#: Numbers a side whose last bits are looked at; arbitrary, they take ten times as long as all the rest.
_BITS = 1 << 18
#: Probabilities of the tails that are looked at; arbitrary. With a factor of 4 between them, any that is larger than
#: the first is at least half seen.
TAILS = (0.002, 0.01, 0.04, 0.16)
#: Score of coordinates that are constant on both sides and different: more than any other.
_CERTAIN = 1e6


def screen_coordinates(x: NDArray[np.generic], y: NDArray[np.generic]) -> Array:
    """How clearly each coordinate differs between two sides, roughly in standard errors.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Draws of each side; NaN where there is no number.

    Returns
    -------
    ndarray of shape (d,)
        The largest of several scores: difference of means, of spreads, of how often the number is missing, zero, or
        what it was in the first draw; how many draws lie beyond all of the other side; and, for floats, difference of
        the places of the last bits.
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return _screen(x, y)


def _screen(x: NDArray[np.generic], y: NDArray[np.generic]) -> Array:
    d, n = x.shape[1], min(len(x), len(y))
    step = max(1, _BLOCK // max(n, 1))
    found = np.zeros(d)
    for start in range(0, d, step):
        block = slice(start, start + step)
        found[block] = _scores(x[:n, block].astype(np.float64), y[:n, block].astype(np.float64))
    if x.dtype.kind == "f" and y.dtype.kind == "f":
        rows = min(n, max(_BITS // d, 1))
        if rows > 1:
            found = np.fmax(found, _bit_scores(x[:rows].astype(np.float64), y[:rows].astype(np.float64)))
    return found


def _scores(a: Array, b: Array) -> Array:
    n = len(a)
    fine_a, fine_b = np.isfinite(a), np.isfinite(b)
    scores = [_standardised_frequency_difference(fine_a, fine_b, n)]
    if not (fine_a.all() and fine_b.all()):
        scores.append(_standardised_frequency_difference(np.isnan(a), np.isnan(b), n))
        a, b = np.where(fine_a, a, np.nan), np.where(fine_b, b, np.nan)
    scores.append(_standardised_mean_difference(a, b))
    centre = 0.5 * (_mean(a) + _mean(b))
    scores.append(_standardised_mean_difference(np.abs(a - centre), np.abs(b - centre)))
    for value in (0.0, a[0], b[0]):
        scores.append(_standardised_frequency_difference(a == value, b == value, n))
    low, high = np.fmin.reduce(a), np.fmax.reduce(a)
    beyond = np.fmax((b < low).sum(axis=0), (b > high).sum(axis=0))
    low, high = np.fmin.reduce(b), np.fmax.reduce(b)
    beyond = np.fmax(beyond, np.fmax((a < low).sum(axis=0), (a > high).sum(axis=0)))
    # k draws of one distribution lie beyond n others with a probability of about 2^-k, that of sqrt(2 ln 2 k) standard
    # errors.
    scores.append(np.sqrt(2 * np.log(2.0) * beyond))
    return np.asarray(np.nan_to_num(np.fmax.reduce(scores), nan=0.0, posinf=_CERTAIN))


def _mean(values: Array) -> Array:
    if not np.isnan(values).any():
        return np.asarray(values.sum(axis=0) / max(len(values), 1))
    count = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    return np.asarray(np.nansum(values, axis=0) / count)


def _standardised_mean_difference(a: Array, b: Array) -> Array:
    """Difference of means in standard errors."""
    mean_a, mean_b = _mean(a), _mean(b)
    error = _mean((a - mean_a) ** 2) / len(a) + _mean((b - mean_b) ** 2) / len(b)
    gap = np.abs(mean_a - mean_b)
    # Rounding makes a constant's mean differ from it by some units of the last place.
    gap = np.where(gap > 1e-12 * (np.abs(mean_a) + np.abs(mean_b)), gap, 0.0)
    return np.asarray(np.where(error > 0, gap / np.sqrt(error), np.where(gap > 0, _CERTAIN, 0.0)))


def _standardised_frequency_difference(a: NDArray[np.bool_], b: NDArray[np.bool_], n: int) -> Array:
    """Difference of frequencies in standard errors, as for small counts."""
    first, second = a.sum(axis=0, dtype=np.float64), b.sum(axis=0, dtype=np.float64)
    return compare_counts(first, second, n)


def compare_counts(first: Array, second: Array, n: int) -> Array:
    """Difference of two counts of n, in standard errors.

    One is added to the variance, for small counts.

    Parameters
    ----------
    first, second : ndarray
        Counts of the two sides, from 0 to n.
    n : int
        Draws a side.

    Returns
    -------
    ndarray
        At least 0, of the shape of the counts.
    """
    total = first + second
    return np.asarray(np.abs(first - second) / np.sqrt(np.minimum(total, 2 * n - total) + 1.0))


def screen_tails(x: NDArray[np.generic], y: NDArray[np.generic]) -> Array:
    """Difference of each coordinate's tails, in standard errors.

    Standard errors are those of `compare_counts`, for small counts.

    A tail of probability 0.01 moves a mean by too little for `screen_coordinates`.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Draws of each side.

    Returns
    -------
    ndarray of shape (d,)
        The largest of the differences of how many draws lie beyond quantiles of all draws, `TAILS` of them on each end.
    """
    d, n = x.shape[1], min(len(x), len(y))
    found, step = np.zeros(d), max(1, _BLOCK // max(n, 1))
    ranks = np.unique([int(tail * 2 * n) for tail in TAILS if tail * 2 * n >= 1])
    if not len(ranks):
        return found
    for start in range(0, d, step):
        block = slice(start, start + step)
        a, b = x[:n, block].astype(np.float64), y[:n, block].astype(np.float64)
        pooled = np.partition(np.concatenate([a, b]), np.concatenate([ranks, 2 * n - 1 - ranks]), axis=0)
        for rank in ranks:
            low, high = pooled[rank], pooled[2 * n - 1 - rank]
            for in_a, in_b in ((a < low, b < low), (a > high, b > high)):
                found[block] = np.fmax(found[block], _standardised_frequency_difference(in_a, in_b, n))
    return found


def _bit_scores(a: Array, b: Array) -> Array:
    """Difference of the mean places of the last bits, in standard errors."""
    grain = LatticeExponent()
    last_a, last_b = (grain(v.reshape(-1)).reshape(v.shape) for v in (a, b))
    return np.nan_to_num(_standardised_mean_difference(last_a, last_b), nan=0.0, posinf=_CERTAIN)


def best_columns(scores: Array, most: int, least: float) -> list[int]:
    """Coordinates of the highest scores, at least ``least``.

    Of equal ones the first.

    Parameters
    ----------
    scores : ndarray of shape (d,)
        Score of each coordinate; NaN is never among the best.
    most : int
        Largest number of coordinates.
    least : float
        Lowest score.

    Returns
    -------
    list of int
        From the highest score down.
    """
    order = np.argsort(-scores, kind="stable")[:most]
    return [int(j) for j in order if scores[j] >= least]
