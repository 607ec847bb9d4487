"""Document 002, section 5: from statistical queries to a local protocol and back, Lemma 5.8 and Theorem 5.14.

The theorem is about classes: what can be learned by statistical queries can be learned locally, and conversely. What
can be run is a round trip. An algorithm that asks at most five boolean queries about the number of doctor visits of the
RAND data's persons is run by a local protocol, of one message of randomised response from each person and query, which
fails with probability at most beta_1 to answer all queries within the tolerance; the protocol is simulated by
statistical queries, within total variation beta_2. So what comes out is, with probability at least 1 - beta_1 - beta_2,
what the algorithm outputs with some valid oracle. Distributions of outputs are computed exactly, by binomial sums.

Beyond |D| = 16 inputs and t = 5 queries nothing is computed here: numbers of messages grow with t ln t / tau^2.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, conformity, entry, inequality, reference
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE, rand
from mechanisms.local_model.rejection_simulation import SignedErrorOracle, total_variation
from mechanisms.local_model.response_protocol import (
    BitTranscript,
    BooleanQueryStep,
    LocalProtocol,
    binary_search,
    in_parallel,
    persons_needed,
)
from mechanisms.local_model.roundtrip import RoundTrip
from mechanisms.statistical_queries.sq_oracles import HighestAnswersOracle, LowestAnswersOracle

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Numbers of visits that are told apart: 0 to 14, and 15 or more.
_INPUTS = 16
#: Probability that the protocol misses a tolerance, and total variation of its simulation.
_BETA_1 = _BETA_2 = 0.05


@cache
def _visits() -> IntArray:
    """The entry of each person of the data."""
    entries = np.minimum(rand()["mdvis"].to_numpy().astype(np.int64), _INPUTS - 1)
    entries.setflags(write=False)
    return entries


@cache
def _shares(*bounds: int) -> FloatArray:
    """Shares of the numbers of visits, or of groups of them that begin at 0 and at the bounds."""
    entries = np.searchsorted(np.array(bounds), _visits(), side="right") if bounds else _visits()
    shares = np.bincount(entries, minlength=len(bounds) + 1 if bounds else _INPUTS) / entries.size
    shares.setflags(write=False)
    return np.asarray(shares)


def _visits_query(*values: int) -> tuple[int, ...]:
    """The query whether the number of visits is one of these."""
    return tuple(1 if u in values else -1 for u in range(_INPUTS))


#: The number of visits that 42 of 100 persons do not exceed; 50.1 of 100 have at most one, so that at a tolerance of
#: 0.15 this is nearly in doubt, and yet there is one valid answer.
_SEARCH, _TOLERANCE = binary_search(_INPUTS, 0.42), 0.15
#: Five questions at once. Half of the persons have two visits or more: to the second, either answer is valid.
_FIVE = in_parallel(
    (
        _visits_query(*range(1, 16)),
        _visits_query(*range(2, 16)),
        _visits_query(*range(4, 16)),
        _visits_query(*range(1, 16, 2)),
        _visits_query(0, 15),
    ),
    (0.2, 0.0, -0.3, -0.45, -0.5),
)
#: Two questions to the same persons, of whom there are four groups: the quartile that the median lies in.
_QUARTERS, _BOUNDS = binary_search(4, 0.4), (1, 2, 4)


@cache
def _trip_cases() -> list[tuple[str, LocalProtocol, FloatArray, float]]:
    """Protocols with as many persons as are needed, distributions and tolerances."""
    found = []
    for epsilon in (0.5, 1.0, 2.0):
        for name, algorithm in (("search", _SEARCH), ("five", _FIVE)):
            persons = persons_needed(epsilon, _TOLERANCE, algorithm.depth, _BETA_1)
            protocol = LocalProtocol(algorithm, epsilon, persons)
            found.append((f"{name}, epsilon = {epsilon:g}", protocol, _shares(), _TOLERANCE))
    for epsilon in (2.0, 4.0):
        # Three queries may be asked, of the same persons.
        persons = persons_needed(epsilon / 2, _TOLERANCE, 3, _BETA_1)
        protocol = LocalProtocol(_QUARTERS, epsilon, persons, same=True)
        found.append((f"same persons, epsilon = {epsilon:g}", protocol, _shares(*_BOUNDS), _TOLERANCE))
    return found


def _under_all_errors(protocol: LocalProtocol, beta: float) -> Iterator[tuple[str, RoundTrip]]:
    """Simulations of a protocol whose queries are answered with errors that make messages 1 rarer, or more frequent."""
    for signs in itertools.product((-1.0, 1.0), repeat=protocol.algorithm.depth):
        yield f"{signs}", RoundTrip(protocol, beta, tuple(SignedErrorOracle((-sign, sign)) for sign in signs))


def _invalid_output_rows() -> list[Row]:
    """Probability of an output that is not valid, after the whole trip, at the worst errors."""
    rows: list[Row] = []
    for name, protocol, data, tolerance in _trip_cases():
        trips = _under_all_errors(protocol, _BETA_2)
        worst = max(trip.missed(trip.output_law(data), data, tolerance) for _, trip in trips)
        rows.append((name, worst, _BETA_1 + _BETA_2))
    return rows


def _missed_locally() -> list[Row]:
    """Probability of an output that is not valid, of the protocol."""
    rows: list[Row] = []
    for name, protocol, data, tolerance in _trip_cases():
        _, trip = next(_under_all_errors(protocol, _BETA_2))
        rows.append((name, trip.missed(trip.local_law(data), data, tolerance), _BETA_1))
    return rows


def _distances() -> list[Row]:
    """Total variation between outputs of a protocol and of its simulation, at the worst errors."""
    rows: list[Row] = []
    # A large budget shows where there are few persons; among many it is lost.
    few = [
        (f"{name}, one person a query", LocalProtocol(protocol.algorithm, protocol.epsilon, 1, protocol.same), data)
        for name, protocol, data, _ in _trip_cases()
    ]
    for name, protocol, data in [*few, *((name, protocol, data) for name, protocol, data, _ in _trip_cases())]:
        for beta in (_BETA_2, 0.9) if protocol.persons == 1 else (_BETA_2,):
            trips = [trip for _, trip in _under_all_errors(protocol, beta)]
            local = trips[0].local_law(data)
            worst = max(total_variation(trip.output_law(data), local) for trip in trips)
            rows.append((f"{name}, beta = {beta:g}", worst, beta))
    return rows


@dataclass(frozen=True, eq=False)
class InvalidOutput:
    """Whether an output is not one of the valid ones."""

    valid: frozenset[int]

    def __call__(self, outputs: Any) -> FloatArray:
        """0 or 1 for each of n outputs, shape (n,)."""
        return np.asarray(~np.isin(np.asarray(outputs), sorted(self.valid)), dtype=np.float64)


def _persons(protocol: LocalProtocol, change: int, first: int, second: int, name: str, inputs: int) -> Pair:
    """Persons of the data, as many as a protocol has, of whom one's entry changes."""
    x = np.minimum(_visits()[: protocol.persons if protocol.same else protocol.messages], inputs - 1).copy()
    y = x.copy()
    x[change], y[change] = first, second
    return Pair(x, y, name)


@entry(
    "002/sq_local_roundtrip",
    title="From statistical queries to a local protocol and back",
    source=Source("002", "section 5, Lemma 5.8 and Theorem 5.14"),
)
def roundtrip() -> Iterator[Draft]:
    """Searching a quantile, answering five questions, and two questions to the same persons."""
    yield from _privacy()
    yield inequality(
        _missed_locally,
        statement="the local protocol outputs what the algorithm does with some oracle, but for beta_1",
        level="L4",
        case="protocol",
        derived=True,
    )
    yield inequality(
        _distances,
        statement="the protocol's output and the simulation's are within beta_2, whatever the errors",
        level="L4",
        case="simulation",
    )
    yield inequality(
        _invalid_output_rows,
        statement="after the round trip it is what the algorithm outputs with some oracle, but for beta_1 + beta_2",
        level="L4",
        case="round_trip",
    )
    for name, protocol, data, tolerance in _trip_cases():
        kind, _, level = name.partition(", epsilon = ")
        if level == "2":
            trip = RoundTrip(
                protocol,
                _BETA_2,
                (HighestAnswersOracle(), LowestAnswersOracle()) * 2
                if kind == "search"
                else _alternating_signs(protocol),
            )
            yield accuracy(
                trip,
                data,
                InvalidOutput(protocol.algorithm.valid_outputs(data, tolerance)),
                at_most=0.0,
                beta=_BETA_1 + _BETA_2,
                exact=trip.missed(trip.output_law(data), data, tolerance),
                case=kind.replace(" ", "_"),
                draws={"smoke": 300, "standard": 1_000},
                parameters={"persons a query": protocol.persons, "epsilon": protocol.epsilon, "tolerance": tolerance},
                independence=False,  # draws are slow; the samplers' is tested below
                note="an output that is not valid is a failure",
            )
    # The samplers, with few persons and large budgets, where errors show.
    fresh = LocalProtocol(binary_search(4, 0.4), 1.0, 9)
    same = LocalProtocol(_QUARTERS, 2.0, 9, same=True)
    for case, small in (("fresh_persons", fresh), ("same_persons", same)):
        yield conformity(
            RoundTrip(small, 0.9, _alternating_signs(small)),
            _shares(*_BOUNDS),
            case=case,
            draws={"smoke": 20_000, "standard": 200_000},
        )


def _alternating_signs(protocol: LocalProtocol) -> tuple[SignedErrorOracle, ...]:
    """Errors that make messages 1 more frequent to the first query, rarer to the second, and so on."""
    return tuple(SignedErrorOracle((-1.0, 1.0) if k % 2 == 0 else (1.0, -1.0)) for k in range(protocol.algorithm.depth))


def _privacy() -> Iterator[Draft]:
    """Messages, all messages together, and the output."""
    message = LocalProtocol(BooleanQueryStep(_visits_query(0), 0.0, 0, 1), 1.0, 1)
    fresh = LocalProtocol(_SEARCH, 1.0, 2)
    same = LocalProtocol(_QUARTERS, 1.0, 3, same=True)
    learned = LocalProtocol(_SEARCH, 1.0, 5)
    far = _INPUTS - 1
    for case, mechanism, pairs in (
        ("message", BitTranscript(message), [_persons(message, 0, 0, 1, "a person with no visit, or one", _INPUTS)]),
        (
            "transcript",
            BitTranscript(fresh),
            [
                _persons(fresh, 7, 0, far, "the last person", _INPUTS),
                _persons(fresh, 1, 0, far, "the last person of the first block", _INPUTS),
                _persons(fresh, 2, 0, far, "the first person of the second block", _INPUTS),
            ],
        ),
        ("transcript_same_persons", BitTranscript(same), [_persons(same, 2, 0, 3, "the last person", 4)]),
        ("output", learned, [_persons(learned, 0, 0, far, "a person of the first block", _INPUTS)]),
    ):
        claim = PureDP(mechanism.epsilon)
        yield from reference(mechanism, claim, pairs, case=case, relation=REPLACE, follows=False)
        yield conformity(mechanism, pairs[0], case=case, draws={"smoke": 40_000, "standard": 400_000})
