"""Replay of targets of other processes: through the helper, the same findings as here; and what cannot be replayed."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor import ApproxDP, Pair, PureDP, SpecificationError, TargetError, one_draw, trace
from auditor.targets import helper
from auditor.targets.callables import find_callable
from auditor.targets.environments import pip_target
from auditor.targets.http import HttpTarget
from auditor.targets.process import ProcessTarget
from auditor.targets.randomness.signals import Uncontrolled
from auditor.targets.replays import LocalRuns, RemoteRuns
from tests.commandline import ROOT, Command

CODE = """
import random, threading
import numpy as np

def right(data, rng): return sum(data) + rng.laplace(scale=10.0)
def wrong(data, rng):
    return {"sum": sum(data) + rng.laplace(scale=1.0)}
def normal(data): return sum(data) + random.gauss(0.0, 40.0)
def many(data, n, rng): return sum(data) + rng.laplace(scale=np.full(n, 2.0))
def seeded(data, seed): return sum(data) + np.random.default_rng(seed).laplace(scale=10.0)
def own(data, seed=None): return sum(data) + np.random.default_rng(seed).laplace(scale=5.0)
def raises(data): raise ValueError(str(data))
def threaded(data): threading.Thread(target=print).start()
def scaled(data, rng): return sum(data) + rng.laplace(scale=max(data))
def parts(data, rng): return {"a": [rng.normal(size=2), float("nan")], "b": rng.integers(3, size=2), "c": b"x"}
"""
PAIR = Pair([3, 0, 7], [3, 10, 7])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[str], ProcessTarget]]:
    (tmp_path / "served.py").write_text(CODE)
    made: list[ProcessTarget] = []

    def serve(name: str) -> ProcessTarget:
        made.append(ProcessTarget([sys.executable, helper.__file__, f"served.py:{name}"], cwd=tmp_path, limit=20.0))
        return made[-1]

    yield serve
    for target in made:
        target.close()


def test_targets_of_the_helper_are_judged(served: Callable[[str], ProcessTarget]) -> None:
    normal = ApproxDP(1.0, 1e-5)
    for name, claim in (("right", PureDP(1.0)), ("normal", normal), ("seeded", PureDP(1.0))):
        assert trace(served(name), claim, PAIR, draws=2000).verdict == "consistent"
    for name, times in (("wrong", 10), ("own", 2), ("many", 5)):
        found = trace(served(name), PureDP(1.0), PAIR, draws=4000)
        assert found.verdict == "violation"
        line = next(k for k, text in enumerate(CODE.splitlines(), 1) if f"def {name}(" in text) + (name == "wrong")
        assert found.checks[0]["finding"].startswith(f"served.py:{line}: {times} times the scale")
    scaled = trace(served("scaled"), PureDP(1.0), PAIR, draws=200)
    assert scaled.checks[0]["name"] == "scale depends on the data"


def test_what_the_helper_tells_is_what_is_seen_here(served: Callable[[str], ProcessTarget], tmp_path: Path) -> None:
    """The same draws, from the same seeds, and bumps that move the same numbers."""
    file = tmp_path / "served.py"
    for name in ("right", "wrong", "scaled"):
        remote = RemoteRuns(served(name))
        remote.prepare(PAIR.x)
        here = LocalRuns(one_draw(find_callable(f"{file}:{name}")[0]))
        for bumps in (None, {0: {0: 2.5}}):
            one, two = remote.run([3, 0, 7], 5, bumps), here.run([3, 0, 7], 5, bumps)
            assert (one.output, one.draws) == (two.output, two.draws)
        here.close()


def test_draws_after_a_replay_are_fresh(served: Callable[[str], ProcessTarget]) -> None:
    target = served("normal")
    runs = RemoteRuns(target)
    runs.prepare(PAIR.x)
    replayed = {runs.run([3, 0, 7], 5).output for _ in range(3)}
    drawn = target([3, 0, 7], 50, None)
    assert len(replayed) == 1
    assert len(set(drawn)) == 50
    assert runs.run([3, 0, 7], 5).output in replayed


def test_what_cannot_be_replayed_is_refused(served: Callable[[str], ProcessTarget]) -> None:
    found = trace(served("threaded"), PureDP(1.0), PAIR)
    assert (found.verdict, found.message) == ("inconclusive", "it cannot be replayed: it starts a thread")
    with pytest.raises(TargetError, match=r"raised ValueError.* on both datasets"):
        trace(served("raises"), PureDP(1.0), PAIR)
    with pytest.raises(SpecificationError, match="a service cannot be replayed"):
        trace(HttpTarget("http://127.0.0.1:9/x"), PureDP(1.0), PAIR)
    runs = RemoteRuns(served("threaded"))
    with pytest.raises(Uncontrolled, match="starts a thread"):
        runs.run([1], 0)


ECHO = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    said = {"outputs": [0] * request["n"]} if "n" in request else ANSWER
    if HELLO:
        print(json.dumps({"hello": {"replays": True}}), flush=True)
        HELLO = False
    print(json.dumps({"id": request["id"], **said}), flush=True)
"""


@pytest.mark.parametrize("answer", [{}, {"replay": 1}, {"replay": {}}, {"replay": {"output": 1, "draws": [{}]}}])
def test_answers_that_are_no_replay_are_quoted(answer: dict[str, Any]) -> None:
    code = f"ANSWER = {answer!r}\nHELLO = True\n{textwrap.dedent(ECHO)}"
    with ProcessTarget([sys.executable, "-c", code]) as target, pytest.raises(TargetError, match=r"replay|draws"):
        trace(target, PureDP(1.0), PAIR)


def test_commands_are_refused() -> None:
    code = f"ANSWER = {{}}\nHELLO = False\n{textwrap.dedent(ECHO)}"
    with (
        ProcessTarget([sys.executable, "-c", code]) as target,
        pytest.raises(SpecificationError, match="does not replay: a target must be a Python function"),
    ):
        trace(target, PureDP(1.0), PAIR)


def test_the_command_line_replays_the_helper(dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("served.py").write_text(CODE)
    Path("x.json").write_text("[3, 0, 7]")
    Path("y.json").write_text("[3, 10, 7]")
    target = f"exec:{sys.executable} {helper.__file__} served.py:wrong"
    words = ["--claim", "epsilon=1", "--data", "x.json", "--neighbor", "y.json", "--draws", "2000"]
    said = dpaudit("trace", target, *words)
    assert said.code == 1, said
    assert "shift larger than the noise allows, served.py:7: 10 times the scale of its noise" in said.out
    refused = dpaudit("trace", "exec:cat", *words)
    assert refused.code == 2, refused
    assert "'cat' does not replay" in refused.err


def test_a_real_library_is_traced_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A regression of diffprivlib with bounds by which it draws no noise for squares, and with others."""
    monkeypatch.chdir(ROOT)
    rows = [[10.0, 1.0], *([float(k % 7), (k % 3) / 2] for k in range(20))]
    pair = Pair(rows, [[0.0, 0.0], *rows[1:]])
    for bound, verdicts in ((0.0, ("violation", "deviation")), (-10.0, ("consistent",))):
        try:
            target = pip_target(
                ["diffprivlib==0.6.6", "scikit-learn==1.8.0"],
                "examples/traced/with_diffprivlib.py:regression",
                given={"bound": bound},
            )
        except SpecificationError as error:
            pytest.skip(f"no environment: {error}")
        with target:
            found = trace(target, PureDP(1.0), pair, draws=200, seconds=5.0)
        assert found.verdict in verdicts, found.message
        if bound == 0.0:
            (check,) = found.checks
            assert check["name"] == "shift beyond the declared sensitivity"
            assert check["finding"].startswith("linear_regression.py:147, called in with_diffprivlib.py:")
