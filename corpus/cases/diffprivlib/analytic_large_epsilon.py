"""diffprivlib 0.6.6: is the noise of the analytic Gaussian mechanism enough for some large epsilons?"""

import math

from diffprivlib import mechanisms
from scipy import optimize, special

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=20, delta=1e-9",
    "relation": "add-remove-one",
    "domain": "0,1",
    "pair": ([1], []),
    "level": 21.1,
    "family": "accountants and configuration",
    "cause": ("scale", "noise"),
    "source": "",
}
GAUSSIAN = mechanisms.GaussianAnalytic(epsilon=20.0, delta=1e-9, sensitivity=1.0)
SIGMA = float(GAUSSIAN.variance(0.0) ** 0.5)


def draw(data, n):
    """Sum with the library's Gaussian noise, rounded against attacks on floating point."""
    return [round(GAUSSIAN.randomise(float(sum(data))), 3) for _ in range(n)]


draw.states = {"noise": {"distribution": "gaussian", "scale": SIGMA, "sensitivity": 1.0}, "query": "sum"}


def level(data):  # noqa: ARG001
    """Epsilon at delta = 1e-9 by the formula of Balle and Wang (2018, theorem 8), in logarithms."""

    def excess(epsilon):
        first = special.log_ndtr(0.5 / SIGMA - epsilon * SIGMA)
        second = epsilon + special.log_ndtr(-0.5 / SIGMA - epsilon * SIGMA)
        return first + math.log1p(-math.exp(second - first)) - math.log(1e-9)

    return optimize.brentq(excess, 1e-6, 100.0)
