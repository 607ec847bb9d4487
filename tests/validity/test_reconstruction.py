"""False alarms of reconstruction at zero margin, where the attack attains the bound exactly.

Rates are compared with alpha by a binomial bound at 1e-6, so that each of these tests fails for a valid procedure with
at most that probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.adversaries import Game, run_game
from auditor.audits.adversaries.base import FloatArray
from auditor.audits.adversaries.reconstruction import Bits, Reconstruction
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.privacy.guarantees import ApproxDP, Guarantee, PureDP
from auditor.results import Verdict

FALSE_ALARM = 1e-6
ALPHA, RUNS, GAMES = 0.1, 120, 32


@dataclass(frozen=True)
class Bitwise(Reconstruction):
    """Each bit has a column of its own, and the programme rounds each answer: the best attack on responses."""

    def questions(self, n: int, rng: np.random.Generator) -> Bits:
        """The identity."""
        del rng
        return np.tile(np.eye(self.rows, dtype=np.int8), (n, 1, 1))


@dataclass(frozen=True)
class Responses:
    """Randomised response to each person's bit, of the diagonal; with probability delta it is released instead."""

    epsilon: float
    delta: float = 0.0

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n releases of one table."""
        return self.each(np.broadcast_to(data, (n, *np.shape(data))), rng)

    def each(self, stack: Any, rng: np.random.Generator) -> FloatArray:
        """One release of each table."""
        truth = np.diagonal(stack, axis1=1, axis2=2)
        lies = rng.random(truth.shape) < (1 - self.delta) / (1 + math.exp(self.epsilon))
        return np.asarray(np.abs(truth - lies), dtype=np.float64)


@dataclass(frozen=True)
class Sometimes:
    """With probability delta the exact counts, else zeros: (0, delta)-DP."""

    delta: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n releases of one table."""
        return self.each(np.broadcast_to(data, (n, *np.shape(data))), rng)

    def each(self, stack: Any, rng: np.random.Generator) -> FloatArray:
        """One release of each table."""
        shown = rng.random((len(stack), 1)) < self.delta
        return np.where(shown, stack.sum(axis=1, dtype=np.float64), 0.0)


@pytest.mark.parametrize(
    ("target", "claimed", "attack"),
    [
        (Responses(1.0), PureDP(1.0), Bitwise(4, 4)),
        (Responses(1.0, 0.1), ApproxDP(1.0, 0.1), Bitwise(4, 4)),
        (Sometimes(0.3), ApproxDP(0.0, 0.3), Reconstruction(6, 30)),
        (Responses(1.0), PureDP(1.0), Bitwise(4, 4, wrong=0)),
    ],
    ids=["pure", "approximate", "random queries", "all or nothing"],
)
def test_a_claim_that_is_attained_is_rarely_called_violated(target: Any, claimed: Guarantee, attack: Any) -> None:
    """Expected scores are the bounds themselves, but for all or nothing, whose bound is not attained."""
    settings = [Settings(alpha=ALPHA, draws=GAMES, stop="budget", seed=s, independence=False) for s in range(RUNS)]
    found = [run_game(Game(target, attack), claimed, one, Question()) for one in settings]
    most = int(stats.binom.isf(FALSE_ALARM, RUNS, ALPHA))
    assert sum(result.verdict == Verdict.VIOLATION for result in found) <= most
    # A lower bound above the truth, which is the claim, is a false alarm as well.
    assert sum((result.lower_bound or 0.0) > claimed.level * (1 + 1e-9) for result in found) <= most


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 0.1), (0.2, 0.3)])
def test_the_bitwise_attack_attains_the_bound(epsilon: float, delta: float) -> None:
    """(e^epsilon + delta) / (1 + e^epsilon), by 40,000 bits."""
    attack = Bitwise(8, 8)
    scores = Game(Responses(epsilon, delta), attack)(None, 5_000, np.random.default_rng(1))
    claimed = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    law = stats.binom(scores.size * 8, attack.most(claimed, epsilon))
    assert law.ppf(FALSE_ALARM / 2) <= scores.sum() * 8 <= law.isf(FALSE_ALARM / 2)
