"""The fixed-size method against the figures of the design, section 3: Laplace noise of scale 1, true epsilon 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import Pair, PureDP
from auditor.audits.fixed_size import collect_fixed
from auditor.audits.privacy_loop import Settings
from auditor.evidence.binomial import clopper_pearson
from auditor.targets.sampler import Sampler

ALPHA = 0.01
PAIR = Pair(np.array([0.0]), np.array([1.0]))
#: Probabilities of the best event, {output <= 0}.
P, Q = 0.5, 0.5 / math.e


def laplace(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(np.rint((data[0] + rng.laplace(size=n)) * 2.0**10) / 2.0**10)


def known(n: int, runs: int) -> NDArray[np.float64]:
    """Bounds from n draws a side with the best event known beforehand."""
    rng = np.random.default_rng(n)
    low = clopper_pearson(rng.binomial(n, P, runs), n, ALPHA / 2, "lower")
    high = clopper_pearson(rng.binomial(n, Q, runs), n, ALPHA / 2, "upper")
    return np.log(low / high)


def test_with_the_event_known_200_000_draws_certify_what_the_design_says() -> None:
    # .983 is one run, whose bound has a standard deviation of .0052 (that of the logarithm of the ratio of counts, by
    # the delta method); the mean of 2,000 runs is right to .0006 but for a probability of 1e-6.
    spread = math.sqrt((1 - P) / (200_000 * P) + (1 - Q) / (200_000 * Q))
    assert spread == pytest.approx(0.0052, abs=5e-5)
    bounds = known(200_000, 2_000)
    assert abs(float(bounds.mean()) - 0.983) <= 2 * spread + 0.0006
    assert float(bounds.std()) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize(
    ("draws_a_side", "design", "runs"), [(10_000, 0.80, 21), (100_000, 0.93, 11), (1_000_000, 0.984, 5)]
)
def test_split_samples_certify_what_the_design_says_or_more(draws_a_side: int, design: float, runs: int) -> None:
    """The median lies between the design's figure and what half of the draws certify with the event known.

    A run's bound has about the spread of one with the event known, and the median of m of them one of 1.25 / sqrt(m) of
    it. Five of these are allowed on each side (probability 1e-6); the design's figures are of single runs, for which
    two more spreads are allowed.
    """
    options = Settings(alpha=ALPHA, draws=2 * draws_a_side, method="clopper-pearson", independence=False)
    found = [
        collect_fixed(Sampler(laplace, seed, f"power/{draws_a_side}"), PureDP(1.0), [PAIR], options).lower_bound()
        for seed in range(runs)
    ]
    best = known(draws_a_side // 2, 2_000)
    spread = float(best.std())
    error = 5 * 1.25 / math.sqrt(runs) * spread
    assert design - 2 * spread - error <= float(np.median(found)) <= float(best.mean()) + error
