"""opacus 0.15.0: the noise is divided by the number of rows in the batch, so that its scale tells that number."""

import functools

import torch
from opacus import PrivacyEngine

CASE = {
    "requires": "opacus==0.15.0 torch==2.13.0",
    "claim": "mu=0.25",
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
def _train():
    """Model and optimizer with the engine attached, as the manual has it."""
    model = torch.nn.Linear(8, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    PrivacyEngine(model, sample_rate=1.0, max_grad_norm=1.0, noise_multiplier=4.0).attach(optimizer)
    return model, optimizer


def _step(rows, model, optimizer):
    """The gradient that one step on all rows releases: with the noise of 4 that is mu = 1 / 4."""
    optimizer.zero_grad()
    model(rows).mean().backward()
    optimizer.step()
    return next(model.parameters()).grad[0].tolist()


def draw(data, n):
    """Noisy gradients of a linear model with eight weights."""
    rows = torch.tensor([[float(row)] * 8 for row in data])
    return [_step(rows, *_train()) for _ in range(n)]


def shows(output):
    """A gradient of norm above 8: in eight coordinates of noise 4 that is usual, of noise 2 it is not."""
    return sum(value * value for value in output) > 64.0
