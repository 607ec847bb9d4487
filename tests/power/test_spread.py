"""Losses spread over many coordinates: refuted near the oracle's draws, with nothing told about the event."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from auditor.evidence.power import divergence_rate
from auditor.privacy.guarantees import GaussianDP, PureDP
from benchmarks.mutants import ALPHA, oracle
from benchmarks.spread import ShiftedVector, VectorCase, audit_vector, mutant_row, spread_mutants, vector_row
from tests.counting import first_that_hold

#: Audits, how many have to be within the factor, and how many are at least: on seeds from 600 on 40 of 40 were.
AUDITS, FACTOR, SHARE = 20, 5.0, 0.95
#: Probability with which the test fails where that share is, whatever the seed.
FALSE_ALARM = 1e-6


def test_small_shifts_of_many_coordinates_are_found_near_the_oracles_draws() -> None:
    enough = int(stats.binom.ppf(FALSE_ALARM, AUDITS, SHARE))
    assert stats.binom.cdf(enough - 1, AUDITS, SHARE) <= FALSE_ALARM
    case = VectorCase("Gaussian", 120, 3, "one", False)
    most = FACTOR * case.oracle().draws
    assert first_that_hold((audit_vector(case, seed) <= most for seed in range(AUDITS)), enough) == enough


def test_the_oracle_of_gaussian_vectors_is_that_of_one_number() -> None:
    # 120 coordinates of deviation s, each moved by 1, are one number of deviation 1 moved by mu = sqrt(120) / s; the
    # best event against mu0 is its upper or lower half, or near it.
    case = VectorCase("Gaussian", 120, 4, "both", False)
    assert case.claim == GaussianDP(0.25)
    assert case.mechanism.curve(120).mu() == pytest.approx(1.0)
    p, p0 = stats.norm.cdf(0.5), stats.norm.cdf(0.125)
    middle = 2 * (p * math.log(p / p0) + (1 - p) * math.log((1 - p) / (1 - p0)))
    assert 0.95 < math.log(1 / ALPHA) / middle / case.oracle().draws <= 1.1
    assert case.cosine(300.0) == pytest.approx((1 + 240 / 300) ** -0.5)


def test_the_learner_needs_as_many_draws_as_directions_that_are_estimated() -> None:
    case, runs, most = VectorCase("Gaussian", 20, 4, "both", False), 40, 300
    cuts, grid = np.linspace(-4.0, 5.0, 901), np.linspace(0.0, 1.0, 51)
    rates = [
        divergence_rate(stats.norm.sf(cuts - level), stats.norm.sf(cuts), case.claim, 0.25).max() for level in grid
    ]
    rng, shift = np.random.default_rng(3), np.asarray(case.pair.y) / math.sqrt(20)  # of length 1, as mu is
    gaps = shift + rng.normal(0.0, math.sqrt(2.0), (runs, most, 20))
    estimates = np.cumsum(gaps, axis=1)
    cosines = np.maximum(estimates @ shift / np.linalg.norm(estimates, axis=2), 0.0)
    gained = np.interp(cosines, grid, rates).cumsum(axis=1).mean(axis=0)
    assert case.learner_draws() == pytest.approx(np.searchsorted(gained, math.log(1 / ALPHA)), rel=0.05)


@pytest.mark.parametrize("noise", ["Laplace", "geometric", "Gaussian"])
def test_noise_has_the_scale_that_gives_the_level(noise: str) -> None:
    rng, case = np.random.default_rng(1), VectorCase(noise, 20, 2, "both", noise != "Gaussian")
    drawn = case.mechanism(case.pair.y, 20_000, rng)
    assert case.pair.y.sum() == 0
    scale = case.mechanism.scale
    a = math.exp(-1 / scale)
    deviation = {"Laplace": math.sqrt(2) * scale, "geometric": math.sqrt(2 * a) / (1 - a), "Gaussian": scale}[noise]
    # Means of 20,000 have an error of a 141st of the deviation; that of a deviation is at most 0.8 %.
    assert np.abs(drawn.mean(axis=0) - case.pair.y).max() < 6 * deviation / math.sqrt(20_000)
    assert np.abs(drawn.std(axis=0) / deviation - 1).max() < 6 * 0.008
    if case.claim == PureDP(1.0):
        assert case.mechanism.curve(20).epsilon(0.0) == pytest.approx(2.0, rel=1e-6)


def test_rows_say_whether_what_is_wanted_was_reached() -> None:
    case = VectorCase("Gaussian", 20, 3, "one", False)
    known = case.oracle().draws
    assert vector_row(case, [2.4 * known] * 3)[1]
    line, good = vector_row(case, [2.6 * known, 2.6 * known, math.inf])
    assert (good, line.split(" | ")[5:7]) == (False, ["2.60", "> 6"])
    names = list(spread_mutants())
    assert len(names) == 4
    found = oracle(spread_mutants()[names[0]])
    assert found is not None
    within, beyond = 4.9 * found.draws, 5.1 * found.draws
    assert mutant_row(names[0], [within] * 9 + [beyond])[1]
    assert not mutant_row(names[0], [within] * 8 + [beyond] * 2)[1]


def test_a_vector_has_a_mechanism_of_its_own_noise() -> None:
    outputs = ShiftedVector("geometric", 3.0)(np.zeros(5, dtype=np.int64), 7, np.random.default_rng(0))
    assert outputs.shape == (7, 5)
    assert outputs.dtype.kind == "i"
