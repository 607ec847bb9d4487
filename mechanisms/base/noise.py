"""Samplers, lattices and quadrature that the mechanisms share."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from auditor.privacy.exact import Law, ProductLaw, TwoSidedGeometricLaw
from mechanisms.base.integer_noise import draw_geometric as draw_geometric
from mechanisms.base.integer_noise import two_sided_geometric as two_sided_geometric
from mechanisms.base.mechanism import FloatArray, IntArray, require, require_positive

# Float64 holds every integer up to here, so lattice values below it have exact fractional parts.
_EXACT = 2.0**53
# Real-valued outputs are released as multiples of this: a millionth, far below any noise used here.
LOW_BITS = 2.0**-20


def base_for(epsilon: float, steps: int) -> float:
    """Return the base `a` for which a move of `steps` lattice steps costs at most `epsilon`.

    ``exp(epsilon / steps)`` rounded towards 1 until ``steps * ln a <= epsilon`` holds for the
    float64 number itself: for many steps `a` is so close to 1 that rounding to nearest could
    exceed epsilon by 1e-10, which an exact audit would rightly call a violation.
    """
    require_positive("epsilon", epsilon)
    require(steps >= 1, "at least one step", steps)
    require(epsilon / steps < 700, "epsilon per step below 700 (a would overflow)", epsilon / steps)
    a = math.exp(epsilon / steps)
    while steps * math.log1p(a - 1.0) > epsilon:
        a = math.nextafter(a, 1.0)
    require(a > 1.0, "fewer steps: their base is not above 1 in float64", steps)
    return a


def round_to_lattice(values: FloatArray, step: float) -> IntArray:
    """Return ``floor(values / step + 1/2)`` as int64, for a power-of-two `step`.

    Without rounding errors: dividing by a power of two is exact, and the half is compared with the
    exact fractional part instead of added. Hence a value that moves by at most ``k * step`` moves
    by at most k lattice points, as the same holds for the real-valued formula.

    Raises
    ------
    ValueError
        If a value is not finite or 2^53 steps or more from zero.
    """
    scaled = np.asarray(values, dtype=np.float64) / step
    require(bool(np.all(np.abs(scaled) < _EXACT)), f"values within 2^53 steps of {step}", values)
    floor = np.floor(scaled)
    return (floor + (scaled - floor >= 0.5)).astype(np.int64)


def lattice_steps(moved: float, granularity: float, step: float, coordinates: int = 1) -> int:
    """Most lattice steps that answers which move by `moved` in all move after rounding, l1 norm.

    A coordinate that moves by t moves by at most ``ceil(t / step)`` steps, so `coordinates` of them that move by
    `moved` together move by at most ``ceil(moved / step) + coordinates - 1``; rounding moves nothing where
    `granularity` says that all answers are on the lattice.
    """
    grain = granularity / step
    if grain > 0 and grain == math.floor(grain):
        return max(1, math.floor(moved / step))
    return math.ceil(moved / step) + coordinates - 1


def lattice_law(centre: IntArray, a: float, step: float = 1.0) -> Law:
    """Distribution of ``step * (centre + Z)`` with independent two-sided geometric Z, for shape () or (d,)."""
    if centre.ndim == 0:
        return TwoSidedGeometricLaw(int(centre), a, step)
    return ProductLaw(tuple(TwoSidedGeometricLaw(int(c), a, step) for c in centre))


def draw_index(probabilities: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw `n` indices from a finite distribution by inverting its cumulative sums.

    Impossible indices are never drawn; probabilities are met within about 2^-53.
    """
    cumulative = np.cumsum(probabilities)
    return np.searchsorted(cumulative / cumulative[-1], rng.random(n), side="right").astype(np.int64)


@cache
def _rule(nodes: int) -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(nodes)
    return x, w


def gauss_legendre(breaks: FloatArray, length: float, nodes: int = 16) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a composite Gauss-Legendre rule.

    Parameters
    ----------
    breaks : ndarray of shape (k,), k >= 2
        Points where the integrand has kinks; sorted here. The first and last are the ends.
    length : float
        Longest piece. For an integrand that grows or falls no faster than ``exp(r x)`` the
        relative error of 16 nodes on a piece is below ``(r length / 4)^32 / 32!``: 2e-26 at
        ``r length = 8``.
    nodes : int, default 16
        Nodes a piece.

    Returns
    -------
    x, w : ndarray of shape (pieces * nodes,)
        The integral of g is ``w @ g(x)``.
    """
    ends = np.unique(breaks)
    counts = np.maximum(1, np.ceil(np.diff(ends) / length)).astype(np.int64)
    left = np.repeat(ends[:-1], counts)
    width = np.repeat(np.diff(ends) / counts, counts)
    offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    x, w = _rule(nodes)
    centres = left + width * (offset + 0.5)
    return (centres[:, None] + 0.5 * width[:, None] * x).ravel(), (0.5 * width[:, None] * w).ravel()


def without_low_bits(values: FloatArray, step: float = LOW_BITS) -> FloatArray:
    """Round real-valued outputs to multiples of `step`, a power of two.

    The doubles that an answer plus floating-point noise can take depend on the answer (Mironov 2012), and show in the
    low-order bits. Rounding is post-processing, so no level of the unrounded distribution grows; it hides those bits.
    """
    return np.asarray(np.rint(values / step) * step, dtype=np.float64)
