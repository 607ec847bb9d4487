"""Compositions: the accountant and its mutants, many responses, the adaptive game, the mean of the loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from auditor.privacy.exact import (
    FiniteLaw,
    LaplaceCurve,
    LossCurve,
    PessimisticCurve,
    ProductLaw,
    TwoSidedGeometricLaw,
    composed,
    curve,
    optimal_composition,
)
from auditor.targets.analysts import FixedList, RandomQueries
from auditor.targets.transcripts import Dialogue, ExactDialogue
from mechanisms.base.mechanism import Mutant
from mechanisms.base.queries import Count
from mechanisms.composition.advanced_composition import MUTANTS as CLAIMS
from mechanisms.composition.advanced_composition import (
    ManyResponses,
    expected_absolute_loss,
    expected_loss,
    expected_loss_under_other,
    largest_expected_loss,
)
from mechanisms.composition.composition import MUTANTS as ACCOUNTANTS
from mechanisms.composition.composition import (
    Accountant,
    AccountedPart,
    CountOnRows,
    LeakyResponse,
    LeakyResponsePart,
    NoisyCountPart,
    RowBit,
    multiplicity,
)
from mechanisms.composition.composition_game import CompositionGame, QuitWhenAhead
from tests.statistics import p_value

#: Each test on draws is allowed so many false alarms; what is drawn is fixed by its seed, and any seed would do.
FALSE_ALARM = 1e-6

#: One row changes from 0 to 9, which counts for all of "at least 1" to "at least 9".
X, Y = np.zeros(12), np.array([9.0] + [0.0] * 11)
BIT = RowBit(Count(low=1.0))


def at_least(value: float) -> Count:
    return Count(low=value)


def chi_square(counts: np.ndarray[Any, Any], law: FiniteLaw, tests: int = 1) -> None:
    """Counts of a distribution's outcomes agree with it, in one of some tests."""
    assert p_value(counts, law.probabilities) > FALSE_ALARM / tests


def hockey_stick(p: FiniteLaw, q: FiniteLaw, epsilon: float) -> float:
    """Sum of max(0, p - e^eps q), outcome by outcome."""
    other = dict(zip(q.outcomes, q.probabilities.tolist(), strict=True))
    terms = zip(p.outcomes, p.probabilities.tolist(), strict=True)
    return math.fsum(max(0.0, mass - math.exp(epsilon) * other.get(outcome, 0.0)) for outcome, mass in terms)


# ------------------------------------------------------------------------------ queries and parts


def test_a_count_on_rows_sees_these_rows_only() -> None:
    data = np.array([5.0, 0.0, 5.0, 5.0])
    assert CountOnRows(at_least(1), (0, 2))(data) == 1
    assert CountOnRows(at_least(1), (1, 4))(data) == 2
    assert [RowBit(at_least(1), row)(data) for row in range(4)] == [1, 0, 1, 1]
    with pytest.raises(ValueError, match="at least 5 rows, got 4"):
        CountOnRows(at_least(1), (2, 5))(data)
    with pytest.raises(ValueError, match=r"a range of rows.* got \(3, 3\)"):
        CountOnRows(at_least(1), (3, 3))
    with pytest.raises(ValueError, match="a count under replace_one, got 'add_remove_one'"):
        CountOnRows(Count(low=1.0, relation="add_remove_one"), (0, 1))
    with pytest.raises(ValueError, match="a row >= 0, got -1"):
        RowBit(at_least(1), -1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.7, 0.0), (0.7, 0.1)])
def test_a_leaky_response_has_the_curve_of_one_step_and_its_law(epsilon: float, delta: float) -> None:
    response = LeakyResponse(BIT, epsilon, delta)
    found, worst = curve(response.law(X), response.law(Y)), optimal_composition(epsilon, 1, delta)
    for at in (0.0, 0.3, 0.7, 1.0):
        assert found.delta(at) == pytest.approx(worst.delta(at), abs=1e-15)
    rng = np.random.default_rng(2)
    for data in (X, Y):
        outputs = response(data, 100_000, rng)
        assert outputs.shape == (100_000,)
        chi_square(np.bincount(outputs, minlength=4), response.law(data), tests=2 * 3)


def test_bad_parameters_of_the_parts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a finite epsilon >= 0, got -0\.1"):
        LeakyResponse(BIT, -0.1)
    with pytest.raises(ValueError, match=r"delta in \[0, 1\), got 1.0"):
        LeakyResponse(BIT, 0.1, 1.0)
    with pytest.raises(ValueError, match=r"a range of rows.* got \(2, 1\)"):
        NoisyCountPart(at_least(1), (2, 1))


# ---------------------------------------------------------------------------------- the accountant


def test_multiplicity_against_counting_row_by_row() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        parts: list[AccountedPart] = []
        for _ in range(int(rng.integers(1, 7))):
            low, high = sorted(rng.choice(13, 2, replace=False).tolist())
            parts.append(NoisyCountPart(at_least(1), None if rng.random() < 0.2 else (low, high)))
        read = [[one.rows is None or one.rows[0] <= row < one.rows[1] for one in parts] for row in range(12)]
        assert multiplicity(parts) == max(sum(row) for row in read)


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_noisy_counts_that_all_move_cost_exactly_the_budget(k: int) -> None:
    counts = Accountant([NoisyCountPart(at_least(v)) for v in range(1, k + 1)], 1.5)
    assert curve(counts.law(X), counts.law(Y)).epsilon(0.0) == pytest.approx(1.5, rel=1e-9)
    assert curve(counts.law(X), counts.law(Y)).epsilon(0.0) <= 1.5 * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.0), (0.0, 0.08), (1.0, 0.08)])
def test_responses_are_the_worst_composition(epsilon: float, delta: float) -> None:
    k = 8
    accountant = Accountant([LeakyResponsePart(RowBit(at_least(v))) for v in range(1, k + 1)], epsilon, delta)
    found, worst = curve(accountant.law(X), accountant.law(Y)), optimal_composition(epsilon / k, k, delta / k)
    for at in (0.0, epsilon / 3, epsilon / 2, epsilon):
        assert found.delta(at) == pytest.approx(worst.delta(at), rel=1e-9, abs=1e-14)
    assert found.delta(epsilon) == pytest.approx(1 - (1 - delta / k) ** k, rel=1e-9, abs=1e-14)
    assert found.delta(epsilon) <= delta + 1e-14


def test_the_curve_of_responses_against_all_outcomes() -> None:
    """Catalogue A4 by brute force over the outputs of five responses."""
    k, epsilon = 5, 2.0
    accountant = Accountant([LeakyResponsePart(BIT)] * k, epsilon)
    parts: dict[str, list[FiniteLaw]] = {"x": [], "y": []}
    for name, data in (("x", X), ("y", Y)):
        parts[name] = [one for one in accountant.law(data).parts if isinstance(one, FiniteLaw)]
        assert len(parts[name]) == k
    joint = {}
    for name, laws in parts.items():
        outcomes = list(itertools.product(range(2), repeat=k))
        masses = [math.prod(float(law.probabilities[o]) for law, o in zip(laws, out, strict=True)) for out in outcomes]
        joint[name] = FiniteLaw(tuple(outcomes), np.array(masses))
    found = curve(accountant.law(X), accountant.law(Y))
    for at in (0.0, 0.5, 1.0, 1.9):
        assert found.delta(at) == pytest.approx(hockey_stick(joint["x"], joint["y"], at), rel=1e-9)


def test_outputs_are_independent_parts() -> None:
    accountant = Accountant([LeakyResponsePart(BIT)] * 3, 1.2, 0.3)
    laws = [one for one in accountant.law(Y).parts if isinstance(one, FiniteLaw)]
    joint = np.multiply.outer(np.multiply.outer(*(law.probabilities for law in laws[:2])), laws[2].probabilities)
    outputs = accountant(Y, 100_000, np.random.default_rng(4))
    assert outputs.shape == (100_000, 3)
    counts = np.bincount(outputs.astype(np.int64) @ [16, 4, 1], minlength=64)
    chi_square(counts, FiniteLaw(tuple(range(64)), joint.ravel()))


def test_parallel_composition_charges_rows_and_not_parts() -> None:
    disjoint = Accountant([NoisyCountPart(at_least(1), (0, 6)), NoisyCountPart(at_least(1), (6, 12))], 1.0)
    assert disjoint.divisor == 1
    assert curve(disjoint.law(X), disjoint.law(Y)).epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    overlapping = Accountant([NoisyCountPart(at_least(1), (0, 6)), NoisyCountPart(at_least(1), (0, 7))], 1.0)
    assert overlapping.divisor == 2
    assert curve(overlapping.law(X), overlapping.law(Y)).epsilon(0.0) == pytest.approx(1.0, rel=1e-9)


def test_an_accountant_without_parts_or_budget_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least one part, got \(\)"):
        Accountant([], 1.0)
    with pytest.raises(ValueError, match="a finite epsilon >= 0, got inf"):
        Accountant([LeakyResponsePart(BIT)], math.inf)
    with pytest.raises(ValueError, match=r"delta in \[0, 1\), got 1"):
        Accountant([LeakyResponsePart(BIT)], 1.0, 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        Accountant([NoisyCountPart(at_least(1))], 0.0)


FOUR = tuple(NoisyCountPart(at_least(v)) for v in (1, 2, 3, 4))
REPEATED = tuple(NoisyCountPart(at_least(v)) for v in (1, 2, 1, 1))
OVERLAPPING = tuple(NoisyCountPart(at_least(1), rows) for rows in ((0, 5), (0, 8), (0, 12), (5, 12)))


@pytest.mark.parametrize(
    ("name", "parts", "factor"),
    [
        ("budget_not_divided", FOUR, 4.0),
        ("budget_divided_by_sqrt_k", FOUR, 2.0),
        ("counted_by_query_text", REPEATED, 2.0),
        ("counted_by_query_text", FOUR, 1.0),
        ("parallel_on_overlap", OVERLAPPING, 3.0),
    ],
)
def test_true_levels_of_the_accountants_mutants(name: str, parts: tuple[AccountedPart, ...], factor: float) -> None:
    base, found = Accountant(parts, 0.8), ACCOUNTANTS[name]
    built: Any = found.build(base)
    assert found.true_level is not None
    assert found.true_level(base) == pytest.approx(0.8 * factor, rel=1e-12)
    assert curve(built.law(X), built.law(Y)).epsilon(0.0) == pytest.approx(0.8 * factor, rel=1e-9)


def test_reused_noise_cancels_in_differences() -> None:
    base = Accountant([NoisyCountPart(at_least(1)), NoisyCountPart(Count(low=20.0))], 1.0)
    built: Any = ACCOUNTANTS["noise_reused"].build(base)
    assert not hasattr(built, "law")
    for data, apart in ((X, 0.0), (Y, 1.0)):
        outputs = built(data, 1000, np.random.default_rng(5))
        assert np.unique(outputs[:, 0] - outputs[:, 1]).tolist() == [apart]
        assert np.unique(outputs[:, 0]).size > 100
    assert ACCOUNTANTS["noise_reused"].true_level is not None
    assert ACCOUNTANTS["noise_reused"].true_level(base) == math.inf


# ---------------------------------------------------------------------------- advanced composition


@pytest.mark.parametrize(
    ("step", "k", "basic", "theorem", "exact"), [(0.1, 99, 9.9, 5.725, 4.747), (0.01, 9999, 99.99, 5.756, 4.885)]
)
def test_numbers_of_advanced_composition(step: float, k: int, basic: float, theorem: float, exact: float) -> None:
    many = ManyResponses(BIT, step, k, 1e-6)
    assert step * k == pytest.approx(basic)
    assert many.epsilon == pytest.approx(theorem, abs=5e-4)
    pair = curve(many.law(X), many.law(Y))
    assert pair.epsilon(1e-6) == pytest.approx(exact, abs=5e-4)
    assert pair.epsilon(1e-6) == pytest.approx(optimal_composition(step, k).epsilon(1e-6), rel=1e-9)


def test_constants_of_the_theorem_in_numbers_of_the_catalogue() -> None:
    """With c sqrt(k ln(1/delta')) e for the bound: c where k < 1/e^2, and what the worst composition has."""
    for slack, c in [(1e-6, 1.55), (1e-2, 1.65)]:
        constant = math.sqrt(2) + 0.5 / math.sqrt(math.log(1 / slack))
        assert constant == pytest.approx(c, abs=5e-3)
        root = 0.1 * math.sqrt(99 * math.log(1 / slack))
        assert ManyResponses(BIT, 0.1, 99, slack).epsilon <= constant * root
    exact = optimal_composition(0.1, 99).epsilon(1e-6) / (0.1 * math.sqrt(99 * math.log(1e6)))
    assert exact == pytest.approx(1.284, abs=5e-4)


def test_many_noisy_counts_lie_between_continuous_noise_and_responses() -> None:
    """Sixteenths of a count, composed exactly, against a convolution of the continuous losses from below."""
    counts = Accountant([NoisyCountPart(at_least(1), step=2.0**-4)] * 99, 9.9)
    found = curve(counts.law(X), counts.law(Y))
    assert isinstance(found, LossCurve)
    continuous = composed(LaplaceCurve(0.1), 99)
    assert isinstance(continuous, PessimisticCurve)
    for delta in (1e-6, 1e-2):
        low, high = continuous.optimistic.epsilon(delta), optimal_composition(0.1, 99).epsilon(delta)
        assert low <= found.epsilon(delta) < high
        assert found.epsilon(delta) == pytest.approx(low, rel=2e-3)


def test_the_number_of_ones_is_as_good_as_the_responses() -> None:
    many, single = ManyResponses(BIT, 0.3, 6, 0.1), Accountant([LeakyResponsePart(BIT)] * 6, 1.8)
    ones, responses = curve(many.law(X), many.law(Y)), curve(single.law(X), single.law(Y))
    for at in (0.0, 0.4, 1.0, 1.7):
        assert ones.delta(at) == pytest.approx(responses.delta(at), rel=1e-9)


def test_the_number_of_ones_is_drawn_from_its_law() -> None:
    many, rng = ManyResponses(BIT, 0.1, 99, 1e-2), np.random.default_rng(6)
    for data in (X, Y):
        outputs = many(data, 100_000, rng)
        chi_square(np.bincount(outputs, minlength=100), many.law(data), tests=2)


@pytest.mark.parametrize("found", CLAIMS.values(), ids=lambda found: found.name)
def test_mutants_of_the_theorem_change_the_claim_only(found: Mutant[ManyResponses]) -> None:
    base = ManyResponses(BIT, 0.4, 100, 0.3)
    built: Any = found.build(base)
    assert built.law(X) == base.law(X)
    assert found.true_level is not None
    exact = curve(built.law(X), built.law(Y)).epsilon(built.delta)
    assert found.true_level(base) == pytest.approx(exact, rel=1e-9)
    assert exact > built.epsilon
    assert curve(base.law(X), base.law(Y)).epsilon(base.delta) <= base.epsilon


def test_bad_parameters_of_many_responses_are_refused() -> None:
    with pytest.raises(ValueError, match="a finite step_epsilon > 0, got 0"):
        ManyResponses(BIT, 0.0, 3, 0.1)
    with pytest.raises(ValueError, match="steps >= 1, got 0"):
        ManyResponses(BIT, 0.1, 0, 0.1)
    with pytest.raises(ValueError, match=r"slack in \(0, 1\), got 1.0"):
        ManyResponses(BIT, 0.1, 3, 1.0)


# -------------------------------------------------------------------------------- the adaptive game


def test_every_query_of_the_game_costs_exactly_its_level() -> None:
    game = CompositionGame(BIT, 0.4, 3)
    for query in range(game.pool):
        one = ExactDialogue(game, FixedList([query]))
        assert curve(one.law(X), one.law(Y)).epsilon(0.0) == pytest.approx(0.4, rel=1e-12)


def test_the_law_of_the_game_against_the_games_draws() -> None:
    game = ExactDialogue(CompositionGame(BIT, 0.5, 4), QuitWhenAhead(5, 2))
    rng = np.random.default_rng(7)
    for data in (X, Y):
        law, n = game.law(data), 100_000
        index = {outcome: i for i, outcome in enumerate(law.outcomes)}
        rows, times = np.unique(game(data, n, rng), axis=0, return_counts=True)
        counts = np.zeros(len(index), dtype=np.int64)
        counts[[index[tuple(row)] for row in rows.tolist()]] = times
        chi_square(counts, law, tests=2)


def test_no_more_queries_are_answered_than_were_composed() -> None:
    fixed = Dialogue(CompositionGame(BIT, 0.5, 3), FixedList([0, 1, 2, 3, 0]))
    outputs = fixed(X, 50, np.random.default_rng(8))
    assert np.all(outputs[:, :3] >= 0)
    assert np.all(outputs[:, 3:] == -1)


@pytest.mark.parametrize(
    "analyst", [QuitWhenAhead(8, 2), QuitWhenAhead(8, 3), FixedList([0] * 8), FixedList([0, 2] * 4)]
)
def test_no_adversary_beats_the_worst_composition(analyst: Any) -> None:
    game = ExactDialogue(CompositionGame(BIT, 0.5, 8), analyst)
    found, worst = curve(game.law(X), game.law(Y)), optimal_composition(0.5, 8)
    for at in np.linspace(0.0, 4.0, 41):
        assert found.delta(float(at)) <= worst.delta(float(at)) * (1 + 1e-9) + 1e-15


def test_quitting_when_ahead_is_adaptive_and_pays() -> None:
    """It tells the datasets apart, at an epsilon of about its lead, better than all its responses on a fixed list."""
    game = CompositionGame(BIT, 0.5, 12)
    adaptive, fixed = (ExactDialogue(game, analyst) for analyst in (QuitWhenAhead(12, 3), FixedList([0, 2] * 6)))
    rows = np.array(adaptive.law(Y).outcomes)
    stopped = (rows[:, 12:] == -1).any(axis=1)
    assert 0.3 < float(adaptive.law(Y).probabilities[stopped].sum()) < 0.9
    assert len(set(map(tuple, rows[:, 12:].tolist()))) > 100
    found, listed = (curve(one.law(X), one.law(Y)).delta(0.5) for one in (adaptive, fixed))
    assert found > listed


def test_the_adversary_and_the_game_refuse_bad_parameters() -> None:
    with pytest.raises(ValueError, match="rounds >= 1, got 0"):
        QuitWhenAhead(0, 1)
    with pytest.raises(ValueError, match="a lead >= 1, got 0"):
        QuitWhenAhead(3, 0)
    with pytest.raises(ValueError, match=r"rare in \(0, 0.37\d*\], got 0.4"):
        CompositionGame(BIT, 0.5, 3, rare=0.4)
    with pytest.raises(ValueError, match="steps >= 1, got 0"):
        CompositionGame(BIT, 0.5, 0)
    with pytest.raises(ValueError, match="queries from 0 to 3"):
        Dialogue(CompositionGame(BIT, 0.5, 3), RandomQueries(range(3, 5), 3))(X, 100, np.random.default_rng(9))


# ------------------------------------------------------------------------------ the mean of the loss


def pair_of(name: str, epsilon: float) -> LossCurve:
    """An oriented pair of distributions of exactly that level."""
    if name == "response":
        response = LeakyResponse(BIT, epsilon)
        found = curve(response.law(X), response.law(Y))
    elif name == "geometric":
        found = curve(TwoSidedGeometricLaw(0, math.exp(epsilon)), TwoSidedGeometricLaw(1, math.exp(epsilon)))
    else:
        laplace = NoisyCountPart(at_least(1), step=2.0**-14).spending(epsilon, 0.0)
        found = curve(laplace.law(X), laplace.law(Y))
    assert isinstance(found, LossCurve)
    return found


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
def test_the_mean_of_the_loss_in_closed_form(epsilon: float) -> None:
    sharp = epsilon * math.tanh(epsilon / 2)
    assert largest_expected_loss(epsilon) == pytest.approx(sharp, rel=1e-15)
    assert sharp <= epsilon**2 / 2
    for name in ("response", "geometric"):
        assert expected_loss(pair_of(name, epsilon)) == pytest.approx(sharp, rel=1e-9)

    # Laplace noise, by quadrature of its density and in closed form; the lattice is fine, not continuous.
    def term(z: float) -> float:
        return 0.5 * math.exp(-abs(z)) * (abs(z - epsilon) - abs(z))

    pieces = [(-50.0, 0.0), (0.0, epsilon), (epsilon, 50.0 + epsilon)]
    exact = math.fsum(integrate.quad(term, a, b, epsabs=1e-15, epsrel=1e-12)[0] for a, b in pieces)
    assert epsilon - 1 + math.exp(-epsilon) == pytest.approx(exact, rel=1e-8, abs=1e-12)
    assert expected_loss(pair_of("laplace", epsilon)) == pytest.approx(exact, rel=1e-3)
    assert expected_loss(pair_of("laplace", epsilon)) < sharp


def test_no_pair_has_a_larger_mean_than_the_bound() -> None:
    """Random pairs on four outcomes, each with its own exact level."""
    rng = np.random.default_rng(10)
    for _ in range(500):
        p, q = (FiniteLaw((0, 1, 2, 3), rng.dirichlet(np.full(4, 0.7))) for _ in range(2))
        found = curve(p, q)
        assert isinstance(found, LossCurve)
        divergence = math.fsum(a * math.log(a / b) for a, b in zip(p.probabilities, q.probabilities, strict=True))
        assert expected_loss(found) == pytest.approx(divergence, rel=1e-9, abs=1e-12)
        assert expected_loss(found) <= largest_expected_loss(found.epsilon(0.0)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("mean", "slope"), [(expected_loss, 2.0), (expected_loss_under_other, 2.0), (expected_absolute_loss, 1.0)]
)
def test_slopes_in_epsilon(mean: Callable[[LossCurve], float], slope: float) -> None:
    levels = 2.0 ** -np.arange(3, 10)
    for name in ("response", "geometric"):
        values = [abs(mean(pair_of(name, float(epsilon)))) for epsilon in levels]
        assert np.polyfit(np.log(levels), np.log(values), 1)[0] == pytest.approx(slope, abs=0.01)


def test_wrong_means_are_wrong() -> None:
    pair = pair_of("response", 0.5)
    assert expected_loss_under_other(pair) == pytest.approx(-expected_loss(pair), rel=1e-9)
    assert expected_absolute_loss(pair) == pytest.approx(0.5, rel=1e-9)
    disjoint = LossCurve(np.zeros(0), np.zeros(0), 1.0, 1.0)
    assert expected_loss(disjoint) == expected_absolute_loss(disjoint) == math.inf
    assert expected_loss_under_other(disjoint) == -math.inf


def test_the_loss_of_draws_has_the_computed_mean() -> None:
    """Hoeffding: the mean of n losses in [-eps, eps] is within eps sqrt(2 ln(2 / alpha) / n) of the expectation."""
    epsilon, n = 0.2, 400_000
    law = ProductLaw((TwoSidedGeometricLaw(0, math.exp(epsilon)),)).parts[0]
    other = TwoSidedGeometricLaw(1, math.exp(epsilon))
    mechanism = NoisyCountPart(at_least(1), step=1.0).spending(epsilon, 0.0)
    outputs = mechanism(X, n, np.random.default_rng(11))
    losses = epsilon * (np.abs(outputs - 1) - np.abs(outputs))
    reach = epsilon * math.sqrt(2 * math.log(2 / FALSE_ALARM) / n)
    computed = curve(law, other)
    assert isinstance(computed, LossCurve)
    assert abs(losses.mean() - expected_loss(computed)) < reach < 0.1 * epsilon
