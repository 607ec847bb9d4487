"""Wrong calls of `dpaudit attack` and `dpaudit check`: one line that shows the offending value, and exit code 2."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from auditor.cli import main
from tests.commandline import Command, process, refused

SOURCE = """
    import numpy as np

    def total(data, n, rng): return np.sum(data) + rng.laplace(size=n)
    def once(data, rng): return float(np.sum(data)) + rng.laplace()
    def own(data): return float(np.sum(data)) + np.random.laplace()
    def setting(data, epsilon): return float(np.sum(data)) + np.random.laplace(scale=1 / epsilon)
    def raises(data, n, rng): raise ValueError("cannot digest it")
    def raises_once(data, rng): raise KeyError("age")
    def divides(data, wobble): return data / wobble
    def wants_a_dict(data, rng): return data["X"].sum() + rng.laplace()
    def returns_none(data, n, rng): return None
    def returns_few(data, n, rng): return [1.0] * (n - 1)
    def nothing(): return 1
    constant = 7

    class Model:
        def __init__(self, epsilon, random_state=None): pass
        def fit(self, X, y): self.coef_ = 1
        def predict(self, X): return 1

    class Silent:
        def draw(self, data, n, rng): return [0] * n
"""
EXITS = """
import asyncio
import sys

def f(data, n, rng): sys.exit(0)
def cancelled(data, n, rng): raise asyncio.CancelledError("later")
def cancelled_once(data, rng): raise GeneratorExit

class Made:
    def __init__(self): sys.exit(1)
    def __call__(self, data, n, rng): return [0] * n
"""
FILES = {
    "mine.py": textwrap.dedent(SOURCE),
    "broken.py": "def f(:\n",
    "fails.py": "raise RuntimeError('no luck')\n",
    "inner.py": "from .other import f\n",
    "ends.py": "import sys\nsys.exit(0)\n",
    "exits.py": EXITS,
    "cancels.py": "import asyncio\nraise asyncio.CancelledError('at load')\n",
    "x.json": "[1, 2, 3]",
    "y.json": "[1, 2, 4]",
    "far.json": "[5, 6, 7]",
    "number.json": "5",
    "next.json": "6",
    "far_number.json": "9",
    "text.json": '"abc"',
    "table.json": '{"X": [[1, 2], [3, 4]], "y": [0, 1]}',
    "other_table.json": '{"X": [[1, 2], [3, 5]], "y": [0, 1], "z": 1}',
    "bad.json": '{"X": ',
    "empty.csv": "",
    "data.xlsx": "",
}
CLAIM = ("--claim", "epsilon=1")
BIT = ("--relation", "replace-one", "--domain", "0,1", "--rows", "1", "--draws", "400")

#: Calls by what they get wrong, each with what has to be shown.
CHECKS: dict[str, tuple[str, str]] = {
    "a name that is close": ("mine.py:totl", "has no attribute 'totl'; did you mean 'total'"),
    "a name that is none": ("mine.py:zzz", "mine.py has no attribute 'zzz'"),
    "a file of a package": ("inner.py:f", "imports from its package as a module: inner:f"),
    "a file that is not there": ("other.py:total", "no such file: 'other.py'"),
    "a module that is not there": ("no_such_module:total", "no_such_module"),
    "a file that cannot be read": ("broken.py:f", "broken.py"),
    "a file that raises": ("fails.py:f", "RuntimeError: no luck"),
    "no name": ("mine.py:", "'mine.py:'"),
    "no colon": ("mine.py", "'mine.py'"),
    "another scheme": ("ftp://host/", "ftp://host/"),
    "no function": ("mine.py:constant", "not callable: 7"),
    "no parameters": ("mine.py:nothing", "takes no dataset"),
    "a setting": ("mine.py:setting", "try --one-draw --arg epsilon=1"),
    "a setting, once": ("mine.py:setting --one-draw", "try --arg epsilon=1"),
    "one draw": ("mine.py:once", "try --one-draw"),
    "one draw of its own": ("mine.py:own", "try --one-draw"),
    "many draws": ("mine.py:total --one-draw", "leave out --one-draw"),
    "a setting that is close": ("mine.py:setting --one-draw --arg epsilom=1", "did you mean 'epsilon'"),
    "a setting that is none": ("mine.py:own --one-draw --arg depth=1", "no parameter 'depth'"),
    "no value": ("mine.py:setting --one-draw --arg epsilon", "--arg 'epsilon'"),
    "no JSON": ("mine.py:setting --one-draw --arg epsilon=[1", "--arg 'epsilon=[1'"),
    "two values": ("mine.py:setting --one-draw --arg epsilon=1 --arg epsilon=2", "--arg 'epsilon=2'"),
    "a model": ("mine.py:Model", "--one-draw fits it"),
    "a model without settings": ("mine.py:Model --one-draw", "--arg 'epsilon=1'"),
    "a model without points": ("mine.py:Model.predict --one-draw --arg epsilon=1", "--arg 'X=[[0.5]]'"),
    "a method that is none": ("mine.py:Model.predict_ --arg epsilon=1", "is a model with fit"),
    "an object that cannot be called": ("mine.py:Silent", "name a method, as in mine.py:Silent.draw"),
    "a method that is close": ("mine.py:Silent.drow", "did you mean 'draw'"),
    "a command that draws once": ("exec:cat --one-draw", "--one-draw is for Python functions: leave it out"),
    "a service with a setting": ("http://localhost:1/ --arg epsilon=1", "--arg is for Python functions: leave it out"),
    "no command": ("exec:", "'exec:'"),
    "no program": ("exec:no-such-program-here", "no-such-program-here"),
    "no requirement's function": ("pip:numpy", "'pip:numpy'"),
    "it raises": ("mine.py:raises", "ValueError: cannot digest it (mine.py, line 8) (on the dataset [0]"),
    "each draw raises": ("mine.py:raises_once --one-draw", "KeyError: 'age' (mine.py, line 9) (on the dataset [0]"),
    "a generator that is a setting": ("mine.py:divides --one-draw", "--arg wobble=1"),
    "it wants other data": ("mine.py:wants_a_dict --one-draw", "name another with --data"),
    "it raises on a file": (
        "mine.py:wants_a_dict --one-draw --data x.json", "(mine.py, line 11), on the dataset in 'x.json'",
    ),
    "it says so": ("mine.py:wants_a_dict --one-draw --data x.json --show-data", "IndexError: only integers"),
    "a model wants a table": ("mine.py:Model --one-draw --arg epsilon=1 --data x.json --show-data", "dict of X and y"),
    "it returns nothing": ("mine.py:returns_none", "returned None"),
    "it returns too few": ("mine.py:returns_few", "outputs were asked for, the target returned"),
    "no draws": ("mine.py:total --draws 0", "0"),
    "no limit": ("mine.py:total --limit 0", "0"),
    "a limit that no call can keep": ("mine.py:total --limit 1e-9", "limit must be at least 0.001 s, got 1e-09"),
    "an endless limit": ("mine.py:total --limit x", "'x'"),
    "no data": ("mine.py:total --data none.json", "none.json"),
    "broken data": ("mine.py:total --data bad.json", "bad.json"),
    "no table": ("mine.py:total --data empty.csv", "empty.csv"),
    "data of another kind": ("mine.py:total --data data.xlsx", "data.xlsx"),
    "data without a name": ("mine.py:total --data ''", "''"),
    "an unknown option": ("mine.py:total --epsilon 1", "--epsilon"),
}  # fmt: skip
PAIR = ("--data", "x.json", "--neighbor")
ATTACKS: dict[str, tuple[Sequence[str], str]] = {
    "a name that is close": (("mine.py:totl", *BIT), "did you mean 'total'"),
    "a setting": (("mine.py:setting", *BIT), "try --one-draw --arg epsilon=1"),
    "a value that cannot be read": (("mine.py:setting", *BIT, "--arg", "epsilon=("), "--arg 'epsilon=('"),
    "a command with a setting": (("exec:cat", *BIT, "--arg", "a=1"), "a command takes its arguments itself"),
    "a model": (("mine.py:Model", *BIT), "--one-draw fits it"),
    "no datasets": (("mine.py:total",), "--data and --neighbor"),
    "a limit that no call can keep": (("mine.py:total", *BIT, "--limit", "1e-5"), "at least 0.001 s, got 1e-05"),
    "half a pair": (("mine.py:total", "--data", "x.json"), "--neighbor"),
    "strangers": (("mine.py:total", *PAIR, "far.json", "--relation", "replace-one"), "x.json against far.json"),
    "the same twice": (("mine.py:total", *PAIR, "x.json", "--relation", "replace-one"), "0 rows differ"),
    "a list and a number": (("mine.py:total", *PAIR, "number.json"), "different kinds"),
    "a list and a dict": (("mine.py:total", *PAIR, "table.json"), "a dict of arrays"),
    "numbers that are far": (
        ("mine.py:total", "--data", "number.json", "--neighbor", "far_number.json", "--relation", "answers-within"),
        "moves by 4",
    ),
    "texts as answers": (
        ("mine.py:total", "--data", "text.json", "--neighbor", "text.json", "--relation", "answers-within"),
        "must be numbers, got a text",
    ),
    "tables of other members": (
        ("mine.py:once", "--data", "table.json", "--neighbor", "other_table.json", "--relation", "label"),
        "different members",
    ),
    "broken data": (("mine.py:total", *PAIR, "bad.json"), "bad.json"),
    "data of another kind": (("mine.py:total", *PAIR, "data.xlsx"), "data.xlsx"),
    "an unknown relation": (("mine.py:total", "--relation", "cousin", "--domain", "0,1"), "'cousin'"),
    "a domain of one value": (("mine.py:total", "--relation", "replace-one", "--domain", "7"), "'7'"),
    "an unknown adversary": (("mine.py:total", "--adversary", "magic"), "magic"),
    "outside of no domain": (("mine.py:total", *PAIR, "y.json", "--outside"), "--outside is about datasets that"),
    "arithmetic of no domain": (("mine.py:total", *PAIR, "y.json", "--arithmetic"), "no effect with --data"),
    "rows of an adversary": (("mine.py:total", "--adversary", "packing", "--min-rows", "2"), "no effect with --advers"),
    "datasets that are too small": (
        ("mine.py:total", *PAIR, "y.json", "--min-rows", "20"), "--min-rows 20: the claim is not about x.json against",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (path / name).write_text(text, encoding="utf-8")
    np.save(path / "scalar.npy", np.array(3.0))
    return path


@pytest.mark.parametrize("command", ["attack", "check", "prove", "trace"])
@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("ends.py:f", "target 'ends.py:f' cannot be imported: SystemExit: 0"),
        ("exits.py:Made", "target 'exits.py:Made': no Made can be made: SystemExit: 1"),
        ("exits.py:f", "the target raised SystemExit"),
        ("cancels.py:f", "target 'cancels.py:f' cannot be imported: CancelledError: at load"),
        ("exits.py:cancelled", "the target raised CancelledError"),
        ("exits.py:cancelled_once --one-draw", "the target raised GeneratorExit"),
    ],
)
def test_a_target_that_ends_the_interpreter_is_no_pass(
    dpaudit: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, target: str, shown: str
) -> None:
    monkeypatch.chdir(folder)
    options = {"check": (), "trace": (*CLAIM, *PAIR, "y.json"), "prove": (*CLAIM, *BIT[:-2])}
    said = dpaudit(command, *target.split(), *options.get(command, (*CLAIM, *BIT, "--jobs", 1)))
    assert said.code == 2, said
    assert len([line for line in (said.out + said.err).splitlines() if shown in line]) == 1, said
    assert "Traceback" not in said.err, said


def test_a_target_that_ends_the_process_is_no_pass(
    dpaudit: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("leaves.py").write_text("import os\ndef f(data, n, rng):\n    os._exit(0)\n", encoding="utf-8")

    class Left(BaseException):
        pass

    def leave(status: int) -> NoReturn:
        left.append(status)
        raise Left

    left: list[int] = []
    said: list[bytes] = []
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(os, "write", lambda _, line: said.append(line))
    assert dpaudit("prove", "leaves.py:f", *CLAIM, *BIT[:-2]).code == 2
    assert left[0] == 2
    assert os._exit is leave
    assert b"the target ended this process by os._exit(0)" in said[0]


def test_what_a_target_does_at_exit_hides_no_finding(tmp_path: Path) -> None:
    text = "import atexit\nfrom os import _exit\natexit.register(lambda: _exit(0))\n"
    (tmp_path / "claims.py").write_text(text, encoding="utf-8")
    said = process("list", tmp_path / "claims.py")
    assert said.code == 2, said
    assert "claims.py" in said.err
    assert "nothing is known" not in said.err


@pytest.mark.parametrize(("given", "code"), [(None, 0), (3, 3), ("a text", 1)])
def test_the_code_of_a_process_is_that_of_python(
    monkeypatch: pytest.MonkeyPatch, given: str | int | None, code: int
) -> None:
    def stop(_: object) -> NoReturn:
        raise SystemExit(given)

    ended: list[int] = []
    monkeypatch.setattr(main, "_run_command", stop)
    for name in ("settle_exit", "end_despite_threads"):
        monkeypatch.setattr(main, name, ended.append)
    with pytest.raises(SystemExit):
        main.main()
    assert ended == [code, code]


def test_there_are_many() -> None:
    assert len(CHECKS) + len(ATTACKS) >= 50


@pytest.mark.parametrize("wrong", CHECKS)
def test_a_wrong_check_is_refused_in_one_line(
    dpaudit: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.chdir(folder)
    call, shown = CHECKS[wrong]
    words = [word.strip("'") for word in call.split(" ")]
    refused(dpaudit("check", *words), shown)


@pytest.mark.parametrize("wrong", ATTACKS)
def test_a_wrong_attack_is_refused_in_one_line(
    dpaudit: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.chdir(folder)
    words, shown = ATTACKS[wrong]
    refused(dpaudit("attack", *words, *CLAIM), shown)


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("mine.py:raises", "ValueError: cannot digest it (mine.py, line 8), on the dataset [0]"),
        ("mine.py:raises_once --one-draw", "KeyError: 'age' (mine.py, line 9), on the dataset [0]"),
        ("mine.py:divides --one-draw", "if it is a setting, give it by --arg wobble=1, on the dataset [0]"),
    ],
)
def test_an_attack_on_what_always_raises_ends_in_an_error(
    dpaudit: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, shown: str
) -> None:
    monkeypatch.chdir(folder)
    said = dpaudit("attack", *target.split(" "), *BIT, *CLAIM)
    assert said.code == 2, said
    assert shown in said.out
    assert len(said.out.splitlines()) == 1
