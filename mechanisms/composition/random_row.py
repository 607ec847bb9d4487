"""A random row, published half of the time: what closeness in statistical distance alone would allow.

Source: D003 section 1.2, remark 1; catalogue 000_001_003, statistical_distance_only_privacy.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.queries import column_values

#: Published in the other half of the cases. Infinite, so that it is no row's value.
NOTHING = math.inf


@dataclass(frozen=True)
class RandomRow:
    """With probability 1/2 the value of a uniformly random row is published, else nothing.

    Parameters
    ----------
    column : hashable, optional
        Where the rows' values are; see `queries.column_values`. Neighbours replace one row.

    Notes
    -----
    If the n rows of a dataset have a value that no row of its neighbour has, its output has probability 1/(2n) against
    0. So no pure level holds, and (eps, delta)-DP holds for delta = 1/(2n) and every eps, and for no smaller delta:
    the output distributions differ by 1/(2n) in one value, and by at most that in any event.
    """

    column: Hashable | None = None
    share: ClassVar[float] = 0.5

    def values(self, data: Dataset) -> FloatArray:
        """Return the rows' values, float64 of shape (rows,); ValueError if there are none, or one is not finite."""
        values = np.asarray(column_values(data, self.column), dtype=np.float64)
        require(values.size > 0 and bool(np.isfinite(values).all()), "at least one row, finite values", values)
        return values

    def delta(self, data: Dataset) -> float:
        """Least delta, for every eps, of datasets of this many rows: ``share / rows``."""
        return self.share / self.values(data).size

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,), `NOTHING` where no row is published."""
        require_draws(n)
        values = self.values(data)
        drawn = values[rng.integers(0, values.size, n)]
        return np.where(rng.random(n) < self.share, drawn, NOTHING)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`; a value of m of the n rows has probability share * m/n."""
        values, counts = np.unique(self.values(data), return_counts=True)
        outcomes, mass = values.tolist(), (self.share * counts / counts.sum()).tolist()
        if self.share < 1.0:
            outcomes, mass = [*outcomes, NOTHING], [*mass, 1.0 - self.share]
        return FiniteLaw(tuple(outcomes), np.array(mass))


@dataclass(frozen=True)
class AlwaysARow(RandomRow):
    """A random row is published every time: delta = 1/n."""

    share: ClassVar[float] = 1.0


MUTANTS: dict[str, Mutant[RandomRow]] = tabulate_mutants(
    Mutant("as_described", Twin(RandomRow), unbounded, "violation", "a value that one row has: no pure level"),
    Mutant("without_the_half", Twin(AlwaysARow), unbounded, "violation", "a row every time: delta = 1/n"),
)
