"""Errors on uniform secret bits, and reconstructions from them, held against partial discrepancy.

Data are drawn afresh for each draw: n uniform bits, of which the queries count subsets.

Source: 003, section 4.2; catalogue 000_001_003, partial_discrepancy_bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.audits.adversaries.exhaustive import Bits, from_queries
from mechanisms.base.mechanism import Dataset, FloatArray, require, require_draws, require_positive
from mechanisms.lower_bounds.discrepancy import Matrix


def _draw_secret(queries: Matrix, n: int, rng: np.random.Generator) -> Bits:
    require_draws(n)
    return rng.integers(0, 2, (n, np.shape(queries)[1]), dtype=np.int8)


@dataclass(frozen=True, eq=False)
class LargestErrorOnSecretBits:
    """A mechanism's largest error over the queries, on uniform secret bits that are drawn afresh each time.

    Parameters
    ----------
    release : object with a method ``each``
        From tables of shape (trials, n, k), row j being ``x_j Q[:, j]``, to column counts of shape (trials, k).
    queries : ndarray of shape (k, n)
        Zeros and ones.
    """

    release: Any
    queries: Matrix

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw bits, releases, and their largest errors in counts, shape (n,); of the data nothing is used."""
        del data
        queries, secret = np.asarray(self.queries, dtype=np.int8), _draw_secret(self.queries, n, rng)
        tables = secret[:, :, None] * queries.T
        released = self.release.each(tables, rng)
        return np.asarray(np.abs(released - tables.sum(axis=1)).max(axis=1), dtype=np.float64)

    def __repr__(self) -> str:
        count, people = np.shape(self.queries)
        return f"LargestErrorOnSecretBits({self.release!r}, {count} queries on {people} people)"


@dataclass(frozen=True, eq=False)
class ErrorOfResponses:
    """Largest error of the counts of randomised responses, one a person, as `LargestErrorOnSecretBits`.

    Parameters
    ----------
    queries : ndarray of shape (k, n)
        Zeros and ones.
    epsilon, delta : float
        A response is true with probability ``(e^eps + delta) / (1 + e^eps)``: (eps, delta)-DP, and no better is.
    """

    queries: Matrix
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 <= self.delta < 1, "delta in [0, 1)", self.delta)

    @property
    def true_probability(self) -> float:
        """Probability of a true response."""
        return (math.exp(self.epsilon) + self.delta) / (1.0 + math.exp(self.epsilon))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw bits and responses; largest errors in counts, shape (n,); of the data nothing is used."""
        del data
        secret = _draw_secret(self.queries, n, rng).astype(np.float64)
        lies = rng.random(secret.shape) >= self.true_probability
        wrong = np.where(lies, 1.0 - 2.0 * secret, 0.0)
        return np.asarray(np.abs(wrong @ np.asarray(self.queries, dtype=np.float64).T).max(axis=1), dtype=np.float64)

    def __repr__(self) -> str:
        k, n = np.shape(self.queries)
        return f"ErrorOfResponses({k} queries on {n} people, {self.epsilon:g}, {self.delta:g})"


@dataclass(frozen=True, eq=False)
class WorstConsistent:
    """How many bits are wrong in the worst candidate that is consistent with answers within an error.

    Parameters
    ----------
    queries : ndarray of shape (k, n)
        Zeros and ones, n at most 20.
    error : float
        E: answers have noise that is uniform in (-E, E), candidates are off by less than E.
    """

    queries: Matrix
    error: float

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw bits and answers; numbers of wrong bits, shape (n,); of the data nothing is used."""
        del data
        queries, secret = np.asarray(self.queries, dtype=np.int8), _draw_secret(self.queries, n, rng)
        noise = rng.uniform(-self.error, self.error, (n, len(queries)))
        found = from_queries(queries, secret @ queries.T.astype(np.float64) + noise, self.error, "all")
        wrong = np.zeros(n)
        np.maximum.at(wrong, found.trial, (found.bits != secret[found.trial]).sum(axis=1).astype(np.float64))
        return wrong

    def __repr__(self) -> str:
        return f"WorstConsistent({len(self.queries)} queries on {np.shape(self.queries)[1]} people, {self.error:g})"
