"""opacus 1.6.0: the noisy sum is divided by the floor of rows times rate, and its noise tells the number of rows."""

import functools
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

CASE = {
    "requires": "opacus==1.6.0 torch==2.13.0",
    "claim": "epsilon=0.3826, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "-1.0,1.0",
    "rows": 6,
    "min_rows": 5,
    "pair": ([1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    "level": 2.6,
    "family": "training",
    "cause": ("scale", "value", "threshold", "spread", "norm", "size"),
    "source": "https://github.com/pytorch/opacus/blob/v1.6.0/opacus/privacy_engine.py",
    "draws": 20000,
}


warnings.filterwarnings("ignore")
torch.set_num_threads(1)


@functools.cache
def _train(rows):
    """Model, optimizer and batches of a table. All releases from 1.0.0 divide in this way."""
    model = torch.nn.Linear(8, 1, bias=False)
    table = DataLoader(TensorDataset(torch.tensor([[row] * 8 for row in rows])), batch_size=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    asked = {"noise_multiplier": 4.0, "max_grad_norm": 1.0}
    return PrivacyEngine().make_private(module=model, optimizer=optimizer, data_loader=table, **asked)


def _step(model, optimizer, batches):
    """The gradient that one step of DP-SGD releases; its claim is the PRV accountant's for one step at rate 1/3."""
    optimizer.zero_grad()
    (rows,) = next(iter(batches))
    model(rows).mean().backward()
    optimizer.step()
    return next(model.parameters()).grad[0].tolist()


def draw(data, n):
    """Noisy gradients of a linear model with eight weights."""
    made = _train(tuple(map(float, data)))
    return [_step(*made) for _ in range(n)]


def shows(output):
    """A gradient of norm above 8: in eight coordinates of noise 4 that is usual, of noise 2 it is not."""
    return sum(value * value for value in output) > 64.0
