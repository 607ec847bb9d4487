"""The file of a ledger: SQLite, written by two transactions a chunk, one before it is drawn and one after."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError, UnrecordedError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

SCHEMA = "dpaudit-ledger/2"
#: Seconds that a transaction waits for others to end; each takes milliseconds. Arbitrary, longer than a slow disk.
BUSY = 60.0

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE series (
    number INTEGER PRIMARY KEY, claim TEXT NOT NULL, alone INTEGER NOT NULL, fingerprint TEXT NOT NULL,
    attempt INTEGER NOT NULL, about TEXT NOT NULL, claimed TEXT NOT NULL, guarantee TEXT, pairs TEXT NOT NULL,
    begun TEXT NOT NULL, closed TEXT, looked TEXT
);
CREATE UNIQUE INDEX going_on ON series (claim, alone, fingerprint) WHERE closed IS NULL;
CREATE TABLE nights (
    series INTEGER NOT NULL REFERENCES series, number INTEGER NOT NULL, begun TEXT NOT NULL, ended TEXT,
    seed TEXT NOT NULL, alpha REAL NOT NULL, first INTEGER NOT NULL, chunks INTEGER, draws INTEGER,
    judged INTEGER NOT NULL, verdict TEXT, lower_bound REAL, PRIMARY KEY (series, number)
);
CREATE TABLE plans (
    series INTEGER PRIMARY KEY REFERENCES series, number INTEGER NOT NULL, night INTEGER NOT NULL,
    pair INTEGER NOT NULL, n INTEGER NOT NULL, stake TEXT, seed TEXT, one_a_call INTEGER NOT NULL
);
CREATE TABLE chunks (
    series INTEGER NOT NULL REFERENCES series, number INTEGER NOT NULL, night INTEGER NOT NULL, pair INTEGER NOT NULL,
    n INTEGER NOT NULL, whole INTEGER NOT NULL, stake TEXT, log REAL NOT NULL, PRIMARY KEY (series, number)
) WITHOUT ROWID;
CREATE TABLE chains (
    series INTEGER NOT NULL REFERENCES series, number INTEGER NOT NULL, words TEXT NOT NULL, chain TEXT,
    PRIMARY KEY (series, number)
) WITHOUT ROWID;
CREATE TABLE memory (
    series INTEGER NOT NULL REFERENCES series, pair INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (series, pair)
);
"""


@dataclass(frozen=True)
class Series:
    """Evidence that adds up: one claim, one specification, one source.

    Parameters
    ----------
    number : int
        Its number in the ledger; chunks, chains and nights are numbered within it.
    claim : str
        The claim's id.
    alone : bool
        Draws were taken one a call, because those of one call are not independent.
    attempt : int
        Number of the series among those of the same claim and state, see `auditor.runs.ledger.session.share_of`.
    about : mapping
        See `auditor.runs.ledger.fingerprint.collect_parts`.
    claimed : str
        The claim in words.
    guarantee : mapping or None
        The claim as JSON; None for one that is not made of its parameters.
    pairs : sequence of str
        Names of the pairs.
    begun, closed : str, str or None
        When it began, and why nothing is added to it any more.
    looked : str or None
        Why its refutation does not stand; empty if it does, None as long as there was none to look at.
    """

    number: int
    claim: str
    alone: bool
    attempt: int
    about: Mapping[str, str]
    claimed: str
    guarantee: Mapping[str, Any] | None
    pairs: Sequence[str]
    begun: str
    closed: str | None
    looked: str | None


class Store:
    """A ledger's file, opened by one process.

    Parameters
    ----------
    path : Path
    create : bool
        Make the file if there is none.

    Attributes
    ----------
    identity : str
        Made when the file is; it keys the draws.

    Raises
    ------
    SpecificationError
        If the file cannot be opened, is no ledger or one of another version; nothing is changed then.

    Notes
    -----
    What belongs together is written by one transaction, so that a process that is killed at any moment has added all of
    it or nothing; SQLite takes back what was begun when the file is next opened. Chunks are numbered within a series
    and the number is a key of the table, so that no two processes can both add a chunk of one number.

    What has to be on the disk before anything is drawn is written by a ``durable`` transaction, which waits for the
    disk. Others outlive the process, and a power cut may take the last of them: never one before a durable one, as all
    go into one log, in order.
    """

    def __init__(self, path: Path, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            raise SpecificationError(f"no such ledger: {str(path)!r}")
        try:
            self._database = _connect(path, create)
        except sqlite3.Error as error:
            raise SpecificationError(f"cannot open the ledger {str(path)!r}: {error}") from error
        try:
            self._begin(create)
        except BaseException:
            self._database.close()
            raise

    def _begin(self, create: bool) -> None:
        with self._named_errors():
            empty = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if create and empty:
            with self._named_errors():
                self._database.execute("PRAGMA journal_mode=WAL")
            with self.transaction():
                if self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                    for statement in filter(str.strip, _TABLES.split(";")):
                        self._database.execute(statement)
                    head = {"schema": SCHEMA, "identity": uuid.uuid4().hex, "begun": read_time()}
                    self._database.executemany("INSERT INTO meta VALUES (?, ?)", head.items())
        try:
            meta = dict(self._database.execute("SELECT name, value FROM meta").fetchall())
        except sqlite3.Error as error:
            raise SpecificationError(f"{str(self.path)!r} is not a ledger: {error}") from error
        if meta.get("schema") != SCHEMA or not re.fullmatch(r"[0-9a-f]{32}", str(meta.get("identity"))):
            raise SpecificationError(
                f"{str(self.path)!r} is not a ledger of this version: expected schema {SCHEMA!r}, "
                f"got {meta.get('schema')!r}"
            )
        self.identity, self.begun = str(meta["identity"]), str(meta.get("begun"))
        with self._named_errors():
            self._database.execute("PRAGMA foreign_keys=ON")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise SpecificationError(f"the ledger {str(self.path)!r}: {error}") from error

    @contextmanager
    def transaction(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """All that a block writes, or nothing; no other process writes meanwhile.

        Raises
        ------
        UnrecordedError
            If it cannot be written: the disk is full, the file is damaged, another process has written the same.
        """
        try:
            self._database.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # a full disk has ended it already
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise UnrecordedError(f"the ledger {str(self.path)!r} cannot be written: {error}") from error

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a query.

        Parameters
        ----------
        statement : str
            SQL, with a question mark for each value.
        values : object
            Those values: None, numbers, texts or bytes.
        """
        with self._named_errors():
            return self._database.execute(statement, values).fetchall()

    def series(self) -> list[Series]:
        """All series, in the order in which they began."""
        rows = self.query(
            "SELECT number, claim, alone, attempt, about, claimed, guarantee, pairs, begun, closed, looked FROM series "
            "ORDER BY number"
        )
        try:
            return [
                Series(
                    int(number),
                    str(claim),
                    bool(alone),
                    int(attempt),
                    json.loads(about),
                    str(claimed),
                    None if guarantee is None else json.loads(guarantee),
                    json.loads(pairs),
                    str(begun),
                    None if closed is None else str(closed),
                    None if looked is None else str(looked),
                )
                for number, claim, alone, attempt, about, claimed, guarantee, pairs, begun, closed, looked in rows
            ]
        except (TypeError, ValueError) as error:
            raise self.damaged(error) from error

    def damaged(self, error: Exception | str) -> SpecificationError:
        """What is raised if something in the file cannot be read."""
        return SpecificationError(f"the ledger {str(self.path)!r} is damaged: {error}")

    def unbroken(self) -> str:
        """Empty if SQLite finds the file in order, otherwise what it finds."""
        found = [str(row[0]) for row in self.query("PRAGMA integrity_check")]
        return "" if found == ["ok"] else "; ".join(found)


def _connect(path: Path, create: bool) -> sqlite3.Connection:
    """Open the file, also where nothing can be written beside it, as on read-only media.

    SQLite keeps a write-ahead log and an index in two files beside the database, which it makes to read it as well.
    Where there is no log, no process has the database open and it holds all changes. SQLite can then read it alone, in
    its mode for files that do not change (``immutable``).
    """
    if create or os.access(path.parent, os.W_OK) or path.with_name(f"{path.name}-wal").exists():
        return sqlite3.connect(path, timeout=BUSY, isolation_level=None)
    return sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None)


@contextmanager
def hold_claim(path: Path, name: str) -> Iterator[None]:
    """Lock one claim of a ledger.

    Other processes wait until the block ends, or the process does, however it does.

    A lock of the operating system on one byte of a file beside the ledger; the byte is chosen by a hash of the name, so
    that two claims have to wait for one another once in 2^56 times, which costs time only.

    Parameters
    ----------
    path : Path
        The ledger; the lock is on a file beside it.
    name : str
        Id of the claim, or empty for the ledger as a whole.

    Raises
    ------
    SpecificationError
        If the file cannot be written, or the system is not POSIX.
    """
    if fcntl is None:
        raise SpecificationError("a ledger needs a POSIX system, which has locks that end with their process")
    beside = path.with_name(path.name + ".lock")
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")  # offsets go up to 2^63
    try:
        file = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise SpecificationError(f"cannot write to {str(beside)!r}: {error}") from error
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
        except OSError as error:
            raise SpecificationError(f"cannot lock {str(beside)!r}: {error}") from error
        yield
    finally:
        os.close(file)


def read_time() -> str:
    """Return the present moment, as a ledger holds it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
