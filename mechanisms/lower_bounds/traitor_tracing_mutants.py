"""Mistakes in a traitor-tracing scheme, each with the box that makes use of it.

Source: catalogue 000_001_003, traitor_tracing_type2. The scheme keeps nothing private, so that no mutant has a level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mechanisms.base.mechanism import IntArray, Mutant, tabulate_mutants
from mechanisms.lower_bounds.code_mutants import UnpermutedColumns
from mechanisms.lower_bounds.traitor_tracing import KEY, BitEncryption, BoxTraced, Bytes, TraitorTracing


@dataclass(frozen=True)
class PositionNonces(BitEncryption):
    """The nonce is the place of the component: user and column, and the same in every broadcast."""

    def nonces(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Bytes:
        """Draw nothing."""
        del rng
        _, users, columns = shape
        places = np.empty((users, columns, 2), dtype=np.uint64)
        places[..., 0] = np.arange(users, dtype=np.uint64)[:, None]
        places[..., 1] = np.arange(columns, dtype=np.uint64)
        return np.broadcast_to(places.view(np.uint8), (*shape, KEY))


@dataclass(frozen=True)
class NoNonces(BitEncryption):
    """Encryption is deterministic: each user has one mask."""

    def nonces(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Bytes:
        """Draw nothing."""
        del rng
        return np.broadcast_to(np.uint8(0), (*shape, KEY))


@dataclass(frozen=True)
class KeysWithoutIndex(TraitorTracing):
    """Rows are keys without numbers: the component is taken by the place of the row in the dataset."""

    def components(self, users: IntArray) -> IntArray:
        """The first one for the first row, and so on: the wrong one for everybody behind the user who is missing."""
        return np.broadcast_to(np.arange(1, users.shape[1] + 1), users.shape)


@dataclass(frozen=True)
class OtherSchemeTwin:
    """Builds a `BoxTraced` whose base scheme is another one (for `Mutant.build`)."""

    scheme: type[BitEncryption]

    def __call__(self, base: BoxTraced) -> BoxTraced:
        """Return the mutant."""
        return replace(base, tracing=replace(base.tracing, scheme=self.scheme(base.tracing.scheme.pad)))


def _unindexed_tracing(base: BoxTraced) -> BoxTraced:
    return replace(base, tracing=KeysWithoutIndex(base.tracing.code, base.tracing.scheme))


def _in_order(base: BoxTraced) -> BoxTraced:
    code = base.tracing.code
    return replace(base, tracing=replace(base.tracing, code=UnpermutedColumns(code.users, code.block)))


MUTANTS: dict[str, Mutant[BoxTraced]] = tabulate_mutants(
    Mutant(
        "randomness_reused",
        OtherSchemeTwin(PositionNonces),
        None,
        "benign",
        "a nonce for each user and column: an earlier broadcast to the same keys gives the masks away, and pirates "
        "read, and frame, a user whose key they do not have",
    ),
    Mutant(
        "row_without_index",
        _unindexed_tracing,
        None,
        "benign",
        "a key without its user's number decrypts the component at the row's place: with the first user missing every "
        "row decrypts noise, the box does not decode, and nobody is traced",
    ),
    Mutant(
        "components_in_fixed_order",
        _in_order,
        None,
        "benign",
        "columns are sent in the order of the blocks, which pirates then know",
    ),
    Mutant(
        "deterministic_base_scheme",
        OtherSchemeTwin(NoNonces),
        None,
        "benign",
        "zeros for a user all look alike, and his codeword is read off one of block 0",
    ),
)
