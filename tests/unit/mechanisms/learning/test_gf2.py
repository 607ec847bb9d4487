"""Linear algebra over GF(2), against definitions: lists of all vectors, and elimination on Python integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mechanisms.learning import gf2
from mechanisms.learning.gf2_subsets import prepare, random_solutions

Bits = NDArray[np.integer[Any]]

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6

#: One equation in one variable.
ONE = prepare(np.array([[1]], dtype=np.uint64), np.array([True]), np.array([1]), 1)


def rank_of(rows: list[int]) -> int:
    """Rank of rows given as integers, by a table of leading bits."""
    leading: dict[int, int] = {}
    for start in rows:
        row = start
        while row and row.bit_length() in leading:
            row ^= leading[row.bit_length()]
        if row:
            leading[row.bit_length()] = row
    return len(leading)


def integers(bits: Bits) -> list[int]:
    return [sum(int(b) << j for j, b in enumerate(row)) for row in bits]


def one_system(x: Bits, y: Bits) -> gf2.EchelonSystems:
    return gf2.eliminate(gf2.pack(x.T)[:, :, None], y[:, None].astype(bool))


@pytest.mark.parametrize("d", [1, 2, 63, 64, 65, 130, 256])
def test_bits_are_packed_and_unpacked(d: int) -> None:
    bits = np.random.default_rng(d).integers(0, 2, (d, 7), dtype=np.uint8)
    packed = gf2.pack(bits)
    assert packed.shape == (gf2.words(d), 7)
    assert np.array_equal(gf2.unpack(packed, d), bits)
    assert [sum(int(w) << 64 * i for i, w in enumerate(column)) for column in packed.T] == integers(bits.T)


def test_uniform_words_have_no_bits_beyond() -> None:
    drawn = gf2.random_words(70, (2_000,), np.random.default_rng(1))
    assert drawn.shape == (2, 2_000)
    assert int(drawn[1].max()) < 2**6
    ones = gf2.unpack(drawn, 70).sum(axis=1)
    assert all(stats.binomtest(int(count), 2_000, 0.5).pvalue > ALARM / 70 for count in ones)


def test_inner_products() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2, (130, 50)), rng.integers(0, 2, (130, 50))
    assert np.array_equal(gf2.inner(gf2.pack(a), gf2.pack(b)), ((a * b).sum(axis=0) % 2).astype(bool))


@pytest.mark.parametrize("d", [1, 2, 4, 5])
def test_small_systems_have_the_solutions_that_a_list_has(d: int) -> None:
    rng = np.random.default_rng(d)
    every = np.arange(2**d)
    bits = every[:, None] >> np.arange(d) & 1
    for _ in range(60):
        k = int(rng.integers(1, 7))
        x, y = rng.integers(0, 2, (k, d)), rng.integers(0, 2, k)
        found = one_system(x, y)
        wanted = every[((bits @ x.T - y) % 2 == 0).all(axis=1)]
        assert bool(found.consistent[0]) == (len(wanted) > 0)
        assert found.rank[0] == rank_of(integers(x))
        if len(wanted):
            given = found.solutions(every.astype(np.uint64)[None], np.zeros(2**d, dtype=np.int64))[0]
            # From all values of what is open, each solution comes equally often.
            values, counts = np.unique(given, return_counts=True)
            assert values.tolist() == wanted.tolist()
            assert set(counts.tolist()) == {2 ** int(found.rank[0])}
            assert found.solutions(np.zeros((1, 1), dtype=np.uint64))[0, 0] == wanted[0]


def test_contradictions_leave_the_equations_before_them() -> None:
    # x1 = 1, x1 = 0, x2 = 1, x1 + x2 = 1: the second and the last contradict what is before them.
    x, y = np.array([[1, 0], [1, 0], [0, 1], [1, 1]]), np.array([1, 0, 1, 1])
    found = one_system(x, y)
    assert not found.consistent[0]
    assert found.solutions(np.zeros((1, 1), dtype=np.uint64))[0, 0] == 0b11


@pytest.mark.parametrize("d", [63, 64, 65, 130, 256])
def test_large_systems_side_by_side(d: int) -> None:
    rng = np.random.default_rng(d)
    k, systems = d // 2 + 20, 5
    x = rng.integers(0, 2, (systems, k, d))
    x[1, 10:20] = x[1, :10]  # dependent
    x[2, :, : d // 2] = 0
    x[3] = 0
    concept = rng.integers(0, 2, (systems, d))
    y = np.einsum("skd,sd->sk", x, concept) % 2
    y[4, -1] ^= 1
    x[4, -1] = x[4, :3].sum(axis=0) % 2  # contradicts the first three
    y[4, -1] = y[4, :3].sum() % 2 ^ 1
    rows, labels = gf2.pack(x.transpose(2, 1, 0)), y.T.astype(bool)
    found = gf2.eliminate(rows.copy(), labels.copy())
    assert found.rank.tolist() == [rank_of(integers(one)) for one in x]
    assert found.consistent.tolist() == [True, True, True, True, False]
    solved = gf2.unpack(found.solutions(gf2.random_words(d, (systems,), rng)), d).T
    left = np.einsum("skd,sd->sk", x, solved) % 2
    assert np.array_equal(left[:4], y[:4])
    assert np.array_equal(left[4, :-1], y[4, :-1])
    which = np.array([3, 0, 0, 2])
    assert gf2.unpack(found.pivots(), d).sum(axis=0).tolist() == found.rank.tolist()
    again = gf2.unpack(found.solutions(gf2.random_words(d, (4,), rng), which), d).T
    assert np.array_equal(np.einsum("skd,sd->sk", x[which], again) % 2, y[which])
    # In two parts it is the same.
    parts = gf2.eliminate(rows[:, :9].copy(), labels[:9].copy()).extended(rows[:, 9:], labels[9:])
    assert parts.rank.tolist() == found.rank.tolist()
    assert parts.consistent.tolist() == found.consistent.tolist()
    some = parts.take(np.array([0, 2]))
    solved = gf2.unpack(some.solutions(gf2.random_words(d, (2,), rng)), d).T
    assert np.array_equal(np.einsum("skd,sd->sk", x[[0, 2]], solved) % 2, y[[0, 2]])


@pytest.mark.parametrize(("d", "k"), [(3, 1), (3, 40), (70, 500), (70, 30)])
def test_one_long_system(d: int, k: int) -> None:
    rng = np.random.default_rng(k)
    x, y = rng.integers(0, 2, (k, d)), rng.integers(0, 2, k).astype(bool)
    x[: k // 2, 1:] = 0  # the first rows are alike, so what is looked at first does not suffice
    found = gf2.tall(gf2.pack(x.T), y, d)
    assert found.rank[0] == rank_of(integers(x)) == found.rows.shape[1]
    assert gf2.rank(x) == found.rank[0]
    if not y.any():
        return
    # A solution agrees with as many equations as are independent, at least.
    solved = gf2.unpack(found.solutions(np.zeros((gf2.words(d), 1), dtype=np.uint64)), d)[:, 0]
    assert int((x @ solved % 2 == y).sum()) >= found.rank[0]


def test_rows_of_zeros_have_rank_0() -> None:
    assert gf2.rank(np.zeros((4, 3), dtype=int)) == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gf2.pack([0, 2, 1]), r"bits 0 and 1, got \[2\]"),
        (lambda: gf2.pack(np.zeros((0, 3))), r"got \(0, 3\)"),
        (lambda: gf2.words(0), "d >= 1, got 0"),
        (lambda: gf2.eliminate(np.zeros((1, 2, 3), np.uint64), np.zeros((3, 2), bool)), r"\(2, 3\), got \(3, 2\)"),
        (lambda: random_solutions(ONE, 1.5, np.zeros((1, 3), np.uint64), np.random.default_rng(0)), "got 1.5"),
    ],
)
def test_errors_show_what_was_given(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


# -------------------------------------------------------------------------------- random subsets


def test_equations_are_merged_and_sorted_into_good_and_bad() -> None:
    x = np.array([[1, 3, 1, 0, 0, 1, 2]], dtype=np.uint64)
    y = np.array([1, 0, 1, 0, 1, 0, 1], dtype=bool)  # 0 = 0 goes, 0 = 1 and one of the two x1 are bad
    found = prepare(x, y, np.ones(7, dtype=np.int64), 2)
    assert sorted(zip(found.x[0].tolist(), found.y.tolist(), found.times.tolist(), strict=True)) == [
        (0, True, 1),
        (1, False, 1),
        (1, True, 2),
        (2, True, 1),
        (3, False, 1),
    ]
    assert found.rank == 2
    assert found.good in (2, 3)
    assert (0, True) in zip(found.x[0, found.good :].tolist(), found.y[found.good :].tolist(), strict=True)


@pytest.mark.parametrize("p", [0.05, 0.4, 1.0])
def test_systems_of_low_rank(p: float) -> None:
    """A solution agrees with all of R independent rows, each m times, with probability ((1 + P[row is taken])/2)^R."""
    rng = np.random.default_rng(3)
    d, rank, times, n = 100, 5, 4, 4_000
    basis = rng.integers(0, 2, (rank, d))
    assert rank_of(integers(basis)) == rank
    concept = rng.integers(0, 2, d)
    x = gf2.pack(np.repeat(basis, times, axis=0).T)
    y = np.repeat(basis @ concept % 2, times).astype(bool)
    system = prepare(x, y, np.ones(len(y), dtype=np.int64), d)
    found, none = random_solutions(system, p, gf2.random_words(d, (n,), rng), rng)
    assert not none.any()
    agrees = (basis @ concept % 2 == gf2.unpack(found, d).T @ basis.T % 2).all(axis=1)
    wanted = (1.0 - (1.0 - p) ** times / 2.0) ** rank
    assert stats.binomtest(int(agrees.sum()), n, wanted).pvalue > ALARM


@pytest.mark.parametrize("bad", [0, 1, 7])
def test_a_few_bad_equations_among_many(bad: int) -> None:
    rng = np.random.default_rng(bad)
    d, p, n = 70, 0.25, 2_000
    x = rng.integers(0, 2, (900, d))
    concept = rng.integers(0, 2, d)
    y = x @ concept % 2
    y[:bad] ^= 1
    system = prepare(gf2.pack(x.T), y.astype(bool), np.ones(900, dtype=np.int64), d)
    found, none = random_solutions(system, p, gf2.random_words(d, (n,), rng), rng)
    # Of 225 rows that are taken 70 are independent, but for 2^-100: what is not contradicted is the concept.
    assert (concept == gf2.unpack(found[:, ~none], d).T).all()
    assert stats.binomtest(int(none.sum()), n, 1.0 - (1.0 - p) ** bad).pvalue > ALARM
