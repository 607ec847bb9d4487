"""The amplified parity learner: parameters, distributions of choices and releases, fresh samples, mutants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import curve
from mechanisms.learning.amplified_fresh import (
    AmplifiedWithoutRuns,
    BoostedOnFreshSamples,
    FreshAmplified,
    ParityOnFreshBlocks,
    ParityRows,
    SparseBits,
    TrueErrorOfHypothesis,
    UniformBits,
    code_of,
    solve,
    uniform_success,
)
from mechanisms.learning.amplified_parity import (
    MUTANTS,
    ParityErrors,
    PrintedAmplification,
    TargetLabels,
    all_released,
    astar,
    block_rows,
    corrected,
    rounds,
    rows_for_tests,
    size_bound,
)
from mechanisms.learning.amplified_selection import ExponentialSelection, NoiselessErrorCounts, NoisyErrorCounts
from mechanisms.learning.boosting import NULL, BoostedLearner, ReleasedCandidates, SameTrainingBlock, TrainTestSplit
from mechanisms.learning.boosting_parts import ChosenHypothesis, FixedErrors, ReleaseAsOneNumber
from mechanisms.learning.gf2 import inner, random_words
from tests.statistics import level_of, p_value_of_outputs

FloatArray = NDArray[np.float64]
Rows = NDArray[np.uint8]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def rows(*given: tuple[int, ...]) -> Rows:
    return np.array(given, dtype=np.uint8)


def flipped(data: Rows, index: int) -> Rows:
    other = data.copy()
    other[index, -1] ^= 1
    return other


# -------------------------------------------------------------------------------- parameters


def test_the_catalogues_reference_numbers() -> None:
    ten = corrected(10, 0.5, 0.1, 0.1)
    assert (ten.rounds, ten.rows, ten.tests, ten.needed) == (12, 6655, 7064, 86_924)
    assert corrected(10, 0.5, 0.1, 0.01).rounds == 20
    assert corrected(10, 0.5, 0.1, 0.01).needed == 150_500
    assert corrected(8, 0.5, 0.1, 0.1).needed == 73_616


def test_the_sample_size_against_what_is_claimed_of_it() -> None:
    # n eps alpha / (d log2(1/beta)) for d = 2, eps = 0.5, alpha = 0.1.
    lengths = (5, 10, 20, 40, 80, 160)
    found = [corrected(2, 0.5, 0.1, 2.0**-length).needed * 0.05 / (2 * length) for length in lengths]
    assert [round(ratio) for ratio in found] == [236, 235, 272, 351, 517, 854]
    choice = [corrected(2, 0.5, 0.1, 2.0**-length, choice_only=True).needed * 0.05 / (2 * length) for length in lengths]
    assert choice == sorted(choice, reverse=True)


def test_parameters_as_printed() -> None:
    printed = PrintedAmplification(10, 0.5, 0.1, 0.1)
    assert printed.failure == 0.05
    assert printed.rounds == -10
    assert printed.rows == pytest.approx(16.64 * 10 / (0.5 * 0.02))
    assert math.isnan(printed.tests)
    # The constant is just above what the proof asks for.
    assert 16.64 > 8 * math.log(8) > 16.63


@pytest.mark.parametrize("gamma", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-3, 1e-9])
def test_the_number_of_runs_is_the_least_that_works(gamma: float, beta: float) -> None:
    k = rounds(beta, gamma)
    assert (1 - gamma) ** k <= beta * (1 + 1e-12)
    assert k == 1 or (1 - gamma) ** (k - 1) > beta * (1 - 1e-12)


@pytest.mark.parametrize("choice_only", [False, True])
def test_the_three_events_have_the_probabilities_that_are_claimed(choice_only: bool) -> None:
    for epsilon, alpha, beta in itertools.product((0.1, 0.5, 0.9), (0.02, 0.1, 0.5), (0.24, 0.1, 1e-3)):
        split = corrected(10, epsilon, alpha, beta, choice_only=choice_only)
        k, s, good, failure = split.rounds, split.tests, alpha / 5, beta / 3
        assert 0.75**k <= failure
        assert stats.binom.sf(math.ceil(2 * good * s) - 1, s, good) <= failure / k
        assert stats.binom.cdf(math.floor(4 * good * s), s, 5 * good) <= failure / k
        scale = 2.0 if choice_only else k
        assert math.exp(-good * s * epsilon / scale) <= failure / k * (1 + 1e-12)


def test_the_sample_size_is_below_its_closed_form() -> None:
    grid = itertools.product((1, 2, 50, 10_000), (0.001, 0.1, 0.9), (1e-4, 0.1, 0.5), (0.2499, 0.1, 1e-3, 1e-300))
    for d, epsilon, alpha, beta in grid:
        for choice_only in (False, True):
            needed = corrected(d, epsilon, alpha, beta, choice_only=choice_only).needed
            assert needed <= size_bound(d, epsilon, alpha, beta, choice_only=choice_only)


def test_the_sample_size_is_a_logarithm_over_epsilon_times_that_without_privacy() -> None:
    grid = itertools.product((1, 2, 50, 10_000), (0.001, 0.1, 0.9), (1e-4, 0.1, 0.5), (0.2499, 0.1, 1e-3, 1e-300))
    for d, epsilon, alpha, beta in grid:
        needed = corrected(d, epsilon, alpha, beta).needed
        without = math.ceil((d * math.log(2.0) + math.log(1.0 / beta)) / alpha)
        assert needed <= 841.0 * math.log(1.0 / beta) / epsilon * without


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda: corrected(3, 0.0, 0.1, 0.1), "epsilon"),
        (lambda: corrected(3, 0.5, 0.6, 0.1), "0.6"),
        (lambda: corrected(3, 0.5, 0.1, 1.0), r"1\.0"),
        (lambda: size_bound(3, 0.95, 0.1, 0.1), "0.95"),
        (lambda: size_bound(3, 0.5, 0.1, 0.3), "0.3"),
        (lambda: rounds(0.1, 1.0), "gamma"),
        (lambda: PrintedAmplification(3, 0.5, 0.1, 0.1, c=-2.0), "-2"),
        (lambda: astar(4.5, 3, TrainTestSplit(1, 1, 1)), "4.5"),
        (lambda: TrainTestSplit(0, 1, 1), "rounds"),
        (lambda: TrainTestSplit(1, 1, 0), "tests"),
        (lambda: NoisyErrorCounts(-1.0), "-1"),
        (lambda: NoisyErrorCounts(1.0, 0), "fineness"),
        (lambda: ExponentialSelection(0.0), "epsilon"),
        (lambda: SparseBits(3, 1.5), "1.5"),
        (lambda: ParityOnFreshBlocks(5.0, 3, UniformBits(2)), "5.0"),
        (lambda: ParityOnFreshBlocks(1.0, 0, UniformBits(2)), "0"),
        (lambda: ParityOnFreshBlocks(1.0, 3, UniformBits(63)), "63"),
        (lambda: AmplifiedWithoutRuns(2), "2"),
        (lambda: code_of([0, 2], 2), "2"),
        (
            lambda: all_released(replace(astar(1.0, 1, TrainTestSplit(1, 1, 1)), selection=ExponentialSelection(1.0))),
            "Exp",
        ),
        (lambda: astar(1.0, 1, TrainTestSplit(2, 2, 2))(rows((1, 0)), 1, np.random.default_rng(0)), "at least 6 rows"),
    ],
)
def test_bad_parameters_are_refused_with_their_value(build: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        build()


# ------------------------------------------------------------------------------ distributions of releases

SMALL = rows((1, 0, 0), (1, 1, 1), (0, 1, 1), (1, 0, 1), (0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 0, 0))


def label(r: int, row: NDArray[np.uint8]) -> int:
    """Inner product of a parity's bits and those of a row."""
    return sum((r >> j & 1) * int(row[j]) for j in range(len(row) - 1)) % 2


def parity_law(epsilon: float, d: int, block: Rows) -> dict[int, float]:
    """Distribution of A by listing subsets and parities: the definition."""
    found, p = dict.fromkeys(range(-1, 2**d), 0.0), epsilon / 4
    for taken in itertools.product((0, 1), repeat=len(block)):
        weight = math.prod(p if t else 1 - p for t in taken)
        subset = [row for row, t in zip(block, taken, strict=True) if t]
        agree = [r for r in range(2**d) if all(label(r, row) == row[d] for row in subset)]
        for r in agree:
            found[r] += 0.5 * weight / len(agree)
        if not agree:
            found[-1] += 0.5 * weight
    found[-1] += 0.5
    return found


def brute_output(boosted: BoostedLearner, data: Rows) -> dict[int, float]:
    """Distribution of A* from its definition: all hypotheses of all runs, and the choice among fixed ones."""
    split, learner = boosted.split, boosted.learner
    d = data.shape[1] - 1
    laws = [parity_law(learner.epsilon, d, split.block(data, j)) for j in range(split.rounds)]
    found = dict.fromkeys(range(-1, 2**d), 0.0)
    for some in itertools.product(range(-1, 2**d), repeat=split.rounds):
        fixed = ChosenHypothesis(some, boosted.count, boosted.selection, learner.epsilon)
        p = math.prod(law[code] for law, code in zip(laws, some, strict=True))
        for code, share in zip(some, fixed.law(split.test_part(data)).probabilities, strict=True):
            found[code] += p * share
    return found


@pytest.mark.parametrize("selection", [NoisyErrorCounts(0.4), NoiselessErrorCounts(0.4), ExponentialSelection(0.9)])
def test_the_output_law_by_enumeration(selection: Any) -> None:
    boosted = replace(astar(0.9, 2, TrainTestSplit(3, 2, 2)), selection=selection)
    law = boosted.law(SMALL)
    expected = brute_output(boosted, SMALL)
    assert dict(zip(law.outcomes, law.probabilities, strict=True)) == pytest.approx(expected, rel=1e-11)


def test_outputs_follow_their_laws() -> None:
    split, rng = TrainTestSplit(3, 2, 2), np.random.default_rng(5)
    reference = astar(1.0, 2, split)
    candidates = ReleasedCandidates(reference.learner, reference.count, split, reference.selection)
    one = ReleaseAsOneNumber(all_released(astar(1.0, 1, TrainTestSplit(2, 1, 2))), 9)
    shared: list[Any] = [MUTANTS[name].build(one.release) for name in ("shared_laplace_draw", "no_noise")]
    shown: list[tuple[Any, Rows]] = [
        (reference, SMALL),
        (replace(reference, selection=ExponentialSelection(1.0)), SMALL),
        (ReleaseAsOneNumber(candidates, 5), SMALL),
        (one, SMALL[:4, [0, 2]]),
        *((replace(one, release=broken), SMALL[:4, [0, 2]]) for broken in shared),
    ]
    shown += [
        (MUTANTS[name].build(reference), SMALL)
        for name in ("silent_bot_drop", "early_stop_at_first_hypothesis", "noise_1_over_s_eps", "no_noise")
    ]
    found = [p_value_of_outputs(mechanism(data, 40_000, rng), mechanism.law(data)) for mechanism, data in shown]
    assert min(found) > ALARM / len(found)


def test_errors_are_counted_by_definition() -> None:
    data = np.random.default_rng(6).integers(0, 2, (30, 5), dtype=np.uint8)
    codes = np.arange(16).reshape(4, 4)
    counts = ParityErrors(4)(codes, data)
    for code, count in zip(codes.ravel(), counts.ravel(), strict=True):
        r = [code >> j & 1 for j in range(4)]
        assert count == sum(int(row[:4] @ r) % 2 != row[4] for row in data)
    # The target's labels make the target right, whatever the rows say.
    assert TargetLabels(4, 11)(np.array([11]), data)[0] == 0
    assert ParityErrors(4)(np.array([11]), data)[0] > 0


# ------------------------------------------------------------------------------- exact levels


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_joint_release_costs_epsilon_and_a_block_half_of_it(k: int) -> None:
    for epsilon in (0.5, 1.0, 2.0):
        split = TrainTestSplit(k, 2, 2)
        data = np.tile(rows((1, 0)), (split.needed, 1))
        joint = all_released(astar(epsilon, 1, split))
        assert level_of(joint, data, flipped(data, split.needed - 1)) == pytest.approx(epsilon, rel=1e-9)
        alone = all_released(astar(epsilon, 1, TrainTestSplit(k, 1, 2)))
        data = np.tile(rows((1, 0)), (k + 2, 1))
        assert level_of(alone, data, flipped(data, 0)) == pytest.approx(2 * math.atanh(epsilon / 4), rel=1e-9)


def test_no_pair_of_small_databases_costs_more_than_epsilon() -> None:
    """All neighbours of three rows of one bit: joint release and final output, with both selections."""
    every = [rows(*some) for some in itertools.product(itertools.product((0, 1), repeat=2), repeat=3)]
    epsilon, split = 1.5, TrainTestSplit(2, 1, 1)
    final = astar(epsilon, 1, split)
    shown: list[Any] = [all_released(final), final, replace(final, selection=ExponentialSelection(epsilon))]
    worst = dict.fromkeys(range(3), 0.0)
    laws = [[mechanism.law(data) for data in every] for mechanism in shown]
    for a, b in itertools.combinations(range(len(every)), 2):
        if (every[a] != every[b]).any(axis=1).sum() == 1:
            for i, known in enumerate(laws):
                worst[i] = max(worst[i], curve(known[a], known[b]).epsilon(0.0))
    assert worst[0] == pytest.approx(epsilon, rel=1e-9)
    for i in (1, 2):
        assert 0.3 < worst[i] <= epsilon


def test_levels_of_the_mutants() -> None:
    epsilon = 0.5
    exact = 2 * math.atanh(epsilon / 4)
    twelve = TrainTestSplit(12, 1, 1)
    data = np.tile(rows((1, 0)), (twelve.needed, 1))
    reference = astar(epsilon, 1, twelve)
    hypotheses = ReleasedCandidates(
        reference.learner, reference.count, SameTrainingBlock(12, 1, 1), reference.selection
    )
    assert level_of(hypotheses, data, flipped(data, 0)) == pytest.approx(12 * exact, rel=1e-9)
    assert 12 * exact == pytest.approx(3.02, abs=5e-3)
    # Deleting the first of alternating records shifts every block of the reference.
    alternating = rows(*((1, i % 2) for i in range(14)))
    shifted = replace(hypotheses, split=twelve)
    assert level_of(shifted, alternating, alternating[1:]) == pytest.approx(12 * exact, rel=1e-9)
    two = TrainTestSplit(2, 1, 1)
    data = np.tile(rows((1, 0)), (3, 1))
    overlap = MUTANTS["train_test_overlap"].build(all_released(astar(epsilon, 1, two)))
    assert level_of(overlap, data, flipped(data, 1)) == pytest.approx(epsilon + exact, rel=1e-9)
    tests = np.tile(rows((1, 0)), (8, 1))
    # Four runs; sixteen rows, of which eight are test rows.
    levels = {"noise_1_over_s_eps": 4.0, "noise_k_over_n_eps": 2.0, "noise_2_over_s_eps_logged": 2.0}
    for name, times in levels.items():
        mutant: Any = MUTANTS[name]
        joint = mutant.build(all_released(astar(epsilon, 1, TrainTestSplit(4, 2, 8))))
        fixed = FixedErrors((0,) * 4, joint.count, joint.selection, epsilon)
        assert level_of(fixed, tests, flipped(tests, 0)) == pytest.approx(times * epsilon, rel=1e-9)
        assert mutant.true_level(joint) == pytest.approx(times * epsilon, rel=1e-9)


@pytest.mark.parametrize("name", ["shared_laplace_draw", "no_noise"])
def test_a_choice_without_noise_in_closed_form(name: str) -> None:
    """Rows (1, 0) in eleven blocks; a test label decides. f0 and f1: probabilities of the two hypotheses in a block.

    With label 1 hypothesis 1 wins if it occurs; with label 0 it wins if it occurs and hypothesis 0 does not.
    """
    k, p = 11, 0.5 / 4
    f0, f1 = (1 + p) / 4, (1 - p) / 4
    closed = math.log((1 - (1 - f1) ** k) / ((1 - f0) ** k - 0.5**k))
    assert closed == pytest.approx(3.5828, abs=5e-5)
    data = np.tile(rows((1, 0)), (k + 2, 1))
    data[-1] = 0
    mutant = MUTANTS[name].build(astar(0.5, 1, TrainTestSplit(k, 1, 2)))
    assert level_of(mutant, data, flipped(data, k)) == pytest.approx(closed, rel=1e-9)
    # With many rows a block hypothesis 1 is rare, and (k-1) ln 2 is approached.
    many = TrainTestSplit(k, 60, 2)
    data = np.tile(rows((1, 0)), (many.needed, 1))
    data[-1] = 0
    mutant = MUTANTS[name].build(astar(0.5, 1, many))
    assert level_of(mutant, data, flipped(data, many.needed - 2)) == pytest.approx((k - 1) * math.log(2), rel=5e-3)


@pytest.mark.parametrize("name", ["silent_bot_drop", "early_stop_at_first_hypothesis", "noise_2_over_s_eps"])
def test_benign_mutants_keep_epsilon(name: str) -> None:
    every = [rows(*some) for some in itertools.product(itertools.product((0, 1), repeat=2), repeat=3)]
    mutant = MUTANTS[name].build(astar(1.0, 1, TrainTestSplit(2, 1, 1)))
    laws = [mutant.law(data) for data in every]  # type: ignore[attr-defined]
    for a, b in itertools.combinations(range(len(every)), 2):
        if (every[a] != every[b]).any(axis=1).sum() == 1:
            assert curve(laws[a], laws[b]).epsilon(0.0) <= 1.0 + 1e-12


# -------------------------------------------------------------------------------- fresh samples


@pytest.mark.parametrize("d", [1, 3, 7, 20])
@pytest.mark.parametrize("k", [1, 5, 40, 90])
def test_systems_are_solved(d: int, k: int) -> None:
    rng = np.random.default_rng(7)
    x = random_words(d, (k, 50), rng) * (rng.random((1, k, 50)) < 0.5)
    r = random_words(d, (50,), rng)
    labels = inner(x, r[:, None])
    labels[-1, 25:] ^= True  # half of the systems contradict their solution
    solution, consistent = solve(x, labels, d, rng)
    agree = (inner(x, solution[:, None]) == labels).all(axis=0)
    assert agree[consistent].all()
    assert consistent[:25].all()
    for i in np.flatnonzero(~consistent):  # by rank: the label is no combination of the rows
        matrix = (x[0, :, i][:, None] >> np.arange(d, dtype=np.uint64) & np.uint64(1)).astype(np.uint8)
        assert rank_of(np.column_stack([matrix, labels[:, i]])) == rank_of(matrix) + 1


def rank_of(matrix: NDArray[np.uint8]) -> int:
    """Schoolbook elimination."""
    left, found = [int("".join(map(str, row)), 2) for row in matrix], 0
    while left:
        pivot = left.pop()
        if pivot:
            found += 1
            low = pivot & -pivot
            left = [row ^ pivot if row & low else row for row in left]
    return found


def test_a_fresh_run_succeeds_as_often_as_computed() -> None:
    for d, epsilon, n in ((4, 2.0, 12), (6, 0.5, 40), (3, 3.9, 200)):
        found = ParityOnFreshBlocks(epsilon, n, UniformBits(d))(np.ones(d, np.uint8), 20_000, np.random.default_rng(8))
        hits = int((found == 2**d - 1).sum())
        assert stats.binomtest(hits, 20_000, uniform_success(epsilon, n, d)).pvalue > ALARM / 3
    assert uniform_success(2.0, block_rows(4, 2.0, 0.4), 4) == pytest.approx(0.5, abs=1e-2)


@pytest.mark.parametrize("distribution", [UniformBits(3), SparseBits(3, 0.6)])
def test_fresh_runs_are_those_of_whole_fresh_databases(distribution: Any) -> None:
    """The shortcut against A* on databases that are drawn row by row: a two-sample chi-square."""
    split, target, rng = TrainTestSplit(3, 9, 5), np.array([1, 0, 1], np.uint8), np.random.default_rng(9)
    boosted = astar(1.6, 3, split)
    quick = FreshAmplified(1.6, split, boosted.selection, distribution)(target, 20_000, rng)
    honest = BoostedOnFreshSamples(boosted, ParityRows(distribution))(target, 1_000, rng)
    # No hypothesis, the target (code 5), a parity that lacks a bit of it or has one more, any other.
    cells = np.array([0, 3, 2, 3, 3, 2, 1, 3, 2])
    counts = np.stack([np.bincount(cells[codes + 1], minlength=4) for codes in (quick, honest)])
    assert counts[1].min() >= 50
    assert stats.chi2_contingency(counts).pvalue > ALARM


def test_distributions_have_the_errors_that_they_say() -> None:
    rng = np.random.default_rng(10)
    for distribution in (UniformBits(5), SparseBits(5, 0.4)):
        x = distribution.draw((40_000,), rng)
        for wrong in (1, 12, 31):
            errors = int((np.bitwise_count(x & wrong) & 1).sum())
            assert stats.binomtest(errors, 40_000, float(distribution.error(np.array(wrong)))).pvalue > ALARM / 6
        assert distribution.error(np.array(0)) == 0
    error = TrueErrorOfHypothesis(SparseBits(5, 0.4), 3)
    assert error(np.array([3, NULL, 0])) == pytest.approx([0.0, 1.0, 0.16])


def test_with_too_few_samples_nothing_is_learned() -> None:
    split = TrainTestSplit(2, 30, 5)
    short = FreshAmplified(2.0, split, NoisyErrorCounts(1.0), UniformBits(2), samples=split.needed - 1)
    target, rng = np.array([1, 1], np.uint8), np.random.default_rng(11)
    assert (short(target, 50, rng) == NULL).all()
    assert (replace(short, samples=split.needed)(target, 50, rng) == 3).any()
    assert (AmplifiedWithoutRuns(-10)(target, 50, rng) == NULL).all()


def test_rows_for_tests_have_the_constants_of_the_derivation() -> None:
    assert rows_for_tests(12, 0.5, 0.02, 0.1 / 3) == 7064
    assert rows_for_tests(12, 0.5, 0.02, 0.1 / 3, choice_only=True) == math.ceil(500 * math.log(360))
