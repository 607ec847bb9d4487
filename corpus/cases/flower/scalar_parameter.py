"""flwr 1.42.0: is a parameter without dimensions meant to stay unclipped?"""

import numpy as np
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.supercore.differential_privacy import add_localdp_gaussian_noise_to_params, compute_clip_model_update

CASE = {
    "requires": "flwr==1.42.0 numpy==2.3.5",
    "fixed": "flwr==1.42.0 numpy==2.3.5",
    "claim": "epsilon=0.5, delta=1e-5",
    "relation": "replace-one",
    "domain": "-1000.0,-1.0,1.0,1000.0",
    "rows": 1,
    "min_rows": 1,
    "pair": ([1000.0], [-1000.0]),
    "level": "unbounded",
    "family": "sensitivities and bounds",
    "cause": ("value", "threshold", "never", "only"),
    "source": "",
    "draws": 20000,
}


def _release(value, shape):
    """Do what LocalDpMod does to an update: clip it to norm 1, and add noise. A shape of () is a scalar parameter."""
    model, sent = [np.full(shape, value, dtype=np.float32)], [np.zeros(shape, dtype=np.float32)]
    compute_clip_model_update(model, sent, 1.0)
    noisy = add_localdp_gaussian_noise_to_params(ndarrays_to_parameters(model), 2.0, 0.5, 1e-5)
    return round(float(parameters_to_ndarrays(noisy)[0].reshape(-1)[0]), 3)


def draw(data, n):
    """Noisy updates of a model with one scalar parameter, such as a temperature. The clipped ones are 2 apart."""
    return [_release(float(data[0]), ()) for _ in range(n)]


def draw_fixed(data, n):
    """The same parameter as a vector of length one."""
    return [_release(float(data[0]), (1,)) for _ in range(n)]


def shows(output):
    """Above 500: far from the clipped updates, whose noise has a standard deviation of 19.4."""
    return output > 500.0
