"""MASKED-PARITY, and the game of a learner and an oracle.

A concept has a parity r of d bits and a mask bit a. On points (x, i, b), x of d bits, i one of d indices and b a bit,
its label is ``(-1)^(r.x + a)`` where b = 0 and ``(-1)^(r_i)`` where b = 1; examples are uniform. The half with b = 1
gives r away, and whoever knows r needs one more query for a (`masked_parity_learner`); but that query
depends on r, and without it a can only be found by queries that hit r by luck (`masked_parity_nonadaptive`).

A concept is coded as the integer ``r + 2^d a``; bit j of r is r_j, j = 0, ..., d - 1. The document has r_1, ..., r_d
and d a power of two, so that i has log d bits; any d does if i is uniform on d values. Labels are +1 and -1. Values of
queries are 0 and 1, as in the document's learner (its oracle's definition has +1 and -1; that doubles tolerances).

Source: document 002, section 5.3 (Proposition 5.18, Theorem 5.16(1)); catalogue 002, masked_parity_adaptive_sq.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.mechanism import FloatArray, IntArray, require, require_draws
from mechanisms.statistical_queries.lazy_oracles import DecomposedQueries, LazyOracle, parity_signs
from mechanisms.statistical_queries.sq_oracles import StatisticalQueryOracle

#: A hypothesis takes 2 d + 1 bits of an int64.
_MOST_BITS = 30

# ---------------------------------------------------------------------------------- the class


def split(codes: IntArray, d: int) -> tuple[IntArray, IntArray]:
    """Return r and the sign ``(-1)^a`` of concepts; ValueError if a code is not in [0, 2^(d+1))."""
    require(1 <= d <= _MOST_BITS, f"1 to {_MOST_BITS} bits", d)
    known = np.asarray(codes, dtype=np.int64)
    require(bool(np.all((known >= 0) & (known < 2 << d))), f"codes of concepts in [0, {2 << d})", codes)
    return np.asarray(known & ((1 << d) - 1)), np.asarray(1 - 2 * (known >> d))


def all_concepts(d: int) -> IntArray:
    """Codes of all 2^(d+1) concepts."""
    return np.arange(2 << d, dtype=np.int64)


def labels(codes: IntArray, d: int) -> NDArray[np.int8]:
    """Labels of concepts on all points; int8 of shape (concepts, 2, d, 2^d), axes b, i and x."""
    r, sign = split(codes, d)
    parity = (sign[:, None] * parity_signs(r[:, None], np.arange(1 << d))).astype(np.int8)
    bits = parity_signs(r[:, None], 1 << np.arange(d)).astype(np.int8)
    shape = (len(r), d, 1 << d)
    return np.stack([np.broadcast_to(parity[:, None, :], shape), np.broadcast_to(bits[:, :, None], shape)], axis=1)


def hypothesis(bits: IntArray, parity: IntArray, mask: IntArray, d: int) -> IntArray:
    """Code of hypotheses: ``(-1)^(bits_i)`` where b = 1, ``(-1)^(parity.x + mask)`` where b = 0.

    The concept of r and a is the hypothesis with r for both and a for the mask.
    """
    return np.asarray(bits + (parity << d) + (mask << 2 * d))


def errors(codes: IntArray, learned: IntArray, d: int) -> FloatArray:
    """Part of the points that hypotheses label differently from concepts; shape (runs,).

    Two parities differ on half of the points with b = 0 unless they are the same one.
    """
    r, sign = split(codes, d)
    low = (1 << d) - 1
    bits, parity, mask = learned & low, (learned >> d) & low, learned >> 2 * d
    on_bits = np.bitwise_count(bits ^ r) / (2 * d)
    on_parity = np.where(parity != r, 0.25, np.where(1 - 2 * mask != sign, 0.5, 0.0))
    return np.asarray(on_bits + on_parity, dtype=np.float64)


# ----------------------------------------------------------------------------------- the game


@dataclass(frozen=True, eq=False)
class BlockQueries:
    """Queries of one block, for all runs.

    Parameters
    ----------
    queries : DecomposedQueries
        Lists of t queries.
    which : ndarray of shape (runs,)
        The list that each run asks.
    tolerances : ndarray of shape (t,)
        Their tolerances.
    """

    queries: DecomposedQueries
    which: IntArray
    tolerances: FloatArray

    def digest(self) -> str:
        """SHA-256 of what is asked in each run: what a learner may not change once it has committed to it."""
        parts = (self.queries.constant, self.queries.hidden, self.queries.open)
        used, of_run = np.unique(self.which, return_inverse=True)
        # By content: neither the order of the lists nor those that no run asks are part of it.
        lists = [hashlib.sha256(b"".join(part[k].tobytes() for part in parts)).digest() for k in used]
        told = hashlib.sha256(self.tolerances.tobytes())
        told.update(np.array(lists, dtype="S32")[of_run].tobytes())
        return told.hexdigest()


class BlockAnswerer(Protocol):
    """Answers the queries of a block for each run's target."""

    def __call__(self, asked: BlockQueries, block: int, codes: IntArray, rng: np.random.Generator, /) -> FloatArray:
        """Return answers of shape (runs, t)."""
        ...


class MaskedParityLearner(Protocol):
    """Asks its queries in blocks, and learns a concept from the answers."""

    @property
    def d(self) -> int:
        """Bits of r."""
        ...

    @property
    def blocks(self) -> int:
        """How many blocks it asks."""
        ...

    def ask(self, block: int, answers: tuple[FloatArray, ...], runs: int, /) -> BlockQueries:
        """Queries of a block, for the answers to all blocks before it; or for none, where nothing is known yet."""
        ...

    def learn(self, answers: tuple[FloatArray, ...], /) -> IntArray:
        """Codes of hypotheses, shape (runs,)."""
        ...


@dataclass(frozen=True)
class FaithfulAnswerer:
    """Answers through an oracle that sees expectations only; one oracle a block."""

    oracles: tuple[StatisticalQueryOracle, ...]

    def __call__(self, asked: BlockQueries, block: int, codes: IntArray, rng: np.random.Generator) -> FloatArray:
        """Answers of shape (runs, t)."""
        means = asked.queries.means(asked.which, *split(codes, asked.queries.d))
        return self.oracles[block](means, np.broadcast_to(asked.tolerances, means.shape), rng)


@dataclass(frozen=True)
class LazyAnswerer:
    """Answers through a lazy oracle, to which the mask is the secret."""

    oracle: LazyOracle

    def __call__(self, asked: BlockQueries, block: int, codes: IntArray, rng: np.random.Generator) -> FloatArray:
        """Answers of shape (runs, t)."""
        del block, rng
        return self.oracle(asked.queries, asked.which, asked.tolerances, *split(codes, asked.queries.d))


@dataclass(frozen=True, eq=False)
class MaskedParityGameResult:
    """What came of a game: hypotheses of shape (runs,), and what was asked.

    ``rounds`` counts blocks whose queries were not fixed before the first answer, and the first one.
    """

    learned: IntArray
    rounds: int
    queries: int
    least_tolerance: float


def play(
    learner: MaskedParityLearner,
    answerer: BlockAnswerer,
    codes: IntArray,
    rng: np.random.Generator,
    *,
    frozen: bool = False,
) -> MaskedParityGameResult:
    """Run a learner against the targets of `codes`, one run for each.

    Parameters
    ----------
    learner, answerer
        Who asks, and who answers.
    codes : ndarray of shape (runs,)
        Targets.
    rng : Generator
        For the answers.
    frozen : bool, default False
        The learner claims to be nonadaptive: all of its blocks are asked for before the first answer, and only their
        digests are kept. What it asks later has to be the same.

    Raises
    ------
    ValueError
        If a frozen learner asks something else after it has seen answers.
    """
    runs = len(codes)
    committed = [learner.ask(block, (), runs).digest() for block in range(learner.blocks)]
    answers: tuple[FloatArray, ...] = ()
    rounds, queries, least = 1, 0, np.inf
    for block in range(learner.blocks):
        asked = learner.ask(block, answers, runs)
        digest = asked.digest()
        if digest != committed[block]:
            rounds += 1
            require(not frozen, f"the queries of block {block} that were fixed, {committed[block][:12]}", digest[:12])
        queries, least = queries + len(asked.tolerances), min(least, float(asked.tolerances.min()))
        answers = (*answers, answerer(asked, block, codes, rng))
    return MaskedParityGameResult(learner.learn(answers), rounds, queries, least)


@dataclass(frozen=True)
class MaskedParityGame:
    """A learner against random targets; called with codes of concepts as ``(codes, n, rng)``.

    Each run has one of the concepts, drawn uniformly. Returns int64 of shape (n, 2): the concept and the hypothesis.

    Parameters
    ----------
    learner, answerer, frozen
        See `play`.
    """

    learner: MaskedParityLearner
    answerer: BlockAnswerer
    frozen: bool = False

    def __call__(self, data: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` runs."""
        require_draws(n)
        codes = np.asarray(data, dtype=np.int64)[rng.integers(0, len(data), n)]
        learned = play(self.learner, self.answerer, codes, rng, frozen=self.frozen).learned
        return np.stack([codes, learned], axis=1)


@dataclass(frozen=True)
class ErrorOfHypothesis:
    """Error of the hypotheses of a `MaskedParityGame`."""

    d: int

    def __call__(self, outputs: object) -> FloatArray:
        """Errors of n runs of shape (n, 2)."""
        found = np.asarray(outputs, dtype=np.int64)
        return errors(found[:, 0], found[:, 1], self.d)
