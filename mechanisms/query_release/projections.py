"""Projection of noisy second moments onto the bodies that can hold the true ones.

Three bodies of d x d matrices, each inside the next, all symmetric about 0:

* K, the convex hull of ``v v^T`` and ``-v v^T`` over sign vectors v: 2^d vertices, enumerated here up to d = 12;
* L, the matrices ``<u_i, u'_j>`` of unit vectors, over which a linear function is maximised by a semidefinite program;
* the nuclear ball of radius d, which holds L because ``|U V^T|_* <= |U|_F |V|_F = sqrt(d) sqrt(d)``; a singular value
  decomposition projects onto it.

A projection comes with a bound on its duality gap, and so on its distance to the exact one. Nothing here sees the data;
all of it is post-processing.

Source: document 003, Lecture 7, step 3 and second half; catalogue 000_001_003, gaussian_projection_marginals and
grothendieck_relaxed_projection.
"""

from __future__ import annotations

import importlib
import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, require, require_draws, require_positive
from mechanisms.query_release.second_moments import NoisyMoments

#: Vertices of K are enumerated up to here: 4,096 of 144 numbers, and a table of their products of 128 MB.
_MOST_DIMENSIONS = 12
#: Numbers in a work array of a batch of projections, at most; arbitrary, 32 MB.
_BATCH = 2**22
#: Steps of Frank-Wolfe after which a projection has failed. Within the tolerances used here it takes tens to hundreds.
_STEPS = 20_000
#: Part of the first vectors that is mixed into later ones: vectors that have become collinear would stay so, and find
#: the vertices of a smaller body. Arbitrary.
_MIXED = 0.01
#: Relative distance of the bounds on a maximum over L. Arbitrary, a tenth of what is asked of projections.
_CLOSE = 1e-3
#: Rounds of alternating maximisation a step of Frank-Wolfe: it starts from the last step's vectors. Arbitrary.
_ROUNDS = 5


class ProjectedMatrices(NamedTuple):
    """Projected matrices, and how far they may be from the nearest ones.

    Attributes
    ----------
    matrices : ndarray of shape (n, d, d)
        Points of the body.
    gap : ndarray of shape (n,)
        Bound on ``max over z in the body of <z - matrix, point - matrix>``, which is 0 at the projection.

    Notes
    -----
    The squared distance to the projection p is at most the gap: ``|p - m|^2 = <p - m, point - m> + <m - p, point - p>``
    for a matrix m of the body; the first term is at most the gap, the second at most 0.
    """

    matrices: FloatArray
    gap: FloatArray


class ConvexBody(Protocol):
    """A convex body of d x d matrices, symmetric about 0."""

    def support(self, g: FloatArray) -> FloatArray:
        """Upper bound on ``max over z in the body of <g, z>``, shape (n, d, d) to (n,)."""
        ...

    def project(self, points: FloatArray, radius: float, tolerance: float) -> ProjectedMatrices:
        """Project points of shape (n, d, d) onto ``radius`` times the body, up to a duality gap of ``tolerance``."""
        ...


# ---------------------------------------------------------------------------------- K, by its vertices


def sign_vectors(d: int) -> FloatArray:
    """All sign vectors whose first sign is 1, shape (2^(d-1), d): one of v and -v, which have the same ``v v^T``."""
    require(1 <= d <= _MOST_DIMENSIONS, f"from 1 to {_MOST_DIMENSIONS} dimensions for enumeration", d)
    rest = np.array(list(itertools.product((1.0, -1.0), repeat=d - 1)), dtype=np.float64).reshape(2 ** (d - 1), d - 1)
    return np.concatenate([np.ones((len(rest), 1)), rest], axis=1)


@lru_cache(maxsize=4)
def _vertices(d: int) -> FloatArray:
    """All vertices of K as rows, shape (2^d, d^2)."""
    v = sign_vectors(d)
    outer = (v[:, :, None] * v[:, None, :]).reshape(len(v), d * d)
    return np.concatenate([outer, -outer])


@lru_cache(maxsize=4)
def _products(d: int) -> FloatArray:
    """Inner products of the vertices, shape (2^d, 2^d)."""
    vertices = _vertices(d)
    return vertices @ vertices.T


@dataclass(frozen=True)
class SignVectorHull:
    """K; exact up to rounding in what it says, and limited to 12 dimensions."""

    def support(self, g: FloatArray) -> FloatArray:
        """``max over v of |v^T g v|``."""
        return np.asarray((g.reshape(len(g), -1) @ _vertices(g.shape[1]).T).max(axis=1))

    def project(self, points: FloatArray, radius: float, tolerance: float) -> ProjectedMatrices:
        """Project by pairwise Frank-Wolfe over the vertices; see `ConvexBody.project`.

        Raises
        ------
        RuntimeError
            If the gap has not come down to the tolerance after 20,000 steps.

        Notes
        -----
        Weight moves from the vertex in use with the least score to the one with the largest, by an exact line search.
        Scores are inner products with the remainder. The gap is exact, because every vertex is looked at; it falls
        geometrically (Lacoste-Julien and Jaggi 2015). Each trial stops by itself, so that trials stay independent.
        """
        d, parts = points.shape[1], []
        size = max(1, _BATCH // 2**d)
        for start in range(0, len(points), size):
            parts.append(_project_pairwise(points[start : start + size].reshape(-1, d * d), radius, tolerance))
        weights, gaps = (np.concatenate(part) for part in zip(*parts, strict=True))
        return ProjectedMatrices(radius * (weights @ _vertices(d)).reshape(points.shape), gaps)


def _project_pairwise(points: FloatArray, radius: float, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Weights of the vertices, shape (n, 2^d), and gaps, for points of shape (n, d^2)."""
    d = math.isqrt(points.shape[1])
    products = _products(d) * radius**2
    first = radius * points @ _vertices(d).T
    best = first.argmax(axis=1)
    weights, gaps = np.zeros_like(first), np.full(len(points), np.inf)
    weights[np.arange(len(points)), best] = 1.0
    active = np.arange(len(points))
    score, used = first - products[best], weights.copy()
    for _ in range(_STEPS):
        k = np.arange(len(active))
        up, down = score.argmax(axis=1), np.where(used > 0.0, score, np.inf).argmin(axis=1)
        gap = score[k, up] - (used * score).sum(axis=1)
        done = gap <= tolerance
        if done.any():
            weights[active[done]], gaps[active[done]] = used[done], gap[done]
            active, score, used = active[~done], score[~done], used[~done]
            up, down = up[~done], down[~done]
            k = np.arange(len(active))
        if not len(active):
            return weights, gaps
        bend = products[up, up] + products[down, down] - 2.0 * products[up, down]
        step = (score[k, up] - score[k, down]) / np.where(bend > 0.0, bend, np.inf)
        step = np.minimum(step, used[k, down])
        used[k, up] += step
        # The last bit of a weight that is used up would keep its vertex in use.
        used[k, down] = np.where(step >= used[k, down], 0.0, used[k, down] - step)
        score -= step[:, None] * (products[up] - products[down])
    raise RuntimeError(f"the gap is above {tolerance:g} after {_STEPS} steps: {gap.max():g}")


# ------------------------------------------------------------------------ the nuclear ball, by singular values


def onto_l1_ball(values: FloatArray, radius: float) -> FloatArray:
    """Project rows of shape (n, k) onto the l1 ball, by soft thresholding (Duchi et al. 2008)."""
    size = np.abs(values)
    descending = -np.sort(-size, axis=1)
    excess = np.cumsum(descending, axis=1) - radius
    count = (descending * np.arange(1, values.shape[1] + 1) > excess).sum(axis=1, keepdims=True)
    threshold = np.maximum(np.take_along_axis(excess, np.maximum(count, 1) - 1, axis=1) / np.maximum(count, 1), 0.0)
    return np.asarray(np.sign(values) * np.maximum(size - threshold, 0.0))


@dataclass(frozen=True)
class NuclearBall:
    """Matrices with a nuclear norm of at most d; exact up to rounding."""

    def support(self, g: FloatArray) -> FloatArray:
        """``d`` times the operator norm."""
        return np.asarray(g.shape[1] * np.linalg.norm(g, 2, axis=(1, 2)))

    def project(self, points: FloatArray, radius: float, tolerance: float) -> ProjectedMatrices:
        """Project the singular values onto an l1 ball; the gap is 0 up to rounding."""
        del tolerance
        left, values, right = np.linalg.svd(points)
        kept = onto_l1_ball(values, radius * points.shape[1])
        return ProjectedMatrices((left * kept[:, None, :]) @ right, np.zeros(len(points)))


# ------------------------------------------------------------------------------ L, by Frank-Wolfe


def _normalise_rows(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows of norm 1, and the norms; shapes (n, d, k) and (n, d)."""
    norms = np.linalg.norm(rows, axis=2)
    return rows / np.maximum(norms, np.finfo(np.float64).tiny)[:, :, None], norms


def _start(g: FloatArray) -> FloatArray:
    """Unit vectors to begin with, shape (n, d, k): the right singular vectors, cut to rank ``ceil(2 sqrt(d))``.

    With that rank the alternating maximisation has no local maximum but the global ones, for almost all g (Burer and
    Monteiro 2005; Boumal, Voroninski and Bandeira 2016).
    """
    d = g.shape[1]
    rank = min(d, math.ceil(2.0 * math.sqrt(d)))
    rows = np.swapaxes(np.linalg.svd(g)[2], 1, 2)[:, :, :rank]
    return _normalise_rows(rows)[0]


@dataclass(frozen=True)
class RelaxedHull:
    """L, by Frank-Wolfe with a certified duality gap."""

    def step(self, g: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Climb towards ``max over L of <g, h>``.

        Parameters
        ----------
        g : ndarray of shape (n, d, d)
        vectors : ndarray of shape (n, d, k)
            Unit vectors u' to start from.

        Returns
        -------
        point, vectors : ndarray of shape (n, d, d) and (n, d, k)
            A point of L, and its u'.
        """
        for _ in range(_ROUNDS):
            other = _normalise_rows(g @ vectors)[0]
            vectors = _normalise_rows(np.swapaxes(g, 1, 2) @ other)[0]
        return other @ np.swapaxes(vectors, 1, 2), vectors

    def upper(self, g: FloatArray, vectors: FloatArray) -> FloatArray:
        """Certified upper bound on ``max over L of <g, h>``, close to it where the vectors u' attain it; shape (n,).

        Valid because: with ``a_i = |sum_j g_ij u'_j|``, ``b_j = |sum_i g_ij u_i|`` and lambda the least eigenvalue, or
        0 if that is positive, of ``[[diag a, -g], [-g^T, diag b]]``, that matrix minus lambda is positive semidefinite.
        So its inner product with the Gram matrix of any unit vectors u and u' is not negative:
        ``sum a + sum b - 2 lambda d - 2 <g, h> >= 0``.
        """
        d = g.shape[1]
        other, above = _normalise_rows(g @ vectors)
        below = np.linalg.norm(np.swapaxes(g, 1, 2) @ other, axis=2)
        block = np.zeros((len(g), 2 * d, 2 * d))
        block[:, :d, d:], block[:, d:, :d] = -g, -np.swapaxes(g, 1, 2)
        block[:, np.arange(2 * d), np.arange(2 * d)] = np.concatenate([above, below], axis=1)
        least = np.minimum(np.linalg.eigvalsh(block)[:, 0], 0.0)
        return np.asarray(0.5 * (above.sum(axis=1) + below.sum(axis=1)) - least * d)

    def support(self, g: FloatArray) -> FloatArray:
        """Certified upper bound on the maximum, within a thousandth of it; see `ConvexBody.support`."""
        return self.limits(g)[1]

    def limits(self, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bound on ``max over L of <g, h>``, each of shape (n,).

        Raises
        ------
        RuntimeError
            If they are more than a thousandth apart after 20,000 steps.
        """
        vectors = _start(g)
        for _ in range(_STEPS):
            point, vectors = self.step(g, vectors)
            lower, upper = (g * point).sum(axis=(1, 2)), self.upper(g, vectors)
            if bool(np.all(upper - lower <= _CLOSE * upper)):
                return lower, upper
        raise RuntimeError(f"the maximum over L is only known between {lower} and {upper}")

    def project(self, points: FloatArray, radius: float, tolerance: float) -> ProjectedMatrices:
        """Project by Frank-Wolfe; see `ConvexBody.project`.

        Raises
        ------
        RuntimeError
            If the gap has not come down to the tolerance after 20,000 steps.
        """
        found = self.climb(points, radius, tolerance, _STEPS)
        if not bool(np.all(found.gap <= tolerance)):
            raise RuntimeError(f"the gap is above {tolerance:g} after {_STEPS} steps: {found.gap.max():g}")
        return found

    def climb(self, points: FloatArray, radius: float, tolerance: float, steps: int) -> ProjectedMatrices:
        """At most so many steps of Frank-Wolfe with exact line search; each trial stops by itself.

        The gap is certified where it is small enough, and infinite elsewhere.
        """
        size = max(1, _BATCH // (4 * points.shape[1] ** 2))
        parts = [
            self._climb(points[start : start + size], radius, tolerance, steps) for start in range(0, len(points), size)
        ]
        return ProjectedMatrices(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _climb(self, points: FloatArray, radius: float, tolerance: float, steps: int) -> ProjectedMatrices:
        matrices, gaps = np.zeros_like(points), np.full(len(points), np.inf)
        active, fresh = np.arange(len(points)), _start(points)
        vectors = fresh
        for _ in range(steps):
            here = matrices[active]
            rest = points[active] - here
            point, vectors = self.step(rest, _normalise_rows(vectors + _MIXED * fresh)[0])
            move = radius * point - here
            gap, length = (rest * move).sum(axis=(1, 2)), (move * move).sum(axis=(1, 2))
            # What the vectors attain may not be the maximum, which is looked up where it could end the search.
            near = np.flatnonzero(gap <= tolerance)
            if len(near):
                most = radius * self.upper(rest[near], vectors[near]) - (rest[near] * here[near]).sum(axis=(1, 2))
                found = most <= tolerance
                gaps[active[near[found]]] = most[found]
            going = np.isinf(gaps[active])
            step = np.clip(gap / np.where(length > 0.0, length, np.inf), 0.0, 1.0)
            active, vectors, fresh = active[going], vectors[going], fresh[going]
            if not len(active):
                break
            matrices[active] += step[going, None, None] * move[going]
        return ProjectedMatrices(matrices, gaps)


def relaxed_by_program(point: FloatArray, radius: float) -> FloatArray:
    """Project a matrix of shape (d, d) onto ``radius`` times L by a semidefinite program, with cvxpy and Clarabel.

    The Gram matrix of u and u' is a positive semidefinite matrix with a diagonal of ones, of which h is a corner.
    """
    # Loaded here because that takes seconds; without types.
    cvxpy: Any = importlib.import_module("cvxpy")
    d = len(point)
    gram = cvxpy.Variable((2 * d, 2 * d), PSD=True)
    nearest = cvxpy.Minimize(cvxpy.sum_squares(radius * gram[:d, d:] - point))
    cvxpy.Problem(nearest, [cvxpy.diag(gram) == 1]).solve(solver=cvxpy.CLARABEL)
    return np.asarray(radius * gram.value[:d, d:], dtype=np.float64)


# ---------------------------------------------------------------------------------- the mechanism


@dataclass(frozen=True)
class ProjectedMoments:
    """Noisy second moments, projected onto a public size times a body.

    Parameters
    ----------
    noisy : NoisyMoments
        Steps 1 and 2.
    body : ConvexBody
        Step 3 projects onto ``size`` times this.
    size : float
        Public, at least the number of people: under the relation that adds a person n itself is not public.
    tolerance : float, default 0.01
        Of the duality gap, in units of ``size sigma d^1.5``, which is what ``size max over K of <z, w>`` is for noise
        w, up to a factor near 1.
    """

    noisy: NoisyMoments
    body: ConvexBody
    size: float
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        require_positive("size", self.size)
        require_positive("tolerance", self.tolerance)

    @property
    def width(self) -> int:
        """Number of attributes whose products are released."""
        return self.noisy.query.width

    @property
    def gap(self) -> float:
        """Largest duality gap of an output."""
        return self.tolerance * self.size * self.noisy.scale * math.sqrt(self.width**3)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n, d^2)."""
        require_draws(n)
        return self.project(self.noisy(data, n, rng), data)

    def project(self, answers: FloatArray, data: Dataset) -> FloatArray:
        """Step 3 on noisy answers of shape (n, d^2); the reference does not look at the data."""
        points = answers.reshape(-1, self.width, self.width)
        return self.body.project(points, self.radius(data), self.gap).matrices.reshape(len(points), -1)

    def radius(self, data: Dataset) -> float:
        """Size of the body, for which only a mutant looks at the data."""
        del data
        return self.size

    def log_likelihood_ratio(self, outputs: FloatArray, x: Dataset, y: Dataset) -> FloatArray:
        """Statistic that is sufficient before the projection, on what is left of it; shape (n,)."""
        return self.noisy.log_likelihood_ratio(outputs, x, y)
