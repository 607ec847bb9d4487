"""A mechanism at which group privacy is attained, and what group privacy says.

Source: D003 Theorem 2.1.1; catalogue 000_001_003, group_privacy and J1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, require, require_draws, require_positive
from mechanisms.base.queries import Query


def group_delta(epsilon: float, delta: float, distance: int) -> float:
    """Delta at ``distance * epsilon`` of an (epsilon, delta)-DP mechanism on datasets `distance` steps apart.

    Parameters
    ----------
    epsilon, delta : float
        Guarantee on neighbours; epsilon >= 0, delta in [0, 1].
    distance : int
        Number of steps between neighbours, at least 1.

    Returns
    -------
    float
        ``delta (1 + e^epsilon + ... + e^((distance - 1) epsilon))``, which is what the proof of the theorem adds up.
        It may exceed 1.

    Notes
    -----
    No smaller delta holds for all mechanisms: `TightGroupPrivacyChain` attains it.
    """
    _check(epsilon, delta, distance)
    if epsilon == 0.0:
        return distance * delta
    return delta * math.expm1(distance * epsilon) / math.expm1(epsilon)


def printed_group_delta(epsilon: float, delta: float, distance: int) -> float:
    """``e^(distance epsilon) delta``, the delta of 003, Theorem 2.1.1, in the copy we have.

    It is smaller than `group_delta` if ``epsilon < ln(2 - e^(-distance epsilon))``; see `group_delta` for the
    parameters.
    """
    _check(epsilon, delta, distance)
    return math.exp(distance * epsilon) * delta


def _check(epsilon: float, delta: float, distance: int) -> None:
    require(0.0 <= epsilon < math.inf, "a finite epsilon >= 0", epsilon)
    require(0.0 <= delta <= 1.0, "delta in [0, 1]", delta)
    require(isinstance(distance, (int, np.integer)) and distance >= 1, "a distance >= 1", distance)


@dataclass(frozen=True)
class TightGroupPrivacyChain:
    """One bit whose probability falls along a chain of datasets as fast as (epsilon, delta)-DP lets it.

    Parameters
    ----------
    query : Query
        A count: an integer answer of shape () that neighbours move by at most 1. Cut off at `length`, it is the place
        in the chain.
    epsilon, delta : float
        The claim; epsilon > 0, delta in (0, 1).
    length : int
        Number k of steps in the chain, at least 1.

    Raises
    ------
    ValueError
        If the query is no count of sensitivity 1, or the probabilities grow so large along the chain that
        (epsilon, delta)-DP fails for the complement of the event.

    Notes
    -----
    ``P[1] = 0`` at place k, and ``P[1 | i] = e^epsilon P[1 | i + 1] + delta`` before it, so ``P[1 | 0]`` is
    ``group_delta(epsilon, delta, k)`` where the other end has 0. Of the four inequalities of neighbours i, i + 1 this
    is the first with equality. The event {1} in the other order holds because P[1] falls; {0} from i + 1 to i,
    ``1 - P[1 | i + 1] <= e^epsilon (1 - P[1 | i]) + delta``, becomes ``P[1 | i + 1] <= (1 - delta) / (1 + e^epsilon)``,
    which is the condition on the parameters; {0} in the other order again holds because P[1] falls.
    """

    query: Query
    epsilon: float
    delta: float
    length: int

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 < self.delta < 1, "delta in (0, 1)", self.delta)
        whole = isinstance(self.length, (int, np.integer)) and not isinstance(self.length, bool)
        require(whole and self.length >= 1, "a length >= 1", self.length)
        both = (self.query.sensitivity, self.query.granularity)
        require(both == (1.0, 1.0), "a count of sensitivity 1 and granularity 1", both)
        most = (1.0 - self.delta) / (1.0 + math.exp(self.epsilon))
        require(self.probability(1) <= most, f"a probability at place 1 of at most {most:g}", self.probability(1))

    def probability(self, place: int) -> float:
        """``P[1]`` at one place of the chain, 0 to `length`."""
        require(0 <= place <= self.length, f"a place from 0 to {self.length}", place)
        left = self.length - place
        return group_delta(self.epsilon, self.delta, left) if left else 0.0

    def place(self, data: Dataset) -> int:
        """Where in the chain a dataset is; ValueError if the query does not answer a number >= 0."""
        answer = self.query(data)
        require(answer.shape == () and float(answer) >= 0, "one answer >= 0", answer)
        return min(int(answer), self.length)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Draw `n` bits; uint8 of shape (n,)."""
        require_draws(n)
        return (rng.random(n) < self.probability(self.place(data))).astype(np.uint8)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data`."""
        one = self.probability(self.place(data))
        return FiniteLaw((0, 1), np.array([1.0 - one, one]))
