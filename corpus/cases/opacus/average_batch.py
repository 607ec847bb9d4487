"""opacus 0.15.0: the sum of a Poisson batch is divided by rows times rate, and its noise tells the number of rows."""

import functools

import torch
from opacus import PrivacyEngine

CASE = {
    "requires": "opacus==0.15.0 torch==2.13.0",
    "claim": "epsilon=0.606, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "-1.0,1.0",
    "rows": 3,
    "min_rows": 1,
    "pair": ([1.0], [1.0, 1.0]),
    "level": 2.6,
    "family": "training",
    "cause": ("scale", "value", "threshold", "spread", "norm", "size"),
    "source": "https://github.com/pytorch/opacus/blob/v0.15.0/opacus/privacy_engine.py",
    "draws": 20000,
}


torch.set_num_threads(1)


@functools.cache
def _train(size):
    """Model and optimizer with the engine attached, as the manual has it."""
    model = torch.nn.Linear(8, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    asked = {"sample_rate": 0.5, "sample_size": size, "poisson": True, "max_grad_norm": 1.0, "noise_multiplier": 4.0}
    PrivacyEngine(model, **asked).attach(optimizer)
    return model, optimizer


def _step(rows, model, optimizer):
    """The gradient that one step on a Poisson batch releases."""
    optimizer.zero_grad()
    model.weight.grad = torch.zeros(1, 8)
    batch = rows[torch.rand(len(rows)) < 0.5]
    if len(batch):
        model(batch).mean().backward()
    optimizer.dp_step(is_empty=not len(batch))
    return next(model.parameters()).grad[0].tolist()


def draw(data, n):
    """Noisy gradients of a linear model with eight weights; the claim is the accountant's for one step, rounded up."""
    rows = torch.tensor([[float(row)] * 8 for row in data])
    return [_step(rows, *_train(len(data))) for _ in range(n)]


def shows(output):
    """A gradient of norm above 16: in eight coordinates of noise 8 that is usual, of noise 4 it is not."""
    return sum(value * value for value in output) > 256.0
