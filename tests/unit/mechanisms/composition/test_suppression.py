"""The differencing attack: what it finds out, from whom, and how often it is right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.privacy.exact import curve
from auditor.privacy.laws import TwoSidedGeometricLaw
from mechanisms.base.queries import Count
from mechanisms.composition.suppression import (
    MUTANTS,
    REFUSED,
    DifferencingAttack,
    EitherPredicate,
    GeometricNoiseCounts,
    GuessingGame,
    KnownRestAttack,
    OverlappingDifferencing,
    SuppressedCounts,
    guessing_bound,
)

TARGET, WIDE = Count(low=7.0, high=7.0), Count(low=0.0, high=3.0)
ATTACK = DifferencingAttack(TARGET, WIDE)
#: Four rows of the wide predicate, and one of the target or of neither.
WITHOUT, WITH = np.array([0.0, 1.0, 2.0, 3.0, 5.0]), np.array([0.0, 1.0, 2.0, 3.0, 7.0])
GAME = (WITHOUT, WITH)
#: False-alarm probability of each statistical test, for any seed.
FALSE_ALARM = 1e-7


def test_a_row_counts_once() -> None:
    overlapping = EitherPredicate((Count(low=0.0, high=2.0), Count(low=1.0, high=3.0), Count(equals=7.0)))
    assert [float(overlapping(data)) for data in GAME] == [4.0, 5.0]
    np.testing.assert_array_equal(Count(equals=7.0).matches(WITH), [False] * 4 + [True])
    for count in (TARGET, WIDE, Count(equals=2.0), Count()):
        assert int(count.matches(WITH).sum()) == int(count(WITH)) == int(EitherPredicate((count,))(WITH))
    assert (overlapping.sensitivity, overlapping.linf_sensitivity, overlapping.granularity) == (1.0, 1.0, 1.0)
    assert overlapping.relation == "replace_one"


def test_the_difference_of_two_large_counts_is_that_of_one_person() -> None:
    rng = np.random.default_rng(0)
    interface = SuppressedCounts(ATTACK.queries, 4)
    for bit, data in enumerate(GAME):
        outputs = interface(data, 3, rng)
        np.testing.assert_array_equal(outputs, [[4, 4 + bit]] * 3)
        np.testing.assert_array_equal(ATTACK(outputs), [bit] * 3)
    # The count of the target itself is refused, whatever it is.
    alone = SuppressedCounts((EitherPredicate((TARGET,)),), 4)
    assert [int(alone.answers(data)[0]) for data in GAME] == [REFUSED, REFUSED]
    assert curve(alone.law(WITHOUT), alone.law(WITH)).epsilon(0.0) == 0.0
    assert curve(interface.law(WITHOUT), interface.law(WITH)).epsilon(0.999) == math.inf


@pytest.mark.parametrize("wide", [Count(low=0.0, high=7.0), Count(low=7.0, high=9.0), Count(equals=7.0), Count()])
def test_predicates_that_overlap_make_the_difference_wrong_and_are_refused(wide: Count) -> None:
    careless = OverlappingDifferencing(TARGET, wide)
    outputs = [SuppressedCounts(careless.queries, 1)(data, 2, np.random.default_rng(0)) for data in GAME]
    assert not np.diff(outputs).any()  # the difference is 0, with the target and without
    assert not any(careless(released).any() for released in outputs)
    with pytest.raises(ValueError, match=r"expected a target and a wide predicate that are disjoint, got \(Count"):
        DifferencingAttack(TARGET, wide)


@pytest.mark.parametrize("levels", [(0.5, 0.5), (0.25, 1.0), (2.0, 0.125)])
def test_noisy_counts_attain_the_sum_of_their_levels(levels: tuple[float, float]) -> None:
    noisy = GeometricNoiseCounts(ATTACK.queries, levels)
    assert noisy.epsilon == sum(levels)
    # A row of the wide predicate moves both counts, the target only the second.
    both = curve(noisy.law([0.0, 1.0]), noisy.law([5.0, 1.0])).epsilon(0.0)
    assert both == pytest.approx(sum(levels), rel=1e-9)
    assert curve(noisy.law(WITHOUT), noisy.law(WITH)).epsilon(0.0) == pytest.approx(levels[1], rel=1e-9)


def test_noisy_counts_follow_their_law() -> None:
    noisy, n = GeometricNoiseCounts(ATTACK.queries, (0.5, 1.0)), 40_000
    outputs = noisy(WITH, n, np.random.default_rng(1))
    assert outputs.shape == (n, 2)
    for column, law in zip(outputs.T, noisy.law(WITH).parts, strict=True):
        assert isinstance(law, TwoSidedGeometricLaw)
        edges = law.loc + np.arange(-4, 5)
        expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * n
        found = np.bincount(np.searchsorted(edges, column, side="left"), minlength=edges.size + 1)
        # Chi-square: all expectations are above 100, where its tail at 1e-7 is right within a small factor.
        assert stats.chisquare(found, expected).pvalue > FALSE_ALARM
    # The two noises are independent: signs of the differences from the centre.
    signs = np.sign(outputs - [4.0, 5.0])
    product = signs[:, 0] * signs[:, 1]
    assert stats.binomtest(int((product > 0).sum()), int((product != 0).sum()), 0.5).pvalue > FALSE_ALARM


def right_guesses(noisy: GeometricNoiseCounts, attack: Any) -> float:
    """Exact probability of a right guess, by summing over both noises as far as 1e-15 is left."""
    total = 0.0
    for coin, data in enumerate(GAME):
        laws = noisy.law(data).parts
        reach = np.arange(-80, 81)
        masses = []
        for law in laws:
            assert isinstance(law, TwoSidedGeometricLaw)
            masses.append(np.diff(law.cdf(law.loc + np.arange(-81, 81))))
        first, second = (law.loc + reach for law in laws)  # type: ignore[union-attr]
        grid = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
        weight = np.multiply.outer(*masses).ravel()
        total += 0.5 * float(weight[attack(grid) == coin].sum())
    return total


@pytest.mark.parametrize("attack", [ATTACK, KnownRestAttack(4.0)])
@pytest.mark.parametrize("levels", [(0.5, 0.5), (1.0, 2.0)])
def test_no_attack_on_noisy_counts_beats_the_guessing_bound(attack: Any, levels: tuple[float, float]) -> None:
    noisy, n = GeometricNoiseCounts(ATTACK.queries, levels), 40_000
    exact = right_guesses(noisy, attack)
    assert exact <= guessing_bound(levels[1]) * (1 + 1e-9) < guessing_bound(noisy.epsilon)
    right = GuessingGame(noisy, attack)(GAME, n, np.random.default_rng(2))
    assert right.shape == (n,)
    assert stats.binomtest(int(right.sum()), n, exact).pvalue > FALSE_ALARM


def test_who_knows_the_rest_attains_the_bound_of_the_second_answer() -> None:
    # a / (1 + a) with a = e^eps: the bound of A7 without slack.
    exact = right_guesses(GeometricNoiseCounts(ATTACK.queries, (0.5, 0.75)), KnownRestAttack(4.0))
    assert exact == pytest.approx(guessing_bound(0.75), rel=1e-12)


def test_the_attack_on_exact_counts_is_always_right() -> None:
    game = GuessingGame(MUTANTS["as_described"].build(GeometricNoiseCounts(ATTACK.queries, (1.0, 1.0))), ATTACK)
    crowd = (np.append(np.zeros(20), 5.0), np.append(np.zeros(20), 7.0))
    assert game(crowd, 1000, np.random.default_rng(3)).all()


def test_the_guessing_bound() -> None:
    assert guessing_bound(1.0, 0.1) == pytest.approx(0.75795, abs=5e-6)  # the catalogue's number
    assert guessing_bound(0.0) == 0.5
    assert guessing_bound(800.0, 0.1) == 1.0
    # The largest (p + 1 - q) / 2 under both inequalities, by a search over the corners of a fine grid.
    p, q = np.meshgrid(np.linspace(0, 1, 2001), np.linspace(0, 1, 2001))
    allowed = (p <= math.e * q + 0.1) & (1 - q <= math.e * (1 - p) + 0.1)
    assert float((p + 1 - q)[allowed].max()) / 2 == pytest.approx(guessing_bound(1.0, 0.1), abs=1e-3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: EitherPredicate(()), r"expected at least one predicate, got \(\)"),
        (
            lambda: EitherPredicate((Count(), Count(relation="add_remove_one"))),
            r"expected predicates with one relation, got",
        ),
        (lambda: DifferencingAttack(TARGET, Count(0, low=0.0, high=3.0)), r"predicate of one column, got \(Count"),
        (lambda: DifferencingAttack(Count(equals="yes"), WIDE), r"expected a numeric value to count, got 'yes'"),
        (lambda: GeometricNoiseCounts(ATTACK.queries, (1.0,)), r"expected 2 levels, got \(1\.0,\)"),
        (lambda: GeometricNoiseCounts((), ()), r"expected at least one query, got \(\)"),
        (lambda: GeometricNoiseCounts(ATTACK.queries, (1.0, 0.0)), r"expected a finite epsilon > 0, got 0\.0"),
        (lambda: SuppressedCounts(ATTACK.queries, 0), r"expected an integer threshold >= 1, got 0"),
        (lambda: SuppressedCounts((), 1), r"expected at least one query, got \(\)"),
        (lambda: SuppressedCounts(ATTACK.queries, 1)(WITH, 0, np.random.default_rng()), r"draws n >= 1, got 0"),
        (lambda: guessing_bound(-1.0), r"expected epsilon >= 0, got -1\.0"),
        (lambda: guessing_bound(1.0, 2.0), r"expected delta in \[0, 1\], got 2\.0"),
    ],
)
def test_refusals_show_the_value(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
