"""diffprivlib 0.6.6: a sum with discrete Gaussian noise."""

from diffprivlib import mechanisms

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "accountants and configuration",
}
GAUSSIAN = mechanisms.GaussianDiscrete(epsilon=1.0, delta=1e-5, sensitivity=1)


def draw(data, n):
    """Sum with discrete Gaussian noise of the library's scale."""
    return [GAUSSIAN.randomise(int(sum(data))) for _ in range(n)]
