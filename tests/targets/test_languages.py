"""The examples in three languages: what they claim holds as far as an audit sees, and half their noise is found out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import auditor
from auditor.errors import TargetRaised
from auditor.targets.process import ProcessTarget
from auditor.targets.protocol import read_answer, read_hello

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "targets"
HELPER = ROOT / "auditor" / "targets" / "helper.py"
LANGUAGES = ("python", "node", "c")
PAIR = auditor.Pair(np.array([1, 0, 1]), np.array([0, 0, 1]), "two ones against one")
#: False alarms of a test have this probability.
ALPHA = 1e-6


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in C, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler, cc")
    made = tmp_path_factory.mktemp("c") / "noisy_count"
    source = EXAMPLES / "noisy_count.c"
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(made), str(source)], check=True)
    return made


def command(language: str, epsilon: int, request: pytest.FixtureRequest) -> list[str]:
    if language == "python":
        name = {1: "noisy_count", 2: "too_little_noise"}[epsilon]
        return [sys.executable, str(HELPER), f"{EXAMPLES / 'noisy_count.py'}:{name}"]
    if language == "c":
        return [str(request.getfixturevalue("program")), str(epsilon)]
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node, node")
    return [node, str(EXAMPLES / "noisy_count.js"), str(epsilon)]


@pytest.fixture(params=LANGUAGES)
def honest(request: pytest.FixtureRequest) -> Iterator[ProcessTarget]:
    with ProcessTarget(command(request.param, 1, request)) as target:
        yield target


@pytest.fixture(params=LANGUAGES)
def mutant(request: pytest.FixtureRequest) -> Iterator[ProcessTarget]:
    with ProcessTarget(command(request.param, 2, request)) as target:
        yield target


def test_an_honest_count_is_not_found_out(honest: ProcessTarget) -> None:
    result = auditor.audit(honest, auditor.PureDP(1.0), PAIR, draws=24_000, alpha=ALPHA)
    assert result.verdict == auditor.Verdict.CONSISTENT, result.message
    assert result.lower_bound is not None
    assert result.lower_bound > 0.5  # so that noise that is much too large would not pass here


def test_half_the_noise_is_a_violation(mutant: ProcessTarget) -> None:
    # Epsilon is 2. A few hundred draws find it out, and all of them give a wealth of about 10^540: no seed hides it.
    result = auditor.audit(mutant, auditor.PureDP(1.0), PAIR, draws=20_000, alpha=ALPHA)
    assert result.verdict == auditor.Verdict.VIOLATION, result.message


def test_seeds_decide_the_draws_and_no_seed_does_not(honest: ProcessTarget) -> None:
    first, second = (honest(PAIR.x, 40, np.random.default_rng(5)) for _ in range(2))
    assert first == second
    # Two sequences of 40 draws agree with probability .29^40 < 1e-21, .29 the sum of the squares of this distribution's
    # masses.
    assert honest(PAIR.x, 40, np.random.default_rng(6)) != first
    assert honest(PAIR.x, 40, None) != honest(PAIR.x, 40, None)
    assert honest.seeded
    assert honest.hello is not None
    assert honest.hello.states["noise"] == {"distribution": "two-sided geometric", "scale": 1, "sensitivity": 1}


def test_outputs_follow_the_law_that_is_stated(honest: ProcessTarget) -> None:
    n, a = 20_000, np.exp(-1.0)
    noise = np.asarray(honest(PAIR.x, n, np.random.default_rng(1))) - 2
    for k in range(-3, 4):
        mass = (1 - a) / (1 + a) * a ** abs(k)
        # Hoeffding: further off than this with probability 2 exp(-2 * 20000 * .021^2) < 5e-8, for each of 21.
        assert abs(np.mean(noise == k) - mass) < 0.021


def test_a_target_ignores_members_that_it_does_not_know(honest: ProcessTarget) -> None:
    with honest.connected() as (exchange, numbers):
        number = next(numbers)
        line = f'{{"new": [{{"a": "]}}\\""}}], "seed": 3, "n": 2, "id": {number}, "data": [1, 2.5, -1e-3, 0]}}\n'
        answer = read_answer(exchange(line.encode()), number, 2)
    assert all(isinstance(output, int) for output in answer)


def test_the_page_names_files_that_exist_and_lines_that_are_read() -> None:
    page = (EXAMPLES / "README.md").read_text()
    named = set(re.findall(r"(?:examples|auditor)/targets/\w+\.\w+", page))
    assert len(named) >= 6
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
    lines = [line.encode() for line in re.findall(r"^    (\{.*?\})  ", page, re.MULTILINE)]
    hello, request, answer, failure = lines
    assert json.loads(request)["n"] == 1000
    assert read_hello(hello).seeded
    assert read_answer(answer.replace(b", ...", b""), 1, 3) == [2, 3, 2]
    with pytest.raises(TargetRaised, match="ValueError"):
        read_answer(failure, 1, 1)


def test_an_empty_dataset_is_one(honest: ProcessTarget) -> None:
    assert len(honest(np.array([]), 3, np.random.default_rng(0))) == 3
