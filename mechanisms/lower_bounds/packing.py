"""Packings: levels that many datasets, far from one another, certify, and mechanisms that name a dataset.

Source: 003, Lemma 4.3.1; catalogue 000_001_003, pure_dp_packing_bound and A9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechanisms.base.mechanism import require, require_positive


def certified(log_p: float, log_datasets: float, distance: int) -> float:
    """Largest level that an attack by packing certifies, at least 0.

    Parameters
    ----------
    log_p : float
        Logarithm of the probability of the good outputs on each dataset's own; minus infinity for none.
    log_datasets : float
        Logarithm of the number of datasets.
    distance : int
        Neighbouring steps from one dataset to all of them.

    Notes
    -----
    Valid because: with l datasets and sets of good outputs that are disjoint, ``l e^(-epsilon g) p <= 1`` for a
    mechanism that is epsilon-DP (catalogue, A9).
    """
    require(distance >= 1, "a distance of at least 1", distance)
    return max(0.0, (log_datasets + log_p) / distance)


@dataclass(frozen=True)
class RowNames:
    """Names one of the 2^columns possible rows, each in proportion to ``e^(epsilon * its number of rows)``.

    epsilon-DP for adding or removing a row, on all tables, the empty one among them: one row more multiplies one
    weight, and their sum, by at most e^epsilon.

    Parameters
    ----------
    columns : int
        Length of a row.
    epsilon : float
        Exact level under adding and removing.
    """

    columns: int
    epsilon: float

    def __post_init__(self) -> None:
        require(self.columns >= 1, "at least one column", self.columns)
        require_positive("epsilon", self.epsilon)

    def log_right(self, rows: int) -> float:
        """Logarithm of the probability that the row of a table of identical rows is named."""
        others = math.expm1(self.columns * math.log(2.0))
        return -math.log1p(others * math.exp(-self.epsilon * rows))


@dataclass(frozen=True)
class RowNamesOfMany:
    """Names a row, or none, on tables of at least `rows` rows: as good as two steps a row allow.

    Row v is named with probability ``b e^(epsilon min(2 c(v) - N, rows))`` where c(v) of the N rows are v, and else
    nothing is.

    Parameters
    ----------
    columns : int
        Length of a row.
    rows : int
        Least number of rows of a table.
    epsilon : float
        Exact level for adding and removing a row of tables that have at least so many before and after.

    Notes
    -----
    epsilon-DP because: a row more or less changes ``2 c(v) - N`` by 1 for every v, so each probability by a factor of
    at most e^epsilon; and with S the sum of them, ``1 - S`` changes by no more while ``S <= 1 / (1 + e^epsilon)``. For
    that, b is small enough: one row at most has ``2 c(v) > N`` and counts ``e^(epsilon rows)`` at most; the others'
    exponents are at most 0, convex in c(v), whose sum is at most N, so that their sum is at most that of two rows
    with N / 2 each and of 2^columns with none, ``2 + 2^columns e^(-epsilon rows)``. The empty table has no such
    distribution: there all rows would have to be named with a probability of more than 1.
    """

    columns: int
    rows: int
    epsilon: float

    def __post_init__(self) -> None:
        require(self.columns >= 1, "at least one column", self.columns)
        require(self.rows >= 1, "at least one row", self.rows)
        require_positive("epsilon", self.epsilon)

    @property
    def factor(self) -> float:
        """The factor b."""
        most = math.exp(self.epsilon * self.rows) + 2.0 + 2.0**self.columns * math.exp(-self.epsilon * self.rows)
        return 1.0 / ((1.0 + math.exp(self.epsilon)) * most)

    def named(self, count: int, total: int) -> float:
        """Probability that a row is named that `count` of `total` rows are."""
        require(total >= self.rows, f"a table of at least {self.rows} rows", total)
        require(0 <= count <= total, f"a count from 0 to {total}", count)
        return self.factor * math.exp(self.epsilon * min(2 * count - total, self.rows))

    def log_right(self) -> float:
        """Logarithm of the probability that the row of a table of `rows` identical rows is named."""
        return math.log(self.named(self.rows, self.rows))
