"""Parities of t attributes as two-way products of product attributes.

For t even, every set A of t/2 attributes gives a product attribute ``v_A``, and the parity of a set S of t attributes
is ``v_A v_B`` for any split of S into A and B: one of the second moments of ``D = C(d, t/2)`` attributes. For t odd a
constant attribute is added, and every set holds it: t + 1 attributes of d + 1.

Source: document 003, Lecture 7, end; catalogue 000_001_003, tway_to_2way_reduction. The notes give d^2 coordinates for
every t, which is right for t = 4; ``d^(t/2)`` is meant.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, Mutant, Twin, require, tabulate_mutants
from mechanisms.query_release.second_moments import MomentNormOfDimension, NoisyMoments, SecondMoments, SignedHistogram


@dataclass(frozen=True)
class ProductMoments(SecondMoments):
    """Second moments of the products of t/2 attributes.

    Parameters
    ----------
    dimension, cuts, relation
        See `mechanisms.query_release.second_moments.SecondMoments`.
    order : int, default 4
        t, from 2 to d.
    """

    order: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        require(2 <= self.order <= self.dimension, f"an order from 2 to {self.dimension}", self.order)

    @cached_property
    def subsets(self) -> IntArray:
        """Sets A of attributes, int64 of shape (D, ceil(t/2)); d stands for the constant attribute."""
        padded = self.dimension + self.order % 2
        chosen = itertools.combinations(range(padded), (self.order + 1) // 2)
        return np.array(list(chosen), dtype=np.int64)

    @property
    def width(self) -> int:
        """D: ``C(d, t/2)``, and ``C(d + 1, (t + 1)/2)`` for t odd."""
        return math.comb(self.dimension + self.order % 2, (self.order + 1) // 2)

    def attributes(self, rows: FloatArray) -> FloatArray:
        """Product attributes of rows of signs, shape (people, D)."""
        padded = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        return np.asarray(self.combined(padded[:, self.subsets]), dtype=np.float64)

    def combined(self, signs: FloatArray) -> FloatArray:
        """Attribute of each set from the signs in it, shape (people, D, t/2): their product."""
        return np.asarray(signs.prod(axis=2))

    @cached_property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets S, in lexicographic order."""
        return tuple(itertools.combinations(range(self.dimension), self.order))

    @cached_property
    def splits(self) -> IntArray:
        """Where each S stands among the D^2 moments, for each of its splits: int64 of shape (C(d, t), splits)."""
        place = {tuple(subset): k for k, subset in enumerate(self.subsets.tolist())}
        rows = []
        for chosen in self.sets:
            whole = (*chosen, self.dimension) if self.order % 2 else chosen
            halves = itertools.combinations(whole, len(whole) // 2)
            rows.append([place[a] * self.width + place[tuple(sorted({*whole} - {*a}))] for a in halves])
        return np.array(rows, dtype=np.int64)

    def parities(self, moments: FloatArray) -> FloatArray:
        """Parities from second moments, shape (..., D^2) to (..., C(d, t)): the mean over all splits."""
        return np.asarray(moments[..., self.splits].mean(axis=-1))

    def true_parities(self, data: Dataset) -> FloatArray:
        """Sum over people of the product of the signs in S, for each S, straight from the rows; shape (C(d, t),)."""
        rows = self.signs(data)
        products = rows[:, np.array(self.sets, dtype=np.int64)].prod(axis=2)
        return np.asarray(data.counts @ products if isinstance(data, SignedHistogram) else products.sum(axis=0))


# ------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class SmallestSign(ProductMoments):
    """The smallest sign of a set for the product of its signs: a conjunction. Parities are wrong without noise."""

    def combined(self, signs: FloatArray) -> FloatArray:
        """Attribute of each set from the signs in it: the smallest."""
        return np.asarray(signs.min(axis=2))


MUTANTS: dict[str, Mutant[NoisyMoments]] = tabulate_mutants(
    Mutant(
        "R_d_kept", Twin(MomentNormOfDimension), None, "violation", "R = d for D attributes: mu is D/d times larger"
    ),
)
