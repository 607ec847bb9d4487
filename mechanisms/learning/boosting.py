"""Boosting of a private learner's probability of success: disjoint blocks, candidates, private selection.

A learner that succeeds with probability gamma is run on k disjoint blocks of the sample, and one of the k hypotheses
is chosen by its errors on fresh test rows, privately. A row is in one block or in the test part, so under replace-one
the whole is as private as the learner or the selection, whichever is worse.

Source: document 002, section 4, algorithm A* (steps 3 to 6) and Lemma 4.5; catalogue 002, success_boosting_generic and
parity_amplified_Astar.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from auditor.privacy.exact import FiniteLaw, ProductLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, Mutant, require, require_draws, tabulate_mutants
from mechanisms.learning.amplified_selection import CandidateSelection, NoiselessErrorCounts, NoisyErrorCounts, clamped

#: Code of "no hypothesis".
NULL = -1


class BaseLearner(Protocol):
    """A private learner whose hypotheses are numbered; `NULL` stands for none."""

    @property
    def epsilon(self) -> float:
        """Its claimed pure level."""
        ...

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator, /) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        ...

    def law(self, data: Dataset, /) -> FiniteLaw:
        """Exact distribution of the hypothesis."""
        ...


class CountsErrors(Protocol):
    """Counts the rows whose label a hypothesis gets wrong."""

    def __call__(self, hypotheses: IntArray, rows: Dataset, /) -> IntArray:
        """Return counts of the shape of `hypotheses`, of which none is `NULL`."""
        ...


@dataclass(frozen=True)
class TrainTestSplit:
    """Which rows train which run, and which rows test: public ranges of positions.

    Parameters
    ----------
    rounds : int
        Runs of the learner, k >= 1.
    rows : int
        Rows of a block, n' >= 1.
    tests : int
        Rows of the test part, s >= 1. Rows after it are not read.
    """

    rounds: int
    rows: int
    tests: int

    def __post_init__(self) -> None:
        for name in ("rounds", "rows", "tests"):
            value = getattr(self, name)
            require(isinstance(value, (int, np.integer)) and int(value) >= 1, f"an integer {name} >= 1", value)

    @property
    def needed(self) -> int:
        """Rows that the data must have, ``k n' + s``."""
        return self.rounds * self.rows + self.tests

    def block(self, data: Dataset, j: int) -> Any:
        """Rows that run j is trained on."""
        return data[j * self.rows : (j + 1) * self.rows]

    def test_part(self, data: Dataset) -> Any:
        """Rows that candidates are tested on."""
        return data[self.rounds * self.rows : self.needed]


@dataclass(frozen=True)
class SameTrainingBlock(TrainTestSplit):
    """All runs are trained on the first block: a row costs k runs. A mutant."""

    def block(self, data: Dataset, j: int) -> Any:
        """Rows of the first block."""
        del j
        return super().block(data, 0)


@dataclass(frozen=True)
class ReusedTraining(TrainTestSplit):
    """The last rows of the training part are the test part: such a row is paid twice. A mutant."""

    def test_part(self, data: Dataset) -> Any:
        """The last `tests` rows of the training part."""
        end = self.rounds * self.rows
        return data[max(0, end - self.tests) : end]


# ------------------------------------------------------------------------------- what is released


@dataclass(frozen=True)
class _Rounds:
    """What all releases share: k runs of the learner, and errors on the test part."""

    learner: BaseLearner
    count: CountsErrors
    split: TrainTestSplit
    selection: CandidateSelection

    @property
    def epsilon(self) -> float:
        """The claimed level, that of the learner."""
        return self.learner.epsilon

    def checked(self, data: Dataset) -> Dataset:
        """Return the data; ValueError if they have too few rows."""
        require(len(data) >= self.split.needed, f"at least {self.split.needed} rows", len(data))
        return data

    def candidates(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` times k hypotheses; int64 of shape (n, k)."""
        require_draws(n)
        found = np.empty((n, self.split.rounds), dtype=np.int64)
        for block, runs in self.blocks(data):
            found[:, runs] = self.learner(block, n * len(runs), rng).reshape(n, len(runs))
        return found

    def blocks(self, data: Dataset) -> list[tuple[Any, list[int]]]:
        """Different blocks, each with the runs that are trained on it; equal ones share calls of the learner."""
        data = self.checked(data)
        groups: dict[bytes, tuple[Any, list[int]]] = {}
        for j in range(self.split.rounds):
            block = np.asarray(self.split.block(data, j))
            groups.setdefault(block.tobytes(), (block, []))[1].append(j)
        return list(groups.values())

    def laws(self, data: Dataset) -> list[FiniteLaw]:
        """Exact distribution of each candidate; they are independent."""
        known = {j: law for block, runs in self.blocks(data) for law in [self.learner.law(block)] for j in runs}
        return [known[j] for j in range(self.split.rounds)]

    def errors(self, candidates: IntArray, data: Dataset) -> IntArray:
        """Errors on the test part, same shape as `candidates`; no hypothesis errs on every row."""
        tests = self.split.test_part(data)
        counts = np.full(candidates.shape, len(tests), dtype=np.int64)
        there = candidates != NULL
        counts[there] = self.count(candidates[there], tests)
        return counts


@dataclass(frozen=True)
class ReleasedCandidates(_Rounds):
    """Releases all hypotheses, and no errors: what the blocks alone cost."""

    @property
    def lowest(self) -> int:
        """Least value of a coordinate."""
        return NULL

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` releases; int64 of shape (n, k)."""
        return self.candidates(data, n, rng)

    def law(self, data: Dataset) -> ProductLaw:
        """Exact distribution on `data`."""
        return ProductLaw(tuple(self.laws(data)))


@dataclass(frozen=True)
class JointRelease(_Rounds):
    """Releases all hypotheses together with their noisy error counts, which Lemma 4.5 says is epsilon-DP.

    Coordinate j is ``(h_j + 1) (fineness s + 1) + e_j`` with the noisy count e_j in lattice steps, clamped to
    0 .. fineness s: beyond the counts that are possible the ratio of probabilities no longer changes, so that clamping,
    which is post-processing, loses nothing.
    """

    selection: NoisyErrorCounts

    @property
    def lowest(self) -> int:
        """Least value of a coordinate."""
        return 0

    @property
    def top(self) -> int:
        """Largest noisy count that is released, in lattice steps."""
        return self.selection.fineness * self.split.tests

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` releases; int64 of shape (n, k)."""
        candidates = self.candidates(data, n, rng)
        noisy = np.clip(self.selection.noisy(self.errors(candidates, data), rng), 0, self.top)
        return self._pack_codes(candidates, noisy)

    def _pack_codes(self, candidates: IntArray, noisy: IntArray) -> IntArray:
        return (candidates - NULL) * (self.top + 1) + noisy

    def law(self, data: Dataset) -> ProductLaw | FiniteLaw:
        """Exact distribution on `data`; for a mutant whose candidates share their noise, outcomes are tuples."""
        if isinstance(self.selection, NoiselessErrorCounts):
            return self._distribution_of_shared_noise(data, self.selection)
        parts = []
        for law in self.laws(data):
            codes = np.array(law.outcomes, dtype=np.int64)
            outcomes, mass = [], []
            for code, p, errors in zip(codes, law.probabilities, self.errors(codes, data), strict=True):
                outcomes.append(self._pack_codes(code, np.arange(self.top + 1)))
                mass.append(p * clamped(self.selection.estimate(int(errors)), 0, self.top))
            parts.append(FiniteLaw(tuple(np.concatenate(outcomes).tolist()), np.concatenate(mass)))
        return ProductLaw(tuple(parts))

    def _distribution_of_shared_noise(self, data: Dataset, noise: NoiselessErrorCounts) -> FiniteLaw:
        drawn, mass = noise.shared(self.top)
        total: dict[tuple[int, ...], float] = {}
        for some in itertools.product(*(zip(law.outcomes, law.probabilities, strict=True) for law in self.laws(data))):
            codes = np.array([code for code, _ in some], dtype=np.int64)
            steps = self.errors(codes, data) * self.selection.fineness
            outputs = self._pack_codes(codes, np.clip(steps + drawn[:, None], 0, self.top))
            for output, p in zip(outputs.tolist(), mass * math.prod(p for _, p in some), strict=True):
                total[tuple(output)] = total.get(tuple(output), 0.0) + float(p)
        return FiniteLaw(tuple(total), np.array(list(total.values())))


@dataclass(frozen=True)
class BoostedLearner(_Rounds):
    """Releases the chosen hypothesis only.

    Parameters
    ----------
    learner : BaseLearner
        Of level epsilon, run once on each block.
    count : CountsErrors
        Errors of a hypothesis on rows.
    split : TrainTestSplit
        Public positions of blocks and test part.
    selection : CandidateSelection
        How one of the candidates is chosen by its errors; "no hypothesis" errs on every test row, and may be chosen.

    Raises
    ------
    ValueError
        If the data have fewer rows than ``split.needed``.

    Notes
    -----
    Symmetric in the rows of a block and of the test part only, not in all rows (`ShuffledLearner`).
    """

    def seen(self, candidates: IntArray, data: Dataset) -> IntArray:
        """Errors that the selection is shown; same shape as `candidates`."""
        return self.errors(candidates, data)

    def present(self, codes: IntArray) -> FloatArray:
        """1 for outcomes of the learner that may be chosen, 0 for others."""
        return np.ones(codes.shape)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        candidates = self.candidates(data, n, rng)
        chosen = self.selection.choose(self.seen(candidates, data), rng)
        return np.take_along_axis(candidates, chosen[:, None], axis=1)[:, 0]

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`."""
        laws = self.laws(data)
        codes = np.array(sorted({code for law in laws for code in law.outcomes}), dtype=np.int64)  # type: ignore[type-var]
        mass = np.zeros((len(laws), codes.size))
        for row, law in zip(mass, laws, strict=True):
            row[np.searchsorted(codes, np.array(law.outcomes, dtype=np.int64))] = law.probabilities
        counts, score = np.unique(self.errors(codes, data), return_inverse=True)
        competing = mass * self.present(codes)
        grouped = competing @ (score[:, None] == np.arange(counts.size))
        wins = self.selection.winners(grouped, counts)
        share = np.divide(wins, grouped, out=np.zeros_like(wins), where=grouped > 0)
        found = (competing * share[:, score]).sum(axis=0)
        # Where there may be no candidate at all, nothing is released.
        found[codes == NULL] += np.prod(np.maximum(1.0 - competing.sum(axis=1), 0.0))
        return FiniteLaw(tuple(codes.tolist()), found / found.sum())


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class RetriedOnSameData(_Rounds):
    """Runs the learner on the first block again and again until it has a hypothesis, at most k times.

    Publishes how many runs it took, and the hypothesis: how long one waits says how often the learner failed.
    """

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` releases, the number of runs and the hypothesis; int64 of shape (n, 2)."""
        require_draws(n)
        block = self.split.block(self.checked(data), 0)
        found = np.full((n, 2), NULL, dtype=np.int64)
        for runs in range(1, self.split.rounds + 1):
            going = np.flatnonzero(found[:, 1] == NULL)
            if not going.size:
                break
            found[going, 0] = runs
            found[going, 1] = self.learner(block, going.size, rng)
        return found

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution on `data`; outcomes are pairs (runs, hypothesis)."""
        one = self.learner.law(self.split.block(self.checked(data), 0))
        none = dict(zip(one.outcomes, one.probabilities, strict=True))[NULL]
        found = {
            (runs, code): none ** (runs - 1) * p
            for runs in range(1, self.split.rounds + 1)
            for code, p in zip(one.outcomes, one.probabilities, strict=True)
            if code != NULL
        }
        found[self.split.rounds, NULL] = none**self.split.rounds
        return FiniteLaw(tuple(found), np.array(list(found.values())))


MUTANTS: dict[str, Mutant[BoostedLearner]] = tabulate_mutants(
    Mutant(
        "retries_on_the_same_data",
        lambda base: RetriedOnSameData(base.learner, base.count, base.split, base.selection),
        None,
        "violation",
        "the learner is run on one block until it succeeds: every failure is paid again, k ln(1 + eps/4) for A",
    ),
    Mutant(
        "nonprivate_selection",
        lambda base: replace(base, selection=NoiselessErrorCounts(base.epsilon)),
        None,
        "violation",
        "fewest test errors without noise: (k - 1) ln 2 and more for A, as each block may yield any hypothesis",
    ),
)
