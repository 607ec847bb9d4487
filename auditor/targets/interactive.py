"""Interactive mechanisms and analysts: what a mechanism that answers queries offers, and who asks it.

An interactive mechanism promises that the *transcript* of every analyst satisfies its guarantee, whatever the analyst
asks next in view of past answers. `auditor.targets.transcripts.Dialogue` puts a mechanism and one analyst together;
strategies are in `auditor.targets.analysts`. Here is what the two must offer.

Everything is batched over trials. A query is an index into the mechanism's public pool of queries: coordinates of a
vector query for sparse vector, rows of a query matrix for multiplicative weights, pairs (user, randomiser) in a fixed
enumeration for a local protocol. The pool need not be stored; a mechanism may compute what index i asks. One call of
`Session.ask` asks every trial one query, and different trials may ask different ones.

Only integers, and answers that are plain arrays, pass between the two sides, so a session can be served by another
process: opened with the data, n and a seed; asked with an integer or a list of n; closed.

Source: the game between a mechanism and an adaptive adversary, Dwork and Roth (2014), section 3.5.2; catalogue 004,
sections 0.3, 0.4 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.errors import StrategyError

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
#: One query for all trials, or one for each: indices into the mechanism's pool, or `SKIP`.
Queries: TypeAlias = int | IntArray
#: A value that an answer can be compared with.
Symbol: TypeAlias = int | float | str

#: In the place of a query: this trial asks nothing in this round. No index of a pool is negative.
SKIP = -1


class Session(Protocol):
    """n parallel runs of an interactive mechanism.

    They are on one dataset; a session serves one dialogue and is not used again.

    The runs are independent given the data: each has state and noise of its own. A session may also have a method
    ``close()``, which `auditor.targets.transcripts.Dialogue` calls when it has ended, however it ends, and an attribute
    ``mixed``: if true, floats in some rounds and objects in others are answers of one type.
    """

    @property
    def silence(self) -> Symbol:
        """Public symbol in the place of an answer.

        The run has halted, or was not asked; it is never an ordinary answer.
        """
        ...

    def ask(self, queries: Queries, /) -> NDArray[Any]:
        """Ask every trial one query.

        Parameters
        ----------
        queries : int, or ndarray of shape (n,), int64
            Index of the query that all trials ask, or of each trial's. `SKIP` asks nothing: the run's state stays.

        Returns
        -------
        ndarray of shape (n,) or (n, d)
            Answers, of one shape and type in all rounds; `silence` where the run had halted before, and where nothing
            was asked. The answer that makes a run halt is still an answer.
        """
        ...


class Interactive(Protocol):
    """A mechanism that answers queries."""

    def start(self, data: Any, n: int, rng: np.random.Generator, /) -> Session:
        """Begin ``n`` independent runs on ``data``.

        All randomness of the session comes from ``rng``.

        Parameters
        ----------
        data : dataset
            What the runs are on.
        n : int
            Number of runs, at least 1.
        rng : numpy Generator
            All randomness of the session.
        """
        ...


class Branches(Protocol):
    """All possible answers of a session, for exact distributions.

    A branch is one sequence of past answers. It begins with a single one, without answers. For mechanisms whose
    answers are numbers of a finite set.
    """

    @property
    def silence(self) -> Symbol:
        """As in `Session`."""
        ...

    def ask(self, queries: IntArray, /) -> tuple[IntArray, NDArray[Any]]:
        """Branch on each answer that is possible to the queries.

        Parameters
        ----------
        queries : ndarray of shape (branches,), int64
            Query of each branch, or `SKIP`.

        Returns
        -------
        parents, answers : ndarrays of shape (new branches,)
            Index of the branch that each new one continues, and its answer; `silence` as in `Session.ask`.
        """
        ...

    def mass(self) -> FloatArray:
        """Probability of each branch's answers, shape (branches,).

        Its queries are taken as asked.
        """
        ...


class Branching(Interactive, Protocol):
    """An interactive mechanism whose transcripts have a known distribution."""

    def branches(self, data: Any, rounds: int, /) -> Branches:
        """Begin the tree of answers on ``data``, for at most ``rounds`` queries.

        Parameters
        ----------
        data : dataset
            What the runs are on.
        rounds : int
            Queries at most.
        """
        ...


@dataclass(frozen=True, eq=False)
class History:
    """Queries and answers of n trials after t rounds.

    It holds what an analyst sees, and its coins; its arrays cannot be written to.

    Parameters
    ----------
    asked : ndarray of shape (n, t), int64
        Queries; `SKIP` where none was asked.
    answers : ndarray of shape (n, t) or (n, t, d)
        Their answers, the mechanism's `silence` where there is none. Shape (n, t) as long as nothing has been asked.
    silence : int, float or str
        See `Session.silence`.
    coins : ndarray of shape (n, c)
        The analyst's own randomness, uniform on [0, 1), the same in all rounds.
    """

    asked: IntArray
    answers: NDArray[Any]
    silence: Symbol
    coins: FloatArray

    def __post_init__(self) -> None:
        for name in ("asked", "answers", "coins"):
            array = getattr(self, name).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n(self) -> int:
        """Number of trials."""
        return int(self.asked.shape[0])

    @property
    def rounds(self) -> int:
        """Number of rounds so far, t."""
        return int(self.asked.shape[1])

    def said(self, symbol: Symbol) -> BoolArray:
        """Where the answer was a symbol, shape (n, t).

        An answer of d numbers, if all of them are the symbol.
        """
        return match_symbol(self.answers, symbol)

    def halted(self) -> BoolArray:
        """Trials that have asked and got `silence`, shape (n,)."""
        return np.asarray(((self.asked != SKIP) & self.said(self.silence)).any(axis=1))

    def trials(self, chosen: IntArray | BoolArray) -> History:
        """Return the history of some trials."""
        return History(self.asked[chosen], self.answers[chosen], self.silence, self.coins[chosen])


class Analyst(Protocol):
    """A public strategy that chooses the next query.

    It depends on past answers and on coins of the analyst.

    Row i of what it returns depends on row i of the history alone. It is fixed before the audit and never sees the
    data, but may be written for one pair of datasets.
    """

    @property
    def rounds(self) -> int:
        """Most queries that it asks in a trial, at least 1."""
        ...

    @property
    def adaptive(self) -> bool:
        """Whether queries depend on answers or coins.

        Then they are part of the transcript.
        """
        ...

    @property
    def coins(self) -> int:
        """Number of uniform variates that a trial needs.

        0 for a deterministic strategy.
        """
        ...

    def __call__(self, history: History, /) -> Queries:
        """Return the next query: one for all trials, or shape (n,), with `SKIP` for none."""
        ...


def match_symbol(answers: NDArray[Any], symbol: Symbol) -> BoolArray:
    """Where answers are a symbol; NaN equals NaN.

    From shape (n, t) or (n, t, d) to (n, t).

    An answer of d numbers is the symbol if all d are.

    Parameters
    ----------
    answers : ndarray of shape (n, t) or (n, t, d)
        Answers of n trials in t rounds.
    symbol : int, float or str
        See `Session.silence`.

    Returns
    -------
    ndarray of shape (n, t), bool
        True where the answer is the symbol.
    """
    same = np.asarray(answers != answers if symbol != symbol else answers == symbol, dtype=np.bool_)
    return np.asarray(same.all(axis=2)) if same.ndim == 3 else same


def pool_indices(queries: Queries, n: int, pool: int) -> IntArray:
    """Queries of a session, checked: one a trial, inside the pool.

    Parameters
    ----------
    queries : int, or ndarray of shape (n,)
        What `Session.ask` was given.
    n, pool : int
        Numbers of trials and of queries in the pool.

    Returns
    -------
    ndarray of shape (n,), int64
        Indices from 0 to ``pool - 1``, or `SKIP`.

    Raises
    ------
    StrategyError
        If an index is outside of the pool, or there are not n. It is a ValueError.
    """
    indices = broadcast_queries(queries, n)
    if indices is None:
        raise StrategyError(f"an analyst asks what is no query: expected one query or {n} of them, got {queries!r}")
    outside = indices[(indices < SKIP) | (indices >= pool)]
    if outside.size:
        raise StrategyError(
            f"an analyst asks what is not in the pool: expected queries from 0 to {pool - 1}, or {SKIP}, "
            f"got {int(outside[0])}"
        )
    return indices


def broadcast_queries(queries: object, n: int) -> IntArray | None:
    """Queries of all n trials, or None.

    None if they are no integers, or not of n trials.

    Parameters
    ----------
    queries : object
        What `Session.ask` was given.
    n : int
        Number of trials.

    Returns
    -------
    ndarray of shape (n,), int64, or None
        The query of each trial.
    """
    if type(queries) is int:  # the usual case, and many calls are for few trials
        return np.full(n, queries, dtype=np.int64)
    array = np.asarray(queries)
    if array.dtype.kind not in "iu" or array.shape not in ((), (n,)):
        return None
    return np.broadcast_to(array, (n,)).astype(np.int64)
