"""The amplified private learner of parities, A*: parameters as printed and as corrected, and its mutants.

A* is `boosting` of the parity learner A (`parity`): k runs on disjoint blocks, and the run whose
hypothesis has the least noisy error on fresh test rows.

Source: document 002, section 4, algorithm A*, Theorem 4.4, Lemmas 4.5 and 4.6, footnote 4; catalogue 002,
parity_amplified_Astar and parity_amplified_expmech, errata E4 to E8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.learning.amplified_selection import ErrorCountsWithSharedNoise, NoiselessErrorCounts, NoisyErrorCounts
from mechanisms.learning.boosting import (
    NULL,
    BoostedLearner,
    JointRelease,
    ReusedTraining,
    SameTrainingBlock,
    TrainTestSplit,
)
from mechanisms.learning.boosting_parts import mixture
from mechanisms.learning.parity import PrivateParityLearner

#: Success of one run of A at the sample size of Lemma 4.1.
GAMMA = 0.25

# --------------------------------------------------------------------------------- parameters


def _require_parameters(epsilon: float, alpha: float, beta: float) -> None:
    require_positive("epsilon", epsilon)
    require(0 < alpha <= 0.5, "alpha in (0, 1/2]", alpha)
    require(0 < beta < 1, "beta in (0, 1)", beta)


def rounds(beta: float, gamma: float = GAMMA) -> int:
    """Runs of which none succeeds with probability at most `beta`, if each does with probability `gamma`."""
    require(0 < gamma < 1, "gamma in (0, 1)", gamma)
    return max(1, math.ceil(math.log(beta) / math.log1p(-gamma)))


def block_rows(d: int, epsilon: float, alpha: float) -> int:
    """Lemma 4.1: rows on which A has error at most `alpha` with probability 1/4, ``(8/(eps alpha))(d ln 2 + ln 4)``."""
    return math.ceil(8.0 / (epsilon * alpha) * (d * math.log(2.0) + math.log(4.0)))


def rows_for_tests(k: int, epsilon: float, alpha: float, beta: float, *, choice_only: bool = False) -> int:
    """Rows on which k candidates are told apart, ``max{10/alpha, c/(alpha eps)} ln(k/beta)``.

    Parameters
    ----------
    k : int
        Candidates.
    epsilon, alpha, beta : float
        Level, error of a good candidate (a bad one has five times that), probability of failure of each of two events.
    choice_only : bool, default False
        The noise is scaled to the release of the choice alone: c = 2 for noise of scale ``2/(s eps)`` and for the
        exponential mechanism. False: c = k, for all noisy errors, noise ``k/(s eps)``.

    Notes
    -----
    A good candidate has ``2 alpha s`` test errors or more with probability at most ``exp(-alpha s / 3)``, a bad one
    ``4 alpha s`` or fewer with probability at most ``exp(-alpha s / 10)``, and noise of scale ``c/(s eps)`` exceeds
    alpha with probability ``exp(-alpha s eps / c)``.
    """
    c = 2.0 if choice_only else float(k)
    return math.ceil(max(10.0 / alpha, c / (alpha * epsilon)) * math.log(k / beta))


def corrected(d: int, epsilon: float, alpha: float, beta: float, *, choice_only: bool = False) -> TrainTestSplit:
    """Parameters of A* with which it fails with probability at most `beta`.

    ``beta' = beta/3``, ``alpha' = alpha/5``, ``k = ceil(log_{4/3}(1/beta'))``, n' by `block_rows` and s by
    `rows_for_tests` at alpha' and beta'. One of three events of probability beta' each has to happen for a failure: no
    candidate is good, test errors mislead, noise misleads.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    _require_parameters(epsilon, alpha, beta)
    k = rounds(beta / 3.0)
    tests = rows_for_tests(k, epsilon, alpha / 5.0, beta / 3.0, choice_only=choice_only)
    return TrainTestSplit(k, block_rows(d, epsilon, alpha / 5.0), tests)


def size_bound(d: int, epsilon: float, alpha: float, beta: float, *, choice_only: bool = False) -> float:
    """Closed form that the sample size ``k n' + s`` of `corrected` stays below.

    ``(325 d L + 38 L^2) / (eps alpha)`` with ``L = ln(3/beta)``; ``412 d L / (eps alpha)`` with `choice_only`.

    Parameters
    ----------
    d : int
        Number of bits.
    epsilon, alpha, beta : float
        At most 0.9, at most 1/2, below 1/4.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    L is above ln 12, so ``k <= L / ln(4/3) + 1 <= 3.88 L`` and ``ln(k/beta') <= 1.92 L``; k is at least 9, so that
    ``k/eps >= 10``. Hence ``k n' <= 3.88 L (40 / (eps alpha)) 3 d ln 2 + k``, with ``d + 2 <= 3 d``, is 322.7 d L over
    (eps alpha) and k; s is at most ``5 * 3.88 * 1.92 L^2 = 37.3 L^2`` over (eps alpha), and one more, or
    ``45 * 1.92 L = 86.4 L`` with `choice_only`. Rounding adds ``k + 1 <= 4.3 L``, at most 2 d L over (eps alpha).
    """
    _require_parameters(epsilon, alpha, beta)
    require(epsilon <= 0.9, "epsilon <= 0.9", epsilon)
    require(beta < 0.25, "beta < 1/4", beta)
    length = math.log(3.0 / beta)
    factor = 412.0 * d * length if choice_only else 325.0 * d * length + 38.0 * length**2
    return factor / (epsilon * alpha)


@dataclass(frozen=True)
class PrintedAmplification:
    """Step 1 of A* as it is printed, with its unnamed constants c and c'.

    ``beta' = beta/2``, ``alpha' = alpha/5``, ``k = ceil(log_{3/4}(1/beta'))``, ``n' = c d / (eps alpha')``,
    ``s = (c' k / (alpha' eps)) log2(k / beta')``.

    Parameters
    ----------
    d : int
        Number of bits.
    epsilon, alpha, beta : float
        Level, error, probability of failure.
    c : float, default 8 (ln 2 + ln 4)
        The proof asks for more than this, rounded up below.
    c_tests : float, default 10 ln 2
        What the events of the proof need for epsilon up to 1, as the document's log is to base 2.
    """

    d: int
    epsilon: float
    alpha: float
    beta: float
    c: float = 16.64
    c_tests: float = 10.0 * math.log(2.0)

    def __post_init__(self) -> None:
        _require_parameters(self.epsilon, self.alpha, self.beta)
        require_positive("c", self.c)
        require_positive("c_tests", self.c_tests)

    @property
    def failure(self) -> float:
        """What each of three events may have, beta'."""
        return self.beta / 2.0

    @property
    def rounds(self) -> int:
        """Number of runs k; negative, because 1/beta' is above 1 and the base is below 1."""
        return math.ceil(math.log(1.0 / self.failure) / math.log(0.75))

    @property
    def rows(self) -> float:
        """Rows of a block, n'; not rounded."""
        return self.c * self.d / (self.epsilon * self.alpha / 5.0)

    @property
    def tests(self) -> float:
        """Rows of the test part, s; NaN, because the logarithm is of a negative number."""
        k = self.rounds
        factor = self.c_tests * k / (self.alpha / 5.0 * self.epsilon)
        return factor * math.log2(k / self.failure) if k > 0 else math.nan


# ------------------------------------------------------------------------------ the algorithm


@dataclass(frozen=True)
class ParityErrors:
    """Counts rows of which a parity gets the label wrong; rows as in `mechanisms.learning.parity`."""

    d: int

    def labels(self, rows: IntArray, x: IntArray) -> IntArray:
        """Labels that hypotheses are held against; `rows` of shape (s, d + 1), `x` the codes of their bits."""
        del x  # only a mutant looks at it
        return rows[:, self.d]

    def __call__(self, hypotheses: IntArray, rows: Dataset) -> IntArray:
        """Count errors; same shape as `hypotheses`, codes of at most 62 bits."""
        given = np.asarray(rows).astype(np.int64)
        require(given.ndim == 2 and given.shape[1] == self.d + 1, f"rows of {self.d} bits and a label", given.shape)
        x = given[:, : self.d] @ (1 << np.arange(self.d, dtype=np.int64))
        different, of_run = np.unique(hypotheses, return_inverse=True)
        predicted = np.bitwise_count(different[:, None] & x) & 1
        counts = (predicted != self.labels(given, x)).sum(axis=1)
        return np.asarray(counts[of_run].reshape(np.shape(hypotheses)), dtype=np.int64)


def astar(epsilon: float, d: int, split: TrainTestSplit, *, fineness: int = 1) -> BoostedLearner:
    """A*: choose by the least noisy error, noise ``k/(s eps)``.

    Parameters
    ----------
    epsilon : float
        Claimed pure level, at most 4.
    d : int
        Number of bits, at most 62.
    split : TrainTestSplit
        Blocks and test part; A* is epsilon-DP whatever they are.
    fineness : int, default 1
        See `NoisyErrorCounts`.
    """
    return BoostedLearner(
        PrivateParityLearner(epsilon, d), ParityErrors(d), split, NoisyErrorCounts(epsilon / split.rounds, fineness)
    )


def all_released(boosted: BoostedLearner) -> JointRelease:
    """The candidates with their noisy errors, of which the proof of Lemma 4.5 says that they are epsilon-DP."""
    require(isinstance(boosted.selection, NoisyErrorCounts), "noisy estimates", boosted.selection)
    return JointRelease(boosted.learner, boosted.count, boosted.split, boosted.selection)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class NullRunsDropped(BoostedLearner):
    """Runs without a hypothesis are dropped; if all are, there is none. Benign."""

    #: Errors of a run that is dropped: no noise makes up for them.
    _DROPPED = 1 << 40

    def seen(self, candidates: IntArray, data: Dataset) -> IntArray:
        """Errors that the selection is shown."""
        return np.where(candidates == NULL, self._DROPPED, self.errors(candidates, data))

    def present(self, codes: IntArray) -> FloatArray:
        """All but "no hypothesis"."""
        return np.asarray(codes != NULL, dtype=np.float64)


@dataclass(frozen=True)
class FirstUntestedHypothesis(BoostedLearner):
    """The first run that has a hypothesis, untested; later runs are not even needed. Benign."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        candidates = self.candidates(data, n, rng)
        first = np.argmax(candidates != NULL, axis=1)
        return np.take_along_axis(candidates, first[:, None], axis=1)[:, 0]

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: each run's, as far as the runs before it have none."""
        laws, weights, reached = [], [], 1.0
        for law in self.laws(data):
            none = float(law.probabilities[law.outcomes.index(NULL)])
            found = tuple(code for code in law.outcomes if code != NULL)
            mass = np.array([p for code, p in zip(law.outcomes, law.probabilities, strict=True) if code != NULL])
            laws.append(FiniteLaw(found, mass / mass.sum()))
            weights.append(reached * (1.0 - none))
            reached *= none
        return mixture([*laws, FiniteLaw((NULL,), np.ones(1))], [*weights, reached])


@dataclass(frozen=True)
class TargetLabels(ParityErrors):
    """Test errors against the concept's labels c(x), as the display in step 5 has it, and not those of the rows."""

    target: int = 0

    def labels(self, rows: IntArray, x: IntArray) -> IntArray:
        """Labels of the target concept."""
        del rows
        return np.asarray(np.bitwise_count(x & self.target) & 1, dtype=np.int64)


def _with_level(base: Any, level: float) -> Any:
    return replace(base, selection=NoisyErrorCounts(level, base.selection.fineness))


def _build_as(cls: type[BoostedLearner], base: BoostedLearner) -> BoostedLearner:
    return cls(base.learner, base.count, base.split, base.selection)


def _split(cls: type[TrainTestSplit], base: Any) -> Any:
    return replace(base, split=cls(base.split.rounds, base.split.rows, base.split.tests))


def _exact_base(base: Any) -> float:
    return 2.0 * math.atanh(base.epsilon / 4.0)


def _ratio(base: Any) -> float:
    return float(base.split.needed / base.split.tests)


MUTANTS: dict[str, Mutant[Any]] = tabulate_mutants(
    Mutant(
        "same_training_data",
        lambda base: _split(SameTrainingBlock, base),
        lambda base: base.split.rounds * _exact_base(base),
        "violation",
        "all runs on one block: k times the exact level of A, for one row a block and all hypotheses released",
    ),
    Mutant(
        "train_test_overlap",
        lambda base: _split(ReusedTraining, base),
        lambda base: base.epsilon + _exact_base(base),
        "violation",
        "test rows are training rows too: one that is both, all hypotheses and errors released",
    ),
    Mutant(
        "noise_1_over_s_eps",
        lambda base: _with_level(base, base.epsilon),
        lambda base: base.split.rounds * base.epsilon,
        "violation",
        "noise 1/(s eps): k eps if all errors are released; the choice alone loses up to 2 eps",
    ),
    Mutant(
        "noise_k_over_n_eps",
        lambda base: _with_level(base, base.epsilon * _ratio(base) / base.split.rounds),
        lambda base: base.epsilon * _ratio(base),
        "violation",
        "noise k/(n eps), with all rows in place of the test rows",
    ),
    Mutant(
        "shared_laplace_draw",
        lambda base: replace(base, selection=ErrorCountsWithSharedNoise(base.selection.level, base.selection.fineness)),
        unbounded,
        "violation",
        "one draw of noise for all candidates: differences of errors are exact",
    ),
    Mutant(
        "no_noise",
        lambda base: replace(base, selection=NoiselessErrorCounts(base.selection.level, base.selection.fineness)),
        unbounded,
        "violation",
        "errors without noise",
    ),
    Mutant(
        "silent_bot_drop",
        lambda base: _build_as(NullRunsDropped, base),
        None,
        "benign",
        "runs without a hypothesis are dropped: post-processing, as the scale of the noise stays",
    ),
    Mutant(
        "early_stop_at_first_hypothesis",
        lambda base: _build_as(FirstUntestedHypothesis, base),
        _exact_base,
        "benign",
        "the first hypothesis, untested: all runs are on disjoint blocks",
    ),
    Mutant(
        "noise_2_over_s_eps",
        lambda base: _with_level(base, base.epsilon / 2.0),
        lambda base: base.epsilon,
        "benign",
        "noise 2/(s eps) is enough where only the choice is released",
    ),
    Mutant(
        "noise_2_over_s_eps_logged",
        lambda base: _with_level(base, base.epsilon / 2.0),
        lambda base: base.split.rounds * base.epsilon / 2.0,
        "violation",
        "noise 2/(s eps) and the estimates released: k eps / 2",
    ),
)
