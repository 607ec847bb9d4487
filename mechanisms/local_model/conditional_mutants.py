"""Wrong ways to simulate repeated calls on one entry by statistical queries: what they lose is fidelity.

Source: document 002, section 5.1.2, Claim 5.10; catalogue 002, sq_sim_interactive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.base.mechanism import FloatArray, Mutant, Twin, tabulate_mutants
from mechanisms.local_model.conditional_simulation import ConditionalSimulation


@dataclass(frozen=True)
class IndependentMarginals(ConditionalSimulation):
    """Past answers are ignored: each call is simulated by its marginal distribution, as if on a fresh entry."""

    def history(self, past: tuple[int, ...]) -> FloatArray:
        """One."""
        del past
        return np.ones(self.calls.inputs)


@dataclass(frozen=True)
class StepLevelInScaling(ConditionalSimulation):
    """The first query is scaled by the level of its own call, not of all: it leaves [-1, 1], and is cut off."""

    def width(self, past: tuple[int, ...]) -> float:
        """``e^epsilon_k - e^-epsilon_k``."""
        return 2.0 * math.sinh(self.calls.at(past).randomizer.epsilon)


@dataclass(frozen=True)
class OthersHistory(ConditionalSimulation):
    """A simulation for one entry looks at the past answers of the next entry; with two entries or more."""

    def whose(self, entry: int) -> int:
        """The next entry, in a circle."""
        return (entry + 1) % self.entries


MUTANTS: dict[str, Mutant[Any]] = tabulate_mutants(
    Mutant("independent_marginals", Twin(IndependentMarginals), None, "benign", "past answers ignored: correlation 0"),
    Mutant(
        "step_eps_in_scaling", Twin(StepLevelInScaling), None, "benign", "the level of one call scales the query of all"
    ),
    Mutant("wrong_history", Twin(OthersHistory), None, "benign", "conditioned on the answers of another entry"),
)
