"""Cells of privacy losses: their probabilities, and that of sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from mechanisms.training.loss_lattice import LossLattice, law_of_sum


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1])
@pytest.mark.parametrize(("mean", "own", "scale"), [(0.0, 0.0, 1.0), (0.8, 0.5, 1.0), (2.0, 1.0, 0.5)])
def test_masses_are_the_integrals_of_the_density(rate: float, mean: float, own: float, scale: float) -> None:
    lattice = LossLattice(0.8, rate, 0.25)
    masses = lattice.masses(mean, own, scale)
    low, high = lattice.ends
    assert masses.shape == (high - low + 1,)
    assert masses.sum() == pytest.approx(1.0, rel=1e-12)
    grid = np.linspace(-12, 16, 400_001)
    density = (1 - own) * stats.norm.pdf(grid, 0, scale) + own * stats.norm.pdf(grid, mean, scale)
    summed = np.bincount(lattice.cells(grid) - low, density, minlength=len(masses)) * (grid[1] - grid[0])
    # A cell's end is off by half a point of the grid at most, 4e-5 times the density.
    np.testing.assert_allclose(masses, summed, atol=1e-4)


def test_a_loss_is_the_logarithm_of_a_ratio_of_densities() -> None:
    lattice, s = LossLattice(1.5, 0.3, 0.1), np.linspace(-3, 5, 9)
    ratio = (0.7 * stats.norm.pdf(s) + 0.3 * stats.norm.pdf(s, 1.5)) / stats.norm.pdf(s)
    np.testing.assert_allclose(lattice.losses(s), np.log(ratio), atol=1e-12)


def test_a_sum_is_enumerated() -> None:
    lattice = LossLattice(1.0, 0.5, 1.0)
    first, second = lattice.masses(1.0, 0.5), lattice.masses(0.0, 0.0)
    law, low = law_of_sum(lattice, [first, second]), lattice.ends[0]
    expected = dict.fromkeys(law.outcomes, 0.0)
    for i, j in itertools.product(range(len(first)), range(len(second))):
        expected[2 * low + i + j] += float(first[i] * second[j])
    np.testing.assert_allclose(law.probabilities, list(expected.values()), atol=1e-15)


def test_tails_keep_their_digits() -> None:
    lattice = LossLattice(3.0, 1.0, 0.5)
    last = lattice.masses(0.0, 0.0)[-1]
    edge = ((lattice.ends[1] - 0.5) * 0.5 + 4.5) / 3.0
    assert last == pytest.approx(integrate.quad(stats.norm.pdf, edge, edge + 8)[0], rel=1e-6)


@pytest.mark.parametrize(("shift", "rate", "step"), [(0.0, 0.5, 0.1), (1.0, 0.0, 0.1), (1.0, 0.5, -1.0)])
def test_parameters_out_of_range_are_refused(shift: float, rate: float, step: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        LossLattice(shift, rate, step)
