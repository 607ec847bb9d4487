"""Whatever a process does, it ends as an error within its limit and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import auditor
from auditor.errors import TargetError
from auditor.targets import subprocess_pipe
from auditor.targets.process import STARTS, ProcessTarget
from auditor.targets.protocol import LINE
from auditor.targets.subprocess_pipe import LAST_WORDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is left is looked for in /proc")

#: Seconds that a request may take, and the first one, with the start; short, as many tests wait for their end.
LIMIT, START = 0.5, 1.0
#: Seconds beyond the limit in which a call has to end: two graces of the process and time to kill, on a busy machine.
MARGIN = 4.0
#: Set in the environment of every process of a test.
NAME = "DPAUDIT_TEST_OF"

READ = "import sys, json, os, time\nlines = iter(sys.stdin.readline, '')\nrequest = json.loads(next(lines))\n"
ANSWER = "print(json.dumps({'id': request['id'], 'outputs': [1.5] * request['n']}), flush=True)\n"


class Watched:
    """Makes targets, and finds the processes that come from them."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self.made: list[ProcessTarget] = []

    def target(self, code: str, *, limit: float = LIMIT) -> ProcessTarget:
        command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(code)]
        made = ProcessTarget(command, limit=limit, start_limit=START, env={**os.environ, NAME: self.token})
        self.made.append(made)
        return made

    def processes(self) -> list[int]:
        """Processes that run, from any target of this test; our supervisors too."""
        sought, found = f"{NAME}={self.token}".encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if sought in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    for target in made.made:
        target.close()
    assert made.processes() == []


def draw(target: ProcessTarget, n: int = 4, data: object = (1, 2)) -> object:
    return target(data, n, np.random.default_rng(0))


def fails(target: ProcessTarget, n: int = 4, data: object = (1, 2)) -> TargetError:
    """The error that a call ends in; within the limit."""
    begun = time.monotonic()
    with pytest.raises(TargetError) as caught:
        draw(target, n, data)
    assert time.monotonic() - begun < LIMIT + START + MARGIN
    return caught.value


#: What a process does, and what the error says.
HOSTILE = {
    "garbage": (READ + "print('Hello, world!\\x1b[31m', flush=True)\ntime.sleep(60)", r"'Hello, world!\\x1b\[31m'"),
    "writes before it reads": ("print('Traceback', flush=True)\nimport time; time.sleep(60)", r"'Traceback'"),
    "floods output": (
        "import os\nwhile True: os.write(1, b'x' * 65536)",
        rf"a line of more than {LINE} bytes; it wrote 'xxx",
    ),
    "floods output with lines": ("import os\nwhile True: os.write(1, b'y\\n' * 9999)", r"'y'"),
    "one line of 100 MB": (
        READ + "os.write(1, b'{')\nwhile True: os.write(1, b' ' * 65536)",
        r"a line of more than \d+ bytes",
    ),
    "floods errors and hangs": (
        "import os\nwhile True: os.write(2, b'e' * 65536)",
        r"not done answering within 1 s; its standard error ends 'eee",
    ),
    "hangs": (READ + "time.sleep(60)", r"not done answering within 1 s$"),
    "hangs in the middle": (READ + "os.write(1, b'{\"id\": 1, ')\ntime.sleep(60)", r"it wrote '\{\"id\": 1, '$"),
    "drips": (READ + "while True: os.write(1, b'7'); time.sleep(0.1)", r"not done answering .* it wrote '77+'$"),
    "ignores signals": (
        "import signal\nfor s in (1, 2, 3, 13, 15): signal.signal(s, signal.SIG_IGN)\n" + READ + "time.sleep(60)",
        r"not done answering",
    ),
    "stops itself": (READ + "os.kill(os.getpid(), 19)", r"not done answering"),
    "dies at start": (
        "import sys; sys.exit('no licence found')",
        r"exit code 1 .*standard error ends 'no licence found'",
    ),
    "dies by a signal": (READ + "os.kill(os.getpid(), 9)", r"ended by signal SIGKILL before it had answered"),
    "dies in the middle": (READ + "os.write(1, b'{\"id\"')\nos._exit(3)", r"exit code 3 .* it wrote '\{\"id\"'$"),
    "ends without a word": (READ, r"with exit code 0 before it had answered$"),
    "closes its output": (READ + "os.close(1)\ntime.sleep(60)", r"closed its input or output"),
    "wrong id": (READ + "request['id'] += 1\n" + ANSWER, r"did not answer message 1: '\{\"id\": 2"),
    "text as id": (READ + "request['id'] = '1'\n" + ANSWER, r"did not answer message 1"),
    "true as id": (READ + "request['id'] = True\n" + ANSWER, r"did not answer message 1"),
    "too few": (READ + "request['n'] -= 1\n" + ANSWER, r"4 outputs were asked for, the target answered with 3"),
    "too many": (READ + "request['n'] *= 1000\n" + ANSWER, r"4 outputs .* answered with 4000: .*\.\.\.' \(\d+ bytes\)"),
    "claims outputs": (READ + 'print(\'{"id": 1, "outputs": 5, "length": 1e99}\')', r"outputs are no list"),
    "no outputs": (READ + "print('{\"id\": 1}')", r"answered without outputs"),
    "no object": (READ + "print('[1, 2]')", r"no object: '\[1, 2\]'"),
    "empty line": (READ + "print()", r"Expecting value at character 0"),
    "nested too deep": (READ + "print('{\"id\": 1, \"outputs\": ' + '[' * 10**5)", r"nested too deep"),
    "nested deep": (
        READ + "print(json.dumps({'id': 1, 'outputs': [0, 0, 0, eval('[' * 90 + ']' * 90)]}))",
        r"nested more than 50 deep",
    ),
    "an enormous integer": (READ + "print('{\"id\": 1, \"outputs\": [' + '9' * 10**6 + ']}')", r"too many digits"),
    "NaN": (READ + 'print(\'{"id": 1, "outputs": [NaN, 0, 0, 0]}\')', r"written as objects"),
    "a member twice": (READ + 'print(\'{"id": 1, "outputs": [], "id": 1}\')', r"a member twice"),
    "no UTF-8": (READ + 'os.write(1, b\'{"id": 1, "outputs": ["\\xff"]}\\n\')', r"no UTF-8 at byte 23\): .*\\xff"),
    "a wrong float": (READ + 'print(\'{"id": 1, "outputs": [{"__float__": "1/0"}]}\')', r"content of __float__"),
    "a wrong error": (READ + 'print(\'{"id": 1, "error": "sorry"}\')', r"error of another form .*sorry"),
    "another version": ('print(\'{"hello": {"protocol": 2}}\', flush=True)\n' + READ, r"version 1 .*\"protocol\": 2"),
    "a strange hello": ("print('{\"hello\": [1]}', flush=True)\n" + READ, r"hello is no object"),
    "a long hello": (
        'print(\'{"hello": {"states": {"a": "\' + \'x\' * 10**5, flush=True)\n' + READ,
        r"hello is longer",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_ends_as_an_error_that_quotes_it(watched: Watched, name: str) -> None:
    code, said = HOSTILE[name]
    error = fails(watched.target(code))
    assert re.search(said, str(error), re.DOTALL), str(error)
    assert str(error).isprintable()
    assert len(str(error)) < LAST_WORDS + 1000
    assert len(error.public) < 200
    assert watched.processes() == []  # though it was not closed


def test_what_the_target_said_is_not_in_the_public_part(watched: Watched) -> None:
    code = READ + "print('row 17: Smith', file=sys.stderr)\nprint('row 18: Jones')"
    error = fails(watched.target(code))
    assert "Jones" in str(error)
    assert "Jones" not in error.public
    code = READ + "print('row 17: Smith', file=sys.stderr)\nos._exit(1)"
    error = fails(watched.target(code))
    assert "Smith" in str(error)
    assert error.public == "the target ended with exit code 1 before it had answered"


def test_a_target_that_never_reads_does_not_block(watched: Watched) -> None:
    error = fails(watched.target("import time; time.sleep(60)"), data=np.arange(10**6))
    assert "not done reading its request" in str(error)


def test_a_target_that_closes_its_input_is_an_error(watched: Watched) -> None:
    error = fails(watched.target("import os, time\nos.close(0)\ntime.sleep(60)"), data=np.arange(10**6))
    assert str(error) == "the target closed its input or output before it had read its request"


def test_a_target_that_does_not_end_when_it_is_closed_is_killed(watched: Watched) -> None:
    target = watched.target(READ + ANSWER + "time.sleep(60)", limit=10.0)
    draw(target)
    begun = time.monotonic()
    target.close()
    assert time.monotonic() - begun < subprocess_pipe.GRACE + MARGIN
    assert watched.processes() == []


def test_a_target_that_writes_errors_while_it_reads_is_heard(watched: Watched) -> None:
    code = "import os\nfor _ in range(100): os.write(2, b'e' * 65536)\n" + READ + ANSWER
    assert draw(watched.target(code, limit=10.0), data=np.arange(10**5)) == [1.5] * 4


@pytest.mark.parametrize("second", [ANSWER, "print('debug: done', flush=True)\n"])
def test_what_nobody_asked_for_is_an_error_of_the_next_call(watched: Watched, second: str) -> None:
    code = READ + ANSWER + second + "for line in lines:\n    request = json.loads(line)\n    " + ANSWER
    target = watched.target(code)
    draw(target)
    assert re.search('debug: done|did not answer message 2|asked; it wrote \'{"id": 1, ', str(fails(target)))


def test_a_death_is_an_error_and_the_next_call_starts_anew(watched: Watched) -> None:
    # It answers three requests; then it has ended, before the fourth or in it.
    code = "n = 0\n" + READ + "while n < 3:\n    n += 1\n    " + ANSWER + "    request = json.loads(next(lines))\n"
    target = watched.target(code + "sys.exit(7)")
    for _ in range(2 * STARTS):
        for _ in range(3):
            assert draw(target, 1) == [1.5]
        assert "exit code 7" in str(fails(target))


def test_a_target_that_ends_between_two_requests_is_an_error(watched: Watched) -> None:
    target = watched.target(READ + ANSWER)
    draw(target)
    assert "with exit code 0" in str(fails(target))


def test_a_target_that_dies_at_random_is_an_error_in_the_end(watched: Watched) -> None:
    # It survives 200 requests with probability 2^-200.
    target = watched.target(
        READ + "while os.urandom(1) < b'\\x80':\n    " + ANSWER + "    request = json.loads(next(lines))\n"
    )

    def many() -> None:
        for _ in range(200):
            draw(target, 1)

    with pytest.raises(TargetError, match="exit code 0"):
        many()


def test_a_target_that_never_answers_is_not_started_for_ever(watched: Watched) -> None:
    target = watched.target("raise SystemExit(5)")
    for _ in range(STARTS):
        assert "exit code 5" in str(fails(target))
    assert f"was started {STARTS} times and never answered" in str(fails(target))


#: Processes that try to outlive their parent; each says how many there are, and then answers or ends.
SPAWN = {
    "children": "for _ in range(20):\n    if os.fork() == 0: time.sleep(60); os._exit(0)\n",
    "a daemon": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (0, 1, 2): os.close(number)
        while True: time.sleep(60)
    os._exit(0)
""",
    "a chain of daemons": """
for depth in range(30):
    if os.fork(): time.sleep(60 if depth else 0); break
    os.setsid()
else:
    time.sleep(60)
""",
    "one that forks and ends for ever": """
if os.fork() == 0:
    os.close(1)
    while True:
        os.setsid() if os.getpid() != os.getsid(0) else None
        if os.fork(): os._exit(0)
""",
    "one that ignores signals": """
import signal
if os.fork() == 0:
    for number in (1, 2, 3, 13, 15, 18): signal.signal(number, signal.SIG_IGN)
    while True: time.sleep(60)
""",
    "one that kills its supervisor": """
os.setsid() if os.getpid() != os.getsid(0) else None
if os.fork() == 0: time.sleep(60)
os.kill(os.getppid(), 9)
""",
    "one that kills all that watch it": """
if os.fork() == 0: time.sleep(60)
parent = os.getppid()
with open(f"/proc/{parent}/stat") as file: above = int(file.read().rpartition(")")[2].split()[1])
os.kill(above, 9)
os.kill(parent, 9)
""",
    "one that stops all that watch it": """
if os.fork() == 0: time.sleep(60)
parent = os.getppid()
with open(f"/proc/{parent}/stat") as file: above = int(file.read().rpartition(")")[2].split()[1])
os.kill(above, 19)
os.kill(parent, 19)
""",
    "one that stops its supervisor": """
if os.fork() == 0: time.sleep(60)
os.kill(os.getppid(), 19)
""",
}


#: Those that kill what watches them; they may be killed for it before they have answered.
KILLERS = ("one that kills its supervisor", "one that kills all that watch it", "one that stops all that watch it")


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("name", SPAWN)
def test_nothing_is_left_behind(watched: Watched, name: str, answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_pipe, "_PATIENCE", 0.5)  # seconds for a supervisor that was stopped
    if answers:
        target = watched.target(READ + SPAWN[name] + ANSWER + "sys.stdin.read()", limit=10.0)
        ended = ""
        try:
            assert draw(target) == [1.5] * 4
        except TargetError as error:
            ended = str(error)
        assert not ended or (name in KILLERS and "ended by signal SIGKILL before it had answered" in ended), ended
        target.close()
    else:
        fails(watched.target(READ + SPAWN[name] + "os._exit(4)"))
    assert watched.processes() == []


def test_a_child_that_holds_the_output_does_not_make_it_hang(watched: Watched) -> None:
    code = READ + "if os.fork() == 0: time.sleep(60)\nos._exit(0)"
    assert "ended with exit code 0" in str(fails(watched.target(code, limit=20.0)))


def test_nothing_is_left_when_the_auditor_is_killed(watched: Watched) -> None:
    code = f"""
import sys, time
from auditor.targets.process import ProcessTarget
target = ProcessTarget([sys.executable, "-I", "-S", "-c", {READ + SPAWN["a daemon"] + ANSWER + "time.sleep(60)"!r}])
target([1], 1, None)
print("ready", flush=True)
time.sleep(60)
"""
    env = {**os.environ, NAME: watched.token}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as auditing:
        assert auditing.stdout is not None
        assert auditing.stdout.readline() == b"ready\n"
        assert len(watched.processes()) >= 4  # it, the supervisor, the command and its daemon
        auditing.send_signal(signal.SIGKILL)
        auditing.wait()
        until = time.monotonic() + 10
        while watched.processes() and time.monotonic() < until:
            time.sleep(0.01)
    assert watched.processes() == []


def test_an_interrupted_call_ends_the_process(watched: Watched) -> None:
    target = watched.target(READ + "time.sleep(60)", limit=30.0)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            draw(target)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert watched.processes() == []


@pytest.mark.parametrize("name", ["garbage", "hangs", "dies at start", "too few"])
def test_an_audit_of_it_is_an_error_that_quotes_it(watched: Watched, name: str) -> None:
    code, said = HOSTILE[name]
    pair = auditor.Pair(np.zeros(3), np.ones(3), "zeros against ones")
    result = auditor.audit(watched.target(code), auditor.PureDP(1.0), pair, draws=10_000)
    assert result.verdict == auditor.Verdict.ERROR
    assert re.search(said.replace("4 outputs", r"\d+ outputs").replace("with 3", r"with \d+"), result.message)
    assert watched.processes() == []
