"""Reconstruction: secret bits from noisy answers to random queries about them.

Source: 003, section 4.1: Definition 4.1.1, Theorem 4.1.6, and the last paragraph; Dinur and Nissim (2003); Dwork,
McSherry and Talwar (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.audits.adversaries.base import Adversary, Ask, FloatArray, Stack
from auditor.audits.adversaries.bounds import bound_guessing, bound_reconstruction
from auditor.audits.adversaries.decoding import Decoder, LeastAbsolute
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee

Bits: TypeAlias = NDArray[np.int8]

#: Entries of tables that are made at once, 64 MB of bytes: memory does not grow with the number of games.
_BLOCK = 1 << 26
#: A rounding needs no smaller duality gap, see `LeastAbsolute`: half of the steps, and with uniform, Laplace and normal
#: noise not more bits are wrong than at a gap of 1e-6.
_ROUNDED = LeastAbsolute(tolerance=1e-2)


@dataclass(frozen=True)
class Reconstruction(Adversary):
    """Ask random subset queries about secret bits, decode the answers, and round.

    Person j has the row ``x_j Q[:, j]`` with a uniform bit x_j, so that the column counts are Q x: a bit is one row.

    Parameters
    ----------
    rows : int
        Number of persons, n, each with a secret bit.
    queries : int
        Number of columns, k: each is the sum over a subset of the persons, every one in it with probability 1/2.
    wrong : int or None
        None: the score is the part of the bits that is right. A number: it is 1 if at most so many are wrong, else 0.
        The second certifies far higher levels against what answers nearly exactly, up to ``ln(n / (wrong + 1))`` and
        beyond, and nothing where the reconstruction is a little better than guessing.
    decoder : Decoder
        From queries and answers to an estimate of the bits; see `auditor.audits.adversaries.decoding`.

    Raises
    ------
    SpecificationError
        If a number is out of range.
    """

    rows: int = 64
    queries: int = 256
    wrong: int | None = None
    decoder: Decoder = _ROUNDED

    name: ClassVar[str] = "reconstruction"

    def __post_init__(self) -> None:
        for name in ("rows", "queries"):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= 1):
                raise SpecificationError(f"{name} must be a positive whole number, got {value!r}")
        if self.wrong is not None and not (isinstance(self.wrong, int) and 0 <= self.wrong < self.rows):
            raise SpecificationError(f"wrong must be from 0 to {self.rows - 1}, or None, got {self.wrong!r}")

    @property
    def bits(self) -> int:
        """Number of bits, of which the score is the right part."""
        return self.rows if self.wrong is None else 0

    def questions(self, n: int, rng: np.random.Generator) -> Bits:
        """Queries of n games, zeros and ones of shape (n, queries, rows).

        Parameters
        ----------
        n : int
            Number of games.
        rng : numpy.random.Generator
            Of the adversary.
        """
        return rng.integers(0, 2, (n, self.queries, self.rows), dtype=np.int8)

    def released(self, questions: Bits, secret: Bits, ask: Ask) -> tuple[FloatArray, FloatArray]:
        """Rows of the linear programme, with their answers.

        Shapes (n, k, rows) and (n, k).

        Parameters
        ----------
        questions : ndarray of shape (n, k, rows)
            From `questions`.
        secret : ndarray of shape (n, rows)
            Secret bits of each game.
        ask : callable
            From tables to releases, see `Adversary.play`.
        """
        return questions.astype(np.float64), ask(build_tables(questions, secret))

    def rounded(self, estimates: FloatArray) -> Bits:
        """Bits from estimates in [0, 1], shape (n, rows)."""
        return (estimates > 0.5).astype(np.int8)

    def play(self, ask: Ask, n: int, rng: np.random.Generator) -> FloatArray:
        """Scores of n games, shape (n,).

        See `Adversary.play`.
        """
        size, scores = max(1, _BLOCK // (self.rows * self.queries)), []
        for first in range(0, n, size):
            secret, guess = self._games(ask, min(size, n - first), rng)
            right = (guess == secret).mean(axis=1)
            scores.append(right if self.wrong is None else (guess != secret).sum(axis=1) <= self.wrong)
        return np.concatenate(scores).astype(np.float64)

    def _games(self, ask: Ask, n: int, rng: np.random.Generator) -> tuple[Bits, Bits]:
        """Secret and guessed bits of n games."""
        secret = rng.integers(0, 2, (n, self.rows), dtype=np.int8)
        queries, answers = self.released(self.questions(n, rng), secret, ask)
        return secret, self.rounded(self.decoder(queries, answers))

    def most(self, guarantee: Guarantee, level: float) -> float:
        """Largest expected score.

        See `Adversary.most`.

        Notes
        -----
        Valid because: the bits are uniform, independent of one another and of the queries, and each decides one row; a
        guess is a function of the answers and the queries. So `bound_guessing` bounds the probability that any one of
        them is right, and the mean of those; `bound_reconstruction` bounds that of at most ``wrong`` errors.
        """
        if self.wrong is None:
            return bound_guessing(guarantee, level)
        return bound_reconstruction(guarantee, level, self.rows, self.wrong)

    def __str__(self) -> str:
        aim = "" if self.wrong is None else f" but for {self.wrong}" if self.wrong else " without an error"
        return f"{self.name} of {self.rows} bits{aim} from {self.queries} random counts, by {self.decoder}"


@dataclass(frozen=True)
class Decoding(Reconstruction):
    """Reconstruction from queries with signs.

    Each is the count of a random subset minus that of the other persons.

    For targets that answer a part of the queries arbitrarily badly: rows of signs have no direction in common, and the
    l1 programme recovers the bits whatever the bad answers are, as long as they are fewer than 0.239 of them. A bad
    column spoils one query, so that less than 0.119 of the columns may be bad in the worst case.

    Parameters
    ----------
    queries : int
        Number of queries with signs, each of which takes two columns.
    rows, wrong, decoder
        As for `Reconstruction`.
    """

    name: ClassVar[str] = "decoding"

    def released(self, questions: Bits, secret: Bits, ask: Ask) -> tuple[FloatArray, FloatArray]:
        """Rows of signs, and the differences of the answers to both halves.

        See `Reconstruction.released`.
        """
        answers = ask(build_tables(np.concatenate([questions, 1 - questions], axis=1), secret))
        signs = 2.0 * questions.astype(np.float64) - 1.0
        return signs, answers[:, : self.queries] - answers[:, self.queries :]


def build_tables(questions: Bits, secret: Bits) -> Stack:
    """Tables whose column counts are the answers.

    Shape (n, rows, k) from (n, k, rows) and (n, rows).

    Parameters
    ----------
    questions : ndarray of shape (n, k, rows)
        Queries of each game, zeros and ones.
    secret : ndarray of shape (n, rows)
        Secret bits of each game.
    """
    return secret[:, :, None] * questions.transpose(0, 2, 1)
