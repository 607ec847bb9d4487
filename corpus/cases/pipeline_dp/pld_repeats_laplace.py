"""pipeline-dp 0.3.1: is the PLD accountant meant to forget repeats where delta is 0?"""

import math

import numpy as np
from dp_accounting.pld import privacy_loss_distribution  # noqa: F401  (the accountant wants it to be imported)
from pipeline_dp.budget_accounting import MechanismType, PLDBudgetAccountant

CASE = {
    "requires": "pipeline-dp==0.3.1 dp-accounting==0.4.4",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,1",
    "pair": ([1], []),
    "level": 10.0,
    "family": "accountants and configuration",
    "cause": ("scale", "noise"),
    "source": "",
}
COUNT = 10
GENERATOR = np.random.default_rng()


def _scale():
    accountant = PLDBudgetAccountant(total_epsilon=1.0, total_delta=0.0)
    spec = accountant.request_budget(MechanismType.LAPLACE, sensitivity=1.0, count=COUNT)
    accountant.compute_budgets()
    return spec.noise_standard_deviation / math.sqrt(2.0)


SCALE = _scale()


def draw(data, n):
    """Ten sums, each with Laplace noise of the scale that the accountant chose for ten of them."""
    return np.round(float(sum(data)) + GENERATOR.laplace(0.0, SCALE, (n, COUNT)), 3)


def level(data):  # noqa: ARG001
    """Ten Laplace mechanisms of sensitivity 1: ten over the scale (Dwork and Roth 2014, theorems 3.6 and 3.16)."""
    return COUNT / SCALE
