"""diffprivlib 0.6.6: a sum with two-sided geometric noise."""

from diffprivlib import mechanisms

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "floats and sampling",
}

GEOMETRIC = mechanisms.Geometric(epsilon=1.0, sensitivity=1)


def draw(data, n):
    """Sum with geometric noise."""
    return [GEOMETRIC.randomise(int(sum(data))) for _ in range(n)]
