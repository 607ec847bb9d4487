"""A model trained with Opacus, and the record of its steps.

It needs torch and opacus; `python examples/training/opacus_run.py run.npz` writes the record.
"""

import sys

import numpy as np
import torch
from opacus import PrivacyEngine

from auditor.training import StepRecorder, record_opacus

CLIP, NOISE, RATE, STEPS = 1.0, 1.765, 0.1, 200  # an accountant says epsilon = 4 at delta = 1e-5


def train(data, rng, recorder=None):
    """Logistic regression; what a step releases goes into the recorder."""
    torch.manual_seed(int(rng.integers(2**62)))
    rows, labels = torch.tensor(data["X"]), torch.tensor(data["y"])
    model = torch.nn.Linear(rows.shape[1], 2)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, labels), batch_size=int(RATE * len(rows)))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=loader,
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
    )
    if recorder is not None:
        record_opacus(optimizer, recorder)
    for _ in range(round(STEPS * RATE)):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model


def make_data(seed=0, examples=300):
    """Rows of 40 numbers; the sign of the first one is the label."""
    rows = np.random.default_rng(seed).normal(size=(examples, 40)).astype(np.float32)
    return {"X": rows, "y": (rows[:, 0] > 0).astype(np.int64)}


def score(model, canaries):
    """How well the model fits each canary."""
    with torch.no_grad():
        losses = torch.nn.functional.cross_entropy(
            model(torch.tensor(canaries["X"])), torch.tensor(canaries["y"]), reduction="none"
        )
    return -losses.numpy()


if __name__ == "__main__":
    steps = StepRecorder(CLIP, NOISE, RATE, examples=300, coin=0.5)
    train(make_data(), np.random.default_rng(), recorder=steps)
    steps.save(sys.argv[1])
