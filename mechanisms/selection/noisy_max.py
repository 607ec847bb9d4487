"""Report noisy max and permute-and-flip, and their mutants.

Source: Dwork and Roth (2014), section 3.3; McKenna and Sheldon (2020) for permute-and-flip; Ding
et al. (2021) for its identity with exponential noise. The catalogue's exponential_mechanism and
laplace_structured_queries are the same task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy import special

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.base.noise import gauss_legendre, without_low_bits
from mechanisms.base.queries import Query

Noise: TypeAlias = Literal["laplace", "exponential"]

# exp(-700) is still a normal double; below that a possible outcome would be stored as impossible.
_MAX_GAP = 700.0


@dataclass(frozen=True)
class _Max:
    """Scores in units of the noise scale ``2 sensitivity / eps``."""

    query: Query
    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)

    @property
    def scale(self) -> float:
        """Noise scale."""
        return 2.0 * self.query.linf_sensitivity / self.epsilon

    def scaled(self, data: Dataset) -> FloatArray:
        """Return scores over the scale, shape (outcomes,); ValueError for a single number."""
        scores = self.query(data)
        require(scores.ndim == 1 and scores.size > 0, "a vector of scores", scores)
        return scores / self.scale


@dataclass(frozen=True)
class _NoisyMax(_Max):
    noise: Noise = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.noise in get_args(Noise), f"noise among {get_args(Noise)}", self.noise)

    def noisy(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw noisy scores over the scale; float64 of shape (n, outcomes)."""
        require_draws(n)
        scores = self.scaled(data)
        shape = (n, scores.size)
        draw = rng.laplace(size=shape) if self.noise == "laplace" else rng.standard_exponential(shape)
        return scores + draw


@dataclass(frozen=True)
class ReportNoisyMax(_NoisyMax):
    """Add noise of scale ``2 sensitivity / eps`` to every score, report the index of the largest.

    Parameters
    ----------
    query : Query
        Scores, shape (outcomes,); its linf sensitivity calibrates the noise.
    epsilon : float
        Claimed pure level, for scores that may move in different directions.
    noise : {"laplace", "exponential"}
        With exponential noise the output distribution is that of `PermuteAndFlip`.
    """

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`; outcomes are the indices, errors below 1e-13."""
        scores = self.scaled(data)
        mass = laplace_winner(scores) if self.noise == "laplace" else exponential_winner(scores)
        return FiniteLaw(tuple(range(mass.size)), mass)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` indices; int64 of shape (n,)."""
        return np.asarray(np.argmax(self.noisy(data, n, rng), axis=1), dtype=np.int64)


@dataclass(frozen=True)
class PermuteAndFlip(_Max):
    """Visit outcomes in random order, accept each with ``exp(-eps (best - score) / (2 Du))``.

    Parameters
    ----------
    query : Query
        Scores, shape (outcomes,); its linf sensitivity Du calibrates the coins.
    epsilon : float
        Claimed pure level.
    """

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`; outcomes are the indices, errors below 1e-14."""
        mass = exponential_winner(self.scaled(data))
        return FiniteLaw(tuple(range(mass.size)), mass)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` indices; int64 of shape (n,).

        All coins are thrown at once: the winner is the accepted outcome that comes first in the
        random order, and the best outcome is always accepted.
        """
        require_draws(n)
        scores = self.scaled(data)
        accepted = rng.random((n, scores.size)) < np.exp(scores - scores.max())
        position = np.where(accepted, rng.random((n, scores.size)), 2.0)
        return np.asarray(np.argmin(position, axis=1), dtype=np.int64)


def exponential_winner(scores: FloatArray) -> FloatArray:
    """Probabilities that each score plus standard exponential noise is the largest.

    Parameters
    ----------
    scores : ndarray of shape (d,)
        In units of the noise scale, within 700 of one another.

    Returns
    -------
    ndarray of shape (d,)
        With ``w = exp(scores - max)`` and ``t = exp(-(x - max))``, ``P[i] = w_i`` times the
        integral over t in [0, 1] of ``prod over j != i of (1 - w_j t)``: a polynomial of degree
        d - 1, for which Gauss-Legendre with ceil(d/2) nodes is exact.
    """
    _require_near(scores)
    w = np.exp(scores - scores.max())
    t, weight = gauss_legendre(np.array([0.0, 1.0]), 1.0, math.ceil(scores.size / 2))
    return np.array([w[i] * (weight @ _product_of_others(1.0 - np.outer(t, w), i)) for i in range(scores.size)])


def laplace_winner(scores: FloatArray) -> FloatArray:
    """Probabilities that each score plus standard Laplace noise is the largest.

    Parameters
    ----------
    scores : ndarray of shape (d,)
        In units of the noise scale, within 700 of one another.

    Returns
    -------
    ndarray of shape (d,)
        Closed forms below the smallest score (all factors are exponentials) and above the largest
        (a polynomial in exp(-x), see `exponential_winner`); Gauss-Legendre between them.
    """
    _require_near(scores)
    u = scores - scores.max()
    d = u.size
    # Below min(u): the integral of (1/2)^d exp(d x - sum u).
    mass = np.full(d, math.exp(d * float(u.min()) - float(u.sum()) - d * math.log(2.0)) / d)
    w = np.exp(u)
    t, weight = gauss_legendre(np.array([0.0, 1.0]), 1.0, math.ceil(d / 2))
    above = 1.0 - 0.5 * np.outer(t, w)
    mass += [0.5 * w[i] * (weight @ _product_of_others(above, i)) for i in range(d)]
    if u.min() < 0.0:
        x, weight = gauss_legendre(u, 8.0 / (d + 1))  # growth rate at most d + 1
        z = x[:, None] - u
        density = 0.5 * np.exp(-np.abs(z))
        below = np.where(z < 0, density, 1.0 - density)
        mass += [weight @ (density[:, i] * _product_of_others(below, i)) for i in range(d)]
    return mass


def _require_near(scores: FloatArray) -> None:
    gap = float(np.ptp(scores))
    require(gap <= _MAX_GAP, f"scores within {_MAX_GAP} noise scales of one another", gap)


def _product_of_others(factors: FloatArray, i: int) -> FloatArray:
    """Product over all columns but i: a division would fail where a factor is 0."""
    return np.asarray(np.delete(factors, i, axis=1).prod(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class HalfScaleMax(ReportNoisyMax):
    """Scale ``sensitivity / eps`` instead of twice that."""

    @property
    def scale(self) -> float:
        """Half the scale."""
        return self.query.linf_sensitivity / self.epsilon


@dataclass(frozen=True)
class HalfScaleFlip(PermuteAndFlip):
    """Coins with ``exp(-eps (best - score) / Du)``."""

    @property
    def scale(self) -> float:
        """Half the scale."""
        return self.query.linf_sensitivity / self.epsilon


@dataclass(frozen=True)
class ReleasedMaximum(_NoisyMax):
    """Releases the largest noisy score itself instead of its index.

    Where k scores all move by Du the true level is ``k eps / 2`` with Laplace noise (below all
    scores the density is that of k answered queries), and infinite with exponential noise. Low-order
    bits are rounded away, so that nothing else leaks.
    """

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` maxima; float64 of shape (n,)."""
        return without_low_bits(self.noisy(data, n, rng).max(axis=1) * self.scale)

    def log_cdf(self, data: Dataset, x: FloatArray) -> FloatArray:
        """Log probability of an output at most `x`; same shape as `x`."""
        log_below, _ = self._parts(data, x)
        return np.asarray(log_below.sum(axis=-1), dtype=np.float64)

    def log_density(self, data: Dataset, x: FloatArray) -> FloatArray:
        """Log density of the output at `x`; same shape as `x`."""
        log_below, log_density = self._parts(data, x)
        with np.errstate(invalid="ignore"):  # -inf - -inf where exponential noise cannot reach
            hazard = np.where(np.isneginf(log_density), -np.inf, log_density - log_below)
        total = log_below.sum(axis=-1) + special.logsumexp(hazard, axis=-1) - math.log(self.scale)
        return np.asarray(total, dtype=np.float64)

    def log_ratio(self, data: Dataset, other: Dataset, x: FloatArray) -> FloatArray:
        """Privacy loss ``ln density(data) - ln density(other)`` at `x`; same shape as `x`."""
        return self.log_density(data, x) - self.log_density(other, x)

    def _parts(self, data: Dataset, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log CDF and log density of each noisy score at `x`; shape x.shape + (outcomes,)."""
        z = np.asarray(x, dtype=np.float64)[..., None] / self.scale - self.scaled(data)
        away = np.exp(-np.abs(z))
        if self.noise == "exponential":
            with np.errstate(divide="ignore"):
                return np.where(z > 0, np.log1p(-np.where(z > 0, away, 0.0)), -np.inf), np.where(z >= 0, -z, -np.inf)
        return np.where(z < 0, z - math.log(2.0), np.log1p(-0.5 * away)), -np.abs(z) - math.log(2.0)


MUTANTS: dict[str, Mutant[ReportNoisyMax]] = tabulate_mutants(
    Mutant("half_scale", Twin(HalfScaleMax), TimesEpsilon(2.0), "violation", "scale Du/eps: up to 2 eps"),
    Mutant(
        "released_maximum",
        Twin(ReleasedMaximum),
        None,
        "violation",
        "the value instead of the index; k scores that all move by Du: k eps/2 (Laplace), inf (exponential)",
    ),
)

FLIP_MUTANTS: dict[str, Mutant[PermuteAndFlip]] = tabulate_mutants(
    Mutant("half_scale", Twin(HalfScaleFlip), TimesEpsilon(2.0), "violation", "scale Du/eps: up to 2 eps"),
)
