"""Interactive targets in a process of their own: sessions that are opened, asked and closed by lines of JSON.

=======  ======================================================  =============================================
message  form                                                    answer
=======  ======================================================  =============================================
open     ``{"id": 1, "open": {"data": ..., "n": 3, "seed": 7}}`` ``{"id": 1, "session": "s1", "silence": -1}``
ask      ``{"id": 2, "ask": {"session": "s1", "queries": 5}}``   ``{"id": 2, "answers": [0.5, -1, 2.25]}``
close    ``{"id": 3, "close": {"session": "s1"}}``               ``{"id": 3}``
=======  ======================================================  =============================================

A session is n independent runs of a mechanism; "silence" is the symbol of a run that has halted or was not asked.
"queries" is an index, which all runs ask, or a list of n of them, -1 for a run that asks nothing. An answer is a
number, a text, or a list of numbers. What an index asks, and how it all fits together: see
`auditor.targets.interactive`. Data, seeds and failures are those of `auditor.targets.protocol`; a target says
``"interactive": true`` in its hello.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.errors import TargetError
from auditor.targets.interactive import Queries, Symbol, broadcast_queries
from auditor.targets.outputs import EXACT
from auditor.targets.process import START, ProcessTarget
from auditor.targets.protocol import REQUEST, SEEDS, quote_unreadable, read_message
from auditor.targets.wire_format import data_text


class ProcessSessions:
    """An interactive mechanism that runs as a command; see `auditor.targets.interactive.Interactive`.

    A context manager; `close` ends the process.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; no shell reads them.
    limit : float
        Seconds that a message may take.
    cwd, env, start_limit
        See `ProcessTarget`.

    Raises
    ------
    SpecificationError
        As `ProcessTarget` does.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        limit: float = 60.0,
        cwd: str | Path | None = None,
        env: dict[str, str] | None = None,
        start_limit: float = START,
    ) -> None:
        self.process = ProcessTarget(command, limit=limit, cwd=cwd, env=env, start_limit=start_limit)

    def __repr__(self) -> str:
        return repr(self.process).replace("ProcessTarget", "ProcessSessions")

    @property
    def seeded(self) -> bool:
        """Whether the target states that seeds decide its answers."""
        return self.process.seeded

    def start(self, data: Any, n: int, rng: np.random.Generator) -> ProcessSession:
        """Begin ``n`` independent runs on ``data``.

        At most `REQUEST` of them are in one session of the target.

        Parameters
        ----------
        data : dataset
            What JSON can hold, see `auditor.targets.wire_format.data_text`.
        n : int
            Number of runs, at least 1.
        rng : numpy Generator
            Gives a seed to each session of the target.

        Raises
        ------
        TargetError
            If the target cannot be started, dies, is past its limit, or answers what cannot be read.
        """
        text = data_text(data)
        opened: list[tuple[str, int, Any]] = []
        try:
            for first in range(0, n, REQUEST):
                size, seed = min(REQUEST, n - first), int(rng.integers(SEEDS))
                answer, raw = _exchange_message(self.process, f'"open":{{"data":{text},"n":{size},"seed":{seed}}}')
                handle, silence = answer.get("session"), answer.get("silence")
                symbol = type(silence) in (str, float) or (type(silence) is int and abs(silence) <= EXACT)
                if type(handle) not in (str, int) or not symbol:
                    what = "the target did not open a session, with a name or a number, and a symbol for silence"
                    raise quote_unreadable(what, raw)
                opened.append((json.dumps(handle), size, silence))
        except TargetError:
            ProcessSession(self.process, opened).close()
            raise
        return ProcessSession(self.process, opened)

    def close(self) -> None:
        """End the process."""
        self.process.close()

    def __enter__(self) -> ProcessSessions:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class ProcessSession:
    """Runs of an interactive mechanism in another process; see `auditor.targets.interactive.Session`.

    Parameters
    ----------
    process : ProcessTarget
        Where they run.
    opened : list of (str, int, symbol)
        The target's sessions: the name as JSON, the number of runs, and the symbol for silence.

    Attributes
    ----------
    mixed : bool
        A round in which no run is answered with a text has float64, another one objects.
    """

    mixed: ClassVar[bool] = True

    def __init__(self, process: ProcessTarget, opened: list[tuple[str, int, Any]]) -> None:
        self._process, self._opened, self._start = process, opened, process.starts
        symbols = {repr(silence) for _, _, silence in opened}
        if len(symbols) > 1:
            raise TargetError("the target's sessions differ in their symbol for silence")

    @property
    def silence(self) -> Symbol:
        """Public symbol in the place of an answer.

        -1 in a session of no runs.
        """
        found: Symbol = self._opened[0][2] if self._opened else -1
        return found if isinstance(found, str) else float(found)  # as its answers are

    def ask(self, queries: Queries) -> NDArray[Any]:
        """Ask every run one query.

        Parameters
        ----------
        queries : int, or ndarray of shape (n,), int64
            Index of the query that all runs ask, or of each run's; `auditor.targets.interactive.SKIP` asks nothing.

        Returns
        -------
        ndarray of shape (n,) or (n, d)
            Numbers are float64 (also integers, which some languages do not tell from floats, and true and false). Where
            a run is answered with a text all are objects, and numbers floats.

        Raises
        ------
        ValueError
            If there are not n queries.
        TargetError
            If the process that held the session has ended, or answers what cannot be read.
        """
        n = sum(size for _, size, _ in self._opened)
        indices = broadcast_queries(queries, n)
        if indices is None:
            raise ValueError(f"expected one query or {n} of them, got {queries!r}")
        if not self._is_alive():
            raise TargetError("the process that held the session has ended")
        answers: list[Any] = []
        for handle, size, _ in self._opened:
            asked = indices[len(answers) : len(answers) + size]
            text = str(queries) if isinstance(queries, int) else json.dumps(asked.tolist())
            answer, raw = _exchange_message(self._process, f'"ask":{{"session":{handle},"queries":{text}}}')
            given = answer.get("answers")
            if not isinstance(given, list) or len(given) != size:
                raise quote_unreadable(f"{size} answers were asked for, the target did not give so many", raw)
            answers += given
        return _as_answers(answers)

    def _is_alive(self) -> bool:
        """Whether the process is the one that the session was opened in."""
        return self._process.running and self._process.starts == self._start

    def close(self) -> None:
        """End the runs, if their process has not ended."""
        opened, self._opened = self._opened, []
        for handle, _, _ in opened:
            if self._is_alive():
                _exchange_message(self._process, f'"close":{{"session":{handle}}}')


def _exchange_message(process: ProcessTarget, member: str) -> tuple[dict[str, Any], bytes]:
    """Send a message and read the one that answers it."""
    with process.connected() as (exchange, numbers):
        number = next(numbers)
        raw = exchange(f'{{"id":{number},{member}}}\n'.encode("ascii"))
        return read_message(raw, number), raw


def _as_answers(answers: list[Any]) -> NDArray[Any]:
    """Answers of all runs as an array: of numbers, of texts and numbers, or of rows of numbers."""
    if any(isinstance(answer, str) for answer in answers):
        if not all(isinstance(answer, str | int | float) for answer in answers):
            raise TargetError("the target's answers are texts and what is neither text nor number")
        _check_numbers([answer for answer in answers if not isinstance(answer, str)])
        # Floats beside texts too: how one run's number is written must not depend on what the others were answered.
        return np.array([answer if isinstance(answer, str) else float(answer) for answer in answers], dtype=object)
    wide = isinstance(answers[0], list)
    rows = answers if wide else [[answer] for answer in answers]
    if not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        raise TargetError("the target's answers are neither all numbers nor all lists of one length")
    _check_numbers([e for row in rows for e in row])
    array = np.array(rows, dtype=np.float64)
    return array if wide else array[:, 0]


def _check_numbers(values: list[Any]) -> None:
    if not all(isinstance(e, float) or (isinstance(e, int) and abs(e) <= EXACT) for e in values):
        raise TargetError(f"the target's answers hold what is no number, or an integer beyond {EXACT}")
