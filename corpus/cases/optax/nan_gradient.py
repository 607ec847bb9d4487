"""optax 0.2.8: is a gradient with NaN meant to stay unclipped, so that the released sum is NaN?"""

import itertools
import os

import jax
import numpy as np
from optax.contrib import differentially_private_aggregate

CASE = {
    "requires": "jax-privacy==2.0.0 dp-accounting==0.6.0 jax==0.10.2 numpy==2.4.6 scipy==1.17.1 optax==0.2.8",
    "claim": "mu=1",
    "relation": "replace-one",
    "domain": "-1.0,1.0",
    "outside": True,
    "rows": 3,
    "min_rows": 1,
    "pair": (["nan", 1.0], [1.0, 1.0]),
    "level": "unbounded",
    "family": "sensitivities and bounds",
    "cause": ("NaN",),
    "source": "",
    "draws": 2000,
}


KEY = jax.random.key(int.from_bytes(os.urandom(4), "big"))
CALLS = itertools.count()
BLOCK = 256


@jax.jit
def _steps(keys, rows):
    """Noisy gradients of as many steps as there are keys."""

    def step(key):
        made = differentially_private_aggregate(1.0, 2.0, key)
        return made.update(rows, made.init(None))[0]

    return jax.vmap(step)(keys)


def draw(data, n):
    """Noisy gradients of one weight: the rows are the gradients of the examples."""
    rows = np.array([[float(row)] * 1 for row in data], dtype=np.float32).reshape(-1, 1)
    keys = [jax.random.split(jax.random.fold_in(KEY, next(CALLS)), BLOCK) for _ in range(0, n, BLOCK)]
    return np.concatenate([np.asarray(_steps(part, rows)) for part in keys])[:n].astype(float)[:, 0]


def shows(output):
    """It is NaN."""
    return output != output
