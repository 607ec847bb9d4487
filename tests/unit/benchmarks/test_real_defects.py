"""The same draws for all auditors of the corpus, and a benchmark that goes on where it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from auditor.cli.corpus.audits import read_audits
from auditor.cli.corpus.cases import find_cases
from auditor.privacy.guarantees import ZCDP, PureDP
from benchmarks.peers.cases import PairOfDraws
from benchmarks.peers.process import PeerAnswer
from benchmarks.real_defects import (
    OWN,
    PEER,
    SPLIT,
    audit_same_draws,
    bound_by_peer,
    draw_pair,
    main,
    score_coordinates,
)
from tests.unit.cli.test_corpus import CASE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "corpus" / "cases" / "none" / "bare.py"
    path.parent.mkdir(parents=True)
    path.write_text(CASE, encoding="utf-8")
    return tmp_path / "corpus"


def test_outputs_are_scores_where_they_are_numbers() -> None:
    assert score_coordinates(np.array([1, 2]))[:, 0].tolist() == [1.0, 2.0]  # type: ignore[index]
    rows = score_coordinates(np.array([[1.0, np.nan], [np.inf, 0.0]]))
    assert rows is not None
    assert np.isfinite(rows).all()
    assert score_coordinates(np.array(["a", "b"], dtype=object)) is None


def test_draws_are_of_both_sides_and_in_number(folder: Path) -> None:
    (case,) = find_cases(folder)
    draws = draw_pair(case, 700, 60.0)
    assert (draws.x == 0).all()
    assert (draws.y == 1).all()
    assert len(draws.x) == len(draws.y) == 700


def test_each_auditor_gets_them(folder: Path) -> None:
    (case,) = find_cases(folder)
    found = {audit.method: audit for audit in audit_same_draws(case, None)}
    assert set(found) == {OWN, SPLIT, PEER}
    assert found[OWN].flagged
    assert found[SPLIT].flagged
    assert found[PEER].verdict == "no score"
    assert found[OWN].draws < found[SPLIT].draws


class Recorder:
    """A peer whose bound is 2 on one coordinate in one order."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def ask(
        self, bound: str, inside: np.ndarray, outside: np.ndarray, *, alpha: float, delta: float, seed: int
    ) -> PeerAnswer:
        self.asked.append(alpha)
        return PeerAnswer(2.0 if inside.max() > 1 else 0.1, 0.0)


def test_alpha_is_shared_by_all_that_the_peer_is_asked() -> None:
    peer = Recorder()
    draws = PairOfDraws(np.zeros((5, 3)), np.array([[0.0, 0.0, 2.0]] * 5))
    assert bound_by_peer(PureDP(1.0), draws, peer) == (2.0, True, 10)  # type: ignore[arg-type]
    assert len(peer.asked) == 12
    assert sum(peer.asked) == pytest.approx(0.01)
    assert bound_by_peer(ZCDP(1.0), draws, peer) is None  # type: ignore[arg-type]


def test_a_run_goes_on(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--corpus", str(folder), "--results", str(tmp_path / "out"), "--no-peer", "--jobs", "1"]
    assert main([*words, "--out", str(tmp_path / "page.md")]) == 0
    kept = read_audits(tmp_path / "out" / "corpus.jsonl")
    assert {audit.method for audit in kept} == {"blind", "pair 10 s", "fixed", OWN, SPLIT, PEER} - {"fixed"}
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert f"| {OWN} | 1 | 1 | |" in page
    assert main(words) == 0
    assert read_audits(tmp_path / "out" / "corpus.jsonl") == kept
    assert main([*words, "--no-large"]) == 0
    capsys.readouterr()
    assert main(["--corpus", str(tmp_path / "absent")]) == 2
    assert "no such file or folder" in capsys.readouterr().err
