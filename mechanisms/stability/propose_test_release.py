"""Propose a bound on the local sensitivity, test the distance to where it fails, release: on the median.

Source: document 003, section 2.2.2, Claim 2.2.1; catalogue 000_001_003, propose_test_release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    unbounded,
)
from mechanisms.base.noise import base_for, lattice_steps, round_to_lattice, two_sided_geometric
from mechanisms.stability.median import ClippedMedian, MedianOfObservedRange

# Outputs that a distribution lists, at most: 2^16 of them take some tenths of a second.
_FINEST = 2.0**-16
# Smallest exponent of a probability that is stated: e^-690 is about 1e-300, still a normal float64.
_FURTHEST = 690.0


@dataclass(frozen=True)
class ProposeTestRelease:
    """The median plus Laplace noise of scale bound/eps, if a noisy distance passes a threshold; else nothing.

    Parameters
    ----------
    query : ClippedMedian
        Answers in [0, 1], and their distance to the datasets whose local sensitivity is above a bound.
    bound : float
        Proposed bound on the local sensitivity, in (0, 1).
    epsilon : float
        Of the test and of the release, each.
    delta : float
        In (0, 1); the threshold is ``ln(1/delta) / epsilon``.
    step : float, default 2**-8
        Lattice of the released values, a power of two of at least 2^-16 and at most 1.
    grid : float, default 2**-10
        Lattice of the noisy distance, a power of two of at most 1. The threshold is rounded up to it.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Both Laplace noises are two-sided geometric noise on their lattice (see `additive_noise.laplace.LatticeLaplace`). A
    release is clamped to [0, 1], where the median lies: post-processing. Nothing released is NaN.

    Exactly ``(2 eps, delta/2)``: at distance 0 a release has probability ``a^-ceil(T/g) / (a + 1) <= delta/2`` with
    ``a = e^(eps g)``, threshold T and grid g; two neighbours whose answers differ by more than the bound are both at
    distance 0; otherwise test and release each cost at most eps. The document claims (2 eps, delta).
    """

    query: ClippedMedian
    bound: float
    epsilon: float
    delta: float
    step: float = 2.0**-8
    grid: float = 2.0**-10

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        for name in ("bound", "delta"):
            require(0 < getattr(self, name) < 1, f"{name} in (0, 1)", getattr(self, name))
        for name, least in (("step", _FINEST), ("grid", _FINEST)):
            value = getattr(self, name)
            power = isinstance(value, float) and least <= value <= 1 and math.frexp(value)[0] == 0.5
            require(power, f"a power of two from {least:g} to 1 as {name}", value)

    # ------------------------------------------------------------------------------ the test

    @property
    def threshold(self) -> float:
        """What the noisy distance must exceed: ``ln(1/delta) / epsilon``."""
        return -math.log(self.delta) / self.epsilon

    def distance(self, data: Dataset) -> float:
        """Return the number of rows to the nearest dataset whose local sensitivity is above the bound; may be `inf`."""
        return self.query.distance(data, self.bound)

    def needed(self, distance: float) -> float:
        """Return the least noise, in steps of the grid, with which a distance passes the test; may be ``-inf``."""
        return math.ceil(self.threshold / self.grid) + 1 - distance / self.grid

    def test_base(self) -> float:
        """Return the base of the noise on the distance."""
        return base_for(self.epsilon, round(1.0 / self.grid))

    def release_probability(self, distance: float) -> float:
        """Return the exact probability that something is released at a distance, a number of rows or `inf`."""
        return _at_least(self.needed(distance), self.test_base()) if math.isfinite(distance) else 1.0

    # --------------------------------------------------------------------------- the release

    def release_sensitivity(self, data: Dataset) -> float:
        """Return what the noise of a release is scaled to: the bound."""
        del data  # only a mutant looks at it
        return self.bound

    def release_base(self, data: Dataset) -> float:
        """Return the base of the noise of a release; `inf` for none at all."""
        moved = self.release_sensitivity(data)
        return base_for(self.epsilon, lattice_steps(moved, 0.0, self.step)) if moved > 0 else math.inf

    def centre(self, data: Dataset) -> int:
        """Return the median in steps of the lattice."""
        return int(round_to_lattice(self.query(data), self.step))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,): multiples of the step in [0, 1], NaN where nothing is released."""
        require_draws(n)
        passed = self._test(data, n, rng)
        base = self.release_base(data)
        noise: IntArray = two_sided_geometric(base, n, rng) if math.isfinite(base) else np.zeros(n, dtype=np.int64)
        return self._release_steps(passed, self.centre(data) + noise)

    def _test(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        return np.asarray(
            two_sided_geometric(self.test_base(), n, rng) >= self.needed(self.distance(data)), dtype=np.bool_
        )

    def _release_steps(self, passed: NDArray[np.bool_], steps: IntArray) -> FloatArray:
        values = np.clip(steps, 0, round(1.0 / self.step)) * self.step
        return np.asarray(np.where(passed, values, np.nan), dtype=np.float64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`: the lattice points of [0, 1], and NaN.

        Raises
        ------
        ValueError
            If probabilities of releases would underflow: ``epsilon / bound`` above 690.
        """
        released = self.release_probability(self.distance(data))
        return self._finite_distribution(released * self._pmf(data), released)

    def _finite_distribution(self, mass: FloatArray, released: float) -> FiniteLaw:
        points = np.arange(mass.size) * self.step
        # One NaN object for all distributions: outcomes are found in dictionaries, which know a NaN by its identity.
        return FiniteLaw((*points.tolist(), math.nan), np.append(mass, 1.0 - released))

    def _pmf(self, data: Dataset) -> FloatArray:
        """Distribution of a release on the lattice points of [0, 1]; the tails beyond lie at the ends."""
        last, centre, base = round(1.0 / self.step), self.centre(data), self.release_base(data)
        k = np.arange(last + 1)
        if math.isinf(base):
            return np.asarray(k == centre, dtype=np.float64)
        log_base = math.log1p(base - 1.0)
        require(last * log_base <= _FURTHEST, f"epsilon / bound at most {_FURTHEST:g}", self.epsilon / self.bound)
        pmf = np.exp(-log_base * np.abs(k - centre)) * (base - 1.0) / (base + 1.0)
        # P[Z >= t] = a^(1 - t) / (a + 1): the mass of the end point, times a / (a - 1).
        pmf[[0, -1]] *= base / (base - 1.0)
        return np.asarray(pmf, dtype=np.float64)


def _at_least(t: float, a: float) -> float:
    """``P[Z >= t]`` for two-sided geometric Z of base a and an integer t."""
    log_a = math.log1p(a - 1.0)
    if t >= 1:
        return math.exp(-(t - 1) * log_a) / (a + 1.0)
    return 1.0 - math.exp(t * log_a) / (a + 1.0)


# ----------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class NoNoiseOnDistance(ProposeTestRelease):
    """No noise on the distance."""

    def release_probability(self, distance: float) -> float:
        """Return 0 or 1."""
        return float(self.needed(distance) <= 0)

    def _test(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        del rng
        return np.full(n, self.needed(self.distance(data)) <= 0)


@dataclass(frozen=True)
class ZeroTestThreshold(ProposeTestRelease):
    """The noisy distance need only be positive."""

    @property
    def threshold(self) -> float:
        """0."""
        return 0.0


@dataclass(frozen=True)
class LogBase10TestThreshold(ProposeTestRelease):
    """The threshold's logarithm to base 10."""

    @property
    def threshold(self) -> float:
        """``log10(1/delta) / epsilon``: the delta in effect is delta^0.434."""
        return -math.log10(self.delta) / self.epsilon


@dataclass(frozen=True)
class LogBase2TestThreshold(ProposeTestRelease):
    """The threshold's logarithm to base 2."""

    @property
    def threshold(self) -> float:
        """``log2(1/delta) / epsilon``."""
        return -math.log2(self.delta) / self.epsilon


@dataclass(frozen=True)
class YesNoDistance(ProposeTestRelease):
    """Whether the local sensitivity is within the bound, for the distance to where it is not."""

    def distance(self, data: Dataset) -> float:
        """Return 0 for no and `inf` for yes."""
        return math.inf if self.query.local(data) <= self.bound else 0.0


@dataclass(frozen=True)
class LaplaceDrawReused(ProposeTestRelease):
    """One Laplace draw for the test and, times the bound, for the release."""

    def _steps(self, noise: FloatArray) -> IntArray:
        return round_to_lattice(self.bound * self.grid * noise, self.step)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs, as the reference."""
        require_draws(n)
        noise = two_sided_geometric(self.test_base(), n, rng)
        steps = self.centre(data) + self._steps(noise.astype(np.float64))
        return self._release_steps(noise >= self.needed(self.distance(data)), steps)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`."""
        last, centre, distance = round(1.0 / self.step), self.centre(data), self.distance(data)
        require(math.isfinite(distance), "a finite distance (else every draw passes)", distance)
        # The release falls on k or above from this draw on, as for `round_to_lattice`: noise >= (k - 1/2 - centre).
        first = np.ceil((np.arange(1, last + 1) - centre - 0.5) * self.step / (self.bound * self.grid))
        above = np.array([_at_least(t, self.test_base()) for t in np.maximum(first, self.needed(distance)).tolist()])
        released = self.release_probability(distance)
        return self._finite_distribution(-np.diff(np.concatenate([[released], above, [0.0]])), released)


@dataclass(frozen=True)
class ReleaseAtLocalSensitivity(ProposeTestRelease):
    """The release's noise is scaled to the local sensitivity of the data, not to the proposed bound."""

    def release_sensitivity(self, data: Dataset) -> float:
        """Return the local sensitivity; where it is 0 there is no noise."""
        return self.query.local(data)


@dataclass(frozen=True)
class NearestObservedDistance(ProposeTestRelease):
    """The distance to a bad dataset within the observed range, as if no row could leave it."""

    def distance(self, data: Dataset) -> float:
        """Return the distance with the data's own range for [0, 1]: too large."""
        return MedianOfObservedRange(self.query.column, self.query.low, self.query.high).distance(data, self.bound)


def _unchanged_base(base: ProposeTestRelease) -> ProposeTestRelease:
    return base


MUTANTS: dict[str, Mutant[ProposeTestRelease]] = tabulate_mutants(
    Mutant(
        "no_noise_on_distance",
        Twin(NoNoiseOnDistance),
        unbounded,
        "violation",
        "no noise on the distance: neighbours on both sides of the threshold, delta = 1",
    ),
    Mutant(
        "threshold_zero",
        Twin(ZeroTestThreshold),
        unbounded,
        "violation",
        "at distance 0 half of the runs release: delta = 1/2 as the answers move apart",
    ),
    Mutant(
        "log_base_10",
        Twin(LogBase10TestThreshold),
        unbounded,
        "violation",
        "delta^0.434 / 2 for delta / 2, as the answers move apart",
    ),
    Mutant(
        "log_base_2",
        Twin(LogBase2TestThreshold),
        TimesEpsilon(2.0),
        "benign",
        "the threshold is too high: delta^1.443 / 2",
    ),
    Mutant(
        "yes_no_distance",
        Twin(YesNoDistance),
        unbounded,
        "violation",
        "a test of LS <= bound: neighbours of which one passes for certain and one hardly ever",
    ),
    Mutant(
        "eps_claimed",
        _unchanged_base,
        TimesEpsilon(2.0),
        "violation",
        "the mechanism as it is; eps is claimed, not 2 eps",
    ),
    Mutant(
        "draw_reused",
        Twin(LaplaceDrawReused),
        unbounded,
        "violation",
        "what is released is the answer plus bound times a draw above T - d: the smallest output shows d",
    ),
    Mutant(
        "release_at_local_sensitivity",
        Twin(ReleaseAtLocalSensitivity),
        unbounded,
        "violation",
        "noise LS(x)/eps at neighbours that both pass, one of them with LS = 0",
    ),
    Mutant(
        "nearest_observed_distance",
        Twin(NearestObservedDistance),
        unbounded,
        "violation",
        "the observed range is within the bound, so the distance is infinite; one row at the end of the public range "
        "makes it finite",
    ),
)
