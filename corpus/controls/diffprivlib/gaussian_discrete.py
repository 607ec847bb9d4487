"""diffprivlib 0.6.6: a sum with discrete Gaussian noise."""

from diffprivlib import mechanisms

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1, delta=0.001",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "floats and sampling",
}


GAUSSIAN = mechanisms.GaussianDiscrete(epsilon=1.0, delta=0.001, sensitivity=1)


def draw(data, n):
    """Sum with noise."""
    return [GAUSSIAN.randomise(int(sum(data))) for _ in range(n)]
