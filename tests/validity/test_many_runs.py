"""False alarms of audits of many training runs at zero margin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from auditor.audits.training.many_runs import EVIDENCE
from auditor.privacy.guarantees import GaussianDP, Guarantee, PureDP
from auditor.training import audit_runs
from tests.statistics import ALLOWED as ALPHA
from tests.statistics import check_rates

RUNS = 120


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
    def alarms(seed: int) -> tuple[bool]:
        result = audit_runs(
            train, [1], [0], None, claim, runs=RUNS, evidence=evidence, alpha=ALPHA, seed=seed, progress=False
        )
        return (result.verdict == "violation",)

    check_rates(alarms, "false alarms")
