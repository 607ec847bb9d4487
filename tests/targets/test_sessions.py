"""Interactive mechanisms in another process: the same dialogues as in this one, and what can go wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import auditor
from auditor.errors import TargetError, TargetRaised
from auditor.targets import helper
from auditor.targets.analysts import FixedList
from auditor.targets.interactive import SKIP, History
from auditor.targets.interactive_process import ProcessSessions
from auditor.targets.protocol import REQUEST
from auditor.targets.transcripts import Dialogue

HELPER = helper.__file__
#: Each query is a coordinate of the data, told the truth about with a probability; the third answer is the last.
SERVED = """
import random
import numpy as np

class OneByOne:
    truth = 0.75
    def start(self, data, seed): return Run(data, random.Random(seed), self.truth)
class Careless(OneByOne):
    truth = 0.95
class Run:
    silence = -1.0
    def __init__(self, data, source, truth): self.data, self.source, self.truth, self.left = data, source, truth, 3
    def ask(self, query):
        if self.left == 0: return self.silence
        self.left -= 1
        bit = self.data[query]
        return float(bit if self.source.random() < self.truth else 1 - bit)

class Together:
    states = {"rounds": 3}
    def start(self, data, n, rng): return Runs(np.array(data), n, rng)
class Runs:
    silence = -1.0
    def __init__(self, data, n, rng): self.data, self.rng, self.left = data, rng, np.full(n, 3)
    def ask(self, queries):
        asked = (queries >= 0) & (self.left > 0)
        self.left -= asked
        bits = self.data[queries]
        return np.where(asked, np.where(self.rng.random(len(bits)) < 0.75, bits, 1 - bits), self.silence)
    def close(self): print("closed")
together = Together()

class Halting:
    def start(self, data, n): return Texts(n)
class Texts:
    silence = -1
    def __init__(self, n): self.n, self.round = n, 0
    def ask(self, queries):
        self.round += 1
        return {1: [7] * self.n, 2: ["yes"] * (self.n - 1) + [5], 3: [-1] * self.n}[self.round]

class Strange:
    def start(self, data, n): return Odd(data, n)
class Odd:
    silence = "none"
    def __init__(self, data, n): self.data, self.n = data, n
    def ask(self, queries):
        if self.data == [0]: raise ValueError("no")
        return {1: ["yes"] * self.n, 2: [[1, 2.5]] * self.n, 3: [1] * (self.n - 1), 4: [None] * self.n,
                5: [[1], [1, 2]], 6: [2**60] * self.n, 7: ["none", 3], 8: [True, False]}[self.data[0]]
"""

Serve = Callable[[str], ProcessSessions]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    made: list[ProcessSessions] = []
    (tmp_path / "served.py").write_text(SERVED)

    def one(name: str) -> ProcessSessions:
        made.append(ProcessSessions([sys.executable, HELPER, f"served.py:{name}"], cwd=tmp_path, limit=20.0))
        return made[-1]

    yield one
    for target in made:
        target.close()


@pytest.mark.parametrize("name", ["OneByOne", "Together", "together"])
def test_a_dialogue_is_an_ordinary_target(serve: Serve, name: str) -> None:
    target = serve(name)
    dialogue = Dialogue(target, FixedList([0, 1, 0, 1]))
    rows = dialogue(np.array([1, 0]), 50, np.random.default_rng(0))
    assert rows.shape == (50, 4)
    assert set(rows[:, :3].ravel()) == {0.0, 1.0}
    assert set(rows[:, 3]) == {-1.0}
    assert target.seeded
    np.testing.assert_array_equal(dialogue(np.array([1, 0]), 50, np.random.default_rng(0)), rows)
    assert target.process.hello is not None
    assert target.process.hello.interactive


def test_an_audit_of_a_dialogue(serve: Serve) -> None:
    # Two answers of ln(0.75 / 0.25) = 1.1 each are 2.2 for two queries of one coordinate, and 5.9 if 0.75 is 0.95.
    pair = auditor.Pair(np.array([0]), np.array([1]), "0 against 1")
    guarantee = auditor.PureDP(2.2)
    for name, expected in [("OneByOne", False), ("Careless", True)]:
        dialogue = Dialogue(serve(name), FixedList([0, 0]))
        result = auditor.audit(dialogue, guarantee, pair, draws=6000, alpha=1e-6)
        assert (result.verdict == auditor.Verdict.VIOLATION) == expected, result.message


def test_many_runs_are_several_sessions(serve: Serve) -> None:
    session = serve("OneByOne").start([1, 0], 2 * REQUEST + 5, np.random.default_rng(0))
    first = session.ask(0)
    assert first.shape == (2 * REQUEST + 5,)
    assert first.dtype == np.float64
    # Told the truth with probability 3/4; off by this much with probability 2 exp(-2 * 2005 * .07^2) < 1e-8.
    assert abs(first.mean() - 0.75) < 0.07
    queries = np.where(np.arange(2 * REQUEST + 5) % 2, 1, SKIP)
    second = session.ask(queries)
    np.testing.assert_array_equal(second[::2], -1.0)
    assert abs(second[1::2].mean() - 0.25) < 0.1
    assert session.silence == -1.0
    session.close()


def test_an_adaptive_analyst_sees_the_answers(serve: Serve) -> None:
    class Follow:
        rounds, adaptive, coins = 2, True, 0

        def __call__(self, history: History) -> Any:
            return 0 if not history.rounds else history.answers[:, 0].astype(np.int64)

    rows = Dialogue(serve("Together"), Follow())(np.array([1, 0]), 40, np.random.default_rng(0))
    np.testing.assert_array_equal(rows[:, 3], rows[:, 0])


def test_rounds_with_texts_and_rounds_of_numbers_are_one_transcript(serve: Serve) -> None:
    # A run that has halted says a number here, and numbers are written alike whatever the other runs were answered.
    rows = Dialogue(serve("Halting"), FixedList([0, 1, 2]))([0], 2, np.random.default_rng(0))
    assert rows.tolist() == [[7.0, "yes", -1.0], [7.0, 5.0, -1.0]]
    assert {type(value) for value in rows.ravel()} == {float, str}


def test_answers_of_every_kind(serve: Serve) -> None:
    target = serve("Strange")
    rng = np.random.default_rng(0)
    assert target.start([1], 2, rng).ask(0).tolist() == ["yes", "yes"]
    assert target.start([2], 2, rng).ask(0).tolist() == [[1.0, 2.5], [1.0, 2.5]]
    assert target.start([7], 2, rng).ask(0).tolist() == ["none", 3]
    assert target.start([8], 2, rng).ask(0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (3, "2 answers were asked for, the target did not give so many"),
        (4, "what is no number"),
        (5, "neither all numbers nor all lists of one length"),
        (6, "an integer beyond"),
    ],
)
def test_wrong_answers_are_errors(serve: Serve, data: int, said: str) -> None:
    session = serve("Strange").start([data], 2, np.random.default_rng(0))
    with pytest.raises(TargetError, match=said):
        session.ask(0)


def test_what_the_target_raises_leaves_it_as_it_is(serve: Serve) -> None:
    target = serve("Strange")
    session = target.start([0], 2, np.random.default_rng(0))
    with pytest.raises(TargetRaised, match=r"raised ValueError: 'no .served.py, line "):
        session.ask(0)
    session.close()
    assert target.process.running
    session = target.start([1], 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="expected one query or 2 of them"):
        session.ask(np.array([1, 2, 3]))


def test_a_session_does_not_outlive_its_process(serve: Serve) -> None:
    target = serve("OneByOne")
    session = target.start([1], 2, np.random.default_rng(0))
    target.close()
    with pytest.raises(TargetError, match="has ended"):
        session.ask(0)
    session.close()
    assert not target.process.running
    target.start([1], 2, np.random.default_rng(0))
    with pytest.raises(TargetError, match="has ended"):
        session.ask(0)


OPENS = """
import json, sys
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **json.loads(sys.argv[1])}), flush=True)
"""


@pytest.mark.parametrize(
    "answer",
    [{}, {"session": "s1"}, {"session": None, "silence": 0}, {"session": "s1", "silence": [0]}, {"outputs": [1]}],
)
def test_a_target_that_opens_no_session_is_an_error(answer: dict[str, Any]) -> None:
    command = [sys.executable, "-I", "-S", "-c", OPENS, json.dumps(answer)]
    with ProcessSessions(command, limit=20.0) as target, pytest.raises(TargetError, match="did not open a session"):
        target.start([0], 2, np.random.default_rng(0))
