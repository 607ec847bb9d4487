"""Ensembles of scikit-learn classifiers on disjoint chunks of real data, and what is given out of their votes.

The learners are black boxes: votes are all that is used of them. What the mechanisms promise does not depend on them.

Source: document 004, Algorithms 3 to 5, Remark 1; catalogue 004, oqr, adv_comp_baseline, subsamp_agg and pri_learn.
"""

from __future__ import annotations

import itertools
import math
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import statsmodels.datasets.randhie
from scipy import optimize
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from auditor.privacy.exact import optimal_composition
from mechanisms.base.mechanism import FloatArray, IntArray, require
from mechanisms.teacher_ensembles.online_leaks import release_scale
from mechanisms.teacher_ensembles.online_release import BOTTOM, GivenDistances, OnlineRelease
from mechanisms.teacher_ensembles.vote_aggregation import tally
from mechanisms.teacher_ensembles.vote_distance import Distance, gap_distance, leading, plurality_distance

# -------------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class TeacherTask:
    """A real dataset, and at which sizes it is used.

    Parameters
    ----------
    name : str
        What is predicted.
    load : callable
        Returns features, shape (n, d), and labels 0 to R - 1, shape (n,).
    test, public : int
        Rows that accuracy is measured on, and rows whose features are public; all others are private.
    chunks : int
        Teachers.
    delta : float
        Below one over the number of private rows.
    queries : tuple of int
        Numbers of public points that labels are asked for.
    """

    name: str
    load: Callable[[], tuple[FloatArray, IntArray]]
    test: int
    public: int
    chunks: int
    delta: float
    queries: tuple[int, ...]


@cache
def _digits() -> tuple[FloatArray, IntArray]:
    found = load_digits()
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target, dtype=np.int64)


@cache
def _breast_cancer() -> tuple[FloatArray, IntArray]:
    found = load_breast_cancer()
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target, dtype=np.int64)


@cache
def _visits() -> tuple[FloatArray, IntArray]:
    """Whether a person of the RAND experiment saw a doctor more than once in a year, from plan and health."""
    data = statsmodels.datasets.randhie.load_pandas().data
    return data.drop(columns="mdvis").to_numpy(dtype=np.float64), (data["mdvis"] > 1).to_numpy(dtype=np.int64)


#: Chunks are small, 6 to 32 rows, so that there are many of them: the budget is paid in teachers.
TASKS = {
    "breast_cancer": TeacherTask("tumours: malignant or benign", _breast_cancer, 114, 150, 50, 1e-3, (20, 50, 150)),
    "digits": TeacherTask("handwritten digits, ten classes", _digits, 360, 400, 100, 1e-4, (50, 100, 400)),
    "rand": TeacherTask("RAND: more than one visit to a doctor", _visits, 2_000, 2_000, 500, 1e-5, (50, 200, 2_000)),
}


@dataclass(frozen=True, eq=False)
class TaskSplit:
    """Rows of a task, by what is done with them; features are standardised by the public ones alone."""

    private: tuple[FloatArray, IntArray]
    public: tuple[FloatArray, IntArray]
    test: tuple[FloatArray, IntArray]


def split(task: TeacherTask, rng: np.random.Generator) -> TaskSplit:
    """Rows in a random order: test, public, private."""
    features, labels = task.load()
    order = rng.permutation(len(labels))
    test, public, private = np.split(order, [task.test, task.test + task.public])
    require(len(private) >= task.chunks, f"at least {task.chunks} private rows", len(private))
    centre, spread = features[public].mean(axis=0), features[public].std(axis=0)
    # A column that is constant in public is left as it is.
    scaled = (features - centre) / np.where(spread > 0, spread, 1.0)
    return TaskSplit(*((scaled[rows], labels[rows]) for rows in (private, public, test)))


# ---------------------------------------------------------------------------------- learners

Classifier: TypeAlias = Any
"""A scikit-learn classifier; the package has no types."""

#: What is trained on a chunk, and as a student: from a seed to a classifier. Iterations are few, for chunks are small.
LEARNERS: dict[str, Callable[[int], Classifier]] = {
    "logistic regression": lambda seed: LogisticRegression(max_iter=100, random_state=seed),
    "decision tree": lambda seed: DecisionTreeClassifier(max_depth=5, random_state=seed),
    "neural network": lambda seed: MLPClassifier((16,), solver="lbfgs", max_iter=50, random_state=seed),
}


def fitted(learner: str, features: FloatArray, labels: IntArray, seed: int) -> Classifier:
    """Train; a constant classifier where there is one label only."""
    model = LEARNERS[learner](seed) if len(np.unique(labels)) > 1 else DummyClassifier(strategy="most_frequent")
    with warnings.catch_warnings():
        # Few iterations are meant.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(features, labels)


def votes(
    learner: str, chunks: int, private: tuple[FloatArray, IntArray], points: FloatArray, classes: int
) -> IntArray:
    """How many teachers vote for each class at each point, shape (m, R).

    A row is in one chunk, and a teacher's seed is the number of its chunk: neither depends on what is in the rows.
    """
    features, labels = private
    ends = np.arange(chunks + 1) * len(labels) // chunks
    said = [
        fitted(learner, features[a:b], labels[a:b], seed).predict(points)
        for seed, (a, b) in enumerate(itertools.pairwise(ends))
    ]
    return tally(np.array(said, dtype=np.int64), classes)


# ----------------------------------------------------------------------------------- release


@dataclass(frozen=True)
class ReleaseMethod:
    """How votes are given out.

    Parameters
    ----------
    title : str
        In a few words.
    distance : Distance
        From votes to a distance.
    release : callable
        From labels and distances, shape (m, 2), the level, delta and T, a number of runs and a generator to labels, -1
        or -2 of shape (n, m).
    """

    title: str
    distance: Distance
    release: Callable[[FloatArray, float, float, int, int, np.random.Generator], IntArray]


def cutoff(queries: int) -> int:
    """T, public: one refusal in twenty queries, so that Algorithm 3 is to need a little less than the baseline."""
    return math.ceil(queries / 20)


def _largest_level(epsilon: float, delta: float, times: int) -> float:
    """Largest level of so many parts whose optimal composition is (epsilon, delta)-DP."""

    def excess(log_level: float) -> float:
        return optimal_composition(math.exp(log_level), times).delta(epsilon) - delta

    # Basic composition always suffices; nothing does where each part alone has epsilon and more than delta is left.
    low, high = math.log(epsilon / times), math.log(epsilon / times) + 1.0
    while excess(high) <= 0:
        low, high = high, high + 1.0
    found = optimize.brentq(excess, low, high, xtol=1e-6) if excess(low) < 0 else low
    return math.exp(found - 1e-6)


@cache
def tight_noise(epsilon: float, delta: float, epochs: int) -> tuple[float, float]:
    """Scale lambda and threshold w at which so many epochs are (epsilon, delta)-DP, where distances move by 1.

    Half of delta is for the epochs, each 2/lambda-DP, by optimal composition; the other half for flips: an epoch leaks
    one with probability ``(4 p - p^2) / 6`` where ``w = 2 lambda ln(1/p)``.
    """
    scale = 2.0 / _largest_level(epsilon, delta / 2.0, epochs)
    share = delta / (2.0 * epochs)
    tail = 2.0 - math.sqrt(4.0 - 6.0 * share)  # solves (4 p - p^2)/6 = share
    return scale, 2.0 * scale * math.log(1.0 / tail)


@cache
def tight_level(epsilon: float, delta: float, queries: int) -> float:
    """Level of each of m independent tests whose optimal composition has half of delta."""
    return _largest_level(epsilon, delta / 2.0, queries)


def _document(stream: FloatArray, epsilon: float, delta: float, t: int, n: int, rng: np.random.Generator) -> IntArray:
    return OnlineRelease(GivenDistances(len(stream)), epsilon, delta, t)(stream, n, rng)


def _tight_release(
    stream: FloatArray, epsilon: float, delta: float, t: int, n: int, rng: np.random.Generator
) -> IntArray:
    scale, bar = tight_noise(epsilon, delta, t + 1)
    return OnlineRelease(GivenDistances(len(stream)), epsilon, delta, t, scale, bar)(stream, n, rng)


def independent_tests(stream: FloatArray, level: float, leak: float, n: int, rng: np.random.Generator) -> IntArray:
    """Each query by Algorithm 2 at (level, leak): noise 1/level, threshold ``ln(1/leak)/level``; shape (n, m)."""
    values, distances = stream.T
    noisy = distances + rng.laplace(0.0, 1.0 / level, (n, len(stream)))
    return np.where(noisy > math.log(1.0 / leak) / level, values.astype(np.int64), BOTTOM)


def _baseline(stream: FloatArray, epsilon: float, delta: float, t: int, n: int, rng: np.random.Generator) -> IntArray:
    del t  # every query is paid for
    m = len(stream)
    return independent_tests(stream, epsilon / math.sqrt(8.0 * m * math.log(2.0 / delta)), delta / (2.0 * m), n, rng)


def _tight_baseline(
    stream: FloatArray, epsilon: float, delta: float, t: int, n: int, rng: np.random.Generator
) -> IntArray:
    del t
    # A flip leaks with probability leak/2: m of them delta/2.
    m = len(stream)
    return independent_tests(stream, tight_level(epsilon, delta, m), delta / m, n, rng)


def certified(epsilon: float, delta: float, cutoff: int, queries: int) -> float:
    """What is proved of Algorithm 3 with the document's constants and distance, which moves by 2: a level at delta.

    By optimal composition of T + 1 epochs, each 4/lambda-DP, and the leak of a flip at distance 1 in each of them; inf
    if the leak alone is more than delta.
    """
    scale = release_scale(epsilon, delta, cutoff)
    tail = delta / (2.0 * queries) * math.exp(1.0 / (2.0 * scale))
    leak = (cutoff + 1) * (4.0 * tail - tail * tail) / 6.0
    return optimal_composition(4.0 / scale, cutoff + 1).epsilon(delta - leak) if leak < delta else math.inf


METHODS = {
    "document": ReleaseMethod("Algorithm 3, the document's constants", gap_distance, _document),
    "tight": ReleaseMethod("Algorithm 3, tight constants", plurality_distance, _tight_release),
    "baseline": ReleaseMethod("advanced composition, the document's constants", plurality_distance, _baseline),
    "tight baseline": ReleaseMethod("advanced composition, tight constants", plurality_distance, _tight_baseline),
}

# ------------------------------------------------------------------------------------ students


def student_accuracy(
    learner: str, points: FloatArray, labels: IntArray, test: tuple[FloatArray, IntArray], classes: int, seed: int
) -> float:
    """Part of the test rows that a student gets right; labels below 0 are left out. A guess if there are no labels."""
    known = labels >= 0
    if not known.any():
        return 1.0 / classes
    model = fitted(learner, points[known], labels[known], seed)
    return float((model.predict(test[0]) == test[1]).mean())


@dataclass(frozen=True)
class StudyCell:
    """Part of a study: one task, learner and split of the data.

    Parameters
    ----------
    task, learner : str
        Keys of `TASKS` and `LEARNERS`.
    repetition : int
        Number of the split.
    """

    task: str
    learner: str
    repetition: int

    @property
    def key(self) -> str:
        """Name in a journal."""
        return f"{self.task}/{self.learner}/{self.repetition}"

    def rng(self, *of: object) -> np.random.Generator:
        """Generator of a part of the cell, the same whatever else is run."""
        return np.random.default_rng([zlib.crc32(str(part).encode()) for part in (self.task, self.repetition, *of)])


def measured(cell: StudyCell, epsilons: tuple[float, ...], runs: int, students: int) -> dict[str, Any]:
    """Train the teachers of a cell, and measure all that is shown of it.

    Parameters
    ----------
    epsilons : tuple of float
        Levels.
    runs : int
        Runs of each method, for the answers.
    students : int
        How many of them have a student; at most `runs`.

    Returns
    -------
    dict
        Parts that are right: ``model``, one classifier of all private rows; ``ensemble``, its majority on the test
        rows; ``transfer``, for each number of queries, a student of its majority; ``rows``, for each method, epsilon
        and number of queries what is answered and right, and students' accuracy: with the labels that were given out,
        and as Algorithm 5 prints it, with random labels for all others.
    """
    task = TASKS[cell.task]
    data = split(task, cell.rng("split"))
    classes = int(task.load()[1].max()) + 1
    everything = np.concatenate([data.public[0], data.test[0]])
    counts = votes(cell.learner, task.chunks, data.private, everything, classes)
    public, tested = counts[: task.public], leading(counts[task.public :])

    def student(labels: IntArray) -> float:
        points = data.public[0][: len(labels)]
        return student_accuracy(cell.learner, points, labels, data.test, classes, cell.repetition)

    def printed_student(labels: IntArray, rng: np.random.Generator) -> float:
        return student(np.where(labels >= 0, labels, rng.integers(0, classes, labels.shape)))

    rows = []
    for m in task.queries:
        truth = data.public[1][:m]
        for name, method in METHODS.items():
            stream = np.stack([leading(public[:m]), method.distance(public[:m])], axis=1).astype(np.float64)
            for epsilon in epsilons:
                rng = cell.rng(cell.learner, name, m, epsilon)
                given = method.release(stream, epsilon, task.delta, cutoff(m), runs, rng)
                rows.append(
                    {
                        "method": name,
                        "epsilon": epsilon,
                        "queries": m,
                        "answered": float((given >= 0).mean()),
                        "right": float((given == truth).mean()),
                        "student": float(np.mean([student(labels) for labels in given[:students]])),
                        "printed student": float(np.mean([printed_student(one, rng) for one in given[:students]])),
                    }
                )
    whole = fitted(cell.learner, *data.private, cell.repetition)
    return {
        "key": cell.key,
        "model": float((whole.predict(data.test[0]) == data.test[1]).mean()),
        "ensemble": float((tested == data.test[1]).mean()),
        "transfer": {str(m): student(leading(public[:m])) for m in task.queries},
        "rows": rows,
    }
