"""Linear algebra over GF(2), bit-packed, many systems of equations side by side.

A vector of d bits is ``words(d)`` 64-bit words; bit j of the vector is bit ``j % 64`` of word ``j // 64``. Arrays have
the system (or run) as their last axis, so that one numpy operation works on the same word of all systems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.base.mechanism import IntArray, require

Words: TypeAlias = NDArray[np.uint64]
BoolArray: TypeAlias = NDArray[np.bool_]

_ONE, _ALL = np.uint64(1), np.uint64(2**64 - 1)
#: Steps after which it is looked whether the first word is done with; arbitrary.
_LOOK = 16
#: Rows for each variable that are looked at first in one long system; arbitrary.
_FEW = 4


def words(d: int) -> int:
    """Words that hold `d` bits, at least one; ValueError unless d is an integer of at least 1."""
    require(isinstance(d, (int, np.integer)) and d >= 1, "a number of bits d >= 1", d)
    return (int(d) + 63) // 64


def pack(bits: ArrayLike) -> Words:
    """Pack bits into words.

    Parameters
    ----------
    bits : array_like of shape (d, ...)
        Zeros and ones.

    Returns
    -------
    ndarray of shape (words(d), ...), uint64

    Raises
    ------
    ValueError
        If anything but 0 and 1 is among the bits.
    """
    given = np.asarray(bits)
    require(given.ndim >= 1 and given.shape[0] >= 1, "bits along the first axis", given.shape)
    wrong = given[(given != 0) & (given != 1)]
    require(wrong.size == 0, "bits 0 and 1", wrong[:1].tolist())
    packed = np.zeros((words(given.shape[0]), *given.shape[1:]), dtype=np.uint64)
    for j in range(given.shape[0]):
        packed[j // 64] |= given[j].astype(np.uint64) << np.uint64(j % 64)
    return packed


def unpack(packed: Words, d: int) -> NDArray[np.uint8]:
    """Return the first `d` bits of words of shape (words(d), ...), as uint8 of shape (d, ...)."""
    shifts = np.arange(d, dtype=np.uint64)
    return np.stack([(packed[j // 64] >> (shifts[j] % np.uint64(64)) & _ONE).astype(np.uint8) for j in range(d)])


def random_words(d: int, shape: tuple[int, ...], rng: np.random.Generator) -> Words:
    """Uniform vectors of `d` bits; shape (words(d), *shape). Bits beyond d are 0."""
    drawn = rng.integers(0, 2**64, (words(d), *shape), dtype=np.uint64)
    if d % 64:
        drawn[-1] &= np.uint64(2 ** (d % 64) - 1)
    return drawn


def inner(a: Words, b: Words) -> BoolArray:
    """Inner products modulo 2 along the first axis."""
    both = np.bitwise_xor.reduce(a & b, axis=0)
    return np.asarray(np.bitwise_count(both) & 1, dtype=np.bool_)


def _lowest_bit(word: Words) -> Words:
    """The lowest set bit of each word alone; 0 for 0."""
    return word & (~word + _ONE)


@dataclass(frozen=True, eq=False)
class EchelonSystems:
    """Systems of equations ``<row, r> = label`` after elimination, see `eliminate`.

    Attributes
    ----------
    rows : ndarray of shape (words, k, systems), uint64
        The lowest set bit of a row is its pivot; rows after it do not have that bit. Rows may be zero.
    labels : ndarray of shape (k, systems), bool
        Right sides. Those of zero rows are not looked at.
    consistent : ndarray of shape (systems,), bool
        Whether there is a solution.
    rank : ndarray of shape (systems,), int64
        Number of rows that are not zero.
    """

    rows: Words
    labels: BoolArray
    consistent: BoolArray
    rank: IntArray

    def solutions(self, free: Words, which: IntArray | None = None) -> Words:
        """One solution of each system.

        Of a system that is inconsistent, a solution of the equations that do not contradict those kept before them.

        Parameters
        ----------
        free : ndarray of shape (words, n), uint64
            Bits of the variables that are not pivots are taken from here, so a uniform vector gives a uniform solution,
            and zero gives the solution that is the least when bit d - 1 counts most.
        which : ndarray of shape (n,), int64, optional
            Number of the system; default the first n systems in order.

        Returns
        -------
        ndarray of shape (words, n), uint64

        Notes
        -----
        From the last row to the first: a row has no pivot of a row before it, so setting its own pivot right breaks no
        row after it.
        """
        found = free.copy()
        for i in range(self.rows.shape[1] - 1, -1, -1):
            row = self.rows[:, i] if which is None else self.rows[:, i, which]
            label = self.labels[i] if which is None else self.labels[i, which]
            flip = (inner(row, found) != label) * _ALL
            for w in range(row.shape[0]):
                found[w] ^= _lowest_bit(row[w]) & flip
                # The pivot is in the first word that is not zero.
                flip &= (row[w] == 0) * _ALL
        return found

    def pivots(self) -> Words:
        """The pivot variables of each system as bits; shape (words, systems)."""
        found = np.zeros((self.rows.shape[0], self.rows.shape[2]), dtype=np.uint64)
        for i in range(self.rows.shape[1]):
            undone = np.full(self.rows.shape[2], _ALL)
            for w in range(self.rows.shape[0]):
                found[w] |= _lowest_bit(self.rows[w, i]) & undone
                undone &= (self.rows[w, i] == 0) * _ALL
        return found

    def take(self, which: BoolArray | IntArray) -> EchelonSystems:
        """Some of the systems."""
        return EchelonSystems(self.rows[:, :, which], self.labels[:, which], self.consistent[which], self.rank[which])

    def extended(self, rows: Words, labels: BoolArray) -> EchelonSystems:
        """The systems with more equations, of shapes (words, k, systems) and (k, systems)."""
        zero = ~self.rows.any(axis=0)
        keep = int(self.rank.max(initial=0))
        order = np.argsort(zero, axis=0, kind="stable")[:keep]
        kept = np.take_along_axis(self.rows, order[None], axis=1)
        more = eliminate(
            np.concatenate([kept, rows], axis=1),
            np.concatenate([np.take_along_axis(self.labels & ~zero, order, axis=0), labels]),
        )
        return EchelonSystems(more.rows, more.labels, more.consistent & self.consistent, more.rank)


def eliminate(rows: Words, labels: BoolArray) -> EchelonSystems:
    """Eliminate in many systems at once; the arrays are overwritten and become the result's.

    Parameters
    ----------
    rows : ndarray of shape (words, k, systems), uint64
        Left sides. A zero row with label 0 says nothing, so systems may have different numbers of equations.
    labels : ndarray of shape (k, systems), bool
        Right sides.

    Notes
    -----
    Row after row, its lowest set bit is eliminated from the rows below. Rows are not exchanged and the order of the
    equations is kept; a later one that contradicts those before it becomes ``0 = 1``.
    """
    count, k, systems = rows.shape
    require(labels.shape == (k, systems), f"labels of shape {(k, systems)}", labels.shape)
    rank = np.zeros(systems, dtype=np.int64)
    consistent = np.ones(systems, dtype=np.bool_)
    mask, part, has = np.empty((k, systems), np.uint64), np.empty((k, systems), np.uint64), np.empty((k, systems), bool)
    first = 0
    for i in range(k):
        below, m, t, h = rows[:, i + 1 :], mask[: k - i - 1], part[: k - i - 1], has[: k - i - 1]
        undone = np.full(systems, _ALL)
        for w in range(first, count):
            np.bitwise_and(below[w], _lowest_bit(rows[w, i]) & undone, out=m if w == first else t)
            if w > first:
                np.bitwise_or(m, t, out=m)
            undone &= (rows[w, i] == 0) * _ALL
            if not undone.any():
                break
        rank += undone == 0
        consistent &= (undone == 0) | ~labels[i]
        np.not_equal(m, 0, out=h)
        m[...] = h
        np.negative(m, out=m)  # all bits set where there is something to eliminate
        for w in range(first, count):
            np.bitwise_and(m, rows[w, i], out=t)
            np.bitwise_xor(below[w], t, out=below[w])
        np.bitwise_and(h, labels[i], out=h)
        np.bitwise_xor(labels[i + 1 :], h, out=labels[i + 1 :])
        if i % _LOOK == _LOOK - 1 and first < count - 1 and not below[first].any():
            first += 1
    return EchelonSystems(rows, labels, consistent, rank)


def _clear_bit(left: Words, labels: BoolArray, row: Words, label: np.bool_) -> None:
    """Eliminate the lowest set bit of one row from the rows of one system, shapes (words, k) and (k,)."""
    w = int(np.flatnonzero(row)[0])
    hit = (left[w] & _lowest_bit(row[w : w + 1])) != 0
    left ^= row[:, None] & (hit * _ALL)
    labels ^= hit & label


def tall(x: Words, y: BoolArray, d: int) -> EchelonSystems:
    """Eliminate in one system of many equations.

    Parameters
    ----------
    x : ndarray of shape (words, k), uint64
        Left sides.
    y : ndarray of shape (k,), bool
        Right sides.
    d : int
        Number of variables: what follows d independent equations is not looked at.

    Returns
    -------
    EchelonSystems
        One system of as many rows as the rank: the equations that are independent of those before them. It is
        consistent; an equation that contradicts those before it is left out.
    """
    basis: list[tuple[Words, np.bool_]] = []
    # Mostly the first rows suffice; those that follow are then not touched.
    for part in (slice(0, _FEW * d), slice(_FEW * d, None)):
        left, labels = x[:, part].copy(), y[part].copy()
        for row, label in basis:
            _clear_bit(left, labels, row, label)
        while len(basis) < d:
            some = left.any(axis=0)
            left, labels = left[:, some], labels[some]
            if not len(labels):
                break
            row, label = left[:, 0].copy(), labels[0]
            _clear_bit(left, labels, row, label)
            basis.append((row, label))
        if len(basis) == d:
            break
    rows = np.array([row for row, _ in basis], dtype=np.uint64).reshape(len(basis), x.shape[0])
    right = np.array([label for _, label in basis], dtype=np.bool_)[:, None]
    one = np.ones(1, dtype=np.bool_)
    return EchelonSystems(rows.T[:, :, None], right, one, np.array([len(basis)], dtype=np.int64))


def rank(bits: ArrayLike) -> int:
    """Rank of a matrix of bits of shape (k, d)."""
    given = np.asarray(bits)
    return int(eliminate(pack(given.T)[:, :, None], np.zeros((len(given), 1), dtype=np.bool_)).rank[0])
