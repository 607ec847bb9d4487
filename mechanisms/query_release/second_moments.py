"""Noisy sums of products of signs, the statistic of all two-way marginals, and mutants of its privacy.

People are rows of d signs, and ``y_ij`` is the sum over people of ``v_i v_j``, for all d^2 pairs (i, j): counts, with
the number of people on the diagonal. A person moves the matrix by ``v v^T``, whose l2 norm is d, exactly.

Source: document 003, Lecture 7, steps 1 and 2; catalogue 000_001_003, gaussian_projection_marginals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np

from auditor.datasets.pandas_types import is_frame
from mechanisms.additive_noise.gaussian import CalibratedGaussian, l2_steps, sigma_for
from mechanisms.base.mechanism import Dataset, FloatArray, Mutant, Twin, require, require_positive, tabulate_mutants
from mechanisms.base.noise import round_to_lattice
from mechanisms.base.queries import Relation


@dataclass(frozen=True, eq=False)
class SignedHistogram:
    """How many people have each row; the document's relaxation, where a number may be negative.

    Parameters
    ----------
    rows : ndarray of shape (k, d)
        Of signs, -1 and 1.
    counts : ndarray of shape (k,)
        Whole numbers.
    """

    rows: FloatArray
    counts: FloatArray

    def __post_init__(self) -> None:
        require(np.ndim(self.rows) == 2, "rows of shape (k, d)", np.shape(self.rows))
        require(np.shape(self.counts) == (len(self.rows),), f"{len(self.rows)} counts", np.shape(self.counts))
        require(bool(np.all(np.rint(self.counts) == self.counts)), "whole numbers as counts", self.counts)

    @property
    def people(self) -> float:
        """The l1 norm of the histogram."""
        return float(np.abs(self.counts).sum())


@dataclass(frozen=True)
class SecondMoments:
    """``y_ij = sum over people of v_i v_j``, row by row: a query with d^2 answers.

    Parameters
    ----------
    dimension : int
        d, the number of attributes.
    cuts : tuple of (column, number)
        How a DataFrame becomes signs: attribute i is 1 where the column is at least the number. Without cuts the data
        are a `SignedHistogram`, or an array of signs of shape (people, d).
    relation : {"add_remove_one", "replace_one"}
        The document's is the first.

    Notes
    -----
    A person more or less moves all d^2 entries by 1. A person replaced moves the entries at which ``v v^T`` and
    ``u u^T`` differ by 2; with a signs of v and u different these are ``2 a (d - a)``, most for ``a = floor(d/2)``. So
    the l2 norm is d, and ``sqrt(2) d`` under replacement (for odd d ``sqrt(2 d^2 - 2)``).
    """

    dimension: int
    cuts: tuple[tuple[str, float], ...] = ()
    relation: Relation = "add_remove_one"

    def __post_init__(self) -> None:
        require(isinstance(self.dimension, int) and self.dimension >= 1, "a dimension of at least 1", self.dimension)
        require(len(self.cuts) in (0, self.dimension), f"none or {self.dimension} cuts", self.cuts)
        require(self.relation in get_args(Relation), f"a relation among {get_args(Relation)}", self.relation)

    @property
    def width(self) -> int:
        """Number of attributes whose products are summed."""
        return self.dimension

    @property
    def sensitivity(self) -> float:
        """Most the answers move, l1 norm."""
        d, half = self.width, self.width // 2
        return float(d * d if self.relation == "add_remove_one" else 4 * half * (d - half))

    @property
    def linf_sensitivity(self) -> float:
        """Most one answer moves."""
        return 1.0 if self.relation == "add_remove_one" else 2.0

    @property
    def granularity(self) -> float:
        """Counts are integers: 1."""
        return 1.0

    @property
    def answers(self) -> int:
        """Number of answers."""
        return self.width**2

    @property
    def norm(self) -> float:
        """Most the answers move, l2 norm: the document's R."""
        return l2_steps(self, 1.0, self.answers)

    def attributes(self, rows: FloatArray) -> FloatArray:
        """Attributes of rows of signs: the signs themselves; shape (people, width)."""
        return rows

    def signs(self, data: Dataset) -> FloatArray:
        """Rows of signs, float64 of shape (people, d).

        Raises
        ------
        ValueError
            If there are no cuts for a DataFrame, or the data are not rows of d signs.
        """
        if is_frame(data):
            require(len(self.cuts) > 0, "cuts, by which a DataFrame becomes signs", self.cuts)
            above = [data[column].to_numpy(dtype=np.float64) >= least for column, least in self.cuts]
            return np.where(np.stack(above, axis=1), 1.0, -1.0)
        rows = np.asarray(data.rows if isinstance(data, SignedHistogram) else data, dtype=np.float64)
        require(rows.ndim == 2 and rows.shape[1] == self.dimension, f"rows of {self.dimension} signs", rows.shape)
        require(bool(np.all(np.abs(rows) == 1.0)), "signs, -1 or 1", rows[~np.all(np.abs(rows) == 1.0, axis=1)][:1])
        return rows

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the sums, shape (width^2,)."""
        rows = self.attributes(self.signs(data))
        weighted = rows * data.counts[:, None] if isinstance(data, SignedHistogram) else rows
        # Whole numbers below 2^53: exact in any order of summation.
        return (rows.T @ weighted).ravel()


@dataclass(frozen=True)
class UpperTriangle(SecondMoments):
    """Only ``y_ij`` with i < j: ``d (d - 1) / 2`` answers, and a norm of ``sqrt(d (d - 1) / 2)``."""

    @property
    def sensitivity(self) -> float:
        """Most the answers move, l1 norm."""
        d, half = self.width, self.width // 2
        return float(d * (d - 1) // 2 if self.relation == "add_remove_one" else 2 * half * (d - half))

    @property
    def answers(self) -> int:
        """Number of answers."""
        return self.width * (self.width - 1) // 2

    def __call__(self, data: Dataset) -> FloatArray:
        """Return the sums, shape (width (width - 1) / 2,)."""
        return super().__call__(data).reshape(self.width, self.width)[np.triu_indices(self.width, 1)]


def two_way_marginals(moments: FloatArray, people: float) -> FloatArray:
    """How many people have both attributes, for all pairs: ``(n + y_i + y_j + y_ij) / 4``.

    Parameters
    ----------
    moments : ndarray of shape (d, d)
        Of rows whose first sign is always 1: the first row holds the one-way sums.
    people : float
        n.
    """
    one = moments[0]
    return np.asarray((people + one[:, None] + one[None, :] + moments) / 4.0)


def printed_sigma(norm: float, epsilon: float, delta: float) -> float:
    """The document's scale, ``R sqrt(ln(1/delta)) / epsilon``.

    It is given without a constant; with the natural logarithm it is short of the usual sqrt(2). Informal, and no error
    of the document.
    """
    require_positive("epsilon", epsilon)
    require(0 < delta < 1, "delta in (0, 1)", delta)
    return norm * math.sqrt(-math.log(delta)) / epsilon


@dataclass(frozen=True)
class NoisyMoments(CalibratedGaussian):
    """`SecondMoments` plus Gaussian noise on whole numbers, of the same scale for every entry.

    Parameters
    ----------
    query, epsilon, delta, rule
        See `mechanisms.additive_noise.gaussian.CalibratedGaussian`.
    step : float, default 1.0
        Lattice of the noise: counts are whole numbers.

    Notes
    -----
    The norm of a move is d, so the level as Gaussian DP is ``d / sigma`` (times ``1 + 1 / (24 sigma^2)`` for the
    lattice, see `mechanisms.additive_noise.gaussian.unit_mu`).
    """

    query: SecondMoments
    step: float = 1.0

    @property
    def scale(self) -> float:
        """Sigma, in people."""
        return self.sigma(self.query.answers)

    @property
    def mu(self) -> float:
        """Level as Gaussian DP."""
        return self.plain(self.query.answers).mu(self.query.answers)

    def log_likelihood_ratio(self, outputs: FloatArray, x: Dataset, y: Dataset) -> FloatArray:
        """Log-likelihood ratio of x to y, shape (n,): a line in the statistic ``<output, move>``."""
        first, second = (round_to_lattice(self.query(data), self.step) * self.step for data in (x, y))
        middle = 0.5 * (first + second)
        sigma = self.sigma(first.size)
        return np.asarray((np.asarray(outputs, dtype=np.float64) - middle) @ (first - second) / sigma**2)


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class MomentNormOfLargestEntry(NoisyMoments):
    """Noise for the largest entry of a move, not for its norm: R = 1."""

    def sigma(self, coordinates: int = 1) -> float:
        """Return the scale for one answer that moves by 1."""
        del coordinates
        return sigma_for(self.rule, self.epsilon, self.delta, 1.0 / self.step) * self.step


@dataclass(frozen=True)
class MomentNormOfDimension(NoisyMoments):
    """R = d, whatever the relation, the attributes and the answers are."""

    def sigma(self, coordinates: int = 1) -> float:
        """Return the scale for a move of norm d."""
        del coordinates
        return sigma_for(self.rule, self.epsilon, self.delta, self.query.dimension / self.step) * self.step


MUTANTS: dict[str, Mutant[NoisyMoments]] = tabulate_mutants(
    Mutant(
        "R_is_one",
        Twin(MomentNormOfLargestEntry),
        None,
        "violation",
        "the largest entry for the norm: mu is d times larger",
    ),
    Mutant(
        "replace_with_R_d",
        Twin(MomentNormOfDimension),
        None,
        "violation",
        "R = d where neighbours replace a person: mu is sqrt(2) times larger, on two orthogonal rows",
    ),
    Mutant(
        "upper_triangle_with_R_d",
        Twin(MomentNormOfDimension),
        None,
        "benign",
        "R = d where only i < j are released: noise sqrt(2 d / (d - 1)) times what is needed",
    ),
)
