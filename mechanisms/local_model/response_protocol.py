"""Algorithms that learn from boolean statistical queries, and the local protocol of randomised response that runs them.

An algorithm asks t queries and compares each answer with a threshold. Answers come from messages of one bit: of fresh
persons for each query, or of the same persons for all queries, at a t-th of the level each.

The document's protocol adds Laplace noise to the queries' values; here messages are bits, so that all distributions are
finite.

Source: document 002, section 5.1.1, Theorem 5.7; catalogue 002, sq_local_roundtrip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw
from auditor.targets.interactive import BoolArray
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.local_model.local_randomizers import LocalRandomizer
from mechanisms.local_model.rejection_simulation import distribution, finite, response_to

# ---------------------------------------------------------------------------------- algorithms


@dataclass(frozen=True)
class BooleanQueryStep:
    """An algorithm that learns from boolean statistical queries: it asks one, and goes on by the answer.

    Parameters
    ----------
    query : tuple of int
        Values of the query on the inputs, -1 or 1.
    threshold : float
        What the answer is compared with.
    below, above : BooleanQueryStep or int
        What follows an answer at most, or above, the threshold: the next query, or the output, at least 0.

    Notes
    -----
    All paths to an output are of one length, t.
    """

    query: tuple[int, ...]
    threshold: float
    below: BooleanQueryStep | int
    above: BooleanQueryStep | int

    def __post_init__(self) -> None:
        require(len(self.query) > 0 and set(self.query) <= {-1, 1}, "values -1 and 1", self.query)
        require(-1 < self.threshold < 1, "a threshold in (-1, 1)", self.threshold)
        depths = [branch.depth if isinstance(branch, BooleanQueryStep) else 0 for branch in (self.below, self.above)]
        require(depths[0] == depths[1], "branches of one depth", depths)

    @property
    def depth(self) -> int:
        """Number of queries, t."""
        return 1 + (self.above.depth if isinstance(self.above, BooleanQueryStep) else 0)

    def branches(self) -> tuple[BooleanQueryStep | int, BooleanQueryStep | int]:
        """What follows an answer at most, and above, the threshold."""
        return self.below, self.above

    def nodes(self) -> Iterator[BooleanQueryStep]:
        """All queries that may be asked, the first one first."""
        yield self
        for branch in self.branches():
            if isinstance(branch, BooleanQueryStep):
                yield from branch.nodes()

    def truth(self, data: Dataset) -> float:
        """Expectation of the query under the distribution `data`, shape (inputs,)."""
        return float(distribution(data, len(self.query)) @ np.array(self.query))

    def valid_outputs(self, data: Dataset, tolerance: float) -> frozenset[int]:
        """Outputs that are possible with some oracle of this tolerance."""
        truth, found = self.truth(data), set[int]()
        for branch, possible in zip(
            self.branches(), (truth - tolerance <= self.threshold, truth + tolerance > self.threshold), strict=True
        ):
            if possible:
                found |= branch.valid_outputs(data, tolerance) if isinstance(branch, BooleanQueryStep) else {branch}
        return frozenset(found)

    def leaves(self) -> list[int]:
        """The outputs of all paths, those below a threshold first."""
        found: list[int] = []
        for branch in self.branches():
            found += branch.leaves() if isinstance(branch, BooleanQueryStep) else [branch]
        return found

    def outputs(self) -> int:
        """One more than the largest output."""
        return 1 + max(self.leaves())


def in_parallel(queries: tuple[tuple[int, ...], ...], thresholds: tuple[float, ...]) -> BooleanQueryStep:
    """The nonadaptive algorithm that compares each answer with its threshold; bit j of the output is comparison j."""

    def ask(k: int, so_far: int) -> BooleanQueryStep | int:
        if k == len(queries):
            return so_far
        return BooleanQueryStep(queries[k], thresholds[k], ask(k + 1, so_far), ask(k + 1, so_far + 2**k))

    tree = ask(0, 0)
    require(isinstance(tree, BooleanQueryStep), "at least one query", queries)
    return tree  # type: ignore[return-value]


def binary_search(inputs: int, share: float) -> BooleanQueryStep:
    """Adaptive: the least u for which more than `share` of the entries are at most u, among ``2^t`` ordered inputs."""
    require(inputs >= 2 and inputs & (inputs - 1) == 0, "a power of two of inputs", inputs)
    require(0 < share < 1, "a share in (0, 1)", share)

    def ask(low: int, high: int) -> BooleanQueryStep | int:
        if high - low == 1:
            return low
        middle = (low + high) // 2
        query = tuple(1 if u < middle else -1 for u in range(inputs))
        return BooleanQueryStep(query, 2 * share - 1, ask(middle, high), ask(low, middle))

    return ask(0, inputs)  # type: ignore[return-value]


# ------------------------------------------------------------------------------ local protocols


def spread(epsilon: float) -> float:
    """Value of a message once it is unbiased: ``(e^epsilon + 1) / (e^epsilon - 1)``, with the bit's sign."""
    return 1.0 / math.tanh(epsilon / 2.0)


def persons_needed(epsilon: float, tolerance: float, failures: int, beta: float) -> int:
    """Persons whose messages answer each of several queries within the tolerance, together with probability 1 - beta.

    ``ceil(2 c^2 ln(2 k / beta) / tau^2)`` for k queries and messages in [-c, c], by Hoeffding's inequality; sampling
    and noise in one.
    """
    require_positive("tolerance", tolerance)
    return math.ceil(2.0 * spread(epsilon) ** 2 * math.log(2.0 * failures / beta) / tolerance**2)


def message(query: tuple[int, ...], epsilon: float) -> LocalRandomizer:
    """Randomised response on the value of a query: 1 for +1, 0 for -1."""
    return response_to(epsilon, [(value + 1) // 2 for value in query])


def least_ones(threshold: float, persons: int, epsilon: float) -> int:
    """Least number of messages 1 for which the answer ``c (2 ones / persons - 1)`` is above the threshold."""
    return math.floor(persons * (1.0 + threshold / spread(epsilon)) / 2.0) + 1


@dataclass(frozen=True)
class LocalProtocol:
    """The local protocol that answers an algorithm's queries from messages of randomised response.

    Parameters
    ----------
    algorithm : BooleanQueryStep
        Who asks.
    epsilon : float
        Level of all messages of a person.
    persons : int
        Persons a query.
    same : bool, default False
        All queries are put to the same persons, at the level epsilon / t each: interactive, unless the queries are
        fixed in advance. Otherwise query k is answered by persons ``k persons`` to ``(k + 1) persons - 1``, each of
        them once.

    Notes
    -----
    The data are the persons' entries, shape (rows,), as many as needed or more. An output is the algorithm's.
    """

    algorithm: BooleanQueryStep
    epsilon: float
    persons: int
    same: bool = False

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(isinstance(self.persons, (int, np.integer)) and self.persons >= 1, "at least one person", self.persons)

    @property
    def level(self) -> float:
        """Level of a message."""
        return self.epsilon / self.algorithm.depth if self.same else self.epsilon

    @property
    def messages(self) -> int:
        """Messages of a run: calls of local randomizers."""
        return self.algorithm.depth * self.persons

    def least(self, ask: BooleanQueryStep) -> int:
        """Least number of messages 1 that answers a query above its threshold."""
        return least_ones(ask.threshold, self.persons, self.level)

    def entries(self, data: Dataset) -> IntArray:
        """Entries of the persons whom each query is put to, shape (t, persons)."""
        entries, needed = np.asarray(data), self.persons if self.same else self.messages
        require(entries.ndim == 1 and entries.size >= needed, f"entries of at least {needed} persons", entries.shape)
        size = len(self.algorithm.query)
        require(bool(np.all((entries >= 0) & (entries < size))), f"inputs from 0 to {size - 1}", entries)
        rows = entries[:needed].astype(np.int64).reshape(-1, self.persons)
        return np.broadcast_to(rows, (self.algorithm.depth, self.persons))

    def chances(self, ask: BooleanQueryStep, entries: IntArray) -> FloatArray:
        """Probability of a message 1 on each entry, of its shape."""
        return np.asarray(message(ask.query, self.level).rows[entries, 1])

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the output on given entries."""
        entries = self.entries(data)

        def above(ask: BooleanQueryStep, k: int) -> float:
            ones = np.ones(1)
            for chance in self.chances(ask, entries[k]).tolist():
                ones = np.convolve(ones, [1.0 - chance, chance])
            return float(ones[self.least(ask) :].sum())

        return finite(outcomes(self.algorithm, above))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,)."""
        require_draws(n)
        entries = self.entries(data)

        def above(ask: BooleanQueryStep, k: int, runs: IntArray) -> BoolArray:
            said = rng.random((runs.size, self.persons)) < self.chances(ask, entries[k])
            return np.asarray(said.sum(axis=1) >= self.least(ask))

        return followed(self.algorithm, n, above)


def outcomes(algorithm: BooleanQueryStep, above: Callable[[BooleanQueryStep, int], float]) -> FloatArray:
    """Distribution of the output, from the probability that answer k is above its threshold; shape (outputs,)."""
    law = np.zeros(algorithm.outputs())
    # A query that is asked after whatever answers is computed once.
    known: dict[tuple[tuple[int, ...], float, int], float] = {}

    def follow(step: BooleanQueryStep | int, k: int, mass: float) -> None:
        if not isinstance(step, BooleanQueryStep):
            law[step] += mass
            return
        key = (step.query, step.threshold, k)
        if key not in known:
            known[key] = above(step, k)
        follow(step.below, k + 1, mass * (1.0 - known[key]))
        follow(step.above, k + 1, mass * known[key])

    follow(algorithm, 0, 1.0)
    return law


def followed(
    algorithm: BooleanQueryStep, n: int, above: Callable[[BooleanQueryStep, int, IntArray], BoolArray]
) -> IntArray:
    """Run an algorithm `n` times, by draws of which runs answer the k-th query above its threshold."""
    outputs = np.empty(n, dtype=np.int64)

    def follow(step: BooleanQueryStep | int, k: int, runs: IntArray) -> None:
        if not isinstance(step, BooleanQueryStep):
            outputs[runs] = step
        elif runs.size:
            high = above(step, k, runs)
            follow(step.below, k + 1, runs[~high])
            follow(step.above, k + 1, runs[high])

    follow(algorithm, 0, np.arange(n))
    return outputs


@dataclass(frozen=True)
class BitTranscript:
    """What everybody sees of a protocol: all messages, as the bits of one number, the first one the lowest bit.

    The queries follow from the messages, so they say nothing more. For at most 16 messages.
    """

    protocol: LocalProtocol

    def __post_init__(self) -> None:
        require(self.protocol.messages <= 16, "at most 16 messages", self.protocol.messages)

    @property
    def epsilon(self) -> float:
        """Level of the protocol."""
        return self.protocol.epsilon

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the transcript on given entries."""
        entries, persons = self.protocol.entries(data), self.protocol.persons
        law = np.zeros(2**self.protocol.messages)
        said = np.arange(2**persons)[:, None] >> np.arange(persons) & 1

        def follow(step: BooleanQueryStep | int, k: int, code: int, mass: float) -> None:
            if not isinstance(step, BooleanQueryStep):
                law[code] = mass
                return
            chances, least = self.protocol.chances(step, entries[k]), self.protocol.least(step)
            masses = mass * np.where(said == 1, chances, 1.0 - chances).prod(axis=1)
            for bits, (m, ones) in enumerate(zip(masses.tolist(), said.sum(axis=1).tolist(), strict=True)):
                follow(step.above if ones >= least else step.below, k + 1, code + (bits << k * persons), m)

        follow(self.protocol.algorithm, 0, 0, 1.0)
        return finite(law)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` transcripts; int64 of shape (n,)."""
        require_draws(n)
        entries, persons = self.protocol.entries(data), self.protocol.persons
        codes = np.zeros(n, dtype=np.int64)

        def above(ask: BooleanQueryStep, k: int, runs: IntArray) -> BoolArray:
            said = rng.random((runs.size, persons)) < self.protocol.chances(ask, entries[k])
            codes[runs] += said @ 2 ** (k * persons + np.arange(persons))
            return np.asarray(said.sum(axis=1) >= self.protocol.least(ask))

        followed(self.protocol.algorithm, n, above)
        return codes
