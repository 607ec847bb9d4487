"""opacus 1.6.0: is ghost clipping of losses in a column meant to weigh each with the factors of all examples?"""

import functools

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

CASE = {
    "requires": "opacus==1.6.0 torch==2.13.0",
    "fixed": "opacus==1.6.0 torch==2.13.0",
    "claim": "mu=0.25",
    "relation": "add-remove-one",
    "domain": "-100.0,0.0,100.0",
    "rows": 3,
    "min_rows": 1,
    "pair": ([0.0, 100.0], [0.0]),
    "level": "unbounded",
    "family": "training",
    "cause": ("value", "threshold"),
    "source": "",
    "draws": 4000,
}


torch.set_num_threads(1)


@functools.cache
def _train():
    """Model, optimizer and loss as the tutorial has them, with steps on all rows: the noise of 4 is mu = 1 / 4."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    asked = {"noise_multiplier": 4.0, "max_grad_norm": 1.0, "loss_reduction": "sum", "grad_sample_mode": "ghost"}
    asked["data_loader"] = DataLoader(TensorDataset(torch.ones(1, 1)), batch_size=1)
    asked["criterion"] = torch.nn.MSELoss(reduction="sum")
    return PrivacyEngine().make_private(module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), **asked)


def _step(targets, kept):
    model, optimizer, criterion, _ = _train()
    optimizer.zero_grad()
    criterion(model(torch.ones(len(targets), 1)).reshape(kept), targets.reshape(kept)).backward()
    optimizer.step()
    return round(next(model.parameters()).grad.item(), 3)


def draw(data, n):
    """Noisy gradients of a regression whose outputs and targets are a column, as a linear layer gives them."""
    return [_step(torch.tensor(data, dtype=torch.float32), (-1, 1)) for _ in range(n)]


def draw_fixed(data, n):
    """The same with outputs and targets in a vector."""
    return [_step(torch.tensor(data, dtype=torch.float32), (-1,)) for _ in range(n)]


def shows(output):
    """Below -100: clipped gradients of three rows have a sum of at least -3, and the noise is 4."""
    return output < -100.0
