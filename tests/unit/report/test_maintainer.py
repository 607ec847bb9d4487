"""The page for a maintainer: its program counts what the page says, without dpaudit."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from auditor import Pair
from auditor.audits.counterexamples.program import express_event, restore_numbers, write_program
from auditor.report.html import render_html
from auditor.report.maintainer import _replay
from auditor.report.markdown import format_block
from auditor.report.view import ClaimView
from auditor.runs.diff import read_results
from tests.commandline import Command
from tests.unit.report.test_report import unpack_page

PAIR = Pair(np.array([1, 0]), np.array([0]), "a pair")
RELEASE = '''
import numpy as np


def leaky(data, n, rng):
    """The sum, whose noise is half of what the claim needs."""
    return data.sum() + rng.geometric(1 - np.exp(-2), n) - rng.geometric(1 - np.exp(-2), n)
'''


@pytest.mark.parametrize(
    ("event", "expression", "shown", "other"),
    [
        ("output > 1.5", "output > 1.5", 2, 1),
        ("output[1] <= -3", "output[1] <= -3", [0, -4], [0, 0]),
        ("1 <= output <= 2", "1 <= output <= 2", 1, 3),
        ("output is 3", "output == 3", 3, 4),
        ("output is -0.0", "str(output) == '-0.0'", np.float64(-0.0), 0.0),
        ("output in {3, 4.5}", "output in (3, 4.5,)", 4.5, 4),
        ("output is [0, 1]", "list(output) == [0, 1]", [0, 1], [1, 1]),
        ("sum(output) > 1e-3", "sum(output) > 1e-3", [1, 0], [0, 0]),
        ("(output[0] - 1) (output[2] + 0.5) <= -1", "(output[0] - 1) * (output[2] + 0.5) <= -1", [0, 0, 1], [2, 0, 1]),
        ("output leaves the remainder 1 when divided by 5", "output % 5 == 1", -4, 5),
        ("output does not leave the remainder 1 when divided by 5", "output % 5 != 1", 5, -4),
        ("character [-1] in the text of output > 'a'", "output[-1] > 'a'", "ab", "ba"),
    ],
)
def test_an_event_is_told_in_python(event: str, expression: str, shown: object, other: object) -> None:
    assert express_event(event) == expression
    assert eval(expression, {"output": shown})
    assert not eval(expression, {"output": other})


@pytest.mark.parametrize(
    "event", ["output is 1 plus a float", "output in {1, 2, ... (9 in all)}", "", "__import__('os')"]
)
def test_other_events_are_not(event: str) -> None:
    assert express_event(event) == ""


@pytest.mark.parametrize(
    ("event", "exact", "written"),
    [
        ("output <= 2e+07", (20000000.25,), "output <= 20000000.25"),
        ("output[123456] <= 0.5", (0.5,), "output[123456] <= 0.5"),
        ("1.23457 <= output <= 2", (1.2345678, 2.0), "1.2345678 <= output <= 2"),
        ("output in {1234567, 3}", (), "output in {1234567, 3}"),
        ("output is 1.23457", (), ""),
        ("output <= 2e+07", (), ""),
        ("character [-1] in the text of output > '9'", (57.0,), "character [-1] in the text of output > '9'"),
    ],
)
def test_rounded_numbers_of_an_event_are_restored(event: str, exact: tuple[float, ...], written: str) -> None:
    assert restore_numbers(event, exact) == written
    assert bool(write_program("a.py:f", PAIR, event, exact=exact)) == bool(written)


FUNCTIONS = {
    "usual": "def f(data, n, rng): return data.sum() + rng.integers(2, size=n)",
    "unnamed": "def f(d, k, r): return d.sum() + r.integers(2, size=k)",
    "setting": "def f(data, n, epsilon=1.0, rng=None): return data.sum() + rng.integers(2, size=n)",
    "swapped": "def f(data, rng, n): return data.sum() + rng.integers(2, size=n)",
    "seeded": "def f(data, n, seed): return data.sum() + np.random.RandomState(seed).randint(2, size=n)",
    "own": "def f(data, n, *rest, **named): return data.sum() + np.random.default_rng().integers(2, size=n)",
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_program_calls_functions_as_the_attack_does(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.py").write_text(f"import numpy as np\n{FUNCTIONS[function]}\n")
    monkeypatch.chdir(tmp_path)
    exec(write_program("t.py:f", PAIR, "output <= 0"), {})
    x, y = (line.split() for line in capsys.readouterr().out.splitlines())
    assert x[-3:] == ["0", "of", "1000"]
    assert 400 < int(y[-3]) < 600


@pytest.mark.parametrize(
    ("target", "one_draw", "arguments"),
    [
        ("exec:./run", False, ()),
        ("http://host/a:b", False, ()),
        ("a.py:f", True, ()),
        ("a.py:f", False, ("epsilon=1",)),
    ],
)
def test_there_is_no_program_for_other_targets(target: str, one_draw: bool, arguments: tuple[str, ...]) -> None:
    assert write_program(target, PAIR, "output > 1", one_draw, arguments) == ""
    assert "import runpy" in write_program("a.py:f", PAIR, "output > 1")


@pytest.fixture
def attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpaudit: Command) -> Command:
    """The command line in a folder with a mechanism that adds half of the noise."""
    (tmp_path / "release.py").write_text(RELEASE)
    monkeypatch.chdir(tmp_path)
    return dpaudit


def test_the_page_of_an_attack(tmp_path: Path, attacked: Command) -> None:
    about = ("--claim", "epsilon=1", "--relation", "add-remove-one", "--domain", "0,1")
    assert attacked("attack", "release.py:leaky", *about, "--out", "out").code == 1
    page = attacked("report", "out/results.json", "--maintainer", "leaky")
    assert page.code == 0, page
    found = json.loads((tmp_path / "out" / "results.json").read_text())["claims"][0]["counterexample"]
    for part in (f"{found['x_count']} of {found['n']} draws on x", "add-remove-one", "dpaudit replay", "SECURITY.md"):
        assert part in page.out
    program = re.search(r"```python\n(.*?)```", page.out, re.DOTALL)
    assert program is not None
    ran = subprocess.run([sys.executable, "-c", program[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
    counts = [int(line.split()[-3]) for line in ran.stdout.splitlines()]
    assert len(counts) == 2
    # Of 1,000 draws a side: the event's share under a violation of 1 differs by far more than what is chance.
    assert abs(counts[0] - counts[1]) > 20
    written = attacked("report", "out/results.json", "--maintainer", "leaky", "--out", "page")
    assert written.out.strip() == str(Path("page", "maintainer.md"))
    assert (tmp_path / "page" / "maintainer.md").read_text(encoding="utf-8") == page.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nobody"], "none of the violations and deviations has 'nobody' in its id"),
        (["leaky", "--comment"], "--maintainer leaky is about one finding: it cannot be used with --comment"),
    ],
)
def test_what_cannot_be_a_page_is_refused(options: list[str], said: str, attacked: Command) -> None:
    about = ("--claim", "epsilon=1", "--relation", "add-remove-one", "--domain", "0,1")
    assert attacked("attack", "release.py:leaky", *about, "--out", "out").code == 1
    refused = attacked("report", "out/results.json", "--maintainer", *options)
    assert refused.code == 2
    assert said in refused.err


def test_nothing_ends_a_block_of_code() -> None:
    lines = ["one", "````", "two"]
    assert format_block("python", lines) == ["`````python", *lines, "`````"]


def test_a_pasted_command_has_the_id_as_one_word() -> None:
    id_ = "attack/L1/pure_dp/exec:say 'a'; $(ls)"
    claim = ClaimView({"id": id_, "replay": "", "counterexample": {"again": {"seed": 0}}}, "claim", 1)
    line, *_ = _replay(claim, "results.json")
    assert shlex.split(line)[1:] == ["dpaudit", "replay", "results.json", id_]


def test_private_datasets_stay_private(tmp_path: Path, attacked: Command) -> None:
    (tmp_path / "x.json").write_text("[717171]")
    (tmp_path / "y.json").write_text("[717172]")
    about = ("--claim", "epsilon=1", "--data", "x.json", "--neighbor", "y.json")
    assert attacked("attack", "release.py:leaky", *about, "--out", "out").code == 1
    page = attacked("report", "out/results.json", "--maintainer", "leaky").out
    assert "The datasets are private" in page
    assert "71717" not in page


def test_the_command_that_traces_has_the_options_of_the_attack(tmp_path: Path, attacked: Command) -> None:
    (tmp_path / "once.py").write_text("def shift(data, by, rng):\n    return float(data[0]) + by\n")
    (tmp_path / "x.json").write_text("[0]")
    (tmp_path / "y.json").write_text("[1]")
    called = ("once.py:shift", "--claim", "epsilon=1", "--one-draw", "--arg", "by=2")
    assert attacked("attack", *called, "--data", "x.json", "--neighbor", "y.json", "--out", "out").code == 1
    page = attacked("report", "out/results.json", "--maintainer", "").out
    (command,) = re.findall("dpaudit trace [^`]+", page)
    words = command.split()[1:]
    assert words == ["trace", *called[:3], *called[4:], called[3], "--data", "x.json", "--neighbor", "y.json"]
    assert attacked(*words).code == 1


CLAIMED = """
import numpy as np
from auditor import ApproxDP, Pair
from auditor.claims import Source, entry, privacy
from release import leaky


class Leaky:
    def __call__(self, data, n, rng):
        return leaky(data, n, rng)


@entry("own/sum", title="A sum", source=Source("own", "here"))
def declared():
    for case, target in (("function", leaky), ("object", Leaky())):
        yield privacy(target, ApproxDP(1.0, 1e-6), Pair(np.array([0]), np.array([1]), "one row"), case=case)
"""


def test_the_command_that_traces_a_claim_of_a_run(tmp_path: Path, attacked: Command) -> None:
    (tmp_path / "x.json").write_text("[0]")
    (tmp_path / "y.json").write_text("[1]")
    (tmp_path / "own.py").write_text(CLAIMED)
    assert attacked("run", "own.py", "--out", "out", "--jobs", "1").code == 1
    (command,) = re.findall("dpaudit trace [^`]+", attacked("report", "out", "--maintainer", "function").out)
    assert shlex.split(command)[2:5] == ["release.py:leaky", "--claim", "epsilon=1.0, delta=1e-06"]
    assert attacked(*shlex.split(command)[1:]).code == 1
    page = attacked("report", "out", "--maintainer", "object").out
    assert "No line is known.\n" in page
    assert "dpaudit trace" not in page


ZERO = """
import numpy as np


def column_sums(data, n, rng):
    return np.repeat(np.asarray(data).sum(axis=0)[None, :].astype(float), n, axis=0)
"""


def test_a_game_has_no_other_dataset(tmp_path: Path, attacked: Command) -> None:
    (tmp_path / "sums.py").write_text(ZERO)
    said = attacked(
        *("attack", "sums.py:column_sums", "--claim", "epsilon=0.5", "--adversary", "packing", "--out", "out")
    )
    assert said.code == 1, said
    won = re.search(r"^    on x       (\d+ of \d+)$", said.out, re.MULTILINE)
    allowed = re.search(r"^    on x'      (at most \d+ of \d+ on average)$", said.out, re.MULTILINE)
    assert won
    assert allowed
    sentence = f"games won: {won[1]}; ε = 0.5 allows {allowed[1]}."
    page = attacked("report", "out/results.json", "--maintainer", "").out
    assert sentence in page
    assert "The data are tables that the adversary makes up" in page
    for wrong in ("x′", "on this pair", "dpaudit replay", "dpaudit trace"):
        assert wrong not in page
    assert sentence in attacked("evidence", "out/results.json").out
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f">found<td>{won[1]}" in html
    assert f">allowed<td>{allowed[1]}" in html
    assert "; x′ =" not in html
    content = read_results(tmp_path / "out" / "results.json")
    content["claims"][0] |= {"expected": "violation", "ok": True}
    assert f"{won[1]}, allowed are {allowed[1]}" in unpack_page(render_html(content))
