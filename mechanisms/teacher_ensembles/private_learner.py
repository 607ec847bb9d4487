"""A learner that is trained on released labels only: teachers on disjoint chunks, public points, a student.

Teachers are trained on chunks of the private data, one each. At every public point their votes are a label and a
distance to instability, and `online_release` gives the label out or refuses. A refusal, and what is asked
after the run has halted, becomes a uniform bit. The student is trained on the points with these labels, so it is
post-processing of them.

Where only labels are private (section 4.2), the points are rows of the data themselves, without their labels.

A dataset is an array of shape (n, d + 1): d features and a label, 0 or 1, in each row. Rows are chunked by position.

Source: document 004, Algorithms 4 and 5, section 4.2; catalogue 004, pri_learn and label_private.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.teacher_ensembles.online_release import GivenDistances, OnlineRelease
from mechanisms.teacher_ensembles.vote_distance import Distance, leading, safe_distance

#: In the place of a label: a uniform bit, drawn by the student.
UNIFORM = -1
#: Distributions are listed over all labels of the points: 2^16 of them, for each transcript.
_MOST_POINTS = 16

# -------------------------------------------------------------------------------- the learner


def signed(labels: NDArray[np.integer]) -> IntArray:
    """Labels 0 and 1 as -1 and 1."""
    return 2 * np.asarray(labels, dtype=np.int64) - 1


def average(features: FloatArray, labels: NDArray[np.integer]) -> FloatArray:
    """The black-box learner of all claims here: the sum of the features, each with the sign of its label.

    Parameters
    ----------
    features : ndarray of shape (s, d)
    labels : ndarray of shape (..., s)
        0 or 1.

    Returns
    -------
    ndarray of shape (..., d)
        A linear classifier, see `predicted`. One row with features x gives x or -x: the learner returns its label.
    """
    return np.asarray(signed(labels) @ features, dtype=np.float64)


def predicted(weights: FloatArray, points: FloatArray) -> IntArray:
    """Labels of linear classifiers: 1 where the inner product is positive; shapes (..., d) and (m, d) to (..., m)."""
    return np.asarray(weights @ points.T > 0, dtype=np.int64)


def rows_of(data: Dataset) -> tuple[FloatArray, IntArray]:
    """Features, shape (n, d), and labels, shape (n,); ValueError unless the labels are 0 and 1."""
    array = np.asarray(data, dtype=np.float64)
    require(array.ndim == 2 and array.shape[1] >= 2, "an array of features and a label, shape (n, d + 1)", array.shape)
    labels = array[:, -1]
    require(bool(np.all((labels == 0) | (labels == 1))), "labels 0 and 1", labels)
    return array[:, :-1], labels.astype(np.int64)


# ------------------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class LabellingPipeline(ABC):
    """What both settings share: teachers, released labels, a student; see the module.

    Parameters
    ----------
    chunks : int
        Teachers, k.
    epsilon, delta : float
        The claimed level.
    cutoff : int, default 1
        T, see `OnlineRelease`.
    distance : Distance, default `safe_distance`
        From the votes to the distance to instability; the document prints `gap_distance`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    chunks: int
    epsilon: float
    delta: float
    cutoff: int = 1
    distance: Distance = safe_distance

    def __post_init__(self) -> None:
        require(isinstance(self.chunks, (int, np.integer)) and self.chunks >= 1, "chunks >= 1", self.chunks)
        OnlineRelease(GivenDistances(1), self.epsilon, self.delta, self.cutoff)  # refuses what is out of range

    @abstractmethod
    def training(self, data: Dataset) -> tuple[FloatArray, IntArray]:
        """Features and labels of the rows that are split into chunks."""

    @abstractmethod
    def asked(self, data: Dataset) -> FloatArray:
        """Points at which labels are asked for, shape (m, d)."""

    def teachers(self, data: Dataset) -> FloatArray:
        """Classifiers of the chunks, shape (k, d), as in Algorithms 4 and 7; ValueError for fewer rows than chunks."""
        features, labels = self.training(data)
        require(len(labels) >= self.chunks, f"at least {self.chunks} rows", len(labels))
        # Chunk j holds rows j s to (j + 1) s - 1; rows beyond k s are not read.
        size = len(labels) // self.chunks
        chunks = (slice(j * size, (j + 1) * size) for j in range(self.chunks))
        return np.array([average(features[rows], labels[rows]) for rows in chunks])

    def votes(self, data: Dataset) -> IntArray:
        """How many teachers say 0 and how many 1, shape (m, 2)."""
        ones = predicted(self.teachers(data), self.asked(data)).sum(axis=0)
        return np.stack([self.chunks - ones, ones], axis=1)

    def labeller(self, points: int) -> OnlineRelease:
        """Who gives labels out, for so many points; the dataset is their labels and distances."""
        return OnlineRelease(GivenDistances(points), self.epsilon, self.delta, self.cutoff)

    def stream(self, data: Dataset) -> FloatArray:
        """Labels and distances of the points, shape (m, 2)."""
        votes = self.votes(data)
        return np.stack([leading(votes), self.distance(votes)], axis=1).astype(np.float64)

    def in_place_of_refusals(self, data: Dataset) -> IntArray:
        """What a refusal becomes at each point, shape (m,): a label, or `UNIFORM`."""
        return np.full(len(self.asked(data)), UNIFORM)

    def outputs(self, data: Dataset, labels: IntArray) -> IntArray:
        """Train the student on labels of shape (N, m); its weights, shape (N, d), are the outputs.

        Raises
        ------
        ValueError
            If points have features that are not whole numbers: outputs are integers, so that an event is an atom.
        """
        points = self.asked(data)
        require(bool(np.all(points == np.round(points))), "points with whole numbers as features", points)
        return average(points, labels).astype(np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses, shape (n, d)."""
        require_draws(n)
        stream = self.stream(data)
        released = self.labeller(len(stream))(stream, n, rng)
        placed = np.where(released >= 0, released, self.in_place_of_refusals(data))
        return self.outputs(data, np.where(placed == UNIFORM, rng.integers(0, 2, placed.shape), placed))

    def label_law(self, data: Dataset) -> tuple[IntArray, FloatArray]:
        """All labels of the points, shape (2^m, m), and how likely the student sees them, shape (2^m,).

        From the exact distribution of the released labels; ValueError for more than 16 points.
        """
        stream = self.stream(data)
        points = len(stream)
        require(points <= _MOST_POINTS, f"at most {_MOST_POINTS} points, for a distribution", points)
        every = np.array(list(itertools.product((0, 1), repeat=points)), dtype=np.int64)
        law, instead = self.labeller(points).law(stream), self.in_place_of_refusals(data)
        mass = np.zeros(len(every))
        for transcript, probability in zip(law.outcomes, law.probabilities, strict=True):
            placed = np.array(transcript)
            placed = np.where(placed >= 0, placed, instead)
            fits = ((every == placed) | (placed == UNIFORM)).all(axis=1)
            mass[fits] += probability / fits.sum()
        return every, mass

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the hypothesis, over tuples of weights: the student is a function of the labels."""
        labels, mass = self.label_law(data)
        return pushed(self.outputs(data, labels), mass)


def pushed(outputs: IntArray, mass: FloatArray) -> FiniteLaw:
    """The distribution of the outputs, shape (N, q), which may repeat."""
    distinct, of = np.unique(outputs, axis=0, return_inverse=True)
    total = np.zeros(len(distinct))
    np.add.at(total, of.ravel(), mass)
    return FiniteLaw(tuple(tuple(int(w) for w in row) for row in distinct), total)


@dataclass(frozen=True)
class PrivateLearner(LabellingPipeline):
    """Algorithm 5: the points are public, the rows of the data private.

    Parameters
    ----------
    chunks, epsilon, delta, cutoff, distance
        See `LabellingPipeline`.
    points : tuple of tuples of float
        The public points, m of them with d features each.
    """

    points: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "points", tuple(map(tuple, self.points)))
        dimensions = {len(point) for point in self.points}
        require(len(dimensions) == 1 and 0 not in dimensions, "public points with as many features each", self.points)

    def training(self, data: Dataset) -> tuple[FloatArray, IntArray]:
        """All rows."""
        features, labels = rows_of(data)
        require(features.shape[1] == len(self.points[0]), f"{len(self.points[0])} features", features.shape[1])
        return features, labels

    def asked(self, data: Dataset) -> FloatArray:
        """The public points; of the data nothing is read."""
        del data
        return np.array(self.points, dtype=np.float64)


@dataclass(frozen=True)
class LabelPrivateLearner(LabellingPipeline):
    """Section 4.2: only labels are private. The last rows lose theirs, and are the points of Algorithm 5.

    Parameters
    ----------
    chunks, epsilon, delta, cutoff, distance
        See `LabellingPipeline`.
    unlabelled : int, default 1
        How many of the last rows are points.
    """

    unlabelled: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = isinstance(self.unlabelled, (int, np.integer)) and self.unlabelled >= 1
        require(whole, "at least one unlabelled row", self.unlabelled)

    def training(self, data: Dataset) -> tuple[FloatArray, IntArray]:
        """All rows but the last ones."""
        features, labels = rows_of(data)
        require(len(labels) > self.unlabelled, f"more than {self.unlabelled} rows", len(labels))
        return features[: -self.unlabelled], labels[: -self.unlabelled]

    def asked(self, data: Dataset) -> FloatArray:
        """Features of the last rows."""
        return rows_of(data)[0][-self.unlabelled :]
