"""Calls that another process makes ahead of time: the same results, whatever becomes of that process."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor import Pair, PureDP
from auditor.audits.accuracy.errors import Setting
from auditor.audits.accuracy.failure import HighProbability
from auditor.audits.conformity import StatedLaw, run_conformity
from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.results import AuditResult, Verdict, make_document
from auditor.targets import Mechanism
from auditor.targets.prefetch import POSSIBLE, Ahead, Meeting
from auditor.targets.prefetch_worker import hire_partner
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import IdentityQuery

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="processes meet by sockets of files")

PAIR = Pair(np.array([0]), np.array([1]), "one bit")
DRAWS = 3_000
#: Seconds a draw.
SLOW = 0.0001
#: Seconds a draw of a command's target.
SLOW_COMMAND = 0.0004
#: e / (1 + e)
TRUTHFUL = 0.7310585786300049


def respond(data: Any, n: int, rng: np.random.Generator, truthful: float = TRUTHFUL) -> Any:
    """Randomised response of level 1, 0.1 ms a draw."""
    time.sleep(SLOW * n)
    return np.where(rng.random(n) < truthful, data[0], 1 - data[0])


@contextmanager
def without_waiting() -> Iterator[None]:
    """Targets take no time: what they draw is the same, and so is an audit without a partner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.SLOW", 0.0)
        yield


class Partners:
    """Partners that are threads of this process, so that a test can see what they do."""

    def __init__(self, folder: Path) -> None:
        self.meeting = Meeting(str(folder), parent=os.getppid())
        self.threads: list[threading.Thread] = []
        self.made: list[Ahead] = []

    def start(self, target: Mechanism) -> None:
        """One that draws from a target."""
        thread = threading.Thread(target=self.meeting.help, args=(lambda _: target,), daemon=True)
        thread.start()
        self.threads.append(thread)

    def ahead(self, datasets: Any) -> Ahead:
        self.made.append(Ahead(self.meeting.take, "the target", datasets))
        return self.made[-1]

    @property
    def used(self) -> int:
        """Calls that came from a partner."""
        return sum(len(made._used) for made in self.made)

    def end(self) -> None:
        self.meeting.dismiss()
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive()


@pytest.fixture
def partners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Partners]:
    for name, seconds in (("PATIENCE", 0.02), ("LOOK", 0.01), ("WORTHWHILE", 5 * SLOW)):
        monkeypatch.setattr(f"auditor.targets.prefetch.{name}", seconds)
    folder = tmp_path / "meeting"
    folder.mkdir()
    made = Partners(folder)
    yield made
    made.end()


def audit(target: Mechanism, partners: Partners | None = None, claimed: float = 1.0, **options: Any) -> dict[str, Any]:
    settings = Settings(**{"draws": DRAWS, "detect": 5.0, **options})
    if partners is not None:
        question = Question("audit/L1/claim/given", ahead=partners.ahead)
        return told(run_audit(target, PureDP(claimed), [PAIR], settings, question))
    with without_waiting():
        return told(run_audit(target, PureDP(claimed), [PAIR], settings, Question("audit/L1/claim/given")))


def told(result: AuditResult) -> dict[str, Any]:
    """A result as a file has it, but for what the target is called."""
    (claim,) = json.loads(json.dumps(make_document({}, [result], [])))["claims"]
    return {name: value for name, value in claim.items() if name not in ("mechanism", "source_hash")}


def test_an_audit_with_a_partner_is_the_same(partners: Partners) -> None:
    alone = audit(respond)
    partners.start(respond)
    assert audit(respond, partners) == alone
    assert partners.used > 30  # half of about 80 calls, but for those before it was found


def test_so_is_one_that_ends_in_an_alarm(partners: Partners) -> None:
    alone = audit(respond, claimed=0.8, draws=20_000, stop="budget", alpha=0.05)
    partners.start(respond)
    with_partner = audit(respond, partners, claimed=0.8, draws=20_000, stop="budget", alpha=0.05)
    assert with_partner == alone
    assert with_partner["verdict"] == Verdict.VIOLATION
    assert partners.used > 30


def test_so_is_one_of_a_target_that_raises(partners: Partners) -> None:
    def raises(data: Any, n: int, rng: np.random.Generator) -> Any:
        if n > 1 and (rng.random(n) < 0.001).any():
            raise ValueError
        return respond(data, n, rng)

    alone = audit(raises, draws=1_000)
    partners.start(raises)
    assert audit(raises, partners, draws=1_000) == alone
    assert partners.used > 100  # most of them for one draw


def test_a_stated_law_is_held_against_the_same_draws(partners: Partners) -> None:
    mechanism = LatticeLaplace(IdentityQuery(), 1.0)

    def slow(data: Any, n: int, rng: np.random.Generator) -> Any:
        time.sleep(SLOW * n)
        return mechanism(data, n, rng)

    def run(question: Question) -> dict[str, Any]:
        datasets = [np.array([0.0]), np.array([1.0])]
        return told(run_conformity(slow, StatedLaw(mechanism), datasets, ("0", "1"), Settings(draws=DRAWS), question))

    with without_waiting():
        alone = run(Question("audit/L3/conformity/given"))
    partners.start(slow)
    assert run(Question("audit/L3/conformity/given", ahead=partners.ahead)) == alone
    assert partners.used > 10


def test_so_are_errors(partners: Partners) -> None:
    setting = Setting(respond, np.array([0]), lambda outputs: np.asarray(outputs), 0.5)

    def run(question: Question) -> dict[str, Any]:
        return told(HighProbability(0.5, 0.3).audit(setting, Settings(draws=DRAWS), question))

    with without_waiting():
        alone = run(Question("audit/L4/failure/given"))
    partners.start(respond)
    assert run(Question("audit/L4/failure/given", ahead=partners.ahead)) == alone
    assert partners.used > 0


def other_law(data: Any, n: int, rng: np.random.Generator) -> Any:
    return respond(data, n, rng, 0.9)


def raising(data: Any, n: int, rng: np.random.Generator) -> Any:
    raise RuntimeError("no such device")


def with_own_entropy(data: Any, n: int, rng: np.random.Generator) -> Any:
    return respond(data, n, np.random.default_rng())


@pytest.mark.parametrize("target", [other_law, raising, with_own_entropy])
def test_a_partner_that_draws_otherwise_is_not_used(partners: Partners, target: Mechanism) -> None:
    alone = audit(respond)
    partners.start(target)
    assert audit(respond, partners) == alone
    assert partners.used == 0
    assert partners.made[0]._refused


class Turns:
    """Draws as `respond` for some calls, and then otherwise."""

    def __init__(self, after: int, then: Callable[..., Any]) -> None:
        self.after, self.then, self.calls = after, then, 0

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        self.calls += 1
        return respond(data, n, rng) if self.calls <= self.after else self.then(data, n, rng)


def test_what_a_partner_cannot_make_is_made_here(partners: Partners) -> None:
    alone = audit(respond)
    partners.start(Turns(10, raising))
    assert audit(respond, partners) == alone
    assert 0 < partners.used <= 10


def test_a_partner_that_hangs_is_given_up(partners: Partners, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.targets.prefetch.GRACE", 0.2)
    alone = audit(respond)
    let_go = threading.Event()
    partners.start(Turns(10, lambda *_: let_go.wait()))
    assert audit(respond, partners) == alone
    let_go.set()
    assert 0 < partners.used <= 10


def test_one_whose_outputs_cannot_be_sent_is_none(partners: Partners) -> None:
    alone = audit(respond)
    partners.start(Turns(10, lambda _data, n, _rng: [[[[[[[lambda: 0]]]]]]] * n))  # as deep nothing is read
    assert audit(respond, partners) == alone
    assert 0 < partners.used <= 10


def test_datasets_that_cannot_be_sent_are_drawn_from_here(partners: Partners) -> None:
    pair = Pair({0: lambda: 0}, {0: lambda: 1}, "functions")

    def target(data: Any, n: int, rng: np.random.Generator) -> Any:
        return respond([data[0]()], n, rng)

    def run(question: Question) -> dict[str, Any]:
        return told(run_audit(target, PureDP(1.0), [pair], Settings(draws=DRAWS, detect=5.0), question))

    with without_waiting():
        alone = run(Question("audit/L1/claim/given"))
    partners.start(target)
    assert run(Question("audit/L1/claim/given", ahead=partners.ahead)) == alone
    assert partners.used == 0


def test_large_datasets_and_outputs_pass(partners: Partners) -> None:
    """Neither side waits for the other to read."""
    pairs = [Pair(np.full(200_000, k), np.full(200_000, k + 1), f"{k}") for k in range(4)]

    def wide(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.tile((respond([0], n, rng) + data[0])[:, None], 500)

    def run(question: Question) -> dict[str, Any]:
        return told(run_audit(wide, PureDP(1.0), pairs, Settings(draws=1_000, even=True, stop="budget"), question))

    with without_waiting():
        alone = run(Question("audit/L1/claim/given"))
    partners.start(wide)
    assert run(Question("audit/L1/claim/given", ahead=partners.ahead)) == alone
    assert partners.used > 10
    assert len(partners.made[0]._believed) == 8


def test_no_alarm_rests_on_a_partner_alone(partners: Partners) -> None:
    """A partner that draws as it should at first, and then tells the datasets apart, makes no violation."""

    def tells(data: Any, n: int, rng: np.random.Generator) -> Any:
        time.sleep(SLOW * n)
        return np.full(n, data[0])

    alone = audit(respond, draws=6_000)
    assert alone["verdict"] == Verdict.CONSISTENT
    partners.start(Turns(10, tells))
    assert audit(respond, partners, draws=6_000) == alone
    assert partners.used > 10  # it was believed, and would have made an alarm


def test_a_quick_target_is_not_passed_on(partners: Partners, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.targets.prefetch.WORTHWHILE", 1.0)
    partners.start(respond)
    audit(respond, partners)
    assert not partners.made[0]._refused
    assert partners.used == 0


TARGET = """
import os
import time

import numpy as np

CALLS = 0


def respond(data, n, rng):
    global CALLS
    CALLS += 1
    pids = os.environ["DPAUDIT_TEST_PIDS"]
    with open(pids, "a") as file:
        file.write(f"{os.getpid()}\\n")
    if CALLS > int(os.environ.get("DPAUDIT_TEST_WAITS", "1000000")) and len(set(open(pids).read().split())) == 1:
        time.sleep(0.2)  # the other process may take long to start
    time.sleep(float(os.environ["DPAUDIT_TEST_SLOW"]) * n)
    return np.where(rng.random(n) < 0.7310585786300049, data[0], 1 - data[0])
"""
CLAIMS = """
from collections.abc import Iterator

import numpy as np

from auditor import Pair, PureDP
from auditor.claims import Draft, Source, entry
from auditor.claims import privacy
from target import respond


@entry("slow/response", title="Slow", source=Source("none", "a test"))
def slow() -> Iterator[Draft]:
    pair = Pair(np.array([0]), np.array([1]), "one bit")
    yield privacy(respond, PureDP(1.0), pair, draws={"smoke": 2_000}, detect=5.0)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where commands are run."""
    (tmp_path / "target.py").write_text(TARGET)
    (tmp_path / "claims.py").write_text(CLAIMS)
    for name, value in (("x", 0), ("y", 1)):
        (tmp_path / f"{name}.json").write_text(json.dumps([value]))
    return tmp_path


def dpaudit(folder: Path, *words: str, waits: int = 1_000_000, slow: float = 0.0) -> list[int]:
    """Run a command; how many calls each process made. After some of its calls a process waits for the other."""
    pids = folder / "pids"
    pids.unlink(missing_ok=True)
    env = {
        **os.environ,
        "DPAUDIT_TEST_PIDS": str(pids),
        "DPAUDIT_TEST_WAITS": str(waits),
        "DPAUDIT_TEST_SLOW": str(slow),
    }
    done = subprocess.run(
        [sys.executable, "-m", "auditor", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return sorted(Counter(pids.read_text().split()).values())


def test_a_run_of_one_claim_uses_two_processes(folder: Path) -> None:
    one = dpaudit(folder, "run", "claims.py", "--jobs", "1", "--out", "one")
    two = dpaudit(folder, "run", "claims.py", "--jobs", "3", "--out", "two", waits=60, slow=SLOW_COMMAND)
    assert len(one) == 1
    assert len(two) == 2
    assert min(two) > 10
    assert (folder / "one/results.json").read_bytes() == (folder / "two/results.json").read_bytes()


@pytest.mark.parametrize("kind", ["python", "exec"])
def test_so_does_an_attack(folder: Path, kind: str) -> None:
    target = f"exec:{sys.executable} -m auditor.targets.helper target.py:respond"
    target, restarts = (target, 2) if kind == "exec" else ("target.py:respond", 0)
    waits = 155 if kind == "exec" else 60  # of 230 and 115 calls: the first are too short to be passed on
    attack = ["attack", target, "--claim", "epsilon=1", "--data", "x.json", "--neighbor", "y.json", "--detect", "5"]
    attack += ["--draws", "2000", "--out"]
    one = dpaudit(folder, *attack, "one", "--jobs", "1")
    two = dpaudit(folder, *attack, "two", "--jobs", "2", waits=waits, slow=SLOW_COMMAND)
    assert len(one) == 1 + restarts
    assert len(two) == 2 + restarts
    assert sorted(two)[-2] > 10
    assert (folder / "one/results.json").read_bytes() == (folder / "two/results.json").read_bytes()


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process has ended, or does within some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("command", ["run", "attack"])
def test_no_partner_is_left_when_the_command_ends(folder: Path, command: str, how: signal.Signals) -> None:
    words = ["run", "claims.py", "--draws", "1000000"]
    if command == "attack":
        words = ["attack", "target.py:respond", "--claim", "epsilon=1", "--data", "x.json", "--neighbor", "y.json"]
        words += ["--draws", "1000000"]
    pids = folder / "pids"
    pids.touch()
    env = {**os.environ, "DPAUDIT_TEST_PIDS": str(pids), "DPAUDIT_TEST_SLOW": str(SLOW_COMMAND)}
    with subprocess.Popen(
        [sys.executable, "-m", "auditor", *words, "--jobs", "2"],
        cwd=folder,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # A shell starts what runs in the background with SIGINT ignored, which children inherit.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            until = time.monotonic() + 60
            while len(drawing := set(pids.read_text().split())) < 2:
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(how)
            process.wait(30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert all(gone(int(pid)) for pid in drawing)


def test_a_partner_of_a_process_that_has_ended_already_ends_and_leaves_no_folder(tmp_path: Path) -> None:
    # It takes a second to start; by then a command that was killed is gone, and another process is the parent.
    folder = tmp_path / "meeting"
    folder.mkdir()
    Meeting(str(folder), parent=os.getpid()).help(find)
    assert not folder.exists()


def test_a_hired_partner_is_started_when_it_is_looked_for() -> None:
    with hire_partner(find) as take:
        until = time.monotonic() + 60
        while (partner := take()) is None:
            assert time.monotonic() < until
            time.sleep(0.05)
        partner.close()


def find(word: object) -> Mechanism:
    """The target of any word."""
    del word
    return respond
