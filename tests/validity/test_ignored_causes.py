"""What is stated without floating point holds, of noise that is right but for its floats and of noise that is not.

Laplace noise of numpy that is just wide enough is at zero margin in all events but those on bits. The first audit
refutes it, rightly. Each "also violated without floating-point" would be false.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from auditor import Pair, PureDP, Verdict
from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.results import AuditResult

ALPHA, AUDITS, DRAWS = 0.05, 40, 1_000
#: More alarms than this have a probability of at most 1e-6 for a rate of 5 %.
MOST = int(stats.binom.isf(1e-6, AUDITS, ALPHA))

Mechanism = Callable[[float, int, np.random.Generator], Any]


def laplace(scale: float) -> Mechanism:
    return lambda data, n, rng: data + rng.laplace(scale=scale, size=n)


def run(mechanism: Mechanism, seed: int) -> AuditResult:
    # The draws are independent; tests of that would take a third of the time.
    settings = Settings(alpha=ALPHA, draws=DRAWS, seed=seed, also=True, independence=False)
    return run_audit(mechanism, PureDP(1.0), [Pair(0.0, 1.0)], settings, Question("null"))


def test_false_statements_beside_a_true_one_are_rare() -> None:
    found = [run(laplace(1.0), seed) for seed in range(AUDITS)]
    first = [result for result in found if result.also]
    assert len(first) > AUDITS / 2  # the bits were found: there was something to ignore
    false = sum(other["verdict"] == Verdict.VIOLATION for result in first for other in result.also)
    assert false <= MOST


def test_the_harness_finds_noise_that_is_too_narrow() -> None:
    found = [run(laplace(0.5), seed) for seed in range(AUDITS)]
    wrong = [other["cause"] for result in found for other in result.also if other["verdict"] == Verdict.VIOLATION]
    assert len(wrong) > MOST
    assert not any(cause.startswith("floating-point") for cause in wrong)
