"""Structured queries: sensitivities and distances against enumeration, mutants at their levels."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import ClippedMean, Count, Histogram
from mechanisms.query_release.structured_queries import (
    MUTANTS,
    DistanceToHistogram,
    DistanceToRange,
    LargestCount,
    SampledProperty,
    ThresholdFromData,
    UnclippedMean,
    data_dependent_property,
    datasets,
    distance_by_enumeration,
    global_sensitivity,
    range_not_clipped,
)
from tests.statistics import level_of

UNIVERSE = (0.0, 1.0, 2.0)
SIZE = 5
POSITIVE = Count(low=1.0)
OVERLAPPING = (Count(low=1.0), Count(low=2.0), Count(high=1.0))
#: False-alarm probability of each statistical test, for any seed.
FALSE_ALARM = 1e-7


def slow_sensitivity(query: Any, universe: tuple[float, ...], size: int) -> float:
    """The definition, over all pairs of datasets."""
    every = [np.array(one) for one in itertools.product(universe, repeat=size)]
    return max(
        abs(float(query(x)) - float(query(y))) for x, y in itertools.product(every, every) if int((x != y).sum()) == 1
    )


def test_datasets_are_all_of_them_once() -> None:
    every = datasets(UNIVERSE, 3)
    assert every.shape == (27, 3)
    assert len({tuple(row) for row in every.tolist()}) == 27
    assert datasets(UNIVERSE, 0).shape == (1, 0)
    with pytest.raises(ValueError, match=r"expected at most 1000000 datasets, got 4782969"):
        datasets(UNIVERSE, 14)


QUERIES: list[tuple[Any, float]] = [
    (LargestCount(OVERLAPPING), 1.0),
    (LargestCount(OVERLAPPING[:1]), 1.0),
    (DistanceToRange(POSITIVE, 4), 1.0),
    (DistanceToRange(POSITIVE, SIZE), 1.0),
    (DistanceToRange(POSITIVE, 1, 2), 1.0),
    (DistanceToHistogram(Histogram(categories=(0.0, 1.0)), (2, 1)), 1.0),
    (ClippedMean(SIZE, None, 0.0, 2.0, resolution=1.0), 2.0 / SIZE),
    (ThresholdFromData(Count(equals=1.0), Count(equals=2.0)), 2.0),
    (UnclippedMean(SIZE, None, 2.0, resolution=1.0), 2.0 / SIZE),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_global_sensitivity_by_enumeration(query: Any, expected: float) -> None:
    found = global_sensitivity(query, UNIVERSE, SIZE)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found == slow_sensitivity(query, UNIVERSE, SIZE)


@pytest.mark.parametrize(("query", "expected"), QUERIES[:6])
def test_declared_sensitivities_are_attained(query: Any, expected: float) -> None:
    assert query.sensitivity == query.linf_sensitivity == expected
    assert (query.relation, query.granularity) == ("replace_one", 1.0)


@pytest.mark.parametrize(("low", "high"), [(0, math.inf), (2, math.inf), (5, math.inf), (0, 0), (1, 2), (3, 3)])
def test_distances_to_a_range_are_those_of_the_definition(low: int, high: float) -> None:
    query = DistanceToRange(POSITIVE, low, high)
    for data in datasets(UNIVERSE, SIZE):
        expected = distance_by_enumeration(data.tolist(), lambda x: low <= float(POSITIVE(x)) <= high, UNIVERSE)
        assert float(query(data)) == expected


@pytest.mark.parametrize("target", [(0, 0), (5, 0), (2, 1), (2, 3), (1, 1)])
def test_distances_to_a_histogram_are_those_of_the_definition(target: tuple[int, int]) -> None:
    cells = Histogram(categories=(0.0, 1.0))
    query = DistanceToHistogram(cells, target)
    for data in datasets(UNIVERSE, SIZE):
        expected = distance_by_enumeration(data.tolist(), lambda x: tuple(cells(x)) == target, UNIVERSE)
        assert float(query(data)) == expected


def test_no_dataset_with_the_property_is_infinitely_far() -> None:
    assert distance_by_enumeration([0.0, 0.0], lambda data: False, UNIVERSE) == math.inf


LARGEST = LatticeLaplace(LargestCount(OVERLAPPING), 0.5)
DISTANCE = LatticeLaplace(DistanceToRange(Count(equals=1.0), 3), 0.5)
#: Size and resolution are powers of two, so that all means are on the lattice.
LINEAR = LatticeLaplace(ClippedMean(4, None, resolution=1.0), 0.5, step=2.0**-4)


@pytest.mark.parametrize(
    ("mechanism", "data", "other"),
    [(LARGEST, [0.0, 2.0, 2.0], [1.0, 2.0, 2.0]), (DISTANCE, [0.0] * 4, [1.0] + [0.0] * 3), (LINEAR, [0] * 4, [1] * 4)],
)
def test_references_are_tight_where_the_answer_moves(mechanism: Any, data: Any, other: Any) -> None:
    moved = abs(float(mechanism.query(data)) - float(mechanism.query(other)))
    assert level_of(mechanism, data, other) == pytest.approx(0.5 * moved / mechanism.query.sensitivity, rel=1e-9)


def test_levels_of_the_mutants() -> None:
    # The largest count is 2 on both sides, but the index changes.
    argmax: Any = MUTANTS["argmax_released"].build(LARGEST)
    tied, other = [2.0, 2.0, 0.0, 0.0], [2.0, 2.0, 0.0, 2.0]
    assert level_of(argmax, tied, other) <= 0.5 * (1 + 1e-9)  # counts 2, 2, 2 and 3, 3, 1: the first leads in both
    swapped = LatticeLaplace(LargestCount((Count(equals=0.0), Count(equals=1.0))), 0.5)
    argmax = MUTANTS["argmax_released"].build(swapped)
    assert level_of(argmax, [0.0, 1.0], [1.0, 1.0]) == math.inf
    assert level_of(swapped, [0.0, 1.0], [1.0, 1.0]) == pytest.approx(0.5, rel=1e-9)
    summed = MUTANTS["sum_of_sensitivities"]
    assert summed.true_level is not None
    assert level_of(summed.build(LARGEST), [0.0, 2.0, 2.0], [1.0, 2.0, 2.0]) == pytest.approx(
        summed.true_level(LARGEST), rel=1e-9
    )
    assert summed.true_level(LARGEST) == pytest.approx(0.5 / 3)
    dependent = data_dependent_property(Count(equals=2.0))
    assert dependent.true_level is not None
    assert level_of(dependent.build(DISTANCE), [2.0, 2.0, 2.0], [1.0, 2.0, 2.0]) == pytest.approx(
        dependent.true_level(DISTANCE), rel=1e-9
    )
    unclipped = range_not_clipped(3.0)
    assert unclipped.true_level is not None
    assert level_of(unclipped.build(LINEAR), [0] * 4, [3] + [0] * 3) == pytest.approx(
        unclipped.true_level(LINEAR), rel=1e-9
    )
    assert unclipped.true_level(LINEAR) == pytest.approx(1.5)


def test_draws_with_the_index() -> None:
    outputs = MUTANTS["argmax_released"].build(LARGEST)([0.0, 2.0, 2.0], 5, np.random.default_rng(0))
    assert outputs.shape == (5, 2)
    np.testing.assert_array_equal(outputs[:, 1], 0.0)
    np.testing.assert_array_equal(np.fmod(outputs[:, 0], LARGEST.step), 0.0)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("data", [[0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
def test_distances_to_sampled_members_by_enumeration(members: int, data: list[int]) -> None:
    query = DistanceToRange(Count(equals=1), 3)
    mechanism, n = SampledProperty(query, 1.0, members=members), 40_000
    # One member: each string of six bits with three ones at least is as likely.
    inside = [bits for bits in itertools.product((0, 1), repeat=6) if sum(bits) >= 3]
    away = Counter(sum(a != b for a, b in zip(bits, data, strict=True)) for bits in inside)
    beyond = {d: sum(times for k, times in away.items() if k >= d) / len(inside) for d in range(8)}
    expected = np.array([beyond[d] ** members - beyond[d + 1] ** members for d in range(7)])
    found = np.bincount(mechanism.distances(data, n, np.random.default_rng(4)), minlength=7)
    possible = expected > 0
    assert not found[~possible].any()
    # Chi-square; the rarest of the cells has an expectation of 30 at least, except where it is merged here.
    large = expected * n >= 30
    merged = [np.append(v[large], v[~large].sum()) for v in (found, expected * n)]
    kept = merged[1] > 0
    assert stats.chisquare(merged[0][kept], merged[1][kept]).pvalue > FALSE_ALARM


def test_noise_around_sampled_members() -> None:
    mechanism, n = SampledProperty(DistanceToRange(Count(equals=1), 2), 1.0, members=50), 20_000
    # Fifty members of a property of 11 in 16 strings: one is the data, except with probability (10/11)^50 < 0.009.
    outputs = mechanism([1, 1, 0, 0], n, np.random.default_rng(5))
    law: Any = LatticeLaplace(mechanism.query, 1.0).law([1, 1, 0, 0])
    share = float((outputs <= 0.0).mean())
    slack = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))  # Hoeffding
    assert abs(share - float(law.cdf(0.0))) <= slack + 0.009


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LargestCount(()), r"expected at least one count, got \(\)"),
        (lambda: DistanceToRange(POSITIVE, 3, 2), r"expected 0 <= low <= high, got \(3, 2\)"),
        (
            lambda: DistanceToRange(POSITIVE, 1.5),  # type: ignore[arg-type]
            r"expected an integer as low, got 1\.5",
        ),
        (lambda: DistanceToRange(POSITIVE, 1, 2.5), r"expected an integer or inf as high, got 2\.5"),
        (lambda: DistanceToRange(POSITIVE, 4)([0.0]), r"as many rows as are to be counted, got \(1, 4\)"),
        (lambda: DistanceToHistogram(Histogram(categories=(0, 1)), (1,)), r"expected 2 numbers of rows, got \(1,\)"),
        (lambda: DistanceToHistogram(Histogram(categories=(0,)), (-1,)), r"expected numbers of rows >= 0, got \(-1,\)"),
        (lambda: DistanceToHistogram(Histogram(categories=(0,)), (2,))([0]), r"a target of at most 1 rows, got 2"),
        (lambda: SampledProperty(DistanceToRange(POSITIVE, 1, 2), 1.0), r"without an upper end, got 2"),
        (lambda: SampledProperty(DistanceToRange(POSITIVE, 1), 1.0, members=0), r"expected at least one member, got 0"),
        (
            lambda: SampledProperty(DistanceToRange(POSITIVE, 3), 1.0)([0.0] * 5, 1, np.random.default_rng(0)),
            r"expected a property of at most half of the rows, got \(3, 5\)",
        ),
    ],
)
def test_refusals_show_the_value(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
