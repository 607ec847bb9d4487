"""Tracing: a lower bound on the level by accusing people whose rows may or may not be among the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from auditor.audits.adversaries.base import FloatArray, Stack
from auditor.audits.adversaries.fingerprints import Bits, Code, Codebook, IntArray
from auditor.audits.adversaries.releases import Unit, check_unit, release_tables
from auditor.datasets import Pair
from auditor.targets import Mechanism

#: Entries of the tables that are made at once: 8 MB of them, and of what is computed with them some times as much.
_ENTRIES = 1 << 23


@dataclass(frozen=True)
class Tracing:
    """Accusation of a user by a fingerprinting code's tracer.

    It is a mechanism on data that tell whether the user's row is included.

    Parameters
    ----------
    target : Mechanism
        Releases the column means, or counts, of a table of zeros and ones, shape (rows, columns), int64. If it has a
        method ``each(stack, rng)``, that is asked for one release for each of several tables.
    code : Code
        A code for one user more than the tables have rows.
    unit : {"counts", "means"}
        What is released.
    difference : bool
        A second number is given out, `Codebook.statistic` of the answers: for additive noise and the code of Boneh and
        Shaw it is all that the answers say about the user, where an accusation is only one bit of it.

    Raises
    ------
    SpecificationError
        If the unit is unknown.

    Notes
    -----
    In each trial a code is drawn and two users, i0 and i*. The table has the codewords of all users but i0; on the
    data (0,) the row of i* is overwritten by the codeword of i0, so that exactly one row differs. Answers above 1/2
    are ones of the word. Whom the word accuses is a function of the answers and of the code; it counts whether the word
    is feasible or not.

    Valid because: given the code, i0 and i*, the two tables are neighbours (one row is replaced), so that an event has
    probabilities p_c and q_c with p_c <= cap(q_c), in both orders. These are drawn in the same way on both sides, and
    the cap is concave, so that their averages have p = E[p_c] <= E[cap(q_c)] <= cap(q). So this is an ordinary
    mechanism on an ordinary pair, and its level a lower bound on that of the target, where neighbours are tables in
    which one row is replaced. Source: 003, Theorem 5.2.2; A10.
    """

    target: Mechanism
    code: Code
    unit: Unit = "means"
    difference: bool = False

    name: ClassVar[str] = "tracing"

    def __post_init__(self) -> None:
        check_unit(self.unit)

    @property
    def rows(self) -> int:
        """Rows of a table."""
        return self.code.users - 1

    def pair(self) -> Pair:
        """The pair of this mechanism's datasets."""
        return Pair(np.array([1]), np.array([0]), "a user's own codeword against that of another user in his row")

    def with_difference(self) -> Tracing:
        """The same, with the second number."""
        return replace(self, difference=True)

    def __str__(self) -> str:
        """What it does, in a few words."""
        return f"the tracer of {self.code} accuses a user"

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> IntArray | FloatArray:
        """Draw n trials: 1 for an accusation, int64 of shape (n,); with the difference, float64 of shape (n, 2)."""
        present = int(np.asarray(data).reshape(-1)[0])
        most = max(1, _ENTRIES // (self.code.users * self.code.length))
        return np.concatenate([self._trials(present, min(most, n - done), rng) for done in range(0, n, most)])

    def _trials(self, present: int, n: int, rng: np.random.Generator) -> IntArray | FloatArray:
        book, (dropped, watched) = self.code.generate(n, rng), self.two_users(n, rng)
        answers = self.released(book.rows(self.members(dropped, watched, present)), rng)
        accused = self.accused(book, answers, dropped, watched, present).astype(np.int64)
        if not self.difference:
            return accused
        return np.column_stack([accused.astype(np.float64), book.statistic(answers, watched)])

    def two_users(self, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw i0 and i* of each trial, two different users.

        Parameters
        ----------
        n : int
            Number of trials.
        rng : numpy.random.Generator
            Of the adversary.

        Returns
        -------
        tuple of ndarray of int, shape (n,)
            From 1; i0 is left out of the table, i* is watched.
        """
        dropped = rng.integers(1, self.code.users + 1, n)
        watched = rng.integers(1, self.code.users, n)
        return dropped, watched + (watched >= dropped)

    def members(self, dropped: IntArray, watched: IntArray, present: int) -> IntArray:
        """Users whose codewords are the rows of each table, shape (trials, rows).

        Parameters
        ----------
        dropped, watched : ndarray of int, shape (trials,)
            i0 and i* of each trial, see `two_users`.
        present : int
            1 if i* is in the tables; 0 if i0 is in its place.
        """
        users = np.broadcast_to(np.arange(1, self.code.users + 1), (len(dropped), self.code.users))
        rows = users[users != dropped[:, None]].reshape(len(dropped), self.rows)
        return rows if present else np.where(rows == watched[:, None], dropped[:, None], rows)

    def accused(self, book: Codebook, answers: FloatArray, dropped: IntArray, watched: IntArray, present: int) -> Bits:
        """Whether i* is accused, shape (trials,).

        Parameters
        ----------
        book : Codebook
            Codes of the trials.
        answers : ndarray of shape (trials, columns)
            Means of the columns, as they were released.
        dropped, watched : ndarray of int, shape (trials,)
            i0, which the tracer must not know, and i* of each trial.
        present : int
            1 if i* is in the tables, else 0; the tracer must not know it either.
        """
        del dropped, present  # what the tracer must not know
        return book.accuses(answers > 0.5, watched)

    def released(self, stack: Stack, rng: np.random.Generator) -> FloatArray:
        """Means that the target releases of each table, shape (trials, columns).

        Parameters
        ----------
        stack : ndarray of int8, shape (trials, rows, columns)
            Tables of zeros and ones.
        rng : numpy.random.Generator
            Of the target.

        Raises
        ------
        TargetError
            If it releases something else.
        """
        found = release_tables(self.target, stack, rng)
        means = found / stack.shape[1] if self.unit == "counts" else found
        if np.isfinite(means).all():
            return means
        # A function of the output: what is no number stands for one that says nothing.
        return np.nan_to_num(means, nan=0.5, posinf=1.0, neginf=0.0)
