"""Mutants of the noisy polynomial for disjunctions.

Source: catalogue 000_001_003, chebyshev_disjunction_summary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from mechanisms.base.mechanism import HasEpsilon, IntArray, Mutant, TimesEpsilon, Twin, tabulate_mutants, unbounded
from mechanisms.base.noise import two_sided_geometric
from mechanisms.query_release.disjunctions import DisjunctionSummary, DisjunctionSummaryBase, l1_sensitivity


@dataclass(frozen=True)
class NoiseOfOneCoefficient(DisjunctionSummary):
    """Noise for the largest coefficient alone, max |c_s| / n."""

    def moved(self) -> int:
        """Return the lattice steps of the largest coefficient."""
        return int(max(map(abs, self.coefficients)) * self.grain)


@dataclass(frozen=True)
class HalfOfTheAttributes(DisjunctionSummary):
    """C(d/2, s) for C(d, s): d counted before each attribute was doubled by its negation."""

    def moved(self) -> int:
        """Return the sensitivity of a summary of half as many attributes."""
        return int(l1_sensitivity(self.coefficients, len(self.attributes) // 2) * self.grain)


@dataclass(frozen=True)
class UnivariateNoise(DisjunctionSummaryBase):
    """Noise on the r coefficients of g in powers of m; each power has one, for all sets of attributes.

    ``m^k = sum_s surj(k, s) C(m, s)`` with the number of surjections: a set of s attributes gets the sum over k of
    ``surj(k, s)`` times the noise of power k. The noise has the scale of the l1 norm of g's coefficients in powers over
    n.
    """

    @property
    def powers(self) -> tuple[Fraction, ...]:
        """Coefficients a_1 .. a_r of g in powers: ``C(m, s) = sum_k stirling(s, k) m^k / s!``, signed."""
        total = [Fraction(0)] * (self.degree + 1)
        falling = [Fraction(1)]  # m (m - 1) .. (m - s + 1) in powers
        for s, c in enumerate(self.coefficients):
            for k, value in enumerate(falling):
                total[k] += c * value / math.factorial(s)
            falling = [
                (falling[k - 1] if k else Fraction(0)) - s * (falling[k] if k < len(falling) else Fraction(0))
                for k in range(len(falling) + 1)
            ]
        return tuple(total[1:])

    @property
    def grain(self) -> int:
        """Common denominator of the coefficients in binomials, see the reference, and of those in powers."""
        return math.lcm(super().grain, *(a.denominator for a in self.powers))

    def moved(self) -> int:
        """Return the l1 norm of the coefficients in powers, in lattice steps."""
        return int(sum(map(abs, self.powers)) * self.grain)

    def noise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw one number a power, and spread it."""
        drawn = two_sided_geometric(self.base, (n, self.degree), rng)
        onto = np.array(
            [[surjections(k, s) for s in range(1, self.degree + 1)] for k in range(1, self.degree + 1)], dtype=np.int64
        )
        by_size = drawn @ onto
        return np.repeat(by_size, [len(sets) for sets in self.sets], axis=1)


def surjections(k: int, s: int) -> int:
    """Number of maps of k things onto s: the coefficient of a product of s indicators in the k-th power of a sum."""
    return sum((-1) ** (s - i) * math.comb(s, i) * i**k for i in range(s + 1))


@dataclass(frozen=True)
class LongQueriesAnswered(DisjunctionSummary):
    """Queries of more than t attributes are answered, where g is far from 1."""

    def longest(self) -> int:
        """Return d."""
        return len(self.attributes)


@dataclass(frozen=True)
class NoisyConstant(DisjunctionSummary):
    """The coefficient of the empty set, which is 0 for every dataset, is released with noise and added to answers."""

    least: ClassVar[int] = 0


@dataclass(frozen=True)
class _ByNoise:
    """A true level that is too high by the factor by which the noise is too small."""

    mutant: Twin[DisjunctionSummary]

    def __call__(self, base: HasEpsilon) -> float:
        """Return it for the parameters of `base`."""
        made = self.mutant(base)
        whole = l1_sensitivity(made.coefficients, len(made.attributes)) * made.grain
        return base.epsilon * float(whole / made.moved())


MUTANTS: dict[str, Mutant[DisjunctionSummary]] = tabulate_mutants(
    Mutant(
        "noise_of_one_coefficient",
        Twin(NoiseOfOneCoefficient),
        _ByNoise(Twin(NoiseOfOneCoefficient)),
        "violation",
        "noise for the largest coefficient: a row moves all of them",
    ),
    Mutant(
        "power_basis_noise",
        Twin(UnivariateNoise),
        unbounded,
        "violation",
        "one draw for all sets of a size: their differences are exact",
    ),
    Mutant(
        "long_queries_answered",
        Twin(LongQueriesAnswered),
        TimesEpsilon(1.0),
        "benign",
        "g far from 1 beyond t",
    ),
    Mutant(
        "wrong_d_in_binomial",
        Twin(HalfOfTheAttributes),
        _ByNoise(Twin(HalfOfTheAttributes)),
        "violation",
        "the sensitivity of a summary of half as many attributes",
    ),
    Mutant(
        "constant_term_noised",
        Twin(NoisyConstant),
        TimesEpsilon(1.0),
        "benign",
        "noise on c_0 in every answer",
    ),
)
