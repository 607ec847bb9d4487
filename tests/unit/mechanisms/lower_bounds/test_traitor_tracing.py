"""The traitor-tracing scheme, the boxes made of its keys, and its mistakes.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.adversaries.fingerprints import BonehShaw
from auditor.audits.adversaries.tracing import Tracing
from experiments.document_003_bellairs_lectures.tracing import accusation_rates
from experiments.document_003_bellairs_lectures.traitor_tracing import (
    _CODE,
    _MISSING,
    _IsOutsiderTraced,
    _within_one_half,
)
from mechanisms.lower_bounds.attribute_means import AttributeMeans, LaplaceMeans
from mechanisms.lower_bounds.traitor_tracing import (
    KEY,
    AESPad,
    BitEncryption,
    BoxTraced,
    BoxView,
    Bytes,
    EqualCiphertexts,
    FramingBox,
    HMACPad,
    KeyTracing,
    MeansBox,
    MissingComponents,
    PirateBox,
    RepeatedNonces,
    TraitorTracing,
    seen_by,
)
from mechanisms.lower_bounds.traitor_tracing_mutants import MUTANTS, NoNonces, PositionNonces

SMALL = BonehShaw(4, 6)
EXACT = MeansBox(AttributeMeans())


def rng(seed: int = 20261122) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---------------------------------------------------------------------------------------- the ciphers


def test_aes_pads_are_those_of_the_standard() -> None:
    # FIPS 197, appendix C.1: the ciphertext ends in 5a, an even number; SP 800-38A, F.1.1: in 97, af, 88 and d4.
    key = bytes(range(16))
    block = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), dtype=np.uint8)
    assert AESPad()(key, block[None]).tolist() == [0x5A & 1]
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    blocks = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    found = AESPad()(key, np.frombuffer(blocks, dtype=np.uint8).reshape(4, KEY))
    assert found.tolist() == [0x97 & 1, 0xAF & 1, 0x88 & 1, 0xD4 & 1]


def test_hmac_pads_are_those_of_the_standard_library() -> None:
    key, nonces = rng().bytes(KEY), rng(1).integers(0, 256, (40, KEY), dtype=np.uint8)
    expected = [hmac.digest(key, nonce.tobytes(), hashlib.sha256)[-1] & 1 for nonce in nonces]
    assert HMACPad()(key, nonces).tolist() == expected
    assert 0 < sum(expected) < 40


@pytest.mark.parametrize("scheme", [BitEncryption(), BitEncryption(HMACPad()), PositionNonces(), NoNonces()], ids=repr)
def test_what_is_encrypted_is_decrypted(scheme: BitEncryption) -> None:
    tracing = TraitorTracing(SMALL, scheme)
    broadcast = tracing.generate(5, rng())
    users = np.array([[1, 2, 4], [4, 3, 1], [2, 2, 2], [1, 3, 4], [3, 4, 1]])
    assert np.array_equal(broadcast.rows(users), broadcast.book.rows(users))
    members = np.array([1, 2, 4])
    assert np.array_equal(broadcast.ones(members), broadcast.book.ones(members))
    assert broadcast.rows(users).dtype == np.int8


def test_another_key_decrypts_coins() -> None:
    tracing = TraitorTracing(BonehShaw(2, 2_000))
    broadcast = tracing.generate(1, rng())
    keys = broadcast.keys[:, ::-1]
    wrong = broadcast.sent.masked ^ tracing.scheme.pads(keys, broadcast.sent.nonces)
    agreed = int((wrong == broadcast.book.rows(np.array([[1, 2]]))).sum())
    low, high = stats.binom.interval(1 - 1e-6, wrong.size, 0.5)
    assert low <= agreed <= high


def test_nonces_are_fresh_in_each_component_and_those_of_mutants_are_not() -> None:
    shape = (3, 4, 30)
    fresh = BitEncryption().nonces(shape, rng()).reshape(-1, KEY)
    assert len(np.unique(fresh, axis=0)) == 360
    placed = PositionNonces().nonces(shape, rng())
    assert np.array_equal(placed[0], placed[2])
    assert len(np.unique(placed[0].reshape(-1, KEY), axis=0)) == 120
    assert not NoNonces().nonces(shape, rng()).any()


# ------------------------------------------------------------------------------------ the reduction


@pytest.mark.parametrize("present", [0, 1])
def test_accusations_are_those_of_the_code_itself(present: int) -> None:
    """Rows decrypt the codewords, so the exact distribution of the code holds; it is far from a coin's."""
    traced = KeyTracing(AttributeMeans(), TraitorTracing(SMALL))
    rate = accusation_rates(SMALL, lambda means: np.asarray(means > 0.5, dtype=np.float64))[1 - present]
    accused = int(traced([present], 400, rng()).sum())
    low, high = stats.binom.cdf(accused, 400, rate), stats.binom.sf(accused - 1, 400, rate)
    assert min(low, high) >= 1e-6 / 4


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """One trial at a time, from one generator, is distributed as another batch of trials; exact means decide."""
    traced = KeyTracing(AttributeMeans(), TraitorTracing(SMALL), difference=True)
    assert traced([1], 30, rng()).shape == (30, 2)
    monkeypatch.setattr("mechanisms.lower_bounds.traitor_tracing._COMPONENTS", 1)
    alone = traced([1], 30, rng())
    assert alone.shape == (30, 2)
    assert alone[:, 1] == pytest.approx(1 / 3)
    assert isinstance(traced, Tracing)


def test_an_accurate_box_is_traced_to_a_member() -> None:
    for missing in range(1, 8):
        coalition = np.setdiff1d(np.arange(1, 8), [missing])
        found = BoxTraced(TraitorTracing(_CODE), EXACT)(coalition, 20, rng(missing))
        assert not _IsOutsiderTraced(tuple(coalition.tolist()), nobody=True)(found).any()


def test_who_counts_as_outside() -> None:
    traced = np.array([0, 1, 2, 3])
    assert _IsOutsiderTraced((1, 3), nobody=True)(traced).tolist() == [1, 0, 1, 0]
    assert _IsOutsiderTraced((1, 3), nobody=False)(traced).tolist() == [0, 0, 1, 0]


def test_a_private_box_does_not_decode() -> None:
    """Laplace noise of scale 840/6 in 840 columns: within 1/2 with probability below e^-4000."""
    answers = LaplaceMeans(1.0)(np.zeros((6, _CODE.length), dtype=np.int64), 50, rng())
    assert not _within_one_half(answers).any()
    assert _within_one_half(np.array([[0.4, -0.4], [0.5, 0.0]])).tolist() == [1, 0]


# -------------------------------------------------------------------------------- boxes and mistakes


def _seen(scheme: BitEncryption) -> tuple[BoxView, Any]:
    tracing = TraitorTracing(_CODE, scheme)
    broadcast = tracing.generate(4, rng())
    codeword = broadcast.book.rows(np.full((4, 1), _MISSING))[:, 0] == 1
    return seen_by(broadcast, np.setdiff1d(np.arange(1, 8), [_MISSING]), rng(1)), codeword


@pytest.mark.parametrize(
    ("box", "mistake"), [(RepeatedNonces(), PositionNonces()), (EqualCiphertexts(), NoNonces())], ids=repr
)
def test_a_box_reads_the_codeword_where_the_scheme_gives_it_away_and_coins_elsewhere(
    box: FramingBox, mistake: BitEncryption
) -> None:
    seen, codeword = _seen(mistake)
    assert (box.copy(seen, rng()) == codeword).all()
    seen, codeword = _seen(BitEncryption())
    copy = box.copy(seen, rng())
    assert copy is not None
    agreed = int((copy == codeword).sum())
    # One column of each trial is known to be a zero: 4 of 3,360 at most.
    low, high = stats.binom.interval(1 - 1e-6, codeword.size, 0.5)
    assert low <= agreed <= high + 4


def test_what_is_seen_of_the_broadcast_before() -> None:
    seen, _ = _seen(PositionNonces())
    assert np.array_equal(seen.missing.nonces, seen.earlier.nonces)
    assert seen.missing.masked.shape == (4, 1, _CODE.length)
    assert seen.table.shape == (4, 6, _CODE.length)
    assert set(np.unique(seen.broadcast)) == {0, 1}


BOXES: dict[str, PirateBox] = {
    "randomness_reused": RepeatedNonces(),
    "deterministic_base_scheme": EqualCiphertexts(),
    "components_in_fixed_order": FramingBox(),
}


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("missing", [2, 4, 6])
def test_mistakes_frame_whoever_is_missing(name: str, missing: int) -> None:
    coalition = np.setdiff1d(np.arange(1, 8), [missing])
    broken = MUTANTS[name].build(BoxTraced(TraitorTracing(_CODE), BOXES[name]))
    # In the blocks that tell him apart the word is his codeword: nothing is left to chance.
    assert broken(coalition, 10, rng()).tolist() == [missing] * 10


def test_rows_without_numbers_decrypt_noise() -> None:
    """Without user 1 every row decrypts another user's component, and the word is of coins."""
    broken = MUTANTS["row_without_index"].build(BoxTraced(TraitorTracing(_CODE), EXACT))
    coalition = np.arange(2, 8)
    assert BoxTraced(TraitorTracing(_CODE), EXACT)(coalition, 10, rng()).min() >= 2
    # Ones where four of six coins are: a rise by 18 in 120 columns is 2.4 standard deviations, and rarer than 0.02.
    traced = broken(coalition, 300, rng())
    assert int((traced > 0).sum()) <= stats.binom.ppf(1 - 1e-6, 300, 6 * 0.02)


def test_what_is_encrypted_for_the_missing_user_matters_only_by_mistake() -> None:
    """With random components a box that reads them frames nobody for certain; with his own, always."""

    def draw(scheme: BitEncryption, own: int) -> Any:
        tracing = TraitorTracing(_CODE, scheme)
        return MissingComponents(tracing, EqualCiphertexts(), _MISSING)([own], 60, rng(own))

    assert (draw(NoNonces(), 1) == [_MISSING, 1]).all()
    # Coins in 2 x 120 columns: a rise by 18 is 2.3 standard deviations, of probability below 0.02.
    framed = int((draw(NoNonces(), 0)[:, 0] == _MISSING).sum())
    assert framed <= stats.binom.ppf(1 - 1e-6, 60, 0.02)
    rises = draw(BitEncryption(), 1)[:, 1], draw(BitEncryption(), 0)[:, 1]
    for rise in rises:
        low, high = stats.binom.interval(1 - 2e-7, 60, 0.5)
        assert int((rise > 0).sum()) <= high
        assert int((rise >= 0).sum()) >= low


# -------------------------------------------------------------------------------------------- errors


@dataclass(frozen=True)
class _Never:
    def __call__(self, key: bytes, nonces: Bytes) -> Bytes:
        raise AssertionError((key, nonces))


@pytest.mark.parametrize("user", [0, 5])
def test_the_missing_user_is_one_of_them(user: int) -> None:
    with pytest.raises(ValueError, match=f"a user from 1 to 4, got {user}"):
        MissingComponents(TraitorTracing(SMALL), FramingBox(), user)


@pytest.mark.parametrize(("coalition", "message"), [([1, 2], "all but one of 4"), ([1, 2, 5], "from 1 to 4")])
def test_the_coalition_is_of_all_users_but_one(coalition: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoxTraced(TraitorTracing(SMALL), EXACT)(coalition, 1, rng())


def test_the_number_of_draws_is_checked_before_anything_is_encrypted() -> None:
    tracing = TraitorTracing(SMALL, BitEncryption(_Never()))
    for mechanism, data in (
        (KeyTracing(AttributeMeans(), tracing), [1]),
        (BoxTraced(tracing, EXACT), [1, 2, 3]),
        (MissingComponents(tracing, EXACT, 2), [1]),
    ):
        with pytest.raises(ValueError, match="n >= 1, got 0"):
            mechanism(data, 0, rng())
