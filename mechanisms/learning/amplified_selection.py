"""Private selection of one of several candidates by their numbers of errors on a test set.

Source: document 002, section 4, step 6 of algorithm A*, and footnote 4; catalogue 002, parity_amplified_Astar and
parity_amplified_expmech.

An error count is an integer, and a test row moves it by at most 1, so integer noise on the counts is exact: nothing is
rounded. `NoisyErrorCounts.fineness` cuts an error into more lattice steps; as it grows the distribution of the choice
tends to that of the document's Laplace noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from auditor.privacy.exact import TwoSidedGeometricLaw
from mechanisms.base.mechanism import FloatArray, IntArray, require, require_positive
from mechanisms.base.noise import base_for, two_sided_geometric

# What is left out of sums, e^-45 = 3e-20, is below the rounding of a sum that is near one.
_REACH = 45.0
# Step of the trapezoidal rule for the exponential mechanism. The integrand is analytic for |Im| < pi/2, so that the
# error is about e^(-pi^2 / step) = e^-79.
_STEP = 0.125
# Weights are at least e^-600, a normal number: below that a possible choice would be computed as impossible.
_MAX_LOG_GAP = 600.0


class CandidateSelection(Protocol):
    """Chooses one of k candidates, and knows the distribution of its choice."""

    def choose(self, errors: IntArray, rng: np.random.Generator, /) -> IntArray:
        """Return the chosen candidate of each run; `errors` of shape (n, k), result of shape (n,)."""
        ...

    def winners(self, masses: FloatArray, errors: IntArray, /) -> FloatArray:
        """Probability that candidate j has so many errors and is chosen.

        Parameters
        ----------
        masses : ndarray of shape (k, m)
            Probability that candidate j makes ``errors[i]`` errors, independently of the other candidates. What a row
            lacks to one is the probability that there is no such candidate.
        errors : ndarray of int64, shape (m,)
            Distinct numbers of errors.

        Returns
        -------
        ndarray of shape (k, m)
            What it lacks to one is the probability that there is no candidate at all.
        """
        ...


@dataclass(frozen=True)
class NoisyErrorCounts:
    """Integer noise on every error count, and the candidate with the least noisy count; the first of equals.

    Parameters
    ----------
    level : float
        What the release of one noisy count costs when it moves by one error, ``epsilon / k`` in A*.
    fineness : int, default 1
        Lattice steps an error: noise has base ``exp(level / fineness)`` on the lattice.

    Notes
    -----
    In the document's units the noise is Laplace noise of scale ``1 / (s level)`` on error rates, on a lattice. The
    choice alone costs at most ``2 level``: with all other noisy counts fixed, j is chosen if its noise is at most some
    number of lattice steps, which neighbours move by at most two errors. Ties, which continuous noise does not have,
    change nothing about that, and are broken without looking at the data.
    """

    level: float
    fineness: int = 1

    def __post_init__(self) -> None:
        require_positive("level", self.level)
        require(isinstance(self.fineness, int) and self.fineness >= 1, "a fineness >= 1", self.fineness)

    @property
    def base(self) -> float:
        """Base of the integer noise."""
        return base_for(self.level, self.fineness)

    @property
    def reach(self) -> int:
        """Lattice steps beyond which less than e^-45 = 3e-20 of the noise's mass is left, where sums end."""
        return math.ceil(_REACH / math.log1p(self.base - 1.0))

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw the noise of n times k counts, in lattice steps."""
        return two_sided_geometric(self.base, shape, rng)

    def noisy(self, errors: IntArray, rng: np.random.Generator) -> IntArray:
        """Return noisy counts in lattice steps; same shape as `errors`, (n, k)."""
        return errors * self.fineness + self.noise(errors.shape, rng)

    def choose(self, errors: IntArray, rng: np.random.Generator) -> IntArray:
        """See `CandidateSelection.choose`."""
        return np.asarray(np.argmin(self.noisy(errors, rng), axis=1), dtype=np.int64)

    def estimate(self, errors: int) -> TwoSidedGeometricLaw:
        """Distribution of the noisy count of a candidate with so many errors, in lattice steps."""
        return TwoSidedGeometricLaw(int(errors) * self.fineness, self.base)

    def winners(self, masses: FloatArray, errors: IntArray) -> FloatArray:
        """See `CandidateSelection.winners`: a sum over the lattice, with less than 1e-18 left out."""
        a, log_a = self.base, math.log1p(self.base - 1.0)
        centres = np.asarray(errors, dtype=np.int64) * self.fineness
        t = np.arange(centres.min() - self.reach, centres.max() + self.reach + 1) - centres[:, None]
        mass = np.exp(-log_a * np.abs(t)) * (a - 1.0) / (a + 1.0)
        # P[Z >= t] = a^(1-t) / (a+1) for t >= 1, and 1 - P[Z <= t-1] = 1 - a^t / (a+1) otherwise.
        tail = np.exp(-log_a * np.where(t >= 1, t - 1, -t)) / (a + 1.0)
        at_least = np.where(t >= 1, tail, 1.0 - tail)
        return _first_smallest(masses, mass, at_least, np.maximum(at_least - mass, 0.0))


@dataclass(frozen=True)
class NoiselessErrorCounts(NoisyErrorCounts):
    """No noise at all: the candidate with the fewest errors, the first of equals. A mutant."""

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Return zeros."""
        del rng
        return np.zeros(shape, dtype=np.int64)

    def shared(self, top: int) -> tuple[IntArray, FloatArray]:
        """Values of the one noise that all candidates have, and their probabilities.

        Values beyond ``-top .. top`` are counted as those: they take any count of 0 .. top out of that range.
        """
        del top
        return np.zeros(1, dtype=np.int64), np.ones(1)

    def winners(self, masses: FloatArray, errors: IntArray) -> FloatArray:
        """See `CandidateSelection.winners`."""
        rows, columns = np.asarray(errors)[:, None], np.asarray(errors)[None, :]
        at = [np.asarray(hit, dtype=np.float64) for hit in (rows == columns, rows >= columns, rows > columns)]
        return _first_smallest(masses, *at)


@dataclass(frozen=True)
class ErrorCountsWithSharedNoise(NoiselessErrorCounts):
    """One draw of noise for all candidates of a run: differences of counts are exact, as is the choice. A mutant."""

    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntArray:
        """Draw once a run."""
        drawn = two_sided_geometric(self.base, (*shape[:-1], 1), rng)
        return np.broadcast_to(drawn, shape)

    def shared(self, top: int) -> tuple[IntArray, FloatArray]:
        """See `NoiselessErrorCounts.shared`."""
        return np.arange(-top, top + 1), clamped(TwoSidedGeometricLaw(0, self.base), -top, top)


@dataclass(frozen=True)
class ExponentialSelection:
    """Candidate j with probability proportional to ``exp(-(epsilon / 2) errors_j)`` (footnote 4).

    Parameters
    ----------
    epsilon : float
        Level of the choice: an error count has replace-one sensitivity 1.

    Notes
    -----
    A candidate whose log weight is more than 600 below the best one's counts as 600 below, so that no choice underflows
    to impossible. That keeps the level: with m the fewest errors, ``max(exp(-(epsilon/2) errors_j),
    exp(-600 - (epsilon/2) m))`` moves by a factor of at most ``exp(epsilon/2)``, as both of its terms do.
    """

    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)

    def weights(self, errors: IntArray) -> FloatArray:
        """Return weights, 1 for the fewest errors along the last axis; same shape as `errors`."""
        counts = np.asarray(errors, dtype=np.float64)
        exponents = 0.5 * self.epsilon * (counts - counts.min(axis=-1, keepdims=True))
        return np.asarray(np.exp(-np.minimum(exponents, _MAX_LOG_GAP)), dtype=np.float64)

    def choose(self, errors: IntArray, rng: np.random.Generator) -> IntArray:
        """See `CandidateSelection.choose`: inverts cumulative weights, so probabilities are met within about 2^-53."""
        cumulative = np.cumsum(self.weights(errors), axis=1)
        at = rng.random((len(cumulative), 1)) * cumulative[:, -1:]
        return np.asarray((cumulative <= at).sum(axis=1), dtype=np.int64)

    def winners(self, masses: FloatArray, errors: IntArray) -> FloatArray:
        """See `CandidateSelection.winners`.

        Notes
        -----
        With W the sum of the other weights, ``w / (w + W)`` is the integral over t > 0 of ``w exp(-t w) exp(-t W)``,
        and the expectation over the other candidates, which are independent, is a product. With ``t = e^v`` the
        integrand falls off doubly exponentially on the right and as e^v on the left: the trapezoidal rule.
        """
        w = self.weights(errors)
        v = np.arange(-_REACH, math.log(_REACH) - math.log(float(w.min())) + _STEP, _STEP)
        t = np.exp(v)
        each = np.exp(-np.outer(w, t))
        mixed = masses @ each + _absence_probability(masses)
        before, after = _products(mixed, mixed)
        inside = _STEP * t * w[:, None] * each
        return np.asarray(masses * ((before * after) @ inside.T), dtype=np.float64)


def clamped(law: TwoSidedGeometricLaw, low: int, high: int) -> FloatArray:
    """Probabilities of low .. high for a number in lattice steps that is clamped to them.

    Parameters
    ----------
    law : TwoSidedGeometricLaw
        Its centre is one of low .. high.
    low, high : int
        Ends.

    Returns
    -------
    ndarray of shape (high - low + 1,)
    """
    require(low <= law.loc <= high and low < high, f"a centre in {low} .. {high}, more than one number", law.loc)
    k = np.arange(low, high + 1, dtype=np.float64) - law.loc
    mass = np.exp(-law.log_a * np.abs(k)) * (law.a - 1.0) / (law.a + 1.0)
    # P[Z <= -t] = P[Z >= t] = a^(1-t) / (a+1), also for t = 0.
    mass[[0, -1]] = np.exp(law.log_a * (1.0 - np.abs(k[[0, -1]]))) / (law.a + 1.0)
    return np.asarray(mass, dtype=np.float64)


def _first_smallest(masses: FloatArray, mass: FloatArray, at_least: FloatArray, above: FloatArray) -> FloatArray:
    """Probability that candidate j has score i and the smallest noisy score, all before it having a larger one.

    Parameters
    ----------
    masses : ndarray of shape (k, m)
        See `CandidateSelection.winners`.
    mass, at_least, above : ndarray of shape (m, points)
        Probabilities that the noisy score of score i is equal to, at least, above each point.
    """
    absent = _absence_probability(masses)
    before, after = _products(masses @ above + absent, masses @ at_least + absent)
    return np.asarray(masses * ((before * after) @ mass.T), dtype=np.float64)


def _absence_probability(masses: FloatArray) -> FloatArray:
    """Probability that there is no such candidate; shape (k, 1)."""
    return np.asarray(np.maximum(1.0 - masses.sum(axis=1, keepdims=True), 0.0), dtype=np.float64)


def _products(earlier: FloatArray, later: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Products over the rows before, and over the rows after each row; both of the shape of the arguments, (k, m)."""
    one = np.ones((1, earlier.shape[1]))
    before = np.cumprod(np.concatenate([one, earlier[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([one, later[:0:-1]]), axis=0)[::-1]
    return before, after
