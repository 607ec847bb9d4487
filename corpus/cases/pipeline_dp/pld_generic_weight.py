"""pipeline-dp 0.3.1: is the weight of a generic mechanism meant to be left out by the PLD accountant?"""

import math

import numpy as np
from dp_accounting.pld import privacy_loss_distribution  # noqa: F401  (the accountant wants it to be imported)
from pipeline_dp.budget_accounting import MechanismType, PLDBudgetAccountant

CASE = {
    "requires": "pipeline-dp==0.3.1 dp-accounting==0.4.4",
    "claim": "epsilon=1, delta=1e-6",
    "relation": "replace-one",
    "domain": "0,1",
    "rows": 1,
    "min_rows": 1,
    "pair": ([1], [0]),
    "level": 3.9,
    "family": "accountants and configuration",
    "cause": (),
    "source": "",
}
GENERATOR = np.random.default_rng()


def _epsilon():
    accountant = PLDBudgetAccountant(total_epsilon=1.0, total_delta=1e-6, pld_discretization=1e-3)
    spec = accountant.request_budget(MechanismType.GENERIC, weight=4.0)
    accountant.compute_budgets()
    return spec.eps


EPSILON = _epsilon()
TRUTH = 1.0 / (1.0 + math.exp(-EPSILON))


def draw(data, n):
    """Randomised response with the epsilon that the accountant gives the only mechanism."""
    return np.where(GENERATOR.random(n) < TRUTH, data[0], 1 - data[0])


def level(data):  # noqa: ARG001
    """Level at delta = 1e-6 of randomised response that tells the truth with probability p: p - e^level (1 - p)."""
    return math.log((TRUTH - 1e-6) / (1.0 - TRUTH))
