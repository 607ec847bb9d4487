"""What breaks a private learner: whatever its student sees of the data beside the released labels.

Source: catalogue 004, pri_learn and label_private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import gauss_legendre
from mechanisms.selection.sparse_vector_distribution import REACH, laplace_cdf
from mechanisms.teacher_ensembles.online_leaks import release_threshold
from mechanisms.teacher_ensembles.online_release import OnlineRelease
from mechanisms.teacher_ensembles.private_learner import (
    UNIFORM,
    LabelPrivateLearner,
    PrivateLearner,
    pushed,
    rows_of,
    signed,
)
from mechanisms.teacher_ensembles.vote_distance import leading

# ---------------------------------------------------------------- mutants of Algorithm 5


@dataclass(frozen=True)
class StudentOnPrivatePoints(PrivateLearner):
    """The first rows of the private data are asked about, and the student is trained on them."""

    def asked(self, data: Dataset) -> FloatArray:
        """Features of as many rows as there are public points."""
        return rows_of(data)[0][: len(self.points)]


@dataclass(frozen=True)
class TrueLabelsOnRefusal(PrivateLearner):
    """Where a label is refused, that of the first private row with the features of the point, if there is one."""

    def in_place_of_refusals(self, data: Dataset) -> IntArray:
        """Labels of the private rows."""
        features, labels = rows_of(data)
        same = (features[None, :, :] == self.asked(data)[:, None, :]).all(axis=2)
        return np.where(same.any(axis=1), labels[same.argmax(axis=1)], UNIFORM)


@dataclass(frozen=True)
class MajorityOnRefusal(PrivateLearner):
    """Where a label is refused, the majority's all the same."""

    def in_place_of_refusals(self, data: Dataset) -> IntArray:
        """What most teachers say."""
        return leading(self.votes(data))


def errors_on(features: FloatArray, labels: IntArray, weights: ArrayLike, offsets: FloatArray) -> IntArray:
    """Wrong predictions of ``<w, x> > offset`` on rows, shapes (N, d) and (N,) to (N,)."""
    wrong = (np.asarray(weights, dtype=np.float64) @ features.T > offsets[:, None]) != labels
    return np.asarray(wrong.sum(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class PrivateValidation(PrivateLearner):
    """The offset of the student is the one that makes fewest errors on the private data: 0, always 1, or always 0."""

    def outputs(self, data: Dataset, labels: IntArray) -> IntArray:
        """Weights and, as the last number, which offset was chosen."""
        weights = super().outputs(data, labels)
        choices = [np.full(len(weights), offset) for offset in (0.0, -math.inf, math.inf)]
        wrong = np.array([errors_on(*rows_of(data), weights, offset) for offset in choices])
        return np.column_stack([weights, wrong.argmin(axis=0)])


@dataclass(frozen=True)
class MorePointsThanBudgeted(PrivateLearner):
    """Noise and threshold are those of fewer points than are asked about, and refusals do not end the run.

    Parameters
    ----------
    budgeted : int
        m, as far as the threshold knows.
    """

    budgeted: int = 1

    def labeller(self, points: int) -> OnlineRelease:
        """Never halts; its threshold is that of the budgeted number of points."""
        right = super().labeller(points)
        bar = right.noise * release_threshold(self.delta, self.budgeted)
        return replace(right, threshold=bar, epochs=points)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution where all points are the same: of A released labels and M - A uniform bits.

        Raises
        ------
        ValueError
            For points that differ.
        """
        require(len(set(self.points)) == 1, "points that are all the same, for a distribution", self.points)
        (label, distance), asked = self.stream(data)[0], len(self.points)
        labeller = self.labeller(asked)
        answered = released_of_equals(asked, (distance - labeller.bar) / labeller.noise)
        ones = np.zeros(asked + 1)
        for released, mass in enumerate(answered):
            bits = mass * stats.binom.pmf(np.arange(asked - released + 1), asked - released, 0.5)
            first = released if label == 1 else 0
            ones[first : first + len(bits)] += bits
        weights = np.outer(signed_count(asked), np.array(self.points[0], dtype=np.int64))
        return pushed(weights, ones)


def signed_count(points: int) -> IntArray:
    """Number of ones less number of zeros among so many labels, by number of ones; shape (points + 1,)."""
    return 2 * np.arange(points + 1, dtype=np.int64) - points


def released_of_equals(queries: int, margin: float) -> FloatArray:
    """How many of equal queries are answered in a run that never halts: probabilities of 0 to m, shape (m + 1,).

    Parameters
    ----------
    queries : int
        m.
    margin : float
        Distance less threshold, in units of lambda.

    Notes
    -----
    Valid because: given the threshold noise answers are independent, and it is drawn anew after a refusal. Its weight
    is followed query by query on the nodes of a Gauss-Legendre rule, split at its kinks.
    """
    ends = np.array([min(margin, 0.0) - REACH, 0.0, margin, max(margin, 0.0) + REACH])
    x, weights = gauss_legendre(np.unique(ends), 0.5)
    fresh, passes = weights * 0.5 * np.exp(-np.abs(x)), laplace_cdf((margin - x) / 2.0)
    density = np.zeros((queries + 1, x.size))
    density[0] = fresh
    for _ in range(queries):
        passed = density * passes
        density = (density - passed).sum(axis=1)[:, None] * fresh
        density[1:] += passed[:-1]
    return np.asarray(density.sum(axis=1))


@dataclass(frozen=True)
class BestOfSeveralRuns(PrivateLearner):
    """The whole of it is run several times, and the hypothesis with the fewest errors on private data is kept.

    Parameters
    ----------
    runs : int
        At least 2; of equally good hypotheses the first is kept.
    """

    runs: int = 8

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses, shape (n, d)."""
        require_draws(n)
        found = super().__call__(data, n * self.runs, rng)
        wrong = self._count_errors(data, found).reshape(n, self.runs)
        return np.asarray(found.reshape(n, self.runs, -1)[np.arange(n), wrong.argmin(axis=1)])

    def _count_errors(self, data: Dataset, weights: IntArray) -> IntArray:
        return errors_on(*rows_of(data), weights, np.zeros(len(weights)))

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution: the best of independent runs."""
        one = super().law(data)
        wrong = self._count_errors(data, np.array(one.outcomes))
        mass = one.probabilities
        at = np.array([mass[wrong == w].sum() for w in wrong])
        worse = np.array([mass[wrong > w].sum() for w in wrong])
        # Given the fewest errors of all runs, the first run that has them follows the distribution of one run with
        # these.
        best = (at + worse) ** self.runs - worse**self.runs
        return FiniteLaw(one.outcomes, np.where(mass > 0, mass / np.where(at > 0, at, 1.0) * best, 0.0))


def more_points(budgeted: int) -> Mutant[PrivateLearner]:
    """Build the mutant whose budget is that of so many points, see `MorePointsThanBudgeted`."""

    def build(base: PrivateLearner) -> MorePointsThanBudgeted:
        return MorePointsThanBudgeted(
            base.chunks, base.epsilon, base.delta, base.cutoff, base.distance, base.points, budgeted
        )

    return Mutant(
        "more_than_m_points", build, None, "violation", "asked beyond m on the budget of m: every flip leaks again"
    )


MUTANTS: dict[str, Mutant[PrivateLearner]] = tabulate_mutants(
    Mutant(
        "student_on_private_points",
        Twin(StudentOnPrivatePoints),
        unbounded,
        "violation",
        "the student's weights are sums of private features",
    ),
    Mutant(
        "true_labels_on_bot",
        Twin(TrueLabelsOnRefusal),
        unbounded,
        "violation",
        "a refused label is that of a private row: published as often as labels are refused",
    ),
    Mutant(
        "private_validation",
        Twin(PrivateValidation),
        unbounded,
        "violation",
        "which offset is best on private data is published: a pair at a tie of 0 and 1",
    ),
    Mutant(
        "majority_on_bot",
        Twin(MajorityOnRefusal),
        unbounded,
        "violation",
        "the majority is published whether or not it is stable: a flip pair leaks with probability 1",
    ),
    Mutant(
        "best_of_several_seeds",
        Twin(BestOfSeveralRuns),
        None,
        "violation",
        "random labels are kept if private data agree with them: of r runs one agrees, but for a part of 2^-r",
    ),
)

# ------------------------------------------------------------ mutants where labels are private


@dataclass(frozen=True)
class StratifiedSplit(LabelPrivateLearner):
    """Rows are sorted by label, and points taken from both ends of that order in turn: a share of either label."""

    def _order(self, data: Dataset) -> tuple[IntArray, IntArray]:
        order = np.argsort(rows_of(data)[1], kind="stable")
        ends = np.stack([order, order[::-1]], axis=1).ravel()[: self.unlabelled]
        return np.setdiff1d(order, ends, assume_unique=True), ends

    def training(self, data: Dataset) -> tuple[FloatArray, IntArray]:
        """The other rows."""
        (features, labels), (kept, _) = rows_of(data), self._order(data)
        return features[kept], labels[kept]

    def asked(self, data: Dataset) -> FloatArray:
        """Features of the first and last rows by label."""
        return rows_of(data)[0][self._order(data)[1]]


@dataclass(frozen=True)
class LabelsForEarlyStopping(LabelPrivateLearner):
    """The student is trained point by point, and is the earliest one with the fewest errors on the points' own labels.

    It may be the one before the first point, whose weights are 0.
    """

    def outputs(self, data: Dataset, labels: IntArray) -> IntArray:
        """Weights of the student that is kept."""
        features, true = rows_of(data)
        points, own = features[-self.unlabelled :], true[-self.unlabelled :]
        steps = signed(labels)[:, :, None] * points
        paths = np.concatenate([np.zeros_like(steps[:, :1]), np.cumsum(steps, axis=1)], axis=1)
        kept = ((paths @ points.T > 0) != own).sum(axis=2).argmin(axis=1)
        return np.asarray(paths[np.arange(len(paths)), kept], dtype=np.int64)


@dataclass(frozen=True)
class EvaluatedOnTrainingPart(LabelPrivateLearner):
    """The number of the student's errors on the labelled rows is given out with it."""

    def outputs(self, data: Dataset, labels: IntArray) -> IntArray:
        """Weights and, as the last number, errors."""
        weights = super().outputs(data, labels)
        wrong = errors_on(*self.training(data), weights, np.zeros(len(weights)))
        return np.column_stack([weights, wrong])


LABEL_MUTANTS: dict[str, Mutant[LabelPrivateLearner]] = tabulate_mutants(
    Mutant(
        "stratified_split",
        Twin(StratifiedSplit),
        unbounded,
        "violation",
        "a label decides which rows are points, and their features are seen in the student",
    ),
    Mutant(
        "labels_for_early_stopping",
        Twin(LabelsForEarlyStopping),
        unbounded,
        "violation",
        "whether training went on says what the dropped label of the last point is",
    ),
    Mutant(
        "student_evaluated_on_training_part",
        Twin(EvaluatedOnTrainingPart),
        unbounded,
        "violation",
        "a count of errors without noise: one label moves it by one",
    ),
)
