"""The ledger: evidence adds up from run to run, each draw once, whatever is killed, raced or changed meanwhile."""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import os
import sqlite3
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import report
from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import ChunkPlan, Settings
from auditor.datasets import Pair
from auditor.errors import SpecificationError, UnrecordedError
from auditor.events.event_learner import EventLearner
from auditor.events.learner_state import restore_state, write_state
from auditor.evidence.two_sample_bet import Stake
from auditor.privacy.guarantees import PureDP
from auditor.results import AuditResult, Verdict, result_from
from auditor.runs.ledger import Ledger, Night
from auditor.runs.ledger.fingerprint import collect_parts, fingerprint_parts
from auditor.runs.ledger.record import stake_of, stake_text
from auditor.runs.ledger.show import as_json, format_ledger, verify_ledger
from auditor.runs.ledger.store import Store
from auditor.targets import target_from
from auditor.targets.content import spell_out
from auditor.targets.process import ProcessTarget
from auditor.targets.sampler import Sampler
from tests.commandline import Command

ID = "own/coin/L1/pure_dp/given"
PAIR = [Pair(0, 1, "0 against 1")]
SMALL = Settings(draws=2_000, independence=False, alpha=1e-3)


@pytest.fixture(autouse=True)
def fixed_identities(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new ledger draws new numbers; here those of the test's first, second, ... one are always the same."""
    numbers = itertools.count(1)
    monkeypatch.setattr("auditor.runs.ledger.store.uuid.uuid4", lambda: uuid.UUID(int=next(numbers)))


def coin(data: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Randomised response with epsilon = ln 3: epsilon 1 is violated, but slightly."""
    return np.where(rng.random(n) < 0.75, data, 1 - data)


def night(
    path: Path, mechanism: Any = coin, settings: Settings = SMALL, epsilon: float = 1.5, **labels: Any
) -> AuditResult:
    """One night of a claim."""
    question = Question(ID, ledger=Ledger(path), **labels)
    return run_audit(mechanism, PureDP(epsilon), PAIR, settings, question)


def rows(path: Path, statement: str) -> list[Any]:
    database = sqlite3.connect(path)
    try:
        return database.execute(statement).fetchall()
    finally:
        database.close()


def change(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    with database:
        assert database.execute(statement).rowcount != 0
    database.close()


# ------------------------------------------------------------------------------------------ adding up


def test_nights_add_up_and_chunk_numbers_continue(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    results = [night(path) for _ in range(3)]
    assert [result.draws for result in results] == [2_000, 4_000, 6_000]
    assert [result.ledger["own_draws"] for result in results] == [2_000] * 3
    assert [result.ledger["night"] for result in results] == [1, 2, 3]
    first = [result.ledger["first_chunk"] for result in results]
    assert first == [0, results[0].ledger["chunks"], results[0].ledger["chunks"] + results[1].ledger["chunks"]]
    assert (results[2].ceiling or 0.0) > (results[0].ceiling or math.inf)
    assert results[2].wealth["draws"][-1] == 6_000
    # The record has the run's own chunks; all of them are in the file.
    assert 2 * sum(n for _, n, _ in results[2].record["chunks"]) == 2_000
    assert rows(path, "SELECT count(*), 2 * sum(n), min(number), max(number) FROM chunks")[0] == (
        first[2] + results[2].ledger["chunks"],
        6_000,
        0,
        first[2] + results[2].ledger["chunks"] - 1,
    )
    assert verify_ledger(path) == (["1 series: all are as recorded"], True)


def test_names_and_datasets_with_half_a_surrogate_pair_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    question = Question("attack/\udcff.py:coin", ledger=Ledger(path, named="\udcff.py:coin"))
    pair = Pair("\udcff", "a", "texts")
    for number in (1, 2):
        result = run_audit(lambda data, n, rng: coin(len(data), n, rng), PureDP(1.5), [pair], SMALL, question)
        assert (result.id, result.ledger["night"]) == (question.id, number)
    assert rows(path, "SELECT claim FROM series") == [("attack/\\udcff.py:coin",)]
    assert verify_ledger(path)[1]


def test_no_draw_is_made_twice_with_the_same_seed_every_night(tmp_path: Path) -> None:
    seen: list[float] = []

    def logging(data: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        uniform = rng.random(n)
        seen.extend(uniform.tolist())
        return np.where(uniform < 0.75, data, 1 - data)

    for _ in range(4):
        night(tmp_path / "ledger", logging)
    # Two of 8,000 doubles of 53 bits are the same with a probability of 4e-9.
    assert len(seen) == 8_000 == len(set(seen))
    # Another ledger draws other numbers, with the same seed: its identity is in the key.
    night(tmp_path / "other", logging)
    assert len(seen) == 10_000 == len(set(seen))


def test_a_bet_is_read_as_it_was_written() -> None:
    bet = Stake(3, 1, (0.5, 0.25), (0.4, 0.125), (5, 3, 2), (6, 4, 0), (1,), 0.5, 12.0)
    assert stake_of(stake_text(bet)) == bet
    # A ledger from before `Stake.draws` was there.
    assert stake_of("[3, 1, [0.5, 0.25], [0.4, 0.125], [5, 3, 2], [6, 4, 0], [1], 0.5]") == replace(bet, draws=0.0)


def test_a_violation_too_small_for_a_night_is_found_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    results: list[AuditResult] = []
    # ln 3 = 1.0986 against 1: 0.0019 nats a draw and side; 40 nights of 1,000 a side have 76, 13.8 are needed.
    settings = replace(SMALL, draws=2_000, alpha=1e-6)
    while len(results) < 40 and not (results and results[-1].verdict == Verdict.VIOLATION):
        results.append(night(path, settings=settings, epsilon=1.0))
    assert results[0].verdict != Verdict.VIOLATION
    assert results[-1].verdict == Verdict.VIOLATION
    again = night(path, settings=settings, epsilon=1.0)
    assert again.verdict == Verdict.VIOLATION
    assert again.ledger["own_draws"] == 0
    assert again.counterexample is not None
    assert again.log10_max_e_value == pytest.approx(results[-1].log10_max_e_value)
    assert again.lower_bound == results[-1].lower_bound
    assert verify_ledger(path)[1]


def test_the_bound_is_that_of_all_chunks(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    settings = replace(SMALL, draws=20_000)
    bounds = [night(path, settings=settings).lower_bound or 0.0 for _ in range(6)]
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0]


def test_what_learners_know_comes_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    learner = EventLearner(PureDP(1.0), 0.01)
    for n in (8, 40, 200, 800):
        x, y = rng.integers(0, 1000, n) + 300, rng.integers(0, 1000, n)
        learner.add(x, y, learner.count(x, y))
        learner.learn(False)
    other = EventLearner(PureDP(1.0), 0.01)
    restore_state(other, write_state(learner))
    assert other.n == learner.n
    known = {(finalist.chain, finalist.best): finalist for finalist in other.finalists}
    assert learner.finalists
    for finalist in learner.finalists:
        mine = known[finalist.chain, finalist.best]
        assert (mine.n, mine.x.tolist(), mine.y.tolist()) == (finalist.n, finalist.x.tolist(), finalist.y.tolist())
    for own, theirs in zip(other.reservoir.draws(), learner.reservoir.draws(), strict=True):
        np.testing.assert_array_equal(own, theirs)
    with pytest.raises(SpecificationError, match="what was learned cannot be read"):
        restore_state(EventLearner(PureDP(1.0), 0.01), b"not that")


def test_outputs_of_any_kind_are_remembered(tmp_path: Path) -> None:
    def symbols(data: int, n: int, rng: np.random.Generator) -> list[Any]:
        return [(None, "yes" if flip else "no", float(flip)) for flip in coin(data, n, rng)]

    results = [night(tmp_path / "ledger", symbols) for _ in range(2)]
    assert results[1].draws == 4_000
    assert results[1].ledger["chunks"] < results[0].ledger["chunks"] / 3  # it went on where it was


# ------------------------------------------------------------------------------------------ what is the same


def test_another_claim_mechanism_or_key_starts_afresh_and_a_return_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path)
    other = night(path, epsilon=1.6)
    assert (other.ledger["night"], other.draws, other.ledger["afresh"]) == (1, 2_000, "changed: claim")
    keyed = run_audit(coin, PureDP(1.5), PAIR, SMALL, Question(ID, ledger=Ledger(path, key="v2")))
    assert (keyed.draws, keyed.ledger["afresh"]) == (2_000, "changed: claim, key")
    assert night(path).draws == 4_000
    assert len(Store(path).series()) == 3


def test_what_a_mechanism_is_made_of_is_spelled_out() -> None:
    def made(p: float) -> Callable[..., Any]:
        return lambda data, n, rng: np.where(rng.random(n) < p, data, 1 - data)

    assert spell_out(made(0.7)) == spell_out(made(0.7)) != spell_out(made(0.8))
    assert spell_out(np.arange(3)) == spell_out(np.arange(3)) != spell_out(np.arange(3.0))
    assert spell_out({"a", "b", "c"}) == spell_out({"c", "b", "a"})
    parts = collect_parts(made(0.7), PureDP(1.0), PAIR, None, "")
    assert fingerprint_parts(parts) != fingerprint_parts(
        collect_parts(made(0.7), PureDP(1.0), [Pair(0, 2, "0 against 1")], None, "")
    )
    assert fingerprint_parts(parts) == fingerprint_parts(collect_parts(made(0.7), PureDP(1.0), PAIR, None, ""))


def test_a_private_dataset_leaves_no_hash() -> None:
    one, other = [Pair([0], [1], "a against b")], [Pair([0], [2], "a against b")]
    parts = [collect_parts(coin, PureDP(1.0), pairs, None, "", True) for pairs in (one, other)]
    assert parts[0] == parts[1]


SOURCES = {
    "target.py": "from noise.shift import flip\n\ndef noisy(data, n, rng):\n    return flip(sum(data), n, rng)\n",
    "noise/__init__.py": "",
    "noise/shift.py": "from .deeper import P\nimport numpy as np\n\ndef flip(x, n, rng):\n"
    "    return np.where(rng.random(n) < P, x, 1 - x)\n",
    "noise/deeper.py": "P = 0.75\n",
    "noise/unused.py": "Q = 1\n",
}


def test_a_change_of_an_imported_file_is_one_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = target_from("target.py:noisy")
    process = ProcessTarget([sys.executable, "target.py"])
    for target, named in ((loaded, None), (process, "exec:python target.py")):

        def parts(target: Any = target, named: str | None = named) -> dict[str, str]:
            return collect_parts(target, PureDP(1.0), PAIR, named, "")

        before = parts()
        (tmp_path / "noise" / "unused.py").write_text("Q = 22\n", encoding="utf-8")
        assert parts() == before
        (tmp_path / "noise" / "deeper.py").write_text("P = 0.7\n", encoding="utf-8")
        changed = parts()
        assert {name for name in before if before[name] != changed[name]} == {"source"}
        (tmp_path / "noise" / "deeper.py").write_text(SOURCES["noise/deeper.py"], encoding="utf-8")
        assert parts() == before


def test_another_version_of_a_dependency_starts_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    night(path)
    monkeypatch.setattr("auditor.runs.ledger.fingerprint.list_versions", lambda _names: ["numpy 99"])
    assert night(path).ledger["afresh"] == "changed: versions"


# ------------------------------------------------------------------------------------------ who writes


def worker(path: Path, nights: int) -> BaseProcess:
    """A process of its own, which a fork starts without importing everything again."""

    def work() -> None:
        for _ in range(nights):
            night(path)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def test_concurrent_processes_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    workers = [worker(path, 4), worker(path, 4)]
    for process in workers:
        process.join(100)
    assert [process.exitcode for process in workers] == [0, 0]
    assert rows(path, "SELECT count(*), sum(draws) FROM nights") == [(8, 16_000)]
    assert rows(path, "SELECT 2 * sum(n) FROM chunks") == [(16_000,)]
    assert verify_ledger(path) == (["1 series: all are as recorded"], True)


def test_of_two_that_drew_the_same_chunk_numbers_only_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path)
    ledger = Ledger(path)
    # A lock of the system does not hold back the process that has it, so that both begin: as if there were no locks.
    with ledger.night(coin, PureDP(1.5), PAIR, SMALL, ID, False) as late:
        assert isinstance(late, Night)
        sampler = Sampler(coin, 0, late.key)
        past = late.past(sampler)
        night(path)
        with pytest.raises(SpecificationError, match="another process counted the same chunks"):
            late.plan(len(past.chunks), ChunkPlan(0, 8, None, None), sampler)
    assert rows(path, "SELECT verdict FROM nights ORDER BY number")[1] == (None,)
    assert rows(path, "SELECT count(*) FROM plans") == [(0,)]
    assert verify_ledger(path)[1]


# ------------------------------------------------------------------------------------------ targets


def test_dependent_draws_have_a_series_of_their_own(tmp_path: Path) -> None:
    def shared(data: int, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.full(n, rng.laplace()) + data

    settings = Settings(draws=400, comparisons=24, alpha=1e-9)
    results = [night(tmp_path / "ledger", shared, settings, epsilon=50.0) for _ in range(2)]
    assert [result.verdict for result in results] == [Verdict.DEVIATION] * 2
    assert [result.draws for result in results] == [400, 800]
    assert [series.alone for series in Store(tmp_path / "ledger").series()] == [True]


def test_a_ledger_holds_no_outputs_of_private_data(tmp_path: Path) -> None:
    def secret(data: int, n: int, rng: np.random.Generator) -> list[str]:
        return [f"hunter{value}" for value in coin(data, n, rng)]

    path = tmp_path / "ledger"
    results = [night(path, secret, private=True) for _ in range(2)]
    assert results[1].draws == 4_000
    assert rows(path, "SELECT count(*) FROM memory") == [(0,)]
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"hunter" not in content
    refuted = [night(path, secret, replace(SMALL, draws=20_000), 0.8, private=True) for _ in range(2)]
    assert refuted[-1].verdict == Verdict.VIOLATION
    assert refuted[-1].counterexample is not None


# ------------------------------------------------------------------------------------------ what is refused


def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("x" * 200, encoding="utf-8")
    other = tmp_path / "other"
    sqlite3.connect(other).execute("CREATE TABLE mine (a)").connection.close()
    old = tmp_path / "old"
    night(old)
    change(old, "UPDATE meta SET value = 'dpaudit-ledger/9' WHERE name = 'schema'")
    contents = [path.read_bytes() for path in (text, other)]
    for path, said in ((text, "not a database"), (other, "is not a ledger"), (old, "'dpaudit-ledger/9'")):
        with pytest.raises(SpecificationError, match=said):
            night(path)
        with pytest.raises(SpecificationError, match=said):
            format_ledger(path)
    assert [path.read_bytes() for path in (text, other)] == contents
    with pytest.raises(SpecificationError, match="is a file, got"):
        Ledger(tmp_path)
    with pytest.raises(SpecificationError, match="no such folder"):
        Ledger(tmp_path / "nowhere" / "ledger").prepare()
    with pytest.raises(SpecificationError, match="clopper-pearson"):
        night(tmp_path / "new", settings=Settings(method="clopper-pearson"))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE chunks SET log = log + 0.01 WHERE number = 9", "the wealth after chunk 9"),
        ("UPDATE chunks SET n = n + 1 WHERE number = 9", "counts"),
        ("UPDATE series SET claimed = 'ε = 9 (pure DP)'", "ε = 9"),
        ("UPDATE series SET fingerprint = 'another'", "'another'"),
        ("DELETE FROM chunks WHERE number = 9", "chunk numbers"),
        ("DELETE FROM chunks WHERE number = (SELECT max(number) FROM chunks)", "night 2 says 5 chunks"),
        ("UPDATE nights SET verdict = 'consistent' WHERE number = 2", "its wealth says otherwise"),
        ("UPDATE chunks SET stake = replace(stake, '0.7', '0.8') WHERE number > 20", "the wealth after chunk 2"),
        ("UPDATE chunks SET stake = '[' WHERE number = 9", "is damaged"),
        ("UPDATE chunks SET pair = 7 WHERE number = 9", "pair 7"),
        ("UPDATE nights SET alpha = 0.95 WHERE number = 1", "alpha 0.95"),
        ("UPDATE nights SET alpha = 0", "alpha 0, attempt 1"),
        ("UPDATE nights SET alpha = 'x', lower_bound = NULL WHERE number = 1", "alpha 'x', which is no number"),
        ("UPDATE nights SET lower_bound = lower_bound * 1.01 WHERE number = 2", "says lower bound"),
        ("UPDATE nights SET lower_bound = 'x'", "lower bound 'x', which is no number"),
        ("UPDATE nights SET lower_bound = lower_bound - 0.02", "says lower bound"),
        ("UPDATE series SET attempt = 2", "it is attempt 2"),
    ],
)
def test_verify_sees_what_is_not_as_recorded(statement: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    for _ in range(2):  # 1,000 draws a side and night leave no doubt of 1.0986 against 0.5: every late chunk is bet on
        night(path, settings=replace(SMALL, stop="budget"), epsilon=0.5)
    change(path, statement)
    found, sound = verify_ledger(path)
    assert not sound
    assert said in " ".join(found)


def test_verify_judges_by_the_rule_of_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A refutation waits for all smaller levels: where they have not been rejected, the wealth alone is no violation.
    path = tmp_path / "ledger"
    monkeypatch.setattr("auditor.audits.privacy_loop.rejects_below", lambda *_: False)
    assert night(path, epsilon=0.5).verdict != Verdict.VIOLATION
    assert rows(path, "SELECT max(log) > 7 FROM chunks") == [(1,)]  # ln(1/alpha) = 6.9
    assert "its wealth says otherwise" in " ".join(verify_ledger(path)[0])
    monkeypatch.setattr("auditor.runs.ledger.show.rejects_below", lambda *_: False)
    assert verify_ledger(path)[1]


def test_what_was_learned_and_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path)
    change(path, "UPDATE memory SET content = x'00'")
    with pytest.raises(SpecificationError, match="what was learned cannot be read"):
        night(path)


def test_a_ledger_is_read_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a ledger?"
    night(path)
    shown = format_ledger(path)
    monkeypatch.setattr(os, "access", lambda *_: False)  # as on read-only media, also for root
    with Store(path) as store:
        assert len(store.series()) == 1
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a ledger?", "a ledger?.lock"]
        with pytest.raises(UnrecordedError, match="readonly"), store.transaction() as database:
            database.execute("DELETE FROM chunks")
    assert format_ledger(path) == shown
    assert verify_ledger(path)[1]


# ------------------------------------------------------------------------------------------ command line and results


def test_a_result_says_what_is_its_own(tmp_path: Path) -> None:
    result = night(tmp_path / "ledger")
    record = result.to_json()
    assert record["ledger"]["own_draws"] == 2_000
    assert result_from(record).to_json() == record
    plain = run_audit(coin, PureDP(1.5), PAIR, SMALL, Question(ID))
    assert "ledger" not in plain.to_json()


def test_a_list_of_claims(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path)
    night(path)
    night(path, epsilon=1.7)
    shown = format_ledger(path)
    assert any("ε = 1.7" in line and "2,000" in line for line in shown)
    assert not any("ε = 1.5" in line for line in shown)
    assert any("ε = 1.5" in line and "4,000" in line for line in format_ledger(path, everything=True))
    content = json.loads("\n".join(as_json(path)))
    assert [series["nights"] for series in content["series"]] == [2, 1]
    Ledger(tmp_path / "empty").prepare()
    assert format_ledger(tmp_path / "empty")[1] == "nothing is counted yet"


CLAIMS = """
import numpy as np
from auditor import PureDP, Pair
from auditor.claims import Source, conformity, entry
from auditor.claims import privacy

def coin(data, n, rng):
    return np.where(rng.random(n) < 0.7, data, 1 - data)

@entry("own/coin", source=Source("own", "here"), title="A coin")
def declared():
    yield privacy(coin, PureDP(1.0), pairs=[Pair(0, 1, "0 against 1")], case="one")
    yield privacy(coin, PureDP(0.9), pairs=[Pair(0, 1, "0 against 1")], case="two")
"""


def test_the_list_shows_the_last_night_though_a_clock_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    night(path)
    change(path, "UPDATE nights SET begun = '2031-01-01T00:00:00Z', ended = '2031-01-01T00:00:00Z'")
    night(path, lambda data, n, rng: np.full(n, data))
    lines = format_ledger(path)
    assert [line.split()[-2] for line in lines if line.startswith(ID)] == ["violation"], lines
    night(path)
    assert [line.split()[-2] for line in format_ledger(path) if line.startswith(ID)] != ["violation"]


def test_runs_carry_claims_and_say_so(dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.py").write_text(CLAIMS, encoding="utf-8")
    command = ["run", "claims.py", "--draws", "4000", "--ledger", "nights.db", "--out", "out"]
    for expected in (4_000, 8_000):
        done = dpaudit(*command, "--jobs", "1")
        assert done.code in (0, 3), done
        content = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
        assert [claim["draws"] for claim in content["claims"]] == [expected] * 2
        assert content["manifest"]["ledger"] == "nights.db"
        jsonschema.validate(content, report.read_schema())
    assert "--ledger nights.db" in content["claims"][0]["replay"]
    shown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8") + (
        tmp_path / "out" / "report.html"
    ).read_text()
    assert "8,000, of which 4,000 in this run" in shown
    assert "own/coin/L1/pure_dp/one" in dpaudit("ledger", "nights.db").out
    assert dpaudit("ledger", "nights.db", "--verify").code == 0
    change(tmp_path / "nights.db", "UPDATE chunks SET log = log - 1")
    assert dpaudit("ledger", "nights.db", "--verify").code == 1
    reproduced = dpaudit("reproduce", "out/results.json")
    assert reproduced.code == 2
    assert "dpaudit ledger nights.db --verify" in reproduced.err


def test_attacks_carry_and_say_so(dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coin.py").write_text(
        "def coin(data, n, rng):\n    return (rng.random(n) < 0.7) ^ bool(sum(data) % 2)\n", encoding="utf-8"
    )
    command = ["attack", "coin.py:coin", "--claim", "epsilon=1", "--relation", "replace-one", "--domain", "0,1"]
    command += ["--rows", "1", "--draws", "3000", "--ledger", "nights.db"]
    first, second = dpaudit(*command), dpaudit(*command)
    assert first.code in (0, 3), first
    assert "3,000 draws, of which 3,000 in this run, number 1 of its ledger" in first.out
    assert "6,000 draws, of which 3,000 in this run, number 2 of its ledger" in second.out
    other = dpaudit(*command, "--ledger-key", "v2")
    assert "number 1 of its ledger, started afresh (changed: key)" in other.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "claims.py", "--ledger", "bad"], "'bad'"),
        (["run", "claims.py", "--ledger", ""], "got ''"),
        (["run", "claims.py", "--ledger", "new", "--method", "clopper-pearson"], "clopper-pearson"),
        (["run", "claims.py", "--ledger-key", "v1"], "'v1'"),
        (["ledger", "nowhere"], "'nowhere'"),
        (["attack", "claims.py:coin", "--claim", "epsilon=1", "--adversary", "packing", "--ledger", "new"], "new"),
    ],
)
def test_bad_input_says_what_it_was(
    dpaudit: Command, arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.py").write_text(CLAIMS, encoding="utf-8")
    (tmp_path / "bad").write_text("bad" * 100, encoding="utf-8")
    done = dpaudit(*arguments)
    assert done.code == 2
    assert said in done.err
    assert (tmp_path / "bad").read_text(encoding="utf-8") == "bad" * 100
    assert not os.path.exists(tmp_path / "new")
