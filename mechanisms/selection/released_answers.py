"""The privacy loss of sparse vector where it releases the noisy answers that it compares.

Source: catalogue 004, section 0.3 (epoch integral) and svt_mutants (V3, m9a and m9b).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from mechanisms.base.mechanism import Dataset, FloatArray, require
from mechanisms.base.noise import gauss_legendre
from mechanisms.selection.sparse_vector import SparseVector
from mechanisms.selection.sparse_vector_distribution import REACH, require_near


@dataclass(frozen=True)
class WorstRelease:
    """Where the privacy loss is largest.

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


def release_log_ratio(mechanism: SparseVector, data: Dataset, other: Dataset, index: int, value: float) -> float:
    """Exact privacy loss of one output of a row that releases what is above, with cutoff 1.

    Parameters
    ----------
    mechanism : SparseVector
        Variant V3, or another row that releases answers above the threshold; cutoff 1.
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
    _require_release(mechanism, first, second)
    require(0 <= index <= first.size, f"an index from 0 to {first.size}", index)
    return _loss(mechanism, first, second, index, value)


def _loss(mechanism: SparseVector, first: FloatArray, second: FloatArray, index: int, value: float) -> float:
    """See `release_log_ratio`; on the two datasets' answers."""
    if index == first.size:
        value = math.inf
        moved = 0.0
    else:
        moved = (abs(value - second[index]) - abs(value - first[index])) / mechanism.query_scale
    kinks = np.concatenate([first[:index], second[:index]]) - mechanism.threshold
    x, w = _nodes_up_to(mechanism, kinks, value - mechanism.threshold)
    logs = [_log_integral(mechanism, answers[:index], x, w) for answers in (first, second)]
    return float(moved + logs[0] - logs[1])


def worst_release(mechanism: SparseVector, data: Dataset, other: Dataset) -> WorstRelease:
    """Exact level of a pair where what is above is released, with cutoff 1, and the output that shows it.

    For each index the loss is constant for values below all answers, constant up to e^-40 far
    above them, and smooth between the kinks: a grid of 1/8 of a noise scale with all kinks, then a
    bounded minimisation around the best point. Accurate to about 1e-9.
    """
    first, second = mechanism.answers(data), mechanism.answers(other)
    _require_release(mechanism, first, second)
    kinks = np.unique(np.concatenate([first, second, [mechanism.threshold]]))
    scale = max(mechanism.threshold_scale, mechanism.query_scale)
    inner = np.arange(kinks[0] - scale, kinks[-1] + 20.0 * scale, mechanism.query_scale / 8.0)
    grid = np.unique(np.concatenate([inner, kinks]))
    last = first.size
    none = abs(_loss(mechanism, first, second, last, math.inf))
    best = WorstRelease(none, last, math.nan)
    for index in range(last):

        def loss(value: float, index: int = index) -> float:
            return abs(_loss(mechanism, first, second, index, value))

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


def _require_release(mechanism: SparseVector, *answers: FloatArray) -> None:
    spec = mechanism.spec
    require(spec.releases == "above", "a variant that releases what is above", mechanism.variant)
    noises = (spec.threshold_noise, spec.query_noise, spec.query_draws)
    require(noises == ("laplace", "laplace", "every_query"), "Laplace noise for every query", noises)
    for stream in answers:
        require_near(mechanism, stream - mechanism.threshold)
    require(mechanism.cutoff == 1, "cutoff 1 (no exact formula here beyond it)", mechanism.cutoff)


def _nodes_up_to(mechanism: SparseVector, kinks: FloatArray, end: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and plain weights from far below all kinks up to `end`."""
    scale = mechanism.threshold_scale
    kinks = np.concatenate([kinks, [0.0]])
    end = min(end, float(kinks.max()) + REACH * scale)
    low = min(float(kinks.min()), end) - REACH * scale
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
