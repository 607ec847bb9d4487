"""Document 002, section 4: boosting the probability of success by disjoint blocks and private selection.

The skeleton of A* around two learners, that of parities and the generic one, for thresholds. Which learner it is does
not matter to privacy, as long as it has the claimed level itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.accuracy import Setting
from auditor.audits.accuracy.errors import find_failures
from auditor.audits.accuracy.measures import REPLICATES, Effort, Measure, Point
from auditor.claims import Draft, Source, accuracy, broken, entry, reference, scaling
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from experiments.document_002_what_can_we_learn._amplified_accuracy import target, true_error
from mechanisms.base.mechanism import FloatArray
from mechanisms.learning.agnostic_learner import AgnosticLearner
from mechanisms.learning.amplified_fresh import BoostedOnFreshSamples, FreshAmplified, FreshCandidates, UniformBits
from mechanisms.learning.amplified_parity import astar, block_rows, corrected, rounds, rows_for_tests
from mechanisms.learning.amplified_selection import NoisyErrorCounts
from mechanisms.learning.boosting import MUTANTS, BoostedLearner, TrainTestSplit
from mechanisms.learning.boosting_parts import ListedErrors
from mechanisms.learning.hypotheses import ThresholdFunctions

#: Points of the domain of thresholds.
_POINTS = 16
#: Half of the usual budget: claims that hold with plenty of room.
_FEW = {"smoke": 100_000, "standard": 1_000_000}


def _in_turn(data: NDArray[Any], split: TrainTestSplit) -> list[Pair]:
    """A record of each block and one of the test part: each changes its label."""
    pairs = []
    for j, index in enumerate([*range(split.rows - 1, split.rounds * split.rows, split.rows), split.needed - 1]):
        other = data.copy()
        other[index, -1] ^= 1
        name = f"the last record of block {j}" if j < split.rounds else "the last test record"
        pairs.append(Pair(data, other, name))
    return pairs


def _parity_rows(split: TrainTestSplit) -> NDArray[np.uint8]:
    """Blocks of two bits that only their last record tells about, and test rows that tell hypotheses from none."""
    data = np.zeros((split.needed, 3), dtype=np.uint8)
    data[split.rows - 1 : split.rounds * split.rows : split.rows, :2] = 1
    data[-1, :2] = 1
    return data


def _threshold_rows(split: TrainTestSplit) -> NDArray[np.int64]:
    """All records in the middle of the domain, half of their labels wrong whatever the threshold is."""
    at = np.full(split.needed, _POINTS // 2)
    return np.stack([at, np.arange(split.needed) % 2], axis=1).astype(np.int64)


@entry(
    "002/success_boosting_generic",
    title="Blocks, candidates, private selection",
    source=Source("002", "section 4, inside A*"),
)
def success_boosting() -> Iterator[Draft]:
    """Privacy at each block and in the test part; failures, and how fast they fall with the number of runs."""
    split = TrainTestSplit(3, 6, 40)
    parities = astar(1.0, 2, split)
    classes = ThresholdFunctions(_POINTS)
    small = TrainTestSplit(3, 6, 12)
    thresholds = BoostedLearner(
        AgnosticLearner(classes, 1.0), ListedErrors(classes), small, NoisyErrorCounts(1.0 / small.rounds)
    )
    for case, learner, pairs in (
        ("parities", parities, _in_turn(_parity_rows(split), split)),
        ("thresholds", thresholds, _in_turn(_threshold_rows(small), small)),
    ):
        yield from reference(learner, PureDP(1.0), pairs, case=case, relation=REPLACE, draws=_FEW, follows=False)
    yield from _mutants()
    yield from _accuracy()
    yield from _runs()


def _mutants() -> Iterator[Draft]:
    again = TrainTestSplit(12, 1, 1)
    inconsistent = np.tile(np.array([[0, 1]], dtype=np.uint8), (again.needed, 1))
    solved = inconsistent.copy()
    solved[0, 1] = 0
    yield broken(
        MUTANTS["retries_on_the_same_data"],
        astar(2.0, 1, again),
        Pair(inconsistent, solved, "the record 0 = 1, which fails each run that takes it, becomes 0 = 0"),
        relation=REPLACE,
    )
    split = TrainTestSplit(11, 1, 2)
    data = np.tile(np.array([[1, 0]], dtype=np.uint8), (split.needed, 1))
    data[-1] = 0
    other = data.copy()
    other[split.rounds, 1] = 1
    yield broken(
        MUTANTS["nonprivate_selection"],
        astar(0.5, 1, split),
        Pair(data, other, "a test label decides between the two parities"),
        relation=REPLACE,
    )


# -------------------------------------------------------------------------------------- accuracy


@dataclass(frozen=True)
class ThresholdRecords:
    """Records (x, label) with x uniform, labelled by the threshold whose number the data are, shape (1,)."""

    hypotheses: ThresholdFunctions

    def __call__(self, data: Any, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw records; int64 of shape (rows, 2)."""
        x = rng.integers(0, self.hypotheses.domain, rows)
        return np.stack([x, self.hypotheses.labels(x)[:, int(data[0])]], axis=1).astype(np.int64)


@dataclass(frozen=True)
class MislabelledDomainPart:
    """Part of the domain that a threshold labels otherwise than the target does."""

    hypotheses: ThresholdFunctions
    target: int

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n hypotheses of shape (n,)."""
        labels = self.hypotheses.labels(np.arange(self.hypotheses.domain))
        errors = (labels != labels[:, [self.target]]).mean(axis=0)
        return np.asarray(errors[np.asarray(outputs)], dtype=np.float64)


def _accuracy() -> Iterator[Draft]:
    """With gamma = 1/4 and parities, and with gamma = 1/2 and thresholds."""
    epsilon, alpha, beta, d = 1.0, 0.25, 0.05, 6
    split, distribution = corrected(d, epsilon, alpha, beta), UniformBits(d)
    yield accuracy(
        FreshAmplified(epsilon, split, NoisyErrorCounts(epsilon / split.rounds, 16), distribution),
        target(d),
        true_error(distribution),
        at_most=alpha,
        beta=beta,
        case="parities",
        draws={"smoke": 3_000, "standard": 20_000},
        derived=True,
        parameters={"k": split.rounds, "n'": split.rows, "s": split.tests, "gamma": 0.25},
        note="1 - 3 beta', beta' = beta/3",
    )
    # Theorem 3.4 with the constants 4 and 2 gives error alpha/5 with probability 1/2 on this many records. Hypotheses
    # err on up to half of the domain.
    alpha, gamma, good, classes = 0.25, 0.5, 0.05, ThresholdFunctions(_POINTS)
    log_size = math.log(classes.size - 1) + math.log(1.0 / (1.0 - gamma))
    k = rounds(beta / 3.0, gamma)
    sizes = TrainTestSplit(
        k,
        math.ceil(log_size * max(4.0 / (epsilon * good), 2.0 / good**2)),
        rows_for_tests(k, epsilon, good, beta / 3.0),
    )
    boosted = BoostedLearner(
        AgnosticLearner(classes, epsilon), ListedErrors(classes), sizes, NoisyErrorCounts(epsilon / k, 16)
    )
    yield accuracy(
        BoostedOnFreshSamples(boosted, ThresholdRecords(classes)),
        np.array([_POINTS // 2]),
        MislabelledDomainPart(classes, _POINTS // 2),
        at_most=alpha,
        beta=beta,
        case="thresholds",
        draws={"smoke": 1_000, "standard": 4_000},
        derived=True,
        independence=False,
        parameters={"k": sizes.rounds, "n'": sizes.rows, "s": sizes.tests, "gamma": gamma},
        note="the generic learner in the place of A",
    )


# ---------------------------------------------------------------------------------- number of runs


@dataclass(frozen=True)
class MinusLog(Measure):
    """Minus the logarithm of the probability that the error exceeds the setting's limit.

    Notes
    -----
    Valid because: failures of independent draws are binomial, and the limits are those of Clopper and Pearson (1934).
    """

    def __call__(self, subject: Any, effort: Effort) -> Point:
        """Count failures."""
        setting: Setting = subject
        n = effort.n
        count = int(find_failures(effort.draw(setting, n, effort.key), setting.at_most).sum())
        most = float(stats.beta.ppf(1.0 - effort.alpha / 2.0, count + 1, n - count)) if count < n else 1.0
        least = float(stats.beta.ppf(effort.alpha / 2.0, count, n - count + 1)) if count else 0.0
        # Half a failure and half a success keep the logarithm finite.
        again = (effort.rng.binomial(n, count / n, REPLICATES) + 0.5) / (n + 1.0)
        low = -math.log(most)
        return Point(-math.log((count + 0.5) / (n + 1.0)), low, -math.log(least) if least else math.inf, -np.log(again))

    def __str__(self) -> str:
        return "minus log of the probability of no good candidate"


@dataclass(frozen=True)
class LeastCandidateError:
    """Least error of a row of candidates."""

    error: Any

    def __call__(self, outputs: Any) -> FloatArray:
        """Least errors of n rows of shape (n, k)."""
        return np.asarray(self.error(outputs).min(axis=1), dtype=np.float64)


def no_good_candidate(k: int) -> Setting:
    """K runs of A for four bits, at the sample size of Lemma 4.1; an error above 0.4 is a failure."""
    distribution = UniformBits(4)
    split = TrainTestSplit(k, block_rows(4, 2.0, 0.4), 1)
    amplified = FreshAmplified(2.0, split, NoisyErrorCounts(2.0 / k), distribution)
    return Setting(FreshCandidates(amplified), target(4), LeastCandidateError(true_error(distribution)), 0.4)


def _runs() -> Iterator[Draft]:
    yield scaling(
        lambda k: no_good_candidate(round(k)),
        parameter="k",
        at=(1.0, 2.0, 4.0, 8.0),
        exponent=1.0,
        others=(0.5, 2.0),
        measure=MinusLog(),
        curve=lambda k: k * math.log(4.0 / 3.0),
        benefit=True,
        both=True,
        case="no_good_candidate_by_runs",
        draws={"smoke": 40_000, "standard": 200_000},
        derived=True,
        note="P = (1 - gamma)^k; the lemma's gamma is 1/4, that of A about 1/2: the slope is ln 2 and not ln(4/3)",
    )
