"""Statistical-query oracles that say nothing about the target unless they have to, and what defeats them.

A query g(x, y) with labels y = +1 and -1 is taken apart into a part that does not see the label and one that does:
``g(x, y) = c(x) + y f(x)`` with ``c = (g(x, 1) + g(x, -1)) / 2`` and ``f = (g(x, 1) - g(x, -1)) / 2``. Its expectation
under a target is ``E c + <f, target>``, and for parities the inner products are f's Walsh-Hadamard coefficients. A lazy
oracle leaves out what depends on the secret where that is below the tolerance. As the squares of the coefficients sum
to at most the squared norm of f, a query of tolerance tau makes it speak for few targets only: it *hits* them.

Two families of targets:

- PARITY: ``chi_r(x) = (-1)^(r.x)`` on d bits, all of which is secret;
- MASKED-PARITY: on points (x, i, b), ``(-1)^(r.x + a)`` where b = 0 and ``(-1)^(r_i)`` where b = 1. The bit a is the
  secret, so all that depends on r alone is said.

Source: document 002, sections 5.2 and 5.3.2 (Corollary 5.15, Theorem 5.16(2) and its proof); catalogue 002,
sq_parity_lower_bound and masked_parity_nonadaptive_oracle. That a bound on hits bounds every learner is there; that
bent functions attain it is the catalogue's derivation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.base.mechanism import FloatArray, IntArray, require

#: Most bits of x for which coefficients are computed, 2^16 of them a query. Arbitrary; memory and time grow with it.
MOST_BITS = 16


def walsh_hadamard(values: FloatArray) -> FloatArray:
    """Return ``sum_x values[..., x] (-1)^(r.x)`` for every r, in the natural order: bit j of an index is coordinate j.

    Exact for integers below 2^53. Time O(d 2^d) a row.

    Raises
    ------
    ValueError
        If the last axis is not a power of two long.
    """
    out = np.array(values, dtype=np.float64)
    size = out.shape[-1]
    require(size >= 1 and size & (size - 1) == 0, "a power of two as length of the last axis", size)
    half = 1
    while half < size:
        pairs = out.reshape(*out.shape[:-1], size // (2 * half), 2, half)
        low = pairs[..., 0, :].copy()
        pairs[..., 0, :] += pairs[..., 1, :]
        pairs[..., 1, :] = low - pairs[..., 1, :]
        half *= 2
    return out


def parity_signs(mask: ArrayLike, points: ArrayLike) -> IntArray:
    """Return ``(-1)^(mask . point)`` for masks and points as integers, whose bits are coordinates; int64."""
    odd = np.bitwise_count(np.bitwise_and(mask, points)) & 1
    return np.asarray(1 - 2 * odd.astype(np.int64))


def bent(bits: int) -> IntArray:
    """Values ``(-1)^(u.v)`` of the inner-product bent function, x = u + 2^(bits/2) v; int64 of shape (2^bits,).

    All of its 2^bits coefficients have the absolute value ``2^(-bits/2)``.

    Raises
    ------
    ValueError
        If the number of bits is odd: then there is no bent function.
    """
    require(bits >= 0 and bits % 2 == 0, "an even number of bits", bits)
    x = np.arange(1 << bits)
    return parity_signs(x & ((1 << bits // 2) - 1), x >> (bits // 2))


def bent_times_parity(d: int, bits: int, rest: int) -> IntArray:
    """A bent function of the first bits times a parity of the others; int64 of shape (2^d,).

    Its coefficient is ``+-2^(-bits/2)`` at the 2^bits values r whose other bits are `rest`, and 0 elsewhere.
    """
    require(0 <= bits <= d, f"at most {d} bits", bits)
    require(0 <= rest < 1 << (d - bits), f"a parity of {d - bits} bits", rest)
    x = np.arange(1 << d)
    return np.asarray(bent(bits)[x & ((1 << bits) - 1)] * parity_signs(rest, x >> bits))


# ------------------------------------------------------------------------------ queries, taken apart


@dataclass(frozen=True, eq=False)
class DecomposedQueries:
    """Statistical queries, as far as their expectations under the targets of a family go.

    Parameters
    ----------
    constant : ndarray of shape (k, t)
        Expectation of the part that does not see the label. There are k lists of t queries.
    hidden : ndarray of shape (k, t, 2^d)
        ``<f, target>`` of the part that holds the secret, at each r and with the sign +.
    open : ndarray of shape (k, t, d)
        Weights w of the part that is said anyway: ``sum_i w_i (-1)^(r_i)``. Zero for PARITY.
    energy : ndarray of shape (k, t)
        Squared norm of f where the secret is.
    """

    constant: FloatArray
    hidden: FloatArray
    open: FloatArray
    energy: FloatArray

    @property
    def d(self) -> int:
        """Bits of r."""
        return int(self.open.shape[-1])

    def rest(self, which: IntArray, r: IntArray) -> FloatArray:
        """What a run's queries are worth without the secret; shape (runs, t).

        Parameters
        ----------
        which : ndarray of shape (runs,)
            Which of the k lists each run asks.
        r : ndarray of shape (runs,)
            Its target's r.
        """
        signs = parity_signs(r[:, None], 1 << np.arange(self.d))
        said = self.constant[which]
        if self.open.any():
            said = said + np.einsum("ntd,nd->nt", self.open[which], signs.astype(np.float64))
        return said

    def secret(self, which: IntArray, r: IntArray, sign: IntArray) -> FloatArray:
        """What the secret adds; shape (runs, t)."""
        return np.asarray(sign[:, None] * self.hidden[which, :, r])

    def means(self, which: IntArray, r: IntArray, sign: IntArray) -> FloatArray:
        """Expectations of the queries; shape (runs, t)."""
        return self.rest(which, r) + self.secret(which, r, sign)


def joined(first: DecomposedQueries, second: DecomposedQueries) -> DecomposedQueries:
    """The queries of one after those of the other, list by list."""
    return DecomposedQueries(
        np.concatenate([first.constant, second.constant], axis=1),
        np.concatenate([first.hidden, second.hidden], axis=1),
        np.concatenate([first.open, second.open], axis=1),
        np.concatenate([first.energy, second.energy], axis=1),
    )


def parity_queries(g: ArrayLike) -> DecomposedQueries:
    """Take queries on (x, y) apart, for PARITY under the uniform distribution.

    Parameters
    ----------
    g : array_like of shape (k, t, 2^d, 2)
        Values; the last index is 0 for y = +1 and 1 for y = -1.
    """
    values = np.asarray(g, dtype=np.float64)
    require(values.ndim == 4 and values.shape[-1] == 2, "queries of shape (k, t, 2^d, 2)", values.shape)
    d = _bits(values.shape[2])
    blind, sees = (values[..., 0] + values[..., 1]) / 2, (values[..., 0] - values[..., 1]) / 2
    nothing = np.zeros((*values.shape[:2], d))
    return DecomposedQueries(blind.mean(-1), walsh_hadamard(sees) / (1 << d), nothing, (sees**2).mean(-1))


def masked_queries(g: ArrayLike, d: int) -> DecomposedQueries:
    """Take queries on (x, i, b, y) apart, for MASKED-PARITY under the uniform distribution.

    Parameters
    ----------
    g : array_like of shape (k, t, 2, d or 1, 2^d or 1, 2)
        Values at b, i, x and y; the last index is 0 for y = +1 and 1 for y = -1. A length of 1 says that the query does
        not look at i, or at x.
    d : int
        Bits of x; i is uniform on d values, of which the document takes a power of two.
    """
    values = np.asarray(g, dtype=np.float64)
    shape = values.shape
    fits = values.ndim == 6 and shape[2] == 2 and shape[3] in (1, d) and shape[4] in (1, 1 << d) and shape[5] == 2
    require(fits, f"queries of shape (k, t, 2, {d} or 1, {1 << d} or 1, 2)", shape)
    require(1 <= d <= MOST_BITS, f"1 to {MOST_BITS} bits", d)
    blind, sees = (values[..., 0] + values[..., 1]) / 2, (values[..., 0] - values[..., 1]) / 2
    if shape[4] == 1:  # a function that does not look at x has a coefficient at r = 0 only
        of_x = np.zeros((*shape[:2], 1 << d))
        of_x[..., 0] = sees[:, :, 0, :, 0].mean(axis=2)
    else:
        of_x = walsh_hadamard(sees[:, :, 0].mean(axis=2)) / (1 << d)
    of_i = np.broadcast_to(sees[:, :, 1].mean(axis=3), (*shape[:2], d))
    return DecomposedQueries(
        blind.mean(axis=(2, 3, 4)),
        # Half of the points have b = 0.
        of_x / 2,
        of_i / (2 * d),
        (sees[:, :, 0] ** 2).mean(axis=(2, 3)) / 2,
    )


def _bits(points: int) -> int:
    d = points.bit_length() - 1
    require(points == 1 << d and 1 <= d <= MOST_BITS, f"2^d points with d from 1 to {MOST_BITS}", points)
    return d


# ---------------------------------------------------------------------------------- the oracles


@dataclass(frozen=True)
class LazyOracle:
    """Leaves out the secret part of an answer where it is below the query's tolerance; else says the truth.

    Parameters
    ----------
    strict : bool, default True
        Below is strict, as in the document. False: a part of just the tolerance is left out too, which an oracle may as
        well, as tolerances are not strict (Definition 5.4).

    Notes
    -----
    A valid oracle: an answer is off by the secret part or by nothing.
    """

    strict: bool = True

    def limit(self, tolerance: FloatArray, d: int) -> FloatArray:
        """What the secret part is compared with, for tolerances of shape (t,)."""
        del d
        return tolerance

    def said(self, asked: DecomposedQueries, which: IntArray, r: IntArray) -> FloatArray:
        """The answer without the secret, shape (runs, t)."""
        return asked.rest(which, r)

    def hits(self, secret: FloatArray, limit: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Where the truth has to be said, bool of the shape of `secret`."""
        return np.asarray(np.abs(secret) >= limit if self.strict else np.abs(secret) > limit)

    def __call__(
        self, asked: DecomposedQueries, which: IntArray, tolerance: ArrayLike, r: IntArray, sign: IntArray
    ) -> FloatArray:
        """Answers, shape (runs, t); see `DecomposedQueries` for the arguments, tolerances of shape (t,)."""
        secret = asked.secret(which, r, sign)
        hit = self.hits(secret, self.limit(np.asarray(tolerance, dtype=np.float64), asked.d))
        return np.where(hit, asked.means(which, r, sign), self.said(asked, which, r))


@dataclass(frozen=True)
class PartForgotten(LazyOracle):
    """Mistake in an audit: a lazy answer lacks the part with b = 1 too, so it may be off by more than the tolerance."""

    def said(self, asked: DecomposedQueries, which: IntArray, r: IntArray) -> FloatArray:
        """Only the constant."""
        del r
        return asked.constant[which]


@dataclass(frozen=True)
class FixedTolerance(LazyOracle):
    """Mistake in an audit: what is left out is compared with 2^(-d/3), whatever the tolerance of the query."""

    def limit(self, tolerance: FloatArray, d: int) -> FloatArray:
        """The least tolerance of the theorem."""
        return np.full_like(tolerance, 2.0 ** (-d / 3))


def hit_bound(asked: DecomposedQueries, tolerance: ArrayLike, own: float = 1.0) -> float:
    """Largest probability that a list of queries hits a target with uniform r: ``sum_j energy_j / (n tau_j^2 2^d)``.

    Parameters
    ----------
    asked : DecomposedQueries
        One list of t queries.
    tolerance : array_like of shape (t,)
        Their tolerances.
    own : float, default 1
        Squared norm n of a target where the secret is: 1 for PARITY, 1/2 for MASKED-PARITY.

    Notes
    -----
    The targets are orthogonal, so ``sum_r hidden_r^2 <= n energy`` (Bessel), and at most ``n energy / tau^2`` of the
    squares are tau^2 or more. For queries with values +1 and -1 the energy is at most n: for PARITY that gives
    ``t / (tau^2 2^d)``, and for MASKED-PARITY ``t / (4 tau^2 2^d)``.
    """
    per_query = own * asked.energy[0] / np.asarray(tolerance, dtype=np.float64) ** 2
    return float(per_query.sum() / (1 << asked.d))
