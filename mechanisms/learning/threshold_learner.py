"""Thresholds on d-bit numbers learned by the exponential mechanism, in time O(rows log rows) for any d.

The thresholds ``c_t(x) = [x >= t]``, t = 0, .. 2^d, are too many to list for d = 32 or 62. Those between two points of
the sample label it alike, so a group is chosen, and a threshold of it uniformly. A dataset is an int array of shape
(rows, 2): a number of 0, .. 2^d - 1 and a label, 0 or 1, that no threshold need agree with. Neighbours replace one row.

Its learner on fresh samples is in `mechanisms.learning.threshold_samples`.

Source: document 003, Theorem 8.2.2, and section 9.2 for the class; catalogue 000_001_003, exp_mech_pac_learner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import draw_index
from mechanisms.selection.exponential import softmax

#: 2^d is an int64, and so is a threshold.
MOST_BITS = 62
#: Distributions list all thresholds up to this d: 65,537 of them. Arbitrary.
_LISTED_BITS = 16


def labelled(data: Dataset, d: int) -> tuple[IntArray, IntArray]:
    """Numbers and labels of a dataset, shape (rows,) each.

    Raises
    ------
    ValueError
        If a number is not in 0, .. 2^d - 1, or a label is neither 0 nor 1.
    """
    records = np.asarray(data)
    shaped = records.ndim == 2 and records.shape[1] == 2 and len(records) > 0
    require(shaped and np.issubdtype(records.dtype, np.integer), "integers of shape (rows, 2)", records)
    x, y = records[:, 0].astype(np.int64), records[:, 1].astype(np.int64)
    require(bool(np.all((x >= 0) & (x < 2**d))), f"numbers of {d} bits", np.unique(x))
    require(bool(np.all((y == 0) | (y == 1))), "labels 0 and 1", np.unique(y))
    return x, y


@dataclass(frozen=True, eq=False)
class ThresholdPieces:
    """Thresholds grouped by the labels that they give to k points in increasing order, for one or several samples.

    Piece j holds the thresholds above point j - 1 and up to point j; the last one those above all points.

    Attributes
    ----------
    ends : ndarray of shape (samples or 1, k + 1), int64
        The last threshold of each piece.
    sizes : ndarray of shape (samples or 1, k + 1), int64
        Thresholds in each piece; 0 between points that are equal.
    mistakes : ndarray of shape (samples, k + 1), int64
        Rows of the sample that each of them gets wrong.
    """

    ends: IntArray
    sizes: IntArray
    mistakes: IntArray

    def logarithms(self) -> FloatArray:
        """Logarithms of the sizes; ``-inf`` for pieces that hold none."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.sizes), dtype=np.float64)

    def thresholds(self, chosen: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a threshold of a piece for each of n samples, uniformly; `chosen` has shape (n,)."""
        sample = np.arange(len(chosen)) if len(self.ends) > 1 else 0
        below = rng.integers(0, self.sizes[sample, chosen])
        return np.asarray(self.ends[sample, chosen] - below, dtype=np.int64)


def pieces(points: IntArray, zeros: IntArray, ones: IntArray, d: int) -> ThresholdPieces:
    """Group the thresholds of d bits.

    Parameters
    ----------
    points : ndarray of shape (samples or 1, k)
        Increasing along the last axis; equal ones may follow each other.
    zeros, ones : ndarray of shape (samples, k)
        Rows at each point with label 0 and with label 1.
    d : int
        Number of bits.
    """
    ends = np.concatenate([points, np.full((len(points), 1), 2**d)], axis=1)
    # A threshold of piece j calls point i a 1 if and only if i >= j.
    below = np.concatenate([np.zeros((len(ones), 1), dtype=np.int64), np.cumsum(ones, axis=1)], axis=1)
    above = np.concatenate([np.cumsum(zeros[:, ::-1], axis=1)[:, ::-1], np.zeros((len(zeros), 1), np.int64)], axis=1)
    return ThresholdPieces(ends, np.diff(ends, prepend=-1, axis=1), below + above)


@dataclass(frozen=True)
class ThresholdLearner:
    """Choose a threshold with probability proportional to ``exp(-epsilon mistakes)``.

    Parameters
    ----------
    d : int
        Bits of a number, from 1 to 62.
    epsilon : float
        The document's epsilon. The claimed pure level is `level`, twice that: mistakes have sensitivity 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    One row that takes a mistake from a set G of thresholds and gives one to all others has level ``2 eps - ln(1 + p
    (e^(2 eps) - 1))``, with p the probability of G where it has the mistake: twice epsilon is approached as p falls.
    """

    d: int
    epsilon: float

    def __post_init__(self) -> None:
        whole = isinstance(self.d, (int, np.integer))
        require(whole and 1 <= self.d <= MOST_BITS, f"a number of bits from 1 to {MOST_BITS}", self.d)
        require_positive("epsilon", self.epsilon)

    @property
    def level(self) -> float:
        """The claimed pure level, ``2 epsilon``."""
        return 2.0 * self.epsilon

    @property
    def size(self) -> int:
        """Thresholds: ``2^d + 1``."""
        return int(2**self.d + 1)

    def rate(self, rows: int) -> float:
        """Return what a mistake takes off the logarithm of a weight, on a sample of so many rows."""
        del rows  # only a mutant looks at it
        return self.epsilon

    def pieces(self, data: Dataset, further: tuple[int, ...] = ()) -> ThresholdPieces:
        """Group the thresholds by the labels that they give to the numbers in the data, and to further ones."""
        x, y = labelled(data, self.d)
        points = np.unique(np.concatenate([x, np.array(further, dtype=np.int64)]))
        zeros, ones = (np.bincount(np.searchsorted(points, x[y == label]), minlength=points.size) for label in (0, 1))
        return pieces(points[None], zeros[None], ones[None], self.d)

    def offered(self, found: ThresholdPieces) -> FloatArray:
        """Logarithms of the numbers of thresholds of the pieces that may be chosen, shape (samples or 1, k + 1)."""
        return found.logarithms()

    def masses(self, data: Dataset, further: tuple[int, ...] = ()) -> FloatArray:
        """Probabilities of the pieces, shape (k + 1,).

        Raises
        ------
        ValueError
            If they would underflow, at mistakes that are about 700 / epsilon apart.
        """
        found = self.pieces(data, further)
        return softmax((self.offered(found) - self.rate(len(data)) * found.mistakes)[0])

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution, over all thresholds 0, .. 2^d; for larger d see `ReleasedThresholdPiece`.

        Raises
        ------
        ValueError
            If d is above 16.
        """
        require(self.d <= _LISTED_BITS, f"at most {_LISTED_BITS} bits, for a distribution", self.d)
        sizes = self.pieces(data).sizes[0]
        return FiniteLaw(tuple(range(self.size)), np.repeat(self.masses(data) / sizes, sizes))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` thresholds; int64 of shape (n,)."""
        require_draws(n)
        return self.pieces(data).thresholds(draw_index(self.masses(data), n, rng), rng)


@dataclass(frozen=True)
class ReleasedThresholdPiece:
    """Releases only where the threshold lies among a few points: how many of them are below it.

    Post-processing. If the points have all numbers of both datasets among them, nothing of the level is lost, as the
    threshold is uniform in its piece on either: so this is the learner's exact distribution, for any d.

    Parameters
    ----------
    learner : ThresholdLearner
        Chooses the threshold.
    points : tuple of int
        Increasing; the numbers of a dataset must be among them.
    """

    learner: ThresholdLearner
    points: tuple[int, ...]

    def __post_init__(self) -> None:
        increasing = all(a < b for a, b in zip(self.points, self.points[1:], strict=False))
        require(len(self.points) > 0 and increasing, "increasing points", self.points)

    @property
    def level(self) -> float:
        """The claimed level of the threshold, which post-processing keeps."""
        return self.learner.level

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution, over 0, .. number of points."""
        mass = self.learner.masses(data, self.points)
        require(len(mass) == len(self.points) + 1, f"numbers among {self.points}", np.unique(np.asarray(data)[:, 0]))
        return FiniteLaw(tuple(range(len(mass))), mass)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` numbers of points; int64 of shape (n,)."""
        return np.searchsorted(np.array(self.points), self.learner(data, n, rng), side="left").astype(np.int64)


# ----------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class LearnerScaleHalved(ThresholdLearner):
    """Weights ``exp(-epsilon mistakes / 2)``: half of the level is left unused."""

    def rate(self, rows: int) -> float:
        """Half the rate."""
        return 0.5 * super().rate(rows)


@dataclass(frozen=True)
class LearnerScaleDoubled(ThresholdLearner):
    """Weights ``exp(-2 epsilon mistakes)``."""

    def rate(self, rows: int) -> float:
        """Twice the rate."""
        return 2.0 * super().rate(rows)


@dataclass(frozen=True)
class LearnerScoreOverRows(ThresholdLearner):
    """Weights ``exp(-epsilon mistakes / rows)``: an error rate, of sensitivity 1/rows, where mistakes are meant."""

    def rate(self, rows: int) -> float:
        """The rate over the number of rows."""
        return super().rate(rows) / rows


@dataclass(frozen=True)
class ArgminWithTies(ThresholdLearner):
    """The first threshold that makes the fewest mistakes."""

    def masses(self, data: Dataset, further: tuple[int, ...] = ()) -> FloatArray:
        """All mass on the first piece of those that make the fewest."""
        wrong = self.pieces(data, further).mistakes[0]
        return np.asarray(np.arange(wrong.size) == np.argmin(wrong), dtype=np.float64)

    def law(self, data: Dataset) -> FiniteLaw:
        """All mass on one threshold."""
        found, chosen = self.pieces(data), int(np.argmax(self.masses(data)))
        return FiniteLaw((int(found.ends[0, chosen] - found.sizes[0, chosen] + 1),), np.ones(1))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """The same threshold `n` times."""
        del rng
        require_draws(n)
        return np.full(n, self.law(data).outcomes[0], dtype=np.int64)


@dataclass(frozen=True)
class SampleRealised(ThresholdLearner):
    """One threshold for each labelling of the sample: those of its numbers, and 2^d."""

    def offered(self, found: ThresholdPieces) -> FloatArray:
        """One for each piece."""
        return np.zeros(found.sizes.shape)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution, over the thresholds that are offered."""
        return FiniteLaw(tuple(self.pieces(data).ends[0].tolist()), self.masses(data))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` thresholds, the last ones of their pieces."""
        require_draws(n)
        chosen: IntArray = self.pieces(data).ends[0, draw_index(self.masses(data), n, rng)]
        return chosen


MUTANTS: dict[str, Mutant[ThresholdLearner]] = tabulate_mutants(
    Mutant("scale_halved", Twin(LearnerScaleHalved), lambda base: base.epsilon, "benign", "eps/2 in the exponent"),
    Mutant(
        "scale_doubled",
        Twin(LearnerScaleDoubled),
        lambda base: 4.0 * base.epsilon,
        "violation",
        "2 eps in the exponent",
    ),
    Mutant("argmin_with_ties", Twin(ArgminWithTies), unbounded, "violation", "no randomness: the first of the best"),
    Mutant(
        "sample_realised_hypotheses",
        Twin(SampleRealised),
        unbounded,
        "violation",
        "the hypotheses are read from the sample: its numbers are what can be chosen",
    ),
    Mutant(
        "normalised_error", Twin(LearnerScoreOverRows), None, "benign", "eps/rows in the exponent: level 2 eps/rows"
    ),
)
