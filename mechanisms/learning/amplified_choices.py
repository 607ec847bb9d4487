"""The choice among the candidates of A* as the generic learner makes it, and so with every mutant of that learner.

Footnote 4 of document 002 is the generic learner of section 3.1 on the test part, with the k candidates for its class.
Here it is that in code too: test rows become records, candidates a class of hypotheses, and what chooses is an
`AgnosticLearner` or what one of its mutants (`mechanisms.learning.agnostic_mutants`) builds of it.

Source: document 002, section 4, footnote 4; catalogue 002, parity_amplified_expmech and exp_mech_generic_agnostic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, Mechanism, Mutant, require, tabulate_mutants
from mechanisms.learning.agnostic_learner import AgnosticLearner, HypothesisChoice
from mechanisms.learning.agnostic_mutants import MUTANTS as OF_THE_LEARNER
from mechanisms.learning.amplified_parity import ParityErrors
from mechanisms.learning.amplified_selection import ExponentialSelection
from mechanisms.learning.boosting import NULL, BoostedLearner
from mechanisms.learning.boosting_parts import ChosenHypothesis
from mechanisms.learning.hypotheses import BoolArray, HypothesisClass
from mechanisms.learning.parity import labelled

#: Lists of k candidates over which a distribution is summed, at most: a second's work.
_MOST_LISTS = 5_000
# Weights are at least e^-600, as in `ExponentialSelection`.
_MAX_LOG_GAP = 600.0

Build = Callable[[AgnosticLearner], Mechanism]
"""From the generic learner to it or to one of its mutants, as `Mutant.build`."""


# ------------------------------------------------------------------- test rows and candidates


def records_of(rows: Dataset, d: int) -> IntArray:
    """Test rows as records of the generic learner: row (x, y) is the point ``2 x + y``, and its label is 1."""
    given = labelled(rows, d).astype(np.int64)
    points = 2 * (given[:, :d] @ (1 << np.arange(d, dtype=np.int64))) + given[:, d]
    return np.stack([points, np.ones_like(points)], axis=1)


@dataclass(frozen=True)
class CandidateHypotheses(HypothesisClass):
    """Candidates as hypotheses about test rows: one labels a row 1 if it is right there, so it is wrong as often.

    Parameters
    ----------
    codes : tuple of int
        Parities; `NULL` is right on no row. The same one may come several times.
    d : int
        Number of bits.
    """

    codes: tuple[int, ...]
    d: int

    @property
    def size(self) -> int:
        """Number of candidates, k."""
        return len(self.codes)

    @property
    def domain(self) -> int:
        """Different rows."""
        return 2 << self.d

    @property
    def dimension(self) -> int:
        """Not needed: no sample size is computed from it."""
        raise NotImplementedError

    def labels(self, x: IntArray) -> BoolArray:
        """Which candidates are right on the rows; shape (len(x), k)."""
        codes, rows = np.array(self.codes, dtype=np.int64), np.asarray(x)[:, None]
        predicted = np.bitwise_count(np.maximum(codes, 0) & (rows >> 1)) & 1
        return np.asarray((predicted == (rows & 1)) & (codes != NULL), dtype=np.bool_)

    def mistakes(self, counts: IntArray) -> IntArray:
        """Rows that each candidate gets wrong, shape (k,)."""
        points = np.flatnonzero(counts.sum(axis=1))
        right = self.labels(points).astype(np.int64)
        return np.asarray(counts[points, 0] @ right + counts[points, 1] @ (1 - right), dtype=np.int64)

    def parameters(self) -> IntArray:
        """How many runs have found the same, shape (k,)."""
        codes = np.array(self.codes)
        return np.asarray((codes[:, None] == codes).sum(axis=1), dtype=np.int64)


@lru_cache(maxsize=1 << 14)  # an audit has few lists of candidates, each thousands of times
def chooser(build: Build, codes: tuple[int, ...], d: int, epsilon: float) -> HypothesisChoice:
    """The generic learner, or what is built of it, over the candidates."""
    built = build(AgnosticLearner(CandidateHypotheses(codes, d), epsilon))
    require(isinstance(built, HypothesisChoice), "a HypothesisChoice", built)
    return built  # type: ignore[return-value]


# ------------------------------------------------------------------------------ what is chosen


@dataclass(frozen=True)
class ChosenByLearner(ChosenHypothesis):
    """Which of k fixed hypotheses is chosen by the generic learner or a mutant: the test part by itself.

    Parameters
    ----------
    build : Build
        What makes the choice; the level of `selection` is its level.
    """

    count: ParityErrors
    selection: ExponentialSelection
    build: Build

    @property
    def choice(self) -> HypothesisChoice:
        """What makes the choice."""
        return chooser(self.build, self.hypotheses, self.count.d, self.selection.epsilon)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` positions in `hypotheses`; int64 of shape (n,)."""
        return self.choice(records_of(data, self.count.d), n, rng)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the position on `data`."""
        return self.choice.law(records_of(data, self.count.d))


@dataclass(frozen=True)
class BoostedByLearner(BoostedLearner):
    """A* whose candidates are chosen among by the generic learner or a mutant.

    Parameters
    ----------
    build : Build
        What makes the choice; the level of `selection` is its level.

    Notes
    -----
    The distribution is a sum over all lists of k outcomes of the runs, of which there are ``(1 + 2^d)^k`` at most.
    """

    count: ParityErrors
    selection: ExponentialSelection
    build: Build

    def _choice_of_codes(self, codes: tuple[int, ...]) -> HypothesisChoice:
        return chooser(self.build, codes, self.count.d, self.selection.epsilon)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        candidates = self.candidates(data, n, rng)
        rows = records_of(self.split.test_part(data), self.count.d)
        # Runs with the same candidates are chosen for together: there are few different lists.
        radix = (1 << self.count.d) + 1
        lists = (candidates - NULL) @ radix ** np.arange(self.split.rounds, dtype=np.int64)
        order = np.argsort(lists, kind="stable")
        for runs in np.split(order, np.flatnonzero(np.diff(lists[order])) + 1):
            codes = candidates[runs[0]]
            at = self._choice_of_codes(tuple(codes.tolist()))(rows, runs.size, rng)
            candidates[runs, 0] = codes[np.asarray(at)]
        return candidates[:, 0]

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`; ValueError if there are too many lists of candidates."""
        laws = self.laws(data)
        size = math.prod(len(law.outcomes) for law in laws)
        require(size <= _MOST_LISTS, f"at most {_MOST_LISTS} lists of candidates", size)
        rows, total = records_of(self.split.test_part(data), self.count.d), dict[int, float]()
        for some in itertools.product(*(zip(law.outcomes, law.probabilities, strict=True) for law in laws)):
            codes: tuple[Any, ...] = tuple(code for code, _ in some)
            mass = math.prod(float(p) for _, p in some) * self._choice_of_codes(codes).probabilities(rows)
            for code, p in zip(codes, mass.tolist(), strict=True):
                total[code] = total.get(code, 0.0) + p
        codes = tuple(sorted(total))
        return FiniteLaw(codes, np.array([total[code] for code in codes]))


# --------------------------------------------------------------------- only the weights are wrong


@dataclass(frozen=True)
class TalliedHypotheses(CandidateHypotheses):
    """Candidates of which only the numbers of errors are known, one after another."""

    errors: IntArray

    def mistakes(self, counts: IntArray) -> IntArray:
        """The numbers of errors."""
        del counts
        return self.errors


@dataclass(frozen=True)
class ExponentsOf(ExponentialSelection):
    """The exponential mechanism with the exponents of a mutant of the generic learner, which only errors decide.

    Parameters
    ----------
    tests : int
        Number of test rows.
    build : Build
        The mutant.
    """

    tests: int
    build: Build

    def weights(self, errors: IntArray) -> FloatArray:
        """Weights, 1 for the largest along the last axis; same shape as `errors`."""
        counts = np.asarray(errors, dtype=np.int64)
        built = self.build(AgnosticLearner(TalliedHypotheses((), 0, counts.ravel()), self.epsilon))
        require(isinstance(built, AgnosticLearner), "a learner with other exponents", built)
        exponents = built.exponents(np.zeros((self.tests, 2), dtype=np.int64)).reshape(counts.shape)  # type: ignore[attr-defined]
        gaps = exponents.max(axis=-1, keepdims=True) - exponents
        return np.asarray(np.exp(-np.minimum(gaps, _MAX_LOG_GAP)), dtype=np.float64)


# ------------------------------------------------------------------------------------ mutants


def _by_weights(name: str) -> Mutant[Any]:
    """A mutant of which only the exponents are wrong: for whatever has a split and a selection."""
    found = OF_THE_LEARNER[name]

    def build(base: Any) -> Mechanism:
        of_errors = ExponentsOf(base.selection.epsilon, base.split.tests, found.build)
        return replace(base, selection=of_errors)  # type: ignore[no-any-return]

    return Mutant(name, build, None, found.kind, found.note)


def _by_choice(name: str, note: str = "") -> Mutant[Any]:
    """A mutant that chooses in another way: for the whole learner, and for fixed hypotheses."""
    found = OF_THE_LEARNER[name]

    def build(base: Any) -> Mechanism:
        if isinstance(base, ChosenHypothesis):
            parts = (base.hypotheses, base.count, base.selection, base.epsilon)
            return ChosenByLearner(*parts, found.build)  # type: ignore[arg-type]
        return BoostedByLearner(base.learner, base.count, base.split, base.selection, found.build)

    return Mutant(name, build, None, found.kind, note or found.note)


#: The bank of the generic learner, of A* with `ExponentialSelection` or of its test part.
MUTANTS: dict[str, Mutant[Any]] = tabulate_mutants(
    _by_weights("half_missing"),
    _by_weights("score_over_n"),
    _by_weights("sign_flipped"),
    _by_choice("exp_underflow"),
    _by_choice("argmax_on_ties"),
    _by_choice("sample_dependent_class", "candidates that are right on some test row: one that is on a single row"),
    _by_choice("sample_dependent_class__consistent"),
    _by_choice("deduplicated_on_sample", "one weight for candidates that are right on the same test rows"),
    _by_choice("float32_cumulative_sum"),
    _by_choice("gumbel_noise_reused"),
    _by_choice("score_on_random_subset", "errors on a random half of the test rows: more private than claimed"),
    _by_choice("noisy_min_lap_1_over_eps"),
    _by_choice(
        "parameters_with_multiplicity", "weights times numbers of runs that found the same: no test row decides those"
    ),
)
