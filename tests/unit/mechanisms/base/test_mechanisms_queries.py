"""Queries: answers, declared sensitivities by brute force, refusals, real data."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from statsmodels.datasets import randhie

from mechanisms.base.noise import base_for, draw_geometric, round_to_lattice, two_sided_geometric
from mechanisms.base.queries import (
    ClippedMean,
    ClippedSum,
    Count,
    Histogram,
    IdentityQuery,
    Query,
    SeveralCounts,
    column_values,
)

# Values inside, outside and on the edges of every range below.
DOMAIN = (-1.5, -1.0, 0.0, 0.3, 1.0, 2.0)
CASES: list[tuple[Query, bool]] = [  # query, and whether the declared l1 sensitivity is attained
    (Count(low=0.0, high=1.0), True),
    (Count(equals=2.0), True),
    (Count(low=0.0, relation="add_remove_one"), True),
    (SeveralCounts((Count(low=0.0), Count(low=0.5), Count(equals=2.0))), True),
    (SeveralCounts((Count(equals=0.0), Count(equals=1.0), Count(equals=2.0))), False),
    (Histogram(edges=(-1.0, 0.0, 1.0)), True),
    (Histogram(edges=(-1.0, 1.0)), True),
    (Histogram(edges=(-1.0, 0.0, 1.0), relation="add_remove_one"), True),
    (Histogram(categories=(0.0, 1.0)), True),
    (ClippedSum(low=-1.0, high=1.0), True),
    (ClippedSum(low=-1.0, high=1.0, relation="add_remove_one"), True),
    (ClippedSum(low=0.25, high=1.0, relation="add_remove_one"), True),
    (ClippedMean(size=2, low=-1.0, high=1.0), True),
    (ClippedMean(size=3, low=-1.0, high=1.0), False),
]


@pytest.mark.parametrize(("query", "attained"), CASES)
def test_declared_sensitivity_by_enumeration(query: Query, attained: bool) -> None:
    size = query.size if isinstance(query, ClippedMean) else 2
    moves = []
    for rows in itertools.product(DOMAIN, repeat=size):
        base = np.array(rows)
        for i in range(size):
            if query.relation == "replace_one":
                others = [np.where(np.arange(size) == i, value, base) for value in DOMAIN]
            else:
                others = [np.delete(base, i)]
            moves += [np.abs(query(base) - query(other)) for other in others]
    largest = max(float(move.sum()) for move in moves)
    assert largest <= query.sensitivity
    assert max(float(move.max()) for move in moves) <= query.linf_sensitivity
    if attained:
        assert largest == query.sensitivity
        assert max(float(move.max()) for move in moves) == query.linf_sensitivity


@pytest.mark.parametrize(("query", "attained"), CASES)
def test_answers_are_multiples_of_the_granularity_and_queries_pickle(query: Query, attained: bool) -> None:
    del attained
    size = query.size if isinstance(query, ClippedMean) else 4
    rows = np.random.default_rng(1).choice(DOMAIN, size)
    answer = query(rows)
    assert answer.dtype == np.float64
    assert answer.ndim <= 1
    if query.granularity:
        np.testing.assert_array_equal(np.fmod(answer, query.granularity), 0.0)
    again = pickle.loads(pickle.dumps(query))
    assert again == query
    np.testing.assert_array_equal(again(rows), answer)


def test_answers_by_hand() -> None:
    rows = np.array([0.0, 0.3, 1.0, 2.0, math.nan])
    assert Count(low=0.0, high=1.0)(rows) == 3
    assert Count(equals=2.0)(rows) == 1
    np.testing.assert_array_equal(Histogram(edges=(0.0, 0.3, 2.0))(rows), [1, 3])
    np.testing.assert_array_equal(Histogram(categories=(2.0, 0.0, 5.0))(rows), [1, 1, 0])
    assert ClippedSum(low=0.0, high=1.0, resolution=0.25)(rows) == 0.0 + 0.25 + 1.0 + 1.0 + 0.0
    assert ClippedMean(size=5, low=0.0, high=1.0, resolution=0.25)(rows) == 2.25 / 5
    np.testing.assert_array_equal(IdentityQuery()([1, 2]), [1.0, 2.0])
    assert IdentityQuery()(3).shape == ()
    table = pd.DataFrame({"sex": ["f", "m", "f"], "age": [30, 40, 50]})
    assert Count("sex", equals="f")(table) == 2
    np.testing.assert_array_equal(Histogram("sex", categories=("m", "f"))(table), [1, 2])
    assert Count(1, low=35.0)(np.array([[0, 30], [1, 40]])) == 1


def test_on_the_rand_health_insurance_table() -> None:
    table = randhie.load_pandas().data
    assert len(table) == 20_190
    visits = table["mdvis"].to_numpy()
    assert Count("mdvis", low=1.0)(table) == np.count_nonzero(visits >= 1)
    edges = (0.0, 1.0, 5.0, 20.0, 100.0)
    np.testing.assert_array_equal(Histogram("mdvis", edges=edges)(table), np.histogram(visits, edges)[0])
    mean = ClippedMean(len(table), "mdvis", 0.0, 16.0)
    assert mean(table) == pytest.approx(np.clip(visits, 0, 16).mean(), rel=1e-14)
    assert mean.sensitivity == pytest.approx(16.0 / 20_190, rel=1e-9)
    several = SeveralCounts(tuple(Count("mdvis", low=float(k)) for k in range(1, 6)))
    assert several(table).shape == (5,)
    disease = ClippedSum("disea", 0.0, 64.0)(table)
    assert disease == pytest.approx(np.clip(table["disea"].to_numpy(), 0, 64).sum(), rel=1e-6)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Count(low=1.0, high=0.0),
        lambda: Count(low=0.0, equals=1),
        lambda: Count(relation="nearby"),  # type: ignore[arg-type]
        lambda: SeveralCounts(()),
        lambda: SeveralCounts((Count(), Count(relation="add_remove_one"))),
        lambda: Histogram(),
        lambda: Histogram(edges=(0.0, 1.0), categories=(1,)),
        lambda: Histogram(edges=(1.0, 0.0)),
        lambda: Histogram(edges=(1.0,)),
        lambda: Histogram(categories=("a", "a")),
        lambda: ClippedSum(low=0.1),
        lambda: ClippedSum(low=1.0, high=1.0),
        lambda: ClippedSum(resolution=0.3),
        lambda: ClippedSum(high=math.inf),
        lambda: ClippedMean(size=0),
        lambda: ClippedMean(size=3)([0.0, 1.0]),
        lambda: IdentityQuery(sensitivity=0.0),
        lambda: IdentityQuery(sensitivity=1.0, linf_sensitivity=2.0),
        lambda: IdentityQuery(granularity=-1.0),
        lambda: IdentityQuery()([1.0, math.nan]),
        lambda: IdentityQuery()([[1.0]]),
        lambda: IdentityQuery(granularity=1.0)([0.5]),
        lambda: column_values(pd.DataFrame({"a": [1]}), "b"),
        lambda: column_values(pd.DataFrame({"a": [1]})),
        lambda: column_values([1, 2], 0),
        lambda: column_values(np.zeros((2, 2)), 2),
        lambda: column_values(np.zeros((2, 2))),
        lambda: column_values(np.zeros((2, 2, 2)), 0),
        lambda: round_to_lattice(np.array([math.inf]), 1.0),
        lambda: round_to_lattice(np.array(2.0**53), 1.0),
        lambda: draw_geometric(1.0, 3, np.random.default_rng(0)),
        lambda: two_sided_geometric(0.5, 3, np.random.default_rng(0)),
        lambda: base_for(0.0, 1),
        lambda: base_for(1.0, 0),
        lambda: base_for(1e-12, 2**20),
    ],
)
def test_refusals_show_what_was_expected(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        build()


def test_rounding_to_the_lattice_never_exceeds_the_real_formula() -> None:
    # 0.49999999999999994 + 0.5 is 1.0 in float64: the naive formula would round it up.
    tricky = np.array([0.49999999999999994, 0.5, -0.5, -0.5 - 2.0**-53, -1e-20, 2.5, -2.5])
    np.testing.assert_array_equal(round_to_lattice(tricky, 1.0), [0, 1, 0, -1, 0, 3, -2])
    rng = np.random.default_rng(2)
    x = rng.normal(0.0, 5.0, 20_000)
    move = rng.uniform(0.0, 0.5, x.size)
    for step in (1.0, 0.125):
        moved = round_to_lattice(x + move, step) - round_to_lattice(x, step)
        # The sum x + move is itself rounded: compare with the move that was really made.
        assert np.all(moved <= np.ceil(((x + move) - x) / step))
        assert np.all(moved >= 0)


@pytest.mark.parametrize(("epsilon", "steps"), [(1.0, 1), (1.0, 1024), (0.1, 2**20), (8.0, 3), (30.0, 1)])
def test_base_never_exceeds_epsilon(epsilon: float, steps: int) -> None:
    level = steps * math.log1p(base_for(epsilon, steps) - 1.0)
    assert level <= epsilon
    assert level == pytest.approx(epsilon, rel=1e-8)
