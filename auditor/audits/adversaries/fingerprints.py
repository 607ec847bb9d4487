"""Fingerprinting codes: which of several people contributed to a word that was made of their codewords.

Users are numbered from 1. A word is feasible for a coalition if in each column it has an entry that some member has.
Source: document 003, section 5.2; catalogue 000_001_003, boneh_shaw_code and tardos_code; Boneh and Shaw (1998); Tardos
(2003).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.errors import SpecificationError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.int8]


class Codebook(Protocol):
    """Codewords of all users for several trials, or some columns."""

    def rows(self, users: IntArray, /) -> Rows:
        """Entries of users (trials, k), shape (trials, k, columns)."""

    def ones(self, members: IntArray, /) -> IntArray:
        """Number of members (k,) whose entry is a one, shape (trials, columns)."""

    def accuses(self, word: Bits, users: IntArray, /) -> Bits:
        """Whether the tracer accuses a user in each trial.

        Shape (trials,), of a word (trials, columns).

        Parameters
        ----------
        word : ndarray of bool, shape (trials, columns)
            What was released, as bits.
        users : ndarray of int, shape (trials,)
            User of each trial, from 1.
        """

    def statistic(self, answers: FloatArray, users: IntArray, /) -> FloatArray:
        """Score of a user in each trial, large if included.

        The user's row is then among those whose means the answers are.

        Parameters
        ----------
        answers : ndarray of shape (trials, columns)
            Means of the columns, as they were released.
        users : ndarray of int, shape (trials,)
            User of each trial, from 1.

        Returns
        -------
        ndarray of shape (trials,)
            One score a trial.
        """


class Code(Protocol):
    """A fingerprinting code."""

    @property
    def users(self) -> int:
        """Number of users."""

    @property
    def length(self) -> int:
        """Number of columns."""

    def generate(self, trials: int, rng: np.random.Generator, /) -> Codebook:
        """Draw independent codes.

        Parameters
        ----------
        trials : int
            Number of codes.
        rng : numpy.random.Generator
            Of the codes.
        """


# ------------------------------------------------------------------------------------ Boneh and Shaw


@dataclass(frozen=True)
class BonehShaw:
    """Blocks of equal columns, in a secret order.

    Blocks 0 to n: user i has a one in block b if and only if b >= i.

    Parameters
    ----------
    users : int
        Number of users n, at least 2.
    block : int
        Columns a block, B.

    Raises
    ------
    SpecificationError
        If a parameter is out of range.

    Notes
    -----
    Blocks i - 1 and i differ in the row of user i only, so to all others their 2 B columns look alike. Traced is the
    first user i for whom the ones of the word in block i exceed those in block i - 1 by at least B/n, in integers.
    A feasible word has no ones in block 0 and nothing else in block n, so that some user is traced.
    """

    users: int
    block: int

    def __post_init__(self) -> None:
        _check_integer("users", self.users, 2)
        _check_integer("block", self.block, 1)

    @property
    def length(self) -> int:
        """Number of columns, ``(users + 1) block``."""
        return (self.users + 1) * self.block

    def generate(self, trials: int, rng: np.random.Generator) -> BlockCodebook:
        """Draw the block of each column.

        A uniform order of (users + 1) times ``block`` labels for each trial.

        See `Code.generate`.
        """
        return BlockCodebook(self, rng.permuted(self.ordered(trials), axis=1))

    def ordered(self, trials: int) -> NDArray[np.int16]:
        """Blocks of the columns before permutation, shape (trials, length).

        Read only.
        """
        blocks = np.repeat(np.arange(self.users + 1, dtype=np.int16), self.block)
        return np.broadcast_to(blocks, (trials, self.length))

    def trace(self, sums: IntArray) -> IntArray:
        """Traced user, 0 for none.

        By the ones in each block, shape (trials, users + 1).
        """
        rises = self.users * np.diff(sums, axis=1) >= self.block
        return np.where(rises.any(axis=1), rises.argmax(axis=1) + 1, 0)


@dataclass(frozen=True, eq=False)
class BlockCodebook:
    """Codes of Boneh and Shaw, given by each column's block.

    Parameters
    ----------
    code : BonehShaw
        The code.
    labels : ndarray of int16, shape (trials, length)
        Block of each column.
    """

    code: BonehShaw
    labels: NDArray[np.int16]

    def rows(self, users: IntArray) -> Rows:
        """See `Codebook`."""
        return (self.labels[:, None, :] >= users[:, :, None].astype(np.int16)).view(np.int8)

    def ones(self, members: IntArray) -> IntArray:
        """See `Codebook`."""
        in_block = np.searchsorted(np.sort(members), np.arange(self.code.users + 1), side="right")
        return np.asarray(in_block[self.labels], dtype=np.int64)

    def sums(self, values: Bits | FloatArray) -> FloatArray:
        """Sums of values over blocks, shape (trials, users + 1).

        Values have shape (trials, length).
        """
        trials, blocks = len(self.labels), self.code.users + 1
        places = self.labels + np.arange(trials)[:, None] * blocks
        flat = np.bincount(places.ravel(), weights=np.ravel(values), minlength=trials * blocks)
        return np.asarray(flat.reshape(trials, blocks))

    def trace(self, word: Bits) -> IntArray:
        """Traced user of each word (trials, length), 0 for none."""
        # Sums of zeros and ones are integers of float64, exactly.
        return self.code.trace(self.sums(word).astype(np.int64))

    def accuses(self, word: Bits, users: IntArray) -> Bits:
        """See `Codebook`.

        See `Codebook.accuses`.
        """
        return np.asarray(self.trace(word) == users)

    def statistic(self, answers: FloatArray, users: IntArray) -> FloatArray:
        """Difference of the means of blocks i and i - 1.

        1/rows if user i's row is among the answers', else 0.

        See `Codebook.statistic`.
        """
        means = self.sums(answers) / self.code.block
        trials = np.arange(len(means))
        return np.asarray(means[trials, users] - means[trials, users - 1])


def sufficient_block(users: int, xi: float) -> int:
    """Block size at which no innocent user is traced.

    With probability 1 - xi: ``ceil(2 n^2 ln(n / xi))`` columns.

    Parameters
    ----------
    users : int
        Number of users n, at least 2.
    xi : float
        Probability, at most, that an innocent user is traced; in (0, 1).

    Notes
    -----
    Given the word and what the coalition sees, the 2 B columns of blocks i - 1 and i are split at random, so the ones
    in block i are hypergeometric: half of them, by at least B / (2 n) more with probability at most
    exp(-B / (2 n^2)) (Hoeffding), for each of at most n users. Source: 003, Claim 5.2.1; the constant is derived.
    """
    _check_integer("users", users, 2)
    _check_probability("xi", xi)
    return math.ceil(2 * users**2 * math.log(users / xi))


def innocent_tail(users: int, block: int) -> float:
    """Largest probability that an innocent user is traced.

    Over all words, that block i has the ones it takes.

    Parameters
    ----------
    users : int
        Number of users n, at least 2.
    block : int
        Columns a block, B, at least 1.

    Returns
    -------
    float
        In [0, 1], for one innocent user.

    Notes
    -----
    With m ones in both blocks, those in block i are hypergeometric. The variance is largest at m = B; at which m near
    it the tail is, depends on the parity of what it takes, so B - 2 to B + 2 are tried (a test tries all m).
    """
    from scipy import stats  # takes longer to import than numpy

    least = -(-block // users)
    found = 0.0
    for m in range(max(block - 2, 0), block + 3):
        # h - (m - h) >= least
        found = max(found, float(stats.hypergeom.sf(-(-(m + least) // 2) - 1, 2 * block, m, block)))
    return found


def smallest_block(users: int, xi: float) -> int:
    """Fewest columns a block with ``users * innocent_tail(users, block) <= xi``.

    Parameters
    ----------
    users : int
        Number of users n, at least 2.
    xi : float
        Probability, at most, that an innocent user is traced; in (0, 1).

    Notes
    -----
    The tail rises while ceil(B / n) stays the same, and falls from one such stretch to the next: only its first block
    length, q n + 1, may be the smallest. A larger B may fail, up to n of them later on.
    """
    low, high = 0, sufficient_block(users, xi) // users + 1
    while low < high:
        middle = (low + high) // 2
        if users * innocent_tail(users, middle * users + 1) <= xi:
            high = middle
        else:
            low = middle + 1
    return low * users + 1


def traced_distribution(users: int, block: int, ones: FloatArray) -> FloatArray:
    """Exact distribution of the user that `BonehShaw` traces.

    Where the entries of the word are independent.

    Parameters
    ----------
    users, block : int
        Of the code.
    ones : ndarray of shape (..., users + 1)
        Probability of a one in each block.

    Returns
    -------
    ndarray of shape (..., users + 1)
        Probability that nobody is traced, and that each user is.
    """
    from scipy import stats  # takes longer to import than numpy

    least, values = -(-block // users), np.arange(block + 1)
    different, which = np.unique(ones, return_inverse=True)
    laws = np.asarray(stats.binom.pmf(values, block, different[:, None]))[which.reshape(np.shape(ones))]
    state = laws[..., 0, :]
    traced = [np.zeros(state.shape[:-1])]
    # Kept are the paths with s_b - s_{b-1} < least: s_{b-1} > s_b - least.
    first = np.maximum(values - least + 1, 0)
    for b in range(1, users + 1):
        at_least = np.cumsum(state[..., ::-1], axis=-1)[..., ::-1]
        kept = laws[..., b, :] * at_least[..., first]
        traced.append(np.maximum(state.sum(axis=-1) - kept.sum(axis=-1), 0.0))
        state = kept
    traced[0] = state.sum(axis=-1)
    return np.stack(traced, axis=-1)


# -------------------------------------------------------------------------------------------- Tardos


@dataclass(frozen=True)
class Tardos:
    """Tardos' code: columns with secret biases.

    Entries are Bernoulli, and a user's score tells who is guilty.

    Parameters
    ----------
    users : int
        Number of users.
    coalition : int
        Largest coalition c that is to be traced.
    xi : float
        Probability of accusing a given innocent user, in (0, 1).
    columns : int or None
        Number of columns d; default ``100 c^2 K`` with ``K = ceil(ln(1 / xi))``.

    Raises
    ------
    SpecificationError
        If a parameter is out of range.

    Notes
    -----
    The bias of a column is ``p = sin^2 r`` with r uniform on [t', pi/2 - t'], ``t' = arcsin sqrt(t)`` and
    ``t = 1 / (300 c)``. A column in which the word has a one adds ``sqrt((1-p)/p)`` to the score of a user with a one
    and takes ``sqrt(p/(1-p))`` from that of others: cot r and tan r. Accused is who scores above
    ``Z = 20 c K = d / (5 c)``. Biases are taken to 32 bits, which moves a score of d columns by less than d 1e-8.
    """

    users: int
    coalition: int
    xi: float = 0.01
    columns: int | None = None

    def __post_init__(self) -> None:
        _check_integer("users", self.users, 2)
        _check_integer("coalition", self.coalition, 1)
        _check_probability("xi", self.xi)
        if self.columns is not None:
            _check_integer("columns", self.columns, 1)

    @property
    def length(self) -> int:
        """Number of columns."""
        return 100 * self.coalition**2 * math.ceil(-math.log(self.xi)) if self.columns is None else self.columns

    @property
    def threshold(self) -> float:
        """Score above which a user is accused."""
        return self.length / (5 * self.coalition)

    @property
    def cutoff(self) -> float:
        """Smallest bias t."""
        return 1 / (300 * self.coalition)

    @property
    def published(self) -> bool:
        """Whether the biases are known to everybody."""
        return False

    def weights(self, tangents: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of a one of the word.

        Added to the score of a user with a one, and taken from that of a user with none.
        """
        return 1 / tangents, tangents

    def counted(self, values: Bits | FloatArray) -> Bits | FloatArray:
        """How much each column counts, for a word or for answers."""
        return values

    def generate(self, trials: int, rng: np.random.Generator) -> BiasCodebook:
        """Draw whole codes.

        See `Code.generate`.
        """
        return self.part(trials, self.length, rng)

    def part(self, trials: int, columns: int, rng: np.random.Generator) -> BiasCodebook:
        """Draw some columns of each of several codes: columns are independent.

        Parameters
        ----------
        trials : int
            Number of codes.
        columns : int
            Columns of each.
        rng : numpy.random.Generator
            Of the codes.
        """
        end = math.asin(math.sqrt(self.cutoff))
        tangents = np.tan(rng.uniform(end, math.pi / 2 - end, (trials, columns)))
        # p = 1 / (1 + cot^2), as a multiple of 2^-32; the largest one below 1 where it would round to 1.
        bias = np.minimum(2.0**32 / (1 + 1 / (tangents * tangents)), 2.0**32 - 1).astype(np.uint32)
        entries = trials * self.users * columns
        # Two 32-bit words of each draw: most of the time of an audit is spent here.
        words = rng.integers(0, 1 << 64, (entries + 1) // 2, dtype=np.uint64).view(np.uint32)[:entries]
        return BiasCodebook(self, tangents, words.reshape(trials, self.users, columns) < bias[:, None, :])


@dataclass(frozen=True, eq=False)
class BiasCodebook:
    """Tardos codes, or some columns of them.

    Parameters
    ----------
    code : Tardos
        The code.
    tangents : ndarray of shape (trials, columns)
        ``tan r = sqrt(p / (1 - p))`` of each column.
    bits : ndarray of bool, shape (trials, users, columns)
        Entries.
    """

    code: Tardos
    tangents: FloatArray
    bits: Bits

    def rows(self, users: IntArray) -> Rows:
        """See `Codebook`."""
        return np.take_along_axis(self.bits, users[:, :, None] - 1, axis=1).view(np.int8)

    def ones(self, members: IntArray) -> IntArray:
        """See `Codebook`."""
        # There are fewer than 2^15 users: a code for so many has 10^11 columns.
        return np.asarray(self.bits[:, members - 1].sum(axis=1, dtype=np.int16), dtype=np.int64)

    def scores(self, values: Bits | FloatArray) -> FloatArray:
        """Scores of users by these columns, shape (trials, users).

        For a word (trials, columns).
        """
        plus, minus = self.code.weights(self.tangents)
        counted = self.code.counted(values)
        both = (plus + minus) * counted
        shared = (self.bits.astype(np.float64) @ both[:, :, None])[:, :, 0]
        return np.asarray(shared - (minus * counted).sum(axis=1, keepdims=True))

    def accuses(self, word: Bits, users: IntArray) -> Bits:
        """See `Codebook`.

        See `Codebook.accuses`.
        """
        scores = self.scores(word)[np.arange(len(users)), users - 1]
        return np.asarray(scores > self.code.threshold)

    def statistic(self, answers: FloatArray, users: IntArray) -> FloatArray:
        """Score of the answers themselves, over the threshold.

        See `Codebook.statistic`.
        """
        scores = self.scores(answers)[np.arange(len(users)), users - 1]
        return np.asarray(scores / self.code.threshold)


def _check_integer(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SpecificationError(f"{name} must be an integer of at least {least}, got {value!r}")


def _check_probability(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise SpecificationError(f"{name} must be a number in (0, 1), got {value!r}")
