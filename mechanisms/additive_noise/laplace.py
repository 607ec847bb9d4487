"""Laplace noise on a lattice, and its mutants.

Textbook Laplace noise in floating point is a mutant here, not the reference: the doubles it can
return depend on the answer it is added to (Mironov 2012).

Source: D003 Ex 1.1.3, Prop 1.1.4; document 004, Lemma 2.6; document 002, Theorem 2.3; catalogue
000_001_003, laplace_mechanism and discrete_laplace_lattice; 004, laplace_mech; 002, entry 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.datasets.pandas_types import is_frame
from auditor.privacy.exact import FiniteLaw, GaussianLaw, Law, ProductLaw
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
from mechanisms.base.noise import (
    base_for,
    draw_geometric,
    lattice_law,
    lattice_steps,
    round_to_lattice,
    two_sided_geometric,
)
from mechanisms.base.queries import Query


@dataclass(frozen=True)
class _OnLattice:
    """What the mechanism shares with its mutants; they replace one method each."""

    query: Query
    epsilon: float
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5, "a power of two as step", self.step)

    @property
    def grid(self) -> float:
        """What one unit of noise is worth in the output."""
        return self.step

    @property
    def calibration(self) -> float:
        """The sensitivity the noise is calibrated to."""
        return self.query.sensitivity

    def steps(self, coordinates: int) -> int:
        """Most lattice steps the rounded answer moves between neighbours, l1 norm."""
        return lattice_steps(self.calibration, self.query.granularity, self.step, coordinates)

    def base(self, coordinates: int) -> float:
        """Return the base of the integer noise."""
        return base_for(self.epsilon, self.steps(coordinates))

    def centre(self, data: Dataset) -> IntArray:
        """Return the answer rounded to the lattice, in units of `grid`."""
        return round_to_lattice(self.query(data), self.grid)

    def noise(self, size: tuple[int, ...], a: float, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Draw the integer noise of base `a`; int64 of shape `size`."""
        del data  # only mutants look at it
        return two_sided_geometric(a, size, rng)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d), exact multiples of the step."""
        require_draws(n)
        centre = self.centre(data)
        noise = self.noise((n, *centre.shape), self.base(centre.size), data, rng)
        return (centre + noise).astype(np.float64) * self.grid


@dataclass(frozen=True)
class LatticeLaplace(_OnLattice):
    """Answer rounded to a power-of-two lattice, plus two-sided geometric noise on the lattice.

    Parameters
    ----------
    query : Query
        Answers of shape () or (d,); its l1 sensitivity calibrates the noise.
    epsilon : float
        Claimed pure level.
    step : float, default 2**-10
        Lattice step g, a power of two. The default, a thousandth of a count, keeps the cost of
        rounding small for sensitivities around 1; see `default_step` for others.

    Notes
    -----
    The answer x becomes the integer ``floor(x / g + 1/2)``. A coordinate that moves by t moves by
    at most ``ceil(t / g)`` steps: ``x' <= x + k g`` gives ``floor(x'/g + 1/2) <= floor(x/g + 1/2)
    + k``. So a scalar answer of sensitivity s moves by at most ``k = ceil(s / g)`` steps, and d
    coordinates that move by s in all by at most ``k = ceil(s / g) + d - 1`` (each may be rounded
    up), or by ``s / g`` if all answers are on the lattice already. The noise has base
    ``a = exp(eps / k)``, so k steps cost eps. The output is an integer times g, exact in float64
    below 2^53 steps and a rounding of the integer, hence post-processing, above.
    """

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`: two-sided geometric in units of the step."""
        centre = self.centre(data)
        return lattice_law(centre, self.base(centre.size), self.grid)


def default_step(sensitivity: float) -> float:
    """Return the largest power of two that is at most ``sensitivity / 1024``.

    Rounding then wastes at most 0.1 % of epsilon on a scalar answer.
    """
    require_positive("sensitivity", sensitivity)
    return 2.0 ** math.floor(math.log2(sensitivity / 1024.0))


# ------------------------------------------------------- mutants: the same distribution, the wrong scale


@dataclass(frozen=True)
class MiscalibratedLaplace(LatticeLaplace):
    """Noise of the scale that gives level `calibrated`, where `epsilon` is claimed."""

    calibrated: float = 1.0

    def base(self, coordinates: int) -> float:
        """Return the base for the level `calibrated`."""
        return base_for(self.calibrated, self.steps(coordinates))


@dataclass(frozen=True)
class MiscalibratedTwin:
    """Builds a `MiscalibratedLaplace` from the level its scale really gives."""

    level: Callable[[LatticeLaplace], float]

    def __call__(self, base: LatticeLaplace) -> MiscalibratedLaplace:
        """Return the mutant of `base`."""
        return MiscalibratedLaplace(base.query, base.epsilon, base.step, self.level(base))


@dataclass(frozen=True)
class AddRemoveSensitivity(LatticeLaplace):
    """The query's add/remove sensitivity, used under replace_one."""

    @property
    def calibration(self) -> float:
        """The sensitivity of the same query under the other relation."""
        other: Any = self.query
        return float(replace(other, relation="add_remove_one").sensitivity)


@dataclass(frozen=True)
class LinfSensitivity(LatticeLaplace):
    """The largest move of one coordinate, used for the sum of all moves."""

    @property
    def calibration(self) -> float:
        """The linf sensitivity."""
        return self.query.linf_sensitivity


@dataclass(frozen=True)
class HalfLatticeStep(LatticeLaplace):
    """Answers and noise on the lattice of half the step, with the base of the full step."""

    @property
    def grid(self) -> float:
        """Half the step."""
        return self.step / 2.0


@dataclass(frozen=True)
class CoarseGridFirst(LatticeLaplace):
    """Answers rounded to multiples of four times the sensitivity, which is not counted."""

    def centre(self, data: Dataset) -> IntArray:
        """Round to multiples of ``4 * steps``: the sensitivity becomes that."""
        answer = self.query(data)
        coarse = 4 * self.steps(answer.size)
        return np.floor(answer / (coarse * self.step) + 0.5).astype(np.int64) * coarse


@dataclass(frozen=True)
class LocalSensitivity(LatticeLaplace):
    """Sensitivity read off the data: the largest change when one of their rows is left out."""

    def _rows(self, data: Dataset) -> FloatArray:
        # One query a row: quadratic time, for the small datasets of an audit.
        answers = [self.query(_without_row(data, i)) for i in range(len(data))]
        return np.array([np.abs(answer - self.query(data)).sum() for answer in answers])

    def noise(self, size: tuple[int, ...], a: float, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Draw noise of the scale the data ask for; none at all where no row matters."""
        del a
        local = float(self._rows(data).max(initial=0.0))
        if local == 0.0:
            return np.zeros(size, dtype=np.int64)
        return two_sided_geometric(base_for(self.epsilon, math.ceil(local / self.step)), size, rng)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`; a point where no row matters."""
        local = float(self._rows(data).max(initial=0.0))
        centre = self.centre(data)
        if local == 0.0:
            return _point_distribution(centre, self.grid)
        return lattice_law(centre, base_for(self.epsilon, math.ceil(local / self.step)), self.grid)


# ------------------------------------------------------------------- mutants: the wrong noise


@dataclass(frozen=True)
class OneSidedNoise(_OnLattice):
    """Exponential noise: never negative."""

    def noise(self, size: tuple[int, ...], a: float, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Draw G >= 0."""
        del data
        return draw_geometric(a, size, rng)


@dataclass(frozen=True)
class BoundedSupportNoise(_OnLattice):
    """Noise cut off at three scales (the noise is clamped, not the output)."""

    def _limit(self, a: float) -> int:
        return math.ceil(3.0 / math.log1p(a - 1.0))

    def noise(self, size: tuple[int, ...], a: float, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Draw clamped two-sided geometric noise."""
        limit = self._limit(a)
        return np.clip(super().noise(size, a, data, rng), -limit, limit)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`: finite support around the answer."""
        centre = self.centre(data)
        a = self.base(centre.size)
        limit = self._limit(a)
        k = np.arange(-limit, limit + 1)
        mass = a ** -np.abs(k).astype(np.float64) * (a - 1.0) / (a + 1.0)
        mass[[0, -1]] = a ** (1.0 - limit) / (a + 1.0)
        parts = [FiniteLaw(tuple(((c + k) * self.grid).tolist()), mass) for c in centre.ravel()]
        return parts[0] if centre.ndim == 0 else ProductLaw(tuple(parts))


@dataclass(frozen=True)
class NoiseSeededByData(_OnLattice):
    """Noise from a generator seeded by a hash of the data: each dataset has one answer."""

    def noise(self, size: tuple[int, ...], a: float, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Draw once from the data's own generator; every release repeats it."""
        del rng
        own = np.random.default_rng(_fingerprint(data))
        return np.broadcast_to(two_sided_geometric(a, size[1:], own), size)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`: a point."""
        centre = self.centre(data)
        unused = np.random.default_rng(0)
        noise = self.noise((1, *centre.shape), self.base(centre.size), data, unused)[0]
        return _point_distribution(centre + noise, self.grid)


@dataclass(frozen=True)
class SameNoiseForAllAnswers(_OnLattice):
    """One noise draw for all coordinates: their differences are exact."""

    def noise(self, size: tuple[int, ...], a: float, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Draw once a release."""
        return np.broadcast_to(super().noise((size[0],) + (1,) * (len(size) - 1), a, data, rng), size)


@dataclass(frozen=True)
class NoiseRoundedBeforeAdding(_OnLattice):
    """Noise in multiples of the sensitivity, added to an answer that is on a finer lattice."""

    def noise(self, size: tuple[int, ...], a: float, data: Dataset, rng: np.random.Generator) -> IntArray:
        """Draw ``k * Z`` with Z of base e^eps: only moves of exactly k steps are hidden."""
        del a
        coordinates = math.prod(size[1:])
        return self.steps(coordinates) * super().noise(size, math.exp(self.epsilon), data, rng)


@dataclass(frozen=True)
class GaussianOfSameScale(_OnLattice):
    """Normal noise whose standard deviation is the Laplace scale."""

    def _sigma(self, coordinates: int) -> float:
        return self.grid / math.log1p(self.base(coordinates) - 1.0)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d)."""
        require_draws(n)
        centre = self.centre(data)
        return centre * self.grid + rng.normal(0.0, self._sigma(centre.size), (n, *centre.shape))

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`, of the real-valued formula."""
        centre = self.centre(data)
        sigma = self._sigma(centre.size)
        parts = tuple(GaussianLaw(float(c) * self.grid, sigma) for c in centre.ravel())
        return parts[0] if centre.ndim == 0 else ProductLaw(parts)


@dataclass(frozen=True)
class TextbookLaplace(_OnLattice):
    """Inverse-CDF Laplace noise in float64, added to the unrounded answer."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d)."""
        require_draws(n)
        answer = self.query(data)
        u = rng.random((n, *answer.shape)) - 0.5
        # u = -1/2 (probability 2^-53) would give log 0.
        inner = np.maximum(1.0 - 2.0 * np.abs(u), np.finfo(np.float64).tiny)
        return answer - self.calibration / self.epsilon * np.sign(u) * np.log(inner)


@dataclass(frozen=True)
class RoundedOutput(_OnLattice):
    """The output rounded to integers: post-processing."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; whole float64 numbers of shape (n,) or (n, d)."""
        return np.floor(super().__call__(data, n, rng) + 0.5)


def _without_row(data: Dataset, row: int) -> Dataset:
    return data.drop(data.index[row]) if is_frame(data) else np.delete(np.asarray(data), row, 0)


def _fingerprint(data: Dataset) -> int:
    import pandas as pd  # takes longer to import than all the rest together

    frame = data if is_frame(data) else pd.DataFrame(np.atleast_1d(np.asarray(data)))
    hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    return int.from_bytes(hashlib.sha256(hashes.tobytes()).digest(), "big")


def _point_distribution(centre: IntArray, grid: float) -> Law:
    parts = tuple(FiniteLaw((float(c) * grid,), np.ones(1)) for c in centre.ravel())
    return parts[0] if centre.ndim == 0 else ProductLaw(parts)


def _inverse_epsilon(base: LatticeLaplace) -> float:
    return 1.0 / base.epsilon


def _upside_down(base: LatticeLaplace) -> float:
    return base.query.sensitivity**2 / base.epsilon


def _add_remove(base: LatticeLaplace) -> float:
    return base.epsilon * base.query.sensitivity / AddRemoveSensitivity(base.query, base.epsilon).calibration


def _linf(base: LatticeLaplace) -> float:
    return base.epsilon * base.query.sensitivity / base.query.linf_sensitivity


MUTANTS: dict[str, Mutant[LatticeLaplace]] = tabulate_mutants(
    Mutant(
        "scale_times_epsilon",
        MiscalibratedTwin(_inverse_epsilon),
        _inverse_epsilon,
        "violation",
        "scale eps * GS: true 1/eps, a violation only for eps < 1",
    ),
    Mutant(
        "scale_inverted",
        MiscalibratedTwin(_upside_down),
        _upside_down,
        "violation",
        "scale eps / GS: true GS^2/eps, a violation only for eps < GS",
    ),
    Mutant(
        "std_as_scale",
        MiscalibratedTwin(TimesEpsilon(math.sqrt(2.0))),
        TimesEpsilon(math.sqrt(2.0)),
        "violation",
        "scale / sqrt 2",
    ),
    Mutant("half_scale", MiscalibratedTwin(TimesEpsilon(2.0)), TimesEpsilon(2.0), "violation", "scale GS / (2 eps)"),
    Mutant(
        "add_remove_sensitivity",
        Twin(AddRemoveSensitivity),
        _add_remove,
        "violation",
        "add/remove sensitivity under replace_one: 2 eps for a histogram or a sum over [-1, 1]; no mutant for a count",
    ),
    Mutant(
        "linf_sensitivity",
        Twin(LinfSensitivity),
        _linf,
        "violation",
        "linf sensitivity for p answers: p eps where all answers move fully",
    ),
    Mutant(
        "half_lattice_step",
        Twin(HalfLatticeStep),
        TimesEpsilon(2.0),
        "violation",
        "lattice of half the step, base unchanged",
    ),
    Mutant(
        "coarse_grid_first",
        Twin(CoarseGridFirst),
        TimesEpsilon(4.0),
        "violation",
        "rounds to 4 GS first: 4 eps on a pair that straddles an odd multiple of 2 GS",
    ),
    Mutant(
        "local_sensitivity",
        Twin(LocalSensitivity),
        unbounded,
        "violation",
        "sensitivity of the data at hand: a count of no rows has no noise; queries on rows only",
    ),
    Mutant("one_sided_exponential", Twin(OneSidedNoise), unbounded, "violation", "noise >= 0: support mismatch"),
    Mutant(
        "bounded_support_noise",
        Twin(BoundedSupportNoise),
        unbounded,
        "violation",
        "noise within 3 scales; delta about e^-3/2",
    ),
    Mutant("noise_seeded_by_data", Twin(NoiseSeededByData), unbounded, "violation", "the output never varies"),
    Mutant(
        "same_noise_for_two_queries",
        Twin(SameNoiseForAllAnswers),
        unbounded,
        "violation",
        "one draw for all coordinates: two answers whose difference changes; correct for a scalar",
    ),
    Mutant(
        "noise_rounded_before_adding",
        Twin(NoiseRoundedBeforeAdding),
        unbounded,
        "violation",
        "noise in multiples of GS: answers that differ by less have disjoint supports; needs step < GS",
    ),
    Mutant("gaussian_of_same_scale", Twin(GaussianOfSameScale), unbounded, "violation", "no pure level; small delta"),
    Mutant(
        "float_inverse_cdf",
        Twin(TextbookLaplace),
        unbounded,
        "violation",
        "the doubles that occur depend on the answer: f = 0 against f = 1, not a multiple of 2^-53",
    ),
    Mutant(
        "output_rounded_or_clamped",
        Twin(RoundedOutput),
        TimesEpsilon(1.0),
        "benign",
        "post-processing: a deviation at most",
    ),
)
