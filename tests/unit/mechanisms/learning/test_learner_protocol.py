"""Protocols from private learners and learners from protocols: lists, messages, hashes, distributions and errors."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from mechanisms.learning.learner_protocol import (
    BobsError,
    CoverProtocol,
    EqualityError,
    EqualityLearner,
    FreshEquality,
    HalfOnPoint,
    OnlyZero,
    PrivateCoins,
    best_error,
    corner_in_list,
    corner_success,
    equality_bits,
    hashes,
    list_length,
    message_bits,
    protocol_rows,
    zero_rows,
)
from mechanisms.learning.threshold_learner import ThresholdLearner
from mechanisms.learning.threshold_samples import TwoPoints

#: Probability with which a statistical test here fails for a right implementation, whatever the seed.
FALSE_ALARM = 1e-6


def binomial(count: int, n: int, p: float) -> None:
    """A count against its distribution, by both exact tails."""
    assert stats.binom.cdf(count, n, p) >= FALSE_ALARM / 2
    assert stats.binom.sf(count - 1, n, p) >= FALSE_ALARM / 2


# ------------------------------------------------------------------------- from learners to protocols


def test_rows_of_zeros_cover_every_dataset() -> None:
    records = list(itertools.product(range(4), (0, 1)))
    for epsilon in (0.2, 1.0):
        learner = ThresholdLearner(2, epsilon)
        known = learner.law(zero_rows(3)).probabilities
        for data in itertools.combinations_with_replacement(records, 3):
            law = learner.law(np.array(data, dtype=np.int64)).probabilities
            assert np.all(known >= math.exp(-3 * learner.level) * law * (1 - 1e-12))


@pytest.mark.parametrize(("d", "epsilon", "rows"), [(2, 0.5, 3), (5, 1.0, 6)])
def test_the_corner_is_that_of_the_law(d: int, epsilon: float, rows: int) -> None:
    learner = ThresholdLearner(d, epsilon)
    assert learner.law(np.tile([[0, 1]], (rows, 1))).probabilities[0] == pytest.approx(corner_success(d, epsilon, rows))
    assert learner.law(zero_rows(rows)).probabilities[0] == pytest.approx(corner_in_list(d, epsilon, rows))


def test_a_list_of_that_length_suffices_and_the_others_do_not() -> None:
    for d, rows, beta in itertools.product((1, 4, 8), (1, 4, 8), (0.3, 0.01)):
        success, alone = corner_success(d, 0.5, rows), corner_in_list(d, 0.5, rows)
        length = list_length(1.0, rows, success, beta)
        assert (1 - alone) ** length <= beta
        assert math.ceil(math.log2(length)) == math.ceil(message_bits(1.0, rows, success, beta))
    success, alone = corner_success(6, 0.5, 6), corner_in_list(6, 0.5, 6)
    assert (1 - alone) ** list_length(0.5, 6, success, 0.1) > 0.8
    assert (1 - alone) ** list_length(1.0, 6, 1.0, 0.1) > 0.4


def test_the_protocol_fails_as_often_as_its_list() -> None:
    n, protocol = 20_000, CoverProtocol(ThresholdLearner(3, 0.5), 4, 60, 0.0)
    outputs = protocol(OnlyZero(), n, np.random.default_rng(1))
    alone = corner_in_list(3, 0.5, 4)
    binomial(int((outputs[:, 0] == -1).sum()), n, (1 - alone) ** 60)
    # The index is that of the first: geometric.
    binomial(int((outputs[:, 0] == 0).sum()), n, alone)
    binomial(int((outputs[:, 0] == 7).sum()), n, alone * (1 - alone) ** 7)
    errors = BobsError(OnlyZero())(outputs)
    assert np.all(np.where(outputs[:, 0] == -1, np.isinf(errors), errors == 0))


def test_with_coins_of_his_own_bob_uses_any_hypothesis() -> None:
    n, d, rows = 20_000, 3, 4
    protocol = PrivateCoins(ThresholdLearner(d, 0.5), rows, 60, 0.0)
    outputs = protocol(TwoPoints(4), n, np.random.default_rng(2))
    found = outputs[outputs[:, 0] != -1, 1]
    law = ThresholdLearner(d, 0.5).law(zero_rows(rows)).probabilities
    binomial(int((found == 4).sum()), len(found), float(law[4]))
    shared = CoverProtocol(ThresholdLearner(d, 0.5), rows, 60, 0.0)(TwoPoints(4), 1_000, np.random.default_rng(3))
    assert set(shared[shared[:, 0] != -1, 1].tolist()) == {4}


# ------------------------------------------------------------------------- from protocols to learners

LEARNER = EqualityLearner(4, 0.7, 2, (0b1010, 0b0111))
DATA = np.array([[9, 1], [3, 0], [12, 0], [9, 1], [1, 1]], dtype=np.int64)


def hashed(x: int, vectors: tuple[int, ...]) -> int:
    return sum((x & v).bit_count() % 2 << i for i, v in enumerate(vectors))


def test_hashes_are_inner_products() -> None:
    rng = np.random.default_rng(4)
    vectors, x = rng.integers(0, 2**62, (3, 5)).astype(np.uint64), rng.integers(0, 2**62, (5, 7))
    found = hashes(vectors, x)
    for run, row in itertools.product(range(5), range(7)):
        assert found[run, row] == hashed(int(x[run, row]), tuple(vectors[:, run].tolist()))


def test_the_law_of_messages_is_the_definition() -> None:
    mistakes = [sum((hashed(x, LEARNER.coins) == m) != y for x, y in DATA.tolist()) for m in range(4)]
    law = LEARNER.law(DATA)
    assert law.outcomes == tuple((0b1010, 0b0111, m) for m in range(4))
    np.testing.assert_allclose(law.probabilities, special.softmax(-0.7 * np.array(mistakes)), rtol=1e-12)


def test_draws_follow_the_law_of_their_coins() -> None:
    n, law = 100_000, LEARNER.law(DATA).probabilities
    drawn = LEARNER(DATA, n, np.random.default_rng(5))
    for m in range(4):
        binomial(int((drawn[:, 2] == m).sum()), n, float(law[m]))
    # With fresh coins, the mean over all of them.
    few = replace(LEARNER, d=2, coins=())
    data = np.array([[3, 1], [1, 0], [3, 1], [0, 0]], dtype=np.int64)
    every = [(a, b) for a in range(4) for b in range(4)]
    drawn = few(data, n, np.random.default_rng(6))
    for coins in every:
        law = replace(few, coins=coins).law(data).probabilities
        at = (drawn[:, 0] == coins[0]) & (drawn[:, 1] == coins[1])
        for m in range(4):
            binomial(int((at & (drawn[:, 2] == m)).sum()), n, float(law[m]) / 16)


def test_errors_are_those_of_all_numbers() -> None:
    d, point = 4, 11
    error = EqualityError(HalfOnPoint(d, point))
    every = list(itertools.product(range(2**d), range(2**d), range(4)))
    found = error(np.array(every))
    for (a, b, m), value in zip(every, found, strict=True):
        wrong = [(hashed(x, (a, b)) == m) != (x == point) for x in range(2**d)]
        assert value == pytest.approx(0.5 * wrong[point] + 0.5 * np.mean(wrong), abs=1e-15)


def test_samples_of_half_on_a_point() -> None:
    x, y = HalfOnPoint(3, 5).sample(100, 500, np.random.default_rng(7))
    assert np.array_equal(y, x == 5)
    binomial(int(y.sum()), 50_000, 0.5 + 0.5 / 8)


def test_constants_of_the_learner() -> None:
    epsilon, alpha, beta = 0.5, 0.1, 0.1
    bits = equality_bits(epsilon, alpha, beta)
    assert 2.0**-bits / best_error(epsilon, alpha) <= beta / 2 < 2.0 ** (1 - bits) / best_error(epsilon, alpha)
    # The bound of the notes, at the largest error that the best message may have.
    a, rows = best_error(epsilon, alpha), protocol_rows(bits, epsilon, alpha, beta)
    factor = 1 - (alpha - a) * -math.expm1(-epsilon) + a * math.expm1(epsilon)
    assert 2.0**bits * factor**rows <= beta / 2
    n, examples = 2_000, HalfOnPoint(32, 123_456_789)
    learner = FreshEquality(EqualityLearner(32, epsilon, bits), rows)
    failures = int((EqualityError(examples)(learner(examples, n, np.random.default_rng(8))) > alpha).sum())
    assert stats.binom.sf(failures - 1, n, beta) >= FALSE_ALARM


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: CoverProtocol(ThresholdLearner(3, 0.5), 0, 5, 0.1), "rows >= 1, got 0"),
        (lambda: CoverProtocol(ThresholdLearner(3, 0.5), 2, 5, 1.0), r"alpha in \[0, 1\), got 1.0"),
        (lambda: EqualityLearner(63, 0.5, 2), "1 to 62, got 63"),
        (lambda: EqualityLearner(4, 0.5, 17), "1 to 16 bits, got 17"),
        (lambda: EqualityLearner(4, 0.5, 2, (1, 16)), "2 vectors of 4 bits, or none"),
        (lambda: EqualityLearner(4, 0.5, 2).law(DATA), "given coins, for a distribution"),
        (lambda: HalfOnPoint(3, 8), "a point of 3 bits, got 8"),
    ],
)
def test_bad_input_is_shown(make: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        make()
