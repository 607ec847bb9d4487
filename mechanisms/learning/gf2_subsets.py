"""Random subsets of a system of equations over GF(2): a uniform solution of each, for many subsets at once.

Each equation is taken independently. The subsets have no structure in common, so each is eliminated; what saves work is
that few of its equations are needed. Let R be the rank of all equations, and r0 a solution of R independent ones.
Equations that r0 satisfies are called good, the others bad. A subset whose good equations have rank R has the solutions
r0 plus the null space, and a bad equation contradicts them. So once good equations of rank R were met, what is left is
a coin: is any bad equation in the subset? Where rank R is not reached, all of the subset is eliminated. Nothing is
assumed of the equations; with many of them, and few bad ones or many, little more than R rows a subset are looked at.

Source: document 002, section 4, algorithm A, steps 2 to 4; the method is this harness's.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from mechanisms.base.mechanism import FloatArray, IntArray, require
from mechanisms.learning.gf2 import BoolArray, EchelonSystems, Words, eliminate, inner, tall

#: Equations more than the rank in a first attempt: uniform rows miss full rank with probability 2^-12 then.
_MARGIN = 12
#: Standard deviations by which a block of equations is larger than what a first attempt needs; arbitrary.
_SPARE = 2.5
#: Subsets that are eliminated together: a step's rows should stay in the processor's cache. Arbitrary.
_TOGETHER = 512


@dataclass(frozen=True, eq=False)
class PreparedSystem:
    """A system whose distinct equations are sorted into good and bad ones.

    Attributes
    ----------
    d : int
        Number of variables.
    x : ndarray of shape (words, m), uint64
        Left sides of distinct equations, good ones first. ``0 = 0`` is left out; ``0 = 1`` is a bad one.
    y : ndarray of shape (m,), bool
        Right sides.
    times : ndarray of shape (m,), int64
        How often each occurs.
    good : int
        Number of good ones.
    basis : EchelonSystems
        As many good equations as the rank of all, one system, eliminated.
    """

    d: int
    x: Words
    y: BoolArray
    times: IntArray
    good: int
    basis: EchelonSystems

    @property
    def rank(self) -> int:
        """Rank of all."""
        return int(self.basis.rank[0])


def prepare(x: Words, y: BoolArray, times: IntArray, d: int) -> PreparedSystem:
    """Merge equal equations, and tell good ones from bad ones.

    Parameters
    ----------
    x : ndarray of shape (words, m), uint64
        Left sides.
    y : ndarray of shape (m,), bool
        Right sides.
    times : ndarray of shape (m,), int64
        How often each occurs.
    d : int
        Number of variables.
    """
    order = np.lexsort((y, *x))
    x, y, times = x[:, order], y[order], times[order]
    new = np.ones(len(y), dtype=np.bool_)
    new[1:] = (x[:, 1:] != x[:, :-1]).any(axis=0) | (y[1:] != y[:-1])
    begin = np.flatnonzero(new)
    x, y, times = x[:, begin], y[begin], np.add.reduceat(times, begin)
    says = np.flatnonzero(x.any(axis=0) | y)
    # In some order, always the same: sorted equations that follow each other are alike, so their rank is low.
    says = says[np.random.default_rng(0).permutation(len(says))]
    x, y, times = x[:, says], y[says], times[says]
    basis = tall(x, y, d)
    bad = inner(x, basis.solutions(np.zeros((x.shape[0], 1), dtype=np.uint64))) != y
    order = np.argsort(bad, kind="stable")
    return PreparedSystem(d, x[:, order], y[order], times[order], int((~bad).sum()), basis)


def random_solutions(
    system: PreparedSystem, p: float, free: Words, rng: np.random.Generator
) -> tuple[Words, BoolArray]:
    """Draw subsets, every occurrence of an equation with probability `p`, and solve them.

    Parameters
    ----------
    system : PreparedSystem
        The equations.
    p : float
        In (0, 1].
    free : ndarray of shape (words, n), uint64
        Values of the variables that a subset leaves open: uniform bits give uniform solutions.
    rng : Generator
        Draws the subsets.

    Returns
    -------
    found : ndarray of shape (words, n), uint64
        A solution of each subset; arbitrary where there is none.
    none : ndarray of shape (n,), bool
        Where there is none.
    """
    require(0 < p <= 1, "p in (0, 1]", p)
    taken = -np.expm1(system.times * math.log1p(-p)) if p < 1 else np.ones(len(system.times))
    n = free.shape[1]
    found, none, full = free.copy(), np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    for start in range(0, n, _TOGETHER):
        some = slice(start, start + _TOGETHER)
        _solve(system, taken, found[:, some], none[some], full[some], rng)
    found[:, full] = system.basis.solutions(free[:, full])
    return found, none


def _solve(
    system: PreparedSystem, taken: FloatArray, found: Words, none: BoolArray, full: BoolArray, rng: np.random.Generator
) -> None:
    """`random_solutions` for as many subsets as are eliminated together.

    Parameters
    ----------
    taken : ndarray of shape (m,)
        Probabilities that the distinct equations are in a subset.
    found : ndarray of shape (words, n), uint64
        Values of variables that are left open; overwritten with solutions, but where `full` is set.
    none, full : ndarray of shape (n,), bool
        Set where there is no solution, and where the solutions are those of all good equations.
    """
    active = np.arange(found.shape[1])
    any_bad = 1.0 - float(np.prod(1.0 - taken[system.good :]))
    state: EchelonSystems | None = None
    for start, end in _blocks(system, taken):
        drawn = _subset_positions(taken[start:end], len(active), rng) + start
        # The first attempt leaves out what it can do without.
        for part in (slice(0, system.rank + _MARGIN), slice(system.rank + _MARGIN, None)):
            if state is not None and not len(drawn[part]):
                continue
            state = _with_equations(system, state, drawn[part])
            if end <= system.good:
                decided = state.rank == system.rank
                full[active[decided]] = True
                none[active[decided]] = rng.random(int(decided.sum())) < any_bad
            else:
                decided = ~state.consistent
                none[active[decided]] = True
            if decided.any():
                active, state, drawn = active[~decided], state.take(~decided), drawn[:, ~decided]
            if not len(active):
                return
    if state is not None:  # what is left was looked at as a whole; if there is no equation, all is open
        found[:, active] = state.solutions(found[:, active])


def _blocks(system: PreparedSystem, taken: FloatArray) -> list[tuple[int, int]]:
    """Cut the equations so that a block has enough in a subset for a first attempt; no block has good and bad ones."""
    least = system.rank + _MARGIN
    wanted = least + _SPARE * math.sqrt(least)
    cuts = [0]
    for start, end in ((0, system.good), (system.good, len(taken))):
        steps = np.floor(np.cumsum(taken[start:end]) / wanted)
        cuts += [*(start + 1 + np.flatnonzero(np.diff(steps))).tolist(), end]
    return [(a, b) for a, b in itertools.pairwise(cuts) if a < b]


def _subset_positions(taken: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Positions of what is taken, in order, one column a subset; shape (most, n), filled up with a large number."""
    subset, position = np.nonzero(rng.random((n, len(taken))) < taken)
    count = np.bincount(subset, minlength=n)
    found = np.full((int(count.max(initial=0)), n), np.iinfo(np.int64).max // 2, dtype=np.int64)
    found[np.arange(len(subset)) - np.repeat(np.cumsum(count) - count, count), subset] = position
    return found


def _with_equations(system: PreparedSystem, state: EchelonSystems | None, drawn: IntArray) -> EchelonSystems:
    """Eliminate in the equations of these positions, after those that were before; past the end there is ``0 = 0``."""
    there = drawn < len(system.y)
    position = np.where(there, drawn, 0)
    # Not x[:, position], which has the words of a row side by side and makes the elimination half as fast.
    rows, labels = np.take(system.x, position, axis=1), system.y[position] & there
    rows *= there
    return eliminate(rows, labels) if state is None else state.extended(rows, labels)
