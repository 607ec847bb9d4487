"""Signed rows, synthesisers of them, and what is counted.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiments.document_003_bellairs_lectures.signed_rows import _is_exact_match, _missing_share, _no_copies, _share
from mechanisms.lower_bounds.signed_rows import (
    BITS,
    ITSELF,
    MESSAGE,
    MUTANTS,
    ROW,
    CopyRarely,
    DirectorySynthesiser,
    MarginalSynthesiser,
    PublicKnowledge,
    RowAppearance,
    RowSynthesiser,
    SignedRows,
    SmallUniverse,
    SubsamplingSynthesiser,
    VerifiedRows,
    public_key,
    sign,
    verifies,
)

SECRET = bytes(range(32))
PRIVATE = [MarginalSynthesiser(1.0), SmallUniverse(1.0, 4)]


def rng(seed: int = 20261122) -> np.random.Generator:
    return np.random.default_rng(seed)


def dataset(rows: int = 5) -> tuple[Any, PublicKnowledge]:
    messages = SignedRows().messages(rows, rng(7))
    return sign(SECRET, messages), PublicKnowledge(messages, public_key(SECRET))


# --------------------------------------------------------------------------------------- signatures


def test_a_public_key_and_a_signature_of_the_standard() -> None:
    """RFC 8032, section 7.1: the public key of test 1, and the signature of test 2, whose message is one byte."""
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    assert public_key(secret).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    row = sign(secret, np.array([[0x72]], dtype=np.uint8))[0]
    assert row[1:].tobytes().hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


def test_rows_verify_and_changed_ones_do_not() -> None:
    rows, known = dataset()
    assert rows.shape == (5, ROW)
    assert np.array_equal(rows[:, :MESSAGE], known.directory)
    assert verifies(known.public, rows).all()
    for place in (0, MESSAGE - 1, MESSAGE, ROW - 1):
        changed = rows.copy()
        changed[:, place] ^= 1
        assert not verifies(known.public, changed).any()
    assert not verifies(public_key(bytes(32)), rows).any()
    # The same row each time: signatures are deterministic.
    assert np.array_equal(sign(SECRET, known.directory), rows)


@pytest.mark.parametrize("different", [1, 16, 1 << 63])
def test_messages_are_of_so_many(different: int) -> None:
    drawn = SignedRows(different).messages(200, rng())
    assert drawn.shape == (200, MESSAGE)
    values = drawn.view(np.uint64)
    assert (values[:, 0] < different).all()
    assert not values[:, 1].any()
    # 16 values in 200 draws: one is missing with probability 16 (15/16)^200 = 4e-5; two with 5e-10.
    assert len(np.unique(values[:, 0])) == {1: 1, 16: pytest.approx(15.5, abs=0.5)}.get(different, 200)


def test_messages_of_128_bits_differ() -> None:
    drawn = SignedRows().messages(500, rng())
    assert len(np.unique(drawn, axis=0)) == 500
    ones = int(np.unpackbits(drawn).sum())
    low, high = stats.binom.interval(1 - 1e-6, 500 * 128, 0.5)
    assert low <= ones <= high


# ------------------------------------------------------------------------------------- synthesisers


def test_subsamples_are_different_rows_of_the_data() -> None:
    rows, known = dataset()
    for size in (1, 3, 5):
        found = SubsamplingSynthesiser(size)(rows, known, rng(size))
        assert found.shape == (size, ROW)
        assert len({row.tobytes() for row in found} & {row.tobytes() for row in rows}) == size


def test_rare_copies_come_with_probability_delta() -> None:
    rows, known = dataset()
    generator = rng()
    found = [(CopyRarely(0.25)(rows, known, generator) == rows).all(axis=1) for _ in range(400)]
    low, high = stats.binom.interval(1 - 1e-6, 2_000, 0.25)
    assert low <= int(np.sum(found)) <= high


@pytest.mark.parametrize("synthesiser", PRIVATE, ids=repr)
def test_what_is_private_makes_rows_of_which_none_verifies(synthesiser: RowSynthesiser) -> None:
    rows, known = dataset()
    found = synthesiser(rows, known, rng())
    assert found.dtype == np.uint8
    assert found.shape[1] == ROW
    assert not verifies(known.public, found).any()


def test_marginals_follow_the_data_where_the_noise_is_small() -> None:
    """At a level of 10^7 a share moves by less than 0.01 with probability 1 - 640 e^-780: rows are all alike."""
    rows = np.tile(dataset()[0][:1], (5, 1))
    found = MarginalSynthesiser(1e7)(rows, dataset()[1], rng())
    # Each of 3,200 bits is another one with probability below 1e-3; 23 of them with probability below 1e-6.
    assert int(np.unpackbits(found ^ rows).sum()) <= stats.binom.ppf(1 - 1e-6, 5 * BITS, 1e-3)


def test_marginals_have_noise_for_640_counts() -> None:
    """Of all-zero data, a bit is a one with probability E[min(max(L/5, 0), 1)], L Laplace of scale b = 640."""
    rows, known = np.zeros((5, ROW), dtype=np.uint8), dataset()[1]
    b, n = BITS / 1.0, 5
    # E = (1/n) int_0^n P[L > t] dt = b (1 - e^(-n/b)) / (2n)
    expected = b * -math.expm1(-n / b) / (2 * n)
    generator = rng()
    shares = [np.unpackbits(MarginalSynthesiser(1.0)(rows, known, generator)).mean() for _ in range(40)]
    # 40 x 640 independent columns of values in [0, 1]; Hoeffding.
    assert abs(float(np.mean(shares)) - expected) <= math.sqrt(math.log(2e6) / (2 * 40 * BITS))


def test_a_small_universe_has_four_elements() -> None:
    rows, known = dataset(20)
    found = SmallUniverse(1_000.0, 20)(rows, known, rng())
    assert not found[:, 1:].any()
    assert set(np.unique(found[:, 0])) <= {0, 64, 128, 192}
    # At such a level the histogram is that of the data: any other one has at most e^-500 of its weight.
    assert sorted(found[:, 0]) == sorted(rows[:, 0] & 192)


def test_a_directory_makes_the_rows_with_the_key_and_none_without() -> None:
    rows, known = dataset()
    assert not verifies(known.public, DirectorySynthesiser()(rows, known, rng())).any()
    published = PublicKnowledge(known.directory, known.public, SECRET)
    assert np.array_equal(DirectorySynthesiser()(np.zeros_like(rows), published, rng()), rows)


# ---------------------------------------------------------------------------------- the experiments


def test_trials_have_nothing_in_common_but_the_generator() -> None:
    """Five draws are five times one draw from the same generator: what the audit takes for granted here."""
    for mechanism in (
        RowAppearance(SignedRows(), SubsamplingSynthesiser(2), 3),
        VerifiedRows(SignedRows(), CopyRarely(0.3), 3),
    ):
        one, generator = mechanism([1], 5, rng()), rng()
        assert np.array_equal(one, np.concatenate([mechanism([1], 1, generator) for _ in range(5)]))


@pytest.mark.parametrize("present", [0, 1])
def test_a_copied_dataset_has_the_row_if_it_is_there(present: int) -> None:
    nearest = RowAppearance(SignedRows(), SubsamplingSynthesiser(4), 4)([present], 50, rng())
    assert nearest.dtype == np.int64
    assert set(nearest) == {ITSELF} if present else set(nearest) <= {0, 1}


def test_how_near_a_random_row_is() -> None:
    """Random rows share a binomial number of bits; a signature ends in a number below 2^252 + 2^125, in 256 bits."""
    near = float(stats.binom.sf(BITS // 2 - 4, BITS - 4, 0.5))
    nearest = RowAppearance(SignedRows(), SubsamplingSynthesiser(1), 1)([0], 800, rng())
    low, high = stats.binom.interval(1 - 1e-6, 800, near)
    assert low <= int(nearest.sum()) <= high


def test_half_of_the_rows_has_a_row_half_of_the_time() -> None:
    base = RowAppearance(SignedRows(), CopyRarely(0.01), 4)
    broken = MUTANTS["subsampling_synthesiser"].build(base)
    low, high = stats.binom.interval(1 - 1e-6, 200, 0.5)
    assert low <= int(_is_exact_match(broken([1], 200, rng())).sum()) <= high
    assert not _is_exact_match(broken([0], 50, rng())).any()


def test_few_messages_make_a_replaced_row_appear() -> None:
    """As somebody else's: with probability 1 - (15/16)^4, and never of 2^128."""
    base = RowAppearance(SignedRows(), SubsamplingSynthesiser(4), 4)
    low, high = stats.binom.interval(1 - 1e-6, 200, 1 - (15 / 16) ** 4)
    assert low <= int(_is_exact_match(MUTANTS["small_message_set"].build(base)([0], 200, rng())).sum()) <= high
    assert not _is_exact_match(base([0], 50, rng())).any()


def test_a_published_key_makes_every_row_appear() -> None:
    base = RowAppearance(SignedRows(), DirectorySynthesiser(), 4)
    assert not _is_exact_match(base([0], 30, rng())).any()
    broken = MUTANTS["deterministic_signature_with_published_key"].build(base)
    assert _is_exact_match(broken([0], 30, rng())).all()


def test_a_published_key_breaks_the_dichotomy() -> None:
    """Rows of other people's messages verify, and are copies of nothing."""
    found = VerifiedRows(SignedRows(published=True), DirectorySynthesiser(), 3)([0], 5, rng())
    assert found.tolist() == [[1.0, 3.0]] * 5
    assert VerifiedRows(SignedRows(), DirectorySynthesiser(), 3)([0], 5, rng()).tolist() == [[0.0, 0.0]] * 5
    assert VerifiedRows(SignedRows(), SubsamplingSynthesiser(2), 3)([0], 5, rng()).tolist() == [[1.0, 0.0]] * 5


def test_errors_of_what_was_verified() -> None:
    found = np.array([[1.0, 0.0], [0.25, 2.0]])
    assert _share(found).tolist() == [1.0, 0.25]
    assert _missing_share(found).tolist() == [0.0, 0.75]
    assert _no_copies(found).tolist() == [0.0, 2.0]


# -------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SignedRows(0), "from 1 to 2\\^128 messages, got 0"),
        (lambda: SignedRows((1 << 128) + 1), "from 1 to 2\\^128 messages"),
        (lambda: SignedRows(1 << 64).messages(1, rng()), "at most 2\\^63"),
        (lambda: CopyRarely(1.0), "delta in \\(0, 1\\), got 1.0"),
        (lambda: MarginalSynthesiser(0.0), "epsilon > 0, got 0.0"),
        (lambda: RowAppearance(SignedRows(), SubsamplingSynthesiser(1), 0), "a number of rows >= 1, got 0"),
        (lambda: VerifiedRows(SignedRows(), SubsamplingSynthesiser(1), 0), "a number of rows >= 1, got 0"),
        (lambda: SubsamplingSynthesiser(6)(*dataset(), rng()), "from 1 to 5 synthetic rows, got 6"),
        (lambda: RowAppearance(SignedRows(), SubsamplingSynthesiser(1), 2)([1], 0, rng()), "n >= 1, got 0"),
    ],
)
def test_bad_input_is_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
