"""Document 002, section 5.1.2: repeated calls on one entry simulated by statistical queries, Claim 5.10.

The data of a simulation are the distribution of one entry: that of three groups among the persons of the RAND data, who
saw a doctor never, one to three times, or more often. What is claimed is that the simulated answers, of which each is
drawn given the past ones, are close to those of the local algorithm in total variation, within a budget, and that few
queries suffice. All of that is computed exactly, for every pattern of errors of a whole tolerance in both queries of a
round, and the sampler is held against its exact distribution.

What a second reading of the document withdrew as errors is shown to hold: the budget, although the proof leaves out how
probabilities are normalised, and the odds of acceptance with either of the factors that can be meant. The catalogue's
example (two calls on a domain of three points: distance 0.038, 3.81 rounds) does not say which randomizers,
distribution and errors it is of; here its bounds are checked, at its parameters, under all patterns of errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Constant, Exactly
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, conformity, deviating, entry, expectation, inequality, scaling
from experiments.document_002_what_can_we_learn._simulated_calls import (
    OutputAsError,
    distance_figure,
    queries_figure,
    visit_shares,
)
from mechanisms.local_model.conditional_mutants import MUTANTS
from mechanisms.local_model.conditional_simulation import (
    ConditionalSimulation,
    EntryCalls,
    StepUnderAllSigns,
    in_turn,
    paths,
    step_under_all_signs,
)
from mechanisms.local_model.local_randomizers import noisy_value
from mechanisms.local_model.rejection_simulation import (
    NumberOfRounds,
    SignedErrorOracle,
    distance_bound,
    random_randomizer,
    response_to,
)
from mechanisms.statistical_queries.sq_oracles import ExactOracle, HighestAnswersOracle, LowestAnswersOracle

FloatArray = NDArray[np.float64]

#: A draw takes some dozens of rounds: enough of them for a divergence of 0.01.
_DRAWS = {"smoke": 20_000, "standard": 200_000}
#: Whether an entry of each group has seen a doctor, and often.
_ANY, _OFTEN = (0, 1, 1), (0, 0, 1)
#: Opposite errors of the two queries of a round, different for the two candidates: the worst there are.
_UP, _DOWN = SignedErrorOracle((1.0, -1.0)), SignedErrorOracle((-1.0, 1.0))


@cache
def _groups() -> FloatArray:
    """Shares of the persons with no visits, one to three, and four or more."""
    shares = visit_shares()
    groups = np.array([shares[0], shares[1:4].sum(), shares[4:].sum()])
    groups.setflags(write=False)
    return groups


def _adaptive_calls(first: float, second: float) -> EntryCalls:
    """Whether there was a visit; then of those who say so whether there were many, and of others the same again."""
    again, often = EntryCalls(response_to(second, _ANY)), EntryCalls(response_to(second, _OFTEN))
    return EntryCalls(response_to(first, _ANY), (again, often))


def _repeated_calls(*levels: float) -> EntryCalls:
    """Whether there was a visit, again and again."""
    return in_turn(*(response_to(level, _ANY) for level in levels))


@cache
def _many_simulations() -> list[tuple[str, ConditionalSimulation]]:
    """Local algorithms at which statements for all oracles are computed, at the catalogue's budget of 0.3 a call."""
    rng = np.random.default_rng(3)  # arbitrary, fixed: which random randomizers are looked at
    found: list[tuple[str, EntryCalls, int]] = []
    for first, second in ((0.4, 0.6), (0.6, 0.4), (1.0, 1.0), (2.0, 1.0)):
        where = f"epsilon = {first:g} + {second:g}"
        for reference in range(3):
            found.append((f"adaptive, reference {reference}, {where}", _adaptive_calls(first, second), reference))
            visits = in_turn(noisy_value(first, 3), noisy_value(second, 3))
            found.append((f"noisy groups, reference {reference}, {where}", visits, reference))
        for k in range(3):
            drawn = in_turn(random_randomizer(first, 3, 3, rng), random_randomizer(second, 3, 3, rng))
            found.append((f"random {k}, {where}", drawn, 0))
    found.append(("three calls, epsilon = 0.3 + 0.3 + 0.4", _repeated_calls(0.3, 0.3, 0.4), 2))
    return [
        (
            name,
            ConditionalSimulation(
                calls, min(0.3 * calls.depth, 0.9), ExactOracle(), ExactOracle(), reference=reference
            ),
        )
        for name, calls, reference in found
    ]


def _rows(of: Callable[[ConditionalSimulation, tuple[int, ...], StepUnderAllSigns], tuple[float, float]]) -> list[Row]:
    """A number of each call after all past answers, under all patterns of errors, against a bound."""
    rows: list[Row] = []
    for name, one in _many_simulations():
        for k in range(one.calls.depth):
            for past in paths(one.calls.outputs, k):
                where = f"{name}, after {past}" if past else name
                rows.append((where, *of(one, past, step_under_all_signs(one, past, _groups()))))
    return rows


def _cached_rows() -> list[Row]:
    """Largest distance of a call whose second query is asked once, against the bound by odds."""
    return _rows(
        lambda one, past, _: (
            float(step_under_all_signs(replace(one, cached=True), past, _groups()).distances.max()),
            distance_bound(one.relative),
        )
    )


def _all_answers() -> list[Row]:
    """Total variation of all answers, under every pattern of errors of one query and the opposite one of the other."""
    rows: list[Row] = []
    for name, one in _many_simulations():
        worst = 0.0
        for bits in paths(2, one.calls.outputs):
            signs = np.array(bits) * 2.0 - 1.0
            first, second = SignedErrorOracle(tuple(signs.tolist())), SignedErrorOracle(tuple((-signs).tolist()))
            worst = max(worst, replace(one, numerator=first, denominator=second).distance(_groups()))
        rows.append((name, worst, one.beta))
    return rows


def _most_queries(one: ConditionalSimulation) -> float:
    """The bound for one call, ``2 e^epsilon (1 + 3 tau') / (1 - 2 tau')``."""
    return 2 * math.exp(one.epsilon) * (1 + 3 * one.relative) / (1 - 2 * one.relative)


@dataclass(frozen=True)
class FirstAnswersDiffer:
    """Whether the first two answers of the first entry, of two possible ones each, are different."""

    def __call__(self, outputs: Any) -> FloatArray:
        """0 or 1 for each of n codes, shape (n,)."""
        codes = np.asarray(outputs)
        return np.asarray((codes ^ (codes >> 1)) & 1, dtype=np.float64)


def _disagreement(law: FloatArray) -> float:
    """Its probability under a distribution of codes."""
    return float(law @ FirstAnswersDiffer()(np.arange(law.size)))


@entry(
    "002/sq_sim_interactive",
    title="Conditional rejection sampling, call after call",
    source=Source("002", "section 5.1.2, Claim 5.10"),
)
def interactive() -> Iterator[Draft]:
    """Whether a person saw a doctor, asked twice, the second time in view of the first answer."""
    # The catalogue's parameters: levels 0.4 and 0.6, two calls, beta = 0.6.
    adaptive = ConditionalSimulation(_adaptive_calls(0.4, 0.6), 0.6, _UP, _DOWN)
    yield conformity(adaptive, _groups(), case="adaptive_calls", draws=_DRAWS)
    yield conformity(replace(adaptive, cached=True), _groups(), case="second_query_cached", draws=_DRAWS)
    thrice = ConditionalSimulation(
        _repeated_calls(0.3, 0.3, 0.4), 0.9, HighestAnswersOracle(), LowestAnswersOracle(), reference=2
    )
    yield conformity(thrice, _groups(), case="three_calls", draws=_DRAWS)
    # Two entries, whose calls alternate.
    two = ConditionalSimulation(_repeated_calls(1.5, 1.5), 0.1, _UP, _DOWN, entries=2)
    yield conformity(two, _groups(), case="two_entries", draws=_DRAWS)
    yield from _budgets()
    yield from _queries(adaptive)
    yield from _correlation(two)
    yield from _mutants(two)


def _budgets() -> Iterator[Draft]:
    """Total variation."""
    yield inequality(
        lambda: _rows(lambda one, _, found: (float(found.distances.max()), one.beta / one.calls.depth)),
        statement="a simulated answer is within beta/t of the randomizer's given the past ones, whatever the errors",
        level="L4",
        case="distance_of_one_call",
    )
    yield inequality(
        lambda: _rows(lambda one, _, found: (float(found.distances.max()), one.relative)),
        statement="it is within tau' = beta/(3t)",
        level="L4",
        case="distance_by_odds",
        derived=True,
        note="the odds of an event change by at most ((1 + tau')/(1 - tau'))^2, its probability by at most tau'",
    )
    yield inequality(
        _cached_rows,
        statement="it is within (1 - sqrt(1 - tau'^2))/tau', about tau'/2, if the second query is asked once a call",
        level="L4",
        case="distance_with_a_cached_query",
        derived=True,
    )
    yield inequality(
        _all_answers,
        statement="all t answers are within beta of the local algorithm's, whatever the errors",
        level="L4",
        case="distance_of_all_calls",
    )
    yield scaling(
        _worst_distance,
        parameter="beta/t",
        at=[0.01, 0.03, 0.1, 0.3, 0.45],
        exponent=1.0,
        others=[0.5, 2.0],
        measure=Exactly("total variation of a simulated call under the worst errors"),
        curve=lambda share: share,
        case="distance_against_beta",
        figure=distance_figure("the second of two calls on one entry"),
    )


def _second_call(calls: EntryCalls, beta: float) -> StepUnderAllSigns:
    """The second of two calls, after an answer that is rare on the reference, under all patterns of errors."""
    return step_under_all_signs(ConditionalSimulation(calls, beta, ExactOracle(), ExactOracle()), (1,), _groups())


def _worst_distance(share: float) -> float:
    """Exact total variation of a simulated call under the worst errors, at its share of the budget."""
    return float(_second_call(_adaptive_calls(0.4, 0.6), 2 * share).distances.max())


def _largest_expected_queries(growth: float) -> float:
    """Exact expectation of the queries of a call under the worst errors, at ``e^epsilon``."""
    level = math.log(growth) / 2
    return 2 * float(_second_call(_adaptive_calls(level, level), 0.6).rounds.max())


def _queries(adaptive: ConditionalSimulation) -> Iterator[Draft]:
    """Odds of acceptance, and numbers of queries."""
    yield inequality(
        lambda: _rows(lambda _one, _past, found: (float(found.odds.max()), 1.0)),
        statement="with 1 + 3 tau' the odds of acceptance are at most 1, whatever the errors",
        level="L4",
        case="odds",
    )
    yield inequality(
        lambda: _rows(
            lambda one, _, found: (float(found.odds.max()) * (1 + 3 * one.relative) / (1 + one.relative), 1.0)
        ),
        statement="so they are with Claim 5.9's factor 1 + tau'",
        level="L4",
        case="odds_with_the_factor_of_claim_5_9",
        note="the document does not restate the factor; either is safe",
    )
    yield inequality(
        lambda: _rows(lambda one, past, _: (max(float(np.abs(g).max()) for g in one.queries(past)), 1.0)),
        statement="queries have values in [-1, 1]",
        level="L4",
        case="queries_in_range",
    )
    yield inequality(
        lambda: _rows(lambda one, _, found: (2 * float(found.rounds.max()), _most_queries(one))),
        statement="a call takes at most 2 e^epsilon (1 + 3 tau')/(1 - 2 tau') queries on average, whatever the errors",
        level="L4",
        case="queries_of_one_call",
        derived=True,
    )
    yield scaling(
        _largest_expected_queries,
        parameter="e^eps",
        at=[math.exp(epsilon) for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5)],
        exponent=1.0,
        others=[0.5, 2.0],
        measure=Exactly("expected number of queries under the worst errors"),
        curve=lambda growth: 2 * growth * (1 + 3 * 0.1) / (1 - 2 * 0.1),
        case="queries_against_epsilon",
        figure=queries_figure("the second of two calls on one entry"),
    )
    most = adaptive.calls.depth * _most_queries(adaptive)
    yield expectation(
        NumberOfRounds(replace(adaptive, numerator=LowestAnswersOracle(), denominator=HighestAnswersOracle())),
        _groups(),
        OutputAsError(),
        at_most=most,
        controls={"a run of twice the rounds, each time": Constant(2.0 * most)},
        case="queries_of_all_calls",
        draws={"smoke": 10_000, "standard": 100_000},
        derived=True,
    )


def _correlation(two: ConditionalSimulation) -> Iterator[Draft]:
    """Two answers about one entry are correlated, in the simulation as in the local algorithm."""
    yield expectation(
        two,
        _groups(),
        FirstAnswersDiffer(),
        at_most=_disagreement(two.target(_groups())) + two.beta,
        exact=_disagreement(two.output_law(_groups())),
        controls={"two answers that differ, each time": Constant(1)},
        case="answers_disagree",
        draws={"smoke": 5_000, "standard": 50_000},
        note="the probability that two answers to one question differ, with beta for the simulation",
    )


def _mutants(two: ConditionalSimulation) -> Iterator[Draft]:
    for name, mutant in MUTANTS.items():
        yield deviating(mutant, two, _groups(), draws=_DRAWS)
        built = mutant.build(two)
        assert isinstance(built, ConditionalSimulation)
        yield _too_far(name, built, mutant.note)
        if name != "step_eps_in_scaling":
            yield expectation(
                built,
                _groups(),
                FirstAnswersDiffer(),
                at_most=_disagreement(two.target(_groups())) + two.beta,
                exact=_disagreement(built.output_law(_groups())),
                case=f"{name}__answers_disagree",
                draws={"smoke": 5_000, "standard": 50_000},
                expected="deviation",
                is_mutant=True,
                note=mutant.note,
            )
            continue
        yield inequality(
            lambda one=built: [  # type: ignore[misc]
                (f"after {past}", float(np.abs(one.queries(past)[0]).max()), 1.0) for past in ((0,), (1,))
            ],
            statement="queries have values in [-1, 1]",
            level="L4",
            case=f"{name}__range",
            expected="deviation",
            is_mutant=True,
            note=mutant.note,
        )


def _too_far(name: str, built: ConditionalSimulation, note: str) -> Draft:
    return inequality(
        lambda: [("all answers about two entries", built.distance(_groups()), built.beta)],
        statement="all t answers are within beta of the local algorithm's",
        level="L4",
        case=name,
        expected="deviation",
        is_mutant=True,
        note=note,
    )
