"""Public points of several classes, labelled by votes of teachers.

Examples are uniformly distributed in [0, 1], which R intervals of the same length divide into R classes. A teacher has
a threshold for each end of an interval, the largest one that agrees with its examples, so that all teachers err on the
same side.

Source: document 004, section 4.1, Remark 1; catalogue 004, bin_clas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.teacher_ensembles.classification_queries import ClassificationSizes, count_missed
from mechanisms.teacher_ensembles.vote_distance import gap_distance, leading


def draw_shifts(classes: int, examples: int, chunks: int, rng: np.random.Generator) -> FloatArray:
    """Draw how far each threshold of each teacher is above the end of its interval.

    Parameters
    ----------
    classes : int
        R, at least 2.
    examples : int
        n', at least R.
    chunks : int
        k.
    rng : numpy.random.Generator
        Source of all randomness.

    Returns
    -------
    ndarray of shape (chunks, R - 1)
        At most 1/R.

    Notes
    -----
    The shifts are the distances from the ends to the next example. That they are above a_1, a_2, ... has probability
    ``(1 - a_1 - a_2 - ...)^n'``, which is that of R - 1 coordinates of a Dirichlet variable with R - 1 parameters of 1
    and one of ``n' - R + 2``. Where there is no example up to the next end the threshold stops there.
    """
    require(examples >= classes, f"at least {classes} examples", examples)
    spacings = rng.dirichlet([1.0] * (classes - 1) + [examples - classes + 2.0], chunks)[:, :-1]
    return np.minimum(spacings, 1.0 / classes)


def count_votes(points: FloatArray, shifts: FloatArray) -> IntArray:
    """Count the teachers that give each class to each point.

    Parameters
    ----------
    points : ndarray of shape (m,)
        In [0, 1].
    shifts : ndarray of shape (k, R - 1)
        Of the teachers, each in [0, 1/R].

    Returns
    -------
    ndarray of shape (m, R), int64
    """
    chunks, ends = shifts.shape
    thresholds = np.sort(shifts + np.arange(1, ends + 1) / (ends + 1), axis=0)
    above = [np.full(len(points), chunks)]
    above += [np.searchsorted(thresholds[:, j], points) for j in range(ends)]
    above.append(np.zeros(len(points), dtype=np.int64))
    return -np.diff(np.stack(above, axis=1), axis=1)


@dataclass(frozen=True)
class MislabelledClasses:
    """Fresh teachers and fresh points of several classes: how many points do not get their own label.

    Parameters
    ----------
    sizes : ClassificationSizes
        m, T, k, lambda and w, as for two classes; gamma is 0.
    classes : int
        R, at least 2. A teacher has as many examples as R - 1 thresholds need.

    Notes
    -----
    There is no dataset. Outputs are int64 of shape (n,).
    """

    sizes: ClassificationSizes
    classes: int

    def __post_init__(self) -> None:
        require(isinstance(self.classes, (int, np.integer)) and self.classes >= 2, "at least 2 classes", self.classes)
        require(self.sizes.gamma == 0, "a gamma of 0", self.sizes.gamma)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers; the data are not looked at."""
        del data
        require_draws(n)
        return np.array([self._answer_stream(rng) for _ in range(n)], dtype=np.int64)

    def _answer_stream(self, rng: np.random.Generator) -> int:
        sizes = self.sizes
        shifts = draw_shifts(self.classes, sizes.examples_of(self.classes - 1), sizes.chunks, rng)
        points = rng.random(sizes.queries)
        truth = np.minimum((points * self.classes).astype(np.int64), self.classes - 1)
        counts = count_votes(points, shifts)
        return sum(count_missed(sizes, gap_distance(counts).astype(np.float64), leading(counts) != truth, rng))
