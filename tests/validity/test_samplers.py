"""The lattice samplers follow their distributions at 10^7 draws (L3); a sampler that is slightly off does not.

Correct samplers are flagged with probability at most 1e-6 each, the level of the audits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import check_conformity
from auditor.privacy.laws import DiscreteGaussianLaw, TwoSidedGeometricLaw
from auditor.results import Verdict
from mechanisms.base.integer_noise import discrete_gaussian, two_sided_geometric

DRAWS = 10_000_000
ALPHA = 1e-6


@dataclass(frozen=True)
class Noise:
    """A sampler, and the distribution that it is said to have."""

    draw: Callable[[int, np.random.Generator], NDArray[np.int64]]
    stated: Any

    def __call__(self, data: object, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return self.draw(n, rng)

    def law(self, data: object) -> Any:
        return self.stated


def laplace(a: float, stated: float) -> Noise:
    return Noise(lambda n, rng: two_sided_geometric(a, n, rng), TwoSidedGeometricLaw(0, stated))


def gaussian(sigma: float, stated: float) -> Noise:
    return Noise(lambda n, rng: discrete_gaussian(sigma, n, rng), DiscreteGaussianLaw(0, stated))


FINE = math.exp(2.0**-10)
RIGHT = {
    "discrete Laplace, base e": laplace(math.e, math.e),
    "discrete Laplace, scale 1024": laplace(FINE, FINE),
    "discrete Gaussian, sigma 3.73": gaussian(3.73, 3.73),
    "discrete Gaussian, sigma 1024.3": gaussian(1024.3, 1024.3),
}
#: Scales that are wrong by 1 % and 3 %: divergences of 5e-5 and 9e-4 nats a draw, hundreds in all.
WRONG = {"discrete Laplace": laplace(math.exp(1.01), math.e), "discrete Gaussian": gaussian(3.73, 3.84)}


@pytest.mark.parametrize("name", RIGHT)
def test_a_sampler_follows_its_law_at_ten_million_draws(name: str) -> None:
    found = check_conformity(RIGHT[name], 0, alpha=ALPHA, draws=DRAWS, id=f"samplers/{name}")
    assert found.verdict == Verdict.CONSISTENT
    assert found.draws == DRAWS
    # What so many draws would have shown: a scale of Laplace noise that is wrong by a part e diverges by e^2 / 2 nats.
    assert found.resolves is not None
    assert found.resolves < 0.007**2 / 2


@pytest.mark.parametrize("name", WRONG)
def test_a_scale_that_is_slightly_wrong_is_found(name: str) -> None:
    found = check_conformity(WRONG[name], 0, alpha=ALPHA, draws=DRAWS, id=f"samplers/wrong/{name}")
    assert found.verdict == Verdict.DEVIATION
