"""The learner from statistical queries: its distributions, its levels, its sample sizes, and its algorithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import TwoSidedGeometricLaw
from mechanisms.statistical_queries.query_algorithms import (
    AllBitsSet,
    ColumnBit,
    ConjunctionAlgorithm,
    ThresholdAlgorithm,
    chunk_size,
    printed_chunk_size,
)
from mechanisms.statistical_queries.statistical_queries import (
    MUTANTS,
    ChunkedAnswers,
    ConjunctionLearner,
    FixedAnswers,
    FreshAnswers,
    FreshPrintedNoise,
    OverlappingChunks,
    StatisticalQueryLearner,
    expectations,
    sorted_by,
)
from tests.statistics import level_of, p_value

FloatArray = NDArray[np.float64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

#: Columns 0, 1, 2 are bits, column 3 is the label, column 4 a value.
BITS, LABEL = (ColumnBit(0, 1), ColumnBit(1, 1), ColumnBit(2, 1)), ColumnBit(3, 1)
THREE = ConjunctionAlgorithm(BITS, LABEL, error=0.6)


def sample(rows: int, seed: int = 1) -> FloatArray:
    """Random bits, labels and values."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, 2, (rows, 4)), rng.permutation(rows)]).astype(np.float64)


def replaced(data: FloatArray, index: int, row: list[float]) -> FloatArray:
    changed = data.copy()
    changed[index] = row
    return changed


def noise_pmf(a: float, k: NDArray[np.int64]) -> FloatArray:
    """Document 000, section 2, as printed."""
    return a ** -np.abs(k).astype(np.float64) * (a - 1) / (a + 1)


# ------------------------------------------------------------------------------ sample sizes


def test_the_catalogues_example() -> None:
    m, tau, alpha, delta = 100, 0.1, 0.1, 0.05
    s = printed_chunk_size(m, tau, alpha, delta)
    assert s == 3318
    scale = m / (alpha * s)
    assert scale == pytest.approx(0.301, abs=5e-4)
    assert math.exp(-tau / 2 / scale) == pytest.approx(0.847, abs=5e-4)
    assert delta / (2 * m) == pytest.approx(2.5e-4)
    algorithm = ConjunctionAlgorithm((ColumnBit(0),) * m, LABEL, error=0.5)
    # On a lattice of a thousandth of a row nothing of that changes in three digits.
    assert FreshPrintedNoise(algorithm, alpha, s).miss(0.0, tau / 2) == pytest.approx(0.847, abs=5e-4)
    assert FreshAnswers(algorithm, alpha, s).miss(0.0, tau / 2) == pytest.approx(
        math.exp(-alpha * s * tau / 2), rel=0.01
    )


@pytest.mark.parametrize("m", [1, 7, 100])
@pytest.mark.parametrize(("tau", "alpha"), [(0.1, 0.1), (0.1, 0.01), (0.05, 1.0), (0.3, 3.0)])
def test_chunks_of_the_derived_size_keep_both_halves_of_the_proof(m: int, tau: float, alpha: float) -> None:
    delta = 0.05
    s = chunk_size(m, tau, alpha, delta)
    assert 2 * math.exp(-2 * s * (tau / 2) ** 2) <= delta / (2 * m) * (1 + 1e-12)
    assert math.exp(-alpha * s * tau / 2) <= delta / (2 * m) * (1 + 1e-12)
    # One row less breaks one of them.
    short = s - 1
    assert max(2 * math.exp(-2 * short * (tau / 2) ** 2), math.exp(-alpha * short * tau / 2)) > delta / (2 * m)
    # And all answers are within tau, exactly, at the expectation that is worst for sampling.
    answers = FreshAnswers(ConjunctionAlgorithm((ColumnBit(0),) * m, LABEL, error=0.5), alpha, s)
    assert answers.miss_any(np.full(m, 0.5), tau) <= delta


def test_the_printed_size_covers_the_derived_one_where_it_says_so() -> None:
    delta = 0.05
    for m in (1, 10, 1000):
        for tau in (0.01, 0.1, 0.5):
            for alpha in (0.01, 0.1, 1.0):
                printed, derived = (f(m, tau, alpha, delta) for f in (printed_chunk_size, chunk_size))
                if tau / alpha * math.log(2 * m / delta) >= math.log(2):
                    assert printed >= derived
                assert printed + 2 * math.log(2) / tau**2 + 1 >= derived


# -------------------------------------------------------------------------------------- distributions


def test_answers_are_chunk_means_by_position() -> None:
    data = sample(31)
    mechanism = FixedAnswers(THREE, 0.5, 10, step=0.25)
    for i, part in enumerate(mechanism.law(data).parts):
        rows = data[10 * i : 10 * (i + 1)]
        count = int(((rows[:, i] == 0) & (rows[:, 3] == 1)).sum())
        assert isinstance(part, TwoSidedGeometricLaw)
        assert part.loc == 4 * count
        assert part.step == 0.25 / 10
        assert 4 * part.log_a == pytest.approx(0.5, rel=1e-12)
        assert 4 * part.log_a <= 0.5


def test_draws_follow_the_law_of_the_transcript() -> None:
    data, n = sample(30), 40_000
    mechanism = FixedAnswers(THREE, 0.5, 10, step=0.5)
    outputs = mechanism(data, n, np.random.default_rng(2))
    assert outputs.shape == (n, 3)
    p_values = []
    for i, part in enumerate(mechanism.law(data).parts):
        assert isinstance(part, TwoSidedGeometricLaw)
        steps = np.rint(outputs[:, i] / part.step).astype(np.int64)
        assert np.all(steps * part.step == outputs[:, i])
        k = np.arange(-18, 19)
        pmf = noise_pmf(part.a, k)
        pmf[[0, -1]] += (1 - pmf.sum()) / 2  # both tails
        observed = np.bincount(np.clip(steps - part.loc, -18, 18) + 18, minlength=37)
        p_values.append(p_value(observed, pmf))
    # Answers are independent: the middle two cells of two coordinates against the product.
    low = outputs <= np.array([part.loc * part.step for part in mechanism.law(data).parts])  # type: ignore[union-attr]
    joint = np.bincount(low.astype(int) @ np.array([1, 2, 4]), minlength=8)
    q = 1 - 1 / (1 + mechanism.base)  # P[Z <= 0] = a / (a + 1)
    expected = [math.prod(q if j >> i & 1 else 1 - q for i in range(3)) for j in range(8)]
    p_values.append(p_value(joint, expected))
    assert min(p_values) > ALARM / len(p_values)


def test_hypotheses_follow_their_law() -> None:
    data, n = sample(30), 40_000
    learner = ConjunctionLearner(FixedAnswers(THREE, 0.5, 10, step=0.5))
    kept = learner(data, n, np.random.default_rng(3))
    expected = []
    for i, (part, answer) in enumerate(zip(learner.law(data).parts, learner.answers.law(data).parts, strict=True)):
        assert isinstance(answer, TwoSidedGeometricLaw)
        # The bit is kept if the answer is at most tau = 0.1: brute force over the lattice.
        k = np.arange(-400, 401)
        mass = noise_pmf(answer.a, k)[(answer.loc + k) * answer.step <= THREE.tolerance].sum()
        assert part.probabilities[1] == pytest.approx(float(mass), rel=1e-9), i  # type: ignore[union-attr]
        expected.append(float(mass))
    for i, probability in enumerate(expected):
        test = stats.binomtest(int(kept[:, i].sum()), n, probability)
        assert test.pvalue > ALARM / len(expected)


def test_a_hypothesis_far_in_the_tail_keeps_its_ratio() -> None:
    # 100 of 100 rows count, and tau allows 10: probabilities of e^-45 and e^-44.5, and a ratio of exactly e^0.5.
    one = ConjunctionAlgorithm(BITS[:1], LABEL, error=0.2)
    x = np.tile([0.0, 0, 0, 1, 0], (100, 1))
    y = replaced(x, 5, [0, 0, 0, 0, 0])
    learner = ConjunctionLearner(FixedAnswers(one, 0.5, 100))
    assert level_of(learner, x, y) == pytest.approx(0.5, rel=1e-9)


def test_fresh_answers_are_those_of_fresh_rows() -> None:
    data, n, size = sample(50, seed=4), 3_000, 6
    algorithm = ConjunctionAlgorithm(BITS[:2], LABEL, error=0.5)
    fresh, chunked = FreshAnswers(algorithm, 1.0, size, step=1.0), ChunkedAnswers(algorithm, 1.0, size, step=1.0)
    means = expectations(algorithm, data)
    rng = np.random.default_rng(5)
    drawn = fresh(means, n, rng)
    honest = np.concatenate([chunked(data[rng.integers(0, 50, 12)], 1, rng) for _ in range(n)])
    p_values = []
    for i, mean in enumerate(means):
        # Distribution of the sum of a binomial and the noise, by convolution; 60 steps of noise are e^-60.
        pmf = np.convolve(stats.binom.pmf(np.arange(size + 1), size, mean), noise_pmf(math.e, np.arange(-60, 61)))
        cells = np.clip(np.arange(-60, 61 + size), -2, 5) + 2
        expected = np.bincount(cells, pmf).astype(np.float64)
        for outputs in (drawn, honest):
            observed = np.clip(np.rint(outputs[:, i] * size).astype(int), -2, 5) + 2
            p_values.append(p_value(np.bincount(observed, minlength=8), expected))
    assert min(p_values) > ALARM / len(p_values)


@pytest.mark.parametrize(
    ("size", "mean", "tolerance"), [(6, 0.3, 0.2), (40, 0.5, 0.103), (25, 0.0, 0.053), (25, 1.0, 0.303)]
)
def test_the_probability_of_a_miss_by_brute_force(size: int, mean: float, tolerance: float) -> None:
    fresh = FreshAnswers(THREE, 0.7, size, step=0.25)
    k = np.arange(-600, 601)
    mass, missed = noise_pmf(fresh.base, k), 0.0
    for j in range(size + 1):
        off = np.abs((4 * j + k) * 0.25 / size - mean) > tolerance
        missed += stats.binom.pmf(j, size, mean) * mass[off].sum()
    assert fresh.miss(mean, tolerance) == pytest.approx(missed, rel=1e-9)
    twice = 1 - (1 - missed) ** 2
    assert fresh.miss_any(np.array([mean, mean]), tolerance) == pytest.approx(twice, rel=1e-9)


# ------------------------------------------------------------------------------------ levels

#: A row that no query counts, and one that all do.
NONE, ALL = [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]


def test_levels_of_the_reference_and_its_mutants() -> None:
    data, base = sample(30), FixedAnswers(THREE, 0.5, 10, step=2.0**-4)
    x, y = replaced(data, 7, NONE), replaced(data, 7, ALL)
    assert level_of(base, x, y) == pytest.approx(0.5, rel=1e-9)
    for name, index in {"shared_chunk": 0, "overlapping_chunks": 7, "noise_scale_alpha_over_s": 0}.items():
        x, y = replaced(data, index, NONE), replaced(data, index, ALL)
        mutant = MUTANTS[name]
        assert mutant.true_level is not None
        assert level_of(mutant.build(base), x, y) == pytest.approx(mutant.true_level(base), rel=1e-9)
    values = {name: m.true_level(base) for name, m in MUTANTS.items() if m.true_level is not None}
    assert values == pytest.approx(
        {
            "shared_chunk": 1.5,
            "overlapping_chunks": 1.0,
            "noise_scale_alpha_over_s": 2.0,
            "noise_scale_1_over_s": 1.0,
            "printed_noise_scale": 0.5 / 3,
        }
    )
    x, y = replaced(data, 0, NONE), replaced(data, 0, ALL)
    assert level_of(MUTANTS["noise_scale_1_over_s"].build(base), x, y) == pytest.approx(1.0, rel=1e-9)
    assert level_of(MUTANTS["printed_noise_scale"].build(base), x, y) == pytest.approx(0.5 / 3, rel=1e-9)


def test_a_row_beyond_the_chunks_is_not_read() -> None:
    data, base = sample(32), FixedAnswers(THREE, 0.5, 10)
    assert base.law(data) == base.law(replaced(data, 31, ALL))


@pytest.mark.parametrize("size", [4, 5, 10, 11])
def test_overlapping_windows_have_every_row_at_most_twice(size: int) -> None:
    mechanism = OverlappingChunks(THREE, 0.5, size)
    data = sample(3 * size)
    times = np.bincount(np.concatenate([mechanism.rows_of(data, i) for i in range(3)]))
    assert times.max() == 2


def test_sorting_first_lets_one_row_move_every_answer() -> None:
    # Rows at the cuts: the person at cut i has bit i and lacks bit i - 1.
    data = sample(30, seed=6)
    order = np.argsort(data[:, 4])
    x = data.copy()
    x[order[0], :4] = [1, 1, 1, 1]
    x[order[10], :4] = [0, 1, 1, 1]
    x[order[20], :4] = [1, 0, 1, 1]
    y = replaced(x, int(order[0]), [1, 1, 0, 1, 99])
    base = FixedAnswers(THREE, 0.5, 10, step=2.0**-4)
    mutant = sorted_by(4)
    assert mutant.true_level is not None
    built: Any = mutant.build(base)
    rises = [q.loc - p.loc for p, q in zip(built.law(x).parts, built.law(y).parts, strict=True)]
    assert rises == [16, 16, 16]
    assert level_of(built, x, y) == pytest.approx(mutant.true_level(base), rel=1e-9)
    assert mutant.true_level(base) == 1.5
    # Cut by position, the same pair costs what any other does.
    assert level_of(base, x, y) <= 0.5 * (1 + 1e-9)


def test_an_adaptive_transcript_costs_epsilon_by_enumeration() -> None:
    # Two rounds on integers: the second query depends on the first answer. Log ratio of every pair of answers.
    search = ThresholdAlgorithm(4, LABEL, rounds=2, low=0.0, width=1.0, tolerance=0.4)
    mechanism = ChunkedAnswers(search, 0.5, 5, step=1.0)
    data = np.array([[0, 0, 0, 1, v] for v in (0, 0, 1, 2, 3, 0, 1, 1, 2, 3)], dtype=np.float64)
    k, unused = np.arange(-30, 40), np.random.default_rng(0)

    def table(rows: FloatArray) -> FloatArray:
        first = noise_pmf(mechanism.base, k - mechanism.sums(rows, 0, search.ask(np.zeros((1, 0))), unused)[0])
        asked = search.ask(np.asarray(k[:, None] * mechanism.unit, dtype=np.float64))
        assert set(asked.tolist()) == {1, 3}
        sums = mechanism.sums(rows, 1, asked, unused)
        second: FloatArray = noise_pmf(mechanism.base, k[None, :] - sums[:, None])
        return first[:, None] * second

    for index in (2, 6):
        x, y = replaced(data, index, [0, 0, 0, 0, 0]), replaced(data, index, [0, 0, 0, 1, 0])
        ratio = np.abs(np.log(table(x) / table(y)))
        assert ratio.max() == pytest.approx(0.5, rel=1e-9)


# -------------------------------------------------------------------------------- algorithms


def test_conjunctions_from_answers_within_tau_err_at_most_as_aimed_at() -> None:
    rng = np.random.default_rng(7)
    data = np.column_stack([rng.random((400, 4)) < 0.9, np.arange(400)]).astype(np.float64)
    bits = tuple(ColumnBit(i, 1) for i in range(4))
    target = AllBitsSet((bits[1], bits[3]))
    algorithm = ConjunctionAlgorithm(bits, target, error=0.24)
    means = expectations(algorithm, data)
    assert means[1] == means[3] == 0  # no positive example lacks a bit of the target
    answers = means + algorithm.tolerance * rng.uniform(-1, 1, (500, 4))
    for kept in algorithm.hypothesis(answers):
        assert kept[1] == kept[3] == 1
        wrong = algorithm.learned(kept)(data) != target(data)
        assert wrong.mean() <= algorithm.error


@pytest.mark.parametrize("target", [0.0, 1.0, 6.0, 11.0, 15.0])
def test_thresholds_from_answers_within_tau_err_at_most_twice_tau(target: float) -> None:
    rng = np.random.default_rng(8)
    data = rng.integers(0, 16, 300).astype(np.float64)
    label = ColumnBit(None, low=target)
    search = ThresholdAlgorithm(None, label, rounds=4, low=0.0, width=1.0, tolerance=0.05)
    means = expectations(search, data)
    n = 400
    answers = np.empty((n, 4))
    for i in range(4):
        asked = search.ask(answers[:, :i])
        assert asked.min() >= 1
        assert asked.max() <= 15
        answers[:, i] = means[asked] + search.tolerance * rng.uniform(-1, 1, n)
    learned = search.hypothesis(answers)
    assert learned.min() >= target
    for t in np.unique(learned):
        assert np.mean((data >= t) != (data >= target)) <= 2 * search.tolerance


def test_binary_search_asks_as_a_plain_loop_does() -> None:
    rng = np.random.default_rng(9)
    search = ThresholdAlgorithm(4, LABEL, rounds=6, low=-1.0, width=0.5, tolerance=0.5)
    answers = rng.random((50, 6))
    for run in answers:
        low, high = 0, 64
        for i in range(6):
            middle = (low + high) // 2
            assert search.ask(run[None, :i])[0] == middle
            low, high = (middle, high) if run[i] <= 0.5 else (low, middle)
        assert search.hypothesis(run[None])[0] == -1.0 + 0.5 * low


def test_an_adaptive_learner_runs_on_a_sample() -> None:
    data = sample(60)
    search = ThresholdAlgorithm(4, LABEL, rounds=3, low=0.0, width=8.0, tolerance=0.2)
    learned = StatisticalQueryLearner(ChunkedAnswers(search, 1.0, 20))(data, 100, np.random.default_rng(10))
    assert learned.shape == (100,)
    assert set(learned.tolist()) <= set(np.arange(0.0, 64.0, 8.0).tolist())


# ------------------------------------------------------------------------------------ errors


def test_errors_show_the_value() -> None:
    with pytest.raises(ValueError, match=r"expected at least 30 rows, got 29"):
        FixedAnswers(THREE, 0.5, 10)(sample(29), 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"expected a finite epsilon > 0, got 0"):
        FixedAnswers(THREE, 0.0, 10)
    with pytest.raises(ValueError, match=r"expected a chunk size >= 1, got 0"):
        FixedAnswers(THREE, 0.5, 0)
    with pytest.raises(ValueError, match=r"expected a power of two, at most 1, as step, got 0\.3"):
        FixedAnswers(THREE, 0.5, 10, step=0.3)
    search = ThresholdAlgorithm(4, LABEL, rounds=3, low=0.0, width=8.0, tolerance=0.2)
    with pytest.raises(
        ValueError, match=r"expected an algorithm whose queries are fixed in advance, got ThresholdAlgorithm"
    ):
        FixedAnswers(search, 0.5, 10)
    with pytest.raises(ValueError, match=r"expected 1 to 52 rounds, got 53"):
        ThresholdAlgorithm(4, LABEL, rounds=53, low=0.0, width=8.0, tolerance=0.2)
    with pytest.raises(ValueError, match=r"expected an error in \(0, 1\), got 1\.5"):
        ConjunctionAlgorithm(BITS, LABEL, error=1.5)
    with pytest.raises(ValueError, match=r"expected low <= high, got \(2, 1\)"):
        ColumnBit(0, 2, 1)
    with pytest.raises(ValueError, match=r"expected 3 expectations, got \(2,\)"):
        FreshAnswers(THREE, 0.5, 10)(np.zeros(2), 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"expected delta in \(0, 1\), got 1\.0"):
        chunk_size(3, 0.1, 0.5, 1.0)
