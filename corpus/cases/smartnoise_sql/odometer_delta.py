"""smartnoise-sql 1.0.10: may the delta of the odometer of equal steps be below that of their composition?"""

import numpy as np
from snsql import Privacy
from snsql.sql.odometer import Odometer

CASE = {
    "requires": "smartnoise-sql==1.0.10",
    "fixed": "",
    "claim": "epsilon=3.7549, delta=0.23706",
    "relation": "replace-one",
    "domain": "0,1",
    "rows": 1,
    "min_rows": 1,
    "pair": ([1], [0]),
    "level": "unbounded",
    "family": "accountants and configuration",
    "cause": (),
    "source": "",
    "draws": 20000,
}
STEPS, EPSILON, DELTA = 100, 0.1, 0.01
GENERATOR = np.random.default_rng()


def _spent():
    odometer = Odometer(Privacy(epsilon=EPSILON, delta=DELTA))
    odometer.spend(STEPS)
    return odometer.spent


def draw(data, n):
    """Hundred steps at (0.1, 0.01): each releases the bit with probability 0.01, else a randomised response."""
    epsilon, delta = _spent()
    assert epsilon < 3.7549
    assert delta < 0.23706
    truth = 1.0 / (1.0 + np.exp(-EPSILON))
    response = np.where(GENERATOR.random((n, STEPS)) < truth, data[0], 1 - data[0])
    return np.where(GENERATOR.random((n, STEPS)) < DELTA, 2 + data[0], response)


def shows(output):
    """A step released the bit as it is, which some do with probability 1 - 0.99^100 = 0.63."""
    return any(step == 3 for step in output)
