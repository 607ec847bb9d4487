"""DP-SGD in numpy: clipped gradients by example, Poisson sampling or full batches, Gaussian noise on their sum.

What is released is looked at through a reader, which an attacker chooses who knows everything but whether the canary
is among the rows. Where the canary's clipped gradient always has the full norm, the distribution of the readings is
exact: a product of sampled Gaussians, rounded to a lattice of privacy losses.

Source: Abadi et al. (2016), Algorithm 1; Nasr et al. (2021, 2023) for the readers. The mutants are in
`dp_sgd_mutants`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw, ProductLaw
from mechanisms.additive_noise.laplace import default_step
from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, require, require_draws, require_positive
from mechanisms.training.loss_lattice import LossLattice, law_of_cells, law_of_sum
from mechanisms.training.models import LayerGradients, Model, clip_factors, join_norms, read_rows, sum_clipped

Release: TypeAlias = Literal["score", "steps", "weights"]
Masks = NDArray[np.bool_]

#: Runs that are trained at once, which bounds memory; arbitrary.
_BLOCK = 2048
#: Prefix sums of d-dimensional standard noise stay below ``(sqrt(d) + 9) sqrt(steps)`` but for a probability of
#: ``exp(-81 / 2) < 3e-18`` each, less than the rounding of what is computed from it.
_NOISE_REACH = 9.0


class Trained(Protocol):
    """What a reader knows of the training: all of it."""

    @property
    def model(self) -> Model:
        """What is trained."""
        ...

    def sum_gradients(self, weights: FloatArray, rows: FloatArray, mask: Masks) -> FloatArray:
        """Sum of the clipped gradients of a batch."""
        ...


class Reader(Protocol):
    """What an attacker reads off a released sum of gradients.

    ``of_unknown_batches`` tells whether readings say nothing of other rows, so that it does not matter which were
    drawn.
    """

    of_unknown_batches: ClassVar[bool]

    def read(self, training: Trained, weights: FloatArray, data: FloatArray, released: FloatArray) -> FloatArray:
        """Readings of a step, one a trial, in the unit of gradients; what the canary adds is positive."""
        ...

    def find_canary(self, data: FloatArray) -> FloatArray | None:
        """The canary's row, or None; ValueError where readings are no shifted noise."""
        ...

    def share(self, canary: FloatArray) -> float:
        """Part of the canary's clipped gradient that is read."""
        ...


@dataclass(frozen=True)
class FeatureReader:
    """Reads the weight of a feature that the canary alone has, in logistic regression.

    Nothing of the other rows need be known, so it reads sampled steps too. The canary's label is 1, which makes its
    gradient negative.

    Parameters
    ----------
    index : int
        The feature.
    """

    of_unknown_batches: ClassVar[bool] = True

    index: int

    def read(self, training: Trained, weights: FloatArray, data: FloatArray, released: FloatArray) -> FloatArray:  # noqa: ARG002
        """See `Reader`."""
        return -released[:, self.index]

    def find_canary(self, data: FloatArray) -> FloatArray | None:
        """See `Reader`."""
        having = data[data[:, self.index] != 0]
        require(len(having) <= 1, f"at most one row that has feature {self.index}", len(having))
        require(bool(np.all(having[:, -1] == 1)), "a canary with label 1", having[:, -1])
        return having[0] if len(having) else None

    def share(self, canary: FloatArray) -> float:
        """See `Reader`: the gradient is a multiple of the features and the constant of the bias."""
        return float(canary[self.index] / math.hypot(float(np.linalg.norm(canary[:-1])), 1.0))


@dataclass(frozen=True)
class CanaryReader:
    """Subtracts what the known rows add, and projects on the canary's gradient.

    For full batches, or a canary alone: in a sampled step, the rows that were drawn are not known.

    Parameters
    ----------
    canary : tuple of float
        The canary's row.
    """

    of_unknown_batches: ClassVar[bool] = False

    canary: tuple[float, ...]

    def read(self, training: Trained, weights: FloatArray, data: FloatArray, released: FloatArray) -> FloatArray:
        """See `Reader`."""
        row = np.array([self.canary])
        known = data[~(data == row).all(axis=1)]
        others = training.sum_gradients(weights, known, np.ones((len(weights), len(known)), dtype=np.bool_))
        own = training.model.gradients(weights, row)
        direction = sum_clipped(own, 1.0 / join_norms(own))
        return np.asarray(np.einsum("np,np->n", released - others, direction))

    def find_canary(self, data: FloatArray) -> FloatArray | None:
        """See `Reader`."""
        having = data[(data == np.array([self.canary])).all(axis=1)]
        require(len(having) <= 1, "the canary at most once", len(having))
        return having[0] if len(having) else None

    def share(self, canary: FloatArray) -> float:  # noqa: ARG002 -- all of it
        """See `Reader`."""
        return 1.0


@dataclass(frozen=True)
class GradientDescent:
    """Noisy gradient descent without a statement of its distribution: `DPSGD`, and what its mutants share.

    Parameters
    ----------
    model : Model
        What is trained.
    reader : Reader
        What an attacker looks at.
    clip : float
        Clip norm C, > 0.
    noise : float
        Noise multiplier: noise has standard deviation ``noise * clip`` on the sum of gradients, > 0.
    steps : int
        Number of steps, at least 1.
    rate : float, default 1
        Probability with which each row is in a batch, in (0, 1]; 1 for full batches.
    batch : float, default 1
        The divisor of sums, a public constant: the expected number of rows in a batch.
    learning_rate : float, default 0.1
        Step size.
    release : {"score", "steps", "weights"}
        The sum of the steps' rounded privacy losses; each step's; or the last weights.
    cell : float, default 1/16
        Lattice of the privacy losses, in nats.
    """

    model: Model
    reader: Reader
    clip: float
    noise: float
    steps: int
    rate: float = 1.0
    batch: float = 1.0
    learning_rate: float = 0.1
    release: Release = "score"
    cell: float = 1.0 / 16

    #: Whether the sum of a batch is the sum of what each example alone adds.
    adds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("clip", "noise", "batch", "learning_rate", "cell"):
            require_positive(name, getattr(self, name))
        require(self.steps >= 1, "at least one step", self.steps)
        require(0 < self.rate <= 1, "a rate in (0, 1]", self.rate)

    @property
    def lattice(self) -> LossLattice:
        """Cells of the readings of a step."""
        return LossLattice(1.0 / self.noise, self.rate, self.cell)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray | FloatArray:
        """Train n times; int64 of shape (n,) or (n, steps), or float64 of shape (n, p) for weights."""
        require_draws(n)
        rows = read_rows(data)
        return np.concatenate([self._train_block(rows, min(_BLOCK, n - at), rng) for at in range(0, n, _BLOCK)])

    def _train_block(self, rows: FloatArray, n: int, rng: np.random.Generator) -> IntArray | FloatArray:
        weights, readings = np.tile(self.model.initial(), (n, 1)), []
        batches = self.draw_batches(len(rows), n, rng)
        noise = self.draw_noise(batches, weights.shape[1], rng)
        for mask, own in zip(batches, noise, strict=True):
            released = self._release_sum(weights, rows, mask, own, rng)
            if self.release != "weights":
                readings.append(self.reader.read(self, weights, rows, released) / (self.noise * self.clip))
            weights = weights - self.learning_rate / self.batch * released
        if self.release == "weights":
            # A lattice of a thousandth of the noise or less, so that no last digit tells how a weight was computed.
            grain = default_step(self.learning_rate / self.batch * self.noise * self.clip)
            return np.asarray(np.rint(weights / grain) * grain)
        return self._round_readings(np.stack(readings, axis=1))

    def _round_readings(self, readings: FloatArray) -> IntArray:
        """Outputs of readings of shape (n, steps), in standard deviations of the noise."""
        cells = self.lattice.cells(readings)
        return cells if self.release == "steps" else cells.sum(axis=1)

    def draw_batches(self, rows: int, n: int, rng: np.random.Generator) -> Masks:
        """Draw which rows are in the batches, an independent coin each.

        Parameters
        ----------
        rows : int
            Rows of the dataset.
        n : int
            Runs.
        rng : numpy.random.Generator
            Source of the coins.

        Returns
        -------
        ndarray of bool, shape (steps, n, rows)
        """
        shape = (self.steps, n, rows)
        return np.ones(shape, dtype=np.bool_) if self.rate == 1 else rng.random(shape) < self.rate

    def draw_noise(self, batches: Masks, p: int, rng: np.random.Generator) -> FloatArray:
        """Draw the noise of each step.

        Parameters
        ----------
        batches : ndarray of bool, shape (steps, n, rows)
            The batches.
        p : int
            Number of weights.
        rng : numpy.random.Generator
            Source of the noise.

        Returns
        -------
        ndarray of shape (steps, n, p)
        """
        return self.noise * self.clip * rng.standard_normal((*batches.shape[:2], p))

    def sum_gradients(self, weights: FloatArray, rows: FloatArray, mask: Masks) -> FloatArray:
        """Sum of the clipped gradients of a batch, without noise.

        Parameters
        ----------
        weights : ndarray of shape (n, p)
            Weights of each run.
        rows : ndarray of shape (m, features + 1)
            The dataset.
        mask : ndarray of bool, shape (n, m)
            Rows in the batch of each run.

        Returns
        -------
        ndarray of shape (n, p)
        """
        layers = self.model.gradients(weights, rows)
        parts = zip(layers, self.find_factors(layers), strict=True)
        return np.concatenate([layer.combine(factors * mask) for layer, factors in parts], axis=1)

    def find_factors(self, layers: tuple[LayerGradients, ...]) -> tuple[FloatArray, ...]:
        """Factors that clip gradients, a layer each, of shape (n, m): the same for all layers."""
        factors = clip_factors(join_norms(layers), self.clip)
        return (factors,) * len(layers)

    def clip_examples(self, weights: FloatArray, rows: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 -- for noise by example
        """What each example adds to the sum of its batch.

        Parameters
        ----------
        weights : ndarray of shape (n, p)
            Weights of each run.
        rows : ndarray of shape (m, features + 1)
            Examples.
        rng : numpy.random.Generator
            Source of noise, where examples have some.

        Returns
        -------
        ndarray of shape (n, m, p)
        """
        layers = self.model.gradients(weights, rows)
        parts = zip(layers, self.find_factors(layers), strict=True)
        return np.concatenate([factors[:, :, None] * layer.expand() for layer, factors in parts], axis=2)

    def _release_sum(
        self,
        weights: FloatArray,
        rows: FloatArray,
        mask: Masks,
        noise: FloatArray,
        rng: np.random.Generator,  # noqa: ARG002 -- for noise by example
    ) -> FloatArray:
        """What is released of a step, of shape (n, p)."""
        return self.sum_gradients(weights, rows, mask) + noise


@dataclass(frozen=True)
class StatedDescent(GradientDescent):
    """Gradient descent whose readings have a known distribution.

    Notes
    -----
    A reading is what is read of the canary, with probability ``rate``, and noise. Valid because: other rows add
    nothing to it (`Reader`), and the canary's gradient is clipped to the full norm at all weights that a run reaches,
    but for a probability of 1e-17: weights move by the learning rate times clipped sums and noise, and `law` refuses
    a canary whose gradient could be shorter there.
    """

    #: The canary's part of a reading, and the standard deviation of its noise, over the claimed ones.
    signal: ClassVar[float] = 1.0
    deviation: ClassVar[float] = 1.0

    def law(self, data: Dataset) -> FiniteLaw | ProductLaw:
        """Exact distribution of the readings' cells; ValueError for weights, or where none is known."""
        require(self.release != "weights", "readings as outputs", self.release)
        masses = self._step_masses(self.shift(data))
        if self.release == "steps":
            return ProductLaw(tuple(law_of_cells(self.lattice, masses) for _ in range(self.steps)))
        return law_of_sum(self.lattice, [masses] * self.steps)

    def _step_masses(self, shift: float) -> FloatArray:
        return self.lattice.masses(self.signal * shift, self.rate if shift else 0.0, self.deviation)

    def shift(self, data: Dataset) -> float:
        """What the canary adds to a reading, in standard deviations of the claimed noise; 0 without a canary."""
        rows = read_rows(data)
        if not self.reader.of_unknown_batches:
            require(self.rate == 1 or len(rows) <= 1, "full batches or one row for this reader", len(rows))
        canary = self.reader.find_canary(rows)
        if canary is None:
            return 0.0
        least = self.model.least_gradient(canary, self._distance(len(rows)))
        require(least >= self.clip, f"a canary whose gradient has at least the norm {self.clip:g} always", least)
        return self.reader.share(canary) / self.noise

    def _distance(self, rows: int) -> float:
        """How far weights move from the first ones; see `_NOISE_REACH`."""
        noise = self.noise * (math.sqrt(sum(self.model.sizes)) + _NOISE_REACH) * math.sqrt(self.steps)
        moved = self.signal * rows * self.steps + max(1.0, self.deviation) * noise
        return self.learning_rate / self.batch * self.clip * moved


@dataclass(frozen=True)
class DPSGD(StatedDescent):
    """Differentially private stochastic gradient descent; see `GradientDescent` for the parameters."""

    def mu(self) -> float:
        """Level as Gaussian DP of full batches, for adding or removing a row: ``sqrt(steps) / noise``."""
        require(self.rate == 1, "full batches", self.rate)
        return math.sqrt(self.steps) / self.noise


@dataclass(frozen=True)
class TrainedWeights(GradientDescent):
    """Differentially private stochastic gradient descent that shows the last weights alone, and no distribution."""

    release: Release = "weights"

    def mu(self) -> float:
        """See `DPSGD.mu`."""
        return math.sqrt(self.steps) / self.noise
