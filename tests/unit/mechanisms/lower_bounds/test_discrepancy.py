"""Partial discrepancy against its definition, certified bounds, and A8 against the best mechanism there is.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from mechanisms.additive_noise.column_counts import ConstantCounts, LaplaceCounts
from mechanisms.lower_bounds.discrepancy import (
    allowed_places,
    by_definition,
    by_sum,
    by_support,
    certified_above,
    certified_below,
    exact_recovery,
    hereditary,
    least_restricted,
    most_reconstructed,
    partial_discrepancy,
    random_queries,
    restricted,
    singular_bound,
    usable_places,
    with_zero,
    witness,
)
from mechanisms.lower_bounds.discrepancy_errors import ErrorOfResponses, LargestErrorOnSecretBits, WorstConsistent
from mechanisms.lower_bounds.noisy_counts import UniformCounts

RNG = np.random.default_rng(20240603)


def tried(queries: Any, m: int, columns: tuple[int, ...] | None = None) -> int:
    """The definition, one z after the other."""
    n = queries.shape[1]
    places = tuple(range(n)) if columns is None else columns
    best = math.inf
    for values in itertools.product((-1, 0, 1), repeat=len(places)):
        if sum(map(abs, values)) > m:
            best = min(best, max(abs(sum(int(q[i]) * v for i, v in zip(places, values, strict=True))) for q in queries))
    return int(best)


# ---------------------------------------------------------------------------------- exactly


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_partial_discrepancy_is_its_definition(n: int) -> None:
    for k in (2, 9):
        queries = RNG.integers(0, 2, (k, n), dtype=np.int8)
        for m in range(n):
            assert partial_discrepancy(queries, m) == by_definition(queries, m) == tried(queries, m)


def test_more_columns_than_are_tabled() -> None:
    """Twelve columns: two of them, and the last, are a loop around the table."""
    queries = RNG.integers(0, 2, (5, 12), dtype=np.int8)
    queries[:, 11] = 1 - queries[:, 0]
    z = np.stack(np.meshgrid(*[np.array([-1, 0, 1], dtype=np.int8)] * 12, indexing="ij"), axis=-1).reshape(-1, 12)
    largest = np.abs(z @ queries.T).max(axis=1)
    sizes = np.abs(z).sum(axis=1)
    for m in (0, 3, 8, 11):
        assert partial_discrepancy(queries, m) == largest[sizes > m].min()


def test_by_support_and_restrictions_are_those_of_every_set() -> None:
    queries = RNG.integers(0, 2, (6, 5), dtype=np.int8)
    least, found = by_support(queries), restricted(queries, 0.5)
    assert least[0] == 0
    assert found[0] == math.inf
    for number in range(1, 32):
        columns = tuple(i for i in range(5) if number >> i & 1)
        full = list(itertools.product((-1, 1), repeat=len(columns)))
        assert least[number] == min(np.abs(queries[:, columns] @ np.array(v)).max() for v in full)
        assert found[number] == tried(queries, len(columns) // 2, columns)
    sets = [found[number] for number in range(1, 32) if number.bit_count() >= 2]
    assert hereditary(queries, 0.5) == max(sets)
    assert least_restricted(queries, 0.5) == min(found[1:])


def test_a_witness_attains_it() -> None:
    for n in (3, 6, 9):
        queries = random_queries(2 * n, n, seed=n)
        for m in (0, n // 2, n - 1):
            z = witness(queries, m)
            assert np.abs(z).sum() > m
            assert np.abs(queries @ z.astype(np.int64)).max() == partial_discrepancy(queries, m)


def test_the_catalogues_values() -> None:
    """c = 0.2 and uniform queries: 1 for k = 2 n and 4 n; for k = 8 n it is 2 with 10 and with 12 people."""
    for n in (6, 8, 10, 12):
        assert [partial_discrepancy(random_queries(t * n, n, 1), allowed_places(0.2, n)) for t in (2, 4)] == [1, 1]
    for n in (10, 12):
        assert partial_discrepancy(random_queries(8 * n, n, 1), allowed_places(0.2, n)) == 2


def test_mistaken_norms_differ_where_they_must() -> None:
    twins = np.array([[1, 1, 0], [0, 0, 1]], dtype=np.int8)
    assert partial_discrepancy(twins, 1) == 0  # (1, -1, 0)
    assert by_sum(twins, 1) == 1
    assert with_zero(np.eye(2, dtype=np.int8), 0) == 0 < partial_discrepancy(np.eye(2, dtype=np.int8), 0) == 1


def test_places_of_a_fraction() -> None:
    assert [allowed_places(0.2, n) for n in (4, 5, 9, 10, 15)] == [0, 1, 1, 2, 3]
    assert allowed_places(0.01, 99) == 0 < allowed_places(0.01, 100) == 1


# ---------------------------------------------------------------------------------- certified


@pytest.mark.parametrize("n", [4, 7, 10])
def test_certified_bounds_contain_the_exact_value(n: int) -> None:
    for k in (n - 1, n, 3 * n, 10 * n):
        queries = random_queries(k, n, seed=k)
        for m in (0, n // 3, n - 1):
            exact = partial_discrepancy(queries, m)
            assert singular_bound(queries, m) <= certified_below(queries, m) <= exact <= certified_above(queries, m)


def test_the_singular_bound_of_an_orthogonal_matrix() -> None:
    """For the identity |Q z|_2 = |z|_2: sqrt((m + 1) / n)."""
    assert singular_bound(np.eye(9, dtype=np.int8), 3) == pytest.approx(2 / 3)
    assert certified_below(np.zeros((3, 4), dtype=np.int8), 1) == 0


def test_the_search_is_deterministic() -> None:
    queries = random_queries(200, 50, seed=1)
    assert certified_above(queries, 7) == certified_above(queries, 7)


@pytest.mark.parametrize(
    ("queries", "m", "said"),
    [
        (np.full((2, 2), 0.5), 0, "a matrix of -1, 0 and 1"),
        (np.eye(3), 3, "m from 0 to 2, got 3"),
        (np.ones((2, 17)), 0, "at most 16 columns, got 17"),
    ],
)
def test_bad_input_is_refused(queries: Any, m: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        partial_discrepancy(queries, m)


# ----------------------------------------------------------- A8, against the best of all mechanisms


def best_reconstruction(n: int, m: int, epsilon: float, delta: float) -> float:
    """Largest probability, over all (epsilon, delta)-DP mechanisms, of at most m of n uniform bits wrong.

    By symmetry (all of the hypercube's) the best mechanism flips the true bits by a vector whose probability mu depends
    on its weight j alone. For neighbours, the hockey-stick divergence is a sum over vectors without and with the
    changed bit: a linear programme in w_j = C(n, j) mu_j and the excesses.
    """
    e = math.exp(epsilon)
    # Unknowns: w_0 ... w_n, then the excess of mu_j over e mu_(j+1), and of mu_(j+1) over e mu_j, for j < n.
    count = n + 1 + 2 * n
    objective = np.zeros(count)
    objective[: m + 1] = -1.0
    upper, limits = [], []
    budget = np.zeros(count)
    for j in range(n):
        for side, (a, b) in enumerate(((j, j + 1), (j + 1, j))):
            row = np.zeros(count)
            # C(n - 1, j) pairs; mu_j = w_j / C(n, j).
            row[a] = math.comb(n - 1, j) / math.comb(n, a)
            row[b] = -e * math.comb(n - 1, j) / math.comb(n, b)
            row[n + 1 + 2 * j + side] = -1.0
            budget[n + 1 + 2 * j + side] = 1.0
            upper.append(row)
            limits.append(0.0)
    total = np.zeros(count)
    total[: n + 1] = 1.0
    solved = optimize.linprog(
        objective, np.array([*upper, budget]), np.array([*limits, delta]), total[None], np.array([1.0]), method="highs"
    )
    assert solved.status == 0
    return -float(solved.fun or 0.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (1.0, 0.0), (0.3, 0.02), (3.0, 0.0)])
def test_no_mechanism_reconstructs_more_than_a8_allows(epsilon: float, delta: float) -> None:
    """At zero margin: against the mechanism that is best, not only those that somebody built."""
    for n in (1, 2, 3, 6, 12, 20):
        for m in sorted({0, n // 10, n // 5, n // 3, n - 1}):
            best = best_reconstruction(n, m, epsilon, delta)
            assert best <= most_reconstructed(n, m, epsilon, delta) + 1e-7
    assert best_reconstruction(1, 0, epsilon, delta) == pytest.approx(exact_recovery(1, epsilon, delta), abs=1e-7)


def test_exact_recovery_of_two_bits() -> None:
    """0.619 < 2/3, and so is what is best; of one bit 0.758, by randomised response at eps = 1 0.731."""
    assert exact_recovery(2, 1.0, 0.1) == pytest.approx(0.619, abs=1e-3)
    assert best_reconstruction(2, 0, 1.0, 0.1) <= exact_recovery(2, 1.0, 0.1)
    assert exact_recovery(1, 1.0, 0.0) == pytest.approx(0.731, abs=1e-3)


def test_the_catalogues_places() -> None:
    """From the printed condition of A8, (2/3)(1 - m/n) > e (m + 1)/n + 0.1, with exact recovery for m = 0."""
    for n in (6, 8, 10, 12, 13, 20, 50, 100, 400):
        m = usable_places(n, 1.0, 0.1)
        assert (2 / 3) * (1 - m / n) > math.e * (m + 1) / n + 0.1
        assert (2 / 3) * (1 - (m + 1) / n) <= math.e * (m + 2) / n + 0.1
    assert [usable_places(n, 1.0, 0.1) for n in (1, 2, 5)] == [-1, 0, 0]


# ------------------------------------------------------------------------------------ errors


def test_errors_are_those_of_the_release() -> None:
    queries = random_queries(20, 6, seed=2)
    assert LargestErrorOnSecretBits(UniformCounts(0.4), queries)(None, 100, RNG).max() < 0.4
    assert set(LargestErrorOnSecretBits(ConstantCounts(2, 0.5), np.eye(2))(None, 50, RNG)) == {0.5}
    mechanism = LaplaceCounts(20, 40.0)
    inside = int((LargestErrorOnSecretBits(mechanism, queries)(None, 4_000, RNG) < 1.5).sum())
    assert stats.binomtest(inside, 4_000, mechanism.inside(1.5)).pvalue > 1e-6


def test_responses_are_right_as_often_as_is_allowed() -> None:
    one = ErrorOfResponses(np.ones((1, 1)), 1.0, 0.1)
    assert one.true_probability == pytest.approx(exact_recovery(1, 1.0, 0.1))
    right = int((one(None, 20_000, RNG) == 0).sum())
    assert stats.binomtest(right, 20_000, one.true_probability).pvalue > 1e-6
    with pytest.raises(ValueError, match="delta in"):
        ErrorOfResponses(np.ones((1, 1)), 1.0, 1.5)


def test_the_worst_candidate_is_within_m_below_half_of_it_and_not_above() -> None:
    queries = random_queries(80, 10, seed=1)
    m = allowed_places(0.2, 10)
    half = partial_discrepancy(queries, m) / 2
    assert WorstConsistent(queries, half)(None, 100, RNG).max() <= m
    # With so much room every pair of candidates at the discrepancy is open.
    assert WorstConsistent(queries, 20.0)(None, 3, RNG).min() > m
