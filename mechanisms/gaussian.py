"""Gaussian noise, as the plain reference for validity tests and Gaussian curves.

Source: D001 section 12.2; catalogue 000_001_003, gaussian_counting_query and A2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from auditor.exact import GaussianLaw, Law, ProductLaw
from mechanisms.common import Dataset, FloatArray, require_draws, require_positive
from mechanisms.queries import Query


@dataclass(frozen=True)
class GaussianNoise:
    """Query plus independent normal noise.

    Parameters
    ----------
    query : Query
        Answers of shape () or (d,).
    sigma : float
        Standard deviation, > 0. A pair whose answers are D apart (l2 norm) is D/sigma-GDP.

    Notes
    -----
    Its law is that of the real-valued formula. The doubles that come out have structure that
    depends on the answer (as textbook Laplace noise has): use it where events are thresholds and
    sets of the size of sigma, not where float structure is audited.
    """

    query: Query
    sigma: float

    def __post_init__(self) -> None:
        require_positive("sigma", self.sigma)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d)."""
        require_draws(n)
        answer = self.query(data)
        return answer + self.sigma * rng.standard_normal((n, *answer.shape))

    def law(self, data: Dataset) -> Law:
        """Exact output law on `data` (A2)."""
        answer = self.query(data)
        parts = tuple(GaussianLaw(float(x), self.sigma) for x in answer.ravel())
        return parts[0] if answer.ndim == 0 else ProductLaw(parts)
