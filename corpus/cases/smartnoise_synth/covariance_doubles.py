"""smartnoise-synth 1.0.8: Laplace noise on covariances is added in doubles, whose last bits tell the answer."""

import pandas as pd
from snsynth.models.dp_covariance import DPcovariance

CASE = {
    "requires": "smartnoise-synth==1.0.8 torch==2.13.0 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,1.0",
    "rows": 8,
    "min_rows": 8,
    "pair": ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    "level": "unbounded",
    "family": "floats and sampling",
    "cause": ("floating-point", "lattice"),
    "source": "https://arxiv.org/abs/2207.13793",
}

BOUNDS = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})


def draw(data, n):
    """Noisy covariances of a column, and of another that is public."""
    table = pd.DataFrame({"x": [float(value) for value in data], "y": [float(k % 2) for k in range(len(data))]})
    made = (DPcovariance(len(data), ["x", "y"], BOUNDS, 1.0).release(table) for _ in range(n))
    return [[float(value) for value in released] for released in made]


def shows(output):
    """A variance below 1/32 that is no multiple of 2^-57: 1/8 plus a double of at least 1/16 in size cannot give it."""
    return 0.0 < abs(output[0]) < 1 / 32 and output[0] * 2.0**57 % 1.0 != 0.0
