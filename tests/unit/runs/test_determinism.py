"""The same seed, declarations and versions give the same results, to the byte, however they are computed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.main import main

ROOT = Path(__file__).resolve().parents[3]

CLAIMS = '''
import math
import time
import numpy as np
from auditor import ApproxDP, GaussianDP, Pair, PureDP
from auditor.claims import Source, entry, exact, mutant
from auditor.claims import privacy
from mechanisms.additive_noise.gaussian import LatticeGaussian
from mechanisms.additive_noise.geometric import TwoSidedGeometric
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.queries import IdentityQuery

ANSWERS = IdentityQuery(sensitivity=1.0, linf_sensitivity=1.0)
ONE = Pair(np.array([0.0]), np.array([1.0]), "0 against 1")
SMALL = Pair(np.array([0.0]), np.array([0.25]), "0 against 1/4")
FAR = Pair(np.array([5.0]), np.array([6.0]), "5 against 6")
BIT = Pair(np.array([0]), np.array([1]), "one bit")


def words(data, n, rng):
    """Randomised response in words; some answers are tuples."""
    said = rng.random(n) < 0.7
    return [("yes", 1) if bool(data[0]) == bool(s) else "no" for s in said]


def plane(data, n, rng):
    """Two coordinates, which only together show much."""
    return np.rint((rng.normal(size=(n, 2)) + 0.5 * data[0]) * 1024) / 1024


def sleepy(data, n, rng):
    time.sleep(0.02)
    return np.where(rng.random(n) < 0.7, data[0], 1 - data[0])


@entry("900/noise", title="Noise", source=Source("900", "section 1"))
def noise():
    laplace = LatticeLaplace(ANSWERS, 1.0)
    yield exact(laplace, PureDP(1.0), ONE, case="laplace")
    yield privacy(laplace, PureDP(1.0), [SMALL, ONE, FAR], case="laplace_three_pairs")
    yield privacy(TwoSidedGeometric(ANSWERS, math.e), PureDP(1.0), ONE, case="geometric")
    yield privacy(LatticeGaussian(ANSWERS, 2.0), GaussianDP(0.51), ONE, case="gaussian")
    yield privacy(LatticeGaussian(ANSWERS, 4.0), ApproxDP(1.0, 1e-4), ONE, case="gaussian")
    yield privacy(words, PureDP(1.0), BIT, case="words")
    yield privacy(plane, GaussianDP(1.0), BIT, case="plane")
    yield mutant("half_scale", LatticeLaplace(ANSWERS, 2.0), PureDP(1.0), ONE)
'''
ADDED = """

@entry("900/added", title="Another entry", source=Source("900", "section 2"))
def added():
    yield mutant("third_scale", LatticeLaplace(ANSWERS, 3.0), PureDP(1.0), ONE)
"""
SLEEPY = """

@entry("900/slow", title="A slow mechanism", source=Source("900", "section 3"))
def slow():
    yield privacy(sleepy, PureDP(1.0), BIT)
"""


def declare(folder: Path, text: str, name: str = "claims.py") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def run(*arguments: object) -> int:
    """The command line in this process."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def audit(file: Path, out: Path, *options: object) -> dict[str, bytes]:
    """Run the claims in this process and return what was written.

    A claim that holds is called violated with probability at most 1e-6; where a test asks for another alpha, a false
    alarm is as good as any verdict, if it is the same one again.
    """
    assert run("run", file, "--jobs", 1, "--draws", 26_000, "--alpha", 1e-6, "--out", out, *options) in (0, 1, 3)
    return written(out)


def written(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("results.json", "report.html", "report.md", "results.sarif")}


def claims_of(files: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    return {claim["id"]: claim for claim in json.loads(files["results.json"])["claims"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("determinism")


@pytest.fixture(scope="module")
def claims(folder: Path) -> Path:
    return declare(folder, CLAIMS)


@pytest.fixture(scope="module")
def first(claims: Path, folder: Path) -> dict[str, bytes]:
    """Reports of one run in this process."""
    return audit(claims, folder / "first")


def test_the_file_has_what_could_differ(first: dict[str, bytes]) -> None:
    found = claims_of(first)
    assert len(found) == 8
    assert found["900/noise/L1/pure_dp/half_scale"]["verdict"] == "violation"
    pairs = {chunk[0] for chunk in found["900/noise/L1/pure_dp/laplace_three_pairs"]["record"]["chunks"]}
    assert pairs == {0, 1, 2}


def test_a_second_run_gives_the_same_bytes(claims: Path, folder: Path, first: dict[str, bytes]) -> None:
    assert audit(claims, folder / "second") == first


@pytest.mark.parametrize("jobs", [1, 2])
def test_another_process_and_more_workers_give_the_same_bytes(
    claims: Path, folder: Path, first: dict[str, bytes], jobs: int
) -> None:
    out = folder / f"jobs_{jobs}"
    arguments = ["run", claims, "--jobs", jobs, "--draws", 26_000, "--alpha", 1e-6, "--out", out]
    done = subprocess.run(
        [sys.executable, "-m", "auditor", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in (0, 3), done.stderr
    assert written(out) == first
    # What may differ stands in run.json alone.
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["jobs"] == jobs


def test_a_selection_draws_what_the_whole_run_drew(claims: Path, folder: Path, first: dict[str, bytes]) -> None:
    # The share of alpha decides only when a refuted claim stops; the claims that hold use up their budget.
    id_ = "900/noise/L1/pure_dp/words"
    (alone,) = claims_of(audit(claims, folder / "alone", "-k", id_)).values()
    assert alone["record"]["chunks"] == claims_of(first)[id_]["record"]["chunks"]


def test_an_added_claim_changes_no_other(folder: Path, first: dict[str, bytes]) -> None:
    # A mutant takes no share of alpha, so that nothing at all changes but where the declarations stand.
    more = declare(folder, CLAIMS.replace("@entry", ADDED.strip() + "\n\n\n@entry", 1), "more.py")
    before, after = claims_of(first), claims_of(audit(more, folder / "more"))
    assert after.pop("900/added/L1/pure_dp/third_scale")["verdict"] == "violation"
    assert list(after) == list(before)
    for id_, claim in before.items():
        theirs = after[id_]
        for line in (claim, theirs, claim["counterexample"] or {}, theirs["counterexample"] or {}):
            line.pop("replay", None)
        assert theirs == claim


def test_another_seed_gives_other_draws(claims: Path, folder: Path, first: dict[str, bytes]) -> None:
    # Counts of 20 draws and more agree in every chunk of a claim with a probability far below 1e-6.
    before, after = claims_of(first), claims_of(audit(claims, folder / "seed", "--seed", 1))
    assert before.keys() == after.keys()
    for id_, claim in before.items():
        assert (after[id_]["record"] == claim["record"]) == (claim["level"] == "L0"), id_


@pytest.mark.parametrize("alpha", [0.05, 0.012345678912345])
def test_a_run_is_reproduced_from_its_results(
    claims: Path, folder: Path, capsys: pytest.CaptureFixture[str], alpha: float
) -> None:
    audit(claims, folder / f"alpha_{alpha}", "--alpha", alpha)
    capsys.readouterr()
    assert run("reproduce", folder / f"alpha_{alpha}" / "results.json", "--jobs", 1) == 0
    said = capsys.readouterr()
    assert said.out == "8 of 8 claims reproduced\n"
    assert "differs" not in said.err


def test_a_run_that_time_cut_short_is_reproduced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = declare(folder, CLAIMS + SLEEPY, "slow.py")
    out = folder / "slow"
    selected = ("-k", "slow or geometric")
    code = run("run", file, *selected, "--jobs", 1, "--max-seconds", 0.3, "--alpha", 1e-6, "--out", out)
    assert code in (0, 3)
    slow = claims_of(written(out))["900/slow/L1/pure_dp/reference"]
    # Two calls of 0.02 s a chunk, and more than 40 chunks in the budget: it cannot be finished in 0.3 s.
    assert slow["truncated_by"] == "time"
    assert 1 <= len(slow["record"]["chunks"]) <= 9
    assert slow["draws"] == 2 * sum(chunk[1] for chunk in slow["record"]["chunks"])
    capsys.readouterr()
    assert run("reproduce", out / "results.json", "--jobs", 1) == 0
    said = capsys.readouterr()
    assert said.out == "2 of 2 claims reproduced\n"
    # Neither the clock nor the number of chunks is part of the specification.
    assert "differs" not in said.err


def test_an_interrupted_run_is_reproduced_as_far_as_it_went(
    folder: Path, first: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(first["results.json"])
    # What Ctrl-C leaves: the first claims, with the shares of alpha of the whole run.
    content["claims"] = content["claims"][:3]
    content["manifest"]["interrupted"] = True
    partial = folder / "partial.json"
    partial.write_text(json.dumps(content), encoding="utf-8")
    capsys.readouterr()
    assert run("reproduce", partial, "--jobs", 1) == 0
    assert capsys.readouterr().out == "3 of 3 claims reproduced\n"
