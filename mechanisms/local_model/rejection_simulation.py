"""A local randomizer simulated by statistical queries and rejection sampling.

A local randomizer R, applied to an entry that was drawn from a distribution, outputs w with probability
``p(w) = E Pr[R(z) = w]``. Whoever has statistical queries to the distribution only can draw such outputs with nearly
these probabilities: draw a candidate w from R(0), ask for p(w), and keep the candidate with probability proportional to
the answer over ``q(w) = Pr[R(0) = w]``. Privacy of R keeps p(w)/q(w) within ``e^epsilon``, so queries of low accuracy
and few rounds suffice.

This is no private mechanism: what is claimed is fidelity. Its data are the distribution of an entry, shape (inputs,).
Variants of the algorithm are in `rejection_variants`, its mutants in `rejection_mutants`.

Source: document 002, section 5.1.2, algorithm B_{R,epsilon} and Claim 5.9; catalogue 002, sq_sim_noninteractive.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auditor.privacy.exact import FiniteLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import draw_index
from mechanisms.local_model.local_randomizers import LocalRandomizer, response
from mechanisms.statistical_queries.sq_oracles import StatisticalQueryOracle

# A distribution sums to one within rounding.
_ROUNDING = 1e-9

# ------------------------------------------------------------------- randomizers and distributions


def response_to(epsilon: float, bits: Sequence[int]) -> LocalRandomizer:
    """Randomised response on a bit of the input: ``bits[u]`` on input u, with probability e^epsilon/(1 + e^epsilon)."""
    require(all(bit in (0, 1) for bit in bits), "bits 0 or 1", bits)
    rows = response(epsilon).matrix
    return LocalRandomizer(tuple(rows[bit] for bit in bits), epsilon)


def random_randomizer(epsilon: float, inputs: int, outputs: int, rng: np.random.Generator) -> LocalRandomizer:
    """Draw a randomizer of level at most epsilon: extreme and moderate ratios, rare and frequent outputs.

    Weights are a common weight of the output times ``exp(epsilon x / 2)`` with x in [0, 1], which is 0 or 1 half of the
    time; normalisers differ by ``exp(epsilon / 2)`` at most.
    """
    common = rng.dirichlet(np.full(outputs, 0.5)) + 1e-3  # no output below about a thousandth
    x = np.where(rng.random((inputs, outputs)) < 0.5, rng.integers(0, 2, (inputs, outputs)), rng.random((1, outputs)))
    weights = common * np.exp(0.5 * epsilon * x)
    rows = weights / weights.sum(axis=1, keepdims=True)
    return LocalRandomizer(tuple(map(tuple, rows.tolist())), epsilon)


def distribution(data: Dataset, size: int) -> FloatArray:
    """The distribution of an entry, shape (size,); ValueError if `data` is none."""
    mass = np.asarray(data, dtype=np.float64)
    require(mass.shape == (size,), f"{size} probabilities", mass.shape)
    require(bool(np.all(mass >= 0)) and abs(float(mass.sum()) - 1) <= _ROUNDING, "probabilities that sum to 1", mass)
    return mass


def total_variation(first: FloatArray, second: FloatArray) -> float:
    """Total variation (statistical difference) of two distributions on the same outcomes, of one shape."""
    return 0.5 * float(np.abs(np.asarray(first) - np.asarray(second)).sum())


# ----------------------------------------------------------------------------------- oracles


@dataclass(frozen=True)
class SignedErrorOracle:
    """The answer to query w is off by ``signs[w]`` tolerances; what an adversary can do at most.

    Parameters
    ----------
    signs : tuple of float
        From -1 to 1, one for each query (output of the randomizer).
    """

    signs: tuple[float, ...]

    def __post_init__(self) -> None:
        require(all(-1 <= sign <= 1 for sign in self.signs), "signs from -1 to 1", self.signs)

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Answers of shape (.., queries)."""
        del rng
        return np.asarray(truth + np.asarray(tolerance) * np.array(self.signs))


@dataclass(frozen=True)
class OraclesInTurn:
    """Round k of a simulation is answered by oracle k modulo their number: answers to one query change.

    The document allows for that: the estimate of p(w) "may vary, for the same w, from iteration to iteration".
    """

    oracles: tuple[StatisticalQueryOracle, ...]

    def __post_init__(self) -> None:
        require(len(self.oracles) > 0, "at least one oracle", self.oracles)


def turns(oracle: StatisticalQueryOracle | OraclesInTurn) -> tuple[StatisticalQueryOracle, ...]:
    """The oracles that answer round after round, over and over."""
    return oracle.oracles if isinstance(oracle, OraclesInTurn) else (oracle,)


def settled(oracle: StatisticalQueryOracle, truth: FloatArray, tolerance: float) -> FloatArray:
    """Answers of an oracle that draws nothing; ValueError if it draws, as then no distribution is known here."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    answers = oracle(truth, tolerance, rng)
    require(bool(rng.bit_generator.state == before), "an oracle that draws nothing", oracle)
    return answers


# ------------------------------------------------------------------------------- simulations


@dataclass(frozen=True)
class RejectionSimulation:
    """One call of a local randomizer on a fresh entry, simulated: the algorithm as it is printed.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What is simulated; at the level epsilon that it declares, positive. Every output has to be possible.
    beta : float
        Claimed total variation between the outputs of all calls and their simulations, in (0, 1).
    calls : int
        Calls of the local algorithm, t; this is one of them, within ``beta / t``.
    oracle : StatisticalQueryOracle or OraclesInTurn
        Who answers the queries. It is given the expectations of the queries of all outputs, in the order of the
        outputs, although the query of the candidate alone is asked: so an adversary can name its errors.
    reference : int, default 0
        The input from which candidates are drawn.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The oracle takes queries with values in [-1, 1] and cuts off others; these never leave that range. With an oracle
    that draws nothing the output has the distribution `law`, and rounds are geometric, independent of the output.
    """

    randomizer: LocalRandomizer
    beta: float
    calls: int
    oracle: StatisticalQueryOracle | OraclesInTurn
    reference: int = 0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(bool(self.randomizer.rows.min() > 0), "positive probabilities", self.randomizer.matrix)
        require(isinstance(self.beta, float) and 0 < self.beta < 1, "beta in (0, 1)", self.beta)
        require(isinstance(self.calls, (int, np.integer)) and self.calls >= 1, "at least one call", self.calls)
        require(0 <= self.reference < self.inputs, "an input as reference", self.reference)

    @property
    def epsilon(self) -> float:
        """Declared level of what is simulated."""
        return self.randomizer.epsilon

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return len(self.randomizer.matrix)

    @property
    def phi(self) -> float:
        """Claimed relative error of the estimates of p(w), ``beta / (3 t)``."""
        return self.beta / (3.0 * self.calls)

    @property
    def growth(self) -> float:
        """``e^epsilon``."""
        return math.exp(self.epsilon)

    @property
    def tolerance(self) -> float:
        """Tolerance of the queries, ``beta / (3 e^(2 epsilon) t)``."""
        return self.phi / self.growth**2

    @property
    def width(self) -> float:
        """What probabilities are scaled by for a query, over q: ``e^epsilon - e^-epsilon``."""
        return self.growth - 1.0 / self.growth

    @property
    def ceiling(self) -> float:
        """Largest estimate over q that can be accepted with a probability: ``(1 + phi) e^epsilon``."""
        return (1.0 + self.phi) * self.growth

    @property
    def q(self) -> FloatArray:
        """Distribution of the output on the reference input, shape (outputs,)."""
        return np.asarray(self.randomizer.rows[self.reference])

    @property
    def drawn_from(self) -> FloatArray:
        """Distribution of the candidates, shape (outputs,)."""
        return self.q

    def queries(self) -> FloatArray:
        """The query of each output, as values on the inputs; shape (inputs, outputs)."""
        return np.asarray((self.randomizer.rows / self.q - 1.0) / self.width)

    def truths(self, data: Dataset) -> FloatArray:
        """Expectations of the queries, cut off at -1 and 1, shape (outputs,)."""
        return np.asarray(distribution(data, self.inputs) @ np.clip(self.queries(), -1.0, 1.0))

    def odds(self, answers: FloatArray) -> FloatArray:
        """Probabilities with which candidates are accepted, before they are cut off at 0 and 1.

        Parameters
        ----------
        answers : ndarray of shape (.., outputs)
            Answers to the queries.
        """
        return np.asarray((answers * self.width + 1.0) / self.ceiling)

    def acceptance(self, data: Dataset) -> FloatArray:
        """`odds` of an oracle that draws nothing, in each of its turns; shape (turns, outputs)."""
        truth = self.truths(data)
        return np.array([self.odds(settled(oracle, truth, self.tolerance)) for oracle in turns(self.oracle)])

    def hits(self, data: Dataset) -> FloatArray:
        """Probability that a round outputs w, given that it is reached; shape (turns, outputs)."""
        return np.asarray(self.drawn_from * np.clip(self.acceptance(data), 0.0, 1.0))

    def target(self, data: Dataset) -> FloatArray:
        """The distribution that is simulated, p; shape (outputs,)."""
        return np.asarray(distribution(data, self.inputs) @ self.randomizer.rows)

    def output_law(self, data: Dataset) -> FloatArray:
        """Exact distribution of the output, shape (outputs,), for an oracle that draws nothing."""
        hits = self.hits(data)
        mass = reached(hits) @ hits
        return np.asarray(mass / mass.sum())

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact distribution of the output, for an oracle that draws nothing."""
        return finite(self.output_law(data))

    def expected_rounds(self, data: Dataset) -> float:
        """Exact expectation of the rounds, each of which is one query."""
        hits = self.hits(data)
        comes = reached(hits)
        return float(comes.sum() / (comes @ hits.sum(axis=1)))

    def distance(self, data: Dataset) -> float:
        """Exact total variation between the output and what is simulated."""
        return total_variation(self.output_law(data), self.target(data))

    def run(self, data: Dataset, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw `n` simulated calls.

        Returns
        -------
        outputs, rounds : ndarray of shape (n,), int64
            Outputs, and how many rounds (queries) each took.
        """
        require_draws(n)
        truth, oracles = self.truths(data), turns(self.oracle)
        outputs, rounds = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        left, k = np.arange(n), 0
        while left.size:
            candidates = draw_index(self.drawn_from, left.size, rng)
            answers = oracles[k % len(oracles)](np.broadcast_to(truth, (left.size, truth.size)), self.tolerance, rng)
            accepted = rng.random(left.size) < self.odds(answers)[np.arange(left.size), candidates]
            outputs[left[accepted]] = candidates[accepted]
            rounds[left] += 1
            left, k = left[~accepted], k + 1
        return outputs, rounds

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` outputs; int64 of shape (n,)."""
        return self.run(data, n, rng)[0]


def finite(mass: FloatArray) -> FiniteLaw:
    """The distribution of the outputs 0, 1, .."""
    return FiniteLaw(tuple(range(mass.size)), mass)


def reached(hits: FloatArray) -> FloatArray:
    """Probability that each of the first turns is reached, shape (turns,)."""
    stays = 1.0 - hits.sum(axis=1)
    require(bool(stays.min() < 1.0), "a round that can end", hits)
    return np.concatenate([[1.0], np.cumprod(stays[:-1])])


@dataclass(frozen=True)
class NumberOfRounds:
    """The number of rounds of a simulation (of queries, one each); float64 of shape (n,)."""

    simulation: Any

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` numbers of rounds."""
        return np.asarray(self.simulation.run(data, n, rng)[1], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SimulationUnderAllSigns:
    """What a simulation does under every oracle whose answers are off by a whole tolerance, up or down.

    Attributes
    ----------
    signs : ndarray of shape (patterns, outputs)
        All patterns of errors, 1 and -1.
    odds : ndarray of shape (patterns, outputs)
        Odds of acceptance, before they are cut off.
    distances, rounds : ndarray of shape (patterns,)
        Total variation to what is simulated, and expected rounds.
    """

    signs: FloatArray
    odds: FloatArray
    distances: FloatArray
    rounds: FloatArray

    @property
    def worst(self) -> SignedErrorOracle:
        """The oracle under which the output is furthest from what is simulated."""
        return SignedErrorOracle(tuple(self.signs[int(self.distances.argmax())].tolist()))


def under_all_signs(simulation: RejectionSimulation, data: Dataset) -> SimulationUnderAllSigns:
    """Compute a simulation's distributions under all ``2^outputs`` patterns of errors; not for a truncated one."""
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=simulation.q.size)))
    odds = simulation.odds(simulation.truths(data) + simulation.tolerance * signs)
    hits = simulation.drawn_from * np.clip(odds, 0.0, 1.0)
    ends = hits.sum(axis=1)
    off = hits / ends[:, None] - simulation.target(data)
    return SimulationUnderAllSigns(signs, odds, 0.5 * np.abs(off).sum(axis=1), 1.0 / ends)


# ------------------------------------------------------------------------------------ bounds


def distance_bound(phi: float) -> float:
    """Largest total variation of a distribution and one whose probabilities are off by ``1 -+ phi`` before normalising.

    Notes
    -----
    ``(1 - sqrt(1 - phi^2)) / phi``, about phi/2. Valid because: the odds of an event change by at most the factor
    (1 + phi)/(1 - phi) = r, and then its probability by at most (sqrt(r) - 1)/(sqrt(r) + 1).
    """
    return phi / (1.0 + math.sqrt(1.0 - phi * phi))


def largest_distance(epsilon: float, phi: float) -> float:
    """Largest total variation of one simulated call, over all randomizers of level epsilon, entries and oracles.

    Notes
    -----
    Valid because: an estimate is off by at most ``x q(w)``, x = tau (e^epsilon - e^-epsilon) = phi (e^-epsilon -
    e^(-3 epsilon)). Let A be the outputs that become more probable, a = p(A) and b = q(A). The distance is then at most
    that of errors + x q on A and - x q elsewhere, ``x (a + b - 2 a b) / (1 + x (2 b - 1))``. For given b that is
    linear in a, so largest at an end of the range that privacy leaves for a; there it is a quadratic over a linear
    function of b. Two outputs, a point mass and such errors attain it. With an oracle that changes its errors
    between rounds the distribution is a mixture of those of its rounds, and no further away.

    As phi goes to 0 it is phi times ``(y - 1)(1 + y^2) / (y^3 (1 + y))``, y = e^epsilon, the value at randomised
    response: at most 0.2086 phi, at epsilon = 0.654.
    """
    y = math.exp(epsilon)
    x = phi * (1.0 / y - y**-3.0)
    middle, best = 1.0 / (1.0 + y), 0.0
    # Ends of the range of a: slope and intercept in b, and the b at which this end is the binding one.
    for slope, start, low, high in (
        (y, 0.0, 0.0, middle),
        (1 / y, 1 - 1 / y, middle, 1.0),
        (1 / y, 0.0, 0.0, 1 - middle),
        (y, 1 - y, 1 - middle, 1.0),
    ):
        above = np.poly1d([-2.0 * slope, 1.0 + slope - 2.0 * start, start])  # a + b - 2 a b
        below = np.poly1d([2.0 * x, 1.0 - x])
        flat = (above.deriv() * below - above * below.deriv()).roots
        at = [low, high, *(float(b.real) for b in flat if abs(b.imag) < _ROUNDING and low < b.real < high)]
        best = max(best, *(x * float(above(b)) / float(below(b)) for b in at))
    return best
