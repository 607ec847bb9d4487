"""Records of private training, as claimed or with one of the known pitfalls; the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.training import StepRecorder
from mechanisms.training import dp_sgd_mutants as mutants
from mechanisms.training.dp_sgd import FeatureReader, GradientDescent, Masks
from mechanisms.training.models import HiddenLayerNetwork
from mechanisms.training.recorded_steps import record_steps

Array = NDArray[np.float64]

#: A network of 5 units on 6 features: 41 weights in four layers. The gradient of an example is never below `CLIP`.
EXAMPLES, MODEL, CLIP = 300, HiddenLayerNetwork(6, 5), 0.05
#: Accountant at delta = 1e-5: 200 full batches at this noise have epsilon = 4, 200 sampled ones at rate 0.1 too.
FULL, SAMPLED = 15.29, 1.765
#: Steps after which a seed comes again, in the pitfall of that name.
_EPOCH = 50


@dataclass(frozen=True)
class SeedReusedAfterAnEpoch(GradientDescent):
    """The noise of a step is that of the step an epoch before."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> Array:
        """See `GradientDescent`."""
        return super().draw_noise(batches, p, rng)[np.arange(self.steps) % _EPOCH]


@dataclass(frozen=True)
class SeedReusedForLayers(GradientDescent):
    """The generator of the noise gets the same seed for each layer of a step."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> Array:
        """See `GradientDescent`."""
        noise = super().draw_noise(batches, p, rng)
        return np.concatenate([noise[:, :, :size] for size in self.model.sizes], axis=2)


@dataclass(frozen=True)
class NoiseWithoutTheClipNorm(GradientDescent):
    """Noise has the standard deviation of the multiplier."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> Array:
        """See `GradientDescent`."""
        return super().draw_noise(batches, p, rng) / self.clip


@dataclass(frozen=True)
class UniformNoise(GradientDescent):
    """Noise is uniform, of the claimed standard deviation."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> Array:
        """See `GradientDescent`."""
        wide = np.sqrt(3) * self.noise * self.clip
        return rng.uniform(-wide, wide, size=(*batches.shape[:2], p))


#: Trainings with a pitfall. That of the last one is in what is claimed.
PITFALLS: dict[str, type[GradientDescent]] = {
    "noise before clipping": mutants.NoiseBeforeClipping,
    "clip of the mean": mutants.ClipOfTheMean,
    "clip by layer": mutants.ClipByLayer,
    "noise scaled by the batch": mutants.NoiseScaledByTheBatch,
    "floor of the batch size": mutants.FloorOfTheBatch,
    "shuffled": mutants.ShuffledBatches,
    "seed reused": mutants.SeedReused,
    "seed reused after an epoch": SeedReusedAfterAnEpoch,
    "seed reused for layers": SeedReusedForLayers,
    "layer without noise": mutants.LayerWithoutNoise,
    "noise of one micro-batch of four": mutants.NoiseOfOneMicroBatch,
    "accumulation without its factor": mutants.AccumulationWithoutItsFactor,
    "bias not clipped": mutants.BiasNotClipped,
    "noise without the clip norm": NoiseWithoutTheClipNorm,
    "uniform noise": UniformNoise,
    "rate of the accountant halved": GradientDescent,
}


def train(
    seed: int,
    *,
    rate: float = 0.1,
    noise: float = SAMPLED,
    steps: int = 200,
    pitfall: str = "",
    fair: bool = True,
    **claims: Any,
) -> StepRecorder:
    """Record a network trained by DP-SGD, with a canary of full norm.

    Parameters
    ----------
    seed : int
        Of data, training and record.
    rate, noise, steps : float, float, int
        Of the training; the record claims them too.
    pitfall : str
        One of `PITFALLS`; "" for none.
    fair : bool
        The canary is in a step by a fair coin; else by one of the rate.
    **claims
        What is claimed of each step, see `StepRecorder.add`.
    """
    rng = np.random.default_rng(seed)
    examples = 129 if pitfall.startswith("floor") else EXAMPLES  # whose batches are expected to have 12.9
    x = rng.normal(size=(examples, MODEL.features))
    labels = np.sign(x @ rng.normal(size=MODEL.features) + rng.normal(size=examples))
    canary = np.append(3.0 * rng.normal(size=MODEL.features), 1.0)
    training = PITFALLS.get(pitfall, GradientDescent)(
        MODEL, FeatureReader(0), CLIP, noise, steps, rate=rate, batch=rate * examples, learning_rate=0.5
    )
    coin = 0.5 if fair else rate
    claimed = rate / 2 if pitfall.startswith("rate") else rate
    recorder = StepRecorder(CLIP, noise, claimed, examples=examples, coin=coin, seed=seed)
    record_steps(training, np.column_stack([x, labels]), canary, recorder, coin, rng, **claims)
    return recorder
