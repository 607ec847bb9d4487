"""Partial discrepancy of query matrices, and the error that it forces on private answers.

``PDisc_m(Q)`` is the least ``max |Q z|`` over z in {-1, 0, 1}^n with more than m entries that are not 0; the document
has m = n / 100. Rows of Q are queries, columns people, and everything is in counts.

Source: 003, Definition 4.1.5 and section 4.2; catalogue 000_001_003, partial_discrepancy_bound and A8.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.audits.adversaries.bounds import bound_reconstruction
from auditor.audits.adversaries.exhaustive import Bits, enumerate_bits
from auditor.privacy.guarantees import ApproxDP
from mechanisms.base.mechanism import FloatArray, IntArray, require

Matrix: TypeAlias = NDArray[Any]
Columns: TypeAlias = NDArray[np.int8]

#: Most columns of an exact search: 3^16 / 2 vectors take some seconds with 64 queries.
MOST = 16
#: Columns whose 3^10 combinations are tabulated; the others are a loop around them.
_TABLED = 10
#: Exponents are cut here, where cosh is 1e173: a sum of thousands of them stays finite.
_LARGEST = 400.0
#: Part of the largest eigenvalue by which the smallest is lowered: far above the error of the decomposition, which is
#: some n times 1e-16 of it.
_SAFETY = 1e-11


def random_queries(k: int, n: int, seed: int) -> Bits:
    """Random subsets: k x n zeros and ones, each with probability 1/2."""
    return np.random.default_rng(seed).integers(0, 2, (k, n), dtype=np.int8)


# ---------------------------------------------------------------------------------- exactly


def by_support(queries: Matrix) -> FloatArray:
    """Least ``max |Q z|`` over the signs of z, for every set of places that are not 0.

    Parameters
    ----------
    queries : ndarray of shape (k, n)
        Small integers, n at most 16.

    Returns
    -------
    ndarray of shape (2^n,)
        At index T (place i is the bit 2^i) the minimum over the z whose places are those of T; 0 for none.

    Notes
    -----
    All 3^n vectors: ``Q z`` for the first ten columns from a table, the others added in a loop; z and -z have the same
    value, so that the last entry need not be -1.
    """
    columns = _columns(queries)
    n = len(columns)
    require(n <= MOST, f"at most {MOST} columns", n)
    inner = min(n - 1, _TABLED)
    sums, places = _combinations(columns[:inner])
    outer, outer_places = _combinations(columns[inner:-1])
    outer = np.concatenate([outer, outer + columns[-1]])
    outer_places = np.concatenate([outer_places, outer_places | (1 << (n - 1 - inner))])
    best = np.full(1 << n, np.inf)
    for at, place in zip(outer, outer_places, strict=True):
        moved = sums + at
        largest = np.maximum(moved.max(axis=1), -moved.min(axis=1))
        np.minimum.at(best, places + (place << inner), largest.astype(np.float64))
    return best


def _combinations(columns: Columns) -> tuple[Columns, IntArray]:
    """Sums of columns times -1, 0 or 1, shape (3^m, k), and the places that are not 0, shape (3^m,)."""
    sums = np.zeros((1, columns.shape[1]), dtype=np.int8)
    places = np.zeros(1, dtype=np.int64)
    for i, column in enumerate(columns):
        sums = np.concatenate([sums, sums + column, sums - column])
        places = np.concatenate([places, places | (1 << i), places | (1 << i)])
    return sums, places


def _columns(queries: Matrix) -> Columns:
    array = np.asarray(queries)
    whole = array.ndim == 2 and array.size > 0 and bool((array == np.rint(array)).all())
    require(whole and bool((np.abs(array) <= 1).all()), "a matrix of -1, 0 and 1, shape (k, n)", array.shape)
    return np.ascontiguousarray(array.T, dtype=np.int8)


def _sizes(n: int) -> IntArray:
    """How many places each of the 2^n sets has."""
    sizes = np.zeros(1, dtype=np.int64)
    for _ in range(n):
        sizes = np.concatenate([sizes, sizes + 1])
    return sizes


def allowed_places(fraction: float, n: int) -> int:
    """The m of a fraction: ``floor(fraction * n)``; z has more places than this."""
    require(0 <= fraction < 1, "a fraction in [0, 1)", fraction)
    # A product like 0.2 * 15 that should be whole may be a little less.
    return math.floor(fraction * n * (1 + 1e-12))


def partial_discrepancy(queries: Matrix, m: int) -> int:
    """Least ``max |Q z|`` over z with more than m places that are not 0, exactly."""
    n = np.asarray(queries).shape[1]
    require(0 <= m < n, f"m from 0 to {n - 1}", m)
    return int(by_support(queries)[_sizes(n) > m].min())


def restricted(queries: Matrix, fraction: float) -> FloatArray:
    """Partial discrepancy of the restriction to every set of columns, shape (2^n,); infinite for the empty set.

    Of a set S, z has more than ``floor(fraction |S|)`` places, all in S.

    Notes
    -----
    z in S is z with all its places in S, so what is wanted is the minimum of `by_support` over the subsets of S with
    more than m places: a minimum over subsets, column by column, for each m. In all ``3^n k + n^2 2^n`` steps, not the
    ``4^n k`` of one search a subset.
    """
    n = np.asarray(queries).shape[1]
    least, sizes = by_support(queries), _sizes(n)
    wanted = np.array([allowed_places(fraction, size) for size in range(n + 1)])
    found = np.full(1 << n, np.inf)
    for m in range(int(wanted.max()) + 1):
        over = np.where(sizes > m, least, np.inf)
        for i in range(n):
            pairs = over.reshape(-1, 2, 1 << i)
            pairs[:, 1] = np.minimum(pairs[:, 1], pairs[:, 0])
        found = np.where(wanted[sizes] == m, over, found)
    found[0] = np.inf
    return found


def hereditary(queries: Matrix, fraction: float, at_least: int = 2) -> int:
    """Largest partial discrepancy of a restriction to at least so many columns (the document prints the least)."""
    return int(_of_restrictions(queries, fraction, at_least).max())


def least_restricted(queries: Matrix, fraction: float) -> int:
    """Least partial discrepancy of a restriction, which is what is printed: at most 1, that of one column."""
    return int(_of_restrictions(queries, fraction, 1).min())


def _of_restrictions(queries: Matrix, fraction: float, at_least: int) -> FloatArray:
    found = restricted(queries, fraction)
    n = np.asarray(queries).shape[1]
    require(1 <= at_least <= n, f"at least 1 to {n} columns", at_least)
    return np.asarray(found[_sizes(n) >= at_least], dtype=np.float64)


def witness(queries: Matrix, m: int) -> Bits:
    """A z with more than m places that attains the partial discrepancy, shape (n,)."""
    columns = _columns(queries)
    n = len(columns)
    require(0 <= m < n, f"m from 0 to {n - 1}", m)
    places = int(np.where(_sizes(n) > m, by_support(queries), np.inf).argmin())
    used = np.flatnonzero((places >> np.arange(n)) & 1)
    signs = 1 - 2 * enumerate_bits(len(used))
    best = np.abs(signs @ columns[used]).max(axis=1).argmin()
    z = np.zeros(n, dtype=np.int8)
    z[used] = signs[best]
    return z


# ------------------------------------------------------------------------------- certified bounds


def singular_bound(queries: Matrix, m: int) -> float:
    """Lower bound of the partial discrepancy by a singular value, for any number of columns.

    Notes
    -----
    Valid because: z has at least m + 1 places, so ``|z|_2 >= sqrt(m + 1)``, and ``max |Q z| >= |Q z|_2 / sqrt(k) >=
    s sqrt((m + 1) / k)`` for the smallest singular value s of Q (0 with fewer queries than columns). Its square is an
    eigenvalue of ``Q^T Q``, whose integers are exact, and is lowered by more than its error in floating point.
    """
    columns = _columns(queries).astype(np.float64)
    n, k = columns.shape
    require(0 <= m < n, f"m from 0 to {n - 1}", m)
    values = np.linalg.eigvalsh(columns @ columns.T)
    square = float(values[0]) - _SAFETY * float(values[-1])
    return math.sqrt(max(0.0, square) * (m + 1) / k)


def certified_below(queries: Matrix, m: int) -> int:
    """`singular_bound`, rounded up: entries of Q z are integers."""
    return math.ceil(singular_bound(queries, m))


def certified_above(queries: Matrix, m: int, seed: int = 0, rounds: int = 100) -> int:
    """Upper bound of the partial discrepancy: ``max |Q z|`` of the best z that a local search finds.

    Notes
    -----
    Valid because: the value of any z with more than m places is one. From random signs on m + 1 random columns, a
    column's sign is flipped, or a column is exchanged, as long as the sum of ``cosh`` of the entries of ``Q z``, a
    smooth stand-in for the largest, falls. Deterministic for a seed.
    """
    columns = _columns(queries).astype(np.float64)
    n, k = columns.shape
    require(0 <= m < n, f"m from 0 to {n - 1}", m)
    rng = np.random.default_rng(seed)
    z = np.zeros(n)
    z[rng.permutation(n)[: m + 1]] = rng.choice([-1.0, 1.0], m + 1)
    at, best = z @ columns, math.inf
    # At this temperature the k terms weigh like their largest one.
    sharp = math.log(2.0 * k) / max(1.0, 0.5 * math.sqrt(m + 1))
    for _ in range(rounds):
        best = min(best, float(np.abs(at).max()))
        used = np.flatnonzero(z)
        i = int(rng.choice(used))
        without = at - z[i] * columns[i]
        free = np.append(np.flatnonzero(z == 0), i)
        moved = np.concatenate([without + columns[free], without - columns[free]])
        cost = np.cosh(np.minimum(sharp * np.abs(moved), _LARGEST)).sum(axis=1)
        j = int(cost.argmin())
        z[i] = 0.0
        z[free[j % len(free)]] = 1.0 if j < len(free) else -1.0
        at = moved[j]
    return round(min(best, float(np.abs(at).max())))


# ------------------------------------------------------------------------------------ error


def exact_recovery(n: int, epsilon: float, delta: float) -> float:
    """Largest probability that all of n secret uniform bits are recovered: ``(e^eps + n delta) / (e^eps + n)``.

    Notes
    -----
    Valid because: on x, the outputs "x" and "x with bit i flipped", for every i, exclude each other, and each of the
    latter has at least probability ``e^-eps (p' - delta)`` with p' that of being right on its own data; averaged over
    x, ``p + n e^-eps (p - delta) <= 1``. Source: derived.
    """
    require(n >= 1, "at least one bit", n)
    e = math.exp(epsilon)
    return min(1.0, (e + n * delta) / (e + n))


def most_reconstructed(n: int, m: int, epsilon: float, delta: float) -> float:
    """Bound on the probability that at most m of n secret uniform bits are reconstructed wrong, for (eps, delta)-DP."""
    bound = bound_reconstruction(ApproxDP(epsilon, delta), epsilon, n, m)
    return min(bound, exact_recovery(n, epsilon, delta)) if m == 0 else bound


@lru_cache(maxsize=256)
def usable_places(n: int, epsilon: float, delta: float, probability: float = 2 / 3) -> int:
    """Largest m at which ``PDisc_m / 2`` bounds the error that n people's bits are answered with; -1 if at none.

    An error below ``PDisc_m / 2`` leaves only candidates that are wrong in at most m bits. So where that has
    probability at least 2/3 while privacy allows less (A8), such an error is impossible.
    """
    found = -1
    for m in range(n):
        if most_reconstructed(n, m, epsilon, delta) >= probability:
            break
        found = m
    return found


# ---------------------------------------------------------------------- mistakes in the definition


def by_sum(queries: Matrix, m: int) -> int:
    """Mutant: z with ``|sum of z| > m`` in place of ``|z|_1 > m``, by trying all."""
    z = _every_sign(np.asarray(queries).shape[1])
    return _least_discrepancy(queries, z[np.abs(z.sum(axis=1)) > m])


def with_zero(queries: Matrix, m: int) -> int:
    """Mutant: z = 0 is taken too, by trying all."""
    z = _every_sign(np.asarray(queries).shape[1])
    sizes = np.abs(z).sum(axis=1)
    return _least_discrepancy(queries, z[(sizes > m) | (sizes == 0)])


def by_definition(queries: Matrix, m: int) -> int:
    """The partial discrepancy by trying all z, one matrix product: for a few columns."""
    z = _every_sign(np.asarray(queries).shape[1])
    return _least_discrepancy(queries, z[np.abs(z).sum(axis=1) > m])


def _every_sign(n: int) -> IntArray:
    require(n <= _TABLED, f"at most {_TABLED} columns", n)
    return np.stack(np.meshgrid(*[np.array([-1, 0, 1])] * n, indexing="ij"), axis=-1).reshape(-1, n)


def _least_discrepancy(queries: Matrix, z: IntArray) -> int:
    return int(np.abs(z @ np.asarray(queries, dtype=np.int64).T).max(axis=1).min())
