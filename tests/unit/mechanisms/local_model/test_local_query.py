"""Local protocols for statistical queries: distributions, levels, numbers of users, and what means of messages hide."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import ProductLaw, TwoSidedGeometricLaw
from mechanisms.local_model.fresh_users import (
    FreshDredging,
    FreshUsers,
    ReusedUsers,
    corrected_users,
    noise_constant,
    noise_sums,
    printed_users,
    typical_users,
    users_needed,
)
from mechanisms.local_model.local_query import MUTANTS as MESSAGES
from mechanisms.local_model.local_query import (
    CentralNoiseMessages,
    CountOfHigh,
    MeanOfMessages,
    ScaledColumn,
    UnclippedColumn,
    UserMessages,
    UserQueriedTwice,
)
from mechanisms.statistical_queries.tails import laplace_sum_tail
from tests.statistics import level_of

FloatArray = NDArray[np.float64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def masses(a: float, terms: int, reach: int) -> FloatArray:
    """Masses of a sum of two-sided geometric variables on -reach .. reach, by convolution."""
    k = np.arange(-reach, reach + 1)
    one = a ** -np.abs(k).astype(float) * (a - 1) / (a + 1)
    total = one
    for _ in range(terms - 1):
        total = np.convolve(total, one)[reach:-reach]
    return total


def fits(observed: NDArray[np.int64], centre: int, law: FloatArray) -> float:
    """p-value of a chi-square test of integers against masses around a centre; unlikely ones are put together."""
    reach, n = len(law) // 2, len(observed)
    expected = n * law
    likely = expected > 5
    cell = observed - centre + reach
    inside = (cell >= 0) & (cell < len(law))
    counts = np.bincount(cell[inside], minlength=len(law))
    rest = n - counts[likely].sum()
    expected_rest = n - expected[likely].sum()
    if expected_rest < 1e-6:
        assert rest == 0
        return float(stats.chisquare(counts[likely], expected[likely]).pvalue)
    return float(stats.chisquare(np.append(counts[likely], rest), np.append(expected[likely], expected_rest)).pvalue)


# --------------------------------------------------------------------------------- one query


def test_a_scaled_query_fills_its_range_and_clips() -> None:
    rows = pd.DataFrame({"v": [0.0, 5.0, 10.0, 77.0, -3.0]})
    assert ScaledColumn("v", 0.0, 10.0, 2.0)(rows).tolist() == [-2.0, 0.0, 2.0, 2.0, -2.0]
    assert UnclippedColumn("v", 0.0, 10.0, 2.0)(rows).tolist() == pytest.approx([-2.0, 0.0, 2.0, 28.8, -3.2])


USERS = np.array([0.0, 10.0, 2.0, 7.0])
VALUES = ScaledColumn(None, 0.0, 10.0)


def test_messages_follow_their_law() -> None:
    sent = UserMessages(VALUES, 1.0, (1, 3), step=2.0**-3)
    law = sent.law(USERS)
    assert isinstance(law, ProductLaw)
    assert [part.loc for part in law.parts if isinstance(part, TwoSidedGeometricLaw)] == [8, 3]
    drawn = np.rint(sent(USERS, 20_000, np.random.default_rng(1)) / 2.0**-3).astype(np.int64)
    for column, centre in ((0, 8), (1, 3)):
        assert fits(drawn[:, column], centre, masses(sent.base, 1, 400)) > ALARM
    assert abs(stats.pearsonr(drawn[:, 0], drawn[:, 1]).statistic) < stats.norm.isf(ALARM / 2) / math.sqrt(20_000)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_a_message_costs_exactly_epsilon(epsilon: float) -> None:
    for asked in (0, (0, 1, 2)):
        sent = UserMessages(VALUES, epsilon, asked)
        changed = USERS.copy()
        changed[0] = 10.0
        assert level_of(sent, USERS, changed) == pytest.approx(epsilon, rel=1e-9)
    # Where g moves by half of its range, half of epsilon.
    changed[0] = 5.0
    assert level_of(UserMessages(VALUES, epsilon, 0), USERS, changed) == pytest.approx(epsilon / 2, rel=1e-9)
    # A bound that is no multiple of the step is rounded to a little more noise.
    assert 0.99 * epsilon < level_of(
        UserMessages(ScaledColumn(None, 0.0, 10.0, 0.3), epsilon, 0), np.zeros(1), np.full(1, 10.0)
    )


def test_the_event_of_the_catalogue() -> None:
    """{w >= b}: about 1/2 against e^-epsilon / 2."""
    law_p, law_q = (UserMessages(VALUES, 1.0, 0).law(np.array([v])) for v in (10.0, 0.0))
    assert isinstance(law_p, TwoSidedGeometricLaw)
    assert isinstance(law_q, TwoSidedGeometricLaw)
    p, q = (1 - float(law.cdf(1.0 - 2.0**-10)) for law in (law_p, law_q))
    assert math.log(p / q) == pytest.approx(1.0, rel=1e-9)
    assert p == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "times"),
    [("half_scale", 2.0), ("std_as_scale", math.sqrt(2)), ("user_queried_twice", 2.0), ("overwide_b", 0.5)],
)
def test_levels_of_the_mutants(name: str, times: float) -> None:
    base, mutant = UserMessages(VALUES, 0.5, 0), MESSAGES[name]
    assert level_of(mutant.build(base), USERS, np.array([10.0, 10.0, 2.0, 7.0])) == pytest.approx(0.5 * times, rel=1e-9)
    assert mutant.true_level is not None
    assert mutant.true_level(base) == 0.5 * times


def test_values_without_clipping_cost_their_range() -> None:
    base = UserMessages(VALUES, 0.5, 0)
    found = level_of(MESSAGES["no_clipping"].build(base), np.array([0.0]), np.array([77.0]))
    assert found == pytest.approx(0.5 * 7.7, rel=1e-3)  # values are rounded to the lattice
    assert level_of(base, np.array([0.0]), np.array([77.0])) == pytest.approx(0.5, rel=1e-9)


def test_central_and_shared_noise_give_the_values_away() -> None:
    rng, two = np.random.default_rng(2), UserMessages(VALUES, 1.0, (0, 3))
    assert MESSAGES["central_noise"].build(two)(USERS, 3, rng).tolist() == [[-1.0, 410 / 1024]] * 3
    assert level_of(MESSAGES["central_noise"].build(two), USERS, np.array([5.0, 10.0, 2.0, 7.0])) == math.inf
    shared = MESSAGES["shared_noise"].build(two)
    drawn = shared(USERS, 20_000, rng)
    assert set((drawn[:, 1] - drawn[:, 0]).tolist()) == {410 / 1024 + 1.0}
    steps = np.rint(drawn[:, 0] * 1024).astype(np.int64)
    centred = TwoSidedGeometricLaw(-1024, two.base)
    thinned = np.arange(-9000, 7000, 500)
    observed = np.histogram(steps, np.concatenate([[-(2**40)], thinned, [2**40]]))[0]
    # numpy's cells begin at their lower edge: P[S <= edge - 1].
    below = np.concatenate([[0.0], centred.cdf(thinned - 1), [1.0]])
    assert stats.chisquare(observed, 20_000 * np.diff(below)).pvalue > ALARM


# --------------------------------------------------------------------------------------- means


@pytest.mark.parametrize(("a", "terms"), [(1.5, 1), (1.5, 4), (1.1, 30)])
def test_sums_of_noise_follow_their_law(a: float, terms: int) -> None:
    drawn = noise_sums(a, terms, 20_000, np.random.default_rng(3))
    assert drawn.dtype == np.int64
    assert fits(drawn, 0, masses(a, terms, 1500)) > ALARM


def test_a_mean_of_messages_follows_its_law() -> None:
    mean = MeanOfMessages(VALUES, 2.0, 4, step=2.0**-2)
    drawn = np.rint(mean(USERS, 20_000, np.random.default_rng(4)) * 4 / 2.0**-2).astype(np.int64)
    total = sum(round(g / 2.0**-2) for g in (-1.0, 1.0, -0.5, 0.5))  # -0.6 and 0.4 on the lattice
    base = UserMessages(VALUES, 2.0, 0, step=2.0**-2).base
    assert fits(drawn, total, masses(base, 4, 400)) > ALARM


def best_log_ratio(users: int, least: float, epsilon: float = 1.0) -> float:
    """Best log-ratio of an event "the sum is at least x" of probability ``least``, when one user moves by 2b."""

    def above(x: float) -> float:
        tail = laplace_sum_tail(users, abs(x)) / 2
        return tail if x >= 0 else 1 - tail

    step = epsilon / 50
    tail = np.array([above(k * step) for k in range(-500, 2000)])
    less, more = tail[50:], tail[:-50]
    return float(np.log(more[less >= least] / less[less >= least]).max())


def test_means_hide_what_messages_show() -> None:
    """Both rows of the catalogue at epsilon = 1, for n = 1, 2, 5, 20."""
    at_a_hundredth = [best_log_ratio(n, 0.01) for n in (1, 2, 5, 20)]
    assert at_a_hundredth == pytest.approx([1.0, 0.85, 0.65, 0.38], abs=0.006)
    at_a_thousandth = [best_log_ratio(n, 0.001) for n in (1, 2, 5, 20)]
    assert at_a_thousandth == pytest.approx([1.0, 0.89, 0.73, 0.46], abs=0.006)
    # Half of the noise, twice the level: nothing of that is seen on the mean of 20.
    assert best_log_ratio(20, 0.01, 2.0) < 1 < best_log_ratio(1, 0.01, 2.0)


# ------------------------------------------------------------------------------- fresh users


@pytest.mark.parametrize(
    ("users", "low", "high", "truth"), [(1, 0.0, 1.0, 0.3), (3, -1.0, 1.0, 0.2), (9, -0.5, 1.5, 1.0)]
)
def test_a_miss_is_that_of_enumeration(users: int, low: float, high: float, truth: float) -> None:
    oracle, step = FreshUsers(1.0, users, low, high, step=2.0**-3), 2.0**-3
    noise, reach = masses(oracle.base, users, 1200), 1200
    part, half = (truth - low) / (high - low), round((high - low) / 2 / step)
    for tolerance in (0.21, 0.6, 2.3):
        missed = 0.0
        for ones in range(users + 1):
            sums = (2 * ones - users) * half + np.arange(-reach, reach + 1)
            off = np.abs((low + high) / 2 + sums * step / users - truth) > tolerance
            missed += stats.binom.pmf(ones, users, part) * noise[off].sum()
        assert oracle.miss(truth, tolerance) == pytest.approx(missed, rel=1e-7, abs=1e-12)


def test_answers_of_fresh_users_miss_as_computed() -> None:
    n, truth = 40_000, np.array([0.3, -0.9])
    oracle = FreshUsers(0.7, 200)
    answers = oracle(np.broadcast_to(truth, (n, 2)), 0.0, np.random.default_rng(5))
    assert answers.shape == (n, 2)
    for column in (0, 1):
        for tolerance in (0.1, 0.3, 0.6):
            failures = int((np.abs(answers[:, column] - truth[column]) > tolerance).sum())
            assert stats.binomtest(failures, n, oracle.miss(truth[column], tolerance)).pvalue > ALARM


def test_answers_of_fresh_users_are_means_of_messages() -> None:
    """Against messages drawn one by one, at two users."""
    rng, n = np.random.default_rng(6), 20_000
    oracle = FreshUsers(2.0, 2, 0.0, 1.0, step=2.0**-2)
    fast = np.rint(oracle(np.full(n, 0.4), 0.0, rng) * 2 / 2.0**-2).astype(np.int64)
    noise, reach = masses(oracle.base, 2, 400), 400
    law = np.zeros(2 * reach + 1)
    for ones in range(3):
        law += stats.binom.pmf(ones, 2, 0.4) * np.roll(noise, 4 * ones)
    assert fits(fast, 0, law) > ALARM


def test_the_constants_of_the_catalogue() -> None:
    assert noise_constant(1e-9, 0.05, 0.05) == pytest.approx(65, abs=0.5)
    assert noise_constant(1e-9, 0.05, 0.5) == pytest.approx(133, abs=0.5)
    assert noise_constant(1e-9, 0.05, 1e-300) == pytest.approx(44.4, abs=0.1)
    assert noise_constant(1e-9, 0.05, 1e-300) > 64 * math.log(2)


@pytest.mark.parametrize(("epsilon", "failure"), [(10.0, 0.107), (20.0, 0.41)])
def test_the_printed_sample_is_too_small_at_large_epsilon(epsilon: float, failure: float) -> None:
    """E9, with the catalogue's constant 64 ln(4 / beta): what fails is no matter of the constant."""
    constant = 64 * math.log(4 / 0.05) / math.log2(1 / 0.05)
    users = printed_users(constant, epsilon, 0.05, 0.05)
    assert FreshUsers(epsilon, users).miss(0.0, 0.05) == pytest.approx(failure, abs=0.005)
    # A sample of n values of both signs has standard deviation 1 / sqrt(n), noise or not.
    for times in (100, 10_000):
        far = epsilon * math.sqrt(times)
        users = printed_users(times * constant, far, 0.05, 0.05)
        assert FreshUsers(far, users).miss(0.0, 0.05) > 0.05
    assert FreshUsers(epsilon, corrected_users(constant, epsilon, 0.05, 0.05)).miss(0.0, 0.05) < 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.8, 3.0, 10.0])
@pytest.mark.parametrize("tolerance", [0.02, 0.3])
def test_sizes_that_are_needed(epsilon: float, tolerance: float) -> None:
    for beta in (0.4, 0.05, 1e-3):
        users = users_needed(epsilon, tolerance, beta)
        noise = 64 / (epsilon * tolerance) ** 2 * (1 + epsilon * tolerance / 8)
        assert users == math.ceil(math.log(4 / beta) * max(noise, 8 / tolerance**2))
        assert FreshUsers(epsilon, users).miss(0.0, tolerance) <= beta
        constant = noise_constant(1.0, tolerance, beta)
        assert corrected_users(constant, epsilon, tolerance, beta) >= users - 1
        assert users_needed(epsilon, 2 * tolerance, beta, 2.0) == users


@pytest.mark.parametrize(("epsilon", "beta"), [(0.1, 0.05), (0.5, 0.05), (1.0, 0.1), (2.0, 0.05), (8.0, 0.1)])
def test_the_typical_size_fails_with_probability_beta(epsilon: float, beta: float) -> None:
    users = math.ceil(typical_users(epsilon, 0.05, beta))
    assert FreshUsers(epsilon, users).miss(0.0, 0.05) == pytest.approx(beta, rel=0.01)
    assert 5 < users_needed(epsilon, 0.05, beta) / users < 12
    assert typical_users(epsilon, 0.05, beta, variance=0.0) < users


def test_counts_of_high_messages_keep_the_level() -> None:
    base = UserMessages(VALUES, 0.7, 0)
    x, y = np.array([0.0]), np.array([10.0])
    assert level_of(CountOfHigh(base, 1.0), x, y) == pytest.approx(0.7, rel=1e-9)
    assert level_of(CountOfHigh(UserQueriedTwice(VALUES, 0.7, 0), 1.0), x, y) == pytest.approx(1.4, rel=1e-9)
    counted = CountOfHigh(UserMessages(VALUES, 0.7, (0, 1, 2, 3)), 0.25)
    counts, law = counted(USERS, 20_000, np.random.default_rng(17)), counted.law(USERS)
    assert law.outcomes == (0, 1, 2, 3, 4)
    assert float(law.probabilities.sum()) == pytest.approx(1, rel=1e-12)
    assert stats.chisquare(np.bincount(counts, minlength=5), 20_000 * law.probabilities).pvalue > ALARM
    assert counted.epsilon == 0.7
    with pytest.raises(ValueError, match=r"expected messages with two-sided geometric noise, got FiniteLaw"):
        CountOfHigh(CentralNoiseMessages(VALUES, 0.7, 0), 1.0).law(USERS)


# -------------------------------------------------------------------------------- reused users


def test_dredging_one_bit_of_one_user() -> None:
    """By enumeration: the last answer is x times the sign of x + noise, plus noise."""
    made, n = ReusedUsers(1.0, 1), 20_000
    base = FreshUsers(1.0, 1).base
    answers = made(np.zeros(1), n, np.random.default_rng(14))
    # The sign is that of x where the noise does not pass 0: P[x + noise >= 0 | x = 1] = P[Z >= -1024], and so on.
    noise = TwoSidedGeometricLaw(0, base)
    agree = (float(noise.cdf(1024)) + float(noise.cdf(1023))) / 2
    law = (1 - agree) * masses_at(base, -1024) + agree * masses_at(base, 1024)
    drawn = np.rint(answers[:, 1] * 1024).astype(np.int64)
    counts = np.array([(drawn <= 0).sum(), (drawn > 0).sum()])
    assert stats.chisquare(counts, n * law).pvalue > ALARM
    assert answers[:, 0].mean() == pytest.approx(0, abs=stats.norm.isf(ALARM / 2) * math.sqrt(9 / n) * 1.5)


def masses_at(base: float, centre: int) -> FloatArray:
    """Masses of at most 0 and above 0."""
    low = float(TwoSidedGeometricLaw(centre, base).cdf(0))
    return np.array([low, 1 - low])


def test_reused_users_are_dredged_and_fresh_ones_are_not() -> None:
    bits, users, epsilon = np.zeros(401), 60, 8.0
    reused = ReusedUsers(epsilon, users)(bits, 40, np.random.default_rng(15))
    fresh = FreshDredging(epsilon, users)(bits, 40, np.random.default_rng(16))
    assert reused.shape == fresh.shape == (40, 402)
    # Signs of single bits carry 0.8 / sqrt(60 * 1.125) = 0.097 of the sample's mean each, 401 of them 1.9 deviations of
    # a sum: the last answer is near 2 Phi(1.9) - 1 = 0.94, with a deviation of 0.06.
    assert reused[:, -1].min() > 0.5
    # Of 40 means of 60 fair signs with noise of variance 8/64 none is beyond 0.9: each is with probability below 1e-9.
    assert FreshUsers(epsilon, users).miss(0.0, 0.9) < 1e-9
    assert np.abs(fresh[:, -1]).max() < 0.9
    # What a single bit answers is the same with both: a mean of fair signs and its noise.
    oracle = FreshUsers(epsilon, users)
    for answers in (reused, fresh):
        failures = int((np.abs(answers[:, 0]) > 0.15).sum())
        assert stats.binomtest(failures, 40, oracle.miss(0.0, 0.15)).pvalue > ALARM


# --------------------------------------------------------------------------------------- errors


def test_errors_show_the_value() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"expected a finite epsilon > 0, got 0"):
        UserMessages(VALUES, 0.0, 0)
    with pytest.raises(ValueError, match=r"expected a power of two as step, got 0\.3"):
        UserMessages(VALUES, 1.0, 0, 0.3)
    with pytest.raises(ValueError, match=r"expected positions >= 0, got \(0, -1\)"):
        UserMessages(VALUES, 1.0, (0, -1))
    with pytest.raises(ValueError, match=r"expected at least 5 rows, got 4"):
        UserMessages(VALUES, 1.0, 4)(USERS, 1, rng)
    with pytest.raises(ValueError, match=r"expected values in \[-1\.0, 1\.0\], got array\(14\.4\)"):
        UserMessages(UnclippedColumn(None, 0.0, 10.0), 1.0, 0)(np.array([77.0]), 1, rng)
    with pytest.raises(ValueError, match=r"expected a finite range, low < high, got \(1\.0, 1\.0\)"):
        ScaledColumn(None, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"expected a number of users >= 1, got 0"):
        MeanOfMessages(VALUES, 1.0, 0)
    with pytest.raises(ValueError, match=r"expected a number of terms >= 1, got 0"):
        noise_sums(1.5, 0, 1, rng)
    with pytest.raises(ValueError, match=r"expected a number of users >= 1, got 0"):
        FreshUsers(1.0, 0)
    with pytest.raises(ValueError, match=r"expected a multiple of the step 0\.5 as \(high - low\) / 2, got 0\.75"):
        FreshUsers(1.0, 3, 0.0, 1.5, 0.5)
    with pytest.raises(ValueError, match=r"expected expectations in \[-1\.0, 1\.0\], got .*2\."):
        FreshUsers(1.0, 3)(np.array([2.0]), 0.0, rng)
    with pytest.raises(ValueError, match=r"expected beta in \(0, 1\), got 0\.0"):
        users_needed(1.0, 0.1, 0.0)
    with pytest.raises(ValueError, match=r"expected a finite constant > 0, got 0"):
        printed_users(0.0, 1.0, 0.1, 0.1)
    with pytest.raises(ValueError, match=r"expected an odd number of bits, shape \(d,\), got \(2,\)"):
        FreshDredging(1.0, 3)(np.zeros(2), 1, rng)
    with pytest.raises(ValueError, match=r"expected expectations of 0, got"):
        ReusedUsers(1.0, 3)(np.ones(3), 1, rng)
