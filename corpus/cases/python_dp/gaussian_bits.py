"""python-dp 1.1.5: Gaussian noise is rounded to a lattice too fine for doubles, whose last bits tell the answer."""

from pydp.algorithms.numerical_mechanisms import GaussianMechanism

CASE = {
    "requires": "python-dp==1.1.5",
    "claim": "epsilon=1, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "0,1",
    "rows": 10,
    "pair": ([1], []),
    "level": "unbounded",
    "family": "floats and sampling",
    "cause": ("floating-point",),
    "source": "https://arxiv.org/abs/2207.13793",
}

GAUSSIAN = GaussianMechanism(1.0, 1e-5, 1.0)


def draw(data, n):
    """Sum with Gaussian noise."""
    return [GAUSSIAN.add_noise(float(sum(data))) for _ in range(n)]


def shows(output):
    """A number below 1/2 that is no multiple of 2^-53: 1 plus a double of at least 1/2 in size cannot give it."""
    return 0.0 < output < 0.5 and output * 2.0**53 % 1.0 != 0.0
