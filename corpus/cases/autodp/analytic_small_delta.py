"""autodp 0.2.3.1: may the analytic Gaussian calibration miss small deltas by 1e-12?"""

import math

import numpy as np
from autodp import mechanism_zoo, privacy_calibrator  # noqa: F401  (the first breaks a circle of imports)
from scipy import optimize, special

CASE = {
    "requires": "autodp==0.2.3.1 numpy==1.26.4 scipy==1.11.4",
    "claim": "epsilon=1, delta=1e-15",
    "relation": "add-remove-one",
    "domain": "0,1",
    "pair": ([1], []),
    "level": 1.07,
    "family": "accountants and configuration",
    "cause": ("scale", "noise"),
    "source": "",
}
SIGMA = float(privacy_calibrator.ana_gaussian_mech(1.0, 1e-15)["sigma"])
GENERATOR = np.random.default_rng()


def draw(data, n):
    """Sum with Gaussian noise of the standard deviation that the library computes for sensitivity 1."""
    return np.round(float(sum(data)) + GENERATOR.normal(0.0, SIGMA, n), 3)


draw.states = {"noise": {"distribution": "gaussian", "scale": SIGMA, "sensitivity": 1.0}, "query": "sum"}


def level(data):  # noqa: ARG001
    """Epsilon at delta = 1e-15 by the formula of Balle and Wang (2018, theorem 8), in logarithms."""

    def excess(epsilon):
        first = special.log_ndtr(0.5 / SIGMA - epsilon * SIGMA)
        second = epsilon + special.log_ndtr(-0.5 / SIGMA - epsilon * SIGMA)
        return first + math.log1p(-math.exp(second - first)) - math.log(1e-15)

    return optimize.brentq(excess, 1e-6, 100.0)
