"""Tracing, the means that it is played on, and the mistakes that an audit by it can make.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from auditor import audit
from auditor.audits.adversaries.fingerprints import BlockCodebook, BonehShaw, Tardos, innocent_tail
from auditor.audits.adversaries.tracing import Tracing
from auditor.errors import SpecificationError, TargetError
from auditor.privacy.exact import GaussianCurve
from auditor.privacy.guarantees import ApproxDP
from auditor.results import Verdict
from experiments.document_003_bellairs_lectures.tracing import (
    _CODE,
    _Coins,
    _constant_half,
    _contradiction,
    _differing_rows,
    _Gaussian,
    _laplace_maximum,
    _majority,
    _means_of,
    _normal_maximum,
    _uniform_noise,
    _WithinOneHalf,
    accusation_level,
    accusation_rates,
    forced_level,
)
from mechanisms.lower_bounds.attribute_means import (
    AttributeMeans,
    CalibratedMeans,
    GaussianMeans,
    LaplaceMeans,
    MeansRoundedFirst,
)
from mechanisms.lower_bounds.code_mutants import MUTANTS

FALSE_ALARM = 1e-6
EXACT = AttributeMeans()
SMALL = BonehShaw(4, 6)


def rng(seed: int = 20261122) -> np.random.Generator:
    return np.random.default_rng(seed)


def within(count: int, n: int, p: float, tests: int = 1) -> bool:
    """Whether a count is no rarer than `FALSE_ALARM` for its distribution."""
    low, high = stats.binom.cdf(count, n, p), stats.binom.sf(count - 1, n, p)
    return bool(min(low, high) >= FALSE_ALARM / 2 / tests)


@dataclass(frozen=True)
class Answers:
    """Releases one vector, whatever the data."""

    values: Any

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        del data, rng
        return np.tile(np.asarray(self.values), (n, 1))


@dataclass(frozen=True)
class OneAtATime:
    """Means that are released of one table a call; as counts, if asked."""

    counts: bool = False

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        assert data.dtype == np.int64
        return EXACT(data, n, rng) * (len(data) if self.counts else 1)


# --------------------------------------------------------------------------------------- the tables


def test_one_row_is_replaced_by_the_codeword_that_is_missing() -> None:
    traced = Tracing(EXACT, SMALL)
    pairs = np.array([(i0, i) for i0, i in itertools.product(range(1, 5), repeat=2) if i != i0])
    dropped, watched = pairs.T
    present, replaced = (traced.members(dropped, watched, k) for k in (1, 0))
    assert present.shape == replaced.shape == (12, 3)
    for i0, i, one, other in zip(dropped, watched, present, replaced, strict=True):
        assert set(one) == {1, 2, 3, 4} - {i0}
        assert set(other) == {1, 2, 3, 4} - {i}
        assert other[one != other].tolist() == [i0]
        assert one[one != other].tolist() == [i]
    assert {right for _, _, right in _differing_rows(traced)} == {1.0}
    assert [left for _, left, _ in _differing_rows(traced)] == [1.0] * 4


def test_both_users_are_uniform_and_different() -> None:
    draws = 24_000
    dropped, watched = Tracing(EXACT, SMALL).two_users(draws, rng())
    counts = np.zeros((5, 5), dtype=int)
    np.add.at(counts, (dropped, watched), 1)
    assert counts.trace() == counts[0].sum() == counts[:, 0].sum() == 0
    assert all(within(int(counts[a, b]), draws, 1 / 12, 12) for a in range(1, 5) for b in range(1, 5) if a != b)


def test_the_pair_is_one_row() -> None:
    pair = Tracing(EXACT, SMALL).pair()
    assert (pair.x.tolist(), pair.y.tolist()) == ([1], [0])


# -------------------------------------------------------------------------------------- the outputs


@pytest.mark.parametrize("code", [SMALL, Tardos(4, 3)], ids=["Boneh and Shaw", "Tardos"])
def test_exact_means_are_traced(code: Any) -> None:
    traced = Tracing(EXACT, code, difference=True)
    present, replaced = traced([1], 200, rng()), traced([0], 200, rng(1))
    assert present.shape == (200, 2)
    # Nobody else is: for Tardos with probability at most 2.3e-7 a trial by Chernoff's bound, for 4 trials of 200.
    assert not replaced[: 4 if isinstance(code, Tardos) else 200, 0].any()
    if isinstance(code, BonehShaw):
        assert present[:, 1] == pytest.approx(1 / 3)
        assert replaced[:, 1] == pytest.approx(0)
        assert within(int(present[:, 0].sum()), 200, 1 / 3)
    else:
        assert present[:, 1].min() > replaced[:, 1].max()


@pytest.mark.parametrize("unit", ["means", "counts"])
def test_units_and_targets_of_one_table_a_call_do_not_matter(unit: Any) -> None:
    with_each = Tracing(EXACT, SMALL, difference=True)([1], 50, rng())
    alone = Tracing(OneAtATime(unit == "counts"), SMALL, unit, difference=True)([1], 50, rng())
    assert alone == pytest.approx(with_each)


def _laplace(means: Any) -> Any:
    """Probability that a mean with the noise of `LaplaceMeans(200.0)` is above 1/2: nine rows, 1,100 columns."""
    return stats.laplace(scale=1100 / (200.0 * 9)).sf(0.5 - means)


@pytest.mark.parametrize("present", [0, 1])
@pytest.mark.parametrize(
    ("target", "ones"),
    [
        (GaussianMeans(0.3), _Gaussian(0.3)),
        (GaussianMeans(3.0), _Gaussian(3.0)),
        (LaplaceMeans(200.0), _laplace),
        (_WithinOneHalf(), _uniform_noise),
    ],
    ids=["Gaussian 0.3", "Gaussian 3", "Laplace", "uniform"],
)
def test_accusations_follow_their_exact_law(target: Any, ones: Any, present: int) -> None:
    rate = accusation_rates(_CODE, ones)[1 - present]
    draws = 2_000
    accused = Tracing(target, _CODE)([present], draws, rng())
    assert accused.dtype == np.int64
    assert within(int(accused.sum()), draws, rate)


def test_the_exact_law_by_enumeration() -> None:
    """Every word of every table: users 3, blocks of 2 columns, answers that are ones with probability by their mean."""
    code = BonehShaw(3, 2)
    book = BlockCodebook(code, np.array(code.ordered(1)))

    def ones(means: Any) -> Any:
        return 0.1 + 0.7 * means**2

    found = np.zeros(2)
    for i0, i in itertools.permutations((1, 2, 3), 2):
        others = [u for u in (1, 2, 3) if u not in (i0, i)]
        for k, members in enumerate(([i, *others], [i0, *others])):
            p = ones(book.rows(np.array([members])).mean(axis=1)[0])
            for word in itertools.product((0, 1), repeat=8):
                bits = np.array([word], dtype=bool)
                found[k] += np.where(bits[0], p, 1 - p).prod() * (book.trace(bits)[0] == i) / 6
    assert accusation_rates(code, ones) == pytest.approx(tuple(found))


def test_levels_of_accusations() -> None:
    """The catalogue estimates 2.3 to 2.5, 0.87 to 0.93 and 0.2 to 0.3; its levels of the mechanisms are right."""
    delta = 1 / 90
    levels = [accusation_level(_CODE, _Gaussian(s), delta) for s in (0.3, 1.0, 3.0)]
    assert levels == pytest.approx([2.599, 0.9116, 0.2258], abs=1e-3)
    own = [GaussianCurve(GaussianMeans(s).mu(9, 1100)).epsilon(delta) for s in (0.3, 1.0, 3.0)]
    assert own == pytest.approx([103, 14, 3.0], rel=0.04)
    assert all(level < whole for level, whole in zip(levels, own, strict=True))
    assert accusation_rates(_CODE, _majority) == pytest.approx((1 / 9, 0.0))
    present, replaced = accusation_rates(_CODE, _constant_half)
    assert present == pytest.approx(replaced)


@pytest.mark.parametrize("deviation", [0.3, 1.0])
def test_bounds_are_below_the_exact_level(deviation: float) -> None:
    """False alarm: alpha."""
    traced = Tracing(GaussianMeans(deviation), _CODE)
    level = accusation_level(_CODE, _Gaussian(deviation), 1 / 90)
    claim = ApproxDP(level / 2, 1 / 90)
    found = audit(traced, claim, [traced.pair()], id="tracing", alpha=FALSE_ALARM, draws=4_000, stop="budget")
    assert found.lower_bound is not None
    assert found.lower_bound <= level


def test_what_is_no_number_says_nothing() -> None:
    columns = SMALL.length
    values = np.full(columns, np.nan)
    values[0], values[1] = np.inf, -np.inf
    released = Tracing(Answers(values), SMALL).released(np.zeros((2, 3, columns), dtype=np.int8), rng())
    assert (released[:, :3] == [1.0, 0.0, 0.5]).all()


@pytest.mark.parametrize("values", [[0.5], [0.5] * (SMALL.length + 1)])
def test_releases_of_another_shape_are_refused(values: list[float]) -> None:
    with pytest.raises(TargetError, match=f"expected {SMALL.length} numbers for each of 1 tables, got"):
        Tracing(Answers(values), SMALL)([1], 1, rng())


def test_an_unknown_unit_is_refused() -> None:
    unit: Any = "sums"
    with pytest.raises(SpecificationError, match="one of counts, means, got 'sums'"):
        Tracing(EXACT, SMALL, unit)


# ----------------------------------------------------------------------------- mistakes of the audit


def test_the_replaced_user_is_never_accused_by_mistake() -> None:
    traced = Tracing(_Coins(), _CODE)
    rate = accusation_rates(_CODE, _constant_half)[1]
    for data in ([1], [0]):
        assert within(int(traced(data, 2_000, rng()).sum()), 2_000, rate, 2)
    for name in ("tracer_sees_i", "infeasible_accusations_uncounted"):
        mistaken = MUTANTS[name].build(traced)
        assert not mistaken(np.array([0]), 500, rng()).any()
        assert mistaken(np.array([1]), 500, rng()).any()  # fails with probability 0.936^500


def test_feasible_words_are_counted_by_all() -> None:
    accurate = Tracing(_WithinOneHalf(), SMALL)
    counted = MUTANTS["infeasible_accusations_uncounted"].build(accurate)
    for data in (np.array([0]), np.array([1])):
        assert (counted(data, 300, rng()) == accurate(data, 300, rng())).all()


def test_mistakes_refute_a_target_that_releases_nothing() -> None:
    """The audit itself does not, but with probability alpha; with the mistake 16 % of runs are against none."""
    traced = Tracing(_Coins(), BonehShaw(4, 20))
    claim = ApproxDP(0.5, 1 / 40)
    for mechanism, refuted in ((traced, False), (MUTANTS["tracer_sees_i"].build(traced), True)):
        found = audit(mechanism, claim, [traced.pair()], id="coins", alpha=FALSE_ALARM, draws=8_000)
        assert (found.verdict == Verdict.VIOLATION) == refuted


def test_sorted_rows_differ_in_many_places() -> None:
    mistaken: Any = MUTANTS["rows_shuffled"].build(Tracing(EXACT, _CODE))
    assert max(left for _, left, _ in _differing_rows(mistaken)) == 9.0


# ----------------------------------------------------------------------------------------- the means


TABLE = np.array([[0, 1, 1, 0], [0, 1, 0, 0], [0, 1, 1, 1]])


def test_exact_means() -> None:
    assert EXACT(TABLE, 2, rng()) == pytest.approx(np.tile([0, 1, 2 / 3, 1 / 3], (2, 1)))
    assert EXACT.each(np.stack([TABLE, 1 - TABLE]), rng())[1] == pytest.approx([1, 0, 1 / 3, 2 / 3])
    assert _WithinOneHalf().each(TABLE[None], rng()) == pytest.approx(EXACT.each(TABLE[None], rng()), abs=0.5)
    with pytest.raises(ValueError, match=r"a table of shape \(rows, columns\), got \(3,\)"):
        EXACT(TABLE[:, 0], 1, rng())


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (GaussianMeans(0.7), stats.norm(scale=0.7)),
        (CalibratedMeans(1.0), stats.norm(scale=CalibratedMeans(1.0).plain(3, 4).deviation)),
        (LaplaceMeans(0.5), stats.laplace(scale=4 / (0.5 * 3))),
    ],
    ids=["Gaussian", "calibrated", "Laplace"],
)
def test_noise_follows_its_law(mechanism: Any, law: Any) -> None:
    draws = 4_000
    for released in (mechanism(TABLE, draws, rng()), mechanism.each(np.tile(TABLE, (draws, 1, 1)), rng(1))):
        assert (released * 3 * 2**20 == np.rint(released * 3 * 2**20)).mean() > 0.5  # a lattice, up to the division
        errors = (released - TABLE.mean(axis=0)).ravel()
        limit = math.sqrt(math.log(4 / FALSE_ALARM) / (2 * errors.size))
        assert stats.kstest(errors, law.cdf).statistic <= limit + 2**-19


def test_the_calibration_spends_all_of_the_claim() -> None:
    for rows, columns in ((9, 1100), (100, 10)):
        mu = CalibratedMeans(1.0).plain(rows, columns).mu(rows, columns)
        assert GaussianCurve(mu).delta(1.0) == pytest.approx(1 / (10 * rows), rel=1e-9)
        assert GaussianCurve(CalibratedMeans(0.3, 1e-5).plain(rows, columns).mu(rows, columns)).delta(
            0.3
        ) == pytest.approx(1e-5, rel=1e-9)
    for build in (lambda: GaussianMeans(0.0), lambda: CalibratedMeans(1.0, 1.0), lambda: LaplaceMeans(-1.0)):
        with pytest.raises(ValueError, match="got"):
            build()


def test_rounding_first_moves_a_mean_by_one() -> None:
    columns, rows = 6, 9
    before = np.zeros((rows, columns), dtype=np.int64)
    before[:4, 0] = 1
    after = before.copy()
    after[4, 0] = 1
    base, rounded = LaplaceMeans(1.0), MeansRoundedFirst(1.0)
    assert (base.counts(after) - base.counts(before)).tolist() == [1, 0, 0, 0, 0, 0]
    assert (rounded.counts(after) - rounded.counts(before)).tolist() == [9, 0, 0, 0, 0, 0]
    # Counts have Laplace noise of scale columns / epsilon, so the levels are 1/6 and 9/6 on this pair.
    n = 40_000
    above = [int((rounded(x, n, rng())[:, 0] > 1.0).sum()) for x in (after, before)]
    assert within(above[0], n, 0.5, 2)
    assert within(above[1], n, 0.5 * math.exp(-9 / 6), 2)


# ------------------------------------------------------------------------------------- the theorem


def test_the_contradiction_is_one_of_accurate_answers() -> None:
    """What a code forces, by the tail of a word, is below the exact level of accurate answers, not of noisy ones."""
    assert all(left <= right for _, left, right in _contradiction())
    for rows, block in ((4, 31), (9, 171)):
        forced = forced_level(rows, innocent_tail(rows + 1, block))
        assert forced > 1
        assert accusation_level(BonehShaw(rows + 1, block), _Gaussian(3.0), 1 / (10 * rows)) < forced


def test_the_contradiction_needs_a_little_more_than_the_catalogue_says() -> None:
    for rows in (9, 100, 10_000):
        xi = 0.9 / (math.e * rows + 1)
        assert forced_level(rows, xi) == pytest.approx(1.0)
        assert forced_level(rows, 0.99 * xi) > 1
    assert forced_level(9, 0.33 / 9) < 1
    assert math.log((1 / 9 - 1 / 90) / (0.33 / 9)) > 1  # with somebody of the coalition accused for certain


@pytest.mark.parametrize("columns", [16, 256])
def test_the_largest_laplace_error_has_the_stated_median(columns: int) -> None:
    rows, draws = round(2 * columns * _laplace_maximum(columns)), 4_000
    setting = _means_of(columns, LaplaceMeans(1.0))(rows)
    failures = np.asarray(setting.error(setting.mechanism(setting.data, draws, rng()))) > setting.at_most
    exact = 1 - (-math.expm1(-0.5 * rows / columns)) ** columns
    assert exact == pytest.approx(0.5, abs=0.01)  # but for the rounding of the number of rows
    assert within(int(failures.sum()), draws, exact)


@pytest.mark.parametrize("columns", [16, 256])
def test_the_largest_gaussian_error_has_the_stated_median(columns: int) -> None:
    rows, draws = 200, 4_000
    target = GaussianMeans(0.5 / _normal_maximum(columns))
    setting = _means_of(columns, target)(rows)
    failures = np.asarray(setting.error(setting.mechanism(setting.data, draws, rng()))) > setting.at_most
    assert 1 - (1 - 2 * special.ndtr(-0.5 / target.deviation)) ** columns == pytest.approx(0.5)
    assert within(int(failures.sum()), draws, 0.5)
