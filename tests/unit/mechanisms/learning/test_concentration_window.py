"""Votes and windows, soft labels of random votes, Gaussian labels: distributions, golden values, mistakes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.exact import curve
from mechanisms.learning.concentration_window import (
    FAR_MUTANTS,
    MUTANTS,
    BernoulliVote,
    CoinOutcome,
    FarVotes,
    VoteDeviation,
    enough_chunks,
    few_inside,
    most_moved,
    started,
    stressed,
)
from mechanisms.selection.free_tops import tail
from mechanisms.teacher_ensembles.gaussian_labels import MUTANTS as LABEL_MUTANTS
from mechanisms.teacher_ensembles.gaussian_labels import GaussianLabels
from mechanisms.teacher_ensembles.soft_histogram import ScoreHistograms
from mechanisms.teacher_ensembles.soft_label_votes import MUTANTS as LABELS_MUTANTS
from mechanisms.teacher_ensembles.soft_label_votes import (
    FreshSoftLabels,
    LargestLabelError,
    OneSoftLabel,
    VotePopulation,
    bins_of,
    failure,
    histograms,
    leader,
    lemma_chunks,
    printed_chunks,
    stable_distance,
)
from mechanisms.teacher_ensembles.soft_labels import (
    BOTTOM,
    HALTED,
    SoftLabels,
    corrected_threshold,
    noise_scale,
    printed_threshold,
)

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6
THREE = BernoulliVote(0.2, 12, (CoinOutcome(0.5, 0.0, 1.0), CoinOutcome(0.3, 0.25, 0.5), CoinOutcome(0.2, 0.2, 0.0)))


def echo(scores: NDArray[np.float64], /) -> NDArray[np.float64]:
    """Chunks of one record each, whose classifier says what the record says at each query."""
    return np.asarray(scores.T)


def fits(observed: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Chi-square at `ALARM`; cells that are expected less than 50 times are put together."""
    rare = expected < 50
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 50:
            assert observed[-1] <= stats.poisson.isf(ALARM, expected[-1])
            observed, expected = observed[:-1], expected[:-1]
    if len(expected) < 2:
        return True
    return bool(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > ALARM)


# ------------------------------------------------------------------------------------------- votes


def test_moments_of_a_vote_by_enumeration() -> None:
    votes = THREE
    mean = square = moved = between = 0.0
    for coin in votes.coins:
        values = coin.offset + coin.slope * np.arange(13) / 12
        mass = stats.binom.pmf(np.arange(13), 12, 0.2)
        mean += coin.probability * float(mass @ values)
        square += coin.probability * float(mass @ values**2 - (mass @ values) ** 2)
        # Replace one of 12 labels: the sum of the others is shared.
        others = stats.binom.pmf(np.arange(12), 11, 0.2)
        between += coin.probability * float(others.sum()) * 2 * 0.2 * 0.8 * (coin.slope / 12) ** 2
        moved += coin.probability * float(mass[np.abs(values - mass @ values) > 0.11].sum())
    assert votes.expectation == pytest.approx(mean)
    assert votes.variance == pytest.approx(square)
    assert votes.alpha**2 == pytest.approx(between)
    assert votes.outside(0.11) == pytest.approx(moved)
    assert votes.variance == pytest.approx(6 * votes.alpha**2)  # Efron-Stein is an equality here


def test_deviations_have_their_law() -> None:
    n = 50_000
    drawn = VoteDeviation()(THREE, n, np.random.default_rng(0))
    for window in (0.0, 0.05, 0.1, 0.2, 0.3):
        assert stats.binomtest(int((drawn > window * (1 + 1e-9)).sum()), n, THREE.outside(window)).pvalue > ALARM


@pytest.mark.parametrize("size", [1, 2, 5, 40, 1000])
@pytest.mark.parametrize("q", [0.001, 1 / 66, 0.1, 1 / 9, 0.3, 0.5, 0.9])
def test_the_window_holds_more_than_the_lemma_says(q: float, size: int) -> None:
    """With and without coins: at most 1/64 outside, 1/4 outside of a quarter of the window."""
    for votes in (BernoulliVote(q, size), stressed(q, size, 0.124), stressed(q, size, 0.02), started(q, size)):
        assert votes.outside(votes.window()) <= 1 / 64 + 1e-12
        assert votes.outside(votes.window(1.0)) <= 1 / 4 + 1e-12
        assert votes.unstable_coins <= 1 / 8


def test_the_extremes_are_attained_nearly() -> None:
    assert BernoulliVote(1 / 66, 1).outside(BernoulliVote(1 / 66, 1).window()) == pytest.approx(1 / 66)
    assert BernoulliVote(1 / 5.01, 1).outside(BernoulliVote(1 / 5.01, 1).window(1.0)) == pytest.approx(1 / 5.01)
    assert stressed(1 / 9, 1, 0.124).unstable_coins == 0.124
    assert stressed(1 / 9, 1, 0.126).unstable_coins == 0.0


def test_enough_votes() -> None:
    for beta in (0.5, 0.1, 0.01, 1e-6):
        k = enough_chunks(beta)
        assert math.exp(-k / 72) <= beta < math.exp(-(k - 1) / 72)
        exact = sum(
            math.comb(k, i) * Fraction(3, 4) ** i * Fraction(1, 4) ** (k - i) for i in range(k) if 3 * i < 2 * k
        )
        assert few_inside(0.75, k) == pytest.approx(float(exact), rel=1e-9)
        assert few_inside(0.75, k) <= beta


def test_parts_outside_have_a_binomial_law() -> None:
    n, far = 20_000, FarVotes(10, 0.1)
    drawn = np.rint(far(THREE, n, np.random.default_rng(1)) * 10).astype(int)
    # The coins are a vote's own, and the centre is the expectation over them.
    outside = 0.0
    for coin in THREE.coins:
        values = coin.offset + coin.slope * np.arange(13) / 12
        mass = stats.binom.pmf(np.arange(13), 12, 0.2)
        outside += coin.probability * float(mass[np.abs(values - THREE.expectation) > 0.1 + 1e-9].sum())
    expected = n * stats.binom.pmf(np.arange(11), 10, outside)
    assert fits(np.bincount(drawn, minlength=11), expected)


def test_mistakes_about_the_centre() -> None:
    wide = started(0.3, 4096)
    found = MUTANTS["expectation_over_coins_too"].build(VoteDeviation())(wide, 1000, np.random.default_rng(2))
    assert np.all(np.abs(np.asarray(found) - 0.25) < 8 * math.sqrt(wide.variance))
    assert wide.window() < 0.1
    fixed = FarVotes(9, 0.1)
    moved = FAR_MUTANTS["centred_at_the_sample_mean"].build(fixed)
    before, values = np.full(9, 0.599), np.array([0.599, 1.0])
    assert most_moved(fixed, before, values, 0.5) == 1
    # All nine are at their mean; one at 1 takes it 0.045 up, away from nobody but itself ...
    assert isinstance(moved, FarVotes)
    assert most_moved(moved, before, values, 0.5) == 1
    # ... and with half of them at either side of it a whole side falls out.
    sides = np.array([0.5] * 5 + [0.65] * 4)
    assert most_moved(moved, sides, np.array([0.5, 1.0]), 0.5) == 5


# ------------------------------------------------------------------------------------- soft labels


@pytest.mark.parametrize("bins", [2, 3, 4, 10])
def test_what_a_chunk_can_vote_by_enumeration(bins: int) -> None:
    data = VotePopulation(0.3, 20, (0.0, 0.25, 0.5 - 1e-6), (1.0, 0.5, 1 / 64))
    mass, half = data.cells(bins)
    found: dict[tuple[int, ...], float] = {}
    for i in range(21):
        at = []
        for a, b in zip(data.offsets, data.slopes, strict=True):
            value = Fraction(a) + Fraction(b) * i / 20
            at.append(min(math.floor(value * 2 * bins), 2 * bins - 1))
        found[tuple(at)] = found.get(tuple(at), 0.0) + float(stats.binom.pmf(i, 20, 0.3))
    assert {tuple(row.tolist()) for row in half} == {key for key, p in found.items() if p > 1e-15}
    for p, row in zip(mass, half, strict=True):
        assert p == pytest.approx(found[tuple(row.tolist())], rel=1e-9)


def test_histograms_and_leaders_agree_with_those_of_scores() -> None:
    rng = np.random.default_rng(3)
    for bins in (2, 4, 7):
        scores = rng.random((50, 30)).round(2)
        half = np.minimum(np.floor(scores * 2 * bins), 2 * bins - 1).astype(np.int64)
        counts = np.array([np.bincount(row, minlength=2 * bins) for row in half])
        readings = ScoreHistograms(bins)(scores)
        for i, one in enumerate(histograms(counts)):
            index, distance = leader(one)
            assert np.array_equal(2 * index + 1 + i, readings.values[i])
            assert np.array_equal(distance, readings.distances[i])


@pytest.mark.parametrize("votes", [[0.3] * 9 + [0.8], [0.3] * 5 + [0.4] * 5, [0.05, 0.3, 0.3, 0.8, 0.8, 0.8]])
def test_the_law_of_one_label(votes: list[float]) -> None:
    mechanism = OneSoftLabel(8.0, 0.3, 4)
    law, n = mechanism.law(np.array(votes)), 40_000
    drawn = np.asarray(mechanism(np.array(votes), n, np.random.default_rng(4)))
    counts = np.array([(drawn == code).sum() for code in law.outcomes])
    assert counts.sum() == n
    assert fits(counts, n * law.probabilities)
    # The same as the family that takes any classifiers.
    scale = noise_scale(8.0, 0.3, 1)
    bar = corrected_threshold(scale, 0.3, 1)
    other = SoftLabels(echo, ScoreHistograms(4), 8.0, 0.3, scale, bar, 1).law(np.array(votes)[:, None])
    known = dict(zip(other.outcomes, other.probabilities, strict=True))
    assert {(code,): p for code, p in zip(law.outcomes, law.probabilities, strict=True)} == pytest.approx(
        known, abs=1e-12
    )


def test_runs_have_the_law_of_runs_on_their_votes() -> None:
    """Chunks of one label, three of them, three queries: mixed over the votes by enumeration."""
    data = VotePopulation(0.4, 1, (0.1, 0.3), (0.8, 0.3), (0, 1, 0))
    mechanism, n = FreshSoftLabels(4, 3, 0.5, 0.3, 2), 60_000
    expected: dict[tuple[int, ...], float] = {}
    for ones in range(4):
        labels = np.array([1.0] * ones + [0.0] * (3 - ones))
        scores = np.column_stack([0.1 + 0.8 * labels, 0.3 + 0.3 * labels, 0.1 + 0.8 * labels])
        law = SoftLabels(echo, ScoreHistograms(4), 1.0, 0.1, 0.5, 0.3, 2).law(scores)
        for outcome, p in zip(law.outcomes, law.probabilities, strict=True):
            key = tuple(int(x) for x in np.asarray(outcome))
            expected[key] = expected.get(key, 0.0) + float(p) * float(stats.binom.pmf(ones, 3, 0.4))
    drawn = [tuple(row) for row in mechanism(data, n, np.random.default_rng(5)).tolist()]
    assert set(drawn) <= set(expected)
    keys = list(expected)
    counts = np.array([drawn.count(key) for key in keys])
    assert fits(counts, n * np.array([expected[key] for key in keys]))
    assert any(HALTED in key for key in keys)


def test_errors_of_runs() -> None:
    data = VotePopulation(0.5, 1, (0.0, 0.5), (0.5, 0.5))
    errors = LargestLabelError(FreshSoftLabels(4, 3, 1.0, 1.0), data)
    codes = np.array([[2, 6], [1, 8], [BOTTOM, 6], [2, HALTED]])
    assert errors(codes).tolist() == [0.0, 0.25, math.inf, math.inf]


def test_sizes() -> None:
    assert printed_chunks(1.0, 0.01, 0.1, 1, 1) == 2960
    scale = noise_scale(1.0, 0.01, 1)
    assert scale == pytest.approx(math.sqrt(64 * math.log(200)))
    # 136 sqrt(2) / 8 = 24.04 lambda ln(.), a third of it 8.01, against the 8 of Theorem 5.6.
    assert pytest.approx(136 * math.sqrt(2) / 24 * scale * math.log(800), abs=1 / 3) == 2960 / 3
    assert stable_distance(1.0, 0.01, 0.1, 1, 1) == pytest.approx(8 * scale * math.log(800))
    assert lemma_chunks(10.0, 5.0, 0.1) == math.ceil(3 * (math.sqrt(5) * 10 * math.log(20) + 5))
    assert [bins_of(width) for width in (0.5, 0.4, 1 / 3, 0.3, 0.25, 1 / 49)] == [2, 2, 3, 3, 4, 49]
    assert bins_of(16 * math.sqrt(2) * (1 / (64 * math.sqrt(2)))) == 4


@pytest.mark.parametrize(("beta", "golden"), [(0.5, 0.536), (0.1, 0.464), (0.01, 0.356), (1e-4, 0.207)])
def test_golden_ratios_of_the_lemmas_noise(beta: float, golden: float) -> None:
    assert tail(math.sqrt(5) * math.log(2 / beta), 1.0) / (beta / 2) == pytest.approx(golden, abs=5e-4)


@pytest.mark.parametrize(("q", "expected", "error"), [(0.25, 0.503905, 0.128905), (0.4, 0.506249, 0.131249)])
@pytest.mark.parametrize("threshold", [printed_threshold, corrected_threshold])
def test_the_counterexample_to_the_main_theorem(q: float, expected: float, error: float, threshold: Any) -> None:
    data = VotePopulation(q, 1, (0.5 - 1e-6,), (1 / 64,))
    # Stability for every q, so under both readings of Definition 5.7; gamma is 1/4 without rounding it.
    assert data.alpha_everywhere == pytest.approx(1 / (64 * math.sqrt(2)), rel=1e-12)
    width = 16 * data.alpha_everywhere * math.sqrt(2)
    assert width == pytest.approx(0.25, rel=1e-12)
    assert data.expectations[0] == pytest.approx(expected, abs=1e-6)
    scale = noise_scale(1.0, 0.01, 1)
    mechanism = FreshSoftLabels(bins_of(width), 2960, scale, threshold(scale, 0.01, 1))
    errors = LargestLabelError(mechanism, data)(mechanism(data, 200, np.random.default_rng(6)))
    known = failure(mechanism, data, 0.125)
    assert known > 0.9999
    assert stats.binomtest(int((errors > 0.125).sum()), 200, known).pvalue > ALARM
    assert np.median(errors) == pytest.approx(error, abs=1e-6)
    # As corrected: the label is there and within 12 alpha sqrt(2).
    assert failure(mechanism, data, 0.1875) < 1e-12
    # By the distribution of the number of votes on the left, once more: the plain test decides.
    lefts = np.arange(2961)
    distance = np.maximum(np.abs(2 * lefts - 2960) - 1, 0)
    passed = np.array([tail(mechanism.bar - d, scale) for d in distance])
    second = tail(mechanism.bar - 2959, scale)
    assert known == pytest.approx(1 - float(stats.binom.pmf(lefts, 2960, 1 - q) @ (1 - passed)) * second, abs=1e-12)


def test_failure_on_fewer_votes_against_draws() -> None:
    data, n = VotePopulation(0.4, 1, (0.5 - 1e-6,), (1 / 64,)), 50_000
    mechanism = FreshSoftLabels(4, 15, 1.0, 2.0)
    errors = LargestLabelError(mechanism, data)(mechanism(data, n, np.random.default_rng(7)))
    for at_most in (0.0, 0.01, 0.125, 0.15):
        known = failure(mechanism, data, at_most)
        assert stats.binomtest(int((errors > at_most).sum()), n, known).pvalue > ALARM


def test_queries_of_no_quality_cost_a_test_each() -> None:
    """The stream of the experiment: all labels are given out, three of them by the shifted histogram."""
    stream = (0, 1, 2, *(0, 1) * 4, 2, *(0, 1) * 3, 2, 0)
    data = VotePopulation(0.02, 1 << 16, (0.0, 0.98, 0.49), (1.0, 0.02, 0.5), stream)
    scale = noise_scale(1.0, 0.01, 3)
    chunks = printed_chunks(1.0, 0.01, 0.1, len(stream), 3)
    run = FreshSoftLabels(8, chunks, scale, corrected_threshold(scale, 0.01, len(stream)), 3)
    codes = run(data, 50, np.random.default_rng(8))
    plain = {0: 1, 1: 15, 2: 8}
    assert np.all(codes == np.array([plain[x] for x in stream]))


@pytest.mark.parametrize(("threshold", "golden"), [(printed_threshold, 0.06475), (corrected_threshold, 0.003328)])
def test_leaks_of_two_failing_tests(threshold: Any, golden: float) -> None:
    """One vote of .30 or .80: nothing is stable, and whatever is given out tells them apart; at any epsilon."""
    for epsilon in (0.1, 10.0):
        scale = noise_scale(epsilon, 0.01, 1)
        mechanism = FreshSoftLabels(4, 1, scale, threshold(scale, 0.01, 1))
        law = mechanism.first_law(np.bincount([2], minlength=8))
        assert 1 - float(law[BOTTOM]) == pytest.approx(golden, abs=5e-6)


def test_mutants_of_one_label() -> None:
    mechanism = OneSoftLabel(1.0, 0.01, 4)
    clear, tied = np.full(1000, 0.3), np.array([0.3, 0.3, 0.3, 0.8, 0.8])
    for name, x, value in (("sample_mean_output", clear, 0.05), ("threshold_test_skipped", tied, 0.8)):
        y = x.copy()
        y[0] = value
        built: Any = LABELS_MUTANTS[name].build(mechanism)
        assert curve(mechanism.law(x), mechanism.law(y)).delta(1.0) <= 0.01
        assert curve(built.law(x), built.law(y)).epsilon(0.01) == math.inf
        for data in (x, y):
            law = built.law(data)
            drawn = np.asarray(built(data, 2000, np.random.default_rng(9)))
            counts = np.array([(drawn == outcome).sum() for outcome in law.outcomes])
            assert counts.sum() == 2000
            assert fits(counts, 2000 * law.probabilities)


# ------------------------------------------------------------------------------- labels with noise


def test_labels_with_gaussian_noise() -> None:
    for margin in (0.25, 1.0, 16.0):
        law = GaussianLabels(margin)
        assert 1 - law.unlikely(margin) == pytest.approx(stats.norm.cdf(math.sqrt(8)), rel=1e-12)
        assert 1 - law.unlikely(margin) == pytest.approx(0.99766, abs=5e-6)
        assert law.unlikely(2 * margin) < law.printed(2 * margin)
        for x in (margin, -1.5 * margin):
            drawn = law(x, 20_000, np.random.default_rng(10))
            known = law.unlikely(x)
            assert stats.binomtest(int((drawn != (x > 0)).sum()), 20_000, known).pvalue > ALARM
    assert 1 - 2 * math.exp(-4) == pytest.approx(0.96, abs=0.005)
    linear: Any = LABEL_MUTANTS["variance_c_over_8"].build(GaussianLabels(0.25))
    squared: Any = LABEL_MUTANTS["std_for_variance"].build(GaussianLabels(16.0))
    assert linear.unlikely(0.25) == pytest.approx(stats.norm.sf(math.sqrt(2)))
    assert squared.unlikely(16.0) == pytest.approx(stats.norm.sf(0.5))


# ------------------------------------------------------------------------------------------ errors


def test_errors_show_what_was_given() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"1\.2"):
        BernoulliVote(1.2, 5)
    with pytest.raises(ValueError, match="got 0"):
        BernoulliVote(0.2, 0)
    with pytest.raises(ValueError, match=r"0\.4"):
        BernoulliVote(0.2, 5, (CoinOutcome(0.4, 0.0, 1.0),))
    with pytest.raises(ValueError, match=r"1\.5"):
        BernoulliVote(0.2, 5, (CoinOutcome(1.0, 0.5, 1.0),))
    with pytest.raises(ValueError, match="got 0"):
        FarVotes(0, 0.1)
    with pytest.raises(ValueError, match="window > 0"):
        FarVotes(3, 0.0)
    with pytest.raises(ValueError, match=r"1\.0"):
        enough_chunks(1.0)
    with pytest.raises(ValueError, match=r"-0\.1"):
        VotePopulation(0.2, 5, (-0.1,), (1.0,))
    with pytest.raises(ValueError, match="positive slopes"):
        VotePopulation(0.2, 5, (0.1,), (0.0,))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        VotePopulation(0.2, 5, (0.0,), (1.0,), (3,))
    with pytest.raises(ValueError, match="got 1"):
        FreshSoftLabels(1, 3, 1.0, 1.0)
    with pytest.raises(ValueError, match="scale > 0"):
        FreshSoftLabels(2, 3, 0.0, 1.0)
    with pytest.raises(ValueError, match="inf"):
        FreshSoftLabels(2, 3, 1.0, math.inf)
    with pytest.raises(ValueError, match=r"0\.7"):
        bins_of(0.7)
    with pytest.raises(ValueError, match="two ways to vote"):
        failure(FreshSoftLabels(4, 3, 1.0, 1.0), VotePopulation(0.5, 50), 0.1)
    with pytest.raises(ValueError, match=r"votes in \[0, 1\]"):
        OneSoftLabel(1.0, 0.01, 4)(np.array([1.5]), 1, rng)
    with pytest.raises(ValueError, match=r"0\.5"):
        GaussianLabels(1.0)(0.5, 1, rng)
    with pytest.raises(ValueError, match="margin > 0"):
        GaussianLabels(-1.0)
