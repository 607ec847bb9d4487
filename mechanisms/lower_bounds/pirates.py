"""Pirates: coalitions that make a word of their codewords, and who is accused of it.

Source: document 003, section 5.2; catalogue 000_001_003, boneh_shaw_code and tardos_code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import stats

from auditor.audits.adversaries.fingerprints import BiasCodebook, Bits, BlockCodebook, BonehShaw, Tardos
from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws

#: Entries of codes that are made at once: what is computed with them stays in a cache of a few megabytes.
_ENTRIES = 1 << 18


@dataclass(frozen=True, eq=False)
class CoalitionView:
    """What a coalition knows.

    Parameters
    ----------
    users : int
        Number of users of the code.
    members : ndarray of int64, shape (k,)
        The coalition.
    ones : ndarray of int64, shape (trials, columns)
        How many members have a one. Pirates here treat members alike, so they need no more of the codewords.
    copy : ndarray of bool, shape (trials, columns), optional
        The codeword, in an earlier release, of a user who then took part.
    biases : ndarray of shape (trials, columns), optional
        Biases of the columns, where they are published.
    """

    users: int
    members: IntArray
    ones: IntArray
    copy: Bits | None = None
    biases: FloatArray | None = None

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.members)

    def feasible(self, wanted: Bits) -> Bits:
        """The word that is wanted, with what all members have in the other columns."""
        return np.asarray(((self.ones > 0) & wanted) | (self.ones == self.size))


class PirateStrategy(Protocol):
    """From what a coalition knows to its word, shape (trials, columns)."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator, /) -> Bits:
        """Make the word."""
        ...


@dataclass(frozen=True)
class MajorityPirate:
    """The entry that more members have; zero where they are as many."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        del rng
        return view.feasible(2 * view.ones > view.size)


@dataclass(frozen=True)
class MinorityPirate:
    """The entry that fewer members have; zero where they are as many."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        del rng
        return view.feasible(2 * view.ones < view.size)


@dataclass(frozen=True)
class AllOnesPirate:
    """A one wherever some member has one."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        del rng
        return np.asarray(view.ones > 0)


@dataclass(frozen=True)
class CoinPirate:
    """A fair coin for each column in which members differ."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        return view.feasible(rng.integers(0, 2, view.ones.shape, dtype=np.int8) == 1)


@dataclass(frozen=True)
class ProportionalPirate:
    """The entry of a member at random, anew in each column."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        return np.asarray(rng.integers(0, view.size, view.ones.shape, dtype=np.int16) < view.ones)


@dataclass(frozen=True)
class StratifiedPirate:
    """Proportional without chance: of N columns in which s of k members have a one, floor(N s / k) get one.

    They are spread over the order in which the columns stand: the pirates draw nothing, and only the secret order of
    the columns is random.
    """

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        del rng
        order = np.argsort(view.ones, axis=1, kind="stable")
        sorted_ones = np.take_along_axis(view.ones, order, axis=1)
        place = np.arange(view.ones.shape[1])
        first = np.concatenate(
            [np.ones((len(order), 1), dtype=np.bool_), sorted_ones[:, 1:] != sorted_ones[:, :-1]], axis=1
        )
        rank = place - np.maximum.accumulate(np.where(first, place, 0), axis=1)
        sorted_word = (rank + 1) * sorted_ones // view.size > rank * sorted_ones // view.size
        word = np.empty_like(sorted_word)
        np.put_along_axis(word, order, sorted_word, axis=1)
        return word


@dataclass(frozen=True)
class FramingPirate:
    """A word against somebody outside: ones from his block on, as far as his columns can be told.

    Where some members have a one the block is known, but for those from which the columns of ``user`` differ: there the
    pirates take his own copy of an earlier release, if they have it, and otherwise the order in which columns stand.

    Parameters
    ----------
    user : int
        Whom they frame.
    """

    user: int

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        del rng
        below = int((view.members < self.user).sum())
        columns = view.ones.shape[1]
        guess = np.arange(columns) >= self.user * (columns // (view.users + 1)) if view.copy is None else view.copy
        return view.feasible(np.where(view.ones == below, guess, view.ones > below))


@dataclass(frozen=True)
class SilentPirate:
    """Zeros everywhere: infeasible."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        del rng
        return np.zeros(view.ones.shape, dtype=np.bool_)


@dataclass(frozen=True)
class ScoreAwarePirate:
    """A one where members together have the lower score by it; without the biases each is taken to be 1/2."""

    def __call__(self, view: CoalitionView, rng: np.random.Generator) -> Bits:
        """See `PirateStrategy`."""
        del rng
        bias = 0.5 if view.biases is None else view.biases
        # s sqrt((1-p)/p) - (k - s) sqrt(p/(1-p)) has the sign of s - k p.
        return view.feasible(view.ones < view.size * bias)


def coalition_of(data: Dataset, users: int) -> IntArray:
    """Members, sorted; ValueError unless they are different users of the code."""
    members = np.unique(np.asarray(data, dtype=np.int64))
    require(members.size == len(data) > 0, "at least one member, each once", data)
    require(bool(members[0] >= 1 and members[-1] <= users), f"members from 1 to {users}", data)
    return members


def missing_user(members: IntArray, users: int) -> int:
    """The one user who is not in a coalition; ValueError if it is not one."""
    missing = np.setdiff1d(np.arange(1, users + 1), members)
    require(missing.size == 1, f"a coalition of all but one of {users} users", members)
    return int(missing[0])


# ------------------------------------------------------------------------------ block codes at work


@dataclass(frozen=True)
class PiracyGame:
    """Draw a code, let a coalition make a word, trace it: from a coalition (data) to the traced user, 0 for none.

    Parameters
    ----------
    code : BonehShaw
        The code.
    pirate : PirateStrategy
        What the coalition does.
    """

    code: BonehShaw
    pirate: PirateStrategy

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw n traced users; int64 of shape (n,)."""
        require_draws(n)
        members, most = coalition_of(data, self.code.users), max(1, _ENTRIES // self.code.length)
        return np.concatenate([self._runs(members, min(most, n - done), rng) for done in range(0, n, most)])

    def _runs(self, members: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        book = self.code.generate(n, rng)
        view = CoalitionView(self.code.users, members, book.ones(members), self.copy(book, members, rng))
        return self.read(book, members, self.pirate(view, rng))

    def copy(self, book: BlockCodebook, members: IntArray, rng: np.random.Generator) -> Bits | None:
        """What the pirates have of an earlier release: nothing."""
        del book, members, rng
        return None

    def read(self, book: BlockCodebook, members: IntArray, word: Bits) -> IntArray:
        """What is given out of each word."""
        del members
        return book.trace(word)


@dataclass(frozen=True)
class SecondRelease(PiracyGame):
    """A second release, with a code of its own, to pirates one of whom took part in the first and now does not.

    He is the one user outside the coalition; the others have kept his copy.
    """

    def copy(self, book: BlockCodebook, members: IntArray, rng: np.random.Generator) -> Bits:
        """His codeword in the first release."""
        earlier = self.earlier(book, rng)
        user = np.full((len(book.labels), 1), missing_user(members, self.code.users))
        return np.asarray(earlier.rows(user)[:, 0] == 1)

    def earlier(self, book: BlockCodebook, rng: np.random.Generator) -> BlockCodebook:
        """Draw the code of the first release."""
        return self.code.generate(len(book.labels), rng)


@dataclass(frozen=True)
class InnocentRise(PiracyGame):
    """By how much the ones in block i exceed those in block i - 1, user i being the one outside the coalition.

    The pirates are `StratifiedPirate`, which makes the number of ones in both blocks together known.
    """

    pirate: StratifiedPirate = StratifiedPirate()

    def read(self, book: BlockCodebook, members: IntArray, word: Bits) -> IntArray:
        """See `PiracyGame`."""
        user = missing_user(members, self.code.users)
        sums = book.sums(word).astype(np.int64)
        return sums[:, user] - sums[:, user - 1]

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution: with m ones in 2 B columns that look alike, those in block i are hypergeometric."""
        members, block = coalition_of(data, self.code.users), self.code.block
        below = missing_user(members, self.code.users) - 1
        ones = 2 * block * below // len(members)
        first, last = max(0, ones - block), min(block, ones)
        h = np.arange(first, last + 1)
        mass = stats.hypergeom.pmf(h, 2 * block, ones, block)
        return FiniteLaw(tuple((2 * h - ones).tolist()), np.asarray(mass / mass.sum()))


# ------------------------------------------------------------------------------- bias codes at work


@dataclass(frozen=True)
class PirateScores:
    """Draw a code of Tardos, let a coalition make a word, score it: from a coalition (data) to all users' scores.

    Parameters
    ----------
    code : Tardos
        The code.
    pirate : PirateStrategy
        What the coalition does. It makes the word column by column, so columns are made and forgotten in parts.
    """

    code: Tardos
    pirate: PirateStrategy

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n times the scores of all users over the threshold; float64 of shape (n, users), guilty above 1."""
        require_draws(n)
        members = coalition_of(data, self.code.users)
        columns = min(self.code.length, max(1, _ENTRIES // self.code.users))
        most = max(1, _ENTRIES // (self.code.users * columns))
        return np.concatenate([self._runs(members, min(most, n - k), columns, rng) for k in range(0, n, most)])

    def _runs(self, members: IntArray, n: int, columns: int, rng: np.random.Generator) -> FloatArray:
        scores = np.zeros((n, self.code.users))
        for done in range(0, self.code.length, columns):
            part = self.code.part(n, min(columns, self.code.length - done), rng)
            scores += part.scores(self.pirate(self._view(part, members), rng))
        return scores / self.code.threshold

    def _view(self, part: BiasCodebook, members: IntArray) -> CoalitionView:
        biases = 1 / (1 + part.tangents**-2) if self.code.published else None
        return CoalitionView(self.code.users, members, part.ones(members), biases=biases)


#: Parts of equal normal probability into which an innocent score falls; arbitrary.
_PARTS = 8
#: Standard deviations beyond which the characteristic function of a score, about that of a normal distribution, is left
#: out: exp(-10^2 / 2) is 2e-22. Nodes over that range, and over the biases: twice as many change nothing (a unit test).
_FAR, _NODES = 10.0, 150


@dataclass(frozen=True)
class InnocentScore:
    """In which of 8 parts of a normal distribution, nearly its own, the last score falls: from a coalition (data).

    Parameters
    ----------
    scoring : PirateScores
        Of a `ProportionalPirate` or an `AllOnesPirate`: how often the word has a one, by the bias alone, is known for
        both.

    Notes
    -----
    Given the biases the last user's entries are independent of the word, which the others make. So columns add
    independent terms: ``sqrt((1-p)/p)`` with probability ``P[w = 1 | p] p``, ``-sqrt(p/(1-p))`` with ``P[w = 1 | p]
    (1-p)``, else 0. They have a mean of 0 and a variance of ``P[w = 1]``. The distribution function of their sum is
    computed from the characteristic function (Gil-Pelaez 1951).
    """

    scoring: PirateScores

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw n parts, 0 to 7; int64 of shape (n,)."""
        edges = self._edges(data)
        return np.searchsorted(edges, self.scoring(data, n, rng)[:, -1]).astype(np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Distribution of the part; exact but for rounding of the biases, see `Tardos`, and 1e-11 of the quadrature."""
        below = self.below(data, self._edges(data))
        mass = np.diff(below, prepend=0.0, append=1.0)
        return FiniteLaw(tuple(range(_PARTS)), mass)

    def deviation(self, data: Dataset) -> float:
        """Standard deviation of the score, over the threshold: that of the normal distribution."""
        weights, _, word = self._columns(data)
        return float(np.sqrt(self.scoring.code.length * (weights @ word))) / self.scoring.code.threshold

    def third_moment(self, data: Dataset) -> float:
        """Absolute third moment of what one column adds."""
        weights, r, word = self._columns(data)
        return float(weights @ (word * (np.cos(r) ** 3 / np.sin(r) + np.sin(r) ** 3 / np.cos(r))))

    def below(self, data: Dataset, at: FloatArray, nodes: int = _NODES) -> FloatArray:
        """Probability that the score, over the threshold, is at most each number."""
        code, (weights, r, word) = self.scoring.code, self._columns(data, nodes)
        points, steps = np.polynomial.legendre.leggauss(nodes)
        reach = _FAR / (self.deviation(data) * code.threshold)
        t, steps = 0.5 * reach * (points + 1.0), 0.5 * reach * steps
        p = np.sin(r) ** 2
        moved = p * np.exp(1j * np.outer(t, 1 / np.tan(r))) + (1 - p) * np.exp(-1j * np.outer(t, np.tan(r)))
        of_all = (1.0 + (moved - 1.0) @ (weights * word)) ** code.length
        turned = np.exp(-1j * np.outer(np.asarray(at) * code.threshold, t)) * of_all
        return np.asarray(0.5 - (turned.imag / t) @ steps / np.pi)

    def _edges(self, data: Dataset) -> FloatArray:
        return np.asarray(self.deviation(data) * stats.norm.ppf(np.arange(1, _PARTS) / _PARTS))

    def _columns(self, data: Dataset, nodes: int = _NODES) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights of a quadrature over r, its nodes, and the probability of a one of the word there."""
        members, pirate = coalition_of(data, self.scoring.code.users), self.scoring.pirate
        require(members[-1] < self.scoring.code.users, "a coalition without the last user", members)
        require(
            isinstance(pirate, ProportionalPirate | AllOnesPirate), "pirates whose word is known by the bias", pirate
        )
        end = np.arcsin(np.sqrt(self.scoring.code.cutoff))
        points, weights = np.polynomial.legendre.leggauss(nodes)
        r = end + 0.5 * (points + 1.0) * (np.pi / 2 - 2 * end)
        word = np.sin(r) ** 2 if isinstance(pirate, ProportionalPirate) else 1.0 - np.cos(r) ** (2 * len(members))
        return 0.5 * weights, r, np.asarray(word)


@dataclass(frozen=True)
class LargestCodeWeight:
    """The largest weight that a column of a code gives to anybody: from nothing (data) to one number a code."""

    code: Tardos

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n codes; float64 of shape (n,)."""
        del data
        require_draws(n)
        most = max(1, _ENTRIES // (self.code.users * self.code.length))
        parts = [self.code.generate(min(most, n - done), rng).tangents for done in range(0, n, most)]
        tangents = np.concatenate(parts)
        return np.asarray(np.maximum(*self.code.weights(tangents)).max(axis=1))
