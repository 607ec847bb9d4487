"""Answers that are not private: column counts with too little noise, and answers of which a part is spoiled.

Those that are private are in `additive_noise.column_counts`. Source: 003, section 4.1; catalogue 000_001_003,
dinur_nissim_random_queries and robust_lp_decoding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.audits.adversaries.decoding import Decoder, LeastAbsolute, Rows, random_rows
from mechanisms.base.mechanism import FloatArray, IntArray, require, require_draws

Stack: TypeAlias = NDArray[np.int8]
Corruption: TypeAlias = Literal["worst", "random"]
Kind: TypeAlias = Literal["sign", "gaussian", "subset", "centred"]

#: The l1 programme, solved to a relative duality gap of 1e-6: near the threshold both sides differ by little.
_EXACT = LeastAbsolute()


@dataclass(frozen=True)
class PerturbedColumnSums(ABC):
    """The sum of each column of a table of zeros and ones, shape (rows, d), with an error of its own."""

    @abstractmethod
    def noisy(self, counts: IntArray, rows: int, rng: np.random.Generator) -> FloatArray:
        """Counts with fresh errors, shape (trials, d)."""

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n releases of one table; float64 of shape (n, d)."""
        require_draws(n)
        table = np.asarray(data)
        require(table.ndim == 2 and bool(np.isin(table, (0, 1)).all()), "a table of zeros and ones", data)
        return self.noisy(np.tile(table.sum(axis=0, dtype=np.int64), (n, 1)), len(table), rng)

    def each(self, stack: Stack, rng: np.random.Generator) -> FloatArray:
        """One release of each of several tables, shape (trials, rows, d); float64 of shape (trials, d)."""
        return self.noisy(stack.sum(axis=1, dtype=np.int64), stack.shape[1], rng)


@dataclass(frozen=True)
class UniformCounts(PerturbedColumnSums):
    """Noise that is uniform on (-error, error): what the theorems of section 4.1 allow, and private at no level.

    Parameters
    ----------
    error : float
        At least 0; 0 for exact counts.
    """

    error: float

    def __post_init__(self) -> None:
        require(0 <= self.error < math.inf, "a finite error >= 0", self.error)

    def noisy(self, counts: IntArray, rows: int, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 - see the base
        """Counts with uniform noise."""
        return counts + self.error * rng.uniform(-1.0, 1.0, counts.shape)


@dataclass(frozen=True)
class SpoiledCounts(PerturbedColumnSums):
    """Exact counts, of which a part, drawn anew in each release, is replaced by anything from 0 to the number of rows.

    Parameters
    ----------
    part : float
        Part of the columns, in [0, 1], rounded down to a whole number of them.
    """

    part: float

    def __post_init__(self) -> None:
        require(0 <= self.part <= 1, "a part in [0, 1]", self.part)

    def noisy(self, counts: IntArray, rows: int, rng: np.random.Generator) -> FloatArray:
        """Counts and arbitrary numbers."""
        spoiled = _largest_scores(rng.random(counts.shape), self.part)
        return np.where(spoiled, rng.integers(0, rows + 1, counts.shape), counts).astype(np.float64)


def _largest_scores(scores: FloatArray, part: float) -> NDArray[np.bool_]:
    """The part of each row with the largest scores, as a mask."""
    count = math.floor(part * scores.shape[1])
    chosen = np.zeros(scores.shape, dtype=np.bool_)
    if count:
        np.put_along_axis(chosen, np.argpartition(-scores, count - 1, axis=1)[:, :count], values=True, axis=1)
    return chosen


# ------------------------------------------------------------------------------ arbitrary answers


@dataclass(frozen=True)
class SpoiledQueries:
    """Decode uniform bits from random queries of which a part is answered as if every bit were the other one.

    Parameters
    ----------
    rows : int
        Number of secret bits, n.
    queries : int
        Number of queries, k.
    part : float
        Part of the answers that is spoiled, in [0, 1], rounded down to a whole number of them.
    corruption : {"worst", "random"}
        Which: those on which the alternative differs most from the truth, or any.
    error : float
        Noise of all answers, uniform on (-error, error).
    decoder : Decoder
        The attack.
    kind : {"sign", "gaussian", "subset", "centred"}
        Entries of the queries. "centred": subset queries q, made into rows of signs 2q - 1 by the answer to the query
        of all bits, ``2 <q, x> - <1, x>``.

    Notes
    -----
    With z = alternative - x the l1 programme prefers the alternative to x, without noise, exactly where the |<q, z>| of
    the spoiled answers have the larger sum. So for this alternative nothing is worse than to spoil the largest ones.
    """

    rows: int = 48
    queries: int = 768
    part: float = 0.2
    corruption: Corruption = "worst"
    error: float = 0.0
    decoder: Decoder = _EXACT
    kind: Kind = "sign"

    def __post_init__(self) -> None:
        for name in ("rows", "queries"):
            require(getattr(self, name) >= 1, f"{name} >= 1", getattr(self, name))
        require(0 <= self.part <= 1, "a part in [0, 1]", self.part)
        require(self.corruption in get_args(Corruption), f"corruption among {get_args(Corruption)}", self.corruption)
        require(self.kind in get_args(Kind), f"kind among {get_args(Kind)}", self.kind)
        require(0 <= self.error < math.inf, "a finite error >= 0", self.error)

    def centre(self, total: FloatArray) -> FloatArray:
        """What is taken from twice an answer of a subset query: the answer to the query of all bits."""
        return total

    def __call__(self, data: object, n: int, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 - no data
        """Part of the bits that is wrong in each of n games, shape (n,); there are no data."""
        require_draws(n)
        rows: Rows = "subset" if self.kind == "centred" else self.kind
        queries = random_rows(rows, (n, self.queries, self.rows), rng)
        secret = rng.integers(0, 2, (n, self.rows)).astype(np.float64)
        truth, other = _products(queries, secret), _products(queries, 1.0 - secret)
        scores = np.abs(other - truth) if self.corruption == "worst" else rng.random(truth.shape)
        answers = self._noisy_answers(np.where(_largest_scores(scores, self.part), other, truth), rng)
        if self.kind == "centred":
            total = self._noisy_answers(secret.sum(axis=1, keepdims=True), rng)
            queries, answers = 2.0 * queries - 1.0, 2.0 * answers - self.centre(total)
        wrong = (self.decoder(queries, answers) > 0.5) != (secret > 0.5)
        return np.asarray(wrong.mean(axis=1), dtype=np.float64)

    def _noisy_answers(self, answers: FloatArray, rng: np.random.Generator) -> FloatArray:
        return answers + self.error * rng.uniform(-1.0, 1.0, answers.shape)


def _products(queries: FloatArray, bits: FloatArray) -> FloatArray:
    return np.asarray((queries @ bits[:, :, None])[:, :, 0])
