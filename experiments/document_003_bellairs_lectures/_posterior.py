"""What an adversary believes about one row before and after it sees an output, computed from exact distributions.

Source: 003, section 1.2, remark 2; catalogue 000_001_003, bayes_posterior_equivalence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw, Law, ProductLaw, TwoSidedGeometricLaw

FloatArray = NDArray[np.float64]

#: Outputs of a geometric mechanism that are looked at, on each side of the centres. Beyond the centres the likelihoods
#: have one ratio, so that a single output on each side would do.
_REACH = 5


def likelihoods(laws: Sequence[Law]) -> FloatArray:
    """Probability of every output under each of several distributions.

    Parameters
    ----------
    laws : sequence of Law
        Output distributions, one for each value of the row; all finite, all products of finite distributions, or all
        two-sided geometric. A lattice is looked at as far as five steps beyond the centres.

    Returns
    -------
    ndarray of shape (len(laws), outputs)
        Only outputs that are possible under some distribution.
    """
    if all(isinstance(law, ProductLaw) for law in laws):
        coordinates = [likelihoods(parts) for parts in zip(*(_parts(law) for law in laws), strict=True)]
        return np.stack([reduce(np.kron, (part[k] for part in coordinates)) for k in range(len(laws))])
    if all(isinstance(law, TwoSidedGeometricLaw) for law in laws):
        return _on_lattice([law for law in laws if isinstance(law, TwoSidedGeometricLaw)])
    finite = [law for law in laws if isinstance(law, FiniteLaw)]
    if len(finite) < len(laws):
        raise ValueError(f"expected distributions of one kind: finite, products of these, or geometric, got {laws!r}")
    outcomes = list(dict.fromkeys(outcome for law in finite for outcome in law.outcomes))
    masses = [dict(zip(law.outcomes, law.probabilities.tolist(), strict=True)) for law in finite]
    found = np.array([[mass.get(outcome, 0.0) for outcome in outcomes] for mass in masses])
    return found[:, found.any(axis=0)]


def _parts(law: Any) -> tuple[Law, ...]:
    parts: tuple[Law, ...] = law.parts
    return parts


def _on_lattice(laws: Sequence[TwoSidedGeometricLaw]) -> FloatArray:
    places = [law.loc for law in laws]
    k = np.arange(min(places) - _REACH, max(places) + _REACH + 1)
    return np.stack([np.exp(-law.log_a * np.abs(k - law.loc)) * math.expm1(law.log_a) / (law.a + 1.0) for law in laws])


def posteriors(prior: Sequence[float], table: FloatArray) -> FloatArray:
    """Posterior of the row's value for every output (Bayes).

    Parameters
    ----------
    prior : sequence of float
        Probability of each value.
    table : ndarray of shape (values, outputs)
        See `likelihoods`.

    Returns
    -------
    ndarray of shape (values, outputs)
        A column sums to 1; outputs of probability 0 under the prior are left out.
    """
    joint = np.asarray(prior, dtype=np.float64)[:, None] * table
    total = joint.sum(axis=0)
    return np.asarray(joint[:, total > 0] / total[total > 0])


def distances(prior: Sequence[float], table: FloatArray) -> FloatArray:
    """Statistical distance of prior and posterior for every output, shape (outputs,)."""
    moved = posteriors(prior, table) - np.asarray(prior, dtype=np.float64)[:, None]
    return np.asarray(0.5 * np.abs(moved).sum(axis=0))


def largest_distance(table: FloatArray, priors: Sequence[Sequence[float]]) -> float:
    """Largest statistical distance over priors and outputs."""
    return max(float(distances(prior, table).max()) for prior in priors)


def largest_move(table: FloatArray, priors: Sequence[Sequence[float]]) -> float:
    """Largest ``|ln(posterior / prior)|`` of a value, over priors that give all values mass, and outputs."""
    moves = (np.abs(np.log(posteriors(prior, table) / np.asarray(prior)[:, None])).max() for prior in priors)
    return max(float(move) for move in moves)


def average_distance(prior: Sequence[float], table: FloatArray) -> float:
    """Statistical distance of the prior and the average posterior: the mistake of averaging over outputs first."""
    joint = np.asarray(prior, dtype=np.float64)[:, None] * table
    average = posteriors(prior, table) @ joint.sum(axis=0)[joint.sum(axis=0) > 0]
    return float(0.5 * np.abs(average - np.asarray(prior)).sum())


def worst_prior(epsilon: float) -> tuple[float, float]:
    """Two-point prior at which an eps-DP output moves beliefs most, and by ``tanh(eps / 4)``.

    The distance ``p r / (p r + 1 - p) - p`` for a likelihood ratio r = e^eps is largest at ``p = 1 / (1 + e^(eps/2))``.
    """
    p = 1.0 / (1.0 + math.exp(epsilon / 2.0))
    return p, 1.0 - p


def two_point_priors(number: int) -> list[tuple[float, float]]:
    """Priors (p, 1 - p) on an even grid inside (0, 1)."""
    return [(p, 1.0 - p) for p in (np.arange(1, number + 1) / (number + 1)).tolist()]
