"""Laplace noise scaled to the local sensitivity of the median: a negative control.

Source: document 003, section 2.2, which says that this violates privacy and why; catalogue 000_001_003,
local_sensitivity_noise_broken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    Twin,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.base.noise import base_for, lattice_steps, round_to_lattice, two_sided_geometric
from mechanisms.stability.median import ClippedMedian

# A distribution lists outputs until less than 1e-300 of it is left beyond: e^-691 of the noise.
_REACH = 691.0


@dataclass(frozen=True)
class LocalSensitivityLaplace:
    """Median rounded to a lattice, plus geometric noise on it for the local sensitivity; no noise where that is 0.

    Parameters
    ----------
    query : ClippedMedian
        Answers and local sensitivities.
    epsilon : float
        What is claimed, and what does not hold at any level.
    step : float, default 2**-6
        Lattice step, a power of two. The distribution lists some 1400 / (epsilon step) outputs for a local sensitivity
        of 1.
    """

    query: ClippedMedian
    epsilon: float
    step: float = 2.0**-6

    def __post_init__(self) -> None:
        require(
            isinstance(self.query, ClippedMedian),
            "a ClippedMedian (other queries state no local sensitivity)",
            self.query,
        )
        require_positive("epsilon", self.epsilon)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5, "a power of two as step", self.step)

    def base(self, data: Dataset) -> float:
        """Return the base of the integer noise; `inf` where there is none."""
        local = self.query.local(data)
        return base_for(self.epsilon, lattice_steps(local, 0.0, self.step)) if local > 0 else math.inf

    def centre(self, data: Dataset) -> int:
        """Return the median in lattice steps."""
        return int(round_to_lattice(self.query(data), self.step))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` outputs; float64 of shape (n,), multiples of the step."""
        require_draws(n)
        base = self.base(data)
        noise = two_sided_geometric(base, n, rng) if math.isfinite(base) else np.zeros(n, dtype=np.int64)
        return np.asarray((self.centre(data) + noise) * self.step, dtype=np.float64)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`; a point without noise, else less than 1e-300 is at the ends."""
        base, centre = self.base(data), self.centre(data)
        if math.isinf(base):
            return FiniteLaw((centre * self.step,), np.ones(1))
        log_base = math.log1p(base - 1.0)
        k = np.arange(-(reach := math.ceil(_REACH / log_base)), reach + 1)
        mass = np.exp(-log_base * np.abs(k)) * (base - 1.0) / (base + 1.0)
        return FiniteLaw(tuple(((centre + k) * self.step).tolist()), mass)


MUTANTS: dict[str, Mutant[LatticeLaplace]] = tabulate_mutants(
    Mutant(
        "as_described",
        Twin(LocalSensitivityLaplace),
        unbounded,
        "violation",
        "no noise where the local sensitivity is 0, some at a neighbour; and where both are positive and differ, a "
        "loss that grows without bound in the tails",
    ),
)
