"""Two-sided geometric noise with the output clamped to a public range, and its mutants.

Source: D000 section 2, last paragraph (exercise); catalogue 000_001_003, truncated_geometric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw, Law, ProductLaw
from mechanisms.additive_noise.geometric import OnIntegers
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import two_sided_geometric

# Smallest exponent of a probability that is stated: e^-690 is about 1e-300, still a normal float64. A distribution with
# smaller ones would call outputs impossible that are not.
_FURTHEST = 690.0


@dataclass(frozen=True)
class _ClampedBase(OnIntegers):
    """What the mechanism shares with its mutants."""

    bound: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.bound, (int, np.integer)) and self.bound >= 1, "an integer bound >= 1", self.bound)

    def centre(self, data: Dataset) -> IntArray:
        """Return the integer answers, shape () or (d,), each clamped to [0, bound]: neighbours get no further apart."""
        return np.clip(super().centre(data), 0, self.bound)

    def _pmf(self, centre: int) -> FloatArray:
        """Probabilities of 0..bound for one answer."""
        require(
            self.bound * self.log_a <= _FURTHEST,
            f"bound * ln a at most {_FURTHEST:g}, so that no probability underflows",
            self.bound * self.log_a,
        )
        return np.asarray(
            np.exp(-self.log_a * np.abs(np.arange(self.bound + 1) - centre)) * (self.a - 1.0) / (self.a + 1.0),
            dtype=np.float64,
        )

    def _output_distribution(self, data: Dataset, mass: list[FloatArray]) -> Law:
        outcomes = tuple(range(self.bound + 1))
        parts = tuple(FiniteLaw(outcomes, m) for m in mass)
        return parts[0] if self.centre(data).ndim == 0 else ProductLaw(parts)


@dataclass(frozen=True)
class TruncatedGeometric(_ClampedBase):
    """Integer query plus two-sided geometric noise of base `a`, clamped to [0, bound].

    Parameters
    ----------
    query : Query
        Integer answers of shape () or (d,), integer l1 sensitivity. Answers outside [0, bound] are clamped first.
    a : float
        Base, > 1. The level is exactly ``sensitivity * ln a``: clamping is post-processing, and the best events, at the
        answer, survive it.
    bound : int
        Public, >= 1.

    Raises
    ------
    ValueError
        If ``a <= 1``, the query is not integer, or the bound is no positive integer.
    """

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,) or (n, d), in 0..bound."""
        return np.clip(super().__call__(data, n, rng), 0, self.bound)

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`: the tails beyond 0 and beyond bound lie at the ends.

        Raises
        ------
        ValueError
            If ``bound * ln a > 690``: probabilities would underflow.
        """
        mass = []
        for g in self.centre(data).ravel().tolist():
            pmf = self._pmf(g)
            # P[Z >= t] = a^(1 - t) / (a + 1): the mass of the end point, times a / (a - 1).
            pmf[[0, -1]] *= self.a / (self.a - 1.0)
            mass.append(pmf)
        return self._output_distribution(data, mass)


@dataclass(frozen=True)
class RejectAndRedraw(_ClampedBase):
    """Noise redrawn until the output is in range: what is divided by depends on the answer."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,) or (n, d), in 0..bound."""
        require_draws(n)
        centre = self.centre(data)
        outputs = np.full((n, *centre.shape), -1, dtype=np.int64)
        answers = np.broadcast_to(centre, outputs.shape)
        # Half of the noise points inwards, so with a range as wide as the noise a few rounds are enough.
        while (outside := (outputs < 0) | (outputs > self.bound)).any():
            outputs[outside] = answers[outside] + two_sided_geometric(self.a, int(outside.sum()), rng)
        return outputs

    def law(self, data: Dataset) -> Law:
        """Exact output distribution on `data`."""
        return self._output_distribution(
            data, [(pmf := self._pmf(g)) / pmf.sum() for g in self.centre(data).ravel().tolist()]
        )


@dataclass(frozen=True)
class NoiseClamped(_ClampedBase):
    """The noise is clamped to [0, bound], not the output: no output is below the answer."""

    def noise(self, size: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw clamped noise."""
        return np.clip(super().noise(size, rng), 0, self.bound)


@dataclass(frozen=True)
class DataDependentBound(_ClampedBase):
    """The output is clamped to [0, number of rows], as if that number were public under add/remove."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,) or (n, d), in 0..rows."""
        return np.clip(super().__call__(data, n, rng), 0, len(data))


def _redrawn_epsilon(base: TruncatedGeometric) -> float:
    """Answers 0 and 1, output 0: ``a N_1 / N_0`` for the normalisers of the geometric on 0..bound."""
    steps = np.arange(base.bound + 1)
    first, second = (math.fsum(np.exp(-base.log_a * np.abs(steps - g)).tolist()) for g in (0, 1))
    return base.log_a + math.log(second / first)


MUTANTS: dict[str, Mutant[TruncatedGeometric]] = tabulate_mutants(
    Mutant(
        "reject_and_redraw",
        Twin(RejectAndRedraw),
        _redrawn_epsilon,
        "violation",
        "redrawn until in range: ln((a^2 + a - 1) / a) for a large bound and sensitivity 1, at the answers 0 and 1",
    ),
    Mutant("noise_clamped", Twin(NoiseClamped), unbounded, "violation", "noise >= 0: support mismatch"),
    Mutant(
        "data_dependent_bound",
        Twin(DataDependentBound),
        unbounded,
        "violation",
        "clamped to the number of rows: a count of all rows, one of them removed, has outputs of its own",
    ),
)
