"""Answers to all subset counts of secret bits, and reconstructions from them.

Data are the bits x, one a person; the query q of 2^n is a subset, answered by about ``<q, x>``, a count.

Source: 003, Theorem 4.1.2 and Claim 4.1.4; catalogue 000_001_003, dinur_nissim_exhaustive.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from auditor.audits.adversaries.exhaustive import Bits, enumerate_bits, from_all_subsets, subset_counts
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive

#: Part by which uniform noise stays below its bound: far above rounding, far below what anybody sees.
_INSIDE = 1.0 - 2.0**-40


def worst_distance(error: float) -> int:
    """Largest distance of two x that answers within `error` (and not at it) of both leave open.

    ``2 (ceil(2 E) - 1)``: the answers exist if and only if every ``|<q, x - x'>| < 2 E``, so if the ones that are
    added and those that are taken away are each fewer than 2 E. Below 4 E, by 2 for half-integers E.
    """
    require_positive("error", error)
    return 2 * (math.ceil(2 * error) - 1)


def partner(x: Bits, flips: int) -> Bits:
    """Return x with its first `flips` zeros and first `flips` ones flipped; ValueError if there are fewer."""
    other = x.copy()
    for bit in (0, 1):
        places = np.flatnonzero(x == bit)
        require(len(places) >= flips, f"at least {flips} people with the bit {bit}", x.tolist())
        other[places[:flips]] = 1 - bit
    return other


# ------------------------------------------------------------------------------------- answers


@dataclass(frozen=True)
class SubsetAnswers(ABC):
    """Answers within an error.

    Parameters
    ----------
    error : float
        E: answers are off by less than it.
    """

    error: float

    def __post_init__(self) -> None:
        require_positive("error", self.error)

    @abstractmethod
    def draw(self, x: Bits, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` vectors of answers for the bits x, shape (n, 2^people)."""


@dataclass(frozen=True)
class ExactAnswers(SubsetAnswers):
    """The counts themselves."""

    def draw(self, x: Bits, n: int, rng: np.random.Generator) -> FloatArray:
        """Repeat the counts."""
        del rng
        return np.repeat(subset_counts(x)[None].astype(np.float64), n, axis=0)


@dataclass(frozen=True)
class UniformAnswers(SubsetAnswers):
    """Independent noise, uniform in (-E, E), on each of the counts."""

    def draw(self, x: Bits, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw noise."""
        counts = subset_counts(x)
        noise = 2.0 * rng.random((n, counts.size)) - 1.0
        noise *= self.error * _INSIDE
        noise += counts
        return noise


@dataclass(frozen=True)
class MidpointAnswers(SubsetAnswers):
    """``<q, (x + x') / 2>`` for the `partner` x' at the worst distance: as true of x' as of x."""

    @property
    def flips(self) -> int:
        """Ones that are added, and as many that are taken away."""
        return worst_distance(self.error) // 2

    def draw(self, x: Bits, n: int, rng: np.random.Generator) -> FloatArray:
        """Repeat the answers, which are not random."""
        del rng
        counts = subset_counts(x).astype(np.float64) + subset_counts(partner(x, self.flips))
        return np.repeat(0.5 * counts[None], n, axis=0)


@dataclass(frozen=True)
class ClosedMidpointAnswers(MidpointAnswers):
    """The same with 2 E flips each way, for an integer 2 E: answers are off by E, not by less."""

    @property
    def flips(self) -> int:
        """``2 E``."""
        require(2 * self.error == round(2 * self.error), "an error that is a multiple of 1/2", self.error)
        return round(2 * self.error)


# ----------------------------------------------------------------------------- reconstructions


@dataclass(frozen=True)
class ConsistentReconstruction:
    """The first candidate, in lexicographic order, that is within E of all answers; mutants check something else.

    Parameters
    ----------
    answers : SubsetAnswers
        Who answers, and within which error.
    """

    answers: SubsetAnswers

    def guessed(self, answers: FloatArray, truth: Bits) -> Bits:
        """Candidates for answers of shape (n, 2^people), shape (n, people); of the true bits nothing is used.

        Raises
        ------
        ValueError
            If some answers have no consistent candidate: they are not within E of any x.
        """
        del truth
        return self._first_candidate(answers, self.answers.error)

    def _first_candidate(self, answers: FloatArray, error: float) -> Bits:
        found = from_all_subsets(answers, error, "first")
        require(len(found.trial) == len(answers), "answers within the error of some x", found.trial.tolist())
        return found.bits

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw answers, reconstruct, and return in how many bits each of `n` candidates is wrong, shape (n,)."""
        require_draws(n)
        truth = np.asarray(data, dtype=np.int8)
        # One at a time where a vector of answers has millions of entries.
        step = max(1, (1 << 20) // (1 << truth.size))
        wrong = [
            (self.guessed(self.answers.draw(truth, min(step, n - done), rng), truth) != truth).sum(axis=1)
            for done in range(0, n, step)
        ]
        return np.concatenate(wrong).astype(np.int64)


@dataclass(frozen=True)
class FarthestConsistent(ConsistentReconstruction):
    """The consistent candidate that is farthest from the truth: what the theorem is about, and no attack."""

    def guessed(self, answers: FloatArray, truth: Bits) -> Bits:
        """Of all consistent candidates the worst one for each vector of answers."""
        found = from_all_subsets(answers, self.answers.error, "all")
        require(
            set(found.trial) == set(range(len(answers))), "answers within the error of some x", found.trial.tolist()
        )
        order = np.lexsort(((found.bits != truth).sum(axis=1), found.trial))
        last = np.append(np.diff(found.trial[order]) > 0, True)
        return np.asarray(found.bits[order[last]], dtype=np.int8)


@dataclass(frozen=True)
class NonStrictConsistency(ConsistentReconstruction):
    """Mutant: candidates that are off by E are taken too."""

    def guessed(self, answers: FloatArray, truth: Bits) -> Bits:
        """Below the next number is at most this one."""
        del truth
        return self._first_candidate(answers, math.nextafter(self.answers.error, math.inf))


@dataclass(frozen=True)
class StopsAtFirstFailure(ConsistentReconstruction):
    """Mutant: the first query that any candidate fails is the last one that is checked."""

    def guessed(self, answers: FloatArray, truth: Bits) -> Bits:
        """The lexicographically first candidate that passes that query."""
        people, error = truth.size, self.answers.error
        sizes = enumerate_bits(people).sum(axis=1)
        # The counts of candidates on a query go from 0 to its size.
        fails = (answers >= error) | (sizes - answers >= error)
        query = enumerate_bits(people)[fails.argmax(axis=1)]
        answered = answers[np.arange(len(answers)), fails.argmax(axis=1)]
        guess = np.zeros((len(answers), people), dtype=np.int8)
        return _with_ones(guess, query, _smallest_count(answered, error))


@dataclass(frozen=True)
class TrueQueries(ConsistentReconstruction):
    """Mutant: only the people with a 0 and those with a 1, as they truly are, are checked: it needs the data."""

    def guessed(self, answers: FloatArray, truth: Bits) -> Bits:
        """The lexicographically first of the candidates that pass both queries."""
        guess = np.zeros((len(answers), truth.size), dtype=np.int8)
        for bit in (0, 1):
            query = (truth == bit).astype(np.int8)
            answered = answers[:, int(query @ (1 << np.arange(truth.size)))]
            ones = _smallest_count(answered, self.answers.error)
            guess = _with_ones(guess, np.repeat(query[None], len(answers), axis=0), ones)
        return guess


def _smallest_count(answered: FloatArray, error: float) -> IntArray:
    """Smallest count that is off by less than the error, at least 0."""
    return np.asarray(np.maximum(0, np.floor(answered - error) + 1), dtype=np.int64)


def _with_ones(guess: Bits, query: Bits, ones: IntArray) -> Bits:
    """Set the last so many people of each query to 1."""
    from_the_end = np.cumsum(query[:, ::-1], axis=1)[:, ::-1]
    return np.where((query == 1) & (from_the_end <= ones[:, None]), np.int8(1), guess).astype(np.int8)
