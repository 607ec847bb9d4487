"""Reconstructions that are wrong: what an attack must not leave out, and one that cheats.

A mutant of an attack says nothing about the privacy of its target; it learns less than the attack would, or learns what
nobody told it. Source: catalogue 000_001_003, dinur_nissim_random_queries and robust_lp_decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import cast

import numpy as np

from auditor.audits.adversaries import Ask, Game, Stack
from auditor.audits.adversaries.decoding import LeastAbsolute, LeastSquares
from auditor.audits.adversaries.reconstruction import Bits, Reconstruction
from mechanisms.base.mechanism import FloatArray, Mutant, Twin, tabulate_mutants
from mechanisms.lower_bounds.noisy_counts import SpoiledQueries

#: A box that holds nothing back: a thousand times as wide as the bits need.
_WIDE = LeastAbsolute(-1000.0, 1001.0)
#: Where the mutant rounds; any number but 1/2 is wrong, this one for nearly every vertex of the programme.
_HIGH = 0.9


@dataclass(frozen=True)
class RoundedAtHighThreshold(Reconstruction):
    """An estimate has to exceed 0.9 to become a one."""

    def rounded(self, estimates: FloatArray) -> Bits:
        """Too few ones."""
        return (estimates > _HIGH).astype(np.int8)


@dataclass(frozen=True)
class RepeatedQueries(Reconstruction):
    """Half as many different queries as bits, each asked as often as there is room for it."""

    def questions(self, n: int, rng: np.random.Generator) -> Bits:
        """As many queries, of rank rows / 2 at most."""
        different = super().questions(n, rng)[:, : self.rows // 2]
        again: Bits = np.take(different, np.arange(self.queries) % different.shape[1], axis=1)
        return again


@dataclass(frozen=True)
class DecoderHandedData(Reconstruction):
    """Decodes the true counts: it is handed the data, and the target may answer what it likes."""

    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> FloatArray:
        """Scores of n games."""

        def peek(stack: Stack) -> FloatArray:
            ask(stack)
            return np.asarray(stack.sum(axis=1), dtype=np.float64)

        return super().play(peek, n, rng)


@dataclass(frozen=True)
class UncentredRows(SpoiledQueries):
    """Twice the answers to subset queries are decoded with rows of signs, as if bits were on average 0."""

    def centre(self, total: FloatArray) -> FloatArray:
        """Nothing is taken off."""
        return np.zeros_like(total)


@dataclass(frozen=True)
class _BuildGame:
    """Builds the game in which another attack has the place of the reference (for `Mutant.build`)."""

    attack: Callable[[Reconstruction], Reconstruction]

    def __call__(self, base: Game) -> Game:
        """The same target against the mutant."""
        return replace(base, adversary=self.attack(cast(Reconstruction, base.adversary)))


@dataclass(frozen=True)
class _AttackOf:
    """Builds an attack of a class with the parameters of the reference."""

    cls: type[Reconstruction]

    def __call__(self, base: Reconstruction) -> Reconstruction:
        return self.cls(**{field.name: getattr(base, field.name) for field in fields(base)})


def _without_box(base: Reconstruction) -> Reconstruction:
    return replace(base, decoder=_WIDE)


def _by_least_squares(base: SpoiledQueries) -> SpoiledQueries:
    return replace(base, decoder=LeastSquares())


MUTANTS: dict[str, Mutant[Game]] = tabulate_mutants(
    Mutant(
        "no_box_constraint",
        _BuildGame(_without_box),
        None,
        "benign",
        "z not confined to [0, 1]^n: as many queries as bits no longer suffice",
    ),
    Mutant("rounding_threshold", _BuildGame(_AttackOf(RoundedAtHighThreshold)), None, "benign", "rounded at 0.9"),
    Mutant(
        "repeated_query",
        _BuildGame(_AttackOf(RepeatedQueries)),
        None,
        "benign",
        "n/2 different queries, each asked several times: rank is lost",
    ),
    Mutant(
        "attack_handed_x",
        _BuildGame(_AttackOf(DecoderHandedData)),
        None,
        "benign",
        "the true counts are decoded: more right than any guess from private answers can be",
    ),
)

ROBUST_MUTANTS: dict[str, Mutant[SpoiledQueries]] = tabulate_mutants(
    Mutant(
        "l2_for_l1",
        _by_least_squares,
        None,
        "benign",
        "least squares: spoiled answers count by the square of their size",
    ),
    Mutant(
        "uncentred_rows", Twin(UncentredRows), None, "benign", "the answer to the query of all bits is not taken off"
    ),
)
