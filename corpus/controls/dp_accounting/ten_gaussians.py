"""dp-accounting 0.6.0: Gaussian noise on ten sums, calibrated by privacy loss distributions."""

import dp_accounting
import numpy as np
from dp_accounting import pld

CASE = {
    "requires": "dp-accounting==0.6.0",
    "claim": "epsilon=1, delta=1e-6",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "accountants and configuration",
}
COUNT = 10
SIGMA = float(
    dp_accounting.calibrate_dp_mechanism(
        pld.PLDAccountant,
        lambda sigma: dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), COUNT),
        1.0,
        1e-6,
    )
)
GENERATOR = np.random.default_rng()


def draw(data, n):
    """Ten sums, each with noise of the calibrated scale."""
    return np.round(float(sum(data)) + GENERATOR.normal(0.0, SIGMA, (n, COUNT)), 3)
