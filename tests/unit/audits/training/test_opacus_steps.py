"""Recording of an optimizer of Opacus: on one in numpy, and on Opacus where it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP
from auditor.training import StepRecorder, audit_steps, read_steps, record_opacus

ROOT = Path(__file__).resolve().parents[4]
CLIP, NOISE = 2.0, 3.0


class Tensor(np.ndarray):
    """An array with the few methods of tensors that are used."""

    device = "cpu"

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return np.asarray(self)


def tensor(values: Any) -> Tensor:
    return np.asarray(values, dtype=np.float32).view(Tensor)


class Parameter:
    """A parameter with its gradients."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.grad: Any = None
        self.grad_sample: Any = None
        self.summed_grad: Any = None


class DPOptimizer:
    """The steps of `opacus.optimizers.DPOptimizer`."""

    def __init__(self, params: list[Parameter], noise: float = NOISE, batch_size: int = 5) -> None:
        self.params, self.noise, self.expected_batch_size = params, noise, batch_size
        self.loss_reduction, self.accumulated_iterations = "mean", 1
        self.original_optimizer = types.SimpleNamespace(step=lambda: "done")
        self.rng = np.random.default_rng(3)

    @property
    def grad_samples(self) -> list[Tensor]:
        return [p.grad_sample for p in self.params]

    def clip_and_accumulate(self) -> None:
        lengths = np.sqrt(sum((g**2).sum(axis=tuple(range(1, g.ndim))) for g in self.grad_samples))
        factors = np.minimum(1.0, CLIP / (lengths + 1e-6))
        for p in self.params:
            total = np.einsum("i,i...", factors, p.grad_sample)
            p.summed_grad = tensor(total if p.summed_grad is None else p.summed_grad + total)

    def step(self, skip: bool = False) -> Any:
        self.clip_and_accumulate()
        if skip:
            return None
        for p in self.params:
            noise = self.rng.normal(scale=self.noise * CLIP, size=p.shape)
            p.grad = tensor((p.summed_grad + noise) / self.expected_batch_size)
        done = self.original_optimizer.step()
        for p in self.params:
            p.summed_grad = None
        return done


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is used of torch."""
    module = types.ModuleType("torch")
    module.Tensor = Tensor  # type: ignore[attr-defined]
    module.cat = lambda parts: tensor(np.concatenate(parts))  # type: ignore[attr-defined]
    module.as_tensor = lambda values, dtype, device: tensor(values)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)


def trained(optimizer: DPOptimizer, steps: int, parts: int = 1, rate: float = 0.5, **options: Any) -> StepRecorder:
    recorder = StepRecorder(CLIP, NOISE, rate, examples=10, coin=0.5)
    record_opacus(optimizer, recorder, **options)
    rng = np.random.default_rng(4)
    for _ in range(steps):
        for part in range(parts):
            size = rng.binomial(10 // parts, rate)
            for p in optimizer.params:
                p.grad_sample = tensor(rng.normal(size=(size, *p.shape)))
            assert optimizer.step(skip=part < parts - 1) == ("done" if part == parts - 1 else None)
    return recorder


@pytest.mark.parametrize("parts", [1, 2])
def test_a_step_is_recorded_as_it_is_made(parts: int) -> None:
    table = trained(DPOptimizer([Parameter(20, 3), Parameter(7)]), 300, parts).table()
    assert table.steps == 300
    assert table.layers.tolist() == [60, 7]
    assert table.canary_norm == pytest.approx(CLIP)
    assert table.largest.max() <= 1 + 1e-6
    assert table.surplus.max() < 1e-5  # the canary was clipped as the others were
    assert 0 < table.included.sum() < 300
    assert table.squares.sum(axis=1).mean() == pytest.approx(67, abs=67 * 5 * np.sqrt(2 / 67 / 300))
    assert table.batch.mean() == pytest.approx(5, abs=0.5)


def test_an_audit_of_the_record_tells_right_from_wrong_noise() -> None:
    claim = GaussianDP(10 / NOISE)  # 100 full batches
    right = audit_steps(trained(DPOptimizer([Parameter(40)]), 100, rate=1.0), claim)
    assert (str(right.verdict), (right.lower_bound or 0) > 0.9 * claim.mu) == ("consistent", True)
    wrong = audit_steps(trained(DPOptimizer([Parameter(40)], noise=NOISE / 2), 100, rate=1.0), claim)
    assert str(wrong.verdict) == "violation"


def test_a_sum_is_not_multiplied() -> None:
    optimizer = DPOptimizer([Parameter(40)], batch_size=1)
    optimizer.loss_reduction, optimizer.accumulated_iterations = "sum", 3
    assert trained(optimizer, 200).table().squares.mean() == pytest.approx(40, rel=0.1)


def test_a_canary_and_a_divisor_may_be_given() -> None:
    table = trained(DPOptimizer([Parameter(2, 2)]), 5, canary=[[[0.5, 0.0], [0.0, 0.0]]], divisor=5.0).table()
    assert table.canary_norm == pytest.approx(0.5)  # it is below the clip norm
    assert table.surplus.max() < 1e-5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda o: o.__dict__.pop("original_optimizer"), "expected an optimizer of Opacus 1.0 or later"),
        (lambda o: setattr(o, "max_grad_norms", [1.0]), "clips by layer or adaptively"),
        (lambda o: record_opacus(o, StepRecorder(CLIP, NOISE, coin=0.5)), "is recorded already"),
    ],
)
def test_an_optimizer_that_does_not_fit_is_refused(change: Any, said: str) -> None:
    optimizer = DPOptimizer([Parameter(3)])
    change(optimizer)
    with pytest.raises(SpecificationError, match=said):
        record_opacus(optimizer, StepRecorder(CLIP, NOISE, coin=0.5))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"canary": [np.ones(4)]}, r"arrays of the shapes \[\(3,\)\], got \[\(4,\)\]"),
        ({"canary": [np.zeros(3)]}, "not all of them 0"),
        ({"canary": [[np.nan, 1.0, 1.0]]}, "finite"),
        ({"divisor": 0.0}, "divisor"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        record_opacus(DPOptimizer([Parameter(3)]), StepRecorder(CLIP, NOISE, coin=0.5), **options)


def test_a_recorder_needs_a_fair_coin() -> None:
    with pytest.raises(SpecificationError, match=r"coin=0\.5"):
        record_opacus(DPOptimizer([Parameter(3)]), StepRecorder(CLIP, NOISE, 0.1))


@pytest.mark.parametrize(("script", "library"), [("opacus_run.py", "opacus"), ("jax_privacy_run.py", "jax_privacy")])
def test_the_examples_run_where_their_library_is(script: str, library: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    command = [sys.executable, str(ROOT / "examples" / "training" / script), str(tmp_path / "run.npz")]
    subprocess.run(command, check=True, timeout=300, cwd=ROOT)
    result = audit_steps(read_steps(tmp_path / "run.npz"), ApproxDP(4.0, 1e-5))
    assert (str(result.verdict), (result.lower_bound or 0) > 3) == ("consistent", True)
