"""Noninteractive local protocols: all calls are committed to before the first answer.

The commitment is a frozen list and its hash; whoever then asks anything else, because of what was answered, is refused.
Source: document 002, section 5, Definition 5.3; catalogue 002, local_model_oracle (audit of noninteractivity).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditor.targets.interactive import SKIP, Queries, pool_indices
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require
from mechanisms.local_model.local_model import SILENT, LocalOracle, OracleBranches, OracleSession


@dataclass(frozen=True)
class NoninteractiveOracle:
    """An oracle that wants all calls committed to before the first answer, and answers those and no others.

    Parameters
    ----------
    oracle : LocalOracle
        Who answers.
    calls : sequence of int
        Queries in the order in which they will be asked.

    Raises
    ------
    ValueError
        If there are no calls, or the levels of the calls on one person exceed the budget: where everything is known
        beforehand nothing has to be refused later.
    """

    oracle: LocalOracle
    calls: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", tuple(int(call) for call in self.calls))
        query = pool_indices(np.array(self.calls, dtype=np.int64), len(self.calls), self.oracle.pool)
        require(query.size > 0 and bool((query != SKIP).all()), "at least one call, and no pauses", self.calls)
        cost = self.oracle.costs[query % len(self.oracle.randomizers)]
        spent = np.zeros(self.oracle.people, dtype=np.int64)
        np.add.at(spent, query // len(self.oracle.randomizers), cost)
        within = bool((spent <= self.oracle.budget).all())
        require(within, f"calls of levels that sum to at most {self.oracle.epsilon!r} for each person", self.calls)

    @property
    def epsilon(self) -> float:
        """Budget of a person."""
        return self.oracle.epsilon

    @property
    def commitment(self) -> str:
        """SHA-256 of the calls, in hexadecimal: what is published before the first answer."""
        return hashlib.sha256(",".join(map(str, self.calls)).encode()).hexdigest()

    def start(self, data: Dataset, n: int, rng: np.random.Generator) -> CommittedSession:
        """Begin `n` runs; see `auditor.targets.interactive.Interactive`."""
        return CommittedSession(self, self.oracle.start(data, n, rng))

    def branches(self, data: Dataset, rounds: int) -> CommittedBranches:
        """Begin the tree of answers; see `auditor.targets.interactive.Branching`."""
        return CommittedBranches(self, self.oracle.branches(data, rounds))


class _CommittedQueries:
    """Compares what is asked with what was committed to."""

    def __init__(self, agreed: NoninteractiveOracle) -> None:
        self._agreed, self._round = agreed, 0

    def check(self, queries: Queries) -> None:
        """Raise a ValueError unless this is the next of the calls, in all rows."""
        agreed, t = self._agreed, self._round
        asked = sorted(set(np.atleast_1d(queries).tolist()))
        wanted = [agreed.calls[t]] if t < len(agreed.calls) else [SKIP]
        require(asked == wanted, f"call {t + 1} of the commitment {agreed.commitment[:12]}, {wanted}", asked)
        self._round += 1


class CommittedSession(_CommittedQueries):
    """Runs of a noninteractive protocol; see `auditor.targets.interactive.Session`."""

    silence: ClassVar[int] = SILENT

    def __init__(self, agreed: NoninteractiveOracle, session: OracleSession) -> None:
        super().__init__(agreed)
        self._session = session

    def ask(self, queries: Queries) -> IntArray:
        """Return shape (n,)."""
        self.check(queries)
        return self._session.ask(queries)


class CommittedBranches(_CommittedQueries):
    """Tree of a noninteractive protocol's answers; see `auditor.targets.interactive.Branches`."""

    silence: ClassVar[int] = SILENT

    def __init__(self, agreed: NoninteractiveOracle, branches: OracleBranches) -> None:
        super().__init__(agreed)
        self._branches = branches

    def ask(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """See `OracleBranches.ask`."""
        self.check(queries)
        return self._branches.ask(queries)

    def mass(self) -> FloatArray:
        """Probability of each branch's answers, shape (branches,)."""
        return self._branches.mass()
