"""Exhaustive reconstruction: every table of secret bits is tried against the answers to subset counts.

Source: 003, Theorem 4.1.2 and Claim 4.1.4 (Dinur and Nissim).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.audits.adversaries.base import Adversary, Ask, FloatArray, Stack
from auditor.audits.adversaries.bounds import bound_guessing
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee

Bits: TypeAlias = NDArray[np.int8]
Goal: TypeAlias = Literal["all", "first", "closest"]

#: Most people: 2^20 candidates and as many subset counts, 8 MB of answers a game.
MOST = 20
#: Numbers in one block of the search, 16 MB in float64; arbitrary.
_BLOCK = 1 << 21


class ConsistentBits(NamedTuple):
    """Candidates that are consistent with answers.

    Attributes
    ----------
    trial : ndarray of shape (m,), int64
        Which vector of answers each belongs to, in increasing order.
    bits : ndarray of shape (m, people), int8
        The candidates.
    largest : ndarray of shape (m,)
        Their largest error over all queries.
    """

    trial: NDArray[np.int64]
    bits: Bits
    largest: FloatArray


def subset_counts(bits: Bits) -> Bits:
    """Counts of every subset, ``<q, x>`` for all q.

    Parameters
    ----------
    bits : ndarray of shape (..., people), int8
        One or several x.

    Returns
    -------
    ndarray of shape (..., 2^people), int8
        At index q the number of ones among the people whose bit in the number q is 1: person i has the bit 2^i.
    """
    counts = np.zeros((*bits.shape[:-1], 1), dtype=np.int8)
    for i in range(bits.shape[-1]):
        counts = np.concatenate([counts, counts + bits[..., i : i + 1]], axis=-1)
    return counts


def enumerate_bits(people: int) -> Bits:
    """All vectors of bits, shape (2^people, people).

    Row q has the bits of the number q.
    """
    return ((np.arange(1 << people)[:, None] >> np.arange(people)) & 1).astype(np.int8)


# ------------------------------------------------------------------------- all subset counts


class _Block(NamedTuple):
    """Prefixes of candidates of one length, in lexicographic order, with the counts of the subsets of the prefix."""

    trial: NDArray[np.int64]
    bits: Bits
    counts: Bits
    largest: FloatArray

    def part(self, kept: NDArray[np.bool_] | slice) -> _Block:
        return _Block(self.trial[kept], self.bits[kept], self.counts[kept], self.largest[kept])


def from_all_subsets(answers: FloatArray, error: float = np.inf, goal: Goal = "first") -> ConsistentBits:
    """Candidates that fit the answers to all subset queries.

    x' with ``|y_q - <q, x'>| < error`` for all 2^people queries q.

    Parameters
    ----------
    answers : ndarray of shape (trials, 2^people)
        Answers y, indexed as by `subset_counts`.
    error : float
        E; candidates are off by less than it, on every query.
    goal : {"first", "all", "closest"}
        For each trial the first consistent candidate in lexicographic order, all of them, or one whose largest error is
        smallest (and below ``error``).

    Notes
    -----
    A branch-and-bound search over prefixes. The queries on the first j people are 2^j of the answers and involve
    the first j bits alone, so a prefix whose error reaches the limit has no consistent extension; what is left out is
    inconsistent, and the search is exhaustive. A prefix of j bits costs 2^(j - 1) comparisons: the counts of subsets
    without person j are those of the shorter prefix. With ``goal="closest"`` the limit is the best error so far, from
    the start that of the rounded averages. Answers within E leave few prefixes (at most those at a distance below
    4 E, by Claim 4.1.4), so that 20 people take some 2^21 comparisons, instead of 2^40; answers without any information
    cost all of the 4^people / 2.
    """
    people = _people_of(answers)
    limit = np.full(len(answers), float(error))
    found: list[_Block] = []
    if goal == "closest":
        found.append(_average_of_answers(answers))
        limit = np.minimum(limit, found[0].largest)
        found = [found[0].part(found[0].largest < error)]
    empty = np.zeros((len(answers), 0), dtype=np.int8)
    start = _Block(np.arange(len(answers)), empty, np.zeros((len(answers), 1), np.int8), np.abs(answers[:, 0]))
    stack = [start]
    while stack:
        block = stack.pop()
        block = block.part(block.largest < limit[block.trial])
        if not len(block.trial):
            continue
        length = block.bits.shape[1]
        if length == people:
            if goal != "all":
                block = block.part(_one_each(block, goal))
                limit[block.trial] = block.largest if goal == "closest" else -np.inf
            found.append(block)
        elif len(block.trial) > 1 and block.counts.size > _BLOCK >> 1:
            half = len(block.trial) // 2
            stack += [block.part(slice(half, None)), block.part(slice(half))]
        else:
            stack.append(_extend_prefixes(block, answers, limit))
    return _gather_blocks(found, people, goal)


def _extend_prefixes(block: _Block, answers: FloatArray, limit: FloatArray) -> _Block:
    """Both extensions of every prefix by a bit, those within the limit."""
    length = block.bits.shape[1]
    # Queries that have the next person in them; the errors of a candidate with a 1 there are lower by 1.
    rest = answers[block.trial, 1 << length : 2 << length] - block.counts
    high, low = rest.max(axis=1), rest.min(axis=1)
    errors = np.stack([np.maximum(high, -low), np.maximum(high - 1.0, 1.0 - low)], axis=1)
    errors = np.maximum(errors, block.largest[:, None])
    parent, bit = np.nonzero(errors < limit[block.trial][:, None])
    bits, counts = bit.astype(np.int8)[:, None], block.counts[parent]
    return _Block(
        block.trial[parent],
        np.concatenate([block.bits[parent], bits], axis=1),
        np.concatenate([counts, counts + bits], axis=1),
        errors[parent, bit],
    )


def _average_of_answers(answers: FloatArray) -> _Block:
    """For each trial the average of the answers with a person, less that without, rounded to a bit."""
    people = _people_of(answers)
    bits = np.zeros((len(answers), people), dtype=np.int8)
    for i in range(people):
        pairs = answers.reshape(len(answers), -1, 2, 1 << i).mean(axis=(1, 3))
        bits[:, i] = pairs[:, 1] - pairs[:, 0] > 0.5
    largest = np.abs(answers - subset_counts(bits)).max(axis=1)
    return _Block(np.arange(len(answers)), bits, np.zeros((len(answers), 0), np.int8), largest)


def _one_each(block: _Block, goal: Goal) -> NDArray[np.bool_]:
    """One row of each trial: the first, or the one of least error."""
    order = np.lexsort((block.largest, block.trial)) if goal == "closest" else np.arange(len(block.trial))
    kept = np.zeros(len(block.trial), dtype=np.bool_)
    kept[order[np.unique(block.trial[order], return_index=True)[1]]] = True
    return kept


def _gather_blocks(found: list[_Block], people: int, goal: Goal) -> ConsistentBits:
    if not sum(len(block.trial) for block in found):
        return ConsistentBits(np.zeros(0, np.int64), np.zeros((0, people), np.int8), np.zeros(0))
    trial, bits, largest = (np.concatenate([getattr(b, name) for b in found]) for name in ("trial", "bits", "largest"))
    # A later one of a trial is better where the closest is sought: the limit was lowered.
    order = np.argsort(trial, kind="stable")
    if goal == "closest":
        order = order[np.append(np.diff(trial[order]) > 0, True)]
    return ConsistentBits(trial[order], bits[order], largest[order])


def _people_of(answers: FloatArray) -> int:
    people = int(answers.shape[1]).bit_length() - 1
    if answers.ndim != 2 or answers.shape[1] != 1 << people or people > MOST:
        raise SpecificationError(f"expected answers of shape (trials, 2^n), n at most {MOST}, got {answers.shape}")
    return people


# ------------------------------------------------------------------------- any queries


def from_queries(queries: Bits, answers: FloatArray, error: float = np.inf, goal: Goal = "first") -> ConsistentBits:
    """Candidates that fit the answers to given queries.

    x' with ``|y_q - <q, x'>| < error``; as `from_all_subsets`.

    Parameters
    ----------
    queries : ndarray of shape (k, people), int8
        Zeros and ones.
    answers : ndarray of shape (trials, k)
        Answers y.
    error, goal
        As for `from_all_subsets`; candidates are in the order of their numbers, person i having the bit 2^i.

    Notes
    -----
    The counts of all 2^people candidates on a query are the subset counts of the query: ``2^people k`` steps a trial.
    """
    people, size = queries.shape[1], 1 << queries.shape[1]
    if people > MOST or answers.ndim != 2 or answers.shape[1] != len(queries):
        raise SpecificationError(
            f"expected at most {MOST} people and an answer a query, got {queries.shape} and {answers.shape}"
        )
    counts = [subset_counts(query) for query in queries]
    step = max(1, _BLOCK // size)
    found: list[ConsistentBits] = []
    for start in range(0, len(answers), step):
        part = answers[start : start + step]
        if goal == "closest":
            one = _closest_candidates(part, counts, error)
        else:
            one = _candidates_within(part, counts, error)
            if goal == "first":
                firsts = np.unique(one[0], return_index=True)[1]
                one = one[0][firsts], one[1][firsts], one[2][firsts]
        trial, candidate, largest = one
        bits = ((candidate[:, None] >> np.arange(people)) & 1).astype(np.int8)
        found.append(ConsistentBits(trial + start, bits, largest))
    return ConsistentBits(*(np.concatenate(fields) for fields in zip(*found, strict=True)))


_Fits: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]
"""Trials, numbers of candidates, and their largest errors."""


def _candidates_within(answers: FloatArray, counts: list[Bits], error: float) -> _Fits:
    """All candidates within the error, query by query of those that are left."""
    trial, candidate = np.divmod(np.arange(len(answers) * len(counts[0])), len(counts[0]))
    largest = np.zeros(len(trial))
    for i, count in enumerate(counts):
        largest = np.maximum(largest, np.abs(answers[trial, i] - count[candidate]))
        kept = largest < error
        trial, candidate, largest = trial[kept], candidate[kept], largest[kept]
    return trial, candidate, largest


def _closest_candidates(answers: FloatArray, counts: list[Bits], error: float) -> _Fits:
    """For each trial the candidate of least error, if that is within the limit."""
    largest = np.zeros((len(answers), len(counts[0])))
    for i, count in enumerate(counts):
        np.maximum(largest, np.abs(answers[:, i : i + 1] - count), out=largest)
    trial, candidate = np.arange(len(answers)), largest.argmin(axis=1)
    best = largest[trial, candidate]
    kept = best < error
    return trial[kept], candidate[kept], best[kept]


# ------------------------------------------------------------------------- the adversary


@dataclass(frozen=True)
class Exhaustive(Adversary):
    """Secret bits from counts of subsets of the people.

    One bit a person: the candidate that fits the answers best.

    Parameters
    ----------
    people : int, default 10
        Number of secret bits, at most 20; uniform and independent.
    queries : int, default 0
        Number of random subsets that are asked for, each person in each with probability 1/2; 0 for all of them.
    error : float, default 0
        E where the answers are known to be within it: the first candidate within E on every query is taken, and zeros
        if there is none. 0 if no E is known: the candidate whose largest error is smallest.
    seed : int, default 0
        Of the random subsets, which are public.
    matrix : tuple of tuple of int, default ()
        The queries themselves, one a row, in place of random ones.
    """

    people: int = 10
    queries: int = 0
    error: float = 0.0
    seed: int = 0
    matrix: tuple[tuple[int, ...], ...] = ()

    name: ClassVar[str] = "exhaustive"

    def __post_init__(self) -> None:
        if not (isinstance(self.people, int) and 1 <= self.people <= MOST):
            raise SpecificationError(f"people must be an integer from 1 to {MOST}, got {self.people!r}")
        if not (isinstance(self.queries, int) and self.queries >= 0):
            raise SpecificationError(f"queries must be an integer of at least 0, got {self.queries!r}")
        if not self.error >= 0:
            raise SpecificationError(f"error must be at least 0, got {self.error!r}")
        if any(len(row) != self.people or not set(row) <= {0, 1} for row in self.matrix):
            raise SpecificationError(f"matrix must have rows of {self.people} zeros and ones, got {self.matrix!r:.200}")

    @property
    def bits(self) -> int:
        """Number of secret bits."""
        return self.people

    @property
    def asked(self) -> Bits:
        """The queries, shape (k, people)."""
        if self.matrix:
            return np.array(self.matrix, dtype=np.int8)
        if self.queries:
            return np.random.default_rng(self.seed).integers(0, 2, (self.queries, self.people), dtype=np.int8)
        return enumerate_bits(self.people)

    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> FloatArray:
        """Part of right bits in n games, shape (n,).

        See `Adversary.play`.
        """
        asked = self.asked
        step = max(1, _BLOCK * 4 // asked.size)  # tables are of one byte an entry
        parts = []
        for start in range(0, n, step):
            secret = rng.integers(0, 2, (min(step, n - start), self.people), dtype=np.int8)
            tables: Stack = secret[:, :, None] * asked.T
            parts.append((self.reconstructed(ask(tables)) == secret).mean(axis=1))
        return np.concatenate(parts)

    def reconstructed(self, answers: FloatArray) -> Bits:
        """Guessed bits from answers of shape (trials, k), shape (trials, people)."""
        goal: Goal = "first" if self.error else "closest"
        limit = self.error if self.error else np.inf
        if self.matrix or self.queries:
            found = from_queries(self.asked, answers, limit, goal)
        else:
            found = from_all_subsets(answers, limit, goal)
        guessed = np.zeros((len(answers), self.people), dtype=np.int8)
        guessed[found.trial] = found.bits
        return guessed

    def most(self, guarantee: Guarantee, level: float) -> float:
        """Largest expected part of the bits that is right.

        See `Adversary.most`.

        Notes
        -----
        Valid because: a bit is one row of the table, and `auditor.audits.adversaries.bounds.bound_guessing` bounds the
        probability that it is guessed right; the score is the average over the bits.
        """
        return bound_guessing(guarantee, level)

    def __str__(self) -> str:
        asked = len(self.matrix) or self.queries
        which = f"{asked:,} subset counts" if asked else f"all {1 << self.people:,} subset counts"
        return f"exhaustive reconstruction of {self.people} bits from {which}"
