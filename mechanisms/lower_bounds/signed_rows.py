"""Rows that are signed messages, and synthetic data made of them: a row that verifies was copied or forged.

A row is a message of 128 bits and its Ed25519 signature, 80 bytes. The one query asks whether a row verifies under the
public key; it is 1 on the dataset. Assumed is that Ed25519 cannot be forged: the synthesisers here do not try to, and
that none can in reasonable time is what the lemma builds on, not what is tested. Keys and messages are drawn from the
generator of the run, which is no cryptographic one.

Source: document 003, Lemma 6.3.2; catalogue 000_001_003, signature_dataset_hard_to_sanitize. Signatures are those of
the cryptography library, which is loaded when something is signed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
    unbounded,
)
from mechanisms.query_release.small_database import SmallDatabase

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Bytes: TypeAlias = NDArray[np.uint8]

#: Bytes of a message and of a row, and bits of a row.
MESSAGE, ROW = 16, 80
BITS = 8 * ROW
#: What `RowAppearance` gives out for a row that is in the synthetic data.
ITSELF = 2
#: Bytes of a secret key.
_SECRET = 32
#: Columns of a small universe: four elements.
_COLUMNS = ("first", "second")

# --------------------------------------------------------------------------------------- signatures


def sign(secret: bytes, messages: Bytes) -> Bytes:
    """Rows of messages (n, 16), signed; uint8 of shape (n, 80). Ed25519 signatures are deterministic."""
    key = _load_key(secret)
    signatures = b"".join(key.sign(message.tobytes()) for message in messages)
    return np.hstack([messages, np.frombuffer(signatures, dtype=np.uint8).reshape(len(messages), -1)])


def public_key(secret: bytes) -> bytes:
    """The public key that belongs to a secret one, 32 bytes each."""
    return _load_key(secret).public_key().public_bytes_raw()


@lru_cache(maxsize=1)  # a key signs, and is published, and another one is drawn
def _load_key(secret: bytes) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(secret)


def verifies(public: bytes, rows: Bytes) -> NDArray[np.bool_]:
    """The query, on each row (m, 80): whether its signature is one of its message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key, found = Ed25519PublicKey.from_public_bytes(public), np.ones(len(rows), dtype=np.bool_)
    for place, row in enumerate(rows):
        try:
            key.verify(row[MESSAGE:].tobytes(), row[:MESSAGE].tobytes())
        except InvalidSignature:
            found[place] = False
    return found


@dataclass(frozen=True)
class SignedRows:
    """How datasets are made: a key of its own for each, and rows with random messages.

    Parameters
    ----------
    different : int
        Messages are uniform on so many values, at most 2^128.
    published : bool
        The secret key is published.
    """

    different: int = 1 << (8 * MESSAGE)
    published: bool = False

    def __post_init__(self) -> None:
        most = 1 << (8 * MESSAGE)
        whole = isinstance(self.different, int) and not isinstance(self.different, bool)
        require(whole and 1 <= self.different <= most, "from 1 to 2^128 messages", self.different)

    def messages(self, count: int, rng: np.random.Generator) -> Bytes:
        """Draw messages; uint8 of shape (count, 16)."""
        if self.different == 1 << (8 * MESSAGE):
            return rng.integers(0, 256, (count, MESSAGE), dtype=np.uint8)
        # Of fewer, 64 bits are enough for all that are used.
        require(self.different <= 1 << 63, "2^128 messages, or at most 2^63", self.different)
        drawn = np.zeros((count, 2), dtype=np.uint64)
        drawn[:, 0] = rng.integers(0, self.different, count, dtype=np.uint64)
        return drawn.view(np.uint8)


@dataclass(frozen=True, eq=False)
class PublicKnowledge:
    """What everybody knows beside the dataset.

    Parameters
    ----------
    directory : ndarray of uint8, shape (k, 16)
        Messages that may or may not be those of the dataset.
    public : bytes
        The public key.
    secret : bytes or None
        The secret key, if it is published.
    """

    directory: Bytes
    public: bytes
    secret: bytes | None = None


class RowSynthesiser(Protocol):
    """From a dataset of signed rows (n, 80) to synthetic rows, uint8 of shape (m, 80)."""

    def __call__(self, rows: Bytes, known: PublicKnowledge, rng: np.random.Generator, /) -> Bytes:
        """Make them."""
        ...


# ------------------------------------------------------------------------------------- synthesisers


@dataclass(frozen=True)
class SubsamplingSynthesiser:
    """Rows of the dataset, different ones: accurate, and no synthesis at all.

    Parameters
    ----------
    size : int
        Synthetic rows m, at most the rows of the dataset.
    """

    size: int

    def __call__(self, rows: Bytes, known: PublicKnowledge, rng: np.random.Generator) -> Bytes:
        """See `RowSynthesiser`."""
        del known
        require(1 <= self.size <= len(rows), f"from 1 to {len(rows)} synthetic rows", self.size)
        return rows[rng.permutation(len(rows))[: self.size]]


@dataclass(frozen=True)
class CopyRarely:
    """Each row is copied with probability delta, and replaced by random bytes otherwise: (0, delta)-private.

    Parameters
    ----------
    delta : float
        In (0, 1).
    """

    delta: float

    def __post_init__(self) -> None:
        require(0 < self.delta < 1, "delta in (0, 1)", self.delta)

    def __call__(self, rows: Bytes, known: PublicKnowledge, rng: np.random.Generator) -> Bytes:
        """See `RowSynthesiser`."""
        del known
        copied = rng.random(len(rows)) < self.delta
        return np.where(copied[:, None], rows, rng.integers(0, 256, rows.shape, dtype=np.uint8))


@dataclass(frozen=True)
class MarginalSynthesiser:
    """Rows with independent bits, whose probabilities are noisy shares of the dataset: ``epsilon``-private.

    Parameters
    ----------
    epsilon : float
        Level, > 0. A replaced row moves each of 640 counts by at most 1, so that the noise is Laplace of scale
        ``640 / epsilon``.
    """

    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)

    def __call__(self, rows: Bytes, known: PublicKnowledge, rng: np.random.Generator) -> Bytes:
        """See `RowSynthesiser`; as many rows as the dataset has."""
        del known
        noisy = np.unpackbits(rows, axis=1).sum(axis=0) + rng.laplace(0.0, BITS / self.epsilon, BITS)
        shares = np.clip(noisy / len(rows), 0.0, 1.0)
        return np.packbits(rng.random((len(rows), BITS)) < shares, axis=1)


@dataclass(frozen=True)
class SmallUniverse:
    """A small database (Blum, Ligett, Roth) over four elements: two bits of the message, and zeros for all the rest.

    Parameters
    ----------
    epsilon : float
        Level, > 0.
    size : int
        Synthetic rows.
    """

    epsilon: float
    size: int

    def __call__(self, rows: Bytes, known: PublicKnowledge, rng: np.random.Generator) -> Bytes:
        """See `RowSynthesiser`."""
        import pandas as pd

        del known
        bits = pd.DataFrame({_COLUMNS[0]: rows[:, 0] >> 7, _COLUMNS[1]: (rows[:, 0] >> 6) & 1}).astype(np.int64)
        histogram = SmallDatabase(_COLUMNS, self.epsilon, self.size)(bits, 1, rng)[0]
        found = np.zeros((self.size, ROW), dtype=np.uint8)
        found[:, 0] = np.repeat(np.arange(4) << 6, histogram)
        return found


@dataclass(frozen=True)
class DirectorySynthesiser:
    """Rows of all known messages, signed with the published key, or with one of its own: it never sees the dataset."""

    def __call__(self, rows: Bytes, known: PublicKnowledge, rng: np.random.Generator) -> Bytes:
        """See `RowSynthesiser`."""
        del rows
        return sign(rng.bytes(_SECRET) if known.secret is None else known.secret, known.directory)


# ------------------------------------------------------------------------------------ the experiments


@dataclass(frozen=True)
class RowAppearance:
    """How near the synthetic data come to a row: a mechanism on data that say if the row is there.

    In each trial a key, n + 1 rows and a place are drawn. On the data (1,) the dataset has the first n rows; on (0,)
    the row at that place is replaced by the last one. Asked for is the row that was there first: given out is `ITSELF`
    if its exact value appears, and otherwise whether some synthetic row shares more than half of its bits (without it,
    a synthesiser that makes no copies would give out nothing to judge it by). The directory has all messages.

    Valid because: given the key, the rows and the place, both datasets are neighbours (one row is replaced), so that an
    event has probabilities p_c and q_c with p_c <= cap(q_c), in both orders. These are drawn in the same way on both
    sides, and the cap is concave: p = E[p_c] <= E[cap(q_c)] <= cap(q). Where messages are fresh, random and 128 bits
    long, and nobody forges, `ITSELF` has q of at most the number of synthetic rows times 2^-128.

    Parameters
    ----------
    signed : SignedRows
        How datasets are made.
    synthesiser : RowSynthesiser
        What is audited.
    rows : int
        Rows n of a dataset.
    """

    signed: SignedRows
    synthesiser: RowSynthesiser
    rows: int

    def __post_init__(self) -> None:
        require(isinstance(self.rows, int) and self.rows >= 1, "a number of rows >= 1", self.rows)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw n trials; int64 of shape (n,)."""
        require_draws(n)
        present = int(np.asarray(data).reshape(-1)[0])
        return np.array([self._shared_bits(present, rng) for _ in range(n)], dtype=np.int64)

    def _shared_bits(self, present: int, rng: np.random.Generator) -> int:
        everyone, known = _draw_rows(self.signed, self.rows + 1, rng)
        place = int(rng.integers(self.rows))
        dataset = everyone[: self.rows].copy()
        if not present:
            dataset[place] = everyone[self.rows]
        found = self.synthesiser(dataset, known, rng)
        shared = int(BITS - np.unpackbits(found ^ everyone[place], axis=1).sum(axis=1).min())
        return ITSELF if shared == BITS else int(2 * shared > BITS)


@dataclass(frozen=True)
class VerifiedRows:
    """Synthetic rows that verify: from nothing (data) to the answer of the query, and how many of them are not copies.

    Parameters
    ----------
    signed, synthesiser, rows
        As for `RowAppearance`; the directory has messages of other people only.
    """

    signed: SignedRows
    synthesiser: RowSynthesiser
    rows: int

    def __post_init__(self) -> None:
        require(isinstance(self.rows, int) and self.rows >= 1, "a number of rows >= 1", self.rows)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n datasets; float64 of shape (n, 2): share of rows that verify, number of those that are no copies."""
        del data
        require_draws(n)
        return np.array([self._shares(rng) for _ in range(n)], dtype=np.float64)

    def _shares(self, rng: np.random.Generator) -> tuple[float, int]:
        dataset, known = _draw_rows(self.signed, self.rows, rng)
        others = replace(known, directory=self.signed.messages(self.rows, rng))
        found = self.synthesiser(dataset, others, rng)
        valid = verifies(known.public, found)
        copied = (found[:, None, :] == dataset).all(axis=2).any(axis=1)
        return float(valid.mean()), int((valid & ~copied).sum())


def _draw_rows(signed: SignedRows, count: int, rng: np.random.Generator) -> tuple[Bytes, PublicKnowledge]:
    """Draw a key and so many signed rows."""
    secret, messages = rng.bytes(_SECRET), signed.messages(count, rng)
    rows = sign(secret, messages)
    return rows, PublicKnowledge(messages, public_key(secret), secret if signed.published else None)


# --------------------------------------------------------------------------------------------- table


def _subsampling(base: RowAppearance) -> RowAppearance:
    return replace(base, synthesiser=SubsamplingSynthesiser(base.rows // 2))


def _small_set(base: RowAppearance) -> RowAppearance:
    # Arbitrary: of some rows two are often alike.
    return replace(base, signed=replace(base.signed, different=16))


def _publish_key(base: RowAppearance) -> RowAppearance:
    return replace(base, signed=replace(base.signed, published=True))


MUTANTS: dict[str, Mutant[RowAppearance]] = tabulate_mutants(
    Mutant(
        "subsampling_synthesiser",
        _subsampling,
        unbounded,
        "violation",
        "half of the rows: each appears with probability 1/2, and never where it is not in the data",
    ),
    Mutant(
        "small_message_set",
        _small_set,
        None,
        "benign",
        "16 different messages: a row that was replaced appears all the same, as somebody else's",
    ),
    Mutant(
        "deterministic_signature_with_published_key",
        _publish_key,
        None,
        "benign",
        "whoever knows a message signs it again, to the same row: rows appear that were never looked at",
    ),
)
