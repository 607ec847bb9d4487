"""White-box audits: every pitfall is found in one run, levels are close to the truth, and bad input is refused."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.audits.training.step_level import Steps, bound_scale, compose_level, group_steps
from auditor.errors import MissingLibraryError, SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, PureDP
from auditor.report import write_reports
from auditor.results import make_document
from auditor.training import StepRecorder, audit_steps, read_steps
from benchmarks.recorded_training import CLIP, FULL, PITFALLS, SAMPLED, train

ROOT = Path(__file__).resolve().parents[4]
CLAIM = ApproxDP(4.0, 1e-5)
#: Pitfalls of the sampling, or of what depends on it: the others show in full batches, which compose in closed form.
OF_SAMPLING = {"noise scaled by the batch", "floor of the batch size", "shuffled", "rate of the accountant halved"}


def names_of(result: Any) -> set[str]:
    return {check["name"] for check in result.checks if not check["passed"]}


def test_one_run_of_200_full_batches_certifies_nine_tenths_of_the_claim() -> None:
    assert compose_level([Steps(200, FULL, 1.0)], CLAIM) == pytest.approx(4.0, abs=1e-3)
    for seed in range(3):
        record = train(seed, rate=1.0, noise=FULL)
        assert (audit_steps(record, CLAIM, alpha=0.05).lower_bound or 0.0) > 3.6
        assert audit_steps(record, CLAIM, alpha=1e-6).verdict == "consistent"


def test_one_run_of_200_sampled_steps_certifies_most_of_the_claim() -> None:
    result = audit_steps(train(0), CLAIM, alpha=1e-6)
    assert result.verdict == "consistent"
    assert 3.0 < (result.lower_bound or 0.0) < 4.0
    assert "tested" in result.caveat
    assert result.draws == 200


#: Tests that fail, by which a finding names its cause.
CAUSES = {
    "shuffled": {"batch sizes", "consecutive batches", "draws of examples"},
    "rate of the accountant halved": {"sampling rate"},
    "noise scaled by the batch": {"noise scale and batch size"},
    "clip of the mean": {"sum", "norms"},
    "bias not clipped": {"norms", "canary's norm"},
    "seed reused for layers": {"noise of coordinates"},
    "seed reused": {"noise of consecutive steps", "noise of all steps"},
    "uniform noise": {"noise shape"},
    "layer without noise": {"noise scale of layers"},
}


@pytest.mark.parametrize("pitfall", PITFALLS)
def test_a_pitfall_is_found_in_one_run_and_named(pitfall: str) -> None:
    options: dict[str, Any] = {} if pitfall in OF_SAMPLING else {"rate": 1.0, "noise": FULL}
    result = audit_steps(train(7, pitfall=pitfall, **options), CLAIM)
    assert result.verdict in ("violation", "deviation")
    assert result.message
    assert CAUSES.get(pitfall, set()) <= names_of(result)


def test_a_reused_seed_is_no_claim_about_the_level() -> None:
    """Where steps are not independent, noise says nothing of the level: what is left are the canary's coins."""
    result = audit_steps(train(7, rate=1.0, noise=FULL, pitfall="seed reused after an epoch"), CLAIM)
    assert result.verdict == "deviation"
    assert result.lower_bound == 0.0
    assert "not independent sampled Gaussians" in result.caveat
    assert "noise of one step is used again" in result.message


def test_a_rate_above_the_claimed_one_raises_the_level() -> None:
    loose = ApproxDP(compose_level([Steps(200, SAMPLED, 0.05)], CLAIM) * 1.01, 1e-5)
    result = audit_steps(train(7, pitfall="rate of the accountant halved"), loose)
    assert result.verdict == "violation"
    assert (result.lower_bound or 0.0) > 1.5 * loose.level


def test_more_steps_than_the_accountant_counted_are_a_deviation() -> None:
    record = train(3, rate=1.0, noise=FULL)
    assert names_of(audit_steps(record, CLAIM, steps=199)) == {"steps"}
    assert audit_steps(record, CLAIM, steps=200).verdict == "consistent"


def test_a_claim_that_the_stated_steps_do_not_keep_is_a_deviation_at_least() -> None:
    result = audit_steps(train(3, rate=1.0, noise=FULL), ApproxDP(3.95, 1e-5))
    assert result.verdict == "deviation"
    assert "compose to" in result.message
    assert audit_steps(train(3, rate=1.0, noise=FULL), ApproxDP(3.0, 1e-5)).verdict == "violation"


def test_coins_alone_show_a_gradient_that_is_not_clipped() -> None:
    """Nothing is recorded but what is released, the canary's direction, and coins."""
    rng = np.random.default_rng(4)
    recorder = StepRecorder(1.0, 2.0, coin=0.5)
    for _ in range(200):
        included = bool(rng.random() < 0.5)
        released = rng.normal(scale=2.0, size=5) + np.array([12.0 * included, 0, 0, 0, 0])
        recorder.add(released, [1.0, 0, 0, 0, 0], included=included)
    result = audit_steps(recorder, GaussianDP(math.sqrt(200) / 2))
    assert result.verdict == "violation"
    assert "steps with the canary differ" in result.message
    assert (result.log10_max_e_value or 0.0) > 2


def test_a_gradient_of_a_million_clip_norms_in_sampled_steps_is_a_violation() -> None:
    """The losses of a step are too large for a grid of an accountant."""
    recorder, rng = StepRecorder(1.0, 2.0, 0.1, coin=0.5), np.random.default_rng(5)
    for _ in range(20):
        included = bool(rng.random() < 0.5)
        recorder.add(rng.normal(scale=2.0, size=1) + 1e6 * included, [1e6], included=included, others=[0.0])
    result = audit_steps(recorder, ApproxDP(3.0, 1e-5))
    assert result.verdict == "violation"
    assert (result.lower_bound or 0.0) > 1e6


def test_coins_that_are_not_as_stated_are_found_and_not_bet_on() -> None:
    rng = np.random.default_rng(5)
    recorder = StepRecorder(1.0, 2.0, coin=0.5)
    for _ in range(100):
        recorder.add(rng.normal(scale=2.0, size=3), [1.0, 0, 0], included=bool(rng.random() < 0.1))
    result = audit_steps(recorder, GaussianDP(5.0))
    assert "canary's rate" in names_of(result)
    assert result.log10_max_e_value is None


def test_without_the_sum_before_noise_the_level_is_a_bound_still() -> None:
    """What others add to the canary's direction makes noise look larger, never smaller."""
    rng = np.random.default_rng(6)
    levels = []
    for spread in (0.0, 5.0):
        recorder = StepRecorder(1.0, 20.0)
        for _ in range(300):
            recorder.add(rng.normal(scale=20.0, size=1) + 20 * spread, [1.0])
        result = audit_steps(recorder, GaussianDP(1.0))
        assert "not tested" in result.caveat
        levels.append(result.lower_bound or 0.0)
    assert levels[1] < levels[0] < math.sqrt(300) / 20


def test_the_scale_is_bounded_by_few_and_by_many_coordinates() -> None:
    assert bound_scale([(0.0, 0)], 0, 0.05) == math.inf
    bounds = [bound_scale([(float(n), n)], n, 0.025) for n in (10, 100, 10_000, 10**7)]
    assert bounds == sorted(bounds, reverse=True)
    assert 1.0 < bounds[-1] < 1.003
    assert bounds[2] < 1.03


def test_a_schedule_of_many_noises_and_norms_is_rounded_to_few_kinds_of_steps() -> None:
    rng = np.random.default_rng(10)
    recorder = StepRecorder(1.0, 20.0)
    for step in range(150):
        own = np.array([*rng.dirichlet(np.ones(3)), 0.0])
        recorder.add(own, own, noise_multiplier=20.0 + step / 100, sampling_rate=0.2 + 0.002 * step)
    table = recorder.table()
    kinds = group_steps(table, 1.0, 1.0)
    assert len(kinds) <= 20
    assert sum(kind.count for kind in kinds) == 150
    exact = np.sum((table.rate * table.canary_norm / table.multiplier) ** 2)
    rounded = sum(kind.count * (kind.rate / kind.multiplier) ** 2 for kind in kinds)
    assert 0.5 * exact < rounded <= exact
    assert group_steps(table, 1.0, 1.0, 0.0) == []
    assert all(kind.multiplier == pytest.approx(10.0) for kind in group_steps(table, 1.0, 1.0, 0.1))


def test_nothing_is_certified_where_nothing_was_drawn() -> None:
    recorder = StepRecorder(1.0, 2.0, 1e-4, examples=10)
    for _ in range(3):
        recorder.add([0.1, 0.2], [1.0, 0.0], included=False, others=[0.0, 0.0], batch=0)
    assert audit_steps(recorder, CLAIM).lower_bound == 0.0


def test_examples_without_a_gradient_do_not_make_a_sum_look_clipped() -> None:
    """A hinge loss: one example of each batch has a gradient, and it is clipped."""
    rng = np.random.default_rng(9)
    recorder = StepRecorder(1.0, 20.0, examples=10)
    for _ in range(20):
        others = np.zeros(10)
        others[3] = 1.0
        released = others + rng.normal(scale=20.0, size=10)
        recorder.add(released, np.zeros(10), included=False, others=others, batch=10, norms=[1.0, *[0.0] * 9])
    assert names_of(audit_steps(recorder, GaussianDP(1.0), alpha=1e-6)) == {"canary's rate"}  # its coin is 1 here


def test_gradients_on_one_line_that_are_all_clipped_do_not_make_a_sum_look_clipped() -> None:
    """A model of one parameter: of three gradients of the clip norm two cancel."""
    recorder, rng = StepRecorder(1.0, 5.0, coin=0.5), np.random.default_rng(6)
    for _ in range(100):
        included = bool(rng.random() < 0.5)
        released = rng.normal(scale=5.0, size=1) - 1.0 + included
        recorder.add(released, [1.0], included=included, others=[-1.0], norms=[1.0, 1.0, 1.0])
    assert audit_steps(recorder, GaussianDP(2.0)).verdict == "consistent"


@pytest.mark.parametrize("before", [True, False])
def test_a_clipped_sum_of_a_batch_is_found_with_the_canary_in_it_and_beside_it(before: bool) -> None:
    rng, recorder = np.random.default_rng(8), StepRecorder(1.0, 1.0, coin=0.5)
    for included in [True, False] * 10:
        rows = rng.normal(size=(5, 4))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.5
        others, canary = rows.sum(axis=0), np.array([0.6, 0.0, 0.0, 0.0])
        signal = (others + included * canary) if before else others
        signal = signal / max(1.0, float(np.linalg.norm(signal))) + (included and not before) * canary
        released = signal + rng.normal(size=4)
        recorder.add(released, canary, included=included, signal=signal, norms=np.linalg.norm(rows, axis=1))
    assert names_of(audit_steps(recorder, GaussianDP(5.0))) == {"clipping of sums"}


def test_values_of_few_digits_that_add_up_to_the_clip_norm_do_not_make_a_sum_look_clipped() -> None:
    """A mean by gradient steps, of one parameter: in each run some sums are the clip norm by chance."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows, recorder = rng.choice([-0.5, -0.25, 0.25, 0.5, 0.75], size=(50, 1)), StepRecorder(1.0, 1.0, coin=0.5)
        for _ in range(60):
            batch = rows[rng.random(50) < 0.1]
            others, included = batch.sum(axis=0), bool(rng.random() < 0.5)
            released = others + included + rng.normal(size=1)
            recorder.add(released, [1.0], included=included, others=others, norms=np.abs(batch[:, 0]))
        table = recorder.table()
        assert (np.abs(table.total - 1) < 1e-9).sum() >= 3
        assert names_of(audit_steps(recorder, GaussianDP(8.0), alpha=1e-6)) == set()


def test_reports_hold_the_result_and_fit_the_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    result = audit_steps(train(3, rate=1.0, noise=FULL, pitfall="clip by layer"), CLAIM)
    content = make_document({"dpaudit": "0", "seed": 0, "alpha": 0.01}, [result], [])
    jsonschema.validate(content, json.loads((ROOT / "auditor/report/schema.json").read_text()))
    write_reports(content, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "the canary adds 2 clip norms to the sum" in page
    assert "This bound assumes that the claim is about each step" in page


def test_norms_below_the_clip_norm_lower_the_level() -> None:
    rng = np.random.default_rng(8)
    full, half = (StepRecorder(1.0, 20.0) for _ in range(2))
    for step in range(200):
        noise = rng.normal(scale=20.0, size=40)
        for recorder, norm in ((full, 1.0), (half, 0.5 + 0.001 * (step % 7))):
            own = np.zeros(40)
            own[0] = norm
            recorder.add(noise + own, own, included=True, others=np.zeros(40))
    claim = GaussianDP(math.sqrt(200) / 20)
    one, two = (audit_steps(recorder, claim).lower_bound or 0.0 for recorder in (full, half))
    assert 0.48 * one < two < 0.52 * one


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = train(1, rate=1.0, noise=FULL, steps=20)
    record.save(tmp_path / "runs" / "first" / "run.npz")
    again = read_steps(tmp_path / "runs" / "first" / "run.npz")
    assert [path.name for path in (tmp_path / "runs" / "first").iterdir()] == ["run.npz"]
    assert audit_steps(again, CLAIM).to_json() == audit_steps(record, CLAIM).to_json()
    (tmp_path / "other.npz").write_bytes(b"PK nothing")
    with pytest.raises(SpecificationError, match=r"other\.npz' is no record of steps"):
        read_steps(tmp_path / "other.npz")
    for call in (read_steps, record.save):
        with pytest.raises(SpecificationError, match="path must be a path, got 5"):
            call(5)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match=r"cannot write to '.*other\.npz/run\.npz': .*other\.npz'"):
        record.save(tmp_path / "other.npz" / "run.npz")


def test_sampled_steps_need_an_accountant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingLibraryError, match=r"dp-accounting is needed .* 'dpaudit\[training\]'"):
        audit_steps(train(1, steps=3), CLAIM)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip": 0.0, "noise_multiplier": 1.0}, "clip must be a positive number, got 0"),
        ({"clip": 1.0, "noise_multiplier": -1.0}, "noise_multiplier must be a positive number"),
        ({"clip": 1.0, "noise_multiplier": 1.0, "sampling_rate": 1.5}, "sampling_rate must be a number in"),
        ({"clip": 1.0, "noise_multiplier": 1.0, "coin": 0.0}, "coin must be a number in"),
        ({"clip": 1.0, "noise_multiplier": 1.0, "examples": 2.5}, "examples must be a positive integer"),
    ],
)
def test_a_wrong_claim_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        StepRecorder(**options)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"released": [1.0, math.nan], "canary": [1.0, 0.0]}, "released: coordinate 1 is nan"),
        ({"released": [1.0, 2.0], "canary": [1.0]}, "canary must have 2 coordinates"),
        ({"released": [], "canary": []}, "released must have coordinates"),
        ({"released": [1.0], "canary": [1.0], "included": 1}, "included must be True, False or None"),
        ({"released": [1.0], "canary": [1.0], "batch": [0, 0]}, "every example at most once"),
        ({"released": [1.0], "canary": [1.0], "batch": [10]}, "batch must hold integers from 0 to 9"),
        ({"released": [1.0], "canary": [1.0], "batch": 11}, "batch must be a number of examples, at most 10"),
        ({"released": [1.0], "canary": [1.0], "norms": [-1.0]}, "norms must be finite numbers"),
        ({"released": ["a"], "canary": [1.0]}, "released must be a vector of numbers"),
        ({"released": [1e160], "canary": [1.0]}, "released: coordinate 0 is 1e.160, beyond 1e.100"),
        ({"released": [[[1.0], [2.0, 3.0]]], "canary": [1.0]}, "released must be a vector of numbers"),
        ({"released": [1.0], "canary": [1.0], "batch": [[1], [2, 3]]}, "batch must hold integers"),
        ({"released": [1.0], "canary": [1.0], "clip": math.inf}, "clip must be a finite number, got inf"),
        ({"released": [1.0], "canary": [1.0], "noise_multiplier": 1e-300}, "noise_multiplier must be from 1e-20"),
    ],
)
def test_a_wrong_step_is_refused_and_not_added(step: dict[str, Any], message: str) -> None:
    recorder = StepRecorder(CLIP, 1.0, 0.5, examples=10)
    with pytest.raises(SpecificationError, match=message):
        recorder.add(**step)
    assert len(recorder) == 0


def test_other_shapes_at_a_later_step_are_refused() -> None:
    recorder = StepRecorder(1.0, 1.0)
    recorder.add([[1.0, 2.0], [3.0]], [[0.0, 0.0], [1.0]])
    with pytest.raises(SpecificationError, match="released must have layers"):
        recorder.add([[1.0], [3.0, 4.0]], [[0.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("claim", "options", "message"),
    [
        (PureDP(1.0), {}, "claim must be about the whole run"),
        (CLAIM, {"alpha": 1.5}, "alpha must be a number in"),
        (CLAIM, {"steps": 0}, "steps must be a positive integer"),
        (CLAIM, {"detect": 0}, "detect must be a positive number, got 0"),
        (CLAIM, {"detect": math.inf}, "detect must be a finite number, got inf"),
        (CLAIM, {"seed": "1"}, "seed must be an integer of at least 0, got '1'"),
    ],
)
def test_a_wrong_argument_is_refused(claim: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        audit_steps(train(1, rate=1.0, noise=FULL, steps=2), claim, **options)


def test_an_empty_record_is_refused() -> None:
    with pytest.raises(SpecificationError, match="no step was recorded"):
        audit_steps(StepRecorder(1.0, 1.0), CLAIM)


def test_a_canary_that_is_in_more_often_than_its_coin_says_is_found_where_some_coins_are_not_known() -> None:
    recorder = StepRecorder(1.0, 2.0, coin=0.5)
    rng = np.random.default_rng(3)
    for step in range(60):
        recorder.add(rng.normal(scale=2.0, size=1) + 1.0, [1.0], included=True if step else None)
    result = audit_steps(recorder, GaussianDP(10.0))
    assert result.verdict == "deviation"
    assert "the canary was in 59 of 59 steps, where its coin is 0.5" in result.message


def test_a_canary_that_is_sampled_as_the_examples_are_is_no_alarm_where_rates_change() -> None:
    recorder = StepRecorder(1.0, 4.0, 0.25)
    rng = np.random.default_rng(4)
    for step in range(600):
        rate = 0.45 if step % 2 else 0.05
        included = bool(rng.random() < rate)
        others = 0.5 * rng.binomial(200, rate)  # not told, so that scores are larger where coins are
        recorder.add(rng.normal(scale=4.0, size=1) + others + included, [1.0], included=included, sampling_rate=rate)
    assert audit_steps(recorder, ApproxDP(30.0, 1e-5), alpha=1e-6).verdict == "consistent"


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(SpecificationError, match="no record of steps"):
        read_steps(tmp_path / "torn.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    train(1, rate=1.0, noise=FULL, steps=2).save(tmp_path / "fine.npz")
    fine = dict(np.load(tmp_path / "fine.npz"))
    np.savez(tmp_path / "short.npz", **fine | {"score": fine["score"][:1]})
    np.savez(tmp_path / "texts.npz", **fine | {"score": fine["score"].astype(str)})
    for name, says in (
        ("array.npy", "no record of steps"),
        ("short.npz", r"score has the shape \(1,\), expected \(2,\)"),
        ("texts.npz", "score has the type <U"),
    ):
        with pytest.raises(SpecificationError, match=says):
            read_steps(tmp_path / name)
    with pytest.raises(SpecificationError, match="record must be a StepRecorder, or what read_steps gives, got None"):
        audit_steps(None, CLAIM)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="clip must be a finite number, got inf"):
        StepRecorder(math.inf, 1.0)
    with pytest.raises(SpecificationError, match="seed must be an integer of at least 0, got -1"):
        StepRecorder(1.0, 1.0, seed=-1)
