"""Randomised response on one bit a row, and its mutants.

Source: D003 Ex 1.1.2; document 002, section 1.1; catalogue 000_001_003, randomized_response; 002,
entry 16 (warner_rr).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw, ProductLaw
from mechanisms.base.mechanism import Dataset, Mutant, Twin, require, require_draws, tabulate_mutants, unbounded
from mechanisms.base.queries import column_values

Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class _FlippedBits:
    """What the mechanism shares with its mutants: everything but the coins."""

    parameter: float
    column: Hashable | None = None

    def __post_init__(self) -> None:
        require(0 < self.parameter < 1, "a parameter in (0, 1)", self.parameter)

    @property
    def epsilon(self) -> float:
        """Claimed level, ``2 artanh(parameter) = ln((1 + parameter) / (1 - parameter))``."""
        return 2.0 * math.atanh(self.parameter)

    @property
    def keep(self) -> float:
        """Probability that a bit is reported as it is."""
        return (1.0 + self.parameter) / 2.0

    def with_noise(self, factor: float) -> Self:
        """The mechanism at the level divided by ``factor``, below that at which no bit is ever flipped."""
        return replace(self, parameter=min(math.tanh(self.epsilon / (2.0 * factor)), math.nextafter(1.0, 0.0)))

    def bits(self, data: Dataset) -> Bits:
        """Return the rows' bits, shape (rows,); ValueError if a value is neither 0 nor 1."""
        values = column_values(data, self.column)
        require(values.size > 0 and bool(np.all((values == 0) | (values == 1))), "rows with bits 0 or 1", values)
        return values.astype(np.uint8)

    def flips(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw which bits are reported wrongly; bool of shape (n, rows)."""
        return rng.random(shape) >= self.keep

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> Bits:
        """Draw `n` outputs; uint8 of shape (n, rows)."""
        require_draws(n)
        bits = self.bits(data)
        return bits ^ self.flips((n, bits.size), rng).astype(np.uint8)


@dataclass(frozen=True)
class RandomizedResponse(_FlippedBits):
    """Each bit is kept with probability ``(1 + parameter) / 2``, independently; all are published.

    Parameters
    ----------
    parameter : float
        In (0, 1); the document calls it eps, but the level is ``2 artanh(parameter)``.
    column : hashable, optional
        Where the bits are; see `queries.column_values`. Neighbours replace one row.

    See Also
    --------
    from_epsilon : the same mechanism from its level.
    """

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`: independent rows with outcomes 0 and 1."""
        one = np.array([1.0 - self.keep, self.keep])
        laws = (FiniteLaw((0, 1), one[::-1]), FiniteLaw((0, 1), one))
        return ProductLaw(tuple(laws[bit] for bit in self.bits(data).tolist()))


def from_epsilon(epsilon: float, column: Hashable | None = None) -> RandomizedResponse:
    """Return randomised response of level `epsilon` > 0: truth with probability e^eps / (1 + e^eps).

    Warner's example, truth with probability 2/3, has ``epsilon = ln 2``.
    """
    require(0 < epsilon < math.inf, "a finite epsilon > 0", epsilon)
    return RandomizedResponse(math.tanh(epsilon / 2.0), column)


def estimated_mean(outputs: Bits, parameter: float) -> NDArray[np.float64]:
    """Return the unbiased estimate of the mean bit for each draw.

    Parameters
    ----------
    outputs : ndarray of shape (n, rows)
        Published bits.
    parameter : float
        The mechanism's parameter.

    Returns
    -------
    ndarray of shape (n,)
        ``(mean - (1 - parameter) / 2) / parameter``; standard deviation
        ``sqrt(1 - parameter^2) / (2 parameter sqrt(rows))``.
    """
    return np.asarray((outputs.mean(axis=1) - (1.0 - parameter) / 2.0) / parameter, dtype=np.float64)


def undivided_mean(outputs: Bits, parameter: float) -> NDArray[np.float64]:
    """Return what `estimated_mean` would without its division: a mutant of the estimator, wrong and not less private.

    Parameters and result as for `estimated_mean`. Its expectation is the parameter times the mean.
    """
    return np.asarray(outputs.mean(axis=1) - (1.0 - parameter) / 2.0, dtype=np.float64)


@dataclass(frozen=True)
class EstimateError:
    """Absolute error of an estimate of the mean bit, as the accuracy claims want it: from outputs to errors.

    Parameters
    ----------
    parameter : float
        The mechanism's parameter.
    truth : float
        The mean of the bits.
    estimate : callable, default `estimated_mean`
        From outputs of shape (n, rows) and the parameter to estimates of shape (n,).
    squared : bool, default False
        The square of the error instead.
    """

    parameter: float
    truth: float
    estimate: Callable[[Bits, float], NDArray[np.float64]] = estimated_mean
    squared: bool = False

    def __call__(self, outputs: Bits) -> NDArray[np.float64]:
        """Return the errors of n outputs, float64 of shape (n,)."""
        error = np.abs(self.estimate(outputs, self.parameter) - self.truth)
        return np.asarray(error**2 if self.squared else error, dtype=np.float64)


@dataclass(frozen=True)
class OtherRows:
    """What is published about all rows but one: it must not depend on that row at all.

    Parameters
    ----------
    mechanism : RandomizedResponse
        What publishes.
    row : int
        Index of the row that is left out.
    """

    mechanism: RandomizedResponse
    row: int

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> Bits:
        """Draw `n` outputs; uint8 of shape (n, rows - 1)."""
        return np.delete(self.mechanism(data, n, rng), self.row, axis=1)

    def law(self, data: Dataset) -> ProductLaw:
        """Exact output distribution on `data`."""
        parts = self.mechanism.law(data).parts
        return ProductLaw(parts[: self.row] + parts[self.row + 1 :])


@dataclass(frozen=True)
class OneCoinForAllRows(_FlippedBits):
    """One coin for all rows: the differences between rows are published exactly."""

    def flips(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw one coin a release."""
        return np.broadcast_to(super().flips((shape[0], 1), rng), shape)


@dataclass(frozen=True)
class KeepProbabilityEps(RandomizedResponse):
    """A bit is kept with probability `parameter` instead of ``(1 + parameter) / 2``."""

    @property
    def keep(self) -> float:
        """The parameter itself."""
        return self.parameter


@dataclass(frozen=True)
class ParameterClaimedAsEps(RandomizedResponse):
    """The right mechanism with a wrong claim: level `parameter`."""

    @property
    def epsilon(self) -> float:
        """Claimed level: the parameter itself, less than half the truth."""
        return self.parameter


@dataclass(frozen=True)
class HalfTruthHalfCoin(RandomizedResponse):
    """Truth on heads, else a fair second coin: truth with probability 3/4 whatever was claimed."""

    @property
    def keep(self) -> float:
        """Truth with probability 3/4."""
        return 0.75


@dataclass(frozen=True)
class MemoisedSeed(_FlippedBits):
    """Each user's coin comes from a fixed seed, so that every release repeats it."""

    def flips(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw from the users' own generator."""
        del rng
        own = np.random.default_rng(0)  # arbitrary: any fixed seed makes the release repeatable
        return np.broadcast_to(super().flips((1, shape[1]), own), shape)


def _keep_with_parameter(base: RandomizedResponse) -> float:
    return abs(math.log(base.parameter / (1.0 - base.parameter)))


def _right_level(base: RandomizedResponse) -> float:
    return 2.0 * math.atanh(base.parameter)


def _fair_second_coin(base: RandomizedResponse) -> float:  # noqa: ARG001 -- as Mutant wants it
    return math.log(3.0)


MUTANTS: dict[str, Mutant[RandomizedResponse]] = tabulate_mutants(
    Mutant(
        "shared_coin",
        Twin(OneCoinForAllRows),
        unbounded,
        "violation",
        "two rows or more: x and x' have disjoint outputs",
    ),
    Mutant(
        "keep_probability_eps",
        Twin(KeepProbabilityEps),
        _keep_with_parameter,
        "violation",
        "|ln(par / (1 - par))|: above the claim only for par < 1/3; says nothing at par = 1/2",
    ),
    Mutant(
        "parameter_claimed_as_eps",
        Twin(ParameterClaimedAsEps),
        _right_level,
        "violation",
        "the reference itself, claimed at level `parameter` (the mutant's own `epsilon`)",
    ),
    Mutant(
        "half_truth_half_coin",
        Twin(HalfTruthHalfCoin),
        _fair_second_coin,
        "violation",
        "truth probability 3/4, true ln 3; a violation of claims below it, such as Warner's ln 2",
    ),
    Mutant("memoised_seed", Twin(MemoisedSeed), unbounded, "violation", "the output never varies"),
)
