"""opacus 1.5.2: ghost clipping clips to norm 1 whatever norm is asked for, and scales noise to the norm asked for."""

import functools

import torch
from opacus import PrivacyEngine
from opacus.utils.fast_gradient_clipping_utils import double_backward
from torch.utils.data import DataLoader, TensorDataset

CASE = {
    "requires": "opacus==1.5.2 torch==2.13.0",
    "fixed": "opacus==1.5.2 torch==2.13.0",
    "claim": "mu=0.25",
    "relation": "add-remove-one",
    "domain": "-1.0,1.0",
    "rows": 3,
    "min_rows": 1,
    "pair": ([1.0, 1.0], [1.0]),
    "level": 2.49,
    "family": "training",
    "cause": ("value", "threshold"),
    "source": "https://github.com/meta-pytorch/opacus/pull/664",
    "draws": 4000,
}


torch.set_num_threads(1)
MODES = {"ghost": {"grad_sample_mode": "ghost", "clipping": "ghost"}, "flat": {}}


@functools.cache
def _train(mode):
    """Model and optimizer with steps on all rows: clipping to 0.1 and noise of 0.4 are mu = 1 / 4."""
    model, table = torch.nn.Linear(1, 1, bias=False), DataLoader(TensorDataset(torch.ones(1, 1)), batch_size=1)
    asked = {"noise_multiplier": 4.0, "max_grad_norm": 0.1, "loss_reduction": "sum", **MODES[mode]}
    asked["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.0)
    return PrivacyEngine().make_private(module=model, data_loader=table, **asked)[:2]


def _step(data, model, optimizer):
    optimizer.zero_grad()
    losses = model(torch.tensor(data, dtype=torch.float32).reshape(-1, 1))[:, 0]
    double_backward(model, optimizer, losses) if hasattr(model, "get_coeff") else losses.sum().backward()
    optimizer.step()
    return round(next(model.parameters()).grad.item(), 3)


def draw(data, n):
    """Noisy sums of clipped gradients of a model with one weight; the rows are the gradients."""
    return [_step(data, *_train("ghost")) for _ in range(n)]


def draw_fixed(data, n):
    """The same with per-sample gradients, which are clipped to the norm asked for."""
    return [_step(data, *_train("flat")) for _ in range(n)]


def shows(output):
    """Above 1.5, half way between the sums of one and of two gradients of norm 1."""
    return output > 1.5
