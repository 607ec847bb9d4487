"""Features learned from draws of two datasets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import MAX_COORDINATES, Additive, Distance, Feature, Lattice, Linear, Part, Rank
from auditor.targets.outputs import Batch, hash_outputs, read_column, read_matrix, show_output

Array = NDArray[np.float64]

#: Bits of a double: outputs whose bits all lie within so many are integers in units of the last of them.
_SPAN = 53


def _rows(batch: Batch) -> Array:
    return read_matrix(batch, np.shape(batch)[1])


def learn_distance(x: Batch, y: Batch) -> Distance | None:
    """Distance from the pooled median, for outputs of shape (n,).

    Parameters
    ----------
    x, y : ndarray of shape (n,), or list
        Draws of each side.

    Returns
    -------
    Distance or None
        None if no draw is finite, or the median is not: half the sum of two of the largest floats is infinite.
    """
    pooled = np.concatenate([read_column(x), read_column(y)])
    pooled = pooled[np.isfinite(pooled)]
    with np.errstate(over="ignore"):
        centre = float(np.median(pooled)) if len(pooled) else math.inf
    return Distance(centre) if math.isfinite(centre) else None


def learn_lattices(x: Batch, y: Batch) -> list[Lattice]:
    """Find a lattice on which one dataset's draws lie.

    The other dataset's do not all lie on it; outputs have shape (n,).

    Parameters
    ----------
    x, y : ndarray of shape (n,), or list
        Draws of each side.

    Returns
    -------
    list of Lattice
        At most one a side; empty if a draw is not finite, or draws have the full precision of floats.
    """
    a, b = read_column(x), read_column(y)
    pooled = np.concatenate([a, b])
    if not np.isfinite(pooled).all():
        return []
    _, exponent = np.frexp(pooled[pooled != 0])
    if not len(exponent) or exponent.max() - exponent.min() > _SPAN:  # full-precision floats: see `LatticeExponent`
        return []
    unit = 2.0 ** (int(exponent.max()) - _SPAN)
    if not unit:  # below the least of floats
        return []
    whole_a, whole_b = (a / unit).astype(np.int64), (b / unit).astype(np.int64)
    if (whole_a * unit != a).any() or (whole_b * unit != b).any():
        return []
    common = np.gcd.reduce(np.concatenate([whole_a, whole_b]) - whole_a[0])
    found = []
    for whole in (whole_a, whole_b):
        step = int(np.gcd.reduce(whole - whole[0]))
        if step > common:  # 0 where all draws are one value, which is a symbol
            found.append(Lattice(step * unit, int(whole[0]) % step * unit))
    return found


def learn_linear(x: Batch, y: Batch) -> Linear | None:
    """Fit Fisher's linear discriminant between two datasets' draws.

    Outputs have shape (n, d), d > 1.

    Parameters
    ----------
    x, y : ndarray of shape (n, d), or list
        Draws of each side.

    Returns
    -------
    Linear or None
        None if nothing varies, the means are equal, numbers overflow, or a side has one draw.
    """
    if min(len(x), len(y)) < 2:
        return None
    a, b = _rows(x), _rows(y)
    a, b = np.where(np.isfinite(a), a, 0.0), np.where(np.isfinite(b), b, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        gap = a.mean(axis=0) - b.mean(axis=0)
        scatter = np.atleast_2d(np.cov(a, rowvar=False) + np.cov(b, rowvar=False))
        size = float(np.trace(scatter)) / len(gap)
    if not 0 < size < np.inf or not np.isfinite(scatter).all():
        return None
    # A tenth of the average variance on the diagonal: arbitrary, keeps few draws from deciding the direction.
    weights = np.linalg.solve(scatter + 0.1 * size * np.eye(len(gap)), gap)
    top = np.abs(weights).max()
    return Linear(tuple(np.round(weights / top, 3).tolist())) if top > 0 else None


def learn_additive(x: Batch, y: Batch, cells: int) -> Additive | None:
    """Fit log-likelihood ratios of each coordinate's cells.

    Outputs have shape (n, d), d > 1.

    Parameters
    ----------
    x, y : ndarray of shape (n, d), or list
        Draws of each side.
    cells : int
        Cells of a coordinate at most, between quantiles of both sides together.

    Returns
    -------
    Additive or None
        None unless at least two coordinates differ clearly.
    """
    a, b = _rows(x)[:, :MAX_COORDINATES], _rows(y)[:, :MAX_COORDINATES]
    edges, scores, shares = [], [], np.arange(1, cells) / cells
    for j in range(a.shape[1]):
        first, second = np.sort(a[:, j]), np.sort(b[:, j])  # NaN go last
        pooled = np.concatenate([first, second])
        finite = pooled[np.isfinite(pooled)]
        finite.sort()
        inner = np.unique(finite[np.floor((len(finite) - 1) * shares).astype(np.intp)]) if len(finite) else finite
        count_x, count_y = (_count_cells(side, inner) for side in (first, second))
        # Cells in which the two counts are within two standard errors say nothing, and would add noise to the sum.
        ratio = np.log(count_x + 1.0) - np.log(count_y + 1.0)
        clear = np.abs(count_x - count_y) > 2 * np.sqrt(count_x + count_y + 1.0)
        edges.append(tuple(inner.tolist()))
        scores.append(tuple(np.where(clear, ratio, 0.0).round(3).tolist()))
    return Additive(tuple(edges), tuple(scores), np.shape(x)[1]) if sum(any(s) for s in scores) > 1 else None


def _count_cells(ordered: Array, inner: Array) -> NDArray[np.int64]:
    """How many sorted values are in each of the cells that end at inner edges, beyond the last one, and NaN."""
    valid = len(ordered) - int(np.isnan(ordered).sum())
    upto = ordered[:valid].searchsorted(inner, side="right")
    return np.diff(np.concatenate([[0], upto, [valid, len(ordered)]]))


def learn_symbols(
    x: Batch,
    y: Batch,
    most: int,
    known: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    label: Callable[[Any], str] = show_output,
    part: Part | None = None,
    labels: dict[int, str] | None = None,
) -> Rank | None:
    """Order outputs, as symbols, by shrunken likelihood ratio.

    None if there are more than ``most``.

    ``known`` are the keys of both batches, where they have been computed already, ``label`` a symbol in words.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        As many draws of each side.
    most : int
        Largest number of symbols.
    known : tuple of (ndarray, ndarray), optional
        The keys, each of shape (n,).
    label : callable
        From an output to words, or from its part.
    part : Part or None
        The part of an output that is the symbol, where the keys are known; None is all of it.
    labels : dict, optional
        Symbols in words by their keys, as far as they are known; others are added.

    Returns
    -------
    Rank or None
        None also if there is only one symbol, or more than draws a side.
    """
    key_x, key_y = known if known is not None else (hash_outputs(x), hash_outputs(y))
    # Values that hardly repeat are no symbols; that there are too many is often seen by the first ones.
    limit, keys = min(most, len(key_x)), np.concatenate([key_x, key_y])
    if len(keys) > 4 * limit and len(np.unique(keys[: 2 * limit])) > limit:
        return None
    table, first = np.unique(keys, return_index=True)
    if not 1 < len(table) <= limit:
        return None
    count_x = np.bincount(np.searchsorted(table, key_x), minlength=len(table))
    count_y = np.bincount(np.searchsorted(table, key_y), minlength=len(table))
    n, names = len(key_x), {} if labels is None else labels
    for key, k in zip(table.tolist(), first.tolist(), strict=True):
        if key not in names:
            found = x[k : k + 1] if k < n else y[k - n : k - n + 1]
            names[key] = label((found if part is None else part(found))[0])
    return _rank_cells(None, tuple(table.tolist()), count_x, count_y, [names[key] for key in table.tolist()])


def learn_histogram(base: Feature, x: Array, y: Array, cells: int) -> Rank | None:
    """Order cells between pooled quantiles by shrunken likelihood ratio.

    Parameters
    ----------
    base : Feature
        The feature whose values are put into cells.
    x, y : ndarray of shape (n,)
        Its values for draws of each side.
    cells : int
        Number of cells at most.

    Returns
    -------
    Rank or None
        None if there are fewer than two distinct quantiles.
    """
    pooled = np.concatenate([x, y])
    pooled = pooled[np.isfinite(pooled)]
    edges = np.unique(np.quantile(pooled, np.arange(1, cells) / cells, method="lower")) if len(pooled) else pooled
    if len(edges) < 2:
        return None
    counts = [np.bincount(np.searchsorted(edges, v[~np.isnan(v)]), minlength=len(edges) + 1) for v in (x, y)]
    bounds = ["-inf", *(f"{e:.4g}" for e in edges), "inf"]
    labels = [f"({a}, {b}]" for a, b in itertools.pairwise(bounds)]
    return _rank_cells(base, tuple(edges.tolist()), counts[0], counts[1], labels)


def _rank_cells(
    base: Feature | None, table: tuple[float, ...], x: NDArray[np.int64], y: NDArray[np.int64], labels: Sequence[str]
) -> Rank:
    order = np.argsort(-(np.log(x + 1.0) - np.log(y + 1.0)), kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return Rank(base, table, tuple(ranks.tolist()), tuple(labels[k] for k in order))
