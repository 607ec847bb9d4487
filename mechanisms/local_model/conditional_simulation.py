"""Repeated calls of local randomizers on one entry, simulated by statistical queries.

An interactive local algorithm calls randomizers R_1, R_2, .. on an entry, each chosen in view of the past answers. The
answers are correlated, through the entry, so call k is simulated by its distribution given the past answers a_1, ..,
a_(k-1),

    p(w) = E[r_1(z)] / E[r_2(z)],  r_2(z) = prod_(j<k) Pr[R_j(z) = a_j],  r_1(z) = Pr[R_k(z) = w] r_2(z),

by rejection sampling from R_k(0) as in `rejection_simulation`, with one query for each of the expectations.

This is no private mechanism: what is claimed is fidelity. Its data are the distribution of an entry, shape (inputs,).
Its mutants are in `mechanisms.local_model.conditional_mutants`.

Source: document 002, section 5.1.2, Claim 5.10; catalogue 002, sq_sim_interactive.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.base.noise import draw_index
from mechanisms.local_model.local_randomizers import LocalRandomizer
from mechanisms.local_model.rejection_simulation import distribution, finite, settled, total_variation
from mechanisms.statistical_queries.sq_oracles import StatisticalQueryOracle

#: Most rounds that are drawn together: arrays of some megabytes.
_AT_ONCE = 2**18


@dataclass(frozen=True)
class EntryCalls:
    """What a local algorithm does with one entry: a call, and what it calls after each answer.

    Parameters
    ----------
    randomizer : LocalRandomizer
        The next call.
    after : tuple of EntryCalls
        What follows each of its outputs; empty for the last call.

    Raises
    ------
    ValueError
        If branches are missing or have different depths, or randomizers differ in their numbers of inputs or outputs.
    """

    randomizer: LocalRandomizer
    after: tuple[EntryCalls, ...] = ()

    def __post_init__(self) -> None:
        require(self.randomizer.epsilon > 0, "a positive level", self.randomizer.epsilon)
        require(bool(self.randomizer.rows.min() > 0), "positive probabilities", self.randomizer.matrix)
        require(len(self.after) in (0, self.outputs), f"none or {self.outputs} branches", len(self.after))
        require(len({branch.depth for branch in self.after}) <= 1, "branches of one depth", self.after)
        shapes = {self.randomizer.rows.shape, *(branch.randomizer.rows.shape for branch in self.after)}
        require(len(shapes) == 1, "randomizers of one shape", shapes)

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.randomizer.rows.shape[0])

    @property
    def outputs(self) -> int:
        """Number of outputs of each call."""
        return int(self.randomizer.rows.shape[1])

    @property
    def depth(self) -> int:
        """Number of calls along every path."""
        return 1 + (self.after[0].depth if self.after else 0)

    @property
    def epsilon(self) -> float:
        """Largest sum of levels along a path."""
        return self.randomizer.epsilon + max((branch.epsilon for branch in self.after), default=0.0)

    def at(self, answers: tuple[int, ...]) -> EntryCalls:
        """The call after these answers."""
        return self.after[answers[0]].at(answers[1:]) if answers else self

    def likelihood(self, answers: tuple[int, ...]) -> FloatArray:
        """Probability of these answers to the first calls on each input, shape (inputs,)."""
        likelihood = np.ones(self.inputs)
        for k, answer in enumerate(answers):
            likelihood = likelihood * self.at(answers[:k]).randomizer.rows[:, answer]
        return likelihood

    def target(self, data: Dataset) -> FloatArray:
        """Distribution of the answers on an entry drawn at random; shape (outputs^depth,), see `code`."""
        mass = distribution(data, self.inputs)
        return np.array([mass @ self.likelihood(path) for path in paths(self.outputs, self.depth)])


def in_turn(*randomizers: LocalRandomizer) -> EntryCalls:
    """The same calls whatever the answers."""
    first, *rest = randomizers
    return EntryCalls(first, (in_turn(*rest),) * first.rows.shape[1] if rest else ())


def paths(outputs: int, length: int) -> Iterator[tuple[int, ...]]:
    """All sequences of answers, in the order of their codes."""
    for code in range(outputs**length):
        yield tuple(code // outputs**k % outputs for k in range(length))


def code(answers: tuple[int, ...], outputs: int) -> int:
    """The number whose digits in base `outputs` are the answers, the first one in the lowest place."""
    return sum(answer * outputs**k for k, answer in enumerate(answers))


@dataclass(frozen=True)
class ConditionalSimulation:
    """All calls of a local algorithm on some entries, simulated.

    Parameters
    ----------
    calls : EntryCalls
        What the algorithm calls on each entry.
    beta : float
        Claimed total variation between all answers and their simulations, in (0, 1).
    numerator, denominator : StatisticalQueryOracle
        Who answers the queries for ``E r_1`` and ``E r_2``. Both are given arrays of shape (.., outputs), one place for
        each candidate, although only that of the candidate is asked: so an adversary can name its errors, and may
        answer the second query, which does not depend on the candidate, as if it did.
    entries : int, default 1
        Independent entries; call k is simulated for all of them before call k + 1 is.
    cached : bool, default False
        The second query is asked once a call, not once a round (the answer for candidate 0 is used).
    reference : int, default 0
        The input from which candidates are drawn.

    Notes
    -----
    The number of calls t is that of all entries. The document does not restate the factor in the probability of
    acceptance; here it is ``1 + 3 tau'``, tau' = beta / (3 t), which is that of its estimate of p(w). With Claim 5.9's
    ``1 + tau'`` it would be a probability as well (see `largest_odds`). It prints "w ~ R(0)" for a candidate whose
    probability is q(w) = Pr[R_k(0) = w]; what is meant, and done here, is a draw of R_k(0).

    An output is the code of all answers: entry 0's first, then entry 1's.
    """

    calls: EntryCalls
    beta: float
    numerator: StatisticalQueryOracle
    denominator: StatisticalQueryOracle
    entries: int = 1
    cached: bool = False
    reference: int = 0

    def __post_init__(self) -> None:
        require(isinstance(self.beta, float) and 0 < self.beta < 1, "beta in (0, 1)", self.beta)
        require(isinstance(self.entries, (int, np.integer)) and self.entries >= 1, "at least one entry", self.entries)
        require(0 <= self.reference < self.calls.inputs, "an input as reference", self.reference)

    @property
    def epsilon(self) -> float:
        """Level of all calls on one entry."""
        return self.calls.epsilon

    @property
    def relative(self) -> float:
        """``tau' = beta / (3 t)``, a bound on the relative errors of both estimates."""
        return self.beta / (3.0 * self.entries * self.calls.depth)

    @property
    def tolerance(self) -> float:
        """Tolerance of the queries, ``e^(-2 epsilon) tau'``."""
        return self.relative * math.exp(-2.0 * self.epsilon)

    @property
    def ceiling(self) -> float:
        """Largest estimate over q that can be accepted with a probability: ``(1 + 3 tau') e^epsilon``."""
        return (1.0 + 3.0 * self.relative) * math.exp(self.epsilon)

    def width(self, past: tuple[int, ...]) -> float:
        """What the numerator is scaled by for a query, over its value on the reference: e^epsilon - e^-epsilon."""
        del past
        return 2.0 * math.sinh(self.epsilon)

    def history(self, past: tuple[int, ...]) -> FloatArray:
        """``r_2`` on each input, shape (inputs,)."""
        return self.calls.likelihood(past)

    def queries(self, past: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """The queries after these answers, as values on the inputs: shapes (inputs, outputs) and (inputs,)."""
        r2 = self.history(past)
        r1 = self.calls.at(past).randomizer.rows * r2[:, None]
        first = (r1 / r1[self.reference] - 1.0) / self.width(past)
        return first, (r2 / r2[self.reference] - 1.0) / (2.0 * math.sinh(self.epsilon))

    def truths(self, past: tuple[int, ...], data: Dataset) -> tuple[FloatArray, float]:
        """Expectations of the queries, cut off at -1 and 1: shape (outputs,), and a number."""
        mass = distribution(data, self.calls.inputs)
        first, second = self.queries(past)
        return mass @ np.clip(first, -1.0, 1.0), float(mass @ np.clip(second, -1.0, 1.0))

    def odds(self, past: tuple[int, ...], first: FloatArray, second: FloatArray) -> FloatArray:
        """Probabilities with which candidates are accepted, before they are cut off at 0 and 1.

        Parameters
        ----------
        past : tuple of int
            Past answers.
        first, second : ndarray of shape (.., outputs)
            Answers to the two queries.
        """
        # r_1(0) = q r_2(0): over q and r_2(0) the estimates are these.
        numerator = np.maximum(first * self.width(past) + 1.0, 0.0)
        return np.asarray(numerator / (second * 2.0 * math.sinh(self.epsilon) + 1.0) / self.ceiling)

    def acceptance(self, past: tuple[int, ...], data: Dataset) -> FloatArray:
        """`odds` for oracles that draw nothing; shape (outputs,)."""
        first, second = self.truths(past, data)
        answers = settled(self.numerator, first, self.tolerance)
        return self.odds(
            past,
            answers,
            self._used_answers(settled(self.denominator, self._candidate_answers(second), self.tolerance)),
        )

    def _candidate_answers(self, second: float, runs: int = 0) -> FloatArray:
        """The expectation of the second query in the places of all candidates."""
        return np.full((runs, self.calls.outputs) if runs else self.calls.outputs, second)

    def _used_answers(self, second: FloatArray) -> FloatArray:
        """Answers to the second query that are used."""
        return second[..., :1] if self.cached else second

    def hits(self, past: tuple[int, ...], data: Dataset) -> FloatArray:
        """Probability that a round outputs w, shape (outputs,)."""
        q = self.calls.at(past).randomizer.rows[self.reference]
        return np.asarray(q * np.clip(self.acceptance(past, data), 0.0, 1.0))

    def step_law(self, past: tuple[int, ...], data: Dataset) -> FloatArray:
        """Exact distribution of the next answer after these, shape (outputs,), for oracles that draw nothing."""
        hits = self.hits(past, data)
        return np.asarray(hits / hits.sum())

    def step_target(self, past: tuple[int, ...], data: Dataset) -> FloatArray:
        """Distribution of the next answer of the local algorithm after these, shape (outputs,)."""
        likelihood = distribution(data, self.calls.inputs) * self.calls.likelihood(past)
        return np.asarray(likelihood @ self.calls.at(past).randomizer.rows / likelihood.sum())

    def whose(self, entry: int) -> int:
        """The entry whose past answers a simulation for this entry looks at: its own."""
        return entry

    def output_law(self, data: Dataset) -> FloatArray:
        """Exact distribution of all answers, shape (outputs^(entries depth),), for oracles that draw nothing."""
        found: dict[tuple[tuple[int, ...], ...], float] = {((),) * self.entries: 1.0}
        for _ in range(self.calls.depth):
            # One table a distinct history; all entries move at once.
            steps = {past: self.step_law(past, data) for state in found for past in state}
            grown: dict[tuple[tuple[int, ...], ...], float] = {}
            for state, mass in found.items():
                for answers in paths(self.calls.outputs, self.entries):
                    p = mass
                    for entry, answer in enumerate(answers):
                        p *= float(steps[state[self.whose(entry)]][answer])
                    grown[tuple((*past, a) for past, a in zip(state, answers, strict=True))] = p
            found = grown
        law = np.zeros(self.calls.outputs ** (self.entries * self.calls.depth))
        for state, mass in found.items():
            law[code(sum(state, ()), self.calls.outputs)] = mass
        return law

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the code of all answers, for oracles that draw nothing."""
        return finite(self.output_law(data))

    def target(self, data: Dataset) -> FloatArray:
        """Distribution of all answers of the local algorithm, shape (outputs^(entries depth),)."""
        one = self.calls.target(data)
        law = one
        for _ in range(self.entries - 1):
            law = np.outer(one, law).ravel()
        return law

    def distance(self, data: Dataset) -> float:
        """Exact total variation between all answers and what is simulated."""
        return total_variation(self.output_law(data), self.target(data))

    def expected_rounds(self, past: tuple[int, ...], data: Dataset) -> float:
        """Exact expectation of the rounds of the call after these answers."""
        return 1.0 / float(self.hits(past, data).sum())

    def step(self, past: tuple[int, ...], data: Dataset, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Simulate the next call after these answers, `n` times.

        Returns
        -------
        answers, queries : ndarray of shape (n,), int64
            Answers, and how many queries each took.
        """
        first, second = self.truths(past, data)
        q = self.calls.at(past).randomizer.rows[self.reference]
        answers, rounds = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        once = self.denominator(self._candidate_answers(second, n), self.tolerance, rng)
        left = np.arange(n)
        while left.size:
            # As many rounds at once as a call takes; those after the acceptance are not taken, and not counted.
            block = max(1, min(math.ceil(self.ceiling), _AT_ONCE // left.size))
            m = left.size * block
            candidates = draw_index(q, m, rng)
            above = self.numerator(np.broadcast_to(first, (m, first.size)), self.tolerance, rng)
            below = np.repeat(once[left], block, axis=0)
            if not self.cached:
                below = self.denominator(self._candidate_answers(second, m), self.tolerance, rng)
            odds = np.broadcast_to(self.odds(past, above, self._used_answers(below)), above.shape)
            accepted = (rng.random(m) < odds[np.arange(m), candidates]).reshape(-1, block)
            ended, place = accepted.any(axis=1), accepted.argmax(axis=1)
            answers[left[ended]] = candidates.reshape(-1, block)[ended, place[ended]]
            rounds[left] += np.where(ended, place + 1, block)
            left = left[~ended]
        return answers, rounds + 1 if self.cached else 2 * rounds

    def run(self, data: Dataset, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw `n` simulations.

        Returns
        -------
        answers : ndarray of shape (n, entries, depth), int64
            All answers.
        queries : ndarray of shape (n,), int64
            How many queries each took.
        """
        require_draws(n)
        base, depth = self.calls.outputs, self.calls.depth
        answers, queries = np.empty((n, self.entries, depth), dtype=np.int64), np.zeros(n, dtype=np.int64)
        for k in range(depth):
            codes = answers[:, :, :k] @ base ** np.arange(k)
            for entry in range(self.entries):
                for number, past in enumerate(paths(base, k)):
                    runs = np.flatnonzero(codes[:, self.whose(entry)] == number)
                    if runs.size:
                        answers[runs, entry, k], asked = self.step(past, data, runs.size, rng)
                        queries[runs] += asked
        return answers, queries

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` codes of all answers; int64 of shape (n,)."""
        answers = self.run(data, n, rng)[0].reshape(n, -1)
        return np.asarray(answers @ self.calls.outputs ** np.arange(answers.shape[1]))


def largest_odds(spent: float, epsilon: float, relative: float) -> float:
    """Bound on the probability of acceptance with Claim 5.9's factor ``1 + tau'`` in the place of ``1 + 3 tau'``.

    Parameters
    ----------
    spent : float
        Levels of the past calls, e_1.
    epsilon : float
        Level of all calls.
    relative : float
        tau', at most 1/3.

    Notes
    -----
    ``(e^-e_1 + u e^-epsilon) / ((1 - u) (1 + tau'))`` with ``u = tau' (e^-epsilon - e^(-3 epsilon)) e^e_1``; below 1,
    so either factor is safe. Valid because: an estimate of ``E r_m`` is off by at most tau (e^epsilon - e^-epsilon)
    r_m(0), where ``E r_2 >= e^-e_1 r_2(0)`` and ``E r_1 <= e^(epsilon - e_1) q(w) E r_2``. Source: catalogue 002,
    sq_sim_interactive, E12b.
    """
    u = relative * (math.exp(-epsilon) - math.exp(-3.0 * epsilon)) * math.exp(spent)
    return (math.exp(-spent) + u * math.exp(-epsilon)) / ((1.0 - u) * (1.0 + relative))


@dataclass(frozen=True, eq=False)
class StepUnderAllSigns:
    """What the simulation of one call does under all oracles whose answers are off by a whole tolerance.

    Attributes
    ----------
    odds : ndarray of shape (patterns, outputs)
        Odds of acceptance, before they are cut off.
    distances, rounds : ndarray of shape (patterns,)
        Total variation to what is simulated, and expected rounds.
    """

    odds: FloatArray
    distances: FloatArray
    rounds: FloatArray


def step_under_all_signs(simulation: ConditionalSimulation, past: tuple[int, ...], data: Dataset) -> StepUnderAllSigns:
    """Compute the distribution of a call after past answers under all patterns of errors of both queries.

    Of the second query there are as many patterns as of the first, or two if its answer is cached.
    """
    first, second = simulation.truths(past, data)
    patterns = np.array(list(itertools.product((-1.0, 1.0), repeat=simulation.calls.outputs)))
    seconds = patterns[[0, -1]] if simulation.cached else patterns
    above = np.repeat(first + simulation.tolerance * patterns, len(seconds), axis=0)
    below = np.tile(second + simulation.tolerance * seconds, (len(patterns), 1))
    odds = simulation.odds(past, above, below)
    hits = simulation.calls.at(past).randomizer.rows[simulation.reference] * np.clip(odds, 0.0, 1.0)
    ends = hits.sum(axis=1)
    off = hits / ends[:, None] - simulation.step_target(past, data)
    return StepUnderAllSigns(odds, 0.5 * np.abs(off).sum(axis=1), 1.0 / ends)
