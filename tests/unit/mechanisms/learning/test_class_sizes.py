"""Sizes and VC dimensions of classes, against trying all sets of points."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from mechanisms.learning.class_sizes import (
    at_most,
    conjunctions,
    functions,
    parities,
    points,
    sauer,
    thresholds,
    vc_dimension,
    written_conjunctions,
)

RNG = np.random.default_rng(20240604)


def tried(table: Any) -> int:
    """Largest shattered set, by definition."""
    size = table.shape[1]
    shattered = [
        k
        for k in range(size + 1)
        for chosen in itertools.combinations(range(size), k)
        if len({tuple(row[list(chosen)].tolist()) for row in table}) == 2**k
    ]
    return max(shattered)


@pytest.mark.parametrize("functions_in_it", [1, 2, 5, 20, 100])
def test_vc_dimension_is_its_definition(functions_in_it: int) -> None:
    for size in (1, 3, 6):
        table = functions(RNG.integers(0, 2, (functions_in_it, size)))
        assert vc_dimension(table) == tried(table)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_known_classes(d: int) -> None:
    size = 1 << d
    assert (len(thresholds(d)), vc_dimension(thresholds(d))) == (size + 1, 1)
    assert (len(points(d)), vc_dimension(points(d))) == (size, 1)
    assert (len(parities(d)), vc_dimension(parities(d))) == (size, d)
    assert len(conjunctions(d)) == 3**d + 1
    assert len(written_conjunctions(d)) == 4**d
    # The d points with a single 0 are shattered; for d = 1 all four functions are conjunctions.
    assert vc_dimension(conjunctions(d)) == {1: 2}.get(d, d)


def test_thresholds_are_one_function_too_many() -> None:
    """log2(1 + 2^-d) above d VC, to the last digit."""
    for d in (1, 2, 3, 4, 5):
        excess = math.log2(len(thresholds(d))) - d * vc_dimension(thresholds(d))
        assert excess == pytest.approx(math.log2(1 + 2.0**-d), abs=1e-12)


@pytest.mark.parametrize("size", [3, 6, 9])
def test_sauers_lemma_on_random_classes(size: int) -> None:
    for count in (2, 5, 30, 300):
        table = functions(RNG.integers(0, 2, (count, size)))
        assert len(table) <= sauer(size, vc_dimension(table))
        assert vc_dimension(table) <= math.log2(len(table))


@pytest.mark.parametrize("ones", [0, 1, 2, 3])
def test_functions_of_few_ones_attain_sauers_sum(ones: int) -> None:
    table = at_most(3, ones)
    assert vc_dimension(table) == ones
    assert len(table) == sauer(8, ones)


def test_the_printed_bound_fails_by_one_at_most() -> None:
    for d in (1, 2, 3, 5):
        assert sauer(1 << d, 1) == (1 << d) + 1
        assert all(sauer(1 << d, vc) <= 2 ** (d * vc) for vc in range(2, (1 << d) + 1))


@pytest.mark.parametrize("table", [np.zeros((0, 4)), np.zeros(4)])
def test_empty_tables_are_refused(table: Any) -> None:
    with pytest.raises(ValueError, match="at least one function and one point"):
        vc_dimension(table)


@pytest.mark.parametrize("d", [0, 13])
def test_dimensions_out_of_reach_are_refused(d: int) -> None:
    with pytest.raises(ValueError, match=f"from 1 to 12, got {d}"):
        thresholds(d)
