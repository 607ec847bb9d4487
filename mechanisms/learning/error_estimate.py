"""The training or test error of one hypothesis, with noise; and its mutants.

Source: document 002, section 3, end of the preamble, and section 4 (the amplified learner); catalogue 002,
private_error_estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import TwoSidedGeometricLaw
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
)
from mechanisms.base.noise import base_for, round_to_lattice, two_sided_geometric

#: What a record says that is not valid: it has no label.
NO_LABEL = -1


@dataclass(frozen=True)
class ErrorEstimate:
    """Part of the records that a hypothesis gets wrong, with noise on a lattice.

    Parameters
    ----------
    labels : tuple of int
        The hypothesis: its label, 0 or 1, for each point of the domain.
    size : int
        Records, n; public. The data must have so many.
    epsilon : float
        Claimed pure level, under replace-one.
    step : float, default 2**-10
        Lattice step in records: a power of two, at most 1. A thousandth of a record, so that the distribution is the
        Laplace distribution of scale ``1 / (n eps)`` to the eye.

    Notes
    -----
    The data are ints of shape (n, 2): a point, and a label 0 or 1, or -1 where there is none, which counts as a
    mistake. The number of mistakes moves by at most 1, which is ``1 / step`` lattice steps, and has integer noise of
    base ``exp(eps step)`` added; the sum times ``step / n`` is released.

    Raises
    ------
    ValueError
        If a parameter is out of range, the data have another size, or a point is not in the domain.
    """

    labels: tuple[int, ...]
    size: int
    epsilon: float
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require(len(self.labels) > 0 and set(self.labels) <= {0, 1}, "labels 0 and 1, at least one", self.labels)
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a number of records >= 1", self.size)
        require_positive("epsilon", self.epsilon)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5 and self.step <= 1, "a power of two, at most 1, as step", self.step)

    @property
    def scale(self) -> float:
        """Scale of the Laplace distribution that the noise stands for, in records."""
        return 1.0 / self.epsilon

    @property
    def base(self) -> float:
        """Base of the integer noise."""
        return base_for(1.0 / self.scale, round(1.0 / self.step))

    @property
    def unit(self) -> float:
        """What a lattice step is worth in the output."""
        return self.step / self.size

    def wrong(self, data: Dataset) -> IntArray:
        """Whether each record is a mistake, 0 or 1, shape (n,)."""
        records = np.asarray(data)
        require(records.shape == (self.size, 2), f"data of shape ({self.size}, 2)", records.shape)
        x, y = records[:, 0], records[:, 1]
        require(bool(np.all((x >= 0) & (x < len(self.labels)))), f"points from 0 to {len(self.labels) - 1}", x)
        require(bool(np.all(np.isin(y, (0, 1, NO_LABEL)))), f"labels 0, 1 and {NO_LABEL}", np.unique(y))
        return np.asarray(np.array(self.labels)[x] != y, dtype=np.int64)

    def centre(self, data: Dataset) -> int:
        """The answer in lattice steps."""
        return round(float(self.wrong(data).sum()) / self.step)

    def law(self, data: Dataset) -> TwoSidedGeometricLaw:
        """Exact output distribution on `data`."""
        return TwoSidedGeometricLaw(self.centre(data), self.base, self.unit)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` estimates; float64 of shape (n,), multiples of the unit."""
        require_draws(n)
        noisy = self.centre(data) + two_sided_geometric(self.base, n, rng)
        return noisy.astype(np.float64) * self.unit

    def beyond(self, steps: int) -> float:
        """Probability that the noise is more than so many lattice steps, ``2 a^-steps / (a + 1)``."""
        return 2.0 * math.exp(-steps * math.log1p(self.base - 1.0)) / (self.base + 1.0)


# ---------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class ErrorOverValidRecords(ErrorEstimate):
    """Mistakes among the records with a label over the number of those, with noise for n records."""

    def centre(self, data: Dataset) -> int:
        """The answer in lattice steps of a record out of n; 0 where no record is valid."""
        valid = np.asarray(data)[:, 1] != NO_LABEL
        mistakes, records = int(self.wrong(data)[valid].sum()), max(1, int(valid.sum()))
        return int(round_to_lattice(np.array(self.size * mistakes / records), self.step))


@dataclass(frozen=True)
class ScaleOneOverEps(ErrorEstimate):
    """Noise of scale ``1 / eps`` for a rate, which moves by ``1 / n``."""

    @property
    def scale(self) -> float:
        """Scale in records: n times the right one."""
        return self.size / self.epsilon


@dataclass(frozen=True)
class NoiseForTrainingSize(ErrorEstimate):
    """Noise for as many records as the hypothesis was trained on, here twice those that it is tested on."""

    @property
    def scale(self) -> float:
        """Scale in records: half of the right one."""
        return 1.0 / (TRAINED_ON * self.epsilon)


#: Training records for each test record in `NoiseForTrainingSize`; arbitrary, a third of the data is often held out.
TRAINED_ON = 2.0


def _over_n(base: ErrorEstimate) -> float:
    return base.epsilon / base.size


def _trained_level(base: ErrorEstimate) -> float:
    return TRAINED_ON * base.epsilon


def _all_but_one(base: ErrorEstimate) -> float:
    return base.size * base.epsilon


MUTANTS: dict[str, Mutant[ErrorEstimate]] = tabulate_mutants(
    Mutant(
        "divided_by_valid_records",
        Twin(ErrorOverValidRecords),
        _all_but_one,
        "violation",
        "over v valid records a mistake weighs 1/v, and is hidden as if it weighed 1/n: eps n / v, n eps for v = 1",
    ),
    Mutant(
        "scale_1_over_eps",
        Twin(ScaleOneOverEps),
        _over_n,
        "benign",
        "scale 1/eps for 1/(n eps): n times as private as claimed, and n times as far off",
    ),
    Mutant(
        "train_size_for_test_size",
        Twin(NoiseForTrainingSize),
        _trained_level,
        "violation",
        "sensitivity 1/n for the training records, twice as many as are tested on: 2 eps",
    ),
)
