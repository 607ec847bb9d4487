"""Two variants of the simulation of a local randomizer: one with fewer queries, one with a fixed number of them.

They are what Claim 5.9 needs beyond the algorithm that is printed in its proof: at most ``e^epsilon`` expected queries
a call, and queries that do not depend on answers, not even in their number.

Source: document 002, section 5.1.2, Claim 5.9; catalogue 002, sq_sim_noninteractive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.base.noise import draw_index
from mechanisms.local_model.rejection_simulation import RejectionSimulation, reached, turns


@dataclass(frozen=True)
class ShiftAndClip(RejectionSimulation):
    """The variant for which the expected number of queries is at most ``e^epsilon``, as Claim 5.9 says.

    Parameters as in `RejectionSimulation`.

    Notes
    -----
    Valid because: with half the tolerance, half a tolerance is added to the answers. So the estimates lie between p(w)
    and ``(1 + phi) p(w)``; cut off at ``e^epsilon q(w)``, which p(w) does not exceed, they still do. A round then ends
    with probability at least ``sum p(w) / e^epsilon``, and the odds of an event are off by a factor of at most
    ``1 + phi``, which is less than the printed algorithm's. Source: catalogue 002, sq_sim_noninteractive, E10.
    """

    @property
    def tolerance(self) -> float:
        """Half of the printed tolerance."""
        return 0.5 * super().tolerance

    @property
    def ceiling(self) -> float:
        """``e^epsilon``."""
        return self.growth

    def odds(self, answers: FloatArray) -> FloatArray:
        """As in `RejectionSimulation`, of shifted answers, cut off at 1."""
        return np.minimum(super().odds(answers + self.tolerance), 1.0)


@dataclass(frozen=True)
class TruncatedSimulation(RejectionSimulation):
    """The variant with a fixed number of candidates, which all are drawn, and asked for, beforehand.

    Parameters
    ----------
    randomizer, beta, calls, oracle, reference
        As in `RejectionSimulation`.
    candidates : int, optional
        How many; default the least number for which none is accepted with probability at most ``beta / (2 t)``,
        see `enough_candidates`.

    Notes
    -----
    If none is accepted, the output is a fresh draw on the reference input. Number and choice of the queries do not
    depend on answers, so the algorithm is nonadaptive in the strict sense (Definition 5.12), where the printed one has
    a random number of rounds. The price is ``beta / 2`` of total variation, beside which the estimates cost at most
    ``beta / 6 (1 + phi)``. Source: catalogue 002, sq_sim_noninteractive, E11.
    """

    candidates: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates == 0:
            object.__setattr__(self, "candidates", enough_candidates(self.epsilon, self.beta, self.calls))
        require(self.candidates >= 1, "at least one candidate", self.candidates)

    def none_accepted(self, data: Dataset) -> float:
        """Exact probability that no candidate is accepted."""
        stays = 1.0 - self.hits(data).sum(axis=1)
        return float(np.prod(stays[np.arange(self.candidates) % stays.size]))

    def output_law(self, data: Dataset) -> FloatArray:
        """Exact distribution of the output, shape (outputs,), for an oracle that draws nothing."""
        hits, none = self._accepted_masses(data)
        return np.asarray(hits + none * self.drawn_from)

    def expected_rounds(self, data: Dataset) -> float:
        """All candidates are asked for."""
        del data
        return float(self.candidates)

    def _accepted_masses(self, data: Dataset) -> tuple[FloatArray, float]:
        """Mass of the outputs of accepted candidates, shape (outputs,), and of none accepted."""
        hits = self.hits(data)
        each = hits[np.arange(self.candidates) % len(hits)]
        return reached(each) @ each, self.none_accepted(data)

    def run(self, data: Dataset, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw `n` simulated calls; outputs and numbers of queries, int64 of shape (n,)."""
        require_draws(n)
        truth, oracles, every = self.truths(data), turns(self.oracle), np.arange(n)
        outputs = self.otherwise(n, rng)
        undecided = np.ones(n, dtype=np.bool_)
        for k in range(self.candidates):
            candidates = draw_index(self.drawn_from, n, rng)
            answers = oracles[k % len(oracles)](np.broadcast_to(truth, (n, truth.size)), self.tolerance, rng)
            accepted = undecided & (rng.random(n) < self.odds(answers)[every, candidates])
            outputs[accepted] = candidates[accepted]
            undecided &= ~accepted
            self.rejected(outputs, candidates, undecided)
        return outputs, np.full(n, self.candidates, dtype=np.int64)

    def otherwise(self, n: int, rng: np.random.Generator) -> IntArray:
        """Outputs for the case that no candidate is accepted."""
        return draw_index(self.drawn_from, n, rng)

    def rejected(self, outputs: IntArray, candidates: IntArray, undecided: Any) -> None:
        """What becomes of rejected candidates: nothing."""


def enough_candidates(epsilon: float, beta: float, calls: int) -> int:
    """Least number of candidates of which none is accepted with probability at most ``beta / (2 t)``.

    A candidate is accepted with probability at least ``e^-epsilon (1 - phi) / (1 + phi)``, phi = beta / (3 t).
    """
    phi = beta / (3.0 * calls)
    accepted = (1.0 - phi) / (1.0 + phi) * math.exp(-epsilon)
    return math.ceil(math.log(2.0 * calls / beta) / -math.log1p(-accepted))
