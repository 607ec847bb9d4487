"""opacus 0.15.0: the noise multiplier for a target epsilon is the last one tried, which may be too small."""

import math

import torch
from scipy import optimize, special

CASE = {
    "requires": "opacus==0.15.0 torch==2.13.0",
    "fixed": "opacus==1.6.0 torch==2.13.0",
    "claim": "epsilon=90, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "0,1",
    "pair": ([1], []),
    "level": 92.0,
    "family": "accountants and configuration",
    "cause": ("scale", "noise"),
    "source": "https://github.com/meta-pytorch/opacus/issues/346",
}
TARGET = {"target_epsilon": 90.0, "target_delta": 1e-5, "sample_rate": 1.0, "epochs": 1}


def _multiplier():
    try:
        from opacus.accountants.utils import get_noise_multiplier
    except ImportError:
        from opacus.privacy_engine import DEFAULT_ALPHAS, get_noise_multiplier

        return float(get_noise_multiplier(**TARGET, alphas=DEFAULT_ALPHAS))
    return float(get_noise_multiplier(**TARGET))


SIGMA = _multiplier()


def draw(data, n):
    """Sum of gradients of norm 1 at most, in one step on all rows, with noise of the library's multiplier."""
    return torch.round(float(sum(data)) + SIGMA * torch.randn(n, dtype=torch.float64), decimals=3).tolist()


draw.states = {"noise": {"distribution": "gaussian", "scale": SIGMA, "sensitivity": 1.0}, "query": "sum"}


def level(data):  # noqa: ARG001
    """Epsilon at delta = 1e-5 by the formula of Balle and Wang (2018, theorem 8), in logarithms."""

    def excess(epsilon):
        first = special.log_ndtr(0.5 / SIGMA - epsilon * SIGMA)
        second = epsilon + special.log_ndtr(-0.5 / SIGMA - epsilon * SIGMA)
        return first + math.log1p(-math.exp(second - first)) - math.log(1e-5)

    return optimize.brentq(excess, 1e-3, 1000.0)
