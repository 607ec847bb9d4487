"""smartnoise-synth 1.0.5: the covariance is that of the values before they are cut at the bounds."""

import importlib.util
from pathlib import Path

import pandas as pd

CASE = {
    "requires": "smartnoise-synth==1.0.5 torch==2.13.0 scikit-learn==1.8.0",
    "fixed": "smartnoise-synth==1.0.8 torch==2.13.0 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,1.0,1000.0",
    "rows": 8,
    "min_rows": 8,
    "pair": ([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1000.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
    "level": "unbounded",
    "family": "models",
    "cause": ("scale", "sensitivity", "output[", "coordinate"),
    "source": "https://github.com/opendp/smartnoise-sdk/issues/622",
    "draws": 1000,
}

# By file, as the package snsynth.models of 1.0.5 imports a module that scikit-learn no longer has.
FOLDER = Path(importlib.util.find_spec("snsynth").origin).parent
SPEC = importlib.util.spec_from_file_location("dp_covariance", FOLDER / "models" / "dp_covariance.py")
MODULE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MODULE)


def _release(data):
    """Covariances of a column, to be cut at 0 and 1, and of another that is public and the same."""
    bounds = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    table = pd.DataFrame({"x": [float(value) for value in data], "y": [float(k % 2) for k in range(len(data))]})
    released = MODULE.DPcovariance(len(data), ["x", "y"], bounds, 1.0).release(table)
    return [float(value) for value in released]


def draw(data, n):
    """Noisy covariances."""
    return [_release(data) for _ in range(n)]


def draw_fixed(data, n):
    """Noisy covariances, rounded: their last bits are a case by themselves."""
    return [[round(value, 3) for value in _release(data)] for _ in range(n)]


def shows(output):
    """The variance of values between 0 and 1 is above 1000."""
    return output[0] > 1000.0
