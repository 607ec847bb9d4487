"""Sparse vector as document 004 prints it: golden values, levels of an epoch, margins, and the mutants' levels."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from auditor.privacy.exact import curve
from experiments.document_004_model_agnostic._streams import added_pair, stream
from mechanisms.base.queries import Count, IdentityQuery
from mechanisms.selection.free_tops import (
    HARMLESS,
    CountDifferences,
    all_tops,
    bank,
    epoch,
    inverted,
    noise_scale,
    printed_margin,
    required_margin,
    sharper_margin,
    tail,
)
from mechanisms.selection.sparse_vector import SparseVector

Pair = tuple[list[float], list[float]]
#: The mutants' reference: T, delta and epsilon matter to m10 to m12 only.
BANK = bank(4, 0.01, 0.25)


def level(mechanism: SparseVector, pair: Pair, delta: float = 0.0) -> float:
    return curve(mechanism.law(pair[0]), mechanism.law(pair[1])).epsilon(delta)


def probability(mechanism: SparseVector, answers: list[float], transcript: tuple[int, ...]) -> float:
    law = mechanism.law(answers)
    return float(law.probabilities[law.outcomes.index(transcript)])


def opposed(tops: int, shift: float, at: float = 0.0) -> Pair:
    """Tops at w + shift and a bottom at w - shift, against all at w."""
    return [at + shift] * tops + [at - shift], [at] * (tops + 1)


def test_golden_values() -> None:
    # 004, section 0.3, scales 1 and 2: the document's top is 0 here, its bottom 1.
    unit = epoch(IdentityQuery(), 1.0)
    assert (unit.threshold_scale, unit.query_scale, unit.epsilon) == (1.0, 2.0, 2.0)
    for k, shift, golden in (
        (10, 0.5, (0.009617149161774695, 0.0036245396138876646)),
        (20, 1.0, (0.0033581818588445597, 0.00045663762425183)),
    ):
        transcript = (0,) * k + (1,)
        first = probability(unit, [shift] * k + [0.0], transcript)
        second = probability(unit, [0.0] * k + [shift], transcript)
        assert (first, second) == pytest.approx(golden, rel=1e-12)
    assert probability(unit, [1.0], (0,)) == pytest.approx(0.656959467053485, rel=1e-14)


def test_an_epoch_costs_two_shifts_and_a_monotone_one_one_and_a_half() -> None:
    for shift in (0.5, 1.0):
        unit = epoch(IdentityQuery(), 1.0)
        costs = [level(unit, ([shift] * k + [0.0], [0.0] * k + [shift])) for k in (3, 10, 40)]
        assert costs == sorted(costs)
        assert costs[-1] <= 2 * shift + 1e-9
        assert costs[-1] > 1.999 * shift
        # Far below the threshold, where the last bottom is certain, tops and threshold are all there is to pay.
        monotone = [level(unit, ([shift] * k, [0.0] * k)) for k in (3, 10, 40)]
        assert monotone[-1] <= 1.5 * shift + 1e-9
    # Every query costs at most Delta/(2 lambda), whatever the threshold.
    assert level(epoch(IdentityQuery(), 1.0), opposed(1, 1.0)) <= 2 / 2


def test_the_tail_of_the_two_noises() -> None:
    n, rng = 1_000_000, np.random.default_rng(1)
    noise = rng.laplace(0, 3.0, n) - rng.laplace(0, 1.5, n)
    for t in (-4.0, 0.0, 1.5, 4.5, 9.0):
        count = int((noise > t).sum())
        binomial = stats.binom(n, tail(t, 1.5))
        assert binomial.ppf(1e-8) <= count <= binomial.isf(1e-8)  # 5 values: 1e-7
    printed = {0: 0.5, 1: 0.34304, 3: 0.14046, 6: 0.03278}
    assert {t: round(tail(t, 1.0), 5) for t in printed} == printed


def test_the_margin_that_is_needed() -> None:
    # Against adaptive quadrature, and one query against the tail.
    for margin, queries in ((0.0, 3), (5.0, 20)):
        expected, _ = integrate.quad(
            lambda r, m=margin, k=queries: 0.5 * math.exp(-abs(r)) * stats.laplace.cdf((m - r) / 2) ** k,
            -40, 60, points=(0.0, margin), limit=400,
        )  # fmt: skip
        assert all_tops(margin, queries) == pytest.approx(expected, rel=1e-8)
    assert 1 - all_tops(4.0, 1) == pytest.approx(tail(4.0, 1.0), rel=1e-10)
    for queries in (1, 10, 100, 1000):
        needed = required_margin(queries, 0.1)
        assert 1 - all_tops(needed, queries) == pytest.approx(0.1, abs=1e-8)
        assert needed <= sharper_margin(queries, 0.1) <= 1.03 * needed
    for queries in (100, 1000):
        assert 2.5 <= printed_margin(queries, 10, 0.1) / required_margin(queries, 0.1) <= 3.3


def test_a_run_gives_out_one_bottom_more_than_t() -> None:
    for cutoff in (1, 3):
        outputs = inverted(IdentityQuery(), 1.0, 0.01, cutoff)(np.full(10, -1e5), 50, np.random.default_rng(0))
        assert ((outputs == 1).sum(axis=1) == cutoff + 1).all()
    assert noise_scale(2.0, 0.5, 1) == pytest.approx(math.sqrt(32 * math.log(2)) / 2)
    run = inverted(IdentityQuery(), 4.71, 0.5)
    assert run.threshold_scale == pytest.approx(1.0, abs=1e-4)
    assert run.query_scale == 2 * run.threshold_scale


# ---------------------------------------------------------------------------------------- mutants


def levels(name: str, pairs: list[Pair], scale: float = 1.0) -> list[float]:
    base = epoch(CountDifferences(_ONE, _ONE, "+-"), scale)
    found: Any = BANK[name].build(base)
    return [level(replace(found, query=_opposite(found)), pair) for pair in pairs]


_ONE = Count("a", equals=1.0, relation="add_remove_one")


def _opposite(mechanism: Any) -> Any:
    """The same wrapping of answers around plain answers."""
    return replace(mechanism.query, query=IdentityQuery())


def test_levels_of_scales_that_are_wrong() -> None:
    far = [([1.0] * k + [0.0], [0.0] * k + [1.0]) for k in (40,)]
    for name, cost in (
        ("m1_query_noise_lambda", 3.0),
        ("m2_scales_swapped", 2.5),
        ("m10_no_sqrt_T", 4.0),
        ("m11_no_log_delta", 2 * math.sqrt(math.log(100))),
        ("m12_eps_inside_the_root", 4.0),
        ("m16_log_base", 2 * math.sqrt(math.log(10))),
        ("m16_log_base_of_the_threshold", math.sqrt(math.log(10)) + 1),
    ):
        (found,) = levels(name, far)
        assert found <= cost + 1e-9, name
        assert found > 0.99 * cost, name
        stated = BANK[name].true_level
        assert stated is not None
        assert stated(epoch(IdentityQuery(), 1.0)) == pytest.approx(cost)


def test_levels_where_every_answer_costs() -> None:
    # Tops and a bottom far below the threshold: half a shift each without threshold noise, or with one that is fresh.
    for name in ("m4_no_threshold_noise", "m5_threshold_redrawn_every_query"):
        (found,) = levels(name, [([-30.0] * 4, [-31.0] * 4)])
        assert found == pytest.approx(4 / 2, rel=1e-6), name
    # Bottoms far above it cost as much, where nothing stops after them.
    for name in ("m7_no_cutoff", "m8_counter_counts_tops"):
        (found,) = levels(name, [([30.0] * 4, [31.0] * 4)])
        assert found == pytest.approx(4 / 2, rel=1e-6), name
    base = epoch(stream("+" * 7 + "-"), 1.0)
    for name in ("m4_no_threshold_noise", "m7_no_cutoff", "m9b_value_released_on_bot"):
        stated = BANK[name].true_level
        assert stated is not None
        assert stated(base) == 4.0


def test_a_threshold_that_is_never_low_makes_tops_costly() -> None:
    # Catalogue 004, M17: 2.82 and 10.37 Delta/lambda after 5 and 20 tops at Delta/lambda = 0.5.
    for tops, cost in ((5, 2.82), (20, 10.37)):
        best = max(
            levels("m17_one_sided_threshold_noise", [([at] * tops + [at + 0.5], [at + 0.5] * tops + [at])])[0]
            for at in np.arange(-40.0, 4.0, 0.5)
        )
        assert best / 0.5 == pytest.approx(cost, abs=0.01)


def test_missing_query_noise_publishes_an_order() -> None:
    # Catalogue 004, M6: delta = (1 - e^(-Delta/lambda))/2 at answers (0, Delta) against (Delta, 0): 0.0906 at 0.2.
    mutant: Any = BANK["m6_no_query_noise"].build(epoch(IdentityQuery(), 5.0))
    first, second = (mutant.law(answers) for answers in ([1.0, 0.0], [0.0, 1.0]))
    assert curve(first, second).delta(50.0) == pytest.approx(0.5 * (1 - math.exp(-0.2)), rel=1e-12)
    assert round(0.5 * (1 - math.exp(-0.2)), 4) == 0.0906


def test_the_level_with_gaussian_noise_on_the_published_pair() -> None:
    pair = added_pair()
    found: Any = BANK["m15_gaussian_noise"].build(epoch(stream("+" * 10 + "-"), 1.0, 0.5))

    def chance(top: float, bottom: float) -> float:
        def joint(r: float) -> float:
            tops = stats.norm.sf((0.5 + r - top) / 2) ** 10
            return float(stats.norm.pdf(r) * tops * stats.norm.cdf((0.5 + r - bottom) / 2))

        return integrate.quad(joint, -12, 12, limit=400)[0]

    expected = math.log(chance(1.0, -1.0) / chance(0.0, 0.0))
    assert curve(found.law(pair.x), found.law(pair.y)).epsilon(0.0) == pytest.approx(expected, rel=1e-7)
    assert expected == pytest.approx(2.50277, abs=5e-5)


def test_harmless_mutants_cost_less() -> None:
    run = inverted(IdentityQuery(), 4.71, 0.5)
    claimed = 4.0 / run.threshold_scale
    pair = ([1.0, 1.0, 1.0, 0.0] * 2, [0.0, 0.0, 0.0, 1.0] * 2)
    for mutant in HARMLESS.values():
        built: Any = mutant.build(run)
        assert level(built, pair) <= claimed
    kept: Any = HARMLESS["m3_threshold_not_redrawn"].build(run)
    assert level(kept, pair) <= 3.0 / run.threshold_scale + 1e-9  # (E + 1) Delta / lambda


def test_a_sensitivity_of_two_doubles_the_cost() -> None:
    pair = added_pair()
    for k in (3, 12):
        mutant: Any = BANK["m18_sensitivity_two"].build(epoch(stream("+" * k + "-"), 1.0))
        doubled = epoch(IdentityQuery(), 1.0)
        expected = level(doubled, ([2.0] * k + [-2.0], [0.0] * (k + 1)))
        assert curve(mutant.law(pair.x), mutant.law(pair.y)).epsilon(0.0) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: noise_scale(0.0, 0.1, 1), "0"),
        (lambda: noise_scale(1.0, 1.0, 1), r"a delta in \(0, 1\), got 1\.0"),
        (lambda: noise_scale(1.0, 0.1, 0), "a cutoff >= 1, got 0"),
        (lambda: epoch(IdentityQuery(), -1.0), "-1"),
        (lambda: CountDifferences(_ONE, _ONE, "+x"), "a pattern of"),
        (lambda: CountDifferences(Count("a", equals=1.0), _ONE, "+"), "counts under add_remove_one"),
        (lambda: required_margin(10, 1.0), r"a beta in \(0, 1\), got 1\.0"),
        (lambda: all_tops(1.0, 0), "a number of queries >= 1, got 0"),
        (lambda: bank(4, 2.0, 1.0), r"a delta in \(0, 1\), got 2\.0"),
        (lambda: BANK["m4_no_threshold_noise"].true_level(epoch(IdentityQuery(), 1.0)), "a stream of CountDifferences"),  # type: ignore[misc]
    ],
)
def test_what_is_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
