"""Statistical-query oracles: what they may answer, and what is learned from any of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mechanisms.statistical_queries.query_algorithms import (
    AllBitsSet,
    ColumnBit,
    ConjunctionAlgorithm,
    ThresholdAlgorithm,
)
from mechanisms.statistical_queries.sq_oracles import (
    MUTANTS,
    AwayFromThresholdOracle,
    ExactOracle,
    HighestAnswersOracle,
    LearnerFromOracle,
    LowestAnswersOracle,
    OracleAnswers,
    RandomErrorOracle,
    RoundingOracle,
    SampleMeanOracle,
    StatisticalQueryOracle,
    TargetBlindOracle,
    TowardThresholdOracle,
    sample_size,
    valid_oracles,
)
from mechanisms.statistical_queries.statistical_queries import expectations

FloatArray = NDArray[np.float64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

ORACLES: dict[str, StatisticalQueryOracle] = {
    **valid_oracles(0.25),
    "lazy": TargetBlindOracle(0.2),
    "lazy or equal": TargetBlindOracle(0.2, strict=False),
}

# --------------------------------------------------------------------------------- what they answer


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("shape", [(), (7,), (40, 7)])
def test_answers_are_within_the_tolerance(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    truth = rng.uniform(-1, 1, shape)
    for tolerance in (0.125, rng.uniform(0.01, 0.3, shape)):
        answers = ORACLES[name](truth, tolerance, rng)
        assert answers.shape == shape
        assert answers.dtype == np.float64
        assert np.all(np.abs(answers - truth) <= tolerance + 4e-16)  # the rounding of one addition, and of the check


def test_answers_of_each_kind() -> None:
    rng, truth = np.random.default_rng(2), np.array([0.0, 0.25, 0.5, -0.5])
    assert ExactOracle()(truth, 0.125, rng).tolist() == truth.tolist()
    assert HighestAnswersOracle()(truth, 0.125, rng).tolist() == [0.125, 0.375, 0.625, -0.375]
    assert LowestAnswersOracle()(truth, 0.125, rng).tolist() == [-0.125, 0.125, 0.375, -0.625]
    assert TowardThresholdOracle(0.25)(truth, 0.125, rng).tolist() == [0.125, 0.375, 0.375, -0.375]
    assert AwayFromThresholdOracle(0.25)(truth, 0.125, rng).tolist() == [-0.125, 0.125, 0.625, -0.625]
    assert RoundingOracle()(truth, 0.375, rng).tolist() == [0.0, 0.0, 0.75, -0.75]
    assert RoundingOracle(0.5)(truth, 0.25, rng).tolist() == [0.0, 0.5, 0.5, -0.5]
    assert TargetBlindOracle(0.375)(truth, 0.125, rng).tolist() == truth.tolist()
    assert TargetBlindOracle(0.375, strict=False)(truth, 0.125, rng).tolist() == [0.0, 0.375, 0.375, -0.5]
    assert TargetBlindOracle(np.array([0.0, 0.0, 0.5, 0.5]))(truth, 0.3, rng).tolist() == [0.0, 0.0, 0.5, -0.5]


def test_the_truth_is_not_changed() -> None:
    rng, truth = np.random.default_rng(3), np.zeros(3)
    for oracle in ORACLES.values():
        oracle(truth, 0.1, rng)[...] = 7.0
    assert truth.tolist() == [0.0, 0.0, 0.0]


def test_random_answers_are_uniform() -> None:
    answers = RandomErrorOracle()(np.full(20_000, 0.3), 0.2, np.random.default_rng(4))
    assert stats.kstest(answers, stats.uniform(0.1, 0.4).cdf).pvalue > ALARM


def test_sampled_answers_are_binomial() -> None:
    n, size = 20_000, 12
    answers = SampleMeanOracle(size, -1.0, 3.0)(np.full(n, 0.2), 0.0, np.random.default_rng(5))
    counts = np.bincount(np.rint((answers + 1.0) / 4.0 * size).astype(int), minlength=size + 1)
    expected = n * stats.binom.pmf(np.arange(size + 1), size, 0.3)
    likely = expected > 5
    observed = np.append(counts[likely], counts[~likely].sum())
    assert stats.chisquare(observed, np.append(expected[likely], expected[~likely].sum())).pvalue > ALARM


@pytest.mark.parametrize(("bound", "tau", "beta"), [(0.5, 0.1, 0.05), (0.5, 0.03, 1e-3), (1.0, 0.2, 0.3)])
def test_samples_of_the_stated_size_are_enough(bound: float, tau: float, beta: float) -> None:
    size = sample_size(bound, tau, beta)
    assert size == math.ceil(2 * bound**2 * math.log(2 / beta) / tau**2)
    for part in (0.5, 0.3, 0.05):
        rows = np.arange(size + 1)
        off = np.abs(2 * bound * (rows / size - part)) > tau
        assert stats.binom.pmf(rows, size, part)[off].sum() <= beta


def test_answers_are_those_of_the_oracle_run_by_run() -> None:
    truth = np.array([0.1, 0.7])
    assert OracleAnswers(HighestAnswersOracle(), 0.2)(truth, 3, np.random.default_rng(6)) == pytest.approx(
        np.tile([0.3, 0.9], (3, 1))
    )
    assert OracleAnswers(LowestAnswersOracle(), 0.2)(0.5, 4, np.random.default_rng(6)) == pytest.approx(np.full(4, 0.3))


# ------------------------------------------------------------------------------- what is learned


def sample(rows: int, seed: int) -> FloatArray:
    """Four unbalanced bits a row, and a value."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.random((rows, 4)) < [0.9, 0.8, 0.5, 0.95], rng.integers(0, 16, rows)]).astype(float)


LITERALS = tuple(ColumnBit(i, 1) for i in range(4)) + tuple(ColumnBit(i, high=0) for i in range(4))
TARGETS = {
    "x0 and x1": AllBitsSet((LITERALS[0], LITERALS[1])),
    "not x2": AllBitsSet((LITERALS[6],)),
    "all": AllBitsSet(()),
}


def error(algorithm: ConjunctionAlgorithm, kept: FloatArray, data: FloatArray) -> float:
    return float(np.mean(algorithm.learned(kept)(data) != algorithm.label(data)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
def test_no_valid_oracle_is_worse_than_the_lowest_answers(target: str, alpha: float) -> None:
    """All that valid answers can bring about: each bit whose expectation is within tau of tau may be kept or not."""
    data = sample(400, 7)
    algorithm = ConjunctionAlgorithm(LITERALS, TARGETS[target], error=alpha)
    means, tau = expectations(algorithm, data), algorithm.tolerance
    assert algorithm.queries == 8
    assert tau == pytest.approx(alpha / 16)
    # Both are possible where some answer in [mean - tau, mean + tau] is at most tau and some is above it.
    choices = [[1.0] if mean <= 0 else [0.0] if mean - tau > tau else [0.0, 1.0] for mean in means]
    errors = [error(algorithm, np.array(kept), data) for kept in itertools.product(*choices)]
    assert max(errors) <= alpha
    rng = np.random.default_rng(8)
    lowest = LearnerFromOracle(algorithm, LowestAnswersOracle())(means, 1, rng)[0]
    assert error(algorithm, lowest, data) == max(errors)
    for oracle in {**valid_oracles(tau), "lazy": TargetBlindOracle(0.0)}.values():
        for kept in np.unique(LearnerFromOracle(algorithm, oracle)(means, 50, rng), axis=0):
            assert error(algorithm, kept, data) in errors


@pytest.mark.parametrize("target", TARGETS)
def test_the_mutant_is_right_with_exact_answers_only(target: str) -> None:
    data = sample(400, 9)
    algorithm = ConjunctionAlgorithm(LITERALS, TARGETS[target], error=0.2)
    means, rng = expectations(algorithm, data), np.random.default_rng(10)
    wrong = MUTANTS["learner_needs_the_exact_oracle"]
    exact = wrong.build(LearnerFromOracle(algorithm, ExactOracle()))(means, 1, rng)[0]
    assert error(algorithm, exact, data) == 0
    if target != "all":  # nothing to keep
        high = wrong.build(LearnerFromOracle(algorithm, HighestAnswersOracle()))(means, 1, rng)[0]
        assert error(algorithm, high, data) > algorithm.error


def test_adaptive_queries_are_asked_as_in_a_plain_loop() -> None:
    data = sample(300, 11)
    search = ThresholdAlgorithm(4, ColumnBit(4, 6.0), rounds=4, low=0.0, width=1.0, tolerance=0.05)
    means = expectations(search, data)
    for oracle in (
        HighestAnswersOracle(),
        LowestAnswersOracle(),
        TowardThresholdOracle(0.05),
        AwayFromThresholdOracle(0.05),
    ):
        answers: list[float] = []
        for _ in range(4):
            asked = int(search.ask(np.array([answers]))[0])
            answers.append(float(oracle(np.array(means[asked]), 0.05, np.random.default_rng(0))))
        learner = LearnerFromOracle(search, oracle)
        assert learner.answers(means, 2, np.random.default_rng(0)).tolist() == [answers, answers]
        learned = learner(means, 1, np.random.default_rng(0))[0]
        assert np.mean((data[:, 4] >= learned) != (data[:, 4] >= 6.0)) <= 0.1


# --------------------------------------------------------------------------------------- errors


def test_errors_show_the_value() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"expected a tolerance of at least half the step 0\.5, got 0\.2"):
        RoundingOracle(0.5)(np.zeros(2), 0.2, rng)
    with pytest.raises(ValueError, match=r"expected a finite step > 0, got -1"):
        RoundingOracle(-1.0)
    with pytest.raises(ValueError, match=r"expected a sample size >= 1, got 0"):
        SampleMeanOracle(0)
    with pytest.raises(ValueError, match=r"expected finite values, low < high, got \(1\.0, 1\.0\)"):
        SampleMeanOracle(3, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"expected expectations in \[0\.0, 1\.0\], got .*1\.5"):
        SampleMeanOracle(3)(np.array([1.5]), 0.1, rng)
    with pytest.raises(ValueError, match=r"expected a finite tolerance > 0, got 0"):
        OracleAnswers(ExactOracle(), 0.0)
    with pytest.raises(ValueError, match=r"expected beta in \(0, 1\), got 1\.0"):
        sample_size(1.0, 0.1, 1.0)
    algorithm = ConjunctionAlgorithm(LITERALS, TARGETS["all"], error=0.2)
    with pytest.raises(ValueError, match=r"expected 8 expectations, got \(3,\)"):
        LearnerFromOracle(algorithm, ExactOracle())(np.zeros(3), 1, rng)
