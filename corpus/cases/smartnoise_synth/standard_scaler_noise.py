"""smartnoise-synth 1.0.8: is the noise of a column's scaler meant to be about 1e-14 of what its bounds need?"""

from snsynth.transform import StandardScaler

CASE = {
    "requires": "smartnoise-synth==1.0.8 torch==2.13.0",
    "fixed": "",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,10.0",
    "rows": 8,
    "min_rows": 8,
    "pair": ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0]),
    "level": "unbounded",
    "family": "synthetic data",
    "cause": ("scale", "noise"),
    "source": "",
    "draws": 500,
}


def draw(data, n):
    """Mean and variance of a column whose bounds are given, as the scaler keeps them."""
    drawn = []
    for _ in range(n):
        scaler = StandardScaler(lower=0.0, upper=10.0, epsilon=1.0)
        scaler.fit(data)
        drawn.append([float(scaler.mean), float(scaler.var)])
    return drawn


def shows(output):
    """The mean is above that of seven zeros, and is not cut at the upper bound."""
    return 0.5 < output[0] < 9.5
