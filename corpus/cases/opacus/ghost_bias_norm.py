"""opacus 1.5.3: ghost clipping takes a wrong norm of a bias over sequences, so that small gradients are not clipped."""

import functools
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

CASE = {
    "requires": "opacus==1.5.3 torch==2.13.0",
    "fixed": "opacus==1.6.0 torch==2.13.0",
    "claim": "mu=0.25",
    "relation": "add-remove-one",
    "domain": "-0.1,0.0,0.1",
    "rows": 3,
    "min_rows": 1,
    "pair": ([0.0, 0.1], [0.0]),
    "level": 2.49,
    "family": "training",
    "cause": ("value", "threshold"),
    "source": "https://github.com/meta-pytorch/opacus/pull/751",
    "draws": 4000,
}


warnings.filterwarnings("ignore")
torch.set_num_threads(1)


@functools.cache
def _train():
    """Model, optimizer and loss with steps on all rows: the noise of 4 is mu = 1 / 4."""
    model = torch.nn.Linear(1, 1)
    model.weight.requires_grad = False
    asked = {"noise_multiplier": 4.0, "max_grad_norm": 1.0, "loss_reduction": "sum", "grad_sample_mode": "ghost"}
    asked["data_loader"] = DataLoader(TensorDataset(torch.ones(1, 1)), batch_size=1)
    asked["criterion"] = torch.nn.L1Loss(reduction="sum")
    return PrivacyEngine().make_private(module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), **asked)


def _step(rows):
    """The gradient that one step releases: a row is the factor of each of the 100 outputs of a sequence."""
    model, optimizer, criterion, _ = _train()
    optimizer.zero_grad()
    outputs = model(torch.ones(len(rows), 100, 1)).sum(dim=(1, 2))
    criterion(rows * outputs, torch.full_like(rows, -1000.0)).backward()
    optimizer.step()
    return round(model._module.bias.grad.item(), 3)


def draw(data, n):
    """Noisy sums of clipped gradients of a bias. A row of 0.1 has a gradient of 10, which is to be clipped to 1."""
    return [_step(torch.tensor(data, dtype=torch.float32)) for _ in range(n)]


def shows(output):
    """Above 5: half of a gradient that is not clipped."""
    return output > 5.0
