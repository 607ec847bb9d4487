"""One training run with planted canaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.training import audit_one_run, audit_scores, plant_canaries

CANARIES = np.eye(400)


def noisy_sum(data: Any, rng: np.random.Generator) -> Any:
    """A model that is the sum of its examples with noise: exactly 1-GDP for unit vectors."""
    return data.sum(axis=0) + rng.normal(size=data.shape[1])


def plain_sum(data: Any, rng: np.random.Generator) -> Any:
    return data.sum(axis=0) + 0.1 * rng.normal(size=data.shape[1])


def score(model: Any, canaries: Any) -> Any:
    return canaries @ model


def test_each_canary_is_in_by_a_coin_and_the_order_is_kept() -> None:
    data = np.zeros((3, 400))
    planted = plant_canaries(data, CANARIES, seed=3)
    inside = int(planted.included.sum())
    assert planted.data.shape == (3 + inside, 400)
    assert (planted.data[3:] == CANARIES[planted.included]).all()
    assert (plant_canaries(data, CANARIES, seed=3).included == planted.included).all()
    assert (plant_canaries(data, CANARIES, seed=4).included != planted.included).any()
    one, two = planted.split_scores(np.arange(400))
    assert sorted([*one, *two]) == list(range(400))
    assert (one == np.flatnonzero(planted.included)).all()


def test_scores_are_audited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments were checked by an audit of other scores, which takes seconds for a claim of zCDP."""
    audited: list[int] = []

    def counted(inside: Any, outside: Any, claim: Any, **options: Any) -> Any:
        audited.append(len(inside) + len(outside))
        return audit_scores(inside, outside, claim, **options)

    monkeypatch.setattr("auditor.audits.training.one_run.audit_scores", counted)
    audit_one_run(noisy_sum, np.zeros((0, 60)), np.eye(60), score, GaussianDP(1.0))
    assert audited == [60]


@pytest.mark.parametrize(
    ("data", "canaries"),
    [
        ([1, 2], [5] * 10),
        ((1, 2), (5,) * 10),
        ({"X": np.zeros((2, 3)), "y": np.zeros(2)}, {"X": np.ones((10, 3)), "y": np.ones(10)}),
        (np.zeros((0, 2)), np.ones((10, 2))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_datasets_of_every_kind_take_canaries(data: Any, canaries: Any) -> None:
    planted = plant_canaries(data, canaries)
    rows = planted.data["y"] if isinstance(planted.data, dict) else planted.data
    before = len(data["y"]) if isinstance(data, dict) else len(data)
    assert len(rows) == before + planted.included.sum()


def test_masked_entries_stay_masked() -> None:
    planted = plant_canaries(np.ma.masked_array([1.0, 999.0], [False, True]), np.ones(4))
    assert planted.data.mask.tolist() == [False, True] + [False] * int(planted.included.sum())


def test_a_table_takes_canaries() -> None:
    pd = pytest.importorskip("pandas")
    planted = plant_canaries(pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": np.arange(10.0)}))
    assert list(planted.data["a"])[1:] == list(np.flatnonzero(planted.included))


def test_a_run_that_leaks_refutes_its_claim_and_one_that_keeps_it_does_not() -> None:
    data = np.zeros((5, 400))
    leak = audit_one_run(plain_sum, data, CANARIES, score, PureDP(1.0))
    assert leak.verdict == "violation"
    assert leak.mechanism == "plain_sum"
    fine = audit_one_run(noisy_sum, data, CANARIES, score, GaussianDP(1.0), alpha=1e-6)
    assert fine.verdict != "violation"
    assert fine.draws == 400


def test_it_is_the_audit_of_the_scores() -> None:
    data = np.zeros((5, 400))
    seen: list[Any] = []

    def train(data: Any, rng: np.random.Generator) -> Any:
        seen.append(noisy_sum(data, rng))
        return seen[-1]

    result = audit_one_run(train, data, CANARIES, score, ApproxDP(1.0, 1e-5), seed=9, guesses=40)
    assert len(seen) == 1
    planted = plant_canaries(data, CANARIES, seed=9)
    expected = audit_scores(
        *planted.split_scores(score(seen[0], CANARIES)), ApproxDP(1.0, 1e-5), seed=9, guesses=40, id=result.id
    )
    assert result.lower_bound == expected.lower_bound
    assert result.record == expected.record


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": 3}, "train must be callable"),
        ({"score": "loss"}, "score must be callable"),
        ({"canaries": np.eye(400)[:1]}, "at least 2 canaries, got 1"),
        ({"canaries": np.eye(30)}, "rows have the shapes"),
        ({"canaries": np.full((400, 400), "a")}, "rows have the types float64 and <U1"),
        ({"canaries": [1, 2]}, "rows have the shapes|of different kinds|must"),
        ({"claim": "epsilon=1"}, "claim must be a guarantee"),
        ({"alpha": 0.0}, "alpha must be a number in"),
        ({"assume": "luck"}, "assume must be one of"),
        ({"guesses": 500}, "guesses must be an integer from 1 to 400"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_a_wrong_argument_is_refused_before_training(change: dict[str, Any], message: str) -> None:
    def train(data: Any, rng: np.random.Generator) -> Any:
        raise AssertionError("trained")

    given: dict[str, Any] = {
        "train": train,
        "data": np.zeros((5, 400)),
        "canaries": CANARIES,
        "score": score,
        "claim": PureDP(1.0),
    } | change
    with pytest.raises(SpecificationError, match=message):
        audit_one_run(**given)


@pytest.mark.parametrize("wrong", [np.zeros(3), ["a"] * 400, np.full(400, math.nan)], ids=["few", "texts", "nan"])
def test_wrong_scores_are_refused(wrong: Any) -> None:
    with pytest.raises(SpecificationError, match="scores"):
        audit_one_run(noisy_sum, np.zeros((5, 400)), CANARIES, lambda model, canaries: wrong, PureDP(1.0))


def test_rows_that_training_changes_do_not_show_which_canaries_were_in() -> None:
    def halves(data: Any, rng: np.random.Generator) -> None:
        for row in data:
            row["x"] /= 2

    def read(model: Any, canaries: Any) -> Any:
        return [row["x"] for row in canaries]

    canaries = [{"x": 1.0} for _ in range(100)]
    assert audit_one_run(halves, [{"x": 0.0}], canaries, read, PureDP(0.1)).lower_bound == 0.0


def test_the_line_of_a_result_makes_it_again() -> None:
    data = np.zeros((3, 400))
    result = audit_one_run(noisy_sum, data, CANARIES, score, ApproxDP(8.0, 1e-5), seed=5)
    names: dict[str, Any] = {"data": data, "canaries": CANARIES}
    exec(result.replay.replace("; auditor.", "; again = auditor."), names)
    assert names["again"] == result
    inside, outside = np.arange(20.0), np.arange(22.0)
    result = audit_scores(inside, outside, PureDP(1.0), alpha=np.float64(0.05))
    names = {"inside": inside, "outside": outside}
    exec(result.replay.replace("; auditor.", "; again = auditor."), names)
    assert names["again"] == result
