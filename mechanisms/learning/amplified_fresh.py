"""The parity learners A and A* on fresh samples from a distribution, many runs at once.

Source: document 002, section 4, Lemmas 4.1 and 4.6; catalogue 002, parity_base_A (the sparse distribution),
parity_amplified_Astar and success_boosting_generic.

Examples are independent, and A looks at a random subset only, whose size is binomial: so only the rows of the subset
are drawn. The equations are solved, and checked, as they would be on any data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.learning.amplified_selection import CandidateSelection
from mechanisms.learning.boosting import NULL, BoostedLearner, TrainTestSplit
from mechanisms.learning.gf2 import BoolArray, Words, eliminate, inner, random_words
from mechanisms.learning.parity import MOST_BITS

#: Equations beyond d that are looked at first: uniform ones miss full rank with probability 2^-8 then.
_MARGIN = 8
#: Examples that are drawn together: 2^21 codes are 16 MB.
_TOGETHER = 1 << 21


class ParityErrorDistribution(Protocol):
    """A distribution of x, and the errors of parities on it.

    A parity errs where `wrong`, its code xor that of the target, is not orthogonal to x.
    """

    @property
    def d(self) -> int:
        """Number of bits."""
        ...

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator, /) -> IntArray:
        """Draw codes of x; int64."""
        ...

    def error(self, wrong: IntArray, /) -> FloatArray:
        """Probability that a parity errs; same shape as `wrong`."""
        ...


@dataclass(frozen=True)
class UniformBits:
    """All x are equally likely: every wrong parity has error 1/2."""

    d: int

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """See `ParityErrorDistribution.draw`."""
        return rng.integers(0, 1 << self.d, shape, dtype=np.int64)

    def error(self, wrong: IntArray) -> FloatArray:
        """See `ParityErrorDistribution.error`."""
        return np.where(np.asarray(wrong) == 0, 0.0, 0.5)


@dataclass(frozen=True)
class SparseBits:
    """x is a uniform unit vector with probability `mass`, and 0 otherwise: few rows say anything.

    The distribution on which the sample has to grow as 1/alpha; a parity with w wrong bits has error ``mass w / d``.
    """

    d: int
    mass: float

    def __post_init__(self) -> None:
        require(0 < self.mass <= 1, "a mass in (0, 1]", self.mass)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """See `ParityErrorDistribution.draw`."""
        # One uniform number says both whether x is 0, and which unit vector it is otherwise.
        place = np.floor(rng.random(shape) * (self.d / self.mass)).astype(np.int64)
        return np.where(place < self.d, np.int64(1) << np.minimum(place, self.d - 1), 0)

    def error(self, wrong: IntArray) -> FloatArray:
        """See `ParityErrorDistribution.error`."""
        return np.bitwise_count(np.asarray(wrong)) * (self.mass / self.d)


@dataclass(frozen=True)
class ParityOnFreshBlocks:
    """A on blocks of fresh examples that are labelled by a target; the data are the target's bits, shape (d,).

    Parameters
    ----------
    epsilon : float
        Level of A, at most 4.
    rows : int
        Examples of a block.
    distribution : ParityErrorDistribution
        Of x.
    """

    epsilon: float
    rows: int
    distribution: ParityErrorDistribution

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(self.epsilon <= 4, "epsilon <= 4", self.epsilon)
        require(isinstance(self.rows, (int, np.integer)) and self.rows >= 1, "rows >= 1", self.rows)
        require(1 <= self.distribution.d <= MOST_BITS, f"1 to {MOST_BITS} bits", self.distribution.d)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses, each from a block of its own; codes, int64 of shape (n,)."""
        require_draws(n)
        target = code_of(data, self.distribution.d)
        found = np.full(n, NULL, dtype=np.int64)
        going = np.flatnonzero(rng.random(n) >= 0.5)
        sizes = rng.binomial(self.rows, self.epsilon / 4.0, going.size)
        step = max(1, _TOGETHER // max(1, int(sizes.max(initial=1))))
        for start in range(0, going.size, step):
            some = sizes[start : start + step]
            x = self.distribution.draw((max(1, int(some.max())), some.size), rng).astype(np.uint64)
            # A zero row with label 0 says nothing: so blocks of different sizes are side by side.
            x[np.arange(len(x))[:, None] >= some] = 0
            labels = inner(x[None], np.uint64(target) * np.ones((1, 1, 1), dtype=np.uint64))
            solution, consistent = solve(x[None], labels, self.distribution.d, rng)
            found[going[start : start + step]] = np.where(consistent, solution[0].astype(np.int64), NULL)
        return found


def solve(x: Words, labels: BoolArray, d: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
    """A uniform solution of each of many systems of equations.

    Parameters
    ----------
    x : ndarray of shape (words, k, systems), uint64
        Left sides.
    labels : ndarray of shape (k, systems), bool
        Right sides.
    d : int
        Number of variables.
    rng : numpy.random.Generator

    Returns
    -------
    solution : ndarray of shape (words, systems), uint64
        Arbitrary where there is none.
    consistent : ndarray of shape (systems,), bool
        Whether there is one.

    Notes
    -----
    Equations are eliminated a few at a time. A system that has reached full rank has one solution at most, and the
    equations that are left are checked on it.
    """
    k, systems = labels.shape
    step = d + _MARGIN
    solution = np.zeros((x.shape[0], systems), dtype=np.uint64)
    consistent = np.ones(systems, dtype=np.bool_)
    echelon = eliminate(x[:, :step].copy(), labels[:step].copy())
    pending = np.arange(systems)
    for start in range(step, k + step, step):
        done = (echelon.rank == d) | (start >= k)
        which = pending[done]
        settled = echelon.take(done)
        solution[:, which] = settled.solutions(random_words(d, (which.size,), rng))
        consistent[which] = settled.consistent
        for left in range(start, k, step):  # in pieces, which stay in the cache
            wrong = (
                inner(x[:, left : left + step, which], solution[:, None, which]) != labels[left : left + step, which]
            )
            consistent[which] &= ~wrong.any(axis=0)
        pending, echelon = pending[~done], echelon.take(~done)
        if not pending.size:
            break
        echelon = echelon.extended(x[:, start : start + step, pending], labels[start : start + step, pending])
    return solution, consistent


@dataclass(frozen=True)
class FreshAmplified:
    """A* on fresh samples; the data are the target's bits, shape (d,).

    Parameters
    ----------
    epsilon : float
        Level of A, at most 4.
    split : TrainTestSplit
        Runs, rows of a block, test rows.
    selection : CandidateSelection
        How a candidate is chosen by its test errors.
    distribution : ParityErrorDistribution
        Of x.
    samples : int, optional
        Size of the sample; with fewer than ``split.needed`` A* stops and returns no hypothesis. Default enough.
    """

    epsilon: float
    split: TrainTestSplit
    selection: CandidateSelection
    distribution: ParityErrorDistribution
    samples: int | None = None

    def candidates(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` times k hypotheses; int64 of shape (n, k)."""
        learner = ParityOnFreshBlocks(self.epsilon, self.split.rows, self.distribution)
        return learner(data, n * self.split.rounds, rng).reshape(n, self.split.rounds)

    def errors(self, candidates: IntArray, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Errors of the candidates of each run on the same fresh test rows; int64 of shape (n, k)."""
        wrong = candidates ^ code_of(data, self.distribution.d)
        counts = np.where(candidates == NULL, self.split.tests, 0)
        erring = (candidates != NULL) & (wrong != 0)
        # A parity that is right everywhere makes no error on any test row: those need not be drawn.
        runs = np.flatnonzero(erring.any(axis=1))
        step = max(1, _TOGETHER // self.split.tests)
        for start in range(0, runs.size, step):
            some = runs[start : start + step]
            x = self.distribution.draw((some.size, self.split.tests), rng)
            for j in range(self.split.rounds):
                at = np.flatnonzero(erring[some, j])
                parity = np.bitwise_count(x[at] & wrong[some[at], j, None]) & 1
                counts[some[at], j] = parity.sum(axis=1)
        return counts

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses, each from a sample of its own; codes, int64 of shape (n,)."""
        require_draws(n)
        if self.samples is not None and self.samples < self.split.needed:
            return np.full(n, NULL, dtype=np.int64)
        candidates = self.candidates(data, n, rng)
        chosen = self.selection.choose(self.errors(candidates, data, rng), rng)
        return np.take_along_axis(candidates, chosen[:, None], axis=1)[:, 0]


@dataclass(frozen=True)
class AmplifiedWithoutRuns:
    """A* with the printed number of runs, which is negative: there is no candidate, and so no hypothesis. A mutant.

    Parameters
    ----------
    rounds : int
        At most 0.
    """

    rounds: int

    def __post_init__(self) -> None:
        require(self.rounds <= 0, "no round", self.rounds)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Return `NULL` for `n` runs; int64 of shape (n,)."""
        del data, rng
        require_draws(n)
        return np.full(n, NULL, dtype=np.int64)


@dataclass(frozen=True)
class TrueErrorOfHypothesis:
    """Error of a hypothesis on the distribution that the sample is from; 1 for none.

    Parameters
    ----------
    distribution : ParityErrorDistribution
    target : int
        Code of the target.
    """

    distribution: ParityErrorDistribution
    target: int

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n hypotheses of shape (n,), or of (n, k)."""
        codes = np.asarray(outputs, dtype=np.int64)
        return np.where(codes == NULL, 1.0, self.distribution.error(codes ^ self.target))


@dataclass(frozen=True)
class FreshCandidates:
    """The k candidates of A* on fresh samples, untested."""

    amplified: FreshAmplified

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` times k hypotheses; codes, int64 of shape (n, k)."""
        require_draws(n)
        return self.amplified.candidates(data, n, rng)


class SampleSource(Protocol):
    """Draws databases of labelled examples."""

    def __call__(self, data: Dataset, rows: int, rng: np.random.Generator, /) -> Any:
        """Draw `rows` examples, labelled by the target that `data` says."""
        ...


@dataclass(frozen=True)
class ParityRows:
    """Rows of bits and a label, as in `mechanisms.learning.parity`; the data are the target's bits, shape (d,)."""

    distribution: ParityErrorDistribution

    def __call__(self, data: Dataset, rows: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Draw examples; uint8 of shape (rows, d + 1)."""
        d = self.distribution.d
        x = self.distribution.draw((rows,), rng)
        labels = np.bitwise_count(x & code_of(data, d)) & 1
        return np.column_stack([x[:, None] >> np.arange(d) & 1, labels]).astype(np.uint8)


@dataclass(frozen=True)
class BoostedOnFreshSamples:
    """A boosted learner, each run on a whole sample of its own: one call of the learner a draw.

    Parameters
    ----------
    boosted : BoostedLearner
        Reads ``boosted.split.needed`` rows.
    samples : SampleSource
        Draws them.
    """

    boosted: BoostedLearner
    samples: SampleSource

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        require_draws(n)
        rows = self.boosted.split.needed
        return np.concatenate([self.boosted(self.samples(data, rows, rng), 1, rng) for _ in range(n)])


def code_of(bits: Dataset, d: int) -> int:
    """Code of a target that is given as bits; ValueError if those are not `d` zeros and ones."""
    found = np.asarray(bits)
    require(found.shape == (d,) and bool(np.isin(found, (0, 1)).all()), f"{d} bits", bits)
    return int(found.astype(np.int64) @ (1 << np.arange(d, dtype=np.int64)))


def uniform_success(epsilon: float, rows: int, d: int) -> float:
    """Probability that one run of A on `rows` uniform examples outputs the target.

    Half of the mean of ``2^(rank - d)`` over a binomial number of uniform equations: the rank r goes to r + 1 with
    probability ``1 - 2^(r - d)``.
    """
    p = epsilon / 4.0
    rank = np.zeros(d + 1)
    rank[0] = 1.0
    up = 1.0 - 2.0 ** (np.arange(d + 1) - d)
    weight, total = math.exp(rows * math.log1p(-p)), 0.0
    share = 2.0 ** (np.arange(d + 1) - d)
    for m in range(rows + 1):
        total += weight * float(rank @ share)
        rank = rank * (1.0 - up) + np.concatenate([[0.0], (rank * up)[:-1]])
        weight *= (rows - m) / (m + 1) * p / (1.0 - p)
    return 0.5 * total
