"""Cauchy noise scaled to the smooth sensitivity of the median, and its mutants.

The scale ``c SS_b(x)`` differs between neighbours by a factor of at most e^b and the answers by at most SS_b, so two
outputs are Cauchy distributions whose distance in the hyperbolic plane, which is the largest privacy loss, is at most
`worst_level`. With b = epsilon that is above epsilon for every finite c: the dilation alone uses all of epsilon.

Source: document 003, section 2.2.1; Nissim, Raskhodnikova and Smith (2007); catalogue 000_001_003,
smooth_sensitivity_cauchy and A5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import CauchyLaw
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import LOW_BITS, without_low_bits
from mechanisms.stability.median import ClippedMedian

# Distances that the mutant looks at: itself and its neighbours.
_FEW = 1


@dataclass(frozen=True)
class _ScaledNoise:
    """What the mechanism shares with its mutants; they replace the sensitivity or the noise."""

    query: ClippedMedian
    epsilon: float
    smoothing: float
    factor: float
    step: float = LOW_BITS

    def __post_init__(self) -> None:
        for name in ("epsilon", "smoothing", "factor", "step"):
            require_positive(name, getattr(self, name))
        require(math.frexp(self.step)[0] == 0.5, "a power of two as step", self.step)

    def sensitivity(self, data: Dataset) -> float:
        """Return what the noise is scaled to."""
        return self.query.smooth(data, self.smoothing)

    def scale(self, data: Dataset) -> float:
        """Return the scale of the noise."""
        return self.factor * self.sensitivity(data)

    def noise(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times noise of scale 1."""
        return rng.standard_cauchy(n)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,), multiples of the step."""
        require_draws(n)
        return without_low_bits(self.query(data) + self.scale(data) * self.noise(n, rng), self.step)


@dataclass(frozen=True)
class SmoothCauchy(_ScaledNoise):
    """Median plus ``factor * SS_b`` times standard Cauchy noise, rounded to multiples of `step`.

    Parameters
    ----------
    query : ClippedMedian
        Answers, and their smooth sensitivity.
    epsilon : float
        Claimed pure level.
    smoothing : float
        Smoothing parameter b.
    factor : float
        c, what the smooth sensitivity is multiplied by.
    step : float, default 2**-20
        A power of two, public; far below the scale of the noise, and far above the spacing of doubles. Rounding is
        post-processing: the scale depends on the data, so the noise cannot be drawn on a lattice, and its low-order
        bits would say on which answer and scale it was put.

    Raises
    ------
    ValueError
        If a parameter is not positive or the step is no power of two.

    Notes
    -----
    The noise has no mean; its median size is the scale.
    """

    def law(self, data: Dataset) -> CauchyLaw:
        """Exact output distribution on `data`, before it is rounded."""
        return CauchyLaw(float(self.query(data)), self.scale(data))


def worst_level(smoothing: float, factor: float) -> float:
    """Return the pure level that holds for every query: ``max{2 arcsinh(1/(2c)), arccosh(cosh b + e^-b / (2 c^2))}``.

    Parameters
    ----------
    smoothing, factor : float
        b and c.

    Notes
    -----
    Valid because: answers are at most min(SS, SS') apart and the scales differ by a factor of at most e^b, so for the
    log ratio r of the scales ``cosh(distance) <= cosh r + e^-r / (2 c^2)``, which is convex in r: largest at 0 or at b.
    """
    require_positive("smoothing", smoothing)
    require_positive("factor", factor)
    equal = 2.0 * math.asinh(0.5 / factor)
    # arccosh(1 + 2 y^2) = 2 arcsinh(y), without the loss of digits near 1.
    unequal = 2.0 * math.asinh(
        math.sqrt(math.sinh(0.5 * smoothing) ** 2 + math.exp(-smoothing) / (4.0 * factor * factor))
    )
    return max(equal, unequal)


def sharp_factor(epsilon: float, smoothing: float) -> float:
    """Return the smallest c for which `worst_level` is at most epsilon.

    Raises
    ------
    ValueError
        Unless ``0 < smoothing < epsilon``: otherwise there is none.
    """
    require_positive("smoothing", smoothing)
    require(epsilon > smoothing, f"epsilon above the smoothing parameter {smoothing:g}", epsilon)
    # cosh x - cosh y = 2 sinh((x + y) / 2) sinh((x - y) / 2).
    room = 4.0 * math.sinh(0.5 * (epsilon + smoothing)) * math.sinh(0.5 * (epsilon - smoothing))
    return max(0.5 / math.sinh(0.5 * epsilon), math.sqrt(math.exp(-smoothing) / room))


def printed(query: ClippedMedian, epsilon: float, constant: float = 1.0, step: float = LOW_BITS) -> SmoothCauchy:
    """Smoothing by epsilon itself and a factor ``constant / epsilon``: the statement of document 003."""
    return SmoothCauchy(query, epsilon, epsilon, constant / epsilon, step)


def literature(query: ClippedMedian, epsilon: float, step: float = LOW_BITS) -> SmoothCauchy:
    """``b = eps/6`` and ``c = 6/eps`` (Nissim, Raskhodnikova and Smith 2007): true level about 0.23 eps."""
    return SmoothCauchy(query, epsilon, epsilon / 6.0, 6.0 / epsilon, step)


def sharp(query: ClippedMedian, epsilon: float, step: float = LOW_BITS) -> SmoothCauchy:
    """``b = eps/2`` and the smallest factor for it."""
    return SmoothCauchy(query, epsilon, 0.5 * epsilon, sharp_factor(epsilon, 0.5 * epsilon), step)


# ----------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SmoothLaplaceNoise(_ScaledNoise):
    """Laplace noise of the same scales."""

    def noise(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times."""
        return rng.laplace(size=n)


@dataclass(frozen=True)
class SmoothGaussianNoise(_ScaledNoise):
    """Normal noise of the same scales."""

    def noise(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` times."""
        return rng.standard_normal(n)


@dataclass(frozen=True)
class LocalForSmoothSensitivity(SmoothCauchy):
    """The local sensitivity for the smooth one; datasets where it is 0 get no noise and have no distribution here."""

    def sensitivity(self, data: Dataset) -> float:
        """Return the local sensitivity."""
        return self.query.local(data)


@dataclass(frozen=True)
class GrowingSmoothWeight(SmoothCauchy):
    """``max over k of e^(+b k) A_k``: as smooth, and e^(b n) on every dataset, as A_n = 1."""

    def sensitivity(self, data: Dataset) -> float:
        """Return the last term, the largest: no A_k is above A_n = 1."""
        rows = self.query.ordered(data).size
        require(self.smoothing * rows < 700.0, "b n below 700 (the scale would overflow)", self.smoothing * rows)
        return math.exp(self.smoothing * rows)


@dataclass(frozen=True)
class MaximumOverFewDistances(SmoothCauchy):
    """The maximum over k = 0 and 1 only."""

    def sensitivity(self, data: Dataset) -> float:
        """Return the maximum of the first two terms."""
        ordered = self.query.ordered(data)
        return max(
            math.exp(-self.smoothing * k) * float(self.query.most_sensitive(ordered, k)) for k in range(_FEW + 1)
        )


@dataclass(frozen=True)
class _WithQuery:
    """Builds the same mechanism on another median."""

    cls: Callable[..., ClippedMedian]

    def __call__(self, base: SmoothCauchy) -> SmoothCauchy:
        """Return the mutant of `base`."""
        query = self.cls(base.query.column, base.query.low, base.query.high)
        return SmoothCauchy(query, base.epsilon, base.smoothing, base.factor, base.step)


MUTANTS: dict[str, Mutant[SmoothCauchy]] = tabulate_mutants(
    Mutant(
        "laplace_noise",
        Twin(SmoothLaplaceNoise),
        unbounded,
        "violation",
        "where the scales differ the loss grows without bound in the tails; no pure level",
    ),
    Mutant(
        "gaussian_noise",
        Twin(SmoothGaussianNoise),
        unbounded,
        "violation",
        "where the scales differ the loss grows with the square of the output; no pure level",
    ),
    Mutant(
        "local_for_smooth",
        Twin(LocalForSmoothSensitivity),
        unbounded,
        "violation",
        "scales at neighbours differ by any factor; where both local sensitivities are positive the level is the "
        "hyperbolic distance, and infinite where one is 0",
    ),
    Mutant(
        "growing_weight",
        Twin(GrowingSmoothWeight),
        None,
        "benign",
        "e^(+b k): the scale is c e^(b n) on every dataset, so next to nothing is lost in privacy and everything in "
        "accuracy; its level is 2 arcsinh(e^(-b n) |q - q'| / (2 c))",
    ),
    Mutant(
        "maximum_over_few_k",
        Twin(MaximumOverFewDistances),
        unbounded,
        "violation",
        "only k <= 1 enter: a gap that is two rows away jumps into the scale all at once",
    ),
)
