"""Simulations of local randomizers at many places, and what is computed there under all patterns of errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from auditor.audits.accuracy import Figure
from auditor.audits.inequality import Row
from experiments.common import rand
from mechanisms.local_model.local_randomizers import noisy_value
from mechanisms.local_model.rejection_simulation import (
    RejectionSimulation,
    SignedErrorOracle,
    random_randomizer,
    response_to,
    total_variation,
    under_all_signs,
)
from mechanisms.local_model.rejection_variants import ShiftAndClip
from mechanisms.statistical_queries.boolean_queries import BooleanQueries
from mechanisms.statistical_queries.sq_oracles import (
    ExactOracle,
    HighestAnswersOracle,
    LowestAnswersOracle,
    StatisticalQueryOracle,
)

FloatArray = NDArray[np.float64]

#: Numbers of visits that are told apart: 0 to 6, and 7 or more.
GROUPS = 8
#: A bit that four of ten persons have.
BIT = np.array([0.6, 0.4])


@cache
def visit_shares() -> FloatArray:
    """Shares of the persons with 0, 1, .. 6, and with 7 visits or more."""
    visits = np.minimum(rand()["mdvis"].to_numpy().astype(np.int64), GROUPS - 1)
    shares = np.bincount(visits, minlength=GROUPS) / visits.size
    shares.setflags(write=False)
    return shares


def distance_figure(curve: str) -> Figure:
    """The plot of distances of simulated calls over their budgets."""
    return Figure("Distance of a simulated call, over its budget", curve, "budget of a call, beta/t", "total variation")


def queries_figure(curve: str) -> Figure:
    """The plot of numbers of queries over levels."""
    return Figure("Queries of a simulated call", curve, "e^epsilon", "mean number of queries")


@dataclass(frozen=True)
class OutputAsError:
    """The output itself, as the error whose expectation is claimed."""

    def __call__(self, outputs: Any) -> FloatArray:
        """Numbers of shape (n,)."""
        return np.asarray(outputs, dtype=np.float64)


@dataclass(frozen=True)
class EventIndicator:
    """Whether the output is in an event: its expectation is the event's probability."""

    event: tuple[int, ...]

    def __call__(self, outputs: Any) -> FloatArray:
        """0 or 1 for each of n outputs, shape (n,)."""
        return np.isin(np.asarray(outputs), self.event).astype(np.float64)


@cache
def many() -> list[tuple[str, RejectionSimulation, FloatArray]]:
    """Randomizers, levels, budgets and distributions at which statements for all oracles are computed."""
    found: list[tuple[str, RejectionSimulation, FloatArray]] = []
    rng = np.random.default_rng(2)  # arbitrary, fixed: which random randomizers are looked at
    for epsilon in (0.25, 0.654, 1.0, 2.0):
        for beta, t in ((0.3, 1), (0.9, 1), (0.1, 100)):
            where = f"epsilon = {epsilon:g}, beta = {beta:g}, t = {t}"
            one = response_to(epsilon, (0, 1))
            # All persons have the bit that the reference lacks: there two outputs are furthest apart.
            found.append((f"response, {where}", RejectionSimulation(one, beta, t, ExactOracle()), np.array([0.0, 1.0])))
            for reference in (0, GROUPS - 1):
                visits = RejectionSimulation(noisy_value(epsilon, GROUPS), beta, t, ExactOracle(), reference)
                found.append((f"visits, reference {reference}, {where}", visits, visit_shares()))
            for k in range(4):
                other = random_randomizer(epsilon, GROUPS, 6, rng)
                found.append(
                    (f"random {k}, {where}", RejectionSimulation(other, beta, t, ExactOracle()), visit_shares())
                )
    return found


def distance_rows(cls: type[RejectionSimulation], bound: Callable[[RejectionSimulation], float]) -> list[Row]:
    """Largest total variation of one call over all patterns of errors, against a bound."""
    return [
        (name, float(under_all_signs(as_variant(cls, one), data).distances.max()), bound(one))
        for name, one, data in many()
    ]


def as_variant(cls: type[RejectionSimulation], one: RejectionSimulation) -> RejectionSimulation:
    """The same call, simulated by a variant of the algorithm."""
    return cls(one.randomizer, one.beta, one.calls, one.oracle, one.reference)


def odds_rows() -> list[Row]:
    """Smallest and largest odds of acceptance over all patterns of errors, and largest value of a query."""
    rows: list[Row] = []
    for name, one, data in many():
        odds = under_all_signs(one, data).odds
        rows += [(f"largest, {name}", float(odds.max()), 1.0), (f"smallest, {name}", 0.0, float(odds.min()))]
        rows.append((f"query, {name}", float(np.abs(one.queries()).max()), 1.0))
    return rows


def rounds_rows() -> list[Row]:
    """Expected rounds over all patterns of errors, against their bounds."""
    rows: list[Row] = []
    for name, one, data in many():
        rounds = under_all_signs(one, data).rounds
        rows += [(f"most, {name}", float(rounds.max()), most_rounds(one))]
        rows += [(f"least, {name}", one.growth, float(rounds.min()))]
    return rows


def most_rounds(one: RejectionSimulation) -> float:
    """The printed bound for one call, ``e^epsilon (1 + phi) / (1 - phi)``."""
    return one.growth * (1 + one.phi) / (1 - one.phi)


def exact_rounds_rows() -> list[Row]:
    """Expected rounds with an exact oracle, against their value."""
    return [(name, one.expected_rounds(data), (1 + one.phi) * one.growth) for name, one, data in many()]


def shifted_rounds_rows() -> list[Row]:
    """Expected rounds of the variant that shifts and clips, over all patterns of errors."""
    return [
        (name, float(under_all_signs(as_variant(ShiftAndClip, one), data).rounds.max()), one.growth)
        for name, one, data in many()
    ]


def _counts(first: float, second: float, t: int) -> float:
    """Total variation of t independent bits and others: that of their numbers of ones, which are sufficient."""
    k = np.arange(t + 1)
    return total_variation(stats.binom.pmf(k, t, first), stats.binom.pmf(k, t, second))


def _product(laws: list[FloatArray]) -> FloatArray:
    joint = np.ones(1)
    for law in laws:
        joint = np.outer(joint, law).ravel()
    return joint


def all_calls_rows(cls: type[RejectionSimulation]) -> list[Row]:
    """Total variation of the outputs of all calls, exactly, under the worst errors of every call, against beta."""
    rows: list[Row] = []
    some = (0.5, 1.0, 2.0)
    for beta in (0.1, 0.9):
        for epsilon in some:
            for t in (1, 10, 100, 1000):
                for sign in (-1.0, 1.0):
                    one = cls(response_to(epsilon, (0, 1)), beta, t, SignedErrorOracle((-sign, sign)))
                    out, target = float(one.output_law(BIT)[1]), float(one.target(BIT)[1])
                    rows.append((f"{t} responses, epsilon = {epsilon:g}, {sign:+g}", _counts(out, target, t), beta))
        # Four calls of different randomizers, each on an entry of its own.
        four = [cls(noisy_value(epsilon, GROUPS), beta, 4, ExactOracle(), k) for k, epsilon in enumerate((*some, 1.5))]
        four = [
            replace(one, oracle=under_all_signs(as_variant(RejectionSimulation, one), visit_shares()).worst)
            for one in four
        ]
        joint = _product([one.output_law(visit_shares()) for one in four])
        rows.append(("4 calls", total_variation(joint, _product([one.target(visit_shares()) for one in four])), beta))
    return rows


@dataclass(frozen=True, eq=False)
class DigitByDigit:
    """An oracle for a simulation's real-valued queries that itself has boolean queries only.

    Parameters
    ----------
    simulation : RejectionSimulation
        Whose queries.
    entries : ndarray of shape (persons,)
        Entries of the persons whose distribution is asked about.
    oracle : StatisticalQueryOracle
        Answers boolean queries.
    """

    simulation: RejectionSimulation
    entries: NDArray[np.int64]
    oracle: StatisticalQueryOracle

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """The same answers in every round; shape (.., outputs)."""
        asked = BooleanQueries(1.0, float(np.asarray(tolerance)), self.oracle)
        answers = [asked(values, 1, rng)[0] for values in self.simulation.queries()[self.entries].T]
        return np.broadcast_to(np.array(answers), np.shape(truth))


@dataclass(frozen=True, eq=False)
class FreshEntries:
    """An oracle that is a sample: every answer is a mean over fresh entries, the same for the queries of a round.

    Parameters
    ----------
    simulation : RejectionSimulation
        Whose queries.
    data : ndarray of shape (inputs,)
        The distribution of an entry.
    size : int
        Entries a round.
    """

    simulation: RejectionSimulation
    data: FloatArray
    size: int

    def __call__(self, truth: FloatArray, tolerance: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Answers of shape (runs, outputs), within the tolerance with the probability that the size is good for."""
        del tolerance
        counts = rng.multinomial(self.size, self.data, len(truth))
        return np.asarray(counts @ self.simulation.queries() / self.size)


@cache
def digits() -> list[tuple[str, RejectionSimulation]]:
    """Simulations that ask boolean queries about the persons' visits."""
    entries = np.minimum(rand()["mdvis"].to_numpy().astype(np.int64), GROUPS - 1)
    found = []
    for name, oracle in (("above", HighestAnswersOracle()), ("below", LowestAnswersOracle()), ("exact", ExactOracle())):
        one = RejectionSimulation(noisy_value(1.0, GROUPS), 0.3, 1, ExactOracle())
        found.append((name, replace(one, oracle=DigitByDigit(one, entries, oracle))))
    return found


def digit_rows() -> list[Row]:
    """Errors of real queries asked as boolean ones, and the distance that is left."""
    rows: list[Row] = []
    for name, one in digits():
        truth = one.truths(visit_shares())
        (off,) = np.abs(one.acceptance(visit_shares()) - one.odds(truth)) * one.ceiling / one.width
        rows.append((f"error of an answer, {name}", float(off.max()), one.tolerance))
        rows.append((f"distance, {name}", one.distance(visit_shares()), one.beta / one.calls))
        rows.append((f"expected rounds, {name}", one.expected_rounds(visit_shares()), most_rounds(one)))
    return rows
