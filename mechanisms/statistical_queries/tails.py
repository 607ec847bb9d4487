"""Tails of means: of Laplace noise, exactly and as it is bounded, and of values sampled from data.

Source: document 002, appendix, Theorems A.1 and A.2 and Lemma A.3; catalogue 002, chernoff_hoeffding and
laplace_sum_tail. Lemma A.3 is false as printed; `printed_laplace_bound` is what it says, beside three bounds that hold.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import special

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.queries import column_values

# Weights of a mixture that are smaller than this change no sum of them by a digit.
_NEGLIGIBLE = -745.0  # ln of the smallest double

# --------------------------------------------------------------------------- sums of Laplace noise


def laplace_sum_tail(terms: int, x: float) -> float:
    """Probability that the sum of `terms` independent Lap(1) variables is `x` or more in absolute value.

    Parameters
    ----------
    terms : int
        n >= 1.
    x : float
        At least 0; for the mean of n variables of scale b against delta it is ``n delta / b``.

    Returns
    -------
    float
        Exact within a relative error of about 1e-11: a sum of positive terms.

    Notes
    -----
    The sum is a difference of two Gamma(n) variables. Its density at s is ``e^-|s| / ((n-1)! 2^n)`` times the sum over
    j < n of ``(n-1+j)! / ((n-1-j)! j! 2^j) |s|^(n-1-j)``, so its absolute value is a mixture of Gamma(n - j) variables
    with weights ``C(n-1+j, j) / 2^(n-1+j)``, which sum to 1. Source: catalogue 002, laplace_sum_tail.
    """
    _require_terms(terms)
    require(0 <= x < math.inf, "a finite x >= 0", x)
    j = np.arange(terms, dtype=np.float64)
    log_weight = special.gammaln(terms + j) - special.gammaln(terms) - special.gammaln(j + 1.0)
    log_weight -= (terms - 1.0 + j) * math.log(2.0)
    kept = log_weight > _NEGLIGIBLE
    return float(np.exp(log_weight[kept]) @ special.gammaincc(terms - j[kept], x))


def printed_laplace_bound(terms: int, u: float) -> float:
    """Lemma A.3 as printed, for the mean of n variables of scale b and ``u = delta / b``: ``exp(-n u^2 / 4)``."""
    _require_terms(terms)
    return math.exp(-terms * u * u / 4.0)


def laplace_rate(u: float) -> float:
    """Exact exponential rate of the mean of Laplace variables: ``sqrt(1 + u^2) - 1 - ln((1 + sqrt(1 + u^2)) / 2)``.

    The largest of ``t u + ln(1 - t^2)`` over t in (0, 1), attained at ``t = (sqrt(1 + u^2) - 1) / u``. About
    ``u^2 / 4`` for small u, and always below that.
    """
    require(0 <= u < math.inf, "a finite u >= 0", u)
    # sqrt(1 + u^2) - 1 without cancellation.
    above = u * u / (1.0 + math.sqrt(1.0 + u * u))
    return above - math.log1p(above / 2.0)


def rate_bound(terms: int, u: float) -> float:
    """``2 exp(-n I(u))`` with the exact rate I, for every u > 0: Markov's inequality at the best t, for both tails."""
    _require_terms(terms)
    return 2.0 * math.exp(-terms * laplace_rate(u))


def bernstein_bound(terms: int, u: float) -> float:
    """``2 exp(-n u^2 / (4 + 2 u))``, for every u > 0."""
    _require_terms(terms)
    return 2.0 * math.exp(-terms * u * u / (4.0 + 2.0 * u))


def sub_gaussian_bound(terms: int, u: float) -> float:
    """``2 exp(-n u^2 / 8)``, for u of at most ``2 sqrt 2``.

    Raises
    ------
    ValueError
        For a larger u, for which it is no bound.
    """
    _require_terms(terms)
    require(0 < u <= 2.0 * math.sqrt(2.0), "u in (0, 2 sqrt 2]", u)
    return 2.0 * math.exp(-terms * u * u / 8.0)


@dataclass(frozen=True)
class LaplaceMean:
    """A number plus the mean of n independent Laplace variables.

    Parameters
    ----------
    terms : int
        n >= 1.
    scale : float, default 1.0
        Scale b of each.

    Notes
    -----
    The distribution of Lemma A.3 itself, in double precision. No privacy is claimed of it: for that, noise is drawn as
    integers.
    """

    terms: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        _require_terms(self.terms)
        require_positive("scale", self.scale)

    def __call__(self, data: float, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` numbers; float64 of shape (n,)."""
        require_draws(n)
        return np.asarray(data + rng.laplace(0.0, self.scale, (n, self.terms)).mean(axis=1), dtype=np.float64)


# ----------------------------------------------------------------------- means of values in a range


def chernoff_above(mu: float, phi: float, terms: int) -> float:
    """Theorem A.1, upper tail: ``exp(-phi^2 mu n / 3)`` for the mean of n bits to be ``(1 + phi) mu`` or more."""
    _require_phi(phi)
    return math.exp(-phi * phi * mu * terms / 3.0)


def chernoff_below(mu: float, phi: float, terms: int) -> float:
    """Theorem A.1, lower tail: ``exp(-phi^2 mu n / 2)`` for the mean of n bits to be ``(1 - phi) mu`` or less."""
    _require_phi(phi)
    return math.exp(-phi * phi * mu * terms / 2.0)


def hoeffding(delta: float, width: float, terms: int) -> float:
    """Theorem A.2: ``2 exp(-2 delta^2 n / width^2)`` for a mean of n to be `delta` or more from its expectation."""
    require_positive("width", width)
    return 2.0 * math.exp(-2.0 * (delta / width) ** 2 * terms)


def sum_mass(mass: Sequence[float] | FloatArray, terms: int) -> FloatArray:
    """Distribution of the sum of independent integers from 0 to k that have the given probabilities.

    Parameters
    ----------
    mass : array_like of shape (k + 1,)
        Probabilities of 0 to k.
    terms : int
        n >= 1.

    Returns
    -------
    ndarray of shape (n k + 1,)
        Probabilities of the sums; nothing is subtracted, so that they are accurate far into the tails.
    """
    _require_terms(terms)
    single = np.asarray(mass, dtype=np.float64)
    require(single.ndim == 1 and bool(np.all(single >= 0)), "probabilities >= 0", mass)
    total, power, left = np.ones(1), single, terms
    while left:
        if left & 1:
            total = np.convolve(total, power)
        left >>= 1
        if left:
            power = np.convolve(power, power)
    return total


def tails(mass: Sequence[Fraction], terms: int, low: Fraction, high: Fraction) -> tuple[float, float]:
    """Probabilities that the mean of n integers is at most `low`, and that it is at least `high`.

    Which sums count is decided in whole numbers; the distribution is `sum_mass`.
    """
    law = sum_mass(np.array([float(p) for p in mass]), terms)
    below, above = math.floor(low * terms), math.ceil(high * terms)
    return float(law[: max(below + 1, 0)].sum()), float(law[max(above, 0) :].sum())


@dataclass(frozen=True)
class SampleMean:
    """Mean of n persons' values, drawn with replacement from the data.

    Parameters
    ----------
    terms : int
        n >= 1.
    column : hashable, optional
        See `mechanisms.base.queries.column_values`.

    Notes
    -----
    How often each value is drawn is multinomial, so that a draw costs as many binomial ones as there are values.
    """

    terms: int
    column: Hashable | None = None

    def __post_init__(self) -> None:
        _require_terms(self.terms)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` means; float64 of shape (n,)."""
        require_draws(n)
        values, often = value_counts(data, self.column)
        drawn = rng.multinomial(self.terms, often / often.sum(), n)
        return np.asarray(drawn @ values / self.terms, dtype=np.float64)


def value_counts(data: Dataset, column: Hashable | None = None) -> tuple[FloatArray, IntArray]:
    """Return the distinct values of a column, rising, and how many rows have each."""
    values, often = np.unique(column_values(data, column).astype(np.float64), return_counts=True)
    require(values.size > 0 and bool(np.all(np.isfinite(values))), "rows with finite values", values)
    return values, often.astype(np.int64)


def _require_terms(terms: int) -> None:
    require(isinstance(terms, (int, np.integer)) and terms >= 1, "a number of terms n >= 1", terms)


def _require_phi(phi: float) -> None:
    require(0 < phi <= 1, "phi in (0, 1]", phi)
