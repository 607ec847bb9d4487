"""DP-FTRL: noise that is correlated between steps, for rows that take part at known steps, and its mutants.

With a lower triangular matrix C the noise of the steps is ``C^-1 z`` for independent normal z, times the sensitivity
of ``C x``. C is the square root of the matrix of prefix sums, cut to a band as wide as two steps of one row are
apart: its columns of these steps are orthogonal.

Source: Kairouz et al. (2021); Denisov et al. (2022) for the matrix; Choquette-Choo et al. (2023), banded matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, Mutant, Twin, require, tabulate_mutants
from mechanisms.training.dp_sgd import FeatureReader, Masks, StatedDescent
from mechanisms.training.loss_lattice import law_of_cells
from mechanisms.training.models import read_rows


@dataclass(frozen=True)
class DPFTRL(StatedDescent):
    """Gradient descent with correlated noise on batches in a fixed order, for several epochs.

    Row i is in batch ``i mod (steps / epochs)`` of each epoch. See `GradientDescent` for the other parameters; there is
    no sampling, and the release is the score.

    Parameters
    ----------
    epochs : int, default 1
        Passes over the rows; divides the steps.
    slot : int, default 0
        Batch of the row that an attacker looks for.

    Notes
    -----
    Valid because: what is released of step t is ``x_t + (C^-1 z)_t``, from which the sums of all steps follow as
    ``C x + z``: a Gaussian mechanism. A row adds at most the clip norm at each of its steps, so the l2 norm that it
    adds to ``C x`` is at most that of the sum of C's columns there, for entries of at least 0 (`sensitivity`).
    Adding the last row leaves the batches of the others.
    """

    epochs: int = 1
    slot: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.rate == 1, "no sampling", self.rate)
        require(self.release == "score", "a score as release", self.release)
        require(isinstance(self.reader, FeatureReader), "a reader of one feature", self.reader)
        require(self.epochs >= 1 and self.steps % self.epochs == 0, "epochs that divide the steps", self.epochs)
        require(0 <= self.slot < self.separation, f"a slot below {self.separation}", self.slot)

    @property
    def separation(self) -> int:
        """Steps between two of one row: the batches of an epoch."""
        return self.steps // self.epochs

    @property
    def matrix(self) -> FloatArray:
        """Matrix C, of shape (steps, steps): binomial(2k, k) / 4^k on the k-th diagonal of the band."""
        k = np.arange(min(self._band, self.steps))
        column = np.zeros(self.steps)
        column[: len(k)] = special.binom(2 * k, k) / 4.0**k
        return np.asarray(linalg.toeplitz(column, np.zeros(self.steps)))

    @property
    def _band(self) -> int:
        return self.separation

    def _sum_columns(self, slot: int) -> FloatArray:
        """What a row of this batch adds to ``C x``, in clip norms, of shape (steps,)."""
        return np.asarray(self.matrix[:, slot :: self.separation].sum(axis=1))

    @property
    def sensitivity(self) -> float:
        """Largest l2 norm that a row adds to ``C x``, in clip norms."""
        return max(float(np.linalg.norm(self._sum_columns(slot))) for slot in range(self.separation))

    def mu(self) -> float:
        """Level as Gaussian DP for adding or removing a row: ``1 / noise``."""
        return 1.0 / self.noise

    def draw_batches(self, rows: int, n: int, rng: np.random.Generator) -> Masks:  # noqa: ARG002
        """See `GradientDescent`."""
        own = np.arange(rows) % self.separation == (np.arange(self.steps) % self.separation)[:, None]
        return np.broadcast_to(own[:, None, :], (self.steps, n, rows))

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:
        """See `GradientDescent`."""
        plain = super().draw_noise(batches, p, rng)
        flat = linalg.solve_triangular(self.matrix, plain.reshape(self.steps, -1), lower=True)
        return self.sensitivity * np.asarray(flat).reshape(plain.shape)

    def _round_readings(self, readings: FloatArray) -> IntArray:
        """See `GradientDescent`: one reading of the run, along what the row would add."""
        direction = self._sum_columns(self.slot)
        along = readings @ self.matrix.T @ direction / np.linalg.norm(direction) / self.sensitivity
        return self.lattice.cells(along)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the score; ValueError if the canary is in another slot than is looked at."""
        rows, shift = read_rows(data), self.shift(data)
        assert isinstance(self.reader, FeatureReader)
        if shift:
            found = int(np.flatnonzero(rows[:, self.reader.index])[0]) % self.separation
            require(found == self.slot, f"a canary in batch {self.slot}", found)
        added = float(np.linalg.norm(self._sum_columns(self.slot))) / self.sensitivity
        return law_of_cells(self.lattice, self.lattice.masses(added * shift, 1.0))

    def _distance(self, rows: int) -> float:
        """See `StatedDescent`: the noise of all steps, as correlated noise adds up."""
        norm = float(np.linalg.norm(np.cumsum(np.linalg.inv(self.matrix), axis=0), axis=1).max()) * self.sensitivity
        noise = self.noise * norm * (math.sqrt(sum(self.model.sizes)) + 9.0)
        return self.learning_rate / self.batch * self.clip * (rows * self.epochs + noise)


@dataclass(frozen=True)
class ParticipationCountedOnce(DPFTRL):
    """The sensitivity is that of one step, though a row takes part in every epoch."""

    @property
    def sensitivity(self) -> float:
        """Norm of the longest column."""
        return float(np.linalg.norm(self.matrix, axis=0).max())


@dataclass(frozen=True)
class ColumnNormLeftOut(DPFTRL):
    """The noise is scaled to the clip norm, not to the sensitivity of ``C x``."""

    @property
    def sensitivity(self) -> float:
        """One clip norm an epoch, as if C were the identity."""
        return math.sqrt(self.epochs)


@dataclass(frozen=True)
class ColumnsTakenAsOrthogonal(DPFTRL):
    """The whole matrix in the place of its band, with the sensitivity of orthogonal columns."""

    @property
    def _band(self) -> int:
        return self.steps

    @property
    def sensitivity(self) -> float:
        """Root of the sum of the columns' squares."""
        squares = (self.matrix**2).sum(axis=0)
        return math.sqrt(max(float(squares[slot :: self.separation].sum()) for slot in range(self.separation)))


@dataclass(frozen=True)
class LevelOfTwin:
    """Level as Gaussian DP of a mutant with another sensitivity (for `Mutant.true_level`)."""

    mutant: type[DPFTRL]

    def __call__(self, base: DPFTRL) -> float:
        """Largest norm that a row adds over the one that the noise is scaled to, over the noise."""
        built = Twin(self.mutant)(base)
        added = max(float(np.linalg.norm(built._sum_columns(slot))) for slot in range(built.separation))
        return added / built.sensitivity / base.noise


MUTANTS: dict[str, Mutant[DPFTRL]] = tabulate_mutants(
    Mutant(
        "participation_counted_once",
        Twin(ParticipationCountedOnce),
        LevelOfTwin(ParticipationCountedOnce),
        "violation",
        "root of the number of epochs times the sensitivity, nearly",
    ),
    Mutant(
        "column_norm_left_out",
        Twin(ColumnNormLeftOut),
        LevelOfTwin(ColumnNormLeftOut),
        "violation",
        "the norm of a column of C times the sensitivity",
    ),
    Mutant(
        "columns_taken_as_orthogonal",
        Twin(ColumnsTakenAsOrthogonal),
        LevelOfTwin(ColumnsTakenAsOrthogonal),
        "violation",
        "columns that overlap add up, with products that are positive",
    ),
)
