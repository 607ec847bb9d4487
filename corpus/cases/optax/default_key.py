"""optax 0.2.8: without a key the noise is that of key 0, the same in each run."""

import warnings

import jax
import numpy as np
from optax.contrib import differentially_private_aggregate

CASE = {
    "requires": "jax-privacy==2.0.0 dp-accounting==0.6.0 jax==0.10.2 numpy==2.4.6 scipy==1.17.1 optax==0.2.8",
    "claim": "mu=1",
    "relation": "replace-one",
    "domain": "-1.0,1.0",
    "rows": 1,
    "min_rows": 1,
    "pair": ([1.0], [-1.0]),
    "level": "unbounded",
    "family": "accountants and configuration",
    "cause": ("value", "never", "only", "threshold"),
    "source": "https://github.com/google-deepmind/optax/blob/v0.2.8/optax/contrib/_privacy.py",
    "draws": 500,
}


warnings.filterwarnings("ignore")


@jax.jit
def _step(rows):
    """The first step of a training run; a warning says that a key will be required, not that privacy is lost."""
    made = differentially_private_aggregate(1.0, 2.0)
    return made.update(rows, made.init(None))[0]


def draw(data, n):
    """Noisy gradients of n runs."""
    rows = np.array([float(data[0])], dtype=np.float32)
    return [float(_step(rows)) for _ in range(n)]


def shows(output):
    """Above -4.9: on 1 and -1 it would be on both sides, if each run drew its own noise of 2."""
    return output > -4.9
