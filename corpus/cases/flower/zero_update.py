"""flwr 1.42.0: is clipping an update of zero meant to raise a division by zero?"""

import numpy as np
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.supercore.differential_privacy import add_localdp_gaussian_noise_to_params, compute_clip_model_update

CASE = {
    "requires": "flwr==1.42.0 numpy==2.3.5",
    "claim": "epsilon=0.5, delta=1e-5",
    "relation": "replace-one",
    "domain": "-1.0,0.0,1.0",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0.0], [1.0]),
    "level": "unbounded",
    "family": "sensitivities and bounds",
    "cause": ("exception",),
    "source": "",
    "draws": 500,
}


def _release(value, epsilon):
    """Do what LocalDpMod does to an update: clip it to norm 1, and add noise."""
    model, sent = [np.array([value], dtype=np.float32)], [np.zeros(1, dtype=np.float32)]
    compute_clip_model_update(model, sent, 1.0)
    noisy = add_localdp_gaussian_noise_to_params(ndarrays_to_parameters(model), 2.0, epsilon, 1e-5)
    return float(parameters_to_ndarrays(noisy)[0][0])


def draw(data, n):
    """Noisy updates of one parameter. Two clipped updates are 2 apart at most, which is the sensitivity."""
    return [_release(float(data[0]), 0.5) for _ in range(n)]


def shows(output):
    """What the call raised."""
    return str(output).startswith("raised")
