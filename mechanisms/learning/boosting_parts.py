"""Parts of a boosted learner by themselves, and what is put around it: the test part, one number, a permutation.

Source: document 002, section 4, proof of Lemma 4.5, and section 2.1 on symmetry; catalogue 002, parity_amplified_Astar
(pairs, erratum E1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.privacy.exact import FiniteLaw, ProductLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.learning.amplified_selection import CandidateSelection, NoiselessErrorCounts, NoisyErrorCounts, clamped
from mechanisms.learning.boosting import NULL, BoostedLearner, CountsErrors, JointRelease, ReleasedCandidates
from mechanisms.learning.hypotheses import HypothesisClass, counts_of

#: Outcomes that a distribution lists at most: a million of them take about a second.
_MOST = 1_000_000
#: Orders of the rows over which a distribution is averaged at most, those of seven rows.
_MOST_ORDERS = 5040


@dataclass(frozen=True)
class ListedErrors:
    """Counts the records that hypotheses of a listed class get wrong; records as in `hypotheses`."""

    hypotheses: HypothesisClass

    def __call__(self, hypotheses: IntArray, rows: Dataset) -> IntArray:
        """Count errors; same shape as `hypotheses`."""
        return self.hypotheses.mistakes(counts_of(rows, self.hypotheses.domain))[hypotheses]


@dataclass(frozen=True)
class FixedErrors:
    """Noisy error counts of k fixed hypotheses: the test part by itself.

    Parameters
    ----------
    hypotheses : tuple of int
        Codes; `NULL` errs on every row.
    count : CountsErrors
        Errors of a hypothesis on rows.
    selection : NoisyErrorCounts
        The noise.
    epsilon : float
        Claimed level: k counts that each cost ``epsilon / k``.
    """

    hypotheses: tuple[int, ...]
    count: CountsErrors
    selection: NoisyErrorCounts
    epsilon: float

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` releases, in lattice steps; int64 of shape (n, k)."""
        require_draws(n)
        errors = errors_of(self.hypotheses, self.count, data)
        return self.selection.noisy(np.broadcast_to(errors, (n, errors.size)), rng)

    def law(self, data: Dataset) -> ProductLaw | FiniteLaw:
        """Exact distribution on `data`; for a mutant whose candidates share their noise, outcomes are tuples.

        The shared noise is then followed as far as `NoisyErrorCounts.reach`, and clamped there.
        """
        errors = errors_of(self.hypotheses, self.count, data)
        if isinstance(self.selection, NoiselessErrorCounts):
            drawn, mass = self.selection.shared(self.selection.reach)
            outcomes = errors * self.selection.fineness + drawn[:, None]
            return FiniteLaw(tuple(map(tuple, outcomes.tolist())), mass)
        return ProductLaw(tuple(self.selection.estimate(int(e)) for e in errors))


@dataclass(frozen=True)
class ChosenHypothesis:
    """Which of k fixed hypotheses is chosen by its errors on the data: the test part by itself, choice only.

    Parameters
    ----------
    hypotheses : tuple of int
        Codes; `NULL` errs on every row.
    count : CountsErrors
        Errors of a hypothesis on rows.
    selection : CandidateSelection
        How one is chosen.
    epsilon : float
        Claimed level.
    """

    hypotheses: tuple[int, ...]
    count: CountsErrors
    selection: CandidateSelection
    epsilon: float

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` positions in `hypotheses`; int64 of shape (n,)."""
        require_draws(n)
        errors = errors_of(self.hypotheses, self.count, data)
        return self.selection.choose(np.broadcast_to(errors, (n, errors.size)), rng)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the position on `data`."""
        counts, score = np.unique(errors_of(self.hypotheses, self.count, data), return_inverse=True)
        masses = np.asarray(score[:, None] == np.arange(counts.size), dtype=np.float64)
        found = self.selection.winners(masses, counts).sum(axis=1)
        return FiniteLaw(tuple(range(found.size)), found / found.sum())


def errors_of(hypotheses: tuple[int, ...], count: CountsErrors, data: Dataset) -> IntArray:
    """Exact errors of fixed hypotheses on the data; shape (k,)."""
    codes = np.array(hypotheses, dtype=np.int64)
    counts = np.full(codes.shape, len(data), dtype=np.int64)
    counts[codes != NULL] = count(codes[codes != NULL], data)
    return counts


# ------------------------------------------------------------------------------ around a release


@dataclass(frozen=True)
class ReleaseAsOneNumber:
    """A release of k whole numbers as one, for an audit: the same information, and outcomes that are atoms.

    Parameters
    ----------
    release : ReleasedCandidates or JointRelease
        Its coordinates are ``release.lowest`` or more.
    radix : int
        Above all coordinates less the lowest.
    """

    release: ReleasedCandidates | JointRelease
    radix: int

    @property
    def epsilon(self) -> float:
        """The claimed level of the release."""
        return self.release.epsilon

    def _number(self, outputs: IntArray) -> IntArray:
        digits = np.asarray(outputs, dtype=np.int64) - self.release.lowest
        require(bool((digits < self.radix).all()), f"coordinates below {self.radix}", digits.max())
        return digits @ self.radix ** np.arange(digits.shape[-1])

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers; int64 of shape (n,)."""
        return self._number(self.release(data, n, rng))

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution on `data`."""
        law = self.release.law(data)
        if isinstance(law, FiniteLaw):
            return FiniteLaw(tuple(self._number(np.array(law.outcomes)).tolist()), law.probabilities)
        parts = [part for part in law.parts if isinstance(part, FiniteLaw)]
        size = math.prod(len(part.outcomes) for part in parts)
        require(size <= _MOST, f"at most {_MOST} outcomes", size)
        outcomes = np.array(list(itertools.product(*(part.outcomes for part in parts))), dtype=np.int64)
        mass = np.ones(1)
        for part in parts:
            mass = np.outer(mass, part.probabilities).ravel()
        return FiniteLaw(tuple(self._number(outcomes).tolist()), mass)


@dataclass(frozen=True)
class VoteMargin:
    """Of all hypotheses that are released, how many are code 1, less how many are code 0.

    For one bit and blocks that are all the same, it is all that tells two datasets apart.
    """

    release: ReleasedCandidates

    @property
    def epsilon(self) -> float:
        """The claimed level of the release, which post-processing keeps."""
        return self.release.epsilon

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` margins; int64 of shape (n,)."""
        hypotheses = self.release(data, n, rng)
        return np.asarray((hypotheses == 1).sum(axis=1) - (hypotheses == 0).sum(axis=1), dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution on `data`: a convolution."""
        mass = np.ones(1)
        for law in self.release.laws(data):
            known = dict(zip(law.outcomes, law.probabilities, strict=True))
            votes = [known.get(0, 0.0), 0.0, known.get(1, 0.0)]
            votes[1] = 1.0 - votes[0] - votes[2]
            mass = np.convolve(mass, votes)
        k = self.release.split.rounds
        return FiniteLaw(tuple(range(-k, k + 1)), mass)


@dataclass(frozen=True)
class LargestEstimate:
    """The largest of the noisy errors of fixed hypotheses, clamped to 0 .. the number of rows.

    One number that costs as much as all estimates together: if all of them are at most what they are without noise, so
    is the largest.
    """

    errors: FixedErrors

    @property
    def epsilon(self) -> float:
        """The claimed level of all estimates, which post-processing keeps."""
        return self.errors.epsilon

    def _largest_score(self, data: Dataset) -> int:
        return len(data) * self.errors.selection.fineness

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers, in lattice steps; int64 of shape (n,)."""
        largest = self.errors(data, n, rng).max(axis=1)
        return np.asarray(np.clip(largest, 0, self._largest_score(data)), dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution on `data`."""
        top = self._largest_score(data)
        below = np.ones(top + 1)
        for errors in errors_of(self.errors.hypotheses, self.errors.count, data):
            below = below * np.cumsum(clamped(self.errors.selection.estimate(int(errors)), 0, top))
        return FiniteLaw(tuple(range(top + 1)), np.diff(below, prepend=0.0))


@dataclass(frozen=True)
class ShuffledLearner:
    """A boosted learner on a random permutation of the rows, which makes it symmetric in all of them."""

    boosted: BoostedLearner

    @property
    def epsilon(self) -> float:
        """The claimed level: a permuted pair of neighbours is one."""
        return self.boosted.epsilon

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,). One call of the learner a draw."""
        require_draws(n)
        rows = np.asarray(data)
        return np.concatenate([self.boosted(rows[rng.permutation(len(rows))], 1, rng) for _ in range(n)])

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution on `data`: the mean over all orders that differ."""
        rows = np.asarray(data)
        require(math.factorial(len(rows)) <= _MOST_ORDERS, "at most 7 rows", len(rows))
        orders = list(itertools.permutations(range(len(rows))))
        times: dict[bytes, tuple[FloatArray, int]] = {}
        for order in orders:
            permuted = rows[list(order)]
            times[permuted.tobytes()] = permuted, times.get(permuted.tobytes(), (permuted, 0))[1] + 1
        laws = [(self.boosted.law(permuted), count) for permuted, count in times.values()]
        return mixture([law for law, _ in laws], [count / len(orders) for _, count in laws])


def mixture(laws: Sequence[FiniteLaw], weights: Sequence[float]) -> FiniteLaw:
    """Mixture of several distributions with the weights."""
    total: dict[Any, float] = {}
    for law, weight in zip(laws, weights, strict=True):
        for outcome, mass in zip(law.outcomes, law.probabilities, strict=True):
            total[outcome] = total.get(outcome, 0.0) + weight * float(mass)
    outcomes = sorted(total)
    return FiniteLaw(tuple(outcomes), np.array([total[outcome] for outcome in outcomes]))
