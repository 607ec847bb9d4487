"""diffprivlib 0.6.6: the snapping mechanism on a sum that is clamped to [0, 10]."""

from diffprivlib import mechanisms

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "floats and sampling",
}

SNAPPING = mechanisms.Snapping(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=10.0)


def draw(data, n):
    """Sum with Laplace noise that is rounded to a lattice."""
    return [SNAPPING.randomise(float(sum(data))) for _ in range(n)]
