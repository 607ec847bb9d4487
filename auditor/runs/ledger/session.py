"""One run of one claim with a ledger: goes on from earlier evidence, and adds to it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from auditor.audits.counterexamples.replay import claim_to_json
from auditor.audits.defaults import METHODS
from auditor.audits.privacy_loop import ChunkPlan, Evidence, Past, Settings
from auditor.datasets import Pair
from auditor.errors import SpecificationError
from auditor.events.codec import chain_to_json
from auditor.events.descriptions import say_event
from auditor.events.event_learner import Chain
from auditor.events.learner_state import write_state
from auditor.evidence.two_sample_bet import Chunk
from auditor.privacy.guarantees import Guarantee
from auditor.results import AuditResult, Verdict
from auditor.runs.ledger.fingerprint import collect_parts, fingerprint_parts
from auditor.runs.ledger.record import Begun, begun_of, past_of, stake_text
from auditor.runs.ledger.store import Series, Store, hold_claim, read_time
from auditor.targets import Mechanism
from auditor.targets.sampler import Sampler


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
        """Create the file, or raise `SpecificationError` if it is unusable."""
        if method != METHODS[0]:
            raise SpecificationError(
                f"a ledger needs evidence that may stop at any time: --method {METHODS[0]}, got {method!r}"
            )
        if not self.path.absolute().parent.is_dir():
            raise SpecificationError(f"no such folder for the ledger: {str(self.path.parent)!r}")
        with hold_claim(self.path, ""), Store(self.path, create=True):
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
        """One run of one claim.

        Another process that runs the same claim with the same ledger waits until it ends.

        Parameters
        ----------
        target : Mechanism
            What is audited.
        guarantee : Guarantee
            The claim.
        pairs : sequence of Pair
            Datasets.
        settings : Settings
            Budgets; the method has to be the one of e-processes.
        id_ : str
            The claim's id.
        private : bool
            The datasets are not to be shown, see `Night`.

        Raises
        ------
        SpecificationError
            If the file cannot be used, or something of the target cannot be seen and there is no key.
        """
        self.prepare(settings.method)
        id_ = id_.encode(errors="backslashreplace").decode()  # of a file whose name is no UTF-8, which SQLite refuses
        parts = collect_parts(target, guarantee, pairs, self.named, self.key, private)
        if settings.ignore:  # bets on other events are another series
            parts["ignore"] = ",".join(settings.ignore)
        with hold_claim(self.path, id_), Store(self.path) as store:
            yield Night(store, id_, parts, guarantee, pairs, settings, private)


#: Share of alpha of the first series of a state; the others have the rest. Nights that end as they should are the rule,
#: and their series pays 0.1 nats.
FIRST_SHARE = 0.9
#: Why a series is closed.
LOST = "a run ended before what it had drawn was counted, and that cannot be drawn again"


def share_of(attempt: int) -> float:
    """Share of alpha of a state's k-th series.

    The shares of all series of one claim and state add up to 1.
    """
    return FIRST_SHARE if attempt == 1 else (1 - FIRST_SHARE) / ((attempt - 1) * attempt)


def describe_claim(guarantee: Guarantee) -> str:
    """Describe a claim as a series records it in words."""
    return f"{guarantee} ({guarantee.notion})"


class _OpenSeries(NamedTuple):
    """A series that this night adds to: the night's number in it, the chunks before, and why it is new."""

    series: int
    night: int
    first: int
    afresh: str


class Night:
    """One run of one claim.

    Parameters
    ----------
    store : Store
        The file; the claim is held, see `auditor.runs.ledger.store.hold_claim`.
    id_ : str
        The claim's id.
    parts : mapping
        What evidence is about, see `auditor.runs.ledger.fingerprint.collect_parts`.
    guarantee, pairs, settings
        What is audited, and how.
    private : bool
        The datasets are not to be shown: no outputs are kept then, nor events, which hold values of outputs. They are
        learned anew every night.

    Attributes
    ----------
    key : str
        Keys the draws: by the claim, the ledger's identity, what the evidence is about and the attempt.
    seeded : bool
        The target gives the same draws again, as far as is known.
    attempt : int
        Number of the series among those of the same claim and state, see `share_of`.

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

    *However a night ends*, the chunks that count are the first so many of those that were drawn, in their order. Before
    a chunk is drawn its plan is on the disk: pair, size, events and estimates; when it is counted the plan is replaced
    by the counts, in one transaction. So a plan that a night finds says that draws were begun and not counted, and that
    is all that can be missing: the process was killed, timed out, the target crashed or hung, the disk was full. There
    are three cases.

    - Nothing was bet on it. Its factor is 1 whatever was drawn, and it is counted as such.
    - The same draws come again: the target is seeded (the tests of independence repeat a call), with the same seed, and
      its specification, source and versions are the same, or this would be another series. They are drawn again, and
      bet on as planned, so that the factor is the one that it would have been. Another bet would not do: whether there
      is one could depend on the draws.
    - Otherwise the series is closed. Who or what ended the night may have seen the draws, so that leaving them out and
      going on would be to choose among draws.

    Closing alone would not do either. A budget that stops at the verdict makes the nights without an alarm the long
    ones, so that a time limit kills just these; if each series that follows had all of alpha, each night would be a new
    attempt. So the series of one state share it: the k-th is judged at `share_of(k)` times alpha. Each is a
    supermartingale of its own that begins with 1 at a time that may depend on all draws before it, and reaches
    1/(alpha share_of(k)) with probability at most alpha share_of(k); any of them, with at most alpha. That holds for
    any rule by which nights end, one that looks at the wealth or at the draws too.

    What event learners know is carried for power only (see `auditor.events.learner_state.restore_state`): proposals may
    be any function of past draws, also of some of them, or of none.

    A change of what the evidence is about begins a series of its own: another null hypothesis, another wealth from 1,
    other draws. A return to an earlier state goes on with that state's series.

    *A refutation that looks dependent* is asked for again on draws taken one a call (`confirm_refutation`), once in a
    series: the outcome is kept (`doubt`). Asking anew every night would let a refutation through on the first night
    on which its draws happen to look fine. Once it is doubted, for good, only the series of draws one a call can
    refute, which is carried as well. Valid because: the wealth of those is one supermartingale over all nights, from 1,
    which nights of any number raise to 1/alpha with probability at most alpha; and for draws that are independent the
    alarms are a subset of the first refutations. The mark is set before the look, so that a night that ends during it
    leaves it set.

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
        self.guarantee, self.pairs, self.private = guarantee, pairs, private
        self.fingerprint = fingerprint_parts(parts)
        self.seeded = False
        self._given = settings
        self._open: dict[bool, _OpenSeries] = {}
        self._count_attempts()
        for alone in (False, True):
            self._settle_begun_chunk(alone)

    def _settle_begun_chunk(self, alone: bool) -> None:
        """What becomes of a chunk that an earlier night began and did not count, as far as it is known beforehand."""
        number = self._series(alone)
        begun = None if number is None else begun_of(self.store, number)
        if number is None or begun is None:
            return
        if begun.plan.bet is None:
            self._count_as_nothing(number, begun)
        elif not begun.comes_again(str(self._given.seed)):
            self.close(LOST)

    def _count_attempts(self) -> None:
        rows = self.store.query(
            "SELECT max(attempt) FROM series WHERE claim = ? AND fingerprint = ? AND closed IS NOT NULL",
            self.id,
            self.fingerprint,
        )
        self.attempt = 1 + int(rows[0][0] or 0)
        self.key = f"{self.id}\x1f{self.store.identity}\x1f{self.fingerprint}\x1f{self.attempt}"

    @property
    def settings(self) -> Settings:
        """Settings of the audit, at this series' share of alpha."""
        return replace(self._given, alpha=self._given.alpha * share_of(self.attempt))

    @property
    def begun(self) -> bool:
        """Whether evidence was taken up in this night."""
        return bool(self._open)

    def past(self, sampler: Sampler) -> Past:
        """Chunks that were counted so far; the night begins.

        They are of draws of one kind: several a call, or one a call.

        The sampler draws what is added to it. If a chunk has to come again and cannot, as the target is not seeded any
        more, the next attempt begins, and the sampler's key is that of the attempt.

        Raises
        ------
        SpecificationError
            If it cannot be read.
        UnrecordedError
            If the file cannot be written.
        """
        alone = sampler.scattered
        number = self._series(alone)
        begun = None if number is None else begun_of(self.store, number)
        if begun is not None:
            if self.seeded and (begun.one_a_call or not sampler.one_a_call):
                sampler.one_a_call = begun.one_a_call  # as it was when the chunk was begun
            else:
                self.close(LOST)
                number = begun = None
        sampler.key = self.key
        afresh = "" if number is not None else self._what_changed(alone)
        with self.store.transaction(durable=False) as database:
            if number is None:
                number = self._new_series(database, alone)
            chunks = database.execute("SELECT count(*) FROM chunks WHERE series = ?", (number,)).fetchone()[0]
            night = 1 + int(database.execute("SELECT count(*) FROM nights WHERE series = ?", (number,)).fetchone()[0])
            database.execute(
                "INSERT INTO nights (series, number, begun, seed, alpha, first, judged) VALUES (?, ?, ?, ?, ?, ?, 0)",
                (number, night, read_time(), str(self._given.seed), self.settings.alpha, chunks),
            )
        self._open[alone] = _OpenSeries(number, night, int(chunks), afresh)
        found = past_of(self.store, number)
        return found if begun is None else replace(found, pending=begun.plan)

    def _series(self, alone: bool) -> int | None:
        rows = self.store.query(
            "SELECT number FROM series WHERE claim = ? AND alone = ? AND fingerprint = ? AND closed IS NULL",
            self.id,
            int(alone),
            self.fingerprint,
        )
        return int(rows[0][0]) if rows else None

    def _count_as_nothing(self, series: int, begun: Begun) -> None:
        """Count a chunk that was begun, and on which nothing was bet."""
        with self.store.transaction() as database:
            database.execute("DELETE FROM plans WHERE series = ?", (series,))
            night = 1 + int(database.execute("SELECT count(*) FROM nights WHERE series = ?", (series,)).fetchone()[0])
            before = database.execute(
                "SELECT log FROM chunks WHERE series = ? AND number = ?", (series, begun.number - 1)
            ).fetchone()
            database.execute(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, 1, NULL, ?)",
                (series, begun.number, night, begun.plan.pair, begun.plan.n, before[0] if before else 0.0),
            )

    def plan(self, number: int, plan: ChunkPlan, sampler: Sampler) -> None:
        """Write down a chunk before anything of it is drawn.

        Parameters
        ----------
        number : int
            Number of the chunk in its series, from 0.
        plan : ChunkPlan
            What is going to be drawn and bet.
        sampler : Sampler
            Draws it; one that scatters its calls adds to a series of its own.

        Raises
        ------
        SpecificationError
            If another process has counted a chunk of this number or is about to; nothing is added.
        UnrecordedError
            If the file cannot be written.
        """
        mine = self._open[sampler.scattered]
        with self.store.transaction() as database:
            counted = database.execute("SELECT count(*) FROM chunks WHERE series = ?", (mine.series,)).fetchone()[0]
            begun = database.execute("SELECT number FROM plans WHERE series = ?", (mine.series,)).fetchall()
            again = number == mine.first and begun == [(number,)]  # see `Past.pending`
            if counted != number or (begun and not again):
                raise SpecificationError(
                    f"the ledger {str(self.store.path)!r} has {counted + len(begun)} chunks of {self.id}, it had "
                    f"{number}: another process counted the same chunks, nothing more of this run is counted"
                )
            if plan.bet is not None and plan.chain is not None:
                database.execute(
                    "INSERT OR IGNORE INTO chains VALUES (?, ?, ?, ?)",
                    (mine.series, plan.bet.chain, *self._chain_texts(plan.chain)),
                )
            database.execute(
                "INSERT OR REPLACE INTO plans VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    mine.series,
                    number,
                    mine.night,
                    plan.pair,
                    plan.n,
                    stake_text(plan.bet),
                    str(self._given.seed) if self.seeded else None,
                    int(sampler.one_a_call),
                ),
            )

    def count(self, number: int, chunk: Chunk, log: float, sampler: Sampler) -> None:
        """Replace a chunk's plan by its counts.

        It does not wait for the disk: if a power cut takes this, the plan is still there.

        Parameters
        ----------
        number : int
            Number of the chunk in its series, from 0.
        chunk : Chunk
            What was counted.
        log : float
            Natural logarithm of the wealth after it.
        sampler : Sampler
            Drew it, as in `plan`.

        Raises
        ------
        UnrecordedError
            If the file cannot be written: the chunk counts as begun.
        """
        mine = self._open[sampler.scattered]
        with self.store.transaction(durable=False) as database:
            database.execute("DELETE FROM plans WHERE series = ? AND number = ?", (mine.series, number))
            database.execute(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    mine.series,
                    number,
                    mine.night,
                    chunk.pair,
                    chunk.n,
                    int(chunk.whole),
                    stake_text(chunk.stake),
                    log,
                ),
            )

    def doubt(self, reason: str, alone: bool = False) -> None:
        """Keep why a refutation by this series does not stand.

        An empty reason means that it does.

        Parameters
        ----------
        reason : str
            Why it does not stand; empty if it does.
        alone : bool
            The series is the one of draws that were taken one a call.

        Raises
        ------
        UnrecordedError
            If the file cannot be written.
        """
        with self.store.transaction() as database:
            database.execute("UPDATE series SET looked = ? WHERE number = ?", (reason, self._open[alone].series))

    def doubted(self, alone: bool = False) -> str | None:
        """The reason that `doubt` has kept of this series.

        In this night or before; None if nothing was refuted yet.
        """
        rows = self.store.query("SELECT looked FROM series WHERE number = ?", self._series(alone))
        return None if not rows or rows[0][0] is None else str(rows[0][0])

    def end(self, evidence: Evidence, alone: bool, result: AuditResult) -> AuditResult:
        """Record the result of a night, and mark the result.

        Parameters
        ----------
        evidence : Evidence
            What the verdict rests on.
        alone : bool
            Its draws were taken one a call.
        result : AuditResult

        Raises
        ------
        UnrecordedError
            If the file cannot be written; what was counted stays.
        """
        mine, own = self._open[alone], evidence.chunks[self._open[alone].first :]
        draws = 2 * sum(chunk.n for chunk in own)
        with self.store.transaction() as database:
            for kind, taken in self._open.items():
                _close_night(database, taken, result.verdict, kind == alone, result.lower_bound)
            if not self.private and own:
                database.executemany(
                    "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)",
                    (
                        (mine.series, k, write_state(learner))
                        for k, learner in enumerate(evidence.learners)
                        if learner.n
                    ),
                )
        return replace(
            result,
            ledger={
                "file": self.store.path.name,
                "identity": self.store.identity,
                "series": mine.series,
                "night": mine.night,
                "own_draws": draws,
                "draws": 2 * evidence.n,
                "first_chunk": mine.first,
                "chunks": len(own),
                "afresh": mine.afresh,
            },
        )

    def fail(self) -> None:
        """Record that the target ended the night.

        The draws of the moment stay begun.
        """
        with self.store.transaction() as database:
            for taken in self._open.values():
                _close_night(database, taken, Verdict.ERROR)

    def close(self, reason: str) -> None:
        """Close the series of this state, of both kinds.

        The next attempt begins.

        Raises
        ------
        UnrecordedError
            If the file cannot be written.
        """
        with self.store.transaction() as database:
            database.execute(
                "UPDATE series SET closed = ? WHERE claim = ? AND fingerprint = ? AND closed IS NULL",
                (f"{read_time()}: {reason}", self.id, self.fingerprint),
            )
        self._open.clear()
        self._count_attempts()

    def _new_series(self, database: sqlite3.Connection, alone: bool) -> int:
        guarantee = claim_to_json(self.guarantee)
        doubts = database.execute(  # those of an earlier attempt stay: a night must not be ended to get rid of them
            "SELECT max(looked) FROM series WHERE claim = ? AND alone = ? AND fingerprint = ? AND looked != ''",
            (self.id, int(alone), self.fingerprint),
        )
        row = database.execute(
            "INSERT INTO series (claim, alone, fingerprint, attempt, about, claimed, guarantee, pairs, begun, looked) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.id,
                int(alone),
                self.fingerprint,
                self.attempt,
                json.dumps(self.parts),
                describe_claim(self.guarantee),
                None if guarantee is None else json.dumps(guarantee),
                json.dumps([pair.name for pair in self.pairs]),
                read_time(),
                doubts.fetchone()[0],
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
        if last.closed is not None and fingerprint_parts(last.about) == self.fingerprint:
            return f"{last.closed}; this is attempt {self.attempt}, with {share_of(self.attempt):.2g} of alpha"
        names = sorted(k for k in {*last.about, *self.parts} if last.about.get(k) != self.parts.get(k))
        return f"changed: {', '.join(names)}"

    def _chain_texts(self, chain: Chain) -> tuple[str, str | None]:
        """An event's words and its JSON, as columns."""
        words = json.dumps([say_event(chain, k, self.private) for k in range(len(chain.cuts))])
        record = None if self.private else chain_to_json(chain)
        return words, None if record is None else json.dumps(record)


def _close_night(
    database: sqlite3.Connection, taken: _OpenSeries, verdict: Verdict, judged: bool = False, bound: float | None = None
) -> None:
    """Write down when a night of a series ended, what it counted, and the verdict if that rests on the series."""
    where = (taken.series, taken.night)
    chunks, n = database.execute("SELECT count(*), sum(n) FROM chunks WHERE series = ? AND night = ?", where).fetchone()
    database.execute(
        "UPDATE nights SET ended = ?, chunks = ?, draws = ?, judged = ?, verdict = ?, lower_bound = ? "
        "WHERE series = ? AND number = ?",
        (read_time(), chunks, 2 * (n or 0), int(judged), str(verdict), bound if judged else None, *where),
    )
