"""From statistical queries to a local protocol and back: the two simulations, one after the other.

An algorithm that learns from statistical queries is run by a local protocol, whose persons send messages of randomised
response; the protocol in turn is simulated by statistical queries, a rejection simulation for each message. What comes
out has to be what the algorithm could have output with some valid oracle.

Source: document 002, Lemma 5.8 and Theorem 5.14; catalogue 002, sq_local_roundtrip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from auditor.privacy.exact import FiniteLaw
from auditor.targets.interactive import BoolArray
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.local_model.conditional_simulation import ConditionalSimulation, in_turn
from mechanisms.local_model.rejection_simulation import RejectionSimulation, finite
from mechanisms.local_model.response_protocol import BooleanQueryStep, LocalProtocol, followed, message, outcomes
from mechanisms.statistical_queries.sq_oracles import StatisticalQueryOracle


@dataclass(frozen=True)
class RoundTrip:
    """A local protocol on persons drawn from a distribution, all of its calls simulated by statistical queries.

    Parameters
    ----------
    protocol : LocalProtocol
        What is simulated. With the same persons for all queries, of two queries.
    beta : float
        Claimed total variation between its output and the simulation's.
    oracles : tuple of StatisticalQueryOracle
        Who answers the simulation's queries about messages to the k-th query of the algorithm, given as arrays of shape
        (.., 2) in the order of the messages 0, 1. With the same persons: who answers the two queries of a round.

    Notes
    -----
    The data are the distribution, shape (inputs,). Fresh persons are simulated one message each by
    `RejectionSimulation`; the two messages of a person by `ConditionalSimulation`.
    """

    protocol: LocalProtocol
    beta: float
    oracles: tuple[StatisticalQueryOracle, ...]

    def __post_init__(self) -> None:
        depth = self.protocol.algorithm.depth
        require(len(self.oracles) == depth, f"{depth} oracles", self.oracles)
        require(not self.protocol.same or depth == 2, "two queries to the same persons", depth)

    def call(self, ask: BooleanQueryStep, k: int) -> RejectionSimulation:
        """Simulates a message of a fresh person to the k-th query."""
        return RejectionSimulation(
            message(ask.query, self.protocol.level), self.beta, self.protocol.messages, self.oracles[k]
        )

    def both(self, second: BooleanQueryStep) -> ConditionalSimulation:
        """Simulates the two messages of a person, of whom the second query was this one."""
        first, level = self.protocol.algorithm, self.protocol.level
        calls = in_turn(message(first.query, level), message(second.query, level))
        numerator, denominator = self.oracles
        return ConditionalSimulation(calls, self.beta, numerator, denominator, self.protocol.persons)

    def local_law(self, data: Dataset) -> FloatArray:
        """Exact output distribution of the protocol itself, on persons drawn at random; shape (outputs,)."""
        if not self.protocol.same:
            return self._distribution_of_output(lambda ask, k: float(self.call(ask, k).target(data)[1]))
        return self._distribution_of_two_messages(lambda ask, past: float(self.both(ask).step_target(past, data)[1]))

    def output_law(self, data: Dataset) -> FloatArray:
        """Exact distribution of the output of the simulation, for oracles that draw nothing; shape (outputs,)."""
        if not self.protocol.same:
            return self._distribution_of_output(lambda ask, k: float(self.call(ask, k).output_law(data)[1]))
        return self._distribution_of_two_messages(lambda ask, past: float(self.both(ask).step_law(past, data)[1]))

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the output of the simulation, for oracles that draw nothing."""
        return finite(self.output_law(data))

    def missed(self, law: FloatArray, data: Dataset, tolerance: float) -> float:
        """Probability of an output that the algorithm has with no oracle of this tolerance."""
        valid = sorted(self.protocol.algorithm.valid_outputs(data, tolerance))
        return float(np.delete(law, valid).sum())

    def _distribution_of_output(self, chance: Callable[[BooleanQueryStep, int], float]) -> FloatArray:
        """Distribution of the output, where a message to the k-th query is 1 with a given probability."""

        def above(ask: BooleanQueryStep, k: int) -> float:
            return float(stats.binom.sf(self.protocol.least(ask) - 1, self.protocol.persons, chance(ask, k)))

        return outcomes(self.protocol.algorithm, above)

    def _distribution_of_two_messages(self, chance: Callable[[BooleanQueryStep, tuple[int, ...]], float]) -> FloatArray:
        """The same for two messages of each person; a message's probability is given by the past one's."""
        first, n, mass = self.protocol.algorithm, self.protocol.persons, np.zeros((2, 2))
        counts = np.arange(n + 1)
        for high, second in enumerate(first.branches()):
            assert isinstance(second, BooleanQueryStep)
            ones = stats.binom.pmf(counts, n, chance(second, ()))
            ones[counts < self.protocol.least(first) if high else counts >= self.protocol.least(first)] = 0.0
            after = chance(second, (0,)), chance(second, (1,))
            # Numbers of first messages 1 whose mass is below rounding are left out.
            for c in np.flatnonzero(ones > 1e-18 * ones.max(initial=0.0)).tolist():
                # c persons said 1 and n - c said 0; how many of each say 1 then, above the threshold together.
                seconds = stats.binom.pmf(np.arange(c + 1), c, after[1])
                tail = stats.binom.sf(self.protocol.least(second) - 1 - np.arange(c + 1), n - c, after[0])
                above = float(seconds @ tail)
                mass[high, 0] += ones[c] * (1.0 - above)
                mass[high, 1] += ones[c] * above
        # Answers one after the other, 1 above the threshold, and what the algorithm outputs then.
        law = np.zeros(first.outputs())
        np.add.at(law, first.leaves(), mass.ravel())
        return law

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,)."""
        require_draws(n)
        persons, algorithm = self.protocol.persons, self.protocol.algorithm
        if not self.protocol.same:

            def above(ask: BooleanQueryStep, k: int, runs: IntArray) -> BoolArray:
                said = self.call(ask, k)(data, runs.size * persons, rng).reshape(-1, persons)
                return np.asarray(said.sum(axis=1) >= self.protocol.least(ask))

            return followed(algorithm, n, above)
        # Whatever the second query is, the first message is simulated in the same way.
        (_, second) = algorithm.branches()
        assert isinstance(second, BooleanQueryStep)
        said = self.both(second).step((), data, n * persons, rng)[0].reshape(n, persons)

        def again(ask: BooleanQueryStep, k: int, runs: IntArray) -> BoolArray:
            if k == 0:
                return np.asarray(said[runs].sum(axis=1) >= self.protocol.least(ask))
            ones, both = np.zeros(runs.size, dtype=np.int64), self.both(ask)
            for past in (0, 1):
                run, _ = np.nonzero(said[runs] == past)
                ones += np.bincount(run, both.step((past,), data, run.size, rng)[0], runs.size).astype(np.int64)
            return np.asarray(ones >= self.protocol.least(ask))

        return followed(algorithm, n, again)
