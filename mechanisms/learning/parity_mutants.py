"""Wrong twins of the private parity learner, and variants that look wrong and are not.

Source: document 002, section 4; catalogue 002, parity_base_A.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import draw_index
from mechanisms.learning.gf2 import BoolArray, EchelonSystems, Words, inner, pack, random_words, unpack, words
from mechanisms.learning.parity import (
    NULL,
    MergedEquations,
    PrivateParityLearner,
    SubsetLearner,
    equations,
    hypotheses,
    labelled,
)
from mechanisms.learning.parity_levels import biased_level, level_of_null, level_of_one_row, resampling_level

#: What `DistinguishableNulls` publishes where the rows contradict each other.
CONTRADICTION = -2


# --------------------------------------------------------------------------- other probabilities


@dataclass(frozen=True)
class RowTakenWithHalfEpsilon(SubsetLearner):
    """A row is taken with probability epsilon/2."""

    @property
    def p(self) -> float:
        """Twice the right one."""
        return self.epsilon / 2.0


@dataclass(frozen=True)
class RowTakenWithEpsilon(SubsetLearner):
    """A row is taken with probability epsilon."""

    @property
    def p(self) -> float:
        """Four times the right one."""
        return self.epsilon


@dataclass(frozen=True)
class NoSubsampling(SubsetLearner):
    """All rows are taken."""

    @property
    def p(self) -> float:
        """Certainly."""
        return 1.0


@dataclass(frozen=True)
class StepOneMissing(SubsetLearner):
    """Nothing but a contradiction leads to a null."""

    @property
    def stop(self) -> float:
        """Never."""
        return 0.0


@dataclass(frozen=True)
class StepOneRare(SubsetLearner):
    """Step 1 stops with probability 1/20."""

    @property
    def stop(self) -> float:
        """1/20, of the catalogue's two examples the one that breaks the claim at epsilon = 0.5."""
        return 0.05


@dataclass(frozen=True)
class StepOneJustEnough(SubsetLearner):
    """Step 1 stops with the least probability at which a null costs no more than epsilon."""

    @property
    def stop(self) -> float:
        """``p / (e^epsilon - 1 + p)``."""
        return self.p / (math.expm1(self.epsilon) + self.p)


@dataclass(frozen=True)
class ExactBudget(SubsetLearner):
    """The variant whose level is exactly epsilon, for every epsilon > 0."""

    @property
    def p(self) -> float:
        """``tanh(epsilon / 2)``, so that ``(1 + p) / (1 - p) = e^epsilon``."""
        return math.tanh(self.epsilon / 2.0)

    @property
    def stop(self) -> float:
        """``1 / (e^epsilon + 2)``."""
        return 1.0 / (math.exp(self.epsilon) + 2.0)


# ------------------------------------------------------------------------------- other subsets


@dataclass(frozen=True)
class FixedSizeSubset(SubsetLearner):
    """As many rows as `size` are taken, all such subsets alike."""

    size: int = 1
    merged: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.size, int) and self.size >= 1, "a sample size >= 1", self.size)

    def drawn_subsets(self, read: MergedEquations) -> tuple[BoolArray, FloatArray]:
        """Subsets of that size, each with the same probability."""
        every, _ = super().drawn_subsets(read)
        mass = every.sum(axis=1) == min(self.size, len(read.y))
        return every, mass / mass.sum()


@dataclass(frozen=True)
class SampleWithReplacement(FixedSizeSubset):
    """`size` rows are drawn one after the other, each from all rows."""

    size: int = 2

    def drawn_subsets(self, read: MergedEquations) -> tuple[BoolArray, FloatArray]:
        """Subsets of distinct rows, with the probability that these are the rows drawn."""
        rows = len(read.y)
        every, _ = super().drawn_subsets(read)
        mass = np.zeros(2**rows)
        mass[0] = 1.0
        codes = np.arange(2**rows)
        for _ in range(self.size):
            following = np.zeros(2**rows)
            for row in range(rows):
                np.add.at(following, codes | 1 << row, mass / rows)
            mass = following
        return every, mass


@dataclass(frozen=True)
class SampleByContentHash(SubsetLearner):
    """A row is taken if the checksum of its bits is small: no coin is tossed."""

    @property
    def p(self) -> float:
        """What `read` leaves is taken."""
        return 1.0

    def takes(self, row: NDArray[np.uint8]) -> bool:
        """Whether a row is taken: a part epsilon/4 of all rows is."""
        return zlib.crc32(row.tobytes()) < self.epsilon / 4.0 * 2.0**32

    def read(self, data: Dataset) -> MergedEquations:
        """The rows that are taken."""
        rows = labelled(data, self.d)
        return equations(rows[[self.takes(row) for row in rows]])


@dataclass(frozen=True)
class ResampleUntilConsistent(SubsetLearner):
    """Subsets are drawn until one has no contradiction; only step 1 leads to a null."""

    def given(self, read: MergedEquations, drawn: BoolArray) -> FloatArray:
        """Distributions given the subsets; none given a contradiction."""
        found = super().given(read, drawn)
        found[found[:, 0] > 0] = 0.0
        return found

    def law(self, data: Dataset) -> FiniteLaw:
        """The distribution of the first subset without a contradiction."""
        mass, given = self.subset_law(data)
        law = mass @ given
        law *= (1.0 - self.stop) / law.sum()
        law[0] = self.stop
        return FiniteLaw((NULL, *range(2**self.d)), law)

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Draw again where there is a contradiction."""
        drawn, mass = self.drawn_subsets(read)
        systems = self.systems(read, drawn)
        which = draw_index(mass, n, rng)
        again = np.flatnonzero(~systems.consistent[which])
        while len(again):  # the empty subset is consistent, and has a positive probability
            which[again] = draw_index(mass, len(again), rng)
            again = again[~systems.consistent[which[again]]]
        return systems.solutions(self.free_bits(n, rng), which), np.zeros(n, dtype=np.bool_)


@dataclass(frozen=True)
class ZeroRowsIgnored(SubsetLearner):
    """Rows (0, 1), which no parity agrees with, are left out."""

    def read(self, data: Dataset) -> MergedEquations:
        """Rows that some parity agrees with."""
        read = super().read(data)
        some = read.x.any(axis=0) | ~read.y
        return MergedEquations(read.x[:, some], read.y[some], read.times[some])


# ------------------------------------------------------------------------------- other answers


@dataclass(frozen=True)
class DistinguishableNulls(SubsetLearner):
    """A null says why: -1 for step 1, -2 for a contradiction."""

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution."""
        mass, given = self.subset_law(data)
        law = (1.0 - self.stop) * (mass @ given)
        return FiniteLaw((CONTRADICTION, NULL, *range(2**self.d)), np.insert(law, 1, self.stop))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.signedinteger]:
        """Draw `n` codes; int64 of shape (n,)."""
        require_draws(n)
        found, none = self.solve(self.read(data), n, rng)
        codes = np.where(none, np.int64(CONTRADICTION), found[0].astype(np.int64))
        return np.where(rng.random(n) < self.stop, np.int64(NULL), codes)


@dataclass(frozen=True)
class DeterministicSolution(SubsetLearner):
    """The least solution, in the order in which bit d - 1 counts most: all that is open is 0."""

    def given(self, read: MergedEquations, drawn: BoolArray) -> FloatArray:
        """All mass on the least code that agrees."""
        found = self.agreeing(read, drawn)
        first = found & (np.cumsum(found, axis=1) == 1)
        return np.concatenate([~found.any(axis=1, keepdims=True), first], axis=1).astype(np.float64)

    def free_bits(self, n: int, rng: np.random.Generator) -> Words:
        """Zeros."""
        del rng
        return np.zeros((words(self.d), n), dtype=np.uint64)


@dataclass(frozen=True)
class BiasedFreeVariables(SubsetLearner):
    """What the equations leave open is 1 with probability 1/8."""

    #: Far enough from 1/2 for epsilon = 0.5 to be broken by one row; otherwise arbitrary.
    bias: ClassVar[float] = 0.125

    def given(self, read: MergedEquations, drawn: BoolArray) -> FloatArray:
        """Products over the variables that are open; which are is known from the elimination."""
        found, pivots = self.agreeing(read, drawn), self.systems(read, drawn).pivots()
        bits = unpack(hypotheses(self.d), self.d).astype(bool)  # (d, 2^d)
        bound = unpack(pivots, self.d).astype(bool)  # (d, subsets)
        factors = np.where(bits, self.bias, 1.0 - self.bias)
        mass = found * np.where(bound[:, :, None], 1.0, factors[:, None]).prod(axis=0)
        return np.concatenate([~found.any(axis=1, keepdims=True), mass], axis=1)

    def free_bits(self, n: int, rng: np.random.Generator) -> Words:
        """Bits of a biased coin."""
        return pack(rng.random((self.d, n)) < self.bias)


@dataclass(frozen=True)
class UniformOnInconsistency(SubsetLearner):
    """Where no parity agrees, a uniform one is published."""

    def given(self, read: MergedEquations, drawn: BoolArray) -> FloatArray:
        """The uniform distribution for subsets with a contradiction."""
        found = super().given(read, drawn)
        found[found[:, 0] > 0] = np.append(0.0, np.full(2**self.d, 2.0**-self.d))
        return found

    def solve(self, read: MergedEquations, n: int, rng: np.random.Generator) -> tuple[Words, BoolArray]:
        """Uniform bits where there is no solution."""
        found, none = super().solve(read, n, rng)
        return np.where(none, random_words(self.d, (n,), rng), found), np.zeros(n, dtype=np.bool_)


@dataclass(frozen=True)
class ConflictsDropped(SubsetLearner):
    """Rows that contradict those before them are left out of the subset."""

    def agreeing(self, read: MergedEquations, drawn: BoolArray) -> BoolArray:
        """Hypotheses that agree with what is left of each subset."""
        wrong = inner(read.x[:, :, None], hypotheses(self.d)[:, None]) != read.y[:, None]
        found = np.ones((len(drawn), 2**self.d), dtype=np.bool_)
        for run in range(len(read.y)):
            following = found & ~(drawn[:, run, None] & wrong[run])
            found = np.where(following.any(axis=1, keepdims=True), following, found)
        return found

    def systems(self, read: MergedEquations, drawn: BoolArray) -> EchelonSystems:
        """The equations of each subset without those that contradict the ones before them."""
        return replace(super().systems(read, drawn), consistent=np.ones(len(drawn), dtype=np.bool_))


MUTANTS: dict[str, Mutant[PrivateParityLearner]] = tabulate_mutants(
    Mutant(
        "p_half_eps",
        Twin(RowTakenWithHalfEpsilon),
        lambda base: level_of_one_row(base.epsilon / 2.0),
        "violation",
        "p = eps/2: ln((1 + eps/2)/(1 - eps/2)), eps^3/12 above the claim",
    ),
    Mutant(
        "p_eps",
        Twin(RowTakenWithEpsilon),
        lambda base: level_of_one_row(base.epsilon),
        "violation",
        "p = eps: 2 atanh(eps), one row (x, 0) or (x, 1)",
    ),
    Mutant("no_subsampling", Twin(NoSubsampling), unbounded, "violation", "p = 1: one row (x, 0) or (x, 1)"),
    Mutant(
        "step_one_missing",
        Twin(StepOneMissing),
        unbounded,
        "violation",
        "a null is a contradiction: (0, 1) against (0, 0)",
    ),
    Mutant(
        "step_one_rare",
        Twin(StepOneRare),
        lambda base: level_of_null(base.epsilon / 4.0, 0.05),
        "violation",
        "step 1 stops with probability 0.05: ln(1 - p + p/0.05) for a null, (0, 1) against (0, 0)",
    ),
    Mutant(
        "distinguishable_nulls",
        Twin(DistinguishableNulls),
        unbounded,
        "violation",
        "the null says that there was a contradiction: (0, 1) against (0, 0)",
    ),
    Mutant(
        "fixed_size_sample",
        Twin(FixedSizeSubset),
        unbounded,
        "violation",
        "exactly m rows: with m = 1, (0, 1) beside (x, 0) or (x, 1), a hypothesis tells which",
    ),
    Mutant(
        "sample_with_replacement",
        Twin(SampleWithReplacement),
        unbounded,
        "violation",
        "m draws with replacement: with m = 2, (0, 1) beside (x, 0) or (x, 1)",
    ),
    Mutant(
        "deterministic_solution",
        Twin(DeterministicSolution),
        unbounded,
        "violation",
        "the least solution: (x, 1) leads to hypotheses that (x, 0) never does",
    ),
    Mutant(
        "biased_free_variables",
        Twin(BiasedFreeVariables),
        lambda base: biased_level(base.epsilon / 4.0, BiasedFreeVariables.bias),
        "violation",
        "what is open is 1 with probability 1/8: ln(1 + 8p/(1-p))",
    ),
    Mutant(
        "uniform_on_inconsistency",
        Twin(UniformOnInconsistency),
        unbounded,
        "violation",
        "a uniform parity for a contradiction: ln(1/(1-p) + p(1-p)^-n) on n rows, unbounded in n",
    ),
    Mutant(
        "conflicts_dropped_greedily",
        Twin(ConflictsDropped),
        unbounded,
        "violation",
        "the first row wins over all that contradict it: ln(1 + 2p(1-p)^-n) on n rows, unbounded in n",
    ),
    Mutant(
        "resample_until_consistent",
        Twin(ResampleUntilConsistent),
        lambda base: resampling_level(base.epsilon / 4.0),
        "benign",
        "no null for a contradiction: up to ln((1+p)/(1-p)^2), which is at most eps up to 2.599",
    ),
    Mutant(
        "sampling_by_content_hash",
        Twin(SampleByContentHash),
        unbounded,
        "violation",
        "the subset is a function of the rows: a row that is taken is never contradicted",
    ),
    Mutant("exact_budget_variant", Twin(ExactBudget), lambda base: base.epsilon, "benign", "exactly epsilon"),
    Mutant(
        "step_one_just_enough",
        Twin(StepOneJustEnough),
        lambda base: base.epsilon,
        "benign",
        "step 1 with probability (eps/4)/(e^eps - 1 + eps/4): a null costs exactly epsilon",
    ),
    Mutant(
        "inconsistent_zero_rows_ignored",
        Twin(ZeroRowsIgnored),
        lambda base: level_of_one_row(base.epsilon / 4.0),
        "benign",
        "rows (0, 1) are skipped: as private as the reference",
    ),
)
