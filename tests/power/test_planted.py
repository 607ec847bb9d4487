"""What a pass is said to resolve is found: violations are planted at that level."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import PureDP, Verdict, audit
from auditor.evidence.power import POWER
from benchmarks.planted import CASES, PAIR, PlantedCase
from tests.statistics import check_rates

#: A power that is found where that of `POWER` is stated.
TOO_LITTLE = 0.4


@pytest.mark.parametrize(
    "case",
    [PlantedCase("half line"), PlantedCase("one symbol of 30"), PlantedCase("one coordinate of 20", draws=200_000)],
    ids=lambda case: case.plant,
)
def test_a_violation_at_the_level_that_is_resolved_is_flagged(case: PlantedCase) -> None:
    check_rates(lambda seed: [not case.flagged(seed)], "missed", allowed=1 - POWER, found=1 - TOO_LITTLE)


def test_the_benchmark_plants_what_is_asked_of_it() -> None:
    assert len({case.plant for case in CASES}) >= 20
    assert {case.kind.width for case in CASES} >= {1, 2, 5, 20, 50, 120, 200}
    assert all(np.isfinite(case.level) and case.level > case.claim.level for case in CASES)


def counts(data: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """120 counts that one person moves by 1 each, with noise of half the scale that epsilon = 1 needs."""
    p = 1 - np.exp(-2.0 / 120)
    return np.asarray(data.sum() + rng.geometric(p, (n, 120)) - rng.geometric(p, (n, 120)))


def test_a_pass_of_a_leak_that_is_spread_over_120_counts_says_how_little_was_reached() -> None:
    found = audit(counts, PureDP(1.0), PAIR, draws=10_000, alpha=1e-6)
    assert found.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE)
    assert found.reached is not None
    assert found.reached < 0.5
    assert f"{100 * found.reached:.3g} % of the claim" in str(found)
