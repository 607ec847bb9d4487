"""Statistical queries answered centrally: every query by the mean over all rows, with Laplace noise for its share.

t queries with values in [-b, b] are answered from the same n rows. One row moves a mean by at most ``2 b / n``, so
noise of scale ``2 b t / (n epsilon)`` costs ``epsilon / t`` an answer and epsilon for all. A local protocol needs users
of its own for each query, and a noise for each user: `mechanisms.local_model.fresh_users`.

Source: document 002, introduction, which only mentions what is known of sum queries; catalogue 002,
central_sq_simulation, whose sample size is `rows_needed`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from auditor.privacy.exact import ProductLaw, TwoSidedGeometricLaw
from mechanisms.base.mechanism import Dataset, FloatArray, require, require_draws, require_positive
from mechanisms.base.noise import base_for, round_to_lattice, two_sided_geometric
from mechanisms.local_model.local_query import UserQuery


@dataclass(frozen=True)
class CentralQueries:
    """Means of several queries over all rows, each with noise for an equal share of epsilon.

    Parameters
    ----------
    queries : tuple of UserQuery
        From rows to values in [-b, b], each with its own bound b.
    size : int
        Rows n, which is public.
    epsilon : float
        Claimed pure level of all answers together, under replace-one.
    step : float, default 2**-10
        Lattice step, a power of two: a row's value is rounded to a multiple of it and moves a sum by at most
        ``ceil(2 b / step)`` steps. The noise of a sum is two-sided geometric with base
        ``exp(epsilon / (t ceil(2 b / step)))``.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the data have another number of rows.
    """

    queries: tuple[UserQuery, ...]
    size: int
    epsilon: float
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        require(len(self.queries) > 0, "at least one query", self.queries)
        _require_size(self.size)
        require_positive("epsilon", self.epsilon)
        _require_step(self.step)

    @property
    def unit(self) -> float:
        """What a lattice step of a sum is worth in a mean."""
        return self.step / self.size

    def bases(self) -> list[float]:
        """Base of the integer noise of each answer."""
        share = self.epsilon / len(self.queries)
        return [base_for(share, math.ceil(2.0 * query.bound / self.step)) for query in self.queries]

    def sums(self, data: Dataset) -> list[int]:
        """Sum of each query over the rows, in lattice steps."""
        require(len(data) == self.size, f"{self.size} rows", len(data))
        return [int(round_to_lattice(query(data), self.step).sum()) for query in self.queries]

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times all answers; float64 of shape (n, t), multiples of the unit."""
        require_draws(n)
        sums = zip(self.sums(data), self.bases(), strict=True)
        noisy = np.stack([total + two_sided_geometric(a, (n,), rng) for total, a in sums], axis=1)
        return noisy.astype(np.float64) * self.unit

    def law(self, data: Dataset) -> ProductLaw:
        """Exact distribution of the answers: independent two-sided geometric ones in units of ``step / size``."""
        sums = zip(self.sums(data), self.bases(), strict=True)
        return ProductLaw(tuple(TwoSidedGeometricLaw(total, a, self.unit) for total, a in sums))

    def reach(self, beta: float) -> float:
        """With probability at least ``1 - beta`` no answer has more noise than this, in units of a query with b = 1.

        ``(2 t / (n epsilon)) ln(t / beta)``: a tail of ``beta / t`` for each.
        """
        _require_beta(beta)
        t = len(self.queries)
        return 2.0 * t / (self.size * self.epsilon) * math.log(t / beta)


@dataclass(frozen=True)
class FreshSample:
    """The answers on n persons drawn from a distribution under which the queries are independent signs.

    The data are the expectations of t queries with values -1 and 1, shape (t,). Nothing is drawn but the sums.

    Parameters
    ----------
    size : int
        Persons n.
    epsilon : float
        Level of all answers together.
    step : float, default 2**-10
        Lattice step, as in `CentralQueries`.
    """

    size: int
    epsilon: float
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        _require_size(self.size)
        require_positive("epsilon", self.epsilon)
        _require_step(self.step)

    def base(self, queries: int) -> float:
        """Base of the integer noise of one answer."""
        return base_for(self.epsilon / queries, round(2.0 / self.step))

    def __call__(self, data: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times all answers; float64 of shape (n, t)."""
        require_draws(n)
        means = _means(data)
        shape = (n, means.size)
        values = (2 * rng.binomial(self.size, (1.0 + means) / 2.0, shape) - self.size) * round(1.0 / self.step)
        noisy = values + two_sided_geometric(self.base(means.size), shape, rng)
        return np.asarray(noisy * (self.step / self.size), dtype=np.float64)

    def miss(self, data: FloatArray, tolerance: float) -> float:
        """Probability that some answer is off by more than `tolerance`.

        Exact: the binomial distribution of each sum and the tails of the noise for each of its values, in time O(t n)
        for t different expectations.
        """
        means = _means(data)
        noise, unit = TwoSidedGeometricLaw(0, self.base(means.size)), self.step / self.size
        ones = np.arange(self.size + 1, dtype=np.float64)
        exact = (2.0 * ones - self.size) / self.step
        log_all = 0.0
        for mean, times in zip(*np.unique(means, return_counts=True), strict=True):
            # P[Z > x] = P[Z < -x], and P[Z < x] = P[Z <= ceil(x) - 1].
            above = noise.cdf(np.ceil(exact - (mean + tolerance) / unit) - 1.0)
            below = noise.cdf(np.ceil((mean - tolerance) / unit - exact) - 1.0)
            single = min(1.0, float(stats.binom.pmf(ones, self.size, (1.0 + mean) / 2.0) @ (above + below)))
            log_all += int(times) * (math.log1p(-single) if single < 1 else -math.inf)
        return -math.expm1(log_all)


def rows_needed(queries: int, epsilon: float, tolerance: float, beta: float, bound: float = 1.0) -> int:
    """Rows at which all of t answers are within the tolerance with probability at least ``1 - beta``.

    ``max((4 b t / (epsilon tau)) ln(2 t / beta), (8 b^2 / tau^2) ln(4 t / beta))``, rounded up: half of the tolerance
    is for the noise, by the Laplace tail, and half for the sample, by Hoeffding's inequality.

    Source: catalogue 002, central_sq_simulation. For queries that are fixed in advance.
    """
    require(isinstance(queries, (int, np.integer)) and queries >= 1, "a number of queries >= 1", queries)
    require_positive("epsilon", epsilon)
    require_positive("tolerance", tolerance)
    require_positive("bound", bound)
    _require_beta(beta)
    noise = 4.0 * bound * queries / (epsilon * tolerance) * math.log(2.0 * queries / beta)
    sample = 8.0 * (bound / tolerance) ** 2 * math.log(4.0 * queries / beta)
    return math.ceil(max(noise, sample))


def _means(data: FloatArray) -> FloatArray:
    means = np.asarray(data, dtype=np.float64)
    inside = means.ndim == 1 and means.size > 0 and bool(np.all(np.abs(means) <= 1))
    require(inside, "expectations in [-1, 1], shape (t,)", data)
    return means


def _require_size(size: int) -> None:
    require(isinstance(size, (int, np.integer)) and size >= 1, "a number of rows >= 1", size)


def _require_step(step: float) -> None:
    require_positive("step", step)
    require(math.frexp(step)[0] == 0.5 and step <= 1, "a power of two, at most 1, as step", step)


def _require_beta(beta: float) -> None:
    require(0 < beta < 1, "beta in (0, 1)", beta)
