"""Runs on dask: the same bytes as on one core, and clear ends where a cluster fails, on clusters of processes."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.claims import registry
from auditor.privacy.guarantees import GaussianDP
from auditor.runs import dask_cluster as handing_out
from auditor.runs.claim_process import find_refusal, hash_declarations, read_versions
from auditor.runs.run import Run
from auditor.training import audit_runs
from tests.clusters import Cluster, cluster, wait
from tests.commandline import FINE, HEADER, REPORTS, ROOT, Command, interrupt, read, refused, start, until

distributed = pytest.importorskip("distributed")

#: Mechanisms that show where they run, or break it.
MORE = '''
import os
import signal
import threading


def words(data, n, rng):
    """Randomised response in words; some answers are tuples."""
    return [("yes", 1) if bool(data[0]) == bool(said) else "no" for said in rng.random(n) < 0.7]


def in_the_main_thread(data, n, rng):
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a hang could not be interrupted here")
    return lawless(data, n, rng)


def sleepy(data, n, rng):
    time.sleep(0.004)
    return lawless(data, n, rng)


def exiting(data, n, rng):
    os._exit(7)


def killing(data, n, rng):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


'''
SLOW = "".join(f'    yield privacy(sleepy, PureDP(1.0), PAIR, case="{k}")\n' for k in range(4))
QUICK = ("--draws", 26_000, "--alpha", 1e-6)


def declare(folder: Path, body: str) -> Path:
    file = folder / "claims.py"
    before, entry = HEADER.split('@entry("900/response"')
    file.write_text(f'{before}{MORE}@entry("900/response"{entry}{body}', encoding="utf-8")
    return file


@pytest.fixture(scope="module", name="two")
def _two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("two")) as found:
        found.add("--nanny")
        found.add("--nanny")
        yield found


@pytest.fixture(name="alone")
def _alone(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without workers."""
    with cluster(tmp_path) as found:
        yield found


def dask(at: Cluster) -> tuple[object, ...]:
    return "--backend", "dask", "--scheduler", at.address


def same(first: Path, second: Path) -> bool:
    return (first / "results.json").read_bytes() == (second / "results.json").read_bytes()


def test_a_cluster_and_local_dask_give_the_bytes_of_one_core(two: Cluster, tmp_path: Path, dpaudit: Command) -> None:
    more = (
        '    yield privacy(words, PureDP(1.0), PAIR, case="words")\n'
        '    yield privacy(in_the_main_thread, PureDP(1.0), PAIR, case="main_thread")\n'
    )
    file = declare(tmp_path, FINE + more)
    ways = {"one": ("--jobs", 1), "cluster": dask(two), "here": ("--backend", "dask", "--jobs", 1)}
    for out, options in ways.items():
        said = dpaudit("run", file, *QUICK, *options, "--out", tmp_path / out)
        assert said.code == 0, said
    assert same(tmp_path / "one", tmp_path / "cluster")
    assert same(tmp_path / "one", tmp_path / "here")
    assert len(read(tmp_path / "cluster" / "results.json")["claims"]) == 5
    assert read(tmp_path / "cluster" / "run.json")["scheduler"] == two.address


def test_training_runs_on_a_cluster_are_those_of_one_process(two: Cluster) -> None:
    def train(data: Any, rng: np.random.Generator) -> float:
        return float(np.round(data[0] + rng.normal(), 3))

    options: dict[str, Any] = {"runs": 12, "progress": False}
    alone = audit_runs(train, [1], [0], None, GaussianDP(1.0), **options)
    with distributed.Client(two.address, set_as_default=False) as client:
        spread = audit_runs(train, [1], [0], None, GaussianDP(1.0), executor=client.get_executor(), **options)
    assert spread.to_json() == alone.to_json()


def test_a_worker_or_a_process_that_is_killed_in_the_middle_costs_nothing(
    two: Cluster, tmp_path: Path, dpaudit: Command
) -> None:
    once = (
        "    def once(stopped):\n"
        "        def mechanism(data, n, rng):\n"
        f"            marker = {str(tmp_path)!r} + '/' + stopped\n"
        "            if not os.path.exists(marker):\n"
        "                open(marker, 'w').close()\n"
        "                if stopped == 'process':\n"
        "                    os.kill(os.getpid(), signal.SIGTERM)\n"
        "                killing(data, n, rng)\n"
        "            return lawless(data, n, rng)\n"
        "        return mechanism\n"
        '    yield privacy(once("worker"), PureDP(1.0), PAIR, case="worker")\n'
        '    yield privacy(once("process"), PureDP(1.0), PAIR, case="process")\n'
    )
    file, before = declare(tmp_path, once + SLOW), two.workers()
    said = dpaudit("run", file, *QUICK, *dask(two), "--out", tmp_path / "killed")
    assert said.code == 0, said
    assert "6 claims: 6 as expected" in said.out
    progress = ("2 claims at a time", "auditing", "[", "reports")
    assert [line for line in said.err.splitlines() if not line.startswith(progress)] == []
    assert (tmp_path / "process").exists()
    wait(lambda: len(two.workers()) == 2)
    assert len(before.items() - two.workers().items()) == 1
    assert dpaudit("run", file, *QUICK, "--jobs", 1, "--out", tmp_path / "one").code == 0
    assert same(tmp_path / "killed", tmp_path / "one")


def test_claims_that_kill_their_process_or_their_worker_are_errors_and_the_others_go_on(
    two: Cluster, tmp_path: Path, dpaudit: Command
) -> None:
    body = "".join(f'    yield privacy({name}, PureDP(1.0), PAIR, case="{name}")\n' for name in ("killing", "exiting"))
    file = declare(tmp_path, body + SLOW)
    two.ask("run_on_scheduler", lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    try:
        said = dpaudit("run", file, *QUICK, *dask(two), "--out", tmp_path / "out")
    finally:
        two.ask("run_on_scheduler", lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    assert said.code == 2, said
    claims = {claim["id"].rpartition("/")[2]: claim for claim in read(tmp_path / "out" / "results.json")["claims"]}
    assert [name for name, claim in claims.items() if claim["verdict"] != "consistent"] == ["killing", "exiting"]
    assert claims["killing"]["message"] == "it ended its worker, 1 times"
    assert claims["exiting"]["message"] == "its process ended with exit code 7"


def test_what_is_finished_is_kept_when_the_workers_or_the_scheduler_are_lost(
    alone: Cluster, tmp_path: Path, dpaudit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handing_out, "PATIENCE", 2.0)
    out, marker = tmp_path / "out", tmp_path / "marker"
    # The second claim ends the only worker, the third the scheduler, when those before them are in the journal.
    body = (
        "    yield privacy(lawless, PureDP(1.0), PAIR)\n"
        "    def ending(number):\n"
        "        def mechanism(data, n, rng):\n"
        f"            if not os.path.exists(f'{marker}{{number}}'):\n"
        f"                open(f'{marker}{{number}}', 'w').close()\n"
        f"                while len(open({str(out / 'journal.jsonl')!r}).readlines()) < number:\n"
        "                    time.sleep(0.05)\n"
        f"                os.kill({alone.scheduler.pid} if number == 3 else os.getppid(), signal.SIGKILL)\n"
        "                time.sleep(60)\n"
        "            return lawless(data, n, rng)\n"
        "        return mechanism\n"
        '    yield privacy(ending(2), PureDP(1.0), PAIR, case="worker")\n'
        '    yield privacy(ending(3), PureDP(1.0), PAIR, case="scheduler")\n'
    )
    run = ("run", declare(tmp_path, body), *QUICK)
    for number, reason in ((1, "has had no workers for 2 s"), (2, "was lost, or dropped the claims")):
        alone.add("--no-nanny")
        said = dpaudit(*run, *dask(alone), "--out", out, *(["--resume"] if number > 1 else []))
        assert said.code == 2, said
        (line,) = [line for line in said.err.splitlines() if reason in line]
        assert line.endswith(f"{number} of 3 claims were finished; the same command with --resume runs the rest")
        assert "Traceback" not in said.err
        content = read(out / "results.json")
        assert content["manifest"]["interrupted"] is True
        assert [claim["verdict"] for claim in content["claims"]] == ["consistent"] * number
        assert {path.name for path in out.iterdir()} == {*REPORTS, "journal.jsonl"}
    assert dpaudit(*run, "--jobs", 1, "--out", out, "--resume").code == 0
    assert dpaudit(*run, "--jobs", 1, "--out", tmp_path / "one").code == 0
    assert same(out, tmp_path / "one")


def test_a_cluster_without_workers_or_with_other_versions_is_refused(
    alone: Cluster, tmp_path: Path, dpaudit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = declare(tmp_path, FINE), tmp_path / "out"
    monkeypatch.setattr(handing_out, "PATIENCE", 1.0)
    said = dpaudit("run", file, *QUICK, *dask(alone), "--out", out)
    waited = f"the scheduler {alone.address} has no workers: waiting for them, 1 s at most\n"
    assert said.err == f"{waited}dpaudit: the scheduler {alone.address!r} has had no workers for 1 s\n"
    assert (said.code, said.out) == (2, "")

    fake = tmp_path / "fake" / "numpy-0.0.1.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n", encoding="utf-8")
    alone.add("--no-nanny", PYTHONPATH=str(fake.parent))
    (address,) = alone.workers()
    said = dpaudit("run", file, *QUICK, *dask(alone), "--out", out)
    assert said.code == 2, said
    assert said.err.splitlines()[-1] == (
        f"dpaudit: {alone.address} would not audit the same: worker {address}: it has numpy 0.0.1 instead of "
        f"{read_versions()['numpy']}"
    )
    assert not out.exists()


def test_other_declarations_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, FINE)
    run = pickle.dumps(Run(paths=("claims.py",)))
    monkeypatch.chdir(tmp_path)
    expected = hash_declarations(pickle.loads(run))
    assert find_refusal((read_versions(), expected), run)[1] == ""
    for changed in expected:
        said = find_refusal((read_versions(), {**expected, changed: "0"}), run)[1]
        assert said == f"in {str(tmp_path)!r} {changed} are not those of the run"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    registry._load.cache_clear()
    registry._claims.cache_clear()
    reason = "SpecificationError: no such file or folder: 'claims.py'"
    said = find_refusal((read_versions(), expected), run)[1]
    assert said == f"it cannot load the claims in {str(tmp_path / 'elsewhere')!r}: {reason}"


def test_a_scheduler_that_is_none_is_refused_within_the_time(
    tmp_path: Path, dpaudit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert handing_out.ANSWER == 10.0
    monkeypatch.setattr(handing_out, "ANSWER", 1.0)
    file, out = declare(tmp_path, FINE), tmp_path / "out"

    def run(address: str) -> tuple[str, ...]:
        said = dpaudit("run", file, *QUICK, "--backend", "dask", "--scheduler", address, "--out", out)
        refused(said, repr(address))
        return tuple(said.err.splitlines())

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        (line,) = run(f"tcp://127.0.0.1:{port}")
        assert line.endswith("did not answer within 1 s")
    (line,) = run(f"tcp://127.0.0.1:{port}")
    assert "refused" in line
    # Names below .invalid never exist (RFC 2606).
    (line,) = run("tcp://scheduler.invalid:8786")
    assert "cannot reach the scheduler" in line
    for address in ("", "nonsense", "foo://host:1", "tcp://127.0.0.1:port", "tcp://127.0.0.1:0", "127.0.0.1:99999"):
        (line,) = run(address)
        assert 'expected the address of a dask scheduler, such as "tcp://10.0.0.1:8786"' in line
    assert not out.exists()


def test_a_worker_is_no_scheduler(two: Cluster, tmp_path: Path, dpaudit: Command) -> None:
    address = next(iter(two.workers()))
    said = dpaudit("run", declare(tmp_path, FINE), "--backend", "dask", "--scheduler", address)
    refused(said, repr(address), "is a Worker")


def test_options_that_do_not_go_together_are_refused(tmp_path: Path, dpaudit: Command) -> None:
    run, address = ("run", declare(tmp_path, FINE)), "tcp://127.0.0.1:1"
    refused(dpaudit(*run, "--scheduler", address), address, "loky")
    refused(dpaudit(*run, "--backend", "dask", "--scheduler", address, "--jobs", 3), address, 3)
    ledger = tmp_path / "ledger.sqlite"
    refused(dpaudit(*run, "--backend", "dask", "--scheduler", address, "--ledger", ledger), address, ledger)
    assert not ledger.exists()


def test_a_ledger_adds_up_with_dask_on_this_machine(tmp_path: Path, dpaudit: Command) -> None:
    file, ledger = declare(tmp_path, "    yield privacy(lawless, PureDP(1.0), PAIR)\n"), tmp_path / "ledger.sqlite"
    for night in (1, 2):
        options = ("--backend", "dask", "--jobs", 1) if night == 2 else ("--jobs", 1)
        said = dpaudit("run", file, *QUICK, *options, "--ledger", ledger, "--out", tmp_path / "out")
        assert said.code == 0, said
        (claim,) = read(tmp_path / "out" / "results.json")["claims"]
        assert claim["ledger"]["night"] == night
    assert dpaudit("ledger", ledger, "--verify").code == 0


def test_ctrl_c_keeps_what_is_done_and_ends_the_processes(tmp_path: Path) -> None:
    # Long enough that claims are under way: their processes hold standard error open until they end.
    file = declare(tmp_path, "    yield privacy(lawless, PureDP(1.0), PAIR)\n" + SLOW)
    running = start("run", file, "--draws", 26_000, "--backend", "dask", "--jobs", 1, "--out", tmp_path / "out")
    said = interrupt(running, until(running, "[1/5]"))
    assert said.code == 130, said
    assert "Traceback" not in said.err
    content = read(tmp_path / "out" / "results.json")
    assert content["manifest"]["interrupted"] is True
    assert 1 <= len(content["claims"]) < 5


def test_dask_is_not_imported_before_it_is_needed() -> None:
    modules = "auditor.cli.main, auditor.runs.workers, auditor.runs.journal"
    code = f"import sys, {modules}; print({{'dask', 'distributed'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_without_dask_a_process_that_ends_keeps_what_is_finished(tmp_path: Path, dpaudit: Command) -> None:
    body = FINE + '    yield privacy(exiting, PureDP(1.0), PAIR, case="exiting")\n'
    said = dpaudit("run", declare(tmp_path, body), *QUICK, "--jobs", 2, "--out", tmp_path / "out")
    assert said.code == 2, said
    (line,) = [line for line in said.err.splitlines() if "of 4 claims were finished" in line]
    assert line.startswith("a worker process ended in the middle of a claim")
    assert line.endswith("; the same command with --resume runs the rest")
    content = read(tmp_path / "out" / "results.json")
    assert content["manifest"]["interrupted"] is True
    assert {claim["verdict"] for claim in content["claims"]} <= {"consistent", "violation"}
