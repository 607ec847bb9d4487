"""opacus 1.6.0: the sum of clipped gradients with Gaussian noise, rounded to three digits."""

import torch
from opacus.optimizers import DPOptimizer

CASE = {
    "requires": "opacus==1.6.0 torch==2.13.0",
    "claim": "mu=1",
    "relation": "add-remove-one",
    "domain": "-9.0,-1.0,0.0,1.0,9.0",
    "rows": 5,
    "family": "training",
}


torch.set_num_threads(1)
WEIGHT = torch.nn.Parameter(torch.zeros(1))
NOISE = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": None, "loss_reduction": "sum"}
OPTIMIZER = DPOptimizer(torch.optim.SGD([WEIGHT], lr=0.0), **NOISE)


def _step(rows):
    OPTIMIZER.zero_grad()
    WEIGHT.grad_sample = rows.clone()
    OPTIMIZER.pre_step()
    return round(float(WEIGHT.grad), 3)


def draw(data, n):
    """Noisy sums: the rows are the gradients of the examples."""
    rows = torch.tensor([[float(row)] for row in data]).reshape(-1, 1)
    return [_step(rows) for _ in range(n)]
