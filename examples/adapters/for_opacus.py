r"""Opacus, https://opacus.ai: the noise on one step's clipped gradients, with and without its secure mode.

    dpaudit attack 'pip:opacus==1.6.0 torch==2.13.0#examples/adapters/for_opacus.py:gradient' \
        --claim "mu=1" --relation add-remove-one --domain 0.0,1.0 --rows 10
    dpaudit attack 'pip:opacus==1.6.0 torch==2.13.0#examples/adapters/for_opacus.py:secure_gradient' \
        --claim "mu=1" --relation add-remove-one --domain 0.0,1.0 --rows 10

A row is one person's gradient of a model with one parameter. Gradients are clipped to norm 1 and summed, and the noise
has standard deviation 1, so that a step is 1-GDP for one row more or less. PyTorch is large: several gigabytes from
the package index, 200 MB where pip is pointed to its builds for processors alone
(PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu).
"""

import torch
from opacus.optimizers import DPOptimizer


def _optimizer(secure):
    weight = torch.nn.Parameter(torch.zeros(1))
    options = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 1, "loss_reduction": "sum"}
    return weight, DPOptimizer(torch.optim.SGD([weight], lr=1.0), secure_mode=secure, **options)


def _draw(data, n, secure):
    gradients = torch.tensor(data, dtype=torch.float32).reshape(-1, 1)
    weight, optimizer = _optimizer(secure)
    outputs = []
    for _ in range(n):
        optimizer.zero_grad()
        weight.grad_sample = gradients.clone()  # which the optimizer marks as used
        optimizer.clip_and_accumulate()
        optimizer.add_noise()
        outputs.append(weight.grad.item())
    return outputs


def gradient(data, n):
    """Sum of the clipped gradients with Gaussian noise in single precision."""
    return _draw(data, n, secure=False)


def secure_gradient(data, n):
    """Sum of the clipped gradients with noise that is a sum of four Gaussians, against attacks on floating point."""
    return _draw(data, n, secure=True)
