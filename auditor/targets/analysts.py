"""Analysts for interactive mechanisms: the worst cases of the literature, searches, and whatever one writes oneself.

Which analyst for what (catalogue 004 sections 0.3, 0.4, 2 and 3; 002 local protocols; 003 multiplicative weights):

* the worst pair inside an epoch of sparse vector, many cheap queries and then a costly one: `Phases`, with ``ends`` the
  costly answer; for the whole run one epoch for each costly answer. Multiplicative weights is attacked in the same way.
* a threshold that is never redrawn, or a run that never stops: `Phases` with one long epoch and ``ends`` None.
* a query at the threshold until the mechanism halts (number of costly answers, leak of a query whose answer flips,
  repeated use of one user's data in a local protocol): `Repeat`.
* a fixed stream: `FixedList`.
* adaptive use as it is advertised: `ThresholdSeeker`.
* patterns that nobody thought of: `RandomQueries`; several strategies at once: `Mixture`.
* the query on which a public state is most wrong, which needs that state: `Adaptive`.

All are functions of the history without state, and vectorised over trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditor.errors import SpecificationError, StrategyError
from auditor.targets.interactive import SKIP, Analyst, BoolArray, History, IntArray, Queries, Symbol


@dataclass(frozen=True)
class FixedList:
    """Asks the same queries in every trial, whatever the answers.

    Parameters
    ----------
    queries : sequence of int
        Indices into the pool, at least one.
    """

    queries: Sequence[int]
    adaptive: ClassVar[bool] = False
    coins: ClassVar[int] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", _indices("queries", self.queries))

    @property
    def rounds(self) -> int:
        """Length of the list."""
        return len(self.queries)

    def __call__(self, history: History) -> Queries:
        """Return the next one of the list."""
        return self.queries[history.rounds]


@dataclass(frozen=True)
class Repeat:
    """Asks one query again and again.

    It ends with an answer, or when the mechanism halts.

    Parameters
    ----------
    query : int
        Index into the pool.
    most : int
        Most times that it is asked.
    until : int, float, str or None
        Answer after which it asks no more; None: only a mechanism that halts stops it.
    """

    query: int
    most: int
    until: Symbol | None = None
    adaptive: ClassVar[bool] = True
    coins: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _require_index("query", self.query)
        _require_count("most", self.most)

    @property
    def rounds(self) -> int:
        """``most``."""
        return self.most

    def __call__(self, history: History) -> Queries:
        """Return the query, or nothing where it has what it wants."""
        done = history.halted()
        if self.until is not None:
            done |= history.said(self.until).any(axis=1)
        return _unless_done(done, self.query)


@dataclass(frozen=True)
class Phases:
    """Cheap queries, then a costly one, in each epoch.

    It is the worst case of sparse vector.

    Parameters
    ----------
    cheap, costly : int
        Indices into the pool. Their answers move against each other between the neighbours.
    length : int
        Cheap queries in an epoch.
    patience : int
        Most times that the costly query is asked in an epoch; then the cheap ones begin again.
    epochs : int
        Number of epochs: costly answers that the mechanism gives before it halts.
    ends : int, float, str or None
        The costly answer, which ends an epoch whichever query gets it. None: no answer ends one.

    Notes
    -----
    ``rounds`` is ``epochs * (length + patience)``. It asks no more after `epochs` costly answers, or when the mechanism
    has halted. Source: catalogue 004, section 2 (worst pair inside an epoch; the whole run).
    """

    cheap: int
    costly: int
    length: int
    patience: int = 1
    epochs: int = 1
    ends: Symbol | None = 1
    adaptive: ClassVar[bool] = True
    coins: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _require_index("cheap", self.cheap)
        _require_index("costly", self.costly)
        for name in ("length", "patience", "epochs"):
            _require_count(name, getattr(self, name))

    @property
    def rounds(self) -> int:
        """See the notes."""
        return self.epochs * (self.length + self.patience)

    def __call__(self, history: History) -> Queries:
        """Return the query that is due in each trial's epoch."""
        done, begun = history.halted(), np.zeros(history.n, dtype=np.int64)
        if self.ends is not None and history.rounds:
            ended = history.said(self.ends)
            done |= ended.sum(axis=1) >= self.epochs
            # The epoch began after the last answer that ended one.
            last = history.rounds - np.argmax(ended[:, ::-1], axis=1)
            begun = np.where(ended.any(axis=1), last, 0)
        place = (history.rounds - begun) % (self.length + self.patience)
        return _unless_done(done, np.where(place < self.length, self.cheap, self.costly))


@dataclass(frozen=True)
class ThresholdSeeker:
    """Bisects an ordered pool for the first answered query.

    Parameters
    ----------
    order : sequence of int
        Distinct indices into the pool, in an order in which the noiseless answers change once.
    symbol : int, float or str, default 1
        The answer that is sought; all others count as "further on".

    Notes
    -----
    ``rounds`` is ``ceil(log2(len(order) + 1))``. It asks no more when it has found the place or the mechanism has
    halted. Answers are noisy, so the place may be wrong; the transcript is what counts.
    """

    order: Sequence[int]
    symbol: Symbol = 1
    adaptive: ClassVar[bool] = True
    coins: ClassVar[int] = 0

    def __post_init__(self) -> None:
        order = _indices("order", self.order)
        if len(set(order)) != len(order):
            raise SpecificationError(f"order must be of distinct queries, got {order!r}")
        object.__setattr__(self, "order", order)

    @property
    def rounds(self) -> int:
        """See the notes."""
        return math.ceil(math.log2(len(self.order) + 1))

    def __call__(self, history: History) -> Queries:
        """Return the query in the middle of what is left of the pool."""
        order = np.array(self.order, dtype=np.int64)
        place = np.full(order.max() + 1, -1, dtype=np.int64)
        place[order] = np.arange(order.size)
        found, answered = history.said(self.symbol), ~history.said(history.silence)
        # The place is after every query that got another answer, and not after any that got the symbol.
        at = place[history.asked]
        low = np.max(np.where(answered & ~found, at + 1, 0), axis=1, initial=0)
        high = np.min(np.where(found, at, order.size), axis=1, initial=order.size)
        middle = np.minimum((low + high) // 2, order.size - 1)
        return _unless_done(history.halted() | (low >= high), order[middle])


@dataclass(frozen=True)
class RandomQueries:
    """Asks random queries of a pool, with replacement.

    It ends when the mechanism halts.

    Parameters
    ----------
    pool : sequence of int
        Indices, each as likely as the others; one that repeats is likelier.
    most : int
        Number of queries.
    """

    pool: Sequence[int]
    most: int
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "pool", _indices("pool", self.pool))
        _require_count("most", self.most)

    @property
    def rounds(self) -> int:
        """``most``."""
        return self.most

    @property
    def coins(self) -> int:
        """One a query."""
        return self.most

    def __call__(self, history: History) -> Queries:
        """Return a query at random."""
        pool = np.array(self.pool, dtype=np.int64)
        return _unless_done(history.halted(), pool[_pick(history.coins[:, history.rounds], pool.size)])


@dataclass(frozen=True)
class Mixture:
    """Each trial is given to one of several analysts, all equally likely.

    Parameters
    ----------
    analysts : sequence of Analyst
        At least one. Those with fewer rounds than the others ask nothing in the rounds beyond.

    Notes
    -----
    The transcript does not say which analyst asked; the queries, which are part of it, may.
    """

    analysts: Sequence[Analyst]
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "analysts", tuple(self.analysts))
        if not self.analysts:
            raise SpecificationError("a mixture needs at least one analyst")

    @property
    def rounds(self) -> int:
        """Those of the longest."""
        return max(analyst.rounds for analyst in self.analysts)

    @property
    def coins(self) -> int:
        """One to choose, and those of the analyst that needs most."""
        return 1 + max(analyst.coins for analyst in self.analysts)

    def __call__(self, history: History) -> Queries:
        """Return what the chosen analysts ask."""
        chosen = _pick(history.coins[:, 0], len(self.analysts))
        queries = np.full(history.n, SKIP, dtype=np.int64)
        own = History(history.asked, history.answers, history.silence, history.coins[:, 1:])
        for k, analyst in enumerate(self.analysts):
            rows = chosen == k
            if history.rounds < analyst.rounds and rows.any():
                queries[rows] = analyst(own.trials(rows))
        return queries


@dataclass(frozen=True)
class Adaptive:
    """A strategy of one's own.

    Parameters
    ----------
    function : callable
        From a `History` to queries: an integer, or an array of shape (n,), `SKIP` for none. Row i may depend on row i
        of the history alone, and on nothing that is not public.
    most : int
        Rounds.
    needs : int, default 0
        Coins that it needs in a trial.

    Notes
    -----
    In every round the first and the last trial are put to the function by themselves too. A function that answers
    otherwise then looks at other trials, which would make draws dependent; it is refused with a `StrategyError`. The
    check can miss such a function, and the audit's test of independence can too.
    """

    function: Callable[[History], Queries]
    most: int
    needs: int = 0
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SpecificationError(f"function must be a function of a history, got {self.function!r}")
        _require_count("most", self.most)
        if isinstance(self.needs, bool) or not isinstance(self.needs, int | np.integer) or self.needs < 0:
            raise SpecificationError(f"needs must be an integer of at least 0, got {self.needs!r}")

    def __repr__(self) -> str:
        # A function's own representation is its address, which differs between processes.
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"Adaptive({name}, most={self.most!r}, needs={self.needs!r})"

    @property
    def rounds(self) -> int:
        """``most``."""
        return self.most

    @property
    def coins(self) -> int:
        """``needs``."""
        return self.needs

    def __call__(self, history: History) -> Queries:
        """Return what the function says."""
        queries = self.function(history)
        # The last one too: a function that goes by the first trial, or asks one query in all, gives it away there.
        for which, k in (("first", 0), ("last", -1))[: history.n]:
            alone = np.ravel(self.function(history.trials(np.array([k])))).tolist()
            together = np.ravel(queries)[[k]].tolist() if np.size(queries) else []
            if together != alone:
                raise StrategyError(
                    f"a trial's query must depend on that trial alone: the {which} of {history.n} trials asks "
                    f"{together}, by itself it asks {alone}",
                    error="",  # it shows in calls for several draws alone, and is no outcome of one
                )
        return queries


def _unless_done(done: BoolArray, queries: int | IntArray) -> IntArray:
    return np.where(done, SKIP, queries).astype(np.int64)


def _pick(coins: np.ndarray[tuple[int, ...], np.dtype[np.float64]], size: int) -> IntArray:
    """Indices below ``size`` from uniform numbers below 1, equally likely within 2^-53 times the size."""
    return np.minimum((coins * size).astype(np.int64), size - 1)


def _indices(name: str, values: Sequence[int]) -> tuple[int, ...]:
    listed = tuple(values)
    if not listed:
        raise SpecificationError(f"{name} must hold at least one query, got {values!r}")
    for value in listed:
        _require_index(name, value)
    return tuple(int(value) for value in listed)


def _require_index(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise SpecificationError(f"{name}: an index into the pool is an integer of at least 0, got {value!r}")


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SpecificationError(f"{name} must be an integer of at least 1, got {value!r}")
