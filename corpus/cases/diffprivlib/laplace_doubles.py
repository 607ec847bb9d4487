"""diffprivlib 0.6.6: Laplace noise is added in doubles, whose last bits tell the answer."""

from diffprivlib import mechanisms

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,1",
    "rows": 10,
    "pair": ([1], []),
    "level": "unbounded",
    "family": "floats and sampling",
    "cause": ("floating-point",),
    "source": "https://arxiv.org/abs/2207.13793",
}

LAPLACE = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)


def draw(data, n):
    """Sum with Laplace noise."""
    return [LAPLACE.randomise(float(sum(data))) for _ in range(n)]


def shows(output):
    """A number below 1/2 that is no multiple of 2^-53: 1 plus a double of at least 1/2 in size cannot give it."""
    return 0.0 < output < 0.5 and output * 2.0**53 % 1.0 != 0.0
