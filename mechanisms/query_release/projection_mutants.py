"""Mutants of the projection of noisy second moments, and of the relaxed body.

Source: catalogue 000_001_003, gaussian_projection_marginals and grothendieck_relaxed_projection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, Mutant, Twin, require_draws, tabulate_mutants, unbounded
from mechanisms.query_release.projections import ConvexBody, ProjectedMatrices, ProjectedMoments, RelaxedHull
from mechanisms.query_release.second_moments import SignedHistogram


@dataclass(frozen=True)
class PrivateSizeProjection(ProjectedMoments):
    """Projects onto n times the body with the true n."""

    def radius(self, data: Dataset) -> float:
        """Return the number of people."""
        return data.people if isinstance(data, SignedHistogram) else float(len(data))


@dataclass(frozen=True)
class ExactMomentsProjected(ProjectedMoments):
    """Projects the exact moments, which are in the body already."""

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs, all the same; float64 of shape (n, d^2)."""
        require_draws(n)
        del rng
        return np.tile(self.project(self.noisy.query(data)[None, :], data), (n, 1))


@dataclass(frozen=True)
class UnscaledBodyProjection(ProjectedMoments):
    """Projects onto the body, not onto n times the body."""

    def radius(self, data: Dataset) -> float:
        """Return 1."""
        del data
        return 1.0


@dataclass(frozen=True)
class VectorsNotNormalised(RelaxedHull):
    """Vectors of any length: the nearest matrix of rank ``ceil(2 sqrt(d))``."""

    def project(self, points: FloatArray, radius: float, tolerance: float) -> ProjectedMatrices:
        """Cut the singular values after that many; there is no body, and no gap."""
        del radius, tolerance
        left, values, right = np.linalg.svd(points)
        values[:, math.ceil(2.0 * math.sqrt(points.shape[1])) :] = 0.0
        return ProjectedMatrices((left * values[:, None, :]) @ right, np.zeros(len(points)))


@dataclass(frozen=True)
class FactorsForcedEqual(RelaxedHull):
    """One set of vectors for both: ``<u_i, u_j>``, which has no ``-v v^T``."""

    def project(self, points: FloatArray, radius: float, tolerance: float) -> ProjectedMatrices:
        """Go twenty steps: near 0 no step helps, and the gap does not fall."""
        return self.climb(points, radius, tolerance, 20)

    def step(self, g: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As for L, over the matrices ``<u_i, u_j>`` and 0, where the search starts."""
        even = 0.5 * (g + np.swapaxes(g, 1, 2))
        # Adding a multiple of the identity makes the form convex, so that it climbs, and adds a constant to it.
        shift = np.maximum(-np.linalg.eigvalsh(even)[:, 0], 0.0)[:, None, None] * np.eye(g.shape[1])
        for _ in range(5):  # arbitrary; what is not found matters little beside what is missing
            vectors = (even + shift) @ vectors
            vectors /= np.maximum(np.linalg.norm(vectors, axis=2, keepdims=True), np.finfo(np.float64).tiny)
        return vectors @ np.swapaxes(vectors, 1, 2), vectors

    def upper(self, g: FloatArray, vectors: FloatArray) -> FloatArray:
        """As for L: ``diag a - g`` minus its least eigenvalue is positive semidefinite, for any a."""
        d, even = g.shape[1], 0.5 * (g + np.swapaxes(g, 1, 2))
        along = (even * (vectors @ np.swapaxes(vectors, 1, 2))).sum(axis=2)
        block = -even
        block[:, np.arange(d), np.arange(d)] += along
        return np.asarray(np.maximum(along.sum(axis=1) - d * np.linalg.eigvalsh(block)[:, 0], 0.0))


@dataclass(frozen=True)
class FrankWolfeStoppedEarly(RelaxedHull):
    """One step of Frank-Wolfe, whatever the gap is."""

    def project(self, points: FloatArray, radius: float, tolerance: float) -> ProjectedMatrices:
        """Go one step."""
        return self.climb(points, radius, tolerance, 1)


@dataclass(frozen=True)
class _BuildWithBody:
    """Builds the mechanism with another body (for `Mutant.build`)."""

    body: ConvexBody

    def __call__(self, base: ProjectedMoments) -> ProjectedMoments:
        """Return the mutant with the same parameters as `base`."""
        return replace(base, body=self.body)


MUTANTS: dict[str, Mutant[ProjectedMoments]] = tabulate_mutants(
    Mutant(
        "private_n",
        Twin(PrivateSizeProjection),
        unbounded,
        "violation",
        "projected onto nK with the n of the data: an output outside of it has one person more",
    ),
    Mutant("exact_y_projected", Twin(ExactMomentsProjected), unbounded, "violation", "the exact moments come out"),
    Mutant(
        "projection_onto_K", Twin(UnscaledBodyProjection), None, "benign", "onto K for nK: all people are lost but one"
    ),
    Mutant(
        "vectors_not_normalised",
        _BuildWithBody(VectorsNotNormalised()),
        None,
        "benign",
        "no bound on the vectors: most noise stays",
    ),
    Mutant("factors_forced_equal", _BuildWithBody(FactorsForcedEqual()), None, "benign", "u' = u: no matrix -v v^T"),
    Mutant(
        "frank_wolfe_stopped_early",
        _BuildWithBody(FrankWolfeStoppedEarly()),
        None,
        "benign",
        "one step: one row of several is found",
    ),
)
