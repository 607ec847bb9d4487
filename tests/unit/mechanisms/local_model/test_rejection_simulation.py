"""A local randomizer simulated by statistical queries: distributions, distances, rounds, variants and mutants."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mechanisms.local_model.local_randomizers import LocalRandomizer, noisy_value
from mechanisms.local_model.rejection_mutants import MUTANTS, CachedCandidate, LastRejectedAtTheCap
from mechanisms.local_model.rejection_simulation import (
    NumberOfRounds,
    OraclesInTurn,
    RejectionSimulation,
    SignedErrorOracle,
    distance_bound,
    largest_distance,
    random_randomizer,
    response_to,
    total_variation,
    under_all_signs,
)
from mechanisms.local_model.rejection_variants import ShiftAndClip, TruncatedSimulation, enough_candidates
from mechanisms.statistical_queries.sq_oracles import (
    ExactOracle,
    HighestAnswersOracle,
    LowestAnswersOracle,
    RandomErrorOracle,
    StatisticalQueryOracle,
    sample_size,
)
from tests.statistics import p_value

FloatArray = NDArray[np.float64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

VALUES, ENTRY = noisy_value(1.0, 4), np.array([0.5, 0.25, 0.15, 0.1])
MIXED = SignedErrorOracle((1.0, -1.0, -1.0, 1.0))
BASE = RejectionSimulation(VALUES, 0.3, 1, MIXED)


def by_hand(
    randomizer: LocalRandomizer, entry: FloatArray, beta: float, t: int, signs: tuple[float, ...], reference: int = 0
) -> tuple[FloatArray, float]:
    """Distribution and expected rounds by the printed formulas, in their own order, with exact fractions."""
    rows = [[Fraction(x) for x in row] for row in randomizer.matrix]
    mass, e = [Fraction(float(x)) for x in entry], Fraction(math.exp(randomizer.epsilon))
    phi = Fraction(beta) / (3 * t)
    tau = phi / e**2
    accepted = []
    for w, q in enumerate(rows[reference]):
        g = [(row[w] - q) / (q * (e - 1 / e)) for row in rows]
        v = sum(m * x for m, x in zip(mass, g, strict=True)) + tau * Fraction(signs[w])
        estimate = v * q * (e - 1 / e) + q
        accepted.append(q * (estimate / (q * (1 + phi) * e)))
    ends = sum(accepted)
    return np.array([float(x / ends) for x in accepted]), float(1 / ends)


# -------------------------------------------------------------------------------------- distributions


@pytest.mark.parametrize("reference", [0, 2])
@pytest.mark.parametrize("signs", [(0.0,) * 4, (1.0,) * 4, (-1.0, 1.0, 0.5, -1.0)])
def test_law_and_rounds_are_those_of_the_printed_formulas(signs: tuple[float, ...], reference: int) -> None:
    simulation = RejectionSimulation(VALUES, 0.3, 2, SignedErrorOracle(signs), reference)
    law, rounds = by_hand(VALUES, ENTRY, 0.3, 2, signs, reference)
    np.testing.assert_allclose(simulation.output_law(ENTRY), law, rtol=1e-12)
    assert simulation.expected_rounds(ENTRY) == pytest.approx(rounds, rel=1e-12)


def test_with_an_exact_oracle_nothing_is_off_and_rounds_are_1_plus_phi_times_e_to_the_epsilon() -> None:
    simulation = replace(BASE, oracle=ExactOracle())
    np.testing.assert_allclose(simulation.output_law(ENTRY), ENTRY @ VALUES.rows, rtol=1e-12)
    assert simulation.expected_rounds(ENTRY) == pytest.approx(1.1 * math.e, rel=1e-12)


def test_changing_answers_give_a_mixture_of_the_rounds_laws() -> None:
    one, two = SignedErrorOracle((1.0, -1.0, 1.0, -1.0)), SignedErrorOracle((-1.0, 1.0, 1.0, -1.0))
    simulation = replace(BASE, oracle=OraclesInTurn((one, two)))
    hits = [replace(BASE, oracle=oracle).hits(ENTRY)[0] for oracle in (one, two)]
    mass, rounds, stays = np.zeros(4), 0.0, 1.0
    for k in range(400):  # rounds beyond have less than e^-100 of the mass
        mass, rounds = mass + stays * hits[k % 2], rounds + stays
        stays *= 1 - hits[k % 2].sum()
    np.testing.assert_allclose(simulation.output_law(ENTRY), mass, rtol=1e-12)
    assert simulation.expected_rounds(ENTRY) == pytest.approx(rounds, rel=1e-12)
    furthest = max(replace(BASE, oracle=oracle).distance(ENTRY) for oracle in (one, two))
    assert simulation.distance(ENTRY) <= furthest


MECHANISMS: dict[str, RejectionSimulation] = {
    "printed": BASE,
    "changing": replace(
        BASE, oracle=OraclesInTurn((MIXED, SignedErrorOracle((-1.0, 1.0, 1.0, 0.0)), HighestAnswersOracle()))
    ),
    "shift_and_clip": ShiftAndClip(VALUES, 0.3, 1, MIXED),
    "truncated": TruncatedSimulation(VALUES, 0.3, 1, MIXED),
    "truncated_changing": TruncatedSimulation(
        VALUES, 0.3, 1, OraclesInTurn((MIXED, LowestAnswersOracle())), candidates=3
    ),
    "last_rejected_changing": LastRejectedAtTheCap(
        VALUES, 0.3, 1, OraclesInTurn((MIXED, LowestAnswersOracle())), candidates=3
    ),
    **{name: mutant.build(BASE) for name, mutant in MUTANTS.items()},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_the_law(name: str) -> None:
    simulation, n = MECHANISMS[name], 60_000
    outputs = simulation(ENTRY, n, np.random.default_rng(1))
    assert outputs.shape == (n,)
    law = simulation.law(ENTRY)
    assert law.outcomes == (0, 1, 2, 3)
    assert p_value(np.bincount(outputs, minlength=4), law.probabilities) > ALARM


def test_with_a_random_oracle_the_output_is_as_with_an_exact_one() -> None:
    # Odds are linear in the answers, which are right on average, and are never cut off.
    outputs = replace(BASE, oracle=RandomErrorOracle())(ENTRY, 60_000, np.random.default_rng(2))
    assert p_value(np.bincount(outputs, minlength=4), ENTRY @ VALUES.rows) > ALARM
    with pytest.raises(ValueError, match="draws nothing, got RandomErrorOracle"):
        replace(BASE, oracle=RandomErrorOracle()).law(ENTRY)


@pytest.mark.parametrize("cls", [RejectionSimulation, ShiftAndClip])
def test_rounds_are_geometric_and_independent_of_the_output(cls: type[RejectionSimulation]) -> None:
    simulation, n = cls(VALUES, 0.3, 1, MIXED), 60_000
    outputs, rounds = simulation.run(ENTRY, n, np.random.default_rng(3))
    p, most = 1 / simulation.expected_rounds(ENTRY), 6
    geometric = p * (1 - p) ** np.arange(most)
    geometric[-1] = (1 - p) ** (most - 1)
    joint = np.outer(simulation.output_law(ENTRY), geometric).ravel()
    cells = np.bincount(outputs * most + np.minimum(rounds, most) - 1, minlength=joint.size)
    assert p_value(cells, joint) > ALARM
    same = NumberOfRounds(simulation)(ENTRY, n, np.random.default_rng(3))
    assert np.array_equal(same, rounds)


# -------------------------------------------------------------------------- distances and rounds


def test_three_hundred_random_randomizers_under_all_sign_patterns() -> None:
    rng, closest = np.random.default_rng(4), 0.0
    for _ in range(300):
        epsilon, inputs, outputs = rng.uniform(0.05, 3.0), int(rng.integers(2, 6)), int(rng.integers(2, 8))
        randomizer = random_randomizer(epsilon, inputs, outputs, rng)
        beta, t = float(rng.uniform(0.01, 0.99)), int(rng.choice([1, 2, 10]))
        simulation = RejectionSimulation(randomizer, beta, t, ExactOracle(), int(rng.integers(inputs)))
        entry = rng.dirichlet(np.full(inputs, 0.3))
        found, phi, growth = under_all_signs(simulation, entry), simulation.phi, math.exp(epsilon)
        assert found.signs.shape == (2**outputs, outputs)
        # The queries are in range, the estimates within phi, and the odds are probabilities.
        queries = simulation.queries()
        assert queries.min() >= -1 / (1 + growth) - 1e-12
        assert queries.max() <= growth / (1 + growth) + 1e-12
        estimates = found.odds * simulation.ceiling * simulation.q
        assert np.abs(estimates / simulation.target(entry) - 1).max() <= (growth**2 - 1) * simulation.tolerance + 1e-12
        assert found.odds.min() >= 0
        assert found.odds.max() <= 1
        # The claim, the two derived bounds, and the rounds.
        assert found.distances.max() <= largest_distance(epsilon, phi) * (1 + 1e-9)
        assert found.distances.max() <= distance_bound(phi) <= beta / t
        assert found.rounds.min() >= growth * (1 - 1e-12)
        assert found.rounds.max() <= growth * (1 + phi) / (1 - phi) <= 2 * growth
        closest = max(closest, found.distances.max() / largest_distance(epsilon, phi))
        # The table is that of the distributions, for one pattern.
        worst = replace(simulation, oracle=found.worst)
        assert worst.distance(entry) == pytest.approx(found.distances.max(), rel=1e-12)
        assert worst.expected_rounds(entry) == pytest.approx(found.rounds[found.distances.argmax()], rel=1e-12)
        # The variant needs no more than e^epsilon rounds, and is no further away than half of that.
        variant = under_all_signs(ShiftAndClip(randomizer, beta, t, ExactOracle()), entry)
        assert variant.rounds.max() <= growth * (1 + 1e-12)
        assert variant.distances.max() <= (math.sqrt(1 + phi) - 1) / (math.sqrt(1 + phi) + 1) + 1e-12
        assert variant.odds.max() <= 1
    assert closest > 0.9


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.654, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("phi", [1e-4, 0.1, 0.33])
def test_the_largest_distance_is_attained_by_two_outputs_and_not_exceeded(epsilon: float, phi: float) -> None:
    # All randomizers of two outputs on a grid, a point mass on input 1, and both patterns that tilt.
    y, best = math.exp(epsilon), 0.0
    for b in np.concatenate([np.linspace(1e-4, 1 - 1e-4, 400), [1 / (1 + y), y / (1 + y)]]):
        for a in (min(y * b, 1 - (1 - b) / y), max(b / y, 1 - y * (1 - b))):
            simulation = RejectionSimulation(
                LocalRandomizer(((1 - b, b), (1 - a, a)), epsilon), 3 * phi * (1 - 1e-12), 1, ExactOracle()
            )
            best = max(best, float(under_all_signs(simulation, np.array([0.0, 1.0])).distances.max()))
    bound = largest_distance(epsilon, phi)
    assert best <= bound * (1 + 1e-9)
    assert best >= bound * (1 - 2e-4)  # the grid is coarse


def test_to_first_order_the_distance_is_at_most_0_2086_phi_and_not_0_193_phi() -> None:
    # The catalogue's 0.193 is half the sum of the errors, before normalising; normalising adds to it.
    phi, at = 1e-7, np.linspace(0.3, 1.2, 901)
    first_order = [largest_distance(float(epsilon), phi) / phi for epsilon in at]
    y = np.exp(at)
    np.testing.assert_allclose(first_order, (y - 1) * (1 + y**2) / (y**3 * (1 + y)), rtol=1e-6)
    assert at[int(np.argmax(first_order))] == pytest.approx(0.654, abs=2e-3)
    assert max(first_order) == pytest.approx(0.2086, abs=5e-5)
    half = 0.5 * (np.exp(-at) - np.exp(-3 * at))
    assert half.max() == pytest.approx(0.1925, abs=5e-5)
    attained = under_all_signs(
        RejectionSimulation(response_to(0.654, (0, 1)), 3e-7, 1, ExactOracle()), np.array([0.0, 1.0])
    )
    assert attained.distances.max() / phi == pytest.approx(0.2086, abs=5e-5)


@pytest.mark.parametrize(("epsilon", "t", "beta"), [(0.7, 100, 0.1), (1.0, 1, 0.3)])
def test_entries_for_an_oracle_that_is_a_sample(epsilon: float, t: int, beta: float) -> None:
    # Catalogue: 18 ln(2 / delta) e^(4 epsilon) t^2 / beta^2 for queries in [-1, 1]; 3 10^8 ln(2 / delta) at the first.
    tolerance, delta = RejectionSimulation(response_to(epsilon, (0, 1)), beta, t, ExactOracle()).tolerance, 1e-3
    printed = 18 * math.exp(4 * epsilon) * t**2 / beta**2
    assert sample_size(1.0, tolerance, delta) == pytest.approx(printed * math.log(2 / delta), rel=1e-3)
    # They have values in an interval of length 1, so a quarter of that is enough.
    assert sample_size(0.5, tolerance, delta) == pytest.approx(printed / 4 * math.log(2 / delta), rel=1e-3)
    if t == 100:
        assert printed == pytest.approx(3e8, rel=0.02)


# ----------------------------------------------------------------------------------- variants


def test_enough_candidates_are_those_of_the_catalogue() -> None:
    assert [enough_candidates(epsilon, 0.1, 1000) for epsilon in (0.5, 1.0, 2.0)] == [11, 22, 69]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("t", [1, 10, 1000])
def test_truncation_costs_at_most_half_of_beta(epsilon: float, t: int) -> None:
    beta, entry = 0.1, np.array([0.0, 1.0])
    for signs in itertools.product((-1.0, 1.0), repeat=2):
        simulation = TruncatedSimulation(response_to(epsilon, (0, 1)), beta, t, SignedErrorOracle(signs))
        assert simulation.none_accepted(entry) <= beta / (2 * t)
        assert simulation.distance(entry) <= beta / t
        assert simulation.expected_rounds(entry) == enough_candidates(epsilon, beta, t)
    # One candidate fewer is not enough against the oracle that makes acceptance rarest.
    fewer = TruncatedSimulation(
        response_to(epsilon, (0, 1)), beta, t, ExactOracle(), candidates=enough_candidates(epsilon, beta, t) - 1
    )
    phi = fewer.phi
    assert (1 - (1 - phi) / (1 + phi) / math.exp(epsilon)) ** fewer.candidates > beta / (2 * t)


# ------------------------------------------------------------------------------------ mutants


def test_a_tolerance_without_e_to_the_2_epsilon() -> None:
    # Catalogue: binary randomised response, worst entry, errors and reference at t = 1, beta = 0.3.
    worst = {}
    for epsilon in (1.0, 2.0):
        build, worst[epsilon] = MUTANTS["tau_without_e2eps"].build, 0.0
        for share in np.linspace(0, 1, 401):
            base = RejectionSimulation(response_to(epsilon, (0, 1)), 0.3, 1, ExactOracle())
            found = under_all_signs(build(base), np.array([1 - share, share]))  # type: ignore[arg-type]
            worst[epsilon] = max(worst[epsilon], float(found.distances.max()))
            if epsilon == 1.0:
                assert found.odds.min() >= 0
    assert worst[1.0] == pytest.approx(0.160, abs=5e-4)
    assert worst[2.0] == pytest.approx(0.64, abs=5e-3)


def test_odds_without_the_slack_exceed_one() -> None:
    base = RejectionSimulation(response_to(1.0, (0, 1)), 0.3, 1, ExactOracle())
    mutant = MUTANTS["acceptance_without_slack"].build(base)
    odds = under_all_signs(mutant, np.array([0.0, 1.0])).odds.max()  # type: ignore[arg-type]
    assert odds == pytest.approx(1.012, abs=5e-4)
    assert under_all_signs(base, np.array([0.0, 1.0])).odds.max() < 1


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("cap", [1, 2, 5])
def test_what_happens_at_a_cap(epsilon: float, cap: int) -> None:
    # With an exact oracle and phi nearly 0.
    randomizer, entry = noisy_value(epsilon, 4), ENTRY
    away = total_variation(randomizer.rows[0], entry @ randomizer.rows)
    fresh = TruncatedSimulation(randomizer, 1e-9, 1, ExactOracle(), candidates=cap)
    rejected = LastRejectedAtTheCap(randomizer, 1e-9, 1, ExactOracle(), candidates=cap)
    miss = 1 - math.exp(-epsilon)
    assert fresh.distance(entry) == pytest.approx(miss**cap * away, rel=1e-6)
    assert rejected.distance(entry) == pytest.approx(miss ** (cap - 1) * away, rel=1e-6)


def test_a_cached_candidate_is_a_draw_on_the_reference() -> None:
    mutant = CachedCandidate(VALUES, 0.3, 1, MIXED, 2)
    assert np.array_equal(mutant.output_law(ENTRY), VALUES.rows[2])


def test_mutants_are_further_away_than_claimed_or_leave_the_range() -> None:
    base, entry = RejectionSimulation(noisy_value(2.0, 4), 0.1, 1, ExactOracle(), 3), np.array([0.8, 0.1, 0.05, 0.05])
    for name in MUTANTS:
        mutant = MUTANTS[name].build(base)
        assert isinstance(mutant, RejectionSimulation)
        far = mutant.distance(entry) > 0.1
        if name == "two_to_the_eps":
            assert np.abs(mutant.queries()).max() > 1
            assert mutant.acceptance(entry).max() > 1
        assert far == (name not in ("tau_without_e2eps", "acceptance_without_slack")), name


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda: replace(BASE, beta=1.5), "1.5"),
        (lambda: replace(BASE, calls=0), "got 0"),
        (lambda: replace(BASE, reference=4), "got 4"),
        (lambda: RejectionSimulation(LocalRandomizer(((0.5, 0.5),), 0.0), 0.3, 1, ExactOracle()), "got 0.0"),
        (lambda: RejectionSimulation(LocalRandomizer(((1.0, 0.0),), 1.0), 0.3, 1, ExactOracle()), "0.0"),
        (lambda: TruncatedSimulation(VALUES, 0.3, 1, ExactOracle(), candidates=-1), "got -1"),
        (lambda: SignedErrorOracle((1.0, 2.0)), "2.0"),
        (lambda: OraclesInTurn(()), "oracle"),
        (lambda: response_to(1.0, (0, 2)), "2"),
        (lambda: BASE.law([0.5, 0.5]), "4 probabilities"),
        (lambda: BASE.law([0.5, 0.5, 0.5, -0.5]), "-0.5"),
        (lambda: BASE(ENTRY, 0, np.random.default_rng(0)), "got 0"),
    ],
)
def test_bad_input_is_shown(build: object, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        build()  # type: ignore[operator]


def test_oracles_that_are_not_asked_in_turn_are_the_same_every_round() -> None:
    rounds: dict[str, int] = defaultdict(int)

    class Counted:
        def __call__(self, truth: FloatArray, tolerance: object, rng: object) -> FloatArray:
            rounds["asked"] += len(truth)
            assert tolerance == BASE.tolerance
            return np.array(truth)

    oracle: StatisticalQueryOracle = Counted()
    _, taken = replace(BASE, oracle=oracle).run(ENTRY, 500, np.random.default_rng(5))
    assert rounds["asked"] == taken.sum()
