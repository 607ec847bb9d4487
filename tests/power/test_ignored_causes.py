"""Noise of a wrong scale is found behind the floats that it is made of, and named; of the right scale it is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from auditor import GaussianDP, Pair, PureDP, Verdict, audit
from auditor.events.cause_kinds import VALUES, kind_of
from auditor.privacy.guarantees import Guarantee

#: Probability of a false alarm in each audit, and draws.
ALPHA, DRAWS, SEEDS = 1e-6, 40_000, 2

Noise = Callable[[np.random.Generator, int], Any]
NOISES: dict[str, tuple[Noise, Guarantee]] = {
    "laplace": (lambda rng, n: rng.laplace(size=n), PureDP(1.0)),
    "laplace of a logarithm": (
        lambda rng, n: np.sign(u := rng.random(n) - 0.5) * np.log1p(-2 * np.abs(u)),
        PureDP(1.0),
    ),
    "laplace of single precision": (lambda rng, n: rng.laplace(size=n).astype(np.float32), PureDP(1.0)),
    "gaussian": (lambda rng, n: rng.normal(size=n), GaussianDP(1.0)),
}


@pytest.mark.parametrize("data", [(0.0, 1.0), (50.0, 51.0)], ids=["0 and 1", "50 and 51"])
@pytest.mark.parametrize("name", NOISES)
def test_the_scale_is_judged_and_the_floats_are_not(name: str, data: tuple[float, float]) -> None:
    noise, claim = NOISES[name]
    for seed in range(SEEDS):
        for scale, wrong in ((1.0, False), (0.6, True)):

            def mechanism(given: float, n: int, rng: np.random.Generator, scale: float = scale) -> Any:
                drawn = noise(rng, n)
                return drawn.dtype.type(given) + drawn.dtype.type(scale) * drawn

            found = audit(mechanism, claim, Pair(*data), draws=DRAWS, alpha=ALPHA, seed=seed, ignore="floating-point")
            assert (found.verdict == Verdict.VIOLATION) == wrong
            if wrong:
                assert found.counterexample is not None
                assert kind_of(found.counterexample.cause) == VALUES
                assert math.isfinite(found.lower_bound or math.inf)
