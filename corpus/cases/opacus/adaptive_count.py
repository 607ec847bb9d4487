"""opacus 1.6.0: is the noise of adaptive clipping, for counts of -1/2 or 1/2, meant for its counts of 0 or 1?"""

import math

import torch
from opacus.optimizers import AdaClipDPOptimizer

CASE = {
    "requires": "opacus==1.6.0 torch==2.13.0",
    "claim": "mu=1",
    "relation": "add-remove-one",
    "domain": "-9.0,-0.9,0.0,0.9,9.0",
    "rows": 5,
    "min_rows": 1,
    "pair": ([9.0, -9.0], [9.0, -9.0, 0.9]),
    "level": 1.51,
    "family": "training",
    "cause": ("value", "threshold", "scale", "coordinate", "output["),
    "source": "",
    "draws": 10000,
}


torch.set_num_threads(1)
WEIGHT = torch.nn.Parameter(torch.zeros(1))
NOISE = {"noise_multiplier": 1.0, "unclipped_num_std": 0.51, "expected_batch_size": 1, "loss_reduction": "sum"}
BOUNDS = {"max_grad_norm": 1.0, "max_clipbound": 1e9, "min_clipbound": 1e-9}
RATE = {"target_unclipped_quantile": 0.0, "clipbound_learning_rate": 1.0}
OPTIMIZER = AdaClipDPOptimizer(torch.optim.SGD([WEIGHT], lr=0.0), **NOISE, **BOUNDS, **RATE)


def _step(rows):
    OPTIMIZER.zero_grad()
    OPTIMIZER.max_grad_norm = 1.0
    WEIGHT.grad_sample = rows.clone()
    OPTIMIZER.pre_step()
    return [round(float(WEIGHT.grad), 3), round(-math.log(float(OPTIMIZER.max_grad_norm)), 3)]


def draw(data, n):
    """Noisy sum of clipped gradients, and the share not clipped, from the next bound: the step's mu is 1 / 1."""
    rows = torch.tensor([[float(row)] for row in data])
    return [_step(rows) for _ in range(n)]


def shows(output):
    """The share is about half way between 0 and 1/3 or above, with a part of the gradient, whose noise is ten times."""
    return output[1] + 0.01 * output[0] > 0.15
