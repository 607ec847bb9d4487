"""Targets by name."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from auditor.errors import SpecificationError, TargetError
from auditor.targets.http import HttpTarget
from auditor.targets.process import ProcessTarget
from auditor.targets.target_names import KINDS, closing_target, requirements_of, show_target, target_named

SOURCE = """
import random

def total(data, n, rng):
    return [sum(data)] * n

def once(data, rng):
    return sum(data) + rng.integers(1)

def rounded(data):
    return round(sum(data)) + random.randrange(1)

def scaled(data, factor, n=1):
    return factor * sum(data)

class Model:
    def __init__(self, factor, random_state=None):
        self.factor, self.seed = factor, random_state
    def fit(self, X, y):
        self.mean_ = self.factor * sum(X[0]) + sum(y)
        self.seed_, self._hidden_ = type(self.seed).__name__, 1
    def predict(self, X):
        return [self.mean_ + x for x in X]
"""
#: Speaks the protocol, and says which arguments it got.
SPEAKER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "outputs": [sys.argv[1:]] * request["n"]}), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "named_by_a_test.py").write_text(SOURCE)
    (tmp_path / "speaker.py").write_text(SPEAKER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def drawn(text: str, one_draw: bool = False, data: object = (1, 2), **given: object) -> list[object]:
    with closing_target(target_named(text, one_draw=one_draw, given=given)) as target:
        return list(target(data, 2, np.random.default_rng(0)))


def test_callables_are_in_this_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    assert drawn("named_by_a_test.py:total") == [3, 3]
    assert drawn(f"{folder}/named_by_a_test.py:total") == [3, 3]
    assert drawn("named_by_a_test:total") == [3, 3]
    assert drawn("named_by_a_test.py:once", one_draw=True) == [3, 3]
    del sys.modules["named_by_a_test"]


def test_a_command_is_a_process_and_no_shell_reads_it(folder: Path) -> None:
    assert drawn(f"exec:{sys.executable} speaker.py 'two words' $HOME >x ;") == [["two words", "$HOME", ">x", ";"]] * 2
    assert not (folder / "x").exists()


def test_the_process_of_a_target_ends_with_the_block(folder: Path) -> None:
    with closing_target(target_named(f"exec:{sys.executable} speaker.py")) as target:
        assert isinstance(target, ProcessTarget)
        target([], 1, np.random.default_rng(0))
        assert target._running is not None
    assert target._running is None


def test_a_function_in_an_environment_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drawn("pip:#named_by_a_test.py:rounded") == [3, 3]
    assert "building" in capsys.readouterr().err
    assert drawn("pip:#named_by_a_test:rounded") == [3, 3]
    assert "building" not in capsys.readouterr().err
    assert drawn("pip:#named_by_a_test.py:scaled", one_draw=True, factor=2) == [6, 6]
    for wrong, said in (({}, "factor=1"), ({"factor": 2, "faktor": 1}, "no parameter 'faktor'")):
        with pytest.raises(TargetError, match=said):
            drawn("pip:#named_by_a_test.py:scaled", one_draw=True, **wrong)
    with pytest.raises(TargetError, match="did you mean 'scaled'"):
        drawn("pip:#named_by_a_test.py:scalled")
    model, table = "pip:#named_by_a_test.py:Model", {"X": [[1, 2]], "y": [3]}
    assert drawn(model, True, table, factor=2) == [{"mean_": 9, "seed_": "int"}] * 2
    assert drawn(model, True, [[1, 2, 3]], factor=2) == [{"mean_": 9, "seed_": "int"}] * 2
    assert list(drawn(f"{model}.mean_", True, table, factor=2)) == [9, 9]
    assert np.array(drawn(f"{model}.predict", True, table, factor=2, X=[1])).tolist() == [[10], [10]]
    with pytest.raises(TargetError, match="did you mean 'predict'"):
        drawn(f"{model}.predikt", True, table, factor=2)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "HTTPS://127.0.0.1/"])
def test_a_url_is_a_service(url: str) -> None:
    target = target_named(url, limit=3.0)
    assert isinstance(target, HttpTarget)
    assert target.limit == 3.0


def test_a_service_gets_the_authorization_that_the_environment_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.headers["Authorization"])
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    for value in ("Bearer hidden", ""):
        monkeypatch.setenv("DPAUDIT_AUTHORIZATION", value)
        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            with pytest.raises(TargetError, match="403"):
                drawn(f"http://127.0.0.1:{server.server_port}/")
            thread.join()
    assert got == ["Bearer hidden", None]


def test_an_authorization_that_is_no_header_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_AUTHORIZATION", "Bearer hidden\n")
    with pytest.raises(SpecificationError, match="Authorization") as caught:
        target_named("http://127.0.0.1:1/")
    assert "hidden" not in str(caught.value)


def test_requirements_of_a_name() -> None:
    assert requirements_of("pip:a==1 'b < 2'#m:f") == ("a==1", "b < 2")
    assert requirements_of("pip:git+https://host/a.git#egg=a#m:f") == ("git+https://host/a.git#egg=a",)
    assert requirements_of("exec:pip a==1#m:f") == ()


@pytest.mark.parametrize("text", ["", ":", "name", "a b:c", "ftp://host/", "module:", ":name", "docker://image:7"])
def test_other_forms_are_refused_with_all_that_there_are(text: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        target_named(text)
    assert all(kind in str(caught.value) for kind in KINDS)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exec:", "expected a command"),
        ("exec:   ", "expected a command"),
        ("exec:echo 'open", "quotation"),
        ("exec:no-such-command-here", "no such command"),
        ("pip:numpy", "pip:REQUIREMENT"),
        ("pip:numpy#module", "module:name"),
        ("pip:'numpy#module:f", "quotation"),
        ("pip:--pre#m:f", "not an option"),
        ("http://host/#m:f", "fragment"),
        ("no_such_module_here:f", "No module named"),
        ("no_such_file.py:f", "no such file"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(folder: Path, text: str, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        target_named(text)


@pytest.mark.parametrize("text", ["exec:cat", "http://host/"])
def test_one_draw_and_arguments_are_for_python_functions(text: str) -> None:
    with pytest.raises(SpecificationError, match="--one-draw is for Python functions: leave it out"):
        target_named(text, one_draw=True)
    with pytest.raises(SpecificationError, match="--arg is for Python functions: leave it out"):
        target_named(text, given={"epsilon": 1})


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("http://user:hidden@host:8/p?token=hidden&b=hidden", "http://...@host:8/p?..."),
        ("https://host/p", "https://host/p"),
        ("https://host/p?hidden", "https://host/p?..."),
        ("http://user:hid@den@host/?hidden=hidden", "http://...@host/?..."),
        (
            "pip:git+https://hidden@host/a.git@v1 'b @ https://host/b?hidden'#m.py:f",
            "pip:git+https://...@host/a.git@v1 'b @ https://host/b?...#m.py:f",
        ),
        ("exec:client --url https://user:hidden@host/ -v", "exec:client --url https://...@host/ -v"),
        ("package.module:callable", "package.module:callable"),
    ],
)
def test_names_are_shown_without_secrets(text: str, seen: str) -> None:
    assert show_target(text) == seen
