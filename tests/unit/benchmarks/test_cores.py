"""Efficiencies compare runs whose results agree, and failures are shown."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from auditor.claims import registry
from benchmarks import cores
from benchmarks import cores_claims as claims


def test_use_of_two_cores() -> None:
    assert cores.PairOfTimes(10.0, 5.0).efficiency() == 1.0
    assert cores.PairOfTimes(10.0, 10.0).efficiency() == 0.5
    assert cores.PairOfTimes(12.0, 8.0).efficiency(cores.PairOfTimes(2.0, 3.0)) == 1.0


def test_runs_on_one_core_and_on_two_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[int] = []

    def seconds(entry: str, jobs: int, draws: int | None, out: Path) -> float:
        order.append(jobs)
        out.mkdir()
        (out / "results.json").write_text("other" if entry == "single" and jobs == 2 else "same", encoding="utf-8")
        return 8.0 / jobs

    monkeypatch.setattr(cores, "seconds", seconds)
    assert cores.pair("slow", 100, 1) == (8.0, 4.0)
    assert cores.pair("slow", 100, 2) == (8.0, 4.0)
    assert order == [1, 2, 2, 1]
    lines = cores.report(3, 1.0, ("start", "slow"))
    assert lines[-1] == f"| {cores.RUNS['slow'][0]} | 8.0 | 4.0 | 1.00 | – |"
    with pytest.raises(RuntimeError, match="cores/single: the results on one core and on two differ"):
        cores.pair("single", 100, 1)


def test_a_run_that_fails_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match=r"cores/slow .* ended with exit code 1"):
        cores.seconds("slow", 1, None, tmp_path)


def test_the_claims_that_are_timed() -> None:
    found = registry.load_claims([str(Path(claims.__file__))])
    count = {entry: sum(claim.entry == f"cores/{entry}" for claim in found) for entry in cores.RUNS}
    assert count == {"start": 2, "single": 1, "slow": claims.SLOW, "cheap": claims.CHEAP}
    # A draw works, and is randomised response: the two answers are opposite for the same coin.
    answers = [[claims.busy([bit], np.random.default_rng(seed)) for seed in range(8)] for bit in (0, 1)]
    assert [a + b for a, b in zip(*answers, strict=True)] == [1] * 8
    assert cores.busy_seconds(5) > 1e-4  # not skipped; no machine adds 30,000 numbers in a loop that fast


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "0"], "--pairs must be at least 1, got 0"),
        (["--scale", "nan"], "--scale must be a positive number, got nan"),
        (["--out", "nowhere/at/all.md"], "no such folder: 'nowhere/at'"),
    ],
)
def test_bad_options_are_refused_before_anything_is_run(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cores.main(arguments)
    assert message in capsys.readouterr().err


def test_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "report", lambda pairs, scale: [f"{pairs} pairs at {scale:g}"])
    assert cores.main(["--pairs", "2", "--out", str(tmp_path / "cores.md")]) == 0
    assert "\n2 pairs at 1\n" in (tmp_path / "cores.md").read_text(encoding="utf-8")
