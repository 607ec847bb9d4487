"""opacus 1.1.1: the gradients of two layers that share a weight are clipped as if they were of two people."""

import functools
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

CASE = {
    "requires": "opacus==1.1.1 torch==2.13.0",
    "fixed": "opacus==1.6.0 torch==2.13.0",
    "claim": "mu=1",
    "relation": "add-remove-one",
    "domain": "-1.0,0.0,1.0",
    "rows": 3,
    "min_rows": 1,
    "pair": ([0.0, 1.0], [0.0]),
    "level": 1.99,
    "family": "training",
    "cause": ("value", "threshold"),
    "source": "https://github.com/meta-pytorch/opacus/pull/417",
    "draws": 4000,
}


warnings.filterwarnings("ignore")
torch.set_num_threads(1)


@functools.cache
def _train():
    """Model and optimizer with steps on all rows: the noise of 1 is mu = 1."""
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False))
    model[1].weight = model[0].weight = torch.nn.Parameter(torch.ones(1, 1))
    table = DataLoader(TensorDataset(torch.ones(1, 1)), batch_size=1)
    asked = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "loss_reduction": "sum", "data_loader": table}
    return PrivacyEngine().make_private(module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), **asked)


def _step(rows, model, optimizer, _):
    optimizer.zero_grad()
    model(rows).sum().backward()
    optimizer.step()
    return round(next(model.parameters()).grad.item(), 3)


def draw(data, n):
    """Noisy sums of clipped gradients; the rows are the gradients of each layer."""
    return [_step(torch.tensor([[float(row)] for row in data]), *_train()) for _ in range(n)]


def shows(output):
    """Above 1, the most that one row adds."""
    return output > 1.0
