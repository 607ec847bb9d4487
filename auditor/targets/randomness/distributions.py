"""Distributions of single random numbers, as tables of masses or as equally likely points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.targets.randomness.signals import Uncontrolled

#: Tails of infinite supports are cut where less than this is left. A sum of some draws then loses less than 1e-13.
TAIL = 2.0**-50
#: Entries of a table at most; more take too long to walk.
MOST_VALUES = 200_000
#: Integers with at most this number of values are a table; others are points.
MOST_IN_TABLE = 4_096
#: Points of a random float: numpy and Python draw multiples of 2^-53.
GRID = 2**53


@dataclass(frozen=True, eq=False)
class MassTable:
    """A distribution on listed values.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Values, distinct.
    masses : ndarray of float64, shape (n_values,)
        Their probabilities, with relative errors below 1e-11; the sum is below 1 where a tail is cut.
    whole : bool
        No tail is cut.
    caveats : frozenset of str
        What is idealised.
    """

    values: NDArray[Any]
    masses: NDArray[np.float64]
    whole: bool = True
    caveats: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Points:
    """A function of an integer that is uniform from 0 to ``count - 1``.

    Parameters
    ----------
    count : int
        Number of points.
    value : callable
        Value at a point, increasing.
    first : int
        Points below this do not occur.
    exact : bool
        The function is increasing without errors of rounding.
    caveat : str
        What is idealised; empty if nothing is.
    wraps : bool
        The values are integers of 64 bits, whose sums and products wrap around.
    """

    count: int
    value: Callable[[int], Any]
    first: int = 0
    exact: bool = True
    caveat: str = ""
    wraps: bool = False


Distribution = MassTable | Points


def plain_value(value: Any) -> Any:
    """A scalar of numpy as one of Python; anything else itself."""
    return value.item() if isinstance(value, np.generic) else value


def _too_many_error(what: str, number: float) -> Uncontrolled:
    return Uncontrolled(f"{what} has too many values, about {number:.3g}")


@lru_cache(maxsize=256)
def uniform_integers(low: int, high: int, wraps: bool = False) -> Distribution:
    """Integers from ``low`` to ``high - 1``; those of numpy wrap around."""
    count = high - low
    if count <= MOST_IN_TABLE:
        return MassTable(np.arange(low, high), np.full(count, 1.0 / count))
    of_numpy = wraps and high <= 2**63  # larger ones are of no type that is followed
    return Points(count, (lambda k: np.int64(low + k)) if of_numpy else (lambda k: low + k), wraps=wraps)


@lru_cache(maxsize=256)
def geometric(p: float) -> MassTable:
    """Trials up to the first success, from 1 on.

    Notes
    -----
    Valid because: a mass is ``p (1 - p)^(k - 1)``; ``1 - p`` has a relative error of 2^-53 at most, its power one of
    k 2^-53, and k is at most 200,000.
    """
    if p == 1.0:
        return MassTable(np.array([1]), np.array([1.0]))
    most = math.ceil(math.log(TAIL) / math.log1p(-p))
    if most > MOST_VALUES:
        raise _too_many_error(f"a geometric variate with p = {p:g}", most)
    k = np.arange(1, most + 1)
    masses = np.asarray(p * (1.0 - p) ** (k - 1.0), dtype=np.float64)
    return MassTable(k, masses, whole=False)


@lru_cache(maxsize=256)
def binomial(n: int, p: float) -> MassTable:
    """Number of successes in n trials."""
    if n > MOST_IN_TABLE:
        raise _too_many_error(f"a binomial variate with n = {n:,}", n)
    if p in (0.0, 1.0) or n == 0:
        return MassTable(np.array([round(n * p)]), np.array([1.0]))
    masses = [1.0]
    for _ in range(n):  # a trial at a time: sums of positive terms, each with a relative error of 2^-52 a step
        masses = [a * (1.0 - p) + b * p for a, b in zip([*masses, 0.0], [0.0, *masses], strict=True)]
    return MassTable(np.arange(n + 1), np.array(masses))


@lru_cache(maxsize=256)
def poisson(rate: float) -> MassTable:
    """Poisson variates, cut in the upper tail."""
    if rate > MOST_IN_TABLE:
        raise _too_many_error(f"a Poisson variate with rate {rate:g}", rate + 10 * math.sqrt(rate))
    if rate == 0:
        return MassTable(np.array([0]), np.array([1.0]))
    most = math.ceil(rate + 12.0 * math.sqrt(rate) + 40.0)
    k = np.arange(most + 1)
    # From the largest mass outwards by ratios: k steps with a relative error of 2^-52 each.
    top = int(rate)
    up = np.cumprod(rate / np.arange(top + 1, most + 1))
    down = np.cumprod(np.arange(top, 0, -1) / rate)[::-1]
    weights = np.concatenate([down, [1.0], up])
    return MassTable(k, np.asarray(weights / weights.sum(), dtype=np.float64), whole=False)


@lru_cache(maxsize=256)
def categories(masses: tuple[float, ...]) -> MassTable:
    """Index of a category, as ``Generator.choice`` draws it.

    Notes
    -----
    Valid because: numpy draws u, a multiple of 2^-53, and takes the first index whose normalised running sum exceeds
    u. The number of such multiples is counted exactly.
    """
    running = np.cumsum(np.array(masses, dtype=np.float64))
    running /= running[-1]
    ends = [min(GRID, math.ceil(edge * GRID)) for edge in running.tolist()]
    counts = np.diff([0, *ends])
    return MassTable(np.arange(len(masses)), counts / float(GRID))


#: Uniform floats in [0, 1).
UNIFORM = Points(GRID, lambda k: k * 2.0**-53)

_IDEAL = "{} variates are taken as the quantile function of a uniform variate, as real numbers"


def laplace(location: float, scale: float) -> Points:
    """Laplace variates, by the formula that numpy uses."""

    def value(k: int) -> float:
        u = k * 2.0**-53
        return location - scale * math.log(2.0 - 2.0 * u) if u >= 0.5 else location + scale * math.log(2.0 * u)

    return Points(GRID, value, first=1, exact=False)


def gumbel(location: float, scale: float) -> Points:
    """Gumbel variates, by the formula that numpy uses."""
    return Points(GRID, lambda k: location - scale * math.log(-math.log(k * 2.0**-53)), first=1, exact=False)


def exponential(scale: float) -> Points:
    """Exponential variates, idealised."""
    caveat = _IDEAL.format("exponential")
    return Points(GRID, lambda k: -scale * math.log1p(-k * 2.0**-53), exact=False, caveat=caveat)


def normal(location: float, scale: float) -> Points:
    """Normal variates, idealised."""
    from scipy.special import ndtri  # takes longer to import than most audits with discrete noise

    def value(k: int) -> float:
        return location + scale * float(ndtri((k + 0.5) * 2.0**-53))

    return Points(GRID, value, exact=False, caveat=_IDEAL.format("normal"))
