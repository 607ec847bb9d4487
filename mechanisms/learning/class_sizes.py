"""Classes of functions on {0,1}^d as tables, their VC dimension, and how large they can be.

A class is a table of zeros and ones, shape (functions, 2^d): one row a function, all different.

Source: 003, section 8.2 (fact 2) and section 9.2; catalogue 000_001_003, vc_and_size_bounds.
"""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.mechanism import IntArray, require

Table: TypeAlias = NDArray[np.int8]


def _points(d: int) -> IntArray:
    """The points of {0,1}^d, shape (2^d, d): row x has the bits of the number x."""
    require(isinstance(d, int) and 1 <= d <= 12, "a dimension from 1 to 12", d)
    return (np.arange(1 << d)[:, None] >> np.arange(d)) & 1


def functions(table: NDArray[np.generic]) -> Table:
    """The different rows of a table: a class counts functions, whatever they are written as."""
    return np.unique(np.asarray(table, dtype=np.int8), axis=0)


def thresholds(d: int) -> Table:
    """``c_t(x) = 1 if x < t`` for 0 <= t <= 2^d, the document's: 2^d + 1 functions."""
    size = len(_points(d))
    return functions(np.arange(size) < np.arange(size + 1)[:, None])


def points(d: int) -> Table:
    """Functions that are 1 at one point: 2^d."""
    return functions(np.eye(len(_points(d))))


def at_most(d: int, ones: int) -> Table:
    """Functions that are 1 at no more than so many points: as many as Sauer's lemma allows for that VC dimension."""
    size = len(_points(d))
    chosen = [set(found) for k in range(ones + 1) for found in itertools.combinations(range(size), k)]
    return functions(np.array([[x in one for x in range(size)] for one in chosen]))


def written_conjunctions(d: int) -> Table:
    """Conjunctions of every one of the 4^d sets of literals, repetitions and all; mutant: taken for the class."""
    at = _points(d)
    rows = []
    for literals in itertools.product((0, 1, 2, 3), repeat=d):
        # Of each variable: nothing, itself, its negation, or both (which is never true).
        true = np.ones(len(at), dtype=np.bool_)
        for i, literal in enumerate(literals):
            if literal & 1:
                true &= at[:, i] == 1
            if literal & 2:
                true &= at[:, i] == 0
        rows.append(true)
    return np.array(rows, dtype=np.int8)


def conjunctions(d: int) -> Table:
    """Conjunctions of literals: 3^d, and the one that is never true."""
    return functions(written_conjunctions(d))


def parities(d: int) -> Table:
    """``h . x mod 2``: 2^d linear functions."""
    at = _points(d)
    return functions((at @ at.T) % 2)


def vc_dimension(table: NDArray[np.generic]) -> int:
    """Size of the largest set of points on which the functions take all values.

    Returns
    -------
    int
        0 for a single function.

    Raises
    ------
    ValueError
        If there is no function.

    Notes
    -----
    Exact: sets of one more point are tried as long as some set is shattered, and of a shattered set all subsets are,
    so only sets are tried that add a later point to a shattered one.
    """
    rows = np.asarray(table, dtype=np.int64)
    require(rows.ndim == 2 and rows.size > 0, "at least one function and one point", rows.shape)
    size = rows.shape[1]
    # The values of every function on every shattered set, as a number, shape (functions, sets), and its last point.
    codes, last, dimension = np.zeros((len(rows), 1), dtype=np.int64), np.array([-1]), 0
    while True:
        old, new = np.nonzero(np.arange(size) > last[:, None])
        if not len(new) or 2 ** (dimension + 1) > len(rows):
            return dimension
        grown = codes[:, old] * 2 + rows[:, new]
        taken = np.zeros((len(new), 2 ** (dimension + 1)), dtype=np.bool_)
        taken[np.arange(len(new)), grown] = True
        shattered = taken.all(axis=1)
        if not shattered.any():
            return dimension
        codes, last, dimension = grown[:, shattered], new[shattered], dimension + 1


def sauer(size: int, dimension: int) -> int:
    """Most functions on so many points with a VC dimension: ``sum over i <= VC of C(size, i)``."""
    require(0 <= dimension <= size, f"a VC dimension from 0 to {size}", dimension)
    return sum(math.comb(size, i) for i in range(dimension + 1))
