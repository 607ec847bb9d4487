"""Every command and every piece of code in the documents is run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.privacy.guarantees import parse_claim

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TIMEOUT = 120


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


COMMANDS = [line[2:] for block in blocks(README, "console") for line in block.splitlines() if line.startswith("$ ")]
DPAUDIT = [command for command in COMMANDS if command.startswith("dpaudit ")]


def run(arguments: list[str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "auditor", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def test_the_readme_opens_with_the_two_commands() -> None:
    assert COMMANDS[:2] == ["make audit", "make test"]


def test_make_audit_is_the_main_job_and_ci_is_make_test() -> None:
    printed = subprocess.run(["make", "-n", "audit"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == ".venv/bin/dpaudit run experiments --level smoke --out out"
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", DPAUDIT)
def test_a_command_of_the_readme_runs(command: str) -> None:
    done = run(shlex.split(command)[1:])
    assert "Traceback" not in done.stderr
    expected = 1 if " attack " in command else 0
    assert done.returncode == expected, done.stderr
    assert done.stdout


def test_the_attack_prints_what_the_readme_says() -> None:
    command, *_ = [command for command in DPAUDIT if " attack " in command]
    shown = next(block for block in blocks(README, "text") if "violates" in block)
    assert run(shlex.split(command)[1:]).stdout.startswith(shown.strip())


def test_every_other_command_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"`dpaudit ([a-z]+)", README))
    assert named
    for name in named:
        assert run([name, "--help"]).returncode == 0


def test_the_python_of_the_readme_finds_the_violation(tmp_path: Path) -> None:
    code, *_ = blocks(README, "python")
    script = tmp_path / "readme.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("noisy_count violates its claim ε = 1 (pure DP)")


@pytest.mark.parametrize(("k", "says"), [(1, "deviation "), (2, "deviation the error exceeds 2.5 with probability")])
def test_the_deviations_of_the_readme_are_found(k: int, says: str, tmp_path: Path) -> None:
    code = blocks(README, "python")[k]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(says)


def test_every_claim_of_the_readme_is_read() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(\w+)\(.*\)` \| `([^`]+)` \|", README, flags=re.MULTILINE)
    assert len(rows) >= 7
    for name, text in rows:
        if name != "TradeoffCurve":  # needs a file
            assert type(parse_claim(text)).__name__ == name


def test_the_mechanism_of_contributing_needs_two_files_only(tmp_path: Path) -> None:
    mechanism, claims, _ = blocks(CONTRIBUTING, "python")
    for name in ("mechanisms", "experiments"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "mechanisms" / "coin.py").write_text(mechanism, encoding="utf-8")
    (tmp_path / "experiments" / "coin.py").write_text(claims, encoding="utf-8")
    done = run(["run", "experiments", "-k", "further/coin"], tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "5 claims: 5 as expected" in done.stdout


def test_the_notion_of_contributing_needs_one_file_only(tmp_path: Path) -> None:
    *_, notion = blocks(CONTRIBUTING, "python")
    shutil.copytree(ROOT / "auditor", tmp_path / "auditor", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "auditor" / "guarantees" / "total_variation.py").write_text(notion, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "noisy_count.py", tmp_path)
    target = ["attack", "noisy_count.py:noisy_count", "--relation", "replace-one", "--domain", "0,1", "--rows", "3"]
    # Laplace noise of scale 1/2 and a shift of 1: the total variation is 1 - e^-1 = 0.632, and rounding adds nothing.
    broken = run([*target, "--claim", "distance=0.3", "--draws", "20000"], tmp_path)
    assert broken.returncode == 1, broken.stderr + broken.stdout
    assert "violates its claim TV = 0.3 (total variation)" in broken.stdout
    kept = run([*target, "--claim", "distance=0.64", "--draws", "20000"], tmp_path)
    assert kept.returncode in (0, 3), kept.stderr + kept.stdout


@pytest.mark.parametrize("name", ["false_alarms", "power", "cost"])
def test_the_tables_of_the_readme_are_those_of_the_reports(name: str) -> None:
    published = (ROOT / "reports" / f"{name}.md").read_text(encoding="utf-8")
    rows = [line for line in published.splitlines() if line.startswith("|")]
    assert len(rows) > 5
    assert [row for row in rows if row not in README.splitlines()] == []
