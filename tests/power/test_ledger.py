"""Violations too small for one night are found over nights, with about the draws of one long run."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from auditor.results import Verdict
from auditor.runs.ledger import Ledger
from auditor.runs.ledger.session import share_of

PAIR = [Pair(0, 1, "0 against 1")]
#: Claimed 1.0, true 1.0986: 0.0020 nats a draw a side by the whole chain of events, so that 13.8 nats, for
#: alpha = 1e-6, need some 7,000 draws a side of who knows the event, and twice to three times that here.
SETTINGS = Settings(draws=6_000, alpha=1e-6, independence=False)
LEDGERS, NIGHTS = 4, 20


def coin(data: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Randomised response at epsilon = ln 3."""
    return np.where(rng.random(n) < 0.75, data, 1 - data)


def nights_until_found(path: Path) -> int | None:
    """Nights that a ledger takes; None if they were not enough."""
    for k in range(NIGHTS):
        question = Question("own/coin/L1/pure_dp/small", ledger=Ledger(path))
        if run_audit(coin, PureDP(1.0), PAIR, SETTINGS, question).verdict == Verdict.VIOLATION:
            return k + 1
    return None


def test_a_violation_too_small_for_one_night_is_found_over_nights(tmp_path: Path) -> None:
    # One night gains 6 nats in the mean at best, with a standard deviation of 3.5; 20 nights gain 120 +- 15, less what
    # learning costs. So a ledger that does not find it in 20 nights has a probability below 1e-6.
    found = [nights_until_found(tmp_path / f"{k}") for k in range(LEDGERS)]
    assert None not in found
    assert sum(k for k in found if k) / LEDGERS > 1.5  # it is not found in the first night as a rule


def test_many_nights_find_what_one_long_run_finds(tmp_path: Path) -> None:
    draws = SETTINGS.draws * 6
    for _ in range(6):
        question = Question("own/coin/L1/pure_dp/bound", ledger=Ledger(tmp_path / "ledger"))
        nightly = run_audit(coin, PureDP(1.5), PAIR, SETTINGS, question)
    alpha = 1e-6 * share_of(1)
    long = run_audit(coin, PureDP(1.5), PAIR, Settings(draws=draws, alpha=alpha, independence=False), Question("long"))
    assert nightly.draws == long.draws == draws
    assert nightly.ceiling == long.ceiling
    assert nightly.lower_bound is not None
    assert long.lower_bound is not None
    # The certified level is one minus about sqrt(2 * 13.8 / draws a side): both are within 0.15 of ln 3 at least.
    assert math.log(3) - 0.2 < nightly.lower_bound <= math.log(3)
    assert math.log(3) - 0.2 < long.lower_bound <= math.log(3)
