"""Packing: many datasets far from one another, and one release that says which of them it was made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditor.audits.adversaries.base import Adversary, Ask, FloatArray
from auditor.audits.adversaries.bounds import bound_packing
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee


@dataclass(frozen=True)
class Packing(Adversary):
    """Packing of tables of identical rows.

    There are ``2^columns``; a game is won if every count is off by less than half.

    Parameters
    ----------
    rows : int, default 100
        Rows of a table, all the same one; two tables are that many replacements apart.
    columns : int, default 100
        Columns; the row is drawn uniformly.

    Notes
    -----
    Pure privacy allows a win with probability at most ``e^(epsilon rows) / 2^columns``. Noise of the order of
    ``sqrt(columns)``, enough for approximate privacy, wins nearly always: then no epsilon below
    ``ln 2 * columns / rows`` is true. Source: 003, Lemma 4.3.1 and the instance below it.
    """

    rows: int = 100
    columns: int = 100

    name: ClassVar[str] = "packing"

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= 1):
                raise SpecificationError(f"{name} must be an integer of at least 1, got {value!r}")

    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> FloatArray:
        """Scores of n games, 0 or 1, shape (n,).

        See `Adversary.play`.
        """
        rows = rng.integers(0, 2, (n, self.columns), dtype=np.int8)
        released = ask(np.broadcast_to(rows[:, None, :], (n, self.rows, self.columns)))
        return self.won(released, rows.astype(np.float64)).astype(np.float64)

    def won(self, released: FloatArray, rows: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Good releases for the tables of these rows.

        Releases have shape (n, columns); bool of shape (n,).

        Open balls: an answer of ``rows / 2`` is half-way between two tables, and good for neither.

        Parameters
        ----------
        released : ndarray of shape (n, columns)
            Column counts, as they were released.
        rows : ndarray of shape (n, columns)
            The row that each table repeats, zeros and ones.
        """
        return np.asarray(np.abs(released - self.rows * rows).max(axis=1) < 0.5 * self.rows)

    def most(self, guarantee: Guarantee, level: float) -> float:
        """Largest probability of a win that the level allows.

        See `Adversary.most`.

        Notes
        -----
        Valid because: counts of two of the tables differ by ``rows`` in some column, so no release is within less than
        ``rows / 2`` of both; each table becomes any other by replacing ``rows`` rows, one after the other; the rest is
        `auditor.audits.adversaries.bounds.bound_packing`.
        """
        return bound_packing(guarantee, level, self.columns * math.log(2.0), self.rows)

    def __str__(self) -> str:
        return f"which of 2^{self.columns} tables of {self.rows} identical rows"
