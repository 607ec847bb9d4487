"""The learner that doubles its sample: outcomes by brute force, levels, sample sizes, fresh examples, mutants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.privacy.exact import curve
from mechanisms.learning.occam import MUTANTS, DoublingLearner, FreshExamples, schedule, share

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

IntArray = np.ndarray[Any, np.dtype[np.int64]]
LEARNER = DoublingLearner(8, (2, 3), 0.4, 1.0)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def examples(seed: int, rows: int = 24, points: int = 5) -> IntArray:
    """Points and labels at random, inconsistent with every concept."""
    own = rng(seed)
    return np.column_stack([own.integers(0, points, rows), own.integers(0, 2, rows)])


def noise_below(k: int, a: float) -> float:
    """P[Z <= k], summed."""
    z = np.arange(-60, k + 1) if k >= -60 else np.array([], dtype=int)
    return float((a ** -np.abs(z).astype(float)).sum() * (a - 1) / (a + 1))


def brute(name: str, learner: DoublingLearner, data: IntArray) -> dict[tuple[int, int], float]:
    """Outcomes with probabilities, from scores and subsets; ``name`` is a mutant's or "reference"."""
    rounds: list[tuple[list[Any], list[Any]]] = []
    place, found, reached = 0, {}, 1.0
    for j, length in enumerate(learner.lengths):
        half = learner.first * 2**j // 2
        rounds.append((data[place : place + half].tolist(), data[place + half : place + 2 * half].tolist()))
        place += 2 * half
        train, test = rounds[-1]
        if name == "earlier_rounds_reused":
            train, test = ([e for part in column for e in part] for column in zip(*rounds, strict=True))
        weights: dict[tuple[int, ...], float] = {}
        for bits in itertools.product((0, 1), repeat=length):
            score = -sum((bits[x] if x < length else 0) != y for x, y in train)
            missing = any(bit and x not in {p for p, _ in train} for x, bit in enumerate(bits))
            if not (name == "class_built_from_data" and missing):
                weights[bits] = math.exp(learner.epsilon * score / 2)
        total, goes_on = sum(weights.values()), 0.0
        for bits, weight in weights.items():
            errors = sum((bits[x] if x < length else 0) != y for x, y in test)
            slack = math.floor(3 * learner.alpha * len(test) / 4) - errors
            stops = float(slack >= 0) if name == "unnoised_stopping_test" else noise_below(slack, math.exp(1))
            found[j, sum(bit << x for x, bit in enumerate(bits))] = reached * weight / total * stops
            goes_on += weight / total * (1 - stops)
        reached *= goes_on
    found[-1, -1] = reached
    return found


NAMES = ["reference", *MUTANTS]


def of(name: str, learner: DoublingLearner = LEARNER) -> DoublingLearner:
    if name == "reference":
        return learner
    built = MUTANTS[name].build(learner)
    assert isinstance(built, DoublingLearner)
    return built


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_outcomes_by_brute_force(name: str, seed: int) -> None:
    data = examples(seed)
    law, wanted = of(name).outcomes(data), brute(name, LEARNER, data)
    mass = dict(zip(law.outcomes, law.probabilities.tolist(), strict=True))
    assert set(wanted) <= set(mass)
    for outcome, probability in mass.items():
        assert isinstance(outcome, tuple)
        assert probability == pytest.approx(wanted.get(outcome, 0.0), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_draws_follow_the_outcomes(name: str) -> None:
    n, data = 40_000, examples(3, points=3)
    data[:, 1] = data[:, 0] != 1  # what is learned decides about the errors
    data[[1, 13], 1] ^= 1
    outputs, law = of(name)(data, n, rng(4)), of(name).outcomes(data)
    assert outputs.shape == (n, 2)
    rows, times = np.unique(outputs, axis=0, return_counts=True)
    seen = {tuple(row): int(k) for row, k in zip(rows.tolist(), times, strict=True)}
    expected = {o: p * n for o, p in zip(law.outcomes, law.probabilities.tolist(), strict=True)}
    assert set(seen) <= {o for o, e in expected.items() if e > 0}
    large = [o for o, e in expected.items() if e >= 50]
    observed, wanted = [seen.get(o, 0) for o in large], [expected[o] for o in large]  # type: ignore[call-overload]
    rest = n - sum(wanted)
    if rest >= 50:
        observed, wanted = [*observed, n - sum(observed)], [*wanted, rest]
    assert len(large) >= 3
    scale = sum(observed) / sum(wanted)
    assert stats.chisquare(observed, [e * scale for e in wanted]).pvalue > ALARM


# -------------------------------------------------------------------------------------- levels


def level(learner: DoublingLearner, x: IntArray, y: IntArray) -> float:
    return curve(learner.outcomes(x), learner.outcomes(y)).epsilon(0.0)


def changed(data: IntArray, index: int, example: tuple[int, int]) -> IntArray:
    other = data.copy()
    other[index] = example
    return other


def test_one_example_costs_at_most_epsilon_wherever_it_stands() -> None:
    data = examples(5)
    for index, example in itertools.product(range(24), itertools.product((0, 1, 2, 4), (0, 1))):
        other = changed(data, index, example)
        assert level(LEARNER, data, other) <= 1.0 + 1e-9


def test_a_tested_example_costs_epsilon() -> None:
    # Point 4 is beyond all descriptions: with label 1 an error, whatever is learned. One is allowed of four.
    data = np.array([(0, i % 2) for i in range(4)] + [(4, 1)] * 2 + [(4, 0)] * 2 + [(0, 0)] * 16)
    assert LEARNER.allowed(4) == 1
    assert level(LEARNER, data, changed(data, 4, (4, 0))) == pytest.approx(1.0, rel=1e-9)
    law = LEARNER.outcomes(data)
    first = np.array(law.outcomes)[:, 0] == 0
    # Two errors, and one allowed: P[Z <= -1] = 1 / (1 + e).
    assert law.probabilities[first].sum() == pytest.approx(1 / (1 + math.e), rel=1e-9)


def test_levels_of_the_mutants() -> None:
    # Errors on all tested examples so far are one more than allowed (1 of 4, 3 of 12), or just as many.
    errors = np.array(
        [(0, i % 2) for i in range(4)]
        + [(4, 1)] * 2
        + [(4, 0)] * 2
        + [(0, i % 2) for i in range(8)]
        + [(4, 1)] * 2
        + [(4, 0)] * 6
    )
    fewer = changed(errors, 4, (4, 0))
    reused = of("earlier_rounds_reused")
    assert level(reused, errors, fewer) == pytest.approx(2.0, rel=1e-9)
    assert level(LEARNER, errors, fewer) == pytest.approx(1.0, rel=1e-9)
    never = [float(reused.outcomes(data).probabilities[-1]) for data in (errors, fewer)]
    assert never[0] / never[1] == pytest.approx(math.e**2, rel=1e-9)
    assert level(of("unnoised_stopping_test"), errors, fewer) == math.inf
    once = np.array([(1, 1)] * 3 + [(0, 1)] + [(4, 0)] * 4 + [(0, 0)] * 16)
    assert level(of("class_built_from_data"), once, changed(once, 3, (1, 1))) == math.inf
    assert level(LEARNER, once, changed(once, 3, (1, 1))) <= 1.0 + 1e-9
    stated = {name: mutant.true_level(LEARNER) for name, mutant in MUTANTS.items() if mutant.true_level}
    assert stated == {
        "earlier_rounds_reused": 2.0,
        "unnoised_stopping_test": math.inf,
        "class_built_from_data": math.inf,
    }


# ------------------------------------------------------------------------------- sample sizes


@pytest.mark.parametrize(("alpha", "beta", "epsilon"), [(0.2, 0.1, 1.0), (0.05, 0.01, 0.1), (0.4, 0.3, 3.0)])
def test_a_schedule_satisfies_what_the_theorem_asks_for(alpha: float, beta: float, epsilon: float) -> None:
    first, lengths = schedule(alpha, beta, epsilon, 5)
    assert sum(share(beta, j) for j in range(60)) == pytest.approx(beta / 2)
    for j, length in enumerate(lengths):
        half, b = first * 2**j // 2, share(beta, j)
        assert half >= math.log(4 / b) * max(57 / alpha, 16 / (alpha * epsilon))
        room = half * alpha / 2 * (1 - math.exp(-epsilon / 2))
        assert (length + 1) * math.log(2) + math.log(1 / b) <= room
        assert (length + 2) * math.log(2) + math.log(1 / b) > room
        # What these sizes are for: Chernoff bounds with 11/16 and 13/16 of alpha, and noise of an alpha/16 part.
        assert math.exp(-3 * alpha * half / 128) <= b / 4
        assert math.exp(-9 * alpha * half / 512) <= b / 4
        assert math.exp(-epsilon * alpha * half / 16) <= b / 4
    assert list(lengths) == sorted(lengths)


def test_the_exponents_of_the_chernoff_bounds() -> None:
    # exp(-d^2 mu / 3) above and exp(-d^2 mu / 2) below, at the gaps of the proof.
    above, below = Fraction(11, 16) / Fraction(1, 2) - 1, 1 - Fraction(13, 16)
    assert above**2 * Fraction(1, 2) / 3 == Fraction(3, 128)
    assert below**2 / 2 == Fraction(9, 512)
    assert 512 / 9 < 57


@pytest.mark.parametrize(("error", "index"), [(0.1, 0), (0.2, 0), (0.15, 1)])
def test_wrong_decisions_by_convolution(error: float, index: int) -> None:
    learner = FreshExamples(40, (3, 3), 0.2, 0.5)
    half, a = 40 * 2**index // 2, math.exp(0.5)
    k = np.arange(-150, 151)
    mass = np.convolve(
        stats.binom.pmf(np.arange(half + 1), half, error), a ** -np.abs(k).astype(float) * (a - 1) / (a + 1)
    )
    counts = np.arange(-150, 151 + half)
    stops, goes_on = learner.wrong_decision(error, index)
    assert stops == pytest.approx(float(mass[counts <= math.floor(0.15 * half)].sum()), rel=1e-9)
    assert goes_on == pytest.approx(1 - stops, rel=1e-9)


def test_requested_examples_are_counted() -> None:
    assert LEARNER.requested(np.array([0, 1, -1])).tolist() == [8, 24, 24]


# ------------------------------------------------------------------------------ fresh examples


def test_fresh_examples_are_those_of_a_sample() -> None:
    # Three points, one of them beyond the first description; both learners, on 1,500 samples each.
    weights, labels = np.array([0.5, 0.3, 0.2]), np.array([1, 0, 1])
    fresh = FreshExamples(24, (2, 3), 0.4, 0.5)
    given = DoublingLearner(24, (2, 3), 0.4, 0.5)
    n, own = 1_500, rng(6)
    drawn = fresh(np.column_stack([weights, labels]), n, own)
    outcomes = []
    for _ in range(n):
        x = own.choice(3, 72, p=weights)
        j, code = given(np.column_stack([x, labels[x]]), 1, own)[0].tolist()
        bits = code >> np.arange(3) & 1
        outcomes.append((j, 1.0 if j < 0 else float(weights[bits != labels].sum())))
    table = np.array(outcomes)
    cells, places = np.unique(np.round(np.concatenate([drawn, table]), 9), axis=0, return_inverse=True)
    counts = np.array([np.bincount(part, minlength=len(cells)) for part in np.split(places.ravel(), 2)])
    rare = counts.sum(axis=0) < 100
    pooled = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    kept = pooled[:, pooled.sum(axis=0) >= 100]
    assert kept.shape[1] >= 4
    assert stats.chi2_contingency(kept).pvalue > ALARM


def test_a_hard_distribution_needs_a_later_round() -> None:
    first, lengths = schedule(0.2, 0.1, 1.0, 3)
    learner = FreshExamples(first, lengths, 0.2, 1.0)
    points = lengths[1]
    outputs = learner(np.column_stack([np.full(points, 1 / points), np.ones(points)]), 50, rng(7))
    # Round 0 describes less than half of the points. A wrong outcome has probability below 1e-6 in all the runs: the
    # round would have to pass an error of a half, or round 1 to miss more than a tenth of the points.
    assert outputs[:, 0].tolist() == [1.0] * 50
    assert (outputs[:, 1] < 0.1).all()
    # A class that is too small for the concept learns nothing.
    short = FreshExamples(first, lengths[:1], 0.2, 1.0)
    nothing = short(np.column_stack([np.full(points, 1 / points), np.ones(points)]), 50, rng(8))
    assert nothing.tolist() == [[-1.0, 1.0]] * 50


def test_errors_show_the_value() -> None:
    data = examples(1)
    with pytest.raises(ValueError, match=r"expected at least 24 examples, got 23"):
        LEARNER(data[:23], 1, rng(0))
    with pytest.raises(ValueError, match=r"expected examples of a point and a label, got \(24,\)"):
        LEARNER(data[:, 0], 1, rng(0))
    with pytest.raises(ValueError, match=r"expected labels 0 and 1, got .*2"):
        LEARNER(changed(data, 3, (0, 2)), 1, rng(0))
    with pytest.raises(ValueError, match=r"expected points >= 0, got .*-1"):
        LEARNER(changed(data, 3, (-1, 0)), 1, rng(0))
    with pytest.raises(ValueError, match=r"expected an even number of examples, 2 or more, got 7"):
        DoublingLearner(7, (1,), 0.4, 1.0)
    with pytest.raises(ValueError, match=r"expected lengths >= 0 of one round or more, got \(\)"):
        DoublingLearner(8, (), 0.4, 1.0)
    with pytest.raises(ValueError, match=r"expected alpha in \(0, 1/2\), got 0\.5"):
        DoublingLearner(8, (1,), 0.5, 1.0)
    with pytest.raises(ValueError, match=r"expected a finite epsilon > 0, got 0\.0"):
        DoublingLearner(8, (1,), 0.4, 0.0)
    with pytest.raises(ValueError, match=r"expected descriptions of at most 62 bits, got \(63,\)"):
        DoublingLearner(8, (63,), 0.4, 1.0)
    with pytest.raises(ValueError, match=r"expected descriptions of at most 20 bits, got \(2, 21\)"):
        DoublingLearner(8, (2, 21), 0.4, 1.0).outcomes(data)
    with pytest.raises(ValueError, match=r"expected beta in \(0, 1/2\), got 0\.5"):
        schedule(0.2, 0.5, 1.0, 3)
    with pytest.raises(ValueError, match=r"expected 1 round or more, got 0"):
        schedule(0.2, 0.1, 1.0, 0)
    with pytest.raises(ValueError, match=r"expected probabilities that sum to 1, got 0\.5"):
        FreshExamples(8, (1,), 0.4, 1.0)(np.array([[0.5, 1.0]]), 1, rng(0))
