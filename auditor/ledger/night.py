"""One run of one claim with a ledger: what was counted is taken up, what comes is added to it."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from auditor.collect import METHODS, Evidence, Past, Settings
from auditor.counterexamples.replay import claim_to_json
from auditor.errors import SpecificationError
from auditor.events.codec import chain_from_json, chain_to_json
from auditor.events.learner import Chain
from auditor.events.saying import say_event
from auditor.evidence.wealth import Chunk, Stake
from auditor.guarantees import Guarantee
from auditor.ledger.memory import written
from auditor.ledger.sources import about, fingerprint
from auditor.ledger.store import Series, Store, held, now
from auditor.neighbors import Pair
from auditor.results import AuditResult
from auditor.targets import Mechanism


@dataclass(frozen=True)
class Ledger:
    """Where evidence is carried from run to run.

    Parameters
    ----------
    path : Path
        The file; it is made if there is none.
    key : str
        Whatever else has to stay the same for evidence to add up, such as the version of a service.
    named : str or None
        Name of the target on the command line.

    Raises
    ------
    SpecificationError
        If the path is empty or a folder.
    """

    path: Path
    key: str = ""
    named: str | None = None

    def __post_init__(self) -> None:
        if not str(self.path) or self.path.is_dir():
            raise SpecificationError(f"a ledger is a file, got {str(self.path)!r}")

    def prepare(self, method: str = METHODS[0]) -> None:
        """Make the file if there is none, and raise `SpecificationError` now if it cannot be used."""
        if method != METHODS[0]:
            raise SpecificationError(
                f"a ledger needs evidence that may stop at any time: --method {METHODS[0]}, got {method!r}"
            )
        if not self.path.absolute().parent.is_dir():
            raise SpecificationError(f"no such folder for the ledger: {str(self.path.parent)!r}")
        with held(self.path, ""), Store(self.path, create=True):
            pass

    @contextmanager
    def night(
        self,
        target: Mechanism,
        guarantee: Guarantee,
        pairs: Sequence[Pair],
        settings: Settings,
        id_: str,
        private: bool,
    ) -> Iterator[Night]:
        """One run of one claim; another process that runs the same claim with the same ledger waits until it ends."""
        self.prepare(settings.method)
        parts = about(target, guarantee, pairs, self.named, self.key, private)
        with held(self.path, id_), Store(self.path) as store:
            yield Night(store, id_, parts, guarantee, pairs, settings, private)


class Night:
    """One run of one claim.

    Parameters
    ----------
    store : Store
        The file; the claim is held, see `auditor.ledger.store.held`.
    id_ : str
        The claim's id.
    parts : mapping
        What evidence is about, see `auditor.ledger.sources.about`.
    guarantee, pairs, settings
        What is audited, and how.
    private : bool
        The datasets are not to be shown: no outputs are kept then, nor events, which hold values of outputs. They are
        learned anew every night.

    Attributes
    ----------
    key : str
        Keys the draws: by the claim, the ledger's identity and what the evidence is about.
    seeded : bool or None
        The target gives the same draws again; None as long as that is not known.

    Notes
    -----
    Valid because: let the chunks of a series be numbered in the order in which they are counted. Each was drawn after
    all before it had been counted (one process at a time holds a claim, and a chunk's number is counted once), from a
    generator that no other chunk had, or from entropy of the target's own. So given the chunks before it, its draws are
    those of fresh independent calls, and its events, estimates, sizes, pair and bets are functions of the chunks before
    it. Then each factor has conditional expectation at most 1 under the claim, whatever night it falls in, and the
    wealth over all nights is the same test supermartingale as that of one long run that was interrupted: `Wealth`. It
    ever reaches 1/alpha, on any night, with probability at most alpha (Ville); looking at it every morning, and
    stopping or going on as one likes, costs nothing. So does the lower bound over all chunks (`lower_bound`).

    What event learners know is carried for power only (see `auditor.ledger.memory.restore`): proposals may be any
    function of past draws, also of some of them, or of none.

    A change of what the evidence is about begins a series of its own: another null hypothesis, another wealth from 1,
    other draws. A return to an earlier state goes on with that state's series.

    Draws that were made and not counted must not be left out because of what they were. A run that is interrupted or
    killed has counted nothing of the claim that it was at, and the next one draws the same chunk numbers again: from a
    seeded target, with the same seed, the same draws. For others it is assumed that who interrupts does not look at the
    draws. If the target itself ends the audit of a claim (a crash, a hang) and its draws are not seeded, whether it did
    may depend on the draws: the series is closed, and the next night starts afresh.

    If a share of alpha is a_t on night t, the verdict of that night asks whether the wealth has ever reached 1/a_t. The
    shares of a night add up to the run's alpha, so the family-wise error of each night's report, about the whole
    history, is at most alpha. That of all nights together is at most the sum over claims of their largest shares: the
    same alpha as long as the set of claims stays, more if it changes (`dpaudit ledger` shows that sum).
    """

    def __init__(
        self,
        store: Store,
        id_: str,
        parts: Mapping[str, str],
        guarantee: Guarantee,
        pairs: Sequence[Pair],
        settings: Settings,
        private: bool,
    ) -> None:
        self.store, self.id, self.parts = store, id_, parts
        self.guarantee, self.pairs, self.settings, self.private = guarantee, pairs, settings, private
        self.fingerprint = fingerprint(parts)
        self.key = f"{id_}\x1f{store.identity}\x1f{self.fingerprint}"
        self.seeded: bool | None = None
        self._begun = False
        self._taken: dict[bool, tuple[int | None, Past]] = {}

    def past(self, alone: bool) -> Past:
        """What was counted so far, of draws of this kind: several a call, or one a call.

        Raises
        ------
        SpecificationError
            If it cannot be read.
        """
        self._begun = True
        rows = self.store.query(
            "SELECT number FROM series WHERE claim = ? AND alone = ? AND fingerprint = ? AND closed IS NULL",
            self.id,
            int(alone),
            self.fingerprint,
        )
        number = int(rows[0][0]) if rows else None
        found = Past() if number is None else past_of(self.store, number)
        self._taken[alone] = number, found
        return found

    def counted(self, evidence: Evidence, alone: bool, result: AuditResult) -> AuditResult:
        """Add the evidence of this night, all or nothing, and say so in the result.

        Raises
        ------
        SpecificationError
            If the file cannot be written, or another process has counted chunks of these numbers; nothing is added.
        """
        number, past = self._taken[alone]
        first, known = len(past.chunks), len(past.words)
        own = evidence.chunks[first:]
        draws = 2 * sum(chunk.n for chunk in own)
        afresh = "" if number is not None else self._what_changed(alone)
        with self.store.transaction() as database:
            if number is None:
                number = self._new_series(database, alone)
            counted = database.execute("SELECT count(*) FROM chunks WHERE series = ?", (number,)).fetchone()[0]
            if counted != first:
                raise SpecificationError(
                    f"the ledger {str(self.store.path)!r} has {counted} chunks of {self.id}, it had {first}: another "
                    "process counted the same chunks, nothing of this run is counted"
                )
            night = int(database.execute("SELECT count(*) FROM nights WHERE series = ?", (number,)).fetchone()[0]) + 1
            logs = [log for _, log in evidence.path[first:]]
            database.executemany(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (number, first + k, night, c.pair, c.n, int(c.whole), _stake_text(c.stake), log)
                    for k, (c, log) in enumerate(zip(own, logs, strict=True))
                ),
            )
            database.executemany(
                "INSERT INTO chains VALUES (?, ?, ?, ?)",
                ((number, known + k, *self._chain_texts(chain)) for k, chain in enumerate(evidence.chains)),
            )
            if not self.private and own:
                database.executemany(
                    "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)",
                    ((number, k, written(learner)) for k, learner in enumerate(evidence.learners) if learner.n),
                )
            database.execute(
                "INSERT INTO nights VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    night,
                    now(),
                    str(self.settings.seed),
                    result.alpha,
                    first,
                    len(own),
                    draws,
                    str(result.verdict),
                    result.lower_bound,
                ),
            )
        return replace(
            result,
            ledger={
                "file": self.store.path.name,
                "identity": self.store.identity,
                "series": number,
                "night": night,
                "own_draws": draws,
                "draws": 2 * evidence.n,
                "first_chunk": first,
                "chunks": len(own),
                "afresh": afresh,
            },
        )

    def failed(self) -> None:
        """The target ended the audit: see the class's notes on draws that were made and not counted."""
        if not self._begun or self.seeded:
            return
        with self.store.transaction() as database:
            for number, _ in self._taken.values():
                if number is not None:
                    database.execute(
                        "UPDATE series SET closed = ? WHERE number = ?",
                        (f"{now()}: the target failed, and its draws cannot come again", number),
                    )

    def _new_series(self, database: sqlite3.Connection, alone: bool) -> int:
        guarantee = claim_to_json(self.guarantee)
        row = database.execute(
            "INSERT INTO series (claim, alone, fingerprint, about, claimed, guarantee, pairs, begun) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.id,
                int(alone),
                self.fingerprint,
                json.dumps(self.parts),
                f"{self.guarantee} ({self.guarantee.notion})",
                None if guarantee is None else json.dumps(guarantee),
                json.dumps([pair.name for pair in self.pairs]),
                now(),
            ),
        )
        assert row.lastrowid is not None
        return row.lastrowid

    def _what_changed(self, alone: bool) -> str:
        """Why nothing was taken up, in words; empty on a claim's first night."""
        same: list[Series] = [s for s in self.store.series() if s.claim == self.id and s.alone == alone]
        if not same:
            return ""
        last = same[-1]
        if last.closed is not None and fingerprint(last.about) == self.fingerprint:
            return last.closed
        names = sorted(k for k in {*last.about, *self.parts} if last.about.get(k) != self.parts.get(k))
        return f"changed: {', '.join(names)}"

    def _chain_texts(self, chain: Chain) -> tuple[str, str | None]:
        """An event's words and its JSON, as columns."""
        words = json.dumps([say_event(chain, k, self.private) for k in range(len(chain.cuts))])
        record = None if self.private else chain_to_json(chain)
        return words, None if record is None else json.dumps(record)


def past_of(store: Store, series: int) -> Past:
    """All that was counted of one series.

    Raises
    ------
    SpecificationError
        If something of it cannot be read, or chunks are missing.
    """
    rows = store.query("SELECT number, pair, n, whole, stake, log FROM chunks WHERE series = ? ORDER BY number", series)
    events = store.query("SELECT number, words, chain FROM chains WHERE series = ? ORDER BY number", series)
    try:
        for what, numbers in (("chunk", [row[0] for row in rows]), ("event", [row[0] for row in events])):
            if numbers != list(range(len(numbers))):
                raise ValueError(f"series {series} has the {what} numbers {numbers!r:.80}")
        chunks = tuple(Chunk(int(p), int(n), _stake(stake), bool(whole)) for _, p, n, whole, stake, _ in rows)
        chains = {chain_from_json(json.loads(text)): int(k) for k, _, text in events if text is not None}
        words = tuple(tuple(map(str, json.loads(text))) for _, text, _ in events)
        drawn = itertools.accumulate(chunk.n for chunk in chunks)
        path = tuple((n, float(row[-1])) for n, row in zip(drawn, rows, strict=True))
    except (KeyError, TypeError, ValueError, SpecificationError) as error:
        raise store.damaged(error) from error
    memory = dict(store.query("SELECT pair, content FROM memory WHERE series = ?", series))
    return Past(chunks, words, chains, path, memory)


def _stake_text(stake: Stake | None) -> str | None:
    if stake is None:
        return None
    chain, best, p, q, x, y = astuple(stake)
    counts = [[int(count) for count in side] for side in (x, y)]
    return json.dumps([int(chain), int(best), [float(v) for v in p], [float(v) for v in q], *counts])


def _stake(text: str | None) -> Stake | None:
    if text is None:
        return None
    chain, best, p, q, x, y = json.loads(text)
    estimates = [tuple(map(float, side)) for side in (p, q)]
    counts = [tuple(map(int, side)) for side in (x, y)]
    return Stake(int(chain), int(best), estimates[0], estimates[1], counts[0], counts[1])
