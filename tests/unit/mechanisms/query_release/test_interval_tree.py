"""The dyadic tree: its answers against counting, its exact figures against enumeration and draws, its mutants.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiments.common import visits
from experiments.document_003_bellairs_lectures.intervals import _TREE, _from_none
from mechanisms.base.noise import base_for
from mechanisms.query_release.interval_tree import (
    MUTANTS,
    IntervalTree,
    chernoff,
    largest_beyond,
    largest_quantile,
    packing_bound,
    threshold_answers,
)
from tests.statistics import level_of

FALSE_ALARM = 1e-6


def small(depth: int, epsilon: float = 1.0, size: int = 50) -> IntervalTree:
    return IntervalTree(None, depth, size, epsilon)


def values(depth: int, size: int = 50) -> Any:
    return np.random.default_rng(depth).integers(0, 2**depth, size)


# ------------------------------------------------------------------------------------ tree and answers


@pytest.mark.parametrize("depth", [1, 2, 5, 7])
def test_nodes_are_counts_of_dyadic_intervals(depth: int) -> None:
    data = values(depth)
    counts = small(depth).counts(data)
    assert counts.shape == (2 ** (depth + 1) - 1,)
    for height in range(depth + 1):
        block = 2 ** (depth - height)
        wanted = [np.count_nonzero(data // block == i) for i in range(2**height)]
        assert counts[2**height - 1 : 2 ** (height + 1) - 1].tolist() == wanted


@pytest.mark.parametrize("depth", [1, 2, 5, 7])
def test_answers_of_a_tree_without_noise_are_the_shares(depth: int) -> None:
    data, tree = values(depth), small(depth)
    found = threshold_answers(tree.counts(data)[None] * tree.unit)
    assert found.shape == (1, 2**depth)
    assert found[0] == pytest.approx([(data >= t).mean() for t in range(2**depth)], abs=1e-12)


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_an_answer_adds_up_so_many_nodes(depth: int) -> None:
    # Trees with one node of 1 each show which nodes an answer adds up.
    nodes = 2 ** (depth + 1) - 1
    used = threshold_answers(np.eye(nodes))
    assert set(np.unique(used).tolist()) <= {0.0, 1.0}
    tree = small(depth)
    each = 2 * tree.base / (tree.base - 1) ** 2 / tree.size**2
    noisy = used[1:].sum(axis=0)
    assert noisy.max() == noisy[1] == depth
    for t in range(2**depth):
        assert tree.query_variance(t) == pytest.approx(noisy[t] * each, rel=1e-12)
    assert each <= 2 * (2 * depth / (tree.epsilon * tree.size)) ** 2


# ---------------------------------------------------------------------------------------- the largest error


def brute(depth: int, a: float, reach: int, most: int) -> float:
    """Probability that an error is beyond reach, by enumeration of the noise on the nodes that answers use."""
    inner = 2**depth - 1
    used = threshold_answers(np.eye(2 * inner + 1)[1:])  # without the root, whose noise is none
    right = used.any(axis=1)
    z = np.arange(-most, most + 1)
    mass = a ** -np.abs(z).astype(float) * (a - 1) / (a + 1)
    total = 0.0
    for drawn in itertools.product(range(len(z)), repeat=int(right.sum())):
        errors = z[list(drawn)] @ used[right]
        if np.abs(errors).max() <= reach:
            total += float(np.prod(mass[list(drawn)]))
    return 1 - total


@pytest.mark.parametrize("reach", [0, 1, 3])
def test_the_recursion_is_the_enumeration(reach: int) -> None:
    # Errors within reach need every used node's noise within twice that: nothing is cut off.
    assert largest_beyond(1, 2.0, reach) == pytest.approx(brute(1, 2.0, reach, 2 * reach), rel=1e-12)
    assert largest_beyond(2, 1.5, reach) == pytest.approx(brute(2, 1.5, reach, 2 * reach), rel=1e-12)


@pytest.mark.parametrize("depth", [3, 7])
def test_the_largest_error_has_that_law(depth: int) -> None:
    data, tree, n = values(depth), small(depth), 20_000
    truth = threshold_answers(tree.counts(data)[None] * tree.unit)
    errors = np.abs(threshold_answers(tree(data, n, np.random.default_rng(1))) - truth).max(axis=1)
    for q in (0.05, 0.5, 0.95):
        at = tree.quantile(q)
        assert tree.beyond(at) <= 1 - q < tree.beyond(at - tree.unit)
        # Outputs are quotients: half a row decides nothing.
        found = int((errors > at + 0.5 * tree.unit).sum())
        assert stats.binomtest(found, n, tree.beyond(at)).pvalue > FALSE_ALARM / 6
    # Six standard errors: 2e-9 for a normal mean, and room for the skewness.
    assert errors.mean() == pytest.approx(tree.expected_largest(), abs=6 * errors.std() / math.sqrt(n))


def test_a_deep_tree_loses_nothing_to_rounding() -> None:
    # Errors of rounding that doubled with each of 96 levels would be of the order of 10^12.
    a = base_for(1.0, 1)
    medians = [largest_quantile(depth, a, 0.5) for depth in (24, 48, 96)]
    # The speed of a branching random walk, min over u of ln(1 + M(u))/u, is reached from below.
    u = np.linspace(0.01, 0.99, 99)
    moment = (math.cosh(1.0) - 1) / (math.cosh(1.0) - np.cosh(u))
    speed = float((np.log1p(moment) / u).min())
    assert [m / d < speed for m, d in zip(medians, (24, 48, 96), strict=True)] == [True] * 3
    assert medians[2] / 96 == pytest.approx(speed, rel=0.1)


@pytest.mark.parametrize("depth", [1, 4, 10])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_the_bound_holds(depth: int, epsilon: float) -> None:
    tree = small(depth, epsilon)
    for beta in (0.5, 0.05, 1e-3):
        assert tree.beyond(tree.bound(beta)) <= beta


def test_the_bound_is_a_minimum_over_a_grid() -> None:
    u = np.linspace(0.001, 0.999, 999)
    for depth, log in ((1, 1.0), (7, 3.7), (22, 0.7)):
        grid = ((depth * np.log1p(1 / (1 - u * u)) + log) / u).min()
        assert chernoff(depth, log) == pytest.approx(grid, rel=1e-4)
        assert chernoff(depth, log) <= grid * (1 + 1e-9)


def test_the_packing_bound_by_hand() -> None:
    # p 2^d <= e^(eps r) with r = 2 al n + 1 rows.
    al = packing_bound(10, 0.5, 1000, 0.5)
    assert pytest.approx(math.exp(0.5 * (2 * al * 1000 + 1))) == 0.5 * 2.0**10
    # No mechanism does better, so the tree does not.
    for depth in (2, 8, 14):
        assert packing_bound(depth, 1.0, 50, 0.5) <= small(depth).quantile(0.5) + small(depth).unit


def test_a_tree_of_a_million_leaves() -> None:
    tree, data = small(20), values(20)
    nodes = tree(data, 1, np.random.default_rng(2))
    errors = np.abs(threshold_answers(nodes) - threshold_answers(tree.counts(data)[None] * tree.unit))
    assert errors.max() <= tree.bound(FALSE_ALARM)


# ----------------------------------------------------------------------------------------- privacy


def test_a_move_costs_what_the_paths_differ_in() -> None:
    assert level_of(_TREE, visits(0, 77).x, visits(0, 77).y) == pytest.approx(1.0, rel=1e-9)
    assert level_of(_TREE, visits(0, 1).x, visits(0, 1).y) == pytest.approx(1 / 7, rel=1e-9)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_move_costs_more_than_epsilon(depth: int) -> None:
    tree = small(depth, 0.7, 3)
    worst = max(
        level_of(tree, np.array([0, x, 1]), np.array([0, y, 1])) for x in range(2**depth) for y in range(2**depth)
    )
    assert worst == pytest.approx(0.7, rel=1e-9)


def test_draws_of_nodes_follow_the_law() -> None:
    data, tree, n = values(3), small(3), 40_000
    draws = tree(data, n, np.random.default_rng(3))
    law = tree.law(data)
    assert (draws[:, 0] == law.parts[0].outcomes[0]).all()  # type: ignore[union-attr]
    for i, part in enumerate(law.parts[1:], 1):
        centre = part.loc * tree.unit  # type: ignore[union-attr]
        for cut in (centre - 2.5 * tree.unit, centre + 0.5 * tree.unit):
            below = int((draws[:, i] <= cut).sum())
            assert stats.binomtest(below, n, float(part.cdf(cut))).pvalue > FALSE_ALARM / 28  # type: ignore[union-attr]


# ----------------------------------------------------------------------------------------- mutants


def test_levels_of_mutants() -> None:
    pair, one = _from_none(3, 7), small(3)
    tree = replace(_TREE, depth=3)
    assert level_of(MUTANTS["noise_1_over_eps_n"].build(tree), pair.x, pair.y) == pytest.approx(6.0, rel=1e-9)
    assert level_of(MUTANTS["noise_d_over_eps_n"].build(tree), pair.x, pair.y) == pytest.approx(2.0, rel=1e-9)
    assert level_of(MUTANTS["root_without_budget"].build(tree), pair.x, pair.y) == pytest.approx(1.0, rel=1e-9)
    levels = {name: found.true_level(one) for name, found in MUTANTS.items() if found.true_level}
    assert levels == {
        "noise_1_over_eps_n": 6.0,
        "noise_d_over_eps_n": 2.0,
        "root_without_budget": 1.0,
        "leaves_only": 1.0,
    }


def test_the_noisy_root_is_noisy() -> None:
    data, n = values(3), 1000
    rooted = MUTANTS["root_without_budget"].build(small(3))(data, n, np.random.default_rng(4))
    assert len(set(np.asarray(rooted)[:, 0].tolist())) > 2
    assert set(small(3)(data, n, np.random.default_rng(4))[:, 0].tolist()) == {1.0}


def test_noise_on_leaves_adds_up() -> None:
    depth, n = 6, 20_000
    leaves: Any = MUTANTS["leaves_only"].build(small(depth))
    data = values(depth)
    answers = threshold_answers(leaves(data, n, np.random.default_rng(5)))
    errors = answers - threshold_answers(leaves.counts(data)[None] * leaves.unit)
    each = 2 * leaves.base / (leaves.base - 1) ** 2 * leaves.unit**2
    for t in (1, 16, 63):
        # A sum of 64 - t draws of noise: its square deviates by at most sqrt(5) of its mean; six standard errors.
        assert (errors[:, t] ** 2).mean() == pytest.approx((64 - t) * each, rel=6 * math.sqrt(5 / n))
    assert leaves.base == base_for(1.0, 2)


# ---------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"depth": 0}, r"a depth of 1 to 22, got 0"),
        ({"depth": 23}, r"a depth of 1 to 22, got 23"),
        ({"size": 0}, r"a public size >= 1, got 0"),
        ({"epsilon": -1.0}, r"a finite epsilon > 0, got -1\.0"),
    ],
)
def test_mistakes_are_shown(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(_TREE, **wrong)


def test_data_that_are_not_of_the_universe_are_refused() -> None:
    with pytest.raises(ValueError, match=r"integers from 0 to 3, got array\(\[4\.\]\)"):
        small(2, size=2).counts(np.array([0, 4]))
    with pytest.raises(ValueError, match=r"integers from 0 to 3, got array\(\[0\.5\]\)"):
        small(2, size=2).counts(np.array([0, 0.5]))
    with pytest.raises(ValueError, match=r"3 rows, got 2"):
        small(2, size=3).counts(np.array([0, 1]))
    with pytest.raises(ValueError, match=r"a threshold from 0 to 3, got 4"):
        small(2).query_variance(4)
    with pytest.raises(ValueError, match=r"a probability in \(0, 1\], got 0"):
        packing_bound(3, 1.0, 10, 0)
