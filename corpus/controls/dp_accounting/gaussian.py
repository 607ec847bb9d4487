"""dp-accounting 0.6.0: a count with Gaussian noise of the scale that the PLD accountant finds, rounded."""

import functools

import dp_accounting
import numpy as np

CASE = {
    "requires": "jax-privacy==2.0.0 dp-accounting==0.6.0 jax==0.10.2 numpy==2.4.6 scipy==1.17.1",
    "claim": "epsilon=1, delta=0.01",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "accountants and configuration",
}


@functools.cache
def _scale():
    """The smallest noise multiplier for epsilon 1 at delta 0.01."""
    return dp_accounting.calibrate_dp_mechanism(
        dp_accounting.pld.PLDAccountant, dp_accounting.GaussianDpEvent, target_epsilon=1.0, target_delta=0.01
    )


GENERATOR = np.random.default_rng()


def draw(data, n):
    """Noisy number of ones."""
    return np.round(sum(map(int, data)) + GENERATOR.normal(0.0, _scale(), n), 3)
