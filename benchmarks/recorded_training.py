"""A small DP-SGD that records its steps, as claimed or with one of the known pitfalls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.training import StepRecorder

Array = NDArray[np.float64]

#: Of 300 examples with 40 coordinates each, in two layers of a weight matrix and one bias.
EXAMPLES, LAYERS, CLIP = 300, (24, 15, 1), 0.5
#: Accountant at delta = 1e-5: 200 full batches at this noise have epsilon = 4, 200 sampled ones at rate 0.1 too.
FULL, SAMPLED = 15.29, 1.765
PITFALLS = (
    "noise before clipping",
    "clip of the mean",
    "clip by layer",
    "noise scaled by the batch",
    "floor of the batch size",
    "shuffled",
    "seed reused",
    "seed reused after an epoch",
    "seed reused for layers",
    "layer without noise",
    "noise of one micro-batch of four",
    "accumulation without its factor",
    "bias not clipped",
    "noise without the clip norm",
    "uniform noise",
    "rate of the accountant halved",
)


def clip_rows(rows: Array, norm: float) -> Array:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    clipped: Array = rows * np.minimum(1.0, norm / np.maximum(lengths, 1e-12))
    return clipped


def clip_gradients(rows: Array, pitfall: str, rng: np.random.Generator, sd: float) -> Array:
    if pitfall == "noise before clipping":
        return clip_rows(rows + rng.normal(scale=sd / np.sqrt(len(rows) + 1), size=rows.shape), CLIP)
    if pitfall == "clip by layer":
        ends = np.cumsum(LAYERS)[:-1]
        return np.concatenate([clip_rows(part, CLIP) for part in np.split(rows, ends, axis=1)], axis=1)
    if pitfall == "bias not clipped":
        return np.concatenate([clip_rows(rows[:, :-1], CLIP), rows[:, -1:]], axis=1)
    return rows if pitfall == "clip of the mean" else clip_rows(rows, CLIP)


def draw_noise(
    sd: float, step: int, batch: int, expected: float, pitfall: str, seed: int, rng: np.random.Generator
) -> Array:
    d = sum(LAYERS)
    if pitfall == "noise before clipping":
        return np.zeros(d)
    if pitfall == "seed reused":
        return np.random.default_rng(seed).normal(scale=sd, size=d)
    if pitfall == "seed reused after an epoch":
        return np.random.default_rng([seed, step % 50]).normal(scale=sd, size=d)
    if pitfall == "seed reused for layers":
        return np.concatenate([np.random.default_rng([seed, step]).normal(scale=sd, size=n) for n in LAYERS])
    if pitfall == "noise scaled by the batch":
        sd *= batch / expected
    if pitfall == "noise of one micro-batch of four":
        sd /= 2
    if pitfall == "noise without the clip norm":
        sd /= CLIP
    wide = np.sqrt(3) * sd
    noise = rng.uniform(-wide, wide, size=d) if pitfall == "uniform noise" else rng.normal(scale=sd, size=d)
    if pitfall == "layer without noise":
        noise[LAYERS[0] :] = 0
    return noise


def train(
    seed: int,
    *,
    rate: float = 0.1,
    noise: float = SAMPLED,
    steps: int = 200,
    pitfall: str = "",
    fair: bool = True,
    **recorded: Any,
) -> StepRecorder:
    """Linear regression by DP-SGD; the canary's gradient has the full norm."""
    rng = np.random.default_rng(seed)
    n = 129 if pitfall.startswith("floor") else EXAMPLES
    x = rng.normal(size=(n, sum(LAYERS)))
    y = x @ rng.normal(size=x.shape[1]) + rng.normal(size=n)
    canary, w = 50 * rng.normal(size=x.shape[1]), np.zeros(x.shape[1])
    coin = 0.5 if fair else rate
    claimed = rate / 2 if pitfall.startswith("rate") else rate
    recorder = StepRecorder(CLIP, noise, claimed, examples=n, coin=coin, seed=seed)
    order = rng.permutation(n)
    for step in range(steps):
        included = bool(rng.random() < coin)
        batch = np.flatnonzero(rng.random(n) < rate)
        if pitfall == "shuffled":
            size = round(n * rate)
            at = step * size % n
            order = rng.permutation(n) if at == 0 else order
            batch = order[at : at + size]
        gradients = (x[batch] @ w - y[batch])[:, None] * x[batch]
        own = np.sign(canary @ w - 40.0) * canary
        sd = noise * CLIP
        clipped = clip_gradients(np.vstack([gradients, own]), pitfall, rng, sd)
        others, added = clipped[:-1].sum(axis=0), clipped[-1]
        signal = others + added if included else others
        if pitfall == "clip of the mean":
            signal = clip_rows(signal[None, :], CLIP)[0]
        if pitfall == "accumulation without its factor":
            signal, others, added = 4 * signal, 4 * others, 4 * added
        released = signal + draw_noise(sd, step, len(batch), n * rate, pitfall, seed, rng)
        if pitfall == "floor of the batch size":
            released = released * (n * rate) / int(n * rate)
        w = w - 0.5 * released / (n * rate)
        recorder.add(
            np.split(released, np.cumsum(LAYERS)[:-1]),
            added,
            included=included,
            others=others,
            signal=signal,
            norms=np.linalg.norm(clipped[:-1], axis=1),
            batch=batch,
            **recorded,
        )
    return recorder
