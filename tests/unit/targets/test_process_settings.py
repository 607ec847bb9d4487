"""What targets set in the process: it holds in their own calls, and nowhere else."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import auditor
from auditor import Pair, PureDP
from auditor.cli.attack import Attack, attack_once
from auditor.targets.process_settings import call_target, keep_apart
from tests.commandline import ROOT, Command, declare, process, read

PAIR = Pair(np.array([0]), np.array([1]), "one bit")
#: Claims whose targets change the process, before they are loaded and in each call. The last one tells what it finds.
CLAIMS = """
    yield privacy(Moving(1.0), PureDP(1.0), PAIR, case="moving")
    yield privacy(Strict(1.0), PureDP(1.0), PAIR, case="strict")
    yield privacy(Telling(1.0), PureDP(1.0), PAIR, case="telling")


import os
import warnings

LOADED = os.getcwd()
os.chdir(Path(__file__).parent / "inner")


class Moving(Response):
    def __call__(self, data, n, rng):
        os.chdir("/")
        return super().__call__(data, n, rng)


class Strict(Response):
    def __call__(self, data, n, rng):
        np.seterr(all="raise")
        warnings.simplefilter("error")
        return super().__call__(data, n, rng)


class Telling(Response):
    def __call__(self, data, n, rng):
        assert Path("here").exists()  # beside the file that moved, and not where another claim went
        assert np.geterr()["under"] == "ignore"
        return super().__call__(data, n, rng)
"""


#: A claim of a file that leaves the process alone.
STAYING = """
    yield privacy(Staying(1.0), PureDP(1.0), PAIR, case="staying")


import os


class Staying(Response):
    def __call__(self, data, n, rng):
        assert not os.path.exists("here")
        return super().__call__(data, n, rng)
"""


def laplace(data: Any, n: int, rng: np.random.Generator) -> Any:
    return data[0] + rng.laplace(scale=2.0, size=n)


def strict(data: Any, n: int, rng: np.random.Generator) -> Any:
    """The same, but it may meet no number that vanishes, from its second call on."""
    assert strict.calls == 0 or np.geterr()["under"] == "raise"  # type: ignore[attr-defined]
    strict.calls += 1  # type: ignore[attr-defined]
    np.seterr(all="raise")
    warnings.simplefilter("error")
    return laplace(data, n, rng)


def found(mechanism: Any) -> tuple[object, ...]:
    result = auditor.audit(mechanism, PureDP(1.0), PAIR, draws=4_000, ignore="floating-point")
    return result.verdict, result.draws, result.lower_bound, result.log10_max_e_value, result.message


def test_numerics_of_an_audit_do_not_depend_on_what_a_target_sets() -> None:
    strict.calls = 0  # type: ignore[attr-defined]
    before, filters = np.geterr(), list(warnings.filters)
    assert found(strict) == found(laplace)
    assert np.geterr() == before
    assert warnings.filters == filters


def test_numerics_of_an_audit_do_not_depend_on_what_its_user_sets_and_a_target_finds_that() -> None:
    def asks(data: Any, n: int, rng: np.random.Generator) -> Any:
        assert np.geterr()["under"] == "raise"
        return laplace(data, n, rng)

    expected = found(laplace)
    with np.errstate(all="raise"):
        assert found(asks) == expected


def test_settings_of_a_target_hold_within_one_block_alone() -> None:
    def set_under() -> None:
        np.seterr(under="raise")

    for _ in range(2):
        with keep_apart():
            assert call_target(np.geterr)["under"] == "ignore"
            call_target(set_under)
            assert call_target(np.geterr)["under"] == "raise"
            with keep_apart():  # one within another is the same block
                assert call_target(np.geterr)["under"] == "raise"
            assert np.geterr()["under"] == "ignore"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_writes_where_it_was_asked_to_whatever_folder_its_targets_go_to(tmp_path: Path, jobs: int) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "here").touch()
    file = declare(tmp_path, CLAIMS)
    file.write_text("from pathlib import Path\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    # Another file, loaded later, goes nowhere: its targets are called where the command was.
    other = declare(tmp_path, STAYING, "staying.py")
    other.write_text(other.read_text(encoding="utf-8").replace("900/response", "900/staying"), encoding="utf-8")
    asked = ("run", *(os.path.relpath(path, ROOT) for path in (file, other)), "--draws", "20000", "--jobs", jobs)
    said = process(*asked, "--out", os.path.relpath(tmp_path / "out", ROOT))
    assert said.code == 0, said
    content = read(tmp_path / "out" / "results.json")
    assert [claim["verdict"] for claim in content["claims"]] == ["consistent"] * 4
    assert not (tmp_path / "out" / "journal.jsonl").exists()


@pytest.mark.parametrize("asked", [("show", "900/response"), ("run", "--draws", 4_000)])
def test_commands_do_not_depend_on_what_a_file_of_claims_sets(
    tmp_path: Path, dpaudit: Command, asked: tuple[object, ...]
) -> None:
    def told(name: str, first: str) -> tuple[int, str]:
        file = declare(tmp_path, name=name)
        file.write_text(first + file.read_text(encoding="utf-8"), encoding="utf-8")
        with np.errstate():
            said = dpaudit(*asked, file)
        return said.code, said.out.replace(name, "")

    assert told("strict.py", "import numpy as np\nnp.seterr(all='raise')\n") == told("plain.py", "")


def test_an_attack_comes_back_from_where_its_target_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "moving.py").write_text(
        "import os\nimport numpy as np\nos.makedirs('inner', exist_ok=True)\nos.chdir('inner')\n"
        "def bit(data, n, rng):\n"
        "    assert os.path.basename(os.getcwd()) in ('inner', 'deeper')\n"
        "    os.makedirs('../inner/deeper', exist_ok=True)\n"
        "    os.chdir('../inner/deeper' if os.getcwd().endswith('inner') else '.')\n"
        "    return np.where(rng.random(n) < 0.6, data[0], 1 - data[0])\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    attack = Attack("moving.py:bit", "epsilon=1", relation="replace-one", domain="0,1", rows=1, least=1, draws=4_000)
    _, result, _ = attack_once(attack)
    assert result.verdict == "inconclusive"
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_beginning_of_what_targets_print_is_on_standard_error(tmp_path: Path, jobs: int) -> None:
    body = """
    yield privacy(Loud(1.0), PureDP(1.0), PAIR, case="one")
    yield privacy(Loud(1.0), PureDP(1.0), PAIR, case="two")


class Loud(Response):
    def __call__(self, data, n, rng):
        print("drawn\\n" * n)
        return super().__call__(data, n, rng)
"""
    said = process("run", declare(tmp_path, body), "--draws", "20000", "--jobs", jobs, "--out", tmp_path / "out")
    assert said.code == 0, said
    assert "drawn" not in said.out
    assert 1_000 < said.err.count("drawn") < 2 * 5_000 / len("drawn\n")
    assert said.err.count("prints more than 5,000 characters") == 2
