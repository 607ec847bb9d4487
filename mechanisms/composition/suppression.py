"""An interface that refuses small counts, the differencing attack on it, and the same attack on noisy counts.

Source: D003 Lecture 1, opening discussion; catalogue 000_001_003, differencing_small_count_suppression and A7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw, ProductLaw
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mechanism,
    Mutant,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.queries import Count, CountingQuery, Relation

#: In the place of a count that is not released; counts are never negative.
REFUSED = -1

#: Smallest count that the suppressing interface releases; arbitrary, any up to the wide count is as bad.
SMALLEST = 10

Bits: TypeAlias = NDArray[np.uint8]
Attack: TypeAlias = Callable[[Any], Bits]
"""From n outputs of an interface, trial axis first, to n guesses of a secret bit."""


@dataclass(frozen=True)
class EitherPredicate(CountingQuery):
    """Number of rows that satisfy at least one of several predicates.

    Parameters
    ----------
    counts : tuple of Count
        The predicates, with one relation. A row counts once, so the sensitivity is 1.
    """

    counts: tuple[Count, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(self.counts))
        require(len(self.counts) > 0, "at least one predicate", self.counts)
        relations = {count.relation for count in self.counts}
        require(len(relations) == 1, "predicates with one relation", relations)

    @property
    def relation(self) -> Relation:
        """The relation all predicates share."""
        return self.counts[0].relation

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the number of rows, shape ()."""
        hit = np.logical_or.reduce([count.matches(data) for count in self.counts])
        return np.array(np.count_nonzero(hit), dtype=np.float64)


@dataclass(frozen=True)
class _DifferencingBase:
    """What the attack shares with its mutant: everything but the check."""

    target: Count
    wide: Count

    @property
    def queries(self) -> tuple[EitherPredicate, EitherPredicate]:
        """The wide predicate, then "wide or target"."""
        return EitherPredicate((self.wide,)), EitherPredicate((self.wide, self.target))

    def __call__(self, outputs: Any) -> Bits:
        """Guess that the target is there if the difference is nearer to 1 than to 0, or as near.

        Parameters
        ----------
        outputs : ndarray of shape (n, 2)
            Answers to `queries`.

        Returns
        -------
        ndarray of shape (n,), uint8
        """
        return np.asarray(outputs[:, 1] - outputs[:, 0] >= 0.5, dtype=np.uint8)


@dataclass(frozen=True)
class DifferencingAttack(_DifferencingBase):
    """The attack: ask a wide predicate, then "wide or target"; the difference is the count of the target.

    Parameters
    ----------
    target : Count
        A predicate that holds for one person or nobody; whether it does is the secret bit.
    wide : Count
        A predicate of many rows, disjoint from the target.

    Raises
    ------
    ValueError
        If the predicates can hold for one row together. Then that row is in both answers, and their difference says
        nothing about it. Only ranges of one column can be told to be disjoint without looking at the data.
    """

    def __post_init__(self) -> None:
        both = (self.target, self.wide)
        require(self.target.column == self.wide.column, "a target and a wide predicate of one column", both)
        (low, high), (wide_low, wide_high) = (_ends(count) for count in both)
        require(high < wide_low or wide_high < low, "a target and a wide predicate that are disjoint", both)


@dataclass(frozen=True)
class OverlappingDifferencing(_DifferencingBase):
    """The attack without the check: with predicates that overlap it is a mistake in the audit, which finds nothing."""


@dataclass(frozen=True)
class KnownRestAttack:
    """The attack of someone who knows all other rows: only the noisy answer to "wide or target" is looked at.

    Parameters
    ----------
    without : float
        The true answer if the target is not there.
    """

    without: float

    def __call__(self, outputs: Any) -> Bits:
        """Guess from answers of shape (n, 2), as `DifferencingAttack` does."""
        return np.asarray(outputs[:, 1] - self.without >= 0.5, dtype=np.uint8)


def _ends(count: Count) -> tuple[float, float]:
    if count.equals is None:
        return count.low, count.high
    require(isinstance(count.equals, (int, float)), "a numeric value to count", count.equals)
    return float(count.equals), float(count.equals)  # type: ignore[arg-type]


@dataclass(frozen=True)
class GeometricNoiseCounts:
    """Counts with two-sided geometric noise, each with a budget of its own: the reference.

    Parameters
    ----------
    queries : tuple of EitherPredicate
        What is asked.
    epsilons : tuple of float
        Level of each answer; the claim is their sum (basic composition). It is attained where a row moves all counts.
    """

    queries: tuple[EitherPredicate, ...]
    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        object.__setattr__(self, "epsilons", tuple(self.epsilons))
        require(len(self.queries) > 0, "at least one query", self.queries)
        require(len(self.queries) == len(self.epsilons), f"{len(self.queries)} levels", self.epsilons)
        for epsilon in self.epsilons:
            require_positive("epsilon", epsilon)

    @property
    def epsilon(self) -> float:
        """Claimed level, the sum of the answers' levels."""
        return math.fsum(self.epsilons)

    def parts(self) -> tuple[LatticeLaplace, ...]:
        """Return the mechanism of each answer; on the lattice of the integers."""
        return tuple(LatticeLaplace(q, e, step=1.0) for q, e in zip(self.queries, self.epsilons, strict=True))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; whole float64 numbers of shape (n, queries)."""
        return np.stack([part(data, n, rng) for part in self.parts()], axis=1)

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: independent answers."""
        return ProductLaw(tuple(part.law(data) for part in self.parts()))


@dataclass(frozen=True)
class SuppressedCounts:
    """Counts are released exactly where they are at least the threshold, and refused otherwise.

    Parameters
    ----------
    queries : tuple of EitherPredicate
        What is asked.
    threshold : int
        Smallest count that is released, >= 1.
    """

    queries: tuple[EitherPredicate, ...]
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        require(len(self.queries) > 0, "at least one query", self.queries)
        require(self.threshold == int(self.threshold) >= 1, "an integer threshold >= 1", self.threshold)

    def answers(self, data: Dataset) -> IntArray:
        """Return what is released, int64 of shape (queries,); `REFUSED` for small counts."""
        counts = np.array([query(data) for query in self.queries]).astype(np.int64)
        return np.where(counts >= self.threshold, counts, REFUSED)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Return `n` outputs, all the same; int64 of shape (n, queries)."""
        del rng
        require_draws(n)
        return np.tile(self.answers(data), (n, 1))

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: a point."""
        return ProductLaw(tuple(FiniteLaw((answer,), np.ones(1)) for answer in self.answers(data).tolist()))


@dataclass(frozen=True)
class GuessingGame:
    """A fair coin chooses one of two neighbouring datasets, an interface answers on it, and an attack guesses the coin.

    Parameters
    ----------
    interface : Mechanism
        What answers.
    attack : callable
        From outputs to guesses of shape (n,), 0 or 1.

    Notes
    -----
    Against an (eps, delta)-DP interface every attack is right with probability at most
    ``(e^eps + delta) / (1 + e^eps)`` (A7; see `guessing_bound`).
    """

    interface: Mechanism
    attack: Attack

    def __call__(self, data: tuple[Dataset, Dataset], n: int, rng: np.random.Generator) -> Bits:
        """Play `n` games on (dataset of coin 0, dataset of coin 1); uint8 of shape (n,), 1 where the guess is right."""
        require_draws(n)
        coins = rng.integers(0, 2, n, dtype=np.uint8)
        right = np.zeros(n, dtype=np.uint8)
        for coin in (0, 1):
            games = np.flatnonzero(coins == coin)
            if games.size:
                right[games] = self.attack(self.interface(data[coin], games.size, rng)) == coin
        return right


def guessing_bound(epsilon: float, delta: float = 0.0) -> float:
    """Largest chance of guessing a fair bit from an (eps, delta)-DP output, ``(e^eps + delta) / (1 + e^eps)`` (A7).

    Valid because: with p and q the probabilities of the guess 1 under the bits 1 and 0, a guess is right with
    probability (p + 1 - q) / 2; ``p <= e^eps q + delta`` and ``1 - q <= e^eps (1 - p) + delta`` add up to it.
    """
    require(epsilon >= 0, "epsilon >= 0", epsilon)
    require(0 <= delta <= 1, "delta in [0, 1]", delta)
    return (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon))


@dataclass(frozen=True)
class _BuildSuppressing:
    """Builds the suppressing interface for the same queries (for `Mutant.build`)."""

    threshold: int

    def __call__(self, base: GeometricNoiseCounts) -> SuppressedCounts:
        return SuppressedCounts(base.queries, self.threshold)


MUTANTS: dict[str, Mutant[GeometricNoiseCounts]] = tabulate_mutants(
    Mutant(
        "as_described",
        _BuildSuppressing(SMALLEST),
        unbounded,
        "violation",
        "exact counts, small ones refused: the difference of two large counts is that of one person",
    ),
)
