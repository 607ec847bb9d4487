"""Privacy losses of noisy steps, rounded to a lattice: outcomes are finite, and their distribution is exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import FloatArray, IntArray, require, require_positive

#: Readings further out than so many standard deviations of the noise are counted as that far out; arbitrary, one step
#: in 10^11 is.
_REACH = 7.0


@dataclass(frozen=True)
class LossLattice:
    """Cells of a reading whose noise is normal, by its privacy loss in a sampled Gaussian step.

    Parameters
    ----------
    shift : float
        What the canary adds, in standard deviations of the noise, > 0.
    rate : float
        Probability with which the canary is in a step's batch, in (0, 1].
    step : float
        Width of the cells, in nats, > 0.

    Notes
    -----
    The loss of a reading s is ``ln(1 - q + q exp(m s - m^2 / 2))`` for a shift m and a rate q; a cell holds the
    readings whose loss rounds to one multiple of the step. Readings are bounded first, so cells are finitely many.
    """

    shift: float
    rate: float
    step: float

    def __post_init__(self) -> None:
        require_positive("shift", self.shift)
        require_positive("step", self.step)
        require(0 < self.rate <= 1, "a rate in (0, 1]", self.rate)

    def losses(self, readings: FloatArray) -> FloatArray:
        """Privacy losses of readings, of any shape."""
        straight = self.shift * readings - 0.5 * self.shift**2
        if self.rate == 1.0:
            return np.asarray(straight)
        return np.asarray(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + straight))

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest cell."""
        low, high = np.rint(self.losses(np.array([-_REACH, self.shift + _REACH])) / self.step).astype(int).tolist()
        return int(low), int(high)

    def cells(self, readings: FloatArray) -> IntArray:
        """Cells of readings, of any shape."""
        return np.clip(np.rint(self.losses(readings) / self.step), *self.ends).astype(np.int64)

    def masses(self, mean: float, rate: float, scale: float = 1.0) -> FloatArray:
        """Probabilities of the cells for readings ``N(b mean, scale^2)`` with b a coin of probability ``rate``.

        Parameters
        ----------
        mean, scale : float
            In standard deviations of the claimed noise.
        rate : float
            In [0, 1].

        Returns
        -------
        ndarray of shape (cells,)
        """
        low, high = self.ends
        loss = (np.arange(low, high) + 0.5) * self.step  # between the cells
        if self.rate == 1.0:
            straight = loss
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                straight = np.log(np.expm1(loss) + self.rate) - math.log(self.rate)
            straight[loss <= math.log1p(-self.rate)] = -math.inf  # no reading has so small a loss
        edges = np.concatenate([[-math.inf], (straight + 0.5 * self.shift**2) / self.shift, [math.inf]])
        parts = [(1.0 - rate, 0.0), (rate, mean)]
        return np.asarray(sum(share * _interval_masses((edges - at) / scale) for share, at in parts if share > 0))


def _interval_masses(edges: FloatArray) -> FloatArray:
    """Normal probabilities between neighbouring edges, with relative accuracy in both tails."""
    low, high = edges[:-1], edges[1:]
    upper = low > 0
    return np.asarray(np.where(upper, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low)))


def law_of_sum(lattice: LossLattice, masses: Sequence[FloatArray]) -> FiniteLaw:
    """Distribution of the sum of independent cells.

    Parameters
    ----------
    lattice : LossLattice
        The cells.
    masses : sequence of ndarray
        Probabilities of the cells at each step.
    """
    total = masses[0]
    for one in masses[1:]:
        total = np.convolve(total, one)
    low = lattice.ends[0] * len(masses)
    return FiniteLaw(tuple(range(low, low + len(total))), total / total.sum())


def law_of_cells(lattice: LossLattice, masses: FloatArray) -> FiniteLaw:
    """Distribution of one step's cell."""
    return law_of_sum(lattice, [masses])
