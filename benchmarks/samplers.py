"""Correct samplers, mutants, and one audit of each.

Shared by ``benchmarks/conformity.py`` and the tests of conformity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audits.conformity import ERROR, HasLaw, collect_cells
from auditor.audits.partitions import LawCells, cells_of
from auditor.audits.privacy_loop import Settings
from auditor.privacy.laws import FiniteLaw, GaussianLaw, LaplaceLaw, Law, ProductLaw, TwoSidedGeometricLaw
from auditor.targets import Mechanism
from auditor.targets.sampler import Sampler
from mechanisms.additive_noise import gaussian, geometric, histogram, laplace, truncated_geometric
from mechanisms.additive_noise.gaussian import CalibratedGaussian
from mechanisms.additive_noise.geometric import TwoSidedGeometric
from mechanisms.additive_noise.histogram import SumAndSize
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.additive_noise.truncated_geometric import TruncatedGeometric
from mechanisms.base.mechanism import Mutant
from mechanisms.base.queries import ClippedSum, Count, IdentityQuery, SeveralCounts
from mechanisms.local_model import randomized_response
from mechanisms.selection import exponential, noisy_max, sparse_vector
from mechanisms.selection.exponential import ExponentialMechanism
from mechanisms.selection.noisy_max import PermuteAndFlip, ReportNoisyMax
from mechanisms.selection.sparse_vector import SparseVector

#: Level of the audits of correct samplers: 5 % and not the default 1 %, so that a count of alarms says more.
ALPHA = 0.05
#: Level of the audits of mutants: the default.
MUTANT_ALPHA = 0.01
#: Outputs of the continuous families are rounded to multiples of this.
_GRAIN = 2.0**-20

Draw = Callable[[Any, int, np.random.Generator], NDArray[Any]]


# ------------------------------------------------------------------------------ correct samplers


@dataclass(frozen=True)
class SamplerFamily:
    """A sampler and the distribution that it follows, at zero margin: the null holds with nothing to spare.

    Parameters
    ----------
    name : str
        For tables and test ids.
    draw : callable
        ``(data, n, rng) -> outputs``.
    laws : tuple of Law
        The stated distribution on each dataset.
    datasets : tuple
        What is drawn on.
    error : float
        Relative error that the stated distribution is allowed.
    """

    name: str
    draw: Draw
    laws: tuple[Law, ...]
    datasets: tuple[Any, ...] = (0,)
    error: float = ERROR


#: A distribution of 300 outcomes, some common and most rare; its outcomes are numbers.
_ZIPF = 1.0 / np.arange(1, 301) / np.sum(1.0 / np.arange(1, 301))
#: Relative error that the loaded die below just has.
_LOADED = 0.05


def _roll_die(data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
    del data  # here and below: the distribution is the same on all
    return rng.integers(1, 7, n)


def _loaded_die(data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Five faces are 5 % more probable than on a fair die, the sixth makes up for it."""
    del data
    p = np.full(6, (1 + _LOADED) / 6)
    p[5] = 1 - p[:5].sum()
    return 1 + np.searchsorted(np.cumsum(p)[:-1], rng.random(n), side="right")


def _zipf(data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
    del data
    return np.searchsorted(np.cumsum(_ZIPF)[:-1], rng.random(n), side="right")


def _geometric_sampler(a: float, step: float) -> Draw:
    def draw(data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
        p = -math.expm1(-math.log(a))
        noisy: NDArray[Any] = (int(data) + rng.geometric(p, n) - rng.geometric(p, n)) * step
        return noisy

    return draw


def _gaussian(data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
    rounded: NDArray[Any] = np.rint((data + rng.standard_normal(n)) / _GRAIN) * _GRAIN
    return rounded


def _two_laplace(data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
    rounded: NDArray[Any] = np.rint((data + rng.laplace(size=(n, 2))) / _GRAIN) * _GRAIN
    return rounded


def _bits(data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
    del data
    return (rng.random((n, 4)) < 0.25).astype(np.uint8)


_FAIR = FiniteLaw(tuple(range(1, 7)), np.full(6, 1 / 6))
_BIT = FiniteLaw((0, 1), np.array([0.75, 0.25]))
_FINE = tuple(TwoSidedGeometricLaw(centre, 1.001, 2.0**-10) for centre in (0, 1024))

FAMILIES = (
    SamplerFamily("fair die", _roll_die, (_FAIR,)),
    SamplerFamily("loaded die, error 5 % allowed", _loaded_die, (_FAIR,), error=_LOADED),
    SamplerFamily("300 outcomes", _zipf, (FiniteLaw(tuple(range(300)), _ZIPF),)),
    SamplerFamily("two-sided geometric, a = e", _geometric_sampler(math.e, 1.0), (TwoSidedGeometricLaw(0, math.e),)),
    SamplerFamily("fine lattice, two datasets", _geometric_sampler(1.001, 2.0**-10), _FINE, (0, 1024)),
    SamplerFamily("Gaussian, rounded", _gaussian, (GaussianLaw(0.0, 1.0),)),
    SamplerFamily("two Laplace coordinates, rounded", _two_laplace, (ProductLaw((LaplaceLaw(0.0, 1.0),) * 2),)),
    SamplerFamily("four independent bits", _bits, (ProductLaw((_BIT,) * 4),)),
)


class SamplerTrial(NamedTuple):
    """Outcome of one audit: draws, and whether the distribution was rejected."""

    draws: int
    rejected: bool


@cache
def family_cells(family: int) -> list[LawCells]:
    """Cells of one family, computed once in a process."""
    return [cells_of(law) for law in FAMILIES[family].laws]


def family_trial(family: int, seed: int, draws: int, alpha: float = ALPHA) -> SamplerTrial:
    """Audit a correct sampler once; both stopping rules reject in the same audits.

    This is the part of `auditor.audits.conformity.run_conformity` that can raise a false alarm, but for the tests of
    independence, which have an alpha of their own.
    """
    chosen = FAMILIES[family]
    settings = Settings(alpha=alpha, draws=draws, seed=seed)
    sampler = Sampler(chosen.draw, seed, chosen.name)
    tally = collect_cells(sampler, chosen.datasets, family_cells(family), math.log1p(chosen.error), settings)
    return SamplerTrial(sum(tally.draws), tally.highest >= -math.log(alpha))


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SamplerMutantCase:
    """A mutant against the distribution of its reference, on datasets where the two distributions differ."""

    family: str
    name: str
    mutant: Mechanism
    reference: HasLaw
    datasets: tuple[Any, ...]


_SCALAR = LatticeLaplace(IdentityQuery(), 0.5)
_COUNTS = LatticeLaplace(SeveralCounts((Count(low=1.0),) * 3), 0.5)
_ROWS = (np.array([0.0, 0.0]), np.array([0.0, 1.0]))
_SCORES = (np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 0.0, 1.0, 2.0]))
_VECTOR = IdentityQuery(sensitivity=4.0, linf_sensitivity=1.0)
_BITS = (np.array([0, 1, 1, 0]), np.array([1, 1, 1, 0]))

#: Each bank of mutants, with a reference and datasets, and those of mutants that need others.
BANKS: Mapping[
    str, tuple[Mapping[str, Mutant[Any]], Any, tuple[Any, ...], Mapping[str, tuple[Any, tuple[Any, ...]]]]
] = {
    "laplace": (
        laplace.MUTANTS,
        _SCALAR,
        (0.0, 1.0),
        {
            "add_remove_sensitivity": (
                LatticeLaplace(ClippedSum(low=-1.0, high=1.0), 0.5),
                (np.array([-1.0]), np.array([1.0])),
            ),
            "linf_sensitivity": (_COUNTS, _ROWS),
            "same_noise_for_two_queries": (_COUNTS, _ROWS),
            "local_sensitivity": (LatticeLaplace(Count(low=1.0), 0.5), _ROWS),
        },
    ),
    "geometric": (
        geometric.MUTANTS,
        TwoSidedGeometric(Count(low=1.0), math.e),
        (np.array([0.0]), np.array([1.0])),
        {
            "sensitivity_ignored": (
                TwoSidedGeometric(ClippedSum(low=0.0, high=2.0, resolution=1.0), math.sqrt(math.e)),
                (np.array([0.0]), np.array([2.0])),
            )
        },
    ),
    "exponential": (exponential.MUTANTS, ExponentialMechanism(_VECTOR, 1.0), _SCORES, {}),
    "randomized_response": (randomized_response.MUTANTS, randomized_response.from_epsilon(math.log(2)), _BITS, {}),
    "noisy_max": (noisy_max.MUTANTS, ReportNoisyMax(_VECTOR, 1.0), _SCORES, {}),
    "permute_and_flip": (noisy_max.FLIP_MUTANTS, PermuteAndFlip(_VECTOR, 1.0), _SCORES, {}),
    "gaussian": (
        gaussian.MUTANTS,
        CalibratedGaussian(IdentityQuery(), 1.0, 1e-5),
        (0.0, 1.0),
        # The classical formula was made for epsilon up to 1: at 10 it is off.
        {"classical_formula_large_eps": (CalibratedGaussian(IdentityQuery(), 10.0, 1e-5), (0.0, 1.0))},
    ),
    "truncated_geometric": (truncated_geometric.MUTANTS, TruncatedGeometric(Count(low=1.0), math.e, 6), _ROWS, {}),
    "histogram": (
        histogram.MUTANTS,
        SumAndSize(ClippedSum(low=0.0, high=2.0, relation="add_remove_one"), 1.0),
        (np.array([2.0]), np.array([2.0, 2.0])),
        {},
    ),
    "sparse_vector": (sparse_vector.MUTANTS, SparseVector(_VECTOR, 1.0, 0.5, cutoff=2), _SCORES, {}),
}
#: Mutants with the distribution of their reference: their claim is what is wrong.
SAME_LAW = {"randomized_response/parameter_claimed_as_eps"}


def cases() -> Iterator[SamplerMutantCase]:
    """Every mutant whose distribution differs from its reference's."""
    for family, (bank, base, datasets, others) in BANKS.items():
        for name, mutant in bank.items():
            reference, data = others.get(name, (base, datasets))
            if f"{family}/{name}" not in SAME_LAW:
                yield SamplerMutantCase(family, name, mutant.build(reference), reference, data)


@cache
def built_cases() -> list[tuple[SamplerMutantCase, list[LawCells]]]:
    """All cases with the cells of their references' distributions, computed once in a process."""
    return [(case, [cells_of(case.reference.law(data)) for data in case.datasets]) for case in cases()]


def case_trial(case: int, seed: int, draws: int) -> SamplerTrial:
    """Audit a mutant once, until it is found."""
    chosen, cells = built_cases()[case]
    settings = Settings(alpha=MUTANT_ALPHA, draws=draws, seed=seed)
    sampler = Sampler(chosen.mutant, seed, f"{chosen.family}/{chosen.name}")
    tally = collect_cells(sampler, chosen.datasets, cells, math.log1p(ERROR), settings)
    return SamplerTrial(sum(tally.draws), tally.highest >= -math.log(MUTANT_ALPHA))
