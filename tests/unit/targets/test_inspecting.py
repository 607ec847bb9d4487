"""Whether a target can be audited."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np
import pytest

from auditor.cli.check import inspect_target, log_orders, repeats_after_restart
from auditor.errors import SpecificationError, TargetError, TargetRaised
from auditor.targets.callables import load_file
from auditor.targets.process import ProcessTarget
from auditor.targets.protocol import FIRST_REQUEST

EXAMPLE = Path(__file__).parents[3] / "examples" / "targets" / "noisy_count_server.py"

#: A process that speaks the protocol; {first} runs at its start, and {draw} makes an output.
SPEAKER = """
import json, random, sys
{first}
for line in sys.stdin:
    request = json.loads(line)
    outputs = [{draw} for _ in range(request["n"])]
    print(json.dumps({{"id": request["id"], "outputs": outputs}}), flush=True)
"""
FUNCTIONS = """
STATES = {"noise": {"distribution": "laplace", "scale": 2.0}}

def seeded(data, n, rng):
    return rng.random(n) if hasattr(rng, "spawn") else [rng.random() for _ in range(n)]

def raising(data):
    raise ValueError("SECRET")
"""


ONCE = """
import random

import numpy as np

def own(data): return random.random()
def constant(data): return sum(data) + random.Random(7).random()
def seeded_once(data, seed=None): return random.Random(seed).random()
def ignores(data, rng): return random.random()

def sometimes(data, rng):
    if rng.random() < 0.5:  # none or all of 16 with probability 3e-5, and the seed is fixed
        raise ValueError
    return rng.random()
"""


@pytest.fixture
def speaker(tmp_path: Path) -> Callable[[str, str], str]:
    def write(first: str, draw: str) -> str:
        path = tmp_path / "speaker.py"
        path.write_text(SPEAKER.format(first=first, draw=draw))
        return shlex.join([sys.executable, str(path)])

    return write


def report(text: str, data: Path | None = None) -> tuple[dict[str, str], bool]:
    """The lines of a report by their first words, and whether it says that the target is sound."""
    lines, sound = inspect_target(text, data, 1000, limit=10.0)
    return {line[:14].strip(): line[14:] for line in lines}, sound


def rest_of(said: dict[str, str]) -> set[str]:
    return said.keys() - {"answers", "speed", "seeded", "independent", "1,000 draws ta"}


# A sound target fails one of the tests of independence, or seems to repeat itself, with probability at most 2e-6.


def test_a_process_with_entropy_of_its_own(speaker: Callable[[str, str], str]) -> None:
    said, sound = report("exec:" + speaker("", "random.random()"))
    assert sound
    assert said["independent"] == "no sign against it"
    assert said["seeded"].startswith("no")
    assert said["says"] == "nothing about itself: protocol 1, not seeded"
    assert said["restarts"] == "its outputs differ after a restart"
    assert rest_of(said) == {"first answer", "round trip", "says", "restarts"}
    assert said["first answer"].endswith("with its start")


def test_a_process_that_is_seeded_with_a_constant(speaker: Callable[[str, str], str]) -> None:
    said, sound = report("exec:" + speaker("random.seed(7)", "random.random()"))
    assert not sound
    assert said["independent"] == "no sign against it"  # within one process nothing is wrong
    assert said["restarts"] == "NO: a restarted target repeats its outputs"


def test_a_process_whose_outputs_never_vary(speaker: Callable[[str, str], str]) -> None:
    said, sound = report("exec:" + speaker("", "sum(request['data'])"))
    assert sound
    assert said["restarts"] == "cannot be told: its outputs hardly vary"


def test_a_function_in_an_environment_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path))
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    said, sound = report("pip:#functions.py:seeded")
    assert sound
    assert said["seeded"] == "yes"
    assert said["says"] == "protocol 1, seeded"
    assert json.loads(said["states"]) == {"noise": {"distribution": "laplace", "scale": 2.0}}
    assert said["restarts"] == "its outputs differ after a restart, as they should: each start is sent other seeds"
    assert said["environment"].startswith("no required package, 0 others; kept in ")


def test_a_service() -> None:
    server = load_file(EXAMPLE).server(0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        said, sound = report(f"http://127.0.0.1:{server.server_port}/")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert sound
    assert said["seeded"] == "yes"
    assert said["says"] == "protocol 1, seeded"
    assert rest_of(said) == {"first answer", "round trip", "says"}


def test_a_callable_has_no_protocol_to_speak() -> None:
    said, sound = report(f"{EXAMPLE.parents[1]}/noisy_count.py:noisy_count")
    assert sound
    assert said["answers"] == "an array of shape (16,), float64 for 16 draws"
    assert rest_of(said) == set()


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("own", "seeded", "no: it takes neither a generator nor a seed, so results differ from run to run"),
        ("constant", "seeded", "no: it takes neither a generator nor a seed, and its outputs do not vary"),
        ("seeded_once", "seeded", "yes"),
        ("ignores", "seeded", "no: it has its own randomness, so results differ from run to run"),
        ("sometimes", "answers", "a list of values for 16 draws, of which {} raised ValueError (once.py, line 13)"),
    ],
)
def test_a_function_of_one_draw_says_what_it_is(tmp_path: Path, name: str, line: str, said: str) -> None:
    (tmp_path / "once.py").write_text(ONCE)
    lines, sound = inspect_target(f"{tmp_path}/once.py:{name}", None, 1000, one_draw=True, limit=10.0)
    assert sound
    (found,) = [text[14:] for text in lines if text.startswith(line)]
    assert re.fullmatch(re.escape(said).replace(r"\{\}", r"\d+"), found)


# ------------------------------------------------------------------------------------- targets that do not answer


def test_what_does_not_speak_the_protocol_is_quoted_with_what_was_expected() -> None:
    with pytest.raises(TargetError) as caught:
        inspect_target(f"exec:{shlex.quote(sys.executable)} -c 'print(\"hi there\"); input()'", None, 1000, limit=5.0)
    said = str(caught.value)
    assert "hi there" in said
    line = next(line for line in said.splitlines() if line.strip().startswith('{"id":1,'))
    assert json.loads(line) == {"id": 1, "data": [0.0], "n": FIRST_REQUEST, "seed": 7}
    assert '"outputs": [...]' in said


def test_a_function_that_raises_wants_other_data(speaker: Callable[[str, str], str]) -> None:
    command = speaker("", "0").replace("speaker.py", "raises.py")
    Path(shlex.split(command)[1]).write_text(
        SPEAKER.format(first="", draw="0").replace('"outputs": outputs', '"error": {"type": "ValueError"}')
    )
    with pytest.raises(TargetRaised, match="name another with --data") as caught:
        inspect_target("exec:" + command, None, 1000, limit=5.0)
    assert caught.value.error == "ValueError"
    assert "expected was" not in str(caught.value)


def test_private_data_are_not_repeated(tmp_path: Path, speaker: Callable[[str, str], str]) -> None:
    (tmp_path / "data.json").write_text('["SECRET", "OTHER"]')
    command = speaker("print('my data are', sys.stdin.readline(), file=sys.stderr); sys.exit(3)", "0")
    with pytest.raises(TargetError, match="exit code 3") as caught:
        inspect_target("exec:" + command, tmp_path / "data.json", 1000, limit=5.0)
    assert "SECRET" not in str(caught.value)
    assert "not shown" in str(caught.value)
    assert '"data":[0.0]' in str(caught.value)


def test_data_that_cannot_be_read_are_refused_before_the_target_starts(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="cannot be read"):
        inspect_target("exec:no-such-command-here", tmp_path / "data.json", 1000)


# ------------------------------------------------------------------------------------- restarts


@dataclass
class Process:
    """Stands for a process: a copy starts with a generator of its own, from ``seed``, or with fresh entropy."""

    draw: Callable[[np.random.Generator, int], Any]
    seed: int | None

    def __enter__(self) -> Process:
        self.rng = np.random.default_rng(self.seed)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        del self.rng

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return self.draw(self.rng, n)


LAWS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "coins": lambda rng, n: rng.integers(2, size=n),
    "rare": lambda rng, n: rng.random(n) < 0.05,
    "rows": lambda rng, n: rng.normal(size=(n, 3)),
    "texts": lambda rng, n: [str(k) for k in rng.integers(5, size=n)],
    "ragged": lambda rng, n: [[1.0] * k for k in rng.integers(5, size=n)],
    "no numbers": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, np.inf),
}


def repeats(draw: Callable[[np.random.Generator, int], Any], seed: int | None) -> bool | None:
    return repeats_after_restart(cast(ProcessTarget, Process(draw, seed)), [0])


@pytest.mark.parametrize("law", LAWS)
def test_fresh_starts_are_compared(law: str) -> None:
    assert repeats(LAWS[law], 7) is True
    # Wrong with probability at most 1e-6.
    assert repeats(LAWS[law], None) is not True


def test_outputs_that_hardly_vary_tell_nothing() -> None:
    assert repeats(lambda rng, n: np.zeros(n), 7) is None
    # At most one output of a call is not the usual one, in one call of eight: too few orders for 1e-6.
    assert repeats(lambda rng, n: np.arange(n) == (rng.integers(n) if rng.integers(8) == 0 else n), 7) is None


@pytest.mark.parametrize("outputs", ["aabb", "abcd", "aaab", "aaaa", "abbcccc"])
def test_orders_are_counted(outputs: str) -> None:
    # Independent starts agree in one order of all that are equally likely: this is what bounds false alarms.
    counted = log_orders(np.array([ord(letter) for letter in outputs]))
    assert counted == pytest.approx(math.log(len(set(itertools.permutations(outputs)))), abs=1e-12)
