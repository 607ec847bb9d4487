"""How often parity learners succeed on fresh samples: exact probabilities against enumerations, draws against both."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mechanisms.learning.parity import NULL, GaussianElimination, PrivateParityLearner, SubsetLearner
from mechanisms.learning.parity_samples import (
    InputDistribution,
    ParityError,
    ParityOnFreshSamples,
    SparseInputs,
    UniformInputs,
    elimination_size,
    least_size,
    lemma_size,
)

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def error_of(x: InputDistribution, wrong: int, d: int) -> float:
    """Error of a hypothesis that differs from the concept in these bits, from the distribution's definition."""
    if isinstance(x, SparseInputs):
        return x.mass * wrong.bit_count() / d
    return sum((v & wrong).bit_count() % 2 for v in range(2**d)) / 2.0**d


def weights(x: InputDistribution, d: int) -> dict[int, float]:
    if isinstance(x, SparseInputs):
        return {0: 1 - x.mass, **{1 << j: x.mass / d for j in range(d)}}
    return dict.fromkeys(range(2**d), 2.0**-d)


def by_enumeration(learner: SubsetLearner, x: InputDistribution, rows: int, alpha: float) -> float:
    """Probability of failure, over all samples and subsets; the concept is 0, which is no loss of generality."""
    d, success = learner.d, 0.0
    good = [error_of(x, h, d) <= alpha + 1e-12 for h in range(2**d)]
    taken = learner.p
    # A row that is not taken is as one of zeros.
    law = {v: taken * m for v, m in weights(x, d).items()}
    law[0] = law.get(0, 0.0) + 1 - taken
    for sample in itertools.product(law, repeat=rows):
        mass = math.prod(law[v] for v in sample)
        agree = [h for h in range(2**d) if not any((v & h).bit_count() % 2 for v in sample)]
        success += mass * sum(good[h] for h in agree) / len(agree)
    return 1 - (1 - learner.stop) * success


@pytest.mark.parametrize(
    "learner", [PrivateParityLearner(2.0, 3), GaussianElimination(1.0, 3), PrivateParityLearner(0.5, 1)]
)
@pytest.mark.parametrize(
    ("x", "alpha"),
    [(UniformInputs(), 0.1), (UniformInputs(), 0.5), (SparseInputs(0.6), 0.25), (SparseInputs(1.0), 0.4)],
)
def test_the_exact_probability_of_failure(learner: SubsetLearner, x: InputDistribution, alpha: float) -> None:
    for rows in (1, 2, 4):
        failure = ParityOnFreshSamples(learner, x, rows).failure(alpha)
        assert failure == pytest.approx(by_enumeration(learner, x, rows, alpha), rel=1e-12)


@pytest.mark.parametrize("x", [UniformInputs(), SparseInputs(0.4)])
@pytest.mark.parametrize(("d", "rows"), [(1, 6), (5, 40), (20, 160), (64, 520), (100, 900)])
def test_draws_fail_as_often(x: InputDistribution, d: int, rows: int) -> None:
    alpha, n = 0.1, 4_000
    concept = np.random.default_rng(d).integers(0, 2, d)
    fresh = ParityOnFreshSamples(PrivateParityLearner(0.5, d), x, rows)
    outputs = fresh(concept, n, np.random.default_rng(rows))
    assert outputs.shape == ((n,) if d <= 62 else (n, d))
    errors = ParityError(tuple(concept.tolist()), x)(outputs)
    failures = int((errors > alpha).sum())
    assert stats.binomtest(failures, n, min(fresh.failure(alpha), 1.0)).pvalue > ALARM
    null = int((errors == 1.0).sum())
    assert stats.binomtest(null, n, 0.5).pvalue > ALARM


def test_all_samples_of_elimination_are_consistent() -> None:
    concept = np.random.default_rng(1).integers(0, 2, 70)
    fresh = ParityOnFreshSamples(GaussianElimination(1.0, 70), UniformInputs(), 200)
    outputs = fresh(concept, 300, np.random.default_rng(2))
    assert (outputs == concept).all()  # 200 rows of rank 70, but for 2^-130


def test_errors_of_hypotheses() -> None:
    concept = (1, 0, 1)
    codes = np.array([5, 7, 2, NULL])
    assert ParityError(concept, SparseInputs(0.6))(codes).tolist() == pytest.approx([0.0, 0.2, 0.6, 1.0])
    assert ParityError(concept, UniformInputs())(codes).tolist() == [0.0, 0.5, 0.5, 1.0]
    rows = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0], [-1, -1, -1]], dtype=np.int8)
    assert ParityError(concept, SparseInputs(0.6))(rows).tolist() == pytest.approx([0.0, 0.2, 0.6, 1.0])


# ------------------------------------------------------------------------------- sample sizes


def test_the_printed_sizes() -> None:
    assert lemma_size(0.5, 0.1, 256) == math.ceil(160 * (256 * math.log(2) + math.log(4))) == 28_614
    assert elimination_size(0.1, 0.1, 32) == math.ceil(10 * (32 * math.log(2) + math.log(10)))


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_the_catalogues_least_sizes(epsilon: float) -> None:
    for d, constant in ((16, 0.56), (64, 0.66)):
        for alpha in (0.2, 0.05, 0.01):
            least = least_size(PrivateParityLearner(epsilon, d), SparseInputs(4 * alpha), alpha, 0.75)
            # The catalogue has 0.67 at d = 64, from draws.
            assert least * epsilon * alpha / d == pytest.approx(constant, abs=0.0051)
            # The lemma is loose by 8.5 to 11.
            assert 8.5 < lemma_size(epsilon, alpha, d) / least < 11.3
    for d, constant in ((4, 3.5), (32, 3.96)):
        least = least_size(PrivateParityLearner(epsilon, d), UniformInputs(), 0.1, 0.75)
        assert least * epsilon / d == pytest.approx(constant, abs=0.05)
        assert least == least_size(PrivateParityLearner(epsilon, d), UniformInputs(), 0.4, 0.75)


def test_the_limit_of_the_constant_is_ln_2() -> None:
    least = least_size(PrivateParityLearner(0.5, 1024), SparseInputs(0.4), 0.1, 0.75)
    assert least * 0.5 * 0.1 / 1024 == pytest.approx(math.log(2), abs=0.005)


@pytest.mark.parametrize("x", [UniformInputs(), SparseInputs(0.4)])
def test_the_least_size_is_the_least(x: InputDistribution) -> None:
    learner = PrivateParityLearner(0.5, 10)
    least = least_size(learner, x, 0.1, 0.7)
    assert (
        ParityOnFreshSamples(learner, x, least).failure(0.1)
        <= 0.7
        < ParityOnFreshSamples(learner, x, least - 1).failure(0.1)
    )


@pytest.mark.parametrize("beta", [0.1, 0.01])
@pytest.mark.parametrize("alpha", [0.2, 0.02])
@pytest.mark.parametrize("d", [2, 16, 64])
def test_the_printed_sizes_suffice(d: int, alpha: float, beta: float) -> None:
    for x in (SparseInputs(4 * alpha), UniformInputs()):
        found = ParityOnFreshSamples(GaussianElimination(1.0, d), x, elimination_size(alpha, beta, d)).failure(alpha)
        assert found <= beta
        for epsilon in (0.1, 2.0):
            rows = lemma_size(epsilon, alpha, d)
            assert 0.5 - 1e-12 <= ParityOnFreshSamples(PrivateParityLearner(epsilon, d), x, rows).failure(alpha) <= 0.75


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SparseInputs(1.5), r"mass in \(0, 1\], got 1.5"),
        (lambda: ParityOnFreshSamples(PrivateParityLearner(0.5, 2), UniformInputs(), 0), "a sample size >= 1, got 0"),
        (lambda: least_size(PrivateParityLearner(0.5, 2), UniformInputs(), 0.1, 0.5), "above 0.5 of step 1, got 0.5"),
        (
            lambda: ParityOnFreshSamples(PrivateParityLearner(0.5, 2), UniformInputs(), 3)(
                np.zeros(3), 5, np.random.default_rng(0)
            ),
            r"a parity of 2 bits, got \(3,\)",
        ),
    ],
)
def test_errors_show_what_was_given(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
