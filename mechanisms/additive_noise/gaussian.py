"""Gaussian noise on a lattice, its calibrations, and its mutants.

Source: D001 section 12.2; catalogue 000_001_003, gaussian_counting_query and A2; Canonne, Kamath and Steinke (2020)
for the discrete Gaussian; Balle and Wang (2018) for the analytic calibration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from scipy import optimize, special

from auditor.privacy.exact import GaussianCurve
from auditor.privacy.laws import DiscreteGaussianLaw, Law, ProductLaw
from mechanisms.base.integer_noise import discrete_gaussian
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import lattice_steps, round_to_lattice
from mechanisms.base.queries import Query

Rule: TypeAlias = Literal["analytic", "classical", "tail"]

#: Calibrations are rounded by this much towards more noise: 2^-40 is above the error of the functions they call (about
#: 1e-14 relative) and below anything that an audit sees.
_SAFETY = 2.0**-40
#: From this many steps on, the sum of ``exp(-k^2 / (2 sigma^2))`` is ``sigma sqrt(2 pi)`` within float64: the next term
#: of its Poisson sum is ``2 exp(-2 pi^2 sigma^2)``, 1e-214 here.
_WIDE = 5.0
#: Terms of that sum for smaller sigma: ``exp(-30^2 / 2 / 1)`` and less is lost, far below float64.
_TERMS = np.arange(-150, 151, dtype=np.float64)

# -------------------------------------------------------------------------------- calibrations


def analytic_mu(epsilon: float, delta: float) -> float:
    """Largest mu at which mu-GDP implies (epsilon, delta)-DP: A2 solved for D / s, rounded down.

    Source: Balle and Wang (2018), theorem 8; catalogue A2.
    """
    _require_both(epsilon, delta)
    low = high = tail_mu(epsilon, delta)  # always enough noise
    while GaussianCurve(high).delta(epsilon) < delta:
        high *= 2.0

    def excess(mu: float) -> float:
        return GaussianCurve(mu).delta(epsilon) / delta - 1.0

    return float(optimize.brentq(excess, low, high, xtol=1e-300, rtol=1e-14)) * (1.0 - _SAFETY)


def classical_mu(epsilon: float, delta: float) -> float:
    """``epsilon / sqrt(2 ln(1.25 / delta))``, the textbook rule.

    Raises
    ------
    ValueError
        If epsilon > 1, for which the rule is not proved: it fails for large epsilon.
    """
    _require_both(epsilon, delta)
    require(epsilon <= 1, "epsilon <= 1 for the classical calibration, which is not proved beyond", epsilon)
    return epsilon / math.sqrt(2.0 * math.log(1.25 / delta)) * (1.0 - _SAFETY)


def tail_mu(epsilon: float, delta: float) -> float:
    """Largest mu at which the privacy loss exceeds epsilon with probability at most delta.

    ``Phi(mu / 2 - epsilon / mu) = delta`` solved for mu: with ``z = -Phi^-1(delta)`` a quadratic equation. More noise
    than necessary (001, Proposition 12.3, which is only sufficient).
    """
    _require_both(epsilon, delta)
    z = -float(special.ndtri(delta))
    root = math.sqrt(z * z + 2.0 * epsilon)
    return (2.0 * epsilon / (z + root) if z > 0 else root - z) * (1.0 - _SAFETY)


CALIBRATIONS: dict[Rule, Callable[[float, float], float]] = {
    "analytic": analytic_mu,
    "classical": classical_mu,
    "tail": tail_mu,
}


def unit_mu(sigma: float) -> float:
    """Level of a discrete Gaussian of `sigma` lattice steps under a shift of one step, as Gaussian DP.

    Notes
    -----
    It is ``2 Phi^-1((1 + P[Z = 0]) / 2)``, the gap of the normal scores of ``P[Z >= 0]`` and ``P[Z >= 1]``, to leading
    order ``(1 + 1 / (24 sigma^2)) / sigma``: a discrete Gaussian is not quite 1/sigma-GDP. That no gap is wider than
    this one at the centre is checked numerically (sigma from 1/4 to 30 steps, all thresholds), not proved. A shift of
    k steps passes k gaps, and coordinates compose in the l2 norm. Infinite below a sigma of about 0.12, where nothing
    of the noise is left in float64.
    """
    require_positive("sigma", sigma)
    total = sigma * math.sqrt(2.0 * math.pi) if sigma >= _WIDE else float(np.exp(-0.5 * (_TERMS / sigma) ** 2).sum())
    return 2.0 * math.sqrt(2.0) * float(special.erfinv(1.0 / total))


@lru_cache(maxsize=256)
def sigma_for(rule: Rule, epsilon: float, delta: float, steps: float) -> float:
    """Sigma, in lattice steps, that makes a move of `steps` steps (l2 norm) (epsilon, delta)-DP by a calibration.

    Notes
    -----
    `unit_mu` solved for sigma, with ``P[Z = 0] <= 1 / (sigma sqrt(2 pi))``: every term of the Poisson sum of the
    normaliser is positive. So the discretisation is paid for; on a fine lattice the result is ``steps / mu``.
    """
    mu = CALIBRATIONS[rule](epsilon, delta)
    return (1.0 + _SAFETY) / (math.sqrt(2.0 * math.pi) * math.erf(mu / (2.0 * math.sqrt(2.0) * steps)))


def _require_both(epsilon: float, delta: float) -> None:
    require_positive("epsilon", epsilon)
    require(0 < delta < 1, "delta in (0, 1)", delta)


# ----------------------------------------------------------------------------------- mechanisms


def l2_steps(query: Query, step: float, coordinates: int) -> float:
    """Most lattice steps that the rounded answer moves between neighbours, l2 norm.

    ``|v|_2^2 <= |v|_1 |v|_inf`` for the integer vector v of the move, and ``|v|_1 <= d |v|_inf``.
    """
    one = lattice_steps(query.linf_sensitivity, query.granularity, step)
    all_of_them = lattice_steps(query.sensitivity, query.granularity, step, coordinates)
    return math.sqrt(one * min(all_of_them, coordinates * one))


def _check_step(step: float) -> None:
    require_positive("step", step)
    require(math.frexp(step)[0] == 0.5, "a power of two as step", step)


def _release_points(centre: IntArray, sigma: float, step: float, n: int, rng: np.random.Generator) -> FloatArray:
    """Lattice points plus discrete Gaussian noise of `sigma` steps, in the units of the answer."""
    require_draws(n)
    return (centre + discrete_gaussian(sigma, (n, *centre.shape), rng)).astype(np.float64) * step


def _output_distribution(centre: IntArray, sigma: float, step: float) -> Law:
    parts = tuple(DiscreteGaussianLaw(int(c), sigma, step) for c in centre.ravel())
    return parts[0] if centre.ndim == 0 else ProductLaw(parts)


@dataclass(frozen=True)
class LatticeGaussian:
    """Answer rounded to a power-of-two lattice, plus discrete Gaussian noise on the lattice.

    Parameters
    ----------
    query : Query
        Answers of shape () or (d,).
    sigma : float
        Parameter of the noise, > 0, in the units of the answer.
    step : float, default 2**-10
        Lattice step, a power of two.

    Notes
    -----
    Rounding is counted in the sensitivity, as for `laplace.LatticeLaplace`; noise is on the lattice, and
    exact (`base.integer_noise.discrete_gaussian`). Its mu exceeds that of the continuous Gaussian by a factor of about
    ``1 + 1 / (24 s^2)``, s being sigma in lattice steps; see `unit_mu`.
    """

    query: Query
    sigma: float
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require_positive("sigma", self.sigma)
        _check_step(self.step)

    def mu(self, coordinates: int = 1) -> float:
        """Level as Gaussian DP for so many coordinates; see `unit_mu`."""
        return l2_steps(self.query, self.step, coordinates) * unit_mu(self.sigma / self.step)

    def rho(self, coordinates: int = 1) -> float:
        """Level as zCDP, ``D^2 / (2 sigma^2)``, as for the continuous Gaussian.

        Valid because: for an integer shift k, completing the square in the sum of ``p^a q^(1 - a)`` gives
        ``exp(a (a - 1) k^2 / (2 sigma^2))`` times the ratio of ``sum of exp(-(j - c)^2 / (2 sigma^2))`` at
        ``c = (1 - a) k`` to that at c = 0. The ratio is at most 1, because the sum's Fourier coefficients in c are
        positive (Canonne, Kamath and Steinke 2020). Coordinates add up.
        """
        return 0.5 * (l2_steps(self.query, self.step, coordinates) * self.step / self.sigma) ** 2

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d), exact multiples of the step."""
        return _release_points(round_to_lattice(self.query(data), self.step), self.sigma / self.step, self.step, n, rng)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`; ValueError if sigma is above 150,000 steps, more than is tabulated."""
        return _output_distribution(round_to_lattice(self.query(data), self.step), self.sigma / self.step, self.step)


@dataclass(frozen=True)
class _CalibratedBase:
    """What the calibrated mechanism shares with its mutants: everything but the distribution."""

    query: Query
    epsilon: float
    delta: float
    rule: Rule = "analytic"
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        _check_step(self.step)
        require(self.rule in CALIBRATIONS, f"a rule among {tuple(CALIBRATIONS)}", self.rule)
        CALIBRATIONS[self.rule](self.epsilon, self.delta)

    def sigma(self, coordinates: int = 1) -> float:
        """Return the parameter of the noise for so many coordinates, in the units of the answer."""
        steps = l2_steps(self.query, self.step, coordinates)
        return sigma_for(self.rule, self.epsilon, self.delta, steps) * self.step

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d), exact multiples of the step."""
        centre = round_to_lattice(self.query(data), self.step)
        return _release_points(centre, self.sigma(centre.size) / self.step, self.step, n, rng)


@dataclass(frozen=True)
class CalibratedGaussian(_CalibratedBase):
    """`LatticeGaussian` with the sigma that a calibration gives for (epsilon, delta)-DP.

    Parameters
    ----------
    query : Query
        Answers of shape () or (d,); its sensitivities bound the move in the l2 norm (`l2_steps`).
    epsilon, delta : float
        The claim; epsilon > 0, delta in (0, 1).
    rule : {"analytic", "classical", "tail"}
        See `analytic_mu`, `classical_mu`, `tail_mu`.
    step : float, default 2**-10
        Lattice step, a power of two.

    Raises
    ------
    ValueError
        If a parameter is out of range; the classical rule refuses epsilon > 1.
    """

    def plain(self, coordinates: int = 1) -> LatticeGaussian:
        """Return the same mechanism for so many coordinates, without its calibration."""
        return LatticeGaussian(self.query, self.sigma(coordinates), self.step)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`."""
        centre = round_to_lattice(self.query(data), self.step)
        return _output_distribution(centre, self.sigma(centre.size) / self.step, self.step)


# -------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class VarianceAsDeviation(CalibratedGaussian):
    """The variance handed to a sampler that expects a standard deviation."""

    def sigma(self, coordinates: int = 1) -> float:
        """Return the square of the right sigma."""
        return super().sigma(coordinates) ** 2


@dataclass(frozen=True)
class DeltaMissingFromLog(CalibratedGaussian):
    """The classical rule without delta in the logarithm: ``s = D sqrt(2 ln 1.25) / epsilon``."""

    def sigma(self, coordinates: int = 1) -> float:
        """Return the sigma of the rule at delta = 1."""
        moved = l2_steps(self.query, self.step, coordinates) * self.step
        return moved * math.sqrt(2.0 * math.log(1.25)) / self.epsilon


@dataclass(frozen=True)
class ClassicalFormulaAtLargeEpsilon(CalibratedGaussian):
    """The classical rule at any epsilon."""

    def sigma(self, coordinates: int = 1) -> float:
        """Return the sigma of the rule, which is not proved for epsilon > 1."""
        moved = l2_steps(self.query, self.step, coordinates) * self.step
        return moved * math.sqrt(2.0 * math.log(1.25 / self.delta)) / self.epsilon


@dataclass(frozen=True)
class GaussianInFloat32(_CalibratedBase):
    """Textbook Gaussian noise in float32, added to the unrounded answer."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d) that are all float32 numbers."""
        require_draws(n)
        answer = self.query(data)
        noise = rng.standard_normal((n, *answer.shape), dtype=np.float32) * np.float32(self.sigma(answer.size))
        return np.asarray(answer.astype(np.float32) + noise, dtype=np.float64)


@dataclass(frozen=True)
class _Level:
    """Epsilon at the claimed delta of a mutant that only has another sigma (A2), for a scalar query."""

    mutant: Callable[..., CalibratedGaussian]

    def __call__(self, base: CalibratedGaussian) -> float:
        """Return it for the parameters of `base`."""
        built = self.mutant(base.query, base.epsilon, base.delta, base.rule, base.step)
        return GaussianCurve(built.plain().mu()).epsilon(base.delta)


MUTANTS: dict[str, Mutant[CalibratedGaussian]] = tabulate_mutants(
    Mutant(
        "variance_as_std",
        Twin(VarianceAsDeviation),
        _Level(VarianceAsDeviation),
        "violation",
        "sigma squared for sigma: a violation where sigma < 1, as for a mean",
    ),
    Mutant(
        "delta_missing_from_log",
        Twin(DeltaMissingFromLog),
        _Level(DeltaMissingFromLog),
        "violation",
        "sigma D sqrt(2 ln 1.25) / eps: too small whatever delta is",
    ),
    Mutant(
        "classical_formula_large_eps",
        Twin(ClassicalFormulaAtLargeEpsilon),
        _Level(ClassicalFormulaAtLargeEpsilon),
        "violation",
        "classical calibration beyond epsilon = 1: too little noise from 8.42 on at delta = 1e-5, from 6.78 at 0.01",
    ),
    Mutant(
        "float32_noise",
        Twin(GaussianInFloat32),
        unbounded,
        "violation",
        "the float32 numbers that occur depend on the answer: f = 0 against f = 1, not a multiple of 2^-24",
    ),
)
