"""Local randomizers: what one person runs on her own record, given by a matrix of probabilities.

A randomizer is transparent if the probability of each output can be computed for each input; here it is looked up
(`LocalRandomizer.pmf`), or summed up to an additive error of phi in a number of terms proportional to ln(1 / phi)
(`TwiceNoisy.pmf_within`), which is the relaxed form of the definition.

Source: document 002, section 5, Definitions 5.1 and 5.13; catalogue 002, local_model_oracle and transparent_randomizer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive

#: Part by which a level that is computed from rounded probabilities may exceed the declared one: some hundred
#: roundings, and a thousandth of what an exact audit lets pass.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LocalRandomizer:
    """A randomizer with finitely many inputs and outputs, given by its matrix, and transparent for that reason.

    Parameters
    ----------
    matrix : tuple of inputs tuples of outputs floats
        Row u holds the probabilities of the outputs 0, 1, ... on input u; see `of_matrix` for arrays.
    epsilon : float
        The level that it declares, >= 0 and at least its exact one: every two inputs are neighbours.

    Raises
    ------
    ValueError
        If a row is no probability distribution, the level is negative, or the exact level is above it.
    """

    matrix: tuple[tuple[float, ...], ...]
    epsilon: float

    def __post_init__(self) -> None:
        rows = np.array(self.matrix, dtype=np.float64)
        require(rows.ndim == 2 and rows.size > 0, "a matrix of shape (inputs, outputs)", rows.shape)
        require(bool(np.all(np.isfinite(rows) & (rows >= 0))), "probabilities >= 0", self.matrix)
        require(bool(np.all(np.abs(rows.sum(axis=1) - 1.0) <= _ROUNDING)), "rows that sum to 1", rows.sum(axis=1))
        require(0.0 <= self.epsilon < math.inf, "a finite epsilon >= 0", self.epsilon)
        highest = self.epsilon * (1.0 + _ROUNDING) + _ROUNDING
        require(self.level <= highest, f"a matrix of level {self.epsilon!r} or less", self.level)

    @cached_property
    def rows(self) -> FloatArray:
        """The matrix, shape (inputs, outputs)."""
        return np.array(self.matrix)

    @property
    def level(self) -> float:
        """Exact level: the largest log ratio of two entries of a column, infinite where only one of them is 0."""
        return _level(self.rows)

    def with_noise(self, factor: float) -> LocalRandomizer:
        """The randomizer with rows whose logarithms are divided by ``factor``, up to their sums."""
        rows = self.rows ** (1.0 / factor)
        rows /= rows.sum(axis=1, keepdims=True)
        return of_matrix(rows, max(_level(rows), self.epsilon / factor))

    def pmf(self, u: int, w: int) -> float:
        """Probability of the output `w` on the input `u`."""
        require(0 <= u < len(self.matrix), f"an input from 0 to {len(self.matrix) - 1}", u)
        return self.matrix[u][w] if 0 <= w < len(self.matrix[u]) else 0.0

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs on a database of one record; int64 of shape (n,)."""
        require_draws(n)
        return self.draw(np.full(n, _only_record(data)), rng)

    def draw(self, inputs: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw one output for each input, shape (n,); probabilities are met within 2^-53."""
        cumulative = np.cumsum(self.rows, axis=1)
        cumulative /= cumulative[:, -1:]
        return np.asarray((rng.random(inputs.size)[:, None] >= cumulative[inputs]).sum(axis=1), dtype=np.int64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on a database of one record."""
        return FiniteLaw(tuple(range(self.rows.shape[1])), self.rows[_only_record(data)])


def _level(rows: FloatArray) -> float:
    used = rows[:, rows.max(axis=0) > 0]
    low = used.min(axis=0)
    return math.inf if (low == 0).any() else float(np.log(used.max(axis=0) / low).max())


def _only_record(data: Dataset) -> int:
    require(len(data) == 1, "a database of one record", data)
    return int(data[0])


def of_matrix(rows: ArrayLike, epsilon: float) -> LocalRandomizer:
    """Return the randomizer with this matrix, array_like of shape (inputs, outputs)."""
    return LocalRandomizer(tuple(tuple(row) for row in np.asarray(rows, dtype=np.float64).tolist()), epsilon)


def response(epsilon: float, values: int = 2) -> LocalRandomizer:
    """Randomised response: the value itself with probability ``e^epsilon / (e^epsilon + values - 1)``."""
    require_positive("epsilon", epsilon)
    require(values >= 2, "2 values or more", values)
    other = 1.0 / (math.exp(epsilon) + values - 1)
    rows = np.full((values, values), other)
    np.fill_diagonal(rows, special.expit(epsilon - math.log(values - 1)))
    return of_matrix(rows, epsilon)


def noisy_value(epsilon: float, values: int) -> LocalRandomizer:
    """A value of 0 to ``values - 1`` plus two-sided geometric noise, clamped to that range: level exactly epsilon."""
    require_positive("epsilon", epsilon)
    require(values >= 2, "2 values or more", values)
    a, u = math.exp(epsilon / (values - 1)), np.arange(values)
    rows = a ** -np.abs(u[:, None] - u).astype(np.float64) * (a - 1.0) / (a + 1.0)
    # Clamping: P[Z <= -t] = a^(1-t) / (a+1) for t >= 0.
    rows[:, 0], rows[:, -1] = a ** (1.0 - u) / (a + 1.0), a ** (2.0 - values + u) / (a + 1.0)
    return of_matrix(rows, epsilon)


def alarm(epsilon: float, rare: float) -> LocalRandomizer:
    """Output 1 with probability `rare` on input 0 and ``e^epsilon rare`` on input 1; output 0 otherwise.

    The level is epsilon where output 0 is at most as telling: ``rare <= 1 / (1 + e^epsilon)``.
    """
    require_positive("epsilon", epsilon)
    require(0.0 < rare <= float(special.expit(-epsilon)), f"rare in (0, {special.expit(-epsilon):g}]", rare)
    often = math.exp(epsilon) * rare
    return LocalRandomizer(((1.0 - rare, rare), (1.0 - often, often)), epsilon)


def constant(inputs: int = 2) -> LocalRandomizer:
    """Output 0 whatever the input: a call that costs nothing."""
    return LocalRandomizer(((1.0,),) * inputs, 0.0)


@dataclass(frozen=True)
class TwiceNoisy:
    """A value plus two independent two-sided geometric noises: transparent in the relaxed sense too.

    Parameters
    ----------
    epsilon : float
        Level of each noise for values 0 to ``values - 1``, and so a bound on that of both.
    values : int
        Inputs, at least 2.

    Notes
    -----
    With r = 1/a the probability of w on u is the infinite sum over k of ``p^2 r^(|k| + |d - k|)`` for d = w - u and
    p = (1 - r) / (1 + r), which adds up to ``p^2 r^|d| (|d| + (1 + r^2) / (1 - r^2))``.
    """

    epsilon: float
    values: int = 2

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(self.values >= 2, "2 values or more", self.values)

    @property
    def ratio(self) -> float:
        """``r = e^(-epsilon / (values - 1))``."""
        return math.exp(-self.epsilon / (self.values - 1))

    def pmf(self, u: int, w: int) -> float:
        """Probability of the output `w`, any integer, on the input `u`; in closed form."""
        r, d = self.ratio, abs(w - u)
        return ((1.0 - r) / (1.0 + r)) ** 2 * r**d * (d + (1.0 + r * r) / (1.0 - r * r))

    def terms(self, phi: float) -> int:
        """Return how far from 0 the first noise is followed, for an error of `phi`: a multiple of ln(1 / phi)."""
        require(0.0 < phi < 1.0, "phi in (0, 1)", phi)
        return math.ceil(math.log(1.0 / phi) / -math.log(self.ratio))

    def pmf_within(self, u: int, w: int, phi: float) -> float:
        """Probability of `w` on `u` with an additive error of at most `phi`, from below.

        Valid because: the noise that is left out is beyond t steps with probability
        ``2 r^(t+1) / (1 + r) <= 2 r / (1 + r) phi``, and what is added to it has a probability of at most 1.
        """
        r, most = self.ratio, self.terms(phi)
        k = np.arange(-most, most + 1)
        p = (1.0 - r) / (1.0 + r)
        return float(p * p * (r ** (np.abs(k) + np.abs(w - u - k)).astype(np.float64)).sum())

    def clamped(self, reach: int) -> LocalRandomizer:
        """Return the randomizer with outputs clamped to ``-reach .. values - 1 + reach``, numbered from 0."""
        require(reach >= 0, "a reach >= 0", reach)
        r = self.ratio
        p, c = (1.0 - r) / (1.0 + r), (1.0 + r * r) / (1.0 - r * r)

        def beyond(t: int) -> float:
            """P[Z + Z' >= t], t >= 0."""
            return p * p * r**t * ((t + c) / (1.0 - r) + r / (1.0 - r) ** 2)

        last = self.values - 1 + reach
        rows = np.array([[self.pmf(u, w) for w in range(-reach, last + 1)] for u in range(self.values)])
        for u in range(self.values):
            rows[u, 0], rows[u, -1] = beyond(u + reach), beyond(last - u)
        return of_matrix(rows, self.epsilon)
