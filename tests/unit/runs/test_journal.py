"""Interrupted runs go on where they stopped, and end with the same bytes as if nothing had happened."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor.errors import SpecificationError
from auditor.results import AuditResult, Counterexample, Verdict, result_from
from auditor.runs import journal
from auditor.runs.journal import Journal
from auditor.targets.content import spell_out
from tests.commandline import (
    HELD,
    QUICK,
    REPORTS,
    ROOT,
    Command,
    complaints,
    declare,
    interrupt,
    process,
    read,
    refused,
    start,
    until,
)

# ----------------------------------------------------------------------- results to JSON and back

texts = st.text(max_size=12)
numbers = st.floats(allow_nan=True, allow_infinity=True)
levels = st.none() | numbers
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
records = st.dictionaries(texts, plain_values, max_size=3)
#: What a field may hold, by its annotation.
BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "str": texts | st.sampled_from(["inf", "nan", "-inf"]),
    "float": numbers,
    "float | None": levels,
    "int": st.integers(0, 10**12),
    "bool": st.booleans(),
    "str | None": st.none() | texts,
    "Verdict": st.sampled_from(list(Verdict)),
    "Mapping[str, Any]": records,
    "Mapping[str, Any] | None": st.none() | records,
    "Sequence[Mapping[str, Any]]": st.lists(records, max_size=3),
    "Sequence[str]": st.lists(texts, max_size=3),
    "Mapping[str, str]": st.dictionaries(texts, texts, max_size=3),
    "Mapping[str, float]": st.dictionaries(texts, numbers, max_size=3),
}


def made(kind: type, **special: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = {f.name: special[f.name] if f.name in special else BY_TYPE[str(f.type)] for f in dataclasses.fields(kind)}
    return st.builds(kind, **fields)


audit_results = made(AuditResult, counterexample=st.none() | made(Counterexample))


def written(result: AuditResult) -> str:
    return json.dumps(result.to_json(), allow_nan=False)


# How long an example takes to make or to run is a matter of the machine's load.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(audit_results)
def test_a_result_read_from_its_record_writes_the_same_record(result: AuditResult) -> None:
    assert written(result_from(json.loads(written(result)))) == written(result)


def a_result(id_: str = "a/b/L1/x/y", verdict: str = "consistent", **fields: Any) -> AuditResult:
    return AuditResult(
        id=id_,
        entry="a/b",
        source={"document": "a", "place": "b"},
        level="L1",
        notion="pure DP",
        claimed="ε = 1",
        claimed_level=1.0,
        parameters={},
        alpha=0.01,
        verdict=Verdict(verdict),
        expected=Verdict.CONSISTENT,
        **fields,
    )


def test_infinite_levels_are_numbers_again() -> None:
    back = result_from(a_result(exact=math.inf, lower_bound=-math.inf, ceiling=math.nan).to_json())
    assert (back.exact, back.lower_bound) == (math.inf, -math.inf)
    assert back.ceiling is not None
    assert math.isnan(back.ceiling)
    assert back.verdict is Verdict.CONSISTENT


@pytest.mark.parametrize(
    "change", [{"verdict": "private"}, {"surplus": 1}, {"id": None, "entry": ...}, {"counterexample": {"pair": "x"}}]
)
def test_what_is_no_record_of_a_result_is_refused(change: dict[str, Any]) -> None:
    record = a_result().to_json() | change
    record = {key: value for key, value in record.items() if value is not ...}
    with pytest.raises(ValueError, match="not the record of a result"):
        result_from(record)


# ------------------------------------------------------------------------------ the file itself

ABOUT = {"seed": 0, "libraries": {"numpy": "2.0"}, "claims_selected": 3}


def test_a_journal_gives_back_what_was_appended(tmp_path: Path) -> None:
    path = tmp_path / journal.NAME
    first, second = a_result("a/b/L1/x/1", exact=math.inf), a_result("a/b/L1/x/2", message="line\nbreak \u2028")
    with Journal(path, ABOUT, {first.id: (first, 0.25)}) as log:
        log.append(second, 1 / 3)
    kept = journal.read_journal(path)
    assert kept.about == ABOUT
    assert kept.unreadable == 0
    assert [(written(result), took) for result, took in kept.finished.values()] == [
        (written(first), 0.25),
        (written(second), 1 / 3),
    ]
    assert path.read_bytes().count(b"\n") == 3
    results = tmp_path / "results.json"
    with pytest.raises(SpecificationError, match=r"results\.json"):
        log.remove(results)  # which are not there: the journal is all there is
    assert path.exists()
    results.touch()
    log.remove(results)
    assert not path.exists()


def test_each_claim_is_one_append_that_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        true = getattr(os, name)

        def call(*arguments: Any) -> Any:
            calls.append(name)
            return true(*arguments)

        return call

    with Journal(tmp_path / journal.NAME, ABOUT, {}) as log:
        for name in ("write", "fsync"):
            monkeypatch.setattr(os, name, counted(name))
        log.append(a_result(record={"chunks": [[0, 1, 2]] * 50_000}), 1.0)
    assert calls == ["write", "fsync"]


@pytest.mark.parametrize("cut", [1, 2, 100])
def test_a_line_that_was_cut_by_a_power_failure_is_left_out(tmp_path: Path, cut: int) -> None:
    path = tmp_path / journal.NAME
    with Journal(path, ABOUT, {}) as log:
        for k in range(3):
            log.append(a_result(f"a/b/L1/x/{k}"), 1.0)
    path.write_bytes(path.read_bytes()[:-cut])
    kept = journal.read_journal(path)
    # Without its line break alone, the last line is still whole.
    assert (len(kept.finished), kept.unreadable) == ((3, 0) if cut == 1 else (2, 1))


@pytest.mark.parametrize("bad", [b"\x00" * 40, b"[]", b"{}", b'{"run": "another", "seconds": 1, "claim": {}}', b"\xff"])
def test_a_line_that_cannot_be_read_loses_its_own_claim_only(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / journal.NAME
    with Journal(path, ABOUT, {}) as log:
        for k in range(3):
            log.append(a_result(f"a/b/L1/x/{k}"), 1.0)
    lines = path.read_bytes().split(b"\n")
    lines[2] = bad
    path.write_bytes(b"\n".join(lines))
    kept = journal.read_journal(path)
    assert list(kept.finished) == ["a/b/L1/x/0", "a/b/L1/x/2"]
    assert kept.unreadable == 1


@pytest.mark.parametrize("change", [{"lower_bound": {}}, {"source": True}, {"tradeoff": {"points": [[0.5]]}}])
def test_a_claim_that_no_report_can_show_is_not_taken(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / journal.NAME
    with Journal(path, ABOUT, {}) as log:
        for k in range(2):
            log.append(a_result(f"a/b/L1/x/{k}"), 1.0)
    head, first, second, _ = path.read_bytes().split(b"\n")
    entry = json.loads(first)
    entry["claim"] |= change
    path.write_bytes(b"\n".join([head, json.dumps(entry).encode(), second, b""]))
    kept = journal.read_journal(path)
    assert (list(kept.finished), kept.unreadable) == (["a/b/L1/x/1"], 1)


def test_a_full_disk_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with Journal(tmp_path / journal.NAME, ABOUT, {}) as log:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(SpecificationError, match=r"cannot write to .*journal\.jsonl.*No space left"):
            log.append(a_result(), 1.0)


FRAME = "pd.DataFrame({'a': [1, 2], 'b': ['x', None]})"
DATASETS = (
    "np.arange(3)",
    "np.arange(3.0)",
    "np.arange(4)",
    "np.arange(4).reshape(2, 2)",
    "[1, 2]",
    "[1, 3]",
    "{'rows': (1, 2)}",
    FRAME,
    FRAME.replace("[1, 2]", "[1, 3]"),
    FRAME.replace("'a'", "'c'"),
    "np.array([None, 'x'], dtype=object)",
)


def test_texts_of_datasets_are_of_their_content_and_the_same_in_every_process() -> None:
    code = "import numpy as np, pandas as pd; from auditor.targets.content import spell_out as h; "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print([h(data) for data in [{', '.join(DATASETS)}]])"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    here = [spell_out(eval(text, {"np": np, "pd": pd})) for text in DATASETS]
    assert repr(here) == done.stdout.strip()
    assert len(set(here)) == len(DATASETS)


def test_an_address_in_memory_is_no_content() -> None:
    assert spell_out([lambda: 1]) == spell_out([lambda: 1])


# ---------------------------------------------------------------------------------- whole runs

#: Five claims; the third and later ones wait for a file beside the declarations, so that a run can be cut there.
GATED = """
    from pathlib import Path

    def gated(data, n, rng):
        while not Path(__file__).with_name("gate").exists():
            time.sleep(0.02)
        return lawless(data, n, rng)

    yield exact(Response(1.0), PureDP(1.0), PAIR)
    yield privacy(lawless, PureDP(1.0), PAIR, case='quick')
    for case in ("late_1", "late_2"):
        yield privacy(gated, PureDP(1.0), PAIR, case=case)
    yield mutant("strong", Response(3.0), PureDP(1.0), PAIR)
"""
#: With one worker the first two claims finish before the cut, with two also the last.
BEFORE_THE_CUT = 2
OPTIONS = ("--draws", 2_000, "--alpha", 1e-6, "--detect", 5)


@pytest.mark.parametrize(("cut", "jobs"), [("SIGKILL", 1), ("SIGKILL", 2), ("SIGINT", 1)])
def test_a_run_that_was_cut_goes_on_and_ends_with_the_same_bytes(
    dpaudit: Command, tmp_path: Path, cut: str, jobs: int
) -> None:
    claims, out = declare(tmp_path, GATED), tmp_path / "out"
    again = ("run", claims, *OPTIONS, "--jobs", jobs, "--out", out)
    with start(*again) as running:
        seen = until(running, f"[{BEFORE_THE_CUT}/5]")
        if cut == "SIGINT":
            said = interrupt(running, seen)
            assert said.code == 130, said
            assert "--resume runs the rest" in said.err
            assert read(out / "results.json")["manifest"]["interrupted"] is True
        else:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait(timeout=30)
            assert not (out / "results.json").exists()
    assert (out / journal.NAME).exists()
    kept = journal.read_journal(out / journal.NAME)
    assert len(kept.finished) >= BEFORE_THE_CUT
    (tmp_path / "gate").touch()
    said = process(*again, "--resume")
    assert said.code == 0, said
    assert f"resumed: {len(kept.finished)} of 5 claims are taken from" in said.err
    assert f"auditing {5 - len(kept.finished)} claims" in said.err
    assert "[5/5]" in said.err
    assert {path.name for path in out.iterdir()} == set(REPORTS), "the journal of a complete run goes away"
    assert dpaudit("run", claims, *OPTIONS, "--jobs", 1, "--out", tmp_path / "whole").code == 0
    assert (out / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()


@pytest.fixture
def cut_short(dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a run that left a journal with two of its claims."""

    def fails(*_: object) -> None:
        raise OSError("disk full")

    (tmp_path / "gate").touch()
    with monkeypatch.context() as patch:
        patch.setattr("auditor.results.write_json", fails)
        said = dpaudit("run", declare(tmp_path, GATED), *OPTIONS, "--jobs", 1, "--out", tmp_path / "out")
    assert said.code == 2, said
    path = tmp_path / "out" / journal.NAME
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    return tmp_path


def test_a_journal_of_another_run_is_refused_and_not_touched(dpaudit: Command, cut_short: Path) -> None:
    path, claims = cut_short / "out" / journal.NAME, cut_short / "claims.py"
    before = path.read_bytes()
    resume = ("run", claims, "--jobs", 1, "--out", cut_short / "out", "--resume")
    said = dpaudit(*resume, "--draws", 4_000, "--alpha", 1e-6, "--seed", 3)
    refused(said, "seed: 0 then, 3 now", "draws: 2000 then, 4000 now", "kept aside")
    assert "alpha: " not in said.err
    declared = claims.read_text(encoding="utf-8")
    # Not the audited class itself, but what it could call: only the hash of all code sees it. Other processes, which
    # load the changed files.
    claims.write_text(declared.replace("def lawless", "UNUSED = 1\n\n\ndef lawless"), encoding="utf-8")
    refused(process(*resume, *OPTIONS), "code_hash: ")
    claims.write_text(declared.replace("np.array([1]), ", "np.array([1.0]), "), encoding="utf-8")
    refused(process(*resume, *OPTIONS), "data_hash: ")
    assert path.read_bytes() == before


def test_without_resume_an_old_journal_is_kept_aside(dpaudit: Command, cut_short: Path) -> None:
    out = cut_short / "out"
    before = (out / journal.NAME).read_bytes()
    again = ("run", cut_short / "claims.py", *OPTIONS, "--jobs", 1, "--out", out)
    said = dpaudit(*again)
    assert said.code == 0, said
    assert "it is kept as" in said.err
    assert (out / "journal.1.jsonl").read_bytes() == before
    assert not (out / journal.NAME).exists()
    # It can be put back and used.
    (out / "journal.1.jsonl").rename(out / journal.NAME)
    said = dpaudit(*again, "--resume")
    assert said.code == 0, said
    assert "resumed: 2 of 5" in said.err


def test_a_dry_run_of_a_resumed_run_lists_the_rest(dpaudit: Command, cut_short: Path) -> None:
    before = (cut_short / "out" / journal.NAME).read_bytes()
    said = dpaudit("run", cut_short / "claims.py", *OPTIONS, "--out", cut_short / "out", "--resume", "--dry-run")
    assert said.code == 0, said
    listed = [line.split()[0].rpartition("/")[2] for line in said.out.splitlines() if line.startswith("900/")]
    assert listed == ["late_1", "late_2", "strong"]
    assert "3 claims would run" in said.out
    assert (cut_short / "out" / journal.NAME).read_bytes() == before


def test_a_file_that_is_no_journal_is_refused(dpaudit: Command, tmp_path: Path) -> None:
    claims, out = declare(tmp_path, HELD), tmp_path / "out"
    out.mkdir()
    for content in (b"", b"not a journal\n", b'{"schema": "dpaudit-journal/99", "about": {}}\n'):
        (out / journal.NAME).write_bytes(content)
        refused(dpaudit("run", claims, *QUICK, "--out", out, "--resume"), out / journal.NAME, "not a journal")
        assert (out / journal.NAME).read_bytes() == content


def test_nothing_to_resume_is_no_mistake(dpaudit: Command, tmp_path: Path) -> None:
    said = dpaudit("run", declare(tmp_path, HELD), *QUICK, "--out", tmp_path / "out", "--resume")
    assert said.code == 0, said
    assert complaints(said) == [f"nothing to resume in {tmp_path / 'out'}: the run starts anew"]


def test_results_of_other_options_are_not_overwritten_by_resuming(dpaudit: Command, results: Path) -> None:
    claims, before = results.parents[1] / "claims.py", results.read_bytes()
    for options, differs in (
        (("--seed", 3), "seed: 0 then, 3 now"),
        (("-k", "strong"), "selection: not given then, strong now"),
        (("--detect", 3), "detect: not given then, 3.0 now"),
        (("--ignore", "floating-point"), "ignore: not given then, floating-point now"),
        (("--also",), "also: not given then, True now"),
        (("--ledger", results.with_name("nights.db")), "ledger: not given then, "),
    ):
        said = dpaudit("run", claims, *QUICK, *options, "--out", results.parent, "--resume")
        refused(said, results, differs, "give another --out")
        assert said.err.count(" then, ") == 1
        assert dpaudit("run", claims, *QUICK, *options, "--out", results.parent, "--resume", "--dry-run").code == 2
        assert results.read_bytes() == before
    # Those of the same options are what it would make.
    assert dpaudit("run", claims, *QUICK, "--out", results.parent, "--resume").code == 0
    assert results.read_bytes() == before
    results.write_text("{", encoding="utf-8")
    refused(dpaudit("run", claims, *QUICK, "--out", results.parent, "--resume"), results)


def test_one_command_at_a_time_writes_to_a_folder(dpaudit: Command, claims: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("run", claims, *QUICK, "--out", out)
    out.mkdir()
    folder = os.open(out, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # as another one has it
    refused(dpaudit(*asked), str(out))
    assert list(out.iterdir()) == []
    os.close(folder)
    assert dpaudit(*asked).code == 0
    assert dpaudit(*asked).code == 0


@pytest.mark.parametrize("comment", [(), ("--comment",)])
def test_a_report_says_that_a_later_run_was_killed(dpaudit: Command, results: Path, comment: tuple[str, ...]) -> None:
    said = f"{results.parent / journal.NAME} is of a run that has not ended"
    assert said not in dpaudit("report", results, *comment).err
    (results.parent / journal.NAME).write_text("{}")
    killed = dpaudit("report", results, *comment)
    assert (killed.code, said in killed.err) == (0, True)
    content = json.loads(results.read_text())
    content["manifest"]["interrupted"] = True  # the results are those of the journal then
    results.write_text(json.dumps(content))
    assert said not in dpaudit("report", results, *comment).err


def test_resume_needs_a_folder(dpaudit: Command, tmp_path: Path) -> None:
    refused(dpaudit("run", declare(tmp_path, HELD), *QUICK, "--resume"), "--resume needs --out")


def test_claims_that_ended_in_an_error_run_again(
    dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What failed may have been the machine. Here the run is cut by a failure to write its reports.
    body = "    yield privacy(crashing, PureDP(1.0), PAIR, case='crash')\n" + HELD
    claims, out = declare(tmp_path, body), tmp_path / "out"

    def fails(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("auditor.results.write_json", fails)
        assert dpaudit("run", claims, *QUICK, "--out", out).code == 2
    kept = journal.read_journal(out / journal.NAME)
    assert [result.verdict for result, _ in kept.finished.values()] == ["error", "consistent"]
    said = dpaudit("run", claims, *QUICK, "--out", out, "--resume")
    assert said.code == 2, said
    assert "resumed: 1 of 2 claims" in said.err
    assert "1 that ended in an error run again" in said.err
    assert "[2/2] error" in said.err
    assert [claim["verdict"] for claim in read(out / "results.json")["claims"]] == ["error", "consistent"]
