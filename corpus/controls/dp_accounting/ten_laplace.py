"""dp-accounting 0.6.0: Laplace noise on ten sums, calibrated by privacy loss distributions."""

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
SCALE = float(
    dp_accounting.calibrate_dp_mechanism(
        pld.PLDAccountant,
        lambda scale: dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(scale), COUNT),
        1.0,
        1e-6,
    )
)
GENERATOR = np.random.default_rng()


def draw(data, n):
    """Ten sums, each with noise of the calibrated scale."""
    return np.round(float(sum(data)) + GENERATOR.laplace(0.0, SCALE, (n, COUNT)), 3)
