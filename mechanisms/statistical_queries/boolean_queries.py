"""A real-valued statistical query asked as boolean ones: the binary digits of its values.

A query g with values in [-b, b] is to be answered within tau by an oracle that takes queries with values -1 and 1 only.
With ``u = (g + b) / (2 b)`` in [0, 1] and bit j of u the j-th binary digit, query j is ``2 bit_j - 1``, asked with
tolerance ``tau / (2 b)``; from L answers e_j the estimate is ``-b + 2 b sum_j 2^-j (1 + e_j) / 2``.

Source: document 002, remark after Definition 5.4, which says that O(log(b / tau)) nonadaptive queries are enough and
leaves the construction to a paper it cites; this one, with its constants, is that of catalogue 002, sq_real_to_boolean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.base.mechanism import (
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.statistical_queries.sq_oracles import StatisticalQueryOracle

# Digits of u that float64 has; a tolerance that needs more is not one for it.
_MOST_BITS = 52


@dataclass(frozen=True)
class BooleanQueries:
    """The estimate of a real query's expectation from boolean queries.

    The data are the values of g, each equally likely: float64 of shape (values,), in [-b, b].

    Parameters
    ----------
    bound : float
        b.
    tolerance : float
        tau, in (0, 2 b): the tolerance of a boolean query is in (0, 1).
    oracle : StatisticalQueryOracle
        Who answers the boolean queries.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a value is.

    Notes
    -----
    Two errors add up. That of the answers is ``2 b sum_j 2^-j (tau / (2 b)) / 2 = (tau / 2) (1 - 2^-L)``. That of the
    digits that are left out is at most ``2 b 2^-L``, hence at most ``tau / 2``, attained where g = b: its digits
    are all ones.
    """

    bound: float
    tolerance: float
    oracle: StatisticalQueryOracle

    def __post_init__(self) -> None:
        require_positive("bound", self.bound)
        require(0 < self.tolerance < 2 * self.bound, f"a tolerance in (0, {2 * self.bound})", self.tolerance)
        require(self.queries <= _MOST_BITS, f"a tolerance that takes at most {_MOST_BITS} queries", self.tolerance)

    @property
    def queries(self) -> int:
        """How many boolean queries are asked, ``L = ceil(log2(4 b / tau))``."""
        return math.ceil(math.log2(4.0 * self.bound / self.tolerance))

    @property
    def each(self) -> float:
        """Tolerance of a boolean query, ``tau / (2 b)``."""
        return self.tolerance / (2.0 * self.bound)

    @property
    def largest_error(self) -> float:
        """Largest error of the estimate, over all valid oracles and all g."""
        return self.bound * self.each * (1.0 - 2.0**-self.queries) + 2.0 * self.bound * 2.0**-self.queries

    def digits(self, values: ArrayLike) -> IntArray:
        """Return the first L binary digits of u as an integer, shape (values,).

        No digit is wrong for the u that was computed: multiplying by a power of two is exact.
        """
        g = np.asarray(values, dtype=np.float64)
        require(g.ndim == 1 and g.size > 0, "at least one value, shape (values,)", g.shape)
        require(bool(np.all(np.abs(g) <= self.bound)), f"values in [-{self.bound}, {self.bound}]", values)
        return self.expanded((g + self.bound) / (2.0 * self.bound))

    def expanded(self, u: FloatArray) -> IntArray:
        """Return the digits of u in [0, 1]; 1 is 0.111.. to the last digit."""
        return np.minimum(np.floor(u * 2.0**self.queries), 2.0**self.queries - 1.0).astype(np.int64)

    def expectations(self, values: ArrayLike) -> FloatArray:
        """Return the expectations of the boolean queries, from the first digit on; shape (L,)."""
        places = np.arange(self.queries - 1, -1, -1, dtype=np.int64)
        bits = (self.digits(values)[:, None] >> places) & 1
        return np.asarray(2.0 * bits.mean(axis=0) - 1.0, dtype=np.float64)

    def __call__(self, data: ArrayLike, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` estimates, shape (n,)."""
        require_draws(n)
        truth = self.expectations(data)
        answers = self.oracle(np.broadcast_to(truth, (n, truth.size)), self.each, rng)
        weights = 2.0 ** -np.arange(1.0, truth.size + 1.0)
        return np.asarray(-self.bound + self.bound * ((1.0 + answers) @ weights), dtype=np.float64)


# ----------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class WholeTolerancePerBit(BooleanQueries):
    """Every boolean query is asked with the tolerance of the whole."""

    @property
    def each(self) -> float:
        """The tolerance, tau."""
        return self.tolerance


@dataclass(frozen=True)
class OneBitFewer(BooleanQueries):
    """One boolean query too few."""

    @property
    def queries(self) -> int:
        """``L - 1``."""
        return super().queries - 1


@dataclass(frozen=True)
class FlooredOne(BooleanQueries):
    """The digits of 1 are those after the point of 1.000..: it counts as 0."""

    def expanded(self, u: FloatArray) -> IntArray:
        """Return the digits of u modulo 1."""
        return np.floor(np.mod(u, 1.0) * 2.0**self.queries).astype(np.int64)


#: None of them is about privacy; what they break is the tolerance.
MUTANTS: dict[str, Mutant[BooleanQueries]] = tabulate_mutants(
    Mutant(
        "tolerance_tau_per_bit", Twin(WholeTolerancePerBit), None, "benign", "tolerance tau for tau / (2 b) a query"
    ),
    Mutant("one_bit_too_few", Twin(OneBitFewer), None, "benign", "L - 1 queries"),
    Mutant("floor_at_one", Twin(FlooredOne), None, "benign", "g = b has the digits of g = -b"),
)
