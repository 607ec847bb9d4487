"""A traitor-tracing scheme of the second type, and the boxes that pirates make of decryption keys.

A user's row in a dataset is his number and his key; a counting query is a ciphertext, and its answer the share of rows
whose key decrypts the ciphertext to a one. Tracing sends the columns of a fingerprinting code, the entry of user i
encrypted for user i, and traces the word that the box makes of them.

This demonstrates a reduction, and no hardness. It is assumed that AES-128, or HMAC-SHA256, is a pseudorandom function,
and that pirates are bounded in time: then a component for which they have no key tells them nothing. The boxes here
look for the mistakes that they are made for, and for nothing else. Keys and nonces are drawn from the generator of the
run, which is no cryptographic one.

Source: document 003, section 5.3 (alternative 2), Theorem 5.3.1, and Theorem 6.1.1; catalogue 000_001_003,
traitor_tracing_type2. The ciphers are those of the cryptography library, which is loaded when something is encrypted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.audits.adversaries.fingerprints import Bits, BlockCodebook, BonehShaw, Rows
from auditor.audits.adversaries.tracing import Tracing
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws
from mechanisms.lower_bounds.attribute_means import AttributeMeans
from mechanisms.lower_bounds.pirates import CoalitionView, FramingPirate, coalition_of, missing_user

Bytes: TypeAlias = NDArray[np.uint8]

#: Bytes of a key and of a nonce.
KEY = 16
#: Ciphertext components that are made at once, 16 bytes each: 4 MB.
_COMPONENTS = 1 << 18

# ------------------------------------------------------------------------------- the base scheme


class PseudorandomPad(Protocol):
    """A pseudorandom function whose last bit is used: of a key and of each of several nonces."""

    def __call__(self, key: bytes, nonces: Bytes, /) -> Bytes:
        """Bits, uint8 of shape (m,), of nonces of shape (m, 16)."""
        ...


@dataclass(frozen=True)
class AESPad:
    """Last bit of AES-128 of a nonce: a block cipher on different blocks, at some 50 ns each."""

    def __call__(self, key: bytes, nonces: Bytes) -> Bytes:
        """See `PseudorandomPad`."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        # Each nonce is one block of its own: what is wrong with ECB, that equal blocks look equal, is a mutant here.
        cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        blocks = np.frombuffer(cipher.update(nonces.tobytes()), dtype=np.uint8)
        return np.asarray(blocks[KEY - 1 :: KEY] & 1, dtype=np.uint8)


@dataclass(frozen=True)
class HMACPad:
    """Last bit of HMAC-SHA256 of a nonce, as the catalogue has it: some microseconds each."""

    def __call__(self, key: bytes, nonces: Bytes) -> Bytes:
        """See `PseudorandomPad`."""
        from cryptography.hazmat.primitives import hashes, hmac

        keyed, found = hmac.HMAC(key, hashes.SHA256()), np.empty(len(nonces), dtype=np.uint8)
        for place, nonce in enumerate(nonces):
            one = keyed.copy()
            one.update(nonce.tobytes())
            found[place] = one.finalize()[-1] & 1
        return found


@dataclass(frozen=True)
class BitEncryption:
    """``Enc_k(b) = (r, b xor last bit of F_k(r))`` with a fresh nonce r of 128 bits.

    Parameters
    ----------
    pad : PseudorandomPad
        F.
    """

    pad: PseudorandomPad = AESPad()

    def nonces(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Bytes:
        """Nonces of all components (trials, users, columns); uint8 of shape (*shape, 16)."""
        return rng.integers(0, 1 << 64, (*shape, 2), dtype=np.uint64).view(np.uint8)

    def pads(self, keys: Bytes, nonces: Bytes) -> Bytes:
        """What each component (trials, k, columns, 16) is masked with under the keys (trials, k, 16)."""
        trials, k, columns = nonces.shape[:3]
        rows, blocks = keys.reshape(-1, KEY), nonces.reshape(-1, columns, KEY)
        found = [self.pad(key.tobytes(), block) for key, block in zip(rows, blocks, strict=True)]
        return np.array(found, dtype=np.uint8).reshape(trials, k, columns)

    def encrypt(self, keys: Bytes, bits: Bytes, rng: np.random.Generator) -> Ciphertexts:
        """Ciphertexts whose component for user i is the encryption of his entry of bits (trials, users, columns)."""
        nonces = self.nonces((bits.shape[0], bits.shape[1], bits.shape[2]), rng)
        return Ciphertexts(nonces, bits ^ self.pads(keys, nonces))


@dataclass(frozen=True, eq=False)
class Ciphertexts:
    """Ciphertexts.

    Parameters
    ----------
    nonces : ndarray of uint8, shape (trials, users, columns, 16)
        Nonce of each component.
    masked : ndarray of uint8, shape (trials, users, columns)
        Masked bit of each component.
    """

    nonces: Bytes
    masked: Bytes

    def of(self, user: int) -> Ciphertexts:
        """Components of one user, all axes kept."""
        return Ciphertexts(self.nonces[:, user - 1 : user], self.masked[:, user - 1 : user])


# ------------------------------------------------------------------------------- the tracing scheme


@dataclass(frozen=True)
class TraitorTracing:
    """A fingerprinting code that is sent encrypted: a `Code` for `Tracing`, whose tables are what rows decrypt.

    Parameters
    ----------
    code : BonehShaw
        The code.
    scheme : BitEncryption
        The base scheme; each user has a key of his own, and all keys are the broadcast and the tracing key.
    """

    code: BonehShaw
    scheme: BitEncryption = BitEncryption()

    @property
    def users(self) -> int:
        """Number of users."""
        return self.code.users

    @property
    def length(self) -> int:
        """Number of ciphertexts that tracing takes."""
        return self.code.length

    def generate(self, trials: int, rng: np.random.Generator) -> CiphertextBroadcast:
        """Draw keys and codes, and encrypt."""
        return self.sent(trials, rng)

    def sent(self, trials: int, rng: np.random.Generator, random_for: int | None = None) -> CiphertextBroadcast:
        """The same, where the components of one user may be encryptions of fair coins instead of his codeword."""
        book, users = self.code.generate(trials, rng), np.arange(1, self.users + 1)
        keys = rng.integers(0, 256, (trials, self.users, KEY), dtype=np.uint8)
        bits = book.rows(np.broadcast_to(users, (trials, self.users))).view(np.uint8).copy()
        if random_for is not None:
            bits[:, random_for - 1] = rng.integers(0, 2, (trials, self.length), dtype=np.uint8)
        return CiphertextBroadcast(self, book, keys, self.scheme.encrypt(keys, bits, rng))

    def components(self, users: IntArray) -> IntArray:
        """Which component each row (trials, k) decrypts, by the number in the row: 1 for the first one."""
        return users


@dataclass(frozen=True, eq=False)
class CiphertextBroadcast:
    """Ciphertexts of one tracing, for several independent trials: a `Codebook`.

    Parameters
    ----------
    scheme : TraitorTracing
        What made them.
    book : BlockCodebook
        The codes, which nobody but the tracer knows.
    keys : ndarray of uint8, shape (trials, users, 16)
        Decryption keys.
    sent : Ciphertexts
        The ciphertexts, which everybody sees.
    """

    scheme: TraitorTracing
    book: BlockCodebook
    keys: Bytes
    sent: Ciphertexts

    def rows(self, users: IntArray) -> Rows:
        """What the keys of users (trials, k) decrypt: answers of all queries for each row; see `Codebook`."""
        trials = np.arange(len(users))[:, None]
        places = self.scheme.components(users) - 1
        nonces, masked = self.sent.nonces[trials, places], self.sent.masked[trials, places]
        return (masked ^ self.scheme.scheme.pads(self.keys[trials, users - 1], nonces)).view(np.int8)

    def ones(self, members: IntArray) -> IntArray:
        """See `Codebook`."""
        users = np.broadcast_to(members, (len(self.keys), len(members)))
        return np.asarray(self.rows(users).sum(axis=1, dtype=np.int64))

    def accuses(self, word: Bits, users: IntArray) -> Bits:
        """See `Codebook`."""
        return self.book.accuses(word, users)

    def statistic(self, answers: FloatArray, users: IntArray) -> FloatArray:
        """See `Codebook`."""
        return self.book.statistic(answers, users)


@dataclass(frozen=True)
class KeyTracing(Tracing):
    """`Tracing` on rows of numbers and keys, in batches that fit in memory.

    The row of i* is overwritten by the number and the key of i0: one row differs. What is released are the answers to
    all ciphertexts of the tracing, and everything else is as in `Tracing`, with its argument.
    """

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray | FloatArray:
        """Draw n trials; see `Tracing`."""
        require_draws(n)
        most = max(1, _COMPONENTS // (self.code.users * self.code.length))
        return np.concatenate(
            [super(KeyTracing, self).__call__(data, min(most, n - k), rng) for k in range(0, n, most)]
        )


# ----------------------------------------------------------------------------------------- the boxes


@dataclass(frozen=True, eq=False)
class BoxView:
    """What a box has: its members' rows and all ciphertexts.

    Parameters
    ----------
    members : ndarray of int64, shape (k,)
        The coalition, all users but one.
    users : int
        Number of users.
    table : ndarray of int8, shape (trials, k, columns)
        What the members' rows decrypt.
    missing : Ciphertexts
        Components of the user whose key they do not have, shape (trials, 1, columns).
    earlier : Ciphertexts
        The same in an ordinary broadcast before, to the same keys.
    broadcast : ndarray of uint8, shape (trials, columns)
        The bits of that broadcast, which every member decrypted.
    """

    members: IntArray
    users: int
    table: Rows
    missing: Ciphertexts
    earlier: Ciphertexts
    broadcast: Bytes


class PirateBox(Protocol):
    """A decoder: from what it sees to a bit for each ciphertext, bool of shape (trials, columns)."""

    def __call__(self, seen: BoxView, rng: np.random.Generator, /) -> Bits:
        """Decode."""
        ...


@dataclass(frozen=True)
class MeansBox:
    """The box of Theorem 5.3.1: a mechanism's answers to the queries, rounded.

    Parameters
    ----------
    target : AttributeMeans
        The mechanism, on the table of what rows decrypt.
    """

    target: AttributeMeans

    def __call__(self, seen: BoxView, rng: np.random.Generator) -> Bits:
        """See `PirateBox`."""
        return np.asarray(self.target.each(seen.table, rng) > 0.5)


@dataclass(frozen=True)
class FramingBox:
    """A box that decodes, and lays the word to the user who is missing, as far as it can read his codeword.

    How it reads is what a subclass has; this one takes the order of the ciphertexts for that of the blocks.
    """

    def __call__(self, seen: BoxView, rng: np.random.Generator) -> Bits:
        """See `PirateBox`."""
        view = CoalitionView(seen.users, seen.members, seen.table.sum(axis=1, dtype=np.int64), self.copy(seen, rng))
        return FramingPirate(missing_user(seen.members, seen.users))(view, rng)

    def copy(self, seen: BoxView, rng: np.random.Generator) -> Bits | None:
        """What it takes for the codeword of the user who is missing; None for nothing."""
        del seen, rng
        return None


@dataclass(frozen=True)
class RepeatedNonces(FramingBox):
    """Where a nonce was used before, the mask is known from then; elsewhere a coin decides."""

    def copy(self, seen: BoxView, rng: np.random.Generator) -> Bits:
        """See `FramingBox`."""
        now, then = seen.missing, seen.earlier
        same = (now.nonces[:, 0] == then.nonces[:, 0]).all(axis=2)
        coins = rng.integers(0, 2, same.shape, dtype=np.uint8)
        return np.asarray(np.where(same, now.masked[:, 0] ^ then.masked[:, 0] ^ seen.broadcast, coins) == 1)


@dataclass(frozen=True)
class EqualCiphertexts(FramingBox):
    """What looks like the component of a column in which nobody has a one is a zero; for other nonces coins decide."""

    def copy(self, seen: BoxView, rng: np.random.Generator) -> Bits:
        """See `FramingBox`; block 0 has such columns."""
        nobody = (seen.table == 0).all(axis=1).argmax(axis=1)
        trials = np.arange(len(nobody))
        nonces, masked = seen.missing.nonces[:, 0], seen.missing.masked[:, 0]
        same = (nonces == nonces[trials, nobody][:, None]).all(axis=2)
        same[trials, nobody] = True
        coins = rng.integers(0, 2, same.shape, dtype=np.uint8)
        return np.asarray(np.where(same, masked ^ masked[trials, nobody][:, None], coins) == 1)


@dataclass(frozen=True)
class BoxTraced:
    """Who is traced: from a coalition of all users but one (data) to the traced user, 0 for nobody.

    Parameters
    ----------
    tracing : TraitorTracing
        The scheme.
    box : PirateBox
        What the coalition makes of its keys.
    """

    tracing: TraitorTracing
    box: PirateBox

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw n times keys, ciphertexts and the word of the box; int64 of shape (n,)."""
        require_draws(n)
        members = coalition_of(data, self.tracing.users)
        most = max(1, _COMPONENTS // (self.tracing.users * self.tracing.length))
        parts = [min(most, n - done) for done in range(0, n, most)]
        return np.concatenate([self._trace_coalition(members, part, rng) for part in parts])

    def _trace_coalition(self, members: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        broadcast = self.tracing.sent(n, rng)
        return broadcast.book.trace(self.box(seen_by(broadcast, members, rng), rng))


def seen_by(broadcast: CiphertextBroadcast, members: IntArray, rng: np.random.Generator) -> BoxView:
    """Send an ordinary broadcast of coins before, and return what a coalition of all but one sees of both."""
    tracing = broadcast.scheme
    trials, missing = len(broadcast.keys), missing_user(members, tracing.users)
    bits = rng.integers(0, 2, (trials, tracing.length), dtype=np.uint8)
    everybody = np.broadcast_to(bits[:, None], (trials, tracing.users, tracing.length))
    # Only the missing user's components of it are looked at; the nonces of the others are drawn all the same.
    nonces = tracing.scheme.nonces((trials, tracing.users, tracing.length), rng)[:, missing - 1 : missing]
    pads = tracing.scheme.pads(broadcast.keys[:, missing - 1 : missing], nonces)
    earlier = Ciphertexts(nonces, everybody[:, :1] ^ pads)
    table = broadcast.rows(np.broadcast_to(members, (trials, len(members))))
    return BoxView(members, tracing.users, table, broadcast.sent.of(missing), earlier, bits)


@dataclass(frozen=True)
class MissingComponents:
    """Whether a box notices what is encrypted for a user whose key it does not have.

    On the data (1,) his components are encryptions of his codeword, on (0,) of fair coins. The code is the same.

    Parameters
    ----------
    tracing : TraitorTracing
        The scheme.
    box : PirateBox
        Of all other users.
    user : int
        Who is missing.
    """

    tracing: TraitorTracing
    box: PirateBox
    user: int

    def __post_init__(self) -> None:
        require(1 <= self.user <= self.tracing.users, f"a user from 1 to {self.tracing.users}", self.user)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw n words; int64 of shape (n, 2): who is traced, and the sign of the rise of ones in the user's block."""
        require_draws(n)
        own = int(np.asarray(data).reshape(-1)[0])
        most = max(1, _COMPONENTS // (self.tracing.users * self.tracing.length))
        return np.concatenate([self._trace_and_rise(own, min(most, n - done), rng) for done in range(0, n, most)])

    def _trace_and_rise(self, own: int, n: int, rng: np.random.Generator) -> IntArray:
        broadcast = self.tracing.sent(n, rng, None if own else self.user)
        members = np.setdiff1d(np.arange(1, self.tracing.users + 1), [self.user])
        word = self.box(seen_by(broadcast, members, rng), rng)
        sums = broadcast.book.sums(word).astype(np.int64)
        rise = np.sign(sums[:, self.user] - sums[:, self.user - 1])
        return np.column_stack([broadcast.book.code.trace(sums), rise])
