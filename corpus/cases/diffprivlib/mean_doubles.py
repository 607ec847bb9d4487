"""diffprivlib 0.6.6: the noisy mean is a double whose last bits tell the exact mean."""

from diffprivlib import tools

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,1.0",
    "rows": 10,
    "min_rows": 1,
    "pair": ([1.0], [0.0]),
    "level": "unbounded",
    "family": "sensitivities and bounds",
    "cause": ("floating-point",),
    "source": "https://arxiv.org/abs/2207.13793",
}


def draw(data, n):
    """Mean of rows in [0, 1], whose number is public."""
    return [float(tools.mean(data, epsilon=1.0, bounds=(0.0, 1.0))) for _ in range(n)]


def shows(output):
    """A number below 1/2 that is no multiple of 2^-53: 1 plus a double of at least 1/2 in size cannot give it."""
    return 0.0 < output < 0.5 and output * 2.0**53 % 1.0 != 0.0
