"""Exact samplers of integer noise against their distributions, computed another way.

Counts of draws in cells are compared with exact binomial quantiles at 1e-7 / (number of cells), two-sided, so one
comparison alarms falsely with probability at most 1e-7 for any seed; no test makes more than 10 of them.
"""

from __future__ import annotations

import decimal
import math
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mechanisms.base import integer_noise as lattice
from mechanisms.base.integer_noise import discrete_gaussian, draw_geometric, two_sided_geometric

FALSE_ALARM = 1e-7
DRAWS = 100_000


def assert_counts(draws: NDArray[np.int64], edges: NDArray[np.int64], below: Callable[[int], float]) -> None:
    """Compare draws in the cells between the edges with ``below(k) = P[Z <= k]``."""
    cells = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)
    mass = np.diff(np.array([0.0, *(below(int(k)) for k in edges), 1.0]))
    tail = FALSE_ALARM / (2 * cells.size)
    low, high = stats.binom.ppf(tail, draws.size, mass), stats.binom.isf(tail, draws.size, mass)
    assert np.all((low <= cells) & (cells <= high)), (edges, cells, draws.size * mass)


def cells_of_width(spread: float, low: float = -3.0) -> NDArray[np.int64]:
    """Edges from `low` to 3 spreads."""
    return np.unique(np.rint(np.linspace(low, 3.0, 13) * spread)).astype(np.int64)


# ------------------------------------------------------------------------------ the distribution of draws


@pytest.mark.parametrize("a", [1 + 2.0**-30, 1.001, 1.5, math.e, 7.0, 1e9])
def test_geometric_draws_follow_their_law(a: float) -> None:
    log_a = math.log1p(a - 1.0)
    draws = draw_geometric(a, DRAWS, np.random.default_rng(1))
    assert draws.min() >= 0
    assert_counts(draws, cells_of_width(1.0 / log_a, 0.0), lambda k: -math.expm1(-(k + 1) * log_a))
    draws = two_sided_geometric(a, DRAWS, np.random.default_rng(2))

    def below(k: int) -> float:
        tail = math.exp(-log_a * (k if k >= 0 else -k - 1)) / (a + 1.0)
        return 1.0 - tail if k >= 0 else tail

    assert_counts(draws, cells_of_width(1.0 / log_a), below)


def gaussian_cdf(sigma: float) -> Callable[[int], float]:
    """Distribution function of the discrete Gaussian, by summing its masses one by one."""
    reach = math.ceil(40.0 * sigma) + 1  # e^-800 is beyond float64
    mass = [math.exp(-0.5 * (k / sigma) ** 2) for k in range(-reach, reach + 1)]
    total, sums = math.fsum(mass), np.cumsum(mass)
    return lambda k: float(sums[k + reach]) / total


@pytest.mark.parametrize("sigma", [0.2, 0.75, 1.0, 1.999, 3.7, 50.25, 1234.5])
def test_discrete_gaussian_draws_follow_their_law(sigma: float) -> None:
    draws = discrete_gaussian(sigma, DRAWS, np.random.default_rng(3))
    assert_counts(draws, cells_of_width(sigma), gaussian_cdf(sigma))


@pytest.mark.parametrize("resolution", [1, 3, 10])
@pytest.mark.parametrize("sigma", [0.3, 2.5, 40.0])
def test_the_slow_path_follows_the_same_law(monkeypatch: pytest.MonkeyPatch, sigma: float, resolution: int) -> None:
    exactly = lattice._accept_exactly
    slow: list[int] = []

    def counted(y: int, *rest: Any) -> bool:
        slow.append(y)
        return exactly(y, *rest)

    monkeypatch.setattr(lattice, "_accept_exactly", counted)
    draws = discrete_gaussian(sigma, 4_000, np.random.default_rng(4), resolution=resolution)
    assert_counts(draws, cells_of_width(sigma), gaussian_cdf(sigma))
    # U has the leading bits of p with probability 2^-resolution, whatever p is. At 3 bits 750 of the first 6,016
    # proposals are expected, and 300 are 17 standard deviations fewer; at 10 bits it may be none.
    assert resolution == 10 or len(slow) > 300


def test_the_fast_path_decides_nearly_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> bool:
        raise AssertionError("the slow path was taken")

    monkeypatch.setattr(lattice, "_accept_exactly", never)
    # Half a million proposals at 2^-45 each: 2e-8.
    discrete_gaussian(100.0, 300_000, np.random.default_rng(5))


def test_wide_noise_fits_into_its_integers() -> None:
    # The narrowest ratio there is: G is below 2^60 and 2^52 on average; its mean of 1,000 is within 30 % but for
    # probability below 1e-10 (Chernoff bounds for the exponential distribution, of which G / 2^52 is a rounding).
    draws = draw_geometric(math.nextafter(1.0, 2.0), 1_000, np.random.default_rng(6))
    assert 0.7 < draws.mean() / 2.0**52 < 1.3
    assert draws.max() < 2**60
    # The chi-square distribution of the sum of squares, two-sided 1e-7; the lattice is far too fine to show.
    wide = discrete_gaussian(2.0**40, 1_000, np.random.default_rng(7)) / 2.0**40
    law = stats.chi2(1_000)
    assert law.ppf(FALSE_ALARM / 2) < float((wide**2).sum()) < law.isf(FALSE_ALARM / 2)


# --------------------------------------------------------------------------- binary digits of draws


@pytest.mark.parametrize("r", [Fraction(1, 2), Fraction(2, 7), Fraction(99, 100)])
def test_independent_digits_make_a_geometric_number(r: Fraction) -> None:
    """All 2^6 combinations of six independent digits, in exact arithmetic."""
    one = [r ** (2**i) / (1 + r ** (2**i)) for i in range(6)]
    mass = dict.fromkeys(range(64), Fraction(0))
    for bits in product((0, 1), repeat=6):
        number = sum(bit << i for i, bit in enumerate(bits))
        mass[number] += math.prod((p if bit else 1 - p for p, bit in zip(one, bits, strict=True)), start=Fraction(1))
    # The geometric distribution, given that the number is below 64.
    assert mass == {k: (1 - r) * r**k / (1 - r**64) for k in range(64)}


def value(words: NDArray[np.uint16]) -> Fraction:
    return Fraction(int("".join(f"{int(word):016b}" for word in words), 2), 2**256)


@pytest.mark.parametrize("a", [math.e, 1.5, 1.0 + 2.0**-20, 1e30])
def test_expansions_are_those_of_the_probabilities(a: float) -> None:
    table = lattice._of_base(a)
    r = 1 / Fraction(a)
    for i, words in enumerate(table[:8]):  # later powers of an exact rational have too many digits
        p = r ** (2**i) / (1 + r ** (2**i))
        assert 0 <= p - value(words) < Fraction(1, 2**256) + Fraction(1, 2**320)
    # The first power that is left out is below 2^-256, and the last that is not left out is above.
    assert 2 ** len(table) * math.log1p(a - 1.0) > 256 * math.log(2.0)
    assert 2 ** (len(table) - 1) * math.log1p(a - 1.0) < 256 * math.log(2.0) * (1 + 1e-12)


@pytest.mark.parametrize("t", [1, 2, 1000, 2**40])
def test_the_proposals_ratio_is_the_exponential(t: int) -> None:
    # The alternating series of exp(-1/t) in exact arithmetic: 80 terms leave less than 1/80! = 1e-118.
    r = sum(((-1) ** j * Fraction(1, t**j * math.factorial(j)) for j in range(80)), start=Fraction(0))
    assert abs(value(lattice._of_scale(t)[0]) - r / (1 + r)) < Fraction(1, 2**255)


class Fixed:
    """A generator that gives one word of 16 bits a call."""

    def __init__(self, words: list[int]) -> None:
        self.left = list(words)

    def integers(self, *_: Any, **__: Any) -> NDArray[np.uint64]:
        return np.array([self.left.pop(0)], dtype=np.uint64)


def test_ties_are_decided_by_the_first_word_that_differs() -> None:
    table = lattice._of_base(math.e)
    target = [int(word) for word in table[2]]
    digit = np.array([2])

    def less(words: list[int]) -> bool:
        source: Any = Fixed(words)
        decided = bool(lattice._later_words(table, digit, source)[0])
        assert not source.left
        return decided

    assert less([target[1] - 1])
    assert not less([target[1] + 1])
    assert less([*target[1:4], target[4] - 1])
    assert not less([*target[1:4], target[4] + 1])
    assert not less(target[1:])  # all 256 bits agree: U is at least what is known of p


def test_ties_have_the_conditional_probability() -> None:
    # Given equal first words, U < p with the probability that the rest of p's bits spell.
    table = lattice._of_base(1.7)
    for digit in (0, 1, 2):
        ties = lattice._later_words(table, np.full(DRAWS, digit), np.random.default_rng(8))
        rest = float((value(table[digit]) * 2**16) % 1)
        low, high = stats.binom(DRAWS, rest).ppf(5e-8), stats.binom(DRAWS, rest).isf(5e-8)
        assert low <= np.count_nonzero(ties) <= high


def test_ties_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tie every 65,536 words.
    seen: list[NDArray[np.int64]] = []
    later = lattice._later_words

    def counted(expansions: Any, digit: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        seen.append(digit)
        return later(expansions, digit, rng)

    monkeypatch.setattr(lattice, "_later_words", counted)
    draw_geometric(1.2, 2_000_000, np.random.default_rng(9))
    digits = len(lattice._of_base(1.2))
    ties = np.bincount(np.concatenate(seen), minlength=digits)
    law = stats.binom(2_000_000 * digits, 2.0**-16)
    assert law.ppf(FALSE_ALARM) <= ties.sum() <= law.isf(FALSE_ALARM)
    assert (ties > 0).all()  # a digit without any: (1 - 2^-16)^(2 10^6), 6e-14 each


# ----------------------------------------------------------------------------------- rejection


@pytest.mark.parametrize("sigma", [2.0**-10, 0.3, 1.0, 17.3, 1e6, 2.0**40])
def test_the_bound_on_the_error_of_acceptance_holds(sigma: float) -> None:
    t = math.floor(sigma) + 1
    spread = np.random.default_rng(10).laplace(0.0, t, 300)
    y = np.concatenate([np.arange(-3, 4), np.rint(spread), np.rint([40.0 * t, 350.0 * t])]).astype(np.int64)
    p, error = lattice._acceptance(y, sigma, t)
    for k, (got, slack) in enumerate(zip(p.tolist(), error.tolist(), strict=True)):
        variance = Fraction(sigma) ** 2
        x = (abs(int(y[k])) - variance / t) ** 2 / (2 * variance)
        with decimal.localcontext(decimal.Context(prec=60, Emin=-(10**9))):
            exact = (-decimal.Decimal(x.numerator) / x.denominator).exp()
            assert abs(decimal.Decimal(got) - exact) <= decimal.Decimal(slack)
        assert slack <= 1e-3 * got + 2.0**-999  # a bound of no use would hold too
    assert np.all(error[:7] < 1e-9)


def test_proposals_are_accepted_often_enough() -> None:
    # Mass accepted over mass proposed, by summation, over the whole range of sigma / t.
    for sigma in (1e-3, 0.3, 0.999, 1.0, 1.5, 2.0, 7.9, 100.0):
        t = math.floor(sigma) + 1
        k = np.arange(-50 * t, 50 * t + 1)
        proposed = np.exp(-np.abs(k) / t)
        accepted = proposed @ np.exp(-((np.abs(k) - sigma**2 / t) ** 2) / (2 * sigma**2)) / proposed.sum()
        assert 0.4 < accepted < 0.8


# --------------------------------------------------------------------------------------- calls


Draw = Callable[[np.random.Generator, Any], NDArray[np.int64]]
SAMPLERS: list[Draw] = [
    lambda rng, size: draw_geometric(1.3, size, rng),
    lambda rng, size: two_sided_geometric(1.3, size, rng),
    lambda rng, size: discrete_gaussian(5.0, size, rng),
    lambda rng, size: discrete_gaussian(5.0, size, rng, resolution=4),
]


@pytest.mark.parametrize("draw", SAMPLERS)
def test_draws_depend_on_the_generator_alone(draw: Draw) -> None:
    one = draw(np.random.default_rng(11), (40, 5))
    assert one.shape == (40, 5)
    assert one.dtype == np.int64
    np.testing.assert_array_equal(draw(np.random.default_rng(11), (40, 5)), one)
    np.testing.assert_array_equal(draw(np.random.default_rng(11), 200), one.ravel())
    assert draw(np.random.default_rng(11), ()).shape == ()
    assert draw(np.random.default_rng(11), 0).shape == (0,)
    # 200 equal draws, of probability at most 0.24 each: below 1e-120.
    assert not np.array_equal(draw(np.random.default_rng(12), 200), one.ravel())


def test_blocks_are_not_seen_in_the_law() -> None:
    # Three blocks and a part of one; the draws of the last part follow the distribution as well.
    draws = draw_geometric(2.0, 3 * lattice._BLOCK + 1_000, np.random.default_rng(13))
    assert_counts(draws[-1_000:], np.arange(6), lambda k: 1.0 - 0.5 ** (k + 1))


def test_no_loop_runs_over_draws() -> None:
    # 0.04 s and 0.2 s of processor time were measured; a Python loop over 10^6 draws takes several times the limit.
    for draw in (two_sided_geometric, discrete_gaussian):
        begun = time.process_time()
        draw(math.e, 1_000_000, np.random.default_rng(14))
        assert time.process_time() - begun < 2.0


@pytest.mark.parametrize(
    "build",
    [
        lambda rng: draw_geometric(1.0, 3, rng),
        lambda rng: draw_geometric(math.inf, 3, rng),
        lambda rng: two_sided_geometric(0.5, 3, rng),
        lambda rng: two_sided_geometric(math.nan, 3, rng),
        lambda rng: discrete_gaussian(0.0, 3, rng),
        lambda rng: discrete_gaussian(math.nan, 3, rng),
        lambda rng: discrete_gaussian(2.0**41, 3, rng),
        lambda rng: discrete_gaussian(1.0, 3, rng, resolution=0),
        lambda rng: discrete_gaussian(1.0, 3, rng, resolution=54),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[np.random.Generator], object]) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        build(np.random.default_rng(0))
