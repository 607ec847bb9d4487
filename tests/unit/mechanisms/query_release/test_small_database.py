"""Synthetic data over small databases: the distribution against brute force, draws and the catalogue's numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.privacy.exact import FiniteLaw, curve
from experiments.common import rand
from mechanisms.query_release.small_database import (
    MUTANTS,
    RandomSubsampleOfData,
    SmallDatabase,
    conjunctions,
    datasets,
    histograms_within,
    largest_errors,
    lecture_alpha,
    lecture_size,
    log_orderings,
    theorem_alpha,
    theorem_size,
    type_table,
    worst_level,
)

COLUMNS = (0, 1)


def rows_of(*counts: int) -> np.ndarray[Any, Any]:
    """A dataset of bits with so many rows of each element."""
    bits = list(itertools.product((0, 1), repeat=len(counts).bit_length() - 1))
    return np.repeat(np.array(bits), counts, axis=0)


# --------------------------------------------------------------------------------- the pieces


def test_the_nine_conjunctions_of_two_bits() -> None:
    found = {tuple(np.flatnonzero(row).tolist()) for row in conjunctions(2)}
    # Elements 0 to 3 are 00, 01, 10, 11.
    assert found == {(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3), (0,), (1,), (2,), (3,)}
    assert [len(conjunctions(d)) for d in (1, 2, 3)] == [3, 9, 27]


def test_errors_are_those_of_every_query() -> None:
    rng = np.random.default_rng(0)
    histograms, truth = rng.integers(0, 9, (20, 8)) + 1, rng.dirichlet(np.ones(8))
    expected = []
    for histogram in histograms:
        worst = 0.0
        for asked in itertools.product((None, 0, 1), repeat=3):
            holds = [
                all(want is None or want == bit for want, bit in zip(asked, element, strict=True))
                for element in itertools.product((0, 1), repeat=3)
            ]
            worst = max(worst, abs(float(histogram[holds].sum() / histogram.sum() - truth[holds].sum())))
        expected.append(worst)
    assert largest_errors(histograms, truth) == pytest.approx(np.array(expected), abs=1e-14)


def test_histograms_within_bounds() -> None:
    low, high, size = np.array([0, 2, 0]), np.array([3, 5, 4]), 7
    found = [tuple(row) for row in histograms_within(low, high, size).tolist()]
    everything = itertools.product(range(4), range(2, 6), range(5))
    assert sorted(found) == sorted(h for h in everything if sum(h) == size)
    assert len(list(datasets(10, 4))) == math.comb(13, 3)
    with pytest.raises(ValueError, match=r"expected at most 4194304 histograms, got \d+"):
        histograms_within(np.zeros(8, dtype=np.int64), np.full(8, 60), 60)


def test_orderings_are_multinomial_coefficients() -> None:
    histograms = np.array([[2, 1, 0, 4], [0, 0, 0, 7]])
    assert np.exp(log_orderings(histograms)) == pytest.approx([105.0, 1.0], rel=1e-12)


# ----------------------------------------------------------------------------------- the distribution


def brute_force(mechanism: SmallDatabase, data: np.ndarray[Any, Any]) -> dict[tuple[int, ...], float]:
    """The document's own distribution, over ordered databases: weights ``exp(u / sigma)``, ``sigma = 2 / (n eps)``."""
    n, m = len(data), mechanism.size
    truth = np.bincount(2 * data[:, 0] + data[:, 1], minlength=4) / n
    weights: Counter[tuple[int, ...]] = Counter()
    for ordered in itertools.product(range(4), repeat=m):
        histogram = np.bincount(ordered, minlength=4)
        score = -max(abs(float(truth[q].sum() - histogram[q].sum() / m)) for q in conjunctions(2))
        weights[tuple(histogram.tolist())] += math.exp(score * n * mechanism.epsilon / 2)  # type: ignore[assignment]
    total = math.fsum(weights.values())
    return {histogram: weight / total for histogram, weight in weights.items()}


@pytest.mark.parametrize("counts", [(7, 0, 0, 0), (3, 1, 2, 1)])
def test_the_law_is_that_of_ordered_databases(counts: tuple[int, ...]) -> None:
    mechanism, data = SmallDatabase(COLUMNS, 1.3, 5), rows_of(*counts)
    law = mechanism.law(data)
    assert dict(zip(law.outcomes, law.probabilities.tolist(), strict=True)) == pytest.approx(
        brute_force(mechanism, data), rel=1e-11
    )


@pytest.mark.parametrize(("n", "m", "epsilon", "level"), [(4, 4, 1, 0.916), (10, 4, 1, 0.887), (10, 8, 1, 0.989)])
def test_exact_levels_of_the_catalogue(n: int, m: int, epsilon: float, level: float) -> None:
    assert worst_level(SmallDatabase(COLUMNS, epsilon, m), n) == pytest.approx(level, abs=5e-4)


def test_the_exact_level_at_two() -> None:
    assert worst_level(SmallDatabase(COLUMNS, 2.0, 8), 8) == pytest.approx(1.960, abs=5e-4)


def test_the_tight_pair_is_a_row_moved_to_the_opposite_element() -> None:
    mechanism = SmallDatabase(COLUMNS, 1.0, 8)
    pair = curve(mechanism.law(rows_of(0, 10, 0, 0)), mechanism.law(rows_of(0, 9, 1, 0)))
    assert pair.epsilon(0.0) == pytest.approx(worst_level(mechanism, 10), rel=1e-9)


@pytest.mark.parametrize("counts", [(1000, 0, 0, 0), (431, 300, 179, 90), (250, 250, 250, 250)])
def test_what_a_table_leaves_out_is_less_than_stated(counts: tuple[int, ...]) -> None:
    for ordered in (True, False):
        part = type_table(counts, 40, 300.0, ordered, False)
        whole = type_table(counts, 40, 300.0, ordered, True)
        known = {tuple(row) for row in part.types.tolist()}
        inside = np.array([tuple(row) in known for row in whole.types.tolist()])
        assert len(part.types) == inside.sum() < len(whole.types)
        assert np.exp(whole.log_mass[~inside]).sum() < math.exp(-45)
        # Relative to e^-500 for the rarest: what differs is the rounding of logarithms of that size.
        assert part.log_mass == pytest.approx(whole.log_mass[inside], abs=1e-10)


@pytest.mark.parametrize("counts", [(0, 10, 0, 0), (4, 3, 2, 1)])
@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_draws_follow_the_law(name: str | None, counts: tuple[int, ...]) -> None:
    """Chi-square over the outcomes that are expected 20 times, and one cell for all others.

    False alarm at most 1e-6 in all: 14 cases at 1e-10, which leaves a factor 700 for the approximation.
    """
    base = SmallDatabase(COLUMNS, 1.0, 6)
    mechanism: Any = base if name is None else MUTANTS[name].build(base)
    data, n = rows_of(*counts), 20_000
    outputs = mechanism(data, n, np.random.default_rng(1))
    law: FiniteLaw = mechanism.law(data)
    assert outputs.shape == (n, 4)
    seen: Counter[Any] = Counter(map(tuple, outputs.tolist()))
    assert set(seen) <= {o for o, p in zip(law.outcomes, law.probabilities, strict=True) if p > 0}
    observed = np.array([seen[outcome] for outcome in law.outcomes])
    common = law.probabilities * n >= 20
    cells = np.append(observed[common], observed[~common].sum())
    expected = np.append(law.probabilities[common], law.probabilities[~common].sum()) * n
    # The last cell is left out if it is expected less often: its tail is heavier than that of chi-square.
    kept = expected >= 20
    statistic = float(((cells[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    assert stats.chi2.sf(statistic, len(cells)) > 1e-10


def test_histogram_of_the_data() -> None:
    data = rand().head(500)
    found = SmallDatabase(("hlthp", "idp"), 1.0, 4).counts(data)
    pairs: Counter[Any] = Counter(zip(data["hlthp"], data["idp"], strict=True))
    assert found == tuple(pairs[bits] for bits in itertools.product((0, 1), repeat=2))


# ------------------------------------------------------------------------------------ accuracy


def test_errors_and_sizes_of_the_catalogue() -> None:
    rows = [500, 2000, 8000, 16_000]
    alphas = [theorem_alpha(n, 1.0, 0.05, 2) for n in rows]
    assert [round(alpha, 3) for alpha in alphas] == [0.408, 0.254, 0.159, 0.126]
    assert [theorem_size(alpha, 2) for alpha in alphas] == [35, 90, 228, 363]
    for n, alpha in zip(rows, alphas, strict=True):
        right = 8 * math.log(18) * math.log(4) + 4 * alpha**2 * math.log(20)
        assert alpha**3 * n == pytest.approx(right, rel=1e-12)
        # N^m exp(-al n eps / 4) = beta, for the m that is no whole number.
        m = 2 * math.log(18) / alpha**2
        assert m * math.log(4) - alpha * n / 4 == pytest.approx(math.log(0.05), rel=1e-9)


def test_the_form_of_the_lecture_notes_is_the_same_at_the_same_level() -> None:
    for n in (500, 8000):
        half = lecture_alpha(n, 0.5, 0.05, 2)
        assert 2 * half == pytest.approx(theorem_alpha(n, 1.0, 0.05, 2), rel=1e-12)
        assert lecture_size(half, 2) == theorem_size(2 * half, 2)


def test_achieved_errors_are_about_those_of_the_catalogue() -> None:
    # The catalogue's are the worst of four datasets that it does not name.
    for n, error in ((500, 0.0286), (2000, 0.0091), (8000, 0.0035), (16_000, 0.0017)):
        alpha = theorem_alpha(n, 1.0, 0.05, 2)
        mechanism, data = SmallDatabase(("hlthp", "idp"), 1.0, theorem_size(alpha, 2)), rand().head(n)
        found = mechanism.quantile(data, 0.95)
        assert error / 1.3 < found < error * 1.3
        assert found < alpha / 13
        assert mechanism.failure(data, alpha) < 1e-19
        # The distribution's own probabilities of the errors on both sides of the quantile.
        assert mechanism.failure(data, found) >= 0.05 > mechanism.failure(data, math.nextafter(found, 1.0))


def test_errors_of_draws_have_the_laws_quantile() -> None:
    mechanism, data = SmallDatabase(("hlthp", "idp"), 1.0, 35), rand().head(500)
    errors = mechanism.error(data)(mechanism(data, 20_000, np.random.default_rng(2)))
    for level in (0.9, 0.99):
        value = mechanism.quantile(data, level)
        share = min(1.0, mechanism.failure(data, value))
        # Binomial; five standard deviations either way are 6e-7, and two levels 1.2e-6 at most.
        assert abs((errors >= value).mean() - share) <= 5 * math.sqrt(share * (1 - share) / 20_000)


# ------------------------------------------------------------------------------------ mutants


def level_of(mechanism: Any, first: tuple[int, ...], second: tuple[int, ...]) -> float:
    return float(curve(mechanism.law(rows_of(*first)), mechanism.law(rows_of(*second))).epsilon(0.0))


def test_levels_of_the_mutants() -> None:
    base = SmallDatabase(COLUMNS, 1.0, 8)
    built: dict[str, Any] = {name: mutant.build(base) for name, mutant in MUTANTS.items()}
    tight = (0, 10, 0, 0), (0, 9, 1, 0)
    # Twice the scale, n times it and m/n of it are the reference at other levels.
    same = {"score_scale_halved": 2.0, "score_not_divided_by_n": 10.0, "score_times_m": 0.8}
    for name, level in same.items():
        reference = SmallDatabase(COLUMNS, level, 8)
        assert level_of(built[name], *tight) == pytest.approx(level_of(reference, *tight), rel=1e-9)
        assert level_of(built[name], *tight) <= level
    assert level_of(built["score_scale_halved"], *tight) > 1.9
    assert level_of(built["score_not_divided_by_n"], *tight) > 5
    unordered = max(
        level_of(built["unordered_base_measure"], counts, moved)
        for counts in datasets(4, 4)
        for source, target in itertools.permutations(range(4), 2)
        if (moved := tuple(c - (e == source) + (e == target) for e, c in enumerate(counts)))[source] >= 0
    )
    assert unordered <= 1.0
    assert built["unordered_base_measure"].law(rows_of(*tight[0])) != base.law(rows_of(*tight[0]))


def test_a_subsample_shows_the_row_that_only_one_dataset_has() -> None:
    subsample = RandomSubsampleOfData(COLUMNS, 1.0, 8)
    pair = curve(subsample.law(rows_of(0, 10, 0, 0)), subsample.law(rows_of(0, 9, 1, 0)))
    assert pair.epsilon(0.0) == math.inf
    assert pair.delta(50.0) == pytest.approx(1 - (1 - 1 / 10) ** 8, rel=1e-12)


def test_a_size_from_the_data_is_the_smallest_that_is_good() -> None:
    built: Any = MUTANTS["m_from_data"].build(SmallDatabase(COLUMNS, 1.0, 8))
    half = math.sqrt(2 * math.log(18) / 8) / 2
    for counts in datasets(6, 4):
        best = {m: min(largest_errors(np.array(list(datasets(m, 4))), np.array(counts) / 6)) for m in range(1, 9)}
        assert built.synthetic_rows(counts) == min([m for m in best if best[m] <= half], default=8)
    assert level_of(built, (0, 5, 0, 5), (0, 6, 0, 4)) == math.inf


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SmallDatabase((), 1.0, 8), r"from 1 to 8 columns, got \(\)"),
        (lambda: SmallDatabase((0, 0), 1.0, 8), r"distinct columns, got \(0, 0\)"),
        (lambda: SmallDatabase((0,), 0.0, 8), r"a finite epsilon > 0, got 0\.0"),
        (lambda: SmallDatabase((0,), 1.0, 0), r"a whole number of synthetic rows >= 1, got 0"),
        (lambda: SmallDatabase((0,), 1.0, 2.5), r"a whole number of synthetic rows >= 1, got 2\.5"),  # type: ignore[arg-type]
        (lambda: SmallDatabase((0,), 1.0, 2).law([[2], [1]]), r"only 0 and 1 in column 0, got \[2\]"),
        (lambda: SmallDatabase((0,), 1.0, 2).law(np.zeros((0, 1))), r"at least one row, got \(0,\)"),
        (lambda: SmallDatabase((0,), 1.0, 2)([[1]], 0, np.random.default_rng(0)), r"draws n >= 1, got 0"),
        (
            lambda: SmallDatabase((0, 1), 300.0, 8).law(rows_of(9, 0, 0, 0)),
            r"probabilities of at least -700, got -1350",
        ),
        (lambda: SmallDatabase((0, 1), 1.0, 200).law(rows_of(9, 0, 0, 0)), r"at most 262144 histograms, got 1373701"),
        (lambda: conjunctions(9), r"a number of bits from 1 to 8, got 9"),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
