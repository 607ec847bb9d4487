"""False alarms of audits of many training runs at zero margin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.training.many_runs import EVIDENCE
from auditor.privacy.guarantees import GaussianDP, Guarantee, PureDP
from auditor.training import audit_runs

ALPHA, AUDITS, RUNS = 0.05, 100, 120
#: More alarms than these have a probability of at most 1e-6 at a rate of alpha.
MOST = int(stats.binom.isf(1e-6, AUDITS, ALPHA))


def gaussian(data: Any, rng: np.random.Generator) -> Any:
    return np.round(rng.normal() + data[0], 2)


def weights(data: Any, rng: np.random.Generator) -> Any:
    return np.round(rng.normal(size=12) + data[0] / math.sqrt(12), 2)


def responses(data: Any, rng: np.random.Generator) -> Any:
    return data[0] if rng.random() < math.e / (1 + math.e) else 1 - data[0]


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize(
    ("train", "claim"), [(gaussian, GaussianDP(1.0)), (weights, GaussianDP(1.0)), (responses, PureDP(1.0))]
)
def test_alarms_are_rare(train: Any, claim: Guarantee, evidence: str) -> None:
    found = 0
    for seed in range(AUDITS):
        result = audit_runs(
            train, [1], [0], None, claim, runs=RUNS, evidence=evidence, alpha=ALPHA, seed=seed, progress=False
        )
        found += result.verdict == "violation"
    assert found <= MOST
