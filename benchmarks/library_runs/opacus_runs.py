"""Runs of Opacus, set up rightly and wrongly; needs torch and opacus.

``python opacus_runs.py FOLDER FIRST_SEED RUNS`` writes FOLDER/SETUP-SEED.npz.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from auditor.training import StepRecorder, record_opacus

CLIP, NOISE, RATE, STEPS, EXAMPLES = 1.0, 1.765, 0.1, 200, 300
SETUPS = (
    "as documented",
    "batches in parts",
    "sum of losses",
    "shuffled batches",
    "half of the noise",
    "seed set at each step",
    "divided by the drawn batch",
    "last layer without noise",
)


def train(setup: str, seed: int) -> StepRecorder:
    """A network with one hidden layer."""
    import torch
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    torch.manual_seed(seed)
    rows = torch.tensor(np.random.default_rng(seed).normal(size=(EXAMPLES, 40)).astype(np.float32))
    model = torch.nn.Sequential(torch.nn.Linear(40, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    reduction = "sum" if setup == "sum of losses" else "mean"
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02 if reduction == "sum" else 0.5),
        data_loader=torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(rows, (rows[:, 0] > 0).long()),
            batch_size=int(RATE * EXAMPLES),
            shuffle=setup == "shuffled batches",
        ),
        noise_multiplier=NOISE / 2 if setup == "half of the noise" else NOISE,
        max_grad_norm=CLIP,
        poisson_sampling=setup != "shuffled batches",
        loss_reduction=reduction,
    )
    recorder = StepRecorder(CLIP, NOISE, RATE, examples=EXAMPLES, coin=0.5)
    if setup == "last layer without noise":
        _spare_a_layer(optimizer)
    record_opacus(optimizer, recorder, seed=seed + 1)
    loss = torch.nn.CrossEntropyLoss(reduction=reduction)

    def run_epoch(batches: Any) -> None:
        for x, y in batches:
            if len(recorder) == STEPS:
                return
            if setup == "seed set at each step":
                torch.manual_seed(seed)
            if setup == "divided by the drawn batch":
                optimizer.expected_batch_size = max(1, len(x))
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

    while len(recorder) < STEPS:
        if setup == "batches in parts":
            with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as parts:
                run_epoch(parts)
        else:
            run_epoch(loader)
    return recorder


def _spare_a_layer(optimizer: Any) -> None:
    """Give the last layer its clipped sum without noise."""
    add_noise = optimizer.add_noise

    def add_less_noise() -> None:
        add_noise()
        for p in optimizer.params[-2:]:
            p.grad = p.summed_grad.clone().view_as(p)

    optimizer.add_noise = add_less_noise


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    folder, first, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for name in SETUPS:
        for number in range(first, first + runs):
            train(name, number).save(folder / f"{name}-{number}.npz")
