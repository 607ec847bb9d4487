"""smartnoise-synth 1.0.8: is the noise of covariances of three columns or more in the right order?"""

import pandas as pd
from snsynth.models.dp_covariance import DPcovariance

CASE = {
    "requires": "smartnoise-synth==1.0.8 torch==2.13.0 scikit-learn==1.8.0",
    "fixed": "",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,100.0",
    "rows": 8,
    "min_rows": 8,
    "pair": ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    "level": 5.7,
    "family": "models",
    "cause": ("scale", "sensitivity", "output[", "coordinate"),
    "source": "",
    "draws": 5000,
}


def draw(data, n):
    """Covariances of a column with bounds 0 and 100 and of two that are public, with bounds 0 and 1."""
    drawn = []
    for _ in range(n):
        bounds = pd.DataFrame({"a": [0.0, 1.0], "x": [0.0, 100.0], "b": [0.0, 1.0]})
        public = [float(k % 2) for k in range(len(data))]
        table = pd.DataFrame({"a": public, "x": [float(value) for value in data], "b": public})
        released = DPcovariance(len(data), ["a", "x", "b"], bounds, 1.0).release(table)
        drawn.append([float(value) for value in released])
    return drawn


def shows(output):
    """The variance of the column with bounds 0 and 100, third of the lower triangle, is far from 0."""
    return output[2] > 600.0
