"""A training whose steps are recorded, for audits that see every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor.training import StepRecorder
from mechanisms.base.mechanism import FloatArray
from mechanisms.training.dp_sgd import GradientDescent


def record_steps(
    training: GradientDescent,
    rows: FloatArray,
    canary: FloatArray,
    recorder: StepRecorder,
    coin: float,
    rng: np.random.Generator,
    **claims: Any,
) -> FloatArray:
    """Train once, and record each step.

    Parameters
    ----------
    training : GradientDescent
        The training, or one of its mutants. Its reader is not asked.
    rows : ndarray of shape (m, features + 1)
        The dataset without the canary.
    canary : ndarray of shape (features + 1,)
        The canary.
    recorder : StepRecorder
        Gets the steps.
    coin : float
        Probability with which the canary is in a step, independently, whatever the rate of the others.
    rng : numpy.random.Generator
        Source of coins, batches and noise.
    **claims
        What is claimed of each step, see `StepRecorder.add`.

    Returns
    -------
    ndarray of shape (p,)
        The last weights.
    """
    everyone, weights = np.vstack([rows, canary]), training.model.initial()[None, :]
    batches = training.draw_batches(len(rows), 1, rng)
    noise = training.draw_noise(batches, weights.shape[1], rng)[:, 0]
    ends = np.cumsum(training.model.sizes)[:-1]
    for mask, own in zip(batches[:, 0], noise, strict=True):
        included = bool(rng.random() < coin)
        batch = np.flatnonzero(mask)
        added = training.clip_examples(weights, everyone[[*batch, len(rows)]], rng)[0]
        others = added[:-1].sum(axis=0)
        signal = others + added[-1] if included else others
        if not training.adds_up:
            signal = training.sum_gradients(weights, everyone, np.append(mask, included)[None, :])[0]
        released = signal + own
        weights = weights - training.learning_rate / training.batch * released
        recorder.add(
            np.split(released, ends),
            added[-1],
            included=included,
            others=others,
            signal=signal,
            norms=np.linalg.norm(added[:-1], axis=1),
            batch=batch,
            **claims,
        )
    return np.asarray(weights[0])
