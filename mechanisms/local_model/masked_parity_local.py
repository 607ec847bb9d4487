"""MASKED-PARITY by local users in two rounds: each of the learner's queries is asked to users of its own.

A user holds a labelled example, and sends whether it is of the kind that the query counts, less 1/2, plus noise of
scale ``1 / epsilon``. Block j, for j = 0, ..., d - 1, is asked g_j, all at once; what the last block is asked depends
on the r that was found, so the protocol is interactive. A user is in one block and sends one message, whose level is
epsilon whatever it is asked: so is the transcript's.

Labelled data are int arrays of shape (rows, 2): the point (x, i, b) as ``x + 2^d (i + d b)``, and the label, +1 or -1.

Source: document 002, section 5.3.1 with Theorem 5.7; catalogue 002, masked_parity_interactive_local.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.base.noise import base_for, two_sided_geometric
from mechanisms.local_model.fresh_users import FreshUsers, users_needed
from mechanisms.local_model.masked_parity import FaithfulAnswerer
from mechanisms.local_model.masked_parity_learner import SECOND_THRESHOLD, SECOND_TOLERANCE, tolerance_of
from mechanisms.statistical_queries.lazy_oracles import parity_signs

# A message is 1/2 or -1/2 before its noise.
_HALF = 0.5
# The code of a point, x + 2^d (i + d b), has to fit in an int64.
_MOST_BITS = 48


def row(d: int, x: int, i: int, b: int, label: int) -> tuple[int, int]:
    """A labelled example as a row of the data; ValueError if it is none."""
    require(0 <= x < 1 << d and 0 <= i < d and b in (0, 1), f"a point with {d} bits", (x, i, b))
    require(label in (1, -1), "a label of +1 or -1", label)
    return x + (1 << d) * (i + d * b), label


def _points(rows: Dataset, d: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """x, i, b and label of every row."""
    data = np.asarray(rows, dtype=np.int64)
    require(data.ndim == 2 and data.shape[1] == 2, "rows of a point and a label, shape (rows, 2)", data.shape)
    code, label = data[:, 0], data[:, 1]
    require(bool(np.all((code >= 0) & (code < (2 * d) << d))), f"points in [0, {(2 * d) << d})", code)
    require(bool(np.all(np.abs(label) == 1)), "labels of +1 and -1", label)
    return code & ((1 << d) - 1), (code >> d) % d, (code >> d) // d, label


@dataclass(frozen=True)
class CountsBit:
    """The query g_j of round 1 about one user: 1/2 if i is j, b = 1 and the label is -1, else -1/2.

    Parameters
    ----------
    d : int
        Bits of r.
    j : int
        Which of them.
    """

    d: int
    j: int

    def __post_init__(self) -> None:
        require(1 <= self.d <= _MOST_BITS, f"1 to {_MOST_BITS} bits", self.d)
        require(0 <= self.j < self.d, f"an index of a bit below {self.d}", self.j)

    @property
    def bound(self) -> float:
        """Values are in [-1/2, 1/2]."""
        return _HALF

    def __call__(self, rows: Dataset) -> FloatArray:
        """Values of the rows, shape (rows,)."""
        _, i, b, label = _points(rows, self.d)
        return np.asarray(((i == self.j) & (b == 1) & (label == -1)) - _HALF, dtype=np.float64)


def counts_mismatch(rows: Dataset, parities: IntArray, d: int) -> FloatArray:
    """The query of round 2: 1/2 if b = 0 and the label is not ``(-1)^(r.x)``, else -1/2; shape (parities, rows)."""
    x, _, b, label = _points(rows, d)
    wrong = parity_signs(parities[:, None], x) != label
    return np.asarray((wrong & (b == 0)) - _HALF, dtype=np.float64)


@dataclass(frozen=True)
class CountsMismatch:
    """The query of round 2 about one user, for a given parity; see `counts_mismatch`.

    Parameters
    ----------
    d : int
        Bits of r.
    parity : int
        What round 1 found.
    """

    d: int
    parity: int

    def __post_init__(self) -> None:
        require(1 <= self.d <= _MOST_BITS, f"1 to {_MOST_BITS} bits", self.d)
        require(0 <= self.parity < 1 << self.d, f"a parity of {self.d} bits", self.parity)

    @property
    def bound(self) -> float:
        """Values are in [-1/2, 1/2]."""
        return _HALF

    def __call__(self, rows: Dataset) -> FloatArray:
        """Values of the rows, shape (rows,)."""
        return np.asarray(counts_mismatch(rows, np.array([self.parity]), self.d)[0])


@dataclass(frozen=True)
class TwoRoundTranscript:
    """All messages of a run, as the collector sees them.

    Parameters
    ----------
    d : int
        Bits of r.
    epsilon : float
        Claimed pure level, under replace-one.
    first, second : int
        Users a query in round 1 and in round 2. The data must have ``d first + second`` rows or more; rows beyond are
        not asked.
    step : float, default 2**-10
        Lattice step, a power of two, at most 1/2. A message moves by at most ``1 / step`` steps from one user to
        another, which costs exactly epsilon.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the data are short or hold what is no labelled example.
    """

    d: int
    epsilon: float
    first: int
    second: int
    step: float = 2.0**-10

    def __post_init__(self) -> None:
        require(1 <= self.d <= _MOST_BITS, f"1 to {_MOST_BITS} bits", self.d)
        require_positive("epsilon", self.epsilon)
        for users in (self.first, self.second):
            require(isinstance(users, (int, np.integer)) and users >= 1, "a number of users >= 1", users)
        require_positive("step", self.step)
        require(math.frexp(self.step)[0] == 0.5 and self.step <= _HALF, "a power of two, at most 1/2", self.step)

    @property
    def base(self) -> float:
        """Base of the integer noise of a message."""
        return base_for(self.epsilon, round(1.0 / self.step))

    @property
    def needed(self) -> int:
        """Rows that the data must have."""
        return self.d * self.first + self.second

    def parity(self, messages: FloatArray) -> IntArray:
        """What the messages of round 1, shape (n, d first), say of r; int64 of shape (n,)."""
        answers = _HALF + messages.reshape(len(messages), self.d, self.first).mean(axis=2)
        bits = (answers > 1 / (4 * self.d)).astype(np.int64)
        return np.asarray(bits @ (1 << np.arange(self.d)), dtype=np.int64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` transcripts; float64 of shape (n, users), multiples of the step, block after block."""
        require_draws(n)
        rows = np.asarray(data)
        require(len(rows) >= self.needed, f"at least {self.needed} rows", len(rows))
        one_round = self.d * self.first
        blocks = [CountsBit(self.d, j)(rows[j * self.first : (j + 1) * self.first]) for j in range(self.d)]
        noise = two_sided_geometric(self.base, (n, self.needed), rng) * self.step
        sent = np.concatenate(blocks) + noise[:, :one_round]
        parities, which = np.unique(self.parity(sent), return_inverse=True)
        last = counts_mismatch(rows[one_round : self.needed], parities, self.d)[which]
        return np.concatenate([sent, last + noise[:, one_round:]], axis=1)


# ------------------------------------------------------------------------ users from a distribution


def first_users(d: int, epsilon: float, beta: float) -> int:
    """Users a query of round 1 that the theorem asks for: tolerance 1/(4 d + 1), failure beta / (d + 1).

    ``16 ln(4 (d + 1) / beta) (4 d + 1)^2 / epsilon^2 (1 + epsilon / (4 (4 d + 1)))``, rounded up, where epsilon is at
    most 2.8. The document has O(.); the constant is the catalogue's.
    """
    return users_needed(epsilon, tolerance_of(d), beta / (d + 1), _HALF)


def second_users(d: int, epsilon: float, beta: float) -> int:
    """Users of round 2 that the theorem asks for: tolerance 1/5, failure beta / (d + 1)."""
    return users_needed(epsilon, SECOND_TOLERANCE, beta / (d + 1), _HALF)


def users_in_all(d: int, epsilon: float, beta: float) -> int:
    """Users of both rounds: of the order of ``d^3 ln(d / beta) / epsilon^2``."""
    return d * first_users(d, epsilon, beta) + second_users(d, epsilon, beta)


@dataclass(frozen=True)
class FreshTwoRounds:
    """What is learned from users that are drawn from the uniform distribution, labelled by a concept.

    The data are the concept, bits of shape (d + 1,): r, then a. Returns int64 of shape (n, d + 1), of the same kind.

    Parameters
    ----------
    epsilon : float
        Level of a message.
    first, second : int
        Users a query in round 1 and in round 2.
    step : float, default 2**-6
        Lattice step of the messages: coarser than where privacy is looked at, as sums hide it.

    Notes
    -----
    Nothing is drawn but the answers (`FreshUsers`). Query j of round 1 counts a user with probability ``r_j / (2 d)``;
    that of round 2 with probability a / 2 if r was found, else 1/4.
    """

    epsilon: float
    first: int
    second: int
    step: float = 2.0**-6

    def __call__(self, data: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` runs."""
        require_draws(n)
        target = np.asarray(data, dtype=np.int64)
        require(target.ndim == 1 and target.size >= 3 and bool(np.all((target == 0) | (target == 1))), "bits", target)
        r, a = target[:-1], int(target[-1])
        d = r.size
        round_1, round_2 = (FreshUsers(self.epsilon, users, 0.0, 1.0, self.step) for users in (self.first, self.second))
        bits = (round_1(np.broadcast_to(r / (2 * d), (n, d)), tolerance_of(d), rng) > 1 / (4 * d)).astype(np.int64)
        mean = np.where((bits == r).all(axis=1), a / 2, 0.25)
        mask = (round_2(mean, SECOND_TOLERANCE, rng) > SECOND_THRESHOLD).astype(np.int64)
        return np.concatenate([bits, mask[:, None]], axis=1)


def fresh_oracles(epsilon: float, *users: int, step: float = 2.0**-6) -> FaithfulAnswerer:
    """Answers of blocks of so many fresh users a query, for the learners of `mechanisms.local_model.masked_parity`."""
    return FaithfulAnswerer(tuple(FreshUsers(epsilon, one, 0.0, 1.0, step) for one in users))


@dataclass(frozen=True, eq=False)
class ErrorOfBits:
    """Part of the points that a learned concept labels differently from a target, both as bits r and a."""

    target: IntArray

    def __call__(self, outputs: object) -> FloatArray:
        """Errors of n concepts of shape (n, d + 1)."""
        learned = np.asarray(outputs, dtype=np.int64)
        wrong = (learned[:, :-1] != self.target[:-1]).mean(axis=1)
        other_mask = np.where(learned[:, -1] != self.target[-1], 0.5, 0.0)
        return np.asarray(wrong / 2 + np.where(wrong > 0, 0.25, other_mask), dtype=np.float64)


def half_ones(d: int) -> IntArray:
    """The concept whose r has ones and zeros in turn, and a = 1; int64 of shape (d + 1,)."""
    return np.append(np.arange(d, dtype=np.int64) % 2, 1)
