"""False alarms of audits of canary scores at zero margin, and the assumption without which there would be many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from auditor import audit_scores
from auditor.audits.training.scores import INDEPENDENT, NOTHING
from auditor.privacy.guarantees import GaussianDP, Guarantee, PureDP
from tests.statistics import ALLOWED as ALPHA
from tests.statistics import check_rates

CANARIES = 300


def gaussian(rng: np.random.Generator, coins: Any) -> Any:
    """Exactly 1-GDP for each canary, but for rounding, and none knows of another."""
    return np.round(rng.normal(size=len(coins)) + coins, 2)


def responses(rng: np.random.Generator, coins: Any) -> Any:
    """Randomised response at level 1: many equal scores."""
    return np.where(rng.random(len(coins)) < math.e / (1 + math.e), coins, ~coins).astype(float)


def interacting(rng: np.random.Generator, coins: Any) -> Any:
    """All coins through randomised response at once or none: exactly within 1-GDP for each canary."""
    if rng.random() >= 0.7485:
        return np.zeros(len(coins))
    return np.where(rng.random(len(coins)) < math.exp(1.05) / (1 + math.exp(1.05)), coins, ~coins).astype(float)


def unequal(rng: np.random.Generator, coins: Any) -> Any:
    """Canaries of very different scores, each of which says nothing of its coin."""
    return rng.permutation(len(coins)) // 40 + 0.0


Scores = Callable[[np.random.Generator, Any], Any]


def check(make: Scores, claim: Guarantee, assume: str, canaries: int = CANARIES) -> None:
    """The harness: fails if alarms are too many for a rate of 5 %."""

    def alarms(seed: int) -> tuple[bool]:
        rng = np.random.default_rng(70_000 + seed)
        coins = rng.random(canaries) < 0.5
        scores = make(rng, coins)
        found = audit_scores(scores[coins], scores[~coins], claim, assume=assume, alpha=ALPHA, seed=seed)
        return (found.verdict == "violation",)

    check_rates(alarms, "false alarms")


@pytest.mark.parametrize(
    ("make", "claim", "assume"),
    [
        (gaussian, GaussianDP(1.0), NOTHING),
        (gaussian, GaussianDP(1.0), INDEPENDENT),
        (responses, PureDP(1.0), NOTHING),
        (responses, PureDP(1.0), INDEPENDENT),
        (interacting, GaussianDP(1.0), NOTHING),
        (interacting, PureDP(1.05), NOTHING),
        (unequal, PureDP(0.0), NOTHING),
        (unequal, PureDP(0.0), INDEPENDENT),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_alarms_are_rare_where_the_assumption_holds(make: Scores, claim: Guarantee, assume: str) -> None:
    check(make, claim, assume)


def test_interacting_canaries_make_the_assumption_fail() -> None:
    with pytest.raises(AssertionError, match="false alarms"):
        check(interacting, GaussianDP(1.0), INDEPENDENT, 1_000)
