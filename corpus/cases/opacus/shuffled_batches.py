"""opacus 0.11.0: the accountant takes samples to be independent, and the examples shuffle rows into batches."""

import numpy as np
import torch

torch.nn.modules.module.ModuleAttributeError = AttributeError  # a name of PyTorch 1.6 that the library imports
from opacus import privacy_analysis  # noqa: E402

CASE = {
    "requires": "opacus==0.11.0 torch==2.13.0",
    "claim": "epsilon=6.5, delta=1e-5",
    "relation": "add-remove-one",
    "domain": "-1.0,1.0",
    "rows": 10,
    "min_rows": 9,
    "pair": (
        [1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0],
        [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0],
    ),
    "level": 10.4,
    "family": "accountants and configuration",
    "cause": (),
    "source": "https://github.com/meta-pytorch/opacus/issues/80",
}
BATCH, SIGMA = 5, 1.0
ORDERS = [1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64))

for size in (9, 10):  # epsilon that the library tells for an epoch of two steps
    spent = privacy_analysis.compute_rdp(BATCH / size, SIGMA, 2, ORDERS)
    if privacy_analysis.get_privacy_spent(ORDERS, spent, 1e-5)[0] > 6.5:
        raise RuntimeError("the library's epsilon is above the claim")


def draw(data, n):
    """Noisy sums of gradients, of norm 1 at most, in the two steps of an epoch: batches as the examples make them."""
    rows = torch.tensor(data, dtype=torch.float64).clamp(-1.0, 1.0)
    loader = torch.utils.data.DataLoader(rows, batch_size=BATCH, shuffle=True)
    sums = torch.tensor([[float(batch.sum()) for batch in loader] for _ in range(n)], dtype=torch.float64)
    return torch.round(sums + SIGMA * torch.randn(sums.shape, dtype=torch.float64), decimals=3).tolist()


def level(data):  # noqa: ARG001
    """Epsilon at delta = 1e-5: sums (-3, -5) or (-5, -3), against (-5, -4); the densities integrated on a grid."""
    grid = np.linspace(-21.0, 16.0, 1401)
    step = grid[1] - grid[0]
    at = {mean: np.exp(-((grid - mean) ** 2) / 2.0) / np.sqrt(2.0 * np.pi) for mean in (-3, -4, -5)}
    first = 0.5 * np.outer(at[-3], at[-5]) + 0.5 * np.outer(at[-5], at[-3])
    second = np.outer(at[-5], at[-4])
    low, high = 0.0, 100.0
    for _ in range(40):
        middle = (low + high) / 2.0
        above = np.maximum(first - np.exp(middle) * second, 0.0).sum() * step**2 > 1e-5
        low, high = (middle, high) if above else (low, middle)
    return low
