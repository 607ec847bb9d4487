"""Runs of jax-privacy, set up rightly and wrongly; needs jax-privacy.

``python jax_privacy_runs.py FOLDER FIRST_SEED RUNS`` writes FOLDER/SETUP-SEED.npz.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from auditor.training import StepRecorder

CLIP, NOISE, RATE, STEPS, EXAMPLES = 2.0, 1.765, 0.1, 200, 300
SETUPS = (
    "as documented",
    "batches of one size",
    "state of the noise not kept",
    "noise without the clip norm",
    "mean clipped",
    "batches cut at 32",
)


def train(setup: str, seed: int) -> StepRecorder:
    """Logistic regression."""
    import jax
    import jax.numpy as jnp
    import jax_privacy
    from jax_privacy import batch_selection

    def compute_loss(weights: Any, batch: Any) -> Any:
        x, y = batch
        return jnp.mean(jnp.logaddexp(0.0, (1 - 2 * y) * (x @ weights)))

    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(EXAMPLES, 40)).astype(np.float32)
    labels = (rows[:, 0] > 0).astype(np.int32)
    add_noise = jax_privacy.noise_addition.gaussian_privatizer(
        stddev=NOISE if setup == "noise without the clip norm" else CLIP * NOISE, prng_key=jax.random.key(seed)
    )
    sum_gradients = jax.jit(jax_privacy.clipped_grad(compute_loss, l2_clip_norm=CLIP, return_grad_norms=True))
    sum_whole = jax.jit(jax_privacy.clipped_grad(compute_loss, l2_clip_norm=1e9, return_grad_norms=True))
    size = int(RATE * EXAMPLES)
    sampling = (
        batch_selection.FixedBatchSampling(batch_size=size, iterations=STEPS)
        if setup == "batches of one size"
        else batch_selection.CyclicPoissonSampling(
            sampling_prob=RATE, iterations=STEPS, truncated_batch_size=32 if setup == "batches cut at 32" else None
        )
    )
    weights = jnp.zeros(rows.shape[1])
    first = state = add_noise.init(weights)
    added = CLIP * np.ones(40) / np.sqrt(40)
    recorder = StepRecorder(CLIP, NOISE, RATE, examples=EXAMPLES, coin=0.5)
    for batch in sampling.batch_iterator(EXAMPLES, rng=rng):
        padded = batch_selection.pad_to_multiple_of(batch, 64)
        given = (rows[padded], labels[padded])
        included = bool(rng.random() < 0.5)
        if setup == "mean clipped":
            total = sum_whole(weights, given, is_padding_example=padded < 0)[0] + included * 100 * added
            total = total * min(1.0, CLIP / max(float(jnp.linalg.norm(total)) / size, 1e-9))
            others, norms = sum_gradients(weights, given, is_padding_example=padded < 0)[0], None
        else:
            others, beside = sum_gradients(weights, given, is_padding_example=padded < 0)
            total = others + included * added
            norms = np.minimum(beside.grad_norms[: len(batch)], CLIP)
        released, state = add_noise.update(total, first if setup == "state of the noise not kept" else state)
        recorder.add(released, added, included=included, others=others, signal=total, norms=norms, batch=batch)
        weights = weights - 0.1 * released / size
    return recorder


if __name__ == "__main__":
    folder, start, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for name in SETUPS:
        for number in range(start, start + runs):
            train(name, number).save(folder / f"{name}-{number}.npz")
