"""flwr 1.42.0: noise for the mean of the clients is added to a mean weighted by numbers of examples."""

import numpy as np
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

CASE = {
    "requires": "flwr==1.42.0 numpy==2.3.5",
    "claim": "mu=2",
    "relation": "replace-one",
    "domain": "[[-1.0, 1], [1.0, 1], [-1.0, 1000], [1.0, 1000]]",
    "rows": 2,
    "min_rows": 2,
    "pair": ([[1.0, 1000], [1.0, 1]], [[-1.0, 1000], [1.0, 1]]),
    "level": 3.99,
    "family": "training",
    "cause": ("value", "threshold", "scale"),
    "source": "https://flower.ai/docs/framework/ref-api/flwr.serverapp.strategy.DifferentialPrivacyServerSideFixedClipping.html",
    "draws": 20000,
}


STRATEGY = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, num_sampled_clients=2)
STRATEGY.current_round_params = [np.zeros(1)]
FINE = Status(Code.OK, "")


def _aggregate(data):
    replies = [FitRes(FINE, ndarrays_to_parameters([np.array([row[0]])]), int(row[1]), {}) for row in data]
    return float(parameters_to_ndarrays(STRATEGY.aggregate_fit(1, [(None, reply) for reply in replies], [])[0])[0][0])


def draw(data, n):
    """Noisy mean of two clients' updates. Of a plain mean replacing one is 2 / 2, with noise of 1 / 2: mu is 2."""
    return [_aggregate(data) for _ in range(n)]


def shows(output):
    """Above 0, which a mean of nearly 1 or -1 with noise of 1 / 2 rarely misses."""
    return output > 0.0
