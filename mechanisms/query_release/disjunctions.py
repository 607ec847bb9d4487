"""A noisy polynomial that answers all monotone disjunctions of at most t of d binary attributes, and its mutants.

On a row w, the disjunction over a set y of attributes is 1 if any of them is 1 in w. It depends on the number m of
attributes in y that are 1 in w; a polynomial g with g(0) = 0 and |g(i) - 1| <= alpha for i = 1 .. t says it within
alpha. Written in binomials, ``g(m) = sum_s c_s C(m, s)``, it is a multilinear polynomial in the indicators of y: the
coefficient of a set S is c_|S| where all of S are 1 in w, and 0 elsewhere. What is released is the mean over the rows,
a coefficient for each set of at most r attributes, with noise.

Source: document 003, section 8.1 and Fact 8.1.1; catalogue 000_001_003, chebyshev_disjunction_summary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.privacy.exact import ProductLaw, TwoSidedGeometricLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    require,
    require_draws,
    require_positive,
)
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.query_release.marginals import BinaryAttributes, subsets

#: Most attributes in a query: beyond, the alternating sums lose too many digits in float answers (catalogue).
_LONGEST = 30
#: Most coefficients of a summary: the catalogue's bound.
_MOST = 10**7
#: Finest lattice of coefficients, as a denominator; beyond, the noise's base would be too close to 1.
_FINEST = 2**20

# ------------------------------------------------------------------------------------- polynomial


def _chebyshev(degree: int, x: Fraction) -> Fraction:
    """T_degree(x), exactly."""
    before, value = Fraction(1), x
    if degree == 0:
        return before
    for _ in range(degree - 1):
        before, value = value, 2 * x * value - before
    return value


@lru_cache(maxsize=256)
def degree_of(t: int, alpha: Fraction) -> int:
    """Least r <= t with ``T_r((t + 1)/(t - 1)) >= 1/alpha``, or t: the degree of `polynomial`; exact.

    Raises
    ------
    ValueError
        If t < 1 or alpha is not in (0, 1).
    """
    require(isinstance(t, int) and t >= 1, "t >= 1", t)
    require(0 < alpha < 1, "alpha in (0, 1)", alpha)
    if t == 1:
        return 1
    # q^r T_r(p/q) for x = p/q, in integers: nothing is reduced, which takes the time.
    p, q = Fraction(t + 1, t - 1).as_integer_ratio()
    before, value, power, degree = 1, p, q, 1
    while value * alpha.numerator < power * alpha.denominator and degree < t:
        before, value, power, degree = value, 2 * p * value - q * q * before, power * q, degree + 1
    return degree


@lru_cache(maxsize=256)
def polynomial(t: int, alpha: Fraction) -> tuple[Fraction, ...]:
    """Coefficients c_0 = 0, c_1, .., c_r of g in binomials, exactly.

    Parameters
    ----------
    t : int
        From 1 to 30: beyond, answers in floating point would be worth nothing.
    alpha : Fraction
        In (0, 1).

    Notes
    -----
    ``g(m) = 1 - T_r((t + 1 - 2m)/(t - 1)) / T_r((t + 1)/(t - 1))``: on 1 .. t the numerator is between -1 and 1, and
    the denominator is at least 1/alpha. Where r = t, g is 0 at 0 and 1 at 1 .. t. ``c_s`` is the s-th difference of g
    at 0.
    """
    require(isinstance(t, int) and t <= _LONGEST, f"t of at most {_LONGEST}", t)
    r = degree_of(t, alpha)
    if r == t:
        values = [Fraction(0)] + [Fraction(1)] * t
    else:
        largest = _chebyshev(r, Fraction(t + 1, t - 1))
        values = [1 - _chebyshev(r, Fraction(t + 1 - 2 * m, t - 1)) / largest for m in range(r + 1)]
    return tuple(
        sum(((-1) ** (s - i) * math.comb(s, i) * values[i] for i in range(s + 1)), Fraction(0)) for s in range(r + 1)
    )


def value_at(coefficients: Sequence[Fraction], m: int) -> Fraction:
    """``g(m)``, exactly, for any m >= 0."""
    return sum((c * math.comb(m, s) for s, c in enumerate(coefficients)), Fraction(0))


def l1_sensitivity(coefficients: Sequence[Fraction], d: int) -> Fraction:
    """``sum_s |c_s| C(d, s)``: n times the l1 sensitivity D1 of a summary, attained by rows 1^d and 0^d."""
    return sum((abs(c) * math.comb(d, s) for s, c in enumerate(coefficients)), Fraction(0))


def l2_sensitivity(coefficients: Sequence[Fraction], d: int) -> float:
    """``sqrt(sum_s c_s^2 C(d, s))``: n times the l2 sensitivity of a summary, attained by the same rows."""
    return math.sqrt(sum((c * c * math.comb(d, s) for s, c in enumerate(coefficients)), Fraction(0)))


def terms(r: int, m: int) -> int:
    """Coefficients that the answer to a query of m attributes adds up: ``sum over 1 <= s <= r of C(m, s)``."""
    return sum(math.comb(m, s) for s in range(1, r + 1))


# -------------------------------------------------------------------------------------- mechanism


@dataclass(frozen=True)
class DisjunctionSummaryBase:
    """What the mechanism shares with its mutants: everything but a distribution."""

    attributes: BinaryAttributes
    t: int
    alpha: Fraction
    size: int
    epsilon: float
    fine: int = 1

    #: Smallest size of a set that has a coefficient.
    least: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", Fraction(self.alpha))
        require(isinstance(self.size, (int, np.integer)) and self.size >= 1, "a public size >= 1", self.size)
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.fine, int) and self.fine >= 1, "an integer fine >= 1", self.fine)
        require(self.t <= len(self.attributes), f"t of at most {len(self.attributes)}", self.t)
        # The names of what is wrong with t and alpha are those of `polynomial`.
        require(self.grain <= _FINEST, f"coefficients with a common denominator of at most {_FINEST}", self.grain)
        require(self.width <= _MOST, f"at most {_MOST} coefficients", self.width)

    # ------------------------------------------------------------------------------ coefficients

    @property
    def coefficients(self) -> tuple[Fraction, ...]:
        """c_0 .. c_r."""
        return polynomial(self.t, self.alpha)

    @property
    def degree(self) -> int:
        """Degree r of the polynomial."""
        return len(self.coefficients) - 1

    @property
    def grain(self) -> int:
        """Common denominator of the coefficients, times `fine`: what is released are multiples of 1/(grain n)."""
        return math.lcm(*(c.denominator for c in self.coefficients)) * self.fine

    @property
    def unit(self) -> float:
        """A lattice step in a coefficient."""
        return 1.0 / (self.grain * self.size)

    @cached_property
    def sets(self) -> tuple[IntArray, ...]:
        """Sets of attributes that have a coefficient, by their size."""
        return tuple(subsets(len(self.attributes), s) for s in range(self.least, self.degree + 1))

    @property
    def width(self) -> int:
        """Number of coefficients, ``sum over s <= r of C(d, s)``."""
        return sum(math.comb(len(self.attributes), s) for s in range(self.least, self.degree + 1))

    def moved(self) -> int:
        """Lattice steps, at most, that one row moves all coefficients together: ``n D1`` times the grain."""
        return int(l1_sensitivity(self.coefficients, len(self.attributes)) * self.grain)

    @property
    def base(self) -> float:
        """Base of the noise on a coefficient."""
        return base_for(self.epsilon, self.moved())

    @property
    def scale(self) -> float:
        """The Laplace scale of a coefficient, ``D1 / epsilon`` in the reference."""
        return self.unit / math.log1p(self.base - 1.0)

    def steps(self, data: Dataset) -> IntArray:
        """Coefficients of the mean over the rows, in lattice steps; int64 of shape (width,).

        Raises
        ------
        ValueError
            If the data do not have `size` rows.
        """
        require(len(data) == self.size, f"{self.size} rows", len(data))
        patterns, multiplicity = self.attributes.patterns(data)
        return self.of_patterns(patterns, multiplicity)

    def of_patterns(self, patterns: NDArray[np.bool_], multiplicity: IntArray) -> IntArray:
        """The same from different rows, bool of shape (patterns, d), and how often each occurs."""
        parts, times = [], multiplicity.astype(np.float64)
        for sets in self.sets:
            whole = np.ones((len(patterns), len(sets)), dtype=np.bool_)
            for j in range(sets.shape[1]):
                whole &= patterns[:, sets[:, j]]
            # Products of float64 are the fast ones, and counts of rows are exact in it.
            rows = (times @ whole.astype(np.float64)).astype(np.int64)
            parts.append(rows * int(self.coefficients[sets.shape[1]] * self.grain))
        return np.concatenate(parts)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` summaries; float64 of shape (n, width): a coefficient for each set, small sets first."""
        require_draws(n)
        return np.asarray((self.steps(data) + self.noise(n, rng)) * self.unit, dtype=np.float64)

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw noise for all coefficients, in lattice steps; int64 of shape (n, width)."""
        return two_sided_geometric(self.base, (n, self.width), rng)

    # ----------------------------------------------------------------------------------- answers

    def places(self, query: Sequence[int]) -> IntArray:
        """Return the coefficients that the answer to a query adds up.

        Parameters
        ----------
        query : sequence of int
            Attributes of the disjunction, at least one and at most t.

        Raises
        ------
        ValueError
            If the query is empty or longer than t, where the polynomial says nothing, or names no attributes.
        """
        asked = sorted(set(query))
        require(1 <= len(asked) <= self.longest(), f"1 to {self.longest()} attributes", query)
        known = asked[0] >= 0 and asked[-1] < len(self.attributes)
        require(known, f"attributes from 0 to {len(self.attributes) - 1}", query)
        inside = [np.isin(sets, asked).all(axis=1) for sets in self.sets]
        return np.flatnonzero(np.concatenate(inside))

    def longest(self) -> int:
        """Return the most attributes of a query: t."""
        return self.t

    def answer(self, outputs: ArrayLike, query: Sequence[int]) -> FloatArray:
        """Answers to one disjunction, shape (n,), from `n` summaries; see `places`."""
        found: FloatArray = np.asarray(outputs, dtype=np.float64)[:, self.places(query)].sum(axis=1)
        return found

    def noiseless(self, data: Dataset, query: Sequence[int]) -> float:
        """Answer that a summary without noise gives."""
        return float(self.steps(data)[self.places(query)].sum()) * self.unit

    def truth(self, data: Dataset, query: Sequence[int]) -> float:
        """Share of the rows that have one of the attributes."""
        return float(self.attributes(data)[:, sorted(set(query))].any(axis=1).mean())


@dataclass(frozen=True)
class DisjunctionSummary(DisjunctionSummaryBase):
    """Mean coefficients with Laplace noise of scale D1/epsilon on their lattice; exactly epsilon-DP.

    Parameters
    ----------
    attributes : BinaryAttributes
        The d attributes.
    t : int
        Most attributes in a query, from 1 to min(d, 30).
    alpha : Fraction
        Error of the polynomial, in (0, 1); a string such as "0.1" will do.
    size : int
        Number of rows n, which is public.
    epsilon : float
        Claimed level, under replace_one.
    fine : int, default 1
        Lattice steps in the unit that all coefficients are multiples of: the more, the closer to Laplace noise.

    Raises
    ------
    ValueError
        If a parameter is out of range, the summary has more than ten million coefficients, or these have no common
        denominator up to 2^20.
    """

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: two-sided geometric coefficients."""
        a = self.base
        return ProductLaw(tuple(TwoSidedGeometricLaw(int(c), a, self.unit) for c in self.steps(data)))

    def answer_variance(self, length: int) -> float:
        """Variance of the answer to a query of so many attributes; at most ``2 (D1/eps)^2`` a term."""
        each = 2.0 * self.base / (self.base - 1.0) ** 2 * self.unit**2
        return terms(self.degree, length) * each

    def answer_bound(self, length: int, beta: float) -> float:
        """Error that the answer to one query exceeds with probability at most `beta`: that of g, and of the noise.

        The noise is within ``scale min over 0 < u < 1 of (N ln(1/(1 - u^2)) + ln(2/beta)) / u`` for a sum of N terms.
        Valid because: ``E e^(u Z / scale) <= 1/(1 - u^2)``, as in `interval_tree.IntervalTree.bound`;
        Markov's inequality, and both signs.
        """
        require(0 < beta < 1, "beta in (0, 1)", beta)
        u = np.linspace(1e-3, 0.999, 999)  # any u is valid
        noise = (-terms(self.degree, length) * np.log1p(-u * u) + math.log(2.0 / beta)) / u
        return float(self.alpha) + float(noise.min()) * self.scale
