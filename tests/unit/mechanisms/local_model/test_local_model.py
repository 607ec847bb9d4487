"""The local model: randomizers, levels, distributions; the oracle and its ledger; adversaries; commitments; mutants."""

from __future__ import annotations

import functools
import hashlib
import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from auditor.privacy.exact import FiniteLaw, curve
from auditor.targets.analysts import Adaptive, FixedList, RandomQueries, Repeat
from auditor.targets.interactive import SKIP, History
from auditor.targets.transcripts import Dialogue
from mechanisms.local_model.local_model import (
    FAILED,
    MUTANTS,
    REFUSED,
    SILENT,
    LocalAlgorithm,
    LocalOracle,
    OracleSession,
)
from mechanisms.local_model.local_randomizers import (
    LocalRandomizer,
    TwiceNoisy,
    alarm,
    constant,
    noisy_value,
    of_matrix,
    response,
)
from mechanisms.local_model.noninteractive import NoninteractiveOracle
from mechanisms.local_model.repeated_response import RaiseStakes
from tests.statistics import p_value

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

KINDS = {
    "response": response(0.7),
    "five symbols": response(1.5, 5),
    "noisy value": noisy_value(1.0, 6),
    "alarm": alarm(1.0, 0.1),
    "constant": constant(3),
    "two noises": TwiceNoisy(1.0, 3).clamped(4),
}


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def chi_square(observed: dict[Any, int], law: FiniteLaw) -> float:
    """P-value of counts by output."""
    assert set(observed) <= set(law.outcomes)
    return p_value([observed.get(o, 0) for o in law.outcomes], law.probabilities)


def tally(outputs: np.ndarray[Any, Any]) -> dict[Any, int]:
    rows, times = np.unique(outputs, axis=0, return_counts=True)
    return {tuple(row) if outputs.ndim == 2 else row: int(k) for row, k in zip(rows.tolist(), times, strict=True)}


def level(mechanism: Any, x: Sequence[int], y: Sequence[int]) -> float:
    return curve(mechanism.law(np.array(x)), mechanism.law(np.array(y))).epsilon(0.0)


# --------------------------------------------------------------------------------- randomizers


def test_levels_of_randomizers() -> None:
    for epsilon in (0.01, 0.5, 1.0, 4.0):
        for k in (2, 3, 17):
            assert response(epsilon, k).level == pytest.approx(epsilon, rel=1e-12)
            assert noisy_value(epsilon, k).level == pytest.approx(epsilon, rel=1e-12)
        assert alarm(epsilon, 1.0 / (1.0 + math.exp(epsilon))).level == pytest.approx(epsilon, rel=1e-12)
        assert TwiceNoisy(epsilon, 3).clamped(5).level < epsilon
    assert constant().level == 0.0
    assert LocalRandomizer(((1.0, 0.0), (1.0, 0.0)), 0.0).level == 0.0
    # Warner: truth with probability 2/3.
    assert response(math.log(2)).rows.ravel().tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 3, 2 / 3])


@pytest.mark.parametrize("name", KINDS)
def test_the_law_of_a_randomizer_by_every_pair_of_inputs(name: str) -> None:
    one = KINDS[name]
    found = 0.0
    for u, row in enumerate(one.matrix):
        assert sum(one.pmf(u, w) for w in range(len(row))) == pytest.approx(1.0, abs=1e-12)
        assert one.pmf(u, len(row)) == one.pmf(u, -1) == 0.0
        for v, other in enumerate(one.matrix):
            found = max(found, *(math.log(p / q) for p, q in zip(row, other, strict=True)))
            assert level(one, [u], [v]) <= one.epsilon * (1 + 1e-12)
    assert one.level == pytest.approx(found, abs=1e-14)


@pytest.mark.parametrize("name", KINDS)
def test_draws_of_a_randomizer_follow_its_matrix(name: str) -> None:
    one = KINDS[name]
    for u in range(len(one.matrix)):
        outputs = one(np.array([u]), 20_000, rng(u))
        assert outputs.dtype == np.int64
        assert chi_square(tally(outputs), one.law([u])) > ALARM / len(one.matrix)


def test_noise_is_clamped() -> None:
    # Against the sum over the integers.
    one, a = noisy_value(0.9, 4), math.exp(0.3)
    k = np.arange(-2000, 2001)
    mass = a ** -np.abs(k).astype(float) * (a - 1) / (a + 1)
    for u in range(4):
        wanted = np.bincount(np.clip(u + k, 0, 3), mass)
        assert one.matrix[u] == pytest.approx(wanted.tolist(), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "values"), [(0.1, 2), (1.0, 4), (3.0, 2)])
def test_two_noises_by_convolution(epsilon: float, values: int) -> None:
    one = TwiceNoisy(epsilon, values)
    k = np.arange(-4000, 4001)
    mass = one.ratio ** np.abs(k).astype(float) * (1 - one.ratio) / (1 + one.ratio)
    both = np.convolve(mass, mass)[4000:-4000]
    for w in range(-30, 31):
        assert one.pmf(0, w) == pytest.approx(both[w + 4000], rel=1e-9)
        for phi in (0.1, 1e-4, 1e-9):
            short = one.pmf(0, w) - one.pmf_within(0, w, phi)
            assert -1e-15 <= short <= phi
    assert one.terms(1e-6) <= 2 * one.terms(1e-3)
    clamped = one.clamped(3)
    for u in range(values):
        wanted = np.bincount(np.clip(u + k, -3, values + 2) + 3, both)
        assert clamped.matrix[u] == pytest.approx(wanted.tolist(), rel=1e-9)


def test_what_is_refused_as_a_randomizer_is_shown() -> None:
    rows = ((0.7, 0.3), (0.3, 0.7))
    with pytest.raises(ValueError, match=r"expected a finite epsilon >= 0, got -0\.5"):
        LocalRandomizer(rows, -0.5)
    # A randomizer that declares less than its exact level of 0.847.
    with pytest.raises(ValueError, match=r"expected a matrix of level 0\.5 or less, got 0\.847"):
        LocalRandomizer(rows, 0.5)
    with pytest.raises(ValueError, match=r"expected a matrix of level 9 or less, got inf"):
        LocalRandomizer(((1.0, 0.0), (0.5, 0.5)), 9)
    with pytest.raises(ValueError, match=r"expected a finite epsilon >= 0, got nan"):
        LocalRandomizer(rows, math.nan)
    with pytest.raises(ValueError, match=r"expected rows that sum to 1, got .*1\.1"):
        of_matrix([[0.5, 0.6], [0.5, 0.5]], 1.0)
    with pytest.raises(ValueError, match=r"expected probabilities >= 0, got .*-0\.1"):
        of_matrix([[1.1, -0.1], [0.5, 0.5]], 1.0)
    with pytest.raises(ValueError, match=r"expected a matrix of shape \(inputs, outputs\), got \(2,\)"):
        LocalRandomizer((0.5, 0.5), 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected rare in \(0, 0\.268941\], got 0\.3"):
        alarm(1.0, 0.3)
    with pytest.raises(ValueError, match=r"expected a database of one record, got \[0, 1\]"):
        response(1.0)([0, 1], 1, rng(0))
    with pytest.raises(ValueError, match=r"expected an input from 0 to 1, got 2"):
        response(1.0).pmf(2, 0)
    with pytest.raises(ValueError, match=r"expected phi in \(0, 1\), got 0\.0"):
        TwiceNoisy(1.0).terms(0.0)
    with pytest.raises(ValueError, match=r"expected 2 values or more, got 1"):
        noisy_value(1.0, 1)


# -------------------------------------------------------------------------------------- oracle

#: A quarter, a half and a whole of the budget for each of two persons.
LEVELS = (0.25, 0.5, 1.0)
TWO = LocalOracle([response(one) for one in LEVELS], 2, 1.0)


def path_by_path(algorithm: LocalAlgorithm, data: Sequence[int], oracle: LocalOracle) -> None:
    """Every transcript of the distribution, replayed call by call with rational numbers."""
    law, t = algorithm.law(np.array(data)), algorithm.analyst.rounds
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    for outcome, mass in zip(law.outcomes, law.probabilities.tolist(), strict=True):
        assert isinstance(outcome, tuple)
        answers = outcome[:t]
        asked = outcome[t:] if algorithm.analyst.adaptive else [algorithm.analyst(_past(i)) for i in range(t)]
        spent, probability = [Fraction(0)] * oracle.people, 1.0
        for query, answer in zip(asked, answers, strict=True):
            assert (query == SKIP) == (answer == SILENT)
            if query == SKIP:
                continue
            person, which = divmod(int(query), len(oracle.randomizers))
            called = oracle.randomizers[which]
            within = spent[person] + Fraction(called.epsilon) <= Fraction(oracle.epsilon)
            assert within == (answer != REFUSED)
            if within:
                spent[person] += Fraction(called.epsilon)
                probability *= called.matrix[data[person]][answer]
        assert mass == pytest.approx(probability, rel=1e-12)


def _past(rounds: int) -> History:
    return History(np.zeros((1, rounds), dtype=np.int64), np.zeros((1, rounds)), SILENT, np.empty((1, 0)))


def by_parity(history: History) -> Any:
    """Asks both persons for what past answers point to: an analyst whose queries depend on all of them."""
    ones = (np.asarray(history.answers) == 1).sum(axis=1)
    query = (3 * (history.rounds % 2) + (ones + history.rounds) % 3).astype(np.int64)
    return np.where(ones > 3, SKIP, query)


ALGORITHMS: dict[str, Any] = {
    "a fixed list": FixedList((0, 1, 0, 2, 5, 3, 0)),
    "until one": Repeat(0, 5, until=1),
    "raising stakes": RaiseStakes(5, 3),
    "by parity": Adaptive(by_parity, 6),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_transcripts_have_the_law_of_their_calls(name: str) -> None:
    algorithm = LocalAlgorithm(TWO, ALGORITHMS[name])
    for data in ((0, 1), (1, 1)):
        path_by_path(algorithm, data, TWO)
        outputs = algorithm(np.array(data), 20_000, rng(3))
        assert chi_square(tally(outputs), algorithm.law(np.array(data))) > ALARM / 8
    for index in (0, 1):
        x, y = [0, 1], [0, 1]
        y[index] = 1 - y[index]
        assert level(algorithm, x, y) <= 1.0 + 1e-9


def test_four_truthful_answers_attain_the_budget() -> None:
    algorithm = LocalAlgorithm(LocalOracle([response(0.25)], 1, 1.0), FixedList((0, 0, 0, 0)))
    assert level(algorithm, [1], [0]) == pytest.approx(1.0, rel=1e-12)
    p = dict(zip(algorithm.law([1]).outcomes, algorithm.law([1]).probabilities, strict=True))
    q = dict(zip(algorithm.law([0]).outcomes, algorithm.law([0]).probabilities, strict=True))
    assert math.log(p[1, 1, 1, 1] / q[1, 1, 1, 1]) == pytest.approx(1.0, rel=1e-12)


def test_a_call_is_refused_before_anything_is_drawn() -> None:
    generator = rng(5)
    session = LocalOracle([response(1.0), response(0.5)], 2, 1.0).start([1, 0], 4, generator)
    assert set(session.ask(0).tolist()) <= {0, 1}
    before = generator.bit_generator.state
    for query in (0, 1):
        assert session.ask(query).tolist() == [REFUSED] * 4
        assert generator.bit_generator.state == before
    assert session.ask(np.full(4, SKIP)).tolist() == [SILENT] * 4
    assert generator.bit_generator.state == before
    # The other person's budget is untouched.
    assert set(session.ask(3).tolist()) <= {0, 1}
    assert generator.bit_generator.state != before


def granted(session: OracleSession, queries: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    return [session.ask(query) >= 0 for query in queries]


@pytest.mark.parametrize("seed", range(20))
def test_random_algorithms_do_not_overspend(seed: int) -> None:
    # Levels that are no binary fractions, any order, indices again and again, 40 runs of 60 calls.
    own = rng(seed)
    levels = [0.1, 1 / 3, 0.7, 1e-9, float(own.uniform(0.01, 2.0))]
    oracle = LocalOracle([response(one) for one in levels], 3, float(own.uniform(0.2, 2.0)))
    session = oracle.start([0, 1, 1], 40, own)
    queries: list[Any] = [own.integers(SKIP, oracle.pool, 40) for _ in range(60)]
    queries += [person * len(levels) for person in range(3)] * 20
    spent = [[Fraction(0)] * 3 for _ in range(40)]
    for query, given in zip(queries, granted(session, queries), strict=True):
        for run in np.flatnonzero(given):
            person, which = divmod(int(np.broadcast_to(query, 40)[run]), len(levels))
            spent[run][person] += Fraction(levels[which])
    assert max(max(run) for run in spent) <= Fraction(oracle.epsilon)
    # Not for want of granting: the last calls ask everyone for 0.1 until the budget ends (20 times 0.1 is the most).
    assert all(s > Fraction(oracle.epsilon) - Fraction(0.1) - Fraction(1, 2**30) for run in spent for s in run)


def test_the_ledger_does_not_drift() -> None:
    # Added in floats, ten times 0.1 is below 1; the double that is called 0.1 is above a tenth.
    assert functools.reduce(operator.add, [0.1] * 10) < 1.0 < 10 * Fraction(0.1)
    session = LocalOracle([response(0.1)], 1, 1.0).start([0], 1, rng(0))
    assert [bool(one[0]) for one in granted(session, [0] * 10)] == [True] * 9 + [False]
    # Added to 1 in floats, calls of 1e-17 are free; here each costs at least 2^-40.
    session = LocalOracle([response(1.0 - 2.0**-38), response(1e-17)], 1, 1.0).start([0], 1, rng(0))
    assert 1.0 + 1e-17 == 1.0
    assert [bool(one[0]) for one in granted(session, [0] + [1] * 6)] == [True] * 5 + [False] * 2


def test_an_exception_changes_no_account() -> None:
    session = LocalOracle([response(0.5)], 2, 1.0).start([0, 1], 2, rng(0))
    for wrong in (2, np.array([0, 7]), np.array([0]), 0.5):
        with pytest.raises((ValueError, TypeError)):
            session.ask(wrong)  # type: ignore[arg-type]
    assert [one.tolist() for one in granted(session, [0, 0, 0])] == [[True, True], [True, True], [False, False]]


def test_a_level_above_the_budget_is_never_granted() -> None:
    session = LocalOracle([response(30.0), constant()], 1, 0.5).start([0], 1, rng(0))
    assert [bool(one[0]) for one in granted(session, [0, 1, 0, 1])] == [False, True, False, True]


def test_what_an_oracle_refuses_is_shown() -> None:
    with pytest.raises(ValueError, match=r"expected records of 2 people, got 3"):
        TWO.start(np.array([0, 1, 0]), 1, rng(0))
    with pytest.raises(ValueError, match=r"expected inputs from 0 to 1, got array\(\[0, 2\]\)"):
        TWO.start(np.array([0, 2]), 1, rng(0))
    with pytest.raises(ValueError, match=r"expected records that are integers, got \[0\.5, 1\]"):
        TWO.start([0.5, 1], 1, rng(0))
    with pytest.raises(ValueError, match=r"expected at least one randomizer, got \(\)"):
        LocalOracle([], 1, 1.0)
    with pytest.raises(ValueError, match=r"expected at least one person, got 0"):
        LocalOracle([response(1.0)], 0, 1.0)
    for budget in (0.0, -1.0, math.nan, 2.0**21):
        with pytest.raises(ValueError, match=r"expected a budget in \(0, 1\.04858e\+06\]"):
            LocalOracle([response(1.0)], 1, budget)


# ------------------------------------------------------------------------------ noninteractive

CALLS = (0, 3, 1, 4)


def test_a_commitment_is_a_hash_of_all_calls() -> None:
    agreed = NoninteractiveOracle(TWO, CALLS)
    assert agreed.commitment == hashlib.sha256(b"0,3,1,4").hexdigest()
    assert agreed.commitment != NoninteractiveOracle(TWO, (0, 3, 4, 1)).commitment
    algorithm, free = LocalAlgorithm(agreed, FixedList(CALLS)), LocalAlgorithm(TWO, FixedList(CALLS))
    assert algorithm.epsilon == 1.0
    data = np.array([1, 0])
    assert algorithm.law(data) == free.law(data)
    assert np.array_equal(algorithm(data, 50, rng(1)), free(data, 50, rng(1)))


def test_who_asks_something_else_is_refused() -> None:
    agreed = NoninteractiveOracle(TWO, CALLS)
    # An algorithm that looks at an answer before it decides.
    with pytest.raises(
        ValueError, match=rf"expected call 2 of the commitment {agreed.commitment[:12]}, \[3\], got \[3, 4\]"
    ):
        Dialogue(agreed, Adaptive(lambda h: 0 if h.rounds == 0 else 3 * (h.rounds % 2) + h.answers[:, -1] % 2, 4))(
            np.array([1, 0]), 100, rng(0)
        )
    with pytest.raises(ValueError, match=r"\[1\], got \[0\]"):
        LocalAlgorithm(agreed, FixedList((0, 3, 0, 4))).law(np.array([0, 1]))
    with pytest.raises(ValueError, match=r"expected call 5 of the commitment"):
        LocalAlgorithm(agreed, FixedList((*CALLS, 0)))(np.array([0, 1]), 1, rng(0))
    with pytest.raises(ValueError, match=r"expected call 1 of the commitment"):
        Dialogue(agreed, RandomQueries(tuple(range(6)), 4))(np.array([0, 1]), 500, rng(0))


def test_calls_that_exceed_a_budget_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"sum to at most 1\.0 for each person, got \(0, 2\)"):
        NoninteractiveOracle(TWO, (0, 2))
    # Two persons, each within the budget.
    assert NoninteractiveOracle(TWO, (2, 5)).calls == (2, 5)
    for wrong in ((), (SKIP,), (6,)):
        with pytest.raises(ValueError, match=r"got"):
            NoninteractiveOracle(TWO, wrong)


# ------------------------------------------------------------------------------------- mutants


def built(name: str, oracle: LocalOracle, analyst: Any) -> tuple[Any, float | None]:
    base = LocalAlgorithm(oracle, analyst)
    mutant = MUTANTS[name]
    return mutant.build(base), None if mutant.true_level is None else mutant.true_level(base)


def test_levels_of_the_mutants() -> None:
    whole = LocalOracle([response(1.0)], 1, 1.0)
    two = LocalOracle([response(1.0), noisy_value(1.0, 2)], 1, 1.0)
    mutant, stated = built("budget_per_randomizer", two, FixedList((0, 1)))
    assert level(mutant, [1], [0]) == pytest.approx(2.0, rel=1e-12) == stated
    # A quarter can be asked for four times, a half twice, each out of a budget of its own.
    mutant, stated = built("budget_per_randomizer", TWO, FixedList((0, 0, 0, 0, 0, 1, 1, 1, 2, 2)))
    assert level(mutant, [1, 0], [0, 0]) == pytest.approx(3.0, rel=1e-12) == stated
    mutant, stated = built("checked_after_sampling", whole, Repeat(0, 4))
    assert level(mutant, [1], [0]) == pytest.approx(2.0, rel=1e-12) == stated
    for rounds in (1, 2, 5):
        mutant, stated = built("refund_on_exception", whole, Repeat(0, rounds))
        assert level(mutant, [1], [0]) == pytest.approx(rounds, rel=1e-12)
        assert stated is None
    mutant, stated = built("randomizer_sees_more", LocalOracle([response(1.0)], 3, 1.0), FixedList((0, 1, 2)))
    assert level(mutant, [1, 0, 0], [0, 0, 0]) == pytest.approx(3.0, rel=1e-12) == stated
    # Nobody's record is the largest alone: nothing moves.
    assert level(mutant, [1, 1, 0], [0, 1, 0]) == 0.0
    mutant, stated = built("answers_cached", whole, Repeat(0, 4))
    assert level(mutant, [1], [0]) == pytest.approx(1.0, rel=1e-12) == stated
    assert set(MUTANTS) == {
        "budget_per_randomizer",
        "checked_after_sampling",
        "refund_on_exception",
        "randomizer_sees_more",
        "answers_cached",
    }


@pytest.mark.parametrize("name", MUTANTS)
def test_draws_of_a_mutant_follow_its_law(name: str) -> None:
    mutant, _ = built(name, LocalOracle([response(0.5), response(1.0)], 2, 1.0), RaiseStakes(4, 4))
    for data in ([0, 1], [1, 1]):
        outputs = mutant(np.array(data), 20_000, rng(9))
        assert chi_square(tally(outputs), mutant.law(np.array(data))) > ALARM / 10


def test_what_the_mutants_say() -> None:
    whole = LocalOracle([response(1.0)], 1, 1.0)
    cached, _ = built("answers_cached", whole, Repeat(0, 3))
    outputs = cached([1], 200, rng(0))[:, :3]
    assert np.array_equal(outputs, np.repeat(outputs[:, :1], 3, axis=1))
    failing, _ = built("refund_on_exception", whole, Repeat(0, 3))
    assert set(np.unique(failing([1], 200, rng(0))[:, :3]).tolist()) == {FAILED, REFUSED, 0}
    with pytest.raises(TypeError, match=r"expected an algorithm with a LocalOracle"):
        built("answers_cached", NoninteractiveOracle(TWO, CALLS), FixedList(CALLS))  # type: ignore[arg-type]
