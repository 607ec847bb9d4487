"""Known pitfalls of DP-SGD, each a wrong twin of `dp_sgd.DPSGD`.

Those whose readings still have a known distribution state it, so that they are caught without a run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from auditor.privacy.exact import FiniteLaw, ProductLaw
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, Mutant, Twin, require, tabulate_mutants
from mechanisms.training.dp_sgd import (
    DPSGD,
    FeatureReader,
    GradientDescent,
    Masks,
    StatedDescent,
    TrainedWeights,
)
from mechanisms.training.loss_lattice import law_of_sum
from mechanisms.training.models import LayerGradients, clip_factors, gradients_by_example

#: Micro-batches of which a batch is made up.
_PARTS = 4

# ------------------------------------------------------------------------------------ clipping


@dataclass(frozen=True)
class NoiseBeforeClipping(GradientDescent):
    """Each gradient gets its part of the noise and is clipped then; the sum gets none."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002
        """See `GradientDescent`."""
        return np.zeros((*batches.shape[:2], p))

    def _release_sum(
        self, weights: FloatArray, rows: FloatArray, mask: Masks, noise: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        return np.asarray(np.einsum("nm,nmp->np", mask, self.clip_examples(weights, rows, rng))) + noise

    def clip_examples(self, weights: FloatArray, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """See `GradientDescent`."""
        own = gradients_by_example(self.model, weights, rows)
        own = own + self.noise * self.clip / math.sqrt(self.batch) * rng.standard_normal(own.shape)
        return np.asarray(clip_factors(np.linalg.norm(own, axis=2), self.clip)[:, :, None] * own)


@dataclass(frozen=True)
class ClipOfTheMean(GradientDescent):
    """The mean of the batch is clipped, and gets the noise that a mean of clipped gradients needs."""

    adds_up: ClassVar[bool] = False

    def sum_gradients(self, weights: FloatArray, rows: FloatArray, mask: Masks) -> FloatArray:
        """See `GradientDescent`."""
        mean = super().sum_gradients(weights, rows, mask) / self.batch
        factors = clip_factors(np.linalg.norm(mean, axis=1, keepdims=True), self.clip)
        return np.asarray(self.batch * factors * mean)

    def find_factors(self, layers: tuple[LayerGradients, ...]) -> tuple[FloatArray, ...]:
        """See `GradientDescent`: no example is clipped."""
        return tuple(np.ones_like(layer.norms) for layer in layers)


@dataclass(frozen=True)
class ClipByLayer(GradientDescent):
    """Each layer is clipped to the whole norm."""

    def find_factors(self, layers: tuple[LayerGradients, ...]) -> tuple[FloatArray, ...]:
        """See `GradientDescent`."""
        return tuple(clip_factors(layer.norms, self.clip) for layer in layers)


@dataclass(frozen=True)
class BiasNotClipped(GradientDescent):
    """The last layer, a bias, is neither counted in the norm nor clipped."""

    def find_factors(self, layers: tuple[LayerGradients, ...]) -> tuple[FloatArray, ...]:
        """See `GradientDescent`."""
        *clipped, bias = layers
        return (*super().find_factors(tuple(clipped)), np.ones_like(bias.norms))


@dataclass(frozen=True)
class AccumulationWithoutItsFactor(StatedDescent):
    """Each of four micro-batches adds the mean of its own share, and nothing divides by four."""

    signal: ClassVar[float] = float(_PARTS)

    def find_factors(self, layers: tuple[LayerGradients, ...]) -> tuple[FloatArray, ...]:
        """See `GradientDescent`."""
        return tuple(_PARTS * factors for factors in super().find_factors(layers))


# --------------------------------------------------------------------------------------- noise


@dataclass(frozen=True)
class NoiseScaledByTheBatch(StatedDescent):
    """Noise is multiplied by the size of the drawn batch over its expectation."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:
        """See `GradientDescent`."""
        return np.asarray(super().draw_noise(batches, p, rng) * batches.sum(axis=2)[:, :, None] / self.batch)

    def law(self, data: Dataset) -> FiniteLaw | ProductLaw:
        """Exact distribution for the canary alone or for no rows, whose batches are of one row or empty."""
        if len(data) > 1 or self.release != "score":
            raise ValueError(f"expected the score of at most one row, got {len(data)} rows and {self.release!r}")
        shift, lattice = self.shift(data), self.lattice
        # An empty batch has no noise, so that its reading is 0.
        empty = np.zeros(lattice.ends[1] - lattice.ends[0] + 1)
        empty[int(lattice.cells(np.zeros(1))[0]) - lattice.ends[0]] = 1.0
        masses = empty
        if shift:
            drawn = lattice.masses(shift, 1.0, 1.0 / self.batch)
            masses = (1.0 - self.rate) * empty + self.rate * drawn
        return law_of_sum(lattice, [masses] * self.steps)


@dataclass(frozen=True)
class FloorOfTheBatch(StatedDescent):
    """The sum is divided by the expected batch rounded down, the noise by the expectation."""

    @property
    def _factor(self) -> float:
        return self.batch / math.floor(self.batch)

    def find_factors(self, layers: tuple[LayerGradients, ...]) -> tuple[FloatArray, ...]:
        """See `GradientDescent`."""
        return tuple(self._factor * factors for factors in super().find_factors(layers))

    def _step_masses(self, shift: float) -> FloatArray:
        return self.lattice.masses(self._factor * shift, self.rate if shift else 0.0)

    def _distance(self, rows: int) -> float:
        return self._factor * super()._distance(rows)


@dataclass(frozen=True)
class SeedReused(GradientDescent):
    """The generator of the noise gets the same seed at every step of a run."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:
        """See `GradientDescent`."""
        return np.broadcast_to(super().draw_noise(batches[:1], p, rng), (*batches.shape[:2], p))


@dataclass(frozen=True)
class LayerWithoutNoise(TrainedWeights):
    """The last layer, a bias, gets no noise."""

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:
        """See `GradientDescent`."""
        noise = super().draw_noise(batches, p, rng)
        noise[:, :, -self.model.sizes[-1] :] = 0.0
        return noise


@dataclass(frozen=True)
class NoiseOfOneMicroBatch(StatedDescent):
    """Each of four micro-batches should add its part of the noise; only one does."""

    deviation: ClassVar[float] = _PARTS**-0.5

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:
        """See `GradientDescent`."""
        return super().draw_noise(batches, p, rng) * self.deviation


@dataclass(frozen=True)
class NoiseByPrivateDelta(StatedDescent):
    """Noise for delta = 1 / n with the number of rows itself, by the classical rule at epsilon = 1."""

    def _ratio(self, rows: int) -> float:
        """Standard deviation over the claimed one, which is that for ``batch`` rows."""
        return math.sqrt(math.log(1.25 * max(rows, 1)) / math.log(1.25 * self.batch))

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:
        """See `GradientDescent`."""
        return super().draw_noise(batches, p, rng) * self._ratio(batches.shape[2])

    def _distance(self, rows: int) -> float:
        return max(1.0, self._ratio(rows)) * super()._distance(rows)

    def law(self, data: Dataset) -> FiniteLaw | ProductLaw:
        """See `StatedDescent.law`; the scale depends on the dataset."""
        shift = self.shift(data)
        masses = self.lattice.masses(shift, self.rate if shift else 0.0, self._ratio(len(data)))
        return law_of_sum(self.lattice, [masses] * self.steps)


# --------------------------------------------------------------------------- batches and accounting


@dataclass(frozen=True)
class ShuffledBatches(StatedDescent):
    """Each row is in the batch of one step of an epoch; the accountant counts Poisson samples."""

    @property
    def _epoch(self) -> int:
        return round(1.0 / self.rate)

    def draw_batches(self, rows: int, n: int, rng: np.random.Generator) -> Masks:
        """See `GradientDescent`."""
        epochs = []
        for _ in range(math.ceil(self.steps / self._epoch)):
            step = rng.permuted(np.tile(np.arange(rows) % self._epoch, (n, 1)), axis=1)
            # Of one row alone the step is drawn too.
            step = (step + rng.integers(self._epoch, size=(n, 1))) % self._epoch
            epochs.append(step == np.arange(self._epoch)[:, None, None])
        return np.concatenate(epochs)[: self.steps]

    def law(self, data: Dataset) -> FiniteLaw | ProductLaw:
        """Exact distribution of the score: the canary is in one step of each epoch, whichever."""
        require(self.steps % self._epoch == 0, f"steps of whole epochs of {self._epoch}", self.steps)
        shift = self.shift(data)
        own, none = (self.lattice.masses(shift, rate) for rate in (1.0 if shift else 0.0, 0.0))
        return law_of_sum(self.lattice, [own, *[none] * (self._epoch - 1)] * (self.steps // self._epoch))


@dataclass(frozen=True)
class OneEpochMore(StatedDescent):
    """One step more than the accountant is told of."""

    def _longer(self) -> DPSGD:
        return replace(Twin(DPSGD)(self), steps=self.steps + 1)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray | FloatArray:
        """Train n times; see `GradientDescent`."""
        return self._longer()(data, n, rng)

    def law(self, data: Dataset) -> FiniteLaw | ProductLaw:
        """See `StatedDescent.law`."""
        return self._longer().law(data)


@dataclass(frozen=True)
class EarlyStopping(GradientDescent):
    """The weights of the step with the least loss on the private rows are released."""

    def _train_block(self, rows: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
        """Whether the step that is chosen is the one that an attacker expects with the canary: 1 or 0."""
        weights = np.tile(self.model.initial(), (n, 1))
        batches = self.draw_batches(len(rows), n, rng)
        noise = self.draw_noise(batches, weights.shape[1], rng)
        assert isinstance(self.reader, FeatureReader)
        losses, seen = [], []
        for mask, own in zip(batches, noise, strict=True):
            released = self._release_sum(weights, rows, mask, own, rng)
            weights = weights - self.learning_rate / self.batch * released
            losses.append(self.model.losses(weights, rows).sum(axis=1))
            seen.append(weights[:, self.reader.index])
        chosen: IntArray = (np.argmin(losses, axis=0) == np.argmax(seen, axis=0)).astype(np.int64)
        return chosen


@dataclass(frozen=True)
class FactorOfMu:
    """A level of Gaussian DP that is a multiple of the reference's (for `Mutant.true_level`)."""

    factor: float

    def __call__(self, base: DPSGD) -> float:
        """Return it."""
        return self.factor * base.mu()


MUTANTS: dict[str, Mutant[Any]] = tabulate_mutants(
    Mutant(
        "noise_before_clipping",
        Twin(NoiseBeforeClipping),
        None,
        "violation",
        "a canary with a large gradient is hardly moved by its noise, and the sum has none; depends on the other rows",
    ),
    Mutant(
        "clip_of_the_mean",
        Twin(ClipOfTheMean),
        None,
        "violation",
        "a canary with a large gradient decides the mean, up to the batch's size times the sensitivity; depends on it",
    ),
    Mutant(
        "clip_by_layer",
        Twin(ClipByLayer),
        None,
        "violation",
        "up to the root of the number of layers times the sensitivity; depends on the canary's gradients",
    ),
    Mutant(
        "bias_not_clipped", Twin(BiasNotClipped), None, "violation", "a bias's gradient is up to 1 for any clip norm"
    ),
    Mutant(
        "accumulation_without_factor",
        Twin(AccumulationWithoutItsFactor),
        FactorOfMu(_PARTS),
        "violation",
        "four times the sensitivity",
    ),
    Mutant(
        "noise_scaled_by_the_batch",
        Twin(NoiseScaledByTheBatch),
        None,
        "violation",
        "an empty batch has no noise; depends on the batch. A row alone, against nobody",
    ),
    Mutant(
        "floor_of_the_batch",
        Twin(FloorOfTheBatch),
        None,
        "violation",
        "the signal grows by the expected batch over its floor; depends on the batch",
    ),
    Mutant(
        "seed_reused",
        Twin(SeedReused),
        None,
        "violation",
        "equal readings of two steps tell that the canary was in both or in neither; depends on the sampling",
    ),
    Mutant(
        "layer_without_noise",
        Twin(LayerWithoutNoise),
        None,
        "violation",
        "the bias is exact, so that no level holds wherever the canary moves it",
    ),
    Mutant(
        "noise_of_one_micro_batch",
        Twin(NoiseOfOneMicroBatch),
        FactorOfMu(math.sqrt(_PARTS)),
        "violation",
        "a quarter of the variance",
    ),
    Mutant(
        "delta_of_private_size",
        Twin(NoiseByPrivateDelta),
        None,
        "violation",
        "the scale tells the number of rows; depends on it. Few rows show it",
    ),
    Mutant(
        "shuffled",
        Twin(ShuffledBatches),
        None,
        "violation",
        "the canary takes part for certain; depends on noise and rate. Little noise shows it",
    ),
    Mutant(
        "one_epoch_more",
        Twin(OneEpochMore),
        None,
        "violation",
        "a step that the accountant did not count; the level depends on the number of steps",
    ),
    Mutant(
        "early_stopping",
        Twin(EarlyStopping),
        None,
        "violation",
        "a canary with a large loss chooses the step; no level holds where it always does",
    ),
)
