"""A private mechanism on a random subset of the rows: what is saved depends on the subset and on the neighbours.

Three amplification bounds, for an inner mechanism M of pure level e0:

- every row is taken with probability p, neighbours have one row more or less, as M's do: ``ln(1 + p (e^e0 - 1))``;
- the same, neighbours replace one row: ``ln((1 - p + p e^e0) / (1 - p + p e^-e0))``, about ``2 p e0``;
- a uniform subset of m of n rows, neighbours replace one row, as M's do: ``ln(1 + p (e^e0 - 1))`` with p = m/n.

For any M whose output probabilities change by a factor in [L, U] when a row is added to what it is given, the second
one is ``ln((1 - p + p U) / (1 - p + p L))``; for parities L = 0 and U = 2. All are attained by `NoisySum`.

The document has no such lemma: it says that to run a learner on a random subset is not private in general. The bounds
are derived from the proof of its Lemma 4.2.

Source: document 002, section 1, techniques, and section 4; catalogue 002, subsample_then_run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import stats

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.learning.parity import PrivateParityLearner
from mechanisms.learning.parity_mutants import DeterministicSolution, FixedSizeSubset

# ------------------------------------------------------------------------------------- bounds


def between(p: float, least: float, most: float) -> float:
    """``ln((1 - p + p U) / (1 - p + p L))``: a row taken with probability p multiplies probabilities by L to U."""
    return math.log1p(p * (most - 1.0)) - math.log1p(p * (least - 1.0))


def replaced_level(p: float, epsilon: float) -> float:
    """Bound for rows taken independently, and neighbours that replace one row."""
    return between(p, math.exp(-epsilon), math.exp(epsilon))


def added_level(p: float, epsilon: float) -> float:
    """Bound for rows taken independently, and neighbours with a row more or less; also for m of n rows, replaced."""
    return math.log1p(p * math.expm1(epsilon))


# ---------------------------------------------------------------------------------- mechanisms


def values(data: Dataset) -> IntArray:
    """Return a database of integers, shape (rows,); ValueError for anything but -1, 0 and 1."""
    found = np.asarray(data)
    require(found.ndim == 1, "one value a row", found.shape)
    wrong = found[(found != -1) & (found != 0) & (found != 1)]
    require(wrong.size == 0, "values -1, 0 and 1", wrong[:1].tolist())
    return found.astype(np.int64)


@dataclass(frozen=True)
class NoisySum:
    """Sum of values -1, 0 and 1 plus two-sided geometric noise, clamped to -limit .. limit.

    Parameters
    ----------
    epsilon : float
        Level of what it is used for: a sum that moves by `moves`.
    moves : int
        1 for neighbours with a row more or less; 2 for neighbours that replace a row, 1 if no row is negative.
    limit : int
        Sums beyond are clamped; a clamped output keeps the ratio of what is clamped to it. Arbitrary.
    """

    epsilon: float
    moves: int = 1
    limit: int = 4

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(self.moves in (1, 2), "a move of 1 or 2", self.moves)
        require(isinstance(self.limit, int) and self.limit >= 1, "a limit >= 1", self.limit)

    @property
    def outputs(self) -> IntArray:
        """What can be published."""
        return np.arange(-self.limit, self.limit + 1)

    @property
    def base(self) -> float:
        """Base of the noise."""
        return base_for(self.epsilon, self.moves)

    def published(self, sums: IntArray, rng: np.random.Generator) -> IntArray:
        """Add noise to sums of any shape, and clamp."""
        noisy: IntArray = sums + two_sided_geometric(self.base, sums.shape, rng)
        return noisy.clip(-self.limit, self.limit)

    def probabilities(self, total: int) -> FloatArray:
        """Probabilities of the `outputs` for a sum."""
        a = self.base
        noise = np.abs(self.outputs - total).astype(np.float64)
        mass = a**-noise * (a - 1.0) / (a + 1.0)
        # Both ends have their tail: P[Z >= k] = a^(1-k) / (a+1) for k >= 1, and 1 - a^(-k') / (a+1) below.
        for end, k in ((0, self.limit + total), (-1, self.limit - total)):
            mass[end] = a ** (1.0 - k) / (a + 1.0) if k >= 1 else 1.0 - a ** float(k) / (a + 1.0)
        return mass


@dataclass(frozen=True)
class _SubsampledSum(ABC):
    """A noisy sum of a random subset."""

    inner: NoisySum

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Level by the bound for this kind of subset, and the neighbours it is for."""

    @abstractmethod
    def counted(self, counts: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """How many rows of each value are taken, shape (3, n); ``counts`` are all of -1, 0 and 1."""

    @abstractmethod
    def sizes(self, counts: IntArray) -> dict[int, float]:
        """Distribution of the sum of the rows that are taken."""

    def counts(self, data: Dataset) -> IntArray:
        """Rows of value -1, 0 and 1."""
        return np.bincount(values(data) + 1, minlength=3).astype(np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` sums; int64 of shape (n,)."""
        require_draws(n)
        taken = self.counted(self.counts(data), n, rng)
        return self.inner.published(taken[2] - taken[0], rng)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution: a mean over the sums that the rows taken can have."""
        law = np.zeros(len(self.inner.outputs))
        for total, mass in self.sizes(self.counts(data)).items():
            law += mass * self.inner.probabilities(total)
        return FiniteLaw(tuple(self.inner.outputs.tolist()), law)


@dataclass(frozen=True)
class IndependentRows(_SubsampledSum):
    """Every row is taken with probability `p`.

    Parameters
    ----------
    inner : NoisySum
        What is run on the rows taken.
    p : float
        In (0, 1).
    replace : bool
        Whether neighbours replace a row, or have one more or less.
    """

    p: float
    replace: bool = True

    def __post_init__(self) -> None:
        require(0 < self.p < 1, "p in (0, 1)", self.p)
        require(self.inner.moves == 1, "a sum that a row more or less moves by 1", self.inner.moves)

    @property
    def epsilon(self) -> float:
        """By the bound for the neighbours."""
        return (replaced_level if self.replace else added_level)(self.p, self.inner.epsilon)

    def counted(self, counts: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Binomial numbers of each value."""
        return rng.binomial(counts[:, None], self.p, (3, n))

    def sizes(self, counts: IntArray) -> dict[int, float]:
        """Distribution of the difference of two binomial numbers."""
        below = stats.binom.pmf(np.arange(counts[0] + 1), counts[0], self.p)
        above = stats.binom.pmf(np.arange(counts[2] + 1), counts[2], self.p)
        mass = np.convolve(below[::-1], above)
        return dict(zip(range(-int(counts[0]), int(counts[2]) + 1), mass.tolist(), strict=True))


@dataclass(frozen=True)
class FixedNumberOfRows(_SubsampledSum):
    """A uniform subset of `size` of `rows` rows; neighbours replace one row.

    Parameters
    ----------
    inner : NoisySum
        What is run on the rows taken.
    size, rows : int
        1 <= size <= rows.
    """

    size: int
    rows: int

    def __post_init__(self) -> None:
        require(1 <= self.size <= self.rows, f"a size from 1 to {self.rows}", self.size)

    @property
    def p(self) -> float:
        """Probability that a row is taken."""
        return self.size / self.rows

    @property
    def epsilon(self) -> float:
        """By the bound for replaced rows."""
        return added_level(self.p, self.inner.epsilon)

    def counts(self, data: Dataset) -> IntArray:
        """Rows of value -1, 0 and 1; ValueError unless there are as many as declared."""
        found = super().counts(data)
        require(int(found.sum()) == self.rows, f"{self.rows} rows", int(found.sum()))
        return found

    def counted(self, counts: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Numbers of each value without replacement."""
        drawn: IntArray = rng.multivariate_hypergeometric(counts, self.size, n)
        return drawn.T

    def sizes(self, counts: IntArray) -> dict[int, float]:
        """Distribution of the difference of two hypergeometric numbers."""
        law: dict[int, float] = {}
        known = stats.multivariate_hypergeom(m=counts, n=self.size)
        for low in range(min(int(counts[0]), self.size) + 1):
            for high in range(min(int(counts[2]), self.size - low) + 1):
                mass = float(known.pmf([low, self.size - low - high, high]))
                law[high - low] = law.get(high - low, 0.0) + mass
        return law


# ------------------------------------------------------------------------------ negative controls


@dataclass(frozen=True)
class SubsampledElimination(DeterministicSolution):
    """A random subset, then the least parity that agrees with it: neither step 1 nor a random solution."""

    @property
    def stop(self) -> float:
        """There is no step 1."""
        return 0.0


@dataclass(frozen=True)
class FixedSizeElimination(FixedSizeSubset):
    """A fixed number of rows, then a random solution: steps 3 and 4 without step 1."""

    @property
    def stop(self) -> float:
        """There is no step 1."""
        return 0.0


MUTANTS: dict[str, Mutant[PrivateParityLearner]] = tabulate_mutants(
    Mutant(
        "deterministic_consistent_learner",
        lambda base: SubsampledElimination(base.epsilon, base.d),
        unbounded,
        "violation",
        "a random subset, then a deterministic learner: (x, 1) leads to hypotheses that (x, 0) never does",
    ),
    Mutant(
        "fixed_size_with_parity_steps",
        lambda base: FixedSizeElimination(base.epsilon, base.d),
        unbounded,
        "violation",
        "one row of n, then steps 3 and 4: (0, 1) beside (x, 0) or (x, 1), a hypothesis tells which",
    ),
)
