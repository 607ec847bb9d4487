"""The game of adaptive composition: an adversary picks each pair of datasets and each mechanism after past answers.

Source: D003, remark on adaptivity after Theorem 2.1.3; catalogue 000_001_003, advanced_composition; Dwork, Rothblum and
Vadhan (2010), section III, for the game.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.targets.interactive import SKIP, History, Queries, pool_indices
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.composition.composition import RowBit

#: Answer where there is none.
_SILENT = -1


@dataclass(frozen=True)
class CompositionGame:
    """Answers up to `steps` queries of an adversary who chooses each in view of past answers.

    Parameters
    ----------
    bit : RowBit
        The secret: it tells the two datasets apart.
    step_epsilon : float
        Level of each answer, > 0.
    steps : int
        Queries that are answered; the run is silent (-1) afterwards.
    rare : float, default 0.3
        Probability of the answer 1 of a rare query where it is less probable, in (0, 1 / (1 + e^step_epsilon)].

    Notes
    -----
    A query names a pair of datasets and a mechanism. The pool has four: 0 a randomised response to the bit, 2 a rare
    query, whose answer 1 has probability `rare` for one value of the bit and ``e^step_epsilon rare`` for the other; 1
    and 3 the same with the pair exchanged. Every answer is of level `step_epsilon`, exactly. Answers are 0 and 1, int8.
    """

    bit: RowBit
    step_epsilon: float
    steps: int
    rare: float = 0.3

    #: Number of queries in the pool.
    pool: ClassVar[int] = 4

    def __post_init__(self) -> None:
        require_positive("step_epsilon", self.step_epsilon)
        whole = isinstance(self.steps, (int, np.integer)) and not isinstance(self.steps, bool)
        require(whole and self.steps >= 1, "steps >= 1", self.steps)
        most = float(special.expit(-self.step_epsilon))
        require(0.0 < self.rare <= most, f"rare in (0, {most:g}]", self.rare)

    def probabilities(self, data: Dataset) -> FloatArray:
        """Probability of the answer 1 to each query of the pool, shape (4,)."""
        likely, unlikely = special.expit(self.step_epsilon), special.expit(-self.step_epsilon)
        often = math.exp(self.step_epsilon) * self.rare
        ones = np.array([likely, unlikely, often, self.rare])
        return ones if self.bit(data) else ones[[1, 0, 3, 2]]

    def start(self, data: Dataset, n: int, rng: np.random.Generator) -> GameSession:
        """Begin `n` runs on `data`; see `auditor.targets.interactive.Interactive`."""
        require_draws(n)
        return GameSession(self.probabilities(data), self.steps, n, rng)

    def branches(self, data: Dataset, rounds: int) -> GameBranches:
        """Begin the tree of answers on `data`; see `auditor.targets.interactive.Branching`."""
        del rounds
        return GameBranches(self.probabilities(data), self.steps)


class GameSession:
    """Runs of the game side by side; see `auditor.targets.interactive.Session`.

    Parameters
    ----------
    ones : ndarray of shape (pool,)
        Probability of the answer 1 to each query.
    steps, n : int
        Queries that are answered in a run; number of runs.
    rng : numpy.random.Generator
        Source of all coins.
    """

    silence: ClassVar[int] = _SILENT

    def __init__(self, ones: FloatArray, steps: int, n: int, rng: np.random.Generator) -> None:
        self._ones, self._n, self._rng = ones, n, rng
        self._left = np.full(n, steps, dtype=np.int64)

    def ask(self, queries: Queries) -> NDArray[np.int8]:
        """Return shape (n,): 0 or 1, -1 where nothing is asked or no query is left."""
        indices = pool_indices(queries, self._n, self._ones.size)
        answered = (indices != SKIP) & (self._left > 0)
        self._left -= answered
        ones = self._rng.random(self._n) < self._ones[indices]
        return np.where(answered, ones, _SILENT).astype(np.int8)


class GameBranches:
    """Tree of the game's answers; see `auditor.targets.interactive.Branches` and, for the parameters, `GameSession`."""

    silence: ClassVar[int] = _SILENT

    def __init__(self, ones: FloatArray, steps: int) -> None:
        self._ones = ones
        self._left = np.array([steps], dtype=np.int64)
        self._mass = np.ones(1)

    def ask(self, queries: IntArray) -> tuple[IntArray, NDArray[np.int8]]:
        """Two branches for each that is answered, one for the others."""
        indices = pool_indices(queries, self._left.size, self._ones.size)
        answered = (indices != SKIP) & (self._left > 0)
        parents = np.repeat(np.arange(self._left.size), np.where(answered, 2, 1))
        second = np.concatenate([[False], parents[1:] == parents[:-1]])
        asked = answered[parents]
        one = self._ones[indices[parents]]
        self._mass = self._mass[parents] * np.where(asked, np.where(second, one, 1.0 - one), 1.0)
        self._left = self._left[parents] - asked
        return parents, np.where(asked, second, _SILENT).astype(np.int8)

    def mass(self) -> FloatArray:
        """Probability of each branch's answers, shape (branches,)."""
        return self._mass


@dataclass(frozen=True)
class QuitWhenAhead:
    """An adversary of `CompositionGame` who stops when the answers point far enough to the bit being 1.

    Parameters
    ----------
    rounds : int
        Most queries that it asks.
    lead : int
        Answers for the bit being 1, less answers against, at which it stops.

    Notes
    -----
    It asks for responses, with the pair exchanged after every answer 1, and one answer before the lead for the rare
    query, whose answer 0 takes back less than a response does; that is not counted. A run that has reached the lead
    does not fall back, which no fixed list of queries can see to.
    """

    rounds: int
    lead: int
    adaptive: ClassVar[bool] = True
    coins: ClassVar[int] = 0

    def __post_init__(self) -> None:
        require(self.rounds >= 1, "rounds >= 1", self.rounds)
        require(self.lead >= 1, "a lead >= 1", self.lead)

    def __call__(self, history: History) -> Queries:
        """Return the next query of each trial, shape (n,)."""
        if not history.rounds:
            return 0
        asked, answers = history.asked, np.asarray(history.answers, dtype=np.int64)
        answered = (asked != SKIP) & (answers != _SILENT)
        exchanged, rare = asked % 2, asked >= 2
        sign = np.where(answers == 1, 1, np.where(rare, 0, -1)) * np.where(exchanged == 1, -1, 1)
        ahead = np.where(answered, sign, 0).sum(axis=1)
        swap = np.where(answers[:, -1] == 1, 1 - exchanged[:, -1], exchanged[:, -1])
        query = np.where(ahead == self.lead - 1, 2, swap)
        return np.where((ahead >= self.lead) | history.halted() | ~answered[:, -1], SKIP, query).astype(np.int64)
