"""Exact distributions of sparse vector: its finite transcripts. Rows that release answers: `released_answers`.

Source: catalogue 004, sections 0.3 (epoch integral) and 0.4 (transcript distribution by dynamic programming).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from auditor.privacy.exact import FiniteLaw
from auditor.targets.interactive import SKIP, pool_indices
from mechanisms.base.mechanism import FloatArray, IntArray, require
from mechanisms.base.noise import gauss_legendre

if TYPE_CHECKING:
    from mechanisms.selection.sparse_vector import SparseVector

NoiseKind: TypeAlias = Literal["laplace", "gaussian", "exponential", "negative_exponential"]

# Beyond 40 threshold scales from every kink the integrand holds less than e^-40 of its integral.
REACH = 40.0
# exp(-700) is still a normal double: answers further from the threshold than this many noise scales
# would make possible transcripts look impossible (and need millions of nodes).
_MAX_GAP = 700.0
# Transcripts times nodes of one step: 128 MB of float64, enough for 12 queries without cutoff.
_MAX_WORK = 2**24


class SparseVectorBranches:
    """All transcripts that are possible, with the weight of the threshold noise in each (see `Branches`).

    Gauss-Legendre over the threshold noise, split at its kinks; relative errors below 1e-13.

    Parameters
    ----------
    mechanism : SparseVector
        A row with finitely many answers, and query noise that is drawn for every query.
    offsets : ndarray of shape (m,)
        Answers minus threshold.
    rounds : int
        Most queries that will be asked.

    Raises
    ------
    ValueError
        For other rows, for answers too far from the threshold, and, later, for more transcripts than fit.
    """

    silence = -1

    def __init__(self, mechanism: SparseVector, offsets: FloatArray, rounds: int) -> None:
        spec = mechanism.spec
        require(spec.releases is None, "a variant with finitely many outputs", mechanism.variant)
        require(spec.query_draws == "every_query", "query noise drawn for every query", spec.query_draws)
        require_near(mechanism, offsets)
        self._mechanism, self._offsets = mechanism, offsets
        self._x, self._fresh = threshold_nodes(mechanism, offsets, rounds)
        # Weight of the threshold noise jointly with the answers so far, one row for each run that goes on.
        self._density = self._fresh[None, :]
        self._counted = np.zeros(1, dtype=np.int64)
        # Row of each branch, -1 where the run has halted; and then its probability.
        self._row = np.zeros(1, dtype=np.int64)
        self._halted = np.zeros(1)

    def ask(self, queries: IntArray) -> tuple[IntArray, NDArray[np.int8]]:
        """See `Branches.ask`."""
        spec = self._mechanism.spec
        queries = pool_indices(queries, self._row.size, self._offsets.size)
        asks = (self._row >= 0) & (queries != SKIP)
        waiting, asking = np.flatnonzero(~asks), np.flatnonzero(asks)
        size = (int((self._row[waiting] >= 0).sum()) + 2 * asking.size) * self._x.size
        require(size <= _MAX_WORK, f"fewer transcripts: at most {_MAX_WORK} numbers", size)
        below, above = self._split(queries[asking], self._density[self._row[asking]])
        if spec.redraws == "always":
            below = below.sum(axis=1, keepdims=True) * self._fresh
        if spec.redraws != "never":
            above = above.sum(axis=1, keepdims=True) * self._fresh

        # In the order: those that wait, those below, those above.
        parents = np.concatenate([waiting, asking, asking])
        answers = np.repeat(np.array([self.silence, 0, 1], dtype=np.int8), [waiting.size, asking.size, asking.size])
        going = self._row[waiting] >= 0
        density = np.concatenate([self._density[self._row[waiting][going]], below, above])
        runs = np.concatenate([np.flatnonzero(going), waiting.size + np.arange(2 * asking.size)])
        counted = self._counted[parents] + (answers == (1 if spec.counts == "above" else 0))
        halted = self._halted[parents]
        stop = np.zeros(runs.size, dtype=np.bool_)
        if spec.stops:
            stop = counted[runs] >= self._mechanism.cutoff
            halted[runs[stop]] = density[stop].sum(axis=1)
        self._row = np.full(parents.size, -1, dtype=np.int64)
        self._row[runs[~stop]] = np.arange(int((~stop).sum()))
        self._density, self._counted, self._halted = density[~stop], counted, halted
        return self._only_possible(parents, answers)

    def mass(self) -> FloatArray:
        """See `Branches.mass`; ValueError if a probability underflows."""
        mass = self._mass()
        # Many moderate gaps can still multiply to an underflow.
        require(bool(np.all(mass > 0)), "answers closer to the threshold: a probability underflows", self._offsets)
        return mass

    def _mass(self) -> FloatArray:
        going = self._row >= 0
        mass = self._halted.copy()
        mass[going] = self._density[self._row[going]].sum(axis=1)
        return mass

    def _split(self, queries: IntArray, density: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights with a noisy answer below the threshold's noise, and not below."""
        asked, of = np.unique(queries, return_inverse=True)
        gap = self._x - self._offsets[asked][:, None]
        scale = self._mechanism.query_scale
        if scale == 0.0:
            return density * (gap > 0)[of], density * (gap <= 0)[of]
        below, above = below_and_above(self._mechanism.spec.query_noise, gap / scale)
        return density * below[of], density * above[of]

    def _only_possible(self, parents: IntArray, answers: NDArray[np.int8]) -> tuple[IntArray, NDArray[np.int8]]:
        """Drop what is impossible without query noise. With it a weight of 0 is an underflow, and `mass` says so."""
        if self._mechanism.query_scale:
            return parents, answers
        kept = self._mass() > 0
        going = kept & (self._row >= 0)
        self._density = self._density[self._row[going]]
        self._row[going] = np.arange(int(going.sum()))
        self._row, self._counted, self._halted = self._row[kept], self._counted[kept], self._halted[kept]
        return parents[kept], answers[kept]


def threshold_nodes(mechanism: SparseVector, offsets: FloatArray, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Nodes of the threshold noise, and their weights times its density, for answers less the threshold of shape (m,).

    So many rounds that the integrand, a product of that density and of a probability for each of them, is integrated
    with relative errors below 1e-13.
    """
    scale = mechanism.threshold_scale
    if scale == 0.0:
        return np.zeros(1), np.ones(1)
    kinks = np.concatenate([[0.0], offsets])
    breaks = np.concatenate([[kinks.min() - REACH * scale], kinks, [kinks.max() + REACH * scale]])
    # An indicator, as there is without query noise, is constant between the kinks.
    growth = 1.0 / scale + (rounds / mechanism.query_scale if mechanism.query_scale else 0.0)
    x, w = gauss_legendre(breaks, 8.0 / growth)
    return x, w * _density(mechanism.spec.threshold_noise, x / scale) / scale


def _density(kind: NoiseKind, z: FloatArray) -> FloatArray:
    """Density of noise of scale 1; 0 at the end of a one-sided one, which is a kink and no node."""
    if kind == "gaussian":
        return np.asarray(stats.norm.pdf(z), dtype=np.float64)
    both = np.exp(-np.abs(z))
    if kind == "laplace":
        return 0.5 * both
    return np.where(z > 0, both, 0.0) if kind == "exponential" else np.where(z < 0, both, 0.0)


def below_and_above(kind: NoiseKind, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities that noise of scale 1 is below z, and not below; each without loss of digits."""
    if kind == "laplace":
        return laplace_cdf(z), laplace_cdf(-z)
    if kind == "gaussian":
        return np.asarray(special.ndtr(z)), np.asarray(special.ndtr(-z))
    if kind == "exponential":
        return -np.expm1(-np.maximum(z, 0.0)), np.exp(-np.maximum(z, 0.0))
    return np.exp(np.minimum(z, 0.0)), -np.expm1(np.minimum(z, 0.0))


def require_near(mechanism: SparseVector, offsets: FloatArray) -> None:
    """Refuse answers so far from the threshold that what is possible underflows."""
    scales = [scale for scale in (mechanism.threshold_scale, mechanism.query_scale) if scale]
    gap = float(np.max(np.abs(offsets))) / min(scales, default=math.inf)
    require(gap <= _MAX_GAP, f"answers within {_MAX_GAP} noise scales of the threshold", gap)


def laplace_cdf(z: FloatArray) -> FloatArray:
    """Distribution function of Laplace noise of scale 1."""
    tail = 0.5 * np.exp(-np.abs(z))
    return np.asarray(np.where(z < 0, tail, 1.0 - tail), dtype=np.float64)


def noiseless_law(offsets: FloatArray, scale: float) -> FiniteLaw:
    """V5: the threshold noise falls between two sorted answers, which fixes the transcript."""
    ends = np.concatenate([[-np.inf], np.unique(offsets), [np.inf]]) / scale
    left, right = ends[:-1], ends[1:]
    # Difference of two CDFs on the side where they are small; a piece across 0 adds both.
    upper = np.where(left >= 0, laplace_cdf(-left) - laplace_cdf(-right), 0.0)
    lower = np.where(right <= 0, laplace_cdf(right) - laplace_cdf(left), 0.0)
    across = np.where((left < 0) & (right > 0), 1.0 - laplace_cdf(left) - laplace_cdf(-right), 0.0)
    patterns = (offsets[None, :] / scale >= right[:, None]).astype(np.int64)
    return FiniteLaw(tuple(tuple(row) for row in patterns.tolist()), upper + lower + across)


def shared_draw_law(mechanism: SparseVector, offsets: FloatArray) -> FiniteLaw:
    """One draw of query noise for all queries, up to the first "above".

    Query i is above if its answer is at least U, the threshold's noise less the queries': the transcript is that of a
    single noisy threshold without query noise. U has tails ``(a^2 e^(-u/a) - b^2 e^(-u/b)) / (2 (a^2 - b^2))`` for
    scales a and b (catalogue 004, section 0.2).

    Parameters
    ----------
    mechanism : SparseVector
        A row that stops at the first "above", with Laplace noise of two different scales.
    offsets : ndarray of shape (m,)
        Answers minus threshold.

    Raises
    ------
    ValueError
        For other rows.
    """
    spec, (a, b) = mechanism.spec, (mechanism.threshold_scale, mechanism.query_scale)
    require(spec.stops and spec.counts == "above" and mechanism.cutoff == 1, "a run that ends at the first above", spec)
    require(spec.releases is None and a > 0 and b > 0 and a != b, "two noises of different scales", (a, b))
    kinds = (spec.threshold_noise, spec.query_noise)
    require(kinds == ("laplace", "laplace"), "Laplace noise", kinds)

    def beyond(u: float) -> float:
        return (a * a * math.exp(-u / a) - b * b * math.exp(-u / b)) / (2.0 * (a * a - b * b))

    def between(low: float, high: float) -> float:
        """P[low < U <= high], as a difference of tails on the side where they are small."""
        if low >= 0:
            return beyond(low) - beyond(high)
        return beyond(-high) - beyond(-low) if high <= 0 else 1.0 - beyond(-low) - beyond(high)

    outcomes, masses, highest = [], [], -math.inf
    for i, offset in enumerate(offsets.tolist()):
        if offset > highest:  # otherwise whoever is above here was above before
            outcomes.append((0,) * i + (1,) + (-1,) * (offsets.size - i - 1))
            masses.append(between(highest, offset))
            highest = offset
    outcomes.append((0,) * offsets.size)
    masses.append(between(highest, math.inf))
    return FiniteLaw(tuple(outcomes), np.array(masses))
