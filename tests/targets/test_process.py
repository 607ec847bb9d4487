"""A target of its own process that behaves: what it is sent, what comes back, and when it is started and ended."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.errors import SpecificationError, TargetError, TargetRaised
from auditor.targets import process
from auditor.targets.outputs import Raised
from auditor.targets.process import ProcessTarget
from auditor.targets.protocol import Hello
from auditor.targets.sampler import Sampler

#: A target without the helper: one that tells what it was sent, and answers in the form that ``data`` asks for.
PLAIN = """
import json, os, sys
if os.environ.get("HELLO"):
    print(os.environ["HELLO"], flush=True)
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    said = {"id": request["id"]}
    if request["data"] == "raise":
        said["error"] = {"type": "ValueError", "message": "no rows"}
    else:
        told = {"data": request["data"], "seed": request["seed"], "n": request["n"], "pid": os.getpid(),
                "cwd": os.getcwd(), "args": sys.argv[1:]}
        said["outputs"] = [told] * request["n"]
    print(json.dumps(said), flush=True)
"""


def plain(*words: str, **options: Any) -> ProcessTarget:
    return ProcessTarget([sys.executable, "-I", "-S", "-c", PLAIN, *words], limit=20.0, **options)


@pytest.fixture
def target() -> Iterator[ProcessTarget]:
    with plain() as made:
        yield made


def draw(target: ProcessTarget, data: Any = 0, n: int = 1, seed: int = 0) -> Any:
    return target(data, n, np.random.default_rng(seed))


def test_one_process_serves_all_calls(target: ProcessTarget) -> None:
    pids = {told["pid"] for n in (1, 3, 50) for told in draw(target, n=n)}
    assert len(pids) == 1


def test_it_is_sent_the_data_and_a_seed_of_the_generator(target: ProcessTarget) -> None:
    table = pd.DataFrame({"age": [30, 40], "income": [0.5, np.inf]})
    (told,) = draw(target, table)
    assert told["data"] == [{"age": 30, "income": 0.5}, {"age": 40, "income": np.inf}]
    (told,) = draw(target, np.arange(6).reshape(3, 2))
    assert told["data"] == [[0, 1], [2, 3], [4, 5]]
    seeds = [told["seed"] for told in draw(target, n=40, seed=1)]
    assert [told["seed"] for told in draw(target, n=40, seed=1)] == seeds
    assert [told["seed"] for told in draw(target, n=40, seed=2)] != seeds
    assert target(0, 1, None)[0]["seed"] is None


def test_what_is_sent_does_not_depend_on_what_was_asked_before(target: ProcessTarget) -> None:
    def sent() -> list[tuple[int, int]]:
        return [(told["seed"], told["n"]) for told in draw(target, n=2500)]

    first = sent()
    draw(target, data="x" * 10**5, n=100)
    assert sent() == first
    target.close()
    assert sent() == first


def test_large_data_pass(target: ProcessTarget) -> None:
    data = np.arange(200_000)
    (told,) = draw(target, data)
    assert told["data"] == data.tolist()


def test_data_that_cannot_be_sent_leave_it_as_it_is(target: ProcessTarget) -> None:
    (before,) = draw(target)
    with pytest.raises(SpecificationError, match="cannot be sent"):
        draw(target, object())
    assert draw(target) == [before]


def test_it_runs_where_and_with_what_it_is_told_to(tmp_path: Path) -> None:
    with plain("a b", "c", cwd=tmp_path) as target:
        (told,) = draw(target)
    assert told["args"] == ["a b", "c"]
    assert Path(told["cwd"]) == tmp_path


def test_a_hello_is_kept() -> None:
    hello = '{"hello": {"protocol": 1, "seeded": true, "states": {"a": 1}}}'
    with plain(env={"HELLO": hello}) as target:
        draw(target)
        assert target.hello == Hello(1, True, False, {"a": 1})
        assert target.seeded
    assert target.seeded  # closing it does not change what it said


@pytest.mark.parametrize("asked", [False, True])
def test_without_a_hello_it_is_not_seeded(target: ProcessTarget, asked: bool) -> None:
    if asked:
        draw(target)
    assert target.hello is None
    assert not target.seeded


def test_what_its_code_raises_leaves_it_as_it_is(target: ProcessTarget) -> None:
    (before,) = draw(target)
    with pytest.raises(TargetRaised, match="the target raised ValueError: 'no rows'"):
        draw(target, "raise", n=5)
    assert draw(target) == [before]


def test_what_its_code_raises_for_one_draw_is_an_output(target: ProcessTarget) -> None:
    assert Sampler(target, 0, "k", catching=True).draw("raise", 1, "x") == [Raised("ValueError")]


def test_a_closed_target_starts_again() -> None:
    target = plain()
    (first,) = draw(target)
    target.close()
    target.close()
    (second,) = draw(target)
    assert first["pid"] != second["pid"]
    target.close()


def test_closing_one_that_ends_when_its_input_does_is_quick(
    target: ProcessTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 60.0)
    draw(target)
    begun = time.monotonic()
    target.close()
    assert time.monotonic() - begun < 30.0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_target_that_nobody_holds_is_ended() -> None:
    target = plain()
    (told,) = draw(target)
    del target
    gc.collect()
    assert not alive(told["pid"])


def test_nothing_is_started_before_it_is_asked(tmp_path: Path) -> None:
    touch = f"open({str(tmp_path / 'started')!r}, 'w')"
    ProcessTarget([sys.executable, "-c", touch])
    assert not (tmp_path / "started").exists()


def test_a_copy_has_a_process_of_its_own(target: ProcessTarget) -> None:
    (first,) = draw(target)
    with pickle.loads(pickle.dumps(target)) as copy:
        (second,) = draw(copy)
    assert first["pid"] != second["pid"]
    assert draw(target) == [first]


def test_descriptors_are_closed() -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("open descriptors are counted in /proc")
    gc.collect()  # what earlier tests left is closed now, not in between
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with plain() as target:
            draw(target)
    with ProcessTarget([sys.executable, "-c", "raise SystemExit(1)"]) as broken:
        for _ in range(5):
            with pytest.raises(TargetError):
                draw(broken)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        ([], {}, r"sequence of texts, the program first, got \[\]"),
        ("python x.py", {}, r"sequence of texts, the program first, got 'python x.py'"),
        (["python", 3], {}, r"got \['python', 3\]"),
        (["a\0b"], {}, "NUL"),
        (
            ["no-such-program-of-ours", "x"],
            {},
            r"no such command: 'no-such-program-of-ours', in 'no-such-program-of-ours x'",
        ),
        (["./absent"], {}, r"no such command: './absent'"),
        (["./"], {}, r"no such command: './'"),
        ([sys.executable], {"cwd": "/absent"}, r"no such folder: '/absent'"),
        ([sys.executable], {"cwd": 5}, "cwd must be a path, got 5"),
        ([sys.executable], {"limit": 0}, "limit must be a positive number, got 0"),
        ([sys.executable], {"start_limit": -1.0}, "start_limit must be a positive number"),
        ([sys.executable], {"limit": float("inf")}, "limit must be a finite number, got inf"),
        (["python"], {"env": {"PATH": ""}}, "no such command: 'python'"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(command: Any, options: Any, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        ProcessTarget(command, **options)


def test_a_program_is_found_beside_the_folder_that_it_runs_in(tmp_path: Path) -> None:
    script = tmp_path / "target"
    script.write_text(f"#!{sys.executable} -I\n{PLAIN}")
    script.chmod(0o755)
    with ProcessTarget(["./target"], cwd=tmp_path, limit=20.0) as target:
        assert len(draw(target, n=3)) == 3


def test_a_program_that_is_no_program_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "target"
    script.write_bytes(b"\x7fELF no program")
    script.chmod(0o755)
    with (
        ProcessTarget([str(script)], limit=20.0) as target,
        pytest.raises(TargetError, match=r"exit code 127 .* cannot be started: Exec format error"),
    ):
        draw(target)


NOISE = """
import json, random, sys
scale = float(sys.argv[1])
print('{"hello": {"seeded": true}}', flush=True)
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    source = random.Random(request["seed"])
    count = sum(request["data"])
    outputs = [count if source.random() < scale else 1 - count for _ in range(request["n"])]
    print(json.dumps({"id": request["id"], "outputs": outputs}), flush=True)
"""
PAIR = auditor.Pair(np.array([0]), np.array([1]), "0 against 1")


def randomised_response(truth: float) -> ProcessTarget:
    return ProcessTarget([sys.executable, "-I", "-c", textwrap.dedent(NOISE), f"{truth}"], limit=20.0)


def test_an_audit_finds_what_there_is() -> None:
    # Epsilon is ln(0.9 / 0.1) = 2.2; false alarms and their opposite have probabilities below 1e-6.
    with randomised_response(0.9) as target:
        broken = auditor.audit(target, auditor.PureDP(1.0), PAIR, draws=5000, alpha=1e-6)
        sound = auditor.audit(target, auditor.PureDP(2.2), PAIR, draws=5000, alpha=1e-6)
    assert broken.verdict == auditor.Verdict.VIOLATION
    assert sound.verdict in (auditor.Verdict.CONSISTENT, auditor.Verdict.INCONCLUSIVE)
    assert not broken.unseeded


def test_an_audit_of_a_seeded_target_is_the_same_again() -> None:
    with randomised_response(0.8) as target, randomised_response(0.8) as other:
        first, again, apart = (
            auditor.audit(which, auditor.PureDP(1.0), PAIR, draws=3000, seed=3).to_json()
            for which in (target, target, other)
        )
    assert first == again == apart
