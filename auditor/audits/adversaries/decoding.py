"""Decoders: from noisy values of many linear queries to the secret vector of bits, by linear programming.

A decoder takes queries Q of shape (trials, k, n) and answers y of shape (trials, k) and returns estimates z of shape
(trials, n), which are then rounded at 1/2. Subset queries have rows of zeros and ones; rows of signs, or Gaussian
ones, are taken as they are.

Sources: 003, section 4.1; Dinur and Nissim (2003); Dwork, McSherry and Talwar (2007), "The price of privacy and the
limits of LP decoding"; for the interior point method Portnoy and Koenker (1997), "The Gaussian hare and the Laplacian
tortoise", and Mehrotra (1992).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.errors import SpecificationError

FloatArray: TypeAlias = NDArray[np.float64]
Decoder: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""From queries, shape (trials, k, n), and answers, shape (trials, k), to estimates, shape (trials, n)."""
Solver: TypeAlias = Literal["interior", "highs"]
Rows: TypeAlias = Literal["subset", "sign", "gaussian"]

#: Newton steps, at most: programmes of 64 to 2,000 unknowns take 8 to 25.
_STEPS = 80
#: Part of the way to the boundary that a step goes, as usual for interior point methods.
_SHORT = 0.9995


def random_rows(rows: Rows, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Independent entries of queries.

    Uniform on {0, 1} or {-1, 1}, or standard normal.

    Parameters
    ----------
    rows : {"subset", "sign", "gaussian"}
        Distribution of an entry, in the order above.
    shape : tuple of int
        Shape of the result.
    rng : numpy.random.Generator
        Of the adversary.
    """
    if rows not in get_args(Rows):
        raise SpecificationError(f"rows must be one of {', '.join(get_args(Rows))}, got {rows!r}")
    if rows == "gaussian":
        return rng.standard_normal(shape)
    bits = rng.integers(0, 2, shape, dtype=np.int8).astype(np.float64)
    return bits if rows == "subset" else 2.0 * bits - 1.0


@dataclass(frozen=True)
class LeastAbsolute:
    """Minimise the sum of ``|y_i - <q_i, z>|``, the l1 programme.

    Over z in a box.

    Nothing has to be known about the noise, which may be unbounded; with rows of signs answers may even be wrong
    altogether on a part of the queries below 0.239.

    Parameters
    ----------
    low, high : float
        The box: every entry of z is between them.
    solver : {"interior", "highs"}
        An interior point method on dense matrices, ten times faster than scipy's HiGHS from 64 unknowns on and able to
        do thousands; or HiGHS, which returns a vertex.
    tolerance : float
        Of the interior point method: it stops at a duality gap of this part of the objective (plus one). For estimates
        that are rounded 1e-2 is enough; what two candidates are told apart by may need more.
    """

    low: float = 0.0
    high: float = 1.0
    solver: Solver = "interior"
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise SpecificationError(f"the box must have finite ends low < high, got {self.low!r} and {self.high!r}")
        if self.solver not in get_args(Solver):
            raise SpecificationError(f"solver must be one of {', '.join(get_args(Solver))}, got {self.solver!r}")
        if not 0 < self.tolerance < 1:
            raise SpecificationError(f"tolerance must be in (0, 1), got {self.tolerance!r}")

    def __call__(self, queries: FloatArray, answers: FloatArray) -> FloatArray:
        """Estimates of shape (trials, n)."""
        queries, answers = _check_shapes(queries, answers)
        if self.solver == "highs":
            return _decode_each(lambda q, y: _solve_dual(q, y, self.low, self.high), queries, answers)
        return _decode_each(
            lambda q, y: _solve_interior_point(q, y, self.low, self.high, self.tolerance), queries, answers
        )

    def __str__(self) -> str:
        return f"least absolute deviations in [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class LeastSquares:
    """Minimise the sum of ``(y_i - <q_i, z>)^2``.

    Without a box: for noise that is near to Gaussian, or bounded.
    """

    def __call__(self, queries: FloatArray, answers: FloatArray) -> FloatArray:
        """Estimates of shape (trials, n), of least norm where several are as good."""
        queries, answers = _check_shapes(queries, answers)
        return _decode_each(lambda q, y: np.asarray(np.linalg.lstsq(q, y, rcond=None)[0]), queries, answers)

    def __str__(self) -> str:
        return "least squares"


@dataclass(frozen=True)
class Consistent:
    """Any z in [0, 1]^n within ``error`` of all answers.

    ``|y_i - <q_i, z>| <= error`` for all i: the feasibility programme, by HiGHS.

    Parameters
    ----------
    error : float
        What is known to bound all errors. Where no z is consistent, all entries of the estimate are 1/2.
    """

    error: float

    def __post_init__(self) -> None:
        if not 0 <= self.error < math.inf:
            raise SpecificationError(f"error must be a finite number of at least 0, got {self.error!r}")

    def __call__(self, queries: FloatArray, answers: FloatArray) -> FloatArray:
        """Estimates of shape (trials, n)."""
        return _decode_each(self._decode_trial, *_check_shapes(queries, answers))

    def _decode_trial(self, q: FloatArray, y: FloatArray) -> FloatArray:
        from scipy import optimize  # takes longer to import than numpy

        found = optimize.linprog(
            np.zeros(q.shape[1]),
            A_ub=np.concatenate([q, -q]),
            b_ub=np.concatenate([y + self.error, self.error - y]),
            bounds=(0.0, 1.0),
            method="highs",
        )
        return np.full(q.shape[1], 0.5) if found.x is None else np.asarray(found.x)

    def __str__(self) -> str:
        return f"any solution within {self.error:g} of all answers"


def _check_shapes(queries: FloatArray, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
    q, y = np.asarray(queries, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    if q.ndim != 3 or y.shape != q.shape[:2] or 0 in q.shape:
        raise SpecificationError(f"expected queries (trials, k, n) and answers (trials, k), got {q.shape}, {y.shape}")
    if not np.isfinite(y).all():
        raise SpecificationError(f"expected finite answers, got {y[~np.isfinite(y)][0]}")
    return q, y


def _decode_each(
    one: Callable[[FloatArray, FloatArray], FloatArray], queries: FloatArray, answers: FloatArray
) -> FloatArray:
    # A programme a trial: there is nothing that numpy could do for all of them at once.
    return np.stack([one(q, y) for q, y in zip(queries, answers, strict=True)])


def _solve_dual(q: FloatArray, y: FloatArray, low: float, high: float) -> FloatArray:
    """The dual of the programme below, which has n equations for k: a quarter of the basis, and of the time."""
    from scipy import optimize  # takes longer to import than numpy

    k, n = q.shape
    identity = np.eye(n)
    found = optimize.linprog(
        np.concatenate([-y, np.full(n, high), np.full(n, -low)]),
        A_eq=np.hstack([q.T, -identity, identity]),
        b_eq=np.zeros(n),
        bounds=[(-1.0, 1.0)] * k + [(0.0, None)] * (2 * n),
        method="highs",
    )
    return np.clip(-np.asarray(found.eqlin.marginals), low, high)


def _solve_interior_point(q: FloatArray, y: FloatArray, low: float, high: float, tolerance: float) -> FloatArray:
    """Mehrotra's predictor-corrector method for the l1 programme in a box, shape (n,).

    With multipliers u in [-1, 1]^k of the residuals and p, m >= 0 of the ends of the box the optimum is where

        q'u = p - m,   qz - y = l - h,   l (1 + u) = h (1 - u) = p (high - z) = m (z - low) = 0

    and l, h >= 0. Both sides are feasible from the start, so the sum of those products is the duality gap. A Newton
    step is one solution with the n by n matrix ``q' D q + E`` for diagonal D and E. Steps end early where the matrix
    is no longer positive definite in float64; then the estimate is as good as it gets.
    """
    from scipy.linalg import blas, lapack

    k, n = q.shape
    # Beyond what qz can be a residual keeps its sign, and its size changes nothing: gross errors become small ones.
    positive, negative = np.maximum(q, 0.0).sum(axis=1), np.minimum(q, 0.0).sum(axis=1)
    y = np.clip(y, low * positive + high * negative, high * positive + low * negative)
    half = 0.5 * (high - low)
    z = np.full(n, low + half)
    residual = q @ z - y
    scale = 0.5 * float(np.abs(residual).mean()) + 1e-3  # not 0 where all residuals are; arbitrary
    # The pairs whose products vanish: (1 + u, 1 - u, p, m) and (l, h, high - z, z - low).
    x = np.concatenate([np.ones(2 * k), np.full(2 * n, scale / half)])
    s = np.concatenate([np.maximum(residual, 0.0) + scale, np.maximum(-residual, 0.0) + scale, np.full(2 * n, half)])
    rows, box, diagonal = slice(0, 2 * k), slice(2 * k, None), np.diag_indices(n)

    for _ in range(_STEPS):
        gap = float(x @ s)
        if gap <= tolerance * (1.0 + float(s[rows].sum())):
            break
        ratio = s / x
        theta, phi = ratio[:k] + ratio[k : 2 * k], (1.0 / ratio[box]).reshape(2, n).sum(axis=0)
        # Half of the matrix: a product of a matrix with its own transpose, and the factor of Cholesky in its place.
        matrix = blas.dsyrk(1.0, (q / np.sqrt(theta)[:, None]).T)
        matrix[diagonal] += phi
        factor, info = lapack.dpotrf(matrix, clean=0, overwrite_a=1)
        if info:
            break
        # What rounding has left of both equations.
        u, z = 0.5 * (x[:k] - x[k : 2 * k]), low + s[2 * k + n :]
        equation = q.T @ u - x[2 * k : 2 * k + n] + x[2 * k + n :]
        split = q @ z - y - s[:k] + s[k : 2 * k]

        def step(
            products: FloatArray,
            x: FloatArray = x,
            s: FloatArray = s,
            theta: FloatArray = theta,
            factor: FloatArray = factor,
            equation: FloatArray = equation,
            split: FloatArray = split,
        ) -> tuple[FloatArray, FloatArray]:
            """Moves of x and s for a change of products.

            To first order.
            """
            wanted = products[rows] / x[rows]
            moved = wanted[:k] - wanted[k:] - split
            ends = products[box] / s[box]
            right = q.T @ (moved / theta) + ends[n:] - ends[:n] + equation
            dz, _ = lapack.dpotrs(factor, right)
            du = (moved - q @ dz) / theta
            dx, ds = np.concatenate([du, -du, ends]), np.concatenate([wanted, -dz, dz])
            ds[rows] -= s[rows] / x[rows] * dx[rows]
            dx[box] -= x[box] / s[box] * ds[box]
            return dx, ds

        dx, ds = step(-x * s)
        a, b = min(1.0, _longest_step(x, dx)), min(1.0, _longest_step(s, ds))
        predicted = float((x + a * dx) @ (s + b * ds))
        centre = (predicted / gap) ** 3 * gap / len(x)
        dx, ds = step(centre - x * s - dx * ds)
        a, b = min(1.0, _SHORT * _longest_step(x, dx)), min(1.0, _SHORT * _longest_step(s, ds))
        if not (np.isfinite(dx).all() and np.isfinite(ds).all()):
            break
        x, s = x + a * dx, s + b * ds
    return np.asarray(low + s[2 * k + n :])


def _longest_step(values: FloatArray, moves: FloatArray) -> float:
    """Longest step along which positive values stay so."""
    steepest = float((moves / values).min())
    return -1.0 / steepest if steepest < 0 else math.inf
