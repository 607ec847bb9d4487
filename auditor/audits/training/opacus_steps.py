"""Recorder of the steps of an Opacus optimizer, to which it adds a canary."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.audits.training.steps import StepRecorder
from auditor.errors import SpecificationError, check_positive
from auditor.targets.sampler import check_seed, make_generator

Array = NDArray[np.float64]

#: Norm of the canary's gradient before it is clipped, in clip norms.
_FULL = 100.0
#: What an optimizer needs to have, as `opacus.optimizers.DPOptimizer` of version 1.0 and later.
_NEEDED = ("clip_and_accumulate", "grad_samples", "params", "original_optimizer", "loss_reduction")


def record_opacus(
    optimizer: Any,
    recorder: StepRecorder,
    *,
    canary: Sequence[ArrayLike] | None = None,
    divisor: float | None = None,
    seed: int = 0,
) -> None:
    """Record every further step of an optimizer of Opacus.

    At each step, a fair coin adds the canary's gradient to those of the examples, before they are clipped. So
    Opacus clips it, adds the noise, and scales the sum as it does for any example.

    Parameters
    ----------
    optimizer : opacus.optimizers.DPOptimizer
        As `PrivacyEngine.make_private` returns it; version 1.0 or later, clipping the whole gradient of each example.
    recorder : StepRecorder
        With ``coin=0.5``, and what is claimed: clip norm, noise multiplier, sampling rate and number of examples.
        Nothing of that is read from the optimizer.
    canary : sequence of array_like, optional
        Gradient of the canary, one array of its shape for each trained parameter. By default a random direction over
        all of them, of 100 clip norms.
    divisor : float, optional
        What the noisy sum is divided by. By default the expected batch size that the optimizer has now, where its
        ``loss_reduction`` is "mean", else 1.
    seed : int
        Seed of the coins and of the direction. Training must not use it.

    Raises
    ------
    SpecificationError
        If the optimizer is none of Opacus, clips in another way, is recorded already, or the canary does not fit.

    Notes
    -----
    The sum without the canary is computed here, from the gradients of the examples, in double precision; the sum
    before noise is the optimizer's own. The constant that a mean is divided by is public, so that it is taken as it is
    at the first step: where it changes with the drawn batch, the noise does too.
    """
    _check_optimizer(optimizer, recorder)
    check_seed(seed)
    shapes = [tuple(p.shape) for p in optimizer.params]
    tap = _Tap(
        optimizer,
        recorder,
        _read_canary(canary, shapes, recorder.clip, seed),
        _read_divisor(optimizer, divisor),
        make_generator(seed, "opacus", "coins"),
    )
    optimizer.clip_and_accumulate = tap.replace_clipping(optimizer.clip_and_accumulate)
    optimizer.original_optimizer.step = tap.replace_step(optimizer.original_optimizer.step)


@dataclass
class _Tap:
    """What is seen of the step that is being made."""

    optimizer: Any
    recorder: StepRecorder
    canary: list[Array]
    divisor: float
    coins: np.random.Generator
    included: bool | None = None
    others: list[Array] = field(default_factory=list)
    norms: list[Array] = field(default_factory=list)

    def replace_clipping(self, clip: Callable[[], Any]) -> Callable[[], Any]:
        def clip_with_canary() -> Any:
            first = self.included is None
            self._add_batch()
            if first:
                self.included = bool(self.coins.random() < 0.5)
                if self.included:
                    self._insert_canary()
            return clip()

        return clip_with_canary

    def replace_step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def step_and_record(*args: Any, **options: Any) -> Any:
            self._record_step()
            return step(*args, **options)

        return step_and_record

    def _add_batch(self) -> None:
        """Add the clipped gradients of a batch, or of a part of one."""
        parts = [
            _to_numpy(g).reshape(len(g), gradient.size)
            for g, gradient in zip(self.optimizer.grad_samples, self.canary, strict=True)
        ]
        lengths = np.sqrt(sum(np.einsum("ij,ij->i", part, part) for part in parts))
        factors = np.minimum(1.0, self.recorder.clip / np.maximum(lengths, 1e-300))
        sums = [factors @ part for part in parts]
        self.others = [a + b for a, b in zip(self.others, sums, strict=True)] if self.others else sums
        self.norms.append(lengths * factors)

    def _insert_canary(self) -> None:
        torch = importlib.import_module("torch")
        for p, gradient in zip(self.optimizer.params, self.canary, strict=True):
            held = p.grad_sample
            batch = held[-1] if isinstance(held, list) else held
            row = torch.as_tensor(gradient.reshape(1, *p.shape), dtype=batch.dtype, device=batch.device)
            joined = torch.cat([batch, row])
            p.grad_sample = [*held[:-1], joined] if isinstance(held, list) else joined

    def _record_step(self) -> None:
        if self.included is None:
            raise SpecificationError("the optimizer made a step whose gradients were not clipped: they were not seen")
        # Opacus divides means by the number of accumulated batches too.
        mean = self.optimizer.loss_reduction == "mean"
        divisor = self.divisor * (self.optimizer.accumulated_iterations if mean else 1)
        factor = min(1.0, self.recorder.clip / _norm_of(self.canary))
        norms = np.concatenate(self.norms)
        self.recorder.add(
            [_to_numpy(p.grad).ravel() * divisor for p in self.optimizer.params],
            [part.ravel() * factor for part in self.canary],
            included=self.included,
            others=self.others,
            signal=[_to_numpy(p.summed_grad).ravel() for p in self.optimizer.params],
            norms=norms,
            batch=len(norms),
        )
        self.included, self.others, self.norms = None, [], []


def _check_optimizer(optimizer: Any, recorder: StepRecorder) -> None:
    kind = type(optimizer).__name__
    missing = [name for name in _NEEDED if not (name in vars(optimizer) or hasattr(type(optimizer), name))]
    if missing:
        raise SpecificationError(
            "expected an optimizer of Opacus 1.0 or later, with a gradient for each example, "
            f"got {kind}: it has no {missing[0]}"
        )
    if hasattr(optimizer, "max_grad_norms") or hasattr(optimizer, "unclipped_num"):
        raise SpecificationError(f"{kind} clips by layer or adaptively; what its steps claim is not followed")
    if "clip_and_accumulate" in vars(optimizer):
        raise SpecificationError(f"this {kind} is recorded already, or its clipping is replaced")
    if recorder.coin != 0.5:
        raise SpecificationError(
            f"the recorder needs coin=0.5, the probability of the canary here, got {recorder.coin}"
        )


def _read_canary(
    canary: Sequence[ArrayLike] | None, shapes: list[tuple[int, ...]], clip: float, seed: int
) -> list[Array]:
    if canary is None:
        rng = make_generator(seed, "opacus", "direction")
        parts = [rng.normal(size=shape) for shape in shapes]
        length = _norm_of(parts)
        return [part * (_FULL * clip / length) for part in parts]
    found = [np.asarray(part, dtype=np.float64) for part in canary]
    if [part.shape for part in found] != shapes:
        raise SpecificationError(
            f"canary must have arrays of the shapes {shapes}, got {[part.shape for part in found]}"
        )
    if not all(np.isfinite(part).all() for part in found) or not any(part.any() for part in found):
        raise SpecificationError("canary must have finite numbers, not all of them 0")
    return found


def _read_divisor(optimizer: Any, divisor: float | None) -> float:
    if divisor is not None:
        return check_positive("divisor", divisor)
    return float(optimizer.expected_batch_size) if optimizer.loss_reduction == "mean" else 1.0


def _norm_of(parts: Sequence[Array]) -> float:
    """Norm of all arrays together."""
    return math.sqrt(math.fsum(float(np.sum(part * part)) for part in parts))


def _to_numpy(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)
