"""`dpaudit prove` and `dpaudit trace`: what they say, their files, and wrong calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commandline import Command

SOURCE = """
import secrets
import threading

def response(data, keep=3):
    return int(data[0]) if secrets.randbelow(4) < keep else 1 - int(data[0])

def noisy(data, n, rng):
    return rng.laplace(size=n)

def bare(data, rng):
    return sum(data) + 0 * rng.laplace()

def constant(data, rng):
    return rng.random() < 0.5

def threaded(data, rng):
    threading.Thread(target=print).start()

def spread(data, rng, scale):
    first, second, third = sum(data) + rng.laplace(scale=scale, size=3)
    return [first - second, second - third, first + third]
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


DOMAIN = ("--relation", "replace-one", "--domain", "0,1", "--rows", 1, "--min-rows", 1)


def test_verdicts_have_their_exit_codes(dpaudit: Command, code: Path, tmp_path: Path) -> None:
    target = (f"{code}:response", "--one-draw")
    held = dpaudit("prove", *target, "--claim", "epsilon=1.0986122886681098", *DOMAIN)
    assert held.code == 0, held
    assert "holds: claimed ε = 1.09861; the code has ε = 1.09861 at most on these datasets\n" in held.out
    assert held.out.endswith("1 pair, and nothing else.\n")
    broken = dpaudit("prove", *target, "--arg", "keep=4", "--claim", "epsilon=1", *DOMAIN, "--out", tmp_path / "out")
    assert broken.code == 1, broken
    assert "  event  output 0: probability 1 against 0\n" in broken.out
    (claim,) = json.loads((tmp_path / "out" / "results.json").read_text())["claims"]
    assert (claim["level"], claim["verdict"], claim["exact"]) == ("L0", "violation", "inf")
    assert claim["replay"].endswith("--rows 1 --min-rows 1 --one-draw --arg keep=4")
    assert "probability 1 against 0" in (tmp_path / "out" / "report.md").read_text()
    undecided = dpaudit("prove", f"{code}:noisy", "--claim", "epsilon=1", *DOMAIN)
    assert undecided.code == 3, undecided
    assert "a continuous random number is needed as a number" in undecided.out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("code.py:response", "--claim", "epsilon=1", *DOMAIN), "try --one-draw"),
        (("exec:true", "--claim", "epsilon=1", *DOMAIN), "exec:true"),
        (("code.py:noisy", "--claim", "eps=1", *DOMAIN), "eps=1"),
        (("code.py:noisy", "--claim", "epsilon=1", *DOMAIN[2:], "--relation", "rows"), "'rows'"),
        (("code.py:noisy", "--claim", "epsilon=1", *DOMAIN, "--max-seconds", 0), "got 0.0"),
        (("code.py:noisy", "--claim", "epsilon=1", *DOMAIN[:4], "--rows", 20), "2,097,151 datasets"),
    ],
)
def test_wrong_calls_are_refused(dpaudit: Command, code: Path, words: tuple[str, ...], named: str) -> None:
    said = dpaudit("prove", str(words[0]).replace("code.py", str(code)), *words[1:])
    assert said.code == 2, said
    assert named in said.err


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "x.json").write_text("[4711471147]", encoding="utf-8")
    (tmp_path / "y.json").write_text("[4711471147, 8158158158]", encoding="utf-8")
    return ("--data", str(tmp_path / "x.json"), "--neighbor", str(tmp_path / "y.json"))


def test_a_replay_names_what_it_found(dpaudit: Command, code: Path, tmp_path: Path, files: tuple[str, ...]) -> None:
    usual = ("trace", f"{code}:bare", "--one-draw", "--claim", "epsilon=1", *files)
    said = dpaudit(*usual, "--out", tmp_path / "out")
    assert said.code == 1, said
    assert "data reach the output without noise, bare: number 1 of 1 of the output\n" in said.out
    written = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    for value in ("4711471147", "8158158158", "12869629305"):  # too long to be in a hash by chance
        assert value not in written + said.out + said.err
    (claim,) = json.loads((tmp_path / "out" / "results.json").read_text())["claims"]
    assert (claim["level"], claim["verdict"], claim["checks"][0]["passed"]) == ("L1", "violation", False)
    assert "[4711471147]" in dpaudit(*usual, "--show-data").out
    fine = dpaudit("trace", f"{code}:noisy", "--claim", "epsilon=1", *files)
    assert fine.code == 0, fine
    assert "no evidence that it holds" in fine.out
    held = dpaudit("trace", f"{code}:constant", "--one-draw", "--claim", "epsilon=1", *files)
    assert held.code == 0, held
    assert "holds: claimed ε = 1" in held.out
    elsewhere = dpaudit("trace", f"{code}:threaded", "--one-draw", "--claim", "epsilon=1", *files)
    assert elsewhere.code == 3, elsewhere
    assert "it starts a thread. To do: let it draw all random numbers in the call" in elsewhere.out


def test_what_certifies_a_replay_is_drawn_again(
    dpaudit: Command, code: Path, tmp_path: Path, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the draws depend on the target's name, and the folder has another one in each run
    target = (f"{code.name}:spread", "--one-draw", "--arg", "scale=1e10")
    said = dpaudit("trace", *target, "--claim", "epsilon=1", *files, "--show-data", "--out", tmp_path / "out")
    assert said.code == 1, said
    assert "  event        log-likelihood ratio of the noise, as replayed, > " in said.out
    assert f"  replay       dpaudit trace code.py:spread --claim epsilon=1 --data {tmp_path / 'x.json'} " in said.out
    assert said.out.endswith("--draws 20000 --seed 0 --one-draw --show-data --arg scale=1e10\n")
    again = dpaudit("replay", tmp_path / "out" / "results.json")
    assert again.code == 0, again
    assert "reproduced" in again.out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("exec:true", "--claim", "epsilon=1"), "'true' does not replay"),
        (("code.py:bare", "--one-draw", "--claim", "eps=1"), "eps=1"),
        (("code.py:bare", "--one-draw", "--claim", "epsilon=1", "--seed", -1), "-1"),
        (("code.py:nothing", "--one-draw", "--claim", "epsilon=1"), "'nothing'"),
    ],
)
def test_wrong_replays_are_refused(
    dpaudit: Command, code: Path, files: tuple[str, ...], words: tuple[str, ...], named: str
) -> None:
    said = dpaudit("trace", str(words[0]).replace("code.py", str(code)), *words[1:], *files)
    assert said.code == 2, said
    assert named in said.err
