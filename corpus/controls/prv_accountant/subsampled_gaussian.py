"""prv-accountant 0.2.0: ten steps on Poisson samples, with the upper bound of the accountant."""

import numpy as np
from prv_accountant.dpsgd import find_noise_multiplier

CASE = {
    "requires": "prv-accountant==0.2.0 numpy==1.26.4 scipy==1.11.4",
    "claim": "epsilon=2, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "accountants and configuration",
}
RATE, STEPS = 0.2, 10
SIGMA = float(find_noise_multiplier(sampling_probability=RATE, num_steps=STEPS, target_epsilon=2.0, target_delta=1e-5))
GENERATOR = np.random.default_rng()


def draw(data, n):
    """Sums over ten Poisson samples of the rows, with noise of the multiplier that the library finds."""
    sums = GENERATOR.binomial(int(sum(data)), RATE, (n, STEPS))
    return np.round(sums + GENERATOR.normal(0.0, SIGMA, (n, STEPS)), 3)
