"""Conformity: the e-process, the cells of distributions, and what an audit against a stated distribution says."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from auditor import report
from auditor.audits.conformity import SHOWN, StatedLaw, check_conformity, collect_cells
from auditor.audits.partitions import LawCells, cells_of
from auditor.audits.partitions.scalar import MODULUS
from auditor.audits.privacy_loop import Settings
from auditor.errors import SpecificationError
from auditor.evidence.multinomial import (
    CONCENTRATIONS,
    Multinomials,
    average_wealths,
    combine_wealths,
    detectable_divergence,
    rejected_level,
)
from auditor.privacy.laws import (
    CauchyLaw,
    DiscreteGaussianLaw,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    Law,
    ProductLaw,
    TwoSidedGeometricLaw,
)
from auditor.results import AuditResult, Verdict, make_document
from auditor.targets.sampler import Sampler

#: Level of audits of correct samplers in tests: each such test fails with at most this probability.
RARELY = 1e-6


# ---------------------------------------------------------------------------------- the e-process


def every_count(n: int, cells: int) -> Iterator[NDArray[np.int64]]:
    """All ways to put n draws into so many cells."""
    for bars in itertools.combinations(range(n + cells - 1), cells - 1):
        yield np.diff(np.array([-1, *bars, n + cells - 1])) - 1


def expectation(value: Callable[[NDArray[np.int64]], float], p: NDArray[np.float64], n: int) -> float:
    return sum(float(stats.multinomial.pmf(c, n, p)) * value(c) for c in every_count(n, len(p)))


def wealth(pi: NDArray[np.float64], counts: NDArray[np.int64], impossible: int = 0) -> float:
    return math.exp(Multinomials([pi]).log_wealth([np.append(counts, impossible)])[0])


def test_the_wealth_is_the_product_of_predictions_averaged_over_concentrations() -> None:
    pi, draws = np.array([0.5, 0.3, 0.2]), [0, 0, 2, 1, 2, 2, 2, 0]
    bets = np.ones(len(CONCENTRATIONS))
    for i, cell in enumerate(draws):
        seen = draws[:i].count(cell)
        bets *= (CONCENTRATIONS * pi[cell] + seen) / (CONCENTRATIONS + i) / pi[cell]
    # The formula takes differences of log gammas as large as 10^8, whose rounding is 10^-8.
    assert wealth(pi, np.array([3, 1, 4])) == pytest.approx(bets.mean(), rel=1e-6)


@pytest.mark.parametrize("pi", [np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.1 - 1e-6, 1e-6])])
def test_the_wealth_has_expectation_one_under_the_stated_law(pi: NDArray[np.float64]) -> None:
    assert expectation(lambda c: wealth(pi, c), pi, 12) == pytest.approx(1, rel=1e-6)


def test_under_a_widened_null_it_grows_by_at_most_its_factor() -> None:
    pi, n = np.array([0.5, 0.3, 0.2]), 12
    for p in (np.array([0.55, 0.33, 0.12]), np.array([0.55, 0.25, 0.2]), np.array([0.45, 0.33, 0.22])):
        assert np.all(p <= 1.1 * pi * (1 + 1e-12))
        found = expectation(lambda c: wealth(pi, c), p, n)
        assert found > 1.0
        assert found <= 1.1**n * (1 + 1e-6)


def test_a_hit_in_the_impossible_cell_is_infinite_evidence_and_nothing_else_is() -> None:
    pi = np.array([0.5, 0.5])
    assert math.isinf(wealth(pi, np.array([3, 4]), impossible=1))
    assert math.isfinite(Multinomials([pi]).log_wealth([np.array([10**6, 0, 0])])[0])


def test_partitions_of_different_sizes_do_not_mix() -> None:
    first, second = np.array([0.25] * 4), np.array([0.5, 0.5])
    counts = [np.array([9, 1, 2, 0, 0]), np.array([10, 2, 0])]
    together = Multinomials([first, second]).log_wealth(counts)
    alone = [Multinomials([p]).log_wealth([c])[0] for p, c in zip((first, second), counts, strict=True)]
    assert together == pytest.approx(alone, abs=1e-9)


def test_several_datasets_are_averaged_with_their_product() -> None:
    pi = np.array([0.7, 0.3])
    logs = [math.log(wealth(pi, np.array(c))) for c in ([9, 1], [2, 4])]
    x, y = np.exp(logs)
    assert math.exp(combine_wealths(logs, [10, 6], 0.0)) == pytest.approx((x + y + x * y) / 3)
    # Widened by a level, each draw costs that much.
    x, y = x * math.exp(-10 * 0.1), y * math.exp(-6 * 0.1)
    assert math.exp(combine_wealths(logs, [10, 6], 0.1)) == pytest.approx((x + y + x * y) / 3)

    def both(c: NDArray[np.int64]) -> float:
        log = math.log(wealth(pi, c))
        return expectation(lambda d: math.exp(combine_wealths([log, math.log(wealth(pi, d))], [5, 5], 0.0)), pi, 5)

    assert expectation(both, pi, 5) == pytest.approx(1, rel=1e-6)


def test_an_average_of_wealths_is_no_average_of_logarithms() -> None:
    assert average_wealths(np.log([8.0, 2.0])) == pytest.approx(math.log(5.0))
    assert math.isinf(average_wealths(np.array([0.0, np.inf])))


def test_the_rejected_level_is_where_the_evidence_just_suffices() -> None:
    logs, draws = [200.0, 3.0], [1000, 1000]
    level = rejected_level(logs, draws, 0.01)
    assert combine_wealths(logs, draws, level) == pytest.approx(math.log(100), abs=1e-6)
    assert combine_wealths(logs, draws, 1.01 * level) < math.log(100) < combine_wealths(logs, draws, 0.99 * level)
    assert rejected_level([1.0, 1.0], [10, 10], 0.01) == 0.0
    assert math.isinf(rejected_level([math.inf, 1.0], [10, 10], 0.01))


def test_the_rejected_level_tends_to_the_divergence_which_is_below_the_largest_log_ratio() -> None:
    pi, p, n = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.3]), 10**7
    log = float(Multinomials([pi]).log_wealth([np.append((n * p).astype(int), 0)])[0])
    level = rejected_level([log], [n], 0.01)
    # What is missing is ln(1/alpha) and the price of the unknown alternative, some 25 nats, over n.
    assert level == pytest.approx(float(special.rel_entr(p, pi).sum()), abs=1e-5)
    assert level < math.log(0.3 / 0.2)


@pytest.mark.parametrize(("cells", "n"), [(8, 1_000), (64, 20_000)])
def test_a_detectable_deviation_is_flagged_with_probability_nine_tenths(cells: int, n: int) -> None:
    """False alarm: within 5.5 standard errors of 0.9, below 1e-6, and 0.03 for the normal approximation."""
    rng, runs, threshold = np.random.default_rng(1), 2_000, math.log(100)
    pi = np.full(cells, 1 / cells)
    divergence = detectable_divergence(cells, n, threshold)
    direction = np.where(np.arange(cells) % 2, 1.0, -1.0)
    p = pi * (1 + math.sqrt(2 * divergence) * direction)
    assert float(special.rel_entr(p, pi).sum()) == pytest.approx(divergence, rel=0.1)
    counts = np.hstack([rng.multinomial(n, p, runs), np.zeros((runs, 1), dtype=np.int64)])
    flagged = np.mean([Multinomials([pi]).log_wealth([c])[0] >= threshold for c in counts])
    assert abs(flagged - 0.9) < 5.5 * math.sqrt(0.09 / runs) + 0.03


def test_more_draws_detect_less() -> None:
    found = [detectable_divergence(64, n, math.log(100)) for n in (0, 10, 1_000, 100_000, 10_000_000)]
    assert found == sorted(found, reverse=True)
    assert math.isinf(found[0])


# ------------------------------------------------------------------------------------------ cells


def stated(cells: LawCells) -> list[NDArray[np.float64]]:
    return [view.probabilities for view in cells.views]


LATTICES = [
    TwoSidedGeometricLaw(3, math.e),
    TwoSidedGeometricLaw(-7, 1.05, 0.25),
    TwoSidedGeometricLaw(1000, 1.002, 2.0**-10),
    TwoSidedGeometricLaw(0, 1e13),
]


@pytest.mark.parametrize("law", LATTICES, ids=repr)
def test_cells_of_a_lattice_law_hold_the_sums_of_their_points(law: TwoSidedGeometricLaw) -> None:
    cells = cells_of(law)
    reach = math.ceil(40 / law.log_a)  # beyond, e^-40 is left
    z = np.arange(-reach, reach + 1)
    mass = np.exp(-law.log_a * np.abs(z)) * (law.a - 1) / (law.a + 1)
    points = (law.loc + z) * law.step
    for cell in cells.coordinates[0][1]:
        index = cell.index(points)
        sums = np.bincount(index, mass, len(cell.view.labels) + 1)
        assert sums[-1] == 0
        # Differences of distribution functions are rounded at 1e-16, and raised by more than that.
        assert np.all(cell.view.probabilities >= sums[:-1] - 4e-16)
        assert cell.view.probabilities == pytest.approx(sums[:-1], rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("law", "other"),
    [
        (LaplaceLaw(1.5, 2.0), stats.laplace(1.5, 2.0)),
        (GaussianLaw(-3.0, 0.7), stats.norm(-3.0, 0.7)),
        (CauchyLaw(0.5, 3.0), stats.cauchy(0.5, 3.0)),
    ],
    ids=["Laplace", "Gaussian", "Cauchy"],
)
def test_cells_of_a_continuous_law_are_hit_as_often_as_stated(law: Law, other: Any) -> None:
    """Quantiles of scipy's distribution at the middles of a million equal parts: shares are exact to 1e-6."""
    points = other.ppf((np.arange(1_000_000) + 0.5) / 1_000_000)
    cells = cells_of(law)
    for view, counts in zip(cells.views, cells.counts(points), strict=True):
        assert counts[-1] == 0
        assert counts[:-1] / 1_000_000 == pytest.approx(view.probabilities, abs=1.001e-6)


@pytest.mark.parametrize("law", [LaplaceLaw(0.3, 1.0), GaussianLaw(100.0, 5.0)], ids=repr)
def test_rounding_to_the_default_grain_moves_no_output_to_another_cell(law: LaplaceLaw | GaussianLaw) -> None:
    x = np.random.default_rng(0).normal(law.loc, 5.0, 100_000)
    for cell in cells_of(law).coordinates[0][1]:
        assert np.array_equal(cell.index(x), cell.index(np.rint(x / 2.0**-20) * 2.0**-20))


@pytest.mark.parametrize("law", [LaplaceLaw(0.3, 1.0), GaussianLaw(100.0, 5.0)], ids=repr)
def test_rounded_outputs_are_as_probable_as_what_is_rounded_to_them(law: LaplaceLaw | GaussianLaw) -> None:
    points = 2.0**-4 * np.arange(-3_000, 5_000)
    mass = law.cdf(points + 2.0**-5) - law.cdf(points - 2.0**-5)
    (cell,) = cells_of(law, rounding=2.0**-4).coordinates[0][1]
    sums = np.bincount(cell.index(points), mass)
    assert cell.view.probabilities == pytest.approx(sums, rel=1e-9, abs=1e-14)
    assert cell.index(np.array([0.5, 0.51]))[1] == len(cell.view.labels)
    assert cell.view.impossible == "output is not a multiple of 0.0625"


def test_probabilities_of_each_view_sum_to_one() -> None:
    product = ProductLaw((LaplaceLaw(0.0, 1.0), TwoSidedGeometricLaw(0, 1.01), FiniteLaw((0, 1), np.array([0.1, 0.9]))))
    laws: list[Law] = [*LATTICES, LaplaceLaw(0.0, 1.0), CauchyLaw(2.0, 0.1), product]
    for law in laws:
        for pi in stated(cells_of(law)):
            assert pi.sum() == pytest.approx(1, abs=1e-11)
            assert np.all(pi > 0)


def test_residues_find_a_coarser_lattice() -> None:
    law = TwoSidedGeometricLaw(5, 1.001)
    views = cells_of(law).views
    moduli = [len(v.labels) for v in views if "modulo" in v.labels[0]]
    assert moduli == [MODULUS, 8, 2]
    assert not any("modulo" in label for v in cells_of(TwoSidedGeometricLaw(5, 2.0)).views for label in v.labels)


def test_residues_without_a_formula_are_those_with_one() -> None:
    law = TwoSidedGeometricLaw(5, 1.05)

    @dataclasses.dataclass(frozen=True)
    class Anonymous:
        loc: int = 5
        step: float = 1.0

        def cdf(self, x: Any) -> Any:
            return law.cdf(x)

    with_formula, without = (stated(cells_of(each)) for each in (law, Anonymous()))  # type: ignore[arg-type]
    for a, b in zip(with_formula, without, strict=True):
        assert a == pytest.approx(b, abs=1e-12)


def test_cells_of_a_discrete_gaussian_hold_the_sums_of_their_points() -> None:
    law, z = DiscreteGaussianLaw(7, 300.0, 0.125), np.arange(-6_000, 6_001)  # beyond 20 sigma nothing is left
    mass = np.exp(-(z**2) / (2 * 300.0**2))
    for cell in cells_of(law).coordinates[0][1]:
        sums = np.bincount(cell.index((7 + z) * 0.125), mass / mass.sum())
        assert cell.view.probabilities == pytest.approx(sums, rel=1e-9, abs=1e-14)


def test_a_finite_law_reads_outcomes_of_any_type() -> None:
    law = FiniteLaw(("yes", 1, (0, 1), None), np.array([0.5, 0.25, 0.25, 0.0]))
    (view,) = cells_of(law).views
    assert view.probabilities == pytest.approx([0.5, 0.25, 0.25])
    counts = cells_of(law).counts(["yes", 1, 1.0, (0, 1), [0, 1], None, "no", True])[0]
    assert counts.tolist() == [1, 2, 2, 3]  # of probability 0, not an outcome, another type


def test_transcripts_are_read_as_rows() -> None:
    law = FiniteLaw(((1, -1), (0, 1), (0, 0)), np.array([0.5, 0.3, 0.2]))
    cells = cells_of(law)
    rows = np.array([[1, -1], [0, 0], [0, 0], [1, 1]], dtype=np.int8)
    assert [c.tolist() for c in cells.counts(rows)] == [[1, 0, 2, 1], [1, 2, 1], [1, 0, 2, 1]]
    assert cells.views[1].labels == ("output[0] = 1", "output[0] = 0")
    assert cells.views[1].probabilities == pytest.approx([0.5, 0.5])


def test_rare_outcomes_share_a_cell() -> None:
    mass = np.array([0.6, 0.4 - 3e-8, 1e-8, 1e-8, 1e-8])
    law = FiniteLaw(tuple(range(5)), mass)
    view = cells_of(law).views[0]
    assert view.labels[-1] == "output is one of 3 rare outcomes from 2 to 4"
    assert view.probabilities[-1] == pytest.approx(3e-8)
    assert cells_of(law).counts(np.array([0, 1, 2, 4, 9]))[0].tolist() == [1, 1, 2, 1]


def test_many_equally_rare_outcomes_are_read_in_groups() -> None:
    """A distribution of which no outcome is common is still held against its half that occurs."""
    n = 1024 + 64 * 500  # of equal outcomes the first 1024 have cells of their own
    cells = cells_of(FiniteLaw(tuple(range(n)), np.full(n, 1 / n)))
    view = cells.views[0]
    assert view.probabilities[1024:] == pytest.approx([500 / n] * 64)
    assert view.labels[1024] == "output is one of 500 rare outcomes from 1024 to 1523"
    assert cells.counts(np.array([1024, 1523, 1524, n]))[0][[1024, 1025, -1]].tolist() == [2, 1, 1]
    words = cells_of(FiniteLaw(tuple(f"w{k}" for k in range(4096)), np.full(4096, 1 / 4096)))
    assert len(words.views[0].labels) == 1024 + 64
    assert words.views[0].probabilities.sum() == pytest.approx(1)
    counts = words.counts([f"w{k}" for k in range(4096)] + ["v"])[0]
    assert counts[-1] == 1
    assert counts[:-1] / 4096 == pytest.approx(words.views[0].probabilities)


def test_products_of_symbols_are_read_by_element() -> None:
    letter = FiniteLaw(("a", "b", True), np.array([0.5, 0.25, 0.25]))
    cells = cells_of(ProductLaw((letter,) * 6))
    outputs = [("a", "b", True, "a", "a", "a"), ["a"] * 6, ("a",) * 5, "aaaaaa"]
    first = cells.counts(outputs)[0]
    assert first.tolist() == [2, 0, 0, 2]
    assert [counts.sum() for counts in cells.counts(outputs)] == [4] * len(cells.views)
    bits = cells_of(ProductLaw((FiniteLaw((False, True), np.array([0.5, 0.5])),) * 12))
    assert bits.counts(np.zeros((3, 12), dtype=bool))[0].tolist() == [3, 0, 0]
    assert bits.counts(np.zeros((3, 12)))[0].tolist() == [0, 0, 3]


def test_a_law_of_one_outcome_allows_no_other() -> None:
    one = FiniteLaw((7,), np.array([1.0]))

    @dataclasses.dataclass(frozen=True)
    class Always:
        output: int

        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
            return np.full(n, self.output)

        def law(self, data: Any) -> Law:
            return one

    assert check_conformity(Always(7), 0, alpha=RARELY, draws=1_000).verdict == Verdict.CONSISTENT
    assert check_conformity(Always(8), 0, alpha=RARELY).lower_bound == math.inf


def test_many_numbers_are_also_read_in_ranges() -> None:
    mass = stats.binom.pmf(np.arange(201), 200, 0.5)
    cells = cells_of(FiniteLaw(tuple(range(201)), mass / mass.sum()))
    sizes = [len(view.labels) for view in cells.views]
    assert sizes[0] > sizes[1] > sizes[2] > 4
    counts = cells.counts(np.arange(201))
    assert all(c.sum() == 201 and c[-1] == 0 for c in counts)
    for view, index in zip(cells.views[1:], cells.coordinates[0][1][0].merges, strict=True):
        for cell in range(len(view.labels)):
            assert view.probabilities[cell] == pytest.approx(cells.views[0].probabilities[index.index == cell].sum())


def test_joint_cells_of_coordinates_see_a_shared_draw() -> None:
    cells = cells_of(ProductLaw((LaplaceLaw(0.0, 1.0),) * 3))
    joint = [view for view in cells.views if " and " in view.name]
    assert [view.name for view in joint] == [
        "output[0] and output[1]",
        "output[0] and output[2]",
        "output[1] and output[2]",
    ]
    shared = np.repeat(np.random.default_rng(2).laplace(size=(1000, 1)), 3, axis=1)
    counts = cells.counts(shared)[-1]
    assert np.count_nonzero(counts) == 8  # the diagonal of 8 times 8 cells
    bad = shared.copy()
    bad[0, 2] = np.nan
    assert [c[-1] for c in cells.counts(bad)[-3:]] == [0, 1, 1]


def test_small_products_are_read_as_wholes() -> None:
    one = FiniteLaw((0, 1), np.array([0.9, 0.1]))
    cells = cells_of(ProductLaw((one, one, one)))
    assert len(cells.views[0].labels) == 8
    assert cells.views[0].probabilities.max() == pytest.approx(0.9**3)
    assert len(cells.views) == 4  # all rows, and each coordinate


def test_a_joint_cell_too_small_for_a_double_is_neither_impossible_nor_evidence() -> None:
    """Ten elements with an outcome of probability 1e-40 each: all ten together have one of 1e-400."""
    law = ProductLaw((FiniteLaw((0.0, 1.0), np.array([1 - 1e-40, 1e-40])),) * 10)

    class Nearly:
        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
            return (rng.random((n, 10)) < 1e-40).astype(float)

        def law(self, data: Any) -> Law:
            return law

    found = check_conformity(Nearly(), None, draws=2_000, detect=10.0)
    assert found.verdict == Verdict.CONSISTENT
    wealth = Multinomials([np.array([1.0, 0.0])])
    assert np.isfinite(wealth.log_wealth([np.array([50, 0, 0])])).all()
    assert np.isfinite(wealth.log_wealth([np.array([49, 1, 0])])).all()
    with pytest.raises(ValueError, match="not a number"):
        average_wealths(np.array([0.0, math.nan]))


def test_of_many_coordinates_some_are_looked_at() -> None:
    cells = cells_of(ProductLaw((GaussianLaw(0.0, 1.0),) * 300))
    assert len(cells.coordinates) == 64
    assert (cells.coordinates[0][0], cells.coordinates[-1][0]) == (0, 299)
    assert len(cells.joints) == 64  # neighbours, and the first with the last


@pytest.mark.parametrize(
    ("law", "outputs"),
    [
        (TwoSidedGeometricLaw(0, 2.0, 0.5), np.array([0.25])),
        (TwoSidedGeometricLaw(0, 2.0), np.array([np.nan])),
        (TwoSidedGeometricLaw(0, 2.0), np.array([[1, 2]])),
        (TwoSidedGeometricLaw(0, 2.0), ["1"]),
        (LaplaceLaw(0.0, 1.0), np.array([np.inf])),
        (LaplaceLaw(0.0, 1.0), [None]),
        (ProductLaw((LaplaceLaw(0.0, 1.0),) * 2), np.array([0.5])),
        (ProductLaw((LaplaceLaw(0.0, 1.0),) * 2), [(0.5,)]),
        (FiniteLaw((0, 1), np.array([0.5, 0.5])), np.array([2])),
        (FiniteLaw((0, 1), np.array([0.5, 0.5])), np.array([True])),
    ],
)
def test_outputs_that_the_law_does_not_have_are_impossible(law: Law, outputs: Any) -> None:
    assert any(counts[-1] == 1 for counts in cells_of(law).counts(outputs))


def test_a_table_shows_the_cells_that_deviate_most() -> None:
    view = cells_of(FiniteLaw(tuple("abcdef"), np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1]))).views[0]
    observed = np.array([30, 20, 20, 28, 2, 0, 3])
    assert view.worst(observed).startswith("output is none of the stated outcomes in 3 of 103 draws")
    # As counts of Poisson distributions: 28 for 10 has a log-likelihood ratio of 28 ln 2.8 - 18 = 10.8, 0 for 10 one of
    # 10.
    observed[-1] = 0
    assert view.worst(observed) == "output = 'd' in 28 of 100 draws, 0.28 of them, stated 0.1"
    assert view.table(observed, 3) == {
        "view": "output",
        "labels": ["output = 'd'", "output = 'f'", "the other 4 cells"],
        "stated": [0.1, 0.1, pytest.approx(0.8)],
        "counts": [28, 0, 72],
    }
    observed[-1] = 1
    assert view.table(observed, 6)["labels"][-1] == "output is none of the stated outcomes"
    assert view.table(observed, 6)["counts"] == observed.tolist()


def test_a_law_that_is_none_is_refused() -> None:
    with pytest.raises(SpecificationError, match="expected a finite distribution"):
        cells_of("Laplace")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({"loc": None}, "needs loc.*None"),
        ({"loc": math.nan}, "needs loc.*nan"),
        ({"cdf": lambda x: np.full(np.shape(x), math.nan)}, "from 0 to 1: it is 0 at -inf and nan at"),
        ({"cdf": lambda x: 0.5 + 0.5 * math.erf(x)}, "must take an array"),
        ({"cdf": lambda x: 0.5 + 0.0 * np.sum(x)}, r"gives shape \(\)"),
        ({"step": 0.0}, "step .* positive number, got 0.0"),  # it was called a deviation
        ({"step": math.nan}, "step .* positive number, got nan"),
    ],
)
def test_a_law_of_numbers_that_is_none_is_refused(law: dict[str, Any], message: str) -> None:
    made = SimpleNamespace(**{"loc": 0.0, "cdf": stats.norm.cdf, **law})
    with pytest.raises(SpecificationError, match=message):
        cells_of(made)  # type: ignore[arg-type]


def test_narrow_laws_have_cells_within_their_width() -> None:
    # All of it lay in one cell as wide as the rounding that outputs may have: twice the scale was consistent.
    for loc in (0.0, 1.0):
        narrow = cells_of(LaplaceLaw(loc, 1e-9)).views[0]
        assert len(narrow.labels) == len(cells_of(LaplaceLaw(loc, 1.0)).views[0].labels)
    # Where doubles are 1/8 apart, their rounding is a deviation of Laplace noise of scale 1.
    with pytest.raises(SpecificationError, match=r"1\.375 wide at 1e\+15, where doubles are 0\.125 apart"):
        cells_of(LaplaceLaw(1e15, 1.0))
    cells_of(LaplaceLaw(1e12, 1.0))


# ----------------------------------------------------------------------------------------- audits


@dataclasses.dataclass(frozen=True)
class Rolls:
    """A die whose faces have the given probabilities, and the distribution of a fair one."""

    p: tuple[float, ...] = (1 / 6,) * 6

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.choice(np.arange(1, 7), size=n, p=self.p)

    def law(self, data: Any) -> Law:
        return FiniteLaw(tuple(range(1, 7)), np.full(6, 1 / 6))


LOADED = Rolls((0.2, 0.16, 0.16, 0.16, 0.16, 0.16))


def test_a_correct_sampler_is_consistent_and_says_what_would_have_been_found() -> None:
    result = check_conformity(Rolls(), 0, alpha=RARELY, draws=20_000)
    assert result.verdict == Verdict.CONSISTENT
    assert (result.level, result.notion, result.draws, result.lower_bound) == ("L3", "conformity", 20_000, 0.0)
    assert result.resolves is not None
    assert 0 < result.resolves < 0.01
    assert "of 20,000 draws" in str(result.event)
    assert sum(result.cells["counts"]) == 20_000
    assert result.cells["stated"] == pytest.approx([1 / 6] * 6)
    assert result.independence["passed"]
    assert bool(result)


def test_a_wrong_sampler_is_a_deviation_and_never_a_violation() -> None:
    result = check_conformity(LOADED, 0, draws=200_000)
    assert result.verdict == Verdict.DEVIATION
    assert result.draws < 200_000
    assert result.counterexample is None
    assert "output = 1 in" in result.message
    assert "stated 0.1667" in result.message
    assert result.log10_max_e_value is not None
    assert result.log10_max_e_value >= 2


def test_stop_at_the_budget_gives_the_tighter_bound() -> None:
    early, late = (check_conformity(LOADED, 0, draws=200_000, stop=stop) for stop in ("verdict", "budget"))
    divergence = float(special.rel_entr(np.array(LOADED.p), np.full(6, 1 / 6)).sum())
    assert early.verdict == late.verdict == Verdict.DEVIATION
    assert early.lower_bound is not None
    assert late.lower_bound is not None
    assert early.lower_bound < late.lower_bound <= math.log(1.2)
    # Five standard deviations of the log-likelihood ratio a draw, 0.075 / sqrt(n), and 20 nats over n.
    assert late.lower_bound == pytest.approx(divergence, abs=1e-3)
    assert late.wealth["draws"][: len(early.wealth["draws"])] == early.wealth["draws"]


def test_an_error_that_is_allowed_is_not_a_deviation() -> None:
    assert check_conformity(LOADED, 0, error=0.2, alpha=RARELY, draws=50_000).verdict == Verdict.CONSISTENT
    assert check_conformity(LOADED, 0, error=0.001, draws=200_000).verdict == Verdict.DEVIATION


def test_few_draws_are_inconclusive() -> None:
    result = check_conformity(Rolls(), 0, alpha=RARELY, draws=400)
    assert result.verdict == Verdict.INCONCLUSIVE
    assert "0.01 was to be found" in result.message
    assert check_conformity(Rolls(), 0, alpha=RARELY, draws=400, detect=1.0).verdict == Verdict.CONSISTENT


def test_a_deviation_on_one_of_several_datasets_is_found_and_named() -> None:
    def loaded_on_one(data: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return (LOADED if data else Rolls())(data, n, rng)

    result = check_conformity(loaded_on_one, 0, 0, 1, reference=Rolls(), draws=300_000)
    assert result.verdict == Verdict.DEVIATION
    assert result.cells["dataset"] == "dataset 3"
    assert str(result.event).endswith("on dataset 3")


def test_dependent_draws_are_a_deviation() -> None:
    def repeats(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.repeat(rng.integers(1, 7), n)

    result = check_conformity(repeats, 0, reference=Rolls())
    assert result.verdict == Verdict.DEVIATION
    assert "not independent" in result.message


def test_a_target_that_crashes_is_an_error() -> None:
    def crashes(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        raise RuntimeError("out of dice")

    result = check_conformity(crashes, 0, reference=Rolls())
    assert result.verdict == Verdict.ERROR
    assert "out of dice" in result.message


def test_other_types_and_shapes_are_deviations_not_errors() -> None:
    outputs: list[Callable[[NDArray[Any]], Any]] = [
        lambda x: x[:, None],
        lambda x: x + 0.5,
        lambda x: [str(v) for v in x],
        lambda x: np.where(x == 6, np.nan, x),
    ]
    for change in outputs:

        def changed(data: Any, n: int, rng: np.random.Generator, change: Callable[[NDArray[Any]], Any] = change) -> Any:
            return change(Rolls()(data, n, rng))

        result = check_conformity(changed, 0, reference=Rolls())
        assert result.verdict == Verdict.DEVIATION
        assert result.lower_bound == math.inf
        assert "none of the stated outcomes" in result.message


def test_the_same_seed_gives_the_same_result() -> None:
    first, again, other = (check_conformity(LOADED, 0, 1, seed=seed, draws=5_000) for seed in (3, 3, 4))
    assert first.to_json() == again.to_json()
    assert first.record != other.record


def test_a_number_of_chunks_can_be_replayed() -> None:
    settings = Settings(draws=10_000, stop="budget")
    cells = [cells_of(Rolls().law(0))]
    whole = collect_cells(Sampler(Rolls(), 0, "key"), [0], cells, 1e-9, settings)
    part = collect_cells(Sampler(Rolls(), 0, "key"), [0], cells, 1e-9, dataclasses.replace(settings, chunks=7))
    assert part.path == whole.path[:7]


def test_no_time_still_gives_one_chunk() -> None:
    result = check_conformity(Rolls(), 0, seconds=1e-9)
    assert result.truncated_by == "time"
    assert len(result.record["chunks"]) == 1


def test_the_verdict_can_be_computed_again_from_the_record() -> None:
    result = check_conformity(LOADED, 0, draws=50_000, stop="budget")
    counts = [[np.array(c) for c in several] for several in result.record["counts"]]
    pi = [view.probabilities for view in cells_of(Rolls().law(0)).views]
    log = combine_wealths(
        [average_wealths(Multinomials(pi).log_wealth(counts[0]))], [int(counts[0][0].sum())], math.log1p(1e-9)
    )
    assert result.log10_max_e_value == pytest.approx(log / math.log(10))


def test_what_is_asked_is_checked() -> None:
    with pytest.raises(SpecificationError, match="at least one dataset"):
        check_conformity(Rolls())
    with pytest.raises(SpecificationError, match="must be callable"):
        check_conformity(5, 0)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="law"):
        check_conformity(lambda data, n, rng: np.zeros(n), 0)
    with pytest.raises(SpecificationError, match="error must be"):
        StatedLaw(Rolls(), error=0.0)
    with pytest.raises(SpecificationError, match="rounding must be"):
        StatedLaw(Rolls(), rounding=-1.0)
    for endless in ({"error": math.inf}, {"rounding": math.inf}):
        with pytest.raises(SpecificationError, match="finite number, got inf"):
            StatedLaw(Rolls(), **endless)


def test_a_lattice_beyond_what_doubles_tell_apart_is_refused() -> None:
    """Integers about 2^62, read as doubles, are all multiples of 1,024: a right sampler was a deviation."""
    for law in (TwoSidedGeometricLaw(2**62, 1.5), TwoSidedGeometricLaw(0, 1 + 1e-15), DiscreteGaussianLaw(-(2**53), 3)):
        with pytest.raises(SpecificationError, match="do not tell neighbouring steps apart"):
            cells_of(law)
    near = TwoSidedGeometricLaw(2**51, 1.5)
    assert cells_of(near).views[0].probabilities.max() == pytest.approx(0.2)


def test_results_fit_the_schema_and_the_reports() -> None:
    law = ProductLaw((TwoSidedGeometricLaw(0, 1.01, 0.5),) * 2)

    class Two:
        def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
            return 0.5 * (rng.geometric(1 - 1 / 1.01, (n, 2)) - rng.geometric(1 - 1 / 1.01, (n, 2)))

        def law(self, data: Any) -> Law:
            return law

    def off(data: Any, n: int, rng: np.random.Generator) -> Any:
        return rng.normal(size=(n, 2))

    found: list[AuditResult] = [
        check_conformity(Two(), 0, alpha=RARELY, draws=20_000, id="a/b/L3/conformity/right"),
        check_conformity(off, 0, 1, reference=Two(), id="a/b/L3/conformity/wrong"),
    ]
    content = json.loads(json.dumps(make_document({"dpaudit": "0", "seed": 0, "alpha": 0.01}, found, [])))
    jsonschema.validate(content, report.read_schema())
    for claim in content["claims"]:
        assert len(claim["cells"]["labels"]) == len(claim["cells"]["stated"]) == len(claim["cells"]["counts"])
        assert len(claim["cells"]["labels"]) <= SHOWN + 1


@pytest.mark.parametrize("step", [0.1, 1 / 3, 1e-3, 0.7])
def test_a_lattice_point_is_one_however_it_was_computed(step: float) -> None:
    law = TwoSidedGeometricLaw(3, 1.1, step=step)
    z = np.arange(-3_000, 3_000)
    impossible = len(cells_of(law).views[0].labels)
    computed = [z * step, 3 * step + (z - 3) * step, (z * step * 8) / 8]
    if step in (0.1, 1e-3):
        computed.append(z / round(1 / step))
    for values in computed:
        for counts in cells_of(law).counts(values):
            assert counts[-1] == 0
    # What is really off the lattice is impossible, by a thousandth of a step or by half of one.
    for off in (0.001, 0.5):
        counts = cells_of(law).counts((z + off) * step)[0]
        assert len(counts) == impossible + 1
        assert counts[-1] == len(z)


def test_a_lattice_whose_step_is_a_power_of_two_is_exact() -> None:
    law = TwoSidedGeometricLaw(3, 1.1, step=0.25)
    assert cells_of(law).counts(np.array([0.5, np.nextafter(0.5, 1)]))[0][-1] == 1
