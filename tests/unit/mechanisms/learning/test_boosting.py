"""Blocks, candidates and private selection, around any learner."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.accuracy.errors import ErrorSampler, Setting
from auditor.audits.accuracy.measures import Effort
from auditor.privacy.exact import FiniteLaw, ProductLaw, TwoSidedGeometricLaw, curve
from experiments.document_002_what_can_we_learn.boosting import (
    MinusLog,
    MislabelledDomainPart,
    ThresholdRecords,
    no_good_candidate,
)
from mechanisms.learning.agnostic_learner import AgnosticLearner
from mechanisms.learning.amplified_fresh import FreshCandidates, uniform_success
from mechanisms.learning.amplified_parity import ParityErrors, all_released, astar, block_rows
from mechanisms.learning.amplified_selection import (
    ErrorCountsWithSharedNoise,
    NoiselessErrorCounts,
    NoisyErrorCounts,
    clamped,
)
from mechanisms.learning.boosting import (
    MUTANTS,
    NULL,
    BoostedLearner,
    ReleasedCandidates,
    ReusedTraining,
    SameTrainingBlock,
    TrainTestSplit,
)
from mechanisms.learning.boosting_parts import (
    FixedErrors,
    LargestEstimate,
    ListedErrors,
    ReleaseAsOneNumber,
    ShuffledLearner,
    VoteMargin,
    errors_of,
    mixture,
)
from mechanisms.learning.hypotheses import ThresholdFunctions
from tests.statistics import level_of, p_value_of_outputs

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def rows(*given: tuple[int, ...]) -> NDArray[np.uint8]:
    return np.array(given, dtype=np.uint8)


# ------------------------------------------------------------------------------------- the split


@pytest.mark.parametrize("split", [TrainTestSplit(3, 4, 5), TrainTestSplit(1, 1, 1), TrainTestSplit(5, 2, 9)])
def test_each_row_is_in_one_part(split: TrainTestSplit) -> None:
    data = np.arange(split.needed + 3)
    parts = [split.block(data, j) for j in range(split.rounds)] + [split.test_part(data)]
    assert [len(part) for part in parts] == [split.rows] * split.rounds + [split.tests]
    # In order, nothing twice, and what is beyond is not read.
    assert np.concatenate(parts).tolist() == list(range(split.needed))


def test_the_splits_of_the_mutants() -> None:
    data = np.arange(11)
    assert SameTrainingBlock(3, 3, 2).block(data, 2).tolist() == [0, 1, 2]
    assert ReusedTraining(3, 3, 2).test_part(data).tolist() == [7, 8]
    assert ReusedTraining(1, 1, 2).test_part(data).tolist() == [0]


def test_what_is_published_depends_on_the_block_of_a_row_only() -> None:
    split = TrainTestSplit(3, 2, 2)
    data = rows((1, 0), (1, 1), (1, 0), (0, 0), (1, 1), (1, 1), (1, 0), (0, 1))
    joint = all_released(astar(1.0, 1, split))
    first = joint.law(data)
    assert isinstance(first, ProductLaw)
    for index, changed in ((1, [0]), (2, [1]), (5, [2]), (6, [0, 1, 2])):
        other = data.copy()
        other[index, 1] ^= 1
        second = joint.law(other)
        assert isinstance(second, ProductLaw)
        assert [j for j in range(3) if first.parts[j] != second.parts[j]] == changed


# --------------------------------------------------------------------------------------- distributions


def thresholds(split: TrainTestSplit, epsilon: float = 1.0, points: int = 3) -> BoostedLearner:
    classes = ThresholdFunctions(points)
    return BoostedLearner(
        AgnosticLearner(classes, epsilon), ListedErrors(classes), split, NoisyErrorCounts(epsilon / split.rounds)
    )


def test_any_learner_can_be_boosted() -> None:
    split = TrainTestSplit(2, 2, 3)
    data = np.array([[0, 1], [2, 1], [1, 0], [1, 1], [2, 0], [0, 0], [1, 1]])
    boosted = thresholds(split)
    law = boosted.law(data)
    # From the definition: hypotheses of both runs, and all noise within 60 steps, which leaves out e^-30.
    tests = data[4:]
    errors = [sum((x >= h) != y for x, y in tests) for h in range(4)]
    z = np.arange(-60, 61)
    mass = math.exp(0.5) ** -np.abs(z).astype(float)
    mass /= mass.sum()
    runs = []
    for block in (data[:2], data[2:4]):
        weights = [math.exp(-0.5 * sum((x >= h) != y for x, y in block)) for h in range(4)]
        runs.append(np.array(weights) / sum(weights))
    found = np.zeros(4)
    for g, h in itertools.product(range(4), repeat=2):
        first = float(mass @ [mass[errors[g] + t <= errors[h] + z].sum() for t in z])
        found[g] += runs[0][g] * runs[1][h] * first
        found[h] += runs[0][g] * runs[1][h] * (1 - first)
    assert law.outcomes == (0, 1, 2, 3)
    assert law.probabilities == pytest.approx(found, rel=1e-9)
    assert p_value_of_outputs(boosted(data, 40_000, np.random.default_rng(1)), law) > ALARM


def test_all_neighbours_of_a_boosted_threshold_learner_keep_epsilon() -> None:
    split, points = TrainTestSplit(2, 1, 1), 2
    boosted = thresholds(split, 1.3, points)
    every = [
        np.array(some) for some in itertools.product(itertools.product(range(points), (0, 1)), repeat=split.needed)
    ]
    laws = [boosted.law(data) for data in every]
    for a, b in itertools.combinations(range(len(every)), 2):
        if (every[a] != every[b]).any(axis=1).sum() == 1:
            assert curve(laws[a], laws[b]).epsilon(0.0) <= 1.3 + 1e-12


def test_listed_errors_by_definition() -> None:
    classes = ThresholdFunctions(5)
    data = np.random.default_rng(2).integers(0, [[5, 2]], (20, 2))
    codes = np.arange(6)
    expected = [int(((data[:, 0] >= h) != data[:, 1]).sum()) for h in codes]
    assert ListedErrors(classes)(codes, data).tolist() == expected
    assert errors_of((0, NULL, 3), ListedErrors(classes), data).tolist() == [expected[0], 20, expected[3]]


@pytest.mark.parametrize("loc", [0, 2, 5])
def test_clamped_noise_by_summing_tails(loc: int) -> None:
    law = TwoSidedGeometricLaw(loc, 1.7)
    k = np.arange(-200, 206)
    mass = law.a ** -np.abs(k - loc).astype(float) * (law.a - 1) / (law.a + 1)
    expected = np.bincount(np.clip(k, 0, 5), mass)
    assert clamped(law, 0, 5) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="centre"):
        clamped(law, 6, 9)


def test_views_of_a_release_follow_their_laws() -> None:
    split, rng = TrainTestSplit(3, 1, 1), np.random.default_rng(3)
    data = rows((1, 0), (1, 1), (1, 0), (0, 1))
    reference = astar(1.2, 1, split)
    hypotheses = ReleasedCandidates(reference.learner, reference.count, split, reference.selection)
    tests = rows((1, 0), (1, 1), (0, 1), (1, 0))
    largest = LargestEstimate(FixedErrors((0, 1, NULL), ParityErrors(1), NoisyErrorCounts(0.5, 2), 1.0))
    narrow = ReleaseAsOneNumber(hypotheses, 3)
    shown: list[tuple[Any, NDArray[np.uint8]]] = [(VoteMargin(hypotheses), data), (narrow, data), (largest, tests)]
    found = [p_value_of_outputs(view(rows_, 40_000, rng), view.law(rows_)) for view, rows_ in shown]
    shared = FixedErrors((0, 1), ParityErrors(1), ErrorCountsWithSharedNoise(0.5), 1.0)
    law = shared.law(tests)
    assert isinstance(law, FiniteLaw)
    found.append(p_value_of_outputs(shared(tests, 40_000, rng), law))
    assert min(found) > ALARM / len(found)


def test_a_margin_and_a_largest_estimate_tell_as_much_as_everything() -> None:
    split = SameTrainingBlock(3, 1, 1)
    reference = astar(1.0, 1, TrainTestSplit(3, 1, 1))
    hypotheses = ReleasedCandidates(reference.learner, reference.count, split, reference.selection)
    x = np.tile(rows((1, 0)), (4, 1))
    y = x.copy()
    y[0, 1] = 1
    assert level_of(VoteMargin(hypotheses), x, y) == pytest.approx(level_of(hypotheses, x, y), rel=1e-12)
    assert level_of(ReleaseAsOneNumber(hypotheses, 3), x, y) == pytest.approx(level_of(hypotheses, x, y), rel=1e-12)
    fixed = FixedErrors((0,) * 5, ParityErrors(1), NoisyErrorCounts(0.3), 1.5)
    assert level_of(LargestEstimate(fixed), x, y) == pytest.approx(level_of(fixed, x, y), rel=1e-12)
    assert level_of(fixed, x, y) == pytest.approx(1.5, rel=1e-9)


def test_one_number_refuses_what_does_not_fit() -> None:
    reference = astar(1.0, 2, TrainTestSplit(2, 1, 1))
    hypotheses = ReleasedCandidates(reference.learner, reference.count, reference.split, reference.selection)
    data = rows((1, 0, 0), (1, 1, 0), (1, 0, 0))
    with pytest.raises(ValueError, match="below 3"):
        ReleaseAsOneNumber(hypotheses, 3)(data, 1_000, np.random.default_rng(0))
    wide = ReleasedCandidates(reference.learner, reference.count, TrainTestSplit(9, 1, 1), reference.selection)
    with pytest.raises(ValueError, match="at most 1000000 outcomes"):
        ReleaseAsOneNumber(wide, 5).law(np.tile(data[:1], (10, 1)))


# -------------------------------------------------------------------------------------- symmetry


def test_a_permutation_makes_it_symmetric_and_keeps_its_level() -> None:
    boosted = astar(1.0, 1, TrainTestSplit(2, 1, 1))
    shuffled = ShuffledLearner(boosted)
    data = rows((1, 0), (1, 1), (0, 1))
    laws = [boosted.law(data[list(order)]) for order in itertools.permutations(range(3))]
    assert max(np.abs(law.probabilities - laws[0].probabilities).max() for law in laws) > 0.04
    mean = np.mean([law.probabilities for law in laws], axis=0)
    for order in itertools.permutations(range(3)):
        assert shuffled.law(data[list(order)]).probabilities == pytest.approx(mean, rel=1e-12)
    assert p_value_of_outputs(shuffled(data, 4_000, np.random.default_rng(4)), shuffled.law(data)) > ALARM
    every = [rows(*some) for some in itertools.product(itertools.product((0, 1), repeat=2), repeat=3)]
    for a, b in itertools.combinations(every, 2):
        if (a != b).any(axis=1).sum() == 1:
            assert level_of(shuffled, a, b) <= 1.0 + 1e-12
    with pytest.raises(ValueError, match="at most 7 rows, got 8"):
        shuffled.law(np.zeros((8, 2), np.uint8))


def test_a_mixture_of_laws() -> None:
    law = mixture([FiniteLaw((0, 1), np.array([0.5, 0.5])), FiniteLaw((1, 2), np.array([0.25, 0.75]))], [0.2, 0.8])
    assert law.outcomes == (0, 1, 2)
    assert law.probabilities == pytest.approx([0.1, 0.3, 0.6])


# --------------------------------------------------------------------------------------- mutants


def test_trying_again_pays_again() -> None:
    epsilon, k = 2.0, 8
    mutant: Any = MUTANTS["retries_on_the_same_data"].build(astar(epsilon, 1, TrainTestSplit(k, 1, 1)))
    x = np.tile(rows((0, 1)), (k + 1, 1))
    y = x.copy()
    y[0, 1] = 0
    # No hypothesis in k runs: ((1 + p) / 2)^k against 2^-k.
    assert level_of(mutant, x, y) == pytest.approx(k * math.log(1.5), rel=1e-12)
    drawn = mutant(x, 40_000, np.random.default_rng(5))
    assert p_value_of_outputs(drawn, mutant.law(x)) > ALARM
    assert (drawn[drawn[:, 1] == NULL, 0] == k).all()


def test_a_selection_without_noise_has_a_finite_level() -> None:
    boosted = astar(0.5, 1, TrainTestSplit(11, 1, 2))
    mutant: Any = MUTANTS["nonprivate_selection"].build(boosted)
    assert isinstance(mutant.selection, NoiselessErrorCounts)
    x = np.tile(rows((1, 0)), (13, 1))
    x[-1] = 0
    y = x.copy()
    y[11, 1] = 1
    f0, f1 = 1.125 / 4, 0.875 / 4
    closed = math.log((1 - (1 - f1) ** 11) / ((1 - f0) ** 11 - 2.0**-11))
    assert level_of(mutant, x, y) == pytest.approx(closed, rel=1e-9)
    assert level_of(replace(boosted), x, y) <= 2 * 0.5 / 11


# -------------------------------------------------------------------------------------- accuracy


def test_the_probability_of_no_good_candidate() -> None:
    gamma = uniform_success(2.0, block_rows(4, 2.0, 0.4), 4)
    assert 0.25 < gamma <= 0.5
    setting = no_good_candidate(3)
    assert isinstance(setting.mechanism, FreshCandidates)
    errors = setting.error(setting.mechanism(setting.data, 20_000, np.random.default_rng(6)))
    failures = int((np.asarray(errors) > setting.at_most).sum())
    assert stats.binomtest(failures, 20_000, (1 - gamma) ** 3).pvalue > ALARM


def test_minus_log_of_a_failure_rate() -> None:
    def coins(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.asarray(rng.random(n) < data[0], dtype=np.float64)

    def measured(rate: float) -> Any:
        setting = Setting(coins, np.array([rate]), lambda outputs: outputs, 0.5)
        draw = ErrorSampler(0, "coins")
        return MinusLog()(setting, Effort(draw, 4_000, ALARM, np.random.default_rng(0), 0))

    for rate in (0.5, 0.05, 0.9):
        point = measured(rate)
        assert point.low <= -math.log(rate) <= point.high
        assert point.low < point.value < point.high
        assert point.replicates.std() == pytest.approx(math.sqrt((1 - rate) / rate / 4_000), rel=0.3)
    never, always = measured(0.0), measured(1.0)
    assert never.high == math.inf
    assert math.exp(-never.low) == pytest.approx(1 - (ALARM / 2) ** (1 / 4_000), rel=1e-6)
    assert always.low == 0.0


def test_errors_of_thresholds() -> None:
    classes = ThresholdFunctions(4)
    records = ThresholdRecords(classes)(np.array([2]), 200, np.random.default_rng(7))
    assert set(records[:, 0]) == {0, 1, 2, 3}
    assert ((records[:, 0] >= 2) == records[:, 1]).all()
    assert MislabelledDomainPart(classes, 2)(np.array([2, 1, 4, 0])) == pytest.approx([0.0, 0.25, 0.5, 0.5])
