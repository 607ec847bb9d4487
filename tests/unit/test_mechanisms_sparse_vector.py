"""Sparse vector: golden values of the catalogue, exact levels of the six variants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.exact import curve
from mechanisms.queries import Answers
from mechanisms.sparse_vector import (
    MUTANTS,
    VARIANTS,
    SparseVector,
    VariantName,
    v3_log_ratio,
    v3_supremum,
)

# The benchmark: 10 queries, threshold 0.5, eps = 1.
ONE_LAST = (np.array([0.0] * 9 + [1.0]), np.array([1.0] * 9 + [0.0]))
HALVES = (np.array([0.0] * 5 + [1.0] * 5), np.array([1.0] * 5 + [0.0] * 5))


def benchmark(variant: VariantName, cutoff: int = 1) -> SparseVector:
    return SparseVector(Answers(), 1.0, 0.5, cutoff, variant)


def level(mechanism: SparseVector, pair: tuple[np.ndarray, np.ndarray]) -> float:
    return curve(mechanism.law(pair[0]), mechanism.law(pair[1])).epsilon(0.0)


def probability(mechanism: SparseVector, answers: list[float], transcript: tuple[int, ...]) -> float:
    law = mechanism.law(answers)
    return float(law.probabilities[law.outcomes.index(transcript)])


def test_golden_values_of_the_catalogue() -> None:
    # 004, 0.3 with b_w = 1, b_q = 2, w = 0, mirrored: its "top" is our "below", answers negated.
    v1 = SparseVector(Answers(), 2.0)
    assert (v1.threshold_scale, v1.query_scale) == (1.0, 2.0)
    for k, shift, golden in (
        (10, 0.5, (0.009617149161774695, 0.0036245396138876646)),
        (20, 1.0, (0.0033581818588445597, 0.00045663762425183)),
    ):
        transcript = (0,) * k + (1,)
        assert probability(v1, [-shift] * k + [0.0], transcript) == pytest.approx(golden[0], rel=1e-12)
        assert probability(v1, [0.0] * k + [-shift], transcript) == pytest.approx(golden[1], rel=1e-12)
    assert probability(v1, [-1.0], (0,)) == pytest.approx(0.656959467053485, rel=1e-14)


@pytest.mark.parametrize(
    ("variant", "cutoff", "pair", "expected"),
    [
        ("V1", 1, ONE_LAST, 0.980689491692),
        ("V1", 2, ONE_LAST, 0.694936136112),
        ("V2", 1, ONE_LAST, 0.980689491692),
        ("V2", 2, ONE_LAST, 0.570801827686),
        ("V4", 1, ONE_LAST, 1.740549246721),
        ("V6", 1, HALVES, 4.061100534462),
    ],
)
def test_levels_on_the_benchmark_pairs(
    variant: VariantName, cutoff: int, pair: tuple[np.ndarray, np.ndarray], expected: float
) -> None:
    assert level(benchmark(variant, cutoff), pair) == pytest.approx(expected, abs=1e-10)


def test_v5_publishes_the_order_of_two_answers() -> None:
    v5 = benchmark("V5")
    assert level(v5, HALVES) == math.inf
    law = v5.law(HALVES[0])
    assert set(law.outcomes) == {(0,) * 10, (0,) * 5 + (1,) * 5, (1,) * 10}
    # Catalogue M6: at equal distance from the threshold, mass (1 - e^(-1/b)) / 2 between 0 and 1.
    pair = SparseVector(Answers(), 1.0, 0.0, 1, "V5")
    assert probability(pair, [0.0, 1.0], (0, 1)) == pytest.approx(0.5 * (1 - math.exp(-0.5)), rel=1e-14)
    assert curve(pair.law([0.0, 1.0]), pair.law([1.0, 0.0])).delta(math.inf) == pytest.approx(
        0.5 * (1 - math.exp(-0.5)), rel=1e-14
    )


@pytest.mark.parametrize("cutoff", [1, 2, 3])
@pytest.mark.parametrize("variant", ["V1", "V2", "V4"])
def test_levels_approach_the_suprema_of_the_table(variant: VariantName, cutoff: int) -> None:
    mechanism = SparseVector(Answers(), 1.0, 0.0, cutoff, variant)
    expected = {"V1": 1.0, "V2": 1.0, "V4": (1 + 6 * cutoff) / 4}[variant]
    assert mechanism.true_epsilon == pytest.approx(expected, rel=1e-15)
    # The best transcript alone, on a long stream: 60 cheap answers, then the costly ones, all the
    # other way round on the other side. V2 has one such epoch for each costly answer.
    epochs, costly = (cutoff, 1) if variant == "V2" else (1, cutoff)
    # 60 scales of the wider noise either way, in steps that contain the kinks 0 and 1.
    reach = math.ceil(60 * max(mechanism.threshold_scale, mechanism.query_scale))
    x = np.linspace(-reach, reach, 2 * reach * 256 + 1)
    bar = stats.laplace.pdf(x, scale=mechanism.threshold_scale)
    noise = stats.laplace(scale=mechanism.query_scale)
    logs = [
        math.log(integrate.trapezoid(bar * noise.cdf(x - low) ** 60 * noise.sf(x - high) ** costly, x))
        for low, high in ((0.0, 1.0), (1.0, 0.0))
    ]
    gap = epochs * (logs[0] - logs[1])
    assert gap <= expected + 1e-6
    assert gap >= 0.93 * expected


def test_v6_costs_grow_with_every_costly_answer() -> None:
    levels = []
    for r in (1, 2, 3):
        low = np.array([0.0] * (10 - r) + [1.0] * r)
        levels.append(level(replace(benchmark("V6"), threshold=1.0), (low, 1.0 - low)))
        assert levels[-1] <= 10 / 2  # every query costs at most sensitivity / query scale
    assert levels == sorted(levels)
    assert replace(benchmark("V6")).true_epsilon == math.inf


@pytest.mark.parametrize("variant", ["V1", "V2", "V4", "V6"])
def test_law_by_brute_force_quadrature(variant: VariantName) -> None:
    mechanism = replace(benchmark(variant, 2), threshold=0.2)
    answers = np.array([0.0, 1.5, -0.7])
    law = mechanism.law(answers)
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-13)
    expected = {t for t in itertools.product((0, 1), repeat=3) if sum(t) < 2 or variant == "V6" or t[-1] == 1}
    if variant != "V6":
        expected = {t if t[:2] != (1, 1) else (1, 1, -1) for t in expected if t[:2] != (1, 1)} | {(1, 1, -1)}
    assert set(law.outcomes) == expected
    bar, noise = stats.laplace(scale=mechanism.threshold_scale), stats.laplace(scale=mechanism.query_scale)

    def epoch(rho: float, symbols: tuple[int, ...], start: int) -> float:
        parts = [
            noise.cdf(rho + 0.2 - a) if s == 0 else noise.sf(rho + 0.2 - a)
            for s, a in zip(symbols, answers[start:], strict=False)
        ]
        return float(bar.pdf(rho) * np.prod(parts))

    kinks = sorted({0.0, *(answers - 0.2)})
    reach = 45 * mechanism.threshold_scale
    ends = [kinks[0] - reach, *kinks, kinks[-1] + reach]
    for transcript, mass in zip(law.outcomes, law.probabilities, strict=True):
        assert isinstance(transcript, tuple)
        symbols = tuple(s for s in transcript if s >= 0)
        pieces, start = [], 0
        if variant == "V2":  # a new epoch after every "above"
            for i, s in enumerate(symbols):
                if s == 1 or i == len(symbols) - 1:
                    pieces.append((symbols[start : i + 1], start))
                    start = i + 1
        else:
            pieces = [(symbols, 0)]
        total = 1.0
        for part, begin in pieces:
            total *= sum(
                integrate.quad(epoch, a, b, args=(part, begin), epsabs=1e-13)[0] for a, b in itertools.pairwise(ends)
            )
        assert mass == pytest.approx(total, abs=1e-11)


def test_v3_exact_loss() -> None:
    v3 = benchmark("V3")
    worst = v3_supremum(v3, *ONE_LAST)
    # K = 8 cheap answers and a released one that moves: (K + 1) / (2 b_q), with b_q = 2.
    assert worst.loss == pytest.approx(9 / 2, abs=1e-9)
    assert worst.index == 8
    assert v3.true_epsilon == math.inf
    halves = v3_supremum(v3, *HALVES)
    assert halves.loss == pytest.approx(2.595495983077, abs=1e-8)
    assert abs(v3_log_ratio(v3, *HALVES, halves.index, halves.value)) == halves.loss
    # No sampled point of the outcome space beats it, and the loss of "all below" is V1's.
    for index in range(10):
        for value in np.linspace(-12.0, 12.0, 25):
            assert abs(v3_log_ratio(v3, *HALVES, index, float(value))) <= halves.loss + 1e-12
    same_noise = replace(v3, variant="V6")  # b_w = b_q = 2, as V3 at cutoff 1
    laws = [same_noise.law(answers) for answers in HALVES]
    none = [math.log(law.probabilities[law.outcomes.index((0,) * 10)]) for law in laws]
    assert v3_log_ratio(v3, *HALVES, 10, math.nan) == pytest.approx(none[0] - none[1], rel=1e-12)


def test_v3_density_is_a_density() -> None:
    # The ratio against a stream far below the threshold recovers P itself up to a known factor;
    # here directly: sampled releases at index 0 follow f(v - q) F(v - T).
    v3 = benchmark("V3")
    outputs = v3(np.array([1.0]), 50_000, np.random.default_rng(4))[:, 0]
    bar = stats.laplace(0.5, v3.threshold_scale)
    noise = stats.laplace(1.0, v3.query_scale)
    for low, high in ((-math.inf, 0.0), (0.0, 2.0), (2.0, 6.0), (6.0, math.inf)):
        ends = sorted({max(low, -80.0), *(k for k in (0.5, 1.0) if low < k < high), min(high, 80.0)})
        mass = sum(integrate.quad(lambda v: noise.pdf(v) * bar.cdf(v), a, b)[0] for a, b in itertools.pairwise(ends))
        law = stats.binom(50_000, mass)
        count = int(np.count_nonzero((outputs >= low) & (outputs < high)))
        assert law.ppf(1e-8) <= count <= law.isf(1e-8)  # 8 comparisons: false alarm below 1e-7


def test_v3_output_coding_and_refusals() -> None:
    v3 = benchmark("V3", 2)
    outputs = v3(HALVES[1], 2000, np.random.default_rng(6))
    released = ~np.isnan(outputs)
    assert released.sum(axis=1).max() == 2
    with pytest.raises(ValueError, match="expected cutoff 1"):
        v3_supremum(v3, *HALVES)
    with pytest.raises(ValueError, match="expected variant V3"):
        v3_log_ratio(benchmark("V1"), *HALVES, 0, 0.0)
    with pytest.raises(ValueError, match="expected an index from 0 to 10, got 11"):
        v3_log_ratio(benchmark("V3"), *HALVES, 11, 0.0)
    with pytest.raises(ValueError, match="noise scales of the threshold"):
        v3_supremum(benchmark("V3"), np.zeros(2), np.array([0.0, 1e9]))


def test_runs_stop_and_do_not_stop() -> None:
    finite: tuple[VariantName, ...] = ("V1", "V2", "V4", "V5", "V6")
    for variant in finite:
        outputs = replace(benchmark("V1", 2), variant=variant)(HALVES[1], 2000, np.random.default_rng(6))
        tops = (outputs == 1).sum(axis=1)
        if VARIANTS[variant].stops:
            assert tops.max() == 2
            # -1 exactly after the second "above".
            before = np.cumsum(outputs == 1, axis=1) - (outputs == 1)
            np.testing.assert_array_equal(outputs == -1, before >= 2)
        else:
            assert tops.max() > 2
            assert not np.any(outputs == -1)


def test_mutant_table() -> None:
    base = benchmark("V1", 2)
    levels = {}
    for name, mutant in MUTANTS.items():
        assert mutant.true_epsilon is not None
        levels[name] = mutant.true_epsilon(base)
        built = mutant.build(base)
        assert isinstance(built, SparseVector)
        assert built.variant == name
    assert levels == {"V3": math.inf, "V4": pytest.approx(13 / 4), "V5": math.inf, "V6": math.inf}


def test_twelve_queries_without_cutoff_fit() -> None:
    law = SparseVector(Answers(), 1.0, 0.5, 1, "V6").law(np.arange(12) % 2)
    assert len(law.outcomes) == 4096
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
