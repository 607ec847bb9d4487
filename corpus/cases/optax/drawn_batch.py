"""optax 0.2.8: the noise is divided by the number of rows in the batch, so that its scale tells that number."""

import itertools
import os

import jax
import numpy as np
from optax.contrib import differentially_private_aggregate

CASE = {
    "requires": "jax-privacy==2.0.0 dp-accounting==0.6.0 jax==0.10.2 numpy==2.4.6 scipy==1.17.1 optax==0.2.8",
    "claim": "mu=0.25",
    "relation": "add-remove-one",
    "domain": "-1.0,1.0",
    "rows": 3,
    "min_rows": 1,
    "pair": ([1.0], [1.0, 1.0]),
    "level": 2.6,
    "family": "training",
    "cause": ("scale", "value", "threshold", "spread", "norm", "size"),
    "source": "https://github.com/google-deepmind/optax/blob/v0.2.8/optax/contrib/_privacy.py",
    "draws": 20000,
}


KEY = jax.random.key(int.from_bytes(os.urandom(4), "big"))
CALLS = itertools.count()
BLOCK = 256


@jax.jit
def _steps(keys, rows):
    """Noisy gradients of as many steps as there are keys."""

    def step(key):
        made = differentially_private_aggregate(1.0, 4.0, key)
        return made.update(rows, made.init(None))[0]

    return jax.vmap(step)(keys)


def draw(data, n):
    """Noisy gradients of eight weights: the rows are the gradients of the examples."""
    rows = np.array([[float(row)] * 8 for row in data], dtype=np.float32).reshape(-1, 8)
    keys = [jax.random.split(jax.random.fold_in(KEY, next(CALLS)), BLOCK) for _ in range(0, n, BLOCK)]
    return np.concatenate([np.asarray(_steps(part, rows)) for part in keys])[:n].astype(float)


def shows(output):
    """A gradient of norm above 8: in eight coordinates of noise 4 that is usual, of noise 2 it is not."""
    return sum(value * value for value in output) > 64.0
