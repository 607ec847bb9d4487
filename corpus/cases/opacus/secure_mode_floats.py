"""opacus 1.6.0: may the sum of four Gaussians of secure mode, in single precision, show the last bits of a gradient?

The mode is documented to be secure against attacks on floating-point representations.
"""

import torch
from opacus.optimizers import DPOptimizer

CASE = {
    "requires": "opacus==1.6.0 torch==2.13.0",
    "claim": "mu=1",
    "relation": "add-remove-one",
    "domain": "-1.0,1.0",
    "rows": 5,
    "pair": ([1.0], []),
    "level": "unbounded",
    "family": "floats and sampling",
    "cause": ("floating-point", "lattice"),
    "source": "",
    "draws": 20000,
}


torch.set_num_threads(1)
WEIGHT = torch.nn.Parameter(torch.zeros(1))
NOISE = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 1, "secure_mode": True}
OPTIMIZER = DPOptimizer(torch.optim.SGD([WEIGHT], lr=1.0), **NOISE)


def _step(rows):
    WEIGHT.grad_sample = rows.clone()
    OPTIMIZER.pre_step()
    released = float(WEIGHT.grad)
    OPTIMIZER.zero_grad()
    return released


def draw(data, n):
    """Noisy gradients: the rows are the gradients of the examples."""
    rows = torch.tensor([[float(row)] for row in data]).reshape(-1, 1)
    return [_step(rows) for _ in range(n)]


def shows(output):
    """A number below 1/2 that is no multiple of 2^-24: 1 plus single precision of at least 1/2 cannot give it."""
    return 0.0 < output < 0.5 and output * 2.0**24 % 1.0 != 0.0
