"""Levels: references at their claim, mutants at their stated true level, on their own pairs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.privacy.exact import FiniteLaw, curve
from mechanisms.additive_noise import geometric, laplace
from mechanisms.additive_noise.geometric import RoundedLaplace, SignTimesGeometric, TwoSidedGeometric
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import Dataset
from mechanisms.base.noise import base_for
from mechanisms.base.queries import ClippedSum, Count, Histogram, IdentityQuery, SeveralCounts
from mechanisms.local_model import randomized_response
from mechanisms.local_model.randomized_response import RandomizedResponse
from mechanisms.selection import exponential, noisy_max
from mechanisms.selection.exponential import ExponentialMechanism
from mechanisms.selection.noisy_max import (
    PermuteAndFlip,
    ReleasedMaximum,
    ReportNoisyMax,
    exponential_winner,
    laplace_winner,
)
from tests.statistics import level_of

EPSILON = 0.5
SCALAR = LatticeLaplace(IdentityQuery(), EPSILON, 2.0**-4)
CELLS = LatticeLaplace(Histogram(categories=(0, 1)), EPSILON, 1.0)
COUNTS = LatticeLaplace(SeveralCounts((Count(low=1),) * 3), EPSILON, 1.0)
SIGNED = LatticeLaplace(ClippedSum(low=-1.0, high=1.0), EPSILON, 2.0**-4)


# ------------------------------------------------------------------------------- additive noise


@pytest.mark.parametrize(
    ("base", "data", "other"),
    [
        (SCALAR, 0.0, 1.0),
        (LatticeLaplace(IdentityQuery(3.0), EPSILON), -1.5, 1.5),
        (CELLS, [0, 0], [0, 1]),
        (COUNTS, [0, 0], [0, 1]),
        (SIGNED, [-1.0], [1.0]),
        (TwoSidedGeometric(Count(low=1), math.exp(EPSILON)), [0], [1]),
        (TwoSidedGeometric(Histogram(categories=(0, 1)), base_for(EPSILON, 2)), [0], [1]),
    ],
)
def test_additive_references_are_tight(base: Any, data: Dataset, other: Dataset) -> None:
    exact = level_of(base, data, other)
    assert exact <= EPSILON * (1 + 1e-12)
    assert exact == pytest.approx(EPSILON, rel=1e-9)


def test_rounding_of_several_coordinates_is_counted() -> None:
    # Two coordinates that move by half a unit each can both be rounded up: two steps, although
    # sensitivity / step = 1. ceil(sensitivity / step) alone would give 2 eps here.
    base = LatticeLaplace(IdentityQuery(1.0), EPSILON, 1.0)
    assert base.steps(2) == 2
    assert level_of(base, [0.25, 0.25], [0.75, 0.75]) == pytest.approx(EPSILON, rel=1e-12)
    assert LatticeLaplace(IdentityQuery(1.0, granularity=1.0), EPSILON, 1.0).steps(2) == 1
    assert LatticeLaplace(IdentityQuery(1.0), EPSILON, 0.3125 * 0.8).steps(1) == 4


LAPLACE_PAIRS: list[tuple[str, LatticeLaplace, Dataset, Dataset]] = [
    ("scale_times_epsilon", SCALAR, 0.0, 1.0),
    ("scale_times_epsilon", LatticeLaplace(IdentityQuery(3.0), EPSILON), 0.0, 3.0),
    ("scale_inverted", LatticeLaplace(IdentityQuery(3.0), EPSILON), 0.0, 3.0),
    ("std_as_scale", SCALAR, 0.0, 1.0),
    ("half_scale", SCALAR, 0.0, 1.0),
    ("half_scale", COUNTS, [0], [1]),
    ("add_remove_sensitivity", CELLS, [0], [1]),
    ("add_remove_sensitivity", SIGNED, [-1.0], [1.0]),
    ("add_remove_sensitivity", LatticeLaplace(Count(low=1), EPSILON), [0], [1]),
    ("linf_sensitivity", COUNTS, [0], [1]),
    ("half_lattice_step", SCALAR, 0.0, 1.0),
    ("coarse_grid_first", SCALAR, 1.5, 2.5),
    ("bounded_support_noise", SCALAR, 0.0, 1.0),
    ("noise_seeded_by_data", SCALAR, 0.0, 1.0),
    ("gaussian_of_same_scale", SCALAR, 0.0, 1.0),
]


@pytest.mark.parametrize(("name", "base", "data", "other"), LAPLACE_PAIRS)
def test_laplace_mutants_have_their_true_level(name: str, base: LatticeLaplace, data: Dataset, other: Dataset) -> None:
    mutant = laplace.MUTANTS[name]
    assert mutant.true_level is not None
    assert level_of(mutant.build(base), data, other) == pytest.approx(mutant.true_level(base), rel=1e-9)


def test_laplace_mutants_true_levels_in_numbers() -> None:
    levels = {name: m.true_level(SCALAR) for name, m in laplace.MUTANTS.items() if m.true_level and name[0] != "a"}
    finite = {name: value for name, value in levels.items() if math.isfinite(value)}
    assert finite == {
        "scale_times_epsilon": 2.0,
        "scale_inverted": 2.0,
        "std_as_scale": pytest.approx(0.5 * math.sqrt(2)),
        "half_scale": 1.0,
        "linf_sensitivity": 0.5,
        "half_lattice_step": 1.0,
        "coarse_grid_first": 2.0,
        "output_rounded_or_clamped": 0.5,
    }
    assert {m.kind for name, m in laplace.MUTANTS.items() if name != "output_rounded_or_clamped"} == {"violation"}
    assert laplace.MUTANTS["output_rounded_or_clamped"].kind == "benign"


def test_local_sensitivity_releases_some_answers_without_noise() -> None:
    mutant: Any = laplace.MUTANTS["local_sensitivity"].build(LatticeLaplace(Count(low=1), EPSILON))
    assert mutant.law([0, 0]) == FiniteLaw((0.0,), np.ones(1))
    # One step of 2^-10 away from it, and below it, the neighbour has outputs: an infinite loss.
    assert mutant.law([0, 1]) == LatticeLaplace(Count(low=1), EPSILON).law([0, 1])


def test_laplace_mutants_with_small_delta() -> None:
    truncated, gaussian = (
        laplace.MUTANTS[name].build(SCALAR) for name in ("bounded_support_noise", "gaussian_of_same_scale")
    )
    pair = curve(truncated.law(0.0), truncated.law(1.0))  # type: ignore[attr-defined]
    # The mass at the clamp and of the 15 further points beyond the other support's end.
    a, limit = SCALAR.base(1), math.ceil(3.0 / math.log(SCALAR.base(1)))
    assert pair.delta(math.inf) == pytest.approx(a ** (1 - limit + 15) / (a + 1), rel=1e-9)
    assert 0 < level_of(gaussian, 0.0, 1.0, 0.01) < math.inf


def draw(mechanism: Any, data: Dataset, n: int = 1000) -> Any:
    return mechanism(data, n, np.random.default_rng(11))


def test_laplace_mutants_without_a_law_show_impossible_events() -> None:
    # Every event below has probability exactly 0 on one side. On the other it has probability at
    # least 0.1 per draw, so that 1000 draws miss it with probability below 1e-45.
    one_sided = laplace.MUTANTS["one_sided_exponential"].build(SCALAR)
    assert np.all(draw(one_sided, 1.0) >= 1.0)
    assert np.any(draw(one_sided, 0.0) < 1.0)
    shared = laplace.MUTANTS["same_noise_for_two_queries"].build(LatticeLaplace(IdentityQuery(2.0), EPSILON))
    assert np.ptp(np.diff(draw(shared, [0.0, 1.0]), axis=1)) == 0.0
    coarse = laplace.MUTANTS["noise_rounded_before_adding"].build(SCALAR)
    assert np.all(np.fmod(draw(coarse, 0.0), 1.0) == 0.0)
    assert np.all(np.fmod(draw(coarse, 0.5), 1.0) != 0.0)
    seeded = laplace.MUTANTS["noise_seeded_by_data"].build(SCALAR)
    assert np.ptp(draw(seeded, 0.0)) == 0.0
    assert draw(seeded, 0.0)[0] != draw(seeded, 1.0)[0]
    # Design, section 4: at scale 1, multiples of 2^-53 only at f = 1; 27 % others at f = 0.
    textbook = laplace.MUTANTS["float_inverse_cdf"].build(LatticeLaplace(IdentityQuery(), 1.0))
    assert np.all(np.fmod(draw(textbook, 1.0, 100_000), 2.0**-53) == 0.0)
    off = int(np.count_nonzero(np.fmod(draw(textbook, 0.0, 100_000), 2.0**-53) != 0.0))
    assert 0.25 < off / 100_000 < 0.29  # 0.27: 14 standard deviations either way
    rounded = laplace.MUTANTS["output_rounded_or_clamped"].build(SCALAR)
    assert np.all(np.fmod(draw(rounded, 0.3), 1.0) == 0.0)


def lumped(mutant: Any, centre: int) -> FiniteLaw:
    """Distribution on -60..60 with the rest lumped at the ends: exact cell masses, tails of one ratio."""
    k = np.arange(-60, 61)
    mass = mutant.cell_probability(k - centre)
    far = np.arange(1, 2000)
    mass[0] += mutant.cell_probability(-60 - far - centre).sum()
    mass[-1] += mutant.cell_probability(60 + far - centre).sum()
    return FiniteLaw(tuple(k.tolist()), mass)


@pytest.mark.parametrize("a", [1.2, math.e, 9.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_geometric_mutants_have_their_true_level(a: float, shift: int) -> None:
    base = TwoSidedGeometric(IdentityQuery(float(shift)), a)
    for name, cls in (("rounded_laplace", RoundedLaplace), ("sign_times_geometric", SignTimesGeometric)):
        mutant = geometric.MUTANTS[name]
        built = mutant.build(base)
        assert isinstance(built, cls)
        assert mutant.true_level is not None
        exact = curve(lumped(built, 0), lumped(built, shift)).epsilon(0.0)
        assert exact == pytest.approx(mutant.true_level(base), rel=1e-10)
    wrong = geometric.MUTANTS["sensitivity_ignored"]
    assert wrong.true_level is not None
    assert level_of(wrong.build(base), 0.0, float(shift)) == pytest.approx(wrong.true_level(base), rel=1e-12)
    assert wrong.true_level(base) == pytest.approx(shift * base.epsilon, rel=1e-15)
    # One-sided: no output below the answer, where the other dataset has mass 1 - 1/a and more.
    one_sided = geometric.MUTANTS["one_sided"].build(base)
    assert draw(one_sided, float(shift)).min() >= shift
    assert draw(one_sided, 0.0).min() < shift


def test_geometric_mutants_cells_match_their_samplers() -> None:
    base = TwoSidedGeometric(IdentityQuery(), 1.8)
    for name in ("rounded_laplace", "sign_times_geometric"):
        mutant: Any = geometric.MUTANTS[name].build(base)
        n = 100_000
        outputs = draw(mutant, 0.0, n)
        for k in range(-3, 4):
            law = stats.binom(n, float(mutant.cell_probability(np.array(k))))
            # 14 comparisons of 1e-8 each way: false alarm below 3e-7.
            assert law.ppf(1e-8) <= np.count_nonzero(outputs == k) <= law.isf(1e-8)


# -------------------------------------------------------------------------- randomised response


@pytest.mark.parametrize("parameter", [0.1, 0.5, 0.9])
def test_randomized_response_levels(parameter: float) -> None:
    base = RandomizedResponse(parameter)
    x, y = [0, 1, 1], [0, 0, 1]
    assert level_of(base, x, y) == pytest.approx(math.log((1 + parameter) / (1 - parameter)), rel=1e-12)
    for name, mutant in randomized_response.MUTANTS.items():
        built = mutant.build(base)
        assert mutant.true_level is not None
        if name == "shared_coin":  # the parity of two rows is published
            for data, parity in ((x, 1), (y, 0)):
                outputs = draw(built, data)
                assert np.all(outputs[:, 0] ^ outputs[:, 1] == parity)
        elif name == "memoised_seed":
            assert np.ptp(draw(built, x), axis=0).max() == 0
        else:
            assert level_of(built, x, y) == pytest.approx(mutant.true_level(base), rel=1e-12)
    claimed: Any = randomized_response.MUTANTS["parameter_claimed_as_eps"].build(base)
    assert claimed.epsilon == parameter
    assert level_of(claimed, x, y) > 2 * claimed.epsilon


# ------------------------------------------------------------------------------------ selection


def test_exponential_mechanism_tight_pairs() -> None:
    base = ExponentialMechanism(IdentityQuery(100.0), 1.0)
    for outcomes in (2, 10, 100):
        flat, moved = np.zeros(outcomes), np.full(outcomes, -1.0)
        moved[0] = 1.0
        total = math.exp(0.5) + (outcomes - 1) * math.exp(-0.5)
        # The catalogue's event "that outcome", and the opposite one, which is the worse for two.
        event, opposite = 0.5 + math.log(outcomes / total), 0.5 - math.log(outcomes / total)
        assert level_of(base, flat, moved) == pytest.approx(max(event, opposite), rel=1e-12)
        ratio = base.law(moved).probabilities[0] / base.law(flat).probabilities[0]
        assert math.log(ratio) == pytest.approx(event, rel=1e-12)
    # Monotone scores: half the level.
    assert level_of(base, [0.0, 50.0], [1.0, 50.0]) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("gap", [10.0, 40.0])
def test_selection_levels_approach_the_stated_suprema(gap: float) -> None:
    answers = IdentityQuery(2.0)
    pair = ([gap, 0.0], [gap - 1.0, 1.0])
    for reference in (ExponentialMechanism(answers, 1.0), PermuteAndFlip(answers, 1.0), ReportNoisyMax(answers, 1.0)):
        assert level_of(reference, *pair) <= 1.0 + 1e-12
        # Laplace: ratio (2 + t) / (4 e^t) at t = gap / 2 against t - 1, so a 1/(1 + gap/2) below.
        assert level_of(reference, *pair) >= 1.0 - 1.05 / (1.0 + gap / 2.0)
    for mutants, base in (
        (exponential.MUTANTS, ExponentialMechanism(answers, 1.0)),
        (noisy_max.MUTANTS, ReportNoisyMax(answers, 1.0)),
        (noisy_max.FLIP_MUTANTS, PermuteAndFlip(answers, 1.0)),
    ):
        name = "factor_two_missing" if mutants is exponential.MUTANTS else "half_scale"
        mutant: Any = mutants[name]
        assert mutant.true_level(base) == 2.0
        assert 1.5 < level_of(mutant.build(base), *pair) <= 2.0 + 1e-12


def test_exponential_mutants_have_their_true_level() -> None:
    base = ExponentialMechanism(IdentityQuery(2.0), 1.0)
    build = {name: mutant.build(base) for name, mutant in exponential.MUTANTS.items()}
    # The level falls short of the supremum by about e^-(gap / 2) = 4e-18.
    assert level_of(build["sign_flipped"], [80.0, 0.0], [79.0, 1.0]) == pytest.approx(1.0, rel=1e-12)
    assert level_of(build["greedy_argmax"], [1.0, 0.5], [0.0, 1.5]) == math.inf
    assert level_of(build["sum_for_mean_sensitivity"], [80.0, 0.0], [79.0, 1.0]) == pytest.approx(10.0, rel=1e-12)
    assert level_of(build["data_dependent_range"], [3.0, 0.0], [3.0, 1.0]) == math.inf
    # Uniform noise of width pi sqrt 2 in units of 2 Du / eps = 2: the trailing one cannot win.
    behind = 2.0 * math.pi * math.sqrt(2.0)
    assert level_of(build["uniform_noise_for_gumbel"], [behind + 0.1, 0.0], [behind - 0.9, 0.0]) == math.inf
    for name, mutant in exponential.MUTANTS.items():
        assert (mutant.kind == "benign") == (name == "sign_flipped")


def test_uniform_noise_law_in_closed_form_for_two() -> None:
    mutant: Any = exponential.MUTANTS["uniform_noise_for_gumbel"].build(ExponentialMechanism(IdentityQuery(2.0), 2.0))
    width = math.pi * math.sqrt(2.0)
    for gap in (0.0, 1.0, 3.0):
        # The trailing one wins when the triangle-distributed difference exceeds the gap.
        expected = 0.5 * (1.0 - gap / width) ** 2
        assert mutant.law([gap, 0.0]).probabilities[1] == pytest.approx(expected, rel=1e-12)


SCORES = [np.array([0.0, 0.3]), np.array([2.0, -1.0, 0.5, 0.5]), np.linspace(-4.0, 9.0, 9), np.zeros(12), np.zeros(1)]


@pytest.mark.parametrize("scores", SCORES)
def test_winner_probabilities_by_adaptive_quadrature(scores: Any) -> None:
    for winner, law in ((laplace_winner, stats.laplace), (exponential_winner, stats.expon)):
        mass = winner(scores)
        assert mass.sum() == pytest.approx(1.0, abs=1e-13)
        for i in range(scores.size):
            others = np.delete(scores, i)

            def density(x: float, i: int = i, others: Any = others, law: Any = law) -> float:
                return float(law.pdf(x - scores[i]) * np.prod(law.cdf(x - others)))

            ends = np.concatenate([[scores.min() - 45.0], np.unique(scores), [scores.max() + 45.0]])
            parts = [integrate.quad(density, a, b, epsabs=1e-14, limit=200)[0] for a, b in itertools.pairwise(ends)]
            assert mass[i] == pytest.approx(sum(parts), abs=1e-12)


def test_winner_closed_forms() -> None:
    for t in (0.0, 0.7, 5.0):
        # P[Lap + Lap > t] = (2 + t) e^-t / 4: catalogue 004, 0.2.
        assert laplace_winner(np.array([t, 0.0]))[1] == pytest.approx((2 + t) * math.exp(-t) / 4, rel=1e-13)
        assert exponential_winner(np.array([t, 0.0]))[1] == pytest.approx(math.exp(-t) / 2, rel=1e-14)


def test_released_maximum_level_is_k_halves_epsilon() -> None:
    for k in (2, 5):
        base = ReportNoisyMax(IdentityQuery(float(k)), 1.0)
        built = noisy_max.MUTANTS["released_maximum"].build(base)
        assert isinstance(built, ReleasedMaximum)
        up, down = np.ones(k), np.zeros(k)
        x = np.linspace(-30.0, 30.0, 2001)
        loss = built.log_ratio(down, up, x)
        # Below both answers the ratio of densities, and of the events {out <= x}, is exact.
        np.testing.assert_allclose(loss[x <= 0.0], k / 2, rtol=1e-12)
        assert np.max(np.abs(loss)) <= k / 2 * (1 + 1e-12)
        assert built.log_cdf(down, np.array(0.0)) - built.log_cdf(up, np.array(0.0)) == pytest.approx(k / 2)
    scores = np.array([0.0, 1.0, 3.0])
    for noise in ("laplace", "exponential"):
        built = ReleasedMaximum(IdentityQuery(3.0), 1.0, noise)
        mass, _ = integrate.quad(
            lambda x, m=built: math.exp(m.log_density(scores, np.array(x))), 3.01, 9.0, epsabs=1e-13
        )
        cdf = np.exp(built.log_cdf(scores, np.array([3.01, 9.0])))
        assert mass == pytest.approx(cdf[1] - cdf[0], abs=1e-11)
        outputs = draw(built, scores, 50_000)
        for end in (3.5, 6.0, 9.0):
            law = stats.binom(50_000, float(np.exp(built.log_cdf(scores, np.array(end)))))
            # 6 comparisons of 1e-8 each way: false alarm below 2e-7.
            assert law.ppf(1e-8) <= np.count_nonzero(outputs <= end) <= law.isf(1e-8)
    # Exponential noise: values between the two largest scores occur on one side only.
    released = ReleasedMaximum(IdentityQuery(3.0), 1.0, "exponential")
    assert released.log_ratio(np.zeros(3), np.ones(3), np.array(0.5)) == math.inf
