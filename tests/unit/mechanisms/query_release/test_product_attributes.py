"""Parities of t attributes from second moments of their products."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from auditor.claims.privacy import curve_of_law
from auditor.datasets import Pair
from mechanisms.query_release.product_attributes import MUTANTS, ProductMoments, SmallestSign
from mechanisms.query_release.second_moments import NoisyMoments, SignedHistogram


def signs(people: int, d: int) -> Any:
    return np.random.default_rng(d).choice(np.array([-1.0, 1.0]), (people, d))


@pytest.mark.parametrize(
    ("d", "order", "width", "splits"),
    [(5, 2, 5, 2), (5, 4, 10, 6), (6, 6, 20, 20), (4, 3, 10, 6), (6, 5, 35, 20)],
)
def test_sizes(d: int, order: int, width: int, splits: int) -> None:
    query = ProductMoments(d, order=order)
    assert query.width == width == len(query.subsets)
    assert query.splits.shape == (math.comb(d, order), splits)
    # Each moment is of at most one set.
    assert len(np.unique(query.splits)) == query.splits.size
    assert query.norm == width


@pytest.mark.parametrize(("d", "order"), [(5, 2), (5, 4), (4, 3), (6, 5), (6, 6)])
def test_parities_by_loops(d: int, order: int) -> None:
    rows, query = signs(9, d), ProductMoments(d, order=order)
    expected = [
        sum(math.prod(v[i] for i in chosen) for v in rows) for chosen in itertools.combinations(range(d), order)
    ]
    assert query.true_parities(rows).tolist() == expected
    moments = query(rows)
    assert (moments[query.splits] == np.array(expected)[:, None]).all()
    assert query.parities(np.stack([moments, 2 * moments])).tolist() == [expected, [2 * x for x in expected]]
    histogram = SignedHistogram(rows[:2], np.array([3.0, -1.0]))
    assert query.true_parities(histogram).tolist() == query.parities(query(histogram)).tolist()


def test_a_set_that_is_split_by_the_constant_attribute() -> None:
    query = ProductMoments(3, order=3)
    assert [tuple(row) for row in query.subsets.tolist()] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    attributes = query.attributes(np.array([[-1.0, 1.0, -1.0]]))
    assert attributes.tolist() == [[-1.0, 1.0, -1.0, -1.0, 1.0, -1.0]]


@pytest.mark.parametrize("order", [3, 4])
def test_conjunctions_are_no_products(order: int) -> None:
    rows, query = signs(30, 6), SmallestSign(6, order=order)
    assert (query(rows)[query.splits] != query.true_parities(rows)[:, None]).any()
    # With one attribute a set there is no difference.
    assert np.array_equal(SmallestSign(6, order=2)(rows), ProductMoments(6, order=2)(rows))


@pytest.mark.parametrize(("d", "order"), [(5, 4), (4, 3)])
def test_the_level_is_that_of_all_products(d: int, order: int) -> None:
    base = NoisyMoments(ProductMoments(d, order=order), 1.0, 1e-5)
    pair = Pair(np.ones((2, d)), np.ones((1, d)))
    levels = []
    for mechanism in (base, MUTANTS["R_d_kept"].build(base)):
        found = curve_of_law(mechanism)
        assert found is not None
        levels.append(found(pair).mu())
    assert levels[0] == pytest.approx(base.mu, rel=1e-9)
    assert levels[1] == pytest.approx(base.query.width / d * base.mu, rel=1e-3)


@pytest.mark.parametrize("order", [1, 5])
def test_mistakes_are_shown(order: int) -> None:
    with pytest.raises(ValueError, match=f"an order from 2 to 4, got {order}"):
        ProductMoments(4, order=order)
