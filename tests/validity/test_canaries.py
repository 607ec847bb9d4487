"""False alarms of audits of canary scores at zero margin, and the assumption without which there would be many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor import audit_scores
from auditor.audits.training.scores import INDEPENDENT, NOTHING
from auditor.privacy.guarantees import GaussianDP, Guarantee, PureDP

ALPHA, AUDITS, CANARIES = 0.05, 60, 300
#: More alarms than these have a probability of at most 1e-6 at a rate of alpha.
MOST = int(stats.binom.isf(1e-6, AUDITS, ALPHA))


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


def alarms(make: Scores, claim: Guarantee, assume: str, canaries: int = CANARIES) -> int:
    found = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng(70_000 + seed)
        coins = rng.random(canaries) < 0.5
        scores = make(rng, coins)
        found += audit_scores(scores[coins], scores[~coins], claim, assume=assume, alpha=ALPHA, seed=seed).verdict == (
            "violation"
        )
    return found


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
    assert alarms(make, claim, assume) <= MOST


def test_interacting_canaries_make_the_assumption_fail() -> None:
    assert alarms(interacting, GaussianDP(1.0), INDEPENDENT, 1_000) > MOST
