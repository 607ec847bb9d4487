"""Gaussian noise, as the plain reference for validity tests and Gaussian curves.

Source: D001 section 12.2; catalogue 000_001_003, gaussian_counting_query and A2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from auditor.exact import GaussianLaw, Law, ProductLaw
from mechanisms.common import Dataset, FloatArray, require, require_draws, require_positive
from mechanisms.noise import LOW_BITS, without_low_bits
from mechanisms.queries import Query


@dataclass(frozen=True)
class GaussianNoise:
    """Query plus independent normal noise, the sum rounded to a lattice.

    Parameters
    ----------
    query : Query
        Answers of shape () or (d,).
    sigma : float
        Standard deviation, > 0. A pair whose answers are D apart (l2 norm) is D/sigma-GDP.
    step : float, default 2**-20
        Outputs are multiples of it; a power of two.

    Notes
    -----
    Its law is stated before rounding. Rounding is post-processing, so every level of the stated law
    is an upper bound, and at steps far below sigma the difference is far below what an audit sees.
    The doubles of the unrounded sum would have structure that depends on the answer, as those of
    textbook Laplace noise have; the low-order bits that carry it are rounded away.
    """

    query: Query
    sigma: float
    step: float = LOW_BITS

    def __post_init__(self) -> None:
        require_positive("sigma", self.sigma)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5, "a power of two as step", self.step)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,) or (n, d)."""
        require_draws(n)
        answer = self.query(data)
        return without_low_bits(answer + self.sigma * rng.standard_normal((n, *answer.shape)), self.step)

    def law(self, data: Dataset) -> Law:
        """Exact output law on `data` (A2)."""
        answer = self.query(data)
        parts = tuple(GaussianLaw(float(x), self.sigma) for x in answer.ravel())
        return parts[0] if answer.ndim == 0 else ProductLaw(parts)
