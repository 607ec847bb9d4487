"""From statistical queries to a local protocol and back: algorithms, protocols, exact output distributions."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import curve
from mechanisms.local_model.conditional_simulation import in_turn
from mechanisms.local_model.rejection_simulation import SignedErrorOracle, total_variation
from mechanisms.local_model.response_protocol import (
    BitTranscript,
    BooleanQueryStep,
    LocalProtocol,
    binary_search,
    in_parallel,
    least_ones,
    message,
    persons_needed,
    spread,
)
from mechanisms.local_model.roundtrip import RoundTrip
from mechanisms.statistical_queries.sq_oracles import ExactOracle, HighestAnswersOracle, LowestAnswersOracle
from tests.statistics import p_value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

SEARCH = binary_search(4, 0.4)
PARALLEL = in_parallel(((1, 1, -1, -1), (1, -1, 1, -1)), (0.1, -0.2))
ENTRY = np.array([0.35, 0.3, 0.2, 0.15])
UP, DOWN = SignedErrorOracle((-1.0, 1.0)), SignedErrorOracle((1.0, -1.0))


def answer(algorithm: BooleanQueryStep, answers: dict[tuple[int, ...], float]) -> int:
    """What an algorithm outputs, if its queries are answered like this."""
    step: BooleanQueryStep | int = algorithm
    while isinstance(step, BooleanQueryStep):
        step = step.above if answers[step.query] > step.threshold else step.below
    return step


# ---------------------------------------------------------------------------------- algorithms


def test_a_binary_search_finds_the_quantile() -> None:
    rng = np.random.default_rng(1)
    for inputs in (2, 4, 16):
        algorithm = binary_search(inputs, 0.37)
        assert algorithm.depth == math.log2(inputs)
        for _ in range(50):
            entry = rng.dirichlet(np.ones(inputs))
            quantile = int((np.cumsum(entry) <= 0.37).sum())
            assert algorithm.valid_outputs(entry, 0.0) == {min(quantile, inputs - 1)}


def test_parallel_queries_are_the_bits_of_the_output() -> None:
    entry = np.array([0.4, 0.1, 0.3, 0.2])
    assert [ask.truth(entry) for ask in PARALLEL.nodes()] == pytest.approx([0.0, 0.4, 0.4])
    assert PARALLEL.valid_outputs(entry, 0.05) == {2}
    assert PARALLEL.valid_outputs(entry, 0.15) == {2, 3}
    assert PARALLEL.depth == 2
    assert PARALLEL.outputs() == 4


def test_valid_outputs_are_those_of_all_oracles() -> None:
    rng = np.random.default_rng(2)
    for algorithm in (SEARCH, PARALLEL, binary_search(16, 0.5)):
        nodes = {ask.query: ask for ask in algorithm.nodes()}
        for _ in range(10):
            entry, tolerance = rng.dirichlet(np.ones(len(algorithm.query))), 0.15
            found = set()
            for signs in itertools.product((-1, 1), repeat=min(len(nodes), 6)):
                # Queries beyond the sixth are answered exactly: what is found is valid, if perhaps not all.
                off = dict(zip(nodes, signs, strict=False))
                found.add(
                    answer(algorithm, {q: ask.truth(entry) + tolerance * off.get(q, 0) for q, ask in nodes.items()})
                )
            valid = algorithm.valid_outputs(entry, tolerance)
            assert found <= valid
            if len(nodes) <= 6:
                assert found == valid


# ----------------------------------------------------------------------------------- protocols


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_a_message_is_unbiased_and_of_level_epsilon(epsilon: float) -> None:
    query = (1, -1, -1, 1)
    randomizer = message(query, epsilon)
    assert randomizer.level == pytest.approx(epsilon, rel=1e-12)
    c = spread(epsilon)
    assert c == pytest.approx((math.exp(epsilon) + 1) / (math.exp(epsilon) - 1), rel=1e-12)
    np.testing.assert_allclose(c * (2 * randomizer.rows[:, 1] - 1), query, rtol=1e-12)


@pytest.mark.parametrize("threshold", [-0.9, -0.2, 0.0, 0.1, 0.77])
@pytest.mark.parametrize("persons", [1, 2, 9, 100])
def test_the_least_number_of_ones_is_the_first_above_the_threshold(threshold: float, persons: int) -> None:
    ones = np.arange(persons + 2)
    above = np.flatnonzero(spread(1.0) * (2 * ones / persons - 1) > threshold + 1e-12)
    assert least_ones(threshold, persons, 1.0) == ones[above[0]]


def test_as_many_persons_as_are_needed() -> None:
    # 2 c^2 ln(2 k / beta) / tau^2 at epsilon = 1: c = 2.164.
    assert persons_needed(1.0, 0.1, 4, 0.05) == math.ceil(2 * 2.163953414**2 * math.log(160) / 0.01)
    # And they are enough, by far: the exact probability that an answer is off by more than the tolerance.
    persons, c = persons_needed(1.0, 0.1, 4, 0.05), spread(1.0)
    for truth in np.linspace(-1, 1, 9):
        ones = stats.binom(persons, (1 + truth / c) / 2)
        low, high = (persons * (1 + (truth + off) / c) / 2 for off in (-0.1, 0.1))
        assert ones.cdf(math.ceil(low) - 1) + ones.sf(math.floor(high)) <= 0.05 / 4


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("algorithm", [SEARCH, PARALLEL])
def test_laws_on_given_entries(algorithm: BooleanQueryStep, same: bool) -> None:
    protocol = LocalProtocol(algorithm, 1.0, 3, same)
    entries = np.array([0, 3, 1] if same else [0, 3, 1, 2, 2, 0])
    outputs = protocol(entries, 40_000, np.random.default_rng(3))
    law = protocol.law(entries).probabilities
    assert p_value(np.bincount(outputs, minlength=law.size), law) > ALARM
    whole = BitTranscript(protocol)
    codes = whole(entries, 40_000, np.random.default_rng(4))
    transcripts = whole.law(entries).probabilities
    assert transcripts.size == 2**6
    assert p_value(np.bincount(codes, minlength=64), transcripts) > ALARM
    # The output is a function of the transcript.
    found = np.zeros(law.size)
    for code, mass in enumerate(transcripts):
        ones = [bin(code >> 3 * k & 7).count("1") for k in range(2)]
        step: BooleanQueryStep | int = algorithm
        for count in ones:
            assert isinstance(step, BooleanQueryStep)
            step = step.above if count >= protocol.least(step) else step.below
        assert isinstance(step, int)
        found[step] += mass
    np.testing.assert_allclose(found, law, atol=1e-14)


@pytest.mark.parametrize("same", [False, True])
def test_every_person_costs_at_most_epsilon_and_a_transcript_all_of_it(same: bool) -> None:
    protocol = LocalProtocol(SEARCH, 1.0, 2, same)
    size = 2 if same else 4
    rng, highest = np.random.default_rng(5), 0.0
    for _ in range(8):
        x = rng.integers(0, 4, size)
        for i, u in itertools.product(range(size), range(4)):
            y = x.copy()
            y[i] = u
            pairs = [(mechanism.law(x), mechanism.law(y)) for mechanism in (BitTranscript(protocol), protocol)]
            whole, output = (curve(*laws).epsilon(0.0) for laws in pairs)
            assert output <= whole + 1e-12
            assert whole <= 1.0 + 1e-12
            highest = max(highest, whole)
    assert highest == pytest.approx(1.0, rel=1e-12)


# ----------------------------------------------------------------------------------- round trip


def by_enumeration(trip: RoundTrip, simulated: bool) -> FloatArray:
    """Distribution of the output, by all messages of all persons; for few of them."""
    protocol = trip.protocol
    law, n, algorithm = np.zeros(protocol.algorithm.outputs()), protocol.persons, protocol.algorithm

    @cache
    def pair(second: BooleanQueryStep) -> FloatArray:
        """Probabilities of a person's message to the first query, and of the one to the second, shape (2, 2)."""
        if protocol.same:
            both = trip.both(second)
            step = both.step_law if simulated else both.step_target
            return np.asarray(step((), ENTRY)[:, None] * np.array([step((a,), ENTRY) for a in (0, 1)]))
        one, two = (
            each.output_law(ENTRY) if simulated else each.target(ENTRY)
            for each in (trip.call(algorithm, 0), trip.call(second, 1))
        )
        return np.outer(one, two)

    for bits in itertools.product((0, 1), repeat=2 * n):
        first, second = bits[:n], bits[n:]
        step = algorithm.branches()[sum(first) >= protocol.least(algorithm)]
        assert isinstance(step, BooleanQueryStep)
        output = step.branches()[sum(second) >= protocol.least(step)]
        assert isinstance(output, int)
        mass = math.prod(float(pair(step)[a, b]) for a, b in zip(first, second, strict=True))
        law[output] += mass
    return law


TRIPS = [
    RoundTrip(LocalProtocol(algorithm, 1.0, 4, same), 0.9, oracles)
    for algorithm in (SEARCH, PARALLEL)
    for same in (False, True)
    for oracles in ((UP, DOWN), (HighestAnswersOracle(), LowestAnswersOracle()))
]


@pytest.mark.parametrize("trip", TRIPS, ids=range(len(TRIPS)))
def test_laws_on_persons_from_a_distribution(trip: RoundTrip) -> None:
    np.testing.assert_allclose(trip.output_law(ENTRY), by_enumeration(trip, True), rtol=1e-9)
    np.testing.assert_allclose(trip.local_law(ENTRY), by_enumeration(trip, False), rtol=1e-9)
    assert 0 < total_variation(trip.output_law(ENTRY), trip.local_law(ENTRY)) <= trip.beta
    exact = replace(trip, oracles=(ExactOracle(), ExactOracle()))
    np.testing.assert_allclose(exact.output_law(ENTRY), trip.local_law(ENTRY), rtol=1e-9)


@pytest.mark.parametrize("trip", TRIPS, ids=range(len(TRIPS)))
def test_round_trips_follow_their_law(trip: RoundTrip) -> None:
    outputs = trip(ENTRY, 10_000, np.random.default_rng(6))
    law = trip.law(ENTRY).probabilities
    assert p_value(np.bincount(outputs, minlength=law.size), law) > ALARM


@pytest.mark.parametrize("same", [False, True])
def test_the_local_law_is_that_of_persons_who_are_drawn(same: bool) -> None:
    protocol, rng, n = LocalProtocol(SEARCH, 2.0, 3, same), np.random.default_rng(7), 20_000
    entries = rng.choice(4, (n, 2, 3), p=ENTRY)
    if same:
        entries[:, 1] = entries[:, 0]

    def high(ask: BooleanQueryStep, k: int) -> NDArray[np.bool_]:
        said = rng.random((n, 3)) < message(ask.query, protocol.level).rows[entries[:, k], 1]
        return np.asarray(said.sum(axis=1) >= protocol.least(ask))

    below, above = SEARCH.branches()
    assert isinstance(below, BooleanQueryStep)
    assert isinstance(above, BooleanQueryStep)
    # Fewer below the middle: inputs 2 and 3 are left, and the other way round.
    outputs = np.where(high(SEARCH, 0), 1 - high(above, 1), 3 - high(below, 1))
    law = RoundTrip(protocol, 0.5, (ExactOracle(), ExactOracle())).local_law(ENTRY)
    assert p_value(np.bincount(outputs, minlength=4), law) > ALARM


def test_what_is_missed() -> None:
    trip = RoundTrip(LocalProtocol(SEARCH, 1.0, 50), 0.05, (UP, DOWN))
    law = np.array([0.1, 0.2, 0.3, 0.4])
    # 0.35 and 0.65 of the persons are at most 0 and 1: at the share 0.4 only input 1 is a valid output.
    assert SEARCH.valid_outputs(ENTRY, 0.05) == {1}
    assert trip.missed(law, ENTRY, 0.05) == pytest.approx(0.8)
    assert SEARCH.valid_outputs(ENTRY, 0.11) == {0, 1}
    assert trip.missed(law, ENTRY, 0.11) == pytest.approx(0.7)


def test_both_simulations_are_of_the_protocols_calls() -> None:
    trip = RoundTrip(LocalProtocol(SEARCH, 1.0, 50, same=True), 0.06, (UP, DOWN))
    second = SEARCH.branches()[0]
    assert isinstance(second, BooleanQueryStep)
    both = trip.both(second)
    assert both.calls == in_turn(message(SEARCH.query, 0.5), message(second.query, 0.5))
    assert both.relative == pytest.approx(0.06 / 300)  # a hundred calls
    fresh = replace(trip, protocol=LocalProtocol(SEARCH, 1.0, 50))
    assert fresh.call(SEARCH, 0).phi == pytest.approx(0.06 / 300)
    assert fresh.call(SEARCH, 0).epsilon == 1.0


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda: BooleanQueryStep((1, 0), 0.0, 0, 1), "0"),
        (lambda: BooleanQueryStep((1, -1), 1.0, 0, 1), "1.0"),
        (lambda: BooleanQueryStep((1, -1), 0.0, SEARCH, 1), r"\[2, 0\]"),
        (lambda: binary_search(3, 0.5), "got 3"),
        (lambda: binary_search(4, 1.0), "got 1.0"),
        (lambda: in_parallel((), ()), "at least one query"),
        (lambda: LocalProtocol(SEARCH, 0.0, 3), "got 0.0"),
        (lambda: LocalProtocol(SEARCH, 1.0, 0), "got 0"),
        (lambda: LocalProtocol(SEARCH, 1.0, 3).law([0, 1, 2]), r"\(3,\)"),
        (lambda: LocalProtocol(SEARCH, 1.0, 1).law([0, 4]), "4"),
        (lambda: BitTranscript(LocalProtocol(SEARCH, 1.0, 9)), "got 18"),
        (lambda: RoundTrip(LocalProtocol(SEARCH, 1.0, 3), 0.1, (UP,)), "2 oracles"),
        (lambda: RoundTrip(LocalProtocol(binary_search(8, 0.5), 1.0, 3, same=True), 0.1, (UP,) * 3), "got 3"),
    ],
)
def test_bad_input_is_shown(build: object, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        build()  # type: ignore[operator]
