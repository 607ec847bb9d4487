"""False alarms of tracing at zero margin: in at most 5 % of audits whose claim is exactly what an accusation tells.

Of 60 audits at alpha = 0.05 no more may raise an alarm than a true rate of 5 % would exceed with a probability of one
in a million, and so for lower bounds above the exact level. The harness is held against tracers that see what they must
not, so that it is seen to fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from auditor.audits.adversaries.fingerprints import BonehShaw
from auditor.audits.adversaries.tracing import Tracing
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee
from benchmarks.families import Family, trial
from experiments.document_003_bellairs_lectures.tracing import (
    _Coins,
    _Gaussian,
    _uniform_noise,
    _WithinOneHalf,
    accusation_level,
)
from mechanisms.lower_bounds.attribute_means import GaussianMeans
from mechanisms.lower_bounds.code_mutants import MUTANTS
from tests.statistics import check_audits

DRAWS_A_SIDE = 1_500
#: A code so small that an audit takes a fraction of a second; its levels are exact all the same.
CODE = BonehShaw(4, 6)


@dataclass(frozen=True)
class Blocks:
    """The second number of `Tracing` alone: for Gaussian noise its distribution is known."""

    traced: Tracing

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return self.traced(data, n, rng)[:, 1]


def check(mechanism: Any, claim: Guarantee) -> None:
    """The harness: fails if alarms or bounds above the exact level are too many for a rate of 5 %."""
    family = Family("tracing", mechanism, claim, (Tracing(_Coins(), CODE).pair(),))
    check_audits(lambda seed: trial(family, "budget", seed, DRAWS_A_SIDE))


@pytest.mark.parametrize(("accurate", "delta"), [(False, 0.0), (True, 1 / 30)])
def test_accusations_raise_few_alarms(accurate: bool, delta: float) -> None:
    """False alarm: 1e-6 for alarms, and 1e-6 for bounds."""
    target: Any = _WithinOneHalf() if accurate else GaussianMeans(0.5)
    level = accusation_level(CODE, _uniform_noise if accurate else _Gaussian(0.5), delta)
    assert 0.1 < level < math.inf
    check(Tracing(target, CODE), ApproxDP(level, delta))


def test_blocks_raise_few_alarms() -> None:
    """A mean moves by 1/rows, the difference of two means of 6 columns: a Gaussian pair. False alarm: 1e-6 twice."""
    target = GaussianMeans(1.0)
    mu = 1 / (3 * target.deviation * math.sqrt(2 / CODE.block))
    check(Blocks(Tracing(target, CODE, difference=True)), GaussianDP(mu))


@pytest.mark.parametrize("name", ["tracer_sees_i", "infeasible_accusations_uncounted"])
def test_the_harness_finds_a_tracer_that_sees_too_much(name: str) -> None:
    """Answers that ignore the data are private at every level, and a mistaken audit nearly always says otherwise."""
    traced = Tracing(_Coins(), CODE)
    check(traced, ApproxDP(0.5))
    with pytest.raises(AssertionError, match="false alarms"):
        check(MUTANTS[name].build(traced), ApproxDP(0.5))
