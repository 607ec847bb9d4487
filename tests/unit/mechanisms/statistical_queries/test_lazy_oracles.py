"""Lazy oracles and what hits them: inner products by their definition, and every target run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg, stats

from mechanisms.base.mechanism import FloatArray
from mechanisms.local_model.masked_parity import all_concepts, labels, split
from mechanisms.statistical_queries.lazy_oracles import (
    DecomposedQueries,
    FixedTolerance,
    LazyOracle,
    PartForgotten,
    bent,
    bent_times_parity,
    hit_bound,
    joined,
    masked_queries,
    parity_queries,
    parity_signs,
    walsh_hadamard,
)
from mechanisms.statistical_queries.parity_search import BentSearch, OneByOneSearch, ParityGame

#: False-alarm probability of every statistical test here, each at a fixed seed and valid for any.
ALARM = 1e-6


def random_tables(d: int, t: int, shape: tuple[int, int], seed: int) -> FloatArray:
    """Values 0 and 1 of one list of queries at b, i, x and y."""
    return np.random.default_rng(seed).integers(0, 2, (1, t, 2, *shape, 2)).astype(np.float64)


# --------------------------------------------------------------------------- transforms, functions


def test_the_transform_is_the_hadamard_matrix() -> None:
    values = np.random.default_rng(0).integers(-9, 9, (2, 3, 64)).astype(np.float64)
    before = values.copy()
    assert np.array_equal(walsh_hadamard(values), values @ linalg.hadamard(64))
    assert np.array_equal(values, before)
    assert np.array_equal(walsh_hadamard(np.array([3.0])), [3.0])


def test_the_transform_refuses_other_lengths() -> None:
    with pytest.raises(ValueError, match="power of two as length of the last axis, got 6"):
        walsh_hadamard(np.zeros((2, 6)))


def test_signs_of_parities_bit_by_bit() -> None:
    for mask in range(16):
        for x in range(16):
            inner = sum((mask >> j & 1) * (x >> j & 1) for j in range(4))
            assert parity_signs(mask, x) == (-1) ** inner


@pytest.mark.parametrize("bits", [0, 2, 4, 6, 8])
def test_a_bent_function_has_a_flat_spectrum(bits: int) -> None:
    spectrum = walsh_hadamard(bent(bits).astype(np.float64))
    assert np.array_equal(np.abs(spectrum), np.full(1 << bits, 2.0 ** (bits / 2)))


def test_a_bent_function_times_a_parity_hits_one_block() -> None:
    spectrum = walsh_hadamard(bent_times_parity(7, 4, 5).astype(np.float64)) / 2**7
    assert np.array_equal(np.flatnonzero(spectrum), np.arange(16) + (5 << 4))
    assert set(np.abs(spectrum[spectrum != 0])) == {1 / 4}


def test_bent_functions_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="even number of bits, got 3"):
        bent(3)
    with pytest.raises(ValueError, match="at most 4 bits, got 6"):
        bent_times_parity(4, 6, 0)
    with pytest.raises(ValueError, match="parity of 2 bits, got 4"):
        bent_times_parity(4, 2, 4)


# ---------------------------------------------------------------------------------- decompositions


def test_parts_of_parity_queries_by_their_definition() -> None:
    d, g = 4, np.random.default_rng(1).uniform(-1, 1, (1, 5, 16, 2))
    taken = parity_queries(g)
    targets = np.arange(16)
    means = taken.means(np.zeros(16, dtype=np.int64), targets, np.ones(16, dtype=np.int64))
    for r in range(16):
        chi = [(-1) ** bin(r & x).count("1") for x in range(16)]
        for j in range(5):
            expected = np.mean([g[0, j, x, 0 if chi[x] == 1 else 1] for x in range(16)])
            assert means[r, j] == pytest.approx(expected)
            f = (g[0, j, :, 0] - g[0, j, :, 1]) / 2
            assert taken.hidden[0, j, r] == pytest.approx(np.mean(f * chi))
            assert taken.energy[0, j] == pytest.approx(np.mean(f**2))
    assert taken.d == d


@pytest.mark.parametrize("shape", [(3, 8), (1, 8), (3, 1), (1, 1)])
def test_parts_of_masked_queries_by_their_definition(shape: tuple[int, int]) -> None:
    """The inner products of equations (10) and (11) of the document, over all points."""
    d, t = 3, 4
    g = random_tables(d, t, shape, seed=2)
    taken = masked_queries(g, d)
    whole = np.broadcast_to(g[0], (t, 2, d, 8, 2))
    f, c = (whole[..., 0] - whole[..., 1]) / 2, (whole[..., 0] + whole[..., 1]) / 2
    codes = all_concepts(d)
    r, sign = split(codes, d)
    nothing = np.zeros_like(r)
    for k, table in enumerate(labels(codes, d).astype(np.float64)):
        on_0, on_1 = table.copy(), table.copy()
        on_0[1], on_1[0] = 0, 0
        for j in range(t):
            said = c[j].mean() + (f[j] * on_1).mean()
            assert taken.rest(nothing, r)[k, j] == pytest.approx(said)
            assert taken.secret(nothing, r, sign)[k, j] == pytest.approx((f[j] * on_0).mean())
            assert taken.energy[0, j] == pytest.approx((f[j, 0] ** 2).mean() / 2)
            # The expectation itself, without taking anything apart.
            asked = np.where(table == 1, whole[j, ..., 0], whole[j, ..., 1]).mean()
            assert taken.means(nothing, r, sign)[k, j] == pytest.approx(asked)


def test_lists_are_told_apart() -> None:
    one, other = (masked_queries(random_tables(3, 2, (3, 8), seed), 3) for seed in (3, 4))
    both = DecomposedQueries(
        *(
            np.concatenate([getattr(part, name) for part in (one, other)])
            for name in ("constant", "hidden", "open", "energy")
        )
    )
    r, sign = split(all_concepts(3), 3)
    which = np.arange(16) % 2
    apart = np.where(which[:, None] == 0, one.means(np.zeros_like(r), r, sign), other.means(np.zeros_like(r), r, sign))
    assert np.array_equal(both.means(which, r, sign), apart)


def test_lists_are_joined() -> None:
    one, other = (masked_queries(random_tables(3, t, (3, 8), t), 3) for t in (2, 3))
    r, sign = split(all_concepts(3), 3)
    nothing = np.zeros_like(r)
    means = joined(one, other).means(nothing, r, sign)
    assert np.array_equal(means, np.hstack([part.means(nothing, r, sign) for part in (one, other)]))


def test_queries_of_other_shapes() -> None:
    with pytest.raises(ValueError, match=r"shape \(k, t, 2, 3 or 1, 8 or 1, 2\), got \(1, 1, 2, 2, 8, 2\)"):
        masked_queries(np.zeros((1, 1, 2, 2, 8, 2)), 3)
    with pytest.raises(ValueError, match=r"\(k, t, 2\^d, 2\), got \(8, 2\)"):
        parity_queries(np.zeros((8, 2)))
    with pytest.raises(ValueError, match="2\\^d points with d from 1 to 16, got 6"):
        parity_queries(np.zeros((1, 1, 6, 2)))


# ------------------------------------------------------------------------------------- the oracles


def answers(oracle: LazyOracle, asked: DecomposedQueries, tau: float, d: int) -> tuple[FloatArray, FloatArray]:
    """Answers and expectations for all concepts."""
    r, sign = split(all_concepts(d), d)
    nothing = np.zeros_like(r)
    return oracle(asked, nothing, np.full(asked.constant.shape[1], tau), r, sign), asked.means(nothing, r, sign)


@pytest.mark.parametrize("strict", [True, False])
def test_a_lazy_answer_is_valid_and_blind_where_it_may_be(strict: bool) -> None:
    d, asked = 4, masked_queries(random_tables(4, 30, (4, 16), 5), 4)
    r, _ = split(all_concepts(d), d)
    for tau in (0.01, 0.04, 0.1):
        said, truth = answers(LazyOracle(strict), asked, tau, d)
        off = np.abs(said - truth)
        assert off.max() <= tau
        secret = np.abs(asked.hidden[0][:, r].T)
        blind = secret < tau if strict else secret <= tau
        assert np.array_equal(off > 0, blind & (secret > 0))
        # Where it is blind to the mask, both concepts with the same r are answered alike.
        assert np.array_equal(said[:16][blind[:16]], said[16:][blind[:16]])
        assert 0 < blind.mean() <= 1


def test_at_just_the_tolerance_strictness_decides() -> None:
    g = np.zeros((1, 1, 2, 1, 16, 2))
    g[0, 0, 0, 0] = np.stack([bent(4), -bent(4)], axis=-1)
    asked = masked_queries(g, 4)
    assert set(np.abs(asked.hidden).ravel()) == {1 / 8}
    for strict, expected in ((True, 0.0), (False, 1 / 8)):
        said, truth = answers(LazyOracle(strict), asked, 1 / 8, 4)
        assert set(np.abs(said - truth).ravel()) == {expected}


def test_the_mistakes_are_not_valid_oracles() -> None:
    d, asked = 4, masked_queries(random_tables(4, 30, (4, 16), 6), 4)
    for wrong in (PartForgotten(), FixedTolerance()):
        said, truth = answers(wrong, asked, 0.01, d)
        assert np.abs(said - truth).max() > 0.03
    # At the theorem's own tolerance the second is no mistake.
    said, truth = answers(FixedTolerance(), asked, 2 ** (-d / 3), d)
    assert np.array_equal(said, answers(LazyOracle(), asked, 2 ** (-d / 3), d)[0])


def test_the_bound_on_hits() -> None:
    """By its formula for values +1 and -1, and against the count."""
    d, t, tau = 6, 5, 0.06
    signs = 2 * random_tables(d, t, (d, 64), 7) - 1
    signs[..., 1] = -signs[..., 0]  # queries y f(x, i, b)
    asked = masked_queries(signs, d)
    bound = hit_bound(asked, np.full(t, tau), own=0.5)
    assert bound == pytest.approx(t / (4 * tau**2 * 2**d))
    assert (np.abs(asked.hidden[0]) >= tau).sum() / 2**d <= bound
    f = bent_times_parity(6, 4, 1)
    of_parity = parity_queries(np.stack([f, -f], axis=-1)[None, None])
    assert hit_bound(of_parity, np.array([1 / 4])) == 16 / 64
    # A query whose label-dependent part is half as large hits a quarter as many.
    assert hit_bound(parity_queries(np.stack([f, -f], axis=-1)[None, None] / 2), np.array([1 / 4])) == 4 / 64


# ------------------------------------------------------------------------------- learners of parity


@pytest.mark.parametrize(("d", "m", "t"), [(6, 2, 10), (8, 4, 12), (9, 6, 4), (12, 8, 8)])
def test_the_bent_search_hits_as_often_as_the_bound_allows(d: int, m: int, t: int) -> None:
    played = ParityGame(BentSearch(d, m, t), LazyOracle()).play(np.arange(1 << d))
    tau = 2.0 ** (-m / 2)
    assert played[:, 2].mean() == min(1.0, t / (tau**2 * 2**d))
    learned = (played[:, 0] == played[:, 1]).mean()
    # A hit in one of the first t - m queries leaves m for the rest; guesses add at most one target a block.
    assert max(0, t - m) * 2**m / 2**d <= learned <= t / (tau**2 * 2**d) + 2.0**-d


def test_at_the_quoted_sizes_the_bound_is_one() -> None:
    d = 9
    played = ParityGame(BentSearch(d, 6, 2 ** (d // 3)), LazyOracle()).play(np.arange(1 << d))
    assert played[:, 2].all()


def test_an_oracle_that_is_lazy_at_the_tolerance_is_not_hit() -> None:
    learner = BentSearch(8, 4, 16)
    assert not ParityGame(learner, LazyOracle(strict=False)).play(np.arange(256))[:, 2].any()
    below = BentSearch(8, 4, 16, tolerance=0.999 / 4)
    assert ParityGame(below, LazyOracle(strict=False)).play(np.arange(256))[:, 2].all()


def test_one_parity_after_the_other_hits_itself() -> None:
    played = ParityGame(OneByOneSearch(8, 20, 1 / 4), LazyOracle()).play(np.arange(256))
    assert np.array_equal(np.flatnonzero(played[:, 2]), np.arange(1, 21))
    assert np.array_equal(np.flatnonzero(played[:, 0] == played[:, 1]), np.arange(21))


def test_the_search_is_adaptive() -> None:
    """After a hit it asks about that block; without one, about the next."""
    learner = BentSearch(6, 2, 8)
    nothing, hit = np.zeros((1, 3)), np.array([[0.0, 0.5, 0.5]])
    assert learner.ask(nothing)[0] == 3
    block, shift = learner.ask(hit)[0] % 16, learner.ask(hit)[0] // 16
    assert (block, shift) == (1, 2)


def test_a_search_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="even number of bits, 2 to 8, got 3"):
        BentSearch(8, 3, 4)
    with pytest.raises(ValueError, match="at least one query, got 0"):
        BentSearch(8, 4, 0)


def test_games_draw_targets_uniformly() -> None:
    drawn = ParityGame(BentSearch(6, 4, 2), LazyOracle())
    found = drawn(np.arange(64), 64 * 500, np.random.default_rng(8))
    assert stats.chisquare(np.bincount(found[:, 0], minlength=64)).pvalue > ALARM
    assert np.array_equal(found, drawn.play(found[:, 0]))
    assert math.isclose(found[:, 2].mean(), 0.5, abs_tol=0.02)
