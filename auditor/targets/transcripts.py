"""An interactive mechanism and an analyst, put together: an ordinary target whose output is the transcript.

So whatever audits targets ``(data, n, rng) -> outputs`` audits dialogues, and events, power and reports are the same.

Source: the game between a mechanism and an adaptive adversary, Dwork and Roth (2014), section 3.5.2; catalogue 004,
section 0.4 for exact distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.errors import SpecificationError, StrategyError, TargetError, TargetRaised
from auditor.privacy.laws import FiniteLaw
from auditor.targets.interactive import (
    SKIP,
    Analyst,
    BoolArray,
    Branches,
    Branching,
    History,
    IntArray,
    Interactive,
    Session,
    Symbol,
    broadcast_queries,
    match_symbol,
)
from auditor.targets.raises import ask_strategy


@dataclass(frozen=True)
class Dialogue:
    """An interactive mechanism and an analyst, as a target.

    Its output is the transcript.

    Parameters
    ----------
    mechanism : Interactive
        What is audited.
    analyst : Analyst
        Who asks; at least one query in each call.

    Raises
    ------
    SpecificationError
        If the mechanism has no ``start``, or the analyst's ``rounds`` or ``coins`` are no numbers of rounds and coins.

    Notes
    -----
    Valid because: an interactive mechanism satisfies a guarantee if, by definition, the transcript distribution of
    *every* analyst satisfies it on all neighbouring datasets. So evidence against the guarantee for this analyst's
    transcripts is evidence against the mechanism; "nothing found" is about this analyst only. (A mechanism that claims
    its guarantee for fixed lists of queries is not refuted by an adaptive analyst.) Events on transcripts are
    post-processing.

    The analyst's coins are fine. They are drawn before the first round, independently of the data and of the
    mechanism's noise. Given their value r the analyst is deterministic, so for every event, also one that looks at
    the queries, the claim says p_r <= cap(q_r). Hence p = E[p_r] <= E[cap(q_r)] <= cap(E[q_r]) = cap(q), because a cap
    is concave.

    Draws are independent if the session's trials are, since each row of an analyst's queries depends on that trial
    alone.
    """

    mechanism: Interactive
    analyst: Analyst

    def __post_init__(self) -> None:
        if not callable(getattr(self.mechanism, "start", None)):
            raise SpecificationError(f"an interactive mechanism has start(data, n, rng), got {self.mechanism!r}")
        for name, least in (("rounds", 1), ("coins", 0)):
            value = getattr(self.analyst, name, None)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise SpecificationError(f"an analyst's {name} must be an integer of at least {least}, got {value!r}")

    @property
    def parts(self) -> tuple[object, ...]:
        """Parts of the target.

        The mechanism, and the analyst or the function that the analyst wraps.
        """
        return self.mechanism, getattr(self.analyst, "function", self.analyst)

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw ``n`` transcripts on ``data``; see `transcripts`."""
        session = self.mechanism.start(data, n, rng)
        close = getattr(session, "close", None) or (lambda: None)
        try:
            rows = transcripts(session, self.analyst, n, rng)
        except BaseException:
            _close_after_error(close)
            raise
        close()
        return rows


def _close_after_error(close: Callable[[], object]) -> None:
    """Close a session; what its code raises does not hide what was raised before, which may tell datasets apart."""
    try:
        close()
    except TargetRaised:
        return
    except TargetError:  # the target's process has died, which is never an output
        raise
    except Exception:  # noqa: BLE001 - a session of this process raises whatever it likes
        return


@dataclass(frozen=True)
class ExactDialogue(Dialogue):
    """A dialogue whose transcripts have a known distribution.

    The analyst is deterministic, and the rounds are few.

    Parameters
    ----------
    mechanism : Branching
        What is audited, with the tree of its answers.
    analyst : Analyst
        Who asks; without coins.

    Raises
    ------
    SpecificationError
        If the mechanism has no ``branches``, or the analyst has coins.
    """

    mechanism: Branching

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(getattr(self.mechanism, "branches", None)):
            raise SpecificationError(f"an exact distribution needs a mechanism with branches, got {self.mechanism!r}")
        _require_no_coins(self.analyst)

    def law(self, data: Any) -> FiniteLaw:
        """Exact distribution of the transcripts on ``data``; see `transcript_law`."""
        return transcript_law(self.mechanism.branches(data, self.analyst.rounds), self.analyst)


def transcripts(session: Session, analyst: Analyst, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Let an analyst ask a session until its rounds are over.

    Parameters
    ----------
    session : Session
        Fresh, with n trials.
    analyst : Analyst
        Who asks.
    n : int
        Number of trials.
    rng : numpy.random.Generator
        The analyst's coins come from a child of it, so that they move no draw of the mechanism.

    Returns
    -------
    ndarray of shape (n, rounds * d), or (n, rounds * d + rounds) for an adaptive analyst
        The answers in the order in which they were given (d numbers each), with `Session.silence` where there is none,
        and then the queries of an adaptive analyst, with `SKIP` where there is none.

    Raises
    ------
    TargetError
        If the session answers another number of trials than it was asked, changes the shape or the type of its
        answers, or answers a trial that asked nothing.
    StrategyError
        If the analyst raises, returns what are no queries, or never asks.

    Notes
    -----
    Valid because: an analyst that raises on some histories is a function of the transcript, and so is what it raised.
    So that may count as an outcome like those that the mechanism's own code raises; the message alone tells them apart.
    """
    coins = rng.spawn(1)[0].random((n, analyst.coins)) if analyst.coins else np.empty((n, 0))
    asked = np.full((n, analyst.rounds), SKIP, dtype=np.int64)
    answers: NDArray[Any] | None = None
    silence, all_ask = session.silence, np.zeros(n, dtype=np.bool_)
    for t in range(analyst.rounds):
        seen = np.full((n, t), silence) if answers is None else answers[:, :t]
        history = History(asked[:, :t], seen, silence, coins)
        queries = ask_strategy(f"the analyst {_name_analyst(analyst)}", partial(analyst, history))
        if type(queries) is int and queries > SKIP:  # one query in all trials, the usual case
            asked[:, t], quiet = queries, all_ask
        else:
            asked[:, t] = _checked_queries(queries, n, analyst)
            quiet = asked[:, t] == SKIP
            if quiet.all():
                continue
        given = _checked_answers(session.ask(queries), quiet, silence)
        if answers is None:
            if given.dtype.kind in "biu" and not _fits_dtype(silence, given.dtype):
                raise TargetError(f"answers of type {given.dtype} cannot hold the symbol for silence, {silence!r}")
            # Round by round for integers, see `concatenate_batches`.
            order: Literal["C", "F"] = "F" if given.dtype.kind in "biu" else "C"
            answers = np.full((n, analyst.rounds, *given.shape[1:]), silence, dtype=given.dtype, order=order)
        if getattr(session, "mixed", False) and {given.dtype.kind, answers.dtype.kind} == {"f", "O"}:
            given, answers = given.astype(object), answers.astype(object)
        if given.dtype != answers.dtype or given.shape[1:] != answers.shape[2:]:
            before = f"{answers.dtype} of shape {(n, *answers.shape[2:])}"
            raise TargetError(f"answers were {before}, in round {t + 1} they are {given.dtype} of shape {given.shape}")
        answers[:, t] = given
    if answers is None:
        raise StrategyError(f"the analyst asked nothing in {n} trials: {analyst!r}")
    return _join_transcripts(answers, asked, analyst)


def transcript_law(branches: Branches, analyst: Analyst) -> FiniteLaw:
    """Exact distribution of a deterministic analyst's transcripts.

    By recursion over its tree.

    Parameters
    ----------
    branches : Branches
        Fresh, of the mechanism on one dataset.
    analyst : Analyst
        Without coins.

    Returns
    -------
    FiniteLaw
        On tuples, each a row of what `transcripts` returns.

    Raises
    ------
    SpecificationError
        If the analyst has coins, or returns what are no queries.

    Notes
    -----
    Valid because: a deterministic analyst's query is a function of past answers, so the probability of a transcript is
    the product of the conditional probabilities of its answers, which is what `Branches.mass` gives, and two branches
    differ in some answer.
    """
    _require_no_coins(analyst)
    asked = np.empty((1, 0), dtype=np.int64)
    answers: NDArray[Any] = np.empty((1, 0), dtype=np.int8)
    for _ in range(analyst.rounds):
        n = asked.shape[0]
        history = History(asked, answers, branches.silence, np.empty((n, 0)))
        queries = _checked_queries(analyst(history), n, analyst)
        parents, given = branches.ask(queries)
        asked = np.column_stack([asked[parents], queries[parents]])
        answers = np.column_stack([answers[parents], given])
    rows = _join_transcripts(answers, asked, analyst).tolist()
    return FiniteLaw(tuple(tuple(row) for row in rows), branches.mass())


def _require_no_coins(analyst: Analyst) -> None:
    if analyst.coins:
        raise SpecificationError(f"an exact distribution needs an analyst without coins, got {analyst!r}")


def _checked_queries(queries: object, n: int, analyst: Analyst) -> IntArray:
    indices = broadcast_queries(queries, n)
    if indices is None or bool((indices < SKIP).any()):
        raise StrategyError(
            f"expected one query or {n} of them, integers of at least {SKIP}, got {queries!r} from {analyst!r}",
            error="",
        )
    return indices


def _name_analyst(analyst: Analyst) -> str:
    """Name of an analyst, or of the function that it wraps."""
    named = getattr(analyst, "function", analyst)
    return str(getattr(named, "__qualname__", type(named).__qualname__))


def _checked_answers(given: object, quiet: BoolArray, silence: Symbol) -> NDArray[Any]:
    n = quiet.size
    if not isinstance(given, np.ndarray) or given.ndim not in (1, 2) or given.shape[0] != n:
        found = f"an array of shape {given.shape}" if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
        raise TargetError(f"a query was put to {n} trials, expected answers of shape ({n},) or ({n}, d), got {found}")
    # Strings of different lengths are of different types; as objects they are not.
    answers: NDArray[Any] = given if given.dtype.kind in "biuf" else given.astype(object)
    if quiet.any():
        spoke = ~match_symbol(answers[quiet, None], silence)
        if spoke.any():
            raise TargetError(f"{int(spoke.sum())} of {n} trials asked nothing and were answered")
    return answers


def _fits_dtype(symbol: Symbol, dtype: np.dtype[Any]) -> bool:
    if not isinstance(symbol, int | np.integer) or dtype.kind == "b":
        return False
    return bool(np.iinfo(dtype).min <= int(symbol) <= np.iinfo(dtype).max)


def _join_transcripts(answers: NDArray[Any], asked: IntArray, analyst: Analyst) -> NDArray[Any]:
    """One row a transcript: answers, then the queries of an adaptive analyst."""
    rows = answers.reshape(answers.shape[0], -1)
    if not analyst.adaptive:
        return rows
    # Next to integers, numpy makes floats of uint64 and texts of everything else.
    safe = rows.dtype.kind == "f" or np.can_cast(rows.dtype, np.int64)
    return np.concatenate([rows if safe else rows.astype(object), asked], axis=1)
