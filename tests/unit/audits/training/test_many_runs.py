"""Many training runs: kept on disk, resumed, in several processes; and what their outputs certify."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.training.kept_runs import NAME, KeptRuns
from auditor.audits.training.many_runs import EVIDENCE, bound_by_guesses, find_share, guess_from_past
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.training import audit_runs


def train(data: Any, rng: np.random.Generator) -> Any:
    """A model of three weights; exactly 2-GDP but for rounding."""
    return np.round(rng.normal(size=3) + np.array([2.0 * data[0], 0, 0]), 3)


def first_weight(model: Any) -> Any:
    return model[0]


#: Of `dies`; what a training closes over would be part of it.
CALLS: list[int] = []


def dies(data: Any, rng: np.random.Generator) -> Any:
    if len(CALLS) == 25:
        raise KeyboardInterrupt
    CALLS.append(0)
    return train(data, rng)


def audited(**change: Any) -> Any:
    options: dict[str, Any] = {"runs": 60, "progress": False} | change
    given = {"train": train, "data": [1], "neighbor": [0], "score": first_weight, "claim": GaussianDP(0.2)}
    first = {name: options.pop(name, value) for name, value in given.items()}
    return audit_runs(*first.values(), **options)


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("score", [first_weight, None], ids=["score", "weights"])
def test_runs_far_beyond_a_claim_refute_it(evidence: str, score: Any) -> None:
    result = audited(evidence=evidence, score=score, runs=200)
    assert result.verdict == "violation"
    assert result.draws == 200
    assert 0.2 < result.lower_bound <= result.ceiling


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_a_true_claim_is_not_refuted_and_too_few_runs_are_said_to_be(evidence: str) -> None:
    result = audited(evidence=evidence, claim=GaussianDP(2.0), alpha=1e-6)
    assert result.verdict == "inconclusive"
    assert result.resolves > result.detect


def test_a_kill_loses_no_finished_run_and_results_are_those_of_one_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dies, "__qualname__", "train")
    whole = audited(directory=tmp_path / "whole").to_json()
    calls = CALLS
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        audited(train=dies, directory=tmp_path / "part")
    file = tmp_path / "part" / NAME
    assert len(file.read_bytes().splitlines()) == 1 + 25
    # The same with a line that was torn in the middle, and one that has changed since.
    lines = file.read_bytes().splitlines()
    lines[7] = lines[7].replace(b'"run": ', b'"run": 1')
    file.write_bytes(b"\n".join([*lines[:-1], lines[-1][:40]]))
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        audited(train=dies, directory=tmp_path / "part")
    assert len(calls) == 25
    calls += [0] * (1000 - len(calls))
    assert audited(train=dies, directory=tmp_path / "part").to_json() == whole
    assert len(calls) == 1000 + 60 - (25 - 2) - 25


def test_more_runs_go_on_from_those_that_are_kept(tmp_path: Path) -> None:
    audited(directory=tmp_path, runs=30)
    before = (tmp_path / NAME).read_bytes()
    longer = audited(directory=tmp_path, runs=60)
    assert (tmp_path / NAME).read_bytes().startswith(before)
    assert longer.to_json() == audited().to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"claim": PureDP(1.0)}, "claim is"),
        ({"data": [2]}, "data is"),
        ({"neighbor": [3]}, "neighbor is"),
        ({"score": None}, "score is"),
        ({"train": lambda data, rng: rng.normal(size=3)}, "train is"),
    ],
)
def test_other_runs_are_refused_and_left_as_they_are(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    audited(directory=tmp_path, runs=2)
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(SpecificationError, match=f"runs.jsonl' holds other runs: .*{message}"):
        audited(directory=tmp_path, runs=2, **change)
    assert (tmp_path / NAME).read_bytes() == before


class Noisy:
    """A training with a parameter, of a callable object."""

    def __init__(self, noise: float) -> None:
        self.noise = noise

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return rng.normal(scale=self.noise, size=3)


class Opaque:
    """A dataset that has no JSON."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.array(rows)


def closing_over(noise: float) -> Any:
    def inner(data: Any, rng: np.random.Generator) -> Any:
        return rng.normal(scale=noise, size=3)

    return inner


def with_noise(data: Any, rng: np.random.Generator, noise: float) -> Any:
    return rng.normal(scale=noise, size=3)


def test_runs_of_other_parameters_are_other_runs(tmp_path: Path) -> None:
    makers: tuple[Any, ...] = (Noisy, closing_over, lambda noise: partial(with_noise, noise=noise))
    for k, make in enumerate(makers):
        options = {"directory": tmp_path / str(k), "runs": 2}
        first = audited(train=make(1.0), **options)
        assert audited(train=make(1.0), **options).to_json() == first.to_json()
        with pytest.raises(SpecificationError, match="holds other runs: train is"):
            audited(train=make(2.0), **options)
    options = {"directory": tmp_path / "data", "runs": 2, "train": Noisy(1.0), "neighbor": Opaque([1])}
    first = audited(data=Opaque([0]), **options)
    assert audited(data=Opaque([0]), **options).to_json() == first.to_json()
    with pytest.raises(SpecificationError, match="holds other runs: data is"):
        audited(data=Opaque([2]), **options)


def test_a_training_that_changes_its_dataset_changes_no_other_run() -> None:
    def changes(data: Any, rng: np.random.Generator) -> Any:
        released = rng.normal() + data[0]
        data[0] *= 2
        return released

    def leaves(data: Any, rng: np.random.Generator) -> Any:
        return changes(list(data), rng)

    first = audited(train=leaves, score=None).to_json()
    found = audited(train=changes, score=None).to_json()
    assert {name for name in found if found[name] != first[name]} == {"mechanism", "title", "replay"}
    with pytest.raises(SpecificationError, match="each run can have a copy, got lock"):
        audited(data=threading.Lock())


def test_a_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SpecificationError, match="directory must be a path, got 5"):
        audited(directory=5, runs=2)
    with pytest.raises(SpecificationError, match="directory must be a folder, got the file"):
        audited(directory=tmp_path / "file", runs=2)
    with pytest.raises(SpecificationError, match=r"within' cannot keep runs: .*Not a directory"):
        audited(directory=tmp_path / "file" / "within", runs=2)
    (tmp_path / "folder" / NAME).mkdir(parents=True)
    with pytest.raises(SpecificationError, match=r"folder' cannot keep runs: .*Is a directory"):
        audited(directory=tmp_path / "folder", runs=2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("evidence", EVIDENCE)
def test_outputs_of_any_shape_and_size_are_audited(evidence: str) -> None:
    row, table, huge = (
        audited(score=score, runs=30, evidence=evidence)
        for score in (
            lambda model: np.outer([1.0, 2.0], model).ravel(),
            lambda model: np.outer([1.0, 2.0], model),
            lambda model: np.sign(model[0]) * 1.7e308,
        )
    )
    assert (table.lower_bound, table.event) == (row.lower_bound, row.event)
    assert huge.record["canary_scores"]["edges"][-1] == 1e300


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({"schema": "dpaudit-journal/1"}) + "\n")
    with pytest.raises(SpecificationError, match="holds no runs"):
        audited(directory=tmp_path)


def test_outputs_are_kept_to_the_bit(tmp_path: Path) -> None:
    kept = KeptRuns(tmp_path, {"seed": 0})
    values = {0: np.array(0.1 + 0.2), 3: np.array([[np.nan, -np.inf], [5e-324, -0.0]])}
    for run, value in values.items():
        kept.add(run, value)
    again = KeptRuns(tmp_path, {"seed": 0})
    assert again.unreadable == 0
    assert {run: value.tobytes() for run, value in again.outputs.items()} == {
        run: value.tobytes() for run, value in values.items()
    }
    assert again.outputs[3].shape == (2, 2)


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    result = audited(jobs=2, runs=8, directory=tmp_path)
    assert result.to_json() == audited(runs=8).to_json()
    assert len(KeptRuns(tmp_path, json.loads((tmp_path / NAME).read_text().split("\n")[0])["about"]).outputs) == 8


@pytest.mark.parametrize("score", [first_weight, None], ids=["score", "weights"])
def test_the_line_of_a_result_makes_it_again(score: Any) -> None:
    result = audited(score=score, runs=60, seed=3, detect=1.5, id="runs/L1/mine/given")
    assert result.replay.endswith("# data, neighbor: as audited")
    line = result.replay.replace("; auditor.", "; again = auditor.").replace("runs=60", "runs=60, progress=False")
    names: dict[str, Any] = {"data": [1], "neighbor": [0]}
    exec(line, names)
    assert names["again"] == result
    assert "[1]" not in result.replay  # what is trained on is not shown


def test_an_executor_makes_the_same_runs() -> None:
    with ThreadPoolExecutor(2) as executor:
        assert audited(executor=executor, runs=8).to_json() == audited(runs=8).to_json()


def test_a_training_that_fails_in_an_executor_cancels_the_other_runs(tmp_path: Path) -> None:
    def fails(data: Any, rng: np.random.Generator) -> Any:
        raise ArithmeticError("diverged")

    with ThreadPoolExecutor(1) as executor, pytest.raises(ArithmeticError, match="diverged"):
        audited(train=fails, executor=executor, runs=8, directory=tmp_path)


def test_progress_estimates_the_time_left(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    audited(runs=4, progress=True, directory=tmp_path)
    assert capsys.readouterr().err == "run 4 of 4, about 0 s left\n"
    audited(runs=5, progress=True, directory=tmp_path)
    assert capsys.readouterr().err.startswith("4 of 5 runs are kept from before\n")


def test_a_guess_depends_on_its_run_and_those_before_only() -> None:
    rng = np.random.default_rng(5)
    coins = rng.random(40) < 0.5
    values = rng.normal(size=(40, 2)) + coins[:, None]
    guesses = guess_from_past(values, coins)
    changed = coins.copy()
    changed[20:] = ~changed[20:]
    assert (guess_from_past(values, changed)[:21] == guesses[:21]).all()
    assert (guess_from_past(values[:21], coins[:21]) == guesses[:21]).all()


@pytest.mark.parametrize(("runs", "width"), [(30, 1), (60, 30), (200, 5)])
def test_a_level_that_guesses_resolve_is_found_by_lines_that_are_learned(runs: int, width: int) -> None:
    """With the best line known beforehand it was 2.77 at 30 runs, which 6 of 10 audits found."""
    claim = GaussianDP(1.0)
    needed = next(c for c in range(runs) if bound_by_guesses(c, runs, claim, 0.05) > 1.0)
    apart = 2 * stats.norm.ppf(find_share(needed, runs, width))
    found, audits = 0, 40
    for seed in range(audits):
        rng = np.random.default_rng(20_000 + seed)
        coins = rng.random(runs) < 0.5
        values = rng.normal(size=(runs, width)) + np.outer(coins, np.full(width, apart / np.sqrt(width)))
        found += int((guess_from_past(values, coins) == coins).sum()) >= needed
    assert found >= stats.binom.ppf(1e-3, audits, 0.9)
    assert find_share(runs + 1, runs, width) == 1.0


def test_right_guesses_bound_every_notion() -> None:
    """Of 1,000 guesses at the best threshold of 1-GDP, 691 are right; of randomised response at ln 3, 750."""
    for claim, right, level in (
        (GaussianDP(1.0), 691, 1.0),
        (PureDP(1.0), 750, np.log(3)),
        (ApproxDP(1.0, 0.1), 770, 1.0),
    ):
        bound = bound_by_guesses(right, 1_000, claim, 0.05)
        assert 0.8 * level < bound < 1.1 * level
        assert bound_by_guesses(right, 1_000, claim, 0.01) < bound
        assert bound_by_guesses(400, 1_000, claim, 0.05) == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": 1}, "train must be callable"),
        ({"score": "loss"}, "score must be callable, or None"),
        ({"claim": 1.0}, "claim must be a guarantee"),
        ({"runs": 1}, "runs must be an integer of at least 2"),
        ({"jobs": 0}, "jobs must be an integer of at least 1"),
        ({"executor": 2}, "executor must be one of concurrent.futures, or None, got 2"),
        ({"executor": ThreadPoolExecutor(1), "jobs": 2}, "jobs must be 1 where an executor makes the runs, got 2"),
        ({"detect": -1.0}, "detect must be a positive number, got -1.0"),
        ({"detect": float("inf")}, "detect must be a finite number, got inf"),
        ({"alpha": 1}, "alpha must be a number in"),
        ({"evidence": "luck"}, "evidence must be one of bets, guesses"),
        ({"neighbor": [1]}, "are the same dataset"),
        ({"score": lambda model: "no"}, "the score must be a number"),
        ({"score": lambda model: None}, "the score must be a number or an array of numbers: got None"),
        (
            {"score": lambda model: model[:0]},
            "an array of numbers: got none, of shape",
        ),
        ({"score": lambda model: model + 1j}, "the score must be a number or an array of numbers: got"),
        ({"score": lambda model: model[: 1 + int(model[0] > 0)]}, "outputs of all runs must have one shape"),
    ],
)
def test_a_wrong_argument_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        audited(**change)
