"""Points in [0, 1] from the RAND data whose median is where an experiment wants it.

The index of a person-year is the mean over the ten columns of the value over the column's largest. Of the 20,190 values
the 127 around the median are set by the experiment, and the scale is such that these are between 0 and 1; the other
20,063 persons keep their own value, which is at most 0 or at least 1. So the middle of the data can be any small
dataset, in the midst of real ones: `mechanisms.stability.median.ClippedMedian` clips to [0, 1].
"""

from __future__ import annotations

from functools import cache

import numpy as np

from auditor.datasets import Pair
from experiments.common import rand
from mechanisms.base.mechanism import FloatArray, require
from mechanisms.stability.median import rank

#: Persons around the median whose points are set; odd, and otherwise arbitrary.
MIDDLE = 127


@cache
def index() -> FloatArray:
    """Index of every person-year: the mean of its values over the largest ones, shape (20190,), in [0, 0.6]."""
    data = rand()
    values: FloatArray = (data / data.max()).mean(axis=1).to_numpy()
    values.setflags(write=False)
    return values


def around(*inner: float) -> FloatArray:
    """Return the data with given points around the median.

    Parameters
    ----------
    *inner : float
        An odd number of at most 127 points in [0, 1], in any order: if they are sorted, the median of all is the one in
        the middle. All other points are at most 0 or at least 1, half of them each.

    Returns
    -------
    ndarray of shape (20190,)
        What is at the same place in `inner` belongs to the same person.
    """
    require(len(inner) % 2 == 1 and len(inner) <= MIDDLE, f"an odd number of at most {MIDDLE} points", len(inner))
    values, half = index(), MIDDLE // 2
    order = np.argsort(values, kind="stable")
    centre = rank(len(values)) - 1
    low, high = values[order[centre - half - 1]], values[order[centre + half + 1]]
    points: FloatArray = (values - low) / (high - low)
    rest = (MIDDLE - len(inner)) // 2
    points[order[centre - half : centre + half + 1]] = [0.0] * rest + list(inner) + [1.0] * rest
    return points


def moved(name: str, first: tuple[float, ...], second: tuple[float, ...]) -> Pair:
    """Two datasets whose points around the median differ in one place."""
    return Pair(around(*first), around(*second), name)


def zeros(count: int) -> tuple[float, ...]:
    """So many zeros, at most 127, and ones: the median is 0 from 64 zeros on, `count` - 64 rows from where it moves."""
    return (0.0,) * count + (1.0,) * (MIDDLE - count)


def whole_range() -> Pair:
    """All 20,190 index values; the smallest one goes to the other end of [0, 1]."""
    data = index().copy()
    data[int(np.argmin(data))] = 1.0
    return Pair(index(), data, "the smallest index becomes 1")
