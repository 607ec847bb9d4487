"""Every command and every piece of code in the documents is run."""

from __future__ import annotations

import configparser
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor import report
from auditor.privacy.guarantees import parse_claim
from auditor.report import columns, words
from auditor.report.view import RunView
from auditor.runs import index
from auditor.runs.diff import read_results
from tests.commandline import Command

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TIMEOUT = 120


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def example(words: str) -> str:
    """The one example in Python of CONTRIBUTING that has these words."""
    (found,) = (block for block in blocks(CONTRIBUTING, "python") if words in block)
    return found


COMMANDS = [
    line[2:]
    for text in (README, GUIDE)
    for block in blocks(text, "console")
    for line in block.splitlines()
    if line.startswith("$ ")
]
#: What another page has too is run by the test of that page.
ELSEWHERE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
DPAUDIT = [command for command in COMMANDS if command.startswith("dpaudit ") and f"$ {command}" not in ELSEWHERE]
#: What it prints is in the README too.
README_ATTACK = next(command for command in DPAUDIT if " attack " in command)


@pytest.fixture(scope="module", autouse=True)
def _kept_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands keep an index of the claims, as they do for users, but not in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(index.OFF)
        patch.setenv("DPAUDIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def run(arguments: list[str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "auditor", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def test_the_readme_has_the_commands_of_make() -> None:
    assert [command for command in COMMANDS if command.startswith("make")] == [
        "make audit",
        "make test",
        "make test-statistics",
    ]


def test_make_audit_is_the_main_job_and_ci_runs_all_tests() -> None:
    printed = subprocess.run(["make", "-n", "audit"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == ".venv/bin/dpaudit run experiments --level smoke --out out"
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").split("\n")[-3:] == [
        "make test",
        "exec make test-statistics",
        "",
    ]


def test_every_test_is_run_by_make() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "tox.ini", encoding="utf-8")
    left_out = re.findall(r"--ignore (\S+?)(?=[\s}])", settings["testenv:tests"]["commands"])
    assert left_out
    printed = subprocess.run(
        ["make", "-n", "test-statistics"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.splitlines()[-1] == f".venv-tox/bin/tox run -e tests -- {' '.join(left_out)}"


@pytest.fixture(scope="module")
def _indexed() -> None:
    """The index, made by one process: those of the first run would each load the whole catalogue."""
    assert run(["list"]).returncode == 0


@pytest.mark.parametrize("command", DPAUDIT)
@pytest.mark.usefixtures("_indexed")
def test_a_command_of_the_readme_or_the_guide_runs(command: str) -> None:
    done = run(shlex.split(command)[1:])
    assert "Traceback" not in done.stderr
    if command == README_ATTACK:
        assert done.stdout.startswith(next(block for block in blocks(README, "text") if "violates" in block).strip())
    expected = 1 if " attack " in command else 0
    assert done.returncode == expected, done.stderr
    assert done.stdout


def test_every_other_command_that_they_name_exists(dpaudit: Command) -> None:
    named = set(re.findall(r"`dpaudit ([a-z]+)", README + GUIDE))
    assert named
    for name in named:
        assert dpaudit(name, "--help").code == 0


def test_the_python_of_the_readme_finds_the_violation(tmp_path: Path) -> None:
    code, *_ = blocks(README, "python")
    script = tmp_path / "readme.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("noisy_count violates its claim ε = 1 (pure DP)")


@pytest.mark.parametrize(("k", "says"), [(0, "deviation "), (1, "deviation the error exceeds 2.5 with probability")])
def test_the_deviations_of_the_guide_are_found(k: int, says: str, tmp_path: Path) -> None:
    code = blocks(GUIDE, "python")[k]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(says)


def test_every_claim_of_the_guide_is_read() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(\w+)\(.*\)` \| `([^`]+)` \|", GUIDE, flags=re.MULTILINE)
    assert len(rows) >= 7
    for name, text in rows:
        if name != "TradeoffCurve":  # needs a file
            assert type(parse_claim(text)).__name__ == name


def test_the_mechanism_of_contributing_needs_two_files_only(tmp_path: Path) -> None:
    mechanism, claims = example("class Coin"), example("def coin()")
    # With what is compiled, and without most of the documents, whose claims take longer to load than all else.
    shutil.copytree(ROOT / "mechanisms", tmp_path / "mechanisms")
    others = [path.name for path in (ROOT / "experiments").glob("document_*") if "lecture_dp" not in path.name]
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments", ignore=shutil.ignore_patterns(*others))
    (tmp_path / "mechanisms" / "local_model" / "coin.py").write_text(mechanism, encoding="utf-8")
    (tmp_path / "experiments" / "coin.py").write_text(claims, encoding="utf-8")
    done = run(["run", "experiments", "-k", "further/coin"], tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "6 claims: 6 as expected" in done.stdout


def test_the_notion_of_contributing_needs_one_file_only(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "auditor", tmp_path / "auditor")
    notion = tmp_path / "auditor" / "privacy" / "guarantees" / "total_variation.py"
    notion.write_text(example("class TotalVariation"), encoding="utf-8")
    shutil.copy(ROOT / "examples" / "noisy_count.py", tmp_path)
    target = ["attack", "noisy_count.py:noisy_count", "--relation", "replace-one", "--domain", "0,1", "--rows", "3"]
    # Laplace noise of scale 1/2 and a shift of 1: the total variation is 1 - e^-1 = 0.632, and rounding adds nothing.
    broken = run([*target, "--claim", "distance=0.3", "--draws", "20000"], tmp_path)
    assert broken.returncode == 1, broken.stderr + broken.stdout
    assert "violates its claim TV = 0.3 (total variation)" in broken.stdout
    kept = run([*target, "--claim", "distance=0.64", "--draws", "20000"], tmp_path)
    assert kept.returncode in (0, 3), kept.stderr + kept.stdout


def test_the_column_of_contributing_needs_one_line_only(monkeypatch: pytest.MonkeyPatch) -> None:
    line = example('Column("e-value"')
    assert len(line.splitlines()) == 1
    source = Path(str(columns.__file__)).read_text(encoding="utf-8")
    changed: dict[str, Any] = {"__name__": columns.__name__}
    exec(re.sub(r'^    Column\("draws".*\n', rf"\g<0>    {line.strip()},\n", source, flags=re.MULTILINE), changed)
    monkeypatch.setattr(columns, "COLUMNS", changed["COLUMNS"])
    content = read_results(ROOT / "reports" / "full" / "results.json.xz")
    content["claims"] = content["claims"][:40]
    run = RunView.of(content)
    texts = [words.format_e_value(claim.log10_max) for claim in run.claims]
    assert len(set(texts)) > 10
    head, _, *rows = (re.split(r"\s{2,}", row) for row in report.summary_table(run).splitlines())
    assert [row[head.index("e-value")] for row in rows[: len(texts)]] == [text.replace("–", "-") for text in texts]
    table = report.render_markdown(run).partition("## All claims")[2].strip().splitlines()
    head, _, *rows = ([cell.strip() for cell in row.split("|")] for row in table)
    place = head.index("e-value")
    assert [row[place] for row in rows[: len(texts)]] == texts
    page = report.render_html(run)
    place -= 1  # the page has the source above its tables
    assert f'.all > tbody > tr > td:nth-child({place})::before {{ content: "e-value"; }}' in page
    tables = page.partition('<section id="claims"')[2].partition("</section>")[0].split("<tbody>")[1:]
    bodies = "".join(table.partition("</tbody>")[0] for table in tables)
    cells = [row.split("<td")[place - 1] for row in bodies.split("<tr")[1:]]
    assert [cell.partition(">")[2].strip() for cell in cells] == texts


#: Any 63 of the 64 bits are independent fair coins; the parity of all is the data's bit.
MASKED = """
import numpy as np

def masked(data, n, rng):
    bits = rng.integers(0, 2, (n, 64), dtype=np.uint8)
    bits[:, 0] = (bits[:, 1:].sum(axis=1) + data[0]) % 2
    return [np.packbits(row).tobytes() for row in bits]
"""


def test_the_event_learner_of_contributing_needs_one_file_only(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "auditor", tmp_path / "auditor")
    (tmp_path / "masked.py").write_text(MASKED, encoding="utf-8")
    attack = ["attack", "masked.py:masked", "--relation", "replace-one", "--domain", "0,1", "--rows", "1"]
    attack += ["--claim", "epsilon=2", "--draws", "2000", "--alpha", "1e-6"]
    # Events that leave out a bit are equally probable on both datasets; with the number of set bits, those that show
    # more than epsilon = 2 have probability below 1e-7. So a false alarm has probability 1e-6.
    before = run(attack, tmp_path)
    assert before.returncode in (0, 3), before.stderr + before.stdout
    learner = tmp_path / "auditor" / "events" / "learners" / "bit_parity.py"
    learner.write_text(example("class Parity"), encoding="utf-8")
    after = run(attack, tmp_path)
    assert after.returncode == 1, after.stderr + after.stdout
    assert "number of bits are 1" in after.stdout
    assert "parity of the output's bits" in after.stdout


def test_the_draws_of_the_readme_are_those_of_the_report() -> None:
    report = (ROOT / "reports" / "peers.md").read_text(encoding="utf-8")
    kinds = ("dpaudit", "oracle: best event known", "split-sample", "jax-privacy: Clopper-Pearson, Bonferroni")
    rows = re.findall(r"^\| ([^|]+) " + r"\| ([\d,]+) " * len(kinds) + r"\|$", README, flags=re.MULTILINE)
    assert len(rows) == 4
    for name, *draws in rows:
        part = report.split(f"### {name}\n")[1].split("\n### ")[0].split("\n## ")[0]
        cells = [[cell.strip() for cell in line.split("|")] for line in part.splitlines()]
        at = next(row.index("draws a side to a verdict") for row in cells if "draws a side to a verdict" in row)
        found = [next(row[at].split(" ")[0] for row in cells if row[1:] and row[1].startswith(kind)) for kind in kinds]
        assert draws == found


def test_the_comparison_has_the_times_of_the_report() -> None:
    report = (ROOT / "reports" / "peers.md").read_text(encoding="utf-8")
    ratios = []
    for part in report.split("## Bounds above the truth")[0].split("\n### ")[1:]:
        rows = [[cell.strip() for cell in line.split("|")] for line in part.splitlines() if line.startswith("|")]
        at = rows[0].index("own ms at 100,000")
        own = {row[1].split(":")[0] + row[1][-10:]: float(row[at]) for row in rows[2:] if row[at]}
        ratios += [own["dpauditdpaudit"] / value for name, value in own.items() if name.endswith("s default)")]
    assert (round(min(ratios)), round(max(ratios))) == (5, 11)
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert "it takes a fifth to an eleventh of dpaudit's own time" in page


def test_the_claims_of_the_five_documents_are_those_of_the_catalogue() -> None:
    catalogue = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")
    claims = {
        name: int(count) for name, count in re.findall(r"^\| (\d{3}|all) \| \d+ \| (\d+) \|", catalogue, re.MULTILINE)
    }
    whole = claims.pop("all")
    page = (ROOT / "docs" / "for-researchers.md").read_text(encoding="utf-8")
    assert f"{whole:,} claims, of which {sum(claims.values()):,} are about the theorems of five documents" in page


def test_what_learning_an_event_costs_is_as_the_page_says() -> None:
    from auditor.evidence.power import LEARNING

    assert [(row.widest, row.divisor) for row in LEARNING] == [(1, 3), (4, 3), (24, 3.5), (math.inf, 5)]
    page = " ".join((ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8").split())
    assert "divides the draws by 3, by 3.5 for outputs of 5 to 24 numbers, and by 5 for those of more" in page


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", README):
        assert (ROOT / target).exists(), target
