"""flwr 1.42.0: noise for epsilon above 1 has the scale that is proved for epsilon below 1 only."""

import math

import numpy as np
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.supercore.differential_privacy import add_localdp_gaussian_noise_to_params, compute_clip_model_update

CASE = {
    "requires": "flwr==1.42.0 numpy==2.3.5",
    "claim": "epsilon=10, delta=1e-5",
    "relation": "replace-one",
    "domain": "-1.0,-0.5,0.5,1.0",
    "rows": 1,
    "min_rows": 1,
    "pair": ([1.0], [-1.0]),
    "level": 10.39,
    "family": "accountants and configuration",
    "cause": ("figures", "scale", "states"),
    "source": "https://arxiv.org/abs/1805.06530",
}


SCALE = 2.0 * math.sqrt(2.0 * math.log(1.25 / 1e-5)) / 10.0


def _release(value, epsilon):
    """Do what LocalDpMod does to an update: clip it to norm 1, and add noise."""
    model, sent = [np.array([value], dtype=np.float32)], [np.zeros(1, dtype=np.float32)]
    compute_clip_model_update(model, sent, 1.0)
    noisy = add_localdp_gaussian_noise_to_params(ndarrays_to_parameters(model), 2.0, epsilon, 1e-5)
    return float(parameters_to_ndarrays(noisy)[0][0])


def draw(data, n):
    """Noisy updates of one parameter. Two clipped updates are 2 apart at most, which is the sensitivity."""
    return [_release(float(data[0]), 10.0) for _ in range(n)]


draw.states = {"noise": {"distribution": "gaussian", "scale": SCALE, "sensitivity": 2.0}}


def level(data):
    """Epsilon at delta of the scale that numpy is asked for: theorem 8 of Balle and Wang (2018), by bisection."""
    asked, kept = [], np.random.normal
    np.random.normal = lambda mean, scale, shape: asked.append(scale) or kept(mean, scale, shape)
    _release(float(data[0]), 10.0)
    np.random.normal = kept
    mu, low, high = 2.0 / asked[0], 0.0, 100.0
    for _ in range(60):
        epsilon = (low + high) / 2
        tails = [math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2)) / 2 for side in (-1, 1)]
        low, high = (epsilon, high) if tails[0] - math.exp(epsilon) * tails[1] > 1e-5 else (low, epsilon)
    return low
