"""However a night ends, what was drawn is counted, drawn again as it was, or closes the series."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import resource
import signal
import sqlite3
import struct
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import auditor.runs.ledger.session
from auditor.audits import dependence
from auditor.audits.context import Question
from auditor.audits.dependence import Doubt
from auditor.audits.privacy import UNSEEN, run_audit
from auditor.audits.privacy_loop import Settings
from auditor.errors import TargetError
from auditor.events.event_learner import EventLearner
from auditor.privacy.guarantees import PureDP
from auditor.results import AuditResult, Verdict
from auditor.runs.ledger import Ledger
from auditor.runs.ledger.record import past_of
from auditor.runs.ledger.session import FIRST_SHARE, LOST, share_of
from auditor.runs.ledger.show import format_ledger, verify_ledger
from auditor.runs.ledger.store import Store
from auditor.targets.sampler import Call, Sampler
from tests.unit.runs.test_ledger import ID, PAIR, change, rows

#: The tests of independence find out that the coin is seeded.
SEEDED = Settings(draws=2_000, comparisons=24, alpha=1e-3)
UNSEEDED = replace(SEEDED, independence=False)


class Killed(KeyboardInterrupt):
    """Ends a night as a kill does, for the file: nothing is written any more."""


def coin(data: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Randomised response with epsilon = ln 3 that ends the night at the call of a number."""
    CALLS.append(n)
    if LAST and len(CALLS) >= LAST[0][0]:
        raise LAST[0][1]
    return np.where(rng.random(n) < 0.75, data, 1 - data)


#: Sizes of the calls of a test; the call that fails, by number, and how. No attributes: those would be another state.
CALLS: list[int] = []
LAST: list[tuple[int, BaseException]] = []


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(1)
    monkeypatch.setattr("auditor.runs.ledger.store.uuid.uuid4", lambda: uuid.UUID(int=next(numbers)))
    forget()


def forget() -> None:
    CALLS.clear()
    LAST.clear()


def ends(after: int, error: BaseException) -> None:
    forget()
    LAST.append((after, error))


def night(path: Path, settings: Settings = SEEDED, epsilon: float = 1.5, **labels: Any) -> AuditResult:
    question = Question(ID, ledger=Ledger(path), **labels)
    return run_audit(coin, PureDP(epsilon), PAIR, settings, question)


def copied(path: Path, to: Path) -> None:
    """Copy a ledger, with what its log holds, over another one, and over what is left of that one's log."""
    for end in ("", "-wal", "-shm"):
        to.with_name(to.name + end).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(to)) as target:
        source.backup(target)


def calls_of(path: Path, settings: Settings) -> list[int]:
    """Sizes of the calls of a night on a copy of the ledger."""
    copy = path.with_name("copy")
    copied(path, copy)
    forget()
    night(copy, settings)
    copy.unlink()
    found = list(CALLS)
    forget()
    return found


# ------------------------------------------------------------------------------------------ three cases


@pytest.mark.parametrize("error", [Killed(), TargetError("it hung")])
def test_draws_that_cannot_come_again_close_the_series(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "ledger"
    before = night(path, UNSEEDED)
    ends(3, error)  # in the second chunk of the night
    if isinstance(error, Killed):
        with pytest.raises(Killed):
            night(path, UNSEEDED)
    else:
        assert night(path, UNSEEDED).verdict == Verdict.ERROR
    forget()
    assert rows(path, "SELECT count(*) FROM chunks") == [(before.ledger["chunks"] + 1,)]  # the first was counted
    assert rows(path, "SELECT number, stake IS NULL FROM plans") == [(before.ledger["chunks"] + 1, 0)]
    assert verify_ledger(path)[1]
    after = night(path, UNSEEDED)
    assert (after.ledger["night"], after.draws) == (1, 2_000)
    assert LOST in after.ledger["afresh"]
    assert "this is attempt 2, with 0.05 of alpha" in after.ledger["afresh"]
    assert after.alpha == pytest.approx(0.05 * UNSEEDED.alpha)
    assert before.alpha == pytest.approx(0.9 * UNSEEDED.alpha)
    assert [series.attempt for series in Store(path).series()] == [1, 2]
    assert night(path, UNSEEDED).draws == 4_000  # it goes on
    assert any(LOST in line for line in format_ledger(path, everything=True))
    assert verify_ledger(path) == (["2 series: all are as recorded"], True)


@pytest.mark.parametrize("error", [Killed(), TargetError("it hung")])
def test_draws_that_come_again_are_bet_on_as_planned(tmp_path: Path, error: BaseException) -> None:
    path, whole = tmp_path / "ledger", tmp_path / "whole"
    night(path)
    copied(path, whole)
    first = len(past_of(Store(path), 1).chunks)
    tests = len(calls_of(path, replace(SEEDED, draws=32))) - 2 * 1  # a night of one chunk
    for after in (tests + 1, tests + 2, tests + 5):
        copied(whole, path)
        ends(after, error)
        if isinstance(error, Killed):
            with pytest.raises(Killed):
                night(path)
        else:
            assert night(path).verdict == Verdict.ERROR
        forget()
        ((begun,),) = rows(path, "SELECT number FROM plans")
        # Other options of the night that follows do not change what was planned.
        result = night(path, replace(SEEDED, draws=500, stop="budget"))
        assert (result.ledger["afresh"], result.ledger["first_chunk"]) == ("", begun)
        reference = tmp_path / f"reference{after}"
        copied(whole, reference)
        night(reference)
        chunks = past_of(Store(reference), 1).chunks
        assert past_of(Store(path), 1).chunks[: begun + 1] == chunks[: begun + 1]
        assert begun >= first
        assert verify_ledger(path) == (["1 series: all are as recorded"], True)


def leave_a_chunk_begun(path: Path) -> None:
    """A night as it should be, and one that is killed in its last call."""
    night(path)
    ends(len(calls_of(path, SEEDED)) - 1, Killed())
    with pytest.raises(Killed):
        night(path)
    forget()


def test_another_seed_closes_the_series(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    leave_a_chunk_begun(path)
    assert LOST in night(path, replace(SEEDED, seed=7)).ledger["afresh"]
    assert verify_ledger(path)[1]


def test_a_target_that_is_not_seeded_any_more_closes_the_series(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    leave_a_chunk_begun(path)
    result = night(path, UNSEEDED)
    assert LOST in result.ledger["afresh"]
    # The draws of the new series have keys of their own: none of the old ones comes again, at the same numbers.
    chunks = [past_of(Store(path), number).chunks[5] for number in (1, 2)]
    assert chunks[0] != chunks[1]
    assert verify_ledger(path)[1]


def test_a_chunk_on_which_nothing_was_bet_is_counted_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ends(2, Killed())  # of the first chunk only one side is drawn
    with pytest.raises(Killed):
        night(path, UNSEEDED)
    forget()
    result = night(path, UNSEEDED)
    assert (result.ledger["afresh"], result.ledger["first_chunk"], result.ledger["own_draws"]) == ("", 1, 2_000)
    assert result.draws == 2_016
    assert past_of(Store(path), 1).chunks[0].stake is None
    assert verify_ledger(path) == (["1 series: all are as recorded"], True)


def test_private_data_keep_no_events_to_bet_on_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path, private=True)
    ends(len(calls_of(path, SEEDED)) - 1, Killed())
    with pytest.raises(Killed):
        night(path, private=True)
    forget()
    assert LOST in night(path, private=True).ledger["afresh"]


def test_shares_of_attempts_add_up_to_one() -> None:
    assert share_of(1) == FIRST_SHARE
    shares = [share_of(k) for k in range(1, 10_001)]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1 - (1 - FIRST_SHARE) / 10_000)


# ------------------------------------------------------------------------------------------ kills


def test_at_every_byte_what_was_drawn_is_counted_or_begun(tmp_path: Path) -> None:
    path, log = tmp_path / "ledger", tmp_path / "ledger-wal"
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size=512")  # so that there are fewer bytes
    database.execute("VACUUM")
    database.close()
    Ledger(path).prepare()
    before = path.read_bytes()
    sizes: list[int] = []

    def logging(data: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        sizes.append(log.stat().st_size)
        return np.where(rng.random(n) < 0.75, data, 1 - data)

    other = sqlite3.connect(path)  # keeps the log from being written back when the night closes the file
    other.execute("SELECT * FROM meta").fetchall()
    settings = replace(UNSEEDED, draws=60)
    run_audit(logging, PureDP(1.5), PAIR, settings, Question(ID, ledger=Ledger(path)))
    content = log.read_bytes()
    assert path.read_bytes() == before
    other.close()
    drawn = sizes[::2]  # of each chunk the first side
    assert len(drawn) >= 4
    assert drawn == sorted(set(drawn))
    cut, part = tmp_path / "cut", tmp_path / "cut-wal"
    seen = set()
    # All 50,000 bytes take minutes, and have been tried. A frame of the log is a head of 24 bytes and a page.
    frames = range(32, len(content) + 1, 24 + 512)
    for size in sorted({0, 1, 31, *(frame + k for frame in frames for k in (0, 1, 23, 24, 300, 535))}):
        cut.write_bytes(before)
        part.write_bytes(content[:size])
        database = sqlite3.connect(cut)
        counted = database.execute("SELECT count(*) FROM chunks").fetchone()[0]
        begun = database.execute("SELECT count(*) FROM plans").fetchone()[0]
        database.close()
        made = sum(begin <= size for begin in drawn)
        assert counted <= made <= counted + begun
        seen.add((counted, begun))
    assert seen == {(k, b) for k in range(len(drawn) + 1) for b in (0, 1)} - {(len(drawn), 1)}


def worker(work: Callable[[], object]) -> Any:
    """A process of its own, which a fork starts without importing everything again."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def test_a_kill_at_any_time_loses_nothing_that_was_counted(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path, UNSEEDED)

    def work() -> None:
        while True:
            night(path, UNSEEDED)

    counted = _chunks(path)
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
        process = worker(work)
        deadline = time.monotonic() + 100
        while _chunks(path) == counted and time.monotonic() < deadline:  # one at least in each process
            time.sleep(0.005)
        before = _chunks(path)
        time.sleep(delay)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        counted = _chunks(path)
        assert counted >= before
        assert verify_ledger(path)[1]
    closed = [series for series in Store(path).series() if series.closed]
    assert night(path, UNSEEDED).verdict != Verdict.ERROR
    assert len(closed) <= 5


def _chunks(path: Path) -> int:
    return int(rows(path, "SELECT count(*) FROM chunks")[0][0])


def test_a_kill_when_the_night_is_written_keeps_its_chunks(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    before = night(path, UNSEEDED)

    def work() -> None:
        def kill(_learner: EventLearner) -> bytes:
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        vars(auditor.runs.ledger.session)["write_state"] = kill
        night(path, UNSEEDED)

    process = worker(work)
    process.join(100)
    assert process.exitcode == -signal.SIGKILL
    assert rows(path, "SELECT verdict FROM nights ORDER BY number")[1:] == [(None,)]
    assert any("did not end" in line for line in format_ledger(path))
    after = night(path, UNSEEDED)
    assert (after.ledger["night"], after.draws, after.ledger["afresh"]) == (3, 6_000, "")
    assert after.ledger["first_chunk"] > before.ledger["chunks"]
    assert verify_ledger(path) == (["1 series: all are as recorded"], True)


def test_a_full_disk_stops_before_drawing_or_closes(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path, UNSEEDED)
    before = path.read_bytes()
    seen = set()
    for size in range(0, 70_000, 2_000):
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(before)
        here, there = os.pipe()

        def work(limit: int = size, pipe: int = there) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + limit, resource.RLIM_INFINITY))
            forget()
            result = night(path, UNSEEDED)
            said = result.verdict == Verdict.ERROR and "cannot be written" in result.message
            os.write(pipe, struct.pack("=?q", said, sum(CALLS)))
            os._exit(0)

        process = worker(work)
        process.join(100)
        os.close(there)
        answer = os.read(here, 100)
        os.close(here)
        said, drawn = struct.unpack("=?q", answer)
        ((counted,),) = rows(path, "SELECT 2 * sum(n) FROM chunks")
        ((begun,),) = rows(path, "SELECT coalesce(2 * sum(n), 0) FROM plans")
        assert counted - 2_000 <= drawn <= counted - 2_000 + begun
        assert verify_ledger(path)[1]
        seen.add((said, drawn == counted - 2_000))
    # It stops before a chunk, or before a chunk is counted; if the disk is large enough, neither.
    assert seen == {(True, True), (True, False), (False, True)}


# ------------------------------------------------------------------------------------------ doubts


def doubts(monkeypatch: pytest.MonkeyPatch, *p_values: float) -> list[float]:
    """What the looks at refutations find, one after the other; those that are left over.

    The tests beforehand ask again in 1 of 1,000 cases, where it would be 1 of 20: what is drawn here depends on the
    source of this file, so that each change of it would be another try.
    """
    left = list(p_values)
    monkeypatch.setattr(dependence, "ASK", 1e-3)
    monkeypatch.setattr(dependence, "doubt_of_all", lambda traces: (list(traces), Doubt(left.pop(0), "a pattern"))[1])
    return left


REFUTED = replace(SEEDED, draws=8_000, alpha=1e-6)


def test_a_refutation_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    left = doubts(monkeypatch, 1.0)
    # 1.0986 against 0.5 gains 0.06 nats a draw: the first night refutes it, with a probability far above 1 - 1e-6.
    assert [night(path, REFUTED, 0.5).verdict for _ in range(3)] == [Verdict.VIOLATION] * 3
    assert left == []
    assert [series.looked for series in Store(path).series()] == [""]
    assert verify_ledger(path)[1]


def test_a_doubt_stays_and_draws_made_one_a_call_are_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    small = replace(REFUTED, draws=500)
    first = doubts(monkeypatch, 1e-4, 1.0)  # the second is of the draws made one a call, once they refute
    results = [night(path, small, 0.9)]
    while results[-1].verdict != Verdict.VIOLATION and len(results) < 40:
        results.append(night(path, small, 0.9))
    whole, alone = Store(path).series()
    asked = [result for result in results if result.independence["asked"]]
    assert (whole.alone, alone.alone) == (False, True)
    assert whole.looked == "a pattern (p = 0.0002 in an earlier run)"  # twice: the tests beforehand count too
    assert alone.looked == ""
    assert first == []
    assert len(asked) >= 2  # 13.8 nats at 0.008 a draw and side take 1,700 draws, a night has 500
    assert [result.verdict for result in asked[:-1]] == [Verdict.INCONCLUSIVE] * (len(asked) - 1)
    assert asked[-1].draws == 500 * (len(asked) - 1) + asked[-1].ledger["own_draws"]
    assert rows(path, "SELECT count(*) FROM nights WHERE series = 1") == [(len(results) - len(asked) + 1,)]
    assert night(path, small, 0.9).verdict == Verdict.VIOLATION
    assert verify_ledger(path)[1]


def test_draws_made_one_a_call_that_look_dependent_never_refute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger"
    left = doubts(monkeypatch, 1e-4, 1e-4)
    results = [night(path, REFUTED, 0.5) for _ in range(3)]
    assert [result.verdict for result in results] == [Verdict.INCONCLUSIVE] * 3
    assert all(result.independence["still"] for result in results)
    assert left == []
    assert verify_ledger(path)[1]
    assert any(line.startswith("doubted: ") for line in format_ledger(path))


def test_a_night_that_ends_during_the_look_leaves_a_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"

    def kill(_traces: object) -> Doubt:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(dependence, "doubt_of_all", kill)
        with pytest.raises(Killed):
            night(path, REFUTED, 0.5)
    assert Store(path).series()[0].looked == UNSEEN
    doubts(monkeypatch, 1.0)
    result = night(path, REFUTED, 0.5)
    assert result.verdict == Verdict.VIOLATION  # by draws one a call
    assert UNSEEN in result.message
    # A series that is begun anew has the doubts of the one before.
    change(path, "UPDATE series SET closed = 'then' WHERE alone = 0")
    change(path, "UPDATE series SET closed = 'then' WHERE alone = 1")
    doubts(monkeypatch)
    assert night(path, replace(REFUTED, draws=100), 0.5).verdict == Verdict.INCONCLUSIVE


class Liar:
    """Makes calls ahead, and is found out when an alarm is reviewed."""

    def expect(self, sampler: Sampler, calls: object) -> None:
        """Nothing is made ahead."""

    def answer(self, sampler: Sampler, data: int, call: Call) -> Any:
        return sampler.ask(data, call)

    def reviewed(self, _sampler: Sampler) -> bool:
        return False

    def close(self) -> None:
        """It holds nothing."""


def test_an_alarm_that_does_not_stand_review_closes_the_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    doubts(monkeypatch, 1.0, 1.0)
    liar: Any = Liar()
    result = night(path, REFUTED, 0.5, ahead=lambda _datasets: liar)
    assert result.verdict == Verdict.VIOLATION  # of what was drawn once more: 0.06 nats a draw leave no doubt
    assert result.alpha == pytest.approx(0.05 * REFUTED.alpha)
    assert "a second process" in result.ledger["afresh"]
    first, second = Store(path).series()
    assert (first.closed is None, second.closed is None) == (False, True)
    assert past_of(Store(path), 1).chunks != past_of(Store(path), 2).chunks  # other draws
    assert verify_ledger(path)[1]
