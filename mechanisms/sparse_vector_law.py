"""Exact laws of sparse vector: its finite transcripts, and the privacy loss of V3, which releases answers.

Source: catalogue 004, sections 0.3 (epoch integral) and 0.4 (transcript law by dynamic programming).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from auditor.exact import FiniteLaw
from auditor.interactive import SKIP, pool_indices
from mechanisms.common import Dataset, FloatArray, IntArray, require
from mechanisms.noise import gauss_legendre

if TYPE_CHECKING:
    from mechanisms.sparse_vector import SparseVector

# Beyond 40 threshold scales from every kink the integrand holds less than e^-40 of its integral.
_REACH = 40.0
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
        A row with Laplace noise and finitely many answers.
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
        kinds = (spec.threshold_noise, spec.query_noise)
        require(kinds == ("laplace", "laplace"), "Laplace noise (others have no exact law here)", kinds)
        _require_near(mechanism, offsets)
        self._mechanism, self._offsets = mechanism, offsets
        self._x, self._fresh = _threshold_nodes(mechanism, offsets, rounds)
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
        return density * _laplace_cdf(gap / scale)[of], density * _laplace_cdf(-gap / scale)[of]

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


def _threshold_nodes(mechanism: SparseVector, offsets: FloatArray, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Nodes of the threshold noise, and their weights times its density."""
    scale = mechanism.threshold_scale
    if scale == 0.0:
        return np.zeros(1), np.ones(1)
    kinks = np.concatenate([[0.0], offsets])
    breaks = np.concatenate([[kinks.min() - _REACH * scale], kinks, [kinks.max() + _REACH * scale]])
    # An indicator, as there is without query noise, is constant between the kinks.
    growth = 1.0 / scale + (rounds / mechanism.query_scale if mechanism.query_scale else 0.0)
    x, w = gauss_legendre(breaks, 8.0 / growth)
    return x, w * np.exp(-np.abs(x) / scale) / (2.0 * scale)


def _require_near(mechanism: SparseVector, offsets: FloatArray) -> None:
    scales = [scale for scale in (mechanism.threshold_scale, mechanism.query_scale) if scale]
    gap = float(np.max(np.abs(offsets))) / min(scales, default=math.inf)
    require(gap <= _MAX_GAP, f"answers within {_MAX_GAP} noise scales of the threshold", gap)


def _laplace_cdf(z: FloatArray) -> FloatArray:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.asarray(np.where(z < 0, tail, 1.0 - tail), dtype=np.float64)


def noiseless_law(offsets: FloatArray, scale: float) -> FiniteLaw:
    """V5: the threshold noise falls between two sorted answers, which fixes the transcript."""
    ends = np.concatenate([[-np.inf], np.unique(offsets), [np.inf]]) / scale
    left, right = ends[:-1], ends[1:]
    # Difference of two CDFs on the side where they are small; a piece across 0 adds both.
    upper = np.where(left >= 0, _laplace_cdf(-left) - _laplace_cdf(-right), 0.0)
    lower = np.where(right <= 0, _laplace_cdf(right) - _laplace_cdf(left), 0.0)
    across = np.where((left < 0) & (right > 0), 1.0 - _laplace_cdf(left) - _laplace_cdf(-right), 0.0)
    patterns = (offsets[None, :] / scale >= right[:, None]).astype(np.int64)
    return FiniteLaw(tuple(tuple(row) for row in patterns.tolist()), upper + lower + across)


# ----------------------------------------------------------------------- V3: released answers


@dataclass(frozen=True)
class WorstRelease:
    """Where the privacy loss of V3 is largest.

    Parameters
    ----------
    loss : float
        ``max |ln P - ln Q|``, the exact level of the pair.
    index : int
        Which query's answer is released; m if none is.
    value : float
        The released value (NaN if none is).
    """

    loss: float
    index: int
    value: float


def v3_log_ratio(mechanism: SparseVector, data: Dataset, other: Dataset, index: int, value: float) -> float:
    """Exact privacy loss of one output of V3 with cutoff 1.

    Parameters
    ----------
    mechanism : SparseVector
        Variant V3, cutoff 1.
    data, other : datasets
        The pair; the loss is ``ln P - ln Q`` with P on `data`.
    index : int
        Query whose noisy answer is released; m for "all below".
    value : float
        The released answer; ignored for "all below".

    Returns
    -------
    float
        With ``I(v)`` the integral of the threshold's density times ``prod over i < index of
        P[answer i below]`` up to ``v - T``: ``ln f(v - q) + ln I(v)`` minus the same on `other`.
    """
    first, second = mechanism.answers(data), mechanism.answers(other)
    _require_v3(mechanism, first, second)
    require(0 <= index <= first.size, f"an index from 0 to {first.size}", index)
    return _v3_loss(mechanism, first, second, index, value)


def _v3_loss(mechanism: SparseVector, first: FloatArray, second: FloatArray, index: int, value: float) -> float:
    """See `v3_log_ratio`; on the two datasets' answers."""
    if index == first.size:
        value = math.inf
        moved = 0.0
    else:
        moved = (abs(value - second[index]) - abs(value - first[index])) / mechanism.query_scale
    kinks = np.concatenate([first[:index], second[:index]]) - mechanism.threshold
    x, w = _nodes_up_to(mechanism, kinks, value - mechanism.threshold)
    logs = [_log_integral(mechanism, answers[:index], x, w) for answers in (first, second)]
    return float(moved + logs[0] - logs[1])


def v3_supremum(mechanism: SparseVector, data: Dataset, other: Dataset) -> WorstRelease:
    """Exact level of a pair for V3 with cutoff 1, and the output that shows it.

    For each index the loss is constant for values below all answers, constant up to e^-40 far
    above them, and smooth between the kinks: a grid of 1/8 of a noise scale with all kinks, then a
    bounded minimisation around the best point. Accurate to about 1e-9.
    """
    first, second = mechanism.answers(data), mechanism.answers(other)
    _require_v3(mechanism, first, second)
    kinks = np.unique(np.concatenate([first, second, [mechanism.threshold]]))
    scale = max(mechanism.threshold_scale, mechanism.query_scale)
    inner = np.arange(kinks[0] - scale, kinks[-1] + 20.0 * scale, mechanism.query_scale / 8.0)
    grid = np.unique(np.concatenate([inner, kinks]))
    last = first.size
    none = abs(_v3_loss(mechanism, first, second, last, math.inf))
    best = WorstRelease(none, last, math.nan)
    for index in range(last):

        def loss(value: float, index: int = index) -> float:
            return abs(_v3_loss(mechanism, first, second, index, value))

        values = [loss(float(v)) for v in grid]
        k = int(np.argmax(values))
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)]
        found = optimize.minimize_scalar(
            lambda v, loss=loss: -loss(v), bounds=(low, high), method="bounded", options={"xatol": 1e-10}
        )
        for value in (float(grid[k]), float(found.x)):
            if loss(value) > best.loss:
                best = WorstRelease(loss(value), index, value)
    return best


def _require_v3(mechanism: SparseVector, *answers: FloatArray) -> None:
    require(mechanism.variant == "V3", "variant V3", mechanism.variant)
    for stream in answers:
        _require_near(mechanism, stream - mechanism.threshold)
    require(mechanism.cutoff == 1, "cutoff 1 (no exact formula here beyond it)", mechanism.cutoff)


def _nodes_up_to(mechanism: SparseVector, kinks: FloatArray, end: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and plain weights from far below all kinks up to `end`."""
    scale = mechanism.threshold_scale
    kinks = np.concatenate([kinks, [0.0]])
    end = min(end, float(kinks.max()) + _REACH * scale)
    low = min(float(kinks.min()), end) - _REACH * scale
    breaks = np.concatenate([[low, end], kinks[kinks < end]])
    growth = 1.0 / scale + kinks.size / mechanism.query_scale
    return gauss_legendre(breaks, 8.0 / growth)


def _log_integral(mechanism: SparseVector, answers: FloatArray, x: FloatArray, w: FloatArray) -> float:
    """Log of the integral of the threshold's density times P[all answers below]."""
    z = (x[:, None] + mechanism.threshold - answers) / mechanism.query_scale
    away = np.abs(z)
    log_below = np.where(z < 0, -away - math.log(2.0), np.log1p(-0.5 * np.exp(-away))).sum(axis=1)
    exponent = log_below - np.abs(x) / mechanism.threshold_scale
    peak = float(exponent.max())
    return peak + math.log(float(w @ np.exp(exponent - peak)))
