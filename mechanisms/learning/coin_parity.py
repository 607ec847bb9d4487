"""The private parity learner of the lecture notes: a coin, a random subset of the rows, a uniform consistent parity.

It is the learner of `parity` with another probability for a row: the rows that are not kept are replaced by
(0^d, 0), which every parity agrees with, so keeping a row and taking it into the subset are the same.

Source: document 003, section 9.1, Theorem 9.1.1; catalogue 000_001_003, private_parity_learner.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mechanism,
    Mutant,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import draw_index
from mechanisms.learning.gf2 import BoolArray, Words, eliminate, unpack
from mechanisms.learning.parity import MOST_BITS, NULL, MergedEquations, PrivateParityLearner, SubsetLearner
from mechanisms.learning.parity_mutants import DeterministicSolution

#: Residual of a real solution up to which it is one: rows have entries 0 and 1, so rounding is about 1e-13. Arbitrary.
_SOLVED = 1e-6


@dataclass(frozen=True)
class CoinParity(PrivateParityLearner):
    """With probability 1/2 nothing; otherwise keep each row with probability epsilon, and publish a consistent parity.

    Parameters
    ----------
    epsilon : float
        In (0, 1): the probability that a row is kept. The exact pure level is `exact_epsilon`, ``ln((1 + eps) /
        (1 - eps))``, which the document rounds to 2 epsilon, as it says.
    d : int
        Number of bits.

    Notes
    -----
    Outputs are codes of parities, and -1 for none; see `SubsetLearner`. The distribution is by enumeration of the 2^n
    sets of rows kept.
    """

    highest: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon < self.highest, f"epsilon < {self.highest}", self.epsilon)

    @property
    def p(self) -> float:
        """Probability that a row is kept."""
        return self.epsilon


@dataclass(frozen=True)
class FirstHypothesisOfBatches:
    """The learner on disjoint batches of equal size, one after the other, until one gives a hypothesis.

    One row is in one batch, so the level is that of a single run.

    Parameters
    ----------
    learner : Mechanism
        Gives codes, -1 for none.
    batches : int
        At least 1; the rows of the data must be a multiple of it.
    """

    learner: Mechanism
    batches: int

    def __post_init__(self) -> None:
        require(isinstance(self.batches, int) and self.batches >= 1, "a number of batches >= 1", self.batches)

    def parts(self, data: Dataset) -> list[Any]:
        """What each run is given."""
        rows = np.asarray(data)
        require(len(rows) % self.batches == 0, f"rows for {self.batches} batches of equal size", len(rows))
        return np.split(rows, self.batches)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution: the sum over the batches that are the first to give a hypothesis."""
        laws = [self.learner.law(part) for part in self.parts(data)]  # type: ignore[attr-defined]
        total, none = np.zeros(len(laws[0].outcomes)), 1.0
        for one in laws:
            total[1:] += none * one.probabilities[1:]
            none *= one.probabilities[0]
        total[0] = none
        return FiniteLaw(laws[0].outcomes, total)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` codes; int64 of shape (n,)."""
        require_draws(n)
        found = np.full(n, NULL, dtype=np.int64)
        for part in self.parts(data):
            left = np.flatnonzero(found == NULL)
            if not len(left):
                break
            found[left] = self.learner(part, len(left), rng)
        return found


@dataclass(frozen=True)
class FreshBatches(FirstHypothesisOfBatches):
    """Runs that draw their samples themselves: the data are a parity, the learner a `ParityOnFreshSamples`."""

    def parts(self, data: Dataset) -> list[Any]:
        """The same parity for each."""
        return [data] * self.batches


def uniform_rows(d: int, epsilon: float) -> int:
    """Rows with which a run finds the parity with probability 0.49, for uniform x: ``(k + 3 sqrt(k)) / epsilon``.

    With ``k = d + 7``: so many rows are kept but for three standard deviations, and as many have rank d with
    probability ``1 - 2^-7``.
    """
    kept = d + 7
    return math.ceil((kept + 3.0 * math.sqrt(kept)) / epsilon)


def any_rows(d: int, epsilon: float) -> int:
    """Rows with which a run that goes on has error 0.01 with probability 0.99, for any distribution of x.

    ``100 (d ln 2 + ln 100) / epsilon``: a parity of error above 0.01 agrees with the rows kept with probability
    ``(1 - 0.01 epsilon)^n`` at most, which is ``2^-d / 100`` at most.
    """
    return math.ceil(100.0 * (d * math.log(2.0) + math.log(100.0)) / epsilon)


# ----------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class NoCoin(CoinParity):
    """Nothing but a contradiction leads to no hypothesis."""

    @property
    def stop(self) -> float:
        """Never."""
        return 0.0


@dataclass(frozen=True)
class FixedRepresentative(DeterministicSolution, CoinParity):
    """What the rows leave open is 0."""


@dataclass(frozen=True)
class FixedNumberOfKeptRows(CoinParity):
    """Exactly ``floor(epsilon n)`` rows are kept, all such sets alike; the sets are listed."""

    merged: ClassVar[bool] = False

    def drawn_subsets(self, read: MergedEquations) -> tuple[BoolArray, FloatArray]:
        """Sets of that size, each with the same probability."""
        rows = len(read.y)
        # A part of 1e-9 of a row is rounding: 0.29 * 100 is below 29.
        sets = list(itertools.combinations(range(rows), math.floor(self.p * rows + 1e-9)))
        drawn = np.zeros((len(sets), rows), dtype=np.bool_)
        for i, some in enumerate(sets):
            drawn[i, list(some)] = True
        return drawn, np.full(len(sets), 1.0 / len(sets))

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """By enumeration of the sets, however many rows."""
        return SubsetLearner.solve(self, read, n, rng)


@dataclass(frozen=True)
class BatchReused(FirstHypothesisOfBatches):
    """All runs are given the first batch."""

    def parts(self, data: Dataset) -> list[Any]:
        """The first one, as often as there are runs."""
        return [super().parts(data)[0]] * self.batches


@dataclass(frozen=True)
class EliminationOverTheReals(CoinParity):
    """Elimination over the reals: the least solution of ``<x, h> = y``, rounded, modulo 2; none if there is none."""

    merged: ClassVar[bool] = False

    def real(self, read: MergedEquations, kept: BoolArray) -> tuple[IntArray, BoolArray]:
        """Codes for sets of rows of shape (sets, rows), shape (sets,), and where there is no solution."""
        require(self.d <= MOST_BITS, f"at most {MOST_BITS} bits", self.d)
        x, mask = unpack(read.x, self.d).T.astype(np.float64), kept.astype(np.float64)
        gram = (mask @ (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)).reshape(-1, self.d, self.d)
        right = (mask * read.y) @ x
        found = (np.linalg.pinv(gram, hermitian=True) @ right[:, :, None])[:, :, 0]
        none = (np.abs(found @ x.T - read.y) * mask).max(axis=1) > _SOLVED
        # Least solutions have many halves; a little more than 1/2 takes all of them up, whatever their rounding.
        bits = np.floor(np.where(none[:, None], 0.0, found) + 0.5 + _SOLVED).astype(np.int64) % 2
        codes: IntArray = bits @ (1 << np.arange(self.d))
        return codes, np.asarray(none, dtype=np.bool_)

    def given(self, read: MergedEquations, drawn: BoolArray) -> FloatArray:
        """All mass on one output."""
        codes, none = self.real(read, drawn)
        return np.asarray(np.where(none, 0, codes + 1)[:, None] == np.arange(2**self.d + 1), dtype=np.float64)

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Steps 3 and 4 for `n` runs."""
        codes, none = self.real(read, rng.random((n, len(read.y))) < self.p)
        return codes.astype(np.uint64)[None], none


@dataclass(frozen=True)
class KeptRowsRevealed(CoinParity):
    """The sample, rows kept and zeros, is published beside the hypothesis.

    Outputs have one column more than there are rows: the code of the hypothesis, then that of each row, bit d being the
    label, or 0 if it was not kept. Where the coin says so they are -1 and zeros.
    """

    merged: ClassVar[bool] = False

    def _codes(self, read: MergedEquations) -> IntArray:
        """Code of each row, shape (rows,)."""
        label = read.y.astype(np.int64) << self.d
        return np.asarray(read.x[0].astype(np.int64) + label, dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution, over tuples."""
        read = self.read(data)
        drawn, mass = self.drawn_subsets(read)
        given, rows = self.given(read, drawn), np.where(drawn, self._codes(read), 0)
        known = {(NULL, *[0] * len(read.y)): self.stop}
        for i, j in np.argwhere(given > 0).tolist():
            outcome = (j - 1, *rows[i].tolist())
            known[outcome] = known.get(outcome, 0.0) + (1.0 - self.stop) * float(mass[i] * given[i, j])
        return FiniteLaw(tuple(known), np.array(list(known.values())))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.signedinteger]:
        """Draw `n` outputs; int64 of shape (n, 1 + rows)."""
        require_draws(n)
        read = self.read(data)
        drawn, mass = self.drawn_subsets(read)
        which, systems = draw_index(mass, n, rng), self.systems(read, drawn)
        found = systems.solutions(self.free_bits(n, rng), which)[0].astype(np.int64)
        code = np.where(systems.consistent[which], found, NULL)
        outputs: IntArray = np.concatenate([code[:, None], np.where(drawn[which], self._codes(read), 0)], axis=1)
        outputs[rng.random(n) < self.stop] = [NULL, *[0] * len(read.y)]
        return outputs


@dataclass(frozen=True)
class ZeroRowsDropped(CoinParity):
    """Rows that are not kept are left out instead of replaced by zeros: systems of as many equations as were kept."""

    merged: ClassVar[bool] = False

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Steps 3 and 4, for runs with equally many rows together."""
        kept = rng.random((n, len(read.y))) < self.p
        found, none = self.free_bits(n, rng), np.zeros(n, dtype=np.bool_)
        numbers = kept.sum(axis=1)
        for number in np.unique(numbers).tolist():
            runs = np.flatnonzero(numbers == number)
            rows = np.nonzero(kept[runs])[1].reshape(len(runs), number).T
            systems = eliminate(read.x[:, rows], read.y[rows])
            found[:, runs], none[runs] = systems.solutions(found[:, runs]), ~systems.consistent
        return found, none


MUTANTS: dict[str, Mutant[Any]] = tabulate_mutants(
    Mutant("no_coin", Twin(NoCoin), unbounded, "violation", "no null but for a contradiction: it shows one"),
    Mutant(
        "fixed_representative",
        Twin(FixedRepresentative),
        unbounded,
        "violation",
        "what is open is 0: (v, 1) leads to hypotheses that (v, 0) never does",
    ),
    Mutant(
        "fixed_size_sample",
        Twin(FixedNumberOfKeptRows),
        unbounded,
        "violation",
        "exactly floor(eps n) rows: beside contradictory rows, a hypothesis says that this row was kept",
    ),
    Mutant(
        "batch_reused",
        Twin(BatchReused),
        None,
        "violation",
        "one batch for all t runs: t nulls in a row cost t ln(1 + eps)",
    ),
    Mutant(
        "real_arithmetic", Twin(EliminationOverTheReals), None, "benign", "elimination over the reals finds no parity"
    ),
    Mutant("kept_rows_revealed", Twin(KeptRowsRevealed), unbounded, "violation", "the rows kept are published"),
    Mutant(
        "zero_rows_dropped",
        Twin(ZeroRowsDropped),
        lambda base: base.exact_epsilon,
        "benign",
        "rows that are not kept are left out: the same distribution",
    ),
)
