"""Programs of their own on numpy, as `benchmarks.traced_libraries` traces them."""

import numpy as np

PARTS, WIDTH = 2, 24  # parameters of a model, and numbers in each


def gradient_step(data, rng, part_by_part):
    """One step of private training: gradients are clipped to norm 1, with Gaussian noise of scale 1."""
    total = np.zeros((PARTS, WIDTH))
    for row in data:
        gradient = np.reshape(row, (PARTS, WIDTH))
        size = np.linalg.norm(gradient, axis=1, keepdims=True) if part_by_part else np.linalg.norm(gradient)
        total += gradient / np.maximum(1.0, size)
    return total + rng.normal(scale=1.0, size=total.shape)


def key_of_one(data, rng, delta):
    """A key that one person may be the only one to have is shown if its noisy count is above a threshold."""
    threshold = 1 + np.log(1 / (2 * delta))
    return len(data) > 0 and len(data) + rng.laplace() > threshold


def noisy_sum(data, rng, scale):
    """Sum of numbers up to 1 with Gaussian noise."""
    return sum(data) + rng.normal(scale=scale)
