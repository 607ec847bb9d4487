"""False alarms of adversaries at zero margin: targets on which they do exactly as well as is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.adversaries import Game, run_game
from auditor.audits.adversaries.base import FloatArray
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee, PureDP
from auditor.results import Verdict
from tests.unit.audits.test_adversaries import Reading

ALPHA, RUNS, GAMES, BITS = 0.1, 250, 40, 10
#: A test fails with probability below 1e-6 where false alarms have probability ALPHA.
MOST = int(stats.binom.isf(1e-6, RUNS, ALPHA))


@dataclass(frozen=True)
class Attaining:
    """Each bit's column tells it with exactly the probability that is allowed; several tables at once."""

    release: Callable[[FloatArray, np.random.Generator], FloatArray]

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
        truth = np.diagonal(np.asarray(data))
        return self.release(np.repeat(truth[None], n, axis=0), rng)

    def each(self, stack: Any, rng: np.random.Generator) -> FloatArray:
        return self.release(np.diagonal(stack, axis1=1, axis2=2), rng)


def responses(bits: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Randomised response, epsilon = 1."""
    return np.abs(bits - (rng.random(bits.shape) > math.e / (1 + math.e)))


def sometimes_told(bits: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The truth with probability 0.1, and else randomised response: (1, 0.1)."""
    return np.where(rng.random(bits.shape) < 0.1, bits, responses(bits, rng))


def together(bits: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(1, 0.1) in which all bits are told at once or none is: the right ones of a game depend on one another."""
    return np.where(rng.random((len(bits), 1)) < 0.1, bits, responses(bits, rng))


def gaussian(bits: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Gaussian noise, mu = 1, and sensitivity 1."""
    return bits + rng.normal(size=bits.shape)


NULLS: dict[str, tuple[Guarantee, Callable[[FloatArray, np.random.Generator], FloatArray]]] = {
    "pure": (PureDP(1.0), responses),
    "approximate": (ApproxDP(1.0, 0.1), sometimes_told),
    "approximate, all bits at once": (ApproxDP(1.0, 0.1), together),
    "gaussian": (GaussianDP(1.0), gaussian),
}


@pytest.mark.parametrize("name", NULLS)
def test_an_adversary_that_does_as_well_as_allowed_is_rarely_an_alarm(name: str) -> None:
    guarantee, release = NULLS[name]
    game, alarms, above = Game(Attaining(release), Reading(BITS)), 0, 0
    for seed in range(RUNS):
        settings = Settings(alpha=ALPHA, draws=GAMES, stop="budget", seed=seed, independence=False)
        found = run_game(game, guarantee, settings, Question())
        alarms += found.verdict == Verdict.VIOLATION
        assert found.lower_bound is not None
        above += found.lower_bound > guarantee.level
    assert alarms <= MOST
    assert above <= MOST
