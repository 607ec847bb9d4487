"""Mutants of the fingerprinting codes, and mistakes that an audit by tracing can make.

Source: catalogue 000_001_003, boneh_shaw_code, tardos_code and fingerprinting_dp_attack. Codes keep nothing private, so
that no mutant has a level.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from auditor.audits.adversaries.fingerprints import Bits, BlockCodebook, BonehShaw, Codebook, Tardos
from auditor.audits.adversaries.tracing import Tracing
from mechanisms.base.mechanism import FloatArray, IntArray, Mutant, Twin, tabulate_mutants
from mechanisms.lower_bounds.pirates import PiracyGame, PirateScores, SecondRelease

# ------------------------------------------------------------------------------------ Boneh and Shaw


@dataclass(frozen=True)
class UnpermutedColumns(BonehShaw):
    """Columns stand in the order of the blocks."""

    def generate(self, trials: int, rng: np.random.Generator) -> BlockCodebook:
        """Draw nothing."""
        del rng
        return BlockCodebook(self, self.ordered(trials))


@dataclass(frozen=True)
class FloatComparison(BonehShaw):
    """Traced is the first user whose rise, of means in floating point, is above 1/n."""

    def trace(self, sums: IntArray) -> IntArray:
        """Compare quotients, and strictly."""
        means = sums / self.block
        rises = means[:, 1:] - means[:, :-1] > 1 / self.users
        return np.where(rises.any(axis=1), rises.argmax(axis=1) + 1, 0)


@dataclass(frozen=True)
class TracingByElimination(BonehShaw):
    """If nobody before him is traced it must be the last user: so it is for feasible words, and for no others."""

    def trace(self, sums: IntArray) -> IntArray:
        """Never return 0."""
        found = super().trace(sums)
        return np.where(found == 0, self.users, found)


@dataclass(frozen=True)
class ReusedCode(SecondRelease):
    """Both releases have one code."""

    def earlier(self, book: BlockCodebook, rng: np.random.Generator) -> BlockCodebook:
        """The same."""
        del rng
        return book


# -------------------------------------------------------------------------------------------- Tardos


@dataclass(frozen=True)
class NoBiasCutoff(Tardos):
    """Biases from the whole of (0, 1)."""

    @property
    def cutoff(self) -> float:
        """None."""
        return 0.0


@dataclass(frozen=True)
class SwappedWeights(Tardos):
    """A one that the word shares adds ``sqrt(p / (1 - p))``, one that it does not takes ``sqrt((1 - p) / p)``."""

    def weights(self, tangents: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The other way round."""
        return tangents, 1 / tangents


@dataclass(frozen=True)
class PublishedBiases(Tardos):
    """Everybody knows the biases."""

    @property
    def published(self) -> bool:
        """They are."""
        return True


@dataclass(frozen=True)
class ZeroColumnsScored(Tardos):
    """Columns in which the word has a zero count as if it had a one."""

    def counted(self, values: Bits | FloatArray) -> Bits | FloatArray:
        """Every column is."""
        return np.ones_like(values)


# ------------------------------------------------------------------------------------------- tracing


@dataclass(frozen=True)
class CodeRowsSorted(Tracing):
    """The table is made anew, rows in the order of users, after a codeword has been replaced."""

    def members(self, dropped: IntArray, watched: IntArray, present: int) -> IntArray:
        """All rows between both users move by one."""
        return np.sort(super().members(dropped, watched, present), axis=1)


@dataclass(frozen=True)
class TracerSeesDropped(Tracing):
    """The tracer knows whose codeword is missing, and never accuses him."""

    def accused(self, book: Codebook, answers: FloatArray, dropped: IntArray, watched: IntArray, present: int) -> Bits:
        """Whether i* is accused, which he is not where it is his own that is missing."""
        return super().accused(book, answers, dropped, watched, present) & bool(present)


@dataclass(frozen=True)
class UncountedAccusations(Tracing):
    """An accusation of a user whose row is missing counts as false only where the word is feasible.

    So it is in the security of a code; but whether a word is feasible depends on the data, and is no event of outputs.
    """

    def accused(self, book: Codebook, answers: FloatArray, dropped: IntArray, watched: IntArray, present: int) -> Bits:
        """Whether i* is accused, and it counts."""
        found = super().accused(book, answers, dropped, watched, present)
        rows = book.rows(self.members(dropped, watched, present)) == 1
        word = answers > 0.5
        feasible = ((rows.any(axis=1) | ~word) & (~rows.all(axis=1) | word)).all(axis=1)
        return np.asarray(found & (feasible | bool(present)))


# --------------------------------------------------------------------------------------------- table


@dataclass(frozen=True)
class OtherCodeTwin:
    """Builds a mechanism whose code is of another class, with the same parameters (for `Mutant.build`)."""

    cls: type[BonehShaw] | type[Tardos]

    def __call__(self, base: PiracyGame | PirateScores) -> Any:
        """Return the mutant."""
        values: dict[str, Any] = {field.name: getattr(base, field.name) for field in fields(base)}
        code = self.cls(**{field.name: getattr(base.code, field.name) for field in fields(base.code)})
        return type(base)(**{**values, "code": code})


MUTANTS: dict[str, Mutant[Any]] = tabulate_mutants(
    Mutant(
        "permutation_omitted",
        OtherCodeTwin(UnpermutedColumns),
        None,
        "benign",
        "the block of a column is its place, so that pirates frame anyone but the first and the last",
    ),
    Mutant(
        "float_comparison",
        OtherCodeTwin(FloatComparison),
        None,
        "benign",
        "a word with the same rise from each block to the next is feasible, and nobody is traced",
    ),
    Mutant(
        "infeasible_word_as_proof",
        OtherCodeTwin(TracingByElimination),
        None,
        "benign",
        "guilt by elimination: a word of zeros, which is infeasible, is laid to the last user",
    ),
    Mutant(
        "code_reused",
        Twin(ReusedCode),
        None,
        "benign",
        "who helped with an earlier release is framed in a later one, of which he knows nothing",
    ),
    Mutant(
        "no_bias_cutoff",
        OtherCodeTwin(NoBiasCutoff),
        None,
        "benign",
        "weights are not bounded, as the proof needs them",
    ),
    Mutant(
        "weights_swapped", OtherCodeTwin(SwappedWeights), None, "benign", "scores of the innocent have no mean of 0"
    ),
    Mutant(
        "biases_published",
        OtherCodeTwin(PublishedBiases),
        None,
        "benign",
        "pirates choose the entries that lower their scores: nobody is accused",
    ),
    Mutant(
        "zero_columns_scored",
        OtherCodeTwin(ZeroColumnsScored),
        None,
        "benign",
        "the score does not depend on the word: nobody is accused",
    ),
    Mutant(
        "rows_shuffled",
        Twin(CodeRowsSorted),
        None,
        "benign",
        "rows sorted after the replacement: the tables differ in more than a row, and are no neighbours",
    ),
    Mutant(
        "tracer_sees_i",
        Twin(TracerSeesDropped),
        None,
        "benign",
        "the tracer never accuses the user it knows to be missing: a level for targets that release nothing",
    ),
    Mutant(
        "infeasible_accusations_uncounted",
        Twin(UncountedAccusations),
        None,
        "benign",
        "false accusations by infeasible words are left out: a level for targets that release nothing",
    ),
)
