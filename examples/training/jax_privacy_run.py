"""A model trained with jax-privacy, and the record of its steps.

It needs jax-privacy; `python examples/training/jax_privacy_run.py run.npz` writes the record.
"""

import sys

import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np

from auditor.training import StepRecorder

CLIP, NOISE, RATE, STEPS = 1.0, 1.765, 0.1, 200  # an accountant says epsilon = 4 at delta = 1e-5


def compute_loss(weights, batch):
    """Logistic loss of a linear model."""
    rows, labels = batch
    return jnp.mean(jnp.logaddexp(0.0, (1 - 2 * labels) * (rows @ weights)))


def train(data, rng, recorder=None):
    """Logistic regression; a canary's clipped gradient is put into each sum by a fair coin."""
    rows, labels = data["X"], data["y"]
    key = jax.random.key(int(rng.integers(2**31)))
    add_noise = jax_privacy.noise_addition.gaussian_privatizer(stddev=CLIP * NOISE, prng_key=key)
    sum_gradients = jax.jit(jax_privacy.clipped_grad(compute_loss, l2_clip_norm=CLIP, return_grad_norms=True))
    sampling = jax_privacy.batch_selection.CyclicPoissonSampling(sampling_prob=RATE, iterations=STEPS)
    weights = jnp.zeros(rows.shape[1])
    state = add_noise.init(weights)
    canary = CLIP * np.ones(rows.shape[1]) / np.sqrt(rows.shape[1])
    for batch in sampling.batch_iterator(len(rows), rng=rng):
        padded = jax_privacy.batch_selection.pad_to_multiple_of(batch, 64)  # one compilation for most batches
        others, beside = sum_gradients(weights, (rows[padded], labels[padded]), is_padding_example=padded < 0)
        included = recorder is not None and bool(rng.random() < 0.5)
        total = others + included * canary
        released, state = add_noise.update(total, state)
        norms = np.minimum(beside.grad_norms[: len(batch)], CLIP)
        if recorder is not None:
            recorder.add(released, canary, included=included, others=others, signal=total, norms=norms, batch=batch)
        weights = weights - 0.5 * released / (RATE * len(rows))
    return weights


def make_data(seed=0, examples=300):
    """Rows of 40 numbers; the sign of the first one is the label."""
    rows = np.random.default_rng(seed).normal(size=(examples, 40)).astype(np.float32)
    return {"X": rows, "y": (rows[:, 0] > 0).astype(np.int32)}


if __name__ == "__main__":
    steps = StepRecorder(CLIP, NOISE, RATE, examples=300, coin=0.5)
    train(make_data(), np.random.default_rng(), steps)
    steps.save(sys.argv[1])
