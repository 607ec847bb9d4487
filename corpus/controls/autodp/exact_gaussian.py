"""autodp 0.2.3.1: Gaussian noise whose epsilon is that of the exact Gaussian mechanism."""

import numpy as np
from autodp.mechanism_zoo import ExactGaussianMechanism

CASE = {
    "requires": "autodp==0.2.3.1 numpy==1.26.4 scipy==1.11.4",
    "claim": "epsilon=1.00001, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "accountants and configuration",
}
SIGMA = 3.730632
GENERATOR = np.random.default_rng()

if ExactGaussianMechanism(sigma=SIGMA).get_approxDP(1e-5) > 1.00001:
    raise RuntimeError("the library's epsilon is above the claim")


def draw(data, n):
    """Sum with noise of that standard deviation."""
    return np.round(float(sum(data)) + GENERATOR.normal(0.0, SIGMA, n), 3)


draw.states = {"noise": {"distribution": "gaussian", "scale": SIGMA, "sensitivity": 1.0}, "query": "sum"}
