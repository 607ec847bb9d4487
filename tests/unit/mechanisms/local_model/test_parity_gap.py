"""Brute force over parities by local users: its distributions against users one by one, and sample sizes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.accuracy import Setting
from experiments.document_002_what_can_we_learn.gap import _base_samples, _central_setting, _split, gap
from mechanisms.base.noise import two_sided_geometric
from mechanisms.learning.amplified_fresh import FreshAmplified, uniform_success
from mechanisms.learning.amplified_parity import corrected
from mechanisms.local_model.fresh_users import FreshUsers
from mechanisms.local_model.parity_gap import BundledParity, LocalParity, bundled_users, local_users, wrong_answer

FloatArray = NDArray[np.float64]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def noise_mass(a: float, terms: int, reach: int) -> FloatArray:
    """Distribution of a sum of two-sided geometric variables on -reach..reach, by convolution of the printed one."""
    k = np.arange(-reach, reach + 1)
    one = a ** -np.abs(k).astype(float) * (a - 1) / (a + 1)
    total = one
    for _ in range(terms - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    return total[middle - reach : middle + reach + 1]


def wrong_mass(epsilon: float, users: int, reach: int) -> FloatArray:
    noise, mass = noise_mass(math.exp(epsilon / 2), users, 2 * reach), np.zeros(2 * reach + 1)
    for signs in itertools.product((-1, 1), repeat=users):
        start = reach - sum(signs)
        mass += noise[start : start + 2 * reach + 1] / 2**users
    return mass


@pytest.mark.parametrize(("epsilon", "users"), [(1.0, 1), (0.5, 2), (3.0, 5)])
def test_the_law_of_a_wrong_answer(epsilon: float, users: int) -> None:
    reach, cdf = wrong_answer(epsilon, users)
    wanted = np.cumsum(wrong_mass(epsilon, users, 60))
    assert cdf[reach - 60 : reach + 61] - cdf[reach - 61] == pytest.approx(wanted, abs=1e-13)
    assert reach >= 61
    assert np.all(np.diff(cdf) >= 0)
    assert cdf[-1] == 1.0


@pytest.mark.parametrize(("d", "epsilon", "users"), [(1, 1.0, 1), (2, 2.0, 3), (4, 3.0, 4)])
def test_failures_by_convolution(d: int, epsilon: float, users: int) -> None:
    reach = 120
    wrong, noise = wrong_mass(epsilon, users, reach), noise_mass(math.exp(epsilon / 2), users, reach)
    below = np.concatenate([[0.0], np.cumsum(wrong)])  # of at most k - 1, for k from -reach on
    success = sum(noise[reach + k] * below[reach + users + k] ** (2**d - 1) for k in range(-reach, reach - users))
    assert LocalParity(d, epsilon, users).failure() == pytest.approx(1 - success, abs=1e-11)


@pytest.mark.parametrize(("d", "epsilon", "users"), [(1, 1.0, 6), (3, 1.0, 40), (5, 2.0, 25)])
def test_margins_are_those_of_users_one_by_one(d: int, epsilon: float, users: int) -> None:
    n, rng, target = 20_000, np.random.default_rng(2), np.ones(d, dtype=int)
    local = LocalParity(d, epsilon, users)
    margins = local(target, n, rng)
    exact = local.failure()
    assert 0.02 < exact < 0.98
    assert stats.binomtest(int((margins <= 0).sum()), n, exact).pvalue > ALARM / 3
    # The oracle that answers each query from users of its own, with messages that are integers.
    truth = np.zeros((n, 2**d))
    truth[:, 0] = 1.0
    answers = FreshUsers(epsilon, users, step=1.0)(truth, 0.5, rng)
    others = answers[:, 0] - answers[:, 1:].max(axis=1)
    assert stats.binomtest(int((others <= 1e-9).sum()), n, exact).pvalue > ALARM / 3
    assert stats.ks_2samp(np.rint(margins * users), np.rint(others * users)).pvalue > ALARM / 3


def messages(d: int, epsilon: float, users: int, target: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Sums of what users send about all parities, user by user, shape (n, 2^d)."""
    x = rng.integers(0, 2**d, (n, users))
    y = np.bitwise_count(x & target) & 1
    sums = np.empty((n, 2**d), dtype=np.int64)
    a = math.exp(epsilon / 2**d / 2)
    for r in range(2**d):
        values = 1 - 2 * (((np.bitwise_count(x & r) & 1) + y) % 2).astype(np.int64)
        sums[:, r] = (values + two_sided_geometric(a, (n, users), rng)).sum(axis=1)
    return sums


def test_bundled_answers_are_those_of_users_one_by_one() -> None:
    d, epsilon, users, target, n = 2, 8.0, 12, 2, 8_000
    rng = np.random.default_rng(6)
    bundled = BundledParity(d, epsilon, users)
    bits = np.array([0, 1])
    drawn, wanted = bundled.sums(bits, n, rng), messages(d, epsilon, users, target, n, rng)
    for r in range(2**d):
        assert stats.ks_2samp(drawn[:, r], wanted[:, r]).pvalue > ALARM / 8
    # Sums and differences show how the answers hang together.
    for s, r in itertools.combinations(range(2**d), 2):
        assert stats.ks_2samp(drawn[:, s] + drawn[:, r], wanted[:, s] + wanted[:, r]).pvalue > ALARM / 16
    margins = bundled(bits, n, rng)
    failed = [int((margins <= 0).sum()), int((wanted[:, target] <= np.delete(wanted, target, 1).max(axis=1)).sum())]
    assert stats.fisher_exact(np.array([failed, [n - f for f in failed]])).pvalue > ALARM / 8


def test_without_noise_bundled_answers_are_those_of_the_examples() -> None:
    # At this level a message is right with all but e^-250.
    d, users = 2, 40
    sums = BundledParity(d, 2000.0, users).sums(np.array([1, 1]), 500, np.random.default_rng(1))
    assert np.all(sums[:, 3] == users)
    # Four numbers of users, which are not negative, sum to all of them.
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    counts = sums[:, np.arange(4) ^ 3] @ signs / 4
    assert np.all(counts == np.rint(counts))
    assert counts.min() >= 0
    assert np.all(counts.sum(axis=1) == users)
    assert stats.chisquare(counts.sum(axis=0)).pvalue > ALARM


def test_the_messages_of_a_user_cost_epsilon() -> None:
    for d, epsilon in ((1, 0.3), (4, 1.0), (8, 2.0)):
        base = BundledParity(d, epsilon, 1).base
        # All 2^d messages move by two steps.
        assert 2**d * 2 * math.log(base) <= epsilon * (1 + 1e-12)
        assert 2**d * 2 * math.log(base) == pytest.approx(epsilon, rel=1e-9)


# ------------------------------------------------------------------------------------ sample sizes


def test_sample_sizes_of_the_catalogue() -> None:
    epsilon, beta, tau = 1.0, 0.05, 0.49
    for d in (1, 4, 12):
        t = 2**d
        own = math.log(4 * t / beta) * 64 / (epsilon * tau) ** 2 * (1 + epsilon * tau / 8)
        assert local_users(d, epsilon, beta) == t * math.ceil(own)
        shared = math.log(4 * t / beta) * 64 * t**2 / (epsilon * tau) ** 2 * (1 + epsilon * tau / t / 8)
        assert bundled_users(d, epsilon, beta) == math.ceil(shared)
    # From 2 sqrt 2 on, and a little beyond, sampling is what costs.
    assert local_users(4, 2.8, beta) < local_users(4, 2.7, beta)
    assert local_users(4, 8.0, beta) == local_users(4, 80.0, beta)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_theorem_sizes_suffice(epsilon: float) -> None:
    for d in (2, 6):
        assert LocalParity(d, epsilon, local_users(d, epsilon, 0.05) // 2**d).failure() <= 0.05


def test_the_least_sample_of_a_alone() -> None:
    # Catalogue: n eps / d is 3.5 to 3.97 for d from 4 to 32.
    found = {d: _base_samples(d) for d in (4, 8, 16, 32)}
    assert found[4] / 4 == 3.5
    assert found[32] / 32 == pytest.approx(3.97, abs=5e-3)
    for d, n in found.items():
        assert uniform_success(1.0, n - 1, d) < 0.25 <= uniform_success(1.0, n, d)


def test_success_of_a_by_enumeration_of_examples() -> None:
    # Two bits, three examples: all x, all subsets, and the number of parities that agree.
    p, success = 0.25, 0.0
    for xs in itertools.product(range(4), repeat=3):
        for taken in itertools.product((0, 1), repeat=3):
            weight = math.prod(p if t else 1 - p for t in taken) / 4**3
            used = [x for x, t in zip(xs, taken, strict=True) if t]
            agree = sum(all((r & x).bit_count() % 2 == 0 for x in used) for r in range(4))
            success += 0.5 * weight / agree
    assert uniform_success(1.0, 3, 2) == pytest.approx(success, rel=1e-12)


def test_samples_are_divided_as_the_theorem_does() -> None:
    for d in (4, 12):
        full = corrected(d, 1.0, 0.49, 0.05)
        assert _split(d, full.needed) == full
        for samples in (60, 400, 5000):
            split = _split(d, samples)
            assert split.rounds == full.rounds
            assert split.needed <= max(samples, split.rounds + split.tests)
            assert samples - split.needed < split.rounds
    setting = _central_setting(4, 400)
    assert isinstance(setting, Setting)
    assert isinstance(setting.mechanism, FreshAmplified)


def test_the_three_curves_are_in_one_figure() -> None:
    figures = [getattr(claim.draft.guarantee, "figure", None) for claim in gap.claims()]
    named = [figure for figure in figures if figure is not None]
    assert {figure.name for figure in named} == {"Learning a parity of d bits"}
    assert len({figure.curve for figure in named}) == len(named) == 3


# -------------------------------------------------------------------------------------- errors


def test_bad_values_are_shown() -> None:
    with pytest.raises(ValueError, match="bits d >= 1, got 0"):
        LocalParity(0, 1.0, 3)
    with pytest.raises(ValueError, match="users >= 1, got 0"):
        LocalParity(2, 1.0, 0)
    with pytest.raises(ValueError, match="at most 16 bits, got 17"):
        BundledParity(17, 1.0, 3)
    with pytest.raises(ValueError, match=r"epsilon > 0, got -1\.0"):
        BundledParity(2, -1.0, 3)
    with pytest.raises(ValueError, match="2 bits, got"):
        LocalParity(2, 1.0, 3)(np.array([0, 2]), 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="draws n >= 1, got 0"):
        LocalParity(2, 1.0, 3)(np.array([0, 1]), 0, np.random.default_rng(0))
